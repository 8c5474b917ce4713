/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul of a few rows of float16 with a matrix, which is read as it is, instead of a matrix of floats made of it. */
#include <config.h>

#include "base/shape.h"
#include "kernels/cpu/kernels.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/cpu/ranges.h"
#include "ops/family.h"

enum { X, WEIGHTS };

/* The product without addresses. */
static om_half_product
product_of(const om_op_context *c)
{
	const om_shape *x = &c->in[X].shape, *w = &c->in[WEIGHTS].shape;

	if (x->rank < 1 || w->rank != 2 || x->dim[x->rank - 1] != w->dim[0])
		return (om_half_product){0};
	return (om_half_product){.rows = om_shape_span(x, 0, x->rank - 1), .k = w->dim[0], .columns = w->dim[1]};
}

static bool
supports(const om_op_context *c)
{
	const om_half_product p = product_of(c);

	return p.rows > 0 && p.rows <= OM_HALF_ROWS && p.k > 0 && p.columns > 0;
}

static uint64_t
workspace(const om_op_context *c)
{
	const om_half_product p = product_of(c);

	return om_piece_size((uint64_t)(p.rows * p.k) * sizeof(float));
}

static void
run_columns(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const om_half_product *p = arg;
	const int64_t end = to * OM_HALF_COLUMNS;

	(void)worker;
	om_kernels_get()->half->columns(p, from * OM_HALF_COLUMNS, end < p->columns ? end : p->columns);
}

static om_status
run(om_op_context *c)
{
	om_half_product p = product_of(c);

	om_kernels_get()->half->widen(c->scratch, c->in[X].data, p.rows * p.k);
	p.x = c->scratch;
	p.w = c->in[WEIGHTS].data;
	p.y = c->out[0].data;
	om_for_ranges(c, (p.columns + OM_HALF_COLUMNS - 1) / OM_HALF_COLUMNS, p.k * OM_HALF_COLUMNS, run_columns, &p);
	return OM_OK;
}

const om_kernel om_kernels_fast_halves[] = {
	{.name = "MatMul", .is_fast = true, .types = {OF(FLOAT16), OF(FLOAT16)}, .supports = supports, .workspace = workspace, .run = run},
	{0}
};
