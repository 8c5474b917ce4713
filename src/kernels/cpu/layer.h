/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and products with packed weights.
 *
 * Images are channels-last.  Weights are packed into panels of OM_PANEL output channels: for each group and each
 * panel of it a matrix whose rows are the filter elements (position in the kernel, then input channel) and whose
 * columns are the output channels, zero after the last one.  For Winograd's algorithm there is such a matrix for
 * each element of the transformed tile, with the channels of a position of the leading axis as rows; panels of an
 * element follow each other.  The formats are the same on all machines. */
#ifndef OM_LAYER_H
#define OM_LAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/parallel.h"
#include "kernels/cpu/epilogue.h"

enum { OM_PANEL = 32, OM_LAYER_AXES = 3 };

/* Winograd's algorithm computes tiles of 4 by 4 or of 2 by 2 outputs. */
typedef enum om_layer_algorithm { OM_LAYER_GEMM, OM_LAYER_WINOGRAD4, OM_LAYER_WINOGRAD2 } om_layer_algorithm;

/* Are the last output channels computed as half a vector?  No element depends on it. */
typedef enum om_layer_halves { OM_HALVES_IF_FASTER, OM_HALVES_ALWAYS, OM_HALVES_NEVER } om_layer_halves;

/* A convolution.  A matrix product is one with a kernel of size 1 and a row for each position. */
typedef struct om_layer {
	int64_t batch, group;
	int64_t channels_in, channels_out;    /* of a group */
	/* Spatial axes; images with fewer have leading ones of size 1. */
	int64_t in[OM_LAYER_AXES], out[OM_LAYER_AXES], kernel[OM_LAYER_AXES];
	int64_t stride[OM_LAYER_AXES], dilation[OM_LAYER_AXES], begin[OM_LAYER_AXES];
	bool is_channels_first;               /* the input alone; for one group, by OM_LAYER_GEMM */
	om_layer_algorithm algorithm;
	int64_t block;                        /* percent: the size of blocks of rows, and so of scratch; 0: 100.  No element
						 depends on it */
	om_layer_halves halves;
	om_epilogue epilogue;
} om_layer;

/* Operands of a call: y = act(conv(x) + bias + residual). */
typedef struct om_layer_data {
	const float *x, *weights;
	const float *bias;                    /* by output channel; NULL: none */
	const float *residual;                /* like y, may be y; NULL: none */
	float *y;
	void *scratch;                        /* of om_layer_workspace() bytes */
	om_workers *pool;
} om_layer_data;

/* Floats of the packed weights; UINT64_MAX if that overflows. */
uint64_t om_layer_weights(const om_layer *l);

/* Bytes of scratch for a number of workers; the same on every machine.  UINT64_MAX if that overflows. */
uint64_t om_layer_workspace(const om_layer *l, uint32_t workers);

/* Weights to pack, at any address; they are read in order. */
typedef struct om_layer_source {
	const void *data;
	void (*consumed)(void *arg, uint64_t bytes);  /* called now and then: so many bytes will not be read again; NULL: never */
	void *arg;
} om_layer_source;

/* Pack the weights w[channels_out of all groups][channels_in][kernel...] of a layer. */
void om_layer_pack(const om_layer *l, om_layer_source w, float *packed);

/* Pack alpha * w[rows][columns], or alpha * w[columns][rows] if it is transposed, as a layer with that many
 * channels_in and channels_out. */
void om_layer_pack_matrix(om_layer_source w, int64_t rows, int64_t columns, bool is_transposed, float alpha,
	float *packed);

typedef struct om_layer_kernels {
	void (*run)(const om_layer *l, const om_layer_data *d);
} om_layer_kernels;

#endif
