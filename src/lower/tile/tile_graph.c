/* SPDX-License-Identifier: Apache-2.0 */
/* The graph as a list of ops, with the lifetimes of their storage. */
#include <config.h>

#include "base/fast_hash.h"
#include "ir/query.h"
#include "lower/tile/tile_internal.h"

#define NONE OM_TILE_NONE
enum { MOST_HASHED = 256 };

/* ---- Hashes. ---- */

static uint64_t
hash_type(uint64_t h, const om_value *v)
{
	h = om_fast_hash_number(h, (uint64_t)v->type.elem + 100 * (uint64_t)(v->shape.rank + 1));
	for (int d = 0; d < v->shape.rank; d++)
		h = om_fast_hash_number(h, (uint64_t)v->shape.dim[d]);
	return h;
}

/* Elements of short lists decide about shapes, those of weights do not. */
static uint64_t
hash_constant(const om_value *v)
{
	uint64_t bytes, h = hash_type(1, v);

	if (v->data && v->data->data && om_tensor_bytes(v->data->type, &v->data->shape, &bytes) && bytes <= MOST_HASHED && !v->data->splat
	    && v->data->type != OM_STRING)
		h = om_fast_hash(h, v->data->data, (size_t)bytes);
	return h ? h : 1;
}

static uint64_t
hash_attr(uint64_t h, const om_attr *a)
{
	h = om_fast_hash_text(om_fast_hash_number(h, (uint64_t)a->kind), a->name);
	switch (a->kind) {
	case OM_ATTR_FLOAT: case OM_ATTR_FLOATS:
		return om_fast_hash(h, a->f, a->n * sizeof *a->f);
	case OM_ATTR_INT: case OM_ATTR_INTS:
		return om_fast_hash(h, a->i, a->n * sizeof *a->i);
	case OM_ATTR_STRING: case OM_ATTR_STRINGS:
		for (size_t k = 0; k < a->n; k++)
			h = om_fast_hash(h, a->s[k].data, a->s[k].size);
		return h;
	default:
		return h;
	}
}

static uint64_t
hash_op(const om_op *op)
{
	uint64_t h = om_fast_hash_text(om_fast_hash_text(om_fast_hash_number(2, (uint64_t)op->version), op->domain), op->type);

	for (uint32_t k = 0; k < op->nattr; k++)
		h = hash_attr(h, &op->attr[k]);
	return om_fast_hash_number(h, op->nbody);
}

/* ---- Lifetimes. ---- */

bool
om_tile_is_const(const om_value *v)
{
	return v->is_const && !v->is_overridable;
}

/* The position at which a use reads: that of the op of the graph that contains it. */
static uint32_t
position_of_use(const om_tile_graph *g, const om_use *u)
{
	const om_block *graph = g->p->first, *b = u->op ? u->op->block : u->block;
	const om_op *op = b == graph ? u->op : om_block_enclosing_op(graph, b);

	if (b == graph && !u->op)
		return g->nop;
	return op ? g->position[op->id] : NONE;
}

static uint32_t
last_use(const om_tile_graph *g, const om_value *v)
{
	uint32_t last = NONE;

	for (const om_use *u = v->first_use; u; u = u->next) {
		const uint32_t at = position_of_use(g, u);
		if (at != NONE && (last == NONE || at > last))
			last = at;
	}
	return last;
}

bool
om_tile_is_read_after(const om_tile_graph *g, const om_value *v, uint32_t end)
{
	const uint32_t last = last_use(g, v);

	return last != NONE && last >= end;
}

static void
find_root(om_tile_graph *g, om_op_look *look, const om_op *op, uint32_t k)
{
	const om_value *v = op->out[k];
	om_view_of of;

	g->root[v->id] = v->id;
	g->made[v->id] = g->position[op->id];
	if (!om_op_look_view(look, op, k, &of))
		return;
	if (k == 0)
		g->view[op->id] = of.in;
	if (!op->in[of.in] || op->in[of.in]->is_const || !g->request->bytes[g->root[op->in[of.in]->id]])
		return;
	g->root[v->id] = g->root[op->in[of.in]->id];
}

static void
find_over(om_tile_graph *g, om_op_look *look, const om_op *op)
{
	if (!op->opdef || !op->opdef->inplace)
		return;
	bool *over = g->over[op->id] = OM_NEWN(g->mem, bool, (size_t)op->nout * op->nin);
	for (uint32_t k = 0; k < op->nout; k++)
		for (uint32_t i = 0; i < op->nin; i++)
			over[k * op->nin + i] = op->out[k] && op->in[i] && om_op_look_inplace(look, op, k, i);
}

/* What views and ops in place share. */
static void
find_shared(om_tile_graph *g)
{
	om_op_look look = {0};

	g->view = OM_NEWN(g->mem, uint32_t, g->p->nop);
	g->over = OM_NEWN(g->mem, bool *, g->p->nop);
	for (uint32_t k = 0; k < g->p->nop; k++)
		g->view[k] = NONE;
	for (uint32_t i = 0; i < g->nop; i++) {
		for (uint32_t k = 0; k < g->op[i]->nout; k++)
			if (g->op[i]->out[k])
				find_root(g, &look, g->op[i], k);
		find_over(g, &look, g->op[i]);
	}
	om_op_look_end(&look);
}

static void
find_lifetimes(om_tile_graph *g)
{
	for (uint32_t k = 0; k < g->p->nvalue; k++) {
		g->root[k] = k;
		g->made[k] = g->used[k] = NONE;
	}
	find_shared(g);
	for (uint32_t k = 0; k < g->p->nvalue; k++) {
		const uint32_t last = last_use(g, g->p->values[k]), root = g->root[k];
		if (last != NONE && (g->used[root] == NONE || last > g->used[root]))
			g->used[root] = last;
	}
}

static bool
has_storage(const om_tile_graph *g, uint32_t v)
{
	return g->root[v] == v && g->used[v] != NONE && g->request->bytes[v] && g->p->values[v]->block == g->p->first
		&& !g->p->values[v]->is_const;
}

static void
sum_live(om_tile_graph *g)
{
	uint64_t sum = 0, *change = OM_NEWN(g->mem, uint64_t, (size_t)g->nop + 2);

	for (uint32_t v = 0; v < g->p->nvalue; v++) {
		if (!has_storage(g, v))
			continue;
		change[g->made[v] == NONE ? 0 : g->made[v] + 1] += g->request->bytes[v];
		change[g->used[v] + 1] -= g->request->bytes[v];
	}
	g->live = OM_NEWN(g->mem, uint64_t, (size_t)g->nop + 1);
	for (uint32_t i = 0; i <= g->nop; i++)
		g->live[i] = sum += change[i];
}

uint64_t
om_tile_through(const om_tile_graph *g, uint32_t first, uint32_t end)
{
	uint64_t sum = 0;

	for (uint32_t v = 0; v < g->p->nvalue; v++)
		if (has_storage(g, v) && (g->made[v] == NONE || g->made[v] < first) && g->used[v] >= end)
			sum += g->request->bytes[v];
	return sum;
}

/* ---- Intervals. ---- */

static uint64_t
hash_input(om_tile_graph *g, uint64_t h, const om_value *v, uint32_t end, uint32_t *count)
{
	const uint32_t root = g->root[v->id];

	if (g->seen[v->id])
		return om_fast_hash_number(h, g->seen[v->id]);
	g->seen[v->id] = *count += 1;
	if (root != v->id)
		h = om_fast_hash_number(h, g->seen[root] ? g->seen[root] : (g->seen[root] = *count += 1));
	h = om_fast_hash_number(h, (g->request->bytes[root] != 0) + 2 * (g->used[root] != NONE && g->used[root] >= end));
	return hash_type(h, v);
}

uint64_t
om_tile_hash(om_tile_graph *g, uint32_t first, uint32_t end)
{
	uint64_t h = 3;
	uint32_t count = 0;

	memset(g->seen, 0, g->p->nvalue * sizeof *g->seen);
	for (uint32_t i = first; i < end; i++) {
		const om_op *op = g->op[i];
		h = om_fast_hash_number(h, g->hash[i]);
		for (uint32_t k = 0; k < op->nin; k++)
			h = !op->in[k] ? om_fast_hash_number(h, 5)
				: g->constant[op->in[k]->id] ? om_fast_hash_number(h, g->constant[op->in[k]->id])
				: hash_input(g, h, op->in[k], end, &count);
		for (uint32_t k = 0; k < op->nout; k++) {
			if (!op->out[k])
				continue;
			g->seen[op->out[k]->id] = count += 1;
			h = hash_type(om_fast_hash_number(h, (uint64_t)om_tile_is_read_after(g, op->out[k], end)
				+ 2 * (g->request->bytes[op->out[k]->id] != 0)), op->out[k]);
		}
	}
	return h;
}

/* ---- All. ---- */

static void
list_ops(om_tile_graph *g)
{
	g->op = om_block_run_ops(g->p->first, g->mem, &g->nop);
	g->position = OM_NEWN(g->mem, uint32_t, g->p->nop);
	for (uint32_t k = 0; k < g->p->nop; k++)
		g->position[k] = NONE;
	for (uint32_t i = 0; i < g->nop; i++)
		g->position[g->op[i]->id] = i;
}

om_tile_graph *
om_tile_graph_new(const om_prog *p, const om_tile_request *r, om_arena *mem)
{
	om_tile_graph *g = OM_NEW(mem, om_tile_graph);
	om_tile_code whole;

	*g = (om_tile_graph){.p = p, .mem = mem, .request = r, .root = OM_NEWN(mem, uint32_t, p->nvalue),
		.made = OM_NEWN(mem, uint32_t, p->nvalue), .used = OM_NEWN(mem, uint32_t, p->nvalue),
		.seen = OM_NEWN(mem, uint32_t, p->nvalue), .constant = OM_NEWN(mem, uint64_t, p->nvalue),
		.rule = OM_NEWN(mem, om_tile_rule *, p->nop)};
	list_ops(g);
	om_tile_time_init(g);
	find_lifetimes(g);
	sum_live(g);
	g->hash = OM_NEWN(mem, uint64_t, g->nop);
	for (uint32_t i = 0; i < g->nop; i++)
		g->hash[i] = hash_op(g->op[i]);
	for (uint32_t v = 0; v < p->nvalue; v++)
		g->constant[v] = om_tile_is_const(p->values[v]) ? hash_constant(p->values[v]) : 0;
	g->step = OM_NEWN(mem, uint64_t, g->nop);
	om_tile_code_whole(g, mem, &whole);
	om_tile_sweep(g, &whole, NULL, g->step);
	return g;
}
