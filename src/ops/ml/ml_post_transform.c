/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of features, class labels, and transformations of scores. */
#include <config.h>

#include <math.h>

#include "opdef/columns.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/ml/ml_post_transform.h"

/* ---- Scores. ---- */

om_status
om_post_of(const om_op_context *c, om_post *post)
{
	static const char *const name[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};

	for (size_t k = 0; k < sizeof name / sizeof name[0]; k++)
		if (om_attr_is(c->op, "post_transform", name[k])) {
			*post = (om_post)k;
			return OM_OK;
		}
	return om_op_fail(c->session, OM_INVALID, c->op, "unknown post_transform");
}

double
om_logistic(double x)
{
	const double v = 1 / (1 + exp(-fabs(x)));
	return x < 0 ? 1 - v : v;
}

/* The quantile of the normal distribution, with Winitzki's approximation of the inverse of erf:
 * models were trained with this approximation, so a more precise one would differ. */
double
om_probit(double x)
{
	const double a = 0.147, y = 2 * x - 1, l = log((1 - y) * (1 + y));
	const double b = 2 / (3.14159265358979 * a) + l / 2;

	if (y == 0)
		return 0;
	return 1.41421356 * copysign(sqrt(sqrt(b * b - l / a) - b), y);
}

/* Softmax; with `keep_zero`, zeros stay zero. */
static void
softmax(double *s, int64_t n, bool keep_zero)
{
	double most = -INFINITY, sum = 0;

	for (int64_t k = 0; k < n; k++)
		most = s[k] > most ? s[k] : most;
	for (int64_t k = 0; k < n; k++) {
		s[k] = keep_zero && fabs(s[k]) <= 1e-7 ? s[k] * exp(-most) : exp(s[k] - most);
		sum += s[k];
	}
	for (int64_t k = 0; k < n; k++)
		s[k] = sum == 0 ? 0.5 : s[k] / sum;
}

void
om_post_row(om_post post, double *score, int64_t n)
{
	switch (post) {
	case OM_POST_NONE: break;
	case OM_POST_SOFTMAX: softmax(score, n, false); break;
	case OM_POST_SOFTMAX_ZERO: softmax(score, n, true); break;
	case OM_POST_LOGISTIC:
		for (int64_t k = 0; k < n; k++)
			score[k] = om_logistic(score[k]);
		break;
	case OM_POST_PROBIT:
		for (int64_t k = 0; k < n; k++)
			score[k] = om_probit(score[k]);
		break;
	}
}

/* ---- Features. ---- */

om_status
om_rows(const om_op_context *c, uint32_t k, int64_t *rows, int64_t *features)
{
	const om_shape *s = &c->in[k].shape;

	*rows = *features = OM_DIM_UNKNOWN;
	if (s->rank < 0)
		return OM_OK;
	if (s->rank != 1 && s->rank != 2)
		return om_op_fail(c->session, OM_SHAPE, c->op, "the input must have rank 1 or 2, not %d", s->rank);
	*rows = s->rank == 2 ? s->dim[0] : 1;
	*features = s->dim[s->rank - 1];
	return OM_OK;
}

om_status
om_check_features(const om_op_context *c, uint32_t k)
{
	switch (c->in[k].type) {
	case OM_FLOAT32: case OM_FLOAT64: case OM_FLOAT16: case OM_BFLOAT16: case OM_INT64: case OM_INT32:
	case OM_UNDEFINED:
		return OM_OK;
	default:
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "no kernel for element type %s",
			om_dtype_text(c->in[k].type));
	}
}

double
om_feature(const om_tensor *t, int64_t i)
{
	double v = 0;

	om_number(t->type, (const char *)t->data + (size_t)i * (om_dtype_bits(t->type) / 8), &v);
	return v;
}

/* ---- Labels. ---- */

const om_string *
om_attr_texts(const om_op *op, const char *name, size_t *n)
{
	const om_attr *a = om_attr_find(op, name);

	*n = a && a->kind == OM_ATTR_STRINGS ? a->n : 0;
	return *n ? a->s : NULL;
}

om_status
om_labels_of(const om_op_context *c, const char *ints, const char *strings, om_labels *l)
{
	size_t ni, ns;
	const int64_t *i = om_attr_ints(c->op, ints, &ni);
	const om_string *s = om_attr_texts(c->op, strings, &ns);

	if (ni && ns)
		return om_op_fail(c->session, OM_INVALID, c->op, "has both string and integer labels");
	*l = (om_labels){.type = ns ? OM_STRING : OM_INT64, .n = (int64_t)(ns ? ns : ni), .i = i, .s = s};
	return OM_OK;
}

void
om_label_put(const om_labels *l, int64_t k, const om_tensor *out, int64_t at)
{
	if (!out->data)
		return;
	if (l->type == OM_STRING)
		((om_string *)out->data)[at] = k < l->n ? l->s[k] : (om_string){"", 0};
	else
		((int64_t *)out->data)[at] = k < l->n ? l->i[k] : k;
}

void
om_give_classes(om_op_context *c, const om_labels *l, int64_t rows, int64_t n)
{
	const om_shape *x = &c->in[0].shape;

	c->out[0].type = l->type;
	c->out[0].shape = om_shape_open(1);
	c->out[0].shape.dim[0] = rows;
	c->out[1].type = OM_FLOAT32;
	c->out[1].shape = om_shape_open(2);
	c->out[1].shape.dim[0] = rows;
	c->out[1].shape.dim[1] = n;
	if (x->rank == 2)
		c->out[0].shape.sym[0] = c->out[1].shape.sym[0] = x->sym[0];
}

void
om_opdef_cost(const om_op_context *c, double each, om_cost *cost)
{
	const om_shape *x = &c->in[0].shape;

	cost->flops = each * (x->rank == 2 ? (double)x->dim[0] : 1);
}
