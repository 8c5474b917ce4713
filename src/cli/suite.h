/* SPDX-License-Identifier: Apache-2.0 */
/* Suites of models, their baselines, and the outcome. */
#ifndef OM_SUITE_H
#define OM_SUITE_H

#include <jansson.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/process_pool.h"
#include "report/report.h"

/* One model of a suite.  Paths are relative to the suite's folder. */
typedef struct om_regress_case {
	const char *name;
	const char *path;        /* NULL: it is downloaded */
	const char *fetch;       /* its name in the manifest */
	uint64_t opset;          /* opset of the manifest entry; 0: the highest */
	bool with_data;          /* downloaded with its test data */
	bool plan_only;          /* planned and verified, not run */
	const char **option;     /* words of a command line */
	size_t noption, capoption;
	const char **data;       /* folders of inputs and outputs; none: those next to the model */
	size_t ndata, capdata;
	double rtol, atol;
} om_regress_case;

typedef struct om_suite {
	const char *name, *folder;
	const char *path;        /* as the command line has it */
	const char *baseline;    /* a path */
	bool baseline_wanted;    /* a missing baseline is an error */
	om_growth allow;         /* of a figure */
	double time_factor;      /* 0: time is not compared */
	double limit;            /* seconds for one model */
	uint64_t repeat;         /* runs; the best time counts */
	om_regress_case *trial;
	size_t ntrial, captrial;
} om_suite;

/* Read a suite file, or a folder: all models in it. */
om_status om_suite_read(om_cli *c, const char *path, om_suite *suite);

/* Folders test_data_set_* next to a model, in numeric order. */
om_status om_suite_data(om_cli *c, const char *model, const char ***folder, size_t *n);
/* The first model below a folder; NULL if there is none. */
const char *om_suite_model_below(om_cli *c, const char *folder);

/* "1%", a part, or "4K", bytes, for om_suite.  `what` names the option or key. */
om_status om_suite_allow(om_cli *c, const char *what, const char *text, om_suite *suite);

enum { OM_PEAK_VALUES = 8 };

/* What is live at the peak. */
typedef struct om_peak_list {
	const char *op;          /* the op of that step; NULL: not known */
	om_report_live value[OM_PEAK_VALUES];  /* the largest, in order */
	size_t n, all;           /* all: with those that are not listed */
} om_peak_list;

/* The measured figures.  Those that a baseline does not have are 0. */
typedef struct om_figures {
	bool known;
	uint64_t arena, bound, naive, datasets;
	uint64_t total, weights; /* bytes of a run; of its constants */
	om_peak_list peak;
	char status[20];         /* of the plan: see om_plan_arena_status(); "" in a baseline */
	double best_ms;          /* 0: it was not run */
	char digest[80];         /* of the model; "" for text */
} om_figures;

/* They as an object, without the time and the status; and from an object, in which any may be missing, with the time. */
json_t *om_figures_json(om_cli *c, const om_figures *f);
void om_figures_read(om_cli *c, const json_t *j, om_figures *f);

typedef enum om_end { OM_END_PASS, OM_END_FAIL, OM_END_SKIP } om_end;

typedef struct om_outcome {
	const char *name;
	om_end end;
	const char *why;         /* reason of failure or skip; or "" */
	const char *note;        /* remark for the report; or "" */
	const char *peak;        /* of one that failed because its arena grew: what is live at the peak; or "" */
	om_figures now, before;  /* before: from the baseline */
	double ms;               /* total time */
} om_outcome;

/* In a child process: plan, verify, run, compare; writes JSON to `to`. */
struct om_regress_case_job {
	om_cli *c;
	const om_suite *suite;
	const om_regress_case *trial;
	const char *folder;      /* for temporary files */
};
void om_regress_case_run(void *job, int to);
/* Parse the output of om_regress_case_run(). */
void om_regress_case_read(om_cli *c, const char *text, size_t n, om_outcome *o);

typedef struct om_baseline {
	bool there;              /* there is a file */
	const char **option;     /* options that it was made with, "--NAME=VALUE"; NULL: it has no list of them */
	size_t noption;
} om_baseline;

/* Read the figures of the models by name. */
om_status om_baseline_read(om_cli *c, const om_suite *suite, om_outcome *o, om_baseline *b);
/* The options that a baseline records: those of the command line that decide what is planned. */
const char **om_baseline_options(om_cli *c, size_t *n);
/* Add the options of the baseline to those of the command line, which have to agree with them; with --update they
 * replace them, if `all` models are updated. */
om_status om_baseline_use_options(om_cli *c, const om_suite *suite, const om_baseline *b, bool all);
/* Record the models that passed; the file's entries of others are kept if `keep`. */
om_status om_baseline_write(om_cli *c, const om_suite *suite, const om_outcome *o, bool keep);
/* A model that passed fails if a figure grew. */
void om_baseline_compare(om_cli *c, const om_suite *suite, om_outcome *o);

typedef struct om_results {
	const om_suite *suite;
	const om_outcome *o;     /* one per model */
} om_results;

/* The file of a model, from the current folder; if it is downloaded, that of the suite. */
const char *om_suite_file(om_cli *c, const om_suite *suite, size_t k);

/* What the processes of models wrote. */
typedef struct om_outcomes {
	const om_suite *suite;
	om_job *job;             /* one per model */
} om_outcomes;

/* Leave only the models of the shard that --shard names. */
om_status om_shard_select(om_cli *c, om_suite *suite);
/* Write outcomes to a file, of om_outcomes; and read those of all files of --merge: each model has to be in one of
 * them. */
om_writer om_outcomes_write;
om_status om_outcomes_merge(om_cli *c, const om_outcomes *r);

/* Annotations of GitHub's workflows, a line each. */
void om_github_annotate(om_cli *c, FILE *to, const om_results *r);
/* Append a table to the summary of the step, in the file that GITHUB_STEP_SUMMARY names. */
om_status om_github_summary(om_cli *c, const om_results *r);

void om_tap_line(om_cli *c, FILE *to, size_t k, const om_outcome *o);
om_writer om_tap_write, om_junit_write, om_results_json;

#endif
