/* SPDX-License-Identifier: Apache-2.0 */
/* help: the table of subcommands, and the help of each. */
#include <config.h>

#include <string.h>

#include "cli/commands.h"
#include "cli/help.h"
#include "report/report.h"

#define DECLARE(name) extern const om_cmd om_##name##_cmd;
OM_COMMANDS(DECLARE)
#undef DECLARE

static const om_cmd *const commands[] = {
#define COMMAND(name) &om_##name##_cmd,
	OM_COMMANDS(COMMAND)
#undef COMMAND
};

enum { NCOMMAND = sizeof commands / sizeof commands[0] };

const om_cmd *
om_cmd_at(size_t k)
{
	return k < NCOMMAND ? commands[k] : NULL;
}

const om_cmd *
om_cmd_find(const char *name)
{
	for (size_t k = 0; k < NCOMMAND; k++)
		if (strcmp(commands[k]->name, name) == 0)
			return commands[k];
	return NULL;
}

static unsigned
text_width(FILE *to)
{
	enum { WIDTH = 100, MOST = 120 };
	const unsigned width = om_cli_width(to);

	return width == 0 ? WIDTH : width < MOST ? width : MOST;
}

static void
print_option(const om_opt *o, FILE *to)
{
	enum { COLUMN = 28 };
	int n = fprintf(to, "  --%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");

	if (n >= COLUMN) {
		putc('\n', to);
		n = 0;
	}
	fprintf(to, "%*s", COLUMN - n, "");
	om_wrap(to, o->brief, COLUMN, COLUMN, text_width(to));
}

/* Each paragraph after an empty line. */
static void
print_paragraphs(om_arena *mem, const char *text, FILE *to)
{
	while (*text) {
		const char *end = strstr(text, "\n\n");
		putc('\n', to);
		om_wrap(to, om_strndup(mem, text, end ? (size_t)(end - text) : strlen(text)), 0, 0, text_width(to));
		text = end ? end + 2 : "";
	}
}

static void
print_command(om_cli *c, const om_cmd *cmd, FILE *to)
{
	const om_opt *o;

	fprintf(to, "onnxmem %s: %s\n\nusage: onnxmem %s %s\n", cmd->name, cmd->brief, cmd->name, cmd->usage);
	if (cmd->text)
		print_paragraphs(c->mem, cmd->text, to);
	for (size_t k = 0; k < OM_CMD_GROUPS && cmd->group[k]; k++) {
		fprintf(to, "\n%s:\n", cmd->group[k]->title);
		for (size_t i = 0; (o = om_cli_group_option(c, cmd->group[k], i)); i++)
			if (o->brief)
				print_option(o, to);
	}
	fputs("\nglobal options: -h help, -V version, -q no warnings, -v log progress\n", to);
}

static void
print_topic(om_arena *mem, const om_topic *topic, FILE *to)
{
	fprintf(to, "%s: %s\n", topic->name, topic->brief);
	print_paragraphs(mem, topic->text, to);
}

static void
print_topics(FILE *to)
{
	const om_topic *topic;

	fputs("\ntopics:\n", to);
	for (size_t k = 0; (topic = om_topic_at(k)); k++)
		fprintf(to, "  %-12s %s\n", topic->name, topic->brief);
}

void
om_cmd_help(om_cli *c, const om_cmd *cmd, FILE *to)
{
	if (cmd) {
		print_command(c, cmd, to);
		return;
	}
	fputs("usage: onnxmem COMMAND ... [options]\n\n"
		"Finds out how little memory an ONNX model needs, verifies the plan, writes it\n"
		"into the model, and runs the model in one arena.\n\ncommands:\n", to);
	for (size_t k = 0; k < NCOMMAND; k++)
		fprintf(to, "  %-9s %s\n", commands[k]->name, commands[k]->brief);
	print_topics(to);
	fputs("\n`onnxmem COMMAND --help` and `onnxmem help TOPIC` print more help.  -h help, -V version,\n"
		"-q no warnings, -v log progress.  A file called - is standard input or output.\n\n"
		"exit status: 0 ok; 1 failed check, mismatch or I/O; 2 usage error; 3 budget not met;\n"
		"4 stale or invalid plan; 5 unsupported model or operator; 6 download or checksum error\n", to);
}

/* The names alone, for the rules that make manual pages. */
static void
print_names(bool of_topics)
{
	const om_topic *topic;

	for (size_t k = 0; k < NCOMMAND && !of_topics; k++)
		puts(commands[k]->name);
	for (size_t k = 0; of_topics && (topic = om_topic_at(k)); k++)
		puts(topic->name);
}

/* A page is that of the topic where the option --topic asks for it. */
static om_status
write_man(om_cli *c, const char *name, const om_cmd *cmd, const om_topic *topic)
{
	const bool of_topic = om_cli_has(c, "topic");

	if (of_topic ? !topic : name && !cmd)
		return om_fail(c->session, OM_USAGE, "there is no %s called %s; see `onnxmem help`", of_topic ? "topic" : "command",
			name ? name : "");
	if (of_topic)
		om_help_man_topic(topic, stdout);
	else
		om_help_man(c, cmd, stdout);
	return OM_OK;
}

static om_status
run(om_cli *c)
{
	const char *name = c->narg ? c->arg[0] : NULL, *shell = om_cli_option(c, "completion");
	const om_cmd *cmd = name ? om_cmd_find(name) : NULL;
	const om_topic *topic = name ? om_topic_find(name) : NULL;

	if (om_cli_has(c, "commands") || om_cli_has(c, "topics")) {
		print_names(om_cli_has(c, "topics"));
		return OM_OK;
	}
	if (shell)
		return om_help_completion(c, shell, stdout);
	if (om_cli_has(c, "man"))
		return write_man(c, name, cmd, topic);
	if (name && !cmd && !topic)
		return om_fail(c->session, OM_USAGE, "there is no command or topic called %s; see `onnxmem help`", name);
	if (topic && (!cmd || om_cli_has(c, "topic")))
		print_topic(c->mem, topic, stdout);
	else
		om_cmd_help(c, cmd, stdout);
	if (cmd && topic && !om_cli_has(c, "topic")) {
		putchar('\n');
		print_topic(c->mem, topic, stdout);
	}
	return OM_OK;
}

static const om_opt opts[] = {
	{"topic", NULL, "show the topic if a command has the same name"},
	{"man", NULL, "write the manual page of the command, of onnxmem or, with --topic, of the topic"},
	{"commands", NULL, NULL},
	{"topics", NULL, NULL},
	{"completion", "SHELL", "write a script that makes bash, zsh or fish complete commands and options"},
	{0}
};

static const om_opt_group group = {"options", opts};

const om_cmd om_help_cmd = {
	.name = "help", .usage = "[COMMAND|TOPIC]", .brief = "show help about commands and topics",
	.max_args = 1, .group = {&group}, .run = run,
};
