/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of tensors and types from and to messages. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "onnx/model.h"
#include "base/arena_internal.h"
#include "base/memory_limit.h"
#include "base/shape.h"
#include "base/strided_copy.h"

/* The typed field that holds the elements of a type when raw_data does not. */
enum field { FIELD_NONE, FIELD_FLOAT, FIELD_INT32, FIELD_INT64, FIELD_DOUBLE, FIELD_UINT64, FIELD_STRING };

static enum field
field_of(om_dtype t)
{
	switch (t) {
	case OM_FLOAT32: case OM_COMPLEX64: return FIELD_FLOAT;
	case OM_FLOAT64: case OM_COMPLEX128: return FIELD_DOUBLE;
	case OM_INT64: return FIELD_INT64;
	case OM_UINT32: case OM_UINT64: return FIELD_UINT64;
	case OM_STRING: return FIELD_STRING;
	case OM_UNDEFINED: return FIELD_NONE;
	default: return FIELD_INT32;
	}
}

/* State of reading one tensor message. */
struct look {
	om_session *s;
	om_model *m;
	om_arena *mem;
	const Onnx__TensorProto *t;
	const char *name;
	om_tensor *out;
	uint64_t bytes;          /* size of the elements */
};

static om_status
short_of(const struct look *l, uint64_t required, uint64_t got)
{
	char shape[256];

	return om_fail(l->s, OM_INVALID, "tensor %s: %s%s requires %" PRIu64 " bytes, but its data has %" PRIu64,
		l->name, om_dtype_text(l->out->type), om_shape_text(&l->out->shape, shape, sizeof shape),
		required, got);
}

/* ---- 6-bit floating point. ---- */

static bool
is_six(om_dtype t)
{
	return t == OM_FLOAT6E2M3 || t == OM_FLOAT6E3M2;
}

/* In raw data, four elements are packed in three bytes, starting at the lowest bits; in memory
 * each takes one byte. */
static uint64_t
raw_bytes(om_dtype t, uint64_t bytes)
{
	return is_six(t) ? bytes - bytes / 4 : bytes;
}

static void
unpack_six(const uint8_t *from, uint64_t n, uint8_t *to)
{
	for (uint64_t k = 0; k < n; k++) {
		const uint64_t at = k / 4 * 3 + k % 4 * 6 / 8;
		const unsigned shift = (unsigned)(k % 4 * 6 % 8);
		const unsigned above = shift > 2 ? from[at + 1] : 0;   /* otherwise there may be no next byte */
		to[k] = (uint8_t)((from[at] >> shift | above << (8 - shift)) & 63);
	}
}

static void
pack_six(om_arena *mem, ProtobufCBinaryData *raw)
{
	const uint8_t *from = raw->data;
	const uint64_t n = raw->len, bytes = n - n / 4;
	uint8_t *to = OM_NEWN(mem, uint8_t, bytes + 1);

	for (uint64_t k = 0; k < n; k++) {
		const uint64_t at = k / 4 * 3 + k % 4 * 6 / 8;
		const unsigned shift = (unsigned)(k % 4 * 6 % 8), bits = from[k] & 63U;
		to[at] = (uint8_t)(to[at] | bits << shift);
		to[at + 1] = (uint8_t)(to[at + 1] | bits << shift >> 8);
	}
	*raw = (ProtobufCBinaryData){bytes, to};
}

/* Reference the bytes of a buffer in place if their alignment permits, else copy them. */
static void
refer(struct look *l, const void *p)
{
	if (l->bytes == 0) {
		l->out->data = om_alloc(l->mem, 1);
		return;
	}
	l->out->data = (void *)p;
	if (!om_tensor_may_be_unaligned(l->out->type, l->bytes))
		om_tensor_align(l->mem, l->out);
}

static void
take_raw(struct look *l, const void *p)
{
	if (!is_six(l->out->type)) {
		refer(l, p);
		return;
	}
	l->out->data = om_alloc(l->mem, l->bytes ? l->bytes : 1);
	unpack_six(p, l->bytes, l->out->data);
}

static om_status
read_number(const struct look *l, const char *key, const char *text, uint64_t *v)
{
	char *end;

	errno = 0;
	*v = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno)
		return om_fail(l->s, OM_INVALID, "tensor %s: the %s \"%s\" of its external data is not an integer",
			l->name, key, text);
	return OM_OK;
}

static om_status
read_external(struct look *l)
{
	const char *location = NULL;
	const uint64_t bytes = raw_bytes(l->out->type, l->bytes);
	uint64_t offset = 0, length = bytes;
	const struct mapped *f;

	for (size_t k = 0; k < l->t->n_external_data; k++) {
		const Onnx__StringStringEntryProto *e = l->t->external_data[k];
		const char *key = om_text(e->key), *value = om_text(e->value);
		if (strcmp(key, "location") == 0)
			location = value;
		else if (strcmp(key, "offset") == 0)
			OM_TRY(read_number(l, key, value, &offset));
		else if (strcmp(key, "length") == 0)
			OM_TRY(read_number(l, key, value, &length));
	}
	if (!location)
		return om_fail(l->s, OM_INVALID, "tensor %s: its external data has no location", l->name);
	if (!l->m)
		return om_fail(l->s, OM_INVALID, "tensor %s: external data is not allowed here", l->name);
	if (l->out->type == OM_STRING)
		return om_fail(l->s, OM_INVALID, "tensor %s: strings cannot be external data", l->name);
	if (length != bytes)
		return short_of(l, bytes, length);
	OM_TRY(om_model_map(l->s, l->m, location, &f));
	if (offset > f->size || length > f->size - offset)
		return om_fail(l->s, OM_INVALID,
			"tensor %s: offset %" PRIu64 " + %" PRIu64 " bytes exceeds %s, which has %zu",
			l->name, offset, length, f->path, f->size);
	take_raw(l, (const char *)f->data + offset);
	return OM_OK;
}

/* Elements stored one per entry in a list of a wider type. */
static om_status
narrow(struct look *l, const void *from, size_t n, size_t wide, size_t size)
{
	if (n != l->bytes / size)
		return short_of(l, l->bytes, (uint64_t)n * size);
	char *to = om_alloc(l->mem, l->bytes ? l->bytes : 1);
	for (size_t k = 0; k < n; k++)  /* little-endian: the low bytes */
		memcpy(to + k * size, (const char *)from + k * wide, size);
	l->out->data = to;
	return OM_OK;
}

/* Elements with the same width as the entries of the list. */
static om_status
same(struct look *l, const void *from, size_t n, size_t size)
{
	if (n != l->bytes / size)
		return short_of(l, l->bytes, (uint64_t)n * size);
	refer(l, from);
	return OM_OK;
}

static om_status
read_strings(struct look *l)
{
	const size_t n = l->t->n_string_data;
	om_string *s = OM_NEWN(l->mem, om_string, n + 1);

	if (n != l->bytes / sizeof *s)
		return om_fail(l->s, OM_INVALID, "tensor %s: requires %" PRIu64 " strings, but has %zu",
			l->name, l->bytes / sizeof *s, n);
	for (size_t k = 0; k < n; k++) {
		const ProtobufCBinaryData *from = &l->t->string_data[k];
		s[k] = (om_string){from->len ? (const char *)from->data : "", from->len};
	}
	l->out->data = s;
	return OM_OK;
}

/* Packed types are stored as whole bytes, one byte per entry; other types of up to 16 bits are
 * also stored one per entry. */
static om_status
read_typed(struct look *l)
{
	const Onnx__TensorProto *t = l->t;
	const unsigned bits = om_dtype_bits(l->out->type);
	const size_t size = bits < 8 ? 1 : bits / 8;

	switch (field_of(l->out->type)) {
	case FIELD_FLOAT: return same(l, t->float_data, t->n_float_data, sizeof(float));
	case FIELD_DOUBLE: return same(l, t->double_data, t->n_double_data, sizeof(double));
	case FIELD_INT64: return same(l, t->int64_data, t->n_int64_data, sizeof(int64_t));
	case FIELD_STRING: return read_strings(l);
	case FIELD_UINT64:
		if (size == sizeof(uint64_t))
			return same(l, t->uint64_data, t->n_uint64_data, size);
		return narrow(l, t->uint64_data, t->n_uint64_data, sizeof(uint64_t), size);
	case FIELD_INT32:
		if (size == sizeof(int32_t))
			return same(l, t->int32_data, t->n_int32_data, size);
		return narrow(l, t->int32_data, t->n_int32_data, sizeof(int32_t), size);
	default:
		return om_fail(l->s, OM_INVALID, "tensor %s: has no element type", l->name);
	}
}

static om_status
read_raw(struct look *l)
{
	if (l->out->type == OM_STRING)
		return om_fail(l->s, OM_INVALID, "tensor %s: strings cannot be raw data", l->name);
	const uint64_t bytes = raw_bytes(l->out->type, l->bytes);
	if (l->t->raw_data.len != bytes)
		return short_of(l, bytes, l->t->raw_data.len);
	take_raw(l, l->t->raw_data.data);
	return OM_OK;
}

static om_status
read_dims(om_session *s, const char *name, size_t n, const int64_t *dims, om_shape *shape)
{
	if (n > OM_MAX_RANK)
		return om_fail(s, OM_UNSUPPORTED,
			"tensor %s: has rank %zu, expected at most %d", name, n, OM_MAX_RANK);
	for (size_t k = 0; k < n; k++)
		if (dims[k] < 0)
			return om_fail(s, OM_INVALID, "tensor %s: dim %zu is %lld", name, k, (long long)dims[k]);
	*shape = om_shape_of((int)n, dims);
	return OM_OK;
}

static om_status
read_head(om_session *s, const Onnx__TensorProto *t, const char *name, om_tensor *out, uint64_t *bytes)
{
	if (t->data_type <= 0 || t->data_type >= OM_NDTYPE)
		return om_fail(s, t->data_type == 0 ? OM_INVALID : OM_UNSUPPORTED,
			"tensor %s: unknown element type %d", name, t->data_type);
	out->type = (om_dtype)t->data_type;
	OM_TRY(read_dims(s, name, t->n_dims, t->dims, &out->shape));
	if (!om_tensor_bytes(out->type, &out->shape, bytes))
		return om_fail(s, OM_INVALID, "tensor %s: the number of elements overflows", name);
	if (t->segment)
		return om_fail(s, OM_UNSUPPORTED, "tensor %s: segments are not supported", name);
	return OM_OK;
}

om_status
om_tensor_read(om_session *s, om_model *m, om_arena *mem, const Onnx__TensorProto *t, om_tensor *out)
{
	const char *name = t->name && *t->name ? t->name : "(unnamed)";
	struct look l = {.s = s, .m = m, .mem = mem, .t = t, .name = name, .out = out};

	*out = (om_tensor){0};
	OM_TRY(read_head(s, t, name, out, &l.bytes));
	if (t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
		return read_external(&l);
	return t->has_raw_data ? read_raw(&l) : read_typed(&l);
}

/* ---- Sparse tensors. ---- */

/* The linear index of element `k`; false if it is out of bounds. */
static bool
place_of(const om_tensor *indices, const om_shape *shape, size_t k, int64_t *at)
{
	const int64_t *v = indices->data;

	if (indices->shape.rank == 1) {
		*at = v[k];
		return *at >= 0 && *at < om_shape_count(shape);
	}
	*at = 0;
	for (int d = 0; d < shape->rank; d++) {
		const int64_t i = v[k * (size_t)shape->rank + (size_t)d];
		if (i < 0 || i >= shape->dim[d])
			return false;
		*at = *at * shape->dim[d] + i;
	}
	return true;
}

static om_status
check_sparse(om_session *s, const char *name, const om_tensor *v, const om_tensor *i, const om_shape *shape)
{
	if (v->shape.rank != 1 || om_dtype_bits(v->type) < 8 || v->type == OM_STRING)
		return om_fail(s, OM_INVALID, "sparse tensor %s: the values are not a tensor of rank 1", name);
	if (i->type != OM_INT64 || i->shape.rank < 1 || i->shape.rank > 2
	    || i->shape.dim[0] != v->shape.dim[0]
	    || (i->shape.rank == 2 && i->shape.dim[1] != shape->rank))
		return om_fail(s, OM_INVALID, "sparse tensor %s: the indices do not match the values", name);
	return OM_OK;
}

om_status
om_sparse_read(om_session *s, om_model *m, om_arena *mem, uint64_t *left, const Onnx__SparseTensorProto *t, om_tensor *out)
{
	const char *name = t->values ? om_text(t->values->name) : "";
	om_tensor values, indices;
	uint64_t bytes;

	if (!t->values || !t->indices)
		return om_fail(s, OM_INVALID, "sparse tensor %s: has no values or no indices", name);
	OM_TRY(om_tensor_read(s, m, mem, t->values, &values));
	OM_TRY(om_tensor_read(s, m, mem, t->indices, &indices));
	*out = (om_tensor){.type = values.type};
	OM_TRY(read_dims(s, name, t->n_dims, t->dims, &out->shape));
	OM_TRY(check_sparse(s, name, &values, &indices, &out->shape));
	if (!om_tensor_bytes(out->type, &out->shape, &bytes) || bytes > *left)
		return om_fail(s, OM_MEMORY, "sparse tensor %s: the sparse tensors up to this one take more than the limit of %"
			PRIu64 " bytes when they are dense", name, om_session_load_bytes(s));
	*left -= bytes;
	out->data = om_alloc(mem, bytes ? bytes : 1);
	const size_t size = om_dtype_bits(out->type) / 8;
	for (size_t k = 0; k < (size_t)values.shape.dim[0]; k++) {
		int64_t at;
		if (!place_of(&indices, &out->shape, k, &at))
			return om_fail(s, OM_INVALID, "sparse tensor %s: index %zu is out of range", name, k);
		memcpy((char *)out->data + (size_t)at * size, (const char *)values.data + k * size, size);
	}
	return OM_OK;
}

/* ---- Types. ---- */

static om_status
read_elem(om_session *s, const char *what, int32_t n, om_dtype *out)
{
	if (n < 0 || n >= OM_NDTYPE)
		return om_fail(s, OM_UNSUPPORTED, "%s: unknown element type %d", what, n);
	*out = (om_dtype)n;
	return OM_OK;
}

/* Some exporters write these texts for every unknown dim.  They are not symbols, because dims with
 * the same symbol are equal. */
static bool
is_symbol(const char *name)
{
	return *om_text(name) && strcmp(name, "?") != 0 && strcmp(name, "None") != 0 && strcmp(name, "-1") != 0;
}

static om_status
read_shape(om_session *s, om_arena *mem, const char *what, const Onnx__TensorShapeProto *t, om_shape *out)
{
	*out = om_shape_unknown();
	if (!t)
		return OM_OK;
	if (t->n_dim > OM_MAX_RANK)
		return om_fail(s, OM_UNSUPPORTED,
			"%s: has rank %zu, expected at most %d", what, t->n_dim, OM_MAX_RANK);
	out->rank = (int)t->n_dim;
	for (size_t k = 0; k < t->n_dim; k++) {
		const Onnx__TensorShapeProto__Dimension *d = t->dim[k];
		out->dim[k] = OM_DIM_UNKNOWN;
		out->sym[k] = NULL;
		if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && d->dim_value >= 0)
			out->dim[k] = d->dim_value;
		else if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && is_symbol(d->dim_param))
			out->sym[k] = om_strdup(mem, d->dim_param);
	}
	return OM_OK;
}

/* The element type of a sequence, an optional or a map; its shape is ignored. */
static om_status
read_inner(om_session *s, om_arena *mem, const char *what, const Onnx__TypeProto *t, const om_type **out)
{
	om_type *inner = OM_NEW(mem, om_type);
	om_shape shape;

	*out = inner;
	return om_type_read(s, mem, what, t, inner, &shape);
}

om_status
om_type_read(om_session *s, om_arena *mem, const char *what, const Onnx__TypeProto *t,
	om_type *type, om_shape *shape)
{
	*type = (om_type){.kind = OM_TENSOR};
	*shape = om_shape_unknown();
	switch (t ? t->value_case : ONNX__TYPE_PROTO__VALUE__NOT_SET) {
	case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
		OM_TRY(read_elem(s, what, t->tensor_type->elem_type, &type->elem));
		return read_shape(s, mem, what, t->tensor_type->shape, shape);
	case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
		type->kind = OM_SPARSE;
		OM_TRY(read_elem(s, what, t->sparse_tensor_type->elem_type, &type->elem));
		return read_shape(s, mem, what, t->sparse_tensor_type->shape, shape);
	case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
		type->kind = OM_SEQUENCE;
		return read_inner(s, mem, what, t->sequence_type->elem_type, &type->of);
	case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
		type->kind = OM_OPTIONAL;
		return read_inner(s, mem, what, t->optional_type->elem_type, &type->of);
	case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
		type->kind = OM_MAP;
		OM_TRY(read_elem(s, what, t->map_type->key_type, &type->elem));
		return read_inner(s, mem, what, t->map_type->value_type, &type->of);
	case ONNX__TYPE_PROTO__VALUE_OPAQUE_TYPE:
		type->kind = OM_OPAQUE;
		return OM_OK;
	default:
		return OM_OK;
	}
}

/* ---- To messages. ---- */

static om_status
write_strings(om_arena *mem, const om_tensor *t, Onnx__TensorProto *to)
{
	const om_string *s = t->data;
	const size_t n = (size_t)om_shape_count(&t->shape);

	to->string_data = OM_NEWN(mem, ProtobufCBinaryData, n + 1);
	to->n_string_data = n;
	for (size_t k = 0; k < n; k++) {
		const om_string *from = &s[t->splat ? 0 : k];
		to->string_data[k] = (ProtobufCBinaryData){from->size, (uint8_t *)from->data};
	}
	return OM_OK;
}

enum { SPLAT_MOST = 1 << 28 };   /* bytes that repeated elements may take in a file */

/* Expand a splat. */
static om_status
write_splat(om_session *s, om_arena *mem, const om_tensor *t, uint64_t bytes, Onnx__TensorProto *to)
{
	if (bytes > SPLAT_MOST)
		return om_fail(s, OM_MEMORY,
			"tensor %s: its repeated elements require %" PRIu64 " bytes when written",
			to->name, bytes);
	to->raw_data.data = om_alloc(mem, bytes ? bytes : 1);
	om_fill_type(to->raw_data.data, om_shape_count(&t->shape), t->type, t->data);
	return OM_OK;
}

om_status
om_tensor_write(om_session *s, om_arena *mem, const char *name, const om_tensor *t, Onnx__TensorProto **out)
{
	Onnx__TensorProto *to = OM_NEW(mem, Onnx__TensorProto);
	uint64_t bytes;

	onnx__tensor_proto__init(to);
	*out = to;
	to->name = om_strdup(mem, name);
	if (!t->data || !om_tensor_bytes(t->type, &t->shape, &bytes))
		return om_fail(s, OM_INVALID, "tensor %s: its elements are not known", name);
	to->has_data_type = true;
	to->data_type = t->type;
	to->n_dims = (size_t)t->shape.rank;
	to->dims = om_memdup(mem, t->shape.dim, to->n_dims * sizeof *to->dims);
	if (t->type == OM_STRING)
		return write_strings(mem, t, to);
	to->has_raw_data = true;
	to->raw_data = (ProtobufCBinaryData){bytes, t->data};
	if (t->splat)
		OM_TRY(write_splat(s, mem, t, bytes, to));
	if (is_six(t->type))
		pack_six(mem, &to->raw_data);
	return OM_OK;
}

void
om_tensor_own(om_arena *mem, om_tensor *t)
{
	uint64_t bytes = 0;

	om_tensor_bytes(t->type, &t->shape, &bytes);
	t->data = om_memdup(mem, t->data, bytes ? bytes : 1);
	if (t->type != OM_STRING)
		return;
	om_string *s = t->data;
	for (uint64_t k = 0; k < bytes / sizeof *s; k++)
		s[k].data = om_strndup(mem, s[k].data, s[k].size);
}

/* Write symbols as dim_param and numbers as dim_value; an unknown dim is left empty. */
static Onnx__TensorShapeProto *
write_shape(om_arena *mem, const om_shape *shape)
{
	if (shape->rank < 0)
		return NULL;
	Onnx__TensorShapeProto *to = OM_NEW(mem, Onnx__TensorShapeProto);
	onnx__tensor_shape_proto__init(to);
	to->n_dim = (size_t)shape->rank;
	to->dim = OM_NEWN(mem, Onnx__TensorShapeProto__Dimension *, to->n_dim + 1);
	for (int k = 0; k < shape->rank; k++) {
		Onnx__TensorShapeProto__Dimension *d = OM_NEW(mem, Onnx__TensorShapeProto__Dimension);
		onnx__tensor_shape_proto__dimension__init(d);
		if (shape->dim[k] >= 0) {
			d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
			d->dim_value = shape->dim[k];
		} else if (shape->sym[k]) {
			d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
			d->dim_param = om_strdup(mem, shape->sym[k]);
		}
		to->dim[k] = d;
	}
	return to;
}

static void
write_tensor_type(om_arena *mem, Onnx__TypeProto *to, om_dtype elem, const om_shape *shape)
{
	to->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
	to->tensor_type = OM_NEW(mem, Onnx__TypeProto__Tensor);
	onnx__type_proto__tensor__init(to->tensor_type);
	to->tensor_type->has_elem_type = elem != OM_UNDEFINED;
	to->tensor_type->elem_type = elem;
	to->tensor_type->shape = write_shape(mem, shape);
}

static void
write_sparse_type(om_arena *mem, Onnx__TypeProto *to, om_dtype elem, const om_shape *shape)
{
	to->value_case = ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE;
	to->sparse_tensor_type = OM_NEW(mem, Onnx__TypeProto__SparseTensor);
	onnx__type_proto__sparse_tensor__init(to->sparse_tensor_type);
	to->sparse_tensor_type->has_elem_type = elem != OM_UNDEFINED;
	to->sparse_tensor_type->elem_type = elem;
	to->sparse_tensor_type->shape = write_shape(mem, shape);
}

Onnx__TypeProto *
om_type_write(om_arena *mem, const om_type *type, const om_shape *shape)
{
	Onnx__TypeProto *to = OM_NEW(mem, Onnx__TypeProto);
	const om_shape open = om_shape_unknown();

	onnx__type_proto__init(to);
	switch (type->kind) {
	case OM_TENSOR:
		write_tensor_type(mem, to, type->elem, shape);
		break;
	case OM_SPARSE:
		write_sparse_type(mem, to, type->elem, shape);
		break;
	case OM_SEQUENCE:
		to->value_case = ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
		to->sequence_type = OM_NEW(mem, Onnx__TypeProto__Sequence);
		onnx__type_proto__sequence__init(to->sequence_type);
		to->sequence_type->elem_type = om_type_write(mem, type->of, &open);
		break;
	case OM_OPTIONAL:
		to->value_case = ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE;
		to->optional_type = OM_NEW(mem, Onnx__TypeProto__Optional);
		onnx__type_proto__optional__init(to->optional_type);
		to->optional_type->elem_type = om_type_write(mem, type->of, &open);
		break;
	case OM_MAP:
		to->value_case = ONNX__TYPE_PROTO__VALUE_MAP_TYPE;
		to->map_type = OM_NEW(mem, Onnx__TypeProto__Map);
		onnx__type_proto__map__init(to->map_type);
		to->map_type->has_key_type = true;
		to->map_type->key_type = type->elem;
		to->map_type->value_type = om_type_write(mem, type->of, &open);
		break;
	case OM_OPAQUE:
		to->value_case = ONNX__TYPE_PROTO__VALUE_OPAQUE_TYPE;
		to->opaque_type = OM_NEW(mem, Onnx__TypeProto__Opaque);
		onnx__type_proto__opaque__init(to->opaque_type);
		break;
	}
	return to;
}
