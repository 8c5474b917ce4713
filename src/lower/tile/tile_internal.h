/* SPDX-License-Identifier: Apache-2.0 */
/* What the sources of tiling share; see tile.h. */
#ifndef OM_TILE_INTERNAL_H
#define OM_TILE_INTERNAL_H

#include "lower/tile/tile.h"
#include "opdef/slice.h"

#define OM_TILE_NONE UINT32_MAX

/* ---- The program as a list of ops (tile_graph.c). ---- */

/* An op whose outputs have parts along an axis, or whose output is a sum over an axis of an input. */
typedef struct om_tile_rule {
	const om_op *op;
	om_op_context context;    /* of the op */
	bool is_sum;              /* a sum over input `index`; else output `index` has parts */
	uint32_t index;
	int axis;
	int64_t length;           /* of that axis */
	om_part *in;              /* [nin] for all of the axis: those with an axis are divided */
	om_part *out;             /* [nout] */
	int64_t *from, *to;       /* [length + 1][nin] first and last rows that a part needs which begins, ends there; the
	                             first entry is -1: not computed */
	om_arena *mem;
	struct om_tile_recent *recent; /* parts; NULL: none yet */
	struct om_tile_rule *next; /* others of the same op */
} om_tile_rule;

/* What the time of an op and of its parts depends on. */
typedef struct om_tile_work {
	om_cost cost;
	double constant;          /* bytes of constants, which each part reads as a whole */
	double time;              /* of the op, in nanoseconds; 0: it is a view, which does not run */
} om_tile_work;

/* The ops that run, and the storage of their values. */
typedef struct om_tile_graph {
	const om_prog *p;
	om_arena *mem;
	const om_tile_request *request;
	om_op **op;               /* in order */
	uint32_t nop;
	uint32_t *position;       /* by op id; OM_TILE_NONE: it does not run in the graph */
	uint32_t *view;           /* by op id: the input that output 0 is a view of; OM_TILE_NONE */
	bool **over;              /* by op id: [nout][nin] may the output be computed over the input; NULL: over none */
	uint32_t *root;           /* by value id: the value that it is a view of, or itself */
	uint32_t *made, *used;    /* by value id of a root: positions of the op that makes it, and of the last reader of it or
	                             its views; a result is read at `nop`.  A parameter is made at OM_TILE_NONE */
	uint64_t *live;           /* [nop + 1] bytes alive between ops */
	uint64_t *step;           /* [nop] bytes alive while an op runs */
	uint64_t *hash;           /* by position: of the op without its inputs and outputs */
	uint64_t *constant;       /* by value id: hash of a constant; 0: it is none */
	uint32_t *seen;           /* by value id: for om_tile_hash() */
	om_tile_rule **rule;      /* by op id */
	om_tile_work *work;       /* by position */
	double *time;             /* [nop + 1] of all ops before a position, in nanoseconds */
} om_tile_graph;

/* Is the value a constant?  Its elements may be left to the executor. */
bool om_tile_is_const(const om_value *v);
/* The model of a program. */
om_tile_graph *om_tile_graph_new(const om_prog *p, const om_tile_request *r, om_arena *mem);
/* Is the value read by ops from position `end` on, or a result? */
bool om_tile_is_read_after(const om_tile_graph *g, const om_value *v, uint32_t end);
/* Bytes of storage that exist before [first, end) and after it. */
uint64_t om_tile_through(const om_tile_graph *g, uint32_t first, uint32_t end);
/* The hash of an interval: equal for intervals that have the same regions. */
uint64_t om_tile_hash(om_tile_graph *g, uint32_t first, uint32_t end);

/* ---- What parts need (tile_rules.c). ---- */

/* The rule for parts of output `out` along `axis`; NULL: there are none. */
om_tile_rule *om_tile_rule_for(om_tile_graph *g, const om_op *op, uint32_t out, int axis);
/* The rule for a sum over `axis` of input `in`. */
om_tile_rule *om_tile_rule_sum(om_tile_graph *g, const om_op *op, uint32_t in, int axis);
/* Is input `k` computed, and read in parts? */
bool om_tile_is_divided(const om_tile_rule *r, uint32_t k);
/* The first row of input `k` that a part needs which begins at `lo`, and the row after the last that one needs which
 * ends at `hi`; below 0: there is no such part. */
int64_t om_tile_from(om_tile_rule *r, uint32_t k, int64_t lo);
int64_t om_tile_to(om_tile_rule *r, uint32_t k, int64_t hi);
/* The part [lo, hi) without how the op differs, until the next call for the same rule; NULL: there is none. */
const om_slice *om_tile_slice(om_tile_rule *r, int64_t lo, int64_t hi);
/* The part [lo, hi). */
bool om_tile_part(om_arena *mem, const om_tile_rule *r, int64_t lo, int64_t hi, om_slice *s);

/* ---- Copies (tile_copy.c). ---- */

/* Candidates for a peak of `most` that the step at `high` exceeds: copies of values without readers for a while, which have
 * late ones after position `from`, with the nearest first. */
om_tile_copy *om_tile_copies(om_tile_graph *g, uint32_t from, uint32_t high, uint64_t most, double most_flops, om_arena *mem,
	size_t *n);
/* Make one.  The sizes of the request become those of the changed program, allocated from `mem`. */
om_status om_tile_copy_make(om_session *s, om_prog *p, const om_tile_copy *c, om_arena *mem, om_tile_request *r);

/* ---- Regions (tile_region.c). ---- */

/* A reader of a value in the bands. */
typedef struct om_tile_reader {
	uint32_t band, input;     /* index in om_tile_region.band; input of that op */
} om_tile_reader;

/* A value of a region. */
typedef struct om_tile_value {
	const om_value *v;
	int axis;                 /* OM_WHOLE: it has none */
	bool is_banded;           /* computed in bands */
	bool is_source;           /* cut, but not computed in bands */
	bool is_whole;            /* some op needs all of it */
	bool is_out;              /* read after the region */
	bool is_before;           /* computed before the bands */
	om_tile_rule *expands;    /* the op that computes each reader's rows from a smaller value; NULL: it runs as others do */
	om_tile_reader *reader;
	size_t nreader, capreader;
} om_tile_value;

typedef struct om_tile_region {
	om_tile_graph *g;
	om_arena *mem;
	uint32_t first, end;
	om_tile_axis axis;
	om_tile_value *value;     /* values that are read or made in the region and are not constants */
	size_t nvalue, capvalue;
	uint32_t *of;             /* by value id: index + 1 in `value`; 0: none */
	om_tile_rule **band;      /* ops that run in bands, in order */
	bool *is_expansion;       /* by index in `band`: the op runs for each of its readers */
	size_t nband;
	const om_op **before;     /* ops that run before the bands */
	size_t nbefore, capbefore;
	int64_t longest;          /* rows of the longest source: no more bands make sense */
	const om_op *refused_at;  /* the op that was looked at last: if there is no region, that prevents it */
} om_tile_region;

/* Make the region [first, end); false if there is none, with the op that prevents it. */
bool om_tile_region_new(om_tile_graph *g, uint32_t first, uint32_t end, om_tile_axis axis, om_arena *mem, om_tile_region *r);
/* The entry of a value; NULL: it is not in the region, or a constant. */
om_tile_value *om_tile_value_of(const om_tile_region *r, const om_value *v);

/* The entry of the value whose rows are held for readers of `v`: `v` itself, or what its rows are computed from for each
 * reader. */
om_tile_value *om_tile_value_held(const om_tile_region *r, const om_value *v);

/* ---- The rows of each band (tile_rows.c, tile_bound.c). ---- */

/* `*done` [bands + 1][nband]: the rows that each op has computed before a band; false if an op does not get to its end. */
bool om_tile_rows(const om_tile_region *r, uint32_t bands, om_arena *mem, int64_t **done);
/* A lower bound of om_tile_sweep() of the region in `bands` bands; UINT64_MAX: it cannot be divided so. */
uint64_t om_tile_bound(om_tile_region *r, uint32_t bands, om_tile_join join, om_arena *mem);

/* ---- The ops of the bands (tile_code.c). ---- */

/* A value that exists while the region runs. */
typedef struct om_tile_piece {
	const om_value *of;       /* it is this part of that value */
	om_part part;
	uint64_t bytes;
	bool is_outside;          /* it is there before the region */
} om_tile_piece;

typedef enum om_tile_kind {
	OM_TILE_OP,               /* the op of the region, whole: before the bands */
	OM_TILE_PART,             /* a part of it */
	OM_TILE_PARTIAL,          /* a contribution to a sum */
	OM_TILE_COMBINE, OM_TILE_FINISH, /* two contributions; the sum of all */
	OM_TILE_CUT,              /* Slice */
	OM_TILE_CONCATENATE,      /* Concat */
	OM_TILE_PLACE_FIRST, OM_TILE_PLACE, /* the first part becomes a whole; a part is written into it */
} om_tile_kind;

/* An op of a tiled region. */
typedef struct om_tile_step {
	om_tile_kind kind;
	om_tile_rule *rule;       /* of the op; NULL for the others */
	const om_op *op;
	om_part part;             /* of output or input rule->index; of a cut: the part of the value */
	uint32_t nin, nout;
	uint32_t *in, *out;       /* pieces; OM_TILE_NONE: a constant, or none */
	uint64_t scratch;         /* bytes that are computed and cut off */
	uint32_t band;            /* that it belongs to, from 1; 0: it is before or after the bands */
} om_tile_step;

typedef struct om_tile_code {
	om_arena *mem;
	om_tile_piece *piece;
	size_t npiece, cappiece;
	om_tile_step *step;
	size_t nstep, capstep;
	uint32_t band;            /* of the steps that are added */
	uint32_t *result;         /* by index in om_tile_region.value: the piece that is the whole value after the region */
} om_tile_code;

/* The code of a region in `bands` bands; false if it cannot be divided so. */
bool om_tile_code_new(om_tile_region *r, uint32_t bands, om_tile_join join, om_arena *mem, om_tile_code *c);
/* The ops of the graph as they are. */
void om_tile_code_whole(const om_tile_graph *g, om_arena *mem, om_tile_code *c);
/* Do all elements of the part follow one another in the value? */
bool om_tile_is_contiguous(const om_value *v, int axis);

/* ---- Estimated times (tile_time.c). ---- */

/* Set `work` and `time` of a graph whose ops are listed. */
void om_tile_time_init(om_tile_graph *g);
/* Nanoseconds of the steps of a region. */
double om_tile_time(const om_tile_graph *g, const om_tile_code *c);

/* ---- Building (tile_build.c). ---- */

/* The op that computes `made` computes `v` instead, for all readers of either. */
void om_tile_take_name(om_value *v, om_value *made);

/* ---- Estimated peaks (tile_sweep.c). ---- */

/* The peak of the steps of a region, or for NULL of the whole graph, without storage that exists before and after it.  `at`, unless NULL, receives the
 * bytes of each step. */
uint64_t om_tile_sweep(const om_tile_graph *g, const om_tile_code *c, const om_tile_region *r, uint64_t *at);

/* ---- Paths of regions (tile_path.c). ---- */

/* What is known about regions, for all programs that are searched. */
typedef struct om_tile_known {
	om_arena *mem, *scratch;  /* the latter for one region at a time */
	struct om_tile_memo **slot; /* open addressing */
	size_t nmemo, nslot;
	uint64_t simulated, most; /* effort: spent, and the limit */
	double most_time;         /* of a path, in nanoseconds, if time is limited */
	bool is_limited, may_scatter;
	struct om_tile_paths *program; /* those with copies */
} om_tile_known;

/* A cut that can be reached. */
typedef struct om_tile_reached {
	bool is_reached, is_tiled; /* by a region */
	uint64_t ops;
	double time;              /* of these, in nanoseconds */
	uint32_t from;            /* the cut before */
	om_tile_choice choice;
	uint64_t peak;
} om_tile_reached;

/* The paths in a program: the given one, or a copy of it with values that are computed twice. */
typedef struct om_tile_paths {
	om_tile_known *known;
	om_arena *mem;
	const om_prog *p;
	om_tile_request request;  /* with the sizes of this program */
	om_tile_graph *g;
	uint32_t *cut;            /* positions at which regions begin and end */
	uint32_t ncut;
	uint64_t *hash;           /* [ncut][longest + 1] from a cut to the one so many after it; 0: not computed */
	uint64_t *through;        /* of the same, UINT64_MAX: not computed */
	om_tile_reached *at;      /* [ncut] the last path */
	om_tile_copy *copy;       /* that the program has */
	uint32_t ncopy;
	double flops;             /* of the copies */
	struct om_tile_paths *next; /* in om_tile_known.program */
} om_tile_paths;

/* Set the members that follow from the program and the request. */
void om_tile_paths_begin(om_tile_paths *s);
/* Find the path with the fewest ops, or, if time is limited, the one that takes the least, whose peak is at most `most`;
 * false: there is none, or one with too many ops, or that takes too long. */
bool om_tile_find_path(om_tile_paths *s, uint64_t most);
/* Was there one? */
bool om_tile_is_complete(const om_tile_paths *s);
/* Why a path to the last op is none that serves. */
const char *om_tile_why_incomplete(const om_tile_paths *s);
/* The last cut that it got to. */
uint32_t om_tile_last_reached(const om_tile_paths *s);
/* The first step from position `i` on that takes more than `most`. */
uint32_t om_tile_first_high(const om_tile_paths *s, uint32_t i, uint64_t most);
/* Store the regions of a complete path, and its peak. */
void om_tile_store_path(const om_tile_paths *s, om_arena *mem, om_tile_plan *out);
/* The lowest of the regions with op `i` that were simulated, and what it takes; false: there was none.  `*tried` receives
 * whether there was an interval with it at all. */
bool om_tile_lowest_region(const om_tile_paths *s, uint32_t i, om_tile_choice *c, uint64_t *bytes, bool *tried);

/* ---- Reasons (tile_explain.c). ---- */

/* A step of the program, and why it is in no region; texts are allocated from `mem`. */
om_tiled_step om_tile_refusal(const om_tile_paths *s, uint32_t i, om_arena *mem);
/* Set `outside` and `floor` of a plan for the program of `s`. */
void om_tile_explain(const om_tile_paths *s, om_arena *mem, om_tile_plan *out);

#endif
