/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between two reports, and which tensors make the difference. */
#ifndef OM_REPORT_DIFF_H
#define OM_REPORT_DIFF_H

#include "report/json.h"

/* The sizes that are compared. */
typedef enum om_size_kind {
	OM_SIZE_ARENA, OM_SIZE_BOUND, OM_SIZE_PEAK, OM_SIZE_WEIGHTS, OM_SIZE_IO, OM_SIZE_TOTAL, OM_SIZES
} om_size_kind;

/* A value in an arena, or the scratch of an op. */
typedef struct om_side_tensor {
	const char *name, *op, *type, *store;   /* as in the report */
	uint64_t bytes, first;   /* first: the step in which it begins to live */
	uint32_t other;          /* its place in the other list; UINT32_MAX: it is not there */
} om_side_tensor;

/* Storage that is live at the peak. */
typedef struct om_side_live {
	const char *name;
	uint64_t bytes;
	uint32_t tensor;         /* its place in the list of tensors; UINT32_MAX: it is not there */
} om_side_live;

/* One of the two reports. */
typedef struct om_side {
	const char *model;       /* the file's name */
	uint64_t size[OM_SIZES];
	const char *inputs;      /* their names and shapes, one after the other */
	bool has_step;           /* the peak is at one step: false for plans for any order */
	uint64_t peak_step;
	const char *peak_op, *peak_name;   /* "" at the end of the graph */
	om_side_live *live;      /* at the peak */
	size_t nlive;
	om_side_tensor *tensor;
	size_t ntensor;
	bool has_tensors;        /* false: the report does not list them */
} om_side;

/* A line of a list of differences: a tensor, before and after. */
typedef struct om_change {
	const char *was, *now;   /* its names; NULL: it is not there */
	const char *op, *type;   /* of the one that is there, the new one if both are; "" where not known */
	uint64_t before, after;  /* bytes; 0 where it is not there */
} om_change;

typedef struct om_changes {
	om_change *row;          /* those with the largest differences first */
	size_t n;
} om_changes;

typedef struct om_diff {
	const om_side *old, *now;
	om_changes peak;         /* of what is live at the peaks: the differences add up to that of the peaks */
	om_changes appeared, went, grew, shrank, renamed;   /* tensors; one that was renamed may have grown, too */
	om_changes unshared, shared; /* tensors that only before, or only now, are in the storage of others; bytes of their own */
	bool has_tensors;        /* both reports list them */
	unsigned width;          /* columns of the terminal; 0: unlimited */
	size_t moved;            /* least number of tensors, among those in both, without which the order is the same */
} om_diff;

/* Compare two objects of the schema "onnxmem-report/1".  OM_MALFORMED, with the name of the file, if one is not. */
om_status om_diff_new(om_session *s, const json_t *old, const char *old_path, const json_t *now, const char *now_path,
	om_arena *mem, om_diff **out);

void om_diff_text(const om_diff *d, om_arena *mem, FILE *to);
void om_diff_markdown(const om_diff *d, om_arena *mem, FILE *to);
om_status om_diff_json(const om_diff *d, om_session *s, FILE *to);

#endif
