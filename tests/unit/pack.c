/* The packer on plain buffers. */
#include <config.h>

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

	start(&p);      /* a hole is filled while 64 bytes stay */
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

	start(&p);      /* nothing at all, and nothing to place */
	expect(&p, 0);
	start(&p);
	add(&p, 0, 5, 0);
	expect(&p, 0);
}

/* Five buffers whose bound is 4 but that need 5: each meets two neighbours in a
 * way that no hole is left. */
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

	start(&p);      /* one of them may lie anywhere: rounding proves nothing */
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
		"buffer 0 cannot be packed: its alignment is no power of two");
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
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (unsigned)((*state >> 33) % n);
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

static bool
meet(const om_buffer *a, const om_buffer *b)
{
	for (uint32_t i = 0; i < a->nlive; i++)
		for (uint32_t k = 0; k < b->nlive; k++)
			if (a->live[i].lower < b->live[k].upper && b->live[k].lower < a->live[i].upper)
				return true;
	return false;
}

/* All orders, each buffer on top of its neighbours: slow and plain. */
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
			if (placed >> i & 1 && meet(&p->buf[i], &p->buf[k]) && offset[i] + p->buf[i].bytes > at)
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

CU_TestInfo pack_tests[] = {
	{"small cases have the best answer", small_cases_have_the_best_answer},
	{"more than the bound is proven", more_than_the_bound_is_proven},
	{"only the topmost buffer is not rounded", only_the_topmost_is_not_rounded},
	{"lifetimes may have gaps", lifetimes_may_have_gaps},
	{"fixed offsets are kept", fixed_offsets_are_kept},
	{"nonsense is refused", nonsense_is_refused},
	{"faults are found", faults_are_found},
	{"300 small problems are solved as all orders do", small_ones_are_optimal},
	{"larger problems are valid, and come out the same again", larger_ones_are_valid_and_repeat},
	CU_TEST_INFO_NULL,
};
