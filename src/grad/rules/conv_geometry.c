/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "grad/rules/conv_geometry.h"
#include "base/arena_internal.h"
#include "grad/grad_builder.h"
#include "ir/query.h"
#include "ir/type.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"

enum { AXES = OM_WINDOW_AXES };

int64_t
om_grad_dim(const om_value *v, int axis)
{
	return axis < v->shape.rank ? v->shape.dim[axis] : -1;
}

size_t
om_axes_between(int from, int to, int64_t *axis)
{
	size_t n = 0;

	for (int d = from; d < to; d++)
		axis[n++] = d;
	return n;
}

/* ---- The geometry. ---- */

bool
om_grad_window(om_grad *g, const int64_t *kernel, bool grows, struct om_window *w)
{
	const om_op *op = om_grad_op(g);
	const om_shape *x = &op->in[0]->shape;
	om_op_context c;

	if (x->rank < 3) {
		om_grad_fail(g, OM_UNSUPPORTED, "the rank of its input is not known");
		return false;
	}
	om_op_context_init(&c, om_grad_session(g), om_grad_mem(g), op);
	const char *wrong = om_window_read(&c, x->rank - 2, x, kernel, w);
	if (!wrong)
		wrong = grows ? om_window_grow(&c, w) : om_window_shrink(&c, w, om_attr_find(op, "ceil_mode")
			&& om_attr_int(op, "ceil_mode") != 0);
	for (int k = 0; k < AXES && !wrong; k++)
		if (w->in[k] < 1 || w->out[k] < 1 || w->kernel[k] < 1)
			wrong = "its gradient requires static sizes of image and kernel";
	if (wrong)
		om_grad_fail(g, OM_UNSUPPORTED, "%s", wrong);
	return !wrong;
}

struct om_window
om_window_turned(const struct om_window *w)
{
	struct om_window v = *w;

	memcpy(v.in, w->out, sizeof v.in);
	memcpy(v.out, w->in, sizeof v.out);
	return v;
}

/* ---- Constants and shapes. ---- */

om_value *
om_emit_numbers(om_grad *g, const om_value *like, int rank, const int64_t *dim, const double *v)
{
	const om_dtype type = om_type_elem(&like->type);
	const om_shape shape = om_shape_of(rank, dim);
	const int64_t n = om_shape_count(&shape);
	om_tensor t = {.type = type, .shape = shape};
	char *data = om_alloc(om_grad_mem(g), (size_t)n * 8 + 1);

	if (type != OM_FLOAT32 && type != OM_FLOAT64 && !om_is_half(type)) {
		om_grad_fail(g, OM_UNSUPPORTED, "gradients are not computed in %s", om_dtype_text(type));
		return om_emit_number(g, like, 0);
	}
	for (int64_t k = 0; k < n; k++)
		om_put(type, data, k, v[k]);
	t.data = data;
	return om_emit_tensor(g, &t);
}

om_value *
om_emit_filled(om_grad *g, const om_value *like, int rank, const int64_t *dim, double v)
{
	const om_shape shape = om_shape_of(rank, dim);
	const int64_t n = om_shape_count(&shape);
	double *all = OM_NEWN(om_grad_mem(g), double, (size_t)n + 1);

	for (int64_t k = 0; k < n; k++)
		all[k] = v;
	return om_emit_numbers(g, like, rank, dim, all);
}

om_value *
om_emit_shaped(om_grad *g, om_value *x, size_t n, const int64_t *dim)
{
	return om_emit(g, "Reshape", x, om_emit_list(g, n, dim));
}

om_value *
om_emit_per_channel(om_grad *g, om_value *x, int rank)
{
	int64_t dim[OM_MAX_RANK] = {-1};

	for (int d = 1; d < rank - 1; d++)
		dim[d] = 1;
	return rank <= 2 ? x : om_emit_shaped(g, x, (size_t)rank - 1, dim);
}

/* ---- Scatter-add. ---- */

/* Windows may not cover a remainder of the image, for which the output is extended, or extend past its
 * end, as in ceil mode, which is cropped like padding.  Negative padding has cropped the image: no
 * window contributes to the cropped part. */
struct scatter {
	int64_t pads[2 * AXES], more[AXES], cut[2 * (AXES + 2)];
	bool is_cut;
};

static void
scatter_axis(const struct om_window *w, int k, struct scatter *p)
{
	const int at = AXES - w->n + k;
	const int64_t span = (w->kernel[at] - 1) * w->dilation[at] + 1;
	int64_t begin = w->begin[at], end = w->end[at], in = w->in[at];

	p->cut[k + 2] = begin < 0 ? -begin : 0;
	p->cut[w->n + 2 + k + 2] = end < 0 ? -end : 0;
	p->is_cut |= begin < 0 || end < 0;
	in -= p->cut[k + 2] + p->cut[w->n + 2 + k + 2];
	begin = begin > 0 ? begin : 0;
	end = end > 0 ? end : 0;
	p->more[k] = in - ((w->out[at] - 1) * w->stride[at] + span - begin - end);
	if (p->more[k] < 0) {
		end -= p->more[k];
		p->more[k] = 0;
	}
	p->pads[k] = begin;
	p->pads[w->n + k] = end;
}

om_value *
om_emit_scatter_add(om_grad *g, const struct om_window *w, om_value *dy, om_value *weights, int64_t group)
{
	const int first = AXES - w->n;
	const size_t n = (size_t)w->n;
	struct scatter p = {.is_cut = false};

	for (int k = 0; k < w->n; k++)
		scatter_axis(w, k, &p);
	om_value *x = om_emit_attrs(g, "ConvTranspose", OM_A(om_attr_make_ints(g, "dilations", n, w->dilation + first),
		om_attr_make_int(g, "group", group), om_attr_make_ints(g, "kernel_shape", n, w->kernel + first),
		om_attr_make_ints(g, "output_padding", n, p.more), om_attr_make_ints(g, "pads", 2 * n, p.pads),
		om_attr_make_ints(g, "strides", n, w->stride + first)), dy, weights);
	return p.is_cut ? om_emit(g, "Pad", x, om_emit_list(g, 2 * (n + 2), p.cut)) : x;
}

om_value *
om_emit_scatter_ones(om_grad *g, const struct om_window *w, om_value *dy)
{
	int64_t dim[AXES + 2] = {om_grad_dim(dy, 1), 1};

	if (dim[0] < 0) {
		om_grad_fail(g, OM_UNSUPPORTED, "the number of its channels is not known");
		return dy;
	}
	memcpy(dim + 2, w->kernel + AXES - w->n, (size_t)w->n * sizeof *dim);
	return om_emit_scatter_add(g, w, dy, om_emit_filled(g, dy, w->n + 2, dim, 1), dim[0]);
}
