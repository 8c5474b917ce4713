/* Alias sets: values that share storage.
 *
 * An alias set is a group of values in one storage, each at its offset.  Two sets are merged if no
 * value then overwrites bytes of another that are still required.  Values that are live at the same
 * time may share bytes with equal content: every value has an *origin*, the value whose elements it
 * contains, and an offset in it.  A view has the origin of its source; an input of a concat that
 * becomes a sub-buffer gets the origin of the result.
 *
 * If the plan must hold in every order, "at the same time" means in some order.
 *
 * The bytes in use at a step are the union over the members that are live then.  So a set never
 * occupies more at any step than its values would separately, and merging does not have to consider
 * the peak.
 */
#include <config.h>

#include "ir/live_interval.h"
#include "ir/partial_order.h"
#include "alloc/alias_sets.h"
#include "alloc/assign.h"
#include "alloc/is_planned.h"
#include "alloc/byte_liveness.h"
#include "alloc/op_facts.h"

struct om_alias_sets {
	const om_prog *p;
	om_assignment *a;        /* the assignment under construction */
	om_arena *mem;
	om_alias_set **of;           /* by value id, like all arrays here */
	uint64_t *offset;        /* bytes into the storage of the alias set */
	const uint64_t *bytes;
	om_value **origin;
	uint64_t *at;            /* bytes into the origin */
	om_partial_order *reach;         /* NULL: only the order of the file counts */
	const om_op **node;      /* by position: ops of the graph */
	bool is_stuck;           /* the partial order could not be computed: nothing is merged */
};

static uint64_t
rounded(const om_alias_sets *g, uint64_t bytes)
{
	return (bytes + g->a->request->align - 1) & ~(g->a->request->align - 1);
}

static void
insert(om_alias_sets *g, om_alias_set *to, om_value *v, uint64_t offset)
{
	const om_live_interval *live = &g->a->live[v->id];
	const uint32_t until = to->n && to->until[to->n - 1] > live->last ? to->until[to->n - 1] : live->last;
	size_t n = to->n;

	OM_PUSH(g->mem, to->until, n, to->capuntil, until);
	OM_PUSH(g->mem, to->member, to->n, to->cap, v);
	g->of[v->id] = to;
	g->offset[v->id] = offset;
	if (live->first < to->first)
		to->first = live->first;
	if (live->last > to->last)
		to->last = live->last;
}

static om_alias_set *
new_group(om_alias_sets *g, om_value *root)
{
	const om_live_interval *live = &g->a->live[root->id];
	om_alias_set *own = OM_NEW(g->mem, om_alias_set);

	*own = (om_alias_set){.root = root, .first = live->first, .last = live->last,
		.is_outside = g->a->facts->is_outside[root->id]};
	own->bytes = own->is_outside ? 0 : rounded(g, g->bytes[root->id]);
	insert(g, own, root, 0);
	return own;
}

static void
add_value(om_alias_sets *g, om_value *v)
{
	const om_backing *at = &g->a->backing[v->id];
	uint64_t offset;

	if (g->of[v->id] || g->a->facts->is_unplanned[v->id])
		return;
	om_value *root = om_storage(g->a, v, &offset);
	if (g->a->facts->is_unplanned[root->id])
		return;
	g->origin[v->id] = v;
	if (at->store == OM_VIEW && g->origin[at->source->id]) {
		g->origin[v->id] = g->origin[at->source->id];
		g->at[v->id] = g->at[at->source->id] + at->offset;
	}
	om_alias_set *own = g->of[root->id];
	if (!own) {
		own = new_group(g, root);
		g->origin[root->id] = root;
	}
	if (root != v)
		insert(g, own, v, offset);
}

static void
add_block(om_alias_sets *g, const om_block *b)
{
	for (uint32_t k = 0; k < b->nparam; k++)
		add_value(g, b->param[k]);
	for (om_op *const *at = g->a->schedule->ops[b->id]; *at; at++) {
		const om_op *op = *at;
		for (uint32_t k = 0; k < op->nin; k++)
			if (op->in[k] && op->in[k]->is_const)
				add_value(g, op->in[k]);
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k])
				add_value(g, op->out[k]);
		for (uint32_t k = 0; k < op->nbody; k++)
			add_block(g, op->body[k]);
	}
}

/* If the order exceeds the memory limit, the packer reports it. */
static void
find_order(om_alias_sets *g)
{
	uint32_t n = 0;

	g->is_stuck = om_partial_order_new(NULL, g->p, g->mem, &g->reach) != OM_OK;
	g->node = OM_NEWN(g->mem, const om_op *, g->p->first->nop);
	for (const om_op *op = g->p->first->first; op; op = op->next)
		g->node[n++] = op;
}

om_alias_sets *
om_alias_sets_new(const om_prog *p, om_assignment *a, om_arena *mem)
{
	om_alias_sets *g = OM_NEW(mem, om_alias_sets);

	*g = (om_alias_sets){.p = p, .a = a, .mem = mem, .of = OM_NEWN(mem, om_alias_set *, p->nvalue),
		.offset = OM_NEWN(mem, uint64_t, p->nvalue), .bytes = a->facts->bytes,
		.origin = OM_NEWN(mem, om_value *, p->nvalue), .at = OM_NEWN(mem, uint64_t, p->nvalue)};
	if (a->request->parallel_safe)
		find_order(g);
	add_block(g, p->first);
	return g;
}

const om_alias_set *
om_alias_sets_find(const om_alias_sets *g, const om_value *v, uint64_t *offset)
{
	if (offset)
		*offset = g->offset[v->id];
	return g->of[v->id];
}

/* ---- Extending lifetimes. ---- */

static bool
hold_one(const om_alias_sets *g, const om_value *a, const om_value *b)
{
	return g->origin[a->id] == g->origin[b->id]
	    && g->at[a->id] - g->offset[a->id] == g->at[b->id] - g->offset[b->id];
}

static bool
may_widen(const om_alias_sets *g, const om_alias_set *own, const om_value *v, uint32_t first, uint32_t last)
{
	const uint64_t from = g->offset[v->id], to = from + g->bytes[v->id];

	for (size_t k = 0; k < own->n; k++) {
		const om_value *m = own->member[k];
		const uint64_t at = g->offset[m->id];
		if (m != v && at < to && from < at + g->bytes[m->id] && !hold_one(g, m, v)
		    && om_live_interval_meets(&g->a->live[m->id], first, last))
			return false;
	}
	return true;
}

bool
om_alias_sets_extend(om_alias_sets *g, om_value *v, uint32_t first, uint32_t last, bool always,
	om_arena *mem)
{
	om_alias_set *own = g->of[v->id];
	om_live_interval *live = &g->a->live[v->id];
	size_t k = 0;

	if (own && !always && !may_widen(g, own, v, first, last))
		return false;
	om_live_interval_add(live, first, last, mem);
	if (!own)
		return true;
	own->first = first < own->first ? first : own->first;
	own->last = last > own->last ? last : own->last;
	while (own->member[k] != v)
		k++;
	for (; k < own->n; k++)
		own->until[k] = own->until[k] > last ? own->until[k] : last;
	return true;
}

/* ---- Merging one set into another. ---- */

struct move {
	om_alias_sets *g;
	om_alias_set *from, *to;
	uint64_t base;               /* offset of `from` in `to` */
	const om_alias_edge *same;         /* values of `from` that are bytes of `source` */
	uint32_t n;
	const om_value *source;
	/* `out` overwrites, or takes over, values that end where it starts.  NULL: none */
	const om_value *out;
	om_value *const *in;
	uint32_t nin;
};

/* Is every byte of the member `m` of `from` part of the source? */
static bool
is_covered(const struct move *x, const om_value *m)
{
	const om_alias_sets *g = x->g;
	uint64_t at = g->at[m->id];
	const uint64_t end = at + g->bytes[m->id];

	for (uint32_t k = 0; k < x->n && at < end;) {
		const om_value *s = x->same[k].v;
		const uint64_t from = g->at[s->id], to = from + g->bytes[s->id];
		if (g->origin[s->id] == g->origin[m->id] && from <= at && at < to
		    && g->offset[s->id] - from == g->offset[m->id] - g->at[m->id]) {
			at = to;
			k = 0;
		} else {
			k++;
		}
	}
	return at >= end;
}

/* Do `m` of `from` and `t` of `to` have equal content in the bytes that they share? */
static bool
hold_the_same(const struct move *x, const om_value *m, const om_value *t)
{
	const om_alias_sets *g = x->g;

	return x->n && g->origin[t->id] == g->origin[x->source->id]
	    && g->at[t->id] - g->offset[t->id] == g->at[x->source->id] - g->offset[x->source->id]
	    && is_covered(x, m);
}

static bool
is_pair(const struct move *x, const om_value *a, const om_value *b)
{
	const om_value *other = a == x->out ? b : b == x->out ? a : NULL;

	for (uint32_t k = 0; other && k < x->nin; k++)
		if (x->in[k] == other)
			return true;
	return false;
}

/* Is the lifetime of `a` over before that of `b` begins, in every order? */
static bool
is_over_before(const om_alias_sets *g, const om_value *a, const om_value *b)
{
	const om_partial_order *r = g->reach;
	const uint32_t *touch = r->touch + r->start[a->id];

	if (r->ntouch[a->id] == 0 || r->ntouch[b->id] == 0 || (!b->def && b->block == g->p->first))
		return false;
	const uint32_t begin = r->touch[r->start[b->id]];
	for (uint32_t k = 0; k < r->ntouch[a->id]; k++)
		if (touch[k] == begin && begin < r->n) {
			const uint32_t last = g->a->live[a->id].last, end = g->a->schedule->of_op[g->node[begin]->id].last;
			if ((last < end ? last : end) >= g->a->live[b->id].first)
				return false;
		} else if (!om_partial_order_node_before(r, touch[k], begin)) {
			return false;
		}
	return true;
}

/* Are both live at the same time? */
static bool
do_meet(const struct move *x, const om_value *m, const om_value *t)
{
	if (!x->g->reach)
		return om_live_intervals_meet(&x->g->a->live[m->id], &x->g->a->live[t->id]) && !is_pair(x, m, t);
	if (is_pair(x, m, t))
		return !om_partial_order_is_over(x->g->reach, x->in[0], x->out->def ? x->out->def : x->out->block->owner);
	return !is_over_before(x->g, m, t) && !is_over_before(x->g, t, m);
}

static bool
do_clash(const struct move *x, const om_value *m, const om_value *t)
{
	const uint64_t a = x->base + x->g->offset[m->id], b = x->g->offset[t->id];

	return a < b + x->g->bytes[t->id] && b < a + x->g->bytes[m->id]
	    && do_meet(x, m, t) && !hold_the_same(x, m, t);
}

/* Elements must be aligned to their size. */
static bool
is_aligned(const struct move *x, const om_value *m)
{
	const unsigned bytes = om_dtype_bits(m->type.elem) / 8;
	return bytes < 2 || (x->base + x->g->offset[m->id]) % bytes == 0;
}

static bool
is_allowed(const struct move *x)
{
	const uint64_t bytes = x->g->bytes[x->from->root->id], room = x->g->bytes[x->to->root->id];

	if (x->g->is_stuck || x->base > room || bytes > room - x->base)
		return false;
	for (size_t k = 0; k < x->from->n; k++) {
		const om_value *m = x->from->member[k];
		if (!is_aligned(x, m))
			return false;
		const om_live_interval *live = &x->g->a->live[m->id];
		if (live->last < x->to->first && !x->g->reach)
			continue;
		for (size_t i = x->to->n; i-- > 0 && (x->g->reach || x->to->until[i] >= live->first);)
			if (do_clash(x, m, x->to->member[i]))
				return false;
	}
	return true;
}

/* Members that are parts of the source get its origin. */
static void
move_origins(const struct move *x)
{
	om_alias_sets *g = x->g;
	bool *covered = OM_NEWN(g->mem, bool, x->from->n);
	const om_value *s = x->source;

	for (size_t k = 0; k < x->from->n && x->n; k++)
		covered[k] = is_covered(x, x->from->member[k]);
	for (size_t k = 0; k < x->from->n && x->n; k++) {
		const om_value *m = x->from->member[k];
		if (!covered[k])
			continue;
		g->origin[m->id] = g->origin[s->id];
		g->at[m->id] = x->base + g->offset[m->id] - g->offset[s->id] + g->at[s->id];
	}
}

static void
move_members(const struct move *x)
{
	move_origins(x);
	for (size_t k = 0; k < x->from->n; k++)
		insert(x->g, x->to, x->from->member[k], x->base + x->g->offset[x->from->member[k]->id]);
}

/* Make the root of the moved set a sub-buffer of `near` if it fits there, else of the owner of the
 * storage. */
static void
link_part(const struct move *x, om_value *near)
{
	const uint64_t at = x->g->offset[near->id];

	if (x->base >= at && x->base - at + x->g->bytes[x->from->root->id] <= x->g->bytes[near->id])
		om_assignment_back(x->g->a, x->from->root, OM_SUBBUFFER, near, x->base - at);
	else
		om_assignment_back(x->g->a, x->from->root, OM_SUBBUFFER, x->to->root, x->base);
}

bool
om_alias_sets_merge_at(om_alias_sets *g, om_value *source, const om_alias_edge *same, uint32_t n, om_store store)
{
	struct move x = {.g = g, .from = g->of[same->v->id], .to = g->of[source->id], .same = same,
		.n = n, .source = source};
	const uint64_t at = g->offset[source->id] + same->offset;

	if (!x.from || !x.to || x.from == x.to || x.from->is_outside || at < g->offset[same->v->id]
	    || (store == OM_VIEW && x.from->root != same->v))
		return false;
	x.base = at - g->offset[same->v->id];
	if (!is_allowed(&x))
		return false;
	if (store == OM_VIEW)
		om_assignment_back(g->a, same->v, OM_VIEW, source, same->offset);
	else
		link_part(&x, source);
	move_members(&x);
	return true;
}

bool
om_alias_sets_merge_inplace(om_alias_sets *g, om_value *out, om_value *in)
{
	struct move x = {.g = g, .from = g->of[out->id], .to = g->of[in->id], .in = &in, .nin = 1, .out = out};

	if (!x.from || !x.to || x.from == x.to || x.to->is_outside)
		return false;
	if (x.from->root == out && !x.from->is_outside) {
		x.base = g->offset[in->id];
		if (!is_allowed(&x))
			return false;
		om_assignment_back(g->a, out, OM_INPLACE, in, 0);
		move_members(&x);
		return true;
	}
	x.from = g->of[in->id];
	x.to = g->of[out->id];
	if (x.from->root->block != out->block || g->offset[out->id] < g->offset[in->id])
		return false;
	x.base = g->offset[out->id] - g->offset[in->id];
	if (!is_allowed(&x))
		return false;
	link_part(&x, out);
	move_members(&x);
	return true;
}

bool
om_alias_sets_merge_joined(om_alias_sets *g, om_value *out, om_value *const *in, uint32_t n, om_value *source,
	uint64_t offset)
{
	struct move x = {.g = g, .from = g->of[out->id], .to = g->of[source->id], .in = in, .nin = n, .out = out};

	if (!x.from || !x.to || x.from == x.to || x.from->root != out || x.from->is_outside || x.to->is_outside)
		return false;
	x.base = g->offset[source->id] + offset;
	if (!is_allowed(&x))
		return false;
	om_assignment_back(g->a, out, offset ? OM_SUBBUFFER : OM_INPLACE, source, offset);
	move_members(&x);
	return true;
}
