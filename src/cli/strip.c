/* strip: remove the plan from a model. */
#include <config.h>

#include "cli/cli.h"

static om_status
run(om_cli *c)
{
	const char *in = c->arg[0], *out = c->arg[1];

	OM_TRY(om_cli_own_path(c, in, out));
	OM_TRY(om_model_load(c->session, in, &c->model));
	const size_t n = om_model_strip(c->model);
	OM_TRY(om_model_save(c->session, c->model, out));
	om_info(c->session, "%s: %zu entries taken away", out, n);
	return OM_OK;
}

const om_cmd om_strip_cmd = {
	.name = "strip", .usage = "IN OUT", .brief = "remove the plan from a model",
	.text = "OUT is IN without the metadata that `onnxmem plan` writes.",
	.min_args = 2, .max_args = 2, .run = run,
};
