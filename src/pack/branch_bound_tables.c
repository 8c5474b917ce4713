/* The part that is searched, in tables: sections, neighbours, twins, and the
 * orders in which buffers of equal right are tried.
 */
#include <config.h>

#include <stdlib.h>

#include "pack/sort_keys.h"
#include "pack/search.h"

enum {
	MOST_THINGS = 4 * 1024,        /* a level of recursion each */
	MOST_NEAR = 4 * 1024 * 1024,
};

/* ---- Sections: where a birth is followed by a death. ---- */

struct death {
	uint32_t upper, piece;
};

static int
by_upper(const void *a, const void *b)
{
	const struct death *x = a, *y = b;

	if (x->upper != y->upper)
		return x->upper < y->upper ? -1 : 1;
	return x->piece < y->piece ? -1 : x->piece > y->piece;
}

/* Sections [first, last] of each piece; gives how many sections there are. */
static uint32_t
find_sections(const om_component *p, om_arena *mem, om_offset_reach *reach)
{
	struct death *death = OM_NEWN(mem, struct death, p->npiece);
	uint32_t n = 0, born = 0;
	bool has_grown = false;

	for (uint32_t k = 0; k < p->npiece; k++)
		death[k] = (struct death){p->piece[k].upper, k};
	qsort(death, p->npiece, sizeof *death, by_upper);
	for (uint32_t k = 0; k < p->npiece; k++) {
		for (; born < p->npiece && p->piece[born].lower < death[k].upper; born++) {
			reach[born].first = n;
			has_grown = true;
		}
		n += has_grown;
		has_grown = false;
		reach[death[k].piece].last = n - 1;
	}
	return n;
}

/* Neighbouring ranges of one thing become one. */
static void
add_reach(om_thing *t, om_offset_reach *reach, om_offset_reach new)
{
	if (t->nreach && reach[t->nreach - 1].last + 1 == new.first)
		reach[t->nreach - 1].last = new.last;
	else
		reach[t->nreach++] = new;
}

static void
fill_reaches(om_tables *t, const om_component *p, const uint32_t *number, om_arena *mem)
{
	om_offset_reach *of_piece = OM_NEWN(mem, om_offset_reach, p->npiece);
	om_offset_reach **room = OM_NEWN(mem, om_offset_reach *, t->n);

	t->nsection = find_sections(p, mem, of_piece);
	for (uint32_t k = 0; k < t->n; k++) {
		room[k] = OM_NEWN(mem, om_offset_reach, p->buf[p->item[k]].nlive);
		t->thing[k].reach = room[k];
	}
	for (uint32_t k = 0; k < p->npiece; k++) {
		const uint32_t i = number[k];
		add_reach(&t->thing[i], room[i], of_piece[k]);
	}
}

/* ---- Neighbours. ---- */

struct sweep {
	const om_component *part;
	const uint32_t *number;
	uint32_t *alive, nalive;   /* pieces */
	uint32_t *near;            /* pairs of things */
	size_t nnear, cap;
};

static void
bury(struct sweep *s, uint32_t step)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < s->nalive; k++)
		if (s->part->piece[s->alive[k]].upper > step)
			s->alive[n++] = s->alive[k];
	s->nalive = n;
}

/* How many pairs of pieces meet; stops counting above MOST_NEAR. */
static size_t
count_meetings(struct sweep *s)
{
	size_t n = 0;

	s->nalive = 0;
	for (uint32_t k = 0; k < s->part->npiece && n <= MOST_NEAR; k++) {
		bury(s, s->part->piece[k].lower);
		n += s->nalive;
		s->alive[s->nalive++] = k;
	}
	return n;
}

static void
list_meetings(struct sweep *s, uint32_t (*pair)[2])
{
	size_t n = 0;

	s->nalive = 0;
	for (uint32_t k = 0; k < s->part->npiece; k++) {
		bury(s, s->part->piece[k].lower);
		for (uint32_t i = 0; i < s->nalive; i++, n++) {
			pair[n][0] = s->number[k];
			pair[n][1] = s->number[s->alive[i]];
		}
		s->alive[s->nalive++] = k;
	}
}

/* Things of several lifetimes may have met more than once. */
static void
drop_repeats(om_thing *t, uint32_t *near)
{
	uint32_t n = 0;

	qsort(near, t->nnear, sizeof *near, om_by_number);
	for (uint32_t k = 0; k < t->nnear; k++)
		if (k == 0 || near[k] != near[k - 1])
			near[n++] = near[k];
	t->nnear = n;
	t->near = near;
}

static bool
fill_neighbours(om_tables *t, const om_component *p, const uint32_t *number, om_arena *mem)
{
	struct sweep s = {.part = p, .number = number};
	om_arena *pairs = om_arena_new();

	s.alive = OM_NEWN(pairs, uint32_t, p->npiece);
	const size_t n = count_meetings(&s);
	if (n <= MOST_NEAR) {
		uint32_t (*pair)[2] = om_allocn(pairs, sizeof *pair, n);
		uint32_t **near = OM_NEWN(pairs, uint32_t *, t->n);
		list_meetings(&s, pair);
		for (size_t k = 0; k < 2 * n; k++)
			t->thing[pair[k / 2][k % 2]].nnear++;
		for (uint32_t k = 0; k < t->n; k++) {
			near[k] = OM_NEWN(mem, uint32_t, t->thing[k].nnear);
			t->thing[k].nnear = 0;
		}
		for (size_t k = 0; k < 2 * n; k++) {
			const uint32_t i = pair[k / 2][k % 2];
			near[i][t->thing[i].nnear++] = pair[k / 2][1 - k % 2];
		}
		for (uint32_t k = 0; k < t->n; k++)
			drop_repeats(&t->thing[k], near[k]);
	}
	om_arena_free(pairs);
	return n <= MOST_NEAR;
}

/* ---- Twins: alike in all, so the order among them is free to choose. ---- */

struct look {
	const om_thing *thing;
	uint32_t number;
};

static int
by_likeness(const struct look *x, const struct look *y)
{
	const om_thing *a = x->thing, *b = y->thing;

	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	if (a->raw != b->raw)
		return a->raw < b->raw ? -1 : 1;
	if (a->align != b->align)
		return a->align < b->align ? -1 : 1;
	if (a->nreach != b->nreach)
		return a->nreach < b->nreach ? -1 : 1;
	return memcmp(a->reach, b->reach, a->nreach * sizeof *a->reach);
}

static int
by_look(const void *a, const void *b)
{
	const struct look *x = a, *y = b;
	const int diff = by_likeness(x, y);

	return diff ? diff : x->number < y->number ? -1 : x->number > y->number;
}

static void
find_twins(om_tables *t, om_arena *mem)
{
	struct look *look = OM_NEWN(mem, struct look, t->n);
	uint32_t n = 0;

	for (uint32_t k = 0; k < t->n; k++) {
		t->thing[k].twin = OM_NO_THING;
		if (!t->thing[k].is_fixed)
			look[n++] = (struct look){&t->thing[k], k};
	}
	qsort(look, n, sizeof *look, by_look);
	for (uint32_t k = 1; k < n; k++)
		if (by_likeness(&look[k - 1], &look[k]) == 0)
			t->thing[look[k].number].twin = look[k - 1].number;
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
fill_sizes(om_tables *t, const om_component *p)
{
	uint64_t align = UINT64_MAX;

	for (uint32_t k = 0; k < t->n; k++) {
		const om_buffer *b = &p->buf[p->item[k]];
		om_thing *x = &t->thing[k];
		x->raw = b->bytes;
		x->align = b->align > 1 ? b->align : 1;
		x->is_fixed = b->fixed >= 0;
		x->fixed = x->is_fixed ? (uint64_t)b->fixed : 0;
		for (uint32_t i = 0; i < b->nlive; i++)
			x->steps += b->live[i].upper - b->live[i].lower;
		x->seed = (k + 1) * UINT64_C(0x9e3779b97f4a7c15);
		t->has_fixed |= x->is_fixed;
		t->unit = common_divisor(t->unit, b->bytes);
		if (x->align > 1)
			t->unit = common_divisor(t->unit, x->align);
		if (x->is_fixed && b->fixed)
			t->unit = common_divisor(t->unit, (uint64_t)b->fixed);
		if (x->align < align)
			align = x->align;
	}
	if (t->has_fixed)   /* these may lie anywhere */
		align = 1;
	for (uint32_t k = 0; k < t->n; k++)
		t->thing[k].bytes = (t->thing[k].raw + align - 1) & ~(align - 1);
}

static void
fill_spare(om_tables *t, om_arena *mem)
{
	t->spare = OM_NEWN(mem, uint64_t, t->nsection);
	for (uint32_t k = 0; k < t->n; k++) {
		const om_thing *x = &t->thing[k];
		for (uint32_t i = 0; i < x->nreach; i++)
			for (uint32_t s = x->reach[i].first; s <= x->reach[i].last; s++)
				if (x->bytes - x->raw > t->spare[s])
					t->spare[s] = x->bytes - x->raw;
	}
}

struct name {
	uint32_t buf, number;
};

static int
by_buffer(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return x->buf < y->buf ? -1 : x->buf > y->buf;
}

/* By piece, the number of its thing. */
static uint32_t *
number_pieces(const om_component *p, om_arena *mem)
{
	struct name *name = OM_NEWN(mem, struct name, p->nitem);
	uint32_t *number = OM_NEWN(mem, uint32_t, p->npiece);

	for (uint32_t k = 0; k < p->nitem; k++)
		name[k] = (struct name){p->item[k], k};
	qsort(name, p->nitem, sizeof *name, by_buffer);
	for (uint32_t k = 0; k < p->npiece; k++) {
		const struct name key = {.buf = p->piece[k].buf};
		number[k] = ((struct name *)bsearch(&key, name, p->nitem, sizeof *name, by_buffer))->number;
	}
	return number;
}

bool
om_tables_fill(om_tables *t, const om_component *part, om_arena *mem)
{
	if (part->nitem > MOST_THINGS)
		return false;
	for (uint32_t k = 0; k < part->nitem; k++)
		if (om_is_shaped(&part->buf[part->item[k]]))
			return false;
	*t = (om_tables){.n = part->nitem, .thing = OM_NEWN(mem, om_thing, part->nitem)};
	const uint32_t *number = number_pieces(part, mem);
	if (!fill_neighbours(t, part, number, mem))
		return false;
	fill_reaches(t, part, number, mem);
	fill_sizes(t, part);
	fill_spare(t, mem);
	find_twins(t, mem);
	return true;
}

/* ---- Wishes. ---- */

struct wish {
	double key[3];             /* the larger, the sooner */
	uint32_t number;
};

static int
by_wish(const void *a, const void *b)
{
	const struct wish *x = a, *y = b;

	for (int k = 0; k < 3; k++)
		if (x->key[k] != y->key[k])
			return x->key[k] > y->key[k] ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static double
measure(const om_tables *t, const om_thing *x, char what)
{
	double sum = 0;

	switch (what) {
	case 'W':        /* how long it is alive */
		return (double)x->steps;
	case 'A':        /* the same, times bytes */
		return (double)x->steps * (double)x->bytes;
	case 'T':        /* bytes that it is in conflict with */
		for (uint32_t k = 0; k < x->nnear; k++)
			sum += (double)t->thing[x->near[k]].bytes;
		return sum;
	case 'C':
		return x->nnear;
	case 'U':
		return x->reach[x->nreach - 1].last;
	case 'L':
		return -(double)x->reach[0].first;
	default:
		return (double)x->bytes;
	}
}

void
om_tables_wish(om_tables *t, uint32_t k, uint64_t noise, om_arena *mem)
{
	static const char *const orders[OM_NWISH] = {"WAT", "TAW", "ZAT", "UAT", "ATW", "LAT"};
	struct wish *wish = OM_NEWN(mem, struct wish, t->n);

	for (uint32_t i = 0; i < t->n; i++) {
		for (int j = 0; j < 3; j++)
			wish[i].key[j] = measure(t, &t->thing[i], orders[k % OM_NWISH][j]);
		if (noise) {
			noise = noise * UINT64_C(6364136223846793005) + 1442695040888963407u;
			wish[i].key[0] *= 0.7 + (double)(noise >> 40) / (1 << 24) * 0.6;
		}
		wish[i].number = i;
	}
	qsort(wish, t->n, sizeof *wish, by_wish);
	for (uint32_t i = 0; i < t->n; i++)
		t->thing[wish[i].number].wish = i;
}
