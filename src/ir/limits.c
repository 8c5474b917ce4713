/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <string.h>

#include "base/arena_internal.h"
#include "ir/limits.h"

om_limit
om_limit_copy(om_arena *mem, const om_limit *limit)
{
	return (om_limit){om_strdup(mem, limit->pass), limit->option ? om_strdup(mem, limit->option) : NULL,
		om_strdup(mem, limit->what)};
}

void
om_limit_add(om_prog *p, const om_limit *limit)
{
	OM_PUSH(p->mem, p->limits, p->nlimit, p->cap_limit, om_limit_copy(p->mem, limit));
}

void
om_limits_forget(om_prog *p, const char *pass)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < p->nlimit; k++)
		if (strcmp(p->limits[k].pass, pass) != 0)
			p->limits[n++] = p->limits[k];
	p->nlimit = n;
}
