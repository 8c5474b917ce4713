/* SPDX-License-Identifier: Apache-2.0 */
/* A lower bound for packing by pairs: the heaviest clique of the interference
 * graph, whose members all require bytes of their own.
 *
 * Heavy cliques are first chosen greedily around the heaviest neighborhoods.  Then
 * all cliques are enumerated as Carraghan and Pardalos do: for each buffer the
 * cliques of it and later buffers, with a cut as soon as the remaining candidates
 * are too light.  Any clique is a bound, so the search may stop at any time.
 */
#include <config.h>

#include <stdlib.h>

#include "pack/graph_packing.h"

struct cliques {
	const om_units *u;
	const bool *in;
	uint32_t *rank;              /* by buffer: its position in the order of the search */
	uint32_t *cand;              /* candidates of all depths, one list after the other */
	uint64_t best, work;
	uint32_t member;
};

struct weighted_buffer {
	uint64_t weight;
	uint32_t buf;
};

static uint64_t
bytes_of(const struct cliques *c, uint32_t k)
{
	return c->in[c->u->unit_of[k]] ? c->u->source[k].bytes : 0;
}

static bool
spend_work(struct cliques *c, uint64_t work)
{
	if (c->work < work)
		return false;
	c->work -= work;
	return true;
}

static int
compare_weight(const void *a, const void *b)
{
	const struct weighted_buffer *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x->buf < y->buf ? -1 : x->buf > y->buf;
}

/* The members of `cand` that are adjacent to `k`; both lists are sorted. */
static uint32_t
intersect(struct cliques *c, const uint32_t *cand, uint32_t n, uint32_t k, uint32_t *out)
{
	const uint32_t *adj = c->u->adj + c->u->adj_start[k];
	const uint64_t m = c->u->adj_start[k + 1] - c->u->adj_start[k];
	uint32_t update_best = 0, i = 0;

	for (uint64_t j = 0; i < n && j < m;)
		if (cand[i] < adj[j])
			i++;
		else if (cand[i] > adj[j])
			j++;
		else
			out[update_best++] = cand[i++];
	return update_best;
}

static void
update_best(struct cliques *c, uint64_t weight, uint32_t member)
{
	if (weight > c->best) {
		c->best = weight;
		c->member = member;
	}
}

/* Extend {k} by the heaviest neighbor, then by the heaviest common one, and so on. */
static bool
grow_clique(struct cliques *c, uint32_t k)
{
	const om_units *u = c->u;
	uint64_t weight = bytes_of(c, k);
	uint32_t n = 0;

	for (uint64_t i = u->adj_start[k]; i < u->adj_start[k + 1]; i++)
		if (bytes_of(c, u->adj[i]))
			c->cand[n++] = u->adj[i];
	while (n) {
		uint32_t top = 0;
		for (uint32_t i = 1; i < n; i++)
			if (bytes_of(c, c->cand[i]) > bytes_of(c, c->cand[top]))
				top = i;
		const uint32_t chosen = c->cand[top];
		if (!spend_work(c, n + u->adj_start[chosen + 1] - u->adj_start[chosen]))
			return false;
		weight += bytes_of(c, chosen);
		n = intersect(c, c->cand, n, chosen, c->cand);
	}
	update_best(c, weight, k);
	return true;
}

/* All cliques within `cand`; the next depth uses the memory after it.  False when
 * the work is used up. */
static bool
expand_clique(struct cliques *c, const uint32_t *cand, uint32_t n, uint64_t weight, uint32_t member)
{
	uint64_t sum = 0;

	update_best(c, weight, member);
	if (!spend_work(c, n + 1))
		return false;
	for (uint32_t k = 0; k < n; k++)
		sum += bytes_of(c, cand[k]);
	for (uint32_t k = 0; k < n && weight + sum > c->best; k++) {
		uint32_t *next = (uint32_t *)cand + n;
		const uint64_t bytes = bytes_of(c, cand[k]);
		if (!spend_work(c, n - k + c->u->adj_start[cand[k] + 1] - c->u->adj_start[cand[k]]))
			return false;
		const uint32_t m = intersect(c, cand + k + 1, n - k - 1, cand[k], next);
		if (!expand_clique(c, next, m, weight + bytes, member))
			return false;
		sum -= bytes;
	}
	return true;
}

static uint64_t
neighborhood_weight(const struct cliques *c, uint32_t k)
{
	uint64_t weight = bytes_of(c, k);

	for (uint64_t i = c->u->adj_start[k]; i < c->u->adj_start[k + 1]; i++)
		weight += bytes_of(c, c->u->adj[i]);
	return weight;
}

/* Each buffer with its neighbors that come later in the order. */
static void
search_all(struct cliques *c, const struct weighted_buffer *v, uint32_t n)
{
	const om_units *u = c->u;

	for (uint32_t k = 0; k < n; k++)
		c->rank[v[k].buf] = k;
	for (uint32_t k = n; k-- > 0;) {
		const uint32_t b = v[k].buf;
		uint32_t m = 0;
		if (v[k].weight <= c->best)
			continue;
		for (uint64_t i = u->adj_start[b]; i < u->adj_start[b + 1]; i++)
			if (bytes_of(c, u->adj[i]) && c->rank[u->adj[i]] < k)
				c->cand[m++] = u->adj[i];
		if (!expand_clique(c, c->cand, m, bytes_of(c, b), b))
			return;
	}
}

uint64_t
om_clique_bound(const om_units *u, const bool *in, uint64_t work, uint32_t *member)
{
	om_arena *mem = om_arena_new();
	struct cliques c = {.u = u, .in = in, .work = work / 2};
	struct weighted_buffer *v = OM_NEWN(mem, struct weighted_buffer, u->nsource);
	uint64_t capacity = 0;
	uint32_t n = 0;

	for (uint32_t k = 0; k < u->nsource; k++) {
		if (bytes_of(&c, k) == 0)
			continue;
		v[n++] = (struct weighted_buffer){neighborhood_weight(&c, k), k};
		if (u->adj_start[k + 1] - u->adj_start[k] > capacity)
			capacity = u->adj_start[k + 1] - u->adj_start[k];
	}
	qsort(v, n, sizeof *v, compare_weight);
	c.cand = OM_NEWN(mem, uint32_t, capacity);
	for (uint32_t k = 0; k < n && grow_clique(&c, v[k].buf); k++)
		continue;
	c.work += work / 2;
	if (capacity <= 4096) {
		c.cand = OM_NEWN(mem, uint32_t, (capacity + 1) * (capacity + 1));
		c.rank = OM_NEWN(mem, uint32_t, u->nsource);
		search_all(&c, v, n);
	}
	*member = c.member;
	om_arena_free(mem);
	return c.best;
}
