/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms, windows and mel weights. */
#include <config.h>

#include <math.h>
#include "base/arena_internal.h"
#include "base/convert_elements.h"
#include "base/shape.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "opdef/columns.h"
#include "ops/family.h"
#include "opdef/slice.h"
#include "opdef/kernel_call.h"
#include "opdef/numbers.h"

static const double PI = 3.14159265358979323846;

static bool
is_real(om_dtype t)
{
	return t == OM_FLOAT32 || t == OM_FLOAT64 || om_is_half(t);
}

/* An integer input that determines shapes; false when it is not known. */
static bool
whole(const om_op_context *c, uint32_t k, int64_t *n)
{
	double v;

	if (!om_in_scalar(c, k, &v) || !(fabs(v) < 0x1p53))
		return false;
	*n = (int64_t)v;
	return true;
}

/* ---- The transform. ----
 *
 * A length with a factor p is computed as p transforms of every p-th element, combined with twiddle
 * factors (Cooley and Tukey); a prime length is summed directly. */

struct complex {
	double re, im;
};

struct fourier {
	int64_t n;
	struct complex *in, *out, *work, *turn;   /* turn[k]: rotation by k/n of a full turn */
};

static om_status
fourier_new(const om_op_context *c, struct fourier *f, int64_t n, bool inverse)
{
	*f = (struct fourier){.n = n};
	/* Without lines to transform the length is not bounded by any tensor. */
	if (om_shape_count(&c->out[0].shape) == 0)
		return OM_OK;
	f->in = n <= INT32_MAX ? om_alloc_try(c->mem, ((size_t)n * 4 + 1) * sizeof(struct complex)) : NULL;
	if (!f->in)
		return om_op_fail(c->session, OM_MEMORY, c->op, "cannot allocate a transform of length %lld",
			(long long)n);
	f->out = f->in + n;
	f->work = f->out + n;
	f->turn = f->work + n;
	for (int64_t k = 0; k < n; k++) {
		const double angle = (inverse ? 2 : -2) * PI * (double)k / (double)n;
		f->turn[k] = (struct complex){cos(angle), sin(angle)};
	}
	return OM_OK;
}

static int64_t
least_factor(int64_t n)
{
	for (int64_t p = 2; p * p <= n; p++)
		if (n % p == 0)
			return p;
	return n;
}

static void
transform(const struct fourier *f, const struct complex *in, int64_t step, struct complex *out,
	struct complex *work, int64_t n)
{
	if (n <= 1) {
		*out = *in;
		return;
	}
	const int64_t p = least_factor(n), m = n / p;
	for (int64_t r = 0; r < p; r++)
		transform(f, in + r * step, step * p, work + r * m, out + r * m, m);
	for (int64_t k = 0; k < n; k++) {
		struct complex sum = {0, 0};
		for (int64_t r = 0; r < p; r++) {
			const struct complex a = work[r * m + k % m], b = f->turn[r * k % n * step];
			sum.re += a.re * b.re - a.im * b.im;
			sum.im += a.re * b.im + a.im * b.re;
		}
		out[k] = sum;
	}
}

/* Transform f->in into f->out. */
static void
fourier_run(const struct fourier *f)
{
	if (f->n > 0)
		transform(f, f->in, 1, f->out, f->work, f->n);
}

/* ---- DFT. ---- */

struct dft_attrs {
	int64_t axis, inverse, onesided;   /* axis: before version 20 */
};

static const om_attr_field dft_fields[] = {
	OM_FIELD(struct dft_attrs, INT, axis),
	OM_FIELD(struct dft_attrs, INT, inverse),
	OM_FIELD(struct dft_attrs, INT, onesided),
	{0}
};

/* While planning, -1 means unknown. */
struct dft {
	int axis;
	int64_t n, have, want;   /* transform length; elements of input and output along the axis */
	bool inverse, onesided;
};

static om_status
dft_axis(const om_op_context *c, const struct dft_attrs *attrs, int rank, int *axis, bool *known)
{
	int64_t a = c->op->version < 20 ? attrs->axis : -2;

	*known = !(c->op->version >= 20 && om_has_in(c, 2)) || whole(c, 2, &a);
	if (!*known)
		return OM_OK;
	if (!om_axis(a, rank, axis) || *axis == rank - 1)
		return om_op_fail(c->session, OM_SHAPE, c->op, "axis %lld is out of range for a signal of rank %d",
			(long long)a, rank);
	return OM_OK;
}

static om_status
dft_of(const om_op_context *c, const struct dft_attrs *attrs, struct dft *d, bool *known)
{
	const om_shape *x = &c->in[0].shape;

	*d = (struct dft){.n = -1, .want = -1, .inverse = attrs->inverse, .onesided = attrs->onesided};
	if (x->rank < 2)
		return om_wrong(c,
			"the input must have a signal axis followed by an axis of 1 or 2 (real and imaginary "
			"parts)");
	OM_TRY(dft_axis(c, attrs, x->rank, &d->axis, known));
	if (!*known)
		return OM_OK;
	d->have = x->dim[d->axis];
	const bool doubles = !om_has_in(c, 1) && d->inverse && d->onesided;
	if (doubles && (d->have == 0 || d->have == 1 || d->have > INT64_MAX / 2))
		return om_wrong(c, "half a spectrum must have between 2 and 2^62 elements");
	if (!om_has_in(c, 1))
		d->n = d->have < 0 ? -1 : doubles ? 2 * (d->have - 1) : d->have;
	else if (!whole(c, 1, &d->n))
		d->n = -1;
	else if (d->n < 1)
		return om_wrong(c, "dft_length must be positive");
	d->want = d->n < 0 ? -1 : d->onesided && !d->inverse ? d->n / 2 + 1 : d->n;
	return OM_OK;
}

static om_status
dft_infer(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;
	om_shape *y = &c->out[0].shape;
	struct dft_attrs attrs;
	struct dft d;
	bool known;

	c->out[0].type = c->in[0].type;
	if (x->rank < 0)
		return OM_OK;
	om_attr_fields(c->op, dft_fields, &attrs);
	OM_TRY(dft_of(c, &attrs, &d, &known));
	/* No axis changes its length, whichever it is, unless a length is given or one side is left out. */
	*y = known || (!om_has_in(c, 1) && !d.onesided) ? *x : om_shape_open(x->rank);
	y->dim[y->rank - 1] = d.inverse && d.onesided ? 1 : 2;
	y->sym[y->rank - 1] = NULL;
	const int64_t parts = x->dim[x->rank - 1];
	if (parts >= 0 && parts != 1 && parts != 2)
		return om_wrong(c, "the last axis must have size 1 (real) or 2 (complex)");
	if (known && (d.want >= 0 || om_has_in(c, 1) || d.onesided)) {
		y->dim[d.axis] = d.want;
		y->sym[d.axis] = NULL;
	}
	return OM_OK;
}

/* A line of the input, truncated or zero-padded; the missing half of a real signal's spectrum is the
 * conjugate mirror image of the other one. */
static void
dft_line(const om_op_context *c, const struct dft *d, const struct fourier *f, int64_t at, int64_t step)
{
	const om_tensor *x = &c->in[0];
	const bool pair = x->shape.dim[x->shape.rank - 1] == 2, mirror = d->inverse && d->onesided;
	const int64_t half = f->n / 2 + 1, most = mirror ? half : f->n;

	if (f->n > 0)
		memset(f->in, 0, (size_t)f->n * sizeof *f->in);
	for (int64_t k = 0; k < d->have && k < most; k++) {
		f->in[k].re = om_get(x->type, x->data, at + k * step);
		f->in[k].im = pair ? om_get(x->type, x->data, at + k * step + 1) : 0;
	}
	for (int64_t k = half; mirror && k < f->n; k++)
		f->in[k] = (struct complex){f->in[f->n - k].re, -f->in[f->n - k].im};
	if (mirror)
		f->in[0].im = 0;
	if (mirror && f->n % 2 == 0)
		f->in[f->n / 2].im = 0;
}

struct dft_state {
	struct dft_attrs attrs;       /* first: dft_fields */
	bool is_steered;              /* axis or length are known only in a run */
	struct dft d;
	struct fourier f;
};

/* Data derived from axis and length. */
static om_status
dft_start(const om_op_context *c, const struct dft_attrs *attrs, struct dft *d, struct fourier *f)
{
	bool known;

	OM_TRY(dft_of(c, attrs, d, &known));
	return c->sizes_only ? OM_OK : fourier_new(c, f, d->n, d->inverse);
}

static om_status
dft_prepare(om_op_context *c, void **state)
{
	struct dft_state *s = *state;

	if (!is_real(c->out[0].type))
		return om_no_kernel(c, c->out[0].type);
	s->is_steered = om_is_steered(c);
	return s->is_steered ? OM_OK : dft_start(c, &s->attrs, &s->d, &s->f);
}

static om_status
dft_cpu(om_op_context *c)
{
	const struct dft_state *s = c->state;
	const om_shape *x = &c->in[0].shape, *y = &c->out[0].shape;
	const om_tensor *out = &c->out[0];
	struct fourier f = s->f;
	struct dft d = s->d;

	if (s->is_steered)
		OM_TRY(dft_start(c, &s->attrs, &d, &f));
	const double scale = d.inverse ? 1 / (double)d.n : 1;
	const int64_t in_parts = x->dim[x->rank - 1], parts = y->dim[y->rank - 1];
	const int64_t inner = om_shape_span(x, d.axis + 1, x->rank - 1);
	for (int64_t line = 0; line < om_shape_span(x, 0, d.axis) * inner; line++) {
		const int64_t o = line / inner, i = line % inner;
		dft_line(c, &d, &f, (o * d.have * inner + i) * in_parts, inner * in_parts);
		fourier_run(&f);
		for (int64_t k = 0; k < d.want; k++) {
			const int64_t at = ((o * d.want + k) * inner + i) * parts;
			om_put(out->type, out->data, at, f.out[k].re * scale);
			if (parts == 2)
				om_put(out->type, out->data, at + 1, f.out[k].im * scale);
		}
	}
	return OM_OK;
}

static void
dft_cost(const om_op_context *c, om_cost *cost)
{
	const double n = (double)om_shape_count(&c->out[0].shape);

	cost->flops = 5 * n * log2(n + 2);
}

/* The axes that are not transformed, but that of real and imaginary parts. */
static bool
dft_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	struct dft_attrs attrs;
	bool known;
	int axis;

	om_attr_fields(c->op, dft_fields, &attrs);
	return dft_axis(c, &attrs, c->in[0].shape.rank, &axis, &known) == OM_OK && known
	    && s->out[out].axis < c->in[0].shape.rank - 1 && om_slice_beside(c, out, s, axis);
}

/* ---- STFT. ---- */

enum { SIGNAL, STEP, WINDOW, LENGTH };

struct frames {
	int64_t length, step, count, bins;   /* -1: unknown */
};

struct stft_attrs {
	int64_t onesided;
};

static const om_attr_field stft_fields[] = {OM_FIELD(struct stft_attrs, INT, onesided), {0}};

/* Exporters omit the last axis if the signal is real. */
static bool
is_signal(const om_shape *x)
{
	return x->rank < 0 || x->rank == 2 || (x->rank == 3 && (x->dim[2] < 0 || x->dim[2] == 1 || x->dim[2] == 2));
}

static om_status
frames_of(const om_op_context *c, const struct stft_attrs *attrs, struct frames *f)
{
	const om_shape *x = &c->in[SIGNAL].shape;
	const int64_t signal = x->rank >= 2 ? x->dim[1] : -1;

	*f = (struct frames){-1, -1, -1, -1};
	if (!is_signal(x))
		return om_wrong(c, "the signal must have shape [batch, length] or [batch, length, 1 or 2]");
	if (om_has_in(c, WINDOW) && c->in[WINDOW].shape.rank >= 0 && c->in[WINDOW].shape.rank != 1)
		return om_wrong(c, "the window must have rank 1");
	if (om_has_in(c, LENGTH) ? !whole(c, LENGTH, &f->length) : om_has_in(c, WINDOW))
		f->length = om_list_length(&c->in[WINDOW]);
	else if (!om_has_in(c, LENGTH))
		f->length = signal;
	if (!whole(c, STEP, &f->step))
		f->step = -1;
	else if (f->step < 1)
		return om_wrong(c, "frame_step must be positive");
	if (om_has_in(c, LENGTH) && f->length == 0)
		return om_wrong(c, "frame_length must be positive");
	if (om_has_in(c, WINDOW) && !om_dims_agree(om_list_length(&c->in[WINDOW]), f->length))
		return om_wrong(c, "the window and frame_length differ in length");
	if (f->length >= 0)
		f->bins = attrs->onesided ? f->length / 2 + 1 : f->length;
	if (f->length >= 0 && f->step > 0 && signal >= 0)
		f->count = signal < f->length ? 0 : (signal - f->length) / f->step + 1;
	return OM_OK;
}

/* Signals, and frames: those of a part begin a number of steps later. */
static bool
stft_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];
	struct stft_attrs attrs;
	struct frames f;

	if (p->axis == 0)
		return om_slice_first(c, out, s);
	om_attr_fields(c->op, stft_fields, &attrs);
	if (p->axis != 1 || frames_of(c, &attrs, &f) != OM_OK || f.step < 1 || f.length < 1)
		return false;
	s->in[SIGNAL] = om_part_of(1, p->lo * f.step, (p->hi - 1) * f.step + f.length);
	return om_has_in(c, WINDOW) || om_has_in(c, LENGTH);
}

static om_status
stft_infer(om_op_context *c)
{
	om_shape *y = &c->out[0].shape;
	struct stft_attrs attrs;
	struct frames f;

	c->out[0].type = c->in[SIGNAL].type;
	om_attr_fields(c->op, stft_fields, &attrs);
	OM_TRY(frames_of(c, &attrs, &f));
	*y = om_shape_open(4);
	if (c->in[SIGNAL].shape.rank > 0)
		om_copy_dim(y, 0, &c->in[SIGNAL].shape, 0);
	y->dim[1] = f.count;
	y->dim[2] = f.bins;
	y->dim[3] = 2;
	return OM_OK;
}

struct stft {
	struct stft_attrs attrs;      /* first: stft_fields */
	bool is_steered;              /* step or length are known only in a run */
	struct frames a;
	struct fourier f;
};

/* Data derived from step and length. */
static om_status
stft_start(const om_op_context *c, const struct stft_attrs *attrs, struct frames *a, struct fourier *f)
{
	OM_TRY(frames_of(c, attrs, a));
	return c->sizes_only ? OM_OK : fourier_new(c, f, a->length, false);
}

static om_status
stft_prepare(om_op_context *c, void **state)
{
	const om_tensor *x = &c->in[SIGNAL], *w = &c->in[WINDOW];
	struct stft *s = *state;

	if (!is_real(x->type) || (om_has_in(c, WINDOW) && w->type != x->type))
		return om_no_kernel(c, is_real(x->type) ? w->type : x->type);
	s->is_steered = !c->in[STEP].data || (om_has_in(c, LENGTH) && !c->in[LENGTH].data);
	return s->is_steered ? OM_OK : stft_start(c, &s->attrs, &s->a, &s->f);
}

static om_status
stft_cpu(om_op_context *c)
{
	const om_tensor *x = &c->in[SIGNAL], *w = &c->in[WINDOW], *out = &c->out[0];
	const int64_t parts = x->shape.rank == 3 ? x->shape.dim[2] : 1, signal = x->shape.dim[1];
	const struct stft *s = c->state;
	struct fourier f = s->f;
	struct frames a = s->a;
	int64_t to = 0;

	if (s->is_steered)
		OM_TRY(stft_start(c, &s->attrs, &a, &f));
	for (int64_t k = 0; k < x->shape.dim[0] * a.count; k++) {
		const int64_t first = k / a.count * signal + k % a.count * a.step;
		for (int64_t i = 0; i < a.length; i++) {
			const double by = om_has_in(c, WINDOW) ? om_get(w->type, w->data, i) : 1;
			f.in[i].re = by * om_get(x->type, x->data, (first + i) * parts);
			f.in[i].im = parts == 2 ? by * om_get(x->type, x->data, (first + i) * parts + 1) : 0;
		}
		fourier_run(&f);
		for (int64_t i = 0; i < a.bins; i++) {
			om_put(out->type, out->data, to++, f.out[i].re);
			om_put(out->type, out->data, to++, f.out[i].im);
		}
	}
	return OM_OK;
}

/* ---- Windows. ---- */

static om_status
output_type(om_op_context *c)
{
	const int64_t type = om_attr_int(c->op, "output_datatype");

	if (type <= 0 || type >= OM_NDTYPE || !om_can_convert((om_dtype)type, OM_FLOAT64))
		return om_op_fail(c->session, OM_INVALID, c->op,
			"output_datatype is %lld, expected a numeric type", (long long)type);
	c->out[0].type = (om_dtype)type;
	return OM_OK;
}

static void
put_number(const om_tensor *t, int64_t k, double v)
{
	om_convert(t->type, (char *)t->data + (size_t)k * (om_dtype_bits(t->type) / 8), OM_FLOAT64, &v, 1, true);
}

static om_status
window_infer(om_op_context *c)
{
	om_shape *y = &c->out[0].shape;
	int64_t n;

	OM_TRY(output_type(c));
	*y = om_shape_open(1);
	if (!whole(c, 0, &n))
		return OM_OK;
	if (n < 0)
		return om_wrong(c, "size is negative");
	y->dim[0] = n;
	return OM_OK;
}

struct window {
	int64_t periodic;
};

static const om_attr_field window_fields[] = {OM_FIELD(struct window, INT, periodic), {0}};

/* Sums of cosines: a - b cos(x) + c cos(2 x), in the order in which the middle of each window is one. */
static om_status
window_fill(om_op_context *c, double a, double b, double third)
{
	const int64_t n = c->out[0].shape.dim[0];
	const int64_t whole_turn = ((const struct window *)c->state)->periodic ? n : n - 1;

	for (int64_t k = 0; k < n; k++) {
		const double x = whole_turn ? 2 * PI * (double)k / (double)whole_turn : PI;
		put_number(&c->out[0], k, third * cos(2 * x) - b * cos(x) + a);
	}
	return OM_OK;
}

static om_status
hann_cpu(om_op_context *c)
{
	return window_fill(c, 0.5, 0.5, 0);
}

static om_status
hamming_cpu(om_op_context *c)
{
	return window_fill(c, 25.0 / 46, 21.0 / 46, 0);
}

static om_status
blackman_cpu(om_op_context *c)
{
	return window_fill(c, 0.42, 0.5, 0.08);
}

/* ---- MelWeightMatrix. ---- */

enum { BINS, DFT_LENGTH, RATE, LOW, HIGH };

static om_status
mel_infer(om_op_context *c)
{
	om_shape *y = &c->out[0].shape;
	int64_t bins, length;

	OM_TRY(output_type(c));
	*y = om_shape_open(2);
	if (whole(c, DFT_LENGTH, &length)) {
		if (length < 0)
			return om_wrong(c, "dft_length is negative");
		y->dim[0] = length / 2 + 1;
	}
	if (whole(c, BINS, &bins)) {
		if (bins < 0)
			return om_wrong(c, "num_mel_bins is negative");
		y->dim[1] = bins;
	}
	return OM_OK;
}

static double
mel(double hertz)
{
	return 2595 * log10(1 + hertz / 700);
}

/* The position of edge `k` of the triangles in the spectrum. */
static om_status
mel_edge(const om_op_context *c, int64_t k, int64_t *at)
{
	const int64_t rows = c->out[0].shape.dim[0], bins = c->out[0].shape.dim[1];
	double length = 0, rate = 0, low = 0, high = 0;

	if (!om_in_scalar(c, DFT_LENGTH, &length) || !om_in_scalar(c, RATE, &rate) || !om_in_scalar(c, LOW, &low)
	    || !om_in_scalar(c, HIGH, &high))
		return om_wrong(c, "the inputs must be scalars");
	const double step = (mel(high) - mel(low)) / (double)(bins + 2);
	const double hertz = 700 * (pow(10, (mel(low) + (double)k * step) / 2595) - 1);
	const double place = floor((length + 1) * hertz / rate);
	if (!(place >= 0 && place < (double)rows))
		return om_op_fail(c->session, OM_RUN, c->op, "an edge frequency is outside the spectrum");
	*at = (int64_t)place;
	return OM_OK;
}

static om_status
mel_cpu(om_op_context *c)
{
	const int64_t bins = c->out[0].shape.dim[1];
	uint64_t bytes = 0;

	om_tensor_bytes(c->out[0].type, &c->out[0].shape, &bytes);
	memset(c->out[0].data, 0, bytes);
	for (int64_t b = 0; b < bins; b++) {
		int64_t left, mid, right;
		OM_TRY(mel_edge(c, b, &left));
		OM_TRY(mel_edge(c, b + 1, &mid));
		OM_TRY(mel_edge(c, b + 2, &right));
		if (left == mid)
			put_number(&c->out[0], mid * bins + b, 1);
		for (int64_t k = left; k <= mid && left < mid; k++)
			put_number(&c->out[0], k * bins + b, (double)(k - left) / (double)(mid - left));
		for (int64_t k = mid; k < right; k++)
			put_number(&c->out[0], k * bins + b, (double)(right - k) / (double)(right - mid));
	}
	return OM_OK;
}

/* ---- The table. ---- */

static const om_attr_spec dft17_attrs[] = {
	{"axis", OM_ATTR_INT, .i = 1},
	{"inverse", OM_ATTR_INT},
	{"onesided", OM_ATTR_INT},
	{0}
};

static const om_attr_spec dft_attrs[] = {
	{"inverse", OM_ATTR_INT},
	{"onesided", OM_ATTR_INT},
	{0}
};

static const om_attr_spec stft_attrs[] = {{"onesided", OM_ATTR_INT, .i = 1}, {0}};

static const om_attr_spec window_attrs[] = {
	{"output_datatype", OM_ATTR_INT, .i = OM_FLOAT32},
	{"periodic", OM_ATTR_INT, .i = 1},
	{0}
};

static const om_attr_spec mel_attrs[] = {{"output_datatype", OM_ATTR_INT, .i = OM_FLOAT32}, {0}};

#define WINDOW_ROW(label, text, kernel)                                        \
	{.name = label, .brief = text, .since = 17, .min_in = 1, .max_in = 1,  \
	 .min_out = 1, .max_out = 1, .attrs = window_attrs, .infer = window_infer, .cpu = kernel, \
	 .input_types = {OF_INDICES}}

const om_opdef om_ops_signal[] = {
	{.name = "DFT", .brief = "discrete Fourier transform along an axis", .since = 17, .until = 19,
	 .min_in = 1, .max_in = 2, .min_out = 1, .max_out = 1, .attrs = dft17_attrs,
	 .infer = dft_infer, .slice = dft_slice, .cpu = dft_cpu, .cost = dft_cost,
	 .input_types = {OF_FLOATS, OF_INDICES}},
	{.name = "DFT", .brief = "discrete Fourier transform along an axis", .since = 20,
	 .min_in = 1, .max_in = 3, .min_out = 1, .max_out = 1, .attrs = dft_attrs,
	 .infer = dft_infer, .slice = dft_slice, .cpu = dft_cpu, .cost = dft_cost,
	 .input_types = {OF_FLOATS, OF_INDICES, OF(INT64)}},
	{.name = "STFT", .brief = "short-time Fourier transform", .since = 17,
	 .min_in = 2, .max_in = 4, .min_out = 1, .max_out = 1, .attrs = stft_attrs,
	 .infer = stft_infer, .slice = stft_slice, .cpu = stft_cpu, .cost = dft_cost,
	 .input_types = {OF_FLOATS, OF_INDICES, LIKE(0), LIKE(1)}},
	WINDOW_ROW("HannWindow", "Hann window", hann_cpu),
	WINDOW_ROW("HammingWindow", "Hamming window", hamming_cpu),
	WINDOW_ROW("BlackmanWindow", "Blackman window", blackman_cpu),
	{.name = "MelWeightMatrix", .brief = "weights that map a spectrum to mel bins", .since = 17,
	 .min_in = 5, .max_in = 5, .min_out = 1, .max_out = 1, .attrs = mel_attrs,
	 .infer = mel_infer, .cpu = mel_cpu,
	 .input_types = {OF_INDICES, LIKE(0), LIKE(0), OF_FLOATS, LIKE(3)}},
	{0}
};

#define WINDOW_KERNEL(label, called)                                                  \
	{.name = label, .fields = window_fields, .state_bytes = sizeof(struct window), .run = called##_cpu}

const om_kernel om_kernels_signal[] = {
	{.name = "DFT", .fields = dft_fields, .state_bytes = sizeof(struct dft_state), .prepare = dft_prepare,
	 .run = dft_cpu},
	{.name = "STFT", .fields = stft_fields, .state_bytes = sizeof(struct stft), .prepare = stft_prepare,
	 .run = stft_cpu},
	WINDOW_KERNEL("HannWindow", hann),
	WINDOW_KERNEL("HammingWindow", hamming),
	WINDOW_KERNEL("BlackmanWindow", blackman),
	{0}
};
