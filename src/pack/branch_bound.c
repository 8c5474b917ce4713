/* One walk through the tree of packings, for one goal.
 *
 * Among the packings that reach the goal take one with the least sum of
 * offsets.  In it each buffer lies at the lowest place that is free of those
 * below it: it cannot slide, nor jump into a hole.  So it is enough to look
 * for packings of this kind, which grow from the floor upwards.
 *
 * A state is a set of things that are placed and, for each other, a bound: the
 * lowest offset that it may still get.  A thing may be taken when no other that
 * is alive with it fits below it.  Then there are two branches:
 *
 *   - it lies right there;
 *   - it does not.  Then it rests on one that is not placed yet, which raises
 *     its bound to the lowest top among those ("floats" below), and one of
 *     those begins lower than it would have ended, else it could jump down
 *     ("awaits").  Both are watched from then on.
 *
 * Any thing may be taken, so the walk goes where it is narrow: a section with
 * few things that may be the lowest there, little room, or many failures.  What
 * cannot be the lowest of a section, since then not all would fit above it, lies
 * above one that can: that raises bounds too ("lift").  A branch ends when the
 * things of a section, stacked by their bounds, come above the goal; or when the
 * same things with the same bounds have failed before.  Where the things that are
 * left fall into groups that do not meet in time, each is walked by itself.
 *
 * It ends because each branch places a thing or raises a bound.
 *
 * The idea of growing packings in order of offsets with bounds by section is
 * known from minimalloc (Moffitt, ASPLOS 2023); taking things in any place
 * where nothing fits below, and what follows from leaving one out, is ours.
 */
#include <config.h>

#include <stdlib.h>

#include "base/clock.h"
#include "pack/search.h"

enum {
	MEMORY = 1 << 17,        /* failed states that are remembered, at most */
	CELLS = 2048,            /* work in a node that counts as one node more */
	CLOCK = 1024,            /* nodes between two looks at the clock */
};

/* What is not known of a thing that is left. */
struct mark {
	uint64_t low;            /* it cannot lie lower */
	uint64_t awaits;         /* one of its neighbours must begin below this; or 0 */
	bool floats;             /* nothing placed holds it at `low` */
	bool is_placed;
};

struct change {
	struct mark was;
	uint32_t thing;
};

/* A section in the node that is looked at. */
struct section {
	uint64_t floor;          /* the lowest bound in it; UINT64_MAX: empty */
	uint64_t top;            /* of all, stacked */
	uint64_t bytes;          /* of all */
	uint64_t limit;          /* above it none can be the lowest */
	uint64_t first;          /* the lowest top of one that may lie lowest */
	uint32_t choices;        /* things that may be the lowest */
};

struct om_walk {
	const om_tables *t;
	struct mark *mark;
	struct change *trail;
	size_t ntrail, captrail;
	om_arena *mem;
	uint32_t *list, *spare;  /* the things; a node has a stretch of `list` */
	struct section *section;
	uint32_t *crossing;      /* by section: things that go on behind it, as changes */
	double *failures;        /* by section */
	uint64_t *failed, mask;  /* hashes of states */
	uint64_t goal, nodes, seen;
	uint64_t looked;         /* at the clock, so often */
	double until;
	om_rule rule;
};

/* ---- Bounds. ---- */

static void
change(om_walk *w, uint32_t thing)
{
	const struct change c = {w->mark[thing], thing};

	OM_PUSH(w->mem, w->trail, w->ntrail, w->captrail, c);
}

static void
undo(om_walk *w, size_t to)
{
	while (w->ntrail > to) {
		const struct change *c = &w->trail[--w->ntrail];
		w->mark[c->thing] = c->was;
	}
}

static uint64_t
top_of(const om_walk *w, uint32_t thing)
{
	return w->mark[thing].low + w->t->thing[thing].bytes;
}

static bool
is_above_goal(const om_walk *w, uint32_t thing, uint64_t low)
{
	const uint64_t raw = w->t->thing[thing].raw;

	return raw > w->goal || low > w->goal - raw;
}

/* The lowest place from `low` on that is aligned and clear of fixed things. */
static uint64_t
clear_place(const om_walk *w, const om_thing *x, uint64_t low)
{
	bool is_clear;

	do {
		low = (low + x->align - 1) & ~(x->align - 1);
		is_clear = true;
		for (uint32_t k = 0; w->t->has_fixed && k < x->nnear; k++) {
			const om_thing *f = &w->t->thing[x->near[k]];
			if (f->is_fixed && low < f->fixed + f->bytes && f->fixed < low + x->bytes) {
				low = f->fixed + f->bytes;
				is_clear = false;
			}
		}
	} while (!is_clear);
	return low;
}

/* False when it cannot lie at or above `low`. */
static bool
raise(om_walk *w, uint32_t thing, uint64_t low)
{
	if (low <= w->mark[thing].low)
		return true;
	low = clear_place(w, &w->t->thing[thing], low);
	change(w, thing);
	w->mark[thing].low = low;
	return !is_above_goal(w, thing, low);
}

/* What a thing that floats may come to rest on, and whether what another one
 * awaits may still come. */
static bool
settle_one(om_walk *w, uint32_t thing, bool *has_changed)
{
	const om_thing *x = &w->t->thing[thing];
	const struct mark *m = &w->mark[thing];
	uint64_t rest = UINT64_MAX;
	bool may_come = m->awaits == 0;

	for (uint32_t k = 0; k < x->nnear; k++) {
		const uint32_t i = x->near[k];
		if (w->mark[i].is_placed)
			continue;
		const uint64_t top = top_of(w, i);
		if (w->t->thing[i].is_fixed) {
			if (top < rest && top + x->align > m->low)
				rest = top;
			continue;
		}
		if (top < rest)
			rest = top;
		may_come = may_come || w->mark[i].low < m->awaits;
	}
	if (!may_come || (m->floats && rest == UINT64_MAX))
		return false;
	if (!m->floats || rest <= m->low)
		return true;
	*has_changed = true;
	return raise(w, thing, rest);
}

static bool
settle(om_walk *w, const uint32_t *list, uint32_t n)
{
	bool has_changed;

	do {
		has_changed = false;
		for (uint32_t k = 0; k < n; k++) {
			const uint32_t i = list[k], twin = w->t->thing[i].twin;
			if (twin != OM_NO_THING && !w->mark[twin].is_placed && top_of(w, twin) > w->mark[i].low) {
				has_changed = true;
				if (!raise(w, i, top_of(w, twin)))
					return false;
			}
			if ((w->mark[i].floats || w->mark[i].awaits) && !settle_one(w, i, &has_changed))
				return false;
		}
	} while (has_changed);
	return true;
}

/* ---- The two branches. ---- */

static bool
place(om_walk *w, uint32_t thing)
{
	const om_thing *x = &w->t->thing[thing];
	const uint64_t low = w->mark[thing].low, top = top_of(w, thing);

	change(w, thing);
	w->mark[thing].is_placed = true;
	for (uint32_t k = 0; k < x->nnear; k++) {
		const uint32_t i = x->near[k];
		struct mark *m = &w->mark[i];
		if (m->is_placed || w->t->thing[i].is_fixed)
			continue;
		const bool has_come = low < m->awaits;
		const uint64_t above = clear_place(w, &w->t->thing[i], top);
		if (!has_come && above < m->low)
			continue;
		change(w, i);
		if (has_come)
			m->awaits = 0;
		if (above >= m->low) {
			m->floats = false;
			m->low = above;
			if (is_above_goal(w, i, m->low))
				return false;
		}
	}
	return true;
}

/* False when the other branch is closed. */
static bool
leave_out(om_walk *w, uint32_t thing)
{
	bool has_changed;

	change(w, thing);
	w->mark[thing].awaits = top_of(w, thing);
	w->mark[thing].floats = true;
	return raise(w, thing, w->mark[thing].low + 1) && settle_one(w, thing, &has_changed);
}

/* ---- A node. ---- */

static bool
is_before(const om_walk *w, uint32_t a, uint32_t b)
{
	if (w->mark[a].low != w->mark[b].low)
		return w->mark[a].low < w->mark[b].low;
	return w->t->thing[a].wish < w->t->thing[b].wish;
}

static void
merge(const om_walk *w, uint32_t *list, const uint32_t *a, uint32_t na, const uint32_t *b, uint32_t nb)
{
	while (na && nb) {
		if (is_before(w, *b, *a)) {
			*list++ = *b++;
			nb--;
		} else {
			*list++ = *a++;
			na--;
		}
	}
	memmove(list, na ? a : b, (na + nb) * sizeof *list);
}

/* By bounds, those of equal bounds by wish.  Mostly sorted already. */
static void
sort(om_walk *w, uint32_t *list, uint32_t n)
{
	if (n > 24) {
		const uint32_t half = n / 2;
		sort(w, list, half);
		sort(w, list + half, n - half);
		if (is_before(w, list[half], list[half - 1])) {
			memcpy(w->spare, list, half * sizeof *list);
			merge(w, list, w->spare, half, list + half, n - half);
		}
		return;
	}
	for (uint32_t k = 1; k < n; k++) {
		const uint32_t x = list[k];
		uint32_t i = k;
		for (; i > 0 && is_before(w, x, list[i - 1]); i--)
			list[i] = list[i - 1];
		list[i] = x;
	}
}

static uint64_t
mixed(uint64_t x)
{
	x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	return x ^ x >> 32;
}

/* All that the branches below a state depend on; never 0. */
static uint64_t
hash_of(const om_walk *w, const uint32_t *list, uint32_t n)
{
	uint64_t sum = mixed(w->goal);

	for (uint32_t k = 0; k < n; k++) {
		const struct mark *m = &w->mark[list[k]];
		sum += mixed(w->t->thing[list[k]].seed ^ mixed(2 * m->low + m->floats) ^ mixed(m->awaits) << 1);
	}
	return sum ? sum : 1;
}

static bool
has_failed(const om_walk *w, uint64_t hash)
{
	return w->failed[hash & w->mask] == hash || w->failed[(hash & w->mask) ^ 1] == hash;
}

static void
remember(om_walk *w, uint64_t hash)
{
	w->failed[(hash & w->mask) ^ hash >> 63] = hash;
}

static om_offset_reach
hull(const om_walk *w, const uint32_t *list, uint32_t n)
{
	om_offset_reach all = {UINT32_MAX, 0};

	for (uint32_t k = 0; k < n; k++) {
		const om_thing *x = &w->t->thing[list[k]];
		if (x->reach[0].first < all.first)
			all.first = x->reach[0].first;
		if (x->reach[x->nreach - 1].last > all.last)
			all.last = x->reach[x->nreach - 1].last;
	}
	return all;
}

/* Stack a thing onto what is in its sections; those come sorted. */
static void
stack(struct section *section, om_offset_reach reach, uint64_t low, uint64_t bytes)
{
	for (uint32_t s = reach.first; s <= reach.last; s++) {
		struct section *x = &section[s];
		if (low < x->floor)
			x->floor = low;
		x->top = (x->top > low ? x->top : low) + bytes;
		x->bytes += bytes;
	}
}

/* Fill the sections from a sorted list; false when one is too high. */
static bool
stack_all(om_walk *w, const uint32_t *list, uint32_t n, om_offset_reach all)
{
	uint64_t cells = 0;

	for (uint32_t s = all.first; s <= all.last; s++)
		w->section[s] = (struct section){.floor = UINT64_MAX};
	for (uint32_t k = 0; k < n; k++) {
		const om_thing *x = &w->t->thing[list[k]];
		for (uint32_t i = 0; i < x->nreach; i++) {
			stack(w->section, x->reach[i], w->mark[list[k]].low, x->bytes);
			cells += x->reach[i].last - x->reach[i].first + 1;
		}
	}
	w->seen += 1 + cells / CELLS;
	for (uint32_t s = all.first; s <= all.last; s++) {
		if (w->section[s].top > w->goal + w->t->spare[s]) {
			w->failures[s]++;
			return false;
		}
	}
	return true;
}

static void
find_firsts(om_walk *w, const uint32_t *list, uint32_t n, om_offset_reach all)
{
	for (uint32_t s = all.first; s <= all.last; s++) {
		struct section *x = &w->section[s];
		x->first = UINT64_MAX;
		x->limit = w->goal + w->t->spare[s] - x->bytes;
	}
	for (uint32_t k = 0; k < n; k++) {
		const om_thing *x = &w->t->thing[list[k]];
		const uint64_t low = w->mark[list[k]].low, top = low + x->bytes;
		for (uint32_t i = 0; i < x->nreach; i++)
			for (uint32_t s = x->reach[i].first; s <= x->reach[i].last; s++)
				if (low <= w->section[s].limit && top < w->section[s].first)
					w->section[s].first = top;
	}
}

/* What cannot be the lowest of a section lies above one that can. */
static bool
lift(om_walk *w, const uint32_t *list, uint32_t n, om_offset_reach all, bool *has_changed)
{
	find_firsts(w, list, n, all);
	for (uint32_t k = 0; k < n; k++) {
		const om_thing *x = &w->t->thing[list[k]];
		struct mark *m = &w->mark[list[k]];
		uint64_t low = m->low;
		for (uint32_t i = 0; i < x->nreach && !x->is_fixed; i++)
			for (uint32_t s = x->reach[i].first; s <= x->reach[i].last; s++)
				if (m->low > w->section[s].limit && w->section[s].first > low)
					low = w->section[s].first;
		if (low == m->low)
			continue;
		*has_changed = true;
		change(w, list[k]);
		if (m->awaits == 0)
			m->awaits = m->low + x->bytes;
		m->floats = true;
		if (!raise(w, list[k], low))
			return false;
	}
	return true;
}

static void
count_choices(om_walk *w, const uint32_t *list, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		const om_thing *x = &w->t->thing[list[k]];
		for (uint32_t i = 0; i < x->nreach && !x->is_fixed; i++)
			for (uint32_t s = x->reach[i].first; s <= x->reach[i].last; s++)
				w->section[s].choices += w->mark[list[k]].low <= w->section[s].limit;
	}
}

/* What is left under the goal, in parts of it of the weight of one choice. */
static double
room_of(const om_walk *w, uint32_t section)
{
	return (double)(w->goal + w->t->spare[section] - w->section[section].top) * 1024 / (double)w->goal;
}

/* How narrow a section is: the less, the sooner the walk goes there. */
static double
width_of(const om_walk *w, uint32_t section)
{
	const struct section *s = &w->section[section];

	switch (w->rule) {
	case OM_TIGHTEST:
		return room_of(w, section) + s->choices;
	case OM_TIGHT_FAILING:
		return (room_of(w, section) + s->choices) / (1 + w->failures[section]);
	case OM_FAILING:
		return s->choices / (1 + w->failures[section]);
	default:
		return s->choices;
	}
}

static bool
is_alive_in(const om_thing *x, uint32_t section)
{
	for (uint32_t i = 0; i < x->nreach; i++)
		if (x->reach[i].first <= section && section <= x->reach[i].last)
			return true;
	return false;
}

static uint32_t
first_in_narrowest(om_walk *w, const uint32_t *list, uint32_t n, om_offset_reach all)
{
	uint32_t narrowest = UINT32_MAX;
	double least = 0;

	count_choices(w, list, n);
	for (uint32_t s = all.first; s <= all.last; s++) {
		if (w->section[s].choices == 0)
			continue;
		const double width = width_of(w, s);
		if (narrowest == UINT32_MAX || width < least) {
			narrowest = s;
			least = width;
		}
	}
	for (uint32_t k = 0; k < n && narrowest != UINT32_MAX; k++)
		if (!w->t->thing[list[k]].is_fixed && is_alive_in(&w->t->thing[list[k]], narrowest))
			return list[k];
	return OM_NO_THING;
}

static uint32_t
lowest(const om_walk *w, const uint32_t *list, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (!w->t->thing[list[k]].is_fixed)
			return list[k];
	return OM_NO_THING;
}

/* The first one that fits below a thing. */
static uint32_t
fits_below(const om_walk *w, uint32_t thing)
{
	const om_thing *x = &w->t->thing[thing];
	uint32_t found = OM_NO_THING;

	for (uint32_t k = 0; k < x->nnear; k++) {
		const uint32_t i = x->near[k];
		if (!w->mark[i].is_placed && !w->t->thing[i].is_fixed
		    && top_of(w, i) <= w->mark[thing].low
		    && (found == OM_NO_THING || is_before(w, i, found)))
			found = i;
	}
	return found;
}

/* The thing to branch on, or OM_NO_THING when only fixed ones are left. */
static uint32_t
choose(om_walk *w, const uint32_t *list, uint32_t n, om_offset_reach all)
{
	uint32_t thing = OM_NO_THING;

	if (w->rule != OM_LOWEST)
		thing = first_in_narrowest(w, list, n, all);
	if (thing == OM_NO_THING)
		thing = lowest(w, list, n);
	for (uint32_t below = thing; below != OM_NO_THING;) {
		thing = below;
		below = fits_below(w, thing);
	}
	return thing;
}

/* ---- The walk. ---- */

static om_outcome walk(om_walk *w, uint32_t *list, uint32_t n);

/* The last section of the group that holds the first one: nothing in the list
 * is alive both in it and behind it. */
static uint32_t
find_cut(om_walk *w, const uint32_t *list, uint32_t n, om_offset_reach all)
{
	uint32_t open = 0, s = all.first;

	memset(w->crossing + all.first, 0, (all.last - all.first + 1) * sizeof *w->crossing);
	for (uint32_t k = 0; k < n; k++) {
		const om_thing *x = &w->t->thing[list[k]];
		w->crossing[x->reach[0].first]++;
		w->crossing[x->reach[x->nreach - 1].last]--;
	}
	while (s < all.last && (open += w->crossing[s]) > 0)
		s++;
	return s;
}

/* Bring the first group to the front; gives its length. */
static uint32_t
split_group(om_walk *w, uint32_t *list, uint32_t n)
{
	const uint32_t cut = find_cut(w, list, n, hull(w, list, n));
	uint32_t group = 0, rest = 0;

	for (uint32_t k = 0; k < n; k++) {
		if (w->t->thing[list[k]].reach[0].first <= cut)
			list[group++] = list[k];
		else
			w->spare[rest++] = list[k];
	}
	memcpy(list + group, w->spare, rest * sizeof *list);
	return group;
}

static om_outcome
walk_groups(om_walk *w, uint32_t *list, uint32_t n)
{
	om_outcome outcome = OM_PACKED;

	while (n > 0 && outcome == OM_PACKED) {
		const uint32_t group = split_group(w, list, n);
		outcome = walk(w, list, group);
		list += group;
		n -= group;
	}
	return outcome;
}

/* The branch in which a thing lies as low as it may. */
static om_outcome
take(om_walk *w, uint32_t *list, uint32_t n, uint32_t thing)
{
	uint32_t k = 0;

	while (list[k] != thing)
		k++;
	memmove(list + k, list + k + 1, (n - k - 1) * sizeof *list);
	list[n - 1] = thing;
	return place(w, thing) ? walk_groups(w, list, n - 1) : OM_HOPELESS;
}

static bool
is_spent(om_walk *w)
{
	if (w->until > 0 && w->seen / CLOCK != w->looked) {
		w->looked = w->seen / CLOCK;
		if (om_now_ms() >= w->until)
			w->nodes = w->seen;
	}
	return w->seen >= w->nodes;
}

/* Draw the conclusions; false when they end the branch.  `*state` becomes the
 * hash of what was there before, unless that is known to fail. */
static bool
conclude(om_walk *w, uint32_t *list, uint32_t n, om_offset_reach all, uint64_t *state)
{
	bool has_changed = false;

	if (!settle(w, list, n))
		return false;
	const uint64_t hash = hash_of(w, list, n);
	if (has_failed(w, hash))
		return false;
	*state = *state ? *state : hash;
	do {
		has_changed = false;
		sort(w, list, n);
		if (!stack_all(w, list, n, all) || !lift(w, list, n, all, &has_changed)
		    || (has_changed && !settle(w, list, n)))
			return false;
	} while (has_changed);
	return true;
}

/* Nodes that differ by one thing left out follow each other in the loop. */
static om_outcome
walk(om_walk *w, uint32_t *list, uint32_t n)
{
	const size_t start = w->ntrail;
	const om_offset_reach all = hull(w, list, n);
	om_outcome outcome = OM_HOPELESS;
	uint64_t state = 0;

	while (conclude(w, list, n, all, &state)) {
		if (is_spent(w)) {
			outcome = OM_SPENT;
			break;
		}
		const uint32_t thing = choose(w, list, n, all);
		const size_t here = w->ntrail;
		outcome = thing == OM_NO_THING ? OM_PACKED : take(w, list, n, thing);
		if (outcome == OM_PACKED)
			return outcome;
		undo(w, here);
		if (outcome == OM_SPENT || !leave_out(w, thing))
			break;
	}
	undo(w, start);
	if (outcome == OM_HOPELESS && state)
		remember(w, state);
	return outcome;
}

void
om_walk_forget(om_walk *w)
{
	memset(w->failures, 0, w->t->nsection * sizeof *w->failures);
}

static uint64_t
memory_for(uint64_t nodes)
{
	uint64_t size = 64;

	while (size < MEMORY && size < 2 * nodes)
		size *= 2;
	return size;
}

om_walk *
om_walk_new(const om_tables *t, uint64_t nodes, om_arena *mem)
{
	om_walk *w = OM_NEW(mem, om_walk);
	const uint64_t size = memory_for(nodes);

	*w = (om_walk){.t = t, .mem = mem, .mask = size - 1};
	w->mark = OM_NEWN(mem, struct mark, t->n);
	w->list = OM_NEWN(mem, uint32_t, t->n);
	w->spare = OM_NEWN(mem, uint32_t, t->n);
	w->section = OM_NEWN(mem, struct section, t->nsection);
	w->crossing = OM_NEWN(mem, uint32_t, t->nsection);
	w->failures = OM_NEWN(mem, double, t->nsection);
	w->failed = OM_NEWN(mem, uint64_t, size);
	return w;
}

/* False when a thing is too high wherever it lies. */
static bool
lie_on_the_floor(om_walk *w)
{
	for (uint32_t k = 0; k < w->t->n; k++) {
		const om_thing *x = &w->t->thing[k];
		w->list[k] = k;
		w->mark[k] = (struct mark){.low = x->is_fixed ? x->fixed : clear_place(w, x, 0)};
		if (is_above_goal(w, k, w->mark[k].low))
			return false;
	}
	return true;
}

om_outcome
om_walk_seek(om_walk *w, om_rule rule, uint64_t goal, uint64_t *nodes, double until)
{
	w->rule = rule;
	w->goal = goal;
	w->nodes = *nodes;
	w->until = until;
	w->seen = w->looked = 0;
	w->ntrail = 0;
	if (!lie_on_the_floor(w))
		return OM_HOPELESS;
	const om_outcome outcome = walk_groups(w, w->list, w->t->n);
	*nodes = w->seen < *nodes ? *nodes - w->seen : 0;
	return outcome;
}

uint64_t
om_walk_offset(const om_walk *w, uint32_t thing)
{
	return w->mark[thing].low;
}
