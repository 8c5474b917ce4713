/* SPDX-License-Identifier: Apache-2.0 */
/* Operators: contexts, inference, and helpers for callbacks of operator definitions; see onnxmem/opdef.h. */
#ifndef OM_OP_CONTEXT_H
#define OM_OP_CONTEXT_H

#include "onnxmem/opdef.h"

/* Refuse inputs whose element types are not allowed; unknown types are accepted. */
om_status om_opdef_check_types(const om_opdef *row, const om_op_context *c);

/* True if the inputs may have their types.  `takes` holds OM_MAX_TYPED_INPUTS sets as in
 * om_opdef.input_types; unknown types are accepted. */
bool om_types_fit(const uint32_t *takes, const om_op_context *c);

/* Initialize the context of `op` with what is known while planning: types, shapes, data of constants.
 * Arrays are allocated from `mem`. */
void om_op_context_init(om_op_context *c, om_session *s, om_arena *mem, const om_op *op);

/* One look at an op, for several columns of its definition: the call as it is known while planning; what it
 * holds comes from `mem`.  False where the columns view, inplace, subbuffer and scratch may not be called: a
 * shape is not known, or something is no tensor. */
bool om_op_query(om_op_context *c, om_arena *mem, const om_op *op);

/* May the column `inplace` be called for an input and an output of known shapes?  `is_known`: what om_op_query() returned. */
bool om_op_asks_inplace(const om_op *op, bool is_known);

/* Is input `in` stored in output 0 from `*offset` on, by the column `subbuffer` or, if the output is all of
 * the input, by the column `view`?  Of a context that om_op_query() returned true for. */
bool om_op_context_subbuffer(const om_op_context *c, uint32_t in, uint64_t *offset);

/* The column `inplace`, for the kernel that computes the op where it runs.  Of such a context; both have the same number of
 * bytes. */
bool om_op_context_inplace(const om_op_context *c, uint32_t out, uint32_t in);

/* The bytes of scratch of the kernel that computes the op where it runs, by `threads` threads.  Of such a context. */
uint64_t om_op_context_scratch(om_op_context *c, uint32_t threads, bool precise);

/* The device whose memory a value is in; NULL: it is in that of the processor, or is a constant or a parameter. */
const char *om_value_device(const om_value *v);

/* How a kernel is selected and prepared: by how many of `threads` the op is computed, which is by one for an op so
 * small that to wake others takes longer; and whether `is_fast` kernels are left out.  Before om_kernel_bind(), of
 * a context with known shapes. */
void om_op_context_workers(om_op_context *c, uint32_t threads, bool precise);

/* The column `cost`, or its default.  Of such a context, or of one whose outputs are not known, which count nothing
 * then. */
om_cost om_op_context_cost(const om_op_context *c);

/* Check that an op with a definition has an allowed number of inputs and outputs and that no required
 * one is left out.  OM_INVALID with a message otherwise. */
om_status om_op_check(om_session *s, const om_op *op);

/* Run `infer` on `op` and store the results in the outputs' values; for an op without a definition, keep
 * the types declared by the file.  A result that contradicts a declared shape is reported as a warning,
 * and the inferred one is used.  An op for which `infer` returns OM_UNSUPPORTED becomes opaque if the
 * file declares its outputs. */
om_status om_op_infer(om_session *s, om_prog *p, om_op *op);

/* Infer the outputs of a call of which all elements are known that decide their shapes, and compare them with the
 * shapes that the call has for them.  OM_RUN if they differ.  For a session of NULL, without a message. */
om_status om_op_check_shapes(const om_op_context *c);

/* For an op that calls a function: bind it to a definition with OM_IMPLEMENTS_FUNCTION if that accepts
 * the types and shapes of its inputs, as they are known or as the function declares them.  Otherwise it
 * has no definition, and the function must be inlined. */
bool om_op_bind(om_op *op);

/* Infer every op of a block and of its bodies, in order. */
om_status om_block_infer(om_session *s, om_prog *p, om_block *b);

/* May output `out` be computed in place over the value `in`, considering every input that is this value? */
bool om_op_inplace_allowed(const om_op *op, uint32_t out, const om_value *in);

/* Guarded calls of the callbacks: they also handle ops without a definition. */
bool om_op_subbuffer(const om_op *op, uint32_t in, uint64_t *offset);
uint64_t om_op_scratch(const om_op *op, uint32_t threads, bool precise);

/* As om_op_view() and so on, for many calls: the context of an op is made once for all calls in a row
 * about it, during which the op must not change.  Starts as zero. */
typedef struct om_op_look {
	om_arena *mem;
	const om_op *op;         /* the op that `c` is of */
	bool is_known;           /* all shapes are */
	om_op_context c;
} om_op_look;
bool om_op_look_view(om_op_look *l, const om_op *op, uint32_t out, om_view_of *v);
bool om_op_look_inplace(om_op_look *l, const om_op *op, uint32_t out, uint32_t in);
bool om_op_look_subbuffer(om_op_look *l, const om_op *op, uint32_t in, uint64_t *offset);
void om_op_look_end(om_op_look *l);

/* Upper bound for the shape of an output: its own shape if that is known; false if there is no bound. */
bool om_op_max_shape(const om_op *op, uint32_t out, om_shape *most);

/* Is the input present?  Is the output? */
bool om_has_in(const om_op_context *c, uint32_t k);
bool om_has_out(const om_op_context *c, uint32_t k);

/* As om_in_ints(), for partially known elements; false if none is known.  There are at most OM_MAX_RANK elements
 * unless they are data. */
bool om_in_symbolic_elems(const om_op_context *c, uint32_t k, const om_symbolic_elem **e, size_t *n);

/* The only element of an input of any numeric type; false if not known. */
bool om_in_scalar(const om_op_context *c, uint32_t k, double *v);

/* NumPy broadcast of two shapes, including symbols and unknown dims; false if they are incompatible. */
bool om_broadcast(const om_shape *a, const om_shape *b, om_shape *out);

/* Normalize an axis, negative ones counting from the end; false if outside [-rank, rank). */
bool om_axis(int64_t axis, int rank, int *out);

/* Elements of an int64 or int32 input that determines shapes; false if they are not known.  `*v` is
 * allocated from c->mem. */
bool om_in_ints(const om_op_context *c, uint32_t k, int64_t **v, size_t *n);

#endif
