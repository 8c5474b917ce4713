/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and products with packed weights: layers of well-known networks, one at a time.
 *
 *	bench/conv_layers [PEAK [WORD]]
 *
 * For each layer whose name contains WORD, and each algorithm that suits it: the least milliseconds of many runs,
 * GFLOP/s of the direct algorithm, and percent of PEAK (GFLOP/s, as bench/peak prints it; 0: not known); then
 * GB/s at which weights are packed.  ONNXMEM_ISA selects the instruction set.  Times are those of the processor,
 * so that other programs disturb them little; weights and images are in the cache if they fit.
 */
#define _DEFAULT_SOURCE 1
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/cpu/kernels.h"

enum { LEAST_RUNS = 5 };

static const double seconds = 0.25;     /* for each layer */

struct shape {
	const char *name;
	int channels_in, size, channels_out, ky, kx, stride, dilation;
	int rows;                       /* of a product; 0: a convolution */
};

static const struct shape shapes[] = {
	{"first 3@224->32 3x3/2", 3, 224, 32, 3, 3, 2, 1, 0},
	{"first 3@224->64 7x7/2", 3, 224, 64, 7, 7, 2, 1, 0},
	{"first 3@224->64 3x3", 3, 224, 64, 3, 3, 1, 1, 0},
	{"16@112->96 1x1", 16, 112, 96, 1, 1, 1, 1, 0},
	{"24@56->144 1x1", 24, 56, 144, 1, 1, 1, 1, 0},
	{"144@56->24 1x1", 144, 56, 24, 1, 1, 1, 1, 0},
	{"64@56->256 1x1", 64, 56, 256, 1, 1, 1, 1, 0},
	{"256@14->1024 1x1", 256, 14, 1024, 1, 1, 1, 1, 0},
	{"384@14->64 1x1", 384, 14, 64, 1, 1, 1, 1, 0},
	{"160@7->960 1x1", 160, 7, 960, 1, 1, 1, 1, 0},
	{"2048@7->512 1x1", 2048, 7, 512, 1, 1, 1, 1, 0},
	{"1024@14->2048 1x1/2", 1024, 14, 2048, 1, 1, 2, 1, 0},
	{"64@56->64 3x3", 64, 56, 64, 3, 3, 1, 1, 0},
	{"128@28->128 3x3", 128, 28, 128, 3, 3, 1, 1, 0},
	{"256@14->256 3x3", 256, 14, 256, 3, 3, 1, 1, 0},
	{"512@7->512 3x3", 512, 7, 512, 3, 3, 1, 1, 0},
	{"128@56->128 3x3/2", 128, 56, 128, 3, 3, 2, 1, 0},
	{"512@14->512 3x3/2", 512, 14, 512, 3, 3, 2, 1, 0},
	{"256@28->256 3x3/2", 256, 28, 256, 3, 3, 2, 1, 0},
	{"128@28->32 3x3", 128, 28, 32, 3, 3, 1, 1, 0},
	{"128@14->32 3x3", 128, 14, 32, 3, 3, 1, 1, 0},
	{"128@7->32 3x3", 128, 7, 32, 3, 3, 1, 1, 0},
	{"64@256->64 3x3", 64, 256, 64, 3, 3, 1, 1, 0},
	{"256@28->256 3x3", 256, 28, 256, 3, 3, 1, 1, 0},
	{"512@28->512 3x3", 512, 28, 512, 3, 3, 1, 1, 0},
	{"512@14->512 3x3", 512, 14, 512, 3, 3, 1, 1, 0},
	{"32@56->32 3x3", 32, 56, 32, 3, 3, 1, 1, 0},
	{"16@56->16 3x3", 16, 56, 16, 3, 3, 1, 1, 0},
	{"48@28->40 3x3", 48, 28, 40, 3, 3, 1, 1, 0},
	{"96@14->208 3x3", 96, 14, 208, 3, 3, 1, 1, 0},
	{"64@13->256 3x3", 64, 13, 256, 3, 3, 1, 1, 0},
	{"48@13->192 3x3", 48, 13, 192, 3, 3, 1, 1, 0},
	{"16@55->64 3x3", 16, 55, 64, 3, 3, 1, 1, 0},
	{"512@13->1000 1x1", 512, 13, 1000, 1, 1, 1, 1, 0},
	{"192@17->192 1x7", 192, 17, 192, 1, 7, 1, 1, 0},
	{"256@28->256 3x3 dilation 12", 256, 28, 256, 3, 3, 1, 12, 0},
	{"2048@32->256 3x3 dilation 12", 2048, 32, 256, 3, 3, 1, 12, 0},
	{"512@32->512 3x3 dilation 2", 512, 32, 512, 3, 3, 1, 2, 0},
	{"512@28->1024 1x1/2", 512, 28, 1024, 1, 1, 2, 1, 0},
	{"256@56->512 1x1/2", 256, 56, 512, 1, 1, 2, 1, 0},
	{"2048@32->512 1x1", 2048, 32, 512, 1, 1, 1, 1, 0},
	{"1024@32->2048 1x1", 1024, 32, 2048, 1, 1, 1, 1, 0},
	{"256@32->1024 1x1", 256, 32, 1024, 1, 1, 1, 1, 0},
	{"1024@32->256 1x1", 1024, 32, 256, 1, 1, 1, 1, 0},
	{"product 1 768x3072", 768, 1, 3072, 1, 1, 1, 1, 1},
	{"product 1 4096x1000", 4096, 1, 1000, 1, 1, 1, 1, 1},
	{"product 2 768x3072", 768, 1, 3072, 1, 1, 1, 1, 2},
	{"product 4 768x3072", 768, 1, 3072, 1, 1, 1, 1, 4},
	{"product 8 768x3072", 768, 1, 3072, 1, 1, 1, 1, 8},
	{"product 16 768x3072", 768, 1, 3072, 1, 1, 1, 1, 16},
	{"product 32 768x3072", 768, 1, 3072, 1, 1, 1, 1, 32},
	{"product 128 768x768", 768, 1, 768, 1, 1, 1, 1, 128},
	{"product 128 768x3072", 768, 1, 3072, 1, 1, 1, 1, 128},
	{"product 128 3072x768", 3072, 1, 768, 1, 1, 1, 1, 128},
	{"product 197 768x768", 768, 1, 768, 1, 1, 1, 1, 197},
	{"product 3136 96x384", 96, 1, 384, 1, 1, 1, 1, 3136},
};

static const char *const algorithms[] = {
	[OM_LAYER_GEMM] = "gemm", [OM_LAYER_WINOGRAD4] = "winograd4", [OM_LAYER_WINOGRAD2] = "winograd2",
};

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static float *
floats(uint64_t n)
{
	float *x = aligned_alloc(64, (n * sizeof *x + 127) / 64 * 64);

	if (!x)
		exit(EXIT_FAILURE);
	for (uint64_t k = 0; k < n; k++)
		x[k] = (float)(k * 7919 % 1009) / 1009 - 0.5F;
	return x;
}

static om_layer
layer_of(const struct shape *s, om_layer_algorithm algorithm)
{
	om_layer l = {.batch = 1, .group = 1, .channels_in = s->channels_in, .channels_out = s->channels_out,
		.kernel = {1, s->ky, s->kx}, .stride = {1, s->stride, s->stride}, .dilation = {1, s->dilation, s->dilation},
		.begin = {0, s->ky / 2 * s->dilation, s->kx / 2 * s->dilation}, .is_channels_first = s->channels_in <= 4,
		.algorithm = algorithm, .epilogue = {.act = OM_ACT_RELU}};
	const int64_t out = (s->size - 1) / s->stride + 1;

	memcpy(l.in, (int64_t[]){1, s->rows ? 1 : s->size, s->rows ? s->rows : s->size}, sizeof l.in);
	memcpy(l.out, (int64_t[]){1, s->rows ? 1 : out, s->rows ? s->rows : out}, sizeof l.out);
	return l;
}

/* Seconds of the fastest run. */
static double
fastest(const om_layer *l, const om_layer_data *d)
{
	double best = 1e9;

	for (double until = now() + seconds, k = 0; k < LEAST_RUNS || now() < until; k++) {
		const double start = now();
		om_kernels_get()->layer->run(l, d);
		const double took = now() - start;
		best = took < best ? took : best;
	}
	return best;
}

static double
pack_seconds(const om_layer *l, const float *w, float *packed)
{
	double best = 1e9;

	for (int k = 0; k < LEAST_RUNS; k++) {
		const double start = now();
		om_layer_pack(l, (om_layer_source){.data = w}, packed);
		const double took = now() - start;
		best = took < best ? took : best;
	}
	return best;
}

static void
measure(const struct shape *s, om_layer_algorithm algorithm, double peak)
{
	const om_layer l = layer_of(s, algorithm);
	const uint64_t positions = (uint64_t)(l.out[1] * l.out[2]), depth = (uint64_t)(s->channels_in * s->ky * s->kx);
	float *x = floats((uint64_t)(l.channels_in * l.in[1] * l.in[2])), *w = floats(depth * (uint64_t)s->channels_out);
	float *packed = floats(om_layer_weights(&l)), *bias = floats((uint64_t)s->channels_out);
	float *y = floats(positions * (uint64_t)s->channels_out), *scratch = floats(om_layer_workspace(&l, 1) / 4);
	const om_layer_data d = {.x = x, .weights = packed, .bias = bias, .y = y, .scratch = scratch};
	const double flops = 2.0 * (double)positions * (double)depth * s->channels_out / 1e9;

	const double packing = pack_seconds(&l, w, packed), best = fastest(&l, &d);
	printf("%-28s %-9s %9.4f ms %7.1f GFLOP/s", s->name, algorithms[algorithm], best * 1e3, flops / best);
	if (peak > 0)
		printf(" %5.1f %%", 100 * flops / best / peak);
	printf(" %6.2f GB/s packing, scratch %llu\n", (double)depth * s->channels_out * 4 / packing / 1e9,
		(unsigned long long)om_layer_workspace(&l, 1));
	fflush(stdout);
	free(x), free(w), free(packed), free(bias), free(y), free(scratch);
}

static bool
suits_winograd(const struct shape *s)
{
	return s->ky == 3 && s->kx == 3 && s->stride == 1 && s->channels_in > 4;
}

int
main(int argc, char **argv)
{
	const double peak = argc > 1 ? atof(argv[1]) : 0;

	printf("# %s\n", om_kernels_get()->isa);
	for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
		if (argc > 2 && !strstr(shapes[k].name, argv[2]))
			continue;
		measure(&shapes[k], OM_LAYER_GEMM, peak);
		if (suits_winograd(&shapes[k]) && (argc <= 3)) {
			measure(&shapes[k], OM_LAYER_WINOGRAD4, peak);
			measure(&shapes[k], OM_LAYER_WINOGRAD2, peak);
		}
	}
	return EXIT_SUCCESS;
}
