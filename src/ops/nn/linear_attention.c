/* SPDX-License-Identifier: Apache-2.0 */
/* Layers with a state that is passed between runs as an input and an output: linear attention, causal
 * convolution.
 *
 * Those of com.microsoft are older: a convolution may have gaps between its taps and channels as its last axes, and
 * attention may have fewer heads of queries or keys than of values.
 *
 * All parts of the state and of the current row that a kernel reads are copied to scratch before it
 * writes.  The new state may therefore be computed in place over the old one, and the output over the
 * input of the same shape. */
#include <config.h>

#include <math.h>

#include "opdef/columns.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "opdef/slice.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"

static double
read_one(const om_tensor *t, int64_t i)
{
	EACH_FLOAT(t->type, return om_get(T, t->data, i), break)
	return 0;
}

static void
read_line(const om_tensor *t, int64_t at, int64_t step, int64_t n, double *to)
{
	EACH_FLOAT(t->type, for (int64_t k = 0; k < n; k++) to[k] = om_get(T, t->data, at + k * step), break)
}

static void
read_row(const om_tensor *t, int64_t at, int64_t n, double *to)
{
	read_line(t, at, 1, n, to);
}

static void
write_line(const double *from, int64_t n, const om_tensor *t, int64_t at, int64_t step)
{
	EACH_FLOAT(t->type, for (int64_t k = 0; k < n; k++) om_put(T, t->data, at + k * step, from[k]), break)
}

static void
write_row(const double *from, int64_t n, const om_tensor *t, int64_t at)
{
	write_line(from, n, t, at, 1);
}

static om_status
check_types(const om_op_context *c)
{
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (om_has_in(c, k) && c->in[k].type != OM_FLOAT32 && c->in[k].type != OM_FLOAT64 && !om_is_half(c->in[k].type))
			return om_no_kernel(c, c->in[k].type);
	return OM_OK;
}

static bool
fits(const om_tensor *t, int rank, const int64_t *want)
{
	if (t->shape.rank < 0)
		return true;
	for (int d = 0; d < rank && t->shape.rank == rank; d++)
		if (!om_dims_agree(t->shape.dim[d], want[d]))
			return false;
	return t->shape.rank == rank;
}

static int64_t
dim_of(const om_tensor *t, int k)
{
	return t->shape.rank > k ? t->shape.dim[k] : -1;
}

static int64_t
times(int64_t a, int64_t b)
{
	int64_t n;

	return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &n) ? -1 : n;
}

static bool
is_contrib(const om_op_context *c)
{
	return c->op->opdef->domain && strcmp(c->op->opdef->domain, "com.microsoft") == 0;
}

static int64_t
either(int64_t a, int64_t b)
{
	return a >= 0 ? a : b;
}

/* ---- CausalConvWithState. ---- */

enum { INPUT, WEIGHT, BIAS, PAST };

struct causal {
	int64_t batch, channels, length, taps;
	int64_t gap;              /* from a tap to the next */
	int64_t kept;             /* elements of the state of a channel */
	bool is_last;             /* the channels are the last axes, in place of the second one */
};

static struct causal
causal_of(const om_op_context *c)
{
	const om_tensor *x = &c->in[INPUT];
	struct causal v = {.batch = dim_of(x, 0), .length = dim_of(x, 2), .taps = dim_of(&c->in[WEIGHT], 2), .gap = 1};
	int64_t channels = dim_of(x, 1);

	if (is_contrib(c)) {
		v.gap = om_attr_int(c->op, "dilation");
		v.is_last = om_attr_int(c->op, "channels_last") != 0;
	}
	if (v.is_last) {
		v.length = dim_of(x, 1);
		channels = x->shape.rank < 3 ? -1 : 1;
		for (int d = 2; d < x->shape.rank; d++)
			channels = times(channels, x->shape.dim[d]);
	}
	v.channels = either(channels, dim_of(&c->in[WEIGHT], 0));
	v.kept = v.taps < 1 ? -1 : times(v.taps - 1, v.gap);
	return v;
}

static bool
causal_fits(const om_op_context *c, const struct causal *v)
{
	const om_shape *x = &c->in[INPUT].shape;
	om_shape past = v->is_last ? *x : om_shape_of(3, (const int64_t[]){v->batch, v->channels, v->kept});

	if (x->rank >= 0 && (v->is_last ? x->rank < 3 : x->rank != 3))
		return false;
	if (v->is_last && x->rank >= 0)
		past.dim[1] = v->kept;
	if (!v->is_last && !fits(&c->in[INPUT], 3, (int64_t[]){v->batch, v->channels, v->length}))
		return false;
	return fits(&c->in[WEIGHT], 3, (int64_t[]){v->channels, 1, v->taps})
	    && (!om_has_in(c, BIAS) || fits(&c->in[BIAS], 1, &v->channels))
	    && (!om_has_in(c, PAST) || past.rank < 0 || fits(&c->in[PAST], past.rank, past.dim));
}

static om_status
causal_infer(om_op_context *c)
{
	const struct causal v = causal_of(c);
	const om_shape *x = &c->in[INPUT].shape;
	om_shape *state = &c->out[1].shape;

	OM_TRY(om_infer_same(c));
	if (is_contrib(c) && (om_attr_int(c->op, "ndim") != 1 || om_attr_int(c->op, "state_window")))
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "no kernel for more than one spatial axis or for a window of states");
	if (v.taps == 0 || v.gap < 1)
		return om_wrong(c, "the kernel is empty, or its dilation is not positive");
	if (!causal_fits(c, &v))
		return om_wrong(c, "the shapes of input, kernel, bias and state do not match");
	if (!om_has_out(c, 1))
		return OM_OK;
	c->out[1].type = c->in[INPUT].type;
	*state = x->rank >= 0 ? *x : v.is_last ? om_shape_unknown() : om_shape_open(3);
	if (state->rank < 0)
		return OM_OK;
	state->dim[v.is_last ? 1 : 2] = v.kept;
	state->sym[v.is_last ? 1 : 2] = NULL;
	if (!v.is_last && state->dim[1] < 0) {
		state->dim[1] = v.channels;
		state->sym[1] = v.channels < 0 ? state->sym[1] : NULL;
	}
	return OM_OK;
}

/* Samples, and channels that are one axis. */
static bool
causal_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part p = s->out[out];
	const bool is_last = causal_of(c).is_last;

	s->in[INPUT] = p;
	if (p.axis == 1)
		s->in[WEIGHT] = om_part_along(&p, 0);
	if (p.axis == 1 && om_has_in(c, BIAS))
		s->in[BIAS] = om_part_along(&p, 0);
	if (om_has_in(c, PAST))
		s->in[PAST] = p;
	for (uint32_t k = 0; k < c->op->nout; k++)
		s->out[k] = p;
	return p.axis == 0 || (p.axis == 1 && !is_last);
}

static uint64_t
causal_scratch(const om_op_context *c)
{
	const struct causal v = causal_of(c);
	const uint64_t line = om_piece_size((uint64_t)(v.length + v.kept) * sizeof(double));

	return om_size_sum(om_size_sum(line, om_piece_size((uint64_t)v.taps * sizeof(double))),
		om_piece_size((uint64_t)v.length * sizeof(double)));
}

struct prepared_causal {
	struct causal v;
	bool smooth;
};

/* One channel: `line` holds the past elements, then the new ones. */
static void
causal_channel(const om_op_context *c, const struct causal *v, int64_t row, double *line, double *kernel, double *out)
{
	const int64_t channel = row % v->channels, kept = v->kept, step = v->is_last ? v->channels : 1;
	const int64_t at = v->is_last ? row / v->channels * v->length * v->channels + channel : row * v->length;
	const int64_t state = v->is_last ? row / v->channels * kept * v->channels + channel : row * kept;
	const bool smooth = ((const struct prepared_causal *)c->state)->smooth;
	const double bias = om_has_in(c, BIAS) ? read_one(&c->in[BIAS], channel) : 0;

	memset(line, 0, (size_t)kept * sizeof *line);
	if (om_has_in(c, PAST))
		read_line(&c->in[PAST], state, step, kept, line);
	read_line(&c->in[INPUT], at, step, v->length, line + kept);
	read_row(&c->in[WEIGHT], channel * v->taps, v->taps, kernel);
	for (int64_t i = 0; i < v->length; i++) {
		double sum = bias;
		for (int64_t k = 0; k < v->taps; k++)
			sum += kernel[k] * line[i + k * v->gap];
		out[i] = smooth ? sum / (1 + exp(-sum)) : sum;
	}
	write_line(out, v->length, &c->out[0], at, step);
	if (om_has_out(c, 1))
		write_line(line + v->length, kept, &c->out[1], state, step);
}

static om_status
causal_prepare(om_op_context *c, void **state)
{
	struct prepared_causal *s = *state;

	s->v = causal_of(c);
	s->smooth = !om_attr_is(c->op, "activation", "none");
	if (s->smooth && !om_attr_is(c->op, "activation", "silu") && !om_attr_is(c->op, "activation", "swish"))
		return om_op_fail(c->session, OM_INVALID, c->op, "the activation is not supported");
	return check_types(c);
}

static om_status
causal_cpu(om_op_context *c)
{
	const struct causal v = ((const struct prepared_causal *)c->state)->v;
	double *line = c->scratch;
	double *kernel = (double *)((char *)line + om_piece_size((uint64_t)(v.length + v.kept) * sizeof(double)));
	double *out = (double *)((char *)kernel + om_piece_size((uint64_t)v.taps * sizeof(double)));

	for (int64_t row = 0; row < v.batch * v.channels; row++)
		causal_channel(c, &v, row, line, kernel, out);
	return OM_OK;
}

static bool
causal_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	return ((out == 0 && in == INPUT) || (out == 1 && in == PAST)) && om_is_sole_use(c, in)
	    && c->in[in].type == c->out[out].type;
}

static void
causal_cost(const om_op_context *c, om_cost *cost)
{
	const struct causal v = causal_of(c);

	cost->flops = 2.0 * (double)v.batch * (double)v.channels * (double)v.length * (double)v.taps;
}

/* ---- LinearAttention. ---- */

enum { Q, K, V, OLD, DECAY, BETA };

struct linear {
	int64_t batch, steps, qheads, heads, size, vsize;
	int64_t kheads, yheads;   /* heads of the keys, of the output */
};

static int64_t
share(int64_t n, int64_t heads)
{
	return n < 0 || heads <= 0 || n % heads ? -1 : n / heads;
}

static struct linear
linear_of(const om_op_context *c)
{
	struct linear l = {.qheads = om_attr_int(c->op, "q_num_heads"), .heads = om_attr_int(c->op, "kv_num_heads")};

	l.batch = either(dim_of(&c->in[Q], 0), dim_of(&c->in[K], 0));
	l.steps = either(dim_of(&c->in[Q], 1), dim_of(&c->in[K], 1));
	l.size = either(share(dim_of(&c->in[Q], 2), l.qheads), share(dim_of(&c->in[K], 2), l.heads));
	l.vsize = share(dim_of(&c->in[V], 2), l.heads);
	l.kheads = l.heads;
	l.yheads = l.qheads > l.heads ? l.qheads : l.heads;
	if (is_contrib(c)) {
		l.size = share(dim_of(&c->in[Q], 2), l.qheads);
		l.kheads = l.size > 0 ? share(dim_of(&c->in[K], 2), l.size) : l.size == 0 ? l.heads : -1;
	}
	return l;
}

static bool
has_gate(const om_op_context *c)
{
	return om_attr_is(c->op, "update_rule", "gated") || om_attr_is(c->op, "update_rule", "gated_delta");
}

static bool
has_delta(const om_op_context *c)
{
	return om_attr_is(c->op, "update_rule", "delta") || om_attr_is(c->op, "update_rule", "gated_delta");
}

static om_status
linear_check(const om_op_context *c, const struct linear *l)
{
	const om_tensor *g = &c->in[DECAY], *b = &c->in[BETA];
	const int64_t each = times(l->heads, l->size);

	if (!has_gate(c) && !has_delta(c) && !om_attr_is(c->op, "update_rule", "linear"))
		return om_op_fail(c->session, OM_INVALID, c->op, "unknown update_rule");
	if (l->heads <= 0 || l->qheads <= 0 || l->qheads > INT32_MAX || l->heads > INT32_MAX
	    || (l->qheads % l->heads && (!is_contrib(c) || l->heads % l->qheads)))
		return om_wrong(c, "kv_num_heads must divide q_num_heads");
	if (is_contrib(c) && om_attr_int(c->op, "state_window"))
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "no kernel for a window of states");
	if (l->kheads == 0 || (l->kheads > 0 && l->heads % l->kheads) || (l->kheads < 0 && l->size > 0 && dim_of(&c->in[K], 2) >= 0))
		return om_wrong(c, "the number of heads of the keys must divide kv_num_heads");
	if ((has_gate(c) && !om_has_in(c, DECAY)) || (has_delta(c) && !om_has_in(c, BETA)))
		return om_wrong(c, "the update_rule requires decay or beta, which is omitted");
	if (!fits(&c->in[Q], 3, (int64_t[]){l->batch, l->steps, times(l->qheads, l->size)})
	    || !fits(&c->in[K], 3, (int64_t[]){l->batch, l->steps, times(l->kheads, l->size)})
	    || !fits(&c->in[V], 3, (int64_t[]){l->batch, l->steps, times(l->heads, l->vsize)}))
		return om_wrong(c, "the dims of Q, K and V do not match");
	if (om_has_in(c, OLD) && !fits(&c->in[OLD], 4, (int64_t[]){l->batch, l->heads, l->size, l->vsize}))
		return om_wrong(c, "the shape of the state does not match keys and values");
	if (om_has_in(c, DECAY) && !fits(g, 3, (int64_t[]){l->batch, l->steps, l->heads})
	    && !fits(g, 3, (int64_t[]){l->batch, l->steps, each}))
		return om_wrong(c, "the shape of decay does not match the keys");
	if (om_has_in(c, BETA) && !fits(b, 3, (int64_t[]){l->batch, l->steps, l->heads})
	    && !fits(b, 3, (int64_t[]){l->batch, l->steps, 1}))
		return om_wrong(c, "the shape of beta does not match the keys");
	return OM_OK;
}

static om_status
linear_infer(om_op_context *c)
{
	const struct linear l = linear_of(c);
	const int64_t state[] = {l.batch, l.heads, l.size, l.vsize};
	om_shape *y = &c->out[0].shape;

	OM_TRY(linear_check(c, &l));
	c->out[0].type = c->in[Q].type;
	*y = om_shape_open(3);
	for (int d = 0; d < 2 && c->in[Q].shape.rank == 3; d++)
		om_copy_dim(y, d, &c->in[Q].shape, d);
	y->dim[2] = times(l.yheads, l.vsize);
	if (!om_has_out(c, 1))
		return OM_OK;
	c->out[1].type = om_has_in(c, OLD) ? c->in[OLD].type : c->in[Q].type;
	c->out[1].shape = om_shape_open(4);
	for (int d = 0; d < 4; d++)
		c->out[1].shape.dim[d] = state[d];
	c->out[1].shape.sym[0] = state[0] < 0 ? y->sym[0] : NULL;
	return OM_OK;
}

/* Samples: of all operands. */
static bool
linear_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part p = s->out[out];

	for (uint32_t k = 0; k < c->op->nin; k++)
		if (om_has_in(c, k))
			s->in[k] = p;
	for (uint32_t k = 0; k < c->op->nout; k++)
		s->out[k] = p;
	return p.axis == 0;
}

struct parts {
	double *state, *key, *value, *query, *sum;
};

static uint64_t
parts_of(const struct linear *l, char *base, struct parts *p)
{
	const int64_t count[] = {l->size * l->vsize, l->size, l->vsize, l->size, l->vsize};
	double **part[] = {&p->state, &p->key, &p->value, &p->query, &p->sum};
	uint64_t at = 0;

	for (int k = 0; k < 5; k++) {
		if (base)
			*part[k] = (double *)(base + at);
		at = om_size_sum(at, om_piece_size((uint64_t)count[k] * sizeof(double)));
	}
	return at;
}

static uint64_t
linear_scratch(const om_op_context *c)
{
	const struct linear l = linear_of(c);
	struct parts none;

	return parts_of(&l, NULL, &none);
}

static void
decay_state(const om_op_context *c, const struct linear *l, int64_t row, int64_t h, double *state)
{
	const om_tensor *g = &c->in[DECAY];
	const bool per_key = g->shape.dim[2] != l->heads || l->size == 1;

	for (int64_t i = 0; i < l->size; i++) {
		const int64_t at = per_key ? (row * l->heads + h) * l->size + i : row * l->heads + h;
		const double keep = exp(read_one(g, at));
		for (int64_t j = 0; j < l->vsize; j++)
			state[i * l->vsize + j] *= keep;
	}
}

/* The delta rule: replace the value by beta times its difference from the value that the state predicts. */
static void
correct(const om_op_context *c, const struct linear *l, int64_t row, int64_t h, struct parts *p)
{
	const om_tensor *b = &c->in[BETA];
	const int64_t n = b->shape.dim[2];
	const double beta = read_one(b, n == 1 ? row : row * n + h);

	for (int64_t j = 0; j < l->vsize; j++) {
		double known = 0;
		for (int64_t i = 0; i < l->size; i++)
			known += p->state[i * l->vsize + j] * p->key[i];
		p->sum[j] = beta * (p->value[j] - known);
	}
	memcpy(p->value, p->sum, (size_t)l->vsize * sizeof *p->sum);
}

struct prepared_linear {
	struct linear l;
	double scale;
	bool has_gate, has_delta;
};

/* Output head `y` from query head `q`. */
static void
linear_output(const om_op_context *c, const struct linear *l, int64_t row, int64_t q, int64_t y, double scale, struct parts *p)
{
	read_row(&c->in[Q], (row * l->qheads + q) * l->size, l->size, p->query);
	for (int64_t j = 0; j < l->vsize; j++) {
		p->sum[j] = 0;
		for (int64_t i = 0; i < l->size; i++)
			p->sum[j] += scale * p->query[i] * p->state[i * l->vsize + j];
	}
	write_row(p->sum, l->vsize, &c->out[0], (row * l->yheads + y) * l->vsize);
}

/* One step of one head, and the outputs of the queries that share it. */
static void
linear_step(const om_op_context *c, const struct linear *l, int64_t row, int64_t h, double scale, struct parts *p)
{
	const int64_t group = l->yheads / l->heads, key = h / (l->heads / l->kheads);

	read_row(&c->in[K], (row * l->kheads + key) * l->size, l->size, p->key);
	read_row(&c->in[V], (row * l->heads + h) * l->vsize, l->vsize, p->value);
	if (((const struct prepared_linear *)c->state)->has_gate)
		decay_state(c, l, row, h, p->state);
	if (((const struct prepared_linear *)c->state)->has_delta)
		correct(c, l, row, h, p);
	for (int64_t i = 0; i < l->size; i++)
		for (int64_t j = 0; j < l->vsize; j++)
			p->state[i * l->vsize + j] += p->key[i] * p->value[j];
	for (int64_t y = h * group; y < (h + 1) * group; y++)
		linear_output(c, l, row, y / (l->yheads / l->qheads), y, scale, p);
}

static om_status
linear_prepare(om_op_context *c, void **state)
{
	const float given = om_attr_float(c->op, "scale");
	struct prepared_linear *s = *state;

	s->l = linear_of(c);
	s->scale = given != 0 ? given : 1 / sqrt((double)s->l.size);
	s->has_gate = has_gate(c);
	s->has_delta = has_delta(c);
	return check_types(c);
}

static om_status
linear_cpu(om_op_context *c)
{
	const struct linear l = ((const struct prepared_linear *)c->state)->l;
	const double scale = ((const struct prepared_linear *)c->state)->scale;
	const int64_t cells = l.size * l.vsize;
	struct parts p = {0};

	parts_of(&l, c->scratch, &p);
	for (int64_t bh = 0; bh < l.batch * l.heads; bh++) {
		memset(p.state, 0, (size_t)cells * sizeof *p.state);
		if (om_has_in(c, OLD))
			read_row(&c->in[OLD], bh * cells, cells, p.state);
		for (int64_t t = 0; t < l.steps; t++)
			linear_step(c, &l, bh / l.heads * l.steps + t, bh % l.heads, scale, &p);
		if (om_has_out(c, 1))
			write_row(p.state, cells, &c->out[1], bh * cells);
	}
	return OM_OK;
}

/* A head of queries that several heads of the output are computed from is read more than once. */
static bool
linear_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	const struct linear l = linear_of(c);

	return ((out == 0 && in == Q && l.yheads == l.qheads) || (out == 1 && in == OLD)) && om_is_sole_use(c, in)
	    && c->in[in].type == c->out[out].type && om_shape_equal(&c->in[in].shape, &c->out[out].shape);
}

static void
linear_cost(const om_op_context *c, om_cost *cost)
{
	const struct linear l = linear_of(c);

	cost->flops = (double)l.batch * (double)l.steps * (double)l.size * (double)l.vsize
		* (3.0 * (double)l.heads + 2.0 * (double)l.yheads + has_delta(c) * 2.0 * (double)l.heads);
}

/* ---- The table. ---- */

static const om_attr_spec causal_contrib_attrs[] = {
	{"activation", OM_ATTR_STRING, .s = "none"},
	{"channels_last", OM_ATTR_INT},
	{"dilation", OM_ATTR_INT, .i = 1},
	{"ndim", OM_ATTR_INT, .i = 1},
	{"state_window", OM_ATTR_INT},
	{0}
};

static const om_attr_spec linear_contrib_attrs[] = {
	{"chunk_size", OM_ATTR_INT, .i = 64},
	{"kv_num_heads", OM_ATTR_INT, .required = true},
	{"q_num_heads", OM_ATTR_INT, .required = true},
	{"scale", OM_ATTR_FLOAT},
	{"state_window", OM_ATTR_INT},
	{"update_rule", OM_ATTR_STRING, .s = "gated_delta"},
	{0}
};

static const om_attr_spec causal_attrs[] = {{"activation", OM_ATTR_STRING, .s = "none"}, {0}};

static const om_attr_spec linear_attrs[] = {
	{"chunk_size", OM_ATTR_INT, .i = 64},
	{"kv_num_heads", OM_ATTR_INT, .required = true},
	{"q_num_heads", OM_ATTR_INT, .required = true},
	{"scale", OM_ATTR_FLOAT},
	{"update_rule", OM_ATTR_STRING, .s = "gated_delta"},
	{0}
};

#define CAUSAL \
	.name = "CausalConvWithState", .brief = "causal depthwise 1-D convolution with state", \
	.min_in = 2, .max_in = 4, .min_out = 2, .max_out = 2, .infer = causal_infer, .slice = causal_slice, \
	.inplace = causal_reuse, .cpu = causal_cpu, .scratch = causal_scratch, .cost = causal_cost, \
	.input_types = {OF_FLOATS, LIKE(0), LIKE(0), LIKE(0)}
#define LINEAR \
	.name = "LinearAttention", .brief = "linear attention with a recurrent state", \
	.min_in = 3, .max_in = 6, .min_out = 2, .max_out = 2, .infer = linear_infer, .slice = linear_slice, \
	.inplace = linear_reuse, .cpu = linear_cpu, .scratch = linear_scratch, .cost = linear_cost, \
	.input_types = {OF_FLOATS, LIKE(0), LIKE(0), OF_FLOATS, LIKE(0), LIKE(0)}
#define CONTRIB .domain = "com.microsoft", .since = 1

const om_opdef om_ops_linear_attention[] = {
	{CAUSAL, .since = 27, .attrs = causal_attrs},
	{CAUSAL, CONTRIB, .attrs = causal_contrib_attrs},
	{LINEAR, .since = 27, .attrs = linear_attrs},
	{LINEAR, CONTRIB, .attrs = linear_contrib_attrs},
	{0}
};

#define CAUSAL_KERNEL \
	.name = "CausalConvWithState", .state_bytes = sizeof(struct prepared_causal), .prepare = causal_prepare, \
	.workspace = causal_scratch, .run = causal_cpu
#define LINEAR_KERNEL \
	.name = "LinearAttention", .state_bytes = sizeof(struct prepared_linear), .prepare = linear_prepare, \
	.workspace = linear_scratch, .run = linear_cpu

const om_kernel om_kernels_linear_attention[] = {
	{CAUSAL_KERNEL},
	{CAUSAL_KERNEL, .domain = "com.microsoft"},
	{LINEAR_KERNEL},
	{LINEAR_KERNEL, .domain = "com.microsoft"},
	{0}
};
