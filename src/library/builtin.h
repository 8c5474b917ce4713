/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of this library. */
#ifndef OM_BUILTIN_H
#define OM_BUILTIN_H

#include "ir/operators.h"

extern const struct om_operators om_builtin;

#endif
