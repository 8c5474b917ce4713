/* SPDX-License-Identifier: Apache-2.0 */
/* schedule: order the ops of each block.
 *
 * Any order that respects data dependences is legal.  `min-memory` searches for one with a lower peak,
 * block by block, bodies before the ops that have them: a body counts with its own peak.  Storages are
 * those after views, split into segments: if only parts of a value are read later, the others die, and a
 * value that may be computed into a later value is a part of that value from the start.  If an op may
 * compute over an input that dies, the two count once.  The search is om_schedule_solve(); its result is
 * used only if the following passes make a smaller arena of it, so the original order is kept unless
 * another one is strictly better.
 *
 * `bfs` is breadth-first order.
 *
 * Random ops, ops with effects and unknown ops keep their relative order.
 *
 * Folded ops do not run, but stay in the file: a user of their results comes after all their inputs, as
 * after its own inputs. */
#include <config.h>

#include <stdlib.h>

#include "ir/query.h"
#include "ir/schedule.h"
#include "onnxmem/assignment.h"
#include "onnxmem/builder.h"
#include "alloc/assign.h"
#include "alloc/live_ranges_split.h"
#include "alloc/op_facts.h"
#include "alloc/result_paths.h"
#include "alloc/state_update_paths.h"
#include "schedule/scheduler.h"
#include "onnxmem/pass.h"
#include "onnxmem/plan.h"

#define NONE UINT32_MAX

/* A schedule, and the assignment made for it. */
struct candidate {
	const om_schedule *schedule;
	const om_assignment *views, *full; /* with views alone; and with in-place decisions */
	const om_assignment *packed;       /* with all decisions of the following passes: it gives the arena */
};

struct model {
	om_run *r;
	om_prog *p;
	om_arena *mem;
	const om_op_facts *facts;
	const om_schedule *s;
	const om_assignment *a;  /* with views alone */
	om_buffers *views;       /* storages, before in-place decisions */
	om_segments *pieces;       /* of these */
	uint64_t **load;         /* by depth, by step: live bytes of values defined in bodies of at least that
	                            depth */
	uint32_t ndepth;
	uint32_t *op_of;         /* by op id: its index in the current block */
	uint32_t *place;         /* by op id: for arrange() */
	uint32_t *seen;          /* by op id of a folded op: 1 + the last op that is known to come after it */
	const om_update_path *way;       /* from parameters to the results that replace them */
	uint32_t nway;
	uint32_t *storage_of;    /* by segment: its number */
	bool *elsewhere;         /* by segment: may need no memory of its own.  NULL: all do */
	struct segment_use *input; /* by segment of an input of the current op */
	const om_result_path *path; /* to the memory of results */
	uint32_t *ended_by;      /* by op id: 1 + the first path whose readers all run before the op; 0: none */
	uint32_t *next_ended;    /* by path: as `ended_by`, for the next path of that op */
	uint32_t *way_of;        /* by op id of the first op of a path: 1 + its index; 0: none */
	uint32_t *next_way;      /* by path: as `way_of`, for the next path of that op */
};

/* How an op reads a segment. */
struct segment_use {
	const om_value *v;
	bool is_shared;          /* through another value than `v`, too */
	bool is_taken;           /* an output is computed over it */
};

/* A block as a scheduling problem. */
struct problem {
	struct model *m;
	const om_block *b;
	om_op **ops;             /* ops that run, in the order of the schedule */
	om_schedule_op *op;
	om_schedule_storage *storage;
	uint32_t nop;
	size_t nstorage, capstorage;
	uint32_t *after, *use;   /* of the op at hand */
	size_t nafter, capafter, nuse, capuse;
	om_inplace_pair *over;     /* of the op at hand */
	size_t nover, capover;
	const om_op **folded;    /* ops whose inputs are still to be visited */
	size_t nfolded, capfolded;
	uint32_t effect;         /* the last op that has to keep its position */
	bool *is_listed;         /* by storage: used by the current op */
};

/* ---- Storages. ---- */

static uint64_t
bytes_of(const struct model *m, uint32_t piece)
{
	return m->elsewhere && m->elsewhere[piece] ? 0 : m->pieces->piece[piece].bytes;
}

/* Are the segments of the block: computed by an op of it or, in the graph, those of an input? */
static bool
is_of_block(const struct problem *q, const om_segment *piece)
{
	return piece->producer ? piece->producer->block == q->b : piece->is_input && !q->b->owner;
}

/* The segments of `v`, if they are of the block. */
static const uint32_t *
pieces_of(const struct problem *q, const om_value *v, uint32_t *n)
{
	const uint32_t *piece = NULL;

	*n = 0;
	if (v && !v->is_const)
		piece = om_segments_of(q->m->pieces, v, n);
	if (*n && !is_of_block(q, &q->m->pieces->piece[piece[0]]))
		*n = 0;
	return piece;
}

static void
list_made(struct problem *q, const om_value *v, uint32_t i)
{
	uint32_t n;
	const uint32_t *piece = pieces_of(q, v, &n);

	for (uint32_t k = 0; k < n; k++) {
		if (q->m->pieces->piece[piece[k]].producer != q->ops[i])
			continue;
		q->m->storage_of[piece[k]] = (uint32_t)q->nstorage;
		OM_PUSH(q->m->mem, q->storage, q->nstorage, q->capstorage,
			((om_schedule_storage){bytes_of(q->m, piece[k]), i, false}));
	}
}

/* Inputs of the graph in the arena are live from the start. */
static void
list_inputs(struct problem *q)
{
	for (uint32_t k = 0; !q->b->owner && k < q->b->nparam; k++) {
		uint32_t n;
		for (const uint32_t *piece = pieces_of(q, q->b->param[k], &n); n; n--) {
			q->m->storage_of[piece[n - 1]] = (uint32_t)q->nstorage;
			OM_PUSH(q->m->mem, q->storage, q->nstorage, q->capstorage,
				((om_schedule_storage){bytes_of(q->m, piece[n - 1]), OM_SCHEDULE_NONE, false}));
		}
	}
}

static void
list_storages(struct problem *q)
{
	list_inputs(q);
	for (uint32_t i = 0; i < q->nop; i++)
		for (uint32_t k = 0; k < q->ops[i]->nout; k++)
			if (q->ops[i]->out[k] && !q->m->a->backing[q->ops[i]->out[k]->id].source)
				list_made(q, q->ops[i]->out[k], i);
	for (uint32_t k = 0; k < q->b->nresult; k++) {
		uint32_t n;
		for (const uint32_t *piece = pieces_of(q, q->b->result[k], &n); n; n--)
			q->storage[q->m->storage_of[piece[n - 1]]].live_out = true;
	}
}

/* ---- Predecessors and uses of an op. ---- */

static bool
keeps_its_place(const om_op *op)
{
	if (!op->opdef || op->opdef->flags & (OM_RANDOM | OM_EFFECT))
		return true;
	for (uint32_t k = 0; k < op->nbody; k++)
		for (const om_op *inner = op->body[k]->first; inner; inner = inner->next)
			if (keeps_its_place(inner))
				return true;
	return false;
}

/* The current op comes after the one that defines `v`. */
static void
add_after(struct problem *q, const om_value *v, uint32_t i)
{
	const om_op *def = v && v->block == q->b ? v->def : NULL;

	if (def && !def->is_folded)
		OM_PUSH(q->m->mem, q->after, q->nafter, q->capafter, q->m->op_of[def->id]);
	else if (def && q->m->seen[def->id] != i + 1) {
		q->m->seen[def->id] = i + 1;
		OM_PUSH(q->m->mem, q->folded, q->nfolded, q->capfolded, def);
	}
}

static void
add_use(struct problem *q, const om_value *v, uint32_t i)
{
	uint32_t n;
	const uint32_t *piece = pieces_of(q, v, &n);

	add_after(q, v, i);
	for (uint32_t k = 0; k < n; k++)
		OM_PUSH(q->m->mem, q->use, q->nuse, q->capuse, q->m->storage_of[piece[k]]);
}

/* The values that a body refers to, for execution or, with `add_after`, for legality. */
static void
add_captured(struct problem *q, const om_block *b, uint32_t i,
	void (*add)(struct problem *q, const om_value *v, uint32_t i))
{
	for (const om_op *op = b->first; op; op = op->next) {
		for (uint32_t k = 0; k < op->nin; k++)
			(op->is_folded ? add_after : add)(q, op->in[k], i);
		for (uint32_t k = 0; k < op->nbody; k++)
			add_captured(q, op->body[k], i, op->is_folded ? add_after : add);
	}
	for (uint32_t k = 0; k < b->nresult; k++)
		add(q, b->result[k], i);
}

/* The inputs of the folded ops whose results the current op uses. */
static void
add_folded(struct problem *q, uint32_t i)
{
	while (q->nfolded) {
		const om_op *op = q->folded[--q->nfolded];
		for (uint32_t k = 0; k < op->nin; k++)
			add_after(q, op->in[k], i);
		for (uint32_t k = 0; k < op->nbody; k++)
			add_captured(q, op->body[k], i, add_after);
	}
}

/* An op that computes over a parameter comes after all other readers of the parameter, unless it precedes
 * them in the original order. */
static void
add_ways(struct problem *q, const om_op *op, uint32_t i)
{
	for (uint32_t k = q->m->way_of[op->id]; k; k = q->m->next_way[k - 1]) {
		const om_update_path *w = &q->m->way[k - 1];
		if (w->nreader && q->m->op_of[w->reader[w->nreader - 1]->id] > i)
			continue;
		for (uint32_t r = 0; r < w->nreader; r++)
			OM_PUSH(q->m->mem, q->after, q->nafter, q->capafter, q->m->op_of[w->reader[r]->id]);
	}
}

/* An op that overwrites a value in the memory of a result comes after all other readers of that value. */
static void
add_result_paths(struct problem *q, const om_op *op)
{
	const struct model *m = q->m;

	for (uint32_t k = m->ended_by ? m->ended_by[op->id] : 0; k; k = m->next_ended[k - 1])
		for (uint32_t r = 0; r < m->path[k - 1].nreader; r++)
			OM_PUSH(m->mem, q->after, q->nafter, q->capafter, m->op_of[m->path[k - 1].reader[r]->id]);
}

/* A view has no storage of its own: the op that makes it uses the whole storage. */
static void
add_needs(struct problem *q, const om_op *op, uint32_t i)
{
	om_schedule_op *to = &q->op[i];
	size_t direct;

	q->nafter = q->nuse = 0;
	for (uint32_t k = 0; k < op->nin; k++)
		add_use(q, op->in[k], i);
	direct = q->nuse;
	for (uint32_t k = 0; k < op->nbody; k++)
		add_captured(q, op->body[k], i, add_use);
	add_folded(q, i);
	if (!q->b->owner) {
		add_ways(q, op, i);
		add_result_paths(q, op);
	}
	if (keeps_its_place(op)) {
		if (q->effect != NONE)
			OM_PUSH(q->m->mem, q->after, q->nafter, q->capafter, q->effect);
		q->effect = i;
	}
	to->after = om_memdup(q->m->mem, q->after, q->nafter * sizeof *q->after);
	to->nafter = (uint32_t)q->nafter;
	to->use = om_memdup(q->m->mem, q->use, q->nuse * sizeof *q->use);
	to->nuse = (uint32_t)q->nuse;
	to->ndies_early = (uint32_t)direct;
}

/* ---- Bytes. ---- */

static uint64_t
made_by(const struct model *m, const om_op *op, uint32_t step)
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < op->nout; k++) {
		const om_value *v = op->out[k];
		uint32_t n;
		if (!v || m->a->backing[v->id].source || m->a->live[v->id].first > step)
			continue;
		for (const uint32_t *piece = om_segments_of(m->pieces, v, &n); n; n--)
			if (m->pieces->piece[piece[n - 1]].producer == op)
				sum += bytes_of(m, piece[n - 1]);
	}
	return sum;
}

/* Note how the op reads the segments of its inputs. */
static void
find_input_pieces(struct problem *q, const om_op *op)
{
	uint32_t n;

	for (uint32_t i = 0; i < op->nin; i++)
		for (const uint32_t *piece = pieces_of(q, op->in[i], &n); n; n--)
			q->m->input[piece[n - 1]] = (struct segment_use){.v = op->in[i]};
	for (uint32_t i = 0; i < op->nin; i++)
		for (const uint32_t *piece = pieces_of(q, op->in[i], &n); n; n--)
			q->m->input[piece[n - 1]].is_shared |= q->m->input[piece[n - 1]].v != op->in[i];
}

/* May `op` compute the piece `made` of an output over `needed` of an input? */
static bool
is_free(const struct problem *q, const om_op *op, uint32_t made, uint32_t needed)
{
	const om_segment *piece = q->m->pieces->piece;
	const struct segment_use *input = &q->m->input[needed];

	return piece[made].producer == op && bytes_of(q->m, made) && bytes_of(q->m, needed) && !input->is_taken
	    && !input->is_shared && piece[made].bytes == piece[needed].bytes;
}

/* The inputs whose storage is reused by a segment, the `at`-th one of an output. */
static void
add_over_piece(struct problem *q, const om_op *op, uint32_t made, uint32_t at, const bool *may)
{
	for (uint32_t i = 0; i < op->nin; i++) {
		uint32_t n;
		const uint32_t *piece = pieces_of(q, op->in[i], &n);
		if (!may[i] || at >= n || !is_free(q, op, made, piece[at]))
			continue;
		OM_PUSH(q->m->mem, q->over, q->nover, q->capover,
			((om_inplace_pair){q->m->storage_of[made], q->m->storage_of[piece[at]]}));
		q->m->input[piece[at]].is_taken = true;
	}
}

/* Each input is reused by at most one output; which of several is decided when the op runs. */
static void
add_over(struct problem *q, const om_op *op, om_schedule_op *to)
{
	bool *may = OM_NEWN(q->m->mem, bool, op->nin);

	q->nover = 0;
	find_input_pieces(q, op);
	for (uint32_t k = 0; k < op->nout; k++) {
		uint32_t n;
		const uint32_t *made = pieces_of(q, op->out[k], &n);
		if (!n || q->m->a->backing[op->out[k]->id].source)
			continue;
		for (uint32_t i = 0; i < op->nin; i++)
			may[i] = op->in[i] && om_op_facts_inplace(q->m->facts, op, k, i);
		for (uint32_t at = 0; at < n; at++)
			add_over_piece(q, op, made[at], at, may);
	}
	to->over = om_memdup(q->m->mem, q->over, q->nover * sizeof *q->over);
	to->nover = (uint32_t)q->nover;
}

/* An op with bodies: bytes live in them at its start, and later, when inputs that no body captures may be
 * dead. */
static void
add_bodies(struct problem *q, const om_op *op, om_schedule_op *to, uint32_t depth)
{
	const uint64_t *load = depth + 1 < q->m->ndepth ? q->m->load[depth + 1] : NULL;
	const bool may_end = op->opdef && (op->opdef->control == OM_IF || op->opdef->control == OM_LOOP);
	const om_steps at = q->m->s->of_op[op->id];
	uint32_t *early = OM_NEWN(q->m->mem, uint32_t, (size_t)to->ndies_early + 1), n = 0;
	bool *is_listed = q->is_listed;

	to->begin += load ? load[at.first] : 0;
	for (uint32_t step = at.first + 1; step <= at.last; step++) {
		const uint64_t now = made_by(q->m, op, step) + (load ? load[step] : 0);
		to->middle = now > to->middle ? now : to->middle;
	}
	for (uint32_t k = to->ndies_early; k < to->nuse; k++)
		is_listed[to->use[k]] = true;
	for (uint32_t k = 0; k < to->ndies_early && may_end; k++) {
		if (!is_listed[to->use[k]])
			early[n++] = to->use[k];
		is_listed[to->use[k]] = true;
	}
	for (uint32_t k = 0; k < to->nuse; k++)
		is_listed[to->use[k]] = false;
	to->early = early;
	to->ndies_early = n;
}

static void
add_bytes(struct problem *q, const om_op *op, om_schedule_op *to, uint32_t depth)
{
	const uint32_t scratch = q->m->views->of_op[op->id];

	to->begin = made_by(q->m, op, q->m->s->of_op[op->id].first);
	if (scratch != NONE)
		to->begin += q->m->views->buf[scratch].bytes;
	if (op->nbody) {
		add_bodies(q, op, to, depth);
		return;
	}
	to->ndies_early = 0;
	if (op->opdef && op->opdef->inplace)
		add_over(q, op, to);
}

/* NONE for the body of an op that was removed. */
static uint32_t
depth_of(const om_block *b)
{
	uint32_t depth = 0;

	for (; b && b->owner; b = b->owner->block)
		depth++;
	return b ? depth : NONE;
}

static struct problem *
problem_new(struct model *m, const om_block *b)
{
	struct problem *q = OM_NEW(m->mem, struct problem);
	const uint32_t depth = depth_of(b);

	*q = (struct problem){.m = m, .b = b, .ops = OM_NEWN(m->mem, om_op *, b->nop),
		.op = OM_NEWN(m->mem, om_schedule_op, b->nop), .effect = NONE};
	for (om_op *const *at = m->s->ops[b->id]; *at; at++)
		if (!(*at)->is_folded) {
			m->op_of[(*at)->id] = q->nop;
			q->ops[q->nop++] = *at;
		}
	list_storages(q);
	q->is_listed = OM_NEWN(m->mem, bool, q->nstorage);
	for (uint32_t i = 0; i < q->nop; i++) {
		add_needs(q, q->ops[i], i);
		add_bytes(q, q->ops[i], &q->op[i], depth);
	}
	return q;
}

/* ---- The model of a program. ---- */

static void
add_load(struct model *m, const om_buffer *buf, const om_block *b)
{
	for (uint32_t d = depth_of(b); d > 0; d--) {
		m->load[d][buf->live[0].lower] += buf->bytes;
		m->load[d][buf->live[buf->nlive - 1].upper] -= buf->bytes;
	}
}

/* Buffers by the depth of the block that defines them: in a step of a body, only that body and those that
 * enclose it are active. */
static void
find_loads(struct model *m, const om_assignment *full)
{
	const om_buffers *b = om_buffers_new(m->p, full, m->mem);
	const size_t n = (size_t)m->s->nstep + 1;

	for (const om_block *k = m->p->first; k; k = k->next)
		if (depth_of(k) != NONE && depth_of(k) >= m->ndepth)
			m->ndepth = depth_of(k) + 1;
	m->load = OM_NEWN(m->mem, uint64_t *, m->ndepth);
	for (uint32_t d = 1; d < m->ndepth; d++)
		m->load[d] = OM_NEWN(m->mem, uint64_t, n);
	for (uint32_t k = 0; k < m->p->nvalue; k++)
		if (b->of_value[k] != NONE && !full->backing[k].source)
			add_load(m, &b->buf[b->of_value[k]], m->p->values[k]->block);
	for (const om_block *k = m->p->first; k; k = k->next)
		for (const om_op *op = k->first; op; op = op->next)
			if (b->of_op[op->id] != NONE)
				add_load(m, &b->buf[b->of_op[op->id]], k);
	for (uint32_t d = 1; d < m->ndepth; d++)
		for (size_t k = 1; k < n; k++)
			m->load[d][k] += m->load[d][k - 1];
}

static struct model *
model_new(om_run *r, om_prog *p, const struct candidate *c)
{
	struct model *m = OM_NEW(r->scratch, struct model);

	*m = (struct model){.r = r, .p = p, .mem = r->scratch, .ndepth = 1, .facts = c->views->facts,
		.s = c->schedule, .a = c->views,
		.op_of = OM_NEWN(r->scratch, uint32_t, p->nop),
		.place = OM_NEWN(r->scratch, uint32_t, p->nop),
		.seen = OM_NEWN(r->scratch, uint32_t, p->nop)};
	if (p->nblock > 1)
		find_loads(m, c->full);
	m->views = om_buffers_new(p, c->views, r->scratch);
	m->way = om_update_paths_find(p, c->views, r->scratch, &m->nway);
	m->pieces = om_segments_new(p, m->views, r->scratch);
	m->storage_of = OM_NEWN(r->scratch, uint32_t, m->pieces->n);
	m->input = OM_NEWN(r->scratch, struct segment_use, m->pieces->n);
	m->way_of = OM_NEWN(r->scratch, uint32_t, p->nop);
	m->next_way = OM_NEWN(r->scratch, uint32_t, m->nway);
	for (uint32_t k = m->nway; k > 0; k--) {
		uint32_t *first = &m->way_of[m->way[k - 1].value[0]->def->id];
		m->next_way[k - 1] = *first;
		*first = k;
	}
	return m;
}

/* For one more problem of a block that has had one: what problem_new() notes about folded ops is forgotten. */
static struct model *
model_again(const struct model *m)
{
	struct model *to = om_memdup(m->mem, m, sizeof *m);

	to->seen = OM_NEWN(m->mem, uint32_t, m->p->nop);
	return to;
}

static om_status
candidate_new(om_run *r, om_prog *p, const om_schedule *s, struct candidate *c)
{
	c->schedule = s;
	return om_assign_schedule(r->session, p, s, r->request, om_prog_op_facts(p, r->request), r->scratch, &c->views,
		&c->full, &c->packed);
}

/* ---- Reordering. ---- */

/* The number of ops with another position in the other order. */
static uint64_t
count_moved(const om_prog *p, const om_schedule *one, const om_schedule *other)
{
	uint64_t n = 0;

	for (const om_block *b = p->first; b; b = b->next)
		for (uint32_t k = 0; one->ops[b->id][k]; k++)
			n += one->ops[b->id][k] != other->ops[b->id][k];
	return n;
}

/* A block whose ops are reordered. */
struct change {
	om_block *b;
	om_op **ops;             /* NULL ends the list */
};

struct changes {
	struct change *list;
	size_t n, cap;
};

static uint32_t
later(const om_block *home, const uint32_t *place, const om_value *v, uint32_t at)
{
	return v && v->block == home && v->def && place[v->def->id] > at ? place[v->def->id] : at;
}

/* The number of ops of the block that precede the position where `op` may be placed: given by `place`
 * for ops that run, and for the folded ones before `op`. */
static uint32_t
place_of(const om_block *home, const uint32_t *place, const om_op *op, uint32_t at)
{
	for (uint32_t k = 0; k < op->nin; k++)
		at = later(home, place, op->in[k], at);
	for (uint32_t k = 0; k < op->nbody; k++) {
		const om_block *b = op->body[k];
		for (const om_op *inner = b->first; inner; inner = inner->next)
			at = place_of(home, place, inner, at);
		for (uint32_t r = 0; r < b->nresult; r++)
			at = later(home, place, b->result[r], at);
	}
	return at;
}

/* Folded ops directly follow their inputs, in their original order. */
static om_op **
arrange(const struct problem *q, const uint32_t *order)
{
	om_arena *mem = q->m->mem;
	om_op **was = q->m->s->ops[q->b->id], **ops = OM_NEWN(mem, om_op *, (size_t)q->b->nop + 1);
	uint32_t *place = q->m->place, *head = OM_NEWN(mem, uint32_t, q->nop + 2);

	for (uint32_t k = 0; k < q->nop; k++)
		place[q->ops[order[k]]->id] = k + 1;
	for (uint32_t k = 0; was[k]; k++)
		if (was[k]->is_folded)
			place[was[k]->id] = place_of(q->b, place, was[k], 0);
	for (uint32_t k = 0; was[k]; k++)
		head[place[was[k]->id] + 1]++;
	for (uint32_t k = 0; k <= q->nop; k++)
		head[k + 1] += head[k];
	for (uint32_t k = 0; k < q->nop; k++)
		ops[head[k + 1]++] = q->ops[order[k]];
	for (uint32_t k = 0; was[k]; k++)
		if (was[k]->is_folded)
			ops[head[place[was[k]->id]]++] = was[k];
	return ops;
}

static void
permute(const struct problem *q, om_block *b, const uint32_t *order, struct changes *to)
{
	OM_PUSH(q->m->mem, to->list, to->n, to->cap, ((struct change){b, arrange(q, order)}));
}

/* The schedule with these changes, or with the change of the graph alone. */
static const om_schedule *
changed(om_run *r, om_prog *p, const om_schedule *s, const struct changes *c, bool graph_only)
{
	om_op ***ops = OM_NEWN(r->scratch, om_op **, p->nblock);

	for (size_t k = 0; k < c->n; k++)
		if (!graph_only || !c->list[k].b->owner)
			ops[c->list[k].b->id] = c->list[k].ops;
	return om_schedule_reorder(p, s, ops, r->scratch);
}

/* Reorder the ops of the program as in the schedule. */
static void
commit(om_prog *p, const om_schedule *s)
{
	for (om_block *b = p->first; b; b = b->next)
		if (depth_of(b) != NONE && b->nop)
			om_block_set_order(b, s->ops[b->id]);
}

/* ---- Orders with a low peak. ---- */

struct outcome {
	bool is_proven, is_limited;  /* as in om_schedule */
};

/* What the proof needs of the best order; the rounds share it. */
struct best_model {
	const om_schedule *schedule; /* of this order; NULL: of none */
	struct model *plain;         /* in which all segments need memory */
	struct model *m;             /* in which some that may be elsewhere need none */
	const struct problem *q;     /* of the graph; NULL: not yet made */
	uint64_t bound;              /* of its packing */
	bool any_doubt;
};

struct search {
	om_run *r;
	om_prog *p;
	struct candidate file;       /* the original order */
	struct model *model;         /* of that */
	struct problem **problem;    /* by block id: of that model */
	struct candidate best;       /* so far */
	struct best_model of_best;
	om_arena_size file_size, best_size;
	bool is_sized;               /* these are known */

	/* Of the current round: */
	uint64_t nodes;              /* left */
	uint64_t level;              /* no order of the block that was searched last has a lower peak */
	bool is_proven;
	bool is_limited;             /* a search ended at its limit */
	struct changes changes;
};

/* Replace the best order if this one takes strictly less. */
static om_status
try_order(struct search *s, const om_schedule *order)
{
	om_session *session = s->r->session;
	struct candidate c;
	om_arena_size now;
	bool is_smaller;

	if (!s->is_sized)
		OM_TRY(om_assignment_size(session, s->p, s->file.packed, &s->file_size));
	if (!s->is_sized)
		s->best_size = s->file_size;
	s->is_sized = true;
	if (count_moved(s->p, order, s->best.schedule) == 0)
		return OM_OK;
	OM_TRY(candidate_new(s->r, s->p, order, &c));
	OM_TRY(om_assignment_size(session, s->p, c.packed, &now));
	OM_TRY(om_assignment_is_smaller(session, s->p, c.packed, &now, s->best.packed, &s->best_size, &is_smaller));
	if (is_smaller) {
		s->best = c;
		s->best_size = now;
	}
	return OM_OK;
}

/* Search for an order of the problem, with at most `nodes` of those that are left. */
static om_status
solve(struct search *s, const struct problem *q, uint64_t nodes, uint32_t *order, om_schedule_result *result)
{
	const om_schedule_problem abstract = {q->op, q->storage, q->nop, (uint32_t)q->nstorage};

	OM_TRY(om_schedule_solve(s->r->session, &abstract, nodes, order, result));
	s->nodes -= result->nodes;
	s->is_limited |= !result->is_proven;
	om_count(s->r, "search_nodes", result->nodes);
	return OM_OK;
}

static const struct problem *
problem_of(struct search *s, struct model *m, const om_block *b)
{
	if (m != s->model)
		return problem_new(m, b);
	if (!s->problem[b->id])
		s->problem[b->id] = problem_new(m, b);
	return s->problem[b->id];
}

static om_status
search_block(struct search *s, struct model *m, om_block *b)
{
	const struct problem *q = problem_of(s, m, b);
	uint32_t *order = OM_NEWN(m->mem, uint32_t, q->nop);
	om_schedule_result result;

	if (q->nop < 2)
		return OM_OK;
	OM_TRY(solve(s, q, s->nodes, order, &result));
	s->level = result.lower_bound;
	s->is_proven &= result.is_proven;
	if (result.peak < result.given)
		permute(q, b, order, &s->changes);
	return OM_OK;
}

/* Bodies first: their peaks decide where their owners run best. */
static om_status
search_blocks(struct search *s)
{
	uint32_t deepest = 0, *depth = OM_NEWN(s->r->scratch, uint32_t, s->p->nblock);
	size_t known = 0;
	struct candidate c;
	struct model *m = s->model;

	for (const om_block *b = s->p->first; b; b = b->next)
		if ((depth[b->id] = depth_of(b)) != NONE && depth[b->id] > deepest)
			deepest = depth[b->id];
	for (uint32_t n = 0; n <= deepest; n++) {
		if (s->changes.n > known) {
			const om_schedule *now = changed(s->r, s->p, s->file.schedule, &s->changes, false);
			OM_TRY(candidate_new(s->r, s->p, now, &c));
			m = model_new(s->r, s->p, &c);
		}
		known = s->changes.n;
		for (om_block *b = s->p->first; b; b = b->next)
			if (depth[b->id] == deepest - n && b->nop)
				OM_TRY(search_block(s, m, b));
	}
	return OM_OK;
}

/* Apply all changes, or the change of the graph alone, if one of them takes less than the best order.  Is the best
 * order the result of this search then? */
static om_status
choose(struct search *s, bool *is_found)
{
	const om_schedule *order = s->file.schedule;

	*is_found = s->changes.n == 0 && s->best.schedule == order;
	for (int graph_only = 0; s->changes.n && !*is_found && graph_only <= (s->changes.list[0].b->owner != NULL); graph_only++) {
		order = changed(s->r, s->p, s->file.schedule, &s->changes, graph_only);
		OM_TRY(try_order(s, order));
		*is_found = s->best.schedule != s->file.schedule && count_moved(s->p, order, s->best.schedule) == 0;
	}
	return OM_OK;
}

/* ---- Proof that no order is better. ---- */

/* The following passes can do more than the search models: compute a value in the memory of a result, or
 * into one of several later values.  If all values that may benefit count nothing, a lower bound of the
 * search is a lower bound for every decision of those passes. */
struct doubt {
	struct model *m;
	om_value **list;         /* may be stored in the memory of a result; considered from here on */
	size_t n, cap;
	bool *outside;           /* by value id of the root */
	bool any;
};

static void
doubt_value(struct doubt *d, const om_value *v)
{
	uint32_t n;
	const uint32_t *piece = om_segments_of(d->m->pieces, v, &n);

	d->any |= n > 0;
	for (; n; n--)
		d->m->elsewhere[piece[n - 1]] = true;
}

static void
add_outside(struct doubt *d, om_value *v)
{
	om_value *root = v && !v->is_const ? d->m->views->root[v->id] : NULL;

	if (!root || !root->def || d->outside[root->id])
		return;
	d->outside[root->id] = true;
	doubt_value(d, root);
	OM_PUSH(d->m->mem, d->list, d->n, d->cap, root);
}

/* Does an op find `v` at its final offset in an output? */
static bool
is_part(const struct doubt *d, const om_value *v)
{
	uint64_t offset;

	for (const om_use *u = v->first_use; u; u = u->next)
		if (u->op && om_op_facts_subbuffer(d->m->facts, u->op, u->index, &offset))
			return true;
	return false;
}

/* What `v` is a part of is where `v` is; and so is what is computed over it, if `v` stays where it is as a part. */
static void
add_users(struct doubt *d, const om_value *v)
{
	const om_op_facts *f = d->m->facts;
	const bool any = is_part(d, v);
	uint64_t offset;

	for (const om_use *u = v->first_use; u; u = u->next) {
		if (!u->op || u->op->is_folded)
			continue;
		if (om_op_facts_subbuffer(f, u->op, u->index, &offset))
			add_outside(d, u->op->out[0]);
		for (uint32_t k = 0; k < u->op->nout; k++) {
			const om_value *out = u->op->out[k];
			if (out && any && om_op_facts_inplace(f, u->op, k, u->index))
				add_outside(d, u->op->out[k]);
			if (out && d->m->a->backing[out->id].source == v)
				add_users(d, out);
		}
	}
}

/* Results, the values that they are computed over or consist of, what consists of those, and so on. */
static void
doubt_results(struct doubt *d, const om_block *b)
{
	const om_op_facts *f = d->m->facts;
	uint64_t offset;
	om_view_of view;

	for (uint32_t k = 0; k < b->nresult; k++)
		if (f->is_outside[b->result[k]->id])
			add_outside(d, b->result[k]);
	for (size_t at = 0; at < d->n; at++) {
		const om_op *op = d->list[at]->def;
		add_users(d, d->list[at]);
		for (uint32_t i = 0; i < op->nin; i++) {
			bool yes = om_op_facts_subbuffer(f, op, i, &offset);
			for (uint32_t k = 0; k < op->nout && !yes; k++)
				yes = op->out[k] && (om_op_facts_inplace(f, op, k, i)
					|| (om_op_facts_view(f, op, k, &view) && view.in == i));
			if (yes)
				add_outside(d, op->in[i]);
		}
	}
}

/* Does the value take memory of the arena before a body runs: is it computed, or an input in the arena? */
static bool
is_there_before(const struct model *m, const om_value *v)
{
	return v->def || !m->facts->is_outside[v->id];
}

static bool
reads_computed(const struct model *m, const om_op *op)
{
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && is_there_before(m, op->in[k]))
			return true;
	return false;
}

/* Does the body capture such a value? */
static bool
captures_computed(const struct model *m, const om_block *body)
{
	for (uint32_t k = 0; k < m->p->nvalue; k++) {
		const om_value *v = m->p->values[k];
		if (!is_there_before(m, v) || v->is_const || om_block_inside(v->block, body))
			continue;
		for (const om_use *u = v->first_use; u; u = u->next)
			if (om_block_inside(u->op ? u->op->block : u->block, body))
				return true;
	}
	return false;
}

/* Do bodies share memory with values that are there before them?  Which of those are still live in the
 * body depends on the order of the ops around it; the model has one peak for the body, whatever the order. */
static bool
has_mixed_body(const struct model *m)
{
	for (const om_block *b = m->p->first; b; b = b->next)
		if (b->owner && (reads_computed(m, b->owner) || captures_computed(m, b)))
			return true;
	return false;
}

static struct best_model *
model_of_best(struct search *s)
{
	struct best_model *t = &s->of_best;
	const om_prog *p = s->p;

	if (t->schedule == s->best.schedule)
		return t;
	struct model *plain = s->best.schedule == s->file.schedule ? s->model : model_new(s->r, s->p, &s->best);
	struct model *m = model_again(plain);
	struct doubt d = {.m = m, .outside = OM_NEWN(m->mem, bool, p->nvalue)};
	m->elsewhere = OM_NEWN(m->mem, bool, m->pieces->n);
	for (uint32_t k = 0; k < p->nvalue; k++)
		if (m->pieces->is_open[k])
			doubt_value(&d, p->values[k]);
	doubt_results(&d, p->first);
	const om_buffers *b = om_buffers_new(p, s->best.full, s->r->scratch);
	*t = (struct best_model){.schedule = s->best.schedule, .plain = plain, .m = m, .bound = om_pack_bound(b->buf, b->n, NULL), .any_doubt = d.any};
	return t;
}

static om_status
prove(struct search *s, bool *is_proven)
{
	struct best_model *t = model_of_best(s);
	struct model *m = t->m;
	om_schedule_result result;

	if (s->p->nblock > 1) {  /* the model counts states that a device keeps only while they are used */
		*is_proven &= !s->r->request->keep_states && !t->any_doubt && m->pieces->is_complete && !has_mixed_body(m);
		return OM_OK;
	}
	if (!s->is_proven && !t->any_doubt && s->level < t->bound) {  /* the remaining candidates were not sufficient */
		*is_proven = false;
		return OM_OK;
	}
	t->q = t->q ? t->q : problem_new(m, s->p->first);
	OM_TRY(solve(s, t->q, s->nodes, OM_NEWN(m->mem, uint32_t, t->q->nop), &result));
	*is_proven = result.lower_bound >= t->bound && m->pieces->is_complete;
	return OM_OK;
}

/* ---- Orders for values in the memory of results. ---- */

/* The search above counts the bytes of all values.  A value that is computed in the memory of a result counts
 * nothing, if its other readers run before it is overwritten; so for sets of such values there is a search of its
 * own, with these constraints. */
enum { MOST_SETS = 64, MOST_WORK = 4096 };   /* sets; ops in all searches, unless that is less than one search */

struct result_search {
	struct search *s;
	const om_schedule *base;
	const struct problem *q;     /* of the graph, in that order */
	const om_result_path *path;
	uint32_t npath;
	uint64_t nodes;              /* of each search */
};

/* Does op `i` come after a marked one? */
static bool
follows(const struct result_search *w, const om_op *const *end, uint32_t upto, uint32_t i, const bool *is_marked)
{
	const om_schedule_op *op = &w->q->op[i];

	for (uint32_t k = 0; k < op->nafter; k++)
		if (is_marked[op->after[k]])
			return true;
	for (uint32_t k = 0; k < upto; k++)
		for (uint32_t r = 0; end[k] == w->q->ops[i] && r < w->path[k].nreader; r++)
			if (is_marked[w->q->m->op_of[w->path[k].reader[r]->id]])
				return true;
	return false;
}

/* Move the op that ends path `k`, and what follows from it, to after the last reader; false if a reader follows from it. */
static bool
move_after_readers(const struct result_search *w, const om_op *const *end, uint32_t k, uint32_t *order, uint32_t *position)
{
	const uint32_t *op_of = w->q->m->op_of, op = op_of[end[k]->id];
	om_arena *tmp = om_arena_new();
	bool *is_marked = OM_NEWN(tmp, bool, w->q->nop);
	uint32_t last = position[op], to = last, nlate = 0, *late = OM_NEWN(tmp, uint32_t, w->q->nop);
	bool fits = true;

	for (uint32_t r = 0; r < w->path[k].nreader; r++) {
		const uint32_t at = position[op_of[w->path[k].reader[r]->id]];
		last = at > last ? at : last;
	}
	for (uint32_t at = to; at <= last; at++) {
		const uint32_t i = order[at];
		is_marked[i] = i == op || follows(w, end, k, i, is_marked);
		*(is_marked[i] ? &late[nlate++] : &order[to++]) = i;
	}
	memcpy(&order[to], late, nlate * sizeof *late);
	for (uint32_t at = position[op]; at <= last; at++)
		position[order[at]] = at;
	for (uint32_t r = 0; r < w->path[k].nreader; r++)
		fits &= !is_marked[op_of[w->path[k].reader[r]->id]];
	om_arena_free(tmp);
	return fits;
}

/* The order with all readers before the ops that overwrite; NULL if there is none. */
static uint32_t *
order_for_results(const struct result_search *w, const om_op *const *end)
{
	om_arena *mem = w->s->r->scratch;
	uint32_t *order = OM_NEWN(mem, uint32_t, w->q->nop), *position = OM_NEWN(mem, uint32_t, w->q->nop);

	for (uint32_t i = 0; i < w->q->nop; i++)
		order[i] = position[i] = i;
	for (uint32_t k = 0; k < w->npath; k++)
		if (end[k] && !move_after_readers(w, end, k, order, position))
			return NULL;
	return order;
}

static const om_schedule *
with_graph(const struct search *s, const om_schedule *base, const struct problem *q, const uint32_t *order)
{
	om_op ***ops = OM_NEWN(s->r->scratch, om_op **, s->p->nblock);

	ops[q->b->id] = arrange(q, order);
	return om_schedule_reorder(s->p, base, ops, s->r->scratch);
}

static bool
is_as_it_was(const uint32_t *order, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (order[k] != k)
			return false;
	return true;
}

/* What the model of an order without the paths becomes with those that are taken. */
static void
add_paths(struct model *m, const struct result_search *w, const bool *is_taken, const om_op *const *end)
{
	uint32_t n;

	m->path = w->path;
	m->ended_by = OM_NEWN(m->mem, uint32_t, m->p->nop);
	m->next_ended = OM_NEWN(m->mem, uint32_t, w->npath);
	m->elsewhere = OM_NEWN(m->mem, bool, m->pieces->n);
	for (uint32_t k = w->npath; k > 0; k--) {
		if (end[k - 1]) {
			uint32_t *first = &m->ended_by[end[k - 1]->id];
			m->next_ended[k - 1] = *first;
			*first = k;
		}
		if (is_taken[k - 1])
			for (const uint32_t *piece = om_segments_of(m->pieces, w->path[k - 1].v, &n); n; n--)
				m->elsewhere[piece[n - 1]] = true;
	}
}

static om_status
search_set(void *arg, const bool *is_taken)
{
	const struct result_search *w = arg;
	struct search *s = w->s;
	const om_op **end = OM_NEWN(s->r->scratch, const om_op *, w->npath);
	const om_schedule *legal = w->base;
	struct model *m = w->q->m;
	struct candidate c;
	om_schedule_result result;

	for (uint32_t k = 0; k < w->npath; k++)
		end[k] = is_taken[k] ? om_result_paths_end(w->path, w->npath, is_taken, k) : NULL;
	uint32_t *order = order_for_results(w, end);
	if (!order)
		return OM_OK;
	if (!is_as_it_was(order, w->q->nop)) {
		legal = with_graph(s, w->base, w->q, order);
		OM_TRY(candidate_new(s->r, s->p, legal, &c));
		m = model_new(s->r, s->p, &c);
	}
	m = model_again(m);
	add_paths(m, w, is_taken, end);
	const struct problem *q = problem_new(m, s->p->first);
	OM_TRY(solve(s, q, w->nodes < s->nodes ? w->nodes : s->nodes, order, &result));
	if (s->is_sized && result.peak >= s->best_size.bytes)
		return OM_OK;
	return try_order(s, with_graph(s, legal, q, order));
}

static om_status
search_results(struct search *s)
{
	struct result_search w = {.s = s, .base = s->best.schedule};
	uint32_t sets;

	w.path = om_result_paths_find(s->p, s->best.views, s->r->scratch, &w.npath);
	if (!w.npath)
		return OM_OK;
	struct model *m = model_of_best(s)->plain;
	w.q = problem_of(s, m == s->model ? m : model_again(m), s->p->first);
	sets = MOST_WORK / (w.q->nop + 1) < MOST_SETS ? MOST_WORK / (w.q->nop + 1) : MOST_SETS;
	sets = sets ? sets : 1;
	w.nodes = s->nodes / sets;
	return om_result_paths_each(w.path, w.npath, sets, search_set, &w);
}

/* ---- All. ---- */

/* More search nodes are never worse: a search does all that one with fewer nodes does, in rounds.  The first one is
 * always done. */
enum { FIRST_ROUND = 48, ROUND_FACTOR = 16, OPS_PER_NODE = 4096 };

static om_status
search_round(struct search *s, uint64_t nodes, struct outcome *out)
{
	bool is_found;

	s->nodes = nodes;
	s->is_proven = true;
	s->is_limited = false;
	s->changes = (struct changes){0};
	OM_TRY(search_blocks(s));
	OM_TRY(choose(s, &is_found));
	const om_schedule *found = s->best.schedule;
	out->is_proven = s->is_proven && is_found;
	OM_TRY(prove(s, &out->is_proven));
	if (!out->is_proven && (nodes == FIRST_ROUND || !s->is_limited))
		OM_TRY(search_results(s));
	if (s->best.schedule != found)
		OM_TRY(prove(s, &out->is_proven));
	out->is_limited = s->is_limited && !out->is_proven;
	return OM_OK;
}

/* A set of ops takes time and memory in proportion to the ops of the block, so it counts as more than one if the block
 * is large: the work of the search is bounded by its limit, and not by its limit times the size of the graph. */
static uint64_t
rounds_left(const om_prog *p, uint64_t nodes)
{
	uint32_t most = 0;

	if (nodes < FIRST_ROUND)
		return 0;
	for (const om_block *b = p->first; b; b = b->next)
		most = depth_of(b) != NONE && b->nop > most ? b->nop : most;
	nodes /= 1 + most / OPS_PER_NODE;
	return nodes > FIRST_ROUND ? nodes / FIRST_ROUND : 1;
}

static om_status
order_min_memory(om_run *r, om_prog *p, struct outcome *out)
{
	struct search s = {.r = r, .p = p, .problem = OM_NEWN(r->scratch, struct problem *, p->nblock)};
	uint64_t nodes;

	OM_TRY(om_option_number(r, "search-nodes", &nodes));
	OM_TRY(candidate_new(r, p, om_schedule_new(p, r->scratch), &s.file));
	s.best = s.file;
	s.model = model_new(r, p, &s.file);
	out->is_limited = true;
	for (uint64_t left = rounds_left(p, nodes), round = FIRST_ROUND; left && out->is_limited; left /= ROUND_FACTOR) {
		OM_TRY(search_round(&s, round, out));
		if (om_session_is_stopped(r->session))
			break;
		round *= ROUND_FACTOR;
	}
	om_count(r, "bytes_before", s.file_size.bytes);
	om_count(r, "bytes_after", s.best_size.bytes);
	om_count(r, "bytes_saved", s.file_size.bytes - s.best_size.bytes);
	if (s.best.schedule != s.file.schedule)
		commit(p, s.best.schedule);
	return OM_OK;
}

/* ---- Breadth-first order. ---- */

static om_status
order_bfs(om_run *r, om_prog *p, struct outcome *out)
{
	const char *priority = om_option(r, "priority");
	const bool by_bytes = strcmp(priority, "bytes") == 0;
	struct changes changes = {0};
	struct candidate file;

	if (!by_bytes && strcmp(priority, "first") != 0)
		return om_fail(r->session, OM_USAGE, "option priority must be first or bytes, not %s", priority);
	OM_TRY(candidate_new(r, p, om_schedule_new(p, r->scratch), &file));
	struct model *m = model_new(r, p, &file);
	*out = (struct outcome){0};
	for (om_block *b = p->first; b; b = b->next) {
		if (depth_of(b) == NONE || b->nop == 0)
			continue;
		const struct problem *q = problem_new(m, b);
		const om_schedule_problem abstract = {q->op, q->storage, q->nop, (uint32_t)q->nstorage};
		uint32_t *order = OM_NEWN(m->mem, uint32_t, q->nop);
		om_schedule_bfs(&abstract, by_bytes, order);
		if (is_as_it_was(order, q->nop))
			continue;
		permute(q, b, order, &changes);
	}
	commit(p, changed(r, p, file.schedule, &changes, false));
	return OM_OK;
}

/* ---- The pass. ---- */

/* `was`: the order before this pass. */
static void
publish(om_run *r, om_prog *p, const om_schedule *was, const char *method, struct outcome out)
{
	const om_schedule *original = was->original ? was->original : was;
	om_schedule *now = om_schedule_new(p, p->mem);
	const uint64_t moved = count_moved(p, now, original);

	now->method = method;
	now->is_proven = out.is_proven;
	now->is_limited = out.is_limited;
	now->is_original = moved == 0;
	now->original = moved ? original : NULL;
	om_assignment_schedule(p, now);
	om_timeline(p);
	om_count(r, "ops_moved", moved);
}

static om_status
run(om_run *r, om_prog *p)
{
	static const struct {
		const char *name;
		om_status (*order)(om_run *r, om_prog *p, struct outcome *out);
	} ways[] = {{"original", NULL}, {"bfs", order_bfs}, {"min-memory", order_min_memory}};
	const char *method = om_option(r, "method");
	struct outcome out = {0};
	size_t k = 0, n = sizeof ways / sizeof ways[0];

	while (k < n && strcmp(ways[k].name, method) != 0)
		k++;
	if (k == n)
		return om_fail(r->session, OM_USAGE, "option method must be original, bfs or min-memory, not %s", method);
	/* The peak of one order says little about that of streams, and an order for it little about time. */
	k = r->request->streams && ways[k].order == order_min_memory ? 0 : k;
	const om_schedule *was = om_schedule_current(p, p->mem);
	if (ways[k].order && p->first->nop)
		OM_TRY(ways[k].order(r, p, &out));
	publish(r, p, was, ways[k].name, out);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"method", "min-memory", "original: keep the order; bfs: breadth-first; min-memory: minimize the peak, but keep the order if the plan has streams of workers"},
	{"priority", "first", "bfs: run the op that became ready first, or of 256 of those the one that frees most bytes (bytes)"},
	{"search-nodes", "196608", "min-memory: limit of the search, in sets of ops; it is done in rounds of 48, 768, 12288, ... of them.  In a block of N ops each counts as 1 + N / 4096"},
	{0}
};

static const om_pass_counter counters[] = {
	{"ops_moved", "ops that were moved"},
	{"bytes_before", "size of the arena in the original order, if it was computed"},
	{"bytes_after", "size of the arena in the new order"},
	{"bytes_saved", "difference of the two"},
	{"search_nodes", "sets of ops that the search visited"},
	{0}
};

/* A parallel-safe plan does not depend on the order. */
static const om_pass_flag flags[] = {
	{.name = "parallel-safe", .option = "method", .value = "original", .brief = "keep the original order"},
	{.name = "schedule", .option = "method", .arg = "NAME", .adds = true,
		.brief = "order of the ops: `original`, `bfs`, or `min-memory`"},
	{0}
};

OM_PASS(
	.name = "schedule",
	.brief = "reorder ops to lower the peak",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.gives = OM_HAS_SCHEDULE,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.options = options,
	.counters = counters,
	.flags = flags,
	.run = run)
