/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <stdint.h>

#include "onnxmem/arena.h"
#include "unit.h"
#include "base/arena_internal.h"
#include "base/split.h"

static void
is_zeroed_and_aligned(void)
{
	static const size_t sizes[] = {1, 7, 16, 1000, 64 * 1024, 1000000};
	om_arena *a = om_arena_new();

	for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
		unsigned char *p = om_alloc(a, sizes[k]);
		CU_ASSERT_EQUAL((uintptr_t)p % _Alignof(max_align_t), 0);
		CU_ASSERT_EQUAL(p[0], 0);
		CU_ASSERT_EQUAL(p[sizes[k] - 1], 0);
		p[0] = p[sizes[k] - 1] = 0xa5;
	}
	om_arena_free(a);
	om_arena_free(NULL);
}

static void
is_zeroed_again_after_clear(void)
{
	om_arena *a = om_arena_new();

	for (int round = 0; round < 3; round++) {
		unsigned char *small = om_alloc(a, 100), *large = om_alloc(a, 1000000);
		for (size_t k = 0; k < 100; k++)
			CU_ASSERT_EQUAL(small[k], 0);
		CU_ASSERT_EQUAL(large[999999], 0);
		memset(small, 0xa5, 100);
		memset(large, 0xa5, 1000000);
		om_arena_clear(a);
	}
	om_arena_free(a);
}

static void
splits_texts(void)
{
	om_arena *a = om_arena_new();
	size_t n = 7;

	om_split(a, "", ",", &n);
	CU_ASSERT_EQUAL(n, 0);
	om_split(a, ",,", ",", &n);
	CU_ASSERT_EQUAL(n, 0);
	const char **part = om_split(a, ",a,,b c,d", ",", &n);
	CU_ASSERT_EQUAL_FATAL(n, 3);
	CU_ASSERT_STRING_EQUAL(part[0], "a");
	CU_ASSERT_STRING_EQUAL(part[1], "b c");
	CU_ASSERT_STRING_EQUAL(part[2], "d");
	part = om_split(a, " x\ty\n", " \t\n", &n);
	CU_ASSERT_EQUAL_FATAL(n, 2);
	CU_ASSERT_STRING_EQUAL(part[0], "x");
	CU_ASSERT_STRING_EQUAL(part[1], "y");
	om_arena_free(a);
}

static CU_TestInfo arena_tests[] = {
	{"a string is split at marks, without empty parts", splits_texts},
	{"memory is zeroed after a clear", is_zeroed_again_after_clear},
	{"memory is zeroed and aligned", is_zeroed_and_aligned},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("arena", arena_tests);
