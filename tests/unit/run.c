/* SPDX-License-Identifier: Apache-2.0 */
/* Runs unit tests, all or those of the suites that arguments choose by parts of their names, and prints TAP:
 *     run layers channels      the suites whose names hold one of the words
 *     run -packer -search      all but those */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CUnit/TestRun.h>

#include "unit.h"

static void
print_test(const CU_pTest test, const CU_pSuite suite, const CU_pFailureRecord failure)
{
	printf("%sok %u - %s: %s\n", failure ? "not " : "", CU_get_number_of_tests_run(), suite->pName,
		test->pName);
	for (const CU_FailureRecord *f = failure; f; f = f->pNext)
		printf("# %s:%u: %s\n", f->strFileName, f->uiLineNumber, f->strCondition);
	fflush(stdout);
}

void
unit_start(bench *b, const char *text, const char *passes)
{
	*b = bench_open();
	if (bench_plan(b, text, passes) == OM_OK)
		return;
	printf("# %s\n# in: %s\n", om_message(b->s), text);
	CU_FAIL_FATAL("the program could not be planned");
}

/* By name: in which order the files were linked does not matter. */
static unit_suite *suites;

void
unit_register(unit_suite *suite)
{
	unit_suite **at = &suites;

	while (*at && strcmp((*at)->name, suite->name) < 0)
		at = &(*at)->next;
	suite->next = *at;
	*at = suite;
}

/* Not one that a word after a dash leaves out; of the others those that a word names, where there is such a word. */
static bool
is_asked_for(const char *suite, char **words)
{
	bool all = true, named = false;

	for (; *words; words++)
		if (**words != '-') {
			all = false;
			named |= strstr(suite, *words) != NULL;
		} else if (strstr(suite, *words + 1)) {
			return false;
		}
	return all || named;
}

static CU_ErrorCode
take_suites(char **words)
{
	CU_ErrorCode st = CUE_SUCCESS;

	for (const unit_suite *s = suites; s && st == CUE_SUCCESS; s = s->next)
		if (is_asked_for(s->name, words))
			st = CU_register_suites((CU_SuiteInfo[]){{.pName = s->name, .pTests = s->tests}, CU_SUITE_INFO_NULL});
	return st;
}

int
main(int argc, char **argv)
{
	if (CU_initialize_registry() != CUE_SUCCESS || take_suites(argv + (argc > 0)) != CUE_SUCCESS)
		return EXIT_FAILURE;
	CU_set_test_complete_handler(print_test);
	CU_run_all_tests();
	printf("1..%u\n", CU_get_number_of_tests_run());
	unsigned failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
