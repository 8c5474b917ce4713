/* SPDX-License-Identifier: Apache-2.0 */
/* Update paths from a parameter of the graph to the result that replaces it.
 *
 * A result is computed in the memory of its parameter if an op computes it over the parameter, or over
 * a value that another op computed over it, and so on: Mul(m, 0.9), then Add(that, g).  The
 * intermediate values are read by the next op alone.  So the paths do not depend on the order of the
 * ops; the caller must ensure that all other readers of the parameter precede the first op of the
 * path.
 *
 * Without such a path, a result is still computed in the memory of its parameter if its op reads nothing of the parameter: all readers
 * of the parameter precede it, as the window of a convolution that moves on, or states of layers that are joined.
 *
 * The search runs backwards from the result.  A path could be as long as the program, so the depth is
 * limited: optimizers require two or three ops.
 */
#include <config.h>

#include "alloc/state_update_paths.h"
#include "alloc/assign.h"
#include "alloc/op_facts.h"
#include "onnxmem/plan.h"
#include "opdef/op_context.h"

enum { DEEPEST = 8 };

struct search {
	const om_prog *p;
	const om_assignment *a;  /* has views, and no in-place decisions yet */
	om_arena *mem;
	om_value **root;         /* by value id: the owner of the storage */
	uint32_t *uses;          /* by value id: number of inputs and results that are the value or a view
				    of it */
	uint32_t *times;         /* by value id: number of results of the graph that are the value */
	bool *is_result;         /* by value id: the value, or a view of it, is a result of the graph */
	const om_value *param;
	om_value *path[DEEPEST];
	uint32_t n;
};

static const om_value *
root_of(const struct search *s, const om_value *v)
{
	return s->root[v->id];
}

static void
count_uses(const struct search *s, const om_block *b)
{
	for (const om_op *op = b->first; op; op = op->next) {
		for (uint32_t k = 0; k < op->nin; k++)
			if (op->in[k])
				s->uses[root_of(s, op->in[k])->id]++;
		for (uint32_t k = 0; k < op->nbody; k++)
			count_uses(s, op->body[k]);
	}
	for (uint32_t k = 0; k < b->nresult; k++)
		s->uses[root_of(s, b->result[k])->id]++;
}

static void
count_results(const struct search *s, const om_block *graph)
{
	for (uint32_t k = 0; k < graph->nresult; k++) {
		s->times[graph->result[k]->id]++;
		s->is_result[root_of(s, graph->result[k])->id] = true;
	}
}

/* Does `op` also read a view of `v`? */
static bool
has_other(const struct search *s, const om_op *op, const om_value *v)
{
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && op->in[k] != v && root_of(s, op->in[k]) == v)
			return true;
	return false;
}

static bool
is_between(const struct search *s, const om_op *op, const om_value *v)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < op->nin; k++)
		n += op->in[k] == v;
	return v->def && v->block == s->p->first && !v->is_const && s->a->backing[v->id].store == OM_OWN && s->uses[v->id] == n;
}

static bool
find(struct search *s, om_value *v)
{
	const om_op *op = v->def;
	uint32_t out = 0;

	if (!op || op->nbody || op->is_folded || !op->opdef || !op->opdef->inplace || s->a->backing[v->id].store != OM_OWN
	    || s->n == DEEPEST)
		return false;
	while (op->out[out] != v)
		out++;
	s->path[s->n++] = v;
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] == s->param && om_op_facts_inplace_value(s->a->facts, op, out, s->param)
		    && !has_other(s, op, s->param))
			return true;
	for (uint32_t k = 0; k < op->nin; k++) {
		om_value *u = op->in[k];
		if (u && is_between(s, op, u) && om_value_bytes(u) == om_value_bytes(v)
		    && om_op_facts_inplace_value(s->a->facts, op, out, u) && find(s, u))
			return true;
	}
	s->n--;
	return false;
}

/* Does the op that computes the result read nothing of the parameter?  Memory of the result is that of the parameter then. */
static bool
replaces(struct search *s, om_value *v)
{
	const om_op *op = v->def;

	if (!op || op->nbody || op->is_folded || !op->opdef || op->block != s->p->first || om_value_device(v)
	    || s->a->backing[v->id].store != OM_OWN)
		return false;
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && root_of(s, op->in[k]) == s->param)
			return false;
	s->path[s->n++] = v;
	return true;
}

static bool
find_way(struct search *s, const om_io_alias *t, om_update_path *w)
{
	const om_block *graph = s->p->first;

	*w = (om_update_path){.result = graph->result[t->result], .param = graph->param[t->param]};
	s->param = w->param;
	s->n = 0;
	if (w->param->is_const || w->result->is_const || !om_value_bytes(w->param)
	    || (s->a->facts->is_outside[w->result->id] && !s->a->facts->is_outside[w->param->id])
	    || om_value_bytes(w->param) != om_value_bytes(w->result) || s->is_result[w->param->id]
	    || s->times[w->result->id] != 1 || (!find(s, w->result) && !replaces(s, w->result)))
		return false;
	w->nvalue = s->n;
	w->value = OM_NEWN(s->mem, om_value *, s->n);
	for (uint32_t k = 0; k < s->n; k++)
		w->value[k] = s->path[s->n - 1 - k];
	return true;
}

/* ---- Readers. ---- */

struct readers {
	const struct search *s;
	om_update_path *all;
	uint32_t *way_of;        /* by value id of a parameter: 1 + index of its path; 0: none */
	size_t *cap;             /* by path: capacity of `reader` */
};

static void
note_read(struct readers *w, om_op *op, const om_value *v)
{
	const uint32_t k = v ? w->way_of[root_of(w->s, v)->id] : 0;
	if (!k)
		return;
	om_update_path *way = &w->all[k - 1];
	if (op == way->value[0]->def || (way->nreader && way->reader[way->nreader - 1] == op))
		return;
	size_t n = way->nreader;
	OM_PUSH(w->s->mem, way->reader, n, w->cap[k - 1], op);
	way->nreader = (uint32_t)n;
}

/* Record the reads of `inner`, which is the op of the graph `op` itself or one in its bodies. */
static void
note_reads(struct readers *w, om_op *op, const om_op *inner)
{
	for (uint32_t k = 0; k < inner->nin; k++)
		note_read(w, op, inner->in[k]);
	for (uint32_t b = 0; b < inner->nbody; b++) {
		for (uint32_t k = 0; k < inner->body[b]->nresult; k++)
			note_read(w, op, inner->body[b]->result[k]);
		for (const om_op *next = inner->body[b]->first; next; next = next->next)
			note_reads(w, op, next);
	}
}

/* Collect, by parameter, the ops of the graph that read it, in the order of the schedule. */
static void
list_readers(const struct search *s, om_update_path *all, uint32_t n)
{
	struct readers w = {s, all, OM_NEWN(s->mem, uint32_t, s->p->nvalue), OM_NEWN(s->mem, size_t, n)};

	for (uint32_t k = 0; k < n; k++)
		w.way_of[all[k].param->id] = k + 1;
	for (om_op *const *at = s->a->schedule->ops[s->p->first->id]; *at; at++)
		if (!(*at)->is_folded)
			note_reads(&w, *at, *at);
}

om_update_path *
om_update_paths_find(const om_prog *p, const om_assignment *a, om_arena *mem, uint32_t *n)
{
	struct search s = {.p = p, .a = a, .mem = mem, .uses = OM_NEWN(mem, uint32_t, p->nvalue),
		.times = OM_NEWN(mem, uint32_t, p->nvalue), .is_result = OM_NEWN(mem, bool, p->nvalue)};
	om_update_path *all = OM_NEWN(mem, om_update_path, p->nio_alias);

	*n = 0;
	if (p->nio_alias == 0)
		return all;
	s.root = om_storages_new(p, a, mem).root;
	count_uses(&s, p->first);
	count_results(&s, p->first);
	for (uint32_t k = 0; k < p->nio_alias; k++)
		*n += find_way(&s, &p->io_alias[k], &all[*n]);
	list_readers(&s, all, *n);
	return all;
}
