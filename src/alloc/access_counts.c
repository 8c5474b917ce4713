/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes transferred to and from every buffer in a run.  They determine which buffers are placed in the
 * fast arena.
 */
#include <config.h>

#include "alloc/buffers.h"
#include "alloc/op_facts.h"
#include "onnxmem/opdef.h"
#include "onnxmem/plan.h"

#define NONE UINT32_MAX

struct access_bytes {
	const om_prog *p;
	const om_buffers *b;
};

static uint64_t
times(uint64_t a, uint64_t b)
{
	return __builtin_mul_overflow(a, b, &a) ? UINT64_MAX : a;
}

static void
warm(struct access_bytes *w, uint32_t buffer, uint64_t bytes, uint64_t iterations)
{
	uint64_t *access_bytes = &w->b->buf[buffer].access_bytes;

	if (__builtin_add_overflow(*access_bytes, times(bytes, iterations), access_bytes))
		*access_bytes = UINT64_MAX;
}

static void
warm_value(struct access_bytes *w, const om_value *v, uint64_t iterations)
{
	uint64_t bytes;

	if (v && w->b->of_value[v->id] != NONE && om_tensor_bytes(v->type.elem, &v->shape, &bytes))
		warm(w, w->b->of_value[v->id], bytes, iterations);
}

static bool
is_view(const struct access_bytes *w, const om_value *v)
{
	return v && w->b->assignment->backing[v->id].store == OM_VIEW;
}

/* An op whose outputs are views of its inputs transfers nothing. */
static bool
moves_nothing(const struct access_bytes *w, const om_op *op)
{
	om_view_of view;

	if (op->is_folded || (op->opdef && op->opdef->flags & OM_SHAPE_ONLY))
		return true;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && !(is_view(w, op->out[k]) && om_op_facts_view(w->b->assignment->facts, op, k, &view)))
			return false;
	return op->nout > 0 && op->nbody == 0;
}

static void
warm_block(struct access_bytes *w, const om_block *b, uint64_t iterations)
{
	for (const om_op *op = b->first; op; op = op->next) {
		if (moves_nothing(w, op))
			continue;
		for (uint32_t k = 0; k < op->nin; k++)
			warm_value(w, op->in[k], iterations);
		for (uint32_t k = 0; k < op->nout; k++)
			warm_value(w, op->out[k], iterations);
		if (w->b->of_op[op->id] != NONE)
			warm(w, w->b->of_op[op->id], times(2, w->b->buf[w->b->of_op[op->id]].bytes), iterations);
		for (uint32_t k = 0; k < op->nbody; k++) {
			const uint64_t more = times(iterations, om_op_iterations(op));
			for (uint32_t i = 0; i < op->body[k]->nparam; i++)
				warm_value(w, op->body[k]->param[i], more);
			warm_block(w, op->body[k], more);
		}
	}
}

void
om_buffers_count_accesses(const om_prog *p, const om_buffers *b)
{
	struct access_bytes w = {p, b};

	for (uint32_t k = 0; k < b->n; k++)
		b->buf[k].access_bytes = 0;
	warm_block(&w, p->first, 1);
}
