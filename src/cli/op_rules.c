/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for operators that have no definition: `--op` and `--op-rules`. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "onnxmem/opdef.h"

/* ---- A file of rules. ---- */

/* Without a comment, and white space at the ends. */
static char *
plain_line(char *line)
{
	line[strcspn(line, "#\n")] = '\0';
	line += strspn(line, " \t\r");
	size_t n = strlen(line);
	while (n && strchr(" \t\r", line[n - 1]))
		line[--n] = '\0';
	return line;
}

/* Rules for operators that the model does not have are for other models. */
static om_status
use_lines(om_cli *c, const char *path, FILE *in)
{
	char *line = NULL;
	size_t cap = 0, number = 0;
	om_status st = OM_OK;
	bool used;

	while (st == OM_OK && getline(&line, &cap, in) >= 0) {
		const char *rule = plain_line(line);
		number++;
		if (!*rule)
			continue;
		st = om_prog_op_rule(c->session, c->loaded, rule, &used);
		if (st != OM_OK)
			om_note(c->session, st, "reading %s, line %zu", path, number);
	}
	if (st == OM_OK && ferror(in))
		st = om_fail(c->session, OM_IO, "%s: %s", path, strerror(errno));
	free(line);
	return st;
}

static om_status
use_file(om_cli *c, const char *path)
{
	FILE *in = fopen(path, "r");

	if (!in)
		return om_fail(c->session, OM_IO, "%s: %s", path, strerror(errno));
	const om_status st = use_lines(c, path, in);
	fclose(in);
	return st;
}

/* ---- All. ---- */

om_status
om_cli_op_rules(om_cli *c)
{
	const char *text;
	bool used;

	for (size_t at = 0; (text = om_cli_next(c, "op", &at));) {
		OM_TRY(om_prog_op_rule(c->session, c->loaded, text, &used));
		if (!used)
			return om_fail(c->session, OM_USAGE, "--op %s: the model has no such operator", text);
	}
	for (size_t at = 0; (text = om_cli_next(c, "op-rules", &at));)
		OM_TRY(use_file(c, text));
	return OM_OK;
}
