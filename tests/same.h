/* SPDX-License-Identifier: Apache-2.0 */
/* Whether tensors are the same, bit by bit, for all tests that compute something twice. */
#ifndef SAME_H
#define SAME_H

#include <string.h>

#include "onnxmem/tensor.h"

static inline bool
same_texts(const om_string *a, const om_string *b, int64_t n)
{
	for (int64_t k = 0; k < n; k++)
		if (a[k].size != b[k].size || (a[k].size && memcmp(a[k].data, b[k].data, a[k].size) != 0))
			return false;
	return true;
}

/* Element `i` of those with several in a byte. */
static inline unsigned
packed_element(const void *data, unsigned bits, int64_t i)
{
	const uint64_t at = (uint64_t)i * bits;

	return (unsigned)((const uint8_t *)data)[at / 8] >> at % 8 & ((1u << bits) - 1);
}

/* Is element `i` of `a` the same as element `k` of `b`, of the same type? */
static inline bool
same_elements(const om_tensor *a, int64_t i, const om_tensor *b, int64_t k)
{
	const unsigned bits = om_dtype_bits(a->type);
	const size_t one = bits / 8;

	if (a->type == OM_STRING)
		return same_texts((const om_string *)a->data + i, (const om_string *)b->data + k, 1);
	if (bits < 8)
		return packed_element(a->data, bits, i) == packed_element(b->data, bits, k);
	return memcmp((const char *)a->data + (size_t)i * one, (const char *)b->data + (size_t)k * one, one) == 0;
}

static inline bool
same_tensors(const om_tensor *a, const om_tensor *b)
{
	uint64_t bytes;

	if (a->type != b->type || !om_shape_equal(&a->shape, &b->shape))
		return false;
	if (a->type == OM_STRING)
		return same_texts(a->data, b->data, om_shape_count(&a->shape));
	return om_tensor_bytes(a->type, &a->shape, &bytes) && (bytes == 0 || memcmp(a->data, b->data, bytes) == 0);
}

#endif
