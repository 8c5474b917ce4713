/* SPDX-License-Identifier: Apache-2.0 */
/* Order of ops on several streams of a device: what the executor waits for, and a check that this is enough. */
#ifndef OM_VERIFY_STREAMS_H
#define OM_VERIFY_STREAMS_H

#include "onnxmem/plan.h"

enum { OM_MOST_STREAMS = 8 };

/* How one op is put into the order of a run.  The host starts the ops of a block one after the other. */
typedef struct om_stream_op {
	uint32_t stream;         /* where it runs: 0: on the host, which has run it before it starts the next one; else the
				    stream of the device, from 1, which runs it later */
	bool is_run;             /* false: a result depends on no output of it, or it is a view */
	bool is_barrier;         /* before it starts, all streams are done */
	const uint32_t *wait;    /* ids of earlier ops of other streams that are done before it runs.  The host waits
				    for all that their streams have been given */
	uint32_t nwait;
} om_stream_op;

typedef struct om_streams {
	om_stream_op *op;        /* by op id */
	uint32_t n;              /* streams of the device */
} om_streams;

/* Check that ops which use the same bytes, one of them to write, are in an order: that of their stream, or one by what
 * they wait for.  Copies are ops.  `plan` NULL: every value has memory of its own.  Ops of bodies are in one stream, and
 * those with bodies are barriers.  OM_BADPLAN names both ops and the bytes. */
om_status om_streams_verify(om_session *s, const om_prog *p, const om_plan *plan, const om_streams *streams);

#endif
