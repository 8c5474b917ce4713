/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OM_UNIT_H
#define OM_UNIT_H

#include <stdbool.h>
#include <stdint.h>

#include <CUnit/Basic.h>

#include "onnxmem/ir.h"
#include "onnxmem/pack.h"
#include "tests/fixtures.h"

/* A file of unit tests ends in its suite, which registers itself before main(): adding a
 * file is adding it to Makefile.am. */
typedef struct unit_suite {
	const char *name;
	CU_TestInfo *tests;       /* end with CU_TEST_INFO_NULL */
	struct unit_suite *next;
} unit_suite;

void unit_register(unit_suite *suite);

#define UNIT_SUITE(title, list)                                                \
	__attribute__((constructor)) static void                               \
	register_##list(void)                                                  \
	{                                                                      \
		static unit_suite suite = {.name = title, .tests = list};      \
		unit_register(&suite);                                         \
	}                                                                      \
	_Static_assert(sizeof list / sizeof list[0] > 1, "a suite has tests")

/* The gradients of the last result by all parameters, which are float64, against
 * differences; dims that are not known are `n`. */
void unit_grad_check(const char *text, uint64_t n);
/* The same with another step, and with slack for what is computed in less. */
void unit_grad_check_within(const char *text, uint64_t n, double step, double slack);
/* The gradients of what a penalty makes of them: of the sum of the squares of all gradients of
 * the last result. */
void unit_grad_check_twice(const char *text, uint64_t n);

/* Are two buffers live at once, if only for a step? */
static inline bool
unit_meet(const om_buffer *a, const om_buffer *b)
{
	for (uint32_t i = 0; i < a->nlive; i++)
		for (uint32_t k = 0; k < b->nlive; k++)
			if (a->live[i].lower < b->live[k].upper && b->live[k].lower < a->live[i].upper)
				return true;
	return false;
}

/* Open a bench with a program after some passes; if it is refused, the test ends with the message. */
void unit_start(bench *b, const char *text, const char *passes);

#endif
