/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers: the products of the input with W for all steps and directions become one MatMul, and what is
 * left is an op that has R packed.
 *
 * Layers with float32 constants for weights and the usual activations are lowered; peepholes, clipping and other
 * activations are not. */
#include <config.h>

#include <string.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "lower/layout.h"
#include "lower/lower_rnn.h"
#include "opdef/geometry/rnn.h"
#include "opdef/op_context.h"

/* Inputs of the layer in ONNX. */
enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, P, NIN };

static bool
has_usual_activations(const om_op *op, om_arena *mem)
{
	const struct om_rnn_cell *cell = om_rnn_cell_of(op);
	struct om_activation act[OM_MAX_ACTIVATIONS];
	const int ndir = om_attr_is(op, "direction", "bidirectional") ? 2 : 1;
	int each;

	if (om_rnn_activations(op, mem, act, &each))
		return false;
	for (int k = 0; k < ndir * cell->activations; k++)
		if (act[k].function != cell->usual[k % cell->activations])
			return false;
	return each == cell->activations;
}

static bool
is_layer(const om_op *op, om_arena *mem)
{
	const bool is_named = *op->domain == '\0'
	    && (strcmp(op->type, "LSTM") == 0 || strcmp(op->type, "GRU") == 0 || strcmp(op->type, "RNN") == 0);

	if (!is_named || op->nin <= R || !om_lower_is_float(op->in[X]) || op->in[X]->shape.rank != 3)
		return false;
	for (uint32_t k = W; k <= B; k++)
		if (k == B ? om_op_input(op, B) && !(om_lower_is_float(op->in[B]) && op->in[B]->data && op->in[B]->data->data
		    && !op->in[B]->is_overridable) : !om_lower_is_float(op->in[k]) || !om_lower_is_const(op->in[k]))
			return false;
	return !om_op_input(op, P) && !(om_attr_float(op, "clip") > 0) && !om_attr_int(op, "input_forget")
	    && !om_attr_has(op, OM_RNN_BYTES) && om_shape_count(&op->in[X]->shape) > 0 && om_shape_count(&op->in[R]->shape) > 0
	    && (!om_op_input(op, LENGTHS) || op->in[LENGTHS]->type.elem == OM_INT32) && has_usual_activations(op, mem);
}

/* ---- What is inserted before the layer. ---- */

struct rnn {
	struct om_layout l;
	om_op *op;
	int64_t ndir, gates, hidden;
	bool after;               /* GRU: the reset gate follows the product */
};

static om_value *
floats_const(struct rnn *r, const char *what, int rank, const int64_t *dim, const float *x)
{
	const om_shape shape = om_shape_of(rank, dim);
	om_value *v = om_lower_list(&r->l, r->op->block, om_printf(r->l.mem, "%s_%s", r->op->in[W]->name, what), OM_FLOAT32,
		om_shape_count(&shape), x);

	((om_tensor *)v->data)->shape = v->shape = shape;
	return v;
}

/* The product of the input and W of all directions: W is transposed by ops, which are folded. */
static om_status
times_w(struct rnn *r, om_value **out)
{
	struct om_layout *l = &r->l;
	om_op *op = r->op;
	om_value *w = op->in[W], *flat, *turned;
	const int64_t dims[] = {r->ndir * r->gates * r->hidden, w->shape.dim[2]}, perm[] = {1, 0};

	om_value *in[] = {w, om_lower_ints(l, op->block, om_printf(l->mem, "%s_shape", w->name), 2, dims)};
	OM_TRY(om_lower_insert(l, op, om_lower_op(l, "", "Reshape", 14, 2, in), om_printf(l->mem, "%s_flat", w->name), &flat));
	om_op *turn = om_lower_op(l, "", "Transpose", 13, 1, &flat);
	om_op_add_ints(l->p, turn, "perm", 2, perm);
	OM_TRY(om_lower_insert(l, op, turn, om_printf(l->mem, "%s_turned", w->name), &turned));
	om_value *factors[] = {op->in[X], turned};
	return om_lower_insert(l, op, om_lower_op(l, "", "MatMul", 13, 2, factors), om_printf(l->mem, "%s_gates", w->name), out);
}

/* Element `k` of the biases, which may lie at any address. */
static float
bias_at(const om_tensor *b, int64_t k)
{
	float x;

	memcpy(&x, (const char *)b->data + (b->splat ? 0 : k) * (int64_t)sizeof x, sizeof x);
	return x;
}

/* Biases of the products with W and R, which are added to the first; but those of R for the hidden gate are kept in
 * `*kept` if that is reset after the product. */
static om_status
add_bias(struct rnn *r, om_value **gates, om_value **kept)
{
	struct om_layout *l = &r->l;
	const om_value *b = om_op_input(r->op, B);
	const int64_t n = r->gates * r->hidden, all = r->ndir * n, dims[] = {r->ndir, r->hidden};

	if (!b)
		return OM_OK;
	float *sum = OM_NEWN(l->mem, float, (size_t)all), *rest = OM_NEWN(l->mem, float, (size_t)(r->ndir * r->hidden));
	for (int64_t d = 0; d < r->ndir; d++)
		for (int64_t k = 0; k < n; k++) {
			const float of_r = bias_at(b->data, (2 * d + 1) * n + k);
			const bool is_kept = r->after && k >= 2 * r->hidden;
			sum[d * n + k] = bias_at(b->data, 2 * d * n + k) + (is_kept ? 0 : of_r);
			if (is_kept)
				rest[d * r->hidden + k - 2 * r->hidden] = of_r;
		}
	if (r->after)
		*kept = floats_const(r, "kept", 2, dims, rest);
	om_value *in[] = {*gates, floats_const(r, "bias", 1, &all, sum)};
	return om_lower_insert(l, r->op, om_lower_op(l, "", "Add", 14, 2, in), om_printf(l->mem, "%s_sum", (*gates)->name), gates);
}

static om_status
pack(struct rnn *r, om_value **packed)
{
	struct om_layout *l = &r->l;
	om_op *op = om_lower_op(l, OM_CPU_DOMAIN, "PackRecurrent", 1, 1, &r->op->in[R]);
	const bool two_groups = r->gates == 3 && !r->after;

	om_op_add_int(l->p, op, "gates", r->gates);
	om_op_add_int(l->p, op, "first_gates", two_groups ? 2 : r->gates);
	return om_lower_pack(l, r->op, op, packed);
}

/* ---- The layer. ---- */

static om_status
replace(struct rnn *r, om_value *gates, om_value *packed, om_value *bias)
{
	om_op *old = r->op;
	om_value *in[] = {gates, packed, om_op_input(old, LENGTHS), om_op_input(old, INITIAL_H), om_op_input(old, INITIAL_C), bias};
	uint32_t n = 6;

	while (!in[n - 1])
		n--;
	om_op *op = om_op_new(r->l.p, OM_CPU_DOMAIN, old->type, 1, n, old->nout);
	for (uint32_t k = 0; k < n; k++)
		om_op_set_in(op, k, in[k]);
	om_op_add_int(r->l.p, op, "hidden_size", r->hidden);
	om_op_add_string(r->l.p, op, "direction", r->ndir == 2 ? "bidirectional"
		: om_attr_is(old, "direction", "reverse") ? "reverse" : "forward");
	om_op_add_int(r->l.p, op, "layout", om_attr_int(old, "layout"));
	if (r->after)
		om_op_add_int(r->l.p, op, "linear_before_reset", 1);
	op->phase = old->phase;
	op->name = old->name;
	om_op_insert(old, op);
	for (uint32_t k = 0; k < old->nout; k++) {
		om_value *y = old->out[k];
		if (!y)
			continue;
		old->out[k] = NULL;
		y->def = NULL;
		om_op_set_out(op, k, y);
	}
	om_op_remove(old);
	return om_op_infer(r->l.session, r->l.p, op);
}

om_status
om_lower_rnn(om_session *s, om_prog *p, om_arena *mem, om_op *op, bool *done)
{
	struct rnn r = {.l = {.session = s, .p = p, .mem = mem}, .op = op};
	om_value *gates, *packed, *bias = NULL;

	*done = false;
	if (!is_layer(op, mem))
		return OM_OK;
	r.ndir = op->in[R]->shape.dim[0];
	r.hidden = op->in[R]->shape.dim[2];
	r.gates = op->in[R]->shape.dim[1] / r.hidden;
	r.after = strcmp(op->type, "GRU") == 0 && om_attr_int(op, "linear_before_reset");
	OM_TRY(times_w(&r, &gates));
	OM_TRY(add_bias(&r, &gates, &bias));
	OM_TRY(pack(&r, &packed));
	*done = true;
	return replace(&r, gates, packed, bias);
}
