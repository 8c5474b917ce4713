/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier of parallel-safe plans.
 *
 * The order of the file is one of the possible orders: the simulation shows that the plan is valid in
 * it, and records, byte for byte, which content replaces which.  It remains to show that every other
 * order has the same sequence of contents.  That is so if every op that touches a content precedes, by
 * data dependences alone, the op that overwrites it with the next content, or is that op: the
 * behavior inside one op of the graph is the same in every order.  It is sufficient to check adjacent
 * contents: an op that writes a content also touches it, so the relation is transitive along the whole
 * sequence.
 *
 * With streams of workers, the order is that of each stream and of the waits, in the place of data dependences; that it
 * includes those is checked as well (verify_worker_streams.c).
 *
 * Queries are collected and answered in batches: for BITS ops at a time, one walk over the graph finds
 * everything that depends on them.  For n ops that takes n * n / BITS steps and n * BITS / 8 bytes,
 * regardless of the width of the graph.  By design it shares no code with the planner
 * (ir/partial_order.c).
 */
#include <config.h>

#include <stdlib.h>

#include "onnxmem/opdef.h"
#include "ir/query.h"
#include "verify/verify_partial_order.h"

enum { WORDS = 8, BITS = 64 * WORDS };

struct touch {
	uint32_t node;
	uint64_t from, to;
};

struct touches {
	struct touch *t;
	size_t n, cap;
};

/* Does `first` come before `then` in every order? */
struct query {
	uint32_t first, then;
	uint32_t owner, by;        /* contents: the one that `first` touches, the one that `then` writes; UINT32_MAX: none,
				      and `by` is an om_order_reason */
};

struct edges {
	uint32_t *from;          /* nodes, in any order */
	size_t n, cap;
};

struct om_parallel_check {
	om_session *session;
	const om_prog *p;
	om_arena *mem;
	uint32_t n;              /* ops of the graph */
	const om_op **op;
	uint32_t *place;         /* by value id: the node that defines it; UINT32_MAX: none */
	const om_worker_streams *streams;
	struct touches *touches; /* by content */
	struct query *query;
	size_t nquery, capquery;
};

om_parallel_check *
om_parallel_check_new(om_session *s, const om_prog *p, const om_worker_streams *streams, om_arena *mem)
{
	om_parallel_check *f = OM_NEW(mem, om_parallel_check);
	uint32_t k = 0;

	*f = (om_parallel_check){.session = s, .p = p, .streams = streams, .mem = mem, .n = p->first->nop, .op = OM_NEWN(mem, const om_op *, p->first->nop),
		.place = OM_NEWN(mem, uint32_t, p->nvalue),
		.touches = OM_NEWN(mem, struct touches, (size_t)p->nvalue + p->nop)};
	memset(f->place, 0xff, p->nvalue * sizeof *f->place);
	for (const om_op *op = p->first->first; op; op = op->next, k++) {
		f->op[k] = op;
		for (uint32_t o = 0; o < op->nout && !op->is_folded; o++)
			if (op->out[o])
				f->place[op->out[o]->id] = k;
	}
	return f;
}

void
om_parallel_check_touch(om_parallel_check *f, uint32_t node, uint32_t owner, uint64_t from, uint64_t to)
{
	struct touches *of = &f->touches[owner];
	const struct touch *last = of->n ? &of->t[of->n - 1] : NULL;

	if (last && last->node == node && last->from <= from && to <= last->to)
		return;
	OM_PUSH(f->mem, of->t, of->n, of->cap, ((struct touch){node, from, to}));
}

void
om_parallel_check_overwrite(om_parallel_check *f, uint32_t node, uint32_t by, uint32_t owner, uint64_t from, uint64_t to)
{
	const struct touches *of = &f->touches[owner];

	for (size_t k = 0; k < of->n; k++) {
		const struct touch *t = &of->t[k];
		if (t->node != node && t->from < to && from < t->to)
			OM_PUSH(f->mem, f->query, f->nquery, f->capquery, ((struct query){t->node, node, owner, by}));
	}
}

void
om_parallel_check_order(om_parallel_check *f, uint32_t first, uint32_t then, om_order_reason why)
{
	OM_PUSH(f->mem, f->query, f->nquery, f->capquery, ((struct query){first, then, UINT32_MAX, why}));
}

/* ---- Answers. ---- */

struct reader {
	const om_parallel_check *f;
	struct edges *e;
};

static void
add_source(void *arg, om_value *v)
{
	const struct reader *r = arg;

	if (r->f->place[v->id] != UINT32_MAX)
		OM_PUSH(r->f->mem, r->e->from, r->e->n, r->e->cap, r->f->place[v->id]);
}

/* The last op of the same stream, and the ops that are waited for. */
static void
list_stream_edges(const om_parallel_check *f, struct edges *edges)
{
	uint32_t *node = OM_NEWN(f->mem, uint32_t, f->p->nop), last[OM_MOST_WORKER_STREAMS];

	memset(last, 0xff, sizeof last);
	for (uint32_t k = 0; k < f->n; k++) {
		const om_worker_op *o = &f->streams->op[f->op[k]->id];
		node[f->op[k]->id] = k;
		if (f->op[k]->is_folded || o->stream == OM_NO_STREAM)
			continue;
		if (last[o->stream] != UINT32_MAX)
			OM_PUSH(f->mem, edges[k].from, edges[k].n, edges[k].cap, last[o->stream]);
		for (uint32_t i = 0; i < o->nwait; i++)
			OM_PUSH(f->mem, edges[k].from, edges[k].n, edges[k].cap, node[o->wait[i]]);
		last[o->stream] = k;
	}
}

static int
by_first(const void *a, const void *b)
{
	const struct query *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return (x->then > y->then) - (x->then < y->then);
}

/* Computes which of the ops `first` to `first` + BITS precede each op, as a row of bits. */
static void
spread(const om_parallel_check *f, const struct edges *edges, uint32_t first, uint64_t (*row)[WORDS])
{
	for (uint32_t k = first; k < f->n; k++) {
		memset(row[k], 0, sizeof row[k]);
		for (size_t i = 0; i < edges[k].n; i++) {
			const uint32_t from = edges[k].from[i];
			if (from < first || from >= k)
				continue;
			for (int w = 0; w < WORDS; w++)
				row[k][w] |= row[from][w];
			if (from - first < BITS)
				row[k][(from - first) / 64] |= UINT64_C(1) << (from - first) % 64;
		}
	}
}

static const char *
op_text(const om_parallel_check *f, uint32_t node)
{
	const om_op *op = node < f->n ? f->op[node] : NULL;

	if (!op)
		return "the end of the graph";
	if (*op->name)
		return op->name;
	return om_printf(f->mem, "%s%s%s", op->type, op->nout && op->out[0] ? " of " : "",
		op->nout && op->out[0] ? op->out[0]->name : "");
}

static const char *
who_text(const om_parallel_check *f, uint32_t owner)
{
	return owner < f->p->nvalue ? f->p->values[owner]->name : "scratch";
}

static om_status
refuse_order(const om_parallel_check *f, const struct query *q)
{
	const char *first = op_text(f, q->first), *then = op_text(f, q->then);

	switch ((om_order_reason)q->by) {
	case OM_ORDER_DATA:
		return om_fail(f->session, OM_BADPLAN, "%s reads what %s computes in another stream, and does not wait for it", then, first);
	case OM_ORDER_ALONE:
		return om_fail(f->session, OM_BADPLAN, "%s may run beside %s in another stream, but one of them has to run alone", then, first);
	case OM_ORDER_COLLECTIVES:
		break;
	}
	return om_fail(f->session, OM_BADPLAN, "the plan is for every order of the ops, but the collectives %s and %s must keep "
		"theirs, and no data order them", first, then);
}

static om_status
refuse(const om_parallel_check *f, const struct query *q)
{
	if (q->owner == UINT32_MAX)
		return refuse_order(f, q);
	if (f->streams)
		return om_fail(f->session, OM_BADPLAN, "%s writes %s over %s, which %s may still use in another stream", op_text(f, q->then),
			who_text(f, q->by), who_text(f, q->owner), op_text(f, q->first));
	return om_fail(f->session, OM_BADPLAN,
		"%s writes %s over %s, which %s may read later in another order of the ops", op_text(f, q->then), who_text(f, q->by), who_text(f, q->owner), op_text(f, q->first));
}

om_status
om_parallel_check_run(om_parallel_check *f)
{
	struct edges *edges = OM_NEWN(f->mem, struct edges, f->n);
	uint64_t (*row)[WORDS] = om_allocn(f->mem, sizeof *row, (size_t)f->n + 1);
	uint32_t first = 0;
	bool spread_once = false;

	if (f->streams)
		list_stream_edges(f, edges);
	for (uint32_t k = 0; k < f->n && !f->streams; k++)
		if (!f->op[k]->is_folded)
			om_op_each_read(f->op[k], add_source, &(struct reader){f, &edges[k]});
	if (f->nquery)
		qsort(f->query, f->nquery, sizeof *f->query, by_first);
	for (size_t k = 0; k < f->nquery; k++) {
		const struct query *q = &f->query[k];
		if (q->first >= q->then)
			return refuse(f, q);
		if (!spread_once || q->first - first >= BITS) {
			first = q->first;
			spread(f, edges, first, row);
			spread_once = true;
		}
		if (!(row[q->then][(q->first - first) / 64] >> (q->first - first) % 64 & 1))
			return refuse(f, q);
	}
	return OM_OK;
}
