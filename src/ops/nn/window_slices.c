/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of convolutions and pools.
 *
 * A part of the output along an axis of the image needs the elements that its windows overlap; the padding at either
 * end becomes what its windows extend beyond the image.  The other axes keep their padding, which is made explicit
 * if auto_pad implied it.  ceil_mode stays: the windows of a part begin at the same elements, so the last part has
 * the same last window, and the windows of the others fit. */
#include <config.h>

#include <math.h>

#include "base/shape.h"
#include "ir/query.h"
#include "opdef/geometry/window.h"
#include "ops/slices.h"

enum { AXES = OM_WINDOW_AXES };

static void
set_pads(const om_op_context *c, om_slice *s, const struct om_window *w)
{
	int64_t pads[2 * AXES];

	for (int k = 0; k < w->n; k++) {
		pads[k] = w->begin[AXES - w->n + k];
		pads[w->n + k] = w->end[AXES - w->n + k];
	}
	om_slice_set_ints(c, s, "pads", 2 * (size_t)w->n, pads);
	om_slice_drop(s, "auto_pad");
}

bool
om_slice_window(const om_op_context *c, om_slice *s, int axis, int in_axis, struct om_window *w)
{
	const om_part *p = &s->out[0];
	const int k = AXES - w->n + axis;
	const int64_t span = (w->kernel[k] - 1) * w->dilation[k] + 1, n = w->in[k];
	const int64_t lo = p->lo * w->stride[k] - w->begin[k], hi = (p->hi - 1) * w->stride[k] - w->begin[k] + span;

	if (w->begin[k] < 0 || w->end[k] < 0 || w->begin[k] >= span || (w->out[k] - 1) * w->stride[k] - w->begin[k] >= n)
		return false;
	s->in[0] = om_part_of(in_axis, lo > 0 ? lo : 0, hi < n ? hi : n);
	w->begin[k] = s->in[0].lo - lo;
	w->end[k] = hi - s->in[0].hi < w->end[k] ? hi - s->in[0].hi : w->end[k];
	set_pads(c, s, w);
	return true;
}

/* The same of images whose channels come first. */
static bool
image_part(const om_op_context *c, om_slice *s, struct om_window *w)
{
	return om_slice_window(c, s, s->out[0].axis - 2, s->out[0].axis, w);
}

/* ---- Convolutions. ---- */

/* The inputs of a convolution; those of `list` have an element for each channel of the output, or one for all. */
struct operands {
	uint32_t x, w, list[4];
	int nlist;
};

static bool
conv_window(const om_op_context *c, const struct operands *o, struct om_window *w)
{
	const om_shape *x = &c->in[o->x].shape;

	return !om_window_read(c, x->rank - 2, x, c->in[o->w].shape.dim + 2, w) && !om_window_shrink(c, w, false);
}

static void
list_parts(const om_op_context *c, om_slice *s, const struct operands *o, const om_part *p)
{
	for (int k = 0; k < o->nlist; k++)
		if (om_has_in(c, o->list[k]) && c->in[o->list[k]].shape.rank == 1 && c->in[o->list[k]].shape.dim[0] > 1)
			s->in[o->list[k]] = *p;
}

/* Channels of the output: whole groups, if there is more than one. */
static bool
channel_part(const om_op_context *c, om_slice *s, const struct operands *o)
{
	const int64_t group = om_attr_int(c->op, "group");
	const int64_t kout = c->in[o->w].shape.dim[0] / group, kin = c->in[o->w].shape.dim[1];
	om_part rows = om_part_along(&s->out[0], 0), groups = {0, 0, 1};

	if (group > 1) {
		groups = om_slice_units(s, &s->out[0], kout);
		rows = om_part_scaled(&groups, 0, kout);
		s->in[o->x] = om_part_scaled(&groups, 1, kin);
	}
	s->in[o->w] = rows;
	list_parts(c, s, o, &rows);
	om_slice_set_int(c, s, "group", groups.hi - groups.lo);
	return true;
}

static bool
conv_part(const om_op_context *c, om_slice *s, const struct operands *o)
{
	struct om_window w;

	if (s->out[0].axis == 1)
		return channel_part(c, s, o);
	if (s->out[0].axis >= 2)
		return conv_window(c, o, &w) && image_part(c, s, &w);
	s->in[o->x] = s->out[0];
	return true;
}

/* Channels of the input, which one group sums over; the bias is added once. */
static bool
conv_sum(const om_op_context *c, om_slice *s, const struct operands *o, uint32_t in)
{
	const om_part p = s->in[in];

	if (om_attr_int(c->op, "group") != 1 || !om_partial_operands(s, in, o->x, 1, o->w, 1))
		return false;
	for (int k = 0; k < o->nlist && p.lo > 0; k++)
		s->in[o->list[k]] = om_has_in(c, o->list[k]) ? om_part_none() : s->in[o->list[k]];
	return true;
}

static const struct operands
	plain = {.x = 0, .w = 1, .list = {2}, .nlist = 1},
	integers = {.x = 0, .w = 1, .list = {3}, .nlist = 1},
	quantized = {.x = 0, .w = 3, .list = {4, 5, 8}, .nlist = 3};

bool
om_slice_conv(const om_op_context *c, uint32_t out, om_slice *s)
{
	(void)out;
	return conv_part(c, s, &plain);
}

bool
om_partial_conv(const om_op_context *c, uint32_t in, om_slice *s)
{
	return conv_sum(c, s, &plain, in);
}

bool
om_slice_conv_integer(const om_op_context *c, uint32_t out, om_slice *s)
{
	(void)out;
	return conv_part(c, s, &integers);
}

/* What is added to the output has its part, with the surplus. */
bool
om_slice_conv_fused(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];

	if (!conv_part(c, s, &plain))
		return false;
	if (om_has_in(c, 3))
		s->in[3] = om_part_of(p->axis, p->lo - s->before, p->hi + s->after);
	return true;
}

/* Zero points stay: each element of the sum has its own. */
bool
om_partial_conv_integer(const om_op_context *c, uint32_t in, om_slice *s)
{
	const struct operands o = {.x = 0, .w = 1};

	return conv_sum(c, s, &o, in);
}

bool
om_slice_conv_quantized(const om_op_context *c, uint32_t out, om_slice *s)
{
	(void)out;
	return conv_part(c, s, &quantized);
}

/* ---- Transposed convolutions. ----
 *
 * Element i of the image reaches elements [i * stride, i * stride + span) of the output before its padding is cut off.
 * What the elements of a part reach beyond it is cut off as padding; where they do not reach its end, output_padding
 * adds what is missing. */

bool
om_slice_scatter_window(const om_op_context *c, om_slice *s, int axis, struct om_window *w)
{
	const om_part *p = &s->out[0];
	const int k = AXES - w->n + axis;
	const int64_t span = (w->kernel[k] - 1) * w->dilation[k] + 1, stride = w->stride[k], n = w->in[k];
	const int64_t lo = p->lo + w->begin[k], hi = p->hi + w->begin[k];
	int64_t first = lo >= span ? (lo - span) / stride + 1 : 0, end = (hi - 1) / stride + 1;
	int64_t more[AXES];

	if (w->begin[k] < 0)
		return false;
	first = first * stride > lo ? lo / stride : first;
	first = first < n ? first : n - 1;
	end = end < n ? end : n;
	end = end > first ? end : first + 1;
	s->in[0] = om_part_of(p->axis, first, end);
	w->begin[k] = lo - first * stride;
	w->end[k] = (end - 1) * stride + span - hi;
	for (int i = 0; i < w->n; i++) {
		const int64_t left = w->end[AXES - w->n + i];
		const int at = AXES - w->n + i;
		const int64_t full = (w->in[at] - 1) * w->stride[at] + (w->kernel[at] - 1) * w->dilation[at] + 1;
		more[i] = at == k ? left < 0 ? -left : 0 : w->out[at] - (full - w->begin[at] - left);
		if (more[i] < 0 || (more[i] >= w->stride[at] && more[i] >= w->dilation[at]))
			return false;
	}
	w->end[k] = w->end[k] > 0 ? w->end[k] : 0;
	om_slice_set_ints(c, s, "output_padding", (size_t)w->n, more);
	om_slice_drop(s, "output_shape");
	set_pads(c, s, w);
	return true;
}

/* The weights are (input channels, output channels of a group, kernel). */
static bool
scatter_channels(const om_op_context *c, om_slice *s)
{
	const int64_t group = om_attr_int(c->op, "group"), kout = c->in[1].shape.dim[1], kin = c->in[1].shape.dim[0] / group;
	om_part list = om_part_along(&s->out[0], 0), groups = {0, 0, 1};

	s->in[1] = s->out[0];
	if (group > 1) {
		groups = om_slice_units(s, &s->out[0], kout);
		list = om_part_scaled(&groups, 0, kout);
		s->in[0] = om_part_scaled(&groups, 1, kin);
		s->in[1] = om_part_scaled(&groups, 0, kin);
	}
	list_parts(c, s, &plain, &list);
	om_slice_set_int(c, s, "group", groups.hi - groups.lo);
	return true;
}

bool
om_slice_conv_transpose(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_shape *x = &c->in[0].shape;
	struct om_window w;

	if (s->out[out].axis == 0)
		s->in[0] = s->out[out];
	if (s->out[out].axis < 2)
		return s->out[out].axis == 0 || scatter_channels(c, s);
	return !om_window_read(c, x->rank - 2, x, c->in[1].shape.dim + 2, &w) && !om_window_grow(c, &w)
	    && om_slice_scatter_window(c, s, s->out[out].axis - 2, &w);
}

/* The channels of the image, if there is one group. */
bool
om_partial_conv_transpose(const om_op_context *c, uint32_t in, om_slice *s)
{
	const om_part p = s->in[in];

	if (om_attr_int(c->op, "group") != 1 || !om_partial_operands(s, in, 0, 1, 1, 0))
		return false;
	if (om_has_in(c, 2) && p.lo > 0)
		s->in[2] = om_part_none();
	return true;
}

/* ---- Pools. ---- */

bool
om_slice_pool(const om_op_context *c, uint32_t out, om_slice *s)
{
	struct om_window w;
	const om_shape *x = &c->in[0].shape;

	if (om_has_out(c, 1))     /* its indices count the elements of the whole input */
		return false;
	if (s->out[out].axis < 2)
		return om_slice_first(c, out, s);
	return !om_window_read(c, x->rank - 2, x, NULL, &w) && !om_window_shrink(c, &w, om_attr_int(c->op, "ceil_mode") != 0)
	    && image_part(c, s, &w);
}

bool
om_slice_global_pool(const om_op_context *c, uint32_t out, om_slice *s)
{
	return s->out[out].axis < 2 && om_slice_first(c, out, s);
}

bool
om_partial_global_max(const om_op_context *c, uint32_t in, om_slice *s)
{
	(void)c;
	s->combine = OM_COMBINE_MAX;
	return s->in[in].axis >= 2;
}

/* A sum of float16 may overflow where the mean does not. */
bool
om_partial_global_average(const om_op_context *c, uint32_t in, om_slice *s)
{
	bool is_image[OM_MAX_RANK] = {false};

	if (s->in[in].axis < 2 || c->in[0].type == OM_FLOAT16)
		return false;
	for (int k = 2; k < c->in[0].shape.rank; k++)
		is_image[k] = true;
	om_slice_reduce(c, s, "ReduceSum", is_image, true);
	s->scale = 1 / (double)om_shape_span(&c->in[0].shape, 2, c->in[0].shape.rank);
	return true;
}

/* ---- LRN. ---- */

/* Along the channels, those of the windows at both ends are computed, too, and cut off. */
bool
om_slice_lrn(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];
	const int64_t size = om_attr_int(c->op, "size"), n = c->in[0].shape.dim[1];
	const int64_t below = (size - 1) / 2, above = size - 1 - below;

	if (p->axis != 1)
		return om_slice_first(c, out, s);
	s->in[0] = om_part_of(1, p->lo > below ? p->lo - below : 0, above < n - p->hi ? p->hi + above : n);
	s->before = p->lo - s->in[0].lo;
	s->after = s->in[0].hi - p->hi;
	return true;
}
