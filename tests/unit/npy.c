/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's files: read in every form that they have, refused in every other. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/bytes.h"
#include "base/arena_internal.h"
#include "cli/npy.h"
#include "unit.h"

/* What a test works with, and the file that it makes. */
struct desk {
	om_session *s;
	om_arena *mem;
	unsigned char *file;
	size_t size;
};

static struct desk
desk_new(void)
{
	return (struct desk){om_session_new(), om_arena_new(), NULL, 0};
}

static void
desk_free(struct desk *d)
{
	om_arena_free(d->mem);
	om_session_free(d->s);
}

static bool
says(const struct desk *d, const char *words)
{
	return strstr(om_message(d->s), words) != NULL;
}

/* A .npy file of any header and any elements. */
static void
make(struct desk *d, unsigned version, const char *header, const void *data, size_t n)
{
	const size_t length = strlen(header), head = version == 1 ? 10 : 12;

	d->size = head + length + n;
	d->file = om_alloc(d->mem, d->size + 1);
	memcpy(d->file, "\x93NUMPY", 6);
	d->file[6] = (unsigned char)version;
	if (version == 1)
		om_put_u16(d->file + 8, (uint16_t)length);
	else
		om_put_u32(d->file + 8, (uint32_t)length);
	memcpy(d->file + head, header, length);
	if (n)
		memcpy(d->file + head + length, data, n);
}

static const char *
header(struct desk *d, const char *type, bool fortran, const char *shape)
{
	return om_printf(d->mem, "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }\n", type,
		fortran ? "True" : "False", shape);
}

/* The file from memory that ends where the file does, so that a sanitizer sees
 * what follows. */
static om_status
read_file(struct desk *d, size_t size, om_tensor *t)
{
	unsigned char *exact = malloc(size ? size : 1);

	memcpy(exact, d->file, size);
	const om_status st = om_npy_read(d->s, exact, size, "here", d->mem, t);
	free(exact);
	return st;
}

static om_status
read_as(struct desk *d, const char *type, bool fortran, const char *shape, const void *data, size_t n, om_tensor *t)
{
	make(d, 1, header(d, type, fortran, shape), data, n);
	return read_file(d, d->size, t);
}

static const struct {
	const char *code;
	om_dtype type;
	unsigned unit;            /* bytes that the order of bytes is about */
} types[] = {
	{"b1", OM_BOOL, 1}, {"i1", OM_INT8, 1}, {"u1", OM_UINT8, 1}, {"i2", OM_INT16, 2}, {"u2", OM_UINT16, 2},
	{"i4", OM_INT32, 4}, {"u4", OM_UINT32, 4}, {"i8", OM_INT64, 8}, {"u8", OM_UINT64, 8},
	{"f2", OM_FLOAT16, 2}, {"f4", OM_FLOAT32, 4}, {"f8", OM_FLOAT64, 8},
	{"c8", OM_COMPLEX64, 4}, {"c16", OM_COMPLEX128, 8},
};

enum { NTYPE = sizeof types / sizeof types[0], COUNT = 5 };

static void
fill(unsigned char *p, size_t n)
{
	for (size_t k = 0; k < n; k++)
		p[k] = (unsigned char)(0x11 + 0x35 * k);
}

/* ---- One tensor. ---- */

static void
every_type_is_read_and_written(void)
{
	unsigned char data[COUNT * 16];

	fill(data, sizeof data);
	for (size_t k = 0; k < NTYPE; k++) {
		struct desk d = desk_new();
		const char order = types[k].unit == 1 ? '|' : '<';
		const char *type = om_printf(d.mem, "%c%s", order, types[k].code);
		const size_t n = COUNT * om_dtype_bits(types[k].type) / 8;
		struct om_bytes b;
		om_tensor t;
		CU_ASSERT_EQUAL_FATAL(read_as(&d, type, false, "5,", data, n, &t), OM_OK);
		CU_ASSERT_EQUAL(t.type, types[k].type);
		CU_ASSERT(t.shape.rank == 1 && t.shape.dim[0] == COUNT);
		CU_ASSERT_EQUAL(memcmp(t.data, data, n), 0);
		CU_ASSERT_EQUAL_FATAL(om_npy_bytes(d.s, &t, "there", d.mem, &b), OM_OK);
		CU_ASSERT_EQUAL((b.size - n) % 64, 0);
		CU_ASSERT_EQUAL(b.data[b.size - n - 1], '\n');
		CU_ASSERT_EQUAL(memcmp(b.data + b.size - n, data, n), 0);
		const char *want = header(&d, type, false, "5,");
		CU_ASSERT_EQUAL(memcmp(b.data + 10, want, strlen(want) - 1), 0);
		desk_free(&d);
	}
}

static void
the_other_order_of_bytes_is_turned(void)
{
	unsigned char data[COUNT * 16];

	fill(data, sizeof data);
	for (size_t k = 0; k < NTYPE; k++) {
		struct desk d = desk_new();
		const size_t n = COUNT * om_dtype_bits(types[k].type) / 8, unit = types[k].unit;
		om_tensor t;
		CU_ASSERT_EQUAL_FATAL(read_as(&d, om_printf(d.mem, ">%s", types[k].code), false, "5,", data, n, &t),
			OM_OK);
		for (size_t at = 0; at < n; at++)
			CU_ASSERT_EQUAL(((unsigned char *)t.data)[at], data[at - at % unit + unit - 1 - at % unit]);
		desk_free(&d);
	}
}

static void
columns_first_becomes_rows_first(void)
{
	static const uint8_t file[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
	static const uint8_t flat[12] = {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11};
	static const uint8_t deep[12] = {0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11};
	static const unsigned char big[4] = {0, 1, 2, 3};
	struct desk d = desk_new();
	om_tensor t;

	CU_ASSERT_EQUAL_FATAL(read_as(&d, "|u1", true, "2, 6", file, 12, &t), OM_OK);
	CU_ASSERT_EQUAL(memcmp(t.data, flat, 12), 0);
	CU_ASSERT_EQUAL_FATAL(read_as(&d, "|u1", true, "2, 3, 2", file, 12, &t), OM_OK);
	CU_ASSERT_EQUAL(memcmp(t.data, deep, 12), 0);
	CU_ASSERT_EQUAL_FATAL(read_as(&d, ">u2", true, "2, 1", big, 4, &t), OM_OK);
	CU_ASSERT(((uint16_t *)t.data)[0] == 1 && ((uint16_t *)t.data)[1] == 0x203);
	CU_ASSERT_EQUAL(read_as(&d, "|u1", true, "2, 0, 3", NULL, 0, &t), OM_OK);
	CU_ASSERT_EQUAL_FATAL(read_as(&d, "|u1", true, "", file + 7, 1, &t), OM_OK);
	CU_ASSERT(t.shape.rank == 0 && *(uint8_t *)t.data == 7);
	desk_free(&d);
}

static void
every_version_is_read(void)
{
	static const int32_t data[2] = {-1, 70000};
	struct desk d = desk_new();
	om_tensor t;

	for (unsigned version = 0; version < 6; version++) {
		const bool known = version >= 1 && version <= 3;
		make(&d, version, header(&d, "<i4", false, "2,"), data, sizeof data);
		CU_ASSERT_EQUAL(read_file(&d, d.size, &t), known ? OM_OK : OM_UNSUPPORTED);
		CU_ASSERT(known ? memcmp(t.data, data, sizeof data) == 0 : says(&d, "here: unsupported .npy version"));
	}
	desk_free(&d);
}

static void
a_file_that_is_cut_is_refused(void)
{
	static const float data[6] = {1, 2, 3, 4, 5, 6};
	struct desk d = desk_new();
	om_tensor t;

	for (unsigned version = 1; version <= 3; version++) {
		make(&d, version, header(&d, "<f4", version == 2, "2, 3"), data, sizeof data);
		for (size_t n = 0; n < d.size; n++) {
			CU_ASSERT_EQUAL(read_file(&d, n, &t), OM_MALFORMED);
			CU_ASSERT(says(&d, "here: not a .npy file"));
		}
		CU_ASSERT_EQUAL(read_file(&d, d.size, &t), OM_OK);
	}
	desk_free(&d);
}

#define HEAD "{'descr': '<f4', 'fortran_order': False, 'shape': "

static void
headers_may_be_spelled_in_other_ways(void)
{
	static const char *const good[] = {
		HEAD "(2,3)}", HEAD "( 2 , 3 , ) , } \n",
		HEAD "(2L, 3L)}", "{\"shape\": (2, 3), \"fortran_order\": False, \"descr\": \"=f4\"}",
		"  {  'shape' : (2, 3),\t'descr' : 'f4' ,'fortran_order':False}",
	};
	static const float data[6] = {1, 2, 3, 4, 5, 6};
	struct desk d = desk_new();
	om_tensor t;

	for (size_t k = 0; k < sizeof good / sizeof good[0]; k++) {
		make(&d, 1, good[k], data, sizeof data);
		CU_ASSERT_EQUAL_FATAL(read_file(&d, d.size, &t), OM_OK);
		CU_ASSERT(t.type == OM_FLOAT32 && t.shape.rank == 2 && t.shape.dim[0] == 2 && t.shape.dim[1] == 3);
		CU_ASSERT_EQUAL(memcmp(t.data, data, sizeof data), 0);
	}
	desk_free(&d);
}

static const struct {
	const char *header;
	om_status st;
	const char *words;
} bad[] = {
	{"", OM_MALFORMED, "not a dictionary"},
	{"'descr'", OM_MALFORMED, "not a dictionary"},
	{"{'descr'", OM_MALFORMED, "not a dictionary"},
	{"{'descr: '<f4'}", OM_MALFORMED, "not a dictionary"},
	{"{}", OM_MALFORMED, "has no descr"},
	{"{'descr': '<f4', 'fortran_order': False}", OM_MALFORMED, "has no descr"},
	{"{'descr': '<f4', 'shape': (1,)}", OM_MALFORMED, "has no descr"},
	{"{'fortran_order': False, 'shape': (1,)}", OM_MALFORMED, "has no descr"},
	{"{'descr': '<f4' 'shape': (1,)}", OM_MALFORMED, "not terminated"},
	{"{'descr': 4, 'fortran_order': False, 'shape': (1,)}", OM_MALFORMED, "not a string"},
	{"{'descr': '', 'fortran_order': False, 'shape': (1,)}", OM_MALFORMED, "not a string"},
	{"{'descr': '<f4xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}", OM_MALFORMED, "not a string"},
	{"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", OM_MALFORMED, "neither True nor False"},
	{"{'color': 'red'}", OM_MALFORMED, "unknown key"},
	{HEAD "1}", OM_MALFORMED, "not a tuple"},
	{HEAD "(-1,)}", OM_MALFORMED, "not a tuple of integers"},
	{HEAD "(1.5,)}", OM_MALFORMED, "not terminated"},
	{HEAD "(,)}", OM_MALFORMED, "not a tuple of integers"},
	{HEAD "(1", OM_MALFORMED, "not terminated"},
	{HEAD "(1,", OM_MALFORMED, "not a tuple of integers"},
	{HEAD "(9223372036854775808,)}", OM_MALFORMED, "not a tuple of integers"},
	{HEAD "(4611686018427387904, 2)}", OM_MALFORMED, "truncated elements"},
	{HEAD "(9223372036854775807,)}", OM_MALFORMED, "truncated elements"},
	{HEAD "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)}", OM_UNSUPPORTED, "more than 12 dims"},
	{"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", OM_UNSUPPORTED, "structured element types"},
	{"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", OM_UNSUPPORTED, "pickled"},
	{"{'descr': '<f3', 'fortran_order': False, 'shape': (1,)}", OM_UNSUPPORTED, "type f3"},
	{"{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,)}", OM_UNSUPPORTED, "type M8[s]"},
	{"{'descr': '<', 'fortran_order': False, 'shape': (1,)}", OM_UNSUPPORTED, "unknown element type"},
	{"{'descr': '<U', 'fortran_order': False, 'shape': (1,)}", OM_UNSUPPORTED, "type U"},
	{"{'descr': '<U1x', 'fortran_order': False, 'shape': (1,)}", OM_UNSUPPORTED, "type U1x"},
	{"{'descr': '<U4611686018427387905', 'fortran_order': False, 'shape': (1,)}", OM_UNSUPPORTED, "type U46"},
	{"{'descr': '|S99999999999999999999', 'fortran_order': False, 'shape': (1,)}", OM_UNSUPPORTED, "type S99"},
	{"{'descr': '|S0', 'fortran_order': False, 'shape': (1000000,)}", OM_MALFORMED, "more strings than bytes"},
};

static void
bad_headers_are_refused(void)
{
	static const float data[2] = {1, 2};

	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		struct desk d = desk_new();
		om_tensor t;
		make(&d, 1, bad[k].header, data, sizeof data);
		const om_status st = read_file(&d, d.size, &t);
		if (st != bad[k].st || !says(&d, bad[k].words) || !says(&d, "here: "))
			printf("# %s: %s\n", bad[k].header, st == OM_OK ? "taken" : om_message(d.s));
		CU_ASSERT(st == bad[k].st && says(&d, bad[k].words) && says(&d, "here: "));
		desk_free(&d);
	}
}

static void
texts_survive(void)
{
	static const uint32_t wide[6] = {'a', 0, 0, 0xe4, 0x20ac, 0x1f600};
	static const char narrow[6] = {'a', 0, 0, 'x', 0, 'y'};
	struct desk d = desk_new();
	struct om_bytes b;
	om_tensor t, again;

	CU_ASSERT_EQUAL_FATAL(read_as(&d, "|S3", false, "2,", narrow, sizeof narrow, &t), OM_OK);
	const om_string *s = t.data;
	CU_ASSERT(t.type == OM_STRING && s[0].size == 1 && s[0].data[0] == 'a');
	CU_ASSERT(s[1].size == 3 && memcmp(s[1].data, "x\0y", 3) == 0);
	CU_ASSERT_EQUAL_FATAL(read_as(&d, "<U3", false, "2,", wide, sizeof wide, &t), OM_OK);
	s = t.data;
	CU_ASSERT(s[0].size == 1 && s[0].data[0] == 'a');
	CU_ASSERT(s[1].size == 9 && memcmp(s[1].data, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9) == 0);
	CU_ASSERT_EQUAL_FATAL(om_npy_bytes(d.s, &t, "there", d.mem, &b), OM_OK);
	CU_ASSERT_EQUAL(memcmp(b.data + b.size - sizeof wide, wide, sizeof wide), 0);
	CU_ASSERT_EQUAL_FATAL(om_npy_read(d.s, b.data, b.size, "there", d.mem, &again), OM_OK);
	CU_ASSERT_EQUAL(((om_string *)again.data)[1].size, 9);
	desk_free(&d);
}

static void
types_without_a_name_are_not_written(void)
{
	static const om_dtype strange[] = {OM_BFLOAT16, OM_FLOAT8E4M3FN, OM_INT4, OM_UINT2};
	uint64_t data[2] = {0};

	for (size_t k = 0; k < sizeof strange / sizeof strange[0]; k++)
		for (int64_t n = 0; n < 2; n++) {
			struct desk d = desk_new();
			struct om_bytes b;
			const om_tensor t = {.type = strange[k], .shape = om_shape_of(1, &n), .data = n ? data : NULL};
			CU_ASSERT_EQUAL(om_npy_bytes(d.s, &t, "there", d.mem, &b), OM_UNSUPPORTED);
			CU_ASSERT(says(&d, om_dtype_text(strange[k])));
			desk_free(&d);
		}
}

static void
no_elements_are_fine(void)
{
	struct desk d = desk_new();
	struct om_bytes b;
	om_tensor t;

	CU_ASSERT_EQUAL_FATAL(read_as(&d, "<f4", false, "0, 3", NULL, 0, &t), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_npy_bytes(d.s, &t, "there", d.mem, &b), OM_OK);
	CU_ASSERT_EQUAL(b.size % 64, 0);
	t.data = NULL;
	CU_ASSERT_EQUAL_FATAL(om_npy_bytes(d.s, &t, "there", d.mem, &b), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_npy_read(d.s, b.data, b.size, "there", d.mem, &t), OM_OK);
	CU_ASSERT(t.shape.rank == 2 && t.shape.dim[0] == 0 && t.shape.dim[1] == 3);
	desk_free(&d);
}

/* ---- Archives. ---- */

/* Two tensors through a file that is written: one that deflates well, one small. */
static void
save_two(struct desk *d, bool deflate)
{
	static float zeros[1000];
	static uint8_t small[3] = {1, 2, 3};
	const om_npz_entry e[2] = {
		{"zeros/of a name", {.type = OM_FLOAT32, .shape = om_shape_of(1, (int64_t[]){1000}), .data = zeros}},
		{"small", {.type = OM_UINT8, .shape = om_shape_of(2, (int64_t[]){1, 3}), .data = small}},
	};
	char path[] = "/tmp/npzXXXXXX";
	char *data;

	close(mkstemp(path));
	CU_ASSERT_EQUAL_FATAL(om_npz_save(d->s, path, e, 2, deflate), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_file_read(d->s, path, d->mem, &data, &d->size), OM_OK);
	d->file = (unsigned char *)data;
	unlink(path);
}

static om_status
read_archive(struct desk *d, size_t size, om_npz_entry **e, size_t *n)
{
	unsigned char *exact = malloc(size ? size : 1);

	memcpy(exact, d->file, size);
	const om_status st = om_npz_read(d->s, exact, size, "here", d->mem, e, n);
	free(exact);
	return st;
}

static void
archives_survive(void)
{
	for (int deflate = 0; deflate < 2; deflate++) {
		struct desk d = desk_new();
		om_npz_entry *e;
		size_t n;
		save_two(&d, deflate);
		CU_ASSERT(deflate ? d.size < 1000 : d.size > 4000);
		CU_ASSERT_EQUAL_FATAL(read_archive(&d, d.size, &e, &n), OM_OK);
		CU_ASSERT_EQUAL_FATAL(n, 2);
		CU_ASSERT_STRING_EQUAL(e[0].name, "zeros/of a name");
		CU_ASSERT(e[0].t.type == OM_FLOAT32 && e[0].t.shape.dim[0] == 1000);
		CU_ASSERT_EQUAL(((float *)e[0].t.data)[999], 0);
		CU_ASSERT_STRING_EQUAL(e[1].name, "small");
		CU_ASSERT_EQUAL(memcmp(e[1].t.data, "\1\2\3", 3), 0);
		desk_free(&d);
	}
}

static void
archives_that_are_cut_are_refused(void)
{
	for (int deflate = 0; deflate < 2; deflate++) {
		struct desk d = desk_new();
		om_npz_entry *e;
		size_t n;
		save_two(&d, deflate);
		for (size_t size = 0; size < d.size; size += size + 300 < d.size ? 37 : 1)
			CU_ASSERT_EQUAL(read_archive(&d, size, &e, &n), OM_MALFORMED);
		CU_ASSERT(says(&d, "here: not a .npz file"));
		desk_free(&d);
	}
}

/* Whatever a wrong byte does, it does not do harm. */
static void
archives_may_be_damaged_anywhere(void)
{
	struct desk d = desk_new();
	unsigned refused = 0, elements = 0;

	save_two(&d, true);
	for (size_t k = 0; k < d.size; k++) {
		om_arena *all = d.mem;
		om_npz_entry *e;
		size_t n;
		d.mem = om_arena_new();
		d.file[k] ^= 0xff;
		refused += read_archive(&d, d.size, &e, &n) != OM_OK;
		elements += says(&d, "inflated") || says(&d, "checksum");
		d.file[k] ^= 0xff;
		om_arena_free(d.mem);
		d.mem = all;
	}
	CU_ASSERT(refused > 100 && elements > 20);
	desk_free(&d);
}

/* An archive of one entry as other programs write it. */
struct foreign {
	unsigned flags, method, extra;   /* extra: bytes that the local header has after the name */
	uint32_t claims;                 /* the size when unpacked, where it is not the real one */
	bool wide;                       /* sizes, and the place of the directory, in 64 bits */
	const char *name;
	size_t comment;
};

static unsigned char *
put_header(unsigned char *p, uint32_t mark, const struct foreign *f, uint32_t crc, uint32_t size)
{
	const size_t n = strlen(f->name), from = mark == 0x02014b50 ? 6 : 4;

	om_put_u32(p, mark);
	om_put_u16(p + from + 2, (uint16_t)f->flags);
	om_put_u16(p + from + 4, (uint16_t)f->method);
	om_put_u32(p + from + 10, crc);
	om_put_u32(p + from + 14, f->wide ? UINT32_MAX : size);
	om_put_u32(p + from + 18, f->wide ? UINT32_MAX : f->claims ? f->claims : size);
	om_put_u16(p + from + 22, (uint16_t)n);
	p += from == 6 ? 46 : 30;
	memcpy(p, f->name, n);
	return p + n;
}

static unsigned char *
put_end(unsigned char *p, const struct foreign *f, uint32_t at)
{
	unsigned char *start = p;

	if (f->wide) {
		om_put_u32(p, 0x06064b50);
		p[32] = 1;
		om_put_u32(p + 48, at);
		p += 56;
		om_put_u32(p, 0x07064b50);
		om_put_u32(p + 8, at + 46 + (uint32_t)strlen(f->name) + 20);
		p += 20;
		CU_ASSERT_EQUAL(p - start, 76);
	}
	om_put_u32(p, 0x06054b50);
	om_put_u16(p + 10, f->wide ? UINT16_MAX : 1);
	om_put_u32(p + 16, f->wide ? UINT32_MAX : at);
	om_put_u16(p + 20, (uint16_t)f->comment);
	return p + 22 + f->comment;
}

/* CRC of the file below, which is a tensor of two bytes. */
static uint32_t
crc_of(const unsigned char *p, size_t n)
{
	uint32_t crc = UINT32_MAX;

	for (size_t k = 0; k < n * 8; k++)
		crc = crc >> 1 ^ (((crc ^ p[k / 8] >> k % 8) & 1) ? 0xedb88320 : 0);
	return ~crc;
}

static om_status
read_foreign(struct desk *d, struct foreign f, om_npz_entry **e, size_t *n)
{
	make(d, 1, header(d, "|u1", false, "2,"), "\7\10", 2);
	const uint32_t size = (uint32_t)d->size, crc = crc_of(d->file, size);
	unsigned char *file = om_alloc(d->mem, d->size + 400 + f.comment), *p;

	f.name = f.name ? f.name : "x.npy";
	p = put_header(file, 0x04034b50, &f, crc, size);
	om_put_u16(file + 28, (uint16_t)f.extra);
	p += f.extra;
	memcpy(p, d->file, size);
	unsigned char *directory = p + size;
	p = put_header(directory, 0x02014b50, &f, crc, size);
	if (f.wide) {
		om_put_u16(directory + 30, 20);
		om_put_u16(p, 1);
		om_put_u16(p + 2, 16);
		om_put_u32(p + 4, size);
		om_put_u32(p + 12, size);
		p += 20;
	}
	d->size = (size_t)(put_end(p, &f, (uint32_t)(directory - file)) - file);
	d->file = file;
	return read_archive(d, d->size, e, n);
}

static void
archives_of_others_are_read(void)
{
	static const struct foreign good[] = {
		{0}, {.extra = 20}, {.wide = true}, {.extra = 7, .wide = true}, {.comment = 300}, {.name = "x"},
	};

	for (size_t k = 0; k < sizeof good / sizeof good[0]; k++) {
		struct desk d = desk_new();
		om_npz_entry *e;
		size_t n;
		CU_ASSERT_EQUAL_FATAL(read_foreign(&d, good[k], &e, &n), OM_OK);
		CU_ASSERT_EQUAL_FATAL(n, 1);
		CU_ASSERT_STRING_EQUAL(e[0].name, "x");
		CU_ASSERT_EQUAL(memcmp(e[0].t.data, "\7\10", 2), 0);
		desk_free(&d);
	}
}

static void
archives_of_others_are_refused(void)
{
	static const struct {
		struct foreign f;
		om_status st;
		const char *words;
	} wrong[] = {
		{{.flags = 1}, OM_UNSUPPORTED, "encrypted"},
		{{.method = 12}, OM_UNSUPPORTED, "method 12"},
		{{.claims = 5000}, OM_MALFORMED, "sizes differ"},
		{{.method = 8, .claims = 1u << 30}, OM_MALFORMED, "implausible"},
		{{.method = 8}, OM_MALFORMED, "cannot be inflated"},
	};
	struct desk d = desk_new();
	om_npz_entry *e;
	size_t n;

	for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
		CU_ASSERT_EQUAL(read_foreign(&d, wrong[k].f, &e, &n), wrong[k].st);
		CU_ASSERT(says(&d, wrong[k].words) && says(&d, "here: "));
	}
	CU_ASSERT_EQUAL(read_foreign(&d, (struct foreign){.name = "folder/"}, &e, &n), OM_OK);
	CU_ASSERT_EQUAL(n, 0);
	desk_free(&d);
}

static CU_TestInfo npy_tests[] = {
	{"every type is read, and written the same", every_type_is_read_and_written},
	{"the other order of bytes is turned", the_other_order_of_bytes_is_turned},
	{"columns first becomes rows first", columns_first_becomes_rows_first},
	{"every version is read", every_version_is_read},
	{"a file that is cut is refused", a_file_that_is_cut_is_refused},
	{"headers may be spelled in other ways", headers_may_be_spelled_in_other_ways},
	{"bad headers are refused", bad_headers_are_refused},
	{"texts survive", texts_survive},
	{"types without a name in NumPy are not written", types_without_a_name_are_not_written},
	{"no elements are fine", no_elements_are_fine},
	{"archives survive, stored and deflated", archives_survive},
	{"archives that are cut are refused", archives_that_are_cut_are_refused},
	{"archives may be damaged anywhere", archives_may_be_damaged_anywhere},
	{"archives of other programs are read", archives_of_others_are_read},
	{"what archives may not have", archives_of_others_are_refused},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("files of NumPy", npy_tests);
