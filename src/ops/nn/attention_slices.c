/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of attention: samples, heads, queries and, of the output, elements of the values.
 *
 * A query sees keys by its position if attention is causal or in a window; then there are no parts of the queries, whose
 * positions count from the first one.  Several heads of queries may share one of keys: a part has all that share one. */
#include <config.h>

#include "ir/query.h"
#include "ops/nn/attention.h"
#include "ops/slices.h"

/* The mask is aligned with (batch, heads, queries, keys) from the right. */
static void
mask_part(const om_op_context *c, om_slice *s, int axis, om_part p)
{
	const om_shape *m = &c->in[MASK].shape;
	const int at = axis - (4 - m->rank);

	if (om_has_in(c, MASK) && at >= 0 && m->dim[at] != 1)
		s->in[MASK] = om_part_along(&p, at);
}

static bool
batch_part(const om_op_context *c, om_slice *s)
{
	const om_part p = s->out[Y];

	for (uint32_t k = 0; k < c->op->nin; k++)
		if (om_has_in(c, k) && k != MASK)
			s->in[k] = p;
	mask_part(c, s, 0, p);
	for (uint32_t k = NEW_K; k < c->op->nout; k++)
		s->out[k] = p;
	return true;
}

static bool
query_part(const om_op_context *c, om_slice *s)
{
	const om_part p = s->out[Y];

	if (om_attr_int(c->op, "is_causal") || (om_attr_find(c->op, "left_window_size") && om_attr_int(c->op, "left_window_size") >= 0)
	    || (om_attr_find(c->op, "right_window_size") && om_attr_int(c->op, "right_window_size") >= 0))
		return false;
	s->in[Q] = p;
	mask_part(c, s, 2, p);
	if (om_has_out(c, SCORES))
		s->out[SCORES] = om_part_along(&p, 2);
	return true;
}

/* Heads of the queries, each with `unit` elements along the axis of the output, as of the values; what lies between these
 * and the part is surplus. */
static bool
head_part(const om_op_context *c, om_slice *s, const struct om_attention *a, int64_t unit)
{
	const int axis = s->out[Y].axis;
	const int64_t shared = a->qheads / a->heads, size = a->flat ? a->size : 1;
	const om_part heads = om_slice_units(s, &s->out[Y], unit * shared);

	s->in[Q] = om_part_scaled(&heads, axis, shared * size);
	s->in[K] = om_part_scaled(&heads, axis, size);
	s->in[V] = om_part_scaled(&heads, axis, unit);
	for (uint32_t k = PAST_K; k <= PAST_V; k++)
		if (om_has_in(c, k))
			s->in[k] = om_part_along(&heads, 1);
	mask_part(c, s, 1, om_part_scaled(&heads, 1, shared));
	if (a->flat) {
		om_slice_set_int(c, s, "q_num_heads", (heads.hi - heads.lo) * shared);
		om_slice_set_int(c, s, "kv_num_heads", heads.hi - heads.lo);
	}
	return true;
}

/* Elements of the values: the scores are computed for each part. */
static bool
value_part(const om_op_context *c, om_slice *s)
{
	const om_part p = s->out[Y];

	s->in[V] = p;
	if (om_has_in(c, PAST_V))
		s->in[PAST_V] = p;
	if (om_has_out(c, NEW_V))
		s->out[NEW_V] = p;
	return true;
}

static bool
has_one_output(const om_op_context *c)
{
	return !om_has_out(c, NEW_K) && !om_has_out(c, NEW_V) && !om_has_out(c, SCORES);
}

/* Of the other outputs, parts of heads would have another surplus. */
bool
om_slice_attention(const om_op_context *c, uint32_t out, om_slice *s)
{
	const struct om_attention a = om_attention_sizes(c);
	const int axis = s->out[out].axis;

	if (out != Y || a.heads <= 0)
		return false;
	if (axis == 0)
		return batch_part(c, s);
	if (axis == (a.flat ? 1 : 2))
		return query_part(c, s);
	if (axis == 3)
		return value_part(c, s);
	return has_one_output(c) && head_part(c, s, &a, a.flat ? a.vsize : 1);
}

/* ---- RotaryEmbedding. ---- */

/* Positions choose rows of the caches, which otherwise have a row for each position. */
static void
place_part(const om_op_context *c, om_slice *s, om_part p)
{
	if (om_has_in(c, PLACES))
		s->in[PLACES] = p;
	else
		s->in[COS] = s->in[SIN] = p;
}

bool
om_slice_rotary(const om_op_context *c, uint32_t out, om_slice *s)
{
	const struct om_rotary r = om_rotary_sizes(c);
	const om_part p = s->out[out];

	s->in[X] = p;
	if (p.axis == 0)
		place_part(c, s, p);
	else if (p.axis == (r.flat ? 1 : 2))
		place_part(c, s, om_part_along(&p, 1));
	else if (r.flat) {
		const om_part heads = om_slice_units(s, &p, r.size);
		s->in[X] = om_part_scaled(&heads, 2, r.size);
		om_slice_set_int(c, s, "num_heads", heads.hi - heads.lo);
	}
	return p.axis != 3;
}
