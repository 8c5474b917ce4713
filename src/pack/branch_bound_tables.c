/* SPDX-License-Identifier: Apache-2.0 */
/* The searched component as tables: sections, neighbors, symmetric items, and
 * branching orders. */
#include <config.h>

#include <stdlib.h>

#include "pack/sort_keys.h"
#include "pack/search.h"

enum {
	MAX_ITEMS = 4 * 1024,        /* each may be a level of recursion */
	MAX_PAIRS = 4 * 1024 * 1024,
};

/* ---- Sections: a new one begins where a start follows an end. ---- */

struct lifetime_end {
	uint32_t upper, lifetime;
};

static int
compare_end(const void *a, const void *b)
{
	const struct lifetime_end *x = a, *y = b;

	if (x->upper != y->upper)
		return x->upper < y->upper ? -1 : 1;
	return x->lifetime < y->lifetime ? -1 : x->lifetime > y->lifetime;
}

/* Sections [first, last] of each lifetime; returns the number of sections. */
static uint32_t
find_sections(const om_component *p, om_arena *mem, om_section_range *range)
{
	struct lifetime_end *lifetime_end = OM_NEWN(mem, struct lifetime_end, p->nlifetime);
	uint32_t n = 0, born = 0;
	bool has_grown = false;

	for (uint32_t k = 0; k < p->nlifetime; k++)
		lifetime_end[k] = (struct lifetime_end){p->lifetime[k].upper, k};
	qsort(lifetime_end, p->nlifetime, sizeof *lifetime_end, compare_end);
	for (uint32_t k = 0; k < p->nlifetime; k++) {
		for (; born < p->nlifetime && p->lifetime[born].lower < lifetime_end[k].upper; born++) {
			range[born].first = n;
			has_grown = true;
		}
		n += has_grown;
		has_grown = false;
		range[lifetime_end[k].lifetime].last = n - 1;
	}
	return n;
}

/* Add a range to an item; adjacent ranges are merged. */
static void
add_range(om_search_item *t, om_section_range *range, om_section_range new)
{
	if (t->nrange && range[t->nrange - 1].last + 1 == new.first)
		range[t->nrange - 1].last = new.last;
	else
		range[t->nrange++] = new;
}

static void
fill_ranges(om_search_tables *t, const om_component *p, const uint32_t *number, om_arena *mem)
{
	om_section_range *range_of_lifetime = OM_NEWN(mem, om_section_range, p->nlifetime);
	om_section_range **ranges = OM_NEWN(mem, om_section_range *, t->n);

	t->nsection = find_sections(p, mem, range_of_lifetime);
	for (uint32_t k = 0; k < t->n; k++) {
		ranges[k] = OM_NEWN(mem, om_section_range, p->buf[p->item[k]].nlive);
		t->item[k].range = ranges[k];
	}
	for (uint32_t k = 0; k < p->nlifetime; k++) {
		const uint32_t i = number[k];
		add_range(&t->item[i], ranges[i], range_of_lifetime[k]);
	}
}

/* ---- Neighbors. ---- */

struct live_sweep {
	const om_component *component;
	const uint32_t *number;
	uint32_t *live, nlive;   /* lifetimes */
	uint32_t *adj;            /* pairs of items */
	size_t nadj, cap;
};

static void
remove_ended(struct live_sweep *s, uint32_t step)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < s->nlive; k++)
		if (s->component->lifetime[s->live[k]].upper > step)
			s->live[n++] = s->live[k];
	s->nlive = n;
}

/* The number of pairs of lifetimes that overlap; stops counting above MAX_PAIRS. */
static size_t
count_overlaps(struct live_sweep *s)
{
	size_t n = 0;

	s->nlive = 0;
	for (uint32_t k = 0; k < s->component->nlifetime && n <= MAX_PAIRS; k++) {
		remove_ended(s, s->component->lifetime[k].lower);
		n += s->nlive;
		s->live[s->nlive++] = k;
	}
	return n;
}

static void
list_overlaps(struct live_sweep *s, uint32_t (*pair)[2])
{
	size_t n = 0;

	s->nlive = 0;
	for (uint32_t k = 0; k < s->component->nlifetime; k++) {
		remove_ended(s, s->component->lifetime[k].lower);
		for (uint32_t i = 0; i < s->nlive; i++, n++) {
			pair[n][0] = s->number[k];
			pair[n][1] = s->number[s->live[i]];
		}
		s->live[s->nlive++] = k;
	}
}

/* `near`: the neighbours of each item in any order.  The relation is symmetric, so an item that is appended to the lists
 * of its neighbours, by rising number, leaves them sorted.  Items of several lifetimes may overlap more than once. */
static void
sort_adjacency(om_search_tables *t, uint32_t *const *near, const uint32_t *nnear, om_arena *mem)
{
	for (uint32_t k = 0; k < t->n; k++)
		t->item[k].adj = OM_NEWN(mem, uint32_t, nnear[k]);
	for (uint32_t i = 0; i < t->n; i++)
		for (uint32_t k = 0; k < nnear[i]; k++) {
			om_search_item *to = &t->item[near[i][k]];
			if (to->nadj == 0 || to->adj[to->nadj - 1] != i)
				to->adj[to->nadj++] = i;
		}
}

static bool
fill_adjacency(om_search_tables *t, const om_component *p, const uint32_t *number, om_arena *mem)
{
	struct live_sweep s = {.component = p, .number = number};
	om_arena *pairs = om_arena_new();

	s.live = OM_NEWN(pairs, uint32_t, p->nlifetime);
	const size_t n = count_overlaps(&s);
	if (n <= MAX_PAIRS) {
		uint32_t (*pair)[2] = om_allocn(pairs, sizeof *pair, n);
		uint32_t **near = OM_NEWN(pairs, uint32_t *, t->n), *nnear = OM_NEWN(pairs, uint32_t, t->n);
		list_overlaps(&s, pair);
		for (size_t k = 0; k < 2 * n; k++)
			nnear[pair[k / 2][k % 2]]++;
		for (uint32_t k = 0; k < t->n; k++) {
			near[k] = om_allocn(pairs, sizeof *near[k], nnear[k]);
			nnear[k] = 0;
		}
		for (size_t k = 0; k < 2 * n; k++) {
			const uint32_t i = pair[k / 2][k % 2];
			near[i][nnear[i]++] = pair[k / 2][1 - k % 2];
		}
		sort_adjacency(t, near, nnear, mem);
	}
	om_arena_free(pairs);
	return n <= MAX_PAIRS;
}

/* ---- Symmetric items are interchangeable, so their order is fixed. ---- */

struct ref {
	const om_search_item *item;
	uint32_t number;
};

static int
compare_shape(const struct ref *x, const struct ref *y)
{
	const om_search_item *a = x->item, *b = y->item;

	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	if (a->raw != b->raw)
		return a->raw < b->raw ? -1 : 1;
	if (a->align != b->align)
		return a->align < b->align ? -1 : 1;
	if (a->nrange != b->nrange)
		return a->nrange < b->nrange ? -1 : 1;
	return memcmp(a->range, b->range, a->nrange * sizeof *a->range);
}

static int
compare_ref(const void *a, const void *b)
{
	const struct ref *x = a, *y = b;
	const int diff = compare_shape(x, y);

	return diff ? diff : x->number < y->number ? -1 : x->number > y->number;
}

static void
find_symmetric(om_search_tables *t, om_arena *mem)
{
	struct ref *ref = OM_NEWN(mem, struct ref, t->n);
	uint32_t n = 0;

	for (uint32_t k = 0; k < t->n; k++) {
		t->item[k].symmetric = OM_NO_ITEM;
		if (!t->item[k].is_fixed)
			ref[n++] = (struct ref){&t->item[k], k};
	}
	qsort(ref, n, sizeof *ref, compare_ref);
	for (uint32_t k = 1; k < n; k++)
		if (compare_shape(&ref[k - 1], &ref[k]) == 0)
			t->item[ref[k].number].symmetric = ref[k - 1].number;
}

/* ---- Sizes. ---- */

static uint64_t
common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		const uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

static void
fill_sizes(om_search_tables *t, const om_component *p)
{
	uint64_t align = UINT64_MAX;

	for (uint32_t k = 0; k < t->n; k++) {
		const om_buffer *b = &p->buf[p->item[k]];
		om_search_item *x = &t->item[k];
		x->raw = b->bytes;
		x->align = b->align > 1 ? b->align : 1;
		x->is_fixed = b->fixed >= 0;
		x->fixed = x->is_fixed ? (uint64_t)b->fixed : 0;
		for (uint32_t i = 0; i < b->nlive; i++)
			x->steps += b->live[i].upper - b->live[i].lower;
		x->seed = (k + 1) * UINT64_C(0x9e3779b97f4a7c15);
		t->has_fixed |= x->is_fixed;
		t->granule = common_divisor(t->granule, b->bytes);
		if (x->align > 1)
			t->granule = common_divisor(t->granule, x->align);
		if (x->is_fixed && b->fixed)
			t->granule = common_divisor(t->granule, (uint64_t)b->fixed);
		if (x->align < align)
			align = x->align;
	}
	if (t->has_fixed)   /* fixed items may have any offset */
		align = 1;
	for (uint32_t k = 0; k < t->n; k++)
		t->item[k].bytes = (t->item[k].raw + align - 1) & ~(align - 1);
}

static void
fill_slack(om_search_tables *t, om_arena *mem)
{
	t->slack = OM_NEWN(mem, uint64_t, t->nsection);
	for (uint32_t k = 0; k < t->n; k++) {
		const om_search_item *x = &t->item[k];
		for (uint32_t i = 0; i < x->nrange; i++)
			for (uint32_t s = x->range[i].first; s <= x->range[i].last; s++)
				if (x->bytes - x->raw > t->slack[s])
					t->slack[s] = x->bytes - x->raw;
	}
}

struct index_entry {
	uint32_t buf, number;
};

static int
compare_buffer(const void *a, const void *b)
{
	const struct index_entry *x = a, *y = b;

	return x->buf < y->buf ? -1 : x->buf > y->buf;
}

/* By lifetime, the index of its item. */
static uint32_t *
number_lifetimes(const om_component *p, om_arena *mem)
{
	struct index_entry *index_entry = OM_NEWN(mem, struct index_entry, p->nitem);
	uint32_t *number = OM_NEWN(mem, uint32_t, p->nlifetime);

	for (uint32_t k = 0; k < p->nitem; k++)
		index_entry[k] = (struct index_entry){p->item[k], k};
	qsort(index_entry, p->nitem, sizeof *index_entry, compare_buffer);
	for (uint32_t k = 0; k < p->nlifetime; k++) {
		const struct index_entry key = {.buf = p->lifetime[k].buf};
		number[k] = ((struct index_entry *)bsearch(&key, index_entry, p->nitem, sizeof *index_entry,
			compare_buffer))->number;
	}
	return number;
}

bool
om_search_tables_init(om_search_tables *t, const om_component *component, om_arena *mem)
{
	if (component->nitem > MAX_ITEMS)
		return false;
	for (uint32_t k = 0; k < component->nitem; k++)
		if (om_is_partially_live(&component->buf[component->item[k]]))
			return false;
	*t = (om_search_tables){.n = component->nitem, .item = OM_NEWN(mem, om_search_item, component->nitem)};
	const uint32_t *number = number_lifetimes(component, mem);
	if (!fill_adjacency(t, component, number, mem))
		return false;
	fill_ranges(t, component, number, mem);
	fill_sizes(t, component);
	fill_slack(t, mem);
	find_symmetric(t, mem);
	return true;
}

/* ---- Branching orders. ---- */

struct branch_key {
	double key[3];             /* larger keys come first */
	uint32_t number;
};

static int
compare_branch_key(const void *a, const void *b)
{
	const struct branch_key *x = a, *y = b;

	for (int k = 0; k < 3; k++)
		if (x->key[k] != y->key[k])
			return x->key[k] > y->key[k] ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static double
measure(const om_search_tables *t, const om_search_item *x, char what)
{
	double sum = 0;

	switch (what) {
	case 'W':        /* width: how long it is live */
		return (double)x->steps;
	case 'A':        /* area: the same, times bytes */
		return (double)x->steps * (double)x->bytes;
	case 'T':        /* total: bytes of its neighbors */
		for (uint32_t k = 0; k < x->nadj; k++)
			sum += (double)t->item[x->adj[k]].bytes;
		return sum;
	case 'C':
		return x->nadj;
	case 'U':
		return x->range[x->nrange - 1].last;
	case 'L':
		return -(double)x->range[0].first;
	default:
		return (double)x->bytes;
	}
}

void
om_search_tables_prioritize(om_search_tables *t, uint32_t k, uint64_t noise, om_arena *mem)
{
	static const char *const orders[OM_NPRIORITY] = {"WAT", "TAW", "ZAT", "UAT", "ATW", "LAT"};
	struct branch_key *branch_key = OM_NEWN(mem, struct branch_key, t->n);

	for (uint32_t i = 0; i < t->n; i++) {
		for (int j = 0; j < 3; j++)
			branch_key[i].key[j] = measure(t, &t->item[i], orders[k % OM_NPRIORITY][j]);
		if (noise) {
			noise = noise * UINT64_C(6364136223846793005) + 1442695040888963407u;
			branch_key[i].key[0] *= 0.7 + (double)(noise >> 40) / (1 << 24) * 0.6;
		}
		branch_key[i].number = i;
	}
	qsort(branch_key, t->n, sizeof *branch_key, compare_branch_key);
	for (uint32_t i = 0; i < t->n; i++)
		t->item[branch_key[i].number].priority = i;
}
