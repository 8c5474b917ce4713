/* A lower bound of the arena for all storage decisions.
 *
 * The bound of a packing holds for the buffers that are packed, that is, for the lifetimes, views and
 * in-place choices that were made.  This one holds for all of them: whatever is decided, values whose
 * contents are needed at the same moment and cannot be bytes of one another occupy different bytes.  So
 * the bound of a moment is the weight of a set of such values, and any moment of any run will do.
 *
 * Moments.  One is before each op: values are there that were computed earlier and are read by this op or
 * later.  One is while an op without bodies computes: its outputs and its workspace are there, too.  One is
 * where the body of a Loop starts: its counter and its condition were written, even if nothing reads them.  In a
 * body of a loop, it is that moment in an iteration that is neither one of the first nor the last one.
 *
 * Common bytes.  Two values may have bytes in common if both may hold the bytes of a third one: by a view,
 * as a sub-buffer, or by being carried into, through or out of a body.  What an iteration computed is held
 * only by what it passes on, so a parameter has nothing in common with values of its own iteration by way
 * of the previous one.  While an op computes, an output may also lie over an input that is not read later,
 * and over all that has bytes in common with that, where the definition permits it.
 *
 * The order of the ops is given, and so is the set of values in the arena: results, inputs and what
 * shares storage with them are in memory of the caller.
 */
#include <config.h>

#include <stdlib.h>

#include "alloc/assign.h"
#include "alloc/is_planned.h"
#include "alloc/op_facts.h"
#include "alloc/order_bound.h"
#include "base/arena_internal.h"
#include "ir/live_interval.h"
#include "ir/query.h"

enum { NONE = UINT32_MAX };

/* More values whose bytes it may hold are not listed: a value may then share bytes with all of its set. */
enum { MAX_HELD = 64 };

/* Of values that may have bytes in common with one another, so many are taken at a moment. */
enum { MAX_OF_SET = 256 };

/* Values looked at, over all moments.  Those with most bytes come first, and the bound is that of the moments seen
 * until then. */
enum { MAX_WORK = 1 << 23 };

struct held {
	uint32_t *id;            /* sorted */
	uint32_t n;
	bool is_any;             /* too many, or unknown */
};

struct bounder {
	const om_prog *p;
	const om_plan *plan;
	const om_assignment *a;
	const om_schedule *s;
	const om_op_facts *f;
	const om_live_interval *live;
	om_arena *mem;
	uint32_t *set;           /* by value id: union-find of values that may have bytes in common */
	uint32_t *block;         /* the same, of values that may have an address in common with them in turn */
	bool *is_unaligned;      /* by root of `block`: some of them may be at any address */
	bool *is_unknown;        /* by value id: may share bytes with whatever is in the same set */
	bool *is_skipped;        /* by step */
	bool *is_outside;        /* by value id: not, or not always, in the arena */
	uint32_t *index;         /* by value id: of the output or the parameter that it is */
	const om_op **at;        /* by step: the op without bodies that runs there */
	const om_block **entry;  /* by step: the body of a Loop that starts there */
	const om_scratch **scratch; /* by op id */
	struct held **held;      /* by value id, once needed */
	uint64_t work;
	bool is_without;         /* there is no bound */
};

/* ---- Sets. ---- */

static uint32_t
leader(uint32_t *parent, uint32_t v)
{
	while (parent[v] != v)
		v = parent[v] = parent[parent[v]];
	return v;
}

static void
unite(uint32_t *parent, uint32_t a, uint32_t b)
{
	parent[leader(parent, a)] = leader(parent, b);
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

static bool
is_branch(const om_op *op)
{
	return op->opdef && op->opdef->control == OM_IF;
}

static bool
is_loop(const om_op *op)
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
visit_output(const struct bounder *w, const om_op *op, uint32_t k, const struct visitor *to)
{
	if (is_branch(op)) {
		for (uint32_t i = 0; i < op->nbody; i++)
			if (k < op->body[i]->nresult)
				hold(to, op->out[k], op->body[i]->result[k], true);
	} else if (is_loop(op)) {
		visit_loop_output(op, k, to);
	} else if (!op->nbody) {
		visit_plain_output(w->f, op, k, w->plan->align, to);
	}
}

/* ---- Preparation. ---- */

static void
unite_both(void *data, const om_value *v, const om_value *from, bool is_aligned)
{
	struct bounder *w = data;

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
unite_inplace(struct bounder *w, const om_op *op)
{
	for (uint32_t k = 0; k < op->nout && w->f->op[op->id].inplace; k++)
		for (uint32_t i = 0; i < op->nin; i++)
			if (om_op_facts_inplace(w->f, op, k, i))
				unite(w->block, op->out[k]->id, op->in[i]->id);
}

static void
skip_steps(struct bounder *w, om_steps at)
{
	for (uint32_t t = at.first; t <= at.last; t++)
		w->is_skipped[t] = true;
}

/* Whatever may run any number of times, not at all, or in a way that is not known. */
static void
look_at_bodies(struct bounder *w, const om_op *op)
{
	const om_steps at = w->s->of_op[op->id];
	const int64_t n = om_trip_count(op);

	w->is_skipped[at.last] = true;
	if (is_branch(op)) {
		w->is_without |= !op->in[0] || op->in[0]->is_const;
		return;
	}
	if (is_loop(op) && n != 0 && n != 1) {
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
look_at_op(struct bounder *w, const om_op *op)
{
	const struct visitor to = {unite_both, unite_next, w, NULL};

	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k]) {
			w->index[op->out[k]->id] = k;
			visit_output(w, op, k, &to);
		}
	for (uint32_t k = 0; is_loop(op) && k < op->body[0]->nparam; k++) {
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
prepare(struct bounder *w)
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
		mark[leader(w->block, v)] |= w->is_unaligned[v];
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
find_outside(struct bounder *w)
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
	struct bounder *w;
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

static const struct held *
held_by(struct bounder *w, const om_value *v)
{
	struct search x = {.w = w};
	const struct visitor to = {add_held, add_next, &x, &x.is_full};

	if (w->held[v->id])
		return w->held[v->id];
	add(&x, v, NULL);
	for (uint32_t k = 0; k < x.n && !x.is_full; k++) {
		const om_value *at = x.list[k].v;
		x.except = x.list[k].except;
		if (at->is_const)
			continue;
		if (at->def)
			visit_output(w, at->def, w->index[at->id], &to);
		else if (at->block->owner && is_loop(at->block->owner))
			visit_parameter(at->block->owner, w->index[at->id], &to);
	}
	w->work += x.n;
	return w->held[v->id] = keep(&x);
}

static bool
may_share(struct bounder *w, const om_value *x, const om_value *y)
{
	if (x == y)
		return true;
	if (leader(w->set, x->id) != leader(w->set, y->id))
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

static bool
is_read_at(const struct bounder *w, const om_value *v, uint32_t step)
{
	for (const om_use *u = v->first_use; u; u = u->next)
		if (u->op && u->op->block && !u->op->is_folded && w->s->of_op[u->op->id].first == step)
			return true;
	return false;
}

/* A parameter is written when the body starts, and for the next iteration when it ends; it is needed
 * from there to its last use. */
static uint32_t
last_of(const struct bounder *w, const om_value *v, uint32_t last)
{
	if (v->def || v->block == w->p->first)
		return last;
	const om_steps body = w->s->of_block[v->block->id];
	if (last >= body.last)
		last = body.last - 1;
	return last > body.first || is_read_at(w, v, last) ? last : body.first - 1;
}

/* May output `out` of `op` be computed over `v`? */
static bool
may_overwrite(struct bounder *w, const om_op *op, const om_value *out, const om_value *v)
{
	const uint32_t step = w->s->of_op[op->id].first;

	for (uint32_t i = 0; i < op->nin; i++)
		if (om_op_facts_inplace(w->f, op, w->index[out->id], i) && may_share(w, op->in[i], v)
		    && last_of(w, op->in[i], om_live_interval_until(&w->live[op->in[i]->id], step)) == step)
			return true;
	return false;
}

static uint64_t
rounded(const struct bounder *w, uint64_t bytes)
{
	return (bytes + w->plan->align - 1) & ~(w->plan->align - 1);
}

/* Values needed at once, and those of them that were taken, as they cannot overlap. */
struct moment {
	const om_value **v;      /* the largest first, those of the same size in order of ids */
	size_t n, cap;
	struct taken {
		const om_value *v;
		uint32_t before; /* index + 1 of the one taken before it from the same set; 0: none */
	} *taken;
	size_t ntaken, captaken;
	uint32_t *last;          /* by root of `set`: index + 1 of the one taken last, if `since` is `now` */
	uint64_t *since, now;
	const om_value **made;   /* taken outputs of the op */
	size_t nmade, capmade;
};

static int
largest_first(const void *a, const void *b)
{
	const om_value *const *x = a, *const *y = b;
	const uint64_t n = om_value_bytes(*x), m = om_value_bytes(*y);

	return n != m ? (n < m) - (n > m) : ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

/* The one taken last from the set of `v`: index + 1, or 0. */
static uint32_t *
last_of_set(struct bounder *w, struct moment *m, const om_value *v)
{
	const uint32_t set = leader(w->set, v->id);

	if (m->since[set] != m->now) {
		m->since[set] = m->now;
		m->last[set] = 0;
	}
	return &m->last[set];
}

static bool
is_apart(struct bounder *w, struct moment *m, const om_op *op, const om_value *v)
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
take(struct bounder *w, struct moment *m, const om_op *op, const om_value *v)
{
	uint32_t *last = last_of_set(w, m, v);

	OM_PUSH(w->mem, m->taken, m->ntaken, m->captaken, ((struct taken){v, *last}));
	*last = (uint32_t)m->ntaken;
	if (op && v->def == op)
		OM_PUSH(w->mem, m->made, m->nmade, m->capmade, v);
}

/* Takes one value after the other that cannot overlap with those taken.  Unless it is NULL, `op` is at work. */
static uint64_t
weight(struct bounder *w, struct moment *m, const om_op *op)
{
	const uint64_t scratch = op && w->scratch[op->id] ? w->scratch[op->id]->bytes : 0;
	uint64_t exact = scratch, whole = rounded(w, scratch);
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
		whole += rounded(w, om_value_bytes(v));
		is_aligned &= !w->is_unaligned[leader(w->block, v->id)];
	}
	return is_aligned ? whole : rounded(w, exact);
}

/* ---- The steps. ---- */

/* Values needed before the ops of a range of steps. */
struct need {
	const om_value *v;
	uint32_t first, last;
};

struct sweep {
	struct bounder *w;
	struct need *need;       /* by first step */
	size_t n, cap;
	uint64_t *sum;           /* by step: bytes needed before it */
	struct moment at;
	uint64_t best, enough;
};

static bool
is_counted(const struct bounder *w, const om_value *v)
{
	return !w->is_outside[v->id] && om_value_bytes(v) > 0;
}

/* Is it an input that nothing reads?  The first op may overwrite it. */
static bool
is_unread_input(const struct bounder *w, const om_value *v)
{
	return !v->def && v->block == w->p->first && w->live[v->id].last == 0 && !is_read_at(w, v, 0);
}

/* The last step before which a value may be found that was not computed later. */
static uint32_t
defined_at(const struct bounder *w, const om_value *v)
{
	const om_op *op = v->def;

	if (!op)
		return w->s->of_block[v->block->id].first - 1;
	const bool is_late = is_branch(op) || (is_loop(op) && w->live[v->id].first == w->s->of_op[op->id].last);
	return is_late ? w->s->of_op[op->id].last : w->s->of_op[op->id].first;
}

static void
list_needs(struct sweep *x)
{
	const struct bounder *w = x->w;
	om_steps r;

	for (uint32_t k = 0; k < w->p->nvalue; k++) {
		const om_value *v = w->p->values[k];
		if (!is_counted(w, v) || is_unread_input(w, v))
			continue;
		const uint32_t from = defined_at(w, v) + 1;
		for (uint32_t i = 0; om_live_interval_range(&w->live[k], i, &r); i++) {
			const struct need n = {v, r.first > from ? r.first : from, last_of(w, v, r.last)};
			if (n.first <= n.last)
				OM_PUSH(w->mem, x->need, x->n, x->cap, n);
		}
	}
}

static int
by_first(const void *a, const void *b)
{
	const struct need *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return (x->v->id > y->v->id) - (x->v->id < y->v->id);
}

static void
add_member(struct sweep *x, const om_value *v)
{
	OM_PUSH(x->w->mem, x->at.v, x->at.n, x->at.cap, v);
}

static void
find_members(struct sweep *x, uint32_t t)
{
	x->at.n = 0;
	for (size_t k = 0; k < x->n && x->need[k].first <= t; k++, x->w->work++)
		if (x->need[k].last >= t)
			add_member(x, x->need[k].v);
}

static void
improve(struct sweep *x, const om_op *op)
{
	const uint64_t bytes = weight(x->w, &x->at, op);

	x->best = bytes > x->best ? bytes : x->best;
}

static uint64_t
size_in_arena(const struct bounder *w, const om_value *v)
{
	return v && is_counted(w, v) ? rounded(w, om_value_bytes(v)) : 0;
}

/* What `op` adds to what is needed before it: outputs and workspace. */
static uint64_t
bytes_added(const struct bounder *w, const om_op *op)
{
	uint64_t sum = op && w->scratch[op->id] ? rounded(w, w->scratch[op->id]->bytes) : 0;

	for (uint32_t k = 0; op && k < op->nout; k++)
		sum += size_in_arena(w, op->out[k]);
	return sum;
}

/* The counter and the condition, if nothing reads them: they are not among what is needed. */
static uint64_t
unread(const struct bounder *w, const om_block *b, const om_value *v[2])
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < 2; k++) {
		const uint32_t start = b ? w->s->of_block[b->id].first : 0;
		v[k] = b && k < b->nparam ? b->param[k] : NULL;
		if (v[k] && last_of(w, v[k], om_live_interval_until(&w->live[v[k]->id], start)) >= start)
			v[k] = NULL;
		sum += size_in_arena(w, v[k]);
	}
	return sum;
}

/* The most bytes that moments of a step may have. */
static uint64_t
most_at(const struct sweep *x, uint32_t t)
{
	const struct bounder *w = x->w;
	const om_value *v[2];
	const uint64_t made = bytes_added(w, w->at[t]), written = unread(w, w->entry[t], v);

	return x->sum[t] + (made > written ? made : written);
}

static void
look_at_step(struct sweep *x, uint32_t t)
{
	struct bounder *w = x->w;
	const om_op *op = w->at[t];
	const om_value *v[2];

	find_members(x, t);
	const size_t n = x->at.n;
	if (x->sum[t] > x->best)
		improve(x, NULL);
	if (x->sum[t] + unread(w, w->entry[t], v) > x->best) {
		for (uint32_t k = 0; k < 2; k++)
			if (size_in_arena(w, v[k]))
				add_member(x, v[k]);
		improve(x, NULL);
		x->at.n = n;
		find_members(x, t);
	}
	if (x->sum[t] + bytes_added(w, op) > x->best) {
		for (uint32_t k = 0; op && k < op->nout; k++)
			if (size_in_arena(w, op->out[k]))
				add_member(x, op->out[k]);
		improve(x, op);
	}
}

/* The bytes needed before each step. */
static void
add_up(struct sweep *x)
{
	const uint32_t n = x->w->s->nstep;

	x->sum = OM_NEWN(x->w->mem, uint64_t, (size_t)n + 1);
	for (size_t k = 0; k < x->n; k++) {
		const uint64_t bytes = size_in_arena(x->w, x->need[k].v);
		x->sum[x->need[k].first] += bytes;
		x->sum[x->need[k].last + 1] -= bytes;
	}
	for (uint32_t t = 1; t < n; t++)
		x->sum[t] += x->sum[t - 1];
}

struct candidate {
	uint64_t most;
	uint32_t step;
};

static int
most_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->most != y->most ? (x->most < y->most) - (x->most > y->most) : (x->step > y->step) - (x->step < y->step);
}

/* Before the first op, all inputs in the arena are there, those that nothing reads too. */
static uint64_t
bytes_of_inputs(const struct bounder *w)
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < w->p->first->nparam; k++)
		sum += size_in_arena(w, w->p->first->param[k]);
	return sum;
}

static void
sweep(struct sweep *x)
{
	struct bounder *w = x->w;
	struct candidate *list = OM_NEWN(w->mem, struct candidate, w->s->nstep);
	uint32_t n = 0;

	x->best = bytes_of_inputs(w);
	list_needs(x);
	if (x->n)
		qsort(x->need, x->n, sizeof *x->need, by_first);
	add_up(x);
	for (uint32_t t = 0; t < w->s->nstep; t++)
		if (!w->is_skipped[t])
			list[n++] = (struct candidate){most_at(x, t), t};
	if (n)
		qsort(list, n, sizeof *list, most_first);
	for (uint32_t k = 0; k < n && list[k].most > x->best && x->best < x->enough && w->work < MAX_WORK; k++)
		look_at_step(x, list[k].step);
}

uint64_t
om_order_bound(const om_prog *p, const om_assignment *a, const om_plan *plan, uint64_t enough)
{
	om_arena *mem = om_arena_new();
	struct bounder w = {.p = p, .plan = plan, .a = a, .s = a->schedule, .f = a->facts, .mem = mem,
		.set = OM_NEWN(mem, uint32_t, p->nvalue), .block = OM_NEWN(mem, uint32_t, p->nvalue),
		.is_unaligned = OM_NEWN(mem, bool, p->nvalue), .is_unknown = OM_NEWN(mem, bool, p->nvalue),
		.is_skipped = OM_NEWN(mem, bool, a->schedule->nstep), .is_outside = OM_NEWN(mem, bool, p->nvalue), .at = OM_NEWN(mem, const om_op *, a->schedule->nstep),
		.index = OM_NEWN(mem, uint32_t, p->nvalue), .entry = OM_NEWN(mem, const om_block *, a->schedule->nstep),
		.scratch = OM_NEWN(mem, const om_scratch *, p->nop), .held = OM_NEWN(mem, struct held *, p->nvalue)};
	struct sweep x = {.w = &w, .enough = enough,
		.at = {.last = OM_NEWN(mem, uint32_t, p->nvalue), .since = OM_NEWN(mem, uint64_t, p->nvalue)}};

	w.live = om_assign_lifetimes(p, a->schedule, a->request, a->facts, mem)->live;
	prepare(&w);
	find_outside(&w);
	if (!w.is_without)
		sweep(&x);
	om_arena_free(mem);
	return x.best;
}
