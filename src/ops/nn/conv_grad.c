/* SPDX-License-Identifier: Apache-2.0 */
/* ConvGrad: all gradients of a convolution in one op.
 *
 * The gradient of the weights is the product of dY (channels by positions of all images) and the
 * transposed im2col matrix of the image.  Neither operand is materialized: a block of im2col is computed
 * for as many channels, filter elements and positions as fit the cache, and multiplied by these
 * positions of dY.  With one channel per group, every element is a sum along lines.  The gradient of the
 * image is the transposed convolution of dY.  It is computed last: the image is no longer read then, and
 * the gradient may be computed in place over it.
 *
 * Compared to this, the decomposed form requires X and dY with batch and channels transposed, and the
 * gradient of the weights before it is transposed back. */
#include <config.h>

#include "base/shape.h"
#include "opdef/gradient_op.h"
#include "ir/query.h"
#include "kernels/cpu/kernels.h"
#include "opdef/op_context.h"
#include "ops/nn/conv.h"
#include "ops/family.h"
#include "opdef/numbers.h"

enum { DY, X, W };

enum {
	ROWS = 384,               /* channels and filter elements per block */
	PLACES = 256,             /* positions per block */
	STEP = PLACES + 16,       /* row stride; not a power of two */
};

/* ---- Shapes. ---- */

/* The shape of the image, even if the image is absent. */
static const char *
shape_of_x(const om_op_context *c, om_shape *x)
{
	const char *bad = om_window_image(c, &c->in[DY].shape, 1, x);

	if (bad || !om_has_in(c, X) || c->in[X].shape.rank == OM_RANK_UNKNOWN)
		return bad;
	if (!om_shape_agree(&c->in[X].shape, x))
		return "X does not have the shape of the image";
	*x = c->in[X].shape;
	return NULL;
}

const char *
om_conv_grad_read(const om_op_context *c, struct om_conv *v)
{
	const om_shape *w = &c->in[W].shape;
	om_shape x;
	const char *bad = shape_of_x(c, &x);

	if (bad)
		return bad;
	if (w->rank != x.rank)
		return "W and the image differ in rank";
	if ((bad = om_window_read(c, x.rank - 2, &x, w->dim + 2, &v->w)) || (bad = om_window_shrink(c, &v->w, false)))
		return bad;
	v->batch = x.dim[0];
	v->cin = x.dim[1];
	v->cout = w->dim[0];
	v->group = om_attr_int(c->op, "group");
	v->kin = w->dim[1];
	if (v->group < 1 || (v->cout >= 0 && v->cout % v->group) || (v->cin >= 0 && v->kin >= 0
	    && (v->cin % v->group || v->cin / v->group != v->kin)))
		return "group does not divide the channels";
	v->kout = v->cout < 0 ? -1 : v->cout / v->group;
	return NULL;
}

static const char *
check_dy(const om_op_context *c, const struct om_conv *v)
{
	const om_shape *dy = &c->in[DY].shape;
	bool fits = om_window_gives(&v->w, dy);

	if (fits && dy->rank > 0)
		fits = om_dims_agree(dy->dim[0], v->batch) && om_dims_agree(dy->dim[1], v->cout);
	return fits ? NULL : "dY does not have the shape of the output";
}

static om_status
grad_infer(om_op_context *c)
{
	struct om_conv v;
	const int64_t *wrt = om_attr_ints(c->op, "wrt", NULL);
	const uint32_t n = c->op->nout;
	const char *bad = om_fused_wrong_wrt(c);

	if (!om_has_in(c, W))
		return om_wrong(c, "requires dY and W");
	if (bad)
		return om_wrong(c, bad);
	for (uint32_t k = 0; k < n; k++) {
		if (wrt[k] == 1 && !om_has_in(c, X))
			return om_wrong(c, "wrt has an entry whose gradient the operator does not compute");
		c->out[k].type = c->in[DY].type;
	}
	if (c->in[W].shape.rank < 0)
		return OM_OK;
	bad = om_conv_grad_read(c, &v);
	if (bad || (bad = check_dy(c, &v)))
		return om_wrong(c, bad);
	for (uint32_t k = 0; k < n; k++)
		if (wrt[k] == 0)
			shape_of_x(c, &c->out[k].shape);
		else if (wrt[k] == 1)
			c->out[k].shape = c->in[W].shape;
		else {
			c->out[k].shape = om_shape_of(1, &v.cout);
			om_copy_dim(&c->out[k].shape, 0, &c->in[W].shape, 0);
		}
	return OM_OK;
}

struct om_conv
om_conv_turned(const struct om_conv *v)
{
	struct om_conv t = *v;

	t.cin = v->cout;
	t.cout = v->cin;
	t.kin = v->kout;
	t.kout = v->kin;
	memcpy(t.w.in, v->w.out, sizeof t.w.in);
	memcpy(t.w.out, v->w.in, sizeof t.w.out);
	return t;
}

/* ---- float32: the weights. ---- */

/* One group in all images. */
struct group {
	const struct om_conv *v;
	const float *x, *dy;          /* in the first image */
	float *dw;
	float *columns, *block, *places;  /* scratch */
	void *room;
};

/* Positions [first, first + n) of the batch, numbered image after image. */
struct span {
	int64_t first, n;
};

static void
fill_columns(const struct group *g, int64_t k0, int64_t rows, struct span s)
{
	const struct om_conv *v = g->v;
	const int64_t volume = om_window_volume(v->w.out), in = om_window_volume(v->w.in);

	for (int64_t at = 0, n; at < s.n; at += n) {
		const int64_t image = (s.first + at) / volume, place = (s.first + at) % volume;
		const struct om_columns columns = {&v->w, g->x + image * v->cin * in};
		n = s.n - at < volume - place ? s.n - at : volume - place;
		for (int64_t k = 0; k < rows; k++)
			om_conv_im2col(&columns, k0 + k, place, n, g->columns + k * STEP + at);
	}
}

/* The positions of dY: in place if they belong to one image, otherwise a copy.  Returns the stride
 * between channels. */
static int64_t
places_of(const struct group *g, struct span s, const float **out)
{
	const struct om_conv *v = g->v;
	const int64_t volume = om_window_volume(v->w.out), image = s.first / volume, place = s.first % volume;

	*out = g->dy + image * v->cout * volume + place;
	if (place + s.n <= volume)
		return volume;
	for (int64_t at = 0, n; at < s.n; at += n) {
		const int64_t i = (s.first + at) / volume, from = (s.first + at) % volume;
		n = s.n - at < volume - from ? s.n - at : volume - from;
		for (int64_t k = 0; k < v->kout; k++)
			memcpy(g->places + k * STEP + at, g->dy + (i * v->cout + k) * volume + from,
				(size_t)n * sizeof(float));
	}
	*out = g->places;
	return STEP;
}

/* Multiply rows [k0, k0 + rows) of the im2col matrix by the positions and transpose the result into dW. */
static void
weights_of_rows(const struct group *g, int64_t k0, int64_t rows)
{
	const struct om_conv *v = g->v;
	const int64_t k = v->kin * om_window_volume(v->w.kernel);
	const int64_t all = v->batch * om_window_volume(v->w.out);
	om_gemm m = {.m = rows, .n = v->kout, .a = g->columns, .a_row = STEP, .a_col = 1, .b_row = 1, .c = g->block,
		.c_row = v->kout, .alpha = 1};

	for (int64_t first = 0; first < all; first += PLACES) {
		const struct span s = {first, all - first < PLACES ? all - first : PLACES};
		fill_columns(g, k0, rows, s);
		m.b_col = places_of(g, s, &m.b);
		m.k = s.n;
		m.add = first > 0;
		om_kernels_get()->gemm(&m, g->room);
	}
	for (int64_t o = 0; o < v->kout; o++)
		for (int64_t i = 0; i < rows; i++)
			g->dw[o * k + k0 + i] = all ? g->block[i * v->kout + o] : 0;
}

/* One input channel per group: X is summed under a window of the size of the output, with dY as filter. */
static bool
is_single(const struct om_conv *v)
{
	return v->kin == 1 && v->kout <= 2;
}

/* Long contiguous lines are summed in place; short or strided ones are first copied to one buffer. */
static bool
is_long(const struct om_conv *v)
{
	return v->w.stride[2] == 1 && v->w.out[2] >= 16;
}

static void
weights_of_single(const struct om_conv *v, const float *x, const float *dy, float *dw, float *room)
{
	const int64_t taps = om_window_volume(v->w.kernel), in = om_window_volume(v->w.in);
	const int64_t volume = om_window_volume(v->w.out);
	struct om_window swept = v->w;

	memcpy(swept.kernel, v->w.out, sizeof swept.kernel);
	memcpy(swept.out, v->w.kernel, sizeof swept.out);
	memcpy(swept.stride, v->w.dilation, sizeof swept.stride);
	memcpy(swept.dilation, v->w.stride, sizeof swept.dilation);
	for (int64_t i = 0; i < v->cout * taps; i++) {
		const int64_t o = i / taps, tap = i % taps;
		const int64_t at[] = {tap / v->w.kernel[2] / v->w.kernel[1], tap / v->w.kernel[2] % v->w.kernel[1],
			tap % v->w.kernel[2]};
		double sum = 0;
		for (int64_t n = 0; n < v->batch; n++) {
			const float *image = x + (n * v->cin + o / v->kout) * in, *line = dy + (n * v->cout + o) * volume;
			const struct om_columns columns = {&v->w, image};
			sum += (double)(is_long(v) ? om_conv_dot(&swept, image, line, at)
				: om_kernels_get()->dot(om_conv_im2col(&columns, tap, 0, volume, room), line, volume));
		}
		dw[i] = (float)sum;
	}
}

static uint64_t
floats(int64_t a, int64_t b)
{
	uint64_t n;

	if (__builtin_mul_overflow((uint64_t)a, (uint64_t)b, &n) || n > UINT64_MAX / sizeof(float))
		return UINT64_MAX;
	return om_piece_size(n * sizeof(float));
}

static int64_t
rows_of(const struct om_conv *v)
{
	const int64_t k = v->kin * om_window_volume(v->w.kernel);

	return k < ROWS ? k : ROWS;
}

static uint64_t
weights_room(const struct om_conv *v)
{
	if (is_single(v))
		return floats(om_window_volume(v->w.out), 1);
	const uint64_t mine = om_size_sum(floats(rows_of(v), STEP), om_size_sum(floats(rows_of(v), v->kout), floats(v->kout, STEP)));
	return om_size_sum(mine, om_gemm_workspace(rows_of(v), v->kout, PLACES));
}

static void
weights_floats(const struct om_conv *v, const float *x, const float *dy, float *dw, char *room)
{
	const int64_t k = v->kin * om_window_volume(v->w.kernel), rows = rows_of(v);
	struct group g = {.v = v, .columns = (float *)room};

	if (is_single(v)) {
		weights_of_single(v, x, dy, dw, (float *)room);
		return;
	}
	g.block = (float *)(room += floats(rows, STEP));
	g.places = (float *)(room += floats(rows, v->kout));
	g.room = room + floats(v->kout, STEP);
	for (int64_t i = 0; i < v->group; i++) {
		g.x = x + i * v->kin * om_window_volume(v->w.in);
		g.dy = dy + i * v->kout * om_window_volume(v->w.out);
		g.dw = dw + i * v->kout * k;
		for (int64_t k0 = 0; k0 < k; k0 += ROWS)
			weights_of_rows(&g, k0, k - k0 < ROWS ? k - k0 : ROWS);
	}
}

/* ---- double: the weights. ---- */

static double
weight_at(const struct om_conv *v, const double *x, const double *dy, int64_t tap)
{
	const struct om_window *w = &v->w;
	const int64_t k[] = {tap / w->kernel[2] / w->kernel[1], tap / w->kernel[2] % w->kernel[1], tap % w->kernel[2]};
	int64_t lo[OM_WINDOW_AXES], hi[OM_WINDOW_AXES], at[OM_WINDOW_AXES];
	double sum = 0;

	for (int a = 0; a < OM_WINDOW_AXES; a++) {
		om_window_range(w, a, k[a], &lo[a], &hi[a]);
		at[a] = k[a] * w->dilation[a] - w->begin[a];
	}
	for (int64_t z = lo[0]; z < hi[0]; z++)
		for (int64_t y = lo[1]; y < hi[1]; y++) {
			const int64_t iz = z * w->stride[0] + at[0], iy = y * w->stride[1] + at[1];
			const int64_t line = (iz * w->in[1] + iy) * w->in[2] + at[2];
			for (int64_t i = lo[2]; i < hi[2]; i++)
				sum += x[line + i * w->stride[2]] * dy[(z * w->out[1] + y) * w->out[2] + i];
		}
	return sum;
}

static void
weights_doubles(const struct om_conv *v, const double *x, const double *dy, double *dw)
{
	const int64_t taps = om_window_volume(v->w.kernel), in = om_window_volume(v->w.in);
	const int64_t volume = om_window_volume(v->w.out);

	for (int64_t i = 0; i < v->cout * v->kin * taps; i++) {
		const int64_t o = i / taps / v->kin, channel = o / v->kout * v->kin + i / taps % v->kin;
		double sum = 0;
		for (int64_t n = 0; n < v->batch; n++)
			sum += weight_at(v, x + (n * v->cin + channel) * in, dy + (n * v->cout + o) * volume, i % taps);
		dw[i] = sum;
	}
}

/* ---- The bias. ---- */

enum { LANES = 8 };

OM_INLINE void
bias_of(om_dtype t, const struct om_conv *v, const void *dy, void *db)
{
	const int64_t volume = om_window_volume(v->w.out);

	for (int64_t o = 0; o < v->cout; o++) {
		double sum[LANES] = {0};
		for (int64_t n = 0; n < v->batch; n++) {
			const int64_t first = (n * v->cout + o) * volume;
			int64_t i = 0;
			for (; i + LANES <= volume; i += LANES)
				for (int l = 0; l < LANES; l++)
					sum[l] += om_get(t, dy, first + i + l);
			for (; i < volume; i++)
				sum[i % LANES] += om_get(t, dy, first + i);
		}
		for (int l = 1; l < LANES; l++)
			sum[0] += sum[l];
		om_put(t, db, o, sum[0]);
	}
}

/* ---- The op. ---- */

struct grad {
	struct om_conv conv;
	om_fused_outs outs;
};

static uint64_t
grad_scratch(const om_op_context *c)
{
	struct om_conv v;
	uint64_t image = 0, weights = 0;

	if (c->in[DY].type == OM_FLOAT64 || om_conv_grad_read(c, &v))
		return 0;
	const struct om_conv t = om_conv_turned(&v);
	if (om_fused_out(c, 0) >= 0)
		image = om_conv_transpose_workspace(&t);
	if (om_fused_out(c, 1) >= 0)
		weights = weights_room(&v);
	return image > weights ? image : weights;
}

static om_status
grad_prepare(om_op_context *c, void **state)
{
	const om_dtype type = c->in[DY].type;
	struct grad *s = *state;
	struct om_conv *v = &s->conv;
	const char *bad = om_conv_grad_read(c, v);

	s->outs = om_fused_find(c);
	if (bad || (bad = check_dy(c, v)))
		return om_wrong(c, bad);
	return type == OM_FLOAT32 || type == OM_FLOAT64 ? OM_OK : om_no_kernel(c, type);
}

static om_status
grad_cpu(om_op_context *c)
{
	const struct grad *s = c->state;
	void *dx = om_fused_data(c, &s->outs, 0), *dw = om_fused_data(c, &s->outs, 1), *db = om_fused_data(c, &s->outs, 2);
	const void *dy = c->in[DY].data, *w = c->in[W].data;
	const om_dtype type = c->in[DY].type;
	const struct om_conv v = s->conv, t = om_conv_turned(&v);

	if (dw && type == OM_FLOAT64)
		weights_doubles(&v, c->in[X].data, dy, dw);
	else if (dw)
		weights_floats(&v, c->in[X].data, dy, dw, c->scratch);
	if (db && type == OM_FLOAT64)
		bias_of(OM_FLOAT64, &v, dy, db);
	else if (db)
		bias_of(OM_FLOAT32, &v, dy, db);
	if (dx && type == OM_FLOAT64)
		om_conv_transpose_scatter_f64(&t, dy, w, NULL, dx);
	else if (dx)
		om_conv_transpose_scatter(&t, &(struct om_images){.x = dy, .w = w, .out = dx, .room = c->scratch});
	return OM_OK;
}

/* The gradient of the image is computed after the last read of the image. */
static bool
grad_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	return in == X && om_attr_ints(c->op, "wrt", NULL)[out] == 0;
}

static void
grad_cost(const om_op_context *c, om_cost *cost)
{
	struct om_conv v;

	if (om_conv_grad_read(c, &v))
		return;
	const double dy = (double)om_shape_count(&c->in[DY].shape);
	cost->flops = dy * (((om_fused_out(c, 0) >= 0) + (om_fused_out(c, 1) >= 0)) * 2.0 * (double)v.kin * (double)om_window_volume(v.w.kernel)
		+ (om_fused_out(c, 2) >= 0));
}

static const om_attr_spec grad_attrs[] = {OM_CONV_ATTRS, OM_FUSED_ATTRS, {0}};

const om_opdef om_ops_conv_grad[] = {
	{.domain = OM_GRAD_DOMAIN, .name = "ConvGrad", .brief = "gradients of Conv",
	 .since = 1, .min_in = 1, .max_in = 4, .min_out = 1, .max_out = 3, .flags = OM_IMPLEMENTS_FUNCTION, .attrs = grad_attrs,
	 .infer = grad_infer, .inplace = grad_reuse, .cpu = grad_cpu, .scratch = grad_scratch,
	 .cost = grad_cost, .input_types = {OF_WIDE_FLOATS, LIKE(0), LIKE(0)}},
	{0}
};

const om_kernel om_kernels_conv_grad[] = {
	{.domain = OM_GRAD_DOMAIN, .name = "ConvGrad", .state_bytes = sizeof(struct grad), .prepare = grad_prepare,
	 .workspace = grad_scratch, .run = grad_cpu},
	{0}
};
