/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, as exporters write it: softmax(scale Q K^T + mask) V.
 *
 * From the Softmax the scores are followed back, over masks and scales, to a product, and the weights on to the
 * next one.  Scores may be reshaped on the way, to add a mask of another number of axes: batch axes are divided so
 * far that each shape on the way is made of them.  The operands are then views of values, which are followed to
 * where they come from, and the result to where it goes: transposes, splits, heads and slices disappear. */
#include <config.h>

#include <math.h>
#include <string.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "lower/lower_attention.h"
#include "lower/layout.h"
#include "lower/view.h"
#include "opdef/geometry/einsum.h"
#include "opdef/columns.h"
#include "opdef/op_context.h"

enum { Q, K, V, MASK, MASK2, KEEP, Y, NOPERAND, MOST_SHAPES = 6, MOST_BATCH = 8 };

/* An operand on the batch axes of a shape on the way: rows and columns last. */
struct operand {
	om_view view;             /* value NULL: there is none */
};

struct attention {
	om_arena *mem;
	om_op *softmax;
	om_block *block;
	struct operand of[NOPERAND];
	om_op *product;           /* that of Q and K */
	om_value *count;          /* of the first keys, which alone take part; NULL: all of them */
	double scale;
	bool is_scaled;           /* there is a scale between the product and what was read so far */
	float fill;
	bool fill_where, zero_for_nan;
	int nshape;
	om_shape shape[MOST_SHAPES]; /* of scores on the way */
	int rank;                 /* of the batch axes, divided */
	int64_t dim[MOST_BATCH];
	int64_t rows, keys;
};

static bool
is_op(const om_op *op, const char *type)
{
	return op && *op->domain == '\0' && strcmp(op->type, type) == 0;
}

/* The number that a constant is. */
static bool
scalar_of(const om_value *v, float *is)
{
	return v && !v->is_overridable && om_real_scalar(v->data, is);
}

/* `x`, if `op` multiplies it by a number without changing its shape. */
static om_value *
scaled_value(const om_op *op, double *by)
{
	const bool is_div = is_op(op, "Div");
	float number;

	if (!is_div && !is_op(op, "Mul"))
		return NULL;
	for (uint32_t k = is_div ? 1 : 0; k < 2; k++) {
		om_value *x = op->in[1 - k];
		if (!scalar_of(op->in[k], &number) || !isfinite(number) || (is_div && number == 0) || !om_lower_is_real(x)
		    || !om_shape_equal(&x->shape, &op->out[0]->shape))
			continue;
		*by = is_div ? 1 / (double)number : (double)number;
		return x;
	}
	return NULL;
}

/* The only reader of `v`, an op of the block; NULL if there is another. */
static om_op *
reader_of(const struct attention *a, const om_value *v)
{
	om_op *op = v->nuse == 1 ? v->first_use->op : NULL;

	return op && op->block == a->block ? op : NULL;
}

/* ---- Products. ---- */

/* The operands of a product, on the batch axes of its output: steps of 0 repeat an operand. */
struct product {
	om_view x, y;             /* rows and columns: [.., m, k] and [.., n, k] */
	om_view out;              /* [.., m, n] */
};

static void
matrix_view(om_view *v, om_value *x, const om_shape *out, bool is_right)
{
	const int batch = out->rank - 2, more = batch - (x->shape.rank - 2), last = x->shape.rank - 1;
	int64_t step = x->shape.dim[last] * x->shape.dim[last - 1];

	*v = (om_view){.value = x, .rank = out->rank};
	for (int d = batch - 1; d >= 0; d--) {
		const int64_t n = d < more ? 1 : x->shape.dim[d - more];
		v->dim[d] = out->dim[d];
		v->step[d] = n == 1 ? 0 : step;
		step *= n;
	}
	v->dim[batch] = x->shape.dim[last - (is_right ? 0 : 1)];
	v->dim[batch + 1] = x->shape.dim[last - (is_right ? 1 : 0)];
	v->step[batch] = is_right ? 1 : x->shape.dim[last];
	v->step[batch + 1] = is_right ? x->shape.dim[last] : 1;
}

static void
whole_view(om_view *v, om_value *x)
{
	int64_t step = 1;

	*v = (om_view){.value = x, .rank = x->shape.rank};
	for (int d = v->rank - 1; d >= 0; d--) {
		v->dim[d] = x->shape.dim[d];
		v->step[d] = step;
		step *= v->dim[d];
	}
}

static bool
read_matmul(const om_op *op, struct product *p)
{
	const om_shape *out = &op->out[0]->shape;

	if (op->in[0]->shape.rank < 2 || op->in[1]->shape.rank < 2 || out->rank < 2)
		return false;
	matrix_view(&p->x, op->in[0], out, false);
	matrix_view(&p->y, op->in[1], out, true);
	whole_view(&p->out, op->out[0]);
	return true;
}

/* The step of a term along an axis of the equation; 0 if it has none.  False if the axis is repeated. */
static bool
term_step(const struct om_einsum *e, int term, const om_shape *s, int axis, int64_t *step)
{
	int64_t n = 1;
	bool once = true;

	*step = 0;
	for (int d = e->rank[term] - 1; d >= 0; d--) {
		if (e->term[term][d] == axis && s->dim[d] != 1) {
			once = *step == 0;
			*step = n;
		}
		n *= s->dim[d];
	}
	return once;
}

/* The view of a term along the axes `axis`, all but the last two batch axes. */
static bool
term_view(const struct om_einsum *e, int term, om_value *x, const int *axis, int n, om_view *v)
{
	*v = (om_view){.value = x, .rank = n};
	for (int k = 0; k < n; k++) {
		v->dim[k] = e->size[axis[k]].dim[0];
		if (!term_step(e, term, &x->shape, axis[k], &v->step[k]))
			return false;
	}
	return true;
}

static bool
has_axis(const struct om_einsum *e, int term, int axis)
{
	for (int d = 0; d < e->rank[term]; d++)
		if (e->term[term][d] == axis)
			return true;
	return false;
}

/* The axis that only the operands have; -1 if there is not exactly one, in both. */
static int
summed_axis(const struct om_einsum *e)
{
	int found = -1;

	for (int k = 0; k < OM_EINSUM_AXES; k++) {
		if (e->size[k].rank != 1 || has_axis(e, 2, k))
			continue;
		if (found >= 0 || !has_axis(e, 0, k) || !has_axis(e, 1, k))
			return -1;
		found = k;
	}
	return found;
}

/* The axes of a product in the order: batch axes, m, n.  `m` is in the operand `left` only, `n` in the other.  With
 * batch axes in the order of the left operand. */
static bool
order_axes(const struct om_einsum *e, int left, int summed, int *axis, int *n)
{
	int m = -1, last = -1;

	*n = 0;
	for (int d = 0; d < e->rank[left]; d++) {
		const int k = e->term[left][d];
		if (k == summed)
			continue;
		if (has_axis(e, 1 - left, k) && *n < OM_MAX_RANK - 2)
			axis[(*n)++] = k;
		else if (m < 0 && !has_axis(e, 1 - left, k))
			m = k;
		else
			return false;
	}
	for (int d = 0; d < e->rank[1 - left]; d++) {
		const int k = e->term[1 - left][d];
		if (k == summed || has_axis(e, left, k))
			continue;
		if (last >= 0)
			return false;
		last = k;
	}
	if (m < 0 || last < 0)
		return false;
	axis[(*n)++] = m;
	axis[(*n)++] = last;
	return *n == e->rank[2];
}

static bool
read_equation(const struct attention *a, const om_op *op, struct om_einsum *e)
{
	om_op_context c;

	om_op_context_init(&c, om_session_new(), a->mem, op);
	const bool ok = op->nin == 2 && om_einsum_read(&c, e) == OM_OK;
	om_session_free(c.session);
	for (int k = 0; ok && k < OM_EINSUM_AXES; k++)
		if (e->size[k].rank == 1 && e->size[k].dim[0] < 1)
			return false;
	return ok;
}

/* Operand `left` of an Einsum is X. */
static bool
read_einsum(const struct attention *a, const om_op *op, int left, struct product *p)
{
	struct om_einsum e;
	int axis[OM_MAX_RANK + 1], n;

	if (!read_equation(a, op, &e))
		return false;
	const int summed = summed_axis(&e);
	if (summed < 0 || !order_axes(&e, left, summed, axis, &n))
		return false;
	if (!term_view(&e, 2, op->out[0], axis, n, &p->out))
		return false;
	const int right = axis[n - 1];
	axis[n - 1] = summed;
	if (!term_view(&e, left, op->in[left], axis, n, &p->x))
		return false;
	axis[n - 2] = right;
	return term_view(&e, 1 - left, op->in[1 - left], axis, n, &p->y);
}

static bool
is_product(const om_op *op)
{
	return (is_op(op, "MatMul") || is_op(op, "Einsum")) && op->nin == 2 && om_lower_is_real(op->in[0])
	    && om_lower_is_real(op->in[1]) && om_lower_is_real(op->out[0]) && om_shape_count(&op->out[0]->shape) > 0;
}

static bool
is_dense(const om_view *v)
{
	int64_t step = 1;

	for (int d = v->rank - 1; d >= 0; d--) {
		if (v->dim[d] != 1 && v->step[d] != step)
			return false;
		step *= v->dim[d];
	}
	return v->offset == 0;
}

/* Scores in the order batch axes, rows, keys. */
static bool
read_scores(struct attention *a, const om_op *op)
{
	struct product p;

	for (int left = 0; left < 2; left++) {
		if (is_op(op, "MatMul") ? left == 1 || !read_matmul(op, &p) : !read_einsum(a, op, left, &p))
			continue;
		if (!is_dense(&p.out))
			continue;
		a->of[Q].view = p.x;
		a->of[K].view = p.y;
		return true;
	}
	return false;
}

/* The product of the weights, which are `v`, and V. */
static bool
read_values(struct attention *a, const om_op *op, const om_value *v)
{
	struct product p;

	for (int left = 0; left < 2; left++) {
		if (op->in[left] != v || op->in[1 - left] == v)
			continue;
		if (is_op(op, "MatMul") ? left == 1 || !read_matmul(op, &p) : !read_einsum(a, op, left, &p))
			continue;
		if (!is_dense(&p.x))
			continue;
		a->of[V].view = p.y;
		const int n = p.y.rank;
		const int64_t dim = p.y.dim[n - 1], step = p.y.step[n - 1];  /* rows are keys */
		a->of[V].view.dim[n - 1] = p.y.dim[n - 2];
		a->of[V].view.step[n - 1] = p.y.step[n - 2];
		a->of[V].view.dim[n - 2] = dim;
		a->of[V].view.step[n - 2] = step;
		a->of[Y].view = p.out;
		return true;
	}
	return false;
}

/* ---- From the scores to their product. ---- */

static bool
note_shape(struct attention *a, const om_shape *s)
{
	if (s->rank < 2 || a->nshape == MOST_SHAPES || s->dim[s->rank - 1] != a->keys || s->dim[s->rank - 2] != a->rows)
		return false;
	a->shape[a->nshape++] = *s;
	return true;
}

/* A mask, broadcast to scores of this shape. */
static bool
note_mask(struct attention *a, int k, om_value *mask, const om_shape *scores)
{
	const int more = scores->rank - mask->shape.rank;
	om_view *v = &a->of[k].view;
	int64_t step = 1;

	if (v->value || more < 0 || !om_shape_is_known(&mask->shape))
		return false;
	*v = (om_view){.value = mask, .rank = scores->rank};
	for (int d = scores->rank - 1; d >= 0; d--) {
		const int64_t n = d < more ? 1 : mask->shape.dim[d - more];
		if (n != 1 && n != scores->dim[d])
			return false;
		v->dim[d] = scores->dim[d];
		v->step[d] = n == 1 ? 0 : step;
		step *= n;
	}
	return true;
}

/* Is `v` computed from a product, by ops that may be between that and the softmax? */
static bool
leads_to_product(const om_value *v, int depth)
{
	const om_op *op = v ? v->def : NULL;

	if (!op || depth == 0)
		return false;
	if (is_product(op))
		return true;
	if (om_view_keeps_order(op))
		return leads_to_product(op->in[0], depth - 1);
	if (is_op(op, "Where"))
		return leads_to_product(op->in[1], depth - 1) || leads_to_product(op->in[2], depth - 1);
	return (is_op(op, "Add") || is_op(op, "Mul") || is_op(op, "Div"))
	    && (leads_to_product(op->in[0], depth - 1) || leads_to_product(op->in[1], depth - 1));
}

static om_value *
past_add(struct attention *a, const om_op *op)
{
	const om_shape *out = &op->out[0]->shape;

	if (a->is_scaled || a->of[KEEP].view.value)
		return NULL;
	for (int k = 0; k < 2; k++) {
		om_value *x = op->in[k], *mask = op->in[1 - k];
		if (om_lower_is_real(mask) && om_lower_is_real(x) && om_shape_equal(&x->shape, out) && leads_to_product(x, 6))
			return note_mask(a, a->of[MASK].view.value ? MASK2 : MASK, mask, out) ? x : NULL;
	}
	return NULL;
}

static om_value *
past_where(struct attention *a, const om_op *op)
{
	const om_shape *out = &op->out[0]->shape;

	if (a->is_scaled || op->in[0]->type.elem != OM_BOOL)
		return NULL;
	for (int k = 1; k < 3; k++) {
		om_value *x = op->in[k];
		if (!scalar_of(op->in[3 - k], &a->fill) || !om_lower_is_real(x) || !om_shape_equal(&x->shape, out)
		    || !leads_to_product(x, 6))
			continue;
		a->fill_where = k == 2;
		return note_mask(a, KEEP, op->in[0], out) ? x : NULL;
	}
	return NULL;
}

/* The scores before `op`; NULL: it cannot be a part of attention. */
static om_value *
past(struct attention *a, const om_op *op)
{
	double by;
	om_value *x = scaled_value(op, &by);

	if (x) {
		a->scale *= by;
		a->is_scaled = true;
		return x;
	}
	if (is_op(op, "Add"))
		return past_add(a, op);
	if (is_op(op, "Where"))
		return past_where(a, op);
	return om_view_keeps_order(op) && note_shape(a, &op->in[0]->shape) ? op->in[0] : NULL;
}

static bool
read_back(struct attention *a)
{
	om_value *v = a->softmax->in[0];

	a->rows = v->shape.dim[v->shape.rank - 2];
	a->keys = v->shape.dim[v->shape.rank - 1];
	if (!note_shape(a, &v->shape))
		return false;
	for (;;) {
		om_op *op = v->def;
		if (!op || op->block != a->block || !reader_of(a, v))
			return false;
		if (is_product(op)) {
			a->product = op;
			return read_scores(a, op);
		}
		v = past(a, op);
		if (!v)
			return false;
	}
}

/* ---- From the weights to the result. ---- */

/* Dropout, if it keeps all. */
static bool
is_dropout(const om_op *op)
{
	return is_op(op, "Dropout") && op->version >= 7 && (op->nout < 2 || !op->out[1] || op->out[1]->nuse == 0)
	    && (op->nin < 3 || !op->in[2] || om_value_is(op->in[2], false));
}

/* Where(IsNaN(v), 0, v), for rows without a key. */
static om_value *
without_nan(const struct attention *a, const om_value *v)
{
	const om_op *is_nan = NULL, *where = NULL;
	float zero;

	if (v->nuse != 2)
		return NULL;
	for (const om_use *u = v->first_use; u; u = u->next) {
		if (is_op(u->op, "IsNaN"))
			is_nan = u->op;
		else if (is_op(u->op, "Where") && u->index == 2)
			where = u->op;
	}
	const bool fits = is_nan && where && where->block == a->block && where->in[0] == is_nan->out[0]
	    && is_nan->out[0]->nuse == 1 && scalar_of(where->in[1], &zero) && zero == 0
	    && om_shape_equal(&where->out[0]->shape, &v->shape);
	return fits ? where->out[0] : NULL;
}

static bool
read_on(struct attention *a)
{
	om_value *v = a->softmax->out[0], *clean = without_nan(a, v);
	om_op *op;

	if (clean) {
		a->zero_for_nan = true;
		v = clean;
	}
	while ((op = reader_of(a, v)) && is_dropout(op))
		v = op->out[0];
	return op && is_product(op) && read_values(a, op, v);
}

/* ---- Batch axes. ---- */

static int64_t
batch_size(const om_shape *s)
{
	return om_shape_span(s, 0, s->rank - 2);
}

/* The least size of axes on the right of which some shape has an axis, above `least`; 0: there is none. */
static int64_t
next_cut(const struct attention *a, int64_t least)
{
	int64_t best = 0;

	for (int k = 0; k < a->nshape; k++)
		for (int64_t d = a->shape[k].rank - 3, n = 1; d >= 0; d--) {
			n *= a->shape[k].dim[d];
			if (n > least && (best == 0 || n < best))
				best = n;
		}
	return best;
}

/* Divide the batch axes of all shapes: false if they are not made of common axes. */
static bool
divide_batch(struct attention *a)
{
	int64_t dim[MOST_BATCH], done = 1;

	for (int k = 1; k < a->nshape; k++)
		if (batch_size(&a->shape[k]) != batch_size(&a->shape[0]))
			return false;
	for (int64_t cut; (cut = next_cut(a, done)); done = cut) {
		if (cut % done || a->rank == MOST_BATCH)
			return false;
		dim[a->rank++] = cut / done;
	}
	for (int k = 0; k < a->rank; k++)
		a->dim[k] = dim[a->rank - 1 - k];
	return true;
}

/* Heads that share keys or values, which an Expand repeats, are an axis of their own. */
static void
take_repeated(struct attention *a, int k)
{
	const om_shape *s = om_view_repeated(a->of[k].view.value);

	if (s && s->rank > 3 && a->nshape < MOST_SHAPES && batch_size(s) == batch_size(&a->shape[0]))
		a->shape[a->nshape++] = *s;
}

static bool
divide(struct attention *a)
{
	if (!divide_batch(a))
		return false;
	for (int k = 0; k < NOPERAND; k++)
		if (a->of[k].view.value && !om_view_divide(&a->of[k].view, a->rank, a->dim))
			return false;
	return true;
}

/* ---- The replacement. ---- */

/* Follow an operand to where it comes from; scales of Q and K are taken along. */
static void
follow_back(struct attention *a, int k, struct om_layout *l)
{
	om_view *v = &a->of[k].view;
	double by = 1;

	for (;;) {
		om_view_settle_shape(l, v->value);
		om_value *x = (k == Q || k == K) && v->value->def ? scaled_value(v->value->def, &by) : NULL;
		if (x) {
			a->scale *= by;
			v->value = x;
		} else if (!om_view_back(v)) {
			return;
		}
	}
}

/* Follow the result; returns the op that computes it in the end. */
static om_op *
follow_on(struct attention *a)
{
	om_view *v = &a->of[Y].view;
	om_op *op;

	while ((op = reader_of(a, v->value)) && om_view_forward(v, op))
		;
	return v->value->def;
}

static void
add_view(om_prog *p, om_op *op, const char *name, const om_view *v)
{
	int64_t list[MOST_BATCH + 3];

	list[0] = v->offset;
	memcpy(list + 1, v->step, (size_t)v->rank * sizeof *list);
	om_op_add_ints(p, op, name, (size_t)v->rank + 1, list);
}

static om_op *
new_op(struct attention *a, struct om_layout *l)
{
	static const char *const names[] = {"q", "k", "v", "mask", "mask2", "keep", "y"};
	om_value *in[Y + 1] = {NULL};
	uint32_t n = 0;
	int64_t dims[MOST_BATCH + 4];

	for (uint32_t k = 0; k <= Y; k++)
		if ((in[k] = k == Y ? a->count : a->of[k].view.value))
			n = k + 1;
	om_op *op = om_lower_op(l, OM_CPU_DOMAIN, "Attention", 1, n, in);
	memcpy(dims, a->dim, sizeof a->dim);
	dims[a->rank] = a->rows;
	dims[a->rank + 1] = a->keys;
	dims[a->rank + 2] = a->of[Q].view.dim[a->rank + 1];
	dims[a->rank + 3] = a->of[V].view.dim[a->rank + 1];
	om_op_add_ints(l->p, op, "dims", (size_t)a->rank + 4, dims);
	om_op_add_ints(l->p, op, "shape", (size_t)a->of[Y].view.value->shape.rank, a->of[Y].view.value->shape.dim);
	for (int k = 0; k < NOPERAND; k++)
		if (a->of[k].view.value)
			add_view(l->p, op, names[k], &a->of[k].view);
	om_op_add_float(l->p, op, "scale", (float)a->scale);
	if (a->of[KEEP].view.value) {
		om_op_add_float(l->p, op, "fill", a->fill);
		om_op_add_int(l->p, op, "fill_where", a->fill_where);
	}
	if (a->zero_for_nan)
		om_op_add_string(l->p, op, "masked", "zero_for_nan");
	return op;
}

static om_status
replace(struct attention *a, om_session *s, om_prog *p)
{
	struct om_layout l = {.session = s, .p = p, .mem = a->mem};
	om_op *last, *op;

	for (int k = Q; k <= MASK2; k++)
		if (a->of[k].view.value)
			follow_back(a, k, &l);
	last = follow_on(a);
	op = new_op(a, &l);
	om_value *y = last->out[0];
	last->out[0] = NULL;
	y->def = NULL;
	op->phase = last->phase;
	op->name = last->name;
	om_op_insert(last, op);
	om_op_remove(last);
	om_op_set_out(op, 0, y);
	return om_op_infer(s, p, op);
}

/* Softmax of the first keys alone, which the pass open-rows makes. */
static bool
is_prefix(const om_op *op)
{
	return strcmp(op->domain, OM_CPU_DOMAIN) == 0 && strcmp(op->type, "PrefixSoftmax") == 0;
}

static bool
is_softmax(const om_op *op)
{
	if ((!is_op(op, "Softmax") && !is_prefix(op)) || !om_lower_is_real(op->in[0]) || op->in[0]->shape.rank < 2
	    || om_shape_count(&op->in[0]->shape) == 0)
		return false;
	if (is_prefix(op))
		return true;
	const int64_t axis = om_attr_int(op, "axis"), rank = op->in[0]->shape.rank;
	return axis == -1 || axis == rank - 1;
}

/* A product with weights that are 0 would read values after the first keys, where anything may be: 0 * NaN is no 0. */
static om_status
not_fused(om_session *s, const om_op *softmax)
{
	return is_prefix(softmax) ? om_op_fail(s, OM_UNSUPPORTED, softmax, "it is no part of an attention that reads the first keys alone")
		: OM_OK;
}

om_status
om_lower_attention(om_session *s, om_prog *p, om_arena *mem, om_op *softmax, bool *done)
{
	struct attention a = {.mem = mem, .softmax = softmax, .block = softmax->block, .scale = 1};

	*done = false;
	if (!is_softmax(softmax))
		return OM_OK;
	if (!read_back(&a) || !read_on(&a))
		return not_fused(s, softmax);
	a.count = is_prefix(softmax) ? softmax->in[1] : NULL;
	struct attention shared = a;
	take_repeated(&shared, K);
	take_repeated(&shared, V);
	if (divide(&shared))
		a = shared;
	else if (!divide(&a))
		return not_fused(s, softmax);
	*done = true;
	return replace(&a, s, p);
}
