/* A lower bound for packing by pairs: the heaviest clique of the interference
 * graph, whose members all need bytes of their own.
 *
 * Heavy cliques are first picked greedily around the heaviest neighbourhoods;
 * then all are looked at, as Carraghan and Pardalos do: from each buffer on,
 * cliques of it and later buffers, left as soon as all that is left to choose
 * from is too light.  Any clique is a bound, so it may stop at any time.
 */
#include <config.h>

#include <stdlib.h>

#include "pack/graph_packing.h"

struct cliques {
	const om_units *u;
	const bool *in;
	uint32_t *rank;              /* by buffer: place in the order of the search */
	uint32_t *cand;              /* candidates of all depths, one behind the other */
	uint64_t best, work;
	uint32_t one;
};

struct heavy {
	uint64_t weight;
	uint32_t buf;
};

static uint64_t
bytes_of(const struct cliques *c, uint32_t k)
{
	return c->in[c->u->of[k]] ? c->u->whole[k].bytes : 0;
}

static bool
spend(struct cliques *c, uint64_t work)
{
	if (c->work < work)
		return false;
	c->work -= work;
	return true;
}

static int
heaviest_first(const void *a, const void *b)
{
	const struct heavy *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x->buf < y->buf ? -1 : x->buf > y->buf;
}

/* Those of `cand` that are next to `k`; both lists are sorted. */
static uint32_t
common(struct cliques *c, const uint32_t *cand, uint32_t n, uint32_t k, uint32_t *out)
{
	const uint32_t *near = c->u->near + c->u->start[k];
	const uint64_t m = c->u->start[k + 1] - c->u->start[k];
	uint32_t found = 0, i = 0;

	for (uint64_t j = 0; i < n && j < m;)
		if (cand[i] < near[j])
			i++;
		else if (cand[i] > near[j])
			j++;
		else
			out[found++] = cand[i++];
	return found;
}

static void
found(struct cliques *c, uint64_t weight, uint32_t one)
{
	if (weight > c->best) {
		c->best = weight;
		c->one = one;
	}
}

/* The heaviest neighbour, then the heaviest common one, and so on. */
static bool
pick(struct cliques *c, uint32_t k)
{
	const om_units *u = c->u;
	uint64_t weight = bytes_of(c, k);
	uint32_t n = 0;

	for (uint64_t i = u->start[k]; i < u->start[k + 1]; i++)
		if (bytes_of(c, u->near[i]))
			c->cand[n++] = u->near[i];
	while (n) {
		uint32_t top = 0;
		for (uint32_t i = 1; i < n; i++)
			if (bytes_of(c, c->cand[i]) > bytes_of(c, c->cand[top]))
				top = i;
		const uint32_t chosen = c->cand[top];
		if (!spend(c, n + u->start[chosen + 1] - u->start[chosen]))
			return false;
		weight += bytes_of(c, chosen);
		n = common(c, c->cand, n, chosen, c->cand);
	}
	found(c, weight, k);
	return true;
}

/* All cliques within `cand`, which has `room` behind it; false when out of work. */
static bool
expand(struct cliques *c, const uint32_t *cand, uint32_t n, uint64_t weight, uint32_t one)
{
	uint64_t sum = 0;

	found(c, weight, one);
	if (!spend(c, n + 1))
		return false;
	for (uint32_t k = 0; k < n; k++)
		sum += bytes_of(c, cand[k]);
	for (uint32_t k = 0; k < n && weight + sum > c->best; k++) {
		uint32_t *next = (uint32_t *)cand + n;
		const uint64_t bytes = bytes_of(c, cand[k]);
		if (!spend(c, n - k + c->u->start[cand[k] + 1] - c->u->start[cand[k]]))
			return false;
		const uint32_t m = common(c, cand + k + 1, n - k - 1, cand[k], next);
		if (!expand(c, next, m, weight + bytes, one))
			return false;
		sum -= bytes;
	}
	return true;
}

static uint64_t
weight_around(const struct cliques *c, uint32_t k)
{
	uint64_t weight = bytes_of(c, k);

	for (uint64_t i = c->u->start[k]; i < c->u->start[k + 1]; i++)
		weight += bytes_of(c, c->u->near[i]);
	return weight;
}

/* Each buffer with those that come later in the order. */
static void
search(struct cliques *c, const struct heavy *v, uint32_t n)
{
	const om_units *u = c->u;

	for (uint32_t k = 0; k < n; k++)
		c->rank[v[k].buf] = k;
	for (uint32_t k = n; k-- > 0;) {
		const uint32_t b = v[k].buf;
		uint32_t m = 0;
		if (v[k].weight <= c->best)
			continue;
		for (uint64_t i = u->start[b]; i < u->start[b + 1]; i++)
			if (bytes_of(c, u->near[i]) && c->rank[u->near[i]] < k)
				c->cand[m++] = u->near[i];
		if (!expand(c, c->cand, m, bytes_of(c, b), b))
			return;
	}
}

uint64_t
om_clique_bound(const om_units *u, const bool *in, uint64_t work, uint32_t *one)
{
	om_arena *mem = om_arena_new();
	struct cliques c = {.u = u, .in = in, .work = work / 2};
	struct heavy *v = OM_NEWN(mem, struct heavy, u->nwhole);
	uint64_t room = 0;
	uint32_t n = 0;

	for (uint32_t k = 0; k < u->nwhole; k++) {
		if (bytes_of(&c, k) == 0)
			continue;
		v[n++] = (struct heavy){weight_around(&c, k), k};
		if (u->start[k + 1] - u->start[k] > room)
			room = u->start[k + 1] - u->start[k];
	}
	qsort(v, n, sizeof *v, heaviest_first);
	c.cand = OM_NEWN(mem, uint32_t, room);
	for (uint32_t k = 0; k < n && pick(&c, v[k].buf); k++)
		continue;
	c.work += work / 2;
	if (room <= 4096) {
		c.cand = OM_NEWN(mem, uint32_t, (room + 1) * (room + 1));
		c.rank = OM_NEWN(mem, uint32_t, u->nwhole);
		search(&c, v, n);
	}
	*one = c.one;
	om_arena_free(mem);
	return c.best;
}
