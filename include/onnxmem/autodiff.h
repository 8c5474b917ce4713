/* Reverse-mode automatic differentiation: an explicit backward path of standard operators.
 *
 * An operator's gradient is registered by an om_gradient entry.  Its maker takes one op of the forward
 * path and builds the ops that compute the gradients of its inputs from the gradients of its outputs.
 * Every forward value that a maker requests stays live until the backward path reads it, so a maker
 * requests as few as possible, and none before it knows that a gradient requires it.
 *
 *     static void
 *     Mul_grad(om_grad *g)
 *     {
 *             om_value *dy = om_grad_output_grad(g, 0);
 *
 *             for (uint32_t k = 0; k < 2; k++)
 *                     if (om_grad_is_needed(g, k))
 *                             om_grad_set_input_grad(g, k, om_emit(g, "Mul", dy, om_grad_forward_input(g, 1 - k)));
 *     }
 *
 * A maker must set the gradient of every input for which one is requested: a value, or NULL for zero.
 * A gradient that is not set is an error, not a zero.  Makers do not return errors: the first error
 * while building is recorded, and everything built after it is discarded.  Values are never NULL; their
 * shapes may be unknown, after an error or otherwise.
 */
#ifndef OM_AUTODIFF_H
#define OM_AUTODIFF_H

#include "onnxmem/builder.h"


#ifdef __cplusplus
extern "C" {
#endif

/* The context that a maker queries and builds through; valid while the maker runs. */
typedef struct om_grad om_grad;
typedef struct om_scope om_scope;

/* ---- Which operators have gradients. ---- */

/* Whether output 0 holds probabilities or log-probabilities over the attribute "axis". */
typedef enum om_softmax_output { OM_NOT_PROBS, OM_PROBS, OM_LOG_PROBS } om_softmax_output;

/* The gradient of an operator, for a range of its versions. */
typedef struct om_gradient {
	const char *domain;          /* NULL or "" for ai.onnx */
	const char *name;            /* operator name; NULL ends a table */
	int since, until;            /* opset versions, inclusive; until 0: no upper bound */

	/* Builds the gradients of the inputs. */
	void (*maker)(om_grad *g);

	/* The operator that computes these gradients in a single op, for a backward pass with
	 * `functions`: see src/grad/fused.h.  NULL: none. */
	const struct om_fused *fused;

	/* Switches an op from inference to training mode, before a training step is built.  NULL: the
	 * modes do not differ. */
	void (*to_training_mode)(om_grad *g, om_op *op);

	/* Bit mask of the inputs that are running statistics, not trainable weights. */
	uint32_t statistics;

	/* Whether output 0 holds probabilities, exp(input 0) normalized to the sum 1, or their
	 * logarithms.  A cross entropy is then computed from input 0, or from the log-probabilities. */
	om_softmax_output softmax_output;
} om_gradient;

/* An index of gradients by operator. */
typedef struct om_gradients om_gradients;

/* Create an index of all gradients of the library, allocated in `mem`. */
OM_API om_gradients *om_gradients_new(om_arena *mem);
/* Add the entries of a table, which ends with an entry without a name and must outlive the index.  They
 * take precedence over earlier entries. */
OM_API void om_gradients_add(om_gradients *all, const om_gradient *table);
/* The gradient of the operator with this definition.  NULL: none is registered; it is an error if a
 * gradient has to pass through the operator. */
OM_API const om_gradient *om_gradients_find(const om_gradients *all, const om_opdef *row);

/* Iterate over the gradients of the library in a fixed order; NULL starts and ends the iteration. */
OM_API const om_gradient *om_gradient_next(const om_gradient *prev);

/* The gradients for the ops of a program: those of the library and those added for custom operators.
 * Valid as long as the program. */
OM_API om_gradients *om_prog_gradients(om_prog *p);
/* The gradient of an op of `p`; NULL: none is registered, or the operator is unknown. */
OM_API const om_gradient *om_op_gradient(om_prog *p, const om_op *op);

/* ---- Queries of a maker. ---- */

OM_API const om_op *om_grad_op(const om_grad *g);          /* the op of the forward path */
OM_API om_session *om_grad_session(const om_grad *g);      /* receives messages */
OM_API om_prog *om_grad_prog(const om_grad *g);            /* the program that is extended */
OM_API om_arena *om_grad_mem(const om_grad *g);            /* temporary: freed after the pass */
OM_API om_scope *om_grad_scope(const om_grad *g);          /* the scope of the op */

/* The gradient of output `k`; NULL: no gradient reaches it.  At least one output has a gradient. */
OM_API om_value *om_grad_output_grad(om_grad *g, uint32_t k);

/* Input or output `k` of the op for use in the backward path, which extends its lifetime.  NULL for an
 * omitted input.  An output that the op omits is added to it. */
OM_API om_value *om_grad_forward_input(om_grad *g, uint32_t k);
OM_API om_value *om_grad_forward_output(om_grad *g, uint32_t k);

/* Whether input `k` is present.  Its type, shape and data can be read from om_grad_op() without
 * extending its lifetime. */
OM_API bool om_grad_has(const om_grad *g, uint32_t k);

/* Whether a requested gradient depends on the gradient of input `k`.  Always false for a type that is
 * not floating-point and for an omitted input. */
OM_API bool om_grad_is_needed(const om_grad *g, uint32_t k);

/* Set the gradient of input `k`, which has the shape of that input; NULL: zero.  Several calls
 * accumulate. */
OM_API void om_grad_set_input_grad(om_grad *g, uint32_t k, om_value *v);
/* The same, with the shape that input `k` is broadcast to: reduced to the shape of the input. */
OM_API void om_grad_set_broadcast_grad(om_grad *g, uint32_t k, om_value *v);

/* Report that the maker does not support this op.  The message continues the one that om_op_fail()
 * begins. */
OM_API void om_grad_fail(om_grad *g, om_status st, const char *fmt, ...) OM_PRINTF(3, 4);
OM_API bool om_grad_failed(const om_grad *g);

/* The maker of piecewise constant operators: all gradients are zero. */
OM_API void om_grad_set_zero(om_grad *g);

/* ---- Builder: appends ops of the program's opset to the backward path. ---- */

/* om_emit(g, "Mul", a, b): build an op with one output, which is returned.  NULL among the inputs is an
 * omitted input. */
#define om_emit(g, type, ...)         om_emit_attrs(g, type, NULL, __VA_ARGS__)
/* The same with attributes: om_emit_attrs(g, "Concat", OM_A(om_attr_make_int(g, "axis", 0)), a, b). */
#define om_emit_attrs(g, type, attrs, ...)                                         \
	om_emit_op(g, type, attrs, sizeof((om_value *[]){__VA_ARGS__}) / sizeof(om_value *), \
		(om_value *[]){__VA_ARGS__}, 1, NULL)
/* An attribute list for om_emit_attrs() and om_emit_op(). */
#define OM_A(...)                  (const om_attr[]){__VA_ARGS__, {0}}

/* `out` receives all `nout` outputs; NULL: only the first is required.  Returns the first. */
OM_API om_value *om_emit_op(om_grad *g, const char *type, const om_attr *attrs, size_t nin,
	om_value *const *in, size_t nout, om_value **out);
/* Create an op of any domain without completing it, for bodies of If, Loop and Scan as well: the types
 * and shapes of its outputs are not inferred before om_emit_done(). */
OM_API om_op *om_emit_open(om_grad *g, const char *domain, const char *type, const om_attr *attrs,
	size_t nin, om_value *const *in, size_t nout);
OM_API void om_emit_done(om_grad *g, om_op *op);

/* Attributes; strings and numbers are copied. */
OM_API om_attr om_attr_make_int(om_grad *g, const char *name, int64_t v);
OM_API om_attr om_attr_make_ints(om_grad *g, const char *name, size_t n, const int64_t *v);
OM_API om_attr om_attr_make_float(om_grad *g, const char *name, float v);
OM_API om_attr om_attr_make_string(om_grad *g, const char *name, const char *v);
/* Attribute `name` of the forward op, explicit or by default, under the name `as`; only if
 * om_attr_find() finds it. */
OM_API om_attr om_attr_make_copy(om_grad *g, const char *name, const char *as);

/* Constants: a scalar (rank 0) of the element type of `like`; integers, of rank 0 or 1. */
OM_API om_value *om_emit_number(om_grad *g, const om_value *like, double v);
OM_API om_value *om_emit_int64(om_grad *g, int64_t v);
OM_API om_value *om_emit_list(om_grad *g, size_t n, const int64_t *v);
/* A constant tensor; its elements are copied. */
OM_API om_value *om_emit_tensor(om_grad *g, const om_tensor *t);

/* A binary operator with a constant scalar as second operand: om_emit_scalar(g, "Mul", x, 0.5). */
OM_API om_value *om_emit_scalar(om_grad *g, const char *type, om_value *x, double v);

/* Axes are passed as an attribute or as an input, as the opset requires.  They are non-negative and
 * ascending; `x` is returned if there are none. */
OM_API om_value *om_emit_reduce(om_grad *g, const char *type, om_value *x, size_t n, const int64_t *axis,
	bool keepdims);
OM_API om_value *om_emit_squeeze(om_grad *g, om_value *x, size_t n, const int64_t *axis);
OM_API om_value *om_emit_unsqueeze(om_grad *g, om_value *x, size_t n, const int64_t *axis);

/* Frequently used ops, with their attributes. */
OM_API om_value *om_emit_transpose(om_grad *g, om_value *x, size_t n, const int64_t *perm);
OM_API om_value *om_emit_cast(om_grad *g, om_value *x, om_dtype to);   /* returns x if it has that type */
/* Elements [from, to) along an axis. */
OM_API om_value *om_emit_slice(om_grad *g, om_value *x, int64_t axis, int64_t from, int64_t to);

/* The shape of a value of the forward path, as a list of integers: a constant if it is known, otherwise
 * computed where the value is defined, so that the lifetime of the value is not extended. */
OM_API om_value *om_emit_shape(om_grad *g, om_value *forward);
/* One dim of that shape, as a list of one element. */
OM_API om_value *om_emit_dim(om_grad *g, om_value *forward, int axis);
/* `x` in the shape of a value of the forward path; returns `x` itself if it has that shape. */
OM_API om_value *om_emit_reshape_as(om_grad *g, om_value *x, om_value *forward);
OM_API om_value *om_emit_expand_as(om_grad *g, om_value *x, om_value *forward);
OM_API om_value *om_emit_zeros_as(om_grad *g, om_value *forward);
/* The adjoint of a broadcast: `x` summed over the axes along which `forward` was repeated. */
OM_API om_value *om_emit_sum_to(om_grad *g, om_value *x, om_value *forward);
/* The number of elements of a value of the forward path along these axes (n < 0: all), as a scalar of
 * the element type of `like`. */
OM_API om_value *om_emit_count(om_grad *g, const om_value *like, om_value *forward, int n, const int64_t *axis);

/* ---- Bodies. ----
 *
 * A scope is a block whose ops are differentiated, and the block that receives their gradients.  For
 * the graph they are the same.  For a body, the maker of the op that owns it creates a nested scope,
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
OM_API om_scope *om_scope_new(om_grad *g, om_block *from, om_block *to);
/* Request the gradient of a value of `from` or of an enclosing block. */
OM_API void om_scope_request(om_scope *s, om_value *v);
/* Whether a value is requested in the scope, or depends on a requested value.  Valid after
 * om_scope_mark_active(). */
OM_API bool om_scope_is_requested(const om_scope *s, const om_value *v);
/* Mark all values in the differentiated range that depend on requested values. */
OM_API void om_scope_mark_active(om_scope *s);
/* Add `v`, a value of `to`, to the gradient of `of`. */
OM_API void om_scope_seed(om_scope *s, om_value *of, om_value *v);
/* Differentiate the ops of the range in reverse order. */
OM_API om_status om_scope_run(om_scope *s);
/* The accumulated gradient of `of`; NULL: none. */
OM_API om_value *om_scope_gradient(om_scope *s, const om_value *of);
/* A context that builds in the scope's `to`, for ops before and after its reverse pass. */
OM_API om_grad *om_scope_grad(om_scope *s, om_grad *g);
/* The value of `to` that holds a value of the forward path: the value itself if it is accessible there,
 * otherwise the result of `keep`. */
OM_API om_value *om_scope_import(om_scope *s, om_grad *g, om_value *v);

/* Add the gradient that the op's bodies contribute to a captured value, in the scope of the op; and
 * whether that gradient is required. */
OM_API void om_grad_set_value_grad(om_grad *g, om_value *of, om_value *v);
OM_API bool om_grad_value_is_needed(const om_grad *g, const om_value *v);

/* ---- The backward path. ---- */

/* Parameters of a backward pass. */
typedef struct om_backward {
	om_value *loss;              /* one element; any shape if `seed` is given */
	om_value *seed;              /* the gradient of the loss; NULL: one */
	om_value *const *wrt;        /* the values whose gradients are requested */
	uint32_t nwrt;               /* length of `wrt` and `grad` */
	bool copies;                 /* leave the forward ops unchanged: further outputs of them that the
	                                backward path requires are outputs of copies */
	bool functions;              /* build each gradient that a single op can compute as a call of a
	                                function of domain org.onnxmem.grad, whose body is what the maker
	                                builds */
	om_value **grad;             /* [nwrt], filled by the call; NULL: the loss does not depend on it */
} om_backward;

/* Append the backward path to the graph.  Requires OM_HAS_INLINE, OM_HAS_SHAPES and opset 16 or later.
 * OM_UNSUPPORTED names the first op that cannot be differentiated. */
OM_API om_status om_prog_backward(om_session *s, om_prog *p, om_backward *b);

/* Replace ops Gradient of ai.onnx.preview.training, which refer to values of the graph by name, by the
 * ops that compute those gradients.  `*n` receives their number; if it is zero, nothing else is
 * checked. Requires OM_HAS_INLINE. */
OM_API om_status om_prog_name_gradients(om_session *s, om_prog *p, uint64_t *n);

/* Parameters of a training step. */
typedef struct om_train_options {
	const char *loss;            /* a value of the graph with one element; NULL: the loss is built */
	const char *loss_fn;         /* "cross-entropy" or "mse"; NULL: `loss` exists in the graph */
	const char *output;          /* the value that the built loss is computed of; NULL: the first
	                                result */
	const char *label;           /* the name of the new label input; NULL: "label" */
	const char *const *wrt;      /* names; NULL: all weights that the loss depends on */
	size_t nwrt;                 /* length of `wrt` */
	double clip_norm;            /* maximum global L2 norm of all gradients; 0: no clipping */
	double clip_value;           /* maximum magnitude of a gradient element; 0: no clipping */
	const char *optimizer;       /* "sgd", "momentum", "adam", "adamw"; NULL: gradients become results */
	double rate, momentum, beta1, beta2, epsilon, decay; /* hyperparameters of the optimizer; see
	                                                        om_train_options_default() */
	bool trains;                 /* switch BatchNormalization, Dropout and the like to training mode */
	bool keeps_outputs;          /* keep the results of the graph, after the loss */
	bool copies, functions;      /* as in om_backward */
} om_train_options;

/* The default hyperparameters of all optimizers. */
OM_API om_train_options om_train_options_default(void);

/* Whether the program has an opset below 16, or an IR version that does not support inputs with
 * defaults.  Such a program has to be converted before gradients are built. */
OM_API bool om_prog_is_old(const om_prog *p);

/* Turn the program into a training step: add the loss, the gradients and, with an optimizer, inputs for
 * parameters, states and the learning rate `lr`, whose defaults are their initial values, and results
 * for the updated values, which are carried to the next run.  Requires OM_HAS_INLINE and OM_HAS_SHAPES;
 * invalidates the results of constant analysis.  An old program is converted, but refused with
 * `copies`, which leaves the graph unchanged. */
OM_API om_status om_prog_add_training_step(om_session *s, om_prog *p, const om_train_options *l);

#ifdef __cplusplus
}
#endif

#endif
