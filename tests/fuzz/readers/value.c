/* SPDX-License-Identifier: Apache-2.0 */
/* Values of runs in .pb files: the first byte selects the type that is expected. */
#include <config.h>

#include "memory_file.h"
#include "onnxmem/onnx.h"
#include "reader.h"

static const om_type number = {.kind = OM_TENSOR, .elem = OM_FLOAT32};
static const om_type numbers = {.kind = OM_SEQUENCE, .of = &number};
static const om_type maybe = {.kind = OM_OPTIONAL, .of = &number};
static const om_type of_int = {.kind = OM_MAP, .elem = OM_INT64, .of = &number};
static const om_type of_text = {.kind = OM_MAP, .elem = OM_STRING, .of = &number};

static const om_type lists = {.kind = OM_SEQUENCE, .of = &numbers};
static const om_type maybe_numbers = {.kind = OM_OPTIONAL, .of = &numbers};
static const om_type maps = {.kind = OM_SEQUENCE, .of = &of_int};
static const om_type maybe_map = {.kind = OM_OPTIONAL, .of = &of_int};
static const om_type maybes = {.kind = OM_SEQUENCE, .of = &maybe};
static const om_type maybe_maybe = {.kind = OM_OPTIONAL, .of = &maybe};

static const om_type *const types[] = {
	&number, &numbers, &lists, &maybe, &maybe_numbers, &of_int, &of_text, &maps, &maybe_map, &maybes, &maybe_maybe,
};

bool
reader_takes(const uint8_t *data, size_t size)
{
	if (size == 0 || data[0] >= sizeof types / sizeof types[0])
		return false;
	const om_type *type = types[data[0]];
	om_session *s = om_session_new();
	om_arena *mem = om_arena_new();
	om_tensor t;

	const bool good = reader_says(s, om_value_load_pb(s, memory_file(data + 1, size - 1), mem, type, &t));
	if (good && !reader_says(s, om_value_save_pb(s, "/dev/null", "sent", type, &t))) {
		fprintf(stderr, "%s\n", om_message(s));
		abort();
	}
	om_arena_free(mem);
	om_session_free(s);
	return good;
}
