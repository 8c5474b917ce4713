/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of recurrent layers: included by rnn.c once per floating-point type, which is REAL;
 * FOR_REAL() makes names specific to it. */
#define activate_one FOR_REAL(activate_one)
#define activate FOR_REAL(activate)
#define state_of FOR_REAL(state_of)
#define piece FOR_REAL(piece)
#define cut FOR_REAL(cut)
#define scratch_of FOR_REAL(scratch)
#define times_w FOR_REAL(times_w)
#define gates_of_steps FOR_REAL(gates_of_steps)
#define product FOR_REAL(product)
#define in_bytes FOR_REAL(in_bytes)
#define times_r FOR_REAL(times_r)
#define add_peephole FOR_REAL(add_peephole)
#define lstm_next FOR_REAL(lstm_next)
#define lstm_step FOR_REAL(lstm_step)
#define gru_step FOR_REAL(gru_step)
#define rnn_step FOR_REAL(rnn_step)
#define put_row FOR_REAL(put_row)
#define state_row FOR_REAL(state_row)
#define put_step FOR_REAL(put_step)
#define start_states FOR_REAL(start_states)
#define start_bias FOR_REAL(start_bias)
#define choose_direction FOR_REAL(choose_direction)
#define run_direction FOR_REAL(run_direction)
#define run FOR_REAL(run)

static REAL
activate_one(const struct om_activation *a, REAL x)
{
	switch (a->function) {
	case OM_SIGMOID: return 1 / (1 + exp(-x));
	case OM_TANH: return tanh(x);
	case OM_RELU: return x > 0 ? x : 0;
	case OM_AFFINE: return a->alpha * x + a->beta;
	case OM_LEAKY: return x < 0 ? a->alpha * x : x;
	case OM_THRESHOLDED: return x > a->alpha ? x : 0;
	case OM_SCALED_TANH: return a->alpha * tanh(a->beta * x);
	case OM_HARD_SIGMOID: return fmin(fmax(a->alpha * x + a->beta, (REAL)0), (REAL)1);
	case OM_ELU: return x < 0 ? a->alpha * expm1(x) : x;
	case OM_SOFTSIGN: return x / (1 + fabs(x));
	case OM_SOFTPLUS: return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
	default: return x;
	}
}

static void
activate(const struct om_activation *a, REAL clip, REAL *x, int64_t n)
{
	for (int64_t i = 0; i < n && clip > 0; i++)
		x[i] = fmin(fmax(x[i], -clip), clip);
	for (int64_t i = 0; i < n; i++)
		x[i] = activate_one(a, x[i]);
}

struct state_of {
	const om_op_context *c;
	struct om_rnn_layer l;
	const REAL *in[NIN];         /* as REAL; NULL: absent */
	int64_t chunk;                /* steps whose products with W are computed at once */
	REAL *gates_of_x;            /* chunk, batch, gates */
	REAL *gates;                 /* batch, gates */
	REAL *state[2];              /* batch, hidden: hidden state, cell state */
	REAL *next;                  /* batch, hidden */
	REAL *bias;                  /* gates */
	void *room;
	bool is_uniform;              /* every sequence has the full number of steps */
	/* State of the current direction. */
	int dir;
	bool reverse;
	const struct om_activation *act;
	const REAL *w, *r, *b, *p;
};

static void *
piece(char *base, uint64_t *at, uint64_t a, uint64_t b)
{
	uint64_t bytes;
	const uint64_t from = *at;

	if (__builtin_mul_overflow(a, b, &bytes) || __builtin_mul_overflow(bytes, sizeof(REAL), &bytes))
		bytes = UINT64_MAX;
	*at = om_size_sum(from, om_piece_size(bytes));
	return base ? base + from : NULL;
}

/* Assign the scratch buffers; returns the number of bytes. */
static uint64_t
cut(struct state_of *r, char *base)
{
	const struct om_rnn_layer *l = &r->l;
	const uint64_t gates = (uint64_t)(l->cell->gates * l->hidden), batch = (uint64_t)l->batch;
	int64_t a_step;
	uint64_t at = 0;

	if (__builtin_mul_overflow(l->batch, l->cell->gates * l->hidden, &a_step))
		a_step = INT64_MAX;
	r->chunk = a_step > 0 ? FLOATS_AT_ONCE / a_step : 1;
	r->chunk = r->chunk < 1 ? 1 : r->chunk < l->steps ? r->chunk : l->steps;
	r->gates_of_x = piece(base, &at, (uint64_t)r->chunk * batch, gates);
	r->gates = piece(base, &at, batch, gates);
	for (uint32_t k = 0; k < 2; k++)
		r->state[k] = piece(base, &at, batch, (uint64_t)l->hidden);
	r->next = piece(base, &at, batch, (uint64_t)l->hidden);
	r->bias = piece(base, &at, gates, 1);
	const int64_t longest = l->width > l->hidden ? l->width : l->hidden;
	const uint64_t room = om_gemm_workspace(l->batch, l->cell->gates * l->hidden, longest);
	r->room = piece(base, &at, room / sizeof(REAL), 1);
	for (uint32_t k = 0; k < r->c->op->nin && k < NIN; k++) {
		if (!om_has_in(r->c, k) || k == LENGTHS)
			continue;
		r->in[k] = r->c->in[k].data;
		if (om_is_half(r->c->in[k].type))
			r->in[k] = piece(base, &at, om_floats_of(&r->c->in[k]) / sizeof(REAL), 1);
	}
	return at;
}

static uint64_t
scratch_of(const om_op_context *c)
{
	struct state_of r = {.c = c};

	r.l = *(const struct om_rnn_layer *)c->state;
	return cut(&r, NULL);
}

/* The product of W and X, plus the bias: `m` elements, starting at `x`, `stride` apart. */
static void
times_w(const struct state_of *r, const REAL *x, int64_t m, int64_t stride, REAL *to, int64_t to_row)
{
	const int64_t n = r->l.cell->gates * r->l.hidden;

	for (int64_t i = 0; i < m; i++)
		memcpy(to + i * to_row, r->bias, (size_t)n * sizeof *to);
	product(x, stride, r->w, to, to_row, m, n, r->l.width, r->room);
}

/* Fill gates_of_x for steps [s0, s1): one product if the elements are contiguous, otherwise one per
 * sequence. */
static void
gates_of_steps(const struct state_of *r, int64_t s0, int64_t s1)
{
	const struct om_rnn_layer *l = &r->l;
	const int64_t n = l->cell->gates * l->hidden;
	const int64_t step = l->width * (l->batch_first ? 1 : l->batch);
	const int64_t next = l->width * (l->batch_first ? l->steps : 1);

	if (r->is_uniform && !l->batch_first && !r->reverse) {
		times_w(r, r->in[X] + s0 * step, (s1 - s0) * l->batch, l->width, r->gates_of_x, n);
		return;
	}
	for (int64_t b = 0; b < l->batch; b++) {
		const int64_t length = length_of(r->c, &r->l, b), end = s1 < length ? s1 : length;
		const int64_t time = r->reverse ? length - 1 - s0 : s0;
		if (end > s0)
			times_w(r, r->in[X] + b * next + time * step, end - s0, r->reverse ? -step : step,
				r->gates_of_x + b * n, l->batch * n);
	}
}

/* Quantize n numbers to 8 bits and back, with a scale and zero point that represent 0 exactly. */
static void
in_bytes(const REAL *x, int64_t n, REAL *to)
{
	REAL least = 0, most = 0;

	for (int64_t i = 0; i < n; i++) {
		least = fmin(least, x[i]);
		most = fmax(most, x[i]);
	}
	const REAL scale = most == least ? 1 : (most - least) / 255, zero = rint(-least / scale);
	for (int64_t i = 0; i < n; i++)
		to[i] = (fmin(fmax(rint(x[i] / scale) + zero, (REAL)0), (REAL)255) - zero) * scale;
}

/* to (row stride `to_row`) += state (batch by hidden) times the transpose of rows [first, first + n) of
 * R. */
static void
times_r(const struct state_of *r, const REAL *state, int64_t first, int64_t n, REAL *to, int64_t to_row)
{
	const int64_t h = r->l.hidden;

	product(state, h, r->r + first * h, to, to_row, r->l.batch, n, h, r->room);
}

/* ---- The cells: from the gates of a sequence (products added) to its next state. ---- */

static void
add_peephole(const struct state_of *r, int gate, const REAL *cell, REAL *x)
{
	const int64_t h = r->l.hidden;

	for (int64_t i = 0; i < h && r->p; i++)
		x[i] += r->p[gate * h + i] * cell[i];
}

/* Gates: input, output, forget, cell. */
static void
lstm_next(const struct state_of *r, REAL *gates, REAL *hidden, REAL *cell)
{
	const int64_t h = r->l.hidden;
	REAL *in = gates, *out = gates + h, *forget = gates + 2 * h, *fresh = gates + 3 * h;

	add_peephole(r, 0, cell, in);
	add_peephole(r, 2, cell, forget);
	activate(&r->act[0], r->l.clip, in, h);
	if (r->l.input_forget)
		for (int64_t i = 0; i < h; i++)
			forget[i] = 1 - in[i];
	else
		activate(&r->act[0], r->l.clip, forget, h);
	activate(&r->act[1], r->l.clip, fresh, h);
	for (int64_t i = 0; i < h; i++)
		cell[i] = forget[i] * cell[i] + in[i] * fresh[i];
	add_peephole(r, 1, cell, out);
	activate(&r->act[0], r->l.clip, out, h);
	memcpy(hidden, cell, (size_t)h * sizeof *hidden);
	activate(&r->act[2], 0, hidden, h);
	for (int64_t i = 0; i < h; i++)
		hidden[i] *= out[i];
}

static void
lstm_step(const struct state_of *r, const bool *active)
{
	const int64_t n = 4 * r->l.hidden;

	if (r->l.has_bytes)
		in_bytes(r->state[0], r->l.batch * r->l.hidden, r->next);
	times_r(r, r->l.has_bytes ? r->next : r->state[0], 0, n, r->gates, n);
	for (int64_t b = 0; b < r->l.batch; b++)
		if (active[b])
			lstm_next(r, r->gates + b * n, r->state[0] + b * r->l.hidden,
				r->state[1] + b * r->l.hidden);
}

/* Gates: update, reset, hidden.  The reset gate is applied to the state before its product with R, or,
 * with linear_before_reset, to the product. */
static void
gru_step(const struct state_of *r, const bool *active)
{
	const int64_t h = r->l.hidden, n = 3 * h, batch = r->l.batch;
	const bool after = r->l.reset_after;

	times_r(r, r->state[0], 0, 2 * h, r->gates, n);
	for (int64_t b = 0; b < batch; b++) {
		REAL *gates = r->gates + b * n, *next = r->next + b * h, *state = r->state[0] + b * h;
		activate(&r->act[0], r->l.clip, gates, 2 * h);
		for (int64_t i = 0; i < h; i++)
			next[i] = after ? (r->b ? r->b[5 * h + i] : 0) : gates[h + i] * state[i];
	}
	if (after)
		times_r(r, r->state[0], 2 * h, h, r->next, h);
	else
		times_r(r, r->next, 2 * h, h, r->gates + 2 * h, n);
	for (int64_t b = 0; b < batch; b++) {
		REAL *gates = r->gates + b * n, *fresh = gates + 2 * h, *state = r->state[0] + b * h;
		for (int64_t i = 0; i < h && after; i++)
			fresh[i] += gates[h + i] * r->next[b * h + i];
		activate(&r->act[1], r->l.clip, fresh, h);
		for (int64_t i = 0; i < h && active[b]; i++)
			state[i] = (1 - gates[i]) * fresh[i] + gates[i] * state[i];
	}
}

static void
rnn_step(const struct state_of *r, const bool *active)
{
	const int64_t h = r->l.hidden;

	times_r(r, r->state[0], 0, h, r->gates, h);
	for (int64_t b = 0; b < r->l.batch; b++) {
		activate(&r->act[0], r->l.clip, r->gates + b * h, h);
		if (active[b])
			memcpy(r->state[0] + b * h, r->gates + b * h, (size_t)h * sizeof(REAL));
	}
}

/* ---- One direction. ---- */

static void
put_row(const om_tensor *t, int64_t row, const REAL *x, int64_t n)
{
	const int64_t size = om_dtype_bits(t->type) / 8;

	if (om_is_half(t->type))
		om_narrow(t->type, (const void *)x, n, (char *)t->data + row * n * size);
	else
		memcpy((REAL *)t->data + row * n, x, (size_t)n * sizeof *x);
}

/* The row of sequence `b` in a state tensor. */
static int64_t
state_row(const struct state_of *r, int64_t b)
{
	return r->l.batch_first ? b * r->l.ndir + r->dir : r->dir * r->l.batch + b;
}

static void
put_step(const struct state_of *r, int64_t s, const bool *active)
{
	const struct om_rnn_layer *l = &r->l;

	for (int64_t b = 0; b < l->batch && om_has_out(r->c, 0); b++) {
		const int64_t t = r->reverse ? length_of(r->c, &r->l, b) - 1 - s : s;
		const int64_t row = l->batch_first ? (b * l->steps + t) * l->ndir + r->dir
			: (t * l->ndir + r->dir) * l->batch + b;
		if (active[b])
			put_row(&r->c->out[0], row, r->state[0] + b * l->hidden, l->hidden);
	}
}

static void
start_states(const struct state_of *r)
{
	const size_t bytes = (size_t)r->l.hidden * sizeof(REAL);

	for (uint32_t k = 0; k < r->l.cell->nstate; k++)
		for (int64_t b = 0; b < r->l.batch; b++) {
			const REAL *from = r->in[INITIAL_H + k];
			REAL *to = r->state[k] + b * r->l.hidden;
			if (from)
				memcpy(to, from + state_row(r, b) * r->l.hidden, bytes);
			else
				memset(to, 0, bytes);
		}
}

/* The sum of both biases, except for the part of a GRU that the reset gate scales. */
static void
start_bias(const struct state_of *r)
{
	const int64_t h = r->l.hidden, n = r->l.cell->gates * h;
	const bool apart = r->l.cell->kind == OM_RNN_GRU && r->l.reset_after;

	for (int64_t i = 0; i < n; i++) {
		r->bias[i] = r->b ? r->b[i] : 0;
		if (r->b && !(apart && i >= 2 * h))
			r->bias[i] += r->b[n + i];
	}
}

static void
choose_direction(struct state_of *r, int dir)
{
	const struct om_rnn_layer *l = &r->l;
	const int64_t h = l->hidden, n = l->cell->gates * h;

	r->dir = dir;
	r->reverse = l->is_reverse || dir == 1;
	r->act = l->act + dir * l->cell->activations;
	r->w = r->in[W] + dir * n * l->width;
	r->r = r->in[R] + dir * n * h;
	r->b = r->in[B] ? r->in[B] + dir * 2 * n : NULL;
	r->p = r->in[P] ? r->in[P] + dir * 3 * h : NULL;
	start_states(r);
	start_bias(r);
}

static void
run_direction(struct state_of *r, void (*step)(const struct state_of *, const bool *), bool *active)
{
	const struct om_rnn_layer *l = &r->l;
	const int64_t row = l->batch * l->cell->gates * l->hidden;

	for (int64_t s0 = 0; s0 < l->steps; s0 += r->chunk) {
		const int64_t s1 = l->steps - s0 < r->chunk ? l->steps : s0 + r->chunk;
		/* Rows of finished sequences remain initialized. */
		if (!r->is_uniform)
			memset(r->gates_of_x, 0, (size_t)(r->chunk * row) * sizeof(REAL));
		gates_of_steps(r, s0, s1);
		for (int64_t s = s0; s < s1; s++) {
			for (int64_t b = 0; b < l->batch; b++)
				active[b] = s < length_of(r->c, &r->l, b);
			memcpy(r->gates, r->gates_of_x + (s - s0) * row, (size_t)row * sizeof(REAL));
			step(r, active);
			put_step(r, s, active);
		}
	}
	for (uint32_t k = 0; k < l->cell->nstate; k++)
		for (int64_t b = 0; b < l->batch && om_has_out(r->c, k + 1); b++)
			put_row(&r->c->out[k + 1], state_row(r, b), r->state[k] + b * l->hidden, l->hidden);
}

static om_status
run(om_op_context *c)
{
	struct state_of r = {.c = c, .l = *(const struct om_rnn_layer *)c->state};
	uint64_t bytes;
	void (*step)(const struct state_of *, const bool *);

	OM_TRY(check_lengths(c, &r.l, &r.is_uniform));
	cut(&r, c->scratch);
	for (uint32_t k = 0; k < c->op->nin && k < NIN; k++)
		if (r.in[k] && om_is_half(c->in[k].type))
			om_widen(c->in[k].type, c->in[k].data, om_shape_count(&c->in[k].shape), (void *)r.in[k]);
	/* Elements after the end of a sequence are 0. */
	if (om_has_out(c, 0) && !r.is_uniform && om_tensor_bytes(c->out[0].type, &c->out[0].shape, &bytes))
		memset(c->out[0].data, 0, bytes);
	step = r.l.cell->kind == OM_RNN_LSTM ? lstm_step : r.l.cell->kind == OM_RNN_GRU ? gru_step : rnn_step;
	for (int dir = 0; dir < r.l.ndir; dir++) {
		choose_direction(&r, dir);
		run_direction(&r, step, r.l.active);
	}
	return OM_OK;
}

#undef activate_one
#undef activate
#undef state_of
#undef piece
#undef cut
#undef scratch_of
#undef times_w
#undef gates_of_steps
#undef product
#undef in_bytes
#undef times_r
#undef add_peephole
#undef lstm_next
#undef lstm_step
#undef gru_step
#undef rnn_step
#undef put_row
#undef state_row
#undef put_step
#undef start_states
#undef start_bias
#undef choose_direction
#undef run_direction
#undef run
