/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as ASCII art for a terminal: a column is one or several steps, a row a
 * range of the arena, a letter a value.  Several arenas are stacked, the first at
 * the bottom. */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "report/report.h"

enum { COLUMNS = 72, ROWS = 16 };

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/* The lower limit of row `k` of `n`. */
static uint64_t
edge(uint64_t k, uint64_t n, uint64_t whole)
{
	return k * whole / n;
}

/* Is a step of the box in column `k` of `n`?  A column is a part of a step, or one or several steps. */
static bool
is_in_column(const om_box *x, uint64_t k, uint64_t n, om_interval all)
{
	const uint64_t steps = all.upper - all.lower, first = k * steps / n, end = ((k + 1) * steps + n - 1) / n;

	return all.lower + first <= x->last && x->first < all.lower + end;
}

/* The steps at which any box is live. */
static om_interval
live_range(const om_report *r)
{
	om_interval all = {r->nbox ? r->box[0].first : 0, 1};

	for (uint32_t k = 0; k < r->nbox; k++)
		all.upper = r->box[k].last >= all.upper ? r->box[k].last + 1 : all.upper;
	return all;
}

static void
draw_box(const om_report *r, const om_box *x, char letter, om_interval all, uint32_t columns,
	char grid[ROWS][COLUMNS + 1])
{
	for (uint32_t row = 0; row < ROWS; row++) {
		const uint64_t low = edge(row, ROWS, r->arena_bytes), high = edge(row + 1, ROWS, r->arena_bytes);
		const uint64_t middle = low + (high - low) / 2;
		const uint64_t from = r->base[x->arena] + x->offset;
		if (middle < from || middle >= from + x->bytes)
			continue;
		for (uint32_t k = 0; k < columns; k++)
			if (is_in_column(x, k, columns, all))
				grid[row][k] = letter;
	}
}

static void
legend(const om_report *r, FILE *to, om_arena *mem)
{
	char bytes[32];

	for (uint32_t k = 0; k < r->nbox && k < sizeof alphabet - 1; k++) {
		const om_box *x = &r->box[k];
		const om_plan *plan = r->plan;
		const char *arena = plan->narena > 1 ? om_printf(mem, "%s:", om_clean_text(mem,
			plan->arena[x->arena].name)) : "";
		fprintf(to, "  %c %10s at %s%-10" PRIu64 " steps %3" PRIu32 " to %-3" PRIu32 "  %s%s\n", alphabet[k],
			om_bytes_text(x->bytes, bytes), arena, x->offset, x->first, x->last, om_clean_text(mem, x->name),
			x->kind == OM_BOX_INPLACE ? " (in place)" : x->kind == OM_BOX_VIEW ? " (view)" : "");
	}
	if (r->nbox > sizeof alphabet - 1)
		fprintf(to, "  # %zu more\n", r->nbox - (sizeof alphabet - 1));
}

void
om_report_ascii(const om_report *r, FILE *to)
{
	char grid[ROWS][COLUMNS + 1], bytes[32];
	const om_interval all = live_range(r);
	const uint32_t steps = all.upper - all.lower;
	const uint32_t columns = steps <= COLUMNS ? COLUMNS / steps * steps : COLUMNS;
	om_arena *mem = om_arena_new();

	for (uint32_t row = 0; row < ROWS; row++) {
		memset(grid[row], '.', columns);
		grid[row][columns] = '\0';
	}
	for (uint32_t k = 0; k < r->nbox; k++)
		draw_box(r, &r->box[k], k < sizeof alphabet - 1 ? alphabet[k] : '#', all, columns, grid);
	for (uint32_t row = ROWS; row-- > 0;)
		fprintf(to, "%10s |%s\n", row % 4 == 3 ? om_bytes_text(edge(row + 1, ROWS, r->arena_bytes), bytes) : "",
			grid[row]);
	fprintf(to, "%10s +", "0 B");
	for (uint32_t k = 0; k < columns; k++)
		putc('-', to);
	fprintf(to, "\n%10s  steps %" PRIu32 " to %" PRIu32 " of %" PRIu32 "\n\n", "", all.lower, all.upper - 1, r->steps);
	legend(r, to, mem);
	om_arena_free(mem);
}
