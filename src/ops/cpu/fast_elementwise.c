/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for float32 of the elementwise operators: maps of one stage, or of a stage per input. */
#include <config.h>

#include <float.h>
#include <string.h>

#include "ir/query.h"
#include "opdef/columns.h"
#include "opdef/op_context.h"
#include "ops/cpu/tiled_map.h"
#include "ops/family.h"
#include "ops/math/broadcast_loops.h"

enum { MOST_INPUTS = 32 };        /* of a variadic operator */

/* Operators that are one function; its parameters are attributes. */
#define FUNCTIONS(_)                                                           \
	_(Abs, ABS, NULL, NULL)                                                \
	_(Add, ADD, NULL, NULL)                                                \
	_(Ceil, CEIL, NULL, NULL)                                              \
	_(Celu, CELU, "alpha", NULL)                                           \
	_(Cos, COS, NULL, NULL)                                                \
	_(Div, DIV, NULL, NULL)                                                \
	_(Elu, ELU, "alpha", NULL)                                             \
	_(Erf, ERF, NULL, NULL)                                                \
	_(Exp, EXP, NULL, NULL)                                                \
	_(Floor, FLOOR, NULL, NULL)                                            \
	_(HardSigmoid, HARD_SIGMOID, "alpha", "beta")                          \
	_(HardSwish, HARD_SWISH, NULL, NULL)                                   \
	_(LeakyRelu, LEAKY_RELU, "alpha", NULL)                                \
	_(Log, LOG, NULL, NULL)                                                \
	_(Mish, MISH, NULL, NULL)                                              \
	_(Mul, MUL, NULL, NULL)                                                \
	_(Neg, NEG, NULL, NULL)                                                \
	_(Reciprocal, RECIPROCAL, NULL, NULL)                                  \
	_(Relu, RELU, NULL, NULL)                                              \
	_(Round, ROUND, NULL, NULL)                                            \
	_(Selu, SELU, "alpha", "gamma")                                        \
	_(Sigmoid, SIGMOID, NULL, NULL)                                        \
	_(Sign, SIGN, NULL, NULL)                                              \
	_(Sin, SIN, NULL, NULL)                                                \
	_(Softplus, SOFTPLUS, NULL, NULL)                                      \
	_(Softsign, SOFTSIGN, NULL, NULL)                                      \
	_(Sqrt, SQRT, NULL, NULL)                                              \
	_(Sub, SUB, NULL, NULL)                                                \
	_(Swish, SWISH, "alpha", NULL)                                         \
	_(Tanh, TANH, NULL, NULL)                                              \
	_(ThresholdedRelu, THRESHOLDED_RELU, "alpha", NULL)

struct function {
	const char *name;
	enum om_map_kind kind;
	const char *a, *b;
};

static const struct function functions[] = {
#define FUNCTION(label, what, a_name, b_name) {#label, OM_MAP_##what, a_name, b_name},
	FUNCTIONS(FUNCTION)
#undef FUNCTION
	{0}
};

static om_tiled_map *
new_map(om_op_context *c, uint32_t nin, uint32_t nstage)
{
	om_tiled_map *m = om_tiled_map_new(c, nin, nstage);

	for (uint32_t k = 0; k < nin; k++) {
		const om_shape s = om_aligned(c, k);
		om_tiled_map_input(c, m, k, &s);
	}
	return m;
}

/* A stage of the first input, or of the first two. */
static om_status
prepare_one(om_op_context *c, void **state, uint32_t nin, enum om_map_kind kind, float a, float b)
{
	om_tiled_map *m = *state = new_map(c, nin, 1);

	*om_tiled_map_stages(m) = (om_stage){.kind = kind, .y = nin - 1, .p = {a, b}};
	om_tiled_map_finish(c, m);
	return OM_OK;
}

static om_status
function_prepare(om_op_context *c, void **state)
{
	const struct function *f = functions;

	while (strcmp(f->name, c->op->opdef->name) != 0)
		f++;
	return prepare_one(c, state, c->op->nin, f->kind, f->a ? om_attr_float(c->op, f->a) : 0,
		f->b ? om_attr_float(c->op, f->b) : 0);
}

static om_status
gelu_prepare(om_op_context *c, void **state)
{
	const om_string how = om_attr_string(c->op, "approximate");
	const bool is_tanh = how.size && how.data[0] == 't';

	return prepare_one(c, state, 1, is_tanh ? OM_MAP_GELU_TANH : OM_MAP_GELU, 0, 0);
}

static om_status
prelu_prepare(om_op_context *c, void **state)
{
	return prepare_one(c, state, 2, OM_MAP_PRELU, 0, 0);
}

/* ---- Pow with one exponent, which may change. ---- */

static const struct power {
	double exponent;
	enum om_map_kind kind;
} powers[] = {
	{1, OM_MAP_IDENTITY}, {2, OM_MAP_SQUARE}, {3, OM_MAP_CUBE}, {-1, OM_MAP_RECIPROCAL}, {0.5, OM_MAP_POW_HALF},
	{-0.5, OM_MAP_POW_MINUS_HALF}, {0, OM_MAP_POW}
};

static bool
pow_supports(const om_op_context *c)
{
	return om_is_one(&c->in[1]) && om_is_whole(&c->in[0].shape, &c->out[0].shape);
}

static om_status
pow_prepare(om_op_context *c, void **state)
{
	return prepare_one(c, state, 1, OM_MAP_POW, 0, 0);
}

static om_status
pow_run(om_op_context *c)
{
	om_stage *s = om_tiled_map_stages(c->state);
	const struct power *p = powers;
	double exponent = 0;

	om_in_scalar(c, 1, &exponent);
	while (p->exponent != 0 && p->exponent != exponent)
		p++;
	s->kind = p->kind;
	s->p[0] = (float)exponent;
	return om_tiled_map_run(c);
}

/* ---- Clip: the bounds are attributes, or inputs that may change. ---- */

static om_status
old_clip_prepare(om_op_context *c, void **state)
{
	return prepare_one(c, state, 1, OM_MAP_CLIP, om_attr_float(c->op, "min"), om_attr_float(c->op, "max"));
}

static om_status
clip_prepare(om_op_context *c, void **state)
{
	return prepare_one(c, state, 1, OM_MAP_CLIP, -FLT_MAX, FLT_MAX);
}

static om_status
clip_run(om_op_context *c)
{
	float *p = om_tiled_map_stages(c->state)->p;

	for (uint32_t k = 1; k < c->op->nin; k++)
		if (om_has_in(c, k))
			p[k - 1] = *(const float *)c->in[k].data;
	return om_tiled_map_run(c);
}

/* ---- Variadic operators. ---- */

static bool
variadic_supports(const om_op_context *c)
{
	return c->op->nin <= MOST_INPUTS;
}

/* Of one input: itself.  Of n: n - 1 stages, and one for the mean. */
static om_status
prepare_all(om_op_context *c, void **state, enum om_map_kind kind, bool is_mean)
{
	const uint32_t n = c->op->nin, joins = n - 1, nstage = n == 1 ? 1 : joins + is_mean;
	om_tiled_map *m = *state = new_map(c, n, nstage);
	om_stage *s = om_tiled_map_stages(m);

	for (uint32_t j = 0; j < joins; j++)
		s[j] = (om_stage){.kind = kind, .x = j ? n + j - 1 : 0, .y = j + 1};
	if (nstage > joins)
		s[joins] = (om_stage){.kind = OM_MAP_DIVIDED, .x = joins ? n + joins - 1 : 0,
			.y = joins ? n + joins - 1 : 0, .p = {(float)n}};
	om_tiled_map_finish(c, m);
	return OM_OK;
}

static om_status
max_prepare(om_op_context *c, void **state)
{
	return prepare_all(c, state, OM_MAP_MAX, false);
}

static om_status
min_prepare(om_op_context *c, void **state)
{
	return prepare_all(c, state, OM_MAP_MIN, false);
}

static om_status
sum_prepare(om_op_context *c, void **state)
{
	return prepare_all(c, state, OM_MAP_ADD, false);
}

static om_status
mean_prepare(om_op_context *c, void **state)
{
	return prepare_all(c, state, OM_MAP_ADD, true);
}

/* ---- The kernels. ---- */

#define KERNEL(label, prepares, ...)                                           \
	{.name = label, .is_fast = true, .types = {OF(FLOAT32), LIKE(0)}, .prepare = prepares,  \
	 .workspace = om_tiled_map_workspace, .run = om_tiled_map_run, __VA_ARGS__},
#define FUNCTION(label, what, a_name, b_name) KERNEL(#label, function_prepare, .since = 0)
#define VARIADIC(label, prepares) KERNEL(label, prepares, .supports = variadic_supports)

const om_kernel om_kernels_fast_elementwise[] = {
	FUNCTIONS(FUNCTION)
	KERNEL("Gelu", gelu_prepare, .since = 20)
	KERNEL("PRelu", prelu_prepare, .since = 7)
	KERNEL("Clip", old_clip_prepare, .until = 10)
	{.name = "Clip", .since = 11, .is_fast = true, .types = {OF(FLOAT32)}, .prepare = clip_prepare, .workspace = om_tiled_map_workspace,
	 .run = clip_run},
	{.name = "Pow", .is_fast = true, .types = {OF(FLOAT32), OF_NUMBERS}, .supports = pow_supports, .prepare = pow_prepare,
	 .workspace = om_tiled_map_workspace, .run = pow_run},
	VARIADIC("Max", max_prepare)
	VARIADIC("Min", min_prepare)
	VARIADIC("Sum", sum_prepare)
	VARIADIC("Mean", mean_prepare)
	{0}
};
