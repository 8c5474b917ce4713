/* SPDX-License-Identifier: Apache-2.0 */
/* Scan outputs of loops: one element per iteration, concatenated along an axis.
 *
 * If the storage of the output is available during the loop, elements are written
 * there; an element that is already in place is not copied.  Otherwise elements are
 * collected in a buffer that grows by doubling and becomes the output's buffer after
 * the loop. */
#include <config.h>

#include "exec/control_flow.h"
#include "base/shape.h"
#include "base/strided_copy.h"

/* May the storage of the output be written while the body runs? */
static bool
is_open(const om_exec *e, const om_op *op, const om_value *v)
{
	if (!e->is_fixed[v->id] || !e->slot[v->id].data)
		return false;
	return !e->plan || e->plan->place[v->id].where != OM_IN_ARENA
	    || e->plan->place[v->id].live.first <= e->first_step[op->id];
}

static om_status
series_check(om_exec *e, const struct series *r, const om_tensor *item)
{
	char got[256], want[256];
	bool same = item->type == r->item.type && item->shape.rank == r->item.shape.rank;

	for (int d = 0; same && d < item->shape.rank; d++)
		same = item->shape.dim[d] == r->item.shape.dim[d];
	if (!same)
		return om_op_fail(e->session, OM_RUN, r->out->def,
			"the results of the iterations differ in shape: %s in iteration %lld is %s, before it "
			"was %s", r->out->name, (long long)r->n,
			om_shape_text(&item->shape, got, sizeof got), om_shape_text(&r->item.shape, want, sizeof want));
	return OM_OK;
}

static om_shape
series_shape(const struct series *r, int64_t n)
{
	om_shape all = {.rank = r->item.shape.rank + 1};

	for (int d = 0; d < all.rank; d++)
		all.dim[d] = d == r->axis ? n : r->item.shape.dim[d - (d > r->axis)];
	return all;
}

static om_status
series_first(struct step *s, struct series *r, const om_tensor *item)
{
	om_exec *e = s->exec;

	r->item = *item;
	if (item->shape.rank + 1 > OM_MAX_RANK || r->axis > item->shape.rank
	    || r->axis < -(item->shape.rank + 1))
		return om_fail(e->session, OM_RUN,
			"%s: the results of the iterations have rank %d, which is not supported",
			r->out->name, item->shape.rank);
	if (r->axis < 0)
		r->axis += item->shape.rank + 1;
	if (!om_tensor_bytes(item->type, &item->shape, &r->each))
		return om_fail(e->session, OM_RUN, "%s: its size is not known", r->out->name);
	if (om_dtype_bits(item->type) < 8)
		return om_fail(e->session, OM_UNSUPPORTED,
			"%s: elements smaller than a byte (%s) cannot be concatenated",
			r->out->name, om_dtype_text(item->type));
	r->outer = om_shape_span(&item->shape, 0, r->axis);
	r->inner = r->outer ? r->each / (uint64_t)r->outer : 0;
	r->data = NULL;
	r->fits = 0;
	if (is_open(e, s->op, r->out)) {
		const om_tensor *out = &e->slot[r->out->id];
		const om_shape all = series_shape(r, r->axis < out->shape.rank ? out->shape.dim[r->axis] : 0);
		OM_TRY(om_value_settle(e, r->out, item->type, &all));
		r->data = out->data;
		r->total = all.dim[r->axis];
	}
	return OM_OK;
}

/* Ensure capacity for one more element. */
static om_status
series_fit(om_exec *e, struct series *r)
{
	uint64_t bytes;

	if (r->total >= 0 && r->n >= r->total)
		return om_fail(e->session, OM_RUN, "%s was planned for %lld iterations, but there are more",
			r->out->name, (long long)r->total);
	r->fits = r->total >= 0 ? r->total : INT64_MAX;
	if (r->data && r->data != r->room.data)
		return OM_OK;
	const om_shape all = series_shape(r, r->total >= 0 ? r->total : r->n + 1);
	if (!om_tensor_bytes(r->item.type, &all, &bytes))
		return om_fail(e->session, OM_RUN, "%s: its size overflows", r->out->name);
	OM_TRY(om_room_extend(e, &r->room, (uint64_t)r->n * r->each, bytes, r->out->name));
	r->data = r->room.data;
	if (r->each && r->total < 0)
		r->fits = (int64_t)(r->room.cap / r->each);
	return OM_OK;
}

/* Copy an element in `outer` contiguous runs: the elements are interleaved unless the axis
 * is the first one. */
static void
series_copy(struct series *r, const om_tensor *item, int64_t at)
{
	const uint64_t stride = r->outer > 1 ? (uint64_t)r->total * r->inner : 0;
	om_tensor part = *item;

	for (int64_t o = 0; o < r->outer; o++) {
		om_elements_copy(r->data + (uint64_t)o * stride + (uint64_t)at * r->inner, &part, r->inner);
		part.data = (char *)part.data + (item->splat ? 0 : r->inner);
	}
}

static om_status
series_add(struct step *s, struct series *r, const om_tensor *item)
{
	om_exec *e = s->exec;

	if (!r->out)
		return OM_OK;
	if (r->n == 0)
		OM_TRY(series_first(s, r, item));
	OM_TRY(series_check(e, r, item));
	if (r->n >= r->fits)
		OM_TRY(series_fit(e, r));
	const int64_t at = r->is_backward ? r->total - 1 - r->n : r->n;
	r->n++;
	if (r->outer == 1 && !item->splat && item->data == r->data + (uint64_t)at * r->inner)
		return OM_OK;
	if (r->outer == 1 && !item->splat && r->each)
		memcpy(r->data + (uint64_t)at * r->each, item->data, r->each);
	else
		series_copy(r, item, at);
	e->stats.copied_bytes += r->each;
	return OM_OK;
}

/* Type and shape of an element, when there was no iteration. */
static void
series_nothing(const om_exec *e, struct series *r, const om_value *item)
{
	const om_tensor *out = &e->slot[r->out->id];

	r->item = (om_tensor){.type = item->type.elem, .shape = item->shape};
	if (r->item.shape.rank == OM_RANK_UNKNOWN)
		r->item.shape.rank = 0;
	if (r->item.type == OM_UNDEFINED)
		r->item.type = out->type;
	for (int d = 0; d < r->item.shape.rank; d++)
		if (r->item.shape.dim[d] < 0)
			r->item.shape.dim[d] = 0;
	if (r->axis < 0)
		r->axis += r->item.shape.rank + 1;
	r->data = r->room.data;
}

static om_status
series_end(struct step *s, struct series *r, const om_value *item)
{
	om_exec *e = s->exec;

	if (!r->out)
		return OM_OK;
	if (r->n == 0)
		series_nothing(e, r, item);
	om_tensor t = {.type = r->item.type, .shape = series_shape(r, r->n), .data = r->data};
	if (r->data && r->data != r->room.data)
		return om_value_settle(e, r->out, t.type, &t.shape);
	if (r->data && !e->is_fixed[r->out->id]) {
		om_value_take(e, r->out, &t, &r->room);
		return OM_OK;
	}
	return om_value_put(e, r->out, &t);
}

static void
series_move(struct series *r, struct om_mover *m)
{
	const uint64_t stride = r->outer > 1 ? (uint64_t)r->total * r->inner : 0;

	for (int64_t k = 0; k < r->n; k++) {
		const int64_t at = r->is_backward ? r->total - 1 - k : k;
		for (int64_t o = 0; o < r->outer; o++)
			om_objects_move_strings(m, (om_string *)(r->data + (uint64_t)o * stride + (uint64_t)at * r->inner),
				r->inner / sizeof(om_string));
	}
}

void
om_series_move_all(struct flow *f, struct om_mover *m)
{
	for (uint32_t k = 0; k < f->nseries; k++)
		if (f->series[k].out && f->series[k].n > 0 && f->series[k].item.type == OM_STRING)
			series_move(&f->series[k], m);
}

void
om_series_start(struct flow *f, om_value *const *out, uint32_t n)
{
	for (uint32_t k = 0; k < f->nseries; k++) {
		f->series[k].out = k < n ? out[k] : NULL;
		f->series[k].n = 0;
		f->series[k].total = -1;
		f->series[k].axis = 0;
	}
}

om_status
om_series_add_all(struct step *s, const om_block *b, uint32_t from)
{
	for (uint32_t k = 0; k < s->flow->nseries; k++)
		OM_TRY(series_add(s, &s->flow->series[k], &s->exec->slot[b->result[from + k]->id]));
	return OM_OK;
}

om_status
om_series_end_all(struct step *s, const om_block *b, uint32_t from)
{
	for (uint32_t k = 0; k < s->flow->nseries; k++)
		OM_TRY(series_end(s, &s->flow->series[k], b->result[from + k]));
	return OM_OK;
}
