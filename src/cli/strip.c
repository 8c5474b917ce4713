/* SPDX-License-Identifier: Apache-2.0 */
/* strip: remove the plan from a model. */
#include <config.h>

#include "cli/cli.h"

/* The file before it was planned; false with a warning if it was changed since. */
static om_status
restore(om_cli *c, const char *in, const char *out, bool *done)
{
	const om_status st = om_model_save_original(c->session, c->model, out);

	*done = st == OM_OK;
	if (*done)
		om_info(c->session, "%s: the file before it was planned", out);
	if (st != OM_STALE && st != OM_INVALID)
		return st;
	om_warn(c->session, "%s", om_message(c->session));
	om_warn(c->session, "%s: only the plan is removed, the graph stays as it was planned", in);
	return OM_OK;
}

static om_status
run(om_cli *c)
{
	const char *in = c->arg[0], *out = c->arg[1];
	bool done = false;

	OM_TRY(om_cli_own_path(c, in, out));
	OM_TRY(om_model_load(c->session, in, &c->model));
	if (om_model_has_original(c->model) && !om_cli_option(c, "keep-graph"))
		OM_TRY(restore(c, in, out, &done));
	if (done)
		return OM_OK;
	const size_t n = om_model_strip(c->model);
	OM_TRY(om_model_save(c->session, c->model, out));
	om_info(c->session, "%s: %zu entries taken away", out, n);
	return OM_OK;
}

static const om_opt opts[] = {
	{"keep-graph", NULL, "remove metadata only: nodes stay in the order of the plan, functions inlined"},
	{0}
};

static const om_opt_group group = {"options", opts};

const om_cmd om_strip_cmd = {
	.name = "strip", .usage = "IN OUT [options]", .brief = "remove the plan from a model",
	.text = "OUT is the file that the plan was made for, byte for byte.  If another program changed IN\n"
		"since, or it was planned with --no-original, OUT is IN without the metadata that\n"
		"`onnxmem plan` writes.",
	.min_args = 2, .max_args = 2, .output_arg = 2, .group = {&group}, .run = run,
};
