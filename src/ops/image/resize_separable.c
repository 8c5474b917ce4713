/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing by weighted sums: linear and cubic, one pass along each axis.  Axes before the first
 * resized axis form a batch: the intermediate results are those of one element of the batch. */
#include <config.h>

#include <math.h>

#include "ops/image/resize.h"
#include "base/half.h"
#include "base/shape.h"
#include "base/strided_copy.h"
#include "ir/query.h"
#include "opdef/columns.h"

/* ---- Passes. ---- */

#define PASS(type)                                                             \
	static void                                                            \
	pass_##type(const struct om_resize_taps *t, const type *in, type *out, int64_t outer, int64_t inner) \
	{                                                                      \
		for (int64_t o = 0; o < outer; o++)                            \
			for (int64_t k = 0; k < t->out; k++) {                 \
				const int64_t *at = t->at + k * t->n;          \
				const float *weight = t->weight + k * t->n;    \
				const type *from = in + o * t->in * inner;     \
				type *to = out + (o * t->out + k) * inner;     \
				for (int64_t i = 0; i < inner; i++)            \
					to[i] = (type)weight[0] * from[at[0] * inner + i]; \
				for (int64_t n = 1; n < t->n; n++)             \
					for (int64_t i = 0; i < inner; i++)    \
						to[i] += (type)weight[n] * from[at[n] * inner + i]; \
			}                                                      \
	}                                                                      \
	/* Along the last axis: sums are kept in a register. */                         \
	static void                                                            \
	last_pass_##type(const struct om_resize_taps *t, const type *in, type *out, int64_t outer) \
	{                                                                      \
		for (int64_t o = 0; o < outer; o++)                            \
			for (int64_t k = 0; k < t->out; k++) {                 \
				const int64_t *at = t->at + k * t->n;          \
				const float *weight = t->weight + k * t->n;    \
				type sum = 0;                                  \
				for (int64_t n = 0; n < t->n; n++)             \
					sum += (type)weight[n] * in[o * t->in + at[n]]; \
				out[o * t->out + k] = sum;                     \
			}                                                      \
	}

PASS(float)
PASS(double)

static void
run_pass(const struct om_resize_taps *t, bool wide, const void *in, void *out, int64_t outer, int64_t inner)
{
	if (wide && inner > 1)
		pass_double(t, in, out, outer, inner);
	else if (wide)
		last_pass_double(t, in, out, outer);
	else if (inner > 1)
		pass_float(t, in, out, outer, inner);
	else
		last_pass_float(t, in, out, outer);
}

#define LOAD(type) for (int64_t k = 0; k < n; k++) to[k] = (float)((const type *)from)[k]; break

static bool
load(om_dtype t, const void *from, int64_t n, float *to)
{
	switch (t) {
	case OM_FLOAT16:
		for (int64_t k = 0; k < n; k++)
			to[k] = om_half_to_float(((const uint16_t *)from)[k]);
		break;
	case OM_BFLOAT16:
		for (int64_t k = 0; k < n; k++)
			to[k] = om_bfloat_to_float(((const uint16_t *)from)[k]);
		break;
	case OM_UINT8: LOAD(uint8_t);
	case OM_INT8: LOAD(int8_t);
	case OM_UINT16: LOAD(uint16_t);
	case OM_INT16: LOAD(int16_t);
	case OM_UINT32: LOAD(uint32_t);
	case OM_INT32: LOAD(int32_t);
	case OM_UINT64: LOAD(uint64_t);
	case OM_INT64: LOAD(int64_t);
	default: return false;
	}
	return true;
}

/* Saturates to the range of the type; 0x1p31 and the like are the first numbers out of range. */
#define STORE(type, low, end)                                                  \
	for (int64_t k = 0; k < n; k++) {                                      \
		const float v = rounded ? floorf(from[k] + 0.5f) : from[k];            \
		((type *)to)[k] = v >= (end) ? (type)((type)0 < (type)-1 ? (type)-1 : (type)(((uint64_t)(end)) - 1)) \
			: v > (low) ? (type)v : (type)(low);                   \
	}                                                                      \
	break

static void
store(om_dtype t, const float *from, int64_t n, bool rounded, void *to)
{
	switch (t) {
	case OM_FLOAT16:
		for (int64_t k = 0; k < n; k++)
			((uint16_t *)to)[k] = om_float_to_half(from[k]);
		break;
	case OM_BFLOAT16:
		for (int64_t k = 0; k < n; k++)
			((uint16_t *)to)[k] = om_float_to_bfloat(from[k]);
		break;
	case OM_UINT8: STORE(uint8_t, 0.0f, 0x1p8f);
	case OM_INT8: STORE(int8_t, -0x1p7f, 0x1p7f);
	case OM_UINT16: STORE(uint16_t, 0.0f, 0x1p16f);
	case OM_INT16: STORE(int16_t, -0x1p15f, 0x1p15f);
	case OM_UINT32: STORE(uint32_t, 0.0f, 0x1p32f);
	case OM_INT32: STORE(int32_t, -0x1p31f, 0x1p31f);
	case OM_UINT64: STORE(uint64_t, 0.0f, 0x1p64f);
	default: STORE(int64_t, -0x1p63f, 0x1p63f);
	}
}

/* The axes in the order of their passes: those that shrink, then those that keep their dim, then
 * those that grow.  `*batch`: number of axes before the first resized one. */
static int
pass_order(const om_op_context *c, const struct om_resize *r, const om_shape *out, int order[OM_MAX_RANK], int *batch)
{
	int n = 0;

	*batch = r->rank;
	for (int sign = -1; sign <= 1; sign++)
		for (int k = 0; k < r->rank; k++) {
			struct om_resize_axis a = r->axis[k];
			a.out = out->dim[k];
			const int grows = (a.out > a.in) - (a.out < a.in);
			if (grows != sign || om_resize_keeps(c, r, &a))
				continue;
			order[n++] = k;
			*batch = k < *batch ? k : *batch;
		}
	return n;
}

/* Elements of the largest intermediate result for one element of the batch.  Types that are not
 * computed natively also require a converted input and output. */
static uint64_t
kept_elements(const om_op_context *c, const struct om_resize *r, const int *order, int n, int batch)
{
	const om_dtype t = c->in[0].type;
	const bool native = t == OM_FLOAT32 || t == OM_FLOAT64;
	om_shape s = c->in[0].shape;
	uint64_t most = native ? 0 : (uint64_t)om_shape_span(&s, batch, r->rank);

	for (int k = 0; k < n; k++) {
		s.dim[order[k]] = c->out[0].shape.dim[order[k]];
		const uint64_t now = (uint64_t)om_shape_span(&s, batch, r->rank);
		if ((k < n - 1 || !native) && now > most)
			most = now;
	}
	return most;
}

/* Two buffers of intermediate results, or one if one suffices. */
uint64_t
om_resize_scratch(const om_op_context *c)
{
	const om_dtype t = c->in[0].type;
	const uint64_t size = t == OM_FLOAT64 ? sizeof(double) : sizeof(float);
	int order[OM_MAX_RANK], batch;
	struct om_resize r;

	if (om_attr_is(c->op, "mode", "nearest") || om_resize_of(c, &r) != OM_OK)
		return 0;
	const int n = pass_order(c, &r, &c->out[0].shape, order, &batch);
	const uint64_t kept = kept_elements(c, &r, order, n, batch);
	return kept * size * ((t == OM_FLOAT32 || t == OM_FLOAT64) && n < 3 ? 1 : 2);
}

struct om_passes {
	struct om_resize_taps taps[OM_MAX_RANK];
	int n, batch;
	bool wide, native, smooth;
	size_t size;         /* of an element */
	uint64_t kept;       /* bytes */
	char outside[sizeof(om_string)];  /* the element for positions outside the region */
};

/* Run all passes on one element of the batch. */
static void
run_passes(om_op_context *c, const struct om_passes *p, const char *from, char *to)
{
	om_shape s = c->in[0].shape;
	char *spare[2] = {c->scratch, p->kept ? (char *)c->scratch + p->kept : c->scratch};
	const void *in = from;
	int use = 0;

	if (!p->native) {
		load(c->in[0].type, from, om_shape_span(&s, p->batch, s.rank), (float *)spare[0]);
		in = spare[0];
		use = 1;
	}
	for (int k = 0; k < p->n; k++) {
		const int axis = p->taps[k].axis;
		void *out = k == p->n - 1 && p->native ? to : spare[use];
		run_pass(&p->taps[k], p->wide, in, out, om_shape_span(&s, p->batch, axis),
			om_shape_span(&s, axis + 1, s.rank));
		s.dim[axis] = p->taps[k].out;
		in = out;
		use = !use;
	}
	if (!p->native)
		store(c->in[0].type, in, om_shape_span(&s, p->batch, s.rank),
			p->smooth, to);
}

/* Set the positions outside the region to the extrapolation value. */
static void
extrapolate(om_op_context *c, const struct om_passes *p, const struct om_resize_taps *t)
{
	const om_shape *out = &c->out[0].shape;
	const int64_t outer = om_shape_span(out, 0, t->axis), inner = om_shape_span(out, t->axis + 1, out->rank);

	for (int64_t o = 0; o < outer && t->outside; o++)
		for (int64_t k = 0; k < t->out; k++)
			if (t->outside[k])
				om_fill((char *)c->out[0].data + (size_t)((o * t->out + k) * inner) * p->size,
					inner, p->size, p->outside);
}

om_status
om_passes_prepare(const om_op_context *c, const struct om_resize *r, struct om_passes **out)
{
	const om_dtype type = c->in[0].type;
	struct om_passes *p = *out = OM_NEW(c->mem, struct om_passes);
	int order[OM_MAX_RANK];

	p->wide = type == OM_FLOAT64;
	p->native = type == OM_FLOAT64 || type == OM_FLOAT32;
	p->smooth = om_attr_int(c->op, "antialias");
	OM_TRY(om_elem_bytes(c, type, &p->size));
	if (!p->native && !load(type, NULL, 0, NULL))
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "no kernel for %s", om_dtype_text(type));
	OM_TRY(om_resize_outside(c, p->outside));
	p->n = pass_order(c, r, &c->out[0].shape, order, &p->batch);
	if (p->n > 0)
		p->kept = kept_elements(c, r, order, p->n, p->batch) * (p->wide ? sizeof(double) : sizeof(float));
	for (int k = 0; k < p->n; k++)
		OM_TRY(om_resize_taps_of(c, &r->axis[order[k]], order[k], &p->taps[k]));
	return OM_OK;
}

om_status
om_passes_run(om_op_context *c, const struct om_passes *p)
{
	const om_shape *in = &c->in[0].shape, *out = &c->out[0].shape;

	if (p->n == 0)
		return om_cpu_whole(c);
	const int64_t n = om_shape_span(in, 0, p->batch);
	const size_t from = (size_t)om_shape_span(in, p->batch, in->rank) * p->size;
	const size_t to = (size_t)om_shape_span(out, p->batch, out->rank) * p->size;
	for (int64_t b = 0; b < n; b++)
		run_passes(c, p, (const char *)c->in[0].data + (size_t)b * from,
			(char *)c->out[0].data + (size_t)b * to);
	for (int k = 0; k < p->n; k++)
		extrapolate(c, p, &p->taps[k]);
	return OM_OK;
}

/* Two flops for each weight of each pass over the output. */
void
om_resize_cost(const om_op_context *c, om_cost *cost)
{
	int order[OM_MAX_RANK], batch;
	struct om_resize r;

	if (om_attr_is(c->op, "mode", "nearest") || om_resize_of(c, &r) != OM_OK)
		return;
	const int n = pass_order(c, &r, &c->out[0].shape, order, &batch);
	cost->flops = (double)om_shape_count(&c->out[0].shape) * n * (om_attr_is(c->op, "mode", "cubic") ? 8 : 4);
}
