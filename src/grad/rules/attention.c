/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of Attention and RotaryEmbedding, of ai.onnx and com.microsoft.
 *
 * Each is decomposed into products, a Softmax and data movement, which are differentiated: only the
 * inputs are kept from the forward path, and the weights, by far the largest tensor, exist in the
 * backward path alone.
 *
 * Query heads that share a key head have a dim of their own, so that keys and values are broadcast to
 * them and not repeated.  Masks are boolean wherever possible: masked scores become very small and
 * their weights zero, also in rows that are masked entirely, as the operator specifies.
 *
 * GroupQueryAttention keeps a cache in which each sequence has its own length: the new cache is built
 * by gathering rows of the old cache, of the new keys or values, and a row of zeros.
 */
#include <config.h>

#include <math.h>

#include "grad/bodies.h"
#include "grad/grad_builder.h"
#include "ir/query.h"
#include "ir/type.h"

/* ---- Shapes. ---- */

/* A reshape to dims that are numbers or, if `of` is set, dims of a value of the forward path. */
struct dim {
	om_value *of;
	int axis;
	int64_t n;
};

static om_value *
reshape(om_grad *g, om_value *x, size_t n, const struct dim *dim)
{
	int64_t all[OM_MAX_RANK];
	om_value *part[OM_MAX_RANK];
	bool is_known = true;

	for (size_t k = 0; k < n; k++) {
		const struct dim *d = &dim[k];
		all[k] = d->of ? d->of->shape.dim[d->axis] : d->n;
		is_known &= !d->of || all[k] >= 0;
	}
	if (is_known)
		return om_emit(g, "Reshape", x, om_emit_list(g, n, all));
	for (size_t k = 0; k < n; k++)
		part[k] = dim[k].of ? om_emit_dim(g, dim[k].of, dim[k].axis) : om_emit_list(g, 1, &dim[k].n);
	return om_emit(g, "Reshape", x, om_emit_op(g, "Concat", OM_A(om_attr_make_int(g, "axis", 0)), n, part, 1, NULL));
}

static om_value *
concat(om_grad *g, om_value *a, om_value *b, int64_t axis)
{
	return om_emit_attrs(g, "Concat", OM_A(om_attr_make_int(g, "axis", axis)), a, b);
}

/* From (batch, length, heads * size) to (batch, heads, length, size). */
static om_value *
split_heads(om_grad *g, om_value *x, int64_t heads)
{
	x = om_emit(g, "Reshape", x, om_emit_list(g, 4, (const int64_t[]){0, 0, heads, -1}));
	return om_emit_transpose(g, x, 4, (const int64_t[]){0, 2, 1, 3});
}

static om_value *
join_heads(om_grad *g, om_value *x)
{
	x = om_emit_transpose(g, x, 4, (const int64_t[]){0, 2, 1, 3});
	return om_emit(g, "Reshape", x, om_emit_list(g, 3, (const int64_t[]){0, 0, -1}));
}

/* ---- The core: heads in, heads out. ---- */

struct attention {
	om_value *q, *k, *v;         /* (batch, heads, length, size), including the past */
	int64_t qheads, heads, size;
	om_value *batch, *queries;   /* values of the forward path with these dims */
	int batch_axis, queries_axis;
	om_value *allowed;           /* boolean, broadcast to the scores; NULL: all */
	om_value *added;             /* added to the scores; NULL: nothing */
	om_value *sink;              /* score of the attention sink, which takes part in the Softmax but
	                                has no value; NULL: none */
	bool may_hide_all;           /* whether all keys of a query may be masked */
	double scale, cap;
	om_dtype as;                 /* type of the Softmax; OM_UNDEFINED: that of the scores */
	int64_t mode;
	om_value *scores;            /* the scores to output, selected by the mode */
};

static struct dim
number(int64_t n)
{
	return (struct dim){.n = n};
}

/* From (batch, heads of queries, ...) to (batch, heads of keys, queries of each, ...). */
static om_value *
by_group(om_grad *g, const struct attention *a, om_value *x)
{
	const struct dim dim[] = {{a->batch, a->batch_axis, 0}, number(a->heads), number(a->qheads / a->heads),
		{a->queries, a->queries_axis, 0}, number(-1)};

	return a->qheads == a->heads ? x : reshape(g, x, 5, dim);
}

static om_value *
by_head(om_grad *g, const struct attention *a, om_value *x)
{
	const struct dim dim[] = {{a->batch, a->batch_axis, 0}, number(a->qheads), {a->queries, a->queries_axis, 0},
		number(-1)};

	return a->qheads == a->heads ? x : reshape(g, x, 4, dim);
}

/* Keys or values, with a dim along which they are broadcast to the queries. */
static om_value *
shared(om_grad *g, const struct attention *a, om_value *x)
{
	const int64_t axis = 2;

	return a->qheads == a->heads ? x : om_emit_unsqueeze(g, x, 1, &axis);
}

static om_value *
swapped(om_grad *g, om_value *x)
{
	const int64_t perm[] = {0, 1, 2, 4, 3}, four[] = {0, 1, 3, 2};

	return om_emit_transpose(g, x, (size_t)x->shape.rank, x->shape.rank == 4 ? four : perm);
}

/* A score below all others, whose weight becomes zero. */
static double
lowest(const om_value *like)
{
	return om_type_elem(&like->type) == OM_FLOAT16 ? -6e4 : -1e30;
}

static om_value *
both(om_grad *g, om_value *a, om_value *b)
{
	return !a ? b : !b ? a : om_emit(g, "And", a, b);
}

/* Append the sink as one more key. */
static om_value *
sunk(om_grad *g, const struct attention *a)
{
	om_value *dim[] = {om_emit_dim(g, a->batch, a->batch_axis), om_emit_list(g, 1, &a->qheads),
		om_emit_dim(g, a->queries, a->queries_axis), om_emit_list(g, 1, (const int64_t[]){1})};

	return om_emit(g, "Expand", a->sink, om_emit_op(g, "Concat", OM_A(om_attr_make_int(g, "axis", 0)), 4, dim, 1, NULL));
}

static om_value *
weights(om_grad *g, struct attention *a, om_value *score)
{
	om_value *seen = a->allowed;
	const om_dtype type = om_type_elem(&score->type);

	if (a->mode == 0)
		a->scores = score;
	if (a->cap != 0)
		score = om_emit_scalar(g, "Mul", om_emit(g, "Tanh", om_emit_scalar(g, "Div", score, a->cap)), a->cap);
	if (a->mode == 1)
		a->scores = score;
	if (a->added) {
		om_value *low = om_emit_number(g, score, lowest(score));
		score = om_emit(g, "Add", score, om_emit(g, "Max", a->added, low));
		seen = both(g, seen, om_emit(g, "Greater", a->added, low));
	}
	if (a->allowed)
		score = om_emit(g, "Where", a->allowed, score, om_emit_number(g, score, lowest(score)));
	if (a->mode == 2)
		a->scores = score;
	if (a->sink)
		score = concat(g, score, sunk(g, a), 3);
	if (a->as != OM_UNDEFINED)
		score = om_emit_cast(g, score, a->as);
	score = om_emit_cast(g, om_emit_attrs(g, "Softmax", OM_A(om_attr_make_int(g, "axis", -1)), score), type);
	if (a->sink)
		score = om_emit_slice(g, score, 3, 0, -1);
	if (seen && a->may_hide_all)
		score = om_emit(g, "Where", seen, score, om_emit_number(g, score, 0));
	if (a->mode == 3)
		a->scores = score;
	return score;
}

static om_value *
attend(om_grad *g, struct attention *a)
{
	om_value *q = by_group(g, a, om_emit_scalar(g, "Mul", a->q, a->scale));
	om_value *w = weights(g, a, by_head(g, a, om_emit(g, "MatMul", q, swapped(g, shared(g, a, a->k)))));

	return by_head(g, a, om_emit(g, "MatMul", by_group(g, a, w), shared(g, a, a->v)));
}

/* ---- Masks. ---- */

/* Positions of queries and keys, in broadcastable shapes: (length, 1) and (total length). */
struct places {
	om_value *query, *key, *total;
};

/* 0, 1, ... up to the number of keys, including the past. */
static struct places
find_places(om_grad *g, const struct attention *a, om_value *keys, int axis, om_value *past, om_value *lengths)
{
	const int64_t one = 1, three[] = {1, 2, 3};
	struct places p = {.total = om_emit_length(g, keys, axis)};
	om_value *first = past ? om_emit_length(g, past, 2) : NULL;

	if (past)
		p.total = om_emit(g, "Add", p.total, first);
	p.key = om_emit(g, "Range", om_emit_int64(g, 0), p.total, om_emit_int64(g, 1));
	p.query = om_emit_unsqueeze(g, om_emit_positions(g, a->queries, a->queries_axis), 1, &one);
	if (lengths)
		first = om_emit(g, "Sub", om_emit_unsqueeze(g, lengths, 3, three), om_emit_length(g, a->queries, a->queries_axis));
	if (first)
		p.query = om_emit(g, "Add", p.query, first);
	return p;
}

static void
hide(om_grad *g, struct attention *a, om_value *truth, bool may_hide_all)
{
	a->allowed = both(g, a->allowed, truth);
	a->may_hide_all |= may_hide_all;
}

/* A mask that is shorter than the keys masks the remaining ones. */
static om_value *
full_mask(om_grad *g, om_value *mask, const om_value *score)
{
	const int last = mask->shape.rank - 1;
	const int64_t have = mask->shape.dim[last], want = score->shape.rank == 4 ? score->shape.dim[3] : -1;
	int64_t pads[2 * OM_MAX_RANK] = {0};

	if (have < 0 || want < 0 || have == 1 || have >= want)
		return mask;
	pads[2 * last + 1] = want - have;
	if (om_type_elem(&mask->type) != OM_BOOL)
		return om_emit(g, "Pad", mask, om_emit_list(g, 2 * (size_t)last + 2, pads), om_emit_number(g, mask, -INFINITY));
	return om_emit(g, "Pad", mask, om_emit_list(g, 2 * (size_t)last + 2, pads));
}

/* ---- Attention of ai.onnx. ---- */

enum { Q, K, V, MASK, PAST_K, PAST_V, LENGTHS };
enum { Y, NEW_K, NEW_V, SCORES };

static bool
read_sizes(om_grad *g, struct attention *a)
{
	const om_op *op = om_grad_op(g);
	const om_value *q = op->in[Q], *k = op->in[K];
	const bool flat = q->shape.rank == 3;

	if (q->shape.rank < 3 || k->shape.rank != q->shape.rank || op->in[V]->shape.rank != q->shape.rank) {
		om_grad_fail(g, OM_UNSUPPORTED, "the ranks of queries, keys and values are not known");
		return false;
	}
	a->qheads = flat ? om_attr_int(op, "q_num_heads") : q->shape.dim[1];
	a->heads = flat ? om_attr_int(op, "kv_num_heads") : k->shape.dim[1];
	a->size = flat ? (q->shape.dim[2] < 0 || a->qheads < 1 ? -1 : q->shape.dim[2] / a->qheads) : q->shape.dim[3];
	if (a->qheads < 1 || a->heads < 1 || (a->size < 1 && !om_attr_has(op, "scale"))) {
		om_grad_fail(g, OM_UNSUPPORTED, "the number or the size of its heads is not known");
		return false;
	}
	a->scale = om_attr_has(op, "scale") ? om_attr_float(op, "scale") : 1 / sqrt((double)a->size);
	a->cap = om_attr_float(op, "softcap");
	a->as = (om_dtype)om_attr_int(op, "softmax_precision");
	a->mode = om_attr_int(op, "qk_matmul_output_mode");
	a->batch = a->queries = op->in[Q];
	a->queries_axis = flat ? 1 : 2;
	return true;
}

static void
hide_by_place(om_grad *g, struct attention *a)
{
	const om_op *op = om_grad_op(g);
	const int64_t left = om_attr_int(op, "left_window_size"), right = om_attr_int(op, "right_window_size");
	const int64_t three[] = {1, 2, 3};
	om_value *lengths = om_grad_forward_input(g, LENGTHS);

	if (left < 0 && right < 0 && !lengths && !om_attr_int(op, "is_causal"))
		return;
	const struct places p = find_places(g, a, op->in[K], a->queries_axis, om_grad_has(g, PAST_K) ? op->in[PAST_K] : NULL,
		lengths);
	if (lengths)
		hide(g, a, om_emit(g, "Less", p.key, om_emit_unsqueeze(g, lengths, 3, three)), true);
	if (om_attr_int(op, "is_causal"))
		hide(g, a, om_emit(g, "LessOrEqual", p.key, p.query), false);
	if (left >= 0)
		hide(g, a, om_emit(g, "GreaterOrEqual", p.key, om_emit(g, "Sub", p.query, om_emit_int64(g, left))), true);
	if (right >= 0)
		hide(g, a, om_emit(g, "LessOrEqual", p.key, om_emit(g, "Add", p.query, om_emit_int64(g, right))), true);
}

static void
hide_by_mask(om_grad *g, struct attention *a)
{
	om_value *mask = om_grad_forward_input(g, MASK);
	om_shape score = om_shape_of(4, (const int64_t[]){-1, -1, -1, -1});

	if (!mask)
		return;
	if (mask->shape.rank < 1) {
		om_grad_fail(g, OM_UNSUPPORTED, "the rank of its mask is not known");
		return;
	}
	if (a->k->shape.rank == 4)
		score.dim[3] = a->k->shape.dim[2];
	mask = full_mask(g, mask, &(om_value){.shape = score});
	if (om_type_elem(&mask->type) == OM_BOOL)
		hide(g, a, mask, true);
	else
		a->added = mask;
	a->may_hide_all = true;
}

static void
build_attention(om_grad *g, om_value **out)
{
	struct attention a = {0};

	if (!read_sizes(g, &a))
		return;
	const bool flat = om_grad_op(g)->in[Q]->shape.rank == 3;
	a.q = om_grad_forward_input(g, Q);
	a.k = om_grad_forward_input(g, K);
	a.v = om_grad_forward_input(g, V);
	if (flat) {
		a.q = split_heads(g, a.q, a.qheads);
		a.k = split_heads(g, a.k, a.heads);
		a.v = split_heads(g, a.v, a.heads);
	}
	if (om_grad_has(g, PAST_K)) {
		a.k = concat(g, om_grad_forward_input(g, PAST_K), a.k, 2);
		a.v = concat(g, om_grad_forward_input(g, PAST_V), a.v, 2);
	}
	hide_by_place(g, &a);
	hide_by_mask(g, &a);
	om_value *y = attend(g, &a), *all[] = {flat ? join_heads(g, y) : y, a.k, a.v, a.scores};
	memcpy(out, all, om_grad_op(g)->nout * sizeof *out);
}

static void
Attention_grad(om_grad *g)
{
	om_grad_by_decomposition(g, build_attention);
}

/* ---- RotaryEmbedding. ---- */

/* The elements of a pair are half of the rotated size apart, or adjacent. */
static om_value *
rotate_pairs(om_grad *g, om_value *x, om_value *cosine, om_value *sine, int64_t half, bool interleaved)
{
	const int64_t last = 4;
	om_value *part[2], *in[] = {x, om_emit_list(g, 2, (const int64_t[]){half, half})};

	if (interleaved) {
		x = om_emit(g, "Reshape", x, om_emit_list(g, 5, (const int64_t[]){0, 0, 0, half, 2}));
		in[0] = x;
		in[1] = om_emit_list(g, 2, (const int64_t[]){1, 1});
	}
	om_emit_op(g, "Split", OM_A(om_attr_make_int(g, "axis", -1)), 2, in, 2, part);
	for (int k = 0; k < 2 && interleaved; k++)
		part[k] = om_emit_squeeze(g, part[k], 1, &last);
	om_value *a = om_emit(g, "Sub", om_emit(g, "Mul", part[0], cosine), om_emit(g, "Mul", part[1], sine));
	om_value *b = om_emit(g, "Add", om_emit(g, "Mul", part[0], sine), om_emit(g, "Mul", part[1], cosine));
	if (!interleaved)
		return concat(g, a, b, -1);
	x = concat(g, om_emit_unsqueeze(g, a, 1, &last), om_emit_unsqueeze(g, b, 1, &last), -1);
	return om_emit(g, "Reshape", x, om_emit_list(g, 4, (const int64_t[]){0, 0, 0, 2 * half}));
}

struct rotary {
	om_value *x, *cosine, *sine; /* caches have a row for each position */
	om_value *places;            /* NULL: caches have a row for each element of each sequence */
	int64_t heads, size, turned;
};

static om_value *
cached(om_grad *g, const struct rotary *r, om_value *cache, bool flat)
{
	const int64_t axis = flat ? 2 : 1, have = cache->shape.rank > 0 ? cache->shape.dim[cache->shape.rank - 1] : -1;

	if (r->places)
		cache = om_emit_attrs(g, "Gather", OM_A(om_attr_make_int(g, "axis", 0)), cache, r->places);
	if (have != r->turned / 2)
		cache = om_emit_slice(g, cache, 2, 0, r->turned / 2);
	return om_emit_unsqueeze(g, cache, 1, &axis);
}

static om_value *
rotate(om_grad *g, const struct rotary *r, bool interleaved)
{
	const bool flat = r->x->shape.rank == 3;
	om_value *x = r->x, *rest = NULL, *part[2];
	om_value *cosine = cached(g, r, r->cosine, flat), *sine = cached(g, r, r->sine, flat);

	if (flat)
		x = om_emit(g, "Reshape", x, om_emit_list(g, 4, (const int64_t[]){0, 0, r->heads, -1}));
	if (r->turned != r->size) {
		om_value *in[] = {x, om_emit_list(g, 2, (const int64_t[]){r->turned, r->size - r->turned})};
		om_emit_op(g, "Split", OM_A(om_attr_make_int(g, "axis", -1)), 2, in, 2, part);
		x = part[0];
		rest = part[1];
	}
	x = rotate_pairs(g, x, cosine, sine, r->turned / 2, interleaved);
	if (rest)
		x = concat(g, x, rest, -1);
	return flat ? om_emit(g, "Reshape", x, om_emit_list(g, 3, (const int64_t[]){0, 0, r->heads * r->size})) : x;
}

static bool
read_rotary(om_grad *g, struct rotary *r)
{
	const om_op *op = om_grad_op(g);
	const om_shape *s = &op->in[0]->shape, *cache = &r->cosine->shape;
	const int64_t width = s->rank == 3 || s->rank == 4 ? s->dim[s->rank - 1] : -1;

	r->heads = om_attr_int(op, "num_heads");
	r->turned = om_attr_int(op, "rotary_embedding_dim");
	if (s->rank == 3 && r->heads == 0 && cache->rank == 2 && cache->dim[1] > 0)
		r->heads = width / (2 * cache->dim[1]);
	r->size = s->rank == 3 && r->heads > 0 && width > 0 ? width / r->heads : s->rank == 4 ? width : -1;
	if (r->turned == 0)
		r->turned = r->size;
	if (r->size < 1)
		om_grad_fail(g, OM_UNSUPPORTED, "the number or the size of its heads is not known");
	return r->size >= 1;
}

static void
build_rotary(om_grad *g, om_value **out)
{
	struct rotary r = {.x = om_grad_forward_input(g, 0), .cosine = om_grad_forward_input(g, 1), .sine = om_grad_forward_input(g, 2),
		.places = om_grad_forward_input(g, 3)};

	if (read_rotary(g, &r))
		out[0] = rotate(g, &r, om_attr_int(om_grad_op(g), "interleaved") != 0);
}

static void
RotaryEmbedding_grad(om_grad *g)
{
	om_grad_by_decomposition(g, build_rotary);
}

/* Positions of all elements, or of the first one, from which they are counted. */
static void
build_contrib_rotary(om_grad *g, om_value **out)
{
	const om_op *op = om_grad_op(g);
	struct rotary r = {.x = om_grad_forward_input(g, 0), .places = om_grad_forward_input(g, 1), .cosine = om_grad_forward_input(g, 2),
		.sine = om_grad_forward_input(g, 3)};

	if (om_attr_int(op, "is_packed_batching") || r.places->shape.rank == OM_RANK_UNKNOWN) {
		om_grad_fail(g, OM_UNSUPPORTED, "no gradient for packed batches or positions of unknown rank");
		return;
	}
	if (!read_rotary(g, &r))
		return;
	if (r.places->shape.rank != 2) {
		om_value *at = om_emit(g, "Add", r.places, om_emit_positions(g, op->in[0], op->in[0]->shape.rank - 2));
		r.places = om_emit(g, "Expand", at, concat(g, om_emit_dim(g, op->in[0], 0),
			om_emit_list(g, 1, (const int64_t[]){1}), 0));
	}
	out[0] = rotate(g, &r, om_attr_int(op, "interleaved") != 0);
}

static void
contrib_RotaryEmbedding_grad(om_grad *g)
{
	om_grad_by_decomposition(g, build_contrib_rotary);
}

/* ---- com.microsoft's Attention and MultiHeadAttention. ---- */

/* A mask is given per key, per query and key, or as lengths; a number is added to the scores that it
 * masks. */
static void
add_mask(om_grad *g, struct attention *a, om_value *mask, const struct places *p)
{
	const int64_t three[] = {1, 2, 3}, middle[] = {1, 2}, one = 1;
	const double filter = om_attr_float(om_grad_op(g), "mask_filter_value");
	om_value *seen;

	switch (mask->shape.rank) {
	case 1:
		if (mask->shape.dim[0] < 0 || mask->shape.dim[0] != a->batch->shape.dim[a->batch_axis]) {
			om_grad_fail(g, OM_UNSUPPORTED, "no gradient for a mask of start and end positions");
			return;
		}
		seen = om_emit(g, "Less", p->key, om_emit_cast(g, om_emit_unsqueeze(g, mask, 3, three), OM_INT64));
		break;
	case 2:
		seen = om_emit_unsqueeze(g, om_emit_cast(g, mask, OM_BOOL), 2, middle);
		break;
	case 3:
		seen = om_emit_unsqueeze(g, om_emit_cast(g, mask, OM_BOOL), 1, &one);
		break;
	default:
		om_grad_fail(g, OM_UNSUPPORTED, "no gradient for a mask of this rank");
		return;
	}
	om_value *add = om_emit(g, "Where", seen, om_emit_number(g, a->q, 0), om_emit_number(g, a->q, filter));
	a->added = a->added ? om_emit(g, "Add", a->added, add) : add;
}

struct contrib {
	om_value *q, *k, *v;         /* (batch, length, heads * size), or with a dim for heads */
	om_value *mask, *bias, *past_k, *past_v;
	om_value *queries, *keys;    /* values of the forward path with these lengths */
	int queries_axis, keys_axis;
};

static om_value *
with_heads(om_grad *g, om_value *x, int64_t heads)
{
	return x->shape.rank == 3 ? split_heads(g, x, heads) : x;
}

/* The core of both operators: the output, and keys and values including the past. */
static void
attend_contrib(om_grad *g, const struct contrib *c, om_value **y, om_value **keys, om_value **values)
{
	const om_op *op = om_grad_op(g);
	const int64_t heads = om_attr_int(op, "num_heads");
	struct attention a = {.qheads = heads, .heads = heads, .mode = -1, .added = c->bias, .batch = c->queries,
		.queries = c->queries, .queries_axis = c->queries_axis};

	a.q = with_heads(g, c->q, heads);
	a.k = with_heads(g, c->k, heads);
	a.v = with_heads(g, c->v, heads);
	if (c->past_k) {
		a.k = concat(g, c->past_k, a.k, 2);
		a.v = concat(g, c->past_v, a.v, 2);
	}
	a.size = a.q->shape.rank == 4 ? a.q->shape.dim[3] : -1;
	a.scale = om_attr_float(op, "scale");
	if (a.scale == 0 && a.size < 1) {
		om_grad_fail(g, OM_UNSUPPORTED, "the size of its heads is not known");
		return;
	}
	a.scale = a.scale != 0 ? a.scale : 1 / sqrt((double)a.size);
	const struct places p = find_places(g, &a, c->keys, c->keys_axis, c->past_k, NULL);
	if (c->mask)
		add_mask(g, &a, c->mask, &p);
	if (om_attr_int(op, "unidirectional"))
		hide(g, &a, om_emit(g, "LessOrEqual", p.key, p.query), false);
	*y = join_heads(g, attend(g, &a));
	*keys = a.k;
	*values = a.v;
}

/* One of the two halves of a cache: (2, batch, heads, length, size). */
static om_value *
half_of(om_grad *g, om_value *past, int64_t k)
{
	return past ? om_emit_attrs(g, "Gather", OM_A(om_attr_make_int(g, "axis", 0)), past, om_emit_int64(g, k)) : NULL;
}

static void
build_contrib_attention(om_grad *g, om_value **out)
{
	enum { X, WEIGHTS, PROJECTION, MASKED, PAST, SUMMAND };
	const om_op *op = om_grad_op(g);
	const int64_t zero = 0;
	om_value *x = om_emit(g, "MatMul", om_grad_forward_input(g, X), om_grad_forward_input(g, WEIGHTS)), *part[3], *keys, *values;
	size_t n;
	const int64_t *sizes = om_attr_ints(op, "qkv_hidden_sizes", &n);

	if (om_grad_has(g, PROJECTION))
		x = om_emit(g, "Add", x, om_grad_forward_input(g, PROJECTION));
	const int64_t third = x->shape.rank == 3 ? x->shape.dim[2] / 3 : -1;
	if (third < 1 || (n != 0 && n != 3)) {
		om_grad_fail(g, OM_UNSUPPORTED, "the sizes of queries, keys and values are not known");
		return;
	}
	om_value *in[] = {x, om_emit_list(g, 3, n == 3 ? sizes : (const int64_t[]){third, third, third})};
	om_emit_op(g, "Split", OM_A(om_attr_make_int(g, "axis", 2)), 2, in, 3, part);
	const struct contrib c = {part[0], part[1], part[2], om_grad_forward_input(g, MASKED), om_grad_forward_input(g, SUMMAND),
		half_of(g, om_grad_forward_input(g, PAST), 0), half_of(g, om_grad_forward_input(g, PAST), 1), op->in[X], op->in[X], 1, 1};
	attend_contrib(g, &c, &out[0], &keys, &values);
	if (op->nout > 1)
		out[1] = concat(g, om_emit_unsqueeze(g, keys, 1, &zero), om_emit_unsqueeze(g, values, 1, &zero), 0);
}

static void
contrib_Attention_grad(om_grad *g)
{
	om_grad_by_decomposition(g, build_contrib_attention);
}

/* The part of the bias that belongs to queries, keys or values. */
static om_value *
with_bias(om_grad *g, om_value *x, int64_t from, int64_t to)
{
	om_value *bias = om_grad_forward_input(g, 3);

	return bias && x->shape.rank == 3 ? om_emit(g, "Add", x, om_emit_slice(g, bias, 0, from, to)) : x;
}

/* One of several tensors that are packed in (batch, length, heads, several, size). */
static om_value *
unpacked(om_grad *g, om_value *x, int64_t k)
{
	x = om_emit_attrs(g, "Gather", OM_A(om_attr_make_int(g, "axis", 3)), x, om_emit_int64(g, k));
	return om_emit(g, "Reshape", x, om_emit_list(g, 3, (const int64_t[]){0, 0, -1}));
}

enum { QUERY, KEY, VALUE, BIAS, PADDING, ADDED, PAST_KEY, PAST_VALUE };

/* Queries, keys and values as separate tensors. */
static bool
read_three(om_grad *g, struct contrib *c)
{
	const om_op *op = om_grad_op(g);
	om_value *q = om_grad_forward_input(g, QUERY), *k = om_grad_forward_input(g, KEY), *v = om_grad_forward_input(g, VALUE);

	c->queries = op->in[QUERY];
	c->keys = k ? op->in[KEY] : op->in[QUERY];
	c->queries_axis = 1;
	c->keys_axis = k && k->shape.rank == 4 ? 2 : 1;
	c->q = q->shape.rank == 5 ? unpacked(g, q, 0) : q;
	if (q->shape.rank == 5 && !k && !v) {
		c->k = unpacked(g, q, 1);
		c->v = unpacked(g, q, 2);
	} else if (q->shape.rank == 3 && k && k->shape.rank == 5 && !v) {
		c->k = unpacked(g, k, 0);
		c->v = unpacked(g, k, 1);
	} else {
		c->k = k;
		c->v = v;
	}
	return c->q->shape.rank == 3 && c->k && c->v && (c->k->shape.rank == 3 || c->k->shape.rank == 4);
}

static void
build_multi_head(om_grad *g, om_value **out)
{
	const om_op *op = om_grad_op(g);
	struct contrib c = {.mask = om_grad_forward_input(g, PADDING), .bias = om_grad_forward_input(g, ADDED),
		.past_k = om_grad_forward_input(g, PAST_KEY), .past_v = om_grad_forward_input(g, PAST_VALUE)};
	om_value *keys, *values;

	if (!read_three(g, &c)) {
		om_grad_fail(g, OM_UNSUPPORTED, "no gradient for queries, keys and values of these ranks");
		return;
	}
	const int64_t width = c.q->shape.dim[2], key = c.k->shape.rank == 3 ? c.k->shape.dim[2] : width;
	if (om_grad_has(g, BIAS) && (width < 0 || key < 0)) {
		om_grad_fail(g, OM_UNSUPPORTED, "the sizes of queries and keys are not known");
		return;
	}
	c.q = with_bias(g, c.q, 0, width);
	c.k = with_bias(g, c.k, width, width + key);
	c.v = with_bias(g, c.v, width + key, INT64_MAX);
	attend_contrib(g, &c, &out[0], &keys, &values);
	om_value *all[] = {out[0], keys, values, NULL};
	memcpy(out, all, (op->nout < 4 ? op->nout : 4) * sizeof *out);
}

static void
contrib_MultiHeadAttention_grad(om_grad *g)
{
	om_grad_by_decomposition(g, build_multi_head);
}

/* ---- com.microsoft's GroupQueryAttention. ---- */

enum { G_QUERY, G_KEY, G_VALUE, G_PAST_KEY, G_PAST_VALUE, G_LENGTHS, G_TOTAL, G_COSINES, G_SINES, G_PLACES, G_BIAS, G_SINK };

struct group {
	struct attention a;
	om_value *before;            /* by sequence: number of rows of the cache in use before; NULL: none */
	om_value *had;               /* number of rows of the old cache; NULL: there is none */
	om_value *fresh, *total;     /* number of new rows; of rows of the new cache */
};

/* A tensor of one element, as an int64 scalar. */
static om_value *
one_number(om_grad *g, om_value *x)
{
	return om_emit_cast(g, om_emit_attrs(g, "ReduceMax", OM_A(om_attr_make_int(g, "keepdims", 0)), x), OM_INT64);
}

static om_value *
as_list(om_grad *g, om_value *number)
{
	return om_emit(g, "Reshape", number, om_emit_list(g, 1, (const int64_t[]){1}));
}

/* A prompt starts at row 0; a later step is appended to the rows of its sequence. */
static void
read_cache(om_grad *g, struct group *r)
{
	const om_op *op = om_grad_op(g);
	om_value *longest = one_number(g, om_grad_forward_input(g, G_TOTAL));

	r->fresh = om_emit_length(g, op->in[G_QUERY], 1);
	r->total = longest;
	if (!om_grad_has(g, G_PAST_KEY))
		return;
	om_value *lengths = om_emit(g, "Reshape", om_emit_cast(g, om_grad_forward_input(g, G_LENGTHS), OM_INT64),
		om_emit_list(g, 1, (const int64_t[]){-1}));
	r->had = om_emit_length(g, op->in[G_PAST_KEY], 2);
	r->total = om_emit(g, "Max", longest, r->had);
	lengths = om_emit(g, "Sub", om_emit(g, "Add", lengths, om_emit_int64(g, 1)), r->fresh);
	r->before = om_emit(g, "Where", om_emit(g, "Equal", longest, r->fresh), om_emit_int64(g, 0), lengths);
}

/* By sequence and row of the new cache: the row to gather from the concatenation of the old cache, the
 * new rows and a row of zeros.  Rows after the new ones are those of the old cache. */
static om_value *
rows_of_cache(om_grad *g, const struct group *r)
{
	const int64_t one = 1;
	om_value *at = om_emit(g, "Range", om_emit_int64(g, 0), r->total, om_emit_int64(g, 1));
	om_value *before = om_emit_unsqueeze(g, r->before, 1, &one), *moved = om_emit(g, "Sub", at, before);
	om_value *is_new = om_emit(g, "Less", moved, r->fresh);

	om_value *after = om_emit(g, "Where", om_emit(g, "Less", at, r->had), at, om_emit(g, "Add", r->had, r->fresh));
	om_value *row = om_emit(g, "Where", is_new, om_emit(g, "Add", moved, r->had), after);
	return om_emit(g, "Where", om_emit(g, "Less", at, before), at, row);
}

/* Zeros after the new rows, if there is no old cache and the new one is an output. */
static om_value *
padded(om_grad *g, const struct group *r, om_value *x)
{
	const int64_t front[6] = {0}, last = 0;
	om_value *pads[] = {om_emit_list(g, 6, front), as_list(g, om_emit(g, "Sub", r->total, r->fresh)), om_emit_list(g, 1, &last)};

	return om_emit(g, "Pad", x, om_emit_op(g, "Concat", OM_A(om_attr_make_int(g, "axis", 0)), 3, pads, 1, NULL));
}

static om_value *
brought_up(om_grad *g, const struct group *r, om_value *x, om_value *past)
{
	const int64_t back[] = {0, 2, 1, 3}, one_row[] = {0, 0, 0, 0, 0, 0, 1, 0}, two = 2;

	if (!past)
		return om_grad_op(g)->nout > 1 ? padded(g, r, x) : x;
	x = om_emit(g, "Pad", concat(g, past, x, 2), om_emit_list(g, 8, one_row));
	x = om_emit_attrs(g, "GatherND", OM_A(om_attr_make_int(g, "batch_dims", 1)), om_emit_transpose(g, x, 4, back),
		om_emit_unsqueeze(g, rows_of_cache(g, r), 1, &two));
	return om_emit_transpose(g, x, 4, back);
}

static void
hide_later(om_grad *g, struct group *r, om_value *keys)
{
	const int64_t window = om_attr_int(om_grad_op(g), "local_window_size"), one = 1, three[] = {1, 2, 3};
	om_value *key = om_emit(g, "Range", om_emit_int64(g, 0), keys, om_emit_int64(g, 1));
	om_value *query = om_emit_unsqueeze(g, om_emit_positions(g, r->a.queries, 1), 1, &one);

	if (r->before)
		query = om_emit(g, "Add", query, om_emit_unsqueeze(g, r->before, 3, three));
	hide(g, &r->a, om_emit(g, "LessOrEqual", key, query), false);
	if (window > 0)
		hide(g, &r->a, om_emit(g, "Greater", key, om_emit(g, "Sub", query, om_emit_int64(g, window))), false);
}

static om_value *
turned_by_place(om_grad *g, const struct group *r, om_value *x, int64_t heads)
{
	const om_op *op = om_grad_op(g);
	const int64_t zero = 0, one = 1;
	struct rotary t = {.x = x, .cosine = om_grad_forward_input(g, G_COSINES), .sine = om_grad_forward_input(g, G_SINES),
		.places = om_grad_forward_input(g, G_PLACES), .heads = heads, .size = r->a.size};

	if (!om_attr_int(op, "do_rotary"))
		return x;
	t.turned = t.cosine->shape.rank == 2 ? 2 * t.cosine->shape.dim[1] : -1;
	if (t.turned < 1) {
		om_grad_fail(g, OM_UNSUPPORTED, "the size of cos_cache is not known");
		return x;
	}
	if (!t.places)
		t.places = om_emit_unsqueeze(g, om_emit_positions(g, op->in[G_QUERY], 1), 1, &zero);
	if (!om_grad_has(g, G_PLACES) && r->before)
		t.places = om_emit(g, "Add", t.places, om_emit_unsqueeze(g, r->before, 1, &one));
	return rotate(g, &t, om_attr_int(op, "rotary_interleaved") != 0);
}

static bool
read_group(om_grad *g, struct group *r)
{
	const om_op *op = om_grad_op(g);
	const om_shape *q = &op->in[G_QUERY]->shape;
	const int64_t heads = om_attr_int(op, "num_heads"), kv = om_attr_int(op, "kv_num_heads");
	const int64_t all = om_grad_has(g, G_KEY) ? heads : heads + 2 * kv;

	if (q->rank != 3 || q->dim[2] < 1 || heads < 1 || kv < 1 || !om_attr_int(op, "causal")) {
		om_grad_fail(g, OM_UNSUPPORTED, "the size of its heads is not known, or it attends to later keys");
		return false;
	}
	if (om_attr_int(op, "sliding_window_cache") || !om_attr_is(op, "k_quant_type", "NONE") || !om_attr_is(op, "v_quant_type", "NONE")) {
		om_grad_fail(g, OM_UNSUPPORTED, "its cache slides or is quantized");
		return false;
	}
	r->a = (struct attention){.qheads = heads, .heads = kv, .size = q->dim[2] / all, .batch = op->in[G_QUERY],
		.queries = op->in[G_QUERY], .queries_axis = 1, .mode = -1, .scale = om_attr_float(op, "scale")};
	if (r->a.scale == 0)
		r->a.scale = 1 / sqrt((double)r->a.size);
	if (om_attr_float(op, "softcap") > 0)
		r->a.cap = om_attr_float(op, "softcap");
	if (om_grad_has(g, G_SINK))
		r->a.sink = om_emit(g, "Reshape", om_grad_forward_input(g, G_SINK), om_emit_list(g, 4, (const int64_t[]){1, heads, 1, 1}));
	else if (om_attr_int(op, "smooth_softmax") == 1)
		r->a.sink = om_emit_number(g, op->in[G_QUERY], 0);
	return true;
}

static void
build_group_query(om_grad *g, om_value **out)
{
	const om_op *op = om_grad_op(g);
	om_value *part[3] = {om_grad_forward_input(g, G_QUERY), om_grad_forward_input(g, G_KEY), om_grad_forward_input(g, G_VALUE)};
	struct group r = {0};

	if (!read_group(g, &r))
		return;
	struct attention *a = &r.a;
	read_cache(g, &r);
	if (!part[1]) {
		om_value *in[] = {part[0], om_emit_list(g, 3, (const int64_t[]){a->qheads * a->size, a->heads * a->size,
			a->heads * a->size})};
		om_emit_op(g, "Split", OM_A(om_attr_make_int(g, "axis", 2)), 2, in, 3, part);
	}
	a->q = split_heads(g, turned_by_place(g, &r, part[0], a->qheads), a->qheads);
	a->k = split_heads(g, turned_by_place(g, &r, part[1], a->heads), a->heads);
	a->k = brought_up(g, &r, a->k, om_grad_forward_input(g, G_PAST_KEY));
	a->v = brought_up(g, &r, split_heads(g, part[2], a->heads), om_grad_forward_input(g, G_PAST_VALUE));
	if (om_grad_failed(g))
		return;
	om_value *keys = r.had || op->nout > 1 ? r.total : r.fresh;
	hide_later(g, &r, keys);
	if (om_grad_has(g, G_BIAS))
		a->added = om_emit(g, "Slice", om_grad_forward_input(g, G_BIAS), om_emit_list(g, 1, (const int64_t[]){0}), as_list(g, keys),
			om_emit_list(g, 1, (const int64_t[]){3}));
	om_value *all[] = {join_heads(g, attend(g, a)), a->k, a->v};
	memcpy(out, all, (op->nout < 3 ? op->nout : 3) * sizeof *out);
}

static void
GroupQueryAttention_grad(om_grad *g)
{
	om_grad_by_decomposition(g, build_group_query);
}

/* ---- The table. ---- */

const om_gradient om_gradients_attention[] = {
	{.name = "Attention", .since = 23, .rule = Attention_grad},
	{.name = "RotaryEmbedding", .since = 23, .rule = RotaryEmbedding_grad},
	{.domain = "com.microsoft", .name = "Attention", .since = 1, .rule = contrib_Attention_grad},
	{.domain = "com.microsoft", .name = "MultiHeadAttention", .since = 1, .rule = contrib_MultiHeadAttention_grad},
	{.domain = "com.microsoft", .name = "RotaryEmbedding", .since = 1, .rule = contrib_RotaryEmbedding_grad},
	{.domain = "com.microsoft", .name = "GroupQueryAttention", .since = 1, .rule = GroupQueryAttention_grad},
	{0}
};
