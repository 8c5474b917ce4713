/* SPDX-License-Identifier: Apache-2.0 */
/* tile: run regions of the graph in bands.
 *
 * om_tile_search() finds the regions with an estimate of the peak.  What decides is the arena: the tiled program is made
 * as a copy, and the program itself is changed only if the copy, in the order that it has, takes less than the program
 * in the best order that the pass `schedule` finds.  So a tiled program is never worse.  Results are bit-identical,
 * except that a sum over a divided axis is added up in another order. */
#include <config.h>

#include <string.h>

#include "alloc/assign.h"
#include "alloc/op_facts.h"
#include "alloc/run_memory.h"
#include "host/host.h"
#include "ir/binding.h"
#include "ir/query.h"
#include "ir/schedule.h"
#include "ir/steps.h"
#include "ir/tiling.h"
#include "lower/tile/tile.h"
#include "onnxmem/pass.h"
#include "onnxmem/plan.h"

enum {
	QUICK_NODES = 2000,
	WORTH = 20,
	USUAL_SLOWDOWN = 5,
	MOST_RETRIES = 6,
	MOST_TRIED = 4,
};

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

/* Limits are for the plan, not for what is compared here. */
static om_plan_request
unlimited(om_run *r)
{
	om_plan_request out = *r->request;

	out.arena = NULL;
	out.narena = 0;
	out.total = 0;
	return out;
}

/* The arena of the plan that a copy of the program gets, whatever the limits are. */
static om_status
planned(om_run *r, const om_prog *p, uint64_t *bytes)
{
	om_pass_hook *hook = r->host->hook;
	const om_plan_request request = unlimited(r);
	om_prog *copy;

	OM_TRY(om_prog_copy(r->session, p, &copy));
	r->host->hook = NULL;
	const om_status st = om_host_run_for(r->host, copy, plan, om_plan_request_copy(&request, r->scratch));
	r->host->hook = hook;
	*bytes = st == OM_OK ? copy->plan->arena[0].bytes : 0;
	om_prog_free(copy);
	return st;
}

/* The arena of the program in the order that it has, found by a quick search. */
static om_status
packed(om_run *r, om_prog *p, uint64_t *bytes)
{
	const om_assignment *views, *full, *last;
	om_plan_request request = unlimited(r);

	request.search_nodes = QUICK_NODES;
	const om_plan_request *quick = om_plan_request_copy(&request, r->scratch);
	OM_TRY(om_assign_schedule(r->session, p, om_schedule_new(p, r->scratch), quick, om_prog_op_facts(p, quick), r->scratch,
		&views, &full, &last));
	om_arena_size size;
	OM_TRY(om_assignment_size(r->session, p, last, &size));
	*bytes = size.bytes;
	return OM_OK;
}

/* The arena of the copy once it is tiled. */
static om_status
tiled(om_run *r, om_prog *copy, const om_tile_request *request, const om_tile_plan *t, uint64_t before, uint64_t *after)
{
	OM_TRY(om_tile_apply(r->session, copy, request, t));
	OM_TRY(om_verify(r->session, copy));
	OM_TRY(packed(r, copy, after));
	return *after >= before ? planned(r, copy, after) : OM_OK;
}

/* ---- What was done, for reports. ---- */

static const char *const join_names[] = {[OM_TILE_CONCAT] = "concat", [OM_TILE_SCATTER] = "scatter"};

static double
work_of(om_op *const *ops, uint32_t n)
{
	double flops = 0;

	for (uint32_t k = 0; k < n; k++)
		flops += om_op_cost(ops[k]).flops;
	return flops;
}

/* `searched` is the program that the plan is for, with its copies. */
static void
describe_copies(const om_prog *searched, const om_tile_plan *t, om_arena *mem, om_tiling *out)
{
	out->copy = OM_NEWN(mem, struct om_tiled_copy, t->ncopy);
	out->ncopy = t->ncopy;
	for (uint32_t k = 0; k < t->ncopy; k++) {
		const om_tile_copy *c = &t->copy[k];
		out->copy[k] = (struct om_tiled_copy){om_strdup(mem, searched->values[c->value[0]]->name), c->nop, c->flops};
	}
}

/* Why the peak is not lower, and the peaks that were found.  All of it is that of the search. */
static void
describe_limits(const om_tile_plan *t, om_tiling *out)
{
	out->outside = t->outside;
	out->noutside = (uint32_t)t->noutside;
	out->peak = t->peak;
	out->npeak = (uint32_t)t->npeak;
	out->missed = t->missed;
	out->stop = t->stop;
	out->floor = t->floor;
	out->floor_op = t->floor_op;
}

static om_tiling *
describe(const om_prog *p, const om_prog *searched, const om_tile_plan *t, om_arena *mem)
{
	om_tiling *out = OM_NEW(mem, om_tiling);
	uint32_t n;
	om_op **ops = om_block_run_ops(p->first, mem, &out->ops_before);

	out->ops_after = out->ops_before;
	out->flops_before = out->flops_after = work_of(ops, out->ops_before);
	ops = om_block_run_ops(searched->first, mem, &n);
	out->region = OM_NEWN(mem, struct om_tiled_region, t->n);
	out->n = t->n;
	for (uint32_t k = 0; k < t->n; k++) {
		const om_tile_choice *c = &t->choice[k];
		out->region[k] = (struct om_tiled_region){om_strdup(mem, om_op_label(ops[c->first])),
			om_strdup(mem, om_op_label(ops[c->end - 1])), om_tile_axis_text(ops, c), join_names[c->join], c->end - c->first,
			c->bands, c->nstep};
	}
	describe_copies(searched, t, mem, out);
	return om_tiling_copy(mem, out);
}

static om_status
change(om_run *r, om_prog *p, om_tile_request *request, const om_tile_plan *t, om_tiling *d, uint64_t after)
{
	uint32_t n;

	OM_TRY(om_tile_unpack(r->session, p, &n));
	om_count(r, "unpacked", n);
	OM_TRY(om_tile_copy_all(r->session, p, t, r->scratch, request));
	om_count(r, "copies", t->ncopy);
	OM_TRY(om_tile_apply(r->session, p, request, t));
	om_op **ops = om_block_run_ops(p->first, r->scratch, &n);
	d->flops_after = work_of(ops, n);
	d->after = after;
	d->ops_after = n;
	om_count(r, "regions", d->n);
	om_count(r, "ops_before", d->ops_before);
	om_count(r, "ops_after", n);
	return OM_OK;
}

/* For the executor, whose time is known best, a lower arena is not worth any time. */
static om_status
read_slowdown(om_run *r, om_tile_request *request)
{
	const char *text = om_option(r, "slowdown");
	uint64_t percent = USUAL_SLOWDOWN;

	if (strcmp(text, "any") == 0 || (strcmp(text, "auto") == 0 && (request->budget || r->request->target != OM_TARGET_CPU)))
		return OM_OK;
	if (strcmp(text, "auto") != 0)
		OM_TRY(om_option_number(r, "slowdown", &percent));
	request->most_times = 1 + (double)percent / 100;
	return OM_OK;
}

static om_status
read_request(om_run *r, om_prog *p, om_tile_request *request)
{
	const char *join = om_option(r, "join");
	uint64_t extra;
	uint32_t n;

	*request = (om_tile_request){.bytes = sizes(r, p), .only_concat = strcmp(join, "concat") == 0};
	if (!request->only_concat && strcmp(join, "any") != 0)
		return om_fail(r->session, OM_USAGE, "option join must be any or concat, not %s", join);
	OM_TRY(om_option_number(r, "budget", &request->budget));
	if (request->budget == 0 && r->request->total) {
		request->budget = om_bytes_left_for_arenas(p, om_prog_op_facts(p, r->request), r->request->total);
		om_option_record(r, "budget", request->budget);
	}
	OM_TRY(read_slowdown(r, request));
	OM_TRY(om_option_number(r, "extra-flops", &extra));
	om_op **ops = om_block_run_ops(p->first, r->scratch, &n);
	request->most_flops = work_of(ops, n) * (double)extra / 100;
	OM_TRY(om_option_number(r, "nodes", &request->most_ops));
	return om_option_number(r, "effort", &request->effort);
}

/* A tiling, and the arena that it leads to. */
struct attempt {
	om_tile_plan plan;
	om_tiling *tiling;
	uint64_t after;
};

/* The program whose packed products are divided, and what is searched there. */
struct work {
	om_run *r;
	om_prog *p;               /* the given one */
	om_prog *base;
	om_tile_request request;
	om_tile_searcher *searcher;
	om_arena *mem;            /* of the results */
	uint64_t before;
};

/* `copy` becomes the tiled program, and has the ids that the program would get. */
static om_status
apply_to(struct work *w, om_prog *copy, struct attempt *a)
{
	om_run *r = w->r;
	om_tile_request request = w->request;

	OM_TRY(om_tile_copy_all(r->session, copy, &a->plan, r->scratch, &request));
	a->tiling = describe(w->p, copy, &a->plan, w->mem);
	a->after = w->before;
	return a->plan.n ? tiled(r, copy, &request, &a->plan, w->before, &a->after) : OM_OK;
}

static om_status
evaluate(struct work *w, struct attempt *a)
{
	om_prog *copy;

	OM_TRY(om_prog_copy(w->r->session, w->base, &copy));
	const om_status st = apply_to(w, copy, a);
	om_prog_free(copy);
	return st;
}

/* The lowest peak is not always the smallest arena: kernels have scratch, and lifetimes do not always fit.  So some peaks
 * above it are tried, too. */
static om_status
attempt(struct work *w, uint64_t budget, bool may_copy, struct attempt *best)
{
	om_tile_plan found;

	om_tile_search_budget(w->searcher, budget);
	OM_TRY(om_tile_search(w->searcher, may_copy, &found));
	*best = (struct attempt){.plan = found};
	OM_TRY(evaluate(w, best));
	for (size_t k = found.nfound; !budget && k-- > 0 && found.nfound - k <= MOST_TRIED;) {
		const om_tile_found *f = &found.found[k];
		struct attempt other = {.plan = found};
		other.plan.choice = f->choice;
		other.plan.n = f->n;
		other.plan.after = f->after;
		if (f->of != found.of || f->after == found.after)
			continue;
		OM_TRY(evaluate(w, &other));
		*best = other.after < best->after ? other : *best;
	}
	return OM_OK;
}

/* The search does not know the scratch of kernels, so arenas may be larger than the peak that was found for a budget: then
 * for one that is as much lower, and at last for the smallest arena. */
static om_status
attempt_within(struct work *w, bool may_copy, struct attempt *best)
{
	const uint64_t budget = w->request.budget;
	uint64_t target = budget;
	struct attempt next;

	OM_TRY(attempt(w, target, may_copy, best));
	for (int k = 0; k <= MOST_RETRIES && target && best->after > budget; k++) {
		const uint64_t over = best->after - budget;
		target = k < MOST_RETRIES && best->plan.after <= target && over < target ? target - over : 0;
		OM_TRY(attempt(w, target, may_copy, &next));
		*best = next.after < best->after ? next : *best;
	}
	return OM_OK;
}

static void
tell_effort(const struct work *w, const om_tile_plan *last)
{
	om_count(w->r, "simulated", last->simulated);
	if (last->is_limited)
		om_limit_reached(w->r, w->p, "effort", "the search for regions to tile; others may lower the peak further");
}

/* Values are computed twice only if that saves a twentieth of the arena, as it is without that. */
static om_status
attempt_both(struct work *w, struct attempt *best)
{
	struct attempt other;

	OM_TRY(attempt_within(w, false, best));
	if (w->request.most_flops <= 0 || (w->request.budget && best->after <= w->request.budget)) {
		tell_effort(w, &best->plan);
		return OM_OK;
	}
	OM_TRY(attempt_within(w, true, &other));
	tell_effort(w, &other.plan);
	*best = other.after < best->after - best->after / WORTH ? other : *best;
	return OM_OK;
}

static void
explain(struct work *w, struct attempt *best)
{
	om_tile_search_explain(w->searcher, &best->plan);
	describe_limits(&best->plan, best->tiling);
	best->tiling = om_tiling_copy(w->mem, best->tiling);
}

/* Search in the copy w->base. */
static om_status
search_in(struct work *w, struct attempt *best)
{
	uint32_t n;

	OM_TRY(om_tile_unpack(w->r->session, w->base, &n));
	OM_TRY(read_request(w->r, w->base, &w->request));
	w->searcher = om_tile_searcher_new(w->r->session, w->base, &w->request, w->r->scratch);
	const om_status st = attempt_both(w, best);
	if (st == OM_OK)
		explain(w, best);
	om_tile_searcher_end(w->searcher);
	return st;
}

static om_status
search(om_run *r, om_prog *p, om_arena *mem, om_tiling **out)
{
	struct work w = {.r = r, .p = p, .mem = mem};
	struct attempt best = {0};

	OM_TRY(planned(r, p, &w.before));
	OM_TRY(om_prog_copy(r->session, p, &w.base));
	const om_status st = search_in(&w, &best);
	om_prog_free(w.base);
	OM_TRY(st);
	*out = best.tiling;
	best.tiling->before = best.tiling->after = w.before;
	if (best.after < w.before)
		return change(r, p, &w.request, &best.plan, best.tiling, best.after);
	best.tiling->n = 0;
	return OM_OK;
}

/* Bands are made of slices and concatenations that nothing would place. */
static om_status
check_devices(om_run *r, const om_prog *p)
{
	for (const om_op *op = p->first->first; op; op = op->next)
		if (op->device && strcmp(op->device, "cpu") != 0)
			return om_fail(r->session, OM_USAGE, "programs on devices cannot run in bands, but %s is placed on %s", om_op_label(op),
				op->device);
	return OM_OK;
}

static om_status
run(om_run *r, om_prog *p)
{
	OM_TRY(check_devices(r, p));
	om_arena *mem = om_arena_new();
	om_tiling *d = NULL;

	const om_status st = search(r, p, mem, &d);
	if (st != OM_OK) {
		om_arena_free(mem);
		return st;
	}
	p->tiling = om_tiling_copy(p->mem, d);
	om_count(r, "bytes_before", d->before);
	om_count(r, "bytes_after", d->after);
	return om_fact_attach(r, p, "tiling", mem, d);
}

static const om_pass_option options[] = {
	{"join", "any", "how results become whole: `any`, also by ScatterND, which takes less where it runs in place; `concat`"},
	{"budget", "0", "bytes: the fewest ops for arenas of this size; 0: the smallest arenas"},
	{"extra-flops", "0", "limit of the work of values that are computed twice, in percent of that of all ops; 0: none is"},
	{"nodes", "4000", "limit of the ops of the tiled graph"},
	{"slowdown", "auto", "limit of the estimated time, in percent above that of the untiled graph; `any`; `auto`: 5 for target cpu without a budget, else any"},
	{"effort", "30000000", "limit of the search, in ops of bands that are simulated"},
	{0}
};

static const om_pass_counter counters[] = {
	{"unpacked", "packed products that were divided"},
	{"copies", "values that are computed twice"},
	{"regions", "regions that run in bands"},
	{"ops_before", "ops of the graph, if it was tiled"},
	{"ops_after", "ops of the tiled graph"},
	{"bytes_before", "size of the arenas of the program as it was"},
	{"bytes_after", "size of the arenas of the tiled program, before its ops are ordered"},
	{"simulated", "ops of bands that the search simulated"},
	{0}
};

static const om_pass_flag flags[] = {
	{.name = "tile", .option = "join", .value = "any", .adds = true,
		.brief = "run regions of the graph in bands; it becomes another graph, which is never worse"},
	{.name = "tile-join", .option = "join", .arg = "HOW", .adds = true, .brief = "the same; results become whole by `concat` alone, or `any` way"},
	{.name = "tile-nodes", .option = "nodes", .arg = "N", .kind = OM_FLAG_NUMBER, .min = 1, .max = 1000000, .adds = true,
		.brief = "the same, with at most N ops in the tiled graph"},
	{.name = "tile-slowdown", .option = "slowdown", .arg = "PERCENT", .kind = OM_FLAG_NUMBER, .min = 0, .max = 100000, .adds = true,
		.brief = "the same, for at most PERCENT more time, as the planner estimates it [target cpu without --budget: 5]"},
	{.name = "extra-flops", .option = "extra-flops", .arg = "PERCENT", .kind = OM_FLAG_NUMBER, .min = 0, .max = 100000, .adds = true,
		.brief = "the same; values may be computed twice, with at most PERCENT more work"},
	{.name = "budget", .option = "budget", .arg = "SIZE", .brief = "target size of the arena"},
	{0}
};

OM_PASS(
	.name = "tile",
	.brief = "run regions of the graph in bands to lower the peak",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.options = options,
	.counters = counters,
	.flags = flags,
	.gives_facts = "tiling",
	.run = run)
