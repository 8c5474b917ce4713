/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for devices of elementwise operators. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "ir/query.h"
#include "kernels/cpu/elementwise.h"
#include "ops/device/launches.h"
#include "opdef/op_context.h"
#include "ops/family.h"
#include "ops/math/broadcast_loops.h"

/* ---- What map.omk, integer.omk and compare.omk compute. ---- */

enum {
	LAST_OF_CPU = OM_NMAP - 1,
#define MAP1(name, value) MAP_##name,
#define MAP2(name, value) MAP_##name,
#include "kernels/gpu/maps.def"
#undef MAP1
#undef MAP2
};

/* In the order of the sources. */
enum { INT_ABS, INT_NEG, INT_SIGN, INT_NOT, INT_RELU };
enum { INTEGER_ADD, INTEGER_SUB, INTEGER_MUL, INTEGER_MAX, INTEGER_MIN, INTEGER_AND, INTEGER_OR, INTEGER_XOR };
enum { IS_EQUAL, IS_LESS, IS_LESS_OR_EQUAL, IS_GREATER, IS_GREATER_OR_EQUAL, IS_AND, IS_OR, IS_DIFFERENT };
enum { TEST_NOT, TEST_NAN, TEST_INFINITE };

struct function {
	const char *name;        /* of the operator; NULL ends a table */
	int kind;
	const char *a, *b;       /* attributes that are its parameters */
};

static const struct function *
function_of(const struct function *f, const om_op_context *c)
{
	while (f->name && strcmp(f->name, c->op->opdef->name) != 0)
		f++;
	return f;
}

/* ---- Of one operand. ---- */

static const struct function unary[] = {
	{"Abs", OM_MAP_ABS}, {"Acos", MAP_ACOS}, {"Acosh", MAP_ACOSH}, {"Asin", MAP_ASIN}, {"Asinh", MAP_ASINH},
	{"Atan", MAP_ATAN}, {"Atanh", MAP_ATANH}, {"Ceil", OM_MAP_CEIL}, {"Celu", OM_MAP_CELU, "alpha"}, {"Cos", OM_MAP_COS},
	{"Cosh", MAP_COSH}, {"Elu", OM_MAP_ELU, "alpha"}, {"Erf", OM_MAP_ERF}, {"Exp", OM_MAP_EXP}, {"Floor", OM_MAP_FLOOR},
	{"Gelu", OM_MAP_GELU}, {"HardSigmoid", OM_MAP_HARD_SIGMOID, "alpha", "beta"}, {"HardSwish", OM_MAP_HARD_SWISH},
	{"LeakyRelu", OM_MAP_LEAKY_RELU, "alpha"}, {"Log", OM_MAP_LOG}, {"Mish", OM_MAP_MISH}, {"Neg", OM_MAP_NEG},
	{"Reciprocal", OM_MAP_RECIPROCAL}, {"Relu", OM_MAP_RELU}, {"Round", OM_MAP_ROUND}, {"Selu", OM_MAP_SELU, "alpha", "gamma"},
	{"Shrink", MAP_SHRINK, "lambd", "bias"}, {"Sigmoid", OM_MAP_SIGMOID}, {"Sign", OM_MAP_SIGN}, {"Sin", OM_MAP_SIN},
	{"Sinh", MAP_SINH}, {"Softplus", OM_MAP_SOFTPLUS}, {"Softsign", OM_MAP_SOFTSIGN}, {"Sqrt", OM_MAP_SQRT},
	{"Swish", OM_MAP_SWISH, "alpha"}, {"Tan", MAP_TAN}, {"Tanh", OM_MAP_TANH},
	{"ThresholdedRelu", OM_MAP_THRESHOLDED_RELU, "alpha"},
	{0}
};

static const struct function integer_unary[] = {
	{"Abs", INT_ABS}, {"BitwiseNot", INT_NOT}, {"Neg", INT_NEG}, {"Relu", INT_RELU}, {"Sign", INT_SIGN}, {0}
};

static float
parameter(const om_op_context *c, const char *name)
{
	return name ? om_attr_float(c->op, name) : 0;
}

static void
add_map1(const om_op_context *c, om_launch_list *to, om_operand from, int kind, float a, float b)
{
	const int64_t n = om_shape_count(&c->out[0].shape);
	om_launch *l = om_launch_typed(to, "map", "map1", om_kernel_type(c->out[0].type), n);

	om_launch_part(l, OM_ARG_IN, from, 0, 0, 0);
	om_launch_out(l, 0);
	om_launch_i64(l, n);
	om_launch_i32(l, kind);
	om_launch_f32(l, a);
	om_launch_f32(l, b);
}

static om_status
unary_launches(const om_op_context *c, om_launch_list *to)
{
	const struct function *f = function_of(unary, c);
	int kind = f->kind;

	if (kind == OM_MAP_GELU && om_attr_is(c->op, "approximate", "tanh"))
		kind = OM_MAP_GELU_TANH;
	add_map1(c, to, OM_OPERAND_IN, kind, parameter(c, f->a), parameter(c, f->b));
	return OM_OK;
}

static om_status
integer_unary_launches(const om_op_context *c, om_launch_list *to)
{
	const int64_t n = om_shape_count(&c->out[0].shape);
	om_launch *l = om_launch_typed(to, "integer", "integer1", om_kernel_type(c->out[0].type), n);

	om_launch_in(l, 0);
	om_launch_out(l, 0);
	om_launch_i64(l, n);
	om_launch_i32(l, function_of(integer_unary, c)->kind);
	return OM_OK;
}

static om_status
test_launches(const om_op_context *c, om_launch_list *to)
{
	static const struct function tests[] = {{"Not", TEST_NOT}, {"IsNaN", TEST_NAN}, {"IsInf", TEST_INFINITE}, {0}};
	const int64_t n = om_shape_count(&c->out[0].shape);
	const int kind = function_of(tests, c)->kind;
	om_launch *l = om_launch_typed(to, "compare", "test", om_kernel_type(c->in[0].type), n);
	int sign = 0;

	if (kind == TEST_INFINITE)
		sign = (om_attr_int(c->op, "detect_positive") ? 1 : 0) | (om_attr_int(c->op, "detect_negative") ? 2 : 0);
	om_launch_in(l, 0);
	om_launch_out(l, 0);
	om_launch_i64(l, n);
	om_launch_i32(l, kind);
	om_launch_i32(l, sign);
	return OM_OK;
}

/* ---- Of two operands and more. ---- */

static const struct function binary[] = {
	{"Add", OM_MAP_ADD}, {"Div", OM_MAP_DIV}, {"Mod", MAP_FMOD}, {"Mul", OM_MAP_MUL}, {"Pow", MAP_POWER},
	{"PRelu", OM_MAP_PRELU}, {"Sub", OM_MAP_SUB}, {"Max", OM_MAP_MAX}, {"Mean", OM_MAP_ADD}, {"Min", OM_MAP_MIN},
	{"Sum", OM_MAP_ADD}, {0}
};
static const struct function integer_binary[] = {
	{"Add", INTEGER_ADD}, {"BitwiseAnd", INTEGER_AND}, {"BitwiseOr", INTEGER_OR}, {"BitwiseXor", INTEGER_XOR}, {"Max", INTEGER_MAX},
	{"Min", INTEGER_MIN}, {"Mul", INTEGER_MUL}, {"Sub", INTEGER_SUB}, {0}
};
static const struct function comparisons[] = {
	{"And", IS_AND}, {"Equal", IS_EQUAL}, {"Greater", IS_GREATER}, {"GreaterOrEqual", IS_GREATER_OR_EQUAL}, {"Less", IS_LESS},
	{"LessOrEqual", IS_LESS_OR_EQUAL}, {"Or", IS_OR}, {"Xor", IS_DIFFERENT}, {0}
};

/* The walk for operand k and, from the second on, what has been computed. */
static bool
walk_of(const om_op_context *c, uint32_t k, om_launch_walk *w)
{
	const om_shape y = om_aligned(c, k);

	if (k == 1) {
		const om_shape x = om_aligned(c, 0);
		return om_launch_broadcast(w, &c->out[0].shape, 2, (const om_shape *const[]){&x, &y});
	}
	return om_launch_broadcast(w, &c->out[0].shape, 2, (const om_shape *const[]){&c->out[0].shape, &y});
}

static bool
binary_supports(const om_op_context *c)
{
	om_launch_walk w;

	for (uint32_t k = 1; k < c->op->nin; k++)
		if (!walk_of(c, k, &w))
			return false;
	return c->op->nin > 0;
}

/* Types are equal: of PRelu as of version 7, whose slope is broadcast as other operands are. */
static bool
typed_supports(const om_op_context *c)
{
	return c->in[0].type == c->in[1].type && (strcmp(c->op->opdef->name, "PRelu") != 0 || c->op->version >= 7)
	    && binary_supports(c);
}

/* The remainder with the sign of the divisor is left to the host. */
static bool
mod_supports(const om_op_context *c)
{
	return om_attr_int(c->op, "fmod") != 0 && binary_supports(c);
}

static void
add_binary(const om_op_context *c, om_launch_list *to, const char *unit, const char *kernel, int kind, uint32_t k)
{
	om_launch_walk w;

	walk_of(c, k, &w);
	om_launch *l = om_launch_typed(to, unit, kernel, om_kernel_type(c->in[0].type), w.n);
	if (k == 1)
		om_launch_in(l, 0);
	else
		om_launch_part(l, OM_ARG_IN, OM_OPERAND_OUT, 0, 0, 0);
	om_launch_in(l, k);
	om_launch_out(l, 0);
	om_launch_i64(l, w.n);
	om_launch_i32(l, kind);
	om_launch_walk_dims(l, &w);
	om_launch_walk_steps(l, &w, 0);
	om_launch_walk_steps(l, &w, 1);
}

static om_status
binary_launches(const om_op_context *c, om_launch_list *to)
{
	const int kind = function_of(binary, c)->kind;
	const uint32_t n = c->op->nin;

	if (n == 1)
		add_map1(c, to, OM_OPERAND_IN, OM_MAP_IDENTITY, 0, 0);
	for (uint32_t k = 1; k < n; k++)
		add_binary(c, to, "map", "map2", kind, k);
	if (n > 1 && strcmp(c->op->opdef->name, "Mean") == 0)
		add_map1(c, to, OM_OPERAND_OUT, OM_MAP_DIVIDED, (float)n, 0);
	return OM_OK;
}

static om_status
integer_binary_launches(const om_op_context *c, om_launch_list *to)
{
	add_binary(c, to, "integer", "integer2", function_of(integer_binary, c)->kind, 1);
	for (uint32_t k = 2; k < c->op->nin; k++)
		add_binary(c, to, "integer", "integer2", function_of(integer_binary, c)->kind, k);
	return OM_OK;
}

static om_status
compare_launches(const om_op_context *c, om_launch_list *to)
{
	add_binary(c, to, "compare", "compare", function_of(comparisons, c)->kind, 1);
	return OM_OK;
}

static bool
integer_supports(const om_op_context *c)
{
	return c->op->nin > 1 && binary_supports(c);
}

/* Only of two operands is each element read once. */
static bool
binary_inplace(const om_op_context *c, uint32_t out, uint32_t in)
{
	return c->op->nin <= 2 && om_device_inplace(c, out, in);
}

/* ---- Where, Clip, Cast. ---- */

static bool
where_walk(const om_op_context *c, om_launch_walk *w)
{
	return om_launch_broadcast(w, &c->out[0].shape, 3,
		(const om_shape *const[]){&c->in[0].shape, &c->in[1].shape, &c->in[2].shape});
}

static bool
where_supports(const om_op_context *c)
{
	om_launch_walk w;

	return om_kernel_moved_type(c->out[0].type) && where_walk(c, &w);
}

static om_status
where_launches(const om_op_context *c, om_launch_list *to)
{
	om_launch_walk w;

	where_walk(c, &w);
	om_launch *l = om_launch_typed(to, "move", "choose", om_kernel_moved_type(c->out[0].type), w.n);
	for (uint32_t k = 0; k < 3; k++)
		om_launch_in(l, k);
	om_launch_out(l, 0);
	om_launch_i64(l, w.n);
	om_launch_walk_dims(l, &w);
	for (int k = 0; k < 3; k++)
		om_launch_walk_steps(l, &w, k);
	return OM_OK;
}

/* Bounds that are left out are the largest finite numbers. */
static float
default_bound(om_dtype t)
{
	return t == OM_FLOAT16 ? 65504.0f : t == OM_BFLOAT16 ? 0x1.fep127f : 0x1.fffffep127f;
}

static om_status
clip_launches(const om_op_context *c, om_launch_list *to)
{
	const int64_t n = om_shape_count(&c->out[0].shape);
	const bool is_old = c->op->version < 11;
	om_launch *l = om_launch_typed(to, "map", "clip", om_kernel_type(c->out[0].type), n);
	const float most = default_bound(c->out[0].type);
	int has = 0;

	om_launch_in(l, 0);
	for (uint32_t k = 1; k < 3; k++) {
		const bool is_given = om_has_in(c, k);
		om_launch_in(l, is_given ? k : 0);
		has |= is_given ? 1 << (k - 1) : 0;
	}
	om_launch_out(l, 0);
	om_launch_i64(l, n);
	om_launch_i32(l, has);
	om_launch_f32(l, is_old ? om_attr_float(c->op, "min") : -most);
	om_launch_f32(l, is_old ? om_attr_float(c->op, "max") : most);
	return OM_OK;
}

/* Over x only: all elements read the bounds. */
static bool
first_inplace(const om_op_context *c, uint32_t out, uint32_t in)
{
	return in == 0 && om_device_inplace(c, out, in);
}

/* From wider types to 16 bits would be rounded twice. */
static bool
cast_supports(const om_op_context *c)
{
	const om_dtype from = c->in[0].type, to = c->out[0].type;
	const bool is_wide = from == OM_FLOAT64 || om_dtype_bits(from) >= 32;

	return om_kernel_type(to) && !(is_wide && from != OM_FLOAT32 && (to == OM_FLOAT16 || to == OM_BFLOAT16));
}

static om_status
cast_launches(const om_op_context *c, om_launch_list *to)
{
	const char *x = om_kernel_type(c->in[0].type), *y = om_kernel_type(c->out[0].type);
	const int64_t n = om_shape_count(&c->out[0].shape);
	om_launch *l = om_launch_pair(to, "cast", "cast", x, y, om_grid_of(to, (uint64_t)n));

	om_launch_in(l, 0);
	om_launch_out(l, 0);
	om_launch_i64(l, n);
	return OM_OK;
}

#define UNARY(label)       {.name = label, .types = {OF_DEVICE_FLOATS}, .inplace = om_device_inplace, .launches = unary_launches}
#define INTEGER_UNARY(label) \
	{.name = label, .types = {OF_INTEGERS}, .inplace = om_device_inplace, .launches = integer_unary_launches}
#define TEST(label, of)    {.name = label, .types = {of}, .inplace = om_device_inplace, .launches = test_launches}
#define BINARY(label, test) \
	{.name = label, .types = {OF_DEVICE_FLOATS, OF_DEVICE_FLOATS}, .supports = test, .inplace = binary_inplace, .launches = binary_launches}
#define INTEGER_BINARY(label) \
	{.name = label, .types = {OF_INTEGERS, OF_INTEGERS}, .supports = integer_supports, .inplace = binary_inplace, \
	 .launches = integer_binary_launches}
#define COMPARE(label, of) \
	{.name = label, .types = {of, of}, .supports = binary_supports, .inplace = om_device_inplace, .launches = compare_launches}

const om_device_kernel om_device_kernels_device_elementwise[] = {
	UNARY("Abs"), UNARY("Acos"), UNARY("Acosh"), UNARY("Asin"), UNARY("Asinh"), UNARY("Atan"), UNARY("Atanh"), UNARY("Ceil"),
	UNARY("Celu"), UNARY("Cos"), UNARY("Cosh"), UNARY("Elu"), UNARY("Erf"), UNARY("Exp"), UNARY("Floor"), UNARY("Gelu"),
	UNARY("HardSigmoid"), UNARY("HardSwish"), UNARY("LeakyRelu"), UNARY("Log"), UNARY("Mish"), UNARY("Neg"), UNARY("Reciprocal"),
	UNARY("Relu"), UNARY("Round"), UNARY("Selu"), UNARY("Shrink"), UNARY("Sigmoid"), UNARY("Sign"), UNARY("Sin"), UNARY("Sinh"),
	UNARY("Softplus"), UNARY("Softsign"), UNARY("Sqrt"), UNARY("Swish"), UNARY("Tan"), UNARY("Tanh"), UNARY("ThresholdedRelu"),
	INTEGER_UNARY("Abs"), INTEGER_UNARY("BitwiseNot"), INTEGER_UNARY("Neg"), INTEGER_UNARY("Relu"), INTEGER_UNARY("Sign"),
	TEST("Not", OF(BOOL)), TEST("IsNaN", OF_DEVICE_FLOATS), TEST("IsInf", OF_DEVICE_FLOATS),
	BINARY("Add", binary_supports), BINARY("Div", binary_supports), BINARY("Mod", mod_supports), BINARY("Mul", binary_supports),
	BINARY("Pow", typed_supports), BINARY("PRelu", typed_supports), BINARY("Sub", binary_supports), BINARY("Max", binary_supports),
	BINARY("Mean", binary_supports), BINARY("Min", binary_supports), BINARY("Sum", binary_supports),
	INTEGER_BINARY("Add"), INTEGER_BINARY("BitwiseAnd"), INTEGER_BINARY("BitwiseOr"), INTEGER_BINARY("BitwiseXor"),
	INTEGER_BINARY("Max"), INTEGER_BINARY("Min"), INTEGER_BINARY("Mul"), INTEGER_BINARY("Sub"),
	COMPARE("And", OF(BOOL)), COMPARE("Or", OF(BOOL)), COMPARE("Xor", OF(BOOL)), COMPARE("Equal", OF_NUMBERS | OF(BOOL)),
	COMPARE("Greater", OF_NUMBERS), COMPARE("GreaterOrEqual", OF_NUMBERS), COMPARE("Less", OF_NUMBERS),
	COMPARE("LessOrEqual", OF_NUMBERS),
	{.name = "Where", .types = {OF(BOOL), OF_DEVICE_MOVED}, .supports = where_supports, .launches = where_launches},
	{.name = "Clip", .types = {OF_DEVICE_FLOATS}, .inplace = first_inplace, .launches = clip_launches},
	{.name = "Cast", .types = {OF_DEVICE_MOVED}, .supports = cast_supports, .inplace = first_inplace, .launches = cast_launches},
	{.name = "CastLike", .types = {OF_DEVICE_MOVED}, .supports = cast_supports, .inplace = first_inplace, .launches = cast_launches},
	{0}
};
