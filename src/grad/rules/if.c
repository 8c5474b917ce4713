/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of If.
 *
 * Each branch is differentiated into a branch of an If in the backward path, with the same condition. A
 * value that a branch has to keep becomes an output of the forward If; if the other branch keeps no
 * value of the same type and shape, that branch returns zeros there.
 */
#include <config.h>

#include "grad/bodies.h"
#include "grad/grad_builder.h"
#include "ir/edit.h"
#include "ir/type.h"

/* An output of the If that holds a kept value of either branch. */
struct shared {
	om_value *v[2];              /* by branch; NULL: zeros */
	uint32_t out;
};

struct choice {
	struct om_body side[2];         /* else, then */
	struct shared *shared;
	size_t n, cap;
};

/* The size of the dim with the symbolic name `sym`, from an input of the graph; NULL: there is none. */
static om_value *
dim_called(om_grad *g, const char *sym)
{
	const om_block *graph = om_grad_prog(g)->first;

	for (uint32_t k = 0; k < graph->nparam && sym; k++)
		for (int d = 0; d < graph->param[k]->shape.rank; d++)
			if (graph->param[k]->shape.sym[d] && strcmp(graph->param[k]->shape.sym[d], sym) == 0)
				return om_emit_dim(g, graph->param[k], d);
	return NULL;
}

/* The shape of `v`, computed without `v`: an unknown dim is 0. */
static om_value *
shape_of_nothing(om_grad *g, const om_value *v)
{
	om_value *dim[OM_MAX_RANK];
	const int64_t zero = 0;

	if (v->shape.rank == OM_RANK_UNKNOWN)
		return om_emit_list(g, 1, &zero);
	if (om_shape_is_known(&v->shape))
		return om_emit_list(g, (size_t)v->shape.rank, v->shape.dim);
	for (int d = 0; d < v->shape.rank; d++) {
		dim[d] = v->shape.dim[d] >= 0 ? om_emit_list(g, 1, &v->shape.dim[d]) : dim_called(g, v->shape.sym[d]);
		if (!dim[d])
			dim[d] = om_emit_list(g, 1, &zero);
	}
	return om_emit_op(g, "Concat", OM_A(om_attr_make_int(g, "axis", 0)), (size_t)v->shape.rank, dim, 1, NULL);
}

/* The result of a branch for a value that only the other branch keeps. */
static om_value *
nothing_like(om_grad *g, const om_value *v)
{
	return om_emit_zeros(g, om_type_elem(&v->type), shape_of_nothing(g, v));
}

static bool
can_share(const om_value *a, const om_value *b)
{
	return om_type_equal(&a->type, &b->type) && om_shape_is_known(&a->shape) && om_shape_is_known(&b->shape)
	    && om_shape_equal(&a->shape, &b->shape);
}

static uint32_t
share_output(struct choice *c, int side, om_value *v)
{
	struct om_body *b = &c->side[side];
	om_grad *here = om_emit_inside(b->outer, b->from), *there = om_emit_inside(b->outer, c->side[!side].from);

	for (size_t k = 0; k < c->n; k++) {
		struct shared *s = &c->shared[k];
		if (s->v[side] || !can_share(s->v[!side], v))
			continue;
		s->v[side] = v;
		om_op *nothing = b->from->result[s->out]->def;
		om_block_set_result(b->from, s->out, v);
		om_op_remove(nothing);
		return s->out;
	}
	struct shared s = {.out = b->op->nout};
	s.v[side] = v;
	om_emit_result(here, v);
	om_emit_result(there, nothing_like(there, v));
	om_body_add_output(b, om_printf(om_grad_mem(b->outer), "%s_kept", v->name));
	OM_PUSH(om_grad_mem(b->outer), c->shared, c->n, c->cap, s);
	return s.out;
}

static om_value *
keep_of_branch(om_scope *s, om_grad *g, om_value *v)
{
	struct choice *c = s->arg;
	struct om_body *b = &c->side[s == c->side[1].s];
	om_value *by = om_body_known(b, v);
	uint32_t out = b->op->nout;

	(void)g;
	if (by)
		return by;
	for (uint32_t k = b->op->nout; k-- > 0;)
		if (b->from->result[k] == v)
			out = k;
	if (out == b->op->nout)
		out = share_output(c, b == &c->side[1], v);
	by = om_body_take_output(b, out, om_printf(om_grad_mem(b->outer), "%s_kept", v->name));
	om_body_infer(b);
	return om_body_stands(b, v, om_body_reach(b, by));
}

/* The results of the branches may differ in rank.  The gradient has the rank inferred for the output, if
 * any; if it is another rank than in this branch, the branch is not taken, but its types have to be valid. */
static om_value *
in_rank_of(struct om_body *b, om_grad *g, om_value *dy, om_value *result)
{
	const om_shape *have = &dy->shape, *want = &result->shape;

	if (want->rank == OM_RANK_UNKNOWN || have->rank == want->rank)
		return dy;
	if (om_shape_is_known(have) && om_shape_is_known(want) && om_shape_count(have) != om_shape_count(want))
		return NULL;
	return om_emit_reshape_as(om_scope_grad(b->s, g), dy, result);
}

static void
walk_branch(struct om_body *b, om_grad *g)
{
	om_scope_mark_active(b->s);
	for (uint32_t k = 0; k < om_grad_op(g)->nout; k++) {
		om_value *dy = om_grad_output_grad(g, k), *result = b->from->result[k];
		if (!dy || !om_scope_is_requested(b->s, result))
			continue;
		dy = in_rank_of(b, g, dy, result);
		if (dy)
			om_scope_seed(b->s, result, dy);
	}
	if (!om_grad_failed(g))
		(void)om_scope_run(b->s);
}

static void
give_captured(struct choice *c, om_grad *g, om_op *back)
{
	struct om_values all = {0}, in = {0};

	for (int k = 0; k < 2; k++)
		om_body_captured(&c->side[k], &all);
	if (all.n == 0 || om_grad_failed(g)) {
		om_back_abandon(back);
		return;
	}
	for (int side = 0; side < 2; side++)
		for (size_t k = 0; k < all.n; k++) {
			struct om_body *b = &c->side[side];
			om_value *v = om_scope_gradient(b->s, all.v[k]);
			om_emit_result(b->in, v ? v : om_emit_zeros_as(b->in, all.v[k]));
		}
	om_values_push(g, &in, om_grad_forward_input(g, 0));
	om_back_args(g, back, &in, all.n);
	om_emit_done(g, back);
	for (size_t k = 0; k < all.n; k++)
		om_grad_set_value_grad(g, all.v[k], back->out[k]);
}

static void
If_grad(om_grad *g)
{
	static const char *const name[2] = {"else_branch", "then_branch"};
	om_op *op = om_body_own_op(g), *back = om_emit_open(g, "", "If", NULL, 0, NULL, 1);
	struct choice c = {0};

	for (int k = 0; k < 2; k++)
		om_body_start(&c.side[k], g, op, back, name[k], keep_of_branch, &c);
	for (int k = 0; k < 2; k++)
		walk_branch(&c.side[k], g);
	give_captured(&c, g, back);
}

/* ---- The table. ---- */

const om_gradient om_gradients_if[] = {
	{.name = "If", .since = 1, .rule = If_grad},
	{0}
};
