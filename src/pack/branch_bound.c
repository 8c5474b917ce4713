/* SPDX-License-Identifier: Apache-2.0 */
/* One branch-and-bound search of the tree of packings, for one goal.
 *
 * Among the packings that reach the goal take one with the least sum of offsets.
 * In it each buffer is at the lowest offset that the buffers below it leave free:
 * it can neither slide down nor move into a hole.  So it is enough to search
 * packings of this kind, which grow from offset 0 upwards.
 *
 * A state is a set of placed items and, for each other item, a bound: the lowest
 * offset that it can still get.  An item may be branched on if no other item that
 * is live with it fits below it.  Then there are two branches:
 *
 *   - it is placed right at its bound;
 *   - it is not. Then it rests on an item that is not placed yet, which raises
 *     its bound to the lowest top among those (`is_floating` below), and one of
 *     those begins lower than this item would have ended, else it could move down
 *     (`awaits`). Both conditions are propagated from then on.
 *
 * Any item may be branched on, so the search chooses a constrained section: one
 * with few items that may be the lowest there, little free space, or many failures.
 * An item that cannot be the lowest of a section, since then not all others would
 * fit above it, is above one that can: that raises bounds too (propagate_lowest()).
 * A branch ends when the items of a section, stacked by their bounds, exceed the
 * goal; or when the same items with the same bounds have failed before.  If the
 * remaining items fall into groups that do not overlap in time, each group is
 * searched on its own.
 *
 * It terminates because each branch places an item or raises a bound.
 *
 * Growing packings in order of offsets with bounds by section is known from
 * minimalloc (Moffitt, ASPLOS 2023); branching on any item with nothing that fits
 * below it, and the propagation after excluding one, are new here.
 */
#include <config.h>

#include <stdlib.h>

#include "base/clock.h"
#include "pack/search.h"

enum {
	MAX_FAILED_STATES = 1 << 17,        /* the most failed states that are stored */
	CELLS_PER_NODE = 2048,            /* work in a node that counts as one more node */
	CLOCK_PERIOD = 1024,            /* nodes between two reads of the clock */
	MAX_ITERATIONS = 256,               /* of propagation over the items of a node */
	FREE_ITERATIONS = 16,               /* each one after these counts as a node */
};

/* The state of an item. */
struct item_state {
	uint64_t low;            /* lower bound of its offset */
	uint64_t awaits;         /* one of its neighbors must begin below this; 0: none must */
	bool is_floating;             /* no placed item is right below `low` */
	bool is_placed;
};

struct change {
	struct item_state old;
	uint32_t item;
};

/* A section in the current node. */
struct section {
	uint64_t floor;          /* the lowest bound in it; UINT64_MAX: empty */
	uint64_t top;            /* of all items, stacked */
	uint64_t bytes;          /* of all items */
	uint64_t limit;          /* an item above it cannot be the lowest */
	uint64_t first;          /* the lowest top of an item that may be the lowest */
	uint32_t choices;        /* items that may be the lowest */
};

struct om_branch_bound {
	const om_search_tables *t;
	struct item_state *state;
	struct change *trail;
	size_t ntrail, captrail;
	om_arena *mem;
	uint32_t *list, *spare;  /* the items; a node owns a range of `list` */
	struct section *section;
	uint32_t *crossing;      /* by section: change of the number of items that continue after it */
	double *failures;        /* by section */
	uint64_t *failed, mask;  /* hashes of states */
	uint64_t goal, nodes, visited;
	uint64_t clock_reads;         /* reads of the clock */
	double deadline;
	om_branch_rule rule;
};

/* ---- Bounds. ---- */

static void
record_change(om_branch_bound *w, uint32_t item)
{
	const struct change c = {w->state[item], item};

	OM_PUSH(w->mem, w->trail, w->ntrail, w->captrail, c);
}

static void
undo_changes(om_branch_bound *w, size_t to)
{
	while (w->ntrail > to) {
		const struct change *c = &w->trail[--w->ntrail];
		w->state[c->item] = c->old;
	}
}

static uint64_t
top_of(const om_branch_bound *w, uint32_t item)
{
	return w->state[item].low + w->t->item[item].bytes;
}

static bool
is_above_goal(const om_branch_bound *w, uint32_t item, uint64_t low)
{
	const uint64_t raw = w->t->item[item].raw;

	return raw > w->goal || low > w->goal - raw;
}

/* The lowest offset from `low` on that is aligned and clear of fixed items. */
static uint64_t
next_free_offset(const om_branch_bound *w, const om_search_item *x, uint64_t low)
{
	bool is_clear;

	do {
		low = (low + x->align - 1) & ~(x->align - 1);
		is_clear = true;
		for (uint32_t k = 0; w->t->has_fixed && k < x->nadj; k++) {
			const om_search_item *f = &w->t->item[x->adj[k]];
			if (f->is_fixed && low < f->fixed + f->bytes && f->fixed < low + x->bytes) {
				low = f->fixed + f->bytes;
				is_clear = false;
			}
		}
	} while (!is_clear);
	return low;
}

/* False when the item cannot be placed at or above `low`. */
static bool
raise_bound(om_branch_bound *w, uint32_t item, uint64_t low)
{
	if (low <= w->state[item].low)
		return true;
	low = next_free_offset(w, &w->t->item[item], low);
	record_change(w, item);
	w->state[item].low = low;
	return !is_above_goal(w, item, low);
}

/* Raise the bound of a floating item to the lowest top it can rest on, and check
 * that the neighbor that it awaits can still come. */
static bool
propagate_item(om_branch_bound *w, uint32_t item, bool *has_changed)
{
	const om_search_item *x = &w->t->item[item];
	const struct item_state *m = &w->state[item];
	uint64_t rest = UINT64_MAX;
	bool may_come = m->awaits == 0;

	for (uint32_t k = 0; k < x->nadj; k++) {
		const uint32_t i = x->adj[k];
		if (w->state[i].is_placed)
			continue;
		const uint64_t top = top_of(w, i);
		if (w->t->item[i].is_fixed) {
			if (top < rest && top + x->align > m->low)
				rest = top;
			continue;
		}
		if (top < rest)
			rest = top;
		may_come = may_come || w->state[i].low < m->awaits;
	}
	if (!may_come || (m->is_floating && rest == UINT64_MAX))
		return false;
	if (!m->is_floating || rest <= m->low)
		return true;
	*has_changed = true;
	return raise_bound(w, item, rest);
}

/* Items that float on each other raise each other step by step, with large offsets almost without end: the
 * number of iterations is limited, which leaves lower bounds that hold as well. */
static bool
propagate_items(om_branch_bound *w, const uint32_t *list, uint32_t n)
{
	bool has_changed = true;

	for (int pass = 0; has_changed && pass < MAX_ITERATIONS; pass++) {
		has_changed = false;
		w->visited += pass >= FREE_ITERATIONS;
		for (uint32_t k = 0; k < n; k++) {
			const uint32_t i = list[k], symmetric = w->t->item[i].symmetric;
			if (symmetric != OM_NO_ITEM && !w->state[symmetric].is_placed && top_of(w,
				symmetric) > w->state[i].low) {
				has_changed = true;
				if (!raise_bound(w, i, top_of(w, symmetric)))
					return false;
			}
			if ((w->state[i].is_floating || w->state[i].awaits) && !propagate_item(w, i, &has_changed))
				return false;
		}
	}
	return true;
}

/* ---- The two branches. ---- */

static bool
place_item(om_branch_bound *w, uint32_t item)
{
	const om_search_item *x = &w->t->item[item];
	const uint64_t low = w->state[item].low, top = top_of(w, item);

	record_change(w, item);
	w->state[item].is_placed = true;
	for (uint32_t k = 0; k < x->nadj; k++) {
		const uint32_t i = x->adj[k];
		struct item_state *m = &w->state[i];
		if (m->is_placed || w->t->item[i].is_fixed)
			continue;
		const bool has_come = low < m->awaits;
		const uint64_t above = next_free_offset(w, &w->t->item[i], top);
		if (!has_come && above < m->low)
			continue;
		record_change(w, i);
		if (has_come)
			m->awaits = 0;
		if (above >= m->low) {
			m->is_floating = false;
			m->low = above;
			if (is_above_goal(w, i, m->low))
				return false;
		}
	}
	return true;
}

/* False when the branch in which the item is not at its bound is infeasible. */
static bool
exclude_item(om_branch_bound *w, uint32_t item)
{
	bool has_changed;

	record_change(w, item);
	w->state[item].awaits = top_of(w, item);
	w->state[item].is_floating = true;
	return raise_bound(w, item, w->state[item].low + 1) && propagate_item(w, item, &has_changed);
}

/* ---- A node. ---- */

static bool
precedes(const om_branch_bound *w, uint32_t a, uint32_t b)
{
	if (w->state[a].low != w->state[b].low)
		return w->state[a].low < w->state[b].low;
	return w->t->item[a].priority < w->t->item[b].priority;
}

static void
merge_lists(const om_branch_bound *w, uint32_t *list, const uint32_t *a, uint32_t na, const uint32_t *b,
	uint32_t nb)
{
	while (na && nb) {
		if (precedes(w, *b, *a)) {
			*list++ = *b++;
			nb--;
		} else {
			*list++ = *a++;
			na--;
		}
	}
	memmove(list, na ? a : b, (na + nb) * sizeof *list);
}

/* By bounds, then by priority.  The list is almost sorted in most calls. */
static void
sort_items(om_branch_bound *w, uint32_t *list, uint32_t n)
{
	if (n > 24) {
		const uint32_t half = n / 2;
		sort_items(w, list, half);
		sort_items(w, list + half, n - half);
		if (precedes(w, list[half], list[half - 1])) {
			memcpy(w->spare, list, half * sizeof *list);
			merge_lists(w, list, w->spare, half, list + half, n - half);
		}
		return;
	}
	for (uint32_t k = 1; k < n; k++) {
		const uint32_t x = list[k];
		uint32_t i = k;
		for (; i > 0 && precedes(w, x, list[i - 1]); i--)
			list[i] = list[i - 1];
		list[i] = x;
	}
}

static uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	return x ^ x >> 32;
}

/* A hash of all that the branches below a state depend on; never 0. */
static uint64_t
hash_of(const om_branch_bound *w, const uint32_t *list, uint32_t n)
{
	uint64_t sum = mix(w->goal);

	for (uint32_t k = 0; k < n; k++) {
		const struct item_state *m = &w->state[list[k]];
		sum += mix(w->t->item[list[k]].seed ^ mix(2 * m->low + m->is_floating) ^ mix(m->awaits) << 1);
	}
	return sum ? sum : 1;
}

static bool
has_failed(const om_branch_bound *w, uint64_t hash)
{
	return w->failed[hash & w->mask] == hash || w->failed[(hash & w->mask) ^ 1] == hash;
}

static void
remember_failed(om_branch_bound *w, uint64_t hash)
{
	w->failed[(hash & w->mask) ^ hash >> 63] = hash;
}

static om_section_range
hull(const om_branch_bound *w, const uint32_t *list, uint32_t n)
{
	om_section_range all = {UINT32_MAX, 0};

	for (uint32_t k = 0; k < n; k++) {
		const om_search_item *x = &w->t->item[list[k]];
		if (x->range[0].first < all.first)
			all.first = x->range[0].first;
		if (x->range[x->nrange - 1].last > all.last)
			all.last = x->range[x->nrange - 1].last;
	}
	return all;
}

/* Stack an item onto its sections; items come sorted. */
static void
stack_item(struct section *section, om_section_range range, uint64_t low, uint64_t bytes)
{
	for (uint32_t s = range.first; s <= range.last; s++) {
		struct section *x = &section[s];
		if (low < x->floor)
			x->floor = low;
		x->top = (x->top > low ? x->top : low) + bytes;
		x->bytes += bytes;
	}
}

/* Fill the sections from a sorted list; false when one exceeds the goal. */
static bool
stack_items(om_branch_bound *w, const uint32_t *list, uint32_t n, om_section_range all)
{
	uint64_t cells = 0;

	for (uint32_t s = all.first; s <= all.last; s++)
		w->section[s] = (struct section){.floor = UINT64_MAX};
	for (uint32_t k = 0; k < n; k++) {
		const om_search_item *x = &w->t->item[list[k]];
		for (uint32_t i = 0; i < x->nrange; i++) {
			stack_item(w->section, x->range[i], w->state[list[k]].low, x->bytes);
			cells += x->range[i].last - x->range[i].first + 1;
		}
	}
	w->visited += 1 + cells / CELLS_PER_NODE;
	for (uint32_t s = all.first; s <= all.last; s++) {
		if (w->section[s].top > w->goal + w->t->slack[s]) {
			w->failures[s]++;
			return false;
		}
	}
	return true;
}

static void
find_first_tops(om_branch_bound *w, const uint32_t *list, uint32_t n, om_section_range all)
{
	for (uint32_t s = all.first; s <= all.last; s++) {
		struct section *x = &w->section[s];
		x->first = UINT64_MAX;
		x->limit = w->goal + w->t->slack[s] - x->bytes;
	}
	for (uint32_t k = 0; k < n; k++) {
		const om_search_item *x = &w->t->item[list[k]];
		const uint64_t low = w->state[list[k]].low, top = low + x->bytes;
		for (uint32_t i = 0; i < x->nrange; i++)
			for (uint32_t s = x->range[i].first; s <= x->range[i].last; s++)
				if (low <= w->section[s].limit && top < w->section[s].first)
					w->section[s].first = top;
	}
}

/* An item that cannot be the lowest of a section is above one that can. */
static bool
propagate_lowest(om_branch_bound *w, const uint32_t *list, uint32_t n, om_section_range all,
	bool *has_changed)
{
	find_first_tops(w, list, n, all);
	for (uint32_t k = 0; k < n; k++) {
		const om_search_item *x = &w->t->item[list[k]];
		struct item_state *m = &w->state[list[k]];
		uint64_t low = m->low;
		for (uint32_t i = 0; i < x->nrange && !x->is_fixed; i++)
			for (uint32_t s = x->range[i].first; s <= x->range[i].last; s++)
				if (m->low > w->section[s].limit && w->section[s].first > low)
					low = w->section[s].first;
		if (low == m->low)
			continue;
		*has_changed = true;
		record_change(w, list[k]);
		if (m->awaits == 0)
			m->awaits = m->low + x->bytes;
		m->is_floating = true;
		if (!raise_bound(w, list[k], low))
			return false;
	}
	return true;
}

static void
count_choices(om_branch_bound *w, const uint32_t *list, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		const om_search_item *x = &w->t->item[list[k]];
		for (uint32_t i = 0; i < x->nrange && !x->is_fixed; i++)
			for (uint32_t s = x->range[i].first; s <= x->range[i].last; s++)
				w->section[s].choices += w->state[list[k]].low <= w->section[s].limit;
	}
}

/* The free space below the goal, scaled so that it can be added to a number of
 * choices. */
static double
free_space(const om_branch_bound *w, uint32_t section)
{
	return (double)(w->goal + w->t->slack[section] - w->section[section].top) * 1024 / (double)w->goal;
}

/* The least value of a section is branched on first. */
static double
branch_value(const om_branch_bound *w, uint32_t section)
{
	const struct section *s = &w->section[section];

	switch (w->rule) {
	case OM_BRANCH_TIGHTEST:
		return free_space(w, section) + s->choices;
	case OM_BRANCH_TIGHT_FAILING:
		return (free_space(w, section) + s->choices) / (1 + w->failures[section]);
	case OM_BRANCH_FAILING:
		return s->choices / (1 + w->failures[section]);
	default:
		return s->choices;
	}
}

static bool
is_live_in(const om_search_item *x, uint32_t section)
{
	for (uint32_t i = 0; i < x->nrange; i++)
		if (x->range[i].first <= section && section <= x->range[i].last)
			return true;
	return false;
}

static uint32_t
first_in_best_section(om_branch_bound *w, const uint32_t *list, uint32_t n, om_section_range all)
{
	uint32_t best_section = UINT32_MAX;
	double least = 0;

	count_choices(w, list, n);
	for (uint32_t s = all.first; s <= all.last; s++) {
		if (w->section[s].choices == 0)
			continue;
		const double width = branch_value(w, s);
		if (best_section == UINT32_MAX || width < least) {
			best_section = s;
			least = width;
		}
	}
	for (uint32_t k = 0; k < n && best_section != UINT32_MAX; k++)
		if (!w->t->item[list[k]].is_fixed && is_live_in(&w->t->item[list[k]], best_section))
			return list[k];
	return OM_NO_ITEM;
}

static uint32_t
first_movable(const om_branch_bound *w, const uint32_t *list, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (!w->t->item[list[k]].is_fixed)
			return list[k];
	return OM_NO_ITEM;
}

/* The first item that fits below `item`. */
static uint32_t
find_fitting_below(const om_branch_bound *w, uint32_t item)
{
	const om_search_item *x = &w->t->item[item];
	uint32_t found = OM_NO_ITEM;

	for (uint32_t k = 0; k < x->nadj; k++) {
		const uint32_t i = x->adj[k];
		if (!w->state[i].is_placed && !w->t->item[i].is_fixed
		    && top_of(w, i) <= w->state[item].low
		    && (found == OM_NO_ITEM || precedes(w, i, found)))
			found = i;
	}
	return found;
}

/* The item to branch on, or OM_NO_ITEM when only fixed ones are left. */
static uint32_t
choose_item(om_branch_bound *w, const uint32_t *list, uint32_t n, om_section_range all)
{
	uint32_t item = OM_NO_ITEM;

	if (w->rule != OM_BRANCH_LOWEST)
		item = first_in_best_section(w, list, n, all);
	if (item == OM_NO_ITEM)
		item = first_movable(w, list, n);
	for (uint32_t below = item; below != OM_NO_ITEM;) {
		item = below;
		below = find_fitting_below(w, item);
	}
	return item;
}

/* ---- The search. ---- */

static om_search_outcome search_node(om_branch_bound *w, uint32_t *list, uint32_t n);

/* The last section of the group that contains the first one: no item in the list is
 * live both in it and after it. */
static uint32_t
find_group_end(om_branch_bound *w, const uint32_t *list, uint32_t n, om_section_range all)
{
	uint32_t live = 0, s = all.first;

	memset(w->crossing + all.first, 0, (all.last - all.first + 1) * sizeof *w->crossing);
	for (uint32_t k = 0; k < n; k++) {
		const om_search_item *x = &w->t->item[list[k]];
		w->crossing[x->range[0].first]++;
		w->crossing[x->range[x->nrange - 1].last]--;
	}
	while (s < all.last && (live += w->crossing[s]) > 0)
		s++;
	return s;
}

/* Move the first group to the front; returns its length. */
static uint32_t
split_group(om_branch_bound *w, uint32_t *list, uint32_t n)
{
	const uint32_t cut = find_group_end(w, list, n, hull(w, list, n));
	uint32_t group = 0, rest = 0;

	for (uint32_t k = 0; k < n; k++) {
		if (w->t->item[list[k]].range[0].first <= cut)
			list[group++] = list[k];
		else
			w->spare[rest++] = list[k];
	}
	memcpy(list + group, w->spare, rest * sizeof *list);
	return group;
}

static om_search_outcome
search_groups(om_branch_bound *w, uint32_t *list, uint32_t n)
{
	om_search_outcome outcome = OM_SEARCH_FOUND;

	while (n > 0 && outcome == OM_SEARCH_FOUND) {
		const uint32_t group = split_group(w, list, n);
		outcome = search_node(w, list, group);
		list += group;
		n -= group;
	}
	return outcome;
}

/* The branch in which an item is placed at its bound. */
static om_search_outcome
branch_place(om_branch_bound *w, uint32_t *list, uint32_t n, uint32_t item)
{
	uint32_t k = 0;

	while (list[k] != item)
		k++;
	memmove(list + k, list + k + 1, (n - k - 1) * sizeof *list);
	list[n - 1] = item;
	return place_item(w, item) ? search_groups(w, list, n - 1) : OM_SEARCH_INFEASIBLE;
}

static bool
is_out_of_nodes(om_branch_bound *w)
{
	if (w->deadline > 0 && w->visited / CLOCK_PERIOD != w->clock_reads) {
		w->clock_reads = w->visited / CLOCK_PERIOD;
		if (om_now_ms() >= w->deadline)
			w->nodes = w->visited;
	}
	return w->visited >= w->nodes;
}

/* Propagate; false when that ends the branch.  `*state` becomes the hash of the
 * first state of the node, unless that is known to fail. */
static bool
propagate(om_branch_bound *w, uint32_t *list, uint32_t n, om_section_range all, uint64_t *state)
{
	bool has_changed = false;

	if (!propagate_items(w, list, n))
		return false;
	const uint64_t hash = hash_of(w, list, n);
	if (has_failed(w, hash))
		return false;
	*state = *state ? *state : hash;
	do {
		has_changed = false;
		sort_items(w, list, n);
		if (!stack_items(w, list, n, all) || !propagate_lowest(w, list, n, all, &has_changed)
		    || (has_changed && !propagate_items(w, list, n)))
			return false;
	} while (has_changed && !is_out_of_nodes(w));
	return true;
}

/* The branches that exclude one item after the other are iterations of the loop. */
static om_search_outcome
search_node(om_branch_bound *w, uint32_t *list, uint32_t n)
{
	const size_t start = w->ntrail;
	const om_section_range all = hull(w, list, n);
	om_search_outcome outcome = OM_SEARCH_INFEASIBLE;
	uint64_t state = 0;

	while (propagate(w, list, n, all, &state)) {
		if (is_out_of_nodes(w)) {
			outcome = OM_SEARCH_LIMIT;
			break;
		}
		const uint32_t item = choose_item(w, list, n, all);
		const size_t here = w->ntrail;
		outcome = item == OM_NO_ITEM ? OM_SEARCH_FOUND : branch_place(w, list, n, item);
		if (outcome == OM_SEARCH_FOUND)
			return outcome;
		undo_changes(w, here);
		if (outcome == OM_SEARCH_LIMIT || !exclude_item(w, item))
			break;
	}
	undo_changes(w, start);
	if (outcome == OM_SEARCH_INFEASIBLE && state)
		remember_failed(w, state);
	return outcome;
}

void
om_branch_bound_reset_failures(om_branch_bound *w)
{
	memset(w->failures, 0, w->t->nsection * sizeof *w->failures);
}

static uint64_t
hash_table_size(uint64_t nodes)
{
	uint64_t size = 64;

	while (size < MAX_FAILED_STATES && size < 2 * nodes)
		size *= 2;
	return size;
}

om_branch_bound *
om_branch_bound_new(const om_search_tables *t, uint64_t nodes, om_arena *mem)
{
	om_branch_bound *w = OM_NEW(mem, om_branch_bound);
	const uint64_t size = hash_table_size(nodes);

	*w = (om_branch_bound){.t = t, .mem = mem, .mask = size - 1};
	w->state = OM_NEWN(mem, struct item_state, t->n);
	w->list = OM_NEWN(mem, uint32_t, t->n);
	w->spare = OM_NEWN(mem, uint32_t, t->n);
	w->section = OM_NEWN(mem, struct section, t->nsection);
	w->crossing = OM_NEWN(mem, uint32_t, t->nsection);
	w->failures = OM_NEWN(mem, double, t->nsection);
	w->failed = OM_NEWN(mem, uint64_t, size);
	return w;
}

/* False when an item exceeds the goal at its lowest offset. */
static bool
init_states(om_branch_bound *w)
{
	for (uint32_t k = 0; k < w->t->n; k++) {
		const om_search_item *x = &w->t->item[k];
		w->list[k] = k;
		w->state[k] = (struct item_state){.low = x->is_fixed ? x->fixed : next_free_offset(w, x, 0)};
		if (is_above_goal(w, k, w->state[k].low))
			return false;
	}
	return true;
}

om_search_outcome
om_branch_bound_run(om_branch_bound *w, om_branch_rule rule, uint64_t goal, uint64_t *nodes, double deadline)
{
	w->rule = rule;
	w->goal = goal;
	w->nodes = *nodes;
	w->deadline = deadline;
	w->visited = w->clock_reads = 0;
	w->ntrail = 0;
	if (!init_states(w))
		return OM_SEARCH_INFEASIBLE;
	const om_search_outcome outcome = search_groups(w, w->list, w->t->n);
	*nodes = w->visited < *nodes ? *nodes - w->visited : 0;
	return outcome;
}

uint64_t
om_branch_bound_offset(const om_branch_bound *w, uint32_t item)
{
	return w->state[item].low;
}
