/* SPDX-License-Identifier: Apache-2.0 */
/* Faults that the verifier of plans has to find, each in a plan that is right
 * without it. */
#include <config.h>

#include <stdio.h>
#include <time.h>

#include "onnxmem/builder.h"
#include "onnxmem/plan.h"
#include "base/interval_map.h"
#include "unit.h"
#include "base/shape.h"
#include "ir/edit.h"

/* ---- Operators and programs to plan. ---- */

static bool
over_any(const om_op_context *c, uint32_t out, uint32_t in)
{
	(void)c, (void)out, (void)in;
	return true;
}

static bool
whole_view(const om_op_context *c, uint32_t out, om_view_of *v)
{
	(void)c, (void)out;
	*v = (om_view_of){0, 0};
	return true;
}

/* The second half of its input. */
static bool
half_view(const om_op_context *c, uint32_t out, om_view_of *v)
{
	(void)out;
	*v = (om_view_of){0, (uint64_t)om_shape_count(&c->in[0].shape) * 2};
	return true;
}

static uint64_t
some_scratch(const om_op_context *c)
{
	(void)c;
	return 100;
}

/* The inputs one behind another. */
static bool
one_by_one(const om_op_context *c, uint32_t in, uint64_t *offset)
{
	uint64_t bytes;

	*offset = 0;
	for (uint32_t k = 0; k < in; k++) {
		om_tensor_bytes(c->in[k].type, &c->in[k].shape, &bytes);
		*offset += bytes;
	}
	return true;
}

static const om_opdef
	join = {.name = "Join", .subbuffer = one_by_one},
	pointwise = {.name = "Pointwise", .inplace = over_any},
	plain = {.name = "Plain"},
	reshape = {.name = "Reshape", .view = whole_view},
	half = {.name = "Half", .view = half_view},
	scratchy = {.name = "Scratchy", .scratch = some_scratch},
	shape_of = {.name = "Shape", .flags = OM_SHAPE_ONLY},
	if_row = {.name = "If", .control = OM_IF},
	loop_row = {.name = "Loop", .control = OM_LOOP},
	scan_row = {.name = "Scan", .control = OM_SCAN};

enum { MAX = 40 };

/* A program with its plan; values keep the order in which they are made. */
struct bed {
	om_session *s;
	om_prog *p;
	om_block *b;        /* that grows */
	om_plan plan;
	om_plan_arena arena;
	om_placement place[MAX];
	om_alias alias[MAX];
	om_scratch scratch[MAX];
};

static void
start(struct bed *t)
{
	*t = (struct bed){.s = om_session_new()};
	t->p = om_prog_new();
	t->b = om_block_new(t->p, NULL, NULL, "g");
	t->arena = (om_plan_arena){.name = "a", .device = "cpu", .bytes = 4096, .align = 64};
	t->plan = (om_plan){.arena = &t->arena, .narena = 1, .place = t->place, .alias = t->alias,
		.scratch = t->scratch};
}

static void
finish(struct bed *t)
{
	om_prog_free(t->p);
	om_session_free(t->s);
}

/* `n` floats. */
static om_value *
value(struct bed *t, const char *name, int64_t n)
{
	om_value *v = om_value_new(t->p, t->b, name);

	v->type.elem = OM_FLOAT32;
	v->shape = om_shape_of(1, &n);
	return v;
}

static om_value *
input(struct bed *t, const char *name, int64_t n)
{
	om_value *v = value(t, name, n);

	om_block_add_param(t->b, v);
	if (t->b == t->p->first)
		t->place[v->id].where = OM_EXTERNAL;
	return v;
}

static void
output(struct bed *t, om_value *v)
{
	om_block_add_result(t->b, v);
	if (t->b == t->p->first)
		t->place[v->id].where = OM_EXTERNAL;
}

static om_value *
constant(struct bed *t, const char *name)
{
	static const float one = 1;
	om_tensor *data = OM_NEW(t->p->mem, om_tensor);

	*data = (om_tensor){.data = (void *)&one, .type = OM_FLOAT32, .shape = om_shape_of(0, NULL)};
	om_value *v = om_const_new(t->p, t->b, name, data);
	t->place[v->id].where = OM_WEIGHT;
	return v;
}

static om_op *
op_of(struct bed *t, const om_opdef *row, uint32_t nin, om_value *const *in, uint32_t nout,
	om_value *const *out)
{
	om_op *op = om_op_new(t->p, "", row->name, 0, nin, nout);

	op->opdef = row;
	for (uint32_t k = 0; k < nin; k++)
		om_op_set_in(op, k, in[k]);
	for (uint32_t k = 0; k < nout; k++)
		om_op_set_out(op, k, out[k]);
	om_op_append(t->b, op);
	return op;
}

static om_op *
op1(struct bed *t, const om_opdef *row, om_value *in, om_value *out)
{
	return op_of(t, row, 1, &in, 1, &out);
}

static om_op *
op2(struct bed *t, const om_opdef *row, om_value *a, om_value *b, om_value *out)
{
	return op_of(t, row, 2, (om_value *[]){a, b}, 1, &out);
}

/* Place `v` in the arena; its bytes are rounded up to 64 as for a place of its own. */
static void
put(struct bed *t, const om_value *v, uint64_t offset)
{
	uint64_t bytes = 0;

	om_tensor_bytes(v->type.elem, &v->shape, &bytes);
	t->place[v->id] = (om_placement){OM_IN_ARENA, 0, offset, (bytes + 63) & ~UINT64_C(63), {.last = 1000}};
}

static om_alias *
share(struct bed *t, om_alias_kind kind, const om_value *v, const om_value *source, uint64_t offset)
{
	om_alias *a = &t->alias[t->plan.nalias++];

	*a = (om_alias){kind, v->id, source->id, offset};
	return a;
}

static om_status
verify(struct bed *t)
{
	t->plan.nplace = t->p->nvalue;
	return om_plan_verify(t->s, t->p, &t->plan);
}

static void
expect_good(struct bed *t)
{
	const om_status st = verify(t);

	if (st != OM_OK)
		printf("# %s\n", om_message(t->s));
	CU_ASSERT_EQUAL(st, OM_OK);
}

static void
expect_bad(struct bed *t, const char *sentence)
{
	const om_status st = verify(t);

	CU_ASSERT_EQUAL(st, OM_BADPLAN);
	if (st != OM_OK && strcmp(om_message(t->s), sentence) != 0)
		printf("# wanted: %s\n# got:    %s\n", sentence, om_message(t->s));
	CU_ASSERT(st != OM_OK && strcmp(om_message(t->s), sentence) == 0);
}

/* ---- A straight line. ---- */

/* x -> a -> b; y = a + b; sizes are 64 bytes each. */
struct line { om_value *x, *a, *b, *y; om_op *first, *second, *third; };

static struct line
line(struct bed *t)
{
	struct line l;

	start(t);
	l.x = input(t, "x", 16);
	l.a = value(t, "a", 16);
	l.b = value(t, "b", 16);
	l.y = value(t, "y", 16);
	l.first = op1(t, &plain, l.x, l.a);
	l.second = op1(t, &pointwise, l.a, l.b);
	l.third = op2(t, &plain, l.a, l.b, l.y);
	output(t, l.y);
	put(t, l.a, 0);
	put(t, l.b, 64);
	return l;
}

static void
a_straight_line(void)
{
	struct bed t;
	struct line l = line(&t);

	expect_good(&t);
	put(&t, l.b, 0);  /* computed in place, but a is needed again */
	share(&t, OM_ALIAS_INPLACE, l.b, l.a, 0);
	expect_bad(&t, "Plain (node of y): reads a (bytes 0..63 of arena 0) in step 2, "
		"but bytes 0..63 of arena 0 hold b");
	t.plan.nalias = 0;
	l.a->shape = om_shape_of(1, (int64_t[]){32});
	put(&t, l.a, 0);
	put(&t, l.b, 64);
	expect_bad(&t, "Pointwise (node of b): output b (bytes 64..127 of arena 0) overlaps "
		"input a (bytes 0..127 of arena 0)");
	finish(&t);
}

static void
overlap_of_live_values(void)
{
	struct bed t;
	struct line l = line(&t);
	om_value *c = value(&t, "c", 16), *z = value(&t, "z", 16);

	op1(&t, &plain, l.b, c);
	op2(&t, &plain, l.a, c, z);
	output(&t, z);
	put(&t, c, 128);
	expect_good(&t);
	put(&t, c, 0);
	expect_bad(&t, "Plain (node of z): reads a (bytes 0..63 of arena 0) in step 4, "
		"but bytes 0..63 of arena 0 hold c");
	put(&t, l.a, 256);
	put(&t, c, 256 - 64);
	t.place[c->id].bytes = 128;  /* reaches into a, whatever c itself needs */
	expect_bad(&t, "Plain (node of z): reads a (bytes 256..319 of arena 0) in step 4, "
		"but bytes 256..319 of arena 0 hold c");
	finish(&t);
}

static void
wrong_order(void)
{
	struct bed t;
	struct line l = line(&t);

	om_op_remove(l.second);
	om_op_append(t.b, l.second);
	l.b->def = l.second;
	expect_bad(&t, "Plain (node of y): b is read in step 1, but not computed yet");
	finish(&t);

	l = line(&t);
	t.place[l.a->id].live.last = 1;
	expect_bad(&t, "a is used in steps 0 to 2, but planned to live from 0 to 1: the plan is for another order");
	t.place[l.a->id].live.first = 1;
	t.place[l.a->id].live.last = 2;
	expect_bad(&t, "a is used in steps 0 to 2, but planned to live from 1 to 2: the plan is for another order");
	t.place[l.a->id].live.first = 0;
	expect_good(&t);
	t.place[l.a->id].live.range = (const om_steps[]){{0, 0}, {2, 2}};
	t.place[l.a->id].live.nrange = 2;
	expect_bad(&t, "a is used in step 2, but its lifetime in the plan has a gap before");
	finish(&t);
}

static void
placements_out_of_bounds(void)
{
	struct bed t;
	struct line l = line(&t);

	t.place[l.b->id].offset = 72;
	expect_bad(&t, "b: offset 72 is not a multiple of 64, the alignment of arena 0");
	t.place[l.b->id].offset = 4096;
	expect_bad(&t, "b: offset 4096 + 64 bytes exceeds arena 0, which has 4096");
	t.place[l.b->id].offset = UINT64_MAX - 63;
	expect_bad(&t, "b: offset 18446744073709551552 + 64 bytes exceeds arena 0, which has 4096");
	t.place[l.b->id].offset = 64;
	t.place[l.b->id].arena = 1;
	expect_bad(&t, "b is in arena 1, but the plan has 1");
	put(&t, l.b, 64);
	t.place[l.b->id].bytes = 60;
	expect_bad(&t, "b requires 64 bytes, but is planned with 60");
	put(&t, l.b, 64);
	t.arena.limit = 2048;
	expect_bad(&t, "arena 0 requires 4096 bytes, more than its limit of 2048");
	t.arena.limit = 4096;
	t.arena.align = 48;
	expect_bad(&t, "arena 0: alignment 48 is not a power of two");
	t.arena.align = 64;
	expect_good(&t);
	t.plan.nplace = 0;
	CU_ASSERT_EQUAL(om_plan_verify(t.s, t.p, &t.plan), OM_BADPLAN);
	finish(&t);
}

/* x is there before the first step, and y after the last. */
static void
inputs_and_outputs_in_the_arena(void)
{
	struct bed t;
	struct line l = line(&t);

	put(&t, l.x, 64);
	put(&t, l.y, 128);
	t.place[l.x->id].live.last = 0;
	expect_good(&t);  /* b is computed where x was read before */
	put(&t, l.a, 64);
	put(&t, l.b, 0);
	share(&t, OM_ALIAS_INPLACE, l.a, l.x, 0);
	expect_bad(&t, "Plain (node of a): output a is stored over input x (bytes 64..127 of arena 0), which the operator "
		"does not allow");
	t.plan.nalias = 0;
	put(&t, l.a, 0);
	put(&t, l.b, 64);
	t.place[l.x->id].live.last = 1000;
	expect_bad(&t, "the graph: reads x (bytes 64..127 of arena 0) in step 3, but bytes 64..127 of arena 0 hold b");
	put(&t, l.x, 192);
	expect_good(&t);
	put(&t, l.y, 192);
	expect_bad(&t, "the graph: reads x (bytes 192..255 of arena 0) in step 3, but bytes 192..255 of arena 0 hold y");
	finish(&t);
}

static void
placements_of_the_wrong_kind(void)
{
	struct bed t;
	struct line l = line(&t);
	om_value *w = constant(&t, "w"), *z = value(&t, "z", 16);

	op2(&t, &plain, l.x, w, z);
	output(&t, z);
	expect_good(&t);
	t.place[l.b->id].where = OM_UNUSED;
	expect_bad(&t, "Pointwise (node of b): b has no placement in the plan");
	t.place[l.b->id].where = OM_EXTERNAL;
	expect_bad(&t, "b is planned in the caller's memory, but b is neither an input nor an output of the graph");
	t.place[l.b->id].where = OM_WEIGHT;
	expect_bad(&t, "b is planned as a constant, but b is not a constant");
	put(&t, l.b, 64);
	put(&t, l.x, 128);
	l.x->is_overridable = true;
	expect_bad(&t, "Plain (node of a): x has a default value, but is planned in arena 0");
	l.x->is_overridable = false;
	t.place[l.x->id].where = OM_EXTERNAL;
	put(&t, w, 128);
	expect_bad(&t, "Plain (node of z): w is a constant, but is not planned as one");
	t.place[w->id].where = OM_WEIGHT;
	l.b->shape = om_shape_unknown();
	expect_bad(&t, "b is planned, but its size is not known");
	t.place[l.b->id].where = OM_UNPLANNED;
	expect_good(&t);
	finish(&t);
}

static void
what_takes_no_part(void)
{
	struct bed t;
	struct line l = line(&t);
	om_value *c = value(&t, "c", 16), *d = value(&t, "d", 0);
	om_op *folded = op1(&t, &plain, l.a, c);

	folded->is_folded = true;
	op1(&t, &plain, l.a, d);
	put(&t, d, 0);
	t.arena.align = 4096;
	l.b->shape = om_shape_of(1, (int64_t[]){0});
	expect_good(&t);
	finish(&t);
}

/* ---- Sharing. ---- */

/* x -> a; b = op(a, a or c); y = b. */
static void
in_place(void)
{
	struct bed t;
	struct line l;

	start(&t);
	l.x = input(&t, "x", 16);
	l.a = value(&t, "a", 16);
	om_value *c = value(&t, "c", 16);
	l.b = value(&t, "b", 16);
	l.y = value(&t, "y", 16);
	op1(&t, &plain, l.x, l.a);
	om_op *whole = op1(&t, &reshape, l.a, c);
	l.second = op2(&t, &pointwise, l.a, l.a, l.b);
	op1(&t, &plain, l.b, l.y);
	output(&t, l.y);
	put(&t, l.a, 0);
	put(&t, l.b, 0);
	put(&t, c, 0);
	om_alias *view = share(&t, OM_ALIAS_VIEW, c, l.a, 0);
	om_alias *over = share(&t, OM_ALIAS_INPLACE, l.b, l.a, 0);
	expect_good(&t);
	om_op_set_in(l.second, 1, c);
	expect_bad(&t, "Pointwise (node of b): output b is stored over the inputs a and c (bytes 0..63 of arena 0)");
	om_op_set_in(l.second, 1, l.a);
	l.second->opdef = &plain;
	expect_bad(&t,
		"Pointwise (node of b): output b is stored over input a (bytes 0..63 of arena 0), which the "
		"operator does not allow");
	l.second->opdef = &pointwise;
	put(&t, l.b, 64);
	expect_bad(&t, "b (bytes 64..127 of arena 0) is declared at byte 0 of a (bytes 0..63 of arena 0)");
	put(&t, l.b, 0);
	over->value = c->id;
	expect_bad(&t, "c has two aliases");
	over->value = l.b->id;
	over->source = 99;
	expect_bad(&t, "an alias names a value that the program does not have");
	over->source = l.a->id;
	view->kind = OM_ALIAS_INPLACE;
	expect_good(&t);
	whole->opdef = &plain;
	expect_bad(&t,
		"Reshape (node of c): output c is stored over input a (bytes 0..63 of arena 0), which the operator "
		"does not allow");
	finish(&t);
}

static void
views(void)
{
	struct bed t;

	start(&t);
	om_value *x = input(&t, "x", 32), *a = value(&t, "a", 32), *h = value(&t, "h", 16);
	om_value *c = value(&t, "c", 16), *y = value(&t, "y", 16);
	op1(&t, &plain, x, a);
	om_op *op = op1(&t, &half, a, h);
	op1(&t, &plain, x, c);
	op2(&t, &plain, h, c, y);
	output(&t, y);
	put(&t, a, 0);
	put(&t, h, 64);
	put(&t, c, 0);   /* over the half of a that is not read any more */
	om_alias *view = share(&t, OM_ALIAS_VIEW, h, a, 64);
	expect_good(&t);
	put(&t, c, 64);
	expect_bad(&t, "Plain (node of y): reads h (bytes 64..127 of arena 0) in step 3, "
		"but bytes 64..127 of arena 0 hold c");
	put(&t, c, 0);
	put(&t, h, 0);
	view->offset = 0;
	expect_bad(&t,
		"Half (node of h): h (bytes 0..63 of arena 0) is planned as a view, but is not at byte 64 of "
		"a (bytes 0..127 of arena 0)");
	op->opdef = &plain;
	expect_bad(&t, "Half (node of h): h is planned as a view, but the operator computes it");
	view->offset = 96;
	put(&t, h, 96);
	expect_bad(&t, "h has 64 bytes, a size that cannot share those of a, which has 128");
	finish(&t);
}

/* A view whose source was dead, and overwritten, before the view was made. */
static void
view_of_dead_storage(void)
{
	struct bed t;

	start(&t);
	om_value *x = input(&t, "x", 16), *a = value(&t, "a", 16), *c = value(&t, "c", 16);
	om_value *v = value(&t, "v", 16), *y = value(&t, "y", 16);
	op1(&t, &plain, x, a);
	op1(&t, &plain, x, c);
	op1(&t, &reshape, a, v);
	op2(&t, &plain, c, v, y);
	output(&t, y);
	put(&t, a, 0);
	put(&t, v, 0);
	put(&t, c, 64);
	share(&t, OM_ALIAS_VIEW, v, a, 0);
	expect_good(&t);
	put(&t, c, 0);
	expect_bad(&t, "Reshape (node of v): reads a (bytes 0..63 of arena 0) in step 2, "
		"but bytes 0..63 of arena 0 hold c");
	finish(&t);
}

/* a and b are parts of c; v is a view of b that is read behind c, and the second
 * half of c is b. */
struct parts { om_value *a, *b, *c, *d, *v, *h, *y; om_op *join, *last; om_alias *in_b; };

static struct parts
parts_of(struct bed *t)
{
	struct parts l;

	start(t);
	om_value *x = input(t, "x", 16);
	l.a = value(t, "a", 16);
	l.b = value(t, "b", 16);
	l.d = value(t, "d", 16);
	l.v = value(t, "v", 16);
	l.c = value(t, "c", 32);
	l.h = value(t, "h", 16);
	l.y = value(t, "y", 16);
	op1(t, &plain, x, l.a);
	op1(t, &plain, x, l.b);
	op1(t, &plain, x, l.d);
	op1(t, &reshape, l.b, l.v);
	l.join = op2(t, &join, l.a, l.b, l.c);
	op1(t, &half, l.c, l.h);
	l.last = op_of(t, &plain, 4, (om_value *[]){l.h, l.v, l.a, l.d}, 1, &l.y);
	output(t, l.y);
	put(t, l.a, 0);
	put(t, l.b, 64);
	put(t, l.c, 0);
	put(t, l.d, 128);
	put(t, l.v, 64);
	put(t, l.h, 64);
	share(t, OM_ALIAS_SUBBUFFER, l.a, l.c, 0);
	l.in_b = share(t, OM_ALIAS_SUBBUFFER, l.b, l.c, 64);
	share(t, OM_ALIAS_VIEW, l.v, l.b, 0);
	share(t, OM_ALIAS_VIEW, l.h, l.c, 64);
	return l;
}

static void
parts(void)
{
	struct bed t;
	struct parts l = parts_of(&t);

	expect_good(&t);
	put(&t, l.d, 64);
	expect_bad(&t, "Reshape (node of v): reads b (bytes 64..127 of arena 0) in step 3, "
		"but bytes 64..127 of arena 0 hold d");
	put(&t, l.d, 128);
	l.join->opdef = &plain;
	expect_bad(&t, "Join (node of c): output c (bytes 0..127 of arena 0) overlaps input a "
		"(bytes 0..63 of arena 0)");
	l.join->opdef = &join;
	om_op_set_in(l.join, 0, l.b);
	om_op_set_in(l.join, 1, l.a);
	expect_bad(&t, "Join (node of c): output c (bytes 0..127 of arena 0) overlaps input b "
		"(bytes 64..127 of arena 0)");
	om_op_set_in(l.join, 0, l.a);
	om_op_set_in(l.join, 1, l.b);
	l.in_b->offset = 96;
	put(&t, l.b, 96);
	put(&t, l.v, 96);
	expect_bad(&t, "b has 64 bytes, a size that cannot share those of c, which has 128");
	finish(&t);
}

/* One of the parts is placed, the other is copied: that makes b anew. */
static void
parts_that_are_copied(void)
{
	struct bed t;
	struct parts l = parts_of(&t);

	om_op_set_in(l.join, 0, l.b);
	om_op_set_in(l.join, 1, l.b);
	expect_bad(&t, "Plain (node of y): reads a (bytes 0..63 of arena 0) in step 6, "
		"but bytes 0..63 of arena 0 hold c");
	om_op_set_in(l.last, 2, l.c);
	expect_good(&t);
	om_op_set_in(l.join, 0, l.d);
	expect_good(&t);
	put(&t, l.d, 64);
	expect_bad(&t, "Reshape (node of v): reads b (bytes 64..127 of arena 0) in step 3, "
		"but bytes 64..127 of arena 0 hold d");
	finish(&t);
}

/* Parts of a part; the smaller one is written over, and its holder read. */
static void
parts_of_parts(void)
{
	struct bed t;
	struct parts l = parts_of(&t);
	om_value *e = value(&t, "e", 64), *z = value(&t, "z", 16), *f = value(&t, "f", 16);

	op2(&t, &join, l.c, l.c, e);
	om_op *over = op1(&t, &pointwise, l.h, f);
	op2(&t, &plain, f, f, z);
	output(&t, z);
	put(&t, e, 0);
	put(&t, f, 64);
	om_alias *in_e = share(&t, OM_ALIAS_SUBBUFFER, l.c, e, 0);
	share(&t, OM_ALIAS_INPLACE, f, l.h, 0);
	put(&t, l.d, 256);
	expect_good(&t);
	op1(&t, &plain, e, value(&t, "w", 16));
	t.place[t.p->nvalue - 1].where = OM_EXTERNAL;
	output(&t, t.p->values[t.p->nvalue - 1]);
	expect_bad(&t, "Plain (node of w): reads e (bytes 0..255 of arena 0) in step 10, "
		"but bytes 64..127 of arena 0 hold f");
	om_op_set_in(over, 0, l.d);
	put(&t, f, 256);
	t.alias[t.plan.nalias - 1].source = l.d->id;
	expect_good(&t);
	in_e->offset = 64;
	CU_ASSERT_EQUAL(verify(&t), OM_BADPLAN);
	finish(&t);
}

/* Written in the memory of an output of the graph, before that is computed. */
static void
parts_of_outputs(void)
{
	struct bed t;

	start(&t);
	om_value *x = input(&t, "x", 16), *a = value(&t, "a", 16), *y = value(&t, "y", 16);
	op1(&t, &plain, x, a);
	om_op *op = op1(&t, &pointwise, a, y);
	output(&t, y);
	t.place[a->id].where = OM_EXTERNAL;
	share(&t, OM_ALIAS_SUBBUFFER, a, y, 0);
	expect_good(&t);
	op->opdef = &plain;
	expect_bad(&t,
		"Pointwise (node of y): output y is stored over input a (bytes 0..63 of the memory of y), which the "
		"operator does not allow");
	t.plan.nalias = 0;
	expect_bad(&t, "a is planned in the caller's memory, but a is neither an input nor an output of the graph");
	finish(&t);
}

static void
memory_of_others(void)
{
	struct bed t;

	start(&t);
	om_value *x = input(&t, "x", 16), *v = value(&t, "v", 16), *y = value(&t, "y", 16);
	om_value *u = value(&t, "u", 16);
	op1(&t, &reshape, x, v);
	om_op *op = op1(&t, &pointwise, v, u);
	op1(&t, &plain, u, y);
	output(&t, y);
	t.place[v->id].where = OM_EXTERNAL;
	share(&t, OM_ALIAS_VIEW, v, x, 0);
	put(&t, u, 0);
	expect_good(&t);
	t.place[u->id].where = OM_EXTERNAL;
	om_alias *a = share(&t, OM_ALIAS_INPLACE, u, v, 0);
	expect_bad(&t, "Pointwise (node of u): u is written over an input of the graph (bytes 0..63 of the memory of x)");
	om_value *w = constant(&t, "w");
	w->shape = x->shape;
	om_op_set_in(op, 0, w);
	t.place[u->id].where = OM_WEIGHT;
	a->source = w->id;
	expect_bad(&t, "Pointwise (node of u): u is written over a constant (bytes 0..63 of the memory of w)");
	finish(&t);
}

static void
io_aliases(void)
{
	struct bed t;

	start(&t);
	om_value *x = input(&t, "x", 16), *a = value(&t, "a", 16), *y = value(&t, "y", 16);
	om_value *z = value(&t, "z", 16);
	op1(&t, &plain, x, a);
	om_op *op = op1(&t, &pointwise, x, y);
	op1(&t, &plain, a, z);
	output(&t, y);
	output(&t, z);
	put(&t, a, 0);
	om_alias *tie = share(&t, OM_ALIAS_IO, y, x, 0);
	expect_bad(&t, "y is in the memory of input x as its next state, but does not replace it in the next run");
	tie->kind = OM_ALIAS_CONSUME;
	expect_good(&t);
	CU_ASSERT(om_prog_pair_io(t.p, 0, 0));
	expect_bad(&t, "y consumes input x, but replaces it in the next run");
	tie->kind = OM_ALIAS_IO;
	expect_good(&t);
	om_op_remove(op);
	om_op_insert(t.b->first, op);
	y->def = op;
	expect_bad(&t, "Plain (node of a): reads x (bytes 0..63 of the memory of x) in step 1, "
		"but bytes 0..63 of the memory of x hold y");
	tie->value = a->id;
	put(&t, a, 0);
	CU_ASSERT_EQUAL(verify(&t), OM_BADPLAN);
	finish(&t);
}

static void
scratch(void)
{
	struct bed t;

	start(&t);
	t.plan.target = OM_TARGET_CPU;
	om_value *x = input(&t, "x", 16), *a = value(&t, "a", 16), *b = value(&t, "b", 16);
	om_value *y = value(&t, "y", 16);
	op1(&t, &plain, x, a);
	om_op *op = op1(&t, &scratchy, x, b);
	om_op *add = op2(&t, &plain, a, b, y);
	output(&t, y);
	put(&t, a, 0);
	put(&t, b, 64);
	expect_bad(&t, "Scratchy (node of b): requires 100 bytes of scratch, but is planned with 0");
	om_scratch *s = &t.scratch[t.plan.nscratch++];
	*s = (om_scratch){op->id, 0, 128, 128};
	expect_good(&t);
	s->offset = 0;
	expect_bad(&t, "Scratchy (node of b): its scratch (bytes 0..127 of arena 0) and output b overlap");
	put(&t, b, 256);
	expect_bad(&t, "Plain (node of y): reads a (bytes 0..63 of arena 0) in step 2, "
		"but bytes 0..63 of arena 0 hold the scratch of an op");
	om_op_set_in(op, 0, a);
	expect_bad(&t, "Scratchy (node of b): the scratch of an op overlaps input a (bytes 0..63 of arena 0)");
	om_op_set_in(op, 0, x);
	s->offset = 4032;
	expect_bad(&t, "scratch: offset 4032 + 128 bytes exceeds arena 0, which has 4096");
	*s = (om_scratch){op->id, 0, 128, 64};
	expect_bad(&t, "Scratchy (node of b): requires 100 bytes of scratch, but is planned with 64");
	s->bytes = 128;
	t.scratch[t.plan.nscratch++] = *s;
	expect_bad(&t, "scratch is planned twice for one op");
	t.scratch[1].op = add->id + 1;
	expect_bad(&t, "scratch is planned for an op that the program does not have");
	finish(&t);
}

static void
outputs_of_one_op(void)
{
	struct bed t;

	start(&t);
	om_value *x = input(&t, "x", 16), *a = value(&t, "a", 16), *b = value(&t, "b", 16);
	om_value *n = value(&t, "n", 1), *y = value(&t, "y", 16);
	op_of(&t, &plain, 1, &x, 2, (om_value *[]){a, b});
	op1(&t, &shape_of, b, n);
	op2(&t, &plain, a, n, y);
	output(&t, y);
	put(&t, a, 0);
	put(&t, b, 64);
	put(&t, n, 64);  /* Shape reads no element of b */
	expect_good(&t);
	put(&t, b, 0);
	expect_bad(&t, "Plain (node of a): a (bytes 0..63 of arena 0) and b are written in the same step, and overlap");
	finish(&t);
}

/* ---- Bodies. ---- */

/* k = x; if (c) { t = k; r = t } else { u = x; q = u }; y = k + o. */
static void
branches(void)
{
	struct bed t;

	start(&t);
	om_value *x = input(&t, "x", 16), *c = input(&t, "c", 1), *k = value(&t, "k", 16);
	om_value *o = value(&t, "o", 16), *y = value(&t, "y", 16);
	om_block *const graph = t.b;
	op1(&t, &plain, x, k);
	om_op *op = op1(&t, &if_row, c, o);
	op2(&t, &plain, k, o, y);
	output(&t, y);
	t.b = om_block_new(t.p, op, "then_branch", "then");
	om_value *u = value(&t, "t", 16), *r = value(&t, "r", 16);
	op1(&t, &plain, k, u);
	op1(&t, &pointwise, u, r);
	output(&t, r);
	om_block *const then = t.b;
	t.b = om_block_new(t.p, op, "else_branch", "else");
	om_value *q = value(&t, "q", 16);
	op1(&t, &plain, x, q);
	output(&t, q);
	om_op_add_attr(t.p, op, &(om_attr){.name = "then_branch", .kind = OM_ATTR_GRAPH, .n = 1,
		.g = (om_block *[]){then}});
	om_op_add_attr(t.p, op, &(om_attr){.name = "else_branch", .kind = OM_ATTR_GRAPH, .n = 1,
		.g = (om_block *[]){t.b}});
	t.b = graph;

	put(&t, k, 0);
	put(&t, o, 64);
	put(&t, u, 128);   /* the branches share their bytes */
	put(&t, q, 128);
	put(&t, r, 192);
	expect_good(&t);
	put(&t, r, 64);    /* the result is where it has to be in the end */
	expect_good(&t);
	put(&t, q, 0);     /* only on the way that is not captured: k is read behind */
	expect_bad(&t, "Plain (node of y): reads k (bytes 0..63 of arena 0) in step 8, "
		"but bytes 0..63 of arena 0 hold q, from a body that ran before");
	put(&t, q, 128);
	put(&t, u, 0);
	expect_bad(&t,
		"Plain (node of t): output t is stored over input k (bytes 0..63 of arena 0), which the operator "
		"does not allow");
	then->first->opdef = &pointwise;
	expect_bad(&t, "Plain (node of y): reads k (bytes 0..63 of arena 0) in step 8, "
		"but bytes 0..63 of arena 0 hold t, from a body that ran before");
	put(&t, u, 128);
	t.place[o->id].live.first = 8;  /* o is complete in step 7 */
	expect_bad(&t,
		"o is used in steps 7 to 8, but planned to live from 8 to 1000: the plan is for another order");
	t.place[o->id].live.first = 7;
	expect_good(&t);
	finish(&t);
}

/* k = x; v' = loop(n, c, v = k) { m = v + w; r = m }; y = v' + w'.  The names of
 * the values: w is captured, e is the scan output. */
struct loop {
	om_value *x, *n, *c, *k, *w, *o, *e, *y;
	om_value *i, *cond, *v, *m, *r, *s;
	om_op *loop, *m_op, *r_op, *s_op;
	om_block *body;
};

static struct loop
loop(struct bed *t)
{
	struct loop l;

	start(t);
	l.x = input(t, "x", 16);
	l.n = input(t, "n", 2);
	l.c = input(t, "c", 1);
	l.k = value(t, "k", 16);
	l.w = value(t, "w", 16);
	l.o = value(t, "o", 16);
	l.e = value(t, "e", 64);
	l.y = value(t, "y", 16);
	om_block *const graph = t->b;
	op1(t, &plain, l.x, l.k);
	op1(t, &plain, l.x, l.w);
	l.loop = op_of(t, &loop_row, 3, (om_value *[]){l.n, l.c, l.k}, 2, (om_value *[]){l.o, l.e});
	op2(t, &plain, l.o, l.e, l.y);
	output(t, l.y);
	t->b = l.body = om_block_new(t->p, l.loop, "body", "body");
	l.i = input(t, "i", 2);
	l.cond = input(t, "cond", 1);
	l.v = input(t, "v", 16);
	l.m = value(t, "m", 16);
	l.r = value(t, "r", 16);
	l.s = value(t, "s", 16);
	l.m_op = op2(t, &plain, l.v, l.w, l.m);
	l.r_op = op1(t, &pointwise, l.m, l.r);
	l.s_op = op2(t, &plain, l.m, l.r, l.s);
	output(t, l.cond);
	output(t, l.r);
	output(t, l.s);
	om_op_add_attr(t->p, l.loop, &(om_attr){.name = "body", .kind = OM_ATTR_GRAPH, .n = 1,
		.g = &t->b});
	t->b = graph;
	put(t, l.k, 0);
	put(t, l.w, 64);
	put(t, l.o, 0);
	put(t, l.e, 128);
	put(t, l.i, 384);
	put(t, l.cond, 448);
	put(t, l.v, 512);
	put(t, l.m, 576);
	put(t, l.r, 640);
	put(t, l.s, 704);
	return l;
}

static void
loops(void)
{
	struct bed t;
	struct loop l = loop(&t);

	expect_good(&t);
	put(&t, l.m, 0);       /* k is dead, o not born yet */
	expect_good(&t);
	put(&t, l.s, 512);     /* over v: it is written again at the end of the round */
	expect_good(&t);
	put(&t, l.s, 64);      /* w is captured: the first round is right, the second wrong */
	expect_bad(&t, "Plain (node of m): reads w (bytes 64..127 of arena 0) in step 3, "
		"but bytes 64..127 of arena 0 hold s");
	put(&t, l.s, 256);     /* over what the rounds write piece by piece */
	expect_bad(&t, "Loop (node of o): reads e (bytes 128..383 of arena 0) in step 6, "
		"but bytes 256..319 of arena 0 hold s");
	put(&t, l.s, 704);
	put(&t, l.m, 512);
	expect_bad(&t,
		"Plain (node of m): output m is stored over input v (bytes 512..575 of arena 0), which the operator "
		"does not allow");
	put(&t, l.m, 576);
	put(&t, l.o, 512);     /* the carried value stays where it is */
	expect_good(&t);
	put(&t, l.o, 0);
	put(&t, l.v, 0);       /* the same at the start: k has no other use */
	expect_good(&t);
	put(&t, l.v, 512);
	put(&t, l.i, 0);
	expect_bad(&t, "Loop (node of o): i is written over k (bytes 0..63 of arena 0) in the step that reads it");
	put(&t, l.i, 384);
	put(&t, l.cond, 512);
	expect_bad(&t, "Loop (node of o): cond (bytes 512..515 of arena 0) and v are written in the same step, and overlap");
	finish(&t);
}

/* Values carried crosswise: results are read before parameters are written. */
static void
carried_values(void)
{
	struct bed t;
	struct loop l = loop(&t);

	om_block_set_result(l.body, 1, l.v);   /* v goes through; r is not needed behind s */
	expect_good(&t);
	put(&t, l.r, 512);
	expect_bad(&t, "Loop (node of o): reads v (bytes 512..575 of arena 0) in step 6, "
		"but bytes 512..575 of arena 0 hold r");
	om_block_set_result(l.body, 1, l.r);
	expect_good(&t);           /* r is born after the last use of v, in its place */
	t.place[l.v->id].live.last = 2;
	expect_bad(&t, "v is used in steps 2 to 3, but planned to live from 0 to 2: the plan is for another order");
	t.place[l.v->id].live.last = 7;
	l.loop->nin = 2;
	CU_ASSERT_EQUAL(verify(&t), OM_INVALID);
	CU_ASSERT_STRING_EQUAL(om_message(t.s),
		"Loop (node of o): has 2 inputs and 2 outputs, but its body has 3 parameters and 3 results");
	finish(&t);
}

/* s' , ys = scan(s = a, xs) { s_out = s + z; e = s_out }. */
static void
scans(void)
{
	struct bed t;
	const int64_t one = 1;

	start(&t);
	om_value *x = input(&t, "x", 64), *a = value(&t, "a", 16), *xs = value(&t, "xs", 64);
	om_value *o = value(&t, "o", 16), *ys = value(&t, "ys", 64), *y = value(&t, "y", 64);
	om_block *graph = t.b;
	op1(&t, &plain, x, a);
	op1(&t, &plain, x, xs);
	om_op *op = op_of(&t, &scan_row, 2, (om_value *[]){a, xs}, 2, (om_value *[]){o, ys});
	op2(&t, &plain, o, ys, y);
	output(&t, y);
	t.b = om_block_new(t.p, op, "body", "body");
	om_value *s = input(&t, "s", 16), *z = input(&t, "z", 16), *r = value(&t, "r", 16);
	op2(&t, &pointwise, s, z, r);
	output(&t, r);
	output(&t, r);
	om_op_add_attr(t.p, op, &(om_attr){.name = "body", .kind = OM_ATTR_GRAPH, .n = 1, .g = &t.b});
	om_op_add_attr(t.p, op, &(om_attr){.name = "num_scan_inputs", .kind = OM_ATTR_INT, .n = 1, .i = &one});
	t.b = graph;
	put(&t, a, 0);
	put(&t, xs, 64);
	put(&t, ys, 320);
	put(&t, o, 0);
	put(&t, s, 576);
	put(&t, z, 640);
	put(&t, r, 704);
	expect_good(&t);
	put(&t, r, 576);    /* in place over the state */
	expect_good(&t);
	put(&t, r, 128);    /* over slices that later rounds read */
	expect_bad(&t, "Scan (node of o): reads xs (bytes 64..319 of arena 0) in step 3, "
		"but bytes 128..191 of arena 0 hold r");
	put(&t, r, 704);
	put(&t, z, 64);
	expect_bad(&t, "Scan (node of o): z is written over xs (bytes 64..319 of arena 0) in the step that reads it");
	put(&t, z, 640);
	put(&t, ys, 64);
	expect_bad(&t,
		"Scan (node of o): ys is written over xs (bytes 64..319 of arena 0) in the step that reads it");
	put(&t, ys, 320);
	put(&t, o, 320);
	expect_bad(&t, "Scan (node of o): reads ys (bytes 320..575 of arena 0) in step 5, "
		"but bytes 320..383 of arena 0 hold o");
	finish(&t);
}

/* ---- The map of bytes. ---- */

static uint32_t
chance(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Against an array with an entry for each byte. */
static void
ranges_are_those_of_a_plain_array(void)
{
	enum { SIZE = 200, ROUNDS = 20000 };
	om_arena *mem = om_arena_new();
	om_interval_map *r = om_interval_map_new(mem);
	struct { uint32_t owner; uint64_t at; } plain_array[2][SIZE];
	uint32_t seed = 1, wrong = 0;

	for (int s = 0; s < 2; s++)
		for (int k = 0; k < SIZE; k++)
			plain_array[s][k].owner = OM_NOBODY;
	for (uint32_t n = 0; n < ROUNDS; n++) {
		om_owned_interval w = {chance(&seed) & 1, chance(&seed) % SIZE, 0, chance(&seed) % 9, chance(&seed) % 5, false};
		om_owned_interval bad;
		w.upper = w.lower + chance(&seed) % (SIZE + 1 - w.lower);
		const bool same = n % 3 == 0 && plain_array[w.space][w.lower].owner != OM_NOBODY;
		if (same)
			w.owner = plain_array[w.space][w.lower].owner, w.at = plain_array[w.space][w.lower].at;
		uint64_t k = w.lower;
		while (k < w.upper && plain_array[w.space][k].owner == w.owner
		       && plain_array[w.space][k].at == w.at + (k - w.lower))
			k++;
		const bool holds = om_interval_map_holds(r, &w, &bad);
		wrong += holds != (k == w.upper) || (!holds && (bad.lower != k
			|| bad.owner != plain_array[w.space][k].owner));
		if (same)
			continue;
		om_interval_map_set(r, &w);
		for (k = w.lower; k < w.upper; k++)
			plain_array[w.space][k].owner = w.owner, plain_array[w.space][k].at = w.at + (k - w.lower);
		if (n % 1000 == 1)
			r = om_interval_map_copy(r, mem);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	om_arena_free(mem);
}

/* 20,000 ops within a second, also where this test runs under a sanitizer. */
static void
is_fast(void)
{
	enum { N = 20000 };
	struct bed t;

	start(&t);
	om_value *v = input(&t, "x", 16), *keep = v;
	t.plan.place = OM_NEWN(t.p->mem, om_placement, N + 2);
	t.plan.place[0].where = OM_EXTERNAL;
	t.arena.bytes = UINT64_C(64) * N;
	for (uint32_t k = 0; k < N; k++) {
		om_value *next = value(&t, "v", 16);
		if (k % 2)
			op2(&t, &plain, v, keep, next);
		else
			op1(&t, &plain, v, next);
		t.plan.place[next->id] = (om_placement){OM_IN_ARENA, 0, UINT64_C(64) * (k * 7919 % N), 64,
			{.first = k, .last = k + 2}};
		keep = v;
		v = next;
	}
	const clock_t before = clock();
	expect_good(&t);
	CU_ASSERT(clock() - before < CLOCKS_PER_SEC);
	finish(&t);
}

static CU_TestInfo verify_tests[] = {
	{"ranges are those of a plain array", ranges_are_those_of_a_plain_array},
	{"a straight line", a_straight_line},
	{"overlap of live values", overlap_of_live_values},
	{"wrong order", wrong_order},
	{"placements out of bounds", placements_out_of_bounds},
	{"placements of the wrong kind", placements_of_the_wrong_kind},
	{"inputs and outputs in the arena", inputs_and_outputs_in_the_arena},
	{"what takes no part may be anywhere", what_takes_no_part},
	{"in place", in_place},
	{"views", views},
	{"view of dead storage", view_of_dead_storage},
	{"sub-buffers", parts},
	{"sub-buffers that are copied", parts_that_are_copied},
	{"sub-buffers of sub-buffers", parts_of_parts},
	{"sub-buffers of outputs", parts_of_outputs},
	{"memory of the caller", memory_of_others},
	{"input/output aliases", io_aliases},
	{"scratch", scratch},
	{"outputs of one op", outputs_of_one_op},
	{"branches", branches},
	{"loops", loops},
	{"carried values", carried_values},
	{"scans", scans},
	{"20,000 ops are verified at once", is_fast},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("verifier of plans", verify_tests);
