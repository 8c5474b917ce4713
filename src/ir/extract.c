/* SPDX-License-Identifier: Apache-2.0 */
/* Reduces a program to a range of its ops: a part that runs alone. */
#include <config.h>

#include <inttypes.h>

#include "base/arena_internal.h"
#include "base/guard.h"
#include "ir/edit.h"
#include "ir/facts.h"
#include "ir/query.h"
#include "onnxmem/split.h"

struct values {
	om_value **v;
	size_t n, cap;
};

struct extract {
	om_session *s;
	om_prog *p;
	om_block *b;             /* the graph */
	om_arena *tmp;
	om_op **op;              /* the ops of the graph that run */
	uint32_t first, end;     /* the part is [first, end) of them */
	bool *is_inside;         /* by op id: belongs to the part */
	bool *is_kept;           /* by op id: belongs to the part, or is folded, and the part reads its outputs */
	bool *is_input;          /* by value id: the part reads it, and does not compute it */
	struct values inputs, results;
};

/* ---- What goes in. ---- */

static om_status read_op(struct extract *x, const om_op *op);

/* Large constants are computed before the run, by the ops that make them. */
static om_status
read_constant(struct extract *x, const om_value *v)
{
	if (!v->def || v->data || x->is_kept[v->def->id])
		return OM_OK;
	x->is_kept[v->def->id] = true;
	return read_op(x, v->def);
}

static om_status
read_value(struct extract *x, om_value *v)
{
	if (!v || v->block != x->b || x->is_input[v->id] || (v->def && x->is_inside[v->def->id]))
		return OM_OK;
	if (v->is_const)
		return read_constant(x, v);
	x->is_input[v->id] = true;
	if (!v->def)  /* listed in the order of the graph */
		return OM_OK;
	if (v->type.kind == OM_TENSOR && v->type.elem == OM_UNDEFINED)
		return om_fail(x->s, OM_UNSUPPORTED, "%s would go from one part to another, but its type is not known", v->name);
	OM_PUSH(x->tmp, x->inputs.v, x->inputs.n, x->inputs.cap, v);
	return OM_OK;
}

static om_status
read_op(struct extract *x, const om_op *op)
{
	for (uint32_t k = 0; k < op->nin; k++)
		OM_TRY(read_value(x, op->in[k]));
	for (uint32_t k = 0; k < op->nbody; k++) {
		const om_block *body = op->body[k];
		for (const om_op *inner = body->first; inner; inner = inner->next)
			OM_TRY(read_op(x, inner));
		for (uint32_t i = 0; i < body->nresult; i++)
			OM_TRY(read_value(x, body->result[i]));
	}
	return OM_OK;
}

/* ---- What goes out. ---- */

/* Do other ops read `v`, without it being a result? */
static bool
goes_on(const struct extract *x, const om_value *v)
{
	bool is_read = false;

	for (const om_use *u = v->first_use; u; u = u->next) {
		const om_op *op = om_use_op_in(x->b, u);
		if (!op)
			return false;
		is_read |= !op->is_folded && !x->is_inside[op->id];
	}
	return is_read;
}

/* A result that no op computes stays with the first part. */
static bool
is_given_back(const struct extract *x, const om_value *v)
{
	return v->def && !v->is_const ? x->is_inside[v->def->id] : x->first == 0;
}

static void
find_results(struct extract *x)
{
	struct values *r = &x->results;

	for (uint32_t k = x->first; k < x->end; k++)
		for (uint32_t i = 0; i < x->op[k]->nout; i++)
			if (x->op[k]->out[i] && goes_on(x, x->op[k]->out[i]))
				OM_PUSH(x->tmp, r->v, r->n, r->cap, x->op[k]->out[i]);
	for (uint32_t k = 0; k < x->b->nresult; k++)
		if (is_given_back(x, x->b->result[k])) {
			OM_PUSH(x->tmp, r->v, r->n, r->cap, x->b->result[k]);
			x->is_input[x->b->result[k]->id] = true;
		}
}

/* Constants among the results. */
static om_status
read_results(struct extract *x)
{
	for (size_t k = 0; k < x->results.n; k++)
		if (x->results.v[k]->is_const)
			OM_TRY(read_constant(x, x->results.v[k]));
	return OM_OK;
}

/* ---- The change. ---- */

static void
remove_ops(struct extract *x)
{
	for (om_op *op = x->b->last, *prev; op; op = prev) {
		prev = op->prev;
		if (!x->is_kept[op->id])
			om_op_remove(op);
	}
}

static void
set_inputs(struct extract *x)
{
	om_value **all = x->b->param;
	const uint32_t n = x->b->nparam;

	x->b->param = NULL;
	x->b->nparam = 0;
	for (uint32_t k = 0; k < n; k++)
		if (x->is_input[all[k]->id])
			om_block_add_param(x->b, all[k]);
	for (size_t k = 0; k < x->inputs.n; k++)
		om_block_add_param(x->b, x->inputs.v[k]);
}

static uint32_t
place_of(om_value *const *list, uint32_t n, const om_value *v)
{
	uint32_t k = 0;

	while (k < n && list[k] != v)
		k++;
	return k;
}

/* A state stays one if the part reads it and computes the next one. */
static void
set_results(struct extract *x)
{
	om_block *b = x->b;
	om_value *const *result = b->result, *const *param = b->param;
	const om_io_alias *alias = x->p->io_alias;
	const uint32_t n = x->p->nio_alias;

	om_prog_clear_ties(x->p);
	om_block_clear_results(b);
	remove_ops(x);
	set_inputs(x);
	for (size_t k = 0; k < x->results.n; k++)
		om_block_add_result(b, x->results.v[k]);
	for (uint32_t k = 0; k < n; k++)
		om_prog_alias_io(x->p, place_of(b->result, b->nresult, result[alias[k].result]),
			place_of(b->param, b->nparam, param[alias[k].param]));
	b->is_other = true;
}

static om_status
prog_extract_guarded(om_session *s, om_prog *p, uint32_t first, uint32_t nop)
{
	om_arena *tmp = om_arena_new();
	struct extract x = {.s = s, .p = p, .b = p->first, .tmp = tmp, .first = first, .end = first + nop};
	om_status st = OM_OK;
	uint32_t n;

	x.op = om_block_run_ops(p->first, tmp, &n);
	if (nop == 0 || first >= n || nop > n - first) {
		om_arena_free(tmp);
		return om_fail(s, OM_USAGE, "a part of %" PRIu32 " ops from %" PRIu32 ", but %" PRIu32 " run", nop, first, n);
	}
	x.is_inside = OM_NEWN(tmp, bool, p->nop);
	x.is_kept = OM_NEWN(tmp, bool, p->nop);
	x.is_input = OM_NEWN(tmp, bool, p->nvalue);
	for (uint32_t k = first; k < x.end; k++)
		x.is_inside[x.op[k]->id] = x.is_kept[x.op[k]->id] = true;
	for (uint32_t k = first; k < x.end && !st; k++)
		st = read_op(&x, x.op[k]);
	if (!st) {
		find_results(&x);
		st = read_results(&x);
	}
	if (!st) {
		set_results(&x);
		om_facts_set(p, OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST, 0);
	}
	om_arena_free(tmp);
	return st;
}

om_status
om_prog_extract(om_session *s, om_prog *p, uint32_t first, uint32_t nop)
{
	OM_GUARDED(s, prog_extract_guarded(s, p, first, nop));
}
