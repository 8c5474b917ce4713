/* pack: give every buffer its place in the arenas, as low as can be.
 *
 * Where several arenas are wanted, what is hot and small goes to the first ones.
 * Where the plan has to hold in every order, lifetimes are those of the partial
 * order of the data: two buffers may share bytes where one is over before the
 * other begins, whatever the order; what they need at least is the heaviest set
 * of buffers that all conflict.
 */
#include <config.h>

#include <stdlib.h>

#include "onnxmem/pass.h"
#include "onnxmem/plan.h"

static om_status
read_seconds(const om_run *r, double *out)
{
	const char *text = om_option(r, "seconds");
	char *end;

	*out = strtod(text, &end);
	if (end == text || *end || !(*out >= 0 && *out <= 1e6))
		return om_fail(r->session, OM_USAGE, "pack: option seconds wants a number of at least 0, not %s", text);
	return OM_OK;
}

static void
sum_up(om_run *r, const om_problem *problem)
{
	om_count(r, "buffers", problem->n);
	for (uint32_t k = 0; k < problem->npool; k++) {
		om_count(r, "bytes", problem->pool[k].result.height);
		om_count(r, "bound", problem->pool[k].result.lower_bound);
	}
}

static void
name_peak(om_prog *p, const om_buffers *b, const om_interference_list *c)
{
	p->plan->peak = OM_NEWN(p->mem, om_peak, c->npeak);
	p->plan->npeak = c->npeak;
	for (uint32_t k = 0; k < c->npeak; k++) {
		const om_buffer *buf = &b->buf[c->peak[k]];
		p->plan->peak[k] = (om_peak){om_strdup(p->mem, buf->name), buf->bytes};
	}
}

static om_status
run(om_run *r, om_prog *p)
{
	om_buffers *b = om_buffers_new(p, r->scratch);
	om_problem problem = {.buf = b->buf, .n = b->n};
	om_interference_list c = {0};

	problem.pool = om_plan_wanted(p, r->scratch, &problem.npool);
	OM_TRY(read_seconds(r, &problem.seconds));
	OM_TRY(om_option_number(r, "nodes", &problem.nodes));
	for (uint32_t k = 0; k < b->n; k++)
		b->buf[k].fixed_pool = problem.npool > 1 ? OM_POOL_ANY : 0;
	if (problem.npool > 1)
		om_buffers_count_accesses(p, b);
	if (p->parallel_safe) {
		OM_TRY(om_buffers_interference(r->session, p, b, r->scratch, &c));
		problem.by_pairs = true;
		problem.pair = c.pair;
		problem.npair = c.npair;
		problem.proven = problem.npool == 1 ? c.bound : 0;
	}
	const om_status st = om_pack_solve(r->session, &problem);
	if (st != OM_OK && st != OM_BUDGET)
		return st;
	om_plan_pools(p, b, problem.pool, problem.pool->result.strategy);
	if (p->parallel_safe)
		name_peak(p, b, &c);
	if (st == OM_BUDGET) {
		OM_TRY(om_plan_limits(r->session, p, p->plan, 0));
		return st;
	}
	sum_up(r, &problem);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"seconds", "0", "time for looking for better packings; 0: no clock, the same plan every time"},
	{"nodes", "0", "steps of each complete search; 0: as many as the packer thinks fit"},
	{0}
};

static const om_pass_counter counters[] = {
	{"buffers", "buffers that were placed"},
	{"bytes", "size of the arenas"},
	{"bound", "bytes below which no placement can get"},
	{0}
};

static const om_pass_flag flags[] = {
	{.name = "time-limit", .option = "seconds", .arg = "S", .kind = OM_FLAG_FLOAT,
		.brief = "look for better plans that many seconds; without, effort is counted"},
	{0}
};

OM_PASS(
	.name = "pack",
	.brief = "place all buffers in the arenas",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE,
	.gives = OM_HAS_PLAN,
	.keeps = OM_HAS_ALL,
	.options = options,
	.counters = counters,
	.flags = flags,
	.run = run)
