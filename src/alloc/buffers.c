/* SPDX-License-Identifier: Apache-2.0 */
/* Makes buffers with lifetimes from a program with decided storage. */
#include <config.h>

#include <inttypes.h>

#include "alloc/assign.h"
#include "alloc/is_planned.h"
#include "alloc/buffers.h"
#include "alloc/byte_liveness.h"
#include "alloc/op_facts.h"
#include "base/sizes.h"
#include "ir/live_interval.h"
#include "opdef/op_rule.h"
#include "opdef/op_context.h"

#define NONE UINT32_MAX

/* ---- Planned values. ---- */

static bool
is_listed(om_value *const *list, uint32_t n, const om_value *v)
{
	for (uint32_t k = 0; k < n; k++)
		if (list[k] == v)
			return true;
	return false;
}

bool
om_value_is_placeless(const om_prog *p, const om_value *v)
{
	const om_block *b = v->block;

	if (v->is_const || !om_block_is_reached(p, b))
		return true;
	if (v->def ? !v->def->block || v->def->is_folded : b == p->first)
		return true;
	if (!v->def)
		return !is_listed(b->param, b->nparam, v);
	return b == p->first && is_listed(b->result, b->nresult, v);
}

static bool
is_tensor_without_shape(const om_value *v)
{
	return v && v->type.kind == OM_TENSOR && !om_shape_is_known(&v->shape);
}

/* The origin of an unknown shape: the first value, going back, whose operator has only inputs of known
 * shape. */
static const om_value *
origin_of_doubt(const om_value *v)
{
	for (unsigned hops = 0; hops < 1000 && v->def; hops++) {
		const om_value *from = NULL;
		const om_op *op = v->def;
		if (!op->opdef || op->opdef->flags & OM_DATA_DEPENDENT_SHAPE)
			return v;
		for (uint32_t k = 0; k < op->nin && !from; k++)
			if (is_tensor_without_shape(op->in[k]))
				from = op->in[k];
		if (!from)
			return v;
		v = from;
	}
	return v;
}

static const char *
why_no_shape(const om_prog *p, const om_value *v)
{
	const om_value *o = origin_of_doubt(v);
	const char *link = o == v ? "" : "follows from ";

	if (!o->def && o->block == p->first)
		return om_printf(p->mem, "%sopen dims of input %s", link, o->name);
	if (!o->def)
		return om_printf(p->mem, "%sunknown dims of the loop-carried value %s", link, o->name);
	if (!o->def->opdef)
		return om_printf(p->mem, "%sundeclared shape of %s", link, o->def->type);
	if (o->def->opdef->control == OM_IF)
		return om_printf(p->mem, "%sshapes of If that depend on the branch", link);
	if (o->def->opdef->control != OM_PLAIN)
		return om_printf(p->mem, "%sshapes of %s that depend on its number of iterations", link, o->def->type);
	return om_printf(p->mem, "%sdata-dependent shape of %s", link, o->def->type);
}

bool
om_value_is_unplannable(const om_value *v)
{
	uint64_t bytes;

	return v->type.kind != OM_TENSOR || v->type.elem == OM_UNDEFINED || v->type.elem == OM_STRING
	    || !om_shape_is_known(&v->shape) || !om_tensor_bytes(v->type.elem, &v->shape, &bytes)
	    || bytes > INT64_MAX / 4;
}

static const om_block *
branch_that_cannot_run(const om_block *b)
{
	while (b && !b->cannot_run)
		b = b->owner ? b->owner->block : NULL;
	return b;
}

const char *
om_value_unplanned(const om_prog *p, const om_value *v, uint64_t most)
{
	static const char *const kinds[] = {
		[OM_SPARSE] = "a sparse tensor", [OM_SEQUENCE] = "a sequence",
		[OM_OPTIONAL] = "an optional", [OM_MAP] = "a map", [OM_OPAQUE] = "an opaque type",
	};

	if (om_value_is_placeless(p, v) || !om_value_is_unplannable(v))
		return NULL;
	const om_block *stopped = branch_that_cannot_run(v->block);
	if (stopped)
		return om_printf(p->mem, "%s cannot run with these shapes", stopped->path);
	if (v->type.kind != OM_TENSOR)
		return kinds[v->type.kind];
	if (v->type.elem == OM_UNDEFINED)
		return "unknown element type";
	if (v->type.elem == OM_STRING)
		return "string elements";
	if (!om_shape_is_known(&v->shape))
		return most ? om_printf(p->mem, "%s, at most %" PRIu64 " bytes", why_no_shape(p, v), most) : why_no_shape(p, v);
	return "more bytes than can be addressed";
}

/* ---- Grouping by storage. ---- */

/* Bytes of a buffer that are in use in some steps. */
struct part {
	uint32_t buffer;
	om_interval use;
};

struct builder {
	const om_prog *p;
	const om_assignment *a;
	om_arena *mem;
	om_buffers *b;
	om_arena *tmp;
	struct part *part;      /* of all buffers */
	size_t npart, cappart;
	om_interval *span;      /* by buffer: its whole lifetime */
};

static uint64_t
rounded(const struct builder *w, uint64_t bytes)
{
	const uint64_t align = w->a->request->align;

	return (bytes + align - 1) & ~(align - 1);
}

static void
add_naive(om_buffers *b, uint64_t bytes)
{
	b->naive = om_size_sum(b->naive, bytes);
}

static uint32_t
new_buffer(struct builder *w, const char *name)
{
	const uint32_t n = w->b->n++;

	w->span[n] = (om_interval){.lower = UINT32_MAX};
	w->b->buf[n] = (om_buffer){.name = name, .align = w->a->request->align, .fixed = OM_OFFSET_FREE};
	return n;
}

/* Record that bytes [from, from + bytes) of buffer `n` are in use in these steps. */
static void
extend(struct builder *w, uint32_t n, uint32_t first, uint32_t last, uint64_t from, uint64_t bytes)
{
	om_interval *span = &w->span[n];

	OM_PUSH(w->tmp, w->part, w->npart, w->cappart, ((struct part){n, {first, last + 1, from, from + bytes}}));
	span->lower = first < span->lower ? first : span->lower;
	span->upper = last >= span->upper ? last + 1 : span->upper;
	if (from + bytes > w->b->buf[n].bytes)
		w->b->buf[n].bytes = rounded(w, from + bytes);
}

static void
add_value(struct builder *w, om_value *v)
{
	const om_op_facts *f = w->a->facts;
	const om_value *root = w->b->root[v->id];
	const uint64_t bytes = f->bytes[v->id];
	om_steps at;

	if (f->is_outside[v->id] || f->is_unplanned[v->id] || f->is_unplanned[root->id])
		return;
	if (f->is_outside[root->id]) {
		if (root->def && !root->is_const)  /* stored in the memory of a graph result */
			add_naive(w->b, rounded(w, bytes));
		return;
	}
	if (w->b->of_value[root->id] == NONE)
		w->b->of_value[root->id] = new_buffer(w, root->name);
	const uint32_t n = w->b->of_value[root->id];
	w->b->of_value[v->id] = n;
	for (uint32_t k = 0; om_live_interval_range(&w->a->live[v->id], k, &at); k++)
		extend(w, n, at.first, at.last, w->b->offset[v->id], bytes);
	add_naive(w->b, rounded(w, bytes));
}

/* Other executors have other kernels and provide their own scratch, except where a rule states what an operator needs. */
static void
add_scratch(struct builder *w, const om_op *op)
{
	const bool ours = (w->a->request->target == OM_TARGET_CPU || om_op_has_rule(op)) && !op->is_folded;
	const uint64_t bytes = ours ? w->a->facts->op[op->id].workspace : 0;

	if (bytes == 0 || bytes > INT64_MAX / 4)
		return;
	const uint32_t n = new_buffer(w, *op->name ? op->name : op->type);
	w->b->of_op[op->id] = n;
	const uint32_t step = w->a->schedule->of_op[op->id].first;
	extend(w, n, step, step, 0, bytes);
	add_naive(w->b, rounded(w, bytes));
}

static void
add_block(struct builder *w, const om_block *b)
{
	for (uint32_t k = 0; k < b->nparam; k++)
		add_value(w, b->param[k]);
	for (om_op *const *at = w->a->schedule->ops[b->id]; *at; at++) {
		const om_op *op = *at;
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k])
				add_value(w, op->out[k]);
		add_scratch(w, op);
		for (uint32_t k = 0; k < op->nbody; k++)
			add_block(w, op->body[k]);
	}
}

/* A buffer that is fully in use for its whole lifetime gets a single interval. */
static void
set_live(struct builder *w, uint32_t n, const om_interval *use, size_t nuse)
{
	om_buffer *b = &w->b->buf[n];
	const om_usage all = om_usage_union(w->tmp, use, nuse), u = om_usage_rounded(&all, w->mem, w->a->request->align);

	b->live = u.r;
	b->nlive = (uint32_t)u.n;
	if (u.n <= 1 && (u.n == 0 || (u.r[0].from == 0 && u.r[0].to == b->bytes))) {
		b->live = &w->span[n];
		b->nlive = 1;
	}
}

/* Sort the parts by buffer. */
static void
set_lives(struct builder *w)
{
	const uint32_t n = w->b->n;
	om_interval *use = OM_NEWN(w->tmp, om_interval, w->npart);
	size_t *at = OM_NEWN(w->tmp, size_t, (size_t)n + 2);

	for (size_t k = 0; k < w->npart; k++)
		at[w->part[k].buffer + 2]++;
	for (uint32_t k = 0; k < n; k++)
		at[k + 2] += at[k + 1];
	for (size_t k = 0; k < w->npart; k++)
		use[at[w->part[k].buffer + 1]++] = w->part[k].use;
	for (uint32_t k = 0; k < n; k++)
		set_live(w, k, use + at[k], at[k + 1] - at[k]);
}

om_buffers *
om_buffers_new(const om_prog *p, const om_assignment *a, om_arena *mem)
{
	om_buffers *b = OM_NEW(mem, om_buffers);
	const size_t most = (size_t)p->nvalue + p->nop;
	struct builder w = {.p = p, .a = a, .mem = mem, .tmp = om_arena_new(), .b = b,
		.span = OM_NEWN(mem, om_interval, most)};
	const om_storages all = om_storages_new(p, a, mem);

	b->assignment = a;
	b->buf = OM_NEWN(mem, om_buffer, most);
	b->of_value = OM_NEWN(mem, uint32_t, p->nvalue);
	b->root = all.root;
	b->offset = all.offset;
	b->of_op = OM_NEWN(mem, uint32_t, p->nop);
	for (uint32_t k = 0; k < p->nvalue; k++)
		b->of_value[k] = NONE;
	for (uint32_t k = 0; k < p->nop; k++)
		b->of_op[k] = NONE;
	add_block(&w, p->first);
	set_lives(&w);
	om_arena_free(w.tmp);
	return b;
}
