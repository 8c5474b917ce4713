/* The names of the values of a program: a hash table, in which values of different blocks may have
 * the same name. */
#ifndef OM_NAMES_H
#define OM_NAMES_H

#include "onnxmem/ir.h"

/* Enter a value under the name that it has; take it out before that changes. */
void om_names_add(om_prog *p, om_value *v);
void om_names_remove(om_prog *p, om_value *v);

/* `stem`, or where a value of the program has that name, `stem` with the first number after it that
 * makes a new one.  In the memory of the program. */
const char *om_names_fresh(om_prog *p, const char *stem);

#endif
