/* The command line: what the subcommands share.
 *
 * A subcommand is a row: name, help, options, function.  The frame reads the
 * command line by the row, runs the function and frees what it left in the
 * om_cli.  Data goes to standard output, everything else to standard error.
 */
#ifndef OM_CLI_H
#define OM_CLI_H

#include <stdio.h>

#include "onnxmem/onnx.h"
#include "onnxmem/pass.h"

typedef struct om_cli om_cli;

typedef struct om_opt {
	const char *name;        /* without dashes; NULL ends the list */
	const char *arg;         /* what follows, for the help; NULL: a flag */
	const char *brief;       /* NULL: not shown in the help */
	const char *alias;       /* the option that this is another name of; or NULL */
	const om_pass_flag *flag; /* of a pass; NULL: the command's own */
} om_opt;

typedef struct om_opt_group {
	const char *title;
	const om_opt *opts;
	bool has_flags;          /* those that passes declare follow */
} om_opt_group;

enum { OM_CMD_GROUPS = 4, OM_CMD_ANY = 255 };

typedef struct om_cmd {
	const char *name;
	const char *usage;       /* what follows the name: "MODEL [options]" */
	const char *brief;       /* a line, for the list of commands */
	const char *text;        /* more, for its own help; or NULL */
	uint8_t min_args, max_args;
	const om_opt_group *group[OM_CMD_GROUPS];   /* NULL ends the list */
	om_status (*run)(om_cli *c);
} om_cmd;

/* One option as it was given. */
typedef struct om_set {
	const om_opt *opt;
	const char *value;       /* "" for a flag */
} om_set;

struct om_cli {
	om_session *session;
	om_arena *mem;           /* lives as long as the command */
	const om_cmd *cmd;
	const char **arg;        /* what is no option, without the command's name */
	size_t narg, caparg;
	om_set *set;             /* options in the order given */
	size_t nset, capset;
	bool quiet, verbose;
	bool told;               /* what went wrong was said on standard output */

	om_host *host;           /* made by om_cli_host(); the frame frees these */
	size_t plugin_at;        /* options before that one: their plugins are loaded */
	om_model *model;
	om_prog *prog;
	double pass_ms;          /* spent in passes so far */
	struct om_report_pass *ran;   /* those that ran, in order */
	size_t nran, capran;
	uint64_t needed;         /* bytes at once, as far as passes have come; */
	bool needed_is_known;
	double progress_ms;      /* when the next line of progress is due; 0: not known yet */
	bool progress_shown;
	uint64_t budget;         /* of all arenas together; 0: none */
};

/* Every subcommand, in the order of the help. */
#define OM_COMMANDS(_) \
	_(report)      \
	_(plan)        \
	_(verify)      \
	_(run)         \
	_(grad)        \
	_(train)       \
	_(pack)        \
	_(fetch)       \
	_(regress)     \
	_(strip)       \
	_(hash)        \
	_(dump)        \
	_(passes)      \
	_(ops)         \
	_(help)

#define OM_CMD_DECLARE(name) extern const om_cmd om_##name##_cmd;
OM_COMMANDS(OM_CMD_DECLARE)
#undef OM_CMD_DECLARE

const om_cmd *om_cmd_find(const char *name);    /* NULL when there is none */
const om_cmd *om_cmd_at(size_t k);              /* NULL behind the last one */
void om_cmd_help(om_cli *c, const om_cmd *cmd, FILE *to);  /* NULL: all of them */

/* ---- Options. ---- */

/* Read the words behind argv[0] by the rows of c->cmd; without one, the first that
 * is no option says which. */
om_status om_cli_words(om_cli *c, int argc, const char *const *argv);

/* The value of the last one given; NULL when there is none. */
const char *om_cli_option(const om_cli *c, const char *name);
bool om_cli_has(const om_cli *c, const char *name);
/* Visit all values of a repeatable option: `*at` starts at 0; NULL ends. */
const char *om_cli_next(const om_cli *c, const char *name, size_t *at);

/* The option as a number in [min, max]; `*out` is left alone when it was not given. */
om_status om_cli_number(om_cli *c, const char *name, uint64_t min, uint64_t max, uint64_t *out);
om_status om_cli_float(om_cli *c, const char *name, double *out);

/* Does a path end in `ending`? */
bool om_cli_ends_in(const char *path, const char *ending);

/* A number of bytes: plain, or with K, M, G (binary). */
om_status om_cli_size(om_cli *c, const char *what, const char *text, uint64_t *out);

/* ---- A model on its way to a plan. ---- */

/* Options that set inputs' shapes, and those that set passes. */
extern const om_opt_group om_shape_options, om_pass_options;

/* The host, with the plugins that were asked for so far; made when first asked for. */
om_status om_cli_host(om_cli *c);

/* Option `k` of a group, with the flags of the passes that are built in or loaded; NULL
 * behind the last one. */
const om_opt *om_cli_group_option(om_cli *c, const om_opt_group *group, size_t k);
/* The flag of a pass, which may be in a plugin or a folder of modules; NULL: there is none. */
const om_opt *om_cli_flag(om_cli *c, const char *name, size_t n);

/* Load `path` into c->model (but for a text, which ends in ".ir") and c->prog. */
om_status om_cli_load(om_cli *c, const char *path);

/* Another program from the model that was loaded. */
om_status om_cli_load_again(om_cli *c, const char *path);

/* Give the inputs the shapes that the options ask for.  `all`: a dim that stays
 * open is an error. */
om_status om_cli_shapes(om_cli *c, bool all);

/* Write into c->prog what the options ask of a plan, and c->budget. */
om_status om_cli_plan_request(om_cli *c);
/* Do the options ask anything of a plan that a stored one may not be? */
bool om_cli_plan_options(const om_cli *c);
/* `*pipeline` with what the flags of passes ask for. */
om_status om_cli_pipeline(om_cli *c, const char **pipeline);

/* Alignment, target, and what else the options ask of the plan of c->prog. */
om_status om_cli_settings(om_cli *c);

/* om_cli_settings(), then run --passes, or `pipeline` where there is none. */
om_status om_cli_passes(om_cli *c, const char *pipeline);

/* om_cli_load(), om_cli_shapes(), om_cli_passes() with the default pipeline,
 * and the plan verified; OM_BUDGET where it is too large. */
om_status om_cli_plan(om_cli *c, const char *path);

struct om_report;
/* Fill in what other strategies take. */
om_status om_cli_strategies(om_cli *c, struct om_report *r);

/* What --export asks for: the plan's own document, which becomes `*sidecar`, and how
 * many other files. */
om_status om_cli_exports(om_cli *c, const char **sidecar, size_t *others);
/* Write those others. */
om_status om_cli_export(om_cli *c, const struct om_report *r);

/* ---- Output. ---- */

/* Are there eyes for what is written over and over on standard error? */
bool om_cli_may_show(const om_cli *c);
/* Show how far searches are, from now on; and take that line away. */
void om_cli_progress(om_cli *c);
void om_cli_progress_end(om_cli *c);

/* Something that goes on for long: `done` of `all`, and a note. */
void om_cli_bar(om_cli *c, const char *what, uint64_t done, uint64_t all, const char *note);

/* Columns of the terminal that `to` is; 0 when it is none, and nothing is to be cut. */
unsigned om_cli_width(FILE *to);
/* A line on standard output, cut to `width` columns unless that is 0. */
void om_cli_line(om_cli *c, unsigned width, const char *fmt, ...) OM_PRINTF(3, 4);
/* `text` as lines up to `width`, from column `at` on; more of them begin at `indent`. */
void om_cli_wrap(FILE *to, const char *text, unsigned at, unsigned indent, unsigned width);

typedef om_status om_writer(om_cli *c, FILE *to, const void *arg);

/* Call `write` for a file, or for standard output where `path` is "-".  A file
 * that is the model given as first argument is refused. */
om_status om_cli_write(om_cli *c, const char *path, om_writer *write, const void *arg);

/* Refuse an output that is the input. */
om_status om_cli_own_path(om_cli *c, const char *in, const char *out);

/* The last line of commands that check: "FAILED reason"; returns `st`. */
om_status om_cli_failed(om_cli *c, om_status st);

#endif
