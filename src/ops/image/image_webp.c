/* SPDX-License-Identifier: Apache-2.0 */
/* WebP files, decoded by libwebp. */
#include <config.h>

#include <webp/decode.h>

#include "ops/image/image.h"

om_status
om_image_webp(const om_image_file *f, om_image *i)
{
	int w = 0, h = 0;

	if (!WebPGetInfo(f->data, f->n, &w, &h) || w < 0 || h < 0)
		return om_image_bad(f, "the header of the WebP file is damaged");
	OM_TRY(om_image_new(f, i, (uint64_t)w, (uint64_t)h));
	if (!WebPDecodeRGBInto(f->data, f->n, i->rgb, i->w * i->h * 3, w * 3))
		return om_image_bad(f, "the WebP file is damaged");
	return OM_OK;
}
