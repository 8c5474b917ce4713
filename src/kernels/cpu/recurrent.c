/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of recurrent layers, per instruction set; see recurrent.h.
 *
 * The gates of a step start as the products of the input; the products of the previous state are added panel by
 * panel.  States and gates of a row are whole vectors: what the last one has beyond is computed, and read by
 * nothing. */
#include <config.h>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/recurrent.h"
#include "kernels/cpu/tile.h"
#include "kernels/cpu/vec_math.h"

enum {
	PANEL = OM_RECURRENT_PANEL,
	SUMS = 8,                 /* vectors of one row that are summed at a time */
	VECS = PANEL / VL,        /* in a panel */
};

/* A piece: rows of gates, states and what else they need. */
struct rows {
	const om_recurrent *l;
	int64_t first, n;
	float *gates, *rest, *h, *c, *next;
	int64_t gates_row, rest_row, state_row;
	bool from_last;           /* panels are read from the last one on: every second step */
};

static int64_t
whole(int64_t n)
{
	return (n + PANEL - 1) / PANEL * PANEL;
}

/* ---- Products with R. ---- */

/* Add the product of a row to `sums` vectors of gates: columns of one panel, or of two. */
INLINE void
add_columns(const float *h, const float *p, int64_t hidden, float *gates, const int sums)
{
	vec sum[SUMS];

	UNROLL
	for (int v = 0; v < sums; v++)
		sum[v] = vec_load(gates + v * VL);
	for (int64_t k = 0; k < hidden; k++, p += PANEL) {
		UNROLL
		for (int v = 0; v < sums; v++)
			sum[v] += h[k] * vec_load(p + v / VECS * (hidden * PANEL) + v % VECS * VL);
	}
	UNROLL
	for (int v = 0; v < sums; v++)
		vec_store(gates + v * VL, sum[v]);
}

/* `n` columns are those of one panel, or of two where there are so many sums. */
INLINE void
add_panels(const float *h, const float *p, int64_t hidden, float *gates, int64_t n)
{
	if (SUMS > VECS && n > PANEL) {
		add_columns(h, p, hidden, gates, SUMS);
		return;
	}
	for (int64_t j = 0; j < n; j += PANEL)
		for (int v = 0; v < VECS; v += SUMS)
			add_columns(h, p + j * hidden + v * VL, hidden, gates + j + v * VL, SUMS < VECS ? SUMS : VECS);
}

/* If R is larger than the cache, the panels that were read last are still there: the next step reads them first. */
static void
add_row(const float *h, const float *p, int64_t hidden, float *gates, int64_t n, bool from_last)
{
	const int64_t all = whole(n), pair = 2 * PANEL, pairs = (all + pair - 1) / pair;

	for (int64_t i = 0; i < pairs; i++) {
		const int64_t j = (from_last ? pairs - 1 - i : i) * pair;
		add_panels(h, p + j * hidden, hidden, gates + j, all - j < pair ? all - j : pair);
	}
}

static void
add_rows(const struct rows *s, const float *h, const float *p, float *gates, int64_t gates_row, int64_t n)
{
	const int64_t hidden = s->l->hidden;
	struct tile t = {.a = h, .a_row = s->state_row, .a_col = 1, .b_row = PANEL, .k = hidden, .c_row = gates_row,
		.alpha = 1, .add = true};

	for (int64_t j = 0; j < n; j += PANEL)
		for (int64_t e = 0; e < PANEL; e += TILE_COLUMNS) {
			t.b = p + j * hidden + e;
			t.c = gates + j + e;
			tile_panel(t, s->n, TILE_COLUMNS);
		}
}

/* gates += h R^T, for `n` columns of R: whole panels. */
static void
add_product(const struct rows *s, const float *h, const float *p, float *gates, int64_t gates_row, int64_t n)
{
	if (s->n == 1)
		add_row(h, p, s->l->hidden, gates, n, s->from_last);
	else
		add_rows(s, h, p, gates, gates_row, n);
}

/* ---- Steps. ---- */

/* The time at which row `i` has step `t`; -1: its sequence has ended. */
static int64_t
time_of(const struct rows *s, int64_t i, int64_t t)
{
	const om_recurrent *l = s->l;
	const int64_t length = l->lengths ? l->lengths[s->first + i] : l->steps;

	return t >= length ? -1 : l->is_reverse ? length - 1 - t : t;
}

/* Gates of rows whose sequences have ended are those of time 0: nothing reads what comes of them. */
static const float *
input_of(const struct rows *s, int64_t i, int64_t t)
{
	const int64_t time = time_of(s, i, t);

	return s->l->x + (time < 0 ? 0 : time) * s->l->x_time + (s->first + i) * s->l->x_row;
}

/* Start rows of gates with those of the input, from gate `from` to gate `to`; the rest of the panels is 0. */
static void
start_gates(const struct rows *s, int64_t t, int64_t from, int64_t to, float *gates, int64_t row)
{
	const int64_t hidden = s->l->hidden;

	for (int64_t i = 0; i < s->n; i++) {
		memcpy(gates + i * row, input_of(s, i, t) + from * hidden, (size_t)((to - from) * hidden) * sizeof *gates);
		memset(gates + i * row + (to - from) * hidden, 0, (size_t)(row - (to - from) * hidden) * sizeof *gates);
	}
}

static void
lstm_step(const struct rows *s, int64_t t)
{
	const int64_t hidden = s->l->hidden;

	start_gates(s, t, 0, 4, s->gates, s->gates_row);
	add_product(s, s->h, s->l->r, s->gates, s->gates_row, 4 * hidden);
	for (int64_t i = 0; i < s->n; i++) {
		const float *g = s->gates + i * s->gates_row;
		float *h = s->h + i * s->state_row, *c = s->c + i * s->state_row;
		for (int64_t j = 0; j < hidden && time_of(s, i, t) >= 0; j += VL) {
			const vec in = vec_sigmoid(vec_load(g + j)), out = vec_sigmoid(vec_load(g + hidden + j));
			const vec forget = vec_sigmoid(vec_load(g + 2 * hidden + j)), fresh = vec_tanh(vec_load(g + 3 * hidden + j));
			const vec cell = forget * vec_load(c + j) + in * fresh;
			vec_store(c + j, cell);
			vec_store(h + j, out * vec_tanh(cell));
		}
	}
}

static void
gru_step(const struct rows *s, int64_t t)
{
	const int64_t hidden = s->l->hidden;

	start_gates(s, t, 0, 2, s->gates, s->gates_row);
	add_product(s, s->h, s->l->r, s->gates, s->gates_row, 2 * hidden);
	for (int64_t i = 0; i < s->n; i++)
		for (int64_t j = 0; j < hidden; j += VL)
			vec_store(s->next + i * s->state_row + j, vec_load(s->h + i * s->state_row + j)
				* vec_sigmoid(vec_load(s->gates + i * s->gates_row + hidden + j)));
	start_gates(s, t, 2, 3, s->rest, s->rest_row);
	add_product(s, s->next, s->l->r + whole(2 * hidden) * hidden, s->rest, s->rest_row, hidden);
	for (int64_t i = 0; i < s->n; i++) {
		float *h = s->h + i * s->state_row;
		for (int64_t j = 0; j < hidden && time_of(s, i, t) >= 0; j += VL) {
			const vec update = vec_sigmoid(vec_load(s->gates + i * s->gates_row + j));
			const vec fresh = vec_tanh(vec_load(s->rest + i * s->rest_row + j));
			vec_store(h + j, (1 - update) * fresh + update * vec_load(h + j));
		}
	}
}

/* The hidden gate of the input is kept apart, as its product is multiplied by the reset gate. */
static void
gru_after_step(const struct rows *s, int64_t t)
{
	const int64_t hidden = s->l->hidden;

	start_gates(s, t, 0, 3, s->gates, s->gates_row);
	for (int64_t i = 0; i < s->n; i++) {
		float *g = s->gates + i * s->gates_row + 2 * hidden;
		memcpy(s->next + i * s->state_row, g, (size_t)hidden * sizeof *g);
		if (s->l->bias)
			memcpy(g, s->l->bias, (size_t)hidden * sizeof *g);
		else
			memset(g, 0, (size_t)hidden * sizeof *g);
	}
	add_product(s, s->h, s->l->r, s->gates, s->gates_row, 3 * hidden);
	for (int64_t i = 0; i < s->n; i++) {
		const float *g = s->gates + i * s->gates_row;
		float *h = s->h + i * s->state_row;
		for (int64_t j = 0; j < hidden && time_of(s, i, t) >= 0; j += VL) {
			const vec update = vec_sigmoid(vec_load(g + j)), reset = vec_sigmoid(vec_load(g + hidden + j));
			const vec fresh = vec_tanh(vec_load(s->next + i * s->state_row + j) + reset * vec_load(g + 2 * hidden + j));
			vec_store(h + j, (1 - update) * fresh + update * vec_load(h + j));
		}
	}
}

static void
rnn_step(const struct rows *s, int64_t t)
{
	const int64_t hidden = s->l->hidden;

	start_gates(s, t, 0, 1, s->gates, s->gates_row);
	add_product(s, s->h, s->l->r, s->gates, s->gates_row, hidden);
	for (int64_t i = 0; i < s->n; i++)
		for (int64_t j = 0; j < hidden && time_of(s, i, t) >= 0; j += VL)
			vec_store(s->h + i * s->state_row + j, vec_tanh(vec_load(s->gates + i * s->gates_row + j)));
}

/* ---- States. ---- */

static void
start_state(const struct rows *s, const float *from, float *to)
{
	const om_recurrent *l = s->l;

	memset(to, 0, (size_t)(s->n * s->state_row) * sizeof *to);
	for (int64_t i = 0; i < s->n && from; i++)
		memcpy(to + i * s->state_row, from + (s->first + i) * l->state_row, (size_t)l->hidden * sizeof *to);
}

/* States of sequences that have ended are 0. */
static void
put_states(const struct rows *s, int64_t t)
{
	const om_recurrent *l = s->l;
	const size_t bytes = (size_t)l->hidden * sizeof *l->y;

	for (int64_t i = 0; i < s->n && l->y; i++) {
		const int64_t time = time_of(s, i, t);
		float *to = l->y + (time < 0 ? t : time) * l->y_time + (s->first + i) * l->y_row;
		if (time < 0)
			memset(to, 0, bytes);
		else
			memcpy(to, s->h + i * s->state_row, bytes);
	}
}

static void
put_last(const struct rows *s, const float *from, float *to)
{
	const om_recurrent *l = s->l;

	for (int64_t i = 0; i < s->n && to; i++)
		memcpy(to + (s->first + i) * l->state_row, from + i * s->state_row, (size_t)l->hidden * sizeof *to);
}

static void
run(const om_recurrent *l, int64_t first, int64_t n, float *room)
{
	static void (*const step[])(const struct rows *s, int64_t t) = {
		[OM_RECURRENT_LSTM] = lstm_step, [OM_RECURRENT_GRU] = gru_step, [OM_RECURRENT_GRU_AFTER] = gru_after_step,
		[OM_RECURRENT_RNN] = rnn_step,
	};
	const int64_t gates = om_recurrent_gates(l->kind), in_first = om_recurrent_first_gates(l->kind);
	struct rows s = {.l = l, .first = first, .n = n, .gates = room,
		.gates_row = whole(in_first * l->hidden + OM_RECURRENT_SPARE),
		.rest_row = whole((gates - in_first) * l->hidden + OM_RECURRENT_SPARE), .state_row = whole(l->hidden)};

	s.rest = s.gates + n * s.gates_row;
	s.h = s.rest + n * s.rest_row;
	s.c = s.h + n * s.state_row;
	s.next = s.c + n * s.state_row;
	start_state(&s, l->initial_h, s.h);
	start_state(&s, l->initial_c, s.c);
	start_state(&s, NULL, s.next);
	for (int64_t t = 0; t < l->steps; t++) {
		s.from_last = t % 2;
		step[l->kind](&s, t);
		put_states(&s, t);
	}
	put_last(&s, s.h, l->last_h);
	put_last(&s, s.c, l->last_c);
}

extern const om_recurrent_kernels OM_TABLE(om_recurrent_kernels);

const om_recurrent_kernels OM_TABLE(om_recurrent_kernels) = {.run = run};
