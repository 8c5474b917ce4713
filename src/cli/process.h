/* SPDX-License-Identifier: Apache-2.0 */
/* A job in a process of its own: process_posix.c, and process_windows.c, where a process that starts runs the same command and gets
 * to its job in that way. */
#ifndef OM_PROCESS_H
#define OM_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "onnxmem/arena.h"

/* That run at a time, at most. */
enum { OM_PROCESSES = 1024 };

struct om_process {
	intptr_t id;
	int from;                /* what the job writes; the end of it means that the process has ended */
};

/* Is this process one that was started for a job?  Then for which, and where the job writes to. */
bool om_process_is_job(size_t *k, int *to);

/* Start one for job `k`, which is `run`; other[0..n) are those that run.  False, and errno tells why, if that is not possible.  Its standard
 * input and output are empty; standard error is that of this process, for the message of a crash. */
bool om_process_start(struct om_process *p, size_t k, void (*run)(void *arg, int to), void *arg, const struct om_process *other, size_t n);

/* Wait until one of them wrote or ended, `ms` milliseconds at most (-1: without limit), and tell which: ready[0..n).  False: none. */
bool om_process_wait(const struct om_process *p, size_t n, int ms, bool *ready);

void om_process_kill(const struct om_process *p);

/* After its end: how it died, in `mem`; NULL: it did not. */
const char *om_process_end(const struct om_process *p, om_arena *mem);

#endif
