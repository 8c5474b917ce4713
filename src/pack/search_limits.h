/* How hard to try. */
#ifndef OM_SEARCH_LIMITS_H
#define OM_SEARCH_LIMITS_H

#include "base/clock.h"
#include "onnxmem/pack.h"

typedef struct om_effort {
	uint64_t nodes;          /* of complete search, for each part of a problem */
	uint64_t work;           /* neighbours looked at by greedy runs, about; 0: what pays */
	uint64_t enough;         /* a height that need not be beaten; 0: as low as can be */
	double until_ms;         /* of om_now_ms(); 0: for ever, and no clock is read */
	om_session *session;     /* hears of better packings; NULL: nobody does */
} om_effort;

/* Ask this between tries, not per node. */
static inline bool
om_is_late(const om_effort *e)
{
	return e->until_ms > 0 && om_now_ms() >= e->until_ms;
}

/* Refuse with OM_INVALID what makes no sense in any of them, or in their sum. */
om_status om_pack_refuse(om_session *s, om_arena *mem, const om_buffer *buf, uint32_t n);

/* om_pack(), with less or more effort. */
om_status om_pack_pool(om_session *s, om_buffer *buf, uint32_t n, const om_effort *effort,
	om_pack_result *result);

#endif
