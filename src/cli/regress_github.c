/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of a suite for GitHub's workflows: commands on the output of the step, which make
 * annotations, and a table in Markdown for its summary. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "cli/suite.h"
#include "report/report.h"

/* A summary of more than 1 MiB is refused by the service. */
enum { MAX_SUMMARY = 1000 << 10 };

/* ---- Annotations. ---- */

/* A command ends with its line, and %XX stands for a character; in a property, : and , are separators, too. */
static void
put_command_text(om_cli *c, FILE *to, const char *text, bool is_property)
{
	for (const char *at = om_clean_text(c->mem, text); *at; at++)
		if (strchr("%\r\n", *at) || (is_property && strchr(":,", *at)))
			fprintf(to, "%%%02X", (unsigned char)*at);
		else
			putc(*at, to);
}

/* Paths are relative to the root of the repository, without "./". */
static const char *
plain_path(const char *path)
{
	while (strncmp(path, "./", 2) == 0)
		path += 2;
	return path;
}

static void
annotate(om_cli *c, FILE *to, const char *command, const char *file, const om_outcome *o)
{
	fprintf(to, "::%s file=", command);
	put_command_text(c, to, plain_path(file), true);
	fputs(",title=", to);
	put_command_text(c, to, o->name, true);
	fputs("::", to);
	put_command_text(c, to, o->end == OM_END_PASS ? o->note : o->why, false);
	if (*o->peak) {
		fputs("%0A", to);
		put_command_text(c, to, o->peak, false);
	}
	putc('\n', to);
}

void
om_github_annotate(om_cli *c, FILE *to, const om_results *r)
{
	static const char *const command[] = {[OM_END_PASS] = "notice", [OM_END_FAIL] = "error", [OM_END_SKIP] = "warning"};

	for (size_t k = 0; k < r->suite->ntrial; k++)
		if (r->o[k].end != OM_END_PASS || *r->o[k].note)
			annotate(c, to, command[r->o[k].end], om_suite_file(c, r->suite, k), &r->o[k]);
}

/* ---- The summary. ---- */

/* In a cell of a table, with what Markdown and HTML treat as special. */
static void
put_cell(om_cli *c, FILE *to, const char *text)
{
	for (const char *at = om_clean_text(c->mem, text); *at; at++)
		switch (*at) {
		case '&': fputs("&amp;", to); break;
		case '<': fputs("&lt;", to); break;
		case '>': fputs("&gt;", to); break;
		case '\r': case '\n': fputs("<br>", to); break;
		case '|': case '\\': case '`': case '*': case '_': case '[': case ']': case '~': case '$': case '@': case '#':
			fprintf(to, "&#%d;", *at); break;
		default: putc(*at, to);
		}
}

static void
put_bytes(FILE *to, bool is_known, uint64_t bytes)
{
	if (is_known)
		fprintf(to, " %" PRIu64 " |", bytes);
	else
		fputs(" |", to);
}

static void
put_change(FILE *to, const om_figures *a, const om_figures *b)
{
	if (!a->known || !b->known || a->arena == b->arena)
		fputs(a->known && b->known ? " 0 |" : " |", to);
	else if (b->arena > a->arena)
		fprintf(to, " +%" PRIu64 " |", b->arena - a->arena);
	else
		fprintf(to, " −%" PRIu64 " |", a->arena - b->arena);
}

static void
put_row(om_cli *c, FILE *to, const om_outcome *o)
{
	static const char *const end[] = {[OM_END_PASS] = "ok", [OM_END_FAIL] = "**failed**", [OM_END_SKIP] = "skipped"};
	const char *more = o->end == OM_END_PASS ? o->note : o->why;

	fputs("| ", to);
	put_cell(c, to, o->name);
	fputs(" |", to);
	put_bytes(to, o->now.known, o->now.arena);
	put_bytes(to, o->before.known, o->before.arena);
	put_change(to, &o->before, &o->now);
	put_bytes(to, o->now.known, o->now.total);
	fprintf(to, " %s%s", end[o->end], *more ? ": " : "");
	put_cell(c, to, more);
	if (*o->peak) {
		fputs("<br>", to);
		put_cell(c, to, o->peak);
	}
	fputs(" |\n", to);
}

/* Rows of the models that failed, or of the others, as far as they fit; the number of those left out. */
static size_t
put_rows(om_cli *c, FILE *to, const om_results *r, bool failed)
{
	size_t left = 0;

	for (size_t k = 0; k < r->suite->ntrial; k++) {
		if ((r->o[k].end == OM_END_FAIL) != failed)
			continue;
		if (ftell(to) < MAX_SUMMARY)
			put_row(c, to, &r->o[k]);
		else
			left++;
	}
	return left;
}

static void
put_summary(om_cli *c, FILE *to, const om_results *r)
{
	size_t failed = 0;

	for (size_t k = 0; k < r->suite->ntrial; k++)
		failed += r->o[k].end == OM_END_FAIL;
	fputs("### onnxmem regress: ", to);
	put_cell(c, to, r->suite->name);
	fprintf(to, "\n\n%zu of %zu models failed.\n\n| model | arena | baseline | change | total | result |\n"
		"|---|--:|--:|--:|--:|---|\n", failed, r->suite->ntrial);
	const size_t left = put_rows(c, to, r, true) + put_rows(c, to, r, false);
	fputs(left ? "" : "\n", to);
	if (left)
		fprintf(to, "\n%zu more models are not listed.\n\n", left);
}

static om_status
append(om_cli *c, const char *path, const char *text, size_t n)
{
	FILE *to = fopen(path, "a");
	bool is_written = to && fwrite(text, 1, n, to) == n;

	if (to)
		is_written = fclose(to) == 0 && is_written;
	return is_written ? OM_OK : om_fail(c->session, OM_IO, "%s: %s", path, strerror(errno));
}

om_status
om_github_summary(om_cli *c, const om_results *r)
{
	const char *path = getenv("GITHUB_STEP_SUMMARY");
	struct om_memory_stream memory;
	size_t n;

	if (!path || !*path) {
		om_warn(c->session, "GITHUB_STEP_SUMMARY names no file: there is no table of results");
		return OM_OK;
	}
	FILE *to = om_memory_stream_open(&memory);
	if (!to)
		return om_fail(c->session, OM_MEMORY, "there is no memory for the summary");
	put_summary(c, to, r);
	char *text = om_memory_stream_close(&memory, &n);
	const om_status st = text ? append(c, path, text, n)
		: om_fail(c->session, OM_MEMORY, "there is no memory for the summary");
	free(text);
	return st;
}
