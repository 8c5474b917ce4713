/* tile: run regions of the graph in bands.
 *
 * om_tile_search() finds the regions with an estimate of the peak.  What decides is the arena: the tiled program is made
 * as a copy, and the program itself is changed only if the copy, in the order that it has, takes less than the program
 * in the best order that the pass `schedule` finds.  So a tiled program is never worse.  Results are bit-identical,
 * except that a sum over a divided axis is added up in another order. */
#include <config.h>

#include <inttypes.h>

#include "alloc/assign.h"
#include "alloc/op_facts.h"
#include "host/host.h"
#include "ir/binding.h"
#include "lower/tile/tile.h"
#include "onnxmem/pass.h"
#include "onnxmem/plan.h"
#include "ir/schedule.h"

static const char plan[] = "schedule=min-memory,liveness,views,alias-io=declared,inplace,loops,pack";

/* By value id: bytes in the arena. */
static const uint64_t *
sizes(om_run *r, om_prog *p)
{
	const om_op_facts *f = om_prog_op_facts(p, r->request);
	uint64_t *bytes = OM_NEWN(r->scratch, uint64_t, p->nvalue), align = r->request->align;

	for (uint32_t k = 0; k < p->nvalue; k++)
		if (!f->is_outside[k] && !f->is_unplanned[k])
			bytes[k] = (f->bytes[k] + align - 1) / align * align;
	return bytes;
}

/* The arenas of the plan that a copy of the program gets. */
static om_status
planned(om_run *r, const om_prog *p, uint64_t *bytes)
{
	om_pass_hook *hook = r->host->hook;
	om_prog *copy;

	OM_TRY(om_prog_copy(r->session, p, &copy));
	r->host->hook = NULL;
	const om_status st = om_host_run_for(r->host, copy, plan, r->request);
	r->host->hook = hook;
	*bytes = 0;
	for (uint32_t k = 0; st == OM_OK && k < copy->plan->narena; k++)
		*bytes += copy->plan->arena[k].bytes;
	om_prog_free(copy);
	return st;
}

/* The arena of the program in the order that it has. */
static om_status
packed(om_run *r, om_prog *p, uint64_t *bytes)
{
	const om_assignment *views, *full, *last;

	OM_TRY(om_assign_schedule(r->session, p, om_schedule_new(p, r->scratch), r->request, om_prog_op_facts(p, r->request),
		r->scratch, &views, &full, &last));
	return om_assignment_full_size(r->session, p, last, bytes);
}

static om_status
tiled(om_run *r, const om_prog *p, const om_tile_request *request, const om_tile_plan *t, uint64_t before, uint64_t *after)
{
	om_prog *copy;

	OM_TRY(om_prog_copy(r->session, p, &copy));
	om_status st = om_tile_apply(r->session, copy, request, t);
	if (st == OM_OK)
		st = om_verify(r->session, copy);
	if (st == OM_OK)
		st = packed(r, copy, after);
	if (st == OM_OK && *after >= before)
		st = planned(r, copy, after);
	om_prog_free(copy);
	return st;
}

/* ---- What was done, for reports. ---- */

static const char *
axis_text(om_tile_axis axis)
{
	static const char *const names[] = {[OM_TILE_ROWS] = "rows", [OM_TILE_COLUMNS] = "columns",
		[OM_TILE_CHANNELS] = "channels", [OM_TILE_SUM] = "sum"};

	return names[axis];
}

static om_status
run(om_run *r, om_prog *p)
{
	om_tile_request request = {.bytes = sizes(r, p)};
	uint64_t before, after = 0;
	om_tile_plan t;

	OM_TRY(om_option_number(r, "budget", &request.budget));
	OM_TRY(om_option_number(r, "nodes", &request.most_ops));
	OM_TRY(om_option_number(r, "effort", &request.effort));
	OM_TRY(om_tile_search(r->session, p, &request, r->scratch, &t));
	om_count(r, "simulated", t.simulated);
	if (t.is_limited)
		om_limit_reached(r, p, "effort", "the search for regions to tile; others may lower the peak further");
	OM_TRY(planned(r, p, &before));
	after = before;
	om_count(r, "bytes_before", before);
	om_info(r->session, "tile: estimated %" PRIu64 " untiled, %" PRIu64 " tiled", t.before, t.after);
	for (uint32_t k = 0; k < t.n; k++)
		om_info(r->session, "tile: ops %u to %u, %u bands of %s, %u ops, join %d", t.choice[k].first, t.choice[k].end,
			t.choice[k].bands, axis_text(t.choice[k].axis), t.choice[k].nstep, t.choice[k].join);
	if (t.n)
		OM_TRY(tiled(r, p, &request, &t, before, &after));
	om_info(r->session, "tile: arena %" PRIu64 " -> %" PRIu64 , before, after);
	if (after < before) {
		om_count(r, "ops_before", p->first->nop);
		OM_TRY(om_tile_apply(r->session, p, &request, &t));
		om_count(r, "regions", t.n);
		om_count(r, "ops_after", p->first->nop);
	}
	om_count(r, "bytes_after", after < before ? after : before);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"budget", "0", "bytes: the fewest ops for arenas of this size; 0: the smallest arenas"},
	{"nodes", "4000", "limit of the ops of the tiled graph"},
	{"effort", "30000000", "limit of the search, in ops of bands that are simulated"},
	{0}
};

static const om_pass_counter counters[] = {
	{"regions", "regions that run in bands"},
	{"ops_before", "ops of the graph, if it was tiled"},
	{"ops_after", "ops of the tiled graph"},
	{"bytes_before", "size of the arenas of the program as it was"},
	{"bytes_after", "size of the arenas of the tiled program, before its ops are ordered"},
	{"simulated", "ops of bands that the search simulated"},
	{0}
};

OM_PASS(
	.name = "tile",
	.brief = "run regions of the graph in bands to lower the peak",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.options = options,
	.counters = counters,
	.run = run)
