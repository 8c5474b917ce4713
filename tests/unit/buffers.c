/* SPDX-License-Identifier: Apache-2.0 */
/* From programs to buffers and plans. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "onnxmem/builder.h"
#include "onnxmem/opdef.h"
#include "onnxmem/plan.h"
#include "tests/fixtures.h"
#include "unit.h"
#include "alloc/buffers.h"
#include "opdef/max_sizes.h"
#include "ir/edit.h"

static om_status
try(bench *b, const char *text, const char *passes)
{
	*b = bench_open();
	return bench_plan(b, text, passes);
}

static const om_placement *
place(const bench *b, const char *name)
{
	return &b->p->plan->place[om_prog_find(b->p, name)->id];
}

#define HEAD "program \"\" ir 8 opset 13\n"

static void
every_value_has_its_kind(void)
{
	bench b;

	unit_start(&b, HEAD "^g(%x: float32[4], %d: float32[1] = {2.0}) {\n%w = const float32[1] {1.0}\n"
		"%k = Neg(%w)\n%a = Mul(%x, %k)\n%v = Identity(%a)\n%f = Identity(%x)\n%u = Neg(%a)\n"
		"%t = Add(%v, %f)\n%y = ReduceMax(%t) {axes = [0]}\nret %y, %x, %k\n}\n", "views,inplace,pack");
	CU_ASSERT_EQUAL(place(&b, "x")->where, OM_EXTERNAL);
	CU_ASSERT_EQUAL(place(&b, "d")->where, OM_EXTERNAL);
	CU_ASSERT_EQUAL(place(&b, "y")->where, OM_EXTERNAL);
	CU_ASSERT_EQUAL(place(&b, "f")->where, OM_EXTERNAL);
	CU_ASSERT_EQUAL(place(&b, "w")->where, OM_WEIGHT);
	CU_ASSERT_EQUAL(place(&b, "k")->where, OM_WEIGHT);
	CU_ASSERT_EQUAL(place(&b, "a")->where, OM_IN_ARENA);
	CU_ASSERT_EQUAL(place(&b, "a")->bytes, 64);
	CU_ASSERT_EQUAL(place(&b, "v")->where, OM_IN_ARENA);
	CU_ASSERT_EQUAL(place(&b, "v")->bytes, 16);
	CU_ASSERT_EQUAL(place(&b, "v")->offset, place(&b, "a")->offset);
	CU_ASSERT_EQUAL(place(&b, "u")->where, OM_IN_ARENA);
	CU_ASSERT_EQUAL(b.p->plan->nalias, 3);
	CU_ASSERT_EQUAL(b.p->plan->arena->bytes, 128);
	CU_ASSERT_EQUAL(b.p->plan->arena->naive, 256);
	CU_ASSERT_EQUAL(om_plan_verify(b.s, b.p, b.p->plan), OM_OK);
	bench_close(&b);
}

static void
why(const bench *b, const char *name, const char *sentence)
{
	const om_value *v = om_prog_find(b->p, name);
	const char *got = om_value_unplanned(b->p, v, om_max_sizes_new(b->p, b->mem)[v->id]);

	if (!got || strcmp(got, sentence) != 0)
		printf("# %s: wanted %s, got %s\n", name, sentence, got ? got : "none");
	CU_ASSERT(got && strcmp(got, sentence) == 0);
}

static void
reasons(void)
{
	bench b;

	unit_start(&b, HEAD "^g(%x: float32[4], %s: string[2], %n: float32[N]) {\n"
		"%a = NonZero(%x)\n%b = Transpose(%a)\n%c = Identity(%s)\n%d = Neg(%n)\n%e = test::Other(%x)\n"
		"%q = SequenceConstruct(%x)\n%y = Neg(%x)\n%f = Neg(%x)\nret %y\n}\n", "liveness");
	why(&b, "a", "data-dependent shape of NonZero, at most 32 bytes");
	why(&b, "b", "follows from data-dependent shape of NonZero, at most 32 bytes");
	why(&b, "c", "string elements");
	why(&b, "d", "follows from open dims of input n");
	why(&b, "e", "unknown element type");
	CU_ASSERT_PTR_NULL(om_value_unplanned(b.p, om_prog_find(b.p, "f"), 0));
	CU_ASSERT_PTR_NULL(om_value_unplanned(b.p, om_prog_find(b.p, "x"), 0));
	CU_ASSERT_PTR_NULL(om_value_unplanned(b.p, om_prog_find(b.p, "y"), 0));
	bench_close(&b);
}

static void
what_takes_no_part_has_no_place(void)
{
	bench b;

	unit_start(&b, HEAD "^g(%x: float32[4], %c: bool[]) {\n%a = Neg(%x)\n"
		"%z = If(%c) {then_branch = ^t() {\n%u = Exp(%a)\nret %u\n}, else_branch = ^e() {\nret %a\n}}\n"
		"%y = Neg(%x)\nret %y\n}\n", "prune,pack");
	CU_ASSERT_EQUAL(place(&b, "a")->where, OM_UNUSED);
	CU_ASSERT_EQUAL(place(&b, "u")->where, OM_UNUSED);
	CU_ASSERT_EQUAL(place(&b, "z")->where, OM_UNUSED);
	CU_ASSERT_EQUAL(b.p->plan->arena->bytes, 0);
	CU_ASSERT_EQUAL(om_plan_verify(b.s, b.p, b.p->plan), OM_OK);
	bench_close(&b);
}

/* Its results may be larger than what the other branch gives. */
static void
a_branch_is_never_taken(void)
{
	bench b;

	unit_start(&b, HEAD "^g(%x: float32[2,4]) {\n%yes = const bool[] {1}\n"
		"%z = If(%yes) {then_branch = ^t() {\n%u = Exp(%x)\nret %u\n}, else_branch = ^e() {\n"
		"%v = Concat(%x, %x) {axis = 0}\n%w = Exp(%v)\nret %w\n}}\n"
		"%y = Neg(%z)\nret %y\n}\n", "shapes,liveness,pack");
	CU_ASSERT_EQUAL(om_value_bytes(om_prog_find(b.p, "z")), 32);
	CU_ASSERT_EQUAL(om_value_bytes(om_prog_find(b.p, "w")), 64);
	CU_ASSERT_EQUAL(om_plan_verify(b.s, b.p, b.p->plan), OM_OK);
	bench_close(&b);
}

/* Nothing is known of a condition that has a default alone: what comes out has the size of neither branch, and
 * none is planned. */
static void
a_default_takes_no_branch(void)
{
	bench b;

	unit_start(&b, HEAD "^g(%x: float32[2,4], %yes: bool[] = {1}) {\n"
		"%z = If(%yes) {then_branch = ^t() {\n%u = Exp(%x)\nret %u\n}, else_branch = ^e() {\n"
		"%v = Concat(%x, %x) {axis = 0}\n%w = Exp(%v)\nret %w\n}}\n"
		"%y = Neg(%z)\nret %y\n}\n", "shapes,liveness,pack");
	CU_ASSERT(!om_shape_is_known(&om_prog_find(b.p, "z")->shape));
	CU_ASSERT_EQUAL(om_plan_verify(b.s, b.p, b.p->plan), OM_OK);
	bench_close(&b);
}

/* `n` values of `bytes` each. */
static om_status
plan_many(bench *b, int n, const char *bytes)
{
	char *text;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	fprintf(to, HEAD "^g(%%x: int8[1,%s]) {\n", bytes);
	for (int k = 0; k < n; k++)
		fprintf(to, "%%v%d = Neg(%%x)\n", k);
	fprintf(to, "%%y = Neg(%%v0)\nret %%y\n}\n");
	fclose(to);
	const om_status st = try(b, text, "pack");
	free(text);
	return st;
}

static void
huge_values_are_refused_or_listed(void)
{
	bench b;

	CU_ASSERT_EQUAL(plan_many(&b, 3, "570000000000000000"), OM_OK);
	CU_ASSERT_EQUAL(place(&b, "v0")->where, OM_IN_ARENA);
	bench_close(&b);
	CU_ASSERT_EQUAL(plan_many(&b, 17, "570000000000000000"), OM_INVALID);
	CU_ASSERT_STRING_EQUAL(om_message(b.s),
		"the sum of the bytes of all 17 buffers overflows 63 bits; while running pack");
	bench_close(&b);
	CU_ASSERT_EQUAL(plan_many(&b, 3, "4611686018427387904"), OM_OK);
	CU_ASSERT_EQUAL(place(&b, "v0")->where, OM_UNPLANNED);
	bench_close(&b);
}

/* ---- In place, never over what is still needed. ---- */

static unsigned
below(uint64_t *state, unsigned n)
{
	return (unsigned)om_rng_below(state, n);
}

/* Ops that may all be computed in place, views between them, read at random. */
static char *
random_text(uint64_t seed)
{
	static const char *const one[] = {"Neg", "Exp", "Relu", "Identity", "Abs"};
	static const char *const two[] = {"Add", "Mul", "Sum"};
	const int n = 5 + (int)below(&seed, 40);
	char *text;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	fprintf(to, HEAD "^g(%%v0: float32[64]) {\n%%flat = const int64[2] {8, 8}\n%%long = const int64[1] {64}\n");
	for (int k = 1; k < n; k++) {
		const int from = k > 8 ? k - 8 : 0;
		const int a = from + (int)below(&seed, (unsigned)(k - from));
		const int b = from + (int)below(&seed, (unsigned)(k - from));
		switch (below(&seed, 5)) {
		case 0: case 1: fprintf(to, "%%v%d = %s(%%v%d)\n", k, one[below(&seed, 5)], a); break;
		case 2: case 3: fprintf(to, "%%v%d = %s(%%v%d, %%v%d)\n", k, two[below(&seed, 3)], a, b); break;
		case 4:
			fprintf(to, "%%r%d = Reshape(%%v%d, %%flat)\n%%v%d = Reshape(%%r%d, %%long)\n", k, a, k, k);
			break;
		}
	}
	fprintf(to, "%%y = Sum(%%v%d, %%v%d)\nret %%y\n}\n", n - 1, (n - 1) / 2);
	fclose(to);
	return text;
}

/* Two values with bytes in common: one is a view of the other's storage and
 * nothing was computed there between, or their lifetimes meet at one op at
 * most, in which the second takes the place of the first. */
static bool
may_share(const om_assignment *all, const om_value *a, const om_value *b)
{
	const om_live_interval from = all->live[a->id], to = all->live[b->id];
	const om_backing *at = all->backing;
	const om_value *x = a, *y = b;

	while (at[x->id].store == OM_VIEW)
		x = at[x->id].source;
	while (at[y->id].store == OM_VIEW)
		y = at[y->id].source;
	return x == y || from.last < to.first || to.last < from.first
	    || (from.last == to.first && at[y->id].store == OM_INPLACE)
	    || (to.last == from.first && at[x->id].store == OM_INPLACE);
}

static bool
nobody_overlaps(const om_prog *p)
{
	for (uint32_t i = 0; i < p->nvalue; i++)
		for (uint32_t k = 0; k < i; k++) {
			const om_placement *a = &p->plan->place[i], *b = &p->plan->place[k];
			if (a->where != OM_IN_ARENA || b->where != OM_IN_ARENA
			    || a->offset >= b->offset + b->bytes || b->offset >= a->offset + a->bytes)
				continue;
			if (!may_share(p->assignment, p->values[i], p->values[k])) {
				printf("# %s overlaps %s\n", p->values[i]->name, p->values[k]->name);
				return false;
			}
		}
	return true;
}

static void
nothing_is_overwritten_too_early(void)
{
	for (uint64_t seed = 1; seed <= 400; seed++) {
		char *text = random_text(seed);
		bench b;
		unit_start(&b, text, "prune,views,inplace,pack");
		const uint64_t inplace = b.p->plan->arena->bytes;
		const bool good = nobody_overlaps(b.p) && om_plan_verify(b.s, b.p, b.p->plan) == OM_OK;
		CU_ASSERT(good);
		if (!good)
			printf("# seed %d:\n%s\n# %s\n", (int)seed, text, om_message(b.s));
		CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, "pack=pool-best-fit"), OM_OK);
		CU_ASSERT(nobody_overlaps(b.p) && om_plan_verify(b.s, b.p, b.p->plan) == OM_OK);
		CU_ASSERT(b.p->plan->arena->bytes >= inplace);
		CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, "liveness,pack"), OM_OK);
		CU_ASSERT(nobody_overlaps(b.p) && om_plan_verify(b.s, b.p, b.p->plan) == OM_OK);
		CU_ASSERT(b.p->plan->arena->bytes >= inplace);
		bench_close(&b);
		free(text);
	}
}

static void
nnc_bug(void)
{
	bench b;

	unit_start(&b, HEAD "^g(%x: float32[1]) {\n%p = Exp(%x)\n%a = Log(%p)\n%b = Exp(%x)\n%c = Sum(%a, %b)\n"
		"%d = Mul(%c, %a)\nret %d\n}\n", "views,inplace,pack");
	CU_ASSERT_PTR_EQUAL(b.p->assignment->backing[om_prog_find(b.p, "c")->id].source, om_prog_find(b.p, "b"));
	CU_ASSERT_EQUAL(place(&b, "c")->where, OM_IN_ARENA);
	CU_ASSERT_EQUAL(place(&b, "a")->where, OM_EXTERNAL);  /* in d */
	CU_ASSERT_EQUAL(om_plan_verify(b.s, b.p, b.p->plan), OM_OK);
	bench_close(&b);
}

/* A packer of a third party may know no bound. */
static void
meeting_the_bound_is_optimal(void)
{
	bench b;
	om_arena *mem = om_arena_new();

	unit_start(&b, HEAD "^g(%x: float32[4]) {\n%a = Neg(%x)\n%y = ReduceMax(%a) {axes = [0]}\nret %y\n}\n", "views,inplace");
	om_buffers *buffers = om_buffers_new(b.p, b.p->assignment, mem);
	CU_ASSERT_EQUAL_FATAL(buffers->n, 1);
	buffers->buf[0].offset = 0;
	om_plan_new(b.p, buffers, &(om_pack_result){.height = 64, .status = OM_PACK_FEASIBLE}, "theirs");
	CU_ASSERT_EQUAL(b.p->plan->arena->status, OM_PACK_OPTIMAL);
	CU_ASSERT_EQUAL(b.p->plan->arena->lower_bound, 64);
	om_plan_new(b.p, buffers, &(om_pack_result){.height = 128, .status = OM_PACK_FEASIBLE}, "theirs");
	CU_ASSERT_EQUAL(b.p->plan->arena->status, OM_PACK_FEASIBLE);
	om_arena_free(mem);
	bench_close(&b);
}

/* A value of a size that only data decide is in no place. */
static void
a_plan_of_nothing_is_not_optimal(void)
{
	static const char *const text[] = {
		HEAD "^g(%x: float32[64,512,16], %l: int64[1]) {\n%r = ReduceSum(%x, %l)\n%y = Relu(%r)\nret %y\n}\n",
		HEAD "^g(%x: float32[64]) {\n%y = Relu(%x)\nret %y\n}\n",
	};

	for (int k = 0; k < 2; k++) {
		bench b;
		unit_start(&b, text[k], "views,inplace,pack");
		CU_ASSERT_EQUAL(b.p->plan->arena->bytes, 0);
		CU_ASSERT_EQUAL(b.p->plan->nunplanned, k == 0);
		CU_ASSERT_EQUAL(b.p->plan->arena->status, k == 0 ? OM_PACK_FEASIBLE : OM_PACK_OPTIMAL);
		bench_close(&b);
	}
}

static CU_TestInfo buffers_tests[] = {
	{"every value has its kind of place", every_value_has_its_kind},
	{"what is not planned has a reason", reasons},
	{"what takes no part has no place", what_takes_no_part_has_no_place},
	{"a branch is never taken", a_branch_is_never_taken},
	{"a default takes no branch", a_default_takes_no_branch},
	{"a plan that meets the bound is optimal", meeting_the_bound_is_optimal},
	{"a plan of nothing is not optimal", a_plan_of_nothing_is_not_optimal},
	{"huge values are refused or listed", huge_values_are_refused_or_listed},
	{"in place where the value is not needed again (NNC's case)", nnc_bug},
	{"400 random graphs: nothing is overwritten too early", nothing_is_overwritten_too_early},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("buffers", buffers_tests);
