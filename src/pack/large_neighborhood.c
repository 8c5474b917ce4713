/* SPDX-License-Identifier: Apache-2.0 */
/* Large neighborhood search: the buffers around the one with the highest end are
 * removed and placed again in another order; all others keep their offsets.
 *
 * The neighborhood is the set of buffers that live within a window of time, wider
 * at each attempt.  They are placed by size, the highest buffer first, and those
 * that still exceed the goal move to the front for the next iteration.  The best
 * result is kept if the set got lower; otherwise all offsets are restored, and the
 * window grows.  It terminates when no buffer exceeds the goal, when the highest
 * buffer cannot be lowered, or when the work is used up: each attempt costs some.
 *
 * So a network of a million buffers, of which three exceed the goal, is not packed
 * again for them.
 */
#include <config.h>

#include <stdlib.h>

#include "pack/packer.h"
#include "base/arena_internal.h"

enum { MIN_WINDOW = 4, MAX_WINDOW = 4096, WINDOW_GROWTH = 4, LNS_MAX_ITERATIONS = 12 };

struct lns {
	om_greedy *g;
	const om_component *component;
	uint64_t limit;              /* of g->work */
	uint32_t *set, n, *next;
	uint64_t *old, *best;        /* offsets, in the order of `fixed_set` */
	uint32_t *fixed_set;
};

struct lns_key {
	uint64_t major;              /* larger first */
	uint32_t minor, buf;         /* smaller first */
};

static int
compare_key(const void *a, const void *b)
{
	const struct lns_key *x = a, *y = b;

	if (x->major != y->major)
		return x->major > y->major ? -1 : 1;
	if (x->minor != y->minor)
		return x->minor < y->minor ? -1 : 1;
	return x->buf < y->buf ? -1 : x->buf > y->buf;
}

static uint64_t
end_of(const struct lns *m, uint32_t b)
{
	return m->component->buf[b].offset + m->component->buf[b].bytes;
}

static uint64_t
highest_end(const struct lns *m)
{
	uint64_t height = 0;

	for (uint32_t k = 0; k < m->n; k++)
		if (end_of(m, m->set[k]) > height)
			height = end_of(m, m->set[k]);
	return height;
}

/* The buffers that live within the window, and `highest`, which comes first. */
static void
collect_window(struct lns *m, uint32_t highest, uint32_t from, uint32_t to, om_arena *mem)
{
	const om_component *p = m->component;
	const uint32_t step = to < p->nlifetime ? p->lifetime[to].lower : UINT32_MAX;
	struct lns_key *key = OM_NEWN(mem, struct lns_key, to - from + 1);
	uint32_t n = 0;

	key[n++] = (struct lns_key){UINT64_MAX, 0, highest};
	for (uint32_t k = from; k < to; k++) {
		const om_lifetime *i = &p->lifetime[k];
		const om_buffer *b = &p->buf[i->buf];
		if (i->live == 0 && i->buf != highest && b->fixed < 0 && om_last_upper(b) <= step)
			key[n++] = (struct lns_key){b->bytes, i->lower, i->buf};
	}
	qsort(key, n, sizeof *key, compare_key);
	m->set = OM_NEWN(mem, uint32_t, n);
	m->next = OM_NEWN(mem, uint32_t, n);
	m->fixed_set = OM_NEWN(mem, uint32_t, n);
	m->old = OM_NEWN(mem, uint64_t, n);
	m->best = OM_NEWN(mem, uint64_t, n);
	m->n = n;
	for (uint32_t k = 0; k < n; k++)
		m->set[k] = m->fixed_set[k] = key[k].buf;
}

static void
save_offsets(const struct lns *m, uint64_t *offset)
{
	for (uint32_t k = 0; k < m->n; k++)
		offset[k] = m->component->buf[m->fixed_set[k]].offset;
}

static void
restore_offsets(struct lns *m, const uint64_t *offset)
{
	for (uint32_t k = 0; k < m->n; k++)
		om_greedy_remove(m->g, m->set[k]);
	for (uint32_t k = 0; k < m->n; k++) {
		m->component->buf[m->fixed_set[k]].offset = offset[k];
		om_greedy_insert(m->g, m->fixed_set[k]);
	}
}

static void
place_all(struct lns *m)
{
	for (uint32_t k = 0; k < m->n; k++)
		om_greedy_remove(m->g, m->set[k]);
	for (uint32_t k = 0; k < m->n; k++)
		om_greedy_place(m->g, m->set[k], OM_BEST_FIT);
}

/* Buffers above the goal move to the front; false if there are none or no others. */
static bool
promote_high(struct lns *m)
{
	uint32_t n = 0;

	for (int out = 1; out >= 0; out--) {
		for (uint32_t k = 0; k < m->n; k++)
			if ((end_of(m, m->set[k]) > m->component->goal) == out)
				m->next[n++] = m->set[k];
		if (n == 0 || (out && n == m->n))
			return false;
	}
	uint32_t *t = m->set;
	m->set = m->next;
	m->next = t;
	return true;
}

/* True if the set got lower. */
static bool
repack_window(struct lns *m)
{
	const uint64_t before = highest_end(m);
	uint64_t best = before;

	save_offsets(m, m->old);
	for (uint32_t iteration = 0; iteration < LNS_MAX_ITERATIONS && best > m->component->goal
		&& m->g->work < m->limit; iteration++) {
		place_all(m);
		const uint64_t height = highest_end(m);
		if (height < best) {
			best = height;
			save_offsets(m, m->best);
		}
		if (!promote_high(m))
			break;
	}
	restore_offsets(m, best < before ? m->best : m->old);
	return best < before;
}

static bool
lower_highest(struct lns *m, uint32_t highest)
{
	const om_component *p = m->component;
	const om_buffer *b = &p->buf[highest];
	const uint32_t first = om_lifetimes_before(p, b->live[0].lower);
	const uint32_t last = om_lifetimes_before(p, om_last_upper(b));
	bool done = false;
	om_arena *mem = om_arena_new();

	for (uint32_t w = MIN_WINDOW; w <= MAX_WINDOW && !done && m->g->work < m->limit; w *= WINDOW_GROWTH) {
		const uint32_t from = first > w ? first - w : 0;
		const uint32_t to = p->nlifetime - last > w ? last + w : p->nlifetime;
		om_arena_clear(mem);
		collect_window(m, highest, from, to, mem);
		done = repack_window(m);
		m->g->work += to - from;
		if (from == 0 && to == p->nlifetime)
			break;
	}
	om_arena_free(mem);
	return done;
}

/* The buffers above the goal, the highest end first. */
static uint32_t
collect_high(const struct lns *m, struct lns_key *key)
{
	const om_component *p = m->component;
	uint32_t n = 0;

	for (uint32_t k = 0; k < p->nitem; k++) {
		const uint32_t b = p->item[k];
		if (p->buf[b].fixed < 0 && end_of(m, b) > p->goal)
			key[n++] = (struct lns_key){end_of(m, b), p->buf[b].live[0].lower, b};
	}
	qsort(key, n, sizeof *key, compare_key);
	return n;
}

static uint64_t
height_of(const om_component *p)
{
	uint64_t height = 0;

	for (uint32_t k = 0; k < p->nitem; k++) {
		const om_buffer *b = &p->buf[p->item[k]];
		if (b->offset + b->bytes > height)
			height = b->offset + b->bytes;
	}
	return height;
}

uint64_t
om_large_neighborhood(om_greedy *g, uint64_t work)
{
	struct lns m = {.g = g, .component = g->component, .limit = g->work + work};
	om_arena *mem = om_arena_new();
	struct lns_key *key = OM_NEWN(mem, struct lns_key, m.component->nitem);
	bool continues = true;

	om_greedy_load(g);
	while (continues) {
		const uint32_t n = collect_high(&m, key);
		continues = n > 0;
		for (uint32_t k = 0; k < n && continues; k++)
			if (end_of(&m, key[k].buf) > m.component->goal)
				continues = g->work < m.limit && lower_highest(&m, key[k].buf);
	}
	om_arena_free(mem);
	return height_of(m.component);
}
