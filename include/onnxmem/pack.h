/* SPDX-License-Identifier: Apache-2.0 */
/* The packer: buffers with lifetimes in, offsets out.
 *
 * It is independent of operators, tensors and ONNX, and can be used alone: by
 * another converter for its own buffers, or for a problem read from a file.
 */
#ifndef OM_PACK_H
#define OM_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "onnxmem/arena.h"

struct om_share_problem;
struct om_baseline_result;

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes [from, to) of a buffer, in use in steps [lower, upper): `upper` and
 * `to` are exclusive.  `to` 0, with `from` 0, means all bytes of the buffer. */
typedef struct om_interval {
	uint32_t lower, upper;   /* steps */
	uint64_t from, to;       /* bytes of the buffer */
} om_interval;

enum { OM_OFFSET_FREE = -1 };

/* In place of a pool number: any pool. */
#define OM_POOL_ANY UINT32_MAX

/* Bytes that require an offset. */
typedef struct om_buffer {
	const char *name;        /* for messages; may be NULL */
	uint64_t bytes;          /* 0: never overlaps anything, gets offset 0 */
	uint64_t align;          /* a power of two; 0 or 1: none */
	const om_interval *live; /* see below; at least one */
	uint32_t nlive;          /* how many */
	int64_t fixed;           /* a required offset, or OM_OFFSET_FREE */
	uint32_t fixed_pool;     /* a required pool, or OM_POOL_ANY; 0 for a single pool */
	uint64_t access_bytes;   /* bytes read and written; decides which buffers get the fastest pools */
	uint64_t offset;         /* out: from the start of its pool */
	uint32_t pool;           /* out; not written by om_pack() */
} om_buffer;

/* When a buffer is in use, and which bytes of it.  Intervals are sorted by `lower`,
 * none is empty, and two that overlap in time are disjoint in bytes.  So a
 * buffer is a rigid set of rectangles, steps by bytes: all of them move with
 * its one offset, and other buffers may use the bytes that it does not use at
 * the time.  That expresses
 *
 *   - a plain buffer: one interval;
 *   - a buffer with gaps in its lifetime: several intervals of all bytes;
 *   - a buffer of which only a part is still read: bytes 0 to 4096 in steps 3 to
 *     5, then bytes 0 to 512 in steps 5 to 9;
 *   - contiguous buffers (the operands of a concat, each with its own first
 *     step): one buffer with an interval for each.
 *
 * Bytes that are in no interval still belong to the buffer: its end counts for
 * the height. */

/* Is the height proven to be minimal? */
typedef enum om_pack_status {
	OM_PACK_OPTIMAL,         /* height equals a proven lower bound */
	OM_PACK_FEASIBLE,        /* a valid packing above the lower bound */
} om_pack_status;

/* The height of a packing, and a lower bound. */
typedef struct om_pack_result {
	uint64_t height;         /* bytes: the largest end of a buffer */
	uint64_t lower_bound;    /* bytes: no packing of these buffers is lower */
	uint32_t bound_step;     /* a step whose live bytes give the bound */
	om_pack_status status;   /* optimal when the height equals the bound */
	const char *strategy;    /* the heuristic that found it: "size", "area", ... */
	bool is_limited;         /* a search ended at its limit of nodes, work or time: with a higher one, the
				    height may be lower, or proven */
} om_pack_result;

/* The largest sum of bytes in use at one step, rounded up to the alignment only
 * where the bound stays valid.  O(n log n) for n intervals.  `step` may be NULL. */
OM_API uint64_t om_pack_bound(const om_buffer *buf, uint32_t n, uint32_t *step);

/* Assign an offset to every buffer.  Deterministic: depends on the problem alone,
 * not on names, addresses or time.  OM_INVALID for an alignment that is not a
 * power of two, intervals that are empty, unsorted, outside of the buffer or
 * that overlap in time and bytes, fixed buffers that overlap, sums that
 * overflow. */
OM_API om_status om_pack(om_session *s, om_buffer *buf, uint32_t n, om_pack_result *result);

/* Check a packing: alignment, fixed offsets, no byte used twice at a step, no
 * buffer above `height`.  OM_BADPLAN when it is invalid.  Shares no code with om_pack(). */
OM_API om_status om_pack_check(om_session *s, const om_buffer *buf, uint32_t n, uint64_t height);

/* ---- Whole problems: pools with limits, groups, interference lists. ---- */

/* A memory.  All strings and arrays of a problem belong to the caller, and have
 * to stay valid during the calls below. */
typedef struct om_pool {
	const char *name;        /* for messages; may be NULL */
	uint64_t limit;          /* bytes; 0: none */
	uint64_t align;          /* of every buffer, or group, in it, besides its own; 0 or 1: none */
	om_pack_result result;   /* out: the packing of its buffers */
} om_pool;

/* Buffers that are placed back to back in this order: each starts at the end of
 * the one before.  (The caller rounds sizes up if the alignment would require a
 * gap; a group with a gap is refused.)  The first member gets the strictest
 * alignment of all.  A buffer is in at most one group; the fixed offsets and
 * pools of the members have to be consistent. */
typedef struct om_pack_group {
	const uint32_t *member;  /* numbers of buffers */
	uint32_t n;              /* how many */
} om_pack_group;

enum { OM_PACK_NODES = 300000 };

/* A packing problem; initialized by OM_PROBLEM(). */
typedef struct om_problem {
	size_t size;             /* of this struct: set by OM_PROBLEM */
	om_buffer *buf;          /* results are written to their `offset` and `pool` */
	uint32_t n;              /* buffers */
	om_pool *pool;           /* at least one; the first is the fastest */
	uint32_t npool;          /* how many */
	const om_pack_group *group; /* NULL: none */
	uint32_t ngroup;         /* how many */
	/* Buffers that are in use at the same step may not overlap; with `by_pairs`,
	 * the pairs of this list instead, in any order, duplicates allowed.
	 * Lifetimes are ignored then, and may be missing. */
	bool by_pairs;
	const uint32_t (*pair)[2]; /* numbers of buffers */
	uint64_t npair;          /* how many */
	uint64_t proven;         /* bytes: a lower bound proven by the caller, for a single pool */
	uint64_t nodes;          /* per complete search; 0: OM_PACK_NODES, then more while time is left */
	double seconds;          /* 0: no clock is read, and the result depends on the problem alone */
} om_problem;

/* The initializer of om_problem; members that are not named are 0:
 * om_problem p = OM_PROBLEM(.buf = buf, .n = n, .pool = pool, .npool = 1). */
#define OM_PROBLEM(...) {.size = sizeof(om_problem), __VA_ARGS__}

/* Assign a pool and an offset to every buffer.
 *
 * A buffer without a fixed pool goes to the first pool that has space, buffers
 * with the most accesses per byte first; a buffer that fits in no other pool may
 * displace others, however often it is accessed.  That assignment is not proven
 * optimal, but for up to about ten buffers an assignment within the limits is
 * found if there is one.  Then each pool is packed as low as possible:
 * om_pool.result has its height and bound for the buffers that are in it.
 *
 * OM_BUDGET when a limit is exceeded: the message names the pool, its limit, the
 * peak step and the largest buffers there.  The buffers then have the offsets
 * and pools of a packing that is valid but for limits; the results have its
 * heights.
 * OM_USAGE: `problem` has no valid size.  OM_INVALID for what om_pack() refuses,
 * for a problem without pools, numbers out of range, a pair of a buffer with
 * itself, and invalid groups.
 *
 * A first packing takes O(n log n + overlaps) time; by pairs O(n log n + pairs
 * log pairs).  Improving it is bounded by `nodes`, a fixed number of attempts, and
 * `seconds`, which is checked between attempts and every few thousand nodes: the
 * first pass completes, however short the time.  Memory is O(n), by pairs
 * O(n + pairs), plus the buffers live at one step: about 400 bytes a buffer and
 * 8 a pair. */
OM_API om_status om_pack_solve(om_session *s, const om_problem *problem);

/* Check the result of om_pack_solve(): pools and limits, alignment, fixed offsets
 * and pools, contiguous groups, no byte used twice, stated heights and bounds.
 * Shares no code with it.  OM_BADPLAN when it is invalid. */
OM_API om_status om_pack_check_problem(om_session *s, const om_problem *problem);

/* A strategy for sharing memory, other than the packer, that the pass `pack` has as a baseline. */
typedef struct om_strategy {
	const char *name;        /* letters, digits and dashes; NULL ends a list */
	const char *brief;       /* how it shares memory: one line */
	bool parallel_safe;      /* it supports plans that are valid for every order */
	/* Writes the offset of every buffer; called by the pass. */
	om_status (*share)(om_session *s, const struct om_share_problem *p, struct om_baseline_result *r);
} om_strategy;

/* Strategy `k`; NULL after the last one.  libonnxmem has them, libonnxmem-pack does not. */
OM_API const om_strategy *om_strategy_at(size_t k);

#ifdef __cplusplus
}
#endif

#endif
