/* Memory of a run outside of arenas. */
#ifndef OM_RUN_MEMORY_H
#define OM_RUN_MEMORY_H

#include "alloc/op_facts.h"
#include "onnxmem/plan.h"

/* Bytes of weights, and of inputs and outputs in the memory of the caller, before there is a plan: an output that a
 * plan stores in the memory of an input counts, too. */
uint64_t om_bytes_outside_arenas(const om_prog *p, const om_op_facts *f);

#endif
