/* SPDX-License-Identifier: Apache-2.0 */
/* Binds a program to sizes of ranges. */
#ifndef OM_RANGE_BINDING_H
#define OM_RANGE_BINDING_H

#include "host/host.h"
#include "onnxmem/binding.h"
#include "onnxmem/plan.h"

/* A program whose dims are open, and one that was made of it, bound to one size of each range. */
typedef struct om_ranged {
	const om_prog *open, *bound;
	const om_dim_range *range;
	uint32_t nrange;
} om_ranged;

/* Add to `b` what `bound` was bound to, but for the numbers `n` of the symbols with a range, and of dims that follow from
 * them. */
om_status om_bind_sizes(om_session *s, const om_ranged *r, const int64_t *n, om_binding *b);

/* The number that a dim of an input called `symbol` is bound to for the numbers `n` of the ranges; -1: none. */
int64_t om_ranged_dim(const om_ranged *r, const int64_t *n, const char *symbol);

/* Do dims of inputs that are called like expressions of others, as `a+b`, follow from these?  If not, what inference calls so with
 * open symbols is not what they are, and proves nothing. */
bool om_ranged_names_follow(const om_ranged *r);

/* Is that number a polynomial of those of the ranges? */
bool om_ranged_dim_is_polynomial(const om_ranged *r, const char *symbol);

/* The most that its degree in the number of `of`, the symbol of a range, may be. */
unsigned om_ranged_dim_degree(const char *symbol, const char *of);

/* Do the passes only leave out what is not needed, or what constants decide, so that a value is what it is in the file? */
bool om_passes_keep_values(const om_plan *plan, const char *passes);

/* Has `p`, made by the same passes, each op of the bound program, with the same inputs?  Passes that leave out branches give their values
 * other names. */
bool om_ranged_has_ops(const om_ranged *r, const om_prog *p);

/* A copy of `open` that is bound so, after these passes; NULL on failure. */
om_status om_host_run_sizes(om_host *h, const om_ranged *r, const int64_t *n, const char *passes, om_prog **out);

/* The same, but symbols of ranges that are not in `set`, bits by range, stay open, and dims that follow from them.  Then what the
 * file declares of values is not used, but of inputs. */
om_status om_host_run_open_sizes(om_host *h, const om_ranged *r, const int64_t *n, unsigned set, const char *passes, om_prog **out);

#endif
