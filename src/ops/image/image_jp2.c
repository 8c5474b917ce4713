/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG 2000 files, decoded by OpenJPEG: boxed or a raw code stream. */
#include <config.h>

#include <openjpeg.h>

#include "ops/image/image.h"

struct source {
	const om_image_file *f;
	size_t at;
};

static OPJ_SIZE_T
feed(void *to, OPJ_SIZE_T n, void *user)
{
	struct source *s = user;
	const size_t left = s->f->n - s->at, k = n < left ? n : left;

	if (k == 0)
		return (OPJ_SIZE_T)-1;
	memcpy(to, s->f->data + s->at, k);
	s->at += k;
	return k;
}

static OPJ_OFF_T
skip(OPJ_OFF_T n, void *user)
{
	struct source *s = user;
	const size_t left = s->f->n - s->at;

	if (n < 0)
		return -1;
	s->at += (uint64_t)n < left ? (size_t)n : left;
	return n;
}

static OPJ_BOOL
seek(OPJ_OFF_T to, void *user)
{
	struct source *s = user;

	if (to < 0 || (uint64_t)to > s->f->n)
		return OPJ_FALSE;
	s->at = (size_t)to;
	return OPJ_TRUE;
}

/* A sample as unsigned 8 bits. */
static uint8_t
sample(const opj_image_comp_t *comp, size_t at)
{
	int64_t v = comp->data[at] + (comp->sgnd ? INT64_C(1) << (comp->prec - 1) : 0);

	v = comp->prec > 8 ? v >> (comp->prec - 8) : v << (8 - comp->prec);
	return v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v;
}

static om_status
take_pixels(const om_image_file *f, om_image *i, const opj_image_t *from)
{
	const bool gray = from->numcomps < 3;

	if (from->numcomps == 0)
		return om_image_bad(f, "the JPEG 2000 file is empty");
	OM_TRY(om_image_new(f, i, from->comps[0].w, from->comps[0].h));
	for (uint32_t k = 0; k < (gray ? 1 : 3); k++) {
		const opj_image_comp_t *comp = &from->comps[k];
		if (comp->w != i->w || comp->h != i->h || !comp->data || comp->prec < 1 || comp->prec > 31)
			return om_image_bad(f,
				"the components of the JPEG 2000 file differ in size, or are damaged");
	}
	if (from->color_space == OPJ_CLRSPC_SYCC || from->color_space == OPJ_CLRSPC_EYCC
		|| from->color_space == OPJ_CLRSPC_CMYK)
		return om_image_bad(f, "the JPEG 2000 file is not RGB");
	for (size_t k = 0; k < i->w * i->h; k++)
		for (size_t b = 0; b < 3; b++)
			i->rgb[3 * k + b] = sample(&from->comps[gray ? 0 : b], k);
	return OM_OK;
}

/* The size in the header is checked before the samples are allocated. */
static om_status
decode(const om_image_file *f, om_image *i, opj_codec_t *codec, opj_stream_t *stream, opj_image_t **image)
{
	opj_dparameters_t how;

	opj_set_default_decoder_parameters(&how);
	if (!opj_setup_decoder(codec, &how) || !opj_read_header(stream, codec, image))
		return om_image_bad(f, "the header of the JPEG 2000 file is damaged");
	OM_TRY(om_image_new(f, i, (*image)->x1 - (*image)->x0, (*image)->y1 - (*image)->y0));
	if (!opj_decode(codec, stream, *image) || !opj_end_decompress(codec, stream))
		return om_image_bad(f, "the JPEG 2000 file is damaged");
	return take_pixels(f, i, *image);
}

om_status
om_image_jp2(const om_image_file *f, om_image *i)
{
	struct source source = {.f = f};
	const bool boxed = f->data[0] == 0;
	opj_codec_t *codec = opj_create_decompress(boxed ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K);
	opj_stream_t *stream = opj_stream_default_create(OPJ_TRUE);
	opj_image_t *image = NULL;
	om_status st = OM_MEMORY;

	if (!codec || !stream) {
		f->calls->fail(f, st, "cannot initialize OpenJPEG");
	} else {
		opj_stream_set_user_data(stream, &source, NULL);
		opj_stream_set_user_data_length(stream, f->n);
		opj_stream_set_read_function(stream, feed);
		opj_stream_set_skip_function(stream, skip);
		opj_stream_set_seek_function(stream, seek);
		st = decode(f, i, codec, stream, &image);
	}
	opj_image_destroy(image);
	opj_stream_destroy(stream);
	opj_destroy_codec(codec);
	return st;
}
