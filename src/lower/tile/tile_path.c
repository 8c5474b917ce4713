/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of regions from the first op to the last, for a given peak.
 *
 * For a peak, an interval of ops serves if no step in it needs more, as it is or in bands.  Intervals begin and end
 * where few bytes are alive, and a shortest path of them, by the number of ops that they become, leads from the first
 * op to the last.  What a region takes does not depend on the peak, so it is simulated once; regions with the same ops and
 * shapes share it. */
#include <config.h>

#include <string.h>

#include "base/arena_internal.h"
#include "ir/query.h"
#include "lower/tile/tile_internal.h"

enum {
	LADDER = 13,              /* numbers of bands that are tried */
	FINE = 8,                 /* index of the one that is tried first */
	NEAR = 8,                 /* cuts before a step that is too high, at which regions for it begin */
	MOST_MISSES = 40, MOST_AFTER_HIT = 24, MOST_HITS = 200, /* regions from one cut */
	LONGEST = 400,            /* ops of a region */
	MOST_STEPS = 4000,        /* ops that replace those of a region */
	BOUND_SHARE = 16,         /* the effort of a bound, of that of the ops of the bands */
};

static const uint32_t ladder[2][LADDER] = {
	{2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 56, 80, 112},
	{2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128},
};

static uint32_t
bands_of(om_tile_axis axis, uint32_t step)
{
	return ladder[axis == OM_TILE_SUM][step];
}

/* What a region takes, without storage that exists before and after it. */
struct cost {
	uint64_t peak;            /* 0: not simulated; UINT64_MAX: it cannot be divided so */
	uint64_t bound;           /* of `peak`, from below; 0: not computed */
	uint32_t nstep;
	double time;              /* nanoseconds of its steps; 0: time is not limited */
};

static const struct cost none = {.peak = UINT64_MAX};

/* The regions of all intervals with the same hash. */
struct om_tile_memo {
	uint64_t hash;
	bool is_known[OM_TILE_AXES], is_region[OM_TILE_AXES], scatters[OM_TILE_AXES];
	int64_t longest[OM_TILE_AXES];
	struct cost cost[OM_TILE_AXES][OM_TILE_JOINS][LADDER];
};

/* ---- Memo. ---- */

static struct om_tile_memo **
slot_of(struct om_tile_memo **slot, size_t n, uint64_t hash)
{
	size_t k = hash & (n - 1);

	while (slot[k] && slot[k]->hash != hash)
		k = (k + 1) & (n - 1);
	return &slot[k];
}

static void
grow(om_tile_known *s)
{
	const size_t n = s->nslot ? s->nslot * 2 : 1024;
	struct om_tile_memo **slot = OM_NEWN(s->mem, struct om_tile_memo *, n);

	for (size_t k = 0; k < s->nslot; k++)
		if (s->slot[k])
			*slot_of(slot, n, s->slot[k]->hash) = s->slot[k];
	s->slot = slot;
	s->nslot = n;
}

/* The index of two cuts, which are no more than LONGEST ops apart. */
static size_t
pair(uint32_t x, uint32_t y)
{
	return (size_t)x * (LONGEST + 1) + (y - x);
}

static struct om_tile_memo *
memo_of(om_tile_paths *s, uint32_t x, uint32_t y)
{
	uint64_t *hash = &s->hash[pair(x, y)];
	om_tile_known *known = s->known;
	struct om_tile_memo **at;

	if (!*hash)
		*hash = om_tile_hash(s->g, s->cut[x], s->cut[y]) | 1;
	if (known->nmemo * 2 >= known->nslot)
		grow(known);
	at = slot_of(known->slot, known->nslot, *hash);
	if (!*at) {
		*at = OM_NEW(known->mem, struct om_tile_memo);
		(*at)->hash = *hash;
		known->nmemo++;
	}
	return *at;
}

static uint64_t
through(om_tile_paths *s, uint32_t x, uint32_t y)
{
	uint64_t *at = &s->through[pair(x, y)];

	if (*at == UINT64_MAX)
		*at = om_tile_through(s->g, s->cut[x], s->cut[y]);
	return *at;
}

/* ---- Costs. ---- */

/* A region that is tried in several numbers of bands; it is made where something about it is not known yet. */
struct interval {
	uint32_t x, y;            /* cuts */
	om_tile_axis axis;
	om_tile_join join;
	struct om_tile_memo *memo;
	om_arena *mem;            /* NULL: the region is not made */
	om_tile_region region;
};

static bool
scatters(const om_tile_region *r)
{
	for (size_t k = 0; k < r->nvalue; k++)
		if (r->value[k].is_out && r->value[k].is_banded && r->value[k].axis != OM_WHOLE
		    && !om_tile_is_contiguous(r->value[k].v, r->value[k].axis))
			return true;
	return false;
}

/* Make the region of an interval, and remember what there is to know; false: there is none. */
static bool
make_region(om_tile_paths *s, struct interval *i)
{
	struct om_tile_memo *m = i->memo;

	if (i->mem)
		return m->is_region[i->axis];
	i->mem = om_arena_new();
	s->known->simulated += s->cut[i->y] - s->cut[i->x];
	m->is_known[i->axis] = true;
	m->is_region[i->axis] = om_tile_region_new(s->g, s->cut[i->x], s->cut[i->y], i->axis, i->mem, &i->region);
	m->longest[i->axis] = i->region.longest;
	m->scatters[i->axis] = m->is_region[i->axis] && scatters(&i->region);
	return m->is_region[i->axis];
}

static void
simulate(om_tile_paths *s, struct interval *i, uint32_t bands, struct cost *cost)
{
	om_tile_code c;

	cost->peak = UINT64_MAX;
	if (make_region(s, i) && om_tile_code_new(&i->region, bands, i->join, s->known->scratch, &c)) {
		cost->peak = om_tile_sweep(s->g, &c, &i->region, NULL);
		cost->nstep = (uint32_t)c.nstep;
		cost->time = s->request.most_times == 0 ? 0 : om_tile_time(s->g, &c);
		s->known->simulated += c.nstep;
	}
	om_arena_clear(s->known->scratch);
}

static void
find_bound(om_tile_paths *s, struct interval *i, uint32_t bands, struct cost *cost)
{
	cost->bound = make_region(s, i) ? om_tile_bound(&i->region, bands, i->join, s->known->scratch) : UINT64_MAX;
	cost->bound += cost->bound == 0;
	s->known->simulated += (uint64_t)i->region.nband * bands / BOUND_SHARE;
	om_arena_clear(s->known->scratch);
}

static bool
is_possible(const om_tile_paths *s, const struct interval *i, uint32_t bands)
{
	const struct om_tile_memo *m = i->memo;

	return !(m->is_known[i->axis] && m->longest[i->axis] < bands) && (uint64_t)bands * (s->cut[i->y] - s->cut[i->x]) <= MOST_STEPS;
}

/* What the region takes, as long as that may be at most `most` beside what is there anyway. */
static const struct cost *
cost_of(om_tile_paths *s, struct interval *i, uint32_t step, uint64_t most)
{
	struct cost *cost = &i->memo->cost[i->axis][i->join][step];
	const uint64_t past = through(s, i->x, i->y);
	const uint32_t bands = bands_of(i->axis, step);

	if (cost->peak)
		return cost;
	if (past > most || !is_possible(s, i, bands))
		return &none;
	if (s->known->simulated >= s->known->most) {
		s->known->is_limited = true;
		return &none;
	}
	if (!cost->bound)
		find_bound(s, i, bands, cost);
	if (cost->bound <= most - past)
		simulate(s, i, bands, cost);
	return cost;
}

/* At least this, beside what is there anyway. */
static uint64_t
least_of(const struct cost *cost)
{
	return cost->peak ? cost->peak : cost->bound;
}

static bool
fits(om_tile_paths *s, struct interval *i, uint32_t step, uint64_t most)
{
	const uint64_t least = least_of(cost_of(s, i, step, most)), past = through(s, i->x, i->y);

	return past <= most && least <= most - past;
}

/* The finest number of bands that is possible. */
static uint32_t
finest(om_tile_paths *s, const struct interval *i)
{
	uint32_t step = FINE;

	while (step > 0 && !is_possible(s, i, bands_of(i->axis, step)))
		step--;
	return step;
}

/* The smallest number of bands with a peak of at most `most`; LADDER: none is known. */
static uint32_t
fewest_bands(om_tile_paths *s, struct interval *i, uint64_t most)
{
	uint32_t high = finest(s, i), low = 0;

	if (!fits(s, i, high, most)) {
		const uint64_t least = least_of(cost_of(s, i, high, most));
		if (least != UINT64_MAX && least + through(s, i->x, i->y) > most + most / 2)
			return LADDER;
		for (low = high + 1; low < LADDER && !fits(s, i, low, most);)
			low++;
		return low;
	}
	while (low < high) {
		const uint32_t mid = (low + high) / 2;
		if (fits(s, i, mid, most))
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static bool
is_region(om_tile_paths *s, struct interval *i)
{
	const struct om_tile_memo *m = i->memo;

	if (!m->is_known[i->axis])
		make_region(s, i);
	return m->is_region[i->axis] && m->longest[i->axis] >= 2;
}

/* The region of an interval that is the best so far. */
struct chosen {
	om_tile_choice choice;
	struct cost cost;         /* with the peak of what is there anyway */
};

/* Is the one with these numbers of ops and nanoseconds better than the other one? */
static bool
is_better(const om_tile_paths *s, uint64_t ops, double time, uint64_t other_ops, double other_time)
{
	return s->request.most_times == 0 ? ops < other_ops : time < other_time;
}

/* The region along one axis, with either join, if it is better than `best`. */
static void
choose_along(om_tile_paths *s, struct interval *i, uint64_t most, struct chosen *best)
{
	const bool may_scatter = is_region(s, i) && s->known->may_scatter && i->memo->scatters[i->axis];

	for (i->join = 0; is_region(s, i) && i->join < OM_TILE_JOINS; i->join++) {
		const uint32_t step = i->join == OM_TILE_SCATTER && !may_scatter ? LADDER : fewest_bands(s, i, most);
		if (step == LADDER)
			continue;
		const struct cost *cost = cost_of(s, i, step, most);
		if (best->choice.bands && !is_better(s, cost->nstep, cost->time, best->cost.nstep, best->cost.time))
			continue;
		best->choice = (om_tile_choice){s->cut[i->x], s->cut[i->y], i->axis, i->join, bands_of(i->axis, step), cost->nstep};
		best->cost = *cost;
		best->cost.peak += through(s, i->x, i->y);
	}
}

/* The best region of an interval whose peak is at most `most`. */
static bool
choose(om_tile_paths *s, uint32_t x, uint32_t y, uint64_t most, struct chosen *best)
{
	*best = (struct chosen){0};
	for (int axis = 0; axis < OM_TILE_AXES; axis++) {
		struct interval i = {.x = x, .y = y, .axis = (om_tile_axis)axis, .memo = memo_of(s, x, y)};
		choose_along(s, &i, most, best);
		om_arena_free(i.mem);
	}
	return best->choice.bands != 0;
}

/* ---- Paths. ---- */

/* Reach cut `y` from cut `x` by ops of this cost, those of the region `choice` unless that is NULL. */
static void
relax(om_tile_paths *s, uint32_t x, uint32_t y, const struct cost *cost, const om_tile_choice *choice)
{
	const om_tile_reached *from = &s->at[x];
	om_tile_reached *to = &s->at[y];
	const uint64_t ops = from->ops + cost->nstep;
	const double time = from->time + cost->time;

	if (to->is_reached && !is_better(s, ops, time, to->ops, to->time))
		return;
	*to = (om_tile_reached){.is_reached = true, .is_tiled = choice != NULL, .ops = ops, .time = time, .from = x,
		.peak = cost->peak > from->peak ? cost->peak : from->peak};
	if (choice)
		to->choice = *choice;
}

uint32_t
om_tile_first_high(const om_tile_paths *s, uint32_t i, uint64_t most)
{
	while (i < s->g->nop && s->g->step[i] <= most)
		i++;
	return i;
}

/* Reach cuts from `x` without regions, up to the step `high`; returns the first cut after it. */
static uint32_t
pass_untiled(om_tile_paths *s, uint32_t x, uint32_t high)
{
	const double *time = s->g->time;
	uint64_t most = 0;
	uint32_t y = x + 1, i = s->cut[x];

	for (; y < s->ncut && s->cut[y] <= high; y++) {
		for (; i < s->cut[y]; i++)
			most = s->g->step[i] > most ? s->g->step[i] : most;
		relax(s, x, y, &(struct cost){.peak = most, .nstep = s->cut[y] - s->cut[x], .time = time[s->cut[y]] - time[s->cut[x]]}, NULL);
	}
	return y;
}

/* Regions from cut `x` to cut `y` and later ones. */
static void
try_regions(om_tile_paths *s, uint32_t x, uint32_t y, uint64_t most)
{
	uint32_t hits = 0, misses = 0;
	struct chosen best;

	for (; y < s->ncut && hits < MOST_HITS && misses < (hits ? MOST_AFTER_HIT : MOST_MISSES); y++) {
		if (s->cut[y] - s->cut[x] > LONGEST)
			return;
		if (s->g->live[s->cut[y]] > most || s->cut[y] - s->cut[x] < 2)
			continue;
		if (choose(s, x, y, most, &best)) {
			relax(s, x, y, &best.cost, &best.choice);
			hits++;
			misses = 0;
		} else {
			misses++;
		}
	}
}

bool
om_tile_is_complete(const om_tile_paths *s)
{
	const om_tile_reached *last = &s->at[s->ncut - 1];

	return last->is_reached && last->ops <= s->request.most_ops
	    && (s->request.most_times == 0 || last->time <= s->known->most_time);
}

const char *
om_tile_why_incomplete(const om_tile_paths *s)
{
	return s->at[s->ncut - 1].ops > s->request.most_ops ? "those for it take too many ops" : "those for it take too long";
}

bool
om_tile_find_path(om_tile_paths *s, uint64_t most)
{
	om_tile_reached *at = s->at;

	memset(at, 0, s->ncut * sizeof *at);
	at[0].is_reached = true;
	for (uint32_t x = 0; x < s->ncut; x++) {
		if (!at[x].is_reached)
			continue;
		const uint32_t i = s->cut[x], high = om_tile_first_high(s, i, most);
		const uint32_t y = pass_untiled(s, x, high);
		if (y < s->ncut && s->g->live[i] <= most && (x == 0 || at[x].is_tiled || y - x <= NEAR))
			try_regions(s, x, y, most);
	}
	return om_tile_is_complete(s);
}

void
om_tile_store_path(const om_tile_paths *s, om_arena *mem, om_tile_plan *out)
{
	const om_tile_reached *at = s->at;
	uint32_t n = 0;

	for (uint32_t x = s->ncut - 1; x; x = at[x].from)
		n += at[x].is_tiled;
	out->choice = OM_NEWN(mem, om_tile_choice, n);
	out->n = n;
	for (uint32_t x = s->ncut - 1; x; x = at[x].from)
		if (at[x].is_tiled)
			out->choice[--n] = at[x].choice;
	out->after = at[s->ncut - 1].peak;
}

/* ---- What is known about an op. ---- */

/* The lowest cost that is known for an interval. */
static void
take_lowest(const om_tile_paths *s, const struct om_tile_memo *m, uint32_t x, uint32_t y, om_tile_choice *best, uint64_t *bytes)
{
	for (int axis = 0; axis < OM_TILE_AXES; axis++)
		for (int join = 0; join < OM_TILE_JOINS; join++)
			for (uint32_t step = 0; step < LADDER; step++) {
				const struct cost *cost = &m->cost[axis][join][step];
				const uint64_t past = s->through[pair(x, y)];
				if (cost->peak == 0 || cost->peak == UINT64_MAX || past == UINT64_MAX || cost->peak + past >= *bytes)
					continue;
				*bytes = cost->peak + past;
				*best = (om_tile_choice){s->cut[x], s->cut[y], (om_tile_axis)axis, (om_tile_join)join,
					bands_of((om_tile_axis)axis, step), cost->nstep};
			}
}

bool
om_tile_lowest_region(const om_tile_paths *s, uint32_t i, om_tile_choice *c, uint64_t *bytes, bool *tried)
{
	*bytes = UINT64_MAX;
	*tried = false;
	for (uint32_t x = 0; x < s->ncut && s->cut[x] <= i; x++)
		for (uint32_t y = x + 1; y < s->ncut && s->cut[y] - s->cut[x] <= LONGEST; y++) {
			const uint64_t hash = s->hash[pair(x, y)];
			if (s->cut[y] <= i || !hash)
				continue;
			*tried = true;
			take_lowest(s, *slot_of(s->known->slot, s->known->nslot, hash), x, y, c, bytes);
		}
	return *bytes != UINT64_MAX;
}

/* ---- Cuts. ---- */

/* Positions with fewer bytes than beside them, and those after an op with much work that adds nothing. */
static bool
is_cut(const om_tile_graph *g, uint32_t i)
{
	if (i == 0 || i == g->nop)
		return true;
	return g->live[i] < g->live[i + 1] || g->live[i] < g->live[i - 1]
		|| (g->live[i] <= g->live[i - 1] && g->work[i - 1].cost.bytes < g->work[i - 1].cost.flops);
}

static void
list_cuts(om_tile_paths *s)
{
	s->cut = OM_NEWN(s->mem, uint32_t, (size_t)s->g->nop + 1);
	for (uint32_t i = 0; i <= s->g->nop; i++)
		if (is_cut(s->g, i))
			s->cut[s->ncut++] = i;
	s->at = OM_NEWN(s->mem, om_tile_reached, s->ncut);
	s->hash = OM_NEWN(s->mem, uint64_t, (size_t)s->ncut * (LONGEST + 1));
	s->through = OM_NEWN(s->mem, uint64_t, (size_t)s->ncut * (LONGEST + 1));
	memset(s->through, 0xff, (size_t)s->ncut * (LONGEST + 1) * sizeof *s->through);
}

void
om_tile_paths_begin(om_tile_paths *s)
{
	s->g = om_tile_graph_new(s->p, &s->request, s->mem);
	list_cuts(s);
}

uint32_t
om_tile_last_reached(const om_tile_paths *s)
{
	uint32_t x = s->ncut - 1;

	while (!s->at[x].is_reached)
		x--;
	return x;
}
