/* Image files and their decoders. */
#ifndef OM_IMAGE_H
#define OM_IMAGE_H

#include "onnxmem/opdef.h"

typedef struct om_image_file {
	const om_op_context *c;
	const uint8_t *data;
	size_t n;
} om_image_file;

/* RGB, row by row from the top; allocated in the scratch of the call. */
typedef struct om_image {
	size_t w, h;
	uint8_t *rgb;
} om_image;

/* Allocate the pixels of an image of that size; too large a size is refused. */
om_status om_image_new(const om_image_file *f, om_image *i, uint64_t w, uint64_t h);
/* Refuse the file; `what` is the message. */
om_status om_image_bad(const om_image_file *f, const char *what);

typedef om_status om_image_reader(const om_image_file *f, om_image *i);

#ifdef OM_WITH_PNG
om_image_reader om_image_png;
#else
#define om_image_png NULL
#endif
#ifdef OM_WITH_JPEG
om_image_reader om_image_jpeg;
#else
#define om_image_jpeg NULL
#endif
#ifdef OM_WITH_WEBP
om_image_reader om_image_webp;
#else
#define om_image_webp NULL
#endif
#ifdef OM_WITH_TIFF
om_image_reader om_image_tiff;
#else
#define om_image_tiff NULL
#endif
#ifdef OM_WITH_JP2
om_image_reader om_image_jp2;
#else
#define om_image_jp2 NULL
#endif

#endif
