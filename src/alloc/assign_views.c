/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs that consist of bytes of an input become views, without storage.
 *
 * The operator definition declares the input and the offset.  The viewed bytes are live as long as
 * their views; the remaining bytes of the storage are free after their last use, so a view of a part
 * costs no more than a copy.
 *
 * Values that leave a block are copied by its owner: results of the graph that belong to the caller are
 * not views, nor are those in the arena views of what is outside of it; and the result of a loop body is not a view of a part of a carried value of that
 * loop, which is overwritten with the results at the end of the iteration.  A view of the whole
 * carried value may be a result.
 */
#include <config.h>

#include "alloc/alias_sets.h"
#include "alloc/assign.h"
#include "alloc/op_facts.h"
#include "onnxmem/plan.h"

struct views {
	const om_prog *p;
	om_assignment *a;
	om_alias_sets *g;
	om_view_counts count;
	bool *is_result;       /* by value id: is a result of its own block */
};

static bool
is_param(const om_value *v)
{
	return !v->def && !v->is_const;
}

static bool
is_whole(const struct views *w, const om_value *v, const om_value *source)
{
	return w->a->facts->bytes[v->id] == w->a->facts->bytes[source->id];
}

/* Would a member of the set be a result of a loop body, and part of a value carried by that loop? */
static bool
would_be_overwritten(const struct views *w, const om_alias_set *group, const om_value *root)
{
	for (size_t k = 0; k < group->n && is_param(root); k++)
		if (w->is_result[group->member[k]->id] && group->member[k]->block == root->block)
			return true;
	return false;
}

/* The source of output `k`; NULL if it must not be a view. */
static om_value *
source_of(const struct views *w, const om_op *op, uint32_t k, uint64_t *offset)
{
	om_value *v = op->out[k];
	om_view_of view;

	if (!v || v->is_const || !om_op_facts_view(w->a->facts, op, k, &view))
		return NULL;
	om_value *source = op->in[view.in];
	const om_alias_set *from = om_alias_sets_find(w->g, v, NULL), *to = om_alias_sets_find(w->g, source, NULL);
	if (!from || !to || from == to || from->root != v)
		return NULL;
	if (w->is_result[v->id] && v->block == w->p->first && to->is_outside)
		return NULL;
	if (w->a->request->ranged && (view.offset || (op->opdef->flags & OM_PART && is_whole(w, v, source))))
		return NULL;  /* they depend on sizes: a part is all of its input for some only */
	if (!is_whole(w, v, to->root) && would_be_overwritten(w, from, to->root))
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
		if (!source || is_whole(w, op->out[k], source) == parts)
			continue;
		const om_alias_edge same = {op->out[k], offset};
		const bool done = om_alias_sets_merge_at(w->g, source, &same, 1, OM_VIEW);
		++*(!done ? &w->count.copied : parts ? &w->count.slices : &w->count.views);
	}
}

static void
walk(struct views *w, const om_block *b, bool parts)
{
	for (om_op *const *at = w->a->schedule->ops[b->id]; *at; at++) {
		const om_op *op = *at;
		if (!op->is_folded && op->opdef && op->opdef->view)
			view_outputs(w, op, parts);
		for (uint32_t k = 0; k < op->nbody; k++)
			walk(w, op->body[k], parts);
	}
}

static om_assignment *
without_storage(const om_assignment *in, om_arena *mem)
{
	om_assignment *a = om_assignment_copy(in->before_loops ? in->before_loops : in, mem);

	memset(a->backing, 0, a->nvalue * sizeof *a->backing);
	a->overwrite = NULL;
	a->before_loops = NULL;
	return a;
}

om_assignment *
om_assign_views(const om_prog *p, const om_assignment *in, om_arena *mem, om_view_counts *count)
{
	om_arena *tmp = om_arena_new();
	struct views w = {.p = p, .a = without_storage(in, mem), .is_result = OM_NEWN(tmp, bool, p->nvalue)};

	for (const om_block *b = p->first; b; b = b->next)
		for (uint32_t k = 0; k < b->nresult; k++)
			if (b->result[k]->block == b)
				w.is_result[b->result[k]->id] = true;
	w.g = om_alias_sets_new(p, w.a, tmp);
	walk(&w, p->first, false);
	walk(&w, p->first, true);
	if (count)
		*count = w.count;
	om_arena_free(tmp);
	return w.a;
}
