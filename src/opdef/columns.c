/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the members of many operator definitions. */
#include <config.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "base/strided_copy.h"
#include "ir/query.h"
#include "opdef/columns.h"
#include "opdef/op_context.h"

om_status
om_elem_bytes(const om_op_context *c, om_dtype t, size_t *size)
{
	const unsigned bits = om_dtype_bits(t);

	if (bits < 8)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op,
			"elements of type %s are smaller than a byte and cannot be moved one by one", om_dtype_text(t));
	*size = bits / 8;
	return OM_OK;
}

/* ---- Packed elements. ---- */

static bool
is_packed(om_dtype t)
{
	return t != OM_UNDEFINED && t != OM_STRING && om_dtype_bits(t) < 8;
}

static int64_t
held(const om_tensor *t)
{
	return t->splat ? 1 : om_shape_count(&t->shape);
}

/* Allocate one byte per element, and unpack the elements of the tensor into them. */
static om_status
unpack(om_op_context *c, om_tensor *t)
{
	const unsigned bits = om_dtype_bits(t->type), each = 8 / bits;
	const uint8_t *from = t->data;
	const int64_t n = held(t);
	uint8_t *to = om_alloc_try(c->mem, (size_t)n + 1);

	if (!to)
		return om_op_fail(c->session, OM_MEMORY, c->op, "cannot allocate the unpacked elements");
	for (int64_t k = 0; k < n && from; k++)
		to[k] = (uint8_t)(from[k / each] >> k % each * bits & ((1u << bits) - 1));
	t->data = to;
	t->type = OM_UINT8;
	return OM_OK;
}

static void
pack(const om_tensor *from, om_tensor *to)
{
	const unsigned bits = om_dtype_bits(to->type), each = 8 / bits;
	const uint8_t *x = from->data;
	const int64_t n = held(to);
	uint8_t *y = to->data;

	memset(y, 0, (size_t)((n + each - 1) / each));
	for (int64_t k = 0; k < n; k++)
		y[k / each] |= (uint8_t)(x[k] << k % each * bits);
}

om_status
om_run_unpacked(om_op_context *c, om_status (*kernel)(om_op_context *c))
{
	om_op_context wide = *c;
	bool any = false;

	for (uint32_t k = 0; k < c->op->nin; k++)
		any |= om_has_in(c, k) && is_packed(c->in[k].type);
	for (uint32_t k = 0; k < c->op->nout; k++)
		any |= om_has_out(c, k) && is_packed(c->out[k].type);
	if (!any)
		return kernel(c);
	om_tensor *in = OM_NEWN(c->mem, om_tensor, c->op->nin + 1), *out = OM_NEWN(c->mem, om_tensor, c->op->nout + 1);
	for (uint32_t k = 0; k < c->op->nin; k++) {
		in[k] = c->in[k];
		if (om_has_in(c, k) && is_packed(in[k].type))
			OM_TRY(unpack(&wide, &in[k]));
	}
	for (uint32_t k = 0; k < c->op->nout; k++) {
		if (om_has_out(c, k))
			OM_TRY(om_dense_out(c, k));
		out[k] = c->out[k];
		if (om_has_out(c, k) && is_packed(out[k].type))
			OM_TRY(unpack(&wide, &out[k]));
	}
	wide.in = in;
	wide.out = out;
	OM_TRY(kernel(&wide));
	for (uint32_t k = 0; k < c->op->nout; k++)
		if (om_has_out(c, k) && is_packed(c->out[k].type))
			pack(&out[k], &c->out[k]);
	return OM_OK;
}

size_t
om_moved_bytes(om_dtype t)
{
	return is_packed(t) ? 1 : om_dtype_bits(t) / 8;
}

/* ---- Repeated elements. ---- */

om_status
om_dense_out(om_op_context *c, uint32_t k)
{
	if (!c->out[k].splat)
		return OM_OK;
	const om_shape shape = c->out[k].shape;
	OM_TRY(c->alloc(c, k, &shape));
	c->out[k].splat = false;
	return OM_OK;
}

om_status
om_splat_through(om_op_context *c, bool *done)
{
	const om_tensor *in = &c->in[0];
	size_t size = 0;

	OM_TRY(om_elem_bytes(c, in->type, &size));
	*done = in->splat || (c->out[0].splat && om_shape_count(&in->shape) == 1);
	if (!*done)
		return om_dense_out(c, 0);
	if (c->out[0].splat)
		memcpy(c->out[0].data, in->data, size);
	else
		om_fill(c->out[0].data, om_shape_count(&c->out[0].shape), size, in->data);
	return OM_OK;
}

/* ---- Inference. ---- */

bool
om_is_steered(const om_op_context *c)
{
	for (uint32_t k = 1; k < c->op->nin; k++)
		if (om_has_in(c, k) && !c->in[k].data)
			return true;
	return false;
}

bool
om_in_few(const om_op_context *c, uint32_t k, int64_t v[OM_MAX_RANK], size_t *n)
{
	int64_t *all;
	const om_tensor *t = &c->in[k];

	if (!om_has_in(c, k) || !t->data || (t->type != OM_INT64 && t->type != OM_INT32))
		return om_in_ints(c, k, &all, n) && (memcpy(v, all, (*n < OM_MAX_RANK ? *n : OM_MAX_RANK) * sizeof *v), true);
	*n = (size_t)om_shape_count(&t->shape);
	for (size_t i = 0; i < *n && i < OM_MAX_RANK; i++)
		v[i] = om_int_at(t, (int64_t)i);
	return true;
}

bool
om_in_few_elems(const om_op_context *c, uint32_t k, om_symbolic_elem e[OM_MAX_RANK], size_t *n)
{
	const om_symbolic_elem *some;
	int64_t v[OM_MAX_RANK];

	if (om_in_few(c, k, v, n)) {
		for (size_t i = 0; i < *n && i < OM_MAX_RANK; i++)
			e[i] = (om_symbolic_elem){.known = true, .value = v[i]};
		return true;
	}
	if (!om_in_symbolic_elems(c, k, &some, n))
		return false;
	for (size_t i = 0; i < *n && i < OM_MAX_RANK; i++)
		e[i] = some[i];
	return true;
}

int64_t
om_in_dim(const om_op_context *c, uint32_t k, int d)
{
	return om_has_in(c, k) && c->in[k].shape.rank > d ? c->in[k].shape.dim[d] : OM_DIM_UNKNOWN;
}

om_status
om_infer_same(om_op_context *c)
{
	c->out[0].type = c->in[0].type;
	c->out[0].shape = c->in[0].shape;
	return OM_OK;
}

void
om_cost_of_input(const om_op_context *c, om_cost *cost)
{
	cost->flops = (double)om_shape_count(&c->in[0].shape);
}

void
om_most_first(const om_op_context *c, uint32_t out, om_shape *most)
{
	(void)out;
	for (int d = 0; d < most->rank && d < c->in[0].shape.rank; d++)
		if (most->dim[d] < 0)
			most->dim[d] = c->in[0].shape.dim[d];
}

bool
om_inplace_first(const om_op_context *c, uint32_t out, uint32_t in)
{
	(void)c;
	return out == 0 && in == 0;
}

bool
om_dim_product(const om_shape *s, int from, int to, int64_t *n, const char **sym)
{
	int open = -1, nopen = 0;
	int64_t product = 1;

	*sym = NULL;
	*n = 0;
	for (int k = from; k < to; k++)
		if (s->dim[k] == 0)
			return true;
	for (int k = from; k < to; k++) {
		if (s->dim[k] < 0) {
			open = k;
			nopen++;
		} else if (__builtin_mul_overflow(product, s->dim[k], &product)) {
			return false;
		}
	}
	*n = nopen ? OM_DIM_UNKNOWN : product;
	if (nopen == 1 && product == 1)
		*sym = s->sym[open];
	return true;
}

bool
om_dim_join(int64_t *n, const char **sym, int64_t other, const char *other_sym)
{
	if (other >= 0 && *n >= 0)
		return *n == other;
	if (*n < 0 && (other >= 0 || !*sym)) {
		*n = other;
		*sym = other_sym;
	}
	return true;
}

int64_t
om_list_length(const om_tensor *t)
{
	return t->shape.rank == 1 && t->shape.dim[0] >= 0 ? t->shape.dim[0] : -1;
}

om_status
om_attr_axis(const om_op_context *c, const char *name, int rank, int *axis)
{
	const int64_t a = om_attr_int(c->op, name);

	if (!om_axis(a, rank, axis))
		return om_op_fail(c->session, OM_SHAPE, c->op, "%s %lld is out of range for rank %d",
			name, (long long)a, rank);
	return OM_OK;
}

/* ---- Views of the whole input. ---- */

bool
om_shape_meet(om_shape *s, const om_shape *other)
{
	bool less = false;

	if (s->rank == OM_RANK_UNKNOWN)
		return false;
	if (s->rank != other->rank) {
		*s = om_shape_unknown();
		return true;
	}
	for (int k = 0; k < s->rank; k++) {
		const bool open = s->dim[k] < 0 && !s->sym[k];
		const bool same = s->dim[k] == other->dim[k] && (s->dim[k] >= 0
			|| (s->sym[k] && other->sym[k] && strcmp(s->sym[k], other->sym[k]) == 0));
		if (open || same)
			continue;
		s->dim[k] = OM_DIM_UNKNOWN;
		s->sym[k] = NULL;
		less = true;
	}
	return less;
}

bool
om_view_whole(const om_op_context *c, uint32_t out, om_view_of *v)
{
	(void)c;
	*v = (om_view_of){.in = 0};
	return out == 0;
}

om_status
om_cpu_whole(om_op_context *c)
{
	uint64_t from, to;

	if (!om_tensor_bytes(c->in[0].type, &c->in[0].shape, &from)
	    || !om_tensor_bytes(c->out[0].type, &c->out[0].shape, &to) || from != to)
		return om_op_fail(c->session, OM_RUN, c->op,
			"the input and the output differ in their number of elements");
	if (to && c->in[0].data != c->out[0].data)
		memmove(c->out[0].data, c->in[0].data, to);
	return OM_OK;
}
