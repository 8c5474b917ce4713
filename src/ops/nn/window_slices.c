/* Parts of convolutions and pools.
 *
 * A part of the output along an axis of the image needs the elements that its windows overlap; the padding at either
 * end becomes what its windows extend beyond the image.  The other axes keep their padding, which is made explicit
 * if auto_pad implied it.  ceil_mode stays: the windows of a part begin at the same elements, so the last part has
 * the same last window, and the windows of the others fit. */
#include <config.h>

#include <math.h>

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

/* The part of the image, input `in`, for a part of the output along axis `axis` of the image.  False where a window may
 * lie in the padding alone. */
static bool
image_part(const om_op_context *c, om_slice *s, uint32_t in, struct om_window *w)
{
	const om_part *p = &s->out[0];
	const int k = AXES - w->n + p->axis - 2;
	const int64_t span = (w->kernel[k] - 1) * w->dilation[k] + 1, n = w->in[k];
	const int64_t lo = p->lo * w->stride[k] - w->begin[k], hi = (p->hi - 1) * w->stride[k] - w->begin[k] + span;

	if (w->begin[k] < 0 || w->end[k] < 0 || w->begin[k] >= span || (w->out[k] - 1) * w->stride[k] - w->begin[k] >= n)
		return false;
	s->in[in] = om_part_of(p->axis, lo > 0 ? lo : 0, hi < n ? hi : n);
	w->begin[k] = s->in[in].lo - lo;
	w->end[k] = hi - s->in[in].hi < w->end[k] ? hi - s->in[in].hi : w->end[k];
	set_pads(c, s, w);
	return true;
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
	const om_part *p = &s->out[0];
	const int64_t first = p->lo / kout, last = (p->hi - 1) / kout + 1;
	const om_part rows = group > 1 ? om_part_of(0, first * kout, last * kout) : om_part_along(p, 0);

	s->before = p->lo - rows.lo;
	s->after = rows.hi - p->hi;
	s->in[o->w] = rows;
	list_parts(c, s, o, &rows);
	if (group > 1)
		s->in[o->x] = om_part_of(1, first * kin, last * kin);
	om_slice_set_int(c, s, "group", last - first);
	return true;
}

static bool
conv_part(const om_op_context *c, om_slice *s, const struct operands *o)
{
	struct om_window w;

	if (s->out[0].axis == 1)
		return channel_part(c, s, o);
	if (s->out[0].axis >= 2)
		return conv_window(c, o, &w) && image_part(c, s, o->x, &w);
	s->in[o->x] = s->out[0];
	return true;
}

/* Channels of the input, which one group sums over; the bias is added once. */
static bool
conv_sum(const om_op_context *c, om_slice *s, const struct operands *o, uint32_t in)
{
	const om_part p = s->in[in];

	if (om_attr_int(c->op, "group") != 1 || p.axis != 1 || (in != o->x && in != o->w))
		return false;
	s->in[o->x] = s->in[o->w] = p;
	for (int k = 0; k < o->nlist && p.lo > 0; k++)
		s->in[o->list[k]] = om_has_in(c, o->list[k]) ? om_part_none() : s->in[o->list[k]];
	return true;
}

static const struct operands plain = {.x = 0, .w = 1, .list = {2}, .nlist = 1};

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
	    && image_part(c, s, 0, &w);
}

bool
om_slice_global_pool(const om_op_context *c, uint32_t out, om_slice *s)
{
	return s->out[out].axis < 2 && om_slice_first(c, out, s);
}
