/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of callers: see onnxmem/callback.h. */
#ifndef OM_GRAD_CALLBACK_H
#define OM_GRAD_CALLBACK_H

#include "grad/grad_builder.h"
#include "ir/operators.h"
#include "onnxmem/callback.h"

/* As om_callbacks_new(), beside given operators. */
om_status om_callbacks_new_with(om_session *s, const struct om_operators *operators, om_callbacks **out);

/* Add the gradients of the operators that the program has from callers. */
void om_callbacks_add_gradients(const om_prog *p, om_gradients *to);

/* As om_prog_use_callbacks(), for a program without ops. */
void om_callbacks_give(om_prog *p, const om_callbacks *all);

#endif
