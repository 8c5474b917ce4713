/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of a program; see onnxmem/plan.h. */
#ifndef OM_BUFFERS_H
#define OM_BUFFERS_H

#include "pack/baselines/interference_list.h"
#include "onnxmem/plan.h"

/* The reason why a value of unknown size, or of `most` bytes at most unless 0, is not planned; NULL for a value of known size, or
 * one that requires no placement. */
const char *om_value_unplanned(const om_prog *p, const om_value *v, uint64_t most);

/* Fill in om_buffer.access_bytes: the bytes that ops read from and write to a buffer in a run.
 * Accesses in a body count once per iteration if the trip count is known. */
void om_buffers_count_accesses(const om_prog *p, const om_buffers *b);

/* How often the bodies of an op run, if that is known before the run, or what a Loop runs at most; else 1. */
uint64_t om_op_iterations(const om_op *op);

/* Set om_buffer.fixed_pool of the buffers of values that the request pins to an arena.  OM_USAGE if there is no such arena
 * or value, if the value is in no buffer, or if values of one buffer are pinned to two arenas. */
om_status om_buffers_pin(om_session *s, const om_prog *p, const om_buffers *b, const om_plan_request *r, om_arena *mem);

/* The same for the arenas of devices, if the program or the request has any: every value is in the arena of the device that
 * computes it.  OM_USAGE if there is none, or two. */
om_status om_buffers_on_devices(om_session *s, const om_prog *p, const om_buffers *b, const om_plan_request *r, om_arena *mem);

/* The pairs of buffers that interfere in some order.  See partial_order_interference.c for the cost; OM_MEMORY if that is too high. All parts
 * are allocated from `mem`. */
om_status om_buffers_interference(om_session *s, const om_prog *p, const om_buffers *b, om_arena *mem,
	om_interference_list *out);

#endif
