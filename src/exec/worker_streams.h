/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of plans with streams of workers. */
#ifndef OM_EXEC_WORKER_STREAMS_H
#define OM_EXEC_WORKER_STREAMS_H

#include "exec/exec_internal.h"

/* A stream after the first, whose ops run in another thread: what its kernels use instead of what the executor has. */
struct lane {
	om_session *session;
	om_arena *call;           /* temporary memory of the running kernel */
	struct om_budget budget;  /* its part of that of the executor */
	struct room workspace;    /* scratch that is not planned */
	uint64_t copied;          /* bytes, in this run */
};

/* What a stream runs next. */
struct turn {
	struct step *step;        /* NULL: nothing, as for a view */
	struct turn_wait {
		uint32_t stream, done;    /* until so many ops of that stream are done */
	} *wait;
	uint32_t nwait;
};

struct stream {
	struct lane *lane;        /* NULL: that of the executor itself */
	struct turn *turn;
	uint32_t n;
	om_status st;             /* of this run */
};

struct worker_streams {
	struct om_crew *crew;
	struct stream *stream;
	uint32_t n;
	uint64_t drawn;           /* for tests: ops run one after the other, in an order that the streams permit, drawn with this seed; 0: no */
};

/* Before steps are prepared: lanes for the streams of the plan, if it has some and the run may use them. */
om_status om_exec_streams_new(om_exec *e);
/* After that: the turns of each stream, and the threads.  Without, ops run in the order of the plan. */
om_status om_exec_streams_prepare(om_exec *e);
void om_exec_streams_free(om_exec *e);
/* Run the graph. */
om_status om_exec_streams_run(om_exec *e);

#endif
