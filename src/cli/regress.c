/* SPDX-License-Identifier: Apache-2.0 */
/* regress: plan, verify and run the models of a suite, and compare them with the baseline. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output_file.h"
#include "base/system.h"
#include "cli/model_source.h"
#include "cli/process_pool.h"
#include "cli/suite.h"

enum { TEMPORARY = 300 };

struct regress {
	om_cli *c;
	om_suite suite;
	om_outcome *o;           /* by model of the suite */
	om_job *job;
	bool *over;
	size_t said;             /* models whose lines were written */
	bool tap;                /* on standard output, as models complete */
	om_baseline baseline;
	bool all;
	bool is_job;             /* this process has run one model, and is done */
	char folder[TEMPORARY + 16]; /* for temporary files */
};

/* ---- Selection. ---- */

/* Models whose names contain one of the words. */
static om_status
choose(struct regress *r)
{
	om_suite *s = &r->suite;
	size_t n = 0;

	r->all = r->c->narg < 2;
	for (size_t k = 0; k < s->ntrial; k++) {
		bool wanted = r->all;
		for (size_t i = 1; i < r->c->narg; i++)
			wanted = wanted || strstr(s->trial[k].name, r->c->arg[i]);
		if (wanted)
			s->trial[n++] = s->trial[k];
	}
	s->ntrial = n;
	if (!n)
		return om_fail(r->c->session, OM_USAGE, "%s: there is no model to try", r->c->arg[0]);
	return om_shard_select(r->c, s);
}

/* Plugin paths are relative to the current folder, although models run in the suite's folder. */
static void
fix_paths(om_cli *c)
{
	for (size_t k = 0; k < c->nset; k++) {
		if (strcmp(c->set[k].opt->name, "plugin") != 0)
			continue;
		char *full = realpath(c->set[k].value, NULL);
		if (full)
			c->set[k].value = om_strdup(c->mem, full);
		free(full);
	}
}

static om_status
read_options(struct regress *r)
{
	om_suite *s = &r->suite;
	const char *baseline = om_cli_option(r->c, "baseline");

	OM_TRY(om_suite_read(r->c, r->c->arg[0], s));
	OM_TRY(om_cli_float(r->c, "time-factor", &s->time_factor));
	OM_TRY(om_cli_float(r->c, "model-timeout", &s->limit));
	OM_TRY(om_cli_number(r->c, "repeat", 1, 1000000, &s->repeat));
	if (baseline) {
		s->baseline = baseline;
		s->baseline_wanted = true;
	}
	fix_paths(r->c);
	if (om_cli_has(r->c, "merge") && (om_cli_has(r->c, "shard") || om_cli_has(r->c, "outcomes")))
		return om_fail(r->c->session, OM_USAGE, "--merge reads what shards wrote: it does not go with --shard or --outcomes");
	return choose(r);
}

/* With the options of the baseline. */
static om_status
read_baseline(struct regress *r)
{
	om_cli *c = r->c;

	if (om_cli_has(c, "update"))
		OM_TRY(om_output_check(c->session, r->suite.baseline, false));
	OM_TRY(om_baseline_read(c, &r->suite, r->o, &r->baseline));
	OM_TRY(om_baseline_use_options(c, &r->suite, &r->baseline, r->all));
	const char *allow = om_cli_option(c, "allow");
	return allow ? om_suite_allow(c, "option --allow", allow, &r->suite) : OM_OK;
}

/* ---- Completion. ---- */

/* Output is in the order of the suite, so a line may be delayed by others. */
static void
say_what_can_be_said(struct regress *r)
{
	for (; r->said < r->suite.ntrial && r->over[r->said]; r->said++)
		if (r->tap)
			om_tap_line(r->c, stdout, r->said, &r->o[r->said]);
	fflush(stdout);
}

static void
take_outcome(void *arg, size_t k)
{
	struct regress *r = arg;
	om_outcome *o = &r->o[k];
	const om_job *job = &r->job[k];

	o->ms = job->ms;
	if (job->died) {
		o->end = OM_END_FAIL;
		o->why = job->died;
	} else {
		om_regress_case_read(r->c, job->text, job->n, o);
	}
	if (r->baseline.there && !om_cli_has(r->c, "update"))
		om_baseline_compare(r->c, &r->suite, o);
	r->over[k] = true;
	say_what_can_be_said(r);
}

/* ---- Running. ---- */

static om_status
prepare(struct regress *r)
{
	char tmp[TEMPORARY];
	const size_t n = r->suite.ntrial;
	om_arena *mem = r->c->mem;

	r->o = OM_NEWN(mem, om_outcome, n);
	r->job = OM_NEWN(mem, om_job, n);
	r->over = OM_NEWN(mem, bool, n);
	struct om_regress_case_job *arg = OM_NEWN(mem, struct om_regress_case_job, n);
	om_temporary_folder(tmp, sizeof tmp);
	snprintf(r->folder, sizeof r->folder, "%s/onnxmem-XXXXXX", tmp);
	if (!mkdtemp(r->folder)) {
		const int error = errno;
		om_status st = om_fail(r->c->session, OM_IO, "%s: %s", r->folder, strerror(error));
		*r->folder = '\0';
		return st;
	}
	for (size_t k = 0; k < n; k++) {
		const char *folder = om_printf(mem, "%s/%zu", r->folder, k);
		if (mkdir(folder, 0700) != 0)
			return om_fail(r->c->session, OM_IO, "%s: %s", folder, strerror(errno));
		r->o[k] = (om_outcome){.name = r->suite.trial[k].name, .why = "", .note = "", .peak = ""};
		arg[k] = (struct om_regress_case_job){r->c, &r->suite, &r->suite.trial[k], folder};
		r->job[k] = (om_job){.run = om_regress_case_run, .arg = &arg[k]};
	}
	return read_baseline(r);
}

/* In place of a run. */
static om_status
merge(struct regress *r)
{
	OM_TRY(om_outcomes_merge(r->c, &(om_outcomes){&r->suite, r->job}));
	for (size_t k = 0; k < r->suite.ntrial; k++)
		take_outcome(r, k);
	return OM_OK;
}

static om_status
try_models(struct regress *r)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t jobs = cores > 0 ? (uint64_t)cores : 1;

	OM_TRY(om_cli_number(r->c, "jobs", 1, 1024, &jobs));
	jobs = jobs < r->suite.ntrial ? jobs : r->suite.ntrial;
	if (r->tap)
		printf("1..%zu\n", r->suite.ntrial);
	if (om_cli_has(r->c, "merge"))
		return merge(r);
	return om_process_pool_run(r->c->session, r->c->mem, r->job, r->suite.ntrial, (size_t)jobs, r->suite.limit, take_outcome, r, &r->is_job);
}

/* A baseline without a model that passes would have its options alone, which later runs use. */
static bool
is_recorded(const struct regress *r)
{
	for (size_t k = 0; k < r->suite.ntrial; k++)
		if (r->o[k].end == OM_END_PASS)
			return om_cli_has(r->c, "update");
	return false;
}

static om_status
write_files(struct regress *r)
{
	static const om_form forms[] = {{"tap", om_tap_write}, {"junit", om_junit_write}, {"json", om_results_json}, {0}};
	const om_results results = {&r->suite, r->o};
	const om_outcomes outcomes = {&r->suite, r->job};
	const char *path = om_cli_option(r->c, "outcomes");
	bool taken;

	if (path)
		OM_TRY(om_cli_write(r->c, path, om_outcomes_write, &outcomes));
	OM_TRY(om_cli_write_forms(r->c, forms, &results, &taken));
	if (om_cli_has(r->c, "github")) {
		om_github_annotate(r->c, r->tap ? stdout : stderr, &results);
		OM_TRY(om_github_summary(r->c, &results));
	}
	return is_recorded(r) ? om_baseline_write(r->c, &r->suite, r->o, !r->all) : OM_OK;
}

static om_status
conclude(const struct regress *r)
{
	size_t failed = 0, skipped = 0;

	for (size_t k = 0; k < r->suite.ntrial; k++) {
		failed += r->o[k].end == OM_END_FAIL;
		skipped += r->o[k].end == OM_END_SKIP;
	}
	if (r->tap && !r->baseline.there && !om_cli_has(r->c, "update"))
		printf("# nothing was compared: there is no baseline %s; --update makes it\n", r->suite.baseline);
	if (r->tap && om_cli_has(r->c, "update") && !is_recorded(r))
		printf("# no model passed: %s is not written\n", r->suite.baseline);
	if (r->tap)
		printf("# %s %zu of %zu models%s\n", failed ? "FAILED" : "PASSED",
			failed ? failed : r->suite.ntrial - skipped, r->suite.ntrial, skipped ? "; others were left out" : "");
	fflush(stdout);
	return failed ? om_fail(r->c->session, OM_MISMATCH, "%s: %zu of %zu models failed", r->c->arg[0], failed,
		r->suite.ntrial) : OM_OK;
}

static bool
to_output(const om_cli *c, const char *option)
{
	const char *path = om_cli_option(c, option);
	return path && strcmp(path, "-") == 0;
}

static om_status
run(om_cli *c)
{
	struct regress r = {.c = c};

	r.tap = !to_output(c, "tap") && !to_output(c, "junit") && !to_output(c, "json");
	OM_TRY(read_options(&r));
	om_status st = prepare(&r);
	if (st == OM_OK)
		st = try_models(&r);
	if (st == OM_OK && !r.is_job)
		st = write_files(&r);
	if (*r.folder)
		om_remove_folder(r.folder);
	return st == OM_OK && !r.is_job ? conclude(&r) : st;
}

static const om_opt opts[] = {
	{"baseline", "FILE", "baseline to compare with [NAME.baseline.json next to the suite]"},
	{"update", NULL, "update the baseline from the models that pass"},
	{"allow", "PART|SIZE", "growth of a figure since the baseline that passes: a part, as in 1%, or bytes [0]"},
	{"plan-only", NULL, "plan and verify the models, and neither read data nor run them"},
	{"jobs", "N", "number of models to process in parallel [the number of processors]"},
	{"model-timeout", "S", "time limit for each model in seconds; 0: none [600]"},
	{"repeat", "N", "number of timed runs; the best one counts [3]"},
	{"time-factor", "X", "fail if a run takes more than X times as long as the baseline; 0: never [0]"},
	{"shard", "I/N", "try every Nth model alone, from the Ith on: the others are those of other machines"},
	{"outcomes", "FILE", "write the outcomes of the models for --merge", .writes = OM_WRITES_FILE},
	{"merge", "FILE", "run nothing, and take the outcomes from these files, which have those of all models;\n"
		"                            repeatable"},
	{"skip-missing", NULL, "skip models that cannot be fetched"},
	{"github", NULL, "annotate the models in a workflow of GitHub, and append a table to the file that\n"
		"                            GITHUB_STEP_SUMMARY names"},
	{"tap", "FILE", "write the results as TAP; by default TAP goes to standard output", .writes = OM_WRITES_FILE},
	{"junit", "FILE", "write the results as JUnit XML", .writes = OM_WRITES_FILE},
	{"json", "FILE", "write the results as JSON", .writes = OM_WRITES_FILE},
	{0}
};

static const om_opt_group group = {"options", opts};

const om_cmd om_regress_cmd = {
	.name = "regress", .usage = "SUITE [WORD]... [options]", .brief = "run a suite of models and compare with a baseline",
	.text = "SUITE is a file (docs/regress.md) or a folder of models; WORDs select models by name.\n"
		"Each model is planned, the plan is verified in a copy of the model, and the model is run\n"
		"on its test data: with the plan, with --poison and with --no-reuse.  Neither the arena, nor\n"
		"the lower bound, nor the total of a run may grow.  The baseline has the options for shapes\n"
		"and planning that it was made with, and later runs use them.",
	.min_args = 1, .max_args = OM_CMD_ANY,
	.group = {&group, &om_hub_options, &om_shape_options, &om_pass_options}, .run = run,
};
