/* SPDX-License-Identifier: Apache-2.0 */
/* Orders in which to place buffers.
 *
 * Each sorts by one property, largest first.  Ties are broken by time and then by
 * number, in both directions: which of many equal buffers comes first often
 * matters.
 */
#include <config.h>

#include <stdlib.h>

#include "pack/packer.h"
#include "pack/sort_keys.h"

struct order_key {
	uint64_t major, minor;   /* larger first */
	uint32_t early, late;    /* smaller first */
	uint32_t buf;
};

static int
compare_key(const void *a, const void *b)
{
	const struct order_key *x = a, *y = b;

	if (x->major != y->major)
		return x->major > y->major ? -1 : 1;
	if (x->minor != y->minor)
		return x->minor > y->minor ? -1 : 1;
	if (x->early != y->early)
		return x->early < y->early ? -1 : 1;
	if (x->late != y->late)
		return x->late < y->late ? -1 : 1;
	return x->buf < y->buf ? -1 : x->buf > y->buf;
}

/* Steps at which any of it is in use. */
static uint64_t
live_steps(const om_buffer *b)
{
	uint64_t steps = 0;
	uint32_t covered = 0;

	for (uint32_t k = 0; k < b->nlive; k++) {
		const uint32_t from = b->live[k].lower > covered ? b->live[k].lower : covered;
		if (b->live[k].upper <= from)
			continue;
		steps += b->live[k].upper - from;
		covered = b->live[k].upper;
	}
	return steps;
}

static uint64_t
byte_steps(const om_buffer *b)
{
	uint64_t sum = 0, product;

	for (uint32_t k = 0; k < b->nlive; k++) {
		const om_interval *live = &b->live[k];
		if (__builtin_mul_overflow(om_interval_end(b, live) - live->from, live->upper - live->lower, &product)
		    || __builtin_add_overflow(sum, product, &sum))
			return UINT64_MAX;
	}
	return sum;
}

/* How many of the sorted numbers are below `x`. */
static uint32_t
count_below(const uint32_t *v, uint32_t n, uint64_t x)
{
	uint32_t from = 0, to = n;

	while (from < to) {
		const uint32_t mid = from + (to - from) / 2;
		if (v[mid] < x)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

/* ---- The neighbors of each buffer in time. ---- */

static void
key_by_conflicts(const om_component *p, om_arena *mem, struct order_key *key)
{
	uint32_t *lower = OM_NEWN(mem, uint32_t, p->nlifetime);
	uint32_t *upper = OM_NEWN(mem, uint32_t, p->nlifetime);

	for (uint32_t k = 0; k < p->nlifetime; k++) {
		lower[k] = p->lifetime[k].lower;
		upper[k] = p->lifetime[k].upper;
	}
	qsort(upper, p->nlifetime, sizeof *upper, om_compare_u32);
	for (uint32_t k = 0; k < p->nitem; k++) {
		const om_buffer *b = &p->buf[p->item[k]];
		key[k].minor = b->bytes;
		for (uint32_t j = 0; j < b->nlive; j++)
			key[k].major += count_below(lower, p->nlifetime, b->live[j].upper)
				- count_below(upper, p->nlifetime, (uint64_t)b->live[j].lower + 1);
	}
}

/* ---- The largest load within the lifetime of each buffer. ---- */

struct peak_tree {
	uint32_t *at;      /* steps at which the load changes, sorted */
	uint32_t n, leaves;
	uint64_t *max;     /* tree over the intervals between them */
};

static void
peak_tree_init(struct peak_tree *l, const om_component *p, om_arena *mem)
{
	uint32_t n = 0;

	l->at = OM_NEWN(mem, uint32_t, 2 * (size_t)p->nlifetime);
	for (uint32_t k = 0; k < p->nlifetime; k++) {
		l->at[n++] = p->lifetime[k].lower;
		l->at[n++] = p->lifetime[k].upper;
	}
	qsort(l->at, n, sizeof *l->at, om_compare_u32);
	for (uint32_t k = 0; k < n; k++)
		if (l->n == 0 || l->at[l->n - 1] != l->at[k])
			l->at[l->n++] = l->at[k];
	l->leaves = 1;
	while (l->leaves < l->n)
		l->leaves *= 2;
	l->max = OM_NEWN(mem, uint64_t, 2 * (size_t)l->leaves);
	uint64_t *load = l->max + l->leaves;
	for (uint32_t k = 0; k < p->nlifetime; k++) {
		const om_buffer *b = &p->buf[p->lifetime[k].buf];
		const om_interval *live = &b->live[p->lifetime[k].live];
		const uint64_t bytes = om_interval_end(b, live) - live->from;
		load[count_below(l->at, l->n, p->lifetime[k].lower)] += bytes;
		load[count_below(l->at, l->n, p->lifetime[k].upper)] -= bytes;
	}
	for (uint32_t k = 1; k < l->n; k++)
		load[k] += load[k - 1];
	for (uint32_t k = l->leaves; k-- > 1;)
		l->max[k] = l->max[2 * k] > l->max[2 * k + 1] ? l->max[2 * k] : l->max[2 * k + 1];
}

static uint64_t
peak_between(const struct peak_tree *l, uint32_t lower, uint32_t upper)
{
	uint32_t from = count_below(l->at, l->n, lower) + l->leaves;
	uint32_t to = count_below(l->at, l->n, upper) + l->leaves;
	uint64_t peak = 0;

	for (; from < to; from /= 2, to /= 2) {
		if (from & 1 && l->max[from++] > peak)
			peak = l->max[from - 1];
		if (to & 1 && l->max[--to] > peak)
			peak = l->max[to];
	}
	return peak;
}

static void
key_by_breadth(const om_component *p, om_arena *mem, struct order_key *key)
{
	struct peak_tree l = {0};

	peak_tree_init(&l, p, mem);
	for (uint32_t k = 0; k < p->nitem; k++) {
		const om_buffer *b = &p->buf[p->item[k]];
		key[k].minor = b->bytes;
		for (uint32_t j = 0; j < b->nlive; j++) {
			const uint64_t peak = peak_between(&l, b->live[j].lower, b->live[j].upper);
			if (peak > key[k].major)
				key[k].major = peak;
		}
	}
}

/* ---- The orders. ---- */

static void
key_by_size(const om_component *p, om_arena *mem, struct order_key *key)
{
	(void)mem;
	for (uint32_t k = 0; k < p->nitem; k++) {
		key[k].major = p->buf[p->item[k]].bytes;
		key[k].minor = live_steps(&p->buf[p->item[k]]);
	}
}

static void
key_by_area(const om_component *p, om_arena *mem, struct order_key *key)
{
	(void)mem;
	for (uint32_t k = 0; k < p->nitem; k++)
		key[k].major = byte_steps(&p->buf[p->item[k]]);
}

static void
key_by_lifetime(const om_component *p, om_arena *mem, struct order_key *key)
{
	(void)mem;
	for (uint32_t k = 0; k < p->nitem; k++) {
		key[k].major = live_steps(&p->buf[p->item[k]]);
		key[k].minor = p->buf[p->item[k]].bytes;
	}
}

static void
key_by_program_order(const om_component *p, om_arena *mem, struct order_key *key)
{
	(void)p, (void)mem, (void)key;
}

#define ORDER(name, fill, backwards)                                           \
	{{{name, name ", repaired", name ", LNS"},                                 \
	  {"skyline by " name, "skyline by " name ", repaired", "skyline by " name ", mended"}}, fill, backwards}

static const struct {
	const char *name[2][3];    /* with a skyline?  which refinement? */
	void (*fill)(const om_component *p, om_arena *mem, struct order_key *key);
	bool backwards;
} orders[OM_NORDER] = {
	ORDER("area", key_by_area, false),
	ORDER("size", key_by_size, false),
	ORDER("breadth", key_by_breadth, false),
	ORDER("size backwards", key_by_size, true),
	ORDER("breadth backwards", key_by_breadth, true),
	ORDER("lifetime", key_by_lifetime, false),
	ORDER("area backwards", key_by_area, true),
	ORDER("lifetime backwards", key_by_lifetime, true),
	ORDER("conflicts", key_by_conflicts, false),
	ORDER("conflicts backwards", key_by_conflicts, true),
	ORDER("program order", key_by_program_order, false),
	ORDER("program order backwards", key_by_program_order, true),
};

const char *
om_order_name(uint32_t k, bool skyline, om_refinement care)
{
	return orders[k].name[skyline][care];
}

void
om_order_fill(const om_component *p, uint32_t k, uint32_t *order)
{
	om_arena *mem = om_arena_new();
	struct order_key *key = OM_NEWN(mem, struct order_key, p->nitem);
	uint32_t n = 0;

	orders[k].fill(p, mem, key);
	for (uint32_t i = 0; i < p->nitem; i++) {
		const om_buffer *b = &p->buf[p->item[i]];
		if (b->fixed >= 0)
			continue;
		const uint32_t lower = b->live[0].lower, upper = om_last_upper(b);
		key[i].early = orders[k].backwards ? UINT32_MAX - upper : lower;
		key[i].late = orders[k].backwards ? UINT32_MAX - lower : upper;
		key[i].buf = p->item[i];
		key[n++] = key[i];
	}
	qsort(key, n, sizeof *key, compare_key);
	for (uint32_t i = 0; i < n; i++)
		order[i] = key[i].buf;
	om_arena_free(mem);
}
