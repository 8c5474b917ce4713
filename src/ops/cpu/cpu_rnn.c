/* SPDX-License-Identifier: Apache-2.0 */
/* org.onnxmem.cpu: recurrent layers with packed weights, of inputs that have been multiplied by W.
 *
 * PackRecurrent(R) -> panels of each direction; attribute `gates`: of the layer; `first_gates`: those in the first
 * group of panels.  LSTM, GRU and RNN (X, R, sequence_lens?, initial_h?, initial_c?, bias?) -> Y?, Y_h?, Y_c?: X has
 * the gates of all directions in its last axis, biases included; `bias` [directions, hidden] is that of the product
 * of the hidden gate of a GRU with linear_before_reset.  Activations are the usual ones. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "ir/query.h"
#include "kernels/cpu/recurrent.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/cpu/cpu_conv.h"
#include "ops/family.h"

enum { X, R, LENGTHS, INITIAL_H, INITIAL_C, BIAS };
enum { Y, LAST_H, LAST_C };

struct layer {
	om_recurrent d[2];        /* without addresses */
	int64_t ndir, gates;
	int64_t packed;           /* elements of R of a direction */
	bool batch_first;
};

/* ---- Packing. ---- */

struct pack {
	int64_t gates, first_gates;
};

static const om_attr_field pack_fields[] = {
	OM_FIELD(struct pack, INT, gates),
	OM_FIELD(struct pack, INT, first_gates),
	{0}
};

static const om_attr_spec pack_attrs[] = {{"gates", OM_ATTR_INT, .required = true}, {"first_gates", OM_ATTR_INT, .required = true},
	{0}};

static om_status
pack_infer(om_op_context *c)
{
	const om_shape *r = &c->in[0].shape;
	const int64_t gates = om_attr_int(c->op, "gates"), first = om_attr_int(c->op, "first_gates");

	c->out[0].type = OM_FLOAT32;
	if (!om_shape_is_known(r))
		return OM_OK;
	if (r->rank != 3 || gates < 1 || gates > 4 || first < 1 || first > gates || r->dim[1] / gates != r->dim[2]
	    || r->dim[1] % gates || r->dim[2] > INT32_MAX / 8)
		return om_wrong(c, "R is not [directions, gates * hidden, hidden], of 1 to 4 gates");
	c->out[0].shape = om_shape_of(2, (int64_t[]){r->dim[0], om_recurrent_packed(gates, first, r->dim[2])});
	return OM_OK;
}

static om_status
pack_cpu(om_op_context *c)
{
	const struct pack *s = c->state;
	const om_shape *r = &c->in[0].shape;
	const int64_t hidden = r->dim[2], packed = c->out[0].shape.dim[1];

	for (int64_t d = 0; d < r->dim[0]; d++)
		om_recurrent_pack((const float *)c->in[0].data + d * r->dim[1] * hidden, s->gates, s->first_gates, hidden,
			(float *)c->out[0].data + d * packed);
	return OM_OK;
}

/* ---- Layers. ---- */

static om_recurrent_kind
kind_of(const om_op *op)
{
	if (strcmp(op->type, "LSTM") == 0)
		return OM_RECURRENT_LSTM;
	if (strcmp(op->type, "RNN") == 0)
		return OM_RECURRENT_RNN;
	return om_attr_int(op, "linear_before_reset") ? OM_RECURRENT_GRU_AFTER : OM_RECURRENT_GRU;
}

/* NULL, or what is wrong.  While planning, -1 means unknown. */
static const char *
read_layer(const om_op_context *c, struct layer *l)
{
	const bool is_two = om_attr_is(c->op, "direction", "bidirectional"), is_reverse = om_attr_is(c->op, "direction", "reverse");
	const om_shape *x = &c->in[X].shape;
	const int64_t hidden = om_attr_int(c->op, "hidden_size");

	*l = (struct layer){.ndir = is_two ? 2 : 1, .batch_first = om_attr_int(c->op, "layout") != 0};
	if (!is_two && !is_reverse && !om_attr_is(c->op, "direction", "forward"))
		return "direction must be forward, reverse or bidirectional";
	if (hidden < 1 || hidden > INT32_MAX / 8)
		return "hidden_size is not a number of elements";
	for (int d = 0; d < 2; d++)
		l->d[d] = (om_recurrent){.kind = kind_of(c->op), .hidden = hidden, .is_reverse = d == 1 || is_reverse,
			.steps = x->rank == 3 ? x->dim[l->batch_first] : -1, .batch = x->rank == 3 ? x->dim[!l->batch_first] : -1};
	l->gates = om_recurrent_gates(l->d[0].kind);
	l->packed = om_recurrent_packed(l->gates, om_recurrent_first_gates(l->d[0].kind), hidden);
	return NULL;
}

static om_status
check_dims(const om_op_context *c, uint32_t k, int rank, int64_t d0, int64_t d1, int64_t d2)
{
	const int64_t want[] = {d0, d1, d2};
	const om_shape *s = om_has_in(c, k) ? &c->in[k].shape : NULL, wanted = om_shape_of(rank, want);
	char text[128], more[128];

	if (!s || s->rank < 0)
		return OM_OK;
	bool fits = s->rank == rank;
	for (int d = 0; d < rank && fits; d++)
		fits = om_dims_agree(want[d], s->dim[d]);
	return fits ? OM_OK : om_op_fail(c->session, OM_SHAPE, c->op, "input %u has shape %s, expected %s", k,
		om_shape_text(s, text, sizeof text), om_shape_text(&wanted, more, sizeof more));
}

static om_status
check_inputs(const om_op_context *c, const struct layer *l)
{
	const om_recurrent *d = &l->d[0];
	const bool first = l->batch_first;

	OM_TRY(check_dims(c, X, 3, -1, -1, l->ndir * l->gates * d->hidden));
	OM_TRY(check_dims(c, R, 2, l->ndir, l->packed, -1));
	OM_TRY(check_dims(c, LENGTHS, 1, d->batch, -1, -1));
	for (uint32_t k = INITIAL_H; k <= INITIAL_C; k++)
		OM_TRY(check_dims(c, k, 3, first ? d->batch : l->ndir, first ? l->ndir : d->batch, d->hidden));
	return check_dims(c, BIAS, 2, l->ndir, d->hidden, -1);
}

static om_status
layer_infer(om_op_context *c)
{
	struct layer l;
	const char *wrong = read_layer(c, &l);
	const int64_t steps = l.d[0].steps, batch = l.d[0].batch, hidden = l.d[0].hidden;

	if (wrong)
		return om_wrong(c, wrong);
	OM_TRY(check_inputs(c, &l));
	if (l.d[0].kind != OM_RECURRENT_LSTM && (om_has_in(c, INITIAL_C) || om_has_out(c, LAST_C)))
		return om_wrong(c, "only LSTM has a cell state");
	for (uint32_t k = 0; k < c->op->nout; k++) {
		c->out[k].type = OM_FLOAT32;
		if (k == Y)
			c->out[k].shape = l.batch_first ? om_shape_of(4, (int64_t[]){batch, steps, l.ndir, hidden})
				: om_shape_of(4, (int64_t[]){steps, l.ndir, batch, hidden});
		else
			c->out[k].shape = l.batch_first ? om_shape_of(3, (int64_t[]){batch, l.ndir, hidden})
				: om_shape_of(3, (int64_t[]){l.ndir, batch, hidden});
	}
	return OM_OK;
}

static void
layer_cost(const om_op_context *c, om_cost *cost)
{
	struct layer l;

	if (!read_layer(c, &l))
		cost->flops = 2.0 * (double)(l.ndir * l.gates) * (double)l.d[0].hidden * (double)l.d[0].hidden
			* (double)l.d[0].steps * (double)l.d[0].batch;
}

static om_status
layer_prepare(om_op_context *c, void **state)
{
	struct layer *l = *state;
	const char *wrong = read_layer(c, l);

	if (wrong)
		return om_wrong(c, wrong);
	const int64_t hidden = l->d[0].hidden, batch = l->d[0].batch, width = l->ndir * l->gates * hidden;
	for (int k = 0; k < 2; k++) {
		om_recurrent *d = &l->d[k];
		d->x_time = l->batch_first ? width : batch * width;
		d->x_row = l->batch_first ? d->steps * width : width;
		d->y_time = l->batch_first ? l->ndir * hidden : l->ndir * batch * hidden;
		d->y_row = l->batch_first ? d->steps * l->ndir * hidden : hidden;
		d->state_row = l->batch_first ? l->ndir * hidden : hidden;
	}
	return OM_OK;
}

static uint64_t
layer_workspace(const om_op_context *c)
{
	const struct layer *l = c->state;

	return om_recurrent_workspace(&l->d[0], c->workers);
}

static om_status
check_lengths(const om_op_context *c, const struct layer *l)
{
	const int32_t *n = om_has_in(c, LENGTHS) ? c->in[LENGTHS].data : NULL;

	for (int64_t b = 0; n && b < l->d[0].batch; b++)
		if (n[b] < 0 || n[b] > l->d[0].steps)
			return om_op_fail(c->session, OM_RUN, c->op, "a sequence length is %lld, but the input has %lld time steps",
				(long long)n[b], (long long)l->d[0].steps);
	return OM_OK;
}

static const float *
input_at(const om_op_context *c, uint32_t k, int64_t offset)
{
	return om_has_in(c, k) ? (const float *)c->in[k].data + offset : NULL;
}

static float *
output_at(const om_op_context *c, uint32_t k, int64_t offset)
{
	return om_has_out(c, k) ? (float *)c->out[k].data + offset : NULL;
}

static om_status
layer_run(om_op_context *c)
{
	const struct layer *l = c->state;
	const int64_t hidden = l->d[0].hidden, batch = l->d[0].batch;
	om_recurrent d[2];

	OM_TRY(check_lengths(c, l));
	for (int k = 0; k < l->ndir; k++) {
		const int64_t state = k * hidden * (l->batch_first ? 1 : batch);
		d[k] = l->d[k];
		d[k].x = input_at(c, X, k * l->gates * hidden);
		d[k].r = input_at(c, R, k * l->packed);
		d[k].bias = input_at(c, BIAS, k * hidden);
		d[k].lengths = om_has_in(c, LENGTHS) ? c->in[LENGTHS].data : NULL;
		d[k].initial_h = input_at(c, INITIAL_H, state);
		d[k].initial_c = input_at(c, INITIAL_C, state);
		d[k].y = output_at(c, Y, state);
		d[k].last_h = output_at(c, LAST_H, state);
		d[k].last_c = output_at(c, LAST_C, state);
	}
	om_recurrent_run(d, (int)l->ndir, c->scratch, c->pool);
	return OM_OK;
}

/* States are copied before the first step, and the last ones are written after all steps: those of a piece of the sequences by the
 * worker that read them. */
static bool
layer_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	return ((out == LAST_H && in == INITIAL_H) || (out == LAST_C && in == INITIAL_C)) && om_is_sole_use(c, in);
}

#define LAYER_ATTRS                                                            \
	{"hidden_size", OM_ATTR_INT, .required = true}, {"direction", OM_ATTR_STRING, .s = "forward"}, {"layout", OM_ATTR_INT}

static const om_attr_spec layer_attrs[] = {LAYER_ATTRS, {0}};
static const om_attr_spec gru_attrs[] = {LAYER_ATTRS, {"linear_before_reset", OM_ATTR_INT}, {0}};

#define LAYER(label, text, list, outputs)                                      \
	{.domain = OM_CPU_DOMAIN, .name = label, .brief = text, .since = 1, .min_in = 2, .max_in = 6, .min_out = 0, \
	 .max_out = outputs, .attrs = list, .infer = layer_infer, .inplace = layer_reuse, .cpu = layer_run, .scratch = layer_workspace, \
	 .cost = layer_cost, .input_types = {OF(FLOAT32), OF(FLOAT32), OF(INT32), OF(FLOAT32), OF(FLOAT32), OF(FLOAT32)}}

const om_opdef om_ops_cpu_rnn[] = {
	{.domain = OM_CPU_DOMAIN, .name = "PackRecurrent", .brief = "recurrent weights as panels of gates", .since = 1,
	 .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .attrs = pack_attrs, .infer = pack_infer, .cpu = pack_cpu,
	 .input_types = {OF(FLOAT32)}},
	LAYER("LSTM", "long short-term memory of an input times W, with packed weights", layer_attrs, 3),
	LAYER("GRU", "gated recurrent units of an input times W, with packed weights", gru_attrs, 2),
	LAYER("RNN", "recurrent layer of an input times W, with packed weights", layer_attrs, 2),
	{0}
};

#define KERNEL(label)                                                          \
	{.domain = OM_CPU_DOMAIN, .name = label, .state_bytes = sizeof(struct layer), .prepare = layer_prepare, \
	 .workspace = layer_workspace, .run = layer_run}

const om_kernel om_kernels_cpu_rnn[] = {
	{.domain = OM_CPU_DOMAIN, .name = "PackRecurrent", .state_bytes = sizeof(struct pack), .fields = pack_fields,
	 .run = pack_cpu},
	KERNEL("LSTM"), KERNEL("GRU"), KERNEL("RNN"), {0}
};
