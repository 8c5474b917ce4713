/* SPDX-License-Identifier: Apache-2.0 */
/* What reports explain: steps of a run, why values are in place or not, and floors of all orders. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "ir/edit.h"
#include "ir/steps.h"
#include "onnxmem/plan.h"
#include "tests/fixtures.h"
#include "unit.h"

#define HEAD "program \"\" ir 8 opset 13\n"
#define PASSES "shapes,fold,liveness,views,inplace,loops,pack"

/* ---- Steps. ---- */

/* %k is folded, with an op between those that run. */
static void
folded_ops_have_no_step(void)
{
	bench b = bench_open();

	CU_ASSERT_FATAL(is_ok(b.s, bench_plan(&b, HEAD "^g(%x: float32[16]) {\n%two = const float32[1] {2}\n%a = Exp(%x)\n"
		"%k = Add(%two, %two)\n%b = Mul(%a, %k)\n%c = Neg(%b)\nret %c\n}\n", PASSES)));
	om_timeline(b.p);
	const om_run_steps s = om_run_steps_new(b.p, b.mem);
	const om_op *add = om_prog_find(b.p, "k")->def, *mul = om_prog_find(b.p, "b")->def;
	CU_ASSERT(add->is_folded);
	CU_ASSERT_EQUAL(s.n, 4);                /* three ops and the end */
	CU_ASSERT_EQUAL(om_run_steps_of(&s, om_prog_find(b.p, "a")->def->step), 0);
	CU_ASSERT_EQUAL(om_run_steps_of(&s, mul->step), 1);
	CU_ASSERT_EQUAL(om_run_steps_of(&s, add->step), 1);
	CU_ASSERT_PTR_EQUAL(om_op_at_step(b.p, s.at[1]), mul);
	CU_ASSERT_EQUAL(mul->node, 2);
	bench_close(&b);
}

/* An input in the arena that nothing reads is there before the first op, which is folded. */
static void
unread_inputs_keep_their_step(void)
{
	bench b = bench_open();

	CU_ASSERT_FATAL(is_ok(b.s, om_host_request(b.h, &(om_plan_request)OM_PLAN_REQUEST(.io = OM_IO_ARENA))));
	CU_ASSERT_FATAL(is_ok(b.s, bench_plan(&b, HEAD "^g(%x: float32[16], %unread: float32[16]) {\n"
		"%two = const float32[1] {2}\n%k = Add(%two, %two)\n%a = Mul(%x, %k)\nret %a\n}\n", PASSES)));
	om_timeline(b.p);
	const om_run_steps s = om_run_steps_new(b.p, b.mem);
	const om_live_interval *live = &b.p->plan->place[om_prog_find(b.p, "unread")->id].live;
	const om_steps at = om_run_steps_range(&s, (om_steps){live->first, live->last});
	CU_ASSERT(om_prog_find(b.p, "k")->def->is_folded);
	CU_ASSERT_EQUAL(at.first, 0);
	CU_ASSERT_EQUAL(at.last, 0);
	CU_ASSERT_EQUAL(om_run_steps_of(&s, om_prog_find(b.p, "a")->def->step), 1);
	bench_close(&b);
}

static void
ops_are_told_by_their_node(void)
{
	bench b = bench_open();

	CU_ASSERT_FATAL(is_ok(b.s, bench_plan(&b, HEAD "^g(%x: float32[16], %c: bool[]) {\n%a = Exp(%x)\n%y = If(%c) {\n"
		"then_branch = ^t() {\n%p = Neg(%a)\n%q = Exp(%p)\nret %q\n}, else_branch = ^e() {\n%r = Abs(%a) as \"named\"\nret %r\n}}\n"
		"ret %y\n}\n", "shapes")));
	CU_ASSERT_STRING_EQUAL(om_op_where(om_prog_find(b.p, "y")->def, b.mem), "If (node 1)");
	CU_ASSERT_STRING_EQUAL(om_op_where(om_prog_find(b.p, "q")->def, b.mem), "Exp (node 1 of y/then_branch)");
	CU_ASSERT_STRING_EQUAL(om_op_where(om_prog_find(b.p, "r")->def, b.mem), "Abs named (node 0 of y/else_branch)");
	bench_close(&b);
}

/* ---- Reasons. ---- */

static om_overwrite_reason
reason(const bench *b, const char *out, uint32_t in)
{
	const om_value *v = om_prog_find(b->p, out);
	uint32_t k = 0;

	while (v->def->out[k] != v)
		k++;
	return om_assignment_overwrite(b->p->assignment, v->def, k, in);
}

struct expected {
	const char *out;
	uint32_t in;
	om_overwrite why;
	const char *by;
};

static void
check_reasons(const bench *b, const struct expected *want)
{
	for (; want->out; want++) {
		const om_overwrite_reason is = reason(b, want->out, want->in);
		const bool ok = is.why == want->why && (want->by ? is.by && strcmp(is.by->name, want->by) == 0 : !is.by);
		if (!ok)
			printf("# %s over input %u: %d, %s\n", want->out, want->in, is.why, is.by ? is.by->name : "none");
		CU_ASSERT(ok);
	}
}

static void
reasons_are_exact(void)
{
	static const struct expected want[] = {
		{"a", 0, OM_OVERWRITE_OUTSIDE, NULL},
		{"m", 0, OM_OVERWRITE_NO_RULE, NULL},
		{"n", 0, OM_OVERWRITE_LIVE, NULL}, {"n", 1, OM_OVERWRITE_DONE, NULL},
		{"s", 0, OM_OVERWRITE_DONE, NULL}, {"s", 1, OM_OVERWRITE_SIZE, NULL},
		{"d", 0, OM_OVERWRITE_DONE, NULL}, {"d", 1, OM_OVERWRITE_DONE, NULL},   /* one value twice */
		{"v", 0, OM_OVERWRITE_VIEW, NULL},
		{"e", 0, OM_OVERWRITE_CLASH, "v"},
		{"w", 0, OM_OVERWRITE_DONE, NULL}, {"w", 1, OM_OVERWRITE_CONST, NULL},
		{"p", 0, OM_OVERWRITE_CHOSEN, NULL}, {"p", 1, OM_OVERWRITE_DONE, NULL},
		{NULL, 0, OM_OVERWRITE_UNDECIDED, NULL},
	};
	bench b = bench_open();

	CU_ASSERT_FATAL(is_ok(b.s, bench_plan(&b, HEAD "^g(%x: float32[16,16]) {\n"
		"%one = const float32[1] {1}\n%flat = const int64[1] {256}\n%square = const int64[2] {16, 16}\n"
		"%a = Exp(%x)\n%m = MatMul(%a, %a)\n%n = Add(%a, %m)\n%row = ReduceMax(%n) {axes = [0]}\n%s = Add(%n, %row)\n"
		"%d = Mul(%s, %s)\n%v = Reshape(%d, %flat)\n%e = Exp(%d)\n%w = Add(%e, %one)\n%u = Reshape(%v, %square)\n"
		"%p = Add(%w, %u)\n%q = MatMul(%p, %a)\nret %q\n}\n", PASSES)));
	check_reasons(&b, want);
	bench_close(&b);
}

/* What lies in a Concat's output, and does not because an option says so. */
static void
parts_have_reasons(void)
{
	static const char text[] = HEAD "^g(%x: float32[4,16]) {\n%a = Exp(%x)\n%b = Neg(%x)\n%c = Concat(%a, %b) {axis = 0}\n"
		"%d = ReduceMax(%c) {axes = [0]}\nret %d\n}\n";
	static const struct expected with[] = {
		{"c", 0, OM_OVERWRITE_PART, NULL}, {"c", 1, OM_OVERWRITE_PART, NULL}, {NULL, 0, OM_OVERWRITE_UNDECIDED, NULL},
	};
	static const struct expected without[] = {
		{"c", 0, OM_OVERWRITE_DISABLED, NULL}, {"c", 1, OM_OVERWRITE_DISABLED, NULL},
		{NULL, 0, OM_OVERWRITE_UNDECIDED, NULL},
	};
	static const struct expected none[] = {
		{"c", 0, OM_OVERWRITE_UNDECIDED, NULL}, {NULL, 0, OM_OVERWRITE_UNDECIDED, NULL},
	};
	bench b = bench_open();

	CU_ASSERT_FATAL(is_ok(b.s, bench_plan(&b, text, "shapes,fold,liveness,views,inplace=yes,pack")));
	check_reasons(&b, with);
	bench_clear(&b);
	CU_ASSERT_FATAL(is_ok(b.s, bench_plan(&b, text, "shapes,fold,liveness,views,inplace=no,pack")));
	check_reasons(&b, without);
	bench_clear(&b);
	CU_ASSERT_FATAL(is_ok(b.s, bench_plan(&b, text, "shapes,fold,liveness,views,pack")));
	check_reasons(&b, none);
	bench_close(&b);
}

/* ---- Floors. ---- */

/* An op needs inputs and outputs at once, but for one that it may be computed over. */
static void
floors_are_those_of_one_op(void)
{
	bench b = bench_open();

	CU_ASSERT_FATAL(is_ok(b.s, bench_plan(&b, HEAD "^g(%x: float32[16,16]) {\n%axis = const int64[] {0}\n"
		"%a = Exp(%x)\n%b = MatMul(%x, %a)\n%c = Add(%a, %b)\n%d = MatMul(%c, %x)\n%e = ReduceMax(%d) {axes = [0]}\n"
		"%r = Exp(%e)\nret %r\n}\n", PASSES)));
	CU_ASSERT_EQUAL(b.p->plan->floor, 2048);        /* of %b, %c or %d */
	CU_ASSERT_EQUAL(b.p->plan->op_floor[om_prog_find(b.p, "c")->def->id], 2048);
	CU_ASSERT_EQUAL(b.p->plan->op_floor[om_prog_find(b.p, "a")->def->id], 1024);
	CU_ASSERT_EQUAL(b.p->plan->op_floor[om_prog_find(b.p, "e")->def->id], 1024);   /* %e may be in the result */
	CU_ASSERT_EQUAL(b.p->plan->op_floor[om_prog_find(b.p, "r")->def->id], 0);
	CU_ASSERT(b.p->plan->floor <= b.p->plan->arena->order_bound);
	bench_close(&b);
}

static CU_TestInfo why_tests[] = {
	{"ops that are folded have no step of a run", folded_ops_have_no_step},
	{"an input that nothing reads keeps its step", unread_inputs_keep_their_step},
	{"ops are told by their index in the file", ops_are_told_by_their_node},
	{"reasons are exact", reasons_are_exact},
	{"inputs of a concatenation have reasons", parts_have_reasons},
	{"floors are those of one op", floors_are_those_of_one_op},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("explanations", why_tests);
