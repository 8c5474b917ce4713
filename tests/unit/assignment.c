/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about ops, schedules and assignments: what analyses find out beside the program. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "onnxmem/builder.h"
#include "onnxmem/plan.h"
#include "alloc/op_facts.h"
#include "tests/fixtures.h"
#include "unit.h"
#include "alloc/assign.h"
#include "alloc/buffers.h"
#include "alloc/known_sizes.h"
#include "ir/edit.h"
#include "ir/schedule.h"
#include "ir/steps.h"
#include "opdef/op_context.h"

#define HEAD "program \"\" ir 8 opset 13\n"

static om_value *
value(const bench *b, const char *name)
{
	return om_prog_find(b->p, name);
}

/* ---- Facts. ---- */

static const om_plan_request plain = OM_PLAN_REQUEST(.threads = 1);

static bool
same_output(const om_op_facts *f, const om_op *op, uint32_t out)
{
	om_view_of a = {0}, b = {0};
	const bool is_view = om_op_view(op, out, &a);
	bool ok = is_view == om_op_facts_view(f, op, out, &b)
		&& (!is_view || (a.in == b.in && a.offset == b.offset));

	for (uint32_t in = 0; in < op->nin && op->out[out]; in++)
		if (op->in[in])
			ok &= om_op_inplace(op, out, in) == om_op_facts_inplace(f, op, out, in)
			    && om_op_inplace_allowed(op, out, op->in[in]) == om_op_facts_inplace_value(f, op, out, op->in[in]);
	return ok;
}

static bool
same_facts(const om_op_facts *f, const om_op *op)
{
	bool ok = om_op_scratch(op, 1, false) == f->op[op->id].workspace;
	uint64_t a = 0, b = 0;

	for (uint32_t out = 0; out < op->nout; out++)
		ok &= same_output(f, op, out);
	for (uint32_t in = 0; in < op->nin; in++) {
		const bool may = om_op_subbuffer(op, in, &a);
		ok &= may == om_op_facts_subbuffer(f, op, in, &b) && (!may || a == b);
	}
	if (!ok)
		printf("# facts of %s %s are wrong\n", op->type, om_op_label(op));
	return ok;
}

static const char *const programs[] = {
	HEAD "^g(%x: float32[2,8], %k: float32[1,8]) {\n%a = Add(%x, %k)\n%b = Add(%k, %x)\n%v = Flatten(%a)\n"
	"%u, %w = Split(%v) {axis = 0}\n%q = Concat(%u, %b) {axis = 0}\n%s = Softmax(%q)\nret %s, %w\n}\n",
	HEAD "^g(%n: int64[], %c: bool[], %x: float32[3,8]) {\n%r = Loop(%n, %c, %x) {body = ^l(%i: int64[], %go: bool[],"
	" %h: float32[3,8]) {\n%t = Neg(%h)\n%o = Identity(%t)\nret %go, %o\n}}\n%y = Exp(%r)\nret %y\n}\n",
	HEAD "^g(%x: float32[1,2,8,8], %w: float32[3,2,3,3]) {\n%y = Conv(%x, %w)\n%z = Relu(%y)\n%p = MaxPool(%z) "
	"{kernel_shape = [2, 2]}\n%s = GlobalAveragePool(%p)\n%f = NonZero(%s)\n%g = Neg(%f)\nret %s, %g\n}\n",
	HEAD "^g(%x: float32[N], %y: float32[4]) {\n%a = Neg(%x)\n%b = Add(%y, %y)\n%c = Dropout(%b)\nret %a, %c\n}\n",
};

static void
facts_are_what_definitions_say(void)
{
	for (size_t k = 0; k < sizeof programs / sizeof programs[0]; k++) {
		bench b;
		unit_start(&b, programs[k], "shapes,fold");
		const om_op_facts *f = om_prog_op_facts(b.p, &plain);
		CU_ASSERT_PTR_EQUAL(f, om_prog_op_facts(b.p, &plain));
		for (const om_block *block = b.p->first; block; block = block->next)
			for (const om_op *op = block->first; op; op = op->next)
				CU_ASSERT(same_facts(f, op));
		for (uint32_t v = 0; v < b.p->nvalue; v++) {
			const bool is_bound = f->bytes[v] != om_value_bytes(b.p->values[v]);
			CU_ASSERT(!is_bound || f->bytes[v] == f->most[v]);
			CU_ASSERT_EQUAL(f->is_unplanned[v] || is_bound, om_value_unplanned(b.p, b.p->values[v], 0) != NULL);
		}
		bench_close(&b);
	}
}

static void
facts_follow_changes(void)
{
	bench b;

	unit_start(&b, HEAD "^g(%x: float32[2,8], %k: float32[1,8]) {\n%a = Neg(%x)\n%y = Add(%a, %k)\nret %y\n}\n", "shapes,fold");
	om_op *add = value(&b, "y")->def;
	CU_ASSERT(om_op_facts_inplace(om_prog_op_facts(b.p, &plain), add, 0, 0));
	om_op_set_in(add, 0, value(&b, "k"));
	om_op_set_in(add, 1, value(&b, "a"));
	CU_ASSERT_FALSE(om_op_facts_inplace(om_prog_op_facts(b.p, &plain), add, 0, 0));
	CU_ASSERT(om_op_facts_inplace(om_prog_op_facts(b.p, &plain), add, 0, 1));
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, "shapes"), OM_OK);
	CU_ASSERT_PTR_NULL(b.p->op_facts);
	bench_close(&b);
}

/* ---- Schedules. ---- */

static void
schedules_leave_the_program_alone(void)
{
	bench b;

	unit_start(&b, HEAD "^g(%x: float32[8]) {\n%a = Neg(%x)\n%b = Exp(%x)\n%c = Neg(%a)\n%y = Add(%c, %b)\nret %y\n}\n", "liveness");
	const om_assignment *was = b.p->assignment;
	om_block *g = b.p->first;
	om_op *ops[] = {value(&b, "a")->def, value(&b, "c")->def, value(&b, "b")->def, value(&b, "y")->def, NULL};
	om_op **orders[] = {ops};  /* the graph is the only block */
	const om_schedule *s = om_schedule_reorder(b.p, was->schedule, orders, b.mem);
	const om_assignment *other = om_assign_lifetimes(b.p, s, was->request, om_prog_op_facts(b.p, &plain), b.mem);
	CU_ASSERT_EQUAL(other->live[value(&b, "b")->id].first, 2);
	CU_ASSERT_EQUAL(was->live[value(&b, "b")->id].first, 1);
	CU_ASSERT_EQUAL(was->live[value(&b, "a")->id].last, 2);
	CU_ASSERT_PTR_EQUAL(b.p->assignment, was);
	CU_ASSERT_PTR_EQUAL(g->first->next, value(&b, "b")->def);
	om_block_set_order(g, ops);
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, "liveness"), OM_OK);
	for (uint32_t k = 0; k < b.p->nvalue; k++) {
		CU_ASSERT_EQUAL(b.p->assignment->live[k].first, other->live[k].first);
		CU_ASSERT_EQUAL(b.p->assignment->live[k].last, other->live[k].last);
	}
	bench_close(&b);
}

/* ---- Assignments. ---- */

/* Decisions about the order are those of a schedule: they reach the plan, and last as long as the order. */
static void
an_order_and_how_it_was_found(void)
{
	bench b;

	unit_start(&b, HEAD "^g(%x: float32[8]) {\n%a = Neg(%x)\n%c = Neg(%a)\n%b = Exp(%x)\n%y = Add(%c, %b)\nret %y\n}\n", "schedule=bfs");
	const om_schedule *s = b.p->assignment->schedule;
	CU_ASSERT_STRING_EQUAL(s->method, "bfs");
	CU_ASSERT_FALSE(s->is_original);
	CU_ASSERT_PTR_EQUAL(s->ops[0][1], value(&b, "b")->def);
	CU_ASSERT_PTR_NOT_NULL_FATAL(s->original);
	CU_ASSERT_PTR_EQUAL(s->original->ops[0][1], value(&b, "c")->def);
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, "pack"), OM_OK);
	CU_ASSERT_PTR_EQUAL(b.p->plan->schedule, s);
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, "schedule=min-memory,pack"), OM_OK);
	CU_ASSERT_STRING_EQUAL(b.p->plan->schedule->method, "min-memory");
	om_op *ops[] = {value(&b, "b")->def, value(&b, "a")->def, value(&b, "c")->def, value(&b, "y")->def, NULL};
	om_block_set_order(b.p->first, ops);
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, "liveness"), OM_OK);
	CU_ASSERT_PTR_NULL(b.p->assignment->schedule->method);
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, "schedule=min-memory,cse,pack"), OM_OK);
	CU_ASSERT_PTR_NULL(b.p->plan->schedule->method);   /* found for another program */
	bench_close(&b);
}

static bool
is_same(const om_assignment *a, const om_assignment *b)
{
	for (uint32_t k = 0; k < a->nvalue; k++)
		if (a->live[k].first != b->live[k].first || a->live[k].last != b->live[k].last
		    || a->backing[k].store != b->backing[k].store || a->backing[k].source != b->backing[k].source
		    || a->backing[k].offset != b->backing[k].offset || a->multi_view[k] != b->multi_view[k])
			return false;
	return true;
}

static void
storage_is_decided_anew(void)
{
	bench b;

	unit_start(&b, HEAD "^g(%n: int64[], %c: bool[], %x: float32[64], %z: float32[64]) {\n%a = Neg(%x)\n%b = Neg(%z)\n"
		"%r, %q = Loop(%n, %c, %a, %b) {body = ^l(%i: int64[], %go: bool[], %h: float32[64], %k: float32[64]) {\n"
		"%t = Add(%h, %k)\nret %go, %t, %h\n}}\n%y = Add(%r, %q)\nret %y\n}\n", "liveness,views,inplace,loops");
	const om_assignment *loops = b.p->assignment, *copy = om_assignment_copy(loops, b.mem);
	CU_ASSERT_PTR_NOT_NULL_FATAL(loops->before_loops);
	CU_ASSERT_PTR_NOT_NULL(loops->multi_view[value(&b, "t")->id]);
	CU_ASSERT_FALSE(is_same(loops, loops->before_loops));
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, "inplace"), OM_OK);
	CU_ASSERT(is_same(b.p->assignment, loops->before_loops));
	CU_ASSERT(is_same(loops, copy));
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, "loops"), OM_OK);
	for (uint32_t k = 0; k < loops->nvalue; k++)
		CU_ASSERT_EQUAL(b.p->assignment->live[k].last, loops->live[k].last);
	bench_close(&b);
}

static void
what_is_not_kept_is_dropped(void)
{
	bench b;

	unit_start(&b, HEAD "^g(%x: float32[8]) {\n%a = Neg(%x)\n%y = Neg(%a)\n%z = Exp(%y)\nret %z\n}\n", "liveness,views,inplace");
	const om_assignment *was = b.p->assignment;
	CU_ASSERT_EQUAL(was->backing[value(&b, "y")->id].store, OM_INPLACE);
	b.p->has &= ~(unsigned)(OM_HAS_VIEWS | OM_HAS_STORE);
	om_assignment_settle(b.p);
	CU_ASSERT_EQUAL(b.p->assignment->backing[value(&b, "y")->id].store, OM_OWN);
	CU_ASSERT_EQUAL(b.p->assignment->live[value(&b, "y")->id].first, was->live[value(&b, "y")->id].first);
	CU_ASSERT_EQUAL(was->backing[value(&b, "y")->id].store, OM_INPLACE);
	om_value_new(b.p, b.p->first, "new");
	om_assignment_settle(b.p);
	CU_ASSERT_PTR_NULL(b.p->assignment);
	CU_ASSERT_FALSE(b.p->has & OM_HAS_LIVE);
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, "liveness"), OM_OK);
	b.p->has &= ~(unsigned)OM_HAS_LIVE;
	om_assignment_settle(b.p);
	CU_ASSERT_PTR_NULL(b.p->assignment);
	bench_close(&b);
}

/* ---- Requests. ---- */

static om_status
request(const bench *b, om_plan_request r)
{
	return om_host_request(b->h, &r);
}

/* Arenas are a matter of packing; what else is requested decides about lifetimes and storage. */
static void
another_request(void)
{
	const om_arena_spec arena[] = {{.name = "fast", .device = "cpu", .limit = 128}, {.name = "slow", .device = "cpu", .align = 4096}};
	bench b;

	unit_start(&b, HEAD "^g(%x: float32[8]) {\n%a = Neg(%x)\n%y = Neg(%a)\n%z = Exp(%y)\nret %z\n}\n", "liveness,views,inplace,pack");
	const om_assignment *was = b.p->assignment;
	CU_ASSERT_EQUAL(b.p->plan->narena, 1);
	CU_ASSERT_EQUAL(b.p->plan->align, 64);
	CU_ASSERT_EQUAL(request(&b, (om_plan_request)OM_PLAN_REQUEST(.arena = arena, .narena = 2)), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, ""), OM_OK);
	CU_ASSERT_PTR_EQUAL(b.p->assignment->backing, was->backing);
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, "pack"), OM_OK);
	CU_ASSERT_EQUAL_FATAL(b.p->plan->narena, 2);
	CU_ASSERT_STRING_EQUAL(b.p->plan->arena[1].name, "slow");
	CU_ASSERT_EQUAL(b.p->plan->arena[1].align, 4096);
	CU_ASSERT_EQUAL(request(&b, (om_plan_request)OM_PLAN_REQUEST(.align = 256, .target = OM_TARGET_CPU)), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, ""), OM_OK);
	CU_ASSERT_PTR_NULL(b.p->assignment);
	CU_ASSERT_FALSE(b.p->has & (OM_HAS_LIVE | OM_HAS_PLAN));
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, "pack"), OM_OK);
	CU_ASSERT_EQUAL(b.p->plan->align, 256);
	CU_ASSERT_EQUAL(b.p->plan->arena[0].align, 256);
	CU_ASSERT_EQUAL(b.p->plan->target, OM_TARGET_CPU);
	CU_ASSERT_EQUAL(b.p->plan->arena[0].bytes % 256, 0);
	CU_ASSERT_EQUAL(om_host_request(b.h, NULL), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, "pack"), OM_OK);
	CU_ASSERT_EQUAL(b.p->plan->align, 64);
	bench_close(&b);
}

static void
wrong_requests_are_refused(void)
{
	bench b;

	unit_start(&b, HEAD "^g(%x: float32[8]) {\n%y = Neg(%x)\nret %y\n}\n", "pack");
	CU_ASSERT_EQUAL(request(&b, (om_plan_request)OM_PLAN_REQUEST(.align = 96)), OM_USAGE);
	CU_ASSERT_STRING_EQUAL(om_message(b.s), "the alignment of a plan must be a power of two, not 96");
	CU_ASSERT_EQUAL(request(&b, (om_plan_request){.align = 64}), OM_USAGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(om_message(b.s), "initialize it with OM_PLAN_REQUEST()"));
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, "pack"), OM_OK);
	CU_ASSERT_EQUAL(b.p->plan->align, 64);
	bench_close(&b);
}

/* ---- Which one is smaller? ---- */

static char *
random_text(uint64_t seed)
{
	enum { N = 9 };
	unsigned rows[N + 1] = {1 + (unsigned)om_rng_below(&seed, 9)};
	char *text;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	fprintf(to, HEAD "^g(%%v0: float32[%u]) {\n", 16 * rows[0]);
	for (unsigned k = 1; k <= N; k++) {
		const unsigned a = (unsigned)om_rng_below(&seed, k), b = (unsigned)om_rng_below(&seed, k);
		if (om_rng_below(&seed, 2) && rows[a] + rows[b] < 40) {
			rows[k] = rows[a] + rows[b];
			fprintf(to, "%%v%u = Concat(%%v%u, %%v%u) {axis = 0}\n", k, a, b);
		} else {
			rows[k] = rows[a];
			fprintf(to, "%%v%u = Neg(%%v%u)\n", k, a);
		}
	}
	fprintf(to, "ret %%v%u, %%v%u\n}\n", (unsigned)N, (unsigned)N / 2);
	fclose(to);
	return text;
}

static uint64_t
height(const bench *b, const om_assignment *a)
{
	const om_buffers *buffers = om_buffers_new(b->p, a, b->mem);
	om_pack_result r;

	CU_ASSERT_EQUAL_FATAL(om_pack(b->s, buffers->buf, buffers->n, &r), OM_OK);
	return r.height;
}

static bool
agrees(const bench *b, const om_assignment *one, const om_assignment *other)
{
	om_arena_size x, y;
	bool yes;

	CU_ASSERT_EQUAL_FATAL(om_assignment_size(b->s, b->p, one, &x), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_assignment_size(b->s, b->p, other, &y), OM_OK);
	CU_ASSERT(x.bound <= x.bytes && y.bound <= y.bytes);
	om_arena_size less_x = x, less_y = y;
	CU_ASSERT_EQUAL_FATAL(om_assignment_seems_smaller(b->s, b->p, one, &less_x, other, &less_y, &yes), OM_OK);
	CU_ASSERT_EQUAL(yes, less_x.bytes < less_y.bytes);
	CU_ASSERT(less_x.bytes >= height(b, one) && less_y.bytes >= height(b, other));
	CU_ASSERT_EQUAL_FATAL(om_assignment_is_smaller(b->s, b->p, one, &x, other, &y, &yes), OM_OK);
	return yes == (height(b, one) < height(b, other));
}

static void
comparing_is_what_packing_says(void)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		char *text = random_text(seed);
		const om_assignment *with, *without, *none;
		bench b;
		unit_start(&b, text, "shapes,fold");
		const om_schedule *s = om_schedule_new(b.p, b.mem);
		none = om_assign_lifetimes(b.p, s, om_plan_request_copy(&(om_plan_request)OM_PLAN_REQUEST(), b.mem), om_prog_op_facts(b.p, &plain), b.mem);
		CU_ASSERT_EQUAL_FATAL(om_assign_inplace(b.s, b.p, none, OM_SUBBUFFERS_YES, false, b.mem, &with), OM_OK);
		CU_ASSERT_EQUAL_FATAL(om_assign_inplace(b.s, b.p, none, OM_SUBBUFFERS_NO, false, b.mem, &without), OM_OK);
		const bool good = agrees(&b, with, without) && agrees(&b, without, with) && agrees(&b, with, none);
		CU_ASSERT(good);
		if (!good)
			printf("# seed %d:\n%s\n", (int)seed, text);
		bench_close(&b);
		free(text);
	}
}

/* ---- Known sizes. ---- */

/* A problem of two buffers, of which the first has `bytes` and is live for `steps`. */
static bool
is_known(const om_known_sizes *known, uint64_t bytes, uint32_t steps, uint64_t target, uint64_t expected)
{
	const om_interval live[2] = {{0, steps, 0, 0}, {1, 9, 0, 0}};
	const om_buffer buf[2] = {{.bytes = bytes, .live = &live[0], .nlive = 1}, {.bytes = 64, .live = &live[1], .nlive = 1}};
	om_arena_size size;

	return om_known_sizes_find(known, buf, 2, &(om_search_limits){.nodes = 10, .target = target}, &size)
		&& size.bytes == expected;
}

static void
learn(om_known_sizes *known, uint64_t bytes, uint32_t steps, uint64_t target, uint64_t found)
{
	const om_interval live[2] = {{0, steps, 0, 0}, {1, 9, 0, 0}};
	const om_buffer buf[2] = {{.bytes = bytes, .live = &live[0], .nlive = 1}, {.bytes = 64, .live = &live[1], .nlive = 1}};

	om_known_sizes_add(known, buf, 2, &(om_search_limits){.nodes = 10, .target = target}, &(om_arena_size){0, found});
}

static void
sizes_are_known_for_the_same_problem(void)
{
	om_arena *mem = om_arena_new();
	om_known_sizes *known = om_known_sizes_new(mem);

	CU_ASSERT(!is_known(known, 64, 3, 0, 128));
	learn(known, 64, 3, 0, 128);
	learn(known, 64, 4, 0, 192);
	CU_ASSERT(is_known(known, 64, 3, 0, 128) && is_known(known, 64, 4, 0, 192));
	CU_ASSERT(!is_known(known, 65, 3, 0, 128) && !is_known(known, 64, 3, 1, 128) && !is_known(known, 64, 5, 0, 128));
	for (uint32_t k = 0; k < 63; k++)
		learn(known, 1000 + k, 3, 0, k);
	CU_ASSERT(!is_known(known, 64, 3, 0, 128) && is_known(known, 64, 4, 0, 192));
	CU_ASSERT(is_known(known, 1000, 3, 0, 0) && is_known(known, 1062, 3, 0, 62));
	om_arena_free(mem);
}

enum { LARGE = 1000 };

/* A problem of so many buffers that few of its size are kept. */
static void
fill_large(om_buffer *buf, const om_interval *live, uint64_t bytes)
{
	for (uint32_t k = 0; k < LARGE; k++)
		buf[k] = (om_buffer){.bytes = bytes, .live = live, .nlive = 1};
}

static void
sizes_of_large_problems_are_known(void)
{
	const om_interval live = {0, 3, 0, 0};
	const om_search_limits limits = {.nodes = 10};
	om_arena *mem = om_arena_new();
	om_known_sizes *known = om_known_sizes_new(mem);
	om_buffer *buf = OM_NEWN(mem, om_buffer, LARGE);
	om_arena_size size;

	CU_ASSERT(!om_known_sizes_is_large(buf, 2));
	learn(known, 64, 3, 0, 128);
	for (uint64_t bytes = 1; bytes <= 5; bytes++) {
		fill_large(buf, &live, bytes);
		CU_ASSERT(om_known_sizes_is_large(buf, LARGE));
		CU_ASSERT(!om_known_sizes_find(known, buf, LARGE, &limits, &size));
		om_known_sizes_add(known, buf, LARGE, &limits, &(om_arena_size){bytes, 10 * bytes});
	}
	for (uint64_t bytes = 1; bytes <= 5; bytes++) {
		fill_large(buf, &live, bytes);
		CU_ASSERT_EQUAL(om_known_sizes_find(known, buf, LARGE, &limits, &size), bytes > 1);
		CU_ASSERT(bytes == 1 || (size.bound == bytes && size.bytes == 10 * bytes));
	}
	CU_ASSERT(is_known(known, 64, 3, 0, 128));
	om_arena_free(mem);
}

/* Two comparisons of the same assignments: the second one finds what the first one packed. */
static void
sizes_are_packed_once(void)
{
	char *text = random_text(3);
	const om_assignment *none, *with;
	om_arena_size x, y;
	bench b;
	bool yes;

	unit_start(&b, text, "shapes,fold");
	const om_schedule *s = om_schedule_new(b.p, b.mem);
	none = om_assign_lifetimes(b.p, s, om_plan_request_copy(&(om_plan_request)OM_PLAN_REQUEST(), b.mem), om_prog_op_facts(b.p, &plain), b.mem);
	CU_ASSERT_EQUAL_FATAL(om_assign_inplace(b.s, b.p, none, OM_SUBBUFFERS_NO, false, b.mem, &with), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_assignment_size(b.s, b.p, none, &x), OM_OK);
	const om_arena_size false_one = {1, 2};
	const om_buffers *buffers = om_buffers_new(b.p, with, b.mem);
	om_known_sizes_add(with->facts->known_sizes, buffers->buf, buffers->n, &(om_search_limits){.nodes = 2000, .work = 100000}, &false_one);
	CU_ASSERT_EQUAL_FATAL(om_assignment_size(b.s, b.p, with, &y), OM_OK);
	CU_ASSERT_EQUAL(y.bytes, 2);
	CU_ASSERT_EQUAL_FATAL(om_assignment_is_smaller(b.s, b.p, with, &y, none, &x, &yes), OM_OK);
	CU_ASSERT(yes);
	bench_close(&b);
	free(text);
}

/* ---- Rematerialization. ---- */

static uint64_t
arena_bytes(bench *b, om_prog *p)
{
	CU_ASSERT_EQUAL_FATAL(om_host_run(b->h, p, "liveness,views,alias-io=declared,inplace,pack"), OM_OK);
	CU_ASSERT_EQUAL(om_plan_verify(b->s, p, p->plan), OM_OK);
	return p->plan->arena[0].bytes;
}

/* True if the pass copied an op; it does where the plan gets smaller by that, and else changes nothing. */
static bool
is_rematerialized(uint64_t seed)
{
	char *text = random_text(seed), *was, *now;
	om_prog *as_it_was;
	bench b;

	unit_start(&b, text, "shapes,fold");
	const uint32_t nop = b.p->nop, nvalue = b.p->nvalue;
	CU_ASSERT_EQUAL_FATAL(om_prog_bind(b.s, b.p, NULL, &as_it_was), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_host_run(b.h, b.p, om_printf(b.mem, "rematerialize=1000:budget=%d", (int)(seed % 2) * 64)), OM_OK);
	was = text_dump(as_it_was, 0);
	now = text_dump(b.p, 0);
	const bool is_other = b.p->nop != nop, is_smaller = arena_bytes(&b, b.p) < arena_bytes(&b, as_it_was);
	CU_ASSERT_EQUAL(is_other, is_smaller);
	CU_ASSERT_EQUAL(is_other, b.p->nvalue != nvalue);
	CU_ASSERT_EQUAL(is_other, strcmp(was, now) != 0);
	if (is_other != is_smaller)
		printf("# seed %d:\n%s\n", (int)seed, text);
	free(was);
	free(now);
	free(text);
	om_prog_free(as_it_was);
	bench_close(&b);
	return is_other;
}

static void
rematerialization_helps_or_changes_nothing(void)
{
	unsigned n = 0;

	for (uint64_t seed = 1; seed <= 60; seed++)
		n += is_rematerialized(seed);
	CU_ASSERT(n >= 5 && n <= 55);
}

static CU_TestInfo tests[] = {
	{"facts are what the definitions say", facts_are_what_definitions_say},
	{"facts follow changes of the program", facts_follow_changes},
	{"schedules leave the program alone", schedules_leave_the_program_alone},
	{"an order, and how it was found", an_order_and_how_it_was_found},
	{"storage is decided anew after loops", storage_is_decided_anew},
	{"what a pass does not keep is dropped", what_is_not_kept_is_dropped},
	{"another request", another_request},
	{"wrong requests are refused", wrong_requests_are_refused},
	{"20 random graphs: comparing says what packing says", comparing_is_what_packing_says},
	{"sizes are known for the same problem", sizes_are_known_for_the_same_problem},
	{"sizes: large problems are known", sizes_of_large_problems_are_known},
	{"what is known is not packed again", sizes_are_packed_once},
	{"60 random graphs: rematerialization helps, or changes nothing", rematerialization_helps_or_changes_nothing},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("assignments", tests);
