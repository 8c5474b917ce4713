/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of packed messages before they are unpacked, and copies of them without large raw data.
 *
 * The reader of protobuf-c recurses to the nesting depth of the messages, truncates
 * strings at a NUL, and allocates some hundred bytes for a message of two bytes.  One
 * scan of the input detects all three; it skips the contents of fields that are not
 * messages.
 *
 * The reader also copies all bytes.  A second scan therefore copies the input except for large raw data, which
 * a reference of REFERENCE bytes replaces.  The lengths of the messages around it are rewritten with as many
 * digits as they had, so that everything else keeps its distance from the beginning, less the bytes left out.
 * Raw data that happens to be as long as a reference is replaced too: after that, raw data of this length is a
 * reference.
 */
#include <config.h>

#include <inttypes.h>

#include "base/guard.h"
#include "onnx/model.h"

/* Limit of the memory for structures: a constant, plus an amount per byte of input.  Models with
 * very many small nodes require about 20 per byte. */
enum { COST_FREE = 16 << 20, COST_PER_BYTE = 48 };

enum {
	RAW_DATA = 9,            /* field of a TensorProto */
	REFERENCE = 9            /* offset and length, 4 bytes each, and a zero that makes the length unusual */
};

struct walk {
	om_session *session;
	const char *name;
	const unsigned char *start, *end;
	uint64_t cost, limit;
	size_t large;            /* bytes of raw data that are left out; SIZE_MAX: none */
	size_t left_out;         /* bytes that the copy lacks so far */
	unsigned char *copy;     /* NULL: they are only counted */
	const unsigned char *next; /* of the input, to be copied */
};

struct span {
	const unsigned char *at, *end;
};

/* Do the first bytes look like text, as that of a web page? */
static bool
is_text(const struct walk *w)
{
	enum { SEEN = 64 };
	size_t n = 0;

	while (n < SEEN && w->start + n < w->end && (w->start[n] >= ' ' || w->start[n] == '\t' || w->start[n] == '\n'
	    || w->start[n] == '\r'))
		n++;
	return n > 0 && (n == SEEN || w->start + n == w->end);
}

static om_status
malformed(const struct walk *w, const unsigned char *at, const char *what)
{
	if (is_text(w))
		return om_fail(w->session, OM_MALFORMED, "%s is not an ONNX file: it looks like text", w->name);
	return om_fail(w->session, OM_MALFORMED, "%s is not an ONNX file, or is damaged: %s at byte %zu",
		w->name, what, (size_t)(at - w->start));
}

static bool
read_varint(struct span *s, uint64_t *v)
{
	*v = 0;
	for (unsigned shift = 0; shift < 64 && s->at < s->end; shift += 7) {
		const unsigned char byte = *s->at++;
		*v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

/* ---- The copy. ---- */

/* Copy the input up to `end`. */
static void
copy_until(struct walk *w, const unsigned char *end)
{
	memcpy(w->copy + (w->next - w->start) - w->left_out, w->next, (size_t)(end - w->next));
	w->next = end;
}

/* Rewrite a length that was copied when `left_out` bytes had been left out. */
static void
put_length(struct walk *w, struct span digits, size_t left_out, size_t n)
{
	unsigned char *to = w->copy + (digits.at - w->start) - left_out;

	for (; digits.at < digits.end; digits.at++, n >>= 7)
		*to++ = (unsigned char)((n & 0x7f) | (digits.at + 1 < digits.end ? 0x80 : 0));
}

static void
put_number(unsigned char *to, size_t n)
{
	for (int k = 0; k < 4; k++)
		to[k] = (unsigned char)(n >> 8 * k);
}

static size_t
get_number(const unsigned char *from)
{
	return (size_t)from[0] | (size_t)from[1] << 8 | (size_t)from[2] << 16 | (size_t)from[3] << 24;
}

static bool
is_referenced(const struct walk *w, const ProtobufCMessageDescriptor *d, const ProtobufCFieldDescriptor *f, size_t size)
{
	return d == &onnx__tensor_proto__descriptor && f && f->id == RAW_DATA && (size >= w->large || size == REFERENCE);
}

static void
replace(struct walk *w, struct span digits, struct span in)
{
	const size_t size = (size_t)(in.end - in.at);

	if (w->copy) {
		copy_until(w, in.at);
		put_length(w, digits, w->left_out, REFERENCE);
		unsigned char *to = w->copy + (in.at - w->start) - w->left_out;
		put_number(to, (size_t)(in.at - w->start));
		put_number(to + 4, size);
		to[8] = 0;
		w->next = in.end;
	}
	w->left_out += size - REFERENCE;
}

/* ---- The scan. ---- */

static om_status walk(struct walk *w, const ProtobufCMessageDescriptor *d, struct span s, unsigned depth);

static om_status
walk_message(struct walk *w, const ProtobufCMessageDescriptor *d, struct span digits, struct span in, unsigned depth)
{
	const size_t before = w->left_out;

	w->cost += d->sizeof_message + sizeof(void *);
	if (depth == OM_MAX_NESTING)
		return om_fail(w->session, OM_UNSUPPORTED, "%s: messages are nested deeper than %d at byte %zu", w->name,
			OM_MAX_NESTING, (size_t)(in.at - w->start));
	OM_TRY(walk(w, d, in, depth + 1));
	if (w->copy && w->left_out > before)
		put_length(w, digits, before, (size_t)(in.end - in.at) - (w->left_out - before));
	return OM_OK;
}

static bool
is_small_number(ProtobufCType t)
{
	return t == PROTOBUF_C_TYPE_FLOAT || t == PROTOBUF_C_TYPE_DOUBLE;
}

/* Scan the contents of a length-delimited field. */
static om_status
walk_contents(struct walk *w, const ProtobufCMessageDescriptor *d, const ProtobufCFieldDescriptor *f, struct span digits,
	struct span in, unsigned depth)
{
	const size_t size = (size_t)(in.end - in.at);

	if (f && f->type == PROTOBUF_C_TYPE_MESSAGE)
		return walk_message(w, f->descriptor, digits, in, depth);
	if (f && f->type == PROTOBUF_C_TYPE_STRING && memchr(in.at, '\0', size))
		return malformed(w, in.at, "a string with a NUL character");
	if (!f || f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_BYTES)
		w->cost += 32;  /* the rest is a copy of the bytes */
	else if (!is_small_number(f->type))
		w->cost += 8 * (uint64_t)size;
	if (is_referenced(w, d, f, size))
		replace(w, digits, in);
	return OM_OK;
}

static om_status
walk_field(struct walk *w, const ProtobufCMessageDescriptor *d, struct span *s, unsigned depth)
{
	const unsigned char *at = s->at;
	struct span digits;
	uint64_t tag, n = 0;

	if (!read_varint(s, &tag) || tag >> 3 == 0 || tag >> 3 > UINT64_C(0x1fffffff))
		return malformed(w, at, "invalid field");
	const ProtobufCFieldDescriptor *f =
		protobuf_c_message_descriptor_get_field(d, (unsigned)(tag >> 3));
	digits.at = s->at;
	switch (tag & 7) {
	case PROTOBUF_C_WIRE_TYPE_VARINT:
		w->cost += 8;
		return read_varint(s, &n) ? OM_OK : malformed(w, at, "unterminated integer");
	case PROTOBUF_C_WIRE_TYPE_64BIT:
		n = 8;
		break;
	case PROTOBUF_C_WIRE_TYPE_32BIT:
		n = 4;
		break;
	case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
		if (!read_varint(s, &n))
			return malformed(w, at, "unterminated length");
		break;
	default:
		return malformed(w, at, "unknown wire type");
	}
	if (n > (uint64_t)(s->end - s->at))
		return malformed(w, at, "a field exceeds its message");
	digits.end = s->at;
	const struct span in = {s->at, s->at + n};
	s->at += n;
	return (tag & 7) == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED
		? walk_contents(w, d, f, digits, in, depth) : OM_OK;
}

static om_status
walk(struct walk *w, const ProtobufCMessageDescriptor *d, struct span s, unsigned depth)
{
	while (s.at < s.end) {
		OM_TRY(walk_field(w, d, &s, depth));
		if (w->cost > w->limit)
			return om_fail(w->session, OM_MALFORMED,
				"%s is not an ONNX file, or is damaged: too many fields for its size",
				w->name);
	}
	return OM_OK;
}

static om_status
check(struct walk *w, const ProtobufCMessageDescriptor *d, size_t size)
{
	if (size > INT32_MAX)
		return om_fail(w->session, OM_UNSUPPORTED,
			"%s is larger than 2 GiB, the limit of protobuf: keep its weights as external data", w->name);
	return walk(w, d, (struct span){w->start, w->start + size}, 1);
}

om_status
om_wire_check(om_session *s, const char *name, const ProtobufCMessageDescriptor *d,
	const void *data, size_t size)
{
	struct walk w = {.session = s, .name = name, .start = data, .end = (const unsigned char *)data + size, .large = SIZE_MAX,
		.limit = COST_FREE + (uint64_t)size * COST_PER_BYTE};

	return check(&w, d, size);
}

om_status
om_wire_thin(om_session *s, const char *name, const ProtobufCMessageDescriptor *d, const void *data, size_t size,
	size_t large, om_bytes *thin)
{
	struct walk w = {.session = s, .name = name, .start = data, .end = (const unsigned char *)data + size, .next = data, .large = large > REFERENCE ? large : REFERENCE + 1,
		.limit = COST_FREE + (uint64_t)size * COST_PER_BYTE};

	*thin = (om_bytes){0};
	OM_TRY(check(&w, d, size));
	if (w.left_out == 0)
		return OM_OK;
	*thin = (om_bytes){om_memory_aligned(_Alignof(max_align_t), size - w.left_out), size - w.left_out};
	if (!thin->data)
		return om_fail(s, OM_MEMORY, "%s: cannot allocate its messages", name);
	w.copy = thin->data;
	w.left_out = 0;
	w.cost = 0;
	OM_TRY(check(&w, d, size));
	copy_until(&w, w.start + size);
	return OM_OK;
}

/* ---- References. ---- */

/* Everything with raw data is read from the thin copy. */
static void
resolve(Onnx__TensorProto *t, void *arg)
{
	const ProtobufCBinaryData *raw = &t->raw_data;

	if (t->has_raw_data && raw->len == REFERENCE)
		t->raw_data = (ProtobufCBinaryData){get_number(raw->data + 4), (uint8_t *)arg + get_number(raw->data)};
}

void
om_wire_resolve(ProtobufCMessage *m, void *data)
{
	om_tensors_visit(m, resolve, data);
}

static void
visit_field(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, om_tensor_visitor *visit, void *arg)
{
	const char *base = (const char *)m;

	/* A choice of fields is one of types or dims, without tensors. */
	if (f->type != PROTOBUF_C_TYPE_MESSAGE || f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		return;
	if (f->label != PROTOBUF_C_LABEL_REPEATED) {
		ProtobufCMessage *sub = *(ProtobufCMessage *const *)(base + f->offset);
		if (sub)
			om_tensors_visit(sub, visit, arg);
		return;
	}
	const size_t n = *(const size_t *)(base + f->quantifier_offset);
	ProtobufCMessage *const *list = *(ProtobufCMessage *const *const *)(base + f->offset);
	for (size_t k = 0; k < n; k++)
		om_tensors_visit(list[k], visit, arg);
}

void
om_tensors_visit(ProtobufCMessage *m, om_tensor_visitor *visit, void *arg)
{
	if (m->descriptor == &onnx__tensor_proto__descriptor)
		visit((Onnx__TensorProto *)m, arg);
	for (unsigned k = 0; k < m->descriptor->n_fields; k++)
		visit_field(m, &m->descriptor->fields[k], visit, arg);
}
