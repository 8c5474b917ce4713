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

/* The regions, and the program before and after. */
typedef struct om_tiling {
	uint64_t before, after;   /* arenas: untiled, and tiled before the ops are ordered; equal if nothing was tiled */
	uint32_t ops_before, ops_after; /* ops of the graph that run */
	double flops_before, flops_after; /* their work, movement included */
	om_tiled_region *region; /* in order */
	uint32_t n;              /* how many */
	const char *highest;     /* the op of the highest step outside of all regions; NULL: there is none */
	uint64_t highest_bytes;  /* estimated bytes of that step */
	const char *why;         /* why it is in none, a phrase */
	om_tiled_copy *copy;     /* in order */
	uint32_t ncopy;          /* how many */
} om_tiling;

#ifdef __cplusplus
}
#endif

#endif
