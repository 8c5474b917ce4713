/* SPDX-License-Identifier: Apache-2.0 */
/* Tables in files: rows of comma-separated fields, with a header line. */
#ifndef OM_TABLE_H
#define OM_TABLE_H

#include <stdint.h>

#include "onnxmem/arena.h"

typedef struct om_table {
	const char *path;        /* for messages */
	size_t ncol, nrow;
	const char **head;       /* [ncol] */
	const char **field;      /* [nrow * ncol] */
	size_t *line;            /* [nrow]: line number in the file, from 1 */
	const char *newline;     /* line end used in the file */
} om_table;

enum { OM_NO_COLUMN = -1 };

/* Parse `size` bytes; `data[size]` must be 0.  The buffer is modified and must outlive the
 * table. Fields may be quoted; blanks around them, empty lines and lines that begin with # are
 * skipped. */
om_status om_table_parse(om_session *s, const char *path, char *data, size_t size, om_arena *mem,
	om_table *out);

/* The column of that name, case-insensitive; OM_NO_COLUMN if there is none. */
int om_table_column(const om_table *t, const char *name);

static inline const char *
om_table_field(const om_table *t, size_t row, int col)
{
	return t->field[row * t->ncol + (size_t)col];
}

/* OM_MALFORMED: "FILE:LINE: column NAME: requires `what`, not FIELD". */
om_status om_table_wrong(om_session *s, const om_table *t, size_t row, int col, const char *what);

/* The field as a number in [min, max]. */
om_status om_table_number(om_session *s, const om_table *t, size_t row, int col, uint64_t min,
	uint64_t max, uint64_t *out);

#endif
