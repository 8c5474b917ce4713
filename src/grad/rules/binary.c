/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of elementwise operators of several inputs, with broadcasting: the gradient of an input is
 * summed over the axes along which the input was repeated. */
#include <config.h>

#include "grad/grad_dsl.h"
#include "grad/grad_builder.h"
#include "ir/edit.h"
#include "ir/type.h"
#include "opdef/op_context.h"

#define DY    om_grad_output_grad(g, 0)
#define IN(k) om_grad_forward_input(g, k)

static void
Add_grad(om_grad *g)
{
	for (uint32_t k = 0; k < om_grad_op(g)->nin; k++)
		om_grad_set_broadcast_grad(g, k, DY);
}

static void
Sub_grad(om_grad *g)
{
	om_grad_set_broadcast_grad(g, 0, DY);
	if (om_grad_is_needed(g, 1))
		om_grad_set_input_grad(g, 1, DO("Neg", om_emit_sum_to(g, DY, om_grad_op(g)->in[1])));
}

static void
Mul_grad(om_grad *g)
{
	for (uint32_t k = 0; k < 2; k++)
		if (om_grad_is_needed(g, k))
			om_grad_set_broadcast_grad(g, k, MUL(DY, IN(1 - k)));
}

/* Does input `k` have fewer elements than the output? */
static bool
is_smaller(const om_grad *g, uint32_t k)
{
	const om_op *op = om_grad_op(g);
	const uint64_t in = om_value_bytes(op->in[k]), out = om_value_bytes(op->out[0]);

	return in && out && in < out;
}

/* The gradient of the divisor is -dy a / (b b) = -dy y / b. */
static void
Div_grad(om_grad *g)
{
	om_value *da = DIV(DY, IN(1));

	om_grad_set_broadcast_grad(g, 0, da);
	if (om_grad_is_needed(g, 1))
		om_grad_set_broadcast_grad(g, 1, DO("Neg", is_smaller(g, 0) ? DIV(MUL(da, IN(0)), IN(1))
			: MUL(da, om_grad_forward_output(g, 0))));
}

/* The remainder is a - b n with an integer n, which is piecewise constant. */
static void
Mod_grad(om_grad *g)
{
	om_grad_set_broadcast_grad(g, 0, DY);
	if (om_grad_is_needed(g, 1)) {
		om_value *n = DO("Round", DIV(SUB(IN(0), om_grad_forward_output(g, 0)), IN(1)));
		om_grad_set_broadcast_grad(g, 1, DO("Neg", MUL(DY, n)));
	}
}

/* ---- Powers. ---- */

/* The exponent, if it is a single constant. */
static bool
has_exponent(const om_grad *g, double *e)
{
	const om_value *v = om_grad_op(g)->in[1];
	om_arena *mem = om_arena_new();
	om_op_context c;

	om_op_context_init(&c, NULL, mem, om_grad_op(g));
	const bool known = v->data && !v->is_overridable && om_in_scalar(&c, 1, e);
	om_arena_free(mem);
	return known;
}

/* The derivative of a to the power of a constant. */
static om_value *
power_slope(om_grad *g, double e)
{
	if (e == 2)
		return TIMES(IN(0), 2);
	if (e == 0.5)
		return DIV(om_emit_number(g, IN(0), 0.5), om_grad_forward_output(g, 0));
	if (e == -1) {
		om_value *y = om_grad_forward_output(g, 0);
		return DO("Neg", MUL(y, y));
	}
	return TIMES(om_emit_scalar(g, "Pow", IN(0), e - 1), e);
}

static void
give_base(om_grad *g)
{
	const om_dtype type = om_type_elem(&om_grad_op(g)->in[0]->type);
	double e;

	if (has_exponent(g, &e)) {
		om_grad_set_broadcast_grad(g, 0, e == 0 ? NULL : e == 1 ? DY : MUL(DY, power_slope(g, e)));
		return;
	}
	/* b a^(b - 1) is zero if b is, even if a is zero too. */
	om_value *b = om_emit_cast(g, IN(1), type);
	om_value *slope = MUL(b, om_emit(g, "Pow", IN(0), PLUS(b, -1)));
	slope = WHERE(om_emit(g, "Equal", b, ZERO(b)), ZERO(b), slope);
	om_grad_set_broadcast_grad(g, 0, MUL(DY, slope));
}

/* dy y log(a), if a has a logarithm. */
static void
Pow_grad(om_grad *g)
{
	if (om_grad_is_needed(g, 0))
		give_base(g);
	if (om_grad_is_needed(g, 1)) {
		om_value *a = IN(0), *y = om_grad_forward_output(g, 0);
		om_value *db = om_emit_cast(g, MUL(DY, MUL(y, DO("Log", a))), om_type_elem(&om_grad_op(g)->in[1]->type));
		om_grad_set_broadcast_grad(g, 1, KEEP(om_emit(g, "Greater", a, ZERO(a)), db));
	}
}

/* ---- Maximum, minimum, sums. ---- */

/* Equal inputs share the gradient of their maximum. */
static void
extreme_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	om_value **is_it = OM_NEWN(om_grad_mem(g), om_value *, op->nin), *all = NULL, *dy = DY;

	if (op->nin == 1) {
		om_grad_set_input_grad(g, 0, dy);
		return;
	}
	om_value *y = om_grad_forward_output(g, 0);
	for (uint32_t k = 0; k < op->nin; k++) {
		is_it[k] = AS_NUMBER(om_emit(g, "Equal", IN(k), y), y);
		all = all ? ADD(all, is_it[k]) : is_it[k];
	}
	dy = DIV(dy, all);
	for (uint32_t k = 0; k < op->nin; k++)
		if (om_grad_is_needed(g, k))
			om_grad_set_broadcast_grad(g, k, MUL(dy, is_it[k]));
}

static void
Mean_grad(om_grad *g)
{
	om_value *dy = TIMES(DY, 1 / (double)om_grad_op(g)->nin);

	for (uint32_t k = 0; k < om_grad_op(g)->nin; k++)
		om_grad_set_broadcast_grad(g, k, dy);
}

/* ---- Selection. ---- */

/* An element that is not clipped is between the bounds; a clipped one equals one of them.  If the lower
 * bound exceeds the upper one, the upper one applies. */
static void
Clip_grad(om_grad *g)
{
	om_value *dy = DY, *y = om_grad_forward_output(g, 0);
	om_value *low = om_grad_forward_input(g, 1), *high = om_grad_forward_input(g, 2);
	om_value *above = low ? om_emit(g, "Greater", y, low) : NULL, *below = high ? om_emit(g, "Less", y, high) : NULL;

	if (om_grad_is_needed(g, 0))
		om_grad_set_input_grad(g, 0, above && below ? KEEP(om_emit(g, "And", above, below), dy)
			: above || below ? KEEP(above ? above : below, dy) : dy);
	if (om_grad_is_needed(g, 1)) {
		om_value *at = DO("Not", above);
		om_grad_set_broadcast_grad(g, 1, KEEP(below ? om_emit(g, "And", at, below) : at, dy));
	}
	if (om_grad_is_needed(g, 2))
		om_grad_set_broadcast_grad(g, 2, KEEP(DO("Not", below), dy));
}

static void
Where_grad(om_grad *g)
{
	om_value *c = IN(0), *dy = DY;

	if (om_grad_is_needed(g, 1))
		om_grad_set_broadcast_grad(g, 1, KEEP(c, dy));
	if (om_grad_is_needed(g, 2))
		om_grad_set_broadcast_grad(g, 2, WHERE(c, ZERO(dy), dy));
}

static void
PRelu_grad(om_grad *g)
{
	om_value *x = IN(0), *dy = DY;
	om_value *below = BELOW(x, 0);

	if (om_grad_is_needed(g, 0))
		om_grad_set_input_grad(g, 0, WHERE(below, MUL(dy, IN(1)), dy));
	if (om_grad_is_needed(g, 1))
		om_grad_set_broadcast_grad(g, 1, KEEP(below, MUL(dy, x)));
}

/* ---- Dropout. ---- */

static bool
is_known_truth(const om_grad *g, uint32_t k, bool *truth)
{
	const om_value *v = om_grad_op(g)->in[k];

	if (!v->data || !v->data->data || v->is_overridable || om_type_elem(&v->type) != OM_BOOL)
		return false;
	*truth = *(const uint8_t *)v->data->data != 0;
	return true;
}

/* Kept elements are divided by the keep probability; if it is known only in the run whether the op
 * drops elements, by one otherwise. */
static void
Dropout_grad(om_grad *g)
{
	bool trains = true;
	om_value *dy = DY;

	om_grad_set_input_grad(g, 1, NULL);
	if (!om_grad_is_needed(g, 0))
		return;
	const bool known = !om_grad_has(g, 2) || is_known_truth(g, 2, &trains);
	if (!om_grad_has(g, 2) || (known && !trains)) {
		om_grad_set_input_grad(g, 0, dy);
		return;
	}
	om_value *ratio = om_grad_has(g, 1) ? AS_NUMBER(IN(1), dy) : om_emit_number(g, dy, 0.5);
	om_value *scale = DIV(om_emit_number(g, dy, 1), FROM(1, ratio));
	if (!known)
		scale = WHERE(IN(2), scale, om_emit_number(g, dy, 1));
	om_grad_set_input_grad(g, 0, KEEP(om_grad_forward_output(g, 1), MUL(dy, scale)));
}

/* ---- Training mode. ---- */

static void
train_dropout(om_grad *g, om_op *op)
{
	const uint8_t yes = 1;
	om_prog *p = om_grad_prog(g);
	om_tensor t = {.type = OM_BOOL, .shape = om_shape_of(0, NULL), .data = om_memdup(p->mem, &yes, 1)};
	om_value *in[3] = {op->in[0], op->nin > 1 ? op->in[1] : NULL, om_emit_tensor(g, &t)};

	om_op_set_inputs(p, op, 3, in);
}

/* ---- The table. ---- */

const om_gradient om_gradients_binary[] = {
	{.name = "Add", .since = 1, .rule = Add_grad},
	{.name = "Div", .since = 1, .rule = Div_grad},
	{.name = "Mod", .since = 10, .rule = Mod_grad},
	{.name = "Mul", .since = 1, .rule = Mul_grad},
	{.name = "Sub", .since = 1, .rule = Sub_grad},
	{.name = "Max", .since = 1, .rule = extreme_grad},
	{.name = "Mean", .since = 1, .rule = Mean_grad},
	{.name = "Min", .since = 1, .rule = extreme_grad},
	{.name = "Sum", .since = 1, .rule = Add_grad},
	{.name = "Clip", .since = 11, .rule = Clip_grad},
	{.name = "Pow", .since = 1, .rule = Pow_grad},
	{.name = "PRelu", .since = 1, .rule = PRelu_grad},
	{.name = "Where", .since = 9, .rule = Where_grad},
	{.name = "Dropout", .since = 12, .rule = Dropout_grad, .to_training_mode = train_dropout},
	{0}
};
