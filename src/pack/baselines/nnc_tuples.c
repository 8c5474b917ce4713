/* SPDX-License-Identifier: Apache-2.0 */
/* The order of insertion of the paper on NNC's allocation.
 *
 * Candidates are the buffers with the most neighbors in the interference graph that
 * are not inserted yet: alone, with a larger one that does not interfere, or with
 * two such.  Those with the largest member come first, then those with the most
 * neighbors in total, then program order.  The first candidate that fits on an edge
 * is inserted there; if none does, the first of all gets bytes of its own.
 *
 * The paper is ambiguous: "none of the ends are the dummy source or sink" is taken
 * to mean that the edge does not go from the source to the sink; taken literally it
 * would forbid almost all sharing.
 *
 * There are n^3 candidates; they are not enumerated.  The search goes by the
 * largest member: if it fits on no edge, no candidate with it does, and it is
 * skipped until there are new edges.  A third member is looked for on the edges on
 * which the first two fit.  All insertions together have a limit of work, to which
 * graphs of some thousand buffers come: then the best candidate so far is taken, after it
 * the buffers with the most neighbors, alone, and the result says that it was limited.
 * Each insertion takes a buffer with the most neighbors, so it terminates.
 */
#include <config.h>

#include <stdlib.h>

#include "pack/baselines/nnc_graph.h"
#include "pack/sort_keys.h"

/* Candidates and edges looked at in all insertions, by default. */
enum { DEFAULT_WORK = 100 * 1000 * 1000 };

struct candidate {
	uint32_t member[OM_NNC_TUPLE];
	uint32_t n;
	uint64_t degree;         /* in total */
	size_t edge;
};

struct tuple_search {
	om_nnc_graph *f;
	uint32_t *by_size;       /* not inserted; largest first */
	uint32_t *by_degree;     /* not inserted; most neighbors first */
	uint32_t n;
	size_t *seen;            /* by buffer: it fits on no edge below this number */
	size_t *fit;             /* the edges on which the leader fits */
	size_t *pair_fit;        /* those of them on which the first two members fit */
	size_t nfit, npair_fit;
	bool anywhere;           /* no edge is required */
	uint64_t work, max_work;
	struct candidate best;
};

/* ---- Lists. ---- */

static uint32_t *
sorted_list(const om_nnc_graph *f, bool degree_first, uint32_t *count)
{
	om_sort_key *key = OM_NEWN(f->mem, om_sort_key, f->n);
	uint32_t *list = OM_NEWN(f->mem, uint32_t, f->n), n = 0;

	for (uint32_t k = 0; k < f->n; k++)
		if (!f->is_in[k])
			key[n++] = (om_sort_key){degree_first ? f->g->degree[k] : f->bytes[k],
				degree_first ? f->bytes[k] : f->g->degree[k], k};
	qsort(key, n, sizeof *key, om_compare_sort_keys);
	for (uint32_t k = 0; k < n; k++)
		list[k] = key[k].id;
	*count = n;
	return list;
}

static void
remove_inserted(const om_nnc_graph *f, uint32_t *list, uint32_t n)
{
	uint32_t m = 0;

	for (uint32_t k = 0; k < n; k++)
		if (!f->is_in[list[k]])
			list[m++] = list[k];
}

/* ---- Candidates. ---- */

static bool
are_compatible(const struct tuple_search *w, uint32_t a, uint32_t b)
{
	return om_always_before(w->f->g, a, b) || om_always_before(w->f->g, b, a);
}

/* The first of these edges that is free during the member. */
static bool
find_edge(struct tuple_search *w, const size_t *list, size_t n, uint32_t member, size_t *edge)
{
	*edge = OM_NNC_NO_EDGE;
	for (size_t k = 0; k < n; k++) {
		w->work++;
		if (om_nnc_graph_passes(w->f, &w->f->edge[list[k]], member)) {
			*edge = list[k];
			return true;
		}
	}
	return w->anywhere;
}

/* `list`: the edges on which all members but the last fit. */
static void
try_candidate(struct tuple_search *w, const uint32_t *member, uint32_t n, const size_t *list, size_t nlist)
{
	struct candidate c = {.n = n};

	for (uint32_t k = 0; k < n; k++) {
		c.member[k] = member[k];
		c.degree += w->f->g->degree[member[k]];
	}
	if (w->best.n && c.degree <= w->best.degree)
		return;
	if (find_edge(w, list, nlist, member[n - 1], &c.edge))
		w->best = c;
}

/* A third member: larger than the first, not larger than the leader, and of those
 * the one with the most neighbors. */
static void
try_triples(struct tuple_search *w, uint32_t small, uint32_t leader)
{
	const om_nnc_graph *f = w->f;

	for (uint32_t k = 0; k < w->n && w->work < w->max_work; k++, w->work++) {
		const uint32_t t = w->by_degree[k], tuple[] = {leader, small, t};
		if (w->best.n && f->g->degree[small] + f->g->degree[leader] + (uint64_t)f->g->degree[t] <= w->best.degree)
			return;
		if (t != leader && f->bytes[t] > f->bytes[small] && f->bytes[t] <= f->bytes[leader]
		    && are_compatible(w, t, small) && are_compatible(w, t, leader))
			try_candidate(w, tuple, 3, w->pair_fit, w->npair_fit);
	}
}

static void
list_fitting_edges(struct tuple_search *w, uint32_t leader)
{
	const om_nnc_graph *f = w->f;

	w->nfit = 0;
	if (w->anywhere)
		return;
	for (size_t k = w->seen[leader]; k < f->nedge; k++) {
		const om_nnc_edge *e = &f->edge[k];
		if (e->high - e->low >= f->bytes[leader] && om_nnc_graph_passes(f, e, leader))
			w->fit[w->nfit++] = k;
	}
	w->work += f->nedge - w->seen[leader];
	if (w->nfit == 0)
		w->seen[leader] = f->nedge;
}

static void
list_pair_edges(struct tuple_search *w, uint32_t small)
{
	w->npair_fit = 0;
	for (size_t k = 0; k < w->nfit; k++)
		if (om_nnc_graph_passes(w->f, &w->f->edge[w->fit[k]], small))
			w->pair_fit[w->npair_fit++] = w->fit[k];
	w->work += w->nfit;
}

/* No buffer has more neighbors than the first on the list. */
static bool
is_dominated(const struct tuple_search *w, uint32_t leader)
{
	const uint32_t *degree = w->f->g->degree;

	return w->best.n && UINT64_C(2) * degree[w->by_degree[0]] + degree[leader] <= w->best.degree;
}

/* All candidates whose largest member is the leader. */
static void
try_leader(struct tuple_search *w, uint32_t leader)
{
	const om_nnc_graph *f = w->f;
	const uint32_t max_degree = f->g->degree[w->by_degree[0]];

	w->work++;
	if (is_dominated(w, leader))
		return;
	list_fitting_edges(w, leader);
	if (w->nfit == 0 && !w->anywhere)
		return;
	for (uint32_t k = 0; k < w->n && f->g->degree[w->by_degree[k]] == max_degree
		&& w->work < w->max_work; k++) {
		const uint32_t t = w->by_degree[k], pair[] = {leader, t};
		w->work++;
		if (t == leader)
			try_candidate(w, &t, 1, w->fit, w->nfit);
		if (f->bytes[t] >= f->bytes[leader] || !are_compatible(w, t, leader))
			continue;
		list_pair_edges(w, t);
		if (w->npair_fit == 0 && !w->anywhere)
			continue;
		try_candidate(w, pair, 2, w->pair_fit, w->npair_fit);
		try_triples(w, t, leader);
		if (is_dominated(w, leader))
			return;
	}
}

static bool
choose_candidate(struct tuple_search *w, bool anywhere)
{
	w->anywhere = anywhere;
	w->best = (struct candidate){.n = 0};
	for (uint32_t k = 0; k < w->n && w->work < w->max_work; k++) {
		if (w->best.n && w->f->bytes[w->by_size[k]] < w->f->bytes[w->by_size[k - 1]])
			break;
		try_leader(w, w->by_size[k]);
	}
	return w->best.n;
}

/* At the bound: the buffer with the most neighbors, alone. */
static void
choose_single(struct tuple_search *w)
{
	const uint32_t t = w->by_degree[0];

	w->best = (struct candidate){.member = {t}, .n = 1,
		.edge = om_nnc_graph_find(w->f, t, w->f->bytes[t], 0)};
}

void
om_nnc_by_tuples(om_nnc_graph *f, uint64_t work)
{
	struct tuple_search w = {.f = f, .max_work = work ? work : DEFAULT_WORK, .seen = OM_NEWN(f->mem, size_t, f->n)};
	size_t capacity = 0;

	w.by_size = sorted_list(f, false, &w.n);
	w.by_degree = sorted_list(f, true, &w.n);
	while (w.n) {
		if (f->nedge > capacity) {
			capacity = 2 * f->nedge;
			w.fit = OM_NEWN(f->mem, size_t, capacity);
			w.pair_fit = OM_NEWN(f->mem, size_t, capacity);
		}
		if (!choose_candidate(&w, false) && !choose_candidate(&w, true))
			choose_single(&w);
		f->is_limited |= w.work >= w.max_work;
		om_nnc_graph_insert(f, w.best.member, w.best.n, w.best.edge);
		remove_inserted(f, w.by_size, w.n);
		remove_inserted(f, w.by_degree, w.n);
		w.n -= w.best.n;
	}
}
