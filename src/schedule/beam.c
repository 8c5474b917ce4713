/* Good orders without proof: sets of ops by their size, the best of each size
 * followed.  What is best: the lower peak so far, then the fewer bytes alive.
 * An op that frees at least what it makes and live_out within the peak runs at
 * once (see exact.c).
 */
#include <config.h>

#include "base/rng.h"
#include "schedule/subproblem.h"

struct state {
	uint64_t peak, alive, hash;
	uint32_t from, unit, size;
	uint32_t next;               /* of the same size; 0 ends the list */
	uint32_t at;                 /* its set */
};

struct beam {
	const om_subproblem *g;
	om_arena *mem;
	uint64_t level, upper;
	uint64_t *nodes;
	struct state *state;         /* state 0 is none */
	size_t n, cap;
	uint32_t *first;             /* by size: states */
	uint64_t *set;
	size_t nset, capset;
	uint32_t *spare;             /* sets that nobody needs any more */
	size_t nspare, capspare;
};

static uint64_t *
set_of(const struct beam *b, uint32_t k)
{
	return b->set + (size_t)b->state[k].at * b->g->width;
}

static uint32_t
new_set(struct beam *b)
{
	if (b->nspare)
		return b->spare[--b->nspare];
	b->set = om_grow(b->mem, b->set, b->g->width * sizeof *b->set, b->nset, &b->capset);
	return (uint32_t)b->nset++;
}

static void
add(struct beam *b, uint32_t from, uint32_t unit, const om_move *m)
{
	const struct state *s = &b->state[from];
	const uint32_t size = s->size + b->g->unit[unit + 1] - b->g->unit[unit];
	const struct state new = {m->step > s->peak ? m->step : s->peak, m->alive,
		s->hash + om_mix(unit + UINT64_C(0x9e3779b97f4a7c15)), from, unit, size, b->first[size], new_set(b)};

	OM_PUSH(b->mem, b->state, b->n, b->cap, new);
	const uint32_t k = (uint32_t)b->n - 1;
	b->first[size] = k;
	memcpy(set_of(b, k), set_of(b, from), b->g->width * sizeof *b->set);
	om_unit_run(b->g, set_of(b, k), unit);
}

/* All moves, or the one that can be made at once. */
static void
expand(struct beam *b, uint32_t k)
{
	const uint64_t alive = b->state[k].alive;
	const uint64_t within = b->state[k].peak > b->level ? b->state[k].peak : b->level;
	const size_t before = b->n;

	--*b->nodes;
	for (uint32_t u = 0; (u = om_next_ready(b->g, set_of(b, k), u)) < b->g->nunit; u++) {
		const om_move m = om_unit_move(b->g, set_of(b, k), alive, u);
		if (m.step >= b->upper)
			continue;
		if (m.alive <= alive && m.step <= within)
			while (b->n > before) {  /* it makes the others needless */
				const struct state *s = &b->state[--b->n];
				b->first[s->size] = s->next;
				OM_PUSH(b->mem, b->spare, b->nspare, b->capspare, s->at);
			}
		add(b, k, u, &m);
		if (m.alive <= alive && m.step <= within)
			return;
	}
}

struct rank {
	uint64_t peak, alive, hash;
	uint32_t state;
};

static bool
is_better(const struct rank *x, const struct rank *y)
{
	if (x->peak != y->peak)
		return x->peak < y->peak;
	if (x->alive != y->alive)
		return x->alive < y->alive;
	if (x->hash != y->hash)
		return x->hash < y->hash;
	return x->state < y->state;
}

/* The heap below `at`, the best one first, but for what lies at `at`. */
static void
sift(struct rank *heap, size_t n, size_t at)
{
	const struct rank r = heap[at];

	for (size_t kid; (kid = 2 * at + 1) < n; at = kid) {
		if (kid + 1 < n && is_better(&heap[kid + 1], &heap[kid]))
			kid++;
		if (!is_better(&heap[kid], &r))
			break;
		heap[at] = heap[kid];
	}
	heap[at] = r;
}

/* The best of `n`, which goes behind the others. */
static const struct rank *
take_best(struct rank *heap, size_t n)
{
	const struct rank best = heap[0];

	heap[0] = heap[n - 1];
	heap[n - 1] = best;
	if (n > 1)
		sift(heap, n - 1, 0);
	return &heap[n - 1];
}

/* The states of one size: the best go on, of equal sets one.  There are many more than go on, so they
 * are not sorted. */
static void
follow(struct beam *b, uint32_t size, uint32_t width, struct rank **rank, size_t *cap)
{
	const size_t bytes = b->g->words * sizeof *b->set;
	size_t n = 0, kept = 0;

	for (uint32_t k = b->first[size]; k; k = b->state[k].next) {
		const struct rank r = {b->state[k].peak > b->level ? b->state[k].peak : b->level,
			b->state[k].alive, b->state[k].hash, k};
		OM_PUSH(b->mem, *rank, n, *cap, r);
	}
	for (size_t k = n / 2; k-- > 0;)
		sift(*rank, n, k);
	for (size_t k = n; k > 0 && kept < width && *b->nodes; k--) {
		const struct rank *r = take_best(*rank, k), *last = r + 1;
		if (k < n && last->hash == r->hash && memcmp(set_of(b, last->state), set_of(b, r->state), bytes) == 0)
			continue;
		kept++;
		expand(b, r->state);
	}
	for (uint32_t k = b->first[size]; k; k = b->state[k].next)
		OM_PUSH(b->mem, b->spare, b->nspare, b->capspare, b->state[k].at);
}

static void
write_order(const struct beam *b, uint32_t k, uint32_t *order)
{
	uint32_t n = b->g->nop;

	for (; b->state[k].from; k = b->state[k].from) {
		const uint32_t u = b->state[k].unit;
		for (uint32_t i = b->g->unit[u + 1]; i-- > b->g->unit[u];)
			order[--n] = i;
	}
}

static void
start(struct beam *b)
{
	const struct state none = {0}, root = {.alive = b->g->base, .at = new_set(b)};

	OM_PUSH(b->mem, b->state, b->n, b->cap, none);
	OM_PUSH(b->mem, b->state, b->n, b->cap, root);
	om_set_start(b->g, set_of(b, 1));
	b->first[0] = 1;
}

om_found
om_subproblem_beam(const om_subproblem *g, uint64_t level, uint64_t upper, uint32_t width, uint64_t *nodes,
	uint32_t *order)
{
	om_arena *mem = om_arena_new();
	struct beam b = {.g = g, .mem = mem, .level = level, .upper = upper, .nodes = nodes,
		.first = OM_NEWN(mem, uint32_t, (size_t)g->nop + 1)};
	struct rank *rank = NULL;
	size_t cap = 0;
	uint32_t best;

	start(&b);
	for (uint32_t size = 0; size < g->nop && *nodes; size++)
		follow(&b, size, width, &rank, &cap);
	best = b.first[g->nop];
	for (uint32_t k = best; k; k = b.state[k].next)
		if (b.state[k].peak < b.state[best].peak)
			best = k;
	if (best)
		write_order(&b, best, order);
	om_arena_free(mem);
	return best ? OM_FOUND : OM_GAVE_UP;
}
