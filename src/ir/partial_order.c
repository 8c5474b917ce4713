/* SPDX-License-Identifier: Apache-2.0 */
/* Which ops precede which in every valid order of the ops of a graph.
 *
 * The ops of the graph are the nodes; an op with bodies is one node, which includes all outer values
 * that its bodies read.  Nodes are assigned to chains: an op is appended to a chain whose last op it
 * depends on, else it starts a new chain.  On a chain, everything before an ancestor is an ancestor,
 * too, so one number represents the ancestors of an op on a chain: how many there are. These numbers
 * are the elementwise maximum over the operands, so one walk in the order of the file computes them
 * all.
 *
 * An op has numbers only for chains that exist when it is visited.  n ops on k chains take at most 4 *
 * n * k bytes, and as many steps for each operand: a network of 100,000 ops with ten parallel chains
 * requires 4 MB. Graphs that require more than MOST numbers are rejected.
 *
 * Chains by greedy matching: after Jagadish, A compression technique to materialize transitive
 * closure, ACM TODS 15(4), 1990.
 */
#include <config.h>

#include "ir/partial_order.h"
#include "onnxmem/opdef.h"

#define NONE UINT32_MAX

static const uint64_t MOST = UINT64_C(1) << 27;

struct builder {
	om_session *session;
	om_partial_order *r;
	const om_prog *p;
	om_arena *mem;
	om_op **op;              /* ops of the graph, by position */
	uint32_t *nchain;        /* by chain: number of ops */
	size_t capchain;
	uint32_t chains;
	uint32_t *row;           /* of the op being visited */
	uint32_t rowcap;
	uint64_t total;
	const om_worker_streams *streams;
	uint32_t last[OM_MOST_WORKER_STREAMS]; /* by stream: its last node; NONE before */
};

/* ---- Uses. ---- */

/* Called twice: first to count, then to fill in. */
struct touching {
	om_partial_order *r;
	const bool *kept;        /* by value: it is used at the end; NULL: none is */
	uint32_t *last;          /* by value: the last node recorded; NONE before */
	bool write;
};

static void
touch(struct touching *t, const om_value *v, uint32_t node)
{
	if (!v || t->last[v->id] == node)
		return;
	t->last[v->id] = node;
	if (t->write)
		t->r->touch[t->r->start[v->id] + t->r->ntouch[v->id]] = node;
	t->r->ntouch[v->id]++;
}

static void
touch_block(struct touching *t, const om_block *b, uint32_t node)
{
	for (uint32_t k = 0; k < b->nparam; k++)
		touch(t, b->param[k], node);
	for (const om_op *op = b->first; op; op = op->next) {
		t->r->node[op->id] = node;
		for (uint32_t k = 0; k < op->nin; k++)
			touch(t, op->in[k], node);
		for (uint32_t k = 0; k < op->nout; k++)
			touch(t, op->out[k], node);
		for (uint32_t k = 0; k < op->nbody; k++)
			touch_block(t, op->body[k], node);
	}
	for (uint32_t k = 0; k < b->nresult; k++)
		touch(t, b->result[k], node);
}

static void
touch_all(struct touching *t, const om_prog *p, uint32_t nvalue)
{
	uint32_t node = 0;

	for (uint32_t k = 0; k < nvalue; k++) {
		t->last[k] = NONE;
		t->r->ntouch[k] = 0;
	}
	for (const om_op *op = p->first->first; op; op = op->next, node++) {
		t->r->node[op->id] = node;
		for (uint32_t k = 0; k < op->nin && !op->is_folded; k++)
			touch(t, op->in[k], node);
		for (uint32_t k = 0; k < op->nout && !op->is_folded; k++)
			touch(t, op->out[k], node);
		for (uint32_t k = 0; k < op->nbody && !op->is_folded; k++)
			touch_block(t, op->body[k], node);
	}
	for (uint32_t k = 0; k < p->first->nresult; k++)
		touch(t, p->first->result[k], node);
	for (uint32_t k = 0; k < nvalue && t->kept; k++)
		if (t->kept[k])
			touch(t, p->values[k], node);
}

static void
list_touches(om_partial_order *r, const om_prog *p, const bool *kept, om_arena *mem)
{
	struct touching t = {.r = r, .kept = kept, .last = OM_NEWN(mem, uint32_t, p->nvalue)};
	uint32_t total = 0;

	r->start = OM_NEWN(mem, uint32_t, p->nvalue);
	r->ntouch = OM_NEWN(mem, uint32_t, p->nvalue);
	touch_all(&t, p, p->nvalue);
	for (uint32_t k = 0; k < p->nvalue; k++) {
		r->start[k] = total;
		total += r->ntouch[k];
	}
	r->touch = OM_NEWN(mem, uint32_t, total);
	t.write = true;
	touch_all(&t, p, p->nvalue);
}

/* ---- Chains. ---- */

/* Everything that precedes node `from`, and `from` itself, precedes the op being visited. */
static void
add_ancestor(struct builder *w, uint32_t from)
{
	const om_partial_order *r = w->r;

	for (uint32_t c = 0; c < r->width[from]; c++)
		if (r->row[from][c] > w->row[c])
			w->row[c] = r->row[from][c];
	if (r->pos[from] + 1 > w->row[r->chain[from]])
		w->row[r->chain[from]] = r->pos[from] + 1;
}

static void
add_source(struct builder *w, const om_value *v)
{
	if (!v || !v->def || !v->def->block || v->def->is_folded || v->block != w->p->first)
		return;
	add_ancestor(w, w->r->node[v->def->id]);
}

static void
add_sources_of_body(struct builder *w, const om_block *b)
{
	for (const om_op *op = b->first; op; op = op->next) {
		for (uint32_t k = 0; k < op->nin; k++)
			add_source(w, op->in[k]);
		for (uint32_t k = 0; k < op->nbody; k++)
			add_sources_of_body(w, op->body[k]);
	}
	for (uint32_t k = 0; k < b->nresult; k++)
		add_source(w, b->result[k]);
}

/* What is before the op by the streams, which order the data, too: the last op of its own, and those that it waits for. */
static void
add_stream(struct builder *w, uint32_t node, const om_op *op)
{
	const om_worker_op *o = &w->streams->op[op->id];

	if (o->stream == OM_NO_STREAM)
		return;
	if (w->last[o->stream] != NONE)
		add_ancestor(w, w->last[o->stream]);
	for (uint32_t k = 0; k < o->nwait; k++)
		add_ancestor(w, w->r->node[o->wait[k]]);
	w->last[o->stream] = node;
}

static void
add_sources(struct builder *w, const om_op *op)
{
	for (uint32_t k = 0; k < op->nin && !op->is_folded; k++)
		add_source(w, op->in[k]);
	for (uint32_t k = 0; k < op->nbody && !op->is_folded; k++)
		add_sources_of_body(w, op->body[k]);
}

/* The chain to append an op to: the longest one whose last op precedes it. */
static uint32_t
chain_for(struct builder *w)
{
	uint32_t best = NONE;

	for (uint32_t c = 0; c < w->chains; c++)
		if (w->row[c] == w->nchain[c] && (best == NONE || w->row[c] > w->row[best]))
			best = c;
	if (best != NONE)
		return best;
	OM_PUSH(w->mem, w->nchain, w->r->nchain, w->capchain, 0);
	return w->chains++;
}

static om_status
add_node(struct builder *w, uint32_t node, const om_op *op)
{
	om_partial_order *r = w->r;

	if (!w->row || w->chains > w->rowcap) {
		w->rowcap = 2 * w->chains + 1;
		w->row = OM_NEWN(w->mem, uint32_t, w->rowcap);
	}
	if (w->chains)
		memset(w->row, 0, w->chains * sizeof *w->row);
	if (w->streams)
		add_stream(w, node, op);
	else
		add_sources(w, op);
	w->total += w->chains;
	if (w->total > MOST)
		return om_fail(w->session, OM_MEMORY,
			"the graph is too large and too wide for a parallel-safe plan: %u ops on %u chains", r->n, w->chains);
	r->width[node] = w->chains;
	r->row[node] = om_memdup(w->mem, w->row, w->chains * sizeof *w->row);
	r->chain[node] = chain_for(w);
	r->pos[node] = w->nchain[r->chain[node]]++;
	return OM_OK;
}

om_status
om_partial_order_new(om_session *s, const om_prog *p, const bool *kept, const om_worker_streams *streams, om_arena *mem,
	om_partial_order **out)
{
	om_partial_order *r = OM_NEW(mem, om_partial_order);
	struct builder w = {.session = s, .r = r, .p = p, .mem = mem, .streams = streams};
	const om_op *op = p->first->first;

	memset(w.last, 0xff, sizeof w.last);

	*out = r;
	r->n = p->first->nop;
	r->node = OM_NEWN(mem, uint32_t, p->nop);
	r->chain = OM_NEWN(mem, uint32_t, r->n);
	r->pos = OM_NEWN(mem, uint32_t, r->n);
	r->width = OM_NEWN(mem, uint32_t, r->n);
	r->row = OM_NEWN(mem, uint32_t *, r->n);
	list_touches(r, p, kept, mem);
	for (uint32_t node = 0; node < r->n; node++, op = op->next)
		OM_TRY(add_node(&w, node, op));
	return OM_OK;
}

/* ---- Queries. ---- */

bool
om_partial_order_node_before(const om_partial_order *r, uint32_t a, uint32_t b)
{
	if (a >= r->n || b >= r->n)
		return a < r->n;
	return r->chain[a] < r->width[b] && r->pos[a] < r->row[b][r->chain[a]];
}

bool
om_partial_order_before(const om_partial_order *r, const om_op *a, const om_op *b)
{
	return om_partial_order_node_before(r, r->node[a->id], r->node[b->id]);
}

bool
om_partial_order_is_over(const om_partial_order *r, const om_value *v, const om_op *op)
{
	const uint32_t node = r->node[op->id], *touch = r->touch + r->start[v->id];

	for (uint32_t k = 0; k < r->ntouch[v->id]; k++)
		if (touch[k] != node && !om_partial_order_node_before(r, touch[k], node))
			return false;
	return true;
}
