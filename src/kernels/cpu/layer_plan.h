/* SPDX-License-Identifier: Apache-2.0 */
/* How the work of a layer is divided: a function of its shapes, the same for every instruction set and number of
 * workers. */
#ifndef OM_LAYER_PLAN_H
#define OM_LAYER_PLAN_H

#include "kernels/cpu/layer.h"

/* Pieces for om_parallel_for(): blocks of rows (output positions) of a group, times parts of its panels. */
typedef struct om_layer_plan {
	int64_t rows;             /* in all: positions of all images */
	int64_t block;            /* rows of a block; of products, a multiple of 12 but for the last */
	int64_t blocks, parts;
	int64_t part;             /* panels of a part */
	int64_t taps, k;          /* floats of a tap, which are adjacent in the input */
	int64_t depth;            /* floats of a tap that are summed at once; the sums of such parts are added in y */
	bool is_direct;           /* row i of the product is row i of the input */
	bool by_tiles;            /* all panels are applied to a tile before the next one: they fit into the cache */
	/* If the input is channels-first: blocks are strips of lines of one image, which are interleaved first. */
	int64_t strip;            /* lines of the output */
	int64_t in[OM_LAYER_AXES];            /* the input of a strip, with its padding */
	/* If Winograd's algorithm is used: rows and blocks are of tiles. */
	int64_t tiles[2];                     /* of an image, along each axis */
	int64_t between_inputs, between_outputs;      /* floats between elements of transformed tiles */
	uint64_t outputs;                     /* bytes of scratch */
	/* Bytes of scratch: a row of zeros; for each worker, the strip or the transformed inputs, pointers and offsets. */
	uint64_t zeros, image, pointers, offsets, per_worker;
} om_layer_plan;

/* False if sizes overflow. */
bool om_layer_plan_new(const om_layer *l, om_layer_plan *p);

#endif
