/* Plans: what packed buffers say about every value. */
#include <config.h>

#include "onnxmem/op.h"
#include "onnxmem/plan.h"

om_plan *
om_plan_empty(om_prog *p)
{
	om_plan *plan = OM_NEW(p->mem, om_plan);

	plan->mem = p->mem;
	plan->strategy = "";
	plan->arena = OM_NEW(p->mem, om_plan_arena);
	plan->place = OM_NEWN(p->mem, om_place, p->nvalue);
	plan->alias = OM_NEWN(p->mem, om_alias, p->nvalue);
	plan->scratch = OM_NEWN(p->mem, om_scratch, p->nop);
	plan->unplanned = OM_NEWN(p->mem, om_unplanned, p->nvalue);
	plan->nplace = p->nvalue;
	p->plan = plan;
	return plan;
}

struct writer {
	om_prog *p;
	om_plan *plan;
	const om_buffers *b;
	bool has_store;
};

/* A value without a buffer.  What lies in a weight or in the caller's memory
 * is where its root is. */
static void
place_outside(struct writer *w, om_value *v, om_place *at)
{
	uint64_t offset = 0, bytes;
	const om_value *root = w->has_store ? om_storage(v, &offset) : v;
	const char *why = om_value_unplanned(w->p, v);

	if (!why)
		why = om_value_unplanned(w->p, root);
	if (why) {
		at->where = OM_UNPLANNED;
		w->plan->unplanned[w->plan->nunplanned++] = (om_unplanned){v->id, why};
		return;
	}
	at->where = root->is_const || (!root->def && root->block != w->p->first)
		? OM_WEIGHT : OM_EXTERNAL;
	at->offset = offset;
	if (om_tensor_bytes(v->type.elem, &v->shape, &bytes))
		at->bytes = bytes;
}

static void
place_value(struct writer *w, om_value *v)
{
	static const om_alias_kind kinds[] = {
		[OM_VIEW] = OM_ALIAS_VIEW, [OM_INPLACE] = OM_ALIAS_INPLACE, [OM_TIE] = OM_ALIAS_TIE,
		[OM_PART] = OM_ALIAS_PART,
	};
	const uint64_t align = w->p->align;
	om_place *at = &w->plan->place[v->id];
	const uint32_t n = w->b->of_value[v->id];
	uint64_t bytes;

	at->first = v->first;
	at->last = v->last;
	if (n == UINT32_MAX) {
		place_outside(w, v, at);
	} else {
		om_tensor_bytes(v->type.elem, &v->shape, &bytes);
		const bool inside = w->has_store && v->source;
		at->where = OM_IN_ARENA;
		at->offset = w->b->buf[n].offset + w->b->offset[v->id];
		at->bytes = inside ? bytes : (bytes + align - 1) & ~(align - 1);
	}
	if (w->has_store && v->source && at->where != OM_UNPLANNED)
		w->plan->alias[w->plan->nalias++] =
			(om_alias){kinds[v->store], v->id, v->source->id, v->offset};
}

static void
place_scratch(struct writer *w, const om_op *op)
{
	const uint32_t n = w->b->of_op[op->id];

	if (n != UINT32_MAX)
		w->plan->scratch[w->plan->nscratch++] =
			(om_scratch){op->id, 0, w->b->buf[n].offset, w->b->buf[n].bytes};
}

static void
place_block(struct writer *w, const om_block *b)
{
	for (uint32_t k = 0; k < b->nparam; k++)
		place_value(w, b->param[k]);
	for (const om_op *op = b->first; op; op = op->next) {
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k])
				place_value(w, op->out[k]);
		place_scratch(w, op);
		for (uint32_t k = 0; k < op->nbody; k++)
			place_block(w, op->body[k]);
	}
}

/* Constants have a place of their own kind wherever they are defined. */
static void
place_weights(struct writer *w)
{
	for (uint32_t k = 0; k < w->p->nvalue; k++) {
		const om_value *v = w->p->values[k];
		om_place *at = &w->plan->place[k];
		if (at->where != OM_NOWHERE || !v->is_const || (v->def && !v->def->block))
			continue;
		at->where = OM_WEIGHT;
		if (!om_tensor_bytes(v->type.elem, &v->shape, &at->bytes))
			at->bytes = 0;
	}
}

void
om_plan_new(om_prog *p, const om_buffers *b, const om_pack_result *r, const char *strategy)
{
	struct writer w = {.p = p, .plan = om_plan_empty(p), .b = b,
		.has_store = p->has & (OM_HAS_VIEWS | OM_HAS_STORE)};

	w.plan->strategy = om_strdup(p->mem, strategy);
	w.plan->narena = 1;
	*w.plan->arena = (om_plan_arena){.name = "arena", .device = "cpu", .bytes = r->height,
		.align = p->align, .naive = b->naive, .lower_bound = r->lower_bound,
		.bound_step = r->bound_step, .status = r->status};
	place_block(&w, p->first);
	place_weights(&w);
}
