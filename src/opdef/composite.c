/* SPDX-License-Identifier: Apache-2.0 */
/* Composite operators: see composite.h.
 *
 * A part is a call of the definition of its operator, with a synthetic op.  Every intermediate tensor
 * has its own buffer in scratch, unless it is a view; the workspace of the current part follows them.
 *
 * Preparation records a list of steps: parts, tensors to fill, outputs to set.  A tensor of the recipe
 * keeps its address, so that a step finds the data of its inputs in the tensors set by earlier steps. */
#include <config.h>

#include "onnxmem/kernel.h"
#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/operators.h"
#include "ir/query.h"
#include "opdef/kernel_call.h"
#include "opdef/numbers.h"
#include "opdef/composite_internal.h"
#include "opdef/op_context.h"

/* ---- Callbacks. ---- */

om_status
om_composite_infer(om_op_context *c, om_recipe *recipe)
{
	om_composite p = {.c = c, .doing = OM_INFERRING};

	recipe(&p);
	return p.st;
}

struct om_composite_step *
om_composite_add_step(om_composite *p)
{
	struct om_composite_steps *m = p->made;

	OM_PUSH(p->c->mem, m->step, m->n, m->cap, (struct om_composite_step){.out = 0});
	return &m->step[m->n - 1];
}

/* A recipe may end early while shapes are inferred; a run would leave the memory of the output as it is. */
static void
check_outputs(om_composite *p)
{
	for (uint32_t k = 0; k < p->c->op->nout && p->st == OM_OK; k++) {
		size_t j = 0;
		while (j < p->made->n && !(p->made->step[j].is_output && p->made->step[j].out == k))
			j++;
		if (om_has_out(p->c, k) && j == p->made->n)
			om_composite_refuse(p, OM_UNSUPPORTED, "no kernel computes one of the outputs for these shapes");
	}
}

void
om_composite_record(om_composite *p, om_recipe *recipe)
{
	om_session *caller = p->c->session;

	if (!caller) {  /* a query: errors are not reported, but functions may log */
		p->c->session = om_session_new();
		om_session_log(p->c->session, NULL, NULL, OM_LOG_QUIET);
	}
	recipe(p);
	check_outputs(p);
	if (!caller)
		om_session_free(p->c->session);
	p->c->session = caller;
}

om_status
om_parts_prepare(om_op_context *c, void **state, om_recipe *recipe)
{
	om_composite p = {.c = c, .doing = OM_PREPARING, .made = OM_NEW(c->mem, struct om_composite_steps)};

	om_composite_record(&p, recipe);
	p.made->most = p.most;
	*state = p.made;
	return p.st;
}

uint64_t
om_parts_workspace(const om_op_context *c)
{
	return ((const struct om_composite_steps *)c->state)->most;
}

static om_status
run_part(om_op_context *c, struct om_composite_step *s)
{
	om_op_context *part = &s->part;
	om_tensor *in = (om_tensor *)part->in;

	for (uint32_t k = 0; k < part->op->nin; k++)
		if (s->from[k])
			in[k].data = s->from[k]->data;
	for (uint32_t k = 0; k < part->op->nout; k++)
		part->out[k].data = s->is_view[k] ? (char *)in[s->view[k].in].data + s->view[k].offset
			: (char *)c->scratch + s->at[k];
	if (s->is_idle)
		return OM_OK;
	part->session = c->session;
	part->mem = c->mem;
	part->keep = c->keep;
	part->pool = c->pool;
	part->scratch = (char *)c->scratch + s->scratch;
	return om_kernel_run(part);
}

static om_status
run_step(om_op_context *c, struct om_composite_step *s)
{
	if (s->part.op)
		return run_part(c, s);
	if (s->fill) {
		((om_tensor *)s->t)->data = (char *)c->scratch + *s->at;
		return s->fill(c, s->of, s->t);
	}
	if (s->bytes)
		memcpy(c->out[s->out].data, s->t->data, s->bytes);
	return OM_OK;
}

om_status
om_parts_run(om_op_context *c)
{
	struct om_composite_steps *m = c->state;

	for (size_t k = 0; k < m->n; k++)
		OM_TRY(run_step(c, &m->step[k]));
	return OM_OK;
}

/* The parts have already been inferred, so no errors are expected; a quiet session is provided all the
 * same for functions that log. */
static void
count(const om_op_context *c, om_recipe *recipe, om_composite *p)
{
	om_op_context quiet = *c;

	quiet.session = om_session_new();
	om_session_log(quiet.session, NULL, NULL, OM_LOG_QUIET);
	*p = (om_composite){.c = &quiet, .doing = OM_COUNTING};
	recipe(p);
	p->c = NULL;
	om_session_free(quiet.session);
}

void
om_composite_cost(const om_op_context *c, om_recipe *recipe, om_cost *cost)
{
	om_composite p;

	count(c, recipe, &p);
	if (p.st == OM_OK)
		cost->flops = p.flops;
}

/* ---- Tensors. ---- */

const om_attr *
om_composite_forwarded(om_composite *p, const char *type)
{
	return om_attrs_of(p->c->mem, p->c->op, p->c->op->operators->find("", type, 24));
}

const om_tensor *
om_composite_add(const om_composite *p, uint32_t k)
{
	return om_has_in(p->c, k) ? &p->c->in[k] : NULL;
}

/* Allocate scratch for the tensor, whose shape is known except while inferring; returns the offset. */
static uint64_t
alloc_scratch(om_composite *p, om_tensor *t)
{
	const uint64_t at = p->used;
	uint64_t bytes;

	t->data = NULL;
	if (p->doing == OM_INFERRING || p->st != OM_OK)
		return 0;
	if (p->device) {
		om_composite_device_buffer(p, t);
		return 0;
	}
	if (!om_tensor_bytes(t->type, &t->shape, &bytes)) {
		om_composite_refuse(p, OM_SHAPE, "the size of an intermediate value is not known");
		return 0;
	}
	p->used = om_size_sum(p->used, om_piece_size(bytes ? bytes : 1));
	p->most = p->used > p->most ? p->used : p->most;
	return at;
}

/* Types and shapes that inference does not know yet are checked when the recipe is prepared. */
static void
check_read(om_composite *p, const om_composite_read *r)
{
	if (!r->t || (p->doing == OM_INFERRING && (!r->t->type || !om_shape_is_known(&r->t->shape))))
		return;
	if (r->t->type != r->type || om_shape_count(&r->t->shape) < r->n)
		om_composite_refuse(p, OM_SHAPE, "an input has another type or fewer elements than are read");
}

const om_tensor *
om_composite_filled(om_composite *p, om_dtype type, const om_shape *shape, om_composite_filler *fill, const void *of,
	size_t size, size_t nreads, const om_composite_read *reads)
{
	om_tensor *t = OM_NEW(p->c->mem, om_tensor);

	*t = (om_tensor){.type = type, .shape = *shape};
	for (size_t k = 0; k < nreads; k++)
		check_read(p, &reads[k]);
	if (p->device)
		om_composite_refuse(p, OM_UNSUPPORTED, "one of its parts is computed by the processor");
	const uint64_t at = alloc_scratch(p, t);
	if (p->doing == OM_PREPARING && p->st == OM_OK) {
		struct om_composite_step *s = om_composite_add_step(p);
		s->fill = fill;
		s->of = om_memdup(p->c->mem, of, size);
		s->t = t;
		s->at = om_memdup(p->c->mem, &at, sizeof at);
	}
	return t;
}

static void
prepare_gift(om_composite *p, uint32_t k, const om_tensor *t)
{
	const om_tensor *out = &p->c->out[k];

	if (out->type != t->type || !om_shape_equal(&out->shape, &t->shape)) {
		om_composite_refuse(p, OM_RUN, "the result does not have the planned size");
		return;
	}
	if (p->device) {
		om_composite_device_output(p, k, t);
		return;
	}
	struct om_composite_step *s = om_composite_add_step(p);
	s->t = t;
	s->is_output = true;
	s->out = k;
	om_tensor_bytes(t->type, &t->shape, &s->bytes);
}

void
om_composite_set_output(om_composite *p, uint32_t k, const om_tensor *t)
{
	if (p->st != OM_OK || !om_has_out(p->c, k))
		return;
	if (p->doing == OM_INFERRING) {
		p->c->out[k].type = t->type;
		p->c->out[k].shape = t->shape;
	} else if (p->doing == OM_PREPARING) {
		prepare_gift(p, k, t);
	}
}

const om_tensor *
om_composite_ints(om_composite *p, size_t n, const int64_t *v)
{
	om_tensor *t = OM_NEW(p->c->mem, om_tensor);

	*t = (om_tensor){.type = OM_INT64, .shape = om_shape_of(1, (int64_t[]){(int64_t)n})};
	t->data = om_alloc(p->c->mem, n * sizeof *v + 1);
	if (n)
		memcpy(t->data, v, n * sizeof *v);
	return t;
}

const om_tensor *
om_composite_real(om_composite *p, om_dtype type, double v)
{
	om_tensor *t = OM_NEW(p->c->mem, om_tensor);

	*t = (om_tensor){.type = type, .shape = om_shape_of(0, NULL), .data = om_alloc(p->c->mem, sizeof v)};
	om_put(type, t->data, 0, v);
	return t;
}

const om_tensor *
om_composite_shaped(om_composite *p, const om_tensor *t, size_t n, const int64_t *dims)
{
	return OM_SUBBUFFER(p, "Reshape", OM_PLAINLY, t, om_composite_ints(p, n, dims));
}

void
om_composite_refuse(om_composite *p, om_status st, const char *why)
{
	if (p->st == OM_OK)
		p->st = om_op_fail(p->c->session, st, p->c->op, "%s", why);
}

/* ---- Parts. ---- */

static om_value *
value_of(om_composite *p, const om_tensor *t)
{
	om_value *v = OM_NEW(p->c->mem, om_value);

	v->name = "part";
	v->type = (om_type){.kind = OM_TENSOR, .elem = t->type};
	v->shape = t->shape;
	return v;
}

/* Copies of attributes: recipes keep theirs on the stack. */
static om_attr
kept_attr(om_arena *mem, const om_attr *a)
{
	om_attr kept = *a;

	switch (a->kind) {
	case OM_ATTR_INT: case OM_ATTR_INTS: kept.i = om_memdup(mem, a->i, a->n * sizeof *a->i); break;
	case OM_ATTR_FLOAT: case OM_ATTR_FLOATS: kept.f = om_memdup(mem, a->f, a->n * sizeof *a->f); break;
	case OM_ATTR_STRING: case OM_ATTR_STRINGS: kept.s = om_memdup(mem, a->s, a->n * sizeof *a->s); break;
	default: break;
	}
	return kept;
}

/* The op of a part: it has the name of the composite op, for messages. */
static om_op *
op_of(om_composite *p, const om_opdef *row, int version, const om_attr *attrs, uint32_t nin, const om_tensor *const *in,
	uint32_t nout)
{
	om_op *op = OM_NEW(p->c->mem, om_op);

	*op = *p->c->op;
	op->opdef = row;
	op->domain = "";
	op->version = version;
	for (op->nattr = 0; attrs[op->nattr].name; op->nattr++)
		;
	op->attr = OM_NEWN(p->c->mem, om_attr, (size_t)op->nattr + 1);
	for (uint32_t k = 0; k < op->nattr; k++)
		op->attr[k] = kept_attr(p->c->mem, &attrs[k]);
	op->nin = nin;
	op->nout = nout;
	op->in = OM_NEWN(p->c->mem, om_value *, nin + 1);
	op->out = OM_NEWN(p->c->mem, om_value *, nout + 1);
	for (uint32_t k = 0; k < nin; k++)
		op->in[k] = in[k] ? value_of(p, in[k]) : NULL;
	for (uint32_t k = 0; k < nout; k++)
		op->out[k] = value_of(p, &(om_tensor){.shape = om_shape_unknown()});
	return op;
}

/* Views require no storage. */
static bool
is_view(om_composite *p, const om_op_context *part, uint32_t k, om_view_of *v)
{
	return p->doing != OM_INFERRING && part->op->opdef->view && part->op->opdef->view(part, k, v);
}

static void
count_flops(om_composite *p, const om_op_context *part)
{
	om_cost cost = {(double)om_shape_count(&part->out[0].shape), 0};

	if (part->op->opdef->cost)
		part->op->opdef->cost(part, &cost);
	p->flops += cost.flops;
}

static om_status
prepare_part(om_composite *p, struct om_composite_step *s)
{
	if (p->device)
		return om_composite_device_part(p, s);
	OM_TRY(om_kernel_bind(&s->part, NULL));
	const uint64_t most = om_size_sum(p->used, om_piece_size(om_kernel_workspace(&s->part)));
	p->most = most > p->most ? most : p->most;
	s->scratch = p->used;
	return OM_OK;
}

/* Allocate the outputs or record their views; then count the part or add it as a step, depending on the
 * phase. */
static om_status
take_part(om_composite *p, const om_op_context *part, const om_tensor *const *in)
{
	const uint32_t nin = part->op->nin, nout = part->op->nout;
	struct om_composite_step s = {.part = *part, .is_idle = true};

	s.view = OM_NEWN(p->c->mem, om_view_of, nout);
	s.is_view = OM_NEWN(p->c->mem, bool, nout);
	s.at = OM_NEWN(p->c->mem, uint64_t, nout);
	for (uint32_t k = 0; k < nout && p->st == OM_OK; k++) {
		s.is_view[k] = is_view(p, part, k, &s.view[k]);
		if (!s.is_view[k])
			s.at[k] = alloc_scratch(p, &part->out[k]);
		s.is_idle &= s.is_view[k];
	}
	if (p->st != OM_OK || p->doing == OM_INFERRING)
		return p->st;
	if (p->doing == OM_COUNTING) {
		if (!s.is_idle)
			count_flops(p, part);
		return OM_OK;
	}
	s.from = om_memdup(p->c->mem, in, nin * sizeof *in);
	for (uint32_t k = 0; k < nout && p->device; k++)
		if (s.is_view[k])
			om_composite_device_view(p, &part->out[k], in[s.view[k].in], s.view[k].offset);
	if (!s.is_idle)
		OM_TRY(prepare_part(p, &s));
	*om_composite_add_step(p) = s;
	return OM_OK;
}

void
om_part_run(om_composite *p, const char *type, int version, const om_attr *attrs, uint32_t nin,
	const om_tensor *const *in, uint32_t nout, const om_tensor **out)
{
	const om_opdef *row = p->c->op->operators->find("", type, version);
	om_tensor *made = OM_NEWN(p->c->mem, om_tensor, nout), *from = OM_NEWN(p->c->mem, om_tensor, nin + 1);

	for (uint32_t k = 0; k < nout; k++) {
		made[k].shape = om_shape_unknown();
		out[k] = &made[k];
	}
	if (p->st != OM_OK)
		return;
	for (uint32_t k = 0; k < nin; k++) {
		if (!in[k] && k < row->min_in) {
			om_composite_refuse(p, OM_INVALID, "a required input is omitted");
			return;
		}
		if (in[k])
			from[k] = *in[k];
	}
	om_op_context part = *p->c;
	part.op = op_of(p, row, version, attrs, nin, in, nout);
	part.in = from;
	part.out = made;
	part.out_type = p->doing == OM_INFERRING ? OM_NEWN(p->c->mem, om_type, nout) : NULL;
	part.scratch = NULL;
	part.kernel = NULL;
	part.state = NULL;
	p->st = om_opdef_check_types(row, &part);
	if (p->st == OM_OK)
		p->st = row->infer(&part);
	if (p->st == OM_OK)
		p->st = take_part(p, &part, in);
}

const om_tensor *
om_part_one(om_composite *p, const char *type, int version, const om_attr *attrs, uint32_t nin,
	const om_tensor *const *in)
{
	const om_tensor *out;

	om_part_run(p, type, version, attrs, nin, in, 1, &out);
	return out;
}

static const om_tensor *
with_channels(om_composite *p, const om_tensor *t, bool last)
{
	const int rank = t->shape.rank;
	int64_t perm[OM_MAX_RANK];

	if (rank < 3)
		return t;
	for (int k = 0; k < rank; k++)
		perm[k] = k == 0 ? 0 : last ? k == rank - 1 ? 1 : k + 1 : k == 1 ? rank - 1 : k - 1;
	return OM_SUBBUFFER(p, "Transpose", OM_WITH(OM_LIST("perm", perm, (size_t)rank)), t);
}

const om_tensor *
om_composite_channels_first(om_composite *p, const om_tensor *t)
{
	return with_channels(p, t, false);
}

const om_tensor *
om_composite_channels_last(om_composite *p, const om_tensor *t)
{
	return with_channels(p, t, true);
}
