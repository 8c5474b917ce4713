/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise and grouped convolutions and pools of channels-last images: layers of image networks, by the kernels
 * of the instruction set in use (ONNXMEM_ISA), on one thread.
 *
 * Prints a line per layer: the least time of many runs, and floating-point operations per time. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/cpu/kernels.h"

enum { RUNS = 300 };

static const struct layer {
	int64_t channels, size;
	int kernel, stride, group;      /* inputs of a group; 0: a pool of maxima, -1: of means */
} layers[] = {
	{32, 112, 3, 1, 1}, {96, 112, 3, 2, 1}, {144, 56, 3, 1, 1}, {144, 56, 3, 2, 1}, {192, 28, 3, 1, 1}, {384, 14, 3, 1, 1},
	{576, 14, 3, 2, 1}, {960, 7, 3, 1, 1}, {240, 28, 5, 1, 1}, {480, 14, 5, 1, 1}, {672, 14, 5, 2, 1}, {1152, 7, 5, 1, 1},
	{96, 56, 7, 1, 1}, {192, 28, 7, 1, 1}, {384, 14, 7, 1, 1}, {768, 7, 7, 1, 1},
	{128, 56, 3, 1, 4}, {256, 28, 3, 1, 8}, {256, 56, 3, 2, 8}, {512, 14, 3, 1, 16}, {1024, 14, 3, 2, 16},
	{64, 112, 3, 2, 0}, {480, 28, 3, 1, 0}, {832, 14, 3, 1, 0}, {192, 35, 3, 1, -1}, {768, 17, 3, 1, -1}, {256, 56, 2, 2, 0},
	{512, 7, 7, 1, -1},
};

struct work {
	om_geometry g;
	int64_t channels;
	int64_t inputs;
	float *x, *y, *w, *zeros, *room;
	int group;
};

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static float *
numbers(int64_t n)
{
	float *x = malloc((size_t)n * sizeof *x);

	for (int64_t i = 0; i < n; i++)
		x[i] = (float)(i % 17) / 16;
	return x;
}

static int64_t
volume(const int64_t *v)
{
	return v[0] * v[1] * v[2];
}

static om_geometry
geometry(const struct layer *l)
{
	const int64_t pad = (l->group < 1 && l->kernel != 3) ? 0 : l->kernel / 2;
	const int64_t out = (l->size + 2 * pad - l->kernel) / l->stride + 1;

	return (om_geometry){.in = {1, l->size, l->size}, .out = {1, out, out}, .kernel = {1, l->kernel, l->kernel},
		.stride = {1, l->stride, l->stride}, .dilation = {1, 1, 1}, .begin = {0, pad, pad}, .end = {0, pad, pad}};
}

static void
run(const struct work *k)
{
	const om_kernels *kernels = om_kernels_get();
	const om_epilogue relu = {OM_ACT_RELU, 0, 0};
	const om_depthwise d = {k->g, k->channels, k->w, k->zeros, k->zeros, relu};
	const om_grouped g = {k->g, k->channels / k->inputs, k->inputs, k->inputs, k->w, k->zeros, k->zeros, relu};
	const om_pooling p = {k->g, k->channels, false};
	const int64_t lines = k->g.out[0] * k->g.out[1];

	if (k->group == 1)
		kernels->depthwise->lines(&d, k->x, k->y, 0, lines);
	else if (k->group > 1)
		kernels->grouped->lines(&g, k->x, k->y, 0, lines);
	else
		(k->group == 0 ? kernels->pool->max : kernels->pool->mean)(&p, k->x, k->y, 0, lines, k->room);
}

static void
measure(const struct layer *l)
{
	static const char *const kinds[] = {"mean", "max", "depthwise", "grouped"};
	struct work k = {.g = geometry(l), .channels = l->channels, .inputs = l->group > 1 ? l->group : 1, .group = l->group};
	double best = 1e18;

	k.x = numbers(volume(k.g.in) * k.channels);
	k.y = numbers(volume(k.g.out) * k.channels);
	k.w = numbers(volume(k.g.kernel) * k.channels * 16);
	k.zeros = calloc((size_t)k.channels + 16, sizeof *k.zeros);
	k.room = numbers(k.g.in[2] * k.channels);
	for (int i = 0; i < RUNS; i++) {
		const double start = now();
		run(&k);
		const double t = now() - start;
		best = t < best ? t : best;
	}
	const double flops = (l->group > 0 ? 2.0 * (double)k.inputs : 1) * (double)(volume(k.g.out) * k.channels * volume(k.g.kernel));
	printf("%-10s %5lld @%-4lld %dx%d/%d group %-3d %10.0f ns %8.1f GFLOP/s\n", kinds[l->group > 1 ? 3 : l->group + 1],
		(long long)l->channels, (long long)l->size, l->kernel, l->kernel, l->stride, l->group, best, flops / best);
	free(k.room);
	free(k.zeros);
	free(k.w);
	free(k.y);
	free(k.x);
}

int
main(void)
{
	printf("%s\n", om_kernels_get()->isa);
	for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
		measure(&layers[i]);
	return 0;
}
