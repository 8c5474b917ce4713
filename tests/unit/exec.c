/* SPDX-License-Identifier: Apache-2.0 */
/* The executor, on programs that are written as text. */
#include <config.h>

#include <math.h>
#include <stdio.h>

#include "tests/fixtures.h"
#include "unit.h"
#include "ir/query.h"

static bool
bench_planned(bench *b, const char *text, om_exec_options o)
{
	*b = bench_open();
	return is_ok(b->s, bench_plan(b, text, om_default_pipeline())) && is_ok(b->s, bench_exec(b, &o));
}

static bool
bench_new(bench *b, const char *text)
{
	*b = bench_open();
	return is_ok(b->s, bench_plan(b, text, "inline,shapes,fold")) && is_ok(b->s, bench_exec(b, &ways[SEPARATE]));
}

static om_status
give_floats(bench *b, uint32_t k, int rank, const int64_t *dims, const float *v)
{
	const om_tensor t = {.type = OM_FLOAT32, .shape = om_shape_of(rank, dims), .data = (void *)v};
	return om_exec_input(b->e, k, &t);
}

static const char chain[] =
	"program \"t\" ir 8 opset 17\n"
	"^main(%x: float32[2,2], %w: float32[2] = {1.0, 2.0}) {\n"
	"	%k = const float32[2] {10.0, 20.0}\n"
	"	%a = Add(%x, %w)\n"
	"	%b = Relu(%a)\n"
	"	%dead = domain::Nothing(%b)\n"
	"	ret %b, %x, %k, %b\n"
	"}\n";

static void
results_stand_alone(void)
{
	const float x[] = {-1, -3, 2, 4}, b[] = {0, 0, 3, 6}, k[] = {10, 20};
	bench t;

	if (!bench_new(&t, chain)) {
		CU_FAIL("no executor");
		bench_close(&t);
		return;
	}
	CU_ASSERT_EQUAL(om_exec_run(t.e), OM_RUN);
	CU_ASSERT_PTR_NOT_NULL(strstr(om_message(t.s), "input x"));
	CU_ASSERT_EQUAL(give_floats(&t, 0, 2, (int64_t[]){2, 2}, x), OM_OK);
	CU_ASSERT_EQUAL(om_exec_run(t.e), OM_OK);
	CU_ASSERT(is_floats(om_exec_result(t.e, 0), 4, b));
	CU_ASSERT(is_floats(om_exec_result(t.e, 1), 4, x) && om_exec_result(t.e, 1)->data != x);
	CU_ASSERT(is_floats(om_exec_result(t.e, 2), 2, k));
	CU_ASSERT(is_floats(om_exec_result(t.e, 3), 4, b) && om_exec_result(t.e, 3)->data != om_exec_result(t.e, 0)->data);
	bench_close(&t);
}

/* Keys after the first ones may be anything. */
static void
padding_is_not_read(void)
{
	static const char text[] =
		"program \"t\" ir 10 opset 24\n"
		"^main(%q: float32[1,1,1,1], %x: float32[1,1,4,1]) {\n"
		"	%count = const int64[] {2}\n"
		"	%counts = const int64[1] {2}\n"
		"	%axes = const int64[2] {0, 3}\n"
		"	%row = Squeeze(%x, %axes)\n"
		"	%w = org.onnxmem.cpu::PrefixSoftmax@1(%row, %count)\n"
		"	%y = org.onnxmem.cpu::Attention@1(%q, %x, %x, _, _, _, %count) {dims = [1,1,4,1,1], shape = [1,1,1,1], q = [0,1,1,1],"
		" k = [0,4,1,1], v = [0,4,1,1], y = [0,1,1,1]}\n"
		"	%z = Attention(%q, %x, %x, _, _, _, %counts)\n"
		"	%h = Cast(%x) {to = 10}\n"
		"	%p = Cast(%q) {to = 10}\n"
		"	%i = org.onnxmem.cpu::Attention@1(%p, %h, %h, _, _, _, %count) {dims = [1,1,4,1,1], shape = [1,1,1,1], q = [0,1,1,1],"
		" k = [0,4,1,1], v = [0,4,1,1], y = [0,1,1,1]}\n"
		"	%j = Cast(%i) {to = 1}\n"
		"	ret %w, %y, %z, %j\n"
		"}\n";
	const float q[] = {0}, x[] = {3, 3, NAN, INFINITY}, w[] = {0.5f, 0.5f, 0, 0}, y[] = {3};
	bench t;

	if (!bench_new(&t, text)) {
		CU_FAIL("no executor");
		bench_close(&t);
		return;
	}
	CU_ASSERT_EQUAL(give_floats(&t, 0, 4, (int64_t[]){1, 1, 1, 1}, q), OM_OK);
	CU_ASSERT_EQUAL(give_floats(&t, 1, 4, (int64_t[]){1, 1, 4, 1}, x), OM_OK);
	CU_ASSERT_EQUAL(om_exec_run(t.e), OM_OK);
	CU_ASSERT(is_floats(om_exec_result(t.e, 0), 4, w));
	CU_ASSERT(is_floats(om_exec_result(t.e, 1), 1, y));
	CU_ASSERT(is_floats(om_exec_result(t.e, 2), 1, y));
	CU_ASSERT(is_floats(om_exec_result(t.e, 3), 1, y));
	bench_close(&t);
}

static void
memory_of_the_caller_is_used(void)
{
	const float x[] = {-1, -3, 2, 4}, y[] = {1, 1, 1, 1}, w[] = {5, 6};
	float out[4];
	bench t;

	if (!bench_new(&t, chain)) {
		CU_FAIL("no executor");
		bench_close(&t);
		return;
	}
	CU_ASSERT_EQUAL(om_exec_output(t.e, 0, out, 8), OM_RUN);
	CU_ASSERT_EQUAL(om_exec_output(t.e, 0, out, sizeof out), OM_OK);
	CU_ASSERT_EQUAL(give_floats(&t, 0, 2, (int64_t[]){2, 3}, x), OM_RUN);
	CU_ASSERT_EQUAL(give_floats(&t, 0, 2, (int64_t[]){2, 2}, x), OM_OK);
	CU_ASSERT_EQUAL(om_exec_run(t.e), OM_OK);
	CU_ASSERT(om_exec_result(t.e, 0)->data == out && out[3] == 6);
	CU_ASSERT_EQUAL(give_floats(&t, 0, 2, (int64_t[]){2, 2}, y), OM_OK);
	CU_ASSERT_EQUAL(give_floats(&t, 1, 1, (int64_t[]){2}, w), OM_OK);
	CU_ASSERT_EQUAL(om_exec_run(t.e), OM_OK);
	CU_ASSERT(out[0] == 6 && out[1] == 7);
	CU_ASSERT_EQUAL(om_exec_output(t.e, 0, NULL, 0), OM_OK);
	out[0] = 0;
	CU_ASSERT_EQUAL(om_exec_run(t.e), OM_OK);
	CU_ASSERT(om_exec_result(t.e, 0)->data != out && out[0] == 0);
	CU_ASSERT_EQUAL(*(const float *)om_exec_result(t.e, 0)->data, 6);
	bench_close(&t);
}

/* ---- Ops with bodies: planned, poisoned, and without a plan. ---- */

struct answer {
	uint32_t k;
	int64_t n;
	float want[12];
};

/* Feeds {1, 2}, {3, 4} and the number of iterations, and expects the same answers every way. */
static void
try_all_ways(const char *text, int64_t iterations, const struct answer *a)
{
	const float p[] = {1, 2}, q[] = {3, 4};
	const om_tensor m = {.type = OM_INT64, .data = &iterations};
	bool good = true;

	for (int w = 0; w < NWAY; w++) {
		bench t;
		good = bench_planned(&t, text, ways[w]);
		good = good && give_floats(&t, 0, 1, (int64_t[]){2}, p) == OM_OK
		    && give_floats(&t, 1, 1, (int64_t[]){2}, q) == OM_OK
		    && om_exec_input(t.e, 2, &m) == OM_OK;
		for (int again = 0; again < 2 && good; again++) {
			good = om_exec_run(t.e) == OM_OK;
			for (uint32_t k = 0; good && k < t.p->first->nresult; k++)
				good = is_floats(om_exec_result(t.e, a[k].k), a[k].n, a[k].want);
		}
		CU_ASSERT(good);
		if (!good)
			printf("way %d: %s\n", w, om_message(t.s));
		bench_close(&t);
	}
}

static const char swap[] =
	"program \"t\" ir 8 opset 17\n"
	"^main(%p: float32[2], %q: float32[2], %m: int64[]) {\n"
	"	%a, %b, %s = Loop(%m, _, %p, %q) {body = ^b(%i: int64[], %c: bool[], %x: float32[2], %y: float32[2]) {\n"
	"		%go = Identity(%c)\n"
	"		%d = Sub(%x, %q)\n"
	"		ret %go, %y, %x, %d\n"
	"	}}\n"
	"	ret %a, %b, %s\n"
	"}\n";

static void
carried_values_swap(void)
{
	try_all_ways(swap, 3, (struct answer[]){
		{0, 2, {3, 4}}, {1, 2, {1, 2}}, {2, 6, {-2, -2, 0, 0, -2, -2}}});
}

static void
no_iteration_gives_the_initial_values(void)
{
	try_all_ways(swap, 0, (struct answer[]){{0, 2, {1, 2}}, {1, 2, {3, 4}}, {2, 0, {0}}});
}

static void
carried_values_grow(void)
{
	try_all_ways("program \"t\" ir 8 opset 17\n"
		"^main(%p: float32[2], %q: float32[2], %m: int64[]) {\n"
		"	%a = Loop(%m, _, %p) {body = ^b(%i: int64[], %c: bool[], %x: float32[?]) {\n"
		"		%go = Identity(%c)\n"
		"		%y = Concat(%x, %q) {axis = 0}\n"
		"		ret %go, %y\n"
		"	}}\n"
		"	ret %a\n"
		"}\n", 2, (struct answer[]){{0, 6, {1, 2, 3, 4, 3, 4}}});
}

static void
loops_nest(void)
{
	try_all_ways("program \"t\" ir 8 opset 17\n"
		"^main(%p: float32[2], %q: float32[2], %m: int64[]) {\n"
		"	%two = const int64[] {2}\n"
		"	%a = Loop(%m, _, %p) {body = ^b(%i: int64[], %c: bool[], %x: float32[2]) {\n"
		"		%go = Identity(%c)\n"
		"		%y = Loop(%two, _, %x) {body = ^b(%j: int64[], %d: bool[], %z: float32[2]) {\n"
		"			%on = Identity(%d)\n"
		"			%u = Add(%z, %q)\n"
		"			ret %on, %u\n"
		"		}}\n"
		"		ret %go, %y\n"
		"	}}\n"
		"	ret %a\n"
		"}\n", 3, (struct answer[]){{0, 2, {19, 26}}});
}

static void
scans_go_both_ways(void)
{
	try_all_ways("program \"t\" ir 8 opset 17\n"
		"^main(%p: float32[2], %q: float32[2], %m: int64[]) {\n"
		"	%w = const float32[] {0.0}\n"
		"	%a, %s, %r = Scan(%w, %p, %q) {num_scan_inputs = 2, scan_input_directions = [0, 1],\n"
		"		scan_output_directions = [0, 1], body = ^b(%x: float32[], %y: float32[], %z: float32[]) {\n"
		"		%t = Add(%x, %y)\n"
		"		%u = Mul(%y, %z)\n"
		"		%v = Identity(%t)\n"
		"		ret %t, %u, %v\n"
		"	}}\n"
		"	ret %a, %s, %r\n"
		"}\n", 0, (struct answer[]){{0, 1, {3}}, {1, 2, {4, 6}}, {2, 2, {3, 1}}});
}

/* y = x x z, and what it changes by: where x is, elsewhere, and what that changes by. */
static void
named_gradients(void)
{
	static const float x[] = {1, 2, 3}, z[] = {2, 1, -2}, at[] = {5, 6, 7}, alone[] = {1, 1};
	static const float *const in[] = {x, z, at, alone};
	bench t;

	const bool ready = bench_planned(&t, "program \"\" ir 8 opset 17 opset ai.onnx.preview.training 1\n"
		"^main(%x: float32[3], %z: float32[3], %at: float32[3], %alone: float32[2]) {\n"
		"	%s = Mul(%x, %x)\n"
		"	%y = Mul(%s, %z)\n"
		"	%dx, %no = ai.onnx.preview.training::Gradient(%x, %alone, %z) {xs = [\"x\", \"alone\"], zs = [\"z\"], y = \"y\"}\n"
		"	%there = ai.onnx.preview.training::Gradient(%at, %z) {xs = [\"x\"], zs = [\"z\"], y = \"y\"}\n"
		"	%twice = ai.onnx.preview.training::Gradient(%x, %z) {xs = [\"x\"], zs = [\"z\"], y = \"dx\"}\n"
		"	ret %dx, %no, %there, %twice\n"
		"}\n", (om_exec_options)OM_EXEC_OPTIONS(.poison = true));
	CU_ASSERT(ready);
	for (uint32_t k = 0; ready && k < 4; k++)
		CU_ASSERT_EQUAL(give_floats(&t, k, 1, (int64_t[]){k < 3 ? 3 : 2}, in[k]), OM_OK);
	if (ready) {
		CU_ASSERT_EQUAL(om_exec_run(t.e), OM_OK);
		CU_ASSERT(is_floats(om_exec_result(t.e, 0), 3, (float[]){4, 4, -12}));
		CU_ASSERT(is_floats(om_exec_result(t.e, 1), 2, (float[]){0, 0}));
		CU_ASSERT(is_floats(om_exec_result(t.e, 2), 3, (float[]){20, 12, -28}));
		CU_ASSERT(is_floats(om_exec_result(t.e, 3), 3, (float[]){4, 2, -4}));
	}
	bench_close(&t);
}

/* A caller, or a file, may have booleans of any byte: all but 0 are true. */
static void
any_byte_is_a_truth(void)
{
	static const char *const text[] = {
		"program \"t\" ir 8 opset 17\n"
		"^main(%c: bool[]) {\n"
		"	%y = If(%c) {then_branch = ^t() {\n"
		"		%a = const float32[1] {3.0}\n"
		"		ret %a\n"
		"	}, else_branch = ^e() {\n"
		"		%b = const float32[1] {4.0}\n"
		"		ret %b\n"
		"	}}\n"
		"	ret %y\n"
		"}\n",
		"program \"t\" ir 8 opset 17\n"
		"^main(%c: bool[]) {\n"
		"	%n = const int64[] {2}\n"
		"	%x = const float32[1] {1.0}\n"
		"	%y = Loop(%n, %c, %x) {body = ^b(%i: int64[], %k: bool[], %s: float32[1]) {\n"
		"		%t = Add(%s, %x)\n"
		"		ret %c, %t\n"
		"	}}\n"
		"	ret %y\n"
		"}\n",
	};
	const uint8_t five = 5;

	for (int k = 0; k < 2; k++) {
		const om_tensor in = {.type = OM_BOOL, .shape = om_shape_of(0, NULL), .data = (void *)&five};
		bench t;
		CU_ASSERT_FATAL(bench_new(&t, text[k]));
		CU_ASSERT_EQUAL(om_exec_input(t.e, 0, &in), OM_OK);
		CU_ASSERT_EQUAL(om_exec_run(t.e), OM_OK);
		CU_ASSERT(is_floats(om_exec_result(t.e, 0), 1, (const float[]){3}));
		om_value *c = t.p->first->param[0];
		c->data = &in;
		CU_ASSERT(om_value_is(c, true) && !om_value_is(c, false));
		bench_close(&t);
	}
}

/* Limits end a run with a sentence, and the next run starts anew. */
static void
limits_hold(void)
{
	static const char text[] = "program \"\" ir 8 opset 17\n"
		"^main(%x: float32[2], %n: int64[]) {\n"
		"	%y, %all = Loop(%n, _, %x) {body = ^b(%k: int64[], %go: bool[], %v: float32[2]) {\n"
		"		%more: bool[] = Identity(%go)\n"
		"		%w: float32[2] = Neg(%v)\n"
		"		%i: float32[2] = Abs(%v)\n"
		"		ret %more, %w, %i\n"
		"	}}\n"
		"	ret %y, %all\n"
		"}\n";
	const struct {
		om_exec_options o;
		int64_t n;
		om_status want;
		const char *part;
	} cases[] = {
		{OM_EXEC_OPTIONS(.max_iterations = 10), 10, OM_OK, ""},
		{OM_EXEC_OPTIONS(.max_iterations = 10), 11, OM_RUN, "exceed the limit of 10 iterations"},
		{OM_EXEC_OPTIONS(.max_memory = 65536), 1000, OM_OK, ""},
		{OM_EXEC_OPTIONS(.max_memory = 65536), INT64_MAX, OM_MEMORY, "the memory limit of 65536 bytes"},
		{OM_EXEC_OPTIONS(), 1000, OM_OK, ""},
	};

	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
		bench t;
		int64_t n = cases[k].n;
		float x[] = {1, -2};
		const om_tensor trips = {.type = OM_INT64, .data = &n};
		const bool ready = bench_planned(&t, text, cases[k].o);
		CU_ASSERT(ready);
		if (ready) {
			CU_ASSERT_EQUAL(give_floats(&t, 0, 1, (int64_t[]){2}, x), OM_OK);
			CU_ASSERT_EQUAL(om_exec_input(t.e, 1, &trips), OM_OK);
			const om_status st = om_exec_run(t.e);
			CU_ASSERT(cases[k].want ? is_told(t.s, st, cases[k].want, cases[k].part) : is_ok(t.s, st));
			n = 3;
			CU_ASSERT(is_ok(t.s, om_exec_run(t.e)));
			CU_ASSERT(is_floats(om_exec_result(t.e, 0), 2, (float[]){-1, 2}));
		}
		bench_close(&t);
	}
}

/* Two executors take turns in one memory, and what is beside it stays. */
static void
arenas_are_lent(void)
{
	static const char text[] =
		"program \"t\" ir 8 opset 17\n"
		"^main(%x: float32[16]) {\n"
		"	%a = Neg(%x)\n"
		"	%b = Abs(%a)\n"
		"	%y = Sub(%a, %b)\n"
		"	ret %y\n"
		"}\n";
	_Alignas(64) unsigned char memory[4096];
	om_exec_memory lent[2] = {{memory + 64, 64}, {memory + 1024, 64}};
	float x[16], y[16];
	bench t = bench_open();
	om_exec *other = NULL;

	memset(memory, 7, sizeof memory);
	for (int k = 0; k < 16; k++) {
		x[k] = (float)k + 1;
		y[k] = -2 * x[k];
	}
	CU_ASSERT(is_ok(t.s, bench_plan(&t, text, om_default_pipeline())));
	CU_ASSERT_EQUAL(t.p->plan->arena[0].bytes, 64);
	CU_ASSERT(is_ok(t.s, bench_exec(&t, &(om_exec_options)OM_EXEC_OPTIONS(.arena = lent, .narena = 1, .poison = true))));
	CU_ASSERT(is_ok(t.s, om_exec_new(t.s, t.p, t.p->plan, &(om_exec_options)OM_EXEC_OPTIONS(.arena = lent, .narena = 1), &other)));
	for (int k = 0; k < 2; k++) {
		om_exec *e = k ? other : t.e;
		const om_tensor in = {.type = OM_FLOAT32, .shape = om_shape_of(1, (int64_t[]){16}), .data = x};
		CU_ASSERT(is_ok(t.s, om_exec_input(e, 0, &in)));
		CU_ASSERT(is_ok(t.s, om_exec_run(e)));
		CU_ASSERT(is_floats(om_exec_result(e, 0), 16, y));
		CU_ASSERT_EQUAL(om_exec_get_stats(e)->arena_bytes, 64);
	}
	om_exec_free(other);
	for (size_t k = 0; k < sizeof memory; k++)
		CU_ASSERT(memory[k] == 7 || (k >= 64 && k < 128));
	CU_ASSERT(memory[64] != 7 || memory[65] != 7);
	lent[0].bytes = 63;
	CU_ASSERT(is_told(t.s, om_exec_new(t.s, t.p, t.p->plan, &(om_exec_options)OM_EXEC_OPTIONS(.arena = lent, .narena = 1), &other),
		OM_USAGE, "requires 64 bytes, and memory of 63 bytes is lent"));
	CU_ASSERT(is_told(t.s, om_exec_new(t.s, t.p, t.p->plan, &(om_exec_options)OM_EXEC_OPTIONS(.arena = lent, .narena = 2), &other),
		OM_USAGE, "lent for 2 arenas, and the plan has 1"));
	lent[0] = (om_exec_memory){memory + 72, 128};
	CU_ASSERT(is_told(t.s, om_exec_new(t.s, t.p, t.p->plan, &(om_exec_options)OM_EXEC_OPTIONS(.arena = lent, .narena = 1), &other),
		OM_USAGE, "not aligned to 64 bytes"));
	bench_close(&t);
}

static CU_TestInfo exec_tests[] = {
	{"arenas are lent", arenas_are_lent},
	{"limits of memory and iterations hold", limits_hold},
	{"any byte is a truth", any_byte_is_a_truth},
	{"gradients that are named are found", named_gradients},
	{"carried values swap", carried_values_swap},
	{"no iteration gives the initial values", no_iteration_gives_the_initial_values},
	{"carried values grow", carried_values_grow},
	{"loops nest", loops_nest},
	{"scans go both ways", scans_go_both_ways},
	{"results stand alone, whatever they are", results_stand_alone},
	{"padding is not read", padding_is_not_read},
	{"memory of the caller is used as it is", memory_of_the_caller_is_used},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("executor", exec_tests);
