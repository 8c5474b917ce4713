/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators: ranks that run the same program, each on a part of the data.
 *
 * The collective operators of the domain org.onnxmem.dist call the communicator that a run is given
 * (om_exec_options.comm).  A communicator is a small table of functions: the library has one for threads and
 * processes of one machine, the module onnxmem-mpi.so one over MPI, and a program may bring its own.
 *
 * All ranks call the same collectives in the same order.  A communicator is used by one thread at a time.
 */
#ifndef OM_COMM_H
#define OM_COMM_H

#include "onnxmem/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct om_comm om_comm;

/* What a communicator does.  Functions return OM_RUN, with a message, when another rank has ended, has ended the run, or
 * does not answer within the time limit; the communicator is of no use then.  Sums are of float32, float64, float16,
 * bfloat16 and integers of 32 and 64 bits.  Memory of inputs and outputs does not overlap, unless both are the same. */
typedef struct om_comm_ops {
	size_t size;             /* of this struct, as the module was compiled */
	const char *name;        /* for messages: "local", "mpi" */

	/* data[i] becomes the sum of data[i] of all ranks. */
	om_status (*all_reduce)(om_comm *c, om_session *s, om_dtype type, void *data, uint64_t n);
	/* out[i] becomes the sum of in[rank * n + i] of all ranks; `in` has size * n elements. */
	om_status (*reduce_scatter)(om_comm *c, om_session *s, om_dtype type, const void *in, void *out, uint64_t n);
	/* `out` becomes the `bytes` bytes of `in` of all ranks, by rank.  `in` may be its place in `out`. */
	om_status (*all_gather)(om_comm *c, om_session *s, const void *in, void *out, uint64_t bytes);
	/* `data` becomes that of rank `root`. */
	om_status (*broadcast)(om_comm *c, om_session *s, void *data, uint64_t bytes, uint32_t root);
	/* A message to rank `peer`, which receives those with one tag in the order in which they were sent.  May return
	 * only when the other rank receives it. */
	om_status (*send)(om_comm *c, om_session *s, uint32_t peer, uint32_t tag, const void *data, uint64_t bytes);
	/* A message of exactly `bytes` bytes from rank `peer`. */
	om_status (*receive)(om_comm *c, om_session *s, uint32_t peer, uint32_t tag, void *data, uint64_t bytes);
	/* Returns when all ranks have called it. */
	om_status (*barrier)(om_comm *c, om_session *s);
	/* End the run of all ranks, which fail with the sentence `why`.  May end this process. */
	void (*abort)(om_comm *c, const char *why);
	/* Leave, and free what the communicator holds, itself included. */
	void (*close)(om_comm *c);
	/* May another thread than the one that opened it make calls, one at a time? */
	bool may_change_thread;
} om_comm_ops;

/* A communicator, as one rank has it: the first member of the struct of an implementation. */
struct om_comm {
	const om_comm_ops *ops;  /* never NULL */
	uint32_t rank, size;     /* this one; how many there are */
};

/* The ranks that take part in a collective: `n` numbers in ascending order, this rank among them.  n = 0: all of them. */
typedef struct om_comm_group {
	const int64_t *rank;     /* of the communicator; belongs to the caller */
	size_t n;                /* how many */
} om_comm_group;

/* The collectives over a group.  `ordered`: sums are computed in the order of ranks, so that they are bit-identical in every
 * run, whatever the communicator does.  OM_USAGE if the group is not valid, or has no such rank. */
OM_API om_status om_comm_all_reduce(om_comm *c, om_session *s, om_comm_group g, om_dtype type, void *data, uint64_t n,
	bool ordered);
/* As om_comm_ops.reduce_scatter; `n` elements of `out`. */
OM_API om_status om_comm_reduce_scatter(om_comm *c, om_session *s, om_comm_group g, om_dtype type, const void *in, void *out,
	uint64_t n, bool ordered);
/* As om_comm_ops.all_gather. */
OM_API om_status om_comm_all_gather(om_comm *c, om_session *s, om_comm_group g, const void *in, void *out, uint64_t bytes);
/* As om_comm_ops.broadcast; `root` is a rank of the communicator that is in the group. */
OM_API om_status om_comm_broadcast(om_comm *c, om_session *s, om_comm_group g, void *data, uint64_t bytes, uint32_t root);
/* The place of this rank in the group, and in `*size` the number of its ranks. */
OM_API om_status om_comm_place(const om_comm *c, om_session *s, om_comm_group g, uint32_t *place, uint32_t *size);

/* Messages; OM_USAGE if `peer` is no other rank. */
OM_API om_status om_comm_send(om_comm *c, om_session *s, uint32_t peer, uint32_t tag, const void *data, uint64_t bytes);
/* See om_comm_send(). */
OM_API om_status om_comm_receive(om_comm *c, om_session *s, uint32_t peer, uint32_t tag, void *data, uint64_t bytes);
/* Returns when all ranks have called it. */
OM_API om_status om_comm_barrier(om_comm *c, om_session *s);
/* See om_comm_ops.abort; NULL is fine. */
OM_API void om_comm_abort(om_comm *c, const char *why);
/* See om_comm_ops.close; NULL is fine. */
OM_API void om_comm_close(om_comm *c);

/* Do all ranks have the same `bytes` bytes?  OM_USAGE, on every rank, with a sentence that names the first rank that differs
 * from rank 0, and `what` it is. */
OM_API om_status om_comm_agree(om_comm *c, om_session *s, const char *what, const void *data, size_t bytes);

/* ---- Transfers that go on while the caller computes. ---- */

/* A communicator that makes the calls of `inner` by a thread of its own, in the order in which they come, and that starts collectives
 * without waiting for them.  It owns `inner`, unless this fails.  OM_UNSUPPORTED if `inner` is for one thread alone; OM_MEMORY. */
OM_API om_status om_comm_queue_new(om_session *s, om_comm *inner, om_comm **out);

/* As om_comm_all_reduce(), om_comm_reduce_scatter() and om_comm_all_gather(), but a communicator of om_comm_queue_new() returns at once:
 * the memory, and the ranks of the group, belong to the transfer until om_comm_wait() returns.  Every other communicator returns
 * when it is done. */
OM_API om_status om_comm_start_all_reduce(om_comm *c, om_session *s, om_comm_group g, om_dtype type, void *data, uint64_t n,
	bool ordered);
/* See om_comm_start_all_reduce(). */
OM_API om_status om_comm_start_reduce_scatter(om_comm *c, om_session *s, om_comm_group g, om_dtype type, const void *in, void *out,
	uint64_t n, bool ordered);
/* See om_comm_start_all_reduce(). */
OM_API om_status om_comm_start_all_gather(om_comm *c, om_session *s, om_comm_group g, const void *in, void *out, uint64_t bytes);
/* Wait for the end of the transfer that was started with the output `data`, if there is one.  Its failure, or that of one before it. */
OM_API om_status om_comm_wait(om_comm *c, om_session *s, const void *data);
/* End the transfers that were started and that nobody will wait for, as a run has failed: afterwards none of them uses its memory, and the
 * communicator is of no use if there were any.  NULL is fine. */
OM_API void om_comm_cancel(om_comm *c);

/* How long a communicator was at work. */
typedef struct om_comm_times {
	double transfer;         /* seconds that all its calls took */
	double waiting;          /* seconds that its caller waited for them */
} om_comm_times;
/* The times of a communicator of om_comm_queue_new(); 0 of others. */
OM_API om_comm_times om_comm_get_times(om_comm *c);

/* Memory that the ranks of one machine share. */
typedef struct om_comm_local om_comm_local;

/* Memory for `size` ranks, threads of this process or processes that it forks afterwards.  `limit`: seconds after which a
 * rank that waits for another one fails; 0: none. */
OM_API om_status om_comm_local_new(om_session *s, uint32_t size, double limit, om_comm_local **out);
/* Join as `rank`: once for each, by the thread or process that is this rank.  Does not wait for the others. */
OM_API om_status om_comm_local_join(om_comm_local *l, om_session *s, uint32_t rank, om_comm **out);
/* Free it in this process, after the communicators of it are closed; NULL is fine. */
OM_API void om_comm_local_free(om_comm_local *l);

/* Start MPI by the module onnxmem-mpi.so, in a process that mpirun started.  `limit` as in om_comm_local_new().
 * OM_UNSUPPORTED, with a sentence that says why not, if there is no such module or MPI does not start.  Once in a process; closing it
 * ends MPI. */
OM_API om_status om_comm_mpi_open(om_session *s, double limit, om_comm **out);
/* Has a launcher of MPI started this process, with others?  By the environment variables that launchers set. */
OM_API bool om_comm_mpi_is_launched(void);

#ifdef __cplusplus
}
#endif

#endif
