/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OM_ALIAS_ROOTS_H
#define OM_ALIAS_ROOTS_H

#include "onnxmem/plan.h"

/* Where the aliases of a value lead. */
typedef struct om_alias_root {
	uint32_t value;          /* the first value without an alias; in a cycle of aliases, one that has one */
	uint64_t offset;         /* of the value from that one, in bytes */
} om_alias_root;

/* By value id, for `n` values, its alias; NULL: it has none.  `plan` may be NULL. */
const om_alias **om_aliases_by_value(const om_plan *plan, uint32_t n, om_arena *mem);

/* By value id, for `n` values.  `alias`, by value id, has those to follow, and NULL.  Each is followed once, because
 * chains of values computed in place may be as long as the program.  Plans that were not verified may have cycles. */
om_alias_root *om_alias_roots(const om_alias *const *alias, uint32_t n, om_arena *mem);

#endif
