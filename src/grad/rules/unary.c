/* Gradients of elementwise operators of one input.
 *
 * Where the derivative can be had from the output without losing digits, it is: the
 * output mostly lives on anyway, because whoever reads it wants it for a gradient of its
 * own. */
#include <config.h>

#include "grad/grad_dsl.h"

#define DY  om_grad_output_grad(g, 0)
#define X   om_grad_forward_input(g, 0)
#define Y   om_grad_forward_output(g, 0)

static double
alpha(const om_grad *g)
{
	return (double)om_attr_float(om_grad_op(g), "alpha");
}

static void
give(om_grad *g, om_value *v)
{
	om_grad_set_input_grad(g, 0, v);
}

/* dy times the derivative. */
static void
give_times(om_grad *g, om_value *slope)
{
	give(g, MUL(DY, slope));
}

/* ---- From the output. ---- */

void om_grad_Exp(om_grad *g)        { give_times(g, Y); }
void om_grad_Identity(om_grad *g)   { give(g, DY); }
void om_grad_Neg(om_grad *g)        { give(g, DO("Neg", DY)); }
void om_grad_Relu(om_grad *g)       { give(g, KEEP(ABOVE(Y, 0), DY)); }
void om_grad_Sqrt(om_grad *g)       { give(g, DIV(TIMES(DY, 0.5), Y)); }

void
om_grad_Reciprocal(om_grad *g)
{
	om_value *y = Y;

	give_times(g, DO("Neg", MUL(y, y)));
}

void
om_grad_Sigmoid(om_grad *g)
{
	om_value *y = Y;

	give_times(g, MUL(y, FROM(1, y)));
}

void
om_grad_Tan(om_grad *g)
{
	om_value *y = Y;

	give_times(g, PLUS(MUL(y, y), 1));
}

void
om_grad_Tanh(om_grad *g)
{
	om_value *y = Y;

	give_times(g, FROM(1, MUL(y, y)));
}

/* `above` where x is above zero, elsewhere alpha exp(x / scale), which is y + alpha
 * where the sign of y tells the sign of x. */
static void
give_exponential(om_grad *g, double a, double above, double scale)
{
	om_value *dy = DY;

	if (a > 0) {
		om_value *y = Y;
		give(g, WHERE(BELOW(y, 0), TIMES(MUL(dy, PLUS(y, a)), 1 / scale), TIMES(dy, above)));
	} else {
		om_value *x = X;
		om_value *e = DO("Exp", scale == 1 ? x : TIMES(x, 1 / scale));
		give(g, WHERE(BELOW(x, 0), TIMES(MUL(dy, e), a / scale), TIMES(dy, above)));
	}
}

void
om_grad_Celu(om_grad *g)
{
	give_exponential(g, alpha(g), 1, alpha(g));
}

void
om_grad_Elu(om_grad *g)
{
	give_exponential(g, alpha(g), 1, 1);
}

void
om_grad_Selu(om_grad *g)
{
	const double gamma = (double)om_attr_float(om_grad_op(g), "gamma"), a = alpha(g);

	if (gamma > 0) {
		give_exponential(g, a * gamma, gamma, 1);
		return;
	}
	om_value *dy = DY, *x = X;
	give(g, WHERE(ABOVE(x, 0), TIMES(dy, gamma), TIMES(MUL(dy, DO("Exp", x)), a * gamma)));
}

void
om_grad_HardSigmoid(om_grad *g)
{
	om_value *y = Y;

	give(g, KEEP(om_emit(g, "And", ABOVE(y, 0), BELOW(y, 1)), TIMES(DY, alpha(g))));
}

void
om_grad_LeakyRelu(om_grad *g)
{
	om_value *dy = DY;

	give(g, WHERE(BELOW(alpha(g) > 0 ? Y : X, 0), TIMES(dy, alpha(g)), dy));
}

void
om_grad_ThresholdedRelu(om_grad *g)
{
	give(g, KEEP(alpha(g) >= 0 ? ABOVE(Y, 0) : ABOVE(X, alpha(g)), DY));
}

/* ---- From the input. ---- */

void om_grad_Abs(om_grad *g)        { give_times(g, DO("Sign", X)); }
void om_grad_Cos(om_grad *g)        { give_times(g, DO("Neg", DO("Sin", X))); }
void om_grad_Cosh(om_grad *g)       { give_times(g, DO("Sinh", X)); }
void om_grad_Log(om_grad *g)        { give(g, DIV(DY, X)); }
void om_grad_Sin(om_grad *g)        { give_times(g, DO("Cos", X)); }
void om_grad_Sinh(om_grad *g)       { give_times(g, DO("Cosh", X)); }
void om_grad_Softplus(om_grad *g)   { give_times(g, DO("Sigmoid", X)); }

/* (1 - x)(1 + x) keeps the digits that 1 - x x loses near one. */
static om_value *
one_less_square(om_grad *g)
{
	om_value *x = X;

	return MUL(FROM(1, x), PLUS(x, 1));
}

void
om_grad_Acos(om_grad *g)
{
	give(g, DO("Neg", DIV(DY, DO("Sqrt", one_less_square(g)))));
}

void
om_grad_Acosh(om_grad *g)
{
	om_value *x = X;

	give(g, DIV(DY, DO("Sqrt", MUL(PLUS(x, -1), PLUS(x, 1)))));
}

void
om_grad_Asin(om_grad *g)
{
	give(g, DIV(DY, DO("Sqrt", one_less_square(g))));
}

void
om_grad_Asinh(om_grad *g)
{
	om_value *x = X;

	give(g, DIV(DY, DO("Sqrt", PLUS(MUL(x, x), 1))));
}

void
om_grad_Atan(om_grad *g)
{
	om_value *x = X;

	give(g, DIV(DY, PLUS(MUL(x, x), 1)));
}

void
om_grad_Atanh(om_grad *g)
{
	give(g, DIV(DY, one_less_square(g)));
}

/* 2 / sqrt(pi) exp(-x x) */
void
om_grad_Erf(om_grad *g)
{
	om_value *x = X;

	give_times(g, TIMES(DO("Exp", DO("Neg", MUL(x, x))), 1.1283791670955125739));
}

/* The density of the normal distribution. */
static om_value *
density(om_grad *g, om_value *x)
{
	return TIMES(DO("Exp", TIMES(MUL(x, x), -0.5)), 0.39894228040143267794);
}

/* Of x P(x), where P is the distribution. */
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

void
om_grad_Gelu(om_grad *g)
{
	const bool by_tanh = om_attr_is(om_grad_op(g), "approximate", "tanh");

	give_times(g, by_tanh ? gelu_by_tanh(g, X) : gelu(g, X));
}

/* Of x and a bias that is added to it. */
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

void
om_grad_BiasGelu(om_grad *g)
{
	give_both(g, gelu(g, biased(g)));
}

void
om_grad_FastGelu(om_grad *g)
{
	give_both(g, gelu_by_tanh(g, biased(g)));
}

/* With s = sigmoid(alpha x): s (1 + alpha x (1 - s)). */
void
om_grad_QuickGelu(om_grad *g)
{
	om_value *u = TIMES(X, alpha(g)), *s = DO("Sigmoid", u);

	give_times(g, MUL(s, PLUS(MUL(u, FROM(1, s)), 1)));
}

/* Zero, x / 3 + 1 / 2, one: below -3, between, above 3. */
void
om_grad_HardSwish(om_grad *g)
{
	om_value *x = X, *dy = DY;
	om_value *middle = MUL(dy, PLUS(TIMES(x, 1 / 3.0), 0.5));

	give(g, WHERE(ABOVE(x, 3), dy, KEEP(ABOVE(x, -3), middle)));
}

/* With t = tanh(softplus(x)): t + x (1 - t t) sigmoid(x). */
void
om_grad_Mish(om_grad *g)
{
	om_value *x = X;
	om_value *t = DO("Tanh", DO("Softplus", x));

	give_times(g, ADD(t, MUL(MUL(x, FROM(1, MUL(t, t))), DO("Sigmoid", x))));
}

void
om_grad_Shrink(om_grad *g)
{
	const double lambda = (double)om_attr_float(om_grad_op(g), "lambd");
	om_value *x = X;

	give(g, KEEP(om_emit(g, "Or", BELOW(x, -lambda), ABOVE(x, lambda)), DY));
}

void
om_grad_Softsign(om_grad *g)
{
	om_value *base = PLUS(DO("Abs", X), 1);

	give(g, DIV(DY, MUL(base, base)));
}

/* With s = sigmoid(a x): s (1 + a x (1 - s)). */
static om_value *
swish_slope(om_grad *g, om_value *x, om_value **s)
{
	om_value *ax = alpha(g) == 1 ? x : TIMES(x, alpha(g));

	*s = DO("Sigmoid", ax);
	return MUL(*s, PLUS(MUL(ax, FROM(1, *s)), 1));
}

void
om_grad_Swish(om_grad *g)
{
	om_value *s;

	give_times(g, swish_slope(g, X, &s));
}

void
om_grad_SwiGLU(om_grad *g)
{
	om_value *x = X, *s, *dy = DY;
	om_value *slope = swish_slope(g, x, &s);

	if (om_grad_is_needed(g, 0))
		om_grad_set_broadcast_grad(g, 0, MUL(MUL(dy, om_grad_forward_input(g, 1)), slope));
	if (om_grad_is_needed(g, 1))
		om_grad_set_broadcast_grad(g, 1, MUL(dy, MUL(x, s)));
}

/* ---- Other types of elements. ---- */

void
om_grad_Cast(om_grad *g)
{
	const om_op *op = om_grad_op(g);

	give(g, om_emit_cast(g, DY, om_type_elem(&op->in[0]->type)));
	om_grad_set_input_grad(g, 1, NULL);  /* that of CastLike */
}
