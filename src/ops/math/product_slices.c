/* Parts of products: rows of the left operand, columns of the right one, batches; and contributions of parts of the axis
 * that is summed over. */
#include <config.h>

#include "ir/query.h"
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
static void
matmul_part(const om_op_context *c, om_slice *s, uint32_t ak, uint32_t bk)
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

static bool
matmul_sum(const om_op_context *c, om_slice *s, uint32_t in, uint32_t ak, uint32_t bk)
{
	const om_shape *a = &c->in[ak].shape, *b = &c->in[bk].shape;
	const int left = a->rank - 1, right = b->rank > 1 ? b->rank - 2 : 0;
	const om_part p = s->in[in];

	if ((in != ak || p.axis != left) && (in != bk || p.axis != right))
		return false;
	s->in[ak] = om_part_along(&p, left);
	s->in[bk] = om_part_along(&p, right);
	return true;
}

bool
om_slice_matmul(const om_op_context *c, uint32_t out, om_slice *s)
{
	(void)out;
	matmul_part(c, s, 0, 1);
	return true;
}

bool
om_partial_matmul(const om_op_context *c, uint32_t in, om_slice *s)
{
	return matmul_sum(c, s, in, 0, 1);
}

/* ---- Gemm. ---- */

static int
is_transposed(const om_op_context *c, const char *attr)
{
	return om_attr_int(c->op, attr) != 0;
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
	const int left = !is_transposed(c, "transA"), right = is_transposed(c, "transB");
	const om_part p = s->in[in];

	if ((in != 0 || p.axis != left) && (in != 1 || p.axis != right))
		return false;
	s->in[0] = om_part_along(&p, left);
	s->in[1] = om_part_along(&p, right);
	if (om_has_in(c, 2) && p.lo > 0) {
		if (c->op->opdef->min_in > 2)
			om_slice_set_float(c, s, "beta", 0);
		else
			s->in[2] = om_part_none();
	}
	return true;
}
