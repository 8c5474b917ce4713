/* SPDX-License-Identifier: Apache-2.0 */
/* Abbreviations of the ops that rules use most; `g` is the rule's context. */
#ifndef OM_GRAD_DSL_H
#define OM_GRAD_DSL_H

#include "grad/gradients.h"
#include "grad/grad_builder.h"
#include "ir/type.h"

#define ADD(a, b)        om_emit(g, "Add", a, b)
#define SUB(a, b)        om_emit(g, "Sub", a, b)
#define MUL(a, b)        om_emit(g, "Mul", a, b)
#define DIV(a, b)        om_emit(g, "Div", a, b)
#define PLUS(x, v)       om_emit_scalar(g, "Add", x, v)     /* v: a number */
#define TIMES(x, v)      om_emit_scalar(g, "Mul", x, v)
#define FROM(v, x)       om_from(g, v, x)            /* v - x */
#define ABOVE(x, v)      om_emit_scalar(g, "Greater", x, v)
#define BELOW(x, v)      om_emit_scalar(g, "Less", x, v)
#define DO(type, x)      om_emit(g, type, x)
#define WHERE(c, a, b)   om_emit(g, "Where", c, a, b)
#define ZERO(x)          om_emit_number(g, x, 0)
/* a where the condition is true, else zero */
#define KEEP(c, a)       om_keep(g, c, a)
#define AS_NUMBER(c, x)  om_emit_cast(g, c, om_type_elem(&(x)->type))

static inline om_value *
om_from(om_grad *g, double v, om_value *x)
{
	return om_emit(g, "Sub", om_emit_number(g, x, v), x);
}

static inline om_value *
om_keep(om_grad *g, om_value *condition, om_value *a)
{
	return WHERE(condition, a, ZERO(a));
}

#endif
