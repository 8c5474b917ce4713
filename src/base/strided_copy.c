/* SPDX-License-Identifier: Apache-2.0 */
/* Strided copies.
 *
 * Axes that are contiguous in both source and target are merged first, so that most copies reduce
 * to a few long lines.  A copy in which source and target are dense along different axes is a
 * transpose: that plane is copied in blocks that stay in cache on both sides. */
#include <config.h>

#include <string.h>

#include "base/strided_copy.h"

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
om_elements_copy(void *to, const om_tensor *from, uint64_t bytes)
{
	if (bytes == 0 || to == from->data)
		return;
	if (!from->splat) {
		memmove(to, from->data, bytes);
		return;
	}
	/* With packed elements, the last byte may be partially filled. */
	const int64_t most = (int64_t)(bytes * 8 / om_dtype_bits(from->type)), n = om_shape_count(&from->shape);
	om_fill_type(to, n < most ? n : most, from->type, from->data);
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
