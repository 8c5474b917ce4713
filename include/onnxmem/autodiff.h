/* Gradients: an explicit backward path, in standard operators.
 *
 * A gradient is registered for an operator by a row of om_gradient, whose maker
 * looks at one op of the forward path and builds the ops that compute the gradients of
 * its inputs from those of its outputs.  What a maker asks for lives on until the
 * backward path, so it asks for as little as it can, and for nothing before it knows
 * that it is required.
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
 * A maker has to set the gradient of every input for which one is requested: a value, or
 * NULL for zero.  A missing one is an error, not a zero.  Makers do not return errors: the
 * first error of what they build is kept, and what they build after it is discarded.  Values
 * are never NULL; their shapes may be unknown, after an error as at any time.
 */
#ifndef OM_AUTODIFF_H
#define OM_AUTODIFF_H

#include "onnxmem/builder.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a maker asks and tells; it lives as long as the maker runs. */
typedef struct om_grad om_grad;
typedef struct om_scope om_scope;

/* ---- Which operators have gradients. ---- */

/* What an output says of classes along the op's attribute "axis". */
typedef enum om_softmax_output { OM_NOT_PROBS, OM_PROBS, OM_LOG_PROBS } om_softmax_output;

/* The gradient of an operator, in some of its versions. */
typedef struct om_gradient {
	const char *domain;          /* NULL or "" for ai.onnx */
	const char *name;            /* of the operator; NULL ends a table */
	int since, until;            /* versions, inclusive; until 0: still the newest */

	/* Build the gradients of the inputs. */
	void (*maker)(om_grad *g);

	/* The op that computes these gradients at once, for a backward pass with `functions`: see
	 * src/grad/fused.h.  NULL: there is none. */
	const struct om_fused *fused;

	/* Make an op that is in inference mode do what it does in training, before a training step is
	 * built.  NULL: there is no difference. */
	void (*to_training_mode)(om_grad *g, om_op *op);

	/* Inputs that are statistics of earlier data, a bit each: they are not weights to be learned. */
	uint32_t statistics;

	/* Does output 0 hold probabilities, exp(input 0) normalized to the sum 1, or their logarithms?  A
	 * cross entropy is then computed from input 0, or from the logarithms. */
	om_softmax_output softmax_output;
} om_gradient;

/* An index of gradients by operator. */
typedef struct om_gradients om_gradients;

/* All gradients of the library, in `mem`. */
OM_API om_gradients *om_gradients_new(om_arena *mem);
/* Add those of a table, which ends with a row without a name and has to outlive the index.  They are
 * found before those that were there. */
OM_API void om_gradients_add(om_gradients *all, const om_gradient *table);
/* The gradient of the operator of this row; NULL: none can go through, and one that has to is an
 * error. */
OM_API const om_gradient *om_gradients_find(const om_gradients *all, const om_opdef *row);

/* Visit the gradients of the library, in a fixed order; NULL starts and ends. */
OM_API const om_gradient *om_gradient_next(const om_gradient *prev);

/* The gradients for the ops of a program: those of the library, and those that were added for operators
 * from elsewhere.  They live as long as the program. */
OM_API om_gradients *om_prog_gradients(om_prog *p);
/* The gradient of an op of `p`; NULL: none, or its operator is not known. */
OM_API const om_gradient *om_op_gradient(om_prog *p, const om_op *op);

/* ---- What a maker is told. ---- */

OM_API const om_op *om_grad_op(const om_grad *g);          /* the op of the forward path */
OM_API om_session *om_grad_session(const om_grad *g);      /* which messages go to */
OM_API om_prog *om_grad_prog(const om_grad *g);            /* which all of it grows in */
OM_API om_arena *om_grad_mem(const om_grad *g);            /* for lists; dies with the backward pass */
OM_API om_scope *om_grad_scope(const om_grad *g);          /* where the op is */

/* The gradient of output `k`; NULL when none flows.  Of some output there is one. */
OM_API om_value *om_grad_output_grad(om_grad *g, uint32_t k);

/* Input or output `k` of the op, as the backward path sees it: it lives on.  NULL for an
 * input left out.  An output that the op has, but nobody took, is taken from now
 * on. */
OM_API om_value *om_grad_forward_input(om_grad *g, uint32_t k);
OM_API om_value *om_grad_forward_output(om_grad *g, uint32_t k);

/* Is there an input `k`?  Its type, shape and data can be looked at in om_grad_op() without
 * keeping anything alive. */
OM_API bool om_grad_has(const om_grad *g, uint32_t k);

/* Is the gradient of input `k` required for one that was requested?  Never for a type that is not
 * floating-point, or for an input left out. */
OM_API bool om_grad_is_needed(const om_grad *g, uint32_t k);

/* The gradient of input `k`, of the shape of that input; or NULL: zero.  Several are added. */
OM_API void om_grad_set_input_grad(om_grad *g, uint32_t k, om_value *v);
/* The same, of the shape that input `k` is broadcast to. */
OM_API void om_grad_set_broadcast_grad(om_grad *g, uint32_t k, om_value *v);

/* The maker cannot do this: a sentence, which om_op_fail() starts. */
OM_API void om_grad_fail(om_grad *g, om_status st, const char *fmt, ...) OM_PRINTF(3, 4);
OM_API bool om_grad_failed(const om_grad *g);

/* The maker of operators that are piecewise constant: all gradients are zero. */
OM_API void om_grad_set_zero(om_grad *g);

/* ---- The language: ops of the program's opset, at the end of the backward path. ---- */

/* om_emit(g, "Mul", a, b): an op with one output, which is returned.  A NULL among the inputs
 * is one left out. */
#define om_emit(g, type, ...)         om_emit_attrs(g, type, NULL, __VA_ARGS__)
/* The same with attributes: om_emit_attrs(g, "Concat", OM_A(om_attr_make_int(g, "axis", 0)), a, b). */
#define om_emit_attrs(g, type, attrs, ...)                                         \
	om_emit_op(g, type, attrs, sizeof((om_value *[]){__VA_ARGS__}) / sizeof(om_value *), \
		(om_value *[]){__VA_ARGS__}, 1, NULL)
/* A list of attributes, for om_emit_attrs() and om_emit_op(). */
#define OM_A(...)                  (const om_attr[]){__VA_ARGS__, {0}}

/* `out` gets all `nout` outputs; NULL: nobody wants them.  Returns the first. */
OM_API om_value *om_emit_op(om_grad *g, const char *type, const om_attr *attrs, size_t nin,
	om_value *const *in, size_t nout, om_value **out);
/* The same, and the op itself, in the opset of another domain; for bodies of If, Loop and Scan
 * as well: `out` is not inferred before om_emit_done(). */
OM_API om_op *om_emit_open(om_grad *g, const char *domain, const char *type, const om_attr *attrs,
	size_t nin, om_value *const *in, size_t nout);
OM_API void om_emit_done(om_grad *g, om_op *op);

/* Attributes; texts and numbers are copied. */
OM_API om_attr om_attr_make_int(om_grad *g, const char *name, int64_t v);
OM_API om_attr om_attr_make_ints(om_grad *g, const char *name, size_t n, const int64_t *v);
OM_API om_attr om_attr_make_float(om_grad *g, const char *name, float v);
OM_API om_attr om_attr_make_string(om_grad *g, const char *name, const char *v);
/* Attribute `name` of the forward op, as it is written there or by default, under
 * another name; only where om_attr_find() finds it. */
OM_API om_attr om_attr_make_copy(om_grad *g, const char *name, const char *as);

/* Constants: one number of the element type of `like`, of rank 0; integers, of rank 1 or 0. */
OM_API om_value *om_emit_number(om_grad *g, const om_value *like, double v);
OM_API om_value *om_emit_int64(om_grad *g, int64_t v);
OM_API om_value *om_emit_list(om_grad *g, size_t n, const int64_t *v);
/* A tensor with elements, which are copied. */
OM_API om_value *om_emit_tensor(om_grad *g, const om_tensor *t);

/* Binary operators with a number: om_emit_scalar(g, "Mul", x, 0.5). */
OM_API om_value *om_emit_scalar(om_grad *g, const char *type, om_value *x, double v);

/* Axes as the opset takes them, as an attribute or as an input.  They are not negative,
 * ascending; with none `x` is returned. */
OM_API om_value *om_emit_reduce(om_grad *g, const char *type, om_value *x, size_t n, const int64_t *axis,
	bool keepdims);
OM_API om_value *om_emit_squeeze(om_grad *g, om_value *x, size_t n, const int64_t *axis);
OM_API om_value *om_emit_unsqueeze(om_grad *g, om_value *x, size_t n, const int64_t *axis);

/* Ops that are asked for often, with their attributes. */
OM_API om_value *om_emit_transpose(om_grad *g, om_value *x, size_t n, const int64_t *perm);
OM_API om_value *om_emit_cast(om_grad *g, om_value *x, om_dtype to);   /* x itself where it is one */
/* Elements [from, to) along an axis. */
OM_API om_value *om_emit_slice(om_grad *g, om_value *x, int64_t axis, int64_t from, int64_t to);

/* The shape of a value of the forward path, as a list of integers: a constant where it is
 * known, else found out where the value is made, so that the value need not live on. */
OM_API om_value *om_emit_shape(om_grad *g, om_value *forward);
/* A dim of it, a list of one. */
OM_API om_value *om_emit_dim(om_grad *g, om_value *forward, int axis);
/* `x` in the shape of a value of the forward path; `x` itself where it has that. */
OM_API om_value *om_emit_reshape_as(om_grad *g, om_value *x, om_value *forward);
OM_API om_value *om_emit_expand_as(om_grad *g, om_value *x, om_value *forward);
OM_API om_value *om_emit_zeros_as(om_grad *g, om_value *forward);
/* What undoes a broadcast: `x` summed over the axes along which `forward` was repeated. */
OM_API om_value *om_emit_sum_to(om_grad *g, om_value *x, om_value *forward);
/* How many elements of a value of the forward path lie along these axes (all: n < 0), as a
 * number of the element type of `like`, of rank 0. */
OM_API om_value *om_emit_count(om_grad *g, const om_value *like, om_value *forward, int n, const int64_t *axis);

/* ---- Bodies. ----
 *
 * A scope is a block whose ops are differentiated, and the block where that is done.
 * For the graph they are the same.  For a body the maker of its owner makes a scope
 * inside of the one that the owner is in: seeds gradients of results, says which values
 * are wanted besides what the body takes from around, walks, and takes what came out,
 * which are values of `to`.
 */
struct om_scope {
	om_block *from, *to;         /* what is differentiated, and where gradients are computed */
	om_op *first, *last;         /* of `from`, what is differentiated; NULL: all of it */
	om_scope *outer;             /* NULL: the graph */
	/* What stands in `to` for a value that is computed in `from`, and from now on kept;
	 * NULL: the value itself is in reach. */
	om_value *(*keep)(om_scope *s, om_grad *g, om_value *v);
	void *arg;                   /* of `keep` */
	struct om_tape *tape;        /* what the whole backward pass shares */
	om_value **grad;             /* by value id, nvalue of them: sums up to now */
	om_value **kept;             /* by value id: what `keep` gave, or NULL */
	bool *is_active;             /* it depends on what is wanted */
	uint32_t nvalue;             /* values of the program when the scope was made */
};

/* A scope inside of that of `g`, without anything wanted yet; it dies with the backward pass. */
OM_API om_scope *om_scope_new(om_grad *g, om_block *from, om_block *to);
/* A value of `from`, or one from around, whose gradient the walk is to find. */
OM_API void om_scope_request(om_scope *s, om_value *v);
/* Is it wanted in the scope, because it was said or because it depends on what is?  After
 * om_scope_mark_active(). */
OM_API bool om_scope_is_requested(const om_scope *s, const om_value *v);
/* Find all values of what is differentiated that depend on what is wanted. */
OM_API void om_scope_mark_active(om_scope *s);
/* The gradient `v`, a value of `to`, flows into `of`. */
OM_API void om_scope_seed(om_scope *s, om_value *of, om_value *v);
/* Differentiate all ops of `from`, or those said, the last one first. */
OM_API om_status om_scope_run(om_scope *s);
/* What flowed into `of`, summed; NULL: nothing. */
OM_API om_value *om_scope_gradient(om_scope *s, const om_value *of);
/* A maker's language that builds in the scope's `to`, for what stands around a walk. */
OM_API om_grad *om_scope_grad(om_scope *s, om_grad *g);
/* What stands in `to` for a value of the forward path: itself where it is in reach, else
 * what `keep` says. */
OM_API om_value *om_scope_import(om_scope *s, om_grad *g, om_value *v);

/* A gradient that the op's bodies found of a value from around them, in the scope of the
 * op; and whether it is wanted. */
OM_API void om_grad_set_value_grad(om_grad *g, om_value *of, om_value *v);
OM_API bool om_grad_value_is_needed(const om_grad *g, const om_value *v);

/* ---- All of it. ---- */

/* What is to be differentiated, and by what. */
typedef struct om_backward {
	om_value *loss;              /* one number; or of any shape, where `seed` is given */
	om_value *seed;              /* the gradient of the loss; NULL: one */
	om_value *const *wrt;        /* whose gradients are wanted */
	uint32_t nwrt;               /* how many */
	bool copies;                 /* leave the forward ops as they are: outputs of them that the
	                                backward path wants besides come from copies */
	bool functions;              /* what has a gradient of one op gets that: a call of a function of
	                                domain org.onnxmem.grad, whose body is what the maker builds */
	om_value **grad;             /* [nwrt], to be filled; NULL: the loss does not change with it */
} om_backward;

/* Append the backward path to the graph.  Needs OM_HAS_INLINE and OM_HAS_SHAPES, and an
 * opset of 16 or above.  OM_UNSUPPORTED names the first op that cannot be differentiated. */
OM_API om_status om_prog_backward(om_session *s, om_prog *p, om_backward *b);

/* Ops Gradient of ai.onnx.preview.training, which name values of the graph: in their place
 * come the ops that compute what they say.  `*n` gets how many there were; where there
 * are none, nothing is looked at.  Needs OM_HAS_INLINE. */
OM_API om_status om_prog_name_gradients(om_session *s, om_prog *p, uint64_t *n);

/* What a training step is to be. */
typedef struct om_train_options {
	const char *loss;            /* a value of the graph, one number; NULL: it is built */
	const char *loss_fn;         /* "cross-entropy" or "mse"; NULL: `loss` is there already */
	const char *output;          /* what that is of; NULL: the first result of the graph */
	const char *label;           /* the name of its new input; NULL: "label" */
	const char *const *wrt;      /* names; NULL: all weights that the loss changes with */
	size_t nwrt;                 /* how many */
	double clip_norm;            /* most that the root of all squares together is; 0: any */
	double clip_value;           /* most that an element is; 0: any */
	const char *optimizer;       /* "sgd", "momentum", "adam", "adamw"; NULL: gradients are results */
	double rate, momentum, beta1, beta2, epsilon, decay; /* of the optimizer; see om_train_options_default() */
	bool trains;                 /* normalisations of batches and what drops elements do as in training */
	bool keeps_outputs;          /* results of the graph stay, behind the loss */
	bool copies, functions;      /* as in om_backward */
} om_train_options;

/* The usual numbers of all optimizers. */
OM_API om_train_options om_train_options_default(void);

/* Is the program of an opset below 16, or of an IR version that knows no inputs with defaults?  Then
 * gradients want it raised (raise.h). */
OM_API bool om_prog_is_old(const om_prog *p);

/* Make the program a step of training: the loss, gradients, and, with an optimizer, inputs for
 * parameters, states and the rate `lr`, whose defaults are what they start from, and results
 * for their new values, which are handed on.  Needs OM_HAS_INLINE and OM_HAS_SHAPES; what was
 * found out about constants is forgotten.  An old program is raised, but with `copies` refused: there
 * the graph stays as it is. */
OM_API om_status om_prog_add_training_step(om_session *s, om_prog *p, const om_train_options *l);

#ifdef __cplusplus
}
#endif

#endif
