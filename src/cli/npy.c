/* SPDX-License-Identifier: Apache-2.0 */
/* .npy: a header that is a Python literal, then the elements.
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/output_file.h"
#include "cli/bytes.h"
#include "cli/npy.h"

static const char magic[] = "\x93NUMPY";

enum { MAGIC = 6, MAX_HEADER = 1 << 20, MAX_CODE = 32 };

/* The fields of a header. */
struct header {
	char order;               /* '<', '>' or '|' */
	char code[MAX_CODE];      /* "f4" */
	bool fortran;
	om_shape shape;
};

/* NumPy's codes of element kinds and sizes, and the corresponding types. */
static const struct {
	const char *code;
	om_dtype type;
} codes[] = {
	{"b1", OM_BOOL}, {"i1", OM_INT8}, {"u1", OM_UINT8}, {"i2", OM_INT16}, {"u2", OM_UINT16},
	{"i4", OM_INT32}, {"u4", OM_UINT32}, {"i8", OM_INT64}, {"u8", OM_UINT64},
	{"f2", OM_FLOAT16}, {"f4", OM_FLOAT32}, {"f8", OM_FLOAT64},
	{"c8", OM_COMPLEX64}, {"c16", OM_COMPLEX128},
};

enum { NCODE = sizeof codes / sizeof codes[0] };

struct reader {
	om_session *s;
	const char *where;
	const char *at, *end;     /* of the header */
};

static om_status
bad(const struct reader *r, const char *what)
{
	return om_fail(r->s, OM_MALFORMED, "%s: not a .npy file: %s", r->where, what);
}

/* ---- The literal. ---- */

static bool
eat(struct reader *r, char c)
{
	while (r->at < r->end && isspace((unsigned char)*r->at))
		r->at++;
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

static bool
eat_word(struct reader *r, const char *word)
{
	const size_t n = strlen(word);

	while (r->at < r->end && isspace((unsigned char)*r->at))
		r->at++;
	if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
		return false;
	r->at += n;
	return true;
}

static bool
read_text(struct reader *r, char out[MAX_CODE])
{
	const char quote = eat(r, '\'') ? '\'' : eat(r, '"') ? '"' : '\0';
	size_t n = 0;

	if (!quote)
		return false;
	for (; r->at < r->end && *r->at != quote; r->at++) {
		if (n + 1 == MAX_CODE)
			return false;
		out[n++] = *r->at;
	}
	out[n] = '\0';
	return eat(r, quote);
}

static bool
read_dim(struct reader *r, int64_t *out)
{
	int64_t n = 0;
	const char *start = r->at;

	for (; r->at < r->end && isdigit((unsigned char)*r->at); r->at++)
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *r->at - '0', &n))
			return false;
	*out = n;
	return r->at > start && (eat(r, 'L') || true);
}

static om_status
read_shape(struct reader *r, om_shape *shape)
{
	shape->rank = 0;
	if (!eat(r, '('))
		return bad(r, "its shape is not a tuple");
	while (!eat(r, ')')) {
		if (shape->rank == OM_MAX_RANK)
			return om_fail(r->s, OM_UNSUPPORTED, "%s: more than %d dims", r->where, OM_MAX_RANK);
		if (!read_dim(r, &shape->dim[shape->rank++]))
			return bad(r, "its shape is not a tuple of integers");
		if (!eat(r, ',') && (r->at == r->end || *r->at != ')'))
			return bad(r, "its shape is not terminated");
	}
	return OM_OK;
}

static om_status
read_code(struct reader *r, struct header *h)
{
	char text[MAX_CODE];

	if (eat(r, '['))
		return om_fail(r->s, OM_UNSUPPORTED, "%s: structured element types are not supported", r->where);
	if (!read_text(r, text) || !*text)
		return bad(r, "its descr is not a string");
	h->order = '|';
	const char *code = text;
	if (strchr("<>|=", *code))
		h->order = *code++;
	memcpy(h->code, code, strlen(code) + 1);
	return OM_OK;
}

static om_status
read_entry(struct reader *r, struct header *h, unsigned *seen)
{
	char key[MAX_CODE];

	if (!read_text(r, key) || !eat(r, ':'))
		return bad(r, "its header is not a dictionary");
	if (strcmp(key, "descr") == 0) {
		*seen |= 1;
		return read_code(r, h);
	}
	if (strcmp(key, "fortran_order") == 0) {
		*seen |= 2;
		h->fortran = eat_word(r, "True");
		return h->fortran || eat_word(r, "False") ? OM_OK : bad(r,
			"fortran_order is neither True nor False");
	}
	if (strcmp(key, "shape") == 0) {
		*seen |= 4;
		return read_shape(r, &h->shape);
	}
	return bad(r, "its header has an unknown key");
}

static om_status
read_dictionary(struct reader *r, struct header *h)
{
	unsigned seen = 0;

	if (!eat(r, '{'))
		return bad(r, "its header is not a dictionary");
	while (!eat(r, '}')) {
		OM_TRY(read_entry(r, h, &seen));
		if (!eat(r, ',') && (r->at == r->end || *r->at != '}'))
			return bad(r, "its header is not terminated");
	}
	return seen == 7 ? OM_OK : bad(r, "its header has no descr, fortran_order or shape");
}

/* ---- Elements. ---- */

static void
swap_bytes(unsigned char *p, uint64_t bytes, unsigned unit)
{
	for (uint64_t at = 0; at + unit <= bytes; at += unit)
		for (unsigned k = 0; k < unit / 2; k++) {
			const unsigned char c = p[at + k];
			p[at + k] = p[at + unit - 1 - k];
			p[at + unit - 1 - k] = c;
		}
}

/* From column-major to row-major order. */
static void
reorder(unsigned char *to, const unsigned char *from, const om_shape *s, size_t one)
{
	int64_t index[OM_MAX_RANK] = {0}, step[OM_MAX_RANK], at = 0, all = 1;

	for (int d = 0; d < s->rank; d++) {
		step[d] = all;
		all *= s->dim[d];
	}
	for (int64_t k = 0; k < all; k++) {
		memcpy(to + (size_t)k * one, from + (size_t)at * one, one);
		for (int d = s->rank - 1; d >= 0; d--) {
			at += step[d];
			if (++index[d] < s->dim[d])
				break;
			at -= step[d] * s->dim[d];
			index[d] = 0;
		}
	}
}

static size_t
put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | (c >> 18 & 7));
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* Strings of a fixed width, padded with NULs: "S" in bytes, "U" in code points. */
static void
make_strings(om_arena *mem, om_string *to, const unsigned char *from, uint64_t count, size_t width, bool wide)
{
	for (uint64_t k = 0; k < count; k++) {
		char *text = om_allocn(mem, 1, width + 1);
		size_t n = 0;
		for (size_t i = 0; i < width; i += wide ? 4 : 1) {
			uint32_t c;
			memcpy(&c, from + k * width + i, wide ? 4 : 1);
			n += wide ? put_utf8(text + n, c) : (text[n] = (char)from[k * width + i], 1);
		}
		while (n && !text[n - 1])
			n--;
		to[k] = (om_string){text, n};
	}
}

struct elements {
	om_dtype type;
	uint64_t one;             /* bytes of an element in the file */
	unsigned unit;            /* bytes that are swapped together */
	bool wide;                /* strings of code points */
};

/* Strings of a fixed width: "U7" has 7 code points, "S7" 7 bytes. */
static bool
find_text(const char *code, struct elements *e)
{
	char *end;

	if ((*code != 'U' && *code != 'S') || !isdigit((unsigned char)code[1]))
		return false;
	const unsigned long long width = strtoull(code + 1, &end, 10);
	e->type = OM_STRING;
	e->wide = *code == 'U';
	e->unit = e->wide ? 4 : 1;
	e->one = width * e->unit;
	return !*end && width < UINT32_MAX / 4;
}

static om_status
find_type(const struct reader *r, const struct header *h, struct elements *e)
{
	*e = (struct elements){OM_UNDEFINED};
	for (size_t k = 0; k < NCODE; k++)
		if (strcmp(codes[k].code, h->code) == 0) {
			e->type = codes[k].type;
			e->one = om_dtype_bits(e->type) / 8;
			e->unit = (unsigned)(e->one >> (h->code[0] == 'c'));
			return OM_OK;
		}
	if (find_text(h->code, e))
		return OM_OK;
	if (h->code[0] == 'O')
		return om_fail(r->s, OM_UNSUPPORTED, "%s: pickled Python objects are not supported", r->where);
	return om_fail(r->s, OM_UNSUPPORTED, "%s: unknown element type %s", r->where, h->code);
}

static om_status
read_elements(const struct reader *r, const struct header *h, const unsigned char *data, size_t size,
	om_arena *mem, om_tensor *out)
{
	struct elements e;
	uint64_t bytes, stored;

	OM_TRY(find_type(r, h, &e));
	if (!om_tensor_bytes(e.type, &h->shape, &bytes)
	    || __builtin_mul_overflow((uint64_t)om_shape_count(&h->shape), e.one, &stored) || stored > size)
		return bad(r, "truncated elements");
	/* Strings of width zero occupy no bytes in the file, so their number is limited here. */
	if (e.type == OM_STRING && bytes / 16 > size)
		return bad(r, "more strings than bytes");
	unsigned char *all = om_allocn(mem, 1, stored + 1);
	if (h->fortran && stored)
		reorder(all, data, &h->shape, e.one);
	else
		memcpy(all, data, stored);
	if (h->order == '>')
		swap_bytes(all, stored, e.unit);
	*out = (om_tensor){.type = e.type, .shape = h->shape, .data = all};
	if (e.type == OM_STRING) {
		out->data = om_allocn(mem, 1, bytes + 1);
		make_strings(mem, out->data, all, bytes / sizeof(om_string), e.one, e.wide);
	}
	return OM_OK;
}

om_status
om_npy_read(om_session *s, const void *data, size_t size, const char *where, om_arena *mem, om_tensor *out)
{
	const unsigned char *at = data;
	struct reader r = {.s = s, .where = where};
	struct header h = {0};

	if (size < MAGIC + 4 || memcmp(at, magic, MAGIC) != 0)
		return bad(&r, "wrong magic number");
	const unsigned version = at[MAGIC];
	const size_t from = version == 1 ? 10 : 12;
	if (version < 1 || version > 3)
		return om_fail(s, OM_UNSUPPORTED, "%s: unsupported .npy version %u", where, version);
	if (size < from)
		return bad(&r, "truncated header");
	const uint32_t length = version == 1 ? om_u16(at + 8) : om_u32(at + 8);
	if (length > MAX_HEADER || length > size - from)
		return bad(&r, "truncated header");
	r.at = (const char *)at + from;
	r.end = r.at + length;
	OM_TRY(read_dictionary(&r, &h));
	return read_elements(&r, &h, at + from + length, size - from - length, mem, out);
}

om_status
om_file_read(om_session *s, const char *path, om_arena *mem, char **data, size_t *size)
{
	FILE *in = fopen(path, "rb");
	size_t n = 0, cap = 0;
	char *buf = NULL;

	if (!in)
		return om_fail(s, OM_IO, "%s: %s", path, strerror(errno));
	for (size_t got = 1; got;) {
		if (n == cap) {
			cap = cap ? 2 * cap : 1 << 16;
			char *more = realloc(buf, cap);
			if (!more) {
				free(buf);
				fclose(in);
				return om_fail(s, OM_MEMORY, "%s: too large for the memory", path);
			}
			buf = more;
		}
		got = fread(buf + n, 1, cap - n, in);
		n += got;
	}
	const bool broken = ferror(in);
	fclose(in);
	*data = om_strndup(mem, buf, broken ? 0 : n);
	*size = n;
	free(buf);
	return broken ? om_fail(s, OM_IO, "%s: %s", path, strerror(errno)) : OM_OK;
}

om_status
om_npy_load(om_session *s, const char *path, om_arena *mem, om_tensor *out)
{
	om_arena *scratch = om_arena_new();
	char *data;
	size_t size;

	om_status st = om_file_read(s, path, scratch, &data, &size);
	if (st == OM_OK)
		st = om_npy_read(s, data, size, path, mem, out);
	om_arena_free(scratch);
	return st;
}

/* ---- Writing. ---- */

/* The next code point; invalid UTF-8 is taken byte by byte. */
static uint32_t
get_utf8(const unsigned char *p, size_t n, size_t *used)
{
	const unsigned follow = *p >= 0xf0 && *p < 0xf8 ? 3 : *p >= 0xe0 ? 2 : *p >= 0xc0 ? 1 : 0;
	uint32_t c = follow ? *p & (0x3fu >> follow) : *p;

	*used = 1;
	if (follow == 0 || *p >= 0xf8 || n <= follow)
		return *p;
	for (unsigned k = 1; k <= follow; k++) {
		if ((p[k] & 0xc0) != 0x80)
			return *p;
		c = c << 6 | (p[k] & 0x3f);
	}
	*used = follow + 1;
	return c;
}

static size_t
decode(const om_string *s, uint32_t *to)
{
	size_t n = 0, used;

	for (size_t at = 0; at < s->size; at += used) {
		const uint32_t c = get_utf8((const unsigned char *)s->data + at, s->size - at, &used);
		if (to)
			to[n] = c;
		n++;
	}
	return n;
}

/* Strings as an array of code points, each as wide as the longest. */
static const void *
lay_out_strings(om_arena *mem, const om_tensor *t, uint64_t *bytes, char code[MAX_CODE])
{
	const om_string *s = t->data;
	const size_t count = (size_t)om_shape_count(&t->shape);
	size_t width = 1;

	for (size_t k = 0; k < count; k++) {
		const size_t n = decode(&s[k], NULL);
		if (n > width)
			width = n;
	}
	uint32_t *all = OM_NEWN(mem, uint32_t, width * count + 1);
	for (size_t k = 0; k < count; k++)
		decode(&s[k], all + k * width);
	*bytes = (uint64_t)width * count * 4;
	snprintf(code, MAX_CODE, "<U%zu", width);
	return all;
}

/* Elements as stored in the file. */
static om_status
lay_out(om_session *s, om_arena *mem, const om_tensor *t, const char *where, const void **data,
	uint64_t *bytes, char code[MAX_CODE])
{
	if (t->type == OM_STRING) {
		*data = lay_out_strings(mem, t, bytes, code);
		return OM_OK;
	}
	for (size_t k = 0; k < NCODE; k++)
		if (codes[k].type == t->type) {
			snprintf(code, MAX_CODE, "%c%s", om_dtype_bits(t->type) == 8 ? '|' : '<', codes[k].code);
			om_tensor_bytes(t->type, &t->shape, bytes);
			*data = t->data;
			return OM_OK;
		}
	return om_fail(s, OM_UNSUPPORTED, "%s: NumPy has no type for %s; write a .pb file", where,
		om_dtype_text(t->type));
}

om_status
om_npy_bytes(om_session *s, const om_tensor *t, const char *where, om_arena *mem, struct om_bytes *out)
{
	enum { BLOCK = 64 };
	char code[MAX_CODE], dims[32 * OM_MAX_RANK] = "";
	const void *data = NULL;
	uint64_t bytes = 0;
	size_t n = 0;

	OM_TRY(lay_out(s, mem, t, where, &data, &bytes, code));
	for (int d = 0; d < t->shape.rank; d++)
		n += (size_t)snprintf(dims + n, sizeof dims - n, "%s%lld%s", d ? " " : "",
			(long long)t->shape.dim[d], d + 1 < t->shape.rank || d == 0 ? "," : "");
	const char *text = om_printf(mem, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", code, dims);
	const size_t length = strlen(text);
	const size_t head = (10 + length + 1 + BLOCK - 1) / BLOCK * BLOCK;
	out->size = head + bytes;
	out->data = om_allocn(mem, 1, out->size);
	memset(out->data, ' ', head);
	memcpy(out->data, "\x93NUMPY\x01\x00", 8);
	om_put_u16(out->data + 8, (uint16_t)(head - 10));
	memcpy(out->data + 10, text, length);
	out->data[head - 1] = '\n';
	if (bytes)
		memcpy(out->data + head, data, bytes);
	return OM_OK;
}

struct pieces {
	const struct om_bytes *piece;
	size_t n;
};

static om_status
write_pieces(om_session *s, FILE *to, void *arg)
{
	const struct pieces *p = arg;

	(void)s;
	for (size_t k = 0; k < p->n; k++)
		fwrite(p->piece[k].data, 1, p->piece[k].size, to);
	return OM_OK;
}

om_status
om_file_write(om_session *s, const char *path, const struct om_bytes *b, size_t n)
{
	return om_output_write(s, path, write_pieces, &(struct pieces){b, n});
}
