/* SPDX-License-Identifier: Apache-2.0 */
/* tile: write a model whose large values are never there as a whole. */
#include <config.h>

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "cli/cli.h"
#include "onnxmem/tiling.h"
#include "report/json.h"
#include "report/report.h"
#include "report/tiling.h"

/* The result: what the pass says, and the plan of the written model. */
struct result {
	const om_tiling *t;
	uint64_t arena, bound;
};

/* ---- Text. ---- */

static void
tell_result(om_cli *c, const char *out, const struct result *r)
{
	const om_tiling *t = r->t;
	char before[32], after[32];

	printf("%s: arena %" PRIu64 " (%s), was %" PRIu64 " (%s); %" PRIu32 " ops, was %" PRIu32 "; work %+.1f %%\n", out,
		r->arena, om_bytes_text(r->arena, after), t->before, om_bytes_text(t->before, before), t->ops_after, t->ops_before,
		om_tiling_added_work(t));
	om_tiling_text(t, r->arena, c->mem, stdout);
}

/* ---- JSON. ---- */

static om_status
write_json(om_cli *c, FILE *to, const void *arg)
{
	const struct result *r = arg;
	const om_tiling *t = r->t;
	json_t *j = json_object();

	json_object_set_new(j, "schema", json_string("onnxmem-tile/1"));
	json_object_set_new(j, "model", om_json_text(c->mem, c->arg[0]));
	json_object_set_new(j, "arena_bytes_before", om_json_number(t->before));
	json_object_set_new(j, "arena_bytes", om_json_number(r->arena));
	json_object_set_new(j, "lower_bound_bytes", om_json_number(r->bound));
	json_object_set_new(j, "ops_before", json_integer(t->ops_before));
	json_object_set_new(j, "ops", json_integer(t->ops_after));
	json_object_set_new(j, "flops_before", json_real(t->flops_before));
	json_object_set_new(j, "flops", json_real(t->flops_after));
	om_tiling_set(j, t, c->mem);
	return om_json_write(c->session, j, JSON_INDENT(2), to);
}

/* ---- All. ---- */

static om_status
read_options(om_cli *c, om_tile_options *o)
{
	const char *join = om_cli_option(c, "join");

	*o = (om_tile_options)OM_TILE_OPTIONS(.budget = 0);
	OM_TRY(om_cli_settings(c));
	OM_TRY(om_cli_number(c, "tile-nodes", 1, 1000000, &o->nodes));
	OM_TRY(om_cli_number(c, "extra-flops", 0, OM_TILE_MOST_EXTRA, &o->extra_flops));
	if (join && strcmp(join, "any") != 0 && strcmp(join, "concat") != 0)
		return om_fail(c->session, OM_USAGE, "option --join requires any or concat, not %s", join);
	o->only_concat = join && strcmp(join, "concat") == 0;
	o->budget = c->budget;
	return OM_OK;
}

static om_status
tile(om_cli *c, struct result *r)
{
	om_tile_options o;

	OM_TRY(read_options(c, &o));
	const om_status st = om_host_tile(c->host, c->prog, &o, c->mem, &r->t);
	om_cli_progress_end(c);
	OM_TRY(st);
	OM_TRY(om_cli_limits(c));
	r->arena = c->prog->plan->arena[0].bytes;
	r->bound = c->prog->plan->arena[0].lower_bound;
	return OM_OK;
}

static om_status
run(om_cli *c)
{
	const char *in = c->arg[0], *out = c->arg[1], *json = om_cli_option(c, "json");
	struct result r;

	OM_TRY(om_cli_own_path(c, in, out));
	OM_TRY(om_cli_load(c, in));
	if (!c->model)
		return om_fail(c->session, OM_USAGE, "%s is a text, not a model", in);
	OM_TRY(om_cli_shapes(c, NULL, true));
	OM_TRY(tile(c, &r));
	om_model_strip(c->model);
	OM_TRY(om_model_update(c->session, c->model, c->prog));
	om_model_drop_unused(c->model, c->prog);
	OM_TRY(om_model_save(c->session, c->model, out));
	om_cli_tell_values(c, out);
	if (json)
		OM_TRY(om_cli_write(c, json, write_json, &r));
	if (!json || strcmp(json, "-") != 0)
		tell_result(c, out, &r);
	return OM_OK;
}

static const om_opt opts[] = {
	{"budget", "SIZE", "the fewest ops with which a run needs no more than SIZE; exit with status 3 if that is\n"
		"                            not reached [the smallest arena]"},
	{"budget-of", "WHAT", "what the budget limits: `total`, arena, weights, inputs and outputs together; or\n"
		"                            `arena` [total]"},
	{"extra-flops", "PERCENT", "values may be computed twice, with at most PERCENT more work: those with readers far apart,\n"
		"                            as of squeeze-and-excitation blocks, and long skips [0]"},
	{"tile-nodes", "N", "limit of the ops of OUT [4000]"},
	{"join", "HOW", "how results become whole: `concat`; `any`, also by ScatterND, which takes less memory\n"
		"                            where the runtime computes it in place [any]"},
	{"json", "FILE", "write what was done as JSON", .writes = OM_WRITES_FILE},
	{0}
};

static const om_opt_group group = {"options", opts};

const om_cmd om_tile_cmd = {
	.name = "tile", .usage = "IN OUT [options]", .brief = "write a model that needs less memory, in bands",
	.text = "OUT computes what IN does, with standard operators alone, for any runtime.  Large values are never there as a\n"
		"whole: their ops run in bands of rows, or of channels or hidden units, and rows that later bands need are kept, so\n"
		"that nothing is computed twice.  Sums over a divided axis are added up in another order; everything else is the\n"
		"same, bit for bit.  The plan of OUT is made and verified; if it is not smaller, OUT is IN, simplified.",
	.min_args = 2, .max_args = 2, .output_arg = 2,
	.group = {&group, &om_shape_options}, .run = run,
};
