/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the values of a program: a hash table, in which values of different blocks may have
 * the same name. */
#ifndef OM_NAMES_H
#define OM_NAMES_H

#include "onnxmem/ir.h"

/* Add a value under its current name; remove it before the name changes. */
void om_names_add(om_prog *p, om_value *v);
void om_names_remove(om_prog *p, om_value *v);

/* `stem` or, if a value of the program has that name, `stem` with the first number appended that makes
 * it unique.  Allocated in the memory of the program. */
const char *om_names_fresh(om_prog *p, const char *stem);

#endif
