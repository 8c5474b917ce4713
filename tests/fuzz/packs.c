/* SPDX-License-Identifier: Apache-2.0 */
/* Random packing problems: lifetimes, several lifetimes, rectangles, alignment, fixed offsets, pairs
 * (also from random partial orders), pools with limits, groups.
 *
 *	tests/fuzz/packs [PROBLEMS [FIRST-SEED]]
 *
 * The default is 500 problems; run 12,000 after a change of the packer.
 *
 * Every plan is verified by the checker and, byte by byte, here; solving twice gives the same result;
 * small problems are compared with the optimum, found by exhaustive search; and damaged plans have to
 * be refused.
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "onnxmem/pack.h"

enum { MOST = 40, LIVES = 4, STEPS = 24, POOLS = 3, PAIRS = MOST * MOST };

struct problem {
	uint64_t state;                          /* state of the random number generator */
	om_buffer buf[MOST];
	om_interval live[MOST][LIVES];
	om_pool pool[POOLS];
	om_pack_group group[2];
	uint32_t member[2][4];
	uint32_t pair[PAIRS][2];
	om_problem p;
};

static uint32_t
below(struct problem *w, uint32_t n)
{
	return (uint32_t)om_rng_below(&w->state, n);
}

static bool
chance(struct problem *w, uint32_t one_in)
{
	return below(w, one_in) == 0;
}

/* ---- Generation. ---- */

/* One or more lifetimes, of the whole buffer or of disjoint rectangles (byte ranges). */
static void
make_lives(struct problem *w, om_buffer *b, om_interval *live, bool shapes)
{
	uint32_t step = below(w, STEPS);

	b->live = live;
	b->nlive = 0;
	do {
		om_interval l = {step, step + 1 + below(w, 6), 0, 0};
		if (shapes && b->bytes > 1 && chance(w, 2)) {
			l.from = below(w, (uint32_t)b->bytes);
			l.to = l.from + 1 + below(w, (uint32_t)(b->bytes - l.from));
		}
		live[b->nlive++] = l;
		if (l.from > 0 && b->nlive < LIVES && chance(w, 3))    /* the other bytes, at that time */
			live[b->nlive++] = (om_interval){l.lower + below(w, 2) % (l.upper - l.lower), l.upper, 0, l.from};
		step = l.upper + below(w, 3);
	} while (b->nlive < LIVES && chance(w, 4));
}

static void
make_buffers(struct problem *w, uint32_t n)
{
	static const uint64_t aligns[] = {0, 1, 2, 4, 16};
	const bool shapes = chance(w, 4), aligned = chance(w, 4), fixed = chance(w, 10);
	const uint32_t largest = chance(w, 4) ? 3 : 12;
	uint64_t above = 0;

	w->p.n = n;
	for (uint32_t k = 0; k < n; k++) {
		om_buffer *b = &w->buf[k];
		*b = (om_buffer){.bytes = chance(w, 20) ? 0 : 1 + below(w, largest), .fixed = OM_OFFSET_FREE};
		b->align = aligned ? aligns[below(w, 5)] : 1;
		make_lives(w, b, w->live[k], shapes);
		if (fixed && chance(w, 3)) {                   /* disjoint: a solution exists */
			b->fixed = (int64_t)(b->align > 1 ? (above + b->align - 1) / b->align * b->align : above);
			above = (uint64_t)b->fixed + b->bytes + below(w, 3);
		}
	}
}

/* Pairs from a random order of the buffers, given by a few edges, or without an order. */
static void
make_pairs(struct problem *w)
{
	static bool before[MOST][MOST];
	const bool ordered = chance(w, 2);
	const uint32_t dense = 1 + below(w, 4), n = w->p.n;

	memset(before, 0, sizeof before);
	for (uint32_t b = 0; b < n; b++)
		for (uint32_t a = 0; a < b; a++)
			before[a][b] = chance(w, 1 + dense);
	for (uint32_t m = 0; ordered && m < n; m++)
		for (uint32_t a = 0; a < m; a++)
			for (uint32_t b = m + 1; b < n; b++)
				before[a][b] |= before[a][m] && before[m][b];
	w->p.by_pairs = true;
	for (uint32_t b = 0; b < n; b++)
		for (uint32_t a = 0; a < b; a++)
			for (uint32_t times = before[a][b] ? 0 : chance(w, 9) ? 2 : 1; times > 0; times--) {
				const bool swap = chance(w, 2);
				w->pair[w->p.npair][0] = swap ? b : a;
				w->pair[w->p.npair++][1] = swap ? a : b;
			}
	w->p.pair = (const uint32_t (*)[2])w->pair;
}

static void
make_group(struct problem *w, uint32_t which)
{
	uint32_t n = 0;

	for (uint32_t k = which; k < w->p.n && n < 3; k += 2)
		if (w->buf[k].fixed < 0 && chance(w, 2)) {
			w->member[which][n++] = k;
			w->buf[k].align = 1;
			w->buf[k].fixed_pool = w->buf[w->member[which][0]].fixed_pool;
		}
	w->group[which] = (om_pack_group){w->member[which], n};
	w->p.ngroup = which + 1;
	w->p.group = w->group;
}

static void
make_pools(struct problem *w)
{
	uint64_t sum = 0;
	bool fixed = false;

	w->p.npool = 1 + below(w, POOLS);
	for (uint32_t k = 0; k < w->p.n; k++)
		sum += w->buf[k].bytes;
	for (uint32_t k = 0; k < w->p.n; k++)
		fixed |= w->buf[k].fixed >= 0;
	for (uint32_t k = 0; k < w->p.npool; k++)
		w->pool[k] = (om_pool){.limit = chance(w, 4) ? 0 : 1 + below(w, (uint32_t)sum / 2 + 2),
			.align = chance(w, 8) && !fixed ? 4 : 0};
	for (uint32_t k = 0; k < w->p.n; k++) {
		w->buf[k].access_bytes = below(w, 100);
		w->buf[k].fixed_pool = chance(w, 6) ? below(w, w->p.npool) : OM_POOL_ANY;
	}
}

static void
make(struct problem *w, uint64_t seed)
{
	*w = (struct problem){.state = seed * UINT64_C(0x9e3779b97f4a7c15)};
	w->p = (om_problem)OM_PROBLEM(.buf = w->buf, .pool = w->pool, .npool = 1);
	make_buffers(w, chance(w, 8) ? 8 + below(w, MOST - 8) : 1 + below(w, 7));
	w->p.nodes = w->p.n > 8 ? 2000 : 0;      /* small problems are solved to completion */
	if (chance(w, 4))
		make_pairs(w);
	if (chance(w, 4))
		make_pools(w);
	if (chance(w, 5))
		for (uint32_t k = 0; k < 1 + below(w, 2); k++)
			make_group(w, k);
}

/* ---- Byte-by-byte verification. ---- */

static uint64_t
bytes_to(const om_buffer *b, const om_interval *l)
{
	return l->to ? l->to : b->bytes;
}

/* Do the two buffers conflict at these offsets? */
static bool
clash(const struct problem *w, uint32_t i, uint32_t k, uint64_t at_i, uint64_t at_k)
{
	const om_buffer *a = &w->buf[i], *b = &w->buf[k];

	if (w->p.by_pairs) {
		if (at_i >= at_k + b->bytes || at_k >= at_i + a->bytes || a->bytes == 0 || b->bytes == 0)
			return false;
		for (uint64_t j = 0; j < w->p.npair; j++)
			if ((w->pair[j][0] == i && w->pair[j][1] == k) || (w->pair[j][0] == k && w->pair[j][1] == i))
				return true;
		return false;
	}
	for (uint32_t x = 0; x < a->nlive && a->bytes; x++)
		for (uint32_t y = 0; y < b->nlive && b->bytes; y++) {
			const om_interval *l = &a->live[x], *m = &b->live[y];
			if (l->lower < m->upper && m->lower < l->upper && at_i + l->from < at_k + bytes_to(b, m)
			    && at_k + m->from < at_i + bytes_to(a, l))
				return true;
		}
	return false;
}

/* Print the problem that failed. */
static void
show(const struct problem *w)
{
	for (uint32_t k = 0; k < w->p.npool; k++)
		printf("# pool limit %d align %d height %d bound %d %s\n", (int)w->pool[k].limit, (int)w->pool[k].align,
			(int)w->pool[k].result.height, (int)w->pool[k].result.lower_bound, w->pool[k].result.strategy);
	for (uint32_t k = 0; k < w->p.n; k++) {
		const om_buffer *b = &w->buf[k];
		printf("# %d: %d bytes align %d fixed %d pool %d: at %d pool %d:", (int)k, (int)b->bytes, (int)b->align,
			(int)b->fixed, (int)b->fixed_pool, (int)b->offset, (int)b->pool);
		for (uint32_t j = 0; j < b->nlive && !w->p.by_pairs; j++)
			printf(" %d-%d[%d,%d)", (int)b->live[j].lower, (int)b->live[j].upper, (int)b->live[j].from,
				(int)b->live[j].to);
		puts("");
	}
	for (uint64_t k = 0; k < w->p.npair; k++)
		printf("%s%d-%d", k ? " " : "# ", (int)w->pair[k][0], (int)w->pair[k][1]);
	puts("");
	for (uint32_t g = 0; g < w->p.ngroup; g++) {
		printf("# group:");
		for (uint32_t k = 0; k < w->group[g].n; k++)
			printf(" %d", (int)w->member[g][k]);
		puts("");
	}
}

static const char *
what_is_wrong(const struct problem *w, bool over_limit)
{
	uint64_t end[POOLS] = {0};

	for (uint32_t k = 0; k < w->p.n; k++) {
		const om_buffer *b = &w->buf[k];
		if (b->pool >= w->p.npool || (b->fixed_pool != OM_POOL_ANY && b->pool != b->fixed_pool))
			return "a pool";
		if ((b->align > 1 && b->offset % b->align) || (b->fixed >= 0 && b->offset != (uint64_t)b->fixed))
			return "an offset";
		if (b->bytes && b->offset + b->bytes > end[b->pool])
			end[b->pool] = b->offset + b->bytes;
		for (uint32_t i = 0; i < k; i++)
			if (w->buf[i].pool == b->pool && clash(w, i, k, w->buf[i].offset, b->offset))
				return "an overlap";
	}
	for (uint32_t g = 0; g < w->p.ngroup; g++)
		for (uint32_t k = 1; k < w->group[g].n; k++) {
			const om_buffer *a = &w->buf[w->member[g][k - 1]], *b = &w->buf[w->member[g][k]];
			if (a->pool != b->pool || b->offset != a->offset + a->bytes)
				return "a group";
		}
	for (uint32_t k = 0; k < w->p.npool; k++) {
		const om_pack_result *r = &w->pool[k].result;
		if (r->height != end[k] || r->lower_bound > r->height
		    || (r->status == OM_PACK_OPTIMAL) != (r->lower_bound == r->height))
			return "a result";
		if (w->pool[k].limit && r->height > w->pool[k].limit && !over_limit)
			return "a limit";
	}
	return NULL;
}

/* ---- Exhaustive search. ---- */

struct all {
	const struct problem *w;
	uint32_t unit[MOST], n;          /* first member of each unit */
	uint64_t offset[MOST];
	uint64_t limit[POOLS];           /* permitted heights */
	uint32_t pool[MOST];
	uint64_t steps;
};

/* The group of `k`, whose other members follow it. */
static const om_pack_group *
group_of(const struct problem *w, uint32_t k, uint32_t *place)
{
	for (uint32_t g = 0; g < w->p.ngroup; g++)
		for (uint32_t j = 0; j < w->group[g].n; j++)
			if (w->member[g][j] == k) {
				*place = j;
				return &w->group[g];
			}
	*place = 0;
	return NULL;
}

static bool
lies_well(struct all *a, uint32_t k, uint32_t before)
{
	const om_buffer *b = &a->w->buf[k];

	if (a->offset[k] + b->bytes > a->limit[a->pool[k]] && b->bytes)
		return false;
	if ((b->fixed >= 0 && a->offset[k] != (uint64_t)b->fixed) || (b->align > 1 && a->offset[k] % b->align))
		return false;
	for (uint32_t u = 0; u < before; u++) {
		uint32_t place;
		const om_pack_group *g = group_of(a->w, a->unit[u], &place);
		for (uint32_t j = 0; j < (g ? g->n : 1); j++) {
			const uint32_t i = g ? g->member[j] : a->unit[u];
			if (a->pool[i] == a->pool[k] && clash(a->w, i, k, a->offset[i], a->offset[k]))
				return false;
		}
	}
	return true;
}

/* Does a packing within the limits exist?  Tries every pool and every offset, unit by unit. */
static bool
there_is(struct all *a, uint32_t u)
{
	const struct problem *w = a->w;
	uint32_t place;

	if (u == a->n)
		return true;
	const uint32_t k = a->unit[u];
	const om_pack_group *g = group_of(w, k, &place);
	for (uint32_t pool = 0; pool < w->p.npool; pool++)
		for (uint64_t at = 0; at <= a->limit[pool]; at++) {
			const uint64_t align = w->pool[pool].align;
			uint64_t next = at;
			bool ok = align <= 1 || at % align == 0;
			if (a->steps == 0)
				return false;
			a->steps--;
			for (uint32_t j = 0; ok && j < (g ? g->n : 1); j++) {
				const uint32_t m = g ? g->member[j] : k;
				const om_buffer *b = &w->buf[m];
				a->offset[m] = next;
				a->pool[m] = pool;
				next += b->bytes;
				ok = (b->fixed_pool == OM_POOL_ANY || b->fixed_pool == pool) && lies_well(a, m, u);
			}
			if (ok && there_is(a, u + 1))
				return true;
			if (!g && w->buf[k].bytes == 0 && w->buf[k].fixed < 0 && at)
				break;
		}
	return false;
}

static void
all_init(struct all *a, const struct problem *w)
{
	*a = (struct all){.w = w, .steps = 50 * 1000};
	for (uint32_t k = 0; k < w->p.n; k++) {
		uint32_t place;
		group_of(w, k, &place);
		if (place == 0)
			a->unit[a->n++] = k;
	}
	for (uint32_t k = 0; k < w->p.npool; k++)
		a->limit[k] = w->pool[k].limit ? w->pool[k].limit : 1000;
}

/* ---- Main loop. ---- */

struct tally {
	uint64_t solved, refused, proven, compared, beaten, damaged;
};

/* The exhaustive search is for plain buffers only. */
static bool
is_searched(const struct problem *w)
{
	for (uint32_t k = 0; k < w->p.n; k++) {
		const om_buffer *b = &w->buf[k];
		if (b->fixed >= 0 && !w->p.by_pairs)
			return false;
		for (uint32_t j = 0; j < b->nlive && !w->p.by_pairs; j++)
			if (b->live[j].to && b->live[j].to - b->live[j].from != b->bytes)
				return false;
	}
	return w->p.ngroup == 0;
}

/* With one pool: check that no packing is one byte smaller. */
static const char *
compare_with_all(const struct problem *w, om_status st, struct tally *t)
{
	struct all a;

	if (w->p.n > 8)
		return NULL;
	all_init(&a, w);
	if (w->p.npool > 1) {
		const bool found = there_is(&a, 0);
		if (a.steps == 0)
			return NULL;
		t->compared++;
		return found == (st == OM_OK) ? NULL : found ? "limits can be met" : "limits cannot be met";
	}
	const om_pack_result *r = &w->pool[0].result;
	if (r->height == 0)
		return NULL;
	a.limit[0] = r->height - 1;
	const bool lower = there_is(&a, 0);
	if (a.steps == 0)
		return NULL;
	t->compared++;
	if (lower && r->status == OM_PACK_OPTIMAL)
		return "it is not optimal";
	t->beaten += lower;
	return lower && is_searched(w) ? "there is a lower one" : NULL;
}

static const char *
damage(struct problem *w, om_session *s, struct tally *t)
{
	struct problem kept = *w;

	for (uint32_t round = 0; round < 4; round++) {
		om_buffer *b = &w->buf[below(w, w->p.n)];
		switch (below(w, 5)) {
		case 0: b->offset = below(w, 30); break;
		case 1: b->offset += 1; break;
		case 2: b->pool = below(w, POOLS); break;
		case 3: w->pool[0].result.height += below(w, 2) ? 1 : (uint64_t)-1; break;
		default: b->bytes += 1 + below(w, 3); break;
		}
		const bool wrong = what_is_wrong(w, false) != NULL;
		for (uint32_t k = 0; k < w->p.n; k++)       /* a pool's alignment applies to whole units */
			for (uint32_t p = 0; p < w->p.npool; p++)
				if (w->pool[p].align > 1)
					goto next;
		if ((om_pack_check_problem(s, &w->p) != OM_OK) != wrong)
			return wrong ? "the checker found nothing wrong with a damaged plan" : "the checker is wrong";
		t->damaged += wrong;
next:
		memcpy(w->buf, kept.buf, sizeof w->buf);
		memcpy(w->pool, kept.pool, sizeof w->pool);
	}
	return NULL;
}

static bool
is_same(const struct problem *a, const struct problem *b)
{
	for (uint32_t k = 0; k < a->p.n; k++)
		if (a->buf[k].offset != b->buf[k].offset || a->buf[k].pool != b->buf[k].pool)
			return false;
	return true;
}

static struct problem shown;

static const char *
test(uint64_t seed, om_session *s, struct tally *t)
{
	static struct problem w, again;
	const char *wrong;

	make(&w, seed);
	make(&again, seed);
	const om_status st = om_pack_solve(s, &w.p);
	shown = w;
	if (om_pack_solve(s, &again.p) != st || !is_same(&w, &again))
		return "it comes out another way the second time";
	if (st != OM_OK && st != OM_BUDGET)
		return om_message(s);
	t->solved += st == OM_OK;
	t->refused += st == OM_BUDGET;
	if ((wrong = what_is_wrong(&w, st == OM_BUDGET)) != NULL)
		return wrong;
	if ((om_pack_check_problem(s, &w.p) == OM_OK) != (st == OM_OK))
		return om_message(s);
	for (uint32_t k = 0; k < w.p.npool; k++)
		t->proven += w.pool[k].result.status == OM_PACK_OPTIMAL;
	if ((wrong = compare_with_all(&w, st, t)) != NULL)
		return wrong;
	return st == OM_OK ? damage(&w, s, t) : NULL;
}

int
main(int argc, char **argv)
{
	const uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 500;
	const uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	om_session *s = om_session_new();
	struct tally t = {0};
	uint64_t failed = 0;

	for (uint64_t seed = first; seed < first + n; seed++) {
		const char *wrong = test(seed, s, &t);
		if (wrong && failed++ < 20) {
			printf("# problem %" PRIu64 ": %s\n", seed, wrong);
			if (n == 1)
				show(&shown);
		}
	}
	printf("# %" PRIu64 " packed, %" PRIu64 " do not fit, %" PRIu64 " pools optimal, %" PRIu64
		" compared with all packings, of which %" PRIu64 " can be lower, %" PRIu64 " damaged plans refused\n", t.solved, t.refused, t.proven,
		t.compared, t.beaten, t.damaged);
	printf("%sok 1 - %" PRIu64 " random packing problems\n1..1\n", failed ? "not " : "", n);
	om_session_free(s);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
