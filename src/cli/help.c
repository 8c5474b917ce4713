/* help: the table of subcommands, and what it says about them. */
#include <config.h>

#include <string.h>

#include "cli/cli.h"

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

static void
print_option(const om_opt *o, FILE *to)
{
	enum { COLUMN = 28 };
	int n = fprintf(to, "  --%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");

	if (n >= COLUMN) {
		putc('\n', to);
		n = 0;
	}
	fprintf(to, "%*s%s\n", COLUMN - n, "", o->brief);
}

static void
print_command(const om_cmd *cmd, FILE *to)
{
	fprintf(to, "onnxmem %s: %s\n\nusage: onnxmem %s %s\n", cmd->name, cmd->brief, cmd->name, cmd->usage);
	if (cmd->text)
		fprintf(to, "\n%s\n", cmd->text);
	for (size_t k = 0; k < OM_CMD_GROUPS && cmd->group[k]; k++) {
		fprintf(to, "\n%s:\n", cmd->group[k]->title);
		for (const om_opt *o = cmd->group[k]->opts; o->name; o++)
			if (o->brief)
				print_option(o, to);
	}
	fputs("\nalways: -h help, -V version, -q no warnings, -v say what is being done\n", to);
}

void
om_cmd_help(const om_cmd *cmd, FILE *to)
{
	if (cmd) {
		print_command(cmd, to);
		return;
	}
	fputs("usage: onnxmem COMMAND ... [options]\n\n"
		"Finds out how little memory an ONNX model needs, proves it, writes the plan\n"
		"into the model and runs it in one arena.\n\ncommands:\n", to);
	for (size_t k = 0; k < NCOMMAND; k++)
		fprintf(to, "  %-9s %s\n", commands[k]->name, commands[k]->brief);
	fputs("\n`onnxmem COMMAND --help` tells more.  -h help, -V version, -q no warnings,\n"
		"-v say what is being done.  A file called - is standard input or output.\n\n"
		"exit status: 0 ok; 1 failed check, mismatch or I/O; 2 wrong use; 3 budget not met;\n"
		"4 stale or invalid plan; 5 unsupported model or operator; 6 download or checksum\n", to);
}

static om_status
run(om_cli *c)
{
	const om_cmd *cmd = c->narg ? om_cmd_find(c->arg[0]) : NULL;

	if (c->narg && !cmd)
		return om_fail(c->session, OM_USAGE, "there is no command called %s; see `onnxmem help`",
			c->arg[0]);
	om_cmd_help(cmd, stdout);
	return OM_OK;
}

const om_cmd om_help_cmd = {
	.name = "help", .usage = "[COMMAND]", .brief = "show what the commands do",
	.max_args = 1, .run = run,
};
