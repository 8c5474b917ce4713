/* SPDX-License-Identifier: Apache-2.0 */
/* Proves that sizes of values are their polynomials for all numbers of ranges. */
#ifndef OM_SIZE_PROOF_H
#define OM_SIZE_PROOF_H

#include "host/range_binding.h"
#include "onnxmem/formula.h"

typedef struct om_proven_size {
	const om_value *value;   /* of the bound program */
	const om_polynomial *bytes; /* of the numbers of sizes (om_range_of_steps()) */
	bool is_proven;
	bool is_wrong;           /* it is another one for some numbers */
} om_proven_size;

/* Set `is_proven` of the sizes that are derived, and `is_wrong`.  `passes` made the bound program; `keeps_values`: they change no value that the
 * open program has.  `*looked_at` grows by the programs that were bound.  `*why`, if it becomes a sentence: sizes of the ranges
 * that are not possible. */
om_status om_host_prove_sizes(om_host *h, const om_ranged *r, const char *passes, bool keeps_values, om_proven_size *size, uint32_t n,
	om_arena *mem, uint64_t *looked_at, const char **why);

#endif
