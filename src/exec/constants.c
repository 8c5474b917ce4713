/* SPDX-License-Identifier: Apache-2.0 */
/* Constants: materialized if kernels read them; folded ops without elements are computed
 * once.
 *
 * Required are the constants that ops of the run read, and the constants from which those are
 * computed.  A splat is not expanded if its only users are folded ops that keep it a splat, or
 * read only its shape.
 *
 * Constants whose elements are known are read where they are, unless they are not aligned and a reader requires
 * that (OM_UNALIGNED).  All others that
 * runs read lie in one block, whose size is computed first.  What only folded ops read is materialized before
 * the first of them and released after the last, and pages of files are given back once they were copied, or
 * read by a folded op for the last time, which for large ones is while it runs (om_op_context.consumed).  So the peak is the block, and what one folded op reads and writes
 * outside of it. */
#include <config.h>

#include <stdlib.h>

#include "exec/weights.h"
#include "base/arena_internal.h"
#include "base/mapping.h"
#include "base/shape.h"
#include "base/strided_copy.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"
#include "onnxmem/kernel.h"

/* ---- What is required. ---- */

static bool
is_left(const om_op *op)
{
	if (!op->is_folded)
		return false;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && !op->out[k]->data)
			return true;
	return false;
}

/* A shape that elements decide is known when they are computed. */
static bool
reads_elements(const om_op *op)
{
	bool known = true;

	for (uint32_t k = 0; k < op->nin; k++)
		known &= !op->in[k] || om_shape_is_known(&op->in[k]->shape);
	return !op->opdef || !(op->opdef->flags & OM_SHAPE_ONLY) || !known;
}

static void
mark_wanted(struct weights *w, const om_value *v, bool in_runs, bool is_aligned)
{
	v = w->e->root[v->id];
	w->by[v->id].is_wanted = true;
	w->by[v->id].is_kept |= in_runs;
	w->by[v->id].is_aligned |= is_aligned;
}

/* Others may read the output of an op that is, or may become, a view. */
static bool
accepts_unaligned(const struct weights *w, const om_op *op, uint32_t in)
{
	const om_exec *e = w->e;

	if (in != 0 || !op->opdef || !(op->opdef->flags & OM_UNALIGNED) || !op->out[0])
		return false;
	return !op->opdef->view || (!op->is_folded && !e->is_skipped[op->out[0]->id]
		&& e->root[op->out[0]->id] != e->root[op->in[0]->id]);
}

static void
want_inputs(struct weights *w, const om_op *op, bool in_runs)
{
	for (uint32_t k = 0; k < op->nin && reads_elements(op); k++)
		if (op->in[k])
			mark_wanted(w, op->in[k], in_runs, !accepts_unaligned(w, op, k));
}

static bool
must_compute(const struct weights *w, const om_op *op)
{
	bool any = false;

	for (uint32_t k = 0; is_left(op) && k < op->nout; k++)
		any |= op->out[k] && !op->out[k]->data && w->by[op->out[k]->id].is_wanted;
	return any;
}

/* In reverse order, so that a folded op is visited after all of its users. */
static void
find_wanted(struct weights *w)
{
	const om_exec *e = w->e;
	uint32_t n = 0;

	for (const om_block *b = e->prog->first; b; b = b->next)
		for (uint32_t k = 0; k < b->nresult; k++)
			mark_wanted(w, b->result[k], true, true);
	while (e->order[n])
		n++;
	while (n-- > 0) {
		const om_op *op = e->order[n];
		if (must_compute(w, op) || (!op->is_folded && e->is_needed[op->id]))
			want_inputs(w, op, !op->is_folded);
	}
}

/* An op to compute, which waits for those that make its inputs. */
struct waiting {
	om_op *op;
	uint32_t next;       /* input to look at */
};

/* The op that computes the input that `top` waits for; NULL: it has all of them. */
static om_op *
next_source(struct weights *w, struct waiting *top)
{
	while (top->next < top->op->nin) {
		const om_value *v = top->op->in[top->next++];
		if (v && v->def && w->by[v->id].is_computed && !w->is_listed[v->def->id])
			return v->def;
	}
	return NULL;
}

/* List `op` after all that it needs and that is not listed yet. */
static void
list_with_sources(struct weights *w, om_op *op, struct waiting *stack)
{
	uint32_t depth = 0;

	for (stack[depth++] = (struct waiting){op, 0}; depth;) {
		om_op *source = next_source(w, &stack[depth - 1]);
		if (source) {
			stack[depth++] = (struct waiting){source, 0};
			continue;
		}
		op = stack[--depth].op;
		w->is_listed[op->id] = true;
		w->left[w->nleft++] = op;
	}
}

static bool
has_kept(const struct weights *w, const om_op *op)
{
	bool any = false;

	for (uint32_t k = 0; k < op->nout; k++)
		any |= op->out[k] && w->by[op->out[k]->id].is_kept;
	return any;
}

struct sink {
	om_op *op;
	uint64_t bytes;      /* of its inputs */
	uint32_t place;
};

static int
by_size(const void *a, const void *b)
{
	const struct sink *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return (x->place > y->place) - (x->place < y->place);
}

static uint64_t
input_bytes(const struct weights *w, const om_op *op)
{
	uint64_t sum = 0, bytes;

	for (uint32_t k = 0; k < op->nin && reads_elements(op); k++)
		if (op->in[k] && om_tensor_bytes(w->e->slot[op->in[k]->id].type, &w->e->slot[op->in[k]->id].shape, &bytes))
			sum += bytes / 2;
	return sum;
}

/* The ops whose outputs runs read, those with the largest inputs first: what they read is in memory while little
 * of the block is. */
static uint32_t
list_sinks(struct weights *w, struct sink *sink)
{
	const om_exec *e = w->e;
	uint32_t count = 0;

	for (uint32_t n = 0; e->order[n]; n++)
		if (must_compute(w, e->order[n]) && has_kept(w, e->order[n])) {
			sink[count] = (struct sink){e->order[n], input_bytes(w, e->order[n]), count};
			count++;
		}
	qsort(sink, count, sizeof *sink, by_size);
	return count;
}

/* What only folded ops read is computed just before its first reader, so that few of these are in memory at
 * once. */
static void
list_left(struct weights *w)
{
	const om_exec *e = w->e;
	const size_t nop = (size_t)e->prog->nop + 1;
	struct waiting *stack = OM_NEWN(e->mem, struct waiting, nop);
	struct sink *sink = OM_NEWN(e->mem, struct sink, nop);

	w->left = OM_NEWN(e->mem, om_op *, nop);
	w->is_listed = OM_NEWN(e->mem, bool, nop);
	for (uint32_t n = 0; e->order[n]; n++)
		for (uint32_t k = 0; must_compute(w, e->order[n]) && k < e->order[n]->nout; k++)
			if (e->order[n]->out[k])
				w->by[e->order[n]->out[k]->id].is_computed = true;
	const uint32_t count = list_sinks(w, sink);
	for (uint32_t k = 0; k < count; k++)
		if (!w->is_listed[sink[k].op->id])
			list_with_sources(w, sink[k].op, stack);
}

/* Is it a constant whose elements are known?  They may be absent if only its shape is read. */
static bool
is_known(const struct weights *w, const om_value *v)
{
	return v->data && (v->is_const || v->is_overridable) && !w->by[v->id].is_computed
	    && (w->by[v->id].is_wanted || v->data->data);
}

/* ---- Where it is. ---- */

/* Elements that nothing reads may be repeated, and lie at any address. */
static bool
is_in_place(const struct weights *w, const om_value *v)
{
	const om_tensor *data = v->data;
	const uint64_t align = w->e->align;

	if (!w->by[v->id].is_wanted)
		return true;
	if (!w->by[v->id].is_aligned)
		return !data->splat;
	return !data->splat && om_tensor_is_aligned(data)
	    && (align <= OM_ROOM_ALIGN || (uintptr_t)data->data % align == 0);
}

static om_status
add_to_block(struct weights *w, const om_value *v)
{
	const om_tensor *t = &w->e->slot[v->id];
	const uint64_t align = w->e->align;
	uint64_t bytes;

	if (!om_tensor_bytes(t->type, &t->shape, &bytes) || bytes > PTRDIFF_MAX - w->bytes - align)
		return om_fail(w->e->session, OM_INVALID, "the size of constant %s overflows", v->name);
	w->by[v->id].at = w->bytes;
	w->bytes += (bytes + align - 1) / align * align;
	return OM_OK;
}

/* Infer missing shapes, as of a branch that is inconsistent with the rest. */
static om_status
complete(om_op_context *c)
{
	bool known = true;

	for (uint32_t k = 0; k < c->op->nout; k++)
		known &= !c->op->out[k] || om_shape_is_known(&c->out[k].shape);
	if (known || c->op->opdef->flags & OM_DATA_DEPENDENT_SHAPE || !c->op->opdef->infer)
		return OM_OK;
	for (uint32_t k = 0; k < c->op->nout; k++)
		c->out[k] = (om_tensor){.shape = om_shape_unknown()};
	return c->op->opdef->infer(c);
}

/* Make the outputs views of inputs, if the operator permits it for all of them. */
static void
look_through(struct weights *w, const om_op_context *c)
{
	const om_op *op = c->op;
	om_view_of of;

	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && (!op->opdef->view || !om_shape_is_known(&c->out[k].shape) || !op->opdef->view(c, k, &of)))
			return;
	for (uint32_t k = 0; k < op->nout; k++) {
		if (!op->out[k])
			continue;
		op->opdef->view(c, k, &of);
		const struct weight *in = &w->by[op->in[of.in]->id];
		struct weight *out = &w->by[op->out[k]->id];
		out->holder = in->holder;
		out->offset = in->offset + of.offset;
	}
}

static om_status
look_at(struct weights *w, const om_op *op)
{
	om_exec *e = w->e;
	om_op_context c;

	om_op_context_init(&c, e->session, e->call, op);
	OM_TRY(complete(&c));
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k]) {
			e->slot[op->out[k]->id].type = c.out[k].type;
			e->slot[op->out[k]->id].shape = c.out[k].shape;
		}
	look_through(w, &c);
	for (uint32_t k = 0; k < op->nin && reads_elements(op); k++)
		if (op->in[k])
			w->by[w->by[op->in[k]->id].holder->id].nreader++;
	om_arena_clear(e->call);
	return OM_OK;
}

/* Strings refer to memory of their own, and a size may be known after the computation only. */
static bool
has_place(const struct weights *w, const om_value *v)
{
	const om_tensor *t = &w->e->slot[v->id];

	return t->type != OM_STRING && om_shape_is_known(&t->shape)
	    && !(w->by[v->id].is_computed && v->def->opdef->flags & OM_DATA_DEPENDENT_SHAPE);
}

static om_status
lay_out(struct weights *w)
{
	const om_prog *p = w->e->prog;

	for (uint32_t k = 0; k < w->nleft; k++) {
		const om_status st = look_at(w, w->left[k]);
		if (st != OM_OK)
			return om_note(w->e->session, st, "preparing constants");
	}
	for (uint32_t k = 0; k < p->nvalue; k++) {
		struct weight *of = &w->by[w->by[k].holder->id];
		of->is_kept |= w->by[k].is_kept;
		of->is_wanted |= w->by[k].is_wanted;
		of->is_aligned |= w->by[k].is_aligned;
	}
	for (uint32_t k = 0; k < p->nvalue; k++) {
		const om_value *v = p->values[k];
		const struct weight *of = &w->by[k];
		if (of->is_kept && of->holder == v && has_place(w, v)
		    && (of->is_computed || (is_known(w, v) && v->data->data && !is_in_place(w, v))))
			OM_TRY(add_to_block(w, v));
	}
	return OM_OK;
}

/* ---- Memory. ---- */

/* The memory of a value that is in no other's. */
static om_status
give_memory(struct weights *w, const om_value *v, uint64_t bytes)
{
	om_exec *e = w->e;
	const uint64_t at = w->by[v->id].at;

	if (at != OM_OUTSIDE) {
		om_exec_move(e, v, e->weights.data + at);
		return OM_OK;
	}
	OM_TRY(om_room_pages(e, &e->room[v->id], bytes, v->name));
	om_exec_move(e, v, e->room[v->id].data);
	return OM_OK;
}

/* Pages of files are given back piece by piece: elements are never in memory twice. */
static om_status
copy_elements(struct weights *w, const om_value *v)
{
	om_tensor *t = &w->e->slot[v->id];
	uint64_t bytes;

	if (!om_tensor_bytes(t->type, &t->shape, &bytes))
		return om_fail(w->e->session, OM_INVALID, "the size of constant %s overflows", v->name);
	OM_TRY(give_memory(w, v, bytes));
	if (v->data->splat)
		om_elements_copy(t->data, v->data, bytes);
	else
		om_mappings_move(w->e->prog->files, t->data, v->data->data, bytes);
	return OM_OK;
}

/* Make the elements of a known constant available. */
static om_status
bind(struct weights *w, const om_value *v)
{
	om_exec *e = w->e;

	if (!v->data->data)
		return om_fail(e->session, OM_RUN, "the elements of constant %s are not known", v->name);
	e->slot[v->id].splat = v->data->splat && !w->by[v->id].is_wanted;
	if (!is_in_place(w, v))
		return copy_elements(w, v);
	om_exec_move(e, v, v->data->data);
	return OM_OK;
}

/* The last folded op has read it, and no run will. */
static void
release(struct weights *w, const om_value *v)
{
	om_exec *e = w->e;
	const om_tensor *t = &e->slot[v->id];
	uint64_t bytes;

	if (w->by[v->id].is_kept || !t->data)
		return;
	if (e->room[v->id].data)
		om_room_free(e, &e->room[v->id]);
	else if (om_tensor_bytes(t->type, &t->shape, &bytes))
		om_mappings_drop(e->prog->files, t->data, bytes);
	om_exec_move(e, v, NULL);
}

/* The pages of what the last reader has read are given back while it reads the rest. */
static void
consumed(om_op_context *c, uint32_t in, uint64_t bytes)
{
	enum { PIECE = 1 << 20 };
	struct weights *w = c->host;
	struct weight *of = &w->by[w->by[c->op->in[in]->id].holder->id];
	const om_tensor *t = &w->e->slot[of->holder->id];

	if (of->holder != c->op->in[in] || of->is_kept || of->nreader != 1 || w->e->room[of->holder->id].data
	    || bytes < of->dropped + PIECE)
		return;
	om_mappings_drop(w->e->prog->files, (const char *)t->data + of->dropped, bytes - of->dropped);
	of->dropped = bytes;
}

/* ---- Computing. ---- */

static om_status
alloc_constant(om_op_context *c, uint32_t k, const om_shape *shape)
{
	struct weights *w = c->host;
	const om_value *v = c->op->out[k];
	om_tensor *t = &w->e->slot[v->id];
	uint64_t bytes;

	t->shape = *shape;
	t->type = c->out[k].type;
	if (!om_tensor_bytes(t->type, shape, &bytes))
		return om_fail(w->e->session, OM_INVALID, "the size of constant %s overflows", v->name);
	OM_TRY(give_memory(w, v, bytes));
	if (w->by[v->id].at != OM_OUTSIDE)
		om_pages_make(t->data, bytes);
	c->out[k] = *t;
	return OM_OK;
}

/* A view, or a value that is computed, takes the address of its holder. */
static om_status
take_input(struct weights *w, om_op_context *c, uint32_t k)
{
	const om_value *v = c->op->in[k];
	const struct weight *of = &w->by[v->id];
	om_tensor *t = &w->e->slot[v->id], *holder = &w->e->slot[of->holder->id];

	if (!holder->data && reads_elements(c->op) && is_known(w, of->holder))
		OM_TRY(bind(w, of->holder));
	if (of->holder != v && holder->data)
		t->data = (char *)holder->data + of->offset;
	((om_tensor *)c->in)[k] = *t;
	return OM_OK;
}

static om_status
run_kernel(om_op_context *c)
{
	const om_op *op = c->op;

	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && !(op->opdef->flags & OM_DATA_DEPENDENT_SHAPE))
			OM_TRY(alloc_constant(c, k, &c->out[k].shape));
	return om_kernel_call(c);
}

static bool
is_view(const struct weights *w, const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			return w->by[op->out[k]->id].holder != op->out[k];
	return false;
}

/* Release what no op reads any more. */
static void
release_after(struct weights *w, const om_op *op)
{
	for (uint32_t k = 0; k < op->nin && reads_elements(op); k++) {
		const om_value *holder = op->in[k] ? w->by[op->in[k]->id].holder : NULL;
		if (holder && --w->by[holder->id].nreader == 0)
			release(w, holder);
	}
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && w->by[op->out[k]->id].holder == op->out[k] && w->by[op->out[k]->id].nreader == 0)
			release(w, op->out[k]);
}

static om_status
compute(struct weights *w, const om_op *op)
{
	om_exec *e = w->e;
	om_op_context c;

	om_op_context_init(&c, e->session, e->call, op);
	c.alloc = alloc_constant;
	c.consumed = consumed;
	c.host = w;
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k])
			OM_TRY(take_input(w, &c, k));
	OM_TRY(complete(&c));
	OM_TRY(om_op_check_shapes(&c));
	om_exec_workers(e, &c);
	if (!is_view(w, op))
		OM_TRY(run_kernel(&c));
	release_after(w, op);
	return OM_OK;
}

static om_status
compute_left(struct weights *w)
{
	for (uint32_t k = 0; k < w->nleft; k++) {
		const om_status st = compute(w, w->left[k]);
		om_arena_clear(w->e->call);
		if (st != OM_OK)
			return om_note(w->e->session, st, "preparing constants");
	}
	return OM_OK;
}

/* The block is in a file: nothing is computed. */
static void
take_block(struct weights *w)
{
	om_exec *e = w->e;

	e->weights = (struct room){om_weight_cache_block(&e->cache), w->bytes};
	for (uint32_t k = 0; k < e->prog->nvalue; k++)
		if (w->by[k].at != OM_OUTSIDE)
			om_exec_move(e, e->prog->values[k], e->weights.data + w->by[k].at);
}

/* What runs read: the constants that are known come first, folded ops may read them. */
static om_status
bind_all(struct weights *w)
{
	const om_prog *p = w->e->prog;

	for (uint32_t k = 0; k < p->nvalue; k++) {
		const om_value *v = p->values[k];
		if (is_known(w, v) && (w->by[k].is_kept || !w->by[k].is_wanted) && (!w->e->cache.map || w->by[k].at == OM_OUTSIDE))
			OM_TRY(bind(w, v));
	}
	return OM_OK;
}

/* Views that runs read take their addresses; what was made for folded ops alone is released. */
static void
settle(struct weights *w)
{
	om_exec *e = w->e;

	for (uint32_t k = 0; k < e->prog->nvalue; k++) {
		const om_value *v = e->prog->values[k];
		const struct weight *of = &w->by[k];
		if (of->holder != v)
			om_exec_move(e, v, of->is_kept ? (char *)e->slot[of->holder->id].data + of->offset : NULL);
		else if (v->is_const && of->is_wanted)
			release(w, v);
		if (of->is_kept && v->is_const)
			e->stats.weight_bytes += e->room[k].cap;
	}
}

static om_status
make_block(struct weights *w)
{
	om_exec *e = w->e;

	if (w->bytes)
		OM_TRY(om_room_fit(e, &e->weights, w->bytes, "weights"));
	OM_TRY(bind_all(w));
	OM_TRY(compute_left(w));
	return OM_OK;
}

om_status
om_exec_weights(om_exec *e)
{
	const om_prog *p = e->prog;
	struct weights w = {.e = e, .by = OM_NEWN(e->mem, struct weight, p->nvalue)};

	for (uint32_t k = 0; k < p->nvalue; k++) {
		w.by[k].holder = p->values[k];
		w.by[k].at = OM_OUTSIDE;
	}
	om_mappings_drop_all(p->files);
	find_wanted(&w);
	list_left(&w);
	OM_TRY(lay_out(&w));
	const bool is_cached = e->options.cache && om_weight_key(&w, &e->cache);
	if (is_cached && om_weight_cache_open(&e->cache)) {
		take_block(&w);
		OM_TRY(bind_all(&w));
	} else {
		OM_TRY(make_block(&w));
		if (is_cached)
			om_weight_cache_write(&e->cache, e->weights.data);
	}
	settle(&w);
	e->stats.weight_bytes += w.bytes;
	return OM_OK;
}
