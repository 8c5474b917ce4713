/* SPDX-License-Identifier: Apache-2.0 */
/* A map from strings to pointers: open addressing, keys not copied.  Slots have the hashes of their keys, so that the text of
 * another key is seldom read. */
#ifndef OM_MAP_H
#define OM_MAP_H

#include <stdint.h>

#include "onnxmem/arena.h"

typedef struct om_map {
	om_arena *mem;
	struct om_map_slot { const char *key; void *value; uint64_t hash; } *slot;
	size_t n, cap;
} om_map;

/* The hash of a key: 64-bit FNV-1a. */
uint64_t om_map_hash(const char *key);

om_map om_map_new(om_arena *mem);
/* NULL if the key is absent. */
void *om_map_get(const om_map *m, const char *key);
/* Replaces the previous value of the key. */
void om_map_set(om_map *m, const char *key, void *value);

#endif
