/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that are moved without being interpreted. */
#ifndef OM_STRIDED_COPY_H
#define OM_STRIDED_COPY_H

#include "onnxmem/tensor.h"

enum { OM_COPY_RANK = 2 * OM_MAX_RANK };

/* A copy along axes; strides count elements and may be zero or negative. */
typedef struct om_copy {
	int rank;
	int64_t dim[OM_COPY_RANK], to[OM_COPY_RANK], from[OM_COPY_RANK];
} om_copy;

void om_copy_axis(om_copy *p, int64_t dim, int64_t to, int64_t from);

/* A copy with its loops chosen: the state of kernels that move elements. */
typedef struct om_copy_plan {
	om_copy m;                /* axes after merging; those of the innermost loops last */
	int inner;                /* number of innermost axes: 1, or 2 for a plane */
	size_t size;              /* bytes of an element */
	bool is_empty;
} om_copy_plan;

om_copy_plan om_copy_prepare(const om_copy *p, size_t size);
void om_copy_go(const om_copy_plan *plan, void *to, const void *from);

/* Prepare and run a copy of elements of `size` bytes: 1, 2, 4, 8 or 16.  Source and target
 * either are disjoint or coincide; in the latter case the copy moves nothing. */
void om_copy_run(const om_copy *p, size_t size, void *to, const void *from);

/* Fill `n` elements with the same element. */
void om_fill(void *to, int64_t n, size_t size, const void *one);

/* As om_fill(), for a type that may be packed: bits after the last element are zero. */
void om_fill_type(void *to, int64_t n, om_dtype t, const void *one);

/* Copy elements; a splat is expanded.  Sizes must match. */
void om_elements_copy(void *to, const om_tensor *from, uint64_t bytes);

/* Strides of a dense tensor, in elements. */
void om_strides(const om_shape *s, int64_t stride[OM_MAX_RANK]);

#endif
