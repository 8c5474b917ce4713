/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that run side by side and wait for one another: each has one part of a task, and tells how far it is.
 *
 * Unlike the pieces of a parallel loop (base/parallel.h), parts may wait for others, so each has a thread. */
#ifndef OM_CREW_H
#define OM_CREW_H

#include <stdbool.h>
#include <stdint.h>

typedef struct om_crew om_crew;

/* Run part `k` of a task.  Part 0 is run by the thread that calls om_crew_run(). */
typedef void om_crew_part(void *arg, uint32_t k);

/* A crew for `n` parts, at least 2.  NULL: the system has no more threads, or no memory.  After fork() the child may neither
 * use nor free it. */
om_crew *om_crew_new(uint32_t n);
void om_crew_free(om_crew *c);  /* NULL is fine; not during a task */

/* Run all parts of a task, and return when all have returned. */
void om_crew_run(om_crew *c, om_crew_part *part, void *arg);

/* In a part: `done` steps of part `k` are done; what it wrote before is visible to those that wait for it. */
void om_crew_tell(om_crew *c, uint32_t k, uint32_t done);
/* In a part: wait until `done` steps of part `k` are done.  False: the task was cancelled. */
bool om_crew_await(om_crew *c, uint32_t k, uint32_t done);
/* In a part: nobody waits any more, until the next task. */
void om_crew_cancel(om_crew *c);

#endif
