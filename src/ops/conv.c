/* Convolutions.
 *
 * In float32 a convolution is a product of matrices: weights (channels out by
 * channels in and taps) times an image whose columns are windows.  That image
 * is never made: the product asks for rows of it, a part at a time.  Where
 * every group has a single input channel, each row of the output is summed
 * directly.  Half floats are computed as floats; double takes the plain way,
 * which the tests compare the others with.
 */
#include <config.h>

#include "kernels/kernels.h"
#include "grad/fused.h"
#include "ops/conv.h"
#include "ops/family.h"
#include "ops/numbers.h"

static om_status
wrong_window(const om_call *c, const char *wrong)
{
	return om_op_fail(c->session, OM_SHAPE, c->op, "%s", wrong);
}

/* ---- Shapes. ---- */

static int64_t
dim_of(const om_shape *s, int k)
{
	return s->rank < 0 ? OM_DIM_UNKNOWN : s->dim[k];
}

static om_status
check_channels(const om_call *c, int64_t cin, int64_t cout, int64_t per_group)
{
	const int64_t group = om_attr_int(c->op, "group");

	if (group < 1 || (cin >= 0 && cin % group) || (cout >= 0 && cout % group))
		return om_op_fail(c->session, OM_SHAPE, c->op, "%lld groups do not divide %lld and %lld channels",
			(long long)group, (long long)cin, (long long)cout);
	if (cin >= 0 && per_group >= 0 && cin / group != per_group)
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"the weights want %lld channels a group, the input has %lld in %lld groups",
			(long long)per_group, (long long)cin, (long long)group);
	return OM_OK;
}

static om_status
read_conv(const om_call *c, uint32_t xk, uint32_t wk, struct om_window *w)
{
	const om_shape *x = &c->in[xk].shape, *weights = &c->in[wk].shape;
	const int rank = x->rank >= 0 ? x->rank : weights->rank;
	int64_t kernel[OM_MAX_RANK];

	if (x->rank >= 0 && weights->rank >= 0 && x->rank != weights->rank)
		return om_op_fail(c->session, OM_SHAPE, c->op, "the input has rank %d, the weights %d",
			x->rank, weights->rank);
	for (int k = 2; k < rank; k++)
		kernel[k - 2] = dim_of(weights, k);
	const char *wrong = om_window_read(c, rank - 2, x, kernel, w);
	return wrong ? wrong_window(c, wrong) : OM_OK;
}

om_status
om_conv_infer(om_call *c, uint32_t xk, uint32_t wk)
{
	const om_shape *x = &c->in[xk].shape, *weights = &c->in[wk].shape;
	om_shape *out = &c->out[0].shape;
	struct om_window w;
	const char *wrong;

	if (x->rank < 0 && weights->rank < 0)
		return OM_OK;
	OM_TRY(read_conv(c, xk, wk, &w));
	OM_TRY(check_channels(c, dim_of(x, 1), dim_of(weights, 0), dim_of(weights, 1)));
	if ((wrong = om_window_shrink(c, &w, false)))
		return wrong_window(c, wrong);
	*out = (om_shape){.rank = w.n + 2, .dim = {OM_DIM_UNKNOWN, OM_DIM_UNKNOWN}};
	if (x->rank >= 0)
		om_copy_dim(out, 0, x, 0);
	if (weights->rank >= 0)
		om_copy_dim(out, 1, weights, 0);
	om_window_dims(out, x, &w);
	return OM_OK;
}

struct om_conv
om_conv_of(const om_call *c, uint32_t xk, uint32_t wk)
{
	const om_shape *x = &c->in[xk].shape;
	struct om_conv v = {.batch = x->dim[0], .cin = x->dim[1], .cout = c->in[wk].shape.dim[0]};

	om_window_read(c, x->rank - 2, x, c->in[wk].shape.dim + 2, &v.w);
	om_window_shrink(c, &v.w, false);
	v.group = om_attr_int(c->op, "group");
	v.kin = v.cin / v.group;
	v.kout = v.cout / v.group;
	return v;
}

void
om_conv_cost(const om_call *c, const struct om_conv *v, om_cost *cost)
{
	cost->flops = 2.0 * (double)om_shape_count(&c->out[0].shape) * (double)v->kin
		* (double)om_window_volume(v->w.kernel);
}

/* ---- float32. ---- */

struct images {
	const float *x, *w, *bias;    /* bias may be NULL */
	float *out;
	void *room;
};

/* n elements of a line of `width`, from `first` on, `stride` apart; what lies
 * outside is 0. */
static void
copy_line(float *to, int64_t n, const float *line, int64_t width, int64_t first, int64_t stride)
{
	int64_t lo = first >= 0 ? 0 : (-first + stride - 1) / stride;
	int64_t hi = first >= width ? 0 : (width - first + stride - 1) / stride;

	lo = lo < n ? lo : n;
	hi = hi < lo ? lo : hi < n ? hi : n;
	memset(to, 0, (size_t)lo * sizeof *to);
	if (stride == 1)
		memcpy(to + lo, line + first + lo, (size_t)(hi - lo) * sizeof *to);
	else
		for (int64_t j = lo; j < hi; j++)
			to[j] = line[first + j * stride];
	memset(to + hi, 0, (size_t)(n - hi) * sizeof *to);
}

const float *
om_conv_columns(const void *columns, int64_t k, int64_t n0, int64_t n, float *room)
{
	const struct om_columns *c = columns;
	const struct om_window *w = c->w;
	const int64_t kx = k % w->kernel[2], ky = k / w->kernel[2] % w->kernel[1];
	const int64_t kz = k / w->kernel[2] / w->kernel[1] % w->kernel[0];
	const float *x = c->x + k / om_window_volume(w->kernel) * om_window_volume(w->in);
	int64_t ox = n0 % w->out[2], oy = n0 / w->out[2] % w->out[1], oz = n0 / w->out[2] / w->out[1];
	float *to = room;

	while (n > 0) {
		const int64_t len = n < w->out[2] - ox ? n : w->out[2] - ox;
		const int64_t iz = oz * w->stride[0] - w->begin[0] + kz * w->dilation[0];
		const int64_t iy = oy * w->stride[1] - w->begin[1] + ky * w->dilation[1];
		if (iz < 0 || iz >= w->in[0] || iy < 0 || iy >= w->in[1])
			memset(to, 0, (size_t)len * sizeof *to);
		else
			copy_line(to, len, x + (iz * w->in[1] + iy) * w->in[2], w->in[2],
				ox * w->stride[2] - w->begin[2] + kx * w->dilation[2], w->stride[2]);
		to += len;
		n -= len;
		ox = 0;
		if (++oy == w->out[1]) {
			oy = 0;
			oz++;
		}
	}
	return room;
}

static void
fill(float *to, int64_t n, float x)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = x;
}

static void
conv_by_product(const struct om_conv *v, const struct images *p)
{
	const int64_t taps = om_window_volume(v->w.kernel), in = om_window_volume(v->w.in);
	const int64_t out = om_window_volume(v->w.out);
	const om_kernels *kernels = om_kernels_get();
	om_gemm g = {
		.m = v->kout, .n = out, .k = v->kin * taps, .a_row = v->kin * taps, .a_col = 1,
		.b_row = in, .b_col = 1, .c_row = out, .alpha = 1, .add = p->bias != NULL,
		.row = om_window_is_point(&v->w) ? NULL : om_conv_columns,
	};

	for (int64_t i = 0; i < v->batch * v->group; i++) {
		const int64_t channel = i % v->group * v->kout;
		const struct om_columns columns = {.w = &v->w, .x = p->x + i * v->kin * in};
		g.a = p->w + channel * g.k;
		g.b = columns.x;
		g.rows = &columns;
		g.c = p->out + i * v->kout * out;
		for (int64_t k = 0; k < v->kout && p->bias; k++)
			fill(g.c + k * out, out, p->bias[channel + k]);
		kernels->gemm(&g, p->room);
	}
}

/* ---- float32, one input channel a group. ---- */

enum { MAX_TAPS = 32 };

struct line {
	const struct om_window *w;
	const float *x, *taps;        /* the channel, its kernel */
	float *out;                   /* the line of the output */
	int64_t oy, oz;
	int64_t lo, hi;               /* outputs of which every tap along the line is inside */
	const om_kernels *kernels;
};

/* The line of the input under taps (kz, ky), or NULL. */
static const float *
line_under(const struct line *l, int64_t kz, int64_t ky)
{
	const struct om_window *w = l->w;
	const int64_t iz = l->oz * w->stride[0] - w->begin[0] + kz * w->dilation[0];
	const int64_t iy = l->oy * w->stride[1] - w->begin[1] + ky * w->dilation[1];

	if (iz < 0 || iz >= w->in[0] || iy < 0 || iy >= w->in[1])
		return NULL;
	return l->x + (iz * w->in[1] + iy) * w->in[2];
}

/* Outputs [from, to), one at a time. */
static void
line_edge(const struct line *l, int64_t from, int64_t to, const float *in, const float *taps)
{
	const struct om_window *w = l->w;

	for (int64_t ox = from; ox < to; ox++)
		for (int64_t kx = 0; kx < w->kernel[2]; kx++) {
			const int64_t ix = ox * w->stride[2] - w->begin[2] + kx * w->dilation[2];
			if (ix >= 0 && ix < w->in[2])
				l->out[ox] += taps[kx] * in[ix];
		}
}

static void
line_middle(const struct line *l, const float *const *in, const float *taps, int ntap)
{
	l->kernels->taps(l->out + l->lo, l->hi - l->lo, in, taps, ntap, l->w->stride[2]);
}

static void
sum_line(const struct line *l)
{
	const struct om_window *w = l->w;
	const int64_t first = l->lo * w->stride[2] - w->begin[2];
	const float *in[MAX_TAPS];
	float taps[MAX_TAPS];
	int n = 0;

	for (int64_t kz = 0; kz < w->kernel[0]; kz++)
		for (int64_t ky = 0; ky < w->kernel[1]; ky++) {
			const float *under = line_under(l, kz, ky);
			const float *row = l->taps + (kz * w->kernel[1] + ky) * w->kernel[2];
			if (!under)
				continue;
			line_edge(l, 0, l->lo, under, row);
			line_edge(l, l->hi, w->out[2], under, row);
			for (int64_t kx = 0; kx < w->kernel[2] && l->lo < l->hi; kx++) {
				if (n == MAX_TAPS) {
					line_middle(l, in, taps, n);
					n = 0;
				}
				in[n] = under + first + kx * w->dilation[2];
				taps[n++] = row[kx];
			}
		}
	if (n)
		line_middle(l, in, taps, n);
}

static void
conv_by_lines(const struct om_conv *v, const struct images *p)
{
	const struct om_window *w = &v->w;
	const int64_t taps = om_window_volume(w->kernel), in = om_window_volume(w->in);
	struct line l = {.w = w, .out = p->out, .kernels = om_kernels_get()};
	int64_t none;

	om_window_range(w, 2, 0, &l.lo, &none);
	om_window_range(w, 2, w->kernel[2] - 1, &none, &l.hi);
	if (l.hi < l.lo)
		l.hi = l.lo;
	for (int64_t i = 0; i < v->batch * v->cout; i++) {
		const int64_t channel = i % v->cout;
		l.x = p->x + (i / v->cout * v->cin + channel / v->kout) * in;
		l.taps = p->w + channel * taps;
		for (l.oz = 0; l.oz < w->out[0]; l.oz++)
			for (l.oy = 0; l.oy < w->out[1]; l.oy++, l.out += w->out[2]) {
				fill(l.out, w->out[2], p->bias ? p->bias[channel] : 0);
				sum_line(&l);
			}
	}
}

static bool
is_by_lines(const struct om_conv *v)
{
	return v->kin == 1 && v->kout <= 2;
}

/* ---- float32, outputs smaller than the kernel. ----
 *
 * So are the gradients of weights, which are convolutions with images for kernels.  The outputs of
 * all images of the batch are columns of one product; one input channel a group is a sum for each
 * place of the output, line by line. */

enum { SMALL = 32 };

static bool
is_small(const struct om_conv *v)
{
	return om_window_volume(v->w.out) <= SMALL && v->w.kernel[2] > v->w.out[2];
}

struct batch {
	const struct om_window *w;
	const float *x;               /* the group's channels in the first image */
	int64_t step, volume;         /* elements from image to image, places of an output */
};

/* Where the places of an output have their elements under tap `k`; -1: outside. */
static void
places_under(const struct batch *b, int64_t k, int64_t at[SMALL])
{
	const struct om_window *w = b->w;
	const int64_t kx = k % w->kernel[2], ky = k / w->kernel[2] % w->kernel[1];
	const int64_t kz = k / w->kernel[2] / w->kernel[1] % w->kernel[0];
	const int64_t channel = k / om_window_volume(w->kernel) * om_window_volume(w->in);
	int64_t n = 0;

	for (int64_t oz = 0; oz < w->out[0]; oz++)
		for (int64_t oy = 0; oy < w->out[1]; oy++)
			for (int64_t ox = 0; ox < w->out[2]; ox++) {
				const int64_t iz = oz * w->stride[0] - w->begin[0] + kz * w->dilation[0];
				const int64_t iy = oy * w->stride[1] - w->begin[1] + ky * w->dilation[1];
				const int64_t ix = ox * w->stride[2] - w->begin[2] + kx * w->dilation[2];
				const bool inside = iz >= 0 && iz < w->in[0] && iy >= 0 && iy < w->in[1]
					&& ix >= 0 && ix < w->in[2];
				at[n++] = inside ? channel + (iz * w->in[1] + iy) * w->in[2] + ix : -1;
			}
}

static const float *
batch_row(const void *rows, int64_t k, int64_t n0, int64_t n, float *room)
{
	const struct batch *b = rows;
	int64_t at[SMALL], place = n0 % b->volume;
	const float *x = b->x + n0 / b->volume * b->step;

	places_under(b, k, at);
	for (int64_t j = 0; j < n; x += b->step, place = 0)
		for (; place < b->volume && j < n; place++)
			room[j++] = at[place] < 0 ? 0 : x[at[place]];
	return room;
}

/* The columns of a group, in front of the product's room. */
static uint64_t
batch_columns(const struct om_conv *v)
{
	return om_piece((uint64_t)(v->kout * v->batch * om_window_volume(v->w.out)) * sizeof(float));
}

static void
conv_by_batch(const struct om_conv *v, const struct images *p)
{
	const int64_t taps = om_window_volume(v->w.kernel), in = om_window_volume(v->w.in);
	const int64_t volume = om_window_volume(v->w.out), n = v->batch * volume;
	float *columns = p->room;

	for (int64_t i = 0; i < v->group; i++) {
		const struct batch b = {&v->w, p->x + i * v->kin * in, v->cin * in, volume};
		const om_gemm g = {
			.m = v->kout, .n = n, .k = v->kin * taps, .a = p->w + i * v->kout * v->kin * taps,
			.a_row = v->kin * taps, .a_col = 1, .row = batch_row, .rows = &b, .c = columns, .c_row = n,
			.alpha = 1,
		};
		om_kernels_get()->gemm(&g, (char *)p->room + batch_columns(v));
		for (int64_t k = 0; k < v->kout * n; k++) {
			const int64_t channel = i * v->kout + k / n, image = k % n / volume;
			p->out[(image * v->cout + channel) * volume + k % volume] = columns[k]
				+ (p->bias ? p->bias[channel] : 0);
		}
	}
}

/* A line of the kernel along the input, of which elements are `step` apart. */
static float
dot_line(const float *x, int64_t step, const float *taps, int64_t n)
{
	float sum = 0;

	if (step == 1)
		return om_kernels_get()->dot(x, taps, n);
	for (int64_t k = 0; k < n; k++)
		sum += x[k * step] * taps[k];
	return sum;
}

float
om_conv_dot(const struct om_window *w, const float *x, const float *taps, const int64_t *o)
{
	const int64_t step = w->dilation[2], first = o[2] * w->stride[2] - w->begin[2];
	const int64_t lo = first >= 0 ? 0 : (-first + step - 1) / step;
	const int64_t end = first >= w->in[2] ? 0 : (w->in[2] - first + step - 1) / step;
	const int64_t n = (end < w->kernel[2] ? end : w->kernel[2]) - lo;
	double sum = 0;

	for (int64_t kz = 0; kz < w->kernel[0] && n > 0; kz++)
		for (int64_t ky = 0; ky < w->kernel[1]; ky++) {
			const int64_t iz = o[0] * w->stride[0] - w->begin[0] + kz * w->dilation[0];
			const int64_t iy = o[1] * w->stride[1] - w->begin[1] + ky * w->dilation[1];
			if (iz >= 0 && iz < w->in[0] && iy >= 0 && iy < w->in[1])
				sum += dot_line(x + (iz * w->in[1] + iy) * w->in[2] + first + lo * step, step,
					taps + (kz * w->kernel[1] + ky) * w->kernel[2] + lo, n);
		}
	return (float)sum;
}

static void
conv_by_dots(const struct om_conv *v, const struct images *p)
{
	const struct om_window *w = &v->w;
	const int64_t taps = om_window_volume(w->kernel), in = om_window_volume(w->in);
	float *out = p->out;

	for (int64_t i = 0; i < v->batch * v->cout; i++) {
		const int64_t channel = i % v->cout;
		const float *x = p->x + (i / v->cout * v->cin + channel / v->kout) * in;
		for (int64_t at = 0, n = om_window_volume(w->out); at < n; at++) {
			const int64_t o[] = {at / w->out[2] / w->out[1], at / w->out[2] % w->out[1], at % w->out[2]};
			*out++ = om_conv_dot(w, x, p->w + channel * taps, o) + (p->bias ? p->bias[channel] : 0);
		}
	}
}

/* ---- float32, which of them. ---- */

static bool
is_by_batch(const struct om_conv *v)
{
	return is_small(v) && v->batch > 1 && !is_by_lines(v);
}

static void
conv_floats(const struct om_conv *v, const struct images *p)
{
	if (is_by_batch(v))
		conv_by_batch(v, p);
	else if (!is_by_lines(v))
		conv_by_product(v, p);
	else if (is_small(v))
		conv_by_dots(v, p);
	else
		conv_by_lines(v, p);
}

static uint64_t
conv_room(const struct om_conv *v)
{
	const int64_t n = om_window_volume(v->w.out), k = v->kin * om_window_volume(v->w.kernel);

	if (is_by_lines(v))
		return 0;
	return is_by_batch(v) ? om_pieces(batch_columns(v), om_gemm_room(v->kout, v->batch * n, k))
		: om_gemm_room(v->kout, n, k);
}

/* ---- double. ---- */

static double
conv_at(const struct om_conv *v, const double *x, const double *taps, const int64_t *o)
{
	const struct om_window *w = &v->w;
	double sum = 0;

	for (int64_t k = 0; k < om_window_volume(w->kernel); k++) {
		const int64_t kz = k / w->kernel[2] / w->kernel[1], ky = k / w->kernel[2] % w->kernel[1];
		const int64_t iz = o[0] * w->stride[0] - w->begin[0] + kz * w->dilation[0];
		const int64_t iy = o[1] * w->stride[1] - w->begin[1] + ky * w->dilation[1];
		const int64_t ix = o[2] * w->stride[2] - w->begin[2] + k % w->kernel[2] * w->dilation[2];
		if (iz >= 0 && iz < w->in[0] && iy >= 0 && iy < w->in[1] && ix >= 0 && ix < w->in[2])
			sum += taps[k] * x[(iz * w->in[1] + iy) * w->in[2] + ix];
	}
	return sum;
}

static void
conv_doubles(const om_call *c, const struct om_conv *v)
{
	const int64_t taps = om_window_volume(v->w.kernel), in = om_window_volume(v->w.in);
	const double *x = c->in[0].data, *w = c->in[1].data;
	double *out = c->out[0].data;

	for (int64_t i = 0; i < v->batch * v->cout; i++) {
		const int64_t channel = i % v->cout;
		const int64_t first = i / v->cout * v->cin + channel / v->kout * v->kin;
		for (int64_t at = 0, n = om_window_volume(v->w.out); at < n; at++) {
			const int64_t o[] = {at / v->w.out[2] / v->w.out[1], at / v->w.out[2] % v->w.out[1],
				at % v->w.out[2]};
			double sum = om_has_in(c, 2) ? ((const double *)c->in[2].data)[channel] : 0;
			for (int64_t k = 0; k < v->kin; k++)
				sum += conv_at(v, x + (first + k) * in, w + (channel * v->kin + k) * taps, o);
			*out++ = sum;
		}
	}
}

/* ---- Conv. ---- */

static const om_attr_spec conv_attrs[] = {OM_CONV_ATTRS, {0}};

static om_status
same_types(const om_call *c)
{
	for (uint32_t k = 1; k < c->op->nin; k++)
		if (om_has_in(c, k) && c->in[k].type != c->in[0].type && c->in[k].type != OM_UNDEFINED
		    && c->in[0].type != OM_UNDEFINED)
			return om_op_fail(c->session, OM_SHAPE, c->op, "input %u is %s beside %s", k,
				om_dtype_text(c->in[k].type), om_dtype_text(c->in[0].type));
	return OM_OK;
}

static om_status
check_bias(const om_call *c, int64_t channels)
{
	char text[128];
	const om_shape *s = &c->in[2].shape;

	if (!om_has_in(c, 2) || s->rank < 0
	    || (s->rank == 1 && om_dims_agree(s->dim[0], channels)))
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op, "the bias has shape %s for %lld channels",
		om_shape_text(s, text, sizeof text), (long long)channels);
}

static om_status
conv_infer(om_call *c)
{
	OM_TRY(same_types(c));
	c->out[0].type = c->in[0].type;
	OM_TRY(om_conv_infer(c, 0, 1));
	return c->in[1].shape.rank < 0 ? OM_OK : check_bias(c, c->in[1].shape.dim[0]);
}

/* Wide copies of all inputs and of the output, behind the room. */
static uint64_t
wide_scratch(const om_call *c, uint64_t room)
{
	uint64_t bytes = om_piece(room);

	if (!om_is_half(c->in[0].type))
		return bytes;
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (om_has_in(c, k))
			bytes = om_pieces(bytes, om_floats_of(&c->in[k]));
	return om_pieces(bytes, om_floats_of(&c->out[0]));
}

static void
widen(const om_call *c, uint64_t room, struct images *p)
{
	const float *in[3] = {NULL, NULL, NULL};
	char *at = (char *)c->scratch + om_piece(room);
	const bool is_half = om_is_half(c->in[0].type);

	for (uint32_t k = 0; k < 3; k++) {
		if (!om_has_in(c, k))
			continue;
		in[k] = is_half ? (float *)at : c->in[k].data;
		if (!is_half)
			continue;
		om_widen(c->in[k].type, c->in[k].data, om_shape_count(&c->in[k].shape), (float *)at);
		at += om_floats_of(&c->in[k]);
	}
	*p = (struct images){.x = in[0], .w = in[1], .bias = in[2], .room = c->scratch,
		.out = is_half ? (float *)at : c->out[0].data};
}

static void
narrow(const om_call *c, const struct images *p)
{
	if (om_is_half(c->out[0].type))
		om_narrow(c->out[0].type, p->out, om_shape_count(&c->out[0].shape), c->out[0].data);
}

static uint64_t
conv_scratch(const om_call *c)
{
	const struct om_conv v = om_conv_of(c, 0, 1);

	return wide_scratch(c, conv_room(&v));
}

static om_status
conv_cpu(om_call *c)
{
	const struct om_conv v = om_conv_of(c, 0, 1);
	struct images p;

	if (c->in[0].type == OM_FLOAT64) {
		conv_doubles(c, &v);
		return OM_OK;
	}
	if (c->in[0].type != OM_FLOAT32 && !om_is_half(c->in[0].type))
		return om_no_kernel(c, c->in[0].type);
	widen(c, conv_room(&v), &p);
	conv_floats(&v, &p);
	narrow(c, &p);
	return OM_OK;
}

static void
conv_cost(const om_call *c, om_cost *cost)
{
	const struct om_conv v = om_conv_of(c, 0, 1);

	om_conv_cost(c, &v, cost);
}

/* ---- ConvTranspose. ---- */

static const om_attr_spec transpose_attrs[] = {
	OM_CONV_ATTRS,
	{"output_padding", OM_ATTR_INTS},
	{"output_shape", OM_ATTR_INTS},
	{0}
};

/* Weights are (channels in, channels out of a group, kernel). */
static om_status
transpose_infer(om_call *c)
{
	const om_shape *x = &c->in[0].shape, *weights = &c->in[1].shape;
	om_shape *out = &c->out[0].shape;
	const int64_t group = om_attr_int(c->op, "group");
	struct om_window w;
	const char *wrong;

	OM_TRY(same_types(c));
	c->out[0].type = c->in[0].type;
	if (x->rank < 0 && weights->rank < 0)
		return OM_OK;
	OM_TRY(read_conv(c, 0, 1, &w));
	OM_TRY(check_channels(c, dim_of(x, 1), OM_DIM_UNKNOWN, OM_DIM_UNKNOWN));
	if (!om_dims_agree(dim_of(x, 1), dim_of(weights, 0)))
		return om_op_fail(c->session, OM_SHAPE, c->op, "the weights want %lld channels, the input has %lld",
			(long long)dim_of(weights, 0), (long long)dim_of(x, 1));
	if ((wrong = om_window_grow(c, &w)))
		return wrong_window(c, wrong);
	*out = (om_shape){.rank = w.n + 2, .dim = {OM_DIM_UNKNOWN, OM_DIM_UNKNOWN}};
	if (x->rank >= 0)
		om_copy_dim(out, 0, x, 0);
	if (dim_of(weights, 1) >= 0 && __builtin_mul_overflow(dim_of(weights, 1), group, &out->dim[1]))
		return om_op_fail(c->session, OM_SHAPE, c->op, "%lld groups are too many", (long long)group);
	for (int k = 0; k < w.n; k++)
		out->dim[k + 2] = w.out[OM_WINDOW_AXES - w.n + k];
	return check_bias(c, out->dim[1]);
}

static struct om_conv
transpose_of(const om_call *c)
{
	const om_shape *x = &c->in[0].shape, *w = &c->in[1].shape;
	struct om_conv v = {.batch = x->dim[0], .cin = x->dim[1], .group = om_attr_int(c->op, "group")};

	om_window_read(c, x->rank - 2, x, w->dim + 2, &v.w);
	om_window_grow(c, &v.w);
	v.kout = w->dim[1];
	v.cout = v.kout * v.group;
	v.kin = v.cin / v.group;
	return v;
}

/* Add `factor` times the `in` image of values to where one tap paints them. */
#define PAINT(name, type)                                                      \
static void                                                                    \
name(const struct om_window *w, int64_t tap, const type *values, type factor, type *out) \
{                                                                              \
	const int64_t kx = tap % w->kernel[2], ky = tap / w->kernel[2] % w->kernel[1]; \
	const int64_t kz = tap / w->kernel[2] / w->kernel[1], s = w->stride[2]; \
	const int64_t o = kx * w->dilation[2] - w->begin[2];                   \
	const int64_t lo = o >= 0 ? 0 : (-o + s - 1) / s;                      \
	const int64_t end = o >= w->out[2] ? 0 : (w->out[2] - o + s - 1) / s;  \
	const int64_t hi = end < w->in[2] ? end : w->in[2];                    \
	for (int64_t z = 0; z < w->in[0]; z++)                                 \
		for (int64_t y = 0; y < w->in[1]; y++, values += w->in[2]) {   \
			const int64_t oz = z * w->stride[0] - w->begin[0] + kz * w->dilation[0]; \
			const int64_t oy = y * w->stride[1] - w->begin[1] + ky * w->dilation[1]; \
			if (oz < 0 || oz >= w->out[0] || oy < 0 || oy >= w->out[1]) \
				continue;                                      \
			type *line = out + (oz * w->out[1] + oy) * w->out[2];  \
			if (s == 1)                                            \
				for (int64_t x = lo; x < hi; x++)              \
					line[x + o] += factor * values[x];     \
			else                                                   \
				for (int64_t x = lo; x < hi; x++)              \
					line[x * s + o] += factor * values[x]; \
		}                                                              \
}
PAINT(paint_floats, float)
PAINT(paint_doubles, double)

/* Output channels that are computed in one product: as many as make about a
 * megabyte of values to be painted. */
enum { PAINT_FLOATS = 1 << 18 };

static int64_t
channels_at_once(const struct om_conv *v)
{
	const int64_t one = om_window_volume(v->w.kernel) * om_window_volume(v->w.in);
	const int64_t n = one > 0 ? PAINT_FLOATS / one : v->kout;

	return n < 1 ? 1 : n < v->kout ? n : v->kout;
}

static uint64_t
transpose_values(const struct om_conv *v)
{
	uint64_t n = (uint64_t)om_window_volume(v->w.kernel) * sizeof(float);

	if (__builtin_mul_overflow(n, (uint64_t)channels_at_once(v), &n)
	    || __builtin_mul_overflow(n, (uint64_t)om_window_volume(v->w.in), &n))
		return UINT64_MAX;
	return om_piece(n);
}

/* Windows of one element: the values are the output. */
static bool
is_direct(const struct om_conv *v)
{
	return om_window_is_point(&v->w) && om_window_volume(v->w.in) == om_window_volume(v->w.out);
}

/* One input channel a group: there is nothing to sum before it is painted. */
static bool
is_painted(const struct om_conv *v)
{
	return v->kin == 1;
}

uint64_t
om_conv_paint_room(const struct om_conv *v)
{
	if (is_direct(v))
		return om_gemm_room(v->kout, om_window_volume(v->w.in), v->kin);
	return is_painted(v) ? 0 : om_pieces(transpose_values(v), om_gemm_room(channels_at_once(v)
		* om_window_volume(v->w.kernel), om_window_volume(v->w.in), v->kin));
}

static void
transpose_group(const struct om_conv *v, const struct images *p, const float *x, const float *w, float *out)
{
	const int64_t taps = om_window_volume(v->w.kernel), in = om_window_volume(v->w.in);
	const int64_t step = channels_at_once(v), volume = om_window_volume(v->w.out);
	float *values = p->room;

	if (is_direct(v)) {
		const om_gemm g = {
			.m = v->kout, .n = in, .k = v->kin, .a = w, .a_row = 1, .a_col = v->kout, .b = x, .b_row = in,
			.b_col = 1, .c = out, .c_row = in, .alpha = 1, .add = true,
		};
		om_kernels_get()->gemm(&g, p->room);
		return;
	}
	for (int64_t k = 0; k < v->kout * taps && is_painted(v); k++)
		paint_floats(&v->w, k % taps, x, w[k], out + k / taps * volume);
	if (is_painted(v))
		return;
	for (int64_t first = 0; first < v->kout; first += step) {
		const int64_t n = step < v->kout - first ? step : v->kout - first;
		const om_gemm g = {
			.m = n * taps, .n = in, .k = v->kin, .a = w + first * taps, .a_row = 1,
			.a_col = v->kout * taps, .b = x, .b_row = in, .b_col = 1, .c = values, .c_row = in,
			.alpha = 1,
		};
		om_kernels_get()->gemm(&g, (char *)p->room + transpose_values(v));
		for (int64_t k = 0; k < n * taps; k++)
			paint_floats(&v->w, k % taps, values + k * in, 1, out + (first + k / taps) * volume);
	}
}

static void
transpose_floats(const struct om_conv *v, const struct images *p)
{
	const int64_t in = om_window_volume(v->w.in), out = om_window_volume(v->w.out);

	for (int64_t i = 0; i < v->batch * v->cout; i++)
		fill(p->out + i * out, out, p->bias ? p->bias[i % v->cout] : 0);
	for (int64_t i = 0; i < v->batch * v->group; i++)
		transpose_group(v, p, p->x + i * v->kin * in,
			p->w + i % v->group * v->kin * v->kout * om_window_volume(v->w.kernel),
			p->out + i * v->kout * out);
}

void
om_conv_paint(const struct om_conv *v, const float *x, const float *w, float *out, void *room)
{
	const struct images p = {.x = x, .w = w, .out = out, .room = room};

	transpose_floats(v, &p);
}

static void
transpose_doubles(const struct om_conv *v, const double *x, const double *w, const double *bias, double *out)
{
	const int64_t taps = om_window_volume(v->w.kernel), in = om_window_volume(v->w.in);
	const int64_t volume = om_window_volume(v->w.out);

	for (int64_t i = 0; i < v->batch * v->cout * volume; i++)
		out[i] = bias ? bias[i / volume % v->cout] : 0;
	for (int64_t i = 0; i < v->batch * v->cin; i++)
		for (int64_t k = 0; k < v->kout * taps; k++) {
			const int64_t ci = i % v->cin, co = ci / v->kin * v->kout + k / taps;
			paint_doubles(&v->w, k % taps, x + i * in, w[ci * v->kout * taps + k],
				out + (i / v->cin * v->cout + co) * volume);
		}
}

void
om_conv_paint_doubles(const struct om_conv *v, const double *x, const double *w, double *out)
{
	transpose_doubles(v, x, w, NULL, out);
}

static uint64_t
transpose_scratch(const om_call *c)
{
	const struct om_conv v = transpose_of(c);

	return c->in[0].type == OM_FLOAT64 ? 0 : wide_scratch(c, om_conv_paint_room(&v));
}

static om_status
transpose_cpu(om_call *c)
{
	const struct om_conv v = transpose_of(c);
	struct images p;

	if (c->in[0].type == OM_FLOAT64) {
		transpose_doubles(&v, c->in[0].data, c->in[1].data, om_has_in(c, 2) ? c->in[2].data : NULL, c->out[0].data);
		return OM_OK;
	}
	if (c->in[0].type != OM_FLOAT32 && !om_is_half(c->in[0].type))
		return om_no_kernel(c, c->in[0].type);
	widen(c, om_conv_paint_room(&v), &p);
	transpose_floats(&v, &p);
	narrow(c, &p);
	return OM_OK;
}

static void
transpose_cost(const om_call *c, om_cost *cost)
{
	const struct om_conv v = transpose_of(c);

	cost->flops = 2.0 * (double)om_shape_count(&c->in[0].shape) * (double)v.kout
		* (double)om_window_volume(v.w.kernel);
}

/* ---- Bytes. ---- */


static void
add_line(int32_t *out, int64_t lo, int64_t hi, const om_tensor *x, int64_t at, int64_t first, int64_t stride,
	int32_t zero, int32_t factor)
{
	const char *line = (const char *)x->data + at;

	if (stride == 1 && x->type == OM_INT8) {
		for (int64_t k = lo; k < hi; k++)
			out[k] += factor * (((const int8_t *)line)[first + k] - zero);
	} else if (stride == 1) {
		for (int64_t k = lo; k < hi; k++)
			out[k] += factor * (((const uint8_t *)line)[first + k] - zero);
	} else if (x->type == OM_INT8) {
		for (int64_t k = lo; k < hi; k++)
			out[k] += factor * (((const int8_t *)line)[first + k * stride] - zero);
	} else {
		for (int64_t k = lo; k < hi; k++)
			out[k] += factor * (((const uint8_t *)line)[first + k * stride] - zero);
	}
}

static int32_t
byte_at(const om_tensor *t, int64_t i)
{
	return t->type == OM_INT8 ? ((const int8_t *)t->data)[i] : ((const uint8_t *)t->data)[i];
}

/* One tap of one input channel. */
static void
add_tap(const struct om_window *w, int64_t tap, const om_tensor *x, int64_t base, int32_t zero,
	int32_t factor, int32_t *out)
{
	const int64_t kx = tap % w->kernel[2], ky = tap / w->kernel[2] % w->kernel[1];
	const int64_t kz = tap / w->kernel[2] / w->kernel[1];
	int64_t z0, z1, y0, y1, x0, x1;

	om_window_range(w, 0, kz, &z0, &z1);
	om_window_range(w, 1, ky, &y0, &y1);
	om_window_range(w, 2, kx, &x0, &x1);
	for (int64_t z = z0; z < z1; z++)
		for (int64_t y = y0; y < y1; y++) {
			const int64_t iz = z * w->stride[0] - w->begin[0] + kz * w->dilation[0];
			const int64_t iy = y * w->stride[1] - w->begin[1] + ky * w->dilation[1];
			add_line(out + (z * w->out[1] + y) * w->out[2], x0, x1, x,
				base + (iz * w->in[1] + iy) * w->in[2],
				kx * w->dilation[2] - w->begin[2], w->stride[2], zero, factor);
		}
}

void
om_conv_bytes(const struct om_conv *v, const om_tensor *x, int32_t x_zero, const om_tensor *w,
	int32_t w_zero, int64_t image, int64_t channel, int32_t *out)
{
	const int64_t taps = om_window_volume(v->w.kernel), in = om_window_volume(v->w.in);
	const int64_t first = image * v->cin + channel / v->kout * v->kin;

	memset(out, 0, (size_t)om_window_volume(v->w.out) * sizeof *out);
	for (int64_t k = 0; k < v->kin * taps; k++) {
		const int32_t factor = byte_at(w, channel * v->kin * taps + k) - w_zero;
		if (factor)
			add_tap(&v->w, k % taps, x, (first + k / taps) * in, x_zero, factor, out);
	}
}

static om_status
integer_infer(om_call *c)
{
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (om_has_in(c, k) && c->in[k].type != OM_INT8 && c->in[k].type != OM_UINT8
		    && c->in[k].type != OM_UNDEFINED)
			return om_op_fail(c->session, OM_SHAPE, c->op, "wants int8 or uint8, not %s",
				om_dtype_text(c->in[k].type));
	c->out[0].type = OM_INT32;
	return om_conv_infer(c, 0, 1);
}

static om_status
integer_cpu(om_call *c)
{
	const struct om_conv v = om_conv_of(c, 0, 1);
	const int64_t volume = om_window_volume(v.w.out);
	const int64_t nzero = om_has_in(c, 3) ? om_shape_count(&c->in[3].shape) : 0;

	if ((nzero > 1 && nzero != v.cout) || (om_has_in(c, 2) && om_shape_count(&c->in[2].shape) != 1))
		return om_op_fail(c->session, OM_SHAPE, c->op, "the zero points do not fit %lld channels",
			(long long)v.cout);
	const int32_t x_zero = om_has_in(c, 2) ? byte_at(&c->in[2], 0) : 0;
	for (int64_t i = 0; i < v.batch * v.cout; i++) {
		const int64_t channel = i % v.cout;
		const int32_t w_zero = nzero ? byte_at(&c->in[3], nzero > 1 ? channel : 0) : 0;
		om_conv_bytes(&v, &c->in[0], x_zero, &c->in[1], w_zero, i / v.cout, channel,
			(int32_t *)c->out[0].data + i * volume);
	}
	return OM_OK;
}

static const struct om_fused conv_fused = {"ConvGrad", {{"dY", OM_GRADIENT_OF, 0, true}, {"X", OM_INPUT, 0, false},
	{"W", OM_INPUT, 1, true}, {"B", OM_INPUT, 2, false}}};

#define CONV(from, to)                                                         \
	{.name = "Conv", .brief = "convolution with bias",                     \
	 .since = from, .until = to, .min_in = 2, .max_in = 3, .min_out = 1, .max_out = 1, \
	 .attrs = conv_attrs, .infer = conv_infer, .cpu = conv_cpu, .scratch = conv_scratch, \
	 .grad = om_grad_Conv, .fused = &conv_fused, .cost = conv_cost, \
	 .takes = {OF_FLOATS, LIKE(0), LIKE(0)}}

#define TRANSPOSE(from, to)                                                    \
	{.name = "ConvTranspose", .brief = "transposed convolution with bias", \
	 .since = from, .until = to, .min_in = 2, .max_in = 3, .min_out = 1, .max_out = 1, \
	 .attrs = transpose_attrs, .infer = transpose_infer, .cpu = transpose_cpu, \
	 .scratch = transpose_scratch, .grad = om_grad_ConvTranspose, .cost = transpose_cost, \
	 .takes = {OF_FLOATS, LIKE(0), LIKE(0)}}

const om_row om_ops_conv[] = {
	CONV(1, 10),
	CONV(11, 0),
	TRANSPOSE(1, 10),
	TRANSPOSE(11, 0),
	{.name = "ConvInteger", .brief = "convolution of bytes, in int32",
	 .since = 10, .min_in = 2, .max_in = 4, .min_out = 1, .max_out = 1,
	 .attrs = conv_attrs, .infer = integer_infer, .cpu = integer_cpu, .cost = conv_cost,
	 .takes = {OF_BYTES, OF_BYTES, LIKE(0), LIKE(1)}},
	{0}
};
