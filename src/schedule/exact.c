/* The lowest peak, by search over sets of ops.
 *
 * What is alive between two ops depends on the set of those that ran, so an
 * order is a path through sets, and a set is worth visiting once.  The search
 * goes by levels: all sets that can be reached without ever having more than
 * `level` bytes alive, depth first; moves that need more are put off.  When
 * nothing is left, no order live_out within the level, and the least that was put
 * off is the next one.  The first path that arrives is of lowest peak.
 *
 * Bytes alive, f, are submodular over sets of (halves of) ops: what an op frees
 * only grows with the set before it.  So this holds:
 *
 *	Let U be reachable from S within the level, f(U) <= f(S), and let no set
 *	between S and U (S included in it, it included in U) have less than f(U).
 *	Then from S it is enough to go on to U.
 *
 * For let S = T0, T1, ... be any path from S within the level.  f(Tk + U) <=
 * f(Tk) + f(U) - f(Tk * U) <= f(Tk), since Tk * U lies between S and U; the same
 * holds in the middle of an op.  So the path through U and the sets Tk + U is
 * within the level, too.
 *
 * U with the fewest ops among all sets reachable within the level that have no
 * more alive than S is such a set: were f(V) < f(U) for a V between, take the V
 * with least f.  The path to U, cut down to V, leads there within the level:
 * f(Tk * V) <= f(Tk) + f(V) - f(Tk + V) <= f(Tk).  V has fewer ops than U, and
 * was not found: a contradiction.  Hence a search in breadth around S, which
 * stops before it has left out any set of smaller size.  One op that frees at
 * least what it makes is the smallest case of it.
 *
 * The second argument wants f submodular in the middle of ops, too.  It is, as
 * long as no op has a choice over which storage it computes; else the sets
 * between S and U are looked at one by one.
 *
 * A level only rises, so what was enough live_out enough.  Ends because there are
 * finitely many sets, and `nodes` of them at most.
 */
#include <config.h>

#include <stdlib.h>

#include "base/rng.h"
#include "schedule/subproblem.h"

enum {
	AROUND = 64,                 /* sets looked at around one */
	BETWEEN = 8,                 /* units between two sets that are tried one by one, */
	TRIES = 2000,                /* and how often */
	MOST_WORDS = 1 << 24,        /* of all sets together: 128 MiB, and no more again of what is ready */
};

struct state {
	uint64_t alive, hash;
	uint32_t from, unit;         /* how it was reached */
};

struct later {
	uint64_t step;
	uint32_t state;
};

/* A state near the one that is looked around. */
struct near {
	uint64_t alive, hash;
	uint32_t from, unit, size;
};

struct search {
	const om_subproblem *g;
	om_arena *mem;
	uint64_t level, upper;
	uint64_t *nodes;
	uint64_t *set;               /* `width` words of each state */
	struct state *state;
	size_t n, cap, capset;
	uint32_t *slot;              /* a table of states, by hash; 0 is empty */
	size_t nslot;
	uint32_t *stack;
	size_t depth, capstack;
	struct later *later;         /* a heap, least step first */
	size_t nlater, caplater;
	uint64_t *probe, *nearby;
	struct near near[AROUND];
	struct option *option, *around;
};

/* ---- States. ---- */

static uint64_t *
set_of(const struct search *s, uint32_t k)
{
	return s->set + (size_t)k * s->g->width;
}

static void
enter(struct search *s, uint32_t k)
{
	size_t at = s->state[k].hash & (s->nslot - 1);

	while (s->slot[at])
		at = (at + 1) & (s->nslot - 1);
	s->slot[at] = k + 1;
}

static void
grow_table(struct search *s)
{
	s->nslot = s->nslot ? 2 * s->nslot : 1024;
	s->slot = OM_NEWN(s->mem, uint32_t, s->nslot);
	for (size_t k = 0; k < s->n; k++)
		enter(s, (uint32_t)k);
}

static bool
is_known(const struct search *s, const uint64_t *set, uint64_t hash)
{
	for (size_t at = hash & (s->nslot - 1); s->slot[at]; at = (at + 1) & (s->nslot - 1)) {
		const uint32_t k = s->slot[at] - 1;
		if (s->state[k].hash == hash && memcmp(set_of(s, k), set, s->g->words * sizeof *set) == 0)
			return true;
	}
	return false;
}

/* A unit has a hash of its own; that of a set is the sum of its units'. */
static uint64_t
hash_of(uint32_t unit)
{
	return om_mix(unit + UINT64_C(0x9e3779b97f4a7c15));
}

/* The state behind `unit`, which is new. */
static uint32_t
add(struct search *s, uint32_t from, uint32_t unit, uint64_t alive, uint64_t hash)
{
	const size_t w = s->g->width;

	if (2 * (s->n + 1) > s->nslot)
		grow_table(s);
	s->set = om_grow(s->mem, s->set, w * sizeof *s->set, s->n, &s->capset);
	const struct state new = {alive, hash, from, unit};
	OM_PUSH(s->mem, s->state, s->n, s->cap, new);
	const uint32_t k = (uint32_t)s->n - 1;
	if (k) {
		memcpy(set_of(s, k), set_of(s, from), w * sizeof *s->set);
		om_unit_run(s->g, set_of(s, k), unit);
	} else {
		om_set_start(s->g, set_of(s, k));
	}
	enter(s, k);
	return k;
}

static void
push(struct search *s, uint32_t k)
{
	OM_PUSH(s->mem, s->stack, s->depth, s->capstack, k);
}

/* ---- What is put off. ---- */

static void
put_off(struct search *s, uint32_t k, uint64_t step)
{
	const struct later new = {step, k};
	size_t at = s->nlater;

	OM_PUSH(s->mem, s->later, s->nlater, s->caplater, new);
	for (; at && s->later[(at - 1) / 2].step > step; at = (at - 1) / 2)
		s->later[at] = s->later[(at - 1) / 2];
	s->later[at] = new;
}

static uint32_t
take_first(struct search *s)
{
	const uint32_t first = s->later[0].state;
	const struct later last = s->later[--s->nlater];
	size_t at = 0;

	for (size_t kid; (kid = 2 * at + 1) < s->nlater; at = kid) {
		if (kid + 1 < s->nlater && s->later[kid + 1].step < s->later[kid].step)
			kid++;
		if (s->later[kid].step >= last.step)
			break;
		s->later[at] = s->later[kid];
	}
	s->later[at] = last;
	return first;
}

/* False when no level below `upper` is left. */
static bool
next_level(struct search *s)
{
	if (!s->nlater || s->later[0].step >= s->upper)
		return false;
	s->level = s->later[0].step;
	while (s->nlater && s->later[0].step <= s->level)
		push(s, take_first(s));
	return true;
}

/* ---- Moves from one state. ---- */

struct option {
	uint32_t unit;
	om_move move;
};

/* Units that can run next.  `set` is the same afterwards. */
static uint32_t
options_of(const struct search *s, uint64_t *set, uint64_t alive, struct option *o)
{
	uint32_t n = 0;

	for (uint32_t u = 0; (u = om_next_ready(s->g, set, u)) < s->g->nunit; u++)
		o[n++] = (struct option){u, om_unit_move(s->g, set, alive, u)};
	return n;
}

/* The state behind a move, unless it is known already. */
static void
go(struct search *s, uint32_t k, uint32_t unit, uint64_t alive)
{
	const uint64_t hash = s->state[k].hash + hash_of(unit);

	memcpy(s->probe, set_of(s, k), s->g->words * sizeof *s->probe);
	om_unit_put(s->g, s->probe, unit);
	if (!is_known(s, s->probe, hash))
		push(s, add(s, k, unit, alive, hash));
}

/* Along the way that was found around `k`, and on.  The states between need not
 * be looked at, should they be met again: what is said above holds for them. */
static void
follow(struct search *s, uint32_t k, uint32_t near, const struct option *last)
{
	uint32_t way[AROUND], n = 0;

	for (; near; near = s->near[near].from)
		way[n++] = near;
	while (n-- > 0) {
		const struct near *step = &s->near[way[n]];
		k = add(s, k, step->unit, step->alive, s->state[k].hash + hash_of(step->unit));
	}
	go(s, k, last->unit, last->move.alive);
}

static uint64_t *
near_set(const struct search *s, uint32_t k)
{
	return s->nearby + (size_t)k * s->g->width;
}

/* Is the set behind near state `i` and `unit` among the first `n`? */
static bool
is_near(struct search *s, uint32_t n, uint32_t i, uint32_t unit, uint64_t hash)
{
	const size_t bytes = s->g->words * sizeof *s->probe;

	memcpy(s->probe, near_set(s, i), bytes);
	om_unit_put(s->g, s->probe, unit);
	for (uint32_t k = n; k-- > 0;)
		if (s->near[k].hash == hash && memcmp(s->probe, near_set(s, k), bytes) == 0)
			return true;
	return false;
}

static void
add_near(struct search *s, uint32_t n, uint32_t from, const struct option *o, uint64_t hash)
{
	s->near[n] = (struct near){o->move.alive, hash, from, o->unit, s->near[from].size + 1};
	memcpy(near_set(s, n), near_set(s, from), s->g->width * sizeof(uint64_t));
	om_unit_run(s->g, near_set(s, n), o->unit);
}

/* The units between state `k` and what is behind near state `i` and `unit`. */
static uint32_t
units_between(const struct search *s, uint32_t i, uint32_t unit, uint32_t *all)
{
	uint32_t n = 0;

	all[n++] = unit;
	for (; i; i = s->near[i].from)
		all[n++] = s->near[i].unit;
	return n;
}

/* Does no set between `k` and the one with these units behind it have fewer than
 * `alive` bytes?  Tried one by one, whatever they take; false where they are too
 * many. */
static bool
is_least(struct search *s, uint32_t k, const uint32_t *unit, uint32_t n, uint64_t alive)
{
	uint64_t now[BETWEEN + 1], mask[BETWEEN + 1] = {0};
	uint32_t next[BETWEEN + 1] = {0}, depth = 0, tries = 0;

	if (n > BETWEEN)
		return false;
	memcpy(s->probe, set_of(s, k), s->g->words * sizeof *s->probe);
	now[0] = s->state[k].alive;
	for (;;) {
		const uint32_t j = next[depth]++;
		if (j == n) {
			if (depth == 0)
				return true;
			const uint32_t back = unit[next[--depth] - 1];
			for (uint32_t i = s->g->unit[back]; i < s->g->unit[back + 1]; i++)
				om_drop(s->probe, i);
			continue;
		}
		if (mask[depth] >> j & 1 || !om_unit_is_ready(s->g, s->probe, unit[j]))
			continue;
		now[depth + 1] = om_unit_move(s->g, s->probe, now[depth], unit[j]).alive;
		if (now[depth + 1] < alive || ++tries > TRIES)
			return false;
		mask[depth + 1] = mask[depth] | UINT64_C(1) << j;
		next[++depth] = 0;
		om_unit_put(s->g, s->probe, unit[j]);
	}
}

/* Is it enough to go on to what is behind near state `i` and move `o`? */
static bool
is_way_for_all(struct search *s, uint32_t k, uint32_t i, const struct option *o)
{
	uint32_t unit[AROUND];

	if (o->move.alive > s->state[k].alive)
		return false;
	if (!s->g->has_choice || i == 0)
		return true;
	return is_least(s, k, unit, units_between(s, i, o->unit, unit), o->move.alive);
}

/* Is there a set behind `k` with no more alive, to which all can go? */
static bool
look_around(struct search *s, uint32_t k)
{
	uint32_t n = 1, left_out = UINT32_MAX;

	s->near[0] = (struct near){s->state[k].alive, s->state[k].hash, 0, 0, 0};
	memcpy(near_set(s, 0), set_of(s, k), s->g->width * sizeof(uint64_t));
	for (uint32_t i = 0; i < n && s->near[i].size < left_out && *s->nodes; i++) {
		const uint32_t m = options_of(s, near_set(s, i), s->near[i].alive, s->around);
		--*s->nodes;
		for (uint32_t j = 0; j < m; j++) {
			const struct option *o = &s->around[j];
			const uint64_t hash = s->near[i].hash + hash_of(o->unit);
			if (o->move.step > s->level)
				continue;
			if (is_way_for_all(s, k, i, o)) {
				follow(s, k, i, o);
				return true;
			}
			if (is_near(s, n, i, o->unit, hash))
				continue;
			if (n < AROUND)
				add_near(s, n++, i, o, hash);
			else if (left_out == UINT32_MAX)
				left_out = s->near[i].size + 1;
		}
	}
	return false;
}

/* The best one last: it is taken first. */
static int
by_worth(const void *a, const void *b)
{
	const struct option *x = a, *y = b;

	if (x->move.alive != y->move.alive)
		return x->move.alive > y->move.alive ? -1 : 1;
	if (x->move.step != y->move.step)
		return x->move.step > y->move.step ? -1 : 1;
	return x->unit > y->unit ? -1 : 1;
}

/* The best of those within the level that leave no more alive; NULL: none. */
static const struct option *
best_free(const struct search *s, uint32_t n, uint64_t alive)
{
	const struct option *best = NULL;

	for (uint32_t k = 0; k < n; k++) {
		const struct option *o = &s->option[k];
		if (o->move.alive <= alive && o->move.step <= s->level && (!best || by_worth(best, o) < 0))
			best = o;
	}
	return best;
}

/* True when nothing is left to run. */
static bool
expand(struct search *s, uint32_t k)
{
	const uint64_t alive = s->state[k].alive;
	uint64_t least = UINT64_MAX;
	uint32_t n, j = 0;

	n = options_of(s, set_of(s, k), alive, s->option);
	if (n == 0)
		return true;
	const struct option *free = best_free(s, n, alive);
	if (free) {
		go(s, k, free->unit, free->move.alive);
		return false;
	}
	if (n > 1 && look_around(s, k))
		return false;
	qsort(s->option, n, sizeof *s->option, by_worth);
	for (; j < n; j++) {
		const struct option *o = &s->option[j];
		if (o->move.step <= s->level)
			go(s, k, o->unit, o->move.alive);
		else if (o->move.step < least)
			least = o->move.step;
	}
	if (least < s->upper)
		put_off(s, k, least);
	return false;
}

static void
write_order(const struct search *s, uint32_t k, uint32_t *order)
{
	uint32_t n = s->g->nop;

	for (; k; k = s->state[k].from) {
		const uint32_t u = s->state[k].unit;
		for (uint32_t i = s->g->unit[u + 1]; i-- > s->g->unit[u];)
			order[--n] = i;
	}
}

static om_found
run(struct search *s, uint32_t *order)
{
	if (s->level >= s->upper)
		return OM_NONE_BELOW;
	add(s, OM_ORDER_NONE, 0, s->g->base, 0);
	push(s, 0);
	for (;;) {
		if (!s->depth && !next_level(s))
			return OM_NONE_BELOW;
		const uint32_t k = s->stack[--s->depth];
		if (!*s->nodes || s->n * s->g->words > MOST_WORDS)
			return OM_GAVE_UP;
		--*s->nodes;
		if (!expand(s, k))
			continue;
		write_order(s, k, order);
		return OM_FOUND;
	}
}

om_found
om_subproblem_exact(const om_subproblem *g, uint64_t *level, uint64_t upper, uint64_t *nodes, uint32_t *order)
{
	om_arena *mem = om_arena_new();
	struct search s = {.g = g, .mem = mem, .level = *level, .upper = upper, .nodes = nodes,
		.probe = OM_NEWN(mem, uint64_t, g->words),
		.nearby = OM_NEWN(mem, uint64_t, (size_t)AROUND * g->width),
		.option = OM_NEWN(mem, struct option, g->nunit), .around = OM_NEWN(mem, struct option, g->nunit)};
	const om_found found = run(&s, order);

	*level = found == OM_NONE_BELOW ? upper : s.level;
	om_arena_free(mem);
	return found;
}
