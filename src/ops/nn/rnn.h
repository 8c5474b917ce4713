/* What recurrent layers compute, for their kernels and their gradients. */
#ifndef OM_RNN_H
#define OM_RNN_H

#include "onnxmem/opdef.h"

enum om_rnn_function { OM_SIGMOID, OM_TANH, OM_RELU, OM_AFFINE, OM_LEAKY, OM_THRESHOLDED, OM_SCALED_TANH, OM_HARD_SIGMOID,
	OM_ELU, OM_SOFTSIGN, OM_SOFTPLUS, OM_NFUNCTION };

enum { OM_MAX_ACTIVATIONS = 6 };

struct om_activation {
	enum om_rnn_function function;
	float alpha, beta;
};

/* An attribute that only parts of other operators have: products with R take the state of all sequences as
 * DynamicQuantizeLinear and DequantizeLinear leave it.  float32, LSTM. */
#define OM_RNN_BYTES "org.onnxmem.bytes"

/* The functions of an LSTM, GRU or RNN: `*each` of them for a direction.  NULL, or what is
 * wrong with the attributes, from `mem`. */
const char *om_rnn_activations(const om_op *op, om_arena *mem, struct om_activation *act, int *each);

#endif
