/* SPDX-License-Identifier: Apache-2.0 */
/* The complete search, compared with all offsets, and with itself. */
#include <config.h>

#include <stdlib.h>

#include "base/rng.h"
#include "pack/packer.h"
#include "unit.h"

enum { MAX = 60, PIECES = 3 };

static const om_search_limits some = {.nodes = 20000}, many = {.nodes = 100 * 1000 * 1000};

struct problem {
	om_buffer buf[MAX];
	om_interval live[MAX][PIECES];
	om_lifetime lifetime[MAX * PIECES];
	uint32_t item[MAX];
	om_component component;
};

static unsigned
below(uint64_t *state, unsigned n)
{
	return (unsigned)om_rng_below(state, n);
}

static int
by_lower(const void *a, const void *b)
{
	const om_lifetime *x = a, *y = b;

	if (x->lower != y->lower)
		return x->lower < y->lower ? -1 : 1;
	return x->buf < y->buf ? -1 : x->buf > y->buf;
}

static void
finish(struct problem *p, uint32_t n)
{
	om_component *component = &p->component;

	*component = (om_component){.buf = p->buf, .lifetime = p->lifetime, .item = p->item, .nitem = n};
	for (uint32_t k = 0; k < n; k++) {
		p->item[k] = k;
		for (uint32_t i = 0; i < p->buf[k].nlive; i++)
			p->lifetime[component->nlifetime++] = (om_lifetime){p->live[k][i].lower, p->live[k][i].upper, k, i};
	}
	qsort(p->lifetime, component->nlifetime, sizeof *p->lifetime, by_lower);
}

/* The features of a random problem. */
enum { ALIGNS = 1, GAPS = 2, FIXED = 4 };

static void
randomize(struct problem *p, uint64_t seed, uint32_t n, unsigned steps, unsigned bytes, int what)
{
	static const uint64_t aligns[] = {1, 2, 4};
	uint64_t at = 0;
	const uint64_t common = aligns[below(&seed, 3)];
	const bool is_common = below(&seed, 2);

	for (uint32_t k = 0; k < n; k++) {
		om_interval *live = p->live[k];
		om_buffer *b = &p->buf[k];
		memset(live, 0, sizeof p->live[k]);
		live[0].lower = below(&seed, steps);
		live[0].upper = live[0].lower + 1 + below(&seed, 1 + steps / 2);
		*b = (om_buffer){.bytes = 1 + below(&seed, bytes), .live = live, .nlive = 1, .fixed = OM_OFFSET_FREE};
		if (what & ALIGNS)
			b->align = is_common ? common : aligns[below(&seed, 3)];
		for (int i = 1; what & GAPS && i < PIECES && below(&seed, 4) == 0; i++) {
			live[i].lower = live[i - 1].upper + below(&seed, 3);
			live[i].upper = live[i].lower + 1 + below(&seed, 3);
			b->nlive++;
		}
		if (what & FIXED && below(&seed, 4) == 0) {
			at = (at + below(&seed, 4) + 3) & ~UINT64_C(3);
			b->fixed = (int64_t)at;
			at += b->bytes;
		}
	}
	finish(p, n);
}

/* ---- Brute force: all offsets. ---- */

static bool
is_free(const struct problem *p, const uint64_t *offset, uint32_t k)
{
	const om_buffer *b = &p->buf[k];

	if ((b->fixed >= 0 && offset[k] != (uint64_t)b->fixed) || (b->align && offset[k] % b->align))
		return false;
	for (uint32_t i = 0; i < k; i++)
		if (offset[i] < offset[k] + b->bytes && offset[k] < offset[i] + p->buf[i].bytes
		    && unit_meet(&p->buf[i], b))
			return false;
	return true;
}

static bool
can_be(const struct problem *p, uint64_t height, uint64_t *offset, uint32_t k)
{
	if (k == p->component.nitem)
		return true;
	for (offset[k] = 0; offset[k] + p->buf[k].bytes <= height; offset[k]++)
		if (is_free(p, offset, k) && can_be(p, height, offset, k + 1))
			return true;
	return false;
}

static uint64_t
least_height(const struct problem *p)
{
	uint64_t offset[MAX], height = om_pack_bound(p->buf, p->component.nitem, NULL);

	while (!can_be(p, height, offset, 0))
		height++;
	return height;
}

static bool
is_valid(om_session *s, const struct problem *p, uint64_t height)
{
	return om_pack_check(s, p->buf, p->component.nitem, height) == OM_OK;
}

static void
small_ones_are_the_best(void)
{
	om_session *s = om_session_new();

	for (uint64_t seed = 1; seed <= 6000; seed++) {
		struct problem p;
		randomize(&p, seed, 3 + seed % 4, 4 + seed % 3, 5, (int)(seed / 3 % 8));
		uint64_t best = 100;
		CU_ASSERT(om_complete_search(&p.component, &many, 0, &best));
		CU_ASSERT(is_valid(s, &p, best));
		CU_ASSERT_EQUAL(best, least_height(&p));
	}
	om_session_free(s);
}

/* A complete search proves optimality; with few nodes there may be a lower packing. */
static void
little_is_not_claimed_to_be_all(void)
{
	unsigned claims = 0, ends = 0;

	for (uint64_t seed = 1; seed <= 2000; seed++) {
		struct problem p;
		randomize(&p, seed, 6, 5, 4, (int)(seed % 8));
		const uint64_t least = least_height(&p);
		uint64_t best = least + 1;
		const bool is_end = om_complete_search(&p.component, &(om_search_limits){.nodes = 1 + seed % 8}, 0, &best);
		CU_ASSERT(best >= least);
		CU_ASSERT(!is_end || best == least);
		claims += best == least;
		ends += is_end;
	}
	CU_ASSERT(ends > 100);
	CU_ASSERT(claims > ends);
}

/* ---- Larger ones. ---- */

/* Cut a full rectangle into buffers: they can be packed without any gap. */
static uint32_t
cut(struct problem *p, uint64_t *seed, uint32_t n, om_interval steps, uint64_t bytes, int depth)
{
	const uint32_t width = steps.upper - steps.lower;
	const unsigned rest = below(seed, 8);

	if (depth > 0 && (rest == 0 || (rest < 4 && width > 1))) {
		if (width > 1) {
			const uint32_t at = steps.lower + 1 + below(seed, width - 1);
			n = cut(p, seed, n, (om_interval){.lower = steps.lower, .upper = at}, bytes, depth - 1);
			return cut(p, seed, n, (om_interval){.lower = at, .upper = steps.upper}, bytes, depth - 1);
		}
	} else if (depth > 0 && bytes > 1) {
		const uint64_t at = 1 + below(seed, (unsigned)bytes - 1);
		n = cut(p, seed, n, steps, at, depth - 1);
		return cut(p, seed, n, steps, bytes - at, depth - 1);
	}
	p->live[n][0] = steps;
	p->buf[n] = (om_buffer){.bytes = bytes, .live = p->live[n], .nlive = 1, .fixed = OM_OFFSET_FREE};
	return n + 1;
}

static void
cut_rectangles_are_put_together(void)
{
	om_session *s = om_session_new();

	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct problem p;
		uint64_t state = seed, best = 20000;
		finish(&p, cut(&p, &state, 0, (om_interval){.lower = 0, .upper = 40}, 1000, 5));
		CU_ASSERT(om_complete_search(&p.component, &many, 0, &best));
		CU_ASSERT_EQUAL(best, 1000);
		CU_ASSERT(is_valid(s, &p, best));
	}
	om_session_free(s);
}

static void
the_same_is_found_again(void)
{
	om_session *s = om_session_new();

	for (uint64_t seed = 1; seed <= 24; seed++) {
		struct problem a, b;
		uint64_t best = 5000, again = 5000;
		randomize(&a, seed, MAX, 40, 99, (int)(seed % 8));
		randomize(&b, seed, MAX, 40, 99, (int)(seed % 8));
		CU_ASSERT_EQUAL(om_complete_search(&a.component, &some, 0, &best), om_complete_search(&b.component, &some, 0, &again));
		CU_ASSERT_EQUAL(best, again);
		CU_ASSERT(is_valid(s, &a, best));
		for (uint32_t k = 0; k < MAX; k++)
			CU_ASSERT_EQUAL(a.buf[k].offset, b.buf[k].offset);
	}
	om_session_free(s);
}

static void
what_is_shaped_is_left_alone(void)
{
	struct problem p;
	uint64_t best = 1000;

	randomize(&p, 1, 6, 5, 4, 0);
	p.live[2][0].to = p.buf[2].bytes;
	p.live[2][0].from = p.buf[2].bytes - 1;
	p.buf[2].bytes++;
	for (uint32_t k = 0; k < 6; k++)
		p.buf[k].offset = 77 + k;
	CU_ASSERT(!om_complete_search(&p.component, &many, 0, &best));
	CU_ASSERT_EQUAL(best, 1000);
	for (uint32_t k = 0; k < 6; k++)
		CU_ASSERT_EQUAL(p.buf[k].offset, 77 + k);
}

static CU_TestInfo search_tests[] = {
	{"6000 small problems are as low as by all offsets", small_ones_are_the_best},
	{"an incomplete search claims no proof", little_is_not_claimed_to_be_all},
	{"cut rectangles are packed without gaps", cut_rectangles_are_put_together},
	{"results are deterministic", the_same_is_found_again},
	{"partially live buffers are not searched", what_is_shaped_is_left_alone},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("search", search_tests);
