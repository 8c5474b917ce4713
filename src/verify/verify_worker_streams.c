/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of workers; see verify_worker_streams.h.  That what is overwritten is not used any more is checked with the bytes
 * (verify_partial_order.c), by the same order: that of each stream, and the waits. */
#include <config.h>

#include "ir/query.h"
#include "opdef/runs_alone.h"
#include "verify/verify_worker_streams.h"

#define NONE UINT32_MAX

struct check {
	om_parallel_check *f;
	const om_prog *p;
	const om_worker_streams *w;
	uint32_t *node;          /* by op id: its position in the graph; NONE: it is elsewhere, or does not run */
	uint32_t last[OM_MOST_WORKER_STREAMS];  /* by stream: its last op so far; NONE: none */
	uint32_t alone[OM_MOST_WORKER_STREAMS]; /* by stream: the op that ran alone, if no op of the stream came since; else NONE */
};

static uint32_t *
nodes_of(const om_prog *p, const om_worker_streams *w, om_arena *mem)
{
	uint32_t *node = OM_NEWN(mem, uint32_t, p->nop), k = 0;

	memset(node, 0xff, p->nop * sizeof *node);
	for (const om_op *op = p->first->first; op; op = op->next, k++)
		node[op->id] = op->is_folded || w->op[op->id].stream == OM_NO_STREAM ? NONE : k;
	return node;
}

/* Nothing that a run needs: the plan has no place for what it computes. */
static bool
is_left_out(const om_plan *plan, const om_op *op)
{
	bool any = op->nbody || !op->opdef || op->opdef->flags & OM_EFFECT;

	for (uint32_t k = 0; k < op->nout; k++)
		any |= op->out[k] && plan->place[op->out[k]->id].where != OM_UNUSED;
	return !any;
}

static om_status
check_op(om_session *s, const om_prog *p, const om_plan *plan, const uint32_t *node, const om_op *op)
{
	const om_worker_streams *w = plan->streams;
	const om_worker_op *o = &w->op[op->id];

	if (o->stream == OM_NO_STREAM && is_left_out(plan, op))
		return OM_OK;
	if (o->stream >= w->n)
		return om_op_fail(s, OM_BADPLAN, op, "is in none of the %u streams of the plan", w->n);
	if (o->stream && om_op_runs_alone(op))
		return om_op_fail(s, OM_BADPLAN, op, "has to run alone, but is not in the first stream");
	for (uint32_t k = 0; k < o->nwait; k++)
		if (o->wait[k] >= p->nop || node[o->wait[k]] == NONE || node[o->wait[k]] >= node[op->id])
			return om_op_fail(s, OM_BADPLAN, op, "waits for an op that does not come before it in the plan");
	return OM_OK;
}

om_status
om_worker_streams_check(om_session *s, const om_prog *p, const om_plan *plan)
{
	const om_worker_streams *w = plan->streams;

	if (w->n < 1 || w->n > OM_MOST_WORKER_STREAMS || w->nop < p->nop)
		return om_fail(s, OM_BADPLAN, "the plan has %u streams of %u ops: there are from 1 to %d, and %u ops", w->n, w->nop,
			OM_MOST_WORKER_STREAMS, p->nop);
	om_arena *mem = om_arena_new();
	const uint32_t *node = nodes_of(p, w, mem);
	om_status st = OM_OK;
	for (const om_op *op = p->first->first; op && st == OM_OK; op = op->next)
		if (!op->is_folded)
			st = check_op(s, p, plan, node, op);
	om_arena_free(mem);
	return st;
}

/* ---- What has to be in order. ---- */

struct reader {
	struct check *c;
	uint32_t node;
};

static void
require_value(void *arg, om_value *v)
{
	const struct reader *r = arg;

	if (v->def && v->def->block == r->c->p->first && r->c->node[v->def->id] != NONE)
		om_parallel_check_order(r->c->f, r->c->node[v->def->id], r->node, OM_ORDER_DATA);
}

/* After the last op of each stream, which comes after the others of it; and before the next one of each. */
static void
require_alone(struct check *c, uint32_t node, const om_op *op)
{
	const uint32_t stream = c->w->op[op->id].stream;

	if (c->alone[stream] != NONE)
		om_parallel_check_order(c->f, c->alone[stream], node, OM_ORDER_ALONE);
	c->alone[stream] = NONE;
	for (uint32_t k = 0; k < c->w->n && om_op_runs_alone(op); k++) {
		if (c->last[k] != NONE)
			om_parallel_check_order(c->f, c->last[k], node, OM_ORDER_ALONE);
		c->alone[k] = node;
	}
	c->last[stream] = node;
}

void
om_worker_streams_require(om_parallel_check *f, const om_prog *p, const om_worker_streams *w)
{
	om_arena *mem = om_arena_new();
	struct check c = {.f = f, .p = p, .w = w, .node = nodes_of(p, w, mem)};

	memset(c.last, 0xff, sizeof c.last);
	memset(c.alone, 0xff, sizeof c.alone);
	for (const om_op *op = p->first->first; op; op = op->next)
		if (c.node[op->id] != NONE) {
			om_op_each_read(op, require_value, &(struct reader){&c, c.node[op->id]});
			require_alone(&c, c.node[op->id], op);
		}
	om_arena_free(mem);
}
