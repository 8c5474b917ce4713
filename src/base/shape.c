/* SPDX-License-Identifier: Apache-2.0 */
/* Element types and shapes: what the command uses, too. */
#include <config.h>

#include "base/shape.h"

bool
om_dtype_is_integer(om_dtype t)
{
	switch (t) {
	case OM_INT8: case OM_INT16: case OM_INT32: case OM_INT64: case OM_INT4: case OM_INT2:
	case OM_UINT8: case OM_UINT16: case OM_UINT32: case OM_UINT64: case OM_UINT4: case OM_UINT2:
		return true;
	default:
		return false;
	}
}

bool
om_shape_agree(const om_shape *a, const om_shape *b)
{
	if (a->rank == OM_RANK_UNKNOWN || b->rank == OM_RANK_UNKNOWN)
		return true;
	if (a->rank != b->rank)
		return false;
	for (int k = 0; k < a->rank; k++)
		if (a->dim[k] >= 0 && b->dim[k] >= 0 && a->dim[k] != b->dim[k])
			return false;
	return true;
}

int64_t
om_shape_span(const om_shape *s, int from, int to)
{
	int64_t n = 1;

	for (int k = from; k < to; k++)
		if (__builtin_mul_overflow(n, s->dim[k], &n))
			n = INT64_MAX;
	return n;
}

bool
om_dtype_is_float(om_dtype t)
{
	switch (t) {
	case OM_FLOAT32: case OM_FLOAT64: case OM_FLOAT16: case OM_BFLOAT16:
	case OM_FLOAT8E4M3FN: case OM_FLOAT8E4M3FNUZ: case OM_FLOAT8E5M2:
	case OM_FLOAT8E5M2FNUZ: case OM_FLOAT4E2M1: case OM_FLOAT8E8M0:
	case OM_FLOAT6E2M3: case OM_FLOAT6E3M2:
		return true;
	default:
		return false;
	}
}
