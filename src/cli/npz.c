/* SPDX-License-Identifier: Apache-2.0 */
/* .npz: a zip archive of .npy files, stored or deflated.
 *
 * The central directory at the end is authoritative; local headers are only skipped.  Its sizes are
 * untrusted: a deflated entry may not claim to expand beyond the maximum ratio of deflate. */
#include <config.h>

#include <zlib.h>

#include "cli/bytes.h"
#include "cli/npy.h"

enum {
	LOCAL = 0x04034b50, CENTRAL = 0x02014b50, END = 0x06054b50, END64 = 0x06064b50,
	LOCATOR64 = 0x07064b50,
	LOCAL_SIZE = 30, CENTRAL_SIZE = 46, END_SIZE = 22, END64_SIZE = 56, LOCATOR_SIZE = 20,
	MAX_COMMENT = 65535,
	STORED = 0, DEFLATED = 8,
	EXPANSION = 1032,         /* deflate's best ratio, rounded up */
};

struct zip {
	om_session *s;
	const char *where;
	const unsigned char *data;
	size_t size;
	om_arena *mem;
};

struct entry {
	const char *name;
	unsigned flags, method;
	uint32_t crc;
	uint64_t packed, size, at;
};

static om_status
bad(const struct zip *z, const char *what)
{
	return om_fail(z->s, OM_MALFORMED, "%s: not a .npz file: %s", z->where, what);
}

static om_status
bad_entry(const struct zip *z, const struct entry *e, const char *what)
{
	return om_fail(z->s, OM_MALFORMED, "%s: entry %s: %s", z->where, e->name, what);
}

/* Are there `n` bytes at offset `at`? */
static bool
holds(const struct zip *z, uint64_t at, uint64_t n)
{
	return at <= z->size && n <= z->size - at;
}

/* The offset of the central directory, and the number of its entries. */
static om_status
find_directory(const struct zip *z, uint64_t *at, uint64_t *n)
{
	size_t k = z->size < END_SIZE ? 0 : z->size - END_SIZE + 1;
	const size_t last = k > MAX_COMMENT ? k - MAX_COMMENT - 1 : 0;

	while (k > last && om_u32(z->data + k - 1) != END)
		k--;
	if (k == last)
		return bad(z, "no central directory");
	const unsigned char *end = z->data + --k;
	*n = om_u16(end + 10);
	*at = om_u32(end + 16);
	if (*n != UINT16_MAX && *at != UINT32_MAX)
		return OM_OK;
	if (k < LOCATOR_SIZE || om_u32(end - LOCATOR_SIZE) != LOCATOR64)
		return OM_OK;
	const uint64_t end64 = om_u64(end - LOCATOR_SIZE + 8);
	if (!holds(z, end64, END64_SIZE) || om_u32(z->data + end64) != END64)
		return bad(z, "damaged central directory");
	*n = om_u64(z->data + end64 + 32);
	*at = om_u64(z->data + end64 + 48);
	return OM_OK;
}

/* Sizes and offsets of 64 bits are in the extra field. */
static om_status
widen(const struct zip *z, struct entry *e, const unsigned char *extra, size_t size)
{
	uint64_t *field[] = {&e->size, &e->packed, &e->at};

	for (size_t at = 0; at + 4 <= size; at += 4 + (size_t)om_u16(extra + at + 2)) {
		const size_t n = om_u16(extra + at + 2);
		if (n > size - at - 4)
			break;
		if (om_u16(extra + at) != 1)
			continue;
		for (size_t f = 0, from = 0; f < 3; f++) {
			if (*field[f] != UINT32_MAX)
				continue;
			if (from + 8 > n)
				return bad_entry(z, e, "the size is missing");
			*field[f] = om_u64(extra + at + 4 + from);
			from += 8;
		}
	}
	return OM_OK;
}

static om_status
read_entry(const struct zip *z, uint64_t *at, struct entry *e)
{
	if (!holds(z, *at, CENTRAL_SIZE) || om_u32(z->data + *at) != CENTRAL)
		return bad(z, "damaged central directory");
	const unsigned char *p = z->data + *at;
	const size_t name = om_u16(p + 28), extra = om_u16(p + 30), comment = om_u16(p + 32);
	if (!holds(z, *at, CENTRAL_SIZE + name + extra + comment))
		return bad(z, "damaged central directory");
	*e = (struct entry){.name = om_strndup(z->mem, (const char *)p + CENTRAL_SIZE, name),
		.flags = om_u16(p + 8), .method = om_u16(p + 10), .crc = om_u32(p + 16),
		.packed = om_u32(p + 20), .size = om_u32(p + 24), .at = om_u32(p + 42)};
	*at += CENTRAL_SIZE + name + extra + comment;
	return widen(z, e, p + CENTRAL_SIZE + name, extra);
}

static om_status
inflate_entry(const struct zip *z, const struct entry *e, const unsigned char *from, unsigned char *to)
{
	z_stream f = {0};

	if (e->packed > UINT32_MAX || e->size > UINT32_MAX)
		return om_fail(z->s, OM_UNSUPPORTED, "%s: entry %s is compressed and larger than 4 GiB", z->where,
			e->name);
	f.next_in = (unsigned char *)from;
	f.avail_in = (uInt)e->packed;
	f.next_out = to;
	f.avail_out = (uInt)e->size;
	if (inflateInit2(&f, -MAX_WBITS) != Z_OK)
		return om_fail(z->s, OM_MEMORY, "%s: cannot allocate memory to inflate %s", z->where, e->name);
	const int rc = inflate(&f, Z_FINISH);
	const bool whole = rc == Z_STREAM_END && f.total_out == e->size;
	inflateEnd(&f);
	return whole ? OM_OK : bad_entry(z, e, "cannot be inflated");
}

static om_status
unpack(const struct zip *z, const struct entry *e, const unsigned char **out)
{
	if (!holds(z, e->at, LOCAL_SIZE) || om_u32(z->data + e->at) != LOCAL)
		return bad_entry(z, e, "not at the offset of the central directory");
	const unsigned char *p = z->data + e->at;
	const uint64_t head = LOCAL_SIZE + (uint64_t)om_u16(p + 26) + om_u16(p + 28);
	if (!holds(z, e->at, head) || !holds(z, e->at + head, e->packed))
		return bad_entry(z, e, "the file is truncated");
	if (e->flags & 1)
		return om_fail(z->s, OM_UNSUPPORTED, "%s: entry %s is encrypted", z->where, e->name);
	*out = p + head;
	if (e->method == STORED)
		return e->size == e->packed ? OM_OK : bad_entry(z, e, "sizes differ");
	if (e->method != DEFLATED)
		return om_fail(z->s, OM_UNSUPPORTED,
			"%s: entry %s has the unsupported compression method %u", z->where, e->name,
			e->method);
	if (e->size / EXPANSION > e->packed)
		return bad_entry(z, e, "the uncompressed size is implausible");
	unsigned char *to = om_allocn(z->mem, 1, e->size + 1);
	*out = to;
	return inflate_entry(z, e, p + head, to);
}

static om_status
check_crc(const struct zip *z, const struct entry *e, const unsigned char *data)
{
	uLong crc = crc32(0, NULL, 0);

	for (uint64_t at = 0; at < e->size; at += UINT32_MAX / 2) {
		const uint64_t rest = e->size - at;
		crc = crc32(crc, data + at, (uInt)(rest < UINT32_MAX / 2 ? rest : UINT32_MAX / 2));
	}
	return crc == e->crc ? OM_OK : bad_entry(z, e, "checksum mismatch");
}

/* A name that ends in a slash is a folder, not a tensor. */
static om_status
read_tensor(const struct zip *z, const struct entry *e, om_arena *mem, om_npz_entry *out)
{
	const size_t n = strlen(e->name);
	const bool npy = n > 4 && strcmp(e->name + n - 4, ".npy") == 0;
	const unsigned char *data = NULL;

	out->name = om_strndup(mem, e->name, npy ? n - 4 : n);
	OM_TRY(unpack(z, e, &data));
	OM_TRY(check_crc(z, e, data));
	return om_npy_read(z->s, data, e->size, om_printf(z->mem, "%s: entry %s", z->where, e->name), mem,
		&out->t);
}

static om_status
read_all(const struct zip *z, om_arena *mem, om_npz_entry **out, size_t *n)
{
	uint64_t at = 0, count = 0;
	size_t cap = 0;

	*out = NULL;
	*n = 0;
	OM_TRY(find_directory(z, &at, &count));
	for (uint64_t k = 0; k < count; k++) {
		struct entry e;
		om_npz_entry one;
		OM_TRY(read_entry(z, &at, &e));
		const size_t length = strlen(e.name);
		if (length && e.name[length - 1] == '/')
			continue;
		OM_TRY(read_tensor(z, &e, mem, &one));
		OM_PUSH(mem, *out, *n, cap, one);
	}
	return OM_OK;
}

om_status
om_npz_read(om_session *s, const void *data, size_t size, const char *where, om_arena *mem,
	om_npz_entry **out, size_t *n)
{
	struct zip z = {s, where, data, size, om_arena_new()};

	const om_status st = read_all(&z, mem, out, n);
	om_arena_free(z.mem);
	return st;
}

om_status
om_npz_load(om_session *s, const char *path, om_arena *mem, om_npz_entry **out, size_t *n)
{
	om_arena *scratch = om_arena_new();
	char *data;
	size_t size;

	om_status st = om_file_read(s, path, scratch, &data, &size);
	if (st == OM_OK)
		st = om_npz_read(s, data, size, path, mem, out, n);
	om_arena_free(scratch);
	return st;
}

/* ---- Writing. ---- */

struct archive {
	om_session *s;
	const char *path;
	om_arena *mem;
	struct om_bytes *piece, *record;   /* the file so far; its central directory */
	size_t npiece, cappiece, nrecord, caprecord;
	uint64_t at;
};

static void
add_piece(struct archive *a, struct om_bytes b)
{
	OM_PUSH(a->mem, a->piece, a->npiece, a->cappiece, b);
	a->at += b.size;
}

/* Deflate, if that is shorter. */
static struct om_bytes
pack(struct archive *a, struct om_bytes raw, bool wanted, unsigned *method)
{
	z_stream f = {0};

	*method = STORED;
	if (!wanted || deflateInit2(&f, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
			Z_DEFAULT_STRATEGY) != Z_OK)
		return raw;
	struct om_bytes out = {om_allocn(a->mem, 1, raw.size + 1), raw.size};
	f.next_in = raw.data;
	f.avail_in = (uInt)raw.size;
	f.next_out = out.data;
	f.avail_out = (uInt)out.size;
	const bool whole = deflate(&f, Z_FINISH) == Z_STREAM_END;
	out.size = f.total_out;
	deflateEnd(&f);
	if (!whole)
		return raw;
	*method = DEFLATED;
	return out;
}

/* The fields shared by the local header and the central directory, from the version on. */
static void
put_common(unsigned char *p, unsigned method, uint32_t crc, size_t packed, size_t size, size_t name)
{
	enum { NEEDS = 20, UTF8 = 1 << 11, DATE = 1 << 5 | 1 };  /* the earliest date in zip */

	om_put_u16(p, NEEDS);
	om_put_u16(p + 2, UTF8);
	om_put_u16(p + 4, (uint16_t)method);
	om_put_u16(p + 8, DATE);
	om_put_u32(p + 10, crc);
	om_put_u32(p + 14, (uint32_t)packed);
	om_put_u32(p + 18, (uint32_t)size);
	om_put_u16(p + 22, (uint16_t)name);
}

static om_status
add_entry(struct archive *a, const om_npz_entry *e, bool deflated)
{
	const char *name = om_printf(a->mem, "%s.npy", e->name);
	const size_t n = strlen(name);
	struct om_bytes raw;
	unsigned method;

	OM_TRY(om_npy_bytes(a->s, &e->t, a->path, a->mem, &raw));
	if (raw.size >= UINT32_MAX || a->at + raw.size >= UINT32_MAX || n > UINT16_MAX)
		return om_fail(a->s, OM_UNSUPPORTED, "%s: would be larger than 4 GiB; write .npy or .pb files", a->path);
	const struct om_bytes packed = pack(a, raw, deflated, &method);
	const uint32_t crc = (uint32_t)crc32(crc32(0, NULL, 0), raw.data, (uInt)raw.size);
	struct om_bytes local = {om_allocn(a->mem, 1, LOCAL_SIZE + n), LOCAL_SIZE + n};
	struct om_bytes record = {om_allocn(a->mem, 1, CENTRAL_SIZE + n), CENTRAL_SIZE + n};
	om_put_u32(local.data, LOCAL);
	put_common(local.data + 4, method, crc, packed.size, raw.size, n);
	memcpy(local.data + LOCAL_SIZE, name, n);
	om_put_u32(record.data, CENTRAL);
	om_put_u16(record.data + 4, 20);
	put_common(record.data + 6, method, crc, packed.size, raw.size, n);
	om_put_u32(record.data + 42, (uint32_t)a->at);
	memcpy(record.data + CENTRAL_SIZE, name, n);
	add_piece(a, local);
	add_piece(a, packed);
	OM_PUSH(a->mem, a->record, a->nrecord, a->caprecord, record);
	return OM_OK;
}

static om_status
save(struct archive *a, const om_npz_entry *e, size_t n, bool deflated)
{
	if (n >= UINT16_MAX)
		return om_fail(a->s, OM_UNSUPPORTED, "%s: %zu tensors are too many for a .npz file", a->path, n);
	for (size_t k = 0; k < n; k++)
		OM_TRY(add_entry(a, &e[k], deflated));
	const uint64_t from = a->at;
	for (size_t k = 0; k < a->nrecord; k++)
		add_piece(a, a->record[k]);
	unsigned char *end = om_allocn(a->mem, 1, END_SIZE);
	om_put_u32(end, END);
	om_put_u16(end + 8, (uint16_t)n);
	om_put_u16(end + 10, (uint16_t)n);
	om_put_u32(end + 12, (uint32_t)(a->at - from));
	om_put_u32(end + 16, (uint32_t)from);
	add_piece(a, (struct om_bytes){end, END_SIZE});
	return om_file_write(a->s, a->path, a->piece, a->npiece);
}

om_status
om_npz_save(om_session *s, const char *path, const om_npz_entry *e, size_t n, bool deflated)
{
	struct archive a = {.s = s, .path = path, .mem = om_arena_new()};

	const om_status st = save(&a, e, n, deflated);
	om_arena_free(a.mem);
	return st;
}
