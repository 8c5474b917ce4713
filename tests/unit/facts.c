/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about a program after passes that fail. */
#include <config.h>

#include "host/host.h"
#include "tests/fixtures.h"
#include "unit.h"
#include "ir/facts.h"

static const char text[] =
	"program \"p\" ir 8 opset 13\n"
	"^main(%x: float32[16,16]) {\n"
	"\t%a = Exp(%x)\n"
	"\t%b = Transpose(%a)\n"
	"\t%c = MatMul(%a, %b)\n"
	"\t%y = ReduceSum(%c)\n"
	"\tret %y\n"
	"}\n";

static const char pipeline[] = "inline,shapes,fold,liveness,views,inplace,pack";

static uint64_t
planned(const om_prog *p)
{
	CU_ASSERT_FATAL(p->has & OM_HAS_PLAN && p->plan);
	CU_ASSERT_EQUAL(om_plan_verify(NULL, p, p->plan), OM_OK);
	return p->plan->arena->bytes;
}

/* Each fails in another place: before it looks at the program, or with a plan made. */
static void
another_pipeline_after_a_failure(void)
{
	static const char *const failing[] = {"inplace,pack=nothing", "views,alias-io=some", "schedule=best", "liveness,pack", "fold:limit=x",
		"pack:limit=x"};
	bench b;

	unit_start(&b, text, NULL);
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, pipeline), OM_OK);
	const uint64_t bytes = planned(b.p);
	for (size_t k = 0; k < sizeof failing / sizeof failing[0]; k++) {
		om_arena_spec want = {.name = "small", .device = "cpu", .limit = 64};
		CU_ASSERT_EQUAL(om_host_request(b.h, &(om_plan_request)OM_PLAN_REQUEST(.arena = &want, .narena = 1)), OM_OK);
		CU_ASSERT_NOT_EQUAL(om_host_run(b.h, b.p, failing[k]), OM_OK);
		CU_ASSERT_FALSE(b.p->has & OM_HAS_PLAN);
		CU_ASSERT_PTR_NULL(b.p->plan);
		CU_ASSERT_EQUAL(om_host_request(b.h, NULL), OM_OK);
		CU_ASSERT_EQUAL(om_host_run(b.h, b.p, "views,inplace,pack"), OM_OK);
		CU_ASSERT_EQUAL(planned(b.p), bytes);
	}
	bench_close(&b);
}

/* An order keeps shapes and constants; after a failure it keeps no more than that. */
static void
nothing_stale_after_a_failure(void)
{
	bench b;

	unit_start(&b, text, NULL);
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, pipeline), OM_OK);
	CU_ASSERT_EQUAL(om_host_run(b.h, b.p, "schedule=best"), OM_USAGE);
	CU_ASSERT_EQUAL(b.p->has, OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST);
	CU_ASSERT_EQUAL(om_host_run(b.h, b.p, "pack"), OM_OK);
	CU_ASSERT_TRUE(b.p->has & OM_HAS_LIVE);
	bench_close(&b);
}

static void
facts_are_set_by_name(void)
{
	bench b;

	unit_start(&b, text, NULL);
	CU_ASSERT_EQUAL(om_fact_bit("shapes"), OM_HAS_SHAPES);
	CU_ASSERT_EQUAL(om_fact_bit("nonsense"), 0);
	CU_ASSERT_STRING_EQUAL(om_fact_text(OM_HAS_PLAN), "plan");
	CU_ASSERT_FALSE(om_fact_known(b.p, "shapes"));
	om_facts_set(b.p, 0, OM_HAS_SHAPES);
	CU_ASSERT_TRUE(om_fact_known(b.p, "shapes"));
	CU_ASSERT_FALSE(om_fact_known(b.p, "nonsense"));
	CU_ASSERT_PTR_NULL(om_fact_data(b.p, "nonsense"));
	bench_close(&b);
}

/* What --enable-checked asks after each pass. */
static void
a_shape_that_is_wrong_is_found(void)
{
	bench b;

	unit_start(&b, text, NULL);
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, pipeline), OM_OK);
	CU_ASSERT_EQUAL(om_facts_check(b.h, b.p, OM_HAS_ALL), OM_OK);
	om_value *v = b.p->first->first->out[0];
	v->shape.dim[0] = 17;
	CU_ASSERT_EQUAL(om_facts_check(b.h, b.p, OM_HAS_ALL), OM_IR);
	CU_ASSERT_EQUAL(v->shape.dim[0], 17);
	v->shape.dim[0] = 16;
	b.p->first->first->is_folded = true;
	CU_ASSERT_EQUAL(om_facts_check(b.h, b.p, OM_HAS_ALL), OM_IR);
	b.p->first->first->is_folded = false;
	bench_close(&b);
}

static CU_TestInfo facts_tests[] = {
	{"another pipeline after a failure", another_pipeline_after_a_failure},
	{"nothing stale after a failure", nothing_stale_after_a_failure},
	{"facts have names", facts_are_set_by_name},
	{"a shape that is wrong is found", a_shape_that_is_wrong_is_found},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("facts of passes", facts_tests);
