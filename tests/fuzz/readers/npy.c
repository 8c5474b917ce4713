/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's files: every input is read as .npy and as .npz. */
#include <config.h>

#include "cli/npy.h"
#include "reader.h"

bool
reader_takes(const uint8_t *data, size_t size)
{
	om_session *s = om_session_new();
	om_arena *mem = om_arena_new();
	om_npz_entry *entry;
	om_tensor t;
	size_t n;

	const bool is_npy = reader_says(s, om_npy_read(s, data, size, "input", mem, &t));
	const bool is_npz = reader_says(s, om_npz_read(s, data, size, "input", mem, &entry, &n));
	om_arena_free(mem);
	om_session_free(s);
	return is_npy || is_npz;
}
