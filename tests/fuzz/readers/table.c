/* Packing problems in tables: offsets as constraints, and as a solution. */
#include <config.h>

#include <string.h>

#include "cli/pack_csv.h"
#include "reader.h"

static om_status
read_problem(om_session *s, om_arena *mem, const uint8_t *data, size_t size, bool forgets)
{
	static const om_pool pools[] = {{.name = "fast", .limit = 100}, {.name = "slow", .limit = 4096, .align = 2}};
	const om_packfile_how how = {.align = 1, .forgets_offsets = forgets, .pool = forgets ? pools : NULL,
		.npool = forgets ? 2 : 0};
	char *text = om_allocn(mem, 1, size + 1);
	om_table table;
	om_packfile f;

	memcpy(text, data, size);
	text[size] = '\0';
	OM_TRY(om_table_parse(s, "input", text, size, mem, &table));
	return om_packfile_read(s, &table, NULL, &how, mem, &f);
}

bool
reader_takes(const uint8_t *data, size_t size)
{
	om_session *s = om_session_new();
	om_arena *mem = om_arena_new();

	const bool given = reader_says(s, read_problem(s, mem, data, size, false));
	const bool forgotten = reader_says(s, read_problem(s, mem, data, size, true));
	om_arena_free(mem);
	om_session_free(s);
	return given || forgotten;
}
