/* SPDX-License-Identifier: Apache-2.0 */
/* Rewriting: building blocks for passes that find their own matches; see onnxmem/rewrite.h. */
#ifndef OM_REWRITE_INTERNAL_H
#define OM_REWRITE_INTERNAL_H

#include "onnxmem/rewrite.h"

/* Is the value a result of a block? */
bool om_value_is_result(const om_value *v);

/* May every use of `old` be replaced by `by`?  Always, if `old` is not a result of a block.  A result
 * keeps its name: then `by` must be computed in the same block and not be a result itself, and its op
 * must have no bodies, because their paths are derived from its name. */
bool om_value_can_stand_for(const om_value *by, const om_value *old);

/* Does an op with bodies take `v` as an input?  A loop may write over such a value, or return it if no
 * iteration runs: two loops that take the same value in place of one each would share it, and copy. */
bool om_value_enters_body(const om_value *v);

/* Replace the uses of `old`, an output of an op, by `by`, so that `old` is unused.  If it is a result,
 * the op that computed `by` computes `old` from now on, and the op of `old` lacks that output. */
void om_value_stand_for(om_value *by, om_value *old);

/* Are all outputs of `op` unused, and may it be removed? */
bool om_op_is_dead(const om_op *op);

/* Remove an op and its bodies. */
void om_op_delete(om_op *op);

/* Remove the dead ops of a block and of the bodies in it, and those that become dead by that. */
void om_block_delete_dead(om_block *b);

/* The program that is rewritten. */
om_prog *om_rewrite_prog(const om_rewriter *w);

/* As om_rewrite_const(), for a one-dimensional tensor of integers. */
om_value *om_rewrite_ints(om_rewriter *w, const char *stem, size_t n, const int64_t *v);

/* As om_rewrite_op(), for an operator of another domain or version than `like`. */
om_value *om_rewrite_op_of(om_rewriter *w, const om_op *like, const char *domain, const char *type, int version,
	uint32_t n, om_value *const *in);

/* Insert new ops right before `op` instead of right before the root.  `op` must be in the root's block
 * and not after the root, and the inputs of the new ops must be defined before it. */
void om_rewrite_at(om_rewriter *w, om_op *op);

#endif
