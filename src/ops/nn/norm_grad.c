/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormalizationGrad: the gradients of BatchNormalization in training mode.
 *
 * With h = (x - mean) r, where r is the reciprocal standard deviation of the n elements of a channel:
 *
 *     dx = scale r (dy - sum(dy) / n - (x - mean) r^2 sum(dy (x - mean)) / n)
 *     dscale = r sum(dy (x - mean)), dbias = sum(dy)
 *
 * There are three passes over a channel: for the mean, for the other sums, for dx.  All elements have
 * then been read, so dx may be computed in place over x or dy.  The decomposed form materializes
 * x - mean, two products with it, and the terms of dx. */
#include <config.h>

#include <math.h>

#include "opdef/gradient_op.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "opdef/numbers.h"

enum { DY, X, SCALE };

static const char *
check_shapes(const om_op_context *c)
{
	const om_shape *x = &c->in[X].shape, *scale = &c->in[SCALE].shape;

	if (x->rank >= 0 && x->rank < 2)
		return "the input has no channel axis";
	if (!om_shape_agree(x, &c->in[DY].shape))
		return "dY does not have the shape of the input";
	if (scale->rank >= 0 && (scale->rank != 1 || (x->rank > 0 && !om_dims_agree(scale->dim[0], x->dim[1]))))
		return "scale must have one element for each channel";
	return NULL;
}

static om_status
batch_infer(om_op_context *c)
{
	const int64_t *wrt = om_attr_ints(c->op, "wrt", NULL);

	if (om_attr_int(c->op, "training_mode") == 0)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "only training_mode=1 has a kernel");
	const char *bad = om_fused_wrong_wrt(c);
	if (!bad)
		bad = check_shapes(c);
	for (uint32_t k = 0; k < c->op->nout && !bad; k++) {
		c->out[k].type = c->in[X].type;
		c->out[k].shape = wrt[k] == 0 ? c->in[X].shape : c->in[SCALE].shape;
	}
	return bad ? om_wrong(c, bad) : OM_OK;
}

/* ---- One channel: a run in each sample. ---- */

struct channel {
	int64_t first, step, samples, n;  /* offset; stride between runs; number of runs; elements per run */
	double mean, spread;              /* reciprocal standard deviation */
	double sum_dy, sum_dyd;
};

enum { LANES = 8 };

/* Sums use LANES accumulators, which are added to a double per block: the order is the same on all
 * machines. */
#define SUMS(name, type)                                                       \
static void                                                                    \
name(const type *dy, const type *x, int64_t n, type mean, double sum[4])       \
{                                                                              \
	type a[4][LANES] = {{0}};                                              \
	int64_t i = 0;                                                         \
	for (; i + LANES <= n; i += LANES)                                     \
		for (int l = 0; l < LANES; l++) {                              \
			const type d = x[i + l] - mean, g = dy[i + l];         \
			a[0][l] += d;                                          \
			a[1][l] += d * d;                                      \
			a[2][l] += g;                                          \
			a[3][l] += g * d;                                      \
		}                                                              \
	for (; i < n; i++) {                                                   \
		const type d = x[i] - mean, g = dy[i];                         \
		a[0][i % LANES] += d;                                          \
		a[1][i % LANES] += d * d;                                      \
		a[2][i % LANES] += g;                                          \
		a[3][i % LANES] += g * d;                                      \
	}                                                                      \
	for (int k = 0; k < 4; k++)                                            \
		for (int l = 0; l < LANES; l++)                                \
			sum[k] += (double)a[k][l];                             \
}
SUMS(sums_floats, float)
SUMS(sums_doubles, double)

enum { PIECE = 1024 };

OM_INLINE void
add_sums(om_dtype t, const om_op_context *c, const struct channel *v, double mean, double sum[4])
{
	for (int64_t s = 0; s < v->samples; s++)
		for (int64_t i = 0; i < v->n; i += PIECE) {
			const int64_t at = v->first + s * v->step + i, n = v->n - i < PIECE ? v->n - i : PIECE;
			if (t == OM_FLOAT32)
				sums_floats((const float *)c->in[DY].data + at, (const float *)c->in[X].data + at, n, (float)mean, sum);
			else
				sums_doubles((const double *)c->in[DY].data + at, (const double *)c->in[X].data + at, n, mean, sum);
		}
}

struct batch {
	float epsilon;
	om_fused_outs outs;
};

static const om_attr_field batch_fields[] = {OM_FIELD(struct batch, FLOAT, epsilon), {0}};

/* The first pass computes the mean only; the second one sums around it, which avoids subtracting large
 * sums.  The error of the mean is the sum of the differences, and is corrected. */
OM_INLINE void
look_at(om_dtype t, const om_op_context *c, struct channel *v)
{
	const double count = (double)v->samples * (double)v->n;
	double first[4] = {0}, sum[4] = {0};

	add_sums(t, c, v, 0, first);
	v->mean = first[0] / count;
	if (t == OM_FLOAT32)
		v->mean = (double)(float)v->mean;
	add_sums(t, c, v, v->mean, sum);
	const double off = sum[0] / count;
	v->mean += off;
	v->sum_dy = sum[2];
	v->sum_dyd = sum[3] - off * sum[2];
	const double variance = sum[1] / count - off * off;
	v->spread = 1 / sqrt((variance > 0 ? variance : 0) + (double)((const struct batch *)c->state)->epsilon);
}

OM_INLINE void
give_dx(om_dtype t, const om_op_context *c, const struct channel *v, double scale, void *dx)
{
	const double count = (double)v->samples * (double)v->n, a = scale * v->spread;
	const double b = a * v->spread * v->spread * v->sum_dyd / count, off = a * v->sum_dy / count - b * v->mean;

	for (int64_t s = 0; s < v->samples; s++) {
		const int64_t at = v->first + s * v->step;
		if (t == OM_FLOAT32) {
			const float *dy = (const float *)c->in[DY].data + at, *x = (const float *)c->in[X].data + at;
			const float fa = (float)a, fb = (float)b, mean = (float)v->mean;
			const float rest = (float)(a * v->sum_dy / count + b * ((double)mean - v->mean));
			float *to = (float *)dx + at;
			for (int64_t i = 0; i < v->n; i++)
				to[i] = fa * dy[i] - fb * (x[i] - mean) - rest;
			continue;
		}
		const double *dy = (const double *)c->in[DY].data + at, *x = (const double *)c->in[X].data + at;
		for (int64_t i = 0; i < v->n; i++)
			((double *)dx)[at + i] = a * dy[i] - b * x[i] - off;
	}
}

OM_INLINE void
batch(om_dtype t, const om_op_context *c)
{
	const om_shape *x = &c->in[X].shape;
	const int64_t n = om_shape_span(x, 2, x->rank), channels = x->dim[1];
	const om_fused_outs *outs = &((const struct batch *)c->state)->outs;
	void *dx = om_fused_data(c, outs, 0), *dscale = om_fused_data(c, outs, 1), *db = om_fused_data(c, outs, 2);

	for (int64_t k = 0; k < channels; k++) {
		struct channel v = {.first = k * n, .step = channels * n, .samples = x->dim[0], .n = n};
		look_at(t, c, &v);
		if (dscale)
			om_put(t, dscale, k, v.sum_dyd * v.spread);
		if (db)
			om_put(t, db, k, v.sum_dy);
		if (dx)
			give_dx(t, c, &v, om_get(t, c->in[SCALE].data, k), dx);
	}
}

static om_status
batch_prepare(om_op_context *c, void **state)
{
	const char *bad = check_shapes(c);

	((struct batch *)*state)->outs = om_fused_find(c);
	return bad ? om_wrong(c, bad) : OM_OK;
}

static om_status
batch_cpu(om_op_context *c)
{
	if (c->in[X].type == OM_FLOAT32)
		batch(OM_FLOAT32, c);
	else
		batch(OM_FLOAT64, c);
	return OM_OK;
}

static bool
batch_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	return (in == DY || in == X) && om_fused_out(c, 0) == (int)out;
}

static void
batch_cost(const om_op_context *c, om_cost *cost)
{
	cost->flops = (om_fused_out(c, 0) >= 0 ? 12 : 7) * (double)om_shape_count(&c->in[X].shape);
}

static const om_attr_spec batch_attrs[] = {
	{"epsilon", OM_ATTR_FLOAT, .f = 1e-5f}, {"momentum", OM_ATTR_FLOAT, .f = 0.9f}, {"training_mode", OM_ATTR_INT},
	OM_FUSED_ATTRS, {0}
};

const om_opdef om_ops_norm_grad[] = {
	{.domain = OM_GRAD_DOMAIN, .name = "BatchNormalizationGrad", .brief =
		"gradients of BatchNormalization in training mode",
	 .since = 1, .min_in = 3, .max_in = 5, .min_out = 1, .max_out = 3, .flags = OM_IMPLEMENTS_FUNCTION, .attrs = batch_attrs,
	 .infer = batch_infer, .inplace = batch_reuse, .cpu = batch_cpu, .cost = batch_cost,
	 .input_types = {OF_WIDE_FLOATS, LIKE(0), LIKE(0)}},
	{0}
};

const om_kernel om_kernels_norm_grad[] = {
	{.domain = OM_GRAD_DOMAIN, .name = "BatchNormalizationGrad", .fields = batch_fields,
	 .state_bytes = sizeof(struct batch), .prepare = batch_prepare, .run = batch_cpu},
	{0}
};
