/* SPDX-License-Identifier: Apache-2.0 */
/* Transpose of elements of four bytes, or of one, whose last axis moves: planes are transposed in vectors.  Bits are only moved,
 * so that the results are those of the definition. */
#include <config.h>

#include "kernels/cpu/kernels.h"
#include "opdef/columns.h"
#include "ops/cpu/ranges.h"
#include "ops/family.h"
#include "ops/tensor/transpose.h"

enum { ROWS = 64 };               /* of the source, that are transposed at once */

struct run {
	const om_copy_plan *plan;
	int64_t pieces;           /* of a plane */
	void *to;
	const void *from;
};

static bool
supports(const om_op_context *c)
{
	om_op_context quiet = *c;
	om_copy_plan plan;

	quiet.session = NULL;
	return om_transpose_plan(&quiet, &plan) == OM_OK && (plan.size == 4 || plan.size == 1) && plan.inner == 2 && !plan.is_empty;
}

static om_status
prepare(om_op_context *c, void **state)
{
	return om_transpose_plan(c, *state);
}

/* Element `t` of the target is element `f` of the source. */
static void
transpose_plane(const struct run *r, int64_t t, int64_t f, int64_t m, int64_t n, int64_t to_row, int64_t from_row)
{
	const om_kernels *kernels = om_kernels_get();

	if (r->plan->size == 1)
		kernels->qrows->transpose((uint8_t *)r->to + t, (const uint8_t *)r->from + f, m, n, to_row, from_row);
	else
		kernels->rows->transpose((float *)r->to + t, (const float *)r->from + f, m, n, to_row, from_row);
}

/* Rows of the source are along the last axis of the plan, which is dense in the target. */
static void
transpose_pieces(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct run *r = arg;
	const om_copy *m = &r->plan->m;
	const int rows = m->rank - 1, columns = m->rank - 2;

	(void)worker;
	for (int64_t k = from; k < to; k++) {
		const int64_t i = k % r->pieces * ROWS, n = m->dim[rows] - i < ROWS ? m->dim[rows] - i : ROWS;
		int64_t t = i, f = i * m->from[rows], rest = k / r->pieces;
		for (int d = columns - 1; d >= 0; d--) {
			t += rest % m->dim[d] * m->to[d];
			f += rest % m->dim[d] * m->from[d];
			rest /= m->dim[d];
		}
		transpose_plane(r, t, f, n, m->dim[columns], m->to[columns], m->from[rows]);
	}
}

static om_status
run(om_op_context *c)
{
	const om_copy_plan *plan = c->state;
	const om_copy *m = &plan->m;
	struct run r = {plan, (m->dim[m->rank - 1] + ROWS - 1) / ROWS, NULL, c->in[0].data};
	int64_t planes = 1;
	bool done;

	OM_TRY(om_splat_through(c, &done));
	if (done)
		return OM_OK;
	for (int d = 0; d < m->rank - 2; d++)
		planes *= m->dim[d];
	r.to = c->out[0].data;
	om_for_ranges(c, planes * r.pieces, ROWS * m->dim[m->rank - 2], transpose_pieces, &r);
	return OM_OK;
}

const om_kernel om_kernels_fast_transpose[] = {
	{.name = "Transpose", .types = {OF(FLOAT32) | OF(INT32) | OF(UINT32) | OF_BYTES}, .state_bytes = sizeof(om_copy_plan),
	 .supports = supports, .prepare = prepare, .run = run},
	{0}
};
