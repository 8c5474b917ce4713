/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers: parameters updated by their gradients.
 *
 * The inputs are a learning rate, an update count, then a list of parameters, a list of gradients and
 * one or two lists of states; the outputs are the new parameters and the new states.  All inputs of an
 * element are read before its outputs are written. */
#include <config.h>

#include <math.h>

#include "ir/query.h"
#include "ops/family.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"

enum { FIRST = 2, MOST_STATES = 2 };

struct rule {
	double rate, steps;
	double alpha, beta, epsilon, norm, norm_after, decay;
	bool nesterov;
};

/* Update one element: parameter *x, gradient g, states s. */
typedef void step_fn(const struct rule *r, double *x, double g, double *s);

static void
adagrad_step(const struct rule *r, double *x, double g, double *s)
{
	g += r->norm * *x;
	s[0] += g * g;
	*x -= r->rate / (1 + r->steps * r->decay) * g / (sqrt(s[0]) + r->epsilon);
}

static void
adam_step(const struct rule *r, double *x, double g, double *s)
{
	const double rate = r->steps > 0
		? r->rate * sqrt(1 - pow(r->beta, r->steps)) / (1 - pow(r->alpha, r->steps)) : r->rate;

	g += r->norm * *x;
	s[0] = r->alpha * s[0] + (1 - r->alpha) * g;
	s[1] = r->beta * s[1] + (1 - r->beta) * g * g;
	*x = (1 - r->norm_after) * (*x - rate * s[0] / (sqrt(s[1]) + r->epsilon));
}

static void
momentum_step(const struct rule *r, double *x, double g, double *s)
{
	g += r->norm * *x;
	s[0] = r->alpha * s[0] + (r->steps > 0 ? r->beta : 1) * g;
	*x -= r->rate * (r->nesterov ? g + r->alpha * s[0] : s[0]);
}

/* The number of parameters, each with `states` states. */
static uint32_t
parameters(const om_op_context *c, uint32_t states)
{
	return (c->op->nin - FIRST) / (2 + states);
}

static om_status
train_infer(om_op_context *c, uint32_t states)
{
	const uint32_t n = parameters(c, states);

	if (c->op->nin != FIRST + n * (2 + states) || c->op->nout != n * (1 + states))
		return om_op_fail(c->session, OM_INVALID, c->op, "%u inputs do not match %u outputs",
			c->op->nin, c->op->nout);
	for (uint32_t k = 0; k < c->op->nout; k++) {
		const uint32_t in = FIRST + (k < n ? k : k + n);
		c->out[k].type = c->in[in].type;
		c->out[k].shape = c->in[in].shape;
	}
	for (uint32_t k = FIRST; k < c->op->nin; k++) {
		const om_tensor *x = &c->in[FIRST + (k - FIRST) % n], *t = &c->in[k];
		if (!om_has_in(c, k) || (om_shape_is_known(&x->shape) && om_shape_is_known(&t->shape)
		    && !om_shape_equal(&x->shape, &t->shape)))
			return om_op_fail(c->session, OM_SHAPE, c->op,
				"input %u does not have the type and shape of its parameter", k);
		OM_TRY(om_must_be_of(c, t->type, OF_WIDE_FLOATS));
		if (x->type != OM_UNDEFINED)
			OM_TRY(om_must_be_of(c, t->type, OM_TYPES(x->type)));
	}
	return OM_OK;
}

/* All but rate and steps, which are inputs. */
static om_status
rule_prepare(om_op_context *c, void **state)
{
	*(struct rule *)*state = (struct rule){.alpha = om_attr_float(c->op, "alpha"), .beta = om_attr_float(c->op, "beta"),
		.epsilon = om_attr_float(c->op, "epsilon"), .norm = om_attr_float(c->op, "norm_coefficient"),
		.norm_after = om_attr_float(c->op, "norm_coefficient_post"), .decay = om_attr_float(c->op, "decay_factor"),
		.nesterov = om_attr_is(c->op, "mode", "nesterov")};
	return OM_OK;
}

static om_status
rule_of(const om_op_context *c, struct rule *r)
{
	*r = *(const struct rule *)c->state;
	if (!om_in_scalar(c, 0, &r->rate) || !om_in_scalar(c, 1, &r->steps))
		return om_op_fail(c->session, OM_SHAPE, c->op, "R and T must be scalars");
	return OM_OK;
}

static om_status
train(om_op_context *c, uint32_t states, step_fn *step)
{
	const uint32_t n = parameters(c, states);
	struct rule r;

	OM_TRY(rule_of(c, &r));
	for (uint32_t p = 0; p < n; p++) {
		const om_dtype t = c->in[FIRST + p].type;
		for (uint32_t k = 0; k < 2 + states; k++)
			if ((t != OM_FLOAT32 && t != OM_FLOAT64) || c->in[FIRST + p + k * n].type != t)
				return om_no_kernel(c, c->in[FIRST + p + k * n].type);
		for (int64_t i = 0; i < om_shape_count(&c->in[FIRST + p].shape); i++) {
			double x = om_get(t, c->in[FIRST + p].data, i), s[MOST_STATES] = {0};
			for (uint32_t k = 0; k < states; k++)
				s[k] = om_get(t, c->in[FIRST + p + (2 + k) * n].data, i);
			step(&r, &x, om_get(t, c->in[FIRST + p + n].data, i), s);
			if (om_has_out(c, p))
				om_put(t, c->out[p].data, i, x);
			for (uint32_t k = 0; k < states; k++)
				if (om_has_out(c, p + (1 + k) * n))
					om_put(t, c->out[p + (1 + k) * n].data, i, s[k]);
		}
	}
	return OM_OK;
}

/* In place over any input of the same parameter. */
static bool
train_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	const uint32_t n = c->op->nin - FIRST - c->op->nout;

	return in >= FIRST && (in - FIRST) % n == out % n && c->in[in].type == c->out[out].type && om_is_sole_use(c, in);
}

static void
train_cost(const om_op_context *c, om_cost *cost)
{
	cost->flops = 0;
	for (uint32_t k = 0; k < c->op->nout; k++)
		cost->flops += 8 * (double)om_shape_count(&c->out[k].shape);
}

#define TRAINER(name, states)                                                  \
	static om_status                                                       \
	name##_infer(om_op_context *c)                                               \
	{                                                                      \
		return train_infer(c, states);                                 \
	}                                                                      \
	static om_status                                                       \
	name##_cpu(om_op_context *c)                                                 \
	{                                                                      \
		return train(c, states, name##_step);                          \
	}

TRAINER(adagrad, 1)
TRAINER(adam, 2)
TRAINER(momentum, 1)

static const om_attr_spec adagrad_attrs[] = {
	{"decay_factor", OM_ATTR_FLOAT},
	{"epsilon", OM_ATTR_FLOAT, .f = 1e-6f},
	{"norm_coefficient", OM_ATTR_FLOAT},
	{0}
};

static const om_attr_spec adam_attrs[] = {
	{"alpha", OM_ATTR_FLOAT, .f = 0.9f},
	{"beta", OM_ATTR_FLOAT, .f = 0.999f},
	{"epsilon", OM_ATTR_FLOAT, .f = 1e-6f},
	{"norm_coefficient", OM_ATTR_FLOAT},
	{"norm_coefficient_post", OM_ATTR_FLOAT},
	{0}
};

static const om_attr_spec momentum_attrs[] = {
	{"alpha", OM_ATTR_FLOAT, .required = true},
	{"beta", OM_ATTR_FLOAT, .required = true},
	{"mode", OM_ATTR_STRING, .required = true},
	{"norm_coefficient", OM_ATTR_FLOAT, .required = true},
	{0}
};

#define TRAIN(label, id, text)                                        \
	{.domain = "ai.onnx.preview.training", .name = label, .brief = text, .since = 1, \
	 .min_in = 3, .max_in = OM_VARIADIC, .min_out = 1, .max_out = OM_VARIADIC, .attrs = id##_attrs, \
	 .infer = id##_infer, .inplace = train_reuse, .cpu = id##_cpu, .cost = train_cost, \
	 .input_types = {OF_WIDE_FLOATS, OF(INT64), OF_WIDE_FLOATS}}

const om_opdef om_ops_optimizer_ops[] = {
	TRAIN("Adagrad", adagrad, "Adagrad optimizer step"),
	TRAIN("Adam", adam, "Adam optimizer step"),
	TRAIN("Momentum", momentum, "SGD optimizer step with momentum"),
	{0}
};

#define STEPS(label, id)                                                       \
	{.domain = "ai.onnx.preview.training", .name = label, .state_bytes = sizeof(struct rule), \
	 .prepare = rule_prepare, .run = id##_cpu}

const om_kernel om_kernels_optimizer_ops[] = {
	STEPS("Adagrad", adagrad),
	STEPS("Adam", adam),
	STEPS("Momentum", momentum),
	{0}
};
