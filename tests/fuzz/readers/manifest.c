/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests of models, and the paths in them. */
#include <config.h>

#include <stdlib.h>

#include "hub/hub.h"
#include "reader.h"

static void
check_path(const om_hub_file *f)
{
	if (f->path && !om_path_is_safe(f->path))
		abort();
}

bool
reader_takes(const uint8_t *data, size_t size)
{
	om_session *s = om_session_new();
	om_arena *mem = om_arena_new();
	om_manifest m = {0};
	const om_hub_model *found;

	const bool good = reader_says(s, om_manifest_read(s, mem, (const char *)data, size, "input", &m));
	if (good) {
		for (size_t k = 0; k < m.nmodel; k++) {
			check_path(&m.model[k].model);
			check_path(&m.model[k].data);
		}
		reader_says(s, om_manifest_find(s, mem, &m, "digits", 0, &found));
		reader_says(s, om_manifest_find(s, mem, &m, "digits", 9, &found));
	}
	om_arena_free(mem);
	om_session_free(s);
	return good;
}
