/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a search: nodes, work, time, target height. */
#ifndef OM_SEARCH_LIMITS_H
#define OM_SEARCH_LIMITS_H

#include "base/clock.h"
#include "onnxmem/pack.h"

typedef struct om_search_limits {
	uint64_t nodes;          /* of complete search, for each component */
	uint64_t work;           /* neighbors visited by greedy runs, about; 0: the default of each phase */
	uint64_t target;         /* a height that need not be beaten; 0: as low as possible */
	double deadline_ms;      /* a time of om_now_ms(); 0: none, and no clock is read */
	om_session *session;     /* receives progress, and may be stopped; NULL: no reports */
} om_search_limits;

/* Or stopped by the caller.  Reads the clock: call it between attempts, not per node. */
static inline bool
om_is_past_deadline(const om_search_limits *e)
{
	return (e->deadline_ms > 0 && om_now_ms() >= e->deadline_ms) || om_session_is_stopped(e->session);
}

/* Refuse with OM_INVALID a buffer that is malformed, or sums that overflow. */
om_status om_pack_validate(om_session *s, om_arena *mem, const om_buffer *buf, uint32_t n);

/* om_pack() with these limits. */
om_status om_pack_limited(om_session *s, om_buffer *buf, uint32_t n, const om_search_limits *limits,
	om_pack_result *result);

#endif
