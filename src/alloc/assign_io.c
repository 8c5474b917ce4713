/* SPDX-License-Identifier: Apache-2.0 */
/* Results of the graph in the memory of its parameters.
 *
 * A state that a program takes and returns, such as a KV cache or a weight, is passed from one run to
 * the next.  If the op that computes the result can do so in place, and nothing reads the parameter
 * later, the result aliases the parameter: it is computed in the caller's memory, and nothing is
 * copied between runs.  The caller loses the previous content of the parameter.
 *
 * Declared aliases (om_prog.io_alias) are decided before any other in-place decision, which would place
 * gradients in the memory of new weights while the old ones are still live.  Such a result may be
 * several ops away from its parameter; the intermediate values are stored in the parameter's memory,
 * too.
 *
 * Any result that is one op away can be aliased, after all other decisions: a result whose memory
 * already holds another value is skipped, because the input is still live then.
 *
 * A parameter in the arena that is requested to be intact at the end of the run has no result in its memory.
 */
#include <config.h>

#include "alloc/alias_sets.h"
#include "alloc/assign.h"
#include "alloc/op_facts.h"
#include "alloc/state_update_paths.h"
#include "onnxmem/plan.h"

/* ---- Any result. ---- */

struct any {
	const om_prog *p;
	om_assignment *a;
	om_alias_sets *g;
	const bool *is_kept;          /* by value id: intact at the end, as requested */
	bool *is_result, *is_taken;   /* by value id: is a result of the graph; already has a result
				         aliased to it */
	uint32_t *last_read;          /* by value id: 1 + the position of the last op of the graph that
				         reads it, itself or in a body; 0: none */
	om_io_counts count;
};

static void
note_read(struct any *w, const om_value *v, uint32_t place)
{
	if (v && w->last_read[v->id] < place)
		w->last_read[v->id] = place;
}

static void
note_reads(struct any *w, const om_op *op, uint32_t place)
{
	for (uint32_t k = 0; k < op->nin; k++)
		note_read(w, op->in[k], place);
	for (uint32_t k = 0; k < op->nbody; k++) {
		for (uint32_t r = 0; r < op->body[k]->nresult; r++)
			note_read(w, op->body[k]->result[r], place);
		for (const om_op *inner = op->body[k]->first; inner; inner = inner->next)
			note_reads(w, inner, place);
	}
}

/* Is `v` a caller-owned parameter that is supplied anew for each run, and neither it nor a view of it
 * is read after the op at `place`?  Its lifetime does not show that, because the caller owns it for
 * the whole run. */
static bool
is_consumed(const struct any *w, const om_op *op, const om_value *v, uint32_t place)
{
	const om_alias_set *group = v ? om_alias_sets_find(w->g, v, NULL) : NULL;

	if (!group || v->def || v->data || v->block != op->block || group->root != v || w->is_kept[v->id])
		return false;
	for (size_t k = 0; k < group->n; k++)
		if (w->last_read[group->member[k]->id] > place || w->is_result[group->member[k]->id])
			return false;
	return true;
}

static bool
may_tie(const struct any *w, const om_op *op, uint32_t out)
{
	const om_value *v = op->out[out];
	const om_alias_set *own = v ? om_alias_sets_find(w->g, v, NULL) : NULL;

	if (!own || w->a->backing[v->id].store != OM_OWN || own->root != v || !w->is_result[v->id])
		return false;
	for (size_t k = 0; k < own->n; k++)
		if (w->a->live[own->member[k]->id].first < w->a->schedule->of_op[op->id].first)
			return false;
	return true;
}

/* Does `op` read the memory of `v` under another name, too?  The verifier takes an output over one
 * input only. */
static bool
reads_twice(const struct any *w, const om_op *op, const om_value *v)
{
	const om_alias_set *group = om_alias_sets_find(w->g, v, NULL);

	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && op->in[k] != v && om_alias_sets_find(w->g, op->in[k], NULL) == group)
			return true;
	return false;
}

static void
tie_output(struct any *w, const om_op *op, uint32_t out, uint32_t place)
{
	om_value *v = op->out[out];

	if (!may_tie(w, op, out))
		return;
	for (uint32_t k = 0; k < op->nin; k++) {
		if (!is_consumed(w, op, op->in[k], place) || w->is_taken[op->in[k]->id]
		    || !om_op_facts_inplace_value(w->a->facts, op, out, op->in[k]) || reads_twice(w, op, op->in[k])
		    || (w->a->facts->is_outside[v->id] && !w->a->facts->is_outside[op->in[k]->id]))
			continue;
		om_assignment_back(w->a, v, OM_IO_ALIAS, op->in[k], 0);
		w->is_taken[op->in[k]->id] = true;
		w->count.results++;
		w->count.bytes += om_value_bytes(v);
		return;
	}
}

static void
tie_all(struct any *w)
{
	om_op *const *ops = w->a->schedule->ops[w->p->first->id];

	for (uint32_t k = 0; k < w->p->first->nresult; k++)
		w->is_result[w->p->first->result[k]->id] = true;
	for (uint32_t k = 0; k < w->a->nvalue; k++)
		if (w->a->backing[k].store == OM_IO_ALIAS)
			w->is_taken[w->a->backing[k].source->id] = true;
	for (uint32_t at = 0; ops[at]; at++)
		note_reads(w, ops[at], at + 1);
	for (uint32_t at = 0; ops[at]; at++) {
		const om_op *op = ops[at];
		for (uint32_t k = 0; k < op->nout && op->opdef && op->opdef->inplace && !op->nbody && !op->is_folded; k++)
			tie_output(w, op, k, at + 1);
	}
}

om_assignment *
om_assign_io_any(const om_prog *p, const om_assignment *in, om_arena *mem, om_io_counts *count)
{
	om_arena *tmp = om_arena_new();
	struct any w = {.p = p, .a = om_assignment_copy(in, mem), .is_kept = om_kept_inputs(p, in, tmp),
		.is_result = OM_NEWN(tmp, bool, p->nvalue),
		.is_taken = OM_NEWN(tmp, bool, p->nvalue), .last_read = OM_NEWN(tmp, uint32_t, p->nvalue)};

	w.g = om_alias_sets_new(p, w.a, tmp);
	tie_all(&w);
	if (count)
		*count = w.count;
	om_arena_free(tmp);
	return w.a;
}

/* ---- Declared aliases. ---- */

static bool
is_open(const om_assignment *a, const om_update_path *w)
{
	return a->backing[w->result->id].store == OM_OWN
	    && (w->nreader == 0 || a->schedule->of_op[w->reader[w->nreader - 1]->id].first
		    < a->schedule->of_op[w->value[0]->def->id].first);
}

static void
tie_way(om_assignment *a, const om_update_path *w, om_io_counts *count)
{
	for (uint32_t k = 0; k < w->nvalue; k++)
		om_assignment_back(a, w->value[k], OM_SUBBUFFER, w->result, 0);
	om_assignment_back(a, w->result, OM_IO_ALIAS, w->param, 0);
	count->results++;
	count->bytes += om_value_bytes(w->result);
}

om_assignment *
om_assign_io_declared(const om_prog *p, const om_assignment *in, om_arena *mem, om_io_counts *count)
{
	om_assignment *a = om_assignment_copy(in, mem);
	om_arena *tmp = om_arena_new();
	om_io_counts sum = {0};
	uint32_t n = 0;
	const bool *is_kept = om_kept_inputs(p, in, tmp);
	const om_update_path *w = in->request->parallel_safe ? NULL : om_update_paths_find(p, in, tmp, &n);

	for (uint32_t k = 0; k < n; k++)
		if (is_open(a, &w[k]) && !is_kept[w[k].param->id])
			tie_way(a, &w[k], &sum);
	if (count)
		*count = sum;
	om_arena_free(tmp);
	return a;
}
