/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the library of layers. */
#ifndef OM_NN_INTERNAL_H
#define OM_NN_INTERNAL_H

#include "onnxmem/nn.h"

/* Record an error, unless there is one; NULL. */
om_value *om_nn_fail(om_nn *n, om_status st, const char *fmt, ...) OM_PRINTF(3, 4);
/* Is there an error, or a value missing? */
bool om_nn_is_lost(const om_nn *n, const om_value *x);

/* The size of axis `axis` of `x`, from the end if it is negative; -1, with an error that names `what`, if it is not known, or `x`
 * does not have `rank` axes (0: any). */
int64_t om_nn_size(om_nn *n, const om_value *x, int rank, int axis, const char *what);
/* Is `number` at least 1?  If not, an error names it. */
bool om_nn_is_count(om_nn *n, int64_t number, const char *what);

/* A constant list of integers, and a constant number. */
om_value *om_nn_list(om_nn *n, size_t count, const int64_t *v);
om_value *om_nn_number(om_nn *n, double v);
/* A constant [1, 1, size, size], -1e9 above the diagonal and 0 elsewhere. */
om_value *om_nn_causal_mask(om_nn *n, int64_t size);

#endif
