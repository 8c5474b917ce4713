/* SPDX-License-Identifier: Apache-2.0 */
/* Proves that a plan with ranges is valid for all of their sizes; see range_proof.h.
 *
 * The verifier has simulated the plan for the largest sizes.  Its offsets are those of all sizes.  Where no value is larger than
 * there, each takes a part of the bytes that it took in the simulation, from the same offset on, so that nothing is overwritten that
 * was not.  What may differ is proven here:
 *
 *   - sizes: no value has more bytes than its place, from dims that inference finds with symbols left open (size_proof.h);
 *   - ops: the same run.  What is constant is so for all sizes, as folding goes by operators, and no branch is chosen by a number
 *     that sizes decide.  What passes leave of a model with constant inputs is what they leave with open symbols;
 *   - loops: where sizes may decide how often one runs, the verifier has simulated it for any number of iterations.  What one iteration
 *     hands to the next has one shape for all sizes;
 *   - permissions: where an output lies over an input, or is a view of it, the operator is asked for the shapes of all sizes.  A
 *     constant that follows from sizes is hidden from it, and elements that inference knows for the largest sizes alone, so that its
 *     answer does not depend on them.
 *
 * Nothing here relies on what the document claims of formulas, and nothing on the planner. */
#include <config.h>

#include <inttypes.h>

#include "host/host.h"
#include "host/range_proof.h"
#include "host/size_proof.h"
#include "ir/alias_roots.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "ir/steps.h"
#include "opdef/op_context.h"
#include "verify/verify_plan.h"

enum { MOST_ASKED = 1 << 22 };    /* shapes that operators are asked about, in all */

struct range_proof {
	om_host *host;
	const om_ranged *r;
	const om_prog *p;        /* bound to the largest sizes */
	const om_prog *open;     /* its symbols open, inferred and folded */
	const om_plan *plan;
	om_arena *mem;
	om_proven_size *size;
	uint32_t *size_of_value; /* by id */
	uint32_t nsize;
	const om_size_proof *shapes;
	const om_alias **alias;  /* by value id */
	const om_alias_root *root, *mover; /* by value id: the last value that its aliases lead to, and the first one of these that a view moves */
	struct home *home;       /* the same */
	const om_plan_multi_view **view; /* the same */
	bool *varies;            /* by op id: a loop that may run another number of times for other sizes */
	bool has_varying;
	om_op_look look;
	uint64_t asked;
	const char **why;
};

#define NONE UINT32_MAX

/* Where a value lies: in an arena, or in a value of the caller. */
struct spot {
	uint32_t arena;          /* NONE: in */
	uint32_t root;           /* this value */
	uint64_t lower;          /* in the arena, or in the root */
};

/* All places of a value.  One that moves in a loop has several. */
struct home {
	struct spot at;          /* where nothing moves it */
	const om_plan_multi_view *view; /* what moves it; NULL: nothing does */
	const struct spot *spot; /* of the multi-view: those of `first`, then those of `off` */
};

static void
give_up(struct range_proof *w, const char *why)
{
	if (!*w->why)
		*w->why = why;
}

/* ---- Sizes. ---- */

static bool
is_constant_for_all(const struct range_proof *w, const om_value *v)
{
	const om_value *open = om_prog_same_value(w->open, v);

	return v->is_const && open && open->is_const;
}

/* A constant for each size, another one for others. */
static bool
is_of_sizes(const struct range_proof *w, const om_value *v)
{
	return v->is_const && !is_constant_for_all(w, v);
}

static void
list_sizes(struct range_proof *w)
{
	w->size = OM_NEWN(w->mem, om_proven_size, w->p->nvalue);
	w->size_of_value = OM_NEWN(w->mem, uint32_t, w->p->nvalue);
	for (uint32_t k = 0; k < w->p->nvalue; k++) {
		const om_value *v = w->p->values[k];
		const om_placement *at = &w->plan->place[k];
		w->size_of_value[k] = NONE;
		if (v->is_const ? is_constant_for_all(w, v) : at->where == OM_UNUSED)
			continue;
		if (v->type.kind != OM_TENSOR || !om_shape_is_known(&v->shape)) {
			if (at->where == OM_IN_ARENA)
				give_up(w, om_printf(w->mem, "data decide the size of %s, and its bound was found for the largest sizes only", v->name));
			continue;
		}
		w->size_of_value[k] = w->nsize;
		w->size[w->nsize++] = (om_proven_size){.value = v, .most = at->where == OM_IN_ARENA ? at->bytes : UINT64_MAX};
	}
}

static om_status
prove_sizes(struct range_proof *w, const char *passes)
{
	uint64_t looked_at = 0;

	list_sizes(w);
	OM_TRY(om_host_prove_shapes(w->host, w->r, passes, true, w->size, w->nsize, w->mem, &looked_at, w->why, &w->shapes));
	for (uint32_t k = 0; k < w->nsize && !*w->why; k++) {
		const char *name = w->size[k].value->name;
		if (w->size[k].is_wrong)
			return om_fail(w->host->session, OM_BADPLAN, "%s has more bytes for some sizes of the ranges than the %" PRIu64
				" of its place", name, w->size[k].most);
		if (!w->size[k].is_proven)
			give_up(w, om_printf(w->mem, "the size of %s does not follow from the shapes of inputs, and the ranges have too many "
				"sizes to compare it in each", name));
	}
	return OM_OK;
}

/* ---- Ops. ---- */

static bool
is_folded_for_some(const struct range_proof *w, const om_op *op)
{
	bool has_sizes = false;

	for (uint32_t k = 0; k < op->nin; k++) {
		if (op->in[k] && !op->in[k]->is_const)
			return false;
		has_sizes |= op->in[k] && is_of_sizes(w, op->in[k]);
	}
	return has_sizes;
}

static bool
is_branch(const om_op *op)
{
	return op->opdef && op->opdef->control == OM_IF;
}

/* May the output be a constant for some sizes only, as an element that sizes choose from some of which are known? */
static bool
may_be_constant_for_some(const struct range_proof *w, const om_op *op)
{
	bool has_sizes = false, has_elements = false, makes_sizes = false, has_all = true;

	for (uint32_t k = 0; k < op->nout; k++)
		makes_sizes |= op->out[k] && is_of_sizes(w, op->out[k]);
	for (uint32_t k = 0; k < op->nin; k++) {
		if (!op->in[k])
			continue;
		has_all &= op->in[k]->is_const;
		has_sizes |= is_of_sizes(w, op->in[k]);
		has_elements |= !op->in[k]->is_const && op->in[k]->elem;
	}
	if (op->is_folded)
		return makes_sizes && !has_all && !(op->opdef && op->opdef->flags & OM_SHAPE_ONLY);
	return has_sizes && has_elements;
}

/* One whose iterations the verifier simulates. */
static bool
is_loop(const om_op *op)
{
	return op->nbody == 1 && op->opdef && op->opdef->until != 8 && (op->opdef->control == OM_LOOP || op->opdef->control == OM_SCAN);
}

static void
check_op(struct range_proof *w, const om_op *op)
{
	if (op->nbody && !is_branch(op) && !is_loop(op))
		give_up(w, om_printf(w->mem, "the bodies of %s are simulated for single sizes only", om_op_label(op)));
	for (uint32_t k = 0; k < op->nin && op->nbody && !is_loop(op); k++)
		if (op->in[k] && is_of_sizes(w, op->in[k]))
			give_up(w, om_printf(w->mem, "what %s runs depends on sizes", om_op_label(op)));
	if (!op->is_folded && !is_loop(op) && is_folded_for_some(w, op))
		give_up(w, om_printf(w->mem, "%s is computed from sizes alone", om_op_label(op)));
	if (!is_loop(op) && may_be_constant_for_some(w, op))
		give_up(w, om_printf(w->mem, "%s may have constant elements for some sizes only", om_op_label(op)));
}

static uint32_t
count_ops(const om_prog *p)
{
	uint32_t n = 0;

	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next)
			n++;
	return n;
}

/* Passes that leave out what constants decide have left the same ops where sizes are open: so no size decided. */
static void
check_passes(struct range_proof *w)
{
	if (count_ops(w->p) != count_ops(w->open) || !om_ranged_has_ops(w->r, w->open))
		give_up(w, "what passes leave of the model depends on sizes");
}

/* ---- Permissions. ---- */

/* An op like that of the program, whose values have other shapes. */
struct likeness {
	om_op op;
	om_value *value;         /* inputs, then outputs */
	const om_value **of;     /* those of the program; NULL: left out */
	uint32_t n;
};

/* What is known of the elements is that of all sizes: of what inference follows with the largest ones, numbers are theirs. */
static void
forget_elements(const struct range_proof *w, const om_value *v, om_value *like)
{
	const om_value *open = om_prog_same_value(w->open, v);

	like->elem = open ? open->elem : NULL;
	if (v->is_const)
		like->data = NULL;
	like->is_const = false;
}

static void
make_like(struct range_proof *w, const om_op *op, struct likeness *x)
{
	x->op = *op;
	x->n = op->nin + op->nout;
	x->value = OM_NEWN(w->mem, om_value, x->n);
	x->of = OM_NEWN(w->mem, const om_value *, x->n);
	x->op.in = OM_NEWN(w->mem, om_value *, op->nin);
	x->op.out = OM_NEWN(w->mem, om_value *, op->nout);
	for (uint32_t k = 0; k < x->n; k++) {
		const om_value *v = k < op->nin ? op->in[k] : op->out[k - op->nin];
		x->of[k] = v;
		if (!v)
			continue;
		x->value[k] = *v;
		if (!is_constant_for_all(w, v))
			forget_elements(w, v, &x->value[k]);
		*(k < op->nin ? &x->op.in[k] : &x->op.out[k - op->nin]) = &x->value[k];
	}
}

/* The ranges that the shapes of an op depend on.  False: the shape of a value is not known. */
static bool
ranges_of(struct range_proof *w, const struct likeness *x, unsigned *set)
{
	*set = 0;
	for (uint32_t k = 0; k < x->n; k++) {
		const om_value *v = x->of[k];
		if (!v || is_constant_for_all(w, v))
			continue;
		if (w->size_of_value[v->id] == NONE)
			return false;
		*set |= om_proven_shape_by(w->shapes, w->size_of_value[v->id]);
	}
	return true;
}

static bool
set_shapes(struct range_proof *w, struct likeness *x, const int64_t *n)
{
	for (uint32_t k = 0; k < x->n; k++) {
		const om_value *v = x->of[k];
		if (v && w->size_of_value[v->id] != NONE && !om_proven_shape(w->shapes, w->size_of_value[v->id], n, &x->value[k].shape))
			return false;
	}
	return true;
}

/* An output over an input, as the plan has it. */
struct pair {
	uint32_t out, in;
	bool is_view;
	int64_t distance;        /* bytes from the output to the input */
};

static bool
allows(struct range_proof *w, const struct likeness *x, const struct pair *at)
{
	om_view_of view;
	uint64_t offset;

	w->look.op = NULL;       /* it has other shapes now */
	if (at->is_view)
		return om_op_look_view(&w->look, &x->op, at->out, &view) && view.in == at->in && (int64_t)view.offset == -at->distance;
	if (at->distance == 0 && om_op_look_inplace(&w->look, &x->op, at->out, at->in))
		return true;
	return at->out == 0 && om_op_look_subbuffer(&w->look, &x->op, at->in, &offset) && (int64_t)offset == at->distance;
}

/* What an elementwise op may write over for one size, since both have one shape, it may for all. */
static bool
is_elementwise(const struct range_proof *w, const struct likeness *x, const struct pair *at)
{
	const uint32_t out = w->size_of_value[x->of[x->op.nin + at->out]->id], in = w->size_of_value[x->of[at->in]->id];

	return !at->is_view && at->distance == 0 && x->op.opdef->flags & OM_POINTWISE && om_proven_shapes_equal(w->shapes, out, in);
}

static void
ask_for_all(struct range_proof *w, struct likeness *x, const struct pair *at)
{
	const char *label = om_op_label(&x->op);
	int64_t n[OM_FORMULA_SYMBOLS];
	unsigned set;

	if (!ranges_of(w, x, &set)) {
		give_up(w, om_printf(w->mem, "the shapes of %s are not known for all sizes", label));
		return;
	}
	if (is_elementwise(w, x, at))
		set = 0;
	const uint64_t count = om_proof_combinations(w->shapes, set);
	if (count > MOST_ASKED - w->asked) {
		give_up(w, om_printf(w->mem, "%s has too many combinations of shapes to ask whether %s may be in the memory of %s", label,
			x->of[x->op.nin + at->out]->name, x->of[at->in]->name));
		return;
	}
	w->asked += count;
	for (uint64_t k = 0; k < count && !*w->why; k++) {
		om_proof_numbers(w->shapes, set, k, n);
		if (!set_shapes(w, x, n) || !allows(w, x, at))
			give_up(w, om_printf(w->mem, "%s does not allow for all sizes that %s is in the memory of %s", label,
				x->of[x->op.nin + at->out]->name, x->of[at->in]->name));
	}
}

static bool
overlap(const struct range_proof *w, const om_value *a, const struct spot *x, const om_value *b, const struct spot *y)
{
	return x->arena == y->arena && (x->arena != NONE || x->root == y->root) && x->lower < y->lower + w->plan->place[b->id].bytes
	    && y->lower < x->lower + w->plan->place[a->id].bytes;
}

static const om_op *
loop_of(const struct range_proof *w, const om_plan_multi_view *v)
{
	const om_value *x = w->p->values[v->value];

	return v->is_output ? x->def : x->block->owner;
}

/* Do both move with the iterations of one loop, or with their number after it? */
static bool
move_together(const struct range_proof *w, const struct home *a, const struct home *b)
{
	return a->view && b->view && a->view->is_output == b->view->is_output && loop_of(w, a->view) == loop_of(w, b->view);
}

static uint32_t
count_spots(const struct home *h)
{
	return h->view ? h->view->nprologue + h->view->period : 1;
}

static const struct spot *
spot_at(const struct home *h, uint32_t k)
{
	return h->view ? &h->spot[k] : &h->at;
}

static const struct spot *
spot_in(const struct home *h, uint32_t iteration)
{
	const om_plan_multi_view *v = h->view;

	return &h->spot[iteration < v->nprologue ? iteration : v->nprologue + iteration % v->period];
}

/* After this number of iterations places repeat; the verifier has limited it. */
static uint32_t
count_iterations(const om_plan_multi_view *a, const om_plan_multi_view *b)
{
	return (a->nprologue > b->nprologue ? a->nprologue : b->nprologue) + a->period * b->period;
}

/* How many pairs of places two values have. */
static uint32_t
count_places(const struct range_proof *w, const struct home *y, const struct home *x)
{
	return move_together(w, y, x) ? count_iterations(y->view, x->view) : count_spots(y) * count_spots(x);
}

/* The view or overlap of an output and an input at the `at`-th pair of places.  False: there is none. */
static bool
find_pair(const struct range_proof *w, const om_op *op, uint32_t at, struct pair *x)
{
	const om_value *out = op->out[x->out], *in = op->in[x->in];
	const om_alias *a = w->alias[out->id];
	const struct home *y = &w->home[out->id], *z = &w->home[in->id];
	const bool together = move_together(w, y, z), is_alias = a && a->source == in->id;
	const struct spot *to = together ? spot_in(y, at) : spot_at(y, at / count_spots(z));
	const struct spot *from = together ? spot_in(z, at) : spot_at(z, at % count_spots(z));

	x->is_view = is_alias && a->kind == OM_ALIAS_VIEW;
	if (overlap(w, out, to, in, from))
		x->distance = (int64_t)(from->lower - to->lower);
	else if (is_alias)
		x->distance = -(int64_t)a->offset;
	else
		return false;
	return true;
}

static bool
may_overlap(const struct range_proof *w, const om_value *out, const om_value *in)
{
	return out && in && !in->is_const && !out->is_const && w->size_of_value[out->id] != NONE && w->size_of_value[in->id] != NONE;
}

/* Values that are in several pairs of places at one distance are asked for once. */
static void
ask_at_places(struct range_proof *w, const om_op *op, struct likeness *x, struct pair at, bool *is_made)
{
	const uint32_t n = count_places(w, &w->home[op->out[at.out]->id], &w->home[op->in[at.in]->id]);
	struct pair last = {.out = NONE};

	for (uint32_t k = 0; k < n && !*w->why; k++) {
		if (!find_pair(w, op, k, &at) || (last.out != NONE && last.distance == at.distance))
			continue;
		if (!*is_made)
			make_like(w, op, x);
		*is_made = true;
		ask_for_all(w, x, &at);
		last = at;
	}
}

/* What is handed on by ops with bodies needs no permission: it is copied, or stays where it is. */
static void
check_permissions(struct range_proof *w, const om_op *op)
{
	struct likeness x;
	bool is_made = false;

	for (uint32_t k = 0; k < op->nout && op->nbody == 0; k++)
		for (uint32_t j = 0; j < op->nin; j++)
			if (may_overlap(w, op->out[k], op->in[j]))
				ask_at_places(w, op, &x, (struct pair){.out = k, .in = j}, &is_made);
}

/* ---- Loops and branches. ---- */

/* Is it so for all sizes? */
static bool
have_one_shape(struct range_proof *w, uint32_t a, uint32_t b)
{
	const unsigned set = om_proven_shape_by(w->shapes, a) | om_proven_shape_by(w->shapes, b);
	const uint64_t count = om_proven_shapes_equal(w->shapes, a, b) ? 0 : om_proof_combinations(w->shapes, set);
	bool is_same = count <= MOST_ASKED - w->asked;
	int64_t n[OM_FORMULA_SYMBOLS];
	om_shape x, y;

	for (uint64_t k = 0; k < count && is_same; k++) {
		om_proof_numbers(w->shapes, set, k, n);
		is_same = om_proven_shape(w->shapes, a, n, &x) && om_proven_shape(w->shapes, b, n, &y) && om_shape_equal(&x, &y);
	}
	w->asked += is_same ? count : 0;
	return is_same;
}

/* What is handed from one value to the other has the bytes of both, for all sizes.  Values whose sizes data decide are outside. */
static void
check_handed(struct range_proof *w, const om_op *op, const om_value *from, const om_value *to)
{
	const uint32_t a = from ? w->size_of_value[from->id] : NONE, b = to ? w->size_of_value[to->id] : NONE;

	if (a != NONE && b != NONE && !have_one_shape(w, a, b))
		give_up(w, om_printf(w->mem, "%s and %s, which %s hands on, may have different shapes for some sizes", from->name, to->name,
			om_op_label(op)));
}

static void
check_branches(struct range_proof *w, const om_op *op)
{
	for (uint32_t k = 0; k < op->nbody; k++)
		for (uint32_t i = 0; i < op->nout && i < op->body[k]->nresult; i++)
			if (!op->in[0] || !op->in[0]->is_const)
				check_handed(w, op, op->body[k]->result[i], op->out[i]);
}

/* The values of loops correspond as in the verifier, which has checked that there are as many. */
static void
check_carried(struct range_proof *w, const om_op *op)
{
	const bool is_scan = op->opdef->control == OM_SCAN;
	const om_block *b = op->body[0];
	const uint32_t nscan = is_scan ? (uint32_t)om_attr_int(op, "num_scan_inputs") : 0, param = is_scan ? 0 : 2, result = is_scan ? 0 : 1;

	for (uint32_t k = b->nparam - nscan; k < b->nparam; k++)
		if (w->home[b->param[k]->id].view)
			give_up(w, om_printf(w->mem, "%s is a slice of another value, which may lie elsewhere for other sizes", b->param[k]->name));
	for (uint32_t k = 0; param + k + nscan < b->nparam; k++) {
		check_handed(w, op, op->in[op->nin - nscan - (b->nparam - param - nscan) + k], b->param[param + k]);
		check_handed(w, op, b->result[result + k], b->param[param + k]);
		if (k < op->nout)
			check_handed(w, op, b->param[param + k], op->out[k]);
	}
}

/* May it run another number of times for other sizes? */
static bool
may_vary(const struct range_proof *w, const om_op *op)
{
	const om_block *b = op->body[0];

	if (op->opdef->control == OM_SCAN) {
		const int64_t n = om_attr_int(op, "num_scan_inputs");
		const om_value *in = n > 0 && n <= op->nin ? op->in[op->nin - n] : NULL;
		const uint32_t k = in ? w->size_of_value[in->id] : NONE;
		return k == NONE || om_proven_shape_by(w->shapes, k) != 0;
	}
	return (op->nin > 0 && op->in[0] && is_of_sizes(w, op->in[0])) || (op->nin > 1 && op->in[1] && is_of_sizes(w, op->in[1]))
	    || (b->nresult && is_of_sizes(w, b->result[0]));
}

static void
check_bodies(struct range_proof *w, const om_op *op)
{
	if (is_branch(op))
		check_branches(w, op);
	if (!is_loop(op))
		return;
	check_carried(w, op);
	w->varies[op->id] = may_vary(w, op);
	w->has_varying |= w->varies[op->id];
}

/* Where outputs are after the loop may depend on how often it ran. */
static om_status
check_trip_counts(struct range_proof *w)
{
	if (!w->has_varying || *w->why)
		return OM_OK;
	const om_status st = om_plan_verify_trip_counts(w->host->session, w->p, w->plan, w->varies);
	if (st != OM_OK && st != OM_MEMORY)
		give_up(w, om_printf(w->mem, "loops may run another number of times for other sizes, and then: %s", om_message(w->host->session)));
	return st == OM_MEMORY ? st : OM_OK;
}

/* ---- Memory of the caller. ---- */

static void
find_home(struct range_proof *w, uint32_t k)
{
	const om_placement *at = &w->plan->place[k];
	struct home *h = &w->home[k];

	*h = (struct home){.at = {NONE, w->root[k].value, w->root[k].offset}};
	if (at->where == OM_IN_ARENA)
		h->at = (struct spot){at->arena, h->at.root, at->offset};
}

/* The place of a region, `delta` bytes after its start. */
static struct spot
spot_of_region(struct range_proof *w, const om_value *v, const om_region *r, uint64_t delta)
{
	if (r->base == OM_NO_VALUE)
		return (struct spot){r->arena, v->id, r->offset + delta};
	const struct home *base = &w->home[r->base];
	if (base->view)
		give_up(w, om_printf(w->mem, "%s moves in a loop together with %s", v->name, w->p->values[r->base]->name));
	struct spot x = base->at;
	x.lower += r->offset + delta;
	return x;
}

/* What moves a value, and how many bytes after that it lies; NULL: nothing does. */
static const om_plan_multi_view *
moved_by(const struct range_proof *w, uint32_t k, uint64_t *delta)
{
	*delta = w->mover[k].offset;
	return w->view[w->mover[k].value];
}

static void
find_spots(struct range_proof *w, uint32_t k)
{
	struct home *h = &w->home[k];
	uint64_t delta;
	const om_plan_multi_view *v = moved_by(w, k, &delta);
	struct spot *all = v ? OM_NEWN(w->mem, struct spot, v->nprologue + v->period) : NULL;

	for (uint32_t i = 0; v && i < v->nprologue + v->period; i++)
		all[i] = spot_of_region(w, w->p->values[k], i < v->nprologue ? &v->first[i] : &v->off[i - v->nprologue], delta);
	h->spot = all;
}

/* Which values move is known before where to: a base that moves is seen, in whatever order they are. */
static void
find_homes(struct range_proof *w)
{
	const om_alias **moving = OM_NEWN(w->mem, const om_alias *, w->p->nvalue);
	uint64_t delta;

	w->alias = om_aliases_by_value(w->plan, w->p->nvalue, w->mem);
	w->view = OM_NEWN(w->mem, const om_plan_multi_view *, w->p->nvalue);
	w->home = OM_NEWN(w->mem, struct home, w->p->nvalue);
	for (uint32_t k = 0; k < w->plan->nview; k++)
		w->view[w->plan->view[k].value] = &w->plan->view[k];
	for (uint32_t k = 0; k < w->p->nvalue; k++)
		moving[k] = w->view[k] ? NULL : w->alias[k];
	w->root = om_alias_roots(w->alias, w->p->nvalue, w->mem);
	w->mover = om_alias_roots(moving, w->p->nvalue, w->mem);
	for (uint32_t k = 0; k < w->p->nvalue; k++) {
		find_home(w, k);
		w->home[k].view = moved_by(w, k, &delta);
	}
	for (uint32_t k = 0; k < w->p->nvalue; k++)
		find_spots(w, k);
}

/* Has value `v` no more bytes than what is left of `of` from byte `lower` on, for the same sizes? */
static void
check_inside(struct range_proof *w, const om_value *v, const om_value *of, uint64_t lower)
{
	const uint32_t k = w->size_of_value[v->id], root = w->size_of_value[of->id];
	int64_t n[OM_FORMULA_SYMBOLS];
	uint64_t bytes, most;
	om_shape shape, all;

	if (k == NONE || root == NONE) {
		give_up(w, om_printf(w->mem, "the size of %s is not known for all sizes", v->name));
		return;
	}
	const unsigned set = om_proven_shape_by(w->shapes, k) | om_proven_shape_by(w->shapes, root);
	const uint64_t count = om_proven_shapes_equal(w->shapes, k, root) && lower == 0 ? 1 : om_proof_combinations(w->shapes, set);
	bool fits = count <= MOST_ASKED - w->asked;
	for (uint64_t at = 0; at < count && fits; at++) {
		om_proof_numbers(w->shapes, set, at, n);
		fits = om_proven_shape(w->shapes, k, n, &shape) && om_proven_shape(w->shapes, root, n, &all)
			&& om_tensor_bytes(v->type.elem, &shape, &bytes) && om_tensor_bytes(of->type.elem, &all, &most)
			&& lower <= most && bytes <= most - lower;
	}
	w->asked += fits ? count : 0;
	if (!fits)
		give_up(w, om_printf(w->mem, "%s may be larger than %s, in whose memory it is", v->name, of->name));
}

/* The regions of a multi-view that are in other values. */
static void
check_regions(struct range_proof *w, const om_plan_multi_view *v)
{
	for (uint32_t k = 0; k < v->period + v->nprologue && !*w->why; k++) {
		const om_region *r = k < v->period ? &v->off[k] : &v->first[k - v->period];
		if (r->base != OM_NO_VALUE)
			check_inside(w, w->p->values[v->value], w->p->values[r->base], r->offset);
	}
}

/* What lies in an input or output of the caller, or moves into another value. */
static void
check_others(struct range_proof *w)
{
	for (uint32_t k = 0; k < w->p->nvalue && !*w->why; k++) {
		const struct spot *at = &w->home[k].at;
		if (at->arena == NONE && at->root != k && !w->p->values[k]->is_const)
			check_inside(w, w->p->values[k], w->p->values[at->root], at->lower);
	}
	for (uint32_t k = 0; k < w->plan->nview; k++)
		check_regions(w, &w->plan->view[k]);
}

/* ---- All. ---- */

/* What there is no proof of for any sizes. */
static void
check_kind(struct range_proof *w)
{
	if (w->plan->target != OM_TARGET_GENERIC || (w->p->passes && !om_passes_keep_values(w->plan, w->p->passes)))
		give_up(w, "the plan is for what passes make of the model, which may be another program for other sizes");
	if (w->plan->nscratch)
		give_up(w, "ops have scratch, which may be another one for other sizes");
	for (uint32_t k = 0; k < w->plan->nview; k++)
		if (w->plan->view[k].stride)
			give_up(w, "values are slices of others in loops, which may lie elsewhere for other sizes");
	if (w->r->nrange > OM_FORMULA_SYMBOLS)
		give_up(w, "there are more than 4 symbols");
	for (uint32_t d = 0; d < w->r->nrange && !*w->why; d++)
		if (w->r->range[d].high > INT32_MAX)
			give_up(w, "a size is larger than 2^31");
}

static void
check_in_block(struct range_proof *w, const om_op *op)
{
	check_op(w, op);
	if (op->is_folded)
		return;
	check_permissions(w, op);
	check_bodies(w, op);
}

static om_status
prove_open(struct range_proof *w, const char *passes)
{
	OM_TRY(prove_sizes(w, passes));
	w->varies = OM_NEWN(w->mem, bool, w->p->nop);
	find_homes(w);
	check_others(w);
	if (w->p->passes)
		check_passes(w);
	for (const om_block *b = w->p->first; b; b = b->next)
		for (const om_op *op = b->first; op && !*w->why; op = op->next)
			check_in_block(w, op);
	return check_trip_counts(w);
}

om_status
om_host_prove_range(om_host *h, const om_ranged *r, const om_plan *plan, om_arena *mem, const char **why)
{
	struct range_proof w = {.host = h, .r = r, .p = r->bound, .plan = plan, .mem = mem, .why = why};
	const char *passes = r->bound->passes ? r->bound->passes : "shapes,fold";
	int64_t high[OM_FORMULA_SYMBOLS] = {0};
	om_prog *open = NULL;

	*why = NULL;
	check_kind(&w);
	if (*why)
		return OM_OK;
	for (uint32_t d = 0; d < r->nrange; d++)
		high[d] = r->range[d].high;
	om_status st = om_host_run_open_sizes(h, r, high, 0, passes, &open);
	if (st != OM_OK && st != OM_MEMORY) {
		*why = om_printf(mem, "shapes cannot be inferred with open symbols: %s", om_message(h->session));
		return OM_OK;
	}
	w.open = open;
	if (st == OM_OK)
		st = prove_open(&w, passes);
	om_op_look_end(&w.look);
	om_prog_free(open);
	return st;
}
