/* SPDX-License-Identifier: Apache-2.0 */
/* Types of values, matching of objects against them, and shapes of inputs. */
#include <config.h>

#include "ir/type.h"
#include "onnxmem/ir.h"

om_dtype
om_type_elem(const om_type *t)
{
	while (t->kind != OM_TENSOR && t->of)
		t = t->of;
	return t->kind == OM_TENSOR || t->kind == OM_SPARSE ? t->elem : OM_UNDEFINED;
}

bool
om_type_equal(const om_type *a, const om_type *b)
{
	for (; a && b; a = a->of, b = b->of)
		if (a->kind != b->kind || a->elem != b->elem)
			return false;
	return !a && !b;
}

const char *
om_kind_text(om_kind kind)
{
	static const char *const text[] = {"tensor", "sparse tensor", "sequence", "optional", "map",
		"opaque value"};
	return text[kind];
}

static bool
has_elements(const om_tensor *t, om_dtype type)
{
	uint64_t bytes;

	return (type == OM_UNDEFINED || t->type == type) && om_tensor_bytes(t->type, &t->shape, &bytes)
	    && (t->data || bytes == 0) && !t->splat;
}

/* Keys and values are lists of equal length. */
static bool
is_map(const om_container *o, const om_type *type)
{
	const om_dtype value = type->of ? om_type_elem(type->of) : OM_UNDEFINED;

	return has_elements(&o->key, type->elem) && has_elements(&o->value, value)
	    && om_shape_count(&o->key.shape) == (int64_t)o->n && om_shape_count(&o->value.shape) == (int64_t)o->n;
}

bool
om_container_fits(const om_tensor *t, const om_type *type)
{
	const om_container *o = t->data;

	if (type->kind == OM_TENSOR)
		return has_elements(t, type->elem);
	if (!o)
		return false;
	if (type->kind == OM_MAP)
		return is_map(o, type);
	if ((type->kind != OM_SEQUENCE && type->kind != OM_OPTIONAL) || (type->kind == OM_OPTIONAL && o->n > 1))
		return false;
	for (size_t k = 0; k < o->n; k++)
		if (!type->of || !om_container_fits(&o->item[k], type->of))
			return false;
	return true;
}

om_shape
om_input_shape(const om_prog *p, uint32_t param)
{
	om_shape s = p->first->param[param]->shape;

	for (uint32_t k = 0; k < p->nio_alias; k++)
		if (p->io_alias[k].param == param && p->io_alias[k].rows_after) {
			s.dim[p->io_alias[k].axis] = p->io_alias[k].rows_before;
			s.sym[p->io_alias[k].axis] = p->io_alias[k].symbol;
		}
	return s;
}
