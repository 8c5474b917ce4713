/* Which regions to tile: the lowest peak for which the ops can be covered.
 *
 * For a peak, an interval of ops serves if no step in it needs more, as it is or in bands.  Intervals begin and end
 * where few bytes are alive, and a shortest path of them, by the number of ops that they become, leads from the first
 * op to the last.  Bisection finds the lowest peak that has a path.  What a region takes does not depend on the peak, so
 * it is simulated once; regions with the same ops and shapes share it. */
#include <config.h>

#include <math.h>
#include <stdlib.h>

#include "ir/binding.h"
#include "ir/query.h"
#include "ir/steps.h"
#include "lower/tile/tile_internal.h"

enum {
	LADDER = 13,              /* numbers of bands that are tried */
	FINE = 8,                 /* index of the one that is tried first */
	NEAR = 8,                 /* cuts before a step that is too high, at which regions for it begin */
	MOST_MISSES = 40, MOST_AFTER_HIT = 24, MOST_HITS = 200, /* regions from one cut */
	LONGEST = 400,            /* ops of a region */
	MOST_STEPS = 4000,        /* ops that replace those of a region */
	MOST_ROUNDS = 28,
	MOST_COPIES = 24,
	FIRST_SCATTER = 13,       /* opset with ScatterND and Pad for all types */
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
	uint32_t nstep;
};

static const struct cost none = {UINT64_MAX, 0};

/* The regions of all intervals with the same hash. */
struct memo {
	uint64_t hash;
	bool is_known[OM_TILE_AXES], is_region[OM_TILE_AXES], scatters[OM_TILE_AXES];
	int64_t longest[OM_TILE_AXES];
	struct cost cost[OM_TILE_AXES][OM_TILE_JOINS][LADDER];
};

/* A cut that can be reached. */
struct reached {
	bool is_reached, is_tiled; /* by a region */
	uint64_t ops;
	uint32_t from;            /* the cut before */
	om_tile_choice choice;
	uint64_t peak;
};

/* What is known about regions, for all programs that are searched. */
struct known {
	om_arena *mem;
	struct memo **slot;       /* open addressing */
	size_t nmemo, nslot;
	uint64_t simulated, most; /* effort: spent, and the limit */
	bool is_limited, may_scatter;
};

/* The search in a program: the given one, or a copy of it with values that are computed twice. */
struct search {
	struct known *known;
	om_arena *mem;
	const om_prog *p;
	om_tile_request request;  /* with the sizes of this program */
	om_tile_graph *g;
	uint32_t *cut;
	uint32_t ncut;
	uint64_t *hash;           /* [ncut][LONGEST + 1] from a cut to the one so many after it; 0: not computed */
	uint64_t *through;        /* of the same, UINT64_MAX: not computed */
	struct reached *at;       /* [ncut] the last path */
	om_tile_copy *copy;       /* that the program has */
	uint32_t ncopy;
	double flops;             /* of the copies */
};

/* ---- Memo. ---- */

static struct memo **
slot_of(struct memo **slot, size_t n, uint64_t hash)
{
	size_t k = hash & (n - 1);

	while (slot[k] && slot[k]->hash != hash)
		k = (k + 1) & (n - 1);
	return &slot[k];
}

static void
grow(struct known *s)
{
	const size_t n = s->nslot ? s->nslot * 2 : 1024;
	struct memo **slot = OM_NEWN(s->mem, struct memo *, n);

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

static struct memo *
memo_of(struct search *s, uint32_t x, uint32_t y)
{
	uint64_t *hash = &s->hash[pair(x, y)];
	struct known *known = s->known;
	struct memo **at;

	if (!*hash)
		*hash = om_tile_hash(s->g, s->cut[x], s->cut[y]) | 1;
	if (known->nmemo * 2 >= known->nslot)
		grow(known);
	at = slot_of(known->slot, known->nslot, *hash);
	if (!*at) {
		*at = OM_NEW(known->mem, struct memo);
		(*at)->hash = *hash;
		known->nmemo++;
	}
	return *at;
}

static uint64_t
through(struct search *s, uint32_t x, uint32_t y)
{
	uint64_t *at = &s->through[pair(x, y)];

	if (*at == UINT64_MAX)
		*at = om_tile_through(s->g, s->cut[x], s->cut[y]);
	return *at;
}

/* ---- Costs. ---- */

struct interval {
	uint32_t x, y;            /* cuts */
	om_tile_axis axis;
	om_tile_join join;
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

/* Make the region of an interval; remember whether there is one. */
static bool
make_region(struct search *s, const struct interval *i, struct memo *m, om_arena *mem, om_tile_region *r)
{
	const bool is_region = om_tile_region_new(s->g, s->cut[i->x], s->cut[i->y], i->axis, mem, r);

	s->known->simulated += s->cut[i->y] - s->cut[i->x];
	m->is_known[i->axis] = true;
	m->is_region[i->axis] = is_region;
	m->longest[i->axis] = r->longest;
	m->scatters[i->axis] = is_region && scatters(r);
	return is_region;
}

static void
simulate(struct search *s, const struct interval *i, struct memo *m, uint32_t bands, struct cost *cost)
{
	om_arena *tmp = om_arena_new();
	om_tile_region r;
	om_tile_code c;

	*cost = none;
	if (make_region(s, i, m, tmp, &r) && om_tile_code_new(&r, bands, i->join, tmp, &c)) {
		cost->peak = om_tile_sweep(s->g, &c, &r, NULL);
		cost->nstep = (uint32_t)c.nstep;
		s->known->simulated += c.nstep;
	}
	om_arena_free(tmp);
}

static const struct cost *
cost_of(struct search *s, const struct interval *i, struct memo *m, uint32_t step)
{
	struct cost *cost = &m->cost[i->axis][i->join][step];
	const uint32_t bands = bands_of(i->axis, step);

	if (cost->peak)
		return cost;
	if ((m->is_known[i->axis] && m->longest[i->axis] < bands) || (uint64_t)bands * (s->cut[i->y] - s->cut[i->x]) > MOST_STEPS) {
		*cost = none;
	} else if (s->known->simulated >= s->known->most) {
		s->known->is_limited = true;
		return &none;
	} else {
		simulate(s, i, m, bands, cost);
	}
	return cost;
}

static bool
fits(struct search *s, const struct interval *i, struct memo *m, uint32_t step, uint64_t most)
{
	const struct cost *cost = cost_of(s, i, m, step);

	return cost->peak != UINT64_MAX && cost->peak + through(s, i->x, i->y) <= most;
}

/* The finest number of bands that is possible. */
static uint32_t
finest(struct search *s, const struct interval *i, const struct memo *m)
{
	const uint32_t n = s->cut[i->y] - s->cut[i->x];
	uint32_t step = FINE;

	while (step > 0 && (bands_of(i->axis, step) > m->longest[i->axis] || bands_of(i->axis, step) * n > MOST_STEPS))
		step--;
	return step;
}

/* The smallest number of bands with a peak of at most `most`; LADDER: none is known. */
static uint32_t
fewest_bands(struct search *s, const struct interval *i, struct memo *m, uint64_t most)
{
	uint32_t high = finest(s, i, m), low = 0;

	if (!fits(s, i, m, high, most)) {
		const struct cost *cost = cost_of(s, i, m, high);
		if (cost->peak != UINT64_MAX && cost->peak + through(s, i->x, i->y) > most + most / 2)
			return LADDER;
		for (low = high + 1; low < LADDER && !fits(s, i, m, low, most);)
			low++;
		return low;
	}
	while (low < high) {
		const uint32_t mid = (low + high) / 2;
		if (fits(s, i, m, mid, most))
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static bool
is_region(struct search *s, const struct interval *i, struct memo *m)
{
	om_tile_region r;

	if (!m->is_known[i->axis]) {
		om_arena *tmp = om_arena_new();
		make_region(s, i, m, tmp, &r);
		om_arena_free(tmp);
	}
	return m->is_region[i->axis] && m->longest[i->axis] >= 2;
}

/* The region of an interval with the fewest ops whose peak is at most `most`. */
static bool
choose(struct search *s, uint32_t x, uint32_t y, uint64_t most, om_tile_choice *best, uint64_t *peak)
{
	struct memo *m = memo_of(s, x, y);

	best->nstep = UINT32_MAX;
	for (int axis = 0; axis < OM_TILE_AXES; axis++)
		for (int join = 0; join < OM_TILE_JOINS; join++) {
			const struct interval i = {x, y, (om_tile_axis)axis, (om_tile_join)join};
			if (!is_region(s, &i, m) || (join == OM_TILE_SCATTER && !(s->known->may_scatter && m->scatters[axis])))
				continue;
			const uint32_t step = fewest_bands(s, &i, m, most);
			if (step == LADDER)
				continue;
			const struct cost *cost = cost_of(s, &i, m, step);
			if (cost->nstep >= best->nstep)
				continue;
			*best = (om_tile_choice){s->cut[x], s->cut[y], i.axis, i.join, bands_of(i.axis, step), cost->nstep};
			*peak = cost->peak + through(s, x, y);
		}
	return best->nstep != UINT32_MAX;
}

/* ---- Paths. ---- */

static void
relax(struct reached *to, const struct reached *from, uint32_t x, uint64_t ops, const om_tile_choice *choice, uint64_t peak)
{
	const uint64_t all = from->ops + ops;

	if (to->is_reached && to->ops <= all)
		return;
	*to = (struct reached){.is_reached = true, .is_tiled = choice != NULL, .ops = all, .from = x,
		.peak = peak > from->peak ? peak : from->peak};
	if (choice)
		to->choice = *choice;
}

/* The first step from `i` on that takes more than `most`. */
static uint32_t
first_high(const struct search *s, uint32_t i, uint64_t most)
{
	while (i < s->g->nop && s->g->step[i] <= most)
		i++;
	return i;
}

/* Reach cuts from `x` without regions, up to the step `high`; returns the first cut after it. */
static uint32_t
pass_untiled(const struct search *s, struct reached *at, uint32_t x, uint32_t high)
{
	uint64_t most = 0;
	uint32_t y = x + 1, i = s->cut[x];

	for (; y < s->ncut && s->cut[y] <= high; y++) {
		for (; i < s->cut[y]; i++)
			most = s->g->step[i] > most ? s->g->step[i] : most;
		relax(&at[y], &at[x], x, s->cut[y] - s->cut[x], NULL, most);
	}
	return y;
}

/* Regions from cut `x` to cut `y` and later ones. */
static void
try_regions(struct search *s, struct reached *at, uint32_t x, uint32_t y, uint64_t most)
{
	uint32_t hits = 0, misses = 0;
	om_tile_choice choice;
	uint64_t peak;

	for (; y < s->ncut && hits < MOST_HITS && misses < (hits ? MOST_AFTER_HIT : MOST_MISSES); y++) {
		if (s->cut[y] - s->cut[x] > LONGEST)
			return;
		if (s->g->live[s->cut[y]] > most || s->cut[y] - s->cut[x] < 2)
			continue;
		if (choose(s, x, y, most, &choice, &peak)) {
			relax(&at[y], &at[x], x, choice.nstep, &choice, peak);
			hits++;
			misses = 0;
		} else {
			misses++;
		}
	}
}

static bool
is_complete(const struct search *s)
{
	return s->at[s->ncut - 1].is_reached && s->at[s->ncut - 1].ops <= s->request.most_ops;
}

static bool
find_path(struct search *s, uint64_t most)
{
	struct reached *at = s->at;

	memset(at, 0, s->ncut * sizeof *at);
	at[0].is_reached = true;
	for (uint32_t x = 0; x < s->ncut; x++) {
		if (!at[x].is_reached)
			continue;
		const uint32_t i = s->cut[x], high = first_high(s, i, most);
		const uint32_t y = pass_untiled(s, at, x, high);
		if (y < s->ncut && s->g->live[i] <= most && (x == 0 || at[x].is_tiled || y - x <= NEAR))
			try_regions(s, at, x, y, most);
	}
	return is_complete(s);
}

static void
store_path(const struct search *s, om_arena *mem, om_tile_plan *out)
{
	const struct reached *at = s->at;
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

/* ---- Cuts. ---- */

/* Positions with fewer bytes than beside them, and those after an op with much work that adds nothing. */
static bool
is_cut(const om_tile_graph *g, uint32_t i)
{
	if (i == 0 || i == g->nop)
		return true;
	return g->live[i] < g->live[i + 1] || g->live[i] < g->live[i - 1]
		|| (g->live[i] <= g->live[i - 1] && om_op_cost(g->op[i - 1]).bytes < om_op_cost(g->op[i - 1]).flops);
}

static void
list_cuts(struct search *s)
{
	s->cut = OM_NEWN(s->mem, uint32_t, (size_t)s->g->nop + 1);
	for (uint32_t i = 0; i <= s->g->nop; i++)
		if (is_cut(s->g, i))
			s->cut[s->ncut++] = i;
	s->at = OM_NEWN(s->mem, struct reached, s->ncut);
	s->hash = OM_NEWN(s->mem, uint64_t, (size_t)s->ncut * (LONGEST + 1));
	s->through = OM_NEWN(s->mem, uint64_t, (size_t)s->ncut * (LONGEST + 1));
	memset(s->through, 0xff, (size_t)s->ncut * (LONGEST + 1) * sizeof *s->through);
}

/* ---- Programs with copies. ---- */

static void
begin(struct search *s)
{
	s->g = om_tile_graph_new(s->p, &s->request, s->mem);
	list_cuts(s);
}

/* A copy of the given program with `n` copies of values. */
static om_status
vary(om_session *session, const struct search *given, const om_tile_copy *copy, uint32_t n, struct search *out)
{
	om_prog *p;

	*out = (struct search){.known = given->known, .mem = om_arena_new(), .request = given->request};
	om_status st = om_prog_copy(session, given->p, &p);
	if (st != OM_OK) {
		om_arena_free(out->mem);
		return st;
	}
	out->p = p;
	out->copy = om_memdup(out->mem, copy, n * sizeof *copy);
	out->ncopy = n;
	for (uint32_t k = 0; k < n && st == OM_OK; k++) {
		st = om_tile_copy_make(session, p, &copy[k], out->mem, &out->request);
		out->flops += copy[k].flops;
	}
	if (st == OM_OK)
		begin(out);
	return st;
}

static void
end(struct search *s)
{
	om_prog_free((om_prog *)s->p);
	om_arena_free(s->mem);
}

static uint32_t
last_reached(const struct search *s)
{
	uint32_t x = s->ncut - 1;

	while (!s->at[x].is_reached)
		x--;
	return x;
}

/* How far a path got: the position in the given program, of `nop` ids, of the first op after it. */
static uint32_t
progress(const struct search *s, const struct search *given)
{
	uint32_t i = s->cut[last_reached(s)];

	while (i < s->g->nop && s->g->op[i]->id >= given->p->nop)
		i++;
	return i < s->g->nop ? given->g->position[s->g->op[i]->id] : given->g->nop;
}

/* ---- Copies. ---- */

/* The first step that prevents a path, and the copies that may help. */
static om_tile_copy *
candidates(const struct search *s, uint64_t most, size_t *n)
{
	const uint32_t from = s->cut[last_reached(s)], high = first_high(s, from, most);

	return om_tile_copies(s->g, from, high, most, s->request.most_flops - s->flops, s->known->mem, n);
}

/* Is a path for `most` better with the first program? */
static bool
is_further(const struct search *a, const struct search *b, const struct search *given)
{
	const uint32_t x = progress(a, given), y = progress(b, given);

	return x != y ? x > y : a->flops < b->flops;
}

/* The program with one more copy whose path for `most` gets further; NULL: there is none. */
static om_status
add_copy(om_session *session, const struct search *given, const struct search *now, uint64_t most, struct search **out)
{
	struct known *known = given->known;
	size_t n;
	const om_tile_copy *more = candidates(now, most, &n);
	om_tile_copy *copy = OM_NEWN(known->mem, om_tile_copy, now->ncopy + 1);

	*out = NULL;
	memcpy(copy, now->copy, now->ncopy * sizeof *copy);
	for (size_t k = 0; k < n && !known->is_limited; k++) {
		struct search *s = OM_NEW(known->mem, struct search);
		copy[now->ncopy] = more[k];
		OM_TRY(vary(session, given, copy, now->ncopy + 1, s));
		find_path(s, most);
		const bool is_good = progress(s, given) > progress(now, given) && (!*out || is_further(s, *out, given));
		if (is_good && *out)
			end(*out);
		if (is_good)
			*out = s;
		else
			end(s);
	}
	return OM_OK;
}

static void
replace(const struct search *given, struct search **best, struct search *s)
{
	if (*best != given && *best != s)
		end(*best);
	*best = s;
}

/* A path for `most`, in the program `*best` or with more copies. */
static om_status
find(om_session *session, struct search *given, struct search **best, uint64_t most, bool *found)
{
	struct search *now = *best, *next;

	*found = find_path(now, most);
	while (!*found && now->ncopy < MOST_COPIES && given->request.most_flops > 0) {
		OM_TRY(add_copy(session, given, now, most, &next));
		if (now != *best)
			end(now);
		if (!next)
			return OM_OK;
		now = next;
		*found = is_complete(now);
	}
	if (*found)
		replace(given, best, now);
	else if (now != *best)
		end(now);
	return OM_OK;
}

/* Do the copies after `k` copy only what the given program has? */
static bool
is_needless(const struct search *s, const struct search *given, uint32_t k)
{
	for (uint32_t i = k + 1; i < s->ncopy; i++) {
		const om_tile_copy *c = &s->copy[i];
		for (uint32_t j = 0; j < c->nop; j++)
			if (c->op[j] >= given->p->nop)
				return false;
		if (c->reader >= given->p->nop)
			return false;
	}
	return true;
}

/* Leave out copies that the peak does not need. */
static om_status
leave_out(om_session *session, struct search *given, struct search **best, om_arena *mem, om_tile_plan *out)
{
	for (uint32_t k = (*best)->ncopy; k-- > 0;) {
		struct search *now = *best, *s = OM_NEW(given->known->mem, struct search);
		om_tile_copy *copy = OM_NEWN(given->known->mem, om_tile_copy, now->ncopy);
		if (!is_needless(now, given, k))
			continue;
		memcpy(copy, now->copy, k * sizeof *copy);
		memcpy(copy + k, now->copy + k + 1, (now->ncopy - k - 1) * sizeof *copy);
		OM_TRY(vary(session, given, copy, now->ncopy - 1, s));
		if (find_path(s, out->after)) {
			store_path(s, mem, out);
			replace(given, best, s);
		} else {
			end(s);
		}
	}
	return OM_OK;
}

/* ---- Bisection. ---- */

/* The lowest peak below that of the plan, to within about 2 %. */
static om_status
bisect(om_session *session, struct search *given, struct search **best, om_arena *mem, om_tile_plan *out)
{
	uint64_t low = 0, high = out->after;
	bool found;

	for (int round = 0; round < MOST_ROUNDS && high - low > high / 50; round++) {
		const uint64_t most = low ? (uint64_t)sqrt((double)low * (double)high) : high / 2;
		OM_TRY(find(session, given, best, most, &found));
		if (found) {
			store_path(*best, mem, out);
			high = out->after;
		} else {
			low = most;
		}
	}
	return OM_OK;
}

/* First without copies: with them, peaks above the one that is found then are not tried, and there is effort left. */
static om_status
find_lowest(om_session *session, struct search *given, struct search **best, om_arena *mem, om_tile_plan *out)
{
	const double most_flops = given->request.most_flops;

	given->request.most_flops = 0;
	OM_TRY(bisect(session, given, best, mem, out));
	given->request.most_flops = most_flops;
	given->known->most += given->request.effort;
	return most_flops > 0 ? bisect(session, given, best, mem, out) : OM_OK;
}

static om_status
search(om_session *session, struct search *given, struct search **best, om_arena *mem, om_tile_plan *out)
{
	bool found = false;

	if (given->request.budget && out->before <= given->request.budget)
		return OM_OK;
	if (given->request.budget)
		OM_TRY(find(session, given, best, given->request.budget, &found));
	if (found)
		store_path(*best, mem, out);
	else
		OM_TRY(find_lowest(session, given, best, mem, out));
	return leave_out(session, given, best, mem, out);
}

/* ---- Reasons. ---- */

/* About the highest step outside of all regions. */
static void
explain(struct search *s, om_arena *mem, om_tile_plan *out)
{
	const om_tile_graph *g = s->g;
	uint32_t top = 0, k = 0;
	uint64_t most = 0;

	for (uint32_t i = 0; i < g->nop; i++) {
		while (k < out->n && out->choice[k].end <= i)
			k++;
		const bool is_tiled = k < out->n && out->choice[k].first <= i;
		if (!is_tiled && g->step[i] > most) {
			most = g->step[i];
			top = i;
		}
	}
	if (!most)
		return;
	out->refusal = (om_tile_refusal){om_strdup(mem, om_op_label(g->op[top])), most, "no region with it that is small enough was found"};
	om_arena *tmp = om_arena_new();
	bool any = false;
	for (int axis = 0; axis < OM_TILE_AXES && !any; axis++) {
		om_tile_region r;
		any = om_tile_region_new(s->g, top, top + 1, (om_tile_axis)axis, tmp, &r);
	}
	om_arena_free(tmp);
	if (!any)
		out->refusal.why = "it has no parts along any axis that is tried";
}

/* The copies are in an arena of the search. */
static void
keep_copies(const struct search *s, om_arena *mem, om_tile_plan *out)
{
	out->ncopy = out->n ? s->ncopy : 0;
	out->copy = OM_NEWN(mem, om_tile_copy, out->ncopy);
	for (uint32_t k = 0; k < out->ncopy; k++) {
		om_tile_copy c = s->copy[k];
		c.value = om_memdup(mem, c.value, c.nvalue * sizeof *c.value);
		c.op = om_memdup(mem, c.op, c.nop * sizeof *c.op);
		out->copy[k] = c;
	}
}

om_status
om_tile_search(om_session *session, const om_prog *p, const om_tile_request *r, om_arena *mem, om_tile_plan *out)
{
	struct known known = {.mem = om_arena_new(), .most = r->effort, .may_scatter = !r->only_concat && om_opset_version(p, "") >= FIRST_SCATTER};
	struct search given = {.known = &known, .mem = known.mem, .p = p, .request = *r}, *best = &given;
	om_status st = OM_OK;

	*out = (om_tile_plan){0};
	begin(&given);
	for (uint32_t i = 0; i < given.g->nop; i++)
		out->before = given.g->step[i] > out->before ? given.g->step[i] : out->before;
	out->after = out->before;
	if (given.g->nop > 1)
		st = search(session, &given, &best, mem, out);
	out->simulated = known.simulated;
	out->is_limited = known.is_limited;
	keep_copies(best, mem, out);
	if (st == OM_OK)
		explain(best, mem, out);
	if (best != &given)
		end(best);
	om_arena_free(known.mem);
	return st;
}
