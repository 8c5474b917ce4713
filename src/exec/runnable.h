/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that can be executed. */
#ifndef OM_RUNNABLE_H
#define OM_RUNNABLE_H

#include "onnxmem/ir.h"

/* OM_UNSUPPORTED if a required op has no operator definition or no kernel; the message names
 * node, operator, domain and version of the first one.  Otherwise OM_OK. */
om_status om_prog_is_runnable(om_session *s, const om_prog *p);

#endif
