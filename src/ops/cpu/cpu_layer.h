/* SPDX-License-Identifier: Apache-2.0 */
/* What the layers of org.onnxmem.cpu with packed weights have in common, whatever their type: convolutions and products
 * of float32 (cpu_conv.c) and of 8-bit integers (cpu_qlayer.c). */
#ifndef OM_CPU_LAYER_H
#define OM_CPU_LAYER_H

#include "kernels/cpu/layer.h"
#include "opdef/geometry/window.h"

/* The attribute `group`, which has to divide the output channels. */
om_status om_layer_read_group(const om_op_context *c, int64_t channels_out, int64_t *group);

/* The layer that the weights [channels_out, channels_in, kernel...] that are input 0 belong to, without images. */
om_status om_layer_read_filter(const om_op_context *c, om_layer *l);

/* The layer of a matrix [rows, columns] of weights, for one row of input. */
om_layer om_layer_of_product(int64_t rows, int64_t columns);

/* The same of a matrix, which may be [columns, rows]. */
om_layer om_layer_of_matrix(const om_shape *b, bool is_transposed);

/* Kernel, strides and the like, and the sizes of the images. */
void om_layer_set_window(om_layer *l, const struct om_window *w);

/* Infer packed weights: output 0 is a list of `elements` of this type.  `read` gives the layer, or the matrix does,
 * which is transposed if the attribute transB says so. */
om_status om_layer_infer_filter(om_op_context *c, om_dtype type, om_status (*read)(const om_op_context *c, om_layer *l),
	uint64_t (*elements)(const om_layer *l));
om_status om_layer_infer_matrix(om_op_context *c, om_dtype type, uint64_t (*elements)(const om_layer *l));

/* Infer the shape of a product of input 0, which has `columns`.  `check` checks the weights, if the layer is known. */
om_status om_layer_infer_product(om_op_context *c, int64_t columns,
	om_status (*check)(const om_op_context *c, const om_layer *l));

#endif
