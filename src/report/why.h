/* SPDX-License-Identifier: Apache-2.0 */
/* Why the arena is as large as it is: a ladder of peaks, and the life of one value. */
#ifndef OM_WHY_H
#define OM_WHY_H

#include "report/report.h"

/* What the op of a step has to do with bytes that are in use then. */
typedef enum om_role {
	OM_ROLE_INPUT, OM_ROLE_OUTPUT,
	OM_ROLE_BOTH,            /* inputs and outputs in the same bytes */
	OM_ROLE_SCRATCH,
	OM_ROLE_CROSSING,        /* none: they are only kept for later */
} om_role;

/* Bytes in use at a step, named after the largest value in them. */
typedef struct om_peak_value {
	const char *name;
	const om_value *value;   /* NULL for scratch */
	uint64_t bytes;          /* rounded to the alignment */
	om_role role;
	uint32_t first;          /* the step in which the value is computed */
	uint32_t since;          /* OM_ROLE_CROSSING: from this step on no op needs them, */
	uint32_t until;          /* up to this one, exclusive */
	uint32_t next;           /* OM_ROLE_CROSSING: the next step that reads them; UINT32_MAX: none does */
	const om_op *reader;     /* the op that reads them then; NULL: a result is read */
} om_peak_value;

/* A step with more bytes in use than those around it. */
typedef struct om_peak_step {
	uint32_t step;           /* of those from `from` to `to`, which have as many, the one whose op needs most */
	uint32_t from, to;
	const om_op *op;         /* NULL: the end of the graph */
	om_peak_value *live;     /* the largest first, crossing ones last */
	uint32_t nlive;
	uint64_t own;            /* bytes of what the op reads and writes */
	uint64_t floor;          /* bytes of them that it needs in any order; 0: not known */
} om_peak_step;

/* Peaks of one height. */
typedef struct om_rung {
	uint64_t bytes;
	om_peak_step *at;        /* in order of steps; of peaks with the same bytes in use, the first */
	uint32_t n;
	uint32_t more;           /* peaks of the same height that are not listed */
	uint64_t own, floor;     /* the largest of them all */
	uint64_t next;           /* bytes of the next lower rung; 0: there is none */
	uint64_t reach;          /* once higher peaks are gone: most bytes in use if what crosses these peaks were
				    elsewhere while no op needs it */
} om_rung;

typedef struct om_ladder {
	om_rung *rung;           /* the highest first */
	uint32_t n;
	uint32_t more;           /* lower rungs that are not listed */
} om_ladder;

/* The ladder of a plan that has steps (not parallel_safe). */
om_ladder om_report_ladder(const om_report *r, om_arena *mem);

/* A value and its surroundings in the arena. */
typedef struct om_report_tensor {
	const om_value *value;
	const om_placement *at;
	om_steps live;           /* steps of a run */
	const char *why;         /* OM_UNPLANNED: the reason */
	const om_box *over, *under;   /* of other buffers, live at the same time: the nearest above and below; or NULL */
	const om_box *before, *after; /* in some of its bytes: the last before its life, the first after it; or NULL */
} om_report_tensor;

om_report_tensor om_report_tensor_of(const om_report *r, const om_value *v);

/* Is the value live at one of the peaks of the rung? */
bool om_report_is_at_rung(const om_report *r, const om_value *v, const om_rung *g);

/* With `v`, about this value; NULL: about the peaks. */
void om_why_text(const om_report *r, const om_value *v, FILE *to);
om_status om_why_json(const om_report *r, const om_value *v, om_session *s, FILE *to);

/* The bound of the order, or for several arenas that of their buffers. */
uint64_t om_why_bound(const om_report *r);

#endif
