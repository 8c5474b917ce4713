/* tie: results of the graph in the memory of its inputs.
 *
 * A state that a program takes and gives, a cache of keys and values, a weight, is handed
 * to the next run as it comes out of this one.  Where the op that computes the
 * result may do so over that input, and nobody needs the input later, the result
 * is tied to it: it is computed in the caller's memory, and nothing is copied from
 * run to run.  The caller loses what was in the input.
 *
 * `asked` ties what the program says that it hands on, and nothing else: so it is in the
 * usual pipeline.  It comes before `inplace`, which would put gradients into the memory
 * of new weights while the old ones are still needed.  A result may be some ops away from
 * its input then; what is computed on the way lies in the input's memory, too.
 *
 * `any` ties whatever can be, one op away, and is behind `inplace`: a result in whose
 * memory something else was put before is left alone, because the input is still needed
 * then.
 */
#include <config.h>

#include <string.h>

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
		if (p->values[k]->store == OM_IO_ALIAS && p->values[k]->source == input)
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
is_spent(om_alias_sets *g, const om_op *op, const om_value *v)
{
	const om_alias_set *group = v ? om_alias_sets_find(g, v, NULL) : NULL;

	if (!group || v->def || v->data || v->block != op->block || group->root != v)
		return false;
	for (size_t k = 0; k < group->n; k++)
		if (is_read_later(op, group->member[k]))
			return false;
	return true;
}

static bool
may_tie(om_alias_sets *g, const om_op *op, uint32_t out)
{
	const om_value *v = op->out[out];
	const om_alias_set *own = v ? om_alias_sets_find(g, v, NULL) : NULL;

	if (!own || v->store != OM_OWN || own->root != v || !is_result(v->block->prog, v))
		return false;
	for (size_t k = 0; k < own->n; k++)
		if (own->member[k]->first < op->step)
			return false;
	return true;
}

/* ---- Any. ---- */

static void
tie_output(om_run *r, om_prog *p, om_alias_sets *g, const om_op *op, uint32_t out)
{
	om_value *v = op->out[out];

	if (!may_tie(g, op, out))
		return;
	for (uint32_t k = 0; k < op->nin; k++) {
		if (!is_spent(g, op, op->in[k]) || is_taken(p, op->in[k]) || !om_op_inplace_allowed(op, out, op->in[k]))
			continue;
		om_value_set_storage(v, OM_IO_ALIAS, op->in[k], 0);
		om_count(r, "results", 1);
		om_count(r, "bytes", om_value_bytes(v));
		return;
	}
}

static void
tie_any(om_run *r, om_prog *p)
{
	om_alias_sets *g = om_alias_sets_new(p, r->scratch);
	for (const om_op *op = p->first->first; op; op = op->next)
		for (uint32_t k = 0; k < op->nout && op->opdef && op->opdef->inplace && !op->nbody && !op->is_folded; k++)
			tie_output(r, p, g, op, k);
}

/* ---- What the program hands on. ---- */

static bool
is_open(const om_update_path *w)
{
	return w->result->store == OM_OWN
	    && (w->nreader == 0 || w->reader[w->nreader - 1]->step < w->value[0]->def->step);
}

static void
tie_way(om_run *r, const om_update_path *w)
{
	for (uint32_t k = 0; k < w->nvalue; k++)
		om_value_set_storage(w->value[k], OM_SUBBUFFER, w->result, 0);
	om_value_set_storage(w->result, OM_IO_ALIAS, w->param, 0);
	om_count(r, "results", 1);
	om_count(r, "bytes", om_value_bytes(w->result));
}

static void
tie_asked(om_run *r, om_prog *p)
{
	uint32_t n;
	const om_update_path *w = om_update_paths_find(p, r->scratch, &n);

	for (uint32_t k = 0; k < n; k++)
		if (is_open(&w[k]))
			tie_way(r, &w[k]);
}

/* ---- Both. ---- */

/* In an order that may change nobody knows who reads the input last. */
static om_status
run(om_run *r, om_prog *p)
{
	const char *what = om_option(r, "what");
	const bool asked = strcmp(what, "asked") == 0;

	if (!asked && strcmp(what, "any") != 0)
		return om_fail(r->session, OM_USAGE, "tie: what is any or asked, not %s", what);
	if (p->parallel_safe && !asked)
		return om_fail(r->session, OM_USAGE, "tie: a plan for every order ties nothing");
	if (!asked)
		tie_any(r, p);
	else if (!p->parallel_safe)
		tie_asked(r, p);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"what", "any", "results that are tied: any that can be, or those that the model hands on (asked)"},
	{0}
};

static const om_pass_counter counters[] = {
	{"results", "results that are computed in the memory of an input"},
	{"bytes", "bytes that are not copied from run to run"},
	{0}
};

OM_PASS(
	.name = "tie",
	.brief = "compute results over the inputs that they replace",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE | OM_HAS_VIEWS,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE | OM_HAS_VIEWS | OM_HAS_STORE,
	.options = options,
	.counters = counters,
	.run = run)
