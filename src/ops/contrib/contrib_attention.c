/* SPDX-License-Identifier: Apache-2.0 */
/* Attention operators of com.microsoft: projections, several mask formats and caches around the
 * standard operator.
 *
 * Every mask is converted into a bias that is added to the scores; the rest is composed of standard
 * operators. */
#include <config.h>

#include <float.h>
#include <math.h>

#include "ops/family.h"
#include "ops/slices.h"
#include "ir/query.h"
#include "opdef/numbers.h"
#include "opdef/composite.h"
#include "opdef/device_kernel.h"
#include "opdef/op_context.h"

typedef const om_tensor *tensor;

static int64_t
dim_of(tensor t, int k)
{
	return t && t->shape.rank > k ? t->shape.dim[k] : -1;
}

/* ---- Heads. ---- */

static tensor
permuted(om_composite *p, tensor x, int64_t a, int64_t b, int64_t c, int64_t d)
{
	return OM_SUBBUFFER(p, "Transpose", OM_WITH(OM_LIST("perm", ((const int64_t[]){a, b, c, d}), 4)), x);
}

/* From (batch, length, heads * size) to (batch, heads, length, size). */
static tensor
split_heads(om_composite *p, tensor x, int64_t heads)
{
	if (x->shape.rank == 4)
		return x;
	return permuted(p, om_composite_shaped(p, x, 4, (const int64_t[]){0, 0, heads, -1}), 0, 2, 1, 3);
}

static tensor
join_heads(om_composite *p, tensor x)
{
	return om_composite_shaped(p, permuted(p, x, 0, 2, 1, 3), 3, (const int64_t[]){0, 0, -1});
}

/* ---- Masks. ---- */

/* The mask and its parameters; the sizes are known when the mask is filled in. */
struct view {
	tensor keys;              /* the mask, int32; NULL: none */
	tensor bias;              /* added to the scores; NULL: none */
	bool causal;
	double filter;            /* the bias of a masked key */
	int64_t batch, heads, queries, past, total;
};

static bool
is_seen(const struct view *v, int64_t b, int64_t q, int64_t k)
{
	const int32_t *m = v->keys->data;
	const om_shape *s = &v->keys->shape;

	switch (s->rank) {
	case 1:
		return k < m[b] && (s->dim[0] == v->batch || k >= m[b + v->batch]);
	case 2:
		return s->dim[1] != v->total || m[b * v->total + k] != 0;
	case 3:
		return m[(b * v->queries + q) * v->total + k] != 0;
	default:
		return m[(b * s->dim[2] + v->past + q) * s->dim[3] + k] != 0;
	}
}

static bool
does_fit(const struct view *v)
{
	const om_shape *s = &v->keys->shape;

	if (v->keys->type != OM_INT32)
		return false;
	switch (s->rank) {
	case 1: return s->dim[0] == v->batch || s->dim[0] == 2 * v->batch;
	case 2: return s->dim[0] == v->batch && (s->dim[1] == v->total || s->dim[1] == 1);
	case 3: return s->dim[0] == v->batch && s->dim[1] == v->queries && s->dim[2] == v->total;
	case 4: return s->dim[0] == v->batch && s->dim[1] == 1 && s->dim[2] >= v->past + v->queries && s->dim[3] >= v->total;
	default: return false;
	}
}

/* The number of elements of a mask that fits, counted from the start, which is_seen() may read. */
static int64_t
keys_read(const struct view *v)
{
	const om_shape *s = v->keys ? &v->keys->shape : NULL;

	switch (s ? s->rank : 0) {
	case 1: return s->dim[0];
	case 2: return s->dim[1] == v->total ? v->batch * v->total : 0;
	case 3: return v->batch * v->queries * v->total;
	case 4: return v->batch * s->dim[2] * s->dim[3];
	default: return 0;
	}
}

/* The bias of the score of query `q` and key `k` in head `h`. */
static double
added(const struct view *v, int64_t b, int64_t h, int64_t q, int64_t k)
{
	double sum = 0;

	if (v->bias) {
		const om_shape *s = &v->bias->shape;
		const int64_t row = ((s->dim[0] == 1 ? 0 : b) * s->dim[1] + (s->dim[1] == 1 ? 0 : h)) * v->queries + q;
		sum = om_get(v->bias->type, v->bias->data, row * v->total + k);
	}
	if (v->keys && !is_seen(v, b, q, k))
		sum += v->filter;
	if (v->causal && k > v->past + q)
		sum = -INFINITY;
	return sum;
}

static om_status
fill_mask(om_op_context *c, const void *of, const om_tensor *mask)
{
	const struct view *v = of;
	const int64_t heads = mask->shape.dim[1];
	const double low = mask->type == OM_FLOAT16 ? -65504 : mask->type == OM_BFLOAT16 ? -3.38e38 : -FLT_MAX;
	int64_t at = 0;

	for (int64_t b = 0; b < v->batch; b++)
		for (int64_t h = 0; h < heads; h++)
			for (int64_t q = 0; q < v->queries; q++)
				for (int64_t k = 0; k < v->total; k++, at++) {
					const double x = added(v, b, h, q, k);
					om_put(mask->type, mask->data, at, x < low ? low : x);
				}
	(void)c;
	return OM_OK;
}

/* The mask in the format of the standard operator; NULL for none. */
static tensor
mask_of(om_composite *p, const struct view *v, om_dtype type)
{
	if (p->doing == OM_INFERRING || (!v->keys && !v->bias && !v->causal))
		return NULL;
	if (v->keys && !does_fit(v)) {
		om_composite_refuse(p, OM_UNSUPPORTED, "no kernel for a mask of this form");
		return NULL;
	}
	const om_shape *s = v->bias ? &v->bias->shape : NULL;
	if (s && (s->rank != 4 || s->dim[2] != v->queries || s->dim[3] != v->total
	    || (s->dim[0] != 1 && s->dim[0] != v->batch) || (s->dim[1] != 1 && s->dim[1] != v->heads))) {
		om_composite_refuse(p, OM_SHAPE, "attention_bias cannot be broadcast to the scores");
		return NULL;
	}
	const int64_t heads = s ? s->dim[1] : 1;
	const om_shape shape = om_shape_of(4, (const int64_t[]){v->batch, heads, v->queries, v->total});
	return om_composite_filled(p, type, &shape, fill_mask, v, sizeof *v,
		OM_READS({v->keys, OM_INT32, keys_read(v)}, {v->bias, v->bias ? v->bias->type : OM_UNDEFINED,
			s ? s->dim[0] * heads * v->queries * v->total : 0}));
}

/* ---- Attention over separate heads. ---- */

struct attended {
	tensor y, keys, values;   /* keys and values including the cached ones */
};

static struct attended
attend(om_composite *p, struct view *v, tensor q, tensor k, tensor val, tensor past_k, tensor past_v)
{
	const float scale = om_attr_float(p->c->op, "scale");
	tensor in[6] = {q, k, val, NULL, past_k, past_v}, out[3];

	v->batch = dim_of(q, 0);
	v->heads = dim_of(q, 1);
	v->queries = dim_of(q, 2);
	v->past = past_k ? dim_of(past_k, 2) : 0;
	v->total = v->past + dim_of(k, 2);
	in[3] = mask_of(p, v, q->type);
	om_part_run(p, "Attention", 24, scale != 0 ? OM_WITH(OM_REAL("scale", scale)) : OM_PLAINLY, 6, in, 3, out);
	return (struct attended){join_heads(p, out[0]), out[1], out[2]};
}

/* ---- Attention. ---- */

static const om_attr_spec attention_attrs[] = {
	{"do_rotary", OM_ATTR_INT},
	{"mask_filter_value", OM_ATTR_FLOAT, .f = -10000},
	{"num_heads", OM_ATTR_INT, .required = true},
	{"past_present_share_buffer", OM_ATTR_INT},
	{"qkv_hidden_sizes", OM_ATTR_INTS},
	{"rotary_embedding_dim", OM_ATTR_INT},
	{"scale", OM_ATTR_FLOAT},
	{"unidirectional", OM_ATTR_INT},
	{0}
};

/* One half of a cache: (2, batch, heads, length, size). */
static tensor
half_of(om_composite *p, tensor past, int64_t k)
{
	return past ? OM_SUBBUFFER(p, "Gather", OM_PLAINLY, past, om_composite_shaped(p, om_composite_ints(p, 1, &k), 0, NULL)) : NULL;
}

static tensor
both_halves(om_composite *p, tensor a, tensor b)
{
	const int64_t first = 0;
	tensor in[] = {OM_SUBBUFFER(p, "Unsqueeze", OM_PLAINLY, a, om_composite_ints(p, 1, &first)),
		OM_SUBBUFFER(p, "Unsqueeze", OM_PLAINLY, b, om_composite_ints(p, 1, &first))};

	return om_part_one(p, "Concat", 24, OM_WITH(OM_INT("axis", 0)), 2, in);
}

static bool
has_heads(om_composite *p)
{
	const om_op *op = p->c->op;

	if (om_attr_int(op, "num_heads") < 1)
		om_composite_refuse(p, OM_INVALID, "num_heads must be positive");
	if (om_attr_int(op, "do_rotary") || om_attr_int(op, "past_present_share_buffer"))
		om_composite_refuse(p, OM_UNSUPPORTED, "no kernel for do_rotary or past_present_share_buffer");
	return p->st == OM_OK;
}

/* Split the output of the projection, apply attention, and join the heads. */
static void
self_attention(om_composite *p, tensor projected, tensor mask, tensor past, tensor bias)
{
	const om_op *op = p->c->op;
	const int64_t heads = om_attr_int(op, "num_heads"), width = dim_of(projected, 2);
	size_t n;
	const int64_t *sizes = om_attr_ints(op, "qkv_hidden_sizes", &n);
	struct view v = {.keys = mask, .bias = bias, .causal = om_attr_int(op, "unidirectional"),
		.filter = om_attr_float(op, "mask_filter_value")};
	tensor in[2] = {projected}, q[3];

	if (width < 0 || (n == 0 && width % 3) || (n != 0 && n != 3)) {
		if (p->doing != OM_INFERRING || width >= 0)
			om_composite_refuse(p, OM_SHAPE,
				"the projection does not have the size of queries, keys and values");
		else
			p->c->out[0].type = projected->type;
		return;
	}
	in[1] = om_composite_ints(p, 3, n == 3 ? sizes : (const int64_t[]){width / 3, width / 3, width / 3});
	om_part_run(p, "Split", 24, OM_WITH(OM_INT("axis", 2)), 2, in, 3, q);
	for (int k = 0; k < 3; k++)
		q[k] = split_heads(p, q[k], heads);
	const struct attended a = attend(p, &v, q[0], q[1], q[2], half_of(p, past, 0), half_of(p, past, 1));
	om_composite_set_output(p, 0, a.y);
	if (om_has_out(p->c, 1))
		om_composite_set_output(p, 1, both_halves(p, a.keys, a.values));
}

static void
attention(om_composite *p)
{
	enum { X, WEIGHTS, BIAS, MASK, PAST, SCORES, PAST_LENGTH };
	tensor y;

	if (!has_heads(p))
		return;
	if (om_composite_add(p, PAST_LENGTH))
		om_composite_refuse(p, OM_UNSUPPORTED, "no kernel for past_sequence_length");
	y = OM_SUBBUFFER(p, "MatMul", OM_PLAINLY, om_composite_add(p, X), om_composite_add(p, WEIGHTS));
	if (om_composite_add(p, BIAS))
		y = OM_SUBBUFFER(p, "Add", OM_PLAINLY, y, om_composite_add(p, BIAS));
	self_attention(p, y, om_composite_add(p, MASK), om_composite_add(p, PAST), om_composite_add(p, SCORES));
}
OM_COMPOSITE_COLUMNS(attention)

static void
quantized_attention(om_composite *p)
{
	enum { X, WEIGHTS, BIAS, X_SCALE, W_SCALE, MASK, X_ZERO, W_ZERO, PAST };
	tensor y;

	if (!has_heads(p))
		return;
	y = OM_SUBBUFFER(p, "MatMulInteger", OM_PLAINLY, om_composite_add(p, X), om_composite_add(p, WEIGHTS), om_composite_add(p, X_ZERO),
		om_composite_add(p, W_ZERO));
	y = OM_SUBBUFFER(p, "Cast", OM_WITH(OM_INT("to", OM_FLOAT32)), y);
	y = OM_SUBBUFFER(p, "Mul", OM_PLAINLY, y, OM_SUBBUFFER(p, "Mul", OM_PLAINLY, om_composite_add(p, X_SCALE), om_composite_add(p, W_SCALE)));
	y = OM_SUBBUFFER(p, "Add", OM_PLAINLY, y, om_composite_add(p, BIAS));
	self_attention(p, y, om_composite_add(p, MASK), om_composite_add(p, PAST), NULL);
}
OM_COMPOSITE_COLUMNS(quantized_attention)

/* ---- MultiHeadAttention. ---- */

static const om_attr_spec multi_attrs[] = {
	{"mask_filter_value", OM_ATTR_FLOAT, .f = -10000},
	{"num_heads", OM_ATTR_INT, .required = true},
	{"scale", OM_ATTR_FLOAT},
	{"unidirectional", OM_ATTR_INT},
	{0}
};

enum { QUERY, KEY, VALUE, PROJECTION_BIAS, PADDING, SCORE_BIAS, PAST_KEY, PAST_VALUE, PAST_LENGTH, INDIRECTION };

/* Part `k` of the parts that are adjacent in (batch, length, heads, parts, size), as (batch,
 * length, heads * size). */
static tensor
unpacked(om_composite *p, tensor x, int64_t k)
{
	tensor one = OM_SUBBUFFER(p, "Gather", OM_WITH(OM_INT("axis", 3)), x, om_composite_shaped(p, om_composite_ints(p, 1, &k), 0, NULL));

	return om_composite_shaped(p, one, 3, (const int64_t[]){0, 0, -1});
}

/* The bias of the projection holds the bias of the queries, then of the keys, then of the values. */
static tensor
with_bias(om_composite *p, tensor x, int64_t from, int64_t to)
{
	tensor bias = om_composite_add(p, PROJECTION_BIAS);

	if (!bias || x->shape.rank == 4)
		return x;
	return OM_SUBBUFFER(p, "Add", OM_PLAINLY, x, OM_SUBBUFFER(p, "Slice", OM_PLAINLY, bias, om_composite_ints(p, 1, &from),
		om_composite_ints(p, 1, &to)));
}

/* Queries, keys and values as separate tensors; false if their shapes are unknown. */
static bool
read_three(om_composite *p, tensor three[3])
{
	const tensor q = om_composite_add(p, QUERY), k = om_composite_add(p, KEY), v = om_composite_add(p, VALUE);

	if (q->shape.rank < 0 || (k && k->shape.rank < 0) || (v && v->shape.rank < 0)) {
		p->c->out[0].type = q->type;
		return false;
	}
	if (q->shape.rank == 5 && !k && !v) {
		for (int64_t i = 0; i < 3; i++)
			three[i] = unpacked(p, q, i);
	} else if (q->shape.rank == 3 && k && k->shape.rank == 5 && !v) {
		three[0] = q;
		three[1] = unpacked(p, k, 0);
		three[2] = unpacked(p, k, 1);
	} else if (q->shape.rank == 3 && k && v && k->shape.rank == v->shape.rank
		   && (k->shape.rank == 3 || k->shape.rank == 4)) {
		three[0] = q;
		three[1] = k;
		three[2] = v;
	} else {
		om_composite_refuse(p, OM_SHAPE, "the shapes of query, key and value do not match");
		return false;
	}
	return true;
}

static void
multi_head(om_composite *p)
{
	const om_op *op = p->c->op;
	const int64_t heads = om_attr_int(op, "num_heads");
	struct view v = {.keys = om_composite_add(p, PADDING), .bias = om_composite_add(p, SCORE_BIAS),
		.causal = om_attr_int(op, "unidirectional"), .filter = om_attr_float(op, "mask_filter_value")};
	tensor three[3];

	if (om_composite_add(p, PAST_LENGTH) || om_composite_add(p, INDIRECTION) || om_has_out(p->c, 3))
		om_composite_refuse(p, OM_UNSUPPORTED, "no kernel for shared caches, beam search or score outputs");
	if (!has_heads(p) || !read_three(p, three))
		return;
	const int64_t width = dim_of(three[0], 2), key = three[1]->shape.rank == 3 ? dim_of(three[1], 2) : width;
	if (om_composite_add(p, PROJECTION_BIAS) && (width < 0 || key < 0)) {
		p->c->out[0].type = three[0]->type;
		return;
	}
	three[0] = with_bias(p, three[0], 0, width);
	three[1] = with_bias(p, three[1], width, width + key);
	three[2] = with_bias(p, three[2], width + key, INT64_MAX);
	for (int k = 0; k < 3; k++)
		three[k] = split_heads(p, three[k], heads);
	const struct attended a = attend(p, &v, three[0], three[1], three[2], om_composite_add(p, PAST_KEY),
		om_composite_add(p, PAST_VALUE));
	om_composite_set_output(p, 0, a.y);
	om_composite_set_output(p, 1, a.keys);
	om_composite_set_output(p, 2, a.values);
}
OM_COMPOSITE_COLUMNS(multi_head)

/* ---- RotaryEmbedding. ---- */

static const om_attr_spec rotary_attrs[] = {
	{"interleaved", OM_ATTR_INT},
	{"is_packed_batching", OM_ATTR_INT},
	{"num_heads", OM_ATTR_INT},
	{"rotary_embedding_dim", OM_ATTR_INT},
	{"scale", OM_ATTR_FLOAT, .f = 1},
	{0}
};

static om_status
fill_positions(om_op_context *c, const void *of, const om_tensor *t)
{
	const tensor ids = *(const tensor *)of;

	(void)c;
	for (int64_t k = 0; k < om_shape_count(&t->shape); k++)
		((uint64_t *)t->data)[k] = *(const uint64_t *)ids->data + (uint64_t)(k % t->shape.dim[1]);
	return OM_OK;
}

/* Positions of all tokens: given explicitly, or counted from the given first position. */
static tensor
positions_of(om_composite *p, tensor x, tensor ids)
{
	const int64_t batch = dim_of(x, 0), length = x->shape.rank == 4 ? dim_of(x, 2) : dim_of(x, 1);
	const om_shape shape = om_shape_of(2, (const int64_t[]){batch, length});

	if (ids->shape.rank == 2)
		return ids;
	if (om_shape_is_known(&ids->shape) && om_shape_count(&ids->shape) != 1)
		om_composite_refuse(p, OM_SHAPE, "position_ids must have one element or one for each position");
	return om_composite_filled(p, OM_INT64, &shape, fill_positions, &ids, sizeof ids, OM_READS({ids, OM_INT64, 1}));
}

static void
rotary(om_composite *p)
{
	enum { X, IDS, COS, SIN };
	const om_op *op = p->c->op;
	const int64_t part = om_attr_int(op, "rotary_embedding_dim");
	tensor x = om_composite_add(p, X), cosines = om_composite_add(p, COS);
	int64_t heads = om_attr_int(op, "num_heads");

	if (om_attr_int(op, "is_packed_batching"))
		om_composite_refuse(p, OM_UNSUPPORTED, "no kernel for packed batches");
	if (x->shape.rank == 3 && !heads && dim_of(cosines, 1) == 0)
		om_composite_refuse(p, OM_SHAPE, "num_heads is required where the caches are empty");
	if (x->shape.rank < 0 || (x->shape.rank == 3 && !heads && (dim_of(x, 2) < 0 || dim_of(cosines, 1) < 1))) {
		p->c->out[0].type = x->type;
		p->c->out[0].shape = x->shape;
		return;
	}
	if (x->shape.rank == 3 && !heads)
		heads = dim_of(x, 2) / (2 * dim_of(cosines, 1));
	om_composite_set_output(p, 0, OM_SUBBUFFER(p, "RotaryEmbedding", OM_WITH(OM_INT("interleaved", om_attr_int(op, "interleaved")),
		OM_INT("num_heads", heads), OM_INT("rotary_embedding_dim", part)), x, cosines, om_composite_add(p, SIN),
		positions_of(p, x, om_composite_add(p, IDS))));
}
OM_COMPOSITE_COLUMNS(rotary)

/* ---- The table. ---- */

#define CONTRIB(called, text, least, most, outputs, list, made, ...)           \
	{.domain = "com.microsoft", .name = called, .brief = text, .since = 1, .min_in = least, .max_in = most, \
	 .min_out = 1, .max_out = outputs, .attrs = list, OM_COMPOSITE(made), __VA_ARGS__}

const om_opdef om_ops_contrib_attention[] = {
	CONTRIB("Attention", "self-attention with its input projection", 2, 7, 2, attention_attrs, attention, .slice = om_slice_self_attention,
		.input_types = {OF_FLOATS, LIKE(0), LIKE(0), OF(INT32), LIKE(0), LIKE(0), LIKE(3)}),
	CONTRIB("QAttention", "self-attention with a quantized input projection", 5, 9, 2, attention_attrs,
		quantized_attention, .slice = om_slice_self_attention,
		.input_types = {OF_BYTES, OF_BYTES, OF(FLOAT16) | OF(FLOAT32), LIKE(2), LIKE(2), OF(INT32),
			LIKE(0), LIKE(1), LIKE(2)}),
	CONTRIB("MultiHeadAttention", "scaled dot-product attention, multi-head", 1, 10, 4, multi_attrs,
		multi_head, .slice = om_slice_multi_head,
		.input_types = {OF_FLOATS, LIKE(0), LIKE(0), LIKE(0), OF(INT32), LIKE(0), LIKE(0), LIKE(0),
			LIKE(4), LIKE(4)}),
	CONTRIB("RotaryEmbedding", "rotary position embedding", 4, 4, 1, rotary_attrs, rotary, .slice = om_slice_rotary_contrib,
		.input_types = {OF_FLOATS, OF(INT64), LIKE(0), LIKE(0)}),
	{0}
};

const om_kernel om_kernels_contrib_attention[] = {
	OM_PARTS_KERNEL("Attention", attention),
	OM_PARTS_KERNEL("QAttention", quantized_attention),
	OM_PARTS_KERNEL("MultiHeadAttention", multi_head),
	OM_PARTS_KERNEL("RotaryEmbedding", rotary),
	{0}
};

/* Those whose parts have kernels for devices. */
OM_COMPOSITE_DEVICE(multi_head)

const om_device_kernel om_device_kernels_contrib_attention[] = {
	OM_PARTS_DEVICE("MultiHeadAttention", multi_head),
	{0}
};
