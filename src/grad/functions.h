/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of org.onnxmem.grad: operators of which the program has a definition in standard operators, which other
 * runtimes use, and for which there are kernels. */
#ifndef OM_FUNCTIONS_H
#define OM_FUNCTIONS_H

#include "opdef/gradient_op.h"

/* An empty body, in a program of its own, for a function that `p` is going to have. */
om_block *om_function_body(om_prog *p, const char *name);

/* A function has no initializers: each that ops of `body` read, of those that are marked by value id, becomes a Constant of
 * this phase, and its mark is cleared. */
void om_function_constants(om_block *body, om_phase phase, bool *is_read);

/* Add a function to `p` that is named as its body's program, with `n` attributes: its overload is a number that no function
 * of that name has. */
om_function *om_function_add(om_prog *p, om_block *body, const char *const *attr, uint32_t n);

#endif
