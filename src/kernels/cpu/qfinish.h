/* SPDX-License-Identifier: Apache-2.0 */
/* What follows the sums of layers of 8-bit integers; see qlayer.h. */
#ifndef OM_QFINISH_H
#define OM_QFINISH_H

#include "kernels/cpu/qlayer.h"
#include "kernels/cpu/simd.h"

INLINE ivec
ivec_load(const int32_t *p)
{
	return *(const ivec *)p;
}

/* The first `n` of a vector of outputs: element `at`, of channel `list` of the lists; without zero points of weights. */
INLINE void
finish_sums(const om_qlayer *l, const om_qlayer_data *d, ivec sum, int64_t at, int64_t list, int64_t n)
{
	sum += ivec_load(d->offset + list);
	if (l->output == OM_QLAYER_INT32) {
		vec_store_some((float *)d->y + at, (vec)sum, n);
		return;
	}
	const vec x = __builtin_convertvector(sum, vec) * vec_load(d->scale + list);
	if (l->output == OM_QLAYER_FLOAT)
		vec_store_some((float *)d->y + at, x, n);
	else
		vec_store_bytes((uint8_t *)d->y + at, vec_rounded(x, vec_all((float)(d->least - d->y_zero)),
			vec_all((float)(d->most - d->y_zero))) + d->y_zero, n);
}

#endif
