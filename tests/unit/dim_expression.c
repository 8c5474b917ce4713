/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions of dims. */
#include <config.h>

#include <string.h>

#include "ir/dim_expression.h"
#include "unit.h"

/* s15 is 7, a name with a dot is 3; the others have no number. */
static bool
number(const void *arg, const char *name, size_t n, int64_t *out)
{
	(void)arg;
	if (n == 3 && memcmp(name, "s15", n) == 0)
		return *out = 7, true;
	if (n == 3 && memcmp(name, "a.b", n) == 0)
		return *out = 3, true;
	if (n == 4 && memcmp(name, "most", n) == 0)
		return *out = INT64_MAX, true;
	return false;
}

/* -1: it is none. */
static int64_t
value(const char *text)
{
	int64_t n = -1;
	const bool is_known = om_dim_expression(text, number, NULL, &n);

	CU_ASSERT(is_known == (n >= 0));
	return n;
}

static void
test_values(void)
{
	CU_ASSERT_EQUAL(value("s15 + a.b"), 10);
	CU_ASSERT_EQUAL(value("2*(((s15 - 1)//2)) + 2"), 8);
	CU_ASSERT_EQUAL(value("s15-a.b-1"), 3);
	CU_ASSERT_EQUAL(value(" s15 *2//4"), 3);
	CU_ASSERT_EQUAL(value("(0-s15)//2 + 8"), 4);
	CU_ASSERT_EQUAL(value("(s15 + 1)"), 8);
}

static void
test_others(void)
{
	static const char *const texts[] = {"", "s15", "12", "(s15)", "s15 +", "+ s15", "s15 + other", "s15 + (1", "s15 + 1)", "s15 / 2",
		"a.b - s15", "s15 // 0", "s15 // (a.b - 3)", "most + 1", "most * 2", "99999999999999999999 + 1", "s15 s15", "s15 + 1 2",
		"max(s15, 2) + 1"};
	char deep[200];

	for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
		CU_ASSERT_EQUAL(value(texts[k]), -1);
	memset(deep, '(', sizeof deep - 1);
	deep[sizeof deep - 1] = 0;
	CU_ASSERT_EQUAL(value(deep), -1);
}

/* All symbols are 1 more. */
static bool
number_after(const void *arg, const char *name, size_t n, int64_t *out)
{
	return number(arg, name, n, out) && ++*out;
}

static void
test_follows(void)
{
	int64_t n = 0;

	CU_ASSERT(om_dim_follows("2*s15 + a.b", number, number_after, NULL, 17, &n) && n == 20);
	CU_ASSERT_FALSE(om_dim_follows("2*s15 + a.b", number, number_after, NULL, 18, &n));
	CU_ASSERT_FALSE(om_dim_follows("s15", number, number_after, NULL, 7, &n));
	CU_ASSERT_FALSE(om_dim_follows("s15 + other", number, number_after, NULL, 7, &n));
}

static CU_TestInfo expression_tests[] = {
	{"values", test_values},
	{"what is none", test_others},
	{"dims that follow from others", test_follows},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("dim expressions", expression_tests);
