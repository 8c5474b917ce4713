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

/* A copy of `open` that is bound so, after these passes; NULL on failure. */
om_status om_host_run_sizes(om_host *h, const om_ranged *r, const int64_t *n, const char *passes, om_prog **out);

#endif
