/* SPDX-License-Identifier: Apache-2.0 */
/* What no order of the ops gets below.
 *
 * In whatever order ops run, each of them needs its inputs, its outputs and its workspace at once.  So the arena is never
 * smaller than the most that those of one op take, less what they may have in common: inputs that may be bytes of one
 * another, and outputs that the definition permits over an input, which is assumed not to be read later.
 *
 * Which values are in the arena may depend on the order: intermediate values may be stored in memory of the caller,
 * that of a result above all.  So values are left out that a plan might store there: those that are connected by views,
 * parts, carried values or in-place pairs with a value outside of the arena that has at least as many bytes.
 *
 * Ops with bodies are left out; the ops in their bodies are not, but for bodies of which it is known that they do not
 * run, or run once.
 */
#include <config.h>

#include "alloc/disjoint.h"
#include "alloc/op_floor.h"

struct floor {
	om_disjoint w;
	om_moment at;
	uint32_t *seen;          /* by value id: 1 + id of the op that it was listed for */
	uint64_t *of_op;         /* by op id */
	uint64_t best;
	const om_op *op;
};

static void
keep_most(uint64_t *most, uint32_t k, uint64_t bytes)
{
	most[k] = bytes > most[k] ? bytes : most[k];
}

/* Leave out what another plan may have in memory of the caller. */
static void
find_outside(om_disjoint *w)
{
	const uint32_t n = w->p->nvalue;
	uint64_t *of_set = OM_NEWN(w->mem, uint64_t, n), *of_block = OM_NEWN(w->mem, uint64_t, n);

	for (uint32_t k = 0; k < n; k++) {
		const om_value *v = w->p->values[k];
		if (!w->is_outside[k])
			continue;
		keep_most(of_set, om_disjoint_leader(w->set, k), om_value_bytes(v));
		if (v->def && !v->is_const)
			keep_most(of_block, om_disjoint_leader(w->block, k), om_value_bytes(v));
	}
	for (uint32_t k = 0; k < n; k++) {
		const uint64_t bytes = om_value_bytes(w->p->values[k]);
		w->is_outside[k] |= bytes <= of_set[om_disjoint_leader(w->set, k)]
			|| bytes <= of_block[om_disjoint_leader(w->block, k)];
	}
}

static void
add(struct floor *x, const om_op *op, const om_value *v)
{
	if (!v || v->is_const || x->seen[v->id] == op->id + 1 || !om_disjoint_is_counted(&x->w, v))
		return;
	x->seen[v->id] = op->id + 1;
	OM_PUSH(x->w.mem, x->at.v, x->at.n, x->at.cap, v);
}

static void
look_at(struct floor *x, const om_op *op)
{
	x->at.n = 0;
	for (uint32_t k = 0; k < op->nin; k++)
		add(x, op, op->in[k]);
	for (uint32_t k = 0; k < op->nout; k++)
		add(x, op, op->out[k]);
	const uint64_t bytes = x->of_op[op->id] = om_moment_bytes(&x->w, &x->at, op);
	if (bytes > x->best) {
		x->best = bytes;
		x->op = op;
	}
}

uint64_t
om_op_floor(const om_prog *p, const om_assignment *a, const om_plan *plan, uint64_t *of_op, const om_op **op)
{
	om_arena *mem = om_arena_new();
	struct floor x = {.w = om_disjoint_new(p, a, plan, mem), .seen = OM_NEWN(mem, uint32_t, p->nvalue),
		.of_op = of_op};

	x.at = om_moment_new(&x.w);
	x.w.is_any_order = true;
	find_outside(&x.w);
	for (uint32_t t = 0; t < a->schedule->nstep; t++)
		if (x.w.at[t] && !x.w.is_skipped[t])
			look_at(&x, x.w.at[t]);
	*op = x.op;
	om_arena_free(mem);
	return x.best;
}
