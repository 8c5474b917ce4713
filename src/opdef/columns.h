/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for members of operator definitions, and their helpers. */
#ifndef OM_COLUMNS_H
#define OM_COLUMNS_H

#include "onnxmem/opdef.h"

/* Bytes of an element.  Packed types are refused. */
om_status om_elem_bytes(const om_op_context *c, om_dtype t, size_t *size);

/* Run a kernel that moves elements on operands of which some are packed: they are unpacked to
 * one byte per element in the scratch of the call.  Bits after the last element are zero. */
om_status om_run_unpacked(om_op_context *c, om_status (*kernel)(om_op_context *c));

/* While preparing: are elements of any input but the first unknown, so that they are read only
 * at run time? */
bool om_is_steered(const om_op_context *c);

/* Bytes of an element as moved by om_run_unpacked(): one for packed types. */
size_t om_moved_bytes(om_dtype t);

/* Elements of a list with an element for each axis, as om_in_ints() gives them.  At most OM_MAX_RANK are
 * stored, in the caller's memory; `*n` is the number that there are. */
bool om_in_few(const om_op_context *c, uint32_t k, int64_t v[OM_MAX_RANK], size_t *n);

/* The same for elements that may be known in part, as om_in_symbolic_elems() gives them. */
bool om_in_few_elems(const om_op_context *c, uint32_t k, om_symbolic_elem e[OM_MAX_RANK], size_t *n);

/* Element `i` of an int64 or int32 tensor that has data. */
static inline int64_t
om_int_at(const om_tensor *t, int64_t i)
{
	const int64_t at = t->splat ? 0 : i;

	return t->type == OM_INT64 ? ((const int64_t *)t->data)[at] : ((const int32_t *)t->data)[at];
}

/* For the first input and first output of an operator definition with OM_SPLATS.  `*done` if the
 * output is the repeated element of the input; otherwise the output is dense. */
om_status om_splat_through(om_op_context *c, bool *done);

/* Make output `k` dense if the fold offers it as a splat. */
om_status om_dense_out(om_op_context *c, uint32_t k);

/* Dim `d` of input `k`; OM_DIM_UNKNOWN if there is none. */
int64_t om_in_dim(const om_op_context *c, uint32_t k, int d);

/* The first output has the type and shape of the first input. */
om_status om_infer_same(om_op_context *c);

/* The first output may be computed over the first input.  For operators that read an element of
 * it before they write the same element of the output. */
bool om_inplace_first(const om_op_context *c, uint32_t out, uint32_t in);

/* No axis of the output is longer than that of the first input. */
void om_most_first(const om_op_context *c, uint32_t out, om_shape *most);

/* One FLOP for each element of the first input: operators that look at all of them once. */
void om_cost_of_input(const om_op_context *c, om_cost *cost);

/* The product of dims [from, to): a number, or unknown with a symbol if it equals one dim; false
 * if it cannot be represented. */
bool om_dim_product(const om_shape *s, int from, int to, int64_t *n, const char **sym);

/* Two symbolic dims combined by `*`, `+`, `-` or `/`, as one symbol; NULL if either has none.
 * Lives as long as the program. */
const char *om_dim_text(const om_op_context *c, const char *a, char sign, const char *b);

/* As om_dim_text(), for a dim and a number. */
const char *om_dim_text_number(const om_op_context *c, const char *a, char sign, int64_t b);

/* The symbol of the product of dims [from, to) if om_dim_product() yields none. */
const char *om_dim_product_text(const om_op_context *c, const om_shape *s, int from, int to);

/* Functions for the column `elems`: for operators that move elements of input 0 (of all inputs
 * of variadic operators), and for operators that compute elements. */
void om_elems_moved(const om_op_context *c, om_symbolic_elem *e);
void om_elems_calculated(const om_op_context *c, om_symbolic_elem *e);

/* The negative ones, of Neg; of other operators nothing is known. */
void om_elems_negated(const om_op_context *c, om_symbolic_elem *e);

/* Those of x == y: a dim is no negative number, and equals itself.  Those of a choice by a condition. */
void om_elems_equal(const om_op_context *c, om_symbolic_elem *e);
void om_elems_chosen(const om_op_context *c, om_symbolic_elem *e);

/* How many integers there are from one up to, not including, another one, as an element that is a dim.  False: unknown. */
bool om_elem_between(const om_op_context *c, const om_symbolic_elem *from, const om_symbolic_elem *to, om_symbolic_elem *n);

/* A dim as an element, and an element as a dim; false if the element may not be a dim. */
om_symbolic_elem om_elem_of_dim(const om_shape *s, int d);
bool om_dim_of_elem(const om_symbolic_elem *e, om_shape *s, int d);

/* Merge two facts about one dim; false if they contradict. */
bool om_dim_join(int64_t *n, const char **sym, int64_t other, const char *other_sym);

/* Keep in `s` what holds for both shapes.  True if `s` became less specific. */
bool om_shape_meet(om_shape *s, const om_shape *other);

/* Number of elements of a list; -1 if unknown. */
int64_t om_list_length(const om_tensor *t);

/* An axis attribute of input 0, whose rank is known. */
om_status om_attr_axis(const om_op_context *c, const char *name, int rank, int *axis);

/* Is the tensor a single element? */
bool om_is_one(const om_tensor *t);

/* An element of any number type, or a Boolean, as a double. */
bool om_number(om_dtype t, const void *one, double *v);

/* The single element of a constant of float32 or of 16 bits, which may lie at any address.  NULL is none. */
bool om_real_scalar(const om_tensor *t, float *v);

/* The first output is a view of the whole first input. */
bool om_view_whole(const om_op_context *c, uint32_t out, om_view_of *v);
om_status om_cpu_whole(om_op_context *c);

#endif
