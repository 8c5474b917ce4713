/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of programs that tests write, and random ones. */
#ifndef OM_DRAWN_TEXT_H
#define OM_DRAWN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "onnxmem/status.h"

struct unit_text {
	char at[1 << 14];
	size_t n;
};

/* Append; a text that is too long ends the test. */
void unit_say(struct unit_text *t, const char *fmt, ...) OM_PRINTF(2, 3);

/* A program of two inputs of `rows` by `columns`, so many values, and three results, by operators whose results are exact: all that
 * compute it have the same bits.  CumSum has no kernel for devices, Reshape is a view; with `some_alone` some ops have a size that
 * data decide, so that they run alone. */
void unit_draw(struct unit_text *t, uint64_t *rng, int values, int rows, int columns, bool some_alone);

#endif
