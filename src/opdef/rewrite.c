/* SPDX-License-Identifier: Apache-2.0 */
/* Rewriting: a matcher, and a driver with a worklist.
 *
 * The worklist is a queue that initially contains all ops in program order, and contains an op at most
 * once.  An application enqueues every op that may match now: the new ops, the readers of the replaced
 * value and, for each removed op, the ops that compute its inputs and those that still read them,
 * because these values may have a single use now.
 *
 * Termination: an op is visited again only after an application.  Applications that reduce the number
 * of ops are bounded by the initial number of ops plus the ops that other applications create; the
 * others are limited by a budget.
 */
#include <config.h>

#include <string.h>

#include "ir/edit.h"
#include "base/arena_internal.h"
#include "opdef/rewrite_internal.h"
#include "ir/steps.h"
#include "opdef/fold.h"
#include "opdef/op_context.h"
#include "onnxmem/rewrite.h"

struct om_rewriter {
	om_session *session;
	om_prog *p;
	om_arena *mem;
	const om_rule *rule;
	size_t nrule;
	uint64_t *applied;
	om_op **queue;           /* pending entries start at `first` */
	size_t first, n, cap;
	bool *is_queued;         /* by op id */
	size_t capqueued;
	size_t nlive;            /* number of ops in blocks */
	size_t budget;           /* remaining applications that do not reduce the number of ops */
	om_op *root, *at;        /* root of the match; insertion point of new ops */
	om_op **made;            /* ops created by the current application */
	size_t nmade, capmade;
	bool changed;
	om_status status;
};

/* ---- The worklist. ---- */

static void
push(om_rewriter *w, om_op *op)
{
	if (!op || !op->block)
		return;
	while (op->id >= w->capqueued)
		w->is_queued = om_grow(w->mem, w->is_queued, sizeof *w->is_queued, w->capqueued, &w->capqueued);
	if (w->is_queued[op->id])
		return;
	w->is_queued[op->id] = true;
	OM_PUSH(w->mem, w->queue, w->n, w->cap, op);
}

static void
push_readers(om_rewriter *w, const om_value *v)
{
	for (const om_use *u = v->first_use; u; u = u->next)
		push(w, u->op);
}

static void
push_block(om_rewriter *w, const om_block *b)
{
	for (om_op *op = b->first; op; op = op->next) {
		push(w, op);
		w->nlive++;
		for (uint32_t k = 0; k < op->nbody; k++)
			push_block(w, op->body[k]);
	}
}

/* ---- Matching. ---- */

static bool match(const om_pattern *t, om_value *v, om_match *m, const om_op *root);

static bool
match_inputs(const om_pattern *t, const om_op *op, om_match *m, const om_op *root, bool swap)
{
	for (uint32_t k = 0; k < OM_MATCH_INPUTS; k++) {
		const uint32_t from = swap && k < 2 ? 1 - k : k;
		if (t->in[k] && (from >= op->nin || !op->in[from] || !match(t->in[k], op->in[from], m, root)))
			return false;
	}
	return true;
}

static bool
is_operator(const om_pattern *t, const om_op *op)
{
	if (!op->opdef || op->call || *op->overload)
		return false;
	if (t->type && (strcmp(op->type, t->type) != 0 || strcmp(op->domain, t->domain ? t->domain : "") != 0))
		return false;
	return op->version >= t->since && (t->until == 0 || op->version <= t->until);
}

static bool
match_op(const om_pattern *t, const om_value *v, om_match *m, const om_op *root)
{
	const om_op *op = v->def;
	const om_match before = *m;

	if (!op || op->block != root->block || !is_operator(t, op) || t->out >= op->nout || op->out[t->out] != v)
		return false;
	if (match_inputs(t, op, m, root, false))
		return true;
	*m = before;
	return t->flags & OM_MATCH_SWAP && op->nin > 1 && match_inputs(t, op, m, root, true);
}

static bool
is_known_const(const om_value *v)
{
	return v->data && v->data->data && !v->is_overridable && v->type.kind == OM_TENSOR;
}

static bool
match(const om_pattern *t, om_value *v, om_match *m, const om_op *root)
{
	om_value **slot = &m->value[t->slot];

	if (*slot && *slot != v)
		return false;
	if (t->flags & OM_MATCH_ONCE && (v->nuse != 1 || !v->first_use->op))
		return false;
	if (t->kind == OM_MATCH_CONST && !is_known_const(v))
		return false;
	if (t->kind == OM_MATCH_OP && !match_op(t, v, m, root))
		return false;
	*slot = v;
	return !t->holds || t->holds(m, v);
}

/* ---- Replacing. ---- */

bool
om_value_is_result(const om_value *v)
{
	for (const om_use *u = v->first_use; u; u = u->next)
		if (u->block)
			return true;
	return false;
}

bool
om_value_enters_body(const om_value *v)
{
	for (const om_use *u = v->first_use; u; u = u->next)
		if (u->op && u->op->nbody)
			return true;
	return false;
}

bool
om_value_can_stand_for(const om_value *by, const om_value *old)
{
	if (by == old)
		return false;
	return !om_value_is_result(old) || (by->def && by->def->nbody == 0 && by->block == old->block && !om_value_is_result(by));
}

static om_value **
output_of(const om_value *v)
{
	uint32_t k = 0;

	while (v->def->out[k] != v)
		k++;
	return &v->def->out[k];
}

/* The op that computes `by` computes `old` from now on. */
static void
take_place(om_value *by, om_value *old)
{
	*output_of(old) = NULL;
	*output_of(by) = old;
	old->def = by->def;
	by->def = NULL;
	if (by->data)
		old->data = by->data;
	old->is_const = by->is_const;
	by->data = NULL;
	om_value_replace(by, old);
}

void
om_value_stand_for(om_value *by, om_value *old)
{
	if (om_value_is_result(old))
		take_place(by, old);
	else
		om_value_replace(old, by);
}

bool
om_op_is_dead(const om_op *op)
{
	if (!op->block || !op->opdef || op->opdef->flags & OM_EFFECT || op->nbody)
		return false;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && op->out[k]->nuse)
			return false;
	return true;
}

void
om_op_delete(om_op *op)
{
	om_op_remove(op);
	for (uint32_t k = 0; k < op->nbody; k++)
		om_block_remove(op->body[k]);
}

/* From the last to the first: an op may be read by a later one alone. */
void
om_block_delete_dead(om_block *b)
{
	for (om_op *op = b->last, *before; op; op = before) {
		before = op->prev;
		for (uint32_t k = 0; k < op->nbody; k++)
			om_block_delete_dead(op->body[k]);
		if (om_op_is_dead(op))
			om_op_delete(op);
	}
}

/* Remove an op without uses, and the ops that become unused by that. */
static void
delete_dead(om_rewriter *w, om_op *op)
{
	om_op **stack = NULL;
	size_t n = 0, cap = 0;

	OM_PUSH(w->mem, stack, n, cap, op);
	while (n) {
		op = stack[--n];
		if (!om_op_is_dead(op))
			continue;
		om_op_delete(op);
		w->nlive--;
		for (uint32_t k = 0; k < op->nin; k++) {
			if (!op->in[k])
				continue;
			push(w, op->in[k]->def);
			push_readers(w, op->in[k]);
			if (op->in[k]->def)
				OM_PUSH(w->mem, stack, n, cap, op->in[k]->def);
		}
	}
}

/* ---- Building. ---- */

om_prog *
om_rewrite_prog(const om_rewriter *w)
{
	return w->p;
}

om_arena *
om_rewrite_mem(const om_rewriter *w)
{
	return w->mem;
}

void
om_rewrite_at(om_rewriter *w, om_op *op)
{
	w->at = op;
}

/* A new op of `op`'s operator, before the place where new ops go. */
static om_value *
insert_made(om_rewriter *w, om_op *op, const om_op *like, uint32_t n, om_value *const *in)
{
	om_value *v = om_value_fresh(w->p, w->at->block, om_printf(w->mem, "%s_fused", om_op_label(like)));

	op->phase = like->phase;
	for (uint32_t k = 0; k < n; k++)
		om_op_set_in(op, k, in[k]);
	om_op_set_out(op, 0, v);
	om_op_insert(w->at, op);
	w->nlive++;
	OM_PUSH(w->mem, w->made, w->nmade, w->capmade, op);
	return v;
}

om_value *
om_rewrite_op(om_rewriter *w, const om_op *like, const char *type, uint32_t n, om_value *const *in)
{
	om_op *op = om_op_new(w->p, like->domain, type ? type : like->type, like->version, n, 1);

	if (!type) {
		op->name = like->name;
		for (uint32_t k = 0; k < like->nattr; k++)
			om_op_add_attr(w->p, op, &like->attr[k]);
	}
	return insert_made(w, op, like, n, in);
}

om_value *
om_rewrite_op_of(om_rewriter *w, const om_op *like, const char *domain, const char *type, int version, uint32_t n,
	om_value *const *in)
{
	return insert_made(w, om_op_new(w->p, domain, type, version, n, 1), like, n, in);
}

om_value *
om_rewrite_const(om_rewriter *w, const char *stem, const om_tensor *t)
{
	om_tensor *copy = om_memdup(w->p->mem, t, sizeof *t);
	uint64_t bytes = 0;

	if (t->splat)
		bytes = (om_dtype_bits(t->type) + 7) / 8;
	else
		om_tensor_bytes(t->type, &t->shape, &bytes);
	copy->data = bytes ? om_memdup(w->p->mem, t->data, bytes) : om_alloc(w->p->mem, 1);
	om_value *v = om_value_fresh(w->p, w->root->block, stem);
	v->type.elem = t->type;
	v->shape = t->shape;
	v->data = copy;
	v->is_const = v->is_declared = true;
	return v;
}

om_value *
om_rewrite_ints(om_rewriter *w, const char *stem, size_t n, const int64_t *v)
{
	const int64_t dim = (int64_t)n;
	const om_tensor t = {.type = OM_INT64, .shape = om_shape_of(1, &dim), .data = (void *)v};

	return om_rewrite_const(w, stem, &t);
}

/* ---- The driver. ---- */

static void
infer_made(om_rewriter *w)
{
	for (size_t k = 0; k < w->nmade && w->status == OM_OK; k++) {
		w->status = om_op_infer(w->session, w->p, w->made[k]);
		if (w->status == OM_OK)
			w->status = om_op_fold_shape_arithmetic(w->session, w->p, w->made[k]);
	}
}

static void
abandon_made(om_rewriter *w)
{
	while (w->nmade) {
		om_op *op = w->made[--w->nmade];
		om_op_delete(op);
		w->nlive--;
	}
}

static bool
is_made(const om_rewriter *w, const om_value *v)
{
	for (size_t k = 0; k < w->nmade; k++)
		if (v->def == w->made[k])
			return true;
	return false;
}

/* A new value takes the name of the value that it replaces, and its declared type and shape. */
static void
put_in_place(om_rewriter *w, om_value *by, om_value *old)
{
	om_op *root = w->root;

	if (is_made(w, by))
		take_place(by, old);
	else
		om_value_stand_for(by, old);
	if (old->def != root)  /* `old` was moved to the op of `by` */
		by = old;
	for (size_t k = 0; k < w->nmade; k++)
		push(w, w->made[k]);
	push_readers(w, by);
	push(w, by->def);
	delete_dead(w, root);
	for (size_t k = 0; k < w->nmade; k++)
		delete_dead(w, w->made[k]);
}

static bool
apply(om_rewriter *w, const om_rule *rule, om_match *m)
{
	const size_t before = w->nlive;
	om_value *old = m->value[0];

	w->nmade = 0;
	w->at = w->root;
	om_value *by = rule->build(w, m);
	infer_made(w);
	if (!by || w->status != OM_OK || !om_value_can_stand_for(by, old)) {
		abandon_made(w);
		return false;
	}
	put_in_place(w, by, old);
	w->changed = true;
	if (w->nlive >= before)
		w->budget--;
	if (w->applied)
		w->applied[rule - w->rule]++;
	return true;
}

static bool
apply_first(om_rewriter *w, om_op *op)
{
	for (size_t k = 0; k < w->nrule && w->status == OM_OK && w->budget; k++) {
		const om_pattern *root = w->rule[k].root;
		om_match m = {0};
		if (root->out >= op->nout || !op->out[root->out] || !match(root, op->out[root->out], &m, op))
			continue;
		w->root = op;
		if (apply(w, &w->rule[k], &m))
			return true;
	}
	return false;
}

static void
run(om_rewriter *w)
{
	while (w->first < w->n && w->status == OM_OK && w->budget) {
		om_op *op = w->queue[w->first++];
		w->is_queued[op->id] = false;
		if (op->block && apply_first(w, op))
			push(w, op);
	}
}

om_status
om_rewrite(om_session *s, om_prog *p, const om_rule *rule, size_t n, uint64_t *applied)
{
	om_rewriter w = {.session = s, .p = p, .mem = om_arena_new(), .rule = rule, .nrule = n, .applied = applied};

	for (size_t k = 0; applied && k < n; k++)
		applied[k] = 0;
	push_block(&w, p->first);
	w.budget = w.nlive + 64;
	run(&w);
	if (w.changed)
		p->has &= OM_HAS_INLINE | OM_HAS_SHAPES;
	om_arena_free(w.mem);
	return w.status;
}
