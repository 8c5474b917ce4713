/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <math.h>

#include "ir/query.h"
#include "ops/cpu/activation.h"

/* The names, with the defaults of their parameters. */
static const struct {
	const char *name;
	om_epilogue e;
} known[] = {
	{"", {OM_ACT_NONE, 0, 0}},
	{"Relu", {OM_ACT_RELU, 0, 0}},
	{"Clip", {OM_ACT_CLIP, -INFINITY, INFINITY}},
	{"HardSwish", {OM_ACT_HARD_SWISH, 0, 0}},
	{"HardSigmoid", {OM_ACT_HARD_SIGMOID, 0.2f, 0.5f}},
	{"LeakyRelu", {OM_ACT_LEAKY_RELU, 0.01f, 0}},
	{"Sigmoid", {OM_ACT_SIGMOID, 0, 0}},
	{"Tanh", {OM_ACT_TANH, 0, 0}},
	{"Silu", {OM_ACT_SILU, 0, 0}},
	{"Gelu", {OM_ACT_GELU, 0, 0}},
	{"GeluTanh", {OM_ACT_GELU_TANH, 0, 0}},
	{"Elu", {OM_ACT_ELU, 1, 0}},
};

/* Attributes of an activation. */
struct names {
	const char *activation, *alpha, *beta;
};

static om_status
read_activation(const om_op_context *c, const struct names *n, om_epilogue *e)
{
	for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
		if (!om_attr_is(c->op, n->activation, known[k].name))
			continue;
		*e = known[k].e;
		if (om_attr_has(c->op, n->alpha))
			e->alpha = om_attr_float(c->op, n->alpha);
		if (om_attr_has(c->op, n->beta))
			e->beta = om_attr_float(c->op, n->beta);
		return OM_OK;
	}
	const om_string name = om_attr_string(c->op, n->activation);
	return om_op_fail(c->session, OM_INVALID, c->op, "%s is %.*s, which is unknown", n->activation, (int)(name.size < 40
		? name.size : 40), name.data);
}

om_status
om_epilogue_read(const om_op_context *c, om_epilogue *e)
{
	return read_activation(c, &(struct names){"activation", "alpha", "beta"}, e);
}

om_status
om_epilogue_read_expansion(const om_op_context *c, om_epilogue *e)
{
	return read_activation(c, &(struct names){"expansion_activation", "expansion_alpha", "expansion_beta"}, e);
}

static double
between(double x, double low, double high)
{
	return x < low ? low : x > high ? high : x;
}

double
om_epilogue_value(const om_epilogue *e, double x)
{
	const double alpha = (double)e->alpha, beta = (double)e->beta;

	switch (e->act) {
	case OM_ACT_RELU: return x < 0 ? 0 : x;
	case OM_ACT_CLIP: return between(x, alpha, beta);
	case OM_ACT_HARD_SWISH: return x * between(x / 6 + 0.5, 0, 1);
	case OM_ACT_HARD_SIGMOID: return between(alpha * x + beta, 0, 1);
	case OM_ACT_LEAKY_RELU: return x < 0 ? alpha * x : x;
	case OM_ACT_SIGMOID: return 1 / (1 + exp(-x));
	case OM_ACT_TANH: return tanh(x);
	case OM_ACT_SILU: return x / (1 + exp(-x));
	case OM_ACT_GELU: return 0.5 * x * (1 + erf(x * sqrt(0.5)));
	case OM_ACT_GELU_TANH: return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
	case OM_ACT_ELU: return x < 0 ? alpha * expm1(x) : x;
	default: return x;
	}
}
