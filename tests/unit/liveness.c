/* SPDX-License-Identifier: Apache-2.0 */
/* Lifetimes: sets against steps, on programs that are written as text. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "ir/live_interval.h"
#include "base/rng.h"
#include "onnxmem/builder.h"
#include "onnxmem/opdef.h"
#include "tests/fixtures.h"
#include "unit.h"
#include "ir/edit.h"
#include "ir/liveness.h"

/* "a b c", by id */
static bool
set_is(const bench *b, bool after, const char *op_of, const char *names)
{
	const om_value **v;
	const om_op *op = om_prog_find(b->p, op_of)->def;
	const size_t n = after ? om_live_out(b->p, op, b->mem, &v) : om_live_in(b->p, op, b->mem, &v);
	const char *got = "";

	for (size_t k = 0; k < n; k++)
		got = om_printf(b->mem, "%s%s%s", got, k ? " " : "", v[k]->name);
	if (strcmp(got, names) != 0)
		printf("# %s %s: wanted {%s}, got {%s}\n", after ? "after" : "before", op_of, names, got);
	return strcmp(got, names) == 0;
}

static bool
lives(const bench *b, const char *name, uint32_t first, uint32_t last)
{
	const om_live_interval at = b->p->assignment->live[om_prog_find(b->p, name)->id];

	if (at.first != first || at.last != last)
		printf("# %s: wanted %u..%u, got %u..%u\n", name, first, last, at.first, at.last);
	return at.first == first && at.last == last;
}

static bool
lives_in(const bench *b, const char *name, uint32_t range, uint32_t first, uint32_t last)
{
	om_steps at;

	return om_live_interval_range(&b->p->assignment->live[om_prog_find(b->p, name)->id], range, &at)
	    && at.first == first && at.last == last;
}

#define HEAD "program \"\" ir 8 opset 13\n"

static void
the_textbook(void)
{
	bench b;

	unit_start(&b, HEAD "^g(%b: float32[4], %c: float32[4], %f: float32[4]) {\n"
		"%a = Add(%b, %c)\n%d = Neg(%a)\n%e = Add(%d, %f)\nret %e\n}\n", "liveness");
	CU_ASSERT(set_is(&b, false, "a", "b c f"));
	CU_ASSERT(set_is(&b, true, "a", "f a"));
	CU_ASSERT(set_is(&b, false, "d", "f a"));
	CU_ASSERT(set_is(&b, true, "d", "f d"));
	CU_ASSERT(set_is(&b, false, "e", "f d"));
	CU_ASSERT(set_is(&b, true, "e", "e"));
	CU_ASSERT(lives(&b, "a", 0, 1) && lives(&b, "d", 1, 2) && lives(&b, "e", 2, 3));
	bench_close(&b);
}

static void
branches(void)
{
	bench b;

	unit_start(&b, HEAD "^g(%x: float32[4], %c: bool[]) {\n"
		"%t = Neg(%x)\n"
		"%z, %y = If(%c) {then_branch = ^a() {\n%u = Exp(%t)\nret %u, %t\n},\n"
		"else_branch = ^b() {\n%v = Exp(%t)\n%w = Exp(%v)\nret %w, %w\n}}\n"
		"%r = Neg(%z)\nret %r\n}\n", "liveness");
	/* steps: t 0, If 1, u 2, end of a 3, v 4, w 5, end of b 6, end of If 7 */
	CU_ASSERT(lives(&b, "t", 0, 4));
	CU_ASSERT(lives_in(&b, "z", 0, 3, 3) && lives_in(&b, "z", 1, 6, 8));  /* not in v and w */
	CU_ASSERT(lives(&b, "u", 2, 3) && lives(&b, "w", 5, 6));
	CU_ASSERT(lives(&b, "z", 3, 8));
	CU_ASSERT(lives(&b, "y", 3, 7));
	CU_ASSERT(set_is(&b, false, "z", "c t"));
	CU_ASSERT(set_is(&b, true, "z", "z"));
	CU_ASSERT(set_is(&b, true, "v", "v"));
	bench_close(&b);
}

static void
loops(void)
{
	bench b;

	unit_start(&b, HEAD "^g(%x: float32[4], %m: int64[], %go: bool[]) {\n"
		"%w = Neg(%x)\n%s0 = Abs(%x)\n"
		"%s, %all = Loop(%m, %go, %s0) {body = ^r(%i: int64[], %g: bool[], %p: float32[4]) {\n"
		"%a = Mul(%p, %w)\n%b = Exp(%a)\nret %g, %b, %a\n}}\n"
		"%y = Neg(%s)\nret %y\n}\n", "liveness");
	/* steps: w 0, s0 1, Loop 2, a 3, b 4, end of iteration 5, end of Loop 6, y 7 */
	CU_ASSERT(lives(&b, "w", 0, 6));
	CU_ASSERT(lives(&b, "s0", 1, 2));
	CU_ASSERT(lives_in(&b, "p", 0, 2, 3) && lives_in(&b, "p", 1, 5, 6));  /* not from its last use to the end */
	CU_ASSERT(lives(&b, "i", 2, 3) && lives(&b, "g", 2, 5));
	CU_ASSERT(lives(&b, "a", 3, 5) && lives(&b, "b", 4, 5));
	CU_ASSERT(lives(&b, "s", 6, 7));
	CU_ASSERT(lives(&b, "all", 2, 6));
	CU_ASSERT(set_is(&b, false, "a", "w all g p"));
	CU_ASSERT(set_is(&b, true, "b", "w all g a b"));
	CU_ASSERT(set_is(&b, true, "s", "s"));
	bench_close(&b);
}

static void
scans(void)
{
	bench b;

	unit_start(&b, HEAD "^g(%x: float32[5,4]) {\n"
		"%t = Neg(%x)\n%s0 = ReduceSum(%t) {keepdims = 1}\n"
		"%s, %all = Scan(%s0, %t) {num_scan_inputs = 1, body = ^r(%p: float32[1,1], %q: float32[4]) {\n"
		"%a = Add(%p, %q)\nret %p, %a\n}}\n"
		"%y = Neg(%all)\nret %y, %s\n}\n", "liveness");
	/* steps: t 0, s0 1, Scan 2, a 3, end of iteration 4, end of Scan 5, y 6 */
	CU_ASSERT(lives(&b, "t", 0, 5));
	CU_ASSERT(lives(&b, "s0", 1, 2));
	CU_ASSERT(lives(&b, "p", 2, 5) && lives(&b, "q", 2, 3));
	CU_ASSERT(lives(&b, "all", 2, 6));
	CU_ASSERT(lives(&b, "a", 3, 4));
	bench_close(&b);
}

/* ---- Sets and steps agree. ---- */

struct gen {
	uint64_t state;
	FILE *to;
	int next, known[64], nknown, depth;
};

static unsigned
below(struct gen *g, unsigned n)
{
	return (unsigned)om_rng_below(&g->state, n);
}

static int
any(struct gen *g)
{
	return g->known[below(g, (unsigned)g->nknown)];
}

static int
fresh(struct gen *g)
{
	const int id = g->next++;

	if (g->nknown < 64)
		g->known[g->nknown++] = id;
	else
		g->known[below(g, 64)] = id;
	return id;
}

static void block(struct gen *g, unsigned nop, int results);

static void
control(struct gen *g)
{
	struct gen outside = *g;
	const bool loops = below(g, 2);
	const int a = g->next++;

	g->depth++;
	if (loops) {
		const int init = any(g), i = g->next++, c = g->next++, p = fresh(g);
		fprintf(g->to, "%%v%d = Loop(%%m, %%c, %%v%d) {body = ^l(%%v%d: int64[], %%v%d: bool[], "
			"%%v%d: float32[4]) {\n", a, init, i, c, p);
		block(g, 1 + below(g, 4), 0);
		fprintf(g->to, "ret %%v%d, %%v%d\n}}\n", c, any(g));
	} else {
		fprintf(g->to, "%%v%d = If(%%c) {then_branch = ^t() {\n", a);
		block(g, below(g, 4), 1);
		outside.state = g->state;
		outside.next = g->next;
		*g = outside;
		g->depth++;
		fprintf(g->to, "}, else_branch = ^e() {\n");
		block(g, below(g, 4), 1);
		fprintf(g->to, "}}\n");
	}
	outside.state = g->state;
	outside.next = g->next;
	*g = outside;
	g->known[below(g, (unsigned)g->nknown)] = a;
}

static void
block(struct gen *g, unsigned nop, int results)
{
	for (unsigned k = 0; k < nop; k++) {
		if (g->depth < 3 && below(g, 5) == 0) {
			control(g);
			continue;
		}
		const int a = any(g), b = any(g), v = fresh(g);
		if (below(g, 2))
			fprintf(g->to, "%%v%d = Neg(%%v%d)\n", v, a);
		else
			fprintf(g->to, "%%v%d = Add(%%v%d, %%v%d)\n", v, a, b);
	}
	if (results)
		fprintf(g->to, "ret %%v%d\n", any(g));
}

static char *
random_text(uint64_t seed)
{
	struct gen g = {.state = seed * 77, .known = {0}, .nknown = 1, .next = 1};
	char *text;
	size_t size;

	g.to = open_memstream(&text, &size);
	fprintf(g.to, HEAD "^g(%%v0: float32[4], %%m: int64[], %%c: bool[]) {\n");
	block(&g, 4 + below(&g, 20), 1);
	fprintf(g.to, "}\n");
	fclose(g.to);
	return text;
}

/* Are there only branches between the block and `inner`, in which values are live as the sets say? */
static bool
is_reached_by_branches(const om_block *b, const om_block *inner)
{
	for (; inner != b && inner->owner; inner = inner->owner->block)
		if (inner->owner->opdef->control != OM_IF)
			return false;
	return inner == b;
}

/* A value in a set has its storage then; a value that has storage before and after an op is in the sets. */
static bool
agrees(const bench *b, const om_op *op)
{
	const om_value **in, **out;
	const size_t nin = om_live_in(b->p, op, b->mem, &in), nout = om_live_out(b->p, op, b->mem, &out);
	const om_live_interval *live = b->p->assignment->live;
	bool ok = true;

	for (size_t k = 0; k < nin; k++)
		ok &= om_live_interval_covers(&live[in[k]->id], op->step, op->step);
	for (size_t k = 0; k < nout; k++)
		ok &= om_live_interval_covers(&live[out[k]->id], op->end, op->end + 1);
	for (uint32_t k = 0; k < b->p->nvalue; k++) {
		const om_value *v = b->p->values[k];
		if (!v->def || v->is_const || !is_reached_by_branches(v->block, op->block) || v->def->end >= op->step
		    || !om_live_interval_covers(&live[k], op->end, op->end + 1))
			continue;
		bool found = false;
		for (size_t i = 0; i < nout; i++)
			found |= out[i] == v;
		ok &= found;
	}
	return ok;
}

static bool
all_agree(const bench *b, const om_block *block_)
{
	for (const om_op *op = block_->first; op; op = op->next) {
		if (!agrees(b, op))
			return false;
		for (uint32_t k = 0; k < op->nbody; k++)
			if (!all_agree(b, op->body[k]))
				return false;
	}
	return true;
}

static void
sets_and_steps_agree(void)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		char *text = random_text(seed);
		bench b;
		unit_start(&b, text, "liveness");
		CU_ASSERT(all_agree(&b, b.p->first));
		if (!all_agree(&b, b.p->first))
			printf("# seed %d:\n%s\n", (int)seed, text);
		bench_close(&b);
		free(text);
	}
}

static CU_TestInfo live_tests[] = {
	{"the sets of the textbook", the_textbook},
	{"branches", branches},
	{"loops", loops},
	{"scans", scans},
	{"sets and steps agree on 300 random programs", sets_and_steps_agree},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("lifetimes", live_tests);
