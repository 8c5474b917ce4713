/* Numbers about whole matrices. */
#include <config.h>

#include <math.h>

#include "ops/copy.h"
#include "ops/family.h"
#include "ops/numbers.h"

/* ---- Det. ---- */

static om_status
det_infer(om_call *c)
{
	const om_shape *x = &c->in[0].shape;

	c->out[0].type = c->in[0].type;
	if (x->rank < 0)
		return OM_OK;
	if (x->rank < 2 || !om_dims_agree(x->dim[x->rank - 1], x->dim[x->rank - 2]))
		return om_op_fail(c->session, OM_SHAPE, c->op, "its input is not made of square matrices");
	c->out[0].shape = *x;
	c->out[0].shape.rank = x->rank - 2;
	return OM_OK;
}

static uint64_t
det_scratch(const om_call *c)
{
	const om_shape *x = &c->in[0].shape;
	const uint64_t n = (uint64_t)x->dim[x->rank - 1];

	return om_piece(n * n * sizeof(double));
}

/* Elimination with the largest pivot of a column; `m` is used up. */
static double
determinant(double *m, int64_t n)
{
	double det = 1;

	for (int64_t k = 0; k < n; k++) {
		int64_t best = k;
		for (int64_t r = k + 1; r < n; r++)
			if (fabs(m[r * n + k]) > fabs(m[best * n + k]))
				best = r;
		for (int64_t i = k; i < n && best != k; i++) {
			const double v = m[k * n + i];
			m[k * n + i] = m[best * n + i];
			m[best * n + i] = v;
		}
		det *= best != k ? -m[k * n + k] : m[k * n + k];
		if (m[k * n + k] == 0)
			return 0;
		for (int64_t r = k + 1; r < n; r++) {
			const double by = m[r * n + k] / m[k * n + k];
			for (int64_t i = k; i < n; i++)
				m[r * n + i] -= by * m[k * n + i];
		}
	}
	return det;
}

static om_status
det_cpu(om_call *c)
{
	const om_tensor *x = &c->in[0];
	const int64_t n = x->shape.dim[x->shape.rank - 1];
	double *m = c->scratch;

	if (x->type != OM_FLOAT32 && x->type != OM_FLOAT64 && !om_is_half(x->type))
		return om_no_kernel(c, x->type);
	for (int64_t k = 0; k < om_shape_count(&c->out[0].shape); k++) {
		for (int64_t i = 0; i < n * n; i++)
			m[i] = om_get(x->type, x->data, k * n * n + i);
		om_put(x->type, c->out[0].data, k, determinant(m, n));
	}
	return OM_OK;
}

static void
det_cost(const om_call *c, om_cost *cost)
{
	const om_shape *x = &c->in[0].shape;

	cost->flops = (double)om_shape_count(x) * (double)x->dim[x->rank - 1];
}

const om_row om_ops_matrix[] = {
	{.name = "Det", .brief = "the determinant of each matrix", .since = 11, .min_in = 1, .max_in = 1,
	 .min_out = 1, .max_out = 1, .infer = det_infer, .cpu = det_cpu, .scratch = det_scratch, .cost = det_cost},
	{0}
};
