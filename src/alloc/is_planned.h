/* Which values a plan is about. */
#ifndef OM_IS_PLANNED_H
#define OM_IS_PLANNED_H

#include "onnxmem/opdef.h"
#include "onnxmem/plan.h"

/* Values that need no place in an arena: constants, what belongs to the caller,
 * what takes part in no run. */
bool om_value_is_placeless(const om_prog *p, const om_value *v);

/* Has a value that requires storage a size that is not known before the run? */
bool om_value_is_unplannable(const om_value *v);

/* Does the block take part in runs: is it the graph, or the body of an op that
 * does? */
bool om_block_is_reached(const om_prog *p, const om_block *b);

#endif
