/* SPDX-License-Identifier: Apache-2.0 */
/* Why the arena is as large as it is, as one JSON object, "onnxmem-why/1". */
#include <config.h>

#include "ir/enum_text.h"
#include "report/json.h"
#include "report/why.h"

static const char *
role_text(om_role role)
{
	static const char *const texts[] = {
		[OM_ROLE_INPUT] = "input", [OM_ROLE_OUTPUT] = "output", [OM_ROLE_BOTH] = "input and output",
		[OM_ROLE_SCRATCH] = "scratch", [OM_ROLE_CROSSING] = "kept",
	};

	return texts[role];
}

static json_t *
op_json(const om_op *op, om_arena *mem)
{
	if (!op)
		return json_null();
	json_t *o = json_pack("{s:o, s:o}", "op", om_json_text(mem, op->type), "name", om_json_text(mem, op->name));
	om_json_set_node(o, mem, op);
	return o;
}

/* ---- The ladder. ---- */

static json_t *
live_json(const om_peak_value *x, om_arena *mem)
{
	json_t *o = json_pack("{s:o, s:o, s:s}", "name", om_json_text(mem, x->name), "bytes", om_json_number(x->bytes), "role",
		role_text(x->role));

	if (x->role == OM_ROLE_SCRATCH)
		return o;
	json_object_set_new(o, "from_step", om_json_number(x->first));
	json_object_set_new(o, "computed_by", op_json(x->value ? x->value->def : NULL, mem));
	json_object_set_new(o, "next_step", x->next == UINT32_MAX ? json_null() : om_json_number(x->next));
	json_object_set_new(o, "read_by", op_json(x->next == UINT32_MAX ? NULL : x->reader, mem));
	return o;
}

static json_t *
peak_json(const om_peak_step *p, om_arena *mem)
{
	json_t *live = json_array();

	for (uint32_t k = 0; k < p->nlive; k++)
		json_array_append_new(live, live_json(&p->live[k], mem));
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "step", om_json_number(p->step), "at", op_json(p->op, mem), "own_bytes",
		om_json_number(p->own), "floor_bytes", p->floor ? om_json_number(p->floor) : json_null(), "live", live);
}

static json_t *
rung_json(const om_rung *g, om_arena *mem)
{
	json_t *peaks = json_array();

	for (uint32_t k = 0; k < g->n; k++)
		json_array_append_new(peaks, peak_json(&g->at[k], mem));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "bytes", om_json_number(g->bytes), "kept_bytes", om_json_number(g->bytes - g->own),
		"next_bytes", om_json_number(g->next), "reach_bytes", om_json_number(g->reach), "steps", om_json_number(g->n + g->more), "peaks", peaks);
}

static json_t *
ladder_json(const om_report *r, om_arena *mem, uint32_t *more)
{
	const om_ladder l = om_report_ladder(r, mem);
	json_t *all = json_array();

	for (uint32_t k = 0; k < l.n; k++)
		json_array_append_new(all, rung_json(&l.rung[k], mem));
	*more = l.more;
	return all;
}

static json_t *
any_order_json(const om_report *r, om_arena *mem)
{
	json_t *all = json_array();

	for (uint32_t k = 0; k < r->nlive; k++)
		json_array_append_new(all, json_pack("{s:o, s:o}", "name", om_json_text(mem, r->live[k].name), "bytes",
			om_json_number(r->live[k].bytes)));
	return all;
}

static void
set_sizes(json_t *o, const om_report *r, om_arena *mem)
{
	const om_plan *plan = r->prog->plan;
	uint32_t more = 0;

	json_object_set_new(o, "floor_bytes", plan->floor ? om_json_number(plan->floor) : json_null());
	json_object_set_new(o, "floor_op", op_json(plan->floor ? plan->floor_op : NULL, mem));
	json_object_set_new(o, "bound_bytes", om_json_number(om_why_bound(r)));
	json_object_set_new(o, "bound_of", json_string(r->order_bound_bytes ? "order" : "buffers"));
	json_object_set_new(o, "arena_bytes", om_json_number(r->arena_bytes));
	json_object_set_new(o, "steps", om_json_number(r->steps));
	if (r->parallel_safe) {
		json_object_set_new(o, "ladder", json_null());
		json_object_set_new(o, "live", any_order_json(r, mem));
		return;
	}
	json_object_set_new(o, "ladder", ladder_json(r, mem, &more));
	json_object_set_new(o, "more_rungs", om_json_number(more));
}

/* ---- One value. ---- */

static const char *
location_text(om_location where)
{
	static const char *const texts[] = {
		[OM_UNUSED] = "unused", [OM_IN_ARENA] = "arena", [OM_EXTERNAL] = "caller", [OM_WEIGHT] = "constant",
		[OM_UNPLANNED] = "unplanned",
	};

	return texts[where];
}

static json_t *
box_json(const om_box *x, om_arena *mem)
{
	static const char *const kinds[] = {
		[OM_BOX_OWN] = "own", [OM_BOX_INPLACE] = "in place", [OM_BOX_VIEW] = "view", [OM_BOX_SCRATCH] = "scratch",
	};

	if (!x)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:[i, i], s:s, s:o}", "name", om_json_text(mem, x->name), "offset", om_json_number(x->offset),
		"bytes", om_json_number(x->bytes), "steps", (int)x->first, (int)x->last, "kind", kinds[x->kind], "source",
		x->source ? om_json_text(mem, x->source->name) : json_null());
}

static json_t *
readers_json(const om_report *r, const om_value *v, om_arena *mem)
{
	json_t *all = json_array();
	uint32_t at;

	for (const om_use *u = v->first_use; u; u = u->next)
		if (om_report_use_step(r, u, &at))
			json_array_append_new(all, json_pack("{s:o, s:o}", "step", om_json_number(at), "by", op_json(u->op, mem)));
	return all;
}

static json_t *
members_json(const om_report *r, const om_value *v, om_arena *mem)
{
	const uint32_t own = r->box_of_value[v->id];
	json_t *all = json_array();

	for (uint32_t k = own == UINT32_MAX ? own : r->first_of_buffer[r->box[own].buffer]; k != UINT32_MAX; k = r->next_of_buffer[k])
		json_array_append_new(all, box_json(&r->box[k], mem));
	return all;
}

static json_t *
inputs_json(const om_report *r, const om_value *v, om_arena *mem)
{
	const om_op *op = v->def;
	json_t *all = json_array();

	if (!op || op->is_folded)
		return all;
	const uint32_t out = om_report_output(v);
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k])
			json_array_append_new(all, json_pack("{s:i, s:o, s:s, s:o}", "input", (int)k, "name",
				om_json_text(mem, op->in[k]->name), "reason", om_report_overwrite_key(r, op, out, k), "why",
				om_json_text(mem, om_report_overwrite(r, mem, op, out, k))));
	return all;
}

static json_t *
rungs_json(const om_report *r, const om_value *v, om_arena *mem)
{
	json_t *all = json_array();

	if (r->parallel_safe)
		return all;
	const om_ladder l = om_report_ladder(r, mem);
	for (uint32_t k = 0; k < l.n; k++)
		if (om_report_is_at_rung(r, v, &l.rung[k]))
			json_array_append_new(all, om_json_number(k + 1));
	return all;
}

static void
set_place(json_t *o, const om_report *r, const om_report_tensor *t, om_arena *mem)
{
	const om_plan *plan = r->prog->plan;

	json_object_set_new(o, "where", json_string(location_text(t->at->where)));
	if (t->at->where == OM_UNPLANNED)
		json_object_set_new(o, "why", om_json_text(mem, t->why));
	if (t->at->where != OM_IN_ARENA)
		return;
	json_object_set_new(o, "arena", om_json_text(mem, plan->arena[t->at->arena].name));
	json_object_set_new(o, "offset", om_json_number(t->at->offset));
	json_object_set_new(o, "live_steps", json_pack("[i, i]", (int)t->live.first, (int)t->live.last));
	json_object_set_new(o, "storage", members_json(r, t->value, mem));
	json_object_set_new(o, "above", box_json(t->over, mem));
	json_object_set_new(o, "below", box_json(t->under, mem));
	json_object_set_new(o, "before", box_json(t->before, mem));
	json_object_set_new(o, "after", box_json(t->after, mem));
	json_object_set_new(o, "at_peaks", rungs_json(r, t->value, mem));
}

static void
set_value(json_t *o, const om_report *r, const om_value *v, om_arena *mem)
{
	const om_report_tensor t = om_report_tensor_of(r, v);
	json_t *shape = json_array();

	for (int k = 0; k < v->shape.rank; k++)
		json_array_append_new(shape, v->shape.dim[k] < 0 ? json_null() : json_integer(v->shape.dim[k]));
	json_object_set_new(o, "name", om_json_text(mem, v->name));
	json_object_set_new(o, "scope", om_json_text(mem, v->block->path));
	json_object_set_new(o, "type", v->type.kind == OM_TENSOR ? json_string(om_dtype_text(v->type.elem)) : json_null());
	json_object_set_new(o, "shape", shape);
	json_object_set_new(o, "bytes", om_json_number(om_value_bytes(v)));
	json_object_set_new(o, "computed_by", op_json(v->def, mem));
	json_object_set_new(o, "read_by", readers_json(r, v, mem));
	set_place(o, r, &t, mem);
	json_object_set_new(o, "in_place", inputs_json(r, v, mem));
}

om_status
om_why_json(const om_report *r, const om_value *v, om_session *s, FILE *to)
{
	om_arena *mem = om_arena_new();
	json_t *o = json_object();

	json_object_set_new(o, "schema", json_string("onnxmem-why/1"));
	json_object_set_new(o, "model", om_json_text(mem, r->model));
	if (v)
		set_value(o, r, v, mem);
	else
		set_sizes(o, r, mem);
	const om_status st = om_json_write(s, o, JSON_INDENT(2), to);
	om_arena_free(mem);
	return st;
}
