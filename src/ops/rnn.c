/* Recurrent layers: LSTM, GRU, RNN.
 *
 * What the input gives to the gates is computed for many steps in one product;
 * the steps then add what the state before gives.  Step `s` of a sequence of n
 * elements is element s, or n - 1 - s in reverse.
 */
#include <config.h>

#include <math.h>
#include <strings.h>

#include "kernels/kernels.h"
#include "ops/family.h"
#include "ops/numbers.h"

/* ---- Activations. ---- */

enum function { SIGMOID, TANH, RELU, AFFINE, LEAKY, THRESHOLDED, SCALED_TANH, HARD_SIGMOID, ELU, SOFTSIGN,
	SOFTPLUS, NFUNCTION };

struct activation {
	enum function function;
	float alpha, beta;
};

static const struct {
	const char *name;
	bool has_alpha, has_beta;
	float alpha, beta;
} functions[NFUNCTION] = {
	[SIGMOID] = {"Sigmoid"},
	[TANH] = {"Tanh"},
	[RELU] = {"Relu"},
	[AFFINE] = {"Affine", true, true, 1, 0},
	[LEAKY] = {"LeakyRelu", true, false, 0.01f},
	[THRESHOLDED] = {"ThresholdedRelu", true, false, 1},
	[SCALED_TANH] = {"ScaledTanh", true, true, 1, 1},
	[HARD_SIGMOID] = {"HardSigmoid", true, true, 0.2f, 0.5f},
	[ELU] = {"Elu", true, false, 1},
	[SOFTSIGN] = {"Softsign"},
	[SOFTPLUS] = {"Softplus"},
};

static float
activate_one(const struct activation *a, float x)
{
	switch (a->function) {
	case SIGMOID: return 1 / (1 + expf(-x));
	case TANH: return tanhf(x);
	case RELU: return x > 0 ? x : 0;
	case AFFINE: return a->alpha * x + a->beta;
	case LEAKY: return x < 0 ? a->alpha * x : x;
	case THRESHOLDED: return x > a->alpha ? x : 0;
	case SCALED_TANH: return a->alpha * tanhf(a->beta * x);
	case HARD_SIGMOID: return fminf(fmaxf(a->alpha * x + a->beta, 0), 1);
	case ELU: return x < 0 ? a->alpha * expm1f(x) : x;
	case SOFTSIGN: return x / (1 + fabsf(x));
	case SOFTPLUS: return x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x));
	default: return x;
	}
}

static void
activate(const struct activation *a, float clip, float *x, int64_t n)
{
	for (int64_t i = 0; i < n && clip > 0; i++)
		x[i] = fminf(fmaxf(x[i], -clip), clip);
	for (int64_t i = 0; i < n; i++)
		x[i] = activate_one(a, x[i]);
}

/* ---- What a layer is. ---- */

enum { MAX_ACTIVATIONS = 6 };

struct cell {
	int gates;
	int activations;              /* for a direction */
	enum function usual[3];
	uint32_t nstate;              /* 2 when there is a cell state beside the hidden one */
};

static const struct cell lstm_cell = {4, 3, {SIGMOID, TANH, TANH}, 2};
static const struct cell gru_cell = {3, 2, {SIGMOID, TANH}, 1};
static const struct cell rnn_cell = {1, 1, {TANH}, 1};

/* Inputs. */
enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, P, NIN };

/* While planning, -1 stands for what is not known. */
struct layer {
	const struct cell *cell;
	int64_t steps, batch, width, hidden;
	int ndir;
	bool is_reverse, batch_first;
	struct activation act[MAX_ACTIVATIONS];
	float clip;
};

static const struct cell *
cell_of(const om_op *op)
{
	return *op->type == 'L' ? &lstm_cell : *op->type == 'G' ? &gru_cell : &rnn_cell;
}

static bool
find_function(om_string name, enum function *f)
{
	for (int k = 0; k < NFUNCTION; k++)
		if (strlen(functions[k].name) == name.size
		    && strncasecmp(functions[k].name, name.data, name.size) == 0) {
			*f = (enum function)k;
			return true;
		}
	return false;
}

/* Alphas and betas are used up by those functions that have them. */
static const char *
read_activations(const om_call *c, struct layer *l)
{
	size_t nalpha, nbeta, a = 0, b = 0;
	const int n = l->ndir * l->cell->activations;
	const float *alpha = om_attr_floats(c->op, "activation_alpha", &nalpha);
	const float *beta = om_attr_floats(c->op, "activation_beta", &nbeta);
	const om_attr *names = om_attr_find(c->op, "activations");

	if (names && names->kind == OM_ATTR_STRINGS && names->n != 0 && names->n != (size_t)n)
		return om_printf(c->mem, "has %zu activations where there have to be %d", names->n, n);
	for (int k = 0; k < n; k++) {
		enum function f = l->cell->usual[k % l->cell->activations];
		if (names && names->kind == OM_ATTR_STRINGS && names->n && !find_function(names->s[k], &f))
			return om_printf(c->mem, "the activation %.*s is not known", (int)names->s[k].size,
				names->s[k].data);
		l->act[k] = (struct activation){f, functions[f].alpha, functions[f].beta};
		if (functions[f].has_alpha && a < nalpha)
			l->act[k].alpha = alpha[a++];
		if (functions[f].has_beta && b < nbeta)
			l->act[k].beta = beta[b++];
	}
	return NULL;
}

static int64_t
dim_of(const om_call *c, uint32_t k, int d)
{
	return om_has_in(c, k) && c->in[k].shape.rank > d ? c->in[k].shape.dim[d] : OM_DIM_UNKNOWN;
}

static const char *
read_layer(const om_call *c, struct layer *l)
{
	const char *wrong;
	const bool is_two = om_attr_is(c->op, "direction", "bidirectional");

	*l = (struct layer){.cell = cell_of(c->op), .ndir = is_two ? 2 : 1,
		.is_reverse = om_attr_is(c->op, "direction", "reverse"),
		.batch_first = om_attr_int(c->op, "layout") != 0, .clip = om_attr_float(c->op, "clip")};
	if (!is_two && !l->is_reverse && !om_attr_is(c->op, "direction", "forward"))
		return "the direction is none of forward, reverse and bidirectional";
	l->steps = dim_of(c, X, l->batch_first);
	l->batch = dim_of(c, X, !l->batch_first);
	l->width = dim_of(c, X, 2);
	l->hidden = om_attr_int(c->op, "hidden_size");
	if (l->hidden < 0 || l->hidden > INT32_MAX)
		return om_printf(c->mem, "hidden_size is %lld", (long long)l->hidden);
	if (l->hidden == 0)
		l->hidden = dim_of(c, R, 2);
	if ((wrong = read_activations(c, l)))
		return wrong;
	return NULL;
}

/* ---- Shapes. ---- */

static om_status
check_dims(const om_call *c, uint32_t k, int rank, int64_t d0, int64_t d1, int64_t d2)
{
	const int64_t want[] = {d0, d1, d2};
	const om_shape *s = &c->in[k].shape;
	char text[128];
	bool ok = s->rank == rank;

	if (!om_has_in(c, k) || s->rank < 0)
		return OM_OK;
	for (int d = 0; d < rank && ok; d++)
		ok = om_dims_agree(want[d], s->dim[d]);
	if (ok)
		return OM_OK;
	const om_shape wanted = om_shape_of(rank, want);
	char more[128];
	return om_op_fail(c->session, OM_SHAPE, c->op, "input %u has shape %s; the layer needs %s", k,
		om_shape_text(s, text, sizeof text), om_shape_text(&wanted, more, sizeof more));
}

static int64_t
times(int64_t a, int64_t b)
{
	return b < 0 ? -1 : a * b;
}

static om_status
check_inputs(const om_call *c, const struct layer *l)
{
	const int64_t gates = times(l->cell->gates, l->hidden);
	const bool first = l->batch_first;

	OM_TRY(check_dims(c, X, 3, -1, -1, -1));
	OM_TRY(check_dims(c, W, 3, l->ndir, gates, l->width));
	OM_TRY(check_dims(c, R, 3, l->ndir, gates, l->hidden));
	OM_TRY(check_dims(c, B, 2, l->ndir, times(2, gates), -1));
	OM_TRY(check_dims(c, LENGTHS, 1, l->batch, -1, -1));
	for (uint32_t k = INITIAL_H; k < INITIAL_H + l->cell->nstate; k++)
		OM_TRY(check_dims(c, k, 3, first ? l->batch : l->ndir, first ? l->ndir : l->batch, l->hidden));
	return check_dims(c, P, 2, l->ndir, times(3, l->hidden), -1);
}

static void
set_dim(om_shape *s, int64_t n, const om_shape *from, int d)
{
	s->dim[s->rank] = n;
	s->sym[s->rank++] = n < 0 && from && from->rank > d ? from->sym[d] : NULL;
}

static om_status
rnn_infer(om_call *c)
{
	struct layer l;
	const char *wrong = read_layer(c, &l);
	const om_shape *x = &c->in[X].shape;

	if (wrong)
		return om_op_fail(c->session, OM_INVALID, c->op, "%s", wrong);
	OM_TRY(check_inputs(c, &l));
	for (uint32_t k = 0; k < c->op->nout; k++) {
		om_shape *s = &c->out[k].shape;
		c->out[k].type = c->in[X].type;
		*s = (om_shape){.rank = 0};
		if (k == 0 && !l.batch_first)
			set_dim(s, l.steps, x, 0);
		if (l.batch_first)
			set_dim(s, l.batch, x, 0);
		if (k == 0 && l.batch_first)
			set_dim(s, l.steps, x, 1);
		set_dim(s, l.ndir, NULL, 0);
		if (!l.batch_first)
			set_dim(s, l.batch, x, 1);
		set_dim(s, l.hidden, NULL, 0);
	}
	return OM_OK;
}

/* ---- Running. ---- */

enum { FLOATS_AT_ONCE = 1 << 16 };

struct run {
	const om_call *c;
	struct layer l;
	const float *in[NIN];         /* as floats; NULL: not given */
	int64_t chunk;                /* steps whose products with W are made at once */
	float *gates_of_x;            /* chunk, batch, gates */
	float *gates;                 /* batch, gates */
	float *state[2];              /* batch, hidden: hidden state, cell state */
	float *next;                  /* batch, hidden */
	float *bias;                  /* gates */
	void *room;
	bool is_uniform;              /* every sequence takes all steps */
	/* Of the direction at work. */
	int dir;
	bool reverse;
	const struct activation *act;
	const float *w, *r, *b, *p;
};

static void *
piece(char *base, uint64_t *at, uint64_t a, uint64_t b)
{
	uint64_t bytes;
	const uint64_t from = *at;

	if (__builtin_mul_overflow(a, b, &bytes) || __builtin_mul_overflow(bytes, sizeof(float), &bytes))
		bytes = UINT64_MAX;
	*at = om_pieces(from, om_piece(bytes));
	return base ? base + from : NULL;
}

/* Cut up the scratch; the number of bytes. */
static uint64_t
cut(struct run *r, char *base)
{
	const struct layer *l = &r->l;
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
	const uint64_t room = om_gemm_room(l->batch, l->cell->gates * l->hidden, longest);
	r->room = piece(base, &at, room / sizeof(float), 1);
	for (uint32_t k = 0; k < r->c->op->nin && k < NIN; k++) {
		if (!om_has_in(r->c, k) || k == LENGTHS)
			continue;
		r->in[k] = r->c->in[k].data;
		if (om_is_half(r->c->in[k].type))
			r->in[k] = piece(base, &at, om_floats_of(&r->c->in[k]) / sizeof(float), 1);
	}
	return at;
}

static uint64_t
rnn_scratch(const om_call *c)
{
	struct run r = {.c = c};

	return read_layer(c, &r.l) ? 0 : cut(&r, NULL);
}

static int64_t
length_of(const struct run *r, int64_t b)
{
	return om_has_in(r->c, LENGTHS) ? ((const int32_t *)r->c->in[LENGTHS].data)[b] : r->l.steps;
}

static om_status
check_lengths(struct run *r)
{
	r->is_uniform = true;
	if (!om_has_in(r->c, LENGTHS))
		return OM_OK;
	if (r->c->in[LENGTHS].type != OM_INT32)
		return om_op_fail(r->c->session, OM_SHAPE, r->c->op, "sequence_lens is %s, not int32",
			om_dtype_text(r->c->in[LENGTHS].type));
	for (int64_t b = 0; b < r->l.batch; b++) {
		const int64_t n = length_of(r, b);
		if (n < 0 || n > r->l.steps)
			return om_op_fail(r->c->session, OM_RUN, r->c->op, "a sequence of %lld in %lld steps",
				(long long)n, (long long)r->l.steps);
		r->is_uniform &= n == r->l.steps;
	}
	return OM_OK;
}

/* The product of W with X: `m` elements from `time` on, `stride` apart. */
static void
times_w(const struct run *r, const float *x, int64_t m, int64_t stride, float *to, int64_t to_row)
{
	const int64_t n = r->l.cell->gates * r->l.hidden;
	const om_gemm g = {
		.m = m, .n = n, .k = r->l.width, .a = x, .a_row = stride, .a_col = 1, .b = r->w,
		.b_row = 1, .b_col = r->l.width, .c = to, .c_row = to_row, .alpha = 1, .add = true,
	};

	for (int64_t i = 0; i < m; i++)
		memcpy(to + i * to_row, r->bias, (size_t)n * sizeof *to);
	if (m > 0)
		om_kernels_get()->gemm(&g, r->room);
}

/* Fill gates_of_x for steps [s0, s1): one product where the elements lie in one
 * piece, else one for every sequence. */
static void
gates_of_steps(const struct run *r, int64_t s0, int64_t s1)
{
	const struct layer *l = &r->l;
	const int64_t n = l->cell->gates * l->hidden;
	const int64_t step = l->width * (l->batch_first ? 1 : l->batch);
	const int64_t next = l->width * (l->batch_first ? l->steps : 1);

	if (r->is_uniform && !l->batch_first && !r->reverse) {
		times_w(r, r->in[X] + s0 * step, (s1 - s0) * l->batch, l->width, r->gates_of_x, n);
		return;
	}
	for (int64_t b = 0; b < l->batch; b++) {
		const int64_t length = length_of(r, b), end = s1 < length ? s1 : length;
		const int64_t time = r->reverse ? length - 1 - s0 : s0;
		if (end > s0)
			times_w(r, r->in[X] + b * next + time * step, end - s0, r->reverse ? -step : step,
				r->gates_of_x + b * n, l->batch * n);
	}
}

/* to (batch by n, rows of `to_row`) += state times rows [first, first + n) of R. */
static void
times_r(const struct run *r, const float *state, int64_t first, int64_t n, float *to, int64_t to_row)
{
	const int64_t h = r->l.hidden;
	const om_gemm g = {
		.m = r->l.batch, .n = n, .k = h, .a = state, .a_row = h, .a_col = 1,
		.b = r->r + first * h, .b_row = 1, .b_col = h, .c = to, .c_row = to_row, .alpha = 1,
		.add = true,
	};

	om_kernels_get()->gemm(&g, r->room);
}

/* ---- The cells: gates of a sequence (products added) to its next state. ---- */

static void
add_peephole(const struct run *r, int gate, const float *cell, float *x)
{
	const int64_t h = r->l.hidden;

	for (int64_t i = 0; i < h && r->p; i++)
		x[i] += r->p[gate * h + i] * cell[i];
}

/* Gates: input, output, forget, cell. */
static void
lstm_next(const struct run *r, float *gates, float *hidden, float *cell)
{
	const int64_t h = r->l.hidden;
	float *in = gates, *out = gates + h, *forget = gates + 2 * h, *fresh = gates + 3 * h;

	add_peephole(r, 0, cell, in);
	add_peephole(r, 2, cell, forget);
	activate(&r->act[0], r->l.clip, in, h);
	if (om_attr_int(r->c->op, "input_forget"))
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
lstm_step(const struct run *r, const bool *active)
{
	const int64_t n = 4 * r->l.hidden;

	times_r(r, r->state[0], 0, n, r->gates, n);
	for (int64_t b = 0; b < r->l.batch; b++)
		if (active[b])
			lstm_next(r, r->gates + b * n, r->state[0] + b * r->l.hidden,
				r->state[1] + b * r->l.hidden);
}

/* Gates: update, reset, hidden.  The reset gate works on the state before its
 * product with R, or, with linear_before_reset, on the product. */
static void
gru_step(const struct run *r, const bool *active)
{
	const int64_t h = r->l.hidden, n = 3 * h, batch = r->l.batch;
	const bool after = om_attr_int(r->c->op, "linear_before_reset") != 0;

	times_r(r, r->state[0], 0, 2 * h, r->gates, n);
	for (int64_t b = 0; b < batch; b++) {
		float *gates = r->gates + b * n, *next = r->next + b * h, *state = r->state[0] + b * h;
		activate(&r->act[0], r->l.clip, gates, 2 * h);
		for (int64_t i = 0; i < h; i++)
			next[i] = after ? (r->b ? r->b[5 * h + i] : 0) : gates[h + i] * state[i];
	}
	if (after)
		times_r(r, r->state[0], 2 * h, h, r->next, h);
	else
		times_r(r, r->next, 2 * h, h, r->gates + 2 * h, n);
	for (int64_t b = 0; b < batch; b++) {
		float *gates = r->gates + b * n, *fresh = gates + 2 * h, *state = r->state[0] + b * h;
		for (int64_t i = 0; i < h && after; i++)
			fresh[i] += gates[h + i] * r->next[b * h + i];
		activate(&r->act[1], r->l.clip, fresh, h);
		for (int64_t i = 0; i < h && active[b]; i++)
			state[i] = (1 - gates[i]) * fresh[i] + gates[i] * state[i];
	}
}

static void
rnn_step(const struct run *r, const bool *active)
{
	const int64_t h = r->l.hidden;

	times_r(r, r->state[0], 0, h, r->gates, h);
	for (int64_t b = 0; b < r->l.batch; b++) {
		activate(&r->act[0], r->l.clip, r->gates + b * h, h);
		if (active[b])
			memcpy(r->state[0] + b * h, r->gates + b * h, (size_t)h * sizeof(float));
	}
}

/* ---- A direction. ---- */

static void
put_row(const om_tensor *t, int64_t row, const float *x, int64_t n)
{
	const int64_t size = om_dtype_bits(t->type) / 8;

	if (t->type == OM_FLOAT32)
		memcpy((float *)t->data + row * n, x, (size_t)n * sizeof *x);
	else
		om_narrow(t->type, x, n, (char *)t->data + row * n * size);
}

/* The row of a state for sequence `b`. */
static int64_t
state_row(const struct run *r, int64_t b)
{
	return r->l.batch_first ? b * r->l.ndir + r->dir : r->dir * r->l.batch + b;
}

static void
put_step(const struct run *r, int64_t s, const bool *active)
{
	const struct layer *l = &r->l;

	for (int64_t b = 0; b < l->batch && om_has_out(r->c, 0); b++) {
		const int64_t t = r->reverse ? length_of(r, b) - 1 - s : s;
		const int64_t row = l->batch_first ? (b * l->steps + t) * l->ndir + r->dir
			: (t * l->ndir + r->dir) * l->batch + b;
		if (active[b])
			put_row(&r->c->out[0], row, r->state[0] + b * l->hidden, l->hidden);
	}
}

static void
start_states(const struct run *r)
{
	const size_t bytes = (size_t)r->l.hidden * sizeof(float);

	for (uint32_t k = 0; k < r->l.cell->nstate; k++)
		for (int64_t b = 0; b < r->l.batch; b++) {
			const float *from = r->in[INITIAL_H + k];
			float *to = r->state[k] + b * r->l.hidden;
			if (from)
				memcpy(to, from + state_row(r, b) * r->l.hidden, bytes);
			else
				memset(to, 0, bytes);
		}
}

/* Both biases in one, but for the part of a GRU that the reset gate scales. */
static void
start_bias(const struct run *r)
{
	const int64_t h = r->l.hidden, n = r->l.cell->gates * h;
	const bool apart = r->l.cell == &gru_cell && om_attr_int(r->c->op, "linear_before_reset") != 0;

	for (int64_t i = 0; i < n; i++) {
		r->bias[i] = r->b ? r->b[i] : 0;
		if (r->b && !(apart && i >= 2 * h))
			r->bias[i] += r->b[n + i];
	}
}

static void
choose_direction(struct run *r, int dir)
{
	const struct layer *l = &r->l;
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
run_direction(struct run *r, void (*step)(const struct run *, const bool *), bool *active)
{
	const struct layer *l = &r->l;
	const int64_t row = l->batch * l->cell->gates * l->hidden;

	for (int64_t s0 = 0; s0 < l->steps; s0 += r->chunk) {
		const int64_t s1 = l->steps - s0 < r->chunk ? l->steps : s0 + r->chunk;
		/* Rows of sequences that are over stay defined. */
		if (!r->is_uniform)
			memset(r->gates_of_x, 0, (size_t)(r->chunk * row) * sizeof(float));
		gates_of_steps(r, s0, s1);
		for (int64_t s = s0; s < s1; s++) {
			for (int64_t b = 0; b < l->batch; b++)
				active[b] = s < length_of(r, b);
			memcpy(r->gates, r->gates_of_x + (s - s0) * row, (size_t)row * sizeof(float));
			step(r, active);
			put_step(r, s, active);
		}
	}
	for (uint32_t k = 0; k < l->cell->nstate; k++)
		for (int64_t b = 0; b < l->batch && om_has_out(r->c, k + 1); b++)
			put_row(&r->c->out[k + 1], state_row(r, b), r->state[k] + b * l->hidden, l->hidden);
}

static om_status
rnn_cpu(om_call *c)
{
	struct run r = {.c = c};
	uint64_t bytes;
	void (*step)(const struct run *, const bool *);

	if (c->in[X].type != OM_FLOAT32 && !om_is_half(c->in[X].type))
		return om_no_kernel(c, c->in[X].type);
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (k != LENGTHS && om_has_in(c, k) && c->in[k].type != c->in[X].type)
			return om_op_fail(c->session, OM_SHAPE, c->op, "input %u is %s beside %s", k,
				om_dtype_text(c->in[k].type), om_dtype_text(c->in[X].type));
	read_layer(c, &r.l);
	OM_TRY(check_lengths(&r));
	cut(&r, c->scratch);
	for (uint32_t k = 0; k < c->op->nin && k < NIN; k++)
		if (r.in[k] && om_is_half(c->in[k].type))
			om_widen(c->in[k].type, c->in[k].data, om_shape_count(&c->in[k].shape), (float *)r.in[k]);
	/* Elements behind the end of a sequence are 0. */
	if (om_has_out(c, 0) && !r.is_uniform && om_tensor_bytes(c->out[0].type, &c->out[0].shape, &bytes))
		memset(c->out[0].data, 0, bytes);
	step = r.l.cell == &lstm_cell ? lstm_step : r.l.cell == &gru_cell ? gru_step : rnn_step;
	bool *active = OM_NEWN(c->mem, bool, (size_t)r.l.batch);
	for (int dir = 0; dir < r.l.ndir; dir++) {
		choose_direction(&r, dir);
		run_direction(&r, step, active);
	}
	return OM_OK;
}

static void
rnn_cost(const om_call *c, om_cost *cost)
{
	struct layer l;

	if (read_layer(c, &l))
		return;
	const double gates = (double)l.cell->gates * (double)l.hidden;
	cost->flops = 2.0 * (double)l.ndir * (double)l.steps * (double)l.batch * gates
		* (double)(l.width + l.hidden);
}

#define RNN_ATTRS                                                              \
	{"activation_alpha", OM_ATTR_FLOATS},                                  \
	{"activation_beta", OM_ATTR_FLOATS},                                   \
	{"activations", OM_ATTR_STRINGS},                                      \
	{"clip", OM_ATTR_FLOAT},                                               \
	{"direction", OM_ATTR_STRING, .s = "forward"},                         \
	{"hidden_size", OM_ATTR_INT},                                          \
	{"layout", OM_ATTR_INT},                                               \
	{"output_sequence", OM_ATTR_INT}

static const om_attr_spec rnn_attrs[] = {RNN_ATTRS, {0}};
static const om_attr_spec gru_attrs[] = {RNN_ATTRS, {"linear_before_reset", OM_ATTR_INT}, {0}};
static const om_attr_spec lstm_attrs[] = {RNN_ATTRS, {"input_forget", OM_ATTR_INT}, {0}};

#define LAYER(called, text, from, to, inputs, outputs, list)                   \
	{.name = called, .brief = text, .since = from, .until = to, .min_in = 3, .max_in = inputs, \
	 .min_out = 0, .max_out = outputs, .attrs = list, .infer = rnn_infer, .cpu = rnn_cpu, \
	 .scratch = rnn_scratch, .cost = rnn_cost}

const om_row om_ops_rnn[] = {
	LAYER("LSTM", "a layer of long short-term memory", 1, 0, 8, 3, lstm_attrs),
	LAYER("GRU", "a layer of gated recurrent units", 1, 0, 6, 2, gru_attrs),
	LAYER("RNN", "a layer of simple recurrent units", 1, 0, 6, 2, rnn_attrs),
	{0}
};
