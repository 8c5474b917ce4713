#ifndef OM_UNIT_H
#define OM_UNIT_H

#include <stdbool.h>
#include <stdint.h>

#include <CUnit/Basic.h>

#include "onnxmem/ir.h"
#include "onnxmem/pack.h"

/* Each file of unit tests ends in one of these. */
extern CU_TestInfo annotate_tests[];
extern CU_TestInfo arena_tests[];
extern CU_TestInfo assignment_tests[];
extern CU_TestInfo conflicts_tests[];
extern CU_TestInfo control_tests[];
extern CU_TestInfo bytes_tests[];
extern CU_TestInfo buffers_tests[];
extern CU_TestInfo exec_tests[];
extern CU_TestInfo grad_tests[];
extern CU_TestInfo gradients_tests[];
extern CU_TestInfo gradwindows_tests[];
extern CU_TestInfo images_tests[];
extern CU_TestInfo gradbodies_tests[];
extern CU_TestInfo gradfused_tests[];
extern CU_TestInfo gradparts_tests[];
extern CU_TestInfo gradtwice_tests[];
extern CU_TestInfo kernels_tests[];
extern CU_TestInfo live_tests[];
extern CU_TestInfo lowest_tests[];
extern CU_TestInfo move_tests[];
extern CU_TestInfo npy_tests[];
extern CU_TestInfo objects_tests[];
extern CU_TestInfo onnx_tests[];
extern CU_TestInfo onnxtensor_tests[];
extern CU_TestInfo order_tests[];
extern CU_TestInfo pack_tests[];
extern CU_TestInfo raise_tests[];
extern CU_TestInfo recompute_tests[];
extern CU_TestInfo rewrite_tests[];
extern CU_TestInfo search_tests[];
extern CU_TestInfo sessions_tests[];
extern CU_TestInfo share_tests[];
extern CU_TestInfo state_tests[];
extern CU_TestInfo tensor_tests[];
extern CU_TestInfo text_tests[];
extern CU_TestInfo turns_tests[];
extern CU_TestInfo verify_tests[];

/* The gradients of the last result by all parameters, which are float64, against
 * differences; dims that are not known are `n`. */
void unit_grad_check(const char *text, uint64_t n);
/* The same with another step, and with slack for what is computed in less. */
void unit_grad_check_within(const char *text, uint64_t n, double step, double slack);
/* The gradients of what a penalty makes of them: of the sum of the squares of all gradients of
 * the last result. */
void unit_grad_check_twice(const char *text, uint64_t n);

/* Are two buffers alive at once, if only for a step? */
static inline bool
unit_meet(const om_buffer *a, const om_buffer *b)
{
	for (uint32_t i = 0; i < a->nlive; i++)
		for (uint32_t k = 0; k < b->nlive; k++)
			if (a->live[i].lower < b->live[k].upper && b->live[k].lower < a->live[i].upper)
				return true;
	return false;
}

/* A text as a program, as om_parse() does it. */
om_status unit_parse(om_session *s, const char *text, om_prog **p);

#endif
