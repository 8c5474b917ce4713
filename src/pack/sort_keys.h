/* What is sorted again and again, for qsort(). */
#ifndef OM_SORT_KEYS_H
#define OM_SORT_KEYS_H

#include <stdint.h>

/* A number with two keys: large ones first, and where they are equal, small numbers. */
typedef struct om_rank {
	uint64_t major, minor;
	uint32_t id;
} om_rank;

static inline int
om_by_rank(const void *a, const void *b)
{
	const om_rank *x = a, *y = b;

	if (x->major != y->major)
		return x->major > y->major ? -1 : 1;
	if (x->minor != y->minor)
		return x->minor > y->minor ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* Plain numbers of 32 bits, small ones first. */
static inline int
om_by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

#endif
