/* SPDX-License-Identifier: Apache-2.0 */
/* Which values a plan covers. */
#ifndef OM_IS_PLANNED_H
#define OM_IS_PLANNED_H

#include "ir/query.h"
#include "onnxmem/opdef.h"
#include "onnxmem/plan.h"

/* Does `v` require no placement in an arena, because it is a constant, is owned by the caller, or
 * takes part in no run? */
bool om_value_is_placeless(const om_prog *p, const om_value *v);

/* Does `v` require storage whose size is not known before the run? */
bool om_value_is_unplannable(const om_value *v);

#endif
