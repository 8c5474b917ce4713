/* Ops with bodies: what flow.c (If, Loop, Scan) and sequence_map.c (the others) share. */
#ifndef OM_CONTROL_FLOW_H
#define OM_CONTROL_FLOW_H

#include "exec/exec_internal.h"

/* Tensors on their way from one side to the other. */
struct stage {
	struct room *room;
	om_tensor *t;
	om_kind *kind;
	void **was;               /* where a value lay before it moved */
};

/* The rounds' elements of one output, joined along an axis. */
struct series {
	om_value *out;            /* NULL: nobody wants it */
	struct room room;
	unsigned char *data;
	om_tensor item;           /* the first one's shape */
	uint64_t each;            /* bytes of one */
	int64_t outer;            /* stretches that lie apart, each of */
	uint64_t inner;           /* so many bytes */
	int64_t fits;             /* rounds that there is room for */
	int64_t n, total;         /* rounds so far, and in all; total -1: not known yet */
	int axis;
	bool is_backward;
};

/* A value that moves with the rounds. */
struct turn {
	const om_value *v;
	const om_plan_multi_view *view; /* NULL: it does not */
	unsigned char **at;       /* where it may lie: nprologue places, then a period of them */
	uint32_t phase;           /* of the round that is next */
};

/* How a Scan goes through an input, or joins an output: its attributes, then what shapes make of them. */
struct direction {
	int64_t axis;
	bool is_backward;
	int at;                   /* the axis, counted from the front */
	int64_t n;                /* how long it is */
	om_shape shape;           /* of a slice: */
	uint64_t bytes;
	int64_t outer;            /* stretches that lie apart, each of */
	uint64_t inner;           /* so many bytes */
};

struct flow {
	const om_block *branch[2];  /* of an If: where its condition is false, and true */
	struct stage stage;
	uint32_t nstage;
	struct turn *turn;
	uint32_t nturn;
	struct turn *output;      /* of carried values */
	struct series *series;
	uint32_t nseries;
	struct stage slices;      /* copies of Scan's inputs that the plan lets die */
	uint32_t nslices;
	struct direction *scanned;   /* [nslices] */
	struct direction *joined;    /* [nseries] */
};

/* Keep a copy of the tensor that `v` is, or its object. */
om_status om_stage_put(om_exec *e, struct stage *st, uint32_t k, const om_value *v, const om_tensor *t);
/* Results [from, from + n) of a body. */
om_status om_control_flow_stage(om_exec *e, struct stage *st, const om_block *b, uint32_t from, uint32_t n);
/* What is kept becomes these values; NULL: nobody wants it. */
om_status om_control_flow_put(om_exec *e, om_value *const *to, const struct stage *st, uint32_t n);
void om_control_flow_poison(om_exec *e, uint32_t step);

/* scan_outputs.c: before the first round; behind each one, with what its results are from
 * `from` on; behind the last. */
void om_series_start(struct flow *f, om_value *const *out, uint32_t n);
om_status om_series_add_all(struct step *s, const om_block *b, uint32_t from);
om_status om_series_end_all(struct step *s, const om_block *b, uint32_t from);

/* SequenceMap, and Scan of version 8. */
om_status om_each_new(struct step *s);
om_status om_batches_new(struct step *s);

#endif
