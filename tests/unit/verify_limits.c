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
#include "onnxmem/pass.h"
#include "tests/bind.h"
#include "unit.h"
#include "verify/verify_plan.h"

/* ---- Views that make a loop long. ---- */

/* Both loops rotate their carried values; the branches write, and are visited in each iteration. */
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
	"%z = CumSum(%s, %i)\nret %z\n}\n";

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
	om_session *s = om_session_new();
	om_host *h = om_host_new(s, NULL);
	om_prog *p;

	CU_ASSERT_EQUAL_FATAL(unit_parse(s, nested, &p), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_host_run(h, p, "shapes,fold,liveness,views,inplace,loops,pack"), OM_OK);
	CU_ASSERT_EQUAL(om_plan_verify(s, p, p->plan), OM_OK);
	om_plan plan = *p->plan;
	CU_ASSERT_FATAL(plan.nview >= 3);
	plan.view = om_memdup(p->mem, plan.view, plan.nview * sizeof *plan.view);
	for (uint32_t k = 0; k < plan.nview; k++)
		repeat(p, &plan.view[k], times[k % 3]);
	CU_ASSERT_EQUAL(om_plan_verify(s, p, &plan), OM_OK);
	CU_ASSERT_EQUAL(om_plan_verify_within(s, p, &plan, 256 * 1024), OM_OK);
	CU_ASSERT_EQUAL(om_plan_verify_within(s, p, &plan, 4 * 1024), OM_BADPLAN);
	CU_ASSERT(strstr(om_message(s), "4096 bytes") != NULL);
	om_prog_free(p);
	om_host_free(h);
	om_session_free(s);
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
	om_session *s = om_session_new();
	struct meter all = {0};
	om_model *m = NULL;
	om_prog *p = NULL;
	char path[1024];

	snprintf(path, sizeof path, OM_SRCDIR "/models/%s", model);
	om_status st = om_model_load(s, path, &m);
	if (st == OM_OK)
		st = om_model_import(s, m, &p);
	om_session_memory(s, counts, &all);
	if (st == OM_OK)
		st = om_model_read_plan(s, m, p, file);
	if (st == OM_OK)
		st = om_plan_verify(s, p, p->plan);
	if (st == OM_MEMORY)
		printf("# %s: %s\n", model, om_message(s));
	om_prog_free(p);
	om_model_free(m);
	om_session_free(s);
	return st;
}

static char *
plan_of(const char *model)
{
	om_session *s = om_session_new();
	om_host *h = om_host_new(s, NULL);
	om_model *m;
	om_prog *p;
	char path[1024], *text = NULL;

	snprintf(path, sizeof path, OM_SRCDIR "/models/%s", model);
	CU_ASSERT_EQUAL_FATAL(om_model_load(s, path, &m), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_model_import(s, m, &p), OM_OK);
	CU_ASSERT_EQUAL_FATAL(bind_rest(s, p, 2), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_host_run(h, p, om_default_pipeline()), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_plan_json(s, m, p, &text), OM_OK);
	om_prog_free(p);
	om_model_free(m);
	om_host_free(h);
	om_session_free(s);
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
