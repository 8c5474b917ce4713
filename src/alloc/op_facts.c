/* SPDX-License-Identifier: Apache-2.0 */
/* Queries the operator definition once for each op. */
#include <config.h>

#include "alloc/assign.h"
#include "alloc/known_sizes.h"
#include "alloc/op_facts.h"
#include "onnxmem/kernel.h"
#include "base/arena_internal.h"
#include "base/sizes.h"
#include "opdef/kernel_call.h"
#include "opdef/max_sizes.h"
#include "opdef/op_context.h"
#include "ir/query.h"
#include "alloc/is_planned.h"

#define NONE UINT32_MAX

struct facts {
	const om_prog *p;
	om_arena *mem, *tmp;
	om_op_facts *f;
	om_op_context call;            /* of the current op */
};

/* ---- Ops. ---- */

static void
find_views(struct facts *w, const om_op *op, om_op_fact *to)
{
	om_view_of *view = OM_NEWN(w->tmp, om_view_of, op->nout);
	bool any = false;

	for (uint32_t k = 0; k < op->nout; k++) {
		const bool yes = op->out[k] && op->opdef->view(&w->call, k, &view[k]);
		if (!yes)
			view[k] = (om_view_of){.in = NONE};
		any |= yes;
	}
	if (any)
		to->view = om_memdup(w->mem, view, op->nout * sizeof *view);
}

static void
find_inplace(struct facts *w, const om_op *op, om_op_fact *to)
{
	const size_t n = (size_t)op->nin * op->nout;

	for (size_t k = 0; k < n; k++) {
		const uint32_t out = (uint32_t)(k / op->nin), in = (uint32_t)(k % op->nin);
		const om_tensor *a = &w->call.out[out], *b = &w->call.in[in];
		uint64_t made, needed;
		if (!op->out[out] || !op->in[in] || !om_tensor_bytes(a->type, &a->shape, &made)
		    || !om_tensor_bytes(b->type, &b->shape, &needed) || made != needed
		    || !om_op_context_inplace(&w->call, out, in))
			continue;
		if (!to->inplace)
			to->inplace = OM_NEWN(w->mem, uint64_t, n / 64 + 1);
		to->inplace[k / 64] |= UINT64_C(1) << k % 64;
	}
}

static void
find_subbuffers(struct facts *w, const om_op *op, om_op_fact *to)
{
	uint64_t *at = OM_NEWN(w->tmp, uint64_t, op->nin);
	bool any = false;

	for (uint32_t k = 0; k < op->nin; k++) {
		const bool yes = op->in[k] && om_op_context_subbuffer(&w->call, k, &at[k]);
		if (!yes)
			at[k] = UINT64_MAX;
		any |= yes;
	}
	if (any)
		to->subbuffer = om_memdup(w->mem, at, op->nin * sizeof *at);
}

/* A plan that serves other sizes, too, has the most scratch of any. */
static void
raise_to_request(const struct facts *w, const om_op *op, om_op_fact *to)
{
	const om_value *out = om_op_first_output(op);
	const uint64_t least = out ? om_plan_request_scratch(w->f->request, out->name) : 0;

	to->workspace = to->workspace < least ? least : to->workspace;
}

static void
find_op(struct facts *w, const om_op *op, om_op_fact *to)
{
	const om_opdef *row = op->opdef;

	if (!row || row->control != OM_PLAIN)
		return;
	om_arena_clear(w->tmp);
	const bool is_known = om_op_query(&w->call, w->tmp, op);
	if (om_op_asks_inplace(op, is_known))
		find_inplace(w, op, to);
	if (!is_known)
		return;
	if (row->view)
		find_views(w, op, to);
	if ((row->subbuffer || row->view) && op->nout && op->out[0])
		find_subbuffers(w, op, to);
	w->call.sizes_only = true;
	to->workspace = om_op_context_scratch(&w->call, w->f->request->threads, w->f->request->precise);
	raise_to_request(w, op, to);
}

/* ---- Values. ---- */

/* Marks parameters of their own blocks, and results of the graph. */
static bool *
list_ends(const struct facts *w)
{
	const om_block *graph = w->p->first;
	bool *is_listed = OM_NEWN(w->mem, bool, w->p->nvalue);

	for (const om_block *b = graph->next; b; b = b->next)
		for (uint32_t k = 0; k < b->nparam; k++)
			is_listed[b->param[k]->id] |= b->param[k]->block == b;
	for (uint32_t k = 0; k < graph->nresult; k++)
		is_listed[graph->result[k]->id] = true;
	return is_listed;
}

/* Is the input or output `v` of the graph in the arena? */
static bool
is_io_in_arena(const struct facts *w, const om_value *v)
{
	return om_plan_request_io(w->f->request, v) != OM_IO_CALLER && !v->is_overridable && !om_value_is_unplannable(v);
}

/* As om_value_is_placeless(), for a plan of the request. */
static bool
is_outside(const struct facts *w, const om_value *v, bool is_listed)
{
	const bool is_of_graph = v->block == w->p->first;

	if (v->is_const || !om_block_is_reached(w->p, v->block))
		return true;
	if (v->def && (!v->def->block || v->def->is_folded))
		return true;
	if (is_of_graph && (is_listed || !v->def))
		return !is_io_in_arena(w, v);
	return !v->def && !is_listed;
}

/* A bound that is rarely reached must not make an arena that no machine has: one of more than LEAST_LIMIT bytes, and TIMES as
 * much as the largest value of known size, is left outside. */
enum { LEAST_LIMIT = 64 << 10, TIMES = 8 };

/* Values whose size elements decide take as much as they may.  With ranges, bounds are not those of other sizes. */
static void
plan_bounds(struct facts *w)
{
	const uint64_t *most = om_planned_max_sizes_new(w->p, w->tmp);
	om_op_facts *f = w->f;
	uint64_t largest = 0;

	for (uint32_t k = 0; k < f->nvalue; k++)
		if (!w->p->values[k]->is_const && f->bytes[k] > largest)
			largest = f->bytes[k];
	const uint64_t times = om_size_product(largest, TIMES), limit = times > LEAST_LIMIT ? times : LEAST_LIMIT;
	for (uint32_t k = 0; k < f->nvalue; k++)
		if (f->is_unplanned[k] && most[k] && most[k] <= limit) {
			f->is_unplanned[k] = false;
			f->bytes[k] = most[k];
		}
}

static void
find_values(struct facts *w)
{
	const bool *is_listed = list_ends(w);
	om_op_facts *f = w->f;

	f->bytes = OM_NEWN(w->mem, uint64_t, f->nvalue);
	f->is_outside = OM_NEWN(w->mem, bool, f->nvalue);
	f->is_unplanned = OM_NEWN(w->mem, bool, f->nvalue);
	f->most = om_max_sizes_new(w->p, w->mem);
	for (uint32_t k = 0; k < f->nvalue; k++) {
		const om_value *v = w->p->values[k];
		f->bytes[k] = om_value_bytes(v);
		f->is_outside[k] = is_outside(w, v, is_listed[k]);
		f->is_unplanned[k] = !f->is_outside[k] && om_value_is_unplannable(v);
	}
	if (!f->request->ranged && !f->request->exact_sizes)
		plan_bounds(w);
}

/* ---- All. ---- */

/* Linear in the pairs of an output and an input of every op. */
static const om_op_facts *
find_facts(const om_prog *p, const om_plan_request *r, om_arena *mem)
{
	om_op_facts *f = OM_NEW(mem, om_op_facts);
	struct facts w = {.p = p, .mem = mem, .tmp = om_arena_new(), .f = f};
	om_op_fact *op = OM_NEWN(mem, om_op_fact, p->nop);

	*f = (om_op_facts){.op = op, .nop = p->nop, .nvalue = p->nvalue, .request = om_plan_request_copy(r, mem),
		.known_sizes = om_known_sizes_new(mem)};
	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *at = b->first; at; at = at->next)
			find_op(&w, at, &op[at->id]);
	find_values(&w);
	om_arena_free(w.tmp);
	return f;
}

/* Do facts agree for both requests? */
static bool
is_same_request(const om_plan_request *a, const om_plan_request *b)
{
	return a->threads == (b->threads ? b->threads : 1) && a->precise == b->precise && a->ranged == b->ranged
	    && a->exact_sizes == b->exact_sizes && om_plan_request_same_io(a, b)
	    && om_plan_request_same_scratch(a, b);
}

const om_op_facts *
om_prog_op_facts(om_prog *p, const om_plan_request *r)
{
	const om_op_facts *f = p->op_facts;

	if (!f || f->nop != p->nop || f->nvalue != p->nvalue || !is_same_request(f->request, r))
		p->op_facts = find_facts(p, r, p->mem);
	return p->op_facts;
}

bool
om_op_facts_view(const om_op_facts *f, const om_op *op, uint32_t out, om_view_of *v)
{
	const om_view_of *view = f->op[op->id].view;

	if (!view || view[out].in == NONE)
		return false;
	*v = view[out];
	return true;
}

bool
om_op_facts_inplace(const om_op_facts *f, const om_op *op, uint32_t out, uint32_t in)
{
	const uint64_t *may = f->op[op->id].inplace;
	const size_t k = (size_t)out * op->nin + in;

	return may && may[k / 64] >> k % 64 & 1;
}

om_overwrite
om_op_facts_overwrite(const om_op_facts *f, const om_op *op, uint32_t out, uint32_t in)
{
	if (om_op_facts_inplace(f, op, out, in))
		return OM_OVERWRITE_DONE;
	if (!op->opdef || !op->opdef->inplace)
		return OM_OVERWRITE_NO_RULE;
	return f->bytes[op->out[out]->id] != f->bytes[op->in[in]->id] ? OM_OVERWRITE_SIZE : OM_OVERWRITE_FORBIDDEN;
}

bool
om_op_facts_inplace_value(const om_op_facts *f, const om_op *op, uint32_t out, const om_value *in)
{
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] == in && !om_op_facts_inplace(f, op, out, k))
			return false;
	return true;
}

bool
om_op_facts_subbuffer(const om_op_facts *f, const om_op *op, uint32_t in, uint64_t *offset)
{
	const uint64_t *at = f->op[op->id].subbuffer;

	if (!at || at[in] == UINT64_MAX)
		return false;
	*offset = at[in];
	return true;
}
