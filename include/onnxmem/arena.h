/* SPDX-License-Identifier: Apache-2.0 */
/* Arena allocation: objects that are freed together.
 *
 * Inside a function of this library, inside a pass and inside what om_guarded() calls, om_allocn() and
 * everything built on it never return NULL: when memory runs out, that function ends with OM_MEMORY
 * and the arenas made in it are freed.  Elsewhere they return NULL then, and the functions of
 * builder.h must not be called.
 */
#ifndef OM_ARENA_H
#define OM_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "onnxmem/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All memory from it is freed with it.  Not shared between threads. */
typedef struct om_arena om_arena;

/* Call `run` and return its status; OM_MEMORY with a message in the session when memory ran out in it.
 * In that case `run` did not return: the arenas made in it are freed, other resources leak, and
 * objects that it was changing may only be freed. */
OM_API om_status om_guarded(om_session *s, om_status (*run)(void *arg), void *arg);

/* A new arena; freed by om_arena_free(). */
OM_API om_arena *om_arena_new(void);
OM_API void om_arena_free(om_arena *a);   /* NULL is allowed */

/* Copies in the arena, of `n` bytes or of a string; a NUL is appended. */
OM_API void *om_memdup(om_arena *a, const void *p, size_t n);
OM_API char *om_strdup(om_arena *a, const char *s);
OM_API char *om_strndup(om_arena *a, const char *s, size_t n);
/* printf() to a string in the arena. */
OM_API char *om_printf(om_arena *a, const char *fmt, ...) OM_PRINTF(2, 3);

/* A zeroed object of a type. */
#define OM_NEW(a, type)      ((type *)om_allocn((a), sizeof(type), 1))
/* `n` zeroed objects of a type. */
#define OM_NEWN(a, type, n)  ((type *)om_allocn((a), sizeof(type), (n)))

/* `n` objects of `size` bytes, zeroed, aligned for any type; the product is checked for overflow. */
OM_API void *om_allocn(om_arena *a, size_t size, size_t n);

/* An array of `n` elements with capacity `*cap`: the same array, or a larger copy
 * with capacity for one more.  The old array stays in the arena until it is freed. */
OM_API void *om_grow(om_arena *a, void *array, size_t size, size_t n, size_t *cap);

/* Append an item to an array of length `n` and capacity `cap`; both are lvalues. */
#define OM_PUSH(a, array, n, cap, item)                                        \
	((array) = om_grow((a), (array), sizeof *(array), (n), &(cap)),        \
	 (array)[(n)++] = (item))

#ifdef __cplusplus
}
#endif

#endif
