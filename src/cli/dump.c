/* SPDX-License-Identifier: Apache-2.0 */
/* dump: a model as text, before or after passes. */
#include <config.h>

#include "cli/cli.h"

static om_status
run(om_cli *c)
{
	unsigned flags = 0;

	OM_TRY(om_cli_load(c, c->arg[0]));
	OM_TRY(om_cli_shapes(c, NULL, false));
	OM_TRY(om_cli_passes(c, ""));
	if (om_cli_has(c, "live")) {
		flags |= OM_DUMP_LIVE;
		if (!(c->prog->has & OM_HAS_LIVE))
			OM_TRY(om_host_run(c->host, c->prog, "liveness"));
	}
	if (om_cli_has(c, "all-data"))
		flags |= OM_DUMP_ALL_DATA;
	om_dump(c->prog, stdout, flags);
	return OM_OK;
}

static const om_opt opts[] = {
	{"live", NULL, "show the values that are live before and after each op"},
	{"all-data", NULL, "also write the elements of large constants"},
	{0}
};

static const om_opt_group group = {"options", opts};

const om_cmd om_dump_cmd = {
	.name = "dump", .usage = "MODEL [options]", .brief = "write a model as text",
	.text = "MODEL is an ONNX file, or a text file written by this command (NAME.ir).\n"
		"No passes run unless --passes is given.",
	.min_args = 1, .max_args = 1,
	.group = {&group, &om_shape_options, &om_pass_options}, .run = run,
};
