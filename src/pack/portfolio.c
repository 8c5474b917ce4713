/* What is tried on one part, and in which order.
 *
 * Three ways make a packing from an order of the buffers: a skyline, and two
 * greedy ones that fill gaps.  First come single runs, what is cheap before the
 * others.  Then a little complete search: what is hard for orders is often easy
 * for it, and the other way round.  Then the orders are improved by their
 * results, like a wheel that is greased where it squeaks: whatever sticks out of the goal moves forward in
 * the order, to its front or half the way, and the next run follows.  A run may
 * get worse; the next one starts from it all the same, since what counts is the
 * best of all.  Each of these walks gets a few rounds at first; those that came
 * lowest go first when there are more.  In between, the best one is mended, where
 * it sticks out.  Then comes the complete search; when that gives up, the wheel
 * turns on.  Small parts that only fill gaps are climbed over by changes of one
 * buffer each.
 *
 * It stops as soon as the goal is met.  How much is tried is counted in work,
 * so that the same problem always gets the same offsets; time counts only where
 * the caller limits it.
 *
 * The wheel: Joslin, Clements, "Squeaky wheel optimization", 1999.
 */
#include <config.h>

#include <stdlib.h>

#include "pack/packer.h"
#include "pack/sort_keys.h"

enum {
	PLACING = 40,                    /* what a buffer costs a skyline; a neighbour costs 1 */
	SINGLES = 100 * 1000 * 1000,     /* work in single skylines, */
	GAPS = 80 * 1000 * 1000,         /* in runs that fill gaps, */
	REPAIRING = 40 * 1000 * 1000,    /* in their repair, for best fit and first fit, */
	WHEEL = 120 * 1000 * 1000,       /* in skylines of the wheel, */
	MENDING = 40 * 1000 * 1000,      /* each time */
	CLIMBING = 10 * 1000 * 1000,
	SMALL = 2000,                    /* buffers that may be climbed over */
	LARGE = 10 * 1000,               /* buffers: mending costs less than packing again */
	RUNS = 1000,                     /* of the wheel, at most, */
	LAST_RUNS = 10 * 1000,           /* and when all else has failed */
	FIRST_ROUNDS = 16, MORE_ROUNDS = 4,
	FIRST_NODES = 100 * 1000,        /* of complete search before the wheel */
	LATER = 16,                      /* the round with which it goes on behind it */
	REPAIRS = 200,                   /* rounds, where gaps are filled */
};

enum way { SKYLINE, BEST_FIT, FIRST_FIT };

/* What sticks out moves from place k in the order to k * move / 64. */
enum { TO_FRONT = 0, HALF_WAY = 32, NMOVE = 4 };

static const uint32_t moves[NMOVE] = {HALF_WAY, TO_FRONT, 60, 63};

enum { NWALK = OM_NORDER * NMOVE };

/* A walk of the wheel. */
struct walk {
	uint64_t height;                 /* how low it came */
	uint32_t k, move, pass;
};

struct wheel {
	struct walk walk[NWALK];
	uint32_t next;
	uint64_t rounds;
};

struct portfolio {
	om_arena *mem;
	const om_component *part;
	const om_effort *effort;
	om_skyline *skyline;             /* NULL where it does not serve */
	om_greedy greedy;
	uint32_t *order, *next;          /* room for a part */
	uint32_t norder;                 /* buffers without fixed offset */
	uint64_t *offset;                /* of the best packing, by place in part->item */
	om_best *best;
	uint64_t work;                   /* in skylines */
	uint32_t runs;                   /* of the wheel, still granted */
	struct wheel wheel;
	bool searched;                   /* completely */
	enum way way;                    /* of the best */
	uint32_t k;
	uint64_t mended;                 /* height after mending */
};

static bool
is_done(const struct portfolio *p)
{
	return p->best->height <= p->part->goal;
}

/* Good enough, as good as can be, or out of time with a plan at hand. */
static bool
is_over(const struct portfolio *p)
{
	return is_done(p) || p->best->is_proven || (p->best->height < UINT64_MAX && om_is_late(p->effort));
}

/* What the caller grants, at most what pays. */
static uint64_t
granted(const struct portfolio *p, uint64_t work)
{
	return p->effort->work && p->effort->work < work ? p->effort->work : work;
}

/* After each try: who listens may want to see that something goes on. */
static void
tell(const struct portfolio *p)
{
	if (p->effort->session && p->best->height < UINT64_MAX)
		om_report_progress(p->effort->session, "packing", p->best->height, p->part->goal);
}

static void
remember(struct portfolio *p, uint64_t height, const char *strategy)
{
	p->best->height = height;
	p->best->strategy = strategy;
	for (uint32_t k = 0; k < p->part->nitem; k++)
		p->offset[k] = p->part->buf[p->part->item[k]].offset;
	tell(p);
}

static void
restore(struct portfolio *p)
{
	for (uint32_t k = 0; k < p->part->nitem; k++)
		p->part->buf[p->part->item[k]].offset = p->offset[k];
}

/* Packs by p->order. */
static uint64_t
run(struct portfolio *p, enum way way, uint32_t k, om_care care)
{
	uint64_t height;

	if (way == SKYLINE) {
		height = om_skyline_run(p->skyline, p->order, p->norder);
		p->work += (uint64_t)p->norder * PLACING;
	} else {
		height = om_greedy_run(&p->greedy, p->order, p->norder,
			way == BEST_FIT ? OM_BEST_FIT : OM_FIRST_FIT);
	}
	if (height < p->best->height) {
		p->way = way;
		p->k = k;
		remember(p, height, om_order_name(k, way == SKYLINE, care));
	} else {
		tell(p);
	}
	return height;
}

/* ---- Single runs. ---- */

/* The best one so far, unless it is one that was mended. */
static void
mend(struct portfolio *p, uint64_t work)
{
	if (is_over(p) || p->best->height == p->mended || p->best->height == UINT64_MAX)
		return;
	restore(p);
	const uint64_t before = p->greedy.work, height = om_large_neighbourhood(&p->greedy, granted(p, work));
	p->greedy.work = before;
	if (height < p->best->height)
		remember(p, height, om_order_name(p->k, p->way == SKYLINE, OM_MENDED));
	p->mended = p->best->height;
}

static void
try_skylines(struct portfolio *p)
{
	for (uint32_t k = 0; k < OM_NORDER && !is_over(p); k++) {
		uint64_t height = UINT64_MAX;
		if (p->work <= granted(p, SINGLES)) {
			om_order_fill(p->part, k, p->order);
			height = run(p, SKYLINE, k, OM_PLAIN);
			if (k == 0 && p->norder >= LARGE)
				mend(p, (uint64_t)p->norder * PLACING);
		}
		for (uint32_t m = 0; m < NMOVE; m++)
			p->wheel.walk[k * NMOVE + m] = (struct walk){height, k, m, 0};
	}
}

/* Pairs of pieces that overlap in time: what a run that fills gaps looks at. */
static uint64_t
count_overlaps(const om_component *p, om_arena *mem)
{
	uint32_t *upper = OM_NEWN(mem, uint32_t, p->npiece), ended = 0;
	uint64_t sum = 0;

	for (uint32_t k = 0; k < p->npiece; k++)
		upper[k] = p->piece[k].upper;
	qsort(upper, p->npiece, sizeof *upper, om_by_number);
	for (uint32_t k = 0; k < p->npiece; k++) {
		while (upper[ended] <= p->piece[k].lower)
			ended++;
		sum += k - ended;
	}
	return sum;
}

/* The first one runs whatever it costs, where there is no other plan. */
static void
try_gaps(struct portfolio *p, enum way way, uint64_t cost)
{
	for (uint32_t k = 0; k < OM_NORDER && !is_over(p); k++) {
		if (p->best->height < UINT64_MAX && p->greedy.work + cost > granted(p, GAPS))
			return;
		om_order_fill(p->part, k, p->order);
		run(p, way, k, OM_PLAIN);
	}
}

/* ---- The wheel. ---- */

static bool
sticks_out(const struct portfolio *p, uint32_t k)
{
	const om_buffer *b = &p->part->buf[p->order[k]];
	return b->offset + b->bytes > p->part->goal;
}

/* The next place in the order, from `k` on, whose buffer does or does not. */
static uint32_t
next_that(const struct portfolio *p, uint32_t k, bool out)
{
	while (k < p->norder && sticks_out(p, k) != out)
		k++;
	return k;
}

/* What sticks out of the goal moves forward, the rest keeps its order and fills
 * up.  False when that is all or nothing. */
static bool
advance(struct portfolio *p, uint32_t move)
{
	uint32_t out = next_that(p, 0, true), rest = next_that(p, 0, false);

	if (out == p->norder || rest == p->norder)
		return false;
	for (uint32_t n = 0; n < p->norder; n++) {
		const uint64_t place = (uint64_t)out * move / 64;
		if (out < p->norder && (place <= rest || rest == p->norder)) {
			p->next[n] = p->order[out];
			out = next_that(p, out + 1, true);
		} else {
			p->next[n] = p->order[rest];
			rest = next_that(p, rest + 1, false);
		}
	}
	uint32_t *t = p->order;
	p->order = p->next;
	p->next = t;
	return true;
}

/* In the first pass all walks of one move, then those of the next; later simply
 * what came lowest. */
static int
by_height(const void *a, const void *b)
{
	const struct walk *x = a, *y = b;

	if (x->pass == 0 && x->move != y->move)
		return x->move < y->move ? -1 : 1;
	if (x->height != y->height)
		return x->height < y->height ? -1 : 1;
	if (x->move != y->move)
		return x->move < y->move ? -1 : 1;
	return x->k < y->k ? -1 : x->k > y->k;
}

/* False when the wheel has to stop. */
static bool
walk_on(struct portfolio *p, struct walk *w, uint64_t rounds, uint64_t work)
{
	w->pass++;
	om_order_fill(p->part, w->k, p->order);
	for (uint64_t round = 0; round <= rounds; round++) {
		const uint64_t height = run(p, SKYLINE, w->k, round > 0 ? OM_REPAIRED : OM_PLAIN);
		if (height < w->height)
			w->height = height;
		if (is_over(p) || p->work > work || p->runs == 0)
			return false;
		p->runs--;
		if (!advance(p, moves[w->move]))
			break;
	}
	return true;
}

/* Each walk starts anew, with more rounds than before: so nothing has to be
 * kept of it but how low it came.  Goes on where it was stopped. */
static void
turn_wheel(struct portfolio *p, uint64_t work, uint32_t runs)
{
	struct wheel *w = &p->wheel;

	if (!p->skyline || is_over(p) || work / FIRST_ROUNDS < (uint64_t)p->norder * PLACING)
		return;
	p->runs = p->effort->until_ms > 0 && p->searched ? UINT32_MAX : runs;
	work = p->runs == UINT32_MAX ? UINT64_MAX : p->work + granted(p, work);
	for (;;) {
		if (w->next == 0)
			qsort(w->walk, NWALK, sizeof *w->walk, by_height);
		for (; w->next < NWALK; w->next++)
			if (!walk_on(p, &w->walk[w->next], w->rounds, work))
				return;
		w->next = 0;
		w->rounds *= MORE_ROUNDS;
	}
}

static void
repair_gaps(struct portfolio *p, enum way way, uint64_t cost)
{
	const uint64_t limit = p->greedy.work + granted(p, p->skyline ? REPAIRING / 8 : REPAIRING);

	for (uint32_t k = 0; k < OM_NORDER && !is_over(p); k++) {
		om_order_fill(p->part, k, p->order);
		for (uint32_t round = 0; round <= REPAIRS && !is_over(p); round++) {
			if (p->greedy.work + cost > limit)
				return;
			run(p, way, k, round > 0 ? OM_REPAIRED : OM_PLAIN);
			if (!advance(p, TO_FRONT))
				break;
		}
	}
}

/* What no skyline can do, no search can either. */
static void
climb(struct portfolio *p)
{
	if (is_over(p) || p->skyline || p->norder > SMALL)
		return;
	restore(p);
	const uint64_t height = om_hill_climb(&p->greedy, p->effort, granted(p, CLIMBING), p->best->height);
	if (height < p->best->height)
		remember(p, height, "climbing");
}

/* ---- All of it. ---- */

static void
search(struct portfolio *p, uint64_t nodes, uint32_t round)
{
	om_effort e = *p->effort;
	uint64_t height = p->best->height;

	if (is_over(p))
		return;
	e.nodes = nodes < e.nodes ? nodes : e.nodes;
	p->best->is_proven = om_search(p->part, &e, round, &height) && height > p->part->goal;
	if (height < p->best->height)
		remember(p, height, "search");
}

/* The gaps by size first, where that is cheap: it is all that most networks
 * need. */
static void
run_all(struct portfolio *p)
{
	const uint64_t cost = count_overlaps(p->part, p->mem);

	om_greedy_init(&p->greedy, p->part, p->mem);
	if (cost <= (uint64_t)p->norder * PLACING) {
		om_order_fill(p->part, OM_BY_SIZE, p->order);
		run(p, BEST_FIT, OM_BY_SIZE, OM_PLAIN);
	}
	if (is_over(p))
		return;
	if (om_skyline_serves(p->part)) {
		p->skyline = om_skyline_new(p->part, p->mem);
		try_skylines(p);
	}
	if (p->norder >= LARGE)
		mend(p, MENDING);
	search(p, FIRST_NODES, 0);
	try_gaps(p, BEST_FIT, cost);
	try_gaps(p, FIRST_FIT, cost);
	mend(p, MENDING);
	turn_wheel(p, WHEEL, RUNS);
	mend(p, MENDING);
	repair_gaps(p, BEST_FIT, cost);
	repair_gaps(p, FIRST_FIT, cost);
	mend(p, MENDING);
	climb(p);
}

void
om_solve(const om_component *part, const om_effort *effort, om_arena *mem, om_best *best)
{
	struct portfolio p = {.mem = mem, .part = part, .effort = effort, .best = best};

	p.order = OM_NEWN(mem, uint32_t, part->nitem);
	p.next = OM_NEWN(mem, uint32_t, part->nitem);
	p.offset = OM_NEWN(mem, uint64_t, part->nitem);
	for (uint32_t k = 0; k < part->nitem; k++)
		p.norder += part->buf[part->item[k]].fixed < 0;
	p.wheel.rounds = FIRST_ROUNDS;
	*best = (om_best){.height = UINT64_MAX};
	run_all(&p);
	search(&p, effort->nodes > FIRST_NODES ? effort->nodes - FIRST_NODES : 0, LATER);
	p.searched = true;
	turn_wheel(&p, WHEEL, LAST_RUNS);
	restore(&p);
}
