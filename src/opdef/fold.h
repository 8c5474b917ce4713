/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding. */
#ifndef OM_FOLD_H
#define OM_FOLD_H

#include "onnxmem/opdef.h"

/* What folding may take. */
typedef struct om_fold_limits {
	uint64_t bytes;          /* of an output; repeated elements count once */
	uint64_t work;           /* of all ops together: their FLOPs, and the bytes that are written for them */
} om_fold_limits;

/* The limits of the pass fold where no others are set, and of a reader of what that pass led to. */
#define OM_FOLD_BYTES 65536
#define OM_FOLD_WORK 250000000
#define OM_FOLD_DEFAULTS ((om_fold_limits){OM_FOLD_BYTES, OM_FOLD_WORK})

/* None: for ops that the caller made itself. */
#define OM_FOLD_ANY ((om_fold_limits){UINT64_MAX, UINT64_MAX})

/* If all inputs of `op` have data and it has no side effects, compute its outputs with its kernel and
 * store them as data, within the limits; its work is subtracted from `limits->work`.  Also returns OM_OK when
 * nothing was folded.  `costly`, unless NULL: was it left because of its work? */
om_status om_op_fold(om_session *s, om_prog *p, om_op *op, om_fold_limits *limits, bool *costly);

/* The same while shapes are inferred, which later ones depend on: for a small op that takes little work.  The
 * pass fold computes the others, and infers again what depends on them. */
om_status om_op_fold_shape_arithmetic(om_session *s, om_prog *p, om_op *op);

/* Ops that are computed from constants alone. */
typedef struct om_fold_counts {
	uint64_t computed;       /* while planning */
	uint64_t left;           /* to be computed when an executor is built, `costly` ones included */
	uint64_t costly;         /* within the limit of bytes, but not of work */
} om_fold_counts;

/* Constant folding of the whole program: values computed from constants alone become constants, and
 * their ops are folded, even if they have too many elements, or take too much work, to be computed now.
 * Requires OM_HAS_SHAPES, provides OM_HAS_CONST. */
om_status om_prog_fold(om_session *s, om_prog *p, om_fold_limits limits, om_fold_counts *counts);

#endif
