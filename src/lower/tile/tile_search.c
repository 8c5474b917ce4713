/* SPDX-License-Identifier: Apache-2.0 */
/* Which regions to tile, and which values to compute twice: the lowest peak that has a path of regions.
 *
 * Bisection finds the peak.  Where a path ends before the last op, values that are read far apart, and that are alive there,
 * are tried as copies, one at a time: each makes another program, whose regions are mostly known. */
#include <config.h>

#include <math.h>
#include <string.h>

#include "ir/binding.h"
#include "ir/query.h"
#include "ir/steps.h"
#include "lower/tile/tile_internal.h"

enum {
	MOST_ROUNDS = 28,         /* of a bisection */
	MOST_COPIES = 24,
	FIRST_SCATTER = 13,       /* opset with ScatterND and Pad for all types */
};

/* ---- Programs with copies. ---- */

/* A copy of the given program with `n` copies of values.  It exists until end(), or the end of the search. */
static om_status
vary(om_session *session, const om_tile_paths *given, const om_tile_copy *copy, uint32_t n, om_tile_paths *out)
{
	om_prog *p;

	*out = (om_tile_paths){.known = given->known, .request = given->request, .next = given->known->program};
	OM_TRY(om_prog_copy(session, given->p, &p));
	out->mem = om_arena_new();
	out->p = p;
	given->known->program = out;
	out->copy = om_memdup(out->mem, copy, n * sizeof *copy);
	out->ncopy = n;
	for (uint32_t k = 0; k < n; k++) {
		OM_TRY(om_tile_copy_make(session, p, &copy[k], out->mem, &out->request));
		out->flops += copy[k].flops;
	}
	om_tile_paths_begin(out);
	return OM_OK;
}

static void
end(om_tile_paths *s)
{
	om_prog_free((om_prog *)s->p);
	om_arena_free(s->mem);
	s->mem = NULL;
}

/* How far a path got: the position in the given program, of `nop` ids, of the first op after it. */
static uint32_t
progress(const om_tile_paths *s, const om_tile_paths *given)
{
	uint32_t i = s->cut[om_tile_last_reached(s)];

	while (i < s->g->nop && s->g->op[i]->id >= given->p->nop)
		i++;
	return i < s->g->nop ? given->g->position[s->g->op[i]->id] : given->g->nop;
}

/* ---- What was found. ---- */

/* Store the path that was found, and note its peak. */
static void
keep(const om_tile_paths *s, om_arena *mem, om_tile_plan *out)
{
	const uint64_t ops = s->at[s->ncut - 1].ops;

	om_tile_store_path(s, mem, out);
	OM_PUSH(mem, out->found, out->nfound, out->capfound, ((om_tile_found){s, out->choice, out->n, out->after}));
	OM_PUSH(mem, out->peak, out->npeak, out->cappeak, ((om_tiled_peak){out->after, (uint32_t)ops, out->n, s->ncopy}));
}

/* Note where the last path for `most`, the highest that was missed, ends. */
static void
miss(const om_tile_paths *s, uint64_t most, om_arena *mem, om_tile_plan *out)
{
	const uint32_t high = om_tile_first_high(s, s->cut[om_tile_last_reached(s)], most);

	out->missed = most;
	out->stop = high < s->g->nop ? om_tile_refusal(s, high, mem) : (om_tiled_step){.why = om_tile_why_incomplete(s)};
}

/* ---- Copies. ---- */

/* The first step that prevents a path, and the copies that may help. */
static om_tile_copy *
candidates(const om_tile_paths *s, uint64_t most, size_t *n)
{
	const uint32_t from = s->cut[om_tile_last_reached(s)], high = om_tile_first_high(s, from, most);

	return om_tile_copies(s->g, from, high, most, s->request.most_flops - s->flops, s->known->mem, n);
}

/* Is a path for `most` better with the first program? */
static bool
is_further(const om_tile_paths *a, const om_tile_paths *b, const om_tile_paths *given)
{
	const uint32_t x = progress(a, given), y = progress(b, given);

	return x != y ? x > y : a->flops < b->flops;
}

/* The program with one more copy whose path for `most` gets further; NULL: there is none. */
static om_status
add_copy(om_session *session, const om_tile_paths *given, const om_tile_paths *now, uint64_t most, om_tile_paths **out)
{
	om_tile_known *known = given->known;
	size_t n;
	const om_tile_copy *more = candidates(now, most, &n);
	om_tile_copy *copy = OM_NEWN(known->mem, om_tile_copy, now->ncopy + 1);

	*out = NULL;
	if (now->ncopy)
		memcpy(copy, now->copy, now->ncopy * sizeof *copy);
	for (size_t k = 0; k < n && !known->is_limited; k++) {
		om_tile_paths *s = OM_NEW(known->mem, om_tile_paths);
		copy[now->ncopy] = more[k];
		OM_TRY(vary(session, given, copy, now->ncopy + 1, s));
		om_tile_find_path(s, most);
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
replace(const om_tile_paths *given, om_tile_paths **best, om_tile_paths *s)
{
	if (*best != given && *best != s)
		end(*best);
	*best = s;
}

/* A path for `most`, in the program `*best` or with more copies. */
static om_status
find(om_session *session, om_tile_paths *given, om_tile_paths **best, uint64_t most, bool *found)
{
	om_tile_paths *now = *best, *next;

	*found = om_tile_find_path(now, most);
	while (!*found && now->ncopy < MOST_COPIES && given->request.most_flops > 0) {
		OM_TRY(add_copy(session, given, now, most, &next));
		if (now != *best)
			end(now);
		if (!next)
			return OM_OK;
		now = next;
		*found = om_tile_is_complete(now);
	}
	if (*found)
		replace(given, best, now);
	else if (now != *best)
		end(now);
	return OM_OK;
}

/* Do the copies after `k` copy only what the given program has? */
static bool
is_needless(const om_tile_paths *s, const om_tile_paths *given, uint32_t k)
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
leave_out(om_session *session, om_tile_paths *given, om_tile_paths **best, om_arena *mem, om_tile_plan *out)
{
	for (uint32_t k = (*best)->ncopy; k-- > 0;) {
		om_tile_paths *now = *best, *s = OM_NEW(given->known->mem, om_tile_paths);
		om_tile_copy *copy = OM_NEWN(given->known->mem, om_tile_copy, now->ncopy);
		if (!is_needless(now, given, k))
			continue;
		memcpy(copy, now->copy, k * sizeof *copy);
		memcpy(copy + k, now->copy + k + 1, (now->ncopy - k - 1) * sizeof *copy);
		OM_TRY(vary(session, given, copy, now->ncopy - 1, s));
		if (om_tile_find_path(s, out->after)) {
			out->npeak--;
			keep(s, mem, out);
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
bisect(om_session *session, om_tile_paths *given, om_tile_paths **best, om_arena *mem, om_tile_plan *out)
{
	uint64_t low = 0, high = out->after;
	bool found;

	out->missed = 0;
	out->stop = (om_tiled_step){0};
	for (int round = 0; round < MOST_ROUNDS && high - low > high / 50; round++) {
		const uint64_t most = low ? (uint64_t)sqrt((double)low * (double)high) : high / 2;
		OM_TRY(find(session, given, best, most, &found));
		if (found) {
			keep(*best, mem, out);
			high = out->after;
		} else {
			miss(*best, most, mem, out);
			low = most;
		}
	}
	return OM_OK;
}

/* ---- All. ---- */

struct om_tile_searcher {
	om_session *session;
	om_arena *mem;            /* of the results */
	om_tile_known known;
	om_tile_paths given;
	om_tile_plan plain;       /* without copies; that the others begin with */
	bool has_plain;
};

/* The fewest ops for the budget; false: there are none, or there is no budget. */
static om_status
search_budget(om_tile_searcher *s, om_tile_paths **best, om_tile_plan *out, bool *found)
{
	const uint64_t budget = s->given.request.budget;

	*found = false;
	if (budget)
		OM_TRY(find(s->session, &s->given, best, budget, found));
	if (*found)
		keep(*best, s->mem, out);
	return OM_OK;
}

static om_status
search_more(om_tile_searcher *s, om_tile_paths **best, om_tile_plan *out)
{
	bool found;

	OM_TRY(search_budget(s, best, out, &found));
	if (!found)
		OM_TRY(bisect(s->session, &s->given, best, s->mem, out));
	return leave_out(s->session, &s->given, best, s->mem, out);
}

static bool
is_enough(const om_tile_searcher *s, const om_tile_plan *plan)
{
	return s->given.g->nop < 2 || (s->given.request.budget && plan->before <= s->given.request.budget);
}

/* The copies are in an arena of the search. */
static void
keep_copies(const om_tile_paths *s, om_arena *mem, om_tile_plan *out)
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

/* Its plan, for the program `best`, which exists until the search ends. */
static void
complete(om_tile_searcher *s, const om_tile_paths *best, om_tile_plan *out)
{
	out->simulated = s->known.simulated;
	out->is_limited |= s->known.is_limited;
	keep_copies(best, s->mem, out);
	out->of = best;
}

static om_status
search_plain(om_tile_searcher *s)
{
	const double most_flops = s->given.request.most_flops;
	om_tile_paths *best = &s->given;
	om_tile_plan *out = &s->plain;
	om_status st = OM_OK;

	for (uint32_t i = 0; i < s->given.g->nop; i++)
		out->before = s->given.g->step[i] > out->before ? s->given.g->step[i] : out->before;
	out->after = out->before;
	OM_PUSH(s->mem, out->peak, out->npeak, out->cappeak, ((om_tiled_peak){out->before, s->given.g->nop, 0, 0}));
	s->given.request.most_flops = 0;
	if (!is_enough(s, out))
		st = search_more(s, &best, out);
	s->given.request.most_flops = most_flops;
	s->has_plain = true;
	complete(s, best, out);
	return st;
}

/* Peaks above that of the plain plan need not be tried again, and there is effort of their own for copies. */
static om_status
search_with_copies(om_tile_searcher *s, om_tile_plan *out)
{
	om_tile_paths *best = &s->given;
	om_status st = OM_OK;

	out->peak = om_memdup(s->mem, out->peak, out->npeak * sizeof *out->peak);
	out->cappeak = out->npeak;
	out->found = NULL;
	out->nfound = out->capfound = 0;
	s->known.most = s->known.simulated + s->given.request.effort;
	s->known.is_limited = false;
	if (!is_enough(s, out))
		st = search_more(s, &best, out);
	complete(s, best, out);
	return st;
}

om_status
om_tile_search(om_tile_searcher *s, bool may_copy, om_tile_plan *out)
{
	if (!s->has_plain)
		OM_TRY(search_plain(s));
	*out = s->plain;
	return may_copy && s->given.request.most_flops > 0 ? search_with_copies(s, out) : OM_OK;
}

void
om_tile_search_budget(om_tile_searcher *s, uint64_t budget)
{
	if (s->given.request.budget == budget)
		return;
	s->given.request.budget = budget;
	s->plain = (om_tile_plan){0};
	s->has_plain = false;
}

void
om_tile_search_explain(const om_tile_searcher *s, om_tile_plan *plan)
{
	om_tile_explain(plan->of, s->mem, plan);
}

om_tile_searcher *
om_tile_searcher_new(om_session *session, const om_prog *p, const om_tile_request *r, om_arena *mem)
{
	om_tile_searcher *s = OM_NEW(mem, om_tile_searcher);

	s->session = session;
	s->mem = mem;
	s->known = (om_tile_known){.mem = om_arena_new(), .scratch = om_arena_new(), .most = r->effort,
		.may_scatter = !r->only_concat && om_opset_version(p, "") >= FIRST_SCATTER};
	s->given = (om_tile_paths){.known = &s->known, .mem = s->known.mem, .p = p, .request = *r};
	om_tile_paths_begin(&s->given);
	s->known.most_time = s->given.g->time[s->given.g->nop] * r->most_times;
	return s;
}

void
om_tile_searcher_end(om_tile_searcher *s)
{
	for (om_tile_paths *one = s->known.program; one; one = one->next)
		if (one->mem)
			end(one);
	om_arena_free(s->known.scratch);
	om_arena_free(s->known.mem);
}
