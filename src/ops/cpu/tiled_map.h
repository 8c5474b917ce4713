/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise computations as a list of stages over tiles of the output.
 *
 * A stage is a function of src/kernels/cpu/elementwise.def; its operands are inputs, which are broadcast, and
 * results of earlier stages.  The last stage gives the output.  All stages of a tile are computed before the next
 * tile, so that results between them stay in the cache; the output is written by the last stage only, after the
 * inputs of the tile were read, so that it may lie over any input that is not broadcast. */
#ifndef OM_TILED_MAP_H
#define OM_TILED_MAP_H

#include "kernels/cpu/elementwise.h"
#include "onnxmem/kernel.h"

enum {
	OM_TILE = 1024,           /* elements of a tile */
	OM_MAP_OPERANDS = 96,     /* the most inputs and stages of a map */
};

/* Operands below `nin` are inputs, operand nin + j is the result of stage j. */
typedef struct om_stage {
	enum om_map_kind kind;
	uint32_t x, y;            /* y is x for functions of x alone */
	float p[2];
	uint32_t to;              /* set by om_tiled_map_finish(): the buffer for the result */
} om_stage;

typedef struct om_tiled_map om_tiled_map;

/* A map with `nin` inputs, which are those of the op, allocated from c->mem.  The caller sets all stages
 * and inputs, then calls om_tiled_map_finish(). */
om_tiled_map *om_tiled_map_new(om_op_context *c, uint32_t nin, uint32_t nstage);
om_stage *om_tiled_map_stages(om_tiled_map *m);

/* Input `k` has shape `s`, and is broadcast to the output. */
void om_tiled_map_input(const om_op_context *c, om_tiled_map *m, uint32_t k, const om_shape *s);

/* Divides the output into tiles and assigns buffers. */
void om_tiled_map_finish(om_op_context *c, om_tiled_map *m);

/* Callbacks of kernels whose state is a map. */
uint64_t om_tiled_map_workspace(const om_op_context *c);
om_status om_tiled_map_run(om_op_context *c);

#endif
