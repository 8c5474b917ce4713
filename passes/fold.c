/* SPDX-License-Identifier: Apache-2.0 */
/* fold: find values that are computed from constants alone.
 *
 * Such values are weights: no run computes them, and they take no memory in the arena.  Small ones are
 * computed here; large ones, and those that take much work, keep their op, which the executor runs once when
 * it is built.  No op is removed: other runtimes get an unchanged file. */
#include <config.h>

#include "opdef/fold.h"
#include "onnxmem/pass.h"

static om_status
run(om_run *r, om_prog *p)
{
	om_fold_limits limits;
	om_fold_counts n;

	OM_TRY(om_option_number(r, "limit", &limits.bytes));
	OM_TRY(om_option_number(r, "work", &limits.work));
	OM_TRY(om_prog_fold(r->session, p, limits, &n));
	om_count(r, "computed", n.computed);
	om_count(r, "deferred", n.left);
	om_count(r, "costly", n.costly);
	if (n.costly)
		om_limit_reached(r, p, "work", om_printf(r->scratch, "%llu constant op%s left to the executor",
			(unsigned long long)n.costly, n.costly == 1 ? " is" : "s are"));
	return OM_OK;
}

#define TEXT(number) #number
#define TEXT_OF(name) TEXT(name)

static const om_pass_option options[] = {
	{"limit", TEXT_OF(OM_FOLD_BYTES), "largest result in bytes; larger ones are computed by the executor"},
	{"work", TEXT_OF(OM_FOLD_WORK),
		"FLOPs and bytes written of all ops that are computed; an op above it is computed by the executor"},
	{0}
};

static const om_pass_counter counters[] = {
	{"computed", "ops that were computed"},
	{"deferred", "ops left to the executor"},
	{"costly", "of those, the ones left because of their work"},
	{0}
};

OM_PASS(
	.name = "fold",
	.brief = "find constant values and compute the small ones",
	.needs = OM_HAS_SHAPES,
	.gives = OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.options = options,
	.counters = counters,
	.run = run)
