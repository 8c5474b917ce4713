/* Why a value has its storage, in a sentence: the value it is computed over, or for
 * each input of its op why it is not computed over that input. */
#include <config.h>

#include <inttypes.h>

#include "onnxmem/opdef.h"
#include "report/report.h"

/* A value in the same storage that is live after `step`, or NULL. */
static const om_box *
needed_later(const om_report *r, uint32_t buffer, uint32_t step)
{
	const om_box *found = NULL;

	for (uint32_t k = r->first_of_buffer[buffer]; k != UINT32_MAX; k = r->next_of_buffer[k])
		if (r->box[k].last > step && r->box[k].first <= step && (!found || r->box[k].last > found->last))
			found = &r->box[k];
	return found;
}

/* Why output `out` of the op is not computed over input `in`; NULL for constants. */
static const char *
why_not(const om_report *r, om_arena *mem, const om_op *op, const om_value *v, uint32_t out, uint32_t in)
{
	const om_value *x = op->in[in];
	const om_placement *at = &r->prog->plan->place[x->id];
	const uint32_t box = r->box_of_value[x->id];
	const om_box *later = box == UINT32_MAX ? NULL : needed_later(r, r->box[box].buffer, op->end);

	if (x->is_const)
		return NULL;                      /* that weights are kept need not be said */
	if (at->where == OM_EXTERNAL)
		return "it belongs to the caller";
	if (at->where != OM_IN_ARENA)
		return "it is not in the arena";
	if (om_value_bytes(x) != om_value_bytes(v))
		return om_printf(mem, "it has %" PRIu64 " bytes", om_value_bytes(x));
	if (!om_op_inplace(op, out, in))
		return om_printf(mem, "%s reads it after its first write", op->type);
	if (at->live.last > op->end)
		return om_printf(mem, "it is live until step %" PRIu32, at->live.last);
	if (later)
		return om_printf(mem, "%s uses the same storage until step %" PRIu32, om_clean_text(mem, later->name),
			later->last);
	return "possible, but not chosen";
}

static const char *
why_own(const om_report *r, om_arena *mem, const om_value *v)
{
	enum { SHOWN = 3 };
	const om_op *op = v->def;
	const char *text = "";
	uint32_t out = 0, n = 0;

	if (!op)
		return "written at the start of each iteration";
	while (out < op->nout && op->out[out] != v)
		out++;
	for (uint32_t k = 0; k < op->nin && n < SHOWN; k++) {
		const char *why = op->in[k] ? why_not(r, mem, op, v, out, k) : NULL;
		if (!why)
			continue;
		text = om_printf(mem, "%s%snot over %s: %s", text, n ? "; " : "", om_clean_text(mem, op->in[k]->name), why);
		n++;
	}
	return n ? text : "its op has no input that it could be computed over";
}

/* Derived from the plan alone, so a plan read from a file gives the same text. */
const char *
om_report_explain(const om_report *r, om_arena *mem, const om_box *x)
{
	if (!x->value)
		return "in use while its op runs";
	if (x->kind == OM_BOX_OWN)
		return why_own(r, mem, x->value);
	const char *of = x->source ? om_clean_text(mem, x->source->name) : "another";
	return x->kind == OM_BOX_VIEW ? om_printf(mem, "a view of %s", of) : om_printf(mem, "computed over %s",
		of);
}
