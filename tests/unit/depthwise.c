/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of depthwise convolutions and pools of channels-last images, of every instruction set that this machine
 * has, beside double loops over random windows; and the operators beside those of ai.onnx. */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/kernels.h"
#include "unit.h"

enum { ROUNDS = 400, GUARD = 8 };

static uint32_t
next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static int64_t
from_to(uint32_t *seed, int64_t low, int64_t high)
{
	return low + (int64_t)(next(seed) % (uint32_t)(high - low + 1));
}

static float *
numbers(uint32_t *seed, int64_t n)
{
	float *x = malloc((size_t)(n + GUARD) * sizeof *x);

	for (int64_t i = 0; i < n + GUARD; i++)
		x[i] = (float)(next(seed) % 2001) / 1000 - 1;
	return x;
}

static int64_t
volume(const int64_t *v)
{
	return v[0] * v[1] * v[2];
}

/* A window that has outputs.  Half of them are of the sizes for which kernels are unrolled. */
static om_geometry
window(uint32_t *seed, bool is_pool)
{
	om_geometry g;
	const bool is_usual = next(seed) % 2;

	for (int a = 0; a < 3; a++) {
		const bool is_flat = a == 0 && next(seed) % 2;
		g.kernel[a] = is_flat ? 1 : is_usual ? 3 + 2 * from_to(seed, 0, 2) : from_to(seed, 1, 4);
		g.stride[a] = is_flat ? 1 : from_to(seed, 1, is_usual ? 2 : 3);
		g.dilation[a] = is_usual && a == 2 ? 1 : from_to(seed, 1, 2);
		const int64_t span = (g.kernel[a] - 1) * g.dilation[a] + 1;
		g.begin[a] = from_to(seed, is_pool ? 0 : -1, span - 1);
		g.end[a] = from_to(seed, is_pool ? 0 : -1, span - 1);
		const int64_t least = span - g.begin[a] - g.end[a];
		g.in[a] = (least > 1 ? least : 1) + from_to(seed, 0, a == 2 ? 20 : 3);
		g.out[a] = (g.in[a] + g.begin[a] + g.end[a] - span) / g.stride[a] + 1;
		if (is_pool && next(seed) % 3 == 0 && g.out[a] * g.stride[a] < g.in[a] + g.begin[a])
			g.out[a]++;
	}
	return g;
}

/* Output element `at` visits the taps in the image: `fn` gets the offset of a pixel and the tap. */
typedef void visit_fn(void *arg, int64_t pixel, int64_t tap);

static void
visit(const om_geometry *g, int64_t at, visit_fn *fn, void *arg)
{
	const int64_t o[3] = {at / g->out[2] / g->out[1], at / g->out[2] % g->out[1], at % g->out[2]};

	for (int64_t t = 0; t < volume(g->kernel); t++) {
		const int64_t k[3] = {t / g->kernel[2] / g->kernel[1], t / g->kernel[2] % g->kernel[1], t % g->kernel[2]};
		int64_t pixel = 0;
		bool is_inside = true;
		for (int a = 0; a < 3; a++) {
			const int64_t i = o[a] * g->stride[a] - g->begin[a] + k[a] * g->dilation[a];
			is_inside &= i >= 0 && i < g->in[a];
			pixel = pixel * g->in[a] + i;
		}
		if (is_inside)
			fn(arg, pixel, t);
	}
}

struct visited {
	const float *x, *w;
	int64_t channels, c;
	double sum, most;
	bool is_nan;
};

static void
add_tap(void *arg, int64_t pixel, int64_t tap)
{
	struct visited *v = arg;
	const double x = (double)v->x[pixel * v->channels + v->c];

	v->sum += x * (v->w ? (double)v->w[tap * v->channels + v->c] : 1);
	v->most = x > v->most ? x : v->most;
	v->is_nan |= isnan(x);
}

static double
activated(const om_epilogue *e, double x)
{
	switch (e->act) {
	case OM_ACT_RELU: return x < 0 ? 0 : x;
	case OM_ACT_CLIP: return fmin(fmax(x, (double)e->alpha), (double)e->beta);
	case OM_ACT_HARD_SWISH: return x * fmin(fmax(x / 6 + 0.5, 0), 1);
	case OM_ACT_SIGMOID: return 1 / (1 + exp(-x));
	case OM_ACT_LEAKY_RELU: return x < 0 ? (double)e->alpha * x : x;
	default: return x;
	}
}

static const om_epilogue epilogues[] = {{OM_ACT_NONE, 0, 0}, {OM_ACT_RELU, 0, 0}, {OM_ACT_CLIP, -0.5f, 0.75f},
	{OM_ACT_HARD_SWISH, 0, 0}, {OM_ACT_SIGMOID, 0, 0}, {OM_ACT_LEAKY_RELU, 0.25f, 0}};

/* Channels: few, around a vector, and enough for several blocks. */
static int64_t
channels_of(uint32_t *seed)
{
	static const int64_t most[] = {3, 20, 50, 300};

	return from_to(seed, 1, most[next(seed) % 4]);
}

static bool
is_convolution(const om_depthwise *d, const float *x, const float *got)
{
	bool right = true;

	for (int64_t i = 0; i < volume(d->g.out) * d->channels; i++) {
		struct visited v = {.x = x, .w = d->packed, .channels = d->channels, .c = i % d->channels};
		v.sum = (double)d->bias[v.c];
		visit(&d->g, i / d->channels, add_tap, &v);
		right &= fabs(activated(&d->epilogue, v.sum) - (double)got[i]) < 1e-4;
	}
	return right;
}

/* In two parts, as if by two workers; what lies around the lines is not written. */
static void
convolve(const om_kernels *kernels, const om_depthwise *d, const float *x, float *y)
{
	const int64_t n = d->g.out[0] * d->g.out[1], line = d->g.out[2] * d->channels;
	const float last = y[n * line];

	kernels->depthwise->lines(d, x, y, n / 3, n);
	kernels->depthwise->lines(d, x, y, 0, n / 3);
	CU_ASSERT_EQUAL(y[n * line], last);
}

static void
depthwise_is_right(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++) {
		uint32_t seed = 1;
		for (int round = 0; round < ROUNDS; round++) {
			om_depthwise d = {.g = window(&seed, false), .channels = channels_of(&seed)};
			float *w = numbers(&seed, volume(d.g.kernel) * d.channels), *b = numbers(&seed, d.channels);
			float *x = numbers(&seed, volume(d.g.in) * d.channels), *y = numbers(&seed, volume(d.g.out) * d.channels);
			float *zeros = calloc((size_t)d.channels, sizeof *zeros);
			d.packed = w;
			d.bias = b;
			d.zeros = zeros;
			d.epilogue = epilogues[round % 6];
			convolve(kernels, &d, x, y);
			CU_ASSERT(is_convolution(&d, x, y));
			free(zeros);
			free(y);
			free(x);
			free(b);
			free(w);
		}
	}
}

/* ---- Groups. ---- */

/* Weights w[output channel][input of the group][tap], packed as the header has it. */
static float *
packed_groups(const om_grouped *d, const float *w)
{
	const int64_t taps = volume(d->g.kernel), panels = om_grouped_panels(d->groups, d->inputs, d->outputs);
	const int64_t width = om_grouped_shares(d->inputs, d->outputs) ? OM_GROUP_MOST : d->outputs;
	float *p = calloc((size_t)(panels * taps * d->inputs * OM_GROUP_MOST), sizeof *p);

	for (int64_t o = 0; o < d->groups * d->outputs; o++)
		for (int64_t k = 0; k < d->inputs; k++)
			for (int64_t t = 0; t < taps; t++)
				p[((o / width * taps + t) * d->inputs + k) * OM_GROUP_MOST + o % width] = w[(o * d->inputs + k) * taps + t];
	return p;
}

struct grouped_sum {
	const float *x, *w;       /* of the group, and of the output channel */
	int64_t pixel, inputs, taps;
	double sum;
};

static void
add_inputs(void *arg, int64_t pixel, int64_t tap)
{
	struct grouped_sum *v = arg;

	for (int64_t k = 0; k < v->inputs; k++)
		v->sum += (double)v->x[pixel * v->pixel + k] * (double)v->w[k * v->taps + tap];
}

static bool
is_grouped_convolution(const om_grouped *d, const float *x, const float *w, const float *got)
{
	const int64_t channels = d->groups * d->outputs, taps = volume(d->g.kernel);
	bool right = true;

	for (int64_t i = 0; i < volume(d->g.out) * channels; i++) {
		const int64_t o = i % channels;
		struct grouped_sum v = {x + o / d->outputs * d->inputs, w + o * d->inputs * taps, d->groups * d->inputs, d->inputs,
			taps, (double)d->bias[o]};
		visit(&d->g, i / channels, add_inputs, &v);
		right &= fabs(activated(&d->epilogue, v.sum) - (double)got[i]) < 2e-4;
	}
	return right;
}

/* Groups of 2, 4, 8 and 16 mostly. */
static om_grouped
grouped(uint32_t *seed)
{
	om_grouped d = {.g = window(seed, false), .groups = from_to(seed, 1, 9), .epilogue = epilogues[next(seed) % 6]};

	d.inputs = next(seed) % 4 ? 2 << next(seed) % 4 : from_to(seed, 1, 16);
	d.outputs = next(seed) % 4 ? d.inputs : from_to(seed, 1, 16);
	return d;
}

static void
groups_are_right(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++) {
		uint32_t seed = 3;
		for (int round = 0; round < ROUNDS; round++) {
			om_grouped d = grouped(&seed);
			const int64_t in = d.groups * d.inputs, out = d.groups * d.outputs, n = volume(d.g.out) * out;
			float *w = numbers(&seed, out * d.inputs * volume(d.g.kernel)), *p = packed_groups(&d, w);
			float *x = numbers(&seed, volume(d.g.in) * in), *y = numbers(&seed, n), *b = numbers(&seed, out);
			float *zeros = calloc((size_t)(in > OM_GROUP_MOST ? in : OM_GROUP_MOST), sizeof *zeros);
			const float last = y[n];
			d.packed = p;
			d.bias = b;
			d.zeros = zeros;
			kernels->grouped->lines(&d, x, y, 1, d.g.out[0] * d.g.out[1]);
			kernels->grouped->lines(&d, x, y, 0, 1);
			CU_ASSERT(is_grouped_convolution(&d, x, w, y));
			CU_ASSERT_EQUAL(y[n], last);
			free(zeros);
			free(b);
			free(y);
			free(x);
			free(p);
			free(w);
		}
	}
}

/* ---- Pools. ---- */

/* Taps of output `at` in the image, or in the image and its padding. */
static int64_t
counted(const om_pooling *p, int64_t at)
{
	const om_geometry *g = &p->g;
	const int64_t o[3] = {at / g->out[2] / g->out[1], at / g->out[2] % g->out[1], at % g->out[2]};
	int64_t n = 1;

	for (int a = 0; a < 3; a++) {
		int64_t inside = 0;
		for (int64_t k = 0; k < g->kernel[a]; k++) {
			const int64_t i = o[a] * g->stride[a] - g->begin[a] + k * g->dilation[a];
			inside += p->with_padding ? i < g->in[a] + g->end[a] : i >= 0 && i < g->in[a];
		}
		n *= inside;
	}
	return n ? n : 1;
}

static bool
is_pooled(const om_pooling *p, const float *x, bool is_max, const float *got)
{
	bool right = true;

	for (int64_t i = 0; i < volume(p->g.out) * p->channels; i++) {
		struct visited v = {.x = x, .channels = p->channels, .c = i % p->channels, .most = -INFINITY};
		visit(&p->g, i / p->channels, add_tap, &v);
		if (v.is_nan)
			right &= isnan(got[i]);
		else if (is_max)
			right &= got[i] == (float)v.most;
		else
			right &= fabs(v.sum / (double)counted(p, i / p->channels) - (double)got[i]) < 1e-5;
	}
	return right;
}

static void
pool(const om_kernels *kernels, const om_pooling *p, const float *x, bool is_max, float *y)
{
	const int64_t n = p->g.out[0] * p->g.out[1], line = p->g.out[2] * p->channels, floats = om_pool_room(p);
	om_pool_lines *lines = is_max ? kernels->pool->max : kernels->pool->mean;
	float *room = malloc((size_t)(floats + 1) * sizeof *room), last = y[n * line];

	room[floats] = 5;
	lines(p, x, y, n / 2, n, room);
	lines(p, x, y, 0, n / 2, room);
	CU_ASSERT_EQUAL(y[n * line], last);
	CU_ASSERT_EQUAL(room[floats], 5);
	free(room);
}

static void
pools_are_right(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++) {
		uint32_t seed = 2;
		for (int round = 0; round < ROUNDS; round++) {
			om_pooling p = {.g = window(&seed, true), .channels = channels_of(&seed), .with_padding = next(&seed) % 2};
			if (round % 50 == 0)
				p.channels = 0;
			float *x = numbers(&seed, volume(p.g.in) * p.channels), *y = numbers(&seed, volume(p.g.out) * p.channels);
			const bool is_max = round % 2;
			if (round % 5 == 0 && p.channels)
				x[next(&seed) % (uint32_t)(volume(p.g.in) * p.channels)] = NAN;
			pool(kernels, &p, x, is_max, y);
			CU_ASSERT(is_pooled(&p, x, is_max, y));
			free(y);
			free(x);
		}
	}
}

static CU_TestInfo depthwise_tests[] = {
	{"depthwise convolutions are right", depthwise_is_right},
	{"convolutions in groups are right", groups_are_right},
	{"pools are right", pools_are_right},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("channels-last kernels", depthwise_tests);
