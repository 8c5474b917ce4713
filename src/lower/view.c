/* SPDX-License-Identifier: Apache-2.0 */
/* Views of values; see view.h.
 *
 * An op that moves elements is described by the step that each axis of one side makes on the other side.  An axis
 * of a view has to move along one axis of that side only, without a carry. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "ir/query.h"
#include "lower/layout.h"
#include "lower/view.h"

static bool
is_op(const om_op *op, const char *type)
{
	return op && *op->domain == '\0' && strcmp(op->type, type) == 0;
}

static void
strides_of(const om_shape *s, int64_t *stride)
{
	int64_t n = 1;

	for (int d = s->rank - 1; d >= 0; d--) {
		stride[d] = n;
		n *= s->dim[d];
	}
}

bool
om_view_keeps_order(const om_op *op)
{
	static const char *const types[] = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"};

	for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
		if (is_op(op, types[k]))
			return op->nin > 0 && op->in[0] && op->nout == 1 && om_lower_is_real(op->in[0]) && om_lower_is_real(op->out[0]);
	return false;
}

/* The axis of `s` that a step goes along. */
static int
axis_of(const om_shape *s, const int64_t *stride, int64_t step)
{
	int d = s->rank - 1;

	while (d >= 0 && (s->dim[d] == 1 || step % stride[d] || step / stride[d] >= s->dim[d]))
		d--;
	return d;
}

/* Let the view, of a value of shape `s`, be of `to`: axis d of the value makes steps of `step[d]` there. */
static bool
map(om_view *v, const om_shape *s, const int64_t *step, int64_t offset, om_value *to)
{
	int64_t stride[OM_MAX_RANK], last[OM_MAX_RANK];
	om_view w = *v;

	strides_of(s, stride);
	w.value = to;
	w.offset = offset;
	for (int d = 0; d < s->rank; d++) {
		last[d] = v->offset / stride[d] % s->dim[d];
		w.offset += last[d] * step[d];
	}
	for (int k = 0; k < v->rank; k++) {
		w.step[k] = 0;
		if (v->dim[k] == 1 || v->step[k] == 0)
			continue;
		const int d = axis_of(s, stride, v->step[k]);
		if (d < 0)
			return false;
		const int64_t n = v->step[k] / stride[d];
		last[d] += n * (v->dim[k] - 1);
		if (last[d] >= s->dim[d])
			return false;
		w.step[k] = n * step[d];
	}
	*v = w;
	return true;
}

/* ---- Ops that move elements. ---- */

/* Axis d of the output of a Transpose is axis perm[d] of its input. */
static void
perm_of(const om_op *op, int *perm)
{
	size_t n;
	const int64_t *given = om_attr_ints(op, "perm", &n);
	const int rank = op->in[0]->shape.rank;

	for (int d = 0; d < rank; d++)
		perm[d] = given ? (int)given[d] : rank - 1 - d;
}

static bool
through_transpose(om_view *v, const om_op *op)
{
	int64_t stride[OM_MAX_RANK], step[OM_MAX_RANK];
	int perm[OM_MAX_RANK];

	perm_of(op, perm);
	strides_of(&op->in[0]->shape, stride);
	for (int d = 0; d < op->in[0]->shape.rank; d++)
		step[d] = stride[perm[d]];
	return map(v, &v->value->shape, step, 0, op->in[0]);
}

static bool
through_split(om_view *v, const om_op *op)
{
	const om_value *x = op->in[0];
	int64_t step[OM_MAX_RANK], axis = om_attr_int(op, "axis"), start = 0;

	axis += axis < 0 ? x->shape.rank : 0;
	for (uint32_t k = 0; op->out[k] != v->value; k++) {
		if (!op->out[k] || !om_shape_is_known(&op->out[k]->shape))
			return false;
		start += op->out[k]->shape.dim[axis];
	}
	strides_of(&x->shape, step);
	return map(v, &v->value->shape, step, start * step[axis], op->in[0]);
}

/* The first index of a slice. */
static int64_t
start_of(int64_t start, int64_t n)
{
	start += start < 0 ? n : 0;
	return start < 0 ? 0 : start > n ? n : start;
}

/* With constant bounds, in steps of 1. */
static bool
through_slice(om_view *v, const om_op *op)
{
	const om_value *x = op->in[0];
	int64_t step[OM_MAX_RANK], offset = 0;
	const int64_t *starts, *axes = NULL, *steps = NULL;
	size_t n, naxes = 0, nsteps = 0;

	if (op->version < 10 || op->nin < 3 || !om_lower_ints_of(op->in[1], &n, &starts)
	    || (op->nin > 3 && op->in[3] && (!om_lower_ints_of(op->in[3], &naxes, &axes) || naxes != n))
	    || (op->nin > 4 && op->in[4] && (!om_lower_ints_of(op->in[4], &nsteps, &steps) || nsteps != n)))
		return false;
	strides_of(&x->shape, step);
	for (size_t k = 0; k < n; k++) {
		const int64_t axis = axes ? axes[k] + (axes[k] < 0 ? x->shape.rank : 0) : (int64_t)k;
		if (steps && steps[k] != 1)
			return false;
		offset += start_of(starts[k], x->shape.dim[axis]) * step[axis];
	}
	return map(v, &v->value->shape, step, offset, op->in[0]);
}

/* Of one constant index. */
static bool
through_gather(om_view *v, const om_op *op)
{
	const om_value *x = op->in[0];
	int64_t stride[OM_MAX_RANK], step[OM_MAX_RANK], axis = om_attr_int(op, "axis");
	const int64_t *index;
	size_t n;

	if (!om_lower_ints_of(op->in[1], &n, &index) || n != 1 || op->in[1]->shape.rank > 1)
		return false;
	axis += axis < 0 ? x->shape.rank : 0;
	strides_of(&x->shape, stride);
	for (int d = 0, from = 0; d < v->value->shape.rank; d++, from++) {
		from += from == axis && op->in[1]->shape.rank == 0;
		step[d] = from < x->shape.rank ? stride[from] : 0;
	}
	return map(v, &v->value->shape, step, (index[0] + (index[0] < 0 ? x->shape.dim[axis] : 0)) * stride[axis], op->in[0]);
}

static bool
through_expand(om_view *v, const om_op *op)
{
	const om_value *x = op->in[0];
	int64_t stride[OM_MAX_RANK], step[OM_MAX_RANK];
	const int more = v->value->shape.rank - x->shape.rank;

	strides_of(&x->shape, stride);
	for (int d = 0; d < v->value->shape.rank; d++)
		step[d] = d < more || x->shape.dim[d - more] == 1 ? 0 : stride[d - more];
	return map(v, &v->value->shape, step, 0, op->in[0]);
}

bool
om_view_back(om_view *v)
{
	static const struct {
		const char *type;
		bool (*through)(om_view *v, const om_op *op);
	} moves[] = {
		{"Transpose", through_transpose}, {"Split", through_split}, {"Slice", through_slice}, {"Gather", through_gather},
		{"Expand", through_expand},
	};
	const om_op *op = v->value->def;

	if (!op || op->nin == 0 || !om_lower_is_real(op->in[0]) || om_shape_count(&v->value->shape) == 0)
		return false;
	if (om_view_keeps_order(op)) {
		v->value = op->in[0];
		return true;
	}
	for (size_t k = 0; k < sizeof moves / sizeof moves[0]; k++)
		if (is_op(op, moves[k].type))
			return moves[k].through(v, op);
	return false;
}

bool
om_view_forward(om_view *v, const om_op *op)
{
	int64_t stride[OM_MAX_RANK], step[OM_MAX_RANK];
	int perm[OM_MAX_RANK];

	if (op->nin == 0 || op->in[0] != v->value || !om_lower_is_real(v->value) || !om_lower_is_real(op->out[0])
	    || om_shape_count(&v->value->shape) == 0)
		return false;
	if (om_view_keeps_order(op)) {
		v->value = op->out[0];
		return true;
	}
	if (!is_op(op, "Transpose"))
		return false;
	perm_of(op, perm);
	strides_of(&op->out[0]->shape, stride);
	for (int d = 0; d < op->in[0]->shape.rank; d++)
		step[perm[d]] = stride[d];
	return map(v, &v->value->shape, step, 0, op->out[0]);
}

bool
om_view_divide(om_view *v, int rank, const int64_t *dim)
{
	om_view w = {.value = v->value, .offset = v->offset, .rank = rank + 2};
	int axis = v->rank - 3;
	int64_t inner = 1;        /* size of the divided axes that follow, of the same axis */

	for (int k = 0; k < 2; k++) {
		w.dim[rank + k] = v->dim[v->rank - 2 + k];
		w.step[rank + k] = v->step[v->rank - 2 + k];
	}
	for (int k = rank - 1; k >= 0; k--) {
		while (axis >= 0 && inner == v->dim[axis]) {
			axis--;
			inner = 1;
		}
		if (axis < 0)
			return false;
		w.dim[k] = dim[k];
		w.step[k] = v->step[axis] * inner;
		inner *= dim[k];
		if (v->dim[axis] % inner)
			return false;
	}
	*v = w;
	return true;
}

/* Does a Transpose exchange the last two axes? */
static bool
exchanges_last(const om_op *op)
{
	const int rank = op->in[0]->shape.rank;
	int perm[OM_MAX_RANK];

	if (!is_op(op, "Transpose") || rank < 2)
		return false;
	perm_of(op, perm);
	for (int d = 0; d < rank - 2; d++)
		if (perm[d] != d)
			return false;
	return perm[rank - 1] == rank - 2;
}

const om_shape *
om_view_repeated(const om_value *x)
{
	for (const om_op *op; (op = x->def) && op->nin > 0 && om_lower_is_real(op->in[0]); x = op->in[0]) {
		if (is_op(op, "Expand"))
			return &op->out[0]->shape;
		if (!om_view_keeps_order(op) && !exchanges_last(op))
			return NULL;
	}
	return NULL;
}

static bool
is_result(const om_value *v)
{
	for (const om_use *u = v->first_use; u; u = u->next)
		if (!u->op)
			return true;
	return false;
}

void
om_view_settle_shape(struct om_layout *l, const om_value *x)
{
	for (const om_use *u = x->first_use; u && om_shape_is_known(&x->shape); u = u->next) {
		om_op *op = u->op;
		if (is_op(op, "Shape") && !om_attr_find(op, "start") && !om_attr_find(op, "end") && !is_result(op->out[0]))
			om_value_replace(op->out[0], om_lower_ints(l, op->block, "shape", (size_t)x->shape.rank, x->shape.dim));
	}
}
