/* SPDX-License-Identifier: Apache-2.0 */
/* Register tiles of layers: some rows of the output by some vectors of its channels, with the sums in registers
 * over the whole depth.
 *
 * A row is read where it lies: for each tap, a position in the kernel, there is a pointer for each row.  The sums
 * of a row are computed in the order of the depth whatever tile it belongs to. */
#ifndef OM_LAYER_TILE_H
#define OM_LAYER_TILE_H

#include "kernels/cpu/epilogue.h"
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
	int64_t from;             /* first of the k floats in each row; `weights` begins there */
	/* Weights that later tiles read and this one prefetches, `step` floats for each of k; 0: none.  Those of a tap are at its
	 * offset if they are sliced, a part of the depth; else they follow those of the tap before. */
	const float *ahead;
	int64_t step;
	bool is_sliced;
	float *c;                 /* column 0 of the group, in the first row */
	int64_t c_row;            /* floats between rows of c and of residual */
	const float *bias;        /* from column 0 on; NULL: none */
	const float *residual;    /* as c; NULL: none */
	bool has_halves;          /* the last columns may be half a vector */
	om_act act;               /* HardSwish or LeakyRelu, without a clamp; OM_ACT_NONE: none, or the clamp */
	float alpha;              /* of LeakyRelu */
	bool clamps;
	float low, high;
};

/* Compute columns [first, first + n) of `rows` rows, at most TILE_ROWS.  `first` is a multiple of OM_PANEL. */
void OM_TABLE(om_tile_run)(const struct om_tile *t, int64_t rows, int64_t first, int64_t n);

/* Run a layer by Winograd's algorithm. */
void OM_TABLE(om_layer_winograd)(const om_layer *l, const om_layer_data *d, const om_layer_plan *p);

/* Does a layer have tiles of half a vector? */
INLINE bool
has_halves(const om_layer *l)
{
	return l->halves == OM_HALVES_IF_FASTER ? HALVES_ARE_FASTER : l->halves == OM_HALVES_ALWAYS;
}

/* Rows of the next tile if `rest` are left: not few in the last one. */
INLINE int64_t
tile_rows_of(int64_t rest)
{
	return rest <= TILE_ROWS ? rest : rest < 2 * TILE_ROWS ? (rest + 1) / 2 : TILE_ROWS;
}

/* Tiles of so many rows. */
INLINE int64_t
tiles_of(int64_t rows)
{
	return rows / TILE_ROWS + (rows % TILE_ROWS != 0);
}

/* Tile `i` of `n` fetches its share of the next panel of weights, of `depth` rows or, sliced, so many a tap, into a near cache, while the same weights are applied to all
 * of them: the memory is busy all the time, not for the first tile alone. */
INLINE void
set_ahead(struct om_tile *t, int64_t depth, const float *next, int64_t i, int64_t n)
{
	const int64_t runs = OM_PANEL / (OM_NV * VL), share = runs * depth;
	const int64_t step = MOST(1, LEAST(OM_PANEL / (runs * n), 64 / (int64_t)sizeof(float)));
	const bool is_fetched = i * step * runs >= OM_PANEL;

	t->ahead = next + i * step * share;
	t->step = is_fetched ? 0 : step;
}

#endif
