/* SPDX-License-Identifier: Apache-2.0 */
/* Estimated times of regions: each part of an op is a call that reads the constants of the op, such as weights, again. */
#include <config.h>

#include "base/shape.h"
#include "ir/query.h"
#include "lower/tile/tile_internal.h"
#include "opdef/op_time.h"

#define NONE OM_TILE_NONE

/* Bytes of the constants that an op reads. */
static double
constant_bytes(const om_op *op)
{
	double sum = 0;

	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && om_tile_is_const(op->in[k]))
			sum += (double)om_value_bytes(op->in[k]);
	return sum;
}

static om_tile_work
work_of(const om_op *op)
{
	om_tile_work w = {om_op_cost(op), constant_bytes(op), om_op_time(op)};

	w.constant = w.constant < w.cost.bytes ? w.constant : w.cost.bytes;
	return w;
}

void
om_tile_time_init(om_tile_graph *g)
{
	g->work = OM_NEWN(g->mem, om_tile_work, g->nop);
	g->time = OM_NEWN(g->mem, double, (size_t)g->nop + 1);
	for (uint32_t i = 0; i < g->nop; i++) {
		g->work[i] = work_of(g->op[i]);
		g->time[i + 1] = g->time[i] + g->work[i].time;
	}
}

/* Rows that are computed together are computed as a whole. */
static double
part_time(const om_tile_work *w, const om_tile_step *s)
{
	const int64_t unit = w->cost.rows > 1 && s->kind == OM_TILE_PART ? w->cost.rows : 1, rows = s->part.hi - s->part.lo;
	const double share = (double)((rows + unit - 1) / unit * unit) / (double)((s->rule->length + unit - 1) / unit * unit);
	const om_cost part = {.flops = w->cost.flops * share, .bytes = w->constant + (w->cost.bytes - w->constant) * share};

	return w->time == 0 ? 0 : om_cost_time(&part);
}

/* Of the inputs of a step, those from `from` on, up to `end`, are moved. */
static double
move_time(const om_tile_code *c, const om_tile_step *s, uint32_t from, uint32_t end)
{
	om_cost moved = {0};

	for (uint32_t k = from; k < end; k++)
		if (s->in[k] != NONE)
			moved.bytes += 2 * (double)c->piece[s->in[k]].bytes;
	return om_cost_time(&moved);
}

/* Rows that are there are copied, new ones are computed in place; so are all parts of a result. */
static double
concat_time(const om_tile_code *c, const om_tile_step *s)
{
	const om_tile_piece *made = &c->piece[s->out[0]];

	if (!om_tile_is_contiguous(made->of, s->part.axis))
		return move_time(c, s, 0, s->nin);
	return move_time(c, s, 0, made->part.axis == OM_WHOLE ? 0 : s->nin - 1);
}

static double
step_time(const om_tile_graph *g, const om_tile_code *c, const om_tile_step *s)
{
	switch (s->kind) {
	case OM_TILE_OP:
		return g->work[g->position[s->op->id]].time;
	case OM_TILE_PART:
	case OM_TILE_PARTIAL:
		return part_time(&g->work[g->position[s->op->id]], s);
	case OM_TILE_CUT:
		return om_tile_is_contiguous(c->piece[s->in[0]].of, s->part.axis) ? 0 : move_time(c, s, 0, 1);
	case OM_TILE_CONCATENATE:
		return concat_time(c, s);
	case OM_TILE_PLACE:
		return move_time(c, s, 1, 2);
	default:
		return move_time(c, s, 0, s->nin);
	}
}

double
om_tile_time(const om_tile_graph *g, const om_tile_code *c)
{
	double sum = 0;

	for (size_t k = 0; k < c->nstep; k++)
		sum += step_time(g, c, &c->step[k]);
	return sum;
}
