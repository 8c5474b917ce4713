/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for devices of recurrent layers: LSTM, GRU, RNN.
 *
 * The products of all elements with W are one launch for each direction.  A step is the product of the states with R, which is
 * added to the gates of the step, and the cell.  Gates and states are float32, in the scratch. */
#include <config.h>

#include "ir/query.h"
#include "opdef/op_context.h"
#include "ops/device/launches.h"
#include "ops/family.h"
#include "ops/nn/rnn.h"

enum { ROWS_OF_BLOCK = 4, MOST_ITEM_BLOCKS = 64, MOST_LAUNCHES = 1 << 16, LAUNCHES_OF_STEP = 5 };

/* Of `has` in recurrent.omk. */
enum { HAS_BIAS = 1, HAS_PEEPHOLES = 2, INPUT_FORGET = 4, RESET_AFTER = 2 };

/* Of the scratch, in bytes. */
struct piece {
	uint64_t at, bytes;
};

struct recurrent {
	struct om_rnn_layer l;
	int64_t gates;                /* of a sequence */
	uint64_t element;             /* bytes of one */
	struct piece steps;           /* gates: steps, batch, gates */
	struct piece h, c, next;      /* batch, hidden; c of an LSTM, next of a GRU */
	uint64_t scratch;
	/* Of the current direction. */
	int dir;
	bool is_reverse;
	const struct om_activation *act;
};

static bool
cut(struct recurrent *r, struct piece *p, int64_t n)
{
	uint64_t bytes;

	if (__builtin_mul_overflow((uint64_t)n, sizeof(float), &bytes) || __builtin_add_overflow(r->scratch, bytes, &r->scratch))
		return false;
	*p = (struct piece){r->scratch - bytes, bytes};
	return true;
}

static bool
recurrent_of(const om_op_context *c, struct recurrent *r)
{
	int64_t row, all;

	*r = (struct recurrent){.element = om_dtype_bits(c->in[X].type) / 8};
	if (om_rnn_layer_of(c, &r->l) || r->l.has_bytes || r->l.hidden <= 0 || r->l.width <= 0 || r->l.batch <= 0 || r->l.steps <= 0)
		return false;
	r->gates = r->l.cell->gates * r->l.hidden;
	const int64_t states = r->l.batch * r->l.hidden;
	if (__builtin_mul_overflow(r->l.batch, r->gates, &row) || __builtin_mul_overflow(row, r->l.steps, &all))
		return false;
	return cut(r, &r->steps, all) && cut(r, &r->h, states) && (r->l.cell->kind != OM_RNN_LSTM || cut(r, &r->c, states))
	    && (r->l.cell->kind != OM_RNN_GRU || cut(r, &r->next, states));
}

/* Sequences of lengths that data decide stay on the host, which checks them. */
static bool
recurrent_supports(const om_op_context *c)
{
	struct recurrent r;

	for (uint32_t k = 0; k < c->op->nin; k++)
		if (om_has_in(c, k) && (k == LENGTHS || c->in[k].type != c->in[X].type))
			return false;
	return recurrent_of(c, &r) && r.l.steps * r.l.ndir < MOST_LAUNCHES / LAUNCHES_OF_STEP;
}

static uint64_t
recurrent_scratch(const om_op_context *c)
{
	struct recurrent r;

	return recurrent_of(c, &r) ? r.scratch : 0;
}

/* ---- Launches. ---- */

static void
add_scratch(om_launch *l, om_arg_kind kind, struct piece p)
{
	om_launch_scratch(l, kind, p.at, p.bytes);
}

/* What the current direction has of an input with so many elements for each. */
static void
add_part(const om_op_context *c, const struct recurrent *r, om_launch *l, uint32_t in, int64_t from, int64_t n, int64_t each)
{
	if (om_has_in(c, in))
		om_launch_part(l, OM_ARG_IN, OM_OPERAND_IN, in, (uint64_t)(r->dir * each + from) * r->element, (uint64_t)n * r->element);
	else
		om_launch_in(l, X);
}

static void
add_activation(om_launch *l, const struct om_activation *a)
{
	om_launch_i32(l, (int32_t)a->function);
	om_launch_f32(l, a->alpha);
	om_launch_f32(l, a->beta);
}

static om_launch *
launch_by_rows(const om_op_context *c, om_launch_list *to, const char *kernel, int64_t rows, int64_t items)
{
	return om_launch_typed_grid(to, "recurrent", kernel, om_kernel_type(c->in[X].type), (om_grid){.threads = 256,
		.blocks = {(uint32_t)((rows + ROWS_OF_BLOCK - 1) / ROWS_OF_BLOCK),
			(uint32_t)(items < MOST_ITEM_BLOCKS ? items : MOST_ITEM_BLOCKS), 1}});
}

static om_launch *
launch_by_states(const om_op_context *c, om_launch_list *to, const struct recurrent *r, const char *kernel)
{
	return om_launch_typed(to, "recurrent", kernel, om_kernel_type(c->in[X].type), r->l.batch * r->l.hidden);
}

static void
launch_inputs(const om_op_context *c, om_launch_list *to, const struct recurrent *r)
{
	const struct om_rnn_layer *y = &r->l;
	const int64_t step = y->width * (y->batch_first ? 1 : y->batch), row = y->width * (y->batch_first ? y->steps : 1);
	om_launch *l = launch_by_rows(c, to, "rnn_inputs", r->gates, y->steps * y->batch);

	om_launch_in(l, X);
	add_part(c, r, l, W, 0, r->gates * y->width, r->gates * y->width);
	add_scratch(l, OM_ARG_OUT, r->steps);
	om_launch_i64(l, y->steps * y->batch);
	om_launch_i64(l, y->batch);
	om_launch_i64(l, r->is_reverse ? (y->steps - 1) * step : 0);
	om_launch_i64(l, r->is_reverse ? -step : step);
	om_launch_i64(l, row);
	om_launch_i64(l, r->gates);
	om_launch_i64(l, y->width);
}

/* Rows [first, first + n) of R times states: added to `to_row` elements of each sequence, or instead of them. */
static void
launch_product(const om_op_context *c, om_launch_list *to, const struct recurrent *r, struct piece states, int64_t first, int64_t n,
	struct piece sums, int64_t row, bool adds)
{
	om_launch *l = launch_by_rows(c, to, "rnn_states", n, r->l.batch);

	add_scratch(l, OM_ARG_IN, states);
	add_part(c, r, l, R, first * r->l.hidden, n * r->l.hidden, r->gates * r->l.hidden);
	add_scratch(l, adds ? OM_ARG_INOUT : OM_ARG_OUT, sums);
	om_launch_i64(l, r->l.batch);
	om_launch_i64(l, n);
	om_launch_i64(l, r->l.hidden);
	om_launch_i64(l, row);
	om_launch_i32(l, adds);
}

static void
add_bias(const om_op_context *c, const struct recurrent *r, om_launch *l)
{
	add_part(c, r, l, B, 0, 2 * r->gates, 2 * r->gates);
}

/* Sizes, what the op has, and the limit of its activations. */
static void
add_cell(const struct recurrent *r, om_launch *l, int32_t has)
{
	om_launch_i64(l, r->l.batch);
	om_launch_i64(l, r->l.hidden);
	om_launch_i32(l, has);
	om_launch_f32(l, r->l.clip);
}

static void
launch_lstm(const om_op_context *c, om_launch_list *to, const struct recurrent *r, struct piece gates, int32_t has)
{
	launch_product(c, to, r, r->h, 0, r->gates, gates, r->gates, true);
	om_launch *l = launch_by_states(c, to, r, "lstm_cell");
	add_scratch(l, OM_ARG_IN, gates);
	add_scratch(l, OM_ARG_OUT, r->h);
	add_scratch(l, OM_ARG_INOUT, r->c);
	add_bias(c, r, l);
	add_part(c, r, l, P, 0, 3 * r->l.hidden, 3 * r->l.hidden);
	add_cell(r, l, has | (om_has_in(c, P) ? HAS_PEEPHOLES : 0) | (r->l.input_forget ? INPUT_FORGET : 0));
	for (int k = 0; k < 3; k++)
		add_activation(l, &r->act[k]);
}

static void
launch_gru(const om_op_context *c, om_launch_list *to, const struct recurrent *r, struct piece gates, int32_t has)
{
	const int64_t h = r->l.hidden;
	const uint64_t skipped = 2 * (uint64_t)h * sizeof(float);

	launch_product(c, to, r, r->h, 0, 2 * h, gates, r->gates, true);
	if (r->l.reset_after) {
		launch_product(c, to, r, r->h, 2 * h, h, r->next, h, false);
	} else {
		om_launch *reset = launch_by_states(c, to, r, "gru_reset");
		add_scratch(reset, OM_ARG_IN, gates);
		add_scratch(reset, OM_ARG_IN, r->h);
		add_bias(c, r, reset);
		add_scratch(reset, OM_ARG_OUT, r->next);
		add_cell(r, reset, has);
		add_activation(reset, &r->act[0]);
		launch_product(c, to, r, r->next, 2 * h, h, (struct piece){gates.at + skipped, gates.bytes - skipped}, r->gates, true);
	}
	om_launch *l = launch_by_states(c, to, r, "gru_cell");
	add_scratch(l, OM_ARG_IN, gates);
	add_scratch(l, OM_ARG_INOUT, r->h);
	add_bias(c, r, l);
	add_scratch(l, OM_ARG_IN, r->next);
	add_cell(r, l, has | (r->l.reset_after ? RESET_AFTER : 0));
	for (int k = 0; k < 2; k++)
		add_activation(l, &r->act[k]);
}

static void
launch_simple(const om_op_context *c, om_launch_list *to, const struct recurrent *r, struct piece gates, int32_t has)
{
	launch_product(c, to, r, r->h, 0, r->gates, gates, r->gates, true);
	om_launch *l = launch_by_states(c, to, r, "rnn_cell");
	add_scratch(l, OM_ARG_IN, gates);
	add_scratch(l, OM_ARG_OUT, r->h);
	add_bias(c, r, l);
	add_cell(r, l, has);
	add_activation(l, &r->act[0]);
}

/* ---- States in tensors. ---- */

/* First element and distance of the rows of the current direction in a tensor of states. */
static void
add_rows(const struct recurrent *r, om_launch *l)
{
	om_launch_i64(l, r->dir * r->l.hidden * (r->l.batch_first ? 1 : r->l.batch));
	om_launch_i64(l, r->l.hidden * (r->l.batch_first ? r->l.ndir : 1));
}

static void
launch_start(const om_op_context *c, om_launch_list *to, const struct recurrent *r, uint32_t in, struct piece state)
{
	om_launch *l = launch_by_states(c, to, r, "rnn_start");

	om_launch_in(l, om_has_in(c, in) ? in : X);
	add_scratch(l, OM_ARG_OUT, state);
	om_launch_i64(l, r->l.batch);
	om_launch_i64(l, r->l.hidden);
	add_rows(r, l);
	om_launch_i32(l, om_has_in(c, in));
}

/* The output of step `s`. */
static void
launch_output(const om_op_context *c, om_launch_list *to, const struct recurrent *r, int64_t s)
{
	const struct om_rnn_layer *y = &r->l;
	const int64_t t = r->is_reverse ? y->steps - 1 - s : s, at = t * y->ndir + r->dir;
	om_launch *l = launch_by_states(c, to, r, "rnn_end");

	add_scratch(l, OM_ARG_IN, r->h);
	om_launch_out(l, 0);
	om_launch_i64(l, y->batch);
	om_launch_i64(l, y->hidden);
	om_launch_i64(l, at * y->hidden * (y->batch_first ? 1 : y->batch));
	om_launch_i64(l, y->hidden * (y->batch_first ? y->steps * y->ndir : 1));
}

static void
launch_end(const om_op_context *c, om_launch_list *to, const struct recurrent *r, uint32_t out, struct piece state)
{
	if (!om_has_out(c, out))
		return;
	om_launch *l = launch_by_states(c, to, r, "rnn_end");
	add_scratch(l, OM_ARG_IN, state);
	om_launch_out(l, out);
	om_launch_i64(l, r->l.batch);
	om_launch_i64(l, r->l.hidden);
	add_rows(r, l);
}

static void
launch_direction(const om_op_context *c, om_launch_list *to, const struct recurrent *r)
{
	const int32_t has = om_has_in(c, B) ? HAS_BIAS : 0;
	const uint64_t step = r->steps.bytes / (uint64_t)r->l.steps;
	const bool is_lstm = r->l.cell->kind == OM_RNN_LSTM;

	launch_inputs(c, to, r);
	launch_start(c, to, r, INITIAL_H, r->h);
	if (is_lstm)
		launch_start(c, to, r, INITIAL_C, r->c);
	for (int64_t s = 0; s < r->l.steps; s++) {
		const struct piece gates = {r->steps.at + (uint64_t)s * step, step};
		if (is_lstm)
			launch_lstm(c, to, r, gates, has);
		else if (r->l.cell->kind == OM_RNN_GRU)
			launch_gru(c, to, r, gates, has);
		else
			launch_simple(c, to, r, gates, has);
		if (om_has_out(c, 0))
			launch_output(c, to, r, s);
	}
	launch_end(c, to, r, 1, r->h);
	if (is_lstm)
		launch_end(c, to, r, 2, r->c);
}

static om_status
recurrent_launches(const om_op_context *c, om_launch_list *to)
{
	struct recurrent r;

	recurrent_of(c, &r);
	for (; r.dir < r.l.ndir; r.dir++) {
		r.is_reverse = r.l.is_reverse || r.dir == 1;
		r.act = r.l.act + r.dir * r.l.cell->activations;
		launch_direction(c, to, &r);
	}
	return OM_OK;
}

#define LAYER(label) {.name = label, .types = {OF_DEVICE_FLOATS}, .supports = recurrent_supports, .scratch = recurrent_scratch, \
	.launches = recurrent_launches}

const om_device_kernel om_device_kernels_device_recurrent[] = {LAYER("LSTM"), LAYER("GRU"), LAYER("RNN"), {0}};
