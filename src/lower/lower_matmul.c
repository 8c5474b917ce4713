/* SPDX-License-Identifier: Apache-2.0 */
/* Products with constant matrices: see the table of layout.c.
 *
 * They need no form, as their last axis is that of the columns; they are lowered along with convolutions because
 * they share the packed format and the epilogue. */
#include <config.h>

#include "base/shape.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "lower/choices.h"
#include "lower/layout.h"

static om_status
pack_matrix(struct om_layout *l, om_op *op, bool transposed, float alpha, om_value **packed)
{
	om_op *pack = om_lower_op(l, OM_CPU_DOMAIN, "PackMatrix", 1, 1, &op->in[1]);

	om_op_add_int(l->p, pack, "transB", transposed);
	om_op_add_float(l->p, pack, "alpha", alpha);
	return om_lower_pack(l, op, pack, packed);
}

/* The size of blocks that was chosen for the shapes of the product; else the usual one. */
static void
choose_block(struct om_layout *l, om_op *op, om_op *product, int64_t columns)
{
	const char *list = l->options.choices;
	const om_shape *x = &op->in[0]->shape;
	const int64_t depth = x->dim[x->rank - 1];
	om_choice c;

	if (!list || !*list || !depth)
		return;
	const char *key = om_product_key(om_shape_count(x) / depth, depth, columns, l->mem);
	if (!om_choices_find(list, key, &c))
		return;
	if (!c.algorithm || strcmp(c.algorithm, "gemm") != 0) {
		om_warn(l->session, "the choice for %s cannot be used here: the usual size of blocks is used", key);
		return;
	}
	if (c.block != 100)
		om_op_add_int(l->p, product, "block", c.block);
	l->n.chosen++;
}

/* The product defines the output of `op`, in the same order of axes. */
static om_status
new_product(struct om_layout *l, om_op *op, om_value *packed, om_value *bias, int64_t columns)
{
	om_value *in[] = {op->in[0], packed, bias};
	om_op *product = om_lower_op(l, OM_CPU_DOMAIN, "MatMul", 1, bias ? 3 : 2, in);
	om_form y;

	om_op_add_int(l->p, product, "columns", columns);
	choose_block(l, op, product, columns);
	OM_TRY(om_lower_insert(l, op, product, om_printf(l->mem, "%s_product", op->out[0]->name), &y.value));
	for (int k = 0; k < op->out[0]->shape.rank; k++)
		y.axis[k] = k;
	return om_lower_define(l, op, 0, &y);
}

static bool
is_packable(const om_op *op)
{
	return om_lower_is_float(op->in[0]) && om_lower_is_float(op->in[1]) && om_lower_is_float(op->out[0])
	    && om_lower_is_const(op->in[1]) && op->in[1]->shape.rank == 2 && op->in[0]->shape.rank >= 2
	    && om_shape_count(&op->out[0]->shape) > 0 && om_shape_count(&op->in[1]->shape) > 0;
}

om_status
om_lower_matmul(struct om_layout *l, om_op *op, bool *done)
{
	om_value *packed;

	if (!is_packable(op) || om_lower_is_const(op->in[0]))
		return OM_OK;
	OM_TRY(pack_matrix(l, op, false, 1, &packed));
	OM_TRY(new_product(l, op, packed, NULL, op->in[1]->shape.dim[1]));
	om_lower_done(l, op, &l->n.products);
	*done = true;
	return OM_OK;
}

/* A bias per column, as a list; NULL in `*bias` if there is none.  False: another kind of addend. */
static om_status
read_bias(struct om_layout *l, om_op *op, int64_t columns, om_value **bias, bool *ok)
{
	om_value *c = op->nin > 2 ? op->in[2] : NULL;

	*bias = c;
	*ok = true;
	if (!c)
		return OM_OK;
	*ok = om_lower_is_float(c) && om_shape_count(&c->shape) == columns && c->shape.dim[c->shape.rank - 1] == columns
	    && om_attr_float(op, "beta") == 1;
	if (!*ok || c->shape.rank == 1)
		return OM_OK;
	om_value *in[] = {c, om_lower_ints(l, op->block, om_printf(l->mem, "%s_shape", c->name), 1, &columns)};
	return om_lower_insert(l, op, om_lower_op(l, "", "Reshape", 14, 2, in), om_printf(l->mem, "%s_list", c->name), bias);
}

om_status
om_lower_gemm(struct om_layout *l, om_op *op, bool *done)
{
	om_value *packed, *bias;
	bool ok;

	if (!is_packable(op) || op->version < 7 || om_attr_int(op, "transA") || om_lower_is_const(op->in[0]))
		return OM_OK;
	const bool transposed = om_attr_int(op, "transB");
	const int64_t columns = op->in[1]->shape.dim[transposed ? 0 : 1];
	OM_TRY(read_bias(l, op, columns, &bias, &ok));
	if (!ok)
		return OM_OK;
	OM_TRY(pack_matrix(l, op, transposed, om_attr_float(op, "alpha"), &packed));
	OM_TRY(new_product(l, op, packed, bias, columns));
	om_lower_done(l, op, &l->n.products);
	*done = true;
	return OM_OK;
}
