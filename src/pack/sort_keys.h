/* SPDX-License-Identifier: Apache-2.0 */
/* Sort keys and their comparison functions for qsort(). */
#ifndef OM_SORT_KEYS_H
#define OM_SORT_KEYS_H

#include <stdint.h>

/* An index with two keys: large keys first, ties by ascending index. */
typedef struct om_sort_key {
	uint64_t major, minor;
	uint32_t id;
} om_sort_key;

static inline int
om_compare_sort_keys(const void *a, const void *b)
{
	const om_sort_key *x = a, *y = b;

	if (x->major != y->major)
		return x->major > y->major ? -1 : 1;
	if (x->minor != y->minor)
		return x->minor > y->minor ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* Ascending numbers of 32 bits. */
static inline int
om_compare_u32(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

#endif
