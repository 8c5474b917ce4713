/* SPDX-License-Identifier: Apache-2.0 */
/* Plan documents for models/control.onnx, read and verified. */
#include <config.h>

#include "memory_file.h"
#include "onnxmem/onnx.h"
#include "onnxmem/plan.h"
#include "reader.h"

static om_model *
load_model(void)
{
	om_session *s = om_session_new();
	om_model *m;

	if (om_model_load(s, OM_SRCDIR "/models/control.onnx", &m) != OM_OK) {
		fprintf(stderr, "%s\n", om_message(s));
		abort();
	}
	om_session_free(s);
	return m;
}

bool
reader_takes(const uint8_t *data, size_t size)
{
	static om_model *m;
	om_session *s = om_session_new();
	bool good = false;
	om_prog *p;

	if (!m)
		m = load_model();
	if (reader_says(s, om_model_import(s, m, &p))) {
		good = reader_says(s, om_model_read_plan(s, m, p, memory_file(data, size)))
		    && reader_says(s, om_plan_verify(s, p, p->plan));
		om_prog_free(p);
	}
	om_session_free(s);
	return good;
}
