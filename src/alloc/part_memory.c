/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of parts.
 *
 * Storage of the whole program is looked at, as far as a part uses it.  What an earlier part left in it is live from
 * the start of the part to its last use in the part; what the part puts into it, from there to the last use in the
 * program, or to the end of the part.  So a longer part never needs less. */
#include <config.h>

#include "alloc/part_memory.h"
#include "base/arena_internal.h"
#include "base/sizes.h"
#include "ir/query.h"

struct collect {
	om_part_memory *m;
	const om_prog *p;
	const om_buffers *b;
	om_arena *mem;
	int64_t *used, *written; /* by value id: the last position so far; -1: none */
	int64_t *only;           /* by buffer: the op that alone uses it; -1: none so far, -2: there are several */
	uint32_t *stamp;         /* by value id: its entry among the uses of the op, plus 1 */
	om_part_use *list;       /* of the current op */
	size_t n, cap;
};

/* ---- Which op uses what. ---- */

static void
note_buffer(struct collect *c, uint32_t buffer, int64_t at)
{
	if (buffer == UINT32_MAX)
		return;
	int64_t *only = &c->only[buffer];
	*only = *only == -1 || *only == at ? at : -2;
}

static void
use_value(struct collect *c, const om_value *v, bool writes, int64_t at)
{
	if (!v)
		return;
	const bool is_weight = v->is_const || v->is_overridable;
	const uint32_t root = is_weight ? v->id : c->b->root[v->id]->id;

	c->m->is_weight[root] |= is_weight;
	if (!is_weight)
		note_buffer(c, c->b->of_value[root], at);
	if (c->stamp[root]) {
		c->list[c->stamp[root] - 1].writes |= writes;
		return;
	}
	OM_PUSH(c->mem, c->list, c->n, c->cap, ((om_part_use){root, writes, c->used[root], c->written[root]}));
	c->stamp[root] = (uint32_t)c->n;
}

static void
use_op(struct collect *c, const om_op *op, int64_t at)
{
	note_buffer(c, c->b->of_op[op->id], at);
	for (uint32_t k = 0; k < op->nin; k++)
		use_value(c, op->in[k], false, at);
	for (uint32_t k = 0; k < op->nout; k++)
		use_value(c, op->out[k], true, at);
	for (uint32_t k = 0; k < op->nbody; k++) {
		const om_block *body = op->body[k];
		for (uint32_t i = 0; i < body->nparam; i++)
			use_value(c, body->param[i], true, at);
		for (const om_op *inner = body->first; inner; inner = inner->next)
			if (!inner->is_folded)
				use_op(c, inner, at);
		for (uint32_t i = 0; i < body->nresult; i++)
			use_value(c, body->result[i], false, at);
	}
}

static void
collect_op(struct collect *c, uint32_t at)
{
	c->list = NULL;
	c->n = c->cap = 0;
	use_op(c, c->m->op[at], at);
	c->m->use[at] = c->list;
	c->m->nuse[at] = (uint32_t)c->n;
	for (size_t k = 0; k < c->n; k++) {
		const om_part_use *u = &c->list[k];
		c->stamp[u->root] = 0;
		c->used[u->root] = at;
		c->m->last[u->root] = at;
		if (u->writes)
			c->written[u->root] = at;
	}
}

/* ---- Sizes. ---- */

/* Buffers that one op alone uses: what is live of them in each step, and the most of all steps of that op. */
static void
measure_inside(struct collect *c)
{
	uint64_t *live = OM_NEWN(c->mem, uint64_t, (size_t)c->p->nstep + 2), now = 0;

	for (uint32_t k = 0; k < c->b->n; k++)
		for (uint32_t i = 0; c->only[k] >= 0 && i < c->b->buf[k].nlive; i++) {
			const om_interval *t = &c->b->buf[k].live[i];
			const uint64_t bytes = t->to ? t->to - t->from : c->b->buf[k].bytes;
			live[t->lower] += bytes;
			live[t->upper] -= bytes;  /* sums wrap around, and back */
		}
	for (uint32_t k = 0; k <= c->p->nstep; k++)
		live[k] = now += live[k];
	for (uint32_t k = 0; k < c->m->n; k++)
		for (uint32_t t = c->m->op[k]->step; t <= c->m->op[k]->end; t++)
			c->m->inside[k] = live[t] > c->m->inside[k] ? live[t] : c->m->inside[k];
}

static void
measure_storage(struct collect *c)
{
	for (uint32_t k = 0; k < c->p->nvalue; k++) {
		const om_value *v = c->p->values[k];
		const uint32_t buffer = c->m->is_weight[k] ? UINT32_MAX : c->b->of_value[k];
		if (buffer == UINT32_MAX)
			c->m->bytes[k] = om_value_bytes(v);
		else if (c->b->root[k] == v && c->only[buffer] < 0)
			c->m->bytes[k] = c->b->buf[buffer].bytes;
	}
	for (uint32_t k = 0; k < c->p->first->nresult; k++)
		c->m->last[c->b->root[c->p->first->result[k]->id]->id] = c->m->n;
}

/* ---- What crosses. ---- */

static int64_t
last_reader(const struct collect *c, const om_value *v, const int64_t *position)
{
	int64_t last = -1;

	for (const om_use *u = v->first_use; u; u = u->next) {
		const om_op *op = om_use_op_in(c->p->first, u);
		if (op && !op->is_folded && position[op->id] > last)
			last = position[op->id];
	}
	return last;
}

static void
measure_crossing(struct collect *c)
{
	int64_t *position = OM_NEWN(c->mem, int64_t, c->p->nop);
	uint64_t *sum = c->m->crossing;

	for (uint32_t k = 0; k < c->m->n; k++)
		position[c->m->op[k]->id] = k;
	for (uint32_t k = 0; k < c->m->n; k++)
		for (uint32_t i = 0; i < c->m->op[k]->nout; i++) {
			const om_value *v = c->m->op[k]->out[i];
			const int64_t last = v ? last_reader(c, v, position) : -1;
			if (last <= k)
				continue;
			sum[k + 1] += om_value_bytes(v);
			if (last < c->m->n)
				sum[last + 1] -= om_value_bytes(v);  /* sums wrap around, and back */
		}
	for (uint32_t k = 1; k <= c->m->n; k++)
		sum[k] += sum[k - 1];
}

/* ---- All. ---- */

static int64_t *
none(om_arena *mem, size_t n)
{
	int64_t *list = OM_NEWN(mem, int64_t, n + 1);

	for (size_t k = 0; k < n; k++)
		list[k] = -1;
	return list;
}

om_part_memory
om_part_memory_new(const om_prog *p, om_arena *mem)
{
	om_part_memory m = {0};
	struct collect c = {.m = &m, .p = p, .b = om_buffers_new(p, p->assignment, mem), .mem = mem};

	m.op = om_block_run_ops(p->first, mem, &m.n);
	m.inside = OM_NEWN(mem, uint64_t, (size_t)m.n + 1);
	m.use = OM_NEWN(mem, om_part_use *, (size_t)m.n + 1);
	m.nuse = OM_NEWN(mem, uint32_t, (size_t)m.n + 1);
	m.crossing = OM_NEWN(mem, uint64_t, (size_t)m.n + 2);
	m.live = OM_NEWN(mem, uint64_t, (size_t)m.n + 1);
	m.bytes = OM_NEWN(mem, uint64_t, p->nvalue);
	m.is_weight = OM_NEWN(mem, bool, p->nvalue);
	m.last = none(mem, p->nvalue);
	c.used = none(mem, p->nvalue);
	c.written = none(mem, p->nvalue);
	c.only = none(mem, c.b->n);
	c.stamp = OM_NEWN(mem, uint32_t, p->nvalue);
	for (uint32_t k = 0; k < m.n; k++)
		collect_op(&c, k);
	measure_inside(&c);
	measure_storage(&c);
	measure_crossing(&c);
	return m;
}

/* ---- Parts. ---- */

om_part_walk
om_part_walk_at(const om_part_memory *m, uint32_t first)
{
	return (om_part_walk){.m = m, .first = first, .end = first};
}

static void
add_live(om_part_walk *w, int64_t from, int64_t to, uint64_t bytes)
{
	for (int64_t t = from > w->first ? from : w->first; t <= to; t++) {
		w->m->live[t] = om_size_sum(w->m->live[t], bytes);
		w->peak = w->m->live[t] > w->peak ? w->m->live[t] : w->peak;
	}
}

/* Does the part compute what is there when the op has run? */
static bool
is_own(const om_part_walk *w, const om_part_use *u)
{
	return u->writes || u->written >= w->first;
}

void
om_part_walk_on(om_part_walk *w)
{
	const om_part_memory *m = w->m;
	const uint32_t at = w->end++;

	for (uint32_t k = 0; k < m->nuse[at]; k++) {
		const om_part_use *u = &m->use[at][k];
		if (m->is_weight[u->root])
			w->weights = om_size_sum(w->weights, u->used < w->first ? m->bytes[u->root] : 0);
		else if (u->writes && u->written < w->first)
			w->now = om_size_sum(w->now, m->bytes[u->root]);
	}
	m->live[at] = 0;
	add_live(w, at, at, om_size_sum(w->now, m->inside[at]));
	for (uint32_t k = 0; k < m->nuse[at]; k++) {
		const om_part_use *u = &m->use[at][k];
		const uint64_t bytes = m->is_weight[u->root] ? 0 : m->bytes[u->root];
		if (!bytes)
			continue;
		if (u->written < w->first && !(u->writes && u->used < 0))  /* left by an earlier part, up to here */
			add_live(w, u->used + 1, u->writes ? (int64_t)at - 1 : at, bytes);
		if (is_own(w, u) && m->last[u->root] == at)
			w->now -= bytes;
	}
}
