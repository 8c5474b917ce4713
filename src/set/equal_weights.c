/* SPDX-License-Identifier: Apache-2.0 */
/* Constants that are equal in several parts are held once: all programs refer to the first of them. */
#include <config.h>

#include <string.h>

#include "base/fast_hash.h"
#include "base/map.h"
#include "set/set.h"

enum { LEAST = 64 };  /* bytes: smaller constants are not worth a look */

struct seen {
	const om_tensor *t;
	uint32_t part;
};

static bool
is_equal(const om_tensor *a, const om_tensor *b, uint64_t bytes)
{
	return a->type == b->type && om_shape_equal(&a->shape, &b->shape) && memcmp(a->data, b->data, bytes) == 0;
}

static void
share(om_set *x, om_map *seen, uint32_t part, om_value *v)
{
	uint64_t bytes;

	if (!v->data || !v->data->data || v->data->splat || v->data->type == OM_STRING || v->type.kind != OM_TENSOR || !v->is_const
	    || !om_tensor_bytes(v->data->type, &v->data->shape, &bytes) || bytes < LEAST)
		return;
	const char *key = om_printf(x->mem, "%016llx", (unsigned long long)om_fast_hash(0, v->data->data, bytes));
	const struct seen *old = om_map_get(seen, key);
	if (!old) {
		struct seen *now = OM_NEW(x->mem, struct seen);
		*now = (struct seen){v->data, part};
		om_map_set(seen, key, now);
	} else if (old->part != part && is_equal(old->t, v->data, bytes)) {
		x->part[part].pub.equal += old->t->data == v->data->data ? 0 : bytes;
		v->data = (om_tensor *)old->t;
	}
}

void
om_set_share_weights(om_set *x)
{
	om_map seen = om_map_new(x->mem);

	for (uint32_t k = 0; k < x->npart; k++)
		for (uint32_t i = 0; i < x->part[k].prog->nvalue; i++)
			if (x->part[k].prog->values[i])
				share(x, &seen, k, x->part[k].prog->values[i]);
}
