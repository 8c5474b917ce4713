/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of elements between types. */
#ifndef OM_CONVERT_ELEMENTS_H
#define OM_CONVERT_ELEMENTS_H

#include "onnxmem/tensor.h"

/* Can elements of type `from` become elements of type `to`? */
bool om_can_convert(om_dtype to, om_dtype from);

/* Convert `n` elements of `in` to type `to` with the semantics of Cast: floats are rounded to
 * nearest; for integers they are truncated towards zero and saturate, and NaN becomes 0, but for integers of less than
 * 8 bits; integers out of range wrap around; every nonzero value becomes true.  `saturate` selects the result of numbers too large for an 8-bit
 * float: the largest finite number, or infinity or NaN.  `out` may coincide with `in` if the
 * elements have the same width. */
void om_convert(om_dtype to, void *out, om_dtype from, const void *in, int64_t n, bool saturate);

/* Element `k` of a type that om_can_convert() takes, as text: `%.8g` for float32 and smaller, exact for
 * all other types; NaN and infinities are written as exporters write them.  As snprintf(). */
int om_number_text(om_dtype t, const void *data, int64_t k, char *out, size_t size);

#endif
