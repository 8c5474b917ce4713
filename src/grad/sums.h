/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of gradients that are zero but for a few slices. */
#ifndef OM_SUMS_H
#define OM_SUMS_H

#include "grad/bodies.h"

/* Note that `v` has the elements of `scattered`, of an op that adds its input 2 to zeros at the indices of input 1; and
 * that `v` is a sum, of the inputs of its Add.  Returns `v`. */
om_value *om_grad_note_scattered(om_grad *g, om_value *v, om_value *scattered);
void om_grad_note_sum(om_grad *g, const om_value *v);

/* sum + v; values that were noted are scattered into the sum, and `is_scattered` is set.  What they were computed by
 * may have no users then. */
om_value *om_emit_add_to(om_grad *g, om_value *sum, om_value *v, bool *is_scattered);

/* Remove the ops of a complete block whose outputs have no users, but those with bodies. */
void om_block_sweep(om_block *b);

#endif
