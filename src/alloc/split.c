/* SPDX-License-Identifier: Apache-2.0 */
/* Finds cuts.  A longer part never needs less, so that the parts which are small enough start at each op and have all
 * lengths up to a limit; parts that each go as far as possible are the fewest.  Of all cuts into as many parts, dynamic
 * programming finds those with the fewest bytes: the best cuts of the ops up to an op follow from those with one part
 * less up to an earlier op, which lies in a window that only moves forward. */
#include <config.h>

#include <inttypes.h>

#include "alloc/part_memory.h"
#include "base/arena_internal.h"
#include "base/guard.h"
#include "base/sizes.h"
#include "ir/steps.h"
#include "onnxmem/split.h"

struct split {
	om_session *s;
	const om_split_request *r;
	om_arena *tmp;
	om_part_memory m;
	uint64_t budget;
	double *factor;          /* by position: parts that start there need so much of their estimate */
	uint32_t *limit;         /* by position: a part that starts there ends here at the latest */
	uint32_t *known;         /* by position: one that starts there and ends here needs no more than the budget */
	uint32_t *end;           /* by position: where the longest part that starts there ends */
};

static uint64_t
need(const om_part_walk *w, double factor)
{
	const double bytes = (double)om_size_sum(w->peak, w->weights) * factor;

	return bytes < 0x1p63 ? (uint64_t)bytes : UINT64_MAX;
}

/* Where the longest part that starts at `first` ends: there, if an op alone needs too much. */
static uint32_t
longest(const struct split *x, uint32_t first)
{
	om_part_walk w = om_part_walk_at(&x->m, first);

	while (w.end < x->limit[first]) {
		om_part_walk_on(&w);
		if (w.end > x->known[first] && need(&w, x->factor[first]) > x->budget)
			return w.end - 1;
	}
	return w.end;
}

/* ---- What planning of parts has shown. ---- */

static uint64_t
estimate(const struct split *x, const om_split_part *part)
{
	om_part_walk w = om_part_walk_at(&x->m, part->first);

	while (w.end < part->first + part->nop)
		om_part_walk_on(&w);
	return om_size_sum(w.peak, w.weights);
}

static om_status
learn(struct split *x)
{
	for (uint32_t k = 0; k <= x->m.n; k++) {
		x->factor[k] = 1;
		x->limit[k] = x->m.n;
	}
	for (uint32_t k = 0; k < x->r->nplanned; k++) {
		const om_split_part *part = &x->r->planned[k];
		if (part->nop == 0 || part->first >= x->m.n || part->nop > x->m.n - part->first)
			return om_fail(x->s, OM_USAGE, "a planned part has ops that the program does not have");
		const uint64_t expected = estimate(x, part);
		x->factor[part->first] = expected ? (double)part->bytes / (double)expected : 1;
	}
	return OM_OK;
}

/* What contains a part that needs too much needs too much; what a part contains that fits, fits. */
static void
set_limits(struct split *x)
{
	for (uint32_t k = 0; k <= x->m.n; k++) {
		x->known[k] = 0;
		x->limit[k] = x->m.n;
	}

	for (uint32_t k = 0; k < x->r->nplanned; k++) {
		const om_split_part *part = &x->r->planned[k];
		const uint32_t end = part->first + part->nop;
		for (uint32_t i = 0; part->bytes > x->budget && i <= part->first; i++)
			x->limit[i] = end - 1 < x->limit[i] ? end - 1 : x->limit[i];
		for (uint32_t i = part->first; part->bytes <= x->budget && i < end; i++)
			x->known[i] = end > x->known[i] ? end : x->known[i];
	}
}

/* ---- The search. ---- */

/* Where the parts may end, so that a later start never means an earlier end.  False: `*stop`, alone, needs too much. */
static bool
find_ends(struct split *x, uint32_t *stop)
{
	for (uint32_t k = x->m.n; k-- > 0;) {
		const uint32_t end = longest(x, k), most = k + 1 < x->m.n ? x->end[k + 1] : x->m.n;
		x->end[k] = end < most ? end : most;
		*stop = k;
		if (end == k)
			return false;
	}
	return true;
}

static uint32_t
fewest(const struct split *x)
{
	uint32_t n = 0;

	for (uint32_t at = 0; at < x->m.n; n++)
		at = x->end[at];
	return n;
}

static bool
is_enough(struct split *x, uint64_t budget)
{
	uint32_t stop;

	x->budget = budget;
	set_limits(x);
	return find_ends(x, &stop) && fewest(x) <= x->r->parts;
}

/* The smallest budget that `parts` parts meet. */
static void
find_budget(struct split *x)
{
	uint64_t low = 0, high = 0;

	for (uint32_t k = 0; k < x->m.n; k++) {
		om_part_walk w = om_part_walk_at(&x->m, k);
		om_part_walk_on(&w);
		low = need(&w, x->factor[k]) > low ? need(&w, x->factor[k]) : low;
	}
	for (high = low; !is_enough(x, high);)
		high = om_size_sum(high, high / 2 + 1);
	low = low ? low - 1 : 0;  /* too small */
	while (high - low > 1) {
		const uint64_t middle = low + (high - low) / 2;
		if (is_enough(x, middle))
			high = middle;
		else
			low = middle;
	}
	x->budget = high;
}

/* One part more: `cost[j]` is the fewest bytes over cuts up to j, UINT64_MAX: there are none; `from[j]`, where the last
 * part starts.  A queue has the starts that may still be the best, the best first. */
static void
add_part(const struct split *x, const uint64_t *before, uint64_t *cost, uint32_t *from, uint32_t *queue)
{
	uint32_t head = 0, tail = 0;

	cost[0] = UINT64_MAX;
	for (uint32_t j = 1; j <= x->m.n; j++) {
		while (tail > head && before[queue[tail - 1]] >= before[j - 1])
			tail--;
		queue[tail++] = j - 1;
		while (tail > head && x->end[queue[head]] < j)
			head++;
		cost[j] = UINT64_MAX;
		if (tail == head || before[queue[head]] == UINT64_MAX)
			continue;
		from[j] = queue[head];
		cost[j] = om_size_sum(before[from[j]], j < x->m.n ? x->m.crossing[j] : 0);
	}
}

static void
fill_part(const struct split *x, om_split_part *part, uint32_t first, uint32_t end)
{
	om_part_walk w = om_part_walk_at(&x->m, first);

	while (w.end < end)
		om_part_walk_on(&w);
	*part = (om_split_part){first, end - first, need(&w, x->factor[first]), w.weights,
		end < x->m.n ? x->m.crossing[end] : 0};
}

static om_status
cut(struct split *x, uint32_t parts, om_arena *mem, om_split *out)
{
	const size_t row = (size_t)x->m.n + 1;
	uint64_t *cost = OM_NEWN(x->tmp, uint64_t, 2 * row);
	uint32_t *from = OM_NEWN(x->tmp, uint32_t, row * parts), *queue = OM_NEWN(x->tmp, uint32_t, row);

	for (uint32_t j = 1; j <= x->m.n; j++)
		cost[j] = UINT64_MAX;
	for (uint32_t k = 0; k < parts; k++)
		add_part(x, cost + k % 2 * row, cost + (k + 1) % 2 * row, from + k * row, queue);
	out->crossing = cost[parts % 2 * row + x->m.n];
	if (out->crossing == UINT64_MAX)
		return om_fail(x->s, OM_BUDGET, "there are no %" PRIu32 " parts that need at most %" PRIu64 " bytes each", parts,
			x->budget);
	out->n = parts;
	out->part = OM_NEWN(mem, om_split_part, parts);
	for (uint32_t k = parts, end = x->m.n; k-- > 0; end = from[k * row + end])
		fill_part(x, &out->part[k], from[k * row + end], end);
	return OM_OK;
}

static om_status
too_small(const struct split *x, uint32_t at)
{
	om_part_walk w = om_part_walk_at(&x->m, at);

	om_part_walk_on(&w);
	return om_fail(x->s, OM_BUDGET, "%s alone needs %" PRIu64 " bytes, with its weights, inputs and outputs: more than "
		"the budget of %" PRIu64, om_op_where(x->m.op[at], x->tmp), need(&w, x->factor[at]), x->budget);
}

static om_status
find(struct split *x, om_arena *mem, om_split *out)
{
	uint32_t stop = 0;

	OM_TRY(learn(x));
	x->budget = x->r->budget;
	out->stop = UINT32_MAX;
	if (x->r->parts > x->m.n || x->m.n == 0)
		return om_fail(x->s, OM_USAGE, "the model cannot be cut into %" PRIu32 " parts: %" PRIu32 " of its ops run",
			x->r->parts ? x->r->parts : 1, x->m.n);
	if (!x->budget)
		find_budget(x);
	set_limits(x);
	if (!find_ends(x, &stop)) {
		out->stop = stop;
		return too_small(x, stop);
	}
	return cut(x, x->r->parts ? x->r->parts : fewest(x), mem, out);
}

static om_status
split_find_guarded(om_session *s, const om_prog *p, const om_split_request *r, om_arena *mem, om_split *out)
{
	if (!(p->has & OM_HAS_STORE))
		return om_fail(s, OM_USAGE, "parts are made of a program with storage: run the pass `inplace` first");
	if (!r->budget && !r->parts)
		return om_fail(s, OM_USAGE, "neither a number of parts nor a budget is given");
	struct split x = {.s = s, .r = r, .tmp = om_arena_new()};
	x.m = om_part_memory_new(p, x.tmp);
	x.factor = OM_NEWN(x.tmp, double, (size_t)x.m.n + 1);
	x.limit = OM_NEWN(x.tmp, uint32_t, (size_t)x.m.n + 1);
	x.known = OM_NEWN(x.tmp, uint32_t, (size_t)x.m.n + 1);
	x.end = OM_NEWN(x.tmp, uint32_t, (size_t)x.m.n + 1);
	const om_status st = find(&x, mem, out);
	om_arena_free(x.tmp);
	return st;
}

om_status
om_split_find(om_session *s, const om_prog *p, const om_split_request *r, om_arena *mem, om_split *out)
{
	OM_GUARDED(s, split_find_guarded(s, p, r, mem, out));
}
