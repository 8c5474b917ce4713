/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that functions of the caller compute.
 *
 * A function becomes two definitions, of NAME and of NAME_backward, whose callbacks find it through the definition of their
 * op, and a gradient whose rule emits the second one.  Nothing else knows that they are not operators of the library.
 *
 * An op NAME_backward has the inputs and outputs of the forward op, as far as they are read, and the gradients of its outputs.
 * `wrt` has the number of the input for each of its outputs.  What is not read has its type and shape in attributes. */
#include <config.h>

#include <string.h>

#include "base/guard.h"
#include "base/options.h"
#include "base/shape.h"
#include "grad/callback.h"
#include "ir/operators.h"
#include "ir/query.h"
#include "opdef/op_context.h"

struct function {
	om_opdef forward;            /* first, so that the definition of an op is its function */
	om_callback f;
	om_opdef backward;
	om_gradient gradient[2];     /* a table */
	struct function *next;
};

struct om_callbacks {
	om_arena *mem;
	const struct om_operators *operators;
	struct function *first, **last;
	const om_opdef **defs;       /* by function, both; then NULL.  A new list for each number of functions: programs have old ones */
	uint32_t n;
};

static const struct function *
function_of(const om_opdef *def)
{
	return (const struct function *)def;
}

static const struct function *
function_of_backward(const om_opdef *def)
{
	return (const struct function *)((const char *)def - offsetof(struct function, backward));
}

/* ---- The operator. ---- */

static om_callback_call
call_of(const om_op_context *c, const om_callback *f)
{
	return (om_callback_call){.arg = f->arg, .session = c->session, .op = c->op, .nin = c->op->nin, .nout = c->op->nout,
		.in = c->in, .out = c->out};
}

static om_status
forward_infer(om_op_context *c)
{
	const om_callback *f = &function_of(c->op->opdef)->f;
	om_callback_call call = call_of(c, f);

	if (call.nin != f->nin || call.nout != f->nout)
		return om_op_fail(c->session, OM_INVALID, c->op, "has %u inputs and %u outputs, the callback has %u and %u", call.nin, call.nout,
			f->nin, f->nout);
	if (f->infer)
		return f->infer(&call);
	for (uint32_t k = 0; k < c->op->nout; k++) {
		c->out[k].type = c->in[0].type;
		c->out[k].shape = c->in[0].shape;
	}
	return OM_OK;
}

static om_status
forward_run(om_op_context *c)
{
	const om_callback *f = &function_of(c->op->opdef)->f;
	om_callback_call call = call_of(c, f);

	return f->run(&call);
}

/* ---- Its gradient: an op. ---- */

static const char *
attr_name(om_arena *mem, const char *what, uint32_t input)
{
	return om_printf(mem, "%s%u", what, input);
}

/* Type and shape of an input of the forward op, which may not be an input of this op. */
static om_tensor
form_of(const om_op_context *c, uint32_t input)
{
	om_tensor t = {.type = OM_UNDEFINED, .shape = om_shape_unknown()};
	size_t n;

	if (om_has_in(c, input)) {
		t.type = c->in[input].type;
		t.shape = c->in[input].shape;
	} else if (om_attr_find(c->op, attr_name(c->mem, "type", input))) {
		const int64_t *dim = om_attr_ints(c->op, attr_name(c->mem, "shape", input), &n);
		t.type = (om_dtype)om_attr_int(c->op, attr_name(c->mem, "type", input));
		t.shape = om_shape_of((int)n, dim);
	}
	return t;
}

static om_status
backward_infer(om_op_context *c)
{
	const om_callback *f = &function_of_backward(c->op->opdef)->f;
	size_t n;
	const int64_t *wrt = om_attr_ints(c->op, "wrt", &n);

	if (c->op->nin != f->nin + 2 * f->nout)
		return om_op_fail(c->session, OM_INVALID, c->op, "has %u inputs, expected %u", c->op->nin, f->nin + 2 * f->nout);
	for (uint32_t k = 0; k < c->op->nout; k++) {
		if (k >= n || wrt[k] < 0 || wrt[k] >= f->nin)
			return om_op_fail(c->session, OM_INVALID, c->op, "wrt does not name an input for each output");
		const om_tensor form = form_of(c, (uint32_t)wrt[k]);
		c->out[k].type = form.type;
		c->out[k].shape = form.shape;
	}
	return OM_OK;
}

static om_status
backward_run(om_op_context *c)
{
	const om_callback *f = &function_of_backward(c->op->opdef)->f;
	om_callback_call call = call_of(c, f);
	const int64_t *wrt = om_attr_ints(c->op, "wrt", NULL);

	call.nout = f->nin;
	call.out = OM_NEWN(c->mem, om_tensor, f->nin);
	for (uint32_t k = 0; k < c->op->nout; k++)
		if (om_has_out(c, k))
			call.out[wrt[k]] = c->out[k];
	return f->backward(&call);
}

/* ---- The rule. ---- */

enum { ATTRS = 2 * OM_CALLBACK_MOST + 2 };

/* An input of the forward op that is not read, but whose type and shape are. */
static void
add_form(om_grad *g, om_attr *attrs, uint32_t *n, uint32_t input)
{
	om_arena *mem = om_grad_mem(g);
	const om_value *v = om_grad_op(g)->in[input];

	attrs[(*n)++] = om_attr_make_int(g, attr_name(mem, "type", input), (int64_t)v->type.elem);
	attrs[(*n)++] = om_attr_make_ints(g, attr_name(mem, "shape", input), (size_t)v->shape.rank, v->shape.dim);
}

/* What the op reads; NULL is what it does not. */
static void
find_inputs(om_grad *g, const om_callback *f, om_value **in)
{
	for (uint32_t k = 0; k < f->nin; k++) {
		const om_value *v = om_grad_op(g)->in[k];
		const bool needs_form = v && om_grad_is_needed(g, k) && !om_shape_is_known(&v->shape);
		in[k] = f->backward_inputs >> k & 1 || needs_form ? om_grad_forward_input(g, k) : NULL;
	}
	for (uint32_t k = 0; k < f->nout; k++) {
		in[f->nin + k] = f->backward_outputs >> k & 1 ? om_grad_forward_output(g, k) : NULL;
		in[f->nin + f->nout + k] = om_grad_output_grad(g, k);
	}
}

static void
rule(om_grad *g)
{
	const struct function *r = function_of(om_grad_op(g)->opdef);
	const om_callback *f = &r->f;
	om_value *in[3 * OM_CALLBACK_MOST];
	om_attr attrs[ATTRS] = {0};
	int64_t wrt[OM_CALLBACK_MOST];
	uint32_t nattr = 1, nwrt = 0;

	find_inputs(g, f, in);
	for (uint32_t k = 0; k < f->nin; k++) {
		if (!om_grad_is_needed(g, k))
			continue;
		wrt[nwrt++] = k;
		if (!in[k])
			add_form(g, attrs, &nattr, k);
	}
	if (!nwrt)
		return;
	attrs[0] = om_attr_make_ints(g, "wrt", nwrt, wrt);
	om_op *op = om_emit_open(g, r->backward.domain, r->backward.name, attrs, f->nin + 2 * f->nout, in, nwrt);
	om_emit_done(g, op);
	for (uint32_t k = 0; k < nwrt; k++)
		om_grad_set_input_grad(g, (uint32_t)wrt[k], op->out[k]);
}

/* ---- The set. ---- */

static om_status
new_guarded(const struct om_operators *operators, om_callbacks **out)
{
	om_arena *mem = om_arena_new();
	om_callbacks *all = OM_NEW(mem, om_callbacks);

	*all = (om_callbacks){.mem = mem, .operators = operators, .last = &all->first, .defs = OM_NEWN(mem, const om_opdef *, 1)};
	*out = all;
	return OM_OK;
}

om_status
om_callbacks_new_with(om_session *s, const struct om_operators *operators, om_callbacks **out)
{
	*out = NULL;
	OM_GUARDED(s, new_guarded(operators, out));
}

void
om_callbacks_free(om_callbacks *all)
{
	for (struct function *r = all ? all->first : NULL; r; r = r->next)
		if (r->f.release)
			r->f.release(r->f.arg);
	if (all)
		om_arena_free(all->mem);
}

static bool
is_known(const om_callbacks *all, const char *domain, const char *name)
{
	for (uint32_t k = 0; k < 2 * all->n; k++)
		if (strcmp(all->defs[k]->domain, domain) == 0 && strcmp(all->defs[k]->name, name) == 0)
			return true;
	return all->operators->exists(domain, name);
}

static om_status
check(om_session *s, const om_callback *f)
{
	const char *colon = f->name ? strrchr(f->name, ':') : NULL;

	if (!colon || colon == f->name || !colon[1])
		return om_fail(s, OM_USAGE, "a callback is named DOMAIN:NAME, not %s", f->name ? f->name : "by nothing");
	if (!f->run)
		return om_fail(s, OM_USAGE, "callback %s has no function `run`", f->name);
	if (f->nin > OM_CALLBACK_MOST || f->nout > OM_CALLBACK_MOST || !f->nout)
		return om_fail(s, OM_USAGE, "callback %s has %u inputs and %u outputs: at most %d, and 1 to %d, are possible", f->name, f->nin,
			f->nout, OM_CALLBACK_MOST, OM_CALLBACK_MOST);
	if (!f->infer && !f->nin)
		return om_fail(s, OM_USAGE, "callback %s has no inputs, and no function `infer` that tells the forms of its outputs", f->name);
	if (f->nin < 64 && f->backward_inputs >> f->nin)
		return om_fail(s, OM_USAGE, "callback %s: backward_inputs has bits of inputs that it does not have", f->name);
	if (f->nout < 64 && f->backward_outputs >> f->nout)
		return om_fail(s, OM_USAGE, "callback %s: backward_outputs has bits of outputs that it does not have", f->name);
	return OM_OK;
}

static struct function *
function_new(om_arena *mem, const om_callback *f)
{
	struct function *r = OM_NEW(mem, struct function);
	const char *colon = strrchr(f->name, ':'), *domain = om_strndup(mem, f->name, (size_t)(colon - f->name));

	r->f = *f;
	r->f.name = om_strdup(mem, f->name);
	r->forward = (om_opdef){.domain = domain, .name = om_strdup(mem, colon + 1), .brief = "a function of the caller",
		.max_in = OM_VARIADIC, .max_out = OM_VARIADIC, .flags = f->is_pure ? 0 : OM_RANDOM | OM_EFFECT, .infer = forward_infer, .cpu = forward_run};
	r->backward = (om_opdef){.domain = domain, .name = om_printf(mem, "%s_backward", colon + 1),
		.brief = "the gradient of a function of the caller", .max_in = OM_VARIADIC, .max_out = OM_VARIADIC,
		.infer = backward_infer, .cpu = backward_run};
	r->gradient[0] = (om_gradient){.domain = domain, .name = r->forward.name, .rule = rule};
	return r;
}

static void
append(om_callbacks *all, struct function *r)
{
	const om_opdef **defs = OM_NEWN(all->mem, const om_opdef *, 2 * (size_t)all->n + 3);

	if (all->n)
		memcpy(defs, all->defs, 2 * all->n * sizeof *defs);
	defs[2 * all->n] = &r->forward;
	defs[2 * all->n + 1] = &r->backward;
	all->defs = defs;
	all->n++;
	*all->last = r;
	all->last = &r->next;
}

static om_status
add_guarded(om_session *s, om_callbacks *all, const om_callback *from)
{
	om_callback f = {0};

	OM_TRY(om_options_read(s, "om_callback", "OM_CALLBACK()", &f, sizeof f, sizeof f, from));
	OM_TRY(check(s, &f));
	struct function *r = function_new(all->mem, &f);
	if (is_known(all, r->forward.domain, r->forward.name) || is_known(all, r->backward.domain, r->backward.name))
		return om_fail(s, OM_USAGE, "there is an operator %s, or its gradient, already", f.name);
	append(all, r);
	return OM_OK;
}

om_status
om_callbacks_add(om_session *s, om_callbacks *all, const om_callback *f)
{
	OM_GUARDED(s, add_guarded(s, all, f));
}

/* ---- Programs. ---- */

static bool
is_backward(const om_opdef *def)
{
	return def->infer == backward_infer;
}

void
om_callbacks_add_gradients(const om_prog *p, om_gradients *to)
{
	for (const om_opdef *const *def = p->own_opdefs; def && *def; def++)
		if (!is_backward(*def) && function_of(*def)->f.backward)
			om_gradients_add(to, function_of(*def)->gradient);
}

void
om_callbacks_give(om_prog *p, const om_callbacks *all)
{
	p->own_opdefs = all->defs;
}

static om_status
use_guarded(om_prog *p, const om_callbacks *all)
{
	om_callbacks_give(p, all);
	if (p->gradients)
		om_callbacks_add_gradients(p, p->gradients);
	for (om_block *b = p->first; b; b = b->next)
		for (om_op *op = b->first; op; op = op->next)
			if (!op->opdef && !op->call)
				op->opdef = om_opdef_own(p, op->domain, op->type);
	return OM_OK;
}

om_status
om_prog_use_callbacks(om_session *s, om_prog *p, const om_callbacks *all)
{
	OM_GUARDED(s, use_guarded(p, all));
}
