/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that run a command: processes of this machine, which it forks, or those that mpirun started. */
#ifndef OM_RANK_GROUP_H
#define OM_RANK_GROUP_H

#include <sys/types.h>

#include "cli/cli.h"
#include "onnxmem/comm.h"

enum { OM_MOST_PARTS = 64 };   /* ranks of one machine, and of a pipeline */

typedef struct om_ranks {
	om_comm *comm;           /* NULL: there is one rank */
	om_comm_local *local;    /* of ranks of this machine */
	uint32_t rank, size;
	pid_t *child;            /* of rank 0 of this machine: by rank, from 1 on */
	uint32_t nchild;
} om_ranks;

/* By the options --ranks or --pipeline, --timeout and --overlap.  Returns in every rank; output of all but rank 0 is dropped. */
om_status om_ranks_start(om_cli *c, om_ranks *r);

/* The command ended with `st` here, which ends all ranks if it is a failure.  Rank 0 waits for the processes that it started.
 * The status of the command: of rank 0 it is a failure if a rank failed. */
om_status om_ranks_end(om_cli *c, om_ranks *r, om_status st);

/* What a step is divided by: options --shard, --bucket, --overlap and --ordered. */
typedef struct om_rank_step {
	const char *mode;        /* of the pass `shard` */
	uint64_t bucket;         /* bytes of gradients that are reduced together */
	uint64_t overlap;        /* sums that go on beside the backward pass */
	bool ordered;
} om_rank_step;

om_status om_rank_step_read(om_cli *c, om_rank_step *out);

/* Make c->prog the step of this rank, which has `n` samples from `from` on of a batch of `all`.  Of one rank, it stays. */
om_status om_ranks_shard(om_cli *c, const om_ranks *r, const om_rank_step *how, int64_t from, int64_t n, int64_t all);

/* Do all ranks run the same collectives in the same order, in a run of `p`?  OM_USAGE, on every rank, naming one that does not. */
om_status om_ranks_agree(om_cli *c, const om_ranks *r, const om_prog *p);

/* The part of `all` samples for this rank: `*n` from `*from` on.  A rank that gets none has one, and `*from` is `all`. */
void om_ranks_share(const om_ranks *r, int64_t all, int64_t *from, int64_t *n);

/* `mine` of all ranks, by rank: called by all.  Allocated in c->mem. */
om_status om_ranks_gather(om_cli *c, const om_ranks *r, uint64_t mine, uint64_t **all);

#endif
