/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of the losses of classification.
 *
 * Both select, at each position, the log-probability of its label: the gradient scatters -s along the
 * class axis, where s is the factor of the position in the loss: its weight, zero if the label is
 * ignored, divided by the denominator of the mean.
 */
#include <config.h>

#include "grad/grad_dsl.h"
#include "grad/grad_builder.h"
#include "ir/query.h"

struct places {
	om_value *index;         /* labels as indices, with the class axis */
	om_value *s;             /* the gradient of the loss of each position, with that axis */
};

/* A loss of labels: input 0 has classes on axis 1; labels; optional weights. */
static struct places
places(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const int64_t classes = 1;
	om_value *dy = om_grad_output_grad(g, 0), *weight = NULL, *counts = NULL;
	om_value *labels = om_emit_cast(g, om_grad_forward_input(g, 1), OM_INT64);

	if (om_attr_has(op, "ignore_index")) {
		om_value *is_label = DO("Not", om_emit(g, "Equal", labels, om_emit_int64(g, om_attr_int(op, "ignore_index"))));
		labels = WHERE(is_label, labels, om_emit_int64(g, 0));
		counts = AS_NUMBER(is_label, dy);
	}
	if (om_grad_has(g, 2)) {
		weight = om_emit_attrs(g, "Gather", OM_A(om_attr_make_int(g, "axis", 0)), om_grad_forward_input(g, 2), labels);
		counts = counts ? MUL(counts, weight) : weight;
	}
	if (om_attr_is(op, "reduction", "mean"))
		dy = DIV(dy, counts ? om_emit_attrs(g, "ReduceSum", OM_A(om_attr_make_int(g, "keepdims", 0)), counts)
			: om_emit_count(g, dy, op->in[1], -1, NULL));
	om_value *s = counts ? MUL(counts, dy) : om_emit_expand_as(g, dy, op->in[1]);
	return (struct places){om_emit_unsqueeze(g, labels, 1, &classes), om_emit_unsqueeze(g, s, 1, &classes)};
}

static om_value *
scattered(om_grad *g, om_value *to, const struct places *p)
{
	return om_emit_attrs(g, "ScatterElements", OM_A(om_attr_make_int(g, "axis", 1), om_attr_make_string(g, "reduction", "add")),
		to, p->index, DO("Neg", p->s));
}

static void
NegativeLogLikelihoodLoss_grad(om_grad *g)
{
	om_grad_set_input_grad(g, 2, NULL);  /* ONNX does not differentiate with respect to weights */
	if (!om_grad_is_needed(g, 0))
		return;
	const struct places p = places(g);
	om_grad_set_input_grad(g, 0, scattered(g, om_emit_zeros_as(g, om_grad_op(g)->in[0]), &p));
}

/* The loss of the log-probabilities, and the gradient of the log-probabilities themselves, through
 * LogSoftmax. */
static void
SoftmaxCrossEntropyLoss_grad(om_grad *g)
{
	const int64_t classes = 1;
	om_value *by_shares = om_grad_output_grad(g, 1), *share, *dx = NULL;

	om_grad_set_input_grad(g, 2, NULL);
	if (!om_grad_is_needed(g, 0))
		return;
	share = DO("Exp", om_grad_forward_output(g, 1));
	if (om_grad_output_grad(g, 0)) {
		const struct places p = places(g);
		dx = scattered(g, MUL(share, p.s), &p);
	}
	if (by_shares) {
		om_value *sum = om_emit_reduce(g, "ReduceSum", by_shares, 1, &classes, true);
		om_value *more = SUB(by_shares, MUL(share, sum));
		dx = dx ? ADD(dx, more) : more;
	}
	om_grad_set_input_grad(g, 0, dx);
}

/* ---- The table. ---- */

const om_gradient om_gradients_losses[] = {
	{.name = "NegativeLogLikelihoodLoss", .since = 12, .rule = NegativeLogLikelihoodLoss_grad},
	{.name = "SoftmaxCrossEntropyLoss", .since = 12, .rule = SoftmaxCrossEntropyLoss_grad},
	{0}
};
