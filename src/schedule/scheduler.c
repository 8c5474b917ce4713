/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of low peak: simple parts at once, small parts exactly, the others as far
 * as the search nodes suffice.
 *
 * An op that precedes or succeeds every other one splits the problem in two: in all
 * orders the same set of ops has run when it has run.  The peak of the whole is the
 * largest peak of its parts, so it is enough to prove of one part that its peak is
 * minimal; the others only have to stay below that.  So the parts are solved by
 * peak, largest first, and the bound of one is the level where the next one starts.
 *
 * If a part is too large for the exact search, beams of growing width search for
 * better orders, then exact searches in windows around the peak.
 */
#include <config.h>

#include <stdlib.h>

#include "base/guard.h"
#include "base/progress.h"
#include "schedule/subproblem.h"

struct schedule_part {
	uint32_t from, to;       /* units */
	uint64_t peak;
};

struct solver {
	om_session *session;
	om_arena *mem;
	om_schedule_index *x;
	uint32_t nop, nunit;
	uint32_t *order, *unit_of;
	uint32_t *at;            /* by position among the units: the position of its first op */
	uint64_t *before, *during;
	uint64_t level;          /* lower bound of the peak of any order */
	uint64_t nodes;
	struct schedule_part *part;
	uint32_t npart;
};

/* ---- Checks. ---- */

static bool
is_used(const om_schedule_op *op, uint32_t s)
{
	for (uint32_t k = 0; k < op->nuse; k++)
		if (op->use[k] == s)
			return true;
	return false;
}

static om_status
check_op(om_session *s, const om_schedule_problem *q, uint32_t i)
{
	const om_schedule_op *op = &q->op[i];
	uint64_t sum = op->begin;

	for (uint32_t k = 0; k < op->nafter; k++)
		if (op->after[k] >= i)
			return om_fail(s, OM_INVALID, "order: op %u comes after op %u, whose number is not smaller",
				i, op->after[k]);
	for (uint32_t k = 0; k < op->nuse; k++) {
		if (op->use[k] >= q->nstorage)
			return om_fail(s, OM_INVALID, "order: op %u uses storage %u, but there are only %u", i,
				op->use[k], q->nstorage);
		const uint32_t producer = q->storage[op->use[k]].producer;
		if (producer != OM_SCHEDULE_NONE && producer >= i)
			return om_fail(s, OM_INVALID, "order: op %u uses storage %u, which op %u makes later", i,
				op->use[k], producer);
	}
	for (uint32_t k = 0; k < op->ndies_early; k++)
		if (!is_used(op, op->early[k]))
			return om_fail(s, OM_INVALID, "order: op %u: storage %u is in `early`, but not in `use`", i,
				op->early[k]);
	for (uint32_t k = 0; k < op->nover; k++) {
		const om_inplace_pair *o = &op->over[k];
		if (o->made >= q->nstorage || q->storage[o->made].producer != i || !is_used(op, o->needed)
		    || q->storage[o->made].bytes != q->storage[o->needed].bytes)
			return om_fail(s, OM_INVALID,
				"order: op %u computes a storage in place of one that it does not use, "
				"or that has another size", i);
		if ((k == 0 || o->made != o[-1].made)
		    && __builtin_sub_overflow(sum, q->storage[o->made].bytes, &sum))
			return om_fail(s, OM_INVALID, "order: op %u makes more bytes than it requires at its start", i);
	}
	return OM_OK;
}

om_status
om_schedule_check(om_session *s, const om_schedule_problem *q)
{
	uint64_t sum = 0;
	bool large = false;

	for (uint32_t k = 0; k < q->nstorage; k++) {
		large |= __builtin_add_overflow(sum, q->storage[k].bytes, &sum);
		if (q->storage[k].producer != OM_SCHEDULE_NONE && q->storage[k].producer >= q->nop)
			return om_fail(s, OM_INVALID, "order: storage %u is made by op %u, but there are only %u", k,
				q->storage[k].producer, q->nop);
	}
	for (uint32_t i = 0; i < q->nop; i++) {
		uint64_t peak = q->op[i].begin > q->op[i].middle ? q->op[i].begin : q->op[i].middle;
		large |= __builtin_add_overflow(sum, peak, &peak) || peak > INT64_MAX;
		OM_TRY(check_op(s, q, i));
	}
	return large ? om_fail(s, OM_INVALID, "order: the sum of the bytes overflows 63 bits") : OM_OK;
}

/* ---- Parts. ---- */

static void
update_profile(struct solver *s)
{
	om_schedule_profile(s->x, s->order, s->before, s->during);
}

static void
locate_units(struct solver *s)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < s->nop; k++)
		if (k == 0 || s->unit_of[s->order[k]] != s->unit_of[s->order[k - 1]])
			s->at[n++] = k;
	s->at[n] = s->nop;
}

static uint64_t
peak_between(const struct solver *s, uint32_t from, uint32_t to)
{
	uint64_t peak = 0;

	for (uint32_t k = s->at[from]; k < s->at[to]; k++)
		peak = s->during[k] > peak ? s->during[k] : peak;
	return peak;
}

/* Units are numbered by position.  A unit splits the problem if every unit before
 * it has a successor no later than it, and every unit after it has a predecessor no
 * earlier: by induction, all are related to it. */
static void
find_parts(struct solver *s)
{
	uint32_t *first_succ = OM_NEWN(s->mem, uint32_t, s->nunit), *last_pred = OM_NEWN(s->mem, uint32_t,
		s->nunit);
	bool *splits = OM_NEWN(s->mem, bool, s->nunit);
	uint32_t latest_succ = 0, earliest_pred = UINT32_MAX;

	memset(first_succ, 0xff, s->nunit * sizeof *first_succ);
	for (uint32_t i = 0; i < s->nop; i++)
		for (uint32_t k = s->x->before.at[i]; k < s->x->before.at[i + 1]; k++) {
			const uint32_t a = s->unit_of[s->x->before.item[k]], b = s->unit_of[i];
			if (a == b)
				continue;
			first_succ[a] = b < first_succ[a] ? b : first_succ[a];
			last_pred[b] = a + 1 > last_pred[b] ? a + 1 : last_pred[b];  /* 0: none */
		}
	for (uint32_t u = 0; u < s->nunit; u++) {
		splits[u] = latest_succ <= u;
		latest_succ = first_succ[u] > latest_succ ? first_succ[u] : latest_succ;
	}
	for (uint32_t u = s->nunit; u-- > 0;) {
		splits[u] &= earliest_pred > u;
		earliest_pred = last_pred[u] < earliest_pred ? last_pred[u] : earliest_pred;
	}
	s->part = OM_NEWN(s->mem, struct schedule_part, s->nunit);
	for (uint32_t u = 0, from = 0; u < s->nunit; u++)
		if (splits[u] || u + 1 == s->nunit) {
			s->part[s->npart++] = (struct schedule_part){.from = from, .to = u + 1};
			from = u + 1;
		}
}

static int
compare_peak(const void *a, const void *b)
{
	const struct schedule_part *x = a, *y = b;

	if (x->peak != y->peak)
		return x->peak > y->peak ? -1 : 1;
	return x->from < y->from ? -1 : 1;
}

/* ---- Search for better orders. ---- */

static om_subproblem *
make_subproblem(struct solver *s, uint32_t from, uint32_t to, om_arena *mem)
{
	return om_subproblem_new(s->x, s->order, s->unit_of, s->at[from], s->at[to],
		s->before[s->at[from]], mem);
}

/* Replace the order of the subproblem that starts at unit `from`. */
static void
replace_order(struct solver *s, const om_subproblem *g, uint32_t from, const uint32_t *order)
{
	for (uint32_t k = 0; k < g->nop; k++)
		s->order[s->at[from] + k] = g->op[order[k]];
	locate_units(s);
	update_profile(s);
}

/* Parts are solved by peak, largest first: the current one has the peak of the
 * whole. */
static void
report_progress(const struct solver *s, const struct schedule_part *p)
{
	om_report_progress(s->session, "order of the ops", p->peak > s->level ? p->peak : s->level, s->level);
}

/* Exact search in a window around the peak; true if it found a better order. */
static bool
improve_window(struct solver *s, struct schedule_part *p, uint32_t half)
{
	uint32_t u = p->from;
	uint64_t nodes = s->nodes / 16, left = nodes, level = s->level;

	while (peak_between(s, u, u + 1) < p->peak)
		u++;
	const uint32_t from = u - p->from > half ? u - half : p->from;
	const uint32_t to = p->to - u > half ? u + half : p->to;
	om_arena *mem = om_arena_new();
	const om_subproblem *g = make_subproblem(s, from, to, mem);
	uint32_t *order = OM_NEWN(mem, uint32_t, g->nop);
	const om_search_result found = om_subproblem_exact(g, &level, p->peak, &left, order);
	s->nodes -= nodes - left;
	if (found == OM_SCHEDULE_FOUND)
		replace_order(s, g, from, order);
	om_arena_free(mem);
	p->peak = peak_between(s, p->from, p->to);
	return found == OM_SCHEDULE_FOUND;
}

static void
improve(struct solver *s, struct schedule_part *p)
{
	static const uint32_t halves[] = {8, 16, 32, 64};
	bool found = true;

	while (found && p->peak > s->level) {
		found = false;
		for (size_t k = 0; k < sizeof halves / sizeof halves[0] && !found && s->nodes > 64 && !om_session_is_stopped(s->session); k++) {
			found = improve_window(s, p, halves[k]);
			report_progress(s, p);
		}
	}
}

static void
try_beams(struct solver *s, struct schedule_part *p, const om_subproblem *g)
{
	static const uint32_t widths[] = {1, 4, 16, 64, 256};
	uint32_t *order = OM_NEWN(s->mem, uint32_t, g->nop);

	for (size_t k = 0; k < sizeof widths / sizeof widths[0] && p->peak > s->level && !om_session_is_stopped(s->session); k++) {
		uint64_t nodes = s->nodes / 4, left = nodes;
		const om_search_result found = om_subproblem_beam(g, s->level, p->peak, widths[k], &left, order);
		s->nodes -= nodes - left;
		report_progress(s, p);
		if (found != OM_SCHEDULE_FOUND)
			continue;
		p->peak = om_subproblem_peak(g, order);
		replace_order(s, g, p->from, order);
	}
}

/* Lower the peak of the part, or raise the level to its bound. */
static void
solve_part(struct solver *s, struct schedule_part *p)
{
	om_arena *mem = om_arena_new();
	const om_subproblem *g = make_subproblem(s, p->from, p->to, mem);
	uint32_t *order = OM_NEWN(mem, uint32_t, g->nop);
	uint64_t nodes = s->nodes / 2, left = nodes;

	report_progress(s, p);
	const om_search_result found = om_subproblem_exact(g, &s->level, p->peak, &left, order);
	s->nodes -= nodes - left;
	if (found == OM_SCHEDULE_FOUND) {
		p->peak = om_subproblem_peak(g, order);
		replace_order(s, g, p->from, order);
	} else if (found == OM_SCHEDULE_NODE_LIMIT) {
		report_progress(s, p);
		try_beams(s, p, g);
		improve(s, p);
	}
	om_arena_free(mem);
}

static void
raise_level(struct solver *s)
{
	for (uint32_t k = 0; k < s->npart; k++) {
		om_arena *mem = om_arena_new();
		const uint64_t bound = om_subproblem_bound(make_subproblem(s, s->part[k].from, s->part[k].to, mem));
		s->level = bound > s->level ? bound : s->level;
		om_arena_free(mem);
	}
}

static void
solve_parts(struct solver *s)
{
	s->nunit = om_schedule_units(s->x, s->order, s->unit_of, s->mem);
	s->at = OM_NEWN(s->mem, uint32_t, (size_t)s->nunit + 1);
	locate_units(s);
	update_profile(s);
	find_parts(s);
	raise_level(s);
	for (uint32_t k = 0; k < s->npart; k++)
		s->part[k].peak = peak_between(s, s->part[k].from, s->part[k].to);
	qsort(s->part, s->npart, sizeof *s->part, compare_peak);
	for (uint32_t k = 0; k < s->npart; k++)
		if (s->part[k].peak > s->level)
			solve_part(s, &s->part[k]);
}

/* ---- Entry points. ---- */

static void
fill_identity(uint32_t *order, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		order[k] = k;
}

static om_status
order_solve_guarded(om_session *session, const om_schedule_problem *q, uint64_t nodes, uint32_t *order,
	om_schedule_result *result)
{
	om_arena *mem = om_arena_new();
	struct solver s = {.session = session, .mem = mem, .nop = q->nop, .nodes = nodes, .order = order};

	*result = (om_schedule_result){0};
	fill_identity(order, q->nop);
	const om_status st = om_schedule_check(session, q);
	if (st == OM_OK && q->nop) {
		s.x = om_schedule_index_new(q, mem);
		s.unit_of = OM_NEWN(mem, uint32_t, q->nop);
		s.before = OM_NEWN(mem, uint64_t, (size_t)q->nop + 1);
		s.during = OM_NEWN(mem, uint64_t, q->nop);
		result->given = om_schedule_profile(s.x, order, NULL, NULL);
		solve_parts(&s);
		result->peak = om_schedule_profile(s.x, order, NULL, NULL);
		if (result->peak >= result->given) {
			fill_identity(order, q->nop);
			result->peak = result->given;
		}
		result->lower_bound = s.level;
		result->nodes = nodes - s.nodes;
		result->is_proven = result->peak == s.level;
	}
	om_arena_free(mem);
	return st;
}

om_status
om_schedule_solve(om_session *session, const om_schedule_problem *q, uint64_t nodes, uint32_t *order,
	om_schedule_result *result)
{
	OM_GUARDED(session, order_solve_guarded(session, q, nodes, order, result));
}

uint64_t
om_schedule_peak(const om_schedule_problem *q, const uint32_t *order)
{
	om_arena *mem = om_arena_new();
	const uint64_t peak = om_schedule_profile(om_schedule_index_new(q, mem), order, NULL, NULL);

	om_arena_free(mem);
	return peak;
}
