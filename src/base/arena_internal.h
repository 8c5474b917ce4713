/* Arenas: functions that only sources of the library call; see onnxmem/arena.h. */
#ifndef OM_ARENA_INTERNAL_H
#define OM_ARENA_INTERNAL_H

#include "onnxmem/arena.h"

/* Free the contents, keep the arena. */
void om_arena_clear(om_arena *a);

/* Call `release` with `arg` when the arena is freed or cleared, before its memory is; the last one
 * registered is called first.  For resources other than arena memory: files, mappings. */
void om_arena_defer(om_arena *a, void (*release)(void *arg), void *arg);

/* om_alloc() for untrusted sizes: NULL when out of memory. */
void *om_alloc_try(om_arena *a, size_t n);

#endif
