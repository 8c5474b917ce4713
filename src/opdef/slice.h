/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of ops, for columns of operator definitions and for passes inside the library; see onnxmem/slice.h. */
#ifndef OM_OPDEF_SLICE_H
#define OM_OPDEF_SLICE_H

#include "onnxmem/slice.h"
#include "opdef/op_context.h"

/* As om_op_slice() and om_op_partial(), of a context that om_op_query() returned true for; arrays are allocated from
 * c->mem.  `edit`, unless NULL, receives how the op differs. */
bool om_op_context_slice(const om_op_context *c, uint32_t out, om_part part, om_slice_edit *edit, om_slice *s);
bool om_op_context_partial(const om_op_context *c, uint32_t in, om_part part, om_slice_edit *edit, om_slice *s);

/* ---- For columns. ---- */

static inline om_part
om_part_of(int axis, int64_t lo, int64_t hi)
{
	return (om_part){axis, lo, hi};
}

/* A part without elements: an input that is left out, an output that is not computed. */
static inline om_part
om_part_none(void)
{
	return (om_part){0, 0, 0};
}

static inline bool
om_part_is_none(const om_part *p)
{
	return p->axis != OM_WHOLE && p->lo == p->hi;
}

/* The part of [from, from + n) along `axis` that a range covers, counted from `from`. */
static inline om_part
om_part_within(const om_part *p, int axis, int64_t from, int64_t n)
{
	const int64_t lo = p->lo - from, hi = p->hi - from;

	return (om_part){axis, lo < 0 ? 0 : lo > n ? n : lo, hi < 0 ? 0 : hi > n ? n : hi};
}

/* The same range along another axis. */
static inline om_part
om_part_along(const om_part *p, int axis)
{
	return (om_part){axis, p->lo, p->hi};
}

/* The range of elements that a range of units of `each` elements is, along `axis`. */
static inline om_part
om_part_scaled(const om_part *p, int axis, int64_t each)
{
	return (om_part){axis, p->lo * each, p->hi * each};
}

/* The units of `each` elements that contain a part; what they have beyond it is the surplus. */
static inline om_part
om_slice_units(om_slice *s, const om_part *p, int64_t each)
{
	const om_part units = {p->axis, p->lo / each, (p->hi - 1) / each + 1};

	s->before = p->lo - units.lo * each;
	s->after = units.hi * each - p->hi;
	return units;
}

/* The op becomes another operator of ai.onnx, without attributes, with `nin` inputs. */
void om_slice_become(om_slice *s, const char *type, uint32_t nin);

/* Set attributes, or remove one.  Elements of lists are copied. */
void om_slice_set_int(const om_op_context *c, om_slice *s, const char *name, int64_t v);
void om_slice_set_float(const om_op_context *c, om_slice *s, const char *name, float v);
void om_slice_set_ints(const om_op_context *c, om_slice *s, const char *name, size_t n, const int64_t *v);
void om_slice_drop(om_slice *s, const char *name);

/* Replace input `k` by a constant list of int64, or by an int64 scalar. */
void om_slice_put_ints(const om_op_context *c, om_slice *s, uint32_t k, size_t n, const int64_t *v);
void om_slice_put_int(const om_op_context *c, om_slice *s, uint32_t k, int64_t v);

/* Input `k` is aligned with output `out` from the right, as operands of a broadcast: along the axis of the part it has
 * the same part, or is whole where it has one element or no such axis. */
void om_slice_align(const om_op_context *c, uint32_t out, om_slice *s, uint32_t k);

/* Input `k` as a list of channels, the elements along `axis` of output `out`: the same part if the part is along that axis
 * and the list has more than one element, else whole. */
void om_slice_channels(const om_op_context *c, uint32_t out, om_slice *s, uint32_t k, int axis);

/* Columns of many operators.  Pointwise: all inputs are aligned, and all outputs have the shape of the first. */
bool om_slice_pointwise(const om_op_context *c, uint32_t out, om_slice *s);
/* Input 0 and every output have the same part, and the other inputs are whole. */
bool om_slice_first(const om_op_context *c, uint32_t out, om_slice *s);
/* The same if the part is not along `axis`. */
bool om_slice_beside(const om_op_context *c, uint32_t out, om_slice *s, int axis);
/* The same along all axes but the last. */
bool om_slice_but_last(const om_op_context *c, uint32_t out, om_slice *s);
/* The same along axis 0 of a matrix alone: rows of features. */
bool om_slice_rows(const om_op_context *c, uint32_t out, om_slice *s);
/* The same along axis 0 alone. */
bool om_slice_batch(const om_op_context *c, uint32_t out, om_slice *s);

#endif
