/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies the facts that passes declare to preserve, in builds with --enable-checked.
 *
 * Only facts that can be checked in one traversal are checked: calls, types and shapes,
 * constants.  Inference runs on the program itself, and the previous types and shapes are
 * restored afterwards: a pass that preserves shapes must leave them equal to those that
 * inference computes. */
#include <config.h>

#include "host/host.h"
#include "ir/steps.h"
#include "ir/type.h"
#include "opdef/op_context.h"
#include "ir/facts.h"
#include "onnxmem/assignment.h"
#include "onnxmem/builder.h"

static om_status
check_op(om_host *h, const om_prog *p, const om_op *op)
{
	if (p->has & OM_HAS_INLINE && op->call && !op->opdef)
		return om_fail(h->session, OM_IR, "fact inline does not hold: %s is a call of a function", om_op_label(op));
	for (uint32_t k = 0; k < op->nout && p->has & OM_HAS_CONST && op->is_folded; k++)
		if (op->out[k] && !op->out[k]->is_const)
			return om_fail(h->session, OM_IR,
				"fact const does not hold: %s is folded, but its output %s is not a constant",
				om_op_label(op), op->out[k]->name);
	return OM_OK;
}

/* The members of a value that inference writes, as they were before. */
struct known {
	om_type type;
	om_shape shape;
	const om_tensor *data;
	const om_symbolic_elem *elem;
	bool is_const;
};

/* The result of a state may have the shape of its buffer, where inference does not know how many rows an op writes. */
static bool
is_of_buffer(const om_prog *p, const om_value *v, const om_shape *shape)
{
	for (uint32_t k = 0; k < p->nio_alias; k++)
		if (p->first->result[p->io_alias[k].result] == v && om_shape_equal(shape, &p->first->param[p->io_alias[k].param]->shape))
			return true;
	return false;
}

static om_status
check_shapes(om_host *h, om_prog *p, om_arena *mem)
{
	struct known *was = OM_NEWN(mem, struct known, p->nvalue);
	const uint32_t n = p->nvalue;
	const om_value *wrong = NULL;

	for (uint32_t k = 0; k < n; k++)
		was[k] = (struct known){p->values[k]->type, p->values[k]->shape, p->values[k]->data, p->values[k]->elem,
			p->values[k]->is_const};
	const om_status st = om_block_infer(h->session, p, p->first);
	for (uint32_t k = 0; k < n; k++) {
		om_value *v = p->values[k];
		const bool same = om_type_equal(&v->type, &was[k].type)
			&& (om_shape_equal(&v->shape, &was[k].shape) || is_of_buffer(p, v, &was[k].shape));
		wrong = same || wrong ? wrong : v;
		v->type = was[k].type;
		v->shape = was[k].shape;
		v->data = was[k].data;
		v->elem = was[k].elem;
		v->is_const = was[k].is_const;
	}
	return st != OM_OK || !wrong ? st : om_fail(h->session, OM_IR,
		"fact shapes does not hold: the inferred type or shape of %s differs", wrong->name);
}

om_status
om_facts_check(om_host *h, om_prog *p, unsigned kept)
{
	om_status st = OM_OK;

	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op && st == OM_OK; op = op->next)
			st = check_op(h, p, op);
	if (st == OM_OK && p->has & kept & OM_HAS_SHAPES) {
		om_arena *mem = om_arena_new();
		st = check_shapes(h, p, mem);
		om_arena_free(mem);
	}
	return st;
}

/* The first fact among `given` whose data is missing; 0: none. */
static unsigned
without_data(const om_prog *p, unsigned given)
{
	const om_assignment *a = p->assignment;
	const unsigned assigned = OM_HAS_LIVE | OM_HAS_VIEWS | OM_HAS_STORE;

	if (given & OM_HAS_PLAN && !p->plan)
		return OM_HAS_PLAN;
	if (given & assigned && (!a || !a->live || a->nvalue != p->nvalue))
		return given & assigned & -(given & assigned);
	if (given & OM_HAS_SCHEDULE && (!a || !a->schedule))
		return OM_HAS_SCHEDULE;
	return 0;
}

om_status
om_facts_check_given(om_host *h, om_prog *p, const om_pass *pass)
{
	const unsigned lacks = without_data(p, p->has & pass->gives);

	if (lacks)
		return om_fail(h->session, OM_IR, "pass %s declares to give the fact %s, but did not", pass->name, om_fact_text(lacks));
	if (!(pass->gives & (OM_HAS_INLINE | OM_HAS_SHAPES)))
		return OM_OK;
	const om_status st = om_facts_check(h, p, pass->gives);
	return st == OM_OK ? st : om_note(h->session, st, "checking what pass %s declares to give", pass->name);
}
