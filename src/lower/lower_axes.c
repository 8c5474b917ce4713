/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that follow the form of an input: elementwise ops, and ops that name axes; see the table of layout.c. */
#include <config.h>

#include "base/shape.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "lower/layout.h"
#include "opdef/op_context.h"

static const char *
form_name(const struct om_layout *l, const om_value *v)
{
	return om_printf(l->mem, "%s_last", v->name);
}

/* ---- Elementwise ops. ---- */

static bool
has_form(const struct om_layout *l, const om_value *v)
{
	return v && om_lower_form(l, v)->value;
}

/* The axes along which the value has more than one element: how many there are. */
static int
long_axes(const om_shape *s)
{
	int n = 0;

	for (int k = 0; k < s->rank; k++)
		n += s->dim[k] != 1;
	return n;
}

/* The order of axes that most bytes of the inputs have; false if more bytes would have to be transposed than come
 * in that order. */
static bool
common_order(const struct om_layout *l, const om_op *op, const int **axis)
{
	const int rank = op->out[0]->shape.rank;
	uint64_t most = 0, formed = 0, others = 0;

	for (uint32_t k = 0; k < op->nin; k++) {
		const om_value *v = op->in[k];
		if (!v || om_lower_is_const(v))
			continue;
		const uint64_t bytes = om_value_bytes(v);
		if (!has_form(l, v)) {
			others += long_axes(&v->shape) > 1 ? bytes : 0;
			continue;
		}
		if (v->shape.rank != rank)
			return false;
		formed += bytes;
		if (bytes > most) {
			most = bytes;
			*axis = om_lower_form(l, v)->axis;
		}
	}
	return most && formed >= others;
}

static bool
can_follow(const om_op *op)
{
	if (op->out[0]->type.kind != OM_TENSOR || !om_shape_is_known(&op->out[0]->shape) || op->out[0]->shape.rank < 2)
		return false;
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && (op->in[k]->type.kind != OM_TENSOR || !om_shape_is_known(&op->in[k]->shape)
		    || op->in[k]->shape.rank > op->out[0]->shape.rank))
			return false;
	return true;
}

/* An input of a lower rank gets leading axes first. */
static om_status
read_operand(struct om_layout *l, om_op *op, om_value *v, const int *axis, om_value **out)
{
	const int rank = op->out[0]->shape.rank, less = rank - v->shape.rank;
	int64_t dim[OM_MAX_RANK];

	*out = v;
	if (om_shape_count(&v->shape) == 1)
		return OM_OK;
	if (less == 0)
		return om_lower_read(l, op, v, axis, out);
	for (int k = 0; k < rank; k++)
		dim[k] = k < less ? 1 : v->shape.dim[k - less];
	om_value *in[] = {v, om_lower_ints(l, op->block, om_printf(l->mem, "%s_shape", v->name), (size_t)rank, dim)};
	OM_TRY(om_lower_insert(l, op, om_lower_op(l, "", "Reshape", 14, 2, in), om_printf(l->mem, "%s_wide", v->name), &v));
	return om_lower_read(l, op, v, axis, out);
}

om_status
om_lower_pointwise(struct om_layout *l, om_op *op, bool *done)
{
	om_value **in = OM_NEWN(l->mem, om_value *, op->nin);
	const int *axis = NULL;
	om_form y;

	if (!op->out[0] || !can_follow(op) || !common_order(l, op, &axis))
		return OM_OK;
	memcpy(y.axis, axis, sizeof y.axis);
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k])
			OM_TRY(read_operand(l, op, op->in[k], y.axis, &in[k]));
	OM_TRY(om_lower_insert(l, op, om_lower_copy(l, op, op->nin, in), form_name(l, op->out[0]), &y.value));
	return om_lower_replace(l, op, &y, &l->n.followed, done);
}

/* Has input `k`, if there is one, one element? */
static bool
is_single(const om_op *op, uint32_t k)
{
	const om_value *v = om_op_input(op, k);

	return !v || (om_shape_is_known(&v->shape) && om_shape_count(&v->shape) == 1);
}

/* With one scale for all elements, these are elementwise. */
om_status
om_lower_quantize(struct om_layout *l, om_op *op, bool *done)
{
	for (uint32_t k = 1; k < op->nin; k++)
		if (!is_single(op, k))
			return OM_OK;
	return om_lower_pointwise(l, op, done);
}

/* A copy of the op computes its outputs, all in the form of `like`. */
static om_status
follow_all(struct om_layout *l, om_op *op, om_op *copy, const om_form *like, bool *done)
{
	om_value **out = OM_NEWN(l->mem, om_value *, op->nout);
	om_form y = *like;

	OM_TRY(om_lower_insert_all(l, op, copy, op, out));
	for (uint32_t k = 0; k < op->nout; k++) {
		y.value = out[k];
		if (out[k])
			OM_TRY(om_lower_define(l, op, k, &y));
	}
	om_lower_done(l, op, &l->n.followed);
	*done = true;
	return OM_OK;
}

/* The scale and the zero point are those of all elements, in whatever order. */
om_status
om_lower_dynamic_quantize(struct om_layout *l, om_op *op, bool *done)
{
	om_form y = *om_lower_form(l, op->in[0]);

	if (!has_form(l, op->in[0]))
		return OM_OK;
	return follow_all(l, op, om_lower_copy(l, op, 1, &y.value), &y, done);
}

/* Sums and products of quantized tensors, which are inputs 0 and 3. */
om_status
om_lower_qlinear_elementwise(struct om_layout *l, om_op *op, bool *done)
{
	for (uint32_t k = 0; k < op->nin; k++)
		if (k != 0 && k != 3 && !is_single(op, k))
			return OM_OK;
	return om_lower_pointwise(l, op, done);
}

/* ---- An attribute `axis`: Concat, Split, Softmax. ---- */

static void
set_int(struct om_layout *l, om_op *op, const char *name, int64_t v)
{
	om_op_drop_attr(op, name);
	om_op_add_int(l->p, op, name, v);
}

/* Before version 13, Softmax is of all axes from `axis` on. */
static bool
has_one_axis(const om_op *op)
{
	return strstr(op->type, "Softmax") == NULL || op->version >= 13;
}

om_status
om_lower_axis_attr(struct om_layout *l, om_op *op, bool *done)
{
	const bool joins = strcmp(op->type, "Concat") == 0;
	om_value **in = OM_NEWN(l->mem, om_value *, op->nin);
	const om_value *most = joins ? op->out[0] : op->in[0];
	const int *order = NULL;
	int axis;
	om_form y;

	if (!has_one_axis(op) || (joins ? !op->out[0] || !can_follow(op) || !common_order(l, op, &order) : !has_form(l, op->in[0]))
	    || !om_axis(om_attr_int(op, "axis"), most->shape.rank, &axis))
		return OM_OK;
	memcpy(y.axis, joins ? order : om_lower_form(l, op->in[0])->axis, sizeof y.axis);
	for (uint32_t k = 0; k < op->nin; k++) {
		in[k] = op->in[k];
		if (joins || k == 0)
			OM_TRY(om_lower_read(l, op, op->in[k], y.axis, &in[k]));
	}
	om_op *copy = om_lower_copy(l, op, op->nin, in);
	set_int(l, copy, "axis", om_lower_position(y.axis, most->shape.rank, axis));
	return follow_all(l, op, copy, &y, done);
}

/* ---- Lists that name axes, or have an element per axis. ---- */

/* A copy of `op` that reads the form of input 0, and a list in place of input `k`, defines the output. */
static om_status
with_list(struct om_layout *l, om_op *op, uint32_t k, size_t n, const int64_t *list)
{
	om_value **in = om_memdup(l->mem, op->in, op->nin * sizeof *in);
	om_form y = *om_lower_form(l, op->in[0]);

	in[0] = y.value;
	in[k] = om_lower_ints(l, op->block, om_printf(l->mem, "%s_axes", op->out[0]->name), n, list);
	OM_TRY(om_lower_insert(l, op, om_lower_copy(l, op, op->nin, in), form_name(l, op->out[0]), &y.value));
	OM_TRY(om_lower_define(l, op, 0, &y));
	om_lower_done(l, op, &l->n.followed);
	return OM_OK;
}

om_status
om_lower_slice(struct om_layout *l, om_op *op, bool *done)
{
	const int rank = op->in[0]->shape.rank;
	const int64_t *given, *starts;
	int64_t axes[OM_MAX_RANK];
	size_t n, nstart;
	int a;

	if (!has_form(l, op->in[0]) || op->version < 10 || op->nin < 4 || !om_lower_ints_of(op->in[3], &n, &given)
	    || !om_lower_ints_of(op->in[1], &nstart, &starts) || n > OM_MAX_RANK)
		return OM_OK;
	for (size_t k = 0; k < n; k++) {
		if (!om_axis(given[k], rank, &a))
			return OM_OK;
		axes[k] = om_lower_position(om_lower_form(l, op->in[0])->axis, rank, a);
	}
	*done = true;
	return with_list(l, op, 3, n, axes);
}

om_status
om_lower_pad(struct om_layout *l, om_op *op, bool *done)
{
	const int rank = op->in[0]->shape.rank;
	const int *axis = om_lower_form(l, op->in[0])->axis;
	const int64_t *given;
	int64_t pads[2 * OM_MAX_RANK];
	size_t n;

	if (!has_form(l, op->in[0]) || op->version < 11 || (op->nin > 3 && op->in[3])
	    || !om_lower_ints_of(op->in[1], &n, &given) || n != 2 * (size_t)rank)
		return OM_OK;
	for (int k = 0; k < rank; k++) {
		pads[k] = given[axis[k]];
		pads[rank + k] = given[rank + axis[k]];
	}
	*done = true;
	return with_list(l, op, 1, n, pads);
}

/* ---- Reductions. ---- */

/* The axes, from an attribute or an input; none given are all. */
static bool
reduced_axes(const om_op *op, bool *is_in)
{
	const int64_t *axis = NULL;
	size_t n = 0;

	if (op->nin > 1 && op->in[1] && !om_lower_ints_of(op->in[1], &n, &axis))
		return false;
	if (op->nin < 2)
		axis = om_attr_has(op, "axes") ? om_attr_ints(op, "axes", &n) : NULL;
	memset(is_in, 0, OM_MAX_RANK * sizeof *is_in);
	for (size_t k = 0; k < n; k++) {
		int a;
		if (!om_axis(axis[k], op->in[0]->shape.rank, &a))
			return false;
		is_in[a] = true;
	}
	return n > 0;
}

/* The order of the axes that are left, which are numbered anew. */
static void
remaining_order(const int *axis, int rank, const bool *is_in, int *left)
{
	int n = 0;

	for (int k = 0; k < rank; k++) {
		if (is_in[axis[k]])
			continue;
		left[n] = 0;
		for (int a = 0; a < axis[k]; a++)
			left[n] += !is_in[a];
		n++;
	}
}

/* One index of an axis, as in a channel shuffle, where an image with channels last is left.  The Reshape only moves axes of size 1. */
om_status
om_lower_gather(struct om_layout *l, om_op *op, bool *done)
{
	const om_value *x = op->in[0], *index = op->in[1];
	const int rank = x->shape.rank;
	int left[OM_MAX_RANK] = {0};
	bool is_in[OM_MAX_RANK] = {false};
	int64_t dim[OM_MAX_RANK];
	om_form y = *om_lower_form(l, x);
	int axis;

	if (!y.value || !om_shape_is_known(&index->shape) || index->shape.rank != 0 || rank < 4
	    || !om_axis(om_attr_int(op, "axis"), rank, &axis))
		return OM_OK;
	is_in[axis] = true;
	remaining_order(y.axis, rank, is_in, left);
	if (!om_lower_is_order_last(&op->out[0]->shape, left))
		return OM_OK;
	om_value *in[] = {y.value, op->in[1]};
	om_op *copy = om_lower_copy(l, op, 2, in);
	set_int(l, copy, "axis", om_lower_position(y.axis, rank, axis));
	om_lower_channels_last(rank - 1, y.axis);
	OM_TRY(om_lower_insert(l, op, copy, form_name(l, op->out[0]), &y.value));
	for (int k = 0; k < rank - 1; k++)
		dim[k] = op->out[0]->shape.dim[y.axis[k]];
	om_value *last[] = {y.value, om_lower_ints(l, op->block, om_printf(l->mem, "%s_shape", op->out[0]->name), (size_t)rank - 1, dim)};
	OM_TRY(om_lower_insert(l, op, om_lower_op(l, "", "Reshape", 14, 2, last), form_name(l, op->out[0]), &y.value));
	return om_lower_replace(l, op, &y, &l->n.followed, done);
}

om_status
om_lower_reduce(struct om_layout *l, om_op *op, bool *done)
{
	const int rank = op->in[0]->shape.rank;
	om_form y = *om_lower_form(l, op->in[0]);
	int64_t axes[OM_MAX_RANK];
	bool is_in[OM_MAX_RANK];
	size_t n = 0;

	if (!y.value || !reduced_axes(op, is_in) || !om_shape_is_known(&op->out[0]->shape))
		return OM_OK;
	for (int k = 0; k < rank; k++)
		if (is_in[y.axis[k]])
			axes[n++] = k;
	om_value *in[] = {y.value, NULL};
	if (op->nin > 1)
		in[1] = om_lower_ints(l, op->block, om_printf(l->mem, "%s_axes", op->out[0]->name), n, axes);
	om_op *copy = om_lower_copy(l, op, op->nin, in);
	if (op->nin < 2) {
		om_op_drop_attr(copy, "axes");
		om_op_add_ints(l->p, copy, "axes", n, axes);
	}
	if (!om_attr_int(op, "keepdims"))
		remaining_order(om_lower_form(l, op->in[0])->axis, rank, is_in, y.axis);
	OM_TRY(om_lower_insert(l, op, copy, form_name(l, op->out[0]), &y.value));
	return om_lower_replace(l, op, &y, &l->n.followed, done);
}

/* ---- Resize. ---- */

/* The operand that gives the new size: scales or sizes. */
static bool
size_operand(const om_op *op, uint32_t *k)
{
	const bool old = strcmp(op->type, "Upsample") == 0 || op->version < 11;

	*k = old ? 1 : 2;
	if (!old && op->nin > 3 && op->in[3])
		*k = 3;
	return *k < op->nin && op->in[*k] && op->in[*k]->data && op->in[*k]->data->data && !op->in[*k]->is_overridable
	    && !op->in[*k]->data->splat && om_shape_count(&op->in[*k]->shape) == op->in[0]->shape.rank;
}

static bool
resizes_all_axes(const om_op *op)
{
	return !(op->version >= 18 && (om_attr_has(op, "axes") || om_attr_has(op, "keep_aspect_ratio_policy")))
	    && !om_attr_is(op, "coordinate_transformation_mode", "tf_crop_and_resize");
}

om_status
om_lower_resize(struct om_layout *l, om_op *op, bool *done)
{
	const int rank = op->in[0]->shape.rank;
	om_form y = *om_lower_form(l, op->in[0]);
	float scales[OM_MAX_RANK];
	int64_t sizes[OM_MAX_RANK];
	uint32_t k;

	if (!y.value || op->version < 9 || !resizes_all_axes(op) || !size_operand(op, &k))
		return OM_OK;
	const om_tensor *t = op->in[k]->data;
	if (t->type != OM_FLOAT32 && t->type != OM_INT64)
		return OM_OK;
	for (int a = 0; a < rank; a++)
		if (t->type == OM_FLOAT32)
			scales[a] = ((const float *)t->data)[y.axis[a]];
		else
			sizes[a] = ((const int64_t *)t->data)[y.axis[a]];
	om_value **in = om_memdup(l->mem, op->in, op->nin * sizeof *in);
	in[0] = y.value;
	in[k] = om_lower_list(l, op->block, om_printf(l->mem, "%s_size", op->out[0]->name), t->type, rank,
		t->type == OM_FLOAT32 ? (const void *)scales : sizes);
	if (op->version >= 11 && op->nin > 1)
		in[1] = NULL;  /* the region, which only tf_crop_and_resize reads */
	OM_TRY(om_lower_insert(l, op, om_lower_copy(l, op, op->nin, in), form_name(l, op->out[0]), &y.value));
	return om_lower_replace(l, op, &y, &l->n.followed, done);
}
