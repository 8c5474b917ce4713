/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that passes have rewritten for an executor, as plans refer to them.
 *
 * Such a plan is stored in the model as it was: the document lists the passes, and the digest of the program that
 * they made.  Who reads it runs them again, and takes the plan if the digest is the same. */
#ifndef OM_LOWERED_H
#define OM_LOWERED_H

#include "onnxmem/plan.h"

/* Is the plan of `p` for such a program? */
bool om_prog_is_lowered(const om_prog *p);

/* The digest of a bound program, the order of its ops included: "sha256:<hex>".  Elements are included where they
 * are integers, which may decide shapes; floating-point ones are not, since folding rounds them as the instruction
 * set does. */
const char *om_prog_digest(const om_prog *p, om_arena *mem);

/* The ops of a block in the order in which they were created, which does not depend on how they were ordered later. */
om_op **om_ops_by_creation(const om_block *b, om_arena *mem);

#endif
