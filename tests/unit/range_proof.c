/* SPDX-License-Identifier: Apache-2.0 */
/* What is proven of plans with ranges, and what is not: plans that are valid for the largest sizes, but not for all, are never proven. */
#include <config.h>

#include "host/host.h"
#include "host/range_proof.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "onnxmem/binding.h"
#include "tests/fixtures.h"
#include "unit.h"

static const om_dim_range range[] = {{"N", 1, 5000}, {"S", 1, 3000}};

/* A plan for the largest sizes of the first `n` ranges, which becomes one for all of them. */
static om_prog *
plan_as(bench *t, uint32_t n, const om_plan_request *request)
{
	om_binding *b = om_binding_new();
	om_prog *p;

	CU_ASSERT_EQUAL_FATAL(om_host_request(t->h, request), OM_OK);
	for (uint32_t k = 0; k < n; k++)
		CU_ASSERT_EQUAL_FATAL(om_binding_dim(t->s, b, range[k].symbol, range[k].high), OM_OK);
	CU_ASSERT_FATAL(is_ok(t->s, om_prog_bind(t->s, t->p, b, &p)));
	CU_ASSERT_FATAL(is_ok(t->s, om_host_run(t->h, p, om_default_pipeline())));
	CU_ASSERT_FATAL(is_ok(t->s, om_plan_verify(t->s, p, p->plan)));
	p->plan->range = range;
	p->plan->nrange = n;
	p->passes = NULL;        /* they only fold and prune, as a reader does */
	om_binding_free(b);
	return p;
}

/* Without `is_ranged`, only sizes that data decide have no places. */
static om_prog *
plan(bench *t, uint32_t n, bool is_ranged)
{
	return plan_as(t, n, &(om_plan_request)OM_PLAN_REQUEST(.ranged = is_ranged, .exact_sizes = !is_ranged));
}

/* The reason why it is not proven contains `why`; NULL: it is proven. */
static void
check(bench *t, const om_prog *p, om_status wanted, const char *why)
{
	const om_ranged r = {t->p, p, p->plan->range, p->plan->nrange};
	om_arena *mem = om_arena_new();
	const char *found;

	CU_ASSERT_EQUAL(om_host_prove_range(t->h, &r, p->plan, mem, &found), wanted);
	if (wanted != OM_OK)
		found = om_message(t->s);
	CU_ASSERT_EQUAL(found == NULL, why == NULL);
	CU_ASSERT(!found || !why || strstr(found, why));
	if (found && (!why || !strstr(found, why)))
		fprintf(stderr, "# %s\n", found);
	om_arena_free(mem);
}

static void
check_program(const char *text, uint32_t nrange, bool is_ranged, om_status wanted, const char *why)
{
	bench t;

	unit_start(&t, text, NULL);
	om_prog *p = plan(&t, nrange, is_ranged);
	check(&t, p, wanted, why);
	om_prog_free(p);
	bench_close(&t);
}

/* Elementwise ops, a view whose dims follow from sizes, quotients, a product of two symbols. */
static const char whole[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[1,2,N,8], %y: float32[S,48]) {\n"
	"	%a = Relu(%x)\n"
	"	%b = MaxPool(%a) {kernel_shape = [3, 3], strides = [2, 3], pads = [1, 1, 1, 1]}\n"
	"	%c = Exp(%b)\n"
	"	%n = Shape(%c)\n"
	"	%two = const int64[1] {2}\n"
	"	%three = const int64[1] {3}\n"
	"	%rows = Slice(%n, %two, %three)\n"
	"	%rest = const int64[1] {-1}\n"
	"	%to = Concat(%rows, %rest) {axis = 0}\n"
	"	%d = Reshape(%c, %to)\n"
	"	%e = Exp(%d)\n"
	"	%p = Relu(%y)\n"
	"	%q = Softmax(%p)\n"
	"	%r = Sub(%p, %q)\n"
	"	ret %e, %r\n"
	"}\n";

static void
plans_are_proven(void)
{
	check_program(whole, 2, true, OM_OK, NULL);
}

/* One place is smaller than its value for the largest sizes only, as that of a document that was edited. */
static void
places_that_are_too_small_are_refused(void)
{
	bench t;

	unit_start(&t, whole, NULL);
	om_prog *p = plan(&t, 2, true);
	uint32_t k = 0;
	while (k < p->nvalue && p->plan->place[k].where != OM_IN_ARENA)
		k++;
	CU_ASSERT_FATAL(k < p->nvalue);
	p->plan->place[k].bytes = om_value_bytes(p->values[k]) - 4;
	check(&t, p, OM_BADPLAN, "has more bytes for some sizes of the ranges");
	om_prog_free(p);
	bench_close(&t);
}

/* N mod 7 rows: for N = 5000 there are 2 of them, for others up to 6. */
static const char remainders[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[N], %y: float32[1,4]) {\n"
	"	%n = Shape(%x)\n"
	"	%seven = const int64[1] {7}\n"
	"	%m = Mod(%n, %seven)\n"
	"	%four = const int64[1] {4}\n"
	"	%to = Concat(%m, %four) {axis = 0}\n"
	"	%a = Expand(%y, %to)\n"
	"	%b = Exp(%a)\n"
	"	%c = ReduceSum(%b) {keepdims = 0}\n"
	"	ret %c\n"
	"}\n";

static void
sizes_that_are_larger_elsewhere_are_refused(void)
{
	check_program(remainders, 1, true, OM_BADPLAN, "has more bytes for some sizes");
}

/* One row for even N, two for odd: a vector that is transposed is a view, a matrix is not.  All have 96 elements. */
static const char turned[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[N], %y: float32[96]) {\n"
	"	%n = Shape(%x)\n"
	"	%two = const int64[1] {2}\n"
	"	%one = const int64[1] {1}\n"
	"	%all = const int64[1] {96}\n"
	"	%m = Mod(%n, %two)\n"
	"	%k = Add(%m, %one)\n"
	"	%l = Div(%all, %k)\n"
	"	%to = Concat(%k, %l) {axis = 0}\n"
	"	%a = Exp(%y)\n"
	"	%b = Reshape(%a, %to)\n"
	"	%c = Transpose(%b) {perm = [1, 0]}\n"
	"	%d = ReduceSum(%c) {keepdims = 0}\n"
	"	ret %d\n"
	"}\n";

static void
views_of_some_sizes_are_not_proven(void)
{
	check_program(turned, 1, true, OM_OK, "does not allow for all sizes that c is in the memory of b");
}

/* 10 elements from 100 on, but from 500 on for N = 777: which N is there is an element that no constant has, because data decide the size of %y. */
static const char elsewhere[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%m: float32[6], %x: float32[N], %w: float32[1000]) {\n"
	"	%ax0 = const int64[1] {0}\n"
	"	%i1 = const int64[1] {1}\n"
	"	%i2 = const int64[1] {2}\n"
	"	%k777 = const int64[1] {777}\n"
	"	%c500 = const int64[1] {500}\n"
	"	%c100 = const int64[1] {100}\n"
	"	%ten = const int64[1] {10}\n"
	"	%nz = NonZero(%m)\n"
	"	%tz = Transpose(%nz) {perm = [1, 0]}\n"
	"	%tf = Cast(%tz) {to = 1}\n"
	"	%xr = Unsqueeze(%x, %ax0)\n"
	"	%y = Add(%tf, %xr)\n"
	"	%s = Shape(%y)\n"
	"	%n = Slice(%s, %i1, %i2)\n"
	"	%eq = Equal(%n, %k777)\n"
	"	%st = Where(%eq, %c500, %c100)\n"
	"	%en = Add(%st, %ten)\n"
	"	%w1 = Sin(%w)\n"
	"	%v = Slice(%w1, %st, %en)\n"
	"	%v2 = Cos(%v)\n"
	"	%r = ReduceSum(%v2) {keepdims = 0}\n"
	"	ret %r\n"
	"}\n";

static void
views_by_elements_of_one_size_are_not_proven(void)
{
	check_program(elsewhere, 1, false, OM_OK, "does not allow for all sizes that v is in the memory of w1");
}

/* The second input of the Concat lies in its output after the rows of the first one. */
static const char stacked[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[N,16], %y: float32[2,16]) {\n"
	"	%a = Exp(%x)\n"
	"	%b = Exp(%y)\n"
	"	%c = Concat(%a, %b) {axis = 0}\n"
	"	%d = ReduceSum(%c) {keepdims = 0}\n"
	"	ret %d\n"
	"}\n";

static void
offsets_that_depend_on_sizes_are_not_proven(void)
{
	bench t;

	unit_start(&t, stacked, NULL);
	om_prog *p = plan(&t, 1, false);
	CU_ASSERT_FATAL(p->plan->place[om_prog_find(p, "b")->id].offset == 5000 * 64 + p->plan->place[om_prog_find(p, "c")->id].offset);
	check(&t, p, OM_OK, "does not allow for all sizes that c is in the memory of b");
	om_prog_free(p);
	bench_close(&t);
	check_program(stacked, 1, true, OM_OK, NULL);
}

/* The condition is a number of rows. */
static const char chosen[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[N,16]) {\n"
	"	%n = Shape(%x) {end = 1}\n"
	"	%five = const int64[1] {5}\n"
	"	%is = Less(%n, %five)\n"
	"	%a = Exp(%x)\n"
	"	%c = If(%is) {then_branch = ^t() {\n"
	"		%p = Exp(%a)\n"
	"		ret %p\n"
	"	}, else_branch = ^e() {\n"
	"		%q = Relu(%a)\n"
	"		ret %q\n"
	"	}}\n"
	"	%d = ReduceSum(%c) {keepdims = 0}\n"
	"	ret %d\n"
	"}\n";

static void
branches_that_sizes_choose_are_not_proven(void)
{
	check_program(chosen, 1, true, OM_OK, "runs depends on sizes");
}

/* A Scan and a Loop over N rows, whose states have fixed shapes or N rows; the start of one is a constant that follows from N. */
static const char loops[] =
	"program \"t\" ir 10 opset 18\n"
	"^g(%x: float32[N,4], %w: float32[4,4]) {\n"
	"	%go = const bool[] {1}\n"
	"	%zero = const int64[] {0}\n"
	"	%three = const int64[] {3}\n"
	"	%rows = const int64[1] {0}\n"
	"	%start = ReduceMean(%x, %rows) {keepdims = 0}\n"
	"	%shape = Shape(%x)\n"
	"	%n = Gather(%shape, %zero)\n"
	"	%nothing = ConstantOfShape(%shape)\n"
	"	%p.end, %sums = Scan(%start, %x) {body = ^scanned(%p: float32[4], %row: float32[4]) {\n"
	"		%sum = Sub(%p, %row)\n"
	"		%new = Tanh(%sum)\n"
	"		%next = Identity(%new)\n"
	"		ret %next, %new\n"
	"	}, num_scan_inputs = 1}\n"
	"	%s.end = Loop(%n, %go, %p.end) {body = ^repeated(%i: int64[], %c: bool[], %s: float32[4]) {\n"
	"		%y = Softmax(%s)\n"
	"		ret %c, %y\n"
	"	}}\n"
	"	%t.end, %u.end = Loop(%three, %go, %sums, %nothing) {body = ^thrice(%j: int64[], %d: bool[], %t: float32[N,4], %u: float32[N,4]) {\n"
	"		%v = MatMul(%t, %w)\n"
	"		%a = Add(%v, %u)\n"
	"		ret %d, %a, %v\n"
	"	}}\n"
	"	%b = Add(%t.end, %s.end)\n"
	"	%r = Add(%b, %u.end)\n"
	"	ret %r\n"
	"}\n";

static void
plans_with_loops_are_proven(void)
{
	check_program(loops, 1, true, OM_OK, NULL);
}

/* %q is the row before the last one: where it is when a Loop ends depends on whether N is odd.  A plan for 5000 alone is for even ones. */
static const char lags[] =
	"program \"t\" ir 10 opset 18\n"
	"^g(%x: float32[N,4]) {\n"
	"	%go = const bool[] {1}\n"
	"	%zero = const int64[] {0}\n"
	"	%rows = const int64[1] {0}\n"
	"	%shape = Shape(%x)\n"
	"	%n = Gather(%shape, %zero)\n"
	"	%top = ReduceMax(%x, %rows) {keepdims = 0}\n"
	"	%least = ReduceMin(%x, %rows) {keepdims = 0}\n"
	"	%s.end, %t.end = Loop(%n, %go, %top, %least) {body = ^repeated(%i: int64[], %c: bool[], %s: float32[4], %t: float32[4]) {\n"
	"		%y = Softmax(%t)\n"
	"		%z = Sub(%y, %s)\n"
	"		%older = Identity(%s)\n"
	"		ret %c, %z, %older\n"
	"	}}\n"
	"	%a = Neg(%s.end)\n"
	"	%all = Sub(%a, %t.end)\n"
	"	ret %all\n"
	"}\n";

static void
ends_of_some_trip_counts_are_not_proven(void)
{
	bench t;

	unit_start(&t, lags, NULL);
	om_prog *p = plan(&t, 1, false);
	CU_ASSERT_FATAL(p->plan->nview > 0);
	check(&t, p, OM_OK, "loops may run another number of times");
	om_prog_free(p);
	bench_close(&t);
	check_program(lags, 1, true, OM_OK, NULL);
}

/* As `turned`, in the body of a Loop. */
static const char turned_in_loop[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[N], %y: float32[96]) {\n"
	"	%go = const bool[] {1}\n"
	"	%three = const int64[] {3}\n"
	"	%n = Shape(%x)\n"
	"	%two = const int64[1] {2}\n"
	"	%one = const int64[1] {1}\n"
	"	%all = const int64[1] {96}\n"
	"	%m = Mod(%n, %two)\n"
	"	%k = Add(%m, %one)\n"
	"	%l = Div(%all, %k)\n"
	"	%to = Concat(%k, %l) {axis = 0}\n"
	"	%end = Loop(%three, %go, %y) {body = ^b(%i: int64[], %c: bool[], %s: float32[96]) {\n"
	"		%a = Exp(%s)\n"
	"		%b = Reshape(%a, %to)\n"
	"		%t = Transpose(%b) {perm = [1, 0]}\n"
	"		%f = Reshape(%t, %all)\n"
	"		%g = Sin(%f)\n"
	"		ret %c, %g\n"
	"	}}\n"
	"	%d = ReduceSum(%end) {keepdims = 0}\n"
	"	ret %d\n"
	"}\n";

static void
views_in_loops_of_some_sizes_are_not_proven(void)
{
	check_program(turned_in_loop, 1, true, OM_OK, "does not allow for all sizes that t is in the memory of b");
}

/* A state that has 5000 rows after an iteration has N before it: for N = 5000 alone it is the same shape. */
static const char grows[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[N,4], %y: float32[5000,4]) {\n"
	"	%go = const bool[] {1}\n"
	"	%three = const int64[] {3}\n"
	"	%end = Loop(%three, %go, %x) {body = ^b(%i: int64[], %c: bool[], %s: float32[?,4]) {\n"
	"		%rows = const int64[1] {0}\n"
	"		%a = ReduceSum(%s, %rows)\n"
	"		%b = Add(%y, %a)\n"
	"		ret %c, %b\n"
	"	}}\n"
	"	%d = ReduceSum(%end) {keepdims = 0}\n"
	"	ret %d\n"
	"}\n";

static void
states_that_grow_for_some_sizes_are_not_proven(void)
{
	check_program(grows, 1, true, OM_OK, "does not follow from the shapes of inputs");
}

/* Each iteration reads a slice of %x in its place, which is elsewhere if N is another number. */
static const char sliced[] =
	"program \"t\" ir 10 opset 18\n"
	"^g(%x: float32[N,4], %y: float32[4]) {\n"
	"	%a = Exp(%x)\n"
	"	%p.end, %sums = Scan(%y, %a) {body = ^scanned(%p: float32[4], %row: float32[4]) {\n"
	"		%sum = Sub(%p, %row)\n"
	"		%new = Tanh(%sum)\n"
	"		ret %new, %sum\n"
	"	}, num_scan_inputs = 1, scan_input_directions = [1]}\n"
	"	%b = Sin(%sums)\n"
	"	ret %b, %p.end\n"
	"}\n";

static void
slices_of_some_trip_counts_are_not_proven(void)
{
	bench t;

	unit_start(&t, sliced, NULL);
	om_prog *p = plan(&t, 1, false);
	CU_ASSERT_FATAL(p->plan->nview > 0);
	check(&t, p, OM_OK, "values are slices of others in loops");
	om_prog_free(p);
	bench_close(&t);
	check_program(sliced, 1, true, OM_OK, NULL);
}

/* What NonZero may find in N mod 7 rows is more for other numbers than for 5000. */
static const char bounded[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[N], %y: float32[1,4]) {\n"
	"	%n = Shape(%x)\n"
	"	%seven = const int64[1] {7}\n"
	"	%m = Mod(%n, %seven)\n"
	"	%four = const int64[1] {4}\n"
	"	%to = Concat(%m, %four) {axis = 0}\n"
	"	%a = Expand(%y, %to)\n"
	"	%b = NonZero(%a)\n"
	"	%c = Cast(%b) {to = 1}\n"
	"	%d = ReduceSum(%c) {keepdims = 0}\n"
	"	ret %d\n"
	"}\n";

static void
bounds_of_one_size_are_not_proven(void)
{
	bench t;

	unit_start(&t, bounded, NULL);
	om_prog *p = plan_as(&t, 1, &(om_plan_request)OM_PLAN_REQUEST());
	check(&t, p, OM_OK, "data decide the size of b");
	om_prog_free(p);
	bench_close(&t);
}

static void
plans_of_rewritten_programs_are_not_proven(void)
{
	bench t;

	unit_start(&t, whole, NULL);
	om_prog *p = plan(&t, 2, true);
	p->passes = "fuse-elementwise";
	check(&t, p, OM_OK, "passes make of the model");
	om_prog_free(p);
	bench_close(&t);
}

static CU_TestInfo tests[] = {
	{"plans are proven", plans_are_proven},
	{"places that are too small are refused", places_that_are_too_small_are_refused},
	{"sizes that are larger elsewhere are refused", sizes_that_are_larger_elsewhere_are_refused},
	{"views of some sizes are not proven", views_of_some_sizes_are_not_proven},
	{"views by elements of one size are not proven", views_by_elements_of_one_size_are_not_proven},
	{"offsets that depend on sizes are not proven", offsets_that_depend_on_sizes_are_not_proven},
	{"branches that sizes choose are not proven", branches_that_sizes_choose_are_not_proven},
	{"plans with loops are proven", plans_with_loops_are_proven},
	{"ends of some trip counts are not proven", ends_of_some_trip_counts_are_not_proven},
	{"views in loops of some sizes are not proven", views_in_loops_of_some_sizes_are_not_proven},
	{"states that grow for some sizes are not proven", states_that_grow_for_some_sizes_are_not_proven},
	{"slices of some trip counts are not proven", slices_of_some_trip_counts_are_not_proven},
	{"bounds of one size are not proven", bounds_of_one_size_are_not_proven},
	{"plans of rewritten programs are not proven", plans_of_rewritten_programs_are_not_proven},
	CU_TEST_INFO_NULL
};

UNIT_SUITE("range_proof", tests);
