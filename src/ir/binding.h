/* Questions about the symbols of a program. */
#ifndef OM_IR_BINDING_H
#define OM_IR_BINDING_H

#include "onnxmem/binding.h"

/* Is a dim of a value open and called `symbol`? */
bool om_prog_has_symbol(const om_prog *p, const char *symbol);

#endif
