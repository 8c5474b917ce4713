/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise computations with broadcast: the loop nest around strips.
 *
 * The dims of the output and the strides of the operands along them are collapsed into as few dims as
 * possible.  The innermost loop is a strip along which every operand has stride 0 or 1: the loops to be
 * vectorized by the compiler.  Each element is read before it is written, so an output may be computed
 * in place over any operand that is not broadcast. */
#include <config.h>

#include "base/convert_elements.h"
#include "base/arena_internal.h"
#include "ir/query.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/math/broadcast_loops.h"

/* ---- The nest of loops around the strips. ---- */

struct om_operand {
	char *at;
	const void *constant;  /* if the operand is not an input */
	om_dtype type, as;   /* in memory; in the loop */
	size_t size;         /* of an element in memory */
	char *buffer;        /* for a strip of `as`, if that differs from `type` */
	int64_t step[OM_MAX_RANK];
};

/* The members up to `knob` are those that every run reads. */
struct om_loop_nest {
	om_inner_loop_fn *loop;
	int64_t strip;       /* elements of one strip; 0 if the output is empty */
	uint32_t nin;
	bool is_single;      /* the nest is one strip without conversion */
	bool is_converted;
	bool has_constants;  /* some operand is not an input */
	struct om_operand_ref *in;
	double knob[OM_NKNOB];
	struct om_operand *lane;   /* [nin], then the output */
	int rank;
	int64_t dim[OM_MAX_RANK];
};

static void
set_steps(struct om_loop_nest *e, struct om_operand *l, const om_shape *s, const om_shape *out)
{
	int64_t step = 1;

	for (int d = out->rank - 1; d >= 0; d--) {
		const int k = d - (out->rank - s->rank);
		const int64_t n = k < 0 ? 1 : s->dim[k];
		l->step[d] = n == 1 ? 0 : step;
		step *= n;
	}
	e->rank = out->rank;
}

static void
set_lane(om_op_context *c, struct om_loop_nest *e, uint32_t k, om_dtype type, const om_shape *s, om_dtype as)
{
	struct om_operand *l = &e->lane[k];

	l->type = type;
	l->as = as;
	l->size = om_dtype_bits(type) / 8;
	if (as != type)
		l->buffer = om_alloc(c->mem, (size_t)OM_STRIP * (om_dtype_bits(as) / 8));
	set_steps(e, l, s, &c->out[0].shape);
}

void
om_nest_input(om_op_context *c, struct om_loop_nest *e, uint32_t k, const om_shape *s, om_dtype as)
{
	set_lane(c, e, k, c->in[k].type, s, as);
}

void
om_nest_constant(om_op_context *c, struct om_loop_nest *e, uint32_t k, om_dtype t, const void *data, om_dtype as)
{
	const om_shape scalar = om_shape_of(0, NULL);

	set_lane(c, e, k, t, &scalar, as);
	e->lane[k].constant = data;
	e->has_constants = true;
}

static bool
can_merge(const struct om_loop_nest *e, int outer, int inner)
{
	for (uint32_t k = 0; k <= e->nin; k++)
		if (e->lane[k].step[outer] != e->lane[k].step[inner] * e->dim[inner])
			return false;
	return true;
}

/* Drop dims of one element; merge adjacent dims that every operand crosses with one stride. */
static void
fold_dims(struct om_loop_nest *e, const om_shape *out)
{
	int r = 0;

	for (int d = 0; d < out->rank; d++) {
		if (out->dim[d] == 1)
			continue;
		e->dim[r] = out->dim[d];
		for (uint32_t k = 0; k <= e->nin; k++)
			e->lane[k].step[r] = e->lane[k].step[d];
		if (r > 0 && can_merge(e, r - 1, r)) {
			e->dim[r - 1] *= e->dim[r];
			for (uint32_t k = 0; k <= e->nin; k++)
				e->lane[k].step[r - 1] = e->lane[k].step[r];
			r--;
		}
		r++;
	}
	e->rank = r;
}

static void
run_plain(const struct om_loop_nest *e, int64_t n)
{
	for (uint32_t k = 0; k < e->nin; k++)
		e->in[k].at = e->lane[k].at;
	e->loop(&(struct om_inner_loop){n, e->lane[e->nin].at, e->nin, e->in, e->knob});
}

/* Run through buffers: all operands of a strip are read before it is written. */
static void
run_converted(const struct om_loop_nest *e, int64_t n)
{
	const struct om_operand *out = &e->lane[e->nin];

	for (int64_t at = 0; at < n; at += OM_STRIP) {
		const int64_t m = n - at < OM_STRIP ? n - at : OM_STRIP;
		for (uint32_t k = 0; k < e->nin; k++) {
			const struct om_operand *l = &e->lane[k];
			const char *from = l->at + (size_t)(at * e->in[k].step) * l->size;
			if (l->buffer)
				om_convert(l->as, l->buffer, l->type, from, e->in[k].step ? m : 1, true);
			e->in[k].at = l->buffer ? l->buffer : from;
		}
		char *to = out->at + (size_t)at * out->size;
		e->loop(&(struct om_inner_loop){m, out->buffer ? out->buffer : to, e->nin, e->in, e->knob});
		if (out->buffer)
			om_convert(out->type, to, out->as, out->buffer, m, true);
	}
}

static bool
is_converted(const struct om_loop_nest *e)
{
	for (uint32_t k = 0; k <= e->nin; k++)
		if (e->lane[k].buffer)
			return true;
	return false;
}

/* Advance to the next strip: an odometer over all dims except the last. */
static bool
advance(const struct om_loop_nest *e, int64_t *index)
{
	for (int d = e->rank - 2; d >= 0; d--) {
		const bool carry = ++index[d] == e->dim[d];
		const int64_t by = carry ? 1 - e->dim[d] : 1;
		for (uint32_t k = 0; k <= e->nin; k++)
			e->lane[k].at += e->lane[k].step[d] * by * (int64_t)e->lane[k].size;
		if (!carry)
			return true;
		index[d] = 0;
	}
	return false;
}

om_status
om_nest_finish(om_op_context *c, struct om_loop_nest *e, om_dtype as)
{
	const om_shape *out = &c->out[0].shape;

	set_lane(c, e, e->nin, c->out[0].type, out, as);
	if (om_shape_count(out) == 0)
		return OM_OK;
	fold_dims(e, out);
	e->strip = e->rank ? e->dim[e->rank - 1] : 1;
	for (uint32_t k = 0; k < e->nin; k++) {
		e->in[k].step = e->rank ? e->lane[k].step[e->rank - 1] : 0;
		e->in[k].at = e->lane[k].constant;
	}
	e->is_converted = is_converted(e);
	e->is_single = !e->is_converted && e->rank <= 1;
	return OM_OK;
}

/* Not inlined, so that one strip does not pay for the registers of many. */
static __attribute__((noinline)) om_status
run_strips(const om_op_context *c, struct om_loop_nest *e)
{
	int64_t index[OM_MAX_RANK] = {0};

	if (e->strip == 0)
		return OM_OK;
	for (uint32_t k = 0; k < e->nin; k++)
		e->lane[k].at = (char *)(e->lane[k].constant ? e->lane[k].constant : c->in[k].data);
	e->lane[e->nin].at = c->out[0].data;
	do {
		if (e->is_converted)
			run_converted(e, e->strip);
		else
			run_plain(e, e->strip);
	} while (advance(e, index));
	return OM_OK;
}

om_status
om_loop_nest_run(om_op_context *c)
{
	struct om_loop_nest *e = c->state;

	if (!e->is_single)
		return run_strips(c, e);
	for (uint32_t k = 0; k < e->nin; k++)
		if (!e->has_constants || !e->lane[k].constant)
			e->in[k].at = c->in[k].data;
	e->loop(&(struct om_inner_loop){e->strip, c->out[0].data, e->nin, e->in, e->knob});
	return OM_OK;
}

/* ---- From an op to a nest. ---- */

/* Before version 7 the dims of the second operand are aligned with those of the first from `axis` on;
 * later, and without the attribute, the last dims are aligned. */
om_shape
om_aligned(const om_op_context *c, uint32_t k)
{
	om_shape s = c->in[k].shape;
	const om_shape *first = &c->in[0].shape;

	if (k != 1 || c->op->version >= 7 || !om_attr_has(c->op, "axis") || s.rank < 0 || first->rank < 0
	    || om_attr_int(c->op, "broadcast") == 0)
		return s;
	int64_t axis = om_attr_int(c->op, "axis");
	axis += axis < 0 ? first->rank : 0;
	if (axis < 0 || axis > first->rank - s.rank)
		return s;
	while (axis + s.rank < first->rank) {
		s.dim[s.rank] = 1;
		s.sym[s.rank++] = NULL;
	}
	return s;
}

/* The type to compute in: 16-bit floats are computed as float32. */
om_dtype
om_computed_as(om_inner_loop_fn *const loops[], om_dtype t)
{
	const bool narrow = om_is_half(t) || (t >= OM_FLOAT8E4M3FN && t <= OM_FLOAT8E5M2FNUZ);

	return !loops[t] && narrow ? OM_FLOAT32 : t;
}

/* Attributes that are a number or a letter, in the order of the definition. */
static void
set_knobs(const om_op_context *c, struct om_loop_nest *e)
{
	const om_attr_spec *a = c->op->opdef->attrs;

	for (int k = 0; k < OM_NKNOB && a && a->name; k++, a++) {
		if (a->kind == OM_ATTR_FLOAT) {
			e->knob[k] = (double)om_attr_float(c->op, a->name);
		} else if (a->kind == OM_ATTR_INT) {
			e->knob[k] = (double)om_attr_int(c->op, a->name);
		} else if (a->kind == OM_ATTR_STRING) {
			const om_string s = om_attr_string(c->op, a->name);
			e->knob[k] = s.size ? s.data[0] : 0;
		}
	}
}

struct om_loop_nest *
om_nest_new(om_op_context *c, uint32_t nin, om_inner_loop_fn *loop)
{
	struct om_loop_nest *e = OM_NEW(c->mem, struct om_loop_nest);

	e->loop = loop;
	e->nin = nin;
	e->in = OM_NEWN(c->mem, struct om_operand_ref, nin);
	e->lane = OM_NEWN(c->mem, struct om_operand, (size_t)nin + 1);
	set_knobs(c, e);
	return e;
}

om_status
om_map_prepare_by(om_op_context *c, void **state, om_inner_loop_fn *const loops[], uint32_t key)
{
	const om_dtype t = c->in[key].type;
	om_inner_loop_fn *loop = loops[om_computed_as(loops, t)];

	if (!loop)
		return om_no_kernel(c, t);
	struct om_loop_nest *e = *state = om_nest_new(c, c->op->nin, loop);
	for (uint32_t k = 0; k < e->nin; k++) {
		const om_shape s = om_aligned(c, k);
		om_nest_input(c, e, k, &s, om_computed_as(loops, c->in[k].type));
	}
	return om_nest_finish(c, e, om_computed_as(loops, c->out[0].type));
}

om_status
om_map_prepare(om_op_context *c, void **state, om_inner_loop_fn *const loops[])
{
	return om_map_prepare_by(c, state, loops, 0);
}

/* ---- Callbacks. ---- */

om_status
om_same_type(const om_op_context *c, om_dtype *type, uint32_t k)
{
	const om_dtype t = c->in[k].type;

	if (*type != OM_UNDEFINED && t != OM_UNDEFINED && t != *type)
		return om_op_fail(c->session, OM_SHAPE, c->op, "input %u is %s, but the inputs before it are %s",
			k, om_dtype_text(t), om_dtype_text(*type));
	if (t != OM_UNDEFINED)
		*type = t;
	return OM_OK;
}

om_status
om_broadcast_all(om_op_context *c)
{
	om_shape s = om_aligned(c, 0);
	char a[256], b[256];

	for (uint32_t k = 1; k < c->op->nin; k++) {
		const om_shape next = om_aligned(c, k);
		om_shape both;
		if (!om_broadcast(&s, &next, &both))
			return om_op_fail(c->session, OM_SHAPE, c->op, "shapes %s and %s cannot be broadcast",
				om_shape_text(&s, a, sizeof a), om_shape_text(&next, b, sizeof b));
		s = both;
	}
	c->out[0].shape = s;
	return OM_OK;
}

bool
om_is_whole(const om_shape *s, const om_shape *out)
{
	for (int d = 0; d < out->rank; d++) {
		const int k = d - (out->rank - s->rank);
		if ((k < 0 ? 1 : s->dim[k]) != out->dim[d])
			return false;
	}
	return s->rank <= out->rank;
}

bool
om_inplace_whole(const om_op_context *c, uint32_t out, uint32_t in)
{
	const om_shape s = om_aligned(c, in);

	return out == 0 && om_dtype_bits(c->in[in].type) == om_dtype_bits(c->out[0].type)
	    && om_is_whole(&s, &c->out[0].shape);
}
