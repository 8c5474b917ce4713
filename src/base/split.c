/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting text. */
#include <config.h>

#include "base/split.h"

const char **
om_split(om_arena *a, const char *text, const char *marks, size_t *n)
{
	const char **list = NULL;
	size_t cap = 0;

	*n = 0;
	while (*(text += strspn(text, marks))) {
		const size_t len = strcspn(text, marks);
		OM_PUSH(a, list, *n, cap, om_strndup(a, text, len));
		text += len;
	}
	return list;
}
