/* SPDX-License-Identifier: Apache-2.0 */
/* Reports as texts, and models in memory: what programs get without files. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "ir/edit.h"
#include "onnxmem/report.h"
#include "tests/fixtures.h"
#include "unit.h"

static const char program[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[4,8]) {\n"
	"	%a = Neg(%x)\n"
	"	%b = Exp(%a)\n"
	"	ret %b\n"
	"}\n";

static void
has_form(bench *b, om_report_form form, const char *part)
{
	char *text = NULL;

	CU_ASSERT(is_ok(b->s, om_plan_report(b->s, b->p, "folder/some.onnx", form, &text)));
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, part));
	free(text);
}

static void
every_form_is_written(void)
{
	bench b = bench_open();

	CU_ASSERT_FATAL(is_ok(b.s, bench_model(&b, "trained.onnx")));
	CU_ASSERT_FATAL(is_ok(b.s, om_host_run(b.h, b.p, om_default_pipeline())));
	has_form(&b, OM_REPORT_TEXT, "lower bound");
	has_form(&b, OM_REPORT_JSON, "\"model\": \"some.onnx\"");
	has_form(&b, OM_REPORT_CSV, "lower,upper");
	has_form(&b, OM_REPORT_SVG, "</svg>");
	has_form(&b, OM_REPORT_HTML, "</html>");
	has_form(&b, OM_REPORT_ASCII, "|");
	has_form(&b, OM_REPORT_ORT, "initial_chunk_size_bytes");
	bench_close(&b);
}

static void
a_report_requires_a_plan(void)
{
	bench b = bench_open();
	char *text = (char *)program;

	CU_ASSERT_FATAL(is_ok(b.s, bench_plan(&b, program, "shapes")));
	CU_ASSERT(is_told(b.s, om_plan_report(b.s, b.p, "t", OM_REPORT_JSON, &text), OM_USAGE, "requires a program with a plan"));
	CU_ASSERT_PTR_NULL(text);
	CU_ASSERT_FATAL(is_ok(b.s, om_host_run(b.h, b.p, om_default_pipeline())));
	CU_ASSERT(is_told(b.s, om_plan_report(b.s, b.p, "t", (om_report_form)99, &text), OM_USAGE, "number 99"));
	bench_close(&b);
}

/* As in reports, folded ops have no steps. */
static void
steps_are_those_of_a_run(void)
{
	bench b = bench_open();
	om_steps life[16];

	CU_ASSERT_FATAL(is_ok(b.s, bench_plan(&b, "program \"t\" ir 8 opset 17\n^g(%x: float32[8,8]) {\n%w = const float32[1] {2}\n"
		"%k = Neg(%w)\n%a = Mul(%x, %k)\n%b = MatMul(%a, %x)\n%c = MatMul(%b, %a)\nret %c\n}\n", "shapes")));
	CU_ASSERT(is_told(b.s, om_plan_report_steps(b.s, b.p, life), OM_USAGE, "requires a program with a plan"));
	CU_ASSERT_FATAL(is_ok(b.s, om_host_run(b.h, b.p, "shapes,fold,liveness,pack")));
	CU_ASSERT_FATAL(b.p->plan->nplace <= 16);
	CU_ASSERT_FATAL(is_ok(b.s, om_plan_report_steps(b.s, b.p, life)));
	CU_ASSERT_EQUAL(b.p->plan->place[om_prog_find(b.p, "a")->id].live.first, 1);
	CU_ASSERT_EQUAL(life[om_prog_find(b.p, "a")->id].first, 0);
	CU_ASSERT_EQUAL(life[om_prog_find(b.p, "a")->id].last, 2);
	CU_ASSERT_EQUAL(life[om_prog_find(b.p, "b")->id].first, 1);
	bench_close(&b);
}

/* Values are found by their names; an explanation has two forms. */
static void
explanations_are_written(void)
{
	bench b = bench_open();
	const om_value *v = NULL;
	char *text = (char *)program;

	CU_ASSERT_FATAL(is_ok(b.s, bench_plan(&b, program, "shapes")));
	CU_ASSERT(is_told(b.s, om_plan_find_value(b.s, b.p, NULL, "a", &v), OM_USAGE, "requires a program with a plan"));
	CU_ASSERT(is_told(b.s, om_plan_why(b.s, b.p, "t", NULL, OM_REPORT_TEXT, &text), OM_USAGE, "requires a program with a plan"));
	CU_ASSERT_PTR_NULL(text);
	CU_ASSERT_FATAL(is_ok(b.s, om_host_run(b.h, b.p, om_default_pipeline())));
	CU_ASSERT(is_told(b.s, om_plan_find_value(b.s, b.p, NULL, "aa", &v), OM_USAGE, "no value is called aa; the nearest are a"));
	CU_ASSERT_PTR_NULL(v);
	CU_ASSERT(is_ok(b.s, om_plan_find_value(b.s, b.p, NULL, "a", &v)));
	CU_ASSERT_PTR_EQUAL(v, om_prog_find(b.p, "a"));
	CU_ASSERT(is_ok(b.s, om_plan_why(b.s, b.p, "t", v, OM_REPORT_JSON, &text)));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"name\": \"a\""));
	free(text);
	CU_ASSERT(is_told(b.s, om_plan_why(b.s, b.p, "t", v, OM_REPORT_SVG, &text), OM_USAGE, "text or JSON"));
	bench_close(&b);
}

/* A report compared with itself differs in nothing. */
static void
reports_are_compared(void)
{
	bench b = bench_open();
	char *report, *text;

	CU_ASSERT_FATAL(is_ok(b.s, bench_model(&b, "trained.onnx")));
	CU_ASSERT_FATAL(is_ok(b.s, om_host_run(b.h, b.p, om_default_pipeline())));
	CU_ASSERT_FATAL(is_ok(b.s, om_plan_report(b.s, b.p, "m", OM_REPORT_JSON, &report)));
	CU_ASSERT(is_ok(b.s, om_reports_compare(b.s, report, "a", report, "b", OM_REPORT_JSON, &text)));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"arena_bytes\": 0"));
	free(text);
	CU_ASSERT(is_told(b.s, om_reports_compare(b.s, report, "a", "[", "b", OM_REPORT_JSON, &text), OM_MALFORMED, "b: it is not JSON"));
	CU_ASSERT_PTR_NULL(text);
	CU_ASSERT(is_told(b.s, om_reports_compare(b.s, "{}", "a", report, "b", OM_REPORT_MARKDOWN, &text), OM_MALFORMED, "a: "));
	CU_ASSERT(is_told(b.s, om_reports_compare(b.s, report, "a", report, "b", OM_REPORT_SVG, &text), OM_USAGE, "Markdown"));
	free(report);
	bench_close(&b);
}

/* A planned model goes through memory and is the same program with the same plan. */
static void
models_are_saved_to_memory(void)
{
	bench b = bench_open();
	om_model *again = NULL;
	om_prog *p = NULL;
	char *data;
	size_t size;

	CU_ASSERT_FATAL(is_ok(b.s, bench_model(&b, "trained.onnx")));
	CU_ASSERT_FATAL(is_ok(b.s, om_host_run(b.h, b.p, om_default_pipeline())));
	CU_ASSERT_FATAL(is_ok(b.s, om_model_annotate(b.s, b.model, b.p, OM_ANNOTATE_MODEL)));
	CU_ASSERT_FATAL(is_ok(b.s, om_model_save_memory(b.s, b.model, &data, &size)));
	CU_ASSERT_FATAL(is_ok(b.s, om_model_load_memory(b.s, data, size, "again", NULL, &again)));
	free(data);
	CU_ASSERT(om_model_has_plan(again));
	CU_ASSERT_FATAL(is_ok(b.s, om_model_import(b.s, again, &p)));
	CU_ASSERT(is_ok(b.s, om_model_read_plan(b.s, again, p, NULL)));
	CU_ASSERT(is_ok(b.s, om_plan_verify(b.s, p, p->plan)));
	CU_ASSERT_EQUAL(p->plan->arena[0].bytes, b.p->plan->arena[0].bytes);
	om_prog_free(p);
	om_model_free(again);
	bench_close(&b);
}

static CU_TestInfo report_tests[] = {
	{"every form of a report is written to memory", every_form_is_written},
	{"a report requires a plan and a known form", a_report_requires_a_plan},
	{"steps of values are those of a run", steps_are_those_of_a_run},
	{"explanations are written to memory", explanations_are_written},
	{"reports are compared", reports_are_compared},
	{"a planned model is saved to memory", models_are_saved_to_memory},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("reports", report_tests);
