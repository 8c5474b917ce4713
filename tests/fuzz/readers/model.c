/* SPDX-License-Identifier: Apache-2.0 */
/* Models: loaded, imported, planned, verified, written; the plan that they carry, and the one that was
 * made, read back.  External data may be in models/. */
#include <config.h>

#include "reader.h"
#include "tests/fuzz/take.h"

bool
reader_takes(const uint8_t *data, size_t size)
{
	static om_session *s;
	static om_host *h;

	if (!s) {
		s = om_session_new();
		h = om_host_new(s, "");
	}
	return take_model(h, s, data, size, OM_SRCDIR "/models") >= IMPORTED;
}
