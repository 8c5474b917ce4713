/* SPDX-License-Identifier: Apache-2.0 */
/* Offline plans of TFLite Micro: in models, whose packing is checked, and as C arrays, for a small graph. */
#include <config.h>

#include <string.h>

#include "cli/pack_check.h"
#include "cli/tflite_table.h"
#include "onnxmem/ir.h"
#include "report/tflm_read.h"
#include "reader.h"

static om_status
take_model(om_session *s, om_arena *mem, const uint8_t *data, size_t size)
{
	const om_packfile_how how = {.align = 1};
	om_table table;
	om_packfile f;
	uint32_t nfree;

	OM_TRY(om_tflite_table(s, "input", data, size, mem, &table));
	OM_TRY(om_packfile_read(s, &table, NULL, &how, mem, &f));
	if (om_packfile_take(s, &f, mem, &nfree) == OM_OK)
		reader_says(s, om_pack_check_problem(s, &f.problem));
	return OM_OK;
}

/* A graph with three tensors. */
static om_prog *
small_graph(om_session *s)
{
	static char text[] = "program \"small\" ir 8 opset 17\n^small(%x: float32[4]) {\n\t%a = Neg(%x)\n\t%y = Exp(%a)\n\tret %y\n}\n";
	FILE *in = fmemopen(text, strlen(text), "r");
	om_prog *p = NULL;

	if (!in || om_parse(s, in, "small", &p) != OM_OK)
		abort();
	fclose(in);
	return p;
}

static om_status
take_array(om_session *s, om_arena *mem, const uint8_t *data, size_t size)
{
	om_prog *p = small_graph(s);
	om_tflm_plan plan;
	om_status st = om_tflm_parse(s, "input", (const char *)data, size, mem, &plan);

	if (st == OM_OK)
		reader_says(s, om_tflm_places(s, &plan, om_foreign_new(p, "input", mem)));
	om_prog_free(p);
	return st;
}

bool
reader_takes(const uint8_t *data, size_t size)
{
	om_session *s = om_session_new();
	om_arena *mem = om_arena_new();

	const om_status st = om_tflite_is(data, size) ? take_model(s, mem, data, size) : take_array(s, mem, data, size);
	const bool good = reader_says(s, st);
	om_arena_free(mem);
	om_session_free(s);
	return good;
}
