/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizations. */
#include <config.h>

#include <math.h>

#include "opdef/columns.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "ops/slices.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/nn/norm.h"

/* Sums are accumulated in double.  Every written element depends only on elements that have been read
 * before, so the kernels with an `inplace` callback may run in place. */

static bool
over_first_input(const om_op_context *c, uint32_t out, uint32_t in)
{
	return out == 0 && in == 0 && c->in[0].type == c->out[0].type && om_is_sole_use(c, 0);
}

static void
norm_cost(const om_op_context *c, om_cost *cost)
{
	cost->flops = 8.0 * (double)om_shape_count(&c->in[0].shape);
}

/* Check that an input has `n` elements. */
static om_status
check_list(const om_op_context *c, uint32_t k, int64_t n)
{
	char text[128];
	const om_shape *s = &c->in[k].shape;

	if (!om_has_in(c, k) || !om_shape_is_known(s) || n < 0 || om_shape_count(s) == n)
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op, "input %u has shape %s, expected %lld elements", k,
		om_shape_text(s, text, sizeof text), (long long)n);
}

static om_status
check_rank(const om_op_context *c, int least)
{
	if (c->in[0].shape.rank < 0 || c->in[0].shape.rank >= least)
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op, "the input has rank %d, expected at least %d",
		c->in[0].shape.rank, least);
}

/* An element of an input of any float type, as double. */
static double
number(const om_tensor *t, int64_t i)
{
	return om_get(t->type, t->data, i);
}

static bool
is_float(om_dtype t)
{
	return t == OM_FLOAT32 || t == OM_FLOAT64 || om_is_half(t);
}

static om_status
check_floats(const om_op_context *c)
{
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (om_has_in(c, k) && !is_float(c->in[k].type))
			return om_no_kernel(c, c->in[k].type);
	return OM_OK;
}

struct moments {
	double mean, variance;
};

/* Scale or bias, broadcast to the input: the strides for its elements. */
struct spread {
	const om_tensor *t;           /* NULL: absent */
	bool is_row;                  /* its shape is exactly that of the normalized axes */
	int64_t step[OM_MAX_RANK];
};

/* The prepared state; each operator uses the members of its own attributes. */
struct norm {
	double epsilon, momentum;
	bool is_uniform;              /* all inputs have the type of the first */
	bool by_element, training;    /* BatchNormalization */
	bool is_plain;                /* LayerNormalization: scale and bias are rows of the input's type */
	int64_t channels;
	int64_t volume;               /* elements of a channel of a sample */
	int64_t rows, n;              /* number of rows that are normalized; elements of a row */
	int axis;
	struct spread scale, shift;   /* LayerNormalization, RMSNormalization */
	int64_t groups;
	bool per_group;               /* one scale per group instead of per channel */
	bool square;                  /* LpNormalization uses the L2 norm */
	double alpha, beta, bias;     /* LRN */
	int64_t size;
	bool over[OM_MAX_RANK];       /* axes over which moments are computed */
	bool divide;                  /* by the standard deviation */
};

/* As number(), for an input that has type `t` if `is_uniform`. */
OM_INLINE double
number_of(om_dtype t, bool is_uniform, const om_tensor *x, int64_t i)
{
	return is_uniform ? om_get(t, x->data, i) : number(x, i);
}

static bool
is_uniform(const om_op_context *c)
{
	bool same = true;

	for (uint32_t k = 1; k < c->op->nin; k++)
		same &= !om_has_in(c, k) || c->in[k].type == c->in[0].type;
	return same;
}

/* Moments of `n` elements in two passes, since the difference of large sums is inaccurate. */
OM_INLINE struct moments
moments_of(om_dtype t, const void *x, int64_t first, int64_t n)
{
	struct moments m = {0, 0};

	for (int64_t i = 0; i < n; i++)
		m.mean += om_get(t, x, first + i);
	m.mean /= (double)n;
	for (int64_t i = 0; i < n; i++) {
		const double d = om_get(t, x, first + i) - m.mean;
		m.variance += d * d;
	}
	m.variance /= (double)n;
	return m;
}

OM_INLINE void
scale_run(om_dtype t, const om_op_context *c, int64_t first, int64_t n, double scale, double shift)
{
	if (t == OM_FLOAT32) {
		const float a = (float)scale, b = (float)shift;
		const float *x = (const float *)c->in[0].data + first;
		float *y = (float *)c->out[0].data + first;
		for (int64_t i = 0; i < n; i++)
			y[i] = x[i] * a + b;
		return;
	}
	for (int64_t i = first; i < first + n; i++)
		om_put(t, c->out[0].data, i, om_get(t, c->in[0].data, i) * scale + shift);
}

/* ---- BatchNormalization. ---- */

static const om_attr_spec batch_attrs_1[] = {
	{"consumed_inputs", OM_ATTR_INTS},
	{"epsilon", OM_ATTR_FLOAT, .f = 1e-5f},
	{"is_test", OM_ATTR_INT},
	{"momentum", OM_ATTR_FLOAT, .f = 0.9f},
	{"spatial", OM_ATTR_INT, .i = 1},
	{0}
};

static const om_attr_spec batch_attrs_7[] = {
	{"epsilon", OM_ATTR_FLOAT, .f = 1e-5f},
	{"momentum", OM_ATTR_FLOAT, .f = 0.9f},
	{"spatial", OM_ATTR_INT, .i = 1},
	{0}
};

static const om_attr_spec batch_attrs_14[] = {
	{"epsilon", OM_ATTR_FLOAT, .f = 1e-5f},
	{"momentum", OM_ATTR_FLOAT, .f = 0.9f},
	{"training_mode", OM_ATTR_INT},
	{0}
};

/* Statistics per element of a sample instead of per channel, as in old versions. */
bool
om_batch_norm_is_by_element(const om_op_context *c)
{
	return c->op->version < 9 && om_attr_int(c->op, "spatial") == 0;
}

static int64_t
statistics(const om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;

	if (x->rank < 2)
		return x->rank == 1 ? 1 : -1;
	if (!om_batch_norm_is_by_element(c))
		return x->dim[1];
	return om_shape_is_known(x) ? om_shape_span(x, 1, x->rank) : -1;
}

static om_status
batch_infer(om_op_context *c)
{
	OM_TRY(check_rank(c, 1));
	OM_TRY(om_infer_same(c));
	for (uint32_t k = 1; k < 5; k++)
		OM_TRY(check_list(c, k, statistics(c)));
	for (uint32_t k = 1; k < c->op->nout; k++) {
		c->out[k].type = c->in[3].type;
		c->out[k].shape = c->in[3].shape;
	}
	return OM_OK;
}

/* Mean and variance of channel `i` over batch and image. */
OM_INLINE struct moments
channel_moments(om_dtype t, const om_op_context *c, int64_t i, int64_t channels, int64_t volume)
{
	const int64_t batch = c->in[0].shape.dim[0];
	struct moments all = {0, 0};

	for (int64_t n = 0; n < batch; n++)
		for (int64_t k = 0; k < volume; k++)
			all.mean += om_get(t, c->in[0].data, (n * channels + i) * volume + k);
	all.mean /= (double)(batch * volume);
	for (int64_t n = 0; n < batch; n++)
		for (int64_t k = 0; k < volume; k++) {
			const double d = om_get(t, c->in[0].data, (n * channels + i) * volume + k) - all.mean;
			all.variance += d * d;
		}
	all.variance /= (double)(batch * volume);
	return all;
}

/* Update the running statistics; before version 14 also output those of this batch. */
static void
keep_running(const om_op_context *c, int64_t i, const struct moments *m)
{
	const double momentum = ((const struct norm *)c->state)->momentum;
	const double now[] = {m->mean, m->variance};

	for (uint32_t k = 1; k <= 2; k++)
		if (om_has_out(c, k))
			om_put(c->out[k].type, c->out[k].data, i,
				number(&c->in[k + 2], i) * momentum + now[k - 1] * (1 - momentum));
	for (uint32_t k = 3; k <= 4; k++)
		if (om_has_out(c, k))
			om_put(c->out[k].type, c->out[k].data, i, now[k - 3]);
}

OM_INLINE void
batch_normalize(om_dtype t, const om_op_context *c, const struct norm *s)
{
	const bool training = s->training, same = s->is_uniform;
	const int64_t batch = s->rows, channels = s->channels, volume = s->volume;
	const double epsilon = s->epsilon;

	for (int64_t i = 0; i < channels; i++) {
		struct moments m = {number_of(t, same, &c->in[3], i), number_of(t, same, &c->in[4], i)};
		if (training) {
			m = channel_moments(t, c, i, channels, volume);
			keep_running(c, i, &m);
		}
		const double scale = number_of(t, same, &c->in[1], i) / sqrt(m.variance + epsilon);
		const double shift = number_of(t, same, &c->in[2], i) - m.mean * scale;
		for (int64_t n = 0; n < batch; n++)
			scale_run(t, c, (n * channels + i) * volume, volume, scale, shift);
	}
}

static bool
gives_moments(const om_op_context *c)
{
	for (uint32_t k = 1; k < c->op->nout; k++)
		if (om_has_out(c, k))
			return true;
	return false;
}

/* Old versions train if more than one output is requested. */
bool
om_batch_norm_is_training(const om_op_context *c)
{
	if (c->op->version >= 14)
		return om_attr_int(c->op, "training_mode") != 0;
	return gives_moments(c) && (c->op->version >= 7 || om_attr_int(c->op, "is_test") == 0);
}

static om_status
batch_prepare(om_op_context *c, void **state)
{
	const om_shape *x = &c->in[0].shape;
	struct norm *s = *state;

	s->training = om_batch_norm_is_training(c);
	if (!s->training && gives_moments(c))
		return om_op_fail(c->session, OM_INVALID, c->op,
			"has outputs for mean and variance, but training_mode is 0");
	s->by_element = om_batch_norm_is_by_element(c);
	s->channels = x->rank < 2 ? 1 : statistics(c);
	s->volume = s->by_element ? 1 : om_shape_span(x, 2, x->rank);
	s->rows = x->dim[0];
	s->is_uniform = is_uniform(c);
	s->epsilon = om_attr_float(c->op, "epsilon");
	s->momentum = om_attr_float(c->op, "momentum");
	return check_floats(c);
}

static om_status
batch_cpu(om_op_context *c)
{
	EACH_FLOAT(c->in[0].type, batch_normalize(T, c, c->state), return om_no_kernel(c, c->in[0].type));
	return OM_OK;
}

/* ---- LayerNormalization, RMSNormalization. ---- */

static const om_attr_spec layer_attrs[] = {
	{"axis", OM_ATTR_INT, .i = -1},
	{"epsilon", OM_ATTR_FLOAT, .f = 1e-5f},
	{"stash_type", OM_ATTR_INT, .i = 1},
	{0}
};

static om_status
layer_axis(const om_op_context *c, int *axis)
{
	if (om_axis(om_attr_int(c->op, "axis"), c->in[0].shape.rank, axis))
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op, "axis %lld is out of range for rank %d",
		(long long)om_attr_int(c->op, "axis"), c->in[0].shape.rank);
}

/* True if `both`, the broadcast of `x` and another shape, has no more elements than `x`. */
static bool
is_within(const om_shape *both, const om_shape *x)
{
	bool ok = both->rank == x->rank;

	for (int d = 0; d < x->rank && ok; d++)
		ok = om_dims_agree(both->dim[d], x->dim[d]);
	return ok;
}

static om_status
layer_infer(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;
	int axis;

	OM_TRY(om_infer_same(c));
	for (uint32_t k = 1; k < c->op->nout; k++)
		c->out[k].type = om_attr_int(c->op, "stash_type") == OM_BFLOAT16 ? OM_BFLOAT16 : OM_FLOAT32;
	if (x->rank < 0)
		return OM_OK;
	OM_TRY(layer_axis(c, &axis));
	for (uint32_t k = 1; k < 3; k++) {
		om_shape both;
		if (!om_has_in(c, k) || c->in[k].shape.rank < 0)
			continue;
		if (!om_broadcast(x, &c->in[k].shape, &both) || !is_within(&both, x))
			return om_op_fail(c->session, OM_SHAPE, c->op,
				"the shape of input %u does not match the first input", k);
	}
	for (uint32_t k = 1; k < c->op->nout; k++) {
		c->out[k].shape = *x;
		for (int d = axis; d < x->rank; d++) {
			c->out[k].shape.dim[d] = 1;
			c->out[k].shape.sym[d] = NULL;
		}
	}
	return OM_OK;
}

static struct spread
spread_of(const om_op_context *c, uint32_t k, int axis)
{
	struct spread s = {0};
	const om_shape *x = &c->in[0].shape, *y = &c->in[k].shape;
	int64_t step = 1;

	if (!om_has_in(c, k))
		return s;
	s.t = &c->in[k];
	s.is_row = y->rank == x->rank - axis;
	for (int d = y->rank - 1; d >= 0; d--) {
		const int at = d + x->rank - y->rank;
		s.is_row &= y->dim[d] == x->dim[at];
		s.step[at] = y->dim[d] == 1 ? 0 : step;
		step *= y->dim[d];
	}
	return s;
}

static int64_t
spread_at(const struct spread *s, const om_shape *x, int64_t i)
{
	int64_t at = 0;

	for (int d = x->rank - 1; d >= 0; d--) {
		at += i % x->dim[d] * s->step[d];
		i /= x->dim[d];
	}
	return at;
}

/* For elements [first, first + n) of a row: x becomes (x - mean) * factor * scale + bias. */
OM_INLINE void
layer_row(om_dtype t, const om_op_context *c, const struct norm *s, int64_t first, int64_t n, double mean, double factor)
{
	const struct spread *scale = &s->scale, *bias = &s->shift;
	const bool is_plain = s->is_plain;

	if (is_plain && scale->t && bias->t) {
		const void *by = scale->t->data, *add = bias->t->data;
		for (int64_t i = 0; i < n; i++) {
			const double y = (om_get(t, c->in[0].data, first + i) - mean) * factor;
			om_put(t, c->out[0].data, first + i, y * om_get(t, by, i) + om_get(t, add, i));
		}
		return;
	}
	for (int64_t i = 0; i < n; i++) {
		double y = (om_get(t, c->in[0].data, first + i) - mean) * factor;
		if (is_plain) {
			y *= scale->t ? om_get(t, scale->t->data, i) : 1;
			y += bias->t ? om_get(t, bias->t->data, i) : 0;
		} else {
			if (scale->t)
				y *= number(scale->t, spread_at(scale, &c->in[0].shape, first + i));
			if (bias->t)
				y += number(bias->t, spread_at(bias, &c->in[0].shape, first + i));
		}
		om_put(t, c->out[0].data, first + i, y);
	}
}

OM_INLINE void
layer_normalize(om_dtype t, const om_op_context *c, const struct norm *s, bool centered)
{
	const int64_t n = s->n, rows = s->rows;
	const bool has_mean = om_has_out(c, 1), has_factor = om_has_out(c, 2);
	const double epsilon = s->epsilon;

	for (int64_t row = 0; row < rows; row++) {
		struct moments m = {0, 0};
		if (centered)  /* the moments of zero elements are NaN */
			m = moments_of(t, c->in[0].data, row * n, n);
		for (int64_t i = 0; i < n && !centered; i++) {
			const double v = om_get(t, c->in[0].data, row * n + i);
			m.variance += v * v / (double)n;
		}
		const double factor = 1 / sqrt(m.variance + epsilon);
		layer_row(t, c, s, row * n, n, m.mean, factor);
		if (has_mean)
			om_put(c->out[1].type, c->out[1].data, row, m.mean);
		if (has_factor)
			om_put(c->out[2].type, c->out[2].data, row, factor);
	}
}

static om_status
layer_prepare(om_op_context *c, void **state)
{
	const om_shape *x = &c->in[0].shape;
	struct norm *s = *state;

	s->epsilon = om_attr_float(c->op, "epsilon");
	OM_TRY(layer_axis(c, &s->axis));
	s->n = om_shape_span(x, s->axis, x->rank);
	s->rows = om_shape_span(x, 0, s->axis);
	s->scale = spread_of(c, 1, s->axis);
	s->shift = spread_of(c, 2, s->axis);
	s->is_plain = is_uniform(c) && (!s->scale.t || s->scale.is_row) && (!s->shift.t || s->shift.is_row);
	return check_floats(c);
}

static om_status
layer_cpu(om_op_context *c)
{
	EACH_FLOAT(c->in[0].type, layer_normalize(T, c, c->state, true), return om_no_kernel(c, c->in[0].type));
	return OM_OK;
}

static om_status
rms_cpu(om_op_context *c)
{
	EACH_FLOAT(c->in[0].type, layer_normalize(T, c, c->state, false), return om_no_kernel(c, c->in[0].type));
	return OM_OK;
}

/* ---- InstanceNormalization, GroupNormalization. ---- */

static const om_attr_spec instance_attrs[] = {
	{"consumed_inputs", OM_ATTR_INTS},
	{"epsilon", OM_ATTR_FLOAT, .f = 1e-5f},
	{0}
};

static const om_attr_spec group_attrs[] = {
	{"epsilon", OM_ATTR_FLOAT, .f = 1e-5f},
	{"num_groups", OM_ATTR_INT, .required = true},
	{"stash_type", OM_ATTR_INT, .i = 1},
	{0}
};

static om_status
instance_infer(om_op_context *c)
{
	OM_TRY(check_rank(c, 2));
	OM_TRY(om_infer_same(c));
	for (uint32_t k = 1; k < 3; k++)
		OM_TRY(check_list(c, k, c->in[0].shape.rank < 0 ? -1 : c->in[0].shape.dim[1]));
	return OM_OK;
}

static om_status
group_infer(om_op_context *c)
{
	const int64_t groups = om_attr_int(c->op, "num_groups");
	const int64_t channels = c->in[0].shape.rank < 2 ? -1 : c->in[0].shape.dim[1];

	OM_TRY(check_rank(c, 2));
	OM_TRY(om_infer_same(c));
	if (groups < 1 || (channels >= 0 && channels % groups))
		return om_op_fail(c->session, OM_SHAPE, c->op, "%lld groups do not divide %lld channels",
			(long long)groups, (long long)channels);
	for (uint32_t k = 1; k < 3; k++)
		OM_TRY(check_list(c, k, c->op->version < 21 ? groups : channels));
	return OM_OK;
}

/* Every group of channels of an image has its own moments. */
OM_INLINE void
group_normalize(om_dtype t, const om_op_context *c, const struct norm *s)
{
	const int64_t groups = s->groups, volume = s->volume, n = s->n, rows = s->rows;
	const bool per_group = s->per_group, same = s->is_uniform;

	for (int64_t image = 0; image < rows; image++)
		for (int64_t g = 0; g < groups; g++) {
			const int64_t first = (image * groups + g) * n * volume;
			const struct moments m = moments_of(t, c->in[0].data, first, n * volume);
			const double deviation = sqrt(m.variance + s->epsilon);
			for (int64_t k = 0; k < n; k++) {
				const int64_t at = per_group ? g : g * n + k;
				const double scale = number_of(t, same, &c->in[1], at) / deviation;
				scale_run(t, c, first + k * volume, volume, scale,
					number_of(t, same, &c->in[2], at) - m.mean * scale);
			}
		}
}

static om_status
prepare_groups(om_op_context *c, struct norm *s, int64_t groups)
{
	const om_shape *x = &c->in[0].shape;

	s->epsilon = om_attr_float(c->op, "epsilon");
	s->groups = groups;
	s->rows = x->dim[0];
	s->n = groups ? x->dim[1] / groups : 0;
	s->volume = om_shape_span(x, 2, x->rank);
	s->is_uniform = is_uniform(c);
	return check_floats(c);
}

static om_status
instance_prepare(om_op_context *c, void **state)
{
	return prepare_groups(c, *state, c->in[0].shape.dim[1]);
}

static om_status
instance_cpu(om_op_context *c)
{
	EACH_FLOAT(c->in[0].type, group_normalize(T, c, c->state),
		return om_no_kernel(c, c->in[0].type));
	return OM_OK;
}

static om_status
group_prepare(om_op_context *c, void **state)
{
	struct norm *s = *state;

	s->per_group = c->op->version < 21;
	return prepare_groups(c, s, om_attr_int(c->op, "num_groups"));
}

static om_status
group_cpu(om_op_context *c)
{
	EACH_FLOAT(c->in[0].type, group_normalize(T, c, c->state),
		return om_no_kernel(c, c->in[0].type));
	return OM_OK;
}

/* ---- LRN. ---- */

static const om_attr_spec lrn_attrs[] = {
	{"alpha", OM_ATTR_FLOAT, .f = 0.0001f},
	{"beta", OM_ATTR_FLOAT, .f = 0.75f},
	{"bias", OM_ATTR_FLOAT, .f = 1},
	{"size", OM_ATTR_INT, .required = true},
	{0}
};

static om_status
lrn_infer(om_op_context *c)
{
	OM_TRY(check_rank(c, 2));
	if (om_attr_int(c->op, "size") < 1)
		return om_op_fail(c->session, OM_SHAPE, c->op, "size is %lld, expected a positive number", (long long)om_attr_int(c->op, "size"));
	return om_infer_same(c);
}

/* The squares of a window of channels, summed from scratch for each window: a running sum would
 * accumulate rounding errors. */
OM_INLINE void
lrn_channel(om_dtype t, const om_op_context *c, const struct norm *s, int64_t image, int64_t channel, int64_t volume, double *sum)
{
	const int64_t channels = c->in[0].shape.dim[1], size = s->size;
	const int64_t below = (size - 1) / 2, above = size - 1 - below;
	const int64_t from = channel > below ? channel - below : 0;
	const int64_t to = above < channels - 1 - channel ? channel + above : channels - 1;
	const int64_t first = (image * channels + channel) * volume;
	const double alpha = s->alpha / (double)size, beta = s->beta, bias = s->bias;

	for (int64_t i = 0; i < volume; i++)
		sum[i] = 0;
	for (int64_t k = from; k <= to; k++)
		for (int64_t i = 0; i < volume; i++) {
			const double x = om_get(t, c->in[0].data, (image * channels + k) * volume + i);
			sum[i] += x * x;
		}
	for (int64_t i = 0; i < volume; i++) {
		const double all = bias + alpha * sum[i];
		const double power = beta == 0.75 ? sqrt(all) * sqrt(sqrt(all)) : pow(all, beta);
		om_put(t, c->out[0].data, first + i, om_get(t, c->in[0].data, first + i) / power);
	}
}

OM_INLINE void
lrn(om_dtype t, const om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;

	for (int64_t n = 0; n < x->dim[0]; n++)
		for (int64_t k = 0; k < x->dim[1]; k++)
			lrn_channel(t, c, c->state, n, k, om_shape_span(x, 2, x->rank), c->scratch);
}

static om_status
lrn_prepare(om_op_context *c, void **state)
{
	struct norm *s = *state;

	s->alpha = om_attr_float(c->op, "alpha");
	s->beta = om_attr_float(c->op, "beta");
	s->bias = om_attr_float(c->op, "bias");
	s->size = om_attr_int(c->op, "size");
	return OM_OK;
}

static om_status
lrn_cpu(om_op_context *c)
{
	EACH_FLOAT(c->in[0].type, lrn(T, c), return om_no_kernel(c, c->in[0].type));
	return OM_OK;
}

static uint64_t
lrn_scratch(const om_op_context *c)
{
	return (uint64_t)om_shape_span(&c->in[0].shape, 2, c->in[0].shape.rank) * sizeof(double);
}

static void
lrn_cost(const om_op_context *c, om_cost *cost)
{
	cost->flops = (double)om_shape_count(&c->in[0].shape) * (2.0 * (double)om_attr_int(c->op, "size") + 6);
}

/* ---- LpNormalization. ---- */

static const om_attr_spec lp_attrs[] = {
	{"axis", OM_ATTR_INT, .i = -1},
	{"p", OM_ATTR_INT, .i = 2},
	{0}
};

static om_status
lp_infer(om_op_context *c)
{
	const int64_t p = om_attr_int(c->op, "p");
	int axis;

	OM_TRY(om_infer_same(c));
	if (p != 1 && p != 2)
		return om_op_fail(c->session, OM_SHAPE, c->op, "p is %lld, expected 1 or 2", (long long)p);
	return c->in[0].shape.rank < 0 ? OM_OK : layer_axis(c, &axis);
}

OM_INLINE void
lp_normalize(om_dtype t, const om_op_context *c, const struct norm *s)
{
	const int axis = s->axis;
	const om_shape *x = &c->in[0].shape;
	const int64_t n = x->dim[axis], inner = om_shape_span(x, axis + 1, x->rank);
	const bool square = s->square;

	for (int64_t i = 0; i < om_shape_span(x, 0, axis) * inner; i++) {
		const int64_t first = i / inner * n * inner + i % inner;
		double sum = 0;
		for (int64_t k = 0; k < n; k++) {
			const double v = om_get(t, c->in[0].data, first + k * inner);
			sum += square ? v * v : fabs(v);
		}
		const double norm = square ? sqrt(sum) : sum;
		for (int64_t k = 0; k < n; k++) {
			const double v = om_get(t, c->in[0].data, first + k * inner);
			om_put(t, c->out[0].data, first + k * inner, norm ? v / norm : 0);
		}
	}
}

static om_status
lp_prepare(om_op_context *c, void **state)
{
	struct norm *s = *state;

	s->square = om_attr_int(c->op, "p") == 2;
	return layer_axis(c, &s->axis);
}

static om_status
lp_cpu(om_op_context *c)
{
	EACH_FLOAT(c->in[0].type, lp_normalize(T, c, c->state), return om_no_kernel(c, c->in[0].type));
	return OM_OK;
}

/* ---- MeanVarianceNormalization. ---- */

static const om_attr_spec mvn_attrs_1[] = {
	{"across_channels", OM_ATTR_INT},
	{"normalize_variance", OM_ATTR_INT, .i = 1},
	{0}
};

static const om_attr_spec mvn_attrs[] = {
	{"axes", OM_ATTR_INTS},
	{0}
};

/* The axes over which the moments are computed. */
om_status
om_mean_variance_axes(const om_op_context *c, bool over[OM_MAX_RANK])
{
	static const int64_t usual[] = {0, 2, 3};
	const int rank = c->in[0].shape.rank;
	size_t n;
	const int64_t *axes = om_attr_ints(c->op, "axes", &n);

	memset(over, 0, OM_MAX_RANK * sizeof *over);
	if (c->op->version < 9) {
		for (int d = 0; d < rank; d++)
			over[d] = d != 1 || om_attr_int(c->op, "across_channels");
		return OM_OK;
	}
	if (!om_attr_has(c->op, "axes")) {
		axes = usual;
		n = 3;
	}
	for (size_t k = 0; k < n; k++) {
		int axis;
		if (!om_axis(axes[k], rank, &axis))
			return om_op_fail(c->session, OM_SHAPE, c->op, "axis %lld is out of range for rank %d",
				(long long)axes[k], rank);
		over[axis] = true;
	}
	return OM_OK;
}

static om_status
mvn_infer(om_op_context *c)
{
	bool over[OM_MAX_RANK];

	OM_TRY(om_infer_same(c));
	return c->in[0].shape.rank < 0 ? OM_OK : om_mean_variance_axes(c, over);
}

/* The offset of element `i` among the axes with over[] equal to `chosen`. */
static int64_t
chosen_at(const om_shape *s, const bool *over, bool chosen, int64_t i)
{
	int64_t at = 0, step = 1;

	for (int d = s->rank - 1; d >= 0; d--) {
		if (over[d] == chosen) {
			at += i % s->dim[d] * step;
			i /= s->dim[d];
		}
		step *= s->dim[d];
	}
	return at;
}

OM_INLINE void
mvn(om_dtype t, const om_op_context *c, const struct norm *s)
{
	const om_shape *x = &c->in[0].shape;
	const bool *over = s->over, divide = s->divide;
	int64_t n = 1;

	for (int d = 0; d < x->rank; d++)
		n *= over[d] ? x->dim[d] : 1;
	for (int64_t g = 0, groups = n ? om_shape_count(x) / n : 0; g < groups; g++) {
		const int64_t first = chosen_at(x, over, false, g);
		struct moments m = {0, 0};
		for (int64_t i = 0; i < n; i++)
			m.mean += om_get(t, c->in[0].data, first + chosen_at(x, over, true, i)) / (double)n;
		for (int64_t i = 0; i < n; i++) {
			const double d = om_get(t, c->in[0].data, first + chosen_at(x, over, true, i)) - m.mean;
			m.variance += d * d / (double)n;
		}
		const double norm = divide ? sqrt(m.variance) + 1e-9 : 1;
		for (int64_t i = 0; i < n; i++) {
			const int64_t at = first + chosen_at(x, over, true, i);
			om_put(t, c->out[0].data, at, (om_get(t, c->in[0].data, at) - m.mean) / norm);
		}
	}
}

static om_status
mvn_prepare(om_op_context *c, void **state)
{
	struct norm *s = *state;

	s->divide = c->op->version >= 9 || om_attr_int(c->op, "normalize_variance");
	return om_mean_variance_axes(c, s->over);
}

static om_status
mvn_cpu(om_op_context *c)
{
	EACH_FLOAT(c->in[0].type, mvn(T, c, c->state), return om_no_kernel(c, c->in[0].type));
	return OM_OK;
}

#define BATCH(from, to, outputs, list)                                         \
	{.name = "BatchNormalization", .brief = "batch normalization", \
	 .since = from, .until = to, .min_in = 5, .max_in = 5, .min_out = 1, .max_out = outputs, \
	 .attrs = list, .infer = batch_infer, .slice = om_slice_batch_norm, .inplace = over_first_input, .cpu = batch_cpu, \
	 .cost = norm_cost, \
	 .input_types = {OF_FLOATS, OF_FLOATS, LIKE(1), OF_FLOATS, LIKE(3)}}

#define NORM(called, text, from, to, least, most, outputs, list, inferred, kernel, sliced, scale) \
	{.name = #called, .brief = text, .since = from, .until = to, .min_in = least, .max_in = most, \
	 .min_out = 1, .max_out = outputs, .attrs = list, .infer = inferred, .slice = sliced, \
	 .inplace = over_first_input, .cpu = kernel, .cost = norm_cost, \
	 .input_types = {OF_FLOATS, scale, LIKE(0)}}

const om_opdef om_ops_norm[] = {
	BATCH(1, 6, 5, batch_attrs_1),
	BATCH(7, 8, 5, batch_attrs_7),
	BATCH(9, 13, 5, batch_attrs_7),
	BATCH(14, 0, 3, batch_attrs_14),
	NORM(LayerNormalization, "layer normalization", 17, 0, 2, 3, 3, layer_attrs,
		layer_infer, layer_cpu, om_slice_layer_norm, LIKE(0)),
	NORM(RMSNormalization, "root mean square normalization", 23, 0, 2, 2, 1, layer_attrs,
		layer_infer, rms_cpu, om_slice_layer_norm, OF_FLOATS),
	NORM(InstanceNormalization, "instance normalization", 1, 0, 3, 3, 1,
		instance_attrs, instance_infer, instance_cpu, om_slice_instance_norm, LIKE(0)),
	NORM(GroupNormalization, "group normalization", 18, 20, 3, 3, 1,
		group_attrs, group_infer, group_cpu, om_slice_group_norm, LIKE(0)),
	NORM(GroupNormalization, "group normalization", 21, 0, 3, 3, 1,
		group_attrs, group_infer, group_cpu, om_slice_group_norm, LIKE(0)),
	{.name = "LRN", .brief = "local response normalization across channels", .since = 1,
	 .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .attrs = lrn_attrs, .infer = lrn_infer, .slice = om_slice_lrn,
	 .cpu = lrn_cpu, .scratch = lrn_scratch, .cost = lrn_cost,
	 .input_types = {OF_FLOATS}},
	NORM(LpNormalization, "normalization to a norm of 1 along an axis", 1, 0, 1, 1, 1, lp_attrs, lp_infer, lp_cpu, om_slice_lp_norm, LIKE(0)),
	NORM(MeanVarianceNormalization, "mean and variance normalization over axes", 1, 8, 1, 1, 1, mvn_attrs_1,
		mvn_infer, mvn_cpu, om_slice_mean_variance, LIKE(0)),
	NORM(MeanVarianceNormalization, "mean and variance normalization over axes", 9, 0, 1, 1, 1, mvn_attrs,
		mvn_infer, mvn_cpu, om_slice_mean_variance, LIKE(0)),
	{0}
};

#define KERNEL(label, prepares, runs, ...)                                     \
	{.name = label, .state_bytes = sizeof(struct norm), .prepare = prepares, .run = runs, __VA_ARGS__}

const om_kernel om_kernels_norm[] = {
	KERNEL("BatchNormalization", batch_prepare, batch_cpu, .workspace = NULL),
	KERNEL("LayerNormalization", layer_prepare, layer_cpu, .workspace = NULL),
	KERNEL("RMSNormalization", layer_prepare, rms_cpu, .workspace = NULL),
	KERNEL("InstanceNormalization", instance_prepare, instance_cpu, .workspace = NULL),
	KERNEL("GroupNormalization", group_prepare, group_cpu, .workspace = NULL),
	KERNEL("LRN", lrn_prepare, lrn_cpu, .workspace = lrn_scratch),
	KERNEL("LpNormalization", lp_prepare, lp_cpu, .workspace = NULL),
	KERNEL("MeanVarianceNormalization", mvn_prepare, mvn_cpu, .workspace = NULL),
	{0}
};
