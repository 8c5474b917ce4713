/* Steps of a run. */
#ifndef OM_STEPS_H
#define OM_STEPS_H

#include "onnxmem/ir.h"

/* The innermost op that executes in `step`; NULL for the end of the graph.  Valid after om_timeline(). */
const om_op *om_op_at_step(const om_prog *p, uint32_t step);

#endif
