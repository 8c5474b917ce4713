/* SPDX-License-Identifier: Apache-2.0 */
/* Packing problems in tables: offsets as constraints, with pools of the file and with those of the caller, and as a
 * solution.  After a form feed, pairs of buffers that interfere. */
#include <config.h>

#include <string.h>

#include "cli/pack_csv.h"
#include "reader.h"

static om_status
parse(om_session *s, om_arena *mem, const uint8_t *data, size_t size, om_table *table)
{
	char *text = om_allocn(mem, 1, size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	return om_table_parse(s, "input", text, size, mem, table);
}

static om_status
read_problem(om_session *s, om_arena *mem, const uint8_t *data, size_t size, bool has_pools, bool forgets)
{
	static const om_pool pools[] = {{.name = "fast", .limit = 100}, {.name = "slow", .limit = 4096, .align = 2}};
	const om_packfile_how how = {.align = 1, .forgets_offsets = forgets, .pool = has_pools ? pools : NULL,
		.npool = has_pools ? 2 : 0};
	const uint8_t *second = size ? memchr(data, '\f', size) : NULL;
	om_table table, pairs;
	om_packfile f;

	OM_TRY(parse(s, mem, data, second ? (size_t)(second - data) : size, &table));
	if (second)
		OM_TRY(parse(s, mem, second + 1, (size_t)(data + size - second - 1), &pairs));
	return om_packfile_read(s, &table, second ? &pairs : NULL, &how, mem, &f);
}

bool
reader_takes(const uint8_t *data, size_t size)
{
	om_session *s = om_session_new();
	om_arena *mem = om_arena_new();

	const bool given = reader_says(s, read_problem(s, mem, data, size, false, false));
	const bool pooled = reader_says(s, read_problem(s, mem, data, size, true, false));
	const bool forgotten = reader_says(s, read_problem(s, mem, data, size, true, true));
	om_arena_free(mem);
	om_session_free(s);
	return given || pooled || forgotten;
}
