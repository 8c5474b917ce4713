/* Orders of low peak: what is easy at once, what is small exactly, the rest as
 * far as the nodes go.
 *
 * An op that is before or behind every other one cuts the problem in two: all
 * orders have the same set of ops run when it has run.  The peak of the whole is
 * the largest of its pieces, so it is enough to know of one piece that it cannot
 * be below; the others only have to stay under that.  So the pieces are taken
 * by their peaks, largest first, and what one cannot be below is where the next
 * one starts.
 *
 * Where a piece is too much for the exact search, beams of growing width look
 * for better orders, then exact searches in windows around the peak.
 */
#include <config.h>

#include <stdlib.h>

#include "base/guard.h"
#include "schedule/subproblem.h"

struct piece {
	uint32_t from, to;       /* units */
	uint64_t peak;
};

struct solver {
	om_session *session;
	om_arena *mem;
	om_order_index *x;
	uint32_t nop, nunit;
	uint32_t *order, *unit_of;
	uint32_t *at;            /* by place among the units: its first op's position */
	uint64_t *before, *during;
	uint64_t level;          /* no order is below */
	uint64_t nodes;
	struct piece *piece;
	uint32_t npiece;
};

/* ---- Checks. ---- */

static bool
is_used(const om_order_op *op, uint32_t s)
{
	for (uint32_t k = 0; k < op->nuse; k++)
		if (op->use[k] == s)
			return true;
	return false;
}

static om_status
check_op(om_session *s, const om_order_problem *q, uint32_t i)
{
	const om_order_op *op = &q->op[i];
	uint64_t sum = op->begin;

	for (uint32_t k = 0; k < op->nafter; k++)
		if (op->after[k] >= i)
			return om_fail(s, OM_INVALID, "order: op %u comes after op %u, which has no smaller number",
				i, op->after[k]);
	for (uint32_t k = 0; k < op->nuse; k++) {
		if (op->use[k] >= q->nstorage)
			return om_fail(s, OM_INVALID, "order: op %u needs storage %u of %u", i, op->use[k], q->nstorage);
		const uint32_t maker = q->storage[op->use[k]].maker;
		if (maker != OM_ORDER_NONE && maker >= i)
			return om_fail(s, OM_INVALID, "order: op %u needs storage %u, which op %u makes", i,
				op->use[k], maker);
	}
	for (uint32_t k = 0; k < op->ndies_early; k++)
		if (!is_used(op, op->early[k]))
			return om_fail(s, OM_INVALID, "order: op %u needs storage %u early, but not at all", i, op->early[k]);
	for (uint32_t k = 0; k < op->nover; k++) {
		const om_inplace_pair *o = &op->over[k];
		if (o->made >= q->nstorage || q->storage[o->made].maker != i || !is_used(op, o->needed)
		    || q->storage[o->made].bytes != q->storage[o->needed].bytes)
			return om_fail(s, OM_INVALID, "order: op %u computes one storage over another that it does not need, or that has another size", i);
		if ((k == 0 || o->made != o[-1].made)
		    && __builtin_sub_overflow(sum, q->storage[o->made].bytes, &sum))
			return om_fail(s, OM_INVALID, "order: op %u makes more than it takes at its start", i);
	}
	return OM_OK;
}

om_status
om_order_check(om_session *s, const om_order_problem *q)
{
	uint64_t sum = 0;
	bool large = false;

	for (uint32_t k = 0; k < q->nstorage; k++) {
		large |= __builtin_add_overflow(sum, q->storage[k].bytes, &sum);
		if (q->storage[k].maker != OM_ORDER_NONE && q->storage[k].maker >= q->nop)
			return om_fail(s, OM_INVALID, "order: storage %u is made by op %u of %u", k,
				q->storage[k].maker, q->nop);
	}
	for (uint32_t i = 0; i < q->nop; i++) {
		uint64_t most = q->op[i].begin > q->op[i].middle ? q->op[i].begin : q->op[i].middle;
		large |= __builtin_add_overflow(sum, most, &most) || most > INT64_MAX;
		OM_TRY(check_op(s, q, i));
	}
	return large ? om_fail(s, OM_INVALID, "order: more bytes than can be counted") : OM_OK;
}

/* ---- Pieces. ---- */

static void
profile(struct solver *s)
{
	om_order_profile(s->x, s->order, s->before, s->during);
}

static void
place_units(struct solver *s)
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
	uint64_t most = 0;

	for (uint32_t k = s->at[from]; k < s->at[to]; k++)
		most = s->during[k] > most ? s->during[k] : most;
	return most;
}

/* Units are numbered as they stand.  One cuts when all before it have somebody
 * behind them no later than it, and all behind it somebody before them no
 * earlier: by induction, all are related to it. */
static void
find_pieces(struct solver *s)
{
	uint32_t *soonest = OM_NEWN(s->mem, uint32_t, s->nunit), *latest = OM_NEWN(s->mem, uint32_t, s->nunit);
	bool *cuts = OM_NEWN(s->mem, bool, s->nunit);
	uint32_t most = 0, least = UINT32_MAX;

	memset(soonest, 0xff, s->nunit * sizeof *soonest);
	for (uint32_t i = 0; i < s->nop; i++)
		for (uint32_t k = s->x->before.at[i]; k < s->x->before.at[i + 1]; k++) {
			const uint32_t a = s->unit_of[s->x->before.item[k]], b = s->unit_of[i];
			if (a == b)
				continue;
			soonest[a] = b < soonest[a] ? b : soonest[a];
			latest[b] = a + 1 > latest[b] ? a + 1 : latest[b];  /* 0: nobody */
		}
	for (uint32_t u = 0; u < s->nunit; u++) {
		cuts[u] = most <= u;
		most = soonest[u] > most ? soonest[u] : most;
	}
	for (uint32_t u = s->nunit; u-- > 0;) {
		cuts[u] &= least > u;
		least = latest[u] < least ? latest[u] : least;
	}
	s->piece = OM_NEWN(s->mem, struct piece, s->nunit);
	for (uint32_t u = 0, from = 0; u < s->nunit; u++)
		if (cuts[u] || u + 1 == s->nunit) {
			s->piece[s->npiece++] = (struct piece){.from = from, .to = u + 1};
			from = u + 1;
		}
}

static int
by_peak(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->peak != y->peak)
		return x->peak > y->peak ? -1 : 1;
	return x->from < y->from ? -1 : 1;
}

/* ---- Looking for better orders. ---- */

static om_subproblem *
segment(struct solver *s, uint32_t from, uint32_t to, om_arena *mem)
{
	return om_subproblem_new(s->x, s->order, s->unit_of, s->at[from], s->at[to],
		s->before[s->at[from]], mem);
}

/* The segment that starts at unit `from` gets another order. */
static void
take(struct solver *s, const om_subproblem *g, uint32_t from, const uint32_t *order)
{
	for (uint32_t k = 0; k < g->nop; k++)
		s->order[s->at[from] + k] = g->op[order[k]];
	place_units(s);
	profile(s);
}

/* The pieces are done by their peaks, largest first: that of this one decides. */
static void
tell(const struct solver *s, const struct piece *p)
{
	om_report_progress(s->session, "order of the ops", p->peak > s->level ? p->peak : s->level, s->level);
}

/* Exact searches around the peak, as long as they find something. */
static bool
improve_window(struct solver *s, struct piece *p, uint32_t half)
{
	uint32_t u = p->from;
	uint64_t nodes = s->nodes / 16, left = nodes, level = s->level;

	while (peak_between(s, u, u + 1) < p->peak)
		u++;
	const uint32_t from = u - p->from > half ? u - half : p->from;
	const uint32_t to = p->to - u > half ? u + half : p->to;
	om_arena *mem = om_arena_new();
	const om_subproblem *g = segment(s, from, to, mem);
	uint32_t *order = OM_NEWN(mem, uint32_t, g->nop);
	const om_found found = om_subproblem_exact(g, &level, p->peak, &left, order);
	s->nodes -= nodes - left;
	if (found == OM_FOUND)
		take(s, g, from, order);
	om_arena_free(mem);
	p->peak = peak_between(s, p->from, p->to);
	return found == OM_FOUND;
}

static void
improve(struct solver *s, struct piece *p)
{
	static const uint32_t halves[] = {8, 16, 32, 64};
	bool found = true;

	while (found && p->peak > s->level) {
		found = false;
		for (size_t k = 0; k < sizeof halves / sizeof halves[0] && !found && s->nodes > 64; k++) {
			found = improve_window(s, p, halves[k]);
			tell(s, p);
		}
	}
}

static void
try_beams(struct solver *s, struct piece *p, const om_subproblem *g)
{
	static const uint32_t widths[] = {1, 4, 16, 64, 256};
	uint32_t *order = OM_NEWN(s->mem, uint32_t, g->nop);

	for (size_t k = 0; k < sizeof widths / sizeof widths[0] && p->peak > s->level; k++) {
		uint64_t nodes = s->nodes / 4, left = nodes;
		const om_found found = om_subproblem_beam(g, s->level, p->peak, widths[k], &left, order);
		s->nodes -= nodes - left;
		tell(s, p);
		if (found != OM_FOUND)
			continue;
		p->peak = om_subproblem_peak(g, order);
		take(s, g, p->from, order);
	}
}

/* Bring the piece below its peak, or raise the level to what it cannot be below. */
static void
solve_piece(struct solver *s, struct piece *p)
{
	om_arena *mem = om_arena_new();
	const om_subproblem *g = segment(s, p->from, p->to, mem);
	uint32_t *order = OM_NEWN(mem, uint32_t, g->nop);
	uint64_t nodes = s->nodes / 2, left = nodes;

	tell(s, p);
	const om_found found = om_subproblem_exact(g, &s->level, p->peak, &left, order);
	s->nodes -= nodes - left;
	if (found == OM_FOUND) {
		p->peak = om_subproblem_peak(g, order);
		take(s, g, p->from, order);
	} else if (found == OM_GAVE_UP) {
		tell(s, p);
		try_beams(s, p, g);
		improve(s, p);
	}
	om_arena_free(mem);
}

static void
find_level(struct solver *s)
{
	for (uint32_t k = 0; k < s->npiece; k++) {
		om_arena *mem = om_arena_new();
		const uint64_t bound = om_subproblem_bound(segment(s, s->piece[k].from, s->piece[k].to, mem));
		s->level = bound > s->level ? bound : s->level;
		om_arena_free(mem);
	}
}

static void
solve(struct solver *s)
{
	s->nunit = om_order_units(s->x, s->order, s->unit_of, s->mem);
	s->at = OM_NEWN(s->mem, uint32_t, (size_t)s->nunit + 1);
	place_units(s);
	profile(s);
	find_pieces(s);
	find_level(s);
	for (uint32_t k = 0; k < s->npiece; k++)
		s->piece[k].peak = peak_between(s, s->piece[k].from, s->piece[k].to);
	qsort(s->piece, s->npiece, sizeof *s->piece, by_peak);
	for (uint32_t k = 0; k < s->npiece; k++)
		if (s->piece[k].peak > s->level)
			solve_piece(s, &s->piece[k]);
}

/* ---- What is offered. ---- */

static void
number(uint32_t *order, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		order[k] = k;
}

static om_status
order_solve_guarded(om_session *session, const om_order_problem *q, uint64_t nodes, uint32_t *order,
	om_order_result *result)
{
	om_arena *mem = om_arena_new();
	struct solver s = {.session = session, .mem = mem, .nop = q->nop, .nodes = nodes, .order = order};

	*result = (om_order_result){0};
	number(order, q->nop);
	const om_status st = om_order_check(session, q);
	if (st == OM_OK && q->nop) {
		s.x = om_order_index_new(q, mem);
		s.unit_of = OM_NEWN(mem, uint32_t, q->nop);
		s.before = OM_NEWN(mem, uint64_t, (size_t)q->nop + 1);
		s.during = OM_NEWN(mem, uint64_t, q->nop);
		result->given = om_order_profile(s.x, order, NULL, NULL);
		solve(&s);
		result->peak = om_order_profile(s.x, order, NULL, NULL);
		if (result->peak >= result->given) {
			number(order, q->nop);
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
om_order_solve(om_session *session, const om_order_problem *q, uint64_t nodes, uint32_t *order,
	om_order_result *result)
{
	OM_GUARDED(session, order_solve_guarded(session, q, nodes, order, result));
}

uint64_t
om_order_peak(const om_order_problem *q, const uint32_t *order)
{
	om_arena *mem = om_arena_new();
	const uint64_t peak = om_order_profile(om_order_index_new(q, mem), order, NULL, NULL);

	om_arena_free(mem);
	return peak;
}
