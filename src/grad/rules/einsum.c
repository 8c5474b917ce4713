/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of Einsum, which is an Einsum.
 *
 * The gradient of one input is the sum of products of the output's gradient and of all other inputs, by
 * the same equation with the terms of that input and of the output exchanged.  An index that only that
 * input has is missing in the result: the input was summed over it, so its gradient is constant along
 * it.  An input with a repeated index was read along a diagonal: its gradient is zero elsewhere.
 */
#include <config.h>

#include "grad/bodies.h"
#include "grad/grad_builder.h"
#include "ir/type.h"
#include "opdef/geometry/einsum.h"
#include "opdef/op_context.h"

struct term {
	const int *axis;
	int rank;
};

struct equation {
	om_grad *g;
	struct om_einsum e;
	char letter[OM_EINSUM_AXES]; /* of each index, including those of an ellipsis; 0: not used yet */
};

static struct term
term_of(const struct equation *q, uint32_t k)
{
	return (struct term){q->e.term[k], q->e.rank[k]};
}

static bool
has_axis(struct term t, int axis, int below)
{
	for (int d = 0; d < below; d++)
		if (t.axis[d] == axis)
			return true;
	return false;
}

static char
letter_of(int axis)
{
	return (char)(axis < 26 ? 'a' + axis : 'A' + axis - 26);
}

/* Assign unused letters to the dims of an ellipsis. */
static bool
find_letters(struct equation *q)
{
	bool met[OM_EINSUM_AXES] = {false};
	int next = 0;

	for (uint32_t k = 0; k <= q->e.nin; k++)
		for (int d = 0; d < q->e.rank[k]; d++)
			met[q->e.term[k][d]] = true;
	for (int axis = 0; axis < OM_EINSUM_AXES; axis++) {
		if (!met[axis])
			continue;
		while (axis >= OM_EINSUM_LETTERS && next < OM_EINSUM_LETTERS && met[next])
			next++;
		if (axis >= OM_EINSUM_LETTERS && next == OM_EINSUM_LETTERS)
			return false;
		q->letter[axis] = letter_of(axis < OM_EINSUM_LETTERS ? axis : next++);
	}
	return true;
}

static const char *
with_term(const struct equation *q, const char *text, struct term t)
{
	om_arena *mem = om_grad_mem(q->g);

	for (int d = 0; d < t.rank; d++)
		text = om_printf(mem, "%s%c", text, q->letter[t.axis[d]]);
	return text;
}

/* The sum of products, with the remaining indices of input `of`, each once. */
static om_value *
product(const struct equation *q, uint32_t of, bool *is_left)
{
	om_grad *g = q->g;
	om_arena *mem = om_grad_mem(g);
	const struct term own = term_of(q, of), y = term_of(q, q->e.nin);
	om_value *in[OM_EINSUM_TERMS] = {om_grad_output_grad(g, 0)};
	const char *text = with_term(q, "", y);
	uint32_t n = 1;

	for (int d = 0; d < own.rank; d++)
		is_left[d] = has_axis(y, own.axis[d], y.rank);
	for (uint32_t k = 0; k < q->e.nin; k++) {
		if (k == of)
			continue;
		const struct term t = term_of(q, k);
		in[n++] = om_grad_forward_input(g, k);
		text = with_term(q, om_printf(mem, "%s,", text), t);
		for (int d = 0; d < own.rank; d++)
			is_left[d] |= has_axis(t, own.axis[d], t.rank);
	}
	text = om_printf(mem, "%s->", text);
	for (int d = 0; d < own.rank; d++) {
		is_left[d] &= !has_axis(own, own.axis[d], d);
		if (is_left[d])
			text = om_printf(mem, "%s%c", text, q->letter[own.axis[d]]);
	}
	return om_emit_op(g, "Einsum", OM_A(om_attr_make_string(g, "equation", text)), n, in, 1, NULL);
}

/* Ones where the dims `a` and `b` of `x` have the same index, of the rank of `x`. */
static om_value *
diagonal(om_grad *g, om_value *x, int a, int b)
{
	int64_t rest[2][OM_MAX_RANK];
	size_t n[2] = {0, 0};

	for (int d = 0; d < x->shape.rank; d++)
		for (int k = 0; k < 2; k++)
			if (d != (k ? b : a))
				rest[k][n[k]++] = d;
	om_value *at = om_emit_positions(g, x, a);
	om_value *is = om_emit(g, "Equal", om_emit_unsqueeze(g, at, n[0], rest[0]), om_emit_unsqueeze(g, at, n[1], rest[1]));
	return om_emit_cast(g, is, om_type_elem(&x->type));
}

static bool
is_narrow(const om_shape *have, const om_shape *want)
{
	if (have->rank != want->rank)
		return true;
	for (int d = 0; d < have->rank; d++)
		if (have->dim[d] == 1 && want->dim[d] != 1)
			return true;
	return false;
}

static void
give_one(const struct equation *q, uint32_t k)
{
	om_grad *g = q->g;
	om_value *x = om_grad_op(g)->in[k];
	const struct term own = term_of(q, k);
	bool is_left[OM_MAX_RANK] = {false};
	int64_t gone[OM_MAX_RANK];
	size_t n = 0;
	om_value *v = product(q, k, is_left);

	for (int d = 0; d < own.rank; d++)
		if (!is_left[d])
			gone[n++] = d;
	v = om_emit_unsqueeze(g, v, n, gone);
	for (int d = 0; d < own.rank; d++)
		for (int e = 0; e < d; e++)
			if (own.axis[d] == own.axis[e] && !has_axis(own, own.axis[e], e))
				v = om_emit(g, "Mul", v, diagonal(g, x, e, d));
	if (is_narrow(&v->shape, &x->shape))
		v = om_emit(g, "Expand", v, om_emit_shape(g, x));
	om_grad_set_broadcast_grad(g, k, v);
}

static void
Einsum_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	struct equation q = {.g = g};
	om_op_context c;

	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k]->shape.rank == OM_RANK_UNKNOWN)
			om_grad_fail(g, OM_UNSUPPORTED, "the rank of %s is not known", op->in[k]->name);
	om_op_context_init(&c, om_grad_session(g), om_grad_mem(g), op);
	if (om_grad_failed(g) || om_einsum_read(&c, &q.e) != OM_OK) {
		om_grad_fail(g, OM_INVALID, "its equation does not match its inputs");
		return;
	}
	if (!find_letters(&q)) {
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient requires more indices than there are letters");
		return;
	}
	for (uint32_t k = 0; k < op->nin; k++)
		if (om_grad_is_needed(g, k))
			give_one(&q, k);
}

/* ---- The table. ---- */

const om_gradient om_gradients_einsum[] = {
	{.name = "Einsum", .since = 12, .rule = Einsum_grad},
	{0}
};
