/* SPDX-License-Identifier: Apache-2.0 */
/* JSON that is written as text is that of a tree, byte for byte. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>

#include "onnx/json_text.h"
#include "unit.h"

static void
is_text(om_json *j, const char *expected)
{
	char *text = om_json_take(j);

	CU_ASSERT_STRING_EQUAL(text, expected);
	free(text);
}

static void
items(void)
{
	om_arena *mem = om_arena_new();
	om_json *j = om_json_new(mem);

	om_json_open(j, '{');
	om_json_key(j, "a");
	om_json_open(j, '[');
	om_json_integer(j, INT64_MIN);
	om_json_integer(j, 0);
	om_json_integer(j, INT64_MAX);
	om_json_open(j, '[');
	om_json_close(j, ']');
	om_json_null(j);
	om_json_close(j, ']');
	om_json_key(j, "b");
	om_json_true(j);
	om_json_close(j, '}');
	is_text(j, "{\"a\":[-9223372036854775808,0,9223372036854775807,[],null],\"b\":true}");
	om_arena_free(mem);
}

static void
strings(void)
{
	om_arena *mem = om_arena_new();
	om_json *j = om_json_new(mem);

	om_json_open(j, '[');
	om_json_string(j, "");
	om_json_string(j, "\"\\/\b\f\n\r\t\x01\x1f\x7f");
	om_json_string(j, "x\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc2\x80");
	CU_ASSERT_PTR_NULL(j->bad);
	om_json_close(j, ']');
	is_text(j, "[\"\",\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001F\x7f\",\"x\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc2\x80\"]");
	om_arena_free(mem);
}

/* A byte alone, a character that is too long for its value, half of a pair, and one that is cut off. */
static void
not_utf8(void)
{
	static const char *const bad[] = {"a\x80", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"};
	om_arena *mem = om_arena_new();

	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		om_json *j = om_json_new(mem);
		om_json_string(j, bad[k]);
		CU_ASSERT_PTR_EQUAL(j->bad, bad[k]);
		is_text(j, "null");
	}
	om_arena_free(mem);
}

static CU_TestInfo tests[] = {
	{"lists, objects and numbers", items},
	{"strings and their escapes", strings},
	{"strings that are not UTF-8", not_utf8},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("JSON as text", tests);
