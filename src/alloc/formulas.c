/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas of plans with ranges.
 *
 * The offset of storage is the longest of all paths to it in the order of place_order.h, whose lengths are sums of sizes;
 * the arena is the longest path of all.  The question is which path that is.
 *
 * Sizes that are multiples of the alignment for all numbers are polynomials.  On a box of numbers each polynomial is a mean of
 * its control points (Bernstein), with weights that are the same for all polynomials.  The longest path is convex in the
 * lengths of its edges.  So if one path is the longest at every control point, it is the longest in the whole
 * box: at each point of it, the longest path is at most the mean of those at the control points, which is the length of this
 * one.  If no path is, the box is halved.
 *
 * Sizes that are rounded up are no polynomials.  If the ranges have few sizes, paths are compared at each of them.  If not, there
 * are bounds: each such size is at least its polynomial, and at most that and a constant. */
#include <config.h>

#include "alloc/formula_search.h"
#include "alloc/polynomial.h"
#include "base/sizes.h"

enum {
	MOST_PIECES = 32,        /* that are looked for */
	MOST_SHOWN = 8,          /* once those with the same formulas are joined; */
	MOST_READABLE = 3,       /* if there are more, the largest of a few sums is tried */
	MOST_SIZES = 1024,       /* of ranges in which paths are compared at each size, */
	MOST_LENGTHS = 1 << 22,  /* and so many sizes of values */
};

/* ---- Numbers. ---- */

/* How many combinations a box has, at most MOST_SIZES + 1. */
static size_t
count_points(const struct number_box *b)
{
	size_t n = 1;

	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++) {
		const uint64_t each = (uint64_t)(b->high[d] - b->low[d]) + 1;
		if (each > MOST_SIZES || n * each > MOST_SIZES)
			return MOST_SIZES + 1;
		n *= each;
	}
	return n;
}

static void
point_at(const struct number_box *b, size_t k, int64_t *n)
{
	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++) {
		const size_t each = (size_t)(b->high[d] - b->low[d]) + 1;
		n[d] = b->low[d] + (int64_t)(k % each);
		k /= each;
	}
}

uint64_t
om_formula_align(const struct formula_search *w, uint32_t box)
{
	return w->plan->arena[w->o->arena[w->o->box[box].storage]].align;
}

/* The most that rounding adds to a size: to the next multiple of what divides all its factors. */
static int64_t
slack(const om_polynomial *size, uint64_t align)
{
	return (int64_t)(align - om_polynomial_divisor(size, align));
}

static bool
control_lengths(const struct formula_search *w, const struct number_box *b, uint32_t k, size_t probe, int64_t *least, int64_t *most)
{
	return om_polynomial_control(&w->size[k], b->low, b->high, (int)probe, least, most)
		&& !(w->is_rounded[k] && __builtin_add_overflow(*most, OM_CONTROL_SCALE * slack(&w->size[k], om_formula_align(w, k)), most));
}

/* The length of the edges from box `k` of the order at probe `probe`. */
static bool
length_at(const struct formula_search *w, const struct number_box *b, uint32_t k, size_t probe, int64_t *least, int64_t *most)
{
	int64_t n[OM_FORMULA_SYMBOLS];
	uint64_t bytes;

	if (!w->by_points)
		return control_lengths(w, b, k, probe, least, most);
	point_at(b, probe, n);
	if (!om_polynomial_value(&w->size[k], n, &bytes) || bytes > INT64_MAX / 2)
		return false;
	*least = *most = (int64_t)om_size_rounded_up(bytes, om_formula_align(w, k));
	return true;
}

bool
om_formula_lengths(struct formula_search *w, const struct number_box *b)
{
	static const size_t controls[] = {1, 3, 9, 27, 81};

	w->nprobe = w->by_points ? count_points(b) : controls[w->plan->nrange];
	w->edge = OM_NEWN(w->tmp, int64_t, w->o->nbox * w->nprobe);
	w->most = OM_NEWN(w->tmp, int64_t, w->o->nbox * w->nprobe);
	w->longest = OM_NEWN(w->tmp, int64_t, w->o->nstorage * w->nprobe);
	w->path = OM_NEWN(w->tmp, int64_t, w->o->nstorage * w->nprobe);
	for (uint32_t k = 0; k < w->o->nbox; k++)
		for (size_t i = 0; i < w->nprobe; i++)
			if (!length_at(w, b, k, i, &w->edge[k * w->nprobe + i], &w->most[k * w->nprobe + i]))
				return false;
	return true;
}

/* ---- Paths. ---- */

/* Sums that do not fit mean that no path is found. */
static bool
find_longest(struct formula_search *w)
{
	const size_t n = w->nprobe;

	for (size_t k = 0; k < w->o->nedge; k++) {
		const om_place_edge *e = &w->o->edge[k];
		const int64_t *from = w->longest + w->o->box[e->box].storage * n, *length = w->edge + e->box * n;
		int64_t *to = w->longest + e->above * n, sum;
		for (size_t i = 0; i < n; i++) {
			if (__builtin_add_overflow(from[i], length[i], &sum))
				return false;
			to[i] = sum > to[i] ? sum : to[i];
		}
	}
	return true;
}

/* The sum of `from` and `length` at all probes: of paths that are equally long at one probe, the longer one. */
static double
weight(const struct formula_search *w, uint32_t box)
{
	const int64_t *from = w->longest + w->o->box[box].storage * w->nprobe, *length = w->edge + box * w->nprobe;
	double sum = 0;

	for (size_t i = 0; i < w->nprobe; i++)
		sum += (double)from[i] + (double)length[i];
	return sum;
}

/* Is the end of box `box` at probe `i` above that of `best`? */
static bool
is_higher(const struct formula_search *w, uint32_t box, uint32_t best, size_t i)
{
	const size_t n = w->nprobe;

	if (best == OM_NO_VALUE)
		return true;
	const int64_t a = w->longest[w->o->box[box].storage * n + i] + w->edge[box * n + i];
	const int64_t b = w->longest[w->o->box[best].storage * n + i] + w->edge[best * n + i];
	return a != b ? a > b : weight(w, box) > weight(w, best);
}

/* The path to each storage that is the longest at probe `i`, and its length at all others. */
static void
take_paths(struct formula_search *w, size_t i)
{
	const om_place_order *o = w->o;
	const size_t n = w->nprobe;

	for (uint32_t k = 0; k < o->nstorage; k++)
		w->from[k] = OM_NO_VALUE;
	for (size_t k = 0; k < o->nedge; k++)
		if (w->longest[o->edge[k].above * n + i] == w->longest[o->box[o->edge[k].box].storage * n + i] + w->edge[o->edge[k].box * n + i]
		    && is_higher(w, o->edge[k].box, w->from[o->edge[k].above], i))
			w->from[o->edge[k].above] = o->edge[k].box;
	for (uint32_t k = 0; k < o->nstorage; k++)
		for (size_t j = 0; j < n; j++)
			w->path[k * n + j] = w->from[k] == OM_NO_VALUE ? 0
				: w->path[o->box[w->from[k]].storage * n + j] + w->edge[w->from[k] * n + j];
	for (uint32_t k = 0; k < w->plan->narena; k++)
		w->end[k] = OM_NO_VALUE;
	for (uint32_t k = 0; k < o->nbox; k++) {
		uint32_t *end = &w->end[o->arena[o->box[k].storage]];
		if (is_higher(w, k, *end, i))
			*end = k;
	}
}

/* Is the path of the arena the longest one everywhere? */
static bool
holds(const struct formula_search *w, uint32_t arena)
{
	const size_t n = w->nprobe;
	const uint32_t end = w->end[arena];

	for (uint32_t k = 0; k < w->o->nbox; k++) {
		const uint32_t storage = w->o->box[k].storage;
		for (size_t i = 0; i < n && w->o->arena[storage] == arena; i++)
			if (w->longest[storage * n + i] + w->edge[k * n + i]
			    > w->path[w->o->box[end].storage * n + i] + w->edge[end * n + i])
				return false;
	}
	return true;
}

static bool
all_hold(const struct formula_search *w)
{
	for (uint32_t k = 0; k < w->plan->narena; k++)
		if (w->end[k] != OM_NO_VALUE && !holds(w, k))
			return false;
	return true;
}

static bool
offset_holds(const struct formula_search *w, uint32_t storage)
{
	const size_t n = w->nprobe;

	return memcmp(w->path + storage * n, w->longest + storage * n, n * sizeof *w->path) == 0;
}

/* ---- Formulas of paths. ---- */

static void
add_rounded(const struct formula_search *w, om_formula *f, om_rounded *list, uint32_t box)
{
	for (uint32_t k = 0; k < f->nrounded; k++)
		if (om_polynomial_equal(&list[k].of, &w->size[box])) {
			list[k].count++;
			return;
		}
	list[f->nrounded++] = (om_rounded){1, om_formula_align(w, box), w->size[box]};
}

bool
om_formula_add(const struct formula_search *w, om_formula *f, om_rounded *list, uint32_t box)
{
	if (!w->is_rounded[box] || w->sizes != EXACT)
		return om_polynomial_add(&f->sum, &w->size[box], 1);
	add_rounded(w, f, list, box);
	return true;
}

static uint32_t
path_length(const struct formula_search *w, uint32_t box)
{
	uint32_t n = 0;

	for (; box != OM_NO_VALUE; box = w->from[w->o->box[box].storage])
		n++;
	return n;
}

/* The sum of the sizes of the boxes on the path that ends with `box`.  False: a factor is too large. */
static bool
sum_path(struct formula_search *w, uint32_t box, om_formula *f)
{
	om_rounded *list = OM_NEWN(w->plan->mem, om_rounded, path_length(w, box));

	*f = (om_formula){.rounded = list};
	for (; box != OM_NO_VALUE; box = w->from[w->o->box[box].storage])
		if (!om_formula_add(w, f, list, box))
			return false;
	om_formula_of_sizes(w->plan, f, list);
	return true;
}

om_formula_piece *
om_formula_piece_add(struct formula_search *w, const struct number_box *b, const om_formula *arena)
{
	om_formula_piece *piece = &w->piece[w->npiece++];

	*piece = (om_formula_piece){.arena = arena};
	memcpy(piece->low, b->low, sizeof b->low);
	memcpy(piece->high, b->high, sizeof b->high);
	return piece;
}

static bool
add_piece(struct formula_search *w, const struct number_box *b)
{
	om_formula *arena = OM_NEWN(w->plan->mem, om_formula, w->plan->narena);

	om_formula_piece_add(w, b, arena);
	for (uint32_t k = 0; k < w->plan->narena; k++)
		if (!sum_path(w, w->end[k], &arena[k]))
			return false;
	return true;
}

/* ---- Boxes. ---- */

static void
halve(const struct number_box *b, struct number_box *low, struct number_box *high)
{
	int d = 0;

	for (int k = 1; k < OM_FORMULA_SYMBOLS; k++)
		if (b->high[k] - b->low[k] > b->high[d] - b->low[d])
			d = k;
	*low = *high = *b;
	low->high[d] = b->low[d] + (b->high[d] - b->low[d]) / 2;
	high->low[d] = low->high[d] + 1;
}

/* Is there one path for each arena?  Then it is that of `w`. */
static bool
find_path(struct formula_search *w, const struct number_box *b)
{
	if (!om_formula_lengths(w, b) || !find_longest(w))
		return false;
	const size_t tried[] = {w->nprobe - 1, 0, w->nprobe / 2};
	for (size_t k = 0; k < sizeof tried / sizeof tried[0]; k++) {
		take_paths(w, tried[k]);
		if (all_hold(w))
			return true;
	}
	return false;
}

/* Find formulas for the box; false: too many parts would be needed, or numbers are too large. */
static bool
search(struct formula_search *w, const struct number_box *b)
{
	struct number_box low, high;

	w->tmp = om_arena_new();
	const bool is_found = find_path(w, b), is_added = is_found && w->npiece < MOST_PIECES && add_piece(w, b);
	om_arena_free(w->tmp);
	if (is_found || w->npiece == MOST_PIECES || count_points(b) == 1)
		return is_added;
	halve(b, &low, &high);
	return search(w, &low) && search(w, &high);
}

static void
start(struct formula_search *w, bool by_points, enum rounding sizes)
{
	w->by_points = by_points;
	w->sizes = sizes;
	w->piece = OM_NEWN(w->plan->mem, om_formula_piece, MOST_PIECES);
	w->npiece = 0;
}

static bool
search_again(struct formula_search *w, const struct number_box *all, bool by_points, enum rounding sizes)
{
	start(w, by_points, sizes);
	return search(w, all);
}

/* ---- Joining pieces. ---- */

static bool
same_formula(const om_formula *a, const om_formula *b)
{
	if (!a || !b)
		return a == b;
	if (!om_polynomial_equal(&a->sum, &b->sum) || a->nrounded != b->nrounded)
		return false;
	for (uint32_t k = 0; k < a->nrounded; k++)
		if (a->rounded[k].count != b->rounded[k].count || !om_polynomial_equal(&a->rounded[k].of, &b->rounded[k].of))
			return false;
	return true;
}

/* Do both cover a box, one after the other? */
static bool
is_next(const om_formula_piece *a, const om_formula_piece *b)
{
	int differ = 0, next = 0;

	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++) {
		differ += a->low[d] != b->low[d] || a->high[d] != b->high[d];
		next += a->high[d] + 1 == b->low[d];
	}
	return differ == 1 && next == 1;
}

static bool
join(const struct formula_search *w, om_formula_piece *a, const om_formula_piece *b)
{
	if (!is_next(a, b))
		return false;
	for (uint32_t k = 0; k < w->plan->narena; k++)
		if (!same_formula(&a->arena[k], &b->arena[k]))
			return false;
	memcpy(a->high, b->high, sizeof a->high);
	return true;
}

static void
join_all(struct formula_search *w)
{
	for (bool again = true; again;) {
		again = false;
		for (uint32_t a = 0; a < w->npiece; a++)
			for (uint32_t b = 0; b < w->npiece; b++)
				if (a != b && join(w, &w->piece[a], &w->piece[b])) {
					memmove(&w->piece[b], &w->piece[b + 1], (--w->npiece - b) * sizeof *w->piece);
					again = true;
					a = b = w->npiece;
				}
	}
}

/* ---- Offsets. ---- */

static bool
add_offsets(struct formula_search *w, om_formula_piece *piece)
{
	const om_formula **all = OM_NEWN(w->plan->mem, const om_formula *, w->plan->nplace);
	om_formula **of = OM_NEWN(w->tmp, om_formula *, w->o->nstorage);

	for (uint32_t k = 0; k < w->o->nstorage; k++) {
		if (!offset_holds(w, k))
			continue;
		of[k] = OM_NEW(w->plan->mem, om_formula);
		if (!sum_path(w, w->from[k], of[k]))
			return false;
	}
	for (uint32_t k = 0; k < w->plan->nplace; k++)
		if (w->o->storage_of_value[k] != OM_NO_VALUE)
			all[k] = of[w->o->storage_of_value[k]];
	piece->offset = all;
	return true;
}

/* Offsets whose path is the longest in all of a piece have a formula there. */
static bool
find_offsets(struct formula_search *w)
{
	bool is_done = true;

	for (uint32_t k = 0; is_done && k < w->npiece; k++) {
		struct number_box b;
		memcpy(b.low, w->piece[k].low, sizeof b.low);
		memcpy(b.high, w->piece[k].high, sizeof b.high);
		w->tmp = om_arena_new();
		is_done = om_formula_lengths(w, &b) && find_longest(w);
		if (is_done)
			take_paths(w, w->nprobe - 1);
		is_done = is_done && add_offsets(w, &w->piece[k]);
		om_arena_free(w->tmp);
	}
	return is_done;
}

/* ---- Bounds. ---- */

/* In place of rounded sizes, polynomials that bound them.  False: numbers are too large. */
static bool
bound_sizes(struct formula_search *w, const om_polynomial *of, const struct number_box *all, bool at_least)
{
	w->size = OM_NEWN(w->mem, om_polynomial, w->o->nbox);
	for (uint32_t k = 0; k < w->o->nbox; k++) {
		if (!om_polynomial_bound(&of[k], all->low, at_least, &w->size[k]))
			return false;
		if (at_least && w->is_rounded[k])
			w->size[k].factor[0] += slack(&of[k], om_formula_align(w, k));
	}
	return true;
}

/* A lower bound that is one formula for all of the ranges: a path of the largest sizes.  */
static const om_formula *
find_least(struct formula_search *w, const struct number_box *all)
{
	om_formula *least = OM_NEWN(w->plan->mem, om_formula, w->plan->narena);

	w->sizes = AT_LEAST;
	w->by_points = false;
	w->tmp = om_arena_new();
	bool is_done = om_formula_lengths(w, all) && find_longest(w);
	if (is_done)
		take_paths(w, w->nprobe - 1);
	for (uint32_t k = 0; is_done && k < w->plan->narena; k++)
		is_done = sum_path(w, w->end[k], &least[k]);
	om_arena_free(w->tmp);
	return is_done ? least : NULL;
}

static bool
search_bounds(struct formula_search *w, const struct number_box *all)
{
	const om_polynomial *of = w->size;

	if (!bound_sizes(w, of, all, true) || !search_again(w, all, false, AT_MOST))
		return false;
	join_all(w);
	const om_formula *least = bound_sizes(w, of, all, false) ? find_least(w, all) : NULL;
	for (uint32_t k = 0; k < w->npiece; k++)
		w->piece[k].least = least;
	return least != NULL;
}

/* ---- All. ---- */

/* A size of which only the constant is no multiple of the alignment, rounded up.  False: it is another one. */
static bool
round_constant(om_polynomial *f, uint64_t align)
{
	const int64_t rest = f->factor[0] % (int64_t)align, up = rest > 0 ? (int64_t)align - rest : -rest;

	f->factor[0] += up;
	if (om_polynomial_divisor(f, align) == align)
		return true;
	f->factor[0] -= up;
	return false;
}

static void
find_sizes(struct formula_search *w, const om_polynomial *const *bytes)
{
	w->size = OM_NEWN(w->mem, om_polynomial, w->o->nbox);
	w->is_rounded = OM_NEWN(w->mem, bool, w->o->nbox);
	for (uint32_t k = 0; k < w->o->nbox; k++) {
		const om_place_box *x = &w->o->box[k];
		if (x->value)
			w->size[k] = *bytes[x->value->id];
		else
			w->size[k].factor[0] = (int64_t)om_place_box_bytes(w->o, w->plan, x);
		w->is_rounded[k] = !round_constant(&w->size[k], om_formula_align(w, k)) || om_polynomial_has_quotients(&w->size[k]);
	}
}

static bool
has_rounded(const struct formula_search *w)
{
	for (uint32_t k = 0; k < w->o->nbox; k++)
		if (w->is_rounded[k])
			return true;
	return false;
}

/* One formula for all of the ranges: the largest of a few sums. */
static bool
largest(struct formula_search *w, const struct number_box *all, bool by_points)
{
	start(w, by_points, EXACT);
	w->tmp = om_arena_new();
	const bool is_found = om_formula_lengths(w, all) && om_formula_largest(w, all);
	om_arena_free(w->tmp);
	return is_found;
}

static bool
search_all(struct formula_search *w)
{
	struct number_box all = {{0}, {0}};

	for (uint32_t d = 0; d < w->plan->nrange; d++) {
		const om_dim_range r = om_range_of_steps(&w->plan->range[d]);
		all.low[d] = r.low;
		all.high[d] = r.high;
	}
	const size_t points = count_points(&all);
	const bool few = points <= MOST_SIZES && points * w->o->nbox <= MOST_LENGTHS;
	const bool is_found = (!has_rounded(w) && search_again(w, &all, false, EXACT)) || (few && search_again(w, &all, true, EXACT));
	if (is_found)
		join_all(w);
	if (is_found && w->npiece <= MOST_READABLE)
		return find_offsets(w);
	if (largest(w, &all, few))
		return true;
	return search_bounds(w, &all) && w->npiece <= MOST_SHOWN;
}

/* Is the plan that for the largest sizes in this order? */
static bool
is_tight(const struct formula_search *w)
{
	int64_t n[OM_FORMULA_SYMBOLS] = {0};

	for (uint32_t d = 0; d < w->plan->nrange; d++)
		n[d] = w->plan->range[d].high;
	for (uint32_t k = 0; k < w->npiece; k++) {
		const om_formula_piece *at = &w->piece[k];
		bool is_last = !at->least;
		for (uint32_t d = 0; d < w->plan->nrange; d++)
			is_last &= at->high[d] == n[d];
		for (uint32_t a = 0; is_last && a < w->plan->narena; a++)
			if (om_formula_value(&at->arena[a], n) != w->plan->arena[a].bytes)
				return false;
	}
	return true;
}

om_formulas *
om_formulas_none(const om_plan *plan, const char *why)
{
	om_formulas *f = OM_NEW(plan->mem, om_formulas);

	f->why = om_strdup(plan->mem, why);
	return f;
}

/* The ends of a piece, in place of their numbers. */
static void
use_sizes(const om_plan *plan, om_formula_piece *piece)
{
	for (uint32_t d = 0; d < plan->nrange; d++) {
		piece->low[d] = om_size_of_step(&plan->range[d], piece->low[d]);
		piece->high[d] = om_size_of_step(&plan->range[d], piece->high[d]);
	}
}

static om_formulas *
find_formulas(struct formula_search *w, const om_polynomial *const *bytes, const om_formula *outside)
{
	om_formulas *f = OM_NEW(w->plan->mem, om_formulas);

	find_sizes(w, bytes);
	w->from = OM_NEWN(w->mem, uint32_t, w->o->nstorage);
	w->end = OM_NEWN(w->mem, uint32_t, w->plan->narena);
	*f = (om_formulas){.bytes = bytes, .outside = outside};
	if (!search_all(w))
		return om_formulas_none(w->plan, "the arena is the largest of too many sums of sizes");
	for (uint32_t k = 0; k < w->npiece; k++)
		use_sizes(w->plan, &w->piece[k]);
	f->piece = w->piece;
	f->npiece = w->npiece;
	return is_tight(w) ? f : om_formulas_none(w->plan, "the arenas have an alignment that the plan does not have");
}

om_formulas *
om_formulas_new(const om_prog *p, const om_plan *plan, const om_polynomial *const *bytes, const om_formula *outside)
{
	om_arena *mem = om_arena_new();
	struct formula_search w = {.plan = plan, .mem = mem, .o = om_place_order_new(p, plan, mem)};
	om_formulas *f = w.o ? find_formulas(&w, bytes, outside)
		: om_formulas_none(plan, "values are inside others, or rotate in loops, at offsets that depend on sizes");

	om_arena_free(mem);
	return f;
}
