/* SPDX-License-Identifier: Apache-2.0 */
/* PNG files, decoded by libpng.  Errors inside it longjmp to the start of the read: no variable
 * that changes after that is used after the jump. */
#include <config.h>

#include <png.h>
#include <setjmp.h>

#include "ops/image/image.h"

struct source {
	const om_image_file *f;
	size_t at;
};

static void
feed(png_structp png, png_bytep to, png_size_t n)
{
	struct source *s = png_get_io_ptr(png);

	if (n > s->f->n - s->at)
		png_error(png, "the PNG file is truncated");
	memcpy(to, s->f->data + s->at, n);
	s->at += n;
}

static void
fail(png_structp png, png_const_charp why)
{
	(void)why;
	png_longjmp(png, 1);
}

static void
ignore(png_structp png, png_const_charp why)
{
	(void)png;
	(void)why;
}

/* Convert any format to 8 bits of red, green and blue; transparency is dropped. */
static void
ask_for_rgb(png_structp png, png_infop info)
{
	png_set_expand(png);
	png_set_scale_16(png);
	png_set_strip_alpha(png);
	png_set_gray_to_rgb(png);
	png_set_interlace_handling(png);
	png_read_update_info(png, info);
}

static om_status
read_rows(const om_image_file *f, om_image *i, png_structp png, png_infop info)
{
	struct source source = {.f = f};

	if (setjmp(png_jmpbuf(png)) != 0)
		return om_image_bad(f, "the PNG file is damaged");
	png_set_read_fn(png, &source, feed);
	png_read_info(png, info);
	OM_TRY(om_image_new(f, i, png_get_image_width(png, info), png_get_image_height(png, info)));
	ask_for_rgb(png, info);
	if (png_get_rowbytes(png, info) != i->w * 3)
		return om_image_bad(f, "the PNG file has an unexpected pixel format");
	png_bytep *row = om_image_scratch(f, i->h * sizeof *row);
	if (!row)
		return om_image_bad(f, "not enough memory for the rows of the PNG file");
	for (size_t y = 0; y < i->h; y++)
		row[y] = i->rgb + y * i->w * 3;
	png_read_image(png, row);
	return OM_OK;
}

om_status
om_image_png(const om_image_file *f, om_image *i)
{
	png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, fail, ignore);
	png_infop info = png ? png_create_info_struct(png) : NULL;
	const om_status st = info ? read_rows(f, i, png, info) : om_image_bad(f, "cannot initialize libpng");

	png_destroy_read_struct(&png, &info, NULL);
	return st;
}
