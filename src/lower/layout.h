/* SPDX-License-Identifier: Apache-2.0 */
/* Channels-last layout: the program is rewritten for the kernels of org.onnxmem.cpu.
 *
 * The idea: a value of the original program may have a *form*, which is another value with the same elements in
 * another order of axes.  An op that is lowered reads forms of its inputs and computes a form of its output.  The
 * original value is then the transposed form: that Transpose op is inserted at once and removed again, by
 * om_lower_layout(), if nothing reads it.  Ops that are not lowered read the original values and need no change.
 *
 * A Transpose op of the program only gives the form another order of axes, and a Reshape splits or merges axes of
 * the form: both disappear where the next op reads the form.
 *
 * Layouts are ordinary shapes: nothing but this transformation knows about them. */
#ifndef OM_LOWER_LAYOUT_H
#define OM_LOWER_LAYOUT_H

#include "onnxmem/builder.h"
#include "opdef/cpu_domain.h"

/* Position k of the form is axis `axis[k]` of the original value. */
typedef struct om_form {
	om_value *value;          /* NULL: there is no form */
	int axis[OM_MAX_RANK];
} om_form;

typedef struct om_layout_counts {
	uint64_t convolutions, pools, products, followed; /* ops that were lowered; other ops that follow them */
	uint64_t chosen;          /* layers that are computed as `choices` has it */
	uint64_t transposes;      /* that are left between forms and original values */
} om_layout_counts;

/* How programs are lowered. */
typedef struct om_layout_options {
	bool winograd;            /* convolutions may use it */
	const char *choices;      /* of layers, see choices.h; "" or NULL: the cost model decides */
} om_layout_options;

struct om_layout {
	om_session *session;
	om_prog *p;
	om_arena *mem;            /* for the time of the transformation */
	om_layout_options options;
	om_form *form;            /* by id of the values that the program had at first */
	uint32_t nform;
	om_layout_counts n;
};

/* Lowers one op: `*done` tells whether it did.  An op that was lowered has been removed. */
typedef om_status om_lower_fn(struct om_layout *l, om_op *op, bool *done);

/* Lower all blocks of `p`.  Requires OM_HAS_SHAPES and OM_HAS_CONST; of the facts, only OM_HAS_INLINE and
 * OM_HAS_SHAPES remain valid.  Fails with the message of a new op that is not valid. */
om_status om_lower_layout(om_session *s, om_prog *p, const om_layout_options *o, om_layout_counts *n);

/* ---- For the functions that lower ops. ---- */

/* A new op, not inserted yet: om_lower_insert() does. */
om_op *om_lower_op(struct om_layout *l, const char *domain, const char *type, int version, uint32_t n,
	om_value *const *in);
/* A new op of the same operator with the same attributes. */
om_op *om_lower_copy(struct om_layout *l, const om_op *op, uint32_t n, om_value *const *in);
/* Insert an op before another one, with one output named after `stem`, and infer its type and shape. */
om_status om_lower_insert(struct om_layout *l, om_op *before, om_op *op, const char *stem, om_value **out);
/* The same for an op with `n` outputs, of which those are made that `like` has. */
om_status om_lower_insert_all(struct om_layout *l, om_op *before, om_op *op, const om_op *like, om_value **out);
/* Give an op the attributes of another one. */
void om_lower_add_attrs(struct om_layout *l, om_op *op, const om_op *like);
/* A constant in block `b`; the elements are copied. */
om_value *om_lower_const(struct om_layout *l, om_block *b, const char *stem, om_dtype type, const om_shape *shape,
	const void *elements);
/* The same with one dim of size `n`. */
om_value *om_lower_list(struct om_layout *l, om_block *b, const char *stem, om_dtype type, int64_t n, const void *elements);
/* The same for integers. */
om_value *om_lower_ints(struct om_layout *l, om_block *b, const char *stem, size_t n, const int64_t *v);

/* The form of `v`; its `value` is NULL if it has none. */
const om_form *om_lower_form(const struct om_layout *l, const om_value *v);
/* `v` with axis axis[k] at position k, to be read by `op`. */
om_status om_lower_read(struct om_layout *l, om_op *op, om_value *v, const int *axis, om_value **out);
/* Output `k` of `op` is computed as `form`. */
om_status om_lower_define(struct om_layout *l, om_op *op, uint32_t k, const om_form *form);
/* The same for an op with one output, which is lowered by that: it is removed and counted, and `*done` becomes true. */
om_status om_lower_replace(struct om_layout *l, om_op *op, const om_form *form, uint64_t *count, bool *done);
/* Where ops are inserted that read `v` alone and are made for `op`: before `op`, or in the block of `v` before the op
 * that contains it, so that what an outer block computes is not computed in every iteration. */
om_op *om_lower_place(const om_value *v, om_op *op);
/* Insert `pack`, an op that packs the constant that is its input 0, for `op`; or take the equal op that is there. */
om_status om_lower_pack(struct om_layout *l, om_op *op, om_op *pack, om_value **packed);
/* Remove an op whose outputs are all defined otherwise. */
void om_lower_done(struct om_layout *l, om_op *op, uint64_t *count);

/* The order of axes batch, spatial axes, channels. */
void om_lower_channels_last(int rank, int *axis);
/* The position of axis `a` in an order of `rank` axes. */
int om_lower_position(const int *axis, int rank, int64_t a);
/* Is the value a float32 tensor with a known shape? */
bool om_lower_is_float(const om_value *v);
/* Is the value a tensor of float32, float16 or bfloat16 with a known shape? */
bool om_lower_is_real(const om_value *v);
/* Is the value a tensor of 8-bit integers with a known shape? */
bool om_lower_is_of_bytes(const om_value *v);
/* Has the value a form with channels last?  Its rank is at least 3 then. */
bool om_lower_is_last(const struct om_layout *l, const om_value *v);
/* Do elements in this order of axes lie as with channels last?  Axes of size 1 do not matter. */
bool om_lower_is_order_last(const om_shape *s, const int *axis);
/* Is it computed before the run, whatever the caller does? */
bool om_lower_is_const(const om_value *v);
/* The elements of a constant list of integers; false if there are none. */
bool om_lower_ints_of(const om_value *v, size_t *n, const int64_t **out);

struct om_window;
/* The window of an op with an image and, for a convolution, weights; false for what the kernels do not take. */
bool om_lower_window(struct om_layout *l, om_op *op, const om_shape *weights, bool ceil_mode, struct om_window *w);
/* Its attributes, with explicit padding. */
void om_lower_add_window(struct om_layout *l, om_op *op, const struct om_window *w);

/* ---- The functions, by file. ---- */

/* lower_conv.c */
om_status om_lower_conv(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_pool(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_global_pool(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_batch_norm(struct om_layout *l, om_op *op, bool *done);
/* lower_matmul.c */
om_status om_lower_matmul(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_gemm(struct om_layout *l, om_op *op, bool *done);
/* lower_quantized.c */
om_status om_lower_qlinear_conv(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_conv_integer(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_qlinear_matmul(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_matmul_integer(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_matmul_integer_to_float(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_qgemm(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_qlinear_pool(struct om_layout *l, om_op *op, bool *done);
/* lower_axes.c */
om_status om_lower_pointwise(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_quantize(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_dynamic_quantize(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_qlinear_elementwise(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_axis_attr(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_slice(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_gather(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_pad(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_reduce(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_resize(struct om_layout *l, om_op *op, bool *done);
/* lower_reshape.c */
om_status om_lower_transpose(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_reshape(struct om_layout *l, om_op *op, bool *done);
om_status om_lower_blocks(struct om_layout *l, om_op *op, bool *done);

#endif
