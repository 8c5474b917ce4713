/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions, pools and what follows them in the table of layout.c. */
#include <config.h>

#include <math.h>

#include "base/shape.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "lower/choices.h"
#include "lower/layout.h"
#include "opdef/geometry/window.h"
#include "opdef/op_context.h"

/* The largest number of input channels of an image that is read as it comes. */
enum { FEW = 4 };

/* Parts of an image of which each is convolved on its own. */
enum { MOST_PARTS = 8, LEAST_CHANNELS = 8 };

/* ---- Windows. ---- */

void
om_lower_add_window(struct om_layout *l, om_op *op, const struct om_window *w)
{
	int64_t pads[2 * OM_WINDOW_AXES];
	const int n = w->n, at = OM_WINDOW_AXES - n;

	for (int k = 0; k < n; k++) {
		pads[k] = w->begin[at + k];
		pads[n + k] = w->end[at + k];
	}
	om_op_add_ints(l->p, op, "kernel_shape", (size_t)n, w->kernel + at);
	om_op_add_ints(l->p, op, "strides", (size_t)n, w->stride + at);
	om_op_add_ints(l->p, op, "dilations", (size_t)n, w->dilation + at);
	om_op_add_ints(l->p, op, "pads", 2 * (size_t)n, pads);
}

bool
om_lower_window(struct om_layout *l, om_op *op, const om_shape *weights, bool ceil_mode, struct om_window *w)
{
	om_op_context c;
	const om_shape *x = &op->in[0]->shape;
	const bool grows = strcmp(op->type, "ConvTranspose") == 0;

	om_op_context_init(&c, NULL, l->mem, op);
	if (x->rank < 3 || x->rank > 2 + OM_WINDOW_AXES || om_window_read(&c, x->rank - 2, x, weights ? weights->dim + 2 : NULL, w)
	    || (grows ? om_window_grow(&c, w) : om_window_shrink(&c, w, ceil_mode)))
		return false;
	for (int k = 0; k < OM_WINDOW_AXES; k++)
		if (w->begin[k] < 0 || w->end[k] < 0)
			return false;
	return true;
}

/* ---- Convolutions. ---- */

struct conv {
	om_op *op;
	struct om_window w;
	int64_t channels_in, channels_out, group;
	om_value *weights, *bias, *residual;   /* the last two may be NULL */
	const char *pack, *run;
	const char *algorithm;                 /* of `run` if that is Conv; else NULL */
	int64_t block;                         /* percent */
	bool is_chosen;                        /* as the options have it */
};

static bool
is_allowed(const struct om_layout *l, const om_conv_shape *s, const om_choice *c)
{
	if (!c->algorithm || strcmp(c->algorithm, "gemm") == 0)
		return c->algorithm;
	return strcmp(c->algorithm, "grouped") == 0 ? om_conv_suits_grouped(s) : l->options.winograd && om_conv_suits_winograd(s);
}

/* The choice for its shapes or, if there is none that can be used, that of the cost model. */
static void
choose_algorithm(struct om_layout *l, struct conv *v)
{
	const int at = OM_WINDOW_AXES - v->w.n;
	const om_conv_shape s = {.batch = v->op->in[0]->shape.dim[0], .channels_in = v->channels_in,
		.channels_out = v->channels_out, .group = v->group, .axes = v->w.n, .in = v->w.in + at, .out = v->w.out + at,
		.kernel = v->w.kernel + at, .stride = v->w.stride + at, .dilation = v->w.dilation + at};
	const char *list = l->options.choices, *key = list && *list ? om_conv_key(&s, l->mem) : NULL;
	om_choice c;

	v->algorithm = om_conv_algorithm(&s, l->options.winograd);
	v->block = 100;
	v->is_chosen = false;
	if (!key || !om_choices_find(list, key, &c))
		return;
	if (!is_allowed(l, &s, &c)) {
		om_warn(l->session, "the choice for %s cannot be used here: the cost model decides (%s)", key, v->algorithm);
		return;
	}
	v->algorithm = c.algorithm;
	v->block = c.block;
	v->is_chosen = true;
}

static void
choose(struct om_layout *l, struct conv *v)
{
	if (strcmp(v->op->type, "ConvTranspose") == 0) {
		v->pack = "PackTransposed";
		v->run = "ConvTranspose";
	} else if (v->channels_in == v->group && v->group > 1) {
		v->pack = "PackDepthwise";
		v->run = "DepthwiseConv";
	} else {
		choose_algorithm(l, v);
		const bool grouped = strcmp(v->algorithm, "grouped") == 0;
		v->pack = grouped ? "PackGrouped" : "PackFilter";
		v->run = grouped ? "GroupedConv" : "Conv";
		v->algorithm = grouped ? NULL : v->algorithm;
	}
}

/* Is the size of a transposed convolution the one that its padding gives?  A given shape may be larger. */
static bool
is_sized_by_pads(const om_op *op, const struct om_window *w)
{
	for (int k = 0; k < w->n; k++) {
		const int at = OM_WINDOW_AXES - w->n + k;
		const int64_t more = om_attr_int_at(op, "output_padding", (size_t)k, 0);
		if (w->out[at] != (w->in[at] - 1) * w->stride[at] + (w->kernel[at] - 1) * w->dilation[at] + 1 + more
		    - w->begin[at] - w->end[at])
			return false;
	}
	return true;
}

static bool
read_conv(struct om_layout *l, om_op *op, struct conv *v)
{
	const om_value *x = op->in[0], *w = op->in[1];

	*v = (struct conv){.op = op, .weights = op->in[1], .bias = op->nin > 2 ? op->in[2] : NULL};
	if (!om_lower_is_float(x) || !om_lower_is_float(w) || !om_lower_is_float(op->out[0]) || !om_lower_is_const(w)
	    || x->shape.rank != w->shape.rank || om_shape_count(&op->out[0]->shape) == 0 || om_shape_count(&w->shape) == 0)
		return false;
	v->group = om_attr_int(op, "group");
	v->channels_in = x->shape.rank > 1 ? x->shape.dim[1] : 0;
	v->channels_out = op->out[0]->shape.dim[1];
	if (v->group < 1 || !om_lower_window(l, op, &w->shape, false, &v->w)
	    || (strcmp(op->type, "ConvTranspose") == 0 && !is_sized_by_pads(op, &v->w)))
		return false;
	choose(l, v);
	return true;
}

static om_status
pack_weights(struct om_layout *l, struct conv *v, om_value **packed)
{
	om_op *op = om_lower_op(l, OM_CPU_DOMAIN, v->pack, 1, 1, &v->weights);

	if (v->algorithm)
		om_op_add_string(l->p, op, "algorithm", v->algorithm);
	if (v->group > 1 && strcmp(v->pack, "PackDepthwise") != 0)
		om_op_add_int(l->p, op, "group", v->group);
	return om_lower_pack(l, v->op, op, packed);
}

/* An image with few channels is read as it comes: interleaving its channels is a part of the first layer. */
static bool
reads_channels_first(const struct om_layout *l, const struct conv *v)
{
	return v->algorithm && strcmp(v->algorithm, "gemm") == 0 && v->group == 1 && v->channels_in <= FEW
	    && !om_lower_form(l, v->op->in[0])->value;
}

static om_status
new_conv(struct om_layout *l, const struct conv *v, om_value *x, om_value *packed, om_value **y)
{
	om_value *in[] = {x, packed, v->bias, v->residual};
	om_op *op = om_lower_op(l, OM_CPU_DOMAIN, v->run, 1, v->residual ? 4 : v->bias ? 3 : 2, in);

	om_lower_add_window(l, op, &v->w);
	om_op_add_int(l->p, op, "channels", v->channels_out);
	if (v->algorithm) {
		om_op_add_string(l->p, op, "algorithm", v->algorithm);
		if (v->block != 100)
			om_op_add_int(l->p, op, "block", v->block);
		if (reads_channels_first(l, v))
			om_op_add_string(l->p, op, "input_layout", "channels_first");
	}
	l->n.chosen += v->is_chosen;
	if (v->group > 1 && strcmp(v->run, "DepthwiseConv") != 0)
		om_op_add_int(l->p, op, "group", v->group);
	if (om_attr_has(v->op, "output_padding"))
		om_op_add_attr(l->p, op, om_attr_find(v->op, "output_padding"));
	return om_lower_insert(l, v->op, op, om_printf(l->mem, "%s_last", v->op->out[0]->name), y);
}

/* ---- Concatenated images.
 *
 * Channels-last images that are concatenated along their channels have to be copied.  The convolution of that image
 * is the sum of those of its parts, each of which is the residual of the next, computed over it: nothing is copied,
 * and the parts need not be in memory at once.  The sum is read and written once more for each part, which has to cost
 * less than the copy. */

static bool
are_worth_it(const struct conv *v, const om_op *concat)
{
	const uint32_t n = concat->nin;

	for (uint32_t k = 0; k < n; k++)
		if (concat->in[k]->shape.dim[v->w.n + 1] < LEAST_CHANNELS)
			return false;
	return n >= 2 && n <= MOST_PARTS && (int64_t)(n - 1) * v->channels_out <= v->channels_in;
}

/* The concatenation that the convolution alone reads; NULL: there is none, or it is not worth it. */
static const om_op *
parts_of(const struct om_layout *l, const struct conv *v)
{
	const om_value *x = v->op->in[0];
	const om_form *form = om_lower_form(l, x);
	const om_op *concat = form->value ? form->value->def : NULL;
	int axis[OM_MAX_RANK];

	om_lower_channels_last(x->shape.rank, axis);
	if (!v->algorithm || v->group != 1 || !concat || strcmp(concat->type, "Concat") != 0 || *concat->domain
	    || om_attr_int(concat, "axis") != x->shape.rank - 1
	    || memcmp(form->axis, axis, (size_t)x->shape.rank * sizeof *axis) != 0 || x->nuse != 1 || form->value->nuse > 1)
		return NULL;
	return are_worth_it(v, concat) ? concat : NULL;
}

/* The weights of `n` input channels from `at` on. */
static om_status
part_of_weights(struct om_layout *l, const struct conv *v, int64_t at, int64_t n, om_value **out)
{
	om_value *w = v->weights;
	om_op *place = om_lower_place(w, v->op);
	const char *name = om_printf(l->mem, "%s_part", w->name);
	om_value *in[] = {w, om_lower_ints(l, place->block, om_printf(l->mem, "%s_begin", name), 1, &at),
		om_lower_ints(l, place->block, om_printf(l->mem, "%s_end", name), 1, &(int64_t){at + n}),
		om_lower_ints(l, place->block, om_printf(l->mem, "%s_axis", name), 1, &(int64_t){1})};

	return om_lower_insert(l, place, om_lower_op(l, "", "Slice", 13, 4, in), name, out);
}

static om_status
new_conv_of_parts(struct om_layout *l, const struct conv *v, const om_op *concat, om_value **y)
{
	int64_t at = 0;

	*y = NULL;
	for (uint32_t k = 0; k < concat->nin; k++) {
		struct conv part = *v;
		om_value *packed;
		part.channels_in = concat->in[k]->shape.dim[v->w.n + 1];
		part.residual = *y;
		part.bias = k == 0 ? v->bias : NULL;
		choose_algorithm(l, &part);
		OM_TRY(part_of_weights(l, v, at, part.channels_in, &part.weights));
		OM_TRY(pack_weights(l, &part, &packed));
		OM_TRY(new_conv(l, &part, concat->in[k], packed, y));
		at += part.channels_in;
	}
	return OM_OK;
}

static om_status
new_conv_of_image(struct om_layout *l, struct conv *v, const om_form *y, om_value **out)
{
	om_value *x = v->op->in[0], *packed;

	if (!reads_channels_first(l, v))
		OM_TRY(om_lower_read(l, v->op, x, y->axis, &x));
	OM_TRY(pack_weights(l, v, &packed));
	return new_conv(l, v, x, packed, out);
}

om_status
om_lower_conv(struct om_layout *l, om_op *op, bool *done)
{
	struct conv v;
	om_form y;

	if (!read_conv(l, op, &v))
		return OM_OK;
	om_lower_channels_last(op->in[0]->shape.rank, y.axis);
	const om_op *concat = parts_of(l, &v);
	OM_TRY(concat ? new_conv_of_parts(l, &v, concat, &y.value) : new_conv_of_image(l, &v, &y, &y.value));
	return om_lower_replace(l, op, &y, &l->n.convolutions, done);
}

/* ---- Pools. ---- */

/* A pool follows its input: without a form, transposing it would cost more than the pool. */
static bool
is_channels_last(const struct om_layout *l, const om_op *op)
{
	return om_lower_is_float(op->in[0]) && om_lower_is_float(op->out[0]) && om_lower_is_last(l, op->in[0]);
}

/* The largest byte of a window. */
static bool
is_pool_of_bytes(const struct om_layout *l, const om_op *op)
{
	return strcmp(op->type, "MaxPool") == 0 && om_lower_is_of_bytes(op->in[0]) && om_lower_is_last(l, op->in[0]);
}

om_status
om_lower_pool(struct om_layout *l, om_op *op, bool *done)
{
	const bool ceil_mode = op->version >= 10 && om_attr_int(op, "ceil_mode");
	struct om_window w;
	om_form y = *om_lower_form(l, op->in[0]);

	if ((!is_channels_last(l, op) && !is_pool_of_bytes(l, op)) || (op->nout > 1 && op->out[1]) || !om_lower_window(l, op, NULL, ceil_mode, &w))
		return OM_OK;
	om_op *pool = om_lower_op(l, OM_CPU_DOMAIN, op->type, 1, 1, &y.value);
	om_lower_add_window(l, pool, &w);
	om_op_add_int(l->p, pool, "ceil_mode", ceil_mode);
	if (strcmp(op->type, "AveragePool") == 0)
		om_op_add_int(l->p, pool, "count_include_pad", op->version >= 7 && om_attr_int(op, "count_include_pad"));
	OM_TRY(om_lower_insert(l, op, pool, om_printf(l->mem, "%s_last", op->out[0]->name), &y.value));
	return om_lower_replace(l, op, &y, &l->n.pools, done);
}

om_status
om_lower_global_pool(struct om_layout *l, om_op *op, bool *done)
{
	om_form y = *om_lower_form(l, op->in[0]);
	int64_t axes[OM_MAX_RANK];

	if (!is_channels_last(l, op))
		return OM_OK;
	const int rank = op->in[0]->shape.rank;
	for (int k = 1; k + 1 < rank; k++)
		axes[k - 1] = k;
	om_op *pool = om_lower_op(l, "", strcmp(op->type, "GlobalMaxPool") == 0 ? "ReduceMax" : "ReduceMean", 13, 1, &y.value);
	om_op_add_ints(l->p, pool, "axes", (size_t)rank - 2, axes);
	OM_TRY(om_lower_insert(l, op, pool, om_printf(l->mem, "%s_last", op->out[0]->name), &y.value));
	return om_lower_replace(l, op, &y, &l->n.pools, done);
}

/* ---- Batch normalization that is not part of a convolution. ---- */

static bool
float_at(const om_value *v, int64_t n, int64_t k, double *is)
{
	if (!om_lower_is_float(v) || v->is_overridable || !v->data || !v->data->data || om_shape_count(&v->shape) != n)
		return false;
	*is = (double)((const float *)v->data->data)[v->data->splat ? 0 : k];
	return true;
}

/* y = x * scale + shift. */
static bool
scale_and_shift(const om_op *op, int64_t n, float *scale, float *shift)
{
	for (int64_t k = 0; k < n; k++) {
		double by, plus, mean, variance;
		if (!float_at(op->in[1], n, k, &by) || !float_at(op->in[2], n, k, &plus) || !float_at(op->in[3], n, k, &mean)
		    || !float_at(op->in[4], n, k, &variance))
			return false;
		by /= sqrt(variance + (double)om_attr_float(op, "epsilon"));
		scale[k] = (float)by;
		shift[k] = (float)(plus - mean * by);
	}
	return true;
}

static bool
is_inference(const om_op *op)
{
	for (uint32_t k = 1; k < op->nout; k++)
		if (op->out[k] && op->out[k]->nuse)
			return false;
	return op->version >= 14 ? !om_attr_int(op, "training_mode")
		: op->version >= 7 && !(om_attr_has(op, "spatial") && !om_attr_int(op, "spatial"));
}

om_status
om_lower_batch_norm(struct om_layout *l, om_op *op, bool *done)
{
	om_form y = *om_lower_form(l, op->in[0]);

	if (!is_channels_last(l, op) || !is_inference(op))
		return OM_OK;
	const int64_t n = op->in[0]->shape.dim[1];
	float *scale = OM_NEWN(l->mem, float, (size_t)n), *shift = OM_NEWN(l->mem, float, (size_t)n);
	if (!scale_and_shift(op, n, scale, shift))
		return OM_OK;
	const char *name = op->out[0]->name;
	om_value *in[2] = {y.value, om_lower_list(l, op->block, om_printf(l->mem, "%s_scale", name), OM_FLOAT32, n, scale)};
	OM_TRY(om_lower_insert(l, op, om_lower_op(l, "", "Mul", 13, 2, in), om_printf(l->mem, "%s_scaled", name), &in[0]));
	in[1] = om_lower_list(l, op->block, om_printf(l->mem, "%s_shift", name), OM_FLOAT32, n, shift);
	OM_TRY(om_lower_insert(l, op, om_lower_op(l, "", "Add", 13, 2, in), om_printf(l->mem, "%s_last", name), &y.value));
	return om_lower_replace(l, op, &y, &l->n.followed, done);
}
