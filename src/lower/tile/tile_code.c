/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of the bands.
 *
 * The ops are listed band by band, for the rows that were planned (tile_rows.c).  A value is held as pieces, which follow
 * one another; rows in several pieces are joined for a reader, and what no later row of a reader needs is cut off as
 * soon as the last reader of the band is done. */
#include <config.h>

#include "lower/tile/tile_internal.h"

#define NONE OM_TILE_NONE

/* The pieces of a value that later readers may need. */
struct held {
	uint32_t *piece;          /* ascending, without gaps */
	size_t n, cap;
	uint32_t *joined;         /* and cut, in this band */
	size_t njoined, capjoined;
	uint32_t *part;           /* of a result */
	size_t npart, cappart;
	uint32_t sum;             /* of contributions; NONE: none yet */
};

struct emitter {
	om_tile_region *r;
	om_tile_code *c;
	om_arena *mem;
	uint32_t bands;
	om_tile_join join;
	int64_t *done;            /* [bands + 1][nband] rows that an op has computed before a band */
	struct held *held;        /* by value of the region */
	uint32_t *whole;          /* by value of the region: the piece that is all of it; NONE */
};

/* ---- Pieces and steps. ---- */

bool
om_tile_is_contiguous(const om_value *v, int axis)
{
	for (int d = 0; d < axis; d++)
		if (v->shape.dim[d] != 1)
			return false;
	return true;
}

static uint64_t
bytes_of(const om_tile_graph *g, const om_value *v, om_part part)
{
	uint64_t bytes = 0;

	if (part.axis == OM_WHOLE)
		return g->request->bytes[v->id];
	if (!om_tensor_bytes(v->type.elem, &v->shape, &bytes))
		return 0;
	bytes = bytes / (uint64_t)v->shape.dim[part.axis] * (uint64_t)(part.hi - part.lo);
	return (bytes + 63) / 64 * 64;
}

static uint32_t
piece_new(const om_tile_graph *g, om_tile_code *c, const om_value *v, om_part part, bool is_outside)
{
	OM_PUSH(c->mem, c->piece, c->npiece, c->cappiece, ((om_tile_piece){v, part, bytes_of(g, v, part), is_outside}));
	return (uint32_t)c->npiece - 1;
}

/* A value of the size of the whole that is not the result itself. */
static uint32_t
intermediate_new(const om_tile_graph *g, om_tile_code *c, const om_value *v)
{
	const uint32_t made = piece_new(g, c, v, (om_part){OM_WHOLE, 0, 0}, false);

	c->piece[made].bytes = (om_value_bytes(v) + 63) / 64 * 64;
	return made;
}

static om_tile_step *
step_new(om_tile_code *c, om_tile_kind kind, const om_op *op, uint32_t nin, uint32_t nout)
{
	om_tile_step step = {.kind = kind, .op = op, .nin = nin, .nout = nout, .band = c->band, .in = OM_NEWN(c->mem, uint32_t, nin),
		.out = OM_NEWN(c->mem, uint32_t, nout)};

	for (uint32_t k = 0; k < nin; k++)
		step.in[k] = NONE;
	for (uint32_t k = 0; k < nout; k++)
		step.out[k] = NONE;
	OM_PUSH(c->mem, c->step, c->nstep, c->capstep, step);
	return &c->step[c->nstep - 1];
}

static const om_part whole = {OM_WHOLE, 0, 0};

/* ---- Rows of a value. ---- */

static bool
is_same(om_part a, om_part b)
{
	return a.axis == b.axis && a.lo == b.lo && a.hi == b.hi;
}

static om_part
rows_of(const struct emitter *e, uint32_t piece)
{
	const om_tile_piece *p = &e->c->piece[piece];
	const om_tile_value *v = om_tile_value_of(e->r, p->of);

	return p->part.axis == OM_WHOLE ? (om_part){v->axis, 0, v->v->shape.dim[v->axis]} : p->part;
}

static uint32_t
cut(struct emitter *e, uint32_t piece, om_part part)
{
	const om_value *v = e->c->piece[piece].of;
	struct held *h = &e->held[e->r->of[v->id] - 1];

	if (is_same(rows_of(e, piece), part))
		return piece;
	const uint32_t made = piece_new(e->r->g, e->c, v, part, false);
	om_tile_step *step = step_new(e->c, OM_TILE_CUT, NULL, 1, 1);
	step->in[0] = piece;
	step->out[0] = made;
	step->part = part;
	OM_PUSH(e->mem, h->joined, h->njoined, h->capjoined, made);
	return made;
}

/* The smallest piece in a list that has all rows of the part; NONE. */
static uint32_t
covering(const struct emitter *e, const uint32_t *list, size_t n, om_part part, uint32_t best)
{
	for (size_t k = 0; k < n; k++) {
		const om_part rows = rows_of(e, list[k]);
		if (rows.lo <= part.lo && rows.hi >= part.hi
		    && (best == NONE || rows.hi - rows.lo < rows_of(e, best).hi - rows_of(e, best).lo))
			best = list[k];
	}
	return best;
}

static int64_t
larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t
smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static uint32_t
join_rows(struct emitter *e, const om_tile_value *v, struct held *h, om_part part)
{
	uint32_t *in = OM_NEWN(e->mem, uint32_t, h->n), n = 0;
	int64_t have = part.lo;

	for (size_t k = 0; k < h->n; k++) {
		const om_part rows = rows_of(e, h->piece[k]);
		if (rows.hi <= part.lo || rows.lo >= part.hi)
			continue;
		if (rows.lo > have)
			return NONE;
		in[n++] = cut(e, h->piece[k], (om_part){part.axis, larger(rows.lo, part.lo), smaller(rows.hi, part.hi)});
		have = rows.hi;
	}
	if (have < part.hi)
		return NONE;
	const uint32_t made = piece_new(e->r->g, e->c, v->v, part, false);
	om_tile_step *step = step_new(e->c, OM_TILE_CONCATENATE, NULL, n, 1);
	memcpy(step->in, in, n * sizeof *in);
	step->out[0] = made;
	step->part = part;
	OM_PUSH(e->mem, h->joined, h->njoined, h->capjoined, made);
	return made;
}

/* The piece that is the part of the value; NONE: rows are missing. */
static uint32_t
rows(struct emitter *e, const om_value *of, om_part part)
{
	om_tile_value *v = om_tile_value_of(e->r, of);
	struct held *h = &e->held[v - e->r->value];
	uint32_t at = covering(e, h->piece, h->n, part, NONE);

	at = covering(e, h->joined, h->njoined, part, at);
	return at == NONE ? join_rows(e, v, h, part) : cut(e, at, part);
}

/* The first row of a value that is needed after `band`; INT64_MAX: none. */
static int64_t
needed_from(const struct emitter *e, const om_tile_value *v, uint32_t band)
{
	int64_t from = INT64_MAX;

	for (size_t k = 0; k < v->nreader; k++) {
		om_tile_rule *rule = e->r->band[v->reader[k].band];
		const int64_t done = e->done[(band + 1) * e->r->nband + v->reader[k].band];
		const int64_t lo = done < rule->length ? om_tile_from(rule, v->reader[k].input, done) : -1;
		from = lo >= 0 && lo < from ? lo : from;
	}
	return from;
}

/* Cut off what is not needed after `band`. */
static void
trim(struct emitter *e, om_tile_value *v, uint32_t band)
{
	struct held *h = &e->held[v - e->r->value];
	const int64_t from = needed_from(e, v, band);
	size_t n = 0;

	for (size_t k = 0; k < h->n; k++) {
		om_part has = rows_of(e, h->piece[k]);
		uint32_t piece = h->piece[k];
		if (has.hi <= from)
			continue;
		if (has.lo < from) {
			has.lo = from;
			piece = cut(e, covering(e, h->joined, h->njoined, has, piece), has);
		}
		h->piece[n++] = piece;
	}
	h->n = n;
	h->njoined = 0;
}

static bool
is_active(const struct emitter *e, uint32_t b, uint32_t band)
{
	return e->done[(band + 1) * e->r->nband + b] > e->done[band * e->r->nband + b];
}

/* Trim the inputs of op `b` that no later op of the band reads. */
static void
trim_inputs(struct emitter *e, uint32_t b, uint32_t band)
{
	const om_tile_rule *rule = e->r->band[b];

	for (uint32_t k = 0; k < rule->op->nin; k++) {
		om_tile_value *v = rule->op->in[k] ? om_tile_value_held(e->r, rule->op->in[k]) : NULL;
		bool is_last = v && v->is_banded && rule->in[k].axis != OM_WHOLE;
		for (size_t i = 0; is_last && i < v->nreader; i++)
			is_last = v->reader[i].band <= b || !is_active(e, v->reader[i].band, band);
		if (is_last)
			trim(e, v, band);
	}
}

/* ---- Sources. ---- */

static uint32_t
whole_piece(struct emitter *e, om_tile_value *v)
{
	uint32_t *at = &e->whole[v - e->r->value];

	if (*at == NONE)
		*at = piece_new(e->r->g, e->c, v->v, whole, true);
	return *at;
}

/* Parts of a source whose parts are views are cut before the first band: the source then dies piece by piece. */
static bool
cut_source(struct emitter *e, om_tile_value *v)
{
	for (uint32_t p = 0; p < e->bands; p++)
		for (size_t k = 0; k < v->nreader; k++) {
			om_tile_rule *rule = e->r->band[v->reader[k].band];
			const int64_t lo = e->done[p * e->r->nband + v->reader[k].band];
			const int64_t hi = e->done[(p + 1) * e->r->nband + v->reader[k].band];
			om_part part = {v->axis, 0, 0};
			if (hi <= lo)
				continue;
			part.lo = om_tile_from(rule, v->reader[k].input, lo);
			part.hi = om_tile_to(rule, v->reader[k].input, hi);
			if (part.lo < 0 || part.hi < 0)
				return false;
			if (part.hi > part.lo)
				rows(e, v->v, part);
		}
	return true;
}

static bool
hold_sources(struct emitter *e)
{
	for (size_t k = 0; k < e->r->nvalue; k++) {
		om_tile_value *v = &e->r->value[k];
		struct held *h = &e->held[k];
		if (!v->is_source)
			continue;
		OM_PUSH(e->mem, h->piece, h->n, h->cap, whole_piece(e, v));
		if (om_tile_is_contiguous(v->v, v->axis) && !cut_source(e, v))
			return false;
	}
	return true;
}

/* ---- Results. ---- */

static void
place(struct emitter *e, om_tile_value *v, uint32_t piece)
{
	struct held *h = &e->held[v - e->r->value];
	const bool is_first = h->sum == NONE;
	const uint32_t made = intermediate_new(e->r->g, e->c, v->v);
	om_tile_step *step = step_new(e->c, is_first ? OM_TILE_PLACE_FIRST : OM_TILE_PLACE, NULL, is_first ? 1 : 2, 1);

	step->in[0] = is_first ? piece : h->sum;
	if (!is_first)
		step->in[1] = piece;
	step->out[0] = h->sum = made;
	step->part = rows_of(e, piece);
}

/* A part of a result is computed. */
static void
add_part(struct emitter *e, om_tile_value *v, uint32_t piece)
{
	struct held *h = &e->held[v - e->r->value];
	const om_part has = rows_of(e, piece);

	if (has.lo == 0 && has.hi == v->v->shape.dim[v->axis])
		h->sum = piece;
	else if (e->join == OM_TILE_SCATTER && !om_tile_is_contiguous(v->v, v->axis))
		place(e, v, piece);
	else
		OM_PUSH(e->mem, h->part, h->npart, h->cappart, piece);
}

/* All parts of the result are there. */
static void
finish(struct emitter *e, size_t k)
{
	om_tile_value *v = &e->r->value[k];
	struct held *h = &e->held[k];

	if (h->sum != NONE) {
		e->c->result[k] = h->sum;
		return;
	}
	e->c->result[k] = piece_new(e->r->g, e->c, v->v, whole, false);
	om_tile_step *step = step_new(e->c, OM_TILE_CONCATENATE, NULL, (uint32_t)h->npart, 1);
	memcpy(step->in, h->part, h->npart * sizeof *h->part);
	step->out[0] = e->c->result[k];
	step->part = (om_part){v->axis, 0, v->v->shape.dim[v->axis]};
}

/* ---- Ops. ---- */

static void
emit_whole(struct emitter *e, const om_op *op)
{
	om_tile_step *step = step_new(e->c, OM_TILE_OP, op, op->nin, op->nout);

	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && !om_tile_is_const(op->in[k]))
			step->in[k] = whole_piece(e, om_tile_value_of(e->r, op->in[k]));
	for (uint32_t k = 0; k < op->nout; k++) {
		om_tile_value *v = op->out[k] ? om_tile_value_of(e->r, op->out[k]) : NULL;
		if (!v)
			continue;
		step->out[k] = piece_new(e->r->g, e->c, op->out[k], whole, false);
		e->whole[v - e->r->value] = step->out[k];
		if (v->is_out)
			e->c->result[v - e->r->value] = step->out[k];
	}
}

static bool find_inputs(struct emitter *e, const om_tile_rule *rule, const om_slice *s, uint32_t *in);

/* The rows of a value, computed for one reader; NONE: rows are missing. */
static uint32_t
expand(struct emitter *e, om_tile_rule *rule, om_part part)
{
	const om_op *op = rule->op;
	uint32_t *in = OM_NEWN(e->mem, uint32_t, op->nin);
	const om_slice *s = om_tile_slice(rule, part.lo, part.hi);

	if (!s || !find_inputs(e, rule, s, in))
		return NONE;
	const uint32_t made = piece_new(e->r->g, e->c, op->out[0], part, false);
	om_tile_step *step = step_new(e->c, OM_TILE_PART, op, op->nin, 1);
	memcpy(step->in, in, op->nin * sizeof *in);
	step->rule = rule;
	step->part = (om_part){rule->axis, part.lo, part.hi};
	step->out[0] = made;
	return made;
}

static uint32_t
piece_for(struct emitter *e, const om_value *v, om_part part)
{
	om_tile_value *at = om_tile_value_of(e->r, v);

	if (part.axis == OM_WHOLE)
		return whole_piece(e, at);
	return at->expands ? expand(e, at->expands, part) : rows(e, v, part);
}

/* The pieces of the inputs; false if one is not there. */
static bool
find_inputs(struct emitter *e, const om_tile_rule *rule, const om_slice *s, uint32_t *in)
{
	for (uint32_t k = 0; k < rule->op->nin; k++) {
		const om_value *v = rule->op->in[k];
		in[k] = NONE;
		if (!v || om_tile_is_const(v) || (s->in[k].axis != OM_WHOLE && s->in[k].lo == s->in[k].hi))
			continue;
		if (s->in[k].axis != rule->in[k].axis)
			return false;
		in[k] = piece_for(e, v, s->in[k]);
		if (in[k] == NONE)
			return false;
	}
	return true;
}

static void
add_contribution(struct emitter *e, const om_tile_rule *rule, uint32_t piece, bool is_last, bool has_finish)
{
	om_tile_value *v = om_tile_value_of(e->r, rule->op->out[0]);
	struct held *h = &e->held[v - e->r->value];

	if (h->sum != NONE) {
		const uint32_t made = intermediate_new(e->r->g, e->c, v->v);
		om_tile_step *step = step_new(e->c, OM_TILE_COMBINE, rule->op, 2, 1);
		step->rule = (om_tile_rule *)rule;
		step->in[0] = h->sum;
		step->in[1] = piece;
		step->out[0] = piece = made;
	}
	h->sum = piece;
	if (!is_last || !has_finish)
		return;
	h->sum = piece_new(e->r->g, e->c, v->v, whole, false);
	om_tile_step *step = step_new(e->c, OM_TILE_FINISH, rule->op, 1, 1);
	step->rule = (om_tile_rule *)rule;
	step->in[0] = piece;
	step->out[0] = h->sum;
}

/* The outputs of a step for the rows [lo, hi). */
static void
emit_outputs(struct emitter *e, om_tile_rule *rule, const om_slice *s, uint32_t *out)
{
	for (uint32_t k = 0; k < rule->op->nout; k++) {
		om_tile_value *v = rule->op->out[k] ? om_tile_value_of(e->r, rule->op->out[k]) : NULL;
		if (!v)
			continue;
		struct held *h = &e->held[v - e->r->value];
		out[k] = piece_new(e->r->g, e->c, v->v, s->out[k], false);
		if (v->nreader)
			OM_PUSH(e->mem, h->piece, h->n, h->cap, out[k]);
	}
}

static uint64_t
surplus(const struct emitter *e, const om_tile_rule *rule, const om_slice *s)
{
	om_part part = s->out[rule->index];

	if (s->before + s->after == 0)
		return 0;
	part.hi += s->before + s->after;
	return bytes_of(e->r->g, rule->op->out[rule->index], part);
}

static bool
emit_part(struct emitter *e, om_tile_rule *rule, int64_t lo, int64_t hi)
{
	const om_op *op = rule->op;
	uint32_t *in = OM_NEWN(e->mem, uint32_t, op->nin);
	const om_slice *s = om_tile_slice(rule, lo, hi);

	if (!s || !find_inputs(e, rule, s, in))
		return false;
	om_tile_step *step = step_new(e->c, rule->is_sum ? OM_TILE_PARTIAL : OM_TILE_PART, op, op->nin, op->nout);
	uint32_t *out = step->out;
	memcpy(step->in, in, op->nin * sizeof *in);
	step->rule = rule;
	step->part = (om_part){rule->axis, lo, hi};
	if (rule->is_sum) {
		out[0] = intermediate_new(e->r->g, e->c, op->out[0]);
		add_contribution(e, rule, out[0], hi == rule->length, s->scale != 1 || s->finish);
		return true;
	}
	step->scratch = surplus(e, rule, s);
	emit_outputs(e, rule, s, out);
	for (uint32_t k = 0; k < op->nout; k++) {
		om_tile_value *v = op->out[k] ? om_tile_value_of(e->r, op->out[k]) : NULL;
		if (v && v->is_out && !v->is_before)
			add_part(e, v, out[k]);
	}
	return true;
}

static bool
emit_band(struct emitter *e, uint32_t band)
{
	const size_t n = e->r->nband;

	for (uint32_t b = 0; b < n; b++) {
		const int64_t lo = e->done[band * n + b], hi = e->done[(band + 1) * n + b];
		if (hi <= lo || e->r->is_expansion[b])
			continue;
		if (!emit_part(e, e->r->band[b], lo, hi))
			return false;
		trim_inputs(e, b, band);
	}
	return true;
}

static void
begin(struct emitter *e, size_t n)
{
	e->held = OM_NEWN(e->mem, struct held, n);
	e->whole = OM_NEWN(e->mem, uint32_t, n);
	e->c->result = OM_NEWN(e->mem, uint32_t, n);
	for (size_t k = 0; k < n; k++) {
		e->held[k].sum = e->whole[k] = NONE;
		e->c->result[k] = NONE;
	}
}

bool
om_tile_code_new(om_tile_region *r, uint32_t bands, om_tile_join join, om_arena *mem, om_tile_code *c)
{
	struct emitter e = {.r = r, .c = c, .mem = mem, .bands = bands, .join = join};

	*c = (om_tile_code){.mem = mem};
	begin(&e, r->nvalue);
	for (size_t k = 0; k < r->nbefore; k++)
		emit_whole(&e, r->before[k]);
	if (!om_tile_rows(r, bands, mem, &e.done) || !hold_sources(&e))
		return false;
	for (uint32_t p = 0; p < bands; p++) {
		c->band = p + 1;
		if (!emit_band(&e, p))
			return false;
	}
	c->band = 0;
	for (size_t k = 0; k < r->nvalue; k++)
		if (r->value[k].is_out && !r->value[k].is_before)
			finish(&e, k);
	return true;
}

void
om_tile_code_whole(const om_tile_graph *g, om_arena *mem, om_tile_code *c)
{
	uint32_t *of = OM_NEWN(mem, uint32_t, g->p->nvalue);

	*c = (om_tile_code){.mem = mem};
	for (uint32_t i = 0; i < g->nop; i++) {
		const om_op *op = g->op[i];
		om_tile_step *step = step_new(c, OM_TILE_OP, op, op->nin, op->nout);
		for (uint32_t k = 0; k < op->nin; k++) {
			const om_value *v = op->in[k];
			if (!v || v->is_const)
				continue;
			if (!of[v->id])
				of[v->id] = piece_new(g, c, v, whole, true) + 1;
			step->in[k] = of[v->id] - 1;
		}
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k] && !op->out[k]->is_const) {
				step->out[k] = piece_new(g, c, op->out[k], whole, false);
				of[op->out[k]->id] = step->out[k] + 1;
			}
	}
}
