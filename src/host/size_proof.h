/* SPDX-License-Identifier: Apache-2.0 */
/* Proves that sizes of values are their polynomials for all numbers of ranges. */
#ifndef OM_SIZE_PROOF_H
#define OM_SIZE_PROOF_H

#include "host/range_binding.h"
#include "onnxmem/formula.h"

typedef struct om_proven_size {
	const om_value *value;   /* of the bound program */
	const om_polynomial *bytes; /* of the numbers of sizes (om_range_of_steps()); NULL: the size is not more than */
	uint64_t most;           /* bytes */
	bool is_proven;
	bool is_wrong;           /* it is another one, or more, for some numbers */
} om_proven_size;

/* The shapes that a proof found. */
typedef struct om_size_proof om_size_proof;

/* Set `is_proven` of the sizes that are derived, and `is_wrong`.  `passes` made the bound program; `keeps_values`: they change no value that the
 * open program has.  `*looked_at` grows by the programs that were bound.  `*why`, if it becomes a sentence: sizes of the ranges
 * that are not possible. */
om_status om_host_prove_sizes(om_host *h, const om_ranged *r, const char *passes, bool keeps_values, om_proven_size *size, uint32_t n,
	om_arena *mem, uint64_t *looked_at, const char **why);

/* The same, and the shapes that were found, in memory of `mem`, which are valid as long as all arguments are. */
om_status om_host_prove_shapes(om_host *h, const om_ranged *r, const char *passes, bool keeps_values, om_proven_size *size, uint32_t n,
	om_arena *mem, uint64_t *looked_at, const char **why, const om_size_proof **out);

/* The ranges that the shape of the value of size `k` depends on, bits; of others it has the same for all their sizes. */
unsigned om_proven_shape_by(const om_size_proof *w, uint32_t k);

/* Have the values of the sizes `a` and `b` one shape for all sizes of the ranges, as their dims tell? */
bool om_proven_shapes_equal(const om_size_proof *w, uint32_t a, uint32_t b);

/* How many combinations of sizes the ranges in `set` have; UINT64_MAX: more than that.  The numbers of the `at`-th one; of other
 * ranges, the largest. */
uint64_t om_proof_combinations(const om_size_proof *w, unsigned set);
void om_proof_numbers(const om_size_proof *w, unsigned set, uint64_t at, int64_t *n);

/* The shape of the value of size `k`, which is proven, for these numbers.  False: it has none. */
bool om_proven_shape(const om_size_proof *w, uint32_t k, const int64_t *n, om_shape *out);

#endif
