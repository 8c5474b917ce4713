/* SPDX-License-Identifier: Apache-2.0 */
/* Explanations and comparisons as texts, for programs that use the library; see onnxmem/report.h. */
#include <config.h>

#include "base/output_file.h"
#include "onnxmem/report.h"
#include "report/diff.h"
#include "report/why.h"

/* ---- Why. ---- */

struct question {
	om_prog *prog;
	const char *name;
	const om_value *value;
	om_report_form form;
};

static om_status
write_why(om_session *s, FILE *to, void *arg)
{
	const struct question *q = arg;
	om_arena *mem = om_arena_new();
	const om_report *r = om_report_new(q->prog, q->name, mem);
	om_status st = OM_OK;

	if (q->form == OM_REPORT_JSON)
		st = om_why_json(r, q->value, s, to);
	else
		om_why_text(r, q->value, to);
	om_arena_free(mem);
	return st;
}

om_status
om_plan_why(om_session *s, om_prog *p, const char *name, const om_value *v, om_report_form form, char **text)
{
	struct question q = {p, name, v, form};
	size_t size;

	*text = NULL;
	if (form != OM_REPORT_TEXT && form != OM_REPORT_JSON)
		return om_fail(s, OM_USAGE, "an explanation is text or JSON: it has no form with the number %d", (int)form);
	if (!p->plan || !(p->has & OM_HAS_PLAN))
		return om_fail(s, OM_USAGE, "an explanation requires a program with a plan");
	return om_output_memory(s, "the explanation", write_why, &q, text, &size);
}

/* ---- Comparisons. ---- */

struct comparison {
	const char *name[2], *text[2];
	json_t *report[2];
	om_report_form form;
};

static om_status
read_reports(om_session *s, struct comparison *w)
{
	json_error_t e;

	for (int k = 0; k < 2; k++) {
		w->report[k] = json_loads(w->text[k], JSON_REJECT_DUPLICATES, &e);
		if (!w->report[k])
			return om_fail(s, OM_MALFORMED, "%s: it is not JSON: %s (line %d)", w->name[k], e.text, e.line);
	}
	return OM_OK;
}

static om_status
write_comparison(om_session *s, FILE *to, void *arg)
{
	const struct comparison *w = arg;
	om_arena *mem = om_arena_new();
	om_diff *d;
	om_status st = om_diff_new(s, w->report[0], w->name[0], w->report[1], w->name[1], mem, &d);

	if (st == OM_OK && w->form == OM_REPORT_JSON)
		st = om_diff_json(d, s, to);
	else if (st == OM_OK && w->form == OM_REPORT_MARKDOWN)
		om_diff_markdown(d, mem, to);
	else if (st == OM_OK)
		om_diff_text(d, mem, to);
	om_arena_free(mem);
	return st;
}

om_status
om_reports_compare(om_session *s, const char *old, const char *old_name, const char *now, const char *now_name,
	om_report_form form, char **text)
{
	struct comparison w = {.name = {old_name, now_name}, .text = {old, now}, .form = form};
	size_t size;

	*text = NULL;
	if (form != OM_REPORT_TEXT && form != OM_REPORT_JSON && form != OM_REPORT_MARKDOWN)
		return om_fail(s, OM_USAGE, "a comparison is text, JSON or Markdown: it has no form with the number %d", (int)form);
	om_status st = read_reports(s, &w);
	if (st == OM_OK)
		st = om_output_memory(s, "the comparison", write_comparison, &w, text, &size);
	json_decref(w.report[0]);
	json_decref(w.report[1]);
	return st;
}
