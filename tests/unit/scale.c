/* SPDX-License-Identifier: Apache-2.0 */
/* Large graphs of every kind are planned: what took a time quadratic in their ops would take minutes here, and the
 * memory that all phases take together is linear in them. */
#include <config.h>

#include <stdlib.h>

#include "base/memory_limit.h"
#include "graphs.h"
#include "onnxmem/pass.h"
#include "onnxmem/plan.h"
#include "report/report.h"
#include "tests/bind.h"
#include "unit.h"

enum { BYTES_PER_OP = 128 * 1024, LEAST = 5000 };

static bool
count(void *arg, size_t n)
{
	*(uint64_t *)arg += n;
	return true;
}

static void
report(om_prog *p)
{
	om_arena *mem = om_arena_new();

	CU_ASSERT_EQUAL(om_report_new(p, "large", mem)->nbuffer > 0, p->plan->arena[0].bytes > 0);
	om_arena_free(mem);
}

/* As `onnxmem plan` does, until the model is saved. */
static om_status
plan(struct made *b, om_model *m, om_prog *p)
{
	om_host *h = om_host_new(b->s, NULL);
	om_status st = bind_rest(b->s, p, 1);

	if (st == OM_OK)
		st = om_host_run(h, p, om_default_pipeline());
	if (st == OM_OK)
		st = om_plan_verify(b->s, p, p->plan);
	if (st == OM_OK)
		st = om_model_annotate(b->s, m, p, OM_ANNOTATE_MODEL);
	if (st == OM_OK)
		st = made_read_back(b->s, h, m);
	if (st == OM_OK)
		report(p);
	om_host_free(h);
	return st;
}

/* Where each op takes long, graphs are so many times smaller, but large enough that memory is that of their ops. */
static uint32_t
smaller(uint32_t n)
{
	const char *times = getenv("OM_SMALLER_GRAPHS");
	const uint32_t by = times ? (uint32_t)strtoul(times, NULL, 10) : 1, fewer = by > 1 ? n / by : n;

	return fewer > LEAST ? fewer : n < LEAST ? n : LEAST;
}

static void
check(const char *kind, uint32_t most)
{
	const uint32_t n = smaller(most);
	struct made b = made_large(kind, n);
	om_model *m = NULL;
	om_prog *p = NULL;
	uint64_t taken = 0;

	om_session_memory(b.s, count, &taken);
	CU_ASSERT_EQUAL_FATAL(made_load(&b, NULL, &m, &p), OM_OK);
	const om_status st = plan(&b, m, p);
	if (st != OM_OK)
		printf("# %s of %u ops: %s\n", kind, n, om_message(b.s));
	CU_ASSERT_EQUAL(st, OM_OK);
	if (st == OM_OK)
		CU_ASSERT(p->plan->arena[0].lower_bound <= p->plan->arena[0].bytes);
	CU_ASSERT(taken <= (uint64_t)n * BYTES_PER_OP);
	om_prog_free(p);
	om_model_free(m);
	made_free(&b);
}

static void
chains(void)
{
	check("chain", 30000);
	check("in-place", 30000);
	check("views", 30000);
	check("weights", 20000);
	check("skips", 20000);
}

static void
wide_ops(void)
{
	check("sum", 20000);
	check("concat", 10000);
	check("split", 30000);
	check("fan-out", 20000);
	check("results", 20000);
	check("residual", 10000);
}

static void
bodies(void)
{
	check("ifs", 50000);
	check("loops", 30000);
	check("body", 20000);
}

static void
others(void)
{
	check("random", 5000);
	check("shapes", 20000);
}

static CU_TestInfo tests[] = {
	{"chains", chains},
	{"ops of 10,000 inputs, outputs or readers", wide_ops},
	{"10,000 branches; loops", bodies},
	{"shape arithmetic; any graph", others},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("large graphs", tests);
