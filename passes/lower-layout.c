/* SPDX-License-Identifier: Apache-2.0 */
/* lower-layout: channels-last convolutions with packed weights, for our executor. */
#include <config.h>

#include <string.h>

#include "lower/choices.h"
#include "lower/layout.h"
#include "onnxmem/pass.h"

static om_status
run(om_run *r, om_prog *p)
{
	const char *winograd = om_option(r, "winograd");
	om_layout_counts n;

	const om_layout_options o = {.winograd = strcmp(winograd, "yes") == 0, .choices = om_option(r, "choices")};
	if (!o.winograd && strcmp(winograd, "no") != 0)
		return om_fail(r->session, OM_USAGE, "lower-layout: winograd is yes or no, not %s", winograd);
	if (!om_choices_are_valid(o.choices))
		return om_fail(r->session, OM_USAGE, "lower-layout: choices are KEY=CHOICE;KEY=CHOICE, not %s", o.choices);
	OM_TRY(om_lower_layout(r->session, p, &o, &n));
	om_count(r, "convolutions", n.convolutions);
	om_count(r, "pools", n.pools);
	om_count(r, "products", n.products);
	om_count(r, "followed", n.followed);
	om_count(r, "chosen", n.chosen);
	om_count(r, "transposes", n.transposes);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"winograd", "yes", "no: convolutions never use Winograd's algorithm, whose weights take up to four times the memory"},
	{"choices", "", "how layers are computed, by their shapes, instead of as the cost model has it: `onnxmem tune` measures it"},
	{0}
};

static const om_pass_counter counters[] = {
	{"convolutions", "convolutions that were lowered"},
	{"pools", "pools that were lowered"},
	{"products", "matrix products that were lowered"},
	{"followed", "other ops that compute in the layout of their input"},
	{"chosen", "layers that are computed as `choices` has it"},
	{"transposes", "transposes that were left"},
	{0}
};

OM_PASS(
	.name = "lower-layout",
	.brief = "channels-last layout and packed weights",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES,
	.options = options,
	.counters = counters,
	.by_sizes = true,
	.run = run)
