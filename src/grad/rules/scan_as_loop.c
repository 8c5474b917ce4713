/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a Scan whose tape would be ragged.
 *
 * Such a tape is carried as a sequence, which a Scan cannot do, so the Scan is replaced by a Loop that
 * computes the same: its body gathers its slices at its head, and scan outputs along other axes or in
 * reverse are transposed and reversed after the Loop.  What replaces the Scan is then differentiated. */
#include <config.h>

#include "grad/grad_builder.h"
#include "grad/rules/loop_grad.h"
#include "ir/edit.h"
#include "ir/operators.h"
#include "ir/query.h"
#include "opdef/op_context.h"

struct rescan {
	om_grad *g;
	om_op *op;                   /* the Scan, which becomes the Loop */
	om_block *body;
	uint32_t nstate, nscan, nout;
	om_op *after;                /* the op after the Scan; NULL: none */
	om_value **in, **out;        /* of the Scan */
	int64_t *axis, *is_backward; /* [nout]: of its scan outputs; 0 for its states */
};

static om_value *
build(const struct rescan *r, om_block *b, om_op *before, const char *type, const om_attr *attrs, size_t nin,
	om_value *const *in, om_value *out)
{
	const struct om_place at = {b, before, r->op->phase};

	return om_emit_at(r->g, &at, type, attrs, nin, in, out);
}

static om_value *
new_value(const struct rescan *r, om_block *b, const om_value *of, const char *what)
{
	return om_tape_value(om_grad_scope(r->g)->tape, b, om_printf(om_grad_mem(r->g), "%s_%s", of->name, what));
}

static om_value *
scanned(const struct rescan *r, uint32_t k)
{
	return r->in[r->nstate + k];
}

static int64_t
input_axis(const struct rescan *r, uint32_t k)
{
	return om_attr_int_at(r->op, "scan_input_axes", k, 0);
}

/* ---- The body. ---- */

/* The number of iterations, an integer of rank 0, computed before the Loop. */
static om_value *
trip_count(const struct rescan *r)
{
	om_value *in = scanned(r, 0);
	om_block *b = r->op->block;
	int axis;

	if (om_axis(input_axis(r, 0), in->shape.rank, &axis) && in->shape.dim[axis] >= 0)
		return om_emit_int64(r->g, in->shape.dim[axis]);
	om_value *shape = build(r, b, r->op, "Shape", NULL, 1, &in, new_value(r, b, in, "shape"));
	return build(r, b, r->op, "Gather", NULL, 2, (om_value *[]){shape, om_emit_int64(r->g, input_axis(r, 0))},
		new_value(r, b, in, "length"));
}

/* The position of the slice of an iteration, counted from the end. */
static om_value *
turned_position(const struct rescan *r, om_op *first, om_value *iteration, om_value *count)
{
	om_value *one = om_emit_int64(r->g, 1);
	om_value *last = build(r, r->body, first, "Sub", NULL, 2, (om_value *[]){count, one},
		new_value(r, r->body, iteration, "last"));

	return build(r, r->body, first, "Sub", NULL, 2, (om_value *[]){last, iteration},
		new_value(r, r->body, iteration, "back"));
}

/* The parameter of a slice becomes the output of an op at the head of the body. */
static void
gather_slices(const struct rescan *r, om_value *const *slice, om_op *first, om_value *iteration, om_value *count)
{
	om_value *turned = NULL;

	for (uint32_t k = 0; k < r->nscan; k++) {
		const bool is_backward = om_attr_int_at(r->op, "scan_input_directions", k, 0);
		if (is_backward && !turned)
			turned = turned_position(r, first, iteration, count);
		om_value *at = is_backward ? turned : iteration;
		(void)build(r, r->body, first, "Gather", OM_A(om_attr_make_int(r->g, "axis", input_axis(r, k))), 2,
			(om_value *[]){scanned(r, k), at}, slice[k]);
	}
}

static om_value *
scalar_param(const struct rescan *r, om_dtype type, const char *what)
{
	om_value *v = new_value(r, r->body, r->body->result[0], what);

	v->type = (om_type){.kind = OM_TENSOR, .elem = type};
	v->shape = om_shape_of(0, NULL);
	om_block_add_param(r->body, v);
	return v;
}

static void
change_body(const struct rescan *r, om_value *count)
{
	om_block *b = r->body;
	om_value **param = b->param, **result = b->result;
	const uint32_t nresult = b->nresult;
	om_op *first = b->first;

	b->nparam = 0;
	om_value *iteration = scalar_param(r, OM_INT64, "iteration"), *condition = scalar_param(r, OM_BOOL, "condition");
	for (uint32_t k = 0; k < r->nstate; k++)
		om_block_add_param(b, param[k]);
	gather_slices(r, param + r->nstate, first, iteration, count);
	om_value *goes_on = build(r, b, NULL, "Identity", NULL, 1, &condition, new_value(r, b, condition, "next"));
	om_block_clear_results(b);
	om_block_add_result(b, goes_on);
	for (uint32_t k = 0; k < nresult; k++)
		om_block_add_result(b, result[k]);
	b->is_other = true;
}

/* ---- After the Loop. ---- */

/* A scan output of the Loop in the order and along the axis of that of the Scan. */
static void
turn_output(struct rescan *r, uint32_t k)
{
	om_block *b = r->op->block;
	om_value *all = r->op->out[k], *out = r->out[k];
	const int64_t axis = r->axis[k];
	int64_t perm[OM_MAX_RANK];
	int at;

	if (r->is_backward[k]) {
		const int64_t last = -1, end = INT64_MIN, zero = 0;
		om_value *back = om_emit_list(r->g, 1, &last);  /* the start, and the step */
		om_value *const in[] = {all, back, om_emit_list(r->g, 1, &end), om_emit_list(r->g, 1, &zero), back};
		all = build(r, b, r->after, "Slice", NULL, 5, in, axis ? new_value(r, b, out, "turned") : out);
	}
	if (axis == 0)
		return;
	if (!om_axis(axis, all->shape.rank, &at)) {
		om_grad_fail(r->g, OM_UNSUPPORTED,
			"the rank of %s is not known, but its tape differs in size between iterations", out->name);
		return;
	}
	for (int d = 0; d < all->shape.rank; d++)
		perm[d] = d == at ? 0 : d < at ? d + 1 : d;
	const om_attr order[] = {om_attr_make_ints(r->g, "perm", (size_t)all->shape.rank, perm), {0}};
	(void)build(r, b, r->after, "Transpose", order, 1, &all, out);
}

/* ---- The op. ---- */

static void
change_outputs(struct rescan *r)
{
	om_op *op = r->op;

	op->out = OM_NEWN(om_grad_prog(r->g)->mem, om_value *, (size_t)r->nout + 1);
	for (uint32_t k = 0; k < r->nout; k++) {
		om_value *out = r->out[k];
		if (!out)
			continue;
		out->def = NULL;
		om_op_set_out(op, k, r->axis[k] || r->is_backward[k] ? new_value(r, op->block, out, "stack") : out);
	}
}

static void
change_op(struct rescan *r)
{
	static const char *const list[] = {"num_scan_inputs", "scan_input_axes", "scan_input_directions",
		"scan_output_axes", "scan_output_directions"};
	om_prog *p = om_grad_prog(r->g);
	struct om_values in = {0};
	om_value *count = trip_count(r);

	change_body(r, count);
	change_outputs(r);
	om_values_push(r->g, &in, count);
	om_values_push(r->g, &in, NULL);
	for (uint32_t k = 0; k < r->nstate; k++)
		om_values_push(r->g, &in, r->in[k]);
	om_op_set_inputs(p, r->op, (uint32_t)in.n, in.v);
	for (size_t k = 0; k < sizeof list / sizeof *list; k++)
		om_op_drop_attr(r->op, list[k]);
	r->op->type = "Loop";
	r->op->opdef = r->op->operators->find("", "Loop", r->op->version);
}

/* Returns false after a failure. */
static bool
change(struct rescan *r)
{
	om_op *op = r->op;

	r->axis = OM_NEWN(om_grad_mem(r->g), int64_t, (size_t)r->nout + 1);
	r->is_backward = OM_NEWN(om_grad_mem(r->g), int64_t, (size_t)r->nout + 1);
	for (uint32_t k = r->nstate; k < r->nout; k++) {
		r->axis[k] = om_attr_int_at(op, "scan_output_axes", k - r->nstate, 0);
		r->is_backward[k] = om_attr_int_at(op, "scan_output_directions", k - r->nstate, 0);
	}
	change_op(r);
	if (om_grad_failed(r->g))
		return false;
	om_tape_fail(om_grad_scope(r->g)->tape, om_op_infer(om_grad_session(r->g), om_grad_prog(r->g), op));
	for (uint32_t k = r->nstate; k < r->nout && !om_grad_failed(r->g); k++)
		if (r->out[k] && op->out[k] != r->out[k])
			turn_output(r, k);
	return !om_grad_failed(r->g);
}

/* ---- The gradient. ---- */

static om_value *
keep_of_outer(om_scope *s, om_grad *g, om_value *v)
{
	return om_scope_import(s->outer, g, v);
}

static bool
is_output(const struct rescan *r, const om_value *v)
{
	for (uint32_t k = 0; k < r->nout; k++)
		if (r->out[k] == v)
			return true;
	return false;
}

/* Differentiate the ops from the one after `before` to the one before `after`. */
static void
walk(struct rescan *r, om_op *before, om_value *const *dy)
{
	om_grad *g = r->g;
	om_scope *outer = om_grad_scope(g), *s = om_scope_new(g, r->op->block, outer->to);

	s->first = before ? before->next : r->op->block->first;
	s->last = r->after ? r->after->prev : r->op->block->last;
	s->keep = outer->keep ? keep_of_outer : NULL;
	om_scope_mark_active(s);
	for (uint32_t k = 0; k < r->nout; k++)
		if (dy[k])
			om_scope_seed(s, r->out[k], dy[k]);
	if (om_scope_run(s) != OM_OK)
		return;
	for (uint32_t id = 0; id < outer->nvalue; id++) {
		om_value *v = om_grad_prog(g)->values[id];
		if (s->grad[id] && !is_output(r, v))
			om_grad_set_value_grad(g, v, om_scope_gradient(s, v));
	}
}

void
om_scan_grad_as_loop(om_grad *g)
{
	const om_op *forward = om_grad_op(g);
	om_value **dy = OM_NEWN(om_grad_mem(g), om_value *, (size_t)forward->nout + 1);

	for (uint32_t k = 0; k < forward->nout; k++)
		dy[k] = om_grad_output_grad(g, k);
	om_op *op = om_body_own_op(g), *before = op->prev;
	struct rescan r = {.g = g, .op = op, .body = om_attr_graph(op, "body"), .nout = op->nout, .in = op->in,
		.out = op->out, .after = op->next};
	r.nscan = (uint32_t)om_attr_int(op, "num_scan_inputs");
	r.nstate = op->nin - r.nscan;
	if (!om_grad_failed(g) && change(&r))
		walk(&r, before, dy);
	for (uint32_t k = 0; k < g->nsaid; k++)  /* those are given to the values */
		g->is_said[k] = true;
}
