/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a plan is valid in every order: the accesses observed by the simulation in verify_plan.c
 * are checked against the data dependences of the program.
 */
#ifndef OM_VERIFY_PARTIAL_ORDER_H
#define OM_VERIFY_PARTIAL_ORDER_H

#include "onnxmem/plan.h"

/* A content is identified by its writer: the id of a value or, for the scratch of an op, the id of the
 * op plus the number of values.  An op is identified by its position in the graph; the position after
 * the last one is the end of the graph. */
typedef struct om_parallel_check om_parallel_check;

/* `streams`: of the workers that the plan is for, which order its ops and were checked; NULL: data alone do. */
om_parallel_check *om_parallel_check_new(om_session *s, const om_prog *p, const om_worker_streams *streams, om_arena *mem);

/* Record that op `node` reads or writes bytes [from, to) of a content. */
void om_parallel_check_touch(om_parallel_check *f, uint32_t node, uint32_t owner, uint64_t from, uint64_t to);

/* Record that op `node` writes content `by` over these bytes of content `owner`, all of whose accesses
 * are recorded already. */
void om_parallel_check_overwrite(om_parallel_check *f, uint32_t node, uint32_t by, uint32_t owner, uint64_t from,
	uint64_t to);

/* Why two ops must keep their order. */
typedef enum om_order_reason {
	OM_ORDER_COLLECTIVES,    /* both exchange data with other ranks */
	OM_ORDER_DATA,           /* the one reads what the other computes */
	OM_ORDER_ALONE,          /* one of them runs alone */
} om_order_reason;

/* Record that `first` and `then` must keep their order. */
void om_parallel_check_order(om_parallel_check *f, uint32_t first, uint32_t then, om_order_reason why);

/* OM_BADPLAN, naming both ops and values, if bytes are overwritten by an op that may run before
 * another op that requires them. */
om_status om_parallel_check_run(om_parallel_check *f);

#endif
