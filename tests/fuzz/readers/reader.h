/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz targets of readers: one file each, linked with replay.c, or with search.c and libFuzzer. */
#ifndef OM_READER_H
#define OM_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "onnxmem/status.h"

/* Reads an input as the target does; whether it was accepted.  Aborts the process if a promise is broken. */
bool reader_takes(const uint8_t *data, size_t size);

/* Whether the input was accepted; the process is aborted if it was refused without a message. */
static inline bool
reader_says(om_session *s, om_status st)
{
	if (st != OM_OK && !*om_message(s)) {
		fprintf(stderr, "refused without a message: %s\n", om_status_text(st));
		abort();
	}
	return st == OM_OK;
}

#endif
