/* Memory with one owner and one end.
 *
 * In a function of this library, in a pass, and in what om_guarded() calls, om_alloc() and all that
 * builds on it never return NULL: where there is no memory, the function ends with OM_MEMORY, and
 * arenas that it made are freed.  Elsewhere they return NULL then, and what builds a program
 * (build.h) must not be called.
 */
#ifndef OM_ARENA_H
#define OM_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "onnxmem/status.h"

/* Everything that was taken from it ends with it.  Not shared between threads. */
typedef struct om_arena om_arena;

/* Call `run` and return its status; or OM_MEMORY, with a sentence in the session, where memory ran out
 * in it.  It did not come to its end then: arenas that were made in it are freed, memory that it
 * holds elsewhere is lost unless om_arena_defer() was told of it, and values that it was changing
 * are fit for being freed only. */
OM_API om_status om_guarded(om_session *s, om_status (*run)(void *arg), void *arg);

/* om_arena_free() ends it. */
OM_API om_arena *om_arena_new(void);
OM_API void om_arena_free(om_arena *a);   /* NULL is fine */
OM_API void om_arena_clear(om_arena *a);  /* forget everything in it, keep the arena */
/* Call `release` with `arg` when the arena ends or is cleared, before its memory goes; what was
 * deferred last comes first.  For what is no memory of an arena: files, mappings. */
OM_API void om_arena_defer(om_arena *a, void (*release)(void *arg), void *arg);

OM_API void *om_alloc(om_arena *a, size_t n);  /* zeroed, aligned for any type */
OM_API void *om_alloc_try(om_arena *a, size_t n);  /* the same for sizes that are not ours: NULL when out of memory */
/* Copies in the arena, of `n` bytes or of a text, a NUL behind it. */
OM_API void *om_memdup(om_arena *a, const void *p, size_t n);
OM_API char *om_strdup(om_arena *a, const char *s);
OM_API char *om_strndup(om_arena *a, const char *s, size_t n);
/* The parts of a text between any of the `marks`, in order, and `*n`, their number; empty
 * ones are left out.  The list and its parts lie in the arena. */
OM_API const char **om_split(om_arena *a, const char *text, const char *marks, size_t *n);
/* A text as printf() would write it, in the arena. */
OM_API char *om_printf(om_arena *a, const char *fmt, ...) OM_PRINTF(2, 3);

/* A zeroed thing of a type. */
#define OM_NEW(a, type)      ((type *)om_alloc((a), sizeof(type)))
/* `n` zeroed things of a type. */
#define OM_NEWN(a, type, n)  ((type *)om_allocn((a), sizeof(type), (n)))

/* `n` things of `size` bytes; the product is checked. */
OM_API void *om_allocn(om_arena *a, size_t size, size_t n);

/* An array of `n` things with room for `*cap`: the same or a larger copy with
 * room for one more.  The old copy stays in the arena until its end. */
OM_API void *om_grow(om_arena *a, void *array, size_t size, size_t n, size_t *cap);

/* Append an item to an array of `n` with room for `cap`; both are lvalues. */
#define OM_PUSH(a, array, n, cap, item)                                        \
	((array) = om_grow((a), (array), sizeof *(array), (n), &(cap)),        \
	 (array)[(n)++] = (item))

#endif
