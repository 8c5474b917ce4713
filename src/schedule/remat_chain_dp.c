/* Chains: what to keep of them, exactly.
 *
 * Storages form a chain where they are needed again in the reverse of the order in which
 * they are made, and each is made from the one before it, with nothing but what is there
 * anyway.  Then those that are kept cut the chain into stretches.  A stretch is made again as
 * a whole, when its last storage is needed; what is alive from then until its first one was
 * needed depends on the bytes that are kept before it alone, not on which they are.
 *
 * So from left to right, for each storage that may be kept next: all pairs of bytes kept so far
 * and cost so far, but for those that another one beats in both.  Every set of storages is looked
 * at in that way, so none that keeps to the budget costs less, as the bytes are counted here:
 * what is computed in place because something was dropped is not.
 *
 * After Beaumont, Herrmann, Pallez and Shilova, "Optimal memory-aware backpropagation of deep
 * join networks" (2020), with each storage made again at most once. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "schedule/remat_schedule.h"

enum { NONE = OM_ORDER_NONE, LONGEST = 300 };

/* What leads from one storage of the chain to the next. */
struct link {
	uint32_t s, gap;
	uint64_t bytes, making;  /* making: the most that is there while it is made again, itself and
	                            what is between */
	double cost;
	uint64_t forward, backward;  /* load where nothing is kept: up to its last use before the gap,
	                            from the one before; behind the gap, up to that of the one before */
	uint64_t again;          /* alive before the op that needs it again */
};

struct chain {
	om_remat *g;
	struct link *link;       /* from 1 to n; 0 is the start */
	uint32_t n;
	uint64_t budget;
	uint32_t before;         /* the storage that the one at hand is to be made from */
	bool is_chain, meets_before;
	bool *has_gap;           /* by storage: one to be dropped in */
	uint32_t *seen, visits;  /* by storage: in which visit */
};

struct way {
	uint64_t kept;
	double cost;
	uint32_t from, way;      /* the link that was kept before, and which of its ways */
};

struct ways {
	struct way *way;
	size_t n, cap;
};

/* ---- Is it one? ---- */

static int
by_gone(const void *a, const void *b)
{
	const struct link *x = a, *y = b;
	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* The path of ops that make `s` again before op `i`, from what is there or from the storage
 * before it. */
static void
follow(struct chain *c, struct link *to, uint32_t s, uint32_t i)
{
	om_remat *g = c->g;
	const uint32_t m = g->q->storage[s].maker;
	const om_order_op *op = &g->q->op[m];

	c->is_chain &= c->seen[s] != c->visits;
	c->seen[s] = c->visits;
	if (!c->is_chain)
		return;
	to->cost += g->w->cost[m];
	to->making += op->begin;
	c->is_chain &= i <= g->w->until[m];
	for (uint32_t k = 0; k < op->nuse && c->is_chain; k++) {
		const uint32_t u = op->use[k];
		if (u == c->before)
			c->meets_before = true;
		else if (c->has_gap[u])
			c->is_chain = false;
		else if (g->end[u] < i && !g->may[u])
			c->is_chain = false;
		else if (g->end[u] < i)
			follow(c, to, u, i);
	}
}

static bool
make_links(struct chain *c)
{
	om_remat *g = c->g;

	for (uint32_t k = 0; k < g->ngap; k++)
		if (om_remat_is_main(g, k)) {
			if (c->n == LONGEST || c->has_gap[g->gap[k].s])
				return false;
			c->has_gap[g->gap[k].s] = true;
			c->link[++c->n] = (struct link){.s = g->gap[k].s, .gap = k, .bytes = g->gap[k].gone};
		}
	qsort(c->link + 1, c->n, sizeof *c->link, by_gone);
	c->is_chain = c->n > 0;
	for (uint32_t j = 1; j <= c->n && c->is_chain; j++) {
		struct link *to = &c->link[j];
		to->bytes = g->q->storage[to->s].bytes;
		c->before = j > 1 ? c->link[j - 1].s : NONE;
		c->meets_before = j == 1;
		c->visits++;
		follow(c, to, to->s, g->gap[to->gap].back);
		c->is_chain &= c->meets_before;
		if (j > 1)
			c->is_chain &= g->gap[to[-1].gap].gone < g->gap[to->gap].gone && g->gap[to->gap].back < g->gap[to[-1].gap].back;
	}
	return c->is_chain;
}

/* ---- What is alive when nothing is kept. ---- */

static void
find_loads(struct chain *c)
{
	om_remat *g = c->g;
	const uint32_t nop = g->q->nop;
	uint32_t j = 0, down = 0;
	uint64_t in_gap = 0;

	memset(g->drop, 0, g->ngap * sizeof *g->drop);
	om_remat_run(g);
	for (uint32_t i = 0; i < nop; i++) {
		if (down && i == g->gap[c->link[down].gap].back)   /* the last of those that are in their gap comes back */
			c->link[down].again = g->before[i] - in_gap;
		while (down && i >= g->gap[c->link[down].gap].back)
			in_gap -= c->link[down--].bytes;
		const uint64_t load = g->during[i] - in_gap;
		uint64_t *to = down == j && j < c->n ? &c->link[j + 1].forward : &c->link[down].backward;
		*to = load > *to ? load : *to;
		while (j < c->n && i >= g->gap[c->link[j + 1].gap].gone)
			in_gap += c->link[down = ++j].bytes;
	}
}

/* ---- Ways. ---- */

static void
add_way(om_arena *mem, struct ways *to, struct way w)
{
	size_t at = 0, from;

	while (at < to->n && to->way[at].kept <= w.kept)
		if (to->way[at++].cost <= w.cost)
			return;
	for (from = at; from < to->n && to->way[from].cost >= w.cost; from++)
		;
	if (from == at)
		OM_PUSH(mem, to->way, to->n, to->cap, w);
	const size_t left = from == at ? to->n - 1 - at : to->n - from;
	memmove(to->way + at + 1, to->way + (from == at ? at : from), left * sizeof w);
	to->way[at] = w;
	to->n = at + 1 + left;
}

/* The most that the stretch between the links a and e takes beside what is kept up to a. */
static uint64_t
most_of(const struct chain *c, uint32_t a, uint32_t e, double *cost)
{
	uint64_t sum = 0, most = c->link[a].backward, making = 0;

	*cost = 0;
	for (uint32_t j = a + 1; j < e; j++) {
		const struct link *l = &c->link[j];
		making = sum + l->making > making ? sum + l->making : making;
		sum += l->bytes;
		*cost += l->cost;
		/* Its own uses come when those behind it are over; of the last, before it is made again. */
		const uint64_t now = l->backward + (j + 1 < e ? sum : 0);
		most = now > most ? now : most;
	}
	if (e > a + 1 && c->link[e - 1].again + making > most)
		most = c->link[e - 1].again + making;
	for (uint32_t j = a + 1; j <= e && j <= c->n; j++)
		most = c->link[j].forward > most ? c->link[j].forward : most;
	return most;
}

static void
extend(struct chain *c, struct ways *ways, uint32_t a, uint32_t e)
{
	double cost;
	const uint64_t most = most_of(c, a, e, &cost);

	for (size_t k = 0; k < ways[a].n; k++) {
		const struct way *w = &ways[a].way[k];
		if (w->kept + most <= c->budget)
			add_way(c->g->mem, &ways[e], (struct way){w->kept + (e <= c->n ? c->link[e].bytes : 0), w->cost + cost,
				a, (uint32_t)k});
	}
}

static void
drop_helper(void *arg, uint32_t gap)
{
	om_remat *g = arg;

	g->drop[gap] |= !om_remat_is_main(g, gap);
}

/* What is not kept on the way is dropped. */
static void
take(struct chain *c, const struct ways *ways)
{
	om_remat *g = c->g;
	const struct way *w = &ways[c->n + 1].way[0];

	for (size_t k = 1; k < ways[c->n + 1].n; k++)
		if (ways[c->n + 1].way[k].cost < w->cost)
			w = &ways[c->n + 1].way[k];
	for (uint32_t j = 1; j <= c->n; j++)
		g->drop[c->link[j].gap] = true;
	for (uint32_t at = w->from; at; at = w->from) {
		g->drop[c->link[at].gap] = false;
		w = &ways[at].way[w->way];
	}
	for (uint32_t j = 1; j <= c->n; j++)
		if (g->drop[c->link[j].gap])
			om_remat_needs(g, c->link[j].gap, drop_helper, g);
}

bool
om_remat_chain(om_remat *g, uint64_t budget, bool *found)
{
	struct chain c = {.g = g, .link = OM_NEWN(g->mem, struct link, LONGEST + 2), .budget = budget,
		.has_gap = OM_NEWN(g->mem, bool, g->q->nstorage), .seen = OM_NEWN(g->mem, uint32_t, g->q->nstorage)};
	bool *was = om_memdup(g->mem, g->drop, g->ngap * sizeof *was);

	*found = false;
	if (!make_links(&c))
		return false;
	find_loads(&c);
	struct ways *ways = OM_NEWN(g->mem, struct ways, (size_t)c.n + 2);
	add_way(g->mem, &ways[0], (struct way){0});
	for (uint32_t a = 0; a <= c.n; a++)
		for (uint32_t e = a + 1; e <= c.n + 1; e++)
			extend(&c, ways, a, e);
	*found = ways[c.n + 1].n > 0;
	if (*found)
		take(&c, ways);
	else
		memcpy(g->drop, was, g->ngap * sizeof *was);
	return true;
}
