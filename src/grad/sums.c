/* Gradients of reductions. */
#include <config.h>

#include "grad/makers.h"

/* The axes that an op reduces over, ascending; -1 for all; false where they are not
 * known. */
static bool
reduced(om_grad *g, int64_t *axis, int *n)
{
	const om_op *op = om_grad_op(g);
	const int rank = op->in[0]->shape.rank;
	bool is_reduced[OM_MAX_RANK] = {false};
	const int64_t *given = NULL;
	size_t ngiven = 0;

	*n = -1;
	if (om_grad_has(g, 1)) {
		const om_tensor *t = op->in[1]->data;
		if (!t || !t->data || t->type != OM_INT64 || op->in[1]->is_overridable)
			return false;
		ngiven = (size_t)om_shape_count(&t->shape);
		given = t->data;
		if (t->splat && ngiven > 1)
			return false;
	} else {
		given = om_attr_ints(op, "axes", &ngiven);
	}
	if (ngiven == 0) {
		if (om_attr_int(op, "noop_with_empty_axes"))
			*n = 0;
		return true;
	}
	if (rank == OM_RANK_UNKNOWN)
		return false;
	for (size_t k = 0; k < ngiven; k++) {
		int a;
		if (om_axis(given[k], rank, &a))
			is_reduced[a] = true;
	}
	*n = 0;
	for (int d = 0; d < rank; d++)
		if (is_reduced[d])
			axis[(*n)++] = d;
	return true;
}

/* `v`, of the shape of the output, with the axes of length one that were dropped. */
static om_value *
with_axes(om_grad *g, om_value *v, int n, const int64_t *axis)
{
	const om_op *op = om_grad_op(g);

	if (n <= 0 || om_attr_int(op, "keepdims"))
		return v;
	return om_g_unsqueeze(g, v, (size_t)n, axis);
}

static bool
find_axes(om_grad *g, int64_t *axis, int *n)
{
	if (reduced(g, axis, n))
		return true;
	om_grad_fail(g, OM_UNSUPPORTED, "its axes are not known before the run");
	return false;
}

static void
spread(om_grad *g, bool is_mean)
{
	int64_t axis[OM_MAX_RANK];
	om_value *dy = om_grad_of(g, 0), *x = om_grad_op(g)->in[0];
	int n;

	om_grad_give(g, 1, NULL);
	if (!om_grad_wants(g, 0) || !find_axes(g, axis, &n))
		return;
	if (is_mean)
		dy = om_g(g, "Div", dy, om_g_count(g, dy, x, n, n < 0 ? NULL : axis));
	om_grad_give(g, 0, om_g_expand_as(g, with_axes(g, dy, n, axis), x));
}

void
om_grad_ReduceSum(om_grad *g)
{
	spread(g, false);
}

void
om_grad_ReduceMean(om_grad *g)
{
	spread(g, true);
}
