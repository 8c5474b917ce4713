/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse-mode differentiation.
 *
 * A forward pass marks all values that depend on those whose gradients are requested.  A pass over the
 * ops in reverse order then differentiates every op whose outputs have a gradient and whose inputs are
 * marked, by the rule registered for its operator.  All users of a value come after its definition, so
 * the sum of its gradients is complete when the op that defines it is reached; gradients are added as
 * they arrive, so that at most two of a value are live at a time.  The pass terminates because it
 * visits every op of the block once, and the ops that it builds come after all of them.
 */
#include <config.h>

#include <stdio.h>

#include "base/guard.h"
#include "base/options.h"
#include "base/shape.h"
#include "grad/grad_builder.h"
#include "grad/gradients.h"
#include "grad/sums.h"
#include "grad/tape.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "ir/type.h"

void
om_tape_fail(struct om_tape *t, om_status st)
{
	if (t->status == OM_OK)
		t->status = st;
}

/* ---- Scopes. ---- */

static om_scope *
scope_new(struct om_tape *t, om_block *from, om_block *to, om_scope *outer)
{
	om_scope *s = OM_NEW(t->mem, om_scope);

	*s = (om_scope){.from = from, .to = to, .outer = outer, .tape = t, .nvalue = t->p->nvalue};
	s->grad = OM_NEWN(t->mem, om_value *, s->nvalue + 1);
	s->kept = OM_NEWN(t->mem, om_value *, s->nvalue + 1);
	s->is_active = OM_NEWN(t->mem, bool, s->nvalue + 1);
	if (outer)
		memcpy(s->is_active, outer->is_active, outer->nvalue * sizeof *s->is_active);
	return s;
}

om_grad *
om_tape_grad(struct om_tape *t)
{
	om_grad *g = OM_NEW(t->mem, om_grad);

	*g = (om_grad){.scope = scope_new(t, t->p->first, t->p->first, NULL), .stem = "step"};
	return g;
}

om_scope *
om_scope_new(om_grad *g, om_block *from, om_block *to)
{
	return scope_new(g->scope->tape, from, to, g->scope);
}

om_grad *
om_scope_grad(om_scope *s, om_grad *g)
{
	om_grad *in = OM_NEW(s->tape->mem, om_grad);

	*in = (om_grad){.scope = s, .op = g->op, .stem = g->stem};
	return in;
}

/* ---- Dependence on requested values. ---- */

static bool
is_float(const om_value *v)
{
	return om_dtype_is_float(om_type_elem(&v->type));
}

void
om_scope_request(om_scope *s, om_value *v)
{
	if (v->id < s->nvalue && is_float(v))
		s->is_active[v->id] = true;
}

bool
om_scope_is_requested(const om_scope *s, const om_value *v)
{
	return v && v->id < s->nvalue && s->is_active[v->id];
}

static bool reads_active(const om_scope *s, const om_op *op);

static bool
body_reads_active(const om_scope *s, const om_block *b)
{
	for (uint32_t k = 0; k < b->nresult; k++)
		if (om_scope_is_requested(s, b->result[k]))
			return true;
	for (const om_op *op = b->first; op; op = op->next)
		if (reads_active(s, op))
			return true;
	return false;
}

static bool
reads_active(const om_scope *s, const om_op *op)
{
	for (uint32_t k = 0; k < op->nin; k++)
		if (om_scope_is_requested(s, op->in[k]))
			return true;
	for (uint32_t k = 0; k < op->nbody; k++)
		if (body_reads_active(s, op->body[k]))
			return true;
	return false;
}

/* Whether gradients pass through the op: not if it reads shapes only or is piecewise constant. */
static bool
lets_through(const om_scope *s, const om_op *op)
{
	const om_gradient *r = om_op_gradient(s->tape->p, op);

	return !op->opdef || (!(r && r->rule == om_grad_set_zero) && !(op->opdef->flags & OM_SHAPE_ONLY));
}

void
om_scope_mark_active(om_scope *s)
{
	const om_op *end = s->last ? s->last->next : NULL;

	for (const om_op *op = s->first ? s->first : s->from->first; op != end; op = op->next) {
		if (!lets_through(s, op) || !reads_active(s, op))
			continue;
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k])
				om_scope_request(s, op->out[k]);
	}
}

/* ---- Sums. ---- */

/* Name the gradient of `of` after it, unless it already has the name of another gradient, as one that
 * is passed on unchanged. */
static void
name_after(om_scope *s, const om_value *of, om_value *v)
{
	struct om_tape *t = s->tape;

	if (!v->def || v->def->phase != OM_BACKWARD || (v->id < t->cap && t->has_name[v->id]))
		return;
	om_value_rename(v, om_tape_name(t, om_printf(t->p->mem, "%s_grad", of->name)));
	om_tape_named(t, v);
}

void
om_scope_add(om_scope *s, om_grad *g, const om_value *of, om_value *v)
{
	om_value **sum = &s->grad[of->id];

	if (*sum) {
		om_grad in = {.scope = s, .op = g->op, .stem = om_printf(s->tape->mem, "%s_grad_acc", of->name)};
		v = om_emit(&in, "Add", *sum, v);
		om_grad_note_sum(&in, v);
	}
	*sum = v;
}

om_value *
om_scope_gradient(om_scope *s, const om_value *of)
{
	om_value *v = of && of->id < s->nvalue ? s->grad[of->id] : NULL;

	if (v)
		name_after(s, of, v);
	return v;
}

void
om_scope_seed(om_scope *s, om_value *of, om_value *v)
{
	om_grad g = {.scope = s, .op = of->def, .stem = om_printf(s->tape->mem, "%s_grad", of->name)};

	if (of->id < s->nvalue)
		om_scope_add(s, &g, of, v);
}

/* ---- The reverse pass. ---- */

static bool
has_gradient(const om_scope *s, const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && op->out[k]->id < s->nvalue && s->grad[op->out[k]->id])
			return true;
	return false;
}

/* `in`: the inputs of the op before the rule changed it. */
static om_status
check_said(const om_grad *g, om_value *const *in)
{
	for (uint32_t k = 0; k < g->nsaid; k++)
		if (om_scope_is_requested(g->scope, in[k]) && !g->is_said[k])
			return om_op_fail(g->scope->tape->session, OM_UNSUPPORTED, g->op,
				"it has no gradient for input %s", in[k]->name);
	return OM_OK;
}

static om_status
differentiate(om_scope *s, const om_op *op)
{
	struct om_tape *t = s->tape;
	const om_gradient *r = om_op_gradient(t->p, op);
	om_value *const *in = op->in;
	om_grad g = {.scope = s, .op = op, .is_said = OM_NEWN(t->mem, bool, (size_t)op->nin + 1), .nsaid = op->nin};

	for (uint32_t k = 0; k < op->nout && !g.stem; k++)
		if (op->out[k])
			g.stem = om_printf(t->mem, "%s_grad", op->out[k]->name);
	if (!r)
		return om_op_fail(t->session, OM_UNSUPPORTED, op, op->opdef
			? "a gradient must pass through it, but this operator has no gradient rule"
			: "a gradient must pass through it, but the operator is unknown");
	if (!t->functions || !om_grad_fused(&g, r->fused))
		r->rule(&g);
	OM_TRY(t->status);
	return check_said(&g, in);
}

om_status
om_scope_run(om_scope *s)
{
	const om_op *prev;

	for (const om_op *op = s->last ? s->last : s->from->last; op; op = prev) {
		prev = op == s->first ? NULL : op->prev;
		if (!lets_through(s, op) || !has_gradient(s, op) || !reads_active(s, op))
			continue;
		const om_status st = differentiate(s, op);
		om_tape_fail(s->tape, st);
		OM_TRY(st);
	}
	return s->tape->status;
}

/* ---- The backward path. ---- */

static om_status
check_program(om_session *s, const om_prog *p)
{
	const int version = om_opset_version(p, "");

	if (version && version < OM_GRAD_OPSET)
		return om_fail(s, OM_UNSUPPORTED,
			"gradients require opset %d or later, but the program has opset %d", OM_GRAD_OPSET, version);
	return OM_OK;
}

/* A constant one, in the shape of the loss. */
static om_status
seed_of(om_grad *g, const om_value *loss, om_value **out)
{
	om_session *s = g->scope->tape->session;
	char text[256];

	if (loss->type.kind != OM_TENSOR || !is_float(loss))
		return om_fail(s, OM_SHAPE, "%s cannot be a loss: its type is not floating-point", loss->name);
	if (!om_shape_is_known(&loss->shape) || om_shape_count(&loss->shape) != 1)
		return om_fail(s, OM_SHAPE, "%s cannot be a loss: its shape is %s, expected a scalar",
			loss->name, om_shape_text(&loss->shape, text, sizeof text));
	const om_value *one = om_emit_number(g, loss, 1);
	om_tensor t = *one->data;
	t.shape = loss->shape;
	*out = om_emit_tensor(g, &t);
	return OM_OK;
}

static om_status
backward(struct om_tape *t, om_backward *b)
{
	om_scope *s = scope_new(t, t->p->first, t->p->first, NULL);
	om_grad g = {.scope = s, .op = b->loss->def, .stem = om_printf(t->mem, "%s_grad", b->loss->name)};
	om_value *seed = b->seed;

	for (uint32_t k = 0; k < b->nwrt; k++) {
		if (!is_float(b->wrt[k]))
			return om_fail(t->session, OM_SHAPE, "%s has no gradient: its type is not floating-point",
				b->wrt[k]->name);
		om_scope_request(s, b->wrt[k]);
	}
	om_scope_mark_active(s);
	if (!seed)
		OM_TRY(seed_of(&g, b->loss, &seed));
	om_scope_seed(s, b->loss, seed);
	OM_TRY(om_scope_run(s));
	for (uint32_t k = 0; k < b->nwrt; k++)
		b->grad[k] = om_scope_gradient(s, b->wrt[k]);
	return t->status;
}

static om_status
prog_backward_guarded(om_session *s, om_prog *p, const om_backward *requested)
{
	om_backward read, *b = &read;

	OM_TRY(om_options_read(s, "om_backward", "OM_BACKWARD()", b, sizeof *b, sizeof *b, requested));
	struct om_tape t = {.session = s, .p = p, .copies = b->copies, .functions = b->functions};
	OM_TRY(check_program(s, p));
	t.mem = om_arena_new();
	om_tape_start(&t);
	const om_status st = backward(&t, b);
	om_arena_free(t.mem);
	return st;
}

om_status
om_prog_backward(om_session *s, om_prog *p, const om_backward *b)
{
	OM_GUARDED(s, prog_backward_guarded(s, p, b));
}
