/* SPDX-License-Identifier: Apache-2.0 */
/* Plans by other planners: the addresses of the values of a graph, by name. */
#ifndef OM_REPORT_FOREIGN_H
#define OM_REPORT_FOREIGN_H

#include "base/map.h"
#include "onnxmem/plan.h"

/* In place of bytes: the other plan does not state the size. */
#define OM_SIZE_UNSTATED UINT64_MAX

/* The place of a value. */
typedef struct om_foreign_place {
	bool is_set;
	uint64_t offset, bytes;  /* bytes: OM_SIZE_UNSTATED or as stated */
} om_foreign_place;

/* Places of values, while they are collected; made by om_foreign_new(). */
typedef struct om_foreign {
	const om_prog *p;
	om_arena *mem;
	const char *source;      /* where the places come from, for messages */
	om_map names;            /* values of the graph */
	om_foreign_place *place; /* by value id */
	uint32_t n;              /* places that are set */
	uint64_t arena_bytes;    /* as stated; OM_SIZE_UNSTATED: up to the end of the last value */
	uint32_t nother;         /* names that the graph has not */
	const char *other;       /* the first of them */
} om_foreign;

/* Collect places for the values of `p`, which stays unchanged meanwhile. */
om_foreign *om_foreign_new(const om_prog *p, const char *source, om_arena *mem);

/* A value is at `offset`.  OM_BADPLAN if it already has another place.  A name that the graph has not is counted. */
om_status om_foreign_add(om_session *s, om_foreign *f, const char *name, uint64_t offset, uint64_t bytes);

/* Is it an input or output of the graph that has a place? */
bool om_foreign_has_io(const om_foreign *f, const om_value *v);

/* Make the plan of `p`, a program of the same values that has lifetimes for a request whose inputs and outputs with
 * places are in the arena.  Which values share storage follows from the addresses; whether they may is left to
 * om_plan_verify().  Values without a place are outside of the plan. */
om_status om_foreign_plan(om_session *s, om_prog *p, const om_foreign *f);

#endif
