/* SPDX-License-Identifier: Apache-2.0 */
/* The activation of a layer of org.onnxmem.cpu: attributes `activation`, `alpha` and `beta`. */
#ifndef OM_CPU_ACTIVATION_H
#define OM_CPU_ACTIVATION_H

#include "kernels/cpu/epilogue.h"
#include "onnxmem/opdef.h"

#define OM_ACTIVATION_ATTRS                                                    \
	{"activation", OM_ATTR_STRING, .s = ""},                               \
	{"alpha", OM_ATTR_FLOAT},                                              \
	{"beta", OM_ATTR_FLOAT}

#define OM_EXPANSION_ATTRS                                                     \
	{"expansion_activation", OM_ATTR_STRING, .s = ""},                     \
	{"expansion_alpha", OM_ATTR_FLOAT},                                    \
	{"expansion_beta", OM_ATTR_FLOAT}

/* Read the attributes; parameters that are absent have the defaults of the operator that `activation` names.
 * OM_INVALID for an unknown name. */
om_status om_epilogue_read(const om_op_context *c, om_epilogue *e);
/* The same of the first of two layers in one op, whose attributes are those of OM_EXPANSION_ATTRS. */
om_status om_epilogue_read_expansion(const om_op_context *c, om_epilogue *e);

/* The activation of one number: the reference. */
double om_epilogue_value(const om_epilogue *e, double x);

#endif
