/* SPDX-License-Identifier: Apache-2.0 */
/* More cases for operators that are computed in parts. */
#ifndef OM_SLICE_CASES_H
#define OM_SLICE_CASES_H

#include "walk.h"

/* Cases besides the recipes of the walk, random ones and those that are listed; NULL: there are none. */
recipe_fn *slice_cases_of(const om_opdef *row);
recipe_fn *slice_lines_of(const om_opdef *row);

#endif
