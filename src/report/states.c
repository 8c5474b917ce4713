/* SPDX-License-Identifier: Apache-2.0 */
/* States of a program in a plan: inputs that outputs replace in the next run, and why an output is not in the memory of
 * its input. */
#include <config.h>

#include <string.h>

#include "report/report.h"
#include "onnxmem/opdef.h"

/* ---- What keeps an output out of the memory of its input. ---- */

/* Is it the value, or a view of it in the plan? */
static bool
is_of(const om_prog *p, const om_value *is, const om_value *v)
{
	for (uint32_t k = 0; is && is != v && k < p->plan->nalias; k++)
		if (p->plan->alias[k].kind == OM_ALIAS_VIEW && p->plan->alias[k].value == is->id)
			return is_of(p, p->values[p->plan->alias[k].source], v);
	return is == v;
}

/* Does `op`, or an op in its bodies, read the value? */
static bool
reads(const om_prog *p, const om_op *op, const om_value *v)
{
	for (uint32_t k = 0; k < op->nin; k++)
		if (is_of(p, op->in[k], v))
			return true;
	for (uint32_t b = 0; b < op->nbody; b++) {
		for (uint32_t k = 0; k < op->body[b]->nresult; k++)
			if (is_of(p, op->body[b]->result[k], v))
				return true;
		for (const om_op *inner = op->body[b]->first; inner; inner = inner->next)
			if (reads(p, inner, v))
				return true;
	}
	return false;
}

/* The last op other than `writer` that reads the value, in the order of the plan; NULL: none does after it. */
static const om_op *
reader_after(const om_prog *p, const om_op *writer, const om_value *v)
{
	const om_steps *of = p->plan->schedule->of_op;
	const om_op *found = NULL;

	for (const om_op *op = p->first->first; op; op = op->next)
		if (op != writer && !op->is_folded && of[op->id].first > of[writer->id].first && reads(p, op, v)
		    && (!found || of[op->id].first > of[found->id].first))
			found = op;
	return found;
}

static const char *
op_text(const om_op *op, om_arena *mem)
{
	return op->name && *op->name ? om_printf(mem, "%s %s", op->type, om_clean_text(mem, op->name)) : op->type;
}

static const char *
sizes_text(const om_report_state *t, om_arena *mem)
{
	char was[128], is[128];

	om_shape_text(&t->input->shape, was, sizeof was);
	om_shape_text(&t->output->shape, is, sizeof is);
	return om_printf(mem, "the output is %s, and the input %s", is, was);
}

/* May the op that defines the output compute it over the input, as its definition is? */
static bool
may_overwrite(const om_op *op, const om_report_state *t)
{
	for (uint32_t o = 0; o < op->nout; o++)
		for (uint32_t k = 0; k < op->nin; k++)
			if (op->out[o] == t->output && op->in[k] == t->input && om_op_inplace(op, o, k))
				return true;
	return false;
}

static const char *
reason_of(const om_prog *p, const om_report_state *t, om_arena *mem)
{
	const om_op *op = t->output->def;

	if (t->input->is_const || t->output->is_const)
		return om_printf(mem, "the %s is a constant", t->input->is_const ? "input" : "output");
	if (!om_shape_is_known(&t->input->shape) || !om_shape_is_known(&t->output->shape))
		return "its size is not known";
	if (om_value_bytes(t->input) != om_value_bytes(t->output))
		return sizes_text(t, mem);
	if (!op)
		return "the output is another input";
	if (p->plan->parallel_safe)
		return "a plan for every order has no last reader of the input";
	const om_op *reader = reader_after(p, op, t->input);
	if (reader)
		return om_printf(mem, "%s reads the input after the output is computed", op_text(reader, mem));
	if (may_overwrite(op, t) || !reads(p, op, t->input))
		return "the plan keeps the input, or an output that is a view of either";
	return om_printf(mem, "%s reads the input, and does not compute the output over it", op_text(op, mem));
}

/* ---- The list. ---- */

static bool
is_tied(const om_plan *plan, const om_report_state *t)
{
	for (uint32_t k = 0; k < plan->nalias; k++)
		if (plan->alias[k].value == t->output->id && plan->alias[k].source == t->input->id
		    && plan->alias[k].kind == OM_ALIAS_IO)
			return true;
	return t->output == t->input;
}

static bool
is_view(const om_plan *plan, const om_value *v)
{
	for (uint32_t k = 0; k < plan->nalias; k++)
		if (plan->alias[k].value == v->id && plan->alias[k].kind == OM_ALIAS_VIEW)
			return true;
	return false;
}

/* Bytes of rows of a buffer that a run copies for ops that read them one after the other. */
static uint64_t
copied_rows(const om_prog *p, const om_value *buffer)
{
	uint64_t bytes = 0;

	for (const om_use *u = buffer->first_use; u; u = u->next)
		if (u->op && !u->op->is_folded && u->index == 0 && strcmp(u->op->type, "Slice") == 0
		    && p->plan->place[u->op->out[0]->id].where != OM_UNUSED && !is_view(p->plan, u->op->out[0]))
			bytes += om_value_bytes(u->op->out[0]);
	return bytes;
}

static om_report_state
state_of(const om_prog *p, const om_io_alias *a, om_arena *mem)
{
	om_report_state t = {.input = p->first->param[a->param], .output = p->first->result[a->result]};
	const uint64_t in = om_value_bytes(t.input), out = om_value_bytes(t.output);

	if (is_tied(p->plan, &t)) {
		if (a->rows_after)
			t.copied_bytes = copied_rows(p, t.input) + copied_rows(p, t.output);
		return t;
	}
	/* An empty output, such as that of cross attention after the first step: the caller keeps the input. */
	if (om_shape_is_known(&t.output->shape) && out == 0)
		return t;
	t.copied_bytes = in < out ? in : out;
	t.reason = reason_of(p, &t, mem);
	return t;
}

om_report_state *
om_report_states(const om_prog *p, om_arena *mem, uint32_t *n)
{
	om_report_state *all = OM_NEWN(mem, om_report_state, p->nio_alias);

	*n = p->nio_alias;
	for (uint32_t k = 0; k < *n; k++)
		all[k] = state_of(p, &p->io_alias[k], mem);
	return all;
}
