/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <stdlib.h>

#include "onnxmem/builder.h"
#include "tests/fixtures.h"
#include "unit.h"
#include "ir/edit.h"

static const char program[] =
	"program \"p\" ir 8 opset 13 opset com.microsoft 1\n"
	"function my::Twice opset 13 takes axis {alpha = 1.0} ^body(%x: undefined[..]) {\n"
	"\t%y = Concat(%x, %x) {axis = ref int axis}\n"
	"\tret %y\n"
	"}\n"
	"function my::Round opset 13 ^body(%x: undefined[..], %c: undefined[..]) {\n"
	"\t%y = If(%c) {then_branch = ^t() {\n"
	"\t\t%z = my::Later(%x)\n"
	"\t\tret %z\n"
	"\t}, else_branch = ^e() {\n"
	"\t\t%z = Relu(%x)\n"
	"\t\tret %z\n"
	"\t}}\n"
	"\tret %y\n"
	"}\n"
	"function my::Later opset 13 ^body(%x: undefined[..]) {\n"
	"\t%y = Neg(%x)\n"
	"\tret %y\n"
	"}\n"
	"^main(%x: float32[1,?,N], %\"a:b \\\"c\": int64[] = {4}, %s: seq(float32)) {\n"
	"\t%w = const float32[3] {1.0, -0.5, 1.00000001e-30}\n"
	"\t%n = const float32[2] {nan, -inf}\n"
	"\t%big = const float32[1000] elided\n"
	"\t%same = const float16[1000] splat {2.0}\n"
	"\t%four = const int4[3] hex 2101\n"
	"\t%t = const string[2] {\"a\", \"\\x00\\\"\"}\n"
	"\t%y: float32[1,?,N], _ = com.microsoft::Split(%x, _, %w) {axis = -1, f = 2.0, m = \"a b\", l = ints [], "
	"i = [1, 2], k = tensor int8[1] {-3}, q = type seq(int64)} as \"node 1\"\n"
	"\t%z = If(%\"a:b \\\"c\") {then_branch = ^then() {\n"
	"\t\t%z = com.microsoft::Gelu(%y)\n"
	"\t\tret %z\n"
	"\t}, else_branch = ^() {\n"
	"\t\tret %y\n"
	"\t}}\n"
	"\t%u = my::Twice@0(%z) {axis = 0}\n"
	"\tret %u, %z, %z\n"
	"}\n";

static void
reads_back_equal(void)
{
	om_session *s = om_session_new();
	om_prog *p = NULL, *q = NULL;

	CU_ASSERT_EQUAL_FATAL(text_parse(s, program, &p), OM_OK);
	CU_ASSERT_EQUAL(om_verify(s, p), OM_OK);
	char *once = text_dump(p, 0);
	CU_ASSERT_EQUAL_FATAL(text_parse(s, once, &q), OM_OK);
	char *twice = text_dump(q, 0);
	CU_ASSERT_STRING_EQUAL(once, twice);
	CU_ASSERT_PTR_NOT_NULL(om_block_find(p, "z/then_branch"));
	free(once);
	free(twice);
	om_prog_free(p);
	om_prog_free(q);
	om_session_free(s);
}

/* Wherever the text ends too early, there is a sentence and no program. */
static void
every_truncation_is_refused(void)
{
	om_session *s = om_session_new();
	char text[sizeof program];

	for (size_t n = 1; n + 2 < sizeof program; n++) {
		om_prog *p;
		memcpy(text, program, n);
		text[n] = '\0';
		CU_ASSERT_NOT_EQUAL(text_parse(s, text, &p), OM_OK);
		CU_ASSERT_PTR_NULL(p);
	}
	om_session_free(s);
}

static void
mistakes_are_named(void)
{
	static const struct { const char *text, *message; } cases[] = {
		{"program \"\" ir 8 ^() { ret %x }", "test:1: %x is used before it is defined"},
		{"program \"\" ir 8\n^(%x: int8[],%x: int8[]) { ret }", "test:2: %x is defined twice"},
		{"program \"\" ir 8\n^(%x: int8[]) { %y, %y = Split(%x) ret }", "test:2: %y is defined twice"},
		{"program \"\" ir 8\n^(%x: int8[]) { %y = Relu(%y) ret }", "test:2: %y is used before it is defined"},
		{"program \"\" ir 8 ^() { %c = const int8[9999999] {1} ret }",
		 "test:1: fewer elements than the shape has"},
		{"program \"\" ir 8 opset 13 ^(%x: int8[]) { %y = Add(%x, %y) ret %y }",
		 "test:1: %y is used before it is defined"},
		{"program \"\" ir 8 ^(%x: int9[]) { ret }", "test:1: int9 is not an element type"},
	};
	om_session *s = om_session_new();

	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
		om_prog *p;
		CU_ASSERT_EQUAL(text_parse(s, cases[k].text, &p), OM_MALFORMED);
		CU_ASSERT_STRING_EQUAL(om_message(s), cases[k].message);
	}
	om_session_free(s);
}

static void
values_are_handed_on(void)
{
	om_session *s = om_session_new();
	om_prog *p;

	CU_ASSERT_EQUAL_FATAL(text_parse(s, "program \"p\" ir 8 opset 17\n^main(%x: float32[2], %w: float32[2], %v: float32[3]) {\n"
		"\t%y: float32[2] = Add(%x, %w)\n\tret %y\n}\n", &p), OM_OK);
	om_block *b = p->first;
	om_value *y = om_value_find(b, "y"), *w = om_value_find(b, "w");
	CU_ASSERT_FALSE(om_prog_add_state(p, y, y));
	CU_ASSERT_FALSE(om_prog_add_state(p, om_value_find(b, "v"), y));
	CU_ASSERT_EQUAL(b->nresult, 1);
	CU_ASSERT(om_prog_add_state(p, w, y));
	CU_ASSERT_FALSE(om_prog_add_state(p, w, om_value_find(b, "x")));
	CU_ASSERT_EQUAL(b->nresult, 2);
	CU_ASSERT_PTR_EQUAL(b->result[1], y);
	CU_ASSERT_EQUAL_FATAL(p->nio_alias, 1);
	CU_ASSERT_EQUAL(p->io_alias[0].result, 1);
	CU_ASSERT_EQUAL(p->io_alias[0].param, 1);
	om_prog_free(p);
	om_session_free(s);
}

static CU_TestInfo text_tests[] = {
	{"values are handed on, and what cannot be is refused", values_are_handed_on},
	{"a program reads back equal", reads_back_equal},
	{"every truncation is refused", every_truncation_is_refused},
	{"mistakes are named", mistakes_are_named},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("text", text_tests);
