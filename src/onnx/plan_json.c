/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a plan as a JSON document, "memplan/1"; the format is defined in
 * docs/plan-format.md. */
#include <config.h>

#include <stdlib.h>

#include "ir/live_interval.h"
#include "base/guard.h"
#include "base/hex.h"
#include "base/map.h"
#include "ir/binding.h"
#include "ir/enum_text.h"
#include "ir/query.h"
#include "onnx/json_text.h"
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
	om_json *to;
	om_op ***ops;            /* by block id: ops by index */
	om_map *values;          /* by block id: values by name */
	uint32_t *view, *next_view; /* 1 + the first multi-view by block id, and the one after each; 0: none */
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

static void
name(struct writer *w, const char *s)
{
	om_json_string(w->to, s);
}

static void
number(struct writer *w, uint64_t n)
{
	w->too_large |= n > INT64_MAX;
	om_json_integer(w->to, (int64_t)n);
}

static void
begin(struct writer *w, const char *key, char bracket)
{
	om_json_key(w->to, key);
	om_json_open(w->to, bracket);
}

static void
set_name(struct writer *w, const char *key, const char *s)
{
	om_json_key(w->to, key);
	name(w, s);
}

static void
set_number(struct writer *w, const char *key, uint64_t n)
{
	om_json_key(w->to, key);
	number(w, n);
}

static void
set_true(struct writer *w, const char *key)
{
	om_json_key(w->to, key);
	om_json_true(w->to);
}

static void
dims_of(struct writer *w, const om_shape *s)
{
	om_json_open(w->to, '[');
	for (int k = 0; k < s->rank; k++)
		if (s->dim[k] >= 0)
			number(w, (uint64_t)s->dim[k]);
		else
			om_json_null(w->to);
	om_json_close(w->to, ']');
}

static void
inputs(struct writer *w)
{
	const om_block *g = w->p->first;

	begin(w, "inputs", '{');
	for (uint32_t k = 0; k < g->nparam; k++) {
		const om_value *v = g->param[k];
		if (v->type.kind != OM_TENSOR || v->shape.rank == OM_RANK_UNKNOWN)
			continue;
		const om_shape shape = om_input_shape(w->p, k);
		om_json_key(w->to, v->name);
		dims_of(w, &shape);
	}
	om_json_close(w->to, '}');
}

static void
add_symbols(struct writer *w, om_map *known, const om_shape *s)
{
	for (int d = 0; d < s->rank; d++) {
		if (s->dim[d] < 0 || !s->sym[d] || om_map_get(known, s->sym[d]))
			continue;
		om_map_set(known, s->sym[d], w);
		set_number(w, s->sym[d], (uint64_t)s->dim[d]);
	}
}

/* Symbols that are bound to a number, in order of appearance; those of caches with spare rows last. */
static void
symbols(struct writer *w)
{
	om_map known = om_map_new(w->mem);

	begin(w, "dims", '{');
	for (uint32_t k = 0; k < w->p->nvalue; k++)
		add_symbols(w, &known, &w->p->values[k]->shape);
	for (uint32_t k = 0; k < w->p->nio_alias; k++) {
		const om_shape shape = om_input_shape(w->p, w->p->io_alias[k].param);
		add_symbols(w, &known, &shape);
	}
	om_json_close(w->to, '}');
}

/* Type, shape and elements, in hexadecimal, of inputs that are constants. */
static void
values(struct writer *w)
{
	begin(w, "values", '{');
	for (uint32_t k = 0; k < w->p->first->nparam; k++) {
		const om_value *v = w->p->first->param[k];
		uint64_t bytes = 0;
		if (!om_input_is_fixed(v))
			continue;
		om_tensor_bytes(v->data->type, &v->data->shape, &bytes);
		w->has_large_value |= bytes > OM_MOST_FIXED_BYTES;
		if (w->has_large_value)
			break;
		char *hex = OM_NEWN(w->mem, char, 2 * bytes + 1);
		om_hex_write(v->data->data, (size_t)bytes, hex);
		begin(w, v->name, '{');
		set_name(w, "type", om_dtype_text(v->data->type));
		om_json_key(w->to, "shape");
		dims_of(w, &v->data->shape);
		set_name(w, "elements", hex);
		om_json_close(w->to, '}');
	}
	om_json_close(w->to, '}');
}

/* The arena of each value that was pinned to one, maybe more than once. */
static void
pins(struct writer *w)
{
	om_map known = om_map_new(w->mem);

	begin(w, "pins", '{');
	for (uint32_t k = 0; k < w->plan->npin; k++) {
		const om_pin *pin = &w->plan->pin[k];
		if (om_map_get(&known, pin->value))
			continue;
		om_map_set(&known, pin->value, w);
		set_name(w, pin->value, pin->arena);
	}
	om_json_close(w->to, '}');
}

/* Inputs that outputs replace in the next run, by output. */
static void
states(struct writer *w)
{
	begin(w, "states", '{');
	for (uint32_t k = 0; k < w->p->nio_alias; k++) {
		const om_io_alias *a = &w->p->io_alias[k];
		set_name(w, w->p->first->result[a->result]->name, w->p->first->param[a->param]->name);
	}
	om_json_close(w->to, '}');
}

/* Dims of the model that are defined by others. */
static void
definitions(struct writer *w)
{
	begin(w, "definitions", '{');
	for (size_t k = 0; k < w->p->ndim_definition; k++)
		set_name(w, w->p->dim_definition[k].symbol, w->p->dim_definition[k].as);
	om_json_close(w->to, '}');
}

static void
ends_of(struct writer *w, const om_dim_range *r, int64_t low, int64_t high)
{
	begin(w, r->symbol, '[');
	number(w, (uint64_t)low);
	number(w, (uint64_t)high);
	if (om_dim_range_step(r) > 1)
		number(w, (uint64_t)r->step);
	om_json_close(w->to, ']');
}

static void
ranges(struct writer *w)
{
	begin(w, "ranges", '{');
	for (uint32_t k = 0; k < w->plan->nrange; k++)
		ends_of(w, &w->plan->range[k], w->plan->range[k].low, w->plan->range[k].high);
	om_json_close(w->to, '}');
}

/* The bytes of each arena in each piece of the ranges; of pieces with bounds, at most. */
static void
formulas(struct writer *w)
{
	const char *symbol[OM_FORMULA_SYMBOLS] = {"", "", "", ""};
	const om_formulas *f = w->plan->formulas;

	for (uint32_t d = 0; d < w->plan->nrange && d < OM_FORMULA_SYMBOLS; d++)
		symbol[d] = om_symbol_text(w->mem, w->plan->range[d].symbol);
	begin(w, "formulas", '[');
	for (uint32_t k = 0; k < f->npiece; k++) {
		om_json_open(w->to, '{');
		begin(w, "ranges", '{');
		for (uint32_t d = 0; d < w->plan->nrange; d++)
			ends_of(w, &w->plan->range[d], f->piece[k].low[d], f->piece[k].high[d]);
		om_json_close(w->to, '}');
		begin(w, f->piece[k].least ? "at_most" : "bytes", '[');
		for (uint32_t a = 0; a < w->plan->narena; a++)
			name(w, om_formula_text(w->mem, &f->piece[k].arena[a], symbol, NULL));
		om_json_close(w->to, ']');
		om_json_close(w->to, '}');
	}
	om_json_close(w->to, ']');
}

static void
arena(struct writer *w, uint32_t k)
{
	const om_plan_arena *a = &w->plan->arena[k];
	const om_block *g = w->p->first;

	om_json_open(w->to, '{');
	set_number(w, "id", k);
	set_name(w, "name", a->name);
	set_name(w, "device", a->device);
	set_number(w, "bytes", a->bytes);
	set_number(w, "align", a->align);
	if (a->limit)
		set_number(w, "limit", a->limit);
	set_number(w, "naive", a->naive);
	set_number(w, "lower_bound", a->lower_bound);
	if (a->order_bound)
		set_number(w, "order_bound", a->order_bound);
	set_name(w, "bound_at", om_printf(w->mem, "#%u", index_of(w->ops[g->id], g, a->bound_step)));
	set_number(w, "bound_step", a->bound_step);
	set_name(w, "status", om_plan_arena_status(a));
	if (a->is_limited)
		set_true(w, "search_limited");
	om_json_close(w->to, '}');
}

static void
arenas(struct writer *w)
{
	begin(w, "arenas", '[');
	for (uint32_t k = 0; k < w->plan->narena; k++)
		arena(w, k);
	om_json_close(w->to, ']');
}

static void
row(struct writer *w, const om_value *v)
{
	const om_placement *at = v ? &w->plan->place[v->id] : NULL;

	if (!at || at->where != OM_IN_ARENA)
		return;
	const om_span s = om_span_of(w->ops[v->block->id], v, at);
	om_steps range;

	om_json_open(w->to, '[');
	name(w, v->name);
	number(w, at->arena);
	number(w, at->offset);
	number(w, at->bytes);
	number(w, s.first);
	number(w, s.last);
	for (uint32_t k = 0; !s.is_exact && om_live_interval_range(&at->live, k, &range); k++) {
		number(w, range.first);
		number(w, range.last);
	}
	om_json_close(w->to, ']');
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
static void
node_list(struct writer *w, const om_block *b)
{
	const Onnx__GraphProto *g = b->origin;
	om_op **op = om_ops_by_node(b, w->mem);
	size_t *place = OM_NEWN(w->mem, size_t, b->nop), n = 0;

	for (size_t k = 0; g && k < g->n_node; k++)
		if (op[k]) {
			place[op[k]->index] = k;
			n++;
		}
	w->has_other_nodes |= !g || n != g->n_node || n != b->nop;
	begin(w, "order", '[');
	for (uint32_t k = 0; k < b->nop; k++)
		number(w, place[k]);
	om_json_close(w->to, ']');
}

/* The ops in execution order, by their ranks in the order of creation. */
static void
rank_list(struct writer *w, const om_block *b)
{
	om_op **op = om_ops_by_creation(b, w->mem);
	uint32_t *rank = OM_NEWN(w->mem, uint32_t, b->nop);

	for (uint32_t k = 0; k < b->nop; k++)
		rank[op[k]->index] = k;
	begin(w, "order", '[');
	for (uint32_t k = 0; k < b->nop; k++)
		number(w, rank[k]);
	om_json_close(w->to, ']');
}

/* "file", or the node list of the main graph; a body whose file order differs from its
 * execution order has a list in its scope. */
static void
order(struct writer *w)
{
	if (w->is_lowered) {
		rank_list(w, w->p->first);
		return;
	}
	for (const om_block *b = w->p->first; b; b = b->next)
		if (om_block_inside(b, w->p->first) && !is_in_file_order(w, b)) {
			node_list(w, w->p->first);
			return;
		}
	set_name(w, "order", "file");
}

static void
scope_rows(struct writer *w, const om_block *b)
{
	begin(w, "v", '[');
	for (uint32_t k = 0; k < b->nparam; k++)
		row(w, b->param[k]);
	for (const om_op *op = b->first; op; op = op->next)
		for (uint32_t k = 0; k < op->nout; k++)
			row(w, op->out[k]);
	om_json_close(w->to, ']');
}

/* The name of a value of `b` or of an enclosing scope; qualified with the path of its scope if
 * another value shadows the name. */
static void
seen_name(struct writer *w, const om_block *b, const om_value *v)
{
	while (b != v->block && !om_map_get(&w->values[b->id], v->name) && b->owner)
		b = b->owner->block;
	if (b == v->block) {
		name(w, v->name);
		return;
	}
	om_json_open(w->to, '[');
	name(w, v->block->path);
	name(w, v->name);
	om_json_close(w->to, ']');
}

/* A region: an offset into arena 0, or an object. */
static void
region(struct writer *w, const om_block *b, const om_region *r)
{
	if (r->base == OM_NO_VALUE && r->arena == 0) {
		number(w, r->offset);
		return;
	}
	om_json_open(w->to, '{');
	if (r->base == OM_NO_VALUE) {
		set_number(w, "arena", r->arena);
	} else {
		om_json_key(w->to, "in");
		seen_name(w, b, w->p->values[r->base]);
	}
	set_number(w, "at", r->offset);
	om_json_close(w->to, '}');
}

static void
regions(struct writer *w, const char *key, const om_block *b, const om_region *r, uint32_t n)
{
	begin(w, key, '[');
	for (uint32_t k = 0; k < n; k++)
		region(w, b, &r[k]);
	om_json_close(w->to, ']');
}

static void
view(struct writer *w, const om_plan_multi_view *v)
{
	const om_block *b = w->p->values[v->value]->block;

	om_json_open(w->to, '{');
	set_name(w, "v", w->p->values[v->value]->name);
	if (v->is_output)
		set_true(w, "output");
	set_number(w, "period", v->period);
	regions(w, "off", b, v->off, v->period);
	if (v->nprologue == 1) {
		om_json_key(w->to, "first");
		region(w, b, v->first);
	} else if (v->nprologue) {
		regions(w, "first", b, v->first, v->nprologue);
	}
	if (v->stride) {
		om_json_key(w->to, "stride");
		om_json_integer(w->to, v->stride);
	}
	om_json_close(w->to, '}');
}

static void
views(struct writer *w, const om_block *b)
{
	if (!w->view[b->id])
		return;
	begin(w, "views", '[');
	for (uint32_t k = w->view[b->id]; k; k = w->next_view[k - 1])
		view(w, &w->plan->view[k - 1]);
	om_json_close(w->to, ']');
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
scope(struct writer *w, const om_block *b)
{
	om_json_open(w->to, '{');
	set_name(w, "path", b->path);
	if (b->owner)
		set_number(w, "at", b->owner->index);
	if (b->owner && w->is_lowered)
		rank_list(w, b);
	else if (b->owner && !is_in_file_order(w, b))
		node_list(w, b);
	scope_rows(w, b);
	views(w, b);
	om_json_close(w->to, '}');
	for (const om_op *op = b->first; op; op = op->next)
		for (uint32_t k = 0; k < op->nbody; k++)
			scope(w, op->body[k]);
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

static void
aliases(struct writer *w)
{
	begin(w, "alias", '[');
	for (uint32_t k = 0; k < w->plan->nalias; k++) {
		const om_alias *a = &w->plan->alias[k];
		const om_value *v = w->p->values[a->value];
		om_json_open(w->to, '[');
		name(w, v->block->path);
		name(w, v->name);
		seen_name(w, v->block, w->p->values[a->source]);
		name(w, om_alias_text(a->kind));
		number(w, a->offset);
		om_json_close(w->to, ']');
	}
	om_json_close(w->to, ']');
}

static void
scratch_row(struct writer *w, const om_op *op, const om_scratch *s)
{
	const om_value *first = om_op_first_output(op);

	om_json_open(w->to, '[');
	name(w, op->block->path);
	name(w, first ? first->name : "");
	number(w, s->arena);
	number(w, s->offset);
	number(w, s->bytes);
	om_json_close(w->to, ']');
}

static void
scratch(struct writer *w)
{
	const om_op **op = OM_NEWN(w->mem, const om_op *, w->p->nop);

	for (const om_block *b = w->p->first; b; b = b->next)
		for (const om_op *o = b->first; o; o = o->next)
			op[o->id] = o;
	begin(w, "scratch", '[');
	for (uint32_t k = 0; k < w->plan->nscratch; k++)
		scratch_row(w, op[w->plan->scratch[k].op], &w->plan->scratch[k]);
	om_json_close(w->to, ']');
}

/* The stream of each op, and the ops that it waits for, all by their first outputs. */
static void
streams(struct writer *w)
{
	const om_worker_streams *s = w->plan->streams;
	const om_value **first = OM_NEWN(w->mem, const om_value *, w->p->nop);

	begin(w, "streams", '{');
	set_number(w, "count", s->n);
	begin(w, "ops", '[');
	for (const om_op *op = w->p->first->first; op; op = op->next) {
		const om_worker_op *o = &s->op[op->id];
		first[op->id] = om_op_first_output(op);
		if (op->is_folded || o->stream == OM_NO_STREAM || !first[op->id])
			continue;
		om_json_open(w->to, '[');
		name(w, first[op->id]->name);
		number(w, o->stream);
		for (uint32_t k = 0; k < o->nwait; k++)
			name(w, first[o->wait[k]] ? first[o->wait[k]]->name : "");
		om_json_close(w->to, ']');
	}
	om_json_close(w->to, ']');
	om_json_close(w->to, '}');
}

static void
external(struct writer *w, const char *key, om_value *const *v, uint32_t n)
{
	begin(w, key, '[');
	for (uint32_t k = 0; k < n; k++)
		if (w->plan->place[v[k]->id].where == OM_EXTERNAL)
			name(w, v[k]->name);
	om_json_close(w->to, ']');
}

static void
externals(struct writer *w)
{
	const om_block *g = w->p->first;

	begin(w, "external", '{');
	external(w, "inputs", g->param, g->nparam);
	external(w, "outputs", g->result, g->nresult);
	om_json_close(w->to, '}');
}

static void
unplanned(struct writer *w)
{
	begin(w, "unplanned", '[');
	for (uint32_t k = 0; k < w->plan->nunplanned; k++) {
		const om_unplanned *u = &w->plan->unplanned[k];
		const om_value *v = w->p->values[u->value];
		om_json_open(w->to, '[');
		name(w, v->block->path);
		name(w, v->name);
		name(w, u->why);
		om_json_close(w->to, ']');
	}
	om_json_close(w->to, ']');
}

static void
limits(struct writer *w)
{
	begin(w, "limits", '[');
	for (uint32_t k = 0; k < w->p->nlimit; k++) {
		const om_limit *l = &w->p->limits[k];
		om_json_open(w->to, '[');
		name(w, l->pass);
		if (l->option)
			name(w, l->option);
		else
			om_json_null(w->to);
		name(w, l->what);
		om_json_close(w->to, ']');
	}
	om_json_close(w->to, ']');
}

/* The consumer, and what the scratch of its kernels depends on. */
static void
add_target(struct writer *w)
{
	set_name(w, "target", om_target_text(w->plan->target));
	if (w->plan->target == OM_TARGET_GENERIC)
		return;
	set_number(w, "threads", w->plan->threads);
	if (w->plan->precise)
		set_true(w, "precise");
}

static void
lowered(struct writer *w)
{
	begin(w, "lowered", '{');
	set_name(w, "passes", w->p->passes);
	set_name(w, "program", om_prog_digest(w->p, w->mem));
	om_json_close(w->to, '}');
}

/* What operators without a definition were taken for. */
static void
add_op_rules(struct writer *w)
{
	const char *text;
	uint32_t nop;

	if (!om_prog_op_rule_text(w->p, 0, &nop))
		return;
	begin(w, "op_rules", '[');
	for (size_t k = 0; (text = om_prog_op_rule_text(w->p, k, &nop)); k++)
		name(w, text);
	om_json_close(w->to, ']');
}

static void
verified(struct writer *w)
{
	begin(w, "verify", '{');
	set_name(w, "by", "byte-walk/1");
	set_true(w, "ok");
	om_json_close(w->to, '}');
}

static void
document(struct writer *w, const char *digest)
{
	om_json_open(w->to, '{');
	set_name(w, "schema", "memplan/1");
	set_name(w, "tool", PACKAGE_NAME " " PACKAGE_VERSION);
	set_name(w, "graph", digest);
	inputs(w);
	symbols(w);
	if (w->p->ndim_definition)
		definitions(w);
	if (om_prog_has_fixed_inputs(w->p))
		values(w);
	if (w->p->nio_alias)
		states(w);
	if (w->plan->nrange)
		ranges(w);
	if (w->plan->formulas && w->plan->formulas->npiece && !w->plan->formulas->why_unproven)
		formulas(w);
	add_target(w);
	add_op_rules(w);
	if (w->is_lowered)
		lowered(w);
	order(w);
	if (w->plan->streams)
		streams(w);
	else if (w->plan->parallel_safe)
		set_true(w, "parallel_safe");
	set_name(w, "strategy", w->plan->strategy ? w->plan->strategy : "");
	arenas(w);
	if (w->plan->npin)
		pins(w);
	list_views(w);
	begin(w, "scopes", '[');
	scope(w, w->p->first);
	om_json_close(w->to, ']');
	aliases(w);
	scratch(w);
	externals(w);
	unplanned(w);
	if (w->p->nlimit)
		limits(w);
	verified(w);
	om_json_close(w->to, '}');
}

static om_status
write_plan(struct writer *w, const char *digest, char **out)
{
	document(w, digest);
	if (w->to->bad)
		return om_fail(w->s, OM_INVALID, "the name %s is not UTF-8: cannot write a plan", w->to->bad);
	if (w->has_large_value)
		return om_fail(w->s, OM_UNSUPPORTED, "a plan cannot have inputs with a fixed value of more than %d bytes",
			OM_MOST_FIXED_BYTES);
	if (w->too_large)
		return om_fail(w->s, OM_INVALID, "the plan has a number that JSON cannot represent");
	if (w->has_other_nodes)
		return om_fail(w->s, OM_UNSUPPORTED,
			"the nodes of the plan are not those of the model: only a copy of the model can hold "
			"the plan");
	*out = om_json_take(w->to);
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
	w.to = om_json_new(w.mem);
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
