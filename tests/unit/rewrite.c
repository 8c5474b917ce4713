/* SPDX-License-Identifier: Apache-2.0 */
/* Uses of values, names, and rewriting. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "onnxmem/rewrite.h"
#include "tests/fixtures.h"
#include "unit.h"
#include "ir/clone.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "opdef/rewrite_internal.h"
#include "ir/steps.h"

static bench
start(const char *body)
{
	bench b = bench_open();
	const char *text = om_printf(b.mem,
		"program \"p\" ir 8 opset 13\n^main(%%x: float32[4], %%c: bool[], %%m: int64[]) {\n%s}\n", body);

	CU_ASSERT_FATAL(is_ok(b.s, bench_plan(&b, text, "inline,shapes")));
	return b;
}

static om_value *
named(const bench *b, const char *name)
{
	om_value *v = om_prog_find(b->p, name);

	CU_ASSERT_PTR_NOT_NULL_FATAL(v);
	return v;
}

/* "op:input op:input ret:result": the uses of a value, in order. */
static void
expect_uses(const bench *b, const char *name, const char *want)
{
	char *text;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	for (const om_use *u = named(b, name)->first_use; u; u = u->next)
		fprintf(to, "%s%s:%u", u->prev ? " " : "", u->op ? om_op_label(u->op) : "ret", u->index);
	fclose(to);
	if (strcmp(text, want) != 0)
		printf("# uses of %s: %s, not %s\n", name, text, want);
	CU_ASSERT_STRING_EQUAL(text, want);
	CU_ASSERT_EQUAL(om_verify(b->s, b->p), OM_OK);
	free(text);
}

/* ---- Uses. ---- */

#define BODIES \
	"	%a = Neg(%x)\n" \
	"	%b = Add(%a, %a)\n" \
	"	%y = If(%c) {then_branch = ^t() {\n" \
	"		%t = Mul(%a, %b)\n" \
	"		ret %t\n" \
	"	}, else_branch = ^e() {\n" \
	"		ret %a\n" \
	"	}}\n" \
	"	%z = Add(%y, %a)\n" \
	"	ret %z, %a\n"

static void
uses_are_kept(void)
{
	bench b = start(BODIES);
	om_value *a = named(&b, "a"), *x = named(&b, "x"), *bv = named(&b, "b");

	/* The text is read from the inside: what a body holds comes before its owner is whole. */
	expect_uses(&b, "a", "b:0 b:1 t:0 ret:0 z:1 ret:1");
	CU_ASSERT_EQUAL(a->nuse, 6);
	om_op_set_in(bv->def, 1, x);
	expect_uses(&b, "a", "b:0 t:0 ret:0 z:1 ret:1");
	expect_uses(&b, "x", "a:0 b:1");
	om_op_set_in(bv->def, 1, x);  /* once more: at the end of the list */
	expect_uses(&b, "x", "a:0 b:1");
	om_op_set_inputs(b.p, bv->def, 1, &x);
	om_op_set_inputs(b.p, bv->def, 2, (om_value *[]){a, x});
	expect_uses(&b, "a", "t:0 ret:0 z:1 ret:1 b:0");
	om_block_set_result(b.p->first, 1, x);
	expect_uses(&b, "x", "a:0 b:1 ret:1");
	om_block_clear_results(b.p->first);
	om_block_add_result(b.p->first, named(&b, "z"));
	expect_uses(&b, "x", "a:0 b:1");
	expect_uses(&b, "z", "ret:0");
	bench_close(&b);
}

/* With all that its bodies read, and back. */
static void
removed_ops_read_nothing(void)
{
	bench b = start(BODIES);
	om_op *branches = named(&b, "y")->def, *z = named(&b, "z")->def;
	om_value *y = named(&b, "y");

	om_op_set_in(z, 0, named(&b, "x"));
	om_op_remove(branches);
	expect_uses(&b, "a", "b:0 b:1 z:1 ret:1");
	expect_uses(&b, "b", "");
	om_op_insert(z, branches);
	y->def = branches;
	expect_uses(&b, "a", "b:0 b:1 z:1 ret:1 t:0 ret:0");
	om_op_remove(branches);
	om_block_remove(branches->body[0]);
	om_block_remove(branches->body[1]);
	expect_uses(&b, "b", "");
	bench_close(&b);
}

static void
replacing_is_by_uses(void)
{
	bench b = start(BODIES);

	om_value_replace(named(&b, "a"), named(&b, "a"));
	expect_uses(&b, "a", "b:0 b:1 t:0 ret:0 z:1 ret:1");
	om_value_replace(named(&b, "a"), named(&b, "x"));
	expect_uses(&b, "a", "");
	expect_uses(&b, "x", "a:0 b:0 b:1 t:0 ret:0 z:1 ret:1");
	CU_ASSERT_PTR_EQUAL(b.p->first->result[1], named(&b, "x"));
	bench_close(&b);
}

static void
copies_are_uses(void)
{
	bench b = start(BODIES);
	om_arena *mem = om_arena_new();
	om_clone c = om_clone_new(b.s, b.p, b.p, mem, "copy_");
	om_op *copy;

	CU_ASSERT_EQUAL(om_op_clone(&c, named(&b, "y")->def, b.p->first, named(&b, "z")->def, &copy), OM_OK);
	expect_uses(&b, "b", "t:1 copy_t:1");
	om_arena_free(mem);
	bench_close(&b);
}

static void
expect_broken(bench *b, const char *want)
{
	CU_ASSERT_EQUAL(om_verify(b->s, b->p), OM_IR);
	if (!strstr(om_message(b->s), want))
		printf("# %s\n", om_message(b->s));
	CU_ASSERT_PTR_NOT_NULL(strstr(om_message(b->s), want));
}

static void
wrong_uses_are_found(void)
{
	bench b = start(BODIES);
	om_value *a = named(&b, "a"), *x = named(&b, "x");
	om_op *z = named(&b, "z")->def, *add = named(&b, "b")->def;
	om_use *first = a->first_use, *second = first->next;

	z->in[1] = x;            /* past the builder */
	expect_broken(&b, "the use of x by Add is not recorded");
	z->in[1] = a;
	b.p->first->result[1] = x;
	expect_broken(&b, "the use of x by its results is not recorded");
	b.p->first->result[1] = a;
	a->nuse++;
	expect_broken(&b, "a: has 6 uses, but counts 7 and lists 6");
	a->nuse--;
	second->prev = NULL;
	expect_broken(&b, "a: the list of its uses is broken");
	second->prev = first;
	a->first_use = second;   /* one is missing */
	second->prev = NULL;
	expect_broken(&b, "a: has 6 uses, but counts 6 and lists 5");
	a->first_use = first;
	second->prev = first;
	om_use *const last = a->last_use;
	last->next = first;      /* a circle */
	expect_broken(&b, "a: the list of its uses is broken");
	last->next = NULL;
	a->last_use = first;
	expect_broken(&b, "a: has 6 uses");
	a->last_use = last;
	om_value *const was = add->in[1];
	add->in[1] = NULL;
	expect_broken(&b, "omits input 1, but is recorded as a use of a");
	add->in[1] = was;
	om_use stray = {.value = x, .op = add, .index = 0, .prev = x->last_use};
	x->last_use->next = &stray;  /* of no op */
	x->last_use = &stray;
	x->nuse++;
	expect_broken(&b, "x: ");
	bench_close(&b);
}

/* ---- Names. ---- */

static void
names_are_found(void)
{
	bench b = start(BODIES);
	om_block *g = b.p->first;

	CU_ASSERT_PTR_NULL(om_prog_find(b.p, "t.1"));
	CU_ASSERT_STRING_EQUAL(om_value_fresh(b.p, g, "new")->name, "new");
	CU_ASSERT_STRING_EQUAL(om_value_fresh(b.p, g, "t")->name, "t.1");
	CU_ASSERT_STRING_EQUAL(om_value_fresh(b.p, g, "t")->name, "t.2");
	om_value *v = om_value_new(b.p, g, "t.3");
	CU_ASSERT_STRING_EQUAL(om_value_fresh(b.p, g, "t")->name, "t.4");
	om_value_rename(v, "other");
	CU_ASSERT_PTR_NULL(om_prog_find(b.p, "t.3"));
	CU_ASSERT_PTR_EQUAL(om_prog_find(b.p, "other"), v);
	CU_ASSERT_PTR_EQUAL(om_value_find(g, "other"), v);
	CU_ASSERT_PTR_NULL(om_value_find(g, "t"));          /* it is in a body */
	CU_ASSERT_PTR_EQUAL(om_prog_find(b.p, "t"), named(&b, "t"));
	om_value *twin = om_value_new(b.p, g, "t");         /* of another scope */
	CU_ASSERT_PTR_EQUAL(om_value_find(g, "t"), twin);
	CU_ASSERT_PTR_NOT_EQUAL(om_prog_find(b.p, "t"), twin);
	for (int k = 0; k < 1000; k++)
		om_value_fresh(b.p, g, "many");
	CU_ASSERT_STRING_EQUAL(om_value_fresh(b.p, g, "many")->name, "many.1000");
	CU_ASSERT_EQUAL(om_prog_find(b.p, "many.999")->id + 1, om_prog_find(b.p, "many.1000")->id);
	bench_close(&b);
}

static void
ties_grow(void)
{
	bench b = start("	%y = Neg(%x)\n	%d = Not(%c)\n	%n = Neg(%m)\n	ret %y, %d, %n\n");

	for (uint32_t k = 0; k < 3; k++)
		CU_ASSERT(om_prog_alias_io(b.p, k, k));
	const om_io_alias *old = b.p->io_alias;
	CU_ASSERT_FALSE(om_prog_alias_io(b.p, 0, 0));
	CU_ASSERT(om_prog_is_state(b.p, 2));
	om_prog_clear_ties(b.p);
	CU_ASSERT_FALSE(om_prog_is_state(b.p, 2));
	CU_ASSERT_EQUAL(old[2].param, 2);
	CU_ASSERT(om_prog_alias_io(b.p, 0, 0));
	CU_ASSERT_EQUAL(b.p->nio_alias, 1);
	bench_close(&b);
}

/* ---- Rewriting. ---- */

static const om_pattern any = {.kind = OM_MATCH_ANY, .slot = 1};

static om_value *
first(om_rewriter *w, const om_match *m)
{
	(void)w;
	return m->value[1];
}

static void
expect_rewritten(const char *body, const om_rule *rule, size_t n, uint64_t times, const char *want)
{
	bench b = start(body);
	uint64_t applied[8], sum = 0;

	CU_ASSERT_EQUAL(om_rewrite(b.s, b.p, rule, n, applied), OM_OK);
	CU_ASSERT_EQUAL(om_verify(b.s, b.p), OM_OK);
	b.p->has = 0;
	char *text = text_dump(b.p, 0);
	const char *ops = strchr(strchr(text, '\n') + 1, '\n') + 1;

	for (size_t k = 0; k < n; k++)
		sum += applied[k];
	CU_ASSERT_EQUAL(sum, times);
	if (strcmp(ops, want) != 0)
		printf("# %s", text);
	CU_ASSERT_STRING_EQUAL(ops, want);
	free(text);
	bench_close(&b);
}

/* -(-x) is x. */
static void
trees_match(void)
{
	static const om_pattern
		in = {.kind = OM_MATCH_OP, .slot = 2, .type = "Neg", .in = {&any}},
		once = {.kind = OM_MATCH_OP, .slot = 2, .flags = OM_MATCH_ONCE, .type = "Neg", .in = {&any}},
		twice = {.kind = OM_MATCH_OP, .type = "Neg", .in = {&in}},
		alone = {.kind = OM_MATCH_OP, .type = "Neg", .in = {&once}},
		newer = {.kind = OM_MATCH_OP, .type = "Neg", .since = 14, .in = {&in}},
		older = {.kind = OM_MATCH_OP, .type = "Neg", .until = 12, .in = {&in}},
		foreign = {.kind = OM_MATCH_OP, .domain = "com.microsoft", .type = "Neg", .in = {&in}},
		some = {.kind = OM_MATCH_OP, .type = "Neg", .out = 1, .in = {&in}};
	static const char body[] = "	%a = Neg(%x)\n	%b = Neg(%a)\n	%d = Neg(%b)\n	%e = Neg(%d)\n	%y = Add(%e, %b)\n	ret %y\n";
	static const char all[] = "	%a = Neg(%x)\n	%b = Neg(%a)\n	%d = Neg(%b)\n	%e = Neg(%d)\n	%y = Add(%e, %b)\n	ret %y\n}\n";

	expect_rewritten(body, &(om_rule){"twice", &twice, first}, 1, 2, "	%y = Add(%x, %x)\n	ret %y\n}\n");
	expect_rewritten(body, &(om_rule){"alone", &alone, first}, 1, 2, "	%y = Add(%x, %x)\n	ret %y\n}\n");
	expect_rewritten(body, &(om_rule){"newer", &newer, first}, 1, 0, all);
	expect_rewritten(body, &(om_rule){"older", &older, first}, 1, 0, all);
	expect_rewritten(body, &(om_rule){"foreign", &foreign, first}, 1, 0, all);
	expect_rewritten(body, &(om_rule){"no such output", &some, first}, 1, 0, all);
	expect_rewritten("	%a = Neg(%x)\n	%b = Neg(%a)\n	%y = Add(%a, %b)\n	ret %y\n", &(om_rule){"alone", &alone, first},
		1, 0, "	%a = Neg(%x)\n	%b = Neg(%a)\n	%y = Add(%a, %b)\n	ret %y\n}\n");
}

/* (x + a) - a, where both are the same: a graph, not a tree.  The sum may be either way round. */
static void
graphs_match(void)
{
	static const om_pattern
		again = {.kind = OM_MATCH_ANY, .slot = 3},
		sum = {.kind = OM_MATCH_OP, .slot = 2, .flags = OM_MATCH_SWAP, .type = "Add", .in = {&any, &again}},
		rest = {.kind = OM_MATCH_OP, .type = "Sub", .in = {&sum, &again}};
	static const om_rule rule = {"back", &rest, first};

	expect_rewritten("	%a = Exp(%x)\n	%b = Add(%a, %x)\n	%d = Sub(%b, %x)\n	%y = Neg(%d)\n	ret %y\n", &rule, 1, 1,
		"	%a = Exp(%x)\n	%y = Neg(%a)\n	ret %y\n}\n");
	expect_rewritten("	%a = Exp(%x)\n	%b = Add(%a, %x)\n	%d = Sub(%b, %b)\n	%y = Neg(%d)\n	ret %y\n", &rule, 1, 0,
		"	%a = Exp(%x)\n	%b = Add(%a, %x)\n	%d = Sub(%b, %b)\n	%y = Neg(%d)\n	ret %y\n}\n");
}

/* A swap is by the first order in which all below matches. */
static void
constants_match(void)
{
	static const om_pattern
		c = {.kind = OM_MATCH_CONST, .slot = 2},
		swap = {.kind = OM_MATCH_OP, .flags = OM_MATCH_SWAP, .type = "Mul", .in = {&c, &any}},
		plain = {.kind = OM_MATCH_OP, .type = "Mul", .in = {&c, &any}};
	static const char body[] = "	%k = const float32[] {2.0}\n	%a = Mul(%x, %k)\n	%b = Mul(%k, %a)\n	%y = Neg(%b)\n	ret %y\n";

	expect_rewritten(body, &(om_rule){"swap", &swap, first}, 1, 2, "	%k = const float32[] {2.0}\n	%y = Neg(%x)\n	ret %y\n}\n");
	expect_rewritten(body, &(om_rule){"plain", &plain, first}, 1, 1,
		"	%k = const float32[] {2.0}\n	%a = Mul(%x, %k)\n	%y = Neg(%a)\n	ret %y\n}\n");
}

static om_value *
negated(om_rewriter *w, const om_match *m)
{
	return om_rewrite_op(w, m->value[0]->def, "Neg", 1, &m->value[1]);
}

static om_value *
copied(om_rewriter *w, const om_match *m)
{
	om_rewrite_op(w, m->value[0]->def, "Neg", 1, &m->value[1]);  /* no op reads it */
	return om_rewrite_op(w, m->value[0]->def, NULL, 1, &m->value[1]);
}

static const om_pattern relu = {.kind = OM_MATCH_OP, .type = "Relu", .in = {&any}},
	identity = {.kind = OM_MATCH_OP, .type = "Identity", .in = {&any}};

/* What is built gets the name and the declared type of what it stands for. */
static void
names_stay(void)
{
	static const om_rule rule = {"negated", &relu, negated}, through = {"through", &identity, first};

	expect_rewritten("	%a = Relu(%x)\n	%y: float32[4] = Relu(%a)\n	ret %y, %y\n", &rule, 1, 2,
		"	%a = Neg(%x)\n	%y: float32[4] = Neg(%a)\n	ret %y, %y\n}\n");
	/* The op before takes the name of the result; a parameter, and another result, cannot. */
	expect_rewritten("	%a = Neg(%x)\n	%y: float32[4] = Identity(%a)\n	%z = Identity(%y)\n	%v = Identity(%x)\n"
		"	%w = Exp(%a)\n	ret %y, %z, %v, %w\n", &through, 1, 1,
		"	%y: float32[4] = Neg(%x)\n	%z = Identity(%y)\n	%v = Identity(%x)\n	%w = Exp(%y)\n	ret %y, %z, %v, %w\n}\n");
	/* The path of a body is made of the name of what its owner computes. */
	expect_rewritten("	%a = If(%c) {then_branch = ^t() {\n		%t = Neg(%x)\n		ret %t\n	}, else_branch = ^e() {\n"
		"		%e = Exp(%x)\n		ret %e\n	}}\n	%y = Identity(%a)\n	ret %y\n", &through, 1, 0,
		"	%a = If(%c) {then_branch = ^t() {\n		%t = Neg(%x)\n		ret %t\n	}, else_branch = ^e() {\n"
		"		%e = Exp(%x)\n		ret %e\n	}}\n	%y = Identity(%a)\n	ret %y\n}\n");
}

/* A rule that makes what it looks for would never end; ops without a use go. */
static void
endless_rules_end(void)
{
	static const om_rule rule = {"copied", &relu, copied};

	expect_rewritten("	%a = Relu(%x)\n	%y = Neg(%a)\n	ret %y\n", &rule, 1, 2 + 64,
		"	%a = Relu(%x)\n	%y = Neg(%a)\n	ret %y\n}\n");
}

static om_value *
misshapen(om_rewriter *w, const om_match *m)
{
	om_value *c = om_rewrite_ints(w, "made", 1, (const int64_t[]){7});

	return om_rewrite_op(w, m->value[0]->def, "Reshape", 2, (om_value *[]){m->value[1], c});
}

/* What cannot be inferred is an error, and the program is as it was. */
static void
wrong_rules_fail(void)
{
	bench b = start("	%a = Relu(%x)\n	%y = Neg(%a)\n	ret %y\n");
	static const om_rule rule = {"misshapen", &relu, misshapen};

	CU_ASSERT_NOT_EQUAL(om_rewrite(b.s, b.p, &rule, 1, NULL), OM_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(om_message(b.s), "Reshape"));
	CU_ASSERT_EQUAL(om_verify(b.s, b.p), OM_OK);
	CU_ASSERT_EQUAL(b.p->first->nop, 2);
	expect_uses(&b, "x", "a:0");
	bench_close(&b);
}

/* Facts are forgotten where something changed, and only there. */
static void
facts_are_forgotten(void)
{
	bench b = start("	%a = Identity(%x)\n	%y = Neg(%a)\n	ret %y\n");
	static const om_rule through = {"through", &identity, first}, negate = {"negated", &relu, negated};

	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, om_default_pipeline()), OM_OK);
	CU_ASSERT_EQUAL(om_rewrite(b.s, b.p, &negate, 1, NULL), OM_OK);
	CU_ASSERT(b.p->has & OM_HAS_PLAN);
	CU_ASSERT_EQUAL(om_rewrite(b.s, b.p, &through, 1, NULL), OM_OK);
	CU_ASSERT_EQUAL(b.p->has, OM_HAS_INLINE | OM_HAS_SHAPES);
	bench_close(&b);
}

static CU_TestInfo tests[] = {
	{"uses are kept", uses_are_kept},
	{"removed ops read nothing", removed_ops_read_nothing},
	{"replacing is by uses", replacing_is_by_uses},
	{"copies are uses", copies_are_uses},
	{"wrong uses are found", wrong_uses_are_found},
	{"names are found", names_are_found},
	{"the list of input/output aliases grows", ties_grow},
	{"trees match", trees_match},
	{"graphs match", graphs_match},
	{"constants match", constants_match},
	{"names stay", names_stay},
	{"endless rules end", endless_rules_end},
	{"wrong rules fail", wrong_rules_fail},
	{"facts are forgotten", facts_are_forgotten},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("rewriting", tests);
