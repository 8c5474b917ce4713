/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas that are the largest of a few sums.
 *
 * Each storage has the paths to it that may be the longest somewhere.  A path is left out if another one is as long at every
 * probe: at every control point, which means in the whole box, or at every combination of numbers.  A size that is rounded up
 * counts at control points as the least that it may be; of two paths one is as long as the other if it is so with what the
 * other one may have more. */
#include <config.h>

#include "alloc/formula_search.h"
#include "alloc/polynomial.h"

enum {
	MOST_PATHS = 48,
	MOST_SUMS = 32,
	MOST_ROUNDED = 64,
	MOST_COMPARED = 1 << 28, /* lengths */
};

/* A path, without the storage that it leads to. */
struct path {
	const struct path *before;
	uint32_t box;            /* the last one; OM_NO_VALUE: it is empty */
	uint32_t nbox;
	int64_t *length;         /* by probe */
	uint32_t *rounded;       /* by kind of rounded size: how many are on it; NULL at points */
};

struct paths {
	const struct path *path[MOST_PATHS + 1];
	uint32_t n;
};

struct largest {
	struct formula_search *w;
	uint32_t *kind;          /* by box of the order: kind of rounded size; OM_NO_VALUE: it is not rounded */
	int64_t *slack[MOST_ROUNDED]; /* by probe: what it may have more than the least */
	const om_polynomial *of[MOST_ROUNDED];
	uint32_t nkind;
	struct paths *to;        /* by storage */
	uint64_t compared;       /* lengths of paths, so far */
};

/* Boxes of one kind may be in arenas with different alignments. */
static void
add_slack(struct largest *l, uint32_t kind, uint32_t box)
{
	const struct formula_search *w = l->w;

	for (size_t i = 0; i < w->nprobe; i++) {
		const int64_t is = w->most[box * w->nprobe + i] - w->edge[box * w->nprobe + i];
		l->slack[kind][i] = is > l->slack[kind][i] ? is : l->slack[kind][i];
	}
}

/* False: there are too many. */
static bool
find_kinds(struct largest *l)
{
	const struct formula_search *w = l->w;

	l->kind = OM_NEWN(w->tmp, uint32_t, w->o->nbox);
	for (uint32_t k = 0; k < w->o->nbox; k++) {
		uint32_t i = 0;
		l->kind[k] = OM_NO_VALUE;
		if (!w->is_rounded[k] || w->by_points)
			continue;
		while (i < l->nkind && !om_polynomial_equal(l->of[i], &w->size[k]))
			i++;
		if (i == MOST_ROUNDED)
			return false;
		if (i == l->nkind)
			l->slack[l->nkind++] = OM_NEWN(w->tmp, int64_t, w->nprobe);
		l->of[i] = &w->size[k];
		add_slack(l, i, k);
		l->kind[k] = i;
	}
	return true;
}

/* ---- Paths. ---- */

/* What `b` may be longer than its length at probe `i`, where it has more of a rounded size than `a`. */
static int64_t
slack_at(const struct largest *l, const struct path *a, const struct path *b, size_t i)
{
	int64_t more = 0;

	for (uint32_t k = 0; k < l->nkind; k++)
		more += b->rounded[k] > a->rounded[k] ? (int64_t)(b->rounded[k] - a->rounded[k]) * l->slack[k][i] : 0;
	return more;
}

/* Is `a` at least as long as `b` for all numbers? */
static bool
dominates(struct largest *l, const struct path *a, const struct path *b)
{
	for (size_t i = 0; i < l->w->nprobe; i++) {
		l->compared++;
		if (a->length[i] - slack_at(l, a, b, i) < b->length[i])
			return false;
	}
	return true;
}

/* Add a path unless another one dominates it.  False: there are too many. */
static bool
add_path(struct largest *l, struct paths *all, const struct path *p, uint32_t most)
{
	uint32_t left = 0;

	for (uint32_t k = 0; k < all->n; k++)
		if (dominates(l, all->path[k], p))
			return true;
	for (uint32_t k = 0; k < all->n; k++)
		if (!dominates(l, p, all->path[k]))
			all->path[left++] = all->path[k];
	all->path[left++] = p;
	all->n = left;
	return left <= most && l->compared < MOST_COMPARED;
}

static const struct path *
empty_path(const struct largest *l)
{
	struct path *p = OM_NEW(l->w->tmp, struct path);

	*p = (struct path){.box = OM_NO_VALUE, .length = OM_NEWN(l->w->tmp, int64_t, l->w->nprobe),
		.rounded = OM_NEWN(l->w->tmp, uint32_t, l->nkind)};
	return p;
}

/* NULL: it is too long. */
static const struct path *
extend(const struct largest *l, const struct path *before, uint32_t box)
{
	const size_t n = l->w->nprobe;
	struct path *p = OM_NEW(l->w->tmp, struct path);

	*p = (struct path){before, box, before->nbox + 1, om_memdup(l->w->tmp, before->length, n * sizeof *p->length),
		om_memdup(l->w->tmp, before->rounded, l->nkind * sizeof *p->rounded)};
	if (l->kind[box] != OM_NO_VALUE)
		p->rounded[l->kind[box]]++;
	for (size_t i = 0; i < n; i++)
		if (__builtin_add_overflow(p->length[i], l->w->edge[box * n + i], &p->length[i]) || p->length[i] > INT64_MAX / 4)
			return NULL;
	return p;
}

/* Add to `all` the paths to the end of a box. */
static bool
add_ends(struct largest *l, struct paths *all, uint32_t box, uint32_t most)
{
	const struct paths *from = &l->to[l->w->o->box[box].storage];

	for (uint32_t k = 0; k < from->n; k++) {
		const struct path *p = extend(l, from->path[k], box);
		if (!p || !add_path(l, all, p, most))
			return false;
	}
	return true;
}

/* Edges are sorted by the storage that they lead to, and come from storage with smaller numbers. */
static bool
find_paths(struct largest *l)
{
	const om_place_order *o = l->w->o;
	const struct path *empty = empty_path(l);
	size_t at = 0;

	l->to = OM_NEWN(l->w->tmp, struct paths, o->nstorage);
	for (uint32_t k = 0; k < o->nstorage; k++) {
		for (; at < o->nedge && o->edge[at].above == k; at++)
			if (!add_ends(l, &l->to[k], o->edge[at].box, MOST_PATHS))
				return false;
		if (l->to[k].n == 0)
			l->to[k] = (struct paths){{empty}, 1};
	}
	return true;
}

/* ---- Formulas. ---- */

static bool
write_sum(const struct largest *l, const struct path *p, om_formula *f)
{
	om_rounded *list = OM_NEWN(l->w->plan->mem, om_rounded, p->nbox);

	*f = (om_formula){.rounded = list};
	for (; p->box != OM_NO_VALUE; p = p->before)
		if (!om_formula_add(l->w, f, list, p->box))
			return false;
	om_formula_of_sizes(l->w->plan, f, list);
	return true;
}

/* The largest of all paths, into `out`, which is the first of them. */
static bool
write_formula(const struct largest *l, const struct paths *all, om_formula *out)
{
	om_formula *sum = OM_NEWN(l->w->plan->mem, om_formula, all->n + 1);

	for (uint32_t k = 0; k < all->n; k++) {
		if (!write_sum(l, all->path[k], &sum[k]))
			return false;
		sum[k].other = k + 1 < all->n ? &sum[k + 1] : NULL;
	}
	*out = sum[0];
	return true;
}

static bool
write_arenas(struct largest *l, om_formula *arena)
{
	const struct formula_search *w = l->w;

	for (uint32_t a = 0; a < w->plan->narena; a++) {
		struct paths all = {.n = 0};
		for (uint32_t k = 0; k < w->o->nbox; k++)
			if (w->o->arena[w->o->box[k].storage] == a && !add_ends(l, &all, k, MOST_PATHS))
				return false;
		if (all.n > MOST_SUMS || !write_formula(l, &all, &arena[a]))
			return false;
	}
	return true;
}

static bool
write_offsets(const struct largest *l, om_formula_piece *piece)
{
	const struct formula_search *w = l->w;
	const om_formula **all = OM_NEWN(w->plan->mem, const om_formula *, w->plan->nplace);
	om_formula *of = OM_NEWN(w->plan->mem, om_formula, w->o->nstorage);

	for (uint32_t k = 0; k < w->o->nstorage; k++)
		if (l->to[k].n <= MOST_SUMS && !write_formula(l, &l->to[k], &of[k]))
			return false;
	for (uint32_t k = 0; k < w->plan->nplace; k++) {
		const uint32_t storage = w->o->storage_of_value[k];
		all[k] = storage != OM_NO_VALUE && l->to[storage].n <= MOST_SUMS ? &of[storage] : NULL;
	}
	piece->offset = all;
	return true;
}

bool
om_formula_largest(struct formula_search *w, const struct number_box *all)
{
	struct largest l = {.w = w};
	om_formula *arena = OM_NEWN(w->plan->mem, om_formula, w->plan->narena);
	om_formula_piece *piece = om_formula_piece_add(w, all, arena);

	return find_kinds(&l) && find_paths(&l) && write_arenas(&l, arena) && write_offsets(&l, piece);
}
