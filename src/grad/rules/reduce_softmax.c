/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of operators along axes: reductions, softmax, cumulative sums, TopK. */
#include <config.h>

#include "grad/grad_dsl.h"
#include "grad/grad_builder.h"
#include "ir/query.h"
#include "opdef/op_context.h"

/* ---- Reductions. ---- */

struct reduction {
	om_value *x, *dy;        /* x of the forward op; dy with the reduced axes restored */
	int64_t axis[OM_MAX_RANK];
	int n;
};

static bool
given_axes(om_grad *g, const int64_t **given, size_t *n)
{
	const om_op *op = om_grad_op(g);

	if (!om_grad_has(g, 1)) {
		*given = om_attr_ints(op, "axes", n);
		return true;
	}
	const om_tensor *t = op->in[1]->data;
	if (!t || !t->data || t->type != OM_INT64 || op->in[1]->is_overridable)
		return false;
	*n = (size_t)om_shape_count(&t->shape);
	*given = t->data;
	return !t->splat || *n <= 1;
}

/* Get the axes that the op reduces over, in ascending order. */
static bool
find_axes(om_grad *g, struct reduction *r)
{
	const om_op *op = om_grad_op(g);
	const int rank = op->in[0]->shape.rank;
	bool is_reduced[OM_MAX_RANK] = {false};
	const int64_t *given;
	size_t n;

	r->n = 0;
	if (rank == OM_RANK_UNKNOWN || !given_axes(g, &given, &n)) {
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient requires static axes");
		return false;
	}
	const bool all = n == 0 && !om_attr_int(op, "noop_with_empty_axes");
	for (size_t k = 0; k < n; k++) {
		int a;
		if (om_axis(given[k], rank, &a))
			is_reduced[a] = true;
	}
	for (int d = 0; d < rank; d++)
		if (is_reduced[d] || all)
			r->axis[r->n++] = d;
	return true;
}

/* A value of the shape of the output, with the reduced axes restored with length one. */
static om_value *
with_axes(om_grad *g, const struct reduction *r, om_value *v)
{
	return om_attr_int(om_grad_op(g), "keepdims") ? v : om_emit_unsqueeze(g, v, (size_t)r->n, r->axis);
}

/* False if no gradient is required.  If the op keeps the reduced axes, many gradients do not depend on
 * which axes they are. */
static bool
start(om_grad *g, struct reduction *r, bool wants_axes)
{
	om_grad_set_input_grad(g, 1, NULL);
	r->n = 0;
	if (!om_grad_is_needed(g, 0) || ((wants_axes || !om_attr_int(om_grad_op(g), "keepdims")) && !find_axes(g, r)))
		return false;
	r->x = om_grad_op(g)->in[0];
	r->dy = with_axes(g, r, om_grad_output_grad(g, 0));
	return true;
}

static om_value *
summed(om_grad *g, const struct reduction *r, om_value *v)
{
	return om_emit_reduce(g, "ReduceSum", v, (size_t)r->n, r->axis, true);
}

static om_value *
output(om_grad *g, const struct reduction *r)
{
	return with_axes(g, r, om_grad_forward_output(g, 0));
}

static void
ReduceSum_grad(om_grad *g)
{
	struct reduction r;

	if (start(g, &r, false))
		om_grad_set_input_grad(g, 0, om_emit_expand_as(g, r.dy, r.x));
}

static void
ReduceMean_grad(om_grad *g)
{
	struct reduction r;

	if (start(g, &r, true))
		om_grad_set_input_grad(g, 0, om_emit_expand_as(g, DIV(r.dy, om_emit_count(g, r.dy, r.x, r.n, r.axis)), r.x));
}

static void
ReduceL1_grad(om_grad *g)
{
	struct reduction r;

	if (start(g, &r, false))
		om_grad_set_input_grad(g, 0, MUL(r.dy, DO("Sign", om_grad_forward_input(g, 0))));
}

/* x / |x|; zero for a zero vector. */
static void
ReduceL2_grad(om_grad *g)
{
	struct reduction r;

	if (!start(g, &r, false))
		return;
	om_value *y = output(g, &r);
	om_value *share = WHERE(ABOVE(y, 0), DIV(r.dy, y), ZERO(y));
	om_grad_set_input_grad(g, 0, MUL(om_grad_forward_input(g, 0), share));
}

static void
ReduceSumSquare_grad(om_grad *g)
{
	struct reduction r;

	if (start(g, &r, false))
		om_grad_set_input_grad(g, 0, MUL(om_grad_forward_input(g, 0), TIMES(r.dy, 2)));
}

static void
ReduceLogSum_grad(om_grad *g)
{
	struct reduction r;

	if (start(g, &r, false))
		om_grad_set_input_grad(g, 0, om_emit_expand_as(g, DIV(r.dy, DO("Exp", output(g, &r))), r.x));
}

static void
ReduceLogSumExp_grad(om_grad *g)
{
	struct reduction r;

	if (start(g, &r, false))
		om_grad_set_input_grad(g, 0, MUL(r.dy, DO("Exp", SUB(om_grad_forward_input(g, 0), output(g, &r)))));
}

/* Equal elements share the gradient of their maximum. */
static void
extreme_grad(om_grad *g)
{
	struct reduction r;

	if (!start(g, &r, true))
		return;
	om_value *is_it = AS_NUMBER(om_emit(g, "Equal", om_grad_forward_input(g, 0), output(g, &r)), r.dy);
	om_grad_set_input_grad(g, 0, MUL(DIV(r.dy, summed(g, &r, is_it)), is_it));
}

/* The product of all other elements.  With one zero among the factors it is zero except at that
 * element, with two everywhere: so it is derived from the product of the nonzero elements. */
static void
ReduceProd_grad(om_grad *g)
{
	struct reduction r;

	if (!start(g, &r, true))
		return;
	om_value *x = om_grad_forward_input(g, 0);
	om_value *is_zero = om_emit(g, "Equal", x, ZERO(x));
	om_value *zeros = summed(g, &r, AS_NUMBER(is_zero, x));
	om_value *factors = WHERE(is_zero, om_emit_number(g, x, 1), x);
	om_value *product = MUL(r.dy, om_emit_reduce(g, "ReduceProd", factors, (size_t)r.n, r.axis, true));
	om_value *whole = KEEP(BELOW(zeros, 0.5), product);
	om_value *but_one = KEEP(om_emit(g, "And", ABOVE(zeros, 0.5), BELOW(zeros, 1.5)), product);
	om_grad_set_input_grad(g, 0, WHERE(is_zero, but_one, DIV(whole, factors)));
}

/* ---- Softmax. ---- */

static om_value *
sum_along(om_grad *g, om_value *v)
{
	int axis;

	if (v->shape.rank == OM_RANK_UNKNOWN || !om_axis(om_attr_int(om_grad_op(g), "axis"), v->shape.rank, &axis)) {
		om_grad_fail(g, OM_UNSUPPORTED, "the rank of its input is not known");
		return v;
	}
	return om_emit_reduce(g, "ReduceSum", v, 1, &(int64_t){axis}, true);
}

static void
Softmax_grad(om_grad *g)
{
	om_value *y = om_grad_forward_output(g, 0), *dy = om_grad_output_grad(g, 0);

	om_grad_set_input_grad(g, 0, MUL(y, SUB(dy, sum_along(g, MUL(dy, y)))));
}

static void
LogSoftmax_grad(om_grad *g)
{
	om_value *y = om_grad_forward_output(g, 0), *dy = om_grad_output_grad(g, 0);

	om_grad_set_input_grad(g, 0, SUB(dy, MUL(DO("Exp", y), sum_along(g, dy))));
}

/* ---- Along an axis. ---- */

static om_value *
running(om_grad *g, const char *type, om_value *x, bool exclusive, bool reverse)
{
	return om_emit_attrs(g, type, OM_A(om_attr_make_int(g, "exclusive", exclusive), om_attr_make_int(g, "reverse", reverse)), x,
		om_grad_forward_input(g, 1));
}

/* In reverse direction. */
static void
CumSum_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);

	om_grad_set_input_grad(g, 0, running(g, "CumSum", om_grad_output_grad(g, 0), om_attr_int(op, "exclusive") != 0,
		!om_attr_int(op, "reverse")));
}

/* An element is a factor of all products from its own position on; the derivative of each is the
 * product divided by the element.  From the first zero on all products are zero and do not depend on
 * later elements: that zero gets the sum of the products without it. */
static void
CumProd_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const bool exclusive = om_attr_int(op, "exclusive") != 0, reverse = om_attr_int(op, "reverse") != 0;
	om_value *x = om_grad_forward_input(g, 0), *y = om_grad_forward_output(g, 0), *dy = om_grad_output_grad(g, 0), *one = om_emit_number(g, x, 1);

	om_value *is_zero = om_emit(g, "Equal", x, ZERO(x));
	om_value *zeros = running(g, "CumSum", AS_NUMBER(is_zero, x), false, reverse);
	om_value *is_first = om_emit(g, "And", is_zero, BELOW(zeros, 1.5));
	om_value *without = running(g, "CumProd", WHERE(is_first, one, x), exclusive, reverse);
	om_value *of_first = running(g, "CumSum", MUL(dy, without), exclusive, !reverse);
	om_value *of_others = DIV(running(g, "CumSum", MUL(dy, y), exclusive, !reverse), WHERE(is_zero, one, x));
	om_grad_set_input_grad(g, 0, WHERE(is_first, of_first, KEEP(BELOW(zeros, 0.5), of_others)));
}

/* Indices along an axis are unique. */
static void
TopK_grad(om_grad *g)
{
	om_value *dy = om_grad_output_grad(g, 0);

	if (!om_grad_is_needed(g, 0))
		return;
	om_grad_set_input_grad(g, 0, !dy ? NULL : om_emit_attrs(g, "ScatterElements",
		OM_A(om_attr_make_int(g, "axis", om_attr_int(om_grad_op(g), "axis"))),
		om_emit_zeros_as(g, om_grad_op(g)->in[0]), om_grad_forward_output(g, 1), dy));
}

/* ---- The table. ---- */

const om_gradient om_gradients_reduce_softmax[] = {
	{.name = "ReduceL1", .since = 1, .rule = ReduceL1_grad},
	{.name = "ReduceL2", .since = 1, .rule = ReduceL2_grad},
	{.name = "ReduceLogSum", .since = 1, .rule = ReduceLogSum_grad},
	{.name = "ReduceLogSumExp", .since = 1, .rule = ReduceLogSumExp_grad},
	{.name = "ReduceMax", .since = 1, .rule = extreme_grad},
	{.name = "ReduceMean", .since = 1, .rule = ReduceMean_grad},
	{.name = "ReduceMin", .since = 1, .rule = extreme_grad},
	{.name = "ReduceProd", .since = 1, .rule = ReduceProd_grad},
	{.name = "ReduceSum", .since = 1, .rule = ReduceSum_grad},
	{.name = "ReduceSumSquare", .since = 1, .rule = ReduceSumSquare_grad},
	{.name = "CumSum", .since = 11, .rule = CumSum_grad},
	{.name = "TopK", .since = 10, .rule = TopK_grad},
	{.name = "Softmax", .since = 13, .rule = Softmax_grad, .softmax_output = OM_PROBS},
	{.name = "LogSoftmax", .since = 13, .rule = LogSoftmax_grad, .softmax_output = OM_LOG_PROBS},
	{.name = "Hardmax", .since = 1, .rule = om_grad_set_zero},
	{.name = "CumProd", .since = 26, .rule = CumProd_grad},
	{0}
};
