/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <float.h>

#include "opdef/fused_activation.h"
#include "ir/query.h"

static const struct om_fused_activation known[] = {
	{.type = "Relu"}, {.type = "Sigmoid"}, {.type = "Tanh"}, {.type = "Softplus"}, {.type = "Softsign"},
	{.type = "HardSwish"},  /* always 1/6 and 1/2 */
	{"LeakyRelu", 1, {"alpha"}, {0.01f}},
	{"Elu", 1, {"alpha"}, {1}},
	{"HardSigmoid", 2, {"alpha", "beta"}, {0.2f, 0.5f}},
	{"Clip", 2, {NULL}, {-FLT_MAX, FLT_MAX}},
};

static float
number(const om_op *op, int k, float otherwise)
{
	static const char *const names[] = {"activation_alpha", "activation_beta"};
	size_t n = 0;
	const float *list = om_attr_floats(op, "activation_params", &n);

	if ((size_t)k < n)
		return list[k];
	return om_attr_has(op, names[k]) ? om_attr_float(op, names[k]) : otherwise;
}

bool
om_fused_activation_read(const om_op *op, struct om_fused_activation *out)
{
	*out = (struct om_fused_activation){0};
	if (!om_attr_has(op, "activation") || om_attr_string(op, "activation").size == 0)
		return false;
	for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
		if (om_attr_is(op, "activation", known[k].type))
			*out = known[k];
	for (int k = 0; k < out->n; k++)
		out->number[k] = number(op, k, out->number[k]);
	return true;
}
