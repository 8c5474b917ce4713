/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizations of float32. */
#include <config.h>

#include <math.h>

#include "base/shape.h"
#include "ir/query.h"
#include "kernels/cpu/kernels.h"
#include "opdef/op_context.h"
#include "ops/cpu/ranges.h"
#include "ops/family.h"

/* Every element is written after the rows that it depends on were read, so that the kernels run in place where
 * the definitions allow it. */

struct norm {
	double epsilon;
	int64_t rows, n;          /* lines; elements of one */
	int64_t groups;           /* of an image; for a batch: channels, or all elements */
	int64_t channels;         /* of a group */
	int64_t volume;           /* elements of a channel */
	bool per_group;           /* one scale per group instead of per channel */
	bool square;              /* LpNormalization uses the L2 norm */
	int64_t inner;            /* LpNormalization: elements between those of a line */
};

struct run {
	const om_op_context *c;
	const struct norm *s;
	const om_rows_kernels *rows;
	const float *x, *scale, *bias;
	float *y;
};

static struct run
run_of(const om_op_context *c)
{
	return (struct run){c, c->state, om_kernels_get()->rows, c->in[0].data, c->op->nin > 1 ? c->in[1].data : NULL,
		c->op->nin > 2 ? c->in[2].data : NULL, c->out[0].data};
}

static bool
is_empty(const om_op_context *c)
{
	return om_shape_count(&c->in[0].shape) == 0;
}

/* ---- LayerNormalization, RMSNormalization. ---- */

/* Scale or bias is a row. */
static bool
is_row(const om_op_context *c, uint32_t k, int axis)
{
	if (!om_has_in(c, k))
		return true;
	const om_shape *x = &c->in[0].shape, *s = &c->in[k].shape;
	bool same = s->rank == x->rank - axis;
	for (int d = 0; same && d < s->rank; d++)
		same = s->dim[d] == x->dim[axis + d];
	return same;
}

static bool
layer_supports(const om_op_context *c)
{
	int axis;

	for (uint32_t k = 1; k < c->op->nout; k++)
		if (om_has_out(c, k) && c->out[k].type != OM_FLOAT32)
			return false;
	return om_axis(om_attr_int(c->op, "axis"), c->in[0].shape.rank, &axis) && is_row(c, 1, axis)
	    && is_row(c, 2, axis) && !is_empty(c);
}

static om_status
layer_prepare(om_op_context *c, void **state)
{
	const om_shape *x = &c->in[0].shape;
	struct norm *s = *state;
	int axis = 0;

	om_axis(om_attr_int(c->op, "axis"), x->rank, &axis);
	s->epsilon = (double)om_attr_float(c->op, "epsilon");
	s->n = om_shape_span(x, axis, x->rank);
	s->rows = om_shape_span(x, 0, axis);
	return OM_OK;
}

static void
put(const om_op_context *c, uint32_t k, int64_t i, double value)
{
	if (om_has_out(c, k))
		((float *)c->out[k].data)[i] = (float)value;
}

static void
layer_rows(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct run *r = arg;
	const int64_t n = r->s->n;

	(void)worker;
	for (int64_t i = from; i < to; i++) {
		const om_moments m = r->rows->moments(r->x + i * n, n);
		const double factor = 1 / sqrt(m.variance + r->s->epsilon);
		r->rows->normalize(r->y + i * n, r->x + i * n, n, &(om_normalizer){m.center, (float)factor,
			(float)(-m.shift * factor), r->scale, r->bias});
		put(r->c, 1, i, (double)m.center + m.shift);
		put(r->c, 2, i, factor);
	}
}

static om_status
layer_run(om_op_context *c)
{
	struct run r = run_of(c);

	om_for_ranges(c, r.s->rows, r.s->n, layer_rows, &r);
	return OM_OK;
}

static void
rms_rows(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct run *r = arg;
	const int64_t n = r->s->n;

	(void)worker;
	for (int64_t i = from; i < to; i++) {
		const double square = r->rows->run[OM_REDUCE_SUM_SQUARE](r->x + i * n, n);
		const double factor = 1 / sqrt(square / (double)n + r->s->epsilon);
		r->rows->scale(r->y + i * n, r->x + i * n, n, (float)factor, r->scale);
	}
}

static om_status
rms_run(om_op_context *c)
{
	struct run r = run_of(c);

	om_for_ranges(c, r.s->rows, r.s->n, rms_rows, &r);
	return OM_OK;
}

/* ---- InstanceNormalization, GroupNormalization. ---- */

static bool
group_supports(const om_op_context *c)
{
	return !is_empty(c) && c->in[0].shape.rank >= 2;
}

static om_status
prepare_groups(om_op_context *c, struct norm *s, int64_t groups)
{
	const om_shape *x = &c->in[0].shape;

	s->epsilon = (double)om_attr_float(c->op, "epsilon");
	s->groups = groups;
	s->channels = x->dim[1] / groups;
	s->volume = om_shape_span(x, 2, x->rank);
	s->rows = x->dim[0] * groups;
	return OM_OK;
}

static om_status
instance_prepare(om_op_context *c, void **state)
{
	return prepare_groups(c, *state, c->in[0].shape.dim[1]);
}

static om_status
group_prepare(om_op_context *c, void **state)
{
	((struct norm *)*state)->per_group = c->op->version < 21;
	return prepare_groups(c, *state, om_attr_int(c->op, "num_groups"));
}

static void
group_rows(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct run *r = arg;
	const struct norm *s = r->s;
	const int64_t n = s->channels * s->volume;

	(void)worker;
	for (int64_t i = from; i < to; i++) {
		const int64_t group = i % s->groups;
		const om_moments m = r->rows->moments(r->x + i * n, n);
		const double deviation = sqrt(m.variance + s->epsilon);
		for (int64_t k = 0; k < s->channels; k++) {
			const int64_t at = s->per_group ? group : group * s->channels + k, first = i * n + k * s->volume;
			const double factor = (double)r->scale[at] / deviation;
			r->rows->affine(r->y + first, r->x + first, s->volume, m.center, (float)factor,
				(float)((double)r->bias[at] - m.shift * factor));
		}
	}
}

static om_status
group_run(om_op_context *c)
{
	struct run r = run_of(c);

	om_for_ranges(c, r.s->rows, r.s->channels * r.s->volume, group_rows, &r);
	return OM_OK;
}

/* ---- BatchNormalization, without training. ---- */

enum { SHORT = 16 };              /* channels of fewer elements are computed by rows of channels */

static bool
batch_supports(const om_op_context *c)
{
	for (uint32_t k = 1; k < c->op->nout; k++)
		if (om_has_out(c, k))
			return false;
	if (c->op->version >= 14 && om_attr_int(c->op, "training_mode"))
		return false;
	return c->in[0].shape.rank >= 2 && !is_empty(c);
}

static om_status
batch_prepare(om_op_context *c, void **state)
{
	const om_shape *x = &c->in[0].shape;
	const bool by_element = c->op->version < 9 && om_attr_int(c->op, "spatial") == 0;
	struct norm *s = *state;

	s->epsilon = (double)om_attr_float(c->op, "epsilon");
	s->groups = by_element ? om_shape_span(x, 1, x->rank) : x->dim[1];
	s->volume = by_element ? 1 : om_shape_span(x, 2, x->rank);
	s->rows = x->dim[0];
	return OM_OK;
}

static uint64_t
batch_workspace(const om_op_context *c)
{
	return (uint64_t)((const struct norm *)c->state)->groups * sizeof(float);
}

/* By channel. */
static void
batch_channels(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct run *r = arg;
	const struct norm *s = r->s;
	const float *mean = r->c->in[3].data, *factor = r->c->scratch;

	(void)worker;
	for (int64_t i = from; i < to; i++) {
		const int64_t k = i % s->groups, first = i * s->volume;
		r->rows->affine(r->y + first, r->x + first, s->volume, mean[k], factor[k], r->bias[k]);
	}
}

static void
short_channels(const struct run *r, int64_t image)
{
	const struct norm *s = r->s;
	const float *mean = r->c->in[3].data, *factor = r->c->scratch;

	for (int64_t k = 0, at = image * s->groups * s->volume; k < s->groups; k++)
		for (int64_t i = 0; i < s->volume; i++, at++)
			r->y[at] = (r->x[at] - mean[k]) * factor[k] + r->bias[k];
}

/* By image. */
static void
batch_images(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct run *r = arg;
	const struct norm *s = r->s;
	const int64_t n = s->groups;

	(void)worker;
	for (int64_t i = from; i < to; i++)
		if (s->volume == 1)
			r->rows->affine_row(r->y + i * n, r->x + i * n, n, r->c->in[3].data, r->c->scratch, r->bias);
		else
			short_channels(r, i);
}

static om_status
batch_run(om_op_context *c)
{
	const float *variance = c->in[4].data;
	struct run r = run_of(c);
	float *factor = c->scratch;

	for (int64_t k = 0; k < r.s->groups; k++)
		factor[k] = (float)((double)r.scale[k] / sqrt((double)variance[k] + r.s->epsilon));
	if (r.s->volume < SHORT)
		om_for_ranges(c, r.s->rows, r.s->groups * r.s->volume, batch_images, &r);
	else
		om_for_ranges(c, r.s->rows * r.s->groups, r.s->volume, batch_channels, &r);
	return OM_OK;
}

/* ---- LpNormalization along the last axis. ---- */

static bool
lp_supports(const om_op_context *c)
{
	int axis;

	return om_axis(om_attr_int(c->op, "axis"), c->in[0].shape.rank, &axis)
	    && om_shape_span(&c->in[0].shape, axis + 1, c->in[0].shape.rank) == 1 && !is_empty(c);
}

static om_status
lp_prepare(om_op_context *c, void **state)
{
	const om_shape *x = &c->in[0].shape;
	struct norm *s = *state;
	int axis = 0;

	om_axis(om_attr_int(c->op, "axis"), x->rank, &axis);
	s->square = om_attr_int(c->op, "p") == 2;
	s->n = x->dim[axis];
	s->rows = om_shape_span(x, 0, axis);
	return OM_OK;
}

static void
lp_rows(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct run *r = arg;
	const int64_t n = r->s->n;

	(void)worker;
	for (int64_t i = from; i < to; i++) {
		const double sum = r->rows->run[r->s->square ? OM_REDUCE_SUM_SQUARE : OM_REDUCE_SUM_ABS](r->x + i * n, n);
		const double norm = r->s->square ? sqrt(sum) : sum;
		for (int64_t k = i * n; k < (i + 1) * n; k++)
			r->y[k] = norm != 0 ? (float)((double)r->x[k] / norm) : 0;
	}
}

static om_status
lp_run(om_op_context *c)
{
	struct run r = run_of(c);

	om_for_ranges(c, r.s->rows, r.s->n, lp_rows, &r);
	return OM_OK;
}

/* ---- LRN. ---- */

enum { COLUMNS = 128 };           /* of an image that are computed together */

struct lrn {
	om_lrn windows;
	int64_t groups;           /* of columns, for each image */
};

struct lrn_run {
	const struct lrn *s;
	const om_rows_kernels *rows;
	const float *x;
	float *y;
};

static bool
lrn_supports(const om_op_context *c)
{
	return c->in[0].shape.rank >= 2 && !is_empty(c);
}

static om_status
lrn_prepare(om_op_context *c, void **state)
{
	const om_shape *x = &c->in[0].shape;
	const int64_t size = om_attr_int(c->op, "size"), below = (size - 1) / 2, volume = om_shape_span(x, 2, x->rank);
	struct lrn *s = *state;

	s->windows = (om_lrn){.channels = x->dim[1], .stride = volume, .below = below, .above = size - 1 - below,
		.alpha = om_attr_float(c->op, "alpha") / (double)size, .beta = om_attr_float(c->op, "beta"), .bias = om_attr_float(c->op, "bias")};
	s->groups = (volume + COLUMNS - 1) / COLUMNS;
	return OM_OK;
}

static void
lrn_columns(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct lrn_run *r = arg;
	const om_lrn *l = &r->s->windows;

	(void)worker;
	for (int64_t i = from; i < to; i++) {
		const int64_t column = i % r->s->groups * COLUMNS, at = i / r->s->groups * l->channels * l->stride + column;
		r->rows->lrn(r->y + at, r->x + at, l, l->stride - column < COLUMNS ? l->stride - column : COLUMNS);
	}
}

static om_status
lrn_run(om_op_context *c)
{
	const struct lrn *s = c->state;
	struct lrn_run r = {s, om_kernels_get()->rows, c->in[0].data, c->out[0].data};

	om_for_ranges(c, c->in[0].shape.dim[0] * s->groups, s->windows.channels * COLUMNS, lrn_columns, &r);
	return OM_OK;
}

#define KERNEL(label, can, prepares, runs)                                     \
	.name = label, .is_fast = true, .types = {OF(FLOAT32), LIKE(0), LIKE(0), LIKE(0), LIKE(0)}, .state_bytes = sizeof(struct norm), \
	.supports = can, .prepare = prepares, .run = runs

const om_kernel om_kernels_fast_norm[] = {
	{KERNEL("BatchNormalization", batch_supports, batch_prepare, batch_run), .workspace = batch_workspace},
	{KERNEL("GroupNormalization", group_supports, group_prepare, group_run)},
	{KERNEL("InstanceNormalization", group_supports, instance_prepare, group_run)},
	{.name = "LRN", .is_fast = true, .types = {OF(FLOAT32)}, .state_bytes = sizeof(struct lrn), .supports = lrn_supports,
	 .prepare = lrn_prepare, .run = lrn_run},
	{KERNEL("LayerNormalization", layer_supports, layer_prepare, layer_run)},
	{KERNEL("LpNormalization", lp_supports, lp_prepare, lp_run)},
	{KERNEL("RMSNormalization", layer_supports, layer_prepare, rms_run)},
	{0}
};
