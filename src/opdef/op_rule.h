/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions of operators by rules: see om_prog_op_rule(). */
#ifndef OM_OP_RULE_H
#define OM_OP_RULE_H

#include "onnxmem/opdef.h"

/* Is the definition of `op` a rule? */
bool om_op_has_rule(const om_op *op);

/* Define ops that were added since the rules of the program were given. */
om_status om_op_rules_apply(om_session *s, om_prog *p);

#endif
