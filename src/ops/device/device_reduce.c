/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for devices of reductions, softmax and normalizations. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "base/sizes.h"
#include "base/strided_copy.h"
#include "ir/query.h"
#include "opdef/gradient_op.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"
#include "ops/device/launches.h"
#include "ops/family.h"
#include "ops/math/axis_view.h"
#include "ops/math/reduce_axes.h"
#include "ops/nn/norm.h"
#include "ops/nn/softmax.h"

/* ---- Reductions. ---- */

/* In the order of reduce.omk and reduce_integer.omk; of log(sum(exp(x))) there is a kernel of its own. */
enum { SUM, MEAN, MAX, MIN, PRODUCT, SQUARES, L1, L2, LOG_SUM, LOG_SUM_EXP };
enum { INTEGERS_SUM, INTEGERS_MAX, INTEGERS_MIN, INTEGERS_PRODUCT, INTEGERS_NONE };

static const struct reduction {
	const char *name;
	int kind, integers;
} reductions[] = {
	{"ReduceSum", SUM, INTEGERS_SUM}, {"ReduceMean", MEAN, INTEGERS_NONE}, {"ReduceMax", MAX, INTEGERS_MAX},
	{"ReduceMin", MIN, INTEGERS_MIN}, {"ReduceProd", PRODUCT, INTEGERS_PRODUCT}, {"ReduceSumSquare", SQUARES, INTEGERS_NONE},
	{"ReduceL1", L1, INTEGERS_NONE}, {"ReduceL2", L2, INTEGERS_NONE}, {"ReduceLogSum", LOG_SUM, INTEGERS_NONE},
	{"ReduceLogSumExp", LOG_SUM_EXP, INTEGERS_NONE},
};

static const struct reduction *
reduction_of(const om_op_context *c)
{
	const struct reduction *r = reductions;

	while (strcmp(r->name, c->op->opdef->name) != 0)
		r++;
	return r;
}

/* The reduced axis of [outer, n, inner].  Where several groups of axes are reduced, the elements are first copied to the
 * scratch, with those groups last. */
struct reduced {
	struct om_lines lines;
	bool is_copied;
	om_launch_walk copy;
};

static void
put_groups(const struct om_reduce_group *g, int n, int *rank, int64_t *dim, int64_t *step)
{
	for (int k = 0; k < n; k++) {
		dim[*rank] = g[k].n;
		step[(*rank)++] = g[k].step;
	}
}

static bool
copied_walk(const struct om_reduce_groups *g, om_launch_walk *w)
{
	int64_t dim[OM_MAX_RANK], step[2][OM_MAX_RANK];
	int rank = 0;
	om_shape s;

	put_groups(g->kept, g->nkept, &rank, dim, step[0]);
	if (!g->last_is_reduced)
		put_groups(&g->last, 1, &rank, dim, step[0]);
	put_groups(g->reduced, g->nreduced, &rank, dim, step[0]);
	if (g->last_is_reduced)
		put_groups(&g->last, 1, &rank, dim, step[0]);
	s = om_shape_of(rank, dim);
	om_strides(&s, step[1]);
	return om_launch_walk_of(w, rank, dim, 2, step);
}

static bool
reduced_of(const om_op_context *c, struct reduced *r)
{
	const int64_t total = om_shape_count(&c->in[0].shape);
	struct om_reduce_attrs attrs;
	struct om_reduce_groups g;

	om_attr_fields(c->op, om_reduce_fields, &attrs);
	if (total == 0 || !om_reduce_is_ready(c) || om_reduce_groups_of(c, &attrs, &g) != OM_OK)
		return false;
	const int n = g.nreduced + g.last_is_reduced;
	const struct om_reduce_group *only = g.last_is_reduced ? &g.last : &g.reduced[0];
	*r = (struct reduced){.lines = {total, 1, 1}, .is_copied = n > 1};
	if (n > 1)
		r->lines = (struct om_lines){total / g.count, g.count, 1};
	else if (n == 1)
		r->lines = (struct om_lines){total / (only->n * only->step), only->n, only->step};
	return n <= 1 || copied_walk(&g, &r->copy);
}

static bool
reduce_supports(const om_op_context *c)
{
	struct reduced r;

	return reduced_of(c, &r);
}

static bool
integer_reduce_supports(const om_op_context *c)
{
	return reduction_of(c)->integers != INTEGERS_NONE && reduce_supports(c);
}

static uint64_t
reduce_scratch(const om_op_context *c)
{
	struct reduced r;
	uint64_t bytes = 0;

	if (reduced_of(c, &r) && r.is_copied)
		om_tensor_bytes(c->in[0].type, &c->in[0].shape, &bytes);
	return bytes;
}

static om_status
reduce_launches(const om_op_context *c, om_launch_list *to)
{
	const struct reduction *what = reduction_of(c);
	const bool is_integer = om_dtype_is_integer(c->in[0].type);
	const char *type = om_kernel_type(c->in[0].type);
	struct reduced r;

	reduced_of(c, &r);
	const struct om_lines *s = &r.lines;
	const int64_t columns = s->outer * s->inner;
	const bool is_rows = !is_integer && what->kind != LOG_SUM_EXP && s->inner == 1 && s->n > 32;
	if (r.is_copied)
		om_launch_copy(to, om_kernel_moved_type(c->in[0].type), &r.copy, (om_launch_end){OM_OPERAND_IN, 0, 0},
			(om_launch_end){OM_OPERAND_SCRATCH, 0, 0});
	om_launch *l = is_rows ? om_launch_rows(to, "reduce", "reduce_rows", type, columns)
	    : om_launch_typed(to, is_integer ? "reduce_integer" : "reduce", is_integer ? "reduce_integers"
		: what->kind == LOG_SUM_EXP ? "log_sum_exp" : "reduce_columns", type, columns);
	om_launch_part(l, OM_ARG_IN, r.is_copied ? OM_OPERAND_SCRATCH : OM_OPERAND_IN, 0, 0, 0);
	om_launch_out(l, 0);
	om_launch_i64(l, columns);
	om_launch_i64(l, s->n);
	if (!is_rows)
		om_launch_i64(l, s->inner);
	if (is_integer || what->kind != LOG_SUM_EXP)
		om_launch_i32(l, is_integer ? what->integers : what->kind);
	return OM_OK;
}

/* ---- Softmax. ---- */

static bool
softmax_supports(const om_op_context *c)
{
	struct om_lines s;

	return om_softmax_lines(c, &s);
}

static om_status
softmax_launches(const om_op_context *c, om_launch_list *to)
{
	const char *type = om_kernel_type(c->in[0].type);
	struct om_lines s;

	om_softmax_lines(c, &s);
	const int64_t columns = s.outer * s.inner;
	om_launch *l = s.inner == 1 ? om_launch_rows(to, "softmax", "softmax_rows", type, columns)
	    : om_launch_typed(to, "softmax", "softmax_columns", type, columns);
	om_launch_in(l, 0);
	om_launch_out(l, 0);
	om_launch_i64(l, columns);
	om_launch_i64(l, s.n);
	if (s.inner != 1)
		om_launch_i64(l, s.inner);
	om_launch_i32(l, strcmp(c->op->opdef->name, "LogSoftmax") == 0);
	return OM_OK;
}

/* ---- Normalizations of rows. ---- */

enum { HAS_SCALE = 1, HAS_BIAS = 2 };

struct rows {
	int64_t rows, n;
	int64_t groups, channels, inner;     /* of scale and bias, as in norm.omk */
	bool is_rms;
};

/* LayerNormalization and RMSNormalization: all axes from `axis` on, with a scale of as many elements. */
static bool
layer_rows(const om_op_context *c, struct rows *r)
{
	const om_shape *x = &c->in[0].shape;
	int axis;

	if (!om_axis(om_attr_int(c->op, "axis"), x->rank, &axis))
		return false;
	*r = (struct rows){om_shape_span(x, 0, axis), om_shape_span(x, axis, x->rank), 1, 0, 1, c->op->opdef->name[0] == 'R'};
	for (uint32_t k = 1; k < c->op->nin; k++)
		if (om_has_in(c, k) && om_shape_count(&c->in[k].shape) != r->n)
			return false;
	return om_shape_count(x) > 0;
}

/* Instances are groups of one channel. */
static bool
group_rows(const om_op_context *c, struct rows *r)
{
	const om_shape *x = &c->in[0].shape;
	const bool is_group = c->op->opdef->name[0] == 'G';

	if (x->rank < 2 || om_shape_count(x) == 0)
		return false;
	const int64_t groups = is_group ? om_attr_int(c->op, "num_groups") : x->dim[1];
	const int64_t inner = om_shape_span(x, 2, x->rank), channels = groups > 0 ? x->dim[1] / groups : 0;
	*r = (struct rows){x->dim[0] * groups, channels * inner, groups, channels, inner, false};
	return channels > 0;
}

static bool
rows_of(const om_op_context *c, struct rows *r)
{
	const char first = c->op->opdef->name[0];

	return first == 'L' || first == 'R' ? layer_rows(c, r) : group_rows(c, r);
}

static bool
has_one_type(const om_op_context *c)
{
	for (uint32_t k = 1; k < c->op->nin; k++)
		if (om_has_in(c, k) && c->in[k].type != c->in[0].type)
			return false;
	return true;
}

static bool
rows_supports(const om_op_context *c)
{
	struct rows r;

	for (uint32_t k = 1; k < c->op->nout; k++)
		if (om_has_out(c, k) && (c->out[k].type != OM_FLOAT32 || !om_has_out(c, 1) || !om_has_out(c, 2)))
			return false;
	return c->out[0].type == c->in[0].type && has_one_type(c) && rows_of(c, &r);
}

static om_status
rows_launches(const om_op_context *c, om_launch_list *to)
{
	const char *type = om_kernel_type(c->in[0].type);
	const float epsilon = om_attr_float(c->op, "epsilon");
	struct rows r;

	rows_of(c, &r);
	/* Moments first: the output may be the input. */
	if (c->op->nout > 1 && om_has_out(c, 1)) {
		om_launch *m = om_launch_rows(to, "norm", "moments", type, r.rows);
		om_launch_in(m, 0);
		om_launch_out(m, 1);
		om_launch_out(m, 2);
		om_launch_i64(m, r.rows);
		om_launch_i64(m, r.n);
		om_launch_f32(m, epsilon);
	}
	om_launch *l = om_launch_rows(to, "norm", "norm_rows", type, r.rows);
	om_launch_in(l, 0);
	om_launch_in(l, om_has_in(c, 1) ? 1 : 0);
	om_launch_in(l, c->op->nin > 2 && om_has_in(c, 2) ? 2 : 0);
	om_launch_out(l, 0);
	om_launch_i64(l, r.rows);
	om_launch_i64(l, r.n);
	om_launch_i64(l, r.groups);
	om_launch_i64(l, r.channels);
	om_launch_i64(l, r.inner);
	om_launch_f32(l, epsilon);
	om_launch_i32(l, r.is_rms);
	om_launch_i32(l, (om_has_in(c, 1) ? HAS_SCALE : 0) | (c->op->nin > 2 && om_has_in(c, 2) ? HAS_BIAS : 0));
	return OM_OK;
}

/* ---- Normalizations of channels. ---- */

static bool
batch_norm_supports(const om_op_context *c)
{
	for (uint32_t k = 1; k < c->op->nout; k++)
		if (om_has_out(c, k))
			return false;
	return c->in[0].shape.rank >= 2 && has_one_type(c) && !om_batch_norm_is_training(c) && !om_batch_norm_is_by_element(c);
}

static om_status
batch_norm_launches(const om_op_context *c, om_launch_list *to)
{
	const om_shape *x = &c->in[0].shape;
	const int64_t n = om_shape_count(x);
	om_launch *l = om_launch_typed(to, "norm", "batch_norm", om_kernel_type(c->in[0].type), n);

	for (uint32_t k = 0; k < 5; k++)
		om_launch_in(l, k);
	om_launch_out(l, 0);
	om_launch_i64(l, n);
	om_launch_i64(l, x->dim[1]);
	om_launch_i64(l, om_shape_span(x, 2, x->rank));
	om_launch_f32(l, om_attr_float(c->op, "epsilon"));
	return OM_OK;
}

static bool
training_supports(const om_op_context *c)
{
	return c->in[0].shape.rank >= 2 && om_shape_count(&c->in[0].shape) > 0 && c->op->version >= 14 && c->op->nout <= 3 && has_one_type(c)
	    && om_batch_norm_is_training(c);
}

static void
add_channels(om_launch *l, const om_shape *x)
{
	om_launch_i64(l, x->dim[0]);
	om_launch_i64(l, x->dim[1]);
	om_launch_i64(l, om_shape_span(x, 2, x->rank));
}

static om_status
training_launches(const om_op_context *c, om_launch_list *to)
{
	const om_shape *x = &c->in[0].shape;
	const float momentum = om_attr_float(c->op, "momentum");
	om_launch *l = om_launch_rows(to, "norm", "batch_norm_training", om_kernel_type(c->in[0].type), x->dim[1]);
	int has = 0;

	for (uint32_t k = 0; k < 5; k++)
		om_launch_in(l, k);
	om_launch_out(l, 0);
	for (uint32_t k = 1; k <= 2; k++) {
		const bool is_kept = k < c->op->nout && om_has_out(c, k);
		om_launch_out(l, is_kept ? k : 0);
		has |= is_kept ? 1 << (k - 1) : 0;
	}
	add_channels(l, x);
	om_launch_f32(l, om_attr_float(c->op, "epsilon"));
	om_launch_f32(l, momentum);
	om_launch_f32(l, (float)(1 - (double)momentum));
	om_launch_i32(l, has);
	return OM_OK;
}

/* The gradients of dY, X and scale. */
static bool
norm_grad_supports(const om_op_context *c)
{
	return c->in[1].shape.rank >= 2 && om_shape_count(&c->in[1].shape) > 0;
}

/* Of the channels, in the scratch: mean, 1 / deviation, the sum of dy, that of dy (x - mean). */
enum { MOMENT_MEAN, MOMENT_FACTOR, MOMENT_SUM, MOMENT_PRODUCT, MOMENTS };

static uint64_t
moment_bytes(const om_op_context *c)
{
	return om_piece_size((uint64_t)c->in[1].shape.dim[1] * sizeof(float));
}

static uint64_t
norm_grad_scratch(const om_op_context *c)
{
	return MOMENTS * moment_bytes(c);
}

static void
add_moments(const om_op_context *c, om_launch *l, om_arg_kind kind, int from, int to)
{
	for (int k = from; k <= to; k++)
		om_launch_scratch(l, kind, (uint64_t)k * moment_bytes(c), (uint64_t)c->in[1].shape.dim[1] * sizeof(float));
}

static void
launch_sums(const om_op_context *c, om_launch_list *to)
{
	const om_shape *x = &c->in[1].shape;
	om_launch *l = om_launch_rows(to, "norm_grad", "channel_moments", "f32", x->dim[1]);

	om_launch_in(l, 1);
	add_moments(c, l, OM_ARG_OUT, MOMENT_MEAN, MOMENT_FACTOR);
	add_channels(l, x);
	om_launch_f32(l, om_attr_float(c->op, "epsilon"));
	l = om_launch_rows(to, "norm_grad", "batch_norm_sums", "f32", x->dim[1]);
	om_launch_in(l, 0);
	om_launch_in(l, 1);
	add_moments(c, l, OM_ARG_IN, MOMENT_MEAN, MOMENT_MEAN);
	add_moments(c, l, OM_ARG_OUT, MOMENT_SUM, MOMENT_PRODUCT);
	add_channels(l, x);
}

static om_status
norm_grad_launches(const om_op_context *c, om_launch_list *to)
{
	const om_shape *x = &c->in[1].shape;
	const int image = om_fused_out(c, 0), scale = om_fused_out(c, 1), bias = om_fused_out(c, 2);
	const int64_t total = om_shape_count(x), n = total / x->dim[1];
	om_launch *l;

	launch_sums(c, to);
	if (scale >= 0) {
		l = om_launch_typed(to, "norm_grad", "batch_norm_scale_grad", "f32", x->dim[1]);
		add_moments(c, l, OM_ARG_IN, MOMENT_PRODUCT, MOMENT_PRODUCT);
		add_moments(c, l, OM_ARG_IN, MOMENT_FACTOR, MOMENT_FACTOR);
		om_launch_out(l, (uint32_t)scale);
		om_launch_i64(l, x->dim[1]);
	}
	if (bias >= 0)
		om_launch_copy_row(to, "u32", x->dim[1], (om_launch_end){OM_OPERAND_SCRATCH, 0, (int64_t)(MOMENT_SUM * moment_bytes(c) / sizeof(float))},
			(om_launch_end){OM_OPERAND_OUT, (uint32_t)bias, 0});
	if (image < 0)
		return OM_OK;
	l = om_launch_typed(to, "norm_grad", "batch_norm_grad", "f32", total);
	for (uint32_t k = 0; k < 3; k++)
		om_launch_in(l, k);
	add_moments(c, l, OM_ARG_IN, MOMENT_MEAN, MOMENT_PRODUCT);
	om_launch_out(l, (uint32_t)image);
	om_launch_i64(l, total);
	om_launch_i64(l, n);
	om_launch_i64(l, x->dim[1]);
	om_launch_i64(l, om_shape_span(x, 2, x->rank));
	return OM_OK;
}

/* The gradient of the input is computed last, element by element. */
static bool
norm_grad_inplace(const om_op_context *c, uint32_t out, uint32_t in)
{
	return in <= 1 && om_fused_out(c, 0) == (int)out;
}

static om_status
response_launches(const om_op_context *c, om_launch_list *to)
{
	const om_shape *x = &c->in[0].shape;
	const int64_t n = om_shape_count(x), size = om_attr_int(c->op, "size");
	om_launch *l = om_launch_typed(to, "norm", "local_response", om_kernel_type(c->in[0].type), n);

	om_launch_in(l, 0);
	om_launch_out(l, 0);
	om_launch_i64(l, n);
	om_launch_i64(l, x->dim[1]);
	om_launch_i64(l, om_shape_span(x, 2, x->rank));
	om_launch_i64(l, (size - 1) / 2);
	om_launch_i64(l, size / 2);
	om_launch_f32(l, om_attr_float(c->op, "alpha") / (float)size);
	om_launch_f32(l, om_attr_float(c->op, "beta"));
	om_launch_f32(l, om_attr_float(c->op, "bias"));
	return OM_OK;
}

/* Rows are read completely before their first element is written. */
static bool
row_inplace(const om_op_context *c, uint32_t out, uint32_t in)
{
	return in == 0 && om_device_inplace(c, out, in);
}

#define INTEGER_REDUCED (OF(INT32) | OF(INT64) | OF(UINT32) | OF(UINT64) | OF(INT8) | OF(UINT8))
/* Axes are read on the host. */
#define REDUCE(label) {.name = label, .types = {OF_DEVICE_FLOATS}, .host_inputs = ~UINT32_C(1), .supports = reduce_supports, \
	.scratch = reduce_scratch, .launches = reduce_launches}
#define INTEGER_REDUCE(label) {.name = label, .types = {INTEGER_REDUCED}, .host_inputs = ~UINT32_C(1), \
	.supports = integer_reduce_supports, .scratch = reduce_scratch, .launches = reduce_launches}
#define SOFTMAX(label) {.name = label, .types = {OF_DEVICE_FLOATS}, .supports = softmax_supports, .inplace = row_inplace, \
	.launches = softmax_launches}
#define ROWS(label, from) {.name = label, .since = from, .types = {OF_DEVICE_FLOATS}, .supports = rows_supports, .inplace = row_inplace, \
	.launches = rows_launches}

const om_device_kernel om_device_kernels_device_reduce[] = {
	REDUCE("ReduceSum"), REDUCE("ReduceMean"), REDUCE("ReduceMax"), REDUCE("ReduceMin"), REDUCE("ReduceProd"),
	REDUCE("ReduceSumSquare"), REDUCE("ReduceL1"), REDUCE("ReduceL2"), REDUCE("ReduceLogSum"), REDUCE("ReduceLogSumExp"),
	INTEGER_REDUCE("ReduceSum"), INTEGER_REDUCE("ReduceMax"), INTEGER_REDUCE("ReduceMin"), INTEGER_REDUCE("ReduceProd"),
	SOFTMAX("Softmax"), SOFTMAX("LogSoftmax"),
	ROWS("LayerNormalization", 0), ROWS("RMSNormalization", 0), ROWS("InstanceNormalization", 6), ROWS("GroupNormalization", 21),
	{.name = "BatchNormalization", .since = 7, .types = {OF_DEVICE_FLOATS}, .supports = batch_norm_supports, .inplace = row_inplace,
	 .launches = batch_norm_launches},
	{.name = "BatchNormalization", .since = 14, .types = {OF_DEVICE_FLOATS}, .supports = training_supports, .inplace = row_inplace,
	 .launches = training_launches},
	{.domain = OM_GRAD_DOMAIN, .name = "BatchNormalizationGrad", .types = {OF(FLOAT32)}, .supports = norm_grad_supports,
	 .inplace = norm_grad_inplace, .scratch = norm_grad_scratch, .launches = norm_grad_launches},
	{.name = "LRN", .types = {OF_DEVICE_FLOATS}, .launches = response_launches},
	{0}
};
