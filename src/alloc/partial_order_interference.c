/* SPDX-License-Identifier: Apache-2.0 */
/* Interference of buffers if only data dependences constrain the order.
 *
 * Buffer B is over before buffer A begins if, in every order, each op that touches B comes before each
 * op that touches A or, within one op of the graph, whose bodies run in the order of their steps, at
 * an earlier step.  That is a partial order; two buffers interfere if neither precedes the other.
 *
 * Of the ops that touch a buffer, it is sufficient to consider the last ones on each chain of
 * om_partial_order, and likewise the first ones.  The buffers are assigned to chains of their own
 * partial order: on a chain, those that interfere with a given buffer are contiguous, and a binary
 * search finds where they end.  n buffers on k chains take O(n k log n) queries and 4 * n * k bytes,
 * the pairs 8 bytes each.
 *
 * Buffers that all interfere with one another require disjoint bytes.  The heaviest such set is found
 * by Dilworth's theorem with weights (Ford and Fulkerson, Flows in networks, 1962, ch. II.8): the flow
 * is the bytes that buffers can reuse from one another; the total size minus the maximum flow is the
 * weight of the set, and the minimum cut identifies its members.  A flow from v to u requires that v
 * precedes u; only relations that do not follow from others are edges, so flow may pass through nodes.
 * For more than LARGE buffers, or if the flow takes too long, the set of buffers live at a step of the
 * file's order is used instead, extended by buffers that interfere with all of it.
 */
#include <config.h>

#include <stdlib.h>

#include "base/guard.h"
#include "alloc/assign.h"
#include "alloc/buffers.h"
#include "ir/partial_order.h"
#include "base/maxflow.h"
#include "pack/baselines/interference_list.h"

#define NONE UINT32_MAX
enum { LARGE = 6000 };

static const uint64_t MOST_NEXT = UINT64_C(1) << 27, MOST_PAIRS = UINT64_C(1) << 28;
static const uint64_t MOST_FLOW = 400 * 1000 * 1000;

/* A node that touches a buffer, and the steps in which it does. */
struct touch {
	uint32_t node, lower, upper;  /* inclusive */
};

struct touches {
	struct touch *t;
	size_t n, cap;
};

struct life {
	uint32_t buf;
	uint32_t first, last;    /* steps in the order of the file */
	struct touch *begin, *end;   /* touches of the buffer without a predecessor; without a successor */
	uint32_t nbegin, nend;
	uint32_t chain, pos;
};

struct work {
	om_session *session;
	const om_prog *p;
	const om_buffers *b;
	om_arena *mem;
	om_interference_list *out;
	om_partial_order *reach;
	const om_op **op;        /* by node */
	struct life *life;       /* of nonempty buffers, by first step */
	uint32_t n;
	uint32_t **on;           /* by chain: its lifetimes, ascending */
	uint32_t *non;
	uint32_t nchain;
	uint32_t *next;          /* [n][nchain]: the first lifetime on the chain that comes after */
};

/* ---- Lifetimes. ---- */

static void
add_touch(struct work *w, struct touches *of, uint32_t node, uint32_t lower, uint32_t upper)
{
	const om_schedule *s = w->b->assignment->schedule;
	const uint32_t end = s->of_block[w->p->first->id].last;
	const om_steps at = node < w->reach->n ? s->of_op[w->op[node]->id] : (om_steps){end, end};
	struct touch t = {node, lower > at.first ? lower : at.first, upper < at.last ? upper : at.last};

	if (t.lower > t.upper)
		t = (struct touch){node, at.first, at.last};
	OM_PUSH(w->mem, of->t, of->n, of->cap, t);
}

static struct touches *
list_touches(struct work *w)
{
	const om_partial_order *r = w->reach;
	const om_steps *steps = w->b->assignment->schedule->of_op;
	struct touches *of = OM_NEWN(w->mem, struct touches, w->b->n);

	for (uint32_t k = 0; k < w->p->nvalue; k++) {
		const om_live_interval live = w->b->assignment->live[k];
		for (uint32_t i = 0; i < r->ntouch[k] && w->b->of_value[k] != NONE; i++)
			add_touch(w, &of[w->b->of_value[k]], r->touch[r->start[k] + i],
				live.first, live.last);
	}
	for (const om_block *b = w->p->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next)
			if (w->b->of_op[op->id] != NONE)
				add_touch(w, &of[w->b->of_op[op->id]], r->node[op->id], steps[op->id].first,
					steps[op->id].last);
	return of;
}

static int
by_node(const void *a, const void *b)
{
	const struct touch *x = a, *y = b;
	return (x->node > y->node) - (x->node < y->node);
}

/* One entry for each node. */
static void
merge_nodes(struct touches *of)
{
	size_t n = 0;

	if (of->n)
		qsort(of->t, of->n, sizeof *of->t, by_node);
	for (size_t k = 0; k < of->n; k++) {
		struct touch *last = n ? &of->t[n - 1] : NULL;
		if (!last || last->node != of->t[k].node) {
			of->t[n++] = of->t[k];
			continue;
		}
		last->lower = of->t[k].lower < last->lower ? of->t[k].lower : last->lower;
		last->upper = of->t[k].upper > last->upper ? of->t[k].upper : last->upper;
	}
	of->n = n;
}

/* The touches that come after no other one of the list or, with `last`, before none. */
static struct touch *
outermost(struct work *w, const struct touches *of, bool last, uint32_t *n)
{
	struct touch *list = OM_NEWN(w->mem, struct touch, of->n);

	*n = 0;
	for (size_t k = 0; k < of->n; k++) {
		const struct touch *t = &of->t[last ? of->n - 1 - k : k];
		bool is_inside = false;
		for (uint32_t i = 0; i < *n && !is_inside; i++)
			is_inside = last ? om_partial_order_node_before(w->reach, t->node, list[i].node)
				: om_partial_order_node_before(w->reach, list[i].node, t->node);
		if (!is_inside)
			list[(*n)++] = *t;
	}
	return list;
}

static int
by_first(const void *a, const void *b)
{
	const struct life *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	if (x->last != y->last)
		return x->last < y->last ? -1 : 1;
	return (x->buf > y->buf) - (x->buf < y->buf);
}

/* Buffers of inputs in the arena are filled before any op runs, so they follow no other buffer. */
static const bool *
list_filled(const struct work *w)
{
	bool *is_filled = OM_NEWN(w->mem, bool, w->b->n);

	for (uint32_t k = 0; k < w->p->first->nparam; k++) {
		const uint32_t n = w->b->of_value[w->p->first->param[k]->id];
		if (n != NONE)
			is_filled[n] = true;
	}
	return is_filled;
}

static void
list_lives(struct work *w)
{
	struct touches *of = list_touches(w);
	const bool *is_filled = list_filled(w);

	w->life = OM_NEWN(w->mem, struct life, w->b->n);
	for (uint32_t k = 0; k < w->b->n; k++) {
		struct life *l = &w->life[w->n];
		if (w->b->buf[k].bytes == 0)
			continue;
		merge_nodes(&of[k]);
		*l = (struct life){.buf = k, .first = is_filled[k] ? 0 : UINT32_MAX};
		for (size_t i = 0; i < of[k].n; i++) {
			l->first = of[k].t[i].lower < l->first ? of[k].t[i].lower : l->first;
			l->last = of[k].t[i].upper > l->last ? of[k].t[i].upper : l->last;
		}
		l->begin = outermost(w, &of[k], false, &l->nbegin);
		l->end = outermost(w, &of[k], true, &l->nend);
		w->n++;
	}
	qsort(w->life, w->n, sizeof *w->life, by_first);
}

static bool
is_before(const struct work *w, const struct life *b, const struct life *a)
{
	if (b->last >= a->first)
		return false;
	for (uint32_t i = 0; i < b->nend; i++)
		for (uint32_t k = 0; k < a->nbegin; k++) {
			const struct touch *t = &b->end[i], *d = &a->begin[k];
			if (t->node == d->node ? t->upper >= d->lower
			    : !om_partial_order_node_before(w->reach, t->node, d->node))
				return false;
		}
	return true;
}

/* ---- Chains of lifetimes. ---- */

/* Append to the chain whose last lifetime ended last; the other chains are kept for shorter gaps. */
static void
make_chains(struct work *w)
{
	uint32_t *tail = OM_NEWN(w->mem, uint32_t, w->n);

	for (uint32_t k = 0; k < w->n; k++) {
		uint32_t best = NONE;
		for (uint32_t c = 0; c < w->nchain; c++)
			if ((best == NONE || w->life[tail[c]].last > w->life[tail[best]].last)
			    && is_before(w, &w->life[tail[c]], &w->life[k]))
				best = c;
		w->life[k].chain = best == NONE ? w->nchain++ : best;
		w->life[k].pos = best == NONE ? 0 : w->life[tail[best]].pos + 1;
		tail[w->life[k].chain] = k;
	}
	w->non = OM_NEWN(w->mem, uint32_t, w->nchain);
	w->on = OM_NEWN(w->mem, uint32_t *, w->nchain);
	for (uint32_t c = 0; c < w->nchain; c++)
		w->on[c] = OM_NEWN(w->mem, uint32_t, w->life[tail[c]].pos + 1);
	for (uint32_t k = 0; k < w->n; k++)
		w->on[w->life[k].chain][w->non[w->life[k].chain]++] = k;
}

/* The first lifetime on chain `c`, from position `from` on, that comes after `k`. */
static uint32_t
first_after(const struct work *w, uint32_t k, uint32_t c, uint32_t from)
{
	uint32_t to = w->non[c];

	while (from < to) {
		const uint32_t middle = from + (to - from) / 2;
		if (is_before(w, &w->life[k], &w->life[w->on[c][middle]]))
			to = middle;
		else
			from = middle + 1;
	}
	return from;
}

/* Each pair once: with lifetimes that begin later. */
static om_status
count_pairs(struct work *w)
{
	uint32_t *from = OM_NEWN(w->mem, uint32_t, w->nchain);

	if ((uint64_t)w->n * w->nchain > MOST_NEXT)
		return om_fail(w->session, OM_MEMORY,
			"too many buffers are live in parallel for a parallel-safe plan: %u on %u chains", w->n, w->nchain);
	w->next = OM_NEWN(w->mem, uint32_t, (size_t)w->n * w->nchain);
	for (uint32_t k = 0; k < w->n; k++) {
		from[w->life[k].chain]++;
		for (uint32_t c = 0; c < w->nchain; c++) {
			const uint32_t next = first_after(w, k, c, from[c]);
			w->next[(size_t)k * w->nchain + c] = next;
			w->out->npair += next - from[c];
		}
	}
	if (w->out->npair > MOST_PAIRS)
		return om_fail(w->session, OM_MEMORY, "too many buffers interfere for a parallel-safe plan: "
			"%llu pairs", (unsigned long long)w->out->npair);
	return OM_OK;
}

static void
write_pairs(struct work *w, om_arena *mem)
{
	uint32_t (*pair)[2] = om_allocn(mem, sizeof *pair, w->out->npair);
	uint32_t *from = OM_NEWN(w->mem, uint32_t, w->nchain);
	uint64_t n = 0;

	for (uint32_t k = 0; k < w->n; k++) {
		from[w->life[k].chain]++;
		for (uint32_t c = 0; c < w->nchain; c++)
			for (uint32_t i = from[c]; i < w->next[(size_t)k * w->nchain + c]; i++) {
				pair[n][0] = w->life[k].buf;
				pair[n++][1] = w->life[w->on[c][i]].buf;
			}
	}
	w->out->pair = (const uint32_t (*)[2])pair;
}

/* ---- The heaviest set of mutually interfering buffers. ---- */

static uint64_t
bytes_of(const struct work *w, uint32_t k)
{
	return w->b->buf[w->life[k].buf].bytes;
}

static void
take_set(struct work *w, om_arena *mem, const bool *is_in)
{
	w->out->peak = OM_NEWN(mem, uint32_t, w->n);
	for (uint32_t k = 0; k < w->n; k++)
		if (is_in[k]) {
			w->out->bound += bytes_of(w, k);
			w->out->peak[w->out->npeak++] = w->life[k].buf;
		}
}

/* Is the first successor of `k` on chain `c` a direct one: does no other successor of `k` precede it? */
static bool
is_direct(const struct work *w, uint32_t k, uint32_t c)
{
	const uint32_t *next = &w->next[(size_t)k * w->nchain];
	const struct life *to = &w->life[w->on[c][next[c]]];

	for (uint32_t i = 0; i < w->nchain; i++)
		if (i != c && next[i] < w->non[i] && is_before(w, &w->life[w->on[i][next[i]]], to))
			return false;
	return true;
}

/* Nodes of the flow network: the bytes that a lifetime releases, and those that it reuses. */
static uint32_t leaves(uint32_t k) { return 2 * k; }
static uint32_t takes(uint32_t k) { return 2 * k + 1; }

static om_net *
make_flow(struct work *w)
{
	om_net *f = om_net_new(2 * w->n + 2, w->mem);
	const uint32_t source = 2 * w->n, sink = source + 1;

	for (uint32_t k = 0; k < w->n; k++) {
		om_net_edge(f, source, leaves(k), bytes_of(w, k));
		om_net_edge(f, takes(k), sink, bytes_of(w, k));
		om_net_edge(f, takes(k), leaves(k), INT64_MAX);
		for (uint32_t c = 0; c < w->nchain; c++) {
			const uint32_t next = w->next[(size_t)k * w->nchain + c];
			if (next < w->non[c] && is_direct(w, k, c))
				om_net_edge(f, leaves(k), takes(w->on[c][next]), INT64_MAX);
		}
	}
	return f;
}

/* False if it took too long. */
static bool
heaviest_set(struct work *w, om_arena *mem)
{
	om_net *f = make_flow(w);
	bool *is_in = OM_NEWN(w->mem, bool, w->n);

	if (!om_net_run(f, 2 * w->n, 2 * w->n + 1, MOST_FLOW))
		return false;
	for (uint32_t k = 0; k < w->n; k++)
		is_in[k] = om_net_reached(f, leaves(k)) && !om_net_reached(f, takes(k));
	take_set(w, mem, is_in);
	w->out->is_heaviest = true;
	return true;
}

/* The step of the file's order with the most live bytes. */
static uint32_t
busiest_step(const struct work *w)
{
	int64_t *change = OM_NEWN(w->mem, int64_t, (size_t)w->b->assignment->schedule->nstep + 2), now = 0, most = 0;
	uint32_t step = 0;

	for (uint32_t k = 0; k < w->n; k++) {
		change[w->life[k].first] += (int64_t)bytes_of(w, k);
		change[w->life[k].last + 1] -= (int64_t)bytes_of(w, k);
	}
	for (uint32_t k = 0; k <= w->b->assignment->schedule->nstep; k++) {
		now += change[k];
		if (now > most) {
			most = now;
			step = k;
		}
	}
	return step;
}

static void
heavy_set(struct work *w, om_arena *mem)
{
	const uint32_t step = busiest_step(w);
	bool *is_in = OM_NEWN(w->mem, bool, w->n);
	uint32_t *member = OM_NEWN(w->mem, uint32_t, w->n), n = 0;

	for (uint32_t k = 0; k < w->n; k++)
		if (w->life[k].first <= step && step <= w->life[k].last)
			member[n++] = k;
	for (uint32_t k = 0; k < w->n; k++) {
		bool fits = w->life[k].first > step || step > w->life[k].last;
		for (uint32_t i = 0; i < n && fits; i++)
			fits = !is_before(w, &w->life[k], &w->life[member[i]])
			    && !is_before(w, &w->life[member[i]], &w->life[k]);
		if (fits)
			member[n++] = k;
	}
	for (uint32_t i = 0; i < n; i++)
		is_in[member[i]] = true;
	take_set(w, mem, is_in);
}

static om_status
find_conflicts(struct work *w, om_arena *mem)
{
	const om_op *op = w->p->first->first;

	const bool *kept = om_kept_inputs(w->p, w->b->assignment, w->mem);

	OM_TRY(om_partial_order_new(w->session, w->p, kept, w->b->assignment->schedule->streams, w->mem, &w->reach));
	w->op = OM_NEWN(w->mem, const om_op *, w->reach->n);
	for (uint32_t k = 0; k < w->reach->n; k++, op = op->next)
		w->op[k] = op;
	list_lives(w);
	make_chains(w);
	OM_TRY(count_pairs(w));
	write_pairs(w, mem);
	if (w->b->naive > INT64_MAX / 4)
		return om_fail(w->session, OM_INVALID, "the sum of the bytes of all %u buffers overflows 63 bits", w->b->n);
	if (w->n > LARGE || !heaviest_set(w, mem))
		heavy_set(w, mem);
	return OM_OK;
}

static om_status
buffers_conflicts_guarded(om_session *s, const om_prog *p, const om_buffers *b, om_arena *mem, om_interference_list *out)
{
	struct work w = {.session = s, .p = p, .b = b, .mem = om_arena_new(), .out = out};

	*out = (om_interference_list){0};
	const om_status st = find_conflicts(&w, mem);
	om_arena_free(w.mem);
	return st;
}

om_status
om_buffers_interference(om_session *s, const om_prog *p, const om_buffers *b, om_arena *mem, om_interference_list *out)
{
	OM_GUARDED(s, buffers_conflicts_guarded(s, p, b, mem, out));
}
