/* Runs all unit tests, or the suites whose names hold the argument, and prints what `make check` reads: TAP. */
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

/* Only those whose names hold `word`. */
static void
choose(CU_SuiteInfo *suites, const char *word)
{
	CU_SuiteInfo *to = suites;

	for (const CU_SuiteInfo *s = suites; s->pName; s++)
		if (strstr(s->pName, word))
			*to++ = *s;
	*to = (CU_SuiteInfo)CU_SUITE_INFO_NULL;
}

int
main(int argc, char **argv)
{
	CU_SuiteInfo suites[] = {
		{.pName = "plans in models", .pTests = annotate_tests},
		{.pName = "arena", .pTests = arena_tests},
		{.pName = "assignments", .pTests = assignment_tests},
		{.pName = "bodies", .pTests = control_tests},
		{.pName = "buffers", .pTests = buffers_tests},
		{.pName = "any order", .pTests = conflicts_tests},
		{.pName = "executor", .pTests = exec_tests},
		{.pName = "gradients", .pTests = grad_tests},
		{.pName = "registry of gradients", .pTests = gradients_tests},
		{.pName = "gradients of windows", .pTests = gradwindows_tests},
		{.pName = "images", .pTests = images_tests},
		{.pName = "gradients of bodies", .pTests = gradbodies_tests},
		{.pName = "gradients by parts", .pTests = gradparts_tests},
		{.pName = "gradients of gradients", .pTests = gradtwice_tests},
		{.pName = "gradients in one op", .pTests = gradfused_tests},
		{.pName = "inner loops", .pTests = kernels_tests},
		{.pName = "bytes", .pTests = bytes_tests},
		{.pName = "lifetimes", .pTests = live_tests},
		{.pName = "lowest arenas", .pTests = lowest_tests},
		{.pName = "move", .pTests = move_tests},
		{.pName = "objects", .pTests = objects_tests},
		{.pName = "files of NumPy", .pTests = npy_tests},
		{.pName = "models", .pTests = onnx_tests},
		{.pName = "orders", .pTests = order_tests},
		{.pName = "packer", .pTests = pack_tests},
		{.pName = "raise", .pTests = raise_tests},
		{.pName = "recompute", .pTests = recompute_tests},
		{.pName = "rewriting", .pTests = rewrite_tests},
		{.pName = "search", .pTests = search_tests},
		{.pName = "sessions", .pTests = sessions_tests},
		{.pName = "ways to share", .pTests = share_tests},
		{.pName = "tensors in files", .pTests = onnxtensor_tests},
		{.pName = "states", .pTests = state_tests},
		{.pName = "tensor", .pTests = tensor_tests},
		{.pName = "text", .pTests = text_tests},
		{.pName = "verifier of turns", .pTests = turns_tests},
		{.pName = "verifier of plans", .pTests = verify_tests},
		CU_SUITE_INFO_NULL,
	};

	if (argc > 1)
		choose(suites, argv[1]);
	if (CU_initialize_registry() != CUE_SUCCESS ||
	    CU_register_suites(suites) != CUE_SUCCESS)
		return EXIT_FAILURE;
	CU_set_test_complete_handler(print_test);
	CU_run_all_tests();
	printf("1..%u\n", CU_get_number_of_tests_run());
	unsigned failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
