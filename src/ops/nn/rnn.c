/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers: LSTM, GRU, RNN.
 *
 * The products of the input with W are computed for many steps at once; the steps then add the
 * contribution of the previous state.  Step `s` of a sequence of n elements processes element s, or n -
 * 1 - s in reverse.
 */
#include <config.h>

#include <tgmath.h>

#include "kernels/cpu/kernels.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "opdef/columns.h"
#include "ops/family.h"
#include "opdef/slice.h"
#include "opdef/numbers.h"
#include "ops/nn/rnn.h"

/* ---- Layer geometry. ---- */

const char *
om_rnn_layer_of(const om_op_context *c, struct om_rnn_layer *l)
{
	const bool is_two = om_attr_is(c->op, "direction", "bidirectional");
	int each;

	*l = (struct om_rnn_layer){.cell = om_rnn_cell_of(c->op), .ndir = is_two ? 2 : 1,
		.is_reverse = om_attr_is(c->op, "direction", "reverse"), .has_bytes = om_attr_int(c->op, OM_RNN_BYTES) != 0,
		.batch_first = om_attr_int(c->op, "layout") != 0, .clip = om_attr_float(c->op, "clip"),
		.input_forget = om_attr_int(c->op, "input_forget") != 0,
		.reset_after = om_attr_int(c->op, "linear_before_reset") != 0};
	if (!is_two && !l->is_reverse && !om_attr_is(c->op, "direction", "forward"))
		return "direction must be forward, reverse or bidirectional";
	l->steps = om_in_dim(c, X, l->batch_first);
	l->batch = om_in_dim(c, X, !l->batch_first);
	l->width = om_in_dim(c, X, 2);
	l->hidden = om_attr_int(c->op, "hidden_size");
	if (l->hidden < 0 || l->hidden > INT32_MAX)
		return om_printf(c->mem, "hidden_size is %lld", (long long)l->hidden);
	if (l->hidden == 0)
		l->hidden = om_in_dim(c, R, 2);
	return om_rnn_activations(c->op, c->mem, l->act, &each);
}

/* ---- Shapes. ---- */

static om_status
check_dims(const om_op_context *c, uint32_t k, int rank, int64_t d0, int64_t d1, int64_t d2)
{
	const int64_t want[] = {d0, d1, d2};
	const om_shape *s = om_has_in(c, k) ? &c->in[k].shape : NULL;
	char text[128];

	if (!s || s->rank < 0)
		return OM_OK;
	bool ok = s->rank == rank;
	for (int d = 0; d < rank && ok; d++)
		ok = om_dims_agree(want[d], s->dim[d]);
	if (ok)
		return OM_OK;
	const om_shape wanted = om_shape_of(rank, want);
	char more[128];
	return om_op_fail(c->session, OM_SHAPE, c->op, "input %u has shape %s, expected %s", k,
		om_shape_text(s, text, sizeof text), om_shape_text(&wanted, more, sizeof more));
}

static int64_t
times(int64_t a, int64_t b)
{
	int64_t n;

	return b < 0 || __builtin_mul_overflow(a, b, &n) ? -1 : n;
}

static om_status
check_inputs(const om_op_context *c, const struct om_rnn_layer *l)
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
rnn_infer(om_op_context *c)
{
	struct om_rnn_layer l;
	const char *wrong = om_rnn_layer_of(c, &l);
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

/* ---- Execution: instantiated for float, then for double. ---- */

enum { FLOATS_AT_ONCE = 1 << 16 };

static int64_t
length_of(const om_op_context *c, const struct om_rnn_layer *l, int64_t b)
{
	return om_has_in(c, LENGTHS) ? ((const int32_t *)c->in[LENGTHS].data)[b] : l->steps;
}

static om_status
check_lengths(const om_op_context *c, const struct om_rnn_layer *l, bool *is_uniform)
{
	*is_uniform = true;
	if (!om_has_in(c, LENGTHS))
		return OM_OK;
	if (c->in[LENGTHS].type != OM_INT32)
		return om_op_fail(c->session, OM_SHAPE, c->op, "sequence_lens is %s, expected int32",
			om_dtype_text(c->in[LENGTHS].type));
	for (int64_t b = 0; b < l->batch; b++) {
		const int64_t n = length_of(c, l, b);
		if (n < 0 || n > l->steps)
			return om_op_fail(c->session, OM_RUN, c->op,
				"a sequence length is %lld, but the input has %lld time steps",
				(long long)n, (long long)l->steps);
		*is_uniform &= n == l->steps;
	}
	return OM_OK;
}

/* c (row stride `c_row`) += a (m by k, row stride `a_row`) times the transpose of b. */
static void
float_product(const float *a, int64_t a_row, const float *b, float *c, int64_t c_row, int64_t m, int64_t n, int64_t k,
	void *room)
{
	const om_gemm g = {.m = m, .n = n, .k = k, .a = a, .a_row = a_row, .a_col = 1, .b = b, .b_row = 1, .b_col = k,
		.c = c, .c_row = c_row, .alpha = 1, .add = true};

	if (m > 0)
		om_kernels_get()->gemm(&g, room);
}

static void
double_product(const double *a, int64_t a_row, const double *b, double *c, int64_t c_row, int64_t m, int64_t n,
	int64_t k, void *room)
{
	(void)room;
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++)
			for (int64_t e = 0; e < k; e++)
				c[i * c_row + j] += a[i * a_row + e] * b[j * k + e];
}

#define REAL float
#define FOR_REAL(name) float_##name
#include "ops/nn/rnn_steps.h"
#undef REAL
#undef FOR_REAL
#define REAL double
#define FOR_REAL(name) double_##name
#include "ops/nn/rnn_steps.h"

static uint64_t
rnn_scratch(const om_op_context *c)
{
	return c->in[X].type == OM_FLOAT64 ? double_scratch(c) : float_scratch(c);
}

static om_status
rnn_prepare(om_op_context *c, void **state)
{
	const om_dtype t = c->in[X].type;
	struct om_rnn_layer *l = *state;
	const char *wrong = om_rnn_layer_of(c, l);

	if (wrong)
		return om_op_fail(c->session, OM_INVALID, c->op, "%s", wrong);
	if (t != OM_FLOAT32 && t != OM_FLOAT64 && !om_is_half(t))
		return om_no_kernel(c, t);
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (k != LENGTHS && om_has_in(c, k) && c->in[k].type != t)
			return om_op_fail(c->session, OM_SHAPE, c->op, "input %u is %s, expected %s", k,
				om_dtype_text(c->in[k].type), om_dtype_text(t));
	if (!c->sizes_only)
		l->active = OM_NEWN(c->mem, bool, (size_t)l->batch);
	return OM_OK;
}

static om_status
rnn_cpu(om_op_context *c)
{
	return c->in[X].type == OM_FLOAT64 ? double_run(c) : float_run(c);
}

static void
rnn_cost(const om_op_context *c, om_cost *cost)
{
	struct om_rnn_layer l;

	if (om_rnn_layer_of(c, &l))
		return;
	const double gates = (double)l.cell->gates * (double)l.hidden;
	cost->flops = 2.0 * (double)l.ndir * (double)l.steps * (double)l.batch * gates
		* (double)(l.width + l.hidden);
}

/* Sequences of a batch. */
static bool
rnn_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	const bool first = om_attr_int(c->op, "layout") != 0;
	const om_part p = s->out[out];

	if (p.axis != (first ? 0 : out == 0 ? 2 : 1))
		return false;
	s->in[X] = om_part_along(&p, !first);
	if (om_has_in(c, LENGTHS))
		s->in[LENGTHS] = om_part_along(&p, 0);
	for (uint32_t k = INITIAL_H; k <= INITIAL_C; k++)
		if (om_has_in(c, k))
			s->in[k] = om_part_along(&p, !first);
	for (uint32_t k = 0; k < c->op->nout; k++)
		s->out[k] = om_part_along(&p, first ? 0 : k == 0 ? 2 : 1);
	return true;
}

/* States of a direction are copied before its first step, and the last ones are written after all its steps. */
static bool
rnn_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	return ((out == 1 && in == INITIAL_H) || (out == 2 && in == INITIAL_C)) && om_is_sole_use(c, in);
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
	 .min_out = 0, .max_out = outputs, .attrs = list, .infer = rnn_infer, .slice = rnn_slice, .inplace = rnn_reuse, .cpu = rnn_cpu, \
	 .scratch = rnn_scratch, .cost = rnn_cost, \
	 .input_types = {OF_FLOATS, LIKE(0), LIKE(0), LIKE(0), OF(INT32), LIKE(0), LIKE(0), LIKE(0)}}

const om_opdef om_ops_rnn[] = {
	LAYER("LSTM", "long short-term memory layer", 1, 0, 8, 3, lstm_attrs),
	LAYER("GRU", "gated recurrent unit layer", 1, 0, 6, 2, gru_attrs),
	LAYER("RNN", "simple recurrent layer", 1, 0, 6, 2, rnn_attrs),
	{0}
};

#define KERNEL(label)                                                          \
	{.name = label, .state_bytes = sizeof(struct om_rnn_layer), .prepare = rnn_prepare, \
	 .workspace = rnn_scratch, .run = rnn_cpu}

const om_kernel om_kernels_rnn[] = {KERNEL("LSTM"), KERNEL("GRU"), KERNEL("RNN"), {0}};
