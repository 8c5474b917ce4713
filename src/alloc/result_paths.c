/* SPDX-License-Identifier: Apache-2.0 */
/* Values that may be computed in the memory of results: found backwards from the results, along the ops that may
 * compute over an input, or find an input at its final offset in the output.
 *
 * A value is stored once, and an output overwrites one value; so not all paths can be taken together.  The sets are
 * enumerated by taking each path, and then by leaving it out.
 */
#include <config.h>

#include "alloc/result_paths.h"
#include "alloc/assign.h"
#include "alloc/op_facts.h"
#include "ir/query.h"

enum { MOST = 256 };     /* paths, from the results on */

struct search {
	const om_prog *p;
	const om_assignment *a;
	om_arena *mem;
	bool *is_listed;         /* by value id */
	om_value **into;         /* results, and values that have a path; considered from the first on */
	size_t ninto, capinto;
	om_result_path *path;
	size_t npath, cappath;
};

/* ---- Readers. ---- */

static void
add_reader(struct search *s, om_result_path *path, size_t *cap, om_op *op)
{
	size_t n = path->nreader;

	for (uint32_t k = 0; k < path->nreader; k++)
		if (path->reader[k] == op)
			return;
	OM_PUSH(s->mem, path->reader, n, *cap, op);
	path->nreader = (uint32_t)n;
}

/* List who reads `v`, or a view of it, other than the op; false if it has to be live at the end. */
static bool
list_readers(struct search *s, om_result_path *path, const om_value *v, size_t *cap)
{
	for (const om_use *u = v->first_use; u; u = u->next) {
		om_op *op = om_use_op_in(s->p->first, u);
		if (!op)
			return false;
		if (!op->is_folded && op != path->op)
			add_reader(s, path, cap, op);
		for (uint32_t k = 0; u->op == op && k < op->nout; k++)
			if (op->out[k] && s->a->backing[op->out[k]->id].source == v
			    && !list_readers(s, path, op->out[k], cap))
				return false;
	}
	return true;
}

/* ---- Paths. ---- */

/* The storage of an input, if an op of the graph computes it. */
static om_value *
storage_of(const struct search *s, const om_value *in)
{
	om_value *v = in && !in->is_const ? om_storage(s->a, in, NULL) : NULL;

	return v && v->def && !v->is_const && v->block == s->p->first && s->a->facts->bytes[v->id]
	    && !s->a->facts->is_outside[v->id] ? v : NULL;
}

static void
add_path(struct search *s, om_result_path path)
{
	size_t cap = 0;

	if (!list_readers(s, &path, path.v, &cap))
		return;
	OM_PUSH(s->mem, s->path, s->npath, s->cappath, path);
	if (s->is_listed[path.v->id])
		return;
	s->is_listed[path.v->id] = true;
	OM_PUSH(s->mem, s->into, s->ninto, s->capinto, path.v);
}

static void
add_paths(struct search *s, om_value *into)
{
	om_op *op = into->def;
	uint32_t out = 0;
	uint64_t offset;

	while (op->out[out] != into)
		out++;
	for (uint32_t i = 0; i < op->nin; i++) {
		om_value *v = storage_of(s, op->in[i]);
		if (!v || v == into)
			continue;
		if (out == 0 && om_op_facts_subbuffer(s->a->facts, op, i, &offset))
			add_path(s, (om_result_path){.v = v, .into = into, .op = op});
		if (om_op_facts_inplace(s->a->facts, op, out, i) && s->a->facts->bytes[v->id] == s->a->facts->bytes[op->in[i]->id])
			add_path(s, (om_result_path){.v = v, .into = into, .op = op, .is_over = true});
	}
}

om_result_path *
om_result_paths_find(const om_prog *p, const om_assignment *a, om_arena *mem, uint32_t *n)
{
	struct search s = {.p = p, .a = a, .mem = mem, .is_listed = OM_NEWN(mem, bool, p->nvalue)};

	for (uint32_t k = 0; k < p->first->nresult; k++) {
		om_value *v = p->first->result[k];
		if (v->def && !v->is_const && v->block == p->first && !v->def->is_folded && !s.is_listed[v->id]) {
			s.is_listed[v->id] = true;
			OM_PUSH(mem, s.into, s.ninto, s.capinto, v);
		}
	}
	for (size_t k = 0; k < s.ninto && s.npath < MOST; k++)
		add_paths(&s, s.into[k]);
	*n = (uint32_t)s.npath;
	return s.path;
}

/* ---- Sets of paths. ---- */

const om_op *
om_result_paths_end(const om_result_path *path, uint32_t n, const bool *is_taken, uint32_t k)
{
	uint32_t next;

	while (!path[k].is_over) {
		for (next = 0; next < n && !(is_taken[next] && path[next].v == path[k].into);)
			next++;
		if (next == n)
			return NULL;
		k = next;
	}
	return path[k].op;
}

struct choice {
	const om_result_path *path;
	uint32_t n, most, ntaken;
	bool *is_taken;
	om_status (*visit)(void *arg, const bool *is_taken);
	void *arg;
};

/* May path `k` be taken with those before it? */
static bool
fits(const struct choice *c, uint32_t k)
{
	const om_result_path *path = &c->path[k];
	bool is_stored = false;

	for (const om_use *u = path->into->first_use; u && !is_stored; u = u->next)
		is_stored = !u->op && !u->block->owner;
	for (uint32_t i = 0; i < k; i++) {
		if (!c->is_taken[i])
			continue;
		if (c->path[i].v == path->v || (c->path[i].is_over && path->is_over && c->path[i].into == path->into))
			return false;
		is_stored |= c->path[i].v == path->into;
	}
	return is_stored;
}

static om_status
choose(struct choice *c, uint32_t k)
{
	while (k < c->n && !fits(c, k))
		k++;
	if (c->most == 0)
		return OM_OK;
	if (k == c->n) {
		c->most -= c->ntaken > 0;
		return c->ntaken ? c->visit(c->arg, c->is_taken) : OM_OK;
	}
	c->is_taken[k] = true;
	c->ntaken++;
	OM_TRY(choose(c, k + 1));
	c->is_taken[k] = false;
	c->ntaken--;
	return choose(c, k + 1);
}

om_status
om_result_paths_each(const om_result_path *path, uint32_t n, uint32_t most,
	om_status (*visit)(void *arg, const bool *is_taken), void *arg)
{
	om_arena *tmp = om_arena_new();
	struct choice c = {.path = path, .n = n, .most = most, .is_taken = OM_NEWN(tmp, bool, n), .visit = visit, .arg = arg};
	const om_status st = choose(&c, 0);

	om_arena_free(tmp);
	return st;
}
