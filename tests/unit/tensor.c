/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <math.h>

#include "onnxmem/tensor.h"
#include "unit.h"
#include "base/half.h"
#include "base/shape.h"

static void
packed_types_round_up(void)
{
	uint64_t bytes;

	CU_ASSERT(om_dtype_bytes(OM_INT4, 3, &bytes) && bytes == 2);
	CU_ASSERT(om_dtype_bytes(OM_UINT2, 5, &bytes) && bytes == 2);
	CU_ASSERT(om_dtype_bytes(OM_BOOL, 3, &bytes) && bytes == 3);
	CU_ASSERT(om_dtype_bytes(OM_FLOAT32, 0, &bytes) && bytes == 0);
	CU_ASSERT_FALSE(om_dtype_bytes(OM_FLOAT32, INT64_MAX, &bytes));
}

static void
absurd_shapes_are_refused(void)
{
	const om_shape huge = om_shape_of(3, (int64_t[]){INT64_MAX, 2, 3});
	const om_shape none = om_shape_of(3, (int64_t[]){INT64_MAX, 2, 0});
	const om_shape few = om_shape_of(3, (int64_t[]){INT32_MAX, 2, 0});
	const om_shape open = om_shape_of(1, (int64_t[]){OM_DIM_UNKNOWN});
	uint64_t bytes;

	CU_ASSERT_FALSE(om_tensor_bytes(OM_INT8, &huge, &bytes));
	CU_ASSERT_FALSE(om_tensor_bytes(OM_INT8, &none, &bytes));
	CU_ASSERT(om_tensor_bytes(OM_INT8, &few, &bytes) && bytes == 0);
	CU_ASSERT_FALSE(om_tensor_bytes(OM_INT8, &open, &bytes));
}

static void
halves_survive_a_round_trip(void)
{
	for (unsigned h = 0; h < 0x10000; h++) {
		const float f = om_half_to_float((uint16_t)h);
		if (!isnan(f))
			CU_ASSERT_EQUAL_FATAL(om_float_to_half(f), h);
	}
	CU_ASSERT_EQUAL(om_float_to_half(65519.0f), 0x7bff);
	CU_ASSERT_EQUAL(om_float_to_half(65520.0f), 0x7c00);
	CU_ASSERT_EQUAL(om_float_to_half(0x1.002p0f), 0x3c00);  /* a tie goes to even */
	CU_ASSERT_EQUAL(om_float_to_half(0x1.006p0f), 0x3c02);
	CU_ASSERT(isnan(om_half_to_float(om_float_to_half(NAN))));
	CU_ASSERT(isnan(om_bfloat_to_float(om_float_to_bfloat(NAN))));
}

static void
only_what_is_known_can_disagree(void)
{
	const om_shape open = om_shape_of(2, (int64_t[]){OM_DIM_UNKNOWN, 3});
	const om_shape other = om_shape_of(2, (int64_t[]){4, OM_DIM_UNKNOWN});
	const om_shape known = om_shape_of(2, (int64_t[]){4, 2});
	const om_shape long_one = om_shape_of(3, (int64_t[]){4, 3, 1});
	const om_shape any = om_shape_unknown();

	CU_ASSERT(om_shape_agree(&open, &other));
	CU_ASSERT(om_shape_agree(&other, &known));
	CU_ASSERT(om_shape_agree(&any, &known) && om_shape_agree(&known, &any));
	CU_ASSERT_FALSE(om_shape_agree(&open, &known));
	CU_ASSERT_FALSE(om_shape_agree(&open, &long_one));
}

static CU_TestInfo tensor_tests[] = {
	{"only what is known can disagree", only_what_is_known_can_disagree},
	{"packed types round up to whole bytes", packed_types_round_up},
	{"absurd shapes are refused", absurd_shapes_are_refused},
	{"every half survives a round trip", halves_survive_a_round_trip},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("tensor", tensor_tests);
