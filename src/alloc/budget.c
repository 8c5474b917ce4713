/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a plan against size limits, and reports what makes it too large. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>

#include "ir/alias_roots.h"
#include "ir/live_interval.h"
#include "base/guard.h"
#include "base/sizes.h"
#include "ir/steps.h"
#include "onnxmem/opdef.h"
#include "onnxmem/plan.h"

enum { SHOWN = 8 };

struct item {
	const char *name;
	uint64_t bytes;
	uint32_t arena;
	bool is_somewhere;       /* the arena is known */
};

struct items {
	om_arena *mem;
	struct item *item;
	size_t n, cap;
};

static void
add(struct items *all, struct item one)
{
	if (one.bytes)
		OM_PUSH(all->mem, all->item, all->n, all->cap, one);
}

static int
by_bytes(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* By value with its own storage: the largest value stored in it at `step`. */
static const om_value **
residents(const om_prog *p, const om_plan *plan, om_arena *mem, uint32_t step)
{
	const om_value **in = OM_NEWN(mem, const om_value *, plan->nplace);
	const om_alias_root *roots = om_alias_roots(om_aliases_by_value(plan, plan->nplace, mem), plan->nplace, mem);

	for (uint32_t k = 0; k < plan->nplace; k++) {
		const uint32_t root = roots[k].value;
		const om_placement *at = &plan->place[k];
		if (om_live_interval_covers(&at->live, step, step) && (!in[root] || at->bytes > plan->place[in[root]->id].bytes))
			in[root] = p->values[k];
	}
	return in;
}

static void
alive_at(const om_prog *p, const om_plan *plan, uint32_t step, struct items *all)
{
	const om_value **in = residents(p, plan, all->mem, step);
	const om_op *op = om_op_at_step(p, step);

	for (uint32_t k = 0; k < plan->nplace; k++) {
		const om_placement *at = &plan->place[k];
		if (at->where == OM_IN_ARENA && in[k])
			add(all, (struct item){in[k]->name, at->bytes, at->arena, true});
	}
	for (uint32_t k = 0; k < plan->nscratch; k++)
		if (op && plan->scratch[k].op == op->id)
			add(all, (struct item){"scratch", plan->scratch[k].bytes, plan->scratch[k].arena, true});
}

static const char *
list_text(const om_plan *plan, struct items *all)
{
	const char *text = "";

	if (all->n)
		qsort(all->item, all->n, sizeof *all->item, by_bytes);
	for (size_t k = 0; k < all->n && k < SHOWN; k++) {
		const struct item *one = &all->item[k];
		const bool name = one->is_somewhere && plan->narena > 1;
		text = om_printf(all->mem, "%s%s%s (%" PRIu64 "%s%s)", text, k ? ", " : "", one->name, one->bytes,
			name ? " in " : "", name ? plan->arena[one->arena].name : "");
	}
	if (all->n > SHOWN)
		text = om_printf(all->mem, "%s and %zu more", text, all->n - SHOWN);
	return text;
}

/* A step that is left out has a larger or equal sum in the next one of the run. */
static const char *
where_text(const om_prog *p, uint32_t bound_step, om_arena *mem)
{
	const om_run_steps steps = om_run_steps_new(p, mem);
	const uint32_t step = om_run_steps_of(&steps, bound_step);
	const om_op *op = step < steps.n ? om_op_at_step(p, steps.at[step]) : NULL;

	if (!op)
		return om_printf(mem, "at step %" PRIu32 ", at the end of the graph", step);
	return om_printf(mem, "at step %" PRIu32 ", in %s", step, om_op_where(op, mem));
}

/* The values live at the step that determines the bound of arena `k`. */
static const char *
peak_text(const om_prog *p, const om_plan *plan, uint32_t k, om_arena *mem)
{
	struct items all = {.mem = mem};

	for (uint32_t i = 0; i < plan->npeak; i++)
		add(&all, (struct item){.name = plan->peak[i].name, .bytes = plan->peak[i].bytes});
	if (plan->npeak)
		return om_printf(mem, "in some order these are live at the same time: %s", list_text(plan, &all));
	alive_at(p, plan, plan->arena[k].bound_step, &all);
	return om_printf(mem, "%s, live are %s", where_text(p, plan->arena[k].bound_step, mem),
		list_text(plan, &all));
}

static om_status
over(om_session *s, const om_prog *p, const om_plan *plan, uint32_t k, const char *what, uint64_t bytes, uint64_t limit)
{
	om_arena *mem = om_arena_new();
	const bool proven = plan->narena == 1 && plan->arena[k].lower_bound > limit;
	const om_status st = om_fail(s, OM_BUDGET, "%s %" PRIu64 " bytes, more than the %" PRIu64
		" allowed%s: %s", what, bytes, limit, !proven ? "" : plan->parallel_safe ? ", and cannot take less"
		: ", and cannot take less in this order", peak_text(p, plan, k, mem));

	om_arena_free(mem);
	return st;
}

/* What the arenas may take of a limit of the total is not less than what is outside of them. */
static om_status
over_total(om_session *s, const om_prog *p, const om_plan *plan, uint32_t largest, uint64_t limit)
{
	const om_plan_memory m = om_plan_memory_of(p, plan);
	om_arena *mem = om_arena_new();
	om_status st;

	if (m.total - m.arenas > limit)
		st = om_fail(s, OM_BUDGET, "a run takes %" PRIu64 " bytes, more than the %" PRIu64 " allowed: weights (%" PRIu64
			") and inputs and outputs (%" PRIu64 ") alone take more", m.total, limit, m.weights, m.io);
	else
		st = over(s, p, plan, largest, om_printf(mem, "a run takes %" PRIu64 " bytes, more than the %" PRIu64
			" allowed; besides weights (%" PRIu64 ") and inputs and outputs (%" PRIu64 "), the arenas take", m.total,
			limit, m.weights, m.io), m.arenas, limit - (m.total - m.arenas));
	om_arena_free(mem);
	return st;
}

/* A run may take more than a total that is within the limit. */
static void
warn_unsized(om_session *s, const om_prog *p, const om_plan *plan)
{
	om_arena *mem = om_arena_new();
	uint32_t n;
	const om_value **all = om_plan_unsized(p, plan, mem, &n);

	if (n)
		om_warn(s, "the total leaves out %s%s, whose size a run decides", all[0]->name,
			n > 1 ? om_printf(mem, " and %" PRIu32 " more", n - 1) : "");
	if (plan->nunplanned)
		om_warn(s, "the total leaves out %" PRIu32 " value%s outside of the plan", plan->nunplanned, plan->nunplanned == 1 ? "" : "s");
	om_arena_free(mem);
}

static om_status
plan_limits_guarded(om_session *s, const om_prog *p, const om_plan *plan, uint64_t budget, uint64_t total)
{
	uint64_t sum = 0;
	uint32_t largest = 0;

	for (uint32_t k = 0; k < plan->narena; k++) {
		const om_plan_arena *a = &plan->arena[k];
		if (a->limit && a->bytes > a->limit) {
			om_arena *mem = om_arena_new();
			const char *what = plan->narena == 1 ? "the arena needs" : om_printf(mem, "arena %s needs", a->name);
			const om_status st = over(s, p, plan, k, what, a->bytes, a->limit);
			om_arena_free(mem);
			return st;
		}
		sum = om_size_sum(sum, a->bytes);
		largest = a->bytes > plan->arena[largest].bytes ? k : largest;
	}
	if (budget && sum > budget)
		return over(s, p, plan, largest, "all arenas together take", sum, budget);
	if (total && om_plan_memory_of(p, plan).total > total)
		return over_total(s, p, plan, largest, total);
	if (total)
		warn_unsized(s, p, plan);
	return OM_OK;
}

om_status
om_plan_limits(om_session *s, const om_prog *p, const om_plan *plan, uint64_t arenas, uint64_t total)
{
	OM_GUARDED(s, plan_limits_guarded(s, p, plan, arenas, total));
}
