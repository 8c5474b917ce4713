/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: functions that only sources of the library call; see onnxmem/arena.h. */
#ifndef OM_ARENA_INTERNAL_H
#define OM_ARENA_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "onnxmem/arena.h"

/* Free the contents, keep the arena. */
void om_arena_clear(om_arena *a);

/* Call `release` with `arg` when the arena is freed or cleared, before its memory is; the last one
 * registered is called first.  For resources other than arena memory: files, mappings. */
void om_arena_defer(om_arena *a, void (*release)(void *arg), void *arg);

/* om_alloc() for untrusted sizes: NULL when out of memory. */
void *om_alloc_try(om_arena *a, size_t n);

/* A limit on the memory of several arenas together. */
struct om_budget {
	uint64_t left;         /* bytes that may still be taken */
	bool is_exceeded;      /* an allocation failed because of it */
};

/* Take the memory of an arena, which must be empty, from a budget, which must outlive it.  A failure is
 * one of memory: inside a guard, OM_MEMORY. */
void om_arena_limit(om_arena *a, struct om_budget *b);

/* om_allocn() of bytes: zeroed, aligned for any type. */
void *om_alloc(om_arena *a, size_t n);

/* ---- Contents that move, for a collector that copies what is reachable and frees the rest. ---- */

/* Addresses [from, to). */
struct om_address_range {
	uintptr_t from, to;
};

/* Bytes allocated since the arena was made or cleared. */
size_t om_arena_used(const om_arena *a);
/* Exchange the contents of two arenas; addresses of allocations stay valid.  Neither they nor
 * those joined below may have a budget. */
void om_arena_swap(om_arena *a, om_arena *b);
/* Move the contents of `from` to `to`. */
void om_arena_join(om_arena *to, om_arena *from);
/* The number of ranges that contain all allocations; they are stored in `range` unless it is NULL. */
size_t om_arena_ranges(const om_arena *a, struct om_address_range *range);

#endif
