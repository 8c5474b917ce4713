/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding: ops whose inputs are known are computed while planning.
 *
 * Outputs that are views of constants cost nothing, however large.  For splats, elementwise operators
 * compute one element.  All other ops are computed completely if their outputs, and the text of strings,
 * are within a limit of bytes, and their work within another, and left unchanged otherwise. */
#include <config.h>

#include "base/guard.h"
#include "onnxmem/builder.h"
#include "onnxmem/kernel.h"
#include "base/arena_internal.h"
#include "opdef/fold.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"
#include "base/shape.h"
#include "base/strided_copy.h"
#include "opdef/columns.h"

struct fold {
	om_op_context c;
	om_prog *p;
	uint64_t limit;          /* bytes of an output */
	uint64_t *work;          /* that is left; see om_fold_limits */
	bool is_costly;          /* more than that */
};

/* Every input has data, or only its shape is required. */
static bool
is_ready(const om_op_context *c)
{
	const om_opdef *row = c->op->opdef;

	for (uint32_t k = 0; k < c->op->nin; k++) {
		if (!c->op->in[k])
			continue;
		if (row->flags & OM_SHAPE_ONLY ? !om_shape_is_known(&c->in[k].shape) : !c->in[k].data)
			return false;
	}
	for (uint32_t k = 0; k < c->op->nout; k++)
		if (c->op->out[k] && (c->op->out[k]->type.kind != OM_TENSOR
		    || (!(row->flags & OM_DATA_DEPENDENT_SHAPE) && !om_shape_is_known(&c->out[k].shape))))
			return false;
	return true;
}

static bool
can_fold(const om_op *op)
{
	return op->opdef && op->opdef->cpu && op->opdef->control == OM_PLAIN
	    && !(op->opdef->flags & (OM_RANDOM | OM_EFFECT));
}

static void
store_constant(om_prog *p, om_value *v, const om_tensor *t)
{
	om_tensor *copy = OM_NEW(p->mem, om_tensor);

	*copy = *t;
	v->data = copy;
	v->type.elem = t->type;
	v->shape = t->shape;
}

/* A small part of a large constant may lie at an address where a small constant must not. */
static void
settle(om_prog *p, om_tensor *t)
{
	uint64_t bytes;

	if (t->splat || !om_tensor_bytes(t->type, &t->shape, &bytes) || !om_tensor_may_be_unaligned(t->type, bytes))
		om_tensor_align(p->mem, t);
}

/* All outputs are views of constants: nothing to compute, however large. */
static bool
fold_views(struct fold *f)
{
	const om_op *op = f->c.op;

	if (!op->opdef->view)
		return false;
	for (uint32_t k = 0; k < op->nout; k++) {
		om_view_of v;
		if (op->out[k] && (!op->opdef->view(&f->c, k, &v) || !f->c.in[v.in].data))
			return false;
	}
	for (uint32_t k = 0; k < op->nout; k++) {
		om_view_of v;
		if (!op->out[k])
			continue;
		op->opdef->view(&f->c, k, &v);
		om_tensor t = f->c.out[k];
		t.splat = f->c.in[v.in].splat;
		t.data = (char *)f->c.in[v.in].data + (t.splat ? 0 : v.offset);
		settle(f->p, &t);
		store_constant(f->p, op->out[k], &t);
	}
	return true;
}

static bool
is_splat_call(const om_op_context *c)
{
	bool any = false;

	for (uint32_t k = 0; k < c->op->nin; k++) {
		if (!c->op->in[k])
			continue;
		if (!om_is_one(&c->in[k]))
			return false;
		any |= c->in[k].splat;
	}
	return any && c->op->opdef->flags & OM_POINTWISE;
}

/* Elementwise over splats: compute one element. */
static om_status
fold_splats(struct fold *f)
{
	om_op_context one = f->c;
	om_tensor *in = om_memdup(f->c.mem, f->c.in, f->c.op->nin * sizeof *in);
	om_tensor *out = om_memdup(f->c.mem, f->c.out, f->c.op->nout * sizeof *out);

	for (uint32_t k = 0; k < f->c.op->nin; k++) {
		in[k].shape = om_shape_of(0, NULL);
		in[k].splat = false;
	}
	for (uint32_t k = 0; k < f->c.op->nout; k++) {
		out[k].shape = om_shape_of(0, NULL);
		out[k].data = om_alloc(f->p->mem, sizeof(om_string));
	}
	one.in = in;
	one.out = out;
	OM_TRY(om_kernel_call(&one));
	for (uint32_t k = 0; k < f->c.op->nout; k++) {
		if (!f->c.op->out[k])
			continue;
		om_tensor t = f->c.out[k];
		t.data = out[k].data;
		t.splat = true;
		store_constant(f->p, f->c.op->out[k], &t);
	}
	return OM_OK;
}

static om_status
fold_alloc(om_op_context *c, uint32_t k, const om_shape *shape)
{
	struct fold *f = c->host;
	uint64_t bytes;

	if (!om_tensor_bytes(c->out[k].type, shape, &bytes))
		return om_op_fail(c->session, OM_INVALID, c->op, "the size of output %u overflows", k);
	if (bytes > f->limit)
		return OM_UNSUPPORTED;  /* reverted by fold_dense() */
	c->out[k].shape = *shape;
	c->out[k].data = om_alloc(f->p->mem, bytes ? bytes : 1);
	c->out[k].splat = false;
	return OM_OK;
}

/* Expand splats for kernels that require all elements. */
static bool
densify(struct fold *f)
{
	om_tensor *in = om_memdup(f->c.mem, f->c.in, f->c.op->nin * sizeof *in);

	for (uint32_t k = 0; k < f->c.op->nin; k++) {
		uint64_t bytes;
		if (!in[k].splat || f->c.op->opdef->flags & OM_SHAPE_ONLY)
			continue;
		if (!om_tensor_bytes(in[k].type, &in[k].shape, &bytes) || bytes > f->limit)
			return false;
		void *all = om_alloc(f->c.mem, bytes ? bytes : 1);
		om_fill_type(all, om_shape_count(&in[k].shape), in[k].type, in[k].data);
		in[k].data = all;
		in[k].splat = false;
	}
	f->c.in = in;
	return true;
}

/* Large constants may lie at any address. */
static void
align(struct fold *f)
{
	om_tensor *in = om_memdup(f->c.mem, f->c.in, f->c.op->nin * sizeof *in);

	for (uint32_t k = 0; k < f->c.op->nin; k++)
		om_tensor_align(f->c.mem, &in[k]);
	f->c.in = in;
}

/* Is the text of the strings within the limit, of the inputs and of outputs that join one string of each
 * input in each element? */
static bool
text_fits(const struct fold *f)
{
	const om_op_context *c = &f->c;
	uint64_t all = 0, joined = 0, bytes;

	for (uint32_t k = 0; k < c->op->nin; k++) {
		if (!c->op->in[k] || c->in[k].type != OM_STRING || !c->in[k].data)
			continue;
		const om_string *s = c->in[k].data;
		const int64_t n = om_is_one(&c->in[k]) ? 1 : om_shape_count(&c->in[k].shape);
		uint64_t longest = 0;
		for (int64_t i = 0; i < n; i++) {
			all += s[i].size;
			longest = s[i].size > longest ? s[i].size : longest;
		}
		joined += longest;
	}
	for (uint32_t k = 0; k < c->op->nout; k++)
		if (c->op->out[k] && c->out[k].type == OM_STRING && om_shape_is_known(&c->out[k].shape)
		    && (__builtin_mul_overflow((uint64_t)om_shape_count(&c->out[k].shape), joined, &bytes)
			|| bytes > f->limit))
			return false;
	return all <= f->limit;
}

/* Bytes of a tensor that is written in full. */
static double
bytes_of(const om_tensor *t)
{
	uint64_t bytes;

	return om_tensor_bytes(t->type, &t->shape, &bytes) ? (double)bytes : 0;
}

/* FLOPs, outputs, and repeated elements of inputs that are written out.  Kernels that take those as they are
 * write one element, or only move what fits. */
static double
work_of(const om_op_context *c)
{
	double work = 0;

	if (c->op->opdef->flags & OM_SPLATS)
		return 0;
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (om_has_in(c, k) && c->in[k].splat && !(c->op->opdef->flags & OM_SHAPE_ONLY))
			work += bytes_of(&c->in[k]);
	for (uint32_t k = 0; k < c->op->nout; k++)
		if (om_has_out(c, k))
			work += bytes_of(&c->out[k]);
	return work + om_op_context_cost(c).flops;
}

/* Take the work of the op from what is left. */
static bool
has_work_left(struct fold *f)
{
	const double work = work_of(&f->c);

	f->is_costly = work > (double)*f->work;
	if (!f->is_costly && *f->work != UINT64_MAX)
		*f->work -= (uint64_t)work < *f->work ? (uint64_t)work : *f->work;
	return !f->is_costly;
}

/* Is an output too large? */
static bool
outputs_fit(const struct fold *f)
{
	const om_op_context *c = &f->c;
	const unsigned flags = c->op->opdef->flags;

	for (uint32_t k = 0; k < c->op->nout; k++) {
		uint64_t bytes;
		if (!om_has_out(c, k) || flags & (OM_DATA_DEPENDENT_SHAPE | OM_SPLATS))
			continue;
		if (!om_tensor_bytes(c->out[k].type, &c->out[k].shape, &bytes) || bytes > f->limit)
			return false;
	}
	return true;
}

static om_status
fold_dense(struct fold *f)
{
	const om_opdef *row = f->c.op->opdef;

	if (!text_fits(f) || !outputs_fit(f) || !has_work_left(f) || (!(row->flags & OM_SPLATS) && !densify(f)))
		return OM_OK;
	if (!(row->flags & OM_SHAPE_ONLY))
		align(f);
	f->c.alloc = fold_alloc;
	f->c.host = f;
	for (uint32_t k = 0; k < f->c.op->nout; k++) {
		uint64_t bytes = 0;
		if (!f->c.op->out[k] || row->flags & OM_DATA_DEPENDENT_SHAPE)
			continue;
		if (row->flags & OM_SPLATS)
			bytes = om_dtype_bits(f->c.out[k].type) / 8;
		else
			om_tensor_bytes(f->c.out[k].type, &f->c.out[k].shape, &bytes);
		f->c.out[k].data = om_alloc(f->p->mem, bytes ? bytes : 1);
		f->c.out[k].splat = row->flags & OM_SPLATS;
	}
	const om_status st = om_kernel_call(&f->c);
	if (st == OM_UNSUPPORTED && row->flags & (OM_DATA_DEPENDENT_SHAPE | OM_SPLATS))
		return OM_OK;
	OM_TRY(st);
	for (uint32_t k = 0; k < f->c.op->nout; k++)
		if (f->c.op->out[k] && f->c.out[k].data)
			store_constant(f->p, f->c.op->out[k], &f->c.out[k]);
	return OM_OK;
}

static om_status
fold(struct fold *f)
{
	if (!is_ready(&f->c))
		return OM_OK;
	OM_TRY(om_op_check_shapes(&f->c));
	if (fold_views(f))
		return OM_OK;
	return is_splat_call(&f->c) ? fold_splats(f) : fold_dense(f);
}

om_status
om_op_fold_shape_arithmetic(om_session *s, om_prog *p, om_op *op)
{
	return om_op_fold(s, p, op, &(om_fold_limits){8192, 1 << 20}, NULL);
}

static om_status
op_fold_guarded(om_session *s, om_prog *p, om_op *op, om_fold_limits *limits, bool *costly)
{
	if (!can_fold(op))
		return OM_OK;
	struct fold f = {.p = p, .limit = limits->bytes, .work = &limits->work};
	om_arena *mem = om_arena_new();
	om_op_context_init(&f.c, s, mem, op);
	f.c.keep = p->mem;
	const om_status st = fold(&f);
	om_arena_free(mem);
	if (costly)
		*costly = f.is_costly;
	return st;
}

om_status
om_op_fold(om_session *s, om_prog *p, om_op *op, om_fold_limits *limits, bool *costly)
{
	OM_GUARDED(s, op_fold_guarded(s, p, op, limits, costly));
}
