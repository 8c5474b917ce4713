/* SPDX-License-Identifier: Apache-2.0 */
/* The number of threads of an executor. */
#include <config.h>

#include <stdlib.h>

#include "base/parallel.h"
#include "onnxmem/executor.h"

enum { MOST = 1024 };

om_status
om_threads(om_session *s, uint32_t requested, uint32_t *out)
{
	const char *text = getenv("ONNXMEM_THREADS");
	char *end;

	*out = requested;
	if (requested > MOST)
		return om_fail(s, OM_USAGE, "%u threads are requested, more than %d", requested, MOST);
	if (requested)
		return OM_OK;
	if (!text || !*text) {
		const uint32_t cores = om_core_count();
		*out = cores < MOST ? cores : MOST;
		return OM_OK;
	}
	const long n = strtol(text, &end, 10);
	if (*end || *text == '+' || n < 1 || n > MOST)
		return om_fail(s, OM_USAGE, "ONNXMEM_THREADS is %s, not a number of threads from 1 to %d", text, MOST);
	*out = (uint32_t)n;
	return OM_OK;
}
