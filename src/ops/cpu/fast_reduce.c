/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of float32 over any set of axes.
 *
 * If the last group of dims is reduced, an output is the result of contiguous runs; if it is kept, adjacent outputs
 * are columns of rows.  The runs of an output are merged in the order of the input. */
#include <config.h>

#include <math.h>
#include <string.h>

#include "base/shape.h"
#include "kernels/cpu/kernels.h"
#include "ops/cpu/ranges.h"
#include "ops/family.h"
#include "ops/math/reduce_axes.h"

enum { COLUMNS = 256 };           /* adjacent outputs that are computed together */

enum finish { PLAIN, MEAN, ROOT };

static const struct function {
	const char *name;
	enum om_reduce_kind kind;
	enum finish finish;
} functions[] = {
	{"ReduceL1", OM_REDUCE_SUM_ABS, PLAIN},
	{"ReduceL2", OM_REDUCE_SUM_SQUARE, ROOT},
	{"ReduceMax", OM_REDUCE_MAX, PLAIN},
	{"ReduceMean", OM_REDUCE_SUM, MEAN},
	{"ReduceMin", OM_REDUCE_MIN, PLAIN},
	{"ReduceProd", OM_REDUCE_PRODUCT, PLAIN},
	{"ReduceSum", OM_REDUCE_SUM, PLAIN},
	{"ReduceSumSquare", OM_REDUCE_SUM_SQUARE, PLAIN},
};

struct reduction {
	struct om_reduce_attrs attrs;    /* first: om_reduce_fields */
	const struct function *f;
	struct om_reduce_groups g;
	int64_t chunks;           /* of adjacent outputs, for each index of the kept groups */
	int64_t pieces;           /* outputs, or chunks of them */
	bool is_ready;            /* the axes were known when the kernel was prepared */
};

struct run {
	const struct reduction *s;
	const om_rows_kernels *rows;
	const float *x;
	float *y;
};

/* Empty inputs and copies are left to the kernel of the definition. */
static bool
supports(const om_op_context *c)
{
	const int64_t n = om_shape_count(&c->out[0].shape);

	return n > 0 && om_shape_count(&c->in[0].shape) > n;
}

static om_status
find_groups(const om_op_context *c, struct reduction *s)
{
	OM_TRY(om_reduce_groups_of(c, &s->attrs, &s->g));
	s->chunks = s->g.last_is_reduced ? 1 : (s->g.last.n + COLUMNS - 1) / COLUMNS;
	s->pieces = s->chunks;
	for (int d = 0; d < s->g.nkept; d++)
		s->pieces *= s->g.kept[d].n;
	return OM_OK;
}

static om_status
prepare(om_op_context *c, void **state)
{
	struct reduction *s = *state;

	for (s->f = functions; strcmp(s->f->name, c->op->opdef->name) != 0; s->f++)
		;
	s->is_ready = om_reduce_is_ready(c);
	return s->is_ready ? find_groups(c, s) : OM_OK;
}

/* The offset in the input of index `i` of the kept groups. */
static int64_t
kept_at(const struct om_reduce_groups *g, int64_t i)
{
	int64_t at = 0;

	for (int d = g->nkept - 1; d >= 0; d--) {
		at += i % g->kept[d].n * g->kept[d].step;
		i /= g->kept[d].n;
	}
	return at;
}

static double
finished(const struct reduction *s, double sum)
{
	switch (s->f->finish) {
	case MEAN: return sum / (double)s->g.count;
	case ROOT: return sqrt(sum);
	default: return sum;
	}
}

static double
merged(enum om_reduce_kind kind, double a, double b)
{
	switch (kind) {
	case OM_REDUCE_PRODUCT: return a * b;
	case OM_REDUCE_MAX: return b > a || b != b ? b : a;
	case OM_REDUCE_MIN: return b < a || b != b ? b : a;
	default: return a + b;
	}
}

static double
reduce_runs(const struct run *r, const float *x)
{
	const struct reduction *s = r->s;
	const enum om_reduce_kind kind = s->f->kind;
	int64_t index[OM_MAX_RANK] = {0}, at = 0;
	double sum = r->rows->run[kind](x, s->g.last.n);

	while (om_reduce_advance(s->g.reduced, s->g.nreduced, index, &at))
		sum = merged(kind, sum, r->rows->run[kind](x + at, s->g.last.n));
	return sum;
}

static void
outputs_of_runs(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct run *r = arg;

	(void)worker;
	for (int64_t i = from; i < to; i++)
		r->y[i] = (float)finished(r->s, reduce_runs(r, r->x + kept_at(&r->s->g, i)));
}

/* All rows of the innermost reduced group at once, then those of the next. */
static void
reduce_columns(const struct run *r, const float *x, double *sum, int64_t width)
{
	const struct om_reduce_groups *g = &r->s->g;
	const struct om_reduce_group *inner = &g->reduced[g->nreduced - 1];
	const enum om_reduce_kind kind = r->s->f->kind;
	int64_t index[OM_MAX_RANK] = {0}, at = 0;
	float part[COLUMNS];

	r->rows->columns[kind](part, x, inner->n, inner->step, width);
	for (int64_t j = 0; j < width; j++)
		sum[j] = (double)part[j];
	while (om_reduce_advance(g->reduced, g->nreduced - 1, index, &at)) {
		r->rows->columns[kind](part, x + at, inner->n, inner->step, width);
		for (int64_t j = 0; j < width; j++)
			sum[j] = merged(kind, sum[j], (double)part[j]);
	}
}

static void
outputs_of_columns(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct run *r = arg;
	const struct om_reduce_groups *g = &r->s->g;
	double sum[COLUMNS];

	(void)worker;
	for (int64_t i = from; i < to; i++) {
		const int64_t row = i / r->s->chunks, j = i % r->s->chunks * COLUMNS;
		const int64_t width = g->last.n - j < COLUMNS ? g->last.n - j : COLUMNS;
		float *y = r->y + row * g->last.n + j;
		reduce_columns(r, r->x + kept_at(g, row) + j, sum, width);
		for (int64_t k = 0; k < width; k++)
			y[k] = (float)finished(r->s, sum[k]);
	}
}

static om_status
run(om_op_context *c)
{
	struct reduction *s = c->state;
	struct run r = {s, om_kernels_get()->rows, c->in[0].data, c->out[0].data};

	if (!s->is_ready)
		OM_TRY(find_groups(c, s));
	const int64_t elements = om_shape_count(&c->in[0].shape) / s->pieces;
	om_for_ranges(c, s->pieces, elements, s->g.last_is_reduced ? outputs_of_runs : outputs_of_columns, &r);
	return OM_OK;
}

#define KERNEL(label)                                                          \
	{.name = label, .is_fast = true, .types = {OF(FLOAT32)}, .fields = om_reduce_fields, .state_bytes = sizeof(struct reduction), \
	 .supports = supports, .prepare = prepare, .run = run}

const om_kernel om_kernels_fast_reduce[] = {
	KERNEL("ReduceL1"),
	KERNEL("ReduceL2"),
	KERNEL("ReduceMax"),
	KERNEL("ReduceMean"),
	KERNEL("ReduceMin"),
	KERNEL("ReduceProd"),
	KERNEL("ReduceSum"),
	KERNEL("ReduceSumSquare"),
	{0}
};
