/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of workers: which op runs in which one, and what it waits for. */
#ifndef OM_ALLOC_WORKER_STREAMS_H
#define OM_ALLOC_WORKER_STREAMS_H

#include "onnxmem/assignment.h"

/* The schedule with as many streams as the request has: `s` itself, or a copy. */
const om_schedule *om_schedule_in_streams(const om_prog *p, const om_schedule *s, const om_plan_request *r, om_arena *mem);

#endif
