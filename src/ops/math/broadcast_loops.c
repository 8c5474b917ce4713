/* Elementwise computations with broadcast: the nest of loops around strips.
 *
 * The dims of the output, together with the steps that each operand takes
 * along them, are folded into as few dims as possible.  What remains inside is
 * a strip along which every operand either stands still or goes on by one
 * element: the loops that the compiler is to vectorise.  Each element is read
 * before it is written, so an output may lie over any operand that is not
 * broadcast. */
#include <config.h>

#include "ops/tensor/cast.h"
#include "opdef/numbers.h"
#include "ops/math/broadcast_loops.h"

/* ---- The nest of loops around the strips. ---- */

struct om_operand {
	char *at;
	om_dtype type, as;   /* in memory; for the loop */
	size_t size;         /* of an element in memory */
	char *buffer;        /* for a strip of `as`, where that is another type */
	int64_t step[OM_MAX_RANK];
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

void
om_loop_nest_operand(om_op_context *c, struct om_loop_nest *e, uint32_t k, const om_tensor *t, const om_shape *s, om_dtype as)
{
	struct om_operand *l = &e->lane[k];

	l->at = t->data;
	l->type = t->type;
	l->as = as;
	l->size = om_dtype_bits(t->type) / 8;
	if (l->as != l->type)
		l->buffer = om_alloc(c->mem, (size_t)OM_STRIP * (om_dtype_bits(as) / 8));
	set_steps(e, l, s, &c->out[0].shape);
}

void
om_loop_nest_operands(om_op_context *c, struct om_loop_nest *e)
{
	e->lane = OM_NEWN(c->mem, struct om_operand, (size_t)e->nin + 1);
	e->in = OM_NEWN(c->mem, struct om_operand_ref, e->nin);
}

static bool
can_merge(const struct om_loop_nest *e, int outer, int inner)
{
	for (uint32_t k = 0; k <= e->nin; k++)
		if (e->lane[k].step[outer] != e->lane[k].step[inner] * e->dim[inner])
			return false;
	return true;
}

/* Drop dims of one element, join dims that every lane crosses evenly. */
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

/* Through buffers: all operands of a piece are read before it is written. */
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

/* To the next strip: an odometer over all dims but the last. */
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
om_loop_nest_run(om_op_context *c, struct om_loop_nest *e)
{
	int64_t index[OM_MAX_RANK] = {0};

	if (om_shape_count(&c->out[0].shape) == 0)
		return OM_OK;
	fold_dims(e, &c->out[0].shape);
	const int64_t n = e->rank ? e->dim[e->rank - 1] : 1;
	for (uint32_t k = 0; k < e->nin; k++)
		e->in[k].step = e->rank ? e->lane[k].step[e->rank - 1] : 0;
	const bool converted = is_converted(e);
	do {
		if (converted)
			run_converted(e, n);
		else
			run_plain(e, n);
	} while (advance(e, index));
	return OM_OK;
}

/* ---- From a call to a nest. ---- */

/* Before version 7 the second operand lies along the dims of the first from
 * `axis` on; later, and without the attribute, their last dims go together. */
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
	if (axis < 0 || axis + s.rank > first->rank)
		return s;
	while (axis + s.rank < first->rank) {
		s.dim[s.rank] = 1;
		s.sym[s.rank++] = NULL;
	}
	return s;
}

/* The type to compute in: narrow floats go through float32. */
om_dtype
om_computed_as(om_inner_loop_fn *const loops[], om_dtype t)
{
	const bool narrow = om_is_half(t) || (t >= OM_FLOAT8E4M3FN && t <= OM_FLOAT8E5M2FNUZ);

	return !loops[t] && narrow ? OM_FLOAT32 : t;
}

static bool
has_dims(const om_shape *a, const om_shape *b)
{
	bool same = a->rank == b->rank;

	for (int d = 0; same && d < a->rank; d++)
		same = a->dim[d] == b->dim[d];
	return same;
}

/* Small tensors are many: where all operands are one element, or go along with the
 * output, there is nothing to fold.  False where there is. */
static bool
one_strip(const om_op_context *c, om_inner_loop_fn *const loops[], const struct om_loop_nest *e)
{
	enum { MOST = 4 };
	struct om_operand_ref in[MOST];
	const om_tensor *out = &c->out[0];

	if (e->nin > MOST || om_computed_as(loops, out->type) != out->type)
		return false;
	for (uint32_t k = 0; k < e->nin; k++) {
		const om_tensor *t = &c->in[k];
		const bool along = has_dims(&t->shape, &out->shape);
		if (om_computed_as(loops, t->type) != t->type || (!along && om_shape_count(&t->shape) != 1))
			return false;
		in[k] = (struct om_operand_ref){t->data, along};
	}
	const int64_t n = om_shape_count(&out->shape);
	if (n)
		e->loop(&(struct om_inner_loop){n, out->data, e->nin, in, e->knob});
	return true;
}

/* Attributes that are a number or a letter, in the order of the row. */
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

om_status
om_map_by(om_op_context *c, om_inner_loop_fn *const loops[], uint32_t key)
{
	const om_dtype t = c->in[key].type;
	struct om_loop_nest e = {.loop = loops[om_computed_as(loops, t)], .nin = c->op->nin};

	if (!e.loop)
		return om_no_kernel(c, t);
	set_knobs(c, &e);
	if (one_strip(c, loops, &e))
		return OM_OK;
	om_loop_nest_operands(c, &e);
	for (uint32_t k = 0; k < e.nin; k++) {
		const om_shape s = om_aligned(c, k);
		om_loop_nest_operand(c, &e, k, &c->in[k], &s, om_computed_as(loops, c->in[k].type));
	}
	om_loop_nest_operand(c, &e, e.nin, &c->out[0], &c->out[0].shape, om_computed_as(loops, c->out[0].type));
	return om_loop_nest_run(c, &e);
}

om_status
om_map(om_op_context *c, om_inner_loop_fn *const loops[])
{
	return om_map_by(c, loops, 0);
}

/* ---- Columns. ---- */

om_status
om_same_type(const om_op_context *c, om_dtype *type, uint32_t k)
{
	const om_dtype t = c->in[k].type;

	if (*type != OM_UNDEFINED && t != OM_UNDEFINED && t != *type)
		return om_op_fail(c->session, OM_SHAPE, c->op, "input %u has type %s, the ones before it %s",
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
