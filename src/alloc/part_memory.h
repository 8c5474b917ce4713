/* SPDX-License-Identifier: Apache-2.0 */
/* What ranges of the ops of a graph need as parts that run alone; see onnxmem/split.h. */
#ifndef OM_PART_MEMORY_H
#define OM_PART_MEMORY_H

#include "onnxmem/plan.h"

/* An op uses some storage, or a constant. */
typedef struct om_part_use {
	uint32_t root;           /* id of the value that owns the storage */
	bool writes;             /* a value in it is computed; else values in it are read only */
	int64_t used, written;   /* the last op before this one that uses it, or writes it; -1: none */
} om_part_use;

/* The ops of a graph that run, and what they use.  Positions count these ops. */
typedef struct om_part_memory {
	om_op **op;              /* [n] */
	uint32_t n;              /* ops */
	uint64_t *inside;        /* [n] bytes that are in use only while the op runs: workspaces and bodies */
	om_part_use **use;       /* [n] lists, each with what one op uses once */
	uint32_t *nuse;          /* [n] their lengths */
	uint64_t *crossing;      /* [n + 1] bytes of values that are computed before a position, and read from there on */
	uint64_t *bytes;         /* by value id: of the storage that it owns, or of the constant */
	int64_t *last;           /* by value id: the last use of the storage that it owns; n: a result is in it */
	bool *is_weight;         /* by value id */
	uint64_t *live;          /* [n] scratch of om_part_memory_walk() */
} om_part_memory;

/* Collect it from a program with storage, allocated from `mem`. */
om_part_memory om_part_memory_new(const om_prog *p, om_arena *mem);

/* A part that grows by an op at a time. */
typedef struct om_part_walk {
	const om_part_memory *m;
	uint32_t first, end;     /* its ops are [first, end) */
	uint64_t now;            /* bytes of what it computed and is still needed */
	uint64_t peak, weights;  /* bytes, at most: what is live at once; constants */
} om_part_walk;

/* The empty part that starts at `first`. */
om_part_walk om_part_walk_at(const om_part_memory *m, uint32_t first);
/* Add the op at `w->end`. */
void om_part_walk_on(om_part_walk *w);

#endif
