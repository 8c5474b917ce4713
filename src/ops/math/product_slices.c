/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of products: rows of the left operand, columns of the right one, batches; and contributions of parts of the axis
 * that is summed over. */
#include <config.h>

#include "ir/query.h"
#include "opdef/geometry/einsum.h"
#include "ops/slices.h"

/* ---- MatMul. ---- */

static int
batch_rank(const om_shape *x)
{
	return x->rank > 2 ? x->rank - 2 : 0;
}

/* The part of operand `k` for a part of batch axis `axis` of `n`. */
static void
batch_part(const om_op_context *c, om_slice *s, uint32_t k, int n, const om_part *p)
{
	const om_shape *x = &c->in[k].shape;
	const int axis = p->axis - (n - batch_rank(x));

	if (axis >= 0 && x->dim[axis] != 1)
		s->in[k] = om_part_along(p, axis);
}

/* A vector on the left has no row, one on the right no column. */
void
om_slice_operands(const om_op_context *c, om_slice *s, uint32_t ak, uint32_t bk)
{
	const om_shape *a = &c->in[ak].shape, *b = &c->in[bk].shape;
	const int n = c->out[0].shape.rank - (a->rank > 1) - (b->rank > 1);
	const om_part *p = &s->out[0];

	if (p->axis < n) {
		batch_part(c, s, ak, n, p);
		batch_part(c, s, bk, n, p);
	} else if (p->axis == n && a->rank > 1) {
		s->in[ak] = om_part_along(p, a->rank - 2);
	} else {
		s->in[bk] = om_part_along(p, b->rank - 1);
	}
}

bool
om_partial_operands(om_slice *s, uint32_t in, uint32_t ak, int left, uint32_t bk, int right)
{
	const om_part p = s->in[in];

	if ((in != ak || p.axis != left) && (in != bk || p.axis != right))
		return false;
	s->in[ak] = om_part_along(&p, left);
	s->in[bk] = om_part_along(&p, right);
	return true;
}

static bool
matmul_sum(const om_op_context *c, om_slice *s, uint32_t in, uint32_t ak, uint32_t bk)
{
	const int a = c->in[ak].shape.rank, b = c->in[bk].shape.rank;

	return om_partial_operands(s, in, ak, a - 1, bk, b > 1 ? b - 2 : 0);
}

bool
om_slice_matmul(const om_op_context *c, uint32_t out, om_slice *s)
{
	(void)out;
	om_slice_operands(c, s, 0, 1);
	return true;
}

bool
om_partial_matmul(const om_op_context *c, uint32_t in, om_slice *s)
{
	return matmul_sum(c, s, in, 0, 1);
}

/* ---- Products of quantized matrices. ---- */

bool
om_slice_each(const om_op_context *c, om_slice *s, uint32_t k, int axis, int64_t n)
{
	if (!om_has_in(c, k) || om_shape_count(&c->in[k].shape) == 1)
		return true;
	om_slice_channels(c, 0, s, k, axis);
	return c->in[k].shape.rank == 1 && c->in[k].shape.dim[0] == n;
}

/* The axes of the output that are rows of the left and columns of the right operand; -1: none. */
static void
matrix_axes(const om_op_context *c, uint32_t ak, uint32_t bk, int *rows, int *columns)
{
	const int a = c->in[ak].shape.rank, b = c->in[bk].shape.rank, rank = c->out[0].shape.rank;

	*columns = b > 1 ? rank - 1 : -1;
	*rows = a > 1 ? rank - 1 - (b > 1) : -1;
}

static int64_t
dim_of(const om_op_context *c, int axis)
{
	return axis < 0 ? 1 : c->out[0].shape.dim[axis];
}

bool
om_slice_matmul_integer(const om_op_context *c, uint32_t out, om_slice *s)
{
	int rows, columns;

	(void)out;
	matrix_axes(c, 0, 1, &rows, &columns);
	om_slice_operands(c, s, 0, 1);
	return om_slice_each(c, s, 2, rows, dim_of(c, rows)) && om_slice_each(c, s, 3, columns, dim_of(c, columns));
}

/* Zero points are subtracted from each element, so that every contribution needs them. */
bool
om_partial_matmul_integer(const om_op_context *c, uint32_t in, om_slice *s)
{
	return matmul_sum(c, s, in, 0, 1);
}

/* Scales and zero points of the output are those of its rows. */
bool
om_slice_matmul_quantized(const om_op_context *c, uint32_t out, om_slice *s)
{
	static const uint32_t left[] = {1, 2, 6, 7}, right[] = {4, 5};
	int rows, columns;
	bool ok = true;

	(void)out;
	matrix_axes(c, 0, 3, &rows, &columns);
	om_slice_operands(c, s, 0, 3);
	for (int k = 0; k < 4; k++)
		ok &= om_slice_each(c, s, left[k], rows, dim_of(c, rows));
	for (int k = 0; k < 2; k++)
		ok &= om_slice_each(c, s, right[k], columns, dim_of(c, columns));
	return ok;
}

/* ---- Einsum. ---- */

/* The part of every operand for a part of the loop axis `label`; false if an operand has the axis twice. */
static bool
label_part(const om_op_context *c, om_slice *s, const struct om_einsum *e, int label, om_part p)
{
	for (uint32_t k = 0; k < e->nin; k++)
		for (int d = 0, seen = 0; d < e->rank[k]; d++) {
			if (e->term[k][d] != label)
				continue;
			if (seen++)
				return false;
			if (c->in[k].shape.dim[d] != 1)
				s->in[k] = om_part_along(&p, d);
		}
	return true;
}

bool
om_slice_einsum(const om_op_context *c, uint32_t out, om_slice *s)
{
	struct om_einsum e;

	return om_einsum_read(c, &e) == OM_OK && label_part(c, s, &e, e.term[e.nin][s->out[out].axis], s->out[out]);
}

bool
om_partial_einsum(const om_op_context *c, uint32_t in, om_slice *s)
{
	const om_part p = s->in[in];
	struct om_einsum e;

	if (om_einsum_read(c, &e) != OM_OK)
		return false;
	for (int d = 0; d < e.rank[e.nin]; d++)
		if (e.term[e.nin][d] == e.term[in][p.axis])
			return false;
	return label_part(c, s, &e, e.term[in][p.axis], p);
}

/* ---- Gemm. ---- */

static int
is_transposed(const om_op_context *c, const char *attr)
{
	return om_attr_int(c->op, attr) != 0;
}

/* Columns are those of the right operand, which is quantized with one scale and zero point, or with those of its columns;
 * rows are those of the left one. */
bool
om_slice_gemm_quantized(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];
	const int64_t columns = c->out[0].shape.dim[1];

	if (p->axis == 0)
		s->in[0] = om_part_along(p, is_transposed(c, "transA"));
	else
		s->in[3] = om_part_along(p, !is_transposed(c, "transB"));
	if (om_has_in(c, 6))
		om_slice_align(c, out, s, 6);
	return om_slice_each(c, s, 1, -1, 1) && om_slice_each(c, s, 2, -1, 1) && om_slice_each(c, s, 4, 1, columns)
	    && om_slice_each(c, s, 5, 1, columns) && om_slice_each(c, s, 7, -1, 1) && om_slice_each(c, s, 8, -1, 1);
}

bool
om_slice_gemm(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];

	if (p->axis == 0)
		s->in[0] = om_part_along(p, is_transposed(c, "transA"));
	else
		s->in[1] = om_part_along(p, !is_transposed(c, "transB"));
	if (om_has_in(c, 2))
		om_slice_align(c, out, s, 2);
	return true;
}

/* C is added once: the other contributions do without it or, where it is required, multiply it by 0. */
bool
om_partial_gemm(const om_op_context *c, uint32_t in, om_slice *s)
{
	const om_part p = s->in[in];

	if (!om_partial_operands(s, in, 0, !is_transposed(c, "transA"), 1, is_transposed(c, "transB")))
		return false;
	if (om_has_in(c, 2) && p.lo > 0) {
		if (c->op->opdef->min_in > 2)
			om_slice_set_float(c, s, "beta", 0);
		else
			s->in[2] = om_part_none();
	}
	return true;
}
