/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier's simulation of loops.
 *
 * Iterations are simulated one after the other, with every value at the address given by its
 * multi-view for that iteration.  If the trip count is not known before the run, the loop may end
 * after each iteration, and before the first: outputs must then be at the addresses that the plan
 * gives for that number of iterations.
 *
 * It is sufficient to simulate F + 2P iterations, where F is the longest prologue and P the common
 * period of all multi-views.  From iteration F on, the pattern of writes repeats with period P, so the
 * last writer of a byte, seen from a point in iteration i >= F + 2P, is the same as seen in iteration
 * i - P.  A known trip count is reduced by multiples of P.
 *
 * After the loop, an output whose address depends on the number of iterations is assumed to be at all
 * of these addresses: reads require it to be intact at each.
 */
#include <config.h>

#include "verify/simulator.h"
#include "base/arena_internal.h"
#include "ir/query.h"
#include "opdef/op_context.h"

enum { MOST_PERIOD = 64, MAX_ITERATIONS = 1 << 14 };

/* ---- Static checks of multi-views. ---- */

static const om_op *
loop_of(const om_plan_multi_view *v, const om_value *value)
{
	const om_op *op = v->is_output ? value->def : value->block->owner;

	if (!op || !op->opdef || op->nbody != 1 || op->opdef->until == 8
	    || (op->opdef->control != OM_LOOP && op->opdef->control != OM_SCAN))
		return NULL;
	return op;
}

static om_status
check_region(struct sim *c, const om_value *v, const om_op *loop, const om_region *r)
{
	const uint64_t bytes = c->home[v->id].bytes, each = om_dtype_bits(v->type.elem) / 8;
	uint64_t end;

	if (each > 1 && r->offset % each)
		return BAD(c,
			"a multi-view places %s at offset %llu, not a multiple of the element size of %llu "
			"bytes",
			v->name, (unsigned long long)r->offset, (unsigned long long)each);
	if (__builtin_add_overflow(r->offset, bytes, &end))
		return BAD(c, "a multi-view of %s has an offset that overflows", v->name);
	if (r->base == OM_NO_VALUE) {
		if (r->arena >= c->plan->narena || end > c->plan->arena[r->arena].bytes)
			return BAD(c, "a multi-view of %s exceeds arena %u", v->name, r->arena);
		return OM_OK;
	}
	if (r->base >= c->p->nvalue || !c->home[r->base].tracked)
		return BAD(c, "a multi-view of %s is based on a value without a placement", v->name);
	const om_value *base = c->p->values[r->base];
	if (base == v || !om_block_inside(base->is_const ? v->block : loop->block, base->block))
		return BAD(c,
			"a multi-view of %s is based on %s, not in a scope that encloses the loop", v->name, base->name);
	if (end > c->home[r->base].bytes)
		return BAD(c, "a multi-view of %s exceeds %s", v->name, base->name);
	return OM_OK;
}

/* The trip count of the loop, if the program determines it; else -1. */
static int64_t
loop_rounds(const om_op *op)
{
	const om_value *count = op->nin > 0 ? op->in[0] : NULL, *start = op->nin > 1 ? op->in[1] : NULL;
	const om_block *b = op->body[0];
	om_view_of of;

	if (start && start->is_const && om_value_is(start, false))
		return 0;
	if (!count || !count->is_const || !count->data || !count->data->data || count->type.elem != OM_INT64
	    || om_shape_count(&count->shape) != 1)
		return -1;
	const int64_t n = *(const int64_t *)count->data->data > 0 ? *(const int64_t *)count->data->data : 0;
	if (n == 0)
		return 0;
	const om_value *go = b->nresult ? b->result[0] : NULL;
	for (; go && !go->is_const && go->def && om_op_view(go->def, 0, &of); go = go->def->in[of.in])
		;
	const bool on = go && ((go->is_const && om_value_is(go, true)) || (b->nparam > 1 && go == b->param[1]));
	return on && (!start || (start->is_const && om_value_is(start, true))) ? n : -1;
}

static int64_t
scan_rounds(const om_op *op)
{
	const int64_t n = om_attr_int(op, "num_scan_inputs");
	size_t naxes = 0;
	const int64_t *axes = om_attr_ints(op, "scan_input_axes", &naxes);
	int axis;

	if (n < 1 || n > op->nin || !op->in[op->nin - n])
		return -1;
	const om_shape *s = &op->in[op->nin - n]->shape;
	return s->rank > 0 && om_axis(naxes ? axes[0] : 0, s->rank, &axis) ? s->dim[axis] : -1;
}

static int64_t
trip_count(const struct sim *c, const om_op *op)
{
	if (c->any_trip_count && c->any_trip_count[op->id])
		return -1;
	const int64_t n = op->opdef->control == OM_SCAN ? scan_rounds(op) : loop_rounds(op);
	return n < 0 ? -1 : n;
}

/* Is `v` a parameter of the body that gets a new value at the end of each iteration, the last one too? */
static bool
is_carried(const om_value *v, const om_op *loop)
{
	const om_block *b = loop->body[0];
	const bool scan = loop->opdef->control == OM_SCAN;
	const uint32_t first = scan ? 0 : 2;
	const uint32_t end = b->nparam - (scan ? (uint32_t)om_attr_int(loop, "num_scan_inputs") : 0);

	for (uint32_t k = first; k < end; k++)
		if (b->param[k] == v)
			return true;
	return false;
}

/* Checks slices: one for each iteration of a known number, all inside one value. */
static om_status
check_stride(struct sim *c, const om_value *v, const om_plan_multi_view *view, const om_op *loop)
{
	const int64_t n = trip_count(c, loop);
	const uint64_t bytes = c->home[v->id].bytes, step = view->stride < 0 ? -(uint64_t)view->stride : (uint64_t)view->stride;
	const om_region *r = &view->off[0];
	uint64_t span, end;

	if (n < 0 || view->period != 1 || view->nprologue || view->is_output || r->base == OM_NO_VALUE)
		return BAD(c, "%s has a multi-view of slices, but the trip count is not known", v->name);
	if (is_carried(v, loop))
		return BAD(c, "%s has a multi-view of slices, but is loop-carried", v->name);
	if (n == 0)
		return OM_OK;
	if (__builtin_mul_overflow(step, (uint64_t)n - 1, &span) || step % (om_dtype_bits(v->type.elem) < 8 ? 1 : om_dtype_bits(v->type.elem) / 8))
		return BAD(c, "the slices of %s do not have its size", v->name);
	if (view->stride < 0 ? r->offset < span
	    : __builtin_add_overflow(r->offset + bytes, span, &end) || end > c->home[r->base].bytes)
		return BAD(c, "the slices of %s exceed %s", v->name, c->p->values[r->base]->name);
	return OM_OK;
}

static om_status
check_view(struct sim *c, const om_plan_multi_view *view)
{
	const om_value *v = c->p->values[view->value];
	const om_op *loop = loop_of(view, v);

	if (!loop)
		return BAD(c, "%s has a multi-view, but belongs to no loop", v->name);
	if (view->period < 1 || view->period > MOST_PERIOD || view->nprologue > MOST_PERIOD)
		return BAD(c,
			"the multi-view of %s has period %u and prologue %u, expected 1 to %d iterations", v->name,
			view->period, view->nprologue, MOST_PERIOD);
	if (!c->home[v->id].tracked)
		return BAD(c, "%s has a multi-view, but its size is not known", v->name);
	for (uint32_t k = 0; k < view->nprologue; k++)
		OM_TRY(check_region(c, v, loop, &view->first[k]));
	for (uint32_t k = 0; k < view->period; k++)
		OM_TRY(check_region(c, v, loop, &view->off[k]));
	return view->stride ? check_stride(c, v, view, loop) : OM_OK;
}

/* Group multi-views by loop, once for all visits: those of op `id` start at loop_views[id]. */
static void
list_views(struct sim *c)
{
	const om_plan *plan = c->plan;
	uint32_t *end = OM_NEWN(c->mem, uint32_t, (size_t)c->p->nop + 1);

	c->loop_view = OM_NEWN(c->mem, const om_plan_multi_view *, plan->nview);
	c->loop_views = OM_NEWN(c->mem, uint32_t, (size_t)c->p->nop + 1);
	for (uint32_t k = 0; k < plan->nview; k++)
		c->loop_views[loop_of(&plan->view[k], c->p->values[plan->view[k].value])->id + 1]++;
	for (uint32_t k = 0; k < c->p->nop; k++)
		end[k + 1] = c->loop_views[k + 1] += c->loop_views[k];
	for (uint32_t k = 0; k < plan->nview; k++) {
		const om_plan_multi_view *v = &plan->view[k];
		c->loop_view[end[loop_of(v, c->p->values[v->value])->id]++] = v;
	}
}

om_status
om_sim_check_views(struct sim *c)
{
	for (uint32_t k = 0; k < c->plan->nview; k++)
		OM_TRY(check_view(c, &c->plan->view[k]));
	list_views(c);
	return OM_OK;
}

/* ---- Loops. ---- */

/* How the values of a loop correspond.  The `ncarried` carried values start at different indices in
 * the inputs, parameters, results and outputs. */
struct loop {
	const om_op *op;
	const om_block *body;
	uint32_t ncarried;
	uint32_t in, param, result;    /* index of the first carried value; 0 for outputs */
	uint32_t nscan_in;             /* number of scan inputs, which are the last inputs and parameters */
	int64_t known;                 /* trip count, or -1 */
	uint32_t nview;
	const om_plan_multi_view *const *view; /* multi-views of values of the body and of outputs */
	om_arena *mem;                 /* freed after this visit */
	om_arena *iteration_mem;           /* cleared after each iteration */
	uint64_t iterations;               /* number of iterations to simulate */
	struct ends *ends;             /* by carried value */
};

/* The locations of an output after the possible numbers of iterations. */
struct ends {
	struct end {
		struct other at;
		bool is_written;       /* it is owned by the output, not by a value outside the loop */
	} *end;
	size_t n, cap;
	uint32_t found;                /* the output of another loop that has all these locations in the same runs;
					  OM_NOBODY: none */
	size_t nfound;                 /* locations that it has */
};

static om_status
loop_shape(struct sim *c, const om_op *op, struct loop *l)
{
	const bool scan = op->opdef->control == OM_SCAN;

	*l = (struct loop){.op = op, .body = op->body[0]};
	const uint32_t nparam = l->body->nparam, nresult = l->body->nresult;
	const int64_t m = scan ? om_attr_int(op, "num_scan_inputs") : 0;
	l->param = scan ? 0 : 2;
	l->result = scan ? 0 : 1;
	if (op->nbody == 1 && m >= 0 && m <= nparam && l->param <= nparam && m <= op->nin) {
		l->nscan_in = (uint32_t)m;
		l->ncarried = nparam - l->param - l->nscan_in;
		l->in = scan ? op->nin - l->nscan_in - l->ncarried : 2;
		if (nparam >= l->param + l->nscan_in && l->in <= 2
		    && op->nin == l->in + l->ncarried + l->nscan_in
		    && nresult >= l->result + l->ncarried && op->nout <= nresult - l->result)
			return OM_OK;
	}
	return om_op_fail(c->session, OM_INVALID, op,
		"has %u inputs and %u outputs, but its body has %u parameters and %u results",
		op->nin, op->nout, nparam, nresult);
}

static uint64_t
common(uint64_t a, uint64_t b)
{
	uint64_t x = a, y = b;

	while (y) {
		const uint64_t rest = x % y;
		x = y;
		y = rest;
	}
	return a / x * b;
}

static om_status
count_iterations(struct sim *c, struct loop *l)
{
	uint64_t first = 0, period = 1;

	l->known = trip_count(c, l->op);
	l->view = c->loop_view + c->loop_views[l->op->id];
	l->nview = c->loop_views[l->op->id + 1] - c->loop_views[l->op->id];
	l->ends = OM_NEWN(l->mem, struct ends, l->ncarried);
	for (uint32_t k = 0; k < l->nview; k++) {
		const om_plan_multi_view *v = l->view[k];
		first = v->nprologue > first ? v->nprologue : first;
		period = period > MAX_ITERATIONS ? period : common(period, v->period);
	}
	l->iterations = first + 2 * period;
	if (l->iterations > MAX_ITERATIONS)
		return BAD_AT(c, l->op,
			"the multi-views repeat only after %llu iterations, too many to check", (unsigned long long)period);
	if (l->known >= 0 && (uint64_t)l->known <= l->iterations)
		l->iterations = (uint64_t)l->known;
	else if (l->known >= 0)
		l->iterations += ((uint64_t)l->known - l->iterations) % period;
	return OM_OK;
}

/* ---- Locations. ---- */

static struct other
region_at(const struct sim *c, const om_region *r, int64_t shift)
{
	const struct home *h = r->base == OM_NO_VALUE ? NULL : &c->home[r->base];

	if (!h)
		return (struct other){.space = r->arena, .lower = r->offset};
	return (struct other){.space = h->space, .lower = h->lower + r->offset + (uint64_t)shift};
}

static void
put(struct sim *c, uint32_t v, const struct other *at, const struct other *more, uint32_t nmore, uint32_t found)
{
	struct home *h = &c->home[v];
	const uint64_t delta = c->delta[v];
	struct other *all = OM_NEWN(c->mem, struct other, nmore);

	h->fixed = false;
	h->space = at->space;
	h->lower = at->lower + delta;
	h->storage = h->bytes;
	for (uint32_t k = 0; k < nmore; k++) {
		all[k] = more[k];
		all[k].lower += delta;
		all[k].is.at += delta;
	}
	h->other = all;
	h->nother = nmore;
	h->found = found;
}

/* Move a value and all its followers.  With several possible locations, they are where the output `found` is. */
static void
move(struct sim *c, uint32_t mover, const struct other *at, const struct other *more, uint32_t nmore, uint32_t found)
{
	for (uint32_t k = c->follow[mover]; k < c->follow[mover + 1]; k++)
		put(c, c->follower[k], at, more, nmore, found);
}

static const om_region *
region_in(const om_plan_multi_view *v, uint64_t iteration)
{
	return iteration < v->nprologue ? &v->first[iteration] : &v->off[iteration % v->period];
}

/* If the base has several possible locations, so do values relative to it. */
static void
move_view(struct sim *c, const om_plan_multi_view *v, uint64_t iteration, om_arena *tmp)
{
	const om_region *r = region_in(v, iteration);
	const int64_t shift = (int64_t)iteration * v->stride;
	const struct other at = region_at(c, r, shift);
	const struct home *h = r->base == OM_NO_VALUE ? NULL : &c->home[r->base];
	const uint32_t n = h ? h->nother : 0;
	struct other *more = OM_NEWN(tmp, struct other, n);

	for (uint32_t k = 0; k < n; k++) {
		more[k] = h->other[k];
		more[k].lower += r->offset + (uint64_t)shift;
		more[k].is.at += r->offset + (uint64_t)shift;
	}
	move(c, v->value, &at, more, n, h ? h->found : OM_NOBODY);
}

static void
move_all(struct sim *c, const struct loop *l, uint64_t iteration)
{
	for (uint32_t k = 0; k < l->nview; k++)
		if (!l->view[k]->is_output)
			move_view(c, l->view[k], iteration, l->iteration_mem);
}

/* ---- Iterations. ---- */

static const om_value *
scan_input(const struct loop *l, uint32_t k)
{
	return l->op->in[l->op->nin - l->nscan_in + k];
}

static const om_value *
scan_param(const struct loop *l, uint32_t k)
{
	return l->body->param[l->body->nparam - l->nscan_in + k];
}

/* The location of an output of a loop is known only after that loop. */
static om_status
check_base(struct sim *c, const struct loop *l, const om_plan_multi_view *v, const om_region *r)
{
	const uint32_t m = r->base == OM_NO_VALUE ? OM_NOBODY : c->mover[r->base];

	if (m == OM_NOBODY || !c->view[m]->is_output || c->content[m].owner != OM_NOBODY)
		return OM_OK;
	return BAD_AT(c, l->op,
		"a multi-view of %s is based on %s, whose address is not known yet", c->p->values[v->value]->name,
		c->p->values[r->base]->name);
}

static om_status
check_bases(struct sim *c, const struct loop *l)
{
	for (uint32_t k = 0; k < l->nview; k++) {
		const om_plan_multi_view *v = l->view[k];
		for (uint32_t i = 0; i < v->nprologue; i++)
			OM_TRY(check_base(c, l, v, &v->first[i]));
		for (uint32_t i = 0; i < v->period; i++)
			OM_TRY(check_base(c, l, v, &v->off[i]));
	}
	return OM_OK;
}

/* Read the inputs, write the parameters of the first iteration, and allocate the outputs that
 * iterations write slice by slice. */
static om_status
enter_loop(struct sim *c, const struct loop *l)
{
	const om_block *b = l->body;
	struct moves m = {.mem = l->mem};

	OM_TRY(check_bases(c, l));
	for (uint32_t k = 0; k < l->in; k++)
		om_sim_add_move(&m, l->op->in[k], l->param == 2 && k == 1 ? b->param[1] : NULL);
	if (l->param == 2)
		om_sim_add_move(&m, NULL, b->param[0]);
	for (uint32_t k = 0; k < l->ncarried; k++)
		om_sim_add_move(&m, l->op->in[l->in + k], b->param[l->param + k]);
	for (uint32_t k = 0; k < l->nscan_in; k++) {
		om_sim_add_move(&m, scan_input(l, k), NULL);
		if (!c->view[scan_param(l, k)->id])
			om_sim_add_move(&m, NULL, scan_param(l, k));
	}
	for (uint32_t k = l->ncarried; k < l->op->nout; k++)
		om_sim_add_move(&m, NULL, l->op->out[k]);
	OM_TRY(om_sim_read_moves(c, l->op, &m));
	move_all(c, l, 0);
	return om_sim_run_moves(c, l->op, &m);
}

/* Check that `slice` is located at the iteration's slice of `all`.  Slices are contiguous only along
 * an axis whose outer dimensions are all 1. */
static om_status
check_slice(struct sim *c, const struct loop *l, const om_value *all, const om_value *slice, int64_t axis, bool back,
	uint64_t iteration, uint64_t *at)
{
	const struct home *h = &c->home[slice->id], *s = &c->home[all->id];
	const uint64_t n = l->known > 0 ? (uint64_t)l->known : 1;
	int to;

	*at = (back ? n - 1 - iteration : iteration) * h->bytes;
	bool good = om_axis(axis, all->shape.rank, &to) && h->tracked && s->tracked && h->space == s->space
		&& h->lower == s->lower + *at && s->bytes == n * h->bytes && h->nother == s->nother
		&& (h->nother == 0 || h->found == s->found);
	for (uint32_t k = 0; good && k < h->nother; k++)
		good = h->other[k].space == s->other[k].space && h->other[k].lower == s->other[k].lower + *at;
	for (int d = 0; good && d < to; d++)
		good = all->shape.dim[d] == 1;
	if (good)
		return OM_OK;
	return BAD_AT(c, l->op,
		"%s is not at the address of its slice of %s in iteration %llu", slice->name, all->name,
		(unsigned long long)iteration);
}

/* What was written before the loop has to be live when the first iteration begins.  For later ones, it is
 * checked at the end of each iteration. */
static void
enter_parameter(struct sim *c, const om_value *v, uint64_t iteration)
{
	if (iteration == 0 && c->since[v->id] + 1 == c->now)
		om_sim_touch(c, v);
	c->since[v->id] = c->now;
}

/* The counter, the condition and the slices get new contents. */
static om_status
enter_iteration(struct sim *c, const struct loop *l, uint64_t iteration)
{
	const om_block *b = l->body;
	uint64_t at;

	c->now = c->step;
	for (uint32_t k = 0; k < b->nparam; k++)
		enter_parameter(c, b->param[k], iteration);
	for (uint32_t k = 0; k < l->param; k++)
		om_sim_take(c, b->param[k], false);
	for (uint32_t k = 0; k < l->nscan_in; k++) {
		const om_value *in = scan_input(l, k), *x = scan_param(l, k);
		OM_TRY(om_sim_read(c, l->op, in));
		if (!c->view[x->id]) {
			om_sim_take(c, x, false);
			continue;
		}
		OM_TRY(check_slice(c, l, in, x, om_attr_int_at(l->op, "scan_input_axes", k, 0),
			om_attr_int_at(l->op, "scan_input_directions", k, 0), iteration, &at));
		c->content[x->id] = c->content[in->id];
		c->content[x->id].at += at;
	}
	return OM_OK;
}

static bool
is_local(const struct loop *l, const struct sim *c, uint32_t owner)
{
	return owner < c->p->nvalue && !c->p->values[owner]->is_const
	    && om_block_inside(c->p->values[owner]->block, l->body);
}

static bool
is_within(const struct home *h, const struct home *s)
{
	return h->space == s->space && h->lower >= s->lower && h->lower + h->bytes <= s->lower + s->bytes;
}

/* A slice that an iteration wrote at its final location becomes part of the output. */
static om_status
end_pieces(struct sim *c, const struct loop *l, uint64_t iteration)
{
	const bool scan = l->op->opdef->control == OM_SCAN;
	uint64_t at;

	for (uint32_t k = l->ncarried; k < l->op->nout; k++) {
		const om_value *all = l->op->out[k], *v = l->body->result[l->result + k];
		const uint32_t m = c->mover[v->id];
		if (!all || !om_sim_is_watched(c, all) || m == OM_NOBODY || !c->view[m]->stride
		    || !is_within(&c->home[v->id], &c->home[all->id]))
			continue;
		OM_TRY(check_slice(c, l, all, v, scan ? om_attr_int_at(l->op, "scan_output_axes", k - l->ncarried, 0) : 0,
			scan && om_attr_int_at(l->op, "scan_output_directions", k - l->ncarried, 0), iteration, &at));
		const struct home *s = &c->home[v->id];
		om_sim_set(c, &(om_owned_interval){s->space, s->lower, s->lower + s->bytes, all->id, at, false});
	}
	for (uint32_t k = l->ncarried; k < l->op->nout; k++)
		OM_TRY(om_sim_read(c, l->op, l->op->out[k]));
	return OM_OK;
}

/* Reads all results before any parameter is written. */
static om_status
leave_iteration(struct sim *c, const struct loop *l, uint64_t iteration)
{
	struct moves m = {.mem = l->iteration_mem, .is_quiet = true};

	for (uint32_t k = 0; k < l->body->nresult; k++)
		OM_TRY(om_sim_read(c, l->op, l->body->result[k]));
	for (uint32_t k = 0; k < l->ncarried; k++)
		om_sim_add_move(&m, l->body->result[l->result + k], l->body->param[l->param + k]);
	OM_TRY(om_sim_read_moves(c, l->op, &m));
	OM_TRY(end_pieces(c, l, iteration));
	move_all(c, l, iteration + 1);
	OM_TRY(om_sim_run_moves(c, l->op, &m));
	for (uint32_t k = 0; k < l->ncarried; k++) {
		const om_value *x = l->body->param[l->param + k];
		if (om_sim_is_watched(c, x) && is_local(l, c, c->content[x->id].owner))
			om_sim_take(c, x, false);
	}
	for (uint32_t k = 0; k < l->ncarried; k++)
		OM_TRY(om_sim_check_written(c, l->op, l->body->param[l->param + k]));
	return OM_OK;
}

/* ---- After the loop. ---- */

/* Does the location of the output depend on the number of iterations? */
static bool
is_found(const struct sim *c, const om_value *out)
{
	return c->view[out->id] && c->view[out->id]->is_output;
}

static void
note_end(const struct loop *l, struct ends *e, const struct other *at, bool written)
{
	for (size_t k = 0; k < e->n; k++)
		if (e->end[k].at.space == at->space && e->end[k].at.lower == at->lower) {
			e->end[k].is_written |= written;
			return;
		}
	OM_PUSH(l->mem, e->end, e->n, e->cap, ((struct end){*at, written}));
}

static void
note_found(struct ends *e, const struct home *h)
{
	const size_t n = (size_t)h->nother + 1;

	if (e->nfound && (e->nfound != n || e->found != h->found))
		e->found = OM_NOBODY;
	else
		e->found = h->nother ? h->found : OM_NOBODY;
	e->nfound = n;
}

/* The loop may end after `iteration` iterations: check that output `k` is intact at its location. */
static om_status
end_here(struct sim *c, const struct loop *l, uint32_t k, uint64_t iteration)
{
	const om_value *out = l->op->out[k], *x = l->body->param[l->param + k];
	const struct home *h = &c->home[x->id], *o = &c->home[out->id];

	OM_TRY(om_sim_check_whole(c, l->op, x));
	if (is_found(c, out))
		move_view(c, c->view[out->id], iteration, l->iteration_mem);
	const bool same = om_sim_is_watched(c, x) && om_sim_is_same_place(h, o);
	if (!same && (is_found(c, out) || o->fixed))
		return BAD_AT(c, l->op,
			"%s (%s) is declared to share the address of %s (%s), but does not after %llu "
			"iterations", out->name,
			om_sim_location_text(c, out).s, x->name, om_sim_location_text(c, x).s, (unsigned long long)iteration);
	const bool written = !same || is_local(l, c, c->content[x->id].owner);
	note_found(&l->ends[k], o);
	note_end(l, &l->ends[k], &(struct other){o->space, o->lower, c->content[x->id]}, written);
	for (uint32_t i = 0; i < h->nother && same; i++)
		note_end(l, &l->ends[k], &h->other[i], false);
	return OM_OK;
}

static om_status
end_outputs(struct sim *c, const struct loop *l, uint64_t iteration)
{
	if (l->known >= 0 && iteration != l->iterations)
		return OM_OK;
	for (uint32_t k = 0; k < l->ncarried && k < l->op->nout; k++)
		if (l->op->out[k] && c->home[l->op->out[k]->id].tracked)
			OM_TRY(end_here(c, l, k, iteration));
	return OM_OK;
}

/* The output is at one of its possible final locations.  Bytes owned by a value outside the loop keep
 * their owner; the rest becomes the output's.  Any of several rotating outputs may be where another
 * one would be after a different number of iterations, so their contents share one identity, that of a
 * parameter: the check at each end has shown that no two of them are at one location at the same time. */
static om_status
define_output(struct sim *c, const struct loop *l, uint32_t k)
{
	const om_value *out = l->op->out[k];
	const struct ends *e = &l->ends[k];
	const struct home *h = &c->home[out->id];

	if (!h->tracked)
		return om_sim_write(c, l->op, out);
	om_sim_begin(c, out);
	struct other *at = OM_NEWN(l->mem, struct other, e->n);
	for (size_t i = 0; i < e->n; i++) {
		at[i] = e->end[i].at;
		if (!e->end[i].is_written)
			continue;
		if (!is_found(c, out))
			OM_TRY(om_sim_check_writable(c, l->op, out));
		const uint64_t bytes = is_found(c, out) ? h->bytes : h->storage;
		const uint32_t owner = is_found(c, out) ? l->body->param[l->param]->id : out->id;
		om_sim_set(c, &(om_owned_interval){at[i].space, at[i].lower, at[i].lower + bytes, owner, 0, false});
		at[i].is = (struct content){.owner = owner};
	}
	if (is_found(c, out))
		move(c, out->id, at, at + 1, (uint32_t)e->n - 1,
			e->found != OM_NOBODY && e->nfound == e->n ? e->found : out->id);
	c->content[out->id] = at[0].is;
	return OM_OK;
}

static om_status
leave_loop(struct sim *c, const struct loop *l)
{
	const uint32_t n = l->ncarried < l->op->nout ? l->ncarried : l->op->nout;

	for (uint32_t k = 0; k < n; k++) {
		const om_value *x = l->body->param[l->param + k];
		if (c->since[x->id] + 1 == c->now)   /* written when the last iteration ended */
			om_sim_touch(c, x);
	}
	for (uint32_t k = 0; k < n; k++)
		if (l->op->out[k])
			OM_TRY(define_output(c, l, k));
	for (uint32_t k = 0; k < n; k++)
		OM_TRY(om_sim_check_written(c, l->op, l->op->out[k]));
	for (uint32_t k = l->ncarried; k < l->op->nout; k++)
		OM_TRY(om_sim_read(c, l->op, l->op->out[k]));
	return OM_OK;
}

static om_status
run_loop(struct sim *c, struct loop *l)
{
	const uint32_t start = c->step;

	OM_TRY(count_iterations(c, l));
	for (uint32_t k = 0; k < l->ncarried; k++)
		c->iteration_end[l->body->param[l->param + k]->id] = start + om_sim_steps(l->body) - 1;
	OM_TRY(enter_loop(c, l));
	OM_TRY(end_outputs(c, l, 0));
	for (uint64_t iteration = 0; iteration < l->iterations; iteration++) {
		c->step = start;
		OM_TRY(enter_iteration(c, l, iteration));
		OM_TRY(om_sim_run_block(c, l->body));
		OM_TRY(leave_iteration(c, l, iteration));
		OM_TRY(end_outputs(c, l, iteration + 1));
		om_arena_clear(l->iteration_mem);
	}
	c->step = start + om_sim_steps(l->body);
	c->now = c->step++;
	return leave_loop(c, l);
}

/* An inner loop is visited in every iteration of the outer one, so memory of a visit is freed at its
 * end. */
om_status
om_sim_run_loop(struct sim *c, const om_op *op)
{
	struct loop l;

	c->now = c->step++;
	OM_TRY(loop_shape(c, op, &l));
	l.mem = om_sim_arena(c);
	l.iteration_mem = om_sim_arena(c);
	const om_status st = run_loop(c, &l);
	om_arena_free(l.iteration_mem);
	om_arena_free(l.mem);
	return st;
}
