/* SPDX-License-Identifier: Apache-2.0 */
/* The portfolio: which packers run on a component, in which order.
 *
 * Three placement methods make a packing from an order of the buffers: a skyline,
 * and two greedy ones that fill gaps.  First come single runs, the cheap ones
 * first.  Then a short complete search: problems that are hard for orders are often
 * easy for it, and vice versa.  Then squeaky wheel optimization improves
 * the orders: buffers above the goal move forward in the order, to its front or
 * half the distance, and the component is packed again.  A run may be worse than
 * the one before; the next one starts from it all the same, since only the best of
 * all counts.  Each of these sequences gets a few iterations at first; those that
 * reached the lowest height come first when there are more.  In between, large
 * neighborhood search improves the best packing where it exceeds the goal.  Then
 * comes the complete search; if it gives up, squeaky wheel optimization continues.
 * Small components that the skyline does not support get hill climbing.
 *
 * It stops as soon as the goal is met.  Effort is counted in work, so that the same
 * problem always gets the same offsets; time counts only if the caller limits it.
 *
 * Joslin, Clements, "Squeaky wheel optimization", 1999.
 */
#include <config.h>

#include <stdlib.h>

#include "pack/packer.h"
#include "base/progress.h"
#include "pack/sort_keys.h"

enum {
	SKYLINE_COST = 40,                    /* the cost of a buffer in a skyline; a neighbor costs 1 */
	SKYLINE_WORK = 100 * 1000 * 1000,     /* work in single skylines, */
	GREEDY_WORK = 80 * 1000 * 1000,         /* in greedy runs, */
	REPAIR_WORK = 40 * 1000 * 1000,    /* in their repair, for best fit and first fit, */
	SWO_WORK = 120 * 1000 * 1000,       /* in skylines of the squeaky wheel, */
	LNS_WORK = 40 * 1000 * 1000,      /* in each large neighborhood search */
	CLIMB_WORK = 10 * 1000 * 1000,
	CLIMB_MAX_BUFFERS = 2000,                    /* at most so many buffers for hill climbing */
	LNS_MIN_BUFFERS = 10 * 1000,               /* buffers from which LNS costs less than packing again */
	SWO_RUNS = 1000,                     /* of the squeaky wheel, at most, */
	SWO_LAST_RUNS = 10 * 1000,           /* and after the complete search */
	FIRST_ITERATIONS = 16, ITERATION_GROWTH = 4,
	FIRST_NODES = 100 * 1000,        /* of complete search before the squeaky wheel */
	LATER_ITERATION = 16,                      /* the iteration at which the second search starts */
	REPAIR_ITERATIONS = 200,                   /* iterations of a greedy order */
};

enum method { SKYLINE, BEST_FIT, FIRST_FIT };

/* A buffer above the goal moves from position k in the order to k * move / 64. */
enum { TO_FRONT = 0, HALF = 32, NMOVE = 4 };

static const uint32_t moves[NMOVE] = {HALF, TO_FRONT, 60, 63};

enum { NSEQUENCE = OM_NORDER * NMOVE };

/* A sequence of runs of the squeaky wheel: an order and a distance. */
struct sequence {
	uint64_t height;                 /* the lowest one reached */
	uint32_t k, move, pass;
};

struct squeaky_wheel {
	struct sequence sequence[NSEQUENCE];
	uint32_t next;
	uint64_t iterations;
};

struct portfolio {
	om_arena *mem;
	const om_component *component;
	const om_search_limits *limits;
	om_skyline *skyline;             /* NULL if the component is not supported */
	om_greedy greedy;
	uint32_t *order, *next;          /* by position: buffers of the component */
	uint32_t norder;                 /* buffers without fixed offset */
	uint64_t *offset;                /* of the best packing, by index in component->item */
	om_component_result *best;
	uint64_t work;                   /* in skylines */
	uint32_t runs;                   /* of the squeaky wheel, left */
	struct squeaky_wheel squeaky_wheel;
	bool is_searched;                   /* the complete search is done */
	enum method method;                    /* of the best packing */
	uint32_t k;
	uint64_t lns_height;                 /* height after the last LNS */
};

static bool
is_done(const struct portfolio *p)
{
	return p->best->height <= p->component->goal;
}

/* Optimal, at the goal, or out of time with a packing at hand. */
static bool
is_finished(const struct portfolio *p)
{
	return is_done(p) || p->best->is_proven || (p->best->height < UINT64_MAX
		&& om_is_past_deadline(p->limits));
}

/* The work for a phase: its default, or the caller's limit if that is lower. */
static uint64_t
granted_work(const struct portfolio *p, uint64_t work)
{
	return p->limits->work && p->limits->work < work ? p->limits->work : work;
}

/* Report progress after each attempt, whether or not it improved. */
static void
report_progress(const struct portfolio *p)
{
	if (p->limits->session && p->best->height < UINT64_MAX)
		om_report_progress(p->limits->session, "packing", p->best->height, p->component->goal);
}

static void
keep_best(struct portfolio *p, uint64_t height, const char *strategy)
{
	p->best->height = height;
	p->best->strategy = strategy;
	for (uint32_t k = 0; k < p->component->nitem; k++)
		p->offset[k] = p->component->buf[p->component->item[k]].offset;
	report_progress(p);
}

static void
restore(struct portfolio *p)
{
	for (uint32_t k = 0; k < p->component->nitem; k++)
		p->component->buf[p->component->item[k]].offset = p->offset[k];
}

/* Pack by p->order. */
static uint64_t
run_order(struct portfolio *p, enum method method, uint32_t k, om_refinement refinement)
{
	uint64_t height;

	if (method == SKYLINE) {
		height = om_skyline_run(p->skyline, p->order, p->norder);
		p->work += (uint64_t)p->norder * SKYLINE_COST;
	} else {
		height = om_greedy_run(&p->greedy, p->order, p->norder,
			method == BEST_FIT ? OM_BEST_FIT : OM_FIRST_FIT);
	}
	if (height < p->best->height) {
		p->method = method;
		p->k = k;
		keep_best(p, height, om_order_name(k, method == SKYLINE, refinement));
	} else {
		report_progress(p);
	}
	return height;
}

/* ---- Single runs. ---- */

/* Improve the best packing so far, unless that was done before. */
static void
improve_by_lns(struct portfolio *p, uint64_t work)
{
	if (is_finished(p) || p->best->height == p->lns_height || p->best->height == UINT64_MAX)
		return;
	restore(p);
	const uint64_t before = p->greedy.work, height = om_large_neighborhood(&p->greedy, granted_work(p,
		work));
	p->greedy.work = before;
	if (height < p->best->height)
		keep_best(p, height, om_order_name(p->k, p->method == SKYLINE, OM_REFINE_LNS));
	p->lns_height = p->best->height;
}

static void
try_skylines(struct portfolio *p)
{
	for (uint32_t k = 0; k < OM_NORDER && !is_finished(p); k++) {
		uint64_t height = UINT64_MAX;
		if (p->work <= granted_work(p, SKYLINE_WORK)) {
			om_order_fill(p->component, k, p->order);
			height = run_order(p, SKYLINE, k, OM_REFINE_NONE);
			if (k == 0 && p->norder >= LNS_MIN_BUFFERS)
				improve_by_lns(p, (uint64_t)p->norder * SKYLINE_COST);
		}
		for (uint32_t m = 0; m < NMOVE; m++)
			p->squeaky_wheel.sequence[k * NMOVE + m] = (struct sequence){height, k, m, 0};
	}
}

/* Pairs of lifetimes that overlap in time: the neighbors that a greedy run visits. */
static uint64_t
count_overlaps(const om_component *p, om_arena *mem)
{
	uint32_t *upper = OM_NEWN(mem, uint32_t, p->nlifetime), ended = 0;
	uint64_t sum = 0;

	for (uint32_t k = 0; k < p->nlifetime; k++)
		upper[k] = p->lifetime[k].upper;
	qsort(upper, p->nlifetime, sizeof *upper, om_compare_u32);
	for (uint32_t k = 0; k < p->nlifetime; k++) {
		while (upper[ended] <= p->lifetime[k].lower)
			ended++;
		sum += k - ended;
	}
	return sum;
}

/* The first one runs whatever its cost if there is no other packing. */
static void
try_greedy(struct portfolio *p, enum method method, uint64_t cost)
{
	for (uint32_t k = 0; k < OM_NORDER && !is_finished(p); k++) {
		if (p->best->height < UINT64_MAX && p->greedy.work + cost > granted_work(p, GREEDY_WORK))
			return;
		om_order_fill(p->component, k, p->order);
		run_order(p, method, k, OM_REFINE_NONE);
	}
}

/* ---- Squeaky wheel optimization. ---- */

static bool
exceeds_goal(const struct portfolio *p, uint32_t k)
{
	const om_buffer *b = &p->component->buf[p->order[k]];
	return b->offset + b->bytes > p->component->goal;
}

/* The first position in the order, from `k` on, whose buffer does or does not
 * exceed the goal. */
static uint32_t
next_position(const struct portfolio *p, uint32_t k, bool high)
{
	while (k < p->norder && exceeds_goal(p, k) != high)
		k++;
	return k;
}

/* Buffers above the goal move forward, the others keep their order.  False if there
 * are none of either kind. */
static bool
promote_high(struct portfolio *p, uint32_t move)
{
	uint32_t high = next_position(p, 0, true), low = next_position(p, 0, false);

	if (high == p->norder || low == p->norder)
		return false;
	for (uint32_t n = 0; n < p->norder; n++) {
		const uint64_t place = (uint64_t)high * move / 64;
		if (high < p->norder && (place <= low || low == p->norder)) {
			p->next[n] = p->order[high];
			high = next_position(p, high + 1, true);
		} else {
			p->next[n] = p->order[low];
			low = next_position(p, low + 1, false);
		}
	}
	uint32_t *t = p->order;
	p->order = p->next;
	p->next = t;
	return true;
}

/* In the first pass by distance; later the sequences with the lowest height first. */
static int
compare_sequence(const void *a, const void *b)
{
	const struct sequence *x = a, *y = b;

	if (x->pass == 0 && x->move != y->move)
		return x->move < y->move ? -1 : 1;
	if (x->height != y->height)
		return x->height < y->height ? -1 : 1;
	if (x->move != y->move)
		return x->move < y->move ? -1 : 1;
	return x->k < y->k ? -1 : x->k > y->k;
}

/* False when the squeaky wheel has to stop. */
static bool
run_sequence(struct portfolio *p, struct sequence *w, uint64_t iterations, uint64_t work)
{
	w->pass++;
	om_order_fill(p->component, w->k, p->order);
	for (uint64_t iteration = 0; iteration <= iterations; iteration++) {
		const uint64_t height = run_order(p, SKYLINE, w->k, iteration > 0 ? OM_REFINE_REPAIR
			: OM_REFINE_NONE);
		if (height < w->height)
			w->height = height;
		if (is_finished(p) || p->work > work || p->runs == 0)
			return false;
		p->runs--;
		if (!promote_high(p, moves[w->move]))
			break;
	}
	return true;
}

/* Each sequence restarts, with more iterations than before: only its lowest height
 * is stored.  Continues at the sequence where the last call stopped. */
static void
run_squeaky_wheel(struct portfolio *p, uint64_t work, uint32_t runs)
{
	struct squeaky_wheel *w = &p->squeaky_wheel;

	if (!p->skyline || is_finished(p) || work / FIRST_ITERATIONS < (uint64_t)p->norder * SKYLINE_COST)
		return;
	p->runs = p->limits->deadline_ms > 0 && p->is_searched ? UINT32_MAX : runs;
	work = p->runs == UINT32_MAX ? UINT64_MAX : p->work + granted_work(p, work);
	for (;;) {
		if (w->next == 0)
			qsort(w->sequence, NSEQUENCE, sizeof *w->sequence, compare_sequence);
		for (; w->next < NSEQUENCE; w->next++)
			if (!run_sequence(p, &w->sequence[w->next], w->iterations, work))
				return;
		w->next = 0;
		w->iterations *= ITERATION_GROWTH;
	}
}

static void
repair_greedy(struct portfolio *p, enum method method, uint64_t cost)
{
	const uint64_t limit = p->greedy.work + granted_work(p, p->skyline ? REPAIR_WORK / 8 : REPAIR_WORK);

	for (uint32_t k = 0; k < OM_NORDER && !is_finished(p); k++) {
		om_order_fill(p->component, k, p->order);
		for (uint32_t iteration = 0; iteration <= REPAIR_ITERATIONS && !is_finished(p); iteration++) {
			if (p->greedy.work + cost > limit)
				return;
			run_order(p, method, k, iteration > 0 ? OM_REFINE_REPAIR : OM_REFINE_NONE);
			if (!promote_high(p, TO_FRONT))
				break;
		}
	}
}

/* Only for components that the skyline does not support, as the search does not
 * support these either. */
static void
hill_climb(struct portfolio *p)
{
	if (is_finished(p) || p->skyline || p->norder > CLIMB_MAX_BUFFERS)
		return;
	restore(p);
	const uint64_t height = om_hill_climb(&p->greedy, p->limits, granted_work(p, CLIMB_WORK),
		p->best->height);
	if (height < p->best->height)
		keep_best(p, height, "hill climbing");
}

/* ---- The portfolio. ---- */

static void
complete_search(struct portfolio *p, uint64_t nodes, uint32_t iteration)
{
	om_search_limits e = *p->limits;
	uint64_t height = p->best->height;

	if (is_finished(p))
		return;
	e.nodes = nodes < e.nodes ? nodes : e.nodes;
	p->best->is_proven = om_complete_search(p->component, &e, iteration, &height)
		&& height > p->component->goal;
	if (height < p->best->height)
		keep_best(p, height, "search");
}

/* Best fit by size comes first if it is cheap: it is optimal for most networks. */
static void
run_portfolio(struct portfolio *p)
{
	const uint64_t cost = count_overlaps(p->component, p->mem);

	om_greedy_init(&p->greedy, p->component, p->mem);
	if (cost <= (uint64_t)p->norder * SKYLINE_COST) {
		om_order_fill(p->component, OM_BY_SIZE, p->order);
		run_order(p, BEST_FIT, OM_BY_SIZE, OM_REFINE_NONE);
	}
	if (is_finished(p))
		return;
	if (om_skyline_supports(p->component)) {
		p->skyline = om_skyline_new(p->component, p->mem);
		try_skylines(p);
	}
	if (p->norder >= LNS_MIN_BUFFERS)
		improve_by_lns(p, LNS_WORK);
	complete_search(p, FIRST_NODES, 0);
	try_greedy(p, BEST_FIT, cost);
	try_greedy(p, FIRST_FIT, cost);
	improve_by_lns(p, LNS_WORK);
	run_squeaky_wheel(p, SWO_WORK, SWO_RUNS);
	improve_by_lns(p, LNS_WORK);
	repair_greedy(p, BEST_FIT, cost);
	repair_greedy(p, FIRST_FIT, cost);
	improve_by_lns(p, LNS_WORK);
	hill_climb(p);
}

void
om_component_pack(const om_component *component, const om_search_limits *limits, om_arena *mem,
	om_component_result *best)
{
	struct portfolio p = {.mem = mem, .component = component, .limits = limits, .best = best};

	p.order = OM_NEWN(mem, uint32_t, component->nitem);
	p.next = OM_NEWN(mem, uint32_t, component->nitem);
	p.offset = OM_NEWN(mem, uint64_t, component->nitem);
	for (uint32_t k = 0; k < component->nitem; k++)
		p.norder += component->buf[component->item[k]].fixed < 0;
	p.squeaky_wheel.iterations = FIRST_ITERATIONS;
	*best = (om_component_result){.height = UINT64_MAX};
	run_portfolio(&p);
	complete_search(&p, limits->nodes > FIRST_NODES ? limits->nodes - FIRST_NODES : 0, LATER_ITERATION);
	p.is_searched = true;
	run_squeaky_wheel(&p, SWO_WORK, SWO_LAST_RUNS);
	restore(&p);
}
