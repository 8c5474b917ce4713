/* SPDX-License-Identifier: Apache-2.0 */
/* Why a value has its storage, in sentences: the value that it is a view of or computed over, or for each input of its op
 * why it is not computed over that.  The reasons are those of om_assignment_overwrite(). */
#include <config.h>

#include <inttypes.h>

#include "onnxmem/opdef.h"
#include "report/report.h"

/* ---- Readers. ---- */

bool
om_report_use_step(const om_report *r, const om_use *u, uint32_t *step)
{
	if (u->op && (u->op->is_folded || !u->op->block))
		return false;
	*step = om_run_steps_of(&r->run, u->op ? u->op->step : u->block->end);
	return true;
}

uint32_t
om_report_reads(const om_report *r, const om_value *v, uint32_t after, const om_op **op)
{
	uint32_t found = UINT32_MAX, at;

	for (const om_use *u = v->first_use; u; u = u->next) {
		if (!om_report_use_step(r, u, &at) || at <= after || at >= found)
			continue;
		found = at;
		*op = u->op;
	}
	return found;
}

uint32_t
om_report_idle_since(const om_report *r, const om_value *v, uint32_t step)
{
	const om_op *def = v->def ? v->def : v->block->owner;
	uint32_t since = def && !def->is_folded ? om_report_steps(r, def).first + 1 : 0, at;

	if (v->def && def->nbody)
		since = om_report_steps(r, def).last + 1;
	for (const om_use *u = v->first_use; u; u = u->next)
		if (om_report_use_step(r, u, &at) && at < step && at + 1 > since)
			since = at + 1;
	return since;
}

/* The text for a value that is live after `op`. */
static const char *
why_live(const om_report *r, om_arena *mem, const om_op *op, const om_value *v)
{
	const om_op *by = NULL;
	const uint32_t end = om_report_steps(r, op).last, at = om_report_reads(r, v, end, &by);

	if (r->parallel_safe)
		return "it may be read later, in some order";
	if (at != UINT32_MAX)
		return by ? om_printf(mem, "it is read later, at step %" PRIu32 " by %s", at, om_op_where(by, mem))
			: om_printf(mem, "it is read later, as a result, at step %" PRIu32, at);
	const uint32_t last = om_report_life(r, v).last;
	const om_op *owner = om_report_op(r, last);
	return om_printf(mem, "it is needed until step %" PRIu32 "%s%s", last, owner ? ", the end of " : "",
		owner ? om_op_where(owner, mem) : "");
}

static const char *
why_clash(const om_report *r, om_arena *mem, const om_value *by)
{
	const om_steps at = om_report_life(r, by);

	return om_printf(mem, "%s, with bytes in the same storage, is live in steps %" PRIu32 " to %" PRIu32, by->name, at.first,
		at.last);
}

static const char *
why_undecided(const om_assignment *a, const om_op *op, om_arena *mem)
{
	if (!a)
		return "a plan that was read from a file does not say why";
	return op->nbody ? om_printf(mem, "%s runs bodies, whose storage the pass loops decides on", op->type)
		: "the pass inplace did not decide about it";
}

uint32_t
om_report_output(const om_value *v)
{
	uint32_t out = 0;

	while (out < v->def->nout && v->def->out[out] != v)
		out++;
	return out;
}

const char *
om_report_overwrite(const om_report *r, om_arena *mem, const om_op *op, uint32_t out, uint32_t in)
{
	static const char *const texts[] = {
		[OM_OVERWRITE_DONE] = "computed over it",
		[OM_OVERWRITE_PART] = "it is computed in these bytes",
		[OM_OVERWRITE_CONST] = "it is a constant",
		[OM_OVERWRITE_OUTSIDE] = "it belongs to the caller",
		[OM_OVERWRITE_NO_SIZE] = "its size is not known before the run",
		[OM_OVERWRITE_CARRIED] = "it is stored in a parameter of a loop, which the pass loops decides on",
		[OM_OVERWRITE_REPEATED] = "it is an earlier input, too",
		[OM_OVERWRITE_CHOSEN] = "another input was preferred",
		[OM_OVERWRITE_SHARED] = "both are in one storage already",
		[OM_OVERWRITE_BODY] = "its storage belongs to another body",
		[OM_OVERWRITE_ROOM] = "what is stored with it does not fit there",
		[OM_OVERWRITE_ALIGNMENT] = "elements would not be aligned",
		[OM_OVERWRITE_NO_ORDER] = "the partial order of so many ops is not computed",
		[OM_OVERWRITE_VIEW] = "the output is stored in other bytes already",
		[OM_OVERWRITE_NO_STORAGE] = "the output has no storage of known size that can be shared",
		[OM_OVERWRITE_LARGER] = "it would be computed in the output, but the arena would be larger",
		[OM_OVERWRITE_DISABLED] = "it would be computed in the output, but an option or a range of sizes rules it out",
		[OM_OVERWRITE_UNDONE] = "it was, until the pass loops gave one of them storage of its own",
	};
	const om_assignment *a = r->prog->assignment;
	const om_overwrite_reason why = a ? om_assignment_overwrite(a, op, out, in) : (om_overwrite_reason){0};
	const om_value *v = op->in[in];

	switch (why.why) {
	case OM_OVERWRITE_UNDECIDED:
		return why_undecided(a, op, mem);
	case OM_OVERWRITE_NO_RULE:
		return om_printf(mem, op->opdef ? "%s never computes over an input" : "operator %s is not known", op->type);
	case OM_OVERWRITE_SIZE:
		return om_printf(mem, "it has %" PRIu64 " bytes, the output %" PRIu64, om_value_bytes(v), om_value_bytes(op->out[out]));
	case OM_OVERWRITE_FORBIDDEN:
		return om_printf(mem, "%s reads it after its first write", op->type);
	case OM_OVERWRITE_OTHER_INPUT:
		return om_printf(mem, "it is another input, too, which %s reads after its first write", op->type);
	case OM_OVERWRITE_LIVE:
		return why_live(r, mem, op, v);
	case OM_OVERWRITE_CLASH:
		return why_clash(r, mem, why.by);
	default:
		return texts[why.why];
	}
}

const char *
om_report_overwrite_key(const om_report *r, const om_op *op, uint32_t out, uint32_t in)
{
	static const char *const keys[] = {
		[OM_OVERWRITE_UNDECIDED] = "undecided", [OM_OVERWRITE_DONE] = "done", [OM_OVERWRITE_PART] = "part",
		[OM_OVERWRITE_NO_RULE] = "no-rule", [OM_OVERWRITE_CONST] = "constant", [OM_OVERWRITE_OUTSIDE] = "caller",
		[OM_OVERWRITE_NO_SIZE] = "no-size", [OM_OVERWRITE_SIZE] = "size", [OM_OVERWRITE_FORBIDDEN] = "forbidden",
		[OM_OVERWRITE_OTHER_INPUT] = "other-input", [OM_OVERWRITE_CARRIED] = "carried", [OM_OVERWRITE_LIVE] = "live",
		[OM_OVERWRITE_REPEATED] = "repeated", [OM_OVERWRITE_CHOSEN] = "other-chosen", [OM_OVERWRITE_SHARED] = "shared",
		[OM_OVERWRITE_BODY] = "other-body", [OM_OVERWRITE_ROOM] = "room", [OM_OVERWRITE_ALIGNMENT] = "alignment",
		[OM_OVERWRITE_CLASH] = "clash", [OM_OVERWRITE_NO_ORDER] = "no-order", [OM_OVERWRITE_VIEW] = "placed",
		[OM_OVERWRITE_NO_STORAGE] = "no-storage", [OM_OVERWRITE_LARGER] = "larger-arena",
		[OM_OVERWRITE_DISABLED] = "disabled", [OM_OVERWRITE_UNDONE] = "undone",
	};
	const om_assignment *a = r->prog->assignment;

	return keys[a ? om_assignment_overwrite(a, op, out, in).why : OM_OVERWRITE_UNDECIDED];
}

/* ---- In one sentence. ---- */

static const char *
why_own(const om_report *r, om_arena *mem, const om_value *v)
{
	enum { SHOWN = 3 };
	const om_op *op = v->def;
	const char *text = "";
	uint32_t n = 0;

	if (!op)
		return v->block == r->prog->first ? "an input in the arena" : "written at the start of each iteration";
	const uint32_t out = om_report_output(v);
	for (uint32_t k = 0; k < op->nin && n < SHOWN; k++) {
		if (!op->in[k] || op->in[k]->is_const)
			continue;
		text = om_printf(mem, "%s%snot over %s: %s", text, n ? "; " : "", op->in[k]->name,
			om_report_overwrite(r, mem, op, out, k));
		n++;
	}
	return n ? om_clean_text(mem, text) : "its op has no input that it could be computed over";
}

const char *
om_report_explain(const om_report *r, om_arena *mem, const om_box *x)
{
	if (!x->value)
		return "in use while its op runs";
	if (x->kind == OM_BOX_OWN)
		return why_own(r, mem, x->value);
	const char *of = x->source ? om_clean_text(mem, x->source->name) : "another";
	return x->kind == OM_BOX_VIEW ? om_printf(mem, "a view of %s", of) : om_printf(mem, "computed over %s", of);
}
