/* views: outputs that hold the very bytes of an input get no storage.
 *
 * The operator's row says where in which input.  The bytes that are viewed are
 * needed as long as their views; what else there was in the storage is free once
 * nobody reads it any more, so a view of a part costs no more than a copy.
 *
 * What leaves a block is copied by whoever owns the block: the results of the
 * graph belong to the caller, so they are no views; and the result of a loop
 * body is no view of a part of what goes round in that loop, which is overwritten
 * with the results at the end of the round.  All of it may be handed on.
 */
#include <config.h>

#include "onnxmem/pass.h"
#include "onnxmem/plan.h"

struct views {
	om_run *r;
	om_prog *p;
	om_alias_sets *g;
	bool *is_result;       /* by value id: of its own block */
};

static bool
is_param(const om_value *v)
{
	return !v->def && !v->is_const;
}

static bool
is_whole(const om_value *v, const om_value *source)
{
	uint64_t a, b;

	return om_tensor_bytes(v->type.elem, &v->shape, &a)
	    && om_tensor_bytes(source->type.elem, &source->shape, &b) && a == b;
}

/* Would one of the group be a result of a loop body, and part of what goes round? */
static bool
would_be_overwritten(const struct views *w, const om_alias_set *group, const om_value *root)
{
	for (size_t k = 0; k < group->n && is_param(root); k++)
		if (w->is_result[group->member[k]->id] && group->member[k]->block == root->block)
			return true;
	return false;
}

/* The source of output `k`; NULL when it is not to be a view. */
static om_value *
source_of(const struct views *w, const om_op *op, uint32_t k, uint64_t *offset)
{
	om_value *v = op->out[k];
	om_view_of view;

	if (!v || v->is_const || !om_op_view(op, k, &view))
		return NULL;
	om_value *source = op->in[view.in];
	const om_alias_set *from = om_alias_sets_find(w->g, v, NULL), *to = om_alias_sets_find(w->g, source, NULL);
	if (!from || !to || from == to || from->root != v)
		return NULL;
	if (w->is_result[v->id] && v->block == w->p->first)
		return NULL;
	if (!is_whole(v, to->root) && would_be_overwritten(w, from, to->root))
		return NULL;
	*offset = view.offset;
	return source;
}

static void
view_outputs(struct views *w, const om_op *op, bool parts)
{
	uint64_t offset;

	for (uint32_t k = 0; k < op->nout; k++) {
		om_value *source = source_of(w, op, k, &offset);
		if (!source || is_whole(op->out[k], source) == parts)
			continue;
		const om_alias_edge same = {op->out[k], offset};
		const bool done = om_alias_sets_merge_at(w->g, source, &same, 1, OM_VIEW);
		om_count(w->r, !done ? "copied" : parts ? "parts" : "whole", 1);
	}
}

static void
walk(struct views *w, const om_block *b, bool parts)
{
	for (const om_op *op = b->first; op; op = op->next) {
		if (!op->is_folded && op->opdef && op->opdef->view)
			view_outputs(w, op, parts);
		for (uint32_t k = 0; k < op->nbody; k++)
			walk(w, op->body[k], parts);
	}
}

static void
forget(om_prog *p)
{
	om_multi_views_forget(p);
	for (uint32_t k = 0; k < p->nvalue; k++) {
		om_value_set_storage(p->values[k], OM_OWN, NULL, 0);
		p->values[k]->rounds = NULL;
	}
}

static om_status
run(om_run *r, om_prog *p)
{
	struct views w = {.r = r, .p = p, .is_result = OM_NEWN(r->scratch, bool, p->nvalue)};

	forget(p);
	for (const om_block *b = p->first; b; b = b->next)
		for (uint32_t k = 0; k < b->nresult; k++)
			if (b->result[k]->block == b)
				w.is_result[b->result[k]->id] = true;
	w.g = om_alias_sets_new(p, r->scratch);
	walk(&w, p->first, false);
	walk(&w, p->first, true);
	return OM_OK;
}

static const om_pass_counter counters[] = {
	{"whole", "outputs that are an input in another shape"},
	{"parts", "outputs that are a part of an input"},
	{"copied", "outputs that are copied, because bytes would be overwritten"},
	{0}
};

OM_PASS(
	.name = "views",
	.brief = "give no storage to outputs that hold the bytes of an input",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE,
	.gives = OM_HAS_VIEWS,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE,
	.counters = counters,
	.run = run)
