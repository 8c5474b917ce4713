/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about the symbols of a program. */
#ifndef OM_IR_BINDING_H
#define OM_IR_BINDING_H

#include "onnxmem/binding.h"

/* Is a dim of a value open and called `symbol`? */
bool om_prog_has_symbol(const om_prog *p, const char *symbol);

/* The number of symbol `k` of a binding, and the shape of input `k`, in the order in which they were bound.  False:
 * there are no more; NULL has none. */
bool om_binding_symbol(const om_binding *b, size_t k, const char **symbol, int64_t *n);
bool om_binding_input(const om_binding *b, size_t k, const char **input, const om_shape **shape);

/* Constant `k`, and the input that it is the value of. */
bool om_binding_constant(const om_binding *b, size_t k, const char **input, const om_tensor **t);

/* Is this parameter of the graph a constant, by a binding?  And is any? */
bool om_input_is_fixed(const om_value *input);
bool om_prog_has_fixed_inputs(const om_prog *p);

/* Do two tensors have the same type, shape and elements? */
bool om_tensor_same(const om_tensor *a, const om_tensor *b);

/* As om_prog_bind() without a binding. */
om_status om_prog_copy(om_session *s, const om_prog *p, om_prog **out);

/* The binding in full, for a program: "batch=4 x=4,3,224,224", with all symbols that have a number, in
 * the order of their names, and the shapes of all inputs in the order of the graph; the text is
 * allocated in `mem`.  Bindings with the same text give the same bound program.  Errors are those of
 * om_bind(). */
om_status om_binding_text(om_session *s, const om_prog *p, const om_binding *b, om_arena *mem, const char **out);

#endif
