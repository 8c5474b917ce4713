/* SPDX-License-Identifier: Apache-2.0 */
/* shard: a training step for one of several ranks, each of which has a part of the batch.
 *
 * Gradients are what the update reads of the forward and the backward pass, and depends on samples.  Each is multiplied with
 * the share of the batch that this rank has, and summed over ranks: then it is the gradient of the mean over the whole batch.
 * Gradients are put together into buckets, in the order in which the step computes them; a bucket is reduced after its last
 * gradient.  It is a Concat and a Split around an AllReduce, so that the planner computes gradients where the bucket is,
 * and the update reads them there.
 *
 * States that the forward pass computes, as running means, and the loss are means over ranks, too.
 *
 * Modes other than `data` divide the update among ranks, too (Rajbhandari and others, 2020).  Ops of the update whose
 * output elements depend on one element each are computed on the part of a tensor that a rank has: n elements, padded to a
 * multiple of the number of ranks, in equal parts by rank.  States that only such ops read are stored in parts.  Everything else that
 * reads a part gets the whole tensor from an AllGather before it, which lives as long as it is read. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "host/option.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "ir/type.h"
#include "onnxmem/builder.h"
#include "onnxmem/pass.h"
#include "opdef/batch_mean.h"
#include "opdef/dist_domain.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"

/* What is divided: each mode divides what those before it do. */
enum mode { DATA, STATE, GRADIENT, PARAMETER, NMODE };

/* A parameter that is gathered before the first op of a phase that reads it. */
struct ahead {
	om_value *v;
	om_phase phase;
	om_op *first;
	uint32_t place;          /* of `first` in the step */
	om_value *transfer;
};

struct shard {
	om_run *r;
	om_prog *p;
	enum mode mode;
	int64_t ranks, rank, ordered;
	double weight;
	uint64_t bucket, overlap;
	bool *depends;           /* by value id: on samples */
	/* Of modes other than DATA, for the values and ops that the step came with: */
	uint32_t nvalue, nop;
	om_shape *whole;         /* by value id: the shape of a tensor that is divided */
	bool *is_part;           /* by value id: computed, or stored, in parts */
	bool *by_parts;          /* by op id: computes parts */
	uint32_t *place;         /* by op id of the graph: where it came */
	struct ahead *ahead;     /* with an overlap: what is gathered while the step computes */
	size_t nahead, capahead;
};

struct bucket {
	om_value **v;
	size_t n, cap;
	uint64_t bytes;
	bool is_scattered;
	size_t index;            /* as it was made */
	uint32_t place;          /* of `start` in the step */
	om_op *start, *end;      /* its sum is started before `start`, and there at `end`; NULL: the end of the step */
	om_value *sum;
};

struct buckets {
	struct bucket *v;
	size_t n, cap;
};

/* ---- What depends on samples. ---- */

static bool
is_sample(const om_prog *p, uint32_t k)
{
	const om_value *v = p->first->param[k];

	return !om_prog_is_state(p, k) && !v->data && strcmp(v->name, "lr") != 0;
}

static bool
block_depends(const struct shard *s, const om_block *b)
{
	for (const om_op *op = b->first; op; op = op->next) {
		for (uint32_t k = 0; k < op->nin; k++)
			if (op->in[k] && s->depends[op->in[k]->id])
				return true;
		for (uint32_t k = 0; k < op->nbody; k++)
			if (block_depends(s, op->body[k]))
				return true;
	}
	for (uint32_t k = 0; k < b->nresult; k++)
		if (s->depends[b->result[k]->id])
			return true;
	return false;
}

static bool
op_depends(const struct shard *s, const om_op *op)
{
	bool any = false;

	if (op->is_folded || (op->opdef && op->opdef->flags & OM_SHAPE_ONLY))
		return false;
	for (uint32_t k = 0; k < op->nin; k++)
		any |= op->in[k] && s->depends[op->in[k]->id];
	for (uint32_t k = 0; k < op->nbody && !any; k++)
		any = block_depends(s, op->body[k]);
	return any;
}

static void
find_dependent(struct shard *s)
{
	const om_block *graph = s->p->first;

	s->depends = OM_NEWN(s->r->scratch, bool, s->p->nvalue);
	for (uint32_t k = 0; k < graph->nparam; k++)
		s->depends[graph->param[k]->id] = is_sample(s->p, k);
	for (const om_op *op = graph->first; op; op = op->next)
		for (uint32_t k = 0; k < op->nout && op_depends(s, op); k++)
			if (op->out[k])
				s->depends[op->out[k]->id] = true;
}

/* ---- Gradients. ---- */

static bool
is_state_result(const om_prog *p, uint32_t result)
{
	for (uint32_t k = 0; k < p->nio_alias; k++)
		if (p->io_alias[k].result == result)
			return true;
	return false;
}

/* Does the update read it, or is it a state of the next step? */
static bool
is_for_update(const struct shard *s, const om_use *u)
{
	const om_op *op = om_use_op_in(s->p->first, u);

	if (op)
		return op->phase == OM_UPDATE;
	return u->block == s->p->first && is_state_result(s->p, u->index);
}

static bool
is_gradient(const struct shard *s, const om_value *v)
{
	if (!s->depends[v->id] || (v->def && v->def->phase == OM_UPDATE))
		return false;
	for (const om_use *u = v->first_use; u; u = u->next)
		if (is_for_update(s, u))
			return true;
	return false;
}

static om_status
check_gradient(const struct shard *s, const om_value *v)
{
	const om_dtype t = om_type_elem(&v->type);
	char shape[256];

	if (v->def && v->def->phase != OM_FORWARD && v->def->phase != OM_BACKWARD)
		return om_op_fail(s->r->session, OM_USAGE, v->def, "does not declare whether it is the forward pass, the backward pass or the "
			"update (org.onnxmem.phase), so that %s may be a gradient or not", v->name);
	if (!v->def)
		return om_fail(s->r->session, OM_UNSUPPORTED, "the update reads the samples %s themselves, and not through a gradient",
			v->name);
	if (!om_dtype_is_float(t) || om_dtype_bits(t) < 16 || !om_shape_is_known(&v->shape))
		return om_fail(s->r->session, OM_UNSUPPORTED, "%s %s %s depends on the samples and is read by the update, but it has no mean "
			"over ranks: it must be floating-point, of known shape", v->name, om_dtype_text(t),
			om_shape_text(&v->shape, shape, sizeof shape));
	return OM_OK;
}

static om_status
check_loss_op(const struct shard *s, const om_op *op)
{
	if (om_op_mean_is_of_samples(op))
		return OM_OK;
	return om_op_fail(s->r->session, OM_UNSUPPORTED, op, "its mean is weighted by the labels of a batch, so that it is not the mean "
		"of those of ranks");
}

/* ---- What is divided. ---- */

static int64_t
part_size(const struct shard *s, const om_shape *whole)
{
	return (om_shape_count(whole) + s->ranks - 1) / s->ranks;
}

static bool
is_state_param(const om_prog *p, const om_value *v)
{
	for (uint32_t k = 0; k < p->nio_alias; k++)
		if (p->first->param[p->io_alias[k].param] == v)
			return true;
	return false;
}

static bool
is_number(const om_value *v)
{
	return om_shape_is_known(&v->shape) && v->shape.rank <= 1 && om_shape_count(&v->shape) == 1;
}

/* Do its inputs allow that it is computed in parts, and is one of them a gradient, a state, or what was computed of them? */
static bool
divides_inputs(const struct shard *s, const om_op *op, const om_shape *whole)
{
	bool any = false;

	for (uint32_t k = 0; k < op->nin; k++) {
		const om_value *v = op->in[k];
		if (!v || is_number(v))
			continue;
		if (!om_shape_equal(&v->shape, whole))
			return false;
		any |= s->is_part[v->id] || is_gradient(s, v) || is_state_param(s->p, v);
	}
	return any;
}

static bool
is_divided(const struct shard *s, const om_op *op)
{
	if (op->phase != OM_UPDATE || !op->opdef || !(op->opdef->flags & OM_POINTWISE) || op->opdef->flags & OM_RANDOM
	    || op->is_folded || op->nbody || op->nout != 1 || !op->out[0])
		return false;
	const om_value *v = op->out[0];
	return om_shape_is_known(&v->shape) && om_shape_count(&v->shape) >= s->ranks && om_type_elem(&v->type) != OM_STRING
	    && om_dtype_bits(om_type_elem(&v->type)) >= 8 && divides_inputs(s, op, &v->shape);
}

/* NULL: what reads it is no op of the graph. */
static om_op *
reader_of(const struct shard *s, const om_use *u)
{
	return om_use_op_in(s->p->first, u);
}

static bool
reads_parts(const struct shard *s, const om_use *u)
{
	return u->op && u->op->id < s->nop && s->by_parts[u->op->id];
}

/* A state is stored in parts if its next value is computed so; one that something else reads only if parameters are divided. */
static bool
is_divided_state(const struct shard *s, const om_value *v, const om_value *next)
{
	if (!s->is_part[next->id] || !om_shape_equal(&v->shape, &next->shape) || om_type_elem(&v->type) != om_type_elem(&next->type))
		return false;
	for (const om_use *u = v->first_use; u && s->mode != PARAMETER; u = u->next)
		if (!reads_parts(s, u))
			return false;
	return true;
}

static void
find_parts(struct shard *s)
{
	const om_block *graph = s->p->first;
	uint32_t n = 0;

	s->nvalue = s->p->nvalue;
	s->nop = s->p->nop;
	s->whole = OM_NEWN(s->r->scratch, om_shape, s->nvalue);
	s->is_part = OM_NEWN(s->r->scratch, bool, s->nvalue);
	s->by_parts = OM_NEWN(s->r->scratch, bool, s->nop);
	s->place = OM_NEWN(s->r->scratch, uint32_t, s->nop);
	for (uint32_t k = 0; k < s->nvalue; k++)
		s->whole[k] = s->p->values[k]->shape;
	for (const om_op *op = graph->first; op; op = op->next) {
		s->place[op->id] = n++;
		if (s->mode != DATA && is_divided(s, op))
			s->by_parts[op->id] = s->is_part[op->out[0]->id] = true;
	}
	for (uint32_t k = 0; k < s->p->nio_alias; k++) {
		const om_value *v = graph->param[s->p->io_alias[k].param];
		s->is_part[v->id] = is_divided_state(s, v, graph->result[s->p->io_alias[k].result]);
	}
}

/* ---- Building. ---- */

static om_value *
list_of(const struct shard *s, const char *stem, size_t n, const int64_t *v)
{
	const int64_t length = (int64_t)n;
	const om_tensor t = {.type = OM_INT64, .shape = om_shape_of(1, &length), .data = om_memdup(s->p->mem, v, n * sizeof *v)};

	return om_const_new(s->p, s->p->first, om_value_fresh(s->p, s->p->first, stem)->name, om_memdup(s->p->mem, &t, sizeof t));
}

/* The share of this rank, as a number of the type of what it is multiplied with. */
static om_value *
weight_of(const struct shard *s, om_dtype type)
{
	om_tensor t = {.type = type, .shape = om_shape_of(0, NULL), .data = om_alloc(s->p->mem, 8)};

	om_put(type, t.data, 0, s->weight);
	return om_const_new(s->p, s->p->first, om_value_fresh(s->p, s->p->first, "share")->name, om_memdup(s->p->mem, &t, sizeof t));
}

/* An op before `place`, or at the end if that is NULL, after what computes its inputs; `*st` is that of its inference. */
static om_op *
build(const struct shard *s, om_op *place, const char *domain, const char *type, uint32_t nin, om_value *const *in,
	uint32_t nout, const char *stem, const om_attr *attr, om_status *st)
{
	om_op *op = om_op_new(s->p, domain, type, *domain ? 1 : 0, nin, nout);

	op->phase = OM_BACKWARD;
	for (uint32_t k = 0; k < nin; k++)
		om_op_set_in(op, k, in[k]);
	for (uint32_t k = 0; k < nout; k++)
		om_op_set_out(op, k, om_value_fresh(s->p, s->p->first, stem));
	for (; attr && attr->name; attr++)
		om_op_add_attr(s->p, op, attr);
	om_op_place(s->p->first, place, op);
	if (*st == OM_OK && !op->opdef)
		*st = om_op_fail(s->r->session, OM_UNSUPPORTED, op, "does not exist in the opset of the step");
	if (*st == OM_OK)
		*st = om_op_infer(s->r->session, s->p, op);
	return op;
}

/* A sum over ranks before `place`, which is there when it was waited for, if it is only started. */
static om_value *
begin_sum(const struct shard *s, om_op *place, const char *type, om_value *v, const char *stem, bool only_starts, om_status *st)
{
	const om_attr attr[] = {OM_MAKE_INT("ranks", s->ranks), OM_MAKE_INT("ordered", s->ordered),
		only_starts ? OM_MAKE_INT(OM_ATTR_ASYNC, 1) : (om_attr){0}, {0}};

	if (only_starts)
		stem = om_printf(s->r->scratch, "%s_transfer", stem);
	return build(s, place, OM_DIST_DOMAIN, type, 1, &v, 1, stem, attr, st)->out[0];
}

/* What a ReduceScatter reads is kept until then. */
static om_value *
end_sum(const struct shard *s, om_op *place, om_value *transfer, const char *stem, om_status *st)
{
	om_op *start = transfer->def;
	om_value *in[] = {transfer, start->in[0]};

	return build(s, place, OM_DIST_DOMAIN, "Wait", strcmp(start->type, "AllReduce") == 0 ? 1 : 2, in, 1, stem, NULL, st)->out[0];
}

/* The share of this rank of `v`. */
static om_value *
share(const struct shard *s, om_op *place, om_value *v, const char *stem, om_status *st)
{
	om_value *in[2] = {v, NULL};

	if (s->weight == 1)
		return v;
	in[1] = weight_of(s, om_type_elem(&v->type));
	return build(s, place, "", "Mul", 2, in, 1, stem, NULL, st)->out[0];
}

/* The mean over ranks of `v`, computed before `place`; if it is only started, end_sum() gives it. */
static om_value *
reduce(const struct shard *s, om_op *place, om_value *v, bool only_starts, om_status *st)
{
	om_value *part = share(s, place, v, om_printf(s->r->scratch, "%s_share", v->name), st);

	return begin_sum(s, place, "AllReduce", part, om_printf(s->r->scratch, "%s_mean", v->name), only_starts, st);
}

/* `v` has `n` elements in its first dim, and more of zero up to `to`. */
static om_value *
pad(const struct shard *s, om_op *place, om_value *v, int64_t n, int64_t to, om_status *st)
{
	const int64_t pads[] = {0, to - n};
	om_value *in[2] = {v, NULL};

	if (n == to)
		return v;
	in[1] = list_of(s, "pads", 2, pads);
	return build(s, place, "", "Pad", 2, in, 1, om_printf(s->r->scratch, "%s_padded", v->name), NULL, st)->out[0];
}

static om_value *
reshape(const struct shard *s, om_op *place, om_value *v, const char *stem, size_t rank, const int64_t *dim, om_status *st)
{
	om_value *in[2] = {v, list_of(s, "shape", rank, dim)};

	return build(s, place, "", "Reshape", 2, in, 1, stem, NULL, st)->out[0];
}

static om_value *
slice(const struct shard *s, om_op *place, om_value *v, const char *stem, int64_t from, int64_t to, om_status *st)
{
	om_value *in[3] = {v, list_of(s, "from", 1, &from), list_of(s, "to", 1, &to)};

	return build(s, place, "", "Slice", 3, in, 1, stem, NULL, st)->out[0];
}

/* All of `v`, flat, with the elements of zero after it that make equal parts. */
static om_value *
flat_of(const struct shard *s, om_op *place, om_value *v, const om_shape *whole, om_status *st)
{
	const int64_t all = -1, n = om_shape_count(whole);
	om_value *flat = reshape(s, place, v, om_printf(s->r->scratch, "%s_flat", v->name), 1, &all, st);

	return pad(s, place, flat, n, part_size(s, whole) * s->ranks, st);
}

/* What was built before `place`, after `last`, belongs to its phase. */
static void
give_phase(const struct shard *s, const om_op *place, om_op *last)
{
	for (om_op *op = last ? last->next : s->p->first->first; place && op && op != place; op = op->next)
		op->phase = place->phase;
}

/* The part of this rank of the whole `v`. */
static om_value *
part_of(const struct shard *s, om_op *place, om_value *v, om_status *st)
{
	const int64_t size = part_size(s, &v->shape);
	om_op *last = place->prev;
	om_value *flat = flat_of(s, place, v, &v->shape, st);
	om_value *part = slice(s, place, flat, om_printf(s->r->scratch, "%s_part", v->name), size * s->rank, size * (s->rank + 1), st);

	give_phase(s, place, last);
	return part;
}

/* All parts of a tensor, before `place`; with `only_starts`, end_sum() gives them. */
static om_value *
begin_gather(const struct shard *s, om_op *place, om_value *part, bool only_starts, om_status *st)
{
	const om_attr attr[] = {OM_MAKE_INT("ranks", s->ranks), only_starts ? OM_MAKE_INT(OM_ATTR_ASYNC, 1) : (om_attr){0}, {0}};
	om_op *op = build(s, place, OM_DIST_DOMAIN, "AllGather", 1, &part, 1,
		om_printf(s->r->scratch, only_starts ? "%s_transfer" : "%s_parts", part->name), attr, st);

	op->phase = place ? place->phase : OM_BACKWARD;
	return op->out[0];
}

/* The whole tensor, of all its parts `v`. */
static om_value *
end_gather(const struct shard *s, om_op *place, om_value *v, const om_value *part, const om_shape *whole, om_status *st)
{
	const int64_t n = om_shape_count(whole);
	om_op *last = place ? place->prev : NULL;

	if (part_size(s, whole) * s->ranks != n)
		v = slice(s, place, v, om_printf(s->r->scratch, "%s_flat", part->name), 0, n, st);
	om_count(s->r, "gathers", 1);
	v = reshape(s, place, v, om_printf(s->r->scratch, "%s_whole", part->name), (size_t)whole->rank, whole->dim, st);
	give_phase(s, place, last);
	return v;
}

/* The whole tensor, of all parts. */
static om_value *
gather(const struct shard *s, om_op *place, om_value *part, const om_shape *whole, om_status *st)
{
	return end_gather(s, place, begin_gather(s, place, part, false, st), part, whole, st);
}

/* What the update reads of `v` is `by`. */
static void
replace(const struct shard *s, om_value *v, om_value *by)
{
	for (om_use *u = v->first_use, *next; u; u = next) {
		next = u->next;
		if (!is_for_update(s, u))
			continue;
		if (u->op)
			om_op_set_in(u->op, u->index, by);
		else
			om_block_set_result(s->p->first, u->index, by);
	}
}

/* Results keep their names. */
static void
give_name(const struct shard *s, om_value *v, om_value *to)
{
	const char *name = v->name;

	om_value_rename(v, om_value_fresh(s->p, s->p->first, om_printf(s->r->scratch, "%s_of_rank", name))->name);
	om_value_rename(to, name);
}

static bool
is_result(const om_prog *p, const om_value *v)
{
	for (uint32_t k = 0; k < p->first->nresult; k++)
		if (p->first->result[k] == v)
			return true;
	return false;
}

static void
put(const struct shard *s, om_value *v, om_value *by)
{
	const bool was_result = is_result(s->p, v);

	replace(s, v, by);
	if (was_result && !is_result(s->p, v))
		give_name(s, v, by);
}

/* The gradients of a bucket, each a part of it, one after the other. */
static om_value *
join(const struct shard *s, const struct bucket *b, om_status *st)
{
	const om_attr axis[] = {OM_MAKE_INT("axis", 0), {0}};
	om_value **flat = OM_NEWN(s->r->scratch, om_value *, b->n);
	const int64_t all = -1;

	if (b->n == 1)
		return b->v[0];
	om_value *any = list_of(s, "flat", 1, &all);
	for (size_t k = 0; k < b->n; k++) {
		om_value *in[2] = {b->v[k], any};
		flat[k] = build(s, b->start, "", "Reshape", 2, in, 1, om_printf(s->r->scratch, "%s_flat", b->v[k]->name), NULL,
			st)->out[0];
	}
	return build(s, b->start, "", "Concat", (uint32_t)b->n, flat, 1, "bucket", axis, st)->out[0];
}

/* What the update reads of them are parts of the sum. */
static void
part(const struct shard *s, const struct bucket *b, om_status *st)
{
	const om_attr axis[] = {OM_MAKE_INT("axis", 0), {0}};
	int64_t *size = OM_NEWN(s->r->scratch, int64_t, b->n);

	if (b->n == 1) {
		put(s, b->v[0], b->sum);
		return;
	}
	for (size_t k = 0; k < b->n; k++)
		size[k] = om_shape_count(&b->v[k]->shape);
	om_value *in[2] = {b->sum, list_of(s, "sizes", b->n, size)};
	om_op *parts = build(s, b->end, "", "Split", 2, in, (uint32_t)b->n, "part", axis, st);
	for (size_t k = 0; k < b->n; k++) {
		const om_shape *shape = &b->v[k]->shape;
		om_value *at[2] = {parts->out[k], list_of(s, "shape", (size_t)shape->rank, shape->dim)};
		put(s, b->v[k], build(s, b->end, "", "Reshape", 2, at, 1, om_printf(s->r->scratch, "%s_mean", b->v[k]->name),
			NULL, st)->out[0]);
	}
}

/* What reads a part of a gradient, and what reads the whole. */
static void
put_part(const struct shard *s, om_value *v, om_value *part, om_status *st)
{
	om_value *whole = NULL;

	for (om_use *u = v->first_use, *next; u; u = next) {
		next = u->next;
		if (reads_parts(s, u))
			om_op_set_in(u->op, u->index, part);
		else if (!whole && is_for_update(s, u))
			whole = gather(s, part->def->next, part, &v->shape, st);
	}
	if (whole)
		put(s, v, whole);
}

/* The parts of all gradients in a bucket, which is [ranks, elements]: a row is what a rank gets. */
static om_value *
join_rows(const struct shard *s, const struct bucket *b, om_status *st)
{
	const om_attr axis[] = {OM_MAKE_INT("axis", 1), {0}};
	om_value **row = OM_NEWN(s->r->scratch, om_value *, b->n);

	for (size_t k = 0; k < b->n; k++) {
		const int64_t dim[] = {s->ranks, part_size(s, &b->v[k]->shape)};
		row[k] = reshape(s, b->start, flat_of(s, b->start, b->v[k], &b->v[k]->shape, st),
			om_printf(s->r->scratch, "%s_rows", b->v[k]->name), 2, dim, st);
	}
	return b->n == 1 ? row[0] : build(s, b->start, "", "Concat", (uint32_t)b->n, row, 1, "bucket", axis, st)->out[0];
}

static void
part_rows(const struct shard *s, const struct bucket *b, om_status *st)
{
	const om_attr axis[] = {OM_MAKE_INT("axis", 1), {0}};
	int64_t *size = OM_NEWN(s->r->scratch, int64_t, b->n);

	for (size_t k = 0; k < b->n; k++)
		size[k] = part_size(s, &b->v[k]->shape);
	om_value *in[2] = {b->sum, list_of(s, "sizes", b->n, size)};
	om_op *parts = b->n == 1 ? b->sum->def : build(s, b->end, "", "Split", 2, in, (uint32_t)b->n, "part", axis, st);
	for (size_t k = 0; k < b->n; k++)
		put_part(s, b->v[k], reshape(s, b->end, parts->out[k], om_printf(s->r->scratch, "%s_part", b->v[k]->name), 1, &size[k],
			st), st);
}

/* ---- When the sums of buckets are started, and waited for. ---- */

/* UINT32_MAX: the end of the step. */
static uint32_t
place_of(const struct shard *s, const om_op *op)
{
	return op ? s->place[op->id] : UINT32_MAX;
}

/* The first op of the graph that reads one of its gradients for the update. */
static om_op *
first_reader(const struct shard *s, const struct bucket *b)
{
	om_op *first = NULL;

	for (size_t k = 0; k < b->n; k++)
		for (const om_use *u = b->v[k]->first_use; u; u = u->next) {
			om_op *op = is_for_update(s, u) ? reader_of(s, u) : NULL;
			if (op && place_of(s, op) < place_of(s, first))
				first = op;
		}
	return first;
}

static int
by_start(const void *a, const void *b)
{
	const struct bucket *one = a, *two = b;

	if (one->place != two->place)
		return one->place > two->place ? 1 : -1;
	return (one->index > two->index) - (one->index < two->index);
}

/* After the last gradient; without overlap, it is waited for there.  With an overlap of n, it ends after the start of the n-th bucket that comes later, but before
 * the first op that reads it. */
static void
find_places(struct shard *s, struct buckets *all)
{
	for (size_t k = 0; k < all->n; k++) {
		struct bucket *b = &all->v[k];
		b->start = b->end = b->v[b->n - 1]->def->next;
		b->place = place_of(s, b->start);
		b->index = k;
	}
	if (!s->overlap)
		return;
	qsort(all->v, all->n, sizeof *all->v, by_start);
	for (size_t k = 0; k < all->n; k++) {
		struct bucket *b = &all->v[k];
		om_op *later = s->overlap < all->n - k ? all->v[k + s->overlap].start : NULL, *reader = first_reader(s, b);
		b->end = place_of(s, reader) < place_of(s, later) ? reader : later;
	}
}

static void
begin_bucket(const struct shard *s, struct bucket *b, om_status *st)
{
	const bool only_starts = b->end != b->start;

	if (b->is_scattered)
		b->sum = begin_sum(s, b->start, "ReduceScatter", share(s, b->start, join_rows(s, b, st), "bucket_share", st), "bucket_mean",
			only_starts, st);
	else
		b->sum = reduce(s, b->start, join(s, b, st), only_starts, st);
	om_count(s->r, "buckets", 1);
	om_count(s->r, "gradients", b->n);
	om_count(s->r, "bytes", b->bytes);
}

static void
end_bucket(const struct shard *s, struct bucket *b, om_status *st)
{
	if (b->end != b->start)
		b->sum = end_sum(s, b->end, b->sum, "bucket_mean", st);
	(b->is_scattered ? part_rows : part)(s, b, st);
}

/* All begin before one ends: what is built before an op comes after what was built there earlier. */
static om_status
sum_buckets(struct shard *s, struct buckets *all)
{
	om_status st = OM_OK;

	find_places(s, all);
	for (size_t k = 0; k < all->n; k++)
		begin_bucket(s, &all->v[k], &st);
	for (size_t k = 0; k < all->n && st == OM_OK; k++)
		end_bucket(s, &all->v[k], &st);
	return st;
}

static bool
has_parts(const struct shard *s, const om_value *v)
{
	for (const om_use *u = v->first_use; u; u = u->next)
		if (reads_parts(s, u))
			return true;
	return false;
}

/* Gradients in the order of the ops that compute them, those of a type together. */
static void
find_buckets(const struct shard *s, om_value **grad, size_t n, bool is_scattered, struct buckets *all)
{
	struct bucket *b = NULL;

	for (size_t k = 0; k < n; k++) {
		if (!b || b->bytes >= s->bucket || om_type_elem(&grad[k]->type) != om_type_elem(&b->v[0]->type)) {
			OM_PUSH(s->r->scratch, all->v, all->n, all->cap, (struct bucket){.is_scattered = is_scattered});
			b = &all->v[all->n - 1];
		}
		b->bytes += om_value_bytes(grad[k]);
		OM_PUSH(s->r->scratch, b->v, b->n, b->cap, grad[k]);
	}
}

/* Those whose parts are enough are scattered, if gradients are divided. */
static om_status
sum_gradients(struct shard *s, om_value **grad, size_t n)
{
	om_value **some = OM_NEWN(s->r->scratch, om_value *, n + 1);
	struct buckets all = {0};
	size_t nsome = 0, left = 0;

	for (size_t k = 0; k < n; k++) {
		if (s->mode >= GRADIENT && has_parts(s, grad[k]))
			some[nsome++] = grad[k];
		else
			grad[left++] = grad[k];
	}
	find_buckets(s, some, nsome, true, &all);
	find_buckets(s, grad, left, false, &all);
	return sum_buckets(s, &all);
}

/* ---- The update, in parts. ---- */

/* Initial elements of the part of this rank. */
static void
divide_data(const struct shard *s, om_value *v)
{
	const om_tensor *was = v->data;
	const uint64_t size = om_dtype_bits(om_type_elem(&v->type)) / 8;
	const int64_t n = om_shape_count(&s->whole[v->id]), part = v->shape.dim[0], from = part * s->rank;

	if (!was)
		return;
	om_tensor *now = om_memdup(s->p->mem, was, sizeof *was);
	now->shape = v->shape;
	v->data = now;
	if (!was->data || was->splat)
		return;
	now->data = OM_NEWN(s->p->mem, unsigned char, (size_t)part * size);
	if (from < n)
		memcpy(now->data, (const unsigned char *)was->data + (uint64_t)from * size,
			(uint64_t)(n - from < part ? n - from : part) * size);
}

/* What reads only the shape of a state gets a constant of that shape. */
static om_value *
shape_only(const struct shard *s, const om_value *v)
{
	const om_tensor t = {.type = om_type_elem(&v->type), .shape = s->whole[v->id], .splat = true,
		.data = OM_NEWN(s->p->mem, unsigned char, 16)};

	return om_const_new(s->p, s->p->first, om_value_fresh(s->p, s->p->first, "shape_of")->name, om_memdup(s->p->mem, &t, sizeof t));
}

static bool
reads_shape(const om_op *op)
{
	return op && (op->is_folded || (op->opdef && op->opdef->flags & OM_SHAPE_ONLY));
}

/* The op of this phase that reads it whole; NULL: there is none. */
static om_op *
whole_reader(const struct shard *s, const om_use *u, om_phase phase)
{
	om_op *op = reads_parts(s, u) || reads_shape(u->op) ? NULL : reader_of(s, u);

	return op && op->id < s->nop && op->phase == phase ? op : NULL;
}

/* What reads all of a tensor in a phase reads `whole`. */
static void
use_whole(const struct shard *s, const om_value *v, om_phase phase, om_value *whole)
{
	for (om_use *u = v->first_use, *next; u; u = next) {
		next = u->next;
		if (whole_reader(s, u, phase))
			om_op_set_in(u->op, u->index, whole);
	}
}

/* The ops of a phase that read all of a tensor of which ranks have parts: it is gathered before the first of them. */
static void
gather_for(struct shard *s, om_value *v, om_phase phase, om_status *st)
{
	om_op *first = NULL, *op;

	for (const om_use *u = v->first_use; u; u = u->next)
		if ((op = whole_reader(s, u, phase)) && (!first || s->place[op->id] < s->place[first->id]))
			first = op;
	if (!first)
		return;
	if (s->overlap && !v->def && phase != OM_UPDATE) {
		OM_PUSH(s->r->scratch, s->ahead, s->nahead, s->capahead, ((struct ahead){.v = v, .phase = phase, .first = first}));
		return;
	}
	use_whole(s, v, phase, gather(s, first, v, &s->whole[v->id], st));
}

static int
by_reader(const void *a, const void *b)
{
	const struct ahead *one = a, *two = b;

	if (one->place != two->place)
		return one->place > two->place ? 1 : -1;
	return (one->v->id > two->v->id) - (one->v->id < two->v->id);
}

/* Parameters that are gathered while the step computes.  Those of one op are started before the N-th op before it that is the first to read some. */
static void
gather_ahead(const struct shard *s, om_status *st)
{
	om_op **reader = OM_NEWN(s->r->scratch, om_op *, s->nahead + 1);
	size_t n = 0;

	reader[0] = s->p->first->first;
	for (size_t k = 0; k < s->nahead; k++)
		s->ahead[k].place = s->place[s->ahead[k].first->id];
	qsort(s->ahead, s->nahead, sizeof *s->ahead, by_reader);
	for (size_t k = 0; k < s->nahead; k++) {
		struct ahead *a = &s->ahead[k];
		if (k == 0 || a->first != s->ahead[k - 1].first)
			reader[++n] = a->first;
		a->transfer = begin_gather(s, reader[n > s->overlap ? n - s->overlap : 0], a->v, true, st);
	}
	for (size_t k = 0; k < s->nahead && *st == OM_OK; k++) {
		const struct ahead *a = &s->ahead[k];
		om_value *parts = end_sum(s, a->first, a->transfer, om_printf(s->r->scratch, "%s_parts", a->v->name), st);
		parts->def->phase = a->phase;
		use_whole(s, a->v, a->phase, end_gather(s, a->first, parts, a->v, &s->whole[a->v->id], st));
	}
}

/* Is result `k` the next value of a state of which ranks have parts? */
static bool
is_part_result(const struct shard *s, uint32_t k)
{
	for (uint32_t i = 0; i < s->p->nio_alias; i++)
		if (s->p->io_alias[i].result == k)
			return s->is_part[s->p->first->param[s->p->io_alias[i].param]->id];
	return false;
}

/* The state that result `k` is the next value of; NULL: there is none. */
static om_value *
state_of(const struct shard *s, uint32_t k)
{
	for (uint32_t i = 0; i < s->p->nio_alias; i++)
		if (s->p->io_alias[i].result == k)
			return s->p->first->param[s->p->io_alias[i].param];
	return NULL;
}

/* Result `k`, gathered of the parts `v`: over the state that it replaces, if that has no room to spare. */
static om_value *
gather_result(const struct shard *s, om_value *v, uint32_t k, om_status *st)
{
	const om_attr attr[] = {OM_MAKE_INT("ranks", s->ranks), {0}};
	const om_shape *whole = &s->whole[v->id];
	om_op *place = v->def ? v->def->next : NULL;
	om_value *in[2] = {v, state_of(s, k)};

	if (!in[1] || !om_shape_equal(&in[1]->shape, whole) || part_size(s, whole) * s->ranks != om_shape_count(whole)
	    || om_type_elem(&in[1]->type) != om_type_elem(&v->type))
		return gather(s, place, v, whole, st);
	om_value *y = build(s, place, OM_DIST_DOMAIN, "AllGather", 2, in, 1, om_printf(s->r->scratch, "%s_whole", v->name), attr,
		st)->out[0];
	y->def->phase = OM_UPDATE;
	om_count(s->r, "gathers", 1);
	return y;
}

/* Results are whole, except for states of which ranks have parts. */
static void
gather_results(const struct shard *s, om_value *v, om_status *st)
{
	om_value *whole = NULL;

	for (uint32_t k = 0; k < s->p->first->nresult; k++) {
		if (s->p->first->result[k] != v || is_part_result(s, k))
			continue;
		if (!whole)
			whole = gather_result(s, v, k, st);
		om_block_set_result(s->p->first, k, whole);
	}
	if (whole && !is_result(s->p, v))
		give_name(s, v, whole);
}

static void
give_wholes(struct shard *s, om_value *v, om_status *st)
{
	for (om_use *u = v->first_use, *next; u; u = next) {
		next = u->next;
		if (reads_shape(u->op))
			om_op_set_in(u->op, u->index, shape_only(s, v));
	}
	for (om_phase phase = OM_NO_PHASE; phase <= OM_UPDATE; phase++)
		gather_for(s, v, phase, st);
	gather_results(s, v, st);
}

static void
divide_states(const struct shard *s)
{
	for (uint32_t k = 0; k < s->p->first->nparam; k++) {
		om_value *v = s->p->first->param[k];
		if (!s->is_part[v->id])
			continue;
		const int64_t part = part_size(s, &v->shape);
		om_count(s->r, "states", 1);
		v->shape = om_shape_of(1, &part);
		v->is_declared = false;
		divide_data(s, v);
	}
}

/* Its inputs become parts, and with them its output.  `made` are the parts of whole values, by id. */
static om_status
divide_op(const struct shard *s, om_op *op, om_value **made)
{
	om_value *v = op->out[0];
	const om_shape *whole = &s->whole[v->id];
	const int64_t part = part_size(s, whole);
	const om_shape want = om_shape_of(1, &part);
	om_status st = OM_OK;

	for (uint32_t k = 0; k < op->nin && st == OM_OK; k++) {
		om_value *in = op->in[k];
		if (!in || is_number(in) || om_shape_equal(&in->shape, &want))
			continue;
		if (!made[in->id])
			made[in->id] = part_of(s, op, in, &st);
		om_op_set_in(op, k, made[in->id]);
	}
	v->is_declared = false;
	v->shape = om_shape_unknown();
	if (st == OM_OK)
		st = om_op_infer(s->r->session, s->p, op);
	if (st == OM_OK && !om_shape_equal(&v->shape, &want))
		st = om_op_fail(s->r->session, OM_UNSUPPORTED, op, "cannot be computed in parts of %lld elements", (long long)part);
	return st;
}

static om_status
divide_update(struct shard *s)
{
	om_value **made = OM_NEWN(s->r->scratch, om_value *, s->p->nvalue);
	om_status st = OM_OK;

	divide_states(s);
	for (om_op *op = s->p->first->first; op; op = op->next)
		if (op->id < s->nop && s->by_parts[op->id])
			OM_TRY(divide_op(s, op, made));
	for (uint32_t k = 0; k < s->nvalue && st == OM_OK; k++)
		if (s->is_part[k])
			give_wholes(s, s->p->values[k], &st);
	if (st == OM_OK)
		gather_ahead(s, &st);
	return st;
}

/* ---- The loss. ---- */

static uint32_t
find_loss(const om_prog *p)
{
	uint32_t found = UINT32_MAX;

	for (uint32_t k = p->first->nresult; k-- > 0;) {
		const om_value *v = p->first->result[k];
		if (is_state_result(p, k) || !om_dtype_is_float(om_type_elem(&v->type)) || !om_shape_is_known(&v->shape)
		    || om_shape_count(&v->shape) != 1)
			continue;
		if (strcmp(v->name, "loss") == 0)
			return k;
		found = k;
	}
	return found;
}

static om_status
reduce_loss(const struct shard *s)
{
	const uint32_t k = find_loss(s->p);
	om_status st = OM_OK;

	if (k == UINT32_MAX || !s->p->first->result[k]->def)
		return om_fail(s->r->session, OM_USAGE, "shard requires a training step, whose loss is a floating-point scalar");
	om_value *v = s->p->first->result[k], *mean = reduce(s, v->def->next, v, s->overlap != 0, &st);
	if (s->overlap)
		mean = end_sum(s, NULL, mean, om_printf(s->r->scratch, "%s_mean", v->name), &st);
	om_block_set_result(s->p->first, k, mean);
	give_name(s, v, mean);
	return st;
}

/* ---- The pass. ---- */

static om_status
shard(struct shard *s)
{
	om_value **grad = NULL;
	size_t n = 0, cap = 0;
	bool has_update = false;

	find_dependent(s);
	for (const om_op *op = s->p->first->first; op; op = op->next)
		has_update |= op->phase == OM_UPDATE;
	if (!has_update || s->p->nio_alias == 0)
		return om_fail(s->r->session, OM_USAGE, "shard requires a training step whose nodes declare which of them are the update "
			"(org.onnxmem.phase), as `onnxmem grad` writes it");
	for (om_op *op = s->p->first->first; op; op = op->next) {
		OM_TRY(check_loss_op(s, op));
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k] && is_gradient(s, op->out[k])) {
				OM_TRY(check_gradient(s, op->out[k]));
				OM_PUSH(s->r->scratch, grad, n, cap, op->out[k]);
			}
	}
	for (uint32_t k = 0; k < s->p->first->nparam; k++)
		if (is_gradient(s, s->p->first->param[k]))
			OM_TRY(check_gradient(s, s->p->first->param[k]));
	if (n == 0)
		return om_fail(s->r->session, OM_USAGE, "the update reads nothing that depends on samples: there are no gradients to reduce");
	find_parts(s);
	OM_TRY(sum_gradients(s, grad, n));
	OM_TRY(divide_update(s));
	return reduce_loss(s);
}

static const char *const modes[NMODE] = {"data", "state", "gradient", "parameter"};

static om_status
run(om_run *r, om_prog *p)
{
	struct shard s = {.r = r, .p = p};
	uint64_t ranks, rank, ordered;

	while (s.mode < NMODE && strcmp(om_option(r, "mode"), modes[s.mode]) != 0)
		s.mode++;
	if (s.mode == NMODE)
		return om_fail(r->session, OM_USAGE, "shard: mode is data, state, gradient or parameter, not %s", om_option(r, "mode"));
	OM_TRY(om_option_number(r, "ranks", &ranks));
	OM_TRY(om_option_number(r, "rank", &rank));
	OM_TRY(om_option_number(r, "ordered", &ordered));
	OM_TRY(om_option_number(r, "bucket", &s.bucket));
	OM_TRY(om_option_number(r, "overlap", &s.overlap));
	s.weight = ranks ? 1 / (double)ranks : 0;
	if (strcmp(om_option(r, "weight"), "equal") != 0)
		OM_TRY(om_option_float(r, "weight", &s.weight));
	if (ranks < 1 || ranks > 1 << 20)
		return om_fail(r->session, OM_USAGE, "shard: ranks is a number from 1 to %d", 1 << 20);
	if (rank >= ranks)
		return om_fail(r->session, OM_USAGE, "shard: rank is a number below ranks, which is %llu", (unsigned long long)ranks);
	s.ranks = (int64_t)ranks;
	s.rank = (int64_t)rank;
	if (ranks == 1)
		s.mode = DATA;
	s.ordered = ordered != 0;
	return shard(&s);
}

static const om_pass_option options[] = {
	{"mode", "data", "data: each rank has a part of the batch; state: and a part of the states that only the update reads; "
		"gradient: and of gradients; parameter: and of parameters"},
	{"ranks", "1", "number of ranks"},
	{"rank", "0", "this one, whose part it is; for modes other than data"},
	{"weight", "equal", "share of the batch that this rank has, from 0 to 1; equal: that of all is the same"},
	{"bucket", "4194304", "bytes of gradients that are reduced together, at least; 0: each by itself"},
	{"overlap", "0", "so many sums of buckets go on while later gradients are computed; 0: each is waited for at once"},
	{"ordered", "0", "1: sums are computed in the order of ranks, so that they are bit-identical in every run"},
	{0}
};

static const om_pass_counter counters[] = {
	{"buckets", "reductions of gradients"},
	{"gradients", "values that are reduced in them, the loss left out"},
	{"bytes", "their sizes"},
	{"states", "states that are stored in parts"},
	{"gathers", "tensors that are gathered of their parts"},
	{0}
};

OM_PASS(
	.name = "shard",
	.brief = "make a training step one of several ranks",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES,
	.options = options,
	.counters = counters,
	.run = run)
