/* SPDX-License-Identifier: Apache-2.0 */
/* Values that cannot have bytes in common, whatever is decided about storage; for lower bounds of arenas.
 *
 * Two values may have bytes in common if both may hold the bytes of a third one: by a view, as a sub-buffer, or by
 * being carried into, through or out of a body.  What an iteration computed is held only by what it passes on, so a
 * parameter has nothing in common with values of its own iteration by way of the previous one.  While an op computes,
 * an output may also lie over an input that is not read later, and over all that has bytes in common with that, where
 * the definition permits it.
 *
 * The set of values in the arena is given: results, inputs and what shares storage with them may be in memory of the
 * caller.
 */
#ifndef OM_DISJOINT_H
#define OM_DISJOINT_H

#include "onnxmem/plan.h"

/* What is known about the values of a program and a plan of it. */
typedef struct om_disjoint {
	const om_prog *p;
	const om_plan *plan;
	const om_assignment *a;
	const om_schedule *s;
	const om_op_facts *f;
	const om_live_interval *live; /* lifetimes before any decision about storage */
	om_arena *mem;
	uint32_t *set;           /* by value id: union-find of values that may have bytes in common */
	uint32_t *block;         /* the same, of values that may have an address in common with them in turn */
	bool *is_unaligned;      /* by root of `block`: some of them may be at any address */
	bool *is_unknown;        /* by value id: may share bytes with whatever is in the same set */
	bool *is_skipped;        /* by step: nothing is known about it */
	bool *is_outside;        /* by value id: not, or not always, in the arena */
	uint32_t *index;         /* by value id: of the output or the parameter that it is */
	const om_op **at;        /* by step: the op without bodies that runs there */
	const om_block **entry;  /* by step: the body of a Loop that starts there */
	const om_scratch **scratch; /* by op id */
	struct held **held;      /* by value id, once needed */
	uint64_t work;           /* values looked at */
	bool is_without;         /* some bodies never run, which are skipped: lifetimes may be too long */
	bool is_any_order;       /* what is read later is not known */
} om_disjoint;

/* Values needed at once, and those of them that were taken, as they cannot overlap. */
typedef struct om_moment {
	const om_value **v;      /* the values needed, in any order */
	size_t n, cap;
	struct taken {
		const om_value *v;
		uint32_t before; /* index + 1 of the one taken before it from the same set; 0: none */
	} *taken;
	size_t ntaken, captaken;
	uint32_t *last;          /* by root of `set`: index + 1 of the one taken last, if `since` is `now` */
	uint64_t *since, now;
	const om_value **made;   /* taken outputs of the op */
	size_t nmade, capmade;
} om_moment;

/* Everything about a plan of the schedule of `a`; allocated from `mem`, which must outlive it. */
om_disjoint om_disjoint_new(const om_prog *p, const om_assignment *a, const om_plan *plan, om_arena *mem);

/* A moment without values. */
om_moment om_moment_new(const om_disjoint *w);

/* Bytes that the values of `m` take at least.  Unless it is NULL, `op` is at work, and its scratch is counted.  The values
 * are sorted: the largest first, those of the same size in order of ids. */
uint64_t om_moment_bytes(om_disjoint *w, om_moment *m, const om_op *op);

/* The representative of a union-find. */
uint32_t om_disjoint_leader(uint32_t *parent, uint32_t v);

bool om_disjoint_is_branch(const om_op *op);
bool om_disjoint_is_loop(const om_op *op);

/* Does an op read `v` in this step? */
bool om_disjoint_is_read_at(const om_disjoint *w, const om_value *v, uint32_t step);

/* The last step before which the content of `v` is needed, where `last` is the last step of a range of its lifetime. */
uint32_t om_disjoint_last(const om_disjoint *w, const om_value *v, uint32_t last);

/* Rounded up to the alignment of the plan. */
uint64_t om_disjoint_rounded(const om_disjoint *w, uint64_t bytes);

/* Is the value in the arena, with at least one byte? */
bool om_disjoint_is_counted(const om_disjoint *w, const om_value *v);

#endif
