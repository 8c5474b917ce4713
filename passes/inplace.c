/* inplace: compute an output over an input that is not needed any more.
 *
 * The operator's row says which output may lie over which input.  It does, when
 * this op is the last to need the input's bytes: nobody whose bytes they are
 * too, a view or what was computed there before, is read later, nor by this op
 * through another of its inputs.  Values that a body uses live as long as the
 * op that holds the body, and what goes round a loop as long as the loop, so
 * neither is ever overwritten inside.
 *
 * Where several inputs would do, the one is taken whose storage has to live
 * longer the least; among equal ones the larger, then the longer-lived.
 *
 * An alias is written only in om_groups_merge(), together with the move that it
 * stands for: there is none without the other.
 */
#include <config.h>

#include "onnxmem/pass.h"
#include "onnxmem/plan.h"

struct candidate {
	om_value *v;
	uint64_t waste, bytes, life;
};

static bool
is_better(const struct candidate *a, const struct candidate *b)
{
	if (!b->v || a->waste != b->waste)
		return !b->v || a->waste < b->waste;
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes;
	return a->life > b->life;
}

static uint64_t
size_of(const om_value *v)
{
	uint64_t bytes;
	return om_tensor_bytes(v->type.elem, &v->shape, &bytes) ? bytes : 0;
}

/* Are the bytes of `v` of no use to anybody but input `v` of `op`? */
static bool
dies_here(const om_groups *g, const om_group *group, const om_value *v, const om_op *op)
{
	uint64_t lower, at;

	om_groups_find(g, v, &lower);
	const uint64_t upper = lower + size_of(v);
	for (size_t k = 0; k < group->n; k++) {
		const om_value *m = group->member[k];
		om_groups_find(g, m, &at);
		if (at >= upper || at + size_of(m) <= lower)
			continue;
		if (m == v ? m->last > op->step : m->last >= op->step)
			return false;
	}
	return true;
}

static bool
consider(om_groups *g, const om_op *op, uint32_t out, uint32_t in, struct candidate *c)
{
	om_value *v = op->in[in], *o = op->out[out];
	const om_group *to = v ? om_groups_find(g, v, NULL) : NULL;
	const om_group *from = om_groups_find(g, o, NULL);

	if (!to || to == from || to->bytes == 0 || !om_op_reuse(op, out, in)
	    || !dies_here(g, to, v, op) || !om_groups_fit(g, v, &o, 1))
		return false;
	*c = (struct candidate){.v = v, .bytes = to->bytes, .life = to->last - to->first,
		.waste = to->last >= from->last ? 0 : to->bytes - from->bytes};
	return true;
}

static void
place_output(om_run *r, om_groups *g, const om_op *op, uint32_t out)
{
	struct candidate best = {0}, c;
	om_value *o = op->out[out];
	const om_group *own = om_groups_find(g, o, NULL);

	if (!own || own->root != o || own->bytes == 0)
		return;
	for (uint32_t k = 0; k < op->nin; k++)
		if (consider(g, op, out, k, &c) && is_better(&c, &best))
			best = c;
	if (!best.v)
		return;
	om_groups_merge(g, best.v, o, OM_INPLACE, 0);
	om_count(r, "outputs", 1);
	om_count(r, "bytes", size_of(o));
}

static void
walk(om_run *r, om_groups *g, const om_block *b)
{
	for (const om_op *op = b->first; op; op = op->next) {
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k] && !op->is_folded && !op->nbody && op->row && op->row->reuse)
				place_output(r, g, op, k);
		for (uint32_t k = 0; k < op->nbody; k++)
			walk(r, g, op->body[k]);
	}
}

static om_status
run(om_run *r, om_prog *p)
{
	for (uint32_t k = 0; k < p->nvalue; k++)
		if (p->values[k]->store == OM_INPLACE) {
			p->values[k]->store = OM_OWN;
			p->values[k]->source = NULL;
		}
	walk(r, om_groups_new(p, r->scratch), p->first);
	return OM_OK;
}

static const om_pass_counter counters[] = {
	{"outputs", "outputs that lie over an input"},
	{"bytes", "bytes of their own that these do without"},
	{0}
};

OM_PASS(
	.name = "inplace",
	.brief = "compute over inputs that are not needed any more",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE | OM_HAS_VIEWS,
	.gives = OM_HAS_STORE,
	.keeps = OM_HAS_ALL & ~OM_HAS_PLAN,
	.counters = counters,
	.run = run)
