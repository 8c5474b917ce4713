/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison of two reports: text, Markdown and JSON. */
#include <config.h>

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "report/diff.h"

enum { SHOWN = 12 };

static const struct { const char *key, *text; } sizes[OM_SIZES] = {
	[OM_SIZE_ARENA] = {"arena_bytes", "arena"}, [OM_SIZE_BOUND] = {"lower_bound_bytes", "lower bound"},
	[OM_SIZE_PEAK] = {"peak_bytes", "peak"}, [OM_SIZE_WEIGHTS] = {"weights_bytes", "weights"},
	[OM_SIZE_IO] = {"io_bytes", "inputs and outputs"}, [OM_SIZE_TOTAL] = {"total_bytes", "total"},
};

/* By how many bytes a size differs, with a sign. */
static const char *
change_text(uint64_t before, uint64_t after, char out[24])
{
	if (before == after)
		snprintf(out, 24, "0");
	else
		snprintf(out, 24, "%c%" PRIu64, after > before ? '+' : '-', after > before ? after - before : before - after);
	return out;
}

/* "+12.5 %"; "" where there was nothing, or nothing differs. */
static const char *
percent_text(uint64_t before, uint64_t after, char out[32])
{
	out[0] = '\0';
	if (before && before != after)
		snprintf(out, 32, "%+.2f %%", 100 * ((double)after - (double)before) / (double)before);
	return out;
}

/* The names of a line, and what became of it. */
static const char *
name_text(const om_change *c, om_arena *mem)
{
	if (!c->was || !c->now)
		return c->now ? c->now : c->was;
	return strcmp(c->was, c->now) == 0 ? c->now : om_printf(mem, "%s, now %s", c->was, c->now);
}

/* "Conv float32[1,8,8,8]" */
static const char *
kind_text(const om_change *c, om_arena *mem)
{
	return om_printf(mem, "%s%s%s", c->op, *c->op && *c->type ? " " : "", c->type);
}

/* "step 4, Conv c2" */
static const char *
peak_text(const om_side *side, om_arena *mem)
{
	if (!side->has_step)
		return "in some order";
	const char *at = om_printf(mem, "step %" PRIu64, side->peak_step);
	if (!*side->peak_op)
		return om_printf(mem, "%s, at the end of the graph", at);
	return om_printf(mem, "%s, %s%s%s", at, side->peak_op, *side->peak_name ? " " : "", side->peak_name);
}

/* Where both peaks are. */
static const char *
peaks_text(const om_diff *d, om_arena *mem)
{
	const char *was = peak_text(d->old, mem), *now = peak_text(d->now, mem);

	return strcmp(was, now) == 0 ? om_printf(mem, "%s, as before", now) : om_printf(mem, "%s; before: %s", now, was);
}

/* The first line: what grew, and by how much. */
static const char *
head_text(const om_diff *d, om_arena *mem)
{
	const uint64_t before = d->old->size[OM_SIZE_ARENA], after = d->now->size[OM_SIZE_ARENA];
	char bytes[32], percent[32];

	if (before == after)
		return om_printf(mem, "the arena keeps its %s", om_bytes_text(after, bytes));
	percent_text(before, after, percent);
	return om_printf(mem, "the arena %s by %s%s%s", after > before ? "grows" : "shrinks",
		om_bytes_text(after > before ? after - before : before - after, bytes), *percent ? ", " : "", percent);
}

/* How the arena grows besides its peak: by bytes that the packing leaves unused there. */
static const char *
unused_text(const om_diff *d, om_arena *mem)
{
	const uint64_t *x = d->old->size, *y = d->now->size;
	char change[24];

	if (x[OM_SIZE_ARENA] < x[OM_SIZE_PEAK] || y[OM_SIZE_ARENA] < y[OM_SIZE_PEAK])
		return "";
	const uint64_t before = x[OM_SIZE_ARENA] - x[OM_SIZE_PEAK], after = y[OM_SIZE_ARENA] - y[OM_SIZE_PEAK];
	if (before == 0 && after == 0)
		return " and of the arena, which is as large as its peak";
	return om_printf(mem, "; the arena has %" PRIu64 " bytes above its peak, and had %" PRIu64 ": %s", after, before,
		change_text(before, after, change));
}

static const char *
order_text(const om_diff *d, om_arena *mem)
{
	if (!d->has_tensors)
		return "not known: a report lists no tensors";
	if (d->moved == 0)
		return "the same, as far as the tensors of both go";
	return om_printf(mem, "different: %zu tensor%s computed earlier or later than the others", d->moved,
		d->moved == 1 ? " is" : "s are");
}

static const struct { const char *key, *text; size_t at; } lists[] = {
	{"appeared", "appeared", offsetof(om_diff, appeared)}, {"went", "went", offsetof(om_diff, went)},
	{"grew", "grew", offsetof(om_diff, grew)}, {"shrank", "shrank", offsetof(om_diff, shrank)},
	{"unshared", "no longer in the storage of others", offsetof(om_diff, unshared)},
	{"shared", "now in the storage of others", offsetof(om_diff, shared)},
	{"renamed", "renamed, going by their ops, types and bytes", offsetof(om_diff, renamed)},
};

enum { LISTS = sizeof lists / sizeof lists[0] };

static const om_changes *
list_at(const om_diff *d, size_t k)
{
	return (const om_changes *)((const char *)d + lists[k].at);
}

static bool
differs(const om_change *c)
{
	return c->before != c->after || !c->was || !c->now;
}

/* ---- Text. ---- */

static void
text_row(const om_diff *d, om_arena *mem, FILE *to, const om_change *c)
{
	enum { BEFORE = 51, LEAST = 16 };
	const char *name = name_text(c, mem);
	char change[24];

	name = d->width > BEFORE + LEAST ? om_text_shorter(mem, name, d->width - BEFORE) : name;
	if (c->was && c->now)
		fprintf(to, "  %16s %14" PRIu64 " %14" PRIu64 "  %s\n", change_text(c->before, c->after, change), c->before,
			c->after, name);
	else
		fprintf(to, "  %16s %14s %14s  %s\n", change_text(c->before, c->after, change),
			c->was ? om_printf(mem, "%" PRIu64, c->before) : "-", c->now ? om_printf(mem, "%" PRIu64, c->after) : "-", name);
}

/* The lines of a list that differ; the others add nothing. */
static void
text_rows(const om_diff *d, om_arena *mem, FILE *to, const om_changes *c)
{
	size_t same = 0, shown = 0;
	uint64_t before = 0, after = 0;
	char change[24];

	for (size_t k = 0; k < c->n; k++)
		if (!differs(&c->row[k])) {
			same++;
		} else if (shown < SHOWN) {
			text_row(d, mem, to, &c->row[k]);
			shown++;
		} else {
			before += c->row[k].before;
			after += c->row[k].after;
		}
	if (c->n > same + shown)
		fprintf(to, "  %16s %14" PRIu64 " %14" PRIu64 "  %zu more, which --json lists\n",
			change_text(before, after, change), before, after, c->n - same - shown);
	if (same)
		fprintf(to, "  %16s %14s %14s  %zu with the same bytes\n", "0", "", "", same);
}

static void
text_peak(const om_diff *d, om_arena *mem, FILE *to)
{
	const uint64_t *x = d->old->size, *y = d->now->size;
	char change[24];

	fprintf(to, "\nlive at the peak, %s:\n", peaks_text(d, mem));
	text_rows(d, mem, to, &d->peak);
	fprintf(to, "  %16s %14" PRIu64 " %14" PRIu64 "  the sum, that of the peak%s\n",
		change_text(x[OM_SIZE_PEAK], y[OM_SIZE_PEAK], change), x[OM_SIZE_PEAK], y[OM_SIZE_PEAK], unused_text(d, mem));
}

static void
text_renamed(const om_diff *d, om_arena *mem, FILE *to)
{
	for (size_t k = 0; k < d->renamed.n && k < SHOWN; k++)
		fprintf(to, "  %16s %14" PRIu64 " %14s  %s\n", "0", d->renamed.row[k].after, "", name_text(&d->renamed.row[k], mem));
	if (d->renamed.n > SHOWN)
		fprintf(to, "  %48s%zu more, which --json lists\n", "", d->renamed.n - SHOWN);
}

static void
text_tensors(const om_diff *d, om_arena *mem, FILE *to)
{
	for (size_t k = 0; k < LISTS; k++) {
		const om_changes *c = list_at(d, k);
		if (c->n == 0)
			continue;
		fprintf(to, "\n%zu tensor%s %s:\n", c->n, c->n == 1 ? "" : "s", lists[k].text);
		if (c == &d->renamed)
			text_renamed(d, mem, to);
		else
			text_rows(d, mem, to, c);
	}
}

void
om_diff_text(const om_diff *d, om_arena *mem, FILE *to)
{
	const uint64_t *x = d->old->size, *y = d->now->size;
	char change[24], percent[32];

	fprintf(to, "%s, before: %s: %s\n", d->now->model, d->old->model, head_text(d, mem));
	if (strcmp(d->old->inputs, d->now->inputs) != 0)
		fprintf(to, "inputs: %s\nbefore: %s\n", d->now->inputs, d->old->inputs);
	fprintf(to, "\n  %-20s %14s %14s %16s\n", "", "before", "now", "change");
	for (size_t k = 0; k < OM_SIZES; k++)
		fprintf(to, "  %-20s %14" PRIu64 " %14" PRIu64 " %16s%s%s\n", sizes[k].text, x[k], y[k],
			change_text(x[k], y[k], change), *percent_text(x[k], y[k], percent) ? "  " : "", percent);
	text_peak(d, mem, to);
	text_tensors(d, mem, to);
	fprintf(to, "\norder of the ops: %s\n", order_text(d, mem));
}

/* ---- Markdown. ---- */

/* A name in a cell of a table.  GitHub looks for mentions of people and issues in what is left when escapes are gone, but not in
 * code. */
static const char *
cell(om_arena *mem, const char *text)
{
	const bool is_mention = strpbrk(text, "@#") != NULL;
	char *out = om_allocn(mem, 2, strlen(text) + 1), *at = out;

	for (; *text; text++) {
		if (strchr("|\\`*_<>[]@#$~&", *text))
			*at++ = '\\';
		*at++ = *text;
	}
	*at = '\0';
	return is_mention ? om_printf(mem, "<code>%s</code>", out) : out;
}

static void
markdown_rows(om_arena *mem, FILE *to, const om_changes *c)
{
	size_t shown = 0, more = 0;
	char change[24];

	fputs("| change | before | now | tensor | op |\n|--:|--:|--:|---|---|\n", to);
	for (size_t k = 0; k < c->n; k++) {
		const om_change *x = &c->row[k];
		if (shown == SHOWN) {
			more++;
			continue;
		}
		fprintf(to, "| %s | %s | %s | %s | %s |\n", change_text(x->before, x->after, change),
			x->was ? om_printf(mem, "%" PRIu64, x->before) : "", x->now ? om_printf(mem, "%" PRIu64, x->after) : "",
			cell(mem, name_text(x, mem)), cell(mem, kind_text(x, mem)));
		shown++;
	}
	if (more)
		fprintf(to, "\nand %zu more\n", more);
}

void
om_diff_markdown(const om_diff *d, om_arena *mem, FILE *to)
{
	const uint64_t *x = d->old->size, *y = d->now->size;
	char change[24], percent[32];

	fprintf(to, "**%s**, before: %s: %s\n\n", cell(mem, d->now->model), cell(mem, d->old->model), head_text(d, mem));
	if (strcmp(d->old->inputs, d->now->inputs) != 0)
		fprintf(to, "Inputs: %s; before: %s\n\n", cell(mem, d->now->inputs), cell(mem, d->old->inputs));
	fputs("| | before | now | change | |\n|---|--:|--:|--:|--:|\n", to);
	for (size_t k = 0; k < OM_SIZES; k++)
		fprintf(to, "| %s | %" PRIu64 " | %" PRIu64 " | %s | %s |\n", sizes[k].text, x[k], y[k],
			change_text(x[k], y[k], change), percent_text(x[k], y[k], percent));
	fprintf(to, "\nLive at the peak, %s:\n\n", cell(mem, peaks_text(d, mem)));
	markdown_rows(mem, to, &d->peak);
	for (size_t k = 0; k < LISTS; k++) {
		const om_changes *c = list_at(d, k);
		if (c->n == 0)
			continue;
		fprintf(to, "\n%zu tensor%s %s:\n\n", c->n, c->n == 1 ? "" : "s", lists[k].text);
		markdown_rows(mem, to, c);
	}
	fprintf(to, "\nOrder of the ops: %s.\n", order_text(d, mem));
}

/* ---- JSON. ---- */

static json_t *
rows(const om_changes *c)
{
	json_t *all = json_array();

	for (size_t k = 0; k < c->n; k++) {
		const om_change *x = &c->row[k];
		json_t *one = json_object();
		json_object_set_new(one, "name", json_string(x->now ? x->now : x->was));
		if (x->was && x->now && strcmp(x->was, x->now) != 0)
			json_object_set_new(one, "old_name", json_string(x->was));
		json_object_set_new(one, "op", json_string(x->op));
		json_object_set_new(one, "type", json_string(x->type));
		json_object_set_new(one, "old_bytes", x->was ? om_json_number(x->before) : json_null());
		json_object_set_new(one, "new_bytes", x->now ? om_json_number(x->after) : json_null());
		json_object_set_new(one, "change_bytes", om_json_number(x->after - x->before));
		json_array_append_new(all, one);
	}
	return all;
}

static json_t *
side_object(const om_side *side)
{
	json_t *o = json_object();

	json_object_set_new(o, "model", json_string(side->model));
	json_object_set_new(o, "inputs", json_string(side->inputs));
	for (size_t k = 0; k < OM_SIZES; k++)
		json_object_set_new(o, sizes[k].key, om_json_number(side->size[k]));
	json_object_set_new(o, "peak_step", side->has_step ? om_json_number(side->peak_step) : json_null());
	json_object_set_new(o, "peak_op", json_string(side->peak_op));
	json_object_set_new(o, "peak_name", json_string(side->peak_name));
	return o;
}

om_status
om_diff_json(const om_diff *d, om_session *s, FILE *to)
{
	json_t *o = json_object(), *change = json_object();

	json_object_set_new(o, "schema", json_string("onnxmem-diff/1"));
	json_object_set_new(o, "old", side_object(d->old));
	json_object_set_new(o, "new", side_object(d->now));
	for (size_t k = 0; k < OM_SIZES; k++)
		json_object_set_new(change, sizes[k].key, om_json_number(d->now->size[k] - d->old->size[k]));
	json_object_set_new(o, "change", change);
	json_object_set_new(o, "peak", rows(&d->peak));
	for (size_t k = 0; k < LISTS && d->has_tensors; k++)
		json_object_set_new(o, lists[k].key, rows(list_at(d, k)));
	json_object_set_new(o, "moved", d->has_tensors ? om_json_number(d->moved) : json_null());
	return om_json_write(s, o, JSON_INDENT(2), to);
}
