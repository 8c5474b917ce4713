/* SPDX-License-Identifier: Apache-2.0 */
/* Regions: which ops of an interval run in bands, along which axes, and which run before the bands.
 *
 * The interval is read backward.  A result gets the axis that is tried, and the rule of each op gives the axes of its
 * inputs from that of its output.  A value that some op needs as a whole is computed before the bands, with all that
 * leads to it.  An op before the bands whose parts are needed, too, runs again in the bands if it is cheap, so that
 * its whole result need not stay; otherwise its result is cut. */
#include <config.h>

#include "lower/tile/tile_internal.h"

/* Elementwise ops and normalizations take fewer operations for each element. */
enum { CHEAP = 24 };

struct walk {
	om_tile_region *r;
	om_tile_rule **rule;      /* by position in the interval; NULL: the op runs before the bands, if at all */
	bool *is_before;
};

/* ---- Values. ---- */

om_tile_value *
om_tile_value_of(const om_tile_region *r, const om_value *v)
{
	return r->of[v->id] ? &r->value[r->of[v->id] - 1] : NULL;
}

static bool
is_inside(const om_tile_region *r, const om_value *v)
{
	const uint32_t at = v->def ? r->g->position[v->def->id] : OM_TILE_NONE;

	return at != OM_TILE_NONE && at >= r->first && at < r->end;
}

static om_tile_value *
entry(om_tile_region *r, const om_value *v)
{
	if (!r->of[v->id]) {
		OM_PUSH(r->mem, r->value, r->nvalue, r->capvalue, ((om_tile_value){.v = v, .axis = OM_WHOLE}));
		r->of[v->id] = (uint32_t)r->nvalue;
		r->value[r->nvalue - 1].is_out = is_inside(r, v) && om_tile_is_read_after(r->g, v, r->end);
	}
	return &r->value[r->of[v->id] - 1];
}

static bool
is_plain(const om_value *v)
{
	return v->type.kind == OM_TENSOR && om_shape_is_known(&v->shape) && om_dtype_bits(v->type.elem) >= 8
		&& v->type.elem != OM_STRING && om_shape_count(&v->shape) > 0;
}

/* ---- Axes. ---- */

/* The axis that results of this rank are divided along; -1: none. */
static int
preferred(om_tile_axis axis, int rank)
{
	static const int of[OM_TILE_SUM][6] = {
		[OM_TILE_ROWS] = {-1, 0, 0, 1, 2, 3},
		[OM_TILE_COLUMNS] = {-1, -1, 1, 2, 3, 4},
		[OM_TILE_CHANNELS] = {-1, -1, -1, -1, 1, 1},
	};

	return axis < OM_TILE_SUM && rank >= 0 && rank < 6 ? of[axis][rank] : -1;
}

static bool
set_axis(om_tile_region *r, const om_value *v, int axis)
{
	om_tile_value *e = entry(r, v);

	if (e->axis != OM_WHOLE && e->axis != axis)
		return false;
	e->axis = axis;
	return true;
}

/* An output that has no part, as others of Split along its axis, has to be one that nothing reads. */
static bool
pass_to_output(om_tile_region *r, const om_tile_rule *rule, uint32_t k)
{
	const om_value *v = rule->op->out[k];

	if (rule->out[k].axis != OM_WHOLE && rule->out[k].lo == rule->out[k].hi)
		return !r->of[v->id] && !om_tile_is_read_after(r->g, v, r->end);
	return rule->out[k].axis != OM_WHOLE && is_plain(v) && set_axis(r, v, rule->out[k].axis);
}

/* The inputs of an op get the axes of its rule. */
static bool
pass_on(om_tile_region *r, const om_tile_rule *rule)
{
	for (uint32_t k = 0; k < rule->op->nin; k++) {
		const om_value *v = rule->op->in[k];
		if (!v || (om_tile_is_const(v) && (rule->in[k].axis == OM_WHOLE || (v->data && is_plain(v)))))
			continue;
		if (om_tile_is_const(v))
			return false;
		if (rule->in[k].axis == OM_WHOLE)
			entry(r, v)->is_whole = true;
		else if (!is_plain(v) || !set_axis(r, v, rule->in[k].axis))
			return false;
	}
	for (uint32_t k = 0; !rule->is_sum && k < rule->op->nout; k++)
		if (rule->op->out[k] && !pass_to_output(r, rule, k))
			return false;
	return true;
}

static bool
is_read_inside(const om_tile_region *r, const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && r->of[op->out[k]->id])
			return true;
	return false;
}

/* The sum that gives the only output of `op`. */
static om_tile_rule *
sum_rule(om_tile_region *r, const om_op *op)
{
	const om_value *x = op->nin ? op->in[0] : NULL;
	om_tile_rule *rule = NULL;

	if (!x || op->nout != 1 || om_tile_is_const(x) || !is_plain(op->out[0]))
		return NULL;
	if (r->axis != OM_TILE_SUM)
		return om_tile_rule_sum(r->g, op, 0, preferred(r->axis, x->shape.rank));
	rule = om_tile_rule_sum(r->g, op, 0, x->shape.rank - 1);
	return rule || x->shape.rank < 3 ? rule : om_tile_rule_sum(r->g, op, 0, 1);
}

/* The rule of an op whose results have no axis yet. */
static om_tile_rule *
rule_of_result(om_tile_region *r, const om_op *op)
{
	const om_value *v = op->out[0];
	om_tile_rule *rule = NULL;

	if (r->axis != OM_TILE_SUM && v && is_plain(v))
		rule = om_tile_rule_for(r->g, op, 0, preferred(r->axis, v->shape.rank));
	if (rule && rule->length < 2)
		rule = NULL;
	return rule || is_read_inside(r, op) ? rule : sum_rule(r, op);
}

static om_tile_rule *
rule_of(om_tile_region *r, const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++) {
		const om_tile_value *e = op->out[k] ? om_tile_value_of(r, op->out[k]) : NULL;
		if (e && e->axis != OM_WHOLE)
			return om_tile_rule_for(r->g, op, k, e->axis);
	}
	return rule_of_result(r, op);
}

/* Are all outputs of the op that are used needed as wholes only? */
static bool
is_whole_only(const om_tile_region *r, const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++) {
		const om_tile_value *e = op->out[k] ? om_tile_value_of(r, op->out[k]) : NULL;
		if (e && (e->axis != OM_WHOLE || !e->is_whole))
			return false;
	}
	return is_read_inside(r, op);
}

static bool
is_allowed(const om_op *op)
{
	return op->opdef && op->opdef->control == OM_PLAIN && op->nbody == 0
		&& !(op->opdef->flags & (OM_RANDOM | OM_EFFECT | OM_DATA_DEPENDENT_SHAPE | OM_NON_TENSOR));
}

static bool
find_axes(struct walk *w)
{
	om_tile_region *r = w->r;

	for (uint32_t i = r->end; i-- > r->first;) {
		om_op *op = r->g->op[i];
		r->refused_at = op;
		if (!is_allowed(op))
			return false;
		if (is_whole_only(r, op)) {
			for (uint32_t k = 0; k < op->nin; k++)
				if (op->in[k] && !om_tile_is_const(op->in[k]))
					entry(r, op->in[k])->is_whole = true;
			continue;
		}
		w->rule[i - r->first] = rule_of(r, op);
		if (!w->rule[i - r->first] || !pass_on(r, w->rule[i - r->first]))
			return false;
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k])
				entry(r, op->out[k]);
	}
	return true;
}

/* ---- What runs where. ---- */

/* All that leads to values that are needed as wholes. */
static void
find_before(struct walk *w)
{
	om_tile_region *r = w->r;

	for (uint32_t i = r->end; i-- > r->first;) {
		const om_op *op = r->g->op[i];
		for (uint32_t k = 0; k < op->nout; k++) {
			const om_tile_value *e = op->out[k] ? om_tile_value_of(r, op->out[k]) : NULL;
			w->is_before[i - r->first] |= e && e->is_whole;
		}
		for (uint32_t k = 0; k < op->nin && w->is_before[i - r->first]; k++)
			if (op->in[k] && !om_tile_is_const(op->in[k]) && is_inside(r, op->in[k]))
				entry(r, op->in[k])->is_whole = true;
	}
}

static bool
is_cheap(const om_op *op)
{
	return om_op_cost(op).flops <= (double)CHEAP * (double)om_shape_count(&op->out[0]->shape);
}

/* Mark the ops that run in bands; a marked value is needed in parts. */
static bool
find_bands(struct walk *w, bool *is_banded)
{
	om_tile_region *r = w->r;
	bool *is_needed = OM_NEWN(r->mem, bool, r->nvalue);

	for (uint32_t i = r->end; i-- > r->first;) {
		const om_op *op = r->refused_at = r->g->op[i];
		om_tile_rule *rule = w->rule[i - r->first];
		const bool is_before = w->is_before[i - r->first];
		bool any = false;
		for (uint32_t k = 0; k < op->nout; k++) {
			const om_tile_value *e = op->out[k] ? om_tile_value_of(r, op->out[k]) : NULL;
			any |= e && (is_needed[e - r->value] || (e->is_out && !is_before));
		}
		if (!any && !is_before)
			return false;
		if (!any || (is_before && (!rule || rule->is_sum || !is_cheap(op))))
			continue;
		if (!rule)
			return false;
		is_banded[i - r->first] = true;
		for (uint32_t k = 0; k < op->nin; k++)
			if (om_tile_is_divided(rule, k))
				is_needed[r->of[op->in[k]->id] - 1] = true;
	}
	return true;
}

/* A result that is computed before the bands need not be computed in them. */
static void
list_bands(struct walk *w, const bool *is_banded)
{
	om_tile_region *r = w->r;

	r->band = OM_NEWN(r->mem, om_tile_rule *, r->end - r->first);
	for (uint32_t i = r->first; i < r->end; i++) {
		om_op *op = r->g->op[i];
		for (uint32_t k = 0; k < op->nout; k++) {
			om_tile_value *e = op->out[k] ? om_tile_value_of(r, op->out[k]) : NULL;
			if (e) {
				e->is_before = w->is_before[i - r->first];
				e->is_banded = is_banded[i - r->first];
			}
		}
		if (is_banded[i - r->first])
			r->band[r->nband++] = w->rule[i - r->first];
	}
}

/* ---- Expansions. ---- */

/* The only input that is divided; NONE: there are others, or none. */
static uint32_t
divided_input(const om_tile_rule *rule)
{
	uint32_t at = OM_TILE_NONE, n = 0;

	for (uint32_t k = 0; k < rule->op->nin; k++)
		if (om_tile_is_divided(rule, k)) {
			at = k;
			n++;
		}
	return n == 1 ? at : OM_TILE_NONE;
}

/* Does each row need that row of input `k` alone? */
static bool
is_row_by_row(om_tile_rule *rule, uint32_t k)
{
	for (int64_t i = 0; i < rule->length; i++)
		if (om_tile_from(rule, k, i) != i || om_tile_to(rule, k, i + 1) != i + 1)
			return false;
	return true;
}

/* Does the op, such as DequantizeLinear, make a larger value of each row?  Then rows of its input are kept for later bands,
 * and each reader has the op run for the rows that it needs: in between is nothing that keeps other runtimes from fusing
 * the two.  */
static bool
is_expansion(const om_tile_region *r, om_tile_rule *rule)
{
	const uint32_t k = divided_input(rule);

	if (rule->is_sum || k == OM_TILE_NONE || rule->op->nout != 1 || rule->index != 0)
		return false;
	const om_value *x = rule->op->in[k], *y = rule->op->out[0];
	const om_tile_value *from = om_tile_value_of(r, x), *to = om_tile_value_of(r, y);
	return !to->is_out && !to->is_before && from->axis == to->axis && !from->expands && om_shape_equal(&x->shape, &y->shape)
		&& om_dtype_bits(x->type.elem) < om_dtype_bits(y->type.elem) && is_row_by_row(rule, k);
}

/* ---- Readers. ---- */

om_tile_value *
om_tile_value_held(const om_tile_region *r, const om_value *v)
{
	om_tile_value *e = om_tile_value_of(r, v);

	return e && e->expands ? om_tile_value_of(r, e->expands->op->in[divided_input(e->expands)]) : e;
}

static void
list_readers_of(om_tile_region *r, uint32_t b)
{
	const om_tile_rule *rule = r->band[b];

	for (uint32_t k = 0; k < rule->op->nin; k++) {
		if (!om_tile_is_divided(rule, k))
			continue;
		om_tile_value *e = om_tile_value_held(r, rule->op->in[k]);
		e->is_source = !e->is_banded;
		if (!r->is_expansion[b])
			OM_PUSH(r->mem, e->reader, e->nreader, e->capreader, ((om_tile_reader){b, k}));
	}
}

/* The readers of values in the bands, the sources, and the longest of them. */
static void
list_readers(om_tile_region *r)
{
	r->is_expansion = OM_NEWN(r->mem, bool, r->nband);
	for (uint32_t b = 0; b < r->nband; b++) {
		om_tile_rule *rule = r->band[b];
		r->longest = rule->length > r->longest ? rule->length : r->longest;
		r->is_expansion[b] = is_expansion(r, rule);
		if (r->is_expansion[b])
			om_tile_value_of(r, rule->op->out[0])->expands = rule;
		list_readers_of(r, b);
	}
}

/* ---- Order of the ops before the bands. ---- */

static void
add_before(struct walk *w, om_op *op, bool *is_listed)
{
	om_tile_region *r = w->r;
	const uint32_t at = r->g->position[op->id];

	if (at == OM_TILE_NONE || at < r->first || at >= r->end || is_listed[at - r->first])
		return;
	is_listed[at - r->first] = true;
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && op->in[k]->def)
			add_before(w, op->in[k]->def, is_listed);
	OM_PUSH(r->mem, r->before, r->nbefore, r->capbefore, op);
}

/* Depth first, so that what leads to one value is gone before the next. */
static void
list_before(struct walk *w)
{
	om_tile_region *r = w->r;
	bool *is_listed = OM_NEWN(r->mem, bool, r->end - r->first);

	for (uint32_t b = 0; b < r->nband; b++)
		for (uint32_t k = 0; k < r->band[b]->op->nin; k++) {
			const om_value *v = r->band[b]->op->in[k];
			const om_tile_value *e = v ? om_tile_value_of(r, v) : NULL;
			if (e && e->is_before && (!e->is_banded || r->band[b]->in[k].axis == OM_WHOLE))
				add_before(w, v->def, is_listed);
		}
	for (uint32_t i = r->first; i < r->end; i++)
		if (w->is_before[i - r->first])
			add_before(w, r->g->op[i], is_listed);
}

bool
om_tile_region_new(om_tile_graph *g, uint32_t first, uint32_t end, om_tile_axis axis, om_arena *mem, om_tile_region *r)
{
	bool *is_banded = OM_NEWN(mem, bool, end - first);
	struct walk w = {r, OM_NEWN(mem, om_tile_rule *, end - first), OM_NEWN(mem, bool, end - first)};

	*r = (om_tile_region){.g = g, .mem = mem, .first = first, .end = end, .axis = axis,
		.of = OM_NEWN(mem, uint32_t, g->p->nvalue)};
	if (!find_axes(&w))
		return false;
	find_before(&w);
	if (!find_bands(&w, is_banded))
		return false;
	list_bands(&w, is_banded);
	list_readers(r);
	list_before(&w);
	return r->nband > 0;
}
