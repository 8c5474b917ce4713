/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts of programs: those that are found, beside all that there are. */
#include <config.h>

#include <stdio.h>

#include "alloc/part_memory.h"
#include "base/rng.h"
#include "base/sizes.h"
#include "onnxmem/split.h"
#include "unit.h"

enum { OPS = 11 };

/* Ops of one or two earlier values, of sizes that differ. */
static void
random_graph(uint64_t *state, char *text, size_t size)
{
	int at = snprintf(text, size, "program \"t\" ir 8 opset 17\n^g(%%v0: float32[%d]) {\n\t%%w = const float32[40] elided\n",
		(int)(om_rng(state) % 90) + 10);

	for (int k = 1; k <= OPS; k++) {
		const int a = (int)(om_rng(state) % (uint64_t)k), b = (int)(om_rng(state) % (uint64_t)k);
		const char *join = om_rng(state) % 4 ? NULL : om_rng(state) % 2 ? "%w" : "";
		if (!join)
			at += snprintf(text + at, size - (size_t)at, "\t%%v%d = %s(%%v%d)\n", k, om_rng(state) % 2 ? "Relu" : "Exp",
				om_rng(state) % 3 ? k - 1 : a);
		else if (*join)
			at += snprintf(text + at, size - (size_t)at, "\t%%v%d = Concat(%%v%d, %%w) {axis = 0}\n", k, a);
		else
			at += snprintf(text + at, size - (size_t)at, "\t%%v%d = Concat(%%v%d, %%v%d) {axis = 0}\n", k, a, b);
	}
	snprintf(text + at, size - (size_t)at, "\tret %%v%d, %%v%d\n}\n", OPS, OPS / 2);
}

static uint64_t
bytes_of(const om_part_memory *m, uint32_t first, uint32_t end)
{
	om_part_walk w = om_part_walk_at(m, first);

	while (w.end < end)
		om_part_walk_on(&w);
	return om_size_sum(w.peak, w.weights);
}

/* Over all cuts of [first, n) into so many parts that fit: the fewest bytes that cross; UINT64_MAX: there are none. */
static uint64_t
try_all(const om_part_memory *m, uint32_t first, uint32_t parts, uint64_t budget)
{
	uint64_t best = UINT64_MAX;

	if (parts == 1)
		return first < m->n && bytes_of(m, first, m->n) <= budget ? 0 : UINT64_MAX;
	for (uint32_t end = first + 1; end < m->n && bytes_of(m, first, end) <= budget; end++) {
		const uint64_t rest = try_all(m, end, parts - 1, budget), sum = om_size_sum(m->crossing[end], rest);
		best = rest != UINT64_MAX && sum < best ? sum : best;
	}
	return best;
}

static void
check_parts(bench *b, const om_part_memory *m, const om_split_request *r, uint64_t want)
{
	om_split s;
	const om_status st = om_split_find(b->s, b->p, r, b->mem, &s);

	if (want == UINT64_MAX) {
		CU_ASSERT_EQUAL(st, OM_BUDGET);
		return;
	}
	CU_ASSERT_FATAL(is_ok(b->s, st));
	CU_ASSERT_EQUAL(s.crossing, want);
	uint32_t at = 0;
	for (uint32_t k = 0; k < s.n; k++) {
		CU_ASSERT_EQUAL(s.part[k].first, at);
		at += s.part[k].nop;
		CU_ASSERT_EQUAL(s.part[k].bytes, bytes_of(m, s.part[k].first, at));
		CU_ASSERT(s.part[k].bytes <= r->budget);
	}
	CU_ASSERT_EQUAL(at, m->n);
}

/* With a budget alone: as few parts as there can be. */
static void
check_fewest(bench *b, const om_part_memory *m, uint64_t budget)
{
	om_split_request r = OM_SPLIT_REQUEST();
	uint64_t want = UINT64_MAX;

	r.budget = budget;
	for (uint32_t parts = 1; parts <= m->n && want == UINT64_MAX; parts++)
		want = try_all(m, 0, parts, budget);
	check_parts(b, m, &r, want);
}

/* Without a budget: no smaller one is enough for so many parts. */
static void
check_smallest(bench *b, const om_part_memory *m, uint32_t parts)
{
	om_split_request r = OM_SPLIT_REQUEST();
	om_split s;
	uint64_t largest = 0;

	r.parts = parts;
	CU_ASSERT_FATAL(is_ok(b->s, om_split_find(b->s, b->p, &r, b->mem, &s)));
	CU_ASSERT_EQUAL(s.n, parts);
	for (uint32_t k = 0; k < s.n; k++)
		largest = s.part[k].bytes > largest ? s.part[k].bytes : largest;
	for (uint32_t n = 1; n <= parts; n++)
		CU_ASSERT_EQUAL(try_all(m, 0, n, largest - 1), UINT64_MAX);
	/* There are parts whatever plans of others have shown. */
	for (uint32_t k = 1; k <= 3; k++) {
		const om_split_part whole = {0, m->n, k * bytes_of(m, 0, m->n) / 2, 0, 0};
		om_split again;
		r.planned = &whole;
		r.nplanned = 1;
		CU_ASSERT(is_ok(b->s, om_split_find(b->s, b->p, &r, b->mem, &again)));
	}
	CU_ASSERT_EQUAL(try_all(m, 0, parts, largest), s.crossing);
}

static void
cuts_are_the_best_of_all(void)
{
	uint64_t state = 11;

	for (int t = 0; t < 60; t++) {
		char text[2048];
		bench b;
		random_graph(&state, text, sizeof text);
		unit_start(&b, text, "shapes,fold,prune,liveness,views,inplace,loops");
		const om_part_memory m = om_part_memory_new(b.p, b.mem);
		const uint64_t whole = bytes_of(&m, 0, m.n);
		for (uint32_t k = 1; k <= 4 && k <= m.n; k++) {
			om_split_request r = OM_SPLIT_REQUEST();
			r.parts = k;
			r.budget = whole / 2 + om_rng(&state) % whole;
			check_parts(&b, &m, &r, try_all(&m, 0, k, r.budget));
			check_fewest(&b, &m, whole / 4 + om_rng(&state) % whole);
			check_smallest(&b, &m, k);
		}
		bench_close(&b);
	}
}

static const char chain[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[64]) {\n"
	"	%a = Exp(%x)\n"
	"	%b = Exp(%a)\n"
	"	%c = Add(%b, %a)\n"
	"	%d = Exp(%c)\n"
	"	ret %d, %a\n"
	"}\n";

static void
a_part_has_what_it_reads_and_gives(void)
{
	bench b;

	unit_start(&b, chain, "shapes,fold,prune");
	CU_ASSERT_FATAL(is_ok(b.s, om_prog_extract(b.s, b.p, 1, 2)));
	CU_ASSERT(is_ok(b.s, om_verify(b.s, b.p)));
	CU_ASSERT_EQUAL(b.p->first->nop, 2);
	CU_ASSERT_EQUAL_FATAL(b.p->first->nparam, 1);
	CU_ASSERT_STRING_EQUAL(b.p->first->param[0]->name, "a");
	CU_ASSERT_EQUAL_FATAL(b.p->first->nresult, 1);
	CU_ASSERT_STRING_EQUAL(b.p->first->result[0]->name, "c");
	bench_close(&b);
}

static void
what_cannot_be_is_told(void)
{
	om_split_request r = OM_SPLIT_REQUEST();
	om_split s;
	bench b;

	unit_start(&b, chain, "shapes,fold,prune");
	CU_ASSERT(is_told(b.s, om_prog_extract(b.s, b.p, 3, 2), OM_USAGE, "a part of 2 ops from 3, but 4 run"));
	r.parts = 2;
	CU_ASSERT(is_told(b.s, om_split_find(b.s, b.p, &r, b.mem, &s), OM_USAGE, "with storage"));
	CU_ASSERT_FATAL(is_ok(b.s, om_host_run(b.h, b.p, "liveness,views,inplace,loops")));
	r.parts = 5;
	CU_ASSERT(is_told(b.s, om_split_find(b.s, b.p, &r, b.mem, &s), OM_USAGE, "cannot be cut into 5 parts: 4 of its ops run"));
	r = OM_SPLIT_REQUEST();
	CU_ASSERT(is_told(b.s, om_split_find(b.s, b.p, &r, b.mem, &s), OM_USAGE, "neither"));
	r.budget = 300;
	CU_ASSERT(is_told(b.s, om_split_find(b.s, b.p, &r, b.mem, &s), OM_BUDGET, "alone needs"));
	bench_close(&b);
}

static CU_TestInfo split_tests[] = {
	{"cuts are the best of all", cuts_are_the_best_of_all},
	{"a part has what it reads and gives", a_part_has_what_it_reads_and_gives},
	{"what cannot be is told", what_cannot_be_is_told},
	CU_TEST_INFO_NULL
};
UNIT_SUITE("split", split_tests);
