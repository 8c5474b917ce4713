/* Orders in which to place buffers.
 *
 * Each looks at one property, largest first.  Ties are decided on purpose, by
 * time and then by place in the problem, in both directions: which buffer of
 * many equal ones goes first is often what decides.
 */
#include <config.h>

#include <stdlib.h>

#include "pack/packer.h"
#include "pack/sort_keys.h"

struct key {
	uint64_t major, minor;   /* larger first */
	uint32_t early, late;    /* smaller first */
	uint32_t buf;
};

static int
by_key(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

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
lifetime(const om_buffer *b)
{
	uint64_t steps = 0;
	uint32_t reach = 0;

	for (uint32_t k = 0; k < b->nlive; k++) {
		const uint32_t from = b->live[k].lower > reach ? b->live[k].lower : reach;
		if (b->live[k].upper <= from)
			continue;
		steps += b->live[k].upper - from;
		reach = b->live[k].upper;
	}
	return steps;
}

static uint64_t
area(const om_buffer *b)
{
	uint64_t sum = 0, product;

	for (uint32_t k = 0; k < b->nlive; k++) {
		const om_interval *live = &b->live[k];
		if (__builtin_mul_overflow(om_live_to(b, live) - live->from, live->upper - live->lower, &product)
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

/* ---- Neighbours of each buffer in time. ---- */

static void
conflicts(const om_component *p, om_arena *mem, struct key *key)
{
	uint32_t *lower = OM_NEWN(mem, uint32_t, p->npiece);
	uint32_t *upper = OM_NEWN(mem, uint32_t, p->npiece);

	for (uint32_t k = 0; k < p->npiece; k++) {
		lower[k] = p->piece[k].lower;
		upper[k] = p->piece[k].upper;
	}
	qsort(upper, p->npiece, sizeof *upper, om_by_number);
	for (uint32_t k = 0; k < p->nitem; k++) {
		const om_buffer *b = &p->buf[p->item[k]];
		key[k].minor = b->bytes;
		for (uint32_t j = 0; j < b->nlive; j++)
			key[k].major += count_below(lower, p->npiece, b->live[j].upper)
				- count_below(upper, p->npiece, (uint64_t)b->live[j].lower + 1);
	}
}

/* ---- Bytes alive at the busiest step of each buffer. ---- */

struct load {
	uint32_t *at;      /* steps at which the load changes, sorted */
	uint32_t n, leaves;
	uint64_t *most;    /* tree over the stretches between them */
};

static void
load_init(struct load *l, const om_component *p, om_arena *mem)
{
	uint32_t n = 0;

	l->at = OM_NEWN(mem, uint32_t, 2 * (size_t)p->npiece);
	for (uint32_t k = 0; k < p->npiece; k++) {
		l->at[n++] = p->piece[k].lower;
		l->at[n++] = p->piece[k].upper;
	}
	qsort(l->at, n, sizeof *l->at, om_by_number);
	for (uint32_t k = 0; k < n; k++)
		if (l->n == 0 || l->at[l->n - 1] != l->at[k])
			l->at[l->n++] = l->at[k];
	l->leaves = 1;
	while (l->leaves < l->n)
		l->leaves *= 2;
	l->most = OM_NEWN(mem, uint64_t, 2 * (size_t)l->leaves);
	uint64_t *load = l->most + l->leaves;
	for (uint32_t k = 0; k < p->npiece; k++) {
		const om_buffer *b = &p->buf[p->piece[k].buf];
		const om_interval *live = &b->live[p->piece[k].live];
		const uint64_t bytes = om_live_to(b, live) - live->from;
		load[count_below(l->at, l->n, p->piece[k].lower)] += bytes;
		load[count_below(l->at, l->n, p->piece[k].upper)] -= bytes;
	}
	for (uint32_t k = 1; k < l->n; k++)
		load[k] += load[k - 1];
	for (uint32_t k = l->leaves; k-- > 1;)
		l->most[k] = l->most[2 * k] > l->most[2 * k + 1] ? l->most[2 * k] : l->most[2 * k + 1];
}

static uint64_t
most_between(const struct load *l, uint32_t lower, uint32_t upper)
{
	uint32_t from = count_below(l->at, l->n, lower) + l->leaves;
	uint32_t to = count_below(l->at, l->n, upper) + l->leaves;
	uint64_t most = 0;

	for (; from < to; from /= 2, to /= 2) {
		if (from & 1 && l->most[from++] > most)
			most = l->most[from - 1];
		if (to & 1 && l->most[--to] > most)
			most = l->most[to];
	}
	return most;
}

static void
breadths(const om_component *p, om_arena *mem, struct key *key)
{
	struct load l = {0};

	load_init(&l, p, mem);
	for (uint32_t k = 0; k < p->nitem; k++) {
		const om_buffer *b = &p->buf[p->item[k]];
		key[k].minor = b->bytes;
		for (uint32_t j = 0; j < b->nlive; j++) {
			const uint64_t most = most_between(&l, b->live[j].lower, b->live[j].upper);
			if (most > key[k].major)
				key[k].major = most;
		}
	}
}

/* ---- The list. ---- */

static void
sizes(const om_component *p, om_arena *mem, struct key *key)
{
	(void)mem;
	for (uint32_t k = 0; k < p->nitem; k++) {
		key[k].major = p->buf[p->item[k]].bytes;
		key[k].minor = lifetime(&p->buf[p->item[k]]);
	}
}

static void
areas(const om_component *p, om_arena *mem, struct key *key)
{
	(void)mem;
	for (uint32_t k = 0; k < p->nitem; k++)
		key[k].major = area(&p->buf[p->item[k]]);
}

static void
lifetimes(const om_component *p, om_arena *mem, struct key *key)
{
	(void)mem;
	for (uint32_t k = 0; k < p->nitem; k++) {
		key[k].major = lifetime(&p->buf[p->item[k]]);
		key[k].minor = p->buf[p->item[k]].bytes;
	}
}

static void
as_they_come(const om_component *p, om_arena *mem, struct key *key)
{
	(void)p, (void)mem, (void)key;
}

#define ORDER(name, fill, backwards)                                           \
	{{{name, name ", repaired", name ", mended"},                                 \
	  {"skyline by " name, "skyline by " name ", repaired", "skyline by " name ", mended"}}, fill, backwards}

static const struct {
	const char *name[2][3];    /* with a skyline?  which care? */
	void (*fill)(const om_component *p, om_arena *mem, struct key *key);
	bool backwards;
} orders[OM_NORDER] = {
	ORDER("area", areas, false),
	ORDER("size", sizes, false),
	ORDER("breadth", breadths, false),
	ORDER("size backwards", sizes, true),
	ORDER("breadth backwards", breadths, true),
	ORDER("lifetime", lifetimes, false),
	ORDER("area backwards", areas, true),
	ORDER("lifetime backwards", lifetimes, true),
	ORDER("conflicts", conflicts, false),
	ORDER("conflicts backwards", conflicts, true),
	ORDER("program order", as_they_come, false),
	ORDER("program order backwards", as_they_come, true),
};

const char *
om_order_name(uint32_t k, bool skyline, om_care care)
{
	return orders[k].name[skyline][care];
}

void
om_order_fill(const om_component *p, uint32_t k, uint32_t *order)
{
	om_arena *mem = om_arena_new();
	struct key *key = OM_NEWN(mem, struct key, p->nitem);
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
	qsort(key, n, sizeof *key, by_key);
	for (uint32_t i = 0; i < n; i++)
		order[i] = key[i].buf;
	om_arena_free(mem);
}
