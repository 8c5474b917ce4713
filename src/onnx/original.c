/* SPDX-License-Identifier: Apache-2.0 */
/* The file that a planned model was made from; see original.h. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/arena_internal.h"
#include "base/mapping.h"
#include "base/sha256.h"
#include "onnx/annotate.h"
#include "onnx/original.h"

#define METHOD "delta1"          /* base/byte_delta.h, deflated */

/* ---- Text. ---- */

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static char *
base64_text(om_arena *mem, const unsigned char *p, size_t n)
{
	char *text = om_alloc(mem, (n + 2) / 3 * 4 + 1), *to = text;

	for (size_t k = 0; k < n; k += 3) {
		const unsigned long bits = (unsigned long)p[k] << 16 | (k + 1 < n ? p[k + 1] << 8 : 0) | (k + 2 < n ? p[k + 2] : 0);
		*to++ = DIGITS[bits >> 18];
		*to++ = DIGITS[bits >> 12 & 63];
		*to++ = k + 1 < n ? DIGITS[bits >> 6 & 63] : '=';
		*to++ = k + 2 < n ? DIGITS[bits & 63] : '=';
	}
	*to = '\0';
	return text;
}

/* The bytes that base64 text stands for; false: it is no such text. */
static bool
base64_bytes(om_arena *mem, const char *text, om_bytes *out)
{
	unsigned long bits = 0;
	unsigned nbits = 0;

	*out = (om_bytes){om_alloc(mem, strlen(text) / 4 * 3 + 3), 0};
	for (; *text && *text != '='; text++) {
		const char *digit = strchr(DIGITS, *text);
		if (!digit)
			return false;
		bits = (bits << 6 | (unsigned long)(digit - DIGITS)) & 0xffffff;
		nbits += 6;
		if (nbits >= 8) {
			nbits -= 8;
			out->data[out->size++] = (unsigned char)(bits >> nbits);
		}
	}
	return strspn(text, "=") == strlen(text);
}

static const char *
digest_of(om_arena *mem, om_bytes b)
{
	return om_text_digest((const char *)b.data, b.size, mem);
}

/* ---- The bytes that were written. ---- */

struct mapping {
	void *data;
	size_t size;
};

static void
unmap(void *arg)
{
	struct mapping *m = arg;

	if (m->data)
		om_unmap(m->data, m->size);
}

/* The file itself is mapped if it can be read and holds nothing else; otherwise messages are packed once
 * more, into memory. */
static om_status
written_bytes(om_session *s, const om_model *m, om_arena *mem, FILE *to, om_bytes *out)
{
	const size_t size = onnx__model_proto__get_packed_size(m->proto);
	struct mapping *map = OM_NEW(mem, struct mapping);

	*map = (struct mapping){NULL, size};
	om_arena_defer(mem, unmap, map);
	if (size && fflush(to) == 0 && ftello(to) == (off_t)size)
		map->data = om_map_file(fileno(to), size);
	*out = (om_bytes){map->data, size};
	if (map->data)
		return OM_OK;
	out->data = om_alloc_try(mem, size);
	if (!out->data)
		return om_fail(s, OM_MEMORY, "%s: not enough memory for %zu bytes", m->name, size);
	onnx__model_proto__pack(m->proto, out->data);
	return OM_OK;
}

/* ---- The entry. ---- */

static om_bytes
deflated(om_arena *mem, om_bytes b)
{
	uLongf n = compressBound(b.size);
	om_bytes out = {om_alloc(mem, n), 0};

	if (compress2(out.data, &n, b.data ? b.data : (const Bytef *)"", b.size, Z_BEST_COMPRESSION) == Z_OK)
		out.size = n;
	return out;
}

/* METHOD:BYTES:BYTES OF THE DELTA:DIGEST:DELTA */
static const char *
entry_text(om_arena *mem, om_bytes from, om_bytes original)
{
	const om_bytes delta = om_byte_delta(mem, from.data, from.size, original.data, original.size);
	const om_bytes packed = deflated(mem, delta);

	return packed.size == 0 ? NULL
		: om_printf(mem, METHOD ":%zu:%zu:%s:%s", original.size, delta.size, digest_of(mem, original),
			base64_text(mem, packed.data, packed.size));
}

static void
put_number(FILE *to, size_t x)
{
	for (; x >= 0x80; x >>= 7)
		putc((int)(x & 0x7f) | 0x80, to);
	putc((int)x, to);
}

static size_t
number_size(size_t x)
{
	size_t n = 1;

	for (; x >= 0x80; x >>= 7)
		n++;
	return n;
}

/* A field of a ModelProto, as protobuf writes it: of all its writers, those that keep the order of fields
 * and entries write the same bytes. */
static void
put_entry(om_arena *mem, FILE *to, const char *text)
{
	Onnx__StringStringEntryProto e = ONNX__STRING_STRING_ENTRY_PROTO__INIT;

	e.key = (char *)OM_KEY_ORIGINAL;
	e.value = (char *)text;
	const size_t n = onnx__string_string_entry_proto__get_packed_size(&e);
	uint8_t *packed = om_alloc(mem, n);
	onnx__string_string_entry_proto__pack(&e, packed);
	put_number(to, OM_METADATA_FIELD << 3 | 2);
	put_number(to, n);
	fwrite(packed, 1, n, to);
}

static om_status
append(om_session *s, const om_model *m, om_arena *mem, FILE *to)
{
	om_bytes original = {0}, from;

	if (m->kept && om_original_read(s, m, mem, &original) != OM_OK)
		return OM_OK;
	if (!m->kept)
		original = (om_bytes){m->whole->data, m->whole->size};
	OM_TRY(written_bytes(s, m, mem, to, &from));
	const char *text = entry_text(mem, from, original);
	if (!text)
		return om_fail(s, OM_MEMORY, "%s: not enough memory for what the planned file keeps of the original", m->name);
	if (strlen(text) + from.size > INT32_MAX - 128)
		om_warn(s, "%s: the original is not kept in the planned file, which would be larger than 2 GiB", m->name);
	else
		put_entry(mem, to, text);
	return OM_OK;
}

om_status
om_original_append(om_session *s, const om_model *m, FILE *to)
{
	if (!m->whole || !m->keeps_original || (m->was_planned && !m->kept))
		return OM_OK;
	om_arena *mem = om_arena_new();
	const om_status st = append(s, m, mem, to);
	om_arena_free(mem);
	return st;
}

/* ---- Restoring. ---- */

struct entry {
	size_t size, ndelta;
	const char *digest;      /* followed by ':' */
	const char *delta;
};

static bool
take_size(const char **at, size_t *out)
{
	char *end;
	const unsigned long long x = strtoull(*at, &end, 10);

	if (end == *at || *end != ':' || x > INT32_MAX)
		return false;
	*out = (size_t)x;
	*at = end + 1;
	return true;
}

static bool
parse(const char *text, struct entry *e)
{
	static const char method[] = METHOD ":", sum[] = "sha256:";

	if (strncmp(text, method, sizeof method - 1) != 0)
		return false;
	text += sizeof method - 1;
	if (!take_size(&text, &e->size) || !take_size(&text, &e->ndelta) || strncmp(text, sum, sizeof sum - 1) != 0)
		return false;
	e->digest = text;
	e->delta = strchr(text + sizeof sum - 1, ':');
	return e->delta++ != NULL;
}

/* The first place of `n` bytes, at least one; NULL: none. */
static const unsigned char *
find_bytes(const unsigned char *in, size_t size, const unsigned char *bytes, size_t n)
{
	const unsigned char *at = in, *const end = in + size;

	while ((size_t)(end - at) >= n && (at = memchr(at, bytes[0], (size_t)(end - at) - n + 1))) {
		if (memcmp(at, bytes, n) == 0)
			return at;
		at++;
	}
	return NULL;
}

/* The bytes of the file without the entry, which another writer may have moved from the end. */
static bool
bytes_without(const om_model *m, om_arena *mem, om_bytes *out)
{
	const size_t n = onnx__string_string_entry_proto__get_packed_size(m->kept);
	const size_t head = number_size(OM_METADATA_FIELD << 3 | 2) + number_size(n);
	unsigned char *const file = m->whole->data, *packed = om_alloc(mem, n);

	onnx__string_string_entry_proto__pack(m->kept, packed);
	const unsigned char *at = n ? find_bytes(file, m->whole->size, packed, n) : NULL;
	if (!at || (size_t)(at - file) < head)
		return false;
	const size_t before = (size_t)(at - file) - head, after = m->whole->size - before - head - n;
	*out = (om_bytes){file, before + after};
	if (after == 0)
		return true;
	out->data = om_alloc_try(mem, out->size);
	if (!out->data)
		return false;
	memcpy(out->data, file, before);
	memcpy(out->data + before, at + n, after);
	return true;
}

static bool
restore(const om_model *m, const struct entry *e, om_arena *mem, om_bytes *out)
{
	om_bytes from, packed, delta = {om_alloc_try(mem, e->ndelta + 1), e->ndelta};
	uLongf n = e->ndelta;

	*out = (om_bytes){om_alloc_try(mem, e->size + 1), e->size};
	if (!delta.data || !out->data || !bytes_without(m, mem, &from) || !base64_bytes(mem, e->delta, &packed))
		return false;
	if (uncompress(delta.data, &n, packed.data, packed.size) != Z_OK || n != e->ndelta)
		return false;
	if (!om_byte_delta_apply(from.data, from.size, delta.data, delta.size, out->data, out->size))
		return false;
	const char *digest = digest_of(mem, *out);
	return strncmp(digest, e->digest, strlen(digest)) == 0 && e->digest[strlen(digest)] == ':';
}

om_status
om_original_read(om_session *s, const om_model *m, om_arena *mem, om_bytes *out)
{
	struct entry e;

	if (!m->kept || !m->whole)
		return om_fail(s, OM_INVALID, "%s does not keep the file that it was made from", m->name);
	if (!parse(om_text(m->kept->value), &e))
		return om_fail(s, OM_INVALID, "%s: the entry %s is damaged, or of a later version", m->name, OM_KEY_ORIGINAL);
	if (!restore(m, &e, mem, out))
		return om_fail(s, OM_STALE, "%s was changed after it was planned: the file that it was made from cannot be restored",
			m->name);
	return OM_OK;
}
