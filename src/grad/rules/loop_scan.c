/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of Loop and Scan.
 *
 * The body is differentiated like the graph, into the body of a Scan in the backward path.  Values of
 * an iteration that are required there are stacked: the tape, which that Scan reads in reverse, so that
 * it runs as many iterations as the forward loop did, however that number was determined.  Not stacked
 * are slices of scanned inputs, which are read again from those inputs, and loop-invariant values,
 * which are recomputed once, outside the body.  A value whose shape differs between iterations is joined
 * to a flat stack: see ragged_tape.c.  A Loop takes the place of that Scan if there may be no iteration,
 * or if a state changes its shape: see loop_back.c.
 *
 * Gradients of loop-carried values are carried from iteration to iteration in reverse; those of
 * captured values are accumulated; those of slices are stacked.
 */
#include <config.h>

#include "grad/grad_builder.h"
#include "grad/rules/loop_grad.h"
#include "grad/sums.h"
#include "ir/edit.h"
#include "ir/operators.h"
#include "ir/query.h"

static uint32_t
result_of_state(const struct loop_grad *r, uint32_t k)
{
	return k + (r->is_scan ? 0 : 1);
}

static uint32_t
result_of_output(const struct loop_grad *r, uint32_t k)
{
	return k + (r->is_scan ? 0 : 1);
}

om_value *
om_loop_add_series(struct loop_grad *r, om_value *all, const om_value *each, int64_t axis, int64_t is_backward)
{
	om_value *param = om_emit_param(r->b.in, each, "back");

	OM_PUSH(om_grad_mem(r->b.outer), r->series, r->n, r->cap,
		((struct series){all, param, axis, is_backward}));
	return param;
}

/* ---- Loop-invariant values. ---- */

static bool
is_plain(const om_op *op)
{
	return op->opdef && op->nbody == 0 && !(op->opdef->flags & (OM_RANDOM | OM_EFFECT | OM_DATA_DEPENDENT_SHAPE | OM_NON_TENSOR));
}

static bool
is_constant(const struct loop_grad *r, const om_value *v)
{
	if (v->block != r->b.from)
		return true;
	if (v->id < r->nvalue)
		return r->is_constant[v->id] || (!v->def && v->data);
	if (!v->def || !is_plain(v->def))
		return false;
	for (uint32_t k = 0; k < v->def->nin; k++)
		if (v->def->in[k] && !is_constant(r, v->def->in[k]))
			return false;
	return true;
}

static void
find_constants(struct loop_grad *r)
{
	for (const om_op *op = r->b.from->first; op; op = op->next) {
		bool is = is_plain(op);
		for (uint32_t k = 0; k < op->nin && is; k++)
			is = !op->in[k] || is_constant(r, op->in[k]);
		for (uint32_t k = 0; k < op->nout && is; k++)
			if (op->out[k] && op->out[k]->id < r->nvalue)
				r->is_constant[op->out[k]->id] = true;
	}
}

/* Copy the op of a loop-invariant value out of the body, where it runs once. */
static om_value *
hoist(struct loop_grad *r, om_value *v)
{
	struct om_body *b = &r->b;
	const om_op *op = v->def;
	om_value *by = om_body_known(b, v);

	if (by)
		return by;
	if (v->block != b->from || !op)
		return om_body_reach(b, v);
	om_value **in = OM_NEWN(om_grad_mem(b->outer), om_value *, (size_t)op->nin + 1);
	om_attr *attrs = OM_NEWN(om_grad_mem(b->outer), om_attr, (size_t)op->nattr + 1);
	for (uint32_t k = 0; k < op->nin; k++)
		in[k] = op->in[k] ? hoist(r, op->in[k]) : NULL;
	if (op->nattr)
		memcpy(attrs, op->attr, op->nattr * sizeof *attrs);
	om_op *copy = om_emit_open(b->outer, op->domain, op->type, attrs, op->nin, in, op->nout);
	copy->version = op->version;
	copy->opdef = op->opdef;
	om_emit_done(b->outer, copy);
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			om_body_stands(b, op->out[k], copy->out[k]);
	return om_body_known(b, v);
}

/* ---- Stacked values. ---- */

/* Append an element to a list attribute of the forward Scan, if the attribute is present. */
static void
extend_list(om_grad *g, om_op *op, const char *name)
{
	for (uint32_t k = 0; k < op->nattr; k++) {
		om_attr *a = &op->attr[k];
		if (strcmp(a->name, name) != 0 || a->kind != OM_ATTR_INTS || a->n == 0)
			continue;
		int64_t *all = OM_NEWN(om_grad_prog(g)->mem, int64_t, a->n + 1);
		memcpy(all, a->i, a->n * sizeof *all);
		a->i = all;
		a->n++;
		a->origin = NULL;  /* the value differs from the one in the file */
	}
}

static void
add_stack(struct loop_grad *r, om_value *v)
{
	struct om_body *b = &r->b;

	om_emit_result(om_emit_inside(b->outer, b->from), v);
	om_body_add_output(b, om_printf(om_grad_mem(b->outer), "%s_kept", v->name));
	if (r->is_scan) {
		extend_list(b->outer, b->op, "scan_output_axes");
		extend_list(b->outer, b->op, "scan_output_directions");
	}
}

om_value *
om_loop_stack(struct loop_grad *r, om_value *v, uint32_t *out)
{
	struct om_body *b = &r->b;

	for (*out = r->nstate + r->nextra; *out < b->op->nout; ++*out)
		if (b->from->result[result_of_output(r, *out)] == v)
			break;
	if (*out == b->op->nout)
		add_stack(r, v);
	om_value *all = om_body_take_output(b, *out, om_printf(om_grad_mem(b->outer), "%s_kept", v->name));
	om_body_infer(b);
	return om_body_reach(b, all);
}

om_value *
om_loop_keep(struct loop_grad *r, om_value *v)
{
	struct om_body *b = &r->b;
	uint32_t k;

	if (v->type.kind != OM_TENSOR) {
		om_grad_fail(b->outer, OM_UNSUPPORTED,
			"%s is required by its gradient, but is not a tensor", v->name);
		return v;
	}
	for (k = r->nstate; k < r->nin && r->is_scan; k++)
		if (b->from->param[k] == v)
			return om_loop_add_series(r, om_body_reach(b, b->op->in[k]), v,
				om_attr_int_at(b->op, "scan_input_axes", k - r->nstate, 0),
				!om_attr_int_at(b->op, "scan_input_directions", k - r->nstate, 0));
	if (!om_fixed_shape(&r->fixed, v))
		return om_loop_keep_ragged(r, v);
	om_value *all = om_loop_stack(r, v, &k);
	const int64_t axis = r->is_scan ? om_attr_int_at(b->op, "scan_output_axes", k - r->nstate, 0) : 0;
	const int64_t turned = r->is_scan ? om_attr_int_at(b->op, "scan_output_directions", k - r->nstate, 0) : 0;
	return om_loop_add_series(r, all, v, axis, !turned);
}

static om_value *
keep_of_round(om_scope *s, om_grad *g, om_value *v)
{
	struct loop_grad *r = s->arg;
	om_value *by = om_body_known(&r->b, v);

	(void)g;
	if (by)
		return by;
	if (v->def && is_constant(r, v))
		return hoist(r, v);
	return om_body_stands(&r->b, v, om_loop_keep(r, v));
}

/* ---- Loop and Scan: loop-carried gradients. ---- */

static om_value *
state_in(const struct loop_grad *r, uint32_t k)
{
	return r->b.op->in[r->in + k];
}

static om_value *
state_param(const struct loop_grad *r, uint32_t k)
{
	return r->b.from->param[r->first + k];
}

static om_value *
state_result(const struct loop_grad *r, uint32_t k)
{
	return r->b.from->result[result_of_state(r, k)];
}

/* Mark the values that depend on requested ones, also through earlier iterations. */
static void
look(struct loop_grad *r, om_grad *g)
{
	om_scope *s = r->b.s;
	bool changed = true;

	for (uint32_t k = r->in; k < r->nin; k++)
		if (om_grad_is_needed(g, k))
			om_scope_request(s, r->b.from->param[r->first + k - r->in]);
	while (changed) {
		changed = false;
		om_scope_mark_active(s);
		for (uint32_t k = 0; k < r->nstate; k++)
			if (om_scope_is_requested(s, state_result(r, k)) && !om_scope_is_requested(s, state_param(r, k))) {
				om_scope_request(s, state_param(r, k));
				changed |= om_scope_is_requested(s, state_param(r, k));
			}
	}
}

static void
mark(struct loop_grad *r, const om_value *v)
{
	if (v && om_scope_is_requested(r->b.s, v))
		r->flows[v->id] = true;
}

static void
mark_block(struct loop_grad *r, const om_block *b)
{
	for (uint32_t k = 0; k < b->nresult; k++)
		mark(r, b->result[k]);
	for (const om_op *op = b->first; op; op = op->next) {
		for (uint32_t k = 0; k < op->nin; k++)
			mark(r, op->in[k]);
		for (uint32_t k = 0; k < op->nbody; k++)
			mark_block(r, op->body[k]);
	}
}

static void
mark_iteration(struct loop_grad *r)
{
	for (const om_op *op = r->b.from->last; op; op = op->prev) {
		bool any = false;
		for (uint32_t k = 0; k < op->nout; k++)
			any |= op->out[k] && op->out[k]->id < r->b.s->nvalue && r->flows[op->out[k]->id];
		for (uint32_t k = 0; k < op->nin && any; k++)
			mark(r, op->in[k]);
		for (uint32_t k = 0; k < op->nbody && any; k++)
			mark_block(r, op->body[k]);
	}
}

/* Mark the values that a gradient may reach: from outputs of the op, then from the next iteration. */
static void
find_flows(struct loop_grad *r, om_grad *g)
{
	bool changed = true;

	for (uint32_t k = 0; k < om_grad_op(g)->nout; k++)
		if (om_grad_output_grad(g, k))
			mark(r, r->b.from->result[result_of_output(r, k)]);
	while (changed) {
		changed = false;
		mark_iteration(r);
		for (uint32_t k = 0; k < r->nstate; k++) {
			const om_value *param = state_param(r, k), *result = state_result(r, k);
			if (!om_scope_is_requested(r->b.s, param) || !r->flows[param->id] || !om_scope_is_requested(r->b.s, result)
			    || r->flows[result->id])
				continue;
			changed = r->flows[result->id] = true;
		}
	}
}

/* May a state with a gradient have another shape after an iteration than before it?  The gradient is then
 * carried by a Loop: a Scan requires one shape. */
static bool
has_varying_state(const struct loop_grad *r)
{
	for (uint32_t k = 0; k < r->nstate && !r->is_scan; k++) {
		const om_value *v = state_param(r, k);
		if (v->type.kind == OM_TENSOR && om_scope_is_requested(r->b.s, v) && !om_fixed_dims(&r->fixed, &v->shape))
			return true;
	}
	return false;
}

/* ---- Loop and Scan: the backward op. ---- */

static void
push_carried(om_grad *g, struct back *k, struct carried c)
{
	OM_PUSH(om_grad_mem(g), k->carried, k->n, k->cap, c);
}

/* Does the result of the body for state `k` depend on requested values, and does a gradient reach it? */
static bool
flows_back(const struct loop_grad *r, uint32_t k)
{
	const om_value *result = state_result(r, k);

	return om_scope_is_requested(r->b.s, result) && r->flows[result->id];
}

/* The gradient of a state without one after the last iteration. */
static om_value *
no_gradient(struct loop_grad *r, om_grad *g, uint32_t k)
{
	const char *name = om_printf(om_grad_mem(g), "%s_last", state_param(r, k)->name);

	return om_emit_zeros_as(g, r->by_loop ? om_body_take_output(&r->b, k, name) : state_in(r, k));
}

/* A state may have a gradient although the result of the body has none: after no iteration the output is the initial
 * value, and the first iteration reads it. */
static void
seed(struct loop_grad *r, om_grad *g, struct back *back)
{
	om_scope *s = r->b.s;

	for (uint32_t k = 0; k < r->nstate; k++) {
		om_value *result = state_result(r, k), *dy = om_grad_output_grad(g, k);
		const om_value *param = state_param(r, k);
		if (param->type.kind != OM_TENSOR) {
			if (dy)
				om_loop_seed_rows(r, k, dy);
			continue;
		}
		if (!om_scope_is_requested(s, param) || !(dy || r->flows[param->id] || flows_back(r, k)))
			continue;
		struct carried c = {.of = state_param(r, k), .state = k};
		c.start = dy ? dy : no_gradient(r, g, k);
		c.param = om_emit_param(r->b.in, result, "grad");
		push_carried(g, back, c);
		if (flows_back(r, k))
			om_scope_seed(s, result, c.param);
	}
	for (uint32_t k = r->nstate; k < om_grad_op(g)->nout; k++) {
		om_value *result = r->b.from->result[result_of_output(r, k)], *dy = om_grad_output_grad(g, k);
		if (!dy || !om_scope_is_requested(s, result))
			continue;
		const uint32_t at = k - r->nstate;
		const int64_t axis = r->is_scan ? om_attr_int_at(r->b.op, "scan_output_axes", at, 0) : 0;
		const int64_t turned = r->is_scan ? om_attr_int_at(r->b.op, "scan_output_directions", at, 0) : 0;
		om_scope_seed(s, result, om_loop_add_series(r, dy, result, axis, !turned));
	}
}

/* After the reverse pass: set the gradients of states, of captured values and of slices. */
static void
collect(struct loop_grad *r, om_grad *g, struct back *back)
{
	om_scope *s = r->b.s;
	struct om_values captured = {0};

	for (size_t k = 0; k < back->n; k++) {
		struct carried *c = &back->carried[k];
		c->result = om_scope_gradient(s, c->of);
		if (!c->result)
			c->result = om_emit_zeros_as(r->b.in, c->of);
	}
	om_body_captured(&r->b, &captured);
	for (size_t k = 0; k < captured.n; k++) {
		struct carried c = {.of = captured.v[k], .state = UINT32_MAX};
		c.start = om_emit_zeros_as(g, c.of);
		c.param = om_emit_param(r->b.in, c.of, "grad_sum");
		c.result = om_emit_add_to(r->b.in, c.param, om_scope_gradient(s, c.of), &back->is_scattered);
		push_carried(g, back, c);
	}
	back->input = OM_NEWN(om_grad_mem(g), uint32_t, (size_t)r->nin + 1);
	for (uint32_t k = r->nstate; k < r->nin && r->is_scan; k++) {
		om_value *v = om_scope_gradient(s, r->b.from->param[k]);
		if (!v)
			continue;
		back->input[back->result.n] = k;
		om_values_push(g, &back->result, v);
	}
}

/* The tape tells how many iterations there were. */
static void
need_series(struct loop_grad *r)
{
	if (r->n == 0)
		(void)keep_of_round(r->b.s, r->b.in, r->b.from->param[r->is_scan ? r->nstate : 0]);
}

static void
finish_body(struct loop_grad *r, const struct back *back)
{
	om_block *to = om_grad_scope(r->b.in)->to;

	for (size_t k = 0; k < back->n; k++)
		om_block_add_param(to, back->carried[k].param);
	for (size_t k = 0; k < r->n; k++)
		om_block_add_param(to, r->series[k].param);
	for (size_t k = 0; k < back->n; k++)
		om_emit_result(r->b.in, back->carried[k].result);
	for (size_t k = 0; k < back->result.n; k++)
		om_emit_result(r->b.in, back->result.v[k]);
}

static void
finish_attrs(struct loop_grad *r, om_grad *g, const struct back *back)
{
	om_prog *p = om_grad_prog(g);
	const size_t most = r->n + back->result.n;
	int64_t *axis = OM_NEWN(om_grad_mem(g), int64_t, most + 1), *turned = OM_NEWN(om_grad_mem(g), int64_t, most + 1);

	for (size_t k = 0; k < r->n; k++) {
		axis[k] = r->series[k].axis;
		turned[k] = r->series[k].is_backward;
	}
	om_op_add_int(p, r->b.back, "num_scan_inputs", (int64_t)r->n);
	om_op_add_ints(p, r->b.back, "scan_input_axes", r->n, axis);
	om_op_add_ints(p, r->b.back, "scan_input_directions", r->n, turned);
	for (size_t k = 0; k < back->result.n; k++) {
		axis[k] = om_attr_int_at(r->b.op, "scan_input_axes", back->input[k] - r->nstate, 0);
		turned[k] = !om_attr_int_at(r->b.op, "scan_input_directions", back->input[k] - r->nstate, 0);
	}
	if (back->result.n == 0)
		return;
	om_op_add_ints(p, r->b.back, "scan_output_axes", back->result.n, axis);
	om_op_add_ints(p, r->b.back, "scan_output_directions", back->result.n, turned);
}

static void
finish(struct loop_grad *r, om_grad *g, const struct back *back)
{
	struct om_values in = {0};

	finish_body(r, back);
	finish_attrs(r, g, back);
	for (size_t k = 0; k < back->n; k++)
		om_values_push(g, &in, back->carried[k].start);
	for (size_t k = 0; k < r->n; k++)
		om_values_push(g, &in, r->series[k].all);
	om_back_args(g, r->b.back, &in, back->n + back->result.n);
	om_emit_done(g, r->b.back);
}

/* Is it known that there are iterations?  ONNX Runtime refuses a Scan without any. */
static bool
has_iterations(const struct loop_grad *r)
{
	const struct series *s = &r->series[0];

	return s->axis >= 0 && s->axis < s->all->shape.rank && s->all->shape.dim[s->axis] > 0;
}

static void
set_input_grads(struct loop_grad *r, om_grad *g, const struct back *back)
{
	om_value **of = OM_NEWN(om_grad_mem(g), om_value *, (size_t)r->nin + 1);

	for (size_t k = 0; k < back->n; k++) {
		const struct carried *c = &back->carried[k];
		if (c->state == UINT32_MAX)
			om_grad_set_value_grad(g, c->of, r->b.back->out[k]);
		else
			of[r->in + c->state] = r->b.back->out[k];
	}
	for (size_t k = 0; k < back->result.n; k++)
		of[back->input[k]] = r->b.back->out[back->n + k];
	for (uint32_t k = 0; k < r->nin; k++)
		om_grad_set_input_grad(g, k, of[k]);
}

static void
run_back(om_grad *g, bool is_scan)
{
	struct loop_grad r = {.is_scan = is_scan};
	om_op *op = om_body_own_op(g), *back = om_emit_open(g, "", "Scan", NULL, 0, NULL, 1);
	struct back b = {0};

	r.in = r.first = is_scan ? 0 : 2;
	r.nstate = is_scan ? op->nin - (uint32_t)om_attr_int(op, "num_scan_inputs") : op->nin - 2;
	r.nin = op->nin;
	om_body_start(&r.b, g, op, back, "body", keep_of_round, &r);
	r.nvalue = r.b.s->nvalue;
	r.is_constant = OM_NEWN(om_grad_mem(g), bool, (size_t)r.nvalue + 1);
	r.flows = OM_NEWN(om_grad_mem(g), bool, (size_t)r.nvalue + 1);
	r.fixed = om_fixed_find(om_grad_prog(g), r.b.from, om_grad_mem(g));
	find_constants(&r);
	look(&r, g);
	r.by_loop = has_varying_state(&r);
	find_flows(&r, g);
	seed(&r, g, &b);
	if (!om_grad_failed(g))
		(void)om_scope_run(r.b.s);
	if (!om_grad_failed(g))
		collect(&r, g, &b);
	if (om_grad_failed(g) || b.n + b.result.n == 0) {
		om_back_abandon(back);
		om_grad_set_zero(g);
		return;
	}
	need_series(&r);
	if (r.by_loop || (!is_scan && !has_iterations(&r)))
		om_loop_finish(&r, g, &b);
	else
		finish(&r, g, &b);
	if (b.is_scattered)
		om_block_sweep(om_grad_scope(r.b.in)->to);
	set_input_grads(&r, g, &b);
}

static void
Loop_grad(om_grad *g)
{
	run_back(g, false);
}

static void
Scan_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);

	if (op->opdef->since < 9)
		om_grad_fail(g, OM_UNSUPPORTED, "a Scan of opset 8 has no gradient");
	else if (om_fixed_find(om_grad_prog(g), om_attr_graph(op, "body"), om_grad_mem(g)).any_varies)
		om_scan_grad_as_loop(g);
	else
		run_back(g, true);
}

/* ---- The table. ---- */

const om_gradient om_gradients_loop_scan[] = {
	{.name = "Loop", .since = 1, .rule = Loop_grad},
	{.name = "Scan", .since = 8, .rule = Scan_grad},
	{.name = "ConcatFromSequence", .since = 11, .rule = om_concat_from_sequence_grad},
	{0}
};
