/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of layers with a state carried from run to run: they are decomposed into a convolution, or
 * a Scan over the steps, and differentiated by parts. */
#include <config.h>

#include <math.h>

#include "grad/bodies.h"
#include "base/shape.h"
#include "grad/grad_builder.h"
#include "grad/grad_dsl.h"
#include "grad/rules/conv_geometry.h"
#include "ir/query.h"
#include "ir/type.h"

/* ---- CausalConvWithState. ---- */

static void
causal(om_grad *g, om_value **out)
{
	enum { INPUT, WEIGHT, BIAS, PAST };
	const om_op *op = om_grad_op(g);
	const int64_t channels = om_grad_dim(op->in[WEIGHT], 0), taps = om_grad_dim(op->in[WEIGHT], 2);
	const int64_t length = om_grad_dim(op->in[INPUT], 2);
	om_value *x = om_grad_forward_input(g, INPUT);

	if (channels < 1 || taps < 1 || length < 1) {
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient requires static sizes of input and kernel");
		return;
	}
	if (om_grad_has(g, PAST))
		x = om_emit_attrs(g, "Concat", OM_A(om_attr_make_int(g, "axis", 2)), om_grad_forward_input(g, PAST), x);
	else
		x = om_emit(g, "Pad", x, om_emit_list(g, 6, (const int64_t[]){0, 0, taps - 1, 0, 0, 0}));
	om_value *y = om_emit_attrs(g, "Conv", OM_A(om_attr_make_int(g, "group", channels)), x, om_grad_forward_input(g, WEIGHT),
		om_grad_forward_input(g, BIAS));
	out[0] = om_attr_is(op, "activation", "none") ? y : MUL(y, DO("Sigmoid", y));
	out[1] = om_emit_slice(g, x, 2, length, INT32_MAX);
}

static void CausalConvWithState_grad(om_grad *g)  { om_grad_by_decomposition(g, causal); }

/* ---- LinearAttention. ---- */

enum { Q, K, V, OLD, DECAY, BETA };

struct recall {
	const om_op *op;
	int64_t heads, group, size, vsize;
	double scale;
	om_dtype type;               /* of the state and of the computation */
	bool has_decay, has_beta;
};

/* Input `k` by head, in the type of the state: (batch, steps, heads, n), -1 is inferred; for queries
 * (batch, steps, heads, n, size), n of which share a head. */
static om_value *
by_heads(om_grad *g, const struct recall *r, uint32_t k, int64_t n)
{
	const int64_t dim[] = {0, 0, r->heads, n, -1};
	const bool shared = (k == BETA && om_grad_dim(r->op->in[k], 2) == 1) || n == 0;

	om_value *x = om_emit_cast(g, om_grad_forward_input(g, k), r->type);
	if (shared)
		return om_emit_unsqueeze(g, x, 1, &(int64_t){3});
	return om_emit(g, "Reshape", x, om_emit_list(g, k == Q ? 5 : 4, dim));
}

static om_value *
slice_param(om_grad *g, const om_value *like)
{
	om_value *v = om_emit_param(g, like, "step");

	if (like->shape.rank > 1) {
		v->shape = om_shape_open(like->shape.rank - 1);
		for (int d = 0, to = 0; d < like->shape.rank; d++)
			if (d != 1) {
				v->shape.dim[to] = like->shape.dim[d];
				v->shape.sym[to++] = like->shape.sym[d];
			}
	}
	om_block_add_param(om_grad_scope(g)->to, v);
	return v;
}

/* One step: the update is the value, or the error of the state's prediction of it. */
static void
build_step(om_grad *g, const struct recall *r, const om_value *start, om_value *const *in)
{
	const int64_t row = 2, last = 3;
	om_value *state = om_emit_param(g, start, "step"), *x[5] = {0};

	om_block_add_param(om_grad_scope(g)->to, state);
	for (int k = 0; k < 5; k++)
		x[k] = in[k] ? slice_param(g, in[k]) : NULL;
	om_value *key = om_emit_unsqueeze(g, x[1], 1, &last), *value = om_emit_unsqueeze(g, x[2], 1, &row);
	if (x[3])
		state = MUL(state, om_emit_unsqueeze(g, DO("Exp", x[3]), 1, &last));
	if (x[4])
		value = MUL(om_emit_unsqueeze(g, x[4], 1, &last),
			SUB(value, om_emit(g, "MatMul", om_emit_unsqueeze(g, x[1], 1, &row), state)));
	state = ADD(state, om_emit(g, "MatMul", key, value));
	om_emit_result(g, state);
	om_emit_result(g, TIMES(om_emit(g, "MatMul", x[0], state), r->scale));
}

static om_value *
first_state(om_grad *g, const struct recall *r)
{
	const int64_t rest[] = {r->heads, r->size, r->vsize};

	if (om_grad_has(g, OLD))
		return om_grad_forward_input(g, OLD);
	return om_emit_zeros(g, r->type, om_emit_attrs(g, "Concat", OM_A(om_attr_make_int(g, "axis", 0)),
		om_emit_dim(g, r->op->in[Q], 0), om_emit_list(g, 3, rest)));
}

static void
recall(om_grad *g, const struct recall *r, om_value **out)
{
	om_value *start = first_state(g, r);
	om_value *in[] = {by_heads(g, r, Q, r->group), by_heads(g, r, K, r->size), by_heads(g, r, V, r->vsize),
		r->has_decay ? by_heads(g, r, DECAY, -1) : NULL, r->has_beta ? by_heads(g, r, BETA, -1) : NULL};
	om_value *all[6] = {start};
	const int64_t axes[] = {1, 1, 1, 1, 1}, flat[] = {0, 0, -1};
	size_t n = 1;

	for (int k = 0; k < 5; k++)
		if (in[k])
			all[n++] = in[k];
	om_op *scan = om_emit_open(g, "", "Scan", OM_A(om_attr_make_int(g, "num_scan_inputs", (int64_t)n - 1),
		om_attr_make_ints(g, "scan_input_axes", n - 1, axes), om_attr_make_ints(g, "scan_output_axes", 1, axes)), n, all, 2);
	build_step(om_emit_body(g, scan, "body"), r, start, in);
	om_emit_done(g, scan);
	out[0] = om_emit(g, "Reshape", scan->out[1], om_emit_list(g, 3, flat));
	out[0] = om_emit_cast(g, out[0], om_type_elem(&r->op->out[0]->type));
	out[1] = scan->out[0];
}

static void
linear(om_grad *g, om_value **out)
{
	const om_op *op = om_grad_op(g);
	const int64_t queries = om_attr_int(op, "q_num_heads"), heads = om_attr_int(op, "kv_num_heads");
	const int64_t keys = om_grad_dim(op->in[K], 2), values = om_grad_dim(op->in[V], 2);
	const double scale = om_attr_float(op, "scale");

	if (keys < 1 || values < 1 || heads < 1) {
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient requires a static head size");
		return;
	}
	const bool gated = om_attr_is(op, "update_rule", "gated"), both = om_attr_is(op, "update_rule", "gated_delta");
	struct recall r = {.op = op, .heads = heads, .group = queries / heads, .size = keys / heads,
		.vsize = values / heads, .scale = scale != 0 ? scale : 1 / sqrt((double)(keys / heads)),
		.type = om_type_elem(&op->in[om_grad_has(g, OLD) ? OLD : Q]->type), .has_decay = gated || both,
		.has_beta = both || om_attr_is(op, "update_rule", "delta")};
	recall(g, &r, out);
}

static void LinearAttention_grad(om_grad *g)  { om_grad_by_decomposition(g, linear); }

/* ---- The table. ---- */

const om_gradient om_gradients_stateful_layers[] = {
	{.name = "CausalConvWithState", .since = 27, .rule = CausalConvWithState_grad},
	{.name = "LinearAttention", .since = 27, .rule = LinearAttention_grad},
	{0}
};
