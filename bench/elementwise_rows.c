/* SPDX-License-Identifier: Apache-2.0 */
/* Nanoseconds an element of the float32 kernels of elementwise ops, softmax, reductions and normalizations, beside
 * the kernels of the definitions.
 *
 *	bench/elementwise_rows [WORD]
 *
 * One line an op whose text holds the word: ns an element of a precise run, of the fast kernel, and the ratio; the
 * least of many runs that alternate.  `make bench-elementwise` runs it.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fixtures.h"

enum { ROUNDS = 40 };

/* The first parameter decides how many elements there are. */
static const struct { const char *params, *op; } cases[] = {
	{"%x: float32[1,64,56,56]", "Relu(%x)"},
	{"%x: float32[1,64,56,56]", "Sigmoid(%x)"},
	{"%x: float32[1,64,56,56]", "Exp(%x)"},
	{"%x: float32[1,64,56,56]", "Log(%x)"},
	{"%x: float32[1,64,56,56]", "Tanh(%x)"},
	{"%x: float32[1,64,56,56]", "Gelu(%x)"},
	{"%x: float32[1,64,56,56]", "HardSwish(%x)"},
	{"%x: float32[1,64,56,56]", "Elu(%x)"},
	{"%x: float32[1,64,56,56]", "Mish(%x)"},
	{"%x: float32[1,64,56,56]", "Softplus(%x)"},
	{"%x: float32[1,64,56,56]", "Sqrt(%x)"},
	{"%x: float32[1,64,56,56]", "Sin(%x)"},
	{"%x: float32[1,64,56,56], %y: float32[1,64,56,56]", "Add(%x, %y)"},
	{"%x: float32[1,64,56,56], %y: float32[1,64,1,1]", "Mul(%x, %y)"},
	{"%x: float32[1,56,56,64], %y: float32[64]", "Add(%x, %y)"},
	{"%x: float32[1,200000,3], %y: float32[3]", "Mul(%x, %y)"},
	{"%x: float32[1,64,56,56], %y: float32[64,1,1]", "PRelu(%x, %y)"},
	{"%x: float32[12,128,128]", "Softmax(%x)"},
	{"%x: float32[64,4,49,49]", "Softmax(%x)"},
	{"%x: float32[8,10000]", "Softmax(%x)"},
	{"%x: float32[1,21,64,64]", "Softmax(%x) {axis = 1}"},
	{"%x: float32[128,768], %y: float32[768], %z: float32[768]", "LayerNormalization(%x, %y, %z)"},
	{"%x: float32[3136,96], %y: float32[96], %z: float32[96]", "LayerNormalization(%x, %y, %z)"},
	{"%x: float32[128,768], %y: float32[768]", "RMSNormalization(%x, %y)"},
	{"%x: float32[1,320,32,32], %y: float32[320], %z: float32[320]", "GroupNormalization(%x, %y, %z) {num_groups = 32}"},
	{"%x: float32[1,64,56,56], %y: float32[64], %z: float32[64]", "InstanceNormalization(%x, %y, %z)"},
	{"%x: float32[1,64,56,56], %y: float32[64], %z: float32[64], %m: float32[64], %v: float32[64]",
		"BatchNormalization(%x, %y, %z, %m, %v)"},
	{"%x: float32[1,960,7,7], %y: int64[2]", "ReduceMean(%x, %y)"},
	{"%x: float32[1,7,7,960], %y: int64[2]", "ReduceMean(%x, %y)"},
	{"%x: float32[1,56,56,64], %y: int64[2]", "ReduceMax(%x, %y)"},
	{"%x: float32[1,64,56,56]", "Transpose(%x) {perm = [0, 2, 3, 1]}"},
	{"%x: float32[1,56,56,64]", "Transpose(%x) {perm = [0, 3, 1, 2]}"},
	{"%x: float32[1,197,12,64]", "Transpose(%x) {perm = [0, 2, 1, 3]}"},
	{"%x: float32[12,128,64]", "Transpose(%x) {perm = [0, 2, 1]}"},
	{"%x: float32[1,3,224,224]", "Transpose(%x) {perm = [0, 2, 3, 1]}"},
	{"%x: float32[1,64,56,56], %y: float32[1,64,56,56]", "Concat(%x, %y) {axis = 1}"},
	{"%x: float32[1,56,56,64], %y: float32[1,56,56,64]", "Concat(%x, %y) {axis = 3}"},
};

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Axes are the two in the middle of a channels-last image, or the last two. */
static void
fill(const om_tensor *t, const char *params)
{
	const bool is_last = strstr(params, "7,7]") != NULL;

	for (int64_t i = 0; i < om_shape_count(&t->shape); i++)
		set_element(t, i, t->type == OM_INT64 ? (double)(i + 1 + is_last) : (double)(i * 7919 % 2003) / 1000 + 0.1);
}

struct side {
	bench b;
	om_tensor in[5];
	uint32_t n;
	double best;
};

static bool
start(struct side *s, const char *params, const char *op, bool precise)
{
	const om_exec_options how = OM_EXEC_OPTIONS(.no_reuse = true, .precise = precise);
	char text[1024];

	s->b = bench_open();
	s->best = 1e30;
	snprintf(text, sizeof text, "program \"\" ir 10 opset 24\n^main(%s) {\n%%out = %s\nret %%out\n}\n", params, op);
	if (!is_ok(s->b.s, bench_plan(&s->b, text, "inline,shapes,fold")) || !is_ok(s->b.s, bench_exec(&s->b, &how)))
		return false;
	s->n = s->b.p->first->nparam;
	for (uint32_t k = 0; k < s->n; k++) {
		s->in[k] = tensor_zero(s->b.mem, s->b.p->first->param[k]->type.elem, &s->b.p->first->param[k]->shape);
		fill(&s->in[k], params);
	}
	return true;
}

static bool
take(struct side *s)
{
	const double from = now();

	if (!is_ok(s->b.s, bench_run(&s->b, s->in, s->n)))
		return false;
	s->best = now() - from < s->best ? now() - from : s->best;
	return true;
}

static bool
measure(const char *params, const char *op)
{
	struct side side[2];
	bool ok = start(&side[0], params, op, true);

	ok = start(&side[1], params, op, false) && ok;
	for (int round = 0; ok && round < 2 * ROUNDS; round++)
		ok = take(&side[round % 2]);
	if (ok) {
		const double n = (double)om_shape_count(&side[0].in[0].shape);
		printf("%-58.58s %-34.34s %8.3f %8.3f %6.2f\n", params, op, side[0].best / n, side[1].best / n,
			side[0].best / side[1].best);
	}
	bench_close(&side[0].b);
	bench_close(&side[1].b);
	return ok;
}

int
main(int argc, char **argv)
{
	bool ok = true;

	printf("%-58s %-34s %8s %8s %6s\n", "inputs", "op, ns an element", "precise", "fast", "ratio");
	for (size_t k = 0; k < sizeof cases / sizeof cases[0] && ok; k++)
		if (argc < 2 || strstr(cases[k].op, argv[1]))
			ok = measure(cases[k].params, cases[k].op);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
