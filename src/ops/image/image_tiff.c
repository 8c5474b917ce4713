/* SPDX-License-Identifier: Apache-2.0 */
/* TIFF files, decoded by libtiff: the first page only. */
#include <config.h>

#include <tiffio.h>

#include "ops/image/image.h"

struct source {
	const om_image_file *f;
	uint64_t at;
};

static tmsize_t
feed(thandle_t h, void *to, tmsize_t n)
{
	struct source *s = h;
	const uint64_t left = s->at < s->f->n ? s->f->n - s->at : 0;
	const size_t k = n < 0 ? 0 : (uint64_t)n < left ? (size_t)n : (size_t)left;

	if (k)
		memcpy(to, s->f->data + s->at, k);
	s->at += k;
	return (tmsize_t)k;
}

static tmsize_t
refuse(thandle_t h, void *from, tmsize_t n)
{
	(void)h;
	(void)from;
	(void)n;
	return 0;
}

static toff_t
seek(thandle_t h, toff_t to, int from)
{
	struct source *s = h;

	s->at = to + (from == SEEK_CUR ? s->at : from == SEEK_END ? s->f->n : 0);
	return s->at;
}

static int
leave(thandle_t h)
{
	(void)h;
	return 0;
}

static toff_t
size_of(thandle_t h)
{
	return ((struct source *)h)->f->n;
}

static int
silent(TIFF *t, void *user, const char *module, const char *fmt, va_list args)
{
	(void)t;
	(void)user;
	(void)module;
	(void)fmt;
	(void)args;
	return 1;
}

static om_status
read_page(const om_image_file *f, om_image *i, TIFF *t)
{
	uint32_t w = 0, h = 0;

	TIFFGetField(t, TIFFTAG_IMAGEWIDTH, &w);
	TIFFGetField(t, TIFFTAG_IMAGELENGTH, &h);
	OM_TRY(om_image_new(f, i, w, h));
	uint32_t *pixel = om_image_scratch(f, i->w * i->h * sizeof *pixel);
	if (!pixel)
		return f->calls->fail(f, OM_MEMORY, "cannot allocate the image");
	if (!TIFFReadRGBAImageOriented(t, w, h, pixel, ORIENTATION_TOPLEFT, 1))
		return om_image_bad(f, "the TIFF file is damaged, or not supported by libtiff");
	for (size_t k = 0; k < i->w * i->h; k++) {
		i->rgb[3 * k] = (uint8_t)TIFFGetR(pixel[k]);
		i->rgb[3 * k + 1] = (uint8_t)TIFFGetG(pixel[k]);
		i->rgb[3 * k + 2] = (uint8_t)TIFFGetB(pixel[k]);
	}
	return OM_OK;
}

om_status
om_image_tiff(const om_image_file *f, om_image *i)
{
	struct source source = {.f = f};
	TIFFOpenOptions *o = TIFFOpenOptionsAlloc();
	om_status st;

	if (!o)
		return om_image_bad(f, "cannot initialize libtiff");
	TIFFOpenOptionsSetErrorHandlerExtR(o, silent, NULL);
	TIFFOpenOptionsSetWarningHandlerExtR(o, silent, NULL);
	TIFF *t = TIFFClientOpenExt("image", "rm", &source, feed, refuse, seek, leave, size_of, NULL, NULL, o);
	TIFFOpenOptionsFree(o);
	if (!t)
		return om_image_bad(f, "the TIFF file is damaged");
	st = read_page(f, i, t);
	TIFFClose(t);
	return st;
}
