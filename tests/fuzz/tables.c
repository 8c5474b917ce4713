/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged packing problems: tables with changed, lost and duplicated bytes must be refused with a
 * message or packed.
 *
 *	tests/fuzz/tables [TABLES [FIRST-SEED]]
 *
 * The default is 200 tables; run 20,000 after a change of the reader.
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "cli/pack_csv.h"

static const char whole[] =
	"# a problem\n"
	"id,lower,upper,size,alignment,offset,pool,gaps,access_bytes,group,note\n"
	"a,0,9,64,16,0,,3-5 6-8@0:10,1000,,\"x, y\"\n"
	"b,1,4,128,64,,,,,,\n"
	"\"c\"\"\",2,7,12,4,,,,500,g,\r\n"
	"d,4,9,6,2,,slow,,500,h,\n"
	"\n"
	"e,3,4,90,1,,slow,,,h,none\n"
	"f,3,20,8,4,,fast,4-9,,g,\n";

static const char pairs[] = "one,other\na,b\nb,\"c\"\"\"\nd,e\ne,f\nf,a\n";

static uint32_t
below(uint64_t *state, uint32_t n)
{
	return (uint32_t)om_rng_below(state, n);
}

static char *
damaged(const char *text, uint64_t *state, uint32_t faults, om_arena *mem, size_t *size)
{
	static const char likely[] = ",,,\"\"\n\r\t 0123456789999-@:#ag\xff";
	size_t n = strlen(text);
	char *out = om_allocn(mem, 1, 2 * n + 64);

	memcpy(out, text, n);
	for (uint32_t k = 0; k < faults && n > 2; k++) {
		const size_t at = below(state, (uint32_t)n), many = 1 + below(state, 6);
		switch (below(state, 4)) {
		case 0:
			out[at] = (char)below(state, 256);
			break;
		case 1:
			out[at] = likely[below(state, sizeof likely - 1)];
			break;
		case 2:
			if (at + many < n) {
				memmove(out + at, out + at + many, n - at - many);
				n -= many;
			}
			break;
		default:
			if (at + many < n && n + many < 2 * strlen(text)) {
				memmove(out + at + many, out + at, n - at);
				n += many;
			}
		}
	}
	out[n] = '\0';
	*size = n;
	return out;
}

static om_status
take(om_session *s, uint64_t seed, om_arena *mem)
{
	static const om_pool pools[] = {{.name = "fast", .limit = 100}, {.name = "slow", .limit = 4096, .align = 2}};
	uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15);
	const bool by_pairs = below(&state, 4) == 0;
	om_packfile_how how = {.align = 1, .forgets_offsets = below(&state, 3) == 0};
	om_table table, list;
	om_packfile f;
	size_t size;

	if (below(&state, 2)) {
		how.pool = pools;
		how.npool = 2;
	}
	char *text = damaged(whole, &state, below(&state, 6), mem, &size);
	OM_TRY(om_table_parse(s, "table", text, size, mem, &table));
	if (by_pairs) {
		text = damaged(pairs, &state, below(&state, 3), mem, &size);
		OM_TRY(om_table_parse(s, "pairs", text, size, mem, &list));
	}
	OM_TRY(om_packfile_read(s, &table, by_pairs ? &list : NULL, &how, mem, &f));
	f.problem.nodes = 1000;
	OM_TRY(om_pack_solve(s, &f.problem));
	return om_pack_check_problem(s, &f.problem);
}

int
main(int argc, char **argv)
{
	const uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 200;
	const uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	om_session *s = om_session_new();
	om_arena *mem = om_arena_new();
	uint64_t packed = 0, failed = 0;

	for (uint64_t seed = first; seed < first + n; seed++) {
		const om_status st = take(s, seed, mem);
		packed += st == OM_OK;
		if (st == OM_OK || (om_message(s)[0] && (st == OM_MALFORMED || st == OM_INVALID || st == OM_BUDGET)))
			;
		else if (failed++ < 20)
			printf("# table %" PRIu64 ": %s: %s\n", seed, om_status_text(st), om_message(s));
		om_arena_free(mem);
		mem = om_arena_new();
	}
	printf("# %" PRIu64 " of %" PRIu64 " were packed all the same\n", packed, n);
	printf("%sok 1 - damaged packing problems\n1..1\n", failed ? "not " : "");
	om_arena_free(mem);
	om_session_free(s);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
