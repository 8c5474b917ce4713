/* The order of insertion that the text on NNC's allocation describes.
 *
 * Candidates are the buffers with the most neighbours in the interference
 * graph that are not inserted yet, alone, with a larger one that interferes with
 * neither, or with two.  Those with the largest member come first, then those
 * with the most neighbours in total, then program order.  The first candidate
 * that fits on an edge is inserted there; where none does, the first of all
 * gets bytes of its own.
 *
 * What the text leaves open: "none of the ends are the dummy source or sink"
 * means that the edge does not go from the source to the sink; taken by the
 * letter it would forbid almost all sharing.
 *
 * There are n^3 candidates; they are not listed.  The largest member leads:
 * where it fits on no edge, no candidate with it does, and it is not asked again
 * until there are new edges.  What one insertion may look at is bounded, so n
 * insertions take n times that; beyond the bound the best candidate so far is
 * taken.  Each insertion takes a buffer with the most neighbours, so it ends.
 */
#include <config.h>

#include <stdlib.h>

#include "pack/baselines/nnc_graph.h"
#include "pack/sort_keys.h"

enum { LOOKS = 20 * 1000 * 1000, LEAST_LOOKS = 2 * 1000 };

struct candidate {
	uint32_t member[OM_NNC_TUPLE];
	uint32_t n;
	uint64_t degree;         /* in total */
	size_t edge;
};

struct teller {
	om_nnc_graph *f;
	uint32_t *by_size;       /* what is not inserted; largest first */
	uint32_t *by_degree;     /* what is not inserted; most neighbours first */
	uint32_t n;
	size_t *seen;            /* by buffer: it fits on no edge below this number */
	size_t *fit;             /* edges on which the leader fits */
	size_t nfit;
	bool anywhere;           /* no edge is asked for */
	uint64_t looks, most;
	struct candidate best;
};

/* ---- Lists. ---- */

static uint32_t *
sorted_list(const om_nnc_graph *f, bool degree_first, uint32_t *count)
{
	om_rank *key = OM_NEWN(f->mem, om_rank, f->n);
	uint32_t *list = OM_NEWN(f->mem, uint32_t, f->n), n = 0;

	for (uint32_t k = 0; k < f->n; k++)
		if (!f->is_in[k])
			key[n++] = (om_rank){degree_first ? f->g->degree[k] : f->bytes[k],
				degree_first ? f->bytes[k] : f->g->degree[k], k};
	qsort(key, n, sizeof *key, om_by_rank);
	for (uint32_t k = 0; k < n; k++)
		list[k] = key[k].id;
	*count = n;
	return list;
}

static void
drop_inserted(const om_nnc_graph *f, uint32_t *list, uint32_t n)
{
	uint32_t m = 0;

	for (uint32_t k = 0; k < n; k++)
		if (!f->is_in[list[k]])
			list[m++] = list[k];
}

/* ---- Candidates. ---- */

static bool
may_follow(const struct teller *w, uint32_t a, uint32_t b)
{
	return om_interfere_before(w->f->g, a, b) || om_interfere_before(w->f->g, b, a);
}

/* The first edge of the leader's that passes by all members. */
static bool
find_edge(struct teller *w, const uint32_t *member, uint32_t n, size_t *edge)
{
	*edge = OM_NNC_NO_EDGE;
	for (size_t k = 0; k < w->nfit; k++) {
		uint32_t i = 0;
		for (w->looks++; i < n && om_nnc_graph_passes(w->f, &w->f->edge[w->fit[k]], member[i]);)
			i++;
		if (i == n) {
			*edge = w->fit[k];
			return true;
		}
	}
	return w->anywhere;
}

static void
consider(struct teller *w, const uint32_t *member, uint32_t n)
{
	struct candidate c = {.n = n};

	for (uint32_t k = 0; k < n; k++) {
		c.member[k] = member[k];
		c.degree += w->f->g->degree[member[k]];
	}
	if (w->best.n && c.degree <= w->best.degree)
		return;
	if (find_edge(w, member, n, &c.edge))
		w->best = c;
}

/* A third member: larger than the first, no larger than the leader, and of those
 * the one with the most neighbours. */
static void
consider_thirds(struct teller *w, uint32_t small, uint32_t leader)
{
	const om_nnc_graph *f = w->f;

	for (uint32_t k = 0; k < w->n && w->looks < w->most; k++, w->looks++) {
		const uint32_t t = w->by_degree[k], tuple[] = {small, leader, t};
		if (w->best.n && f->g->degree[small] + f->g->degree[leader] + (uint64_t)f->g->degree[t] <= w->best.degree)
			return;
		if (t != leader && f->bytes[t] > f->bytes[small] && f->bytes[t] <= f->bytes[leader]
		    && may_follow(w, t, small) && may_follow(w, t, leader))
			consider(w, tuple, 3);
	}
}

static void
list_fits(struct teller *w, uint32_t leader)
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
	w->looks += f->nedge - w->seen[leader];
	if (w->nfit == 0)
		w->seen[leader] = f->nedge;
}

/* Nobody has more neighbours than the first on the list. */
static bool
is_beaten(const struct teller *w, uint32_t leader)
{
	const uint32_t *degree = w->f->g->degree;

	return w->best.n && UINT64_C(2) * degree[w->by_degree[0]] + degree[leader] <= w->best.degree;
}

/* All candidates whose largest member this is. */
static void
consider_leader(struct teller *w, uint32_t leader)
{
	const om_nnc_graph *f = w->f;
	const uint32_t most = f->g->degree[w->by_degree[0]];

	w->looks++;
	if (is_beaten(w, leader))
		return;
	list_fits(w, leader);
	if (w->nfit == 0 && !w->anywhere)
		return;
	for (uint32_t k = 0; k < w->n && f->g->degree[w->by_degree[k]] == most && w->looks < w->most; k++) {
		const uint32_t t = w->by_degree[k], pair[] = {t, leader};
		w->looks++;
		if (t == leader)
			consider(w, &t, 1);
		if (f->bytes[t] >= f->bytes[leader] || !may_follow(w, t, leader))
			continue;
		consider(w, pair, 2);
		consider_thirds(w, t, leader);
		if (is_beaten(w, leader))
			return;
	}
}

static bool
choose(struct teller *w, bool anywhere)
{
	w->anywhere = anywhere;
	w->best = (struct candidate){.n = 0};
	w->looks = 0;
	for (uint32_t k = 0; k < w->n && w->looks < w->most; k++) {
		if (w->best.n && w->f->bytes[w->by_size[k]] < w->f->bytes[w->by_size[k - 1]])
			break;
		consider_leader(w, w->by_size[k]);
	}
	return w->best.n;
}

/* Past the bound: what has the most neighbours, alone. */
static void
choose_first(struct teller *w)
{
	const uint32_t t = w->by_degree[0];

	w->best = (struct candidate){.member = {t}, .n = 1,
		.edge = om_nnc_graph_find(w->f, t, w->f->bytes[t], 0)};
}

void
om_nnc_by_tuples(om_nnc_graph *f)
{
	struct teller w = {.f = f, .seen = OM_NEWN(f->mem, size_t, f->n)};
	size_t room = 0;

	w.by_size = sorted_list(f, false, &w.n);
	w.by_degree = sorted_list(f, true, &w.n);
	w.most = LOOKS / ((uint64_t)w.n + 1) + LEAST_LOOKS;
	while (w.n) {
		if (f->nedge > room) {
			room = 2 * f->nedge;
			w.fit = OM_NEWN(f->mem, size_t, room);
		}
		if (!choose(&w, false) && !choose(&w, true))
			choose_first(&w);
		om_nnc_graph_insert(f, w.best.member, w.best.n, w.best.edge);
		drop_inserted(f, w.by_size, w.n);
		drop_inserted(f, w.by_degree, w.n);
		w.n -= w.best.n;
	}
}
