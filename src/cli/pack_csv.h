/* Packing problems as tables. */
#ifndef OM_PACK_CSV_H
#define OM_PACK_CSV_H

#include "cli/table.h"
#include "onnxmem/pack.h"

/* Columns, in any order: id, lower (start, begin), upper, or end (the last step
 * itself), size; optional alignment, offset, pool, gaps, access_bytes, group.  Others
 * are kept as they are. */
typedef struct om_packfile {
	om_table table;
	om_problem problem;      /* buffer k is row k */
	int offset, pool;        /* columns, or OM_NO_COLUMN */
} om_packfile;

typedef struct om_packfile_how {
	uint64_t align;          /* of every buffer at least */
	bool forgets_offsets;    /* what stands in column offset is a solution, not a wish */
	const om_pool *pool;     /* none: those that column pool names, without limits */
	uint32_t npool;
} om_packfile_how;

/* A problem from a table, and from one of pairs (a head line, then an id in each
 * of two columns), which may be NULL.  Both stay in use. */
om_status om_packfile_read(om_session *s, const om_table *t, const om_table *pairs,
	const om_packfile_how *how, om_arena *mem, om_packfile *out);

#endif
