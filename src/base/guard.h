/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery from running out of memory.
 *
 * Code that allocates from an arena never receives NULL.  If allocation fails, om_alloc() unwinds to
 * the innermost guard of its thread, which a function of the public interface has set:
 *
 *     om_status
 *     om_thing_new(om_session *s, int n, om_thing **out)
 *     {
 *             *out = NULL;
 *             OM_GUARDED(s, thing_new(s, n, out));
 *     }
 *
 * The guard frees all arenas that were created under it and are still live, oldest first, so that an
 * owner frees what it owns, and returns OM_MEMORY with a message.  Resources other than arena memory
 * (files, mappings, memory from malloc()) must be registered with om_arena_defer(), unless nothing is
 * allocated from an arena while they are held.  Objects that existed before are left in the state of
 * that moment: they can be freed, but must not be used again unless they are marked as complete.
 *
 * No function of another library that owns resources may be active between the guard and the failing
 * allocation: protobuf-c receives NULL instead.
 */
#ifndef OM_GUARD_H
#define OM_GUARD_H

#include <setjmp.h>

#include "onnxmem/arena.h"

/* Circular doubly linked list; both are NULL outside a list. */
struct om_link {
	struct om_link *prev, *next;
};

struct om_guard {
	struct om_guard *outer;
	om_session *session;
	struct om_link arenas;   /* created under this guard, oldest first */
	jmp_buf back;
	size_t wanted;           /* size of the failed allocation */
	int muted;              /* of the session, before (mute.h) */
};

jmp_buf *om_guard_start(struct om_guard *g, om_session *s);
om_status om_guard_end(struct om_guard *g, om_status st);
om_status om_guard_failed(struct om_guard *g);

/* The last statement of a function that returns a status: evaluates `call` under a guard.  `call` must
 * be a function call, because longjmp() leaves modified local variables indeterminate. */
#define OM_GUARDED(s, call)                                                    \
	do {                                                                   \
		struct om_guard guard_;                                        \
		if (setjmp(*om_guard_start(&guard_, (s))))                     \
			return om_guard_failed(&guard_);                       \
		return om_guard_end(&guard_, (call));                          \
	} while (0)

/* As om_guarded(), for what becomes a part of an object that was there before: if it succeeds, the arenas that were made and are
 * left are no enclosing guard's, as the object frees them.  Nothing may be allocated between its end and the moment in which
 * the object has them. */
om_status om_guarded_part(om_session *s, om_status (*run)(void *arg), void *arg);

/* Leave all guards of this thread, and enter them again: for what outlives the call that first needs it. */
struct om_guard *om_guard_suspend(void);
void om_guard_resume(struct om_guard *g);

/* Unwind to the innermost guard; returns if there is none. */
void om_guard_fail(size_t wanted);
/* Register an arena with the innermost guard; remove it from its guard. */
void om_guard_keep(struct om_link *l);
void om_link_remove(struct om_link *l);

/* The largest block of which the usual allocators keep some for each thread. */
enum { OM_SMALL_MEMORY = 1024 };

/* Allocate memory to be released with free(), or with om_aligned_free() if it is aligned, subject to the allowance of the session of
 * the innermost guard.  NULL if memory runs out or the session denies it. */
void *om_memory_zeroed(size_t n);
void *om_memory_aligned(size_t align, size_t n);

/* session.c: does the session permit allocating `n` more bytes? */
bool om_session_allows(om_session *s, size_t n);

#endif
