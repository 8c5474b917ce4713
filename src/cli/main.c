/* SPDX-License-Identifier: Apache-2.0 */
/* onnxmem: the command.  Finds the subcommand, parses the command line according to its table
 * entry, runs it, and reports errors. */
#include <config.h>

#include <signal.h>
#include <string.h>

#include "cli/help.h"
#include "cli/json_memory.h"
#include "onnxmem/executor.h"

const om_opt om_global_options[] = {
	{"help", NULL, "show this help"},
	{"version", NULL, "show the version"},
	{"quiet", NULL, "no warnings"},
	{"verbose", NULL, "log progress"},
	{0}
};

static const struct { char letter; const char *name; } letters[] = {
	{'h', "help"}, {'V', "version"}, {'q', "quiet"}, {'v', "verbose"}, {'o', "output"}, {'j', "jobs"},
};

char
om_letter_of(const char *name)
{
	for (size_t k = 0; k < sizeof letters / sizeof letters[0]; k++)
		if (strcmp(letters[k].name, name) == 0)
			return letters[k].letter;
	return '\0';
}

static const om_opt *
in_list(const om_opt *o, const char *name, size_t n)
{
	for (; o->name; o++)
		if (strlen(o->name) == n && memcmp(o->name, name, n) == 0)
			return o;
	return NULL;
}

static const om_opt *
find_option(om_cli *c, const char *name, size_t n)
{
	const om_opt *o = in_list(om_global_options, name, n);
	bool has_flags = false;

	for (size_t k = 0; c->cmd && !o && k < OM_CMD_GROUPS && c->cmd->group[k]; k++) {
		o = in_list(c->cmd->group[k]->opts, name, n);
		has_flags = has_flags || c->cmd->group[k]->has_flags;
	}
	if (!o && has_flags)
		return om_cli_flag(c, name, n);
	return o && o->alias ? find_option(c, o->alias, strlen(o->alias)) : o;
}

static om_status
unknown_option(om_cli *c, const char *text)
{
	const char *of = c->cmd ? c->cmd->name : "onnxmem";
	return om_fail(c->session, OM_USAGE, "%s has no option %.*s; see `onnxmem%s%s --help`", of,
		(int)(text[1] == '-' ? strcspn(text, "=") : 2), text,
		c->cmd ? " " : "", c->cmd ? c->cmd->name : "");
}

static void
set_option(om_cli *c, const om_opt *o, const char *value)
{
	OM_PUSH(c->mem, c->set, c->nset, c->capset, ((om_set_opt){o, value}));
}

/* The option for a letter, if the command has it; NULL. */
static const om_opt *
find_letter(om_cli *c, char letter)
{
	for (size_t k = 0; k < sizeof letters / sizeof letters[0]; k++)
		if (letters[k].letter == letter)
			return find_option(c, letters[k].name, strlen(letters[k].name));
	return NULL;
}

/* `*k` advances if the value is the next word. */
static om_status
short_options(om_cli *c, int argc, const char *const *argv, int *k)
{
	for (const char *at = argv[*k] + 1; *at; at++) {
		const om_opt *o = find_letter(c, *at);
		if (!o)
			return unknown_option(c, (char[]){'-', *at, '\0'});
		if (!o->arg) {
			set_option(c, o, "");
			continue;
		}
		if (!at[1] && *k + 1 == argc)
			return om_fail(c->session, OM_USAGE, "option -%c requires %s", *at, o->arg);
		set_option(c, o, at[1] ? at + 1 : argv[++*k]);
		break;
	}
	return OM_OK;
}

/* `*k` advances if the value is the next word. */
static om_status
long_option(om_cli *c, int argc, const char *const *argv, int *k)
{
	const char *text = argv[*k], *name = text + 2;
	const size_t n = strcspn(name, "=");
	const om_opt *o = find_option(c, name, n);

	if (!o)
		return unknown_option(c, text);
	if (!o->arg && name[n])
		return om_fail(c->session, OM_USAGE, "option --%s takes no value", o->name);
	if (o->arg && !name[n] && *k + 1 == argc)
		return om_fail(c->session, OM_USAGE, "option --%s requires %s", o->name, o->arg);
	set_option(c, o, name[n] ? name + n + 1 : o->arg ? argv[++*k] : "");
	return OM_OK;
}

/* Unless the command is known, the first word that is not an option names it. */
om_status
om_cli_words(om_cli *c, int argc, const char *const *argv)
{
	bool only_args = false;

	for (int k = 1; k < argc; k++) {
		const char *word = argv[k];
		if (!only_args && strcmp(word, "--") == 0) {
			only_args = true;
		} else if (!only_args && word[0] == '-' && word[1] == '-') {
			OM_TRY(long_option(c, argc, argv, &k));
		} else if (!only_args && word[0] == '-' && word[1]) {
			OM_TRY(short_options(c, argc, argv, &k));
		} else if (!c->cmd) {
			c->cmd = om_cmd_find(word);
			if (!c->cmd)
				return om_fail(c->session, OM_USAGE,
					"there is no command called %s; see `onnxmem --help`", word);
		} else {
			OM_PUSH(c->mem, c->arg, c->narg, c->caparg, word);
		}
	}
	return OM_OK;
}

/* The word of the usage that stands for argument `k`. */
static const char *
argument_name(om_arena *mem, const om_cmd *cmd, size_t k)
{
	const char *at = cmd->usage;

	for (; k > 0 && strchr(at, ' '); k--)
		at = strchr(at, ' ') + 1;
	return om_strndup(mem, at, strcspn(at, " "));
}

static om_status
count_args(om_cli *c)
{
	const om_cmd *cmd = c->cmd;

	if (c->narg < cmd->min_args)
		return om_fail(c->session, OM_USAGE, "%s requires %s; usage: onnxmem %s %s", cmd->name,
			argument_name(c->mem, cmd, c->narg), cmd->name, cmd->usage);
	if (cmd->max_args != OM_CMD_ANY && c->narg > cmd->max_args)
		return om_fail(c->session, OM_USAGE, "%s: unexpected argument %s; usage: onnxmem %s %s",
			cmd->name, c->arg[cmd->max_args], cmd->name, cmd->usage);
	return OM_OK;
}

/* A program is bound and inferred several times: each warning is printed once. */
static void
print_log(void *arg, enum om_log_level level, const char *line)
{
	om_cli *c = arg;

	if (level == OM_LOG_WARN && om_map_get(&c->warned, line))
		return;
	if (level == OM_LOG_WARN)
		om_map_set(&c->warned, om_strdup(c->mem, line), c);
	fprintf(stderr, "onnxmem: %s%s\n", level == OM_LOG_WARN ? "warning: " : "", line);
}

static om_status
run_command(om_cli *c)
{
	c->quiet = om_cli_has(c, "quiet");
	c->verbose = om_cli_has(c, "verbose");
	c->warned = om_map_new(c->mem);
	om_session_log(c->session, print_log, c,
		c->quiet ? OM_LOG_QUIET : c->verbose ? OM_LOG_INFO : OM_LOG_WARN);
	if (om_cli_has(c, "help")) {
		om_cmd_help(c, c->cmd, stdout);
		return OM_OK;
	}
	const char *isa = om_isa(c->session);
	if (!isa)
		return OM_USAGE;
	if (om_cli_has(c, "version")) {
		printf("%s\nkernels for %s\n", PACKAGE_STRING, isa);
		return OM_OK;
	}
	if (!c->cmd)
		return om_fail(c->session, OM_USAGE, "a command is missing; see `onnxmem --help`");
	OM_TRY(count_args(c));
	OM_TRY(om_cli_check_outputs(c));
	om_cli_progress(c);
	return c->cmd->run(c);
}

static void
release_made(om_cli *c)
{
	om_prog_free(c->prog);
	om_prog_free(c->loaded);
	om_model_free(c->model);
	om_host_free(c->host);
}

struct words {
	om_cli *c;
	int n;
	char **word;
};

/* The guard frees what the command made if memory runs out, and run_words() does not return; else it is freed here. */
static om_status
run_words(void *arg)
{
	const struct words *w = arg;
	om_status st = om_cli_words(w->c, w->n, (const char *const *)w->word);

	if (st == OM_OK)
		st = run_command(w->c);
	release_made(w->c);
	return st;
}

/* Beyond the limit of file sizes, writing fails as on a full disk, instead of ending the process. */
static void
ignore_size_limit(void)
{
#ifdef SIGXFSZ
	signal(SIGXFSZ, SIG_IGN);
#endif
}

int
main(int argc, char **argv)
{
	om_cli c = {.session = om_session_new(), .mem = om_arena_new()};

	if (!c.session || !c.mem) {
		fprintf(stderr, "onnxmem: %s\n", om_status_text(OM_MEMORY));
		return om_status_exit(OM_MEMORY);
	}
	ignore_size_limit();
	om_cli_watch_json();
	const om_status ended = om_guarded(c.session, run_words, &(struct words){&c, argc, argv});
	om_status st = om_cli_json_status(c.session, ended);
	om_cli_progress_end(&c);
	if (st == OM_OK && (fflush(stdout) != 0 || ferror(stdout)))
		st = om_fail(c.session, OM_IO, "standard output: could not be written");
	if (st != OM_OK && (!c.told || st != ended))
		fprintf(stderr, "onnxmem: %s\n", om_message(c.session));
	om_session_free(c.session);
	om_arena_free(c.mem);
	return om_status_exit(st);
}
