/* Pieces of work in processes of their own, some at a time: one that crashes or
 * takes too long is an outcome, and harms no other. */
#ifndef OM_PROCESS_POOL_H
#define OM_PROCESS_POOL_H

#include "onnxmem/arena.h"

typedef struct om_job {
	void (*run)(void *arg, int to);   /* in the new process: writes what it found */
	void *arg;

	char *text;              /* what it wrote, from `mem`, with a NUL behind */
	size_t n;
	const char *died;        /* how, where it did not end by itself; else NULL */
	double ms;
} om_job;

/* Run all, `many` at once, each for at most `limit` seconds (0: no limit).  `done`
 * is called for each when it is over, in the order in which that happens. */
om_status om_process_pool_run(om_session *s, om_arena *mem, om_job *job, size_t n, size_t many, double limit,
	void (*done)(void *arg, size_t k), void *arg);

#endif
