/* Values are computed where they go, or over what is not needed any more.
 *
 * First, inputs that an op would copy into its output, Concat's, are computed right
 * there: the operator's row says where that is.  Inputs that share storage go
 * together.  The output may go into another one's in turn, so parts nest to any
 * depth.
 *
 * Then, an output is computed over an input.  The row says which may lie over
 * which.  It does, when this op is the last to need the input's bytes: nobody
 * whose bytes they are too, a view or what was computed there before, is read
 * later, nor by this op through another of its inputs.  Values that a body uses
 * live as long as the op that holds the body, and what goes round a loop as long
 * as the loop, so neither is ever overwritten inside.
 *
 * The results of the graph lie in memory of the caller, which is there from the
 * start: what leads to them may be computed there.
 *
 * Where several inputs would do, one of as many bytes is taken before a larger
 * one; then that with the larger, then with the longer-lived storage.
 *
 * Parts lie where their whole does, which may leave holes: where the arena is larger
 * than what is in use at its peak, it is tried without them.
 *
 * Who may move where is for om_alias_sets_merge_at() and om_alias_sets_merge_inplace() to decide, and
 * an alias is written there only, together with the move that it stands for.
 */
#include <config.h>

#include "onnxmem/plan.h"

struct inplace {
	const om_prog *p;
	om_assignment *a;
	om_arena *tmp;
	om_alias_sets *g;
	uint64_t parts;          /* how many there are */
};

/* May others be computed in the storage of `v`, before it is?  The memory of a
 * result of the graph is there from the start of a run: what is computed there
 * takes no room in the arena. */
static bool
may_hold(const struct inplace *w, const om_alias_set *group, const om_value *v)
{
	return group && v->def && !v->is_const && w->a->facts->bytes[v->id]
	    && (!group->is_outside || (group->root == v && !v->def->is_folded));
}

/* ---- Parts. ---- */

/* Could input `k` be computed right in the output? */
static bool
may_be_part(const struct inplace *w, const om_op *op, uint32_t k, uint64_t *offset)
{
	const om_value *v = op->in[k];
	const om_alias_set *group = v && !v->is_const ? om_alias_sets_find(w->g, v, NULL) : NULL;

	return group && group->bytes && group->root->def && group->root->block == op->block && w->a->facts->bytes[v->id]
	    && om_op_facts_subbuffer(w->a->facts, op, k, offset);
}

/* All inputs from `k` on that lie in the storage of input `k`, as they would in the
 * output. */
static uint32_t
list_same(const struct inplace *w, const om_op *op, uint32_t k, om_alias_edge *same)
{
	const om_alias_set *group = om_alias_sets_find(w->g, op->in[k], NULL);
	uint64_t at, offset, base = 0;
	uint32_t n = 0;

	for (; k < op->nin; k++) {
		if (!op->in[k] || om_alias_sets_find(w->g, op->in[k], &at) != group || !may_be_part(w, op, k, &offset))
			continue;
		if (n && offset - at != base)
			continue;
		base = offset - at;
		same[n++] = (om_alias_edge){op->in[k], offset};
	}
	return n;
}

static void
place_parts(struct inplace *w, const om_op *op)
{
	om_value *out = op->out[0];
	const om_alias_set *own = om_alias_sets_find(w->g, out, NULL);
	om_alias_edge *same = OM_NEWN(w->tmp, om_alias_edge, op->nin);
	uint64_t offset;

	if (!may_hold(w, own, out) || w->a->backing[out->id].store == OM_VIEW)
		return;
	for (uint32_t k = 0; k < op->nin; k++) {
		if (!may_be_part(w, op, k, &offset) || om_alias_sets_find(w->g, op->in[k], NULL) == own)
			continue;
		const uint32_t n = list_same(w, op, k, same);
		if (om_alias_sets_merge_at(w->g, out, same, n, OM_SUBBUFFER))
			w->parts += n;
	}
}

/* ---- Outputs over inputs. ---- */

struct candidate {
	om_value *v;
	uint64_t waste, bytes, life;
};

static bool
is_better(const struct candidate *a, const struct candidate *b)
{
	if (!b->v || a->waste != b->waste)
		return !b->v || a->waste < b->waste;
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes;
	return a->life > b->life;
}

static bool
consider(const struct inplace *w, const om_op *op, uint32_t out, uint32_t in, struct candidate *c)
{
	om_value *v = op->in[in];
	const om_alias_set *to = v && !v->is_const ? om_alias_sets_find(w->g, v, NULL) : NULL;

	for (uint32_t k = 0; k < in; k++)
		if (op->in[k] == v)
			return false;
	if (!to || to->bytes == 0 || w->a->live[v->id].last > w->a->schedule->of_op[op->id].first
	    || !om_op_facts_inplace_value(w->a->facts, op, out, v))
		return false;
	*c = (struct candidate){.v = v, .bytes = to->bytes, .life = to->last - to->first,
		.waste = w->a->facts->bytes[v->id] - w->a->facts->bytes[op->out[out]->id]};
	return true;
}

static uint32_t
list_candidates(const struct inplace *w, const om_op *op, uint32_t out, struct candidate *all)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < op->nin; k++) {
		struct candidate c;
		if (!consider(w, op, out, k, &c))
			continue;
		uint32_t at = n++;
		for (; at && is_better(&c, &all[at - 1]); at--)
			all[at] = all[at - 1];
		all[at] = c;
	}
	return n;
}

static void
place_output(struct inplace *w, const om_op *op, uint32_t out)
{
	om_value *o = op->out[out];
	const om_alias_set *own = om_alias_sets_find(w->g, o, NULL);

	if (!may_hold(w, own, o) || (own->root != o && w->a->backing[o->id].store != OM_SUBBUFFER))
		return;
	struct candidate *all = OM_NEWN(w->tmp, struct candidate, op->nin);
	const uint32_t n = list_candidates(w, op, out, all);
	for (uint32_t k = 0; k < n; k++)
		if (om_alias_sets_merge_inplace(w->g, o, all[k].v))
			return;
}

/* ---- Both. ---- */

static void
walk(struct inplace *w, const om_block *b, bool parts)
{
	for (om_op *const *at = w->a->schedule->ops[b->id]; *at; at++) {
		const om_op *op = *at;
		if (parts && !op->is_folded && op->opdef && op->opdef->subbuffer)
			place_parts(w, op);
		for (uint32_t k = 0; k < op->nout && !parts; k++)
			if (op->out[k] && !op->is_folded && !op->nbody && op->opdef && op->opdef->inplace)
				place_output(w, op, k);
		for (uint32_t k = 0; k < op->nbody; k++)
			walk(w, op->body[k], parts);
	}
}

/* What is on the way to a result that was put in the memory of an input. */
static bool
is_tied(const om_assignment *a, uint32_t v)
{
	return a->backing[v].store == OM_SUBBUFFER && a->backing[a->backing[v].source->id].store == OM_IO_ALIAS;
}

/* `in` without what an earlier decision of this kind says. */
static om_assignment *
undecided(const om_assignment *in, om_arena *mem)
{
	om_assignment *a = om_assignment_copy(in->before_loops ? in->before_loops : in, mem);

	for (uint32_t k = 0; k < a->nvalue; k++)
		if ((a->backing[k].store == OM_INPLACE || a->backing[k].store == OM_SUBBUFFER) && !is_tied(a, k))
			a->backing[k] = (om_backing){.store = OM_OWN};
	return a;
}

/* Decide about all values; how many are parts. */
static uint64_t
decide(const om_prog *p, om_assignment *a, bool parts)
{
	struct inplace w = {.p = p, .a = a, .tmp = om_arena_new()};

	w.g = om_alias_sets_new(p, a, w.tmp);
	if (parts)
		walk(&w, p->first, true);
	walk(&w, p->first, false);
	om_arena_free(w.tmp);
	return w.parts;
}

om_status
om_assign_inplace(om_session *s, const om_prog *p, const om_assignment *in, om_subbuffers how, om_arena *mem,
	const om_assignment **out)
{
	om_assignment *with = undecided(in, mem);
	om_arena_size joined, apart;
	bool is_smaller;

	*out = with;
	if (!decide(p, with, how != OM_SUBBUFFERS_NO) || how != OM_SUBBUFFERS_TRY || p->parallel_safe)
		return OM_OK;
	OM_TRY(om_assignment_size(s, p, with, &joined));
	if (joined.bytes == joined.bound)
		return OM_OK;
	om_assignment *without = undecided(in, mem);
	decide(p, without, false);
	OM_TRY(om_assignment_size(s, p, without, &apart));
	is_smaller = apart.bytes <= joined.bound;
	if (!is_smaller)
		OM_TRY(om_assignment_is_smaller(s, p, without, &apart, with, &joined, &is_smaller));
	if (is_smaller)
		*out = without;
	return OM_OK;
}
