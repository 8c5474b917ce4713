#include <config.h>

#include <stdlib.h>

#include "unit.h"

int
main(void)
{
	CU_SuiteInfo suites[] = {
		{.pName = "arena", .pTests = arena_tests},
		{.pName = "executor", .pTests = exec_tests},
		{.pName = "move", .pTests = move_tests},
		{.pName = "tensor", .pTests = tensor_tests},
		{.pName = "text", .pTests = text_tests},
		{.pName = "verifier of plans", .pTests = verify_tests},
		CU_SUITE_INFO_NULL,
	};

	if (CU_initialize_registry() != CUE_SUCCESS ||
	    CU_register_suites(suites) != CUE_SUCCESS)
		return EXIT_FAILURE;
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	unsigned failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
