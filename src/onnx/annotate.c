/* SPDX-License-Identifier: Apache-2.0 */
/* Plans inside models.  One entry of the model's metadata is authoritative; annotations of
 * individual values are informative mirrors and may be lost. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>

#include "base/guard.h"
#include "base/arena_internal.h"
#include "base/map.h"
#include "base/sha256.h"
#include "base/shape.h"
#include "ir/enum_text.h"
#include "ir/alias_roots.h"
#include "ir/type.h"
#include "onnx/annotate.h"
#include "onnx/lowered.h"
#include "onnx/model.h"

/* ---- Removing a plan. ---- */

struct strip {
	bool compat;             /* also remove keys of other tools that were written with the plan */
	size_t gone;
};

/* Properties of the model are kept. */
static bool
is_fact(const char *key)
{
	return strcmp(key, OM_KEY_IO_ALIAS) == 0 || strcmp(key, OM_KEY_PHASE) == 0 || strcmp(key, OM_KEY_REMATERIALIZED) == 0;
}

static bool
is_ours(const struct strip *st, const char *key)
{
	return (strncmp(key, OM_KEY, strlen(OM_KEY)) == 0 && !is_fact(key))
	    || (st->compat && (strncmp(key, "onnxsim.mem_", 12) == 0
	                       || strncmp(key, "onnxsim.memory_plan_", 20) == 0));
}

static void
strip_props(struct strip *st, struct props p)
{
	size_t left = 0;

	for (size_t k = 0; k < *p.n; k++) {
		if (is_ours(st, om_text((*p.list)[k]->key)))
			st->gone++;
		else
			(*p.list)[left++] = (*p.list)[k];
	}
	*p.n = left;
}

/* A value_info that was added only for a mirror is removed entirely. */
static void
strip_infos(struct strip *st, size_t *n, Onnx__ValueInfoProto **info)
{
	size_t left = 0;

	for (size_t k = 0; k < *n; k++) {
		const bool added = om_prop_find(PROPS(info[k]), OM_KEY_ADDED);
		strip_props(st, PROPS(info[k]));
		if (!added)
			info[left++] = info[k];
	}
	*n = left;
}

static void strip_graph(struct strip *st, Onnx__GraphProto *g);

static void
strip_nodes(struct strip *st, size_t n, Onnx__NodeProto *const *node)
{
	for (size_t k = 0; k < n; k++) {
		strip_props(st, PROPS(node[k]));
		for (size_t a = 0; a < node[k]->n_attribute; a++) {
			const Onnx__AttributeProto *attr = node[k]->attribute[a];
			if (attr->g)
				strip_graph(st, attr->g);
			for (size_t i = 0; i < attr->n_graphs; i++)
				strip_graph(st, attr->graphs[i]);
		}
	}
}

static void
strip_graph(struct strip *st, Onnx__GraphProto *g)
{
	strip_props(st, PROPS(g));
	strip_infos(st, &g->n_input, g->input);
	strip_infos(st, &g->n_output, g->output);
	strip_infos(st, &g->n_value_info, g->value_info);
	for (size_t k = 0; k < g->n_initializer; k++)
		strip_props(st, PROPS(g->initializer[k]));
	strip_nodes(st, g->n_node, g->node);
}

size_t
om_model_strip(om_model *m)
{
	Onnx__ModelProto *p = m->proto;
	struct strip st = {.compat = om_prop_find(PROPS(p), OM_KEY_COMPAT) != NULL};

	strip_props(&st, PROPS(p));
	if (p->graph)
		strip_graph(&st, p->graph);
	for (size_t k = 0; k < p->n_functions; k++) {
		strip_props(&st, PROPS(p->functions[k]));
		strip_infos(&st, &p->functions[k]->n_value_info, p->functions[k]->value_info);
		strip_nodes(&st, p->functions[k]->n_node, p->functions[k]->node);
	}
	return st.gone;
}

bool
om_model_has_plan(const om_model *m)
{
	return om_prop_find(PROPS(m->proto), OM_KEY_PLAN) != NULL;
}

/* ---- Writing. ---- */

const char *
om_text_digest(const char *text, size_t n, om_arena *mem)
{
	char hex[OM_SHA256_TEXT];
	om_sha256 *h = om_sha256_new(mem);

	om_sha256_add(h, text, n);
	om_sha256_end(h, hex);
	return om_printf(mem, "sha256:%s", hex);
}

const char *
om_shapes_text(const om_prog *p, om_arena *mem)
{
	const char *text = "";

	for (uint32_t k = 0; k < p->first->nparam; k++) {
		const om_value *v = p->first->param[k];
		if (v->type.kind != OM_TENSOR || v->shape.rank == OM_RANK_UNKNOWN)
			continue;
		const om_shape shape = om_input_shape(p, k);
		text = om_printf(mem, "%s%s%s:", text, *text ? ";" : "", v->name);
		for (int d = 0; d < shape.rank; d++) {
			const char *comma = d ? "," : "";
			text = shape.dim[d] < 0 ? om_printf(mem, "%s%s?", text, comma)
				: om_printf(mem, "%s%s%" PRId64, text, comma, shape.dim[d]);
		}
	}
	return text;
}

/* Totals over all arenas. */
static om_plan_arena
sum_of(const om_plan *plan)
{
	om_plan_arena all = {.status = OM_PACK_OPTIMAL};

	for (uint32_t k = 0; k < plan->narena; k++) {
		const om_plan_arena *a = &plan->arena[k];
		all.bytes += a->bytes;
		all.lower_bound += a->lower_bound;
		all.naive += a->naive;
		all.order_bound += a->order_bound;
		if (a->status != OM_PACK_OPTIMAL)
			all.status = a->status;
	}
	return all;
}

/* The totals, followed by each arena if there are several. */
static const char *
summary_text(const om_plan *plan, om_arena *mem)
{
	const om_plan_arena all = sum_of(plan);
	const char *text = om_printf(mem, "arena=%" PRIu64 " lower=%" PRIu64 " naive=%" PRIu64 " status=%s",
		all.bytes, all.lower_bound, all.naive, om_plan_arena_status(&all));

	for (uint32_t k = 0; k < plan->narena && plan->narena > 1; k++)
		text = om_printf(mem, "%s%s%s:%" PRIu64, text, k ? "," : " arenas=", plan->arena[k].name,
			plan->arena[k].bytes);
	if (plan->streams)
		return om_printf(mem, "%s streams=%" PRIu32, text, plan->streams->n);
	return plan->parallel_safe ? om_printf(mem, "%s parallel_safe", text) : text;
}

struct mirror {
	om_model *m;
	const om_prog *p;
	const om_plan *plan;
	om_arena *tmp;
	om_op ***ops;
	const om_alias **alias;    /* by value id */
	const om_plan_multi_view **view;
	bool compat;
	bool is_open;              /* shapes depend on bound dims */
};

/* The placement in one phase of a multi-view. */
static const char *
phase_text(const struct mirror *w, const om_value *v, const om_region *r)
{
	const om_placement *base = r->base == OM_NO_VALUE ? NULL : &w->plan->place[r->base];
	uint64_t bytes = 0, offset = r->offset;

	om_tensor_bytes(v->type.elem, &v->shape, &bytes);
	if (!base)
		return om_printf(w->tmp, "%" PRIu32 ":%" PRIu64 "+%" PRIu64, r->arena, offset, bytes);
	offset += base->offset;
	if (w->view[r->base] || base->where == OM_UNPLANNED)
		return om_printf(w->tmp, "?:0+%" PRIu64, bytes);
	if (base->where == OM_IN_ARENA)
		return om_printf(w->tmp, "%" PRIu32 ":%" PRIu64 "+%" PRIu64, base->arena, offset, bytes);
	return om_printf(w->tmp, "%s:%" PRIu64 "+%" PRIu64, base->where == OM_WEIGHT ? "w" : "x", offset, bytes);
}

/* PHASE=PLACEMENT for each iteration of the prologue and each phase of the period. */
static const char *
view_text(const struct mirror *w, const om_value *v, const om_plan_multi_view *view)
{
	const char *text = "";

	for (uint32_t k = 0; k < view->nprologue; k++)
		text = om_printf(w->tmp, "%sfirst%s=%s;", text, k ? om_printf(w->tmp, "+%" PRIu32, k) : "",
			phase_text(w, v, &view->first[k]));
	for (uint32_t k = 0; k < view->period; k++)
		text = om_printf(w->tmp, "%s%si%%%" PRIu32 ".%" PRIu32 "=%s", text, k ? ";" : "", view->period, k,
			phase_text(w, v, &view->off[k]));
	return text;
}

static const char *
place_text(const struct mirror *w, const om_value *v)
{
	const om_placement *at = &w->plan->place[v->id];

	if (w->view[v->id])
		return view_text(w, v, w->view[v->id]);

	if (at->where == OM_UNPLANNED)
		return "?:0+0";
	if (at->where == OM_EXTERNAL)
		return om_printf(w->tmp, "x:%" PRIu64 "+%" PRIu64, at->offset, at->bytes);
	const om_span s = om_span_of(w->ops[v->block->id], v, at);
	return om_printf(w->tmp, "%" PRIu32 ":%" PRIu64 "+%" PRIu64 "@%" PRIu32 "-%" PRIu32,
		at->arena, at->offset, at->bytes, s.first, s.last);
}

static const char *
alias_text(const struct mirror *w, const om_alias *a)
{
	const char *source = w->p->values[a->source]->name;

	if (a->offset == 0)
		return om_printf(w->tmp, "%s:%s", om_alias_text(a->kind), source);
	return om_printf(w->tmp, "%s:%s+%" PRIu64, om_alias_text(a->kind), source, a->offset);
}

static bool
is_mirrored(const struct mirror *w, const om_value *v)
{
	const om_location where = v ? w->plan->place[v->id].where : OM_UNUSED;
	return where == OM_IN_ARENA || where == OM_UNPLANNED || where == OM_EXTERNAL || (v && w->view[v->id]);
}

/* Reserve capacity for a value_info of every value. */
static void
make_room(const struct mirror *w, Onnx__GraphProto *g, const om_block *b)
{
	size_t most = g->n_value_info + b->nparam;
	Onnx__ValueInfoProto **more;

	for (const om_op *op = b->first; op; op = op->next)
		most += op->nout;
	more = OM_NEWN(w->m->mem, Onnx__ValueInfoProto *, most);
	for (size_t k = 0; k < g->n_value_info; k++)
		more[k] = g->value_info[k];
	g->value_info = more;
}

/* Add a value_info with the type of the value.  The shape is included only if it does not depend
 * on bound dims, which are specific to this plan. */
static Onnx__ValueInfoProto *
add_info(const struct mirror *w, Onnx__GraphProto *g, const om_value *v)
{
	om_arena *mem = w->m->mem;
	Onnx__ValueInfoProto *info = OM_NEW(mem, Onnx__ValueInfoProto);
	const om_shape open = om_shape_unknown();

	onnx__value_info_proto__init(info);
	info->name = om_strdup(mem, v->name);
	info->type = om_type_write(mem, &v->type, w->is_open ? &open : &v->shape);
	g->value_info[g->n_value_info++] = info;
	om_prop_set(mem, PROPS(info), OM_KEY_ADDED, "1");
	return info;
}

static void
mirror_value(const struct mirror *w, const om_map *infos, Onnx__GraphProto *g, const om_value *v)
{
	om_arena *mem = w->m->mem;

	if (!is_mirrored(w, v) || v->type.kind != OM_TENSOR)
		return;
	const om_placement *at = &w->plan->place[v->id];
	Onnx__ValueInfoProto *info = om_map_get(infos, v->name);
	if (!info && v->type.elem == OM_UNDEFINED)  /* in a branch that cannot run */
		return;
	if (!info)
		info = add_info(w, g, v);
	om_prop_set(mem, PROPS(info), OM_KEY_MEM, place_text(w, v));
	if (w->alias[v->id])
		om_prop_set(mem, PROPS(info), OM_KEY_ALIAS, alias_text(w, w->alias[v->id]));
	if (w->compat && at->where == OM_IN_ARENA) {
		om_prop_set(mem, PROPS(info), "onnxsim.mem_offset", om_printf(w->tmp, "%" PRIu64, at->offset));
		om_prop_set(mem, PROPS(info), "onnxsim.mem_size", om_printf(w->tmp, "%" PRIu64, at->bytes));
	}
}

static void
list_infos(om_map *map, size_t n, Onnx__ValueInfoProto *const *info)
{
	for (size_t k = 0; k < n; k++)
		om_map_set(map, om_text(info[k]->name), info[k]);
}

static void mirror_graph(const struct mirror *w, Onnx__GraphProto *g, const om_block *b);

/* Nodes are in the order of the ops, and bodies in the order of the attributes. */
static void
mirror_bodies(const struct mirror *w, const Onnx__NodeProto *n, const om_op *op)
{
	uint32_t body = 0;

	for (size_t a = 0; a < n->n_attribute; a++) {
		const Onnx__AttributeProto *attr = n->attribute[a];
		if (attr->g && body < op->nbody)
			mirror_graph(w, attr->g, op->body[body++]);
		for (size_t k = 0; k < attr->n_graphs && body < op->nbody; k++)
			mirror_graph(w, attr->graphs[k], op->body[body++]);
	}
}

static void
mirror_graph(const struct mirror *w, Onnx__GraphProto *g, const om_block *b)
{
	om_map infos = om_map_new(w->tmp);
	size_t k = 0;

	list_infos(&infos, g->n_value_info, g->value_info);
	list_infos(&infos, g->n_output, g->output);
	list_infos(&infos, g->n_input, g->input);
	make_room(w, g, b);
	if (b->owner)
		om_prop_set(w->m->mem, PROPS(g), OM_KEY_SCOPE, b->path);
	for (uint32_t i = 0; i < b->nparam; i++)
		mirror_value(w, &infos, g, b->param[i]);
	for (const om_op *op = b->first; op && k < g->n_node; op = op->next, k++) {
		for (uint32_t i = 0; i < op->nout; i++)
			mirror_value(w, &infos, g, op->out[i]);
		mirror_bodies(w, g->node[k], op);
	}
}

static bool
is_open(const Onnx__ValueInfoProto *info)
{
	const Onnx__TypeProto *t = info->type;
	const Onnx__TensorShapeProto *shape;

	if (!t || t->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
		return false;
	shape = t->tensor_type->shape;
	for (size_t k = 0; shape && k < shape->n_dim; k++)
		if (shape->dim[k]->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
			return true;
	return !shape;
}

static bool
has_open_inputs(const Onnx__GraphProto *g)
{
	for (size_t k = 0; k < g->n_input; k++)
		if (is_open(g->input[k]))
			return true;
	return false;
}

/* Sizes in onnxsim's keys include the graph's inputs, ours do not: omit them if there are inputs. */
static void
write_compat(const struct mirror *w)
{
	om_arena *mem = w->m->mem;
	const struct props p = PROPS(w->m->proto);
	const om_plan_arena all = sum_of(w->plan), *a = &all;

	om_prop_set(mem, p, OM_KEY_COMPAT, "onnxsim");
	om_prop_set(mem, p, "onnxsim.memory_plan_unplanned_count", om_printf(w->tmp, "%u", w->plan->nunplanned));
	if (w->p->first->nparam)
		return;
	om_prop_set(mem, p, "onnxsim.memory_plan_arena_bytes", om_printf(w->tmp, "%" PRIu64, a->bytes));
	om_prop_set(mem, p, "onnxsim.memory_plan_naive_bytes", om_printf(w->tmp, "%" PRIu64, a->naive));
	if (a->bytes)
		om_prop_set(mem, p, "onnxsim.memory_plan_compression_ratio",
			om_printf(w->tmp, "%.4f", (double)a->naive / (double)a->bytes));
}

static void
write_mirrors(const struct mirror *w, unsigned how)
{
	const bool automatic = how & OM_ANNOTATE_AUTO && w->p->ir_version >= 10;

	if (w->compat)
		write_compat(w);
	if (how & OM_ANNOTATE_VALUE || automatic)
		mirror_graph(w, w->m->proto->graph, w->p->first);
}

static void
write_model(const struct mirror *w, const char *json, const char *digest)
{
	om_arena *mem = w->m->mem;
	const struct props p = PROPS(w->m->proto);

	om_prop_set(mem, p, OM_KEY_PLAN, json);
	om_prop_set(mem, p, OM_KEY_DIGEST, om_text_digest(json, strlen(json), w->tmp));
	om_prop_set(mem, p, OM_KEY_GRAPH, digest);
	om_prop_set(mem, p, OM_KEY_SHAPES, om_shapes_text(w->p, w->tmp));
	om_prop_set(mem, p, OM_KEY_SUMMARY, summary_text(w->plan, w->tmp));
}

static void
free_text(void *text)
{
	free(*(char **)text);
}

static om_status
model_annotate_guarded(om_session *s, om_model *m, const om_prog *p, unsigned how)
{
	char digest[80];
	struct mirror w = {.m = m, .p = p, .plan = p->plan, .compat = how & OM_ANNOTATE_ONNXSIM};

	const bool is_lowered = p->has & OM_HAS_PLAN && om_prog_is_lowered(p);

	if (is_lowered && how & OM_ANNOTATE_VALUE)
		return om_fail(s, OM_USAGE, "the values of a plan for %s are not those of the model: only the model can be annotated",
			om_target_text(p->plan->target));
	if (w.compat && p->plan->narena > 1)
		return om_fail(s, OM_USAGE,
			"the onnxsim format supports one arena, but the plan has %u", p->plan->narena);
	if (!is_lowered)
		OM_TRY(om_model_update(s, m, p));
	om_model_strip(m);
	OM_TRY(om_model_digest(s, m, false, digest));
	w.tmp = om_arena_new();
	char **text = OM_NEW(w.tmp, char *);
	om_arena_defer(w.tmp, free_text, text);
	const om_status st = om_plan_json_for(s, p, digest, text);
	if (st != OM_OK) {
		om_arena_free(w.tmp);
		return st;
	}
	w.ops = om_ops_by_index(p, w.tmp);
	w.is_open = has_open_inputs(m->proto->graph);
	w.alias = om_aliases_by_value(w.plan, p->nvalue, w.tmp);
	w.view = OM_NEWN(w.tmp, const om_plan_multi_view *, p->nvalue);
	for (uint32_t k = 0; k < w.plan->nview; k++)
		w.view[w.plan->view[k].value] = &w.plan->view[k];
	m->keeps_original = how & OM_ANNOTATE_ORIGINAL;
	write_model(&w, *text, digest);
	if (is_lowered)
		how &= ~(unsigned)OM_ANNOTATE_AUTO;
	write_mirrors(&w, how);
	om_arena_free(w.tmp);
	return OM_OK;
}

om_status
om_model_annotate(om_session *s, om_model *m, const om_prog *p, unsigned how)
{
	OM_GUARDED(s, model_annotate_guarded(s, m, p, how));
}
