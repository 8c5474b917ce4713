/* SPDX-License-Identifier: Apache-2.0 */
/* Coloring, NNC and pools on plain buffers and on programs. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "onnxmem/plan.h"
#include "pack/baselines/baselines.h"
#include "tests/fixtures.h"
#include "unit.h"
#include "pack/baselines/interference_list.h"

enum { MAX = 60 };

struct problem {
	om_session *s;
	om_arena *mem;
	om_buffer buf[MAX];
	uint32_t n;
	uint64_t state;
};

static unsigned
below(struct problem *p, unsigned n)
{
	return (unsigned)om_rng_below(&p->state, n);
}

/* Lifetimes of one to three intervals, sizes that repeat, some of them zero. */
static void
make(struct problem *p, uint64_t seed, unsigned pieces)
{
	*p = (struct problem){.s = om_session_new(), .mem = om_arena_new(), .state = seed};
	p->n = 1 + below(p, MAX - 1);
	for (uint32_t k = 0; k < p->n; k++) {
		om_interval *live = OM_NEWN(p->mem, om_interval, pieces);
		uint32_t at = below(p, 40), n = 0;
		do {
			live[n].lower = at;
			at = live[n++].upper = at + 1 + below(p, 8);
			at += below(p, 5);
		} while (n < pieces && below(p, 2));
		p->buf[k] = (om_buffer){.bytes = below(p, 3) ? 64 * below(p, 20) : 1 + below(p, 700),
			.align = UINT64_C(1) << below(p, 7), .live = live, .nlive = n, .fixed = OM_OFFSET_FREE};
	}
}

static void
drop(struct problem *p)
{
	om_arena_free(p->mem);
	om_session_free(p->s);
}

static void
check(struct problem *p, const om_baseline_result *r)
{
	CU_ASSERT_EQUAL(om_pack_check(p->s, p->buf, p->n, r->pack.height), OM_OK);
	CU_ASSERT(r->pack.height >= r->pack.lower_bound);
	CU_ASSERT_EQUAL(r->pack.status == OM_PACK_OPTIMAL, r->pack.height == r->pack.lower_bound);
}

static void
all_ways_are_valid_on_random_problems(void)
{
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct problem p;
		om_baseline_result r, least;
		uint32_t block[MAX];

		make(&p, seed, seed % 2 ? 1 : 3);
		CU_ASSERT_EQUAL(om_baseline_pool(p.s, p.buf, p.n, NULL, &r), OM_OK);
		check(&p, &r);
		CU_ASSERT_EQUAL(om_baseline_nnc(p.s, p.buf, p.n, NULL, OM_NNC_BY_SIZE, 0, NULL, &r), OM_OK);
		check(&p, &r);
		CU_ASSERT_EQUAL(om_baseline_nnc(p.s, p.buf, p.n, NULL, OM_NNC_PAPER, 0, NULL, &r), OM_OK);
		check(&p, &r);
		CU_ASSERT_EQUAL(om_baseline_color(p.s, p.buf, p.n, NULL, OM_COLOR_BYTES, 0, NULL, &least), OM_OK);
		check(&p, &least);
		CU_ASSERT_EQUAL(om_baseline_color(p.s, p.buf, p.n, NULL, OM_COLOR_DSATUR, 0, block, &r), OM_OK);
		check(&p, &r);
		CU_ASSERT(least.pack.height <= r.pack.height);
		for (uint32_t i = 0; i < p.n; i++)
			for (uint32_t k = 0; k < i; k++)
				CU_ASSERT(!p.buf[i].bytes || !p.buf[k].bytes || !unit_meet(&p.buf[i], &p.buf[k]) || block[i] != block[k]);
		drop(&p);
	}
}

/* A search that ends early says so; one of a graph with some hundred buffers does not end early. */
static void
limited_searches_say_so(void)
{
	enum { LAYERS = 360 };
	om_session *s = om_session_new();
	om_arena *mem = om_arena_new();
	om_buffer *buf = OM_NEWN(mem, om_buffer, LAYERS);
	om_interval *live = OM_NEWN(mem, om_interval, LAYERS);
	om_baseline_result cut, whole, unlimited;

	for (uint32_t k = 0; k < LAYERS; k++) {
		live[k] = (om_interval){.lower = k, .upper = k + (k % 3 ? 2 : 5)};
		buf[k] = (om_buffer){.bytes = 64 * (1 + k * k % 7), .align = 64, .live = &live[k], .nlive = 1, .fixed = OM_OFFSET_FREE};
	}
	CU_ASSERT_EQUAL(om_baseline_nnc(s, buf, LAYERS, NULL, OM_NNC_PAPER, 1000, NULL, &cut), OM_OK);
	CU_ASSERT(cut.pack.is_limited);
	CU_ASSERT_EQUAL(om_pack_check(s, buf, LAYERS, cut.pack.height), OM_OK);
	CU_ASSERT_EQUAL(om_baseline_nnc(s, buf, LAYERS, NULL, OM_NNC_PAPER, 0, NULL, &whole), OM_OK);
	CU_ASSERT(!whole.pack.is_limited);
	CU_ASSERT_EQUAL(om_pack_check(s, buf, LAYERS, whole.pack.height), OM_OK);
	CU_ASSERT_EQUAL(om_baseline_nnc(s, buf, LAYERS, NULL, OM_NNC_PAPER, UINT64_MAX, NULL, &unlimited), OM_OK);
	CU_ASSERT_EQUAL(whole.pack.height, unlimited.pack.height);
	om_arena_free(mem);
	om_session_free(s);
}

/* As many blocks as the most buffers live at once are enough for intervals, one
 * less never is. */
static void
limits_are_met_or_refused(void)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct problem p;
		om_baseline_result r;
		uint32_t most = 0;

		make(&p, seed, 1);
		for (uint32_t step = 0; step < 60; step++) {
			uint32_t n = 0;
			for (uint32_t k = 0; k < p.n; k++)
				n += p.buf[k].bytes && p.buf[k].live->lower <= step && step < p.buf[k].live->upper;
			most = n > most ? n : most;
		}
		for (int choice = 0; most > 1 && choice < 2; choice++) {
			CU_ASSERT_EQUAL(om_baseline_color(p.s, p.buf, p.n, NULL, (om_color_choice)choice, most, NULL, &r),
				OM_OK);
			CU_ASSERT_EQUAL(r.blocks, most);
			check(&p, &r);
			CU_ASSERT_EQUAL(om_baseline_color(p.s, p.buf, p.n, NULL, (om_color_choice)choice, most - 1, NULL, &r),
				OM_BUDGET);
			CU_ASSERT_PTR_NOT_NULL(strstr(om_message(p.s), "are live at step"));
		}
		drop(&p);
	}
}

/* A random partial order of buffers that are disjoint in time; all other pairs
 * interfere. */
static om_interference_list
random_order(struct problem *p)
{
	bool (*before)[MAX] = om_allocn(p->mem, sizeof *before, MAX);
	uint32_t (*pair)[2] = om_allocn(p->mem, sizeof *pair, MAX * MAX);
	om_interference_list open = {.pair = (const uint32_t (*)[2])pair};

	for (uint32_t i = 0; i < p->n; i++)
		for (uint32_t k = 0; k < p->n; k++)
			before[i][k] = p->buf[i].live->upper <= p->buf[k].live->lower && below(p, 3) == 0;
	for (uint32_t m = 0; m < p->n; m++)
		for (uint32_t i = 0; i < p->n; i++)
			for (uint32_t k = 0; k < p->n; k++)
				before[i][k] |= before[i][m] && before[m][k];
	for (uint32_t i = 0; i < p->n; i++)
		for (uint32_t k = 0; k < i; k++)
			if (!before[i][k] && !before[k][i] && p->buf[i].bytes && p->buf[k].bytes) {
				pair[open.npair][0] = i;
				pair[open.npair++][1] = k;
			}
	return open;
}

static void
check_order(struct problem *p, const om_interference_list *open)
{
	for (uint64_t k = 0; k < open->npair; k++) {
		const om_buffer *a = &p->buf[open->pair[k][0]], *b = &p->buf[open->pair[k][1]];
		CU_ASSERT(a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset);
	}
}

static void
open_orders_are_respected(void)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct problem p;
		om_baseline_result r;

		make(&p, seed, 1);
		const om_interference_list open = random_order(&p);
		for (int way = 0; way < 4; way++) {
			const om_status st = way < 2
				? om_baseline_nnc(p.s, p.buf, p.n, &open, (om_nnc_rule)way, 0, NULL, &r)
				: om_baseline_color(p.s, p.buf, p.n, &open, (om_color_choice)(way - 2), 0, NULL, &r);
			CU_ASSERT_EQUAL(st, OM_OK);
			check(&p, &r);
			check_order(&p, &open);
		}
		drop(&p);
	}
}

static void
fixed_offsets_are_refused(void)
{
	struct problem p;
	om_baseline_result r;

	make(&p, 1, 1);
	p.buf[0].fixed = 64;
	CU_ASSERT_EQUAL(om_baseline_nnc(p.s, p.buf, p.n, NULL, OM_NNC_BY_SIZE, 0, NULL, &r), OM_INVALID);
	CU_ASSERT_EQUAL(om_baseline_color(p.s, p.buf, p.n, NULL, OM_COLOR_BYTES, 0, NULL, &r), OM_INVALID);
	CU_ASSERT_EQUAL(om_baseline_pool(p.s, p.buf, p.n, NULL, &r), OM_INVALID);
	p.buf[0].fixed = OM_OFFSET_FREE;
	p.buf[0].bytes = INT64_MAX;
	CU_ASSERT_EQUAL(om_baseline_nnc(p.s, p.buf, p.n, NULL, OM_NNC_BY_SIZE, 0, NULL, &r), OM_INVALID);
	drop(&p);
	CU_ASSERT_EQUAL((p.s = om_session_new(), om_baseline_nnc(p.s, NULL, 0, NULL, OM_NNC_PAPER, 0, NULL, &r)), OM_OK);
	CU_ASSERT_EQUAL(om_baseline_color(p.s, NULL, 0, NULL, OM_COLOR_BYTES, 0, NULL, &r), OM_OK);
	CU_ASSERT_EQUAL(r.pack.height, 0);
	om_session_free(p.s);
}

/* ---- Programs. ---- */

/* Bytes of an arena that is valid in any order. */
static uint64_t
open_bytes(const char *text, const char *passes)
{
	bench t = bench_open();
	uint64_t bytes = 0;

	om_status st = bench_read(&t, text);
	if (st == OM_OK)
		st = om_host_request(t.h, &(om_plan_request)OM_PLAN_REQUEST(.parallel_safe = true));
	if (st == OM_OK)
		st = om_host_run(t.h, t.p, passes);
	if (st == OM_OK)
		st = om_plan_verify(t.s, t.p, t.p->plan);
	if (st == OM_OK)
		bytes = t.p->plan->arena[0].bytes;
	else
		printf("# %s\n", om_message(t.s));
	bench_close(&t);
	return bytes;
}

#define HEAD "program \"\" ir 8 opset 13\n^g(%x: float32[160]) {\n%axis = const int64[] {0}\n"

static void
a_diamond_needs_all_in_any_order(void)
{
	static const char *const diamond = HEAD "%a = Softmax(%x)\n%b = CumSum(%a, %axis)\n"
		"%c = CumSum(%a, %axis)\n%d = Softmax(%b)\n%e = Softmax(%c)\n%y = MatMul(%d, %e)\nret %y\n}\n";
		/* Two independent chains; each alone needs two. */
	static const char *const chains = HEAD "%a = Softmax(%x)\n%b = Exp(%a)\n%c = Softmax(%b)\n"
		"%d = Neg(%x)\n%e = Exp(%d)\n%f = Softmax(%e)\n%y = ReduceSum(%c)\n%z = ReduceSum(%f)\nret %y, %z\n}\n";

	CU_ASSERT_EQUAL(open_bytes(diamond, "pack=nnc-code"), 3200);
	CU_ASSERT_EQUAL(open_bytes(diamond, "pack=nnc-paper"), 3200);
	CU_ASSERT_EQUAL(open_bytes(diamond, "pack=color"), 3200);
	CU_ASSERT_EQUAL(open_bytes(chains, "pack=nnc-code"), 2560);
	CU_ASSERT_EQUAL(open_bytes(chains, "pack=nnc-paper"), 2560);
	CU_ASSERT_EQUAL(open_bytes(chains, "pack=color-least"), 2560);
}

/* Two bodies of one If share bytes; a body and the inputs of the If do not. */
static void
branches_share_in_any_order(void)
{
	static const char *const text = "program \"\" ir 8 opset 13\n^g(%x: float32[160], %go: bool[]) {\n"
		"%a = Softmax(%x)\n%y = If(%go) {then_branch = ^t() {\n%b = Neg(%a)\n%c = Softmax(%b)\nret %c\n}, "
		"else_branch = ^e() {\n%d = Exp(%a)\n%f = Softmax(%d)\nret %f\n}}\n%z = Neg(%y)\n%w = Softmax(%z)\nret %w\n}\n";

	const uint64_t bytes = open_bytes(text, "pack=nnc-code");
	CU_ASSERT(bytes > 0);
	CU_ASSERT_EQUAL(bytes, open_bytes(text, "pack=color-least"));
}

static CU_TestInfo share_tests[] = {
	{"all strategies are valid on random problems", all_ways_are_valid_on_random_problems},
	{"limits are kept or refused", limits_are_met_or_refused},
	{"searches that end early say so", limited_searches_say_so},
	{"partial orders are respected", open_orders_are_respected},
	{"fixed offsets are refused", fixed_offsets_are_refused},
	{"a diamond shares nothing in any order", a_diamond_needs_all_in_any_order},
	{"branches share in any order", branches_share_in_any_order},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("ways to share", share_tests);
