/* Mending a packing: around the buffer that sticks out most, everything is taken
 * out and put back in another order; the rest stays where it is.
 *
 * A set around it is what lives within a window of time, wider at each attempt.
 * It is put back by size, the culprit first, and what still sticks out moves to
 * the front for the next round.  The best result is kept if the set got lower;
 * otherwise all goes back to its place, and the window grows.  It ends when
 * nothing sticks out, when the highest buffer cannot be lowered, or when the work
 * is spent: each attempt costs some.
 *
 * So a network of a million buffers, of which three stick out, is not packed
 * again for them.
 */
#include <config.h>

#include <stdlib.h>

#include "pack/packer.h"

enum { NARROW = 4, WIDE = 4096, WIDER = 4, ROUNDS = 12 };

struct mend {
	om_greedy *g;
	const om_component *part;
	uint64_t limit;              /* of g->work */
	uint32_t *set, n, *next;
	uint64_t *was, *best;        /* offsets, in the order of `fixed_set` */
	uint32_t *fixed_set;
};

struct key {
	uint64_t major;              /* larger first */
	uint32_t minor, buf;         /* smaller first */
};

static int
by_key(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->major != y->major)
		return x->major > y->major ? -1 : 1;
	if (x->minor != y->minor)
		return x->minor < y->minor ? -1 : 1;
	return x->buf < y->buf ? -1 : x->buf > y->buf;
}

static uint64_t
end_of(const struct mend *m, uint32_t b)
{
	return m->part->buf[b].offset + m->part->buf[b].bytes;
}

static uint64_t
highest_end(const struct mend *m)
{
	uint64_t most = 0;

	for (uint32_t k = 0; k < m->n; k++)
		if (end_of(m, m->set[k]) > most)
			most = end_of(m, m->set[k]);
	return most;
}

/* What lives within the window, and `culprit`, which comes first. */
static void
collect(struct mend *m, uint32_t culprit, uint32_t from, uint32_t to, om_arena *mem)
{
	const om_component *p = m->part;
	const uint32_t step = to < p->npiece ? p->piece[to].lower : UINT32_MAX;
	struct key *key = OM_NEWN(mem, struct key, to - from + 1);
	uint32_t n = 0;

	key[n++] = (struct key){UINT64_MAX, 0, culprit};
	for (uint32_t k = from; k < to; k++) {
		const om_component_part *i = &p->piece[k];
		const om_buffer *b = &p->buf[i->buf];
		if (i->live == 0 && i->buf != culprit && b->fixed < 0 && om_last_upper(b) <= step)
			key[n++] = (struct key){b->bytes, i->lower, i->buf};
	}
	qsort(key, n, sizeof *key, by_key);
	m->set = OM_NEWN(mem, uint32_t, n);
	m->next = OM_NEWN(mem, uint32_t, n);
	m->fixed_set = OM_NEWN(mem, uint32_t, n);
	m->was = OM_NEWN(mem, uint64_t, n);
	m->best = OM_NEWN(mem, uint64_t, n);
	m->n = n;
	for (uint32_t k = 0; k < n; k++)
		m->set[k] = m->fixed_set[k] = key[k].buf;
}

static void
save(const struct mend *m, uint64_t *offset)
{
	for (uint32_t k = 0; k < m->n; k++)
		offset[k] = m->part->buf[m->fixed_set[k]].offset;
}

static void
put_back(struct mend *m, const uint64_t *offset)
{
	for (uint32_t k = 0; k < m->n; k++)
		om_greedy_remove(m->g, m->set[k]);
	for (uint32_t k = 0; k < m->n; k++) {
		m->part->buf[m->fixed_set[k]].offset = offset[k];
		om_greedy_put(m->g, m->fixed_set[k]);
	}
}

static void
place_all(struct mend *m)
{
	for (uint32_t k = 0; k < m->n; k++)
		om_greedy_remove(m->g, m->set[k]);
	for (uint32_t k = 0; k < m->n; k++)
		om_greedy_place(m->g, m->set[k], OM_BEST_FIT);
}

/* What sticks out goes to the front; false when that is all or nothing. */
static bool
promote(struct mend *m)
{
	uint32_t n = 0;

	for (int out = 1; out >= 0; out--) {
		for (uint32_t k = 0; k < m->n; k++)
			if ((end_of(m, m->set[k]) > m->part->goal) == out)
				m->next[n++] = m->set[k];
		if (n == 0 || (out && n == m->n))
			return false;
	}
	uint32_t *t = m->set;
	m->set = m->next;
	m->next = t;
	return true;
}

/* True when the set is lower than it was. */
static bool
shuffle(struct mend *m)
{
	const uint64_t before = highest_end(m);
	uint64_t best = before;

	save(m, m->was);
	for (uint32_t round = 0; round < ROUNDS && best > m->part->goal && m->g->work < m->limit; round++) {
		place_all(m);
		const uint64_t height = highest_end(m);
		if (height < best) {
			best = height;
			save(m, m->best);
		}
		if (!promote(m))
			break;
	}
	put_back(m, best < before ? m->best : m->was);
	return best < before;
}

static bool
lower(struct mend *m, uint32_t culprit)
{
	const om_component *p = m->part;
	const om_buffer *b = &p->buf[culprit];
	const uint32_t first = om_segments_before(p, b->live[0].lower);
	const uint32_t last = om_segments_before(p, om_last_upper(b));
	bool done = false;
	om_arena *mem = om_arena_new();

	for (uint32_t w = NARROW; w <= WIDE && !done && m->g->work < m->limit; w *= WIDER) {
		const uint32_t from = first > w ? first - w : 0;
		const uint32_t to = p->npiece - last > w ? last + w : p->npiece;
		om_arena_clear(mem);
		collect(m, culprit, from, to, mem);
		done = shuffle(m);
		m->g->work += to - from;
		if (from == 0 && to == p->npiece)
			break;
	}
	om_arena_free(mem);
	return done;
}

/* Those that stick out, the highest first. */
static uint32_t
find_culprits(const struct mend *m, struct key *key)
{
	const om_component *p = m->part;
	uint32_t n = 0;

	for (uint32_t k = 0; k < p->nitem; k++) {
		const uint32_t b = p->item[k];
		if (p->buf[b].fixed < 0 && end_of(m, b) > p->goal)
			key[n++] = (struct key){end_of(m, b), p->buf[b].live[0].lower, b};
	}
	qsort(key, n, sizeof *key, by_key);
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
om_large_neighbourhood(om_greedy *g, uint64_t work)
{
	struct mend m = {.g = g, .part = g->part, .limit = g->work + work};
	om_arena *mem = om_arena_new();
	struct key *key = OM_NEWN(mem, struct key, m.part->nitem);
	bool goes_on = true;

	om_greedy_load(g);
	while (goes_on) {
		const uint32_t n = find_culprits(&m, key);
		goes_on = n > 0;
		for (uint32_t k = 0; k < n && goes_on; k++)
			if (end_of(&m, key[k].buf) > m.part->goal)
				goes_on = g->work < m.limit && lower(&m, key[k].buf);
	}
	om_arena_free(mem);
	return height_of(m.part);
}
