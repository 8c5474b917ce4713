/* SPDX-License-Identifier: Apache-2.0 */
/* Why the peak is not lower: what keeps the highest steps out of regions, and what every op needs in the finest bands. */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "ir/query.h"
#include "ir/steps.h"
#include "lower/tile/tile_internal.h"
#include "opdef/cpu_domain.h"

enum { MOST_OUTSIDE = 8 };

/* The channels of images come first, or last, as in programs that are lowered for the executor. */
static const char *const axis_texts[2][OM_TILE_AXES] = {
	{[OM_TILE_ROWS] = "rows", [OM_TILE_COLUMNS] = "columns", [OM_TILE_CHANNELS] = "channels", [OM_TILE_SUM] = "sum"},
	{[OM_TILE_ROWS] = "columns", [OM_TILE_COLUMNS] = "channels", [OM_TILE_CHANNELS] = "rows", [OM_TILE_SUM] = "sum"},
};

static bool
is_channels_last(const om_op *op)
{
	return op->opdef && om_attr_find(op, "kernel_shape") && strcmp(op->domain, OM_CPU_DOMAIN) == 0;
}

const char *
om_tile_axis_text(om_op *const *op, const om_tile_choice *c)
{
	bool is_last = false;

	for (uint32_t i = c->first; i < c->end; i++)
		is_last |= is_channels_last(op[i]);
	return axis_texts[is_last][c->axis];
}

/* ---- Steps outside of regions. ---- */

/* NULL: ops like this one may be in regions. */
static const char *
why_never(const om_op *op)
{
	if (!op->opdef)
		return "its operator has no definition";
	if (op->opdef->control != OM_PLAIN || op->nbody)
		return "it has a body";
	if (op->opdef->flags & OM_RANDOM)
		return "its results are random";
	if (op->opdef->flags & OM_EFFECT)
		return "it has effects";
	if (op->opdef->flags & OM_DATA_DEPENDENT_SHAPE)
		return "data decide the shapes of its results";
	return op->opdef->flags & OM_NON_TENSOR ? "its values are no tensors" : NULL;
}

/* Is the op a region of its own, along some axis? */
static bool
has_parts(const om_tile_paths *s, uint32_t i)
{
	om_arena *tmp = om_arena_new();
	om_tile_region r;
	bool any = false;

	for (int axis = 0; axis < OM_TILE_AXES && !any; axis++)
		any = om_tile_region_new(s->g, i, i + 1, (om_tile_axis)axis, tmp, &r);
	om_arena_free(tmp);
	return any;
}

static const char *
why_outside(const om_tile_paths *s, uint32_t i, om_arena *mem)
{
	const om_tile_graph *g = s->g;
	const char *never = why_never(g->op[i]);
	om_tile_choice c;
	uint64_t bytes;
	bool tried;

	if (never)
		return never;
	if (!has_parts(s, i))
		return "it has no parts along any axis that is tried";
	if (om_tile_lowest_region(s, i, &c, &bytes, &tried))
		return om_printf(mem, "of the regions with it that were tried, the lowest takes about %" PRIu64
			" bytes: %s to %s in %" PRIu32 " bands (%s)", bytes, om_op_label(g->op[c.first]), om_op_label(g->op[c.end - 1]),
			c.bands, om_tile_axis_text(g->op, &c));
	return tried ? "no interval with it that was tried can run in bands" : "no interval with it was tried";
}

om_tiled_step
om_tile_refusal(const om_tile_paths *s, uint32_t i, om_arena *mem)
{
	return (om_tiled_step){om_strdup(mem, om_op_label(s->g->op[i])), why_outside(s, i, mem), s->g->step[i]};
}

/* By position: is the op in a region? */
static bool *
find_tiled(const om_tile_graph *g, const om_tile_plan *plan, om_arena *mem)
{
	bool *is_tiled = OM_NEWN(mem, bool, g->nop);

	for (uint32_t k = 0; k < plan->n; k++)
		for (uint32_t i = plan->choice[k].first; i < plan->choice[k].end; i++)
			is_tiled[i] = true;
	return is_tiled;
}

static void
list_outside(const om_tile_paths *s, om_arena *mem, om_tile_plan *out)
{
	const om_tile_graph *g = s->g;
	om_arena *tmp = om_arena_new();
	bool *is_done = find_tiled(g, out, tmp);

	out->outside = OM_NEWN(mem, om_tiled_step, MOST_OUTSIDE);
	for (out->noutside = 0; out->noutside < MOST_OUTSIDE; out->noutside++) {
		uint32_t top = OM_TILE_NONE;
		for (uint32_t i = 0; i < g->nop; i++)
			if (!is_done[i] && g->step[i] && (top == OM_TILE_NONE || g->step[i] > g->step[top]))
				top = i;
		if (top == OM_TILE_NONE)
			break;
		is_done[top] = true;
		out->outside[out->noutside] = om_tile_refusal(s, top, mem);
	}
	om_arena_free(tmp);
}

/* ---- The floor. ---- */

/* The storage of the values of one op; each counts once, with the largest part that is needed. */
struct need {
	const om_tile_graph *g;
	om_arena *mem;
	uint32_t *root;
	uint64_t *bytes;
	size_t n, caproot, cap;
};

static void
need_part(struct need *q, const om_value *v, om_part part)
{
	const uint32_t root = q->g->root[v->id];
	uint64_t bytes = q->g->request->bytes[root], all = om_value_bytes(v);
	size_t k = 0;

	if (v->is_const || bytes == 0)
		return;
	if (part.axis != OM_WHOLE)
		bytes = all / (uint64_t)v->shape.dim[part.axis] * (uint64_t)(part.hi > part.lo ? part.hi - part.lo : 0);
	else
		bytes = all < bytes ? all : bytes;
	while (k < q->n && q->root[k] != root)
		k++;
	if (k == q->n) {
		size_t n = q->n;
		OM_PUSH(q->mem, q->root, q->n, q->caproot, root);
		OM_PUSH(q->mem, q->bytes, n, q->cap, 0);
	}
	q->bytes[k] = bytes > q->bytes[k] ? bytes : q->bytes[k];
}

/* May an output be computed over an input?  Then it takes nothing. */
static bool
is_free(const om_tile_graph *g, const om_op *op, uint32_t out)
{
	const bool *over = g->over[op->id];
	bool any = g->view[op->id] != OM_TILE_NONE && out == 0;

	for (uint32_t i = 0; i < op->nin && over; i++)
		any |= over[out * op->nin + i];
	return any;
}

/* Bytes for the parts of a slice; NULL: for the whole op. */
static uint64_t
need_of(const om_tile_graph *g, const om_op *op, const om_slice *s, bool is_sum, om_arena *mem)
{
	const om_part whole = {OM_WHOLE, 0, 0};
	struct need q = {.g = g, .mem = mem};
	uint64_t sum = 0;

	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k])
			need_part(&q, op->in[k], s ? s->in[k] : whole);
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && !is_free(g, op, k))
			need_part(&q, op->out[k], s && !is_sum ? s->out[k] : whole);
	for (size_t k = 0; k < q.n; k++)
		sum += q.bytes[k];
	return sum;
}

/* Bytes for one row in the middle; those of the whole op if there is no such part. */
static uint64_t
need_of_row(om_tile_graph *g, const om_op *op, om_tile_rule *rule, om_arena *mem)
{
	const int64_t at = rule ? rule->length / 2 : 0;
	om_slice s;

	if (!rule)
		return UINT64_MAX;
	if (!om_tile_part(mem, rule, at, at + 1, &s))
		return 0;
	return need_of(g, op, &s, rule->is_sum, mem);
}

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The least that the op needs: as a whole, or for one row along any axis. */
static uint64_t
floor_of(om_tile_graph *g, const om_op *op)
{
	om_arena *mem = om_arena_new();
	uint64_t bytes = need_of(g, op, NULL, false, mem);

	for (uint32_t k = 0; k < op->nout && !why_never(op); k++)
		for (int axis = 0; op->out[k] && axis < op->out[k]->shape.rank; axis++)
			bytes = least(bytes, need_of_row(g, op, om_tile_rule_for(g, op, k, axis), mem));
	for (int axis = 0; op->nin && op->in[0] && !why_never(op) && axis < op->in[0]->shape.rank; axis++)
		bytes = least(bytes, need_of_row(g, op, om_tile_rule_sum(g, op, 0, axis), mem));
	om_arena_free(mem);
	return bytes;
}

static void
find_floor(const om_tile_paths *s, om_arena *mem, om_tile_plan *out)
{
	for (uint32_t i = 0; i < s->g->nop; i++) {
		const uint64_t bytes = floor_of(s->g, s->g->op[i]);
		if (bytes <= out->floor)
			continue;
		out->floor = bytes;
		out->floor_op = om_op_label(s->g->op[i]);
	}
	out->floor_op = out->floor_op ? om_strdup(mem, out->floor_op) : NULL;
}

void
om_tile_explain(const om_tile_paths *s, om_arena *mem, om_tile_plan *out)
{
	list_outside(s, mem, out);
	find_floor(s, mem, out);
}
