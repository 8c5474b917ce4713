/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the JSON library; see json_memory.h. */
#include <config.h>

#include <stdatomic.h>
#include <stdlib.h>

#include <jansson.h>

#include "cli/json_memory.h"

/* The functions that jansson calls have no argument that could lead to it. */
static atomic_bool was_refused;

static void *
allocate(size_t n)
{
	void *p = malloc(n);

	if (!p)
		atomic_store(&was_refused, true);
	return p;
}

void
om_cli_watch_json(void)
{
	json_set_alloc_funcs(allocate, free);
}

om_status
om_cli_json_status(om_session *s, om_status st)
{
	return atomic_load(&was_refused) ? om_fail(s, OM_MEMORY, "there is no memory for JSON") : st;
}
