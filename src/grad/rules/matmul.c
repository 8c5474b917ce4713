/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of matrix products. */
#include <config.h>

#include "grad/gradients.h"
#include "grad/grad_builder.h"
#include "ir/query.h"

/* `x` with its last two axes exchanged. */
static om_value *
swapped(om_grad *g, om_value *x)
{
	int64_t perm[OM_MAX_RANK];
	const int rank = x->shape.rank;

	for (int d = 0; d < rank; d++)
		perm[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
	return om_emit_transpose(g, x, (size_t)(rank > 0 ? rank : 0), perm);
}

/* All rows of a stack of matrices, as one matrix. */
static om_value *
flat(om_grad *g, om_value *x)
{
	const int64_t dims[] = {-1, x->shape.dim[x->shape.rank - 1]};

	return x->shape.rank == 2 ? x : om_emit(g, "Reshape", x, om_emit_list(g, 2, dims));
}

static bool
has_known_rows(const om_value *x)
{
	return x->shape.rank == 2 || x->shape.dim[x->shape.rank - 1] > 0;
}

/* Rows times a single matrix, as in most layers: without transposed copies, and without a sum over a
 * stack of products. */
static bool
times_matrix(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	om_value *dy = om_grad_output_grad(g, 0);

	if (op->in[0]->shape.rank < 2 || op->in[1]->shape.rank != 2 || op->out[0]->shape.rank < 2
	    || !has_known_rows(op->in[0]) || !has_known_rows(op->out[0]))
		return false;
	dy = flat(g, dy);
	if (om_grad_is_needed(g, 0)) {
		om_value *da = om_emit_attrs(g, "Gemm", OM_A(om_attr_make_int(g, "transB", 1)), dy, om_grad_forward_input(g, 1));
		om_grad_set_input_grad(g, 0, om_emit_reshape_as(g, da, op->in[0]));
	}
	if (om_grad_is_needed(g, 1))
		om_grad_set_input_grad(g, 1, om_emit_attrs(g, "Gemm", OM_A(om_attr_make_int(g, "transA", 1)),
			flat(g, om_grad_forward_input(g, 0)), dy));
	return true;
}

static void
give_left(om_grad *g, om_value *dy, int ra, int rb)
{
	const int64_t first = 0, row = rb > 2 ? rb - 2 : 0;
	om_value *b = om_grad_forward_input(g, 1);

	b = rb == 1 ? om_emit_unsqueeze(g, b, 1, &first) : swapped(g, b);
	om_value *da = om_emit(g, "MatMul", dy, b);
	om_grad_set_broadcast_grad(g, 0, ra == 1 ? om_emit_squeeze(g, da, 1, &row) : da);
}

static void
give_right(om_grad *g, om_value *dy, int ra, int rb)
{
	const int64_t second = 1, column = dy->shape.rank - 1;
	om_value *a = om_grad_forward_input(g, 0);

	a = ra == 1 ? om_emit_unsqueeze(g, a, 1, &second) : swapped(g, a);
	om_value *db = om_emit(g, "MatMul", a, dy);
	om_grad_set_broadcast_grad(g, 1, rb == 1 ? om_emit_squeeze(g, db, 1, &column) : db);
}

/* A vector operand is a matrix with one row or one column, which the result does not have. */
static void
MatMul_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const int ra = op->in[0]->shape.rank, rb = op->in[1]->shape.rank;
	om_value *dy = om_grad_output_grad(g, 0);

	if (ra == OM_RANK_UNKNOWN || rb == OM_RANK_UNKNOWN) {
		om_grad_fail(g, OM_UNSUPPORTED, "the rank of an input is not known");
		return;
	}
	if (times_matrix(g))
		return;
	const int64_t last = op->out[0]->shape.rank, before = last - 1;
	if (rb == 1)
		dy = om_emit_unsqueeze(g, dy, 1, &last);
	if (ra == 1)
		dy = om_emit_unsqueeze(g, dy, 1, rb == 1 ? &last : &before);
	if (om_grad_is_needed(g, 0))
		give_left(g, dy, ra, rb);
	if (om_grad_is_needed(g, 1))
		give_right(g, dy, ra, rb);
}

/* With A' and B' as they are multiplied: alpha dy B'^T, alpha A'^T dy, transposed if the operand was
 * transposed. */
static void
Gemm_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const bool ta = om_attr_int(op, "transA") != 0, tb = om_attr_int(op, "transB") != 0;
	om_value *dy = om_grad_output_grad(g, 0);
	const om_attr alpha = om_attr_make_float(g, "alpha", om_attr_float(op, "alpha"));

	if (om_grad_is_needed(g, 0) && ta)
		om_grad_set_input_grad(g, 0, om_emit_attrs(g, "Gemm", OM_A(alpha, om_attr_make_int(g, "transA", tb), om_attr_make_int(g, "transB", 1)),
			om_grad_forward_input(g, 1), dy));
	else if (om_grad_is_needed(g, 0))
		om_grad_set_input_grad(g, 0, om_emit_attrs(g, "Gemm", OM_A(alpha, om_attr_make_int(g, "transB", !tb)), dy, om_grad_forward_input(g, 1)));
	if (om_grad_is_needed(g, 1) && tb)
		om_grad_set_input_grad(g, 1, om_emit_attrs(g, "Gemm", OM_A(alpha, om_attr_make_int(g, "transA", 1), om_attr_make_int(g, "transB", ta)),
			dy, om_grad_forward_input(g, 0)));
	else if (om_grad_is_needed(g, 1))
		om_grad_set_input_grad(g, 1, om_emit_attrs(g, "Gemm", OM_A(alpha, om_attr_make_int(g, "transA", !ta)), om_grad_forward_input(g, 0), dy));
	if (om_grad_is_needed(g, 2)) {
		const double beta = (double)om_attr_float(op, "beta");
		om_value *dc = om_emit_sum_to(g, dy, op->in[2]);
		om_grad_set_input_grad(g, 2, beta == 1 ? dc : om_emit_scalar(g, "Mul", dc, beta));
	}
}

/* alpha A' B', where A' and B' are A and B, optionally transposed. */
static void
FusedMatMul_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const bool ta = om_attr_int(op, "transA") != 0, tb = om_attr_int(op, "transB") != 0;
	const double alpha = (double)om_attr_float(op, "alpha");
	om_value *dy = om_grad_output_grad(g, 0);

	if (op->in[0]->shape.rank < 2 || op->in[1]->shape.rank < 2 || om_attr_int(op, "transBatchA") != 0
	    || om_attr_int(op, "transBatchB") != 0) {
		om_grad_fail(g, OM_UNSUPPORTED, "a gradient is available only for matrices in batch order");
		return;
	}
	if (alpha != 1)
		dy = om_emit_scalar(g, "Mul", dy, alpha);
	if (om_grad_is_needed(g, 0)) {
		om_value *b = tb ? om_grad_forward_input(g, 1) : swapped(g, om_grad_forward_input(g, 1)), *da = om_emit(g, "MatMul", dy, b);
		om_grad_set_broadcast_grad(g, 0, ta ? swapped(g, da) : da);
	}
	if (om_grad_is_needed(g, 1)) {
		om_value *a = ta ? om_grad_forward_input(g, 0) : swapped(g, om_grad_forward_input(g, 0)), *db = om_emit(g, "MatMul", a, dy);
		om_grad_set_broadcast_grad(g, 1, tb ? swapped(g, db) : db);
	}
}

/* ---- The table. ---- */

const om_gradient om_gradients_matmul[] = {
	{.name = "MatMul", .since = 1, .rule = MatMul_grad},
	{.name = "Gemm", .since = 1, .rule = Gemm_grad},
	{.domain = "com.microsoft", .name = "FusedMatMul", .since = 1, .rule = FusedMatMul_grad},
	{.domain = "com.microsoft", .name = "TransposeMatMul", .since = 1, .rule = FusedMatMul_grad},
	{0}
};
