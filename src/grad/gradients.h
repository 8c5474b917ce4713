/* The gradients of operators.  A rules file has the makers of one family and, at its end, the rows that
 * register them: a table om_gradients_FILE, which ends with a row without a name.  A new file is one
 * line in OM_GRADIENT_TABLES; a new gradient is a row beside its maker. */
#ifndef OM_GRADIENTS_H
#define OM_GRADIENTS_H

#include "onnxmem/autodiff.h"

#define OM_GRADIENT_TABLES(_)                                                  \
	_(elementwise)  /* elementwise operators of one input */               \
	_(several)      /* elementwise operators of several inputs */          \
	_(sums)         /* reductions, softmax, cumulative sums along axes */  \
	_(losses)       /* losses of classification */                         \
	_(moves)        /* other shapes, joining, cutting, padding */          \
	_(picks)        /* gathering and scattering */                         \
	_(products)     /* matrix products */                                  \
	_(contraction)  /* Einsum */                                           \
	_(transforms)   /* Fourier transforms, Col2Im, determinants */         \
	_(convolution)  /* convolutions */                                     \
	_(pooling)      /* pooling */                                          \
	_(normal)       /* normalizations */                                   \
	_(sampling)     /* Resize, regions of interest, deformed windows */    \
	_(places)       /* GridSample */                                       \
	_(recurrent)    /* LSTM, GRU, RNN */                                   \
	_(attending)    /* attention, rotary embeddings */                     \
	_(states)       /* layers with a state */                              \
	_(composed)     /* com.microsoft: fused operators, quantized weights */ \
	_(branches)     /* If */                                               \
	_(playback)     /* Loop, Scan */                                       \
	_(fused)        /* org.onnxmem.grad: gradients that are one op */

#define OM_GRADIENT_DECLARE(file) extern const om_gradient om_gradients_##file[];
OM_GRADIENT_TABLES(OM_GRADIENT_DECLARE)
#undef OM_GRADIENT_DECLARE

/* Of `v`, the sums of the slices along an axis that belong to the same index of a list: as
 * many as `dim`, a list of one, says.  Undoes a Gather. */
om_value *om_emit_put_along(om_grad *g, om_value *v, om_value *index, int64_t axis, om_value *dim);

#endif
