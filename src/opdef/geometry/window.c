/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "opdef/numbers.h"
#include "ir/query.h"
#include "opdef/geometry/window.h"

enum { AXES = OM_WINDOW_AXES, LARGEST = 1 << 30 };

/* Read an attribute with one number per axis; `missing` if it is absent. */
static const char *
read_axes(const om_op_context *c, const char *name, int n, int64_t least, int64_t missing, int64_t *to)
{
	size_t count;
	const int64_t *v = om_attr_ints(c->op, name, &count);

	for (int k = 0; k < AXES; k++)
		to[k] = k < AXES - n ? 1 : missing;
	if (count == 0)
		return NULL;
	if (count != (size_t)n)
		return om_printf(c->mem, "%s has %zu elements for %d spatial axes", name, count, n);
	for (int k = 0; k < n; k++) {
		if (v[k] < least || v[k] > LARGEST)
			return om_printf(c->mem, "%s contains the invalid value %lld", name, (long long)v[k]);
		to[AXES - n + k] = v[k];
	}
	return NULL;
}

static const char *
read_pads(const om_op_context *c, int n, struct om_window *w)
{
	size_t count;
	const int64_t *v = om_attr_ints(c->op, "pads", &count);

	memset(w->begin, 0, sizeof w->begin);
	memset(w->end, 0, sizeof w->end);
	if (count == 0)
		return NULL;
	if (count != 2 * (size_t)n)
		return om_printf(c->mem, "pads has %zu elements for %d spatial axes", count, n);
	for (int k = 0; k < 2 * n; k++)
		if (v[k] < -LARGEST || v[k] > LARGEST)
			return om_printf(c->mem, "pads contains the invalid value %lld", (long long)v[k]);
	for (int k = 0; k < n; k++) {
		w->begin[AXES - n + k] = v[k];
		w->end[AXES - n + k] = v[n + k];
	}
	return NULL;
}

static const char *
read_kernel(const om_op_context *c, int n, const int64_t *kernel, struct om_window *w)
{
	const char *wrong = read_axes(c, "kernel_shape", n, 1, -1, w->kernel);

	for (int k = 0; k < n && kernel && !wrong; k++) {
		int64_t *have = &w->kernel[AXES - n + k];
		if (*have >= 0 && kernel[k] >= 0 && *have != kernel[k])
			return om_printf(c->mem, "kernel_shape has %lld where the weights have %lld",
				(long long)*have, (long long)kernel[k]);
		if (kernel[k] == 0 || kernel[k] > LARGEST)
			return om_printf(c->mem, "the weights have a kernel of size %lld", (long long)kernel[k]);
		*have = kernel[k] >= 0 ? kernel[k] : *have;
	}
	if (wrong)
		return wrong;
	if (!kernel && w->kernel[AXES - 1] < 0)
		return "kernel_shape is missing";
	int64_t taps = 1;
	for (int k = 0; k < AXES; k++)
		if (w->kernel[k] > 0 && (taps *= w->kernel[k]) > LARGEST)
			return "the size of the kernel overflows";
	return NULL;
}

const char *
om_window_read(const om_op_context *c, int n, const om_shape *x, const int64_t *kernel, struct om_window *w)
{
	const char *wrong;

	if (n < 1)
		return "the input has no spatial axes";
	if (n > AXES)
		return om_printf(c->mem, "images with %d spatial axes are not supported", n);
	*w = (struct om_window){.n = n};
	if ((wrong = read_axes(c, "strides", n, 1, 1, w->stride))
	    || (wrong = read_axes(c, "dilations", n, 1, 1, w->dilation))
	    || (wrong = read_pads(c, n, w)) || (wrong = read_kernel(c, n, kernel, w)))
		return wrong;
	for (int k = 0; k < AXES; k++)
		w->in[k] = k < AXES - n ? 1 : x->rank < 0 ? -1 : x->dim[k - (AXES - n) + 2];
	for (int k = 0; k < AXES; k++)
		if (w->in[k] > INT64_MAX >> 2)
			return "the input is too large";
	return NULL;
}

static int64_t
span(const struct om_window *w, int k)
{
	return (w->kernel[k] - 1) * w->dilation[k] + 1;
}

/* Split padding between both ends: an odd element goes to the end, or for SAME_LOWER to the beginning. */
static void
split_pads(struct om_window *w, int k, int64_t total, bool lower)
{
	const int64_t small = total / 2;

	w->begin[k] = lower ? total - small : small;
	w->end[k] = total - w->begin[k];
}

static void
shrink_same(struct om_window *w, int k, bool lower)
{
	if (w->in[k] < 0 || w->kernel[k] < 0)
		return;
	const int64_t out = w->in[k] / w->stride[k] + (w->in[k] % w->stride[k] != 0);
	const int64_t total = (out - 1) * w->stride[k] + span(w, k) - w->in[k];
	split_pads(w, k, total > 0 ? total : 0, lower);
}

/* In ceil mode the last window may extend beyond the padding, but must start before it, even a window
 * larger than the padded input. */
static int64_t
shrink_axis(const struct om_window *w, int k, bool ceil_mode)
{
	const int64_t room = w->in[k] + w->begin[k] + w->end[k] - span(w, k);

	if (room < 0)
		return ceil_mode && w->in[k] > 0 && room > -w->stride[k] ? 1 : -1;
	int64_t out = room / w->stride[k] + 1;
	if (ceil_mode && room % w->stride[k] != 0 && out * w->stride[k] < w->in[k] + w->begin[k])
		out++;
	return out;
}

const char *
om_window_shrink(const om_op_context *c, struct om_window *w, bool ceil_mode)
{
	const bool lower = om_attr_is(c->op, "auto_pad", "SAME_LOWER");
	const bool same = lower || om_attr_is(c->op, "auto_pad", "SAME_UPPER");

	for (int k = 0; k < AXES; k++) {
		w->out[k] = -1;
		if (same)
			shrink_same(w, k, lower);
		else if (om_attr_is(c->op, "auto_pad", "VALID"))
			w->begin[k] = w->end[k] = 0;
		if (same && w->in[k] >= 0)
			w->out[k] = w->in[k] / w->stride[k] + (w->in[k] % w->stride[k] != 0);
		if (same || w->in[k] < 0 || w->kernel[k] < 0)
			continue;
		w->out[k] = shrink_axis(w, k, ceil_mode);
		if (w->out[k] < 0)
			return om_printf(c->mem,
				"kernel size %lld exceeds the input size %lld with pads %lld and %lld",
				(long long)span(w, k), (long long)w->in[k], (long long)w->begin[k],
				(long long)w->end[k]);
	}
	return NULL;
}

/* If output_shape is given, an odd total of padding puts the extra element at the beginning, or for
 * SAME_UPPER at the end. */
static const char *
grow_to(const om_op_context *c, struct om_window *w, const int64_t *want, const int64_t *more)
{
	const bool lower = !om_attr_is(c->op, "auto_pad", "SAME_UPPER");

	for (int k = AXES - w->n; k < AXES; k++) {
		const int64_t out = want[k - (AXES - w->n)];
		if (out < 1 || out > INT64_MAX >> 2)
			return om_printf(c->mem, "output_shape contains the invalid value %lld", (long long)out);
		w->out[k] = out;
		if (w->in[k] < 0 || w->kernel[k] < 0)
			continue;
		const int64_t total = (w->in[k] - 1) * w->stride[k] + more[k] + span(w, k) - out;
		split_pads(w, k, total > 0 ? total : 0, lower);
	}
	return NULL;
}

static const char *
grow_axis(const om_op_context *c, struct om_window *w, int k, int64_t more)
{
	int64_t full;

	w->out[k] = -1;
	if (w->in[k] < 0 || w->kernel[k] < 0)
		return NULL;
	if (__builtin_mul_overflow(w->in[k] - 1, w->stride[k], &full) || full > INT64_MAX >> 2)
		return "the output is too large";
	full += more + span(w, k);
	if (om_attr_is(c->op, "auto_pad", "SAME_UPPER") || om_attr_is(c->op, "auto_pad", "SAME_LOWER")) {
		const int64_t total = full - w->in[k] * w->stride[k];
		split_pads(w, k, total > 0 ? total : 0, om_attr_is(c->op, "auto_pad", "SAME_LOWER"));
	} else if (om_attr_is(c->op, "auto_pad", "VALID")) {
		w->begin[k] = w->end[k] = 0;
	}
	w->out[k] = full - w->begin[k] - w->end[k];
	if (w->out[k] < 1)
		return om_printf(c->mem, "pads %lld and %lld leave no element of %lld", (long long)w->begin[k],
			(long long)w->end[k], (long long)full);
	return NULL;
}

const char *
om_window_grow(const om_op_context *c, struct om_window *w)
{
	size_t nwant;
	int64_t more[AXES];
	const int64_t *want = om_attr_ints(c->op, "output_shape", &nwant);
	const char *wrong = read_axes(c, "output_padding", w->n, 0, 0, more);

	for (int k = 0; k < AXES - w->n; k++) {
		more[k] = 0;
		w->out[k] = 1;
	}
	if (wrong)
		return wrong;
	if (nwant == (size_t)w->n + 2)    /* with batch and channels: older exporters */
		want += 2;
	else if (nwant != 0 && nwant != (size_t)w->n)
		return om_printf(c->mem, "output_shape has %zu elements for %d spatial axes", nwant, w->n);
	if (nwant != 0)
		return grow_to(c, w, want, more);
	for (int k = AXES - w->n; k < AXES && !wrong; k++)
		wrong = grow_axis(c, w, k, more[k]);
	return wrong;
}

const char *
om_window_image(const om_op_context *c, const om_shape *dy, int shared, om_shape *x)
{
	size_t n;
	const int64_t *dim = om_attr_ints(c->op, "x_shape", &n);

	if (n < 3 || n > AXES + 2)
		return "x_shape must be the dims of an image with 1, 2 or 3 spatial axes";
	*x = om_shape_of((int)n, dim);
	for (int k = 0; k < shared && dy->rank == x->rank; k++)
		om_copy_dim(x, k, dy, k);
	return NULL;
}

bool
om_window_gives(const struct om_window *w, const om_shape *y)
{
	if (y->rank >= 0 && y->rank != w->n + 2)
		return false;
	for (int k = 0; k < w->n && y->rank >= 0; k++)
		if (!om_dims_agree(y->dim[k + 2], w->out[AXES - w->n + k]))
			return false;
	return true;
}

bool
om_window_is_point(const struct om_window *w)
{
	for (int k = 0; k < AXES; k++)
		if (w->kernel[k] != 1 || w->stride[k] != 1 || w->begin[k] || w->end[k])
			return false;
	return true;
}

static bool
is_single(const struct om_window *w, int k)
{
	return w->in[k] == 1 && w->out[k] == 1 && w->kernel[k] == 1 && w->begin[k] == 0 && w->end[k] == 0;
}

void
om_window_pack(struct om_window *w)
{
	int to = AXES - 1;

	for (int k = AXES - 1; k >= 0; k--) {
		if (is_single(w, k))
			continue;
		w->in[to] = w->in[k];
		w->out[to] = w->out[k];
		w->kernel[to] = w->kernel[k];
		w->stride[to] = w->stride[k];
		w->dilation[to] = w->dilation[k];
		w->begin[to] = w->begin[k];
		w->end[to--] = w->end[k];
	}
	for (; to >= 0; to--) {
		w->in[to] = w->out[to] = w->kernel[to] = w->stride[to] = w->dilation[to] = 1;
		w->begin[to] = w->end[to] = 0;
	}
}

int64_t
om_window_volume(const int64_t *size)
{
	return size[0] * size[1] * size[2];
}

void
om_window_range(const struct om_window *w, int axis, int64_t tap, int64_t *lo, int64_t *hi)
{
	const int64_t s = w->stride[axis], first = tap * w->dilation[axis] - w->begin[axis];
	const int64_t n = w->out[axis];

	*lo = first >= 0 ? 0 : (-first + s - 1) / s;
	*hi = first >= w->in[axis] ? 0 : (w->in[axis] - first + s - 1) / s;
	*lo = *lo < n ? *lo : n;
	*hi = *hi < *lo ? *lo : *hi < n ? *hi : n;
}

int64_t
om_window_taps(const struct om_window *w, int axis, int64_t o, bool with_padding)
{
	const int64_t lo = with_padding ? -w->begin[axis] : 0;
	const int64_t hi = w->in[axis] + (with_padding ? w->end[axis] : 0);
	int64_t n = 0;

	for (int64_t k = 0; k < w->kernel[axis]; k++) {
		const int64_t i = o * w->stride[axis] - w->begin[axis] + k * w->dilation[axis];
		n += i >= lo && i < hi;
	}
	return n;
}

void
om_window_dims(om_shape *out, const om_shape *x, const struct om_window *w)
{
	for (int k = 0; k < w->n; k++) {
		const int at = AXES - w->n + k;
		out->dim[k + 2] = w->out[at];
		out->sym[k + 2] = NULL;
		if (w->out[at] < 0 && x->rank >= 0 && w->stride[at] == 1 && w->kernel[at] > 0
		    && w->begin[at] + w->end[at] == (w->kernel[at] - 1) * w->dilation[at])
			om_copy_dim(out, k + 2, x, k + 2);
	}
}
