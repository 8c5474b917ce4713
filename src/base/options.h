/* SPDX-License-Identifier: Apache-2.0 */
/* Option structs that callers allocate.  The first member is the size of the struct as the caller was
 * compiled with it, so that members can be added at the end: those that a caller does not know are zero. */
#ifndef OM_OPTIONS_H
#define OM_OPTIONS_H

#include <string.h>

#include "onnxmem/status.h"

/* Copy the options `from` to `to`, which has `most` bytes.  `least`: their size in the first version.
 * OM_USAGE if the size cannot be right; `what` names the struct, `how` what initializes it. */
static inline om_status
om_options_read(om_session *s, const char *what, const char *how, void *to, size_t most, size_t least, const void *from)
{
	size_t size;

	memcpy(&size, from, sizeof size);
	if (size < least || size > most)
		return om_fail(s, OM_USAGE, "%s has size %zu, and this library expects %zu: initialize it with %s", what, size,
			most, how);
	memset(to, 0, most);
	memcpy(to, from, size);
	return OM_OK;
}

#endif
