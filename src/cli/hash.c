/* SPDX-License-Identifier: Apache-2.0 */
/* hash: the digest that binds a plan to its model. */
#include <config.h>

#include "cli/cli.h"

static om_status
run(om_cli *c)
{
	char hex[80];

	OM_TRY(om_model_load(c->session, c->arg[0], &c->model));
	OM_TRY(om_model_digest(c->session, c->model, om_cli_has(c, "full"), hex));
	puts(hex);
	return OM_OK;
}

static const om_opt opts[] = {
	{"full", NULL, "include all weights"},
	{0}
};

static const om_opt_group group = {"options", opts};

const om_cmd om_hash_cmd = {
	.name = "hash", .usage = "MODEL [options]", .brief = "print the digest of a model's graph",
	.text = "The digest covers what a plan depends on: the graph, its types and shapes, and small\n"
		"constants.  Names of nodes, metadata and large weights are not included.",
	.min_args = 1, .max_args = 1, .group = {&group}, .run = run,
};
