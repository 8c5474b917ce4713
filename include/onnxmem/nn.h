/* SPDX-License-Identifier: Apache-2.0 */
/* Layers and blocks of neural networks, which build standard operators with their weights.
 *
 *     om_nn_new(s, p, 1, &n);
 *     x = om_nn_input(n, "x", OM_FLOAT32, 4, (int64_t[]){1, 3, 32, 32});
 *     x = om_nn_conv(n, x, OM_NN_CONV(.channels = 32, .kernel = 3, .norm = true, .activation = "Relu"));
 *     x = om_nn_inception(n, x, OM_NN_INCEPTION(.point = 16, .reduce3 = 16, .wide3 = 24, .pool = 8));
 *     x = om_nn_mlp(n, om_nn_flat(n, x), 2, (int64_t[]){64, 10}, "Relu");
 *     om_nn_output(n, "y", x);
 *     st = om_nn_end(n);
 *
 * Ops are appended to the graph of a program, for example that of om_model_empty() and om_model_import(): then om_model_update() exports the
 * net.  Weights are constants of the graph with names of their own, drawn from a seed: the same seed gives the same net.
 * Elements are float32.
 *
 * Functions do not return errors: the first one is recorded, with what it is about in its message; after it they do nothing and return
 * NULL, which they take as an input, too; om_nn_end() reports it.
 */
#ifndef OM_NN_H
#define OM_NN_H

#include "onnxmem/builder.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A net that is being built. */
typedef struct om_nn om_nn;

/* Start at the end of the graph of `p`, which must have one; weights are drawn from `seed`. */
OM_API om_status om_nn_new(om_session *s, om_prog *p, uint64_t seed, om_nn **out);
/* The first error, or that the program breaks an invariant.  Frees the net; what was built belongs to the program. */
OM_API om_status om_nn_end(om_nn *n);

/* ---- Values. ---- */

/* A new input of the graph; OM_DIM_UNKNOWN is a size that is open. */
OM_API om_value *om_nn_input(om_nn *n, const char *name, om_dtype type, int rank, const int64_t *dim);
/* A value becomes an output of the graph, called `name`. */
OM_API void om_nn_output(om_nn *n, const char *name, om_value *v);
/* A new weight, named `stem` or with a number: uniform in [-bound, bound]; `bound` 0: all elements are `offset`. */
OM_API om_value *om_nn_weight(om_nn *n, const char *stem, int rank, const int64_t *dim, double bound, double offset);

/* Append an op of ai.onnx with `nout` outputs, which `out` receives; NULL: only the first is needed.  `attrs` ends with an entry without a
 * name; NULL: none.  Returns the first. */
OM_API om_value *om_nn_op(om_nn *n, const char *type, const om_attr *attrs, size_t nin, om_value *const *in, size_t nout,
	om_value **out);
/* om_nn_call(n, "Add", NULL, a, b): an op with one output. */
#define om_nn_call(n, type, attrs, ...)                                           \
	om_nn_op(n, type, attrs, sizeof((om_value *[]){__VA_ARGS__}) / sizeof(om_value *), (om_value *[]){__VA_ARGS__}, 1, NULL)

/* ---- Layers. ---- */

/* An activation by the name of its operator, as "Relu" or "Tanh"; NULL: none. */
OM_API om_value *om_nn_activation(om_nn *n, om_value *x, const char *type);

/* x W + b over the last axis, whose size is known. */
OM_API om_value *om_nn_linear(om_nn *n, om_value *x, int64_t width);
/* Layers of these widths, with the activation between them. */
OM_API om_value *om_nn_mlp(om_nn *n, om_value *x, size_t nlayer, const int64_t *width, const char *activation);

/* All axes but the first as one. */
OM_API om_value *om_nn_flat(om_nn *n, om_value *x);
/* Over the last axis: to mean 0 and variance 1, times a weight, plus another one. */
OM_API om_value *om_nn_layer_norm(om_nn *n, om_value *x);
/* Indices to rows of a table of `count` rows. */
OM_API om_value *om_nn_embedding(om_nn *n, om_value *indices, int64_t count, int64_t width);

/* ---- Images: [batch, channels, height, width]. ---- */

/* A convolution. */
typedef struct om_nn_convolution {
	int64_t channels;            /* of the result */
	int64_t kernel;              /* height and width */
	int64_t stride, groups, dilation; /* 0: 1 */
	bool norm;                   /* BatchNormalization after it, which takes the place of the bias */
	const char *activation;      /* after both; NULL: none */
} om_nn_convolution;

/* A convolution for om_nn_conv(). */
#define OM_NN_CONV(...)  (&(const om_nn_convolution){__VA_ARGS__})

/* Convolution, normalization, activation; padded so that the stride alone makes the image smaller (kernels are odd). */
OM_API om_value *om_nn_conv(om_nn *n, om_value *x, const om_nn_convolution *c);
/* Two convolutions of 3 x 3, normalized, and around them the input; a convolution of 1 x 1 where its form differs. */
OM_API om_value *om_nn_residual(om_nn *n, om_value *x, int64_t channels, int64_t stride);

/* Channels of the branches of an Inception module; a branch of 0 is left out. */
typedef struct om_nn_branches {
	int64_t point;               /* 1 x 1 */
	int64_t reduce3, wide3;      /* 1 x 1, then 3 x 3 */
	int64_t reduce5, wide5;      /* 1 x 1, then 5 x 5 */
	int64_t pool;                /* a maximum over 3 x 3, then 1 x 1 */
	bool norm;                   /* BatchNormalization after each convolution */
} om_nn_branches;

/* The branches of om_nn_inception(). */
#define OM_NN_INCEPTION(...)  (&(const om_nn_branches){__VA_ARGS__})

/* Branches of convolutions side by side, joined along the channels. */
OM_API om_value *om_nn_inception(om_nn *n, om_value *x, const om_nn_branches *b);
/* The mean over height and width: [batch, channels]. */
OM_API om_value *om_nn_global_pool(om_nn *n, om_value *x);

/* ---- Sequences. ---- */

/* "LSTM", "GRU" or "RNN" over x [steps, batch, width]: all states, [steps, batch, hidden], or twice as wide in both directions. */
OM_API om_value *om_nn_recurrent(om_nn *n, const char *type, om_value *x, int64_t hidden, bool both_directions);
/* The last step of [steps, batch, width]: [batch, width]. */
OM_API om_value *om_nn_last_step(om_nn *n, om_value *x);

/* Attention of several heads from x [batch, steps, width] to itself; `causal`: no step sees those after it, and the number of steps is known.
 * The width is known, and a multiple of `heads`. */
OM_API om_value *om_nn_attention(om_nn *n, om_value *x, int64_t heads, bool causal);
/* Attention and a perceptron of width `inner`, each normalized before and with its input added. */
OM_API om_value *om_nn_transformer(om_nn *n, om_value *x, int64_t heads, int64_t inner, bool causal);

#ifdef __cplusplus
}
#endif

#endif
