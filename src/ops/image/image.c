/* SPDX-License-Identifier: Apache-2.0 */
/* ImageDecoder: decodes image files into pixels.
 *
 * BMP and PNM are decoded here, all other formats by their libraries if `configure` found them: one
 * file per library, image_NAME.c, in a module (image.h).  A format without a library is refused with a message. Every read
 * is checked against the size of the file, every size in a header against a limit. */
#include <config.h>

#include "base/arena_internal.h"
#include "base/load_module.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "ops/image/image.h"

enum { MOST_PIXELS = 1 << 28 };

static om_status
fail(const om_image_file *f, om_status st, const char *what)
{
	return om_op_fail(f->c->session, st, f->c->op, "%s", what);
}

static om_status
bad(const om_image_file *f, const char *what)
{
	return fail(f, OM_RUN, what);
}

static om_status
unsupported(const om_image_file *f, const char *what)
{
	return om_op_fail(f->c->session, OM_UNSUPPORTED, f->c->op, "%s cannot be decoded", what);
}

static om_status
make(const om_image_file *f, om_image *i, uint64_t w, uint64_t h)
{
	if (w == 0 || h == 0 || w > MOST_PIXELS || h > MOST_PIXELS || w * h > MOST_PIXELS)
		return bad(f, "the image is empty or too large");
	i->w = (size_t)w;
	i->h = (size_t)h;
	i->rgb = om_alloc_try(f->c->mem, i->w * i->h * 3);
	return i->rgb ? OM_OK : om_op_fail(f->c->session, OM_MEMORY, f->c->op, "cannot allocate the image");
}

static void *
scratch(const om_image_file *f, size_t bytes)
{
	return om_alloc_try(f->c->mem, bytes);
}

static const om_image_calls calls = {.make = make, .fail = fail, .scratch = scratch};

/* Little-endian; bytes after the end of the file are zero. */
static uint32_t
little(const om_image_file *f, size_t at, int bytes)
{
	uint32_t v = 0;

	for (int k = bytes; k-- > 0;)
		v = v << 8 | (at + (size_t)k < f->n ? f->data[at + (size_t)k] : 0);
	return v;
}

/* ---- BMP. ---- */

static om_status
read_bmp(const om_image_file *f, om_image *i)
{
	const size_t start = little(f, 10, 4), palette = 14 + little(f, 14, 4), bits = little(f, 28, 2);
	const int32_t w = (int32_t)little(f, 18, 4), h = (int32_t)little(f, 22, 4);
	const bool from_top = h < 0;

	if (little(f, 30, 4) != 0 || (bits != 8 && bits != 24 && bits != 32))
		return unsupported(f, "a BMP file with compression or a palette");
	OM_TRY(make(f, i, w > 0 ? (uint64_t)w : 0, from_top ? (uint64_t)-(int64_t)h : (uint64_t)h));
	const size_t row = (i->w * bits + 31) / 32 * 4;
	if (start > f->n || (f->n - start) / row < i->h)
		return bad(f, "the BMP file is truncated");
	for (size_t y = 0; y < i->h; y++)
		for (size_t x = 0; x < i->w; x++) {
			const uint8_t *line = f->data + start + (from_top ? y : i->h - 1 - y) * row;
			uint32_t bgr;
			if (bits == 8)
				bgr = little(f, palette + 4 * (size_t)line[x], 3);
			else
				bgr = line[x * bits / 8] | (uint32_t)line[x * bits / 8 + 1] << 8 | (uint32_t)line[x * bits / 8 + 2] << 16;
			uint8_t *to = i->rgb + (y * i->w + x) * 3;
			to[0] = (uint8_t)(bgr >> 16);
			to[1] = (uint8_t)(bgr >> 8);
			to[2] = (uint8_t)bgr;
		}
	return OM_OK;
}

/* ---- PNM. ---- */

/* A number of the header, after white space and comments. */
static bool
number(const om_image_file *f, size_t *at, uint64_t *v)
{
	for (;; ++*at) {
		if (*at < f->n && f->data[*at] == '#')
			while (*at < f->n && f->data[*at] != '\n')
				++*at;
		if (*at >= f->n || !strchr(" \t\r\n", f->data[*at]) || f->data[*at] == 0)
			break;
	}
	const size_t start = *at;
	for (*v = 0; *at < f->n && f->data[*at] >= '0' && f->data[*at] <= '9' && *v <= MOST_PIXELS; ++*at)
		*v = 10 * *v + (uint64_t)(f->data[*at] - '0');
	return *at > start;
}

static om_status
read_pnm(const om_image_file *f, om_image *i)
{
	const size_t channels = f->data[1] == '6' ? 3 : 1;
	uint64_t w, h, most;
	size_t at = 2;

	if (!number(f, &at, &w) || !number(f, &at, &h) || !number(f, &at, &most))
		return bad(f, "the header of the PNM file is damaged");
	if (most != 255)
		return unsupported(f, "a PNM file that is not 8 bits per channel");
	OM_TRY(make(f, i, w, h));
	at++;
	if (at > f->n || f->n - at < i->w * i->h * channels)
		return bad(f, "the PNM file is truncated");
	for (size_t k = 0; k < i->w * i->h * 3; k++)
		i->rgb[k] = f->data[at + (channels == 3 ? k : k / 3)];
	return OM_OK;
}

/* ---- ImageDecoder. ---- */

struct format {
	const char *name;
	size_t at, n;            /* offset of the signature */
	const char *mark;
	om_image_reader *read;   /* NULL: in the module */
};

static const struct format formats[] = {
	{"BMP", 0, 2, "BM", read_bmp},
	{"PNM", 0, 2, "P5", read_pnm},
	{"PNM", 0, 2, "P6", read_pnm},
	{"PNG", 0, 8, "\x89PNG\r\n\x1a\n", NULL},
	{"JPEG", 0, 3, "\xff\xd8\xff", NULL},
	{"WebP", 8, 4, "WEBP", NULL},
	{"TIFF", 0, 4, "II*\0", NULL},
	{"TIFF", 0, 4, "MM\0*", NULL},
	{"JPEG 2000", 4, 8, "jP  \r\n\x87\n", NULL},
	{"JPEG 2000", 0, 4, "\xff\x4f\xff\x51", NULL},
};

enum { LEAST_BYTES = 12 };

static om_status
read_by_module(const om_image_file *f, om_image *i, const char *format)
{
	const om_image_decoder *d = om_load_module(OM_IMAGE_MODULE, "om_image_module_decoders");

	if (!d)
		return om_op_fail(f->c->session, OM_UNSUPPORTED, f->c->op, "cannot decode a %s file: %s: %s", format,
			OM_IMAGE_MODULE, om_load_module_error());
	for (; d->format; d++)
		if (strcmp(d->format, format) == 0)
			return d->read(f, i);
	return om_op_fail(f->c->session, OM_UNSUPPORTED, f->c->op,
		"cannot decode a %s file: built without its library", format);
}

static om_status
read_image(const om_image_file *f, om_image *i)
{
	for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++) {
		const struct format *o = &formats[k];
		if (f->n >= LEAST_BYTES && memcmp(f->data + o->at, o->mark, o->n) == 0)
			return o->read ? o->read(f, i) : read_by_module(f, i, o->name);
	}
	return unsupported(f, "an image that is not a BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP file");
}

static bool
is_grey(const om_op_context *c)
{
	return om_attr_is(c->op, "pixel_format", "Grayscale");
}

static om_status
decode_infer(om_op_context *c)
{
	if (c->in[0].type != OM_UINT8 && c->in[0].type != OM_UNDEFINED)
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"the input is %s, expected uint8", om_dtype_text(c->in[0].type));
	if (!is_grey(c) && !om_attr_is(c->op, "pixel_format", "RGB") && !om_attr_is(c->op, "pixel_format", "BGR"))
		return om_op_fail(c->session, OM_INVALID, c->op, "unknown pixel_format");
	c->out[0].type = OM_UINT8;
	c->out[0].shape = om_shape_open(3);
	c->out[0].shape.dim[2] = is_grey(c) ? 1 : 3;
	return OM_OK;
}

struct decoder {
	bool is_grey, is_swapped;
};

static om_status
decode_prepare(om_op_context *c, void **state)
{
	*(struct decoder *)*state = (struct decoder){is_grey(c), om_attr_is(c->op, "pixel_format", "BGR")};
	return OM_OK;
}

static om_status
decode_cpu(om_op_context *c)
{
	const struct decoder *s = c->state;
	const om_image_file f = {c, &calls, c->in[0].data, (size_t)om_shape_count(&c->in[0].shape)};
	om_image i;

	OM_TRY(read_image(&f, &i));
	const om_shape shape = om_shape_of(3, (const int64_t[]){(int64_t)i.h, (int64_t)i.w, s->is_grey ? 1 : 3});
	OM_TRY(c->alloc(c, 0, &shape));
	uint8_t *to = c->out[0].data;
	for (size_t k = 0; k < i.w * i.h; k++) {
		const uint8_t *p = i.rgb + 3 * k;
		if (s->is_grey) {  /* ITU-R 601 */
			*to++ = (uint8_t)((p[0] * 19595u + p[1] * 38470u + p[2] * 7471u + 0x8000u) >> 16);
			continue;
		}
		for (int b = 0; b < 3; b++)
			*to++ = p[s->is_swapped ? 2 - b : b];
	}
	return OM_OK;
}

static const om_attr_spec decode_attrs[] = {{"pixel_format", OM_ATTR_STRING, .s = "RGB"}, {0}};

const om_opdef om_ops_image[] = {
	{.name = "ImageDecoder", .brief = "decodes an image file to pixels", .since = 20, .min_in = 1, .max_in = 1,
	 .min_out = 1, .max_out = 1, .flags = OM_DATA_DEPENDENT_SHAPE, .attrs = decode_attrs, .infer = decode_infer,
	 .cpu = decode_cpu,
	 .input_types = {OF(UINT8)}},
	{0}
};

const om_kernel om_kernels_image[] = {
	{.name = "ImageDecoder", .state_bytes = sizeof(struct decoder), .prepare = decode_prepare, .run = decode_cpu},
	{0}
};
