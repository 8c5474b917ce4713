/* Conversion of elements between types. */
#ifndef OM_CAST_H
#define OM_CAST_H

#include "onnxmem/tensor.h"

/* Can elements of type `from` become elements of type `to`? */
bool om_can_convert(om_dtype to, om_dtype from);

/* Write `n` elements of `in` as type `to`, in the way of Cast: floats are
 * rounded to nearest, cut towards zero for integers; integers that do not fit
 * wrap around; anything but zero is true.  `saturate` says what becomes of
 * numbers too large for an 8-bit float: the largest one, or its infinity or
 * NaN.  `out` may lie exactly over `in` when the elements have the same width. */
void om_convert(om_dtype to, void *out, om_dtype from, const void *in, int64_t n, bool saturate);

#endif
