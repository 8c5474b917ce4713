/* Constant folding. */
#ifndef OM_FOLD_H
#define OM_FOLD_H

#include "onnxmem/opdef.h"

/* If all inputs of `op` have data and it has no side effects, compute its outputs with its kernel and
 * store them as data, provided that no output takes more than `limit` bytes (repeated elements count
 * once).  Also returns OM_OK when nothing was folded. */
om_status om_op_fold(om_session *s, om_prog *p, om_op *op, uint64_t limit);

/* Constant folding of the whole program: values computed from constants alone become constants, and
 * their ops are folded, even if they have too many elements to be computed now.  Requires OM_HAS_SHAPES,
 * provides OM_HAS_CONST.  Counts the ops that were computed, and those left to be computed at run time. */
om_status om_prog_fold(om_session *s, om_prog *p, uint64_t limit, uint64_t *computed, uint64_t *left);

#endif
