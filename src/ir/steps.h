/* The op of a step, and how ops are called in messages. */
#ifndef OM_STEPS_H
#define OM_STEPS_H

#include "onnxmem/ir.h"

/* The innermost op that executes in `step`; NULL for the end of the graph.  Valid after om_timeline(). */
const om_op *om_op_at_step(const om_prog *p, uint32_t step);

/* A label for `op`: its name, or that of its first output, or its type. */
const char *om_op_label(const om_op *op);

#endif
