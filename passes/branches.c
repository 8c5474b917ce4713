/* SPDX-License-Identifier: Apache-2.0 */
/* branches: replace each If whose condition is a constant by the ops of the branch that it takes.
 *
 * Values of the branch get a unique prefix; the outputs of the If keep their names.  If a branch returns a value that it does not
 * compute, the output becomes an Identity.  An If in a branch is replaced before the If that has the branch. */
#include <config.h>

#include "ir/clone.h"
#include "ir/query.h"
#include "onnxmem/pass.h"
#include "opdef/rewrite_internal.h"

/* The branch that is taken; NULL: it is not known, or `op` is no If. */
static const om_block *
taken(const om_op *op)
{
	if (!op->opdef || op->opdef->control != OM_IF || op->nin == 0 || !op->in[0] || !op->in[0]->is_const)
		return NULL;
	if (om_value_is(op->in[0], true))
		return om_attr_graph(op, "then_branch");
	return om_value_is(op->in[0], false) ? om_attr_graph(op, "else_branch") : NULL;
}

/* A prefix that no name has. */
static const char *
fresh_prefix(const om_prog *p, const om_op *op, om_arena *mem)
{
	const char *prefix;
	bool is_used = true;

	for (uint32_t n = op->id; is_used; n++) {
		prefix = om_printf(mem, "branch_%u/", n);
		is_used = false;
		for (uint32_t k = 0; k < p->nvalue && !is_used; k++)
			is_used = strncmp(p->values[k]->name, prefix, strlen(prefix)) == 0;
	}
	return prefix;
}

static om_status
replace(om_run *r, om_prog *p, om_op *op, const om_block *body)
{
	om_clone c = om_clone_new(r->session, p, p, r->scratch, fresh_prefix(p, op, r->scratch));
	om_value **through = om_clone_take_outputs(&c, op, body);

	c.block[body->id] = op->block;   /* that of its constants */
	for (const om_op *o = body->first; o; o = o->next) {
		om_op *copy;
		OM_TRY(om_op_clone(&c, o, op->block, op, &copy));
	}
	for (uint32_t k = 0; k < op->nout; k++)
		if (through[k])
			om_clone_through(&c, om_clone_mapped(&c, body->result[k]), through[k], op);
	om_op_delete(op);
	om_count(r, "branches", 1);
	return OM_OK;
}

static om_status
replace_in(om_run *r, om_prog *p, om_block *b)
{
	for (om_op *op = b->first, *next; op; op = next) {
		next = op->next;
		for (uint32_t k = 0; k < op->nbody; k++)
			OM_TRY(replace_in(r, p, op->body[k]));
		const om_block *body = taken(op);
		if (body && body->nparam == 0 && body->nresult >= op->nout)
			OM_TRY(replace(r, p, op, body));
	}
	return OM_OK;
}

static om_status
run(om_run *r, om_prog *p)
{
	return replace_in(r, p, p->first);
}

static const om_pass_counter counters[] = {
	{"branches", "ops If that were replaced"},
	{0}
};

OM_PASS(
	.name = "branches",
	.brief = "replace each If with a constant condition by its branch",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.keeps = OM_HAS_INLINE,
	.counters = counters,
	.run = run)
