/* SPDX-License-Identifier: Apache-2.0 */
/* A report as a self-contained HTML page: the numbers as JSON in a page that is
 * constant (page.html). */
#include <config.h>

#include <string.h>

#include "report/json.h"
#include "report/tiling.h"
#include "ir/enum_text.h"
#include "report/page.h"

/* ---- Tensors. ---- */

static const char *
shape_of(om_arena *mem, const om_value *v)
{
	char shape[256];

	return om_strdup(mem, om_shape_text(&v->shape, shape, sizeof shape));
}

/* By value id: its multi-view, or NULL. */
static const om_plan_multi_view **
views_by_value(const om_prog *p, om_arena *mem)
{
	const om_plan_multi_view **of = OM_NEWN(mem, const om_plan_multi_view *, p->nvalue);

	for (uint32_t k = 0; k < p->plan->nview; k++)
		of[p->plan->view[k].value] = &p->plan->view[k];
	return of;
}

static json_t *
loop_views(const om_report *r, const om_box *x)
{
	json_t *all = json_array();

	for (uint32_t k = 0; k < x->nview; k++) {
		const om_loop_view *t = &x->view[k];
		json_array_append_new(all, json_pack("[I, I, f, f, s]", (json_int_t)(r->base[t->arena] + t->offset),
			(json_int_t)t->bytes, t->from, t->to, t->when));
	}
	return all;
}

static json_t *
box(const om_report *r, om_arena *mem, const om_box *x, const om_plan_multi_view *moves)
{
	const om_value *v = x->value;
	const om_op *op = v ? v->def : x->op;

	return json_pack("[o, i, i, I, I, i, i, i, s, s, o, o, s, s, o]", om_json_text(mem, x->name), (int)x->kind,
		(int)x->arena, (json_int_t)x->offset, (json_int_t)x->bytes, (int)x->first, (int)x->last,
		x->buffer == UINT32_MAX ? -1 : (int)x->buffer, v ? om_dtype_text(v->type.elem) : "", v ? shape_of(mem, v) : "",
		om_json_text(mem, op ? op->type : ""), om_json_text(mem, op ? op->name : ""), om_report_explain(r, mem, x),
		moves ? om_report_moving(r->prog, moves, mem) : "", loop_views(r, x));
}

/* The visitors come last. */
static json_t *
boxes(const om_report *r, om_arena *mem)
{
	const om_plan_multi_view **view = views_by_value(r->prog, mem);
	json_t *all = json_array();

	for (uint32_t k = 0; k < r->nbox + r->nvisitor; k++) {
		const om_box *x = k < r->nbox ? &r->box[k] : &r->visitor[k - r->nbox];
		json_array_append_new(all, box(r, mem, x, x->value ? view[x->value->id] : NULL));
	}
	return all;
}

static json_t *
lives(const om_report *r)
{
	json_t *all = json_array();

	for (uint32_t k = 0; k < r->nbuffer; k++)
		for (uint32_t i = 0; i < r->buffer[k].nlive; i++) {
			const om_interval *l = &r->buffer[k].live[i];
			json_array_append_new(all, json_pack("[i, i, I]", (int)l->lower, (int)l->upper, (json_int_t)(l->to - l->from)));
		}
	return all;
}

/* ---- Ops. ---- */

static void
add_ops(const om_report *r, const om_block *b, om_arena *mem, json_t *ops, json_t *bands)
{
	for (const om_op *op = b->first; op; op = op->next) {
		if (op->is_folded)
			continue;
		const om_steps steps = om_report_steps(r, op);
		json_t *one = json_pack("[i, i, o]", (int)steps.first, (int)steps.last, om_json_text(mem, om_op_where(op, mem)));
		if (op->nbody)
			json_array_append(bands, one);
		json_array_append_new(ops, one);
		for (uint32_t k = 0; k < op->nbody; k++)
			add_ops(r, op->body[k], mem, ops, bands);
	}
}

/* ---- The rest. ---- */

static json_t *
arenas(const om_report *r, om_arena *mem)
{
	const om_plan *plan = r->prog->plan;
	json_t *all = json_array();

	for (uint32_t k = 0; k < plan->narena; k++) {
		const om_plan_arena *a = &plan->arena[k];
		json_array_append_new(all, json_pack("{s:o, s:I, s:I, s:I, s:s}", "name", om_json_text(mem, a->name), "base",
			(json_int_t)r->base[k], "bytes", (json_int_t)a->bytes, "bound", (json_int_t)a->lower_bound, "status",
			om_plan_arena_status(a)));
	}
	return all;
}

static json_t *
peak(const om_report *r, om_arena *mem)
{
	json_t *live = json_array();

	for (uint32_t k = 0; k < r->nlive; k++)
		json_array_append_new(live, json_pack("[o, I]", om_json_text(mem, r->live[k].name), (json_int_t)r->live[k].bytes));
	return json_pack("{s:o, s:o}", "step", r->parallel_safe ? json_null() : json_integer(r->peak_step), "live", live);
}

static json_t *
strategies(const om_report *r)
{
	json_t *all = json_array();

	for (uint32_t k = 0; k < r->nstrategy; k++) {
		const om_report_strategy *s = &r->strategy[k];
		json_array_append_new(all, json_pack("[s, s, I, I, b, f]", s->schedule, s->name, (json_int_t)s->bytes,
			(json_int_t)s->bound, s->status == OM_PACK_OPTIMAL, s->ms));
	}
	return all;
}

static json_t *
moving(const om_prog *p, om_arena *mem)
{
	json_t *all = json_array();

	for (uint32_t k = 0; k < p->plan->nview; k++)
		json_array_append_new(all, json_pack("[o, s]", om_json_text(mem, p->values[p->plan->view[k].value]->name),
			om_report_moving(p, &p->plan->view[k], mem)));
	return all;
}

static json_t *
unplanned(const om_prog *p, om_arena *mem)
{
	json_t *all = json_array();

	for (uint32_t k = 0; k < p->plan->nunplanned; k++)
		json_array_append_new(all, json_pack("[o, o]", om_json_text(mem, p->values[p->plan->unplanned[k].value]->name),
			om_json_text(mem, p->plan->unplanned[k].why)));
	return all;
}

static json_t *
phases(const om_report *r, om_arena *mem)
{
	json_t *all = json_array();

	for (uint32_t k = 0; k < r->nphase; k++) {
		const om_report_phase *x = &r->phase[k];
		json_array_append_new(all, json_pack("[s, I, i, o, i]", om_phase_text(x->phase), (json_int_t)x->bytes, (int)x->step,
			om_json_text(mem, *x->op->name ? x->op->name : x->op->type), (int)x->ops));
	}
	return all;
}

static const char *
about(const om_report *r, om_arena *mem)
{
	const om_prog *p = r->prog;
	const char *out = om_printf(mem, "%u ops, %u values, %u buffers in %u steps", r->ops, r->values, r->nbuffer, r->steps);
	char shape[256];

	for (uint32_t k = 0; k < p->first->nparam; k++) {
		const om_value *v = p->first->param[k];
		if (!v->is_overridable && v->type.kind == OM_TENSOR)
			out = om_printf(mem, "%s; %s %s%s", out, om_clean_text(mem, v->name), om_dtype_text(v->type.elem),
				om_shape_text(&v->shape, shape, sizeof shape));
	}
	if (r->fault)
		return om_printf(mem, "%s; THIS PLAN IS NOT VALID: %s", out, om_clean_text(mem, r->fault));
	return r->parallel_safe ? om_printf(mem, "%s; %s", out, om_report_orders(r, mem)) : out;
}

/* ---- Tiling. ---- */

/* A run of ops of the same region and, unless 0, band. */
struct run {
	uint32_t region, band;
	om_steps steps;
};

static void
end_run(const om_report *r, const struct run *run, om_arena *mem, json_t *bands)
{
	const om_tiling *t = r->prog->tiling;

	if (!run->region || run->region > t->n)
		return;
	const char *axis = t->region[run->region - 1].axis;
	const char *text = run->band ? om_printf(mem, "band %u of %u", run->band, t->region[run->region - 1].bands)
		: om_printf(mem, "region %u (%s)", run->region, axis);
	json_array_append_new(bands, json_pack("[i, i, s]", (int)run->steps.first, (int)run->steps.last, text));
}

/* Continue a run with the op, or end it and begin another. */
static void
run_on(const om_report *r, struct run *run, const om_op *op, bool by_band, om_arena *mem, json_t *bands)
{
	const struct run next = {by_band && !op->band ? 0 : op->region, by_band ? op->band : 0, om_report_steps(r, op)};

	if (run->region == next.region && run->band == next.band) {
		run->steps.last = next.steps.last;
		return;
	}
	end_run(r, run, mem, bands);
	*run = next;
}

/* The regions and, in them, the bands, as they follow one another in the order of the plan. */
static void
add_bands(const om_report *r, om_arena *mem, json_t *bands)
{
	for (int by_band = 0; by_band < 2 && r->prog->tiling; by_band++) {
		struct run run = {0};
		for (uint32_t step = 0; step <= r->steps; step++) {
			const om_op *op = om_report_op(r, step);
			if (op && op->block == r->prog->first)
				run_on(r, &run, op, by_band, mem, bands);
		}
		end_run(r, &run, mem, bands);
	}
}

static json_t *
all_of(const om_report *r, om_arena *mem)
{
	json_t *ops = json_array(), *bands = json_array();

	add_ops(r, r->prog->first, mem, ops, bands);
	add_bands(r, mem, bands);
	return json_pack("{s:o, s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:b, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:i}",
		"model", om_json_text(mem, r->model), "about", about(r, mem), "steps", (int)r->steps,
		"align", (json_int_t)r->prog->plan->align, "arena_bytes", (json_int_t)r->arena_bytes,
		"lower_bound_bytes", (json_int_t)r->lower_bound_bytes, "naive_bytes", (json_int_t)r->naive_bytes,
		"original_order_bytes", (json_int_t)r->original_order_bytes, "weights_bytes", (json_int_t)r->weights_bytes,
		"io_bytes", (json_int_t)r->io_bytes, "gap", r->gap, "optimal", r->status == OM_PACK_OPTIMAL, "status", r->status_text, "scope", om_report_scope(r),
		"arenas", arenas(r, mem), "peak", peak(r, mem), "ops", ops, "bands", bands, "boxes", boxes(r, mem), "lives", lives(r),
		"strategies", strategies(r), "moving", moving(r->prog, mem), "unplanned", unplanned(r->prog, mem),
		"phases", phases(r, mem), "tiling",
		r->prog->tiling ? om_tiling_json(r->prog->tiling, mem) : json_null(), "total_bytes", (json_int_t)r->total_bytes, "unsized",
		(int)r->nunsized);
}

om_status
om_report_html(const om_report *r, om_session *s, om_arena *mem, FILE *to)
{
	static const char place[] = "@DATA@";
	json_t *j = all_of(r, mem);
	int rc = j ? 0 : -1;

	for (size_t k = 0; k < sizeof om_page / sizeof om_page[0]; k++) {
		const char *at = strstr(om_page[k], place);
		if (!at) {
			fputs(om_page[k], to);
			continue;
		}
		/* With the slash of "</script>" in a name escaped, no name ends the data. */
		fprintf(to, "%.*s", (int)(at - om_page[k]), om_page[k]);
		rc = j ? json_dumpf(j, to, JSON_COMPACT | JSON_ESCAPE_SLASH) : -1;
		fputs(at + sizeof place - 1, to);
	}
	json_decref(j);
	return rc == 0 ? OM_OK : om_fail(s, OM_IO, "cannot write the HTML report");
}
