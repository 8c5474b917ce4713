/* SPDX-License-Identifier: Apache-2.0 */
/* annotate: write the plan into the model that the program was imported from.
 *
 * The model in memory changes, not the program; the caller saves it. */
#include <config.h>

#include "onnxmem/onnx.h"
#include "onnxmem/pass.h"

static const struct {
	const char *name;
	unsigned how;
} ways[] = {
	{"model", OM_ANNOTATE_MODEL},
	{"value", OM_ANNOTATE_MODEL | OM_ANNOTATE_VALUE},
	{"auto", OM_ANNOTATE_MODEL | OM_ANNOTATE_AUTO},
};

static om_status
run(om_run *r, om_prog *p)
{
	const char *how = om_option(r, "level");
	size_t k = 0, n = sizeof ways / sizeof ways[0];

	while (k < n && strcmp(ways[k].name, how) != 0)
		k++;
	if (k == n)
		return om_fail(r->session, OM_USAGE, "annotate: level must be model, value or auto, not %s", how);
	if (!p->model)
		return om_fail(r->session, OM_USAGE, "annotate: the program was not imported from a model");
	return om_model_annotate(r->session, p->model, p, ways[k].how);
}

static const om_pass_option options[] = {
	{"level", "auto", "model: one entry for the model; value: also one for each value; auto: value from IR version 10 on"},
	{0}
};

OM_PASS(
	.name = "annotate",
	.brief = "write the plan into the model",
	.needs = OM_HAS_PLAN,
	.keeps = OM_HAS_ALL,
	.options = options,
	.run = run)
