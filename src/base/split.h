/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting text. */
#ifndef OM_SPLIT_H
#define OM_SPLIT_H

#include "onnxmem/arena.h"

/* The non-empty parts of a string between any of the `marks`, in order; `*n` is
 * their number.  The list and its strings are in the arena. */
const char **om_split(om_arena *a, const char *text, const char *marks, size_t *n);

#endif
