/* SPDX-License-Identifier: Apache-2.0 */
/* The domain of the operators of target cpu, and limits of them that lowering observes. */
#ifndef OM_CPU_DOMAIN_H
#define OM_CPU_DOMAIN_H

#define OM_CPU_DOMAIN "org.onnxmem.cpu"

enum {
	OM_LEAST_BLOCK = 10, OM_MOST_BLOCK = 1000,  /* attribute `block` of Conv and MatMul, percent */
	OM_MOST_EXPANDED_DEPTH = 256,               /* input channels of ExpandedDepthwiseConv, which a product sums at once,
	                                               whatever the number of its rows */
};

#endif
