/* Parts of operators that move elements. */
#include <config.h>

#include "base/shape.h"
#include "ir/query.h"
#include "opdef/columns.h"
#include "ops/slices.h"

bool
om_slice_transpose(const om_op_context *c, uint32_t out, om_slice *s)
{
	size_t n;
	const int64_t *perm = om_attr_ints(c->op, "perm", &n);
	const om_part *p = &s->out[out];

	s->in[0] = om_part_along(p, om_attr_has(c->op, "perm") ? (int)perm[p->axis] : c->in[0].shape.rank - 1 - p->axis);
	return true;
}

/* ---- Reshape. ---- */

/* The axis of the input whose elements begin where those of axis `axis` of the output do: as many elements are before one
 * position of either.  -1: there is none. */
static int
same_start(const om_shape *in, const om_shape *out, int axis)
{
	const int64_t before = om_shape_span(out, 0, axis);

	for (int k = 0; k < in->rank; k++)
		if (in->dim[k] != 1 && om_shape_span(in, 0, k) == before)
			return k;
	return -1;
}

/* The part of input 0 of an op that keeps the order of the elements.  A position of the output consists of whole
 * positions of the input, or the other way round; then a part may compute a surplus. */
static bool
reshape_part(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_shape *x = &c->in[0].shape, *y = &c->out[0].shape;
	const om_part *p = &s->out[out];

	if (y->dim[p->axis] == 1)
		return true;
	const int k = same_start(x, y, p->axis);
	if (k < 0 || om_shape_count(x) == 0)
		return false;
	const int64_t coarse = om_shape_span(y, p->axis + 1, y->rank), fine = om_shape_span(x, k + 1, x->rank);
	if (coarse % fine == 0) {
		s->in[0] = om_part_of(k, p->lo * (coarse / fine), p->hi * (coarse / fine));
		return true;
	}
	const int64_t each = fine / coarse;
	if (fine % coarse != 0)
		return false;
	s->in[0] = om_part_of(k, p->lo / each, (p->hi + each - 1) / each);
	s->before = p->lo - s->in[0].lo * each;
	s->after = s->in[0].hi * each - p->hi;
	return true;
}

/* The requested dims: an attribute until version 4, then an input. */
bool
om_slice_reshape(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];
	om_shape y = c->out[0].shape;

	if (!reshape_part(c, out, s))
		return false;
	y.dim[p->axis] = p->hi - p->lo + s->before + s->after;
	if (c->op->nin >= 2)
		om_slice_put_ints(c, s, 1, (size_t)y.rank, y.dim);
	else
		om_slice_set_ints(c, s, "shape", (size_t)y.rank, y.dim);
	return true;
}

bool
om_slice_flatten(const om_op_context *c, uint32_t out, om_slice *s)
{
	return reshape_part(c, out, s);
}

/* Without a list of axes, a part of one element would lose its axis: the axes are listed. */
bool
om_slice_squeeze(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_shape *x = &c->in[0].shape;
	int64_t axes[OM_MAX_RANK];
	size_t n = 0;

	if (!reshape_part(c, out, s))
		return false;
	if (om_has_in(c, 1) || om_attr_has(c->op, "axes"))
		return true;
	for (int k = 0; k < x->rank; k++)
		if (x->dim[k] == 1)
			axes[n++] = k;
	if (c->op->opdef->max_in > 1)
		om_slice_put_ints(c, s, 1, n, axes);
	else
		om_slice_set_ints(c, s, "axes", n, axes);
	return true;
}
