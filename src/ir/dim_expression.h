/* SPDX-License-Identifier: Apache-2.0 */
/* Names of dims that are expressions of other dims, as exporters write them: "past + sequence", "2*(s30//2) + 1". */
#ifndef OM_DIM_EXPRESSION_H
#define OM_DIM_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number of the symbol whose name has `n` characters at `name`; false: it has none. */
typedef bool om_symbol_number(const void *arg, const char *name, size_t n, int64_t *out);

/* Evaluate integers, symbols, + - * // and parentheses; // rounds down.  False if `text` is something else, has no operator,
 * or has a symbol without a number, or if a number overflows, is divided by 0, or the result is negative. */
bool om_dim_expression(const char *text, om_symbol_number *number, const void *arg, int64_t *out);

/* The number of a dim called `text` when symbols have the numbers `after`, if `was`, which it was bound to, follows from the
 * numbers `before`.  False: it does not. */
bool om_dim_follows(const char *text, om_symbol_number *before, om_symbol_number *after, const void *arg, int64_t was, int64_t *out);

#endif
