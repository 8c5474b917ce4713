/* SPDX-License-Identifier: Apache-2.0 */
/* Ops with bodies: If, Loop, Scan.
 *
 * Nothing is copied when the plan assigns source and destination the same address:
 * a parameter of a body and the result of the previous iteration, or an output of an
 * If and the result of a branch.  To that end, values with a multi-view get a new
 * address in every iteration.  Otherwise elements are copied, and the bytes counted;
 * the values of one transition are staged outside the arenas if one copy would
 * overwrite the source of another.
 * Values of outer blocks are used in place, without a copy. */
#include <config.h>

#include <assert.h>

#include "exec/control_flow.h"
#include "base/shape.h"
#include "base/strided_copy.h"
#include "ir/query.h"
#include "opdef/op_context.h"

static void
stage_new(om_exec *e, struct stage *st, uint32_t n)
{
	st->room = OM_NEWN(e->mem, struct room, n);
	st->t = OM_NEWN(e->mem, om_tensor, n);
	st->kind = OM_NEWN(e->mem, om_kind, n);
	st->was = OM_NEWN(e->mem, void *, n);
	st->gives = OM_NEWN(e->mem, bool, n);
}

om_status
om_stage_put(om_exec *e, struct stage *st, uint32_t k, const om_value *v, const om_tensor *t)
{
	uint64_t bytes;

	st->kind[k] = v->type.kind;
	if (v->type.kind != OM_TENSOR) {  /* objects are shared, not copied */
		st->t[k] = *t;
		return OM_OK;
	}
	om_tensor_bytes(t->type, &t->shape, &bytes);
	OM_TRY(om_room_fit(e, &st->room[k], bytes, "loop results"));
	om_elements_copy(st->room[k].data, t, bytes);
	st->t[k] = *t;
	st->t[k].data = st->room[k].data;
	st->t[k].splat = false;
	e->stats.copied_bytes += bytes;
	return OM_OK;
}

om_status
om_control_flow_stage(om_exec *e, struct stage *st, const om_block *b, uint32_t from, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		OM_TRY(om_stage_put(e, st, k, b->result[from + k], &e->slot[b->result[from + k]->id]));
	return OM_OK;
}

void
om_control_flow_poison(om_exec *e, uint32_t step)
{
	if (e->poison)
		om_poison_at(e, step);
}

/* A loop-carried value may change between an optional and its element type. */
static om_status
put_other_kind(om_exec *e, om_value *to, om_kind from, const om_tensor *t)
{
	const om_container *o = t->data;

	if (from == OM_OPTIONAL) {
		if (o->n == 0)
			return om_fail(e->session, OM_RUN, "%s is an empty optional in this run", to->name);
		return om_value_put(e, to, o->item);
	}
	om_tensor *item = OM_NEW(e->keep, om_tensor);
	om_container *made = OM_NEW(e->keep, om_container);
	if (from == OM_TENSOR)
		OM_TRY(om_objects_copy(e, t, item));
	else
		*item = *t;
	*made = (om_container){.n = 1, .item = item};
	return om_value_put(e, to, &(om_tensor){.type = t->type, .data = made});
}

static om_status
put_one(om_exec *e, om_value *to, om_kind from, const om_tensor *t)
{
	if (!to)
		return OM_OK;
	if ((to->type.kind == OM_OPTIONAL) != (from == OM_OPTIONAL))
		return put_other_kind(e, to, from, t);
	return om_value_put(e, to, t);
}

om_status
om_control_flow_put(om_exec *e, om_value *const *to, const struct stage *st, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		OM_TRY(put_one(e, to[k], st->kind[k], &st->t[k]));
	return OM_OK;
}

static bool
overlap(const om_tensor *a, const om_tensor *b)
{
	uint64_t na, nb;
	const uintptr_t pa = (uintptr_t)a->data, pb = (uintptr_t)b->data;

	return a->data && b->data && om_tensor_bytes(a->type, &a->shape, &na)
	    && om_tensor_bytes(b->type, &b->shape, &nb) && pa < pb + nb && pb < pa + na;
}

static bool
is_there(const om_exec *e, const om_value *to, const om_tensor *from)
{
	return !to || (e->slot[to->id].data == from->data && e->is_fixed[to->id] && !from->splat);
}

/* Find the values outside of the arenas that give their buffers to those that they are carried to, without a copy.  They
 * are values of the body that ends here: results of its ops, and after the last iteration its parameters. */
static void
find_given(const om_exec *e, const struct step *s, om_value *const *to, om_value *const *from, struct stage *st, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		const om_value *v = from[k];
		const bool is_last = to == s->op->out;
		bool gives = to[k] && v->block->owner == s->op && (v->def ? !v->def->is_folded : is_last) && !v->is_const
			&& om_value_may_give(e, v) && om_value_may_receive(e, to[k]) && st->t[k].data == e->slot[v->id].data;
		for (uint32_t i = 0; gives && i < k; i++)
			gives = from[i] != v;
		st->gives[k] = gives;
	}
}

/* Can the tensors of `st` be copied one after the other, without overwriting a later source? */
static bool
is_apart(const om_exec *e, om_value *const *to, const struct stage *st, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		if (st->kind[k] != OM_TENSOR || st->gives[k] || is_there(e, to[k], &st->t[k]))
			continue;
		for (uint32_t i = k + 1; i < n; i++)
			if (st->kind[i] == OM_TENSOR && !st->gives[i] && !is_there(e, to[i], &st->t[i])
			    && overlap(&e->slot[to[k]->id], &st->t[i]))
				return false;
	}
	return true;
}

/* Assign `from` to `to` as a parallel copy; st->t must be up to date.  Buffers are given last, when the copies do not
 * read the old elements of `to` any more. */
static om_status
put_all(const struct step *s, om_value *const *to, om_value *const *from, uint32_t n)
{
	om_exec *e = s->exec;
	struct stage *st = &s->flow->stage;

	find_given(e, s, to, from, st, n);
	const bool apart = is_apart(e, to, st, n);
	for (uint32_t k = 0; k < n && !apart; k++)
		if (!st->gives[k] && !is_there(e, to[k], &st->t[k]))
			OM_TRY(om_stage_put(e, st, k, from[k], &st->t[k]));
	for (uint32_t k = 0; k < n; k++)
		if (!st->gives[k] && !is_there(e, to[k], &st->t[k]))
			OM_TRY(put_one(e, to[k], st->kind[k], &st->t[k]));
	for (uint32_t k = 0; k < n; k++)
		if (st->gives[k])
			om_value_give(e, from[k], to[k], &st->t[k]);
	return OM_OK;
}

static void
look_at_all(const om_exec *e, om_value *const *from, struct stage *st, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		st->t[k] = e->slot[from[k]->id];
		st->kind[k] = from[k]->type.kind;
	}
}

/* Save the addresses before rotation. */
static void
note_places(const om_exec *e, om_value *const *from, struct stage *st, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		st->was[k] = e->slot[from[k]->id].data;
}

/* Are all values already at their destinations?  Then no copy is required. */
static bool
are_there(const om_exec *e, om_value *const *to, om_value *const *from, const struct stage *st, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (!to[k] || e->slot[to[k]->id].data != st->was[k] || !e->is_fixed[to[k]->id]
		    || e->slot[from[k]->id].splat)
			return false;
	return true;
}

/* The single element of `v`, which controls execution. */
static om_status
decider(const struct step *s, const om_value *v, om_dtype type, const void **data)
{
	const om_tensor *t = &s->exec->slot[v->id];

	*data = t->data;
	if (t->type == type && t->data && om_shape_count(&t->shape) == 1)
		return OM_OK;
	return om_op_fail(s->exec->session, OM_RUN, s->op, "%s must be one element of type %s", v->name,
		om_dtype_text(type));
}

/* A boolean from the caller or a file may be any byte; nonzero is true. */
static om_status
decide(const struct step *s, const om_value *v, bool *yes)
{
	const void *data;

	OM_TRY(decider(s, v, OM_BOOL, &data));
	*yes = *(const uint8_t *)data != 0;
	return OM_OK;
}

/* ---- If. ---- */

/* Does a result share its storage with an output?  Its bytes are still live after the branch. */
static bool
any_there(const om_exec *e, om_value *const *to, const struct stage *st, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (to[k] && is_there(e, to[k], &st->t[k]))
			return true;
	return false;
}

static om_status
run_if(struct step *s)
{
	om_exec *e = s->exec;
	const om_op *op = s->op;
	bool which;

	OM_TRY(decide(s, op->in[0], &which));
	const om_block *b = s->flow->branch[which];
	om_control_flow_poison(e, e->first_step[op->id]);
	OM_TRY(om_walk_run(e, b));
	note_places(e, b->result, &s->flow->stage, op->nout);
	if (op->nout && are_there(e, op->out, b->result, &s->flow->stage, op->nout))
		return OM_OK;
	look_at_all(e, b->result, &s->flow->stage, op->nout);
	const bool in_place = any_there(e, op->out, &s->flow->stage, op->nout);
	OM_TRY(put_all(s, op->out, b->result, op->nout));
	if (!in_place)
		om_control_flow_poison(e, e->body_end[b->id]);
	return OM_OK;
}

/* ---- Rotation. ---- */

static unsigned char *
address(const om_exec *e, const om_region *r)
{
	if (r->base == OM_NO_VALUE)
		return e->arena[r->arena].data + e->guard + r->offset;
	return (unsigned char *)e->slot[r->base].data + r->offset;
}

static void
rotation_find(const om_exec *e, struct rotation *t)
{
	for (uint32_t k = 0; k < t->view->nprologue; k++)
		t->at[k] = address(e, &t->view->first[k]);
	for (uint32_t k = 0; k < t->view->period; k++)
		t->at[t->view->nprologue + k] = address(e, &t->view->off[k]);
	t->phase = 0;
}

static unsigned char *
rotation_at(const struct rotation *t, int64_t iteration, uint32_t phase)
{
	const uint32_t k = iteration < t->view->nprologue ? (uint32_t)iteration : t->view->nprologue + phase;
	return t->at[k] + iteration * t->view->stride;
}

/* Set the addresses of all rotated values for `iteration`, the one after the last call's. */
static void
rotate_all(om_exec *e, struct flow *f, int64_t iteration)
{
	for (uint32_t k = 0; k < f->nrotation; k++) {
		struct rotation *t = &f->rotation[k];
		om_exec_move(e, t->v, rotation_at(t, iteration, t->phase));
		if (++t->phase == t->view->period)
			t->phase = 0;
	}
}

static void
turn_start(struct step *s)
{
	struct flow *f = s->flow;

	for (uint32_t k = 0; k < f->nrotation; k++)
		rotation_find(s->exec, &f->rotation[k]);
	for (uint32_t k = 0; k < f->nstage; k++)
		if (f->output[k].view)
			rotation_find(s->exec, &f->output[k]);
	rotate_all(s->exec, f, 0);
}

/* Outputs are at the addresses of the parameters of one more iteration, or are copied. */
static om_status
rotation_end(struct step *s, om_value *const *param, int64_t iterations)
{
	om_exec *e = s->exec;
	struct flow *f = s->flow;

	for (uint32_t k = 0; k < f->nstage; k++) {
		const struct rotation *t = &f->output[k];
		if (t->view)
			om_exec_move(e, t->v, rotation_at(t, iterations, (uint32_t)(iterations % t->view->period)));
	}
	look_at_all(e, param, &f->stage, f->nstage);
	return put_all(s, s->op->out, param, f->nstage);
}

/* Carry the results over to the parameters of the next iteration. */
static om_status
turn_round(struct step *s, om_value *const *result, om_value *const *param, int64_t next)
{
	struct flow *f = s->flow;

	note_places(s->exec, result, &f->stage, f->nstage);
	rotate_all(s->exec, f, next);
	if (are_there(s->exec, param, result, &f->stage, f->nstage))
		return OM_OK;
	look_at_all(s->exec, result, &f->stage, f->nstage);
	for (uint32_t k = 0; k < f->nstage; k++)
		f->stage.t[k].data = f->stage.was[k];
	return put_all(s, param, result, f->nstage);
}

/* Release the strings and objects of the iterations so far, except those carried or collected. */
static void
release_round(struct step *s, om_value *const *param)
{
	struct flow *f = s->flow;
	struct om_mover *m = om_objects_move_start(s->exec, f);

	if (!m)
		return;
	for (uint32_t k = 0; k < f->nstage; k++)
		om_objects_move_value(m, &param[k]->type, &s->exec->slot[param[k]->id]);
	om_series_move_all(f, m);
	om_objects_move_end(m, f);
}

/* ---- Loop. ---- */

/* A scalar parameter, declared with rank 0 or 1. */
static om_status
settle_scalar(om_exec *e, om_value *v, om_dtype type)
{
	om_shape shape = {.rank = v->shape.rank == 1, .dim = {1}};

	return e->is_fixed[v->id] ? OM_OK : om_value_settle(e, v, type, &shape);
}

struct iterations {
	int64_t max;              /* trip count; -1: until the condition is false */
	int64_t i;
	bool go;
};

static om_status
count_iterations(const struct step *s, struct iterations *r)
{
	const void *data;

	*r = (struct iterations){.max = -1, .go = true};
	if (s->op->nin > 0 && s->op->in[0]) {
		OM_TRY(decider(s, s->op->in[0], OM_INT64, &data));
		r->max = *(const int64_t *)data > 0 ? *(const int64_t *)data : 0;
	}
	if (s->op->nin > 1 && s->op->in[1])
		OM_TRY(decide(s, s->op->in[1], &r->go));
	return OM_OK;
}

static om_status
count_iteration(const struct step *s)
{
	om_exec *e = s->exec;

	if (++e->iterations <= e->options.max_iterations)
		return OM_OK;
	return om_op_fail(e->session, OM_RUN, s->op, "the loops of the run exceed the limit of %llu iterations",
		(unsigned long long)e->options.max_iterations);
}

static om_status
run_iteration(struct step *s, const om_block *b, struct iterations *r)
{
	om_exec *e = s->exec;
	const uint32_t n = s->flow->nstage;

	OM_TRY(count_iteration(s));
	*(int64_t *)e->slot[b->param[0]->id].data = r->i;
	*(bool *)e->slot[b->param[1]->id].data = r->go;
	OM_TRY(om_walk_run(e, b));
	OM_TRY(om_series_add_all(s, b, 1 + n));
	OM_TRY(decide(s, b->result[0], &r->go));
	r->i++;
	OM_TRY(turn_round(s, b->result + 1, b->param + 2, r->i));
	if (s->flow->makes_objects)
		release_round(s, b->param + 2);
	om_control_flow_poison(e, e->body_end[b->id]);
	return OM_OK;
}

static om_status
run_loop(struct step *s)
{
	om_exec *e = s->exec;
	const om_op *op = s->op;
	const om_block *b = op->body[0];
	const uint32_t n = s->flow->nstage;

	struct iterations r;

	OM_TRY(count_iterations(s, &r));
	turn_start(s);
	om_objects_enter(e, s->flow);
	om_value *const *in = n ? op->in + 2 : NULL;
	look_at_all(e, in, &s->flow->stage, n);
	OM_TRY(put_all(s, b->param + 2, in, n));
	om_series_start(s->flow, op->out + n, op->nout - n);
	OM_TRY(settle_scalar(e, b->param[0], OM_INT64));
	OM_TRY(settle_scalar(e, b->param[1], OM_BOOL));
	om_control_flow_poison(e, e->first_step[op->id]);
	while (r.go && (r.max < 0 || r.i < r.max))
		OM_TRY(run_iteration(s, b, &r));
	OM_TRY(rotation_end(s, b->param + 2, r.i));
	OM_TRY(om_series_end_all(s, b, 1 + n));
	om_objects_leave(e, s->flow);
	return OM_OK;
}

/* ---- Scan. ---- */

/* Slice geometry of scanned input `k` in this run; `*n` is the extent common to all of them. */
static om_status
scan_axis(const struct step *s, uint32_t k, int64_t *n)
{
	const om_tensor *t = &s->flow->slices.t[k];
	struct direction *d = &s->flow->scanned[k];

	if (!om_axis(d->axis, t->shape.rank, &d->at))
		return om_op_fail(s->exec->session, OM_RUN, s->op, "scan input %u has no axis %lld", k,
			(long long)d->axis);
	if (*n >= 0 && *n != t->shape.dim[d->at])
		return om_op_fail(s->exec->session, OM_RUN, s->op, "scan input %u has length %lld, others %lld",
			k, (long long)t->shape.dim[d->at], (long long)*n);
	*n = d->n = t->shape.dim[d->at];
	if (om_dtype_bits(t->type) < 8)
		return om_op_fail(s->exec->session, OM_UNSUPPORTED, s->op,
			"scan input %u has elements smaller than a byte", k);
	d->shape = (om_shape){.rank = t->shape.rank - 1};
	for (int i = 0; i < d->shape.rank; i++)
		d->shape.dim[i] = t->shape.dim[i + (i >= d->at)];
	om_tensor_bytes(t->type, &d->shape, &d->bytes);
	d->outer = om_shape_span(&d->shape, 0, d->at);
	d->inner = d->outer ? d->bytes / (uint64_t)d->outer : 0;
	return OM_OK;
}

/* The iteration's slice of input `k` becomes the parameter `v`. */
static om_status
put_slice(struct step *s, uint32_t k, int64_t iteration, om_value *v)
{
	om_exec *e = s->exec;
	const om_tensor *t = &s->flow->slices.t[k];
	const struct direction *d = &s->flow->scanned[k];
	const int64_t at = d->is_backward ? d->n - 1 - iteration : iteration;

	OM_TRY(om_value_settle(e, v, t->type, &d->shape));
	for (int64_t o = 0; o < d->outer && d->inner; o++)
		memcpy((char *)e->slot[v->id].data + (uint64_t)o * d->inner,
			(const char *)t->data + (uint64_t)(o * d->n + at) * d->inner, d->inner);
	e->stats.copied_bytes += d->bytes;
	return OM_OK;
}

/* A scanned input is read in every iteration, so it is copied if the plan does not keep it
 * live to the end of the body. */
static om_status
keep_scanned(struct step *s, uint32_t nstate)
{
	om_exec *e = s->exec;
	struct stage *st = &s->flow->slices;

	for (uint32_t k = 0; k < s->flow->nslices; k++) {
		const om_value *v = s->op->in[nstate + k];
		const om_placement *p = e->plan ? &e->plan->place[v->id] : NULL;
		if (p && p->where == OM_IN_ARENA && p->live.last < e->body_end[s->op->body[0]->id])
			OM_TRY(om_stage_put(e, st, k, v, &s->in[nstate + k]));
		else
			st->t[k] = s->in[nstate + k];
	}
	return OM_OK;
}

static om_status
scan_start(struct step *s, uint32_t nstate, int64_t *n)
{
	struct flow *f = s->flow;

	turn_start(s);
	look_at_all(s->exec, s->op->in, &f->stage, nstate);
	OM_TRY(put_all(s, s->op->body[0]->param, s->op->in, nstate));
	OM_TRY(keep_scanned(s, nstate));
	for (uint32_t k = 0; k < f->nslices; k++)
		OM_TRY(scan_axis(s, k, n));
	om_series_start(f, s->op->out + nstate, s->op->nout - nstate);
	for (uint32_t k = 0; k < f->nseries; k++) {
		f->series[k].axis = (int)f->joined[k].axis;
		f->series[k].is_backward = f->joined[k].is_backward;
		f->series[k].total = *n;
	}
	return OM_OK;
}

static om_status
run_scan(struct step *s)
{
	om_exec *e = s->exec;
	const om_block *b = s->op->body[0];
	const uint32_t nstate = s->flow->nstage;
	int64_t n = -1;

	om_step_look(s);
	om_objects_enter(e, s->flow);
	OM_TRY(scan_start(s, nstate, &n));
	om_control_flow_poison(e, e->first_step[s->op->id]);
	for (int64_t i = 0; i < n; i++) {
		OM_TRY(count_iteration(s));
		for (uint32_t k = 0; k < s->flow->nslices; k++)
			if (!e->view[b->param[nstate + k]->id])
				OM_TRY(put_slice(s, k, i, b->param[nstate + k]));
		OM_TRY(om_walk_run(e, b));
		OM_TRY(om_series_add_all(s, b, nstate));
		OM_TRY(turn_round(s, b->result, b->param, i + 1));
		if (s->flow->makes_objects)
			release_round(s, b->param);
		om_control_flow_poison(e, e->body_end[b->id]);
	}
	OM_TRY(rotation_end(s, b->param, n > 0 ? n : 0));
	OM_TRY(om_series_end_all(s, b, nstate));
	om_objects_leave(e, s->flow);
	return OM_OK;
}

/* ---- Building. ---- */

static om_status
wrong(const struct step *s, const char *what)
{
	return om_op_fail(s->exec->session, OM_INVALID, s->op, "%s", what);
}

static om_status
new_if(struct step *s)
{
	const om_op *op = s->op;
	const om_block *yes = om_attr_graph(op, "then_branch"), *no = om_attr_graph(op, "else_branch");

	if (op->nin != 1 || !op->in[0] || !yes || !no)
		return wrong(s, "requires a condition and two branches");
	if (yes->nresult < op->nout || no->nresult < op->nout)
		return wrong(s, "the branches have fewer results than the op has outputs");
	s->flow->branch[0] = no;
	s->flow->branch[1] = yes;
	s->flow->nstage = op->nout;
	s->run = run_if;
	return OM_OK;
}

static om_status
new_loop(struct step *s)
{
	const om_op *op = s->op;
	const uint32_t n = op->nin > 2 ? op->nin - 2 : 0;

	if (op->nbody != 1)
		return wrong(s, "requires one body");
	const om_block *b = op->body[0];
	if (b->nparam != n + 2 || b->nresult < n + 1 || op->nout > b->nresult - 1 || op->nout < n)
		return wrong(s, "the inputs and outputs of the body do not match those of the op");
	s->flow->nstage = n;
	s->flow->nseries = b->nresult - 1 - n;
	s->run = run_loop;
	return OM_OK;
}

static struct direction *
directions(const struct step *s, uint32_t n, const char *axes, const char *backward)
{
	struct direction *d = OM_NEWN(s->exec->mem, struct direction, n);

	for (uint32_t k = 0; k < n; k++) {
		d[k].axis = om_attr_int_at(s->op, axes, k, 0);
		d[k].is_backward = om_attr_int_at(s->op, backward, k, 0) != 0;
	}
	return d;
}

static om_status
new_scan(struct step *s)
{
	const om_op *op = s->op;
	const int64_t nscan = om_attr_int(op, "num_scan_inputs");

	if (op->opdef->until == 8)
		return om_batches_new(s);
	if (op->nbody != 1 || nscan < 1 || nscan > op->nin)
		return wrong(s, "requires one body and at least one input to scan");
	const om_block *b = op->body[0];
	const uint32_t n = op->nin - (uint32_t)nscan;
	if (b->nparam != op->nin || b->nresult < n || op->nout > b->nresult || op->nout < n)
		return wrong(s, "the inputs and outputs of the body do not match those of the op");
	s->flow->nstage = n;
	s->flow->nslices = (uint32_t)nscan;
	s->flow->nseries = b->nresult - n;
	s->flow->scanned = directions(s, s->flow->nslices, "scan_input_axes", "scan_input_directions");
	s->flow->joined = directions(s, s->flow->nseries, "scan_output_axes", "scan_output_directions");
	s->run = run_scan;
	return OM_OK;
}

static struct rotation
rotation_new(om_exec *e, const om_plan_multi_view *view)
{
	return (struct rotation){.v = e->prog->values[view->value], .view = view,
		.at = OM_NEWN(e->mem, unsigned char *, (size_t)view->nprologue + view->period)};
}

static void
find_turns(struct step *s)
{
	om_exec *e = s->exec;
	struct flow *f = s->flow;
	const uint32_t most = e->plan ? e->plan->nview : 0;

	for (uint32_t k = 0; k < most && s->op->opdef->control != OM_IF; k++)
		f->nrotation += e->prog->values[e->plan->view[k].value]->block == s->op->body[0]
			&& !e->plan->view[k].is_output;
	f->rotation = OM_NEWN(e->mem, struct rotation, f->nrotation);
	f->nrotation = 0;
	for (uint32_t k = 0; k < most && s->op->opdef->control != OM_IF; k++) {
		const om_plan_multi_view *view = &e->plan->view[k];
		if (e->prog->values[view->value]->block == s->op->body[0] && !view->is_output)
			f->rotation[f->nrotation++] = rotation_new(e, view);
	}
	f->output = OM_NEWN(e->mem, struct rotation, f->nstage);
	for (uint32_t k = 0; k < f->nstage && s->op->opdef->control != OM_IF; k++) {
		const om_plan_multi_view *view = s->op->out[k] ? e->view[s->op->out[k]->id] : NULL;
		if (view && view->is_output)
			f->output[k] = rotation_new(e, view);
	}
}

/* Are strings and objects released between iterations?  The string outputs of a Scan of version 8
 * are not contiguous while it runs, so there they are kept to its end. */
static bool
is_compacted(const om_op *op)
{
	bool any = op->opdef->control != OM_IF && om_objects_any(op->body[0]);

	for (uint32_t k = 0; any && op->opdef->until == 8 && k < op->body[0]->nresult; k++)
		any = op->body[0]->result[k]->type.elem != OM_STRING && op->body[0]->result[k]->type.elem != OM_UNDEFINED;
	return any;
}

om_status
om_control_flow_new(struct step *s)
{
	om_exec *e = s->exec;
	struct flow *f = s->flow = OM_NEW(e->mem, struct flow);

	switch (s->op->opdef->control) {
	case OM_IF: OM_TRY(new_if(s)); break;
	case OM_LOOP: OM_TRY(new_loop(s)); break;
	case OM_SCAN: OM_TRY(new_scan(s)); break;
	case OM_SEQUENCE_MAP: OM_TRY(om_each_new(s)); break;
	case OM_PLAIN: assert(0);
	}
	stage_new(e, &f->stage, f->nstage);
	stage_new(e, &f->slices, f->nslices);
	f->series = OM_NEWN(e->mem, struct series, f->nseries);
	find_turns(s);
	f->makes_objects = is_compacted(s->op);
	return OM_OK;
}

void
om_control_flow_free(struct step *s)
{
	struct flow *f = s->flow;

	for (uint32_t k = 0; f && k < f->nstage; k++)
		om_room_free(s->exec, &f->stage.room[k]);
	for (uint32_t k = 0; f && k < f->nslices; k++)
		om_room_free(s->exec, &f->slices.room[k]);
	for (uint32_t k = 0; f && k < f->nseries; k++)
		om_room_free(s->exec, &f->series[k].room);
}
