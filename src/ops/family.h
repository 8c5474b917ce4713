/* SPDX-License-Identifier: Apache-2.0 */
/* A family is a source file of operators that share code.  Its table of definitions is terminated by an
 * entry without a name.  A new family NAME is a file NAME.c and its line in OM_FAMILIES. */
#ifndef OM_FAMILY_H
#define OM_FAMILY_H

#include "onnxmem/kernel.h"
#include "opdef/device_kernel.h"
#include "onnxmem/opdef.h"
#include "opdef/types.h"

#define OM_FAMILIES(_)                                                         \
	_(pointwise)          /* elementwise, broadcasting */                        \
	_(where_pow_clip)     /* elementwise, with operands of different kinds */    \
	_(dropout)            /* Dropout */                                          \
	_(cast)               /* Cast */                                             \
	_(reduce)             /* reductions */                                       \
	_(axis_scan)          /* ArgMax, CumSum: scans along one axis */             \
	_(topk)               /* TopK */                                             \
	_(softmax)            /* softmax and related operators along an axis */      \
	_(loss)               /* classification losses */                            \
	_(reshape)            /* changes of shape that keep the elements */          \
	_(movement)           /* permuting, joining, splitting, repeating */         \
	_(rearrange)          /* blocks, sequences, triangles */                     \
	_(slice)              /* slicing */                                          \
	_(pad)                /* padding */                                          \
	_(index)              /* gather, one-hot */                                  \
	_(scatter)            /* scatter */                                          \
	_(select)             /* non-zero, non-max suppression, unique */            \
	_(strings)            /* strings */                                          \
	_(regex)              /* regular expressions */                              \
	_(sequence)           /* sequences and optionals */                          \
	_(shape_constant)     /* shapes, constants, ranges */                        \
	_(matmul)             /* matrix products */                                  \
	_(einsum)             /* sums of products given by an equation */            \
	_(determinant)        /* determinants, CumProd */                            \
	_(conv)               /* convolutions */                                     \
	_(conv_int8)          /* convolutions of 8-bit integers */                   \
	_(conv_grad)          /* org.onnxmem.grad: gradients of convolutions */      \
	_(signal)             /* Fourier transforms, windows */                      \
	_(pool)               /* pooling */                                          \
	_(pool_grad)          /* org.onnxmem.grad: gradients of pooling */           \
	_(col2im_unpool)      /* MaxUnpool, Col2Im */                                \
	_(norm)               /* normalizations */                                   \
	_(norm_grad)          /* org.onnxmem.grad: gradients of normalizations */    \
	_(resize)             /* Resize, Upsample */                                 \
	_(image)              /* image files */                                      \
	_(grid)               /* sampling of images between elements */              \
	_(rnn)                /* LSTM, GRU, RNN */                                   \
	_(ml)                 /* classical machine learning: selection, lookup */    \
	_(ml_feature)         /* scaling and encoding features */                    \
	_(ml_map)             /* maps */                                             \
	_(ml_linear)          /* linear models, support vector machines */           \
	_(ml_tree)            /* tree ensembles */                                   \
	_(attention)          /* attention, rotary embeddings, caches */             \
	_(linear_attention)   /* layers with a state */                              \
	_(quant)              /* quantization */                                     \
	_(contrib)            /* com.microsoft: activations, norms, products */      \
	_(contrib_quant)      /* com.microsoft: quantization */                      \
	_(contrib_attention)  /* com.microsoft: attention */                         \
	_(group_query)        /* com.microsoft: attention over a cache */            \
	_(contrib_gates)      /* com.microsoft: gates of layers with a state */      \
	_(contrib_mrotary)    /* com.microsoft: rotary embedding of images */        \
	_(block_gather)       /* com.microsoft: quantized embeddings */              \
	_(moe)                /* com.microsoft: mixtures of experts */               \
	_(optimizer_ops)      /* optimizer steps */                                  \
	_(update)             /* org.onnxmem.grad: updates of parameters */          \
	_(cpu_attention)      /* org.onnxmem.cpu: attention */                       \
	_(cpu_rnn)            /* org.onnxmem.cpu: recurrent layers */                \
	_(cpu_conv)           /* org.onnxmem.cpu: convolutions, products */          \
	_(cpu_conv_transpose) /* org.onnxmem.cpu: transposed convolutions */         \
	_(cpu_depthwise)      /* org.onnxmem.cpu: depthwise convolutions */          \
	_(cpu_expanded)       /* org.onnxmem.cpu: the same of products */            \
	_(cpu_grouped)        /* org.onnxmem.cpu: convolutions in narrow groups */   \
	_(cpu_pool)           /* org.onnxmem.cpu: pooling */                         \
	_(cpu_qlayer)         /* org.onnxmem.cpu: quantized convolutions, products */ \
	_(cpu_chain)          /* org.onnxmem.cpu: elementwise functions */           \
	_(device_copies)      /* org.onnxmem: copies to and from devices */                 \
	_(dist)               /* org.onnxmem.dist: collectives of ranks */           \
	_(control)            /* If, Loop, Scan */

#define OM_FAMILY_DECLARE(name) extern const om_opdef om_ops_##name[];
OM_FAMILIES(OM_FAMILY_DECLARE)
#undef OM_FAMILY_DECLARE

/* Families with prepared kernels: each has a table of kernels, terminated in the same way. */
#define OM_KERNEL_FAMILIES(_)                                                  \
	_(pointwise) \
	_(where_pow_clip) \
	_(cast) \
	_(softmax) \
	_(conv) \
	_(conv_int8) \
	_(pool) \
	_(matmul) \
	_(matmul_product) \
	_(movement) \
	_(slice) \
	_(pad) \
	_(reshape) \
	_(index) \
	_(scatter) \
	_(contrib) \
	_(contrib_attention) \
	_(contrib_quant) \
	_(contrib_attention) \
	_(norm) \
	_(reduce) \
	_(quant) \
	_(einsum) \
	_(resize) \
	_(rnn) \
	_(attention) \
	_(axis_scan) \
	_(topk) \
	_(dropout) \
	_(loss) \
	_(rearrange) \
	_(group_query) \
	_(contrib_gates) \
	_(contrib_mrotary) \
	_(block_gather) \
	_(moe) \
	_(conv_grad) \
	_(pool_grad) \
	_(norm_grad) \
	_(linear_attention) \
	_(shape_constant) \
	_(grid) \
	_(determinant) \
	_(select) \
	_(sequence) \
	_(strings) \
	_(regex) \
	_(signal) \
	_(col2im_unpool) \
	_(image) \
	_(ml) \
	_(ml_feature) \
	_(ml_map) \
	_(ml_linear) \
	_(ml_tree) \
	_(optimizer_ops) \
	_(update) \
	_(fast_elementwise)   /* of float32: after the families whose kernels they take precedence over */ \
	_(fast_group_query) \
	_(fast_halves) \
	_(fast_nbits) \
	_(fast_norm) \
	_(fast_quant) \
	_(fast_reduce) \
	_(fast_softmax) \
	_(fast_transpose) \
	_(fast_update) \
	_(cpu_attention) \
	_(cpu_chain) \
	_(cpu_rnn) \
	_(cpu_conv) \
	_(cpu_conv_transpose) \
	_(cpu_depthwise) \
	_(cpu_expanded) \
	_(cpu_grouped) \
	_(cpu_pool) \
	_(cpu_qlayer) \
	_(dist)

/* Families with kernels for devices, terminated in the same way: src/ops/device/NAME.c, and composites of com.microsoft. */
#define OM_DEVICE_FAMILIES(_)                                                  \
	_(contrib) \
	_(contrib_attention) \
	_(contrib_quant) \
	_(device_attention) \
	_(device_elementwise) \
	_(device_index) \
	_(device_loss) \
	_(device_move) \
	_(device_nbits) \
	_(device_product) \
	_(device_quant) \
	_(device_recurrent) \
	_(device_reduce) \
	_(device_resize) \
	_(device_scan) \
	_(device_update) \
	_(device_window)

#define OM_DEVICE_KERNELS_DECLARE(name) extern const om_device_kernel om_device_kernels_##name[];
OM_DEVICE_FAMILIES(OM_DEVICE_KERNELS_DECLARE)
#undef OM_DEVICE_KERNELS_DECLARE

#define OM_KERNELS_DECLARE(name) extern const om_kernel om_kernels_##name[];
OM_KERNEL_FAMILIES(OM_KERNELS_DECLARE)
#undef OM_KERNELS_DECLARE

#endif
