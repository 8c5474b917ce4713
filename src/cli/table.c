/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "cli/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

struct parser {
	om_session *s;
	om_arena *mem;
	om_table *t;
	char *at, *end;          /* unparsed input */
	size_t line;
	const char **row;        /* fields of the line */
	size_t nrow, caprow;
	size_t nfield, capfield, nline, capline;
};

static om_status
fail(struct parser *p, const char *what)
{
	return om_fail(p->s, OM_MALFORMED, "%s:%zu: %s", p->t->path, p->line, what);
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Up to the closing quote; "" represents a quote. */
static om_status
quoted(struct parser *p, char **field)
{
	char *to = ++p->at;

	*field = to;
	for (; p->at < p->end; p->at++) {
		if (*p->at == '"' && p->at[1] != '"')
			break;
		if (*p->at == '"')
			p->at++;
		if (*p->at == '\n')
			return fail(p, "a quote is not closed");
		*to++ = *p->at;
	}
	if (p->at >= p->end)
		return fail(p, "a quote is not closed");
	for (p->at++; p->at < p->end && is_blank(*p->at); p->at++)
		continue;
	if (p->at < p->end && *p->at != ',' && *p->at != '\n')
		return fail(p, "text follows the closing quote of a field");
	*to = '\0';
	return OM_OK;
}

static void
plain(struct parser *p, char **field)
{
	char *to;

	*field = p->at;
	while (p->at < p->end && *p->at != ',' && *p->at != '\n')
		p->at++;
	for (to = p->at; to > *field && is_blank(to[-1]); to--)
		continue;
	if (to < p->at)
		*to = '\0';
}

/* The fields of the next line.  Each is terminated in place, over its separator. */
static om_status
read_line(struct parser *p)
{
	char *field, *stop;

	p->nrow = 0;
	p->line++;
	for (;;) {
		while (p->at < p->end && is_blank(*p->at))
			p->at++;
		if (p->at < p->end && *p->at == '"')
			OM_TRY(quoted(p, &field));
		else
			plain(p, &field);
		stop = p->at;
		OM_PUSH(p->mem, p->row, p->nrow, p->caprow, field);
		const char c = stop < p->end ? *stop : '\n';
		*stop = '\0';
		p->at += stop < p->end;
		if (c == '\n')
			return OM_OK;
	}
}

static bool
is_nothing(const struct parser *p)
{
	return p->row[0][0] == '#' || (p->nrow == 1 && p->row[0][0] == '\0');
}

static om_status
take_head(struct parser *p)
{
	p->t->ncol = p->nrow;
	p->t->head = om_memdup(p->mem, p->row, p->nrow * sizeof *p->row);
	for (size_t k = 0; k < p->nrow; k++)
		for (size_t j = 0; j < k; j++)
			if (strcasecmp(p->row[j], p->row[k]) == 0)
				return fail(p, om_printf(p->mem, "there are two columns called %s", p->row[k]));
	return OM_OK;
}

static om_status
take_row(struct parser *p)
{
	om_table *t = p->t;

	if (p->nrow != t->ncol)
		return fail(p, om_printf(p->mem, "there are %zu fields for %zu columns", p->nrow, t->ncol));
	for (size_t k = 0; k < p->nrow; k++)
		OM_PUSH(p->mem, t->field, p->nfield, p->capfield, p->row[k]);
	OM_PUSH(p->mem, t->line, p->nline, p->capline, p->line);
	t->nrow++;
	return OM_OK;
}

/* Normalize line ends; binary data is refused. */
static om_status
clean(struct parser *p, char *data, size_t size)
{
	char *to = data;

	if (size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) {
		data += 3;
		size -= 3;
	}
	for (size_t k = 0; k < size; k++) {
		if (data[k] == '\0')
			return om_fail(p->s, OM_MALFORMED, "%s is no table: it is not text", p->t->path);
		if (data[k] == '\r' && data[k + 1] == '\n')
			p->t->newline = "\r\n";
		else
			*to++ = data[k];
	}
	*to = '\0';
	p->end = to;
	return OM_OK;
}

om_status
om_table_parse(om_session *s, const char *path, char *data, size_t size, om_arena *mem, om_table *out)
{
	struct parser p = {.s = s, .mem = mem, .t = out, .at = data};

	*out = (om_table){.path = path, .newline = "\n"};
	OM_TRY(clean(&p, data, size));
	while (p.at < p.end) {
		OM_TRY(read_line(&p));
		if (is_nothing(&p))
			continue;
		OM_TRY(out->ncol ? take_row(&p) : take_head(&p));
	}
	if (out->ncol == 0)
		return om_fail(s, OM_MALFORMED, "%s is empty: the first line must have the names of the columns", path);
	return OM_OK;
}

int
om_table_column(const om_table *t, const char *name)
{
	for (size_t k = 0; k < t->ncol; k++)
		if (strcasecmp(t->head[k], name) == 0)
			return (int)k;
	return OM_NO_COLUMN;
}

om_status
om_table_wrong(om_session *s, const om_table *t, size_t row, int col, const char *what)
{
	const char *field = om_table_field(t, row, col);

	return om_fail(s, OM_MALFORMED, "%s:%zu: column %s: requires %s, not %.60s", t->path, t->line[row],
		t->head[col], what, *field ? field : "nothing");
}

om_status
om_table_number(om_session *s, const om_table *t, size_t row, int col, uint64_t min, uint64_t max,
	uint64_t *out)
{
	const char *field = om_table_field(t, row, col);
	char what[80], *end;

	errno = 0;
	*out = strtoull(field, &end, 10);
	if (*field >= '0' && *field <= '9' && *end == '\0' && !errno && *out >= min && *out <= max)
		return OM_OK;
	snprintf(what, sizeof what, "a number from %" PRIu64 " to %" PRIu64, min, max);
	return om_table_wrong(s, t, row, col, what);
}
