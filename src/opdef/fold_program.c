/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding of a whole program. */
#include <config.h>

#include "base/arena_internal.h"
#include "base/guard.h"
#include "base/shape.h"
#include "ir/type.h"
#include "opdef/fold.h"
#include "opdef/op_context.h"
#include "onnxmem/opdef.h"

static bool
is_foldable(const om_op *op)
{
	if (!op->opdef || op->opdef->control != OM_PLAIN || op->opdef->flags & (OM_RANDOM | OM_EFFECT))
		return false;
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && !op->in[k]->is_const)
			return false;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && op->out[k]->type.kind != OM_TENSOR)
			return false;
	return true;
}

/* Computed during shape inference, from inputs that are not constants but have known shapes. */
static bool
is_known(const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && !op->out[k]->data)
			return false;
	return true;
}

struct folding {
	om_session *session;
	om_prog *p;
	om_fold_limits limits;
	om_fold_counts counts;
	bool *is_new;            /* by value id: more is known than shape inference knew */
	uint32_t nvalue, nnew;
};

/* What inference of the users of a value depends on. */
struct known {
	om_type type;
	om_shape shape;
	bool has_data, has_elem;
};

static struct known
known_of(const om_value *v)
{
	return (struct known){v->type, v->shape, v->data != NULL, v->elem != NULL};
}

static struct known *
list_known(om_arena *mem, const om_op *op)
{
	struct known *list = OM_NEWN(mem, struct known, op->nout);

	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			list[k] = known_of(op->out[k]);
	return list;
}

static void
mark_new(struct folding *f, const om_op *op, const struct known *before)
{
	for (uint32_t k = 0; k < op->nout; k++) {
		const om_value *v = op->out[k];
		if (!v || v->id >= f->nvalue || f->is_new[v->id])
			continue;
		const struct known now = known_of(v);
		f->is_new[v->id] = now.has_data != before[k].has_data || now.has_elem != before[k].has_elem
			|| !om_type_equal(&now.type, &before[k].type) || !om_shape_equal(&now.shape, &before[k].shape);
		f->nnew += f->is_new[v->id];
	}
}

/* Bodies may read any value. */
static bool
reads_new(const struct folding *f, const om_op *op)
{
	bool yes = op->nbody && f->nnew;

	for (uint32_t k = 0; k < op->nin; k++)
		yes |= op->in[k] && op->in[k]->id < f->nvalue && f->is_new[op->in[k]->id];
	return yes;
}

static om_status
fold_op(struct folding *f, om_op *op)
{
	bool is_costly = false;

	op->is_folded = is_foldable(op) || is_known(op);
	if (!op->is_folded)
		return OM_OK;
	if (!is_known(op))
		OM_TRY(om_op_fold(f->session, f->p, op, &f->limits, &is_costly));
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			op->out[k]->is_const = true;
	++*(is_known(op) ? &f->counts.computed : &f->counts.left);
	f->counts.costly += is_costly;
	return OM_OK;
}

/* Values that were computed here may decide the shapes of others, which are inferred again. */
static om_status
fold_block(struct folding *f, om_block *b)
{
	om_arena *mem = om_arena_new();
	om_status st = OM_OK;

	for (om_op *op = b->first; op && st == OM_OK; op = op->next) {
		const struct known *before = list_known(mem, op);
		for (uint32_t k = 0; k < op->nbody && st == OM_OK; k++)
			st = fold_block(f, op->body[k]);
		if (st == OM_OK && reads_new(f, op))
			st = om_op_infer(f->session, f->p, op);
		if (st == OM_OK)
			st = fold_op(f, op);
		mark_new(f, op, before);
		om_arena_clear(mem);
	}
	om_arena_free(mem);
	return st;
}

static om_status
prog_fold_guarded(om_session *s, om_prog *p, om_fold_limits limits, om_fold_counts *counts)
{
	om_arena *mem = om_arena_new();
	struct folding f = {.session = s, .p = p, .limits = limits, .nvalue = p->nvalue,
		.is_new = OM_NEWN(mem, bool, p->nvalue)};
	om_status st = OM_OK;

	for (om_block *b = p->first; b && st == OM_OK; b = b->next)
		if (!b->owner)
			st = fold_block(&f, b);
	*counts = f.counts;
	om_arena_free(mem);
	return st;
}

om_status
om_prog_fold(om_session *s, om_prog *p, om_fold_limits limits, om_fold_counts *counts)
{
	OM_GUARDED(s, prog_fold_guarded(s, p, limits, counts));
}
