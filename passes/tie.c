/* tie: results of the graph in the memory of its inputs.
 *
 * A state that a program takes and gives, a cache of keys and values, is handed
 * to the next run as it comes out of this one.  Where the op that computes the
 * result may do so over that input, and nobody needs the input later, the result
 * is tied to it: it is computed in the caller's memory, and nothing is copied from
 * run to run.  The caller loses what was in the input, so this pass is in no
 * pipeline by itself.
 *
 * It comes behind `inplace`: a result in whose memory something else was put
 * before is left alone, because the input is still needed then.
 */
#include <config.h>

#include "onnxmem/pass.h"
#include "onnxmem/plan.h"

static bool
is_result(const om_prog *p, const om_value *v)
{
	for (uint32_t k = 0; k < p->first->nresult; k++)
		if (p->first->result[k] == v)
			return true;
	return false;
}

static bool
is_taken(const om_prog *p, const om_value *input)
{
	for (uint32_t k = 0; k < p->nvalue; k++)
		if (p->values[k]->store == OM_TIE && p->values[k]->source == input)
			return true;
	return false;
}

static bool
is_read(const om_op *op, const om_value *v)
{
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] == v)
			return true;
	for (uint32_t k = 0; k < op->nbody; k++) {
		for (uint32_t r = 0; r < op->body[k]->nresult; r++)
			if (op->body[k]->result[r] == v)
				return true;
		for (const om_op *inner = op->body[k]->first; inner; inner = inner->next)
			if (is_read(inner, v))
				return true;
	}
	return false;
}

/* By anybody behind `op`, or by the caller. */
static bool
is_read_later(const om_op *op, const om_value *v)
{
	for (const om_op *next = op->next; next; next = next->next)
		if (is_read(next, v))
			return true;
	return is_result(v->block->prog, v);
}

/* The caller's, given anew for each run, and neither it nor a view of it is needed
 * behind `op`: its lifetime does not say that, for the caller has it all the time. */
static bool
is_spent(om_groups *g, const om_op *op, const om_value *v)
{
	const om_group *group = v ? om_groups_find(g, v, NULL) : NULL;

	if (!group || v->def || v->data || v->block != op->block || group->root != v)
		return false;
	for (size_t k = 0; k < group->n; k++)
		if (is_read_later(op, group->member[k]))
			return false;
	return true;
}

static bool
may_tie(om_groups *g, const om_op *op, uint32_t out)
{
	const om_value *v = op->out[out];
	const om_group *own = v ? om_groups_find(g, v, NULL) : NULL;

	if (!own || v->store != OM_OWN || own->root != v || !is_result(v->block->prog, v))
		return false;
	for (size_t k = 0; k < own->n; k++)
		if (own->member[k]->first < op->step)
			return false;
	return true;
}

/* All inputs that are the same value have to allow it. */
static bool
is_allowed(const om_op *op, uint32_t out, uint32_t in)
{
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] == op->in[in] && !om_op_reuse(op, out, k))
			return false;
	return true;
}

static void
tie_output(om_run *r, om_prog *p, om_groups *g, const om_op *op, uint32_t out)
{
	om_value *v = op->out[out];

	if (!may_tie(g, op, out))
		return;
	for (uint32_t k = 0; k < op->nin; k++) {
		if (!is_spent(g, op, op->in[k]) || is_taken(p, op->in[k]) || !is_allowed(op, out, k))
			continue;
		v->store = OM_TIE;
		v->source = op->in[k];
		v->offset = 0;
		om_count(r, "results", 1);
		om_count(r, "bytes", om_value_bytes(v));
		return;
	}
}

/* In an order that may change nobody knows who reads the input last. */
static om_status
run(om_run *r, om_prog *p)
{
	if (p->order_free)
		return om_fail(r->session, OM_USAGE, "tie: a plan for every order ties nothing");
	om_groups *g = om_groups_new(p, r->scratch);
	for (const om_op *op = p->first->first; op; op = op->next)
		for (uint32_t k = 0; k < op->nout && op->row && op->row->reuse && !op->nbody && !op->is_folded; k++)
			tie_output(r, p, g, op, k);
	return OM_OK;
}

static const om_pass_counter counters[] = {
	{"results", "results that are computed in the memory of an input"},
	{"bytes", "bytes that are not copied from run to run"},
	{0}
};

OM_PASS(
	.name = "tie",
	.brief = "compute results over the inputs that they replace",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE | OM_HAS_VIEWS | OM_HAS_STORE,
	.gives = OM_HAS_STORE,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE | OM_HAS_VIEWS | OM_HAS_STORE,
	.counters = counters,
	.run = run)
