/* SPDX-License-Identifier: Apache-2.0 */
/* inline: replace calls of model-local functions by the bodies of the functions, and ops Gradient by their
 * backward graphs.
 *
 * Values of a body get a unique prefix, FUNCTION_N/; the outputs of the call keep their names.  If a body
 * returns one of its inputs, the output becomes an Identity.  A call of a function with an operator
 * definition is not replaced.  Calls inside a body are inlined with it; recursion is refused. */
#include <config.h>

#include <ctype.h>
#include <stdlib.h>

#include "grad/grad_builder.h"
#include "ir/clone.h"
#include "opdef/op_context.h"
#include "opdef/op_rule.h"
#include "opdef/rewrite_internal.h"
#include "onnxmem/builder.h"
#include "onnxmem/autodiff.h"
#include "onnxmem/pass.h"

/* A few functions with two calls each make more ops than fit into memory. */
enum { MOST_OPS = 1 << 20, DEEPEST = 64 };

struct inliner {
	om_run *r;
	om_prog *p;
	unsigned long next;          /* number of the next prefix */
	const om_function *open[DEEPEST];
	unsigned depth;
};

/* The number in names like Layer_12/x, or 0. */
static unsigned long
number_in(const char *name)
{
	const char *slash = strchr(name, '/'), *digits = slash;

	while (digits && digits > name && isdigit((unsigned char)digits[-1]))
		digits--;
	return slash && slash - digits > 0 && slash - digits < 10 ? strtoul(digits, NULL, 10) : 0;
}

static unsigned long
first_free(const om_prog *p)
{
	unsigned long most = 0;

	for (uint32_t k = 0; k < p->nvalue; k++) {
		const unsigned long n = number_in(p->values[k]->name);
		most = n > most ? n : most;
	}
	return most + 1;
}

struct call {
	const om_op *op;
	const om_function *fn;
};

/* The attribute of the call, or the default of the function. */
static const om_attr *
resolve(void *arg, const om_attr *a)
{
	const struct call *call = arg;
	const om_attr *given = om_attr_find(call->op, a->ref);

	for (size_t k = 0; !given && k < call->fn->nattr_default; k++)
		if (strcmp(call->fn->attr_default[k].name, a->ref) == 0)
			given = &call->fn->attr_default[k];
	return given;
}

static om_status
enter(struct inliner *in, const om_op *op)
{
	for (unsigned k = 0; k < in->depth; k++)
		if (in->open[k]->body == op->call->body)  /* copies of a program share bodies */
			return om_op_fail(in->r->session, OM_INVALID, op, "function %s calls itself", op->call->name);
	if (in->depth == DEEPEST)
		return om_op_fail(in->r->session, OM_UNSUPPORTED, op, "functions call each other more than %d deep",
			DEEPEST);
	if (op->nin > op->call->body->nparam || op->nout > op->call->body->nresult)
		return om_op_fail(in->r->session, OM_INVALID, op, "function %s has %u inputs and %u outputs, "
			"the call %u and %u", op->call->name, op->call->body->nparam, op->call->body->nresult,
			op->nin, op->nout);
	in->open[in->depth++] = op->call;
	return OM_OK;
}

static om_status
hand_through(struct inliner *in, om_op *op, om_clone *c, om_value *v, const om_value *inner)
{
	om_value *source = c->value[inner->id];

	if (!source)
		return om_fail(in->r->session, OM_INVALID, "%s: function %s computes it from an input that the call omits",
			v->name, op->call->name);
	om_clone_through(c, source, v, op);
	return OM_OK;
}

static om_status inline_call(struct inliner *in, om_op *op);

/* Calls in the bodies of an op that was copied. */
static om_status
inline_bodies(struct inliner *in, om_op *op)
{
	for (uint32_t k = 0; k < op->nbody; k++)
		for (om_op *o = op->body[k]->first, *next; o; o = next) {
			next = o->next;
			OM_TRY(o->call && !om_op_bind(o) ? inline_call(in, o) : inline_bodies(in, o));
		}
	return OM_OK;
}

static om_status
copy_body(struct inliner *in, om_op *op, om_clone *c, om_value **through)
{
	const om_block *body = op->call->body;

	for (om_op *o = body->first; o; o = o->next) {
		om_op *copy;
		OM_TRY(om_op_clone(c, o, op->block, op, &copy));
		if (in->p->nop > MOST_OPS)
			return om_fail(in->r->session, OM_UNSUPPORTED, "inlining makes more than %d ops", MOST_OPS);
		OM_TRY(copy->call && !om_op_bind(copy) ? inline_call(in, copy) : inline_bodies(in, copy));
	}
	for (uint32_t k = 0; k < op->nout; k++)
		if (through[k])
			OM_TRY(hand_through(in, op, c, through[k], body->result[k]));
	return OM_OK;
}

static om_status
inline_call(struct inliner *in, om_op *op)
{
	const om_function *fn = op->call;
	struct call call = {op, fn};

	OM_TRY(enter(in, op));
	om_clone c = om_clone_new(in->r->session, in->p, fn->body->prog, in->r->scratch,
		om_printf(in->r->scratch, "%s_%lu/", fn->name, in->next++));
	c.ref = resolve;
	c.arg = &call;
	for (uint32_t k = 0; k < op->nin; k++)
		c.value[fn->body->param[k]->id] = op->in[k];
	OM_TRY(copy_body(in, op, &c, om_clone_take_outputs(&c, op, fn->body)));
	in->depth--;
	om_op_delete(op);
	om_count(in->r, "calls", 1);
	return OM_OK;
}

static om_status
run(om_run *r, om_prog *p)
{
	struct inliner in = {.r = r, .p = p, .next = p->functions ? first_free(p) : 0};
	uint64_t gradients;

	for (om_block *b = p->functions ? p->first : NULL; b; b = b->next)
		for (om_op *op = b->first, *next; op; op = next) {
			next = op->next;
			if (op->call && !om_op_bind(op))
				OM_TRY(inline_call(&in, op));
		}
	OM_TRY(om_op_rules_apply(r->session, p));
	OM_TRY(om_prog_name_gradients(r->session, p, &gradients));
	om_count(r, "gradients", gradients);
	return OM_OK;
}

static const om_pass_counter counters[] = {
	{"calls", "calls that were replaced"},
	{"gradients", "ops Gradient that were replaced"},
	{0}
};

OM_PASS(
	.name = "inline",
	.brief = "replace calls of functions by their bodies",
	.gives = OM_HAS_INLINE,
	.counters = counters,
	.run = run)
