/* SPDX-License-Identifier: Apache-2.0 */
/* merge-products: rows that are multiplied by the same matrix, each alone, are multiplied at once.
 *
 * In an unrolled loop, each step multiplies a few rows by a matrix, and the products of all steps are concatenated.  No other
 * step waits for them, so that they need not be computed before the last one: then the matrix is read once instead of once per
 * step, and the matrices that the steps do need remain in the cache.
 *
 * In exchange the rows live until then: only where they take a small part of the bytes of the matrix, and no more than the
 * products. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "ir/edit.h"
#include "ir/equal.h"
#include "ir/query.h"
#include "onnxmem/pass.h"
#include "opdef/rewrite_internal.h"

enum {
	MOST_ROWS = 8,            /* of a product that waits for its matrix: more would be computed meanwhile */
	SHARE = 4,                /* columns of the matrix for each row that is kept */
};

static bool
is_view_of(const om_value *v, const char *type)
{
	return strcmp(v->def->type, type) == 0 && *v->def->domain == '\0' && v->nuse == 1;
}

/* The product that `v` has the elements of, in the same order, if there is no other reader on the way. */
static const om_op *
product_of(const om_value *v)
{
	while (v->def && (is_view_of(v, "Unsqueeze") || is_view_of(v, "Squeeze") || is_view_of(v, "Reshape")))
		v = v->def->in[0];
	const om_op *op = v->def;
	if (!op || v->nuse != 1 || *op->domain != '\0')
		return NULL;
	if (strcmp(op->type, "MatMul") == 0)
		return op;
	return strcmp(op->type, "Gemm") == 0 && op->version >= 7 && !om_attr_int(op, "transA") ? op : NULL;
}

/* Does a product of a few rows read a constant matrix?  An addend is added to each row. */
static bool
has_few_rows(const om_op *op)
{
	const om_value *x = op->in[0], *w = op->in[1], *c = om_op_input(op, 2);

	return w->is_const && w->shape.rank == 2 && x->shape.rank == 2 && !x->is_const && om_shape_count(&x->shape) > 0
	    && x->shape.dim[0] <= MOST_ROWS && x->shape.dim[1] <= op->out[0]->shape.dim[1]
	    && (!c || c->shape.rank < 2 || c->shape.dim[0] == 1);
}

static bool
is_like(const om_op *a, const om_op *b)
{
	return a->opdef == b->opdef && a->version == b->version && a->block == b->block && a->phase == b->phase
	    && a->in[1] == b->in[1] && om_op_input(a, 2) == om_op_input(b, 2) && om_op_attrs_equal(a, b);
}

/* Do the elements of the inputs follow one another in the output of a concatenation, whose shape is known? */
static bool
is_in_order(const om_op *concat)
{
	const om_shape *y = &concat->out[0]->shape;
	const int64_t axis = om_attr_int(concat, "axis");

	return om_shape_is_known(y) && om_shape_span(y, 0, (int)(axis < 0 ? axis + y->rank : axis)) == 1;
}

/* Are all inputs products of a few rows and the same matrix, and the rows few in all? */
static bool
is_mergeable(const om_op *concat)
{
	const om_op *first = concat->nin > 1 ? product_of(concat->in[0]) : NULL;
	int64_t rows = 0;

	if (!first || first->block != concat->block || !has_few_rows(first) || !is_in_order(concat))
		return false;
	for (uint32_t k = 0; k < concat->nin; k++) {
		const om_op *op = product_of(concat->in[k]);
		if (!op || !is_like(op, first) || !has_few_rows(op))
			return false;
		rows += op->in[0]->shape.dim[0];
	}
	return rows <= first->out[0]->shape.dim[1] / SHARE;
}

static om_value *
merged(om_rewriter *w, const om_match *m)
{
	const om_op *concat = m->value[0]->def;

	if (!is_mergeable(concat))
		return NULL;
	const om_op *product = product_of(concat->in[0]);
	om_value **x = OM_NEWN(om_rewrite_mem(w), om_value *, concat->nin);
	for (uint32_t k = 0; k < concat->nin; k++)
		x[k] = product_of(concat->in[k])->in[0];
	om_value *rows = om_rewrite_op(w, concat, "Concat", concat->nin, x);
	om_op_add_int(om_rewrite_prog(w), rows->def, "axis", 0);
	om_value *y = om_rewrite_op(w, product, NULL, product->nin, (om_value *[]){rows, product->in[1], om_op_input(product, 2)});
	const om_shape *s = &concat->out[0]->shape;
	if (s->rank == 2 && s->dim[1] == product->out[0]->shape.dim[1])
		return y;
	om_value *shape = om_rewrite_ints(w, om_printf(om_rewrite_mem(w), "%s_shape", concat->out[0]->name), (size_t)s->rank, s->dim);
	return om_rewrite_op_of(w, concat, "", "Reshape", 14, 2, (om_value *[]){y, shape});
}

static const om_pattern concat = {.kind = OM_MATCH_OP, .type = "Concat", .since = 4};
static const om_rule rules[] = {{"products", &concat, merged}};

static om_status
run(om_run *r, om_prog *p)
{
	uint64_t applied;

	OM_TRY(om_rewrite(r->session, p, rules, 1, &applied));
	om_count(r, "products", applied);
	return OM_OK;
}

static const om_pass_counter counters[] = {
	{"products", "products of rows that were concatenated"},
	{0}
};

OM_PASS(
	.name = "merge-products",
	.brief = "multiply rows by the same matrix at once",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES,
	.counters = counters,
	.by_sizes = true,
	.run = run)
