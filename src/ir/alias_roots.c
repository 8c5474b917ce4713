/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "ir/alias_roots.h"

const om_alias **
om_aliases_by_value(const om_plan *plan, uint32_t n, om_arena *mem)
{
	const om_alias **alias = OM_NEWN(mem, const om_alias *, n);

	for (uint32_t k = 0; plan && k < plan->nalias; k++)
		alias[plan->alias[k].value] = &plan->alias[k];
	return alias;
}

om_alias_root *
om_alias_roots(const om_alias *const *alias, uint32_t n, om_arena *mem)
{
	om_alias_root *root = OM_NEWN(mem, om_alias_root, n);
	uint32_t *chain = OM_NEWN(mem, uint32_t, n);
	bool *is_known = OM_NEWN(mem, bool, n);

	for (uint32_t k = 0; k < n; k++) {
		uint32_t id = k, length = 0;
		for (; !is_known[id] && alias[id]; id = alias[id]->source) {
			is_known[id] = true;
			root[id] = (om_alias_root){id, 0};
			chain[length++] = id;
		}
		if (!is_known[id])
			root[id] = (om_alias_root){id, 0};
		is_known[id] = true;
		for (om_alias_root at = root[id]; length; root[chain[length]] = at)
			at.offset += alias[chain[--length]]->offset;
	}
	return root;
}
