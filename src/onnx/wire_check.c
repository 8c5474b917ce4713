/* Validation of packed messages before they are unpacked.
 *
 * The reader of protobuf-c recurses to the nesting depth of the messages, truncates
 * strings at a NUL, and allocates some hundred bytes for a message of two bytes.  One
 * scan of the input detects all three; it skips the contents of fields that are not
 * messages.
 */
#include <config.h>

#include <inttypes.h>

#include "onnx/model.h"

/* Limit of the memory for structures: a constant, plus an amount per byte of input.  Models with
 * very many small nodes require about 20 per byte. */
enum { COST_FREE = 16 << 20, COST_PER_BYTE = 48 };

struct walk {
	om_session *session;
	const char *name;
	const unsigned char *start;
	uint64_t cost, limit;
};

struct span {
	const unsigned char *at, *end;
};

static om_status
malformed(const struct walk *w, const unsigned char *at, const char *what)
{
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

static om_status walk(struct walk *w, const ProtobufCMessageDescriptor *d, struct span s, unsigned depth);

static bool
is_small_number(ProtobufCType t)
{
	return t == PROTOBUF_C_TYPE_FLOAT || t == PROTOBUF_C_TYPE_DOUBLE;
}

/* Scan the contents of a length-delimited field. */
static om_status
walk_contents(struct walk *w, const ProtobufCFieldDescriptor *f, struct span in, unsigned depth)
{
	const size_t size = (size_t)(in.end - in.at);

	if (f && f->type == PROTOBUF_C_TYPE_MESSAGE) {
		const ProtobufCMessageDescriptor *sub = f->descriptor;
		w->cost += sub->sizeof_message + sizeof(void *);
		if (depth == OM_MAX_NESTING)
			return om_fail(w->session, OM_UNSUPPORTED,
				"%s: messages are nested deeper than %d at byte %zu", w->name,
				OM_MAX_NESTING, (size_t)(in.at - w->start));
		return walk(w, sub, in, depth + 1);
	}
	if (f && f->type == PROTOBUF_C_TYPE_STRING && memchr(in.at, '\0', size))
		return malformed(w, in.at, "a string with a NUL character");
	if (!f || f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_BYTES)
		w->cost += 32;  /* the rest is a copy of the bytes */
	else if (!is_small_number(f->type))
		w->cost += 8 * (uint64_t)size;
	return OM_OK;
}

static om_status
walk_field(struct walk *w, const ProtobufCMessageDescriptor *d, struct span *s, unsigned depth)
{
	const unsigned char *at = s->at;
	uint64_t tag, n = 0;

	if (!read_varint(s, &tag) || tag >> 3 == 0 || tag >> 3 > UINT64_C(0x1fffffff))
		return malformed(w, at, "invalid field");
	const ProtobufCFieldDescriptor *f =
		protobuf_c_message_descriptor_get_field(d, (unsigned)(tag >> 3));
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
	const struct span in = {s->at, s->at + n};
	s->at += n;
	return (tag & 7) == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED
		? walk_contents(w, f, in, depth) : OM_OK;
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

om_status
om_wire_check(om_session *s, const char *name, const ProtobufCMessageDescriptor *d,
	const void *data, size_t size)
{
	struct walk w = {.session = s, .name = name, .start = data,
		.limit = COST_FREE + (uint64_t)size * COST_PER_BYTE};

	if (size > INT32_MAX)
		return om_fail(s, OM_UNSUPPORTED,
			"%s is larger than 2 GiB, the limit of protobuf: keep its weights as external data", name);
	return walk(&w, d, (struct span){data, (const unsigned char *)data + size}, 1);
}
