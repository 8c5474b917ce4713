/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of elements; see sum.h. */
#include <config.h>

#include "base/half.h"
#include "comm/sum.h"

om_status
om_sum_check(om_session *s, om_dtype type)
{
	switch (type) {
	case OM_FLOAT32: case OM_FLOAT64: case OM_FLOAT16: case OM_BFLOAT16:
	case OM_INT32: case OM_INT64: case OM_UINT32: case OM_UINT64:
		return OM_OK;
	default:
		return om_fail(s, OM_UNSUPPORTED, "elements of type %s cannot be summed over ranks", om_dtype_text(type));
	}
}

#define SUM(T)                                            \
	do {                                              \
		T *sum_ = to;                             \
		const T *add_ = from;                     \
		for (uint64_t k = 0; k < n; k++)          \
			sum_[k] += add_[k];               \
	} while (0)

void
om_sum_into(om_dtype type, void *to, const void *from, uint64_t n)
{
	uint16_t *a = to;
	const uint16_t *b = from;

	switch (type) {
	case OM_FLOAT32:
		SUM(float);
		break;
	case OM_FLOAT64:
		SUM(double);
		break;
	case OM_INT32: case OM_UINT32:
		SUM(uint32_t);
		break;
	case OM_INT64: case OM_UINT64:
		SUM(uint64_t);
		break;
	case OM_FLOAT16:
		for (uint64_t k = 0; k < n; k++)
			a[k] = om_float_to_half(om_half_to_float(a[k]) + om_half_to_float(b[k]));
		break;
	case OM_BFLOAT16:
		for (uint64_t k = 0; k < n; k++)
			a[k] = om_float_to_bfloat(om_bfloat_to_float(a[k]) + om_bfloat_to_float(b[k]));
		break;
	default:
		break;
	}
}
