/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and products of 8-bit integers with packed weights.
 *
 * Images are channels-last.  Weights are packed into panels of OM_QPANEL output channels: for each group and each
 * panel of it, the filter elements (position in the kernel, then input channel) in groups of four, zero after the
 * last one; for each group of four and each channel of the panel the four bytes.  Packed weights are signed:
 * unsigned ones have 128 subtracted, as their zero points have.  The panels are followed by the sum of the weights of
 * each output channel, an int32 in the order of the machine.  The format is otherwise the same on all machines.
 *
 * Sums are exact, and equal for every instruction set.  The input is treated as unsigned: 128 is added to signed
 * elements, as to their zero point. */
#ifndef OM_QLAYER_H
#define OM_QLAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu/layer.h"

enum { OM_QPANEL = 16, OM_QDEPTH = 4 };

/* Elements of the output. */
typedef enum om_qlayer_output { OM_QLAYER_BYTES, OM_QLAYER_INT32, OM_QLAYER_FLOAT } om_qlayer_output;

/* A convolution; of `shape`, what is about algorithms and epilogues is not used.  Its inputs are channels-last. */
typedef struct om_qlayer {
	om_layer shape;
	bool is_signed;           /* elements of the input are int8 */
	om_qlayer_output output;
} om_qlayer;

/* Operands of a call.  With s = the sum of (input * packed weight) + offset - w_zero * (sum of the input), the output is
 * s, or s * scale, or that rounded half to even, with y_zero added and saturated to [least, most].  Lists have an
 * element for each output channel: OM_QPANEL for each panel of a group. */
typedef struct om_qlayer_data {
	const void *x;
	const int8_t *weights;
	int32_t x_zero;           /* of the unsigned input: what is outside of the image */
	const int32_t *offset;
	const int32_t *w_zero;    /* of the packed weights; NULL: all are 0 */
	const float *scale;       /* NULL for int32 */
	int32_t y_zero, least, most;
	void *y;
	void *scratch;            /* of om_qlayer_workspace() bytes */
	om_workers *pool;
} om_qlayer_data;

/* How the work is divided: blocks of rows (output positions) of a group, times parts of its panels. */
typedef struct om_qlayer_plan {
	int64_t rows, block, blocks;
	int64_t panels, part, parts;
	int64_t depth;            /* groups of four filter elements */
	int64_t row_bytes;        /* of a copied row */
	bool is_direct;           /* rows are read where they are */
	uint64_t copies, per_worker;  /* bytes of scratch: of copied rows, and with their sums */
} om_qlayer_plan;

/* False if a size overflows. */
bool om_qlayer_plan_new(const om_qlayer *l, om_qlayer_plan *p);

/* Bytes of the packed weights, and of the panels alone, after which the sums are; UINT64_MAX if that overflows. */
uint64_t om_qlayer_weights(const om_layer *l);
uint64_t om_qlayer_panels(const om_layer *l);

/* Elements of lists by output channel. */
int64_t om_qlayer_channels(const om_layer *l);

/* Bytes of scratch for a number of workers; the same on every machine.  UINT64_MAX if that overflows. */
uint64_t om_qlayer_workspace(const om_qlayer *l, uint32_t workers);

/* Pack the weights w[channels_out of all groups][channels_in][kernel...] of a layer; with `is_transposed` they are
 * w[channels_in][channels_out], for one group and one position. */
void om_qlayer_pack(const om_layer *l, const void *w, bool is_signed, bool is_transposed, int8_t *packed);

typedef struct om_qlayer_kernels {
	void (*run)(const om_qlayer *l, const om_qlayer_data *d);
} om_qlayer_kernels;

/* Depthwise convolutions: a layer of one group with an input channel for each of `channels_out`, and channels_in 1. */
typedef struct om_qdepthwise_kernels {
	/* Lines [first, end) of the output for an image.  `wide` is [taps][om_qlayer_channels()]: weights minus zero points.
	 * Of the data, `weights` and `w_zero` are not used. */
	void (*lines)(const om_qlayer *l, const om_qlayer_data *d, const int32_t *wide, int64_t image, int64_t first, int64_t end);
} om_qdepthwise_kernels;

#endif
