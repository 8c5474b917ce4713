/* SPDX-License-Identifier: Apache-2.0 */
/* GatherBlockQuantized of com.microsoft: rows of a quantized table, such as embeddings, as floating point.
 *
 * Along `quantize_axis` each block of elements has a scale and a zero point.  Elements of fewer than 8 bits in uint8
 * are packed along the last axis, the first one in the lowest bits; the shape of the table counts them one by one. */
#include <config.h>

#include "base/convert_elements.h"
#include "base/shape.h"
#include "ir/query.h"
#include "opdef/columns.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/family.h"
#include "ops/slices.h"
#include "ops/tensor/index.h"

enum { DATA, INDICES, SCALES, ZEROS };

#define OF_SMALL_FLOATS (OF_FLOAT8S | OF(FLOAT4E2M1))

struct table {
	om_shape shape;           /* of the elements */
	int gathered, quantized;  /* axes */
	int64_t block, blocks;    /* elements of a block; blocks along `quantized` */
	int64_t each;             /* elements of a byte of uint8 */
	int64_t step[OM_MAX_RANK]; /* of scales, along each axis; 0 along an axis that they are broadcast along */
	int64_t zero_line;        /* zero points of uint8: bytes of a line */
	int64_t line;             /* scales along the last axis */
};

static bool
is_small_float(om_dtype t)
{
	return OF_SMALL_FLOATS >> t & 1;
}

/* Attributes, and the shape of the elements, whose dims may be unknown. */
static om_status
read_table(const om_op_context *c, struct table *t)
{
	const int64_t bits = c->in[DATA].type == OM_UINT8 ? om_attr_int(c->op, "bits") : 8;
	int64_t *last;

	*t = (struct table){.shape = c->in[DATA].shape, .block = om_attr_int(c->op, "block_size"), .each = 8 / (bits ? bits : 1)};
	if (bits != 2 && bits != 4 && bits != 8)
		return om_op_fail(c->session, OM_INVALID, c->op, "bits is neither 2 nor 4 nor 8");
	if (t->block < 0 || t->block > INT32_MAX || (t->block == 0 && !is_small_float(c->in[DATA].type)))
		return om_op_fail(c->session, OM_INVALID, c->op, "block_size %lld is not possible", (long long)t->block);
	if (t->shape.rank < 0)
		return OM_OK;
	OM_TRY(om_attr_axis(c, "gather_axis", t->shape.rank, &t->gathered));
	OM_TRY(om_attr_axis(c, "quantize_axis", t->shape.rank, &t->quantized));
	if (c->in[DATA].type == OM_UINT8 && (t->gathered != 0 || (t->each > 1 && t->quantized == 0)))
		return om_wrong(c, "a table of uint8 is gathered along axis 0, and quantized along another one if it is packed");
	last = &t->shape.dim[t->shape.rank - 1];
	if (*last >= 0 && __builtin_mul_overflow(*last, t->each, last))
		return om_wrong(c, "the table is too large");
	return OM_OK;
}

static int64_t
blocks_of(const struct table *t)
{
	const int64_t n = t->shape.dim[t->quantized];

	return n < 0 || t->block == 0 ? n < 0 ? n : 1 : n / t->block + (n % t->block != 0);
}

/* Scales have the shape of the table with blocks in place of elements; those of floats may be broadcast. */
static om_status
check_scales(const om_op_context *c, struct table *t)
{
	const om_shape *s = &c->in[SCALES].shape;
	int64_t step = 1;

	if (s->rank < 0 || t->shape.rank < 0)
		return OM_OK;
	if (s->rank != t->shape.rank)
		return om_wrong(c, "scales must have the rank of data");
	t->blocks = blocks_of(t);
	t->line = s->dim[s->rank - 1];
	for (int d = s->rank - 1; d >= 0; d--) {
		const int64_t want = d == t->quantized ? t->blocks : t->shape.dim[d];
		const bool is_broadcast = s->dim[d] == 1 && d != t->quantized && is_small_float(c->in[DATA].type);
		if (!om_dims_agree(s->dim[d], want) && !is_broadcast)
			return om_wrong(c, "the shape of scales does not match that of data and its blocks");
		t->step[d] = s->dim[d] == 1 ? 0 : step;
		step *= s->dim[d] > 0 ? s->dim[d] : 1;
	}
	return OM_OK;
}

/* Zero points have the shape of scales; in uint8 they are packed along the last axis. */
static om_status
check_zeros(const om_op_context *c, struct table *t)
{
	const om_shape *z = &c->in[ZEROS].shape, *s = &c->in[SCALES].shape;

	if (!om_has_in(c, ZEROS))
		return OM_OK;
	if (is_small_float(c->in[DATA].type))
		return om_wrong(c, "a table of floating-point numbers has no zero points");
	if (z->rank < 0 || s->rank < 0)
		return OM_OK;
	bool fits = z->rank == s->rank;
	for (int d = 0; fits && d < s->rank; d++) {
		const bool is_packed = d == s->rank - 1 && t->each > 1 && s->dim[d] >= 0;
		fits = om_dims_agree(z->dim[d], is_packed ? (s->dim[d] + t->each - 1) / t->each : s->dim[d]);
	}
	if (!fits)
		return om_wrong(c, "the shape of zero_points does not match that of scales");
	t->zero_line = z->rank ? z->dim[z->rank - 1] : 1;
	return OM_OK;
}

static void
append(om_shape *to, const om_shape *from, int first, int end)
{
	for (int d = first; d < end; d++)
		om_copy_dim(to, to->rank++, from, d);
}

static om_status
gather_infer(om_op_context *c)
{
	const om_shape *at = &c->in[INDICES].shape;
	om_shape *y = &c->out[0].shape;
	struct table t;

	c->out[0].type = c->in[SCALES].type;
	OM_TRY(read_table(c, &t));
	OM_TRY(check_scales(c, &t));
	OM_TRY(check_zeros(c, &t));
	if (t.shape.rank < 0 || at->rank < 0)
		return OM_OK;
	if (t.shape.rank + at->rank - 1 > OM_MAX_RANK)
		return om_wrong(c, "the output has too many axes");
	*y = (om_shape){.rank = 0};
	append(y, &t.shape, 0, t.gathered);
	append(y, at, 0, at->rank);
	append(y, &t.shape, t.gathered + 1, t.shape.rank);
	if (t.each > 1 && t.gathered != t.shape.rank - 1)
		y->sym[y->rank - 1] = NULL;
	return OM_OK;
}

/* Along axes of the indices. */
static bool
gather_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];
	const int rank = c->in[INDICES].shape.rank;
	int axis;

	if (om_attr_axis(c, "gather_axis", c->in[DATA].shape.rank, &axis) != OM_OK)
		return false;
	s->in[INDICES] = om_part_along(p, p->axis - axis);
	return p->axis >= axis && p->axis < axis + rank;
}

static om_status
gather_prepare(om_op_context *c, void **state)
{
	struct table *t = *state;

	OM_TRY(read_table(c, t));
	OM_TRY(check_scales(c, t));
	return check_zeros(c, t);
}

/* ---- Elements. ---- */

/* Element `i` of a tensor of integers of `each` to a byte, or of a small float. */
static double
element(om_dtype type, const void *data, int64_t each, int64_t i)
{
	const uint8_t *p = data;
	const bool is_half_byte = type == OM_INT4 || type == OM_UINT4 || type == OM_FLOAT4E2M1;
	uint8_t one;
	float x;

	if (type == OM_UINT8)
		return p[i / each] >> i % each * (8 / each) & ((1 << 8 / each) - 1);
	one = is_half_byte ? (uint8_t)(p[i / 2] >> i % 2 * 4 & 15) : p[i];
	if (type == OM_UINT4)
		return one;
	if (type == OM_INT4)
		return (one ^ 8) - 8;
	om_convert(OM_FLOAT32, &x, type, &one, 1, true);
	return (double)x;
}

/* The zero point of the block with scale `at`. */
static double
zero_of(const om_op_context *c, const struct table *t, int64_t at)
{
	const om_dtype type = c->in[DATA].type;

	if (!om_has_in(c, ZEROS))
		return type == OM_UINT8 ? 1 << (8 / t->each - 1) : 0;
	if (t->each > 1)
		at = at / t->line * t->zero_line * t->each + at % t->line;
	return element(type, c->in[ZEROS].data, t->each, at);
}

/* Element `i` of the table. */
static double
dequantized(const om_op_context *c, const struct table *t, int64_t i)
{
	int64_t at = 0, rest = i;

	for (int d = t->shape.rank - 1; d >= 0; d--) {
		const int64_t place = rest % t->shape.dim[d];
		rest /= t->shape.dim[d];
		at += t->step[d] * (d != t->quantized ? place : t->block ? place / t->block : 0);
	}
	return (element(c->in[DATA].type, c->in[DATA].data, t->each, i) - zero_of(c, t, at))
		* om_get(c->in[SCALES].type, c->in[SCALES].data, at);
}

/* An index out of range selects zeros. */
static om_status
gather_cpu(om_op_context *c)
{
	const struct table *t = c->state;
	const om_tensor *y = &c->out[0];
	const int64_t before = om_shape_span(&t->shape, 0, t->gathered), dim = t->shape.dim[t->gathered];
	const int64_t after = om_shape_span(&t->shape, t->gathered + 1, t->shape.rank);
	const int64_t n = om_shape_count(&c->in[INDICES].shape);

	for (int64_t k = 0; k < before * n; k++) {
		const int64_t index = om_int_at(&c->in[INDICES], k % n), row = index < 0 ? index + dim : index;
		const bool is_inside = row >= 0 && row < dim;
		for (int64_t a = 0; a < after; a++)
			om_put(y->type, y->data, k * after + a,
				is_inside ? dequantized(c, t, (k / n * dim + row) * after + a) : 0);
	}
	return OM_OK;
}

static void
gather_cost(const om_op_context *c, om_cost *cost)
{
	const double n = (double)om_shape_count(&c->out[0].shape);

	cost->flops = 2 * n;
	cost->bytes = n * 5;
}

static const om_attr_spec gather_attrs[] = {
	{"bits", OM_ATTR_INT, .i = 4},
	{"block_size", OM_ATTR_INT, .i = 128},
	{"gather_axis", OM_ATTR_INT},
	{"quantize_axis", OM_ATTR_INT, .i = 1},
	{0}
};

const om_opdef om_ops_block_gather[] = {
	{.domain = "com.microsoft", .name = "GatherBlockQuantized", .brief = "slices of a block-wise quantized table, by indices",
	 .since = 1, .min_in = 3, .max_in = 4, .min_out = 1, .max_out = 1, .attrs = gather_attrs, .infer = gather_infer,
	 .slice = gather_slice, .cpu = gather_cpu, .cost = gather_cost,
	 .input_types = {OF(UINT8) | OF(UINT4) | OF(INT4) | OF_SMALL_FLOATS, OF_INDICES, OF(FLOAT32) | OF(FLOAT16) | OF(BFLOAT16),
		LIKE(0)}},
	{0}
};

const om_kernel om_kernels_block_gather[] = {
	{.domain = "com.microsoft", .name = "GatherBlockQuantized", .state_bytes = sizeof(struct table), .prepare = gather_prepare,
	 .run = gather_cpu},
	{0}
};
