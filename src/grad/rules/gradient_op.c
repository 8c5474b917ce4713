/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient of ai.onnx.preview.training, which refers to values of the graph around it by name.
 *
 * It computes the gradient of a value `y` with respect to `xs`; its inputs are the values of `xs`, and
 * of the `zs` that are held constant, at which that is evaluated.  If an input is the named value
 * itself, the existing ops compute `y`; if it is another value, the ops between are copied, reading
 * that value.  Then the backward path is built as for a loss and inserted in place of the op; its
 * outputs keep their names.  If `y` has several elements, their sum is differentiated.
 *
 * The ops are replaced one after the other in the order of the graph, so that a later one may refer to
 * the results of an earlier one.  This terminates because backward paths contain no such op. */
#include <config.h>

#include "base/guard.h"
#include "base/shape.h"
#include "grad/grad_builder.h"
#include "grad/train/training_step.h"
#include "grad/tape.h"
#include "ir/clone.h"
#include "ir/operators.h"
#include "ir/query.h"
#include "opdef/op_context.h"

struct named {
	om_session *session;
	om_prog *p;
	om_op *op;
	om_arena *mem;
	const om_attr *xs, *zs;
	om_value *y, **x;            /* what is differentiated, and with respect to what */
};

static bool
is_gradient(const om_op *op)
{
	return !op->opdef && !op->call && strcmp(op->type, "Gradient") == 0
	    && strcmp(op->domain, "ai.onnx.preview.training") == 0;
}

/* ---- Attributes and inputs. ---- */

static const om_attr *
names_of(const om_op *op, const char *name)
{
	static const om_attr none = {.kind = OM_ATTR_STRINGS};
	const om_attr *a = om_attr_find(op, name);

	return a && a->kind == OM_ATTR_STRINGS ? a : &none;
}

static om_status
find(const struct named *n, om_string name, om_value **v)
{
	*v = om_value_find(n->p->first, om_strndup(n->mem, name.data, name.size));
	if (*v)
		return OM_OK;
	return om_op_fail(n->session, OM_INVALID, n->op,
		"names %.*s, which is not a value of the graph", (int)name.size,
		name.data);
}

static om_status
read_names(struct named *n)
{
	const om_op *op = n->op;
	const om_attr *y = om_attr_find(op, "y");

	n->xs = names_of(op, "xs");
	n->zs = names_of(op, "zs");
	if (!y || y->kind != OM_ATTR_STRING || n->xs->n == 0)
		return om_op_fail(n->session, OM_INVALID, op, "requires the attributes xs and y");
	if (op->nin != n->xs->n + n->zs->n || op->nout > n->xs->n)
		return om_op_fail(n->session, OM_INVALID, op,
			"has %u inputs and %u outputs, but xs has %zu names and zs %zu", op->nin, op->nout, n->xs->n, n->zs->n);
	for (uint32_t k = 0; k < op->nin; k++)
		if (!op->in[k])
			return om_op_fail(n->session, OM_INVALID, op, "input %u is omitted", k);
	OM_TRY(find(n, y->s[0], &n->y));
	for (const om_op *o = n->y->def; o; o = o->next)
		if (o == op)
			return OM_OK;
	return n->y->def ? om_op_fail(n->session, OM_UNSUPPORTED, op,
		"names %s, which is computed after it", n->y->name)
	    : OM_OK;
}

/* ---- The graph at other values. ---- */

static bool
is_other(const om_clone *c, const om_value *v)
{
	return v && v->id < c->nvalue && c->value[v->id];
}

static bool
reads_other(const om_clone *c, const om_op *op)
{
	for (uint32_t k = 0; k < op->nin; k++)
		if (is_other(c, op->in[k]))
			return true;
	for (uint32_t b = 0; b < op->nbody; b++) {
		for (uint32_t k = 0; k < op->body[b]->nresult; k++)
			if (is_other(c, op->body[b]->result[k]))
				return true;
		for (const om_op *o = op->body[b]->first; o; o = o->next)
			if (reads_other(c, o))
				return true;
	}
	return false;
}

/* Map the outputs of an op to those of its copy, in c->value. */
static om_status
copy_between(struct named *n, om_clone *c)
{
	for (const om_op *o = n->p->first->first; o && n->y->def; o = o->next) {
		om_op *copy;
		if (reads_other(c, o))
			OM_TRY(om_op_clone(c, o, n->p->first, n->op, &copy));
		if (o == n->y->def)
			break;
	}
	return OM_OK;
}

static om_status
use_inputs(struct named *n)
{
	om_clone c = om_clone_new(n->session, n->p, n->p, n->mem, om_printf(n->mem, "%s_at/", n->op->out[0] ? n->op->out[0]->name
		: n->y->name));
	bool differ = false;

	n->x = OM_NEWN(n->mem, om_value *, n->xs->n);
	for (uint32_t k = 0; k < n->op->nin; k++) {
		om_value *named;
		OM_TRY(find(n, k < n->xs->n ? n->xs->s[k] : n->zs->s[k - n->xs->n], &named));
		if (named != n->op->in[k])
			c.value[named->id] = n->op->in[k];
		differ |= named != n->op->in[k];
		if (k < n->xs->n)
			n->x[k] = n->op->in[k];
	}
	if (!differ)
		return OM_OK;
	OM_TRY(copy_between(n, &c));
	if (c.value[n->y->id])
		n->y = c.value[n->y->id];
	return om_block_infer(n->session, n->p, n->p->first);
}

/* ---- The backward path. ---- */

/* Move the ops that were appended after `last` before the op. */
static void
move_up(struct named *n, const om_op *last)
{
	om_block *b = n->p->first;
	om_op **order = OM_NEWN(n->mem, om_op *, b->nop);
	size_t at = 0;

	for (om_op *o = b->first; o != n->op; o = o->next)
		order[at++] = o;
	for (om_op *o = last->next; o; o = o->next)
		order[at++] = o;
	for (om_op *o = n->op; o != last->next; o = o->next)
		order[at++] = o;
	om_block_set_order(b, order);
}

/* A gradient, or zeros if `y` does not depend on the value, with the name of the output. */
static void
name_result(om_prog *p, om_value *from, om_value *out)
{
	om_op *id = om_op_new(p, "", "Identity", om_opset_version(p, ""), 1, 1);

	om_op_set_in(id, 0, from);
	om_op_set_out(id, 0, out);
	om_op_append(p->first, id);
}

static bool
is_differentiable(const om_value *v)
{
	return v->type.kind == OM_TENSOR && om_dtype_is_float(v->type.elem);
}

static om_status
differentiate(struct named *n)
{
	struct om_tape t = {.session = n->session, .p = n->p, .mem = n->mem};
	om_value **grad = OM_NEWN(n->mem, om_value *, n->xs->n), **wrt = OM_NEWN(n->mem, om_value *, n->xs->n);
	uint32_t *place = OM_NEWN(n->mem, uint32_t, n->xs->n), count = 0;

	for (uint32_t k = 0; k < n->op->nout; k++)
		if (n->op->out[k] && is_differentiable(n->x[k])) {
			place[count] = k;
			wrt[count++] = n->x[k];
		}
	if (!is_differentiable(n->y))
		return om_op_fail(n->session, OM_SHAPE, n->op, "names %s, whose type is not floating-point", n->y->name);
	om_tape_start(&t);
	om_grad *g = om_tape_grad(&t);
	om_backward b = OM_BACKWARD(.loss = n->y, .wrt = wrt, .nwrt = count, .grad = OM_NEWN(n->mem, om_value *, count + 1),
		.seed = om_emit_expand_as(g, om_emit_number(g, n->y, 1), n->y));
	OM_TRY(t.status);
	OM_TRY(om_prog_backward(n->session, n->p, &b));
	for (uint32_t k = 0; k < count; k++)
		grad[place[k]] = b.grad[k];
	om_tape_start(&t);  /* new names were added */
	g = om_tape_grad(&t);
	for (uint32_t k = 0; k < n->op->nout; k++) {
		om_value *out = n->op->out[k];
		if (!out)
			continue;
		n->op->out[k] = NULL;
		out->def = NULL;
		name_result(n->p, grad[k] ? grad[k] : om_emit_zeros_as(g, n->x[k]), out);
	}
	return t.status;
}

static om_status
replace(om_session *s, om_prog *p, om_op *op, om_arena *mem)
{
	struct named n = {.session = s, .p = p, .op = op, .mem = mem};

	OM_TRY(om_block_infer(s, p, p->first));
	OM_TRY(read_names(&n));
	OM_TRY(use_inputs(&n));
	om_op *last = p->first->last;
	OM_TRY(differentiate(&n));
	move_up(&n, last);
	om_op_remove(op);
	return OM_OK;
}

/* ---- All ops. ---- */

static om_op *
first_of(const om_block *b)
{
	om_op *op = b->first;

	while (op && !is_gradient(op))
		op = op->next;
	return op;
}

static om_status
prog_name_gradients_guarded(om_session *s, om_prog *p, uint64_t *n)
{
	const int version = om_opset_version(p, "");
	om_op *op;

	*n = 0;
	for (const om_block *b = p->first->next; b; b = b->next)
		if ((op = first_of(b)))
			return om_op_fail(s, OM_UNSUPPORTED, op,
				"is in a body and cannot refer to values of the graph");
	if (first_of(p->first) && version && version < OM_GRAD_OPSET) {
		OM_TRY(om_block_infer(s, p, p->first));
		OM_TRY(p->operators->convert(s, p));
	}
	for (; (op = first_of(p->first)); ++*n) {
		om_arena *mem = om_arena_new();
		const om_status st = replace(s, p, op, mem);
		om_arena_free(mem);
		OM_TRY(st);
	}
	return OM_OK;
}

om_status
om_prog_name_gradients(om_session *s, om_prog *p, uint64_t *n)
{
	OM_GUARDED(s, prog_name_gradients_guarded(s, p, n));
}
