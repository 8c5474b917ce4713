/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies plans with ranges for all of their sizes: one by one as many as OM_MOST_SIZES, or by proof; see range_proof.h.  Formulas that a document
 * states are claims: they are derived again from its places. */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "alloc/stated_formulas.h"
#include "base/guard.h"
#include "host/range_proof.h"
#include "host/range_sizes.h"
#include "onnxmem/pass.h"
#include "onnxmem/binding.h"
#include "onnxmem/builder.h"
#include "onnxmem/formula.h"
#include "onnxmem/onnx.h"

enum {
	MOST_COMPARED = 1 << 20, /* sizes, at which formulas are */
	MOST_OPS = 1 << 22,      /* of the programs for all sizes, which are verified one by one where nothing is proven */
};

struct check {
	om_host *host;
	om_session *session;
	om_arena *mem;
	om_model *model;
	const char *sidecar;
	om_plan *plan;           /* with the ranges */
	om_prog *from;           /* the model, imported again */
	uint64_t most;           /* sizes that are verified one by one, */
	bool is_thorough;        /* or, where nothing is proven, all, if they have few ops */
	uint32_t nop;            /* in the program for the largest sizes */
	om_range_check *out;
};

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
			om_warn(w->session, "the formula of the arena does not hold for %s", om_range_sizes_text(w->mem, plan, n));
			plan->formulas = NULL;
			return;
		}
}

/* Does a formula of the document that says `bytes` promise enough, and, if it is exact, no more? */
static bool
holds(const om_stated_piece *x, uint64_t bytes, uint64_t taken)
{
	return x->is_exact ? bytes == taken : bytes >= taken;
}

/* What a formula of the document says has to be what the plan takes. */
static om_status
check_stated(struct check *w, const om_plan *is, const int64_t *n)
{
	const om_stated_piece *piece;
	uint64_t bytes;

	for (uint32_t k = 0; is->stated && k < is->narena; k++) {
		OM_TRY(om_stated_formula_value(w->session, is, k, n, &bytes, &piece));
		if (!holds(piece, bytes, is->arena[k].bytes))
			return om_fail(w->session, OM_BADPLAN, "the plan: its formula of arena %s, \"%s\", is %" PRIu64 " bytes, but the values take %"
				PRIu64, is->arena[k].name, piece->text[k], bytes, is->arena[k].bytes);
	}
	return OM_OK;
}

/* A plan that was made now has formulas of its own, which its document repeats. */
static om_status
read_one(struct check *w, om_prog *p, const om_binding *b)
{
	OM_TRY(om_host_read_plan(w->host, w->model, p, w->sidecar, b));
	if (w->plan->formulas)
		p->plan->stated = NULL;
	return OM_OK;
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
		st = read_one(w, p, b);
	if (st == OM_OK)
		st = om_plan_verify(w->session, p, p->plan);
	if (st == OM_OK)
		st = om_plan_shrink(w->session, p, p->plan);
	if (st == OM_OK)
		st = om_plan_verify(w->session, p, p->plan);
	if (st == OM_OK)
		check_formulas(w, p->plan, n);
	if (st == OM_OK)
		st = check_stated(w, p->plan, n);
	om_prog_free(p);
	om_binding_free(b);
	return st == OM_OK ? st : om_note(w->session, st, "using the plan for %s", om_range_sizes_text(w->mem, w->plan, n));
}

/* ---- All sizes. ---- */

static uint64_t
count_sizes(const om_plan *plan)
{
	uint64_t all = 1;

	for (uint32_t k = 0; k < plan->nrange; k++) {
		const om_dim_range *r = &plan->range[k];
		if (__builtin_mul_overflow(all, (uint64_t)((r->high - r->low) / om_dim_range_step(r)) + 1, &all))
			return UINT64_MAX;
	}
	return all;
}

/* Compare formulas that are not the same text: at as many sizes as can be. */
static om_status
compare_formulas(struct check *w, const om_prog *p)
{
	om_size_walk at = om_size_walk_new(p->plan->range, p->plan->nrange, MOST_COMPARED, w->mem);
	uint64_t bytes, wanted;
	const om_stated_piece *piece;

	do {
		const om_formula_piece *of = om_formulas_at(p->plan, at.n);
		int64_t n[OM_FORMULA_SYMBOLS] = {0};
		memcpy(n, at.n, p->plan->nrange * sizeof *n);
		for (uint32_t k = 0; of && !of->least && k < p->plan->narena; k++) {
			OM_TRY(om_stated_formula_value(w->session, p->plan, k, at.n, &bytes, &piece));
			wanted = om_formula_value(&of->arena[k], n);
			if (!holds(piece, bytes, wanted))
				return om_fail(w->session, OM_BADPLAN, "the plan: its formula of arena %s, \"%s\", is %" PRIu64 " bytes for %s, but %"
					PRIu64 " follow from its places", p->plan->arena[k].name, piece->text[k], bytes,
					om_range_sizes_text(w->mem, p->plan, at.n), wanted);
		}
		w->out->compared++;
	} while (om_size_walk_next(&at));
	if (!at.is_all)
		w->out->why_formulas_unproven = "they are others than those that are derived from the places of the plan, and the ranges have too many sizes "
			"to compare both in each";
	return OM_OK;
}

/* The formulas that follow from the places of the document, which has some. */
static om_status
derive_formulas(struct check *w, om_prog *p)
{
	OM_TRY(om_host_find_formulas(w->host, w->from, p));
	const om_formulas *f = p->plan->formulas;
	const char *why = f->why ? f->why : f->why_unproven;

	w->out->compared = w->out->verified;
	if (why) {
		w->out->why_formulas_unproven = w->out->verified < w->out->sizes ? om_strdup(w->mem, why) : NULL;
		return OM_OK;
	}
	return om_stated_formulas_equal(p->plan, f) ? OM_OK : compare_formulas(w, p);
}

static om_status
prove(struct check *w, om_prog *p)
{
	const om_ranged r = {w->from, p, p->plan->range, p->plan->nrange};

	if (w->out->verified < w->out->sizes)
		OM_TRY(om_host_prove_range(w->host, &r, p->plan, w->mem, &w->out->why_unproven));
	w->out->has_formulas = p->plan->stated != NULL;
	return p->plan->stated ? derive_formulas(w, p) : OM_OK;
}

/* For the largest sizes, at which proofs start. */
static om_status
prove_rest(struct check *w)
{
	om_prog *p = NULL;
	om_status st = om_prog_bind(w->session, w->from, NULL, &p);

	if (st == OM_OK)
		st = read_one(w, p, NULL);
	if (st == OM_OK)
		st = om_plan_verify(w->session, p, p->plan);
	/* The document has defined dims in the copy. */
	for (size_t k = 0; st == OM_OK && k < p->ndim_definition; k++)
		st = om_prog_define_dim(w->session, w->from, p->dim_definition[k].symbol, p->dim_definition[k].as);
	if (st == OM_OK)
		st = prove(w, p);
	w->nop = st == OM_OK ? p->nop : 0;
	om_prog_free(p);
	return st;
}

static om_status
check_each(struct check *w, uint64_t most)
{
	om_size_walk at = om_size_walk_new(w->plan->range, w->plan->nrange, most, w->mem);

	w->out->verified = 0;
	do {
		OM_TRY(check_one(w, at.n));
		w->out->verified++;
	} while (om_size_walk_next(&at));
	return OM_OK;
}

/* What a document states of formulas is compared for each size, too. */
static om_status
check_unproven(struct check *w)
{
	if (!w->is_thorough || !w->out->why_unproven || w->out->sizes > MOST_OPS / (w->nop + 1))
		return OM_OK;
	OM_TRY(check_each(w, UINT64_MAX));
	w->out->why_unproven = NULL;
	w->out->why_formulas_unproven = NULL;
	w->out->compared = w->out->verified;
	return OM_OK;
}

static om_status
check_all(struct check *w)
{
	w->out->sizes = count_sizes(w->plan);
	OM_TRY(check_each(w, w->most));
	/* Nothing is left of a plan that was verified for each size, and whose formulas were made with it. */
	if (w->plan->formulas && w->out->verified == w->out->sizes)
		return OM_OK;
	OM_TRY(prove_rest(w));
	return check_unproven(w);
}

/* The nodes of a model with a plan are in the order of the plan, so it is imported again. */
static om_status
import_and_check(struct check *w)
{
	om_prog *from = NULL;
	om_status st = om_model_import(w->session, w->model, &from);

	w->from = from;
	if (st == OM_OK)
		st = check_all(w);
	om_prog_free(from);
	return st;
}

static om_status
check_ranges(struct check *w)
{
	*w->out = (om_range_check){.sizes = 1, .verified = w->plan->nrange == 0};
	if (w->plan->nrange == 0)
		return OM_OK;
	OM_GUARDED(w->session, import_and_check(w));
}

om_status
om_host_check_ranges(om_host *h, om_model *m, const char *sidecar, om_plan *plan, uint64_t most, om_arena *mem, om_range_check *out)
{
	struct check w = {.host = h, .session = om_host_session(h), .model = m, .sidecar = sidecar, .plan = plan, .mem = mem,
		.most = most ? most : OM_MOST_SIZES, .is_thorough = most == 0, .out = out};

	return check_ranges(&w);
}

static om_status
check_sizes_guarded(om_host *h, om_model *m, const char *sidecar, om_plan *plan)
{
	om_arena *mem = om_arena_new();
	om_range_check found;
	struct check w = {.host = h, .session = om_host_session(h), .model = m, .sidecar = sidecar, .plan = plan, .mem = mem,
		.most = OM_MOST_SIZES, .out = &found};
	const om_status st = check_ranges(&w);

	if (st == OM_OK && found.why_unproven)
		om_warn(om_host_session(h), "the plan was verified for %" PRIu64 " sizes of its ranges, which have more; it is not proven for the others (%s): "
			"verify tries each, and a run verifies it for its own", found.verified, found.why_unproven);
	om_arena_free(mem);
	return st;
}

om_status
om_host_check_sizes(om_host *h, om_model *m, const char *sidecar, om_plan *plan)
{
	OM_GUARDED(om_host_session(h), check_sizes_guarded(h, m, sidecar, plan));
}
