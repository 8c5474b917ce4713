#ifndef OM_UNIT_H
#define OM_UNIT_H

#include <CUnit/Basic.h>

/* Each file of unit tests ends in one of these. */
extern CU_TestInfo arena_tests[], move_tests[], tensor_tests[], text_tests[];

#endif
