/* SPDX-License-Identifier: Apache-2.0 */
/* Building the ops of the bands: a step of om_tile_code becomes one op, or a few.
 *
 * New ops go before the last op of the region that runs in bands, which all constants of the region precede; then the
 * ops that ran in bands are removed, and each result is defined by the op that completes it. */
#include <config.h>

#include <stdlib.h>

#include "base/fast_hash.h"
#include "base/shape.h"
#include "ir/query.h"
#include "lower/tile/tile_internal.h"
#include "opdef/op_context.h"

#define NONE OM_TILE_NONE

/* A constant, so that equal ones are stored once. */
struct constant {
	om_value *of;             /* the constant that it is a part of; NULL: a list of integers */
	om_part part;
	size_t n;
	const int64_t *list;
	om_value *made;
	struct constant *next;
};

struct maker {
	om_session *session;
	om_prog *p;
	om_arena *mem;
	struct constant *constant;
	om_op *at;                /* new ops go before it */
	uint32_t region;          /* number, from 1 */
	om_value **made;          /* by piece */
};

/* ---- Constants. ---- */

/* Integers, as a list or, with `rank` 2, as a column. */
static om_value *
integers(struct maker *m, const char *name, int rank, size_t n, const int64_t *list)
{
	for (struct constant *k = m->constant; k; k = k->next)
		if (!k->of && k->made->shape.rank == rank && k->n == n && memcmp(k->list, list, n * sizeof *list) == 0)
			return k->made;
	struct constant *k = OM_NEW(m->mem, struct constant);
	const int64_t dim[] = {(int64_t)n, 1};
	om_tensor t = {.type = OM_INT64, .shape = om_shape_of(rank, dim)};
	t.data = om_memdup(m->p->mem, list, n * sizeof *list);
	*k = (struct constant){.n = n, .list = t.data, .next = m->constant};
	om_value *v = om_value_fresh(m->p, m->p->first, name);
	v->type.elem = OM_INT64;
	v->shape = t.shape;
	v->data = om_memdup(m->p->mem, &t, sizeof t);
	v->is_const = v->is_declared = true;
	k->made = v;
	m->constant = k;
	return v;
}

static om_value *
ints(struct maker *m, const char *name, size_t n, const int64_t *list)
{
	return integers(m, name, 1, n, list);
}

static om_status
part_of_constant(struct maker *m, om_value *v, om_part part, om_value **made)
{
	for (struct constant *k = m->constant; k; k = k->next)
		if (k->of == v && k->part.axis == part.axis && k->part.lo == part.lo && k->part.hi == part.hi) {
			*made = k->made;
			return OM_OK;
		}
	struct constant *k = OM_NEW(m->mem, struct constant);
	OM_TRY(om_slice_value(m->session, m->p, v, part, m->at, made));
	*k = (struct constant){.of = v, .part = part, .made = *made, .next = m->constant};
	m->constant = k;
	return OM_OK;
}

/* ---- Ops. ---- */

static om_status
add_op(struct maker *m, const char *type, const char *stem, uint32_t n, om_value *const *in, const om_attr *attr, om_value **made)
{
	om_op *op = om_op_new(m->p, "", type, 0, n, 1);

	for (uint32_t k = 0; k < n; k++)
		om_op_set_in(op, k, in[k]);
	if (attr)
		om_op_add_attr(m->p, op, attr);
	om_op_set_out(op, 0, om_value_fresh(m->p, m->p->first, stem));
	om_op_insert(m->at, op);
	OM_TRY(om_op_infer(m->session, m->p, op));
	*made = op->out[0];
	return OM_OK;
}

static om_status
reshape(struct maker *m, om_value *v, int rank, const int64_t *dim, om_value **made)
{
	om_value *const in[] = {v, ints(m, "shape", (size_t)rank, dim)};

	return add_op(m, "Reshape", v->name, 2, in, NULL, made);
}

/* Starts and ends are inputs from version 10 on. */
static om_status
cut(struct maker *m, om_value *v, om_part part, om_value **made)
{
	if (om_opset_version(m->p, "") < 10)
		return om_slice_value(m->session, m->p, v, part, m->at, made);
	om_value *const in[] = {v, ints(m, "start", 1, &part.lo), ints(m, "end", 1, &part.hi),
		ints(m, "axis", 1, (const int64_t[]){part.axis})};
	return add_op(m, "Slice", v->name, 4, in, NULL, made);
}

static om_status
make_cut(struct maker *m, const om_tile_code *c, const om_tile_step *step)
{
	const om_tile_piece *from = &c->piece[step->in[0]];
	const int64_t base = from->part.axis == OM_WHOLE ? 0 : from->part.lo;
	const om_part part = {step->part.axis, step->part.lo - base, step->part.hi - base};

	return cut(m, m->made[step->in[0]], part, &m->made[step->out[0]]);
}

static om_status
make_concat(struct maker *m, const om_tile_code *c, const om_tile_step *step)
{
	const om_attr axis = OM_MAKE_INT("axis", step->part.axis);
	om_value **in = OM_NEWN(m->mem, om_value *, step->nin);

	for (uint32_t k = 0; k < step->nin; k++)
		in[k] = m->made[step->in[k]];
	return add_op(m, "Concat", c->piece[step->out[0]].of->name, step->nin, in, &axis, &m->made[step->out[0]]);
}

/* ---- Parts that are written into the whole. ---- */

/* The value as rows along the axis of the part: the axes before it and the axis itself become one. */
static om_status
as_rows(struct maker *m, om_value *v, int axis, om_value **made)
{
	const int64_t dim[] = {om_shape_span(&v->shape, 0, axis + 1), om_shape_span(&v->shape, axis + 1, v->shape.rank)};

	return reshape(m, v, 2, dim, made);
}

static om_value *
row_numbers(struct maker *m, const om_shape *whole, om_part part)
{
	const int64_t outer = om_shape_span(whole, 0, part.axis), n = part.hi - part.lo;
	int64_t *list = OM_NEWN(m->mem, int64_t, (size_t)(outer * n));

	for (int64_t k = 0; k < outer; k++)
		for (int64_t i = 0; i < n; i++)
			list[k * n + i] = k * whole->dim[part.axis] + part.lo + i;
	return integers(m, "rows", 2, (size_t)(outer * n), list);
}

static om_status
make_first(struct maker *m, const om_value *whole, om_part part, om_value *v, om_value **made)
{
	int64_t pads[2 * OM_MAX_RANK] = {0};

	pads[whole->shape.rank + part.axis] = whole->shape.dim[part.axis] - part.hi;
	om_value *const in[] = {v, ints(m, "pads", 2 * (size_t)whole->shape.rank, pads)};
	OM_TRY(add_op(m, "Pad", v->name, 2, in, NULL, &v));
	return as_rows(m, v, part.axis, made);
}

static om_status
make_place(struct maker *m, const om_tile_code *c, const om_tile_step *step)
{
	const om_value *whole = c->piece[step->out[0]].of;
	om_value **made = &m->made[step->out[0]], *rows;

	if (step->kind == OM_TILE_PLACE_FIRST)
		return make_first(m, whole, step->part, m->made[step->in[0]], made);
	OM_TRY(as_rows(m, m->made[step->in[1]], step->part.axis, &rows));
	om_value *const in[] = {m->made[step->in[0]], row_numbers(m, &whole->shape, step->part), rows};
	OM_TRY(add_op(m, "ScatterND", whole->name, 3, in, NULL, made));
	return step->part.hi == whole->shape.dim[step->part.axis]
		? reshape(m, *made, whole->shape.rank, whole->shape.dim, made) : OM_OK;
}

/* ---- Parts of ops. ---- */

static om_status
inputs_of(struct maker *m, const om_tile_step *step, const om_slice *s, om_value **in)
{
	for (uint32_t k = 0; k < step->nin; k++) {
		om_value *v = step->op->in[k];
		in[k] = step->in[k] != NONE ? m->made[step->in[k]] : NULL;
		if (in[k] || !v || (s->in[k].axis != OM_WHOLE && s->in[k].lo == s->in[k].hi))
			continue;
		OM_TRY(part_of_constant(m, v, s->in[k], &in[k]));
	}
	return OM_OK;
}

static om_status
make_part(struct maker *m, const om_tile_step *step)
{
	om_value **in = OM_NEWN(m->mem, om_value *, step->nin), **out = OM_NEWN(m->mem, om_value *, step->nout);
	om_slice s;

	if (!om_tile_part(m->mem, step->rule, step->part.lo, step->part.hi, &s))
		return om_op_fail(m->session, OM_IR, step->op, "a part of it is not possible any more");
	OM_TRY(inputs_of(m, step, &s, in));
	if (step->kind == OM_TILE_PARTIAL)
		OM_TRY(om_partial_op(m->session, m->p, step->op, step->rule->index, step->part, in, m->at, out));
	else
		OM_TRY(om_slice_op(m->session, m->p, step->op, step->rule->index, step->part, in, m->at, out));
	for (uint32_t k = 0; k < step->nout; k++)
		if (step->out[k] != NONE)
			m->made[step->out[k]] = out[k];
	return OM_OK;
}

static om_status
make_sum(struct maker *m, const om_tile_step *step)
{
	om_value **made = &m->made[step->out[0]];
	om_slice s;

	if (!om_tile_part(m->mem, step->rule, 0, step->rule->length, &s))
		return om_op_fail(m->session, OM_IR, step->op, "a part of it is not possible any more");
	if (step->kind == OM_TILE_COMBINE)
		return om_partial_combine(m->session, m->p, step->op, &s, m->made[step->in[0]], m->made[step->in[1]], m->at, made);
	return om_partial_finish(m->session, m->p, step->op, &s, m->made[step->in[0]], m->at, made);
}

/* An op that runs before the bands moves there. */
static void
move(struct maker *m, const om_tile_step *step)
{
	om_op *op = (om_op *)step->op;

	om_op_remove(op);
	om_op_insert(m->at, op);
	op->region = m->region;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k]) {
			op->out[k]->def = op;
			if (step->out[k] != NONE)
				m->made[step->out[k]] = op->out[k];
		}
}

static om_status
make_step(struct maker *m, const om_tile_code *c, const om_tile_step *step)
{
	switch (step->kind) {
	case OM_TILE_OP:
		move(m, step);
		return OM_OK;
	case OM_TILE_PART: case OM_TILE_PARTIAL:
		return make_part(m, step);
	case OM_TILE_COMBINE: case OM_TILE_FINISH:
		return make_sum(m, step);
	case OM_TILE_CUT:
		return make_cut(m, c, step);
	case OM_TILE_CONCATENATE:
		return make_concat(m, c, step);
	default:
		return make_place(m, c, step);
	}
}

/* ---- Regions. ---- */

/* The ops that a step became say where they belong. */
static om_status
make_step_of(struct maker *m, const om_tile_code *c, const om_tile_step *step)
{
	const om_op *last = m->at->prev;

	OM_TRY(make_step(m, c, step));
	for (om_op *op = m->at->prev; op && op != last; op = op->prev) {
		op->region = m->region;
		op->band = step->band;
	}
	return OM_OK;
}

void
om_tile_take_name(om_value *v, om_value *made)
{
	om_op *op = made->def;
	uint32_t k = 0;

	while (op->out[k] != made)
		k++;
	om_value_replace(made, v);
	made->def = NULL;
	op->out[k] = NULL;
	om_op_set_out(op, k, v);
}

static bool
is_before(const om_tile_region *r, const om_op *op)
{
	for (size_t k = 0; k < r->nbefore; k++)
		if (r->before[k] == op)
			return true;
	return false;
}

static om_status
build(struct maker *m, const om_tile_region *r, const om_tile_code *c)
{
	uint32_t i = r->end - 1;

	while (is_before(r, r->g->op[i]))
		i--;
	m->at = r->g->op[i];
	m->made = OM_NEWN(m->mem, om_value *, c->npiece);
	for (size_t k = 0; k < c->npiece; k++)
		if (c->piece[k].is_outside)
			m->made[k] = (om_value *)c->piece[k].of;
	for (size_t k = 0; k < c->nstep; k++)
		OM_TRY(make_step_of(m, c, &c->step[k]));
	for (i = r->first; i < r->end; i++)
		if (!is_before(r, r->g->op[i]))
			om_op_remove(r->g->op[i]);
	for (size_t k = 0; k < r->nvalue; k++)
		if (r->value[k].is_out && !r->value[k].is_before)
			om_tile_take_name((om_value *)r->value[k].v, m->made[c->result[k]]);
	return OM_OK;
}

/* ---- Constants of shapes. ---- */

/* Does an op that does not run read a value that is computed?  It is one that reads shapes alone. */
static bool
is_shape_op(const om_op *op)
{
	bool reads = false;

	if (!op->is_folded || op->nbody)
		return false;
	for (uint32_t k = 0; k < op->nin; k++)
		reads |= op->in[k] && !op->in[k]->is_const;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && !(op->out[k]->data && op->out[k]->data->data))
			return false;
	return reads;
}

/* Their results become constants: parts of a region that need them come before the values whose shapes they are. */
static void
remove_shape_ops(const om_prog *p)
{
	for (om_op *op = p->first->first, *next; op; op = next) {
		next = op->next;
		if (is_shape_op(op))
			om_op_remove(op);
	}
}

/* ---- Equal constants. ---- */

enum { LARGEST_MERGED = 1 << 16, SLOTS = 1 << 12 };

static uint64_t
hash_of(const om_value *v, uint64_t bytes)
{
	return om_fast_hash((uint64_t)v->type.elem, v->data->data, bytes);
}

static bool
is_equal(const om_value *a, const om_value *b, uint64_t bytes)
{
	return a->type.elem == b->type.elem && om_shape_equal(&a->shape, &b->shape) && memcmp(a->data->data, b->data->data, bytes) == 0;
}

/* Small constants that were made since there were `n` values, such as pads and axes, are stored once. */
static void
merge_constants(const om_prog *p, uint32_t n, om_arena *mem)
{
	struct slot {
		om_value *v;
		struct slot *next;
	} **slot = OM_NEWN(mem, struct slot *, SLOTS);

	for (uint32_t k = n; k < p->nvalue; k++) {
		om_value *v = p->values[k];
		uint64_t bytes;
		if (!v->is_const || v->def || !v->data || !v->data->data || v->data->splat || v->type.elem == OM_STRING
		    || !om_tensor_bytes(v->type.elem, &v->shape, &bytes) || bytes > LARGEST_MERGED)
			continue;
		struct slot **at = &slot[hash_of(v, bytes) % SLOTS];
		while (*at && !is_equal((*at)->v, v, bytes))
			at = &(*at)->next;
		if (*at) {
			om_value_replace(v, (*at)->v);
			continue;
		}
		*at = OM_NEW(mem, struct slot);
		(*at)->v = v;
	}
}

om_status
om_tile_apply(om_session *s, om_prog *p, const om_tile_request *request, const om_tile_plan *plan)
{
	om_arena *mem = om_arena_new();
	om_tile_graph *g = om_tile_graph_new(p, request, mem);
	om_tile_region *region = OM_NEWN(mem, om_tile_region, plan->n);
	om_tile_code *code = OM_NEWN(mem, om_tile_code, plan->n);
	struct maker m = {.session = s, .p = p, .mem = mem};
	const uint32_t nvalue = p->nvalue;
	om_status st = OM_OK;

	for (uint32_t k = 0; k < plan->n && st == OM_OK; k++) {
		const om_tile_choice *c = &plan->choice[k];
		if (!om_tile_region_new(g, c->first, c->end, c->axis, mem, &region[k])
		    || !om_tile_code_new(&region[k], c->bands, c->join, mem, &code[k]))
			st = om_fail(s, OM_IR, "a region of a plan for tiling is not possible in this program");
	}
	for (om_op *op = p->first->first; op; op = op->next)
		op->region = op->band = 0;
	if (st == OM_OK)
		remove_shape_ops(p);
	for (uint32_t k = 0; k < plan->n && st == OM_OK; k++) {
		m.region = k + 1;
		st = build(&m, &region[k], &code[k]);
	}
	if (st == OM_OK)
		merge_constants(p, nvalue, mem);
	om_arena_free(mem);
	return st;
}
