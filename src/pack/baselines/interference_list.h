/* SPDX-License-Identifier: Apache-2.0 */
/* Interference of buffers in a plan that holds for every order. */
#ifndef OM_INTERFERENCE_LIST_H
#define OM_INTERFERENCE_LIST_H

#include <stdbool.h>
#include <stdint.h>

/* Which buffers interfere in some order.  Two buffers do not interfere if all ops that touch the one
 * complete before any op that touches the other starts; lifetimes in steps are compared only inside of
 * one op. */
typedef struct om_interference_list {
	const uint32_t (*pair)[2];   /* buffer indices; each pair once */
	uint64_t npair;          /* how many */
	uint64_t bound;          /* total bytes of a set of buffers that all interfere: no plan is smaller */
	bool is_heaviest;        /* no other such set is larger */
	uint32_t *peak;          /* the buffers of that set */
	uint32_t npeak;          /* how many */
} om_interference_list;

#endif
