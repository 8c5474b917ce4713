/* SPDX-License-Identifier: Apache-2.0 */
/* Update: the update of a parameter by an optimizer, in one op; see opdef/update_op.h.
 *
 * The reference kernel computes what the function of standard operators computes (grad/train/optimizers.c), by the same
 * operations in the type of the parameter, element by element: all inputs of an element are read before its outputs are
 * written, so that each output may be any of them. */
#include <config.h>

#include <math.h>
#include <string.h>

#include "base/shape.h"
#include "ir/query.h"
#include "opdef/gradient_op.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/family.h"
#include "ops/nn/update.h"

enum { FROM_STATES = OM_UPDATE_S1 - 1 };   /* output k is like input k + FROM_STATES, for k > 0 */

/* The inputs that each optimizer reads besides the parameter and the gradient; adamw reads the rate where it decays. */
static const struct {
	const char *name;
	uint32_t nstate, scalars;
} kinds[OM_NUPDATES] = {
	[OM_SGD] = {"sgd", 0, 1u << OM_UPDATE_RATE},
	[OM_MOMENTUM] = {"momentum", 1, 1u << OM_UPDATE_RATE},
	[OM_NESTEROV] = {"nesterov", 1, 1u << OM_UPDATE_RATE},
	[OM_ADAM] = {"adam", 2, 1u << OM_UPDATE_STEP | 1u << OM_UPDATE_ROOT},
	[OM_ADAMW] = {"adamw", 2, 1u << OM_UPDATE_STEP | 1u << OM_UPDATE_ROOT},
	[OM_RMSPROP] = {"rmsprop", 1, 1u << OM_UPDATE_RATE},
	[OM_ADAGRAD] = {"adagrad", 1, 1u << OM_UPDATE_RATE},
	[OM_LAMB] = {"lamb", 2, 1u << OM_UPDATE_RATE | 1u << OM_UPDATE_ROOT | 1u << OM_UPDATE_LEFT},
};

static bool
find_kind(const om_op *op, enum om_update_kind *kind)
{
	for (unsigned k = 0; k < OM_NUPDATES; k++)
		if (om_attr_is(op, "optimizer", kinds[k].name)) {
			*kind = (enum om_update_kind)k;
			return true;
		}
	return false;
}

static bool
is_scalar_input(uint32_t k)
{
	return k >= OM_UPDATE_RATE && k <= OM_UPDATE_LEFT;
}

/* What is wrong with the inputs; NULL: nothing. */
static const char *
find_wrong(const om_op_context *c)
{
	const om_tensor *w = &c->in[OM_UPDATE_W], *numbers = om_attr_tensor(c->op, "numbers");
	enum om_update_kind kind = OM_SGD;

	if (!find_kind(c->op, &kind))
		return "its optimizer is not known";
	if (!numbers || numbers->shape.rank != 1 || numbers->shape.dim[0] != OM_UPDATE_NUMBERS)
		return om_printf(c->mem, "numbers must be a list of %d", OM_UPDATE_NUMBERS);
	if (w->type != OM_UNDEFINED && numbers->type != w->type)
		return "numbers must have the type of the parameter";
	if (c->op->nout != 1 + kinds[kind].nstate)
		return om_printf(c->mem, "%s has %u outputs", kinds[kind].name, 1 + kinds[kind].nstate);
	for (uint32_t k = 0; k < OM_UPDATE_INPUTS; k++) {
		const bool state = k >= OM_UPDATE_S1 && k < OM_UPDATE_S1 + kinds[kind].nstate;
		if (!om_has_in(c, k) && (k <= OM_UPDATE_DW || state || kinds[kind].scalars >> k & 1))
			return om_printf(c->mem, "%s requires input %u", kinds[kind].name, k);
		if (!om_has_in(c, k) || !om_shape_is_known(&c->in[k].shape))
			continue;
		if (is_scalar_input(k) && om_shape_count(&c->in[k].shape) != 1)
			return om_printf(c->mem, "input %u must be a scalar", k);
		if (!is_scalar_input(k) && om_shape_is_known(&w->shape) && !om_shape_equal(&c->in[k].shape, &w->shape))
			return om_printf(c->mem, "input %u does not have the shape of the parameter", k);
	}
	return NULL;
}

static om_status
update_infer(om_op_context *c)
{
	const char *wrong = find_wrong(c);

	if (wrong)
		return om_op_fail(c->session, OM_INVALID, c->op, "%s", wrong);
	for (uint32_t k = 0; k < c->op->nout; k++) {
		c->out[k].type = c->in[OM_UPDATE_W].type;
		c->out[k].shape = c->in[OM_UPDATE_W].shape;
	}
	return OM_OK;
}

om_status
om_update_read(const om_op_context *c, struct om_update_attrs *a)
{
	const char *wrong = find_wrong(c);

	if (wrong)
		return om_wrong(c, wrong);
	find_kind(c->op, &a->kind);
	const om_tensor *numbers = om_attr_tensor(c->op, "numbers");
	const size_t one = om_dtype_bits(numbers->type) / 8;
	unsigned char *copy = OM_NEWN(c->mem, unsigned char, OM_UPDATE_NUMBERS * one);
	for (int k = 0; k < OM_UPDATE_NUMBERS; k++)
		memcpy(copy + k * one, (const unsigned char *)numbers->data + (numbers->splat ? 0 : k * one), one);
	a->number = copy;
	if (a->kind == OM_ADAMW && om_get(numbers->type, copy, OM_UPDATE_DECAY) != 0 && !om_has_in(c, OM_UPDATE_RATE))
		return om_wrong(c, "adamw with a decay requires input 2");
	return OM_OK;
}

om_status
om_update_prepare(om_op_context *c, void **state)
{
	return om_update_read(c, *state);
}

/* ---- The reference kernel. ---- */

#define FOR_TYPE(T, SQRT)                                                                               \
struct call_##T {                                                                                       \
	enum om_update_kind kind;                                                                       \
	T rate, step, root, left, trust, n[OM_UPDATE_NUMBERS];                                          \
};                                                                                                      \
                                                                                                        \
struct element_##T {                                                                                    \
	T w, s1, s2;                                                                                    \
};                                                                                                      \
                                                                                                        \
/* Update both means; returns sqrt(v / (1 - b2^t)) + epsilon. */                                        \
static inline T                                                                                         \
moments_##T(const struct call_##T *c, struct element_##T *x, T g)                                       \
{                                                                                                       \
	x->s1 = x->s1 * c->n[OM_UPDATE_BETA1] + g * c->n[OM_UPDATE_LEFT1];                              \
	x->s2 = x->s2 * c->n[OM_UPDATE_BETA2] + g * g * c->n[OM_UPDATE_LEFT2];                          \
	return SQRT(x->s2) / c->root + c->n[OM_UPDATE_EPSILON];                                         \
}                                                                                                       \
                                                                                                        \
static inline T                                                                                         \
lamb_direction_##T(const struct call_##T *c, struct element_##T *x, T g)                                \
{                                                                                                       \
	const T decay = c->n[OM_UPDATE_DECAY], root = moments_##T(c, x, g), u = x->s1 / c->left / root; \
                                                                                                        \
	return decay != 0 ? u + x->w * decay : u;                                                       \
}                                                                                                       \
                                                                                                        \
static inline void                                                                                      \
step_##T(const struct call_##T *c, struct element_##T *x, T g)                                          \
{                                                                                                       \
	const T mu = c->n[OM_UPDATE_MOMENTUM], decay = c->n[OM_UPDATE_DECAY];                           \
                                                                                                        \
	if (decay != 0 && c->kind != OM_ADAMW && c->kind != OM_LAMB)                                    \
		g += x->w * decay;                                                                      \
	switch (c->kind) {                                                                              \
	case OM_MOMENTUM:                                                                               \
		x->s1 = x->s1 * mu + g;                                                                 \
		x->w -= x->s1 * c->rate;                                                                \
		break;                                                                                  \
	case OM_NESTEROV:                                                                               \
		x->s1 = x->s1 * mu + g;                                                                 \
		x->w -= (g + x->s1 * mu) * c->rate;                                                     \
		break;                                                                                  \
	case OM_ADAM: case OM_ADAMW: {                                                                  \
		const T root = moments_##T(c, x, g);                                                    \
		if (c->kind == OM_ADAMW && decay != 0)                                                  \
			x->w *= 1 - c->rate * decay;                                                    \
		x->w -= x->s1 / root * c->step;                                                         \
		break;                                                                                  \
	}                                                                                               \
	case OM_RMSPROP: case OM_ADAGRAD:                                                               \
		x->s1 = c->kind == OM_ADAGRAD ? x->s1 + g * g                                           \
			: x->s1 * c->n[OM_UPDATE_BETA2] + g * g * c->n[OM_UPDATE_LEFT2];                \
		x->w -= g / (SQRT(x->s1) + c->n[OM_UPDATE_EPSILON]) * c->rate;                          \
		break;                                                                                  \
	case OM_LAMB:                                                                                   \
		x->w -= lamb_direction_##T(c, x, g) * c->trust * c->rate;                               \
		break;                                                                                  \
	default:                                                                                        \
		x->w -= g * c->rate;                                                                    \
	}                                                                                               \
}                                                                                                       \
                                                                                                        \
static T                                                                                                \
scalar_##T(const om_op_context *c, uint32_t k)                                                          \
{                                                                                                       \
	return om_has_in(c, k) ? *(const T *)c->in[k].data : 0;                                         \
}                                                                                                       \
                                                                                                        \
static struct element_##T                                                                               \
element_##T(const om_op_context *c, int64_t i)                                                          \
{                                                                                                       \
	struct element_##T x = {.w = ((const T *)c->in[OM_UPDATE_W].data)[i]};                          \
                                                                                                        \
	if (c->op->nout > 1)                                                                            \
		x.s1 = ((const T *)c->in[OM_UPDATE_S1].data)[i];                                        \
	if (c->op->nout > 2)                                                                            \
		x.s2 = ((const T *)c->in[OM_UPDATE_S2].data)[i];                                        \
	return x;                                                                                       \
}                                                                                                       \
                                                                                                        \
/* |w| / |u|, or 1 where either is zero. */                                                             \
static T                                                                                                \
trust_##T(const om_op_context *c, const struct call_##T *k, int64_t n)                                  \
{                                                                                                       \
	double of_w = 0, of_u = 0;                                                                      \
                                                                                                        \
	for (int64_t i = 0; i < n; i++) {                                                               \
		struct element_##T x = element_##T(c, i);                                               \
		const double u = lamb_direction_##T(k, &x, ((const T *)c->in[OM_UPDATE_DW].data)[i]);   \
		of_w += (double)x.w * x.w;                                                              \
		of_u += u * u;                                                                          \
	}                                                                                               \
	return (T)sqrt(of_w) > 0 && (T)sqrt(of_u) > 0 ? (T)sqrt(of_w) / (T)sqrt(of_u) : 1;              \
}                                                                                                       \
                                                                                                        \
static void                                                                                             \
update_##T(om_op_context *c)                                                                            \
{                                                                                                       \
	const struct om_update_attrs *a = c->state;                                                     \
	const int64_t n = om_shape_count(&c->out[0].shape);                                             \
	struct call_##T k = {a->kind, scalar_##T(c, OM_UPDATE_RATE), scalar_##T(c, OM_UPDATE_STEP),     \
		scalar_##T(c, OM_UPDATE_ROOT), scalar_##T(c, OM_UPDATE_LEFT), 1, {0}};                  \
                                                                                                        \
	memcpy(k.n, a->number, sizeof k.n);                                                             \
	if (a->kind == OM_LAMB)                                                                         \
		k.trust = trust_##T(c, &k, n);                                                          \
	for (int64_t i = 0; i < n; i++) {                                                               \
		struct element_##T x = element_##T(c, i);                                               \
		step_##T(&k, &x, ((const T *)c->in[OM_UPDATE_DW].data)[i]);                             \
		((T *)c->out[0].data)[i] = x.w;                                                         \
		if (c->op->nout > 1)                                                                    \
			((T *)c->out[1].data)[i] = x.s1;                                                \
		if (c->op->nout > 2)                                                                    \
			((T *)c->out[2].data)[i] = x.s2;                                                \
	}                                                                                               \
}

FOR_TYPE(float, sqrtf)
FOR_TYPE(double, sqrt)

static om_status
update_cpu(om_op_context *c)
{
	if (c->in[OM_UPDATE_W].type == OM_FLOAT32)
		update_float(c);
	else
		update_double(c);
	return OM_OK;
}

/* ---- The definition. ---- */

static bool
update_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	(void)out;
	return (in <= OM_UPDATE_DW || in >= OM_UPDATE_S1) && om_is_sole_use(c, in);
}

static void
update_cost(const om_op_context *c, om_cost *cost)
{
	cost->flops = 6.0 * (1 + c->op->nout) * (double)om_shape_count(&c->out[0].shape);
}

static const om_attr_spec attrs[] = {
	{"optimizer", OM_ATTR_STRING, .required = true},
	{"numbers", OM_ATTR_TENSOR, .required = true},
	{0}
};

const om_opdef om_ops_update[] = {
	{.domain = OM_GRAD_DOMAIN, .name = "Update", .brief = "update of a parameter by an optimizer", .since = 1, .min_in = 2,
	 .max_in = OM_UPDATE_INPUTS, .min_out = 1, .max_out = 3, .flags = OM_IMPLEMENTS_FUNCTION, .attrs = attrs,
	 .infer = update_infer, .inplace = update_reuse, .cpu = update_cpu, .cost = update_cost,
	 .input_types = {OF_WIDE_FLOATS, LIKE(0), LIKE(0), LIKE(0), LIKE(0), LIKE(0), LIKE(0), LIKE(0)}},
	{0}
};

const om_kernel om_kernels_update[] = {
	{.domain = OM_GRAD_DOMAIN, .name = "Update", .state_bytes = sizeof(struct om_update_attrs), .prepare = om_update_prepare,
	 .run = update_cpu},
	{0}
};
