/* SPDX-License-Identifier: Apache-2.0 */
/* open-rows: one program for every number of rows in use of caches that grow by Concat.
 *
 * The program is that of the largest step: present = Concat(past, new) has as many rows as the option says.  Here it becomes one
 * that serves any smaller number of rows in use, which a new input `rows_in_use` tells.  Past and present become one buffer of
 * that many rows, and Concat a TensorScatter at that row.
 *
 * Every value gets a fact, from the first op to the last.  A value is padded along an axis if the size of that axis is the number
 * of rows after the step: its elements after that number are anything.  An integer that is known and depends on the number of
 * rows in use has a slope: it is smaller by the slope for each row less.  Padded axes go through ops whose elements before the
 * end do not depend on those after it; softmax and products end at the number of rows.  A known number with a slope stays what
 * it is where it gives the size of a padded axis, and is computed in each run where it is an element.  What follows from such an
 * element is computed in each run, too, although it was constant.  Any other use is an error, so that a caller plans each step
 * instead.  That has to be decided before constants are used to simplify the program: the pass runs right after `fold`. */
#include <config.h>

#include <string.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/query.h"
#include "onnxmem/builder.h"
#include "onnxmem/pass.h"
#include "opdef/columns.h"
#include "opdef/fold.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"

#define DOMAIN "org.onnxmem.cpu"
#define ROWS_NAME "rows_in_use"

/* What is known about a value. */
struct fact {
	const om_tensor *slope;   /* of its elements, which are known; NULL: they do not depend on the rows in use */
	bool is_padded;           /* along this axis */
	int axis;
	bool is_zero;             /* padded with zeros */
	bool is_run;              /* was a constant, but a run computes it */
	om_value *made;           /* its elements in a run, of a value with a slope */
};

struct open {
	om_run *r;
	om_prog *p;
	int64_t rows, before;     /* of present and of past, in this program */
	struct fact *fact;        /* by value id; a value that this pass makes gets one where it needs one */
	uint32_t nfact;
	om_value *less, *less32;  /* rows in use, less those of this program; as int32 */
	om_value *count;          /* rows after the step */
};

static const struct fact nothing;

static struct fact
fact_of(const struct open *w, const om_value *v)
{
	return v && v->id < w->nfact ? w->fact[v->id] : nothing;
}

static void
set_fact(struct open *w, const om_value *v, struct fact f)
{
	if (v->id >= w->nfact) {
		struct fact *all = OM_NEWN(w->r->scratch, struct fact, w->p->nvalue);
		memcpy(all, w->fact, w->nfact * sizeof *all);
		w->fact = all;
		w->nfact = w->p->nvalue;
	}
	w->fact[v->id] = f;
}

static bool
is_of(const om_op *op, const char *type)
{
	return *op->domain == '\0' && strcmp(op->type, type) == 0;
}

static om_status
refuse(const struct open *w, const om_op *op)
{
	return om_op_fail(w->r->session, OM_UNSUPPORTED, op, "what it computes depends on the number of rows in use in a way that one "
		"program cannot serve");
}

/* ---- Known integers. ---- */

static bool
is_integer(const om_tensor *t)
{
	return t && t->data && (t->type == OM_INT64 || t->type == OM_INT32);
}

static int64_t
integer_at(const om_tensor *t, int64_t k)
{
	k = t->splat ? 0 : k;
	return t->type == OM_INT64 ? ((const int64_t *)t->data)[k] : ((const int32_t *)t->data)[k];
}

static int64_t
slope_at(const struct fact *f, int64_t k)
{
	return f->slope ? integer_at(f->slope, k) : 0;
}

/* A tensor of integers of the type and shape of `like`, all of them 0. */
static om_tensor *
zeros_like(const struct open *w, const om_tensor *like)
{
	om_tensor *t = OM_NEW(w->p->mem, om_tensor);
	uint64_t bytes = 0;

	om_tensor_bytes(like->type, &like->shape, &bytes);
	*t = (om_tensor){.type = like->type, .shape = like->shape, .data = om_alloc(w->p->mem, bytes + 1)};
	memset(t->data, 0, bytes);
	return t;
}

static void
set_integer(const om_tensor *t, int64_t k, int64_t is)
{
	if (t->type == OM_INT64)
		((int64_t *)t->data)[k] = is;
	else
		((int32_t *)t->data)[k] = (int32_t)is;
}

/* The fact of a known value with these slopes. */
static struct fact
with_slope(const om_tensor *slope)
{
	const int64_t n = om_shape_count(&slope->shape);

	for (int64_t k = 0; k < n; k++)
		if (integer_at(slope, k) != 0)
			return (struct fact){.slope = slope};
	return nothing;
}

/* ---- New ops. ---- */

static om_value *
constant(const struct open *w, const char *stem, const om_tensor *t)
{
	return om_const_new(w->p, w->p->first, om_value_fresh(w->p, w->p->first, stem)->name, om_memdup(w->p->mem, t, sizeof *t));
}

/* A constant of int64 whose elements all are `is`: of rank 0 if n < 0. */
static om_value *
integers(const struct open *w, const char *stem, int64_t n, int64_t is)
{
	const int64_t count = n < 0 ? 1 : n;
	int64_t *data = om_allocn(w->p->mem, (size_t)count + 1, sizeof *data);

	for (int64_t k = 0; k < count; k++)
		data[k] = is;
	return constant(w, stem, &(om_tensor){.type = OM_INT64, .shape = om_shape_of(n < 0 ? 0 : 1, &n), .data = data});
}

static om_status
add_op(const struct open *w, om_op *place, om_op *op, const char *stem, om_value **out)
{
	*out = om_value_fresh(w->p, w->p->first, stem);
	om_op_set_out(op, 0, *out);
	om_op_insert(place, op);
	return om_op_infer(w->r->session, w->p, op);
}

static om_status
add_binary(const struct open *w, om_op *place, const char *type, om_value *a, om_value *b, const char *stem, om_value **out)
{
	om_op *op = om_op_new(w->p, "", type, 0, 2, 1);

	om_op_set_in(op, 0, a);
	om_op_set_in(op, 1, b);
	return add_op(w, place, op, stem, out);
}

static om_status
add_cast(const struct open *w, om_op *place, om_value *v, om_dtype to, om_value **out)
{
	om_op *op = om_op_new(w->p, "", "Cast", 0, 1, 1);

	om_op_add_attr(w->p, op, &OM_MAKE_INT("to", to));
	om_op_set_in(op, 0, v);
	return add_op(w, place, op, "rows_less", out);
}

/* The elements of a known value in a run, computed before `op`. */
static om_status
make_elements(struct open *w, om_op *op, om_value *v)
{
	struct fact *f = &w->fact[v->id];
	om_value *by;

	if (f->made)
		return OM_OK;
	if (v->data->type == OM_INT32 && !w->less32)
		OM_TRY(add_cast(w, op, w->less, OM_INT32, &w->less32));
	OM_TRY(add_binary(w, op, "Mul", constant(w, "slope", f->slope), v->data->type == OM_INT32 ? w->less32 : w->less, "rows_by", &by));
	OM_TRY(add_binary(w, op, "Add", constant(w, "most", v->data), by, v->name, &f->made));
	om_count(w->r, "computed", 1);
	return OM_OK;
}

/* A run computes the op: it reads input `k` as elements. */
static om_status
read_elements(struct open *w, om_op *op, uint32_t k)
{
	om_value *v = op->in[k];

	if (!fact_of(w, v).slope)
		return OM_OK;
	if (v->data->splat)
		return refuse(w, op);
	OM_TRY(make_elements(w, op, v));
	om_op_set_in(op, k, w->fact[v->id].made);
	return OM_OK;
}

/* Does a run decide elements of input `k` that were known? */
static bool
is_open(const struct open *w, const om_op *op, uint32_t k)
{
	const struct fact f = fact_of(w, op->in[k]);

	return f.slope || f.is_run;
}

/* The outputs are computed in a run. */
static void
unfold(struct open *w, om_op *op)
{
	if (!op->is_folded)
		return;
	op->is_folded = false;
	for (uint32_t k = 0; k < op->nout; k++) {
		if (!op->out[k])
			continue;
		op->out[k]->data = NULL;
		op->out[k]->elem = NULL;
		op->out[k]->is_const = false;
		w->fact[op->out[k]->id].is_run = true;
	}
	om_count(w->r, "computed", 1);
}

/* Output 0 has this fact; its elements follow from those of the inputs of the mask `elements`. */
static om_status
conclude(struct open *w, om_op *op, struct fact f, uint64_t elements)
{
	bool any = false;

	for (uint32_t k = 0; k < op->nin; k++) {
		if (!op->in[k] || !is_open(w, op, k))
			continue;
		if (k >= 64 || !(elements >> k & 1)) {
			if (fact_of(w, op->in[k]).is_run)
				return refuse(w, op);
			continue;
		}
		any = true;
	}
	set_fact(w, op->out[0], f);
	if (any)
		unfold(w, op);
	for (uint32_t k = 0; any && k < op->nin && k < 64; k++)
		if (op->in[k] && elements >> k & 1)
			OM_TRY(read_elements(w, op, k));
	return OM_OK;
}

static struct fact
padded(int axis)
{
	return (struct fact){.is_padded = true, .axis = axis};
}

/* ---- Known integers that follow from known integers. ---- */

/* Operators that are linear in the inputs of a mask: of slopes they compute slopes. */
static const struct linear {
	const char *type;
	uint64_t in;
} linears[] = {
	{"Add", 3}, {"Sub", 3}, {"Neg", 1}, {"Identity", 1}, {"Cast", 1}, {"Unsqueeze", 1}, {"Squeeze", 1}, {"Reshape", 1},
	{"Flatten", 1}, {"Transpose", 1}, {"Slice", 1}, {"Expand", 1}, {"Tile", 1}, {"Gather", 1}, {"Concat", UINT64_MAX}, {"Where", 6},
};

static bool
is_known_op(const struct open *w, const om_op *op)
{
	if (!op->is_folded || op->nout != 1 || !is_integer(op->out[0]->data))
		return false;
	for (uint32_t k = 0; k < op->nin; k++) {
		const struct fact f = fact_of(w, op->in[k]);
		if (op->in[k] && (f.is_padded || f.is_run || !op->in[k]->data || !op->in[k]->data->data))
			return false;
	}
	return true;
}

/* The inputs that have to have slopes where others have; 0: the op is not linear in those that have. */
static uint64_t
linear_inputs(const struct open *w, const om_op *op)
{
	uint64_t open = 0;

	for (uint32_t k = 0; k < op->nin; k++)
		if (fact_of(w, op->in[k]).slope)
			open |= k < 64 && is_integer(op->in[k]->data) ? UINT64_C(1) << k : UINT64_MAX;
	if (is_of(op, "Mul"))
		return open == 1 || open == 2 ? open : 0;
	for (size_t k = 0; k < sizeof linears / sizeof linears[0]; k++)
		if (is_of(op, linears[k].type))
			return op->nin < 64 && (open & ~linears[k].in) == 0 ? linears[k].in : 0;
	return 0;
}

/* Compute the slopes of a known output: the op itself does, of the slopes of its inputs. */
static om_status
follow_slopes(struct open *w, om_op *op, bool *done)
{
	const uint64_t linear = is_known_op(w, op) ? linear_inputs(w, op) : 0;
	om_value *out = op->out[0];
	const om_tensor *is = out->data, **was;
	om_fold_limits limits = OM_FOLD_ANY;
	om_status st;

	*done = false;
	if (linear == 0)
		return OM_OK;
	was = om_allocn(w->r->scratch, op->nin + 1u, sizeof *was);
	for (uint32_t k = 0; k < op->nin; k++)
		was[k] = op->in[k] ? op->in[k]->data : NULL;
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && linear >> k & 1)
			op->in[k]->data = fact_of(w, op->in[k]).slope ? fact_of(w, op->in[k]).slope : zeros_like(w, was[k]);
	out->data = NULL;
	st = om_op_fold(w->r->session, w->p, op, &limits, NULL);
	const om_tensor *slope = out->data;
	out->data = is;
	for (uint32_t k = op->nin; k-- > 0;)
		if (op->in[k])
			op->in[k]->data = was[k];
	OM_TRY(st);
	*done = is_integer(slope) && om_shape_equal(&slope->shape, &is->shape);
	if (*done)
		set_fact(w, out, with_slope(slope));
	return OM_OK;
}

/* The sign of a - b if it is the same for every number of rows in use: a difference of two lines has no other sign between two
 * ends at which it has the same.  False: it may change. */
static bool
has_sign(const struct open *w, const om_op *op, int64_t k, int *sign, bool *is_b)
{
	const om_tensor *a = op->in[0]->data, *b = op->in[1]->data;
	const struct fact fa = fact_of(w, op->in[0]), fb = fact_of(w, op->in[1]);
	const int64_t i = om_shape_count(&a->shape) == 1 ? 0 : k, j = om_shape_count(&b->shape) == 1 ? 0 : k;
	const int64_t now = integer_at(a, i) - integer_at(b, j), first = now - w->before * (slope_at(&fa, i) - slope_at(&fb, j));

	*sign = (now > 0) - (now < 0);
	*is_b = now < 0;
	return *sign == (first > 0) - (first < 0);
}

static bool
is_comparison(const om_op *op)
{
	return is_of(op, "Equal") || is_of(op, "Less") || is_of(op, "LessOrEqual") || is_of(op, "Greater") || is_of(op, "GreaterOrEqual");
}

/* Comparisons whose result is the same for all numbers of rows, and Max and Min of which always the same input is taken. */
static void
follow_order(struct open *w, const om_op *op, bool *done)
{
	const bool is_max = is_of(op, "Max"), picks = is_max || is_of(op, "Min");
	om_tensor *slope = NULL;
	int sign;
	bool is_b;

	if ((!picks && !is_comparison(op)) || !op->is_folded || op->nin != 2 || !op->out[0]->data)
		return;
	const int64_t n = om_shape_count(&op->out[0]->shape);
	for (uint32_t k = 0; k < 2; k++) {
		const om_tensor *t = op->in[k]->data;
		const struct fact f = fact_of(w, op->in[k]);
		if (!is_integer(t) || f.is_padded || f.is_run || (om_shape_count(&t->shape) != 1 && om_shape_count(&t->shape) != n))
			return;
	}
	if (picks)
		slope = zeros_like(w, op->out[0]->data);
	for (int64_t k = 0; k < n; k++) {
		if (!has_sign(w, op, k, &sign, &is_b))
			return;
		const uint32_t from = is_b == is_max ? 1 : 0;
		const struct fact f = picks ? fact_of(w, op->in[from]) : nothing;
		if (picks)
			set_integer(slope, k, slope_at(&f, om_shape_count(&op->in[from]->shape) == 1 ? 0 : k));
	}
	*done = true;
	set_fact(w, op->out[0], picks ? with_slope(slope) : nothing);
}

/* ---- Padded axes. ---- */

/* The padded axis of an input, of `rank` axes with those of the input last; -1: it has none. */
static int
axis_in(const struct open *w, const om_value *v, int rank)
{
	const struct fact f = fact_of(w, v);

	return f.is_padded ? f.axis + rank - v->shape.rank : -1;
}

/* Do all inputs of the mask have one element along this axis of the output, or are they padded along it? */
static bool
agree_on(const struct open *w, const om_op *op, int rank, int axis, uint64_t mask)
{
	for (uint32_t k = 0; k < op->nin; k++) {
		const om_value *v = op->in[k];
		if (!v || k >= 64 || !(mask >> k & 1))
			continue;
		const int own = axis - rank + v->shape.rank, is = axis_in(w, v, rank);
		if (is >= 0 ? is != axis : own >= 0 && v->shape.dim[own] != 1)
			return false;
	}
	return true;
}

static int
common_axis(const struct open *w, const om_op *op, int rank, uint64_t mask)
{
	for (uint32_t k = 0; k < op->nin && k < 64; k++)
		if (op->in[k] && mask >> k & 1 && axis_in(w, op->in[k], rank) >= 0)
			return axis_in(w, op->in[k], rank);
	return -1;
}

static bool
is_zero_scalar(const om_value *v)
{
	float is;

	return om_real_scalar(v->data, &is) && is == 0;
}

/* Are elements that are padded zeros in the inputs zeros in the output? */
static bool
keeps_zeros(const struct open *w, const om_op *op)
{
	if (is_of(op, "Identity") || is_of(op, "Dropout"))
		return fact_of(w, op->in[0]).is_zero;
	if (!is_of(op, "Where"))
		return false;
	for (uint32_t k = 1; k < 3; k++)
		if (!fact_of(w, op->in[k]).is_zero && !is_zero_scalar(op->in[k]))
			return false;
	return true;
}

static om_status
follow_pointwise(struct open *w, om_op *op)
{
	const int rank = op->out[0]->shape.rank, axis = common_axis(w, op, rank, UINT64_MAX);
	struct fact f = axis >= 0 ? padded(axis) : nothing;

	if (op->nout != 1 || (axis >= 0 && !agree_on(w, op, rank, axis, UINT64_MAX)))
		return refuse(w, op);
	f.is_zero = axis >= 0 && keeps_zeros(w, op);
	return conclude(w, op, f, UINT64_MAX);
}

static om_status
follow_shape(struct open *w, om_op *op)
{
	const struct fact f = fact_of(w, op->in[0]);
	const int64_t rank = op->in[0]->shape.rank, start = om_attr_has(op, "start") ? om_attr_int(op, "start") : 0;

	if (!f.is_padded)
		return OM_OK;
	if (!op->is_folded || !is_integer(op->out[0]->data))
		return refuse(w, op);
	om_tensor *slope = zeros_like(w, op->out[0]->data);
	const int64_t first = start < 0 ? (start + rank < 0 ? 0 : start + rank) : start, at = f.axis - first;
	if (at >= 0 && at < om_shape_count(&slope->shape))
		set_integer(slope, at, 1);
	set_fact(w, op->out[0], with_slope(slope));
	return OM_OK;
}

/* The one axis that a shape tells to be padded; -1: none.  False: it tells something else. */
static bool
axis_of_shape(const struct open *w, const om_value *v, int *axis)
{
	const struct fact f = fact_of(w, v);

	*axis = -1;
	if (f.is_run)
		return false;
	for (int64_t k = 0; f.slope && k < om_shape_count(&f.slope->shape); k++) {
		if (integer_at(f.slope, k) == 0)
			continue;
		if (*axis >= 0 || integer_at(f.slope, k) != 1 || integer_at(v->data, k) != w->rows)
			return false;
		*axis = (int)k;
	}
	return true;
}

static om_status
follow_constant_of_shape(struct open *w, om_op *op)
{
	int axis;

	if (!axis_of_shape(w, op->in[0], &axis))
		return refuse(w, op);
	set_fact(w, op->out[0], axis >= 0 ? padded(axis) : nothing);
	return OM_OK;
}

static om_status
follow_expand(struct open *w, om_op *op)
{
	const int rank = op->out[0]->shape.rank, is = axis_in(w, op->in[0], rank);
	int axis;

	if (!axis_of_shape(w, op->in[1], &axis) || !op->in[1]->data)
		return refuse(w, op);
	const int to = axis < 0 ? -1 : axis + rank - (int)om_shape_count(&op->in[1]->shape);
	if (to >= 0 ? !agree_on(w, op, rank, to, 1) : is >= 0 && is + (int)om_shape_count(&op->in[1]->shape) >= rank
	    && integer_at(op->in[1]->data, is - rank + om_shape_count(&op->in[1]->shape)) != 1)
		return refuse(w, op);
	return conclude(w, op, to >= 0 || is >= 0 ? padded(to >= 0 ? to : is) : nothing, 1);
}

/* Range from a constant start is padded; one of a constant size has elements that depend on the rows in use. */
static om_status
follow_range(struct open *w, om_op *op)
{
	const struct fact f[3] = {fact_of(w, op->in[0]), fact_of(w, op->in[1]), fact_of(w, op->in[2])};

	if (!op->is_folded || !is_integer(op->out[0]->data) || f[0].is_run || f[1].is_run || f[2].is_run || f[2].slope
	    || !is_integer(op->in[2]->data) || integer_at(op->in[2]->data, 0) != 1)
		return refuse(w, op);
	const int64_t low = slope_at(&f[0], 0), more = slope_at(&f[1], 0) - low;
	if (more == 1 && low == 0 && om_shape_count(&op->out[0]->shape) == w->rows) {
		set_fact(w, op->out[0], padded(0));
		return OM_OK;
	}
	if (more != 0)
		return refuse(w, op);
	om_tensor *slope = zeros_like(w, op->out[0]->data);
	for (int64_t k = 0; k < om_shape_count(&slope->shape); k++)
		set_integer(slope, k, low);
	set_fact(w, op->out[0], with_slope(slope));
	return OM_OK;
}

/* Is dim `d` of a reshaped value not written as a number, which would not be that of another number of rows, but inferred, or that
 * of the same axis of the input? */
static bool
follows_size(const om_op *op, int d, int axis)
{
	const int64_t is = is_integer(op->in[1]->data) ? integer_at(op->in[1]->data, d) : 1;

	return is == -1 || (is == 0 && d == axis && om_attr_int(op, "allowzero") == 0);
}

/* The same elements in the same order: the padded axis remains an axis, with as many elements before it. */
static om_status
follow_reshape(struct open *w, om_op *op)
{
	const struct fact f = fact_of(w, op->in[0]);
	const om_shape *in = &op->in[0]->shape, *out = &op->out[0]->shape;
	int told = -1;

	if (op->nin > 1 && op->in[1] && !axis_of_shape(w, op->in[1], &told))
		return refuse(w, op);
	if (!f.is_padded)
		return told >= 0 ? refuse(w, op) : conclude(w, op, nothing, 1);
	for (int d = 0; d < out->rank; d++) {
		if (out->dim[d] != in->dim[f.axis] || om_shape_span(out, 0, d) != om_shape_span(in, 0, f.axis) || (told >= 0 && told != d))
			continue;
		if (is_of(op, "Reshape") && told < 0 && !follows_size(op, d, f.axis))
			continue;
		return conclude(w, op, padded(d), 1);
	}
	return refuse(w, op);
}

static om_status
follow_transpose(struct open *w, om_op *op)
{
	const struct fact f = fact_of(w, op->in[0]);
	const int rank = op->in[0]->shape.rank;
	size_t n;
	const int64_t *perm = om_attr_ints(op, "perm", &n);

	for (int d = 0; f.is_padded && d < rank; d++)
		if ((perm ? (int)perm[d] : rank - 1 - d) == f.axis)
			return conclude(w, op, padded(d), 1);
	return conclude(w, op, nothing, 1);
}

/* A part that has all of the padded axis, or a part of an input without one whose bounds are the same for all numbers of rows. */
static om_status
follow_slice(struct open *w, om_op *op)
{
	const struct fact f = fact_of(w, op->in[0]);
	const int rank = op->in[0]->shape.rank;

	for (uint32_t k = 1; k < op->nin; k++)
		if (op->in[k] && (!is_integer(op->in[k]->data) || fact_of(w, op->in[k]).is_run || (!f.is_padded && is_open(w, op, k))))
			return refuse(w, op);
	if (!f.is_padded)
		return conclude(w, op, nothing, 1);
	const struct fact end = fact_of(w, op->in[2]);
	for (int64_t i = 0; i < om_shape_count(&op->in[2]->shape); i++) {
		const int64_t axis = op->nin > 3 && op->in[3] ? integer_at(op->in[3]->data, i) : i;
		const int64_t step = op->nin > 4 && op->in[4] ? integer_at(op->in[4]->data, i) : 1, last = integer_at(op->in[2]->data, i);
		if ((axis < 0 ? axis + rank : axis) == f.axis) {
			const struct fact start = fact_of(w, op->in[1]);
			if (step != 1 || integer_at(op->in[1]->data, i) != 0 || slope_at(&start, i) || last < w->rows || slope_at(&end, i) > 1
			    || slope_at(&end, i) < 0)
				return refuse(w, op);
		} else if (slope_at(&end, i) != 0) {
			return refuse(w, op);
		}
	}
	return conclude(w, op, padded(f.axis), 1);
}

/* Along another axis than the padded one. */
static om_status
follow_concat(struct open *w, om_op *op)
{
	const int rank = op->out[0]->shape.rank, axis = common_axis(w, op, rank, UINT64_MAX);
	const int64_t along = om_attr_int(op, "axis");

	if (op->nin > 64)
		return refuse(w, op);
	for (uint32_t k = 0; axis >= 0 && k < op->nin; k++)
		if (axis_in(w, op->in[k], rank) != axis || (along < 0 ? along + rank : along) == axis)
			return refuse(w, op);
	return conclude(w, op, axis >= 0 ? padded(axis) : nothing, UINT64_MAX);
}

/* Are all indices into a padded axis before the end, for every number of rows?  An index is the `step`-th integer from `first`
 * on.  Those of a padded axis of the indices itself count only before the end: each is at most its own position there. */
static bool
are_inside(const struct open *w, const om_value *v, int64_t first, int64_t step)
{
	const struct fact f = fact_of(w, v);

	if (!is_integer(v->data) || f.slope || f.is_run)
		return false;
	const int64_t n = om_shape_count(&v->shape), inner = f.is_padded ? om_shape_span(&v->shape, f.axis + 1, v->shape.rank) : 1;
	for (int64_t k = first; k < n; k += step) {
		const int64_t is = integer_at(v->data, k);
		if (is < 0 || is > (f.is_padded ? k / inner % v->shape.dim[f.axis] : 0))
			return false;
	}
	return true;
}

static om_status
follow_gather(struct open *w, om_op *op)
{
	const om_value *data = op->in[0], *at = op->in[1];
	const struct fact of = fact_of(w, data), by = fact_of(w, at);
	const int64_t along = om_attr_int(op, "axis");
	const int axis = (int)(along < 0 ? along + data->shape.rank : along), more = at->shape.rank - 1;

	if (of.is_padded && of.axis != axis)
		return by.is_padded ? refuse(w, op) : conclude(w, op, padded(of.axis < axis ? of.axis : of.axis + more), 3);
	if (of.is_padded && !are_inside(w, at, 0, 1))
		return refuse(w, op);
	return conclude(w, op, by.is_padded ? padded(axis + by.axis) : nothing, 3);
}

static om_status
follow_gather_nd(struct open *w, om_op *op)
{
	const om_value *data = op->in[0], *at = op->in[1];
	const struct fact of = fact_of(w, data), by = fact_of(w, at);
	const int rank = at->shape.rank;
	const int64_t n = at->shape.dim[rank - 1];

	if (om_attr_int(op, "batch_dims") != 0 || (of.is_padded && (of.axis >= n || !are_inside(w, at, of.axis, n)))
	    || (by.is_padded && by.axis == rank - 1))
		return refuse(w, op);
	return conclude(w, op, by.is_padded ? padded(by.axis) : nothing, 3);
}

/* Is each index that of its own place in a tensor of this shape? */
static bool
are_own_places(const om_tensor *at, const om_shape *of)
{
	if (!is_integer(at) || at->shape.rank != of->rank + 1 || at->shape.dim[of->rank] != of->rank || om_shape_count(of) * of->rank != om_shape_count(&at->shape))
		return false;
	for (int64_t k = 0; k < om_shape_count(of); k++) {
		int64_t rest = k;
		for (int d = of->rank - 1; d >= 0; rest /= of->dim[d--])
			if (integer_at(at, k * of->rank + d) != rest % of->dim[d])
				return false;
	}
	return true;
}

/* Exporters write `mask[:, :, :, :n] = ...` so, which replaces all elements: then each is that of the updates, before the end and after. */
static om_status
follow_scatter_nd(struct open *w, om_op *op)
{
	const om_value *data = op->in[0], *at = op->in[1], *updates = op->in[2];
	const int axis = axis_in(w, data, data->shape.rank);
	const struct fact of = fact_of(w, at), by = fact_of(w, updates);

	if (axis < 0 && !of.is_padded && !by.is_padded)
		return conclude(w, op, nothing, 7);
	if (axis < 0 || !om_attr_is(op, "reduction", "none") || is_open(w, op, 1) || !of.is_padded || of.axis != axis || !by.is_padded || by.axis != axis
	    || !om_shape_equal(&data->shape, &updates->shape) || !are_own_places(at->data, &data->shape))
		return refuse(w, op);
	return conclude(w, op, padded(axis), 5);
}

/* Columns of the second factor become columns of the product; a sum over a padded axis ends at the rows in use if one factor has
 * zeros there. */
static om_status
follow_matmul(struct open *w, om_op *op)
{
	const int left = op->in[0]->shape.rank, right = op->in[1]->shape.rank;
	const struct fact a = fact_of(w, op->in[0]), b = fact_of(w, op->in[1]);

	if (!a.is_padded && !b.is_padded)
		return conclude(w, op, nothing, 3);
	if (left < 2 || right < 2 || !b.is_padded)
		return refuse(w, op);
	if (!a.is_padded && b.axis == right - 1)
		return conclude(w, op, padded(op->out[0]->shape.rank - 1), 3);
	return a.is_zero && a.axis == left - 1 && b.axis == right - 2 ? conclude(w, op, nothing, 3) : refuse(w, op);
}

static om_status follow(struct open *w, om_op *op);

/* The factor with its last two axes exchanged, if an attribute says so. */
static om_status
turn_factor(struct open *w, om_op *place, const char *attr, om_value **v)
{
	int64_t perm[OM_MAX_RANK];
	const int rank = (*v)->shape.rank;
	om_op *op;

	if (!om_attr_int(place, attr))
		return OM_OK;
	for (int d = 0; d < rank; d++)
		perm[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
	op = om_op_new(w->p, "", "Transpose", 0, 1, 1);
	om_op_add_attr(w->p, op, &OM_MAKE_INTS("perm", (size_t)rank, perm));
	om_op_set_in(op, 0, *v);
	OM_TRY(add_op(w, place, op, (*v)->name, v));
	return follow(w, op);
}

/* A product with transposed factors and a scale becomes its parts, which an attention is recognized by. */
static om_status
follow_fused_matmul(struct open *w, om_op *op)
{
	om_value *a = op->in[0], *b = op->in[1], *y = op->out[0];
	float alpha = om_attr_float(op, "alpha");

	if (!fact_of(w, a).is_padded && !fact_of(w, b).is_padded)
		return conclude(w, op, nothing, 3);
	if (op->is_folded || a->shape.rank < 2 || b->shape.rank < 2 || a->type.elem != OM_FLOAT32 || om_attr_int(op, "transBatchA")
	    || om_attr_int(op, "transBatchB"))
		return refuse(w, op);
	OM_TRY(turn_factor(w, op, "transA", &a));
	OM_TRY(turn_factor(w, op, "transB", &b));
	if (alpha != 1) {
		OM_TRY(add_binary(w, op, "MatMul", a, b, y->name, &a));
		OM_TRY(follow(w, a->def));
		b = constant(w, "scale", &(om_tensor){.type = OM_FLOAT32, .shape = om_shape_of(0, NULL),
			.data = om_memdup(w->p->mem, &alpha, sizeof alpha)});
	}
	om_op *last = om_op_new(w->p, "", alpha != 1 ? "Mul" : "MatMul", 0, 2, 1);
	om_op_set_in(last, 0, a);
	om_op_set_in(last, 1, b);
	last->name = op->name;
	om_op_insert(op, last);
	om_op_remove(op);
	om_op_set_out(last, 0, y);
	OM_TRY(om_op_infer(w->r->session, w->p, last));
	return follow(w, last);
}

static om_status
follow_softmax(struct open *w, om_op *op)
{
	const struct fact f = fact_of(w, op->in[0]);
	const int64_t along = om_attr_int(op, "axis"), rank = op->in[0]->shape.rank;
	om_value *out = op->out[0];

	if (!f.is_padded)
		return conclude(w, op, nothing, 1);
	if (op->is_folded || f.axis != rank - 1 || (along != -1 && along != rank - 1) || !om_is_real(op->in[0]->type.elem) || op->version < 13)
		return refuse(w, op);
	om_op *first = om_op_new(w->p, DOMAIN, "PrefixSoftmax", 1, 2, 1);
	om_op_set_in(first, 0, op->in[0]);
	om_op_set_in(first, 1, w->count);
	first->name = op->name;
	om_op_insert(op, first);
	om_op_remove(op);
	om_op_set_out(first, 0, out);
	set_fact(w, out, (struct fact){.is_padded = true, .axis = f.axis, .is_zero = true});
	return om_op_infer(w->r->session, w->p, first);
}

/* Attention of ai.onnx has an input for the number of keys that are no padding. */
static om_status
follow_attention(struct open *w, om_op *op)
{
	enum { KEY = 1, VALUE = 2, MASK = 3, VALID = 6 };
	const struct fact k = fact_of(w, op->in[KEY]), v = fact_of(w, op->in[VALUE]);
	const om_value *mask = op->nin > MASK ? op->in[MASK] : NULL;
	om_value *most;

	for (uint32_t i = 0; i < op->nin; i++)
		if (op->in[i] && ((i > MASK && i != VALID) || is_open(w, op, i)))
			return refuse(w, op);
	for (uint32_t i = 1; i < op->nout; i++)
		if (op->out[i])
			return refuse(w, op);
	if (op->nin > VALID || !k.is_padded || !v.is_padded || k.axis != 2 || v.axis != 2 || fact_of(w, op->in[0]).is_padded
	    || op->in[KEY]->shape.rank != 4 || om_attr_int(op, "is_causal") != 0
	    || (mask && (!fact_of(w, mask).is_padded || fact_of(w, mask).axis != mask->shape.rank - 1)))
		return refuse(w, op);
	om_op *is = om_op_new(w->p, "", "Attention", 24, VALID + 1, 1);
	for (uint32_t i = 0; i < op->nattr; i++)
		om_op_add_attr(w->p, is, &op->attr[i]);
	for (uint32_t i = 0; i < op->nin; i++)
		om_op_set_in(is, i, op->in[i]);
	OM_TRY(add_binary(w, op, "Add", integers(w, "rows", op->in[KEY]->shape.dim[0], 0), w->count, "rows_valid", &most));
	om_op_set_in(is, VALID, most);
	is->name = op->name;
	om_value *out = op->out[0];
	om_op_insert(op, is);
	om_op_remove(op);
	om_op_set_out(is, 0, out);
	return om_op_infer(w->r->session, w->p, is);
}

static const struct rule {
	const char *type;
	om_status (*follow)(struct open *w, om_op *op);
} rules[] = {
	{"Shape", follow_shape}, {"ConstantOfShape", follow_constant_of_shape}, {"Expand", follow_expand}, {"Range", follow_range},
	{"Reshape", follow_reshape}, {"Flatten", follow_reshape}, {"Unsqueeze", follow_reshape}, {"Squeeze", follow_reshape},
	{"Transpose", follow_transpose}, {"Slice", follow_slice}, {"Concat", follow_concat}, {"Gather", follow_gather},
	{"GatherND", follow_gather_nd}, {"ScatterND", follow_scatter_nd}, {"MatMul", follow_matmul}, {"Softmax", follow_softmax}, {"Attention", follow_attention},
};

/* Is the op of no concern: all its inputs are as in any program? */
static bool
is_plain(const struct open *w, const om_op *op)
{
	for (uint32_t k = 0; k < op->nin; k++) {
		const struct fact f = fact_of(w, op->in[k]);
		if (f.slope || f.is_padded || f.is_run)
			return false;
	}
	return true;
}

static om_status
follow(struct open *w, om_op *op)
{
	bool done;

	if (is_plain(w, op))
		return OM_OK;
	if (!op->opdef || op->nbody || op->nout == 0 || !op->out[0] || op->out[0]->shape.rank < 0)
		return refuse(w, op);
	OM_TRY(follow_slopes(w, op, &done));
	if (!done)
		follow_order(w, op, &done);
	if (done)
		return OM_OK;
	for (size_t k = 0; k < sizeof rules / sizeof rules[0]; k++)
		if (is_of(op, rules[k].type))
			return rules[k].follow(w, op);
	if (strcmp(op->domain, "com.microsoft") == 0 && strcmp(op->type, "FusedMatMul") == 0)
		return follow_fused_matmul(w, op);
	return op->opdef->flags & OM_POINTWISE ? follow_pointwise(w, op) : refuse(w, op);
}

/* ---- Caches. ---- */

/* Is it present = Concat(past, new), of this many rows? */
static om_op *
appending_op(const struct open *w, const om_value *past, const om_value *present, int *axis)
{
	om_op *op = present->def;

	if (!op || !is_of(op, "Concat") || op->nin != 2 || op->in[0] != past || op->in[1] == past || op->block != w->p->first
	    || past->is_overridable || !om_shape_is_known(&past->shape) || !om_shape_is_known(&op->in[1]->shape))
		return NULL;
	const int64_t along = om_attr_int(op, "axis");
	*axis = (int)(along < 0 ? along + past->shape.rank : along);
	return *axis > 0 && present->shape.dim[*axis] == w->rows ? op : NULL;
}

static om_status
open_cache(struct open *w, om_io_alias *a, int64_t *fresh)
{
	om_value *past = w->p->first->param[a->param], *present = w->p->first->result[a->result], *row;
	int axis = 0;
	om_op *concat = appending_op(w, past, present, &axis);

	if (!concat)
		return om_shape_equal(&past->shape, &present->shape) ? OM_OK
			: om_fail(w->r->session, OM_UNSUPPORTED, "output %s is not the input %s with new rows, %lld in all", present->name, past->name,
				(long long)w->rows);
	const int64_t rows = concat->in[1]->shape.dim[axis];
	if (*fresh && *fresh != rows)
		return om_fail(w->r->session, OM_UNSUPPORTED, "output %s has %lld new rows, and others have %lld", present->name, (long long)rows,
			(long long)*fresh);
	*fresh = rows;
	OM_TRY(add_binary(w, concat, "Add", integers(w, "row", past->shape.dim[0], w->rows - rows), w->less, "rows_before", &row));
	om_op *op = om_op_new(w->p, "", "TensorScatter", 24, 3, 1);
	om_op_add_attr(w->p, op, &OM_MAKE_INT("axis", axis));
	om_op_set_in(op, 0, past);
	om_op_set_in(op, 1, concat->in[1]);
	om_op_set_in(op, 2, row);
	om_op_insert(concat, op);
	om_op_remove(concat);
	om_op_set_out(op, 0, present);
	set_fact(w, present, padded(axis));
	om_count(w->r, "caches", 1);
	return OM_OK;
}

/* The shape of a past: `past` is the only input whose padded axis is shorter, and nothing but its shape is read. */
static om_status
read_past(struct open *w, const om_value *past, const om_op *writer, int axis)
{
	for (const om_use *u = past->first_use; u; u = u->next) {
		om_op *op = u->op;
		if (op == writer)
			continue;
		if (!op || !is_of(op, "Shape") || !op->is_folded || op->block != w->p->first)
			return om_fail(w->r->session, OM_UNSUPPORTED, "input %s is read not only as a cache", past->name);
		set_fact(w, past, padded(axis));
		OM_TRY(follow_shape(w, op));
		set_fact(w, past, nothing);
		/* The op would see the shape of the buffer. */
		om_value *known = constant(w, op->out[0]->name, op->out[0]->data);
		const struct fact f = fact_of(w, op->out[0]);
		om_op *same = om_op_new(w->p, "", "Identity", 0, 1, 1);
		om_value *out = op->out[0];
		om_op_set_in(same, 0, known);
		om_op_insert(op, same);
		om_op_remove(op);
		om_op_set_out(same, 0, out);
		same->is_folded = true;
		known->is_const = true;
		set_fact(w, out, f);
		return read_past(w, past, writer, axis);
	}
	return OM_OK;
}

static om_status
open_caches(struct open *w)
{
	int64_t fresh = 0;

	for (uint32_t k = 0; k < w->p->nio_alias; k++)
		OM_TRY(open_cache(w, &w->p->io_alias[k], &fresh));
	for (uint32_t k = 0; k < w->p->nio_alias; k++) {
		om_value *past = w->p->first->param[w->p->io_alias[k].param], *present = w->p->first->result[w->p->io_alias[k].result];
		const struct fact f = fact_of(w, present);
		if (!f.is_padded)
			continue;
		OM_TRY(read_past(w, past, present->def, f.axis));
		past->shape = present->shape;
		past->shape.sym[f.axis] = present->shape.sym[f.axis] = NULL;
	}
	return OM_OK;
}

/* Inputs that grow with the caches, along their last axis. */
static om_status
open_inputs(struct open *w, const char *names)
{
	for (uint32_t k = 0; k < w->p->first->nparam; k++) {
		om_value *v = w->p->first->param[k];
		const int last = v->shape.rank - 1;
		if (v->is_overridable || strcmp(v->name, names) != 0)
			continue;
		if (last < 0 || v->shape.dim[last] != w->rows)
			return om_fail(w->r->session, OM_UNSUPPORTED, "input %s does not have the %lld rows of the caches", v->name, (long long)w->rows);
		set_fact(w, v, padded(last));
	}
	return OM_OK;
}

/* The input that tells the rows in use, and what follows from it. */
static om_status
add_rows(struct open *w)
{
	om_op *place = w->p->first->first;
	om_value *rows = om_value_fresh(w->p, w->p->first, ROWS_NAME);

	if (strcmp(rows->name, ROWS_NAME) != 0)
		return om_fail(w->r->session, OM_UNSUPPORTED, "the program has a value %s", ROWS_NAME);
	rows->type = (om_type){.kind = OM_TENSOR, .elem = OM_INT64};
	rows->shape = om_shape_of(0, NULL);
	om_block_add_param(w->p->first, rows);
	OM_TRY(add_binary(w, place, "Sub", rows, integers(w, "rows", -1, w->before), "rows_less", &w->less));
	return add_binary(w, place, "Add", w->less, integers(w, "rows", -1, w->rows), "rows_after", &w->count);
}

/* Rows of a past in this program; 0: no cache grows by Concat. */
static int64_t
rows_before(const struct open *w)
{
	for (uint32_t k = 0; k < w->p->nio_alias; k++) {
		const om_value *past = w->p->first->param[w->p->io_alias[k].param];
		int axis;
		if (appending_op(w, past, w->p->first->result[w->p->io_alias[k].result], &axis))
			return past->shape.dim[axis];
	}
	return 0;
}

/* Results have no padding, but for the caches themselves.  Bodies read nothing that depends on the rows: ops in them may be folded. */
static om_status
check_uses(const struct open *w)
{
	for (uint32_t id = 0; id < w->nfact; id++) {
		const om_value *v = w->p->values[id];
		const struct fact f = v ? fact_of(w, v) : nothing;
		if (!f.is_padded && !f.slope && !f.is_run)
			continue;
		for (const om_use *u = v->first_use; u; u = u->next) {
			bool is_cache = false;
			for (uint32_t k = 0; !u->op && k < w->p->nio_alias; k++)
				is_cache |= u->block == w->p->first && u->index == w->p->io_alias[k].result;
			if (u->op ? u->op->block != w->p->first : !is_cache && !f.is_run)
				return om_fail(w->r->session, OM_UNSUPPORTED, "%s depends on the number of rows in use, but is read in a body, or an output",
					v->name);
		}
	}
	return OM_OK;
}

static om_status
change(struct open *w)
{
	w->before = rows_before(w);
	if (w->before == 0)
		return om_fail(w->r->session, OM_UNSUPPORTED, "no output is an input with new rows, %lld in all", (long long)w->rows);
	w->nfact = w->p->nvalue;
	w->fact = OM_NEWN(w->r->scratch, struct fact, w->nfact + 1u);
	OM_TRY(add_rows(w));
	OM_TRY(open_caches(w));
	OM_TRY(open_inputs(w, om_option(w->r, "input")));
	for (om_op *op = w->p->first->first, *next; op; op = next) {
		next = op->next;
		OM_TRY(follow(w, op));
	}
	return check_uses(w);
}

static om_status
run(om_run *r, om_prog *p)
{
	struct open w = {.r = r, .p = p};
	uint64_t rows;

	OM_TRY(om_option_number(r, "rows", &rows));
	if (rows == 0)
		return OM_OK;
	if (rows > INT32_MAX)
		return om_fail(r->session, OM_USAGE, "option rows requires at most %d, not %llu", INT32_MAX, (unsigned long long)rows);
	if (r->request->target != OM_TARGET_CPU)
		return om_fail(r->session, OM_USAGE, "a program with an input for the rows in use requires a plan for cpu");
	if (p->nio_alias == 0)
		OM_TRY(om_prog_states_by_name(r->session, p, "auto"));
	w.rows = (int64_t)rows;
	return change(&w);
}

static const om_pass_option options[] = {
	{"rows", "0", "rows of each buffer, and of each cache after the step in the program; 0: nothing changes"},
	{"input", "attention_mask", "the input that grows with the caches along its last axis, if there is one"},
	{0}
};

static const om_pass_counter counters[] = {
	{"caches", "caches that are buffers with any number of rows in use"},
	{"computed", "values that were constants, and that a run computes"},
	{0}
};

OM_PASS(
	.name = "open-rows",
	.brief = "let one program serve every number of rows in use of its caches",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.options = options,
	.counters = counters,
	.run = run)
