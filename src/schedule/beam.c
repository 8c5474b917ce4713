/* SPDX-License-Identifier: Apache-2.0 */
/* Beam search: sets of ops by size, the best of each size are expanded.  The best
 * is the one with the lower peak so far, then with fewer bytes live.  An op that
 * frees at least as much as it makes and stays within the peak runs at once (see
 * exact.c). */
#include <config.h>

#include "base/rng.h"
#include "schedule/subproblem.h"

struct beam_state {
	uint64_t peak, live_bytes, hash;
	uint32_t from, unit, size;
	uint32_t next;               /* the next state of the same size; 0 ends the list */
	uint32_t at;                 /* index of its set */
	uint32_t serial;             /* states that were made before it */
	bool is_expanded;            /* and may be on the way to the best order */
};

/* A unit that can run next. */
struct candidate {
	uint32_t unit;
	om_move move;
};

struct beam {
	const om_subproblem *g;
	om_arena *mem;
	uint64_t level, upper;
	uint64_t *nodes;
	struct beam_state *state;         /* index 0 is unused */
	size_t n, cap;
	uint32_t nmade;
	uint32_t *spare_state;       /* of states that were not expanded */
	size_t nspare_state, capspare_state;
	struct candidate *candidate; /* room for all units */
	uint32_t *first;             /* by size: the first state of its list */
	uint64_t *set;
	size_t nset, capset;
	uint32_t *spare;             /* free sets */
	size_t nspare, capspare;
};

static uint64_t *
set_of(const struct beam *b, uint32_t k)
{
	return b->set + (size_t)b->state[k].at * b->g->width;
}

static uint32_t
alloc_set(struct beam *b)
{
	if (b->nspare)
		return b->spare[--b->nspare];
	b->set = om_grow(b->mem, b->set, b->g->width * sizeof *b->set, b->nset, &b->capset);
	return (uint32_t)b->nset++;
}

/* Store a state, in the place of one that nothing refers to if there is such a place. */
static uint32_t
store_state(struct beam *b, struct beam_state new)
{
	new.serial = b->nmade++;
	if (!b->nspare_state) {
		OM_PUSH(b->mem, b->state, b->n, b->cap, new);
		return (uint32_t)b->n - 1;
	}
	const uint32_t k = b->spare_state[--b->nspare_state];
	b->state[k] = new;
	return k;
}

static void
add_state(struct beam *b, uint32_t from, uint32_t unit, const om_move *m)
{
	const struct beam_state *s = &b->state[from];
	const uint32_t size = s->size + b->g->unit[unit + 1] - b->g->unit[unit];
	const uint32_t k = store_state(b, (struct beam_state){m->step > s->peak ? m->step : s->peak, m->live_bytes,
		s->hash + om_mix(unit + UINT64_C(0x9e3779b97f4a7c15)), from, unit, size, b->first[size], alloc_set(b), 0, false});

	b->first[size] = k;
	memcpy(set_of(b, k), set_of(b, from), b->g->width * sizeof *b->set);
	om_set_run_unit(b->g, set_of(b, k), unit);
}

/* The ready units that keep the peak below the upper bound, or only one that can run at once: it dominates the others. */
static uint32_t
candidates_of(const struct beam *b, uint32_t k)
{
	const uint64_t live_bytes = b->state[k].live_bytes;
	const uint64_t within = b->state[k].peak > b->level ? b->state[k].peak : b->level;
	uint32_t n = 0;

	for (uint32_t u = 0; (u = om_set_next_ready(b->g, set_of(b, k), u)) < b->g->nunit; u++) {
		const om_move m = om_unit_move(b->g, set_of(b, k), live_bytes, u);
		if (m.step >= b->upper)
			continue;
		const bool is_at_once = m.live_bytes <= live_bytes && m.step <= within;
		n = is_at_once ? 0 : n;
		b->candidate[n++] = (struct candidate){u, m};
		if (is_at_once)
			break;
	}
	return n;
}

static void
expand_state(struct beam *b, uint32_t k)
{
	const uint32_t n = candidates_of(b, k);

	--*b->nodes;
	b->state[k].is_expanded = true;
	for (uint32_t i = 0; i < n; i++)
		add_state(b, k, b->candidate[i].unit, &b->candidate[i].move);
}

struct beam_rank {
	uint64_t peak, live_bytes, hash;
	uint32_t serial, state;
};

static bool
is_better(const struct beam_rank *x, const struct beam_rank *y)
{
	if (x->peak != y->peak)
		return x->peak < y->peak;
	if (x->live_bytes != y->live_bytes)
		return x->live_bytes < y->live_bytes;
	if (x->hash != y->hash)
		return x->hash < y->hash;
	return x->serial < y->serial;
}

/* Restore the heap below `at`, the best on top; only the entry at `at` is out of
 * order. */
static void
sift_down(struct beam_rank *heap, size_t n, size_t at)
{
	const struct beam_rank r = heap[at];

	for (size_t kid; (kid = 2 * at + 1) < n; at = kid) {
		if (kid + 1 < n && is_better(&heap[kid + 1], &heap[kid]))
			kid++;
		if (!is_better(&heap[kid], &r))
			break;
		heap[at] = heap[kid];
	}
	heap[at] = r;
}

/* Remove the best of the `n` entries and store it after the others. */
static const struct beam_rank *
pop_best(struct beam_rank *heap, size_t n)
{
	const struct beam_rank best = heap[0];

	heap[0] = heap[n - 1];
	heap[n - 1] = best;
	if (n > 1)
		sift_down(heap, n - 1, 0);
	return &heap[n - 1];
}

/* The sets of one size are no longer needed, nor the states that were not expanded: no other state comes from them. */
static void
release_states(struct beam *b, uint32_t size)
{
	for (uint32_t k = b->first[size]; k; k = b->state[k].next) {
		OM_PUSH(b->mem, b->spare, b->nspare, b->capspare, b->state[k].at);
		if (!b->state[k].is_expanded)
			OM_PUSH(b->mem, b->spare_state, b->nspare_state, b->capspare_state, k);
	}
}

/* Expand the best states of one size, one of each group of equal sets.  Far more
 * states exist than are expanded, so they are in a heap instead of being sorted. */
static void
expand_best(struct beam *b, uint32_t size, uint32_t width, struct beam_rank **beam_rank, size_t *cap)
{
	const size_t bytes = b->g->words * sizeof *b->set;
	size_t n = 0, kept = 0;

	for (uint32_t k = b->first[size]; k; k = b->state[k].next) {
		const struct beam_rank r = {b->state[k].peak > b->level ? b->state[k].peak : b->level,
			b->state[k].live_bytes, b->state[k].hash, b->state[k].serial, k};
		OM_PUSH(b->mem, *beam_rank, n, *cap, r);
	}
	for (size_t k = n / 2; k-- > 0;)
		sift_down(*beam_rank, n, k);
	for (size_t k = n; k > 0 && kept < width && *b->nodes; k--) {
		const struct beam_rank *r = pop_best(*beam_rank, k), *last = r + 1;
		if (k < n && last->hash == r->hash && memcmp(set_of(b, last->state), set_of(b, r->state), bytes) == 0)
			continue;
		kept++;
		expand_state(b, r->state);
	}
	release_states(b, size);
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
init_beam(struct beam *b)
{
	const struct beam_state none = {0}, root = {.live_bytes = b->g->base, .at = alloc_set(b)};

	store_state(b, none);
	store_state(b, root);
	om_set_init(b->g, set_of(b, 1));
	b->first[0] = 1;
}

om_search_result
om_subproblem_beam(const om_subproblem *g, uint64_t level, uint64_t upper, uint32_t width, uint64_t *nodes,
	uint32_t *order)
{
	om_arena *mem = om_arena_new();
	struct beam b = {.g = g, .mem = mem, .level = level, .upper = upper, .nodes = nodes,
		.candidate = OM_NEWN(mem, struct candidate, g->nunit), .first = OM_NEWN(mem, uint32_t, (size_t)g->nop + 1)};
	struct beam_rank *beam_rank = NULL;
	size_t cap = 0;
	uint32_t best;

	init_beam(&b);
	for (uint32_t size = 0; size < g->nop && *nodes; size++)
		expand_best(&b, size, width, &beam_rank, &cap);
	best = b.first[g->nop];
	for (uint32_t k = best; k; k = b.state[k].next)
		if (b.state[k].peak < b.state[best].peak)
			best = k;
	if (best)
		write_order(&b, best, order);
	om_arena_free(mem);
	return best ? OM_SCHEDULE_FOUND : OM_SCHEDULE_NODE_LIMIT;
}
