/* SPDX-License-Identifier: Apache-2.0 */
/* Do buffers at given offsets share a byte at some step?  For the packer's validation of its input; the
 * checker of packings answers the question for results, by other means (check.c).
 *
 * A sweep over time.  The offsets at which intervals start are numbered in ascending order; as long as no
 * overlap was found, at most one live interval starts at each of them, and its neighbours are the nearest
 * live starts below and above.  Those are found in a bit set in levels of 64, in O(log n). */
#include <config.h>

#include <stdlib.h>

#include "base/arena_internal.h"
#include "pack/overlap.h"

#define NOTHING UINT32_MAX
enum { MOST_LEVELS = 6 };

/* ---- Sets of numbers below 2^32. ---- */

struct levels {
	uint64_t *word[MOST_LEVELS];   /* a bit of level k + 1 for each word of level k that is not 0 */
	uint32_t nword[MOST_LEVELS];
	int n;
};

static void
levels_new(struct levels *s, om_arena *mem, uint32_t n)
{
	*s = (struct levels){0};
	do {
		n = n / 64 + 1;
		s->nword[s->n] = n;
		s->word[s->n++] = OM_NEWN(mem, uint64_t, n);
	} while (n > 1);
}

static void
insert(struct levels *s, uint32_t at)
{
	for (int k = 0; k < s->n; k++, at /= 64)
		s->word[k][at / 64] |= UINT64_C(1) << at % 64;
}

static void
erase(struct levels *s, uint32_t at)
{
	for (int k = 0; k < s->n; k++, at /= 64)
		if (s->word[k][at / 64] &= ~(UINT64_C(1) << at % 64))
			return;
}

/* The least member that is at least `at`. */
static uint32_t
next(const struct levels *s, uint32_t at)
{
	int k = 0;
	uint64_t w = 0;

	for (; k < s->n; k++, at = at / 64 + 1) {
		if (at / 64 >= s->nword[k])
			return NOTHING;
		w = s->word[k][at / 64] >> at % 64;
		if (w)
			break;
	}
	if (!w)
		return NOTHING;
	at += (uint32_t)__builtin_ctzll(w);
	while (k-- > 0)
		at = 64 * at + (uint32_t)__builtin_ctzll(s->word[k][at]);
	return at;
}

/* The greatest member below `at`. */
static uint32_t
previous(const struct levels *s, uint32_t at)
{
	int k = 0;
	uint64_t w = 0;

	for (; k < s->n; k++, at /= 64) {
		w = s->word[k][at / 64] & ((UINT64_C(1) << at % 64) - 1);
		if (w)
			break;
	}
	if (!w)
		return NOTHING;
	at = at / 64 * 64 + 63 - (uint32_t)__builtin_clzll(w);
	while (k-- > 0)
		at = 64 * at + 63 - (uint32_t)__builtin_clzll(s->word[k][at]);
	return at;
}

/* ---- The sweep. ---- */

struct range {
	uint64_t from, to;
	uint32_t lower, upper;
	uint32_t buf;
	uint32_t start;           /* the number of `from` */
};

struct change {
	uint32_t step, range;
	bool is_birth;
};

static int
by_step(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->is_birth != y->is_birth)
		return x->is_birth - y->is_birth;
	return (x->range > y->range) - (x->range < y->range);
}

static int
by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static uint32_t
list_ranges(const om_buffer *buf, uint32_t n, struct range *r)
{
	uint32_t m = 0;

	for (uint32_t k = 0; k < n; k++) {
		const uint64_t at = buf[k].fixed > 0 ? (uint64_t)buf[k].fixed : 0;
		for (uint32_t j = 0; j < buf[k].nlive && buf[k].bytes; j++) {
			const om_interval *i = &buf[k].live[j];
			r[m++] = (struct range){at + i->from, at + (i->to ? i->to : buf[k].bytes), i->lower, i->upper, k, 0};
		}
	}
	return m;
}

static void
number_starts(struct range *r, uint32_t n, om_arena *mem)
{
	uint64_t *start = OM_NEWN(mem, uint64_t, n);
	uint32_t m = 0;

	for (uint32_t k = 0; k < n; k++)
		start[k] = r[k].from;
	qsort(start, n, sizeof *start, by_number);
	for (uint32_t k = 0; k < n; k++)
		if (k == 0 || start[k] != start[m - 1])
			start[m++] = start[k];
	for (uint32_t k = 0; k < n; k++)
		r[k].start = (uint32_t)((uint64_t *)bsearch(&r[k].from, start, m, sizeof *start, by_number) - start);
}

static bool
sweep(const struct range *r, uint32_t n, om_arena *mem, om_overlap *found)
{
	struct change *c = OM_NEWN(mem, struct change, 2 * (size_t)n);
	uint32_t *at = OM_NEWN(mem, uint32_t, n);  /* by start: the live range */
	struct levels live;

	levels_new(&live, mem, n);
	for (uint32_t k = 0; k < n; k++) {
		c[2 * (size_t)k] = (struct change){r[k].lower, k, true};
		c[2 * (size_t)k + 1] = (struct change){r[k].upper, k, false};
	}
	qsort(c, 2 * (size_t)n, sizeof *c, by_step);
	for (size_t k = 0; k < 2 * (size_t)n; k++) {
		const struct range *x = &r[c[k].range];
		if (!c[k].is_birth) {
			erase(&live, x->start);
			continue;
		}
		const uint32_t below = previous(&live, x->start), above = next(&live, x->start);
		const struct range *low = below == NOTHING ? NULL : &r[at[below]];
		const struct range *high = above == NOTHING ? NULL : &r[at[above]];
		const struct range *other = low && low->to > x->from ? low : high && high->from < x->to ? high : NULL;
		if (other) {
			*found = (om_overlap){other->buf, x->buf, c[k].step};
			return true;
		}
		insert(&live, x->start);
		at[x->start] = c[k].range;
	}
	return false;
}

bool
om_overlap_find(const om_buffer *buf, uint32_t n, om_overlap *found)
{
	om_arena *mem = om_arena_new();
	size_t m = 0;

	for (uint32_t k = 0; k < n; k++)
		m += buf[k].bytes ? buf[k].nlive : 0;
	struct range *r = OM_NEWN(mem, struct range, m);
	const uint32_t nrange = list_ranges(buf, n, r);
	if (nrange)
		number_starts(r, nrange, mem);
	const bool any = nrange && sweep(r, nrange, mem, found);
	om_arena_free(mem);
	return any;
}
