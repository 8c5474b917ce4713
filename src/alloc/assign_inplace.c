/* SPDX-License-Identifier: Apache-2.0 */
/* In-place assignment: sub-buffers of concatenations, and outputs that overwrite inputs.
 *
 * First, inputs that an op would copy into its output, such as those of Concat, become sub-buffers of
 * it, computed at their final offset as declared by the operator definition.  Inputs that share
 * storage are moved together.  The output may be a sub-buffer of another value in turn, so sub-buffers
 * nest to any depth.  So does an input that is all of the output, as that of Reshape, where the output
 * cannot be a view: the results of the graph are memory of the caller, and the input is computed there.
 *
 * Then, outputs are computed over inputs.  The definition declares which output may overwrite which
 * input.  The op must be the last use of the input's bytes: no other value with these bytes, such as a
 * view or a value computed in place before, is read later, nor by this op through another of its
 * inputs.  What a loop captures or carries is live as long as the loop, and is not overwritten inside of
 * it.  What a branch captures may be overwritten there by its last use: no other branch runs.
 *
 * The results of the graph are stored in memory of the caller, which exists from the start of a run:
 * values that lead to them may be computed there.
 *
 * Among several candidate inputs, one of equal size is preferred to a larger one; then the one with
 * the larger storage, then the one with the longer-lived storage.
 *
 * Sub-buffers have fixed offsets in the whole value, which may leave holes: if the arena is larger
 * than the peak live bytes, an assignment without sub-buffers is tried, too.
 *
 * om_alias_sets_merge_at() and om_alias_sets_merge_inplace() decide which sets may be merged, and only
 * they record the backing.
 *
 * Every test of a pair of an output and an input gives an om_overwrite.  If the caller requests them, they are kept, and
 * om_assignment_overwrite() looks them up: what is reported is what was decided.
 */
#include <config.h>

#include <stdlib.h>

#include "alloc/alias_sets.h"
#include "alloc/assign.h"
#include "alloc/op_facts.h"
#include "ir/live_interval.h"
#include "onnxmem/plan.h"

#define NONE UINT32_MAX

/* The first input of an op that is in a set. */
struct first_input {
	const om_op *op;
	uint32_t in;
};

/* May `out`, the output at hand, be computed over a value? */
struct over {
	const om_value *out;
	bool is_allowed;         /* by the definition, for every input that is the value */
	bool is_listed;
};

struct inplace {
	const om_prog *p;
	om_assignment *a;
	om_arena *tmp;
	om_alias_sets *g;
	uint64_t parts;          /* number of sub-buffers */
	struct first_input *first; /* by id of the root of a set */
	struct over *over;       /* by value id */
	om_overwrite_reason **reason; /* as om_assignment.overwrite; NULL: not wanted */
	om_arena *mem;           /* of reasons */
	om_overwrite no_parts;   /* why there are no sub-buffers, if there are none */
};

/* ---- Reasons. ---- */

/* The first reason for a pair is kept. */
static void
note(const struct inplace *w, const om_op *op, uint32_t out, uint32_t in, om_overwrite why, const om_value *by)
{
	if (!w->reason)
		return;
	om_overwrite_reason **of = &w->reason[op->id];
	if (!*of)
		*of = OM_NEWN(w->mem, om_overwrite_reason, (size_t)op->nout * op->nin);
	om_overwrite_reason *r = &(*of)[(size_t)out * op->nin + in];
	if (r->why == OM_OVERWRITE_UNDECIDED)
		*r = (om_overwrite_reason){why, by};
}

/* The same for all inputs. */
static void
note_all(const struct inplace *w, const om_op *op, uint32_t out, om_overwrite why)
{
	for (uint32_t k = 0; k < op->nin && w->reason; k++)
		if (op->in[k])
			note(w, op, out, k, op->in[k]->is_const ? OM_OVERWRITE_CONST : why, NULL);
}

/* The last merge was refused. */
static void
note_refusal(const struct inplace *w, const om_op *op, uint32_t out, uint32_t in)
{
	const om_overwrite_reason r = om_alias_sets_refusal(w->g);

	note(w, op, out, in, r.why, r.by);
}

/* May other values be computed in the storage of `v`, before `v` is?  The memory of a result of the
 * graph exists from the start of a run: a value that is computed there, in the result itself or in a
 * sub-buffer of it, occupies no arena space. */
static bool
may_hold(const struct inplace *w, const om_alias_set *group, const om_value *v)
{
	return group && v->def && !v->is_const && w->a->facts->bytes[v->id]
	    && (!group->is_outside || (group->root->def && !group->root->def->is_folded));
}

/* ---- Sub-buffers. ---- */

/* Could input `k` be computed directly in the output? */
static bool
may_be_part(const struct inplace *w, const om_op *op, uint32_t k, uint64_t *offset)
{
	const om_value *v = op->in[k];
	const om_alias_set *group = v && !v->is_const ? om_alias_sets_find(w->g, v, NULL) : NULL;

	return group && group->bytes && group->root->def && group->root->block == op->block && w->a->facts->bytes[v->id]
	    && om_op_facts_subbuffer(w->a->facts, op, k, offset);
}

/* By input that could be computed in the output: the next one of the same set; NONE after the last. */
static uint32_t *
link_inputs(struct inplace *w, const om_op *op)
{
	uint32_t *next = OM_NEWN(w->tmp, uint32_t, op->nin);
	uint64_t offset;

	for (uint32_t k = op->nin; k-- > 0;) {
		if (!may_be_part(w, op, k, &offset))
			continue;
		struct first_input *first = &w->first[om_alias_sets_find(w->g, op->in[k], NULL)->root->id];
		next[k] = first->op == op ? first->in : NONE;
		*first = (struct first_input){op, k};
	}
	return next;
}

/* All inputs from `k` on that share the storage of input `k` with the same relative offsets as in the
 * output. */
static uint32_t
list_same(const struct inplace *w, const om_op *op, uint32_t k, const uint32_t *next, om_alias_edge *same)
{
	uint64_t at, offset, base = 0;
	uint32_t n = 0;

	for (; k != NONE; k = next[k]) {
		om_alias_sets_find(w->g, op->in[k], &at);
		may_be_part(w, op, k, &offset);
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
	uint64_t offset;

	if (!may_hold(w, own, out) || w->a->backing[out->id].store == OM_VIEW)
		return;
	om_alias_edge *same = OM_NEWN(w->tmp, om_alias_edge, op->nin);
	const uint32_t *next = link_inputs(w, op);
	for (uint32_t k = 0; k < op->nin; k++) {
		own = om_alias_sets_find(w->g, out, NULL);
		if (!may_be_part(w, op, k, &offset) || om_alias_sets_find(w->g, op->in[k], NULL) == own)
			continue;
		const uint32_t n = list_same(w, op, k, next, same);
		if (om_alias_sets_merge_at(w->g, out, same, n, OM_SUBBUFFER))
			w->parts += n;
		else
			note_refusal(w, op, 0, k);
	}
	for (uint32_t k = 0; k < op->nin && w->reason; k++)
		if (may_be_part(w, op, k, &offset) && om_alias_sets_find(w->g, op->in[k], NULL) == om_alias_sets_find(w->g, out, NULL))
			note(w, op, 0, k, OM_OVERWRITE_PART, NULL);
}

/* Sub-buffers that were not made, because none were. */
static void
note_parts(struct inplace *w, const om_op *op)
{
	const om_alias_set *own = om_alias_sets_find(w->g, op->out[0], NULL);
	uint64_t offset;

	for (uint32_t k = 0; k < op->nin && w->reason && w->no_parts; k++)
		if (may_hold(w, own, op->out[0]) && may_be_part(w, op, k, &offset))
			note(w, op, 0, k, w->no_parts, NULL);
}

/* ---- Outputs over inputs. ---- */

struct candidate {
	om_value *v;
	uint32_t in;
	uint64_t waste, bytes, life;
};

/* The better one first; of equal ones, the earlier input. */
static int
by_rank(const void *x, const void *y)
{
	const struct candidate *a = x, *b = y;

	if (a->waste != b->waste)
		return a->waste < b->waste ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	if (a->life != b->life)
		return a->life > b->life ? -1 : 1;
	return (a->in > b->in) - (a->in < b->in);
}

/* For each input, whether output `out` may be computed over it wherever the op reads it. */
static void
find_allowed(struct inplace *w, const om_op *op, uint32_t out)
{
	for (uint32_t k = 0; k < op->nin; k++) {
		if (!op->in[k])
			continue;
		struct over *o = &w->over[op->in[k]->id];
		if (o->out != op->out[out])
			*o = (struct over){.out = op->out[out], .is_allowed = true};
		o->is_allowed &= om_op_facts_inplace(w->a->facts, op, out, k);
	}
}

/* Is `v` live after `op`, on any path from there?  A plan that must hold for every order has no steps
 * inside of an op of the graph: the whole lifetime counts. */
static bool
is_live_after(const struct inplace *w, const om_value *v, const om_op *op)
{
	const om_live_interval *live = &w->a->live[v->id];
	const uint32_t step = w->a->schedule->of_op[op->id].first;

	return (w->a->request->parallel_safe ? live->last : om_live_interval_until(live, step)) > step;
}

/* The storage of a parameter of a loop is the next iteration's, too: the pass `loops` decides on it. */
static bool
is_loop_parameter(const om_value *v)
{
	return !v->def && !v->is_const && v->block->owner;
}

/* An input of the graph that is in the arena is there before the run, and never in the memory of a result of the caller. */
static bool
is_kept_apart(const om_alias_set *input, const om_alias_set *output)
{
	return output && output->is_outside && !input->is_outside && !input->root->def && !input->root->block->owner;
}

/* Why the output cannot be computed over input `in`, whatever else is in their storages; OM_OVERWRITE_DONE: it can. */
static om_overwrite
obstacle(const struct inplace *w, const om_op *op, uint32_t out, uint32_t in)
{
	const om_value *v = op->in[in];
	const om_alias_set *to = om_alias_sets_find(w->g, v, NULL);
	const om_overwrite defined = om_op_facts_overwrite(w->a->facts, op, out, in);

	if (v->is_const)
		return OM_OVERWRITE_CONST;
	if (!to || (to->bytes == 0 && !to->is_outside))
		return OM_OVERWRITE_NO_SIZE;
	if (to->bytes == 0)
		return OM_OVERWRITE_OUTSIDE;
	if (defined != OM_OVERWRITE_DONE)
		return defined;
	if (!w->over[v->id].is_allowed)
		return OM_OVERWRITE_OTHER_INPUT;
	if (is_live_after(w, v, op))
		return OM_OVERWRITE_LIVE;
	if (is_loop_parameter(to->root))
		return OM_OVERWRITE_CARRIED;
	if (is_kept_apart(to, om_alias_sets_find(w->g, op->out[out], NULL)))
		return OM_OVERWRITE_NO_STORAGE;
	return w->over[v->id].is_listed ? OM_OVERWRITE_REPEATED : OM_OVERWRITE_DONE;
}

static bool
consider(struct inplace *w, const om_op *op, uint32_t out, uint32_t in, struct candidate *c)
{
	om_value *v = op->in[in];
	const om_overwrite why = v ? obstacle(w, op, out, in) : OM_OVERWRITE_CONST;

	if (why != OM_OVERWRITE_DONE) {
		if (v)
			note(w, op, out, in, why, NULL);
		return false;
	}
	const om_alias_set *to = om_alias_sets_find(w->g, v, NULL);
	w->over[v->id].is_listed = true;
	*c = (struct candidate){.v = v, .in = in, .bytes = to->bytes, .life = to->last - to->first,
		.waste = w->a->facts->bytes[v->id] - w->a->facts->bytes[op->out[out]->id]};
	return true;
}

static uint32_t
list_candidates(struct inplace *w, const om_op *op, uint32_t out, struct candidate *all)
{
	uint32_t n = 0;

	find_allowed(w, op, out);
	for (uint32_t k = 0; k < op->nin; k++)
		n += consider(w, op, out, k, &all[n]);
	if (n > 1)
		qsort(all, n, sizeof *all, by_rank);
	return n;
}

/* Why the output is computed over no input, whatever they are; OM_OVERWRITE_DONE: it may be. */
static om_overwrite
output_obstacle(const struct inplace *w, const om_op *op, const om_value *o)
{
	const om_alias_set *own = om_alias_sets_find(w->g, o, NULL);

	if (own && own->root != o && w->a->backing[o->id].store != OM_SUBBUFFER)
		return OM_OVERWRITE_VIEW;
	if (!op->opdef || !op->opdef->inplace)
		return OM_OVERWRITE_NO_RULE;
	return may_hold(w, own, o) ? OM_OVERWRITE_DONE : OM_OVERWRITE_NO_STORAGE;
}

static void
place_output(struct inplace *w, const om_op *op, uint32_t out)
{
	const om_overwrite why = output_obstacle(w, op, op->out[out]);

	if (why != OM_OVERWRITE_DONE) {
		note_all(w, op, out, why);
		return;
	}
	struct candidate *all = OM_NEWN(w->tmp, struct candidate, op->nin);
	const uint32_t n = list_candidates(w, op, out, all);
	bool is_done = false;
	for (uint32_t k = 0; k < n; k++) {
		if (!is_done && !om_alias_sets_merge_inplace(w->g, op->out[out], all[k].v)) {
			note_refusal(w, op, out, all[k].in);
			continue;
		}
		note(w, op, out, all[k].in, is_done ? OM_OVERWRITE_CHOSEN : OM_OVERWRITE_DONE, NULL);
		is_done = true;
	}
}

/* ---- Both. ---- */

static void
walk(struct inplace *w, const om_block *b, bool parts)
{
	for (om_op *const *at = w->a->schedule->ops[b->id]; *at; at++) {
		const om_op *op = *at;
		if (!op->is_folded && op->opdef && (op->opdef->subbuffer || op->opdef->view) && op->nout && op->out[0])
			(parts ? place_parts : note_parts)(w, op);
		for (uint32_t k = 0; k < op->nout && !parts; k++)
			if (op->out[k] && !op->is_folded && !op->nbody)
				place_output(w, op, k);
		for (uint32_t k = 0; k < op->nbody; k++)
			walk(w, op->body[k], parts);
	}
}

/* Is `v` an intermediate value on an update path to a result that is stored over a parameter? */
static bool
is_tied(const om_assignment *a, uint32_t v)
{
	return a->backing[v].store == OM_SUBBUFFER && a->backing[a->backing[v].source->id].store == OM_IO_ALIAS;
}

/* A copy of `in` without earlier decisions of this kind. */
static om_assignment *
undecided(const om_assignment *in, om_arena *mem)
{
	om_assignment *a = om_assignment_copy(in->before_loops ? in->before_loops : in, mem);

	for (uint32_t k = 0; k < a->nvalue; k++)
		if ((a->backing[k].store == OM_INPLACE || a->backing[k].store == OM_SUBBUFFER) && !is_tied(a, k))
			a->backing[k] = (om_backing){.store = OM_OWN};
	return a;
}

/* Decide on all values; returns the number of sub-buffers.  They are made unless `no_parts` says why not.  Reasons are
 * allocated from `mem`; NULL: they are not wanted. */
static uint64_t
decide(const om_prog *p, om_assignment *a, om_overwrite no_parts, om_arena *mem)
{
	struct inplace w = {.p = p, .a = a, .tmp = om_arena_new(), .no_parts = no_parts, .mem = mem};

	w.reason = mem ? OM_NEWN(mem, om_overwrite_reason *, p->nop) : NULL;
	a->overwrite = w.reason;
	w.first = OM_NEWN(w.tmp, struct first_input, p->nvalue);
	w.over = OM_NEWN(w.tmp, struct over, p->nvalue);
	w.g = om_alias_sets_new(p, a, w.tmp);
	if (no_parts == OM_OVERWRITE_UNDECIDED)
		walk(&w, p->first, true);
	walk(&w, p->first, false);
	om_arena_free(w.tmp);
	return w.parts;
}

om_status
om_assign_inplace(om_session *s, const om_prog *p, const om_assignment *in, om_subbuffers how, bool reasons,
	om_arena *mem, const om_assignment **out)
{
	om_assignment *with = undecided(in, mem);
	om_arena *kept = reasons ? mem : NULL;
	om_arena_size joined, apart;
	bool is_smaller;

	*out = with;
	if (in->request->ranged)  /* their offsets depend on the sizes of other inputs */
		how = OM_SUBBUFFERS_NO;
	if (!decide(p, with, how == OM_SUBBUFFERS_NO ? OM_OVERWRITE_DISABLED : OM_OVERWRITE_UNDECIDED, kept) || how != OM_SUBBUFFERS_AUTO || in->request->parallel_safe)
		return OM_OK;
	OM_TRY(om_assignment_size(s, p, with, &joined));
	if (joined.bytes == joined.bound)
		return OM_OK;
	om_assignment *without = undecided(in, mem);
	decide(p, without, OM_OVERWRITE_LARGER, kept);
	OM_TRY(om_assignment_size(s, p, without, &apart));
	is_smaller = apart.bytes <= joined.bound;
	if (!is_smaller)
		OM_TRY(om_assignment_seems_smaller(s, p, without, &apart, with, &joined, &is_smaller));
	if (is_smaller)
		*out = without;
	return OM_OK;
}

/* ---- Looking reasons up. ---- */

/* Are the bytes of the one where those of the other are? */
static bool
is_at_same_place(const om_assignment *a, const om_value *x, const om_value *y)
{
	uint64_t at_x, at_y;

	return om_storage(a, x, &at_x) == om_storage(a, y, &at_y) && at_x == at_y;
}

/* Later passes separate values, and store others over their inputs. */
om_overwrite_reason
om_assignment_overwrite(const om_assignment *a, const om_op *op, uint32_t out, uint32_t in)
{
	const om_overwrite_reason *of = a->overwrite && op->id < a->schedule->nop ? a->overwrite[op->id] : NULL;
	const om_overwrite_reason r = of ? of[(size_t)out * op->nin + in] : (om_overwrite_reason){0};
	const om_value *o = op->out[out], *i = op->in[in];

	if (a->backing[o->id].store == OM_INPLACE && a->backing[o->id].source == i)
		return (om_overwrite_reason){.why = OM_OVERWRITE_DONE};
	if ((r.why == OM_OVERWRITE_DONE && !is_at_same_place(a, o, i))
	    || (r.why == OM_OVERWRITE_PART && om_storage(a, o, NULL) != om_storage(a, i, NULL)))
		return (om_overwrite_reason){.why = OM_OVERWRITE_UNDONE};
	return r;
}
