/* SPDX-License-Identifier: Apache-2.0 */
/* Training samples: tensors of a .npz file, one sample per index of their first dim. */
#ifndef OM_DATASET_H
#define OM_DATASET_H

#include "cli/cli.h"
#include "cli/npy.h"

typedef struct om_samples {
	const char *path;
	om_npz_entry *entry;
	size_t n;
	int64_t count;           /* number of samples; 0: not known yet */
} om_samples;

om_status om_samples_load(om_cli *c, const char *path, om_samples *out);

/* The tensor for input `v`, whose first dim may be open or any number.  It must exist, have the
 * type of `v`, and have as many samples as all tensors requested before.  `requester` is named in
 * messages. */
om_status om_samples_want(om_cli *c, om_samples *s, const om_value *v, const char *requester, const om_tensor **out);

/* The order of the samples in an epoch: depends on seed and epoch only. */
void om_samples_order(uint64_t seed, uint64_t epoch, int64_t n, int64_t *order);

/* Gather the samples order[0] to order[n - 1] of `all`, contiguously. */
void om_samples_take(const om_tensor *all, const int64_t *order, int64_t n, void *to);

#endif
