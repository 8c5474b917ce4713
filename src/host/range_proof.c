/* SPDX-License-Identifier: Apache-2.0 */
/* Proves that a plan with ranges is valid for all of their sizes; see range_proof.h.
 *
 * The verifier has simulated the plan for the largest sizes.  Its offsets are those of all sizes.  Where no value is larger than
 * there, each takes a part of the bytes that it took in the simulation, from the same offset on, so that nothing is overwritten that
 * was not.  What may differ is proven here:
 *
 *   - sizes: no value has more bytes than its place, from dims that inference finds with symbols left open (size_proof.h);
 *   - ops: the same run.  What is constant is so for all sizes, as folding goes by operators, and no branch is chosen by a number
 *     that sizes decide;
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
#include "ir/edit.h"
#include "ir/query.h"
#include "ir/steps.h"
#include "opdef/op_context.h"

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
	struct home *home;       /* the same */
	om_op_look look;
	uint64_t asked;
	const char **why;
};

#define NONE UINT32_MAX

/* Where a value lies: in an arena, or in a value of the caller. */
struct home {
	uint32_t arena;          /* NONE: in */
	uint32_t root;           /* the value that its aliases lead to */
	uint64_t lower;          /* in the arena, or in the root */
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
		if (v->type.kind != OM_TENSOR || !om_shape_is_known(&v->shape))
			continue;
		w->size_of_value[k] = w->nsize;
		w->size[w->nsize++] = (om_proven_size){.value = v, .most = at->where == OM_IN_ARENA ? at->bytes : UINT64_MAX};
	}
}

static om_status
prove_sizes(struct range_proof *w)
{
	uint64_t looked_at = 0;

	list_sizes(w);
	OM_TRY(om_host_prove_shapes(w->host, w->r, "shapes,fold", true, w->size, w->nsize, w->mem, &looked_at, w->why, &w->shapes));
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

static void
check_op(struct range_proof *w, const om_op *op)
{
	const bool loops = op->opdef && op->opdef->control != OM_PLAIN && op->opdef->control != OM_IF;

	if (loops)
		give_up(w, om_printf(w->mem, "%s is a loop, which is simulated for single sizes only", om_op_label(op)));
	for (uint32_t k = 0; k < op->nin && op->nbody; k++)
		if (op->in[k] && is_of_sizes(w, op->in[k]))
			give_up(w, om_printf(w->mem, "what %s runs depends on sizes", om_op_label(op)));
	if (is_folded_for_some(w, op))
		give_up(w, om_printf(w->mem, "%s is computed from sizes alone", om_op_label(op)));
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
overlap(const struct range_proof *w, const om_value *a, const om_value *b)
{
	const struct home *x = &w->home[a->id], *y = &w->home[b->id];

	return x->arena == y->arena && (x->arena != NONE || x->root == y->root) && x->lower < y->lower + w->plan->place[b->id].bytes
	    && y->lower < x->lower + w->plan->place[a->id].bytes;
}

/* The view or overlap of an output and an input, if there is one. */
static bool
find_pair(const struct range_proof *w, const om_op *op, uint32_t out, uint32_t in, struct pair *at)
{
	const om_value *y = op->out[out], *x = op->in[in];

	if (!y || !x || x->is_const || y->is_const || w->size_of_value[y->id] == NONE || w->size_of_value[x->id] == NONE)
		return false;
	const om_alias *a = w->alias[y->id];
	const bool is_alias = a && a->source == x->id;
	*at = (struct pair){out, in, is_alias && a->kind == OM_ALIAS_VIEW, 0};
	if (overlap(w, y, x))
		at->distance = (int64_t)(w->home[x->id].lower - w->home[y->id].lower);
	else if (is_alias)
		at->distance = -(int64_t)a->offset;
	else
		return false;
	return true;
}

static void
check_permissions(struct range_proof *w, const om_op *op)
{
	struct likeness x;
	struct pair at;
	bool is_made = false;

	for (uint32_t k = 0; k < op->nout; k++)
		for (uint32_t j = 0; j < op->nin && !*w->why; j++) {
			if (!find_pair(w, op, k, j, &at))
				continue;
			if (!is_made)
				make_like(w, op, &x);
			is_made = true;
			ask_for_all(w, &x, &at);
		}
}

/* ---- Memory of the caller. ---- */

/* Aliases form no cycles in a plan that was verified. */
static void
find_homes(struct range_proof *w)
{
	w->alias = OM_NEWN(w->mem, const om_alias *, w->p->nvalue);
	w->home = OM_NEWN(w->mem, struct home, w->p->nvalue);
	for (uint32_t k = 0; k < w->plan->nalias; k++)
		w->alias[w->plan->alias[k].value] = &w->plan->alias[k];
	for (uint32_t k = 0; k < w->p->nvalue; k++) {
		const om_placement *at = &w->plan->place[k];
		struct home *h = &w->home[k];
		*h = (struct home){NONE, k, 0};
		for (; w->alias[h->root]; h->root = w->alias[h->root]->source)
			h->lower += w->alias[h->root]->offset;
		if (at->where == OM_IN_ARENA)
			*h = (struct home){at->arena, h->root, at->offset};
	}
}

/* A value in an input or output of the caller has no more bytes than that, for the same sizes. */
static void
check_in_callers(struct range_proof *w, const om_value *v)
{
	const struct home *h = &w->home[v->id];
	const uint32_t k = w->size_of_value[v->id], root = w->size_of_value[h->root];
	int64_t n[OM_FORMULA_SYMBOLS];
	uint64_t bytes, most;
	om_shape shape, of;

	if (k == NONE || root == NONE) {
		give_up(w, om_printf(w->mem, "the size of %s is not known for all sizes", v->name));
		return;
	}
	const unsigned set = om_proven_shape_by(w->shapes, k) | om_proven_shape_by(w->shapes, root);
	const uint64_t count = om_proven_shapes_equal(w->shapes, k, root) && h->lower == 0 ? 1 : om_proof_combinations(w->shapes, set);
	bool fits = count <= MOST_ASKED - w->asked;
	for (uint64_t at = 0; at < count && fits; at++) {
		om_proof_numbers(w->shapes, set, at, n);
		fits = om_proven_shape(w->shapes, k, n, &shape) && om_proven_shape(w->shapes, root, n, &of)
			&& om_tensor_bytes(v->type.elem, &shape, &bytes) && om_tensor_bytes(w->p->values[h->root]->type.elem, &of, &most)
			&& h->lower <= most && bytes <= most - h->lower;
	}
	w->asked += fits ? count : 0;
	if (!fits)
		give_up(w, om_printf(w->mem, "%s may be larger than %s, in whose memory it is", v->name, w->p->values[h->root]->name));
}

static void
check_callers(struct range_proof *w)
{
	for (uint32_t k = 0; k < w->p->nvalue && !*w->why; k++)
		if (w->home[k].arena == NONE && w->home[k].root != k && !w->p->values[k]->is_const)
			check_in_callers(w, w->p->values[k]);
}

/* ---- All. ---- */

/* What there is no proof of for any sizes. */
static void
check_kind(struct range_proof *w)
{
	if (w->p->passes || w->plan->target != OM_TARGET_GENERIC)
		give_up(w, "the plan is for what passes make of the model, which may be another program for other sizes");
	if (w->plan->nview || w->plan->nscratch)
		give_up(w, "values move in loops, or ops have scratch, which may be other ones for other sizes");
	if (w->r->nrange > OM_FORMULA_SYMBOLS)
		give_up(w, "there are more than 3 symbols");
	for (uint32_t d = 0; d < w->r->nrange && !*w->why; d++)
		if (w->r->range[d].high > INT32_MAX)
			give_up(w, "a size is larger than 2^31");
}

static om_status
prove_open(struct range_proof *w)
{
	OM_TRY(prove_sizes(w));
	find_homes(w);
	check_callers(w);
	for (const om_block *b = w->p->first; b; b = b->next)
		for (const om_op *op = b->first; op && !*w->why; op = op->next)
			if (!op->is_folded) {
				check_op(w, op);
				check_permissions(w, op);
			}
	return OM_OK;
}

om_status
om_host_prove_range(om_host *h, const om_ranged *r, const om_plan *plan, om_arena *mem, const char **why)
{
	struct range_proof w = {.host = h, .r = r, .p = r->bound, .plan = plan, .mem = mem, .why = why};
	int64_t high[OM_FORMULA_SYMBOLS] = {0};
	om_prog *open = NULL;

	*why = NULL;
	check_kind(&w);
	if (*why)
		return OM_OK;
	for (uint32_t d = 0; d < r->nrange; d++)
		high[d] = r->range[d].high;
	om_status st = om_host_run_open_sizes(h, r, high, 0, "shapes,fold", &open);
	if (st != OM_OK && st != OM_MEMORY) {
		*why = om_printf(mem, "shapes cannot be inferred with open symbols: %s", om_message(h->session));
		return OM_OK;
	}
	w.open = open;
	if (st == OM_OK)
		st = prove_open(&w);
	om_op_look_end(&w.look);
	om_prog_free(open);
	return st;
}
