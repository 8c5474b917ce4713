/* SPDX-License-Identifier: Apache-2.0 */
/* What tiling did to a program: the data of the fact `tiling`, which the pass `tile` gives; see om_host_tile() in
 * onnxmem/pass.h. */
#ifndef OM_TILING_H
#define OM_TILING_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A region that runs in bands. */
typedef struct om_tiled_region {
	const char *first, *last; /* labels of its first and last op */
	const char *axis, *join; /* words: what is divided; how results become whole */
	uint32_t ops, bands, steps; /* ops that it had; bands; ops that it has now */
} om_tiled_region;

/* A value that is computed a second time, for readers that are far from the first ones. */
typedef struct om_tiled_copy {
	const char *value;       /* its name */
	uint32_t ops;            /* that run again for it */
	double flops;            /* of these */
} om_tiled_copy;

/* A step that is in no region, as it is estimated. */
typedef struct om_tiled_step {
	const char *op;          /* label of the op that runs; NULL: there is no such step */
	const char *why;         /* why it is in none, a phrase */
	uint64_t bytes;          /* in use while it runs */
} om_tiled_step;

/* A peak for which the search found regions, or that of the untiled program, as they are estimated. */
typedef struct om_tiled_peak {
	uint64_t bytes;          /* in use at the peak */
	uint32_t ops;            /* of the program with these regions */
	uint32_t regions, copies; /* how many; values that are computed twice */
} om_tiled_peak;

/* The regions, and the program before and after. */
typedef struct om_tiling {
	uint64_t before, after;   /* arenas: untiled, and tiled before the ops are ordered; equal if nothing was tiled */
	uint32_t ops_before, ops_after; /* ops of the graph that run */
	double flops_before, flops_after; /* their work, movement included */
	om_tiled_region *region; /* in order */
	uint32_t n;              /* how many */
	om_tiled_copy *copy;     /* in order */
	uint32_t ncopy;          /* how many */
	om_tiled_step *outside;  /* the highest steps that are in no region, the highest first */
	om_tiled_peak *peak;     /* that were found, the untiled one first, then lower and lower */
	uint32_t noutside, npeak; /* how many */
	uint64_t missed;         /* the highest peak that was tried and for which no regions were found; 0: none */
	om_tiled_step stop;      /* there: the first step after the regions that were found; `why` is about a peak of `missed` */
	uint64_t floor;          /* bytes: some op needs them even if it runs row by row along its best axis, or as a whole */
	const char *floor_op;    /* that op; NULL: no op needs any */
} om_tiling;

#ifdef __cplusplus
}
#endif

#endif
