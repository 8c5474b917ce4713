/* SPDX-License-Identifier: Apache-2.0 */
/* Building blocks of recurrent layers. */
#include <config.h>

#include <strings.h>

#include "opdef/geometry/rnn.h"
#include "ir/query.h"

/* ---- Activations. ---- */

static const struct {
	const char *name;
	bool has_alpha, has_beta;
	float alpha, beta;
} functions[OM_NFUNCTION] = {
	[OM_SIGMOID] = {"Sigmoid"},
	[OM_TANH] = {"Tanh"},
	[OM_RELU] = {"Relu"},
	[OM_AFFINE] = {"Affine", true, true, 1, 0},
	[OM_LEAKY] = {"LeakyRelu", true, false, 0.01f},
	[OM_THRESHOLDED] = {"ThresholdedRelu", true, false, 1},
	[OM_SCALED_TANH] = {"ScaledTanh", true, true, 1, 1},
	[OM_HARD_SIGMOID] = {"HardSigmoid", true, true, 0.2f, 0.5f},
	[OM_ELU] = {"Elu", true, false, 1},
	[OM_SOFTSIGN] = {"Softsign"},
	[OM_SOFTPLUS] = {"Softplus"},
};

static const struct om_rnn_cell lstm_cell = {OM_RNN_LSTM, 4, 3, {OM_SIGMOID, OM_TANH, OM_TANH}, 2};
static const struct om_rnn_cell gru_cell = {OM_RNN_GRU, 3, 2, {OM_SIGMOID, OM_TANH}, 1};
static const struct om_rnn_cell rnn_cell = {OM_RNN_SIMPLE, 1, 1, {OM_TANH}, 1};

const struct om_rnn_cell *
om_rnn_cell_of(const om_op *op)
{
	const char *name = op->opdef->name;

	return *name == 'L' ? &lstm_cell : *name == 'G' ? &gru_cell : &rnn_cell;
}

static bool
find_function(om_string name, enum om_rnn_function *f)
{
	for (int k = 0; k < OM_NFUNCTION; k++)
		if (strlen(functions[k].name) == name.size
		    && strncasecmp(functions[k].name, name.data, name.size) == 0) {
			*f = (enum om_rnn_function)k;
			return true;
		}
	return false;
}

/* Alphas and betas are consumed only by functions that have them. */
const char *
om_rnn_activations(const om_op *op, om_arena *mem, struct om_activation *act, int *each)
{
	size_t nalpha, nbeta, a = 0, b = 0;
	const struct om_rnn_cell *cell = om_rnn_cell_of(op);
	const int n = (om_attr_is(op, "direction", "bidirectional") ? 2 : 1) * cell->activations;
	const float *alpha = om_attr_floats(op, "activation_alpha", &nalpha);
	const float *beta = om_attr_floats(op, "activation_beta", &nbeta);
	const om_attr *names = om_attr_find(op, "activations");

	*each = cell->activations;
	if (names && names->kind == OM_ATTR_STRINGS && names->n != 0 && names->n != (size_t)n)
		return om_printf(mem, "has %zu activations, expected %d", names->n, n);
	for (int k = 0; k < n; k++) {
		enum om_rnn_function f = cell->usual[k % cell->activations];
		if (names && names->kind == OM_ATTR_STRINGS && names->n && !find_function(names->s[k], &f))
			return om_printf(mem, "unknown activation %.*s", (int)names->s[k].size, names->s[k].data);
		act[k] = (struct om_activation){f, functions[f].alpha, functions[f].beta};
		if (functions[f].has_alpha && a < nalpha)
			act[k].alpha = alpha[a++];
		if (functions[f].has_beta && b < nbeta)
			act[k].beta = beta[b++];
	}
	return NULL;
}
