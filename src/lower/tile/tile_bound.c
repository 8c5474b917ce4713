/* SPDX-License-Identifier: Apache-2.0 */
/* A lower bound of what a region takes in so many bands, without its code: the rows that are held at each op.
 *
 * Of a value the rows exist that were computed and that a reader still has to read; a source whose rows do not follow one
 * another exists until its last reader is done, and so does what is read as a whole.  Rows that are joined or placed exist
 * twice for a while, which only the code tells.  The bound is never above om_tile_sweep() of the code, so that a region
 * that it refuses need not be simulated. */
#include <config.h>

#include <string.h>

#include "lower/tile/tile_internal.h"

/* What is known about a value. */
struct state {
	uint64_t row;             /* bytes of a row; 0: it is not counted by rows */
	uint64_t now;             /* bytes that are counted */
	int64_t there;            /* rows that were computed */
	uint32_t left;            /* steps that still read all of it */
	int64_t end;              /* it exists until a step reads rows up to this; 0: that has been */
	bool is_placed;           /* a result, or a sum, that exists as a whole */
};

struct bound {
	om_tile_region *r;
	struct state *state;      /* by value of the region */
	int64_t *progress;        /* by op of the bands: rows that were computed */
	om_tile_join join;
	uint64_t now, peak;
};

static uint64_t
row_bytes(const om_tile_value *v)
{
	return v->axis == OM_WHOLE ? 0 : om_value_bytes(v->v) / (uint64_t)v->v->shape.dim[v->axis];
}

static void
set_bytes(struct bound *b, struct state *s, uint64_t bytes)
{
	b->now += bytes - s->now;
	s->now = bytes;
}

static void
note(struct bound *b, uint64_t more)
{
	b->peak = b->now + more > b->peak ? b->now + more : b->peak;
}

/* ---- Rows that are held. ---- */

/* The first row that the `k`th reader still needs; below 0: none. */
static int64_t
first_needed(const struct bound *b, const om_tile_value *v, size_t k)
{
	om_tile_rule *rule = b->r->band[v->reader[k].band];
	const int64_t done = b->progress[v->reader[k].band];

	return done < rule->length ? om_tile_from(rule, v->reader[k].input, done) : -1;
}

/* The end of the rows that the `k`th reader reads. */
static int64_t
end_of(const om_tile_region *r, const om_tile_value *v, size_t k)
{
	om_tile_rule *rule = r->band[v->reader[k].band];

	return om_tile_to(rule, v->reader[k].input, rule->length);
}

static int64_t
needed_from(const struct bound *b, const om_tile_value *v)
{
	int64_t from = INT64_MAX;

	for (size_t k = 0; k < v->nreader; k++) {
		const int64_t lo = first_needed(b, v, k);
		from = lo >= 0 && lo < from ? lo : from;
	}
	return from;
}

/* Rows of a source that one reader still needs; those of others may not be next to them. */
static int64_t
most_needed(const struct bound *b, const om_tile_value *v)
{
	int64_t most = 0;

	for (size_t k = 0; k < v->nreader; k++) {
		const int64_t lo = first_needed(b, v, k), to = end_of(b->r, v, k);
		most = lo >= 0 && to - lo > most ? to - lo : most;
	}
	return most;
}

/* Count the rows of a value that a reader still needs. */
static void
refresh(struct bound *b, const om_tile_value *v)
{
	struct state *s = &b->state[v - b->r->value];

	if (!s->row || v->is_out)
		return;
	if (!v->is_banded) {
		set_bytes(b, s, s->row * (uint64_t)most_needed(b, v));
		return;
	}
	const int64_t from = needed_from(b, v);
	set_bytes(b, s, from < s->there ? s->row * (uint64_t)(s->there - from) : 0);
}

static bool
is_view(const struct bound *b, const om_value *v)
{
	return v->def && v == v->def->out[0] && b->r->g->view[v->def->id] != OM_TILE_NONE;
}

/* May the output be computed over an input, or is it a view?  Then it may take nothing. */
static bool
is_free(const struct bound *b, const om_op *op, uint32_t out)
{
	const bool *over = b->r->g->over[op->id];

	for (uint32_t i = 0; over && i < op->nin; i++)
		if (over[out * op->nin + i])
			return true;
	return is_view(b, op->out[out]);
}

/* ---- Before the bands. ---- */

/* Is the storage counted here?  What outlives the region is counted by the caller; a view of what is elsewhere takes nothing. */
static bool
is_counted(const struct bound *b, const om_value *v)
{
	const om_tile_graph *g = b->r->g;
	const uint32_t root = g->root[v->id];

	return g->request->bytes[root] && g->used[root] < b->r->end && !(root == v->id && is_view(b, v));
}

static bool
is_first_of_root(const om_tile_region *r, size_t k)
{
	for (size_t i = 0; i < k; i++)
		if (!r->value[i].is_banded && r->g->root[r->value[i].v->id] == r->g->root[r->value[k].v->id])
			return false;
	return true;
}

/* Steps that read all of the value. */
static uint32_t
count_steps(const om_tile_region *r, uint32_t bands, const int64_t *done, const om_value *v)
{
	uint32_t n = 0;

	for (uint32_t b = 0; b < r->nband; b++)
		for (uint32_t k = 0; k < r->band[b]->op->nin; k++)
			for (uint32_t p = 0; r->band[b]->op->in[k] == v && r->band[b]->in[k].axis == OM_WHOLE && p < bands; p++)
				n += done[(p + 1) * r->nband + b] > done[p * r->nband + b];
	return n;
}

/* The end of the last rows that are read.  The first step that gets there reads the source itself; later ones may find the
 * rows in what was cut for that one. */
static int64_t
last_rows(const om_tile_region *r, const om_tile_value *v)
{
	int64_t end = 0;

	for (size_t k = 0; k < v->nreader; k++) {
		const int64_t to = end_of(r, v, k);
		end = to > end ? to : end;
	}
	return end;
}

/* Do all readers read all rows between the first and the last that they read?  The others are gone at once. */
static bool
is_gapless(const om_tile_region *r, const om_tile_value *v)
{
	for (size_t k = 0; k < v->nreader; k++) {
		om_tile_rule *rule = r->band[v->reader[k].band];
		for (int64_t i = 1; i < rule->length; i++)
			if (om_tile_from(rule, v->reader[k].input, i) > om_tile_to(rule, v->reader[k].input, i))
				return false;
	}
	return true;
}

/* A value that is there before the bands. */
static void
begin_value(struct bound *b, size_t k, uint32_t bands, const int64_t *done)
{
	const om_tile_value *v = &b->r->value[k];
	struct state *s = &b->state[k];

	if (!is_counted(b, v->v) || !is_first_of_root(b->r, k))
		return;
	if (v->is_source && om_tile_is_contiguous(v->v, v->axis)) {
		s->row = v->is_out || is_view(b, v->v) || !is_gapless(b->r, v) ? 0 : row_bytes(v);
		refresh(b, v);
		return;
	}
	s->left = count_steps(b->r, bands, done, v->v);
	s->end = last_rows(b->r, v);
	set_bytes(b, s, s->left || s->end ? b->r->g->request->bytes[v->v->id] : 0);
}

static void
begin(struct bound *b, uint32_t bands, const int64_t *done)
{
	for (size_t k = 0; k < b->r->nvalue; k++) {
		const om_tile_value *v = &b->r->value[k];
		if (!v->is_banded)
			begin_value(b, k, bands, done);
		else if (!is_view(b, v->v))
			b->state[k].row = row_bytes(v);
	}
}

/* ---- Steps. ---- */

/* A step takes its outputs beside what is held, and after it some rows are not needed any more. */
static uint64_t
outputs(const struct bound *b, const om_tile_rule *rule, int64_t n)
{
	uint64_t sum = 0;

	if (rule->is_sum)
		return om_value_bytes(rule->op->out[0]);
	for (uint32_t k = 0; k < rule->op->nout; k++) {
		const om_tile_value *v = rule->op->out[k] ? om_tile_value_of(b->r, rule->op->out[k]) : NULL;
		if (v && !is_free(b, rule->op, k))
			sum += row_bytes(v) * (uint64_t)n;
	}
	return sum;
}

/* A result grows, or is there from its first part on. */
static void
add_result(struct bound *b, const om_tile_value *v, struct state *s, int64_t n)
{
	const bool follows = om_tile_is_contiguous(v->v, v->axis);

	if (b->join == OM_TILE_SCATTER && !follows && n < v->v->shape.dim[v->axis]) {
		s->is_placed = true;
		set_bytes(b, s, om_value_bytes(v->v));
	} else if (!s->is_placed) {
		s->is_placed = n == v->v->shape.dim[v->axis];
		set_bytes(b, s, s->row * (uint64_t)s->there);
	}
}

static void
add_outputs(struct bound *b, const om_tile_rule *rule, int64_t from, int64_t to)
{
	for (uint32_t k = 0; k < rule->op->nout; k++) {
		om_tile_value *v = rule->op->out[k] ? om_tile_value_of(b->r, rule->op->out[k]) : NULL;
		struct state *s = v ? &b->state[v - b->r->value] : NULL;
		if (!v)
			continue;
		s->there = to;
		if (rule->is_sum && !s->is_placed) {
			s->is_placed = true;
			set_bytes(b, s, om_value_bytes(v->v));
		} else if (!rule->is_sum && v->is_out && !v->is_before) {
			add_result(b, v, s, to - from);
		} else if (!rule->is_sum) {
			refresh(b, v);
		}
	}
}

/* Nothing reads a value that was there before any more. */
static void
release_source(struct bound *b, const om_tile_value *v, struct state *s)
{
	if (!v->is_banded && !s->row && !s->left && !s->end)
		set_bytes(b, s, 0);
}

/* The last rows of sources are cut off, and the source is gone, before the op runs. */
static void
cut_sources(struct bound *b, om_tile_rule *rule, int64_t to)
{
	for (uint32_t k = 0; k < rule->op->nin; k++) {
		const om_tile_value *v = rule->op->in[k] ? om_tile_value_of(b->r, rule->op->in[k]) : NULL;
		struct state *s = v ? &b->state[v - b->r->value] : NULL;
		if (!v || !s->end || rule->in[k].axis == OM_WHOLE || om_tile_to(rule, k, to) < s->end)
			continue;
		s->end = 0;
		release_source(b, v, s);
	}
}

static void
release_inputs(struct bound *b, const om_tile_rule *rule)
{
	for (uint32_t k = 0; k < rule->op->nin; k++) {
		const om_tile_value *v = rule->op->in[k] ? om_tile_value_of(b->r, rule->op->in[k]) : NULL;
		struct state *s = v ? &b->state[v - b->r->value] : NULL;
		if (!v)
			continue;
		if (rule->in[k].axis != OM_WHOLE) {
			refresh(b, om_tile_value_held(b->r, v->v));
		} else if (s->left) {
			s->left--;
			release_source(b, v, s);
		}
	}
}

static void
run_step(struct bound *b, uint32_t at, int64_t from, int64_t to)
{
	om_tile_rule *rule = b->r->band[at];
	const bool is_expansion = b->r->is_expansion[at];

	cut_sources(b, rule, to);
	if (!is_expansion)
		note(b, outputs(b, rule, to - from));
	b->progress[at] = to;
	if (!is_expansion)
		add_outputs(b, rule, from, to);
	release_inputs(b, rule);
	note(b, 0);
}

/* ---- All. ---- */

/* Results that become whole at the end are there as parts, too; the first of them beside the parts of all. */
static void
finish(struct bound *b)
{
	uint64_t most = 0;

	for (size_t k = 0; k < b->r->nvalue; k++) {
		const om_tile_value *v = &b->r->value[k];
		if (!v->is_out || v->is_before || v->axis == OM_WHOLE || b->state[k].is_placed || om_tile_is_contiguous(v->v, v->axis))
			continue;
		if (!most)
			most = b->r->g->request->bytes[v->v->id];
	}
	note(b, most);
}

uint64_t
om_tile_bound(om_tile_region *r, uint32_t bands, om_tile_join join, om_arena *mem)
{
	struct bound b = {.r = r, .join = join, .state = OM_NEWN(mem, struct state, r->nvalue),
		.progress = OM_NEWN(mem, int64_t, r->nband)};
	int64_t *done;

	if (!om_tile_rows(r, bands, mem, &done))
		return UINT64_MAX;
	begin(&b, bands, done);
	note(&b, 0);
	for (uint32_t p = 0; p < bands; p++)
		for (uint32_t k = 0; k < r->nband; k++)
			if (done[(p + 1) * r->nband + k] > done[p * r->nband + k])
				run_step(&b, k, done[p * r->nband + k], done[(p + 1) * r->nband + k]);
	finish(&b);
	return b.peak;
}
