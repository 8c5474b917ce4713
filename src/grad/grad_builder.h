/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients: queries and ops for rules in addition to those of onnxmem/autodiff.h, and the
 * differentiation of bodies. */
#ifndef OM_GRAD_BUILDER_H
#define OM_GRAD_BUILDER_H

#include "onnxmem/autodiff.h"

/* A block whose ops are differentiated; see below. */
typedef struct om_scope om_scope;

/* An index of gradients by operator. */
typedef struct om_gradients om_gradients;

/* Create an index of all gradients of the library, allocated in `mem`. */
om_gradients *om_gradients_new(om_arena *mem);

/* Iterate over the gradients of the library in a fixed order; NULL starts and ends the iteration. */
const om_gradient *om_gradient_next(const om_gradient *prev);

/* The gradient of an op of `p`; NULL: none is registered, or the operator is unknown. */
const om_gradient *om_op_gradient(om_prog *p, const om_op *op);

om_session *om_grad_session(const om_grad *g);      /* receives messages */
om_prog *om_grad_prog(const om_grad *g);            /* the program that is extended */
om_arena *om_grad_mem(const om_grad *g);            /* temporary: freed after the pass */
om_scope *om_grad_scope(const om_grad *g);          /* the scope of the op */

/* Whether input `k` is present.  Its type, shape and data can be read from om_grad_op() without
 * extending its lifetime. */
bool om_grad_has(const om_grad *g, uint32_t k);

/* Has building failed, in this rule or before? */
bool om_grad_failed(const om_grad *g);

/* Create an op of any domain without completing it, for bodies of If, Loop and Scan as well: the types
 * and shapes of its outputs are not inferred before om_emit_done(). */
om_op *om_emit_open(om_grad *g, const char *domain, const char *type, const om_attr *attrs,
	size_t nin, om_value *const *in, size_t nout);
void om_emit_done(om_grad *g, om_op *op);

/* Attributes; strings and numbers are copied. */
om_attr om_attr_make_int(om_grad *g, const char *name, int64_t v);
om_attr om_attr_make_ints(om_grad *g, const char *name, size_t n, const int64_t *v);
om_attr om_attr_make_float(om_grad *g, const char *name, float v);
om_attr om_attr_make_string(om_grad *g, const char *name, const char *v);

/* Attribute `name` of the forward op, explicit or by default, under the name `as`; only if
 * om_attr_find() finds it. */
om_attr om_attr_make_copy(om_grad *g, const char *name, const char *as);

/* A constant integer of rank 0. */
om_value *om_emit_int64(om_grad *g, int64_t v);

/* A constant tensor; its elements are copied. */
om_value *om_emit_tensor(om_grad *g, const om_tensor *t);

/* A binary operator with a constant scalar as second operand: om_emit_scalar(g, "Mul", x, 0.5). */
om_value *om_emit_scalar(om_grad *g, const char *type, om_value *x, double v);

/* Axes are passed as an attribute or as an input, as the opset requires.  They are non-negative and
 * ascending; `x` is returned if there are none. */
om_value *om_emit_reduce(om_grad *g, const char *type, om_value *x, size_t n, const int64_t *axis,
	bool keepdims);
om_value *om_emit_squeeze(om_grad *g, om_value *x, size_t n, const int64_t *axis);
om_value *om_emit_unsqueeze(om_grad *g, om_value *x, size_t n, const int64_t *axis);

/* Frequently used ops, with their attributes. */
om_value *om_emit_transpose(om_grad *g, om_value *x, size_t n, const int64_t *perm);
om_value *om_emit_cast(om_grad *g, om_value *x, om_dtype to);   /* returns x if it has that type */

/* Elements [from, to) along an axis. */
om_value *om_emit_slice(om_grad *g, om_value *x, int64_t axis, int64_t from, int64_t to);

/* The shape of a value of the forward path, as a list of integers: a constant if it is known, otherwise
 * computed where the value is defined, so that the lifetime of the value is not extended. */
om_value *om_emit_shape(om_grad *g, om_value *forward);

/* One dim of that shape, as a list of one element. */
om_value *om_emit_dim(om_grad *g, om_value *forward, int axis);

/* `x` in this shape, a list of int64; a dim of 0 is 0, and not the dim of `x`. */
om_value *om_emit_reshape(om_grad *g, om_value *x, om_value *shape);

/* `x` in the shape of a value of the forward path; returns `x` itself if it has that shape. */
om_value *om_emit_reshape_as(om_grad *g, om_value *x, om_value *forward);
om_value *om_emit_expand_as(om_grad *g, om_value *x, om_value *forward);
om_value *om_emit_zeros_as(om_grad *g, om_value *forward);

/* The adjoint of a broadcast: `x` summed over the axes along which `forward` was repeated. */
om_value *om_emit_sum_to(om_grad *g, om_value *x, om_value *forward);

/* The number of elements of a value of the forward path along these axes (n < 0: all), as a scalar of
 * the element type of `like`. */
om_value *om_emit_count(om_grad *g, const om_value *like, om_value *forward, int n, const int64_t *axis);

/* ---- Bodies. ----
 *
 * A scope is a block whose ops are differentiated, and the block that receives their gradients.  For
 * the graph they are the same.  For a body, the rule of the op that owns it creates a nested scope,
 * seeds the gradients of the body's results, requests gradients of values in addition to those that the
 * body captures, runs the reverse pass, and reads the resulting gradients, which are values of `to`.
 */
struct om_scope {
	om_block *from, *to;         /* the block to differentiate, and the block that receives gradients */
	om_op *first, *last;         /* the range of ops of `from` to differentiate; NULL: all */
	om_scope *outer;             /* the enclosing scope; NULL: the graph */
	/* Returns a value of `to` that holds `v`, which is computed in `from` and is stored from now
	 * on. NULL: values of `from` are accessible in `to` directly. */
	om_value *(*keep)(om_scope *s, om_grad *g, om_value *v);
	void *arg;                   /* for use by `keep` */
	struct om_tape *tape;        /* state of the whole backward pass */
	om_value **grad;             /* [nvalue], by value id: gradients accumulated so far */
	om_value **kept;             /* by value id: the result of `keep`, or NULL */
	bool *is_active;             /* by value id: it is requested, or depends on a requested value */
	uint32_t nvalue;             /* number of values of the program when the scope was created */
};

/* Create a scope nested in that of `g`, with nothing requested; it is freed after the backward pass. */
om_scope *om_scope_new(om_grad *g, om_block *from, om_block *to);

/* Request the gradient of a value of `from` or of an enclosing block. */
void om_scope_request(om_scope *s, om_value *v);

/* Whether a value is requested in the scope, or depends on a requested value.  Valid after
 * om_scope_mark_active(). */
bool om_scope_is_requested(const om_scope *s, const om_value *v);

/* Mark all values in the differentiated range that depend on requested values. */
void om_scope_mark_active(om_scope *s);

/* Add `v`, a value of `to`, to the gradient of `of`. */
void om_scope_seed(om_scope *s, om_value *of, om_value *v);

/* Differentiate the ops of the range in reverse order. */
om_status om_scope_run(om_scope *s);

/* The accumulated gradient of `of`; NULL: none. */
om_value *om_scope_gradient(om_scope *s, const om_value *of);

/* A context that builds in the scope's `to`, for ops before and after its reverse pass. */
om_grad *om_scope_grad(om_scope *s, om_grad *g);

/* The value of `to` that holds a value of the forward path: the value itself if it is accessible there,
 * otherwise the result of `keep`. */
om_value *om_scope_import(om_scope *s, om_grad *g, om_value *v);

/* Add the gradient that the op's bodies contribute to a captured value, in the scope of the op; and
 * whether that gradient is required. */
void om_grad_set_value_grad(om_grad *g, om_value *of, om_value *v);
bool om_grad_value_is_needed(const om_grad *g, const om_value *v);

/* Replace ops Gradient of ai.onnx.preview.training, which refer to values of the graph by name, by the
 * ops that compute those gradients.  `*n` receives their number; if it is zero, nothing else is
 * checked. Requires OM_HAS_INLINE. */
om_status om_prog_name_gradients(om_session *s, om_prog *p, uint64_t *n);

/* Add the entries of a table, which ends with an entry without a name and must outlive the index.  They
 * take precedence over earlier entries. */
void om_gradients_add(om_gradients *all, const om_gradient *table);

/* The gradient of the operator with this definition.  NULL: none is registered; it is an error if a
 * gradient has to pass through the operator. */
const om_gradient *om_gradients_find(const om_gradients *all, const om_opdef *row);

/* The gradients for the ops of a program: those of the library and those added for custom operators.
 * Valid as long as the program. */
om_gradients *om_prog_gradients(om_prog *p);

#endif
