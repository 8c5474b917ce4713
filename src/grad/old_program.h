/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that are too old for gradients. */
#ifndef OM_OLD_PROGRAM_H
#define OM_OLD_PROGRAM_H

#include "onnxmem/autodiff.h"

/* Whether the program has an opset below 16, or an IR version that does not support inputs with
 * defaults.  Such a program has to be converted before gradients are built. */
bool om_prog_is_old(const om_prog *p);

#endif
