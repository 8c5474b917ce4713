/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of operators.  A rules file holds the rules of one operator family and, at its end,
 * the table that registers them, which ends with an entry without a name.  A new gradient is a rule
 * and a table entry in its file; a new file is one line in OM_GRADIENT_TABLES. */
#ifndef OM_GRADIENTS_H
#define OM_GRADIENTS_H

#include "onnxmem/autodiff.h"

#define OM_GRADIENT_TABLES(_)                                                  \
	_(unary)            /* elementwise operators of one input */           \
	_(binary)           /* elementwise operators of several inputs */      \
	_(reduce_softmax)   /* reductions, softmax, cumulative sums along axes */ \
	_(losses)           /* losses of classification */                     \
	_(data_movement)    /* other shapes, joining, cutting, padding */      \
	_(gather_scatter)   /* gathering and scattering */                     \
	_(matmul)           /* matrix products */                              \
	_(einsum)           /* Einsum */                                       \
	_(transforms)       /* Fourier transforms, Col2Im, determinants */     \
	_(convolution)      /* convolutions */                                 \
	_(pooling)          /* pooling */                                      \
	_(normalization)    /* normalizations */                               \
	_(resize_roi)       /* Resize, regions of interest, deformed windows */ \
	_(grid_sample)      /* GridSample */                                   \
	_(recurrent)        /* LSTM, GRU, RNN */                               \
	_(attention)        /* attention, rotary embeddings */                 \
	_(stateful_layers)  /* layers with a state */                          \
	_(contrib_fused)    /* com.microsoft: fused operators, quantized weights */ \
	_(if)               /* If */                                           \
	_(loop_scan)        /* Loop, Scan */                                   \
	_(collectives)      /* org.onnxmem.dist: collectives of ranks */       \
	_(fused)            /* org.onnxmem.grad: gradients that are one op */

#define OM_GRADIENT_DECLARE(family) extern const om_gradient om_gradients_##family[];
OM_GRADIENT_TABLES(OM_GRADIENT_DECLARE)
#undef OM_GRADIENT_DECLARE

/* Sum the slices of `v` along an axis that have the same entry in the list `index`; the result has the
 * length `dim`, a list of one element, along that axis.  The adjoint of Gather. */
om_value *om_emit_put_along(om_grad *g, om_value *v, om_value *index, int64_t axis, om_value *dim);

#endif
