/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in processes of their own, several at a time: a job that crashes or exceeds its time
 * limit is reported as such and does not affect the others. */
#ifndef OM_PROCESS_POOL_H
#define OM_PROCESS_POOL_H

#include "onnxmem/arena.h"

typedef struct om_job {
	void (*run)(void *arg, int to);   /* in the child process: writes its result to `to` */
	void *arg;

	char *text;              /* its output, from `mem`, NUL-terminated */
	size_t n;
	const char *died;        /* how it died, if it did not end normally; otherwise NULL */
	double ms;
} om_job;

/* Run all jobs, `many` at a time, each for at most `limit` seconds (0: no limit).  `done` is
 * called for each in order of completion.  `*is_job`: this is the process of a job, which has run here: nothing is left to do. */
om_status om_process_pool_run(om_session *s, om_arena *mem, om_job *job, size_t n, size_t many, double limit,
	void (*done)(void *arg, size_t k), void *arg, bool *is_job);

#endif
