/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum by matrix products.
 *
 * Operands are multiplied in pairs from left to right.  In each pair an index is of one of four kinds: it is
 * in both operands and the result (a batch axis), in the first and the result (rows), in the second and the
 * result (columns), or in both operands only (summed).  Axes of a kind that are adjacent in every operand
 * are merged.  Of rows and columns the largest axis remains, and the others become batch axes that one
 * operand does not move along.  Several summed axes must merge: operands in which they do not are copied.
 * The columns of the result must be contiguous: operands are exchanged, or the result is copied.
 *
 * An index that is repeated in a term needs no care: its step is the sum of the steps of its dims. */
#include <config.h>

#include "kernels/cpu/product.h"
#include "base/strided_copy.h"
#include "opdef/numbers.h"
#include "ops/math/einsum_product.h"

enum {
	MAX_AXES = OM_PRODUCT_RANK - 2,   /* of a pair */
	LEAST_WORK = 4,           /* multiplications of a product */
	MOST_GROWTH = 4,          /* of an intermediate result, compared with the largest tensor */
};

/* The elements of a tensor: the step along each axis of the equation, 0 where it does not move. */
struct operand {
	int64_t step[OM_EINSUM_AXES];
};

enum { X, Y, Z };

struct axis {
	int64_t size, step[3];    /* of the two operands and the result */
};

struct axes {
	int n;
	struct axis axis[MAX_AXES];
};

/* Kinds of axes. */
enum { BATCH, ROWS, COLUMNS, SUMMED, NKIND };

struct pair {
	struct axes kind[NKIND];
	bool is_exchanged;        /* X is the second operand */
};

/* One product, and the copies around it. */
struct step {
	om_product_batch product;
	om_copy_plan copy[3];
	bool has_copy[3];
	bool is_exchanged;
	uint64_t result_bytes, copy_bytes[3];
};

struct om_einsum_products {
	uint32_t nstep;
	struct step *step;
	uint64_t result_bytes;    /* of an intermediate result, at most; there are two in turn */
	uint64_t copy_bytes[3];   /* at most */
	uint64_t bytes;           /* of all these */
};

/* ---- Axes. ---- */

static bool
axis_add(struct axes *a, const struct axis *x)
{
	if (a->n == MAX_AXES)
		return false;
	a->axis[a->n++] = *x;
	return true;
}

static struct axis
axis_remove(struct axes *a, int k)
{
	const struct axis x = a->axis[k];

	for (a->n--; k < a->n; k++)
		a->axis[k] = a->axis[k + 1];
	return x;
}

/* Outermost first, by the steps in `of`. */
static void
axes_sort(struct axes *a, int of)
{
	for (int i = 1; i < a->n; i++)
		for (int k = i; k > 0 && a->axis[k].step[of] > a->axis[k - 1].step[of]; k--) {
			const struct axis t = a->axis[k];
			a->axis[k] = a->axis[k - 1];
			a->axis[k - 1] = t;
		}
}

static bool
is_adjacent(const struct axis *outer, const struct axis *inner, int of)
{
	return outer->step[of] == inner->step[of] * inner->size;
}

static void
axes_merge(struct axes *a)
{
	for (int k = 0; k + 1 < a->n;) {
		const struct axis *outer = &a->axis[k], *inner = &a->axis[k + 1];
		if (is_adjacent(outer, inner, X) && is_adjacent(outer, inner, Y) && is_adjacent(outer, inner, Z)) {
			a->axis[k + 1].size *= outer->size;
			axis_remove(a, k);
		} else {
			k++;
		}
	}
}

static int
axes_find_dense(const struct axes *a)
{
	for (int k = 0; k < a->n; k++)
		if (a->axis[k].step[Z] == 1)
			return k;
	return -1;
}

static int
axes_find_largest(const struct axes *a)
{
	int best = 0;

	for (int k = 1; k < a->n; k++)
		if (a->axis[k].size >= a->axis[best].size)
			best = k;
	return best;
}

/* ---- A pair of operands. ---- */

/* Sort the axes of the equation into kinds; false if there are too many or one is summed over one operand. */
static bool
pair_read(struct pair *p, const int64_t *size, const struct operand *const of[3])
{
	*p = (struct pair){0};
	for (int k = 0; k < OM_EINSUM_AXES; k++) {
		const struct axis a = {size[k], {of[X]->step[k], of[Y]->step[k], of[Z]->step[k]}};
		const bool x = a.step[X], y = a.step[Y], z = a.step[Z];
		if (!x && !y)
			continue;
		if (!z && !(x && y))
			return false;
		if (!axis_add(&p->kind[!z ? SUMMED : !y ? ROWS : !x ? COLUMNS : BATCH], &a))
			return false;
	}
	return p->kind[BATCH].n + p->kind[ROWS].n + p->kind[COLUMNS].n + p->kind[SUMMED].n <= MAX_AXES;
}

static void
exchange_steps(struct axes *a)
{
	for (int k = 0; k < a->n; k++) {
		const int64_t t = a->axis[k].step[X];
		a->axis[k].step[X] = a->axis[k].step[Y];
		a->axis[k].step[Y] = t;
	}
}

static void
pair_exchange(struct pair *p)
{
	const struct axes rows = p->kind[ROWS];

	p->kind[ROWS] = p->kind[COLUMNS];
	p->kind[COLUMNS] = rows;
	for (int k = 0; k < NKIND; k++)
		exchange_steps(&p->kind[k]);
	p->is_exchanged = !p->is_exchanged;
}

/* Give operand `of` of the product a dense copy: batch axes, its own, and the summed axes last. */
static void
copy_operand(struct pair *p, int of, struct step *s)
{
	static const int order[2][3] = {{SUMMED, ROWS, BATCH}, {SUMMED, COLUMNS, BATCH}};
	int64_t count = 1;
	om_copy copy = {.rank = 0}, inner_last = {.rank = 0};

	for (int i = 0; i < 3; i++) {
		struct axes *a = &p->kind[of == Z && i == 0 ? COLUMNS : of == Z ? order[0][i] : order[of][i]];
		for (int k = a->n - 1; k >= 0; k--) {
			if (!a->axis[k].step[of])
				continue;
			if (of == Z)
				om_copy_axis(&copy, a->axis[k].size, a->axis[k].step[of], count);
			else
				om_copy_axis(&copy, a->axis[k].size, count, a->axis[k].step[of]);
			a->axis[k].step[of] = count;
			count *= a->axis[k].size;
		}
	}
	for (int k = copy.rank - 1; k >= 0; k--)
		om_copy_axis(&inner_last, copy.dim[k], copy.to[k], copy.from[k]);
	s->copy[of] = om_copy_prepare(&inner_last, sizeof(float));
	s->copy_bytes[of] = om_piece_size((uint64_t)count * sizeof(float));
	s->has_copy[of] = true;
}

static bool
sums_merge(const struct axes *summed, int of)
{
	for (int k = 0; k + 1 < summed->n; k++)
		if (!is_adjacent(&summed->axis[k], &summed->axis[k + 1], of))
			return false;
	return true;
}

/* Make the summed axes one. */
static void
merge_sums(struct pair *p, struct step *s)
{
	struct axes *summed = &p->kind[SUMMED];

	axes_sort(summed, X);
	if (!sums_merge(summed, X)) {
		axes_sort(summed, Y);
		if (!sums_merge(summed, Y))
			copy_operand(p, Y, s);
		if (!sums_merge(summed, X))
			copy_operand(p, X, s);
	} else if (!sums_merge(summed, Y)) {
		copy_operand(p, Y, s);
	}
	axes_merge(summed);
}

/* Let the columns of the result be contiguous, or be only one. */
static void
make_columns_dense(struct pair *p, struct step *s)
{
	const bool is_dense = axes_find_dense(&p->kind[COLUMNS]) >= 0;

	if (is_dense || p->kind[COLUMNS].n == 0)
		return;
	if (axes_find_dense(&p->kind[ROWS]) >= 0 || p->kind[ROWS].n == 0)
		pair_exchange(p);
	else
		copy_operand(p, Z, s);
}

static void
batch_axis(om_product_batch *b, const struct axis *a)
{
	b->dim[b->rank] = a->size;
	b->a[b->rank] = a->step[X];
	b->b[b->rank] = a->step[Y];
	b->c[b->rank++] = a->step[Z];
}

static struct axis
take_axis(struct axes *a, int k)
{
	static const struct axis none = {1, {1, 1, 1}};

	return a->n ? axis_remove(a, k) : none;
}

static void
make_product(struct pair *p, struct step *s)
{
	om_product_batch *b = &s->product;
	struct axes *columns = &p->kind[COLUMNS];
	const int dense = axes_find_dense(columns);
	const struct axis m = take_axis(&p->kind[ROWS], axes_find_largest(&p->kind[ROWS]));
	const struct axis n = take_axis(columns, dense >= 0 ? dense : 0);
	const struct axis k = take_axis(&p->kind[SUMMED], 0);

	*b = (om_product_batch){.p = {
		.m = m.size, .n = n.size, .k = k.size, .a_row = m.step[X], .a_col = k.step[X], .b_row = k.step[Y],
		.b_col = n.step[Y], .c_row = m.step[Z], .alpha = 1,
	}};
	for (int kind = BATCH; kind <= COLUMNS; kind++)
		for (int i = 0; i < p->kind[kind].n; i++)
			batch_axis(b, &p->kind[kind].axis[i]);
	om_product_choose(b);
	s->is_exchanged = p->is_exchanged;
}

static bool
make_step(struct step *s, const int64_t *size, const struct operand *const of[3])
{
	struct pair p;

	if (!pair_read(&p, size, of))
		return false;
	for (int kind = BATCH; kind <= COLUMNS; kind++)
		axes_sort(&p.kind[kind], Z);
	make_columns_dense(&p, s);
	merge_sums(&p, s);
	for (int kind = BATCH; kind <= COLUMNS; kind++)
		axes_merge(&p.kind[kind]);
	make_product(&p, s);
	const om_product *m = &s->product.p;
	return (double)m->m * (double)m->n * (double)m->k >= LEAST_WORK;
}

/* ---- All operands. ---- */

/* What an equation is while its operands are multiplied. */
struct work {
	const struct om_einsum *e;
	int64_t size[OM_EINSUM_AXES];
	int64_t largest;          /* elements of an input or the output */
	struct operand left, right, result;
};

static struct operand
operand_of(const struct work *w, const om_shape *shape, uint32_t term)
{
	struct operand o = {{0}};
	int64_t step = 1;

	for (int d = shape->rank - 1; d >= 0; d--) {
		if (shape->dim[d] > 1)
			o.step[w->e->term[term][d]] += step;
		step *= shape->dim[d];
	}
	return o;
}

/* Is the axis used by the output, or an operand from `from` on? */
static bool
is_used_from(const struct work *w, uint32_t from, int axis)
{
	for (uint32_t k = from; k <= w->e->nin; k++)
		for (int d = 0; d < w->e->rank[k]; d++)
			if (w->e->term[k][d] == axis)
				return true;
	return false;
}

/* The dense result of multiplying `left` and `right`, before operand `next`: batch axes, rows, columns.  False if
 * it is too large. */
static bool
intermediate(struct work *w, uint32_t next, int64_t *count)
{
	*count = 1;
	w->result = (struct operand){{0}};
	for (int kind = 0; kind < 3; kind++)
		for (int k = OM_EINSUM_AXES - 1; k >= 0; k--) {
			const bool x = w->left.step[k], y = w->right.step[k];
			if (kind != (x && y ? 2 : x ? 1 : 0) || !(x || y) || !is_used_from(w, next, k))
				continue;
			w->result.step[k] = *count;
			if (__builtin_mul_overflow(*count, w->size[k], count))
				return false;
		}
	return *count / MOST_GROWTH <= w->largest;
}

static bool
make_steps(const om_op_context *c, struct work *w, om_einsum_products *p)
{
	const uint32_t nin = w->e->nin;

	w->left = operand_of(w, &c->in[0].shape, 0);
	for (uint32_t k = 1; k < nin; k++) {
		struct step *s = &p->step[k - 1];
		const struct operand *const of[3] = {&w->left, &w->right, &w->result};
		int64_t count = 0;
		w->right = operand_of(w, &c->in[k].shape, k);
		if (k + 1 == nin)
			w->result = operand_of(w, &c->out[0].shape, nin);
		else if (!intermediate(w, k + 1, &count))
			return false;
		if (!make_step(s, w->size, of))
			return false;
		s->result_bytes = om_piece_size((uint64_t)count * sizeof(float));
		w->left = w->result;
	}
	return true;
}

static void
add_sizes(om_einsum_products *p)
{
	for (uint32_t k = 0; k < p->nstep; k++) {
		const struct step *s = &p->step[k];
		if (s->result_bytes > p->result_bytes)
			p->result_bytes = s->result_bytes;
		for (int i = 0; i < 3; i++)
			if (s->copy_bytes[i] > p->copy_bytes[i])
				p->copy_bytes[i] = s->copy_bytes[i];
	}
	p->bytes = 2 * p->result_bytes;
	for (int i = 0; i < 3; i++)
		p->bytes += p->copy_bytes[i];
}

static int64_t
larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

om_einsum_products *
om_einsum_products_new(const om_op_context *c, const struct om_einsum *e)
{
	struct work w = {.e = e, .largest = om_shape_count(&c->out[0].shape)};
	om_einsum_products *p = OM_NEW(c->mem, om_einsum_products);

	if (e->nin < 2)
		return NULL;
	for (int k = 0; k < OM_EINSUM_AXES; k++) {
		w.size[k] = e->size[k].rank == 1 ? e->size[k].dim[0] : 1;
		if (w.size[k] == 0)
			return NULL;
	}
	for (uint32_t k = 0; k < e->nin; k++)
		w.largest = larger(w.largest, om_shape_count(&c->in[k].shape));
	p->nstep = e->nin - 1;
	p->step = OM_NEWN(c->mem, struct step, p->nstep);
	if (w.largest > INT64_MAX / 64 || !make_steps(c, &w, p))
		return NULL;
	add_sizes(p);
	return p;
}

uint64_t
om_einsum_products_workspace(const om_einsum_products *p, uint32_t workers)
{
	uint64_t room = 0;

	for (uint32_t k = 0; k < p->nstep; k++) {
		const uint64_t bytes = om_product_workspace(&p->step[k].product, workers);
		room = bytes > room ? bytes : room;
	}
	return om_size_sum(p->bytes, room);
}

static const float *
copied(const struct step *s, int of, char *room, const float *from)
{
	if (!s->has_copy[of])
		return from;
	om_copy_go(&s->copy[of], room, from);
	return (const float *)room;
}

void
om_einsum_products_run(const om_einsum_products *p, om_op_context *c)
{
	char *results = c->scratch, *x_room = results + 2 * p->result_bytes, *y_room = x_room + p->copy_bytes[X];
	char *z_room = y_room + p->copy_bytes[Y], *room = z_room + p->copy_bytes[Z];
	const float *left = c->in[0].data;

	for (uint32_t k = 0; k < p->nstep; k++) {
		const struct step *s = &p->step[k];
		const float *right = c->in[k + 1].data;
		const bool is_last = k + 1 == p->nstep;
		float *result = is_last ? c->out[0].data : (float *)(results + k % 2 * p->result_bytes);
		const float *x = copied(s, X, x_room, s->is_exchanged ? right : left);
		const float *y = copied(s, Y, y_room, s->is_exchanged ? left : right);
		float *z = s->has_copy[Z] ? (float *)z_room : result;
		om_product_run(&s->product, x, y, z, room, c->pool);
		if (s->has_copy[Z])
			om_copy_go(&s->copy[Z], result, z);
		left = result;
	}
}
