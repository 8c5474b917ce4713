/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and LogSoftmax of float32. */
#include <config.h>

#include "kernels/cpu/kernels.h"
#include "opdef/op_context.h"
#include "ops/cpu/ranges.h"
#include "ops/family.h"
#include "ops/nn/softmax.h"

enum { COLUMNS = 64 };            /* adjacent lines that are computed together */

struct softmax {
	struct om_lines l;
	int64_t groups;           /* of adjacent lines, for each outer index */
	bool is_log;
};

struct run {
	const struct softmax *s;
	const om_rows_kernels *rows;
	const float *x;
	float *y;
};

static om_status
prepare(om_op_context *c, void **state, bool is_log)
{
	struct softmax *s = *state;

	s->is_log = is_log;
	if (!om_softmax_lines(c, &s->l))
		return om_op_fail(c->session, OM_INVALID, c->op, "axis is out of range for rank %d", c->in[0].shape.rank);
	s->groups = (s->l.inner + COLUMNS - 1) / COLUMNS;
	return OM_OK;
}

static om_status
softmax_prepare(om_op_context *c, void **state)
{
	return prepare(c, state, false);
}

static om_status
log_softmax_prepare(om_op_context *c, void **state)
{
	return prepare(c, state, true);
}

static void
contiguous_lines(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct run *r = arg;
	const int64_t n = r->s->l.n;

	(void)worker;
	for (int64_t i = from; i < to; i++)
		(r->s->is_log ? r->rows->log_softmax : r->rows->softmax)(r->y + i * n, r->x + i * n, n);
}

static void
adjacent_lines(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct run *r = arg;
	const struct om_lines *l = &r->s->l;

	(void)worker;
	for (int64_t i = from; i < to; i++) {
		const int64_t j = i % r->s->groups * COLUMNS, at = i / r->s->groups * l->n * l->inner + j;
		const int64_t width = l->inner - j < COLUMNS ? l->inner - j : COLUMNS;
		(r->s->is_log ? r->rows->log_softmax_columns : r->rows->softmax_columns)(r->y + at, r->x + at, l->n,
			l->inner, width);
	}
}

static om_status
softmax_run(om_op_context *c)
{
	const struct softmax *s = c->state;
	struct run r = {s, om_kernels_get()->rows, c->in[0].data, c->out[0].data};

	if (s->l.n == 0)
		return OM_OK;
	if (s->l.inner == 1)
		om_for_ranges(c, s->l.outer, s->l.n, contiguous_lines, &r);
	else
		om_for_ranges(c, s->l.outer * s->groups, s->l.n * COLUMNS, adjacent_lines, &r);
	return OM_OK;
}

#define KERNEL(label, prepares)                                                \
	{.name = label, .is_fast = true, .types = {OF(FLOAT32)}, .state_bytes = sizeof(struct softmax), .prepare = prepares, .run = softmax_run}

const om_kernel om_kernels_fast_softmax[] = {
	KERNEL("Softmax", softmax_prepare),
	KERNEL("LogSoftmax", log_softmax_prepare),
	{0}
};
