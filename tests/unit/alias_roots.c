/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "ir/alias_roots.h"
#include "unit.h"

enum { LONG = 1000000 };

static void
of_chains(void)
{
	static const om_alias list[] = {{OM_ALIAS_VIEW, 0, 2, 16}, {OM_ALIAS_INPLACE, 2, 3, 0}, {OM_ALIAS_VIEW, 3, 5, 64}};
	const om_alias *alias[] = {&list[0], NULL, &list[1], &list[2], NULL, NULL};
	static const om_alias_root root[] = {{5, 80}, {1, 0}, {5, 64}, {5, 64}, {4, 0}, {5, 0}};
	om_arena *mem = om_arena_new();
	const om_alias_root *found = om_alias_roots(alias, 6, mem);

	for (int k = 0; k < 6; k++) {
		CU_ASSERT_EQUAL(found[k].value, root[k].value);
		CU_ASSERT_EQUAL(found[k].offset, root[k].offset);
	}
	om_arena_free(mem);
}

/* All that leads to a cycle leads to one value of it. */
static void
of_cycles(void)
{
	static const om_alias list[] = {{OM_ALIAS_VIEW, 0, 1, 1}, {OM_ALIAS_VIEW, 1, 2, 1}, {OM_ALIAS_VIEW, 2, 1, 1},
		{OM_ALIAS_VIEW, 3, 3, 1}};
	const om_alias *alias[] = {&list[0], &list[1], &list[2], &list[3]};
	om_arena *mem = om_arena_new();
	const om_alias_root *found = om_alias_roots(alias, 4, mem);

	CU_ASSERT_EQUAL(found[1].value, found[0].value);
	CU_ASSERT_EQUAL(found[2].value, found[0].value);
	CU_ASSERT(found[0].value == 1 || found[0].value == 2);
	CU_ASSERT_EQUAL(found[3].value, 3);
	om_arena_free(mem);
}

/* Following each value of this chain on its own would take a day. */
static void
of_a_long_chain(void)
{
	om_arena *mem = om_arena_new();
	om_alias *list = OM_NEWN(mem, om_alias, LONG);
	const om_alias **alias = OM_NEWN(mem, const om_alias *, LONG + 1);

	for (uint32_t k = 0; k < LONG; k++) {
		list[k] = (om_alias){OM_ALIAS_VIEW, k, k + 1, 1};
		alias[k] = &list[k];
	}
	const om_alias_root *found = om_alias_roots(alias, LONG + 1, mem);
	CU_ASSERT_EQUAL(found[0].value, LONG);
	CU_ASSERT_EQUAL(found[0].offset, LONG);
	CU_ASSERT_EQUAL(found[LONG - 1].offset, 1);
	om_arena_free(mem);
}

static CU_TestInfo tests[] = {
	{"of chains", of_chains},
	{"of cycles", of_cycles},
	{"of a long chain", of_a_long_chain},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("alias roots", tests);
