/* SPDX-License-Identifier: Apache-2.0 */
/* What bodies do to shapes. */
#include <config.h>

#include <stdlib.h>

#include "onnxmem/builder.h"
#include "tests/fixtures.h"
#include "unit.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "opdef/op_context.h"

static bench
infer(const char *body)
{
	bench b = bench_open();
	om_status st = bench_read(&b, om_printf(b.mem, "program \"p\" ir 10 opset 17\n%s", body));

	if (st == OM_OK)
		st = om_block_infer(b.s, b.p, b.p->first);
	CU_ASSERT(is_ok(b.s, st));
	return b;
}

static bool
has_shape(const bench *b, const char *name, const char *want)
{
	char got[128];
	const om_value *v = om_prog_find(b->p, name);

	if (!v || strcmp(om_shape_text(&v->shape, got, sizeof got), want) != 0) {
		printf("%s is %s, not %s\n", name, v ? got : "not there", want);
		return false;
	}
	return true;
}

/* What was computed from shapes of the first pass must not survive it. */
static void
growing(void)
{
	bench b = infer(
		"^g(%x: float32[2], %m: int64[]) {\n"
		"\t%v, %all = Loop(%m, _, %x) {body = ^b(%i: int64[], %c: bool[], %a: float32[2]) {\n"
		"\t\t%k = Identity(%c)\n"
		"\t\t%s: float32[4] = Concat(%a, %x) {axis = 0}\n"
		"\t\t%n = Shape(%a)\n"
		"\t\t%e = ConstantOfShape(%n)\n"
		"\t\t%t = Shape(%x)\n"
		"\t\tret %k, %s, %e\n"
		"\t}}\n"
		"\tret %v, %all\n"
		"}\n");

	CU_ASSERT(has_shape(&b, "a", "[?]"));
	CU_ASSERT(has_shape(&b, "s", "[?]"));
	CU_ASSERT(has_shape(&b, "e", "[?]"));
	CU_ASSERT_PTR_NULL(om_prog_find(b.p, "n")->data);
	CU_ASSERT_PTR_NOT_NULL(om_prog_find(b.p, "t")->data);
	CU_ASSERT(has_shape(&b, "v", "[?]"));
	CU_ASSERT(has_shape(&b, "all", "[?,?]"));
	bench_close(&b);
}

static void
counted(void)
{
	bench b = infer(
		"^g(%x: float32[2,N]) {\n"
		"\t%m = const int64[] {5}\n"
		"\t%yes = const bool[] {1}\n"
		"\t%v, %all = Loop(%m, %yes, %x) {body = ^b(%i: int64[], %c: bool[], %a: float32[..]) {\n"
		"\t\t%k = Identity(%c)\n"
		"\t\t%s = Identity(%a)\n"
		"\t\tret %k, %s, %s\n"
		"\t}}\n"
		"\tret %v, %all\n"
		"}\n");

	CU_ASSERT(has_shape(&b, "v", "[2,N]"));
	CU_ASSERT(has_shape(&b, "all", "[5,2,N]"));
	bench_close(&b);
}

/* Two that change places, a third that follows them an iteration later. */
static void
swapped(void)
{
	bench b = infer(
		"^g(%x: float32[2,7], %y: float32[3,7], %z: float32[2,7], %m: int64[], %q: bool[]) {\n"
		"\t%u, %v, %w = Loop(%m, %q, %x, %y, %z) {body = ^b(%i: int64[], %c: bool[], %a: float32[..], "
		"%d: float32[..], %e: float32[..]) {\n"
		"\t\t%f = Identity(%a)\n"
		"\t\t%g = Identity(%d)\n"
		"\t\t%h = Identity(%a)\n"
		"\t\tret %c, %g, %f, %h\n"
		"\t}}\n"
		"\tret %u, %v, %w\n"
		"}\n");

	CU_ASSERT(has_shape(&b, "u", "[?,7]"));
	CU_ASSERT(has_shape(&b, "v", "[?,7]"));
	CU_ASSERT(has_shape(&b, "w", "[?,7]"));
	bench_close(&b);
}

static void
nested(void)
{
	bench b = infer(
		"^g(%x: float32[2], %m: int64[]) {\n"
		"\t%three = const int64[] {3}\n"
		"\t%v = Loop(%m, _, %x) {body = ^b(%i: int64[], %c: bool[], %a: float32[..]) {\n"
		"\t\t%k = Identity(%c)\n"
		"\t\t%s, %scan = Loop(%three, _, %a) {body = ^d(%j: int64[], %o: bool[], %r: float32[..]) {\n"
		"\t\t\t%l = Identity(%o)\n"
		"\t\t\t%n = Shape(%r)\n"
		"\t\t\t%t = Identity(%r)\n"
		"\t\t\tret %l, %t, %n\n"
		"\t\t}}\n"
		"\t\t%more = Concat(%s, %x) {axis = 0}\n"
		"\t\tret %k, %more\n"
		"\t}}\n"
		"\tret %v\n"
		"}\n");

	CU_ASSERT(has_shape(&b, "scan", "[3,1]"));
	CU_ASSERT(has_shape(&b, "r", "[?]"));
	CU_ASSERT_PTR_NULL(om_prog_find(b.p, "n")->data);
	CU_ASSERT(has_shape(&b, "v", "[?]"));
	bench_close(&b);
}

static void
branches(void)
{
	static const char text[] =
		"^g(%%x: float32[2,N], %%q: bool[]) {\n"
		"\t%%yes = const bool[] {1}\n"
		"\t%%y = If(%%%s) {then_branch = ^t() {\n"
		"\t\t%%a = Identity(%%x)\n"
		"\t\tret %%a\n"
		"\t}, else_branch = ^e() {\n"
		"\t\t%%b = Concat(%%x, %%x) {axis = 0}\n"
		"\t\tret %%b\n"
		"\t}}\n"
		"\tret %%y\n"
		"}\n";
	char program[512];

	snprintf(program, sizeof program, text, "q");
	bench b = infer(program);
	CU_ASSERT(has_shape(&b, "y", "[?,N]"));
	bench_close(&b);
	snprintf(program, sizeof program, text, "yes");
	b = infer(program);
	CU_ASSERT(has_shape(&b, "y", "[2,N]"));
	bench_close(&b);
}

static void
scanned(void)
{
	bench b = infer(
		"^g(%h: float32[3], %x: float32[5,T,3]) {\n"
		"\t%v, %all = Scan(%h, %x) {num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [-1], "
		"body = ^b(%s: float32[..], %e: float32[..]) {\n"
		"\t\t%t = Identity(%s)\n"
		"\t\t%f = Identity(%e)\n"
		"\t\tret %t, %f\n"
		"\t}}\n"
		"\tret %v, %all\n"
		"}\n");

	CU_ASSERT(has_shape(&b, "e", "[5,3]"));
	CU_ASSERT(has_shape(&b, "v", "[3]"));
	CU_ASSERT(has_shape(&b, "all", "[5,3,T]"));
	bench_close(&b);
}

/* The bodies of an op that was taken out are in no block. */
static void
removed(void)
{
	bench b = infer(
		"^g(%x: float32[2], %m: int64[]) {\n"
		"\t%v = Loop(%m, _, %x) {body = ^b(%i: int64[], %c: bool[], %a: float32[2]) {\n"
		"\t\t%u = Loop(%m, _, %a) {body = ^d(%j: int64[], %o: bool[], %r: float32[2]) {\n"
		"\t\t\tret %o, %r\n"
		"\t\t}}\n"
		"\t\tret %c, %u\n"
		"\t}}\n"
		"\tret %x\n"
		"}\n");
	const om_block *graph = b.p->first, *outer = om_prog_find(b.p, "a")->block, *inner = om_prog_find(b.p, "r")->block;

	CU_ASSERT(om_block_inside(inner, graph) && om_block_inside(inner, outer));
	CU_ASSERT_PTR_EQUAL(om_block_enclosing_op(graph, inner), om_prog_find(b.p, "v")->def);
	om_op_remove(om_prog_find(b.p, "v")->def);
	CU_ASSERT(!om_block_inside(inner, graph) && !om_block_inside(outer, graph));
	CU_ASSERT(om_block_inside(inner, outer));
	CU_ASSERT_PTR_NULL(om_block_enclosing_op(graph, inner));
	bench_close(&b);
}

static CU_TestInfo control_tests[] = {
	{"a carried value that grows", growing},
	{"a known number of iterations", counted},
	{"carried values that change places", swapped},
	{"a loop in a loop", nested},
	{"branches of different shapes", branches},
	{"a scan along other axes", scanned},
	{"bodies of an op that was taken out", removed},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("bodies", control_tests);
