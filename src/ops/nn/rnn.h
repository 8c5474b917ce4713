/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of recurrent layers have in common: LSTM, GRU, RNN. */
#ifndef OM_RNN_LAYER_H
#define OM_RNN_LAYER_H

#include "opdef/geometry/rnn.h"

/* Inputs. */
enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, P, NIN };

/* While planning, -1 means unknown. */
struct om_rnn_layer {
	const struct om_rnn_cell *cell;
	int64_t steps, batch, width, hidden;
	int ndir;
	bool is_reverse, batch_first;
	bool has_bytes;               /* OM_RNN_BYTES */
	struct om_activation act[OM_MAX_ACTIVATIONS];
	float clip;
	bool input_forget;            /* LSTM: coupled input and forget gates */
	bool reset_after;             /* GRU: linear_before_reset */
	bool *active;                 /* in a run of the reference kernel: which sequences of the batch have this step */
};

/* NULL, or a message about invalid attributes, allocated from c->mem. */
const char *om_rnn_layer_of(const om_op_context *c, struct om_rnn_layer *l);

#endif
