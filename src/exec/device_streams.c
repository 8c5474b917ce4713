/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: which op runs in which one, and what it waits for.
 *
 * Ops are started in the order of the plan.  Two that use the same bytes, one of them to write, keep that order: by their
 * stream, or by a wait.  So a plan for one order is right for any number of streams, and in a parallel-safe plan fewer ops
 * share bytes.  An op continues the stream of the op that it depends on if that was the last one there; else it takes
 * the stream that was used least recently.
 *
 * verify/verify_streams.c checks the result. */
#include <config.h>

#include "exec/device.h"
#include "ir/query.h"
#include "opdef/op_context.h"

enum { AGENTS = OM_MOST_STREAMS + 1 };

struct use_of {
	uint64_t from, to;
	uint32_t op;             /* id */
	bool writes;
};

struct used {
	struct use_of *u;
	size_t n, cap;
};

struct order {
	om_exec *e;
	om_arena *mem;
	om_streams *out;
	struct used *space;      /* arenas, then values */
	uint32_t *at;            /* by op id: position, from 1; 0: did not start */
	uint32_t (*clock)[AGENTS];    /* by op id: what is before the next op of its stream */
	uint32_t now[AGENTS][AGENTS]; /* by agent: what is before its next op */
	uint32_t last[AGENTS];   /* position of its last op */
	uint32_t position;
	uint32_t *need;          /* ids of ops that the current one comes after */
	size_t nneed, capneed;
};

/* The memory of a value, and where it is there. */
static uint32_t
space_of(const struct order *w, const om_value *v, uint64_t *at)
{
	const om_exec *e = w->e;

	if (om_exec_in_arena(e, v)) {
		*at = e->plan->place[v->id].offset;
		return e->plan->place[v->id].arena;
	}
	const om_value *root = e->root[v->id];
	*at = e->offset[v->id];
	if (om_exec_in_arena(e, root)) {
		*at += e->plan->place[root->id].offset;
		return e->plan->place[root->id].arena;
	}
	return e->narena + root->id;
}

static void
need(struct order *w, uint32_t id)
{
	for (size_t k = 0; k < w->nneed; k++)
		if (w->need[k] == id)
			return;
	OM_PUSH(w->mem, w->need, w->nneed, w->capneed, id);
}

/* All that conflicts comes before the op, and what is inside of a write is not looked at again. */
static void
use(struct order *w, uint32_t space, struct use_of a)
{
	struct used *all = &w->space[space];
	size_t kept = 0;

	for (size_t k = 0; k < all->n; k++) {
		const struct use_of *b = &all->u[k];
		const bool meets = a.from < b->to && b->from < a.to && b->op != a.op;
		if (meets && (a.writes || b->writes))
			need(w, b->op);
		if (!(meets && a.writes && a.from <= b->from && b->to <= a.to))
			all->u[kept++] = *b;
	}
	all->n = kept;
	OM_PUSH(w->mem, all->u, all->n, all->cap, a);
}

static void
use_value(struct order *w, const om_op *op, const om_value *v, bool writes)
{
	const uint64_t bytes = om_value_used_bytes(w->e->plan, v);
	uint64_t at;

	if (!bytes)
		return;
	const uint32_t space = space_of(w, v, &at);
	use(w, space, (struct use_of){at, at + bytes, op->id, writes});
}

static void
use_all(struct order *w, const om_op *op)
{
	const om_scratch *s = w->e->scratch[op->id];

	for (uint32_t k = 0; k < op->nin; k++)
		use_value(w, op, op->in[k], false);
	for (uint32_t k = 0; k < op->nout; k++)
		use_value(w, op, op->out[k], true);
	if (s && s->bytes)
		use(w, s->arena, (struct use_of){s->offset, s->offset + s->bytes, op->id, true});
}

static void
join(uint32_t *clock, const uint32_t *other)
{
	for (int k = 0; k < AGENTS; k++)
		if (clock[k] < other[k])
			clock[k] = other[k];
}

/* Of the streams whose last op is needed, that of the latest one; else the one that was used least recently. */
static uint32_t
choose(const struct order *w)
{
	uint32_t best = 0, oldest = 1;

	for (size_t k = 0; k < w->nneed; k++) {
		const uint32_t id = w->need[k], agent = w->out->op[id].stream;
		if (agent && w->last[agent] == w->at[id] && (!best || w->at[id] > w->last[best]))
			best = agent;
	}
	for (uint32_t k = 2; k <= w->out->n; k++)
		if (w->last[k] < w->last[oldest])
			oldest = k;
	return best ? best : oldest;
}

/* Of the needed ops, those that nothing orders yet. */
static void
add_waits(struct order *w, const om_op *op)
{
	om_stream_op *o = &w->out->op[op->id];
	uint32_t *now = w->now[o->stream], *wait = OM_NEWN(w->e->mem, uint32_t, w->nneed);

	for (size_t k = w->nneed; k-- > 0;) {
		const uint32_t id = w->need[k], agent = w->out->op[id].stream;
		if (now[agent] >= w->at[id])
			continue;
		join(now, o->stream ? w->clock[id] : w->now[agent]);
		wait[o->nwait++] = id;
	}
	o->wait = wait;
}

static int
by_position(const struct order *w, uint32_t a, uint32_t b)
{
	return (w->at[a] > w->at[b]) - (w->at[a] < w->at[b]);
}

/* In order of their positions: later ones imply more. */
static void
sort_needs(struct order *w)
{
	for (size_t k = 1; k < w->nneed; k++)
		for (size_t i = k; i > 0 && by_position(w, w->need[i - 1], w->need[i]) > 0; i--) {
			const uint32_t swapped = w->need[i];
			w->need[i] = w->need[i - 1];
			w->need[i - 1] = swapped;
		}
}

static void
order_op(struct order *w, const om_op *op)
{
	om_stream_op *o = &w->out->op[op->id];

	w->nneed = 0;
	o->is_run = true;
	use_all(w, op);
	sort_needs(w);
	o->is_barrier = op->nbody > 0;
	o->stream = op->device && !o->is_barrier ? choose(w) : 0;
	for (uint32_t k = 1; o->is_barrier && k <= w->out->n; k++)
		join(w->now[0], w->now[k]);
	join(w->now[o->stream], w->now[0]);
	add_waits(w, op);
	w->at[op->id] = w->now[o->stream][o->stream] = w->last[o->stream] = ++w->position;
	memcpy(w->clock[op->id], w->now[o->stream], sizeof w->clock[op->id]);
}

static void
order_bodies(struct order *w, const om_op *op)
{
	for (uint32_t k = 0; k < op->nbody; k++)
		for (const om_op *at = op->body[k]->first; at; at = at->next) {
			w->out->op[at->id].is_run = true;
			w->out->op[at->id].stream = at->device ? 1 : 0;
			w->out->op[at->id].is_barrier = at->nbody > 0;
			order_bodies(w, at);
		}
}

static bool
is_skipped(const om_exec *e, const om_op *op)
{
	bool any = false;

	for (uint32_t k = 0; k < op->nout; k++) {
		if (op->out[k] && !e->is_skipped[op->out[k]->id])
			return false;
		any |= op->out[k] != NULL;
	}
	return any;
}

void
om_exec_device_order(om_exec *e, uint32_t nstream, om_streams *out)
{
	const om_prog *p = e->prog;
	om_arena *mem = om_arena_new();
	struct order w = {.e = e, .mem = mem, .out = out, .space = OM_NEWN(mem, struct used, (size_t)p->nvalue + e->narena),
		.at = OM_NEWN(mem, uint32_t, p->nop), .clock = om_alloc(mem, p->nop * sizeof *w.clock)};

	*out = (om_streams){.op = OM_NEWN(e->mem, om_stream_op, p->nop), .n = nstream};
	for (const om_op *op = p->first->first; op; op = op->next) {
		order_bodies(&w, op);
		if (!op->is_folded && e->is_needed[op->id] && !is_skipped(e, op))
			order_op(&w, op);
	}
	om_arena_free(mem);
}
