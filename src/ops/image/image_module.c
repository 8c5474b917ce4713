/* SPDX-License-Identifier: Apache-2.0 */
/* The module onnxmem-images.so: the decoders that need libraries; see image.h. */
#include <config.h>

#include "ops/image/image.h"

om_status
om_image_new(const om_image_file *f, om_image *i, uint64_t w, uint64_t h)
{
	return f->calls->make(f, i, w, h);
}

om_status
om_image_bad(const om_image_file *f, const char *what)
{
	return f->calls->fail(f, OM_RUN, what);
}

void *
om_image_scratch(const om_image_file *f, size_t bytes)
{
	return f->calls->scratch(f, bytes);
}

const om_image_decoder om_image_module_decoders[] = {
#ifdef OM_WITH_PNG
	{"PNG", om_image_png},
#endif
#ifdef OM_WITH_JPEG
	{"JPEG", om_image_jpeg},
#endif
#ifdef OM_WITH_WEBP
	{"WebP", om_image_webp},
#endif
#ifdef OM_WITH_TIFF
	{"TIFF", om_image_tiff},
#endif
#ifdef OM_WITH_JP2
	{"JPEG 2000", om_image_jp2},
#endif
	{0}
};
