/* SPDX-License-Identifier: Apache-2.0 */
/* Values that cannot have bytes in common; see disjoint.h. */
#include <config.h>

#include <stdlib.h>

#include "alloc/assign.h"
#include "alloc/disjoint.h"
#include "alloc/is_planned.h"
#include "alloc/op_facts.h"
#include "base/arena_internal.h"
#include "ir/live_interval.h"
#include "ir/query.h"

/* More values whose bytes it may hold are not listed: a value may then share bytes with all of its set. */
enum { MAX_HELD = 64 };

/* Of values that may have bytes in common with one another, so many are taken at a moment. */
enum { MAX_OF_SET = 256 };

struct held {
	uint32_t *id;            /* sorted */
	uint32_t n;
	bool is_any;             /* too many, or unknown */
};

/* ---- Sets. ---- */

uint32_t
om_disjoint_leader(uint32_t *parent, uint32_t v)
{
	while (parent[v] != v)
		v = parent[v] = parent[parent[v]];
	return v;
}

static void
unite(uint32_t *parent, uint32_t a, uint32_t b)
{
	parent[om_disjoint_leader(parent, a)] = om_disjoint_leader(parent, b);
}

/* A value and one whose bytes it may hold. */
typedef void visit(void *data, const om_value *v, const om_value *from, bool is_aligned);

/* A parameter, and what it is in the first iteration; `next` is what it is in later ones. */
typedef void visit_next(void *data, const om_value *param, const om_value *next);

struct visitor {
	visit *hold;
	visit_next *carry;
	void *data;
	const bool *is_done;     /* NULL, or whether the rest does not matter */
};

static void
hold(const struct visitor *to, const om_value *v, const om_value *from, bool is_aligned)
{
	if (v && from)
		to->hold(to->data, v, from, is_aligned);
}

static uint32_t
carried_of(const om_op *op)
{
	const int64_t other = op->opdef->control == OM_LOOP ? 2 : om_attr_int(op, "num_scan_inputs");

	return other >= 0 && other <= op->nin ? op->nin - (uint32_t)other : 0;
}

bool
om_disjoint_is_branch(const om_op *op)
{
	return op->opdef && op->opdef->control == OM_IF;
}

bool
om_disjoint_is_loop(const om_op *op)
{
	return op->nbody == 1 && op->opdef
	    && (op->opdef->control == OM_LOOP || (op->opdef->control == OM_SCAN && op->version >= 9));
}

/* What output `k` of a loop may hold. */
static void
visit_loop_output(const om_op *op, uint32_t k, const struct visitor *to)
{
	const om_block *b = op->body[0];
	const uint32_t skip = op->opdef->control == OM_LOOP, carried = carried_of(op);

	if (k < carried)
		hold(to, op->out[k], op->in[k + 2 * skip], true);
	if (k + skip < b->nresult)
		hold(to, op->out[k], b->result[k + skip], k < carried);
}

/* What parameter `k` of a loop's body may hold.  A loop has its counter and its condition in front. */
static void
visit_parameter(const om_op *op, uint32_t k, const struct visitor *to)
{
	const om_block *b = op->body[0];
	const uint32_t skip = op->opdef->control == OM_LOOP, carried = carried_of(op);
	const bool is_carried = k >= skip && k < carried + 2 * skip;
	const om_value *next = is_carried && k - skip < b->nresult ? b->result[k - skip] : NULL;

	if (k < op->nin && (k >= skip))
		hold(to, b->param[k], op->in[k], is_carried);
	if (next)
		to->carry(to->data, b->param[k], next);
}

static void
visit_plain_output(const om_op_facts *f, const om_op *op, uint32_t k, uint64_t align, const struct visitor *to)
{
	om_view_of view;
	uint64_t offset;

	if (om_op_facts_view(f, op, k, &view))
		hold(to, op->out[k], op->in[view.in], view.offset % align == 0);
	for (uint32_t i = 0; k == 0 && f->op[op->id].subbuffer && i < op->nin && !(to->is_done && *to->is_done); i++)
		if (om_op_facts_subbuffer(f, op, i, &offset))
			hold(to, op->out[0], op->in[i], offset % align == 0);
}

static void
visit_output(const om_disjoint *w, const om_op *op, uint32_t k, const struct visitor *to)
{
	if (om_disjoint_is_branch(op)) {
		for (uint32_t i = 0; i < op->nbody; i++)
			if (k < op->body[i]->nresult)
				hold(to, op->out[k], op->body[i]->result[k], true);
	} else if (om_disjoint_is_loop(op)) {
		visit_loop_output(op, k, to);
	} else if (!op->nbody) {
		visit_plain_output(w->f, op, k, w->plan->align, to);
	}
}

/* ---- Preparation. ---- */

static void
unite_both(void *data, const om_value *v, const om_value *from, bool is_aligned)
{
	om_disjoint *w = data;

	unite(w->set, v->id, from->id);
	unite(w->block, v->id, from->id);
	if (!is_aligned)
		w->is_unaligned[v->id] = true;
}

static void
unite_next(void *data, const om_value *param, const om_value *next)
{
	unite_both(data, param, next, true);
}

static void
unite_inplace(om_disjoint *w, const om_op *op)
{
	for (uint32_t k = 0; k < op->nout && w->f->op[op->id].inplace; k++)
		for (uint32_t i = 0; i < op->nin; i++)
			if (om_op_facts_inplace(w->f, op, k, i))
				unite(w->block, op->out[k]->id, op->in[i]->id);
}

static void
skip_steps(om_disjoint *w, om_steps at)
{
	for (uint32_t t = at.first; t <= at.last; t++)
		w->is_skipped[t] = true;
}

/* Whatever may run any number of times, not at all, or in a way that is not known. */
static void
look_at_bodies(om_disjoint *w, const om_op *op)
{
	const om_steps at = w->s->of_op[op->id];
	const int64_t n = om_trip_count(op);

	w->is_skipped[at.last] = true;
	if (om_disjoint_is_branch(op)) {
		const bool is_decided = !op->in[0] || op->in[0]->is_const;   /* there is a branch that never runs */
		w->is_without |= is_decided;
		if (is_decided)
			skip_steps(w, at);
		return;
	}
	if (om_disjoint_is_loop(op) && n != 0 && n != 1) {
		if (op->opdef->control == OM_LOOP)
			w->entry[w->s->of_block[op->body[0]->id].first] = op->body[0];
		return;
	}
	w->is_without |= n == 0;
	skip_steps(w, at);
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			w->is_unknown[op->out[k]->id] = true;
}

static void
look_at_op(om_disjoint *w, const om_op *op)
{
	const struct visitor to = {unite_both, unite_next, w, NULL};

	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k]) {
			w->index[op->out[k]->id] = k;
			visit_output(w, op, k, &to);
		}
	for (uint32_t k = 0; om_disjoint_is_loop(op) && k < op->body[0]->nparam; k++) {
		w->index[op->body[0]->param[k]->id] = k;
		visit_parameter(op, k, &to);
	}
	if (op->nbody) {
		look_at_bodies(w, op);
	} else {
		unite_inplace(w, op);
		w->at[w->s->of_op[op->id].first] = op;
	}
}

static void
prepare(om_disjoint *w)
{
	const om_prog *p = w->p;
	bool *mark;

	for (uint32_t v = 0; v < p->nvalue; v++)
		w->set[v] = w->block[v] = v;
	for (uint32_t k = 0; k < w->plan->nscratch; k++)
		w->scratch[w->plan->scratch[k].op] = &w->plan->scratch[k];
	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op && om_block_is_reached(p, b); op = op->next)
			if (!op->is_folded)
				look_at_op(w, op);
	mark = OM_NEWN(w->mem, bool, p->nvalue);
	for (uint32_t v = 0; v < p->nvalue; v++)
		mark[om_disjoint_leader(w->block, v)] |= w->is_unaligned[v];
	w->is_unaligned = mark;
}

/* Is the value not in the arena in an iteration that is not the last, however many there are? */
static bool
leaves_arena(const om_prog *p, const om_plan_multi_view *m)
{
	const om_value *v = p->values[m->value];
	const int64_t n = om_trip_count(m->is_output ? v->def : v->block->owner);
	bool does = n >= 0 && n < (int64_t)m->nprologue + 2;

	does |= m->is_output && m->nprologue > 0;

	for (uint32_t k = 0; k < m->period; k++)
		does |= m->off[k].base != OM_NO_VALUE;
	return does;
}

/* Values that share storage with one that leaves the arena do so as well. */
static void
find_outside(om_disjoint *w)
{
	const om_storages at = om_storages_new(w->p, w->a, w->mem);

	for (uint32_t k = 0; k < w->plan->nview; k++)
		if (leaves_arena(w->p, &w->plan->view[k]))
			w->is_outside[at.root[w->plan->view[k].value]->id] = true;
	for (uint32_t v = 0; v < w->p->nvalue; v++)
		w->is_outside[v] |= w->plan->place[v].where != OM_IN_ARENA || w->is_outside[at.root[v]->id];
}

/* ---- What a value may hold. ---- */

/* Values still to be looked at; `except` is the body whose previous iteration is meant. */
struct todo {
	const om_value *v;
	const om_block *except;
};

struct search {
	om_disjoint *w;
	struct todo list[MAX_HELD];
	uint32_t n;
	const om_block *except;
	bool is_full;
};

static void
add(struct search *x, const om_value *v, const om_block *except)
{
	for (uint32_t k = 0; k < x->n; k++)
		if (x->list[k].v == v && x->list[k].except == except)
			return;
	if (x->n == MAX_HELD)
		x->is_full = true;
	else
		x->list[x->n++] = (struct todo){v, except};
}

static void
add_held(void *data, const om_value *v, const om_value *from, bool is_aligned)
{
	struct search *x = data;

	(void)v;
	(void)is_aligned;
	add(x, from, x->except);
}

static void
add_next(void *data, const om_value *param, const om_value *next)
{
	struct search *x = data;
	const bool is_inner = x->except && om_block_inside(param->block, x->except);

	add(x, next, is_inner ? x->except : param->block);
}

static int
by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static struct held *
keep(const struct search *x)
{
	struct held *to = OM_NEW(x->w->mem, struct held);

	to->is_any = x->is_full;
	to->id = OM_NEWN(x->w->mem, uint32_t, x->n);
	for (uint32_t k = 0; k < x->n; k++) {
		const struct todo *t = &x->list[k];
		to->is_any |= x->w->is_unknown[t->v->id];
		if (!t->except || !om_block_inside(t->v->block, t->except))
			to->id[to->n++] = t->v->id;
	}
	qsort(to->id, to->n, sizeof *to->id, by_number);
	return to;
}

/* Does all that is found from here on belong to a value that is known to hold anything? */
static bool
leads_to_any(const om_disjoint *w, const struct todo *t)
{
	const struct held *known = t->except ? NULL : w->held[t->v->id];

	return known && known->is_any;
}

static void
visit_held(struct search *x, const struct todo *t)
{
	const struct visitor to = {add_held, add_next, x, &x->is_full};
	const om_value *v = t->v;

	x->except = t->except;
	if (v->is_const)
		return;
	if (v->def)
		visit_output(x->w, v->def, x->w->index[v->id], &to);
	else if (v->block->owner && om_disjoint_is_loop(v->block->owner))
		visit_parameter(v->block->owner, x->w->index[v->id], &to);
}

/* NULL, or the value at which the list became full. */
static const om_value *
search_held(om_disjoint *w, const om_value *v)
{
	struct search x = {.w = w};
	uint32_t k = 0;

	add(&x, v, NULL);
	for (; k < x.n && !x.is_full; k++) {
		const struct todo t = x.list[k];
		if (leads_to_any(w, &t))
			x.is_full = true;
		else
			visit_held(&x, &t);
	}
	w->work += x.n;
	w->held[v->id] = keep(&x);
	return x.is_full && !x.list[k - 1].except ? x.list[k - 1].v : NULL;
}

/* All outputs of an op may be views of one value of many parts.  What this value holds is found once, and not for
 * each of them. */
static const struct held *
held_by(om_disjoint *w, const om_value *v)
{
	if (w->held[v->id])
		return w->held[v->id];
	const om_value *full = search_held(w, v);
	if (full && !w->held[full->id])
		search_held(w, full);
	return w->held[v->id];
}

static bool
may_share(om_disjoint *w, const om_value *x, const om_value *y)
{
	if (x == y)
		return true;
	if (om_disjoint_leader(w->set, x->id) != om_disjoint_leader(w->set, y->id))
		return false;
	const struct held *a = held_by(w, x), *b = held_by(w, y);
	if (a->is_any || b->is_any)
		return true;
	for (uint32_t i = 0, j = 0; i < a->n && j < b->n;) {
		if (a->id[i] == b->id[j])
			return true;
		if (a->id[i] < b->id[j])
			i++;
		else
			j++;
	}
	return false;
}

/* ---- Moments. ---- */

bool
om_disjoint_is_read_at(const om_disjoint *w, const om_value *v, uint32_t step)
{
	for (const om_use *u = v->first_use; u; u = u->next)
		if (u->op && u->op->block && !u->op->is_folded && w->s->of_op[u->op->id].first == step)
			return true;
	return false;
}

/* A parameter is written when the body starts, and for the next iteration when it ends; it is needed
 * from there to its last use. */
uint32_t
om_disjoint_last(const om_disjoint *w, const om_value *v, uint32_t last)
{
	if (v->def || v->block == w->p->first)
		return last;
	const om_steps body = w->s->of_block[v->block->id];
	if (last >= body.last)
		last = body.last - 1;
	return last > body.first || om_disjoint_is_read_at(w, v, last) ? last : body.first - 1;
}

/* May output `out` of `op` be computed over `v`? */
static bool
may_overwrite(om_disjoint *w, const om_op *op, const om_value *out, const om_value *v)
{
	const uint32_t step = w->s->of_op[op->id].first;

	for (uint32_t i = 0; i < op->nin; i++)
		if (om_op_facts_inplace(w->f, op, w->index[out->id], i) && may_share(w, op->in[i], v)
		    && (w->is_any_order || om_disjoint_last(w, op->in[i],
			om_live_interval_until(&w->live[op->in[i]->id], step)) == step))
			return true;
	return false;
}

uint64_t
om_disjoint_rounded(const om_disjoint *w, uint64_t bytes)
{
	return (bytes + w->plan->align - 1) & ~(w->plan->align - 1);
}

static int
largest_first(const void *a, const void *b)
{
	const om_value *const *x = a, *const *y = b;
	const uint64_t n = om_value_bytes(*x), m = om_value_bytes(*y);

	return n != m ? (n < m) - (n > m) : ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

/* The one taken last from the set of `v`: index + 1, or 0. */
static uint32_t *
last_of_set(om_disjoint *w, om_moment *m, const om_value *v)
{
	const uint32_t set = om_disjoint_leader(w->set, v->id);

	if (m->since[set] != m->now) {
		m->since[set] = m->now;
		m->last[set] = 0;
	}
	return &m->last[set];
}

static bool
is_apart(om_disjoint *w, om_moment *m, const om_op *op, const om_value *v)
{
	uint32_t left = MAX_OF_SET;

	for (uint32_t k = *last_of_set(w, m, v); k; k = m->taken[k - 1].before, w->work++)
		if (left-- == 0 || may_share(w, v, m->taken[k - 1].v))
			return false;
	if (!op || !w->f->op[op->id].inplace)
		return true;
	for (size_t k = 0; k < m->nmade; k++, w->work++)
		if (may_overwrite(w, op, m->made[k], v))
			return false;
	for (size_t k = 0; v->def == op && k < m->ntaken; k++, w->work++)
		if (m->taken[k].v->def != op && may_overwrite(w, op, v, m->taken[k].v))
			return false;
	return true;
}

static void
take(om_disjoint *w, om_moment *m, const om_op *op, const om_value *v)
{
	uint32_t *last = last_of_set(w, m, v);

	OM_PUSH(w->mem, m->taken, m->ntaken, m->captaken, ((struct taken){v, *last}));
	*last = (uint32_t)m->ntaken;
	if (op && v->def == op)
		OM_PUSH(w->mem, m->made, m->nmade, m->capmade, v);
}

/* Takes one value after the other that cannot overlap with those taken.  Unless it is NULL, `op` is at work. */
uint64_t
om_moment_bytes(om_disjoint *w, om_moment *m, const om_op *op)
{
	const uint64_t scratch = op && w->scratch[op->id] ? w->scratch[op->id]->bytes : 0;
	uint64_t exact = scratch, whole = om_disjoint_rounded(w, scratch);
	bool is_aligned = true;

	m->ntaken = m->nmade = 0;
	m->now++;
	if (m->n)
		qsort(m->v, m->n, sizeof *m->v, largest_first);
	for (size_t k = 0; k < m->n; k++, w->work++) {
		const om_value *v = m->v[k];
		if (!is_apart(w, m, op, v))
			continue;
		take(w, m, op, v);
		exact += om_value_bytes(v);
		whole += om_disjoint_rounded(w, om_value_bytes(v));
		is_aligned &= !w->is_unaligned[om_disjoint_leader(w->block, v->id)];
	}
	return is_aligned ? whole : om_disjoint_rounded(w, exact);
}

bool
om_disjoint_is_counted(const om_disjoint *w, const om_value *v)
{
	return !w->is_outside[v->id] && om_value_bytes(v) > 0;
}

om_moment
om_moment_new(const om_disjoint *w)
{
	const uint32_t n = w->p->nvalue;

	return (om_moment){.last = OM_NEWN(w->mem, uint32_t, n), .since = OM_NEWN(w->mem, uint64_t, n)};
}

om_disjoint
om_disjoint_new(const om_prog *p, const om_assignment *a, const om_plan *plan, om_arena *mem)
{
	const uint32_t nstep = a->schedule->nstep;
	om_disjoint w = {.p = p, .plan = plan, .a = a, .s = a->schedule, .f = a->facts, .mem = mem,
		.set = OM_NEWN(mem, uint32_t, p->nvalue), .block = OM_NEWN(mem, uint32_t, p->nvalue),
		.is_unaligned = OM_NEWN(mem, bool, p->nvalue), .is_unknown = OM_NEWN(mem, bool, p->nvalue),
		.is_skipped = OM_NEWN(mem, bool, nstep), .is_outside = OM_NEWN(mem, bool, p->nvalue),
		.at = OM_NEWN(mem, const om_op *, nstep), .index = OM_NEWN(mem, uint32_t, p->nvalue),
		.entry = OM_NEWN(mem, const om_block *, nstep), .scratch = OM_NEWN(mem, const om_scratch *, p->nop),
		.held = OM_NEWN(mem, struct held *, p->nvalue)};

	w.live = om_assign_lifetimes(p, a->schedule, a->request, a->facts, mem)->live;
	prepare(&w);
	find_outside(&w);
	return w;
}
