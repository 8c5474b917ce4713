/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG files, decoded by libjpeg.  Errors inside it longjmp to the start of the read: no
 * variable that changes after that is used after the jump. */
#include <config.h>

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include "ops/image/image.h"

struct trouble {
	struct jpeg_error_mgr base;   /* must be first: libjpeg accesses this member */
	jmp_buf back;
};

static void
fail(j_common_ptr j)
{
	longjmp(((struct trouble *)(void *)j->err)->back, 1);
}

static void
ignore(j_common_ptr j, int level)
{
	(void)j;
	(void)level;
}

static om_status
read_rows(const om_image_file *f, om_image *i, struct jpeg_decompress_struct *j, struct trouble *t)
{
	if (setjmp(t->back) != 0)
		return om_image_bad(f, "the JPEG file is damaged");
	jpeg_create_decompress(j);
	jpeg_mem_src(j, f->data, f->n);
	jpeg_read_header(j, TRUE);
	j->out_color_space = JCS_RGB;
	OM_TRY(om_image_new(f, i, j->image_width, j->image_height));
	jpeg_start_decompress(j);
	while (j->output_scanline < j->output_height) {
		JSAMPROW row = i->rgb + (size_t)j->output_scanline * i->w * 3;
		jpeg_read_scanlines(j, &row, 1);
	}
	jpeg_finish_decompress(j);
	return OM_OK;
}

om_status
om_image_jpeg(const om_image_file *f, om_image *i)
{
	struct jpeg_decompress_struct j = {0};
	struct trouble t;

	j.err = jpeg_std_error(&t.base);
	t.base.error_exit = fail;
	t.base.emit_message = ignore;
	const om_status st = read_rows(f, i, &j, &t);
	jpeg_destroy_decompress(&j);
	return st;
}
