/* SPDX-License-Identifier: Apache-2.0 */
/* --all-strategies: arena sizes of other planning strategies, with other orders of the ops.
 *
 * Each order starts from a program of its own, since passes change it; views and in-place decisions
 * depend on the order.  Then each strategy plans the same buffers, in one arena without a limit,
 * and its plan is verified like any other. */
#include <config.h>

#include <string.h>

#include "cli/cli.h"
#include "report/report.h"

/* The packer, followed by the table of strategies. */
struct strategy {
	const char *name;
	bool parallel_safe;      /* supports plans that are valid in any order */
	bool is_packer;
};

static bool
strategy_at(size_t k, struct strategy *s)
{
	const om_strategy *row = om_strategy_at(k);

	*s = row ? (struct strategy){row->name, row->parallel_safe, false} : (struct strategy){"packer", true, true};
	return row || k == 0 || om_strategy_at(k - 1);
}

static size_t
count(void)
{
	size_t n = 0;

	while (om_strategy_at(n))
		n++;
	return n + 1;
}

/* "nnc-paper" in JSON: "nnc_paper_bytes". */
static const char *
key_of(om_cli *c, const char *name)
{
	char *key = om_printf(c->mem, "%s_bytes", name);

	for (char *at = key; *at; at++)
		if (*at == '-')
			*at = '_';
	return key;
}

#define BEFORE  "inline,shapes,fold,prune,"
#define AFTER   "liveness,views,alias-io=declared,inplace,loops"

static const struct schedule {
	const char *name, *passes;
	bool parallel_safe;
} schedules[] = {
	{"original", BEFORE AFTER, false},
	{"bfs", BEFORE "schedule=bfs," AFTER, false},
	{"min-memory", BEFORE "schedule=min-memory," AFTER, false},
	{"parallel-safe", BEFORE AFTER, true},
};

enum { NSCHEDULE = sizeof schedules / sizeof schedules[0] };

/* As the options have it, but in one arena without a limit. */
static om_status
request_one_arena(om_cli *c, bool parallel_safe)
{
	om_plan_request r = c->request;

	r.narena = 0;
	r.parallel_safe = parallel_safe;
	return om_host_request(c->host, &r);
}

static om_status
plan_by(om_cli *c, const struct strategy *s, double *ms)
{
	const double before = c->pass_ms;

	OM_TRY(om_host_run(c->host, c->prog, om_printf(c->mem, "pack=%s", s->name)));
	*ms = c->pass_ms - before;
	return om_plan_verify(c->session, c->prog, c->prog->plan);
}

/* The bound is shared: the best one that any strategy proved. */
static void
share_bound(om_report_strategy *row, uint32_t n)
{
	uint64_t bound = 0;

	for (uint32_t k = 0; k < n; k++)
		bound = row[k].bound > bound ? row[k].bound : bound;
	for (uint32_t k = 0; k < n; k++) {
		row[k].bound = bound;
		row[k].status = row[k].bytes == bound ? OM_PACK_OPTIMAL : OM_PACK_FEASIBLE;
	}
}

static om_status
try_schedule(om_cli *c, const struct schedule *o, om_report *r)
{
	om_report_strategy *row = &r->strategy[r->nstrategy];
	const double before = c->pass_ms;
	struct strategy s;
	uint32_t n = 0;

	OM_TRY(request_one_arena(c, o->parallel_safe));
	OM_TRY(om_host_run(c->host, c->prog, o->passes));
	const double schedule_ms = c->pass_ms - before;
	row[n++] = (om_report_strategy){.schedule = o->name, .name = "naive", .schedule_ms = schedule_ms};
	for (size_t k = 0; strategy_at(k, &s); k++) {
		const om_plan_arena *a;
		if (o->parallel_safe && !s.parallel_safe)
			continue;
		OM_TRY(plan_by(c, &s, &row[n].ms));
		a = c->prog->plan->arena;
		row[n].schedule = o->name;
		row[n].name = s.name;
		row[n].schedule_ms = schedule_ms;
		row[n].bytes = a->bytes;
		row[n].is_limited = a->is_limited;
		row[n++].bound = a->lower_bound;
		row->bytes = a->naive;
	}
	share_bound(row, n);
	r->nstrategy += n;
	return OM_OK;
}

/* Uses the program of the report, whose plan is restored. */
static om_status
try_here(om_cli *c, om_report *r)
{
	om_plan *const plan = c->prog->plan;
	const bool parallel_safe = c->request.parallel_safe;
	om_status st = request_one_arena(c, parallel_safe);
	struct strategy s;
	double ms;

	r->other = OM_NEWN(c->mem, om_report_other, count());
	for (size_t k = 0; st == OM_OK && strategy_at(k, &s); k++) {
		if (s.is_packer || (parallel_safe && !s.parallel_safe))
			continue;
		st = plan_by(c, &s, &ms);
		if (st == OM_OK)
			r->other[r->nother++] = (om_report_other){key_of(c, s.name), c->prog->plan->arena->bytes};
	}
	c->prog->plan = plan;
	return st;
}

om_status
om_cli_strategies(om_cli *c, om_report *r)
{
	om_prog *const prog = c->prog;
	om_status st = try_here(c, r);

	r->strategy = OM_NEWN(c->mem, om_report_strategy, NSCHEDULE * (count() + 1));
	for (size_t k = 0; k < NSCHEDULE && st == OM_OK; k++) {
		c->prog = NULL;
		st = om_cli_copy(c);
		if (st == OM_OK)
			st = om_cli_shapes(c, NULL, true);
		if (st == OM_OK)
			st = try_schedule(c, &schedules[k], r);
		om_prog_free(c->prog);
	}
	c->prog = prog;
	return st == OM_OK ? om_host_request(c->host, &c->request) : st;
}
