/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in textual form. */
#include <config.h>

#include "reader.h"
#include "tests/fuzz/take.h"

bool
reader_takes(const uint8_t *data, size_t size)
{
	static FILE *sink;
	om_session *s = om_session_new();

	if (!sink)
		sink = fopen("/dev/null", "w");
	const bool good = size && take_text(s, data, size, sink);
	om_session_free(s);
	return good;
}
