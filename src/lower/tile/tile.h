/* SPDX-License-Identifier: Apache-2.0 */
/* Tiling: regions of a program that run in bands.
 *
 * A region is an interval of the ops of the graph.  Each value that is computed in it gets an axis, and the region runs
 * in bands along these axes: in every band, each op computes the new rows that its inputs allow, and the rows that a
 * later band still needs are kept.  So nothing is computed twice, and no value of the region exists as a whole except
 * its inputs and its results.  A result that is a sum over the axis is accumulated.
 *
 * The result is plain ONNX: the ops of the bands one after the other, with Slice, Concat and ScatterND.
 */
#ifndef OM_TILE_H
#define OM_TILE_H

#include "onnxmem/ir.h"
#include "onnxmem/tiling.h"

/* Which axes the results of a region are divided along. */
typedef enum om_tile_axis {
	OM_TILE_ROWS,             /* the first spatial axis of an image, the next to last of a volume, tokens, rows */
	OM_TILE_COLUMNS,          /* the last axis */
	OM_TILE_CHANNELS,         /* axis 1: of images with channels last, their rows */
	OM_TILE_SUM,              /* none: each result is a sum over the last axis, or axis 1 for a convolution */
	OM_TILE_AXES,
} om_tile_axis;

/* How the parts of a result become the result. */
typedef enum om_tile_join {
	OM_TILE_CONCAT,           /* all parts and the whole exist together, except along the outermost axis */
	OM_TILE_SCATTER,          /* each part is written into the whole at once */
	OM_TILE_JOINS,
} om_tile_join;

/* A region that runs in bands. */
typedef struct om_tile_choice {
	uint32_t first, end;      /* ops [first, end) of those of the graph that run, in order */
	om_tile_axis axis;        /* how its results are divided */
	om_tile_join join;        /* and become whole */
	uint32_t bands;           /* number of bands, at least 2 */
	uint32_t nstep;           /* ops that replace those of the region */
} om_tile_choice;

/* A word for the axis of a region of these ops. */
const char *om_tile_axis_text(om_op *const *op, const om_tile_choice *c);

/* A value that is computed a second time for its late readers, right before the first of them. */
typedef struct om_tile_copy {
	uint32_t reader;          /* id of that reader */
	uint32_t *value, nvalue;  /* ids of the value and of views of it that late readers read */
	uint32_t *op, nop;        /* ids of the ops that run again, in order */
	double flops;             /* of these */
} om_tile_copy;

/* What is required of a tiling. */
typedef struct om_tile_request {
	const uint64_t *bytes;    /* by value id: size in the arena; 0: it is elsewhere */
	uint64_t budget;          /* bytes: the fewest ops for a peak that is no higher; 0: the lowest peak */
	uint64_t most_ops;        /* limit of the ops of the tiled graph */
	double most_times;        /* limit of the estimated time, as a multiple of that of the program; 0: there is none */
	bool only_concat;         /* results become whole by Concat alone */
	uint64_t effort;          /* limit of the search, in ops of bands that are simulated */
	double most_flops;        /* limit of the work of copies; 0: nothing is computed twice */
} om_tile_request;

/* Regions for a peak, and the program that they are of. */
typedef struct om_tile_found {
	const struct om_tile_paths *of;
	om_tile_choice *choice;
	uint32_t n;
	uint64_t after;
} om_tile_found;

/* The result of a search. */
typedef struct om_tile_plan {
	om_tile_copy *copy;       /* made first, one after the other */
	uint32_t ncopy;           /* how many */
	om_tile_choice *choice;   /* disjoint, in order; of the program with the copies */
	uint32_t n;               /* how many; 0: none serves */
	uint64_t before, after;   /* estimated peaks: untiled, tiled */
	uint64_t simulated;       /* effort that was spent */
	bool is_limited;          /* the search ended at its effort */
	const struct om_tile_paths *of; /* the program that it was found in; it exists as long as the search */
	om_tile_found *found;     /* regions for higher and higher peaks from the last on, which is the result; those of other programs
	                             are of no use */
	size_t nfound, capfound;  /* how many */
	om_tiled_step *outside;   /* the highest steps outside of all regions */
	om_tiled_peak *peak;      /* that were found */
	size_t noutside, npeak, cappeak; /* how many */
	uint64_t missed;          /* the highest peak for which no regions were found */
	om_tiled_step stop;       /* there */
	uint64_t floor;           /* bytes that some op needs even row by row */
	const char *floor_op;     /* that op */
} om_tile_plan;

/* A search in `p`, whose shapes are known and constants folded.  The ops run in the order of the blocks.  Results are
 * allocated from `mem`; om_tile_searcher_end() releases the rest.  `p` and the request have to exist until then. */
typedef struct om_tile_searcher om_tile_searcher;
om_tile_searcher *om_tile_searcher_new(om_session *session, const om_prog *p, const om_tile_request *r, om_arena *mem);
void om_tile_searcher_end(om_tile_searcher *s);

/* Find regions that lower the peak and, if `may_copy` and the request allows it, values to compute twice.  What is known about
 * regions, and the plan without copies, serve both. */
om_status om_tile_search(om_tile_searcher *s, bool may_copy, om_tile_plan *out);

/* From now on search with another budget. */
void om_tile_search_budget(om_tile_searcher *s, uint64_t budget);

/* Set `outside` and `floor` of a plan: why its peak is not lower. */
void om_tile_search_explain(const om_tile_searcher *s, om_tile_plan *plan);

/* Make the copies of a plan in `p`: the program that it was made for, or a copy of it with the same ids.  The sizes of the
 * request are then those of the changed program. */
om_status om_tile_copy_all(om_session *s, om_prog *p, const om_tile_plan *plan, om_arena *mem, om_tile_request *r);

/* Divide products that are only cut into blocks of columns, such as packed queries, keys and values, into one product for
 * each block; `*count` receives their number.  It takes no more work, and gives the search more ways. */
om_status om_tile_unpack(om_session *s, om_prog *p, uint32_t *count);

/* Replace the regions of a plan in `p`, in which its copies were made. */
om_status om_tile_apply(om_session *s, om_prog *p, const om_tile_request *r, const om_tile_plan *plan);

#endif
