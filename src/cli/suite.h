/* Suites of models, what is known of them, and what came out. */
#ifndef OM_SUITE_H
#define OM_SUITE_H

#include <stdio.h>

#include "cli/cli.h"

/* One model of a suite.  Paths are from the suite's folder. */
typedef struct om_regress_case {
	const char *name;
	const char *path;        /* NULL: it is fetched */
	const char *fetch;       /* a name of the manifest */
	uint64_t opset;          /* of it; 0: the highest */
	bool with_data;          /* fetched with its test data */
	bool plan_only;          /* it is not run */
	const char **option;     /* words of a command line */
	size_t noption, capoption;
	const char **data;       /* folders of inputs and outputs; none: those beside the model */
	size_t ndata, capdata;
	double rtol, atol;
} om_regress_case;

typedef struct om_suite {
	const char *name, *folder;
	const char *baseline;    /* a path */
	bool baseline_wanted;    /* it is an error when it is not there */
	double time_factor;      /* 0: time is not compared */
	double limit;            /* seconds for one model */
	uint64_t repeat;         /* runs that time is the best of */
	om_regress_case *trial;
	size_t ntrial, captrial;
} om_suite;

/* A suite file, or a folder: all models in it. */
om_status om_suite_read(om_cli *c, const char *path, om_suite *suite);

/* Folders test_data_set_* beside a model, in the order of their numbers. */
om_status om_suite_data(om_cli *c, const char *model, const char ***folder, size_t *n);
/* The first model below a folder; NULL when there is none. */
const char *om_suite_model_below(om_cli *c, const char *folder);

/* What is measured. */
typedef struct om_figures {
	bool known;
	uint64_t arena, bound, naive, datasets;
	double best_ms;          /* 0: it was not run */
	char digest[80];         /* of the model; "" for a text */
} om_figures;

typedef enum om_end { OM_END_PASS, OM_END_FAIL, OM_END_SKIP } om_end;

typedef struct om_outcome {
	const char *name;
	om_end end;
	const char *why;         /* it failed, or was left out; "" */
	const char *note;        /* worth a line; "" */
	om_figures now, before;  /* before: in the baseline */
	double ms;               /* all of it */
} om_outcome;

/* In a process of its own: plan, verify, run, compare; writes JSON to `to`. */
struct om_regress_case_job {
	om_cli *c;
	const om_suite *suite;
	const om_regress_case *trial;
	const char *folder;      /* for files that come and go */
};
void om_regress_case_run(void *job, int to);
/* What a trial wrote, as an outcome. */
void om_regress_case_read(om_cli *c, const char *text, size_t n, om_outcome *o);

/* Figures of models by name. */
om_status om_baseline_read(om_cli *c, const om_suite *suite, om_outcome *o, bool *there);
/* `o` where it passed; what the file says of others is kept when `keep`. */
om_status om_baseline_write(om_cli *c, const om_suite *suite, const om_outcome *o, bool keep);
/* Growth makes a failure of what passed. */
void om_baseline_compare(om_cli *c, const om_suite *suite, om_outcome *o);

typedef struct om_results {
	const om_suite *suite;
	const om_outcome *o;     /* one for each trial */
} om_results;

void om_tap_line(om_cli *c, FILE *to, size_t k, const om_outcome *o);
om_writer om_tap_write, om_junit_write, om_results_json;

#endif
