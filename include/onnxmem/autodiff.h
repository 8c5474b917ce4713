/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse-mode automatic differentiation: an explicit backward path of standard operators.
 *
 * An operator's gradient is registered by an om_gradient entry.  Its rule takes one op of the forward
 * path and builds the ops that compute the gradients of its inputs from the gradients of its outputs.
 * Every forward value that a rule requests stays live until the backward path reads it, so a rule
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
 * A rule must set the gradient of every input for which one is requested: a value, or NULL for zero.
 * A gradient that is not set is an error, not a zero.  Rules do not return errors: the first error
 * while building is recorded, and everything built after it is discarded.  Values are never NULL; their
 * shapes may be unknown, after an error or otherwise.
 */
#ifndef OM_AUTODIFF_H
#define OM_AUTODIFF_H

#include "onnxmem/builder.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The context that a rule queries and builds through; valid while the rule runs. */
typedef struct om_grad om_grad;

/* ---- Which operators have gradients. ---- */

/* Whether output 0 holds probabilities or log-probabilities over the attribute "axis". */
typedef enum om_softmax_output { OM_NOT_PROBS, OM_PROBS, OM_LOG_PROBS } om_softmax_output;

/* The gradient of an operator, for a range of its versions. */
typedef struct om_gradient {
	const char *domain;          /* NULL or "" for ai.onnx */
	const char *name;            /* operator name; NULL ends a table */
	int since, until;            /* opset versions, inclusive; until 0: no upper bound */

	/* Builds the gradients of the inputs. */
	void (*rule)(om_grad *g);

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

/* Register the gradients of a table, which ends with an entry without a name and must outlive the
 * program, for the ops of `p`.  They take precedence over earlier ones, and over those of the library. */
OM_API void om_prog_add_gradients(om_prog *p, const om_gradient *table);
/* The gradient that applies in `p` to the operator with this definition.  NULL: none is registered; it
 * is an error if a gradient has to pass through the operator. */
OM_API const om_gradient *om_gradient_find(om_prog *p, const om_opdef *row);

/* ---- Queries of a rule. ---- */

OM_API const om_op *om_grad_op(const om_grad *g);          /* the op of the forward path */

/* The gradient of output `k`; NULL: no gradient reaches it.  At least one output has a gradient. */
OM_API om_value *om_grad_output_grad(om_grad *g, uint32_t k);

/* Input or output `k` of the op for use in the backward path, which extends its lifetime.  NULL for an
 * omitted input.  An output that the op omits is added to it. */
OM_API om_value *om_grad_forward_input(om_grad *g, uint32_t k);
OM_API om_value *om_grad_forward_output(om_grad *g, uint32_t k);

/* Whether a requested gradient depends on the gradient of input `k`.  Always false for a type that is
 * not floating-point and for an omitted input. */
OM_API bool om_grad_is_needed(const om_grad *g, uint32_t k);

/* Set the gradient of input `k`, which has the shape of that input; NULL: zero.  Several calls
 * accumulate. */
OM_API void om_grad_set_input_grad(om_grad *g, uint32_t k, om_value *v);
/* The same, with the shape that input `k` is broadcast to: reduced to the shape of the input. */
OM_API void om_grad_set_broadcast_grad(om_grad *g, uint32_t k, om_value *v);

/* Report that the rule does not support this op.  The message continues the one that om_op_fail()
 * begins. */
OM_API void om_grad_fail(om_grad *g, om_status st, const char *fmt, ...) OM_PRINTF(3, 4);

/* The rule of piecewise constant operators: all gradients are zero. */
OM_API void om_grad_set_zero(om_grad *g);

/* ---- Builder: appends ops of the program's opset to the backward path. ---- */

/* om_emit(g, "Mul", a, b): build an op with one output, which is returned.  NULL among the inputs is an
 * omitted input. */
#define om_emit(g, type, ...)         om_emit_attrs(g, type, NULL, __VA_ARGS__)
/* The same with attributes: om_emit_attrs(g, "Concat", OM_A(OM_MAKE_INT("axis", 0)), a, b). */
#define om_emit_attrs(g, type, attrs, ...)                                         \
	om_emit_op(g, type, attrs, sizeof((om_value *[]){__VA_ARGS__}) / sizeof(om_value *), \
		(om_value *[]){__VA_ARGS__}, 1, NULL)
/* An attribute list for om_emit_attrs() and om_emit_op(). */
#define OM_A(...)                  (const om_attr[]){__VA_ARGS__, {0}}

/* `out` receives all `nout` outputs; NULL: only the first is required.  Returns the first. */
OM_API om_value *om_emit_op(om_grad *g, const char *type, const om_attr *attrs, size_t nin,
	om_value *const *in, size_t nout, om_value **out);

/* Constants: a scalar (rank 0) of the element type of `like`; a list of integers (rank 1). */
OM_API om_value *om_emit_number(om_grad *g, const om_value *like, double v);
OM_API om_value *om_emit_list(om_grad *g, size_t n, const int64_t *v);

/* ---- The backward path. ---- */

/* Parameters of a backward pass; initialized by OM_BACKWARD(). */
typedef struct om_backward {
	size_t size;                 /* of this struct: set by OM_BACKWARD */
	om_value *loss;              /* one element; any shape if `seed` is given */
	om_value *seed;              /* the gradient of the loss; NULL: one */
	om_value *const *wrt;        /* the values whose gradients are requested */
	uint32_t nwrt;               /* length of `wrt` and `grad` */
	bool copies;                 /* leave the forward ops unchanged: further outputs of them that the
	                                backward path requires are outputs of copies */
	bool functions;              /* build each gradient that a single op can compute as a call of a
	                                function of domain org.onnxmem.grad, whose body is what the rule
	                                builds */
	om_value **grad;             /* [nwrt], filled by the call; NULL: the loss does not depend on it */
} om_backward;

/* The initializer of om_backward: om_backward b = OM_BACKWARD(.loss = loss, ...). */
#define OM_BACKWARD(...) {.size = sizeof(om_backward), __VA_ARGS__}

/* Append the backward path to the graph.  Requires OM_HAS_INLINE, OM_HAS_SHAPES and opset 16 or later.
 * OM_UNSUPPORTED names the first op that cannot be differentiated; OM_USAGE: `b` has no valid size. */
OM_API om_status om_prog_backward(om_session *s, om_prog *p, const om_backward *b);

/* Parameters of a training step; initialized by OM_TRAIN_OPTIONS. */
typedef struct om_train_options {
	size_t size;                 /* of this struct: set by OM_TRAIN_OPTIONS */
	const char *loss;            /* a value of the graph with one element; NULL: the loss is built */
	const char *loss_fn;         /* "cross-entropy" or "mse"; NULL: `loss` exists in the graph */
	const char *output;          /* the value that the built loss is computed of; NULL: the first
	                                result */
	const char *label;           /* the name of the new label input; NULL: "label" */
	const char *const *wrt;      /* names; NULL: all weights that the loss depends on */
	size_t nwrt;                 /* length of `wrt` */
	double clip_norm;            /* maximum global L2 norm of all gradients; 0: no clipping */
	double clip_value;           /* maximum magnitude of a gradient element; 0: no clipping */
	const char *optimizer;       /* "sgd", "momentum", "nesterov", "adam", "adamw", "rmsprop", "adagrad", "lamb";
	                                NULL: gradients become results */
	double rate, momentum, beta1, beta2, epsilon, decay; /* hyperparameters of the optimizer */
	bool trains;                 /* switch BatchNormalization, Dropout and the like to training mode */
	bool keeps_outputs;          /* keep the results of the graph, after the loss */
	bool copies, functions;      /* as in om_backward */
	bool fuses_updates;          /* update each parameter by a call of a function of domain
	                                org.onnxmem.grad, whose body is the update in standard operators */
} om_train_options;

/* The initializer of om_train_options, with the default hyperparameters of all optimizers. */
#define OM_TRAIN_OPTIONS {.size = sizeof(om_train_options), .rate = 0.001, .momentum = 0.9, .beta1 = 0.9, \
	.beta2 = 0.999, .epsilon = 1e-8}

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
