/* Conversion of elements between types. */
#ifndef OM_CAST_H
#define OM_CAST_H

#include "onnxmem/tensor.h"

/* Can elements of type `from` become elements of type `to`? */
bool om_can_convert(om_dtype to, om_dtype from);

/* Convert `n` elements of `in` to type `to` with the semantics of Cast: floats are rounded to
 * nearest, and truncated towards zero for integers; integers out of range wrap around; every
 * nonzero value becomes true.  `saturate` selects the result of numbers too large for an 8-bit
 * float: the largest finite number, or infinity or NaN.  `out` may coincide with `in` if the
 * elements have the same width. */
void om_convert(om_dtype to, void *out, om_dtype from, const void *in, int64_t n, bool saturate);

#endif
