/* SPDX-License-Identifier: Apache-2.0 */
/* Building blocks of recurrent layers: cells and activations. */
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

/* An attribute that occurs only in parts of composite operators: products with R use the state of all
 * sequences after DynamicQuantizeLinear and DequantizeLinear. float32 LSTM only. */
#define OM_RNN_BYTES "org.onnxmem.bytes"

/* Properties shared by all layers of an operator. */
struct om_rnn_cell {
	enum om_rnn_kind { OM_RNN_LSTM, OM_RNN_GRU, OM_RNN_SIMPLE } kind;
	int gates;
	int activations;              /* per direction */
	enum om_rnn_function usual[3];
	uint32_t nstate;              /* 2 if there is a cell state besides the hidden state */
};

/* The cell of an LSTM, GRU or RNN, by the name of its definition: a part has the type of its composite
 * operator. */
const struct om_rnn_cell *om_rnn_cell_of(const om_op *op);

/* The activation functions of an LSTM, GRU or RNN: `*each` per direction.  NULL, or a message about
 * invalid attributes, allocated from `mem`. */
const char *om_rnn_activations(const om_op *op, om_arena *mem, struct om_activation *act, int *each);

#endif
