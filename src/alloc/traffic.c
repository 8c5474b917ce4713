/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that the ops of a run read and write, by the memory in which they are.
 *
 * An op reads its inputs and writes its outputs once, as many bytes as they have, and its scratch once each way.  What
 * the plan stores in place of a copy is not counted: views, and inputs that already are a part of an output. */
#include <config.h>

#include "alloc/buffers.h"
#include "base/sizes.h"
#include "ir/alias_roots.h"
#include "onnxmem/opdef.h"
#include "opdef/op_context.h"
#include "onnxmem/plan.h"

struct traffic {
	const om_prog *p;
	const om_plan *plan;
	const om_alias **alias;  /* by value id */
	const om_plan_multi_view **view; /* by value id: that which determines its address; NULL: it is fixed */
	const om_scratch **scratch; /* by op id */
	const om_op **reader;    /* by value id: the last op for which it was counted as an input */
	om_op_look look;
	om_traffic *to;          /* by arena, then of weights, of the caller, and of values outside of the plan */
};

/* How often an op runs: in each of `outer` runs of its loop, in `inner` iterations. */
struct times {
	uint64_t outer, inner;
};

/* Of a value with a fixed address. */
static om_traffic *
memory_of(const struct traffic *w, const om_value *v)
{
	const om_placement *at = &w->plan->place[v->id];
	const uint32_t n = w->plan->narena;

	if (v->is_const || v->is_overridable || at->where == OM_WEIGHT)
		return &w->to[n + OM_TRAFFIC_WEIGHTS];
	if (at->where == OM_IN_ARENA)
		return &w->to[at->arena];
	return &w->to[n + (at->where == OM_EXTERNAL ? OM_TRAFFIC_CALLER : OM_TRAFFIC_UNPLANNED)];
}

/* A value has the multi-view of the value whose bytes it has.  Each is looked at once, however long chains are. */
static void
find_views(struct traffic *w, om_arena *mem)
{
	bool *is_known = OM_NEWN(mem, bool, w->p->nvalue);

	for (uint32_t k = 0; k < w->plan->nview; k++) {
		w->view[w->plan->view[k].value] = &w->plan->view[k];
		is_known[w->plan->view[k].value] = true;
	}
	for (uint32_t k = 0; k < w->p->nvalue && w->plan->nview; k++) {
		uint32_t end = k;
		for (; !is_known[end] && w->alias[end]; end = w->alias[end]->source)
			is_known[end] = true;
		for (uint32_t at = k; at != end; at = w->alias[at]->source)
			w->view[at] = w->view[end];
	}
}

static om_traffic *
memory_of_region(const struct traffic *w, const om_region *r)
{
	return r->base == OM_NO_VALUE ? &w->to[r->arena] : memory_of(w, w->p->values[r->base]);
}

static void
add_to(om_traffic *to, bool is_read, uint64_t bytes, uint64_t times)
{
	uint64_t *sum = is_read ? &to->read : &to->written;

	*sum = om_size_sum(*sum, om_size_product(bytes, times));
}

/* The iterations before `n` in which a view of this period is at its address `k`, after those of its prologue. */
static uint64_t
iterations_at(const om_plan_multi_view *v, uint32_t k, uint64_t n)
{
	const uint64_t all = n > k ? (n - k - 1) / v->period + 1 : 0;
	const uint64_t skipped = v->nprologue > k ? (v->nprologue - k - 1) / v->period + 1 : 0;

	return all > skipped ? all - skipped : 0;
}

/* Bytes that an op reads from or writes to `v`. */
static void
add(const struct traffic *w, const om_value *v, bool is_read, uint64_t bytes, struct times t)
{
	const om_plan_multi_view *view = w->view[v->id];

	if (!view) {
		add_to(memory_of(w, v), is_read, bytes, om_size_product(t.outer, t.inner));
		return;
	}
	if (view->is_output) {
		const uint64_t n = om_op_iterations(w->p->values[view->value]->def);
		add_to(memory_of_region(w, n < view->nprologue ? &view->first[n] : &view->off[n % view->period]), is_read, bytes,
			om_size_product(t.outer, t.inner));
		return;
	}
	for (uint32_t k = 0; k < view->nprologue && k < t.inner; k++)
		add_to(memory_of_region(w, &view->first[k]), is_read, bytes, t.outer);
	for (uint32_t k = 0; k < view->period; k++)
		add_to(memory_of_region(w, &view->off[k]), is_read, bytes, om_size_product(t.outer, iterations_at(view, k, t.inner)));
}

/* Is input `k` of `op` already where it is a part of the first output? */
static bool
is_part(struct traffic *w, const om_op *op, uint32_t k)
{
	const om_alias *a = w->alias[op->in[k]->id];
	uint64_t offset;

	return a && a->kind == OM_ALIAS_SUBBUFFER && op->nout && op->out[0] && a->source == op->out[0]->id
	    && om_op_look_subbuffer(&w->look, op, k, &offset) && offset == a->offset;
}

/* Does the op write its output `k`? */
static bool
is_written(struct traffic *w, const om_op *op, uint32_t k)
{
	const om_alias *a = w->alias[op->out[k]->id];
	om_view_of view;

	return !(a && a->kind == OM_ALIAS_VIEW && om_op_look_view(&w->look, op, k, &view));
}

static bool
writes_nothing(struct traffic *w, const om_op *op)
{
	bool any = false;

	for (uint32_t k = 0; k < op->nout; k++)
		any |= op->out[k] && is_written(w, op, k);
	return !any && op->nout > 0 && op->nbody == 0;
}

/* Is it an earlier input of the op, too? */
static bool
is_read_before(struct traffic *w, const om_op *op, const om_value *v)
{
	const bool is_known = w->reader[v->id] == op;

	w->reader[v->id] = op;
	return is_known;
}

static void
count_op(struct traffic *w, const om_op *op, struct times t)
{
	uint64_t parts = 0;

	for (uint32_t k = 0; k < op->nin; k++) {
		const om_value *v = op->in[k];
		if (!v || (op->opdef && op->opdef->flags & OM_SHAPE_ONLY) || is_read_before(w, op, v))
			continue;
		if (is_part(w, op, k))
			parts = om_size_sum(parts, om_value_bytes(v));
		else
			add(w, v, true, om_value_bytes(v), t);
	}
	for (uint32_t k = 0; k < op->nout; k++) {
		const om_value *v = op->out[k];
		if (!v || !is_written(w, op, k))
			continue;
		const uint64_t bytes = om_value_bytes(v), there = k == 0 ? parts : 0;
		add(w, v, false, bytes > there ? bytes - there : 0, t);
	}
	const om_scratch *s = w->scratch[op->id];
	if (s) {
		add_to(&w->to[s->arena], true, s->bytes, om_size_product(t.outer, t.inner));
		add_to(&w->to[s->arena], false, s->bytes, om_size_product(t.outer, t.inner));
	}
}

static void
count_block(struct traffic *w, const om_block *b, struct times t)
{
	for (const om_op *op = b->first; op; op = op->next) {
		if (op->is_folded || writes_nothing(w, op))
			continue;
		if (op->nbody == 0)
			count_op(w, op, t);
		for (uint32_t k = 0; k < op->nbody; k++)
			count_block(w, op->body[k], (struct times){om_size_product(t.outer, t.inner), om_op_iterations(op)});
	}
}

void
om_plan_traffic(const om_prog *p, const om_plan *plan, om_traffic *to)
{
	om_arena *mem = om_arena_new();
	struct traffic w = {.p = p, .plan = plan, .to = to, .alias = om_aliases_by_value(plan, p->nvalue, mem),
		.view = OM_NEWN(mem, const om_plan_multi_view *, p->nvalue), .scratch = OM_NEWN(mem, const om_scratch *, p->nop),
		.reader = OM_NEWN(mem, const om_op *, p->nvalue)};

	for (uint32_t k = 0; k < plan->narena + OM_TRAFFIC_OTHERS; k++)
		to[k] = (om_traffic){0};
	find_views(&w, mem);
	for (uint32_t k = 0; k < plan->nscratch; k++)
		w.scratch[plan->scratch[k].op] = &plan->scratch[k];
	count_block(&w, p->first, (struct times){1, 1});
	om_op_look_end(&w.look);
	om_arena_free(mem);
}
