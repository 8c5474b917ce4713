/* SPDX-License-Identifier: Apache-2.0 */
/* Transposes and reshapes of values with a form; see layout.h. */
#include <config.h>

#include "base/shape.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "lower/layout.h"
#include "opdef/op_context.h"

/* ---- Transpose. ---- */

/* perm[k] is the input axis of output axis k. */
static bool
perm_of(const om_op *op, int rank, int *perm)
{
	size_t n;
	const int64_t *given = om_attr_ints(op, "perm", &n);

	if (given && n != (size_t)rank)
		return false;
	for (int k = 0; k < rank; k++)
		perm[k] = given ? (int)given[k] : rank - 1 - k;
	return true;
}

/* Channels are moved from the end to the front: the input is the channels-last form of the output. */
static bool
moves_channels_first(int rank, const int *perm)
{
	int last[OM_MAX_RANK];
	bool same = rank >= 4;

	if (rank < 4)
		return false;
	om_lower_channels_last(rank, last);
	for (int k = 0; k < rank; k++)
		same &= perm[last[k]] == k;
	return same;
}

om_status
om_lower_transpose(struct om_layout *l, om_op *op, bool *done)
{
	const om_value *x = op->in[0];
	const int rank = x->shape.rank;
	int perm[OM_MAX_RANK];
	om_form y = *om_lower_form(l, x);

	if (!om_shape_is_known(&x->shape) || !om_shape_is_known(&op->out[0]->shape) || !perm_of(op, rank, perm))
		return OM_OK;
	if (!y.value && moves_channels_first(rank, perm) && om_lower_is_float(x) && op->out[0]->id < l->nform) {
		/* The op stays for those that read its output. */
		y.value = op->in[0];
		om_lower_channels_last(rank, y.axis);
		l->form[op->out[0]->id] = y;
		return OM_OK;
	}
	if (!y.value)
		return OM_OK;
	for (int k = 0; k < rank; k++)
		y.axis[k] = om_lower_position(perm, rank, om_lower_form(l, x)->axis[k]);
	return om_lower_replace(l, op, &y, &l->n.followed, done);
}

/* ---- Reshape and its relatives. ---- */

/* Axes of the input, in order, whose dims have the product of some axes of the output, in order: [0, n) are pairs
 * of ranges.  Axes of size 1 are in no group. */
struct groups {
	int n;
	int in[OM_MAX_RANK][OM_MAX_RANK], nin[OM_MAX_RANK];
	int out[OM_MAX_RANK][OM_MAX_RANK], nout[OM_MAX_RANK];
};

static int
next_long(const om_shape *s, int k)
{
	while (k < s->rank && s->dim[k] == 1)
		k++;
	return k;
}

static void
divide(const om_shape *in, const om_shape *out, struct groups *g)
{
	int i = next_long(in, 0), k = next_long(out, 0);

	g->n = 0;
	while (i < in->rank && k < out->rank) {
		int64_t have = in->dim[i], want = out->dim[k];
		const int at = g->n++;
		g->in[at][0] = i;
		g->out[at][0] = k;
		g->nin[at] = g->nout[at] = 1;
		while (have != want)
			if (have < want) {
				i = next_long(in, i + 1);
				g->in[at][g->nin[at]++] = i;
				have *= in->dim[i];
			} else {
				k = next_long(out, k + 1);
				g->out[at][g->nout[at]++] = k;
				want *= out->dim[k];
			}
		i = next_long(in, i + 1);
		k = next_long(out, k + 1);
	}
}

/* The groups in the order in which their first axes stand in the form. */
static void
sort_groups(const struct groups *g, const int *axis, int rank, int *order)
{
	for (int k = 0; k < g->n; k++) {
		const int at = om_lower_position(axis, rank, g->in[k][0]);
		int i = k;
		for (; i > 0 && om_lower_position(axis, rank, g->in[order[i - 1]][0]) > at; i--)
			order[i] = order[i - 1];
		order[i] = k;
	}
}

/* The order of the input's axes in which each group is together, and that of the output's axes that follows.  Axes
 * of size 1 come after the first axis, so that channels stay last. */
static void
orders_of(const struct groups *g, const int *order, const om_shape *in, const om_shape *out, int *from, int *to)
{
	int nfrom = 0, nto = 0;

	for (int k = 0; k < g->n; k++) {
		for (int i = 0; i < g->nin[order[k]]; i++)
			from[nfrom++] = g->in[order[k]][i];
		for (int i = 0; i < g->nout[order[k]]; i++)
			to[nto++] = g->out[order[k]][i];
		for (int i = 0; k == 0 && i < in->rank; i++)
			if (in->dim[i] == 1)
				from[nfrom++] = i;
		for (int i = 0; k == 0 && i < out->rank; i++)
			if (out->dim[i] == 1)
				to[nto++] = i;
	}
}

/* A batch of one stays in front. */
static void
move_to_front(int *axis, int rank)
{
	for (int k = om_lower_position(axis, rank, 0); k > 0; k--) {
		axis[k] = axis[k - 1];
		axis[k - 1] = 0;
	}
}

om_status
om_lower_reshape(struct om_layout *l, om_op *op, bool *done)
{
	om_value *x = op->in[0], *moved;
	const om_shape *in = &x->shape, *out = &op->out[0]->shape;
	int order[OM_MAX_RANK], from[OM_MAX_RANK];
	int64_t dim[OM_MAX_RANK];
	struct groups g;
	om_form y;

	if (!om_lower_form(l, x)->value || !om_shape_is_known(out) || om_shape_count(in) < 2)
		return OM_OK;
	divide(in, out, &g);
	sort_groups(&g, om_lower_form(l, x)->axis, in->rank, order);
	orders_of(&g, order, in, out, from, y.axis);
	if (in->dim[0] == 1)
		move_to_front(from, in->rank);
	if (out->rank && out->dim[0] == 1)
		move_to_front(y.axis, out->rank);
	OM_TRY(om_lower_read(l, op, x, from, &moved));
	for (int k = 0; k < out->rank; k++)
		dim[k] = out->dim[y.axis[k]];
	om_value *to[] = {moved, om_lower_ints(l, op->block, om_printf(l->mem, "%s_shape", op->out[0]->name), (size_t)out->rank, dim)};
	OM_TRY(om_lower_insert(l, op, om_lower_op(l, "", "Reshape", 14, 2, to), om_printf(l->mem, "%s_last", op->out[0]->name), &y.value));
	return om_lower_replace(l, op, &y, &l->n.followed, done);
}

/* ---- Blocks of an image as channels. ---- */

static om_status
reshaped(struct om_layout *l, om_op *op, om_value *x, size_t n, const int64_t *dim, om_value **out)
{
	om_value *in[] = {x, om_lower_ints(l, op->block, om_printf(l->mem, "%s_shape", op->out[0]->name), n, dim)};

	return om_lower_insert(l, op, om_lower_op(l, "", "Reshape", 14, 2, in), om_printf(l->mem, "%s_blocks", op->out[0]->name), out);
}

/* Images with channels last: six axes, of which a transpose moves those of a block. */
static om_status
moved_blocks(struct om_layout *l, om_op *op, om_form *y, const int64_t *split, const int64_t *perm, const int64_t *merged)
{
	om_value *x;

	OM_TRY(reshaped(l, op, y->value, 6, split, &x));
	om_op *t = om_lower_op(l, "", "Transpose", 13, 1, &x);
	om_op_add_ints(l->p, t, "perm", 6, perm);
	OM_TRY(om_lower_insert(l, op, t, om_printf(l->mem, "%s_moved", op->out[0]->name), &x));
	OM_TRY(reshaped(l, op, x, 4, merged, &y->value));
	OM_TRY(om_lower_define(l, op, 0, y));
	om_lower_done(l, op, &l->n.followed);
	return OM_OK;
}

om_status
om_lower_blocks(struct om_layout *l, om_op *op, bool *done)
{
	const om_shape *x = &op->in[0]->shape, *out = &op->out[0]->shape;
	om_form y = *om_lower_form(l, op->in[0]);
	const int64_t b = om_attr_int(op, "blocksize");
	int last[4];

	if (!y.value || x->rank != 4 || !om_shape_is_known(out) || om_shape_count(out) == 0)
		return OM_OK;
	om_lower_channels_last(4, last);
	if (memcmp(last, y.axis, sizeof last) != 0)
		return OM_OK;
	*done = true;
	const int64_t n = x->dim[0], c = x->dim[1], h = x->dim[2], w = x->dim[3];
	const int64_t merged[] = {n, out->dim[2], out->dim[3], out->dim[1]};
	if (strcmp(op->type, "SpaceToDepth") == 0)
		return moved_blocks(l, op, &y, (const int64_t[]){n, h / b, b, w / b, b, c}, (const int64_t[]){0, 1, 3, 2, 4, 5}, merged);
	if (om_attr_is(op, "mode", "CRD"))
		return moved_blocks(l, op, &y, (const int64_t[]){n, h, w, c / b / b, b, b}, (const int64_t[]){0, 1, 4, 2, 5, 3},
			merged);
	return moved_blocks(l, op, &y, (const int64_t[]){n, h, w, b, b, c / b / b}, (const int64_t[]){0, 1, 3, 2, 4, 5}, merged);
}
