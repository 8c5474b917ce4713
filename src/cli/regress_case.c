/* One model of a suite, in a process of its own.
 *
 * For each set of data: plan for its shapes; write the plan into a copy of the
 * model; read that copy, verify the plan in it, run it, compare with what the set
 * expects; run it again with memory poisoned, and without the plan: both have to
 * give the same bits.  A model without data is run on numbers by a formula. */
#include <config.h>

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/data.h"
#include "cli/model_source.h"
#include "cli/suite.h"
#include "onnxmem/executor.h"
#include "report/report.h"

struct trial {
	om_cli *c;               /* of the command: what is asked of all models */
	const om_suite *suite;
	const om_regress_case *t;
	const char *folder;
	const char *path;        /* of the model */
	const char **data;
	size_t ndata;
	om_figures now;
	bool absent;             /* it could not be fetched */
};

/* What options a model of a suite may have. */
static const om_cmd options_of_a_model = {
	.name = "regress", .max_args = 0, .group = {&om_data_options, &om_shape_options, &om_pass_options},
};

/* ---- A command line of its own. ---- */

static void
set(om_cli *c, const om_opt_group *group, const char *name, const char *value)
{
	for (const om_opt *o = group->opts; o->name; o++)
		if (strcmp(o->name, name) == 0)
			OM_PUSH(c->mem, c->set, c->nset, c->capset, ((om_set){o, value}));
}

/* What the command was asked, then what the suite asks for this model. */
static om_status
begin(struct trial *t, om_cli *c)
{
	const char **word = OM_NEWN(t->c->mem, const char *, t->t->noption + 2);

	*c = (om_cli){.session = t->c->session, .mem = t->c->mem, .cmd = &options_of_a_model, .quiet = true};
	for (size_t k = 0; k < t->c->nset; k++)
		OM_PUSH(c->mem, c->set, c->nset, c->capset, t->c->set[k]);
	word[0] = "regress";
	if (t->t->noption)
		memcpy(word + 1, t->t->option, t->t->noption * sizeof *word);
	OM_TRY(om_cli_words(c, (int)t->t->noption + 1, word));
	return c->narg == 0 ? OM_OK : om_fail(c->session, OM_USAGE, "%s is not an option", c->arg[0]);
}

static void
end(om_cli *c)
{
	om_prog_free(c->prog);
	om_model_free(c->model);
	om_host_free(c->host);
	c->prog = NULL;
	c->model = NULL;
	c->host = NULL;
}

/* ---- The model. ---- */

static om_status
fetch(struct trial *t)
{
	const om_hub_model *model;
	om_manifest m = {0};
	om_hub h;

	OM_TRY(om_cli_hub(t->c, &h, &m));
	h.progress = NULL;
	OM_TRY(om_manifest_find(t->c->session, t->c->mem, &m, t->t->fetch, t->t->opset, &model));
	const bool data = t->t->with_data && model->data.path;
	om_status st = om_hub_fetch(&h, data ? &model->data : &model->model, &t->path);
	t->absent = om_status_exit(st) == 6;
	OM_TRY(st);
	if (data)
		OM_TRY(om_hub_unpack(&h, t->path, &t->path));
	char *full = realpath(t->path, NULL);
	t->path = om_strdup(t->c->mem, full ? full : t->path);
	free(full);
	if (data)
		t->path = om_suite_model_below(t->c, t->path);
	return t->path ? OM_OK : om_fail(t->c->session, OM_IO, "the archive of %s has no model", t->t->fetch);
}

static om_status
find(struct trial *t)
{
	t->path = t->t->path;
	if (t->t->fetch)
		OM_TRY(fetch(t));
	if (chdir(t->suite->folder) != 0)
		return om_fail(t->c->session, OM_IO, "%s: no folder", t->suite->folder);
	t->data = t->t->data;
	t->ndata = t->t->ndata;
	return t->ndata || (t->t->fetch && !t->t->with_data) ? OM_OK
	     : om_suite_data(t->c, t->path, &t->data, &t->ndata);
}

/* ---- Planning. ---- */

struct run {
	om_tensor *in, *want;    /* by parameter, by result */
	void **owned;
	om_tensor *first;        /* results of the planned run, kept */
	double best_ms;
};

static om_status
measure(struct trial *t, om_cli *c)
{
	const om_report *r = om_report_new(c->prog, t->path, c->mem);

	t->now.known = true;
	t->now.arena = r->arena_bytes;
	t->now.bound = r->lower_bound_bytes;
	t->now.naive = r->naive_bytes;
	return c->model ? om_model_digest(c->session, c->model, false, t->now.digest) : OM_OK;
}

/* The plan as it travels: `c` becomes the copy of the model that carries it. */
static om_status
carry(struct trial *t, om_cli *c)
{
	const char *copy = om_printf(c->mem, "%s/planned.onnx", t->folder);

	if (!c->model)
		return om_plan_verify(c->session, c->prog, c->prog->plan);
	OM_TRY(om_model_annotate(c->session, c->model, c->prog, OM_ANNOTATE_MODEL | OM_ANNOTATE_AUTO));
	OM_TRY(om_model_save(c->session, c->model, copy));
	end(c);
	OM_TRY(om_cli_load(c, copy));
	OM_TRY(om_model_read_plan(c->session, c->model, c->prog, NULL));
	return om_plan_verify(c->session, c->prog, c->prog->plan);
}

static om_status
plan(struct trial *t, om_cli *c, const om_tensor *in, bool first)
{
	OM_TRY(om_data_shapes(c, in));
	OM_TRY(om_cli_passes(c, om_default_pipeline()));
	if (!(c->prog->has & OM_HAS_PLAN))
		return om_fail(c->session, OM_USAGE, "the passes make no plan");
	OM_TRY(om_plan_verify(c->session, c->prog, c->prog->plan));
	if (first)
		OM_TRY(measure(t, c));
	return carry(t, c);
}

/* ---- Running. ---- */

static om_status
execute(om_cli *c, const struct run *r, const om_exec_options *o, uint64_t repeat, om_exec **out, double *best_ms)
{
	const om_block *graph = c->prog->first;

	OM_TRY(om_exec_new(c->session, c->prog, o->no_reuse ? NULL : c->prog->plan, o, out));
	for (uint32_t k = 0; k < graph->nparam; k++)
		if (r->in[k].type != OM_UNDEFINED)
			OM_TRY(om_exec_input(*out, k, &r->in[k]));
	for (uint64_t k = 0; k < repeat; k++) {
		const double start = om_now_ms();
		OM_TRY(om_exec_run(*out));
		const double ms = om_now_ms() - start;
		*best_ms = k == 0 ? ms : fmin(ms, *best_ms);
	}
	return OM_OK;
}

/* Against `want`, result by result; those that are not there are not compared. */
static om_status
compare(om_cli *c, const om_exec *e, const om_tensor *want, om_tolerance tol)
{
	const om_block *graph = c->prog->first;

	for (uint32_t k = 0; k < graph->nresult; k++)
		if (want[k].type != OM_UNDEFINED)
			OM_TRY(om_data_compare(c, graph->result[k]->name, &graph->result[k]->type,
				om_exec_result(e, k), &want[k], tol));
	return OM_OK;
}

/* Another way to run it has to give what the planned run gave. */
static om_status
same_again(om_cli *c, const struct run *r, const om_exec *planned, const om_exec_options *o, const char *how)
{
	const om_block *graph = c->prog->first;
	om_exec *other = NULL;
	double ms;

	om_status st = execute(c, r, o, 1, &other, &ms);
	for (uint32_t k = 0; st == OM_OK && k < graph->nresult; k++) {
		const om_tensor *a = om_exec_result(planned, k), *b = om_exec_result(other, k);
		if (a && b && a->type != OM_UNDEFINED)
			st = om_data_compare(c, graph->result[k]->name, &graph->result[k]->type, a, b,
				(om_tolerance){0, 0});
	}
	om_exec_free(other);
	return st == OM_OK ? st : om_note(c->session, st, "comparing the planned run with one %s", how);
}

static om_status
run_all_ways(struct trial *t, om_cli *c, struct run *r)
{
	om_exec *planned = NULL;

	om_status st = execute(c, r, &(om_exec_options){0}, t->suite->repeat, &planned, &r->best_ms);
	if (st == OM_OK)
		st = compare(c, planned, r->want, (om_tolerance){t->t->rtol, t->t->atol});
	if (st == OM_OK)
		st = same_again(c, r, planned, &(om_exec_options){.poison = true}, "with poison");
	if (st == OM_OK)
		st = same_again(c, r, planned, &(om_exec_options){.no_reuse = true}, "without reuse");
	om_exec_free(planned);
	return st;
}

/* ---- One set of data, or none. ---- */

static om_status
try_loaded(struct trial *t, om_cli *c, struct run *r, const char *data, bool first)
{
	const bool by_formula = !data && !om_cli_has(c, "random");

	if (data)
		set(c, &om_data_options, "data", data);
	if (by_formula)
		set(c, &om_data_options, "formula", "");
	OM_TRY(om_data_read(c, r->in));
	OM_TRY(plan(t, c, r->in, first));
	if (t->t->plan_only)
		return OM_OK;
	if (data)
		OM_TRY(om_data_expected(c, data, r->want));
	OM_TRY(om_data_fill(c, r->in, r->owned));
	OM_TRY(run_all_ways(t, c, r));
	if (first)
		t->now.best_ms = r->best_ms;
	t->now.datasets += data != NULL;
	return OM_OK;
}

static om_status
try_set(struct trial *t, const char *data, bool first)
{
	struct run r = {0};
	om_cli c;

	OM_TRY(begin(t, &c));
	om_status st = om_cli_load(&c, t->path);
	if (st == OM_OK) {
		const uint32_t nparam = c.prog->first->nparam;
		r.in = OM_NEWN(c.mem, om_tensor, nparam);
		r.owned = OM_NEWN(c.mem, void *, nparam);
		r.want = OM_NEWN(c.mem, om_tensor, c.prog->first->nresult);
		st = try_loaded(t, &c, &r, data, first);
		for (uint32_t k = 0; k < nparam; k++)
			free(r.owned[k]);
	}
	end(&c);
	return st == OM_OK || !data ? st : om_note(t->c->session, st, "trying %s", data);
}

static om_status
try_all(struct trial *t)
{
	OM_TRY(find(t));
	if (t->ndata == 0)
		return try_set(t, NULL, true);
	for (size_t k = 0; k < t->ndata; k++)
		OM_TRY(try_set(t, t->data[k], k == 0));
	return OM_OK;
}

/* ---- What came out, on its way to the parent. ---- */

void
om_regress_case_run(void *arg, int to)
{
	struct om_regress_case_job *job = arg;
	struct trial t = {.c = job->c, .suite = job->suite, .t = job->trial, .folder = job->folder};

	om_session_log(t.c->session, NULL, NULL, OM_LOG_QUIET);
	const om_status st = try_all(&t);
	json_t *j = json_pack("{s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:f, s:s}",
		"why", st == OM_OK ? "" : om_clean_text(t.c->mem, om_message(t.c->session)), "absent", t.absent,
		"known", t.now.known, "arena", (json_int_t)t.now.arena, "bound", (json_int_t)t.now.bound,
		"naive", (json_int_t)t.now.naive, "datasets", (json_int_t)t.now.datasets, "best_ms", t.now.best_ms,
		"digest", t.now.digest);
	if (!j || json_dumpfd(j, to, JSON_COMPACT) != 0)
		_exit(1);
	json_decref(j);
}

static uint64_t
number(const json_t *j, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(j, key));
}

void
om_regress_case_read(om_cli *c, const char *text, size_t n, om_outcome *o)
{
	json_t *j = json_loadb(text ? text : "", n, 0, NULL);
	const char *why = json_string_value(json_object_get(j, "why"));
	const char *digest = json_string_value(json_object_get(j, "digest"));

	o->why = why ? om_strdup(c->mem, why) : "nothing came out of its process";
	o->end = *o->why ? OM_END_FAIL : OM_END_PASS;
	if (json_is_true(json_object_get(j, "absent")) && om_cli_has(c, "skip-missing"))
		o->end = OM_END_SKIP;
	o->now.known = json_is_true(json_object_get(j, "known"));
	o->now.arena = number(j, "arena");
	o->now.bound = number(j, "bound");
	o->now.naive = number(j, "naive");
	o->now.datasets = number(j, "datasets");
	o->now.best_ms = json_number_value(json_object_get(j, "best_ms"));
	snprintf(o->now.digest, sizeof o->now.digest, "%s", digest ? digest : "");
	json_decref(j);
}
