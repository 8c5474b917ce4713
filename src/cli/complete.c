/* SPDX-License-Identifier: Apache-2.0 */
/* Completion scripts for bash, zsh and fish.  Commands, options and topic names are completed
 * from the tables; all other words are files. */
#include <config.h>

#include <string.h>

#include "cli/help.h"

/* Option `k` of a command, counted across all of its groups. */
static const om_opt *
option_at(om_cli *c, const om_cmd *cmd, size_t k)
{
	const om_opt *own;

	for (size_t g = 0; g < OM_CMD_GROUPS && cmd->group[g]; g++)
		for (size_t i = 0; (own = om_cli_group_option(c, cmd->group[g], i)); i++)
			if (own->brief && k-- == 0)
				return own;
	for (const om_opt *o = om_global_options; o->name; o++)
		if (k-- == 0)
			return o;
	return NULL;
}

static void
put_topics(FILE *to)
{
	const om_topic *topic;

	for (size_t k = 0; (topic = om_topic_at(k)); k++)
		fprintf(to, " %s", topic->name);
}

static void
put_commands(FILE *to)
{
	const om_cmd *cmd;

	for (size_t k = 0; (cmd = om_cmd_at(k)); k++)
		fprintf(to, "%s%s", k ? " " : "", cmd->name);
}

/* ---- bash. ---- */

static void
bash(om_cli *c, FILE *to)
{
	const om_cmd *cmd;
	const om_opt *o;

	fputs("# bash completion for onnxmem\n_onnxmem() {\n\tlocal word=${COMP_WORDS[COMP_CWORD]} command= k options=\n"
		"\tCOMPREPLY=()\n\tfor ((k = 1; k < COMP_CWORD; k++)); do\n"
		"\t\tcase ${COMP_WORDS[k]} in -*) ;; *) command=${COMP_WORDS[k]}; break ;; esac\n\tdone\n"
		"\tcase $command in\n\t'') COMPREPLY=($(compgen -W '", to);
	put_commands(to);
	fputs(" --help --version' -- \"$word\")); return ;;\n\thelp) COMPREPLY=($(compgen -W '", to);
	put_commands(to);
	put_topics(to);
	fputs("' -- \"$word\")); return ;;\n", to);
	for (size_t k = 0; (cmd = om_cmd_at(k)); k++) {
		if (strcmp(cmd->name, "help") == 0)
			continue;
		fprintf(to, "\t%s) options='", cmd->name);
		for (size_t i = 0; (o = option_at(c, cmd, i)); i++)
			fprintf(to, "%s--%s", i ? " " : "", o->name);
		fputs("' ;;\n", to);
	}
	fputs("\tesac\n\tcase $word in\n\t-*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
		"\t*) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n\tesac\n}\ncomplete -o filenames -F _onnxmem onnxmem\n", to);
}

/* ---- zsh. ---- */

/* Inside '...' and [...] of an _arguments specification. */
static void
put_spec(FILE *to, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n' || *text == ' ') {
			text += strspn(text, " \n") - 1;
			putc(' ', to);
		} else if (*text == '\'') {
			fputs("'\\''", to);
		} else {
			if (strchr("[]:\\", *text))
				putc('\\', to);
			putc(*text, to);
		}
	}
}

static void
zsh(om_cli *c, FILE *to)
{
	const om_cmd *cmd;
	const om_opt *o;
	const om_topic *topic;

	fputs("#compdef onnxmem\n\n_onnxmem() {\n\tlocal -a commands topics\n\tcommands=(\n", to);
	for (size_t k = 0; (cmd = om_cmd_at(k)); k++) {
		fprintf(to, "\t\t'%s:", cmd->name);
		put_spec(to, cmd->brief);
		fputs("'\n", to);
	}
	fputs("\t)\n\ttopics=(\n", to);
	for (size_t k = 0; (topic = om_topic_at(k)); k++) {
		fprintf(to, "\t\t'%s:", topic->name);
		put_spec(to, topic->brief);
		fputs("'\n", to);
	}
	fputs("\t)\n\tif ((CURRENT == 2)); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n\tlocal command=$words[2]\n"
		"\tshift words\n\t((CURRENT--))\n\tcase $command in\n\thelp) _describe command commands; _describe topic topics ;;\n", to);
	for (size_t k = 0; (cmd = om_cmd_at(k)); k++) {
		if (strcmp(cmd->name, "help") == 0)
			continue;
		fprintf(to, "\t%s) _arguments", cmd->name);
		for (size_t i = 0; (o = option_at(c, cmd, i)); i++) {
			fprintf(to, " \\\n\t\t'*--%s%s[", o->name, o->arg ? "=" : "");
			put_spec(to, o->brief);
			fputs(o->arg ? "]:" : "]", to);
			if (o->arg) {
				put_spec(to, o->arg);
				fputs(":_files", to);
			}
			putc('\'', to);
		}
		fputs(" \\\n\t\t'*:file:_files' ;;\n", to);
	}
	fputs("\tesac\n}\n\n_onnxmem \"$@\"\n", to);
}

/* ---- fish. ---- */

static void
put_quoted(FILE *to, const char *text)
{
	putc('\'', to);
	for (; *text; text++)
		if (*text == '\n' || *text == ' ') {
			text += strspn(text, " \n") - 1;
			putc(' ', to);
		} else {
			if (*text == '\'' || *text == '\\')
				putc('\\', to);
			putc(*text, to);
		}
	putc('\'', to);
}

static void
fish(om_cli *c, FILE *to)
{
	const om_cmd *cmd;
	const om_opt *o;
	const om_topic *topic;

	fputs("# fish completion for onnxmem\n", to);
	for (size_t k = 0; (cmd = om_cmd_at(k)); k++) {
		fprintf(to, "complete -c onnxmem -n __fish_use_subcommand -f -a %s -d ", cmd->name);
		put_quoted(to, cmd->brief);
		putc('\n', to);
		for (size_t i = 0; (o = option_at(c, cmd, i)); i++) {
			const char letter = om_letter_of(o->name);
			fprintf(to, "complete -c onnxmem -n '__fish_seen_subcommand_from %s' -l %s", cmd->name, o->name);
			if (letter)
				fprintf(to, " -s %c", letter);
			fputs(o->arg ? " -r -d " : " -d ", to);
			put_quoted(to, o->brief);
			putc('\n', to);
		}
	}
	for (size_t k = 0; (topic = om_topic_at(k)); k++) {
		fprintf(to, "complete -c onnxmem -n '__fish_seen_subcommand_from help' -f -a %s -d ", topic->name);
		put_quoted(to, topic->brief);
		putc('\n', to);
	}
}

om_status
om_help_completion(om_cli *c, const char *shell, FILE *to)
{
	static const struct { const char *name; void (*write)(om_cli *c, FILE *to); } shells[] = {
		{"bash", bash}, {"zsh", zsh}, {"fish", fish},
	};

	for (size_t k = 0; k < sizeof shells / sizeof shells[0]; k++)
		if (strcmp(shells[k].name, shell) == 0) {
			shells[k].write(c, to);
			return OM_OK;
		}
	return om_fail(c->session, OM_USAGE, "option --completion must be bash, zsh or fish, not %s", shell);
}
