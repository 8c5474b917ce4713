/* SPDX-License-Identifier: Apache-2.0 */
/* tune: choose by measuring how layers are computed on this machine. */
#include <config.h>

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/read_back.h"
#include "onnxmem/tune.h"
#include "report/json.h"
#include "report/report.h"

enum { KEY_WIDTH = 56 };

/* ---- Text. ---- */

static const om_tune_choice *
chosen_of(const om_tuned_layer *l)
{
	return &l->choice[l->chosen];
}

/* A column of a name and its time. */
static const char *
choice_text(om_cli *c, const om_tune_choice *is)
{
	return is->ms < 0 ? om_printf(c->mem, "%-13s         -", is->name) : om_printf(c->mem, "%-13s %9.3f", is->name, is->ms);
}

static void
tell_layers(om_cli *c, const om_tuned *t)
{
	const unsigned width = om_cli_width(stdout);

	if (!t->n)
		return;
	om_cli_line(c, width, "%-*s %3s  %-13s %9s  %-13s %9s", KEY_WIDTH, "layer", "ops", "cost model", "ms", "chosen", "ms");
	for (uint32_t k = 0; k < t->n; k++) {
		const om_tuned_layer *l = &t->layer[k];
		om_cli_line(c, width, "%-*s %3" PRIu32 "  %s  %s", KEY_WIDTH, l->key, l->ops, choice_text(c, &l->choice[0]),
			l->chosen ? choice_text(c, chosen_of(l)) : "=");
	}
}

static void
tell_plan(const char *name, const om_tuned_plan *p)
{
	char arenas[32], weights[32], total[32];

	printf("%-11s %.3f ms; arenas %" PRIu64 " (%s), weights %" PRIu64 " (%s), total %" PRIu64 " (%s)\n", name, p->ms,
		p->memory.arenas, om_bytes_text(p->memory.arenas, arenas), p->memory.weights, om_bytes_text(p->memory.weights, weights),
		p->memory.total, om_bytes_text(p->memory.total, total));
}

static void
tell_result(om_cli *c, const om_tuned *t)
{
	uint32_t changed = 0;

	for (uint32_t k = 0; k < t->n; k++)
		changed += t->layer[k].chosen != 0;
	printf("%s: %" PRIu32 " of %" PRIu32 " kinds of layers are computed in another way than by the cost model; %s, %" PRIu32
		" thread%s\n", c->arg[0], changed, t->n, t->isa, t->threads, t->threads == 1 ? "" : "s");
	tell_plan("cost model", &t->usual);
	tell_plan("chosen", &t->chosen);
	if (t->is_kept)
		printf("the choices of the cost model are kept: no others were faster in whole runs\n");
	if (t->unmeasured)
		printf("%" PRIu32 " choices were not measured: the time ended (--seconds)\n", t->unmeasured);
	tell_layers(c, t);
}

/* ---- JSON. ---- */

static json_t *
json_of_choice(om_cli *c, const om_tune_choice *is)
{
	json_t *j = json_object();

	json_object_set_new(j, "choice", om_json_text(c->mem, is->name));
	if (is->ms >= 0)
		json_object_set_new(j, "ms", json_real(is->ms));
	json_object_set_new(j, "weight_bytes", om_json_number(is->weights));
	json_object_set_new(j, "scratch_bytes", om_json_number(is->scratch));
	json_object_set_new(j, "from_cache", json_boolean(is->was_known));
	return j;
}

static json_t *
json_of_layer(om_cli *c, const om_tuned_layer *l)
{
	json_t *j = json_object(), *choices = json_array();

	json_object_set_new(j, "layer", om_json_text(c->mem, l->key));
	json_object_set_new(j, "ops", json_integer(l->ops));
	json_object_set_new(j, "chosen", om_json_text(c->mem, chosen_of(l)->name));
	for (uint32_t k = 0; k < l->nchoice; k++)
		json_array_append_new(choices, json_of_choice(c, &l->choice[k]));
	json_object_set_new(j, "choices", choices);
	return j;
}

static json_t *
json_of_plan(const om_tuned_plan *p)
{
	json_t *j = json_object();

	json_object_set_new(j, "ms", json_real(p->ms));
	json_object_set_new(j, "arena_bytes", om_json_number(p->memory.arenas));
	json_object_set_new(j, "weight_bytes", om_json_number(p->memory.weights));
	json_object_set_new(j, "total_bytes", om_json_number(p->memory.total));
	return j;
}

static om_status
write_json(om_cli *c, FILE *to, const void *arg)
{
	const om_tuned *t = arg;
	json_t *j = json_object(), *layers = json_array();

	json_object_set_new(j, "schema", json_string("onnxmem-tune/1"));
	json_object_set_new(j, "model", om_json_text(c->mem, c->arg[0]));
	json_object_set_new(j, "isa", json_string(t->isa));
	json_object_set_new(j, "threads", json_integer(t->threads));
	json_object_set_new(j, "cost_model", json_of_plan(&t->usual));
	json_object_set_new(j, "chosen", json_of_plan(&t->chosen));
	json_object_set_new(j, "kept", json_boolean(t->is_kept));
	json_object_set_new(j, "unmeasured", json_integer(t->unmeasured));
	for (uint32_t k = 0; k < t->n; k++)
		json_array_append_new(layers, json_of_layer(c, &t->layer[k]));
	json_object_set_new(j, "layers", layers);
	return om_json_write(c->session, j, JSON_INDENT(2), to);
}

/* ---- All. ---- */

static om_status
read_options(om_cli *c, om_tune_options *o)
{
	*o = (om_tune_options)OM_TUNE_OPTIONS(.cache = om_cli_option(c, "cache"), .has_slowdown = om_cli_has(c, "slowdown"));
	if (om_cli_has(c, "passes") || c->device)
		return om_fail(c->session, OM_USAGE, "tune plans for the built-in executor on the processor: leave out --%s",
			c->device ? "device" : "passes");
	OM_TRY(om_cli_float(c, "seconds", &o->seconds));
	OM_TRY(om_cli_float(c, "slowdown", &o->slowdown));
	o->total = c->request.total;
	o->arena = c->budget;
	return OM_OK;
}

/* c->prog is the tuned copy while its plan is written. */
static om_status
write_plan(om_cli *c, om_prog *planned, const char *out)
{
	om_prog *bound = c->prog;

	c->prog = planned;
	om_status st = om_cli_limits(c);
	if (st == OM_OK && out)
		st = om_model_annotate(c->session, c->model, c->prog, OM_ANNOTATE_MODEL | OM_ANNOTATE_AUTO | OM_ANNOTATE_ORIGINAL);
	if (st == OM_OK && out)
		st = om_cli_read_back(c, NULL);
	if (st == OM_OK && out)
		st = om_model_save(c->session, c->model, out);
	c->prog = bound;
	return st;
}

static om_status
tune(om_cli *c, const char *out, const om_tuned **t)
{
	om_tune_options o;
	om_prog *planned;

	OM_TRY(om_cli_settings(c));
	OM_TRY(read_options(c, &o));
	const om_status tuned = om_host_tune(c->host, c->prog, &o, c->mem, &planned, t);
	om_cli_progress_end(c);
	OM_TRY(tuned);
	const om_status st = write_plan(c, planned, out);
	om_prog_free(planned);
	return st;
}

static om_status
run(om_cli *c)
{
	const char *in = c->arg[0], *out = c->narg > 1 ? c->arg[1] : NULL, *json = om_cli_option(c, "json");
	const om_tuned *t;

	if (out)
		OM_TRY(om_cli_own_path(c, in, out));
	OM_TRY(om_cli_load(c, in));
	if (out && !c->model)
		return om_fail(c->session, OM_USAGE, "%s is a text: there is no model to write the plan into", in);
	OM_TRY(om_cli_shapes(c, NULL, true));
	OM_TRY(tune(c, out, &t));
	if (json)
		OM_TRY(om_cli_write(c, json, write_json, t));
	if ((!json || strcmp(json, "-") != 0) && !c->quiet)
		tell_result(c, t);
	return OM_OK;
}

static const om_opt opts[] = {
	{"seconds", "N", "time for all measurements together [10]"},
	{"slowdown", "PERCENT", "choose what takes the least memory while layers take at most PERCENT longer than the fastest\n"
		"                            choices [the fastest ones; with --budget, of those that need no more than SIZE]"},
	{"cache", "DIR", "read times that are known and write all times in this folder, where `run --cache` finds\n"
		"                            what was chosen"},
	{"json", "FILE", "write all times as JSON", .writes = OM_WRITES_FILE},
	{0}
};

static const om_opt_group group = {"options", opts};

const om_cmd om_tune_cmd = {
	.name = "tune", .usage = "IN [OUT] [options]", .brief = "choose the fastest kernels of this machine by measuring",
	.text = "Convolutions and products with constant weights are computed by one of several algorithms, in blocks of one of several\n"
		"sizes.  The model runs with each of them on elements that are made up, layers are timed in these runs, and the best\n"
		"ones are chosen; a cost model decides without that.  OUT is IN with the tuned plan, which `run` uses on every\n"
		"machine.  Results differ from those of the cost model as rounding does.",
	.target = OM_TARGET_CPU, .min_args = 1, .max_args = 2, .output_arg = 2,
	.group = {&group, &om_shape_options, &om_pass_options}, .run = run,
};
