/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of models with open dims: formulas of their symbols.
 *
 * The symbols get a range of sizes, and the model a plan for it, whose formulas are shown.  Not every size is possible for every
 * model, so several ranges are tried, and multiples. */
#include <config.h>

#include <inttypes.h>
#include <jansson.h>

#include "cli/cli.h"
#include "onnxmem/formula.h"
#include "onnxmem/plan.h"
#include "report/json.h"

enum { SHOWN = 8 };

struct symbolic {
	om_cli *c;
	const om_cli_open *open;
	om_report *report;       /* with formulas; NULL: there are none */
	const char *why;         /* there are none */
	om_prog *best;           /* planned without formulas, for the range with most possible sizes; NULL: none */
	uint32_t npoint;         /* how many it has */
	uint32_t whole;          /* by symbol, a bit: all sizes of the first range, in place of multiples */
};

static const int64_t ranges[][3] = {{1, 64, 1}, {16, 256, 1}, {64, 512, 1}, {320, 1280, 1}, {2, 128, 2},
	{4, 256, 4}, {8, 512, 8}, {16, 1024, 16}, {32, 1280, 32}, {64, 1280, 64}, {512, 1536, 512}};
enum { RANGES = sizeof ranges / sizeof ranges[0] };

/* Batches stay 1 if there are many symbols with them: samples are taken for each combination of three sizes of each. */
enum { MOST_ASSUMED = 3 };

static void
assume(struct symbolic *w, size_t k)
{
	om_cli *c = w->c;
	const om_cli_open *o = w->open;
	const size_t first = o->nsymbol > MOST_ASSUMED ? o->nbatch : 0;
	om_dim_range *all = OM_NEWN(c->mem, om_dim_range, o->nsymbol);

	c->nassumed = 0;
	for (size_t n = first; n < o->nsymbol; n++) {
		const int64_t *r = n < o->nbatch || (w->whole >> c->nassumed & 1) ? ranges[0] : ranges[k];
		all[c->nassumed++] = (om_dim_range){o->symbol[n], r[0], r[1], r[2]};
	}
	c->assumed = all;
}

/* Plan for a range; if it has formulas, it is that of the report. */
static om_status
try_range(struct symbolic *w, size_t k)
{
	om_cli *c = w->c;

	assume(w, k);
	om_prog_free(c->prog);
	c->prog = NULL;
	c->nran = 0;
	OM_TRY(om_cli_copy(c));
	const om_status st = om_cli_plan_copy(c);
	if (st == OM_MEMORY)
		return st;
	if (st != OM_OK) {
		w->why = w->why ? w->why : om_strdup(c->mem, om_message(c->session));
		return OM_OK;
	}
	const om_formulas *f = c->prog->plan->formulas;
	if (!f->why) {
		w->report = om_report_new(c->prog, c->arg[0], c->mem);
	} else if (!w->best || f->npoint > w->npoint) {
		w->npoint = f->npoint;
		w->why = om_strdup(c->mem, f->why);
		om_prog_free(w->best);
		w->best = c->prog;
		c->prog = NULL;
	}
	return OM_OK;
}

/* Symbols of which all sizes are possible do not need multiples. */
static om_status
leave_multiples(struct symbolic *w, size_t k)
{
	const uint32_t n = w->c->nassumed;

	for (uint32_t d = 0; d < n; d++) {
		w->whole |= 1u << d;
		w->report = NULL;
		OM_TRY(try_range(w, k));
		if (!w->report)
			w->whole &= ~(1u << d);
	}
	return w->report ? OM_OK : try_range(w, k);
}

/* Without formulas, the report has what a run takes for some sizes. */
static om_status
try_ranges(struct symbolic *w)
{
	om_cli *c = w->c;

	for (size_t k = 0; k < RANGES && !w->report; k++) {
		OM_TRY(try_range(w, k));
		if (w->report && ranges[k][2] > 1)
			OM_TRY(leave_multiples(w, k));
	}
	if (w->report || !w->best)
		return OM_OK;
	om_prog_free(c->prog);
	c->prog = w->best;
	w->best = NULL;
	w->report = om_report_new(c->prog, c->arg[0], c->mem);
	return OM_OK;
}

/* The command that gives what is open, with the options for planning that were given. */
static const char *
command(const struct symbolic *w)
{
	om_cli *c = w->c;
	const char *text = om_printf(c->mem, "onnxmem report %s", om_cli_shell_word(c, c->arg[0]));

	for (size_t k = 0; k < c->nset; k++)
		if (om_cli_decides_plan(c->set[k].opt))
			text = om_printf(c->mem, "%s --%s%s%s", text, c->set[k].opt->name, c->set[k].opt->arg ? " " : "",
				c->set[k].opt->arg ? om_cli_shell_word(c, c->set[k].value) : "");
	return om_printf(c->mem, "%s%s", text, w->open->options);
}

/* ---- Text. ---- */

static om_status
write_text(om_cli *c, FILE *to, const void *arg)
{
	const struct symbolic *w = arg;

	fprintf(to, "%s: dims of inputs are open: %s\nwith numbers: %s\n", om_clean_text(c->mem, c->arg[0]),
		om_clean_text(c->mem, w->open->inputs), om_clean_text(c->mem, command(w)));
	if (!w->report)
		fprintf(to, "\nno formula of the arena: %s\n", om_clean_text(c->mem, w->why));
	else
		om_report_formulas(w->report, c->mem, to);
	if (w->report && c->prog->plan->formulas->npiece)
		om_report_largest(w->report, c->mem, SHOWN, to);
	return OM_OK;
}

/* ---- JSON. ---- */

static om_status
write_json(om_cli *c, FILE *to, const void *arg)
{
	const struct symbolic *w = arg;
	json_t *j = json_pack("{s:s,s:o,s:o,s:o}", "schema", "onnxmem-report-open/1", "model", om_json_text(c->mem, c->arg[0]),
		"open_inputs", om_json_text(c->mem, w->open->inputs), "command", om_json_text(c->mem, command(w)));

	if (w->report)
		json_object_set_new(j, "formulas", om_json_formulas(w->report, c->mem));
	else
		json_object_set_new(j, "why_none", om_json_text(c->mem, w->why));
	return om_json_write(c->session, j, JSON_INDENT(2), to);
}

om_status
om_cli_report_open(om_cli *c)
{
	struct symbolic w = {.c = c, .open = c->open};
	const char *json = om_cli_option(c, "json");

	if (w.open->has_unnamed)
		w.why = "dims without a name are open";
	else if (w.open->nsymbol - w.open->nbatch > MOST_ASSUMED)
		w.why = "more than 3 symbols are open; with numbers for the others and --dim-range for up to 4 there may be one";
	const bool is_possible = !w.why;
	om_session_log(c->session, NULL, NULL, OM_LOG_QUIET);  /* not every try is of interest */
	const om_status st = is_possible ? try_ranges(&w) : OM_OK;
	om_prog_free(w.best);
	OM_TRY(st);
	if (json)
		OM_TRY(om_cli_write(c, json, write_json, &w));
	return json && strcmp(json, "-") == 0 ? OM_OK : om_cli_write(c, "-", write_text, &w);
}
