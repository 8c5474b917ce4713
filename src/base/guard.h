/* Running out of memory: a way back.
 *
 * Code that takes memory from an arena never sees NULL.  Where there is none, om_alloc() goes back to
 * the innermost guard of its thread, which a function of the public interface has set:
 *
 *     om_status
 *     om_thing_new(om_session *s, int n, om_thing **out)
 *     {
 *             *out = NULL;
 *             OM_GUARDED(s, thing_new(s, n, out));
 *     }
 *
 * The guard frees all arenas that were made under it and still live, the oldest first, so that an
 * owner frees what it owns, and gives OM_MEMORY with a sentence.  What is no memory of an arena (a
 * file, a mapping, memory of malloc()) is handed to an arena by om_arena_defer(), unless nothing is
 * taken from an arena as long as it is held.  What lived before is left as it was found at that
 * moment: it can be freed, and what does not say that it is whole is not used again.
 *
 * Between the guard and what fails there may be none of another library's functions that keep
 * anything: protobuf-c is given NULL instead.
 */
#ifndef OM_GUARD_H
#define OM_GUARD_H

#include <setjmp.h>

#include "onnxmem/arena.h"

/* In a circle; alone: both are NULL. */
struct om_link {
	struct om_link *prev, *next;
};

struct om_guard {
	struct om_guard *outer;
	om_session *session;
	struct om_link arenas;   /* that were made under it, from the oldest on */
	jmp_buf back;
	size_t wanted;           /* bytes that there were not */
};

jmp_buf *om_guard_start(struct om_guard *g, om_session *s);
om_status om_guard_end(struct om_guard *g, om_status st);
om_status om_guard_failed(struct om_guard *g);

/* The last statement of a function that returns a status: `call`, under a guard.  `call` is a function,
 * as variables of the one that sets the guard are lost where they changed since. */
#define OM_GUARDED(s, call)                                                    \
	do {                                                                   \
		struct om_guard guard_;                                        \
		if (setjmp(*om_guard_start(&guard_, (s))))                     \
			return om_guard_failed(&guard_);                       \
		return om_guard_end(&guard_, (call));                          \
	} while (0)

/* Go back to the innermost guard; where there is none, return. */
void om_guard_fail(size_t wanted);
/* Hand it to the innermost guard, or take it away. */
void om_guard_keep(struct om_link *l);
void om_link_remove(struct om_link *l);

/* Memory for free(), of the session whose guard is the innermost: NULL where there is none, or the
 * session refuses. */
void *om_memory_zeroed(size_t n);
void *om_memory_aligned(size_t align, size_t n);

/* session.c: does it let `n` more bytes be taken? */
bool om_session_allows(om_session *s, size_t n);

#endif
