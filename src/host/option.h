/* SPDX-License-Identifier: Apache-2.0 */
/* Options of passes; see onnxmem/pass.h. */
#ifndef OM_OPTION_H
#define OM_OPTION_H

#include "onnxmem/pass.h"

/* The value as a floating-point number in [0, 1e18]. */
om_status om_option_float(const om_run *r, const char *name, double *out);

#endif
