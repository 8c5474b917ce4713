/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives keep their order: plans for another one are refused. */
#include <config.h>

#include "ir/schedule.h"
#include "unit.h"

/* Two sums over ranks that no data order; %b first would need less memory. */
static const char *const two = "program \"two\" ir 8 opset 17 opset org.onnxmem.dist 1\n^g(%x: float32[4,6], %y: float32[4,6]) {\n"
	"%a = org.onnxmem.dist::AllReduce(%x)\n%n = Neg(%a)\n%b = org.onnxmem.dist::AllReduce(%y)\n%s = Add(%n, %b)\nret %s\n}\n";

static const char *const chain = "program \"chain\" ir 8 opset 17 opset org.onnxmem.dist 1\n^g(%x: float32[4,6]) {\n"
	"%a = org.onnxmem.dist::AllReduce(%x)\n%n = Neg(%a)\n%b = org.onnxmem.dist::AllReduce(%n)\nret %b\n}\n";

static void
plan_for_another_order_is_refused(void)
{
	bench b = bench_open();

	CU_ASSERT_FATAL(is_ok(b.s, bench_plan(&b, two, om_default_pipeline())));
	CU_ASSERT(is_ok(b.s, om_plan_verify(b.s, b.p, b.p->plan)));
	om_schedule *was = om_schedule_new(b.p, b.p->mem), now = *was;
	om_op **op = was->ops[0];
	uint32_t n = 0;
	for (; op[n]; n++)
		;
	CU_ASSERT_EQUAL_FATAL(n, 4);
	now.original = was;
	b.p->plan->schedule = &now;
	CU_ASSERT(is_ok(b.s, om_plan_verify(b.s, b.p, b.p->plan)));
	om_op *first = op[0];
	op[0] = op[2];
	op[2] = first;
	CU_ASSERT(is_told(b.s, om_plan_verify(b.s, b.p, b.p->plan), OM_BADPLAN,
		"the collective a comes before b, but the program has them in the other order"));
	bench_close(&b);
}

static om_status
plan_for_every_order(bench *b, const char *text)
{
	const om_plan_request request = OM_PLAN_REQUEST(.parallel_safe = true);

	om_status st = om_host_request(b->h, &request);
	return st == OM_OK ? bench_plan(b, text, om_default_pipeline()) : st;
}

static void
plan_for_every_order_needs_data_between_them(void)
{
	bench b = bench_open();

	CU_ASSERT(is_ok(b.s, plan_for_every_order(&b, chain)));
	bench_close(&b);
	b = bench_open();
	om_status st = plan_for_every_order(&b, two);
	if (st == OM_OK)
		st = om_plan_verify(b.s, b.p, b.p->plan);
	CU_ASSERT(is_told(b.s, st, OM_BADPLAN, "the collectives AllReduce of a and AllReduce of b must keep theirs"));
	bench_close(&b);
}

static const struct transfer {
	const char *ops, *told;
} transfers[] = {
	{"%t = org.onnxmem.dist::AllReduce(%x) {async = 1}\n%n = Neg(%x)\n%a = org.onnxmem.dist::Wait(%t)\n", NULL},
	{"%t = org.onnxmem.dist::ReduceScatter(%x) {ranks = 2, async = 1}\n%n = Neg(%x)\n%a = org.onnxmem.dist::Wait(%t, %x)\n", NULL},
	{"%t = org.onnxmem.dist::AllReduce(%x) {async = 1}\n%a = Neg(%t)\n", "t is read before the end of its transfer"},
	{"%t = org.onnxmem.dist::AllReduce(%x) {async = 1}\n%b = Neg(%t)\n%c = org.onnxmem.dist::Wait(%t)\n%a = Add(%b, %c)\n",
		"t is read before the end of its transfer"},
	{"%a = org.onnxmem.dist::AllReduce(%x) {async = 1}\n", "a is read before the end of its transfer"},
	{"%t = org.onnxmem.dist::AllReduce(%x) {async = 1}\n%a = Neg(%x)\n", "is ended by one Wait, and that of t by 0"},
	{"%t = org.onnxmem.dist::AllReduce(%x) {async = 1}\n%b = org.onnxmem.dist::Wait(%t)\n%c = org.onnxmem.dist::Wait(%t)\n"
		"%a = Add(%b, %c)\n", "is ended by one Wait, and that of t by 2"},
	{"%t = org.onnxmem.dist::ReduceScatter(%x) {ranks = 2, async = 1}\n%a = org.onnxmem.dist::Wait(%t)\n",
		"the transfer reads x, which has to be an input of the Wait for t"},
	{"%t = org.onnxmem.dist::AllGather(%x) {ranks = 2, async = 1}\n%a = org.onnxmem.dist::Wait(%t)\n",
		"the transfer reads x, which has to be an input of the Wait for t"},
	{"%n = Neg(%x)\n%a = org.onnxmem.dist::Wait(%n)\n", "n is the output of a Neg, and no transfer"},
};

/* With a plan and without one. */
static void
transfers_end_before_they_are_read(void)
{
	for (size_t k = 0; k < sizeof transfers / sizeof transfers[0]; k++) {
		const om_exec_options alone = OM_EXEC_OPTIONS(.no_reuse = true);
		bench b = bench_open();
		char text[600];

		snprintf(text, sizeof text, "program \"t\" ir 8 opset 17 opset org.onnxmem.dist 1\n^g(%%x: float32[4,6]) {\n%sret %%a\n}\n",
			transfers[k].ops);
		om_status st = bench_plan(&b, text, om_default_pipeline());
		if (st == OM_OK)
			st = om_plan_verify(b.s, b.p, b.p->plan);
		CU_ASSERT(transfers[k].told ? is_told(b.s, st, OM_INVALID, transfers[k].told) : is_ok(b.s, st));
		bench_close(&b);
		b = bench_open();
		st = bench_plan(&b, text, "inline,shapes,fold");
		if (st == OM_OK)
			st = bench_exec(&b, &alone);
		CU_ASSERT(transfers[k].told ? is_told(b.s, st, OM_INVALID, transfers[k].told) : is_ok(b.s, st));
		bench_close(&b);
	}
}

static CU_TestInfo tests[] = {
	{"the output of a transfer is read after its end", transfers_end_before_they_are_read},
	{"a plan for another order of collectives is refused", plan_for_another_order_is_refused},
	{"a plan for every order needs data between collectives", plan_for_every_order_needs_data_between_them},
	CU_TEST_INFO_NULL
};

UNIT_SUITE("collectives", tests);
