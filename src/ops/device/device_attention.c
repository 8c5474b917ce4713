/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for devices of attention and rotary embeddings. */
#include <config.h>

#include <math.h>
#include <string.h>

#include "base/shape.h"
#include "base/strided_copy.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "ops/device/launches.h"
#include "ops/family.h"
#include "ops/nn/attention.h"

enum { THREADS = 256, MOST_ELEMENTS = 256 };

/* Of `flags` in attention.omk. */
enum { IS_FLAT = 1, IS_CAUSAL = 2, HAS_MASK = 4, IS_BOOL = 8, HAS_LENGTHS = 16 };

/* ---- Caches: what is past, then the new rows. ---- */

/* The walk over the rows of a cache that come from input `in`: of all heads, `rows` rows of `size` elements. */
static bool
cache_walk(const struct om_attention *a, int64_t rows, int64_t size, bool is_new, om_launch_walk *w)
{
	const int64_t dim[] = {a->batch, a->heads, rows, size};
	int64_t step[2][OM_MAX_RANK] = {{a->heads * rows * size, rows * size, size, 1},
		{a->heads * a->total * size, a->total * size, size, 1}};

	if (is_new && a->flat) {
		step[0][1] = size;
		step[0][2] = a->heads * size;
	}
	return om_launch_walk_of(w, 4, dim, 2, step);
}

static void
launch_cache(const om_op_context *c, om_launch_list *to, const struct om_attention *a, uint32_t k)
{
	const int64_t size = k == K ? a->size : a->vsize;
	const char *type = om_kernel_moved_type(c->in[k].type);
	om_launch_walk w;

	if (!om_has_out(c, k) || om_shape_count(&c->out[k].shape) == 0)
		return;
	cache_walk(a, a->past, size, false, &w);
	if (w.n > 0)
		om_launch_copy(to, type, &w, (om_launch_end){OM_OPERAND_IN, k + PAST_K - K, 0}, (om_launch_end){OM_OPERAND_OUT, k, 0});
	cache_walk(a, a->len, size, true, &w);
	if (w.n > 0)
		om_launch_copy(to, type, &w, (om_launch_end){OM_OPERAND_IN, k, 0}, (om_launch_end){OM_OPERAND_OUT, k, a->past * size});
}

/* ---- Attention. ---- */

/* Softmax in a type that numbers would be rounded to stays on the processor, as do scores that are an output. */
static bool
attention_supports(const om_op_context *c)
{
	const int64_t as = om_attr_int(c->op, "softmax_precision");
	const om_dtype type = c->in[Q].type;
	const struct om_attention a = om_attention_sizes(c);
	om_launch_walk w;

	for (uint32_t k = K; k < c->op->nin; k++)
		if (om_has_in(c, k) && k != LENGTHS && c->in[k].type != type && (k != MASK || c->in[k].type != OM_BOOL))
			return false;
	return (as == 0 || as == OM_FLOAT32 || as == OM_FLOAT64) && !om_has_out(c, SCORES) && a.size > 0 && a.size <= MOST_ELEMENTS
	    && a.vsize > 0 && a.vsize <= MOST_ELEMENTS && a.heads > 0 && om_shape_count(&c->out[Y].shape) > 0
	    && cache_walk(&a, a.len, a.size, true, &w);
}

static int32_t
flags_of(const om_op_context *c, const struct om_attention *a)
{
	return (a->flat ? IS_FLAT : 0) | (om_attr_int(c->op, "is_causal") ? IS_CAUSAL : 0)
	    | (om_has_in(c, MASK) ? HAS_MASK | (c->in[MASK].type == OM_BOOL ? IS_BOOL : 0) : 0) | (om_has_in(c, LENGTHS) ? HAS_LENGTHS : 0);
}

/* Steps of the mask along batch, head, query and key, and where it ends. */
static void
add_mask(const om_op_context *c, om_launch *l, int64_t total)
{
	const om_shape *m = &c->in[MASK].shape;
	int64_t dense[OM_MAX_RANK], step[4] = {0}, end = total;

	if (om_has_in(c, MASK)) {
		om_strides(m, dense);
		for (int d = 0; d < m->rank; d++)
			step[4 - m->rank + d] = m->dim[d] == 1 ? 0 : dense[d];
		end = m->dim[m->rank - 1] == 1 ? total : m->dim[m->rank - 1];
	}
	for (int d = 0; d < 4; d++)
		om_launch_i64(l, step[d]);
	om_launch_i64(l, end);
}

static int32_t
wide_for(int64_t n)
{
	int32_t wide = 1;

	while (wide < n)
		wide *= 2;
	return wide;
}

static void
launch_attention(const om_op_context *c, om_launch_list *to, const struct om_attention *a)
{
	const int64_t rows = a->batch * a->qheads * a->qlen;
	const char *type = om_kernel_type(c->in[Q].type), *mask = om_has_in(c, MASK) ? om_kernel_type(c->in[MASK].type) : type;
	om_launch *l = om_launch_pair(to, "attention", "attention", type, mask,
		(om_grid){.threads = THREADS, .blocks = {(uint32_t)(rows < UINT16_MAX ? rows : UINT16_MAX), 1, 1}});
	const int64_t numbers[] = {rows, a->qheads, a->heads, a->qlen, a->len, a->past, a->size, a->vsize};

	for (uint32_t k = Q; k <= LENGTHS; k++) {
		static const uint32_t operands[] = {Q, K, V, PAST_K, PAST_V, MASK, LENGTHS};
		om_launch_in(l, om_has_in(c, operands[k]) ? operands[k] : Q);
	}
	om_launch_out(l, Y);
	for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
		om_launch_i64(l, numbers[k]);
	add_mask(c, l, a->total);
	om_launch_i64(l, om_attr_int(c->op, "left_window_size"));
	om_launch_i64(l, om_attr_int(c->op, "right_window_size"));
	om_launch_i32(l, wide_for(a->vsize));
	om_launch_i32(l, flags_of(c, a));
	om_launch_f32(l, om_attr_has(c->op, "scale") ? om_attr_float(c->op, "scale") : 1 / sqrtf((float)a->size));
	om_launch_f32(l, om_attr_float(c->op, "softcap"));
}

static om_status
attention_launches(const om_op_context *c, om_launch_list *to)
{
	const struct om_attention a = om_attention_sizes(c);

	launch_cache(c, to, &a, K);
	launch_cache(c, to, &a, V);
	launch_attention(c, to, &a);
	return OM_OK;
}

/* A query is read before its result is written; caches are written before. */
static bool
attention_inplace(const om_op_context *c, uint32_t out, uint32_t in)
{
	return in == Q && om_device_inplace(c, out, in) && om_shape_equal(&c->in[Q].shape, &c->out[Y].shape);
}

/* ---- RotaryEmbedding. ---- */

static bool
rotary_supports(const om_op_context *c)
{
	const struct om_rotary r = om_rotary_sizes(c);

	return c->in[COS].type == c->in[X].type && c->in[SIN].type == c->in[X].type && r.size > 0 && r.step >= 0
	    && om_shape_equal(&c->in[COS].shape, &c->in[SIN].shape);
}

static om_status
rotary_launches(const om_op_context *c, om_launch_list *to)
{
	const struct om_rotary r = om_rotary_sizes(c);
	const bool has_places = om_has_in(c, PLACES);
	const int64_t rows = r.batch * r.len * r.heads, each = r.turned / 2 + r.size - r.turned;
	om_launch *l = om_launch_typed(to, "rotary", "rotary", om_kernel_type(c->in[X].type), rows * each);
	const int64_t numbers[] = {rows * each, each, r.size, r.turned, r.heads, r.len, r.step,
		has_places ? c->in[COS].shape.dim[0] : r.batch * r.len};

	om_launch_in(l, X);
	om_launch_in(l, COS);
	om_launch_in(l, SIN);
	om_launch_in(l, has_places ? PLACES : X);
	om_launch_out(l, 0);
	for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
		om_launch_i64(l, numbers[k]);
	om_launch_i32(l, r.flat);
	om_launch_i32(l, r.interleaved);
	om_launch_i32(l, has_places);
	return OM_OK;
}

/* A thread reads its pair before it writes it. */
static bool
rotary_inplace(const om_op_context *c, uint32_t out, uint32_t in)
{
	return in == X && om_device_inplace(c, out, in);
}

const om_device_kernel om_device_kernels_device_attention[] = {
	{.name = "Attention", .types = {OF_DEVICE_FLOATS}, .supports = attention_supports, .inplace = attention_inplace,
	 .launches = attention_launches},
	{.name = "RotaryEmbedding", .types = {OF_DEVICE_FLOATS}, .supports = rotary_supports, .inplace = rotary_inplace,
	 .launches = rotary_launches},
	{0}
};
