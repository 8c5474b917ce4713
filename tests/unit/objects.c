/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences and optionals in runs: planned, without reuse and poisoned. */
#include <config.h>

#include <stdio.h>

#include "tests/fixtures.h"
#include "unit.h"

static om_status
start(bench *b, const char *body, int way)
{
	*b = bench_open();
	OM_TRY(bench_plan(b, om_printf(b->mem, "program \"t\" ir 10 opset 18\n%s", body), om_default_pipeline()));
	return bench_exec(b, &ways[way]);
}

static om_status
run(bench *b, const float *x, int64_t n)
{
	const om_tensor t = floats_of(n, x);

	return bench_run(b, &t, b->p->first->nparam > 0);
}

/* Result `k` is a sequence of these elements, `each` of them in a tensor. */
static bool
holds(const bench *b, uint32_t k, size_t n, int64_t each, const float *want)
{
	const om_container *o = om_exec_result(b->e, k)->data;

	if (b->p->first->result[k]->type.kind != OM_SEQUENCE || o->n != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_floats(&o->item[i], each, want + (int64_t)i * each))
			return false;
	return true;
}

static void
fail(bench *b)
{
	printf("# %s\n", om_message(b->s));
	CU_FAIL("a program was refused");
}

/* Three iterations put a slice each into a sequence, which is joined after the loop. */
static const char collecting[] =
	"^main(%x: float32[2]) {\n"
	"	%n = const int64[] {3}\n"
	"	%on = const bool[] {1}\n"
	"	%none = SequenceEmpty() {dtype = 1}\n"
	"	%all, %last = Loop(%n, %on, %none, %x) {\n"
	"		body = ^round(%i: int64[], %c: bool[], %s: seq(float32), %v: float32[2]) {\n"
	"			%more = SequenceInsert(%s, %v)\n"
	"			%w = Add(%v, %v)\n"
	"			ret %c, %more, %w\n"
	"		}\n"
	"	}\n"
	"	%y = ConcatFromSequence(%all) {axis = 0}\n"
	"	%z = ConcatFromSequence(%all) {axis = -1, new_axis = 1}\n"
	"	%len = SequenceLength(%all)\n"
	"	ret %y, %z, %len, %all\n"
	"}\n";

static void
loops_collect(void)
{
	const float x[] = {1, -2}, y[] = {1, -2, 2, -4, 4, -8}, z[] = {1, 2, 4, -2, -4, -8};

	for (int way = 0; way < NWAY; way++) {
		bench b;
		if (start(&b, collecting, way) != OM_OK)
			fail(&b);
		for (int again = 0; b.e && again < 2; again++) {
			CU_ASSERT_EQUAL(run(&b, x, 2), OM_OK);
			CU_ASSERT(is_floats(om_exec_result(b.e, 0), 6, y));
			CU_ASSERT(is_floats(om_exec_result(b.e, 1), 6, z));
			CU_ASSERT_EQUAL(*(const int64_t *)om_exec_result(b.e, 2)->data, 3);
			CU_ASSERT(holds(&b, 3, 3, 2, y));
		}
		bench_close(&b);
	}
}

/* Two sequences grow out of one: neither sees what the other got. */
static const char forking[] =
	"^main(%x: float32[1]) {\n"
	"	%two = Add(%x, %x)\n"
	"	%four = Add(%two, %two)\n"
	"	%at = const int64[] {-1}\n"
	"	%a = SequenceConstruct(%x)\n"
	"	%b = SequenceInsert(%a, %two)\n"
	"	%c = SequenceInsert(%b, %two)\n"
	"	%d = SequenceInsert(%b, %four)\n"
	"	%e = SequenceInsert(%d, %four, %at)\n"
	"	%f = SequenceErase(%e, %at)\n"
	"	%g = SequenceErase(%f)\n"
	"	ret %c, %d, %e, %f, %g\n"
	"}\n";

static void
sequences_are_never_changed(void)
{
	const float x[] = {1};

	for (int way = 0; way < NWAY; way++) {
		bench b;
		if (start(&b, forking, way) != OM_OK || run(&b, x, 1) != OM_OK) {
			fail(&b);
			bench_close(&b);
			continue;
		}
		CU_ASSERT(holds(&b, 0, 3, 1, (const float[]){1, 2, 2}));
		CU_ASSERT(holds(&b, 1, 3, 1, (const float[]){1, 2, 4}));
		CU_ASSERT(holds(&b, 2, 4, 1, (const float[]){1, 2, 4, 4}));
		CU_ASSERT(holds(&b, 3, 3, 1, (const float[]){1, 2, 4}));
		CU_ASSERT(holds(&b, 4, 2, 1, (const float[]){1, 2}));
		bench_close(&b);
	}
}

/* Of the parts of a tensor each becomes something else. */
static const char mapping[] =
	"^main(%x: float32[5]) {\n"
	"	%n = const int64[] {2}\n"
	"	%parts = SplitToSequence(%x, %n)\n"
	"	%k = const float32[1] {10.0}\n"
	"	%y = SequenceMap(%parts, %k) {\n"
	"		body = ^each(%p: float32[?], %q: float32[1]) {\n"
	"			%r = Add(%p, %q)\n"
	"			%t = ReduceSum(%r)\n"
	"			ret %t\n"
	"		}\n"
	"	}\n"
	"	%o = Optional(%y)\n"
	"	%has = OptionalHasElement(%o)\n"
	"	%e = OptionalGetElement(%o)\n"
	"	%z = ConcatFromSequence(%e) {axis = 0}\n"
	"	ret %z, %has\n"
	"}\n";

static void
bodies_run_on_each_element(void)
{
	const float x[] = {1, 2, 3, 4, 5};

	for (int way = 0; way < NWAY; way++) {
		bench b;
		if (start(&b, mapping, way) != OM_OK || run(&b, x, 5) != OM_OK) {
			fail(&b);
			bench_close(&b);
			continue;
		}
		CU_ASSERT(is_floats(om_exec_result(b.e, 0), 3, (const float[]){23, 27, 15}));
		CU_ASSERT(*(const bool *)om_exec_result(b.e, 1)->data);
		bench_close(&b);
	}
}

/* `body` is refused, or its run is, with words that hold `why`. */
static void
refuses(const char *body, const char *why)
{
	const float x[] = {1, 2};
	bench b;

	if (start(&b, body, 0) == OM_OK && run(&b, x, 2) == OM_OK)
		CU_FAIL("a program was not refused");
	if (!strstr(om_message(b.s), why)) {
		printf("# %s\n", om_message(b.s));
		CU_FAIL("another sentence");
	}
	bench_close(&b);
}

static void
non_tensors_are_refused(void)
{
	refuses("^main(%x: float32[2]) {\n\t%s = SequenceConstruct(%x)\n\t%y = Relu(%s)\n\tret %y\n}\n", "must be a tensor");
	refuses("^main(%x: float32[2]) {\n\t%y = SequenceLength(%x)\n\tret %y\n}\n", "sequence");
	refuses("^main(%x: float32[2]) {\n\t%s = SequenceConstruct(%x)\n\t%k = const int64[] {1}\n"
		"\t%y = SequenceAt(%s, %k)\n\tret %y\n}\n", "position 1 is out of range");
	refuses("^main(%x: float32[2]) {\n\t%s = SequenceEmpty()\n\t%y = SequenceErase(%s)\n\tret %y\n}\n", "empty");
	refuses("^main(%x: float32[2]) {\n\t%s = SequenceEmpty() {dtype = 7}\n\t%y = SequenceInsert(%s, %x)\n"
		"\tret %y\n}\n", "int64");
	refuses("^main(%x: float32[2]) {\n\t%s = SequenceEmpty() {dtype = 99}\n\tret %s\n}\n", "unknown element type 99");
}

static CU_TestInfo objects_tests[] = {
	{"loops collect", loops_collect},
	{"sequences are never changed", sequences_are_never_changed},
	{"bodies run on each element", bodies_run_on_each_element},
	{"non-tensors are refused", non_tensors_are_refused},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("objects", objects_tests);
