/* A family is a source file of operators that share their machinery.  Each
 * ends its table with a row without a name.  A new family is one line in
 * OM_FAMILIES and one file. */
#ifndef OM_FAMILY_H
#define OM_FAMILY_H

#include "onnxmem/kernel.h"
#include "onnxmem/opdef.h"
#include "opdef/types.h"

#define OM_FAMILIES(_)                                                         \
	_(pointwise)   /* elementwise, broadcasting */                         \
	_(mixed)       /* the same, of operands that are not alike */          \
	_(dropout)     /* Dropout */                                           \
	_(cast)        /* Cast */                                              \
	_(reduce)      /* reductions */                                        \
	_(along)       /* walks along one axis: ArgMax, CumSum */              \
	_(topk)        /* TopK */                                              \
	_(softmax)     /* softmax and friends along an axis */                 \
	_(loss)        /* losses of classification */                          \
	_(reshape)     /* other shapes of the same elements */                 \
	_(movement)    /* permuting, joining, splitting, repeating */          \
	_(arrange)     /* blocks, sequences, triangles */                      \
	_(slice)       /* cutting out and padding */                           \
	_(index)       /* picking by index: gather, one-hot */                 \
	_(scatter)     /* writing by index */                                  \
	_(select)      /* finding: non-zero, suppression, unique */            \
	_(strings)     /* strings */                                           \
	_(regex)       /* regular expressions */                               \
	_(sequence)    /* sequences and optionals */                           \
	_(meta)        /* shapes, constants, ranges */                         \
	_(matmul)      /* matrix products */                                   \
	_(einsum)      /* sums of products, by an equation */                  \
	_(matrix)      /* numbers about whole matrices */                      \
	_(conv)        /* convolutions */                                      \
	_(conv_bytes)  /* convolutions of bytes */                             \
	_(conv_grad)   /* org.onnxmem.grad: gradients of convolutions */       \
	_(signal)      /* Fourier transforms, windows */                       \
	_(pool)        /* pooling */                                           \
	_(pool_grad)   /* org.onnxmem.grad: gradients of pools */              \
	_(unfold)      /* what undoes pooling and cutting into blocks */       \
	_(norm)        /* normalisations */                                    \
	_(norm_grad)   /* org.onnxmem.grad: gradients of normalisations */     \
	_(resize)      /* Resize, Upsample */                                  \
	_(image)       /* files of images */                                   \
	_(grid)        /* images at places between elements */                 \
	_(rnn)         /* LSTM, GRU, RNN */                                    \
	_(ml)          /* classical machine learning: picking, looking up */   \
	_(feature)     /* scaling and encoding features */                     \
	_(mapping)     /* maps */                                              \
	_(linear)      /* linear models, support vector machines */            \
	_(tree)        /* ensembles of trees */                                \
	_(attention)   /* attention, positions, caches */                      \
	_(state)       /* layers with a state */                               \
	_(quant)       /* quantisation */                                      \
	_(contrib)     /* com.microsoft: activations, norms, products */       \
	_(contrib_quant) /* com.microsoft: quantisation */                     \
	_(contrib_attention) /* com.microsoft: attention */                    \
	_(group_query) /* com.microsoft: attention over a cache */             \
	_(train)       /* steps of training */                                 \
	_(control)     /* If, Loop, Scan */

#define OM_FAMILY_DECLARE(name) extern const om_opdef om_ops_##name[];
OM_FAMILIES(OM_FAMILY_DECLARE)
#undef OM_FAMILY_DECLARE

/* Families that prepare their kernels: each has a list of these, too, ended in the same way. */
#define OM_KERNEL_FAMILIES(_)                                                  \
	_(pointwise) \
	_(mixed) \
	_(cast) \
	_(softmax) \
	_(conv) \
	_(conv_bytes) \
	_(pool) \
	_(matmul) \
	_(movement) \
	_(slice) \
	_(reshape) \
	_(index) \
	_(scatter) \
	_(contrib) \
	_(contrib_quant) \
	_(contrib_attention) \
	_(norm) \
	_(reduce) \
	_(quant) \
	_(einsum) \
	_(resize) \
	_(rnn) \
	_(attention) \
	_(along) \
	_(topk) \
	_(dropout) \
	_(loss) \
	_(arrange) \
	_(group_query) \
	_(conv_grad) \
	_(pool_grad) \
	_(norm_grad) \
	_(state) \
	_(meta) \
	_(grid) \
	_(matrix)

#define OM_KERNELS_DECLARE(name) extern const om_kernel om_kernels_##name[];
OM_KERNEL_FAMILIES(OM_KERNELS_DECLARE)
#undef OM_KERNELS_DECLARE

#endif
