/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for devices of matrix products. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "base/strided_copy.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "ops/device/launches.h"
#include "ops/device/product_batches.h"
#include "ops/family.h"

enum { TILE = 64, MOST_BLOCKS = 65535 };

/* y [m, n] = alpha a b + beta c, for pairs of batch indices; strides as in product.omk. */
struct product {
	int64_t m, n, k;
	int64_t ar, ac, br, bc, cr, cc;
	om_product_batches batch;
	float alpha, beta;
	bool has_c;
};

static bool
fits(const struct product *p)
{
	return (p->m + TILE - 1) / TILE <= MOST_BLOCKS && p->batch.pairs <= MOST_BLOCKS && (p->n + TILE - 1) / TILE <= INT32_MAX;
}

bool
om_product_batches_of(const om_op_context *c, om_product_batches *p)
{
	const om_shape *const shape[2] = {&c->in[0].shape, &c->in[1].shape};
	const int most = shape[0]->rank > shape[1]->rank ? shape[0]->rank : shape[1]->rank, lead = most > 2 ? most - 2 : 0;
	int64_t dim[OM_MAX_RANK], step[2][OM_MAX_RANK] = {{0}};
	om_launch_walk w;

	for (int d = 0; d < lead; d++)
		dim[d] = 1;
	for (uint32_t k = 0; k < 2; k++) {
		int64_t dense[OM_MAX_RANK];
		om_strides(shape[k], dense);
		for (int d = 0; d < shape[k]->rank - 2; d++) {
			const int to = lead - (shape[k]->rank - 2) + d;
			dim[to] = shape[k]->dim[d] != 1 ? shape[k]->dim[d] : dim[to];
			step[k][to] = shape[k]->dim[d] != 1 ? dense[d] : 0;
		}
	}
	if (!om_launch_walk_of(&w, lead, dim, 2, step))
		return false;
	*p = (om_product_batches){w.n, w.dim[5], {w.step[0][4], w.step[0][5]}, {w.step[1][4], w.step[1][5]}};
	return w.n == w.dim[4] * w.dim[5];
}

/* A vector is a row on the left, a column on the right. */
static bool
matmul_of(const om_op_context *c, struct product *p)
{
	const om_shape *a = &c->in[0].shape, *b = &c->in[1].shape;

	*p = (struct product){0};
	if (a->rank < 1 || b->rank < 1 || !om_product_batches_of(c, &p->batch))
		return false;
	p->k = a->dim[a->rank - 1];
	p->m = a->rank > 1 ? a->dim[a->rank - 2] : 1;
	p->n = b->rank > 1 ? b->dim[b->rank - 1] : 1;
	p->ar = p->k;
	p->ac = p->bc = 1;
	p->br = p->n;
	p->alpha = 1;
	return fits(p);
}

static bool
gemm_of(const om_op_context *c, struct product *p)
{
	const bool ta = om_attr_int(c->op, "transA") != 0, tb = om_attr_int(c->op, "transB") != 0;
	const om_shape *a = &c->in[0].shape, *b = &c->in[1].shape, *bias = &c->in[2].shape;

	*p = (struct product){.m = a->dim[ta], .n = b->dim[!tb], .k = a->dim[!ta], .batch = {1, 1, {0}, {0}}};
	p->ar = ta ? 1 : p->k;
	p->ac = ta ? p->m : 1;
	p->br = tb ? 1 : p->n;
	p->bc = tb ? p->k : 1;
	p->alpha = om_attr_float(c->op, "alpha");
	p->beta = om_attr_float(c->op, "beta");
	p->has_c = c->op->nin > 2 && om_has_in(c, 2) && p->beta != 0;
	if (p->has_c) {
		const int64_t columns = bias->rank > 0 ? bias->dim[bias->rank - 1] : 1;
		p->cc = columns > 1;
		p->cr = bias->rank > 1 && bias->dim[0] > 1 ? columns : 0;
	}
	return fits(p);
}

static bool
has_one_type(const om_op_context *c)
{
	return c->in[0].type == c->in[1].type && (c->op->nin < 3 || !om_has_in(c, 2) || c->in[2].type == c->in[0].type);
}

static bool
matmul_supports(const om_op_context *c)
{
	struct product p;

	return has_one_type(c) && matmul_of(c, &p);
}

static bool
gemm_supports(const om_op_context *c)
{
	struct product p;

	return has_one_type(c) && gemm_of(c, &p);
}

static void
add_product(const om_op_context *c, om_launch_list *to, const struct product *p)
{
	om_launch *l = om_launch_typed_grid(to, "product", "product", om_kernel_type(c->in[0].type), (om_grid){.threads = 256,
		.blocks = {(uint32_t)((p->n + TILE - 1) / TILE), (uint32_t)((p->m + TILE - 1) / TILE), (uint32_t)p->batch.pairs}});
	const int64_t numbers[] = {p->m, p->n, p->k, p->ar, p->ac, p->br, p->bc, p->cr, p->cc, p->batch.batches,
		p->batch.a[0], p->batch.a[1], p->batch.b[0], p->batch.b[1]};

	om_launch_in(l, 0);
	om_launch_in(l, 1);
	om_launch_in(l, p->has_c ? 2 : 0);
	om_launch_out(l, 0);
	for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
		om_launch_i64(l, numbers[k]);
	om_launch_f32(l, p->alpha);
	om_launch_f32(l, p->beta);
	om_launch_i32(l, p->has_c);
}

static om_status
matmul_launches(const om_op_context *c, om_launch_list *to)
{
	struct product p;

	matmul_of(c, &p);
	add_product(c, to, &p);
	return OM_OK;
}

static om_status
gemm_launches(const om_op_context *c, om_launch_list *to)
{
	struct product p;

	gemm_of(c, &p);
	add_product(c, to, &p);
	return OM_OK;
}

const om_device_kernel om_device_kernels_device_product[] = {
	{.name = "MatMul", .types = {OF_DEVICE_FLOATS}, .supports = matmul_supports, .launches = matmul_launches},
	{.name = "Gemm", .since = 7, .types = {OF_DEVICE_FLOATS}, .supports = gemm_supports, .launches = gemm_launches},
	{0}
};
