/* SPDX-License-Identifier: Apache-2.0 */
/* fuse-norm: normalizations, softmax and activations that an exporter decomposed become one op again.
 *
 * Each rule starts at the last op of a decomposition and follows the operands.  Products are matched as lists of
 * factors, whatever their order and association.  Layer and root mean square normalizations are recognized without
 * scale and bias at first: a product and a sum with a row afterwards become their scale and bias.
 *
 * The live bytes do not rise: what is fused reads the input x of the decomposition instead of values of its size.
 * Results are those of the decomposition but for rounding. */
#include <config.h>

#include <math.h>
#include <string.h>

#include "base/shape.h"
#include "ir/query.h"
#include "lower/layout.h"
#include "onnxmem/pass.h"
#include "opdef/op_context.h"
#include "opdef/rewrite_internal.h"

enum { FACTORS = 6 };

/* ---- Values. ---- */

static bool
is_float(const om_value *v)
{
	return v && om_lower_is_float(v);
}

/* The op that computes a float value, if it is of ai.onnx and of this type. */
static const om_op *
op_of(const om_value *v, const char *type)
{
	const om_op *op = v ? v->def : NULL;

	return op && is_float(v) && op->opdef && *op->domain == '\0' && strcmp(op->type, type) == 0 ? op : NULL;
}

/* The same if only this op reads the value. */
static const om_op *
sole(const om_value *v, const char *type)
{
	return v && v->nuse == 1 ? op_of(v, type) : NULL;
}

/* A constant of one element. */
static bool
number_of(const om_value *v, double *is)
{
	if (!is_float(v) || !v->is_const || v->is_overridable || !v->data || !v->data->data || om_shape_count(&v->shape) != 1)
		return false;
	*is = (double)*(const float *)v->data->data;
	return true;
}

static bool
is_number(const om_value *v, double number)
{
	double is;

	return number_of(v, &is) && fabs(is - number) <= 1e-4 * fabs(number);
}

/* Of the operands of `op`, the one beside a constant, which is set. */
static om_value *
beside_number(const om_op *op, double *is)
{
	for (uint32_t k = 0; k < 2; k++)
		if (number_of(op->in[k], is))
			return op->in[1 - k];
	return NULL;
}

/* ---- Products. ---- */

struct product {
	om_value *factor[FACTORS]; /* without constants of one element */
	uint32_t n;
	double number;            /* the product of these */
};

/* Appends the factors of a value that has no other reader. */
static bool
add_factors(struct product *p, om_value *v, bool is_root)
{
	const om_op *mul = is_root ? op_of(v, "Mul") : sole(v, "Mul"), *div = is_root ? op_of(v, "Div") : sole(v, "Div");
	double number;

	if (mul)
		return add_factors(p, mul->in[0], false) && add_factors(p, mul->in[1], false);
	if (div && number_of(div->in[1], &number) && number != 0) {
		p->number /= number;
		return add_factors(p, div->in[0], false);
	}
	if (number_of(v, &number)) {
		p->number *= number;
		return true;
	}
	if (p->n == FACTORS)
		return false;
	p->factor[p->n++] = v;
	return true;
}

/* False if the value is no product of at most FACTORS values. */
static bool
product_of(om_value *v, struct product *p)
{
	*p = (struct product){.number = 1};
	return (op_of(v, "Mul") || op_of(v, "Div")) && add_factors(p, v, true);
}

/* As product_of(), or the value itself. */
static bool
factors_of(om_value *v, struct product *p)
{
	*p = (struct product){.number = 1};
	return add_factors(p, v, false);
}

static bool
has_number(const struct product *p, double number)
{
	return fabs(p->number - number) <= 1e-4 * fabs(number);
}

/* The operand of 1 + f(...), if nothing else reads the sum and f(...). */
static om_value *
one_plus(const om_value *v, const char *type)
{
	const om_op *add = sole(v, "Add");
	double number;
	const om_value *inner = add ? beside_number(add, &number) : NULL;
	const om_op *f = inner && fabs(number - 1) < 1e-6 ? sole(inner, type) : NULL;

	return f ? f->in[0] : NULL;
}

/* ---- Activations. ---- */

/* x / sqrt(2). */
static bool
is_over_root(om_value *v, const om_value *x)
{
	struct product p;

	return factors_of(v, &p) && p.n == 1 && p.factor[0] == x && has_number(&p, sqrt(0.5));
}

/* Is `v` x to the power `n`, times `number`? */
static bool
is_power(om_value *v, const om_value *x, uint32_t n, double number)
{
	struct product p;
	uint32_t degree = 0;

	if (!factors_of(v, &p) || !has_number(&p, number))
		return false;
	for (uint32_t k = 0; k < p.n; k++) {
		const om_op *pow = sole(p.factor[k], "Pow");
		double exponent = 0;
		if (p.factor[k] == x)
			degree++;
		else if (pow && pow->in[0] == x && number_of(pow->in[1], &exponent) && (exponent == 2 || exponent == 3))
			degree += (uint32_t)exponent;
		else
			return false;
	}
	return degree == n;
}

/* sqrt(2 / pi) (x + 0.044715 x^3), or with x as a factor. */
static bool
is_tanh_argument(om_value *v, const om_value *x)
{
	struct product p;

	if (!factors_of(v, &p) || !has_number(&p, 0.7978845608) || p.n == 0 || p.n > 2)
		return false;
	om_value *other = p.factor[p.n == 2 && p.factor[0] == x];
	const om_op *add = sole(other, "Add");
	double one;
	if (!add || (p.n == 2 && p.factor[0] != x && p.factor[1] != x))
		return false;
	if (p.n == 2) {
		om_value *square = beside_number(add, &one);
		return square && fabs(one - 1) < 1e-6 && is_power(square, x, 2, 0.044715);
	}
	return (add->in[0] == x && is_power(add->in[1], x, 3, 0.044715))
	    || (add->in[1] == x && is_power(add->in[0], x, 3, 0.044715));
}

static om_value *
gelu(om_rewriter *w, const om_op *root, om_value *x, bool is_tanh)
{
	om_value *y = om_rewrite_op_of(w, root, "", "Gelu", 20, 1, &x);

	if (is_tanh)
		om_op_add_attr(om_rewrite_prog(w), y->def, &OM_MAKE_STRING("approximate", "tanh"));
	return y;
}

/* clip(x + 3, 0, 6). */
static bool
is_relu6_of(const om_value *v, const om_value *x)
{
	const om_op *clip = sole(v, "Clip"), *add = clip ? sole(clip->in[0], "Add") : NULL;
	double number;

	if (!add || beside_number(add, &number) != x || fabs(number - 3) > 1e-6)
		return false;
	if (clip->version < 11)
		return om_attr_float(clip, "min") == 0 && om_attr_float(clip, "max") == 6;
	return clip->nin == 3 && is_number(clip->in[1], 0) && is_number(clip->in[2], 6);
}

/* HardSigmoid(x) with the parameters of HardSwish. */
static bool
is_hard_sigmoid_of(const om_value *v, const om_value *x)
{
	const om_op *op = sole(v, "HardSigmoid");

	return op && op->in[0] == x && fabs((double)om_attr_float(op, "alpha") - 1 / 6.0) < 1e-5
	    && fabs((double)om_attr_float(op, "beta") - 0.5) < 1e-6;
}

/* x sigmoid(a x). */
static om_value *
build_swish(om_rewriter *w, const om_op *root, om_value *x, om_value *gate)
{
	const om_op *sigmoid = sole(gate, "Sigmoid");
	struct product p;

	if (!sigmoid || !factors_of(sigmoid->in[0], &p) || p.n != 1 || p.factor[0] != x)
		return NULL;
	if (p.number == 1)
		return om_rewrite_op_of(w, root, OM_CPU_DOMAIN, "Silu", 1, 1, &x);
	om_value *y = om_rewrite_op_of(w, root, "", "Swish", 24, 1, &x);
	om_op_add_attr(om_rewrite_prog(w), y->def, &OM_MAKE_FLOAT("alpha", (float)p.number));
	return y;
}

/* x times a function of x. */
static om_value *
build_gated(om_rewriter *w, const om_op *root, const struct product *p, om_value *x, om_value *gate)
{
	om_value *erf = has_number(p, 0.5) ? one_plus(gate, "Erf") : NULL;
	om_value *tanh = has_number(p, 0.5) ? one_plus(gate, "Tanh") : NULL;
	const om_op *mish = sole(gate, "Tanh"), *softplus = mish ? sole(mish->in[0], "Softplus") : NULL;

	if (erf && is_over_root(erf, x))
		return gelu(w, root, x, false);
	if (tanh && is_tanh_argument(tanh, x))
		return gelu(w, root, x, true);
	if ((has_number(p, 1 / 6.0) && is_relu6_of(gate, x)) || (has_number(p, 1) && is_hard_sigmoid_of(gate, x)))
		return om_rewrite_op_of(w, root, "", "HardSwish", 14, 1, &x);
	if (has_number(p, 1) && softplus && softplus->in[0] == x)
		return om_rewrite_op_of(w, root, "", "Mish", 18, 1, &x);
	return p->number == 1 ? build_swish(w, root, x, gate) : NULL;
}

static om_value *
build_activation(om_rewriter *w, const om_match *m)
{
	struct product p;
	om_value *y = NULL;

	if (!product_of(m->value[0], &p) || p.n != 2)
		return NULL;
	for (uint32_t k = 0; k < 2 && !y; k++)
		if (om_shape_equal(&p.factor[k]->shape, &m->value[0]->shape))
			y = build_gated(w, m->value[0]->def, &p, p.factor[k], p.factor[1 - k]);
	return y;
}

/* ---- Reductions of x along the last axis. ---- */

/* The operand of a reduction of the last axis that keeps it. */
static om_value *
reduced_by(const om_value *v, const char *type)
{
	const om_op *op = op_of(v, type);
	const om_value *axes = op && op->nin > 1 ? op->in[1] : NULL;
	const int64_t *axis = NULL;
	size_t n = 0;

	if (!op || om_attr_int(op, "keepdims") == 0)
		return NULL;
	if (axes && axes->data && axes->data->data && axes->data->type == OM_INT64 && axes->is_const && !axes->is_overridable) {
		axis = axes->data->data;
		n = (size_t)om_shape_count(&axes->data->shape);
	} else if (!axes && om_attr_has(op, "axes")) {
		axis = om_attr_ints(op, "axes", &n);
	}
	return n == 1 && op->in[0]->shape.rank > 0 && (axis[0] == -1 || axis[0] == op->in[0]->shape.rank - 1) ? op->in[0] : NULL;
}

/* The value of which `v` is the square. */
static om_value *
squared(const om_value *v)
{
	const om_op *pow = op_of(v, "Pow"), *mul = op_of(v, "Mul");

	if (pow && is_number(pow->in[1], 2))
		return pow->in[0];
	return mul && mul->in[0] == mul->in[1] ? mul->in[0] : NULL;
}

/* x of x - mean(x). */
static om_value *
centered(const om_value *v)
{
	const om_op *sub = op_of(v, "Sub");

	return sub && reduced_by(sub->in[1], "ReduceMean") == sub->in[0] ? sub->in[0] : NULL;
}

/* Is `v` the mean of (x - mean(x))^2, or of x^2 without the square of the mean, also bounded by 0?  The latter is
 * computed in another way, which does not cancel. */
static bool
is_variance(const om_value *v, const om_value *x)
{
	const om_op *max = op_of(v, "Max"), *relu = op_of(v, "Relu"), *sub = op_of(v, "Sub");
	const om_value *square = squared(reduced_by(v, "ReduceMean"));
	double zero;

	if (square)
		return centered(square) == x;
	if (max && max->nin == 2) {
		const om_value *inner = beside_number(max, &zero);
		return inner && zero == 0 && is_variance(inner, x);
	}
	if (relu)
		return is_variance(relu->in[0], x);
	return sub && squared(reduced_by(sub->in[0], "ReduceMean")) == x && reduced_by(squared(sub->in[1]), "ReduceMean") == x;
}

/* v of v + epsilon. */
static om_value *
regularized(const om_value *v, double *epsilon)
{
	const om_op *add = op_of(v, "Add");

	return add ? beside_number(add, epsilon) : NULL;
}

/* v of 1 / sqrt(v + epsilon). */
static om_value *
inverse_root(const om_value *v, double *epsilon)
{
	const om_op *reciprocal = op_of(v, "Reciprocal"), *div = op_of(v, "Div"), *pow = op_of(v, "Pow");
	const om_op *sqrt = reciprocal ? op_of(reciprocal->in[0], "Sqrt")
		: div && is_number(div->in[0], 1) ? op_of(div->in[1], "Sqrt") : NULL;

	if (sqrt)
		return regularized(sqrt->in[0], epsilon);
	return pow && is_number(pow->in[1], -0.5) ? regularized(pow->in[0], epsilon) : NULL;
}

/* ---- Normalizations. ---- */

/* `n` ones or zeros. */
static om_value *
filled(om_rewriter *w, const char *stem, int64_t n, float value)
{
	const om_tensor t = {.type = OM_FLOAT32, .shape = om_shape_of(1, &n), .data = &value, .splat = true};

	return om_rewrite_const(w, stem, &t);
}

/* Do only `op` and squares read x - mean(x)?  Then it is not live afterwards. */
static bool
is_read_here(const om_value *d, const om_op *op)
{
	bool only = true;

	for (const om_use *u = d->first_use; u; u = u->next)
		only &= u->op && (u->op == op || squared(u->op->out[0]) == d);
	return only;
}

/* Of d / sqrt(v + epsilon): d is x - mean(x) and v is its variance, or d is x and v is the mean of its square. */
static om_value *
build_row_norm(om_rewriter *w, const om_op *root, om_value *d, const om_value *v, double epsilon)
{
	om_value *x = centered(d), *in[2];
	const bool is_layer = x && is_variance(v, x);

	if (is_layer ? !is_read_here(d, root) : squared(reduced_by(v, "ReduceMean")) != d)
		return NULL;
	in[0] = is_layer ? x : d;
	if (!om_shape_equal(&in[0]->shape, &root->out[0]->shape))
		return NULL;
	in[1] = filled(w, "ones", in[0]->shape.dim[in[0]->shape.rank - 1], 1);
	om_value *y = om_rewrite_op_of(w, root, "", is_layer ? "LayerNormalization" : "RMSNormalization", is_layer ? 17 : 23, 2, in);
	om_op_add_attr(om_rewrite_prog(w), y->def, &OM_MAKE_FLOAT("epsilon", (float)epsilon));
	return y;
}

static om_value *
build_quotient_norm(om_rewriter *w, const om_match *m)
{
	const om_op *div = m->value[0]->def, *sqrt = op_of(div->in[1], "Sqrt");
	double epsilon;
	const om_value *v = sqrt ? regularized(sqrt->in[0], &epsilon) : NULL;

	return v && is_float(m->value[0]) ? build_row_norm(w, div, div->in[0], v, epsilon) : NULL;
}

/* Also of d (s / sqrt(...)): the other factor is the scale. */
static om_value *
build_product_norm(om_rewriter *w, const om_match *m)
{
	const om_op *root = m->value[0]->def;
	double epsilon;

	for (uint32_t k = 0; is_float(m->value[0]) && k < 2; k++) {
		const om_op *inner = op_of(root->in[k], "Mul");
		const om_value *v = inverse_root(root->in[k], &epsilon);
		if (v)
			return build_row_norm(w, root, root->in[1 - k], v, epsilon);
		for (uint32_t i = 0; inner && i < 2; i++) {
			v = inverse_root(inner->in[i], &epsilon);
			om_value *in[] = {v ? build_row_norm(w, root, root->in[1 - k], v, epsilon) : NULL, inner->in[1 - i]};
			if (in[0])
				return om_rewrite_op_of(w, root, "", "Mul", 14, 2, in);
		}
	}
	return NULL;
}

/* Are all elements of a constant this number? */
static bool
is_filled(const om_value *v, float number)
{
	const int64_t n = is_float(v) && v->is_const && !v->is_overridable && v->data && v->data->data
		? v->data->splat ? 1 : om_shape_count(&v->shape) : 0;
	bool same = n > 0;

	for (int64_t k = 0; k < n && same; k++)
		same = ((const float *)v->data->data)[k] == number;
	return same;
}

/* The normalization that computes `v`, with the scale 1 and without a bias. */
static const om_op *
bare_norm(const om_value *v, bool is_scaled)
{
	const om_op *norm = sole(v, "LayerNormalization");

	if (!norm && !is_scaled)
		norm = sole(v, "RMSNormalization");
	return norm && norm->nin == 2 && norm->nout == 1 && (is_scaled || is_filled(norm->in[1], 1)) ? norm : NULL;
}

/* A row of n elements, or a constant that is one but for leading dims. */
static om_value *
row_of(om_rewriter *w, om_value *v, int64_t n)
{
	if (!is_float(v) || om_shape_count(&v->shape) != n || v->shape.rank < 1 || v->shape.dim[v->shape.rank - 1] != n)
		return NULL;
	if (v->shape.rank == 1)
		return v;
	if (!v->is_const || v->is_overridable || !v->data || !v->data->data)
		return NULL;
	om_tensor t = *v->data;
	t.shape = om_shape_of(1, &n);
	return om_rewrite_const(w, v->name, &t);
}

/* The normalization with its scale, or with its bias. */
static om_value *
build_with_row(om_rewriter *w, const om_op *root, bool is_bias)
{
	for (uint32_t k = 0; is_float(root->out[0]) && k < 2; k++) {
		const om_op *norm = bare_norm(root->in[k], is_bias);
		const om_value *x = norm ? norm->in[0] : NULL;
		if (!norm || om_attr_int(norm, "axis") != -1 || !om_shape_equal(&x->shape, &root->out[0]->shape))
			continue;
		om_value *row = row_of(w, root->in[1 - k], x->shape.dim[x->shape.rank - 1]);
		if (!row)
			continue;
		om_value *in[] = {norm->in[0], is_bias ? norm->in[1] : row, row};
		om_value *y = om_rewrite_op_of(w, norm, "", norm->type, norm->version, is_bias ? 3 : 2, in);
		for (uint32_t i = 0; i < norm->nattr; i++)
			om_op_add_attr(om_rewrite_prog(w), y->def, &norm->attr[i]);
		return y;
	}
	return NULL;
}

static om_value *
build_scale(om_rewriter *w, const om_match *m)
{
	return build_with_row(w, m->value[0]->def, false);
}

static om_value *
build_bias(om_rewriter *w, const om_match *m)
{
	return build_with_row(w, m->value[0]->def, true);
}

/* ---- Groups: the channels of an image are reshaped to groups for an instance normalization. ---- */

static om_value *
build_group_norm(om_rewriter *w, const om_match *m)
{
	const om_value *y = m->value[0];
	const om_op *back = y->def, *norm = sole(back->in[0], "InstanceNormalization");
	const om_op *to = norm ? sole(norm->in[0], "Reshape") : NULL;

	if (!to || !is_float(y) || y->shape.rank < 3 || !om_shape_equal(&to->in[0]->shape, &y->shape)
	    || !is_filled(norm->in[1], 1) || !is_filled(norm->in[2], 0))
		return NULL;
	const om_shape *grouped = &norm->in[0]->shape;
	const int64_t channels = y->shape.dim[1];
	if (grouped->rank < 2 || grouped->dim[0] != y->shape.dim[0] || grouped->dim[1] < 1 || channels % grouped->dim[1])
		return NULL;
	om_value *in[] = {to->in[0], filled(w, "ones", channels, 1), filled(w, "zeros", channels, 0)};
	om_value *fused = om_rewrite_op_of(w, norm, "", "GroupNormalization", 21, 3, in);
	om_op_add_attr(om_rewrite_prog(w), fused->def, &OM_MAKE_FLOAT("epsilon", om_attr_float(norm, "epsilon")));
	om_op_add_attr(om_rewrite_prog(w), fused->def, &OM_MAKE_INT("num_groups", grouped->dim[1]));
	return fused;
}

/* A constant with an element for each channel of `y`, as a list. */
static om_value *
channels_of(om_rewriter *w, const om_value *v, const om_value *y)
{
	const int64_t n = y->shape.dim[1];
	const int at = is_float(v) ? v->shape.rank - (y->shape.rank - 1) : -1;

	if (at < 0 || om_shape_count(&v->shape) != n || v->shape.dim[at] != n || !v->is_const || v->is_overridable || !v->data
	    || !v->data->data)
		return NULL;
	om_tensor t = *v->data;
	t.shape = om_shape_of(1, &n);
	return om_rewrite_const(w, v->name, &t);
}

static om_value *
build_with_channels(om_rewriter *w, const om_op *root, bool is_bias)
{
	for (uint32_t k = 0; is_float(root->out[0]) && k < 2; k++) {
		const om_op *norm = sole(root->in[k], "GroupNormalization");
		if (!norm || norm->version < 21 || !is_filled(norm->in[2], 0) || (!is_bias && !is_filled(norm->in[1], 1))
		    || !om_shape_equal(&norm->in[0]->shape, &root->out[0]->shape))
			continue;
		om_value *list = channels_of(w, root->in[1 - k], root->out[0]);
		if (!list)
			continue;
		om_value *in[] = {norm->in[0], is_bias ? norm->in[1] : list, is_bias ? list : norm->in[2]};
		return om_rewrite_op(w, norm, NULL, 3, in);
	}
	return NULL;
}

static om_value *
build_group_scale(om_rewriter *w, const om_match *m)
{
	return build_with_channels(w, m->value[0]->def, false);
}

static om_value *
build_group_bias(om_rewriter *w, const om_match *m)
{
	return build_with_channels(w, m->value[0]->def, true);
}

/* ---- Softmax: exp(x - max(x)) over the sum. ---- */

static om_value *
build_softmax(om_rewriter *w, const om_match *m)
{
	const om_op *div = m->value[0]->def, *exp = op_of(div->in[0], "Exp");
	const om_op *sub = exp ? op_of(exp->in[0], "Sub") : NULL;

	if (!sub || !is_float(m->value[0]) || reduced_by(div->in[1], "ReduceSum") != div->in[0]
	    || reduced_by(sub->in[1], "ReduceMax") != sub->in[0])
		return NULL;
	om_value *y = om_rewrite_op_of(w, div, "", "Softmax", 13, 1, (om_value *[]){sub->in[0]});
	om_op_add_attr(om_rewrite_prog(w), y->def, &OM_MAKE_INT("axis", -1));
	return y;
}

/* ---- The rules. ---- */

static const om_pattern
	add = {.kind = OM_MATCH_OP, .type = "Add", .since = 7},
	div_ = {.kind = OM_MATCH_OP, .type = "Div", .since = 7},
	mul = {.kind = OM_MATCH_OP, .type = "Mul", .since = 7},
	reshape = {.kind = OM_MATCH_OP, .type = "Reshape"};

/* Each rule counts under its name. */
static const om_rule rules[] = {
	{"activations", &mul, build_activation},
	{"activations", &div_, build_activation},
	{"softmax", &div_, build_softmax},
	{"norms", &div_, build_quotient_norm},
	{"norms", &mul, build_product_norm},
	{"scales", &mul, build_scale},
	{"biases", &add, build_bias},
	{"groups", &reshape, build_group_norm},
	{"scales", &mul, build_group_scale},
	{"biases", &add, build_group_bias},
};

enum { NRULE = sizeof rules / sizeof rules[0] };

static om_status
run(om_run *r, om_prog *p)
{
	uint64_t applied[NRULE];

	OM_TRY(om_rewrite(r->session, p, rules, NRULE, applied));
	for (int k = 0; k < NRULE; k++)
		om_count(r, rules[k].name, applied[k]);
	return OM_OK;
}

static const om_pass_counter counters[] = {
	{"activations", "Gelu, Silu, Swish, HardSwish and Mish"},
	{"softmax", "Softmax"},
	{"norms", "layer and root mean square normalizations"},
	{"groups", "group normalizations"},
	{"scales", "products that became the scale of a normalization"},
	{"biases", "sums that became the bias of a normalization"},
	{0}
};

OM_PASS(
	.name = "fuse-norm",
	.brief = "recognize decomposed normalizations, softmax and activations",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES,
	.counters = counters,
	.by_sizes = true,
	.run = run)
