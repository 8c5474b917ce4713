/* SPDX-License-Identifier: Apache-2.0 */
/* Reports as texts, for programs that use the library; see onnxmem/report.h. */
#include <config.h>

#include "base/output_file.h"
#include "onnxmem/report.h"
#include "report/report.h"

typedef om_status form_writer(const om_report *r, om_session *s, om_arena *mem, FILE *to);

static om_status
write_text(const om_report *r, om_session *s, om_arena *mem, FILE *to)
{
	(void)s, (void)mem;
	om_report_text(r, to);
	return OM_OK;
}

static om_status
write_json(const om_report *r, om_session *s, om_arena *mem, FILE *to)
{
	(void)mem;
	return om_report_json(r, s, to);
}

static om_status
write_csv(const om_report *r, om_session *s, om_arena *mem, FILE *to)
{
	(void)s, (void)mem;
	om_report_csv(r, to);
	return OM_OK;
}

static om_status
write_svg(const om_report *r, om_session *s, om_arena *mem, FILE *to)
{
	(void)s, (void)mem;
	om_report_svg(r, to);
	return OM_OK;
}

static om_status
write_ascii(const om_report *r, om_session *s, om_arena *mem, FILE *to)
{
	(void)s, (void)mem;
	om_report_ascii(r, to);
	return OM_OK;
}

static om_status
write_ort(const om_report *r, om_session *s, om_arena *mem, FILE *to)
{
	return om_report_ort(r, s, mem, "", to);
}

static form_writer *const writers[] = {
	[OM_REPORT_TEXT] = write_text, [OM_REPORT_JSON] = write_json, [OM_REPORT_CSV] = write_csv,
	[OM_REPORT_SVG] = write_svg, [OM_REPORT_HTML] = om_report_html, [OM_REPORT_ASCII] = write_ascii,
	[OM_REPORT_ORT] = write_ort,
};

struct writing {
	om_prog *prog;
	const char *name;
	form_writer *write;
};

static om_status
write_report(om_session *s, FILE *to, void *arg)
{
	const struct writing *w = arg;
	om_arena *mem = om_arena_new();
	const om_report *r = om_report_new(w->prog, w->name, mem);
	const om_status st = w->write(r, s, mem, to);

	om_arena_free(mem);
	return st;
}

static om_status
check_plan(om_session *s, const om_prog *p)
{
	return p->plan && (p->has & OM_HAS_PLAN) ? OM_OK : om_fail(s, OM_USAGE, "a report requires a program with a plan");
}

om_status
om_plan_report(om_session *s, om_prog *p, const char *name, om_report_form form, char **text)
{
	struct writing w = {.prog = p, .name = name};
	size_t size;

	*text = NULL;
	if ((size_t)form >= sizeof writers / sizeof writers[0])
		return om_fail(s, OM_USAGE, "there is no form of reports with the number %d", (int)form);
	OM_TRY(check_plan(s, p));
	w.write = writers[form];
	return om_output_memory(s, "the report", write_report, &w, text, &size);
}

om_status
om_plan_report_steps(om_session *s, om_prog *p, om_steps *life)
{
	OM_TRY(check_plan(s, p));
	om_arena *mem = om_arena_new();
	om_timeline(p);
	const om_run_steps run = om_run_steps_new(p, mem);
	for (uint32_t k = 0; k < p->plan->nplace; k++) {
		const om_live_interval *live = &p->plan->place[k].live;
		life[k] = om_run_steps_range(&run, (om_steps){live->first, live->last});
	}
	om_arena_free(mem);
	return OM_OK;
}
