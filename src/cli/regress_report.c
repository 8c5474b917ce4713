/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of a suite as TAP, JUnit and JSON. */
#include <config.h>

#include <inttypes.h>
#include <jansson.h>

#include "cli/suite.h"
#include "report/json.h"

/* ---- TAP. ---- */

/* In TAP, # begins a comment, and a test is one line. */
static void
put_text(FILE *to, const char *text)
{
	for (; *text; text++)
		putc(*text == '#' || *text == '\n' ? ' ' : *text, to);
}

static void
put_figures(FILE *to, const om_figures *f)
{
	fprintf(to, " (%" PRIu64 " bytes, %s", f->arena, f->status);
	if (f->datasets)
		fprintf(to, ", %" PRIu64 " data set%s", f->datasets, f->datasets == 1 ? "" : "s");
	putc(')', to);
}

static void
put_remark(om_cli *c, FILE *to, const char *text)
{
	if (!*text)
		return;
	fputs("# ", to);
	put_text(to, om_clean_text(c->mem, text));
	putc('\n', to);
}

void
om_tap_line(om_cli *c, FILE *to, size_t k, const om_outcome *o)
{
	fprintf(to, "%s %zu - ", o->end == OM_END_FAIL ? "not ok" : "ok", k + 1);
	put_text(to, om_clean_text(c->mem, o->name));
	if (o->now.known)
		put_figures(to, &o->now);
	if (o->end == OM_END_SKIP) {
		fputs(" # SKIP ", to);
		put_text(to, om_clean_text(c->mem, o->why));
	}
	putc('\n', to);
	put_remark(c, to, o->end == OM_END_FAIL ? o->why : o->note);
	put_remark(c, to, o->peak);
}

om_status
om_tap_write(om_cli *c, FILE *to, const void *arg)
{
	const om_results *r = arg;

	fprintf(to, "1..%zu\n", r->suite->ntrial);
	for (size_t k = 0; k < r->suite->ntrial; k++)
		om_tap_line(c, to, k, &r->o[k]);
	return OM_OK;
}

/* ---- JUnit. ---- */

static void
put_xml(om_cli *c, FILE *to, const char *text)
{
	for (const char *at = om_clean_text(c->mem, text); *at; at++)
		switch (*at) {
		case '&': fputs("&amp;", to); break;
		case '<': fputs("&lt;", to); break;
		case '>': fputs("&gt;", to); break;
		case '"': fputs("&quot;", to); break;
		case '\n': fputs("&#10;", to); break;
		default: putc(*at, to);
		}
}

static void
put_case(om_cli *c, FILE *to, const om_suite *suite, const om_outcome *o)
{
	fputs("  <testcase classname=\"", to);
	put_xml(c, to, suite->name);
	fputs("\" name=\"", to);
	put_xml(c, to, o->name);
	fprintf(to, "\" time=\"%.3f\">\n", o->ms / 1e3);
	if (o->now.known)
		fprintf(to, "    <properties>\n      <property name=\"arena_bytes\" value=\"%" PRIu64 "\"/>\n"
			"      <property name=\"lower_bound_bytes\" value=\"%" PRIu64 "\"/>\n    </properties>\n",
			o->now.arena, o->now.bound);
	if (o->end != OM_END_PASS) {
		fputs(o->end == OM_END_FAIL ? "    <failure message=\"" : "    <skipped message=\"", to);
		put_xml(c, to, o->why);
		fputs(*o->peak ? "\">" : "\"/>\n", to);
	}
	if (*o->peak) {
		put_xml(c, to, o->peak);
		fputs("</failure>\n", to);
	}
	if (*o->note) {
		fputs("    <system-out>", to);
		put_xml(c, to, o->note);
		fputs("</system-out>\n", to);
	}
	fputs("  </testcase>\n", to);
}

om_status
om_junit_write(om_cli *c, FILE *to, const void *arg)
{
	const om_results *r = arg;
	size_t failed = 0, skipped = 0;
	double ms = 0;

	for (size_t k = 0; k < r->suite->ntrial; k++) {
		failed += r->o[k].end == OM_END_FAIL;
		skipped += r->o[k].end == OM_END_SKIP;
		ms += r->o[k].ms;
	}
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"", to);
	put_xml(c, to, r->suite->name);
	fprintf(to, "\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\" time=\"%.3f\">\n", r->suite->ntrial,
		failed, skipped, ms / 1e3);
	for (size_t k = 0; k < r->suite->ntrial; k++)
		put_case(c, to, r->suite, &r->o[k]);
	fputs("</testsuite>\n</testsuites>\n", to);
	return OM_OK;
}

/* ---- JSON. ---- */

static json_t *
figures_json(const om_figures *f)
{
	if (!f->known)
		return json_null();
	json_t *j = json_pack("{s:I, s:I, s:I, s:I, s:f, s:s}", "arena_bytes", (json_int_t)f->arena,
		"lower_bound_bytes", (json_int_t)f->bound, "naive_bytes", (json_int_t)f->naive,
		"data_sets", (json_int_t)f->datasets, "best_ms", f->best_ms, "digest", f->digest);
	json_object_set_new(j, "total_bytes", json_integer((json_int_t)f->total));
	json_object_set_new(j, "weights_bytes", json_integer((json_int_t)f->weights));
	if (*f->status)
		json_object_set_new(j, "status", json_string(f->status));
	return j;
}

om_status
om_results_json(om_cli *c, FILE *to, const void *arg)
{
	static const char *const ends[] = {[OM_END_PASS] = "pass", [OM_END_FAIL] = "fail", [OM_END_SKIP] = "skip"};
	const om_results *r = arg;
	json_t *models = json_array();

	for (size_t k = 0; k < r->suite->ntrial; k++) {
		const om_outcome *o = &r->o[k];
		json_array_append_new(models, json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:f}",
			"name", om_clean_text(c->mem, o->name), "end", ends[o->end], "why", om_clean_text(c->mem, o->why),
			"note", om_clean_text(c->mem, o->note), "peak", om_clean_text(c->mem, o->peak), "now", figures_json(&o->now),
			"baseline", figures_json(&o->before), "ms", o->ms));
	}
	json_t *j = json_pack("{s:s, s:s, s:o}", "schema", "onnxmem-regress/1", "suite",
		om_clean_text(c->mem, r->suite->name), "models", models);
	return om_json_write(c->session, j, JSON_INDENT(1) | JSON_REAL_PRECISION(6), to);
}
