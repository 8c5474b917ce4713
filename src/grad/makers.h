/* The gradient makers, by the file they are in.  Rows name them. */
#ifndef OM_MAKERS_H
#define OM_MAKERS_H

#include "onnxmem/grad.h"

typedef void om_maker(om_grad *g);

/* branches.c, playback.c */
om_maker om_grad_If, om_grad_Loop, om_grad_Scan;

/* convolution.c */
om_maker om_grad_Conv, om_grad_ConvTranspose;

/* elementwise.c */
om_maker om_grad_Add, om_grad_Mul, om_grad_Relu;

/* normal.c */
om_maker om_grad_BatchNormalization, om_grad_GroupNormalization, om_grad_InstanceNormalization,
	om_grad_LRN, om_grad_LayerNormalization, om_grad_LpNormalization,
	om_grad_MeanVarianceNormalization, om_grad_RMSNormalization;

/* places.c */
om_maker om_grad_GridSample;

/* pooling.c */
om_maker om_grad_AveragePool, om_grad_GlobalAveragePool, om_grad_GlobalLpPool, om_grad_GlobalMaxPool,
	om_grad_LpPool, om_grad_MaxPool, om_grad_MaxUnpool;

/* products.c */
om_maker om_grad_MatMul;

/* sampling.c */
om_maker om_grad_AffineGrid, om_grad_Resize, om_grad_RoiAlign;

/* sums.c */
om_maker om_grad_ReduceMean, om_grad_ReduceSum;

/* transforms.c */
om_maker om_grad_Col2Im, om_grad_DFT, om_grad_Det;

#endif
