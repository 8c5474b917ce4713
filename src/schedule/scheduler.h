/* SPDX-License-Identifier: Apache-2.0 */
/* Execution orders of low peak memory.
 *
 * Input: ops that produce and use storages; output: an order.  Like the packer,
 * this is independent of operators, tensors and ONNX, and can be used alone.
 *
 * A storage is live from the op that makes it to the last op that uses it.  While
 * an op runs, all storages that it uses and all that it makes are live; if it may
 * compute a storage in place of one that has no later user, the two count once.  So
 * the bytes live between two ops depend on the set of executed ops alone, not on
 * their order.
 */
#ifndef OM_SCHEDULER_H
#define OM_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "onnxmem/arena.h"

/* In place of an op number: no op. */
#define OM_SCHEDULE_NONE UINT32_MAX

/* Bytes that one op makes and others use. */
typedef struct om_schedule_storage {
	uint64_t bytes;          /* its size */
	uint32_t producer;          /* the op that makes it; OM_SCHEDULE_NONE: live from the start */
	bool live_out;           /* live at the end */
} om_schedule_storage;

/* `made` may be computed in place of `needed`, which has the same size.  An op
 * computes each storage in place of one of those listed for it that are otherwise
 * dead. */
typedef struct om_inplace_pair {
	uint32_t made, needed;   /* indices of storages */
} om_inplace_pair;

/* The dependences and the memory of an op. */
typedef struct om_schedule_op {
	const uint32_t *after;   /* predecessors besides the producers of `use`, each with a smaller number */
	const uint32_t *use;     /* storages that it uses; their producers run before it */
	const om_inplace_pair *over;  /* sorted by `made`; no storage is `needed` twice */
	const uint32_t *early;   /* of `use`: those that are dead after the start of the op */
	uint32_t nafter, nuse, nover, ndies_early; /* lengths */
	/* bytes required at its start besides those live before: all that it makes, and workspace */
	uint64_t begin;
	uint64_t middle;         /* the same, later on, when `early` may be dead; 0: never more than `begin` */
} om_schedule_op;

/* Ops are numbered in a valid order: the original one. */
typedef struct om_schedule_problem {
	const om_schedule_op *op;             /* by number; this array and all in it belong to the caller */
	const om_schedule_storage *storage;   /* by number */
	uint32_t nop, nstorage;            /* lengths */
} om_schedule_problem;

/* The peak of an order. */
typedef struct om_schedule_result {
	uint64_t given;          /* bytes: the peak of the original order */
	uint64_t peak;           /* bytes: the peak of the resulting order */
	uint64_t lower_bound;    /* bytes: no order has a lower peak */
	uint64_t nodes;          /* search nodes: sets of ops that were expanded */
	bool is_proven;          /* peak == lower_bound */
} om_schedule_result;

/* The peak of an order, in bytes.  `order`: [nop] numbers of ops. */
uint64_t om_schedule_peak(const om_schedule_problem *q, const uint32_t *order);

/* Find an order of low peak with at most `nodes` search nodes; the original order
 * if no strictly better one is found.  Deterministic: depends on the problem and
 * `nodes` alone.  OM_INVALID for numbers out of range and ops that precede one of
 * their predecessors. */
om_status om_schedule_solve(om_session *s, const om_schedule_problem *q, uint64_t nodes,
	uint32_t *order, om_schedule_result *result);

/* Breadth-first order: an op is ready when all its predecessors have run; the op
 * that became ready first runs next.  With `by_bytes`, the ready op that frees most
 * bytes beyond those that it makes. */
void om_schedule_bfs(const om_schedule_problem *q, bool by_bytes, uint32_t *order);

#endif
