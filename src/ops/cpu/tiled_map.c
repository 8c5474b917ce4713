/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise stages over tiles; see tiled_map.h.
 *
 * The dims of the output are merged where every input crosses them with one stride.  A tile is a range of one
 * dim, `split`, with all elements of the dims after it.  Within a tile an input is contiguous, or one element, or
 * it is expanded to a buffer: once if all tiles read the same elements. */
#include <config.h>

#include <assert.h>
#include <string.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "kernels/cpu/kernels.h"
#include "ops/cpu/ranges.h"
#include "ops/cpu/tiled_map.h"

enum { SHORT = 256, LONG = 16384 };   /* lines to be joined; elements of a tile of one stage */

enum form { CONTIGUOUS, ONE, EXPANDED };

struct input {
	int64_t step[OM_MAX_RANK];
	enum form form;           /* within a tile */
	bool is_fixed;            /* all tiles read the same elements */
	uint32_t buffer;          /* where it is expanded */
};

struct om_tiled_map {
	uint32_t nin, nstage, nbuffer;
	struct input *in;
	om_stage *stage;
	int rank, split;
	int64_t dim[OM_MAX_RANK];
	int64_t rows, inner;      /* a tile has `rows` indices of dim `split`, and `inner` elements for each */
	int64_t ranges, tiles;    /* ranges of dim `split`; tiles of the output */
};

struct operand {
	const float *at;
	int step;
};

/* ---- Preparing. ---- */

om_tiled_map *
om_tiled_map_new(om_op_context *c, uint32_t nin, uint32_t nstage)
{
	om_tiled_map *m = OM_NEW(c->mem, om_tiled_map);

	m->nin = nin;
	m->nstage = nstage;
	m->in = OM_NEWN(c->mem, struct input, nin);
	m->stage = OM_NEWN(c->mem, om_stage, nstage);
	return m;
}

om_stage *
om_tiled_map_stages(om_tiled_map *m)
{
	return m->stage;
}

void
om_tiled_map_input(const om_op_context *c, om_tiled_map *m, uint32_t k, const om_shape *s)
{
	const int rank = c->out[0].shape.rank;
	int64_t step = 1;

	for (int d = rank - 1; d >= 0; d--) {
		const int own = d - (rank - s->rank);
		const int64_t n = own < 0 ? 1 : s->dim[own];
		m->in[k].step[d] = n == 1 ? 0 : step;
		step *= n;
	}
}

static bool
can_merge(const om_tiled_map *m, int outer, int inner, int64_t n)
{
	for (uint32_t k = 0; k < m->nin; k++)
		if (m->in[k].step[outer] != m->in[k].step[inner] * n)
			return false;
	return true;
}

static void
move_steps(om_tiled_map *m, int to, int from)
{
	for (uint32_t k = 0; k < m->nin; k++)
		m->in[k].step[to] = m->in[k].step[from];
}

/* Drops dims of one element. */
static void
merge_dims(om_tiled_map *m, const om_shape *out)
{
	int r = 0;

	for (int d = 0; d < out->rank; d++) {
		const int64_t n = out->dim[d];
		if (n == 1)
			continue;
		if (r > 0 && can_merge(m, r - 1, d, n)) {
			m->dim[r - 1] *= n;
			move_steps(m, r - 1, d);
			continue;
		}
		m->dim[r] = n;
		move_steps(m, r++, d);
	}
	m->rank = r;
	if (r == 0) {
		m->dim[0] = m->rank = 1;
		for (uint32_t k = 0; k < m->nin; k++)
			m->in[k].step[0] = 0;
	}
}

/* Long lines are cut; short ones are joined. */
static void
choose_tiles(om_tiled_map *m)
{
	m->split = m->rank - 1;
	m->inner = 1;
	while (m->split > 0 && m->inner * m->dim[m->split] < SHORT)
		m->inner *= m->dim[m->split--];
	const bool is_line = m->split == m->rank - 1 && m->nstage == 1;
	const int64_t most = is_line ? LONG : OM_TILE / m->inner;
	m->rows = m->dim[m->split] < most ? m->dim[m->split] : most;
	m->ranges = (m->dim[m->split] + m->rows - 1) / m->rows;
	m->tiles = m->ranges;
	for (int d = 0; d < m->split; d++)
		m->tiles *= m->dim[d];
}

/* Contiguous, but for a step of the whole tile. */
static enum form
form_of(const om_tiled_map *m, const struct input *in)
{
	bool is_dense = true, is_one = true;
	int64_t step = 1;

	for (int d = m->rank - 1; d >= m->split; d--) {
		is_dense &= in->step[d] == step;
		is_one &= in->step[d] == 0;
		step *= m->dim[d];
	}
	return is_one ? ONE : is_dense ? CONTIGUOUS : EXPANDED;
}

static void
set_forms(om_tiled_map *m)
{
	for (uint32_t k = 0; k < m->nin; k++) {
		struct input *in = &m->in[k];
		in->form = form_of(m, in);
		in->is_fixed = in->step[m->split] == 0 || m->ranges == 1;
		for (int d = 0; d < m->split; d++)
			in->is_fixed &= in->step[d] == 0;
		if (in->form == EXPANDED)
			in->buffer = m->nbuffer++;
	}
}

static bool
is_used_after(const om_tiled_map *m, uint32_t operand, uint32_t stage)
{
	for (uint32_t j = stage + 1; j < m->nstage; j++)
		if (m->stage[j].x == operand || m->stage[j].y == operand)
			return true;
	return false;
}

/* A stage may be computed over its own operands: the buffer of a result is free for the stage after which it is
 * not used. */
static void
assign_buffers(om_op_context *c, om_tiled_map *m)
{
	uint32_t *holds = OM_NEWN(c->mem, uint32_t, m->nstage);  /* the stage whose result a buffer has, plus 1 */
	uint32_t n = 0;

	for (uint32_t j = 0; j + 1 < m->nstage; j++) {
		uint32_t b = 0;
		while (b < n && holds[b] && is_used_after(m, m->nin + holds[b] - 1, j))
			b++;
		holds[b] = j + 1;
		m->stage[j].to = m->nbuffer + b;
		n = b == n ? n + 1 : n;
	}
	m->nbuffer += n;
}

void
om_tiled_map_finish(om_op_context *c, om_tiled_map *m)
{
	const om_shape *out = &c->out[0].shape;

	if (om_shape_count(out) == 0)
		return;
	merge_dims(m, out);
	choose_tiles(m);
	set_forms(m);
	assign_buffers(c, m);
}

/* ---- Running. ---- */

struct run {
	const om_op_context *c;
	const om_tiled_map *m;
	om_map *const (*map)[OM_NMAP_STEPS];
};

/* What a worker computes in. */
struct room {
	float *buffer;            /* of OM_TILE elements each */
	struct operand *operand;  /* inputs, then results of stages */
};

/* Where tile `t` begins in an input. */
static int64_t
start_of(const om_tiled_map *m, const struct input *in, int64_t t)
{
	int64_t at = t % m->ranges * m->rows * in->step[m->split], rest = t / m->ranges;

	for (int d = m->split - 1; d >= 0; d--) {
		at += rest % m->dim[d] * in->step[d];
		rest /= m->dim[d];
	}
	return at;
}

static void
fill(float *to, int64_t n, float value)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = value;
}

/* The elements of an input for `rows` indices of dim `d` and all of those after it. */
static float *
expand(const om_tiled_map *m, const struct input *in, int d, int64_t rows, float *to, const float *from)
{
	if (d < m->rank - 1) {
		for (int64_t i = 0; i < rows; i++)
			to = expand(m, in, d + 1, m->dim[d + 1], to, from + i * in->step[d]);
		return to;
	}
	if (in->step[d])
		memcpy(to, from, (size_t)rows * sizeof *to);
	else
		fill(to, rows, *from);
	return to + rows;
}

static struct operand
input_of_tile(const struct run *r, uint32_t k, int64_t t, int64_t rows, bool is_first, float *buffer)
{
	const struct input *in = &r->m->in[k];
	const float *from = (const float *)r->c->in[k].data + start_of(r->m, in, t);

	if (in->form != EXPANDED)
		return (struct operand){from, in->form == CONTIGUOUS};
	float *to = buffer + (size_t)in->buffer * OM_TILE;
	if (is_first || !in->is_fixed)
		expand(r->m, in, r->m->split, in->is_fixed ? r->m->rows : rows, to, from);
	return (struct operand){to, 1};
}

/* Its result; stages of single elements have one element, unless they give the output. */
static struct operand
run_stage(const struct run *r, const om_stage *s, const struct operand *x, const struct operand *y, int64_t n, float *to, bool is_last)
{
	const enum om_map_steps steps = y->step == 0 ? OM_MAP_X : x->step == 0 ? OM_MAP_Y : OM_MAP_BOTH;
	const int step = x->step | y->step;

	r->map[s->kind][steps](to, x->at, y->at, step ? n : 1, s->p);
	if (!step && is_last)
		fill(to + 1, n - 1, *to);
	return (struct operand){to, step};
}

static void
run_tile(const struct run *r, int64_t t, bool is_first, const struct room *room)
{
	struct operand *operand = room->operand;
	const om_tiled_map *m = r->m;
	const int64_t row = t % m->ranges * m->rows;
	const int64_t rows = m->dim[m->split] - row < m->rows ? m->dim[m->split] - row : m->rows, n = rows * m->inner;
	float *out = (float *)r->c->out[0].data + (t / m->ranges * m->dim[m->split] + row) * m->inner;

	for (uint32_t k = 0; k < m->nin; k++)
		operand[k] = input_of_tile(r, k, t, rows, is_first, room->buffer);
	for (uint32_t j = 0; j < m->nstage; j++) {
		const om_stage *s = &m->stage[j];
		const bool is_last = j + 1 == m->nstage;
		operand[m->nin + j] = run_stage(r, s, &operand[s->x], &operand[s->y], n,
			is_last ? out : room->buffer + (size_t)s->to * OM_TILE, is_last);
	}
}

static void
run_tiles_in(const struct run *r, int64_t from, int64_t to, float *buffer)
{
	struct operand operand[OM_MAP_OPERANDS];
	const struct room room = {buffer, operand};

	for (int64_t t = from; t < to; t++)
		run_tile(r, t, t == from, &room);
}

/* A few buffers are on the stack. */
enum { FEW = 4 };

static void
run_tiles(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct run *r = arg;
	float few[FEW * OM_TILE];

	if (r->m->nbuffer <= FEW)
		run_tiles_in(r, from, to, few);
	else
		run_tiles_in(r, from, to, (float *)r->c->scratch + (size_t)worker * r->m->nbuffer * OM_TILE);
}

uint64_t
om_tiled_map_workspace(const om_op_context *c)
{
	const om_tiled_map *m = c->state;

	if (m->nbuffer <= FEW)
		return 0;
	return (uint64_t)om_call_workers(c) * m->nbuffer * OM_TILE * sizeof(float);
}

om_status
om_tiled_map_run(om_op_context *c)
{
	const om_tiled_map *m = c->state;
	struct run r = {c, m, om_kernels_get()->elementwise->map};

	assert(m->nin + m->nstage <= OM_MAP_OPERANDS);
	if (m->tiles)
		om_for_ranges(c, m->tiles, m->rows * m->inner * m->nstage, run_tiles, &r);
	return OM_OK;
}
