/* SPDX-License-Identifier: Apache-2.0 */
/* Manual pages, in the man macro package. */
#include <config.h>

#include <string.h>

#include "cli/help.h"

/* Text between macros: a line must not begin with a dot or a quote, every - is escaped so that
 * it is no hyphen at which lines break, and runs of white space are collapsed. */
static void
put(FILE *to, const char *text)
{
	bool start = true;

	for (; *text; text++) {
		if (*text == ' ' || *text == '\n') {
			text += strspn(text, " \n") - 1;
			putc(' ', to);
			continue;
		}
		if (start && (*text == '.' || *text == '\''))
			fputs("\\&", to);
		start = false;
		if (*text == '\\')
			fputs("\\e", to);
		else if (*text == '-')
			fputs("\\-", to);
		else if (*text == '~')
			fputs("\\(ti", to);
		else if (*text == '`')
			fputs("\\(oq", to);
		else
			putc(*text, to);
	}
}

static void
put_line(FILE *to, const char *text)
{
	put(to, text);
	putc('\n', to);
}

static void
put_paragraphs(FILE *to, const char *text)
{
	for (bool first = true; *text; first = false) {
		const char *end = strstr(text, "\n\n");
		char part[4096];
		snprintf(part, sizeof part, "%.*s", end ? (int)(end - text) : (int)strlen(text), text);
		if (!first)
			fputs(".PP\n", to);
		put_line(to, part);
		text = end ? end + 2 : "";
	}
}

static void
put_option(FILE *to, const om_opt *o)
{
	const char letter = om_letter_of(o->name);

	fputs(".TP\n", to);
	if (letter)
		fprintf(to, "\\fB\\-%c\\fR, ", letter);
	fputs("\\fB\\-\\-", to);
	put(to, o->name);
	fputs("\\fR", to);
	if (o->arg) {
		fputs(" \\fI", to);
		put(to, o->arg);
		fputs("\\fR", to);
	}
	putc('\n', to);
	put_line(to, o->brief);
}

static void
put_options(FILE *to, const om_opt *o)
{
	for (; o->name; o++)
		if (o->brief)
			put_option(to, o);
}

static void
put_capitals(FILE *to, const char *text)
{
	for (; *text; text++)
		putc(*text >= 'a' && *text <= 'z' ? *text - 'a' + 'A' : *text, to);
	putc('\n', to);
}

static void
command_page(om_cli *c, const om_cmd *cmd, FILE *to)
{
	const om_opt *o;

	fprintf(to, ".TH ONNXMEM\\-%s 1 \"\" \"%s\"\n.SH NAME\nonnxmem\\-%s \\- ", cmd->name, PACKAGE_STRING, cmd->name);
	put_line(to, cmd->brief);
	fprintf(to, ".SH SYNOPSIS\n\\fBonnxmem %s\\fR ", cmd->name);
	put_line(to, cmd->usage);
	if (cmd->text) {
		fputs(".SH DESCRIPTION\n", to);
		put_paragraphs(to, cmd->text);
	}
	for (size_t k = 0; k < OM_CMD_GROUPS && cmd->group[k]; k++) {
		fputs(".SH ", to);
		put_capitals(to, cmd->group[k]->title);
		for (size_t i = 0; (o = om_cli_group_option(c, cmd->group[k], i)); i++)
			if (o->brief)
				put_option(to, o);
	}
	fputs(".SH GLOBAL OPTIONS\n", to);
	put_options(to, om_global_options);
	fputs(".SH SEE ALSO\n.BR onnxmem (1)\n", to);
}

static void
main_page(FILE *to)
{
	const om_cmd *cmd;
	const om_topic *topic;

	fprintf(to, ".TH ONNXMEM 1 \"\" \"%s\"\n.SH NAME\nonnxmem \\- memory plans for ONNX models\n.SH SYNOPSIS\n"
		"\\fBonnxmem\\fR \\fICOMMAND\\fR ... [\\fIoptions\\fR]\n.SH DESCRIPTION\n", PACKAGE_STRING);
	put_line(to, "Finds out how little memory an ONNX model needs, verifies the plan, writes it into the model, and runs the "
		"model in one arena. A file called - is standard input or output; long options take their value after = or a "
		"space; -- ends the options.");
	fputs(".SH COMMANDS\n", to);
	for (size_t k = 0; (cmd = om_cmd_at(k)); k++) {
		fprintf(to, ".TP\n\\fB%s\\fR ", cmd->name);
		put_line(to, cmd->usage);
		put(to, cmd->brief);
		fprintf(to, "; see\n.BR onnxmem\\-%s (1)\n", cmd->name);
	}
	fputs(".SH OPTIONS\n", to);
	put_options(to, om_global_options);
	for (size_t k = 0; (topic = om_topic_at(k)); k++) {
		fputs(".SH ", to);
		put_capitals(to, topic->name);
		put_paragraphs(to, topic->text);
	}
}

void
om_help_man_topic(const om_topic *topic, FILE *to)
{
	fprintf(to, ".TH ONNXMEM\\-%s 7 \"\" \"%s\"\n.SH NAME\nonnxmem\\-%s \\- ", topic->name, PACKAGE_STRING, topic->name);
	put_line(to, topic->brief);
	fputs(".SH DESCRIPTION\n", to);
	put_paragraphs(to, topic->text);
	fputs(".SH SEE ALSO\n.BR onnxmem (1)\n", to);
}

void
om_help_man(om_cli *c, const om_cmd *cmd, FILE *to)
{
	if (cmd)
		command_page(c, cmd, to);
	else
		main_page(to);
}
