/* SPDX-License-Identifier: Apache-2.0 */
/* A model of the time that ops take: one core that computes, one that reads and writes, and a cost of each call.  It
 * does not depend on the machine, so neither do the plans that rest on it. */
#ifndef OM_OP_TIME_H
#define OM_OP_TIME_H

#include "onnxmem/opdef.h"

/* Nanoseconds of an op of this cost. */
double om_cost_time(const om_cost *cost);

/* Nanoseconds of an op: 0 for a view, which does not run. */
double om_op_time(const om_op *op);

#endif
