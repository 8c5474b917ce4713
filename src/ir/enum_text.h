/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of enumerations of onnxmem/ir.h and onnxmem/assignment.h. */
#ifndef OM_ENUM_TEXT_H
#define OM_ENUM_TEXT_H

#include "onnxmem/assignment.h"

/* "forward", "backward", "update"; "" for none. */
const char *om_phase_text(om_phase phase);
om_phase om_phase_find(const char *text);   /* OM_NO_PHASE for any other text */

const char *om_target_text(om_target t);              /* "generic", "cpu" */

bool om_target_find(const char *text, om_target *out);  /* false: no such target */

#endif
