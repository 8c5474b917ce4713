/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPoolGrad: gradients of maxima are scattered to the positions of the maxima, given by their indices.
 *
 * No separate tensor of zeros is required: the output is cleared, then added to. */
#include <config.h>

#include "opdef/gradient_op.h"
#include "ir/query.h"
#include "ops/family.h"
#include "opdef/numbers.h"
#include "opdef/geometry/window.h"
#include "opdef/op_context.h"
#include "ops/nn/pool_grad.h"

enum { DY = OM_POOL_GRAD_DY, INDICES = OM_POOL_GRAD_INDICES };

const char *
om_max_pool_grad_read(const om_op_context *c, om_shape *x, struct om_window *w)
{
	const om_shape *dy = &c->in[DY].shape;
	const char *bad = om_window_image(c, dy, 2, x);

	if (bad || (bad = om_window_read(c, x->rank - 2, x, NULL, w))
	    || (bad = om_window_shrink(c, w, om_attr_int(c->op, "ceil_mode") != 0)))
		return bad;
	return om_window_gives(w, dy) ? NULL : "dY does not have the shape of the output";
}

static om_status
max_infer(om_op_context *c)
{
	struct om_window w;
	om_shape x;
	size_t n;
	const int64_t *wrt = om_attr_ints(c->op, "wrt", &n);

	if (!om_has_in(c, INDICES) || n != 1 || wrt[0] != 0 || c->op->nout != 1)
		return om_wrong(c, "requires the inputs dY and Indices and one output");
	const char *bad = om_max_pool_grad_read(c, &x, &w);
	if (bad)
		return om_wrong(c, bad);
	c->out[0].type = c->in[DY].type;
	c->out[0].shape = x;
	return OM_OK;
}

/* The row-major index of a column-major one. */
static int64_t
turned(const struct om_window *w, int64_t index)
{
	const int64_t volume = om_window_volume(w->in), k = index % volume;
	const int64_t z = k % w->in[0], y = k / w->in[0] % w->in[1], x = k / w->in[0] / w->in[1];

	return index - k + (z * w->in[1] + y) * w->in[2] + x;
}

struct put {
	struct om_window w;
	bool by_column;               /* indices are column-major */
};

OM_INLINE om_status
put_back(om_dtype t, const om_op_context *c, const struct put *s)
{
	const struct om_window *w = &s->w;
	const bool by_column = s->by_column;
	const int64_t n = om_shape_count(&c->in[DY].shape), most = om_shape_count(&c->out[0].shape);
	const int64_t *index = c->in[INDICES].data;

	for (int64_t i = 0; i < n; i++) {
		if (index[i] < 0 || index[i] >= most)
			return om_op_fail(c->session, OM_RUN, c->op,
				"index %lld is outside the image", (long long)index[i]);
		const int64_t at = by_column ? turned(w, index[i]) : index[i];
		if (t == OM_FLOAT32)
			((float *)c->out[0].data)[at] += ((const float *)c->in[DY].data)[i];
		else
			((double *)c->out[0].data)[at] += ((const double *)c->in[DY].data)[i];
	}
	return OM_OK;
}

static om_status
max_prepare(om_op_context *c, void **state)
{
	struct put *s = *state;
	om_shape x;

	const char *bad = om_max_pool_grad_read(c, &x, &s->w);
	s->by_column = om_attr_int(c->op, "storage_order") != 0 && s->w.n > 1;
	if (bad)
		return om_wrong(c, bad);
	if (!om_shape_equal(&c->in[DY].shape, &c->in[INDICES].shape))
		return om_wrong(c, "dY and Indices differ in shape");
	return OM_OK;
}

static om_status
max_cpu(om_op_context *c)
{
	const struct put *s = c->state;
	uint64_t bytes = 0;

	om_tensor_bytes(c->out[0].type, &c->out[0].shape, &bytes);
	if (bytes)
		memset(c->out[0].data, 0, bytes);
	return c->in[DY].type == OM_FLOAT32 ? put_back(OM_FLOAT32, c, s) : put_back(OM_FLOAT64, c, s);
}

static void
max_cost(const om_op_context *c, om_cost *cost)
{
	cost->flops = (double)om_shape_count(&c->in[DY].shape);
}

static const om_attr_spec max_attrs[] = {
	OM_POOL_ATTRS, {"ceil_mode", OM_ATTR_INT}, {"storage_order", OM_ATTR_INT}, OM_FUSED_ATTRS, {0}
};

const om_opdef om_ops_pool_grad[] = {
	{.domain = OM_GRAD_DOMAIN, .name = "MaxPoolGrad", .brief = "gradient of MaxPool", .since = 1, .min_in = 2, .max_in = 3,
	 .min_out = 1, .max_out = 1, .flags = OM_IMPLEMENTS_FUNCTION, .attrs = max_attrs, .infer = max_infer, .cpu = max_cpu,
	 .cost = max_cost, .input_types = {OF_WIDE_FLOATS, OF(INT64)}},
	{0}
};

const om_kernel om_kernels_pool_grad[] = {
	{.domain = OM_GRAD_DOMAIN, .name = "MaxPoolGrad", .state_bytes = sizeof(struct put), .prepare = max_prepare,
	 .run = max_cpu},
	{0}
};
