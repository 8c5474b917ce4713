/* SPDX-License-Identifier: Apache-2.0 */
/* prune: remove ops that no result of the graph depends on.
 *
 * Ops with an effect are kept, and so are unknown ops, which may have one.  A body is kept or removed with
 * its owner; inside it, only ops are kept that its results depend on, or that have an effect. */
#include <config.h>

#include "onnxmem/builder.h"
#include "onnxmem/pass.h"

struct prune {
	om_op **work;          /* required, but their inputs are not marked yet */
	size_t n, cap;
	bool *is_needed;       /* by op id */
	om_arena *mem;
};

static void
need(struct prune *w, om_op *op)
{
	if (!op || w->is_needed[op->id])
		return;
	w->is_needed[op->id] = true;
	OM_PUSH(w->mem, w->work, w->n, w->cap, op);
}

static void
need_results(struct prune *w, const om_block *b)
{
	for (uint32_t k = 0; k < b->nresult; k++)
		need(w, b->result[k]->def);
}

/* An op with an effect requires all enclosing ops. */
static void
need_effects(struct prune *w, const om_block *b)
{
	for (om_op *op = b->first; op; op = op->next) {
		if (!op->opdef || op->opdef->flags & OM_EFFECT)
			for (om_op *holder = op; holder; holder = holder->block->owner)
				need(w, holder);
		for (uint32_t k = 0; k < op->nbody; k++)
			need_effects(w, op->body[k]);
	}
}

static void
need_all(struct prune *w)
{
	while (w->n) {
		const om_op *op = w->work[--w->n];
		for (uint32_t k = 0; k < op->nin; k++)
			if (op->in[k])
				need(w, op->in[k]->def);
		for (uint32_t k = 0; k < op->nbody; k++)
			need_results(w, op->body[k]);
	}
}

static void
take_out(om_run *r, const struct prune *w, om_block *b)
{
	for (om_op *op = b->first, *next; op; op = next) {
		next = op->next;
		if (!w->is_needed[op->id]) {
			om_op_remove(op);
			om_count(r, "ops", 1);
			continue;
		}
		for (uint32_t k = 0; k < op->nbody; k++)
			take_out(r, w, op->body[k]);
	}
}

static om_status
run(om_run *r, om_prog *p)
{
	struct prune w = {.mem = r->scratch, .is_needed = OM_NEWN(r->scratch, bool, p->nop)};

	need_results(&w, p->first);
	need_effects(&w, p->first);
	need_all(&w);
	take_out(r, &w, p->first);
	return OM_OK;
}

static const om_pass_counter counters[] = {
	{"ops", "ops that were removed, not counting those in their bodies"},
	{0}
};

OM_PASS(
	.name = "prune",
	.brief = "remove ops that no result depends on",
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.counters = counters,
	.run = run)
