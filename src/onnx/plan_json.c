/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a plan as a JSON document, "memplan/1"; the format is defined in
 * docs/plan-format.md. */
#include <config.h>

#include <stdlib.h>

#include <jansson.h>

#include "ir/live_interval.h"
#include "base/guard.h"
#include "base/hex.h"
#include "base/map.h"
#include "ir/binding.h"
#include "ir/enum_text.h"
#include "ir/query.h"
#include "onnx/json_hold.h"
#include "ir/type.h"
#include "onnx/annotate.h"
#include "onnx/lowered.h"
#include "onnx/model.h"
#include "onnx/plan_binding.h"
#include "onnxmem/formula.h"

struct writer {
	om_session *s;
	const om_prog *p;
	const om_plan *plan;
	om_arena *mem;
	om_op ***ops;            /* by block id: ops by index */
	om_map *values;          /* by block id: values by name */
	uint32_t *view, *next_view; /* 1 + the first multi-view by block id, and the one after each; 0: none */
	const char *bad;         /* a name that is not UTF-8 */
	bool too_large;
	bool has_large_value;    /* an input that is a constant is too large for a document */
	bool is_lowered;         /* the ops are not those of the file */
	bool has_other_nodes;    /* the nodes of a graph in another order differ from the ops */
};

/* ---- Steps and op indices. ---- */

om_map *
om_values_by_name(const om_prog *p, om_arena *mem)
{
	om_map *values = OM_NEWN(mem, om_map, p->nblock);

	for (const om_block *b = p->first; b; b = b->next)
		values[b->id] = om_map_new(mem);
	/* Values of bodies that passes removed are in none of the blocks. */
	for (uint32_t k = 0; k < p->nvalue; k++)
		if (values[p->values[k]->block->id].mem)
			om_map_set(&values[p->values[k]->block->id], p->values[k]->name, p->values[k]);
	return values;
}

om_op ***
om_ops_by_index(const om_prog *p, om_arena *mem)
{
	om_op ***all = OM_NEWN(mem, om_op **, p->nblock);

	for (const om_block *b = p->first; b; b = b->next) {
		uint32_t n = 0;
		all[b->id] = OM_NEWN(mem, om_op *, b->nop + 1);
		for (om_op *op = b->first; op; op = op->next)
			all[b->id][n++] = op;
	}
	return all;
}

static bool
is_body_param(const om_value *v)
{
	return !v->def && v->block->owner;
}

uint32_t
om_span_first(om_op *const *ops, const om_value *v, uint32_t index)
{
	if (index == 0 && is_body_param(v))
		return v->block->owner->step;
	return index < v->block->nop ? ops[index]->step : v->block->end;
}

uint32_t
om_span_last(om_op *const *ops, const om_value *v, uint32_t index)
{
	if (index < v->block->nop)
		return ops[index]->end;
	return is_body_param(v) ? v->block->owner->end : v->block->end;
}

/* Index of the op whose steps include `step`; the number of ops at the end of the block. */
static uint32_t
index_of(om_op *const *ops, const om_block *b, uint32_t step)
{
	uint32_t from = 0, to = b->nop;

	while (from < to) {
		const uint32_t k = from + (to - from) / 2;
		if (ops[k]->end < step)
			from = k + 1;
		else
			to = k;
	}
	return from;
}

om_span
om_span_of(om_op *const *ops, const om_value *v, const om_placement *at)
{
	om_span s = {index_of(ops, v->block, at->live.first), index_of(ops, v->block, at->live.last), false};

	s.is_exact = at->live.nrange == 0 && om_span_first(ops, v, s.first) == at->live.first
		&& om_span_last(ops, v, s.last) == at->live.last;
	return s;
}

/* ---- JSON. ---- */

static json_t *
name(struct writer *w, const char *s)
{
	json_t *j = json_string(s);

	if (!j) {
		w->bad = s;
		j = json_null();
	}
	return j;
}

static json_t *
number(struct writer *w, uint64_t n)
{
	w->too_large |= n > INT64_MAX;
	return json_integer((json_int_t)n);
}

/* The writer's arena owns all lists and objects; numbers and strings are owned by their container. */
static json_t *
list(struct writer *w)
{
	json_t **at = om_json_hold(w->mem);

	return *at = json_array();
}

static json_t *
object(struct writer *w)
{
	json_t **at = om_json_hold(w->mem);

	return *at = json_object();
}

static void
push(json_t *array, json_t *item)
{
	if (json_is_array(item) || json_is_object(item))
		json_array_append(array, item);
	else
		json_array_append_new(array, item);
}

static void
set(json_t *object, const char *key, json_t *item)
{
	if (json_is_array(item) || json_is_object(item))
		json_object_set(object, key, item);
	else
		json_object_set_new(object, key, item);
}

static json_t *
dims_of(struct writer *w, const om_shape *s)
{
	json_t *all = list(w);

	for (int k = 0; k < s->rank; k++)
		push(all, s->dim[k] >= 0 ? number(w, (uint64_t)s->dim[k]) : json_null());
	return all;
}

static json_t *
inputs(struct writer *w)
{
	const om_block *g = w->p->first;
	json_t *all = object(w);

	for (uint32_t k = 0; k < g->nparam; k++) {
		const om_value *v = g->param[k];
		if (v->type.kind != OM_TENSOR || v->shape.rank == OM_RANK_UNKNOWN)
			continue;
		const om_shape shape = om_input_shape(w->p, k);
		json_t *dims = dims_of(w, &shape);
		if (json_object_set(all, v->name, dims) != 0)
			w->bad = v->name;
	}
	return all;
}

static void
add_symbols(struct writer *w, json_t *all, const om_shape *s)
{
	for (int d = 0; d < s->rank; d++) {
		if (s->dim[d] < 0 || !s->sym[d] || json_object_get(all, s->sym[d]))
			continue;
		if (json_object_set_new(all, s->sym[d], number(w, (uint64_t)s->dim[d])) != 0)
			w->bad = s->sym[d];
	}
}

/* Symbols that are bound to a number, in order of appearance; those of caches with spare rows last. */
static json_t *
symbols(struct writer *w)
{
	json_t *all = object(w);

	for (uint32_t k = 0; k < w->p->nvalue; k++)
		add_symbols(w, all, &w->p->values[k]->shape);
	for (uint32_t k = 0; k < w->p->nio_alias; k++) {
		const om_shape shape = om_input_shape(w->p, w->p->io_alias[k].param);
		add_symbols(w, all, &shape);
	}
	return all;
}

/* Type, shape and elements, in hexadecimal, of inputs that are constants. */
static json_t *
values(struct writer *w)
{
	json_t *all = object(w);

	for (uint32_t k = 0; k < w->p->first->nparam; k++) {
		const om_value *v = w->p->first->param[k];
		uint64_t bytes = 0;
		if (!om_input_is_fixed(v))
			continue;
		om_tensor_bytes(v->data->type, &v->data->shape, &bytes);
		w->has_large_value |= bytes > OM_MOST_FIXED_BYTES;
		if (w->has_large_value)
			break;
		json_t *one = object(w);
		char *hex = OM_NEWN(w->mem, char, 2 * bytes + 1);
		om_hex_write(v->data->data, (size_t)bytes, hex);
		set(one, "type", json_string(om_dtype_text(v->data->type)));
		set(one, "shape", dims_of(w, &v->data->shape));
		set(one, "elements", json_string(hex));
		set(all, v->name, one);
	}
	return all;
}

/* The arena of each value that was pinned to one. */
static json_t *
pins(struct writer *w)
{
	json_t *all = object(w);

	for (uint32_t k = 0; k < w->plan->npin; k++)
		set(all, w->plan->pin[k].value, name(w, w->plan->pin[k].arena));
	return all;
}

/* Inputs that outputs replace in the next run, by output. */
static json_t *
states(struct writer *w)
{
	json_t *all = object(w);

	for (uint32_t k = 0; k < w->p->nio_alias; k++) {
		const om_io_alias *a = &w->p->io_alias[k];
		set(all, w->p->first->result[a->result]->name, name(w, w->p->first->param[a->param]->name));
	}
	return all;
}

/* Dims of the model that are defined by others. */
static json_t *
definitions(struct writer *w)
{
	json_t *all = object(w);

	for (size_t k = 0; k < w->p->ndim_definition; k++)
		set(all, w->p->dim_definition[k].symbol, name(w, w->p->dim_definition[k].as));
	return all;
}

static json_t *
ranges(struct writer *w)
{
	json_t *all = object(w);

	for (uint32_t k = 0; k < w->plan->nrange; k++) {
		const om_dim_range *r = &w->plan->range[k];
		json_t *ends = list(w);
		push(ends, number(w, (uint64_t)r->low));
		push(ends, number(w, (uint64_t)r->high));
		if (om_dim_range_step(r) > 1)
			push(ends, number(w, (uint64_t)r->step));
		set(all, r->symbol, ends);
	}
	return all;
}

/* The bytes of each arena in each piece of the ranges; of pieces with bounds, at most. */
static json_t *
formulas(struct writer *w)
{
	const char *symbol[OM_FORMULA_SYMBOLS] = {"", "", "", ""};
	const om_formulas *f = w->plan->formulas;
	json_t *all = list(w);

	for (uint32_t d = 0; d < w->plan->nrange && d < OM_FORMULA_SYMBOLS; d++)
		symbol[d] = om_symbol_text(w->mem, w->plan->range[d].symbol);
	for (uint32_t k = 0; k < f->npiece; k++) {
		json_t *one = object(w), *part = object(w), *arenas = list(w);
		for (uint32_t d = 0; d < w->plan->nrange; d++) {
			json_t *ends = list(w);
			push(ends, number(w, (uint64_t)f->piece[k].low[d]));
			push(ends, number(w, (uint64_t)f->piece[k].high[d]));
			if (om_dim_range_step(&w->plan->range[d]) > 1)
				push(ends, number(w, (uint64_t)w->plan->range[d].step));
			set(part, w->plan->range[d].symbol, ends);
		}
		for (uint32_t a = 0; a < w->plan->narena; a++)
			push(arenas, name(w, om_formula_text(w->mem, &f->piece[k].arena[a], symbol, NULL)));
		set(one, "ranges", part);
		set(one, f->piece[k].least ? "at_most" : "bytes", arenas);
		push(all, one);
	}
	return all;
}

static json_t *
arena(struct writer *w, uint32_t k)
{
	const om_plan_arena *a = &w->plan->arena[k];
	const om_block *g = w->p->first;
	json_t *j = object(w);

	set(j, "id", number(w, k));
	set(j, "name", name(w, a->name));
	set(j, "device", name(w, a->device));
	set(j, "bytes", number(w, a->bytes));
	set(j, "align", number(w, a->align));
	if (a->limit)
		set(j, "limit", number(w, a->limit));
	set(j, "naive", number(w, a->naive));
	set(j, "lower_bound", number(w, a->lower_bound));
	if (a->order_bound)
		set(j, "order_bound", number(w, a->order_bound));
	set(j, "bound_at", name(w, om_printf(w->mem, "#%u", index_of(w->ops[g->id], g, a->bound_step))));
	set(j, "bound_step", number(w, a->bound_step));
	set(j, "status", name(w, om_plan_arena_status(a)));
	if (a->is_limited)
		set(j, "search_limited", json_true());
	return j;
}

static json_t *
arenas(struct writer *w)
{
	json_t *all = list(w);

	for (uint32_t k = 0; k < w->plan->narena; k++)
		push(all, arena(w, k));
	return all;
}

static void
row(struct writer *w, json_t *rows, const om_value *v)
{
	const om_placement *at = v ? &w->plan->place[v->id] : NULL;

	if (!at || at->where != OM_IN_ARENA)
		return;
	const om_span s = om_span_of(w->ops[v->block->id], v, at);
	json_t *j = list(w);
	om_steps range;

	push(j, name(w, v->name));
	push(j, number(w, at->arena));
	push(j, number(w, at->offset));
	push(j, number(w, at->bytes));
	push(j, number(w, s.first));
	push(j, number(w, s.last));
	for (uint32_t k = 0; !s.is_exact && om_live_interval_range(&at->live, k, &range); k++) {
		push(j, number(w, range.first));
		push(j, number(w, range.last));
	}
	push(rows, j);
}

/* ---- The order. ---- */

struct by_node {
	const void *node;
	om_op *op;
};

static int
by_address(const void *a, const void *b)
{
	const struct by_node *x = a, *y = b;
	return ((uintptr_t)x->node > (uintptr_t)y->node) - ((uintptr_t)x->node < (uintptr_t)y->node);
}

om_op **
om_ops_by_node(const om_block *b, om_arena *mem)
{
	const Onnx__GraphProto *g = b->origin;
	struct by_node *all = OM_NEWN(mem, struct by_node, b->nop);
	om_op **of = OM_NEWN(mem, om_op *, (g ? g->n_node : 0) + 1);
	uint32_t n = 0;

	for (om_op *op = b->first; op; op = op->next)
		all[n++] = (struct by_node){op->origin, op};
	qsort(all, n, sizeof *all, by_address);
	for (size_t k = 0; g && n && k < g->n_node; k++) {
		const struct by_node key = {g->node[k], NULL};
		const struct by_node *found = bsearch(&key, all, n, sizeof *all, by_address);
		of[k] = found ? found->op : NULL;
	}
	return of;
}

/* Are the nodes in the order of the ops?  Nodes without an op and ops without a node are
 * ignored: they require an update of the model, which writes nodes in program order. */
static bool
is_in_file_order(const struct writer *w, const om_block *b)
{
	const Onnx__GraphProto *g = b->origin;
	om_op **op = om_ops_by_node(b, w->mem);
	uint32_t least = 0;

	for (size_t k = 0; g && k < g->n_node; k++) {
		if (op[k] && op[k]->index < least)
			return false;
		least = op[k] ? op[k]->index : least;
	}
	return true;
}

/* The node indices in execution order. */
static json_t *
node_list(struct writer *w, const om_block *b)
{
	const Onnx__GraphProto *g = b->origin;
	om_op **op = om_ops_by_node(b, w->mem);
	size_t *place = OM_NEWN(w->mem, size_t, b->nop), n = 0;
	json_t *all = list(w);

	for (size_t k = 0; g && k < g->n_node; k++)
		if (op[k]) {
			place[op[k]->index] = k;
			n++;
		}
	w->has_other_nodes |= !g || n != g->n_node || n != b->nop;
	for (uint32_t k = 0; k < b->nop; k++)
		push(all, number(w, place[k]));
	return all;
}

/* The ops in execution order, by their ranks in the order of creation. */
static json_t *
rank_list(struct writer *w, const om_block *b)
{
	om_op **op = om_ops_by_creation(b, w->mem);
	uint32_t *rank = OM_NEWN(w->mem, uint32_t, b->nop);
	json_t *all = list(w);

	for (uint32_t k = 0; k < b->nop; k++)
		rank[op[k]->index] = k;
	for (uint32_t k = 0; k < b->nop; k++)
		push(all, number(w, rank[k]));
	return all;
}

/* "file", or the node list of the main graph; a body whose file order differs from its
 * execution order has a list in its scope. */
static json_t *
order(struct writer *w)
{
	if (w->is_lowered)
		return rank_list(w, w->p->first);
	for (const om_block *b = w->p->first; b; b = b->next)
		if (om_block_inside(b, w->p->first) && !is_in_file_order(w, b))
			return node_list(w, w->p->first);
	return json_string("file");
}

static void scope(struct writer *w, json_t *scopes, const om_block *b);

static void
scope_rows(struct writer *w, json_t *rows, const om_block *b)
{
	for (uint32_t k = 0; k < b->nparam; k++)
		row(w, rows, b->param[k]);
	for (const om_op *op = b->first; op; op = op->next)
		for (uint32_t k = 0; k < op->nout; k++)
			row(w, rows, op->out[k]);
}

/* The name of a value of `b` or of an enclosing scope; qualified with the path of its scope if
 * another value shadows the name. */
static json_t *
seen_name(struct writer *w, const om_block *b, const om_value *v)
{
	while (b != v->block && !om_map_get(&w->values[b->id], v->name) && b->owner)
		b = b->owner->block;
	if (b == v->block)
		return name(w, v->name);
	json_t *j = list(w);
	push(j, name(w, v->block->path));
	push(j, name(w, v->name));
	return j;
}

/* A region: an offset into arena 0, or an object. */
static json_t *
region(struct writer *w, const om_block *b, const om_region *r)
{
	json_t *j;

	if (r->base == OM_NO_VALUE && r->arena == 0)
		return number(w, r->offset);
	j = object(w);
	if (r->base == OM_NO_VALUE)
		set(j, "arena", number(w, r->arena));
	else
		set(j, "in", seen_name(w, b, w->p->values[r->base]));
	set(j, "at", number(w, r->offset));
	return j;
}

static json_t *
regions(struct writer *w, const om_block *b, const om_region *r, uint32_t n)
{
	json_t *all = list(w);

	for (uint32_t k = 0; k < n; k++)
		push(all, region(w, b, &r[k]));
	return all;
}

static json_t *
view(struct writer *w, const om_plan_multi_view *v)
{
	const om_block *b = w->p->values[v->value]->block;
	json_t *j = object(w);

	set(j, "v", name(w, w->p->values[v->value]->name));
	if (v->is_output)
		set(j, "output", json_true());
	set(j, "period", number(w, v->period));
	set(j, "off", regions(w, b, v->off, v->period));
	if (v->nprologue)
		set(j, "first", v->nprologue == 1 ? region(w, b, v->first) : regions(w, b, v->first, v->nprologue));
	if (v->stride)
		set(j, "stride", json_integer(v->stride));
	return j;
}

static void
views(struct writer *w, json_t *scope, const om_block *b)
{
	json_t *all = NULL;

	for (uint32_t k = w->view[b->id]; k; k = w->next_view[k - 1]) {
		if (!all)
			set(scope, "views", all = list(w));
		push(all, view(w, &w->plan->view[k - 1]));
	}
}

static void
list_views(struct writer *w)
{
	w->view = OM_NEWN(w->mem, uint32_t, w->p->nblock);
	w->next_view = OM_NEWN(w->mem, uint32_t, w->plan->nview);
	for (uint32_t k = w->plan->nview; k > 0; k--) {
		uint32_t *first = &w->view[w->p->values[w->plan->view[k - 1].value]->block->id];
		w->next_view[k - 1] = *first;
		*first = k;
	}
}

/* Scopes in execution order, each before the scopes nested in it. */
static void
scope(struct writer *w, json_t *scopes, const om_block *b)
{
	json_t *j = object(w), *rows = list(w);

	set(j, "path", name(w, b->path));
	if (b->owner)
		set(j, "at", number(w, b->owner->index));
	if (b->owner && w->is_lowered)
		set(j, "order", rank_list(w, b));
	else if (b->owner && !is_in_file_order(w, b))
		set(j, "order", node_list(w, b));
	scope_rows(w, rows, b);
	set(j, "v", rows);
	views(w, j, b);
	push(scopes, j);
	for (const om_op *op = b->first; op; op = op->next)
		for (uint32_t k = 0; k < op->nbody; k++)
			scope(w, scopes, op->body[k]);
}

static const char *const alias_names[] = {
	[OM_ALIAS_VIEW] = "view", [OM_ALIAS_INPLACE] = "inplace",
	[OM_ALIAS_DONATE] = "donate", [OM_ALIAS_IO] = "io_alias", [OM_ALIAS_SUBBUFFER] = "view",
	[OM_ALIAS_CONSUME] = "consume",
};

const char *
om_alias_text(om_alias_kind kind)
{
	return alias_names[kind];
}

bool
om_alias_find(const char *text, om_alias_kind *kind)
{
	for (unsigned k = 0; k < sizeof alias_names / sizeof alias_names[0]; k++)
		if (strcmp(text, alias_names[k]) == 0) {
			*kind = (om_alias_kind)k;
			return true;
		}
	return false;
}

static json_t *
aliases(struct writer *w)
{
	json_t *all = list(w);

	for (uint32_t k = 0; k < w->plan->nalias; k++) {
		const om_alias *a = &w->plan->alias[k];
		const om_value *v = w->p->values[a->value];
		json_t *j = list(w);
		push(j, name(w, v->block->path));
		push(j, name(w, v->name));
		push(j, seen_name(w, v->block, w->p->values[a->source]));
		push(j, name(w, om_alias_text(a->kind)));
		push(j, number(w, a->offset));
		push(all, j);
	}
	return all;
}

static void
scratch_row(struct writer *w, json_t *all, const om_op *op, const om_scratch *s)
{
	const om_value *first = om_op_first_output(op);
	json_t *j = list(w);

	push(j, name(w, op->block->path));
	push(j, name(w, first ? first->name : ""));
	push(j, number(w, s->arena));
	push(j, number(w, s->offset));
	push(j, number(w, s->bytes));
	push(all, j);
}

static json_t *
scratch(struct writer *w)
{
	const om_op **op = OM_NEWN(w->mem, const om_op *, w->p->nop);
	json_t *all = list(w);

	for (const om_block *b = w->p->first; b; b = b->next)
		for (const om_op *o = b->first; o; o = o->next)
			op[o->id] = o;
	for (uint32_t k = 0; k < w->plan->nscratch; k++)
		scratch_row(w, all, op[w->plan->scratch[k].op], &w->plan->scratch[k]);
	return all;
}

/* The stream of each op, and the ops that it waits for, all by their first outputs. */
static json_t *
streams(struct writer *w)
{
	const om_worker_streams *s = w->plan->streams;
	const om_value **first = OM_NEWN(w->mem, const om_value *, w->p->nop);
	json_t *j = object(w), *all = list(w);

	for (const om_op *op = w->p->first->first; op; op = op->next) {
		const om_worker_op *o = &s->op[op->id];
		first[op->id] = om_op_first_output(op);
		if (op->is_folded || o->stream == OM_NO_STREAM || !first[op->id])
			continue;
		json_t *row = list(w);
		push(row, name(w, first[op->id]->name));
		push(row, number(w, o->stream));
		for (uint32_t k = 0; k < o->nwait; k++)
			push(row, name(w, first[o->wait[k]] ? first[o->wait[k]]->name : ""));
		push(all, row);
	}
	set(j, "count", number(w, s->n));
	set(j, "ops", all);
	return j;
}

static json_t *
external(struct writer *w, om_value *const *v, uint32_t n)
{
	json_t *all = list(w);

	for (uint32_t k = 0; k < n; k++)
		if (w->plan->place[v[k]->id].where == OM_EXTERNAL)
			push(all, name(w, v[k]->name));
	return all;
}

static json_t *
externals(struct writer *w)
{
	const om_block *g = w->p->first;
	json_t *j = object(w);

	set(j, "inputs", external(w, g->param, g->nparam));
	set(j, "outputs", external(w, g->result, g->nresult));
	return j;
}

static json_t *
unplanned(struct writer *w)
{
	json_t *all = list(w);

	for (uint32_t k = 0; k < w->plan->nunplanned; k++) {
		const om_unplanned *u = &w->plan->unplanned[k];
		const om_value *v = w->p->values[u->value];
		json_t *j = list(w);
		push(j, name(w, v->block->path));
		push(j, name(w, v->name));
		push(j, name(w, u->why));
		push(all, j);
	}
	return all;
}

static json_t *
limits(struct writer *w)
{
	json_t *all = list(w);

	for (uint32_t k = 0; k < w->p->nlimit; k++) {
		const om_limit *l = &w->p->limits[k];
		json_t *j = list(w);
		push(j, name(w, l->pass));
		push(j, l->option ? name(w, l->option) : json_null());
		push(j, name(w, l->what));
		push(all, j);
	}
	return all;
}

/* The consumer, and what the scratch of its kernels depends on. */
static void
add_target(struct writer *w, json_t *j)
{
	set(j, "target", json_string(om_target_text(w->plan->target)));
	if (w->plan->target == OM_TARGET_GENERIC)
		return;
	set(j, "threads", number(w, w->plan->threads));
	if (w->plan->precise)
		set(j, "precise", json_true());
}

static json_t *
lowered(struct writer *w)
{
	json_t *j = object(w);

	set(j, "passes", name(w, w->p->passes));
	set(j, "program", name(w, om_prog_digest(w->p, w->mem)));
	return j;
}

/* What operators without a definition were taken for. */
static void
add_op_rules(struct writer *w, json_t *j)
{
	json_t *all = list(w);
	const char *text;
	uint32_t nop;

	for (size_t k = 0; (text = om_prog_op_rule_text(w->p, k, &nop)); k++)
		push(all, name(w, text));
	if (json_array_size(all))
		set(j, "op_rules", all);
}

static json_t *
document(struct writer *w, const char *digest)
{
	json_t *j = object(w), *scopes = list(w), *verified = object(w);

	set(j, "schema", json_string("memplan/1"));
	set(j, "tool", json_string(PACKAGE_NAME " " PACKAGE_VERSION));
	set(j, "graph", json_string(digest));
	set(j, "inputs", inputs(w));
	set(j, "dims", symbols(w));
	if (w->p->ndim_definition)
		set(j, "definitions", definitions(w));
	if (om_prog_has_fixed_inputs(w->p))
		set(j, "values", values(w));
	if (w->p->nio_alias)
		set(j, "states", states(w));
	if (w->plan->nrange)
		set(j, "ranges", ranges(w));
	if (w->plan->formulas && w->plan->formulas->npiece && !w->plan->formulas->why_unproven)
		set(j, "formulas", formulas(w));
	add_target(w, j);
	add_op_rules(w, j);
	if (w->is_lowered)
		set(j, "lowered", lowered(w));
	set(j, "order", order(w));
	if (w->plan->streams)
		set(j, "streams", streams(w));
	else if (w->plan->parallel_safe)
		set(j, "parallel_safe", json_true());
	set(j, "strategy", name(w, w->plan->strategy ? w->plan->strategy : ""));
	set(j, "arenas", arenas(w));
	if (w->plan->npin)
		set(j, "pins", pins(w));
	list_views(w);
	scope(w, scopes, w->p->first);
	set(j, "scopes", scopes);
	set(j, "alias", aliases(w));
	set(j, "scratch", scratch(w));
	set(j, "external", externals(w));
	set(j, "unplanned", unplanned(w));
	if (w->p->nlimit)
		set(j, "limits", limits(w));
	set(verified, "by", json_string("byte-walk/1"));
	set(verified, "ok", json_true());
	set(j, "verify", verified);
	return j;
}

static om_status
write_plan(struct writer *w, const char *digest, char **out)
{
	json_t *j = document(w, digest);

	*out = w->bad || w->too_large || w->has_large_value || w->has_other_nodes ? NULL : json_dumps(j, JSON_COMPACT);
	if (w->bad)
		return om_fail(w->s, OM_INVALID, "the name %s is not UTF-8: cannot write a plan", w->bad);
	if (w->has_large_value)
		return om_fail(w->s, OM_UNSUPPORTED, "a plan cannot have inputs with a fixed value of more than %d bytes",
			OM_MOST_FIXED_BYTES);
	if (w->too_large)
		return om_fail(w->s, OM_INVALID, "the plan has a number that JSON cannot represent");
	if (w->has_other_nodes)
		return om_fail(w->s, OM_UNSUPPORTED,
			"the nodes of the plan are not those of the model: only a copy of the model can hold "
			"the plan");
	if (!*out)
		return om_fail(w->s, OM_MEMORY, "cannot allocate the text of the plan");
	return OM_OK;
}

om_status
om_plan_json_for(om_session *s, const om_prog *p, const char *digest, char **json)
{
	struct writer w = {.s = s, .p = p, .plan = p->plan};

	*json = NULL;
	if (!(p->has & OM_HAS_PLAN))
		return om_fail(s, OM_USAGE, "the program has no plan");
	w.is_lowered = om_prog_is_lowered(p);
	OM_TRY(om_plan_verify(s, p, p->plan));
	w.mem = om_arena_new();
	w.ops = om_ops_by_index(p, w.mem);
	w.values = om_values_by_name(p, w.mem);
	const om_status st = write_plan(&w, digest, json);
	om_arena_free(w.mem);
	return st;
}

static om_status
plan_json_guarded(om_session *s, const om_model *m, const om_prog *p, char **json)
{
	char digest[80];

	*json = NULL;
	OM_TRY(om_model_digest(s, m, false, digest));
	return om_plan_json_for(s, p, digest, json);
}

om_status
om_plan_json(om_session *s, const om_model *m, const om_prog *p, char **json)
{
	OM_GUARDED(s, plan_json_guarded(s, m, p, json));
}
