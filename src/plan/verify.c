/* The verifier of plans.
 *
 * It believes nothing that a pass or a packer found out: it walks the run that
 * the program describes and keeps, for every byte, whose content lies there.
 * A read must find the whole value; a write takes its bytes away from whoever
 * had them.  Who is overwritten too early shows when he is read again.
 *
 * Bodies need no second walk.  A branch starts from a copy of the state; behind
 * an If, whatever a branch may have written belongs to nobody.  A loop is
 * walked once, in the state at the head of a later round: all that the body
 * writes was written already.  That state knows no more than those of the
 * first round and of no round at all, so what is whole in it is whole in them.
 *
 * An op that finds inputs where they go in its output writes around them: then
 * what the output holds is made of pieces, those of the inputs among them.
 *
 * A plan that has to hold in every order is walked in the order of the file, and
 * what the walk finds is checked in verify_free.c.
 *
 * Kernels write no further than a value's bytes; that an output may lie over
 * an input of its own op is for the operator's row to say.
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>

#include "onnxmem/op.h"
#include "onnxmem/plan.h"
#include "plan/ranges.h"
#include "plan/verify_free.h"

/* Where a value lies.  Spaces are the arenas, then one for each value. */
struct home {
	bool tracked;         /* has bytes whose place is known */
	bool tied;            /* on the way to its storage lies a tie */
	uint32_t space;
	uint64_t lower;
	uint64_t bytes;       /* its elements */
	uint64_t storage;     /* what a write takes: bytes, rounded up for an own place */
};

/* Bytes [from, to) of a content, which `who` wrote: from its byte `at` on. */
struct piece {
	uint64_t from, to;
	uint32_t who;
	uint64_t at;
};

/* What the elements of a value are: bytes that `who` wrote, from `at` on, where
 * who is OM_NOBODY before it is computed.  Or, where there are pieces, those from
 * `at` on: an op found parts of its output where they go. */
struct content {
	uint32_t who;
	uint64_t at;
	const struct piece *piece;
	size_t n;
};

struct sim {
	const om_prog *p;
	const om_plan *plan;
	om_session *session;
	om_arena *mem;
	om_ranges *state;
	struct home *home;              /* by value id, like all but scratch */
	struct content *content;
	const om_alias **alias;
	uint32_t *first, *last;         /* steps in which it was read or written */
	uint32_t *victim;               /* of an output: the input that it lies over */
	bool *is_input, *is_output;     /* of the graph */
	const om_scratch **scratch;     /* by op id */
	uint32_t step;                  /* the next one */
	uint32_t now;
	uint32_t node;                  /* which op of the graph runs */
	om_free_walk *any_order;        /* NULL: the plan is for the order of the file */
};

#define BAD(c, ...)  om_fail((c)->session, OM_BADPLAN, __VA_ARGS__)

/* In the name of an op, or, where op is NULL, of the graph. */
#define BAD_AT(c, op, ...)                                                     \
	((op) ? om_op_fail((c)->session, OM_BADPLAN, (op), __VA_ARGS__)        \
	      : om_fail((c)->session, OM_BADPLAN, "the graph: " __VA_ARGS__))

struct text { char s[256]; };

static struct text
bytes_text(const struct sim *c, uint32_t space, uint64_t lower, uint64_t upper)
{
	struct text t;
	const int n = snprintf(t.s, sizeof t.s, "bytes %" PRIu64 "..%" PRIu64 " of ", lower, upper - 1);

	if (space < c->plan->narena)
		snprintf(t.s + n, sizeof t.s - (size_t)n, "arena %u", space);
	else
		snprintf(t.s + n, sizeof t.s - (size_t)n, "the memory of %.160s",
			c->p->values[space - c->plan->narena]->name);
	return t;
}

static struct text
home_text(const struct sim *c, const om_value *v)
{
	const struct home *h = &c->home[v->id];
	return bytes_text(c, h->space, h->lower, h->lower + h->bytes);
}

static struct text
who_text(const struct sim *c, uint32_t who)
{
	struct text t;

	if (who == OM_NOBODY)
		snprintf(t.s, sizeof t.s, "nobody");
	else if (who < c->p->nvalue)
		snprintf(t.s, sizeof t.s, "%.200s", c->p->values[who]->name);
	else
		snprintf(t.s, sizeof t.s, "the scratch of an op");
	return t;
}

/* ---- The plan on its own. ---- */

static bool
is_weight(const om_value *v)
{
	return v->is_const || v->is_overridable;
}

static om_status
check_arena(struct sim *c, uint32_t k)
{
	const om_plan_arena *a = &c->plan->arena[k];

	if (a->align & (a->align - 1))
		return BAD(c, "arena %u: its alignment, %" PRIu64 ", is no power of two", k, a->align);
	if (a->limit && a->bytes > a->limit)
		return BAD(c, "arena %u takes %" PRIu64 " bytes, more than its limit of %" PRIu64, k,
			a->bytes, a->limit);
	return OM_OK;
}

static om_status
check_inside(struct sim *c, const char *what, uint32_t arena, uint64_t offset, uint64_t bytes)
{
	uint64_t end;

	if (arena >= c->plan->narena)
		return BAD(c, "%s is in arena %u, but the plan has %u", what, arena, c->plan->narena);
	if (__builtin_add_overflow(offset, bytes, &end) || end > c->plan->arena[arena].bytes)
		return BAD(c, "%s: offset %" PRIu64 " + %" PRIu64 " bytes reaches out of arena %u, which has "
			"%" PRIu64, what, offset, bytes, arena, c->plan->arena[arena].bytes);
	return OM_OK;
}

static om_status
check_aligned(struct sim *c, const char *what, uint32_t arena, uint64_t offset)
{
	const uint64_t align = c->plan->arena[arena].align;

	if (align > 1 && offset & (align - 1))
		return BAD(c, "%s: offset %" PRIu64 " is not a multiple of %" PRIu64 ", the alignment of arena %u",
			what, offset, align, arena);
	return OM_OK;
}

static om_status
locate_in_arena(struct sim *c, const om_value *v, bool sized)
{
	const om_place *at = &c->plan->place[v->id];
	struct home *h = &c->home[v->id];

	if (!sized)
		return BAD(c, "%s is planned, but its size is not known", v->name);
	if (h->bytes == 0)
		return OM_OK;
	OM_TRY(check_inside(c, v->name, at->arena, at->offset, at->bytes));
	if (h->bytes > at->bytes)
		return BAD(c, "%s takes %" PRIu64 " bytes, but is planned with %" PRIu64, v->name, h->bytes,
			at->bytes);
	if (!c->alias[v->id])
		OM_TRY(check_aligned(c, v->name, at->arena, at->offset));
	h->tracked = true;
	h->space = at->arena;
	h->lower = at->offset;
	h->storage = at->bytes;
	return OM_OK;
}

/* Outside the arenas every value that is no alias has a space of its own. */
static om_status
locate_outside(struct sim *c, const om_value *v, bool sized)
{
	struct home *h = &c->home[v->id];
	const om_value *root = v;
	uint32_t hops = 0;

	for (const om_alias *a; (a = c->alias[root->id]); root = c->p->values[a->source]) {
		if (hops++ > c->plan->nalias)
			return BAD(c, "%s: its aliases go in a circle", v->name);
		if (__builtin_add_overflow(h->lower, a->offset, &h->lower))
			return BAD(c, "%s: the offsets of its aliases overflow", v->name);
		h->tied |= a->kind == OM_ALIAS_TIE;
	}
	const bool weight = c->plan->place[v->id].where == OM_WEIGHT;
	if (weight ? !is_weight(root) : !c->is_input[root->id] && !c->is_output[root->id]
	    && !root->is_overridable)
		return BAD(c, "%s is planned %s, but %s is %s", v->name,
			weight ? "as a constant" : "in the caller's memory", root->name,
			weight ? "no constant" : "neither an input nor an output of the graph");
	h->tracked = sized && h->bytes;
	h->space = c->plan->narena + root->id;
	h->storage = h->bytes;
	return OM_OK;
}

static om_status
locate(struct sim *c, const om_value *v)
{
	struct home *h = &c->home[v->id];
	const bool sized = v->type.kind == OM_TENSOR && om_tensor_bytes(v->type.elem, &v->shape, &h->bytes);

	switch (c->plan->place[v->id].where) {
	case OM_IN_ARENA: return locate_in_arena(c, v, sized);
	case OM_EXTERNAL: case OM_WEIGHT: return locate_outside(c, v, sized);
	case OM_NOWHERE: case OM_UNPLANNED: case OM_MOVING: break;
	}
	return OM_OK;
}

/* An alias is true to the places; that the operators agree shows in the walk. */
static om_status
check_alias(struct sim *c, const om_alias *a)
{
	const om_value *v = c->p->values[a->value], *source = c->p->values[a->source];
	const struct home *h = &c->home[a->value], *s = &c->home[a->source];

	if (!h->tracked && (!s->tracked || h->bytes == 0))
		return OM_OK;
	if (!h->tracked || !s->tracked)
		return BAD(c, "%s shares the memory of %s, but only one of them has a place", v->name,
			source->name);
	if (h->space != s->space || h->lower < s->lower || h->lower - s->lower != a->offset)
		return BAD(c, "%s (%s) is said to lie at byte %" PRIu64 " of %s (%s)", v->name,
			home_text(c, v).s, a->offset, source->name, home_text(c, source).s);
	if (a->kind == OM_ALIAS_VIEW || a->kind == OM_ALIAS_PART
	    ? h->bytes > s->bytes - a->offset || a->offset > s->bytes
	    : a->kind == OM_ALIAS_INPLACE ? h->bytes > s->bytes || a->offset : h->bytes != s->bytes || a->offset)
		return BAD(c, "%s has %" PRIu64 " bytes: too many or too few to share those of %s, which has "
			"%" PRIu64, v->name, h->bytes, source->name, s->bytes);
	if (a->kind == OM_ALIAS_TIE && (!c->is_output[a->value] || !c->is_input[a->source]))
		return BAD(c, "%s is tied to %s: only an output of the graph can be tied to an input", v->name,
			source->name);
	return OM_OK;
}

static om_status
collect_aliases(struct sim *c)
{
	for (uint32_t k = 0; k < c->plan->nalias; k++) {
		const om_alias *a = &c->plan->alias[k];
		if (a->value >= c->p->nvalue || a->source >= c->p->nvalue)
			return BAD(c, "an alias names a value that the program does not have");
		if (c->alias[a->value])
			return BAD(c, "%s has two aliases", c->p->values[a->value]->name);
		c->alias[a->value] = a;
	}
	return OM_OK;
}

static om_status
collect_scratch(struct sim *c)
{
	for (uint32_t k = 0; k < c->plan->nscratch; k++) {
		const om_scratch *s = &c->plan->scratch[k];
		if (s->op >= c->p->nop)
			return BAD(c, "scratch is planned for an op that the program does not have");
		if (c->scratch[s->op])
			return BAD(c, "scratch is planned twice for one op");
		OM_TRY(check_inside(c, "scratch", s->arena, s->offset, s->bytes));
		if (s->bytes)
			OM_TRY(check_aligned(c, "scratch", s->arena, s->offset));
		c->scratch[s->op] = s;
	}
	return OM_OK;
}

static om_status
check_plan(struct sim *c)
{
	const om_plan *plan = c->plan;

	if (plan->nplace != c->p->nvalue)
		return BAD(c, "the plan is for %u values, the program has %u", plan->nplace, c->p->nvalue);
	if (plan->nview)
		return BAD(c, "%s has a view that changes from round to round, which cannot be checked",
			plan->view->value < c->p->nvalue ? c->p->values[plan->view->value]->name : "a value");
	for (uint32_t k = 0; k < plan->narena; k++)
		OM_TRY(check_arena(c, k));
	OM_TRY(collect_aliases(c));
	OM_TRY(collect_scratch(c));
	for (uint32_t k = 0; k < c->p->nvalue; k++)
		OM_TRY(locate(c, c->p->values[k]));
	for (uint32_t k = 0; k < plan->nalias; k++)
		OM_TRY(check_alias(c, &plan->alias[k]));
	return OM_OK;
}

/* ---- Reading and writing. ---- */

/* The bytes of `want` become those of its owner. */
static void
set(struct sim *c, const om_range *want)
{
	for (uint64_t at = want->lower; c->any_order && at < want->upper;) {
		const om_range old = om_ranges_at(c->state, want->space, at);
		const uint64_t upper = old.upper < want->upper ? old.upper : want->upper, from = old.at + (at - old.lower);
		if (old.who != OM_NOBODY && old.who != want->who)
			om_free_walk_over(c->any_order, c->node, want->who, old.who, from, from + (upper - at));
		at = upper;
	}
	if (c->any_order && want->lower < want->upper)
		om_free_walk_touch(c->any_order, c->node, want->who, want->at, want->at + (want->upper - want->lower));
	om_ranges_set(c->state, want);
}

/* A value that takes part in the run has a place of the right kind. */
static om_status
check_kind(struct sim *c, const om_op *op, const om_value *v)
{
	const om_where where = c->plan->place[v->id].where;

	if (where == OM_NOWHERE)
		return BAD_AT(c, op, "%s has no place in the plan", v->name);
	if (v->is_const && where != OM_WEIGHT)
		return BAD_AT(c, op, "%s is a constant, but is not planned as one", v->name);
	if (where == OM_IN_ARENA && (c->is_input[v->id] || c->is_output[v->id]))
		return BAD_AT(c, op, "%s belongs to the caller, but is planned in arena %u", v->name,
			c->plan->place[v->id].arena);
	return OM_OK;
}

static void
touch(struct sim *c, const om_value *v)
{
	if (c->now < c->first[v->id])
		c->first[v->id] = c->now;
	if (c->now > c->last[v->id])
		c->last[v->id] = c->now;
}

/* The bytes of `v` as they have to be when it is read, in as many ranges as it
 * has pieces; false behind the last one. */
static bool
wanted(const struct sim *c, const om_value *v, size_t k, om_range *want)
{
	const struct home *h = &c->home[v->id];
	const struct content *is = &c->content[v->id];

	*want = (om_range){h->space, h->lower, h->lower + h->bytes, is->who, is->at, false};
	if (is->n == 0)
		return k == 0;
	if (k >= is->n)
		return false;
	const struct piece *p = &is->piece[k];
	const uint64_t from = p->from > is->at ? p->from : is->at;
	const uint64_t to = p->to < is->at + h->bytes ? p->to : is->at + h->bytes;
	want->lower = h->lower + (from < to ? from - is->at : 0);
	want->upper = want->lower + (from < to ? to - from : 0);
	want->who = p->who;
	want->at = p->at + (from - p->from);
	return true;
}

/* Is `v` whole where it lies? */
static bool
is_there(const struct sim *c, const om_value *v, om_range *bad)
{
	om_range want;

	for (size_t k = 0; wanted(c, v, k, &want); k++)
		if (!om_ranges_hold(c->state, &want, bad))
			return false;
	return true;
}

static bool
is_watched(const struct sim *c, const om_value *v)
{
	return v && c->home[v->id].tracked && c->plan->place[v->id].where != OM_WEIGHT;
}

static void
note_read(struct sim *c, const om_value *v)
{
	om_range r;

	for (size_t k = 0; c->any_order && wanted(c, v, k, &r); k++)
		om_free_walk_touch(c->any_order, c->node, r.who, r.at, r.at + (r.upper - r.lower));
}

static om_status
read_value(struct sim *c, const om_op *op, const om_value *v)
{
	om_range bad;

	if (!v)
		return OM_OK;
	OM_TRY(check_kind(c, op, v));
	touch(c, v);
	if (!is_watched(c, v))
		return OM_OK;
	if (c->content[v->id].who == OM_NOBODY)
		return BAD_AT(c, op, "%s is read in step %u, but not computed yet", v->name, c->now);
	if (is_there(c, v, &bad)) {
		note_read(c, v);
		return OM_OK;
	}
	return BAD_AT(c, op, "reads %s (%s) in step %u, but %s hold %s%s", v->name, home_text(c, v).s, c->now,
		bytes_text(c, bad.space, bad.lower, bad.upper).s, who_text(c, bad.who).s,
		bad.stale ? ", from a body that ran before" : "");
}

/* The bytes of `v` become its own. */
static void
take(struct sim *c, const om_value *v, bool stale)
{
	const struct home *h = &c->home[v->id];

	if (!is_watched(c, v))
		return;
	set(c, &(om_range){h->space, h->lower, h->lower + h->storage, v->id, 0, stale});
	if (!stale)
		c->content[v->id] = (struct content){.who = v->id};
}

static om_status
check_writable(struct sim *c, const om_op *op, const om_value *v)
{
	const struct home *h = &c->home[v->id];

	OM_TRY(check_kind(c, op, v));
	touch(c, v);
	if (!h->tracked)
		return OM_OK;
	if (c->plan->place[v->id].where == OM_WEIGHT)
		return BAD_AT(c, op, "%s is written over a constant (%s)", v->name, home_text(c, v).s);
	if (h->space >= c->plan->narena && c->is_input[h->space - c->plan->narena] && !h->tied)
		return BAD_AT(c, op, "%s is written over an input of the graph (%s)", v->name,
			home_text(c, v).s);
	return OM_OK;
}

static om_status
write_value(struct sim *c, const om_op *op, const om_value *v)
{
	if (!v)
		return OM_OK;
	OM_TRY(check_writable(c, op, v));
	take(c, v, false);
	return OM_OK;
}

/* What was written in this step is still there: nothing else of the same step
 * lies over it. */
static om_status
check_written(struct sim *c, const om_op *op, const om_value *v)
{
	om_range bad;

	if (!is_watched(c, v))
		return OM_OK;
	if (is_there(c, v, &bad))
		return OM_OK;
	return BAD_AT(c, op, "%s (%s) and %s are written in the same step, and overlap", v->name,
		home_text(c, v).s, who_text(c, bad.who).s);
}

/* ---- Plain ops. ---- */

static bool
is_view(const struct sim *c, const om_value *v)
{
	const om_alias *a = c->alias[v->id];
	return a && a->kind == OM_ALIAS_VIEW;
}

static om_range
scratch_range(const struct sim *c, const om_op *op)
{
	const om_scratch *s = c->scratch[op->id];
	const uint32_t who = c->p->nvalue + op->id;

	if (!s)
		return (om_range){0};
	return (om_range){s->arena, s->offset, s->offset + s->bytes, who, 0, false};
}

static om_status
write_scratch(struct sim *c, const om_op *op)
{
	const om_scratch *s = c->scratch[op->id];
	const uint64_t need = c->p->target == OM_TARGET_CPU ? om_op_scratch(op) : 0;
	const om_range r = scratch_range(c, op);

	if (need > (s ? s->bytes : 0))
		return BAD_AT(c, op, "needs %" PRIu64 " bytes of scratch, but is planned with %" PRIu64, need,
			s ? s->bytes : 0);
	set(c, &r);
	return OM_OK;
}

/* Output `k` is said to be bytes of another value: nothing is written, and its
 * content is that of the input which the row names. */
static om_status
define_view(struct sim *c, const om_op *op, uint32_t k)
{
	const om_value *v = op->out[k];
	const struct home *h = &c->home[v->id];
	om_view_of view;

	OM_TRY(check_kind(c, op, v));
	touch(c, v);
	if (!h->tracked)
		return OM_OK;
	if (!om_op_view(op, k, &view))
		return BAD_AT(c, op, "%s is planned as a view, but the operator computes it", v->name);
	const om_value *in = op->in[view.in];
	const struct home *s = &c->home[in->id];
	if (!s->tracked || h->space != s->space || h->lower - s->lower != view.offset)
		return BAD_AT(c, op, "%s (%s) is planned as a view, but does not lie at byte %" PRIu64 " of %s (%s)",
			v->name, home_text(c, v).s, view.offset, in->name, home_text(c, in).s);
	c->content[v->id] = c->content[in->id];
	c->content[v->id].at += view.offset;
	return OM_OK;
}

static uint32_t
output_index(const om_op *op, uint32_t who)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && op->out[k]->id == who)
			return k;
	return UINT32_MAX;
}

/* An output may lie over the start of an input, where the row allows it and no
 * other input has those bytes. */
static om_status
check_over(struct sim *c, const om_op *op, uint32_t j, uint32_t who)
{
	const om_value *in = op->in[j];
	const uint32_t k = output_index(op, who);

	if (k == UINT32_MAX)
		return BAD_AT(c, op, "%s lies over input %s (%s)", who_text(c, who).s, in->name,
			home_text(c, in).s);
	const om_value *out = op->out[k];
	const struct home *h = &c->home[out->id], *s = &c->home[in->id];
	if (h->lower != s->lower || h->bytes > s->bytes)
		return BAD_AT(c, op, "output %s (%s) overlaps input %s (%s)", out->name, home_text(c, out).s,
			in->name, home_text(c, in).s);
	if (!om_op_reuse(op, k, j))
		return BAD_AT(c, op, "output %s lies over input %s (%s), which the operator does not allow",
			out->name, in->name, home_text(c, in).s);
	if (c->victim[out->id] != OM_NOBODY && c->victim[out->id] != in->id)
		return BAD_AT(c, op, "output %s lies over the inputs %s and %s (%s)", out->name,
			c->p->values[c->victim[out->id]]->name, in->name, home_text(c, in).s);
	c->victim[out->id] = in->id;
	return OM_OK;
}

/* Whoever took bytes of an input, one stretch after the other. */
static om_status
check_input_after(struct sim *c, const om_op *op, uint32_t j)
{
	const om_value *in = op->in[j];
	om_range bad, want;

	if (!is_watched(c, in))
		return OM_OK;
	for (size_t k = 0; wanted(c, in, k, &want); k++)
		while (!om_ranges_hold(c->state, &want, &bad)) {
			OM_TRY(check_over(c, op, j, bad.who));
			want.at += bad.upper - want.lower;
			want.lower = bad.upper;
		}
	return OM_OK;
}

/* ---- Inputs that lie in the output already. ---- */

struct pieces {
	struct piece *p;
	size_t n, cap;
};

static void
add_piece(struct sim *c, struct pieces *all, struct piece p)
{
	struct piece *last = all->n ? &all->p[all->n - 1] : NULL;

	if (p.from >= p.to)
		return;
	if (last && last->to == p.from && last->who == p.who && last->at + (p.from - last->from) == p.at)
		last->to = p.to;
	else
		OM_PUSH(c->mem, all->p, all->n, all->cap, p);
}

/* What input `in` holds becomes the output's from its byte `offset` on. */
static void
add_input(struct sim *c, struct pieces *all, const om_value *in, uint64_t offset)
{
	const uint64_t lower = c->home[in->id].lower;
	om_range r;

	for (size_t k = 0; wanted(c, in, k, &r); k++)
		add_piece(c, all, (struct piece){offset + (r.lower - lower), offset + (r.upper - lower), r.who, r.at});
}

/* Does input `j` lie where it goes? */
static bool
is_in_place(const struct sim *c, const om_op *op, uint32_t j, uint64_t *offset)
{
	const om_value *in = op->in[j];
	const struct home *h = &c->home[op->out[0]->id], *s;

	if (!is_watched(c, in) || !om_op_into(op, j, offset))
		return false;
	s = &c->home[in->id];
	return s->space == h->space && s->lower == h->lower + *offset && *offset <= h->bytes
	    && s->bytes <= h->bytes - *offset;
}

static bool
has_parts(const struct sim *c, const om_op *op)
{
	uint64_t offset;

	if (!op->row || !op->row->into || !is_watched(c, op->out[0]) || is_view(c, op->out[0]))
		return false;
	for (uint32_t j = 0; j < op->nin; j++)
		if (is_in_place(c, op, j, &offset))
			return true;
	return false;
}

/* The op writes its first output but for what is there already. */
static om_status
write_between(struct sim *c, const om_op *op)
{
	const om_value *out = op->out[0];
	const struct home *h = &c->home[out->id];
	struct pieces all = {0};
	uint64_t at = 0, offset;

	OM_TRY(check_writable(c, op, out));
	for (uint32_t j = 0; j <= op->nin; j++) {
		if (j < op->nin && !is_in_place(c, op, j, &offset))
			continue;
		const uint64_t end = j < op->nin ? offset : h->bytes;
		if (end < at)
			return BAD_AT(c, op, "%s lies in output %s where another input does", op->in[j]->name, out->name);
		set(c, &(om_range){h->space, h->lower + at,
			h->lower + (j < op->nin ? end : h->storage), out->id, at, false});
		add_piece(c, &all, (struct piece){at, end, out->id, at});
		if (j == op->nin)
			break;
		add_input(c, &all, op->in[j], offset);
		at = offset + c->home[op->in[j]->id].bytes;
	}
	c->content[out->id] = (struct content){out->id, 0, all.p, all.n};
	return OM_OK;
}

static bool
reads_elements(const om_op *op)
{
	return !op->row || !(op->row->flags & OM_META);
}

static om_status
write_outputs(struct sim *c, const om_op *op)
{
	om_range bad;

	OM_TRY(write_scratch(c, op));
	const bool parts = has_parts(c, op);
	if (parts)
		OM_TRY(write_between(c, op));
	for (uint32_t k = parts; k < op->nout; k++)
		if (op->out[k] && !is_view(c, op->out[k]))
			OM_TRY(write_value(c, op, op->out[k]));
	for (uint32_t k = 0; k < op->nin && reads_elements(op); k++)
		OM_TRY(check_input_after(c, op, k));
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && !is_view(c, op->out[k]))
			OM_TRY(check_written(c, op, op->out[k]));
	const om_range r = scratch_range(c, op);
	if (!om_ranges_hold(c->state, &r, &bad))
		return BAD_AT(c, op, "its scratch (%s) and output %s overlap",
			bytes_text(c, r.space, r.lower, r.upper).s, who_text(c, bad.who).s);
	return OM_OK;
}

static om_status
run_plain(struct sim *c, const om_op *op)
{
	c->now = c->step++;
	for (uint32_t k = 0; k < op->nin && reads_elements(op); k++)
		OM_TRY(read_value(c, op, op->in[k]));
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && is_view(c, op->out[k]))
			OM_TRY(define_view(c, op, k));
	return write_outputs(c, op);
}

/* ---- Ops with bodies. ---- */

static om_status run_block(struct sim *c, const om_block *b);

/* Copies from one place to another, all in one step: `from` NULL where the
 * elements come from elsewhere, `to` NULL where they are only read. */
struct moves {
	om_arena *mem;
	struct move { const om_value *from, *to; } *move;
	size_t n, cap;
};

static void
add_move(struct moves *m, const om_value *from, const om_value *to)
{
	const struct move one = {from, to};

	if (from || to)
		OM_PUSH(m->mem, m->move, m->n, m->cap, one);
}

/* One copy after the other: none may spoil what another one still has to read. */
static om_status
check_unspoilt(struct sim *c, const om_op *op, const struct move *m)
{
	om_range bad;

	if (!is_watched(c, m->from))
		return OM_OK;
	if (is_there(c, m->from, &bad))
		return OM_OK;
	if (m->to && bad.who == m->to->id && c->home[m->to->id].lower == c->home[m->from->id].lower)
		return OM_OK;
	return BAD_AT(c, op, "%s is written over %s (%s) in the step in which that is read",
		who_text(c, bad.who).s, m->from->name, home_text(c, m->from).s);
}

static om_status
check_fits(struct sim *c, const om_op *op, const struct move *m)
{
	if (!is_watched(c, m->to) || !m->from || !c->home[m->from->id].tracked
	    || c->home[m->from->id].bytes <= c->home[m->to->id].bytes)
		return OM_OK;
	return BAD_AT(c, op, "%s is copied from %s, which has more bytes", m->to->name, m->from->name);
}

static om_status
run_moves(struct sim *c, const om_op *op, const struct moves *m)
{
	for (size_t k = 0; k < m->n; k++)
		OM_TRY(read_value(c, op, m->move[k].from));
	for (size_t k = 0; k < m->n; k++) {
		OM_TRY(check_fits(c, op, &m->move[k]));
		OM_TRY(write_value(c, op, m->move[k].to));
	}
	for (size_t k = 0; k < m->n; k++)
		OM_TRY(check_unspoilt(c, op, &m->move[k]));
	for (size_t k = 0; k < m->n; k++)
		OM_TRY(check_written(c, op, m->move[k].to));
	return OM_OK;
}

/* All that a run of `b` may write was written, by then or before. */
static void
age(struct sim *c, const om_block *b)
{
	for (uint32_t k = 0; k < b->nparam; k++)
		take(c, b->param[k], true);
	for (const om_op *op = b->first; op; op = op->next) {
		if (op->is_folded)
			continue;
		for (uint32_t k = 0; k < op->nbody; k++)
			age(c, op->body[k]);
		om_range r = scratch_range(c, op);
		r.stale = true;
		set(c, &r);
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k] && !is_view(c, op->out[k]))
				take(c, op->out[k], true);
	}
}

static om_status
run_branch(struct sim *c, const om_op *op, const om_block *b)
{
	struct moves m = {.mem = c->mem};

	OM_TRY(run_block(c, b));
	for (uint32_t k = 0; k < b->nresult || k < op->nout; k++)
		add_move(&m, k < b->nresult ? b->result[k] : NULL, k < op->nout ? op->out[k] : NULL);
	return run_moves(c, op, &m);
}

/* If: any one of its branches runs, from the same state. */
static om_status
run_if(struct sim *c, const om_op *op)
{
	om_ranges *const before = c->state;

	c->now = c->step++;
	for (uint32_t k = 0; k < op->nin; k++)
		OM_TRY(read_value(c, op, op->in[k]));
	for (uint32_t k = 0; k < op->nbody; k++) {
		om_arena *mem = om_arena_new();
		c->state = om_ranges_copy(before, mem);
		const om_status st = run_branch(c, op, op->body[k]);
		c->state = before;
		om_arena_free(mem);
		OM_TRY(st);
	}
	for (uint32_t k = 0; k < op->nbody; k++)
		age(c, op->body[k]);
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			take(c, op->out[k], false);
	c->now = c->step++;
	return OM_OK;
}

/* How the values of a loop hang together.  Inputs, parameters, results and
 * outputs of the `ncarried` carried values each start at a place of their own. */
struct loop {
	const om_op *op;
	const om_block *body;
	uint32_t ncarried;
	uint32_t in, param, result;    /* first carried one; outputs start at 0 */
	uint32_t nscan_in;             /* the last inputs and parameters */
};

static om_status
loop_shape(struct sim *c, const om_op *op, struct loop *l)
{
	const bool scan = op->row->control == OM_SCAN;

	*l = (struct loop){.op = op, .body = op->body[0]};
	const uint32_t nparam = l->body->nparam, nresult = l->body->nresult;
	const int64_t m = scan ? om_attr_int(op, "num_scan_inputs") : 0;
	l->param = scan ? 0 : 2;
	l->result = scan ? 0 : 1;
	if (op->nbody == 1 && m >= 0 && m <= nparam && l->param <= nparam && m <= op->nin) {
		l->nscan_in = (uint32_t)m;
		l->ncarried = nparam - l->param - l->nscan_in;
		l->in = scan ? op->nin - l->nscan_in - l->ncarried : 2;
		if (nparam >= l->param + l->nscan_in && l->in <= 2
		    && op->nin == l->in + l->ncarried + l->nscan_in
		    && nresult >= l->result + l->ncarried && op->nout <= nresult - l->result)
			return OM_OK;
	}
	return om_op_fail(c->session, OM_INVALID, op, "takes %u and gives %u values, its body takes %u and gives %u",
		op->nin, op->nout, nparam, nresult);
}

static const om_value *
scan_input(const struct loop *l, uint32_t k)
{
	return l->op->in[l->op->nin - l->nscan_in + k];
}

/* Inputs are read, parameters are written, what the rounds write piece by piece
 * takes its place. */
static om_status
enter_loop(struct sim *c, const struct loop *l)
{
	struct moves m = {.mem = c->mem};
	const om_block *b = l->body;

	for (uint32_t k = 0; k < l->in; k++)
		add_move(&m, l->op->in[k], l->param == 2 && k == 1 ? b->param[1] : NULL);
	if (l->param == 2)
		add_move(&m, NULL, b->param[0]);
	for (uint32_t k = 0; k < l->ncarried; k++)
		add_move(&m, l->op->in[l->in + k], b->param[l->param + k]);
	for (uint32_t k = 0; k < l->nscan_in; k++) {
		add_move(&m, scan_input(l, k), NULL);
		add_move(&m, NULL, b->param[b->nparam - l->nscan_in + k]);
	}
	for (uint32_t k = l->ncarried; k < l->op->nout; k++)
		add_move(&m, NULL, l->op->out[k]);
	return run_moves(c, l->op, &m);
}

/* The head of a round that is not the first. */
static om_status
enter_round(struct sim *c, const struct loop *l)
{
	age(c, l->body);
	for (uint32_t k = 0; k < l->nscan_in; k++)
		OM_TRY(read_value(c, l->op, scan_input(l, k)));
	for (uint32_t k = 0; k < l->body->nparam; k++)
		take(c, l->body->param[k], false);
	return OM_OK;
}

/* What the rounds wrote of an output so far. */
static om_status
check_pieces(struct sim *c, const struct loop *l)
{
	for (uint32_t k = l->ncarried; k < l->op->nout; k++)
		OM_TRY(read_value(c, l->op, l->op->out[k]));
	return OM_OK;
}

/* All results are read before any parameter is written. */
static om_status
leave_round(struct sim *c, const struct loop *l)
{
	for (uint32_t k = 0; k < l->body->nresult; k++)
		OM_TRY(read_value(c, l->op, l->body->result[k]));
	OM_TRY(check_pieces(c, l));
	for (uint32_t k = 0; k < l->body->nparam; k++)
		take(c, l->body->param[k], false);
	return OM_OK;
}

static om_status
leave_loop(struct sim *c, const struct loop *l)
{
	struct moves m = {.mem = c->mem};

	c->now = c->step++;
	for (uint32_t k = 0; k < l->ncarried; k++)
		add_move(&m, l->body->param[l->param + k], k < l->op->nout ? l->op->out[k] : NULL);
	OM_TRY(run_moves(c, l->op, &m));
	return check_pieces(c, l);
}

static om_status
run_loop(struct sim *c, const om_op *op)
{
	struct loop l;

	c->now = c->step++;
	OM_TRY(loop_shape(c, op, &l));
	OM_TRY(enter_loop(c, &l));
	OM_TRY(enter_round(c, &l));
	OM_TRY(run_block(c, l.body));
	OM_TRY(leave_round(c, &l));
	return leave_loop(c, &l);
}

/* An operator that is not known: its bodies may run any number of times, in
 * any order, on parameters from anywhere. */
static om_status
run_opaque(struct sim *c, const om_op *op)
{
	struct moves m = {.mem = c->mem};

	c->now = c->step++;
	for (uint32_t k = 0; k < op->nin; k++)
		add_move(&m, op->in[k], NULL);
	for (uint32_t k = 0; k < op->nbody; k++)
		for (uint32_t i = 0; i < op->body[k]->nparam; i++)
			add_move(&m, NULL, op->body[k]->param[i]);
	OM_TRY(run_moves(c, op, &m));
	for (uint32_t k = 0; k < op->nbody; k++) {
		const om_block *b = op->body[k];
		for (uint32_t i = 0; i < op->nbody; i++)
			age(c, op->body[i]);
		for (uint32_t i = 0; i < b->nparam; i++)
			take(c, b->param[i], false);
		OM_TRY(run_block(c, b));
		for (uint32_t i = 0; i < b->nresult; i++)
			OM_TRY(read_value(c, op, b->result[i]));
	}
	c->now = c->step++;
	return write_outputs(c, op);
}

/* ---- The walk. ---- */

/* Ops that do nothing have their steps all the same. */
static void
skip(struct sim *c, const om_op *op)
{
	c->step++;
	for (uint32_t k = 0; k < op->nbody; k++) {
		for (const om_op *inner = op->body[k]->first; inner; inner = inner->next)
			skip(c, inner);
		c->step++;
	}
	c->step += op->nbody > 0;
}

static om_status
run_op(struct sim *c, const om_op *op)
{
	if (op->is_folded) {
		skip(c, op);
		return OM_OK;
	}
	if (op->nbody == 0)
		return run_plain(c, op);
	switch (op->row ? op->row->control : OM_PLAIN) {
	case OM_IF: return run_if(c, op);
	case OM_LOOP: case OM_SCAN: return run_loop(c, op);
	case OM_PLAIN: case OM_EACH: break;
	}
	return run_opaque(c, op);
}

/* Afterwards `now` is the step in which the block's results are read. */
static om_status
run_block(struct sim *c, const om_block *b)
{
	for (const om_op *op = b->first; op; op = op->next) {
		OM_TRY(run_op(c, op));
		c->node += b == c->p->first;
	}
	c->now = c->step++;
	return OM_OK;
}

/* The caller's memory holds the inputs before the first step. */
static void
fill_inputs(struct sim *c)
{
	for (uint32_t k = 0; k < c->p->nvalue; k++)
		if (c->is_input[k] || c->p->values[k]->is_overridable)
			take(c, c->p->values[k], false);
}

/* The plan was made for this order: its lifetimes cover all uses. */
static om_status
check_lifetime(struct sim *c, const om_value *v)
{
	const om_place *at = &c->plan->place[v->id];

	if (!is_watched(c, v) || at->where != OM_IN_ARENA || c->first[v->id] > c->last[v->id]
	    || (at->first <= c->first[v->id] && c->last[v->id] <= at->last))
		return OM_OK;
	return BAD(c, "%s is used in the steps %u to %u, but planned to live from %u to %u: the plan is for "
		"another order", v->name, c->first[v->id], c->last[v->id], at->first, at->last);
}

static om_status
run_graph(struct sim *c)
{
	const om_block *b = c->p->first;

	OM_TRY(check_plan(c));
	fill_inputs(c);
	c->any_order = c->plan->order_free ? om_free_walk_new(c->p, c->mem) : NULL;
	OM_TRY(run_block(c, b));
	for (uint32_t k = 0; k < b->nresult; k++)
		OM_TRY(read_value(c, NULL, b->result[k]));
	if (c->any_order)
		return om_free_walk_check(c->any_order);
	for (uint32_t k = 0; k < c->p->nvalue; k++)
		OM_TRY(check_lifetime(c, c->p->values[k]));
	return OM_OK;
}

static uint32_t *
filled(om_arena *mem, size_t n, uint32_t with)
{
	uint32_t *all = OM_NEWN(mem, uint32_t, n);

	for (size_t k = 0; k < n; k++)
		all[k] = with;
	return all;
}

static void
prepare(struct sim *c)
{
	const size_t n = c->p->nvalue;

	c->state = om_ranges_new(c->mem);
	c->home = OM_NEWN(c->mem, struct home, n);
	c->content = OM_NEWN(c->mem, struct content, n);
	c->alias = OM_NEWN(c->mem, const om_alias *, n);
	c->scratch = OM_NEWN(c->mem, const om_scratch *, c->p->nop);
	c->first = filled(c->mem, n, UINT32_MAX);
	c->last = filled(c->mem, n, 0);
	c->victim = filled(c->mem, n, OM_NOBODY);
	c->is_input = OM_NEWN(c->mem, bool, n);
	c->is_output = OM_NEWN(c->mem, bool, n);
	for (size_t k = 0; k < n; k++)
		c->content[k].who = OM_NOBODY;
	for (uint32_t k = 0; k < c->p->first->nparam; k++)
		c->is_input[c->p->first->param[k]->id] = true;
	for (uint32_t k = 0; k < c->p->first->nresult; k++)
		c->is_output[c->p->first->result[k]->id] = true;
}

om_status
om_plan_verify(const om_prog *p, const om_plan *plan)
{
	struct sim c = {.p = p, .plan = plan, .session = p->session, .mem = om_arena_new()};

	prepare(&c);
	const om_status st = run_graph(&c);
	om_arena_free(c.mem);
	return st;
}
