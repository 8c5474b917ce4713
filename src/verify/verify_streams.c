/* SPDX-License-Identifier: Apache-2.0 */
/* The check of streams; see verify_streams.h.
 *
 * Every agent, the host and the streams, has a vector clock: by agent, the position of its last op that is done before
 * the next op of this one.  A memory has a list of the ranges that ops used; those that are inside of a later write that
 * is after them are dropped, as what conflicts with them conflicts with that too. */
#include <config.h>

#include "base/arena_internal.h"
#include "ir/alias_roots.h"
#include "ir/query.h"
#include "ir/steps.h"
#include "opdef/op_context.h"
#include "verify/verify_streams.h"

enum { AGENTS = OM_MOST_STREAMS + 1 };

struct access {
	uint64_t from, to;
	uint32_t at, agent;      /* position of the op, from 1 */
	bool writes;
	const om_op *op;
};

struct space {
	struct access *a;
	size_t n, cap;
};

struct check {
	om_session *s;
	const om_prog *p;
	const om_plan *plan;
	const om_streams *streams;
	om_arena *mem;
	const om_alias_root *root; /* by value id: the first value in an arena, of those that its aliases lead to, or the last */
	const om_scratch **scratch; /* by op id */
	struct space *space;     /* arenas, then values */
	uint32_t clock[AGENTS][AGENTS];
	uint32_t (*at)[AGENTS];  /* by op id: the clock when it ran */
	bool *has_run;           /* by op id */
	uint32_t position;
};

/* Where a value is: in an arena, or in the memory of the value that its aliases lead to. */
static uint32_t
find_space(const struct check *c, const om_value *v, uint64_t *offset)
{
	const om_alias_root *root = &c->root[v->id];
	const om_placement *at = c->plan ? &c->plan->place[root->value] : NULL;

	*offset = root->offset;
	if (at && at->where == OM_IN_ARENA) {
		*offset += at->offset;
		return at->arena;
	}
	return (c->plan ? c->plan->narena : 0) + root->value;
}

static om_status
report(const struct check *c, const struct access *a, const struct access *b, uint32_t space)
{
	const bool in_arena = c->plan && space < c->plan->narena;
	const char *name = in_arena ? c->plan->arena[space].name : c->p->values[space - (c->plan ? c->plan->narena : 0)]->name;

	return om_op_fail(c->s, OM_BADPLAN, a->op, "it %s bytes %llu to %llu of %s%s, which %s may still %s",
		a->writes ? "writes" : "reads", (unsigned long long)a->from, (unsigned long long)a->to, in_arena ? "the arena " : "", name,
		om_op_label(b->op), b->writes ? "write" : "read");
}

static om_status
use(struct check *c, uint32_t space, struct access a)
{
	struct space *all = &c->space[space];
	const uint32_t *clock = c->clock[a.agent];
	size_t kept = 0;

	for (size_t k = 0; k < all->n; k++) {
		const struct access *b = &all->a[k];
		const bool is_before = b->op == a.op || clock[b->agent] >= b->at;
		if ((a.writes || b->writes) && a.from < b->to && b->from < a.to && !is_before)
			return report(c, &a, b, space);
		if (!(is_before && a.from <= b->from && b->to <= a.to && (a.writes || !b->writes) && b->op != a.op))
			all->a[kept++] = *b;
	}
	all->n = kept;
	OM_PUSH(c->mem, all->a, all->n, all->cap, a);
	return OM_OK;
}

static om_status
use_value(struct check *c, const om_op *op, const om_value *v, bool writes)
{
	const uint64_t bytes = om_value_used_bytes(c->plan, v);
	uint64_t offset;

	if (bytes == 0)
		return OM_OK;
	const uint32_t space = find_space(c, v, &offset);
	return use(c, space, (struct access){offset, offset + bytes, c->position, c->streams->op[op->id].stream, writes, op});
}

static om_status
use_scratch(struct check *c, const om_op *op)
{
	const om_scratch *s = c->scratch[op->id];

	return !s || !s->bytes ? OM_OK : use(c, s->arena, (struct access){s->offset, s->offset + s->bytes, c->position,
		c->streams->op[op->id].stream, true, op});
}

static void
join(uint32_t *clock, const uint32_t *other)
{
	for (int k = 0; k < AGENTS; k++)
		if (clock[k] < other[k])
			clock[k] = other[k];
}

/* What the op waits for, and what the host has seen when it starts it. */
static om_status
advance(struct check *c, const om_op *op)
{
	const om_stream_op *o = &c->streams->op[op->id];
	uint32_t *clock = c->clock[o->stream];

	if (o->stream > c->streams->n)
		return om_op_fail(c->s, OM_BADPLAN, op, "runs in stream %u of %u", o->stream, c->streams->n);
	for (uint32_t k = 1; o->is_barrier && k <= c->streams->n; k++)
		join(c->clock[0], c->clock[k]);
	join(clock, c->clock[0]);
	for (uint32_t k = 0; k < o->nwait; k++) {
		const uint32_t id = o->wait[k];
		if (id >= c->p->nop || !c->has_run[id])
			return om_op_fail(c->s, OM_BADPLAN, op, "waits for an op that was not started before");
		join(clock, o->stream ? c->at[id] : c->clock[c->streams->op[id].stream]);
	}
	clock[o->stream] = ++c->position;
	memcpy(c->at[op->id], clock, sizeof c->at[op->id]);
	c->has_run[op->id] = true;
	return OM_OK;
}

static om_status
check_op(struct check *c, const om_op *op)
{
	OM_TRY(advance(c, op));
	for (uint32_t k = 0; k < op->nin; k++)
		if (!(op->opdef && op->opdef->flags & OM_SHAPE_ONLY))
			OM_TRY(use_value(c, op, op->in[k], false));
	for (uint32_t k = 0; k < op->nout; k++)
		OM_TRY(use_value(c, op, op->out[k], true));
	return use_scratch(c, op);
}

/* A barrier has waited for all streams, and is done, with its body, before the next op starts. */
static om_status
check_bodies(const struct check *c, const om_op *op)
{
	if (!c->streams->op[op->id].is_barrier || c->streams->op[op->id].stream)
		return om_op_fail(c->s, OM_BADPLAN, op, "has a body, but is no barrier on the host");
	for (uint32_t k = 0; k < op->nbody; k++)
		for (const om_op *at = op->body[k]->first; at; at = at->next) {
			if (c->streams->op[at->id].stream > 1)
				return om_op_fail(c->s, OM_BADPLAN, at, "is in a body, but in stream %u", c->streams->op[at->id].stream);
			if (at->nbody)
				OM_TRY(check_bodies(c, at));
		}
	return OM_OK;
}

static om_status
check_graph(struct check *c)
{
	for (const om_op *op = c->p->first->first; op; op = op->next) {
		if (!c->streams->op[op->id].is_run)
			continue;
		if (op->nbody)
			OM_TRY(check_bodies(c, op));
		OM_TRY(check_op(c, op));
	}
	return OM_OK;
}

/* Values in an arena have a place of their own. */
static const om_alias_root *
roots(const om_prog *p, const om_plan *plan, om_arena *mem)
{
	const om_alias **alias = OM_NEWN(mem, const om_alias *, p->nvalue);

	for (uint32_t k = 0; plan && k < plan->nalias; k++)
		if (plan->place[plan->alias[k].value].where != OM_IN_ARENA)
			alias[plan->alias[k].value] = &plan->alias[k];
	return om_alias_roots(alias, p->nvalue, mem);
}

om_status
om_streams_verify(om_session *s, const om_prog *p, const om_plan *plan, const om_streams *streams)
{
	om_arena *mem = om_arena_new();
	struct check c = {.s = s, .p = p, .plan = plan, .streams = streams, .mem = mem,
		.root = roots(p, plan, mem), .scratch = OM_NEWN(mem, const om_scratch *, p->nop),
		.space = OM_NEWN(mem, struct space, (size_t)p->nvalue + (plan ? plan->narena : 0)),
		.at = om_alloc(mem, p->nop * sizeof *c.at), .has_run = OM_NEWN(mem, bool, p->nop)};

	for (uint32_t k = 0; plan && k < plan->nscratch; k++)
		c.scratch[plan->scratch[k].op] = &plan->scratch[k];
	const om_status st = check_graph(&c);
	om_arena_free(mem);
	return st;
}
