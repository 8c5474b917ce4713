/* SPDX-License-Identifier: Apache-2.0 */
/* pack: give every buffer an offset in the arenas, by the packer or by a baseline strategy.
 *
 * With several arenas, the buffers with the most accesses for their size go to the first ones.  For
 * parallel-safe plans, lifetimes are replaced by the partial order of the data dependences: two buffers may
 * share bytes if one is dead before the other is defined in every order; the lower bound is the heaviest
 * set of buffers that all interfere.
 *
 * The entries of om_strategy_at() are baselines for comparison with the packer: each of them places the
 * same buffers, in one arena. */
#include <config.h>

#include <stdlib.h>

#include "alloc/buffers.h"
#include "alloc/plan_arenas.h"
#include "alloc/plan_shrink.h"
#include "base/output_file.h"
#include "host/option.h"
#include "pack/baselines/interference_list.h"
#include "onnxmem/pass.h"
#include "pack/baselines/baselines.h"

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

/* A placement that exceeds a limit is not a plan: the message names what is missing. */
static om_status
too_large(om_session *s, om_prog *p)
{
	const om_status st = om_plan_limits(s, p, p->plan, 0, 0);

	p->plan = NULL;
	return st == OM_OK ? OM_BUDGET : st;
}

static om_status
pack(om_run *r, om_prog *p, om_buffers *b, const om_interference_list *c)
{
	om_problem problem = OM_PROBLEM(.buf = b->buf, .n = b->n, .pool = om_plan_wanted(r->request, r->scratch),
		.npool = r->request->narena, .by_pairs = r->request->parallel_safe, .pair = c->pair, .npair = c->npair);

	OM_TRY(om_option_float(r, "seconds", &problem.seconds));
	OM_TRY(om_option_number(r, "search-nodes", &problem.nodes));
	for (uint32_t k = 0; k < b->n; k++)
		b->buf[k].fixed_pool = problem.npool > 1 ? OM_POOL_ANY : 0;
	OM_TRY(om_buffers_on_devices(r->session, p, b, r->request, r->scratch));
	OM_TRY(om_buffers_pin(r->session, p, b, r->request, r->scratch));
	if (problem.npool > 1)
		om_buffers_count_accesses(p, b);
	problem.proven = r->request->parallel_safe && problem.npool == 1 ? c->bound : 0;
	const om_status st = om_pack_solve(r->session, &problem);
	if (st != OM_OK && st != OM_BUDGET)
		return st;
	om_plan_pools(p, b, problem.pool, problem.pool->result.strategy);
	if (r->request->parallel_safe)
		name_peak(p, b, c);
	if (st == OM_BUDGET)
		return too_large(r->session, p);
	sum_up(r, &problem);
	return OM_OK;
}

/* ---- Other strategies. ---- */

struct variable {
	const om_value *v;      /* NULL: scratch */
	uint64_t bytes;
	uint32_t buf;
};

static int
by_shape(const om_shape *a, const om_shape *b)
{
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	for (int k = 0; k < a->rank; k++)
		if (a->dim[k] != b->dim[k])
			return a->dim[k] < b->dim[k] ? -1 : 1;
	return 0;
}

static int
by_kind(const void *a, const void *b)
{
	const struct variable *x = a, *y = b;

	if (!x->v != !y->v)
		return x->v ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	if (x->v && x->v->type.elem != y->v->type.elem)
		return x->v->type.elem < y->v->type.elem ? -1 : 1;
	return x->v ? by_shape(&x->v->shape, &y->v->shape) : 0;
}

/* By buffer, a number that is equal for equal shapes and types. */
static uint32_t *
kinds(const om_prog *p, const om_buffers *b, om_arena *mem)
{
	struct variable *var = OM_NEWN(mem, struct variable, b->n);
	uint32_t *kind = OM_NEWN(mem, uint32_t, b->n);

	for (uint32_t k = 0; k < b->n; k++)
		var[k] = (struct variable){.buf = k, .bytes = b->buf[k].bytes};
	for (uint32_t k = 0; k < p->nvalue; k++) {
		const uint32_t n = b->of_value[k];
		if (n != UINT32_MAX && !p->assignment->backing[k].source)
			var[n].v = p->values[k];
	}
	if (b->n)
		qsort(var, b->n, sizeof *var, by_kind);
	for (uint32_t k = 1; k < b->n; k++)
		kind[var[k].buf] = kind[var[k - 1].buf] + (by_kind(&var[k - 1], &var[k]) != 0);
	return kind;
}

struct sharing {
	om_run *r;
	om_prog *p;
	om_buffers *b;
	const om_strategy *way;
	om_share_problem problem;
};

static om_status
share(struct sharing *w)
{
	om_baseline_result result;
	om_run *r = w->r;

	OM_TRY(w->way->share(r->session, &w->problem, &result));
	om_plan_new(w->p, w->b, &result.pack, w->way->name);
	om_count(r, "buffers", w->b->n);
	om_count(r, "blocks", result.blocks);
	om_count(r, "bytes", result.pack.height);
	om_count(r, "bound", result.pack.lower_bound);
	return OM_OK;
}

static om_status
share_and_draw(om_session *s, FILE *to, void *arg)
{
	struct sharing *w = arg;

	(void)s;
	w->problem.graph = to;
	return share(w);
}

static om_status
share_by(om_run *r, om_prog *p, om_buffers *b, const om_strategy *way, const om_interference_list *c)
{
	struct sharing w = {.r = r, .p = p, .b = b, .way = way,
		.problem = {.buf = b->buf, .n = b->n, .open = r->request->parallel_safe ? c : NULL}};
	const char *path = om_option(r, "dump");
	uint64_t limit;

	OM_TRY(om_option_number(r, "limit", &limit));
	OM_TRY(om_option_number(r, "search-nodes", &w.problem.work));
	w.problem.limit = limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX;
	w.problem.kind = kinds(p, b, r->scratch);
	return *path ? om_output_write(r->session, path, share_and_draw, &w) : share(&w);
}

/* ---- Both. ---- */

static om_status
unknown(om_run *r, const char *strategy)
{
	const char *names = "packer";
	const om_strategy *row;

	for (size_t k = 0; (row = om_strategy_at(k)); k++)
		names = om_printf(r->scratch, "%s%s%s", names, om_strategy_at(k + 1) ? ", " : " or ", row->name);
	return om_fail(r->session, OM_USAGE, "option strategy must be %s, not %s", names, strategy);
}

static om_status
run(om_run *r, om_prog *p)
{
	const char *strategy = om_option(r, "strategy");
	const om_strategy *way = om_strategy_find(strategy);
	om_buffers *b = om_buffers_new(p, p->assignment, r->scratch);
	om_interference_list c = {0};

	if (!way && strcmp(strategy, "packer") != 0)
		return unknown(r, strategy);
	if (way && r->request->parallel_safe && !way->parallel_safe)
		return om_fail(r->session, OM_USAGE, "pack: %s cannot make parallel-safe plans", way->name);
	if (way && r->request->npin)
		return om_fail(r->session, OM_USAGE, "pack: %s places no value in a given arena", way->name);
	if (r->request->parallel_safe)
		OM_TRY(om_buffers_interference(r->session, p, b, r->scratch, &c));
	OM_TRY(way ? share_by(r, p, b, way, &c) : pack(r, p, b, &c));
	if (r->request->ranged)
		om_plan_lower_offsets(p, p->plan);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"strategy", "packer", "packer: minimize the arena; or a baseline of `report --all-strategies`"},
	{"seconds", "0", "packer: time limit of the search; 0: none, the plan is deterministic"},
	{"search-nodes", "0", "limit of each exact search of packer, of all of nnc-paper; 0: the default"},
	{"limit", "0", "color: number of blocks; 0: no limit"},
	{"dump", "", "nnc-paper, nnc-code: write the allocation graph to this file, for Graphviz"},
	{0}
};

static const om_pass_counter counters[] = {
	{"buffers", "buffers that were packed"},
	{"blocks", "blocks or regions, for the baselines"},
	{"bytes", "size of the arenas"},
	{"bound", "lower bound of the arenas"},
	{0}
};

static const om_pass_flag flags[] = {
	{.name = "time-limit", .option = "seconds", .arg = "S", .kind = OM_FLAG_FLOAT,
		.brief = "search for better packings for S seconds; by default the search is limited by work, not time"},
	{0}
};

OM_PASS(
	.name = "pack",
	.brief = "pack all buffers into the arenas",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE,
	.gives = OM_HAS_PLAN,
	.keeps = OM_HAS_ALL,
	.options = options,
	.counters = counters,
	.flags = flags,
	.run = run)
