/* SPDX-License-Identifier: Apache-2.0 */
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

#include <stdlib.h>

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
	om_box_node **box;
	uint64_t *offset;        /* bytes into the storage of the alias set */
	const uint64_t *bytes;
	om_value **origin;
	uint64_t *at;            /* bytes into the origin */
	om_value **first_part;       /* the first value whose origin this is */
	om_value **next_part;        /* the next value of the same origin */
	om_partial_order *reach;         /* NULL: only the order of the file counts */
	const om_op **node;      /* by position: ops of the graph */
	struct span *span;       /* of the move at hand */
	uint32_t capspan;
	om_overwrite_reason refusal; /* of the last merge that was refused */
	bool is_stuck;           /* the partial order could not be computed: nothing is merged */
};

static uint64_t
rounded(const om_alias_sets *g, uint64_t bytes)
{
	return (bytes + g->a->request->align - 1) & ~(g->a->request->align - 1);
}

static bool
is_same(const om_content *a, const om_content *b)
{
	return a->origin == b->origin && a->shift == b->shift;
}

static om_content
content_of(const om_alias_sets *g, const om_value *v)
{
	return (om_content){g->origin[v->id], g->at[v->id] - g->offset[v->id]};
}

static void
insert(om_alias_sets *g, om_alias_set *to, om_value *v, uint64_t offset)
{
	const om_live_interval *live = &g->a->live[v->id];

	OM_PUSH(g->mem, to->member, to->n, to->cap, v);
	g->of[v->id] = to;
	g->offset[v->id] = offset;
	const om_content content = content_of(g, v);
	g->box[v->id] = om_box_tree_add(&to->boxes, g->mem, v,
		&(om_box){{live->first, live->last}, offset, offset + g->bytes[v->id]}, &content);
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
set_origin(om_alias_sets *g, om_value *v, om_value *origin, uint64_t at)
{
	g->origin[v->id] = origin;
	g->at[v->id] = at;
	g->next_part[v->id] = g->first_part[origin->id];
	g->first_part[origin->id] = v;
}

static void
add_value(om_alias_sets *g, const om_storages *from, om_value *v)
{
	const om_backing *at = &g->a->backing[v->id];

	if (g->of[v->id] || g->a->facts->is_unplanned[v->id])
		return;
	om_value *root = from->root[v->id];
	if (g->a->facts->is_unplanned[root->id])
		return;
	om_value *const source = at->store == OM_VIEW && g->origin[at->source->id] ? at->source : NULL;
	om_alias_set *own = g->of[root->id];
	if (!own) {
		set_origin(g, root, root, 0);
		own = new_group(g, root);
	}
	if (source && root != v)
		set_origin(g, v, g->origin[source->id], g->at[source->id] + at->offset);
	else if (root != v)
		set_origin(g, v, v, 0);
	if (root != v)
		insert(g, own, v, from->offset[v->id]);
}

static void
add_block(om_alias_sets *g, const om_storages *from, const om_block *b)
{
	for (uint32_t k = 0; k < b->nparam; k++)
		add_value(g, from, b->param[k]);
	for (om_op *const *at = g->a->schedule->ops[b->id]; *at; at++) {
		const om_op *op = *at;
		for (uint32_t k = 0; k < op->nin; k++)
			if (op->in[k] && op->in[k]->is_const)
				add_value(g, from, op->in[k]);
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k])
				add_value(g, from, op->out[k]);
		for (uint32_t k = 0; k < op->nbody; k++)
			add_block(g, from, op->body[k]);
	}
}

/* If the order exceeds the memory limit, the packer reports it. */
static void
find_order(om_alias_sets *g)
{
	uint32_t n = 0;

	g->is_stuck = om_partial_order_new(NULL, g->p, om_kept_inputs(g->p, g->a, g->mem), g->a->schedule->streams, g->mem, &g->reach) != OM_OK;
	g->node = OM_NEWN(g->mem, const om_op *, g->p->first->nop);
	for (const om_op *op = g->p->first->first; op; op = op->next)
		g->node[n++] = op;
}

om_alias_sets *
om_alias_sets_new(const om_prog *p, om_assignment *a, om_arena *mem)
{
	om_alias_sets *g = OM_NEW(mem, om_alias_sets);

	*g = (om_alias_sets){.p = p, .a = a, .mem = mem, .of = OM_NEWN(mem, om_alias_set *, p->nvalue),
		.box = OM_NEWN(mem, om_box_node *, p->nvalue),
		.offset = OM_NEWN(mem, uint64_t, p->nvalue), .bytes = a->facts->bytes,
		.origin = OM_NEWN(mem, om_value *, p->nvalue), .at = OM_NEWN(mem, uint64_t, p->nvalue),
		.first_part = OM_NEWN(mem, om_value *, p->nvalue), .next_part = OM_NEWN(mem, om_value *, p->nvalue)};
	if (a->request->parallel_safe)
		find_order(g);
	const om_storages from = om_storages_new(p, a, mem);
	add_block(g, &from, p->first);
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

struct widening {
	const om_alias_sets *g;
	const om_value *v;
	uint32_t first, last;
};

/* The steps of a box include those in the gaps of a lifetime. */
static bool
is_other(const void *arg, const om_value *m)
{
	const struct widening *w = arg;

	return m != w->v && om_live_interval_meets(&w->g->a->live[m->id], w->first, w->last);
}

/* Does no other member change the bytes of `v` in these steps? */
static bool
may_widen(const om_alias_sets *g, const om_alias_set *own, const om_value *v, uint32_t first, uint32_t last)
{
	const om_box box = {{first, last}, g->offset[v->id], g->offset[v->id] + g->bytes[v->id]};
	const om_content content = content_of(g, v);

	return !om_box_tree_any(own->boxes, &box, &content, is_other,
		&(struct widening){g, v, first, last});
}

bool
om_alias_sets_extend(om_alias_sets *g, om_value *v, uint32_t first, uint32_t last, bool always,
	om_arena *mem)
{
	om_alias_set *own = g->of[v->id];
	om_live_interval *live = &g->a->live[v->id];

	if (own && !always && !may_widen(g, own, v, first, last))
		return false;
	om_live_interval_add(live, first, last, mem);
	if (!own)
		return true;
	own->first = first < own->first ? first : own->first;
	own->last = last > own->last ? last : own->last;
	om_box_tree_extend(own->boxes, g->box[v->id], (om_steps){live->first, live->last});
	return true;
}

struct steps_in_use {
	const om_alias_sets *g;
	const om_live_interval *live;
};

static bool
is_live(const void *arg, const om_value *m)
{
	const struct steps_in_use *w = arg;

	return om_live_intervals_meet(w->live, &w->g->a->live[m->id]);
}

bool
om_alias_sets_in_use(const om_alias_sets *g, const om_alias_set *set, const om_live_interval *live)
{
	const om_box box = {{live->first, live->last}, 0, UINT64_MAX};

	return om_box_tree_any(set->boxes, &box, NULL, is_live, &(struct steps_in_use){g, live});
}

/* ---- Merging one set into another. ---- */

/* Bytes [from, to) of the origin of a content. */
struct span {
	om_content content;
	uint64_t from, to;
};

struct move {
	om_alias_sets *g;
	om_alias_set *from, *to;
	uint64_t base;               /* offset of `from` in `to` */
	struct span *span;           /* values of `from` that are bytes of `source` */
	uint32_t nspan;
	const om_value *source;
	/* `out` overwrites, or takes over, values that end where it starts.  NULL: none */
	const om_value *out;
	om_value *const *in;
	uint32_t nin;
	bool is_turned;              /* `from` is the larger set, at offset 0: it takes the members of `to` */
};

static int
by_content(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->content.origin != y->content.origin)
		return x->content.origin->id < y->content.origin->id ? -1 : 1;
	if (x->content.shift != y->content.shift)
		return x->content.shift < y->content.shift ? -1 : 1;
	return (x->from > y->from) - (x->from < y->from);
}

/* The bytes of the source that are in `from`: sorted, and joined where they touch. */
static void
list_spans(struct move *x, const om_alias_edge *same, uint32_t n)
{
	om_alias_sets *g = x->g;

	if (n > g->capspan) {
		g->capspan = 2 * n;
		g->span = OM_NEWN(g->mem, struct span, g->capspan);
	}
	struct span *all = x->span = g->span;
	for (uint32_t k = 0; k < n; k++) {
		const uint32_t s = same[k].v->id;
		all[k] = (struct span){content_of(g, same[k].v), g->at[s], g->at[s] + g->bytes[s]};
	}
	qsort(all, n, sizeof *all, by_content);
	for (uint32_t k = 0; k < n; k++) {
		struct span *last = x->nspan ? &all[x->nspan - 1] : NULL;
		if (last && is_same(&last->content, &all[k].content) && all[k].from <= last->to)
			last->to = last->to > all[k].to ? last->to : all[k].to;
		else
			all[x->nspan++] = all[k];
	}
}

/* Is every byte of the member `m` of `from` part of the source? */
static bool
is_covered(const struct move *x, const om_value *m)
{
	const uint64_t from = x->g->at[m->id], to = from + x->g->bytes[m->id];
	const struct span key = {content_of(x->g, m), from, to};
	uint32_t lower = 0, upper = x->nspan;

	while (lower < upper) {  /* the first span after `key` */
		const uint32_t mid = (lower + upper) / 2;
		if (by_content(&x->span[mid], &key) <= 0)
			lower = mid + 1;
		else
			upper = mid;
	}
	const struct span *s = lower ? &x->span[lower - 1] : NULL;
	return from == to || (s && is_same(&s->content, &key.content) && to <= s->to);
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

struct probe {
	const struct move *x;
	const om_value *v;           /* member of the other set */
	bool is_source;              /* `v` has the content of the source: what the source covers is equal */
	const om_value **found;
};

static bool
do_clash(const void *arg, const om_value *m)
{
	const struct probe *p = arg;

	if ((p->is_source && is_covered(p->x, m)) || !do_meet(p->x, p->v, m))
		return false;
	*p->found = m;
	return true;
}

static om_box
box_at(const om_alias_sets *g, const om_value *v, uint64_t base)
{
	const uint64_t lower = base + g->offset[v->id];
	const om_live_interval *live = &g->a->live[v->id];

	return (om_box){g->reach ? (om_steps){0, UINT32_MAX} : (om_steps){live->first, live->last}, lower, lower + g->bytes[v->id]};
}

/* A member of `to` with which the member `m` of `from` would overwrite each other's bytes; NULL: none. */
static const om_value *
find_clash(const struct move *x, const om_value *m)
{
	const om_value *found = NULL;
	const om_box box = box_at(x->g, m, x->base);
	om_content same;

	if (x->nspan)
		same = content_of(x->g, x->source);
	om_box_tree_any(x->to->boxes, &box, x->nspan && is_covered(x, m) ? &same : NULL, do_clash,
		&(struct probe){x, m, false, &found});
	return found;
}

/* The same for the member `t` of `to`, where `from` keeps its offsets. */
static const om_value *
find_clash_turned(const struct move *x, const om_value *t)
{
	const om_value *found = NULL;
	const om_box box = box_at(x->g, t, 0);
	const om_content content = content_of(x->g, t), same = x->nspan ? content_of(x->g, x->source) : content;

	om_box_tree_any(x->from->boxes, &box, NULL, do_clash,
		&(struct probe){x, t, x->nspan && is_same(&content, &same), &found});
	return found;
}

/* Elements must be aligned to their size. */
static bool
is_aligned(const struct move *x, const om_value *m)
{
	const unsigned bytes = om_dtype_bits(m->type.elem) / 8;
	return bytes < 2 || (x->base + x->g->offset[m->id]) % bytes == 0;
}

static bool
refuse(om_alias_sets *g, om_overwrite why, const om_value *by)
{
	g->refusal = (om_overwrite_reason){why, by};
	return false;
}

/* Of two values that clash, the one that the op does not refer to, if there is one. */
static const om_value *
third(const struct move *x, const om_value *m, const om_value *t)
{
	return t == x->out || t == x->source || (x->nin && t == x->in[0]) ? m : t;
}

/* Has the member `m` no clash?  `clash` is what was found. */
static bool
is_free(const struct move *x, const om_value *m, const om_value *clash)
{
	return !clash || refuse(x->g, OM_OVERWRITE_CLASH, third(x, m, clash));
}

/* The smaller set is the one to be walked: in a long chain of merges, a value is walked O(log n) times. */
static bool
is_allowed(struct move *x)
{
	const uint64_t bytes = x->g->bytes[x->from->root->id], room = x->g->bytes[x->to->root->id];

	if (x->g->is_stuck)
		return refuse(x->g, OM_OVERWRITE_NO_ORDER, NULL);
	if (x->base > room || bytes > room - x->base)
		return refuse(x->g, OM_OVERWRITE_ROOM, NULL);
	x->is_turned = x->base == 0 && x->from->n > x->to->n;
	for (size_t k = 0; k < x->to->n && x->is_turned; k++)
		if (!is_free(x, x->to->member[k], find_clash_turned(x, x->to->member[k])))
			return false;
	for (size_t k = 0; k < x->from->n && !x->is_turned; k++) {
		const om_value *m = x->from->member[k];
		if (!is_aligned(x, m))
			return refuse(x->g, OM_OVERWRITE_ALIGNMENT, NULL);
		if (!is_free(x, m, find_clash(x, m)))
			return false;
	}
	return true;
}

om_overwrite_reason
om_alias_sets_refusal(const om_alias_sets *g)
{
	return g->refusal;
}

/* Values of `origin` that are parts of the source get its origin. */
static void
move_parts(const struct move *x, const om_value *origin)
{
	om_alias_sets *g = x->g;
	const om_value *s = x->source;
	om_value *v = g->first_part[origin->id], *next;

	g->first_part[origin->id] = NULL;
	for (; v; v = next) {
		next = g->next_part[v->id];
		if (g->of[v->id] != x->from || !is_covered(x, v)) {
			set_origin(g, v, g->origin[v->id], g->at[v->id]);
			continue;
		}
		set_origin(g, v, g->origin[s->id], x->base + g->offset[v->id] - g->offset[s->id] + g->at[s->id]);
		if (x->is_turned)
			om_box_tree_relabel(x->from->boxes, g->box[v->id], &(om_content){g->origin[s->id], g->at[s->id] - g->offset[s->id]});
	}
}

/* Spans are sorted by origin. */
static void
move_origins(const struct move *x)
{
	for (uint32_t k = 0; k < x->nspan; k++)
		if (k == 0 || x->span[k].content.origin != x->span[k - 1].content.origin)
			move_parts(x, x->span[k].content.origin);
}

/* `from` becomes the set of the root of `to`. */
static void
take_members(const struct move *x)
{
	om_alias_set *set = x->from;
	const size_t root = set->n;

	for (size_t k = 0; k < x->to->n; k++)
		insert(x->g, set, x->to->member[k], x->g->offset[x->to->member[k]->id]);
	set->member[root] = set->member[0];
	set->member[0] = set->root = x->to->root;
	set->bytes = x->to->bytes;
	set->is_outside = x->to->is_outside;
}

static void
move_members(const struct move *x)
{
	move_origins(x);
	if (x->is_turned) {
		take_members(x);
		return;
	}
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

/* Are there two sets, the one that moves not outside? */
static bool
has_sets(const struct move *x)
{
	if (!x->from || !x->to)
		return refuse(x->g, OM_OVERWRITE_NO_SIZE, NULL);
	if (x->from == x->to)
		return refuse(x->g, OM_OVERWRITE_SHARED, NULL);
	return !x->from->is_outside || refuse(x->g, OM_OVERWRITE_OUTSIDE, NULL);
}

bool
om_alias_sets_merge_at(om_alias_sets *g, om_value *source, const om_alias_edge *same, uint32_t n, om_store store)
{
	struct move x = {.g = g, .from = g->of[same->v->id], .to = g->of[source->id], .source = source};
	const uint64_t at = g->offset[source->id] + same->offset;

	if (!has_sets(&x))
		return false;
	if (at < g->offset[same->v->id] || (store == OM_VIEW && x.from->root != same->v))
		return refuse(g, OM_OVERWRITE_ROOM, NULL);
	if (store != OM_VIEW && !om_block_inside(x.from->root->block, source->block))
		return refuse(g, OM_OVERWRITE_BODY, NULL);
	x.base = at - g->offset[same->v->id];
	list_spans(&x, same, n);
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
om_alias_sets_merge_joined(om_alias_sets *g, om_value *out, om_value *const *in, uint32_t n, om_value *source,
	uint64_t offset)
{
	struct move x = {.g = g, .from = g->of[out->id], .to = g->of[source->id], .in = in, .nin = n, .out = out};

	if (!has_sets(&x))
		return false;
	if (x.from->root != out)
		return refuse(g, OM_OVERWRITE_VIEW, NULL);
	if (x.to->is_outside)
		return refuse(g, OM_OVERWRITE_OUTSIDE, NULL);
	x.base = g->offset[source->id] + offset;
	if (!is_allowed(&x))
		return false;
	om_assignment_back(g->a, out, offset ? OM_SUBBUFFER : OM_INPLACE, source, offset);
	move_members(&x);
	return true;
}

bool
om_alias_sets_merge_inplace(om_alias_sets *g, om_value *out, om_value *in)
{
	struct move x = {.g = g, .from = g->of[in->id], .to = g->of[out->id], .in = &in, .nin = 1, .out = out};

	if (!has_sets(&x))
		return false;
	if (x.to->root == out && !x.to->is_outside)
		return om_alias_sets_merge_joined(g, out, &in, 1, in, 0);
	if (x.from->root->block != out->block)
		return refuse(g, OM_OVERWRITE_BODY, NULL);
	if (g->offset[out->id] < g->offset[in->id])
		return refuse(g, OM_OVERWRITE_ROOM, NULL);
	x.base = g->offset[out->id] - g->offset[in->id];
	if (!is_allowed(&x))
		return false;
	link_part(&x, out);
	move_members(&x);
	return true;
}
