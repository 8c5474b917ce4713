/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier's simulation of blocks and branches.
 *
 * Each branch starts from a copy of the state; after an If, bytes that a branch wrote have no owner.
 * An unknown operator may run its bodies any number of times: they are simulated from a state in which
 * everything that they may write has been written already.
 */
#include <config.h>

#include "verify/simulator.h"
#include "ir/query.h"

/* ---- Moves. ---- */

void
om_sim_add_move(struct moves *m, const om_value *from, const om_value *to)
{
	const struct move one = {.from = from, .to = to};

	if (from || to)
		OM_PUSH(m->mem, m->move, m->n, m->cap, one);
}

om_status
om_sim_read_moves(struct sim *c, const om_op *op, struct moves *m)
{
	for (size_t k = 0; k < m->n; k++) {
		struct move *one = &m->move[k];
		if (!one->from)
			continue;
		OM_TRY(m->is_quiet ? om_sim_check_whole(c, op, one->from) : om_sim_read(c, op, one->from));
		one->home = c->home[one->from->id];
		one->is = c->content[one->from->id];
	}
	return OM_OK;
}

bool
om_sim_is_same_place(const struct home *a, const struct home *b)
{
	if (!a->tracked || !b->tracked || a->space != b->space || a->lower != b->lower || a->nother != b->nother)
		return false;
	if (a->nother && a->found != b->found)
		return false;
	for (uint32_t k = 0; k < a->nother; k++)
		if (a->other[k].space != b->other[k].space || a->other[k].lower != b->other[k].lower)
			return false;
	return true;
}

static bool
stays(const struct sim *c, const struct move *m)
{
	return m->from && om_sim_is_watched(c, m->to) && om_sim_is_same_place(&m->home, &c->home[m->to->id]);
}

static om_status
check_fits(struct sim *c, const om_op *op, const struct move *m)
{
	if (!om_sim_is_watched(c, m->to) || !m->from || !m->home.tracked || m->home.bytes <= c->home[m->to->id].bytes)
		return OM_OK;
	return BAD_AT(c, op, "%s is copied from %s, which has more bytes", m->to->name, m->from->name);
}

static om_status
hand_on(struct sim *c, const om_op *op, const struct move *m, bool is_quiet)
{
	OM_TRY(check_fits(c, op, m));
	if (!stays(c, m))
		return om_sim_write(c, op, m->to);
	if (!is_quiet)
		om_sim_begin(c, m->to);
	c->content[m->to->id] = m->is;
	c->home[m->to->id].other = m->home.other;
	return OM_OK;
}

/* Copies are made one after the other: none may overwrite the source of another. */
static om_status
check_unspoilt(struct sim *c, const om_op *op, const struct move *m)
{
	om_owned_interval bad;

	if (!om_sim_is_watched(c, m->from) || om_sim_is_there(c, m->from, &bad))
		return OM_OK;
	return BAD_AT(c, op, "%s is written over %s (%s) in the step that reads it",
		om_sim_owner_text(c, bad.owner).s, m->from->name, om_sim_location_text(c, m->from).s);
}

om_status
om_sim_run_moves(struct sim *c, const om_op *op, struct moves *m)
{
	for (size_t k = 0; k < m->n; k++)
		OM_TRY(hand_on(c, op, &m->move[k], m->is_quiet));
	for (size_t k = 0; k < m->n && !m->is_quiet; k++)
		OM_TRY(check_unspoilt(c, op, &m->move[k]));
	for (size_t k = 0; k < m->n; k++)
		OM_TRY(om_sim_check_written(c, op, m->move[k].to));
	return OM_OK;
}

/* ---- If. ---- */

/* Is the condition a constant that selects the other branch?  The outputs then have the sizes of the
 * other branch's results, and the results of this one are not used.  A default that the caller may
 * override is not a known condition. */
static bool
is_dead(const om_op *op, const om_block *b)
{
	const om_value *v = op->nin ? op->in[0] : NULL;

	if (!v || !v->is_const)
		return false;
	return (om_value_is(v, true) && b == om_attr_graph(op, "else_branch"))
	    || (om_value_is(v, false) && b == om_attr_graph(op, "then_branch"));
}

static om_status
run_branch(struct sim *c, const om_op *op, const om_block *b, uint32_t end, om_arena *mem)
{
	struct moves m = {.mem = mem};

	OM_TRY(om_sim_run_block(c, b));
	if (is_dead(op, b))
		return OM_OK;
	for (uint32_t k = 0; k < b->nresult || k < op->nout; k++)
		om_sim_add_move(&m, k < b->nresult ? b->result[k] : NULL, k < op->nout ? op->out[k] : NULL);
	OM_TRY(om_sim_read_moves(c, op, &m));
	c->now = end;
	return om_sim_run_moves(c, op, &m);
}

/* Simulate a branch in a copy of the state, which is discarded; `wrote` receives its writes. */
static om_status
try_branch(struct sim *c, const om_op *op, const om_block *b, uint32_t chosen, uint32_t end, struct log *wrote)
{
	om_interval_map *const before = c->state;
	struct log *const outer = c->log;
	const struct branch *const around = c->branch;
	om_arena *mem = om_sim_arena(c);

	c->state = om_interval_map_copy(before, mem);
	c->log = wrote;
	c->branch = &(struct branch){around, c->step, chosen};
	const om_status st = run_branch(c, op, b, end, mem);
	c->branch = around;
	c->log = outer;
	c->state = before;
	om_arena_free(mem);
	return st;
}

/* Simulate each branch from the same state: any of them may run. */
static om_status
try_branches(struct sim *c, const om_op *op, struct log *wrote)
{
	const uint32_t chosen = c->step;
	uint32_t end = c->step + 1;

	c->now = c->step++;
	for (uint32_t k = 0; k < op->nbody; k++)
		end += om_sim_steps(op->body[k]);
	for (uint32_t k = 0; k < op->nin; k++)
		OM_TRY(om_sim_read(c, op, op->in[k]));
	for (uint32_t k = 0; k < op->nbody; k++)
		OM_TRY(try_branch(c, op, op->body[k], chosen, end, wrote));
	for (size_t k = 0; k < wrote->n; k++) {
		wrote->r[k].stale = true;
		om_sim_set(c, &wrote->r[k]);
	}
	c->now = c->step++;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			om_sim_take(c, op->out[k], false);
	return OM_OK;
}

static om_status
run_if(struct sim *c, const om_op *op)
{
	struct log wrote = {.mem = om_sim_arena(c)};
	const om_status st = try_branches(c, op, &wrote);

	om_arena_free(wrote.mem);
	return st;
}

/* ---- Unknown operators. ---- */

/* Age the value at every arena location that it may have. */
static void
age_value(struct sim *c, const om_value *v)
{
	const uint32_t m = c->mover[v->id];
	const struct home *h = &c->home[v->id];

	om_sim_take(c, v, true);
	for (uint32_t k = 0; m != OM_NOBODY && h->tracked && k < c->view[m]->period; k++) {
		const om_region *r = &c->view[m]->off[k];
		const uint64_t at = r->offset + c->delta[v->id];
		if (r->base == OM_NO_VALUE)
			om_sim_set(c, &(om_owned_interval){r->arena, at, at + h->bytes, v->id, 0, true});
	}
}

/* Mark everything that a run of `b` may write as written by an earlier run. */
static void
age(struct sim *c, const om_block *b)
{
	for (uint32_t k = 0; k < b->nparam; k++)
		age_value(c, b->param[k]);
	for (const om_op *op = b->first; op; op = op->next) {
		if (op->is_folded)
			continue;
		for (uint32_t k = 0; k < op->nbody; k++)
			age(c, op->body[k]);
		om_owned_interval r = om_sim_scratch_range(c, op);
		r.stale = true;
		om_sim_set(c, &r);
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k] && !om_sim_is_view(c, op->out[k]))
				age_value(c, op->out[k]);
	}
}

/* The bodies of an unknown op may run any number of times, in any order, with any parameters. */
static om_status
run_bodies(struct sim *c, const om_op *op, om_arena *mem)
{
	struct moves m = {.mem = mem};

	c->now = c->step++;
	for (uint32_t k = 0; k < op->nin; k++)
		om_sim_add_move(&m, op->in[k], NULL);
	for (uint32_t k = 0; k < op->nbody; k++)
		for (uint32_t i = 0; i < op->body[k]->nparam; i++)
			om_sim_add_move(&m, NULL, op->body[k]->param[i]);
	OM_TRY(om_sim_read_moves(c, op, &m));
	OM_TRY(om_sim_run_moves(c, op, &m));
	for (uint32_t k = 0; k < op->nbody; k++) {
		const om_block *b = op->body[k];
		for (uint32_t i = 0; i < op->nbody; i++)
			age(c, op->body[i]);
		for (uint32_t i = 0; i < b->nparam; i++)
			om_sim_take(c, b->param[i], false);
		OM_TRY(om_sim_run_block(c, b));
		for (uint32_t i = 0; i < b->nresult; i++)
			OM_TRY(om_sim_read(c, op, b->result[i]));
	}
	c->now = c->step++;
	return om_sim_write_outputs(c, op);
}

static om_status
run_opaque(struct sim *c, const om_op *op)
{
	om_arena *mem = om_sim_arena(c);
	const om_status st = run_bodies(c, op, mem);

	om_arena_free(mem);
	return st;
}

/* ---- Blocks. ---- */

static uint32_t
op_steps(const om_op *op)
{
	uint32_t n = 1 + (op->nbody > 0);

	for (uint32_t k = 0; k < op->nbody; k++)
		n += om_sim_steps(op->body[k]);
	return n;
}

uint32_t
om_sim_steps(const om_block *b)
{
	uint32_t n = 1;

	for (const om_op *op = b->first; op; op = op->next)
		n += op_steps(op);
	return n;
}

enum { MOST_OPS = 1 << 26 };   /* takes some minutes */

static om_status
run_op(struct sim *c, const om_op *op)
{
	if (op->is_folded) {   /* no work at run time, but it takes steps */
		c->step += op_steps(op);
		return OM_OK;
	}
	if (++c->nrun > MOST_OPS)
		return BAD(c, "the multi-views of the plan have too many iterations to check");
	if (op->nbody == 0)
		return om_sim_run_plain(c, op);
	switch (op->opdef ? op->opdef->control : OM_PLAIN) {
	case OM_IF: return run_if(c, op);
	case OM_SCAN:
		if (op->opdef->until == 8)  /* Scan-8 runs once for each batch element, with separate
					       inputs */
			break;
		return om_sim_run_loop(c, op);
	case OM_LOOP: return om_sim_run_loop(c, op);
	case OM_PLAIN: case OM_SEQUENCE_MAP: break;
	}
	return run_opaque(c, op);
}

om_status
om_sim_run_block(struct sim *c, const om_block *b)
{
	for (const om_op *op = b->first; op; op = op->next) {
		OM_TRY(run_op(c, op));
		c->node += b == c->p->first;
	}
	c->now = c->step++;
	return OM_OK;
}
