/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers and attention. */
#include <config.h>

#include <math.h>
#include <string.h>

#include "nn/nn_internal.h"

static int64_t
gates_of(const char *type)
{
	return strcmp(type, "LSTM") == 0 ? 4 : strcmp(type, "GRU") == 0 ? 3 : strcmp(type, "RNN") == 0 ? 1 : 0;
}

om_value *
om_nn_recurrent(om_nn *n, const char *type, om_value *x, int64_t hidden, bool both_directions)
{
	const int64_t width = om_nn_size(n, x, 3, 2, "a recurrent layer"), gates = gates_of(type), dirs = both_directions ? 2 : 1;

	if (width < 0 || !om_nn_is_count(n, hidden, "the width of a recurrent layer"))
		return NULL;
	if (!gates)
		return om_nn_fail(n, OM_USAGE, "a recurrent layer is an LSTM, a GRU or an RNN, not %s", type);
	const double bound = 1 / sqrt((double)hidden);
	om_value *in[] = {x, om_nn_weight(n, "rnn_w", 3, (int64_t[]){dirs, gates * hidden, width}, bound, 0),
		om_nn_weight(n, "rnn_r", 3, (int64_t[]){dirs, gates * hidden, hidden}, bound, 0),
		om_nn_weight(n, "rnn_b", 2, (int64_t[]){dirs, 2 * gates * hidden}, bound, 0)};
	const om_attr attrs[] = {OM_MAKE_INT("hidden_size", hidden), OM_MAKE_STRING("direction", both_directions ? "bidirectional" : "forward"), {0}};
	om_value *y = om_nn_op(n, type, attrs, 4, in, 1, NULL);  /* [steps, dirs, batch, hidden] */
	if (!both_directions)
		return om_nn_is_lost(n, y) ? NULL : om_nn_call(n, "Squeeze", NULL, y, om_nn_list(n, 1, (int64_t[]){1}));
	static const int64_t perm[] = {0, 2, 1, 3};
	const om_attr order[] = {OM_MAKE_INTS("perm", 4, perm), {0}};
	y = om_nn_is_lost(n, y) ? NULL : om_nn_call(n, "Transpose", order, y);
	return om_nn_is_lost(n, y) ? NULL : om_nn_call(n, "Reshape", NULL, y, om_nn_list(n, 3, (int64_t[]){0, 0, 2 * hidden}));
}

om_value *
om_nn_last_step(om_nn *n, om_value *x)
{
	if (om_nn_size(n, x, 3, 2, "the last step") < 0)
		return NULL;
	const int64_t last = -1, none = 0;
	const om_attr attrs[] = {OM_MAKE_INT("axis", none), {0}};
	return om_nn_call(n, "Squeeze", NULL, om_nn_call(n, "Gather", attrs, x, om_nn_list(n, 1, &last)), om_nn_list(n, 1, &none));
}

/* A bias of the keys would add the same number to all scores of a step, which Softmax takes away again. */
static om_value *
keys(om_nn *n, om_value *x, int64_t width)
{
	om_value *w = om_nn_weight(n, "keys_w", 2, (int64_t[]){width, width}, sqrt(3.0 / (double)width), 0);

	return om_nn_call(n, "MatMul", NULL, x, w);
}

/* [batch, steps, width] as [batch, heads, steps, width / heads], or for keys with the last two axes in turn. */
static om_value *
split_heads(om_nn *n, om_value *x, int64_t heads, int64_t each, bool is_key)
{
	static const int64_t rows[] = {0, 2, 1, 3}, columns[] = {0, 2, 3, 1};
	const om_attr attrs[] = {OM_MAKE_INTS("perm", 4, is_key ? columns : rows), {0}};

	x = om_nn_is_lost(n, x) ? NULL : om_nn_call(n, "Reshape", NULL, x, om_nn_list(n, 4, (int64_t[]){0, 0, heads, each}));
	return om_nn_is_lost(n, x) ? NULL : om_nn_call(n, "Transpose", attrs, x);
}

static om_value *
attend(om_nn *n, om_value *q, om_value *k, om_value *v, om_value *mask)
{
	const om_attr axis[] = {OM_MAKE_INT("axis", -1), {0}};
	om_value *scores = om_nn_call(n, "MatMul", NULL, q, k);

	if (mask)
		scores = om_nn_call(n, "Add", NULL, scores, mask);
	return om_nn_call(n, "MatMul", NULL, om_nn_call(n, "Softmax", axis, scores), v);
}

om_value *
om_nn_attention(om_nn *n, om_value *x, int64_t heads, bool causal)
{
	static const int64_t perm[] = {0, 2, 1, 3};
	const int64_t width = om_nn_size(n, x, 3, 2, "attention"), steps = causal ? om_nn_size(n, x, 3, 1, "causal attention") : 0;

	if (width < 0 || steps < 0 || !om_nn_is_count(n, heads, "the number of heads"))
		return NULL;
	if (width % heads)
		return om_nn_fail(n, OM_USAGE, "%lld heads do not divide the width of attention, %lld", (long long)heads, (long long)width);
	const int64_t each = width / heads;
	om_value *q = om_nn_call(n, "Mul", NULL, om_nn_linear(n, x, width), om_nn_number(n, 1 / sqrt((double)each)));
	om_value *k = keys(n, x, width), *v = om_nn_linear(n, x, width);
	q = split_heads(n, q, heads, each, false);
	k = split_heads(n, k, heads, each, true);
	v = split_heads(n, v, heads, each, false);
	const om_attr attrs[] = {OM_MAKE_INTS("perm", 4, perm), {0}};
	om_value *y = om_nn_call(n, "Transpose", attrs, attend(n, q, k, v, causal ? om_nn_causal_mask(n, steps) : NULL));
	y = om_nn_is_lost(n, y) ? NULL : om_nn_call(n, "Reshape", NULL, y, om_nn_list(n, 3, (int64_t[]){0, 0, width}));
	return om_nn_linear(n, y, width);
}

om_value *
om_nn_transformer(om_nn *n, om_value *x, int64_t heads, int64_t inner, bool causal)
{
	const int64_t width = om_nn_size(n, x, 3, 2, "a transformer block");

	if (width < 0)
		return NULL;
	om_value *y = om_nn_attention(n, om_nn_layer_norm(n, x), heads, causal);
	x = om_nn_is_lost(n, y) ? NULL : om_nn_call(n, "Add", NULL, x, y);
	y = om_nn_mlp(n, om_nn_layer_norm(n, x), 2, (int64_t[]){inner, width}, "Relu");
	return om_nn_is_lost(n, y) ? NULL : om_nn_call(n, "Add", NULL, x, y);
}
