/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of LSTM, GRU and RNN.
 *
 * A layer is decomposed into standard operators: the products of the inputs of all steps with the
 * weights are one matrix product, and a Scan adds the contribution of the previous state.  The
 * decomposition is differentiated, so only the inputs are kept from the forward path.
 */
#include <config.h>

#include "grad/bodies.h"
#include "base/shape.h"
#include "grad/grad_builder.h"
#include "ir/query.h"
#include "ir/type.h"
#include "opdef/geometry/rnn.h"

/* Inputs. */
enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, P };

/* A cell: computes the next state from the input's contribution to the gates and the previous state. */
struct layer;
typedef void step(om_grad *g, const struct layer *l, om_value *x, om_value *const *state, om_value **next);

struct layer {
	const om_op *op;
	step *step;
	int gates, ndir, nstate;
	int64_t hidden;
	bool batch_first;
	struct om_activation all[OM_MAX_ACTIVATIONS];
	int each;
	float clip;
	/* Of the current direction. */
	const struct om_activation *act;
	om_value *r, *second_r;      /* transposed; the part for the new state of a GRU is separate */
	om_value *bias;              /* added to the product with R; GRU only */
	om_value *peephole[3];       /* NULL: none */
};

/* ---- Helpers. ---- */

/* Split `x` along an axis into `n` parts of these sizes. */
static void
split(om_grad *g, om_value *x, int64_t axis, size_t n, const int64_t *size, om_value **out)
{
	om_value *in[] = {x, om_emit_list(g, n, size)};

	if (n == 1)
		out[0] = x;
	else
		om_emit_op(g, "Split", OM_A(om_attr_make_int(g, "axis", axis)), 2, in, n, out);
}

static void
split_even(om_grad *g, om_value *x, int64_t axis, size_t n, int64_t size, om_value **out)
{
	const int64_t all[] = {size, size, size, size};

	split(g, x, axis, n, all, out);
}

/* Slices of length one along an axis, with the axis removed; all NULL if the input is NULL. */
static void
unstack(om_grad *g, om_value *x, int64_t axis, size_t n, om_value **out)
{
	om_value *part[2] = {0};

	if (x)
		split_even(g, x, axis, n, 1, part);
	for (size_t k = 0; k < n; k++)
		out[k] = x ? om_emit_squeeze(g, part[k], 1, &axis) : NULL;
}

static om_value *
stack(om_grad *g, om_value *const *x, int64_t axis, size_t n)
{
	om_value *part[2];

	for (size_t k = 0; k < n; k++)
		part[k] = om_emit_unsqueeze(g, x[k], 1, &axis);
	return n == 1 ? part[0] : om_emit_op(g, "Concat", OM_A(om_attr_make_int(g, "axis", axis)), n, part, 1, NULL);
}

static om_value *
swapped(om_grad *g, om_value *x)
{
	return om_emit_transpose(g, x, 2, (const int64_t[]){1, 0});
}

static om_value *
turned(om_grad *g, om_value *x)
{
	return om_emit_transpose(g, x, 3, (const int64_t[]){1, 0, 2});
}

/* ---- Activations. ---- */

static om_value *
activate(om_grad *g, const struct om_activation *a, float clip, om_value *x)
{
	const om_attr alpha = om_attr_make_float(g, "alpha", a->alpha), beta = om_attr_make_float(g, "beta", a->beta);

	if (clip > 0)
		x = om_emit(g, "Clip", x, om_emit_number(g, x, -clip), om_emit_number(g, x, clip));
	switch (a->function) {
	case OM_SIGMOID: return om_emit(g, "Sigmoid", x);
	case OM_TANH: return om_emit(g, "Tanh", x);
	case OM_RELU: return om_emit(g, "Relu", x);
	case OM_AFFINE: return om_emit_scalar(g, "Add", om_emit_scalar(g, "Mul", x, a->alpha), a->beta);
	case OM_LEAKY: return om_emit_attrs(g, "LeakyRelu", OM_A(alpha), x);
	case OM_THRESHOLDED: return om_emit_attrs(g, "ThresholdedRelu", OM_A(alpha), x);
	case OM_SCALED_TANH: return om_emit_scalar(g, "Mul", om_emit(g, "Tanh", om_emit_scalar(g, "Mul", x, a->beta)), a->alpha);
	case OM_HARD_SIGMOID: return om_emit_attrs(g, "HardSigmoid", OM_A(alpha, beta), x);
	case OM_ELU: return om_emit_attrs(g, "Elu", OM_A(alpha), x);
	case OM_SOFTSIGN: return om_emit(g, "Softsign", x);
	default: return om_emit(g, "Softplus", x);
	}
}

/* ---- Cells. ---- */

static om_value *
with_peephole(om_grad *g, om_value *x, om_value *weight, om_value *cell)
{
	return weight ? om_emit(g, "Add", x, om_emit(g, "Mul", weight, cell)) : x;
}

/* Gates: input, output, forget, cell. */
static void
lstm(om_grad *g, const struct layer *l, om_value *x, om_value *const *state, om_value **next)
{
	om_value *gate[4], *cell = state[1];

	split_even(g, om_emit(g, "Add", x, om_emit(g, "MatMul", state[0], l->r)), 1, 4, l->hidden, gate);
	om_value *in = activate(g, &l->act[0], l->clip, with_peephole(g, gate[0], l->peephole[0], cell));
	om_value *fresh = activate(g, &l->act[1], l->clip, gate[3]), *forget;
	if (om_attr_int(l->op, "input_forget"))
		forget = om_emit(g, "Sub", om_emit_number(g, in, 1), in);
	else
		forget = activate(g, &l->act[0], l->clip, with_peephole(g, gate[2], l->peephole[2], cell));
	next[1] = om_emit(g, "Add", om_emit(g, "Mul", forget, cell), om_emit(g, "Mul", in, fresh));
	om_value *out = activate(g, &l->act[0], l->clip, with_peephole(g, gate[1], l->peephole[1], next[1]));
	next[0] = om_emit(g, "Mul", out, activate(g, &l->act[2], 0, next[1]));
}

/* Gates: update, reset, hidden. */
static void
gru(om_grad *g, const struct layer *l, om_value *x, om_value *const *state, om_value **next)
{
	om_value *of_x[3], *gate[3], *fresh;

	if (om_attr_int(l->op, "linear_before_reset")) {
		om_value *of_r = om_emit(g, "MatMul", state[0], l->r);
		split_even(g, x, 1, 3, l->hidden, of_x);
		split_even(g, l->bias ? om_emit(g, "Add", of_r, l->bias) : of_r, 1, 3, l->hidden, gate);
		for (int k = 0; k < 2; k++)
			gate[k] = activate(g, &l->act[0], l->clip, om_emit(g, "Add", of_x[k], gate[k]));
		fresh = om_emit(g, "Add", of_x[2], om_emit(g, "Mul", gate[1], gate[2]));
	} else {
		split(g, x, 1, 2, (const int64_t[]){2 * l->hidden, l->hidden}, of_x);
		split_even(g, activate(g, &l->act[0], l->clip, om_emit(g, "Add", of_x[0], om_emit(g, "MatMul", state[0], l->r))),
			1, 2, l->hidden, gate);
		fresh = om_emit(g, "Add", of_x[1], om_emit(g, "MatMul", om_emit(g, "Mul", gate[1], state[0]), l->second_r));
	}
	fresh = activate(g, &l->act[1], l->clip, fresh);
	next[0] = om_emit(g, "Add", fresh, om_emit(g, "Mul", gate[0], om_emit(g, "Sub", state[0], fresh)));
}

static void
rnn(om_grad *g, const struct layer *l, om_value *x, om_value *const *state, om_value **next)
{
	next[0] = activate(g, &l->act[0], l->clip, om_emit(g, "Add", x, om_emit(g, "MatMul", state[0], l->r)));
}

/* ---- A direction. ---- */

/* A mask of the sequences that are not finished, by step: (steps, batch, 1); NULL: all. */
static om_value *
active_of(om_grad *g, const struct layer *l)
{
	const int64_t last = 2, one = 1;
	om_value *lengths = om_grad_forward_input(g, LENGTHS);

	if (!lengths)
		return NULL;
	om_value *at = om_emit_unsqueeze(g, om_emit_positions(g, l->op->in[X], l->batch_first), 1, &one);
	om_value *is_active = om_emit(g, "Less", at, om_emit_cast(g, lengths, OM_INT64));
	return om_emit_unsqueeze(g, is_active, 1, &last);
}

static om_value *
param_of(om_grad *g, const om_value *like, bool is_slice)
{
	om_value *v = om_emit_param(g, like, "step");

	if (is_slice && v->shape.rank > 0) {
		v->shape = om_shape_open(like->shape.rank - 1);
		for (int d = 0; d < v->shape.rank; d++) {
			v->shape.dim[d] = like->shape.dim[d + 1];
			v->shape.sym[d] = like->shape.sym[d + 1];
		}
	}
	om_block_add_param(om_grad_scope(g)->to, v);
	return v;
}

/* The body of the Scan: finished sequences keep their state. */
static void
build_step(om_grad *g, const struct layer *l, om_value *const *in, bool has_lengths)
{
	om_value *state[2], *next[2], *x, *is_active;

	for (int k = 0; k < l->nstate; k++)
		state[k] = param_of(g, in[k], false);
	x = param_of(g, in[l->nstate], true);
	is_active = has_lengths ? param_of(g, in[l->nstate + 1], true) : NULL;
	l->step(g, l, x, state, next);
	om_value *y = next[0];
	if (is_active) {
		y = om_emit(g, "Where", is_active, next[0], om_emit_number(g, y, 0));
		for (int k = 0; k < l->nstate; k++)
			next[k] = om_emit(g, "Where", is_active, next[k], state[k]);
	}
	for (int k = 0; k < l->nstate; k++)
		om_emit_result(g, next[k]);
	om_emit_result(g, y);
}

/* The states after the last step, then the outputs of all steps. */
static void
run_steps(om_grad *g, const struct layer *l, om_value *const *start, om_value *x, om_value *active, bool reverse,
	om_value **out)
{
	om_value *in[4] = {start[0], start[1]};
	const int64_t directions[] = {reverse, reverse};
	const size_t nscan = active ? 2 : 1, nstate = (size_t)l->nstate;

	in[nstate] = x;
	in[nstate + 1] = active;
	om_op *scan = om_emit_open(g, "", "Scan", OM_A(om_attr_make_int(g, "num_scan_inputs", (int64_t)nscan),
		om_attr_make_ints(g, "scan_input_directions", nscan, directions), om_attr_make_ints(g, "scan_output_directions", 1, directions)),
		nstate + nscan, in, nstate + 1);
	build_step(om_emit_body(g, scan, "body"), l, in, active != NULL);
	om_emit_done(g, scan);
	memcpy(out, scan->out, (nstate + 1) * sizeof *out);
}

static om_value *
start_state(om_grad *g, const struct layer *l, om_value *given)
{
	om_value *dim[2];

	if (given)
		return given;
	dim[0] = om_emit_dim(g, l->op->in[X], !l->batch_first);
	dim[1] = om_emit_list(g, 1, &l->hidden);
	return om_emit_zeros(g, om_type_elem(&l->op->in[X]->type),
		om_emit_op(g, "Concat", OM_A(om_attr_make_int(g, "axis", 0)), 2, dim, 1, NULL));
}

static om_value *
reversed(om_grad *g, om_value *x, om_value *lengths)
{
	return om_emit(g, "ReverseSequence", x, om_emit_cast(g, lengths, OM_INT64));
}

/* The weights of a direction, and the input's contribution to the gates of all steps. */
static om_value *
gates_of_x(om_grad *g, struct layer *l, om_value *x, om_value *w, om_value *r, om_value *b)
{
	const bool is_gru = l->step == gru, later = is_gru && om_attr_int(l->op, "linear_before_reset");
	om_value *bias[2] = {0}, *part[2];

	if (is_gru && !later) {
		split(g, r, 0, 2, (const int64_t[]){2 * l->hidden, l->hidden}, part);
		l->r = swapped(g, part[0]);
		l->second_r = swapped(g, part[1]);
	} else {
		l->r = swapped(g, r);
	}
	x = om_emit(g, "MatMul", x, swapped(g, w));
	if (!b)
		return x;
	split_even(g, b, 0, 2, l->gates * l->hidden, bias);
	l->bias = later ? bias[1] : NULL;
	return om_emit(g, "Add", x, later ? bias[0] : om_emit(g, "Add", bias[0], bias[1]));
}

struct inputs {
	om_value *x, *lengths, *active;
	om_value *w[2], *r[2], *b[2], *start[2][2], *p[2];  /* by direction; states first by which */
};

static void
run_direction(om_grad *g, struct layer *l, const struct inputs *in, int dir, om_value **out)
{
	const bool reverse = dir == 1 || om_attr_is(l->op, "direction", "reverse");
	om_value *x = in->x, *start[2] = {0};

	l->act = l->all + dir * l->each;
	l->bias = NULL;
	memset(l->peephole, 0, sizeof l->peephole);
	if (in->p[dir])
		split_even(g, in->p[dir], 0, 3, l->hidden, l->peephole);
	if (reverse && in->lengths)
		x = reversed(g, x, in->lengths);
	x = gates_of_x(g, l, x, in->w[dir], in->r[dir], in->b[dir]);
	for (int k = 0; k < l->nstate; k++)
		start[k] = start_state(g, l, in->start[k][dir]);
	run_steps(g, l, start, x, in->active, reverse && !in->lengths, out);
	if (reverse && in->lengths)
		out[l->nstate] = reversed(g, out[l->nstate], in->lengths);
}

/* ---- The layer. ---- */

static void
read_inputs(om_grad *g, const struct layer *l, struct inputs *in)
{
	const size_t n = (size_t)l->ndir;

	*in = (struct inputs){.x = om_grad_forward_input(g, X), .lengths = om_grad_forward_input(g, LENGTHS), .active = active_of(g, l)};
	if (l->batch_first)
		in->x = turned(g, in->x);
	unstack(g, om_grad_forward_input(g, W), 0, n, in->w);
	unstack(g, om_grad_forward_input(g, R), 0, n, in->r);
	unstack(g, om_grad_forward_input(g, B), 0, n, in->b);
	unstack(g, om_grad_forward_input(g, P), 0, n, in->p);
	for (uint32_t k = 0; k < (uint32_t)l->nstate; k++)
		unstack(g, om_grad_forward_input(g, INITIAL_H + k), l->batch_first, n, in->start[k]);
}

static void
run_layer(om_grad *g, struct layer *l, om_value **out)
{
	struct inputs in;
	om_value *of[2][3], *y[2], *last[2][2];

	read_inputs(g, l, &in);
	for (int dir = 0; dir < l->ndir; dir++) {
		run_direction(g, l, &in, dir, of[dir]);
		y[dir] = of[dir][l->nstate];
		for (int k = 0; k < l->nstate; k++)
			last[k][dir] = of[dir][k];
	}
	if (om_grad_output_grad(g, 0)) {
		out[0] = stack(g, y, 1, (size_t)l->ndir);
		if (l->batch_first)
			out[0] = om_emit_transpose(g, out[0], 4, (const int64_t[]){2, 0, 1, 3});
	}
	for (uint32_t k = 0; k < (uint32_t)l->nstate; k++)
		if (om_grad_output_grad(g, k + 1))
			out[k + 1] = stack(g, last[k], l->batch_first, (size_t)l->ndir);
}

static void
layer(om_grad *g, om_value **out, step *one, int gates, int nstate)
{
	const om_op *op = om_grad_op(g);
	struct layer l = {.op = op, .step = one, .gates = gates, .nstate = nstate,
		.ndir = om_attr_is(op, "direction", "bidirectional") ? 2 : 1, .hidden = om_attr_int(op, "hidden_size"),
		.batch_first = om_attr_int(op, "layout") != 0, .clip = om_attr_float(op, "clip")};
	const char *wrong = om_rnn_activations(op, om_grad_mem(g), l.all, &l.each);

	if (l.hidden == 0)
		l.hidden = op->in[R]->shape.rank == 3 ? op->in[R]->shape.dim[2] : -1;
	if (wrong)
		om_grad_fail(g, OM_INVALID, "%s", wrong);
	else if (l.hidden <= 0)
		om_grad_fail(g, OM_UNSUPPORTED, "the size of its state is not known");
	else
		run_layer(g, &l, out);
}

static void
lstm_layer(om_grad *g, om_value **out)
{
	layer(g, out, lstm, 4, 2);
}

static void
gru_layer(om_grad *g, om_value **out)
{
	layer(g, out, gru, 3, 1);
}

static void
rnn_layer(om_grad *g, om_value **out)
{
	layer(g, out, rnn, 1, 1);
}

static void
LSTM_grad(om_grad *g)
{
	om_grad_by_decomposition(g, lstm_layer);
}

static void
GRU_grad(om_grad *g)
{
	om_grad_by_decomposition(g, gru_layer);
}

static void
RNN_grad(om_grad *g)
{
	om_grad_by_decomposition(g, rnn_layer);
}

/* ---- The table. ---- */

const om_gradient om_gradients_recurrent[] = {
	{.name = "LSTM", .since = 1, .rule = LSTM_grad},
	{.name = "GRU", .since = 1, .rule = GRU_grad},
	{.name = "RNN", .since = 1, .rule = RNN_grad},
	{0}
};
