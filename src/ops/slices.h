/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for the columns `slice` and `partial` of operator definitions, by the kind of operator; what an operator
 * shares with others is in opdef/slice.h.  A function says in its comment along which axes there are parts. */
#ifndef OM_OPS_SLICES_H
#define OM_OPS_SLICES_H

#include "opdef/slice.h"

/* ---- Windows (nn/window_slices.c). ---- */

struct om_window;

/* The part of the image, axis `in_axis` of input 0, for the part of output 0 along axis `axis` of the image; the attribute
 * `pads` becomes that of the part.  False where a window may lie in the padding alone.  `w` is changed. */
bool om_slice_window(const om_op_context *c, om_slice *s, int axis, int in_axis, struct om_window *w);
/* The same for a window that is scattered onto the output, with `output_padding`.  The image and the output have their
 * channels at the same place. */
bool om_slice_scatter_window(const om_op_context *c, om_slice *s, int axis, struct om_window *w);

/* Conv: batches, channels of the output, rows.  Partial: channels of the input, if there is one group. */
bool om_slice_conv(const om_op_context *c, uint32_t out, om_slice *s);
bool om_partial_conv(const om_op_context *c, uint32_t in, om_slice *s);
/* ConvInteger, QLinearConv: as Conv. */
bool om_slice_conv_integer(const om_op_context *c, uint32_t out, om_slice *s);
bool om_partial_conv_integer(const om_op_context *c, uint32_t in, om_slice *s);
bool om_slice_conv_quantized(const om_op_context *c, uint32_t out, om_slice *s);
/* FusedConv: as Conv. */
bool om_slice_conv_fused(const om_op_context *c, uint32_t out, om_slice *s);
/* ConvTranspose: as Conv. */
bool om_slice_conv_transpose(const om_op_context *c, uint32_t out, om_slice *s);
bool om_partial_conv_transpose(const om_op_context *c, uint32_t in, om_slice *s);
/* MaxPool without indices, AveragePool, LpPool: batches, channels, rows. */
bool om_slice_pool(const om_op_context *c, uint32_t out, om_slice *s);
/* Global pools: batches and channels.  Partial: rows. */
bool om_slice_global_pool(const om_op_context *c, uint32_t out, om_slice *s);
bool om_partial_global_max(const om_op_context *c, uint32_t in, om_slice *s);
bool om_partial_global_average(const om_op_context *c, uint32_t in, om_slice *s);
/* LRN: all axes; along the channels with a surplus. */
bool om_slice_lrn(const om_op_context *c, uint32_t out, om_slice *s);

/* ---- Products (math/product_slices.c). ---- */

/* MatMul: batches, rows of the left, columns of the right operand.  Partial: what is summed over. */
bool om_slice_matmul(const om_op_context *c, uint32_t out, om_slice *s);
bool om_partial_matmul(const om_op_context *c, uint32_t in, om_slice *s);
/* MatMulInteger, QLinearMatMul: as MatMul. */
bool om_slice_matmul_integer(const om_op_context *c, uint32_t out, om_slice *s);
bool om_partial_matmul_integer(const om_op_context *c, uint32_t in, om_slice *s);
bool om_slice_matmul_quantized(const om_op_context *c, uint32_t out, om_slice *s);
/* The parts of both operands of a product of matrices, inputs `ak` and `bk`. */
void om_slice_operands(const om_op_context *c, om_slice *s, uint32_t ak, uint32_t bk);
/* Contributions to a sum over axis `left` of input `ak` and axis `right` of input `bk`, for a part of input `in`. */
bool om_partial_operands(om_slice *s, uint32_t in, uint32_t ak, int left, uint32_t bk, int right);
/* A scale or zero point: one for all, or a list with one for each of `n` positions of axis `axis` of the output; false for
 * any other. */
bool om_slice_each(const om_op_context *c, om_slice *s, uint32_t k, int axis, int64_t n);
/* QGemm: rows, columns. */
bool om_slice_gemm_quantized(const om_op_context *c, uint32_t out, om_slice *s);
/* Gemm: rows, columns.  Partial: what is summed over. */
bool om_slice_gemm(const om_op_context *c, uint32_t out, om_slice *s);
bool om_partial_gemm(const om_op_context *c, uint32_t in, om_slice *s);

/* CumSum, CumProd: the other axes (math/axis_scan.c). */
bool om_slice_cumulative(const om_op_context *c, uint32_t out, om_slice *s);

/* A reduction of input 0: the axes that are kept (math/reduce.c). */
bool om_slice_kept(const om_op_context *c, uint32_t out, om_slice *s, const bool *is_reduced, bool keeps);
/* The op of a part becomes the reduction `type` over these axes of input 0 (math/reduce.c). */
void om_slice_reduce(const om_op_context *c, om_slice *s, const char *type, const bool *is_reduced, bool keeps);

/* ---- Movement of elements (tensor/movement_slices.c). ---- */

bool om_slice_transpose(const om_op_context *c, uint32_t out, om_slice *s);
/* Reshape: axes that are split or joined, too. */
bool om_slice_reshape(const om_op_context *c, uint32_t out, om_slice *s);
/* Flatten, Unsqueeze: the same without an operand. */
bool om_slice_flatten(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_squeeze(const om_op_context *c, uint32_t out, om_slice *s);
/* Concat: all axes; along the axis of the operator, inputs that the part does not cover are left out. */
bool om_slice_concat(const om_op_context *c, uint32_t out, om_slice *s);
/* Split: all axes; along the axis of the operator, one output is computed. */
bool om_slice_split(const om_op_context *c, uint32_t out, om_slice *s);
/* Expand: all axes.  Tile: axes that are not repeated, or have one element. */
bool om_slice_expand(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_tile(const om_op_context *c, uint32_t out, om_slice *s);
/* DepthToSpace, SpaceToDepth: batches, rows; channels if those of a block are adjacent. */
bool om_slice_depth_to_space(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_space_to_depth(const om_op_context *c, uint32_t out, om_slice *s);
/* Trilu: all axes. */
bool om_slice_trilu(const om_op_context *c, uint32_t out, om_slice *s);
/* ReverseSequence: all axes but time. */
bool om_slice_reverse(const om_op_context *c, uint32_t out, om_slice *s);
/* CenterCropPad: axes that are neither cropped nor padded. */
bool om_slice_center(const om_op_context *c, uint32_t out, om_slice *s);

/* ---- Indices (tensor/index_slices.c). ---- */

/* Gather, GatherND, OneHot: axes of the indices, and axes of the data that no index selects. */
bool om_slice_gather(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_gather_nd(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_one_hot(const om_op_context *c, uint32_t out, om_slice *s);
/* GatherElements: all axes. */
bool om_slice_gather_elements(const om_op_context *c, uint32_t out, om_slice *s);
/* Scatter, ScatterElements: axes but that of the indices, where indices are as many as elements.  ScatterND: axes that no
 * index selects. */
bool om_slice_scatter(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_scatter_nd(const om_op_context *c, uint32_t out, om_slice *s);
/* TensorScatter: all axes but that of the sequence. */
bool om_slice_tensor_scatter(const om_op_context *c, uint32_t out, om_slice *s);

/* ---- Images (image/image_slices.c). ---- */

/* GridSample: images, channels, points.  AffineGrid: images.  RoiAlign, MaxRoiPool: regions, channels. */
bool om_slice_grid_sample(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_affine_grid(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_regions(const om_op_context *c, uint32_t out, om_slice *s);
/* DeformConv: images, channels of the output. */
bool om_slice_deform_conv(const om_op_context *c, uint32_t out, om_slice *s);

/* ---- Attention (nn/attention_slices.c). ---- */

/* Attention: samples, heads, queries unless they see keys by position, elements of the values. */
bool om_slice_attention(const om_op_context *c, uint32_t out, om_slice *s);
/* RotaryEmbedding: samples, positions, heads. */
bool om_slice_rotary(const om_op_context *c, uint32_t out, om_slice *s);

/* ---- Normalizations (nn/norm_slices.c). ---- */

/* BatchNormalization: all axes; channels alone while training. */
bool om_slice_batch_norm(const om_op_context *c, uint32_t out, om_slice *s);
/* LayerNormalization, RMSNormalization: axes before the normalized ones. */
bool om_slice_layer_norm(const om_op_context *c, uint32_t out, om_slice *s);
/* InstanceNormalization, GroupNormalization: batches, channels. */
bool om_slice_instance_norm(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_group_norm(const om_op_context *c, uint32_t out, om_slice *s);
/* LpNormalization, MeanVarianceNormalization: the other axes. */
bool om_slice_lp_norm(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_mean_variance(const om_op_context *c, uint32_t out, om_slice *s);

/* Einsum: all axes but those that one operand has twice.  Partial: what is summed over. */
bool om_slice_einsum(const om_op_context *c, uint32_t out, om_slice *s);
bool om_partial_einsum(const om_op_context *c, uint32_t in, om_slice *s);

/* ---- Quantization (quant/quant.c). ---- */

/* QuantizeLinear, DequantizeLinear: all axes; blocks with a surplus. */
bool om_slice_linear(const om_op_context *c, uint32_t out, om_slice *s);

/* ---- com.microsoft (contrib/contrib_slices.c). ---- */

/* Normalizations of a sum: axes before the last. */
bool om_slice_skip_norm(const om_op_context *c, uint32_t out, om_slice *s);
/* EmbedLayerNormalization, Attention, MultiHeadAttention: samples; MultiHeadAttention: also queries. */
bool om_slice_embed_norm(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_self_attention(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_multi_head(const om_op_context *c, uint32_t out, om_slice *s);
/* RotaryEmbedding: samples, heads. */
bool om_slice_rotary_contrib(const om_op_context *c, uint32_t out, om_slice *s);
/* FusedMatMul: as MatMul. */
bool om_slice_matmul_fused(const om_op_context *c, uint32_t out, om_slice *s);
bool om_partial_matmul_fused(const om_op_context *c, uint32_t in, om_slice *s);
/* MatMulNBits: rows; columns if zero points are not packed. */
bool om_slice_matmul_nbits(const om_op_context *c, uint32_t out, om_slice *s);
/* DynamicQuantizeMatMul: columns.  MatMulIntegerToFloat: as MatMul. */
bool om_slice_matmul_dynamic(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_matmul_to_float(const om_op_context *c, uint32_t out, om_slice *s);
/* Images with channels last: batches. */
bool om_slice_images(const om_op_context *c, uint32_t out, om_slice *s);
/* Operators on quantized tensors: as those on others. */
bool om_slice_quantized_unary(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_quantized_binary(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_quantized_where(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_quantized_softmax(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_quantized_concat(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_quantized_global_pool(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_quantized_pool(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_quantized_conv(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_quantized_mean(const om_op_context *c, uint32_t out, om_slice *s);

#endif
