/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of reading and verifying plans: bounded by the sizes of program and plan, whatever numbers a
 * plan holds and however often its loops would have to be simulated. */
#include <config.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory_limit.h"
#include "ir/edit.h"
#include "onnx/annotate.h"
#include "tests/bind.h"
#include "tests/fixtures.h"
#include "unit.h"
#include "verify/verify_plan.h"

/* ---- Views that make a loop long. ---- */

/* Both loops rotate their carried values; the branches write, and are visited in each iteration.  The peak is after the
 * loops, so that rotations cost nothing. */
static const char nested[] =
	"program \"\" ir 8 opset 13\n"
	"^g(%x: float32[16], %m: int64[], %k: bool[]) {\n"
	"%i = const int64[] {0}\n%go = const bool[] {1}\n"
	"%s = Loop(%m, %go, %x) {body = ^outer(%n: int64[], %g: bool[], %p: float32[16]) {\n"
	"%a = CumSum(%p, %i)\n"
	"%t = Loop(%m, %g, %a) {body = ^inner(%o: int64[], %f: bool[], %q: float32[16]) {\n"
	"%b = CumSum(%q, %i)\n"
	"%c = If(%k) {else_branch = ^no() {\n%d = Neg(%b)\nret %d\n}, then_branch = ^yes() {\n%e = CumSum(%b, %i)\nret %e\n}}\n"
	"%h = Add(%c, %q)\n%j = CumSum(%h, %i)\n%l = Identity(%f)\nret %l, %j\n}}\n"
	"%u = Add(%t, %p)\n%v = CumSum(%u, %i)\n%w = Identity(%g)\nret %w, %v\n}}\n"
	"%z = CumSum(%s, %i)\n%y = Concat(%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z) {axis = 0}\n"
	"%r = ReduceMax(%y) {keepdims = 0}\nret %r\n}\n";

/* The same regions, `times` as often. */
static void
repeat(om_prog *p, om_plan_multi_view *v, uint32_t times)
{
	om_region *off = om_allocn(p->mem, sizeof *off, (size_t)v->period * times);

	for (uint32_t k = 0; k < v->period * times; k++)
		off[k] = v->off[k % v->period];
	v->off = off;
	v->period *= times;
}

static void
long_periods_take_no_memory(void)
{
	static const uint32_t times[] = {3, 5, 7};
	bench t = bench_open();

	CU_ASSERT_EQUAL_FATAL(bench_read(&t, nested), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_host_run(t.h, t.p, "shapes,fold,liveness,views,inplace,loops,pack"), OM_OK);
	CU_ASSERT_EQUAL(om_plan_verify(t.s, t.p, t.p->plan), OM_OK);
	om_plan plan = *t.p->plan;
	CU_ASSERT_FATAL(plan.nview >= 3);
	plan.view = om_memdup(t.p->mem, plan.view, plan.nview * sizeof *plan.view);
	for (uint32_t k = 0; k < plan.nview; k++)
		repeat(t.p, &plan.view[k], times[k % 3]);
	CU_ASSERT_EQUAL(om_plan_verify(t.s, t.p, &plan), OM_OK);
	CU_ASSERT_EQUAL(om_plan_verify_within(t.s, t.p, &plan, 256 * 1024), OM_OK);
	CU_ASSERT_EQUAL(om_plan_verify_within(t.s, t.p, &plan, 4 * 1024), OM_BADPLAN);
	CU_ASSERT(strstr(om_message(t.s), "4096 bytes") != NULL);
	bench_close(&t);
}

/* ---- Numbers of a plan. ---- */

struct meter {
	uint64_t bytes;
};

enum { MOST_BYTES = 1 << 24 };

static bool
counts(void *arg, size_t n)
{
	struct meter *m = arg;

	m->bytes += n;
	return m->bytes < 8 * (uint64_t)MOST_BYTES && n < MOST_BYTES;
}

/* Read and verify the plan in a file; OM_MEMORY if it took more memory than the plan could need. */
static om_status
read_plan(const char *model, const char *file)
{
	bench t = bench_open();
	struct meter all = {0};

	om_status st = bench_model(&t, model);
	om_session_memory(t.s, counts, &all);
	if (st == OM_OK)
		st = om_model_read_plan(t.s, t.model, t.p, file);
	if (st == OM_OK)
		st = om_plan_verify(t.s, t.p, t.p->plan);
	if (st == OM_MEMORY)
		printf("# %s: %s\n", model, om_message(t.s));
	bench_close(&t);
	return st;
}

static char *
plan_of(const char *model)
{
	bench t = bench_open();
	char *text = NULL;

	CU_ASSERT_EQUAL_FATAL(bench_model(&t, model), OM_OK);
	CU_ASSERT_EQUAL_FATAL(bind_rest(t.s, t.p, 2), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_host_run(t.h, t.p, om_default_pipeline()), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_plan_json(t.s, t.model, t.p, &text), OM_OK);
	bench_close(&t);
	return text;
}

static om_status
read_text(const char *model, const char *file, const char *a, size_t n, const char *insert, const char *b)
{
	FILE *f = fopen(file, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fprintf(f, "%.*s%s%s", (int)n, a, insert, b);
	fclose(f);
	return read_plan(model, file);
}

/* Each number of a plan becomes each of these. */
static void
no_number_takes_memory(void)
{
	static const char *const models[] = {"loop.onnx", "branches.onnx", "digits.onnx"};
	static const char *const big[] = {"9223372036854775807", "4294967295", "1099511627776", "65536"};
	char file[64];

	snprintf(file, sizeof file, "limits-%ld.json", (long)getpid());
	for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
		char *text = plan_of(models[m]);
		unsigned taken = 0, tried = 0;
		CU_ASSERT_EQUAL(read_text(models[m], file, text, 0, "", text), OM_OK);
		for (char *at = text; *at; at++) {
			char *end;
			if (!isdigit((unsigned char)*at) || !strchr(":,[", at[-1]))
				continue;
			strtoull(at, &end, 10);
			for (size_t k = 0; k < sizeof big / sizeof big[0]; k++, tried++)
				taken += read_text(models[m], file, text, (size_t)(at - text), big[k], end) == OM_MEMORY;
			at = end - 1;
		}
		CU_ASSERT(tried > 40);
		CU_ASSERT_EQUAL(taken, 0);
		free(text);
	}
	unlink(file);
}

static CU_TestInfo verify_limits_tests[] = {
	{"long periods take no memory", long_periods_take_no_memory},
	{"no number of a plan takes memory", no_number_takes_memory},
	CU_TEST_INFO_NULL
};
UNIT_SUITE("verify limits", verify_limits_tests);
