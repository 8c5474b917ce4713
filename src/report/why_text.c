/* SPDX-License-Identifier: Apache-2.0 */
/* Why the arena is as large as it is, as text. */
#include <config.h>

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "report/why.h"

enum { RUNGS = 5, PEAKS = 3, VALUES = 8, MEMBERS = 12, READERS = 6, INPUTS = 12 };

struct out {
	const om_report *r;
	om_arena *mem;
	FILE *to;
};

/* ---- Parts of lines. ---- */

static const char *
size_text(om_arena *mem, uint64_t bytes)
{
	char text[32];

	if (bytes < 1024)
		return om_printf(mem, "%" PRIu64 " bytes", bytes);
	return om_printf(mem, "%" PRIu64 " bytes (%s)", bytes, om_bytes_text(bytes, text));
}

/* A paragraph, wrapped on a terminal. */
static void
put_paragraph(const struct out *o, unsigned indent, const char *text)
{
	fprintf(o->to, "%*s", (int)indent, "");
	om_wrap(o->to, om_clean_text(o->mem, text), indent, indent, o->r->width ? o->r->width : UINT_MAX);
}

static const char *
op_text(const struct out *o, const om_op *op)
{
	return om_clean_text(o->mem, om_op_where(op, o->mem));
}

static void
row(const struct out *o, const char *what, uint64_t bytes, const char *note)
{
	enum { BEFORE = 50 };
	char text[32];

	fprintf(o->to, "  %-20s %14" PRIu64 "  %10s  ", what, bytes, om_bytes_text(bytes, text));
	om_wrap(o->to, om_clean_text(o->mem, note), BEFORE + 1, BEFORE + 1, o->r->width > BEFORE + 20 ? o->r->width : UINT_MAX);
}

/* ---- The floor and the bound. ---- */

uint64_t
om_why_bound(const om_report *r)
{
	return r->order_bound_bytes ? r->order_bound_bytes : r->lower_bound_bytes;
}

static const char *
bound_note(const struct out *o)
{
	const om_report *r = o->r;
	const om_plan *plan = r->prog->plan;
	const uint64_t bound = om_why_bound(r), above = bound - plan->floor;

	if (!plan->floor)
		return r->order_bound_bytes ? "no plan for this order gets lower" : "no packing of these buffers gets lower";
	if (bound <= plan->floor)
		return "equal to the floor: no order gets lower";
	if (r->parallel_safe)
		return om_printf(o->mem, "%" PRIu64 " above the floor: ops may run in any order", above);
	return om_printf(o->mem, "%" PRIu64 " above the floor: values that are kept while other ops run; %s", above,
		plan->schedule->is_proven ? "no order needs less (proven), but computing some of them again may"
		: "another order, or computing some of them again, may need less");
}

static const char *
arena_note(const struct out *o)
{
	const om_report *r = o->r;
	const uint64_t bound = om_why_bound(r);

	if (r->arena_bytes <= bound)
		return r->order_bound_bytes ? "equal to the bound: no plan for this order gets lower"
			: "equal to the bound: no packing of these buffers gets lower";
	if (r->arena_bytes <= r->lower_bound_bytes)
		return om_printf(o->mem, "%" PRIu64 " above the bound: only other views, in-place choices or rotations in loops may need "
			"less, no other packing", r->arena_bytes - bound);
	return om_printf(o->mem, "%" PRIu64 " above the bound, %" PRIu64 " of them lost by packing; other views or in-place choices may "
		"need less, too", r->arena_bytes - bound, r->arena_bytes - r->lower_bound_bytes);
}

static void
relation(const struct out *o)
{
	const om_report *r = o->r;
	const om_plan *plan = r->prog->plan;

	if (plan->floor)
		row(o, "floor", plan->floor, om_printf(o->mem, "in any order: needed at once by %s", om_op_where(plan->floor_op, o->mem)));
	row(o, !r->order_bound_bytes ? "bound of the buffers" : r->parallel_safe ? "bound of all orders" : "bound of this order", om_why_bound(r), bound_note(o));
	row(o, plan->narena > 1 ? "arenas" : "arena", r->arena_bytes, arena_note(o));
	if (r->arena_bytes == 0)
		return;
	putc('\n', o->to);
	if (plan->floor)
		put_paragraph(o, 0, "No order and no packing of this program gets below the floor: only splitting its op (onnxmem tile), fusing it with "
			"others, or elements of fewer bits (lower precision) do.");
	else
		put_paragraph(o, 0, "The floor is not known: nothing is proven for ops in bodies that may not run, and for values that may be in "
			"memory of the caller.");
}

/* ---- The ladder. ---- */

/* When and by what it is read after the step. */
static const char *
next_text(const struct out *o, const om_peak_value *x)
{
	if (!x->reader)
		return om_printf(o->mem, "a result at step %" PRIu32, x->next);
	return om_printf(o->mem, "next read at step %" PRIu32 " by %s", x->next, op_text(o, x->reader));
}

static const char *
life_text(const struct out *o, const om_peak_value *x)
{
	const om_value *v = x->value;
	const char *by = v->def ? om_printf(o->mem, "computed at step %" PRIu32 " by %s", x->first, op_text(o, v->def))
		: v->block == o->r->prog->first ? "an input" : "a parameter of a body";

	if (x->next == UINT32_MAX)
		return om_printf(o->mem, "kept; %s, and not read after this step", by);
	return om_printf(o->mem, "kept; %s, %s", by, next_text(o, x));
}

static const char *
role_note(const struct out *o, const om_peak_value *x)
{
	static const char *const texts[] = {
		[OM_ROLE_INPUT] = "its input", [OM_ROLE_OUTPUT] = "its output",
		[OM_ROLE_BOTH] = "its input and output, in the same bytes", [OM_ROLE_SCRATCH] = "its scratch",
	};

	if (x->role == OM_ROLE_CROSSING)
		return life_text(o, x);
	return x->role == OM_ROLE_INPUT && x->next != UINT32_MAX ? om_printf(o->mem, "%s; %s", texts[x->role], next_text(o, x))
		: texts[x->role];
}

static void
live(const struct out *o, const om_peak_step *p)
{
	uint64_t rest = 0;

	for (uint32_t k = 0; k < p->nlive && k < VALUES; k++) {
		const om_peak_value *x = &p->live[k];
		fprintf(o->to, "  %14" PRIu64 "  ", x->bytes);
		om_wrap(o->to, om_printf(o->mem, "%s: %s", om_report_name(o->r, o->mem, x->name, 24), role_note(o, x)), 18, 18,
			o->r->width > 40 ? o->r->width : UINT_MAX);
	}
	for (uint32_t k = VALUES; k < p->nlive; k++)
		rest += p->live[k].bytes;
	if (rest)
		fprintf(o->to, "  %14" PRIu64 "  %" PRIu32 " more, which --json lists\n", rest, p->nlive - VALUES);
}

/* All of a peak is what its op reads and writes. */
static const char *
change_op(const struct out *o, const om_rung *g)
{
	const bool several = g->n + g->more > 1;
	const char *it = several ? "One of these ops" : "The op";

	if (g->floor >= g->bytes)
		return om_printf(o->mem, "%s needs all of it: no order avoids that, only a smaller, a split or a fused op does.", it);
	if (g->floor == 0)
		return om_printf(o->mem, "%s reads or writes all of it. What it needs in any order is not known.", it);
	return om_printf(o->mem, "%s reads or writes all of it. In an order in which it is the last reader of its inputs, so that an output "
		"can be computed over one, it needs %s.", it, size_text(o->mem, g->floor));
}

/* What has to change for the arena to be lower. */
static void
change(const struct out *o, const om_rung *g, bool is_highest)
{
	const bool several = g->n + g->more > 1;
	const char *text = g->bytes == g->own ? change_op(o, g) : om_printf(o->mem, "To get lower, what is kept%s, %s%s, has to be "
		"computed later, read earlier, or computed again. Without all of it %sthe arena could be %s.",
		several ? " at each of these steps" : "", several ? "at least " : "", size_text(o->mem, g->bytes - g->own),
		is_highest ? "" : "and the higher peaks ", size_text(o->mem, g->reach));

	put_paragraph(o, 2, g->next ? om_printf(o->mem, "%s The next peak is %s.", text, size_text(o->mem, g->next)) : text);
}

static void
rung(const struct out *o, const om_ladder *l, uint32_t k)
{
	const om_rung *g = &l->rung[k];
	const uint32_t n = g->n + g->more;

	fprintf(o->to, "\npeak %" PRIu32 ": %s%s\n", k + 1, size_text(o->mem, g->bytes),
		n > 1 ? om_printf(o->mem, ", at %" PRIu32 " steps", n) : "");
	for (uint32_t i = 0; i < g->n && i < PEAKS; i++) {
		const om_peak_step *p = &g->at[i];
		put_paragraph(o, 2, om_printf(o->mem, "at step %" PRIu32 " of %" PRIu32 ", %s", p->step, o->r->steps,
			p->op ? om_op_where(p->op, o->mem) : "the end of the graph"));
		live(o, p);
	}
	if (n > PEAKS)
		fprintf(o->to, "  and %" PRIu32 " more steps, which --json lists\n", n - PEAKS);
	change(o, g, k == 0);
}

static void
any_order(const struct out *o)
{
	fputs("\nThe plan is valid in any order, so there are no steps. In some order, these are live at once:\n", o->to);
	for (uint32_t k = 0; k < o->r->nlive && k < VALUES; k++)
		fprintf(o->to, "  %14" PRIu64 "  %s\n", o->r->live[k].bytes, om_report_name(o->r, o->mem, o->r->live[k].name, 18));
	if (o->r->nlive > VALUES)
		fprintf(o->to, "  and %" PRIu32 " more, which --json lists\n", o->r->nlive - VALUES);
}

static void
ladder(const struct out *o)
{
	const om_ladder l = om_report_ladder(o->r, o->mem);

	for (uint32_t k = 0; k < l.n && k < RUNGS; k++)
		rung(o, &l, k);
	if (l.n + l.more > RUNGS)
		fprintf(o->to, "\nand %" PRIu32 " lower peaks, which --json lists\n", l.n + l.more - RUNGS);
	if (l.n == 0)
		fputs("\nNothing is in the arena.\n", o->to);
}

/* ---- One value. ---- */

static void
label(const struct out *o, const char *what, const char *text)
{
	enum { BEFORE = 18 };

	fprintf(o->to, "  %-15s ", what);
	om_wrap(o->to, om_clean_text(o->mem, text), BEFORE, BEFORE, o->r->width > BEFORE + 20 ? o->r->width : UINT_MAX);
}

static const char *
steps_text(const struct out *o, om_steps at)
{
	return at.first == at.last ? om_printf(o->mem, "step %" PRIu32, at.first)
		: om_printf(o->mem, "steps %" PRIu32 " to %" PRIu32, at.first, at.last);
}

static const char *
defined_text(const struct out *o, const om_value *v)
{
	if (v->def && v->def->is_folded)
		return om_printf(o->mem, "%s, before the run", op_text(o, v->def));
	if (v->def)
		return om_printf(o->mem, "%s, at %s", op_text(o, v->def), steps_text(o, om_report_steps(o->r, v->def)));
	if (v->is_const)
		return "nothing: it is a constant of the file";
	return v->block == o->r->prog->first ? "the caller: it is an input of the graph"
		: om_printf(o->mem, "%s: it is a parameter of its body", v->block->owner ? op_text(o, v->block->owner) : "a body");
}

static void
readers(const struct out *o, const om_value *v)
{
	const char *text = NULL;
	uint32_t n = 0, at;

	for (const om_use *u = v->first_use; u; u = u->next) {
		if (!om_report_use_step(o->r, u, &at) || n++ >= READERS)
			continue;
		text = om_printf(o->mem, "%s%s%s, at step %" PRIu32, text ? text : "", text ? "; " : "", u->op ? op_text(o, u->op)
			: u->block == o->r->prog->first ? "the caller, as a result of the graph" : "its block, as a result", at);
	}
	if (n > READERS)
		text = om_printf(o->mem, "%s; and %" PRIu32 " more", text, n - READERS);
	label(o, "read by", text ? text : "nothing in a run");
}

static void
place(const struct out *o, const om_report_tensor *t)
{
	const om_plan *plan = o->r->prog->plan;
	const om_placement *at = t->at;
	const char *text = "";

	switch (at->where) {
	case OM_IN_ARENA:
		text = om_printf(o->mem, "bytes %" PRIu64 " to %" PRIu64 " of %s", at->offset,
			at->offset + (at->bytes ? at->bytes - 1 : 0), plan->arena[at->arena].name);
		break;
	case OM_EXTERNAL: text = "memory of the caller"; break;
	case OM_WEIGHT: text = "a constant, outside of the arena"; break;
	case OM_UNPLANNED: text = om_printf(o->mem, "not in the plan, allocated in a run: %s", t->why); break;
	case OM_UNUSED: text = "none: it takes part in no run"; break;
	}
	label(o, "placed in", text);
	for (uint32_t k = 0; k < plan->nview; k++)
		if (plan->view[k].value == t->value->id)
			label(o, "moves in a loop", om_report_moving(o->r->prog, &plan->view[k], o->mem));
}

static const char *
member_text(const struct out *o, const om_box *x)
{
	static const char *const kinds[] = {
		[OM_BOX_OWN] = "owns the storage", [OM_BOX_INPLACE] = "computed over", [OM_BOX_VIEW] = "in bytes of",
		[OM_BOX_SCRATCH] = "scratch",
	};

	return om_printf(o->mem, "%s: bytes %" PRIu64 " to %" PRIu64 ", %s, %s%s%s", om_report_name(o->r, o->mem, x->name, 60),
		x->offset, x->offset + (x->bytes ? x->bytes - 1 : 0), steps_text(o, (om_steps){x->first, x->last}), kinds[x->kind],
		x->source ? " " : "", x->source ? om_clean_text(o->mem, x->source->name) : "");
}

static void
storage(const struct out *o, const om_value *v)
{
	const om_report *r = o->r;
	const uint32_t own = r->box_of_value[v->id];
	uint32_t n = 0;

	if (own == UINT32_MAX)
		return;
	for (uint32_t k = r->first_of_buffer[r->box[own].buffer]; k != UINT32_MAX; k = r->next_of_buffer[k])
		if (n++ < MEMBERS)
			label(o, n == 1 ? "storage" : "", member_text(o, &r->box[k]));
	if (n > MEMBERS)
		label(o, "", om_printf(o->mem, "and %" PRIu32 " more, which --json lists", n - MEMBERS));
}

static void
neighbor(const struct out *o, const char *where, const om_box *x, const char *none)
{
	label(o, where, !x ? none : om_printf(o->mem, "%s: bytes %" PRIu64 " to %" PRIu64 ", %s",
		om_report_name(o->r, o->mem, x->name, 50), x->offset, x->offset + (x->bytes ? x->bytes - 1 : 0),
		steps_text(o, (om_steps){x->first, x->last})));
}

static void
peaks(const struct out *o, const om_value *v)
{
	const om_ladder l = om_report_ladder(o->r, o->mem);
	const char *text = NULL;
	uint32_t n = 0;

	for (uint32_t k = 0; k < l.n; k++)
		if (om_report_is_at_rung(o->r, v, &l.rung[k]) && n++ < RUNGS)
			text = om_printf(o->mem, "%s%s%" PRIu32 " (%" PRIu64 " bytes)", text ? text : "live at peak ", text ? ", " : "", k + 1,
				l.rung[k].bytes);
	if (n > RUNGS)
		text = om_printf(o->mem, "%s and %" PRIu32 " more", text, n - RUNGS);
	label(o, "peaks", text ? text : "not live at any peak");
}

static void
in_place(const struct out *o, const om_value *v)
{
	const om_op *op = v->def;
	uint32_t n = 0;

	if (!op || op->is_folded)
		return;
	const uint32_t out = om_report_output(v);
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && n++ < INPUTS)
			label(o, n == 1 ? "in place" : "", om_printf(o->mem, "over %s: %s", om_report_name(o->r, o->mem, op->in[k]->name, 60),
				om_report_overwrite(o->r, o->mem, op, out, k)));
	if (n > INPUTS)
		label(o, "", om_printf(o->mem, "and %" PRIu32 " more, which --json lists", n - INPUTS));
}

/* Of a size that data decide, the most that is planned. */
static const char *
known_size(const struct out *o, const om_value *v)
{
	const om_placement *at = &o->r->prog->plan->place[v->id];

	if (v->type.kind == OM_TENSOR && om_shape_is_known(&v->shape))
		return size_text(o->mem, om_value_bytes(v));
	return at->where != OM_IN_ARENA ? "size not known before the run"
		: om_printf(o->mem, "a size that data decide, with a place for the most that its operator may give: %s", size_text(o->mem, at->bytes));
}

static void
value_text(const struct out *o, const om_value *v)
{
	const om_report_tensor t = om_report_tensor_of(o->r, v);
	char shape[256];

	fprintf(o->to, "%s: %s%s, %s\n", om_clean_text(o->mem, v->name), v->type.kind == OM_TENSOR ? om_dtype_text(v->type.elem)
		: "no tensor", v->type.kind == OM_TENSOR ? om_shape_text(&v->shape, shape, sizeof shape) : "",
		known_size(o, v));
	label(o, "computed by", defined_text(o, v));
	readers(o, v);
	place(o, &t);
	if (t.at->where == OM_IN_ARENA) {
		label(o, "live", om_printf(o->mem, "%s of %" PRIu32, steps_text(o, t.live), o->r->steps));
		storage(o, v);
		neighbor(o, "above", t.over, "nothing, while it is live");
		neighbor(o, "below", t.under, "nothing, while it is live");
		neighbor(o, "before", t.before, "nothing in these bytes");
		neighbor(o, "after", t.after, "nothing in these bytes");
		if (!o->r->parallel_safe)
			peaks(o, v);
	}
	in_place(o, v);
}

void
om_why_text(const om_report *r, const om_value *v, FILE *to)
{
	const struct out o = {r, om_arena_new(), to};

	if (v) {
		value_text(&o, v);
	} else {
		fprintf(to, "%s: %" PRIu32 " op%s in %" PRIu32 " steps\n\n", strcmp(r->model, "-") == 0 ? "standard input"
			: om_clean_text(o.mem, r->model), r->ops, r->ops == 1 ? "" : "s", r->steps);
		relation(&o);
		(r->parallel_safe ? any_order : ladder)(&o);
	}
	om_arena_free(o.mem);
}
