/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of a program; see onnxmem/assignment.h. */
#ifndef OM_SCHEDULE_H
#define OM_SCHEDULE_H

#include "onnxmem/assignment.h"

/* The schedule of the current block order, with the steps of om_timeline(). */
om_schedule *om_schedule_new(const om_prog *p, om_arena *mem);

/* The same, or the schedule of the current assignment, where that is still in the order of the program. */
const om_schedule *om_schedule_current(const om_prog *p, om_arena *mem);

/* A copy of `s` in which block `b` runs its ops in the order ops[b->id]: all of its ops,
 * NULL-terminated; the list is not copied.  NULL: in the order of `s`. */
const om_schedule *om_schedule_reorder(const om_prog *p, const om_schedule *s, om_op **const *ops,
	om_arena *mem);

#endif
