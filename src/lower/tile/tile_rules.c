/* SPDX-License-Identifier: Apache-2.0 */
/* What parts need, cached: the search asks for the same ends of parts again and again.
 *
 * The first row of an input that a part needs follows from where the part begins, the last one from where it ends; a
 * part that does not agree with that is refused where its op is made (om_tile_part()). */
#include <config.h>

#include <string.h>

#include "lower/tile/tile_internal.h"

/* Axes of a million rows are not divided: their tables would be larger than the gain. */
enum { LONGEST = 1 << 16 };

bool
om_tile_part(om_arena *mem, const om_tile_rule *r, int64_t lo, int64_t hi, om_slice *s)
{
	const om_part part = {r->axis, lo, hi};
	om_op_context c = r->context;

	c.mem = mem;
	c.memo = NULL;
	return r->is_sum ? om_op_context_partial(&c, r->index, part, NULL, s) : om_op_context_slice(&c, r->index, part, NULL, s);
}

static om_tile_rule *
rule_find(om_tile_graph *g, const om_op *op, bool is_sum, uint32_t index, int axis)
{
	for (om_tile_rule *r = g->rule[op->id]; r; r = r->next)
		if (r->is_sum == is_sum && r->index == index && r->axis == axis)
			return r;
	return NULL;
}

/* A rule without `in` is kept, too: there are no such parts. */
static om_tile_rule *
rule_new(om_tile_graph *g, const om_op *op, bool is_sum, uint32_t index, int axis, int64_t length)
{
	om_tile_rule *r = OM_NEW(g->mem, om_tile_rule);
	om_slice s;

	*r = (om_tile_rule){.op = op, .is_sum = is_sum, .index = index, .axis = axis, .length = length, .mem = g->mem,
		.next = g->rule[op->id]};
	g->rule[op->id] = r;
	if (length < 1 || length > LONGEST || !om_op_query(&r->context, g->mem, op) || !om_tile_part(g->mem, r, 0, length, &s))
		return r;
	const size_t n = ((size_t)length + 1) * op->nin;
	r->in = s.in;
	r->out = s.out;
	r->from = OM_NEWN(g->mem, int64_t, n);
	r->to = OM_NEWN(g->mem, int64_t, n);
	memset(r->from, 0xff, n * sizeof *r->from);
	memset(r->to, 0xff, n * sizeof *r->to);
	return r;
}

static om_tile_rule *
rule_of(om_tile_graph *g, const om_op *op, bool is_sum, uint32_t index, int axis, const om_value *v)
{
	om_tile_rule *r;

	if (!v || axis < 0 || !om_shape_is_known(&v->shape) || axis >= v->shape.rank)
		return NULL;
	r = rule_find(g, op, is_sum, index, axis);
	r = r ? r : rule_new(g, op, is_sum, index, axis, v->shape.dim[axis]);
	return r->in ? r : NULL;
}

om_tile_rule *
om_tile_rule_for(om_tile_graph *g, const om_op *op, uint32_t out, int axis)
{
	return rule_of(g, op, false, out, axis, op->out[out]);
}

om_tile_rule *
om_tile_rule_sum(om_tile_graph *g, const om_op *op, uint32_t in, int axis)
{
	return op->nin > in ? rule_of(g, op, true, in, axis, op->in[in]) : NULL;
}

bool
om_tile_is_divided(const om_tile_rule *r, uint32_t k)
{
	return r->op->in[k] && !om_tile_is_const(r->op->in[k]) && r->in[k].axis != OM_WHOLE;
}

enum { REFUSED = -2 };

/* Store an end of each input part; of those without elements, REFUSED. */
static void
fill(om_tile_rule *r, int64_t lo, int64_t hi, bool is_end)
{
	om_arena *tmp = om_arena_new();
	int64_t *to = is_end ? &r->to[hi * r->op->nin] : &r->from[lo * r->op->nin];
	om_slice s;
	const bool ok = om_tile_part(tmp, r, lo, hi, &s);

	for (uint32_t k = 0; k < r->op->nin; k++) {
		to[k] = REFUSED;
		if (ok && s.in[k].axis == r->in[k].axis)
			to[k] = is_end ? s.in[k].hi : s.in[k].lo;
	}
	om_arena_free(tmp);
}

int64_t
om_tile_from(om_tile_rule *r, uint32_t k, int64_t lo)
{
	if (lo >= r->length)
		return REFUSED;
	if (r->from[lo * r->op->nin + k] == -1)
		fill(r, lo, r->length, false);
	return r->from[lo * r->op->nin + k];
}

int64_t
om_tile_to(om_tile_rule *r, uint32_t k, int64_t hi)
{
	if (hi <= 0)
		return REFUSED;
	if (r->to[hi * r->op->nin + k] == -1)
		fill(r, 0, hi, true);
	return r->to[hi * r->op->nin + k];
}

/* ---- Parts that were asked for. ---- */

/* The search asks for few parts of each rule, many times.  Which of them are kept does not change what it finds. */
enum { RECENT = 128 };

struct om_tile_recent {
	int64_t lo, hi;           /* hi of 0: none */
	bool exists;
	om_slice slice;           /* whose parts are in arrays of its own */
};

static void
copy_parts(om_arena *mem, om_part **to, const om_part *from, uint32_t n)
{
	*to = *to ? *to : OM_NEWN(mem, om_part, n);
	if (n)
		memcpy(*to, from, n * sizeof **to);
}

static void
compute(om_tile_rule *r, struct om_tile_recent *e, int64_t lo, int64_t hi)
{
	om_arena *tmp = om_arena_new();
	om_part *in = e->slice.in, *out = e->slice.out;
	om_slice s;

	e->lo = lo;
	e->hi = hi;
	e->exists = om_tile_part(tmp, r, lo, hi, &s);
	if (e->exists) {
		copy_parts(r->mem, &in, s.in, r->op->nin);
		copy_parts(r->mem, &out, s.out, r->op->nout);
		e->slice = s;
		e->slice.in = in;
		e->slice.out = out;
	}
	om_arena_free(tmp);
}

const om_slice *
om_tile_slice(om_tile_rule *r, int64_t lo, int64_t hi)
{
	if (!r->recent)
		r->recent = OM_NEWN(r->mem, struct om_tile_recent, RECENT);
	struct om_tile_recent *e = &r->recent[(size_t)(lo * 31 + hi) % RECENT];
	if (hi <= 0)
		return NULL;
	if (e->lo != lo || e->hi != hi)
		compute(r, e, lo, hi);
	return e->exists ? &e->slice : NULL;
}
