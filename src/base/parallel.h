/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel loops.
 *
 * A kernel divides its work into pieces and calls om_parallel_for(); which worker runs a piece must not change
 * its result: no sum is split between pieces.  Without a pool, or with one worker, the loop is serial. */
#ifndef OM_PARALLEL_H
#define OM_PARALLEL_H

#include <stdint.h>

/* Worker threads; see thread_pool.c. */
typedef struct om_workers om_workers;

/* Run piece `k`.  `worker`, below om_worker_count(), is not used by two pieces at a time: it selects the scratch
 * of the piece.  It must return: no error, no allocation from an arena of the caller. */
typedef void om_piece_fn(void *arg, int64_t k, uint32_t worker);

/* Run pieces 0 to n - 1, in any order, and wait for all.  Calls from a piece are serial, and have the worker of
 * that piece.  One thread at a time may call it for a pool, besides pieces. */
void om_parallel_for(om_workers *pool, int64_t n, om_piece_fn *fn, void *arg);

/* Workers, the caller included; 1 for NULL. */
uint32_t om_worker_count(const om_workers *pool);

/* A pool of `n` workers, the caller included; fewer if the system has no more threads.  NULL if that is one.
 * Pools are independent.  After fork() the child has none of the threads: it may neither use nor free a pool of
 * its parent, and creates its own. */
om_workers *om_workers_new(uint32_t n);
void om_workers_free(om_workers *pool);  /* NULL is fine; not during a loop */

/* Processors that this process may use; at least 1. */
uint32_t om_core_count(void);

#endif
