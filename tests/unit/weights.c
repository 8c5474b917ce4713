/* SPDX-License-Identifier: Apache-2.0 */
/* Constants that the executor makes: one block, and what they are made of one after another. */
#include <config.h>

#include <stdio.h>

#include "exec/exec_internal.h"
#include "onnxmem/builder.h"
#include "unit.h"

enum { SIDE = 256, BYTES = SIDE * SIDE * 4, CHAINS = 8 };

/* Each chain has three values that only folded ops read, and one that the run reads.  Links come before other
 * links of their kind, so that computed in this order all chains would be in memory at once. */
static char *
chains(char *text, size_t size)
{
	static const char *const link[] = {"\t%%a%d = CumSum(%%c%d, %%axis)\n", "\t%%b%d = Transpose(%%a%d)\n",
		"\t%%d%d = CumSum(%%b%d, %%axis)\n"};
	size_t n = (size_t)snprintf(text, size, "program \"t\" ir 8 opset 18\n^g(%%x: float32[%d,%d]) {\n"
		"\t%%axis = const int64[] {0}\n", SIDE, SIDE);

	for (int k = 0; k < CHAINS; k++)
		n += (size_t)snprintf(text + n, size - n, "\t%%c%d = const float32[%d,%d] splat {%d.0}\n", k, SIDE, SIDE, k + 1);
	for (int l = 0; l < 3; l++)
		for (int k = 0; k < CHAINS; k++)
			n += (size_t)snprintf(text + n, size - n, link[l], k, k);
	for (int k = 0; k < CHAINS; k++)
		n += (size_t)snprintf(text + n, size - n, k ? "\t%%s%d = Add(%%d%d, %%s%d)\n" : "\t%%s%d = Add(%%d%d, %%x)\n", k, k, k - 1);
	snprintf(text + n, size - n, "\tret %%s%d\n}\n", CHAINS - 1);
	return text;
}

static om_status
build(bench *b, const char *text, uint64_t most)
{
	const om_exec_options o = OM_EXEC_OPTIONS(.max_memory = most);

	CU_ASSERT_EQUAL_FATAL(bench_plan(b, text, om_default_pipeline()), OM_OK);
	return bench_exec(b, &o);
}

static void
few_sources_are_in_memory_at_once(void)
{
	bench b = bench_open();
	char text[4096];

	chains(text, sizeof text);
	CU_ASSERT_EQUAL_FATAL(build(&b, text, 0), OM_OK);
	CU_ASSERT_EQUAL(om_exec_get_stats(b.e)->weight_bytes, CHAINS * BYTES);
	const uint64_t most = CHAINS * BYTES + om_exec_get_stats(b.e)->arena_bytes + 5 * BYTES / 2 + 2 * OM_GUARD;
	bench_clear(&b);
	CU_ASSERT_EQUAL(build(&b, text, most), OM_OK);
	bench_clear(&b);
	CU_ASSERT_EQUAL(build(&b, text, CHAINS * BYTES), OM_MEMORY);
	bench_close(&b);
}

static bool
is_in_block(const om_exec *e, const char *name)
{
	const om_tensor *t = &e->slot[om_value_find(e->prog->first, name)->id];

	return (uintptr_t)t->data - (uintptr_t)e->weights.data < e->weights.cap && (uintptr_t)t->data % 64 == 0;
}

static void
weights_lie_in_one_block(void)
{
	static const char program[] =
		"program \"t\" ir 8 opset 18\n"
		"^g(%x: float32[160,128]) {\n"
		"	%axis = const int64[] {0}\n"
		"	%shape = const int64[2] {160,128}\n"
		"	%one = const float32[] {1.0}\n"
		"	%splat = const float32[160,128] splat {2.0}\n"
		"	%sum = CumSum(%splat, %axis)\n"
		"	%turned = Transpose(%sum)\n"
		"	%view = Reshape(%turned, %shape)\n"
		"	%a = Add(%x, %view)\n"
		"	%b = Mul(%a, %splat)\n"
		"	%y = Add(%b, %one)\n"
		"	ret %y\n"
		"}\n";
	bench b = bench_open();
	float x[160 * 128] = {0};
	const om_tensor in = {.type = OM_FLOAT32, .shape = om_shape_of(2, (int64_t[]){160, 128}), .data = x};

	for (int k = 0; k < NWAY; k++) {
		CU_ASSERT_EQUAL_FATAL(bench_plan(&b, program, "inline,shapes,fold,schedule,liveness,views,inplace,loops,pack"), OM_OK);
		CU_ASSERT_EQUAL_FATAL(bench_exec(&b, &ways[k]), OM_OK);
		CU_ASSERT(is_in_block(b.e, "view"));
		CU_ASSERT(is_in_block(b.e, "splat"));
		CU_ASSERT_PTR_EQUAL(b.e->slot[om_value_find(b.p->first, "one")->id].data, om_value_find(b.p->first, "one")->data->data);
		CU_ASSERT_PTR_NULL(b.e->slot[om_value_find(b.p->first, "sum")->id].data);
		CU_ASSERT_EQUAL(om_exec_get_stats(b.e)->weight_bytes, 2 * sizeof x);
		CU_ASSERT_EQUAL_FATAL(bench_run(&b, &in, 1), OM_OK);
		const float *y = om_exec_result(b.e, 0)->data;
		for (int i = 0; i < 160 * 128; i++)
			CU_ASSERT_EQUAL(y[i], 2 * (float)(2 * (i % 160 + 1)) + 1);
		bench_clear(&b);
	}
	bench_close(&b);
}

static CU_TestInfo weights_tests[] = {
	{"few sources are in memory at once", few_sources_are_in_memory_at_once},
	{"weights lie in one block", weights_lie_in_one_block},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("weights", weights_tests);
