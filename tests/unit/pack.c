/* SPDX-License-Identifier: Apache-2.0 */
/* The packer on plain buffers. */
#include <config.h>

#include "base/rng.h"
#include "onnxmem/pack.h"
#include "unit.h"

enum { MAX = 400, PIECES = 3 };

struct problem {
	om_session *s;
	om_buffer buf[MAX];
	om_interval live[MAX][PIECES];
	uint32_t n;
};

static void
start(struct problem *p)
{
	p->s = om_session_new();
	p->n = 0;
}

static om_buffer *
add(struct problem *p, uint32_t lower, uint32_t upper, uint64_t bytes)
{
	om_buffer *b = &p->buf[p->n];

	p->live[p->n][0] = (om_interval){lower, upper};
	*b = (om_buffer){.bytes = bytes, .align = 64, .live = p->live[p->n], .nlive = 1,
		.fixed = OM_OFFSET_FREE};
	p->n++;
	return b;
}

static void
add_again(struct problem *p, uint32_t lower, uint32_t upper)
{
	om_buffer *b = &p->buf[p->n - 1];
	p->live[p->n - 1][b->nlive++] = (om_interval){lower, upper};
}

/* Bytes [from, to) of the last buffer are in use in steps [lower, upper). */
static void
use(struct problem *p, uint32_t lower, uint32_t upper, uint64_t from, uint64_t to)
{
	om_buffer *b = &p->buf[p->n - 1];
	p->live[p->n - 1][b->nlive++] = (om_interval){lower, upper, from, to};
}

/* A buffer whose intervals are added by later calls. */
static om_buffer *
add_shaped(struct problem *p, uint64_t bytes)
{
	om_buffer *b = add(p, 0, 1, bytes);

	b->nlive = 0;
	return b;
}

static om_pack_result
packed(struct problem *p)
{
	om_pack_result r = {0};

	CU_ASSERT_EQUAL_FATAL(om_pack(p->s, p->buf, p->n, &r), OM_OK);
	CU_ASSERT_EQUAL(om_pack_check(p->s, p->buf, p->n, r.height), OM_OK);
	CU_ASSERT(r.height >= r.lower_bound);
	CU_ASSERT(r.lower_bound >= om_pack_bound(p->buf, p->n, NULL));
	CU_ASSERT_EQUAL(r.status == OM_PACK_OPTIMAL, r.height == r.lower_bound);
	return r;
}

static void
expect(struct problem *p, uint64_t height)
{
	const om_pack_result r = packed(p);

	CU_ASSERT_EQUAL(r.height, height);
	CU_ASSERT_EQUAL(r.status, OM_PACK_OPTIMAL);
	om_session_free(p->s);
}

static void
small_cases_have_the_best_answer(void)
{
	struct problem p;

	start(&p);      /* a chain */
	add(&p, 0, 2, 640);
	add(&p, 1, 3, 1280);
	add(&p, 2, 4, 640);
	expect(&p, 1920);

	start(&p);      /* a gap is filled while 64 bytes stay live */
	add(&p, 0, 3, 1280);
	add(&p, 1, 9, 64);
	add(&p, 3, 6, 640);
	add(&p, 4, 8, 640);
	expect(&p, 1344);

	start(&p);      /* a diamond, in order */
	add(&p, 0, 3, 640);
	add(&p, 1, 4, 640);
	add(&p, 2, 5, 640);
	add(&p, 3, 5, 640);
	add(&p, 4, 6, 640);
	expect(&p, 1920);

	start(&p);      /* an empty problem, and buffers of no bytes */
	expect(&p, 0);
	start(&p);
	add(&p, 0, 5, 0);
	expect(&p, 0);
}

/* Five buffers whose bound is 4 but that need 5: each overlaps two neighbors in a
 * way that leaves no gap. */
static void
more_than_the_bound_is_proven(void)
{
	static const struct { uint32_t lower, upper; uint64_t bytes; } b[] = {
		{0, 2, 1}, {0, 4, 2}, {0, 1, 1}, {3, 6, 1}, {5, 8, 2}, {1, 7, 1}, {7, 9, 1}, {4, 5, 2}, {6, 9, 1},
	};
	struct problem p;

	start(&p);
	for (size_t k = 0; k < sizeof b / sizeof b[0]; k++)
		add(&p, b[k].lower, b[k].upper, b[k].bytes)->align = 1;
	const om_pack_result r = packed(&p);
	CU_ASSERT_EQUAL(r.status, OM_PACK_OPTIMAL);
	om_session_free(p.s);
}

static void
only_the_topmost_is_not_rounded(void)
{
	struct problem p;
	uint32_t step;

	start(&p);
	add(&p, 0, 2, 1);
	add(&p, 1, 3, 1);
	add(&p, 1, 2, 1);
	CU_ASSERT_EQUAL(om_pack_bound(p.buf, p.n, &step), 129);
	CU_ASSERT_EQUAL(step, 1);
	expect(&p, 129);

	start(&p);      /* one of them may have any offset: rounding is not a valid bound */
	add(&p, 0, 2, 1);
	add(&p, 0, 2, 1)->align = 1;
	CU_ASSERT_EQUAL(om_pack_bound(p.buf, p.n, NULL), 2);
	CU_ASSERT_EQUAL(packed(&p).height, 2);
	om_session_free(p.s);
}

static void
lifetimes_may_have_gaps(void)
{
	struct problem p;

	start(&p);
	add(&p, 0, 2, 640);
	add_again(&p, 4, 6);
	add(&p, 2, 4, 640);
	expect(&p, 640);

	start(&p);
	add(&p, 0, 2, 640);
	add_again(&p, 4, 6);
	add(&p, 2, 5, 640);
	expect(&p, 1280);
}

/* ---- Partially live buffers. ---- */

static void
parts_are_reused(void)
{
	struct problem p;

	start(&p);      /* its second half is free from step 2 on */
	add_shaped(&p, 1280);
	use(&p, 0, 2, 0, 1280);
	use(&p, 2, 6, 0, 640);
	add(&p, 2, 6, 640);
	expect(&p, 1280);

	start(&p);      /* the operands of a concat, each with its own first step */
	add_shaped(&p, 192);
	use(&p, 0, 5, 0, 64);
	use(&p, 2, 5, 64, 128);
	use(&p, 4, 5, 128, 192);
	add(&p, 0, 2, 64);
	add(&p, 1, 4, 64);
	expect(&p, 192);

	start(&p);      /* two buffers that fit only in each other's gaps */
	add_shaped(&p, 256);
	use(&p, 0, 4, 64, 128);
	use(&p, 2, 4, 192, 256);
	add_shaped(&p, 192);
	use(&p, 0, 4, 0, 64);
	use(&p, 2, 3, 128, 192);
	expect(&p, 256);
}

static void
what_is_unused_still_counts_for_the_height(void)
{
	struct problem p;

	start(&p);
	add_shaped(&p, 1280);
	use(&p, 0, 2, 0, 64);
	CU_ASSERT_EQUAL(om_pack_bound(p.buf, p.n, NULL), 1280);
	expect(&p, 1280);
}

static void
cells_are_counted_where_they_begin(void)
{
	struct problem p;

	start(&p);      /* 100 bytes from 64 on take two cells, whatever follows */
	add_shaped(&p, 200);
	use(&p, 0, 2, 64, 164);
	add(&p, 0, 2, 64);
	add(&p, 0, 2, 64);
	CU_ASSERT_EQUAL(om_pack_bound(p.buf, p.n, NULL), 256 - 28);
	om_session_free(p.s);

	start(&p);      /* 32 bytes from 32 on may share a cell: nothing is rounded */
	add_shaped(&p, 64);
	use(&p, 0, 2, 32, 64);
	add(&p, 0, 2, 32);
	CU_ASSERT_EQUAL(om_pack_bound(p.buf, p.n, NULL), 64);
	expect(&p, 64);
}

static void
wrong_shapes_are_refused(void)
{
	struct problem p;
	om_pack_result r;

	start(&p);
	add_shaped(&p, 128);
	use(&p, 0, 4, 0, 64);
	use(&p, 2, 4, 32, 128);
	CU_ASSERT_EQUAL(om_pack(p.s, p.buf, p.n, &r), OM_INVALID);
	CU_ASSERT_STRING_EQUAL(om_message(p.s), "buffer 0 cannot be packed: its lifetimes overlap");
	p.live[0][1].from = 64;
	CU_ASSERT_EQUAL(om_pack(p.s, p.buf, p.n, &r), OM_OK);
	p.live[0][1].to = 129;
	CU_ASSERT_EQUAL(om_pack(p.s, p.buf, p.n, &r), OM_INVALID);
	CU_ASSERT_STRING_EQUAL(om_message(p.s), "buffer 0 cannot be packed: "
		"one of its lifetimes has no bytes, or bytes outside of the buffer");
	p.live[0][1].to = 64;
	CU_ASSERT_EQUAL(om_pack(p.s, p.buf, p.n, &r), OM_INVALID);
	p.live[0][1].to = 0;
	CU_ASSERT_EQUAL(om_pack(p.s, p.buf, p.n, &r), OM_INVALID);
	om_session_free(p.s);
}

static void
fixed_offsets_are_kept(void)
{
	struct problem p;

	start(&p);
	add(&p, 0, 4, 640)->fixed = 1280;
	add(&p, 1, 3, 1280);
	add(&p, 2, 5, 64);
	expect(&p, 1984);
	CU_ASSERT_EQUAL(p.buf[0].offset, 1280);
	CU_ASSERT_EQUAL(p.buf[1].offset, 0);
}

static void
nonsense_is_refused(void)
{
	struct problem p;
	om_pack_result r;

	start(&p);
	add(&p, 0, 2, 640)->align = 48;
	CU_ASSERT_EQUAL(om_pack(p.s, p.buf, p.n, &r), OM_INVALID);
	CU_ASSERT_STRING_EQUAL(om_message(p.s),
		"buffer 0 cannot be packed: its alignment is not a power of two");
	p.buf[0].align = 64;
	p.live[0][0].upper = 0;
	CU_ASSERT_EQUAL(om_pack(p.s, p.buf, p.n, &r), OM_INVALID);
	p.live[0][0].upper = 2;
	p.buf[0].nlive = 0;
	CU_ASSERT_EQUAL(om_pack(p.s, p.buf, p.n, &r), OM_INVALID);
	p.buf[0].nlive = 1;
	add_again(&p, 1, 3);
	CU_ASSERT_EQUAL(om_pack(p.s, p.buf, p.n, &r), OM_INVALID);
	p.buf[0].nlive = 1;
	p.buf[0].fixed = 0;
	add(&p, 1, 3, 640)->fixed = 576;
	p.buf[1].name = "b";
	CU_ASSERT_EQUAL(om_pack(p.s, p.buf, p.n, &r), OM_INVALID);
	CU_ASSERT_STRING_EQUAL(om_message(p.s), "fixed offsets contradict each other: "
		"buffer 0 at 0 and b at 576 overlap at step 1");
	p.buf[1].fixed = OM_OFFSET_FREE;
	p.buf[1].bytes = INT64_MAX;
	CU_ASSERT_EQUAL(om_pack(p.s, p.buf, p.n, &r), OM_INVALID);
	om_session_free(p.s);
}

static void
faults_are_found(void)
{
	struct problem p;

	start(&p);
	add(&p, 0, 2, 640);
	add(&p, 1, 3, 640);
	const om_pack_result r = packed(&p);
	CU_ASSERT_EQUAL(om_pack_check(p.s, p.buf, p.n, r.height - 1), OM_BADPLAN);
	p.buf[1].offset = p.buf[0].offset;
	CU_ASSERT_EQUAL(om_pack_check(p.s, p.buf, p.n, r.height), OM_BADPLAN);
	p.buf[1].offset = 672;
	CU_ASSERT_EQUAL(om_pack_check(p.s, p.buf, p.n, 2000), OM_BADPLAN);
	p.buf[0].offset = 0;
	p.buf[1].offset = 576;
	CU_ASSERT_EQUAL(om_pack_check(p.s, p.buf, p.n, 2000), OM_BADPLAN);
	p.buf[1].offset = 640;
	p.buf[1].fixed = 1280;
	CU_ASSERT_EQUAL(om_pack_check(p.s, p.buf, p.n, 2000), OM_BADPLAN);
	om_session_free(p.s);
}

/* ---- Random problems. ---- */

static unsigned
below(uint64_t *state, unsigned n)
{
	return (unsigned)om_rng_below(state, n);
}

static void
randomize(struct problem *p, uint64_t seed, unsigned n, unsigned steps)
{
	static const uint64_t aligns[] = {0, 1, 4, 64};

	start(p);
	for (unsigned k = 0; k < n; k++) {
		const uint32_t lower = below(&seed, steps);
		om_buffer *b = add(p, lower, lower + 1 + below(&seed, 6), 1 + below(&seed, 12));
		b->align = seed % 7 ? 1 : aligns[below(&seed, 4)];
		if (below(&seed, 4) == 0) {
			const uint32_t from = b->live[0].upper + below(&seed, 3);
			add_again(p, from, from + 1 + below(&seed, 4));
		}
	}
}

/* Brute force: all orders, each buffer on top of its neighbors. */
static uint64_t
best_height(const struct problem *p, uint64_t *offset, unsigned placed, uint64_t height, uint64_t best)
{
	if (placed == (1u << p->n) - 1 || height >= best)
		return height < best ? height : best;
	for (unsigned k = 0; k < p->n; k++) {
		if (placed >> k & 1)
			continue;
		uint64_t at = 0;
		for (unsigned i = 0; i < p->n; i++)
			if (placed >> i & 1 && unit_meet(&p->buf[i], &p->buf[k]) && offset[i] + p->buf[i].bytes > at)
				at = offset[i] + p->buf[i].bytes;
		if (p->buf[k].align > 1)
			at = (at + p->buf[k].align - 1) / p->buf[k].align * p->buf[k].align;
		offset[k] = at;
		const uint64_t end = at + p->buf[k].bytes;
		best = best_height(p, offset, placed | 1u << k, end > height ? end : height, best);
	}
	return best;
}

static void
small_ones_are_optimal(void)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct problem p;
		uint64_t offset[MAX];
		randomize(&p, seed, 4 + seed % 4, 8);
		const om_pack_result r = packed(&p);
		CU_ASSERT_EQUAL(r.height, best_height(&p, offset, 0, 0, UINT64_MAX));
		CU_ASSERT_EQUAL(r.status, OM_PACK_OPTIMAL);
		om_session_free(p.s);
	}
}

static void
larger_ones_are_valid_and_repeat(void)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct problem p, again;
		randomize(&p, seed, MAX, 60 + 120 * (unsigned)seed);
		if (seed % 3 == 0)
			p.buf[seed].fixed = 128;
		again = p;
		for (uint32_t k = 0; k < p.n; k++)
			again.buf[k].name = "another name";
		const om_pack_result a = packed(&p), b = packed(&again);
		CU_ASSERT_EQUAL(a.height, b.height);
		for (uint32_t k = 0; k < p.n; k++)
			CU_ASSERT_EQUAL(p.buf[k].offset, again.buf[k].offset);
		om_session_free(p.s);
	}
}

/* ---- Random partially live buffers. ---- */

static uint64_t
end_of(const om_buffer *b, const om_interval *i)
{
	return i->to ? i->to : b->bytes;
}

/* Do both use a byte at the same step, at these offsets? */
static bool
collide(const om_buffer *a, const om_buffer *b)
{
	for (const om_interval *x = a->live; x < a->live + a->nlive; x++)
		for (const om_interval *y = b->live; y < b->live + b->nlive; y++)
			if (x->lower < y->upper && y->lower < x->upper
			    && a->offset + x->from < b->offset + end_of(b, y)
			    && b->offset + y->from < a->offset + end_of(a, x))
				return true;
	return false;
}

static void
randomize_shapes(struct problem *p, uint64_t seed, unsigned n, unsigned steps, unsigned bytes)
{
	start(p);
	for (unsigned k = 0; k < n; k++) {
		om_buffer *b = add_shaped(p, 1 + below(&seed, bytes));
		const uint32_t lower = below(&seed, steps), mid = lower + 1 + below(&seed, 2);
		const uint64_t cut = b->bytes / 2;
		b->align = below(&seed, 5) == 0 ? 2 : 1;
		if (b->bytes < 2 || below(&seed, 3) == 0) {
			use(p, lower, mid + below(&seed, 3), 0, 0);
		} else if (below(&seed, 2)) {
			use(p, lower, mid, 0, b->bytes);
			use(p, mid, mid + 1 + below(&seed, 3), below(&seed, 2) ? 0 : cut, below(&seed, 2) ? b->bytes : cut + 1);
		} else {
			use(p, lower, mid + 1 + below(&seed, 2), 0, cut);
			use(p, mid, mid + 1 + below(&seed, 3), cut, b->bytes);
		}
	}
}

/* Brute force: all offsets below `best`. */
static uint64_t
best_of_offsets(struct problem *p, unsigned k, uint64_t height, uint64_t best)
{
	om_buffer *b = &p->buf[k];

	if (k == p->n)
		return height;
	for (b->offset = 0; b->offset + b->bytes < best; b->offset += b->align) {
		unsigned i = 0;
		while (i < k && !collide(&p->buf[i], b))
			i++;
		const uint64_t end = b->offset + b->bytes;
		if (i == k)
			best = best_of_offsets(p, k + 1, end > height ? end : height, best);
	}
	return best;
}

/* Buffers that only fit when moved together are beyond greedy packing. */
static void
small_shapes_are_nearly_optimal(void)
{
	enum { ALL = 400 };
	unsigned reached = 0;

	for (uint64_t seed = 1; seed <= ALL; seed++) {
		struct problem p;
		randomize_shapes(&p, seed, 3 + seed % 3, 5, 6);
		const om_pack_result r = packed(&p);
		const uint64_t best = best_of_offsets(&p, 0, 0, UINT64_MAX / 2);
		CU_ASSERT(r.height >= best);
		CU_ASSERT(r.lower_bound <= best);
		reached += r.height == best;
		om_session_free(p.s);
	}
	CU_ASSERT(reached >= ALL - ALL / 50);
}

/* The checker agrees with a comparison of all pairs. */
static void
checks_of_shapes_agree(void)
{
	unsigned valid = 0;

	for (uint64_t seed = 1; seed <= 2000; seed++) {
		struct problem p;
		uint64_t state = seed;
		bool fine = true;
		randomize_shapes(&p, seed, 4, 6, 8);
		for (uint32_t k = 0; k < p.n; k++)
			p.buf[k].offset = below(&state, 12) * p.buf[k].align;
		for (uint32_t k = 0; k < p.n; k++)
			for (uint32_t i = 0; i < k; i++)
				fine &= !collide(&p.buf[i], &p.buf[k]);
		CU_ASSERT_EQUAL(om_pack_check(p.s, p.buf, p.n, 100) == OM_OK, fine);
		valid += fine;
		om_session_free(p.s);
	}
	CU_ASSERT(valid > 100 && valid < 1900);
}

static void
larger_shapes_are_valid(void)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct problem p;
		randomize_shapes(&p, seed, MAX, 20 + 50 * (unsigned)seed, 300);
		if (seed % 3 == 0)
			p.buf[seed].fixed = 128;
		packed(&p);
		om_session_free(p.s);
	}
}

/* One buffer of many lifetimes among many others: forbidden ranges are merged. */
static void
many_pieces_are_one_buffer(void)
{
	enum { PARTS = 3000 };
	om_session *s = om_session_new();
	om_arena *mem = om_arena_new();
	om_buffer *buf = OM_NEWN(mem, om_buffer, PARTS + 1);
	om_interval *live = OM_NEWN(mem, om_interval, 2 * PARTS);
	om_pack_result r;

	for (uint32_t k = 0; k < PARTS; k++) {
		live[k] = (om_interval){k, PARTS, 64 * k, 64 * (k + 1)};
		live[PARTS + k] = (om_interval){k, k + 1 + k % 50, 0, 0};
		buf[k + 1] = (om_buffer){.bytes = 64, .align = 64, .live = &live[PARTS + k], .nlive = 1,
			.fixed = OM_OFFSET_FREE};
	}
	buf[0] = (om_buffer){.bytes = 64 * PARTS, .align = 64, .live = live, .nlive = PARTS,
		.fixed = OM_OFFSET_FREE};
	CU_ASSERT_EQUAL(om_pack(s, buf, PARTS + 1, &r), OM_OK);
	CU_ASSERT_EQUAL(om_pack_check(s, buf, PARTS + 1, r.height), OM_OK);
	CU_ASSERT_EQUAL(r.status, OM_PACK_OPTIMAL);
	om_arena_free(mem);
	om_session_free(s);
}

static CU_TestInfo pack_tests[] = {
	{"small problems are packed optimally", small_cases_have_the_best_answer},
	{"optimality above the bound is proven", more_than_the_bound_is_proven},
	{"only the topmost buffer is not rounded", only_the_topmost_is_not_rounded},
	{"lifetimes may have gaps", lifetimes_may_have_gaps},
	{"unused bytes of a buffer are reused", parts_are_reused},
	{"unused bytes count for the height", what_is_unused_still_counts_for_the_height},
	{"cells are counted where they begin", cells_are_counted_where_they_begin},
	{"invalid lifetimes are refused", wrong_shapes_are_refused},
	{"fixed offsets are kept", fixed_offsets_are_kept},
	{"invalid buffers are refused", nonsense_is_refused},
	{"the checker finds invalid packings", faults_are_found},
	{"300 small problems are as low as by all orders", small_ones_are_optimal},
	{"larger problems are valid and deterministic", larger_ones_are_valid_and_repeat},
	{"400 small problems with partial lifetimes are close to optimal", small_shapes_are_nearly_optimal},
	{"2000 random offsets: the checker agrees with a comparison of all pairs", checks_of_shapes_agree},
	{"larger problems with partial lifetimes are valid", larger_shapes_are_valid},
	{"a buffer of 3000 lifetimes", many_pieces_are_one_buffer},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("packer", pack_tests);
