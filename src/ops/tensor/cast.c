/* SPDX-License-Identifier: Apache-2.0 */
/* Cast, CastLike and BitCast. */
#include <config.h>

#include "base/convert_elements.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "ops/slices.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"

/* ---- Cast and CastLike. ---- */

#define CASTABLE  (OF_NUMBERS | OF_PACKED | OF_FLOAT8S | OF(BOOL) | OF(FLOAT8E8M0) | OF(STRING))

static om_status
type_infer(om_op_context *c)
{
	const int64_t to = om_attr_int(c->op, "to");

	if (to <= OM_UNDEFINED || to >= OM_NDTYPE)
		return om_op_fail(c->session, OM_INVALID, c->op, "attribute to is %lld, not an element type",
			(long long)to);
	c->out[0].type = (om_dtype)to;
	c->out[0].shape = c->in[0].shape;
	return OM_OK;
}

static om_status
cast_infer(om_op_context *c)
{
	OM_TRY(type_infer(c));
	return om_must_be_of(c, c->out[0].type, CASTABLE | OF_FLOAT6S);
}

/* Before version 6 the attribute holds the name of the type in the schema. */
static om_status
named_cast_infer(om_op_context *c)
{
	static const struct { const char *name; om_dtype type; } names[] = {
		{"FLOAT", OM_FLOAT32}, {"DOUBLE", OM_FLOAT64}, {"FLOAT16", OM_FLOAT16}, {"BOOL", OM_BOOL},
		{"INT8", OM_INT8}, {"INT16", OM_INT16}, {"INT32", OM_INT32}, {"INT64", OM_INT64},
		{"STRING", OM_STRING}, {"UINT8", OM_UINT8}, {"UINT16", OM_UINT16}, {"UINT32", OM_UINT32}, {"UINT64", OM_UINT64},
	};
	const om_string to = om_attr_string(c->op, "to");

	c->out[0].shape = c->in[0].shape;
	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
		if (om_attr_is(c->op, "to", names[k].name)) {
			c->out[0].type = names[k].type;
			return OM_OK;
		}
	return om_op_fail(c->session, OM_INVALID, c->op, "attribute to is %.*s, not an element type",
		(int)(to.size < 64 ? to.size : 64), to.data);
}

static om_status
cast_like_infer(om_op_context *c)
{
	c->out[0].type = c->in[1].type;
	c->out[0].shape = c->in[0].shape;
	return OM_OK;
}

static bool
is_index_type(om_dtype t)
{
	return t == OM_INT64 || t == OM_INT32;
}

/* Conversions between integers of 32 and 64 bits preserve symbolic dims, and numbers that both types have.  Those to bool make 1 of every
 * other number, so that they preserve none. */
static void
cast_elems(const om_op_context *c, om_symbolic_elem *e)
{
	const om_symbolic_elem *from;
	size_t n;

	if (!is_index_type(c->in[0].type) || !is_index_type(c->out[0].type) || !om_in_symbolic_elems(c, 0, &from, &n))
		return;
	for (size_t k = 0; k < n; k++)
		if (!from[k].known || c->out[0].type == OM_INT64 || (from[k].value >= INT32_MIN && from[k].value <= INT32_MAX))
			e[k] = from[k];
}

static bool
cast_view(const om_op_context *c, uint32_t out, om_view_of *v)
{
	(void)out;
	*v = (om_view_of){0, 0};
	return c->in[0].type == c->out[0].type;
}

/* The second input of CastLike is never read; only its width matters. */
static bool
cast_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	(void)out;
	return in == 0 && om_dtype_bits(c->in[0].type) == om_dtype_bits(c->out[0].type);
}

static om_status
cast_to_text(om_op_context *c)
{
	const om_tensor *x = &c->in[0];
	om_string *to = c->out[0].data;
	char text[64];

	if (!om_can_convert(OM_FLOAT32, x->type))
		return om_no_kernel(c, x->type);
	for (int64_t k = 0; k < om_shape_count(&x->shape); k++) {
		const int n = om_number_text(x->type, x->data, k, text, sizeof text);
		to[k] = (om_string){om_strndup(c->keep, text, (size_t)n), (size_t)n};
	}
	return OM_OK;
}

struct cast {
	int64_t saturate;
	int64_t n;                /* elements */
	uint64_t bytes;           /* of the output */
};

static const om_attr_field cast_fields[] = {OM_FIELD(struct cast, INT, saturate), {0}};

static om_status
cast_prepare(om_op_context *c, void **state)
{
	const om_tensor *x = &c->in[0], *y = &c->out[0];
	struct cast *s = *state;

	s->n = om_shape_count(&y->shape);
	om_dtype_bytes(y->type, s->n, &s->bytes);
	if (x->type == y->type || y->type == OM_STRING)
		return OM_OK;
	if (!om_can_convert(y->type, x->type))
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "no kernel from %s to %s",
			om_dtype_text(x->type), om_dtype_text(y->type));
	if (y->type == OM_FLOAT8E8M0 && !om_attr_is(c->op, "round_mode", "up"))
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "no kernel for this round_mode");
	return OM_OK;
}

static om_status
cast_cpu(om_op_context *c)
{
	const struct cast *s = c->state;
	const om_tensor *x = &c->in[0];
	om_tensor *y = &c->out[0];

	if (x->type == y->type) {
		memmove(y->data, x->data, s->bytes);
		return OM_OK;
	}
	if (y->type == OM_STRING)
		return cast_to_text(c);
	om_convert(y->type, y->data, x->type, x->data, s->n, s->saturate != 0);
	return OM_OK;
}

/* ---- BitCast. ---- */

static om_status
bits_infer(om_op_context *c)
{
	const om_dtype from = c->in[0].type;

	OM_TRY(type_infer(c));
	const om_dtype to = c->out[0].type;
	if (from != OM_UNDEFINED && (from == OM_STRING || to == OM_STRING || om_dtype_bits(from) != om_dtype_bits(to)))
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"cannot bitcast %s to %s: the element sizes differ", om_dtype_text(from),
			om_dtype_text(to));
	return OM_OK;
}

static om_status
bits_cpu(om_op_context *c)
{
	uint64_t bytes = 0;

	om_tensor_bytes(c->out[0].type, &c->out[0].shape, &bytes);
	memmove(c->out[0].data, c->in[0].data, bytes);
	return OM_OK;
}

static bool
bits_view(const om_op_context *c, uint32_t out, om_view_of *v)
{
	(void)c;
	*v = (om_view_of){0, 0};
	return out == 0;
}

static const om_attr_spec cast_attrs[] = {
	{"to", OM_ATTR_INT, .required = true},
	{"saturate", OM_ATTR_INT, .i = 1},
	{"round_mode", OM_ATTR_STRING, .s = "up"},
	{0}
};

static const om_attr_spec named_cast_attrs[] = {
	{"to", OM_ATTR_STRING, .required = true},
	{0}
};

static const om_attr_spec cast_like_attrs[] = {
	{"saturate", OM_ATTR_INT, .i = 1},
	{"round_mode", OM_ATTR_STRING, .s = "up"},
	{0}
};

static const om_attr_spec bits_attrs[] = {{"to", OM_ATTR_INT, .required = true}, {0}};

const om_opdef om_ops_cast[] = {
	{
		.name = "BitCast", .brief = "bits of the input as another element type",
		.since = 26, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .attrs = bits_attrs,
		.infer = bits_infer, .slice = om_slice_first, .view = bits_view, .inplace = cast_reuse, .cpu = bits_cpu,
		.input_types = {OF_NUMBERS | OF_PACKED | OF_FLOAT8S | OF_COMPLEX | OF(BOOL) | OF(FLOAT8E8M0)},
	},
	{
		.name = "Cast", .brief = "conversion to another element type",
		.since = 1, .until = 5, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1,
		.flags = OM_POINTWISE, .attrs = named_cast_attrs, .infer = named_cast_infer,
		.view = cast_view, .inplace = cast_reuse, .cpu = cast_cpu,
		.input_types = {CASTABLE | OF_FLOAT6S},
	},
	{
		.name = "Cast", .brief = "conversion to another element type",
		.since = 6, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1,
		.flags = OM_POINTWISE, .attrs = cast_attrs, .infer = cast_infer, .propagate_data = cast_elems,
		.view = cast_view, .inplace = cast_reuse, .cpu = cast_cpu,
		.input_types = {CASTABLE | OF_FLOAT6S},
	},
	{
		.name = "CastLike", .brief = "conversion to the element type of the second input",
		.since = 15, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1,
		.flags = OM_POINTWISE, .attrs = cast_like_attrs, .infer = cast_like_infer, .slice = om_slice_first,
		.view = cast_view, .inplace = cast_reuse, .cpu = cast_cpu,
		.input_types = {CASTABLE, CASTABLE},
	},
	{0}
};

#define CAST(label)                                                            \
	{.name = label, .fields = cast_fields, .state_bytes = sizeof(struct cast), \
	 .prepare = cast_prepare, .run = cast_cpu}

const om_kernel om_kernels_cast[] = {CAST("Cast"), CAST("CastLike"), {0}};
