/* SPDX-License-Identifier: Apache-2.0 */
/* Runs kernels of the kernel language in C: a fiber for each thread of a block, one block after the other, in orders
 * that a seed draws.  Each fiber runs until a barrier or its end; then the next one does.  What a missing barrier would
 * let a device do happens here for some seed. */
#ifndef OM_FIBERS_H
#define OM_FIBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct om_fibers om_fibers;

/* The thread that runs. */
typedef struct om_fiber_place {
	int32_t thread, threads;      /* of the block */
	int64_t block[3], blocks[3];  /* of the grid */
} om_fiber_place;

/* Memory for blocks of up to 1,024 threads, used by one host thread at a time; NULL: there is not enough. */
om_fibers *om_fibers_new(void);
void om_fibers_free(om_fibers *f);  /* NULL is fine */

enum { OM_FIBERS_THREADS = 1024, OM_FIBERS_SHARED = 48 * 1024, OM_FIBERS_SITES = 4096 };

/* Run body(user) for every thread of a grid.  Without barriers threads run one after the other on the stack of the
 * caller.  NULL, or what the kernel did wrong, as a sentence. */
const char *om_fibers_run(om_fibers *f, void (*body)(const void *user), const void *user, const uint32_t blocks[3],
	uint32_t threads, bool has_barriers, uint64_t seed);

/* Test the tests: from now on the barrier of this number does nothing; -1: none is left out.  And whether the barrier
 * was reached by any run. */
void om_fibers_omit(om_fibers *f, int barrier);
bool om_fibers_reached(const om_fibers *f, int barrier);
void om_fibers_forget(om_fibers *f);  /* as if none was reached */

/* For dialect_c.h: the place of the thread, memory that its block shares, and a barrier, by its number. */
const om_fiber_place *om_fiber_here(void);
void *om_fiber_shared(size_t bytes);
void om_fiber_barrier(int number);

#endif
