/* SPDX-License-Identifier: Apache-2.0 */
/* The locations of values that rotate buffers in a loop.
 *
 * The steps of such a loop are shown as its first iterations side by side, as many
 * as are needed for all rotating values to have been at all of their locations: a
 * value then has one location in each of them.  Views of such a value, and values
 * computed over it, move with it.  No other value uses these bytes in these steps,
 * so nothing is hidden.
 */
#include <config.h>

#include <inttypes.h>

#include "ir/alias_roots.h"
#include "report/report.h"

enum { MAX_ITERATIONS_SHOWN = 16 };  /* iterations shown */

/* Facts about a loop while its values are examined. */
struct loop {
	const om_op *op;
	uint32_t iterations;         /* iterations shown */
};

struct view_context {
	om_report *r;
	om_arena *mem;
	const om_plan_multi_view **view;   /* by value id; NULL: does not move */
	const om_alias_root *mover;  /* by value id: the first value that a view moves, of those that its aliases lead to */
	struct loop *loop;           /* by op id */
};

/* ---- As text. ---- */

static const char *
region_text(om_arena *mem, const om_prog *p, const om_region *at)
{
	if (at->base == OM_NO_VALUE)
		return om_printf(mem, "%" PRIu64, at->offset);
	const char *base = om_clean_text(mem, p->values[at->base]->name);
	return at->offset ? om_printf(mem, "%s + %" PRIu64, base, at->offset) : base;
}

const char *
om_report_moving(const om_prog *p, const om_plan_multi_view *v, om_arena *mem)
{
	const char *out = "";

	for (uint32_t k = 0; k < v->nprologue; k++)
		out = om_printf(mem, "%siteration %" PRIu32 " at %s, ", out, k, region_text(mem, p, &v->first[k]));
	if (v->nprologue)
		out = om_printf(mem, "%sthen ", out);
	for (uint32_t k = 0; k < v->period; k++)
		out = om_printf(mem, "%s%s%s", out, k ? ", " : v->period > 1 ? "rotates through " : "at ",
			region_text(mem, p, &v->off[k]));
	return v->stride ? om_printf(mem, "%s, %" PRId64 " bytes further in each iteration", out, v->stride)
		: out;
}

/* The iterations in which a value is where it is in iteration `i`. */
static const char *
iterations_text(om_arena *mem, const om_plan_multi_view *v, uint64_t i, uint64_t each, int64_t known)
{
	const uint64_t last = known < 0 ? UINT64_MAX : (uint64_t)known;   /* of an output; else one less */
	const char *after = v->is_output ? "after iteration" : "iteration";

	if (each > 1)
		return om_printf(mem, "%ss %" PRIu64 " to %" PRIu64, after, i, i + each - 1);
	if (v->stride || i < v->nprologue)
		return om_printf(mem, "%s %" PRIu64, after, i);
	if (v->period == 1 && i + 1 < last)
		return v->nprologue ? om_printf(mem, "%ss %" PRIu64 " and later", after, i) : "every iteration";
	while (i >= v->nprologue + v->period)
		i -= v->period;
	if (i + v->period >= last)
		return om_printf(mem, "%s %" PRIu64, after, i);
	if (i + 2 * v->period >= last)
		return om_printf(mem, "%ss %" PRIu64 " and %" PRIu64, after, i, i + v->period);
	return om_printf(mem, "%ss %" PRIu64 ", %" PRIu64 ", %" PRIu64 "…", after, i, i + v->period, i + 2 * v->period);
}

/* ---- Locations. ---- */

/* The multi-view that moves a value, and the value's offset in it; NULL: none. */
static const om_plan_multi_view *
view_of(const struct view_context *t, uint32_t id, uint64_t *offset)
{
	*offset = t->mover[id].offset;
	return t->view[t->mover[id].value];
}

/* The address of a region at the first start of the loop; false for memory of the
 * caller and weights. */
static bool
resolve(const struct view_context *t, om_region at, om_loop_view *out)
{
	const om_plan *plan = t->r->prog->plan;
	uint64_t inside;

	for (uint32_t hops = 0; at.base != OM_NO_VALUE && hops <= t->r->prog->nvalue; hops++) {
		const om_plan_multi_view *v = view_of(t, at.base, &inside);
		const om_placement *place = &plan->place[at.base];
		if (v) {
			const uint64_t offset = at.offset + inside;
			at = v->nprologue ? v->first[0] : v->off[0];
			at.offset += offset;
		} else if (place->where == OM_IN_ARENA) {
			at = (om_region){OM_NO_VALUE, place->arena, place->offset + at.offset};
		} else {
			return false;
		}
	}
	out->arena = at.arena;
	out->offset = at.offset;
	return at.base == OM_NO_VALUE && at.arena < plan->narena;
}

/* The location in iteration `i`; for slices the bytes of `each` iterations. */
static bool
locate(const struct view_context *t, const om_plan_multi_view *v, uint64_t i, uint64_t each, uint64_t inside,
	om_loop_view *out)
{
	const om_region *at = i < v->nprologue ? &v->first[i] : &v->off[i % v->period];
	const int64_t low = v->stride < 0 ? v->stride * (int64_t)(i + each - 1) : v->stride * (int64_t)i;

	if (!resolve(t, *at, out) || (low < 0 && out->offset + inside < (uint64_t)-low))
		return false;
	out->offset += inside + (uint64_t)low;
	out->bytes += (uint64_t)(v->stride < 0 ? -v->stride : v->stride) * (each - 1);
	return true;
}

/* ---- Iterations. ---- */

/* The number of iterations of a loop to show, from a multi-view in it. */
static void
count_iterations(const om_plan_multi_view *v, struct loop *l)
{
	const int64_t known = om_trip_count(l->op);
	uint64_t n = (uint64_t)v->nprologue + v->period;

	if (v->stride && known > 0)
		n = known < MAX_ITERATIONS_SHOWN ? (uint64_t)known : MAX_ITERATIONS_SHOWN;
	n = n > MAX_ITERATIONS_SHOWN ? MAX_ITERATIONS_SHOWN : n;
	if (known > 0 && n > (uint64_t)known)
		n = (uint64_t)known;
	l->iterations = n > l->iterations ? (uint32_t)n : l->iterations;
}

static const om_op *
loop_of(const om_prog *p, const om_plan_multi_view *v)
{
	return v->is_output ? p->values[v->value]->def : p->values[v->value]->block->owner;
}

/* The part of the loop's steps for iteration `k` in which the value is live. */
static void
span(const om_report *r, const struct loop *l, const om_box *x, uint32_t k, om_loop_view *out)
{
	const om_steps steps = om_report_steps(r, l->op);
	const double begin = steps.first, width = steps.last + 1 - begin;
	const double from = x->first > steps.first ? x->first - begin : 0;
	const double to = x->last < steps.last ? x->last + 1 - begin : width;

	out->from = begin + (k + from / width) / l->iterations * width;
	out->to = begin + (k + to / width) / l->iterations * width;
}

static void
add_views(const struct view_context *t, om_box *x)
{
	uint64_t inside;
	const om_plan_multi_view *v = view_of(t, x->value->id, &inside);
	const om_op *op = v ? loop_of(t->r->prog, v) : NULL;
	size_t cap = 0, n = 0;

	if (!op || x->bytes == 0)
		return;
	const struct loop *l = &t->loop[op->id];
	const int64_t known = om_trip_count(op);
	const uint64_t each = v->stride && known > (int64_t)l->iterations
		? ((uint64_t)known + l->iterations - 1) / l->iterations : 1;
	const uint32_t most = v->is_output ? v->nprologue + v->period : l->iterations;
	for (uint32_t k = 0; k < most; k++) {
		om_loop_view one = {.bytes = om_value_bytes(x->value), .from = x->first, .to = x->last + 1.0};
		const uint64_t i = k * each, iterations = each > 1 && i + each > (uint64_t)known ? (uint64_t)known - i
			: each;
		if ((each > 1 && i >= (uint64_t)known) || !locate(t, v, i, iterations, inside, &one))
			continue;
		if (!v->is_output)
			span(t->r, l, x, k, &one);
		one.when = iterations_text(t->mem, v, i, iterations, known);
		OM_PUSH(t->mem, x->view, n, cap, one);
	}
	x->nview = (uint32_t)n;
}

/* Values whose own location is memory of the caller, or a weight. */
static void
add_visitors(struct view_context *t)
{
	om_report *r = t->r;
	const om_prog *p = r->prog;

	r->visitor = OM_NEWN(t->mem, om_box, p->nvalue);
	for (uint32_t k = 0; k < p->nvalue; k++) {
		const om_placement *at = &p->plan->place[k];
		const om_steps steps = om_report_life(r, p->values[k]);
		om_box x = {.name = p->values[k]->name, .kind = OM_BOX_VIEW, .bytes = om_value_bytes(p->values[k]),
			.first = steps.first, .last = steps.last, .buffer = UINT32_MAX, .value = p->values[k]};
		if (at->where != OM_EXTERNAL && at->where != OM_WEIGHT)
			continue;
		add_views(t, &x);
		if (x.nview)
			r->visitor[r->nvisitor++] = x;
	}
}

void
om_report_loop_views(om_report *r, om_arena *mem)
{
	const om_prog *p = r->prog;
	const om_alias **alias = om_aliases_by_value(p->plan, p->nvalue, mem);
	struct view_context t = {.r = r, .mem = mem, .view = OM_NEWN(mem, const om_plan_multi_view *, p->nvalue),
		.loop = OM_NEWN(mem, struct loop, p->nop)};

	if (p->plan->nview == 0)
		return;
	for (uint32_t k = 0; k < p->plan->nview; k++) {
		const om_plan_multi_view *v = &p->plan->view[k];
		const om_op *op = loop_of(p, v);
		t.view[v->value] = v;
		alias[v->value] = NULL;
		if (!op)
			continue;
		t.loop[op->id].op = op;
		count_iterations(v, &t.loop[op->id]);
	}
	t.mover = om_alias_roots(alias, p->nvalue, mem);
	for (uint32_t k = 0; k < r->nbox; k++)
		if (r->box[k].value)
			add_views(&t, &r->box[k]);
	add_visitors(&t);
}
