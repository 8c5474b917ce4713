/* Strided copies.
 *
 * Axes that are contiguous in both source and target are merged first, so that most copies reduce
 * to a few long lines.  A copy in which source and target are dense along different axes is a
 * transpose: that plane is copied in blocks that stay in cache on both sides. */
#include <config.h>

#include "ops/tensor/strided_copy.h"
#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/query.h"
#include "opdef/op_context.h"

enum { BLOCK = 16 };

struct plane {
	int64_t n[2], to[2], from[2];
};

typedef void line_fn(char *to, int64_t t, const char *from, int64_t f, int64_t n);
typedef void plane_fn(char *to, const char *from, const struct plane *p);

/* Elements are moved as integers of their size, regardless of type. */
typedef uint8_t __attribute__((may_alias)) lane1;
typedef uint16_t __attribute__((may_alias)) lane2;
typedef uint32_t __attribute__((may_alias)) lane4;
typedef uint64_t __attribute__((may_alias)) lane8;
typedef struct __attribute__((may_alias)) lane16 { uint64_t half[2]; } lane16;

#define LANE(lane)                                                             \
	static void                                                            \
	line_##lane(char *to, int64_t t, const char *from, int64_t f, int64_t n) \
	{                                                                      \
		lane *out = (lane *)to;                                        \
		const lane *in = (const lane *)from;                           \
		if (t == 1 && f == 1) {                                        \
			memmove(to, from, (size_t)n * sizeof *out);            \
		} else if (t == 1 && f == 0) {                                 \
			const lane one = *in;                                  \
			for (int64_t k = 0; k < n; k++)                        \
				out[k] = one;                                  \
		} else {                                                       \
			for (int64_t k = 0; k < n; k++)                        \
				out[k * t] = in[k * f];                        \
		}                                                              \
	}                                                                      \
	static void                                                            \
	block_##lane(lane *to, const lane *from, int64_t n, int64_t m, const struct plane *p) \
	{                                                                      \
		for (int64_t i = 0; i < n; i++)                                \
			for (int64_t j = 0; j < m; j++)                        \
				to[i * p->to[0] + j * p->to[1]]                \
					= from[i * p->from[0] + j * p->from[1]]; \
	}                                                                      \
	static void                                                            \
	plane_##lane(char *to, const char *from, const struct plane *p)        \
	{                                                                      \
		lane *out = (lane *)to;                                        \
		const lane *in = (const lane *)from;                           \
		for (int64_t i = 0; i < p->n[0]; i += BLOCK)                   \
			for (int64_t j = 0; j < p->n[1]; j += BLOCK)           \
				block_##lane(out + i * p->to[0] + j * p->to[1], \
					in + i * p->from[0] + j * p->from[1],  \
					p->n[0] - i < BLOCK ? p->n[0] - i : BLOCK, \
					p->n[1] - j < BLOCK ? p->n[1] - j : BLOCK, p); \
	}

LANE(lane1)
LANE(lane2)
LANE(lane4)
LANE(lane8)
LANE(lane16)

static line_fn *
line_of(size_t size)
{
	switch (size) {
	case 1: return line_lane1;
	case 2: return line_lane2;
	case 4: return line_lane4;
	case 8: return line_lane8;
	default: return line_lane16;
	}
}

static plane_fn *
plane_of(size_t size)
{
	switch (size) {
	case 1: return plane_lane1;
	case 2: return plane_lane2;
	case 4: return plane_lane4;
	case 8: return plane_lane8;
	default: return plane_lane16;
	}
}

void
om_copy_axis(om_copy *p, int64_t dim, int64_t to, int64_t from)
{
	p->dim[p->rank] = dim;
	p->to[p->rank] = to;
	p->from[p->rank++] = from;
}

static om_copy
merged(const om_copy *p)
{
	om_copy m;

	m.rank = 0;
	for (int k = 0; k < p->rank; k++) {
		const int last = m.rank - 1;
		if (p->dim[k] == 1)
			continue;
		if (m.rank && m.to[last] == p->to[k] * p->dim[k] && m.from[last] == p->from[k] * p->dim[k]) {
			m.dim[last] *= p->dim[k];
			m.to[last] = p->to[k];
			m.from[last] = p->from[k];
		} else {
			om_copy_axis(&m, p->dim[k], p->to[k], p->from[k]);
		}
	}
	if (m.rank == 0)
		om_copy_axis(&m, 1, 1, 1);
	return m;
}

/* The axis along which the source is dense if that is not the last axis, otherwise -1.  It is
 * moved to the last but one position. */
static int
crossing(const om_copy *m)
{
	const int last = m->rank - 1;

	if (m->from[last] == 1 || m->from[last] == 0)
		return -1;
	for (int k = 0; k < last; k++)
		if (m->from[k] == 1)
			return k;
	return -1;
}

static void
move_axis_in(om_copy *m, int axis)
{
	const int64_t dim = m->dim[axis], to = m->to[axis], from = m->from[axis];
	int k = axis;

	for (; k < m->rank - 2; k++) {
		m->dim[k] = m->dim[k + 1];
		m->to[k] = m->to[k + 1];
		m->from[k] = m->from[k + 1];
	}
	m->dim[k] = dim;
	m->to[k] = to;
	m->from[k] = from;
}

static void
copy_innermost(const om_copy *m, int inner, size_t size, char *to, const char *from)
{
	const int a = m->rank - inner;

	if (inner == 1) {
		line_of(size)(to, m->to[a], from, m->from[a], m->dim[a]);
		return;
	}
	const struct plane p = {
		.n = {m->dim[a], m->dim[a + 1]},
		.to = {m->to[a], m->to[a + 1]},
		.from = {m->from[a], m->from[a + 1]},
	};
	plane_of(size)(to, from, &p);
}

om_copy_plan
om_copy_prepare(const om_copy *p, size_t size)
{
	om_copy_plan plan = {.m = merged(p), .size = size};
	const int axis = crossing(&plan.m);

	for (int k = 0; k < p->rank; k++)
		plan.is_empty |= p->dim[k] == 0;
	if (axis >= 0)
		move_axis_in(&plan.m, axis);
	plan.inner = axis >= 0 ? 2 : 1;
	return plan;
}

static void
copy_nest(const om_copy_plan *plan, void *to, const void *from)
{
	const om_copy *m = &plan->m;
	const int outer = m->rank - plan->inner;
	int64_t at[OM_COPY_RANK], t = 0, f = 0;

	for (int k = 0; k < outer; k++)
		at[k] = 0;
	for (int k = outer; k >= 0;) {
		copy_innermost(m, plan->inner, plan->size, (char *)to + t * (int64_t)plan->size,
			(const char *)from + f * (int64_t)plan->size);
		for (k = outer - 1; k >= 0; k--) {
			t += m->to[k];
			f += m->from[k];
			if (++at[k] < m->dim[k])
				break;
			t -= m->to[k] * m->dim[k];
			f -= m->from[k] * m->dim[k];
			at[k] = 0;
		}
	}
}

void
om_copy_go(const om_copy_plan *plan, void *to, const void *from)
{
	const om_copy *m = &plan->m;

	if (plan->is_empty)
		return;
	if (m->rank == 1 && m->to[0] == 1 && m->from[0] == 1)
		memmove(to, from, (size_t)m->dim[0] * plan->size);
	else
		copy_nest(plan, to, from);
}

void
om_copy_run(const om_copy *p, size_t size, void *to, const void *from)
{
	const om_copy_plan plan = om_copy_prepare(p, size);

	om_copy_go(&plan, to, from);
}

void
om_fill(void *to, int64_t n, size_t size, const void *one)
{
	om_copy p = {.rank = 0};

	om_copy_axis(&p, n, 1, 0);
	om_copy_run(&p, size, to, one);
}

/* Packed elements are repeated as bytes that hold several of them. */
static void
fill_packed(uint8_t *to, int64_t n, unsigned bits, uint8_t one)
{
	const unsigned each = 8 / bits;
	uint8_t byte = (uint8_t)(one & ((1u << bits) - 1));

	if (n <= 0)
		return;
	for (unsigned at = bits; at < 8; at *= 2)
		byte |= (uint8_t)(byte << at);
	memset(to, byte, (size_t)((n + each - 1) / each));
	if (n % each)
		to[n / each] &= (uint8_t)((1u << n % each * bits) - 1);
}

void
om_fill_type(void *to, int64_t n, om_dtype t, const void *one)
{
	const unsigned bits = om_dtype_bits(t);

	if (bits < 8)
		fill_packed(to, n, bits, *(const uint8_t *)one);
	else
		om_fill(to, n, bits / 8, one);
}

void
om_strides(const om_shape *s, int64_t stride[OM_MAX_RANK])
{
	int64_t n = 1;

	for (int k = s->rank - 1; k >= 0; k--) {
		stride[k] = n;
		n *= s->dim[k];
	}
}

om_status
om_elem_bytes(const om_op_context *c, om_dtype t, size_t *size)
{
	const unsigned bits = om_dtype_bits(t);

	if (bits < 8)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op,
			"elements of type %s cannot be moved one by one", om_dtype_text(t));
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
		return om_op_fail(c->session, OM_MEMORY, c->op, "there is no memory for its elements, a byte each");
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

om_status
om_check_planned(const om_op_context *c, uint32_t k, const om_shape *shape)
{
	const om_shape *planned = &c->out[k].shape;
	char want[256], got[256];
	bool same = shape->rank == planned->rank;

	for (int d = 0; d < planned->rank && same; d++)
		same = shape->dim[d] == planned->dim[d];
	if (same)
		return OM_OK;
	return om_op_fail(c->session, OM_RUN, c->op, "output %u was planned as %s, but the inputs make it %s", k,
		om_shape_text(planned, want, sizeof want), om_shape_text(shape, got, sizeof got));
}

bool
om_in_few(const om_op_context *c, uint32_t k, int64_t v[OM_MAX_RANK], size_t *n)
{
	const om_tensor *t = &c->in[k];

	if (!om_has_in(c, k) || !t->data || (t->type != OM_INT64 && t->type != OM_INT32))
		return false;
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
		return om_op_fail(c->session, OM_SHAPE, c->op, "%s is %lld, but the input has rank %d",
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
			"input and output differ in their number of elements");
	if (to && c->in[0].data != c->out[0].data)
		memmove(c->out[0].data, c->in[0].data, to);
	return OM_OK;
}
