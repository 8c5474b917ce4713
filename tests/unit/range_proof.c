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
plan(bench *t, uint32_t n, bool is_ranged)
{
	om_binding *b = om_binding_new();
	om_prog *p;

	CU_ASSERT_EQUAL_FATAL(om_host_request(t->h, &(om_plan_request)OM_PLAN_REQUEST(.ranged = is_ranged)), OM_OK);
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
	{"plans of rewritten programs are not proven", plans_of_rewritten_programs_are_not_proven},
	CU_TEST_INFO_NULL
};

UNIT_SUITE("range_proof", tests);
