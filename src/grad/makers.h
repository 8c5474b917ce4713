/* The gradient makers, by the file they are in.  Rows name them. */
#ifndef OM_MAKERS_H
#define OM_MAKERS_H

#include "onnxmem/grad.h"

typedef void om_maker(om_grad *g);

/* branches.c, playback.c */
om_maker om_grad_If, om_grad_Loop, om_grad_Scan;

/* elementwise.c */
om_maker om_grad_Add, om_grad_Mul, om_grad_Relu;

/* products.c */
om_maker om_grad_MatMul;

/* sums.c */
om_maker om_grad_ReduceMean, om_grad_ReduceSum;

#endif
