/* SPDX-License-Identifier: Apache-2.0 */
/* Ops with bodies: shared by control_flow.c (If, Loop, Scan) and sequence_map.c (SequenceMap,
 * Scan of version 8). */
#ifndef OM_CONTROL_FLOW_H
#define OM_CONTROL_FLOW_H

#include "exec/exec_internal.h"

/* Copy buffers for values passed into, out of, or between iterations of a body. */
struct stage {
	struct room *room;
	om_tensor *t;
	om_kind *kind;
	void **was;               /* the address of a value before rotation */
	bool *gives;              /* the value gives its buffer to the one that it is carried to */
};

/* A scan output: one element per iteration, concatenated along an axis. */
struct series {
	om_value *out;            /* NULL: unused */
	struct room room;
	unsigned char *data;
	om_tensor item;           /* has type and shape of the first element */
	uint64_t each;            /* bytes of one element */
	int64_t outer;            /* number of contiguous runs of an element */
	uint64_t inner;           /* bytes of each run */
	int64_t fits;             /* capacity, in iterations */
	int64_t n, total;         /* iterations so far, and in total; total -1: not known yet */
	int axis;
	bool is_backward;
};

/* A rotation: the addresses of a value with a multi-view. */
struct rotation {
	const om_value *v;
	const om_plan_multi_view *view; /* NULL: not rotated */
	unsigned char **at;       /* addresses: nprologue of them, then one period */
	uint32_t phase;           /* of the next iteration */
};

/* How a Scan slices an input or concatenates an output: attributes, then geometry derived from shapes. */
struct direction {
	int64_t axis;
	bool is_backward;
	int at;                   /* the axis, normalized to be non-negative */
	int64_t n;                /* extent of the axis */
	om_shape shape;           /* of a slice, as are the following: */
	uint64_t bytes;
	int64_t outer;            /* number of contiguous runs */
	uint64_t inner;           /* bytes of each run */
};

struct om_mover;

struct flow {
	const om_block *branch[2];  /* of an If: else branch, then branch */
	struct stage stage;
	uint32_t nstage;
	struct rotation *rotation;
	uint32_t nrotation;
	struct rotation *output;      /* rotation of the outputs for carried values */
	struct series *series;
	uint32_t nseries;
	struct stage slices;      /* Scan inputs; copied if the plan ends their lifetime early */
	uint32_t nslices;
	struct direction *scanned;   /* [nslices] */
	struct direction *joined;    /* [nseries] */
	bool makes_objects;          /* its bodies compute strings or objects */
	uint64_t limit;              /* bytes of these at which they are compacted, in the current run */
};

/* Copy the tensor of `v` into stage `k`; an object is shared. */
om_status om_stage_put(om_exec *e, struct stage *st, uint32_t k, const om_value *v, const om_tensor *t);
/* Stage results [from, from + n) of a body. */
om_status om_control_flow_stage(om_exec *e, struct stage *st, const om_block *b, uint32_t from, uint32_t n);
/* Assign staged tensors to the values `to`; NULL entries are skipped. */
om_status om_control_flow_put(om_exec *e, om_value *const *to, const struct stage *st, uint32_t n);
void om_control_flow_poison(om_exec *e, uint32_t step);

/* scan_outputs.c: called before the first iteration; after each iteration, with the results of
 * the body starting at `from`; after the last. */
void om_series_start(struct flow *f, om_value *const *out, uint32_t n);
om_status om_series_add_all(struct step *s, const om_block *b, uint32_t from);
om_status om_series_end_all(struct step *s, const om_block *b, uint32_t from);

/* The strings of the elements so far are in use: update their addresses. */
void om_series_move_all(struct flow *f, struct om_mover *m);

/* objects.c: strings and objects of a loop.  Call om_objects_enter() before the first iteration and
 * om_objects_leave() after the last.  Between two iterations of a loop that makes objects, if
 * om_objects_move_start() gives a mover, call the functions om_objects_move_*() for everything made by an
 * iteration that is still needed, then om_objects_move_end(): it frees the rest. */
void om_objects_enter(om_exec *e, struct flow *f);
void om_objects_leave(om_exec *e, const struct flow *f);
struct om_mover *om_objects_move_start(om_exec *e, const struct flow *f);
void om_objects_move_value(struct om_mover *m, const om_type *type, om_tensor *t);
void om_objects_move_strings(struct om_mover *m, om_string *s, uint64_t n);
/* The same for a tensor whose elements are such an object, too. */
void om_objects_move_item(struct om_mover *m, const om_type *type, om_tensor *t);
void om_objects_move_end(struct om_mover *m, struct flow *f);
/* May the iterations of `body` create strings or objects that can be moved? */
bool om_objects_any(const om_block *body);
/* A copy of a tensor whose elements are an object of the run. */
om_status om_objects_copy(om_exec *e, const om_tensor *from, om_tensor *to);

/* SequenceMap, and Scan of version 8. */
om_status om_each_new(struct step *s);
om_status om_batches_new(struct step *s);

#endif
