/* What recurrent layers consist of: cells and activations. */
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

/* What is the same of all layers of an operator. */
struct om_rnn_cell {
	enum om_rnn_kind { OM_RNN_LSTM, OM_RNN_GRU, OM_RNN_SIMPLE } kind;
	int gates;
	int activations;              /* for a direction */
	enum om_rnn_function usual[3];
	uint32_t nstate;              /* 2 when there is a cell state beside the hidden one */
};

/* The cell of an LSTM, GRU or RNN, by the name of its row: the type of a part is that of the whole. */
const struct om_rnn_cell *om_rnn_cell_of(const om_op *op);

/* The functions of an LSTM, GRU or RNN: `*each` of them for a direction.  NULL, or what is
 * wrong with the attributes, from `mem`. */
const char *om_rnn_activations(const om_op *op, om_arena *mem, struct om_activation *act, int *each);

#endif
