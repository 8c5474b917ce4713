/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul and Gemm of two computed float32 matrices, as batches of products in pieces; see kernels/cpu/product.h.
 * Other types are left to the reference kernels. */
#include <config.h>

#include <string.h>

#include "kernels/cpu/product.h"
#include "base/strided_copy.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "ops/family.h"

/* The step of operand `s` along axis `d` of the broadcast batch axes, of which there are `rank`. */
static int64_t
batch_step(const om_shape *s, const int64_t *stride, int rank, int d)
{
	const int k = d - (rank - (s->rank - 2));

	return s->rank > 2 && k >= 0 && s->dim[k] != 1 ? stride[k] : 0;
}

static void
add_batch_axes(const om_shape *a, const om_shape *b, const om_shape *y, om_product_batch *p)
{
	int64_t as[OM_MAX_RANK], bs[OM_MAX_RANK];
	const int a_axes = a->rank > 2 ? a->rank - 2 : 0, b_axes = b->rank > 2 ? b->rank - 2 : 0;
	int64_t step = p->p.m * p->p.n;

	p->rank = a_axes > b_axes ? a_axes : b_axes;
	om_strides(a, as);
	om_strides(b, bs);
	for (int d = p->rank - 1; d >= 0; d--) {
		p->dim[d] = y->dim[d];
		p->a[d] = batch_step(a, as, p->rank, d);
		p->b[d] = batch_step(b, bs, p->rank, d);
		p->c[d] = step;
		step *= y->dim[d];
	}
}

/* One tall matrix on the left of one matrix is one product. */
static void
join_rows(const om_shape *a, om_product_batch *p)
{
	int64_t count = 1;

	for (int d = 0; d < p->rank; d++) {
		if (p->b[d] != 0 || p->dim[d] != (a->rank - 2 == p->rank ? a->dim[d] : 1))
			return;
		count *= p->dim[d];
	}
	p->p.m *= count;
	p->rank = 0;
}

static om_status
matmul_prepare(om_op_context *c, void **state)
{
	const om_shape *a = &c->in[0].shape, *b = &c->in[1].shape;
	om_product_batch *p = *state;

	p->p = (om_product){
		.m = a->rank > 1 ? a->dim[a->rank - 2] : 1, .k = a->dim[a->rank - 1], .n = b->rank > 1 ? b->dim[b->rank - 1] : 1,
		.alpha = 1,
	};
	p->p.a_row = p->p.k;
	p->p.a_col = 1;
	p->p.b_row = p->p.c_row = p->p.n;
	p->p.b_col = 1;
	add_batch_axes(a, b, &c->out[0].shape, p);
	join_rows(a, p);
	om_product_choose(p);
	return OM_OK;
}

static uint64_t
product_workspace(const om_op_context *c)
{
	return om_product_workspace(c->state, c->workers);
}

static om_status
matmul_run(om_op_context *c)
{
	om_product_run(c->state, c->in[0].data, c->in[1].data, c->out[0].data, c->scratch, c->pool);
	return OM_OK;
}

/* ---- Gemm. ---- */

struct gemm {
	om_product_batch b;       /* first, for product_workspace() */
	float beta;               /* 0: nothing is added */
	int64_t rows, columns;    /* of the output */
	int64_t row, col;         /* steps of the third input */
};

static om_status
gemm_prepare(om_op_context *c, void **state)
{
	const om_shape *a = &c->in[0].shape, *b = &c->in[1].shape;
	const bool ta = om_attr_int(c->op, "transA") != 0, tb = om_attr_int(c->op, "transB") != 0;
	struct gemm *s = *state;
	const int64_t m = a->dim[ta], k = a->dim[!ta], n = b->dim[!tb];

	s->beta = om_has_in(c, 2) ? om_attr_float(c->op, "beta") : 0;
	s->rows = m;
	s->columns = n;
	if (s->beta != 0) {
		const om_shape *d = &c->in[2].shape;
		const int64_t last = d->rank > 0 ? d->dim[d->rank - 1] : 1;
		s->row = d->rank > 1 && d->dim[0] != 1 ? last : 0;
		s->col = last != 1;
	}
	s->b.p = (om_product){
		.m = m, .n = n, .k = k, .a_row = ta ? 1 : k, .a_col = ta ? m : 1, .b_row = tb ? 1 : n, .b_col = tb ? k : 1,
		.c_row = n, .alpha = om_attr_float(c->op, "alpha"), .add = s->beta != 0,
	};
	om_product_choose(&s->b);
	return OM_OK;
}

static void
start_rows(const struct gemm *s, const float *from, float *to)
{
	for (int64_t i = 0; i < s->rows; i++, from += s->row, to += s->columns) {
		if (s->col)
			for (int64_t j = 0; j < s->columns; j++)
				to[j] = s->beta * from[j];
		else
			for (int64_t j = 0; j < s->columns; j++)
				to[j] = s->beta * from[0];
	}
}

static om_status
gemm_run(om_op_context *c)
{
	const struct gemm *s = c->state;

	if (s->b.p.add)
		start_rows(s, c->in[2].data, c->out[0].data);
	return matmul_run(c);
}

const om_kernel om_kernels_matmul_product[] = {
	{.name = "MatMul", .types = {OF(FLOAT32), OF(FLOAT32)}, .is_fast = true, .state_bytes = sizeof(om_product_batch),
	 .prepare = matmul_prepare, .workspace = product_workspace, .run = matmul_run},
	{.name = "Gemm", .types = {OF(FLOAT32), OF(FLOAT32), OF(FLOAT32)}, .is_fast = true,
	 .state_bytes = sizeof(struct gemm),
	 .prepare = gemm_prepare, .workspace = product_workspace, .run = gemm_run},
	{0}
};
