/* SPDX-License-Identifier: Apache-2.0 */
/* split: cut a model into parts that each fit a memory. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clean_text.h"
#include "cli/cli.h"
#include "onnxmem/builder.h"
#include "onnxmem/split.h"
#include "report/json.h"
#include "report/report.h"

static const char simplify[] = "inline,shapes,fold,prune";
static const char order[] = "schedule=min-memory,liveness,views,alias-io=declared,inplace,loops";
/* A part is planned as a model of its own. */
static const char plan[] = "shapes,schedule=min-memory,liveness,views,alias-io=declared,inplace,loops,pack";

enum { MOST_TRIES = 12, MOST_PARTS = 10000 };

/* A value that a part takes or gives. */
struct edge {
	const char *name;
	uint64_t bytes;          /* 0: not known before a run */
	int64_t from;            /* the part that computes it; -1: an input of the model */
	bool is_output;          /* of the model */
};

/* A part of the result. */
struct part {
	om_split_part cut;
	const char *file;
	uint64_t arena, weights, total;
	struct edge *in, *out;
	uint32_t nin, nout;
};

/* A search: cuts, and what planning of parts has shown so far. */
struct search {
	om_cli *c;
	om_split_request want;
	om_split_part *planned;
	size_t n, cap;
	om_split best;
	uint64_t largest;        /* bytes of the largest part of `best`, planned */
};

/* ---- Plans of parts. ---- */

static om_status
load_whole(om_cli *c)
{
	OM_TRY(om_cli_load(c, c->arg[0]));
	if (!c->model)
		return om_fail(c->session, OM_USAGE, "%s is a text, not a model", c->arg[0]);
	OM_TRY(om_cli_shapes(c, NULL, true));
	OM_TRY(om_cli_settings(c));
	c->request.io = OM_IO_ARENA;
	c->request.total = 0;
	OM_TRY(om_host_request(c->host, &c->request));
	OM_TRY(om_host_run(c->host, c->prog, om_host_decided(c->host, c->prog, simplify)));
	om_prog_remove_folded(c->prog);        /* what only they read would be a part of no use */
	OM_TRY(om_host_run(c->host, c->prog, "prune"));
	return om_host_run(c->host, c->prog, order);
}

/* Make `p`, a copy of the whole program, the part, and plan it. */
static om_status
plan_part(om_cli *c, om_prog *p, const om_split_part *cut)
{
	OM_TRY(om_prog_extract(c->session, p, cut->first, cut->nop));
	OM_TRY(om_verify(c->session, p));
	OM_TRY(om_host_run(c->host, p, plan));
	return om_plan_verify(c->session, p, p->plan);
}

static om_status
measure(struct search *x, const om_split_part *cut, uint64_t *bytes)
{
	om_prog *p = NULL;

	for (size_t k = 0; k < x->n; k++)
		if (x->planned[k].first == cut->first && x->planned[k].nop == cut->nop) {
			*bytes = x->planned[k].bytes;
			return OM_OK;
		}
	OM_TRY(om_prog_bind(x->c->session, x->c->prog, NULL, &p));
	const om_status st = plan_part(x->c, p, cut);
	if (!st)
		*bytes = om_plan_memory_of(p, p->plan).total;
	om_prog_free(p);
	OM_TRY(st);
	om_split_part part = *cut;
	part.bytes = *bytes;
	OM_PUSH(x->c->mem, x->planned, x->n, x->cap, part);
	return OM_OK;
}

static om_status
find_with_plans(struct search *x, om_split *cuts)
{
	x->want.planned = x->planned;
	x->want.nplanned = (uint32_t)x->n;
	return om_split_find(x->c->session, x->c->prog, &x->want, x->c->mem, cuts);
}

/* An op that is estimated to need too much is planned alone: it may need less. */
static om_status
find(struct search *x, om_split *cuts)
{
	for (;;) {
		const om_status st = find_with_plans(x, cuts);
		const size_t before = x->n;
		uint64_t bytes;
		if (st != OM_BUDGET || cuts->stop == UINT32_MAX)
			return st;
		OM_TRY(measure(x, &(om_split_part){.first = cuts->stop, .nop = 1}, &bytes));
		if (bytes > x->want.budget || x->n == before)
			return find_with_plans(x, cuts);
	}
}

/* Find cuts, and plan their parts; `*largest` is what the largest one takes. */
static om_status
try_cuts(struct search *x, om_split *cuts, uint64_t *largest)
{
	OM_TRY(find(x, cuts));
	*largest = 0;
	for (uint32_t k = 0; k < cuts->n; k++) {
		uint64_t bytes = 0;
		OM_TRY(measure(x, &cuts->part[k], &bytes));
		*largest = bytes > *largest ? bytes : *largest;
		om_cli_bar(x->c, "planning parts", k + 1, cuts->n, "");
	}
	return OM_OK;
}

/* Estimates are corrected by plans until the parts fit or, without a budget, nothing new is found. */
static om_status
find_cuts(struct search *x)
{
	for (int k = 0; k < MOST_TRIES; k++) {
		om_split cuts;
		uint64_t largest;
		const size_t before = x->n;
		const om_status st = try_cuts(x, &cuts, &largest);
		if (st && (!x->best.n || st != OM_BUDGET))
			return st;
		if (st)
			break;
		if (!x->best.n || largest < x->largest || (largest == x->largest && cuts.crossing < x->best.crossing)) {
			x->best = cuts;
			x->largest = largest;
		}
		if (x->n == before || (x->want.budget && largest <= x->want.budget))
			break;
	}
	if (x->want.budget && x->largest > x->want.budget)
		return om_fail(x->c->session, OM_BUDGET, "no cuts were found whose parts take at most %" PRIu64 " bytes: the "
			"largest one of the best cuts takes %" PRIu64, x->want.budget, x->largest);
	return OM_OK;
}

/* ---- Files. ---- */

static int64_t
maker(const struct part *part, uint32_t n, const char *name)
{
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t i = 0; i < part[k].nout; i++)
			if (strcmp(part[k].out[i].name, name) == 0)
				return k;
	return -1;
}

static struct edge *
edges(om_cli *c, om_value *const *v, uint32_t n)
{
	struct edge *list = OM_NEWN(c->mem, struct edge, n);

	for (uint32_t k = 0; k < n; k++)
		list[k] = (struct edge){om_strdup(c->mem, v[k]->name), om_value_bytes(v[k]), -1, false};
	return list;
}

static void
note_part(om_cli *c, struct part *part, uint32_t k)
{
	const om_block *b = c->prog->first;
	const om_plan_memory m = om_plan_memory_of(c->prog, c->prog->plan);

	part[k].arena = m.arenas;
	part[k].weights = m.weights;
	part[k].total = m.total;
	part[k].in = edges(c, b->param, part[k].nin = b->nparam);
	part[k].out = edges(c, b->result, part[k].nout = b->nresult);
	for (uint32_t i = 0; i < part[k].nin; i++)
		part[k].in[i].from = maker(part, k, part[k].in[i].name);
}

/* Names of the outputs of the model. */
static const char **
output_names(om_cli *c, uint32_t *n)
{
	const om_block *b = c->prog->first;
	const char **name = OM_NEWN(c->mem, const char *, b->nresult);

	for (*n = 0; *n < b->nresult; ++*n)
		name[*n] = om_strdup(c->mem, b->result[*n]->name);
	return name;
}

static om_status
write_part(om_cli *c, struct part *part, uint32_t k)
{
	om_cli_unload(c);
	OM_TRY(load_whole(c));
	OM_TRY(plan_part(c, c->prog, &part[k].cut));
	note_part(c, part, k);
	om_model_strip(c->model);
	OM_TRY(om_model_update(c->session, c->model, c->prog));
	om_model_drop_unused(c->model, c->prog);
	return om_model_save(c->session, c->model, om_printf(c->mem, "%s/%s", c->arg[1], part[k].file));
}

/* ---- The list of parts. ---- */

struct result {
	const struct part *part;
	uint32_t n;
	uint64_t budget;
};

/* Of a value: null if data decide its size. */
static json_t *
size_json(const struct edge *e)
{
	return e->bytes ? om_json_number(e->bytes) : json_null();
}

static json_t *
inputs_json(om_cli *c, const struct part *part)
{
	json_t *list = json_array();

	for (uint32_t k = 0; k < part->nin; k++) {
		json_t *j = json_object();
		json_object_set_new(j, "name", om_json_text(c->mem, part->in[k].name));
		json_object_set_new(j, "bytes", size_json(&part->in[k]));
		json_object_set_new(j, "from", part->in[k].from < 0 ? json_null() : json_integer(part->in[k].from));
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *
readers_json(const struct result *r, uint32_t k, const char *name)
{
	json_t *list = json_array();

	for (uint32_t i = k + 1; i < r->n; i++)
		for (uint32_t in = 0; in < r->part[i].nin; in++)
			if (r->part[i].in[in].from == k && strcmp(r->part[i].in[in].name, name) == 0)
				json_array_append_new(list, json_integer(i));
	return list;
}

static json_t *
outputs_json(om_cli *c, const struct result *r, uint32_t k)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < r->part[k].nout; i++) {
		const struct edge *e = &r->part[k].out[i];
		json_t *j = json_object();
		json_object_set_new(j, "name", om_json_text(c->mem, e->name));
		json_object_set_new(j, "bytes", size_json(e));
		json_object_set_new(j, "to", readers_json(r, k, e->name));
		json_object_set_new(j, "is_output", json_boolean(e->is_output));
		json_array_append_new(list, j);
	}
	return list;
}

static om_status
write_json(om_cli *c, FILE *to, const void *arg)
{
	const struct result *r = arg;
	json_t *j = json_object(), *parts = json_array();

	for (uint32_t k = 0; k < r->n; k++) {
		const struct part *part = &r->part[k];
		json_t *p = json_object();
		json_object_set_new(p, "file", om_json_text(c->mem, part->file));
		json_object_set_new(p, "ops", json_integer(part->cut.nop));
		json_object_set_new(p, "total_bytes", om_json_number(part->total));
		json_object_set_new(p, "arena_bytes", om_json_number(part->arena));
		json_object_set_new(p, "weight_bytes", om_json_number(part->weights));
		json_object_set_new(p, "crossing_bytes", om_json_number(part->cut.crossing));
		json_object_set_new(p, "inputs", inputs_json(c, part));
		json_object_set_new(p, "outputs", outputs_json(c, r, k));
		json_array_append_new(parts, p);
	}
	json_object_set_new(j, "schema", json_string("onnxmem-parts/1"));
	json_object_set_new(j, "model", om_json_text(c->mem, c->arg[0]));
	json_object_set_new(j, "budget_bytes", r->budget ? om_json_number(r->budget) : json_null());
	json_object_set_new(j, "parts", parts);
	return om_json_write(c->session, j, JSON_INDENT(2), to);
}

/* Outputs of a part whose sizes data decide are not in its figures. */
static void
tell_unknown(om_cli *c, const struct part *part)
{
	for (uint32_t k = 0; k < part->nout; k++)
		if (!part->out[k].bytes)
			printf("    not counted: %s, whose size is not known before a run\n", om_clean_text(c->mem, part->out[k].name));
}

static void
tell_result(om_cli *c, const struct result *r, uint64_t whole)
{
	char a[32], b[32], x[32];

	printf("%s: %" PRIu32 " part%s; the whole takes %" PRIu64 " bytes (%s)\n", om_clean_text(c->mem, c->arg[1]), r->n, r->n == 1 ? "" : "s", whole,
		om_bytes_text(whole, a));
	for (uint32_t k = 0; k < r->n; k++) {
		const struct part *part = &r->part[k];
		printf("  %s: %" PRIu32 " ops, %" PRIu64 " bytes (%s: arena %s, weights %s)", part->file, part->cut.nop, part->total,
			om_bytes_text(part->total, x), om_bytes_text(part->arena, a), om_bytes_text(part->weights, b));
		if (k + 1 < r->n)
			printf("; %" PRIu64 " bytes cross the cut", part->cut.crossing);
		printf("\n");
		tell_unknown(c, part);
	}
}

/* ---- All. ---- */

static om_status
read_options(om_cli *c, om_split_request *want)
{
	const char *budget = om_cli_option(c, "budget");
	uint64_t parts = 0;

	*want = OM_SPLIT_REQUEST();
	OM_TRY(om_cli_number(c, "parts", 1, MOST_PARTS, &parts));
	want->parts = (uint32_t)parts;
	if (budget)
		OM_TRY(om_cli_size(c, "option --budget", budget, &want->budget));
	if (!parts && !want->budget)
		return om_fail(c->session, OM_USAGE, "--parts N or --budget SIZE is required");
	return OM_OK;
}

/* What the model takes in one part. */
static om_status
measure_whole(struct search *x, uint64_t *bytes)
{
	om_split one;
	const om_split_request want = {.size = sizeof want, .parts = 1, .budget = UINT64_MAX};

	OM_TRY(om_split_find(x->c->session, x->c->prog, &want, x->c->mem, &one));
	return measure(x, &one.part[0], bytes);
}

static om_status
write_parts(struct search *x, struct result *r)
{
	om_cli *c = x->c;
	struct part *part = OM_NEWN(c->mem, struct part, x->best.n);
	uint32_t nout;
	const char **out = output_names(c, &nout);

	if (mkdir(c->arg[1], 0777) != 0 && errno != EEXIST)
		return om_fail(c->session, OM_IO, "%s: %s", c->arg[1], strerror(errno));
	for (uint32_t k = 0; k < x->best.n; k++) {
		part[k].cut = x->best.part[k];
		part[k].file = om_printf(c->mem, "part-%" PRIu32 ".onnx", k);
		OM_TRY(write_part(c, part, k));
		for (uint32_t i = 0; i < part[k].nout; i++)
			for (uint32_t o = 0; o < nout; o++)
				part[k].out[i].is_output |= strcmp(part[k].out[i].name, out[o]) == 0;
	}
	*r = (struct result){part, x->best.n, x->want.budget};
	return om_cli_write(c, om_printf(c->mem, "%s/parts.json", c->arg[1]), write_json, r);
}

static om_status
run(om_cli *c)
{
	struct search x = {.c = c};
	struct result r;
	uint64_t whole = 0;

	OM_TRY(read_options(c, &x.want));
	OM_TRY(om_cli_host(c));
	OM_TRY(load_whole(c));
	OM_TRY(measure_whole(&x, &whole));
	OM_TRY(find_cuts(&x));
	OM_TRY(write_parts(&x, &r));
	om_cli_tell_values(c, c->arg[1]);
	tell_result(c, &r, whole);
	return OM_OK;
}

static const om_opt opts[] = {
	{"parts", "N", "exactly N parts; the largest takes as little as possible"},
	{"budget", "SIZE", "what each part may take: its arena, which has its inputs and outputs, and its weights; the\n"
		"                            fewest parts, unless --parts is given too; exit with status 3 if there are none"},
	{0}
};

static const om_opt_group group = {"options", opts};

const om_cmd om_split_cmd = {
	.name = "split", .usage = "MODEL DIR --parts N|--budget SIZE [options]",
	.brief = "cut a model into parts that each fit a memory",
	.text = "DIR/part-0.onnx, part-1.onnx, ... compute together what MODEL does: each reads inputs of the model and outputs of\n"
		"earlier parts, by their names.  DIR/parts.json lists them: what each takes, which part makes each input, which\n"
		"parts read each output.  Of all cuts that meet the request, those are taken over which the fewest bytes go; every\n"
		"part is planned, and its plan verified.",
	.min_args = 2, .max_args = 2, .group = {&group, &om_shape_options}, .run = run,
};
