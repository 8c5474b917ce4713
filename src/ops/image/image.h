/* SPDX-License-Identifier: Apache-2.0 */
/* Image files and their decoders.
 *
 * Formats whose decoders need libraries are in the module onnxmem-images.so (image_module.c), which the first image
 * of such a format loads.  It refers to no symbol of the library that loads it, but calls it by om_image_calls. */
#ifndef OM_IMAGE_H
#define OM_IMAGE_H

#include "onnxmem/opdef.h"

typedef struct om_image_calls om_image_calls;

typedef struct om_image_file {
	const om_op_context *c;
	const om_image_calls *calls;
	const uint8_t *data;
	size_t n;
} om_image_file;

/* RGB, row by row from the top; allocated in the scratch of the call. */
typedef struct om_image {
	size_t w, h;
	uint8_t *rgb;
} om_image;

struct om_image_calls {
	om_status (*make)(const om_image_file *f, om_image *i, uint64_t w, uint64_t h);  /* om_image_new() */
	om_status (*fail)(const om_image_file *f, om_status st, const char *what);
	void *(*scratch)(const om_image_file *f, size_t bytes);                          /* om_image_scratch() */
};

/* Allocate the pixels of an image of that size; too large a size is refused. */
om_status om_image_new(const om_image_file *f, om_image *i, uint64_t w, uint64_t h);
/* Refuse the file; `what` is the message. */
om_status om_image_bad(const om_image_file *f, const char *what);
/* Memory of the call; NULL if there is too little. */
void *om_image_scratch(const om_image_file *f, size_t bytes);

typedef om_status om_image_reader(const om_image_file *f, om_image *i);

/* The decoders of the module by the name of the format, to {0}. */
typedef struct om_image_decoder {
	const char *format;
	om_image_reader *read;
} om_image_decoder;

#define OM_IMAGE_MODULE "onnxmem-images.so"

/* What the module exports, by this name. */
OM_API extern const om_image_decoder om_image_module_decoders[];

om_image_reader om_image_png, om_image_jpeg, om_image_webp, om_image_tiff, om_image_jp2;

#endif
