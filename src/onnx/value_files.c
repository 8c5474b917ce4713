/* SPDX-License-Identifier: Apache-2.0 */
/* Files of non-tensor values: sequences, optionals, maps. */
#include <config.h>

#include "base/guard.h"
#include "base/shape.h"
#include "ir/type.h"
#include "onnx/model.h"
#include "onnx/value_files.h"
#include "onnxmem/onnx.h"

/* State of reading or writing one value; `what` names it in messages. */
struct work {
	om_session *s;
	om_arena *mem;
	const char *what;
};

static om_status
differs(const struct work *w, const om_type *type)
{
	return om_fail(w->s, OM_INVALID, "%s: not a %s as expected", w->what, om_kind_text(type->kind));
}

/* ---- Reading. ---- */

/* The codes are the same in SequenceProto and OptionalProto. */
static int
kind_code(const om_type *of)
{
	static const int code[] = {[OM_TENSOR] = 1, [OM_SPARSE] = 2, [OM_SEQUENCE] = 3, [OM_MAP] = 4, [OM_OPTIONAL] = 5};
	return of && of->kind != OM_OPAQUE ? code[of->kind] : 0;
}

/* Does a message that says so hold elements of the kind that `type` does?  0: it says nothing. */
static bool
holds(const om_type *type, bool says, int32_t code)
{
	return type->of && (!says || code == 0 || code == kind_code(type->of));
}

static om_status read_sequence(struct work *w, const Onnx__SequenceProto *p, const om_type *type, om_tensor *out);
static om_status read_optional(struct work *w, const Onnx__OptionalProto *p, const om_type *type, om_tensor *out);

static om_status
read_tensor(struct work *w, const Onnx__TensorProto *p, const om_type *type, om_tensor *out)
{
	if (!p)
		return differs(w, type);
	OM_TRY(om_tensor_read(w->s, NULL, w->mem, p, out));
	om_tensor_own(w->mem, out);
	return OM_OK;
}

/* Read string or integer keys as a list. */
static void
read_keys(struct work *w, const Onnx__MapProto *p, om_tensor *key)
{
	const int64_t n = (int64_t)(p->n_keys ? p->n_keys : p->n_string_keys);

	*key = (om_tensor){.type = p->n_keys ? OM_INT64 : OM_STRING, .shape = om_shape_of(1, &n)};
	if (p->n_keys) {
		key->data = om_memdup(w->mem, p->keys, p->n_keys * sizeof *p->keys);
		return;
	}
	om_string *to = OM_NEWN(w->mem, om_string, p->n_string_keys + 1);
	for (size_t k = 0; k < p->n_string_keys; k++)
		to[k] = (om_string){om_strndup(w->mem, (const char *)p->string_keys[k].data, p->string_keys[k].len),
			p->string_keys[k].len};
	key->data = to;
}

/* Read values, each a tensor with one element, as a list. */
static om_status
read_values(struct work *w, const Onnx__SequenceProto *p, const om_type *type, om_tensor *value)
{
	const int64_t n = p ? (int64_t)p->n_tensor_values : 0;
	const om_dtype t = type->of ? om_type_elem(type->of) : OM_UNDEFINED;
	const size_t size = om_dtype_bits(t) / 8;
	om_tensor one;

	*value = (om_tensor){.type = t, .shape = om_shape_of(1, &n), .data = om_allocn(w->mem, size + 1, (size_t)n + 1)};
	for (int64_t k = 0; k < n; k++) {
		OM_TRY(read_tensor(w, p->tensor_values[k], type, &one));
		if (one.type != t || size == 0 || om_shape_count(&one.shape) != 1)
			return differs(w, type);
		memcpy((char *)value->data + (size_t)k * size, one.data, size);
	}
	return OM_OK;
}

static om_status
read_map(struct work *w, const Onnx__MapProto *p, const om_type *type, om_tensor *out)
{
	om_container *o = OM_NEW(w->mem, om_container);

	if (!p)
		return differs(w, type);
	read_keys(w, p, &o->key);
	if (om_shape_count(&o->key.shape) == 0)
		o->key.type = type->elem;
	OM_TRY(read_values(w, p->values, type, &o->value));
	o->n = (size_t)om_shape_count(&o->key.shape);
	out->data = o;
	return OM_OK;
}

static om_status
read_sequence(struct work *w, const Onnx__SequenceProto *p, const om_type *type, om_tensor *out)
{
	om_container *o = OM_NEW(w->mem, om_container);

	if (!p || !holds(type, p->has_elem_type, p->elem_type))
		return differs(w, type);
	const om_kind kind = type->of->kind;
	o->n = kind == OM_TENSOR ? p->n_tensor_values : kind == OM_SEQUENCE ? p->n_sequence_values
		: kind == OM_MAP ? p->n_map_values : kind == OM_OPTIONAL ? p->n_optional_values : 0;
	om_tensor *item = OM_NEWN(w->mem, om_tensor, o->n + 1);
	for (size_t k = 0; k < o->n; k++) {
		item[k] = (om_tensor){.type = om_type_elem(type->of), .shape = om_shape_unknown()};
		switch (kind) {
		case OM_TENSOR: OM_TRY(read_tensor(w, p->tensor_values[k], type->of, &item[k])); break;
		case OM_SEQUENCE: OM_TRY(read_sequence(w, p->sequence_values[k], type->of, &item[k])); break;
		case OM_MAP: OM_TRY(read_map(w, p->map_values[k], type->of, &item[k])); break;
		default: OM_TRY(read_optional(w, p->optional_values[k], type->of, &item[k]));
		}
	}
	o->item = item;
	out->data = o;
	return OM_OK;
}

static om_status
read_optional(struct work *w, const Onnx__OptionalProto *p, const om_type *type, om_tensor *out)
{
	om_container *o = OM_NEW(w->mem, om_container);
	om_tensor *item = OM_NEW(w->mem, om_tensor);

	if (!p || !holds(type, p->has_elem_type, p->elem_type))
		return differs(w, type);
	*item = (om_tensor){.type = om_type_elem(type->of), .shape = om_shape_unknown()};
	o->item = item;
	o->n = p->tensor_value || p->sequence_value || p->map_value || p->optional_value;
	out->data = o;
	if (o->n == 0)
		return OM_OK;
	switch (type->of->kind) {
	case OM_TENSOR: return read_tensor(w, p->tensor_value, type->of, item);
	case OM_SEQUENCE: return read_sequence(w, p->sequence_value, type->of, item);
	case OM_MAP: return read_map(w, p->map_value, type->of, item);
	case OM_OPTIONAL: return read_optional(w, p->optional_value, type->of, item);
	default: return differs(w, type);
	}
}

static const ProtobufCMessageDescriptor *
message_of(const om_type *type)
{
	switch (type->kind) {
	case OM_SEQUENCE: return &onnx__sequence_proto__descriptor;
	case OM_OPTIONAL: return &onnx__optional_proto__descriptor;
	case OM_MAP: return &onnx__map_proto__descriptor;
	default: return NULL;
	}
}

static om_status
read_object(struct work *w, const ProtobufCMessage *proto, const om_type *type, om_tensor *out)
{
	*out = (om_tensor){.type = om_type_elem(type), .shape = om_shape_unknown()};
	if (type->kind == OM_SEQUENCE)
		OM_TRY(read_sequence(w, (const Onnx__SequenceProto *)proto, type, out));
	else if (type->kind == OM_OPTIONAL)
		OM_TRY(read_optional(w, (const Onnx__OptionalProto *)proto, type, out));
	else
		OM_TRY(read_map(w, (const Onnx__MapProto *)proto, type, out));
	return om_container_fits(out, type) ? OM_OK : differs(w, type);
}

static om_status
value_load_pb_guarded(om_session *s, const char *path, om_arena *mem, const om_type *type, om_tensor *out)
{
	struct work w = {s, mem, path};
	ProtobufCMessage *proto;
	const struct whole *file;

	if (type->kind == OM_TENSOR)
		return om_tensor_load_pb(s, path, mem, out);
	*out = (om_tensor){0};
	if (!message_of(type))
		return om_fail(s, OM_UNSUPPORTED,
			"%s: a %s cannot be read from a file", path, om_kind_text(type->kind));
	om_model *m = om_model_new(path, NULL);
	om_status st = om_whole_open(s, m->mem, path, &file);
	if (st == OM_OK)
		st = om_model_unpack(s, m, message_of(type), file->data, file->size, &proto);
	if (st == OM_OK)
		st = read_object(&w, proto, type, out);
	else
		om_note(s, st, "reading %s", path);
	om_model_free(m);
	return st;
}

om_status
om_value_load_pb(om_session *s, const char *path, om_arena *mem, const om_type *type, om_tensor *out)
{
	OM_GUARDED(s, value_load_pb_guarded(s, path, mem, type, out));
}

/* ---- Writing. ---- */

static om_status write_sequence(struct work *w, const om_tensor *t, const om_type *type, Onnx__SequenceProto **out);
static om_status write_optional(struct work *w, const om_tensor *t, const om_type *type, Onnx__OptionalProto **out);

static om_status
write_map(struct work *w, const om_tensor *t, Onnx__MapProto **out)
{
	const om_container *o = t->data;
	Onnx__MapProto *to = *out = OM_NEW(w->mem, Onnx__MapProto);
	Onnx__SequenceProto *values = OM_NEW(w->mem, Onnx__SequenceProto);
	const size_t size = om_dtype_bits(o->value.type) / 8;

	onnx__map_proto__init(to);
	onnx__sequence_proto__init(values);
	to->values = values;
	to->has_key_type = true;
	to->key_type = o->key.type;
	if (o->key.type == OM_INT64) {
		to->n_keys = o->n;
		to->keys = o->key.data;
	} else {
		to->n_string_keys = o->n;
		to->string_keys = OM_NEWN(w->mem, ProtobufCBinaryData, o->n + 1);
		for (size_t k = 0; k < o->n; k++) {
			const om_string *key = (const om_string *)o->key.data + k;
			to->string_keys[k] = (ProtobufCBinaryData){key->size, (uint8_t *)key->data};
		}
	}
	values->has_elem_type = true;
	values->elem_type = kind_code(&(om_type){.kind = OM_TENSOR});
	values->n_tensor_values = o->n;
	values->tensor_values = OM_NEWN(w->mem, Onnx__TensorProto *, o->n + 1);
	for (size_t k = 0; k < o->n; k++) {
		const om_tensor one = {.type = o->value.type, .data = (char *)o->value.data + k * size};
		OM_TRY(om_tensor_write(w->s, w->mem, "", &one, &values->tensor_values[k]));
	}
	return OM_OK;
}

static om_status
write_sequence(struct work *w, const om_tensor *t, const om_type *type, Onnx__SequenceProto **out)
{
	const om_container *o = t->data;
	Onnx__SequenceProto *to = *out = OM_NEW(w->mem, Onnx__SequenceProto);

	onnx__sequence_proto__init(to);
	to->has_elem_type = true;
	to->elem_type = kind_code(type->of);
	to->tensor_values = OM_NEWN(w->mem, Onnx__TensorProto *, o->n + 1);
	to->sequence_values = OM_NEWN(w->mem, Onnx__SequenceProto *, o->n + 1);
	to->map_values = OM_NEWN(w->mem, Onnx__MapProto *, o->n + 1);
	to->optional_values = OM_NEWN(w->mem, Onnx__OptionalProto *, o->n + 1);
	for (size_t k = 0; k < o->n; k++)
		switch (type->of->kind) {
		case OM_TENSOR:
			OM_TRY(om_tensor_write(w->s, w->mem, "", &o->item[k], &to->tensor_values[to->n_tensor_values++]));
			break;
		case OM_SEQUENCE:
			OM_TRY(write_sequence(w, &o->item[k], type->of, &to->sequence_values[to->n_sequence_values++]));
			break;
		case OM_MAP:
			OM_TRY(write_map(w, &o->item[k], &to->map_values[to->n_map_values++]));
			break;
		default:
			OM_TRY(write_optional(w, &o->item[k], type->of, &to->optional_values[to->n_optional_values++]));
		}
	return OM_OK;
}

static om_status
write_optional(struct work *w, const om_tensor *t, const om_type *type, Onnx__OptionalProto **out)
{
	const om_container *o = t->data;
	Onnx__OptionalProto *to = *out = OM_NEW(w->mem, Onnx__OptionalProto);

	onnx__optional_proto__init(to);
	to->has_elem_type = true;
	to->elem_type = kind_code(type->of);
	if (o->n == 0)
		return OM_OK;
	switch (type->of->kind) {
	case OM_TENSOR: return om_tensor_write(w->s, w->mem, "", o->item, &to->tensor_value);
	case OM_SEQUENCE: return write_sequence(w, o->item, type->of, &to->sequence_value);
	case OM_MAP: return write_map(w, o->item, &to->map_value);
	default: return write_optional(w, o->item, type->of, &to->optional_value);
	}
}

static om_status
write_object(struct work *w, const om_tensor *t, const om_type *type, char *name, ProtobufCMessage **out)
{
	Onnx__SequenceProto *sequence;
	Onnx__OptionalProto *optional;
	Onnx__MapProto *map;

	if (type->kind == OM_SEQUENCE) {
		OM_TRY(write_sequence(w, t, type, &sequence));
		sequence->name = name;
		*out = &sequence->base;
	} else if (type->kind == OM_OPTIONAL) {
		OM_TRY(write_optional(w, t, type, &optional));
		optional->name = name;
		*out = &optional->base;
	} else {
		OM_TRY(write_map(w, t, &map));
		map->name = name;
		*out = &map->base;
	}
	return OM_OK;
}

static om_status
value_save_pb_guarded(om_session *s, const char *path, const char *name, const om_type *type, const om_tensor *t)
{
	ProtobufCMessage *message = NULL;

	if (type->kind == OM_TENSOR)
		return om_tensor_save_pb(s, path, name, t);
	if (!message_of(type) || !om_container_fits(t, type))
		return om_fail(s, OM_UNSUPPORTED, "%s: %s is a %s that cannot be written", path, name,
			om_kind_text(type->kind));
	struct work w = {s, om_arena_new(), path};
	om_status st = write_object(&w, t, type, om_strdup(w.mem, name), &message);
	if (st == OM_OK)
		st = om_message_save(s, path, message);
	om_arena_free(w.mem);
	return st;
}

om_status
om_value_save_pb(om_session *s, const char *path, const char *name, const om_type *type, const om_tensor *t)
{
	OM_GUARDED(s, value_save_pb_guarded(s, path, name, type, t));
}
