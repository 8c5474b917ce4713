/* Register tiles of layers: some rows of the output by some vectors of its channels, with the sums in registers
 * over the whole depth.
 *
 * A row is read where it lies: for each tap, a position in the kernel, there is a pointer for each row.  The sums
 * of a row are computed in the order of the depth whatever tile it belongs to. */
#ifndef OM_LAYER_TILE_H
#define OM_LAYER_TILE_H

#include "kernels/cpu/layer_plan.h"
#include "kernels/cpu/simd.h"

enum {
	TILE_ROWS = OM_MR,        /* of the largest tile; divides 12 */
	MOST_TILE_ROWS = 12,      /* of any instruction set */
};

struct om_tile {
	const float *const *rows; /* [taps][number of rows] */
	const int64_t *offset;    /* [taps]: of the weights of a tap in a panel, in floats */
	int64_t taps, k;          /* k: floats of a tap */
	const float *weights;     /* the first panel of the group */
	int64_t panel;            /* floats of a panel */
	float *c;                 /* column 0 of the group, in the first row */
	int64_t c_row;            /* floats between rows of c and of residual */
	const float *bias;        /* from column 0 on; NULL: none */
	const float *residual;    /* as c; NULL: none */
	bool clamps;
	float low, high;
};

/* Compute columns [first, first + n) of `rows` rows, at most TILE_ROWS.  `first` is a multiple of OM_PANEL. */
void OM_TABLE(om_tile_run)(const struct om_tile *t, int64_t rows, int64_t first, int64_t n);

/* Run a layer by Winograd's algorithm. */
void OM_TABLE(om_layer_winograd)(const om_layer *l, const om_layer_data *d, const om_layer_plan *p);

/* Rows of the next tile if `rest` are left: not few in the last one. */
INLINE int64_t
tile_rows_of(int64_t rest)
{
	return rest <= TILE_ROWS ? rest : rest < 2 * TILE_ROWS ? (rest + 1) / 2 : TILE_ROWS;
}

#endif
