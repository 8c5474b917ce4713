/* SPDX-License-Identifier: Apache-2.0 */
/* Equality of elements; see equal.h. */
#include <config.h>

#include <string.h>

#include "ir/equal.h"

uint64_t
om_tensor_held_bytes(const om_tensor *t)
{
	uint64_t bytes = 0;

	if (t->splat)
		return (om_dtype_bits(t->type) + 7) / 8;
	return om_tensor_bytes(t->type, &t->shape, &bytes) ? bytes : 0;
}

static bool
equal_texts(const om_string *a, const om_string *b, uint64_t n)
{
	for (uint64_t k = 0; k < n; k++)
		if (a[k].size != b[k].size || memcmp(a[k].data, b[k].data, a[k].size) != 0)
			return false;
	return true;
}

bool
om_tensor_equal(const om_tensor *a, const om_tensor *b)
{
	if (a == b)
		return true;
	if (a->type != b->type || a->splat != b->splat || !om_shape_equal(&a->shape, &b->shape) || !a->data || !b->data)
		return false;
	const uint64_t bytes = om_tensor_held_bytes(a);
	return a->type == OM_STRING ? equal_texts(a->data, b->data, bytes / sizeof(om_string))
	    : memcmp(a->data, b->data, bytes) == 0;
}

bool
om_attr_equal(const om_attr *a, const om_attr *b)
{
	if (a->kind != b->kind || a->n != b->n || a->ref || b->ref)
		return false;
	switch (a->kind) {
	case OM_ATTR_FLOAT: case OM_ATTR_FLOATS:
		return memcmp(a->f, b->f, a->n * sizeof *a->f) == 0;
	case OM_ATTR_INT: case OM_ATTR_INTS:
		return memcmp(a->i, b->i, a->n * sizeof *a->i) == 0;
	case OM_ATTR_STRING: case OM_ATTR_STRINGS:
		return equal_texts(a->s, b->s, a->n);
	case OM_ATTR_TENSOR: case OM_ATTR_TENSORS:
		for (size_t k = 0; k < a->n; k++)
			if (!om_tensor_equal(&a->t[k], &b->t[k]))
				return false;
		return true;
	default:
		return false;
	}
}

bool
om_op_attrs_equal(const om_op *a, const om_op *b)
{
	if (a->nattr != b->nattr)
		return false;
	for (uint32_t k = 0; k < a->nattr; k++) {
		const om_attr *other = om_attr_find(b, a->attr[k].name);
		if (!other || !om_attr_equal(&a->attr[k], other))
			return false;
	}
	return true;
}
