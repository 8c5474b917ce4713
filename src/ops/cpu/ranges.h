/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over rows, divided among the workers of a run. */
#ifndef OM_RANGES_H
#define OM_RANGES_H

#include "onnxmem/opdef.h"

enum { OM_PARALLEL_FROM = 32768 };  /* elements from which a loop is divided */

/* Process rows [from, to).  `worker` selects the scratch. */
typedef void om_range_fn(void *arg, int64_t from, int64_t to, uint32_t worker);

/* Workers that a call has: 1 where it is serial. */
uint32_t om_call_workers(const om_op_context *c);

/* Process `n` rows of `elements` each; small loops are serial.  Rows must not depend on each other. */
void om_for_ranges(const om_op_context *c, int64_t n, int64_t elements, om_range_fn *fn, void *arg);

#endif
