/* SPDX-License-Identifier: Apache-2.0 */
/* What rows of kernels for devices share: names of types, launches of typed kernels, and operands that are broadcast. */
#ifndef OM_LAUNCHES_H
#define OM_LAUNCHES_H

#include "opdef/device_kernel.h"
#include "opdef/types.h"

/* Floating-point types that kernels compute in float32. */
#define OF_DEVICE_FLOATS    (OF(FLOAT32) | OF(FLOAT16) | OF(BFLOAT16))
/* Types of elements that may be moved. */
#define OF_DEVICE_MOVED     (OF_NUMBERS | OF(BOOL))

/* The type in the kernel language, as "f32"; NULL: it has none. */
const char *om_kernel_type(om_dtype t);

/* Append a launch of kernel `kernel` of a source for elements of `type`, for a grid. */
om_launch *om_launch_typed_grid(om_launch_list *to, const char *unit, const char *kernel, const char *type, om_grid grid);

/* The same for a kernel of two types, TN and TO. */
om_launch *om_launch_pair(om_launch_list *to, const char *unit, const char *kernel, const char *tn, const char *tto, om_grid grid);

/* Append a launch with a block for each row. */
om_launch *om_launch_rows(om_launch_list *to, const char *unit, const char *kernel, const char *type, int64_t rows);

/* Append `n` numbers of 32 bits. */
void om_launch_i32s(om_launch *l, const int64_t *v, int n);

/* A walk over the elements of a tensor and of operands with strides, in few dims. */
enum { OM_LAUNCH_DIMS = 6, OM_LAUNCH_OPERANDS = 4 };
typedef struct om_launch_walk {
	int64_t n;                                     /* elements */
	int64_t dim[OM_LAUNCH_DIMS];
	int64_t step[OM_LAUNCH_OPERANDS][OM_LAUNCH_DIMS];
} om_launch_walk;

/* The walk over `rank` dims of `operands` operands with these steps: dims of 1 are left out, and dims joined where all
 * operands permit it.  False: there are more dims than kernels have. */
bool om_launch_walk_of(om_launch_walk *w, int rank, const int64_t *dim, int operands, int64_t step[][OM_MAX_RANK]);

/* The walk over `out`, to which operands of these shapes are broadcast. */
bool om_launch_broadcast(om_launch_walk *w, const om_shape *out, int operands, const om_shape *const *shape);

/* A walk over elements of an operand in memory, and of one that they are copied to. */
typedef struct om_launch_end {
	om_operand operand;
	uint32_t index;
	int64_t at;              /* element where the walk starts */
} om_launch_end;

/* Append the copy of the elements of a walk: operand 0 is the source. */
void om_launch_copy(om_launch_list *to, const char *moved_type, const om_launch_walk *w, om_launch_end from, om_launch_end dest);
/* That of `n` elements in a row. */
void om_launch_copy_row(om_launch_list *to, const char *moved_type, int64_t n, om_launch_end from, om_launch_end dest);

/* Append the dims of a walk, or the steps of an operand. */
void om_launch_walk_dims(om_launch *l, const om_launch_walk *w);
void om_launch_walk_steps(om_launch *l, const om_launch_walk *w, int operand);

/* The output is computed over input `in` of the same number of bytes, element by element. */
bool om_device_inplace(const om_op_context *c, uint32_t out, uint32_t in);

#endif
