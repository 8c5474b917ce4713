/* SPDX-License-Identifier: Apache-2.0 */
/* An estimate of the peak of steps: what views, ops in place and concatenations save is what the planner saves as well.
 *
 * Storage is divided into segments.  A piece refers to its segments, and a segment is freed with the last piece that
 * refers to it. */
#include <config.h>

#include <stdlib.h>

#include "lower/tile/tile_internal.h"

#define NONE OM_TILE_NONE

struct segment {
	uint64_t bytes;
	uint32_t readers;         /* pieces that exist */
};

/* The segments of a piece; `lo` and `hi` are the rows that each has, if the piece is cut along its outermost axis. */
struct extent {
	uint32_t *segment;
	int64_t *lo, *hi;
	uint32_t n;
	bool exists;
};

struct sweep {
	const om_tile_graph *g;
	const om_tile_code *c;
	om_arena *mem;
	const om_tile_region *r;  /* NULL: the whole graph */
	bool *is_cut;             /* by piece: a later step makes a view of a part of it */
	struct segment *segment;
	size_t nsegment, capsegment;
	struct extent *extent;    /* by piece */
	uint32_t *last;           /* by piece: the last step that reads it; NONE: it has no reader */
	uint32_t *of_root;        /* by value id of a root that is there before: segment + 1 */
	uint64_t now, peak;
};

static uint32_t
segment_new(struct sweep *s, uint64_t bytes)
{
	OM_PUSH(s->mem, s->segment, s->nsegment, s->capsegment, ((struct segment){bytes, 0}));
	s->now += bytes;
	return (uint32_t)s->nsegment - 1;
}

static void
extent_new(struct sweep *s, struct extent *x, uint32_t n)
{
	x->segment = OM_NEWN(s->mem, uint32_t, n);
	x->lo = OM_NEWN(s->mem, int64_t, n);
	x->hi = OM_NEWN(s->mem, int64_t, n);
	x->n = n;
}

static void
hold(struct sweep *s, uint32_t piece)
{
	struct extent *x = &s->extent[piece];

	x->exists = true;
	for (uint32_t k = 0; k < x->n; k++)
		s->segment[x->segment[k]].readers++;
}

static void
drop(struct sweep *s, uint32_t piece)
{
	struct extent *x = &s->extent[piece];

	if (!x->exists)
		return;
	x->exists = false;
	for (uint32_t k = 0; k < x->n; k++)
		if (--s->segment[x->segment[k]].readers == 0) {
			s->now -= s->segment[x->segment[k]].bytes;
			s->segment[x->segment[k]].bytes = 0;
		}
}

/* ---- Cut points. ---- */

static bool
is_view_cut(const om_tile_code *c, const om_tile_step *step)
{
	return step->kind == OM_TILE_CUT && om_tile_is_contiguous(c->piece[step->in[0]].of, step->part.axis);
}

static int
compare(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Segments of a piece for the ranges between its cuts: from `cut`, sorted, of `n` rows. */
static void
divide(struct sweep *s, uint32_t piece, const int64_t *cut, uint32_t n, int64_t lo, int64_t hi)
{
	struct extent *x = &s->extent[piece];
	const uint64_t bytes = s->c->piece[piece].bytes;
	int64_t from = lo;

	extent_new(s, x, n + 1);
	x->n = 0;
	for (uint32_t k = 0; k <= n; k++) {
		const int64_t to = k < n ? cut[k] : hi;
		if (to <= from || to > hi)
			continue;
		x->lo[x->n] = from;
		x->hi[x->n] = to;
		x->segment[x->n++] = segment_new(s, bytes / (uint64_t)(hi - lo) * (uint64_t)(to - from));
		from = to;
	}
}

/* Storage of its own for a piece, divided where later steps cut it. */
static void
allocate(struct sweep *s, uint32_t piece, const int64_t *cut, uint32_t ncut, int axis)
{
	const om_value *v = s->c->piece[piece].of;
	struct extent *x = &s->extent[piece];
	om_part part = s->c->piece[piece].part;

	if (part.axis == OM_WHOLE && axis != OM_WHOLE)
		part = (om_part){axis, 0, v->shape.dim[axis]};
	if (ncut && part.axis == axis && part.hi > part.lo) {
		divide(s, piece, cut, ncut, part.lo, part.hi);
	} else {
		extent_new(s, x, 1);
		x->lo[0] = part.lo;
		x->hi[0] = part.hi;
		x->segment[0] = segment_new(s, s->c->piece[piece].bytes);
	}
	hold(s, piece);
}

/* Where later steps cut the piece. */
static uint32_t
cuts_of(struct sweep *s, uint32_t piece, size_t from, int64_t **cut, int *axis)
{
	uint32_t n = 0;

	*axis = OM_WHOLE;
	*cut = NULL;
	if (!s->is_cut[piece])
		return 0;
	for (size_t k = from; k <= s->last[piece] && k < s->c->nstep; k++) {
		const om_tile_step *step = &s->c->step[k];
		if (!is_view_cut(s->c, step) || step->in[0] != piece)
			continue;
		if (!*cut)
			*cut = OM_NEWN(s->mem, int64_t, 2 * (s->last[piece] - from + 1));
		*axis = step->part.axis;
		(*cut)[n++] = step->part.lo;
		(*cut)[n++] = step->part.hi;
	}
	if (n)
		qsort(*cut, n, sizeof **cut, compare);
	return n;
}

static void
allocate_piece(struct sweep *s, uint32_t piece, size_t at)
{
	int64_t *cut;
	int axis;
	const uint32_t n = cuts_of(s, piece, at, &cut, &axis);

	allocate(s, piece, cut, n, axis);
}

/* ---- Steps that need no storage. ---- */

static void
share(struct sweep *s, uint32_t made, uint32_t of)
{
	struct extent *x = &s->extent[made];

	*x = s->extent[of];
	hold(s, made);
}

/* The segments of the rows of a cut; all where the segments do not fit. */
static void
share_rows(struct sweep *s, uint32_t made, uint32_t of, om_part part)
{
	const struct extent *from = &s->extent[of];
	struct extent *x = &s->extent[made];

	extent_new(s, x, from->n);
	x->n = 0;
	for (uint32_t k = 0; k < from->n; k++)
		if (from->hi[k] <= from->lo[k] || (from->lo[k] < part.hi && from->hi[k] > part.lo)) {
			x->lo[x->n] = from->lo[k];
			x->hi[x->n] = from->hi[k];
			x->segment[x->n++] = from->segment[k];
		}
	hold(s, made);
}

/* Does no other piece refer to the storage of a piece that is not read after step `at`? */
static bool
is_free(const struct sweep *s, uint32_t piece, size_t at)
{
	const struct extent *x = &s->extent[piece];

	if (!x->exists || s->last[piece] != at)
		return false;
	for (uint32_t k = 0; k < x->n; k++)
		if (s->segment[x->segment[k]].readers != 1)
			return false;
	return x->n > 0;
}

static uint64_t
bytes_in(const struct sweep *s, uint32_t piece)
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < s->extent[piece].n; k++)
		sum += s->segment[s->extent[piece].segment[k]].bytes;
	return sum;
}

static bool
take_over(struct sweep *s, uint32_t made, uint32_t of, size_t at)
{
	if (!is_free(s, of, at) || bytes_in(s, of) != s->c->piece[made].bytes)
		return false;
	share(s, made, of);
	return true;
}

/* Parts that end here are computed in the whole, if their rows follow one another in it. */
static bool
concatenate(struct sweep *s, const om_tile_step *step, size_t at)
{
	const uint32_t made = step->out[0];
	const uint64_t all = s->c->piece[made].bytes;
	struct extent x = {0};
	uint64_t have = 0;
	uint32_t n = 1;

	if (!om_tile_is_contiguous(s->c->piece[made].of, step->part.axis) || !all)
		return false;
	for (uint32_t k = 0; k < step->nin; k++)
		n += s->extent[step->in[k]].n;
	extent_new(s, &x, n);
	x.n = 0;
	for (uint32_t k = 0; k < step->nin; k++) {
		const uint32_t in = step->in[k];
		if (!is_free(s, in, at))
			continue;
		for (uint32_t i = 0; i < s->extent[in].n; i++)
			x.segment[x.n++] = s->extent[in].segment[i];
		have += bytes_in(s, in);
	}
	if (have < all)
		x.segment[x.n++] = segment_new(s, all - have);
	s->extent[made] = x;
	hold(s, made);
	return true;
}

/* An op, or a part of one: a view, or computed over an input. */
static bool
run_op(struct sweep *s, const om_tile_step *step, uint32_t k, size_t at)
{
	const uint32_t in = s->g->view[step->op->id];
	const bool *over = s->g->over[step->op->id];

	if (step->scratch)
		return false;
	if (k == 0 && in != NONE && step->in[in] != NONE && s->extent[step->in[in]].exists) {
		share(s, step->out[0], step->in[in]);
		return true;
	}
	for (uint32_t i = 0; over && i < step->nin; i++)
		if (step->in[i] != NONE && over[k * step->nin + i] && take_over(s, step->out[k], step->in[i], at))
			return true;
	return false;
}

static bool
run_without(struct sweep *s, const om_tile_step *step, uint32_t k, size_t at)
{
	switch (step->kind) {
	case OM_TILE_OP: case OM_TILE_PART:
		return run_op(s, step, k, at);
	case OM_TILE_CUT:
		if (!is_view_cut(s->c, step))
			return false;
		share_rows(s, step->out[0], step->in[0], step->part);
		return true;
	case OM_TILE_CONCATENATE:
		return concatenate(s, step, at);
	case OM_TILE_COMBINE:
		return take_over(s, step->out[0], step->in[0], at) || take_over(s, step->out[0], step->in[1], at);
	case OM_TILE_FINISH: case OM_TILE_PLACE:
		return take_over(s, step->out[0], step->in[0], at);
	default:
		return false;
	}
}

/* ---- The sweep. ---- */

static uint64_t
run_step(struct sweep *s, size_t at)
{
	const om_tile_step *step = &s->c->step[at];

	for (uint32_t k = 0; k < step->nout; k++)
		if (step->out[k] != NONE && !run_without(s, step, k, at))
			allocate_piece(s, step->out[k], at);
	const uint64_t most = s->now + step->scratch;
	s->peak = most > s->peak ? most : s->peak;
	for (uint32_t k = 0; k < step->nin; k++)
		if (step->in[k] != NONE && s->last[step->in[k]] == at)
			drop(s, step->in[k]);
	for (uint32_t k = 0; k < step->nout; k++)
		if (step->out[k] != NONE && s->last[step->out[k]] == NONE)
			drop(s, step->out[k]);
	return most;
}

/* Storage that is there before: what outlives the region is counted by the caller. */
static void
begin(struct sweep *s)
{
	for (uint32_t k = 0; k < s->c->npiece; k++) {
		const om_tile_piece *p = &s->c->piece[k];
		if (!p->is_outside)
			continue;
		const uint32_t root = s->g->root[p->of->id];
		if (s->of_root[root]) {
			share(s, k, s->of_root[root] - 1);
			continue;
		}
		if (s->g->request->bytes[root] && (!s->r || s->g->used[root] < s->r->end))
			allocate_piece(s, k, 0);
		else
			s->extent[k].exists = true;
		s->of_root[root] = k + 1;
	}
	s->peak = s->now;
}

static void
find_last(struct sweep *s)
{
	s->last = OM_NEWN(s->mem, uint32_t, s->c->npiece);
	memset(s->last, 0xff, s->c->npiece * sizeof *s->last);
	s->is_cut = OM_NEWN(s->mem, bool, s->c->npiece);
	for (size_t k = 0; k < s->c->nstep; k++) {
		const om_tile_step *step = &s->c->step[k];
		for (uint32_t i = 0; i < step->nin; i++)
			if (step->in[i] != NONE)
				s->last[step->in[i]] = (uint32_t)k;
		if (is_view_cut(s->c, step))
			s->is_cut[step->in[0]] = true;
	}
}

uint64_t
om_tile_sweep(const om_tile_graph *g, const om_tile_code *c, const om_tile_region *r, uint64_t *at)
{
	om_arena *tmp = om_arena_new();
	struct sweep s = {.g = g, .c = c, .mem = tmp, .r = r, .extent = OM_NEWN(tmp, struct extent, c->npiece),
		.of_root = OM_NEWN(tmp, uint32_t, g->p->nvalue)};

	find_last(&s);
	for (size_t k = 0; r && k < r->nvalue; k++)
		if (c->result[k] != NONE)
			s.last[c->result[k]] = (uint32_t)c->nstep;
	begin(&s);
	for (size_t k = 0; k < c->nstep; k++) {
		const uint64_t bytes = run_step(&s, k);
		if (at)
			at[k] = bytes;
	}
	const uint64_t peak = s.peak;
	om_arena_free(tmp);
	return peak;
}
