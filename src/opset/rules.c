/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion rules: one for every version that changed an operator.
 *
 * Most changes are syntactic: an attribute became an input.  If the semantics changed, attributes
 * select the old behavior, or additional ops emulate it, so that the same results are computed
 * from the same elements in the same order. */
#include <config.h>

#include <float.h>

#include "opset/convert.h"
#include "base/shape.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "ir/type.h"

/* ---- Helpers. ---- */

static om_value *
input(const om_opset_conversion *r, uint32_t k)
{
	return k < r->op->nin ? r->op->in[k] : NULL;
}

static int
rank_of(const om_opset_conversion *r, uint32_t k)
{
	return input(r, k) ? input(r, k)->shape.rank : OM_RANK_UNKNOWN;
}

static void
set_text(om_opset_conversion *r, const char *name, const char *text)
{
	om_op_drop_attr(r->op, name);
	om_op_add_string(r->p, r->op, name, text);
}

/* Change the operator of the op. */
static void
become(om_opset_conversion *r, const char *type, int version)
{
	r->op->type = om_strdup(r->p->mem, type);
	r->op->version = version;
}

/* The list [from, from + 1, ...] of n integers. */
static om_value *
range(om_opset_conversion *r, const char *what, int64_t from, int n)
{
	int64_t v[OM_MAX_RANK];

	for (int k = 0; k < n; k++)
		v[k] = from + k;
	return om_conversion_list(r, what, (size_t)n, v);
}

static bool
is_read(const om_prog *p, const om_value *v)
{
	for (const om_block *b = p->first; v && b; b = b->next) {
		for (uint32_t k = 0; k < b->nresult; k++)
			if (b->result[k] == v)
				return true;
		for (const om_op *op = b->first; op; op = op->next)
			for (uint32_t k = 0; k < op->nin; k++)
				if (op->in[k] == v)
					return true;
	}
	return false;
}

/* Remove the outputs from `k` on, which have no users. */
static void
drop_outputs(om_opset_conversion *r, uint32_t k)
{
	for (uint32_t i = k; i < r->op->nout; i++)
		if (r->op->out[i])
			r->op->out[i]->def = NULL;
	r->op->nout = k < r->op->nout ? k : r->op->nout;
}

/* ---- Attributes that became inputs. ---- */

static om_status
axes(om_opset_conversion *r)
{
	OM_CONVERT_INPUTS(r, input(r, 0), om_conversion_attr(r, "axes"));
	return OM_OK;
}

static om_status
shape(om_opset_conversion *r)
{
	OM_CONVERT_INPUTS(r, input(r, 0), om_conversion_attr(r, "shape"));
	return OM_OK;
}

static om_status
slice(om_opset_conversion *r)
{
	om_value *starts = om_conversion_attr(r, "starts"), *ends = om_conversion_attr(r, "ends");

	OM_CONVERT_INPUTS(r, input(r, 0), starts, ends, om_conversion_attr(r, "axes"));
	return OM_OK;
}

/* In opset 1 the sizes could already be an input, of any type. */
static om_status
split(om_opset_conversion *r)
{
	om_value *sizes = om_conversion_attr(r, "split");

	if (input(r, 1))
		sizes = OM_CONVERT_BEFORE(r, "Cast", ((om_attr[]){om_conversion_int(r, "to", OM_INT64), {0}}), input(r, 1));
	OM_CONVERT_INPUTS(r, input(r, 0), sizes);
	return OM_OK;
}

static om_status
split_count(om_opset_conversion *r)
{
	if (!input(r, 1))
		om_op_add_int(r->p, r->op, "num_outputs", r->op->nout);
	return OM_OK;
}

static om_status
top(om_opset_conversion *r)
{
	const int64_t k = om_attr_int(r->op, "k");

	om_op_drop_attr(r->op, "k");
	OM_CONVERT_INPUTS(r, input(r, 0), om_conversion_list(r, "k", 1, &k));
	return OM_OK;
}

static om_status
paddings(om_opset_conversion *r)
{
	size_t n;
	const int64_t *v = om_attr_ints(r->op, "paddings", &n);

	om_op_add_ints(r->p, r->op, "pads", n, v);
	om_op_drop_attr(r->op, "paddings");
	return OM_OK;
}

static om_status
pads(om_opset_conversion *r)
{
	const bool has_value = om_attr_has(r->op, "value");
	const float v = om_attr_float(r->op, "value");
	om_value *x = input(r, 0), *list = om_conversion_attr(r, "pads"), *value = NULL;

	om_op_drop_attr(r->op, "value");
	if (has_value && om_type_elem(&x->type) == OM_UNDEFINED)
		return om_conversion_refuse(r, "the type of %s is not known", x->name);
	if (has_value)
		value = om_conversion_number(r, "value", om_type_elem(&x->type), v);
	OM_CONVERT_INPUTS(r, x, list, value);
	return OM_OK;
}

/* An absent bound was the largest finite float32 for every type. */
static om_status
bounds(om_opset_conversion *r)
{
	static const char *const name[] = {"min", "max"};
	om_value *in[3] = {input(r, 0)};
	const om_dtype type = om_type_elem(&in[0]->type);

	if (type == OM_UNDEFINED)
		return om_conversion_refuse(r, "the type of %s is not known", in[0]->name);
	for (uint32_t k = 0; k < 2; k++) {
		const bool is_given = om_attr_has(r->op, name[k]);
		const float v = is_given ? om_attr_float(r->op, name[k]) : k ? FLT_MAX : -FLT_MAX;
		om_op_drop_attr(r->op, name[k]);
		if (is_given || type != OM_FLOAT32)
			in[k + 1] = om_conversion_number(r, name[k], type, v);
	}
	om_conversion_inputs(r, 3, in);
	return OM_OK;
}

static om_status
dft_axis(om_opset_conversion *r)
{
	const int64_t axis = om_attr_int(r->op, "axis");
	om_value *list = om_conversion_list(r, "axis", 1, &axis);

	om_op_drop_attr(r->op, "axis");
	OM_CONVERT_INPUTS(r, input(r, 0), input(r, 1), OM_CONVERT_BEFORE(r, "Squeeze", NULL, list));
	return OM_OK;
}

/* ---- Defaults that changed. ---- */

static om_status
concat_axis(om_opset_conversion *r)
{
	if (!om_attr_has(r->op, "axis"))
		om_op_add_int(r->p, r->op, "axis", 1);
	return OM_OK;
}

static om_status
selu(om_opset_conversion *r)
{
	if (!om_attr_has(r->op, "alpha"))
		om_op_add_float(r->p, r->op, "alpha", 1.6732f);
	if (!om_attr_has(r->op, "gamma"))
		om_op_add_float(r->p, r->op, "gamma", 1.0507f);
	return OM_OK;
}

static om_status
whole_p(om_opset_conversion *r)
{
	const float p = om_attr_float(r->op, "p");

	if (!(p >= 1 && p <= 1024) || p != (float)(int)p)
		return om_conversion_refuse(r, "p is %g, expected an integer", (double)p);
	om_op_drop_attr(r->op, "p");
	om_op_add_int(r->p, r->op, "p", (int)p);
	return OM_OK;
}

static om_status
half_pixels(om_opset_conversion *r)
{
	set_text(r, "coordinate_transformation_mode", "output_half_pixel");
	return OM_OK;
}

static om_status
grid_mode(om_opset_conversion *r)
{
	if (om_attr_is(r->op, "mode", "bilinear"))
		set_text(r, "mode", "linear");
	else if (om_attr_is(r->op, "mode", "bicubic"))
		set_text(r, "mode", "cubic");
	return OM_OK;
}

/* The type was given as its name, a string. */
static om_status
cast_type(om_opset_conversion *r)
{
	const om_dtype to = r->op->out[0] ? om_type_elem(&r->op->out[0]->type) : OM_UNDEFINED;

	if (to == OM_UNDEFINED)
		return om_conversion_refuse(r, "its type is not known");
	om_op_drop_attr(r->op, "to");
	om_op_add_int(r->p, r->op, "to", to);
	return OM_OK;
}

/* Integers were permitted: they were computed as float64, and converted back through float32. */
static om_status
erf_of_integers(om_opset_conversion *r)
{
	const om_dtype type = input(r, 0) ? om_type_elem(&input(r, 0)->type) : OM_UNDEFINED;

	if (!om_dtype_is_integer(type))
		return OM_OK;
	OM_CONVERT_INPUTS(r, OM_CONVERT_BEFORE(r, "Cast", ((om_attr[]){om_conversion_int(r, "to", OM_FLOAT64), {0}}), input(r, 0)));
	om_conversion_insert_after(r, 0, "Cast", (om_attr[]){om_conversion_int(r, "to", type), {0}}, NULL);
	om_conversion_insert_after(r, 0, "Cast", (om_attr[]){om_conversion_int(r, "to", OM_FLOAT32), {0}}, NULL);
	return OM_OK;
}

/* ---- Hints of recurrent operators, and of others. ---- */

static om_status
no_sequence(om_opset_conversion *r)
{
	om_op_drop_attr(r->op, "output_sequence");
	return OM_OK;
}

static om_status
no_broadcast(om_opset_conversion *r)
{
	om_op_drop_attr(r->op, "broadcast");
	om_op_drop_attr(r->op, "axis");
	return OM_OK;
}

/* ---- Broadcasting. ---- */

/* The dims of the second operand were matched to those of the first, starting at `axis`. */
static om_status
broadcast(om_opset_conversion *r)
{
	const bool has_axis = om_attr_has(r->op, "axis") && om_attr_int(r->op, "broadcast") != 0;
	int64_t axis = om_attr_int(r->op, "axis");
	const int a = rank_of(r, 0), b = rank_of(r, 1);

	no_broadcast(r);
	if (!has_axis)
		return OM_OK;
	if (a < 0 || b < 0)
		return om_conversion_refuse(r, "the rank of an operand is not known");
	axis += axis < 0 ? a : 0;
	if (axis < 0 || axis + b >= a)
		return OM_OK;
	OM_CONVERT_INPUTS(r, input(r, 0), OM_CONVERT_BEFORE(r, "Unsqueeze", NULL, input(r, 1),
		range(r, "axes", b, (int)(a - axis - b))));
	return OM_OK;
}

/* One slope, or one per channel. */
static om_status
slope(om_opset_conversion *r)
{
	const om_value *s = input(r, 1);
	const int rank = rank_of(r, 0);

	if (s->shape.rank < 0 || (s->shape.rank == 1 && (s->shape.dim[0] < 0 || (s->shape.dim[0] != 1 && rank < 0))))
		return om_conversion_refuse(r, "the shape of an operand is not known");
	if (s->shape.rank == 1 && s->shape.dim[0] != 1 && rank > 2)
		OM_CONVERT_INPUTS(r, input(r, 0), OM_CONVERT_BEFORE(r, "Unsqueeze", NULL, input(r, 1),
			range(r, "axes", 1, rank - 2)));
	return OM_OK;
}

/* A repeat count and an axis became a list of counts, which is 1 for all other axes. */
static om_status
repeats(om_opset_conversion *r)
{
	const om_attr to[] = {om_conversion_int(r, "to", OM_INT64), {0}};
	const int rank = rank_of(r, 0);
	const int64_t one = 1;

	if (rank < 0)
		return om_conversion_refuse(r, "the rank of %s is not known", input(r, 0)->name);
	om_value *n = OM_CONVERT_BEFORE(r, "Cast", to, input(r, 1)), *at = OM_CONVERT_BEFORE(r, "Cast", to, input(r, 2));
	om_value *here = OM_CONVERT_BEFORE(r, "Equal", NULL, range(r, "places", 0, rank), at);
	OM_CONVERT_INPUTS(r, input(r, 0), OM_CONVERT_BEFORE(r, "Where", NULL, here, n, om_conversion_list(r, "one", 1, &one)));
	return OM_OK;
}

/* Scale and bias per group are expanded to one per channel. */
static om_status
group_numbers(om_opset_conversion *r)
{
	const om_value *x = input(r, 0);
	const int64_t groups = om_attr_int(r->op, "num_groups");
	om_value *in[3] = {input(r, 0)};

	if (x->shape.rank < 2 || x->shape.dim[1] < 0 || groups < 1)
		return om_conversion_refuse(r, "the number of channels of %s is not known", x->name);
	const int64_t column[] = {groups, 1}, wide[] = {groups, x->shape.dim[1] / groups}, flat = -1;
	for (uint32_t k = 1; k < 3; k++) {
		om_value *v = OM_CONVERT_BEFORE(r, "Reshape", NULL, input(r, k), om_conversion_list(r, "column", 2, column));
		v = OM_CONVERT_BEFORE(r, "Expand", NULL, v, om_conversion_list(r, "wide", 2, wide));
		in[k] = OM_CONVERT_BEFORE(r, "Reshape", NULL, v, om_conversion_list(r, "flat", 1, &flat));
	}
	om_conversion_inputs(r, 3, in);
	return OM_OK;
}

/* ---- Axes of Softmax, LogSoftmax and Hardmax. ---- */

/* The only axis from `axis` on with an extent other than 1; -1: there are several. */
static int
only_axis(const om_shape *s, int axis)
{
	int only = axis;

	for (int d = axis, n = 0; d < s->rank; d++)
		if (s->dim[d] != 1) {
			if (n++)
				return -1;
			only = d;
		}
	return only;
}

/* All dims from the axis on were normalized together. */
static om_status
lines(om_opset_conversion *r)
{
	om_value *x = input(r, 0);
	int64_t axis = om_attr_int(r->op, "axis");
	const int64_t given = axis;
	int only = -1;

	om_op_drop_attr(r->op, "axis");
	axis += axis < 0 && x->shape.rank > 0 ? x->shape.rank : 0;
	if (x->shape.rank > 0 && axis >= 0 && axis < x->shape.rank)
		only = only_axis(&x->shape, (int)axis);
	if (only >= 0 || x->shape.rank == 0) {
		om_op_add_int(r->p, r->op, "axis", only);
		return OM_OK;
	}
	om_value *flat = OM_CONVERT_BEFORE(r, "Flatten", ((om_attr[]){om_conversion_int(r, "axis", given), {0}}), x);
	om_op_add_int(r->p, r->op, "axis", 1);
	OM_CONVERT_INPUTS(r, flat);
	om_conversion_insert_after(r, 0, "Reshape", NULL, om_conversion_shape(r, x));
	return OM_OK;
}

/* ---- Normalizations. ---- */

/* `is_test` selected inference mode; without it, training mode is implied by several outputs. */
static om_status
no_test(om_opset_conversion *r)
{
	bool is_plain = om_attr_int(r->op, "is_test") != 0;

	for (uint32_t k = 1; k < r->op->nout; k++)
		is_plain &= !is_read(r->p, r->op->out[k]);
	if (is_plain)
		drop_outputs(r, 1);
	om_op_drop_attr(r->op, "is_test");
	return OM_OK;
}

/* With parameters per element of a sample (spatial = 0), elements are treated as channels. */
static om_status
by_element(om_opset_conversion *r)
{
	const bool is_by_element = om_attr_has(r->op, "spatial") && om_attr_int(r->op, "spatial") == 0;
	const int64_t flat = -1;
	om_value *in[5];

	om_op_drop_attr(r->op, "spatial");
	if (!is_by_element)
		return OM_OK;
	in[0] = OM_CONVERT_BEFORE(r, "Flatten", ((om_attr[]){om_conversion_int(r, "axis", 1), {0}}), input(r, 0));
	for (uint32_t k = 1; k < 5; k++)
		in[k] = rank_of(r, k) == 1 ? input(r, k)
			: OM_CONVERT_BEFORE(r, "Reshape", NULL, input(r, k), om_conversion_list(r, "flat", 1, &flat));
	om_value *shape_of = om_conversion_shape(r, input(r, 0));
	om_conversion_inputs(r, 5, in);
	om_conversion_insert_after(r, 0, "Reshape", NULL, shape_of);
	return OM_OK;
}

/* Several outputs implied training mode; two of these outputs were removed. */
static om_status
batch_training(om_opset_conversion *r)
{
	om_op *op = r->op;
	bool trains = false;

	for (uint32_t k = 1; k < op->nout; k++)
		trains |= op->out[k] != NULL;
	for (uint32_t k = 3; k < op->nout; k++)
		if (is_read(r->p, op->out[k]))
			return om_conversion_refuse(r,
				"%s, an output in training mode, does not exist in the newer version", op->out[k]->name);
	if (!trains) {
		drop_outputs(r, 1);
		return OM_OK;
	}
	for (uint32_t k = 3; k < op->nout; k++)
		if (op->out[k])
			op->out[k]->def = NULL;
	om_value **out = OM_NEWN(r->p->mem, om_value *, 3);
	memcpy(out, op->out, (op->nout < 3 ? op->nout : 3) * sizeof *out);
	op->out = out;
	op->nout = 3;
	for (uint32_t k = 1; k < 3; k++)
		if (!out[k])
			om_op_set_out(op, k, om_value_fresh(r->p, op->block, om_printf(r->mem, "%s_%s", out[0]->name,
				k == 1 ? "mean" : "var")));
	om_op_add_int(r->p, op, "training_mode", 1);
	return OM_OK;
}

static om_status
moment_axes(om_opset_conversion *r)
{
	const int rank = rank_of(r, 0);
	const bool all = om_attr_int(r->op, "across_channels") != 0;
	int64_t v[OM_MAX_RANK];
	size_t n = 0;

	if (!om_attr_int(r->op, "normalize_variance"))
		return om_conversion_refuse(r, "it does not update the variance");
	if (rank < 0)
		return om_conversion_refuse(r, "the rank of %s is not known", input(r, 0)->name);
	for (int d = 0; d < rank; d++)
		if (all || d != 1)
			v[n++] = d;
	om_op_drop_attr(r->op, "across_channels");
	om_op_drop_attr(r->op, "normalize_variance");
	om_op_add_ints(r->p, r->op, "axes", n, v);
	return OM_OK;
}

/* ---- Dropout, in inference the identity apart from its mask. ---- */

static om_status
dropout(om_opset_conversion *r)
{
	om_op *op = r->op;
	const bool has_ratio = om_attr_has(op, "ratio");
	const float ratio = om_attr_float(op, "ratio");
	om_value *mask = op->nout > 1 ? op->out[1] : NULL;

	om_op_drop_attr(op, "ratio");
	om_op_drop_attr(op, "is_test");
	OM_CONVERT_INPUTS(r, input(r, 0), has_ratio ? om_conversion_number(r, "ratio", OM_FLOAT32, ratio) : NULL);
	if (!mask || !is_read(r->p, mask)) {
		drop_outputs(r, 1);
		return OM_OK;
	}
	if (om_type_elem(&mask->type) == OM_BOOL)
		return OM_OK;
	om_conversion_insert_after(r, 1, "Cast", (om_attr[]){om_conversion_int(r, "to", om_type_elem(&mask->type)), {0}}, NULL);
	op->out[1]->type = (om_type){.kind = OM_TENSOR, .elem = OM_BOOL};
	return OM_OK;
}

/* ---- Upsample and Resize. ---- */

static om_status
image_scales(om_opset_conversion *r)
{
	const float v[] = {1, 1, om_attr_float(r->op, "height_scale"), om_attr_float(r->op, "width_scale")};

	om_op_drop_attr(r->op, "height_scale");
	om_op_drop_attr(r->op, "width_scale");
	om_op_add_attr(r->p, r->op, &(om_attr){.name = "scales", .kind = OM_ATTR_FLOATS, .n = 4, .f = v});
	return OM_OK;
}

static om_status
scales(om_opset_conversion *r)
{
	size_t n;
	const float *v = om_attr_floats(r->op, "scales", &n);

	om_op_drop_attr(r->op, "scales");
	OM_CONVERT_INPUTS(r, input(r, 0), om_conversion_floats(r, "scales", n, v));
	return OM_OK;
}

/* Are all scales known, and all >= 1 if `up`, else all <= 1?  False if they are not constant. */
static bool
only_goes(const om_value *scale, bool up)
{
	const om_tensor *t = scale->data;

	if (!t || !t->data || scale->is_overridable || t->type != OM_FLOAT32)
		return false;
	for (int64_t k = 0; k < om_shape_count(&t->shape); k++) {
		const float s = ((const float *)t->data)[t->splat ? 0 : k];
		if (up ? !(s >= 1) : !(s <= 1))
			return false;
	}
	return true;
}

static om_attr *
places(const om_opset_conversion *r, const char *rounding)
{
	om_attr *a = OM_NEWN(r->mem, om_attr, 4);

	a[0] = om_conversion_text(r, "mode", "nearest");
	a[1] = om_conversion_text(r, "coordinate_transformation_mode", "asymmetric");
	a[2] = om_conversion_text(r, "nearest_mode", rounding);
	return a;
}

/* Coordinates were asymmetric; `nearest` rounded down on axes that grow and up on axes that shrink.
 * If both may occur, an op for the axes that shrink is inserted before. */
static om_status
resize(om_opset_conversion *r)
{
	om_value *x = input(r, 0), *scale = input(r, 1);
	const bool is_nearest = om_attr_is(r->op, "mode", "nearest");
	const bool is_sure = strcmp(r->op->type, "Upsample") == 0 || only_goes(scale, true);
	const float one = 1;

	if (om_attr_is(r->op, "mode", "bilinear"))
		set_text(r, "mode", "linear");
	if (is_nearest && !is_sure && !only_goes(scale, false)) {
		om_value *same = om_conversion_floats(r, "same", 1, &one);
		x = OM_CONVERT_BEFORE(r, "Resize", places(r, "ceil"), x, NULL, OM_CONVERT_BEFORE(r, "Min", NULL, scale, same));
		scale = OM_CONVERT_BEFORE(r, "Max", NULL, scale, same);
		set_text(r, "nearest_mode", "floor");
	} else if (is_nearest) {
		set_text(r, "nearest_mode", is_sure ? "floor" : "ceil");
	}
	set_text(r, "coordinate_transformation_mode", "asymmetric");
	become(r, "Resize", 13);
	OM_CONVERT_INPUTS(r, x, NULL, scale);
	return OM_OK;
}

/* ---- Names. ---- */

static om_status
scatter(om_opset_conversion *r)
{
	become(r, "ScatterElements", 11);
	return OM_OK;
}

/* ---- The rules, sorted by operator, then by version. ---- */

static const om_conversion_rule rules[] = {
	{"Add", 7, broadcast},
	{"And", 7, broadcast},
	{"Attention", 24, NULL},
	{"BatchNormalization", 7, no_test},
	{"BatchNormalization", 9, by_element},
	{"BatchNormalization", 14, batch_training},
	{"Cast", 6, cast_type},
	{"Clip", 11, bounds},
	{"Concat", 4, concat_axis},
	{"Constant", 11, NULL},
	{"Conv", 11, NULL},
	{"ConvTranspose", 11, NULL},
	{"DFT", 20, dft_axis},
	{"DepthToSpace", 11, NULL},
	{"Div", 7, broadcast},
	{"Dropout", 12, dropout},
	{"Equal", 7, broadcast},
	{"Erf", 13, erf_of_integers},
	{"GRU", 7, no_sequence},
	{"GatherND", 12, NULL},
	{"Gemm", 7, no_broadcast},
	{"Gemm", 11, NULL},
	{"GlobalLpPool", 2, whole_p},
	{"Greater", 7, broadcast},
	{"GridSample", 20, grid_mode},
	{"GroupNormalization", 21, group_numbers},
	{"Hardmax", 13, lines},
	{"LSTM", 7, no_sequence},
	{"LayerNormalization", 17, NULL},  /* in use as an extension before */
	{"Less", 7, broadcast},
	{"LogSoftmax", 13, lines},
	{"LpPool", 2, whole_p},
	{"MatMul", 9, NULL},
	{"MatMul", 13, NULL},
	{"MaxPool", 8, NULL},
	{"MeanVarianceNormalization", 9, moment_axes},
	{"Mul", 7, broadcast},
	{"OptionalHasElement", 18, NULL},
	{"Or", 7, broadcast},
	{"PRelu", 7, slope},
	{"Pad", 2, paddings},
	{"Pad", 11, pads},
	{"Pad", 18, NULL},
	{"Pow", 7, broadcast},
	{"RNN", 7, no_sequence},
	{"ReduceL1", 18, axes},
	{"ReduceL2", 18, axes},
	{"ReduceLogSum", 18, axes},
	{"ReduceLogSumExp", 18, axes},
	{"ReduceMax", 18, axes},
	{"ReduceMean", 18, axes},
	{"ReduceMin", 18, axes},
	{"ReduceProd", 18, axes},
	{"ReduceSum", 13, axes},
	{"ReduceSumSquare", 18, axes},
	{"Reshape", 5, shape},
	{"Reshape", 14, NULL},
	{"Resize", 11, resize},
	{"Resize", 18, NULL},
	{"RoiAlign", 16, half_pixels},
	{"Scan", 9, om_conversion_scan},
	{"Scatter", 11, scatter},
	{"ScatterElements", 16, NULL},
	{"ScatterND", 16, NULL},
	{"Selu", 6, selu},
	{"Shape", 15, NULL},
	{"Slice", 10, slice},
	{"Softmax", 13, lines},
	{"Split", 2, NULL},
	{"Split", 13, split},
	{"Split", 18, split_count},
	{"Squeeze", 13, axes},
	{"Sub", 7, broadcast},
	{"Tile", 6, repeats},
	{"TopK", 10, top},
	{"Unsqueeze", 13, axes},
	{"Upsample", 7, image_scales},
	{"Upsample", 9, scales},
	{"Upsample", 10, resize},
	{"Xor", 7, broadcast},
	{0}
};

const om_conversion_rule *
om_conversion_rule_next(const char *type, int version, int target)
{
	for (const om_conversion_rule *rule = rules; rule->type; rule++)
		if (strcmp(rule->type, type) == 0 && rule->since > version && rule->since <= target)
			return rule;
	return NULL;
}
