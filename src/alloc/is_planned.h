/* Which values a plan is about. */
#ifndef OM_IS_PLANNED_H
#define OM_IS_PLANNED_H

#include "onnxmem/opdef.h"
#include "onnxmem/plan.h"

/* Values that need no place in an arena: constants, what belongs to the caller,
 * what takes part in no run. */
bool om_value_is_placeless(const om_prog *p, const om_value *v);

#endif
