/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of ops: what a part of an output needs of each input, and the op that computes it.
 *
 * A pass that computes a value in parts (bands of rows, blocks of channels, heads) asks om_op_slice() which parts
 * of the inputs a part of an output needs, and lets om_slice_op() build the op that computes it: the same operator
 * with other attributes and other constant operands, such as pads.  The elements of the part are those that the op
 * itself computes, up to the order of additions, which kernels may choose by sizes: the reference kernels do so for
 * reductions of floating point, and for products of three rows or columns at most.  A sum that runs over the axis to be
 * divided is computed in parts by om_op_partial() and om_partial_op(), which always change that order.
 *
 * Both are columns of operator definitions (onnxmem/opdef.h).
 */
#ifndef OM_SLICE_H
#define OM_SLICE_H

#include "onnxmem/builder.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A part of a tensor: its elements [lo, hi) along `axis`, or, if `axis` is OM_WHOLE, all of it. */
typedef struct om_part {
	int axis;                 /* counted from the start, or OM_WHOLE */
	int64_t lo, hi;           /* lo <= hi; both 0 for OM_WHOLE */
} om_part;

enum {
	OM_WHOLE = -1,            /* the axis of an om_part that is all of the tensor */
	OM_SLICE_ATTRS = 8,       /* attributes that a slice may change */
	OM_SLICE_OPERANDS = 16,   /* operands, from the first, that a slice may replace */
};

/* How partial results become the result. */
typedef enum om_combine { OM_COMBINE_ADD, OM_COMBINE_MUL, OM_COMBINE_MAX, OM_COMBINE_MIN } om_combine;

/* How the op that computes a part differs from the op: made by the columns for om_slice_op(). */
typedef struct om_slice_edit {
	const char *type;         /* another operator of ai.onnx, which keeps no attribute; NULL: the same operator */
	om_attr attr[OM_SLICE_ATTRS]; /* set in place of those of the same name; one with n == 0 is removed */
	uint32_t nattr;           /* how many */
	const om_tensor *operand[OM_SLICE_OPERANDS]; /* constants that replace inputs; NULL: the input stays */
	uint32_t nin;             /* number of inputs; more than those of the op if operands are added */
} om_slice_edit;

/* A part of an op.  Inputs and outputs are those of the op. */
typedef struct om_slice {
	om_part *in;              /* [op->nin]: the part of each input that is read.  A part without elements: the
	                             input is left out */
	om_part *out;             /* [op->nout]: the part of each output that is computed */
	int64_t before, after;    /* surplus elements at the ends of each output part along its axis, which are
	                             computed and cut off */
	om_slice_edit *edit;      /* for columns: NULL where the parts alone are required */
	/* For partial results only. */
	om_combine combine;       /* the operation that combines them */
	double scale;             /* the combined result is multiplied by this; 1: it is not */
	const char *finish;       /* the unary operator of ai.onnx that is applied last; NULL: none */
} om_slice;

/* The part `part` of output `out`: true, with all members of `*s` set, if the op can be computed for it alone.
 * Arrays are allocated from `mem`.  Shapes must be known.
 *
 * The parts of the inputs are monotone: if `lo` and `hi` grow or stay, so do both ends of each part, so that the
 * largest part that given parts of the inputs suffice for can be found by bisection.  Whether a part is possible
 * depends on its axis; only limits of other attributes (the pads of a transposed convolution) refuse single ones.
 * The same value may be several inputs, each with a part of its own. */
OM_API bool om_op_slice(om_arena *mem, const om_op *op, uint32_t out, om_part part, om_slice *s);

/* The contribution of part `part` of input `in` to output 0, which is whole: true, with all members of `*s` set, if
 * the output is a combination (`combine`, `scale`, `finish`) of the contributions of parts that together are the
 * axis.  The contribution that begins at 0 must be one of them: it alone has what is added once, such as a bias. */
OM_API bool om_op_partial(om_arena *mem, const om_op *op, uint32_t in, om_part part, om_slice *s);

/* Whether an operator has parts along any axis of an output, and partial results along any axis of an input. */
OM_API bool om_opdef_has_slice(const om_opdef *d);
/* See om_opdef_has_slice(). */
OM_API bool om_opdef_has_partial(const om_opdef *d);

/* Build the op of om_op_slice() before the op `at`.  `in` [op->nin] are the parts of the inputs that it asks for;
 * those that are whole may be the inputs themselves, and those that are replaced or left out may be NULL.
 * `made` [op->nout] receives the parts of the outputs, without surplus; NULL for an output that the op does not have,
 * or that its part does not compute.  Shapes of new values are inferred.  OM_INVALID if there is no such part. */
OM_API om_status om_slice_op(om_session *s, om_prog *p, const om_op *op, uint32_t out, om_part part,
	om_value *const *in, om_op *at, om_value **made);

/* Build the op of om_op_partial() in the same way; `*made` receives its contribution. */
OM_API om_status om_partial_op(om_session *s, om_prog *p, const om_op *op, uint32_t in, om_part part,
	om_value *const *parts, om_op *at, om_value **made);

/* Combine `a` and `b`, contributions of `op` by the slice `slice`, by an op before `at`. */
OM_API om_status om_partial_combine(om_session *s, om_prog *p, const om_op *op, const om_slice *slice, om_value *a,
	om_value *b, om_op *at, om_value **made);

/* The output of `op` from the combination `v` of all contributions: `v` itself, or computed from it before `at`. */
OM_API om_status om_partial_finish(om_session *s, om_prog *p, const om_op *op, const om_slice *slice, om_value *v,
	om_op *at, om_value **made);

/* The part `part` of the value `v`, of known shape: `v` itself if that is all of it, a new constant if its elements
 * are known and can be cut, else the result of a Slice before `at`. */
OM_API om_status om_slice_value(om_session *s, om_prog *p, om_value *v, om_part part, om_op *at, om_value **made);

#ifdef __cplusplus
}
#endif

#endif
