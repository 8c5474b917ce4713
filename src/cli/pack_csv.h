/* SPDX-License-Identifier: Apache-2.0 */
/* Packing problems in tables. */
#ifndef OM_PACK_CSV_H
#define OM_PACK_CSV_H

#include "cli/table.h"
#include "onnxmem/pack.h"

/* Columns, in any order: id, lower (start, begin), upper, or end (inclusive), size; optional:
 * alignment, offset, pool, gaps, access_bytes, group.  Other columns are preserved. */
typedef struct om_packfile {
	om_table table;
	om_problem problem;      /* buffer k is row k */
	int offset, pool;        /* columns, or OM_NO_COLUMN */
} om_packfile;

typedef struct om_packfile_how {
	uint64_t align;          /* minimum alignment of every buffer */
	bool forgets_offsets;    /* column offset is a solution, not a constraint */
	const om_pool *pool;     /* none: the pools named in column pool, without limits */
	uint32_t npool;
} om_packfile_how;

/* Build a problem from a table and a table of pairs (a header line, then an id in each of two
 * columns), which may be NULL.  The result refers to both. */
om_status om_packfile_read(om_session *s, const om_table *t, const om_table *pairs,
	const om_packfile_how *how, om_arena *mem, om_packfile *out);

#endif
