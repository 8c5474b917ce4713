/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of ops: the calls of the columns `slice` and `partial`, and what columns share; see slice.h. */
#include <config.h>

#include <assert.h>
#include <string.h>

#include "base/arena_internal.h"
#include "ir/query.h"
#include "opdef/slice.h"

/* ---- Calls of the columns. ---- */

static om_part *
all_whole(om_arena *mem, uint32_t n)
{
	om_part *p = OM_NEWN(mem, om_part, n + 1);

	for (uint32_t k = 0; k < n; k++)
		p[k].axis = OM_WHOLE;
	return p;
}

static void
start(const om_op_context *c, om_slice_edit *edit, om_slice *s)
{
	*s = (om_slice){.edit = edit, .scale = 1};
	s->in = all_whole(c->mem, c->op->nin);
	s->out = all_whole(c->mem, c->op->nout);
	if (edit)
		*edit = (om_slice_edit){.nin = c->op->nin};
}

static bool
is_in(const om_tensor *t, om_part p)
{
	return p.axis >= 0 && p.axis < t->shape.rank && p.lo >= 0 && p.lo < p.hi && p.hi <= t->shape.dim[p.axis];
}

/* May an op of the definition be computed in parts at all? */
static bool
is_plain(const om_opdef *d)
{
	return d && d->control == OM_PLAIN && !(d->flags & (OM_EFFECT | OM_DATA_DEPENDENT_SHAPE));
}

bool
om_opdef_has_slice(const om_opdef *d)
{
	return is_plain(d) && (d->slice || (d->flags & OM_POINTWISE && !(d->flags & OM_RANDOM)));
}

bool
om_opdef_has_partial(const om_opdef *d)
{
	return is_plain(d) && d->partial;
}

/* Do the parts lie in the inputs?  They do not where shapes that a file declares contradict each other. */
static bool
are_inside(const om_op_context *c, const om_slice *s)
{
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (s->in[k].axis != OM_WHOLE && !om_part_is_none(&s->in[k]) && !is_in(&c->in[k], s->in[k]))
			return false;
	return s->before >= 0 && s->after >= 0;
}

bool
om_op_context_slice(const om_op_context *c, uint32_t out, om_part part, om_slice_edit *edit, om_slice *s)
{
	const om_opdef *d = c->op->opdef;

	if (!om_opdef_has_slice(d) || !om_has_out(c, out) || !is_in(&c->out[out], part))
		return false;
	start(c, edit, s);
	s->out[out] = part;
	return (d->slice ? d->slice(c, out, s) : om_slice_pointwise(c, out, s)) && are_inside(c, s);
}

bool
om_op_context_partial(const om_op_context *c, uint32_t in, om_part part, om_slice_edit *edit, om_slice *s)
{
	const om_opdef *d = c->op->opdef;

	if (!om_opdef_has_partial(d) || !om_has_in(c, in) || !is_in(&c->in[in], part))
		return false;
	start(c, edit, s);
	s->in[in] = part;
	return d->partial(c, in, s) && are_inside(c, s);
}

bool
om_op_slice(om_arena *mem, const om_op *op, uint32_t out, om_part part, om_slice *s)
{
	om_op_context c;

	return op->opdef && om_op_query(&c, mem, op) && om_op_context_slice(&c, out, part, NULL, s);
}

bool
om_op_partial(om_arena *mem, const om_op *op, uint32_t in, om_part part, om_slice *s)
{
	om_op_context c;

	return op->opdef && om_op_query(&c, mem, op) && om_op_context_partial(&c, in, part, NULL, s);
}

/* ---- Edits. ---- */

void
om_slice_become(om_slice *s, const char *type, uint32_t nin)
{
	if (!s->edit)
		return;
	s->edit->type = type;
	s->edit->nin = nin;
}

static void
set(om_slice *s, om_attr a)
{
	if (!s->edit)
		return;
	assert(s->edit->nattr < OM_SLICE_ATTRS);
	s->edit->attr[s->edit->nattr++] = a;
}

void
om_slice_set_ints(const om_op_context *c, om_slice *s, const char *name, size_t n, const int64_t *v)
{
	if (s->edit)
		set(s, (om_attr){.name = name, .kind = OM_ATTR_INTS, .n = n, .i = om_memdup(c->mem, v, n * sizeof *v)});
}

void
om_slice_set_int(const om_op_context *c, om_slice *s, const char *name, int64_t v)
{
	if (s->edit)
		set(s, (om_attr){.name = name, .kind = OM_ATTR_INT, .n = 1, .i = om_memdup(c->mem, &v, sizeof v)});
}

void
om_slice_set_float(const om_op_context *c, om_slice *s, const char *name, float v)
{
	if (s->edit)
		set(s, (om_attr){.name = name, .kind = OM_ATTR_FLOAT, .n = 1, .f = om_memdup(c->mem, &v, sizeof v)});
}

void
om_slice_drop(om_slice *s, const char *name)
{
	set(s, (om_attr){.name = name});
}

static void
put(om_slice *s, uint32_t k, const om_tensor *t)
{
	assert(k < OM_SLICE_OPERANDS);
	s->edit->operand[k] = t;
	s->edit->nin = k < s->edit->nin ? s->edit->nin : k + 1;
}

/* An int64 tensor of rank `rank`, at most 1. */
static void
put_list(const om_op_context *c, om_slice *s, uint32_t k, int rank, size_t n, const int64_t *v)
{
	const int64_t dim = (int64_t)n;
	const om_tensor t = {.type = OM_INT64, .shape = om_shape_of(rank, &dim)};

	if (!s->edit)
		return;
	om_tensor *copy = om_memdup(c->mem, &t, sizeof t);
	copy->data = n ? om_memdup(c->mem, v, n * sizeof *v) : om_alloc(c->mem, 1);
	put(s, k, copy);
}

void
om_slice_put_ints(const om_op_context *c, om_slice *s, uint32_t k, size_t n, const int64_t *v)
{
	put_list(c, s, k, 1, n, v);
}

void
om_slice_put_int(const om_op_context *c, om_slice *s, uint32_t k, int64_t v)
{
	put_list(c, s, k, 0, 1, &v);
}

/* ---- What columns share. ---- */

void
om_slice_align(const om_op_context *c, uint32_t out, om_slice *s, uint32_t k)
{
	const om_part *p = &s->out[out];
	const int axis = p->axis - (c->out[out].shape.rank - c->in[k].shape.rank);

	if (om_has_in(c, k) && axis >= 0 && c->in[k].shape.dim[axis] != 1)
		s->in[k] = om_part_along(p, axis);
}

void
om_slice_channels(const om_op_context *c, uint32_t out, om_slice *s, uint32_t k, int axis)
{
	const om_part *p = &s->out[out];

	if (om_has_in(c, k) && p->axis == axis && c->in[k].shape.rank == 1 && c->in[k].shape.dim[0] > 1)
		s->in[k] = om_part_along(p, 0);
}

static void
same_outputs(const om_op_context *c, uint32_t out, om_slice *s)
{
	for (uint32_t k = 0; k < c->op->nout; k++)
		s->out[k] = s->out[out];
}

/* Before version 7, an attribute tells where operands are aligned. */
bool
om_slice_pointwise(const om_op_context *c, uint32_t out, om_slice *s)
{
	if (om_attr_has(c->op, "broadcast") || om_attr_has(c->op, "axis"))
		return false;
	for (uint32_t k = 0; k < c->op->nin; k++)
		om_slice_align(c, out, s, k);
	same_outputs(c, out, s);
	return true;
}

bool
om_slice_first(const om_op_context *c, uint32_t out, om_slice *s)
{
	s->in[0] = s->out[out];
	same_outputs(c, out, s);
	return true;
}

bool
om_slice_beside(const om_op_context *c, uint32_t out, om_slice *s, int axis)
{
	return s->out[out].axis != axis && om_slice_first(c, out, s);
}

bool
om_slice_but_last(const om_op_context *c, uint32_t out, om_slice *s)
{
	return om_slice_beside(c, out, s, c->out[out].shape.rank - 1);
}

bool
om_slice_batch(const om_op_context *c, uint32_t out, om_slice *s)
{
	return s->out[out].axis == 0 && om_slice_first(c, out, s);
}

bool
om_slice_rows(const om_op_context *c, uint32_t out, om_slice *s)
{
	return c->in[0].shape.rank == 2 && om_slice_batch(c, out, s);
}
