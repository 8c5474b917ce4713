/* SPDX-License-Identifier: Apache-2.0 */
/* The minimal peak, by search over sets of ops.
 *
 * The bytes live between two ops depend on the set of executed ops, so an order is
 * a path through sets, and a set is visited at most once.  The search goes by
 * levels: all sets that can be reached with never more than `level` bytes live,
 * depth first; moves that require more are deferred.  When no set is left, no order
 * stays within the level, and the least deferred move is the next level.  The first
 * complete path has the minimal peak.
 *
 * The live bytes, f, are submodular over sets of (halves of) ops: the bytes that an
 * op frees only grow with the set before it.  So the following holds:
 *
 * 	Let U be reachable from S within the level, f(U) <= f(S), and let no set
 * 	between S and U (S included in it, it included in U) have less than f(U).
 * 	Then from S it is enough to continue with U.
 *
 * Proof: let S = T0, T1, ... be any path from S within the level.  f(Tk + U) <=
 * f(Tk) + f(U) - f(Tk * U) <= f(Tk), since Tk * U is between S and U; the same
 * holds in the middle of an op.  So the path through U and the sets Tk + U is
 * within the level, too.
 *
 * Of all sets reachable within the level that have no more bytes live than S, the U
 * with the fewest ops is such a set: were f(V) < f(U) for a V between, take the V
 * with least f.  The path to U, restricted to V, leads there within the level: f(Tk
 * * V) <= f(Tk) + f(V) - f(Tk + V) <= f(Tk). V has fewer ops than U, and was not
 * found: a contradiction.  Hence a breadth-first search around S, which stops
 * before it has skipped any set of smaller size.  A single op that frees at least
 * as much as it makes is the smallest case.
 *
 * The second argument requires that f is submodular in the middle of ops, too.  It
 * is, unless an op has a choice of the storage that it computes in place of; in
 * that case the sets between S and U are checked one by one.
 *
 * Levels only rise, so earlier decisions remain valid.  It terminates because there
 * are finitely many sets, and at most `nodes` of them are expanded.
 */
#include <config.h>

#include <stdlib.h>

#include "base/rng.h"
#include "schedule/subproblem.h"

enum {
	NEIGHBORHOOD = 64,                 /* sets in the neighborhood of one */
	MAX_BETWEEN = 8,                 /* units between two sets that are checked one by one, */
	MAX_CHECKS = 2000,                /* and the limit of such checks */
	MAX_WORDS = 1 << 24,        /* of all sets together: 128 MiB, and at most the same for ready units */
};

struct exact_state {
	uint64_t live_bytes, hash;
	uint32_t from, unit;         /* the state and move that reached it */
};

struct deferred {
	uint64_t step;
	uint32_t state;
};

/* A state in the neighborhood of the expanded one. */
struct neighbor {
	uint64_t live_bytes, hash;
	uint32_t from, unit, size;
};

struct exact_search {
	const om_subproblem *g;
	om_arena *mem;
	uint64_t level, upper;
	uint64_t *nodes;
	uint64_t *set;               /* `width` words of each state */
	struct exact_state *state;
	size_t n, cap, capset;
	uint32_t *slot;              /* hash table of states; 0 is empty */
	size_t nslot;
	uint32_t *stack;
	size_t depth, capstack;
	struct deferred *deferred;         /* a heap, least step first */
	size_t ndeferred, capdeferred;
	uint64_t *probe, *neighbor_sets;
	struct neighbor neighbor[NEIGHBORHOOD];
	struct option *option, *neighbor_option;
};

/* ---- States. ---- */

static uint64_t *
set_of(const struct exact_search *s, uint32_t k)
{
	return s->set + (size_t)k * s->g->width;
}

static void
insert_state(struct exact_search *s, uint32_t k)
{
	size_t at = s->state[k].hash & (s->nslot - 1);

	while (s->slot[at])
		at = (at + 1) & (s->nslot - 1);
	s->slot[at] = k + 1;
}

static void
grow_table(struct exact_search *s)
{
	s->nslot = s->nslot ? 2 * s->nslot : 1024;
	s->slot = OM_NEWN(s->mem, uint32_t, s->nslot);
	for (size_t k = 0; k < s->n; k++)
		insert_state(s, (uint32_t)k);
}

static bool
is_known(const struct exact_search *s, const uint64_t *set, uint64_t hash)
{
	for (size_t at = hash & (s->nslot - 1); s->slot[at]; at = (at + 1) & (s->nslot - 1)) {
		const uint32_t k = s->slot[at] - 1;
		if (s->state[k].hash == hash && memcmp(set_of(s, k), set, s->g->words * sizeof *set) == 0)
			return true;
	}
	return false;
}

/* Units have hashes; the hash of a set is the sum of its units' hashes. */
static uint64_t
hash_of(uint32_t unit)
{
	return om_mix(unit + UINT64_C(0x9e3779b97f4a7c15));
}

/* Add the state after `unit`, which is new. */
static uint32_t
add_state(struct exact_search *s, uint32_t from, uint32_t unit, uint64_t live_bytes, uint64_t hash)
{
	const size_t w = s->g->width;

	if (2 * (s->n + 1) > s->nslot)
		grow_table(s);
	s->set = om_grow(s->mem, s->set, w * sizeof *s->set, s->n, &s->capset);
	const struct exact_state new = {live_bytes, hash, from, unit};
	OM_PUSH(s->mem, s->state, s->n, s->cap, new);
	const uint32_t k = (uint32_t)s->n - 1;
	if (k) {
		memcpy(set_of(s, k), set_of(s, from), w * sizeof *s->set);
		om_set_run_unit(s->g, set_of(s, k), unit);
	} else {
		om_set_init(s->g, set_of(s, k));
	}
	insert_state(s, k);
	return k;
}

static void
push_state(struct exact_search *s, uint32_t k)
{
	OM_PUSH(s->mem, s->stack, s->depth, s->capstack, k);
}

/* ---- Deferred states. ---- */

static void
defer_state(struct exact_search *s, uint32_t k, uint64_t step)
{
	const struct deferred new = {step, k};
	size_t at = s->ndeferred;

	OM_PUSH(s->mem, s->deferred, s->ndeferred, s->capdeferred, new);
	for (; at && s->deferred[(at - 1) / 2].step > step; at = (at - 1) / 2)
		s->deferred[at] = s->deferred[(at - 1) / 2];
	s->deferred[at] = new;
}

static uint32_t
pop_deferred(struct exact_search *s)
{
	const uint32_t first = s->deferred[0].state;
	const struct deferred last = s->deferred[--s->ndeferred];
	size_t at = 0;

	for (size_t kid; (kid = 2 * at + 1) < s->ndeferred; at = kid) {
		if (kid + 1 < s->ndeferred && s->deferred[kid + 1].step < s->deferred[kid].step)
			kid++;
		if (s->deferred[kid].step >= last.step)
			break;
		s->deferred[at] = s->deferred[kid];
	}
	s->deferred[at] = last;
	return first;
}

/* False when no level below `upper` is left. */
static bool
next_level(struct exact_search *s)
{
	if (!s->ndeferred || s->deferred[0].step >= s->upper)
		return false;
	s->level = s->deferred[0].step;
	while (s->ndeferred && s->deferred[0].step <= s->level)
		push_state(s, pop_deferred(s));
	return true;
}

/* ---- Moves from one state. ---- */

struct option {
	uint32_t unit;
	om_move move;
};

/* The units that can run next.  `set` is restored. */
static uint32_t
options_of(const struct exact_search *s, uint64_t *set, uint64_t live_bytes, struct option *o)
{
	uint32_t n = 0;

	for (uint32_t u = 0; (u = om_set_next_ready(s->g, set, u)) < s->g->nunit; u++)
		o[n++] = (struct option){u, om_unit_move(s->g, set, live_bytes, u)};
	return n;
}

/* Push the state after a move, unless it is known. */
static void
push_move(struct exact_search *s, uint32_t k, uint32_t unit, uint64_t live_bytes)
{
	const uint64_t hash = s->state[k].hash + hash_of(unit);

	memcpy(s->probe, set_of(s, k), s->g->words * sizeof *s->probe);
	om_set_add_unit(s->g, s->probe, unit);
	if (!is_known(s, s->probe, hash))
		push_state(s, add_state(s, k, unit, live_bytes, hash));
}

/* Add the states of the path found around `k`, and push its end.  The states
 * between need no expansion if they are reached again: the argument above holds for
 * them. */
static void
follow_path(struct exact_search *s, uint32_t k, uint32_t neighbor, const struct option *last)
{
	uint32_t path[NEIGHBORHOOD], n = 0;

	for (; neighbor; neighbor = s->neighbor[neighbor].from)
		path[n++] = neighbor;
	while (n-- > 0) {
		const struct neighbor *step = &s->neighbor[path[n]];
		k = add_state(s, k, step->unit, step->live_bytes, s->state[k].hash + hash_of(step->unit));
	}
	push_move(s, k, last->unit, last->move.live_bytes);
}

static uint64_t *
neighbor_set(const struct exact_search *s, uint32_t k)
{
	return s->neighbor_sets + (size_t)k * s->g->width;
}

/* Is the set after neighbor state `i` and `unit` among the first `n`? */
static bool
is_neighbor(struct exact_search *s, uint32_t n, uint32_t i, uint32_t unit, uint64_t hash)
{
	const size_t bytes = s->g->words * sizeof *s->probe;

	memcpy(s->probe, neighbor_set(s, i), bytes);
	om_set_add_unit(s->g, s->probe, unit);
	for (uint32_t k = n; k-- > 0;)
		if (s->neighbor[k].hash == hash && memcmp(s->probe, neighbor_set(s, k), bytes) == 0)
			return true;
	return false;
}

static void
add_neighbor(struct exact_search *s, uint32_t n, uint32_t from, const struct option *o, uint64_t hash)
{
	s->neighbor[n] = (struct neighbor){o->move.live_bytes, hash, from, o->unit, s->neighbor[from].size + 1};
	memcpy(neighbor_set(s, n), neighbor_set(s, from), s->g->width * sizeof(uint64_t));
	om_set_run_unit(s->g, neighbor_set(s, n), o->unit);
}

/* The units between state `k` and the set after neighbor state `i` and `unit`. */
static uint32_t
units_between(const struct exact_search *s, uint32_t i, uint32_t unit, uint32_t *all)
{
	uint32_t n = 0;

	all[n++] = unit;
	for (; i; i = s->neighbor[i].from)
		all[n++] = s->neighbor[i].unit;
	return n;
}

/* True if no set between `k` and `k` with these units has fewer than `live_bytes` bytes
 * live.  Enumerates the sets regardless of the level; false if there are too many. */
static bool
is_minimum(struct exact_search *s, uint32_t k, const uint32_t *unit, uint32_t n, uint64_t live_bytes)
{
	uint64_t now[MAX_BETWEEN + 1], mask[MAX_BETWEEN + 1] = {0};
	uint32_t next[MAX_BETWEEN + 1] = {0}, depth = 0, tries = 0;

	if (n > MAX_BETWEEN)
		return false;
	memcpy(s->probe, set_of(s, k), s->g->words * sizeof *s->probe);
	now[0] = s->state[k].live_bytes;
	for (;;) {
		const uint32_t j = next[depth]++;
		if (j == n) {
			if (depth == 0)
				return true;
			const uint32_t back = unit[next[--depth] - 1];
			for (uint32_t i = s->g->unit[back]; i < s->g->unit[back + 1]; i++)
				om_set_remove(s->probe, i);
			continue;
		}
		if (mask[depth] >> j & 1 || !om_unit_is_ready(s->g, s->probe, unit[j]))
			continue;
		now[depth + 1] = om_unit_move(s->g, s->probe, now[depth], unit[j]).live_bytes;
		if (now[depth + 1] < live_bytes || ++tries > MAX_CHECKS)
			return false;
		mask[depth + 1] = mask[depth] | UINT64_C(1) << j;
		next[++depth] = 0;
		om_set_add_unit(s->g, s->probe, unit[j]);
	}
}

/* Is it enough to continue with the set after neighbor state `i` and move `o`? */
static bool
is_dominating(struct exact_search *s, uint32_t k, uint32_t i, const struct option *o)
{
	uint32_t unit[NEIGHBORHOOD];

	if (o->move.live_bytes > s->state[k].live_bytes)
		return false;
	if (!s->g->has_choice || i == 0)
		return true;
	return is_minimum(s, k, unit, units_between(s, i, o->unit, unit), o->move.live_bytes);
}

/* Is there a set after `k` with no more bytes live that every path can go through? */
static bool
search_neighborhood(struct exact_search *s, uint32_t k)
{
	uint32_t n = 1, skipped = UINT32_MAX;

	s->neighbor[0] = (struct neighbor){s->state[k].live_bytes, s->state[k].hash, 0, 0, 0};
	memcpy(neighbor_set(s, 0), set_of(s, k), s->g->width * sizeof(uint64_t));
	for (uint32_t i = 0; i < n && s->neighbor[i].size < skipped && *s->nodes; i++) {
		const uint32_t m = options_of(s, neighbor_set(s, i), s->neighbor[i].live_bytes, s->neighbor_option);
		--*s->nodes;
		for (uint32_t j = 0; j < m; j++) {
			const struct option *o = &s->neighbor_option[j];
			const uint64_t hash = s->neighbor[i].hash + hash_of(o->unit);
			if (o->move.step > s->level)
				continue;
			if (is_dominating(s, k, i, o)) {
				follow_path(s, k, i, o);
				return true;
			}
			if (is_neighbor(s, n, i, o->unit, hash))
				continue;
			if (n < NEIGHBORHOOD)
				add_neighbor(s, n++, i, o, hash);
			else if (skipped == UINT32_MAX)
				skipped = s->neighbor[i].size + 1;
		}
	}
	return false;
}

/* The best option last: it is popped first. */
static int
compare_option(const void *a, const void *b)
{
	const struct option *x = a, *y = b;

	if (x->move.live_bytes != y->move.live_bytes)
		return x->move.live_bytes > y->move.live_bytes ? -1 : 1;
	if (x->move.step != y->move.step)
		return x->move.step > y->move.step ? -1 : 1;
	return x->unit > y->unit ? -1 : 1;
}

/* The best option within the level that leaves no more bytes live; NULL: none. */
static const struct option *
best_free_move(const struct exact_search *s, uint32_t n, uint64_t live_bytes)
{
	const struct option *best = NULL;

	for (uint32_t k = 0; k < n; k++) {
		const struct option *o = &s->option[k];
		if (o->move.live_bytes <= live_bytes && o->move.step <= s->level && (!best || compare_option(best, o) < 0))
			best = o;
	}
	return best;
}

/* True when all ops have run. */
static bool
expand_state(struct exact_search *s, uint32_t k)
{
	const uint64_t live_bytes = s->state[k].live_bytes;
	uint64_t least = UINT64_MAX;
	uint32_t n, j = 0;

	n = options_of(s, set_of(s, k), live_bytes, s->option);
	if (n == 0)
		return true;
	const struct option *free = best_free_move(s, n, live_bytes);
	if (free) {
		push_move(s, k, free->unit, free->move.live_bytes);
		return false;
	}
	if (n > 1 && search_neighborhood(s, k))
		return false;
	qsort(s->option, n, sizeof *s->option, compare_option);
	for (; j < n; j++) {
		const struct option *o = &s->option[j];
		if (o->move.step <= s->level)
			push_move(s, k, o->unit, o->move.live_bytes);
		else if (o->move.step < least)
			least = o->move.step;
	}
	if (least < s->upper)
		defer_state(s, k, least);
	return false;
}

static void
write_order(const struct exact_search *s, uint32_t k, uint32_t *order)
{
	uint32_t n = s->g->nop;

	for (; k; k = s->state[k].from) {
		const uint32_t u = s->state[k].unit;
		for (uint32_t i = s->g->unit[u + 1]; i-- > s->g->unit[u];)
			order[--n] = i;
	}
}

static om_search_result
run_search(struct exact_search *s, uint32_t *order)
{
	if (s->level >= s->upper)
		return OM_SCHEDULE_NOT_BELOW;
	add_state(s, OM_SCHEDULE_NONE, 0, s->g->base, 0);
	push_state(s, 0);
	for (;;) {
		if (!s->depth && !next_level(s))
			return OM_SCHEDULE_NOT_BELOW;
		const uint32_t k = s->stack[--s->depth];
		if (!*s->nodes || s->n * s->g->words > MAX_WORDS)
			return OM_SCHEDULE_NODE_LIMIT;
		--*s->nodes;
		if (!expand_state(s, k))
			continue;
		write_order(s, k, order);
		return OM_SCHEDULE_FOUND;
	}
}

om_search_result
om_subproblem_exact(const om_subproblem *g, uint64_t *level, uint64_t upper, uint64_t *nodes, uint32_t *order)
{
	om_arena *mem = om_arena_new();
	struct exact_search s = {.g = g, .mem = mem, .level = *level, .upper = upper, .nodes = nodes,
		.probe = OM_NEWN(mem, uint64_t, g->words),
		.neighbor_sets = OM_NEWN(mem, uint64_t, (size_t)NEIGHBORHOOD * g->width),
		.option = OM_NEWN(mem, struct option, g->nunit), .neighbor_option = OM_NEWN(mem, struct option,
			g->nunit)};
	const om_search_result found = run_search(&s, order);

	*level = found == OM_SCHEDULE_NOT_BELOW ? upper : s.level;
	om_arena_free(mem);
	return found;
}
