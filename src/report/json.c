/* SPDX-License-Identifier: Apache-2.0 */
/* A report as one JSON object, "onnxmem-report/1". Keys, their order and their
 * meaning are stable: keys may be added, none changes. */
#include <config.h>

#include <math.h>

#include "report/json.h"
#include "report/tiling.h"
#include "ir/enum_text.h"
#include "onnxmem/opdef.h"

json_t *
om_json_text(om_arena *mem, const char *s)
{
	return s ? json_string(om_clean_text(mem, s)) : json_null();
}

om_status
om_json_write(om_session *s, json_t *document, size_t flags, FILE *to)
{
	const bool ok = document && json_dumpf(document, to, flags) == 0 && putc('\n', to) != EOF;

	json_decref(document);
	return ok || ferror(to) ? OM_OK : om_fail(s, OM_IO, "the JSON could not be written");
}

void
om_json_set_node(json_t *to, om_arena *mem, const om_op *op)
{
	if (op && op->node != OM_NO_NODE)
		json_object_set_new(to, "node", om_json_number(op->node));
	if (op && *op->block->path)
		json_object_set_new(to, "scope", om_json_text(mem, op->block->path));
}

static json_t *
inputs(const om_prog *p, om_arena *mem)
{
	json_t *all = json_object();

	for (uint32_t k = 0; k < p->first->nparam; k++) {
		const om_value *v = p->first->param[k];
		if (v->is_overridable)
			continue;
		json_t *dims = json_array();
		for (int d = 0; d < v->shape.rank; d++)
			json_array_append_new(dims, v->shape.dim[d] < 0 ? json_null() : json_integer(v->shape.dim[d]));
		json_object_set_new(all, om_clean_text(mem, v->name), dims);
	}
	return all;
}

/* The names of inputs that are constants. */
static json_t *
fixed_inputs(const om_prog *p, om_arena *mem)
{
	json_t *all = json_array();

	for (uint32_t k = 0; k < p->first->nparam; k++)
		if (p->first->param[k]->is_const)
			json_array_append_new(all, om_json_text(mem, p->first->param[k]->name));
	return all;
}

json_t *
om_json_dims(const om_prog *p, om_arena *mem)
{
	json_t *all = json_object();

	for (uint32_t k = 0; k < p->first->nparam; k++) {
		const om_shape *s = &p->first->param[k]->shape;
		for (int d = 0; d < s->rank; d++)
			if (s->sym[d] && s->dim[d] >= 0)
				json_object_set_new(all, om_clean_text(mem, s->sym[d]), json_integer(s->dim[d]));
	}
	return all;
}

static json_t *
peak(const om_report *r, om_arena *mem)
{
	json_t *at = json_object(), *live = json_array();

	json_object_set_new(at, "step", r->parallel_safe ? json_null() : om_json_number(r->peak_step));
	json_object_set_new(at, "op", om_json_text(mem, r->peak_op ? r->peak_op->type : ""));
	json_object_set_new(at, "name", om_json_text(mem, r->peak_op ? r->peak_op->name : ""));
	om_json_set_node(at, mem, r->peak_op);
	for (uint32_t k = 0; k < r->nlive; k++)
		json_array_append_new(live, json_pack("{s:o,s:o}", "name", om_json_text(mem, r->live[k].name),
			"bytes", om_json_number(r->live[k].bytes)));
	json_object_set_new(at, "live", live);
	return at;
}

/* The values in the arenas and the scratch of ops, in the order of their first steps. */
static json_t *
tensors(const om_report *r, om_arena *mem)
{
	static const char *const store[] = {
		[OM_BOX_OWN] = "own", [OM_BOX_INPLACE] = "inplace", [OM_BOX_VIEW] = "view", [OM_BOX_SCRATCH] = "scratch",
	};
	json_t *all = json_array();
	char shape[256];

	for (uint32_t k = 0; k < r->nbox; k++) {
		const om_box *x = &r->box[k];
		const om_op *op = x->value ? x->value->def : x->op;
		if (x->is_later)
			continue;
		json_t *one = json_pack("{s:o,s:o,s:o,s:o,s:s,s:o,s:o,s:o,s:o}", "name", om_json_text(mem, x->name),
			"op", om_json_text(mem, op ? op->type : ""), "type", json_string(!x->value ? "" : om_printf(mem, "%s%s",
			om_dtype_text(x->value->type.elem), om_shape_text(&x->value->shape, shape, sizeof shape))),
			"bytes", om_json_number(x->bytes), "store", store[x->kind], "arena", om_json_number(x->arena), "offset", om_json_number(x->offset),
			"first", om_json_number(x->first), "last", om_json_number(x->value ? om_report_life(r, x->value).last : x->last));
		if (x->value && !om_shape_is_known(&x->value->shape))
			json_object_set_new(one, "is_bound", json_true());
		json_array_append_new(all, one);
	}
	return all;
}

/* The peak of each phase of a training step. */
static json_t *
phases(const om_report *r, om_arena *mem)
{
	json_t *all = json_array();

	for (uint32_t k = 0; k < r->nphase; k++) {
		const om_report_phase *x = &r->phase[k];
		json_t *one = json_pack("{s:s,s:o,s:o,s:o,s:o,s:o}", "phase", om_phase_text(x->phase),
			"ops", om_json_number(x->ops), "bytes", om_json_number(x->bytes), "step", om_json_number(x->step),
			"op", om_json_text(mem, x->op->type), "name", om_json_text(mem, x->op->name));
		om_json_set_node(one, mem, x->op);
		json_array_append_new(all, one);
	}
	return all;
}

static json_t *
unplanned(const om_prog *p, om_arena *mem)
{
	json_t *all = json_array();

	for (uint32_t k = 0; k < p->plan->nunplanned; k++) {
		const om_unplanned *u = &p->plan->unplanned[k];
		json_array_append_new(all, json_pack("{s:o,s:o}", "name", om_json_text(mem, p->values[u->value]->name),
			"why", om_json_text(mem, u->why)));
	}
	return all;
}

static const char *
status_text(om_pack_status st)
{
	return st == OM_PACK_OPTIMAL ? "optimal" : "feasible";
}

static json_t *
arenas(const om_plan *plan, om_arena *mem)
{
	json_t *all = json_array();

	for (uint32_t k = 0; k < plan->narena; k++) {
		const om_plan_arena *a = &plan->arena[k];
		json_t *one = json_object();
		json_object_set_new(one, "name", om_json_text(mem, a->name));
		json_object_set_new(one, "device", om_json_text(mem, a->device));
		json_object_set_new(one, "bytes", om_json_number(a->bytes));
		json_object_set_new(one, "align", om_json_number(a->align));
		if (a->limit)
			json_object_set_new(one, "limit", om_json_number(a->limit));
		json_object_set_new(one, "lower_bound_bytes", om_json_number(a->lower_bound));
		json_object_set_new(one, "status", json_string(om_plan_arena_status(a)));
		json_array_append_new(all, one);
	}
	return all;
}

/* What a run reads from each memory, and writes to it. */
static json_t *
traffic(const om_report *r, om_arena *mem)
{
	static const char *const others[] = {[OM_TRAFFIC_WEIGHTS] = "weights", [OM_TRAFFIC_CALLER] = "caller",
		[OM_TRAFFIC_UNPLANNED] = "unplanned"};
	const om_plan *plan = r->prog->plan;
	json_t *all = json_array();

	for (uint32_t k = 0; k < plan->narena + OM_TRAFFIC_OTHERS; k++) {
		const om_traffic *t = &r->traffic[k];
		const char *what = k < plan->narena ? "arena" : "memory";
		json_t *name = k < plan->narena ? om_json_text(mem, plan->arena[k].name) : json_string(others[k - plan->narena]);
		json_array_append_new(all, json_pack("{s:o,s:o,s:o}", what, name, "read_bytes", om_json_number(t->read),
			"written_bytes", om_json_number(t->written)));
	}
	return all;
}

static json_t *
strategies(const om_report *r)
{
	json_t *all = json_array();

	for (uint32_t k = 0; k < r->nstrategy; k++) {
		const om_report_strategy *s = &r->strategy[k];
		json_t *one = json_object();
		json_object_set_new(one, "schedule", json_string(s->schedule));
		json_object_set_new(one, "strategy", json_string(s->name));
		json_object_set_new(one, "bytes", om_json_number(s->bytes));
		json_object_set_new(one, "lower_bound_bytes", om_json_number(s->bound));
		json_object_set_new(one, "gap", json_real(om_report_gap(s->bytes, s->bound)));
		json_object_set_new(one, "status", json_string(status_text(s->status)));
		if (s->is_limited && s->status != OM_PACK_OPTIMAL)
			json_object_set_new(one, "search_limited", json_true());
		json_object_set_new(one, "ms", json_real(round(s->ms * 1000) / 1000));
		json_object_set_new(one, "schedule_ms", json_real(round(s->schedule_ms * 1000) / 1000));
		json_array_append_new(all, one);
	}
	return all;
}

static json_t *
speedup_json(double times)
{
	return times > 0 ? json_real(round(times * 1000) / 1000) : json_null();
}

static json_t *
streams(const om_worker_streams *s)
{
	return json_pack("{s:o,s:o,s:o}", "workers", om_json_number(s->n), "waits", om_json_number(s->nwait),
		"model_speedup", speedup_json(om_streams_speedup(s)));
}

static json_t *
all_streams(const om_report *r)
{
	json_t *all = json_array();

	for (uint32_t k = 0; k < r->nstreams; k++) {
		const om_report_streams *s = &r->streams[k];
		json_array_append_new(all, json_pack("{s:o,s:o,s:o,s:o,s:o}", "workers", om_json_number(s->workers), "waits",
			om_json_number(s->waits), "bytes", om_json_number(s->bytes), "lower_bound_bytes", om_json_number(s->bound),
			"model_speedup", speedup_json(s->speedup)));
	}
	return all;
}

/* The counters that passes declare. */
static json_t *
passes(const om_report *r)
{
	json_t *all = json_array();

	for (size_t k = 0; k < r->nran; k++) {
		const om_pass *pass = r->ran[k].pass;
		json_t *counters = json_object();
		for (size_t i = 0; pass->counters && pass->counters[i].name; i++)
			json_object_set_new(counters, pass->counters[i].name, om_json_number(r->ran[k].counter[i]));
		json_array_append_new(all, json_pack("{s:s,s:o}", "pass", pass->name, "counters", counters));
	}
	return all;
}

/* The limits that passes reached. */
static json_t *
limits(const om_prog *p)
{
	json_t *all = json_array();

	for (uint32_t k = 0; k < p->nlimit; k++) {
		const om_limit *l = &p->limits[k];
		json_array_append_new(all, json_pack("{s:s,s:s?,s:s}", "pass", l->pass, "option", l->option, "what", l->what));
	}
	return all;
}

static json_t *
states(const om_report *r, om_arena *mem)
{
	json_t *all = json_array();

	for (uint32_t k = 0; k < r->nstate; k++) {
		const om_report_state *t = &r->state[k];
		json_array_append_new(all, json_pack("{s:o,s:o,s:o,s:o,s:o}", "input", om_json_text(mem, t->input->name),
			"output", om_json_text(mem, t->output->name), "bytes", om_json_number(om_value_bytes(t->input)),
			"copied_bytes", om_json_number(t->copied_bytes), "reason", om_json_text(mem, t->reason)));
	}
	return all;
}

static void
set_states(json_t *o, const om_report *r, om_arena *mem)
{
	if (r->nstate == 0)
		return;
	json_object_set_new(o, "state_bytes", om_json_number(r->state_bytes));
	json_object_set_new(o, "state_copied_bytes", om_json_number(r->state_copied_bytes));
	json_object_set_new(o, "states", states(r, mem));
}

/* Names of what is not in the total, beside `unplanned`. */
static json_t *
unsized(const om_report *r, om_arena *mem)
{
	json_t *all = json_array();

	for (uint32_t k = 0; k < r->nunsized; k++)
		json_array_append_new(all, om_json_text(mem, r->unsized[k]->name));
	return all;
}

static void
set_sizes(json_t *o, const om_report *r, om_arena *mem)
{
	json_object_set_new(o, "ops", om_json_number(r->ops));
	json_object_set_new(o, "values", om_json_number(r->values));
	json_object_set_new(o, "buffers", om_json_number(r->nbuffer));
	json_object_set_new(o, "weights_bytes", om_json_number(r->weights_bytes));
	json_object_set_new(o, "io_bytes", om_json_number(r->io_bytes));
	if (r->arena_io_bytes)
		json_object_set_new(o, "arena_io_bytes", om_json_number(r->arena_io_bytes));
	json_object_set_new(o, "total_bytes", om_json_number(r->total_bytes));
	json_object_set_new(o, "total_without", unsized(r, mem));
	if (r->io_alias_bytes)
		json_object_set_new(o, "io_alias_bytes", om_json_number(r->io_alias_bytes));
	json_object_set_new(o, "scratch_bytes", om_json_number(r->scratch_bytes));
	json_object_set_new(o, "naive_bytes", om_json_number(r->naive_bytes));
	for (uint32_t k = 0; k < r->nother; k++)
		json_object_set_new(o, r->other[k].key, om_json_number(r->other[k].bytes));
	json_object_set_new(o, "original_order_bytes", om_json_number(r->original_order_bytes));
	json_object_set_new(o, "arena_bytes", om_json_number(r->arena_bytes));
	json_object_set_new(o, "lower_bound_bytes", om_json_number(r->lower_bound_bytes));
	if (r->order_bound_bytes)
		json_object_set_new(o, "order_bound_bytes", om_json_number(r->order_bound_bytes));
	if (r->bounded)
		json_object_set_new(o, "values_at_bounds", om_json_number(r->bounded));
	json_object_set_new(o, "status", json_string(r->status_text));
	json_object_set_new(o, "gap", json_real(r->gap));
	if (r->is_limited)
		json_object_set_new(o, "search_limited", json_true());
	if (r->prog->nlimit)
		json_object_set_new(o, "limits", limits(r->prog));
	const om_schedule *s = r->prog->plan->schedule;
	if (s->method) {
		json_object_set_new(o, "schedule_is_original", json_boolean(s->is_original));
		json_object_set_new(o, "schedule_is_proven", json_boolean(s->is_proven));
		if (s->is_limited)
			json_object_set_new(o, "schedule_search_limited", json_true());
	}
}

static void
set_op_rules(json_t *o, const om_prog *p, om_arena *mem)
{
	json_t *all = json_array();
	const char *text;
	uint32_t nop;

	for (size_t k = 0; (text = om_prog_op_rule_text(p, k, &nop)); k++)
		json_array_append_new(all, json_pack("{s:o,s:o}", "rule", om_json_text(mem, text), "ops", om_json_number(nop)));
	if (json_array_size(all))
		json_object_set_new(o, "op_rules", all);
	else
		json_decref(all);
}

json_t *
om_report_object(const om_report *r, om_arena *mem)
{
	const om_schedule *schedule = r->prog->plan->schedule;
	json_t *o = json_object();

	json_object_set_new(o, "schema", json_string("onnxmem-report/1"));
	json_object_set_new(o, "model", om_json_text(mem, r->model));
	json_object_set_new(o, "target", json_string(om_target_text(r->prog->plan->target)));
	json_object_set_new(o, "schedule", json_string(schedule->method ? schedule->method : "original"));
	if (r->plan->streams)
		json_object_set_new(o, "streams", streams(r->plan->streams));
	else if (r->parallel_safe)
		json_object_set_new(o, "parallel_safe", json_true());
	json_object_set_new(o, "inputs", inputs(r->prog, mem));
	json_object_set_new(o, "dims", om_json_dims(r->prog, mem));
	json_t *fixed = fixed_inputs(r->prog, mem);
	if (json_array_size(fixed))
		json_object_set_new(o, "fixed_inputs", fixed);
	else
		json_decref(fixed);
	set_op_rules(o, r->prog, mem);
	set_sizes(o, r, mem);
	set_states(o, r, mem);
	json_object_set_new(o, "arenas", arenas(r->prog->plan, mem));
	json_t *formulas = om_json_formulas(r, mem);
	if (formulas)
		json_object_set_new(o, "formulas", formulas);
	json_object_set_new(o, "traffic", traffic(r, mem));
	json_object_set_new(o, "peak", peak(r, mem));
	if (r->rematerialized)
		json_object_set_new(o, "rematerialized", json_pack("{s:o,s:f,s:f}", "ops", om_json_number(r->rematerialized),
			"flops", r->rematerialized_flops,
			"all_flops", r->rematerialized_flops + r->flops));
	if (r->nphase)
		json_object_set_new(o, "phases", phases(r, mem));
	if (r->prog->tiling)
		json_object_set_new(o, "tiling", om_tiling_json(r->prog->tiling, mem));
	if (r->nstreams)
		json_object_set_new(o, "workers", all_streams(r));
	if (r->nstrategy)
		json_object_set_new(o, "strategies", strategies(r));
	if (r->nran)
		json_object_set_new(o, "passes", passes(r));
	json_object_set_new(o, "tensors", tensors(r, mem));
	json_object_set_new(o, "unplanned", unplanned(r->prog, mem));
	if (r->origin)
		json_object_set_new(o, "plan", json_pack("{s:o,s:b,s:o}", "origin", om_json_text(mem, r->origin), "valid", !r->fault,
			"fault", r->fault ? om_json_text(mem, r->fault) : json_null()));
	if (r->ours)
		json_object_set_new(o, "ours", json_pack("{s:o,s:o,s:o,s:s}", "arena_bytes", om_json_number(r->ours->arena_bytes),
			"lower_bound_bytes", om_json_number(r->ours->lower_bound_bytes), "total_bytes", om_json_number(r->ours->total_bytes),
			"status", r->ours->status));
	json_object_set_new(o, "plan_ms", json_real(round(r->plan_ms * 1000) / 1000));
	return o;
}

om_status
om_report_json(const om_report *r, om_session *s, FILE *to)
{
	om_arena *mem = om_arena_new();
	const om_status st = om_json_write(s, om_report_object(r, mem), JSON_INDENT(2) | JSON_REAL_PRECISION(6), to);

	om_arena_free(mem);
	return st;
}
