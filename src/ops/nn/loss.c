/* SPDX-License-Identifier: Apache-2.0 */
/* Classification losses: negated log-probabilities of the target classes. */
#include <config.h>

#include <math.h>

#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "opdef/slice.h"
#include "opdef/op_context.h"
#include "ops/nn/loss.h"
#include "ops/tensor/index.h"
#include "opdef/numbers.h"

enum { X = OM_LOSS_X, TARGET = OM_LOSS_TARGET, WEIGHT = OM_LOSS_WEIGHT };

static om_status
check_classes(const om_op_context *c)
{
	const om_shape *x = &c->in[X].shape, *t = &c->in[TARGET].shape;

	if (x->rank >= 0 && x->rank < 2)
		return om_wrong(c, "the input has no class axis");
	if (x->rank >= 0 && t->rank >= 0 && t->rank != x->rank - 1)
		return om_wrong(c, "the target must have one axis less than the input");
	for (int d = 0; d < t->rank && x->rank >= 0; d++)
		if (!om_dims_agree(t->dim[d], x->dim[d ? d + 1 : 0]))
			return om_wrong(c, "the shape of the target does not match the input");
	if (om_has_in(c, WEIGHT) && c->in[WEIGHT].shape.rank >= 0 && (c->in[WEIGHT].shape.rank != 1
	    || (x->rank >= 0 && !om_dims_agree(c->in[WEIGHT].shape.dim[0], x->dim[1]))))
		return om_wrong(c, "weight must have one element for each class");
	return OM_OK;
}

static om_status
loss_infer(om_op_context *c)
{
	const om_shape *x = &c->in[X].shape;

	OM_TRY(check_classes(c));
	c->out[0].type = c->in[X].type;
	if (!om_attr_is(c->op, "reduction", "none")) {
		if (!om_attr_is(c->op, "reduction", "mean") && !om_attr_is(c->op, "reduction", "sum"))
			return om_op_fail(c->session, OM_INVALID, c->op, "reduction must be none, mean or sum");
		c->out[0].shape = om_shape_of(0, NULL);
	} else if (x->rank >= 0) {
		c->out[0].shape.rank = x->rank - 1;
		for (int d = 0; d < x->rank - 1; d++)
			om_copy_dim(&c->out[0].shape, d, x, d ? d + 1 : 0);
	} else {
		c->out[0].shape = c->in[TARGET].shape;
	}
	if (om_has_out(c, 1)) {
		c->out[1].type = c->in[X].type;
		c->out[1].shape = *x;
	}
	return OM_OK;
}

/* Along any axis but that of the classes, which the output does not have. */
static bool
loss_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part p = s->out[out];
	const om_part image = om_part_along(&p, p.axis + (p.axis > 0));

	if (out != 0)
		return false;
	s->in[X] = image;
	s->in[TARGET] = p;
	if (om_has_out(c, 1))
		s->out[1] = image;
	return true;
}

/* Losses that are added. */
static bool
loss_partial(const om_op_context *c, uint32_t in, om_slice *s)
{
	const om_part p = s->in[in];

	if (!om_attr_is(c->op, "reduction", "sum") || om_has_out(c, 1) || in > TARGET || (in == X && p.axis == 1))
		return false;
	s->in[X] = om_part_along(&p, in == X || p.axis == 0 ? p.axis : p.axis + 1);
	s->in[TARGET] = om_part_along(&p, in == X && p.axis > 0 ? p.axis - 1 : p.axis);
	return true;
}

/* The log-probability of `class` at position `i` of the inner axes. */
typedef double value_fn(const om_op_context *c, const struct om_loss *l, int64_t n, int64_t i, int64_t class);

static double
at(const om_tensor *t, int64_t k)
{
	return om_get(t->type, t->data, k);
}

static double
given(const om_op_context *c, const struct om_loss *l, int64_t n, int64_t i, int64_t class)
{
	return at(&c->in[X], (n * l->classes + class) * l->inner + i);
}

/* The logarithm of the sum of exponentials over the classes. */
static double
log_sum(const om_op_context *c, const struct om_loss *l, int64_t n, int64_t i)
{
	double most = -INFINITY, sum = 0;

	for (int64_t k = 0; k < l->classes; k++)
		most = fmax(most, given(c, l, n, i, k));
	for (int64_t k = 0; k < l->classes; k++)
		sum += exp(given(c, l, n, i, k) - most);
	return most + log(sum);
}

static double
log_share(const om_op_context *c, const struct om_loss *l, int64_t n, int64_t i, int64_t class)
{
	return given(c, l, n, i, class) - log_sum(c, l, n, i);
}

static om_status
read_class(const om_op_context *c, const struct om_loss *l, int64_t k, int64_t *class)
{
	const om_tensor *t = &c->in[TARGET];

	*class = t->type == OM_INT32 ? ((const int32_t *)t->data)[k] : ((const int64_t *)t->data)[k];
	if ((*class < 0 || *class >= l->classes) && !(l->has_ignored && *class == l->ignored))
		return om_op_fail(c->session, OM_RUN, c->op,
			"class %lld is out of range for %lld classes", (long long)*class,
			(long long)l->classes);
	return OM_OK;
}

static om_status
reduce(om_op_context *c, const struct om_loss *l, value_fn *value)
{
	const bool none = l->is_none, mean = l->is_mean;
	double sum = 0, weights = 0;

	for (int64_t n = 0; n < l->batch; n++)
		for (int64_t i = 0; i < l->inner; i++) {
			int64_t class;
			OM_TRY(read_class(c, l, n * l->inner + i, &class));
			const bool skip = l->has_ignored && class == l->ignored;
			const double w = skip ? 0 : om_has_in(c, WEIGHT) ? at(&c->in[WEIGHT], class) : 1;
			const double v = skip ? 0 : -value(c, l, n, i, class) * w;
			if (none)
				om_put(c->out[0].type, c->out[0].data, n * l->inner + i, v);
			sum += v;
			weights += w;
		}
	if (!none)
		om_put(c->out[0].type, c->out[0].data, 0, mean ? sum / weights : sum);
	return OM_OK;
}

struct om_loss
om_loss_of(const om_op_context *c)
{
	const om_shape *x = &c->in[X].shape;

	return (struct om_loss){x->dim[0], x->dim[1], om_shape_span(x, 2, x->rank),
		om_attr_has(c->op, "ignore_index"), om_attr_int(c->op, "ignore_index"),
		om_attr_is(c->op, "reduction", "none"), om_attr_is(c->op, "reduction", "mean")};
}

static om_status
loss_prepare(om_op_context *c, void **state)
{
	const om_dtype type = c->in[X].type;

	if (type != OM_FLOAT32 && type != OM_FLOAT64 && !om_is_half(type))
		return om_no_kernel(c, type);
	if (om_has_in(c, WEIGHT) && c->in[WEIGHT].type != type)
		return om_wrong(c, "weight and input differ in element type");
	OM_TRY(om_index_type(c, TARGET));
	*(struct om_loss *)*state = om_loss_of(c);
	return OM_OK;
}

static om_status
likelihood_cpu(om_op_context *c)
{
	return reduce(c, c->state, given);
}

static om_status
entropy_cpu(om_op_context *c)
{
	const struct om_loss l = *(const struct om_loss *)c->state;

	if (om_has_out(c, 1))
		for (int64_t n = 0; n < l.batch; n++)
			for (int64_t i = 0; i < l.inner; i++) {
				const double sum = log_sum(c, &l, n, i);
				for (int64_t k = 0; k < l.classes; k++)
					om_put(c->out[1].type, c->out[1].data, (n * l.classes + k) * l.inner + i,
						given(c, &l, n, i, k) - sum);
			}
	return om_has_out(c, 0) ? reduce(c, &l, log_share) : OM_OK;
}

static void
entropy_cost(const om_op_context *c, om_cost *cost)
{
	cost->flops = 8 * (double)om_shape_count(&c->in[X].shape);
}

static const om_attr_spec loss_attrs[] = {
	{"ignore_index", OM_ATTR_INT},
	{"reduction", OM_ATTR_STRING, .s = "mean"},
	{0}
};

const om_opdef om_ops_loss[] = {
	{.name = "NegativeLogLikelihoodLoss", .brief = "negative log-likelihood loss", .since = 12,
	 .min_in = 2, .max_in = 3, .min_out = 1, .max_out = 1, .attrs = loss_attrs,
	 .infer = loss_infer, .slice = loss_slice, .partial = loss_partial, .cpu = likelihood_cpu,
	 .input_types = {OF_FLOATS, OF_INDICES, LIKE(0)}},
	{.name = "SoftmaxCrossEntropyLoss", .brief = "softmax followed by cross entropy",
	 .since = 12, .min_in = 2, .max_in = 3, .min_out = 1, .max_out = 2, .attrs = loss_attrs,
	 .infer = loss_infer, .slice = loss_slice, .partial = loss_partial, .cpu = entropy_cpu, .cost = entropy_cost,
	 .input_types = {OF_FLOATS, OF_INDICES, LIKE(0)}},
	{0}
};

#define KERNEL(label, runs)                                                    \
	{.name = label, .state_bytes = sizeof(struct om_loss), .prepare = loss_prepare, .run = runs}

const om_kernel om_kernels_loss[] = {
	KERNEL("NegativeLogLikelihoodLoss", likelihood_cpu),
	KERNEL("SoftmaxCrossEntropyLoss", entropy_cpu),
	{0}
};
