/* SPDX-License-Identifier: Apache-2.0 */
/* Values whose size data decide, planned at the most that their operators may give. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "ir/edit.h"
#include "opdef/max_sizes.h"
#include "unit.h"

#define HEAD "program \"bounds\" ir 8 opset 17\n^g(%x: float32[2,6]) {\n"

/* ---- Bounds. ---- */

struct bounded {
	const char *body;        /* from %x; the value in question is %v */
	uint64_t bytes;          /* the most that it takes; 0: nothing is known */
};

static const struct bounded all[] = {
	{"%v = NonZero(%x)\n", 192},
	{"%a = NonZero(%x)\n%v = Transpose(%a)\n", 192},
	{"%a = NonZero(%x)\n%b = Transpose(%a)\n%v = GatherND(%x, %b)\n", 48},
	{"%a = NonZero(%x)\n%v = Neg(%a)\n", 192},
	{"%a = NonZero(%x)\n%v = Add(%a, %a)\n", 192},
	{"%a = NonZero(%x)\n%b = Concat(%a, %a) {axis = 1}\n%v = Cast(%b) {to = 1}\n", 192},
	{"%v, %i, %j, %k = Unique(%x)\n", 48},
	{"%c = Cast(%x) {to = 9}\n%d = Flatten(%c) {axis = 0}\n%s = Squeeze(%d, %zero)\n%v = Compress(%x, %s)\n", 48},
	{"%s = ReduceMax(%x) {keepdims = 0}\n%t = Cast(%s) {to = 7}\n%u = Unsqueeze(%t, %zero)\n"
		"%v, %i = TopK(%x, %u)\n", 48},
	{"%s = ReduceMax(%x) {keepdims = 0}\n%t = Cast(%s) {to = 7}\n%u = Unsqueeze(%t, %zero)\n"
		"%v = Slice(%x, %zero, %u, %one)\n", 48},
	{"%a = NonZero(%x)\n%b, %v = Split(%a, %ones)\n", 96},
	{"%a = NonZero(%x)\n%b = Cast(%a) {to = 1}\n%c = Transpose(%b)\n%v = MatMul(%c, %x)\n", 288},
	{"%a = NonZero(%x)\n%v = ReduceSum(%a, %zero) {keepdims = 0}\n", 96},
	{"%a = NonZero(%x)\n%v = Reshape(%a, %flat)\n", 192},
	/* The dim of size 1 in a run may be that of the list, or of what it is added to. */
	{"%a = NonZero(%x)\n%s = ReduceMax(%a) {keepdims = 0}\n%u = Unsqueeze(%s, %zero)\n%b = ConstantOfShape(%u)\n%c = Cast(%a) {to = 1}\n"
		"%v = Add(%b, %c)\n", 0},
	/* The rank is not known before the run. */
	{"%a = NonZero(%x)\n%v = Squeeze(%a)\n", 0},
	/* The remaining rank of the slices is not known. */
	{"%a = NonZero(%x)\n%v = GatherND(%x, %a)\n", 0},
	{"%s = ReduceMax(%x) {keepdims = 0}\n%t = Cast(%s) {to = 7}\n%u = Unsqueeze(%t, %zero)\n%v = ConstantOfShape(%u)\n", 0},
};

#define CONSTANTS "%zero = const int64[1] {0}\n%one = const int64[1] {1}\n%ones = const int64[2] {1,1}\n%flat = const int64[1] {-1}\n"

static om_status
plan_of(bench *b, const char *body, const char *passes)
{
	char text[2048];

	snprintf(text, sizeof text, "%s%s%s%%y = Shape(%%v)\nret %%y\n}\n", HEAD, CONSTANTS, body);
	*b = bench_open();
	return bench_plan(b, text, passes ? passes : om_default_pipeline());
}

static void
bounds_follow_from_operators(void)
{
	for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
		bench b;
		CU_ASSERT_EQUAL_FATAL(plan_of(&b, all[k].body, "inline,shapes,fold"), OM_OK);
		const uint64_t bytes = om_max_sizes_new(b.p, b.mem)[om_prog_find(b.p, "v")->id];
		if (bytes != all[k].bytes)
			printf("%s: %llu bytes, not %llu\n", all[k].body, (unsigned long long)bytes, (unsigned long long)all[k].bytes);
		CU_ASSERT_EQUAL(bytes, all[k].bytes);
		bench_close(&b);
	}
}

/* ---- Plans and runs. ---- */

static const float inputs[][12] = {
	{0}, {0, 0, 0, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 1}, {2, 2, 2, 2, 2, 2},
};

/* A run of the same program in each way gives the same shape, or the same failure. */
static void
run_all_ways(const char *body)
{
	static const int64_t dims[2] = {2, 6};
	const size_t ninput = sizeof inputs / sizeof inputs[0];
	int64_t want[8][4] = {{0}};
	bench b;

	for (int way = 0; way < NWAY; way++) {
		int64_t shape[8][4] = {{0}};
		CU_ASSERT_EQUAL_FATAL(plan_of(&b, body, NULL), OM_OK);
		CU_ASSERT_EQUAL(om_plan_verify(b.s, b.p, b.p->plan), OM_OK);
		CU_ASSERT_EQUAL_FATAL(bench_exec(&b, &ways[way]), OM_OK);
		for (size_t k = 0; k < ninput; k++) {
			om_tensor x = {.type = OM_FLOAT32, .shape = om_shape_of(2, dims), .data = (void *)inputs[k]};
			const bool is_run = bench_run(&b, &x, 1) == OM_OK;
			shape[k][0] = is_run ? om_exec_result(b.e, 0)->shape.dim[0] : -1;
			for (int64_t d = 0; is_run && d < shape[k][0] && d < 3; d++)
				shape[k][d + 1] = ((const int64_t *)om_exec_result(b.e, 0)->data)[d];
		}
		if (way == 0)
			memcpy(want, shape, sizeof want);
		CU_ASSERT_EQUAL(memcmp(want, shape, sizeof want), 0);
		bench_close(&b);
	}
}

static void
plans_hold_for_all_sizes(void)
{
	for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
		run_all_ways(all[k].body);
}

/* What follows from values that are planned at their bounds: the numbers, and nothing outside of the arena. */
static void
numbers_are_those_of_a_run_without_reuse(void)
{
	static const char text[] = HEAD "%n = NonZero(%x)\n%t = Transpose(%n)\n%g = GatherND(%x, %t)\n%e = Exp(%g)\n%s = Sub(%e, %g)\n"
		"%m = Mul(%s, %e)\n%y = ReduceSum(%m)\nret %y\n}\n";
	static const int64_t dims[2] = {2, 6};
	float want[8] = {0};

	for (int way = 0; way < NWAY; way++) {
		bench b = bench_open();
		CU_ASSERT_EQUAL_FATAL(bench_plan(&b, text, om_default_pipeline()), OM_OK);
		CU_ASSERT_EQUAL(b.p->plan->nunplanned, 0);
		CU_ASSERT_EQUAL(om_plan_count_bounded(b.p, b.p->plan), 6);
		CU_ASSERT_EQUAL_FATAL(bench_exec(&b, &ways[way]), OM_OK);
		for (size_t k = 0; k < sizeof inputs / sizeof inputs[0]; k++) {
			om_tensor x = {.type = OM_FLOAT32, .shape = om_shape_of(2, dims), .data = (void *)inputs[k]};
			CU_ASSERT(is_ok(b.s, bench_run(&b, &x, 1)));
			const float got = (float)element_at(om_exec_result(b.e, 0), 0);
			want[k] = way == 0 ? got : want[k];
			CU_ASSERT_EQUAL(got, want[k]);
		}
		bench_close(&b);
	}
}

/* ---- Damaged plans. ---- */

static om_placement *
place(const bench *b, const char *name)
{
	return &b->p->plan->place[om_prog_find(b->p, name)->id];
}

static void
damaged_plans_are_refused(void)
{
	bench b;

	CU_ASSERT_EQUAL_FATAL(plan_of(&b, "%a = NonZero(%x)\n%b = Neg(%a)\n%v = Concat(%a, %b) {axis = 1}\n", NULL), OM_OK);
	const om_placement a = *place(&b, "a"), other = *place(&b, "b");
	CU_ASSERT_EQUAL(a.where, OM_IN_ARENA);
	place(&b, "a")->bytes = 128;
	CU_ASSERT(is_told(b.s, om_plan_verify(b.s, b.p, b.p->plan), OM_BADPLAN, "a requires 192 bytes, but is planned with 128"));
	*place(&b, "a") = a;
	place(&b, "b")->offset = a.offset;
	CU_ASSERT(is_told(b.s, om_plan_verify(b.s, b.p, b.p->plan), OM_BADPLAN, "output b is stored over input a"));
	*place(&b, "b") = other;
	CU_ASSERT_EQUAL(om_plan_verify(b.s, b.p, b.p->plan), OM_OK);
	om_alias over = {OM_ALIAS_INPLACE, om_prog_find(b.p, "b")->id, om_prog_find(b.p, "a")->id, 0};
	b.p->plan->alias = &over;
	b.p->plan->nalias = 1;
	CU_ASSERT(is_told(b.s, om_plan_verify(b.s, b.p, b.p->plan), OM_BADPLAN, "its size is not known"));
	bench_close(&b);
}

/* A bound that is out of all proportion stays outside, and so do values of plans for ranges. */
static void
large_bounds_are_left_outside(void)
{
	bench b = bench_open();

	CU_ASSERT_EQUAL_FATAL(bench_plan(&b, "program \"large\" ir 8 opset 17\n^g(%x: float32[40,40]) {\n%n = NonZero(%x)\n%c = Cast(%n) {to = 1}\n"
		"%t = Transpose(%c)\n%m = MatMul(%t, %c)\n%y = ReduceSum(%m)\nret %y\n}\n", om_default_pipeline()), OM_OK);
	CU_ASSERT_EQUAL(place(&b, "n")->where, OM_IN_ARENA);
	CU_ASSERT_EQUAL(place(&b, "m")->where, OM_UNPLANNED);
	CU_ASSERT_STRING_EQUAL(b.p->plan->unplanned[0].why, "follows from data-dependent shape of NonZero, at most 10240000 bytes");
	bench_close(&b);
}

static CU_TestInfo tests[] = {
	{"bounds follow from bounds of operators", bounds_follow_from_operators},
	{"plans at bounds hold for all sizes", plans_hold_for_all_sizes},
	{"numbers of plans at bounds are those of a run without reuse", numbers_are_those_of_a_run_without_reuse},
	{"damaged plans with bounds are refused", damaged_plans_are_refused},
	{"bounds out of all proportion are left outside", large_bounds_are_left_outside},
	CU_TEST_INFO_NULL
};

UNIT_SUITE("bounds", tests);
