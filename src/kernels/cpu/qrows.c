/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise functions and pools of bytes; see qrows.h. */
#include <config.h>

#include "kernels/cpu/qrows.h"
#include "kernels/cpu/simd.h"

enum { FEW = VL };                /* bytes of a tail that are copied */

/* ---- Vectors of bytes. ---- */

INLINE ivec
integers(const uint8_t *p, bool is_signed)
{
	return is_signed ? vec_load_int8((const int8_t *)p) : vec_load_uint8(p);
}

/* What the bytes stand for. */
INLINE vec
numbers(const uint8_t *p, const om_qscale *s)
{
	vec x = __builtin_convertvector(integers(p, s->is_signed) - s->zero, vec) * s->scale;

	VEC_ROUND_NOW(x);
	return x;
}

/* How numbers become bytes. */
struct target {
	float scale, inverse;
	vec low, high;
	int32_t zero;
	bool is_plain;            /* `inverse` is near the inverse of the scale */
};

static struct target
target_of(const om_qscale *s)
{
	const int32_t least = s->is_signed ? -128 : 0;
	const float size = s->scale < 0 ? -s->scale : s->scale;

	return (struct target){s->scale, 1 / s->scale, vec_all((float)(least - s->zero)), vec_all((float)(least + 255 - s->zero)),
		s->zero, size > 0x1p-100f && size < 0x1p100f};
}

/* The bytes for numbers: x / scale rounded.  The product with the inverse differs from the quotient by less than
 * 2^-13 within the bounds: it is rounded to the same integer, unless it is nearly between two of them. */
INLINE ivec
bytes(vec x, const struct target *t)
{
	const vec q = vec_min(vec_max(x * t->inverse, t->low), t->high);
	const vec sum = q + 0x1.8p23f, apart = vec_abs(q - (sum - 0x1.8p23f));

	if (t->is_plain && !vec_any_above(apart, 0.5f - 0x1p-12f))
		return (ivec)sum + t->zero;
	return vec_rounded(x / t->scale, t->low, t->high) + t->zero;
}

static void
quantize(uint8_t *y, const float *x, int64_t n, const om_qscale *to)
{
	const struct target t = target_of(to);
	int64_t k = 0;

	for (; k + VL <= n; k += VL)
		vec_store_bytes(y + k, bytes(vec_load(x + k), &t), VL);
	if (k < n)
		vec_store_bytes(y + k, bytes(vec_load_some(x + k, n - k), &t), n - k);
}

/* vec_min(x, y) is y if x is NaN. */
static void
range(const float *x, int64_t n, float *least, float *most)
{
	enum { SIDE = 4 };        /* chains that do not wait for each other */
	vec low[SIDE] = {{0}}, high[SIDE] = {{0}};
	int64_t k = 0;

	for (; k + SIDE * VL <= n; k += SIDE * VL) {
		UNROLL
		for (int i = 0; i < SIDE; i++) {
			const vec v = vec_load(x + k + i * VL);
			low[i] = vec_min(v, low[i]);
			high[i] = vec_max(v, high[i]);
		}
	}
	for (; k < n; k += VL) {
		const vec v = k + VL <= n ? vec_load(x + k) : vec_load_some(x + k, n - k);
		low[0] = vec_min(v, low[0]);
		high[0] = vec_max(v, high[0]);
	}
	low[0] = vec_min(vec_min(low[0], low[1]), vec_min(low[2], low[3]));
	high[0] = vec_max(vec_max(high[0], high[1]), vec_max(high[2], high[3]));
	*most = vec_largest(high[0]);
	*least = 0 - vec_largest(0 - low[0]);
}

static void
dequantize(float *y, const uint8_t *x, int64_t n, const om_qscale *of)
{
	uint8_t few[FEW] = {0};
	int64_t k = 0;

	for (; k + VL <= n; k += VL)
		vec_store(y + k, numbers(x + k, of));
	if (k == n)
		return;
	memcpy(few, x + k, (size_t)(n - k));
	vec_store_some(y + k, numbers(few, of), n - k);
}

/* A function of two operands, whose result may lie over them. */
#define BINARY(name, expression)                                               \
INLINE ivec                                                                    \
name##_vec(const uint8_t *pa, const uint8_t *pb, const om_qscale *of_a, const om_qscale *of_b, const struct target *to) \
{                                                                              \
	const vec a = numbers(pa, of_a), b = numbers(pb, of_b);                \
	return bytes(expression, to);                                          \
}                                                                              \
INLINE void                                                                    \
name##_of(uint8_t *y, const uint8_t *a, const uint8_t *b, int64_t n, om_qscale of_a, om_qscale of_b, om_qscale to) \
{                                                                              \
	const struct target t = target_of(&to);                                \
	uint8_t few[2][FEW] = {{0}};                                           \
	int64_t k = 0;                                                         \
	for (; k + VL <= n; k += VL)                                           \
		vec_store_bytes(y + k, name##_vec(a + k, b + k, &of_a, &of_b, &t), VL); \
	if (k == n)                                                            \
		return;                                                        \
	memcpy(few[0], a + k, (size_t)(n - k));                                \
	memcpy(few[1], b + k, (size_t)(n - k));                                \
	vec_store_bytes(y + k, name##_vec(few[0], few[1], &of_a, &of_b, &t), n - k); \
}                                                                              \
static void                                                                    \
name(uint8_t *y, const uint8_t *a, const uint8_t *b, int64_t n, const om_qscale *of_a, const om_qscale *of_b, \
	const om_qscale *to)                                                   \
{                                                                              \
	om_qscale va = *of_a, vb = *of_b, vy = *to;                            \
	va.is_signed = vb.is_signed = vy.is_signed = false;                    \
	if (!of_a->is_signed) {                                                \
		name##_of(y, a, b, n, va, vb, vy);                             \
		return;                                                        \
	}                                                                      \
	va.is_signed = vb.is_signed = vy.is_signed = true;                     \
	name##_of(y, a, b, n, va, vb, vy);                                     \
}
BINARY(add, a + b)
BINARY(mul, a * b)

/* ---- Pools. ---- */

static void
sum(int32_t *sums, const uint8_t *x, int64_t rows, int64_t row, int64_t n, bool is_signed)
{
	int64_t c = 0;

	for (; c + VL <= n; c += VL) {
		ivec s = {0};
		for (int64_t r = 0; r < rows; r++)
			s += integers(x + r * row + c, is_signed);
		vec_store((float *)(void *)(sums + c), (vec)s);
	}
	for (; c < n; c++) {
		sums[c] = 0;
		for (int64_t r = 0; r < rows; r++)
			sums[c] += is_signed ? (int8_t)x[r * row + c] : x[r * row + c];
	}
}

/* The taps of a window that are inside of the image. */
struct window {
	const uint8_t *at;        /* the first tap */
	int64_t n[3], step[3];    /* how many along each axis, and bytes between them */
};

/* The largest bytes of BYTES channels, with bits of `flip` flipped before the comparison and after it. */
INLINE bvec
largest(const struct window *w, int64_t c, bvec flip)
{
	bvec most = {0};

	for (int64_t z = 0; z < w->n[0]; z++)
		for (int64_t y = 0; y < w->n[1]; y++) {
			const uint8_t *x = w->at + z * w->step[0] + y * w->step[1] + c;
			for (int64_t k = 0; k < w->n[2]; k++, x += w->step[2])
				most = bvec_max(most, *(const bvec *)x ^ flip);
		}
	return most ^ flip;
}

/* The same for one channel. */
static uint8_t
largest_one(const struct window *w, int64_t c, uint8_t flip)
{
	uint8_t most = 0;

	for (int64_t z = 0; z < w->n[0]; z++)
		for (int64_t y = 0; y < w->n[1]; y++)
			for (int64_t k = 0; k < w->n[2]; k++) {
				const uint8_t x = w->at[z * w->step[0] + y * w->step[1] + k * w->step[2] + c] ^ flip;
				most = x > most ? x : most;
			}
	return most ^ flip;
}

static void
max_pixel(const om_geometry *g, int64_t channels, bool is_signed, const uint8_t *x, uint8_t *y, const int64_t *at)
{
	const uint8_t flip = is_signed ? 0x80 : 0;
	struct window w = {.at = x, .step = {g->in[1] * g->in[2] * channels, g->in[2] * channels, channels}};
	int64_t c = 0;

	for (int a = 0; a < 3; a++) {
		int64_t lo, hi;
		om_taps_inside(g, a, at[a], 0, 0, &lo, &hi);
		w.n[a] = hi - lo;
		w.at += (at[a] * g->stride[a] - g->begin[a] + lo * g->dilation[a]) * w.step[a];
		w.step[a] *= g->dilation[a];
	}
	for (; c + (int64_t)sizeof(bvec) <= channels; c += (int64_t)sizeof(bvec))
		*(bvec *)(y + c) = largest(&w, c, flip - (bvec){0});
	for (; c < channels; c++)
		y[c] = largest_one(&w, c, flip);
}

static void
max_lines(const om_geometry *g, int64_t channels, bool is_signed, const uint8_t *x, uint8_t *y, int64_t first, int64_t end)
{
	for (int64_t line = first; line < end; line++)
		for (int64_t k = 0; k < g->out[2]; k++) {
			const int64_t at[] = {line / g->out[1], line % g->out[1], k};
			max_pixel(g, channels, is_signed, x, y + (line * g->out[2] + k) * channels, at);
		}
}

/* ---- Transposes. ---- */

/* With so few rows, columns of the source are written as a whole. */
INLINE void
transpose_few(uint8_t *to, const uint8_t *from, const int64_t m, int64_t n, int64_t to_row, int64_t from_row)
{
	for (int64_t j = 0; j < n; j++)
		for (int64_t i = 0; i < m; i++)
			to[j * to_row + i] = from[i * from_row + j];
}

static void
transpose(uint8_t *to, const uint8_t *from, int64_t m, int64_t n, int64_t to_row, int64_t from_row)
{
	enum { WIDE = 64 };

	if (m == 3) {
		transpose_few(to, from, 3, n, to_row, from_row);
		return;
	}
	for (int64_t j = 0; j < n; j += WIDE) {
		const int64_t end = LEAST(j + WIDE, n);
		for (int64_t i = 0; i < m; i++)
			for (int64_t k = j; k < end; k++)
				to[k * to_row + i] = from[i * from_row + k];
	}
}

extern const om_qrows_kernels OM_TABLE(om_qrows_kernels);

const om_qrows_kernels OM_TABLE(om_qrows_kernels) = {
	.quantize = quantize, .range = range, .dequantize = dequantize, .add = add, .mul = mul, .sum = sum, .max_lines = max_lines,
	.transpose = transpose};
