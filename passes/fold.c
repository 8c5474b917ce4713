/* fold: find values that are computed from constants alone.
 *
 * Such values are weights: no run computes them, and they take no memory in the arena.  Small ones are
 * computed here; large ones keep their op, which the executor runs once when it is built.  No op is
 * removed: other runtimes get an unchanged file. */
#include <config.h>

#include "opdef/fold.h"
#include "onnxmem/pass.h"

static om_status
run(om_run *r, om_prog *p)
{
	uint64_t limit, computed, left;

	OM_TRY(om_option_number(r, "limit", &limit));
	OM_TRY(om_prog_fold(r->session, p, limit, &computed, &left));
	om_count(r, "computed", computed);
	om_count(r, "deferred", left);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"limit", "65536", "largest result in bytes; larger ones are computed by the executor"},
	{0}
};

static const om_pass_counter counters[] = {
	{"computed", "ops that were computed"},
	{"deferred", "ops left to the executor"},
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
