/* The packer: buffers with lifetimes in, offsets out.
 *
 * It knows no operator, no tensor and no ONNX, and is usable alone: by another
 * converter for its own buffers, or for a problem read from a file.
 */
#ifndef OM_PACK_H
#define OM_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "onnxmem/arena.h"

/* Bytes [from, to) of a buffer, in use in steps [lower, upper): `upper` and
 * `to` are exclusive.  `to` 0, with `from` 0, means all bytes of the buffer. */
typedef struct om_interval {
	uint32_t lower, upper;   /* steps */
	uint64_t from, to;       /* bytes of the buffer */
} om_interval;

enum { OM_OFFSET_FREE = -1 };

/* Instead of the number of a pool. */
#define OM_POOL_ANY UINT32_MAX

/* Some bytes that want a place. */
typedef struct om_buffer {
	const char *name;        /* for messages; may be NULL */
	uint64_t bytes;          /* 0: never overlaps anything, gets offset 0 */
	uint64_t align;          /* a power of two; 0 or 1: none */
	const om_interval *live; /* see below; at least one */
	uint32_t nlive;          /* how many */
	int64_t fixed;           /* offset that it must have, or OM_OFFSET_FREE */
	uint32_t fixed_pool;     /* pool that it must lie in, or OM_POOL_ANY; 0 where there is one */
	uint64_t access_bytes;           /* bytes moved to and from it; counts where there are pools */
	uint64_t offset;         /* out: from the start of its pool */
	uint32_t pool;           /* out; om_pack() leaves it alone */
} om_buffer;

/* When, and which part of, a buffer is in use.  Intervals are sorted by `lower`,
 * none is empty, and two that overlap in time are disjoint in bytes.  So a
 * buffer is a rigid set of rectangles, steps by bytes: all of them move with
 * its one offset, and other buffers may lie in the bytes that it does not use
 * at the time.  That expresses
 *
 *   - a plain buffer: one interval;
 *   - one that is needed again later: several intervals of all bytes;
 *   - one of which only a part is still read: bytes 0 to 4096 in steps 3 to 5,
 *     then bytes 0 to 512 in steps 5 to 9;
 *   - buffers that have to lie one behind the other (the operands of a concat,
 *     each born at its own time): one buffer with an interval for each.
 *
 * Bytes that are in no interval still belong to the buffer: its end counts for
 * the height. */

/* Is there a proof? */
typedef enum om_pack_status {
	OM_PACK_OPTIMAL,         /* height equals a proven lower bound */
	OM_PACK_FEASIBLE,        /* a valid packing; the gap to the bound is open */
} om_pack_status;

/* How high a packing is, and how low any can be. */
typedef struct om_pack_result {
	uint64_t height;         /* bytes: the largest end of a buffer */
	uint64_t lower_bound;    /* bytes: no packing is lower */
	uint32_t bound_step;     /* a step at which the bound is alive */
	om_pack_status status;   /* is the height proven to be the least? */
	const char *strategy;    /* what found it: "size", "area", ... */
} om_pack_result;

/* Largest sum of bytes in use at one step, rounded up to the alignment only
 * where that is a proof.  O(n log n) for n intervals.  `step` may be NULL. */
OM_API uint64_t om_pack_bound(const om_buffer *buf, uint32_t n, uint32_t *step);

/* Give every buffer an offset.  Deterministic: depends on the problem alone,
 * not on names, addresses or time.  Refuses with OM_INVALID an alignment that
 * is no power of two, intervals that are empty, unsorted, outside of the buffer or
 * that overlap in time and bytes, fixed buffers that overlap, sums that
 * overflow. */
OM_API om_status om_pack(om_session *s, om_buffer *buf, uint32_t n, om_pack_result *result);

/* Check a packing: alignment, fixed offsets, no byte is used twice at a step,
 * all below `height`.  Shares no code with om_pack(). */
OM_API om_status om_pack_check(om_session *s, const om_buffer *buf, uint32_t n, uint64_t height);

/* ---- Whole problems: pools with limits, groups, interference lists. ---- */

/* A piece of memory.  All strings and arrays of a problem belong to the caller,
 * and have to live as long as it is looked at. */
typedef struct om_pool {
	const char *name;        /* for messages; may be NULL */
	uint64_t limit;          /* bytes; 0: none */
	uint64_t align;          /* of every buffer, or group, in it, beside its own; 0 or 1: none */
	om_pack_result result;   /* out: the packing of what lies in it */
} om_pool;

/* Buffers, as numbers, that lie one behind the other in this order: each starts
 * where the one before ends, whatever the alignment.  (Round bytes up where the
 * alignment would leave a hole; a group with a hole is refused.)  The first one
 * is aligned as the strictest of them.  A buffer is in one group at most; fixed
 * offsets and pools of its members have to agree. */
typedef struct om_pack_group {
	const uint32_t *member;  /* numbers of buffers */
	uint32_t n;              /* how many */
} om_pack_group;

enum { OM_PACK_NODES = 300000 };

/* Zero in all that is not needed. */
typedef struct om_problem {
	om_buffer *buf;          /* by number; the results are written into them */
	uint32_t n;              /* buffers */
	om_pool *pool;           /* at least one; the first is the fastest */
	uint32_t npool;          /* how many */
	const om_pack_group *group; /* NULL: none */
	uint32_t ngroup;         /* how many */
	/* Which buffers may not overlap: those in use at the same step; or, where
	 * `by_pairs`, those in this list, in any order, each pair once or more.
	 * Lifetimes are not looked at then, and may be missing. */
	bool by_pairs;
	const uint32_t (*pair)[2]; /* numbers of buffers */
	uint64_t npair;          /* how many */
	uint64_t proven;         /* bytes: a lower bound that the caller can prove, for one pool */
	uint64_t nodes;          /* of each complete search; 0: OM_PACK_NODES, then more while time is left */
	double seconds;          /* 0: no clock is read, and the result depends on the problem alone */
} om_problem;

/* Give every buffer a pool and an offset.
 *
 * A buffer without a fixed pool goes to the first one that has room, the hottest
 * for their size first; what is hot, but fits nowhere else, may have to make
 * room for others.  That order is not proven to be the best, but where limits
 * are met at all, up to some ten buffers, it is found out.  Then each pool is
 * packed as low as possible: om_pool.result says how low that is for the buffers
 * that are in it.
 *
 * OM_BUDGET when a limit is not met: the message names the pool, its limit, the
 * step that needs most and the largest buffers there.  The buffers then have the
 * offsets and pools of a packing that is valid but for limits; results say how
 * much it takes.
 * OM_INVALID for what om_pack() refuses, and for no pools, numbers that are out
 * of range, a pair of a buffer with itself, groups as above.
 *
 * A first packing takes O(n log n + overlaps) steps; by pairs O(n log n + pairs
 * log pairs).  What follows is bounded by `nodes`, a fixed number of tries, and
 * `seconds`, which is looked at between tries and every few thousand nodes: a
 * valid packing is there after the first pass, however short the time.  Memory is
 * O(n), O(n + pairs) by pairs, beside what is alive at one step: about 400 bytes
 * a buffer and 8 a pair. */
OM_API om_status om_pack_solve(om_session *s, om_problem *problem);

/* Check what om_pack_solve() promises: pools and limits, alignment, fixed places,
 * groups back to back, no byte used twice, results that say what is there.
 * Shares no code with it. */
OM_API om_status om_pack_check_problem(om_session *s, const om_problem *problem);

#endif
