/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of elementwise operators of one input.
 *
 * The derivative is computed from the output if that does not lose precision: the output is usually
 * kept anyway, because the op that reads it requires it for its own gradient. */
#include <config.h>

#include "grad/grad_dsl.h"
#include "grad/grad_builder.h"
#include "ir/query.h"
#include "ir/type.h"

#define DY  om_grad_output_grad(g, 0)
#define X   om_grad_forward_input(g, 0)
#define Y   om_grad_forward_output(g, 0)

static double
alpha(const om_grad *g)
{
	return (double)om_attr_float(om_grad_op(g), "alpha");
}

static void
set_grad(om_grad *g, om_value *v)
{
	om_grad_set_input_grad(g, 0, v);
}

/* Set dy times the derivative. */
static void
set_grad_times(om_grad *g, om_value *slope)
{
	set_grad(g, MUL(DY, slope));
}

/* ---- Derivatives in terms of the output. ---- */

static void Exp_grad(om_grad *g)        { set_grad_times(g, Y); }
static void Identity_grad(om_grad *g)   { set_grad(g, DY); }
static void Neg_grad(om_grad *g)        { set_grad(g, DO("Neg", DY)); }
static void Relu_grad(om_grad *g)       { set_grad(g, KEEP(ABOVE(Y, 0), DY)); }
static void Sqrt_grad(om_grad *g)       { set_grad(g, DIV(TIMES(DY, 0.5), Y)); }

static void
Reciprocal_grad(om_grad *g)
{
	om_value *y = Y;

	set_grad_times(g, DO("Neg", MUL(y, y)));
}

static void
Sigmoid_grad(om_grad *g)
{
	om_value *y = Y;

	set_grad_times(g, MUL(y, FROM(1, y)));
}

static void
Tan_grad(om_grad *g)
{
	om_value *y = Y;

	set_grad_times(g, PLUS(MUL(y, y), 1));
}

static void
Tanh_grad(om_grad *g)
{
	om_value *y = Y;

	set_grad_times(g, FROM(1, MUL(y, y)));
}

/* `above` if x is positive, otherwise alpha exp(x / scale), which is y + alpha if the sign of y is that
 * of x. */
static void
give_exponential(om_grad *g, double a, double above, double scale)
{
	om_value *dy = DY;

	if (a > 0) {
		om_value *y = Y;
		set_grad(g, WHERE(BELOW(y, 0), TIMES(MUL(dy, PLUS(y, a)), 1 / scale), TIMES(dy, above)));
	} else {
		om_value *x = X;
		om_value *e = DO("Exp", scale == 1 ? x : TIMES(x, 1 / scale));
		set_grad(g, WHERE(BELOW(x, 0), TIMES(MUL(dy, e), a / scale), TIMES(dy, above)));
	}
}

static void
Celu_grad(om_grad *g)
{
	give_exponential(g, alpha(g), 1, alpha(g));
}

static void
Elu_grad(om_grad *g)
{
	give_exponential(g, alpha(g), 1, 1);
}

static void
Selu_grad(om_grad *g)
{
	const double gamma = (double)om_attr_float(om_grad_op(g), "gamma"), a = alpha(g);

	if (gamma > 0) {
		give_exponential(g, a * gamma, gamma, 1);
		return;
	}
	om_value *dy = DY, *x = X;
	set_grad(g, WHERE(ABOVE(x, 0), TIMES(dy, gamma), TIMES(MUL(dy, DO("Exp", x)), a * gamma)));
}

static void
HardSigmoid_grad(om_grad *g)
{
	om_value *y = Y;

	set_grad(g, KEEP(om_emit(g, "And", ABOVE(y, 0), BELOW(y, 1)), TIMES(DY, alpha(g))));
}

static void
LeakyRelu_grad(om_grad *g)
{
	om_value *dy = DY;

	set_grad(g, WHERE(BELOW(alpha(g) > 0 ? Y : X, 0), TIMES(dy, alpha(g)), dy));
}

static void
ThresholdedRelu_grad(om_grad *g)
{
	set_grad(g, KEEP(alpha(g) >= 0 ? ABOVE(Y, 0) : ABOVE(X, alpha(g)), DY));
}

/* ---- Derivatives in terms of the input. ---- */

static void Abs_grad(om_grad *g)        { set_grad_times(g, DO("Sign", X)); }
static void Cos_grad(om_grad *g)        { set_grad_times(g, DO("Neg", DO("Sin", X))); }
static void Cosh_grad(om_grad *g)       { set_grad_times(g, DO("Sinh", X)); }
static void Log_grad(om_grad *g)        { set_grad(g, DIV(DY, X)); }
static void Sin_grad(om_grad *g)        { set_grad_times(g, DO("Cos", X)); }
static void Sinh_grad(om_grad *g)       { set_grad_times(g, DO("Cosh", X)); }
static void Softplus_grad(om_grad *g)   { set_grad_times(g, DO("Sigmoid", X)); }

/* (1 - x)(1 + x) is accurate near one, where 1 - x x suffers from cancellation. */
static om_value *
one_less_square(om_grad *g)
{
	om_value *x = X;

	return MUL(FROM(1, x), PLUS(x, 1));
}

static void
Acos_grad(om_grad *g)
{
	set_grad(g, DO("Neg", DIV(DY, DO("Sqrt", one_less_square(g)))));
}

static void
Acosh_grad(om_grad *g)
{
	om_value *x = X;

	set_grad(g, DIV(DY, DO("Sqrt", MUL(PLUS(x, -1), PLUS(x, 1)))));
}

static void
Asin_grad(om_grad *g)
{
	set_grad(g, DIV(DY, DO("Sqrt", one_less_square(g))));
}

static void
Asinh_grad(om_grad *g)
{
	om_value *x = X;

	set_grad(g, DIV(DY, DO("Sqrt", PLUS(MUL(x, x), 1))));
}

static void
Atan_grad(om_grad *g)
{
	om_value *x = X;

	set_grad(g, DIV(DY, PLUS(MUL(x, x), 1)));
}

static void
Atanh_grad(om_grad *g)
{
	set_grad(g, DIV(DY, one_less_square(g)));
}

/* 2 / sqrt(pi) exp(-x x) */
static void
Erf_grad(om_grad *g)
{
	om_value *x = X;

	set_grad_times(g, TIMES(DO("Exp", DO("Neg", MUL(x, x))), 1.1283791670955125739));
}

/* The density of the normal distribution. */
static om_value *
density(om_grad *g, om_value *x)
{
	return TIMES(DO("Exp", TIMES(MUL(x, x), -0.5)), 0.39894228040143267794);
}

/* The derivative of x P(x), where P is the distribution function. */
static om_value *
gelu(om_grad *g, om_value *x)
{
	om_value *share = TIMES(PLUS(DO("Erf", TIMES(x, 0.70710678118654752440)), 1), 0.5);

	return ADD(share, MUL(x, density(g, x)));
}

/* With t = tanh(u), u = b (x + c x^3): (1 + t) / 2 + x (1 - t t) u' / 2. */
static om_value *
gelu_by_tanh(om_grad *g, om_value *x)
{
	const double b = 0.79788456080286535588, c = 0.044715;
	om_value *square = MUL(x, x);
	om_value *t = DO("Tanh", TIMES(MUL(x, PLUS(TIMES(square, c), 1)), b));
	om_value *slope = TIMES(PLUS(TIMES(square, 3 * c), 1), b);

	return TIMES(ADD(PLUS(t, 1), MUL(MUL(x, FROM(1, MUL(t, t))), slope)), 0.5);
}

static void
Gelu_grad(om_grad *g)
{
	const bool by_tanh = om_attr_is(om_grad_op(g), "approximate", "tanh");

	set_grad_times(g, by_tanh ? gelu_by_tanh(g, X) : gelu(g, X));
}

/* The gradient for x and for a bias that is added to it. */
static void
give_both(om_grad *g, om_value *slope)
{
	om_value *dx = MUL(DY, slope);

	om_grad_set_broadcast_grad(g, 0, dx);
	om_grad_set_broadcast_grad(g, 1, dx);
}

static om_value *
biased(om_grad *g)
{
	return om_grad_has(g, 1) ? ADD(X, om_grad_forward_input(g, 1)) : X;
}

static void
BiasGelu_grad(om_grad *g)
{
	give_both(g, gelu(g, biased(g)));
}

static void
FastGelu_grad(om_grad *g)
{
	give_both(g, gelu_by_tanh(g, biased(g)));
}

/* With s = sigmoid(alpha x): s (1 + alpha x (1 - s)). */
static void
QuickGelu_grad(om_grad *g)
{
	om_value *u = TIMES(X, alpha(g)), *s = DO("Sigmoid", u);

	set_grad_times(g, MUL(s, PLUS(MUL(u, FROM(1, s)), 1)));
}

/* 0 below -3, x / 3 + 1 / 2 between, 1 above 3. */
static void
HardSwish_grad(om_grad *g)
{
	om_value *x = X, *dy = DY;
	om_value *middle = MUL(dy, PLUS(TIMES(x, 1 / 3.0), 0.5));

	set_grad(g, WHERE(ABOVE(x, 3), dy, KEEP(ABOVE(x, -3), middle)));
}

/* With t = tanh(softplus(x)): t + x (1 - t t) sigmoid(x). */
static void
Mish_grad(om_grad *g)
{
	om_value *x = X;
	om_value *t = DO("Tanh", DO("Softplus", x));

	set_grad_times(g, ADD(t, MUL(MUL(x, FROM(1, MUL(t, t))), DO("Sigmoid", x))));
}

static void
Shrink_grad(om_grad *g)
{
	const double lambda = (double)om_attr_float(om_grad_op(g), "lambd");
	om_value *x = X;

	set_grad(g, KEEP(om_emit(g, "Or", BELOW(x, -lambda), ABOVE(x, lambda)), DY));
}

static void
Softsign_grad(om_grad *g)
{
	om_value *base = PLUS(DO("Abs", X), 1);

	set_grad(g, DIV(DY, MUL(base, base)));
}

/* With s = sigmoid(a x): s (1 + a x (1 - s)). */
static om_value *
swish_slope(om_grad *g, om_value *x, om_value **s)
{
	om_value *ax = alpha(g) == 1 ? x : TIMES(x, alpha(g));

	*s = DO("Sigmoid", ax);
	return MUL(*s, PLUS(MUL(ax, FROM(1, *s)), 1));
}

static void
Swish_grad(om_grad *g)
{
	om_value *s;

	set_grad_times(g, swish_slope(g, X, &s));
}

static void
SwiGLU_grad(om_grad *g)
{
	om_value *x = X, *s, *dy = DY;
	om_value *slope = swish_slope(g, x, &s);

	if (om_grad_is_needed(g, 0))
		om_grad_set_broadcast_grad(g, 0, MUL(MUL(dy, om_grad_forward_input(g, 1)), slope));
	if (om_grad_is_needed(g, 1))
		om_grad_set_broadcast_grad(g, 1, MUL(dy, MUL(x, s)));
}

/* ---- Casts. ---- */

static void
Cast_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);

	set_grad(g, om_emit_cast(g, DY, om_type_elem(&op->in[0]->type)));
	om_grad_set_input_grad(g, 1, NULL);  /* the second input of CastLike */
}

/* ---- The table. ---- */

const om_gradient om_gradients_unary[] = {
	{.name = "Abs", .since = 1, .rule = Abs_grad},
	{.name = "Acos", .since = 7, .rule = Acos_grad},
	{.name = "Acosh", .since = 9, .rule = Acosh_grad},
	{.name = "Asin", .since = 7, .rule = Asin_grad},
	{.name = "Asinh", .since = 9, .rule = Asinh_grad},
	{.name = "Atan", .since = 7, .rule = Atan_grad},
	{.name = "Atanh", .since = 9, .rule = Atanh_grad},
	{.name = "Ceil", .since = 1, .rule = om_grad_set_zero},
	{.name = "Celu", .since = 12, .rule = Celu_grad},
	{.name = "Cos", .since = 7, .rule = Cos_grad},
	{.name = "Cosh", .since = 9, .rule = Cosh_grad},
	{.name = "Elu", .since = 1, .rule = Elu_grad},
	{.name = "Erf", .since = 9, .rule = Erf_grad},
	{.name = "Exp", .since = 1, .rule = Exp_grad},
	{.name = "Floor", .since = 1, .rule = om_grad_set_zero},
	{.name = "Gelu", .since = 20, .rule = Gelu_grad},
	{.name = "HardSigmoid", .since = 1, .rule = HardSigmoid_grad},
	{.name = "HardSwish", .since = 14, .rule = HardSwish_grad},
	{.name = "LeakyRelu", .since = 1, .rule = LeakyRelu_grad},
	{.name = "Log", .since = 1, .rule = Log_grad},
	{.name = "Mish", .since = 18, .rule = Mish_grad},
	{.name = "Neg", .since = 1, .rule = Neg_grad},
	{.name = "Reciprocal", .since = 1, .rule = Reciprocal_grad},
	{.name = "Relu", .since = 1, .rule = Relu_grad},
	{.name = "Round", .since = 11, .rule = om_grad_set_zero},
	{.name = "Selu", .since = 6, .rule = Selu_grad},
	{.name = "Shrink", .since = 9, .rule = Shrink_grad},
	{.name = "Sigmoid", .since = 1, .rule = Sigmoid_grad},
	{.name = "Sign", .since = 9, .rule = om_grad_set_zero},
	{.name = "Sin", .since = 7, .rule = Sin_grad},
	{.name = "Sinh", .since = 9, .rule = Sinh_grad},
	{.name = "Softplus", .since = 1, .rule = Softplus_grad},
	{.name = "Softsign", .since = 1, .rule = Softsign_grad},
	{.name = "Sqrt", .since = 1, .rule = Sqrt_grad},
	{.name = "Swish", .since = 24, .rule = Swish_grad},
	{.name = "Tan", .since = 7, .rule = Tan_grad},
	{.name = "Tanh", .since = 1, .rule = Tanh_grad},
	{.name = "ThresholdedRelu", .since = 10, .rule = ThresholdedRelu_grad},
	{.name = "SwiGLU", .since = 28, .rule = SwiGLU_grad},
	{.name = "Cast", .since = 6, .rule = Cast_grad},
	{.name = "CastLike", .since = 15, .rule = Cast_grad},
	{.name = "Identity", .since = 1, .rule = Identity_grad},
	{.domain = "com.microsoft", .name = "Gelu", .since = 1, .rule = Gelu_grad},
	{.domain = "com.microsoft", .name = "FastGelu", .since = 1, .rule = FastGelu_grad},
	{.domain = "com.microsoft", .name = "BiasGelu", .since = 1, .rule = BiasGelu_grad},
	{.domain = "com.microsoft", .name = "QuickGelu", .since = 1, .rule = QuickGelu_grad},
	{0}
};
