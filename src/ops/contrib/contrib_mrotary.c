/* SPDX-License-Identifier: Apache-2.0 */
/* MRotaryEmbedding of com.microsoft: rotary embedding of tokens with three positions (time, height, width).
 *
 * Each pair of elements of a head has one of the three positions, which selects its row of the caches. */
#include <config.h>

#include "base/shape.h"
#include "ir/query.h"
#include "opdef/columns.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/family.h"
#include "ops/slices.h"
#include "ops/tensor/index.h"

enum { X, PLACES, COS, SIN };
enum { NSECTION = 3 };

struct rotary {
	int64_t batch, heads, length, size, half; /* half: pairs of a head that are rotated */
	int64_t section[NSECTION];
	bool is_flat;             /* (batch, length, heads * size), not (batch, heads, length, size) */
	bool is_interleaved, mixes_sections;
};

static int64_t
share(int64_t n, int64_t heads)
{
	return n < 0 || heads <= 0 || n % heads ? OM_DIM_UNKNOWN : n / heads;
}

static om_status
read_rotary(const om_op_context *c, struct rotary *r)
{
	const om_shape *x = &c->in[X].shape;
	const int64_t pairs = om_in_dim(c, COS, 1), part = om_attr_int(c->op, "rotary_embedding_dim");
	size_t n;
	const int64_t *section = om_attr_ints(c->op, "mrope_section", &n);

	*r = (struct rotary){.heads = om_attr_int(c->op, "num_heads"), .is_interleaved = om_attr_int(c->op, "interleaved") != 0,
		.mixes_sections = om_attr_int(c->op, "mrope_layout") == 1, .is_flat = x->rank == 3, .batch = om_in_dim(c, X, 0)};
	if (om_attr_int(c->op, "is_packed_batching") || om_attr_float(c->op, "scale") != 1)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "no kernel for packed batches or a scale");
	if (n != NSECTION || section[0] < 0 || section[1] < 0 || section[2] < 0)
		return om_wrong(c, "mrope_section must have three elements, none of them negative");
	memcpy(r->section, section, sizeof r->section);
	r->length = om_in_dim(c, X, r->is_flat ? 1 : 2);
	if (!r->is_flat)
		r->heads = om_in_dim(c, X, 1);
	else if (r->heads == 0)
		r->heads = pairs > 0 ? om_in_dim(c, X, 2) / (2 * pairs) : OM_DIM_UNKNOWN;
	r->size = r->is_flat ? share(om_in_dim(c, X, 2), r->heads) : om_in_dim(c, X, 3);
	r->half = part ? part / 2 : r->size < 0 ? OM_DIM_UNKNOWN : r->size / 2;
	if (part < 0 || part % 2 || (r->size >= 0 && (part > r->size || (part == 0 && r->size % 2))))
		return om_wrong(c, "rotary_embedding_dim must be even and at most the head size");
	return OM_OK;
}

static om_status
check_operands(const om_op_context *c, const struct rotary *r)
{
	const int64_t sum = (int64_t)((uint64_t)r->section[0] + (uint64_t)r->section[1] + (uint64_t)r->section[2]);
	const om_shape *p = &c->in[PLACES].shape;

	for (uint32_t k = COS; k <= SIN; k++)
		if (c->in[k].shape.rank >= 0 && (c->in[k].shape.rank != 2 || !om_dims_agree(c->in[k].shape.dim[1], r->half)
		    || !om_dims_agree(om_in_dim(c, COS, 0), om_in_dim(c, k, 0))))
			return om_wrong(c, "cos_cache and sin_cache must have a column for each pair of elements of a head");
	if (r->half >= 0 && sum != r->half)
		return om_wrong(c, "mrope_section does not add up to the pairs of elements of a head");
	if (p->rank >= 0 && (p->rank != 3 || !om_dims_agree(p->dim[0], NSECTION) || !om_dims_agree(p->dim[1], r->batch)
	    || !om_dims_agree(p->dim[2], r->length)))
		return om_wrong(c, "position_ids must have three elements for each position of the sequences");
	return OM_OK;
}

static om_status
rotary_infer(om_op_context *c)
{
	const om_shape *x = &c->in[X].shape;
	struct rotary r;

	OM_TRY(om_infer_same(c));
	if (x->rank < 0)
		return OM_OK;
	if (x->rank != 3 && x->rank != 4)
		return om_wrong(c, "the input must have rank 3 or 4");
	OM_TRY(read_rotary(c, &r));
	if (om_shape_is_known(x) && om_shape_is_known(&c->in[COS].shape) && r.size < 0)
		return om_wrong(c, "num_heads must divide the last dim of the input");
	return check_operands(c, &r);
}

/* Samples, positions, heads that are an axis. */
static bool
rotary_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part p = s->out[out];
	const bool is_flat = c->in[X].shape.rank == 3;

	s->in[X] = p;
	if (p.axis == 0)
		s->in[PLACES] = om_part_along(&p, 1);
	else if (p.axis == (is_flat ? 1 : 2))
		s->in[PLACES] = om_part_along(&p, 2);
	else
		return p.axis == 1;
	return true;
}

static bool
rotary_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	return out == 0 && in == X && om_is_sole_use(c, in);
}

static om_status
rotary_prepare(om_op_context *c, void **state)
{
	OM_TRY(read_rotary(c, *state));
	return check_operands(c, *state);
}

/* Which of the three positions pair `k` has. */
static int
section_of(const struct rotary *r, int64_t k)
{
	if (!r->mixes_sections)
		return k < r->section[0] ? 0 : k < r->section[0] + r->section[1] ? 1 : 2;
	return k % NSECTION && k / NSECTION < r->section[k % NSECTION] ? (int)(k % NSECTION) : 0;
}

/* The head at element `at`, of a token with these positions. */
static void
rotate_head(const om_op_context *c, const struct rotary *r, int64_t at, const int64_t *place)
{
	const om_tensor *x = &c->in[X], *cosines = &c->in[COS], *sines = &c->in[SIN], *y = &c->out[0];

	for (int64_t k = 0; k < r->half; k++) {
		const int64_t i = at + (r->is_interleaved ? 2 * k : k), j = r->is_interleaved ? i + 1 : i + r->half;
		const int64_t from = place[section_of(r, k)] * r->half + k;
		const double a = om_get(x->type, x->data, i), b = om_get(x->type, x->data, j);
		const double cosine = om_get(x->type, cosines->data, from), sine = om_get(x->type, sines->data, from);
		om_put(y->type, y->data, i, cosine * a - sine * b);
		om_put(y->type, y->data, j, sine * a + cosine * b);
	}
	for (int64_t k = 2 * r->half; k < r->size; k++)
		om_put(y->type, y->data, at + k, om_get(x->type, x->data, at + k));
}

static om_status
rotary_cpu(om_op_context *c)
{
	const struct rotary *r = c->state;
	const int64_t tokens = r->batch * r->length;

	for (int64_t t = 0; t < tokens; t++) {
		int64_t place[NSECTION];
		for (int k = 0; k < NSECTION; k++)
			OM_TRY(om_index_read(c, PLACES, k * tokens + t, om_in_dim(c, COS, 0), &place[k]));
		for (int64_t h = 0; h < r->heads; h++)
			rotate_head(c, r, r->is_flat ? (t * r->heads + h) * r->size
				: ((t / r->length * r->heads + h) * r->length + t % r->length) * r->size, place);
	}
	return OM_OK;
}

static const om_attr_spec rotary_attrs[] = {
	{"interleaved", OM_ATTR_INT},
	{"is_packed_batching", OM_ATTR_INT},
	{"mrope_layout", OM_ATTR_INT},
	{"mrope_section", OM_ATTR_INTS, .required = true},
	{"num_heads", OM_ATTR_INT},
	{"rotary_embedding_dim", OM_ATTR_INT},
	{"scale", OM_ATTR_FLOAT, .f = 1},
	{0}
};

const om_opdef om_ops_contrib_mrotary[] = {
	{.domain = "com.microsoft", .name = "MRotaryEmbedding", .brief = "rotary embedding by three positions of a token",
	 .since = 1, .min_in = 4, .max_in = 4, .min_out = 1, .max_out = 1, .attrs = rotary_attrs, .infer = rotary_infer,
	 .slice = rotary_slice, .inplace = rotary_reuse, .cpu = rotary_cpu,
	 .input_types = {OF(FLOAT32) | OF(FLOAT16) | OF(BFLOAT16), OF(INT64), LIKE(0), LIKE(0)}},
	{0}
};

const om_kernel om_kernels_contrib_mrotary[] = {
	{.domain = "com.microsoft", .name = "MRotaryEmbedding", .state_bytes = sizeof(struct rotary), .prepare = rotary_prepare,
	 .run = rotary_cpu},
	{0}
};
