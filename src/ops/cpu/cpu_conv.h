/* SPDX-License-Identifier: Apache-2.0 */
/* The operators PackFilter, PackMatrix, Conv and MatMul of org.onnxmem.cpu. */
#ifndef OM_CPU_CONV_H
#define OM_CPU_CONV_H

#include "kernels/cpu/layer.h"
#include "onnxmem/opdef.h"
#include "opdef/cpu_domain.h"

/* The layer that an op with known shapes computes; checks everything that its shapes and attributes have to
 * satisfy. */
om_status om_cpu_conv_layer(const om_op_context *c, om_layer *l);
om_status om_cpu_matmul_layer(const om_op_context *c, om_layer *l);

/* Reference kernels: one output element at a time, in double. */
om_status om_cpu_conv_reference(om_op_context *c);
om_status om_cpu_matmul_reference(om_op_context *c);

#endif
