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
