/* SPDX-License-Identifier: Apache-2.0 */
/* shard: a training step for one of several ranks, each of which has a part of the batch.
 *
 * Gradients are what the update reads of the forward and the backward pass, and depends on samples.  Each is multiplied with
 * the share of the batch that this rank has, and summed over ranks: then it is the gradient of the mean over the whole batch.
 * Gradients are put together into buckets, in the order in which the step computes them; a bucket is reduced after its last
 * gradient.  It is a Concat and a Split around an AllReduce, so that the planner computes gradients where the bucket is,
 * and the update reads them there.
 *
 * States that the forward pass computes, as running means, and the loss are means over ranks, too. */
#include <config.h>

#include <string.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "host/option.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "ir/type.h"
#include "onnxmem/builder.h"
#include "onnxmem/pass.h"
#include "opdef/dist_domain.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"

struct shard {
	om_run *r;
	om_prog *p;
	int64_t ranks, ordered;
	double weight;
	uint64_t bucket;
	bool *depends;           /* by value id: on samples */
};

struct bucket {
	om_value **v;
	size_t n, cap;
	uint64_t bytes;
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

/* A mean over labels that are counted, or weighted, is no mean over samples: its parts have other weights. */
static om_status
check_loss_op(const struct shard *s, const om_op *op)
{
	bool may_ignore = false;

	for (const om_attr_spec *a = op->opdef ? op->opdef->attrs : NULL; a && a->name; a++)
		may_ignore |= strcmp(a->name, "ignore_index") == 0;
	if (!may_ignore || !om_attr_is(op, "reduction", "mean") || (!om_attr_has(op, "ignore_index") && !om_op_input(op, 2)))
		return OM_OK;
	return om_op_fail(s->r->session, OM_UNSUPPORTED, op, "its mean is weighted by the labels of a batch, so that it is not the mean "
		"of those of ranks");
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

/* The mean over ranks of `v`, computed before `place`. */
static om_value *
reduce(const struct shard *s, om_op *place, om_value *v, om_status *st)
{
	const om_attr attr[] = {OM_MAKE_INT("ranks", s->ranks), OM_MAKE_INT("ordered", s->ordered), {0}};
	om_value *in[2] = {v, NULL};

	if (s->weight != 1) {
		in[1] = weight_of(s, om_type_elem(&v->type));
		in[0] = build(s, place, "", "Mul", 2, in, 1, om_printf(s->r->scratch, "%s_share", v->name), NULL, st)->out[0];
	}
	return build(s, place, OM_DIST_DOMAIN, "AllReduce", 1, in, 1, om_printf(s->r->scratch, "%s_mean", v->name), attr,
		st)->out[0];
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

/* The bucket of several gradients: each is a part of it. */
static om_status
reduce_together(const struct shard *s, const struct bucket *b, om_op *place)
{
	om_value **flat = OM_NEWN(s->r->scratch, om_value *, b->n);
	int64_t *size = OM_NEWN(s->r->scratch, int64_t, b->n);
	const int64_t all = -1;
	om_status st = OM_OK;

	om_value *any = list_of(s, "flat", 1, &all);
	for (size_t k = 0; k < b->n; k++) {
		om_value *in[2] = {b->v[k], any};
		size[k] = om_shape_count(&b->v[k]->shape);
		flat[k] = build(s, place, "", "Reshape", 2, in, 1, om_printf(s->r->scratch, "%s_flat", b->v[k]->name), NULL,
			&st)->out[0];
	}
	const om_attr axis[] = {OM_MAKE_INT("axis", 0), {0}};
	om_value *joined = build(s, place, "", "Concat", (uint32_t)b->n, flat, 1, "bucket", axis, &st)->out[0];
	om_value *mean = reduce(s, place, joined, &st);
	om_value *in[2] = {mean, list_of(s, "sizes", b->n, size)};
	om_op *parts = build(s, place, "", "Split", 2, in, (uint32_t)b->n, "part", axis, &st);
	for (size_t k = 0; k < b->n; k++) {
		const om_shape *shape = &b->v[k]->shape;
		om_value *at[2] = {parts->out[k], list_of(s, "shape", (size_t)shape->rank, shape->dim)};
		put(s, b->v[k], build(s, place, "", "Reshape", 2, at, 1, om_printf(s->r->scratch, "%s_mean", b->v[k]->name),
			NULL, &st)->out[0]);
	}
	return st;
}

/* After the last gradient in it. */
static om_status
reduce_bucket(const struct shard *s, struct bucket *b)
{
	om_status st = OM_OK;

	if (b->n == 0)
		return OM_OK;
	om_op *place = b->v[b->n - 1]->def->next;
	if (b->n > 1)
		st = reduce_together(s, b, place);
	else
		put(s, b->v[0], reduce(s, place, b->v[0], &st));
	om_count(s->r, "buckets", 1);
	om_count(s->r, "gradients", b->n);
	om_count(s->r, "bytes", b->bytes);
	*b = (struct bucket){0};
	return st;
}

/* Gradients in the order of the ops that compute them, those of a type together. */
static om_status
reduce_gradients(const struct shard *s, om_value **grad, size_t n)
{
	for (size_t from = 0; from < n;) {
		struct bucket b = {0};
		const om_dtype type = om_type_elem(&grad[from]->type);
		for (; from < n && om_type_elem(&grad[from]->type) == type && (b.n == 0 || b.bytes < s->bucket); from++) {
			b.bytes += om_value_bytes(grad[from]);
			OM_PUSH(s->r->scratch, b.v, b.n, b.cap, grad[from]);
		}
		OM_TRY(reduce_bucket(s, &b));
	}
	return OM_OK;
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
	om_value *v = s->p->first->result[k], *mean = reduce(s, v->def->next, v, &st);
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
	OM_TRY(reduce_gradients(s, grad, n));
	return reduce_loss(s);
}

static om_status
run(om_run *r, om_prog *p)
{
	struct shard s = {.r = r, .p = p};
	uint64_t ranks, ordered;

	if (strcmp(om_option(r, "mode"), "data") != 0)
		return om_fail(r->session, OM_USAGE, "shard: mode is data, not %s", om_option(r, "mode"));
	OM_TRY(om_option_number(r, "ranks", &ranks));
	OM_TRY(om_option_number(r, "ordered", &ordered));
	OM_TRY(om_option_number(r, "bucket", &s.bucket));
	s.weight = ranks ? 1 / (double)ranks : 0;
	if (strcmp(om_option(r, "weight"), "equal") != 0)
		OM_TRY(om_option_float(r, "weight", &s.weight));
	if (ranks < 1 || ranks > 1 << 20)
		return om_fail(r->session, OM_USAGE, "shard: ranks is a number from 1 to %d", 1 << 20);
	s.ranks = (int64_t)ranks;
	s.ordered = ordered != 0;
	return shard(&s);
}

static const om_pass_option options[] = {
	{"mode", "data", "data: each rank has a part of the batch"},
	{"ranks", "1", "number of ranks"},
	{"weight", "equal", "share of the batch that this rank has, from 0 to 1; equal: that of all is the same"},
	{"bucket", "4194304", "bytes of gradients that are reduced together, at least; 0: each by itself"},
	{"ordered", "0", "1: sums are computed in the order of ranks, so that they are bit-identical in every run"},
	{0}
};

static const om_pass_counter counters[] = {
	{"buckets", "reductions of gradients"},
	{"gradients", "values that are reduced in them, the loss left out"},
	{"bytes", "their sizes"},
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
