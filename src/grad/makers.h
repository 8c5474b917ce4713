/* The gradient makers, by the file they are in.  Rows name them. */
#ifndef OM_MAKERS_H
#define OM_MAKERS_H

#include "onnxmem/grad.h"

typedef void om_maker(om_grad *g);

/* elementwise.c */
om_maker om_grad_Add, om_grad_Mul, om_grad_Relu;

/* products.c */
om_maker om_grad_MatMul;

/* sums.c */
om_maker om_grad_ReduceMean, om_grad_ReduceSum;

#endif
