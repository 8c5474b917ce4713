/* SPDX-License-Identifier: Apache-2.0 */
/* Planned files that keep the file that they were made from, which is restored. */
#include <config.h>

#include "memory_file.h"
#include "onnxmem/onnx.h"
#include "reader.h"

bool
reader_takes(const uint8_t *data, size_t size)
{
	om_session *s = om_session_new();
	bool good = false;
	om_model *m;

	if (reader_says(s, om_model_load(s, memory_file(data, size), &m))) {
		good = om_model_has_original(m) && reader_says(s, om_model_save_original(s, m, "/dev/null"));
		om_model_free(m);
	}
	om_session_free(s);
	return good;
}
