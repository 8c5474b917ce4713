/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies plans with ranges for all of their sizes. */
#include <config.h>

#include <inttypes.h>

#include "base/guard.h"
#include "host/range_sizes.h"
#include "onnxmem/pass.h"
#include "onnxmem/binding.h"
#include "onnxmem/formula.h"
#include "onnxmem/onnx.h"

struct check {
	om_host *host;
	om_session *session;
	om_arena *mem;
	om_model *model;
	const char *sidecar;
	om_plan *plan;           /* with the ranges */
	const om_prog *from;     /* the model, imported again */
	uint64_t checked;
};

static const char *
binding_text(struct check *w, const om_plan *plan, const int64_t *n)
{
	const char *text = "";

	for (uint32_t k = 0; k < plan->nrange; k++)
		text = om_printf(w->mem, "%s%s%s = %" PRId64, text, k ? ", " : "", plan->range[k].symbol, n[k]);
	return text;
}

static om_status
bind_sizes(struct check *w, const om_plan *plan, const int64_t *n, om_binding *b)
{
	if (!b)
		return om_fail(w->session, OM_MEMORY, "no memory to bind symbols");
	for (uint32_t k = 0; k < plan->nrange; k++)
		OM_TRY(om_binding_dim(w->session, b, plan->range[k].symbol, n[k]));
	return OM_OK;
}

/* Formulas that promise less than a plan takes are none. */
static void
check_formulas(struct check *w, const om_plan *is, const int64_t *n)
{
	om_plan *plan = w->plan;
	const om_formula_piece *at = om_formulas_at(plan, n);
	int64_t all[OM_FORMULA_SYMBOLS] = {0};

	for (uint32_t d = 0; at && d < plan->nrange; d++)
		all[d] = n[d];
	for (uint32_t k = 0; at && k < plan->narena; k++)
		if (om_formula_value(&at->arena[k], all) < is->arena[k].bytes) {
			om_warn(w->session, "the formula of the arena does not hold for %s", binding_text(w, plan, n));
			plan->formulas = NULL;
			return;
		}
}

/* Read and verify the plan for one size of each range: at the offsets of the document, and shrunk. */
static om_status
check_one(struct check *w, const int64_t *n)
{
	om_binding *b = om_binding_new();
	om_prog *p = NULL;
	om_status st = bind_sizes(w, w->plan, n, b);

	if (st == OM_OK)
		st = om_prog_bind(w->session, w->from, NULL, &p);
	if (st == OM_OK)
		st = om_host_read_plan(w->host, w->model, p, w->sidecar, b);
	if (st == OM_OK)
		st = om_plan_verify(w->session, p, p->plan);
	if (st == OM_OK)
		st = om_plan_shrink(w->session, p, p->plan);
	if (st == OM_OK)
		st = om_plan_verify(w->session, p, p->plan);
	if (st == OM_OK)
		check_formulas(w, p->plan, n);
	om_prog_free(p);
	om_binding_free(b);
	return st == OM_OK ? st : om_note(w->session, st, "using the plan for %s", binding_text(w, w->plan, n));
}

static om_status
check_all(struct check *w)
{
	om_size_walk at = om_size_walk_new(w->plan->range, w->plan->nrange, OM_MOST_SIZES, w->mem);

	do {
		OM_TRY(check_one(w, at.n));
		w->checked++;
	} while (om_size_walk_next(&at));
	if (!at.is_all)
		om_warn(w->session, "the plan was verified for %" PRIu64 " sizes of its ranges, which have more; a run verifies it "
			"for its own sizes", w->checked);
	return OM_OK;
}

/* The nodes of a model with a plan are in the order of the plan, so it is imported again. */
static om_status
import_and_check(struct check *w)
{
	om_prog *from = NULL;
	om_status st = om_model_import(w->session, w->model, &from);

	w->from = from;
	w->mem = om_arena_new();
	if (st == OM_OK)
		st = check_all(w);
	om_arena_free(w->mem);
	om_prog_free(from);
	return st;
}

om_status
om_host_check_sizes(om_host *h, om_model *m, const char *sidecar, om_plan *plan)
{
	struct check w = {.host = h, .session = om_host_session(h), .model = m, .sidecar = sidecar, .plan = plan};

	if (plan->nrange == 0)
		return OM_OK;
	OM_GUARDED(om_host_session(h), import_and_check(&w));
}
