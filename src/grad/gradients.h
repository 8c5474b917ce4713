/* The gradient makers, by the file they are in.  Rows name them. */
#ifndef OM_GRADIENTS_H
#define OM_GRADIENTS_H

#include "onnxmem/autodiff.h"

typedef void om_maker(om_grad *g);

/* attention.c */
om_maker om_grad_Attention, om_grad_RotaryEmbedding, om_grad_contrib_Attention,
	om_grad_contrib_MultiHeadAttention, om_grad_contrib_RotaryEmbedding, om_grad_GroupQueryAttention;

/* contrib_fused.c */
om_maker om_grad_DequantizeLinear, om_grad_EmbedLayerNormalization, om_grad_FusedConv, om_grad_FusedGemm,
	om_grad_MatMulNBits;

/* einsum.c */
om_maker om_grad_Einsum;

/* if.c, loop_scan.c */
om_maker om_grad_If, om_grad_Loop, om_grad_Scan;

/* convolution.c */
om_maker om_grad_Conv, om_grad_ConvTranspose;

/* normalization.c */
om_maker om_grad_BatchNormalization, om_grad_GroupNormalization, om_grad_InstanceNormalization,
	om_grad_LRN, om_grad_LayerNormalization, om_grad_LpNormalization, om_grad_SimplifiedLayerNormalization,
	om_grad_SkipLayerNormalization, om_grad_SkipSimplifiedLayerNormalization,
	om_grad_MeanVarianceNormalization, om_grad_RMSNormalization;

/* grid_sample.c */
om_maker om_grad_GridSample;

/* pooling.c */
om_maker om_grad_AveragePool, om_grad_GlobalAveragePool, om_grad_GlobalLpPool, om_grad_GlobalMaxPool,
	om_grad_LpPool, om_grad_MaxPool, om_grad_MaxUnpool;

/* resize_roi.c */
om_maker om_grad_AffineGrid, om_grad_DeformConv, om_grad_MaxRoiPool, om_grad_Resize, om_grad_RoiAlign;

/* unary.c: elementwise operators of one input. */
om_maker om_grad_Abs, om_grad_Acos, om_grad_Acosh, om_grad_Asin, om_grad_Asinh, om_grad_Atan,
	om_grad_Atanh, om_grad_Cast, om_grad_Celu, om_grad_Cos, om_grad_Cosh, om_grad_Elu,
	om_grad_Erf, om_grad_Exp, om_grad_Gelu, om_grad_BiasGelu, om_grad_FastGelu, om_grad_QuickGelu,
	om_grad_HardSigmoid, om_grad_HardSwish,
	om_grad_Identity, om_grad_LeakyRelu, om_grad_Log, om_grad_Mish, om_grad_Neg,
	om_grad_Reciprocal, om_grad_Relu, om_grad_Selu, om_grad_Shrink, om_grad_Sigmoid,
	om_grad_Sin, om_grad_Sinh, om_grad_Softplus, om_grad_Softsign, om_grad_Sqrt,
	om_grad_SwiGLU, om_grad_Swish, om_grad_Tan, om_grad_Tanh, om_grad_ThresholdedRelu;

/* binary.c: elementwise operators of several inputs. */
om_maker om_grad_Add, om_grad_Clip, om_grad_Div, om_grad_Dropout, om_grad_Max, om_grad_Mean,
	om_grad_Min, om_grad_Mod, om_grad_Mul, om_grad_PRelu, om_grad_Pow, om_grad_Sub,
	om_grad_Where;

/* matmul.c: matrix products. */
om_maker om_grad_FusedMatMul, om_grad_Gemm, om_grad_MatMul;

/* reduce_softmax.c: what goes along axes. */
om_maker om_grad_CumProd, om_grad_CumSum, om_grad_LogSoftmax, om_grad_ReduceL1, om_grad_ReduceL2,
	om_grad_ReduceLogSum, om_grad_ReduceLogSumExp, om_grad_ReduceMax, om_grad_ReduceMean,
	om_grad_ReduceMin, om_grad_ReduceProd, om_grad_ReduceSum, om_grad_ReduceSumSquare,
	om_grad_Softmax, om_grad_TopK;

/* losses.c: losses of classification. */
om_maker om_grad_NegativeLogLikelihoodLoss, om_grad_SoftmaxCrossEntropyLoss;

/* data_movement.c: other shapes, joining, cutting, padding. */
om_maker om_grad_CenterCropPad, om_grad_Concat, om_grad_DepthToSpace, om_grad_Expand, om_grad_Pad, om_grad_Range, om_grad_Reshape,
	om_grad_ReverseSequence, om_grad_Slice, om_grad_SpaceToDepth, om_grad_Split, om_grad_Tile,
	om_grad_Transpose, om_grad_Trilu;
/* Of `v`, the sums of the slices along an axis that belong to the same index of a list: as
 * many as `dim`, a list of one, says.  Undoes a Gather. */
om_value *om_emit_put_along(om_grad *g, om_value *v, om_value *index, int64_t axis, om_value *dim);

/* gather_scatter.c: gathering and scattering. */
om_maker om_grad_Compress, om_grad_Gather, om_grad_GatherElements, om_grad_GatherND, om_grad_OneHot,
	om_grad_ScatterElements, om_grad_ScatterND, om_grad_TensorScatter;
/* recurrent.c */
om_maker om_grad_GRU, om_grad_LSTM, om_grad_RNN;

/* transforms.c */
om_maker om_grad_Col2Im, om_grad_DFT, om_grad_Det, om_grad_STFT;

/* stateful_layers.c */
om_maker om_grad_CausalConvWithState, om_grad_LinearAttention;

/* train_mode.c: not makers, but what makes an op as it is in training. */
void om_train_BatchNormalization(om_grad *g, om_op *op);
void om_train_Dropout(om_grad *g, om_op *op);

#endif
