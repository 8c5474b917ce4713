/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling: the maximum, the mean or the norm of a window. */
#include <config.h>

#include <math.h>

#include "ops/family.h"
#include "ops/slices.h"
#include "base/shape.h"
#include "ir/query.h"
#include "opdef/columns.h"
#include "opdef/numbers.h"
#include "opdef/geometry/window.h"
#include "opdef/op_context.h"

enum { AXES = OM_WINDOW_AXES };

/* ---- Shapes. ---- */

/* Every window must overlap the input. */
static const char *
check_pads(const om_op_context *c, const struct om_window *w)
{
	for (int k = AXES - w->n; k < AXES; k++) {
		const int64_t span = (w->kernel[k] - 1) * w->dilation[k] + 1;
		if (w->begin[k] >= span || w->end[k] >= span)
			return om_printf(c->mem, "pads %lld and %lld must be less than the kernel size %lld",
				(long long)w->begin[k], (long long)w->end[k], (long long)span);
	}
	return NULL;
}

static const char *
read_pool(const om_op_context *c, struct om_window *w)
{
	const char *wrong = om_window_read(c, c->in[0].shape.rank - 2, &c->in[0].shape, NULL, w);

	if (!wrong)
		wrong = om_window_shrink(c, w, om_attr_int(c->op, "ceil_mode") != 0);
	return wrong ? wrong : check_pads(c, w);
}

static om_status
pool_infer(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;
	struct om_window w;
	const char *wrong;

	c->out[0].type = c->in[0].type;
	if (om_has_out(c, 1))
		c->out[1].type = OM_INT64;
	if (x->rank < 0)
		return OM_OK;
	if ((wrong = read_pool(c, &w)))
		return om_op_fail(c->session, OM_SHAPE, c->op, "%s", wrong);
	c->out[0].shape = *x;
	om_window_dims(&c->out[0].shape, x, &w);
	if (om_has_out(c, 1))
		c->out[1].shape = c->out[0].shape;
	return OM_OK;
}

/* Workspace for one line of sums. */
static uint64_t
line_scratch(const om_op_context *c)
{
	const om_shape *out = &c->out[0].shape;

	return (uint64_t)out->dim[out->rank - 1] * sizeof(double);
}

static void
pool_cost(const om_op_context *c, om_cost *cost)
{
	struct om_window w;

	if (!read_pool(c, &w))
		cost->flops = (double)om_shape_count(&c->out[0].shape) * (double)om_window_volume(w.kernel);
}

/* The prepared state; each operator uses the members of its own attributes. */
struct pool {
	struct om_window w;
	double order;                 /* of the Lp norm */
	bool with_padding;            /* the mean includes the padding */
	bool by_column;               /* indices are column-major */
};

static double
order_of(const om_op *op)
{
	return op->version < 2 ? (double)om_attr_float(op, "p") : (double)om_attr_int(op, "p");
}

static om_status
pool_prepare(om_op_context *c, void **state)
{
	struct pool *s = *state;
	const char *wrong = read_pool(c, &s->w);

	if (wrong)
		return om_op_fail(c->session, OM_SHAPE, c->op, "%s", wrong);
	s->order = order_of(c->op);
	s->with_padding = om_attr_int(c->op, "count_include_pad") != 0;
	s->by_column = om_attr_int(c->op, "storage_order") != 0;
	return OM_OK;
}

/* ---- Lines: all filter elements are accumulated into a line of the output. ---- */

enum kind { MAX, SUM, POWER };

struct line {
	const struct om_window *w;
	int64_t plane;                /* offset of the channel's image */
	int64_t oz, oy;
	double order;                 /* of the Lp norm */
};

OM_INLINE void
take(enum kind kind, double order, double x, double *sum)
{
	if (kind == MAX)
		*sum = x > *sum || x != x ? x : *sum;
	else if (kind == SUM)
		*sum += x;
	else
		*sum += order == 2 ? x * x : pow(fabs(x), order);
}

OM_INLINE void
take_line(om_dtype t, enum kind kind, const struct line *l, const void *x, double *sum)
{
	const struct om_window *w = l->w;

	for (int64_t kz = 0; kz < w->kernel[0]; kz++)
		for (int64_t ky = 0; ky < w->kernel[1]; ky++) {
			const int64_t iz = l->oz * w->stride[0] - w->begin[0] + kz * w->dilation[0];
			const int64_t iy = l->oy * w->stride[1] - w->begin[1] + ky * w->dilation[1];
			if (iz < 0 || iz >= w->in[0] || iy < 0 || iy >= w->in[1])
				continue;
			for (int64_t kx = 0; kx < w->kernel[2]; kx++) {
				const int64_t at = l->plane + (iz * w->in[1] + iy) * w->in[2]
					- w->begin[2] + kx * w->dilation[2];
				int64_t lo, hi;
				om_window_range(w, 2, kx, &lo, &hi);
				for (int64_t ox = lo; ox < hi; ox++)
					take(kind, l->order, om_get(t, x, at + ox * w->stride[2]), &sum[ox]);
			}
		}
}

static void
divide_line(const struct line *l, bool with_padding, double *sum)
{
	const int64_t n = om_window_taps(l->w, 0, l->oz, with_padding) * om_window_taps(l->w, 1, l->oy, with_padding);

	for (int64_t ox = 0; ox < l->w->out[2]; ox++) {
		const int64_t all = n * om_window_taps(l->w, 2, ox, with_padding);
		sum[ox] /= (double)(all ? all : 1);
	}
}

OM_INLINE void
pool_lines(om_dtype t, enum kind kind, const om_op_context *c, const struct pool *s)
{
	const struct om_window *w = &s->w;
	const bool with_padding = s->with_padding;
	const double order = s->order;
	const int64_t planes = c->out[0].shape.dim[0] * c->out[0].shape.dim[1], n = w->out[2];
	struct line l = {.w = w, .order = order};
	double *sum = c->scratch;
	int64_t at = 0;

	for (int64_t p = 0; p < planes; p++, l.plane += om_window_volume(w->in))
		for (l.oz = 0; l.oz < w->out[0]; l.oz++)
			for (l.oy = 0; l.oy < w->out[1]; l.oy++, at += n) {
				for (int64_t ox = 0; ox < n; ox++)
					sum[ox] = kind == MAX ? (double)-INFINITY : 0;
				take_line(t, kind, &l, c->in[0].data, sum);
				if (kind == SUM)
					divide_line(&l, with_padding, sum);
				for (int64_t ox = 0; ox < n; ox++)
					om_put(t, c->out[0].data, at + ox,
						kind == POWER ? pow(sum[ox], 1 / order) : sum[ox]);
			}
}

/* ---- MaxPool. ---- */

static const om_attr_spec max_attrs[] = {
	OM_POOL_ATTRS,
	{"ceil_mode", OM_ATTR_INT},
	{"storage_order", OM_ATTR_INT},
	{0}
};

/* NaN orders above all numbers. */
OM_INLINE bool
is_more(float x, float most)
{
	return (x > most) | (x != x);
}

/* The most frequent case: float32 without indices. */
static void
max_floats(const om_op_context *c, const struct om_window *w)
{
	const int64_t planes = c->out[0].shape.dim[0] * c->out[0].shape.dim[1], n = w->out[2];
	float *out = c->out[0].data;

	for (int64_t line = 0; line < planes * w->out[0] * w->out[1]; line++, out += n) {
		const int64_t oy = line % w->out[1], oz = line / w->out[1] % w->out[0];
		const float *x = (const float *)c->in[0].data + line / w->out[1] / w->out[0]
			* om_window_volume(w->in);
		for (int64_t ox = 0; ox < n; ox++)
			out[ox] = -INFINITY;
		for (int64_t k = 0; k < om_window_volume(w->kernel); k++) {
			const int64_t kx = k % w->kernel[2], ky = k / w->kernel[2] % w->kernel[1];
			const int64_t kz = k / w->kernel[2] / w->kernel[1], s = w->stride[2];
			const int64_t iz = oz * w->stride[0] - w->begin[0] + kz * w->dilation[0];
			const int64_t iy = oy * w->stride[1] - w->begin[1] + ky * w->dilation[1];
			int64_t lo, hi;
			if (iz < 0 || iz >= w->in[0] || iy < 0 || iy >= w->in[1])
				continue;
			const int64_t at = (iz * w->in[1] + iy) * w->in[2] - w->begin[2] + kx * w->dilation[2];
			om_window_range(w, 2, kx, &lo, &hi);
			if (s == 1)
				for (int64_t ox = lo; ox < hi; ox++)
					out[ox] = is_more(x[at + ox], out[ox]) ? x[at + ox] : out[ox];
			else
				for (int64_t ox = lo; ox < hi; ox++)
					out[ox] = is_more(x[at + ox * s], out[ox]) ? x[at + ox * s] : out[ox];
		}
	}
}

/* The offset of the largest element of a window; -1 if the window is empty. */
OM_INLINE int64_t
find_max(om_dtype t, const void *x, int64_t plane, const struct om_window *w, const int64_t *o, int64_t *place)
{
	double most = 0;
	int64_t found = -1;

	for (int64_t k = 0; k < om_window_volume(w->kernel); k++) {
		const int64_t tap[] = {k / w->kernel[2] / w->kernel[1], k / w->kernel[2] % w->kernel[1],
			k % w->kernel[2]};
		int64_t i[AXES];
		bool inside = true;
		for (int d = 0; d < AXES; d++) {
			i[d] = o[d] * w->stride[d] - w->begin[d] + tap[d] * w->dilation[d];
			inside &= i[d] >= 0 && i[d] < w->in[d];
		}
		if (!inside)
			continue;
		const int64_t at = plane + (i[0] * w->in[1] + i[1]) * w->in[2] + i[2];
		const double v = om_get(t, x, at);
		if (found >= 0 && !(v > most || (v != v && most == most)))
			continue;
		most = v;
		found = at;
		memcpy(place, i, sizeof i);
	}
	return found;
}

/* Indices count over the whole tensor, column-major if storage_order is set. */
OM_INLINE void
max_with_indices(om_dtype t, const om_op_context *c, const struct pool *s)
{
	const struct om_window *w = &s->w;
	const int64_t volume = om_window_volume(w->out), in = om_window_volume(w->in);
	int64_t *indices = c->out[1].data;

	for (int64_t n = 0, all = om_shape_count(&c->out[0].shape); n < all; n++) {
		const int64_t at = n % volume, plane = n / volume * in;
		const int64_t o[] = {at / w->out[2] / w->out[1], at / w->out[2] % w->out[1], at % w->out[2]};
		int64_t i[AXES];
		const int64_t found = find_max(t, c->in[0].data, plane, w, o, i);
		om_put(t, c->out[0].data, n, found < 0 ? (double)-INFINITY : om_get(t, c->in[0].data, found));
		if (!s->by_column || found < 0 || w->n == 1)
			indices[n] = found;
		else if (w->n == 2)
			indices[n] = plane + i[1] + i[2] * w->in[1];
		else
			indices[n] = plane + i[0] + (i[1] + i[2] * w->in[1]) * w->in[0];
	}
}

OM_INLINE void
max_of(om_dtype t, const om_op_context *c, const struct pool *s)
{
	if (om_has_out(c, 1))
		max_with_indices(t, c, s);
	else if (t == OM_FLOAT32)
		max_floats(c, &s->w);
	else
		pool_lines(t, MAX, c, s);
}

static om_status
max_cpu(om_op_context *c)
{
	const struct pool *s = c->state;

	switch (c->in[0].type) {
	case OM_INT8: max_of(OM_INT8, c, s); return OM_OK;
	case OM_UINT8: max_of(OM_UINT8, c, s); return OM_OK;
	default: break;
	}
	EACH_FLOAT(c->in[0].type, max_of(T, c, s), return om_no_kernel(c, c->in[0].type));
	return OM_OK;
}

/* ---- AveragePool, LpPool. ---- */

static const om_attr_spec average_attrs[] = {
	OM_POOL_ATTRS,
	{"ceil_mode", OM_ATTR_INT},
	{"count_include_pad", OM_ATTR_INT},
	{0}
};

static om_status
average_cpu(om_op_context *c)
{
	const struct pool *s = c->state;

	EACH_FLOAT(c->in[0].type, pool_lines(T, SUM, c, s), return om_no_kernel(c, c->in[0].type));
	return OM_OK;
}

static const om_attr_spec lp_attrs_1[] = {
	OM_WINDOW_ATTRS,
	{"p", OM_ATTR_FLOAT, .f = 2},
	{0}
};

static const om_attr_spec lp_attrs[] = {
	OM_POOL_ATTRS,
	{"ceil_mode", OM_ATTR_INT},
	{"p", OM_ATTR_INT, .i = 2},
	{0}
};

static om_status
check_order(const om_op_context *c)
{
	if (order_of(c->op) > 0)
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op, "p is %g, expected a positive order", order_of(c->op));
}

static om_status
lp_infer(om_op_context *c)
{
	OM_TRY(check_order(c));
	return pool_infer(c);
}

static om_status
lp_cpu(om_op_context *c)
{
	const struct pool *s = c->state;

	EACH_FLOAT(c->in[0].type, pool_lines(T, POWER, c, s), return om_no_kernel(c, c->in[0].type));
	return OM_OK;
}

/* ---- Global pooling. ---- */

static om_status
global_infer(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;

	c->out[0].type = c->in[0].type;
	if (x->rank < 0)
		return OM_OK;
	if (x->rank < 2)
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"the input has rank %d and no channel axis", x->rank);
	c->out[0].shape = *x;
	for (int k = 2; k < x->rank; k++) {
		c->out[0].shape.dim[k] = 1;
		c->out[0].shape.sym[k] = NULL;
	}
	return OM_OK;
}

OM_INLINE void
global(om_dtype t, enum kind kind, const om_op_context *c, double order)
{
	const int64_t n = om_shape_span(&c->in[0].shape, 2, c->in[0].shape.rank);

	for (int64_t p = 0, planes = om_shape_count(&c->out[0].shape); p < planes; p++) {
		double sum = kind == MAX ? (double)-INFINITY : 0;
		for (int64_t i = 0; i < n; i++)
			take(kind, order, om_get(t, c->in[0].data, p * n + i), &sum);
		om_put(t, c->out[0].data, p, kind == SUM ? sum / (double)n
			: kind == POWER ? pow(sum, 1 / order) : sum);
	}
}

static om_status
global_max_cpu(om_op_context *c)
{
	EACH_FLOAT(c->in[0].type, global(T, MAX, c, 0), return om_no_kernel(c, c->in[0].type));
	return OM_OK;
}

static om_status
global_average_cpu(om_op_context *c)
{
	EACH_FLOAT(c->in[0].type, global(T, SUM, c, 0), return om_no_kernel(c, c->in[0].type));
	return OM_OK;
}

static const om_attr_spec global_lp_attrs_1[] = {{"p", OM_ATTR_FLOAT, .f = 2}, {0}};
static const om_attr_spec global_lp_attrs[] = {{"p", OM_ATTR_INT, .i = 2}, {0}};

static om_status
global_lp_infer(om_op_context *c)
{
	OM_TRY(check_order(c));
	return global_infer(c);
}

static om_status
global_lp_prepare(om_op_context *c, void **state)
{
	struct pool *s = *state;

	s->order = order_of(c->op);
	return OM_OK;
}

static om_status
global_lp_cpu(om_op_context *c)
{
	const struct pool *s = c->state;

	EACH_FLOAT(c->in[0].type, global(T, POWER, c, s->order), return om_no_kernel(c, c->in[0].type));
	return OM_OK;
}

#define POOL(called, text, from, to, outputs, list, inferred, kernel, types) \
	{.name = #called, .brief = text, .since = from, .until = to, .min_in = 1, .max_in = 1, \
	 .min_out = 1, .max_out = outputs, .attrs = list, .infer = inferred, .cpu = kernel, \
	 .scratch = line_scratch, .slice = om_slice_pool, .cost = pool_cost, .input_types = {types}}

#define GLOBAL(called, text, from, to, list, inferred, sum, kernel)               \
	{.name = #called, .brief = text, .since = from, .until = to, .min_in = 1, .max_in = 1, \
	 .min_out = 1, .max_out = 1, .attrs = list, .infer = inferred, .cpu = kernel, \
	 .slice = om_slice_global_pool, .partial = sum, .cost = om_cost_of_input, .input_types = {OF_FLOATS}}

const om_opdef om_ops_pool[] = {
	POOL(MaxPool, "maximum over a sliding window", 1, 7, 1, max_attrs, pool_infer, max_cpu, OF_FLOATS | OF_BYTES),
	POOL(MaxPool, "maximum over a sliding window", 8, 0, 2, max_attrs, pool_infer, max_cpu, OF_FLOATS | OF_BYTES),
	POOL(AveragePool, "mean over a sliding window", 1, 0, 1, average_attrs, pool_infer, average_cpu, OF_FLOATS),
	POOL(LpPool, "Lp norm over a sliding window", 1, 1, 1, lp_attrs_1, lp_infer, lp_cpu, OF_FLOATS),
	POOL(LpPool, "Lp norm over a sliding window", 2, 0, 1, lp_attrs, lp_infer, lp_cpu, OF_FLOATS),
	GLOBAL(GlobalMaxPool, "maximum over each channel", 1, 0, NULL, global_infer, om_partial_global_max, global_max_cpu),
	GLOBAL(GlobalAveragePool, "mean over each channel", 1, 0, NULL, global_infer, om_partial_global_average, global_average_cpu),
	GLOBAL(GlobalLpPool, "Lp norm over each channel", 1, 1, global_lp_attrs_1, global_lp_infer, NULL,
		global_lp_cpu),
	GLOBAL(GlobalLpPool, "Lp norm over each channel", 2, 0, global_lp_attrs, global_lp_infer, NULL,
		global_lp_cpu),
	{0}
};

#define KERNEL(label, runs)                                                    \
	{.name = label, .state_bytes = sizeof(struct pool), .prepare = pool_prepare, \
	 .workspace = line_scratch, .run = runs}

const om_kernel om_kernels_pool[] = {
	KERNEL("MaxPool", max_cpu),
	KERNEL("AveragePool", average_cpu),
	KERNEL("LpPool", lp_cpu),
	{.name = "GlobalLpPool", .state_bytes = sizeof(struct pool), .prepare = global_lp_prepare, .run = global_lp_cpu},
	{0}
};
