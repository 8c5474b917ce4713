/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops, compiled once per instruction set: OM_ISA names the build,
 * OM_VL is the number of floats in a vector, OM_MR and OM_NV are the tile size.
 *
 * A product is computed in tiles of MR rows by NV vectors, which stay in registers
 * over the loop in k.  B is packed in groups of NR columns, so that a step in k reads
 * contiguous memory; A is not packed, and is read as MR streams.  A panel of B
 * (OM_GEMM_K by OM_GEMM_N) stays in the L2 cache, a group of its columns in L1; A is
 * processed in blocks of rows that share L2 with the panel.
 */
#include <config.h>

#include <stddef.h>
#include <string.h>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/recurrent.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/vmath.h"

enum {
	MR = OM_MR,
	NV = OM_NV,
	NR = OM_VL * OM_NV,
	MC = 96,                  /* rows of A per block */
};

_Static_assert(OM_GEMM_ROUND % NR == 0, "groups of columns do not fit the room");
_Static_assert(MR % 2 == 0, "tiles take two rows at a time");

struct tile {
	const float *a;
	int64_t a_row, a_col;
	const float *b;           /* packed: k by NR */
	int64_t k;
	float *c;
	int64_t c_row;
	float alpha;
	bool add;
	int64_t n;                /* number of valid columns */
};

/* Store a row of a partial tile. */
INLINE void
store_some(float *c, const vec *sum, const struct tile *t)
{
	float all[NR];

	memcpy(all, sum, sizeof all);
	for (int64_t j = 0; j < t->n; j++)
		c[j] = t->add ? c[j] + t->alpha * all[j] : t->alpha * all[j];
}

INLINE void
store(float *c, const vec *sum, const struct tile *t)
{
	for (int v = 0; v < NV; v++) {
		vec *at = (vec *)(c + v * VL);
		*at = t->add ? *at + t->alpha * sum[v] : t->alpha * sum[v];
	}
}

/* `rows` is a compile-time constant in every call, so that the sums are registers. */
INLINE void
tile_rows(const struct tile *t, const int rows)
{
	vec sum[MR][NV];
	const float *a[(MR + 1) / 2], *b = t->b;
	const int64_t row = t->a_row, col = t->a_col;

	UNROLL
	for (int i = 0; i < rows; i++) {
		UNROLL
		for (int v = 0; v < NV; v++)
			sum[i][v] = (vec){0};
	}
	UNROLL
	for (int i = 0; i < rows; i += 2)
		a[i / 2] = t->a + i * row;
	for (int64_t k = 0; k < t->k; k++, b += NR) {
		vec bk[NV];
		UNROLL
		for (int v = 0; v < NV; v++)
			bk[v] = *(const vec *)(b + v * VL);
		UNROLL
		for (int i = 0; i < rows; i++) {
			const float ai = a[i / 2][(i % 2) * row];
			UNROLL
			for (int v = 0; v < NV; v++)
				sum[i][v] += ai * bk[v];
		}
		UNROLL
		for (int i = 0; i < rows; i += 2)
			a[i / 2] += col;
	}
	UNROLL
	for (int i = 0; i < rows; i++) {
		if (t->n == NR)
			store(t->c + i * t->c_row, sum[i], t);
		else
			store_some(t->c + i * t->c_row, sum[i], t);
	}
}

#define TILE(n) static void tile_##n(const struct tile *t) { tile_rows(t, n); }
TILE(1)
TILE(2)
#if OM_MR > 2
TILE(3)
TILE(4)
#endif
#if OM_MR > 4
TILE(5)
TILE(6)
#endif
#if OM_MR > 6
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
#endif

static void (*const tiles[MR + 1])(const struct tile *) = {
	NULL, tile_1, tile_2,
#if OM_MR > 2
	tile_3, tile_4,
#endif
#if OM_MR > 4
	tile_5, tile_6,
#endif
#if OM_MR > 6
	tile_7, tile_8, tile_9, tile_10, tile_11, tile_12,
#endif
};

/* ---- Packing B. ---- */

static int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void
pack_row(float *to, const float *from, int64_t n, int64_t group)
{
	for (; n >= NR; n -= NR, from += NR, to += group)
		memcpy(to, from, NR * sizeof *to);
	if (n) {
		memset(to, 0, NR * sizeof *to);
		memcpy(to, from, (size_t)n * sizeof *to);
	}
}

/* Pack B when its columns are contiguous.  Blocks of 4 by 4 could be transposed in registers;
 * reading runs of 16 elements reuses cache lines. */
static void
pack_columns(float *to, const float *from, int64_t k, int64_t n, int64_t row, int64_t col)
{
	for (int64_t j = 0; j < n; j += NR, to += k * NR)
		for (int64_t i0 = 0; i0 < k; i0 += 16)
			for (int64_t jj = 0; jj < NR; jj++)
				for (int64_t i = i0; i < least(i0 + 16, k); i++)
					to[i * NR + jj] = j + jj < n
						? from[(j + jj) * col + i * row] : 0;
}

static void
pack(const om_gemm *g, int64_t k0, int64_t k, int64_t n0, int64_t n, float *panel, float *room)
{
	if (!g->row && g->b_col != 1) {
		pack_columns(panel, g->b + k0 * g->b_row + n0 * g->b_col, k, n, g->b_row, g->b_col);
		return;
	}
	for (int64_t i = 0; i < k; i++) {
		const float *from = g->row ? g->row(g->rows, k0 + i, n0, n, room)
			: g->b + (k0 + i) * g->b_row + n0;
		pack_row(panel + i * NR, from, n, k * NR);
	}
}

/* ---- Products with a vector. ---- */

static float
dot(const float *a, const float *b, int64_t n)
{
	vec sum[4] = {{0}};
	float rest = 0, all[VL];
	int64_t i = 0;

	for (; i + 4 * VL <= n; i += 4 * VL)
		UNROLL
		for (int v = 0; v < 4; v++)
			sum[v] += *(const vec *)(a + i + v * VL) * *(const vec *)(b + i + v * VL);
	for (; i + VL <= n; i += VL)
		sum[0] += *(const vec *)(a + i) * *(const vec *)(b + i);
	for (; i < n; i++)
		rest += a[i] * b[i];
	sum[0] += sum[1] + (sum[2] + sum[3]);
	memcpy(all, sum, sizeof all);
	for (int v = 0; v < VL; v++)
		rest += all[v];
	return rest;
}

/* One row of C from four rows of B at a time. */
static void
row_times_rows(const om_gemm *g)
{
	int64_t k = 0;

	if (!g->add)
		memset(g->c, 0, (size_t)g->n * sizeof *g->c);
	for (; k + 4 <= g->k; k += 4) {
		const float *b0 = g->b + k * g->b_row, *b1 = b0 + g->b_row;
		const float *b2 = b1 + g->b_row, *b3 = b2 + g->b_row;
		const float a0 = g->alpha * g->a[k * g->a_col], a1 = g->alpha * g->a[(k + 1) * g->a_col];
		const float a2 = g->alpha * g->a[(k + 2) * g->a_col], a3 = g->alpha * g->a[(k + 3) * g->a_col];
		int64_t j = 0;
		for (; j + VL <= g->n; j += VL)
			*(vec *)(g->c + j) += a0 * *(const vec *)(b0 + j) + a1 * *(const vec *)(b1 + j)
				+ (a2 * *(const vec *)(b2 + j) + a3 * *(const vec *)(b3 + j));
		for (; j < g->n; j++)
			g->c[j] += a0 * b0[j] + a1 * b1[j] + (a2 * b2[j] + a3 * b3[j]);
	}
	for (; k < g->k; k++)
		for (int64_t j = 0; j < g->n; j++)
			g->c[j] += g->alpha * g->a[k * g->a_col] * g->b[k * g->b_row + j];
}

/* Few rows or a single column, with contiguous operands: use dot products, because packing
 * would take longer than the product. */
static bool
by_dots(const om_gemm *g)
{
	if (g->row || g->a_col != 1 || g->b_row != 1 || (g->m > 3 && g->n > 1))
		return false;
	for (int64_t j = 0; j < g->n; j++)
		for (int64_t i = 0; i < g->m; i++) {
			const float d = g->alpha * dot(g->a + i * g->a_row, g->b + j * g->b_col, g->k);
			float *c = g->c + i * g->c_row + j;
			*c = g->add ? *c + d : d;
		}
	return true;
}

/* ---- The product. ---- */

static void
clear(const om_gemm *g)
{
	for (int64_t i = 0; i < g->m; i++)
		memset(g->c + i * g->c_row, 0, (size_t)g->n * sizeof *g->c);
}

static void
multiply_panel(const om_gemm *g, struct tile t, const float *panel, int64_t k0, int64_t n0, int64_t n)
{
	for (int64_t i0 = 0; i0 < g->m; i0 += MC)
		for (int64_t j = 0; j < n; j += NR) {
			t.b = panel + j * t.k;
			t.n = least(n - j, NR);
			for (int64_t i = i0, end = least(i0 + MC, g->m); i < end; i += MR) {
				t.a = g->a + i * g->a_row + k0 * g->a_col;
				t.c = g->c + i * g->c_row + n0 + j;
				tiles[least(end - i, MR)](&t);
			}
		}
}

static void
gemm(const om_gemm *g, void *scratch)
{
	float *room = scratch, *panel = room + OM_GEMM_N;
	struct tile t = {.a_row = g->a_row, .a_col = g->a_col, .c_row = g->c_row, .alpha = g->alpha};

	if (g->k == 0 && !g->add)
		clear(g);
	if (by_dots(g))
		return;
	if (g->m == 1 && !g->row && g->b_col == 1) {
		row_times_rows(g);
		return;
	}
	for (int64_t n0 = 0; n0 < g->n; n0 += OM_GEMM_N)
		for (int64_t k0 = 0; k0 < g->k; k0 += OM_GEMM_K) {
			const int64_t n = least(g->n - n0, OM_GEMM_N);
			t.k = least(g->k - k0, OM_GEMM_K);
			t.add = g->add || k0 > 0;
			pack(g, k0, t.k, n0, n, panel, room);
			multiply_panel(g, t, panel, k0, n0, n);
		}
}

/* ---- Filters with few elements, long rows. ---- */

static void
taps(float *out, int64_t n, const float *const *in, const float *w, int ntap, int64_t stride)
{
	int64_t j = 0;

	for (; stride == 1 && j + 4 * VL <= n; j += 4 * VL) {
		vec sum[4];
		for (int v = 0; v < 4; v++)
			sum[v] = *(const vec *)(out + j + v * VL);
		for (int t = 0; t < ntap; t++)
			UNROLL
			for (int v = 0; v < 4; v++)
				sum[v] += w[t] * *(const vec *)(in[t] + j + v * VL);
		for (int v = 0; v < 4; v++)
			*(vec *)(out + j + v * VL) = sum[v];
	}
	for (; stride == 1 && j + VL <= n; j += VL) {
		vec sum = *(const vec *)(out + j);
		for (int t = 0; t < ntap; t++)
			sum += w[t] * *(const vec *)(in[t] + j);
		*(vec *)(out + j) = sum;
	}
	for (; j < n; j++) {
		float sum = out[j];
		for (int t = 0; t < ntap; t++)
			sum += w[t] * in[t][j * stride];
		out[j] = sum;
	}
}

/* ---- int8 and uint8. ---- */

static void
bytes(float *out, const void *in, int64_t n, bool is_signed, int32_t zero)
{
	const int8_t *with_sign = in;
	const uint8_t *without = in;

	if (is_signed)
		for (int64_t j = 0; j < n; j++)
			out[j] = (float)(with_sign[j] - zero);
	else
		for (int64_t j = 0; j < n; j++)
			out[j] = (float)(without[j] - zero);
}

static void
add_whole(int32_t *sums, const float *in, int64_t n)
{
	for (int64_t j = 0; j < n; j++)
		sums[j] = (int32_t)((uint32_t)sums[j] + (uint32_t)(int32_t)in[j]);
}

/* ---- Unary functions. ---- */

enum { PIECE = 32 };

/* At most VL elements, without a call. */
static inline void
copy_few(float *to, const float *from, int64_t n)
{
	for (; n >= 4; n -= 4, to += 4, from += 4)
		memcpy(to, from, 4 * sizeof *to);
	for (int k = 0; k < n; k++)
		memcpy(to + k, from + k, sizeof *to);
}

/* Elements are processed in copied blocks: the output may be the input, and a partial last block is
 * computed like all others.  A few elements are one vector. */
#define CURVE(name, value)                                                     \
static void                                                                    \
name(float *out, const float *in, int64_t n, float a)                          \
{                                                                              \
	(void)a;                                                               \
	if (n <= VL) {                                                         \
		float few[VL] = {0};                                           \
		copy_few(few, in, n);                                          \
		for (int i = 0; i < VL; i++) {                                 \
			const float x = few[i];                                \
			few[i] = value;                                        \
		}                                                              \
		copy_few(out, few, n);                                         \
		return;                                                        \
	}                                                                      \
	float from[PIECE] = {0}, to[PIECE];                                    \
	for (int64_t at = 0; at < n; at += PIECE) {                            \
		const size_t bytes = (size_t)(n - at < PIECE ? n - at : PIECE) * sizeof *to; \
		memcpy(from, in + at, bytes);                                  \
		for (int i = 0; i < PIECE; i++) {                              \
			const float x = from[i];                               \
			to[i] = value;                                         \
		}                                                              \
		memcpy(out + at, to, bytes);                                   \
	}                                                                      \
}
CURVE(curve_erf, om_erf(x))
CURVE(curve_exp, om_exp(x))
CURVE(curve_gelu, GELU(float, x))
CURVE(curve_gelu_tanh, GELU_TANH(float, x))
CURVE(curve_sigmoid, 1 / (1 + om_exp(-x)))
CURVE(curve_swish, x / (1 + om_exp(-(a * x))))
CURVE(curve_tanh, om_tanh(x))

extern const om_kernels OM_TABLE(om_kernels);
extern const om_product_kernels OM_TABLE(om_product_kernels);
extern const om_attention_kernels OM_TABLE(om_attention_kernels);
extern const om_recurrent_kernels OM_TABLE(om_recurrent_kernels);
extern const om_epilogue_kernels OM_TABLE(om_epilogue_kernels);
extern const om_half_kernels OM_TABLE(om_half_kernels);
extern const om_layer_kernels OM_TABLE(om_layer_kernels);
extern const om_depthwise_kernels OM_TABLE(om_depthwise_kernels);
extern const om_grouped_kernels OM_TABLE(om_grouped_kernels);
extern const om_pool_kernels OM_TABLE(om_pool_kernels);
extern const om_elementwise_kernels OM_TABLE(om_elementwise_kernels);
extern const om_rows_kernels OM_TABLE(om_rows_kernels);
extern const om_update_kernels OM_TABLE(om_update_kernels);
extern const om_nbits_kernels OM_TABLE(om_nbits_kernels);
extern const om_qdepthwise_kernels OM_TABLE(om_qdepthwise_kernels);
extern const om_qrows_kernels OM_TABLE(om_qrows_kernels);
extern const om_qlayer_kernels OM_TABLE(om_qlayer_kernels);

#define KERNELS(name, qlayers, bits)                                           \
	.isa = name,                                                           \
	.qlayer = &qlayers,                                                    \
	.nbits = &bits,                                                        \
	.qdepthwise = &OM_TABLE(om_qdepthwise_kernels),                        \
	.qrows = &OM_TABLE(om_qrows_kernels),                                  \
	.gemm = gemm,                                                          \
	.taps = taps,                                                          \
	.dot = dot,                                                            \
	.bytes = bytes,                                                        \
	.add_whole = add_whole,                                                \
	.product = &OM_TABLE(om_product_kernels),                              \
	.attention = &OM_TABLE(om_attention_kernels),                          \
	.recurrent = &OM_TABLE(om_recurrent_kernels),                          \
	.curve = {                                                             \
		[OM_CURVE_ERF] = curve_erf,                                    \
		[OM_CURVE_EXP] = curve_exp,                                    \
		[OM_CURVE_GELU] = curve_gelu,                                  \
		[OM_CURVE_GELU_TANH] = curve_gelu_tanh,                        \
		[OM_CURVE_SIGMOID] = curve_sigmoid,                            \
		[OM_CURVE_SWISH] = curve_swish,                                \
		[OM_CURVE_TANH] = curve_tanh,                                  \
	},                                                                     \
	.epilogue = &OM_TABLE(om_epilogue_kernels),                            \
	.half = &OM_TABLE(om_half_kernels),                                    \
	.layer = &OM_TABLE(om_layer_kernels),                                  \
	.depthwise = &OM_TABLE(om_depthwise_kernels),                          \
	.grouped = &OM_TABLE(om_grouped_kernels),                              \
	.pool = &OM_TABLE(om_pool_kernels),                                    \
	.elementwise = &OM_TABLE(om_elementwise_kernels),                      \
	.rows = &OM_TABLE(om_rows_kernels),                                    \
	.update = &OM_TABLE(om_update_kernels)

const om_kernels OM_TABLE(om_kernels) = {
	KERNELS(OM_TEXT(OM_ISA), OM_TABLE(om_qlayer_kernels), OM_TABLE(om_nbits_kernels))};

/* The same with products of bytes by instructions of their own. */
#ifdef OM_ISA_OF_BYTES
extern const om_qlayer_kernels OM_JOIN(om_qlayer_kernels, OM_ISA_OF_BYTES);
extern const om_nbits_kernels OM_JOIN(om_nbits_kernels, OM_ISA_OF_BYTES);
extern const om_kernels OM_JOIN(om_kernels, OM_ISA_OF_BYTES);

const om_kernels OM_JOIN(om_kernels, OM_ISA_OF_BYTES) = {
	KERNELS(OM_TEXT(OM_ISA_OF_BYTES), OM_JOIN(om_qlayer_kernels, OM_ISA_OF_BYTES),
		OM_JOIN(om_nbits_kernels, OM_ISA_OF_BYTES))};
#endif
