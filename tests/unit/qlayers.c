/* SPDX-License-Identifier: Apache-2.0 */
/* Quantized layers of every instruction set, beside sums of integers: equal in all bits. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/cpu/kernels.h"
#include "opdef/numbers.h"
#include "random_window.h"
#include "unit.h"

enum { CASES = 250, GUARD = 16, WORKERS = 3 };

/* A layer with its operands, and what comes out of it. */
struct trial {
	om_qlayer l;
	bool is_depthwise, w_is_signed, is_shifted;   /* shifted: the weights have zero points */
	om_dtype type;            /* of bytes */
	uint8_t *x, *w;
	int8_t *packed;
	int32_t x_zero, y_zero, least, most;  /* x_zero: of the elements as they are */
	int32_t *zero, *offset, *wide;        /* by number of the lists; zero: of the packed weights */
	float *scale;
	int64_t nx, nw, ny, size;             /* elements; bytes of the output */
	void *want;
};

static uint8_t *
random_bytes(uint64_t *state, int64_t n)
{
	uint8_t *x = malloc((size_t)(n ? n : 1));

	for (int64_t k = 0; k < n; k++)
		x[k] = (uint8_t)om_rng_below(state, 4) ? (uint8_t)om_rng_below(state, 256) : om_rng_below(state, 2) ? 255 : 0;
	return x;
}

static int32_t
byte(const uint8_t *x, int64_t k, bool is_signed)
{
	return is_signed ? (int8_t)x[k] : x[k];
}

/* ---- The reference. ---- */

/* The number in the lists of an output channel. */
static int64_t
number_of(const om_layer *l, int64_t channel)
{
	return channel / l->channels_out * (om_qlayer_channels(l) / l->group) + channel % l->channels_out;
}

static int32_t
sum_at(const struct trial *t, int64_t image, const int64_t *o, int64_t channel)
{
	const om_layer *l = &t->l.shape;
	const int64_t taps = volume(l->kernel), channels = t->is_depthwise ? l->channels_out : l->group * l->channels_in;
	const int64_t first = t->is_depthwise ? channel : channel / l->channels_out * l->channels_in;
	const int32_t w_zero = t->zero[number_of(l, channel)] + (t->w_is_signed ? 0 : 128);
	int32_t sum = 0;

	for (int64_t tap = 0; tap < taps; tap++) {
		int64_t at[OM_LAYER_AXES];
		const bool inside = find_tap(l, o, tap, at);
		for (int64_t c = 0; inside && c < l->channels_in; c++) {
			const int64_t position = ((image * l->in[0] + at[0]) * l->in[1] + at[1]) * l->in[2] + at[2];
			sum += (byte(t->x, position * channels + first + c, t->l.is_signed) - t->x_zero)
				* (byte(t->w, (channel * l->channels_in + c) * taps + tap, t->w_is_signed) - w_zero);
		}
	}
	return sum;
}

static void
compute(struct trial *t, const int32_t *bias)
{
	const om_layer *l = &t->l.shape;
	const int64_t size = volume(l->out), channels = l->group * l->channels_out;

	for (int64_t k = 0; k < t->ny; k++) {
		const int64_t p = k / channels % size, number = number_of(l, k % channels);
		int64_t o[OM_LAYER_AXES];
		position_of(l, p, o);
		const int32_t sum = sum_at(t, k / channels / size, o, k % channels) + bias[number];
		const float y = (float)sum * t->scale[number];
		if (t->l.output == OM_QLAYER_INT32)
			((int32_t *)t->want)[k] = sum;
		else if (t->l.output == OM_QLAYER_FLOAT)
			((float *)t->want)[k] = y;
		else
			((uint8_t *)t->want)[k] = (uint8_t)om_quantize_into(y, t->y_zero, t->least, t->most);
	}
}

/* ---- Random layers. ---- */

static void
choose(struct trial *t, uint64_t *state)
{
	om_layer *l = &t->l.shape;

	*t = (struct trial){.is_depthwise = om_rng_below(state, 3) == 0, .w_is_signed = om_rng_below(state, 2), .is_shifted = om_rng_below(state, 3) == 0,
		.type = om_rng_below(state, 2) ? OM_INT8 : OM_UINT8,
		.l = {.is_signed = om_rng_below(state, 2), .output = om_rng_below(state, 3) ? OM_QLAYER_BYTES
			: om_rng_below(state, 2) ? OM_QLAYER_INT32 : OM_QLAYER_FLOAT}};
	*l = (om_layer){.batch = 1 + (int64_t)om_rng_below(state, 3), .group = om_rng_below(state, 4) ? 1 : 1 + (int64_t)om_rng_below(state, 3),
		.channels_in = 1 + (int64_t)om_rng_below(state, 40), .channels_out = 1 + (int64_t)om_rng_below(state, 150)};
	if (t->is_depthwise)
		l->group = l->channels_in = 1;
	choose_window(l, state, 5, false);
	if (om_rng_below(state, 4) == 0)
		for (int k = 0; k < 3; k++) {     /* rows that are read in place */
			l->kernel[k] = l->stride[k] = l->dilation[k] = 1;
			l->begin[k] = 0;
			l->out[k] = l->in[k];
		}
}

/* What callers compute from zero points and sums; wrapping is fine. */
static void
set_lists(struct trial *t, uint64_t *state, int32_t *bias)
{
	const om_layer *l = &t->l.shape;
	const int64_t n = om_qlayer_channels(l), elements = l->channels_in * volume(l->kernel), depth = (elements + OM_QDEPTH - 1) / OM_QDEPTH;
	const uint32_t x_zero = (uint32_t)(t->x_zero + (t->l.is_signed ? 128 : 0));
	int32_t sum;

	for (int64_t k = 0; k < n; k++) {
		memcpy(&sum, t->packed + om_qlayer_panels(l) + k * (int64_t)sizeof sum, sizeof sum);
		t->zero[k] = t->is_shifted ? (int32_t)om_rng_below(state, 256) - 128 : 0;
		bias[k] = (int32_t)om_rng_below(state, 20001) - 10000;
		t->scale[k] = (float)om_rng_unit(state) * 0.01f;
		t->offset[k] = (int32_t)((uint32_t)bias[k] - x_zero * (uint32_t)sum + (uint32_t)elements * x_zero * (uint32_t)t->zero[k]);
		for (int64_t e = 0; t->is_depthwise && e < elements; e++)
			t->wide[e * n + k] = t->packed[((k / OM_QPANEL * depth + e / OM_QDEPTH) * OM_QPANEL + k % OM_QPANEL) * OM_QDEPTH
				+ e % OM_QDEPTH] - t->zero[k];
	}
}

static void
start(struct trial *t, uint64_t *state)
{
	const om_layer *l = &t->l.shape;
	const int64_t n = om_qlayer_channels(l);

	t->nx = l->batch * volume(l->in) * (t->is_depthwise ? l->channels_out : l->group * l->channels_in);
	t->nw = l->group * l->channels_out * l->channels_in * volume(l->kernel);
	t->ny = l->batch * l->group * l->channels_out * volume(l->out);
	t->size = t->ny * (t->l.output == OM_QLAYER_BYTES ? 1 : 4);
	t->x = random_bytes(state, t->nx);
	t->w = random_bytes(state, t->nw);
	t->packed = malloc(om_qlayer_weights(l));
	om_qlayer_pack(l, t->w, t->w_is_signed, false, t->packed);
	t->x_zero = (int32_t)om_rng_below(state, 256) - (t->l.is_signed ? 128 : 0);
	om_quantized_range(t->type, &t->least, &t->most);
	t->y_zero = t->least + (int32_t)om_rng_below(state, 256);
	if (om_rng_below(state, 3) == 0)
		t->least += (int32_t)om_rng_below(state, 100);
	int32_t *lists = calloc((size_t)n * 4, sizeof *lists);
	t->zero = lists;
	t->offset = lists + n;
	t->scale = (float *)(void *)(lists + 2 * n);
	t->wide = malloc((size_t)(n * volume(l->kernel)) * sizeof *t->wide);
	set_lists(t, state, lists + 3 * n);
	t->want = malloc((size_t)t->size + 1);
	compute(t, lists + 3 * n);
}

static void
end(struct trial *t)
{
	free(t->x);
	free(t->w);
	free(t->packed);
	free(t->zero);
	free(t->wide);
	free(t->want);
}

/* ---- Runs. ---- */

/* Into y, with `garbage` in scratch and after y; false if it does not stay there. */
static bool
run(const om_kernels *kernels, const struct trial *t, int garbage, om_workers *pool, uint8_t *y)
{
	const om_layer *l = &t->l.shape;
	const uint64_t bytes = om_qlayer_workspace(&t->l, om_worker_count(pool));
	unsigned char *scratch = aligned_alloc(64, (bytes + GUARD + 63) / 64 * 64);
	const om_qlayer_data d = {.x = t->x, .weights = t->packed, .x_zero = t->x_zero + (t->l.is_signed ? 128 : 0), .offset = t->offset,
		.w_zero = t->is_shifted ? t->zero : NULL, .scale = t->scale, .y_zero = t->y_zero, .least = t->least, .most = t->most,
		.y = y, .scratch = scratch, .pool = pool};
	bool kept = true;

	memset(scratch, garbage, bytes + GUARD);
	memset(y, garbage, (size_t)t->size + GUARD);
	if (!t->is_depthwise)
		kernels->qlayer->run(&t->l, &d);
	for (int64_t k = 0; t->is_depthwise && k < l->batch; k++)
		kernels->qdepthwise->lines(&t->l, &d, t->wide, k, 0, l->out[0] * l->out[1]);
	for (int k = 0; k < GUARD; k++)
		kept = kept && scratch[bytes + (uint64_t)k] == garbage && y[t->size + k] == garbage;
	free(scratch);
	return kept;
}

static bool
is_equal(const om_kernels *kernels, const struct trial *t, const uint8_t *y)
{
	const om_layer *l = &t->l.shape;

	if (memcmp(y, t->want, (size_t)t->size) == 0)
		return true;
	printf("# %s: channels %lld to %lld, group %lld, kernel %lld %lld %lld, depthwise %d, shifted %d, output %d\n", kernels->isa,
		(long long)l->channels_in, (long long)l->channels_out, (long long)l->group, (long long)l->kernel[0], (long long)l->kernel[1],
		(long long)l->kernel[2], t->is_depthwise, t->is_shifted, (int)t->l.output);
	return false;
}

static void
layers(void)
{
	om_workers *pool = om_workers_new(WORKERS);
	uint64_t state = 11;

	for (int k = 0; k < CASES; k++) {
		struct trial t;
		choose(&t, &state);
		start(&t, &state);
		uint8_t *room = malloc((size_t)t.size + GUARD + 8), *y = room + (t.l.output == OM_QLAYER_BYTES ? k % 8 : 4 * (k % 2));
		const om_kernels *kernels;
		for (unsigned i = 0; (kernels = om_kernels_at(i)); i++) {
			CU_ASSERT(run(kernels, &t, 0xff, NULL, y));
			CU_ASSERT(is_equal(kernels, &t, y));
			CU_ASSERT(run(kernels, &t, 0x41, pool, y));
			CU_ASSERT(is_equal(kernels, &t, y));
		}
		free(room);
		end(&t);
	}
	om_workers_free(pool);
}

/* A transposed matrix has the same panels. */
static void
matrices(void)
{
	enum { ROWS = 37, COLUMNS = 50 };
	const om_layer l = {.group = 1, .channels_in = ROWS, .channels_out = COLUMNS, .kernel = {1, 1, 1}};
	int8_t *a = malloc(om_qlayer_weights(&l)), *b = malloc(om_qlayer_weights(&l));
	uint8_t w[ROWS * COLUMNS], across[ROWS * COLUMNS];

	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++)
			w[i * COLUMNS + j] = across[j * ROWS + i] = (uint8_t)(i * 31 + j * 7);
	om_qlayer_pack(&l, w, true, true, a);
	om_qlayer_pack(&l, across, true, false, b);
	CU_ASSERT(memcmp(a, b, om_qlayer_weights(&l)) == 0);
	free(a);
	free(b);
}

/* ---- Rows. ---- */

enum { MOST = 100 };

static om_qscale
random_scale(uint64_t *state, bool is_signed)
{
	static const float scales[] = {0.02f, 1, 0.5f, 3.7e-5f, 0.0078125f, 1e-40f};

	return (om_qscale){scales[om_rng_below(state, 6)], (int32_t)om_rng_below(state, 256) - (is_signed ? 128 : 0), is_signed};
}

static float
number(const uint8_t *x, int64_t k, const om_qscale *s)
{
	return (float)(byte(x, k, s->is_signed) - s->zero) * s->scale;
}

static uint8_t
quantized(float x, const om_qscale *s)
{
	return (uint8_t)om_quantize(x / s->scale, s->zero, s->is_signed ? OM_INT8 : OM_UINT8);
}

static void
check_rows(const om_kernels *kernels, uint64_t *state)
{
	const int64_t n = (int64_t)om_rng_below(state, MOST);
	const bool is_signed = om_rng_below(state, 2);
	const om_qscale a = random_scale(state, is_signed), b = random_scale(state, is_signed), to = random_scale(state, is_signed);
	uint8_t *x = random_bytes(state, n), *y = random_bytes(state, n), out[4][MOST + 1];
	float numbers[MOST + 1], given[MOST];
	bool right = true;

	for (int64_t k = 0; k < n; k++)           /* also exactly between two bytes */
		given[k] = ((float)om_rng_below(state, 600) * 0.5f - 150) * to.scale;
	memset(out, 0x5a, sizeof out);
	numbers[n] = 0;
	kernels->qrows->quantize(out[0], given, n, &to);
	kernels->qrows->dequantize(numbers, x, n, &a);
	kernels->qrows->add(out[1], x, y, n, &a, &b, &to);
	kernels->qrows->mul(out[2], x, y, n, &a, &b, &to);
	memcpy(out[3], x, (size_t)n);
	kernels->qrows->add(out[3], out[3], y, n, &a, &b, &to);
	for (int64_t k = 0; k < n; k++) {
		const float p = number(x, k, &a), q = number(y, k, &b);
		right = right && out[0][k] == quantized(given[k], &to) && memcmp(&numbers[k], &p, sizeof p) == 0
			&& out[1][k] == quantized(p + q, &to) && out[2][k] == quantized(p * q, &to) && out[3][k] == out[1][k];
	}
	CU_ASSERT(right);
	CU_ASSERT(out[0][n] == 0x5a && out[1][n] == 0x5a && out[2][n] == 0x5a && out[3][n] == 0x5a && numbers[n] == 0);
	free(x);
	free(y);
}

static void
check_pools(const om_kernels *kernels, uint64_t *state)
{
	const int64_t c = 1 + (int64_t)om_rng_below(state, 150), h = 1 + (int64_t)om_rng_below(state, 7), w = 1 + (int64_t)om_rng_below(state, 7);
	const bool is_signed = om_rng_below(state, 2);
	const om_geometry g = {.in = {1, h, w}, .out = {1, h, w}, .kernel = {1, 3, 3}, .stride = {1, 1, 1}, .dilation = {1, 1, 1},
		.begin = {0, 1, 1}, .end = {0, 1, 1}};
	uint8_t *x = random_bytes(state, h * w * c), *y = random_bytes(state, h * w * c), *across = random_bytes(state, h * w * c);
	int32_t *sums = malloc((size_t)c * sizeof *sums);
	bool right = true;

	kernels->qrows->max_lines(&g, c, is_signed, x, y, 0, h);
	kernels->qrows->sum(sums, x, h * w, c, c, is_signed);
	kernels->qrows->transpose(across, x, h * w, c, h * w, c);
	for (int64_t k = 0; k < h * w * c; k++) {
		const int64_t i = k / c / w, j = k / c % w;
		int32_t most = -128;
		for (int64_t a = i - 1; a <= i + 1; a++)
			for (int64_t b = j - 1; b <= j + 1; b++)
				if (a >= 0 && a < h && b >= 0 && b < w && byte(x, (a * w + b) * c + k % c, is_signed) > most)
					most = byte(x, (a * w + b) * c + k % c, is_signed);
		sums[k % c] -= byte(x, k, is_signed);
		right = right && y[k] == (uint8_t)most && across[k % c * h * w + k / c] == x[k];
	}
	for (int64_t k = 0; k < c; k++)
		right = right && sums[k] == 0;
	CU_ASSERT(right);
	free(x);
	free(y);
	free(across);
	free(sums);
}

static void
rows(void)
{
	const om_kernels *kernels;

	for (unsigned i = 0; (kernels = om_kernels_at(i)); i++) {
		uint64_t state = 5;
		for (int k = 0; k < CASES; k++) {
			check_rows(kernels, &state);
			check_pools(kernels, &state);
		}
	}
}

static CU_TestInfo qlayer_tests[] = {
	{"layers are those of integers", layers},
	{"matrices are packed", matrices},
	{"rows and pools are those of the reference", rows},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("qlayers", qlayer_tests);
