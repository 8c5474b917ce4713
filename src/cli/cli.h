/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: shared by the subcommands.
 *
 * A subcommand is a table entry: name, help, options, function; local.mk lists them.  The driver parses the command
 * line according to the entry, runs the function and frees what it left in the om_cli.  Data goes to
 * standard output, everything else to standard error. */
#ifndef OM_CLI_H
#define OM_CLI_H

#include <stdio.h>

#include "base/map.h"
#include "onnxmem/executor.h"
#include "onnxmem/binding.h"
#include "onnxmem/onnx.h"
#include "onnxmem/pass.h"

typedef struct om_cli om_cli;

enum { OM_WRITES_NOTHING, OM_WRITES_FILE, OM_WRITES_FILE_OR_FOLDER };

typedef struct om_opt {
	const char *name;        /* without dashes; NULL ends the list */
	const char *arg;         /* its argument, for the help; NULL: a flag */
	const char *brief;       /* NULL: not shown in the help */
	const char *alias;       /* the option of which this is an alias; or NULL */
	const om_pass_flag *flag; /* set for flags of passes; NULL: an option of the command */
	uint8_t writes;          /* what the command writes to its argument, which is checked before the command starts */
} om_opt;

typedef struct om_opt_group {
	const char *title;
	const om_opt *opts;
	bool has_flags;          /* flags declared by passes follow */
} om_opt_group;

enum { OM_CMD_GROUPS = 4, OM_CMD_ANY = 255 };

typedef struct om_cmd {
	const char *name;
	const char *usage;       /* usage after the name: "MODEL [options]" */
	const char *brief;       /* one line, for the list of commands */
	const char *text;        /* longer description for the command's own help; or NULL */
	uint8_t min_args, max_args;
	uint8_t output_arg;      /* the argument, from 1, that is a file which the command writes; 0: none */
	om_target target;        /* consumer of its plans unless --target names one */
	bool keeps_states;       /* its runs keep states on a device: om_plan_request.keep_states */
	const om_opt_group *group[OM_CMD_GROUPS];   /* NULL ends the list */
	om_status (*run)(om_cli *c);
} om_cmd;

/* One option as given on the command line. */
typedef struct om_set_opt {
	const om_opt *opt;
	const char *value;       /* "" for a flag */
} om_set_opt;

struct om_cli {
	om_session *session;
	om_arena *mem;           /* lives as long as the command */
	const om_cmd *cmd;
	const char **arg;        /* arguments that are not options, without the command's name */
	size_t narg, caparg;
	om_set_opt *set;             /* options in the order given */
	size_t nset, capset;
	bool quiet, verbose;
	bool batch_told;         /* it was said that a batch is 1 */
	om_map warned;           /* the warnings so far, by their text */
	bool told;               /* the error was already reported on standard output */

	om_host *host;           /* created by om_cli_host(); the driver frees these */
	size_t plugin_at;        /* plugins of the options before this index are loaded */
	om_model *model;
	om_prog *loaded;         /* the program as loaded; never changed */
	om_prog *prog;           /* the copy of it that is bound and planned */
	double pass_ms;          /* spent in passes so far */
	struct om_report_pass *ran;   /* passes that ran, in order */
	size_t nran, capran;
	uint64_t needed;         /* bytes required after the passes so far */
	bool needed_is_known;
	double progress_ms;      /* when the next progress line is due; 0: not known yet */
	bool progress_shown;
	uint64_t progress_best;  /* bytes: the best of all searches since the line began; 0: none */
	uint64_t budget;         /* of all arenas together; 0: none */
	const char *device, *device_options; /* of --device; NULL: the processor, and none */
	om_plan_request request; /* as the options have it; set by om_cli_settings() */
	om_dim_range *range;     /* of --dim-range, and assumed ones; set by om_cli_shapes() */
	uint32_t nrange;
	const om_dim_range *assumed; /* further ranges; NULL: none */
	uint32_t nassumed;
	struct om_cli_open *open;    /* dims that no option gives; set by om_cli_open_dims() when it fails */
	const char *before_schedule; /* passes that om_cli_passes() runs after those that rewrite the program, before those that plan
	                            it; NULL: none */
};

const om_cmd *om_cmd_find(const char *name);    /* NULL if there is none */
const om_cmd *om_cmd_at(size_t k);              /* NULL after the last one */
void om_cmd_help(om_cli *c, const om_cmd *cmd, FILE *to);  /* NULL: all commands */

/* ---- Options. ---- */

/* Parse the words after argv[0] according to c->cmd; if that is NULL, the first word that is not
 * an option names the command. */
om_status om_cli_words(om_cli *c, int argc, const char *const *argv);

/* The last value given; NULL if there is none. */
const char *om_cli_option(const om_cli *c, const char *name);
bool om_cli_has(const om_cli *c, const char *name);
/* Visit all values of a repeatable option: `*at` starts at 0; NULL ends. */
const char *om_cli_next(const om_cli *c, const char *name, size_t *at);

/* The option as a number in [min, max]; `*out` is unchanged if it was not given. */
om_status om_cli_number(om_cli *c, const char *name, uint64_t min, uint64_t max, uint64_t *out);
om_status om_cli_float(om_cli *c, const char *name, double *out);

/* Does a path end in `ending`? */
bool om_cli_ends_in(const char *path, const char *ending);

/* A number of bytes: plain, or with K, M, G (binary). */
om_status om_cli_size(om_cli *c, const char *what, const char *text, uint64_t *out);

/* Growth of a size that is allowed: a part of the size, and bytes. */
typedef struct om_growth {
	double percent;
	uint64_t bytes;
} om_growth;

/* Is it a number and a percent sign, as in "1%"? */
bool om_cli_percent(const char *text, double *percent);
/* The allowed growth of a size that was `before`, in bytes. */
uint64_t om_cli_allowed(const om_growth *g, uint64_t before);

/* The options of commands that run a model, for the limits of the executor.  Threads and precision are options of
 * planning, too: om_pass_options has them. */
#define OM_CLI_RUN_LIMITS                                                                                   \
	{"max-iterations", "N", "iterations of all loops of a run together [10^9]"},                             \
	{"cache", "DIR", "keep the weights, as kernels read them, in files of this folder, which later\n"     \
		"                            runs map instead of making them again"},                                        \
	{"no-capture", NULL, "a device gets each command of a run anew, instead of replaying those that it captured"}

om_status om_cli_run_limits(om_cli *c, om_exec_options *o);

/* ---- From a model to a plan. ---- */

/* Options for the shapes of inputs, and options for passes. */
extern const om_opt_group om_shape_options, om_pass_options;

/* Is it one of them, or a flag of a pass? */
bool om_cli_decides_plan(const om_opt *o);

/* Load the plugins requested so far; the host is created on first use. */
om_status om_cli_host(om_cli *c);

/* Option `k` of a group, including the flags of built-in and loaded passes; NULL after the last one. */
const om_opt *om_cli_group_option(om_cli *c, const om_opt_group *group, size_t k);
/* A flag of a pass, which may be in a plugin or a module folder; NULL if there is none. */
const om_opt *om_cli_flag(om_cli *c, const char *name, size_t n);

/* The option of commands that load a model for the limit of what loading takes, and of runs. */
#define OM_CLI_MAX_MEMORY {"max-memory", "SIZE", "bytes of the sparse tensors of a model when they are dense [1G]; in a\n" \
	"                            run: of the arena, weights, scratch and values outside the plan\n" \
	"                            [physical memory]"}

/* The options of commands that plan or verify for operators without a definition. */
#define OM_CLI_OP_RULES                                                                                                \
	{"op", "DOMAIN:NAME=...", "what an operator without a definition does: inplace:0, view:0, shape:0 for an input,\n" \
		"                            or 0@1 for an input and an output; scratch:4K; repeatable"},                     \
	{"op-rules", "FILE", "such rules, one a line; # begins a comment"}

/* Apply them to c->loaded. */
om_status om_cli_op_rules(om_cli *c);

/* Declare the states of --tie in c->loaded. */
om_status om_cli_states(om_cli *c);
/* Warn of each state of c->prog whose output is, in its plan, not in the memory of the input. */
void om_cli_tell_states(om_cli *c);

/* Load `path` into c->model (unless it is text, ending in ".ir") and c->loaded, and make c->prog. */
om_status om_cli_load(om_cli *c, const char *path);

/* om_cli_load(), and read the plan in the model, or in the document `sidecar` unless that is NULL, into c->prog.  The
 * plan is not verified. */
om_status om_cli_stored(om_cli *c, const char *path, const char *sidecar);

/* The option of commands that show the plan of another planner. */
#define OM_CLI_PLAN_OF {"plan-of", "FORM", "the plan of another planner: onnxsim (its keys in the model),\n" \
	"                            tflm:FILE (an offline plan as a C array), or csv:FILE (a table with\n" \
	"                            columns name and offset)"}

/* om_cli_load(), and make c->prog->plan of what the option --plan-of names.  The plan is not verified.  Unless `ours` is
 * NULL, it receives the sizes of a plan that is made now. */
struct om_report_ours;
om_status om_cli_plan_of(om_cli *c, const char *path, struct om_report_ours *ours);

/* Forget the model, so that another can be loaded. */
void om_cli_unload(om_cli *c);

/* Make c->prog a new copy of the loaded program; the caller has freed or taken the previous one. */
om_status om_cli_copy(om_cli *c);

/* Bind c->prog to the shapes given by options and, unless `in` is NULL, to those of the tensors that
 * have a type, by input.  `all`: a dim that remains open is an error. */
om_status om_cli_shapes(om_cli *c, const om_tensor *in, bool all);
/* Add to `b` the shapes of the tensors that have a type, by input of `p`; `in` NULL: none. */
om_status om_cli_bind_tensors(om_cli *c, const om_prog *p, om_binding *b, const om_tensor *in);

/* Dims of inputs that no option gives. */
typedef struct om_cli_open {
	const char **symbol;     /* those with a name, batches first */
	size_t nsymbol, capsymbol, nbatch;
	const char *inputs;      /* the inputs and their shapes, as a list */
	const char *options;     /* that give them: " --dim height=N ..." */
	bool has_unnamed;
} om_cli_open;

/* The report of a model with open dims, after om_cli_plan() has failed for them: formulas of its symbols. */
om_status om_cli_report_open(om_cli *c);

/* With what `b` has, are dims of inputs of c->prog open?  Those of a batch are bound to 1, with a notice; OM_SHAPE for
 * all others, with the options that give them. */
om_status om_cli_open_dims(om_cli *c, om_binding *b);
/* With --capacity: dims of a step of a decoder that no option gives.  Pasts get a range, tokens and sequences are one, what follows from these is
 * defined, in c->loaded and c->prog.  What is found is told; the others stay open. */
om_status om_cli_step_dims(om_cli *c, om_binding *b);

/* The size of a symbol that --dim or --input-shape gives; -1: none does. */
om_status om_cli_given_size(om_cli *c, const char *symbol, int64_t *n);

/* A word of a command line, in quotes where a shell requires them. */
const char *om_cli_shell_word(om_cli *c, const char *text);

/* Read SYMBOL=N of an option `name`, as in "batch=1". */
om_status om_cli_dim(om_cli *c, const char *name, const char *text, const char **symbol, int64_t *n);

/* Is it SYMBOL=EXPRESSION, as in "total=past+new"? */
bool om_cli_is_definition(om_cli *c, const char *text);

/* Define the dims of c->loaded that --dim gives an expression. */
om_status om_cli_define_dims(om_cli *c);

/* Add to `b` the constants of --value. */
om_status om_cli_values(om_cli *c, om_binding *b);

/* Warn that the graph in `out`, which another program may run, is valid for the values of --value alone. */
void om_cli_tell_values(om_cli *c, const char *out);
/* Add to a failure because of shapes that ranges may have steps, if there are ranges without them.  Returns `st`. */
om_status om_cli_note_ranges(om_cli *c, om_status st);

/* Read the options --dim-range into c->range. */
om_status om_cli_ranges(om_cli *c);
/* Read and verify the plan in c->model, or in the document `sidecar`, for all sizes of its ranges.  If there are too
 * many, it is done for a selection, which a notice states. */
om_status om_cli_check_sizes(om_cli *c, const char *sidecar);
/* The input of the graph called `name`; NULL: there is none. */
const om_value *om_cli_input(const om_prog *p, const char *name);
/* The binding of tensors and of --dim, for a plan that is read. */
om_status om_cli_sizes(om_cli *c, const om_tensor *in, om_binding *b);

/* Set the arenas and the order given by options in c->request, and c->budget. */
om_status om_cli_plan_request(om_cli *c);
/* Do the options set requirements that a stored plan may not meet? */
bool om_cli_plan_options(const om_cli *c);
/* The flags given for passes. */
om_status om_cli_pass_flags(om_cli *c, om_flag_set **set, size_t *n);
/* Extend `*pipeline` by these flags. */
om_status om_cli_pipeline(om_cli *c, const char **pipeline);

/* The number of threads of a run: by --threads, else om_threads(). */
om_status om_cli_threads(om_cli *c, uint32_t *out);

/* Set c->request to what the options require of a plan, and make it the request of the host. */
om_status om_cli_settings(om_cli *c);

/* om_cli_settings(), then run --passes or, if it was not given, `pipeline`; NULL: the default one. */
om_status om_cli_passes(om_cli *c, const char *pipeline);
/* Give the plan of c->prog the ranges of the options, and check their limits. */
om_status om_cli_limits(om_cli *c);

/* om_cli_load(), om_cli_shapes(), om_cli_passes(), and verification of the plan; OM_BUDGET if it exceeds a limit. */
om_status om_cli_plan(om_cli *c, const char *path);
/* The same for c->prog, a copy of what is loaded. */
om_status om_cli_plan_copy(om_cli *c);
/* Its two parts: without verification; and that, with the formulas of a plan with ranges. */
om_status om_cli_make_plan(om_cli *c);
om_status om_cli_check_plan(om_cli *c);

struct om_report;
/* Fill in the results of other strategies. */
om_status om_cli_strategies(om_cli *c, struct om_report *r);
/* The same for plans for numbers of workers (--all-streams). */
om_status om_cli_streams(om_cli *c, struct om_report *r);

/* Parse --export: the path of the plan's own document is stored in `*sidecar`, the number of
 * other files in `*others`. */
om_status om_cli_exports(om_cli *c, const char **sidecar, size_t *others);
/* Write these other files. */
om_status om_cli_export(om_cli *c, const struct om_report *r);

/* ---- Output. ---- */

/* Is standard error a terminal on which progress may be displayed? */
bool om_cli_may_show(const om_cli *c);
/* Display the progress of searches from now on; erase the progress line. */
void om_cli_progress(om_cli *c);
void om_cli_progress_end(om_cli *c);

/* The progress of a long operation: `done` of `all`, and a note. */
void om_cli_bar(om_cli *c, const char *what, uint64_t done, uint64_t all, const char *note);

/* The width of the terminal `to`; 0 if it is not a terminal, so that nothing is cut. */
unsigned om_cli_width(FILE *to);
/* A line on standard output, cut to `width` columns unless that is 0. */
void om_cli_line(om_cli *c, unsigned width, const char *fmt, ...) OM_PRINTF(3, 4);

typedef om_status om_writer(om_cli *c, FILE *to, const void *arg);

/* Call `write` for a file, or for standard output if `path` is "-".  A path that is the model
 * given as first argument is refused. */
om_status om_cli_write(om_cli *c, const char *path, om_writer *write, const void *arg);

/* A form of output, in the file that the option names. */
typedef struct om_form {
	const char *option;      /* NULL ends a list */
	om_writer *write;
} om_form;

/* Write the forms that are asked for.  Is standard output one of the files? */
om_status om_cli_write_forms(om_cli *c, const om_form *form, const void *arg, bool *taken);

/* The pictures of an om_report. */
om_writer om_cli_write_svg, om_cli_write_ascii;

/* Refuse, before the work starts, outputs that cannot be written: those of options and the argument that are
 * marked as outputs. */
om_status om_cli_check_outputs(om_cli *c);

/* Refuse an output that is the input. */
om_status om_cli_own_path(om_cli *c, const char *in, const char *out);

/* The last line of commands that verify: "FAILED reason"; returns `st`. */
om_status om_cli_failed(om_cli *c, om_status st);

#endif
