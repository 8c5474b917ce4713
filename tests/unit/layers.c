/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and products with packed weights of every instruction set, beside sums in double. */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/layer_plan.h"
#include "opdef/cpu_domain.h"
#include "random_window.h"
#include "unit.h"

enum { CASES = 150, GUARD = 16, WORKERS = 3 };

/* A layer with its operands, and what comes out of it. */
struct trial {
	om_layer l;
	float *x, *w, *bias, *residual, *packed;
	double *want;
	int64_t nx, ny;
};

static float *
random_floats(uint64_t *state, int64_t n)
{
	float *x = malloc((size_t)(n ? n : 1) * sizeof *x);

	for (int64_t k = 0; k < n; k++)
		x[k] = (float)(om_rng_unit(state) * 2 - 1);
	return x;
}

/* ---- The reference. ---- */

static double
input_at(const struct trial *t, int64_t image, const int64_t *at, int64_t channel)
{
	const om_layer *l = &t->l;
	const int64_t channels = l->group * l->channels_in;
	const int64_t position = (at[0] * l->in[1] + at[1]) * l->in[2] + at[2];

	return (double)t->x[l->is_channels_first ? (image * channels + channel) * volume(l->in) + position
		: (image * volume(l->in) + position) * channels + channel];
}

static double
sum_at(const struct trial *t, int64_t image, const int64_t *o, int64_t channel)
{
	const om_layer *l = &t->l;
	const int64_t taps = volume(l->kernel), group = channel / l->channels_out;
	double sum = 0;

	for (int64_t tap = 0; tap < taps; tap++) {
		int64_t at[OM_LAYER_AXES];
		const bool inside = find_tap(l, o, tap, at);
		for (int64_t c = 0; inside && c < l->channels_in; c++)
			sum += input_at(t, image, at, group * l->channels_in + c)
				* (double)t->w[(channel * l->channels_in + c) * taps + tap];
	}
	return sum;
}

/* Those that tiles apply; SiLU stands for all others, which have tests of their own. */
static double
activated(const om_epilogue *e, double x)
{
	switch (e->act) {
	case OM_ACT_RELU: return x < 0 ? 0 : x;
	case OM_ACT_CLIP: return x < (double)e->alpha ? (double)e->alpha : x > (double)e->beta ? (double)e->beta : x;
	case OM_ACT_HARD_SWISH: return x * fmin(fmax(x / 6 + 0.5, 0), 1);
	case OM_ACT_LEAKY_RELU: return x < 0 ? (double)e->alpha * x : x;
	case OM_ACT_SILU: return x / (1 + exp(-x));
	default: return x;
	}
}

static void
compute(struct trial *t)
{
	const om_layer *l = &t->l;
	const int64_t size = volume(l->out), channels = l->group * l->channels_out;

	for (int64_t k = 0; k < t->ny; k++) {
		const int64_t p = k / channels % size, channel = k % channels;
		int64_t o[OM_LAYER_AXES];
		position_of(l, p, o);
		const double sum = sum_at(t, k / channels / size, o, channel) + (t->bias ? (double)t->bias[channel] : 0);
		t->want[k] = activated(&l->epilogue, t->residual ? sum + (double)t->residual[k] : sum);
	}
}

/* ---- Random layers. ---- */

static void
choose(om_layer *l, uint64_t *state)
{
	static const om_act acts[] = {OM_ACT_NONE, OM_ACT_RELU, OM_ACT_CLIP, OM_ACT_HARD_SWISH, OM_ACT_LEAKY_RELU, OM_ACT_SILU};

	*l = (om_layer){.batch = 1 + (int64_t)om_rng_below(state, 3), .group = om_rng_below(state, 4) ? 1 : 1 + (int64_t)om_rng_below(state, 3),
		.channels_in = 1 + (int64_t)om_rng_below(state, 40), .channels_out = 1 + (int64_t)om_rng_below(state, 75),
		.halves = om_rng_below(state, 2) ? OM_HALVES_ALWAYS : OM_HALVES_NEVER,
		.epilogue = {.act = acts[om_rng_below(state, sizeof acts / sizeof acts[0])], .alpha = -0.5f, .beta = 0.75f}};
	choose_window(l, state, 4, true);
	if (om_rng_below(state, 4) == 0) {
		l->is_channels_first = true;
		l->group = 1;
		l->channels_in = 1 + (int64_t)om_rng_below(state, 5);
	}
}

static void
choose_winograd(om_layer *l, uint64_t *state)
{
	choose(l, state);
	l->algorithm = om_rng_below(state, 2) ? OM_LAYER_WINOGRAD4 : OM_LAYER_WINOGRAD2;
	l->is_channels_first = false;
	for (int k = 1; k < 3; k++) {
		l->kernel[k] = 3;
		l->stride[k] = 1;
		l->dilation[k] = om_rng_below(state, 3) ? 1 : 1 + (int64_t)om_rng_below(state, 4);
		l->begin[k] = (int64_t)om_rng_below(state, 4) - 1;
		l->out[k] = 1 + (int64_t)om_rng_below(state, 19);
		l->in[k] = l->out[k] - l->begin[k] + (int64_t)om_rng_below(state, 3);
		l->in[k] = l->in[k] < 1 ? 1 : l->in[k];
	}
}

/* A product with few rows. */
static void
choose_product(om_layer *l, uint64_t *state)
{
	const int64_t rows = 1 + (int64_t)om_rng_below(state, 30);

	*l = (om_layer){.batch = 1, .group = 1, .channels_in = 1 + (int64_t)om_rng_below(state, 300),
		.channels_out = 1 + (int64_t)om_rng_below(state, 400), .in = {1, 1, rows}, .out = {1, 1, rows}, .kernel = {1, 1, 1},
		.stride = {1, 1, 1}, .dilation = {1, 1, 1}};
}

/* A copy of `n` elements at an address that is not aligned: after the first byte of a block, which is to be freed. */
static char *
shifted(const float *w, int64_t n)
{
	char *block = malloc((size_t)n * sizeof *w + 1);

	memcpy(block + 1, w, (size_t)n * sizeof *w);
	return block;
}

static void
start(struct trial *t, uint64_t *state)
{
	const om_layer *l = &t->l;

	t->nx = l->batch * l->group * l->channels_in * volume(l->in);
	t->ny = l->batch * l->group * l->channels_out * volume(l->out);
	t->x = random_floats(state, t->nx);
	t->w = random_floats(state, l->group * l->channels_out * l->channels_in * volume(l->kernel));
	t->bias = om_rng_below(state, 3) ? random_floats(state, l->group * l->channels_out) : NULL;
	t->residual = om_rng_below(state, 2) ? random_floats(state, t->ny) : NULL;
	t->packed = malloc(om_layer_weights(l) * sizeof *t->packed);
	t->want = malloc((size_t)(t->ny + 1) * sizeof *t->want);
	char *block = shifted(t->w, l->group * l->channels_out * l->channels_in * volume(l->kernel));
	om_layer_pack(l, (om_layer_source){.data = block + 1}, t->packed);
	free(block);
	compute(t);
}

static void
end(struct trial *t)
{
	free(t->x);
	free(t->w);
	free(t->bias);
	free(t->residual);
	free(t->packed);
	free(t->want);
}

/* ---- Runs. ---- */

/* Ways to run a layer: over the residual or not, with what in scratch and in y, by how many workers, in blocks of what size. */
struct way {
	bool in_place;
	int garbage;
	om_workers *pool;
	int64_t block;
};

/* Into y.  Nothing may be written after y and after the scratch. */
static bool
run(const om_kernels *kernels, const struct trial *t, const struct way *way, float *y)
{
	om_layer l = t->l;
	l.block = way->block;
	const uint64_t bytes = om_layer_workspace(&l, om_worker_count(way->pool));
	unsigned char *scratch = aligned_alloc(64, (bytes + GUARD + 63) / 64 * 64);
	om_layer_data d = {.x = t->x, .weights = t->packed, .bias = t->bias, .residual = t->residual, .y = y,
		.scratch = scratch, .pool = way->pool};
	bool kept = true;

	memset(scratch, way->garbage, bytes + GUARD);
	memset(y, way->garbage, (size_t)t->ny * sizeof *y + GUARD);
	if (way->in_place && t->residual) {
		memcpy(y, t->residual, (size_t)t->ny * sizeof *y);
		d.residual = y;
	}
	kernels->layer->run(&l, &d);
	for (int k = 0; k < GUARD; k++)
		kept = kept && scratch[bytes + (uint64_t)k] == way->garbage && ((unsigned char *)(y + t->ny))[k] == way->garbage;
	free(scratch);
	return kept;
}

static double
tolerance(const om_layer *l)
{
	const double depth = (double)(l->channels_in * volume(l->kernel)) + 1;

	return sqrt(depth) * (l->algorithm == OM_LAYER_WINOGRAD4 ? 2e-5 : 3e-6);
}

static bool
is_right(const struct trial *t, const float *y)
{
	for (int64_t k = 0; k < t->ny; k++)
		if (!(fabs((double)y[k] - t->want[k]) <= tolerance(&t->l))) {
			printf("# element %lld is %g, expected %g; channels %lld to %lld, group %lld\n", (long long)k, (double)y[k],
				t->want[k], (long long)t->l.channels_in, (long long)t->l.channels_out, (long long)t->l.group);
			return false;
		}
	return true;
}

/* The same bits, whatever is in scratch, if y is the residual, by several workers, and in small and large blocks. */
static void
check(const om_kernels *kernels, const struct trial *t, om_workers *pool)
{
	const struct way all[] = {{false, 0xff, NULL, 0}, {true, 0x41, NULL, 100}, {true, 0xff, pool, 0}, {false, 0x41, NULL, OM_LEAST_BLOCK},
		{false, 0xff, pool, 50}, {true, 0x41, NULL, OM_MOST_BLOCK}};
	const size_t bytes = (size_t)t->ny * sizeof(float);
	float *y = malloc(bytes + GUARD), *again = malloc(bytes + GUARD);

	CU_ASSERT(run(kernels, t, &all[0], y));
	CU_ASSERT(is_right(t, y));
	for (size_t k = 1; k < sizeof all / sizeof all[0]; k++) {
		CU_ASSERT(run(kernels, t, &all[k], again));
		CU_ASSERT(memcmp(y, again, bytes) == 0);
	}
	free(y);
	free(again);
}

static void
check_all(void (*choose_layer)(om_layer *l, uint64_t *state), int cases)
{
	om_workers *pool = om_workers_new(WORKERS);
	uint64_t state = 7;

	for (int k = 0; k < cases; k++) {
		const om_kernels *kernels;
		struct trial t;
		choose_layer(&t.l, &state);
		start(&t, &state);
		for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
			check(kernels, &t, pool);
		end(&t);
	}
	om_workers_free(pool);
}

static void
convolutions_are_right(void)
{
	check_all(choose, CASES);
}

static void
winograd_is_right(void)
{
	check_all(choose_winograd, CASES);
}

static void
products_are_right(void)
{
	check_all(choose_product, CASES);
}

/* Layers that have several blocks and several pieces. */
static void
choose_large(om_layer *l, uint64_t *state)
{
	const int64_t side = 20 + (int64_t)om_rng_below(state, 20), kernel = 1 + 2 * (int64_t)om_rng_below(state, 2);

	*l = (om_layer){.batch = 1, .group = 1, .channels_in = 30 + (int64_t)om_rng_below(state, 40),
		.channels_out = 30 + (int64_t)om_rng_below(state, 150), .in = {1, side, side}, .out = {1, side, side},
		.kernel = {1, kernel, kernel}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}, .begin = {0, kernel / 2, kernel / 2}};
}

static void
large_layers_are_right(void)
{
	check_all(choose_large, 6);
}

static bool
is_summed_in_parts(const om_layer *l)
{
	om_layer_plan p;

	return om_layer_plan_new(l, &p) && p.depth < p.k;
}

/* Kernels of one element with long rows, whose sums are made of several parts. */
static void
choose_long(om_layer *l, uint64_t *state)
{
	static const om_act acts[] = {OM_ACT_NONE, OM_ACT_CLIP, OM_ACT_SILU};
	const int64_t side = 9 + (int64_t)om_rng_below(state, 6), stride = 1 + (int64_t)om_rng_below(state, 2);

	*l = (om_layer){.batch = 1 + (int64_t)om_rng_below(state, 2), .group = 1 + (int64_t)om_rng_below(state, 2),
		.channels_in = 1100 + (int64_t)om_rng_below(state, 1000), .channels_out = 60 + (int64_t)om_rng_below(state, 80),
		.in = {1, side * stride, side * stride}, .out = {1, side, side}, .kernel = {1, 1, 1}, .stride = {1, stride, stride},
		.dilation = {1, 1, 1}, .begin = {0, stride / 2, 0}, .epilogue = {.act = acts[om_rng_below(state, 3)], .alpha = -0.5f, .beta = 0.75f}};
	CU_ASSERT(is_summed_in_parts(l));
}

static void
long_rows_are_right(void)
{
	check_all(choose_long, 6);
}

/* The same for kernels of several elements, some of whose taps are outside. */
static void
choose_deep(om_layer *l, uint64_t *state)
{
	const int64_t side = 9 + (int64_t)om_rng_below(state, 4), stride = 1 + (int64_t)om_rng_below(state, 2);
	const int64_t dilation = 1 + 3 * (int64_t)om_rng_below(state, 2);

	*l = (om_layer){.batch = 1 + (int64_t)om_rng_below(state, 2), .group = 1, .channels_in = 540 + (int64_t)om_rng_below(state, 200),
		.channels_out = 40 + (int64_t)om_rng_below(state, 50), .in = {1, side * stride, side * stride}, .out = {1, side, side},
		.kernel = {1, 3, 3}, .stride = {1, stride, stride}, .dilation = {1, dilation, dilation}, .begin = {0, dilation, dilation},
		.epilogue = {.act = OM_ACT_RELU}};
	CU_ASSERT(is_summed_in_parts(l));
}

static void
deep_windows_are_right(void)
{
	check_all(choose_deep, 6);
}

/* Windows of a signal, as those of a Fourier transform: few channels, long kernels, more weights than stay near.  A window is read as
 * one row, whichever layout the signal has. */
static void
choose_signal(om_layer *l, uint64_t *state)
{
	const int64_t kernel = 200 + (int64_t)om_rng_below(state, 100), out = 1 + (int64_t)om_rng_below(state, 20), stride = 1 + kernel / 4;
	const bool is_first = om_rng_below(state, 2);

	*l = (om_layer){.batch = 1, .group = 1, .channels_in = 1 + (int64_t)om_rng_below(state, 3), .channels_out = 350,
		.in = {1, 1, (out - 1) * stride + kernel}, .out = {1, 1, out}, .kernel = {1, 1, kernel}, .stride = {1, 1, stride},
		.dilation = {1, 1, 1}, .is_channels_first = is_first};
	om_layer_plan p;
	CU_ASSERT(om_layer_plan_new(l, &p) && !p.by_tiles && p.depth == p.k);
	CU_ASSERT_EQUAL(p.k, is_first ? kernel * l->channels_in : l->channels_in);
}

static void
signals_are_right(void)
{
	check_all(choose_signal, 12);
}

/* ---- Packing. ---- */

/* Column `column` of the packed matrix with `rows` rows. */
static float
packed_at(const float *packed, int64_t rows, int64_t row, int64_t column)
{
	return packed[column / OM_PANEL * rows * OM_PANEL + row * OM_PANEL + column % OM_PANEL];
}

/* Bytes that were read, as packing says. */
static void
note_consumed(void *arg, uint64_t bytes)
{
	uint64_t *most = arg;

	CU_ASSERT(bytes >= *most);
	*most = bytes;
}

static void
matrices_are_packed(void)
{
	uint64_t state = 3;

	for (int k = 0; k < CASES; k++) {
		const int64_t rows = 1 + (int64_t)om_rng_below(&state, 70), columns = 1 + (int64_t)om_rng_below(&state, 100);
		const int64_t all = (columns + OM_PANEL - 1) / OM_PANEL * OM_PANEL;
		const bool is_transposed = om_rng_below(&state, 2);
		const float alpha = om_rng_below(&state, 2) ? 1 : 0.5f;
		float *w = random_floats(&state, rows * columns), *packed = malloc((size_t)(all * rows) * sizeof *packed);
		bool right = true;
		char *block = shifted(w, rows * columns);
		uint64_t read = 0;
		om_layer_pack_matrix((om_layer_source){block + 1, note_consumed, &read}, rows, columns, is_transposed, alpha, packed);
		CU_ASSERT_EQUAL(read, (uint64_t)(rows * columns) * sizeof *w);
		for (int64_t i = 0; i < rows; i++)
			for (int64_t j = 0; j < all; j++) {
				const float want = j >= columns ? 0 : alpha * w[is_transposed ? j * rows + i : i * columns + j];
				right = right && packed_at(packed, rows, i, j) == want;
			}
		CU_ASSERT(right);
		free(block);
		free(w);
		free(packed);
	}
}

/* ---- Reference kernels. ---- */

/* The program's output, 2 * 8 * 9 * 5 floats, with fast kernels or without. */
static void
run_program(const char *algorithm, bool precise, float *y)
{
	const int64_t dims[] = {2, 8, 9, 19};
	const om_exec_options o = OM_EXEC_OPTIONS(.no_reuse = true, .precise = precise);
	uint64_t state = 5;
	char text[600];
	bench b;

	snprintf(text, sizeof text, "program \"\" ir 10 opset 22 opset org.onnxmem.cpu 1\n"
		"^main(%%x: float32[2,8,9,19], %%w: float32[5,19,3,3], %%b: float32[5]) {\n"
		"\t%%p = org.onnxmem.cpu::PackFilter(%%w) {algorithm = \"%s\"}\n"
		"\t%%y = org.onnxmem.cpu::Conv(%%x, %%p, %%b) {kernel_shape = [3,3], pads = [1,1,1,1], channels = 5, "
		"algorithm = \"%s\", activation = \"HardSwish\"}\n\tret %%y\n}\n", algorithm, algorithm);
	unit_start(&b, text, "inline,shapes,fold");
	om_tensor in[3] = {floats_of(2 * 8 * 9 * 19, random_floats(&state, 2 * 8 * 9 * 19)),
		floats_of(5 * 19 * 9, random_floats(&state, 5 * 19 * 9)), floats_of(5, random_floats(&state, 5))};
	in[0].shape = om_shape_of(4, dims);
	in[1].shape = om_shape_of(4, (int64_t[]){5, 19, 3, 3});
	CU_ASSERT_FATAL(is_ok(b.s, bench_exec(&b, &o)));
	CU_ASSERT(is_ok(b.s, om_exec_output(b.e, 0, y, 2 * 8 * 9 * 5 * sizeof *y)));
	CU_ASSERT_FATAL(is_ok(b.s, bench_run(&b, in, 3)));
	for (int k = 0; k < 3; k++)
		free(in[k].data);
	bench_close(&b);
}

static void
references_agree(void)
{
	static const char *const algorithms[] = {"gemm", "winograd4", "winograd2"};

	for (int k = 0; k < 3; k++) {
		float fast[2 * 8 * 9 * 5], precise[2 * 8 * 9 * 5];
		bool agree = true;
		run_program(algorithms[k], false, fast);
		run_program(algorithms[k], true, precise);
		for (int i = 0; i < 2 * 8 * 9 * 5; i++)
			agree = agree && fabs((double)fast[i] - (double)precise[i]) < 3e-4;
		CU_ASSERT(agree);
	}
}

static CU_TestInfo layer_tests[] = {
	{"convolutions are right and repeat", convolutions_are_right},
	{"Winograd's algorithm is right and repeats", winograd_is_right},
	{"products are right and repeat", products_are_right},
	{"large layers are right", large_layers_are_right},
	{"long rows are right", long_rows_are_right},
	{"deep windows are right", deep_windows_are_right},
	{"windows of signals are right", signals_are_right},
	{"matrices are packed", matrices_are_packed},
	{"reference kernels agree", references_agree},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("layers", layer_tests);
