/* Orders of execution that keep little alive at once.
 *
 * Ops that make and need storages in, an order out.  As the packer, this knows
 * no operator, no tensor and no ONNX, and is usable alone.
 *
 * A storage is alive from the op that makes it to the last that needs it.  While
 * an op runs, all that it needs and all that it makes are alive; where it may
 * compute a storage over one that nobody else needs any more, the two count
 * once.  So the bytes alive between two ops depend on the set of ops that ran
 * alone, not on their order.
 */
#ifndef OM_SCHEDULE_H
#define OM_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "onnxmem/arena.h"

/* Instead of the number of an op. */
#define OM_ORDER_NONE UINT32_MAX

/* Bytes that one op makes, and others need. */
typedef struct om_order_storage {
	uint64_t bytes;          /* of it */
	uint32_t maker;          /* the op that makes it; OM_ORDER_NONE: there from the start */
	bool live_out;              /* wanted at the end */
} om_order_storage;

/* `made` may be computed over `needed`, which has as many bytes.  An op computes
 * each over one of those that are named for it and dead otherwise. */
typedef struct om_inplace_pair {
	uint32_t made, needed;   /* numbers of storages */
} om_inplace_pair;

/* What an op waits for, needs and takes. */
typedef struct om_order_op {
	const uint32_t *after;   /* ops that come before this one, each of a smaller number */
	const uint32_t *use;     /* storages that it needs; its makers come before it, too */
	const om_inplace_pair *over;  /* by `made`; none is `needed` twice */
	const uint32_t *early;   /* of `use`: those it needs at its start, but not in its middle */
	uint32_t nafter, nuse, nover, ndies_early; /* how many of each */
	uint64_t begin;          /* bytes that it takes beside what is alive before it: all that
	                            it makes, and scratch */
	uint64_t middle;         /* the same, later on, when `early` may be dead; 0: never more */
} om_order_op;

/* Ops are numbered in an order that is legal: the one they came in. */
typedef struct om_order_problem {
	const om_order_op *op;             /* by number; the caller's, as all in it */
	const om_order_storage *storage;   /* by number */
	uint32_t nop, nstorage;            /* how many of each */
} om_order_problem;

/* How good an order is. */
typedef struct om_order_result {
	uint64_t given;          /* bytes: the peak of the order that the ops came in */
	uint64_t peak;           /* bytes: that of the order that was found */
	uint64_t lower_bound;    /* bytes: no order has a lower peak */
	uint64_t nodes;          /* sets of ops that were looked at */
	bool is_proven;          /* peak == lower_bound */
} om_order_result;

/* The peak of an order: [nop] numbers of ops. */
OM_API uint64_t om_order_peak(const om_order_problem *q, const uint32_t *order);

/* An order of lowest peak, as far as `nodes` sets of ops go; the order that the
 * ops came in where none is strictly better.  Deterministic: depends on the
 * problem and `nodes` alone.  Refuses with OM_INVALID numbers out of range and
 * ops that stand before what they come after. */
OM_API om_status om_order_solve(om_session *s, const om_order_problem *q, uint64_t nodes,
	uint32_t *order, om_order_result *result);

/* The order in which a search in breadth reaches the ops: one is activated when
 * all before it are done; the earliest activated comes next.  With `by_bytes`,
 * the one that frees most beyond what it makes. */
OM_API void om_order_bfs(const om_order_problem *q, bool by_bytes, uint32_t *order);

#endif
