/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a run outside of arenas. */
#ifndef OM_RUN_MEMORY_H
#define OM_RUN_MEMORY_H

#include "alloc/op_facts.h"
#include "onnxmem/plan.h"

/* Bytes of weights, and of inputs and outputs in the memory of the caller, before there is a plan: an output that a
 * plan stores in the memory of an input counts, too. */
uint64_t om_bytes_outside_arenas(const om_prog *p, const om_op_facts *f);

/* By value id: inputs and outputs that om_bytes_outside_arenas() counts. */
const bool *om_io_outside_arenas(const om_prog *p, const om_op_facts *f, om_arena *mem);

/* What a limit of the total leaves for arenas; 0 if that is nothing. */
uint64_t om_bytes_left_for_arenas(const om_prog *p, const om_op_facts *f, uint64_t total);

#endif
