/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "base/parallel.h"
#include "ir/query.h"
#include "ops/cpu/channels_last.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/slices.h"

enum { AXES = OM_WINDOW_AXES };

om_shape
om_last_to_first(const om_shape *x)
{
	om_shape first = *x;

	om_copy_dim(&first, 1, x, x->rank - 1);
	for (int k = 1; k + 1 < x->rank; k++)
		om_copy_dim(&first, k + 1, x, k);
	return first;
}

om_shape
om_first_to_last(const om_shape *x)
{
	om_shape last = *x;

	om_copy_dim(&last, x->rank - 1, x, 1);
	for (int k = 1; k + 1 < x->rank; k++)
		om_copy_dim(&last, k, x, k + 1);
	return last;
}

const char *
om_last_window(const om_op_context *c, bool ceil_mode, struct om_window *w)
{
	const om_shape *x = &c->in[0].shape;

	if (x->rank < 3)
		return om_printf(c->mem, "the input has rank %d and no spatial axes", x->rank);
	const om_shape first = om_last_to_first(x);
	const char *wrong = om_window_read(c, x->rank - 2, &first, NULL, w);
	return wrong ? wrong : om_window_shrink(c, w, ceil_mode);
}

om_shape
om_last_shape(const om_op_context *c, const struct om_window *w, int64_t channels)
{
	const om_shape first = om_last_to_first(&c->in[0].shape);
	om_shape y = first;

	om_window_dims(&y, &first, w);
	if (channels != OM_DIM_UNKNOWN) {
		y.dim[1] = channels;
		y.sym[1] = NULL;
	}
	return om_first_to_last(&y);
}

/* Along the batch or along an axis of the image. */
static bool
image_part(const om_op_context *c, om_slice *s, bool ceil_mode)
{
	const int axis = s->out[0].axis;
	struct om_window w;

	s->in[0] = s->out[0];
	return axis == 0 || (!om_last_window(c, ceil_mode, &w) && om_slice_window(c, s, axis - 1, axis, &w));
}

bool
om_last_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	return s->out[out].axis + 1 < c->out[out].shape.rank && image_part(c, s, false);
}

bool
om_last_pool_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	return s->out[out].axis + 1 == c->out[out].shape.rank ? om_slice_first(c, out, s)
		: image_part(c, s, om_attr_int(c->op, "ceil_mode") != 0);
}

om_geometry
om_last_geometry(const struct om_window *w)
{
	om_geometry g;

	for (int k = 0; k < AXES; k++) {
		g.in[k] = w->in[k];
		g.out[k] = w->out[k];
		g.kernel[k] = w->kernel[k];
		g.stride[k] = w->stride[k];
		g.dilation[k] = w->dilation[k];
		g.begin[k] = w->begin[k];
		g.end[k] = w->end[k];
	}
	return g;
}

om_status
om_last_list(const om_op_context *c, uint32_t k, const char *name, int64_t n)
{
	const om_shape *s = &c->in[k].shape;

	if (!om_has_in(c, k) || s->rank < 0)
		return OM_OK;
	if (s->rank != 1)
		return om_op_fail(c->session, OM_SHAPE, c->op, "%s has rank %d, expected a list", name, s->rank);
	if (!om_dims_agree(s->dim[0], n))
		return om_op_fail(c->session, OM_SHAPE, c->op, "%s has %lld elements, expected %lld", name,
			(long long)s->dim[0], (long long)n);
	return OM_OK;
}

om_status
om_last_packed(const om_op_context *c, int64_t taps, int64_t channels)
{
	int64_t n;

	if (__builtin_mul_overflow(taps, channels, &n))
		return om_op_fail(c->session, OM_SHAPE, c->op, "%lld taps of %lld weights are too many", (long long)taps,
			(long long)channels);
	return om_last_list(c, 1, "the packed weights", n);
}

/* ---- Parallel loops. ---- */

struct lines {
	const struct om_last_lines *of;
	int64_t pieces;           /* of an image */
};

static void
piece(void *arg, int64_t k, uint32_t worker)
{
	const struct lines *l = arg;
	const int64_t at = k % l->pieces, n = l->of->lines;

	l->of->fn(l->of->arg, k / l->pieces, n * at / l->pieces, n * (at + 1) / l->pieces, worker);
}

/* Pieces of an image are as long as can be: blocks of channels are inside of them. */
void
om_last_parallel(const om_op_context *c, const struct om_last_lines *l)
{
	const uint32_t workers = om_worker_count(c->pool);
	const int64_t wanted = workers > 1 ? 2 * (int64_t)workers : 1;
	struct lines s = {l, wanted < l->lines ? wanted : l->lines};

	if (s.pieces > 0)
		om_parallel_for(c->pool, l->images * s.pieces, piece, &s);
}
