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
 * of the piece. */
typedef void om_piece_fn(void *arg, int64_t k, uint32_t worker);

/* Run pieces 0 to n - 1, in any order, and wait for all.  Calls from a piece are serial. */
void om_parallel_for(om_workers *pool, int64_t n, om_piece_fn *fn, void *arg);

/* Workers, the caller included; 1 for NULL. */
uint32_t om_worker_count(const om_workers *pool);

#endif
