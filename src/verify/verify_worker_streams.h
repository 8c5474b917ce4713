/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of workers in a plan: are the data and the ops that run alone in an order? */
#ifndef OM_VERIFY_WORKER_STREAMS_H
#define OM_VERIFY_WORKER_STREAMS_H

#include "verify/verify_partial_order.h"

/* Check that each op of the graph whose outputs have a place is in a stream, and waits for earlier ones only: OM_BADPLAN
 * names the op. */
om_status om_worker_streams_check(om_session *s, const om_prog *p, const om_plan *plan);

/* Record what the streams have to order: each op after those that compute what it reads, and ops that run alone after and
 * before all others. */
void om_worker_streams_require(om_parallel_check *f, const om_prog *p, const om_worker_streams *w);

#endif
