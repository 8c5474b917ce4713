/* SPDX-License-Identifier: Apache-2.0 */
/* Differentiation by decomposition.
 *
 * The rule builds the operator again from smaller ones, in the backward path; those are differentiated
 * in reverse order, and the ops that only the recomputed outputs required are removed.  So only the
 * inputs are kept from the forward path: everything else is recomputed where it is required.
 */
#include <config.h>

#include "grad/bodies.h"
#include "grad/grad_builder.h"
#include "ir/edit.h"

/* ---- Removal of unread ops. ---- */

static void
mark_reads(const om_block *b, bool *is_read);

void
om_mark_reads(const om_op *op, bool *is_read)
{
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k])
			is_read[op->in[k]->id] = true;
	for (uint32_t k = 0; k < op->nbody; k++)
		mark_reads(op->body[k], is_read);
}

static void
mark_reads(const om_block *b, bool *is_read)
{
	for (uint32_t k = 0; k < b->nresult; k++)
		is_read[b->result[k]->id] = true;
	for (const om_op *op = b->first; op; op = op->next)
		om_mark_reads(op, is_read);
}

bool
om_is_read(const om_op *op, const bool *is_read)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && is_read[op->out[k]->id])
			return true;
	return false;
}

/* Mark the gradients accumulated so far: they are read later. */
static void
mark_gradients(const om_scope *s, bool *is_read)
{
	for (; s; s = s->outer)
		for (uint32_t k = 0; k < s->nvalue; k++)
			if (s->grad[k])
				is_read[s->grad[k]->id] = true;
}

/* Remove the ops of [first, last] whose outputs have no users. */
static void
take_out(om_grad *g, om_op *first, om_op *last)
{
	bool *is_read = OM_NEWN(om_grad_mem(g), bool, (size_t)om_grad_prog(g)->nvalue + 1);
	om_op *prev;

	mark_gradients(om_grad_scope(g), is_read);
	for (const om_op *op = last->next; op; op = op->next)
		om_mark_reads(op, is_read);
	for (om_op *op = last;; op = prev) {
		const bool is_first = op == first;
		prev = op->prev;
		if (om_is_read(op, is_read)) {
			om_mark_reads(op, is_read);
		} else {
			for (uint32_t k = 0; k < op->nbody; k++)
				om_block_remove(op->body[k]);
			om_op_remove(op);
		}
		if (is_first)
			return;
	}
}

/* ---- Reverse pass over the decomposition. ---- */

static void
give_first(om_grad *g, om_scope *s)
{
	const om_op *op = om_grad_op(g);

	for (uint32_t k = 0; k < op->nin; k++) {
		bool is_given = !om_grad_is_needed(g, k);
		for (uint32_t i = 0; i < k; i++)
			is_given |= op->in[i] == op->in[k];
		om_grad_set_input_grad(g, k, is_given ? NULL : om_scope_gradient(s, om_grad_forward_input(g, k)));
	}
}

static void
walk_parts(om_grad *g, om_value *const *out, om_op *first, om_op *last)
{
	om_scope *s = om_scope_new(g, om_grad_scope(g)->to, om_grad_scope(g)->to);

	s->first = first;
	s->last = last;
	for (uint32_t k = 0; k < om_grad_op(g)->nin; k++)
		if (om_grad_is_needed(g, k))
			om_scope_request(s, om_grad_forward_input(g, k));
	om_scope_mark_active(s);
	for (uint32_t k = 0; k < om_grad_op(g)->nout; k++)
		if (om_grad_output_grad(g, k) && out[k])
			om_scope_seed(s, out[k], om_grad_output_grad(g, k));
	if (om_scope_run(s) == OM_OK)
		give_first(g, s);
}

void
om_grad_by_decomposition(om_grad *g, void (*build)(om_grad *g, om_value **out))
{
	const om_op *op = om_grad_op(g);
	om_block *to = om_grad_scope(g)->to;
	om_op *before = to->last;
	om_value **out = OM_NEWN(om_grad_mem(g), om_value *, (size_t)op->nout + 1);

	for (uint32_t k = 0; k < op->nin; k++)
		if (om_grad_is_needed(g, k))
			(void)om_grad_forward_input(g, k);
	build(g, out);
	om_op *first = before ? before->next : to->first, *last = to->last;
	if (om_grad_failed(g))
		return;
	for (uint32_t k = 0; k < op->nout; k++)
		if (om_grad_output_grad(g, k) && !out[k])
			om_grad_fail(g, OM_UNSUPPORTED,
				"no gradient passes through its output %s", op->out[k]->name);
	if (om_grad_failed(g))
		return;
	walk_parts(g, out, first, last);
	if (!om_grad_failed(g))
		take_out(g, first, last);
}
