/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of elementwise ops: the same bits as the ops one by one, on all shapes that broadcast. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

enum { TRIALS = 120, MOST_OPS = 7, RANK = 4 };

static uint32_t
next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Dims of the largest operand: short and long lines, and lines that are no multiple of any vector. */
static void
random_dims(uint32_t *seed, int64_t dim[RANK])
{
	static const int64_t sizes[] = {1, 2, 3, 5, 8, 33, 70};

	for (int d = 0; d < RANK; d++)
		dim[d] = sizes[next(seed) % (d == RANK - 1 ? 7 : 5)];
	if (next(seed) % 8 == 0)
		dim[RANK - 1] = 2500;
}

/* "x: float32[...]", the dims of which `mask` leaves. */
static void
put_param(FILE *to, const char *name, const int64_t dim[RANK], uint32_t mask)
{
	fprintf(to, "%%%s: float32[", name);
	for (int d = 0; d < RANK; d++)
		fprintf(to, "%s%lld", d ? "," : "", (long long)(mask >> d & 1 ? dim[d] : 1));
	fputs("]", to);
}

/* Each op reads the last value, and another one or a parameter that is broadcast. */
static void
put_ops(FILE *to, uint32_t *seed)
{
	static const char *const binary[] = {"Add", "Sub", "Mul", "Max", "Min", "PRelu"};
	static const char *const unary[] = {"Relu", "Sigmoid", "Abs", "HardSwish", "Tanh", "Neg"};
	const uint32_t n = 2 + next(seed) % (MOST_OPS - 1);

	fputs("%v0 = Add(%x, %b)\n", to);
	for (uint32_t k = 1; k <= n; k++) {
		const uint32_t how = next(seed) % 3, other = next(seed) % 4;
		if (how == 0)
			fprintf(to, "%%v%u = %s(%%v%u)\n", k, unary[next(seed) % 6], k - 1);
		else
			fprintf(to, "%%v%u = %s(%%v%u, %%%s)\n", k, binary[next(seed) % 6], k - 1,
				other == 0 ? "x" : other == 1 ? "b" : other == 2 ? "c" : "d");
	}
	fprintf(to, "ret %%v%u\n}\n", n);
}

static char *
random_program(uint32_t seed)
{
	int64_t dim[RANK];
	char *text;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	random_dims(&seed, dim);
	fputs("program \"\" ir 8 opset 18\n^main(", to);
	put_param(to, "x", dim, 15);
	fputs(", ", to);
	put_param(to, "b", dim, next(&seed) % 16);
	fputs(", ", to);
	put_param(to, "c", dim, next(&seed) % 16);
	fputs(", ", to);
	put_param(to, "d", dim, 8);
	fputs(") {\n", to);
	put_ops(to, &seed);
	fclose(to);
	return text;
}

/* The result of the program after these passes. */
static const om_tensor *
result_of(bench *t, const char *text, const char *passes, const om_exec_options *how)
{
	om_tensor in[4];

	CU_ASSERT_FATAL(is_ok(t->s, bench_plan(t, text, passes)));
	CU_ASSERT_FATAL(is_ok(t->s, bench_exec(t, how)));
	for (uint32_t k = 0; k < 4; k++) {
		in[k] = tensor_zero(t->mem, OM_FLOAT32, &t->p->first->param[k]->shape);
		for (int64_t i = 0; i < om_shape_count(&in[k].shape); i++)
			set_element(&in[k], i, (double)((i * 7919 + k * 977) % 2003) / 500 - 2);
	}
	CU_ASSERT_FATAL(is_ok(t->s, bench_run(t, in, 4)));
	return om_exec_result(t->e, 0);
}

static void
chains_are_their_ops(void)
{
	static const char plan[] = "liveness,views,inplace,loops,pack";

	for (uint32_t seed = 0; seed < TRIALS; seed++) {
		char *text = random_program(seed);
		bench a = bench_open(), b = bench_open();
		const om_tensor *one = result_of(&a, text, om_printf(a.mem, "inline,shapes,%s", plan), &ways[SEPARATE]);
		const om_tensor *all = result_of(&b, text, om_printf(b.mem, "inline,shapes,fuse-elementwise,prune,%s", plan),
			&ways[seed % NWAY]);
		const bool same = memcmp(one->data, all->data, (size_t)om_shape_count(&one->shape) * 4) == 0;
		if (!same)
			printf("# %s", text);
		CU_ASSERT(same);
		CU_ASSERT_EQUAL(b.p->first->nop, 1);
		bench_close(&a);
		bench_close(&b);
		free(text);
	}
}

static void
programs_that_are_none_are_refused(void)
{
	static const struct { const char *attrs, *told; } wrong[] = {
		{"stages = \"\", operands = [0, 0], parameters = [0.0, 0.0]", "no stages"},
		{"stages = \"ADD NONE\", operands = [0, 0], parameters = [0.0, 0.0]", "stage 1"},
		{"stages = \"ADD\", operands = [0], parameters = [0.0, 0.0]", "operands"},
		{"stages = \"ADD\", operands = [0, 1], parameters = [0.0, 0.0]", "operand 1 of stage 0"},
		{"stages = \"ADD\", operands = [0, -1], parameters = [0.0, 0.0]", "operand -1 of stage 0"},
	};

	for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
		bench t = bench_open();
		const char *text = om_printf(t.mem, "program \"\" ir 8 opset 18\n^main(%%x: float32[3]) {\n"
			"%%y = org.onnxmem.cpu::Chain@1(%%x) {%s}\nret %%y\n}\n", wrong[k].attrs);
		CU_ASSERT(is_told(t.s, bench_plan(&t, text, "inline,shapes"), OM_INVALID, wrong[k].told));
		bench_close(&t);
	}
}

static CU_TestInfo chain_tests[] = {
	{"chains compute the bits of their ops", chains_are_their_ops},
	{"programs that are none are refused", programs_that_are_none_are_refused},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("chain", chain_tests);
