/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over rows of a head, per instruction set; see attention.h.
 *
 * Keys are packed as panels of columns, values are read in place if their vectors are whole.  What is stored in fewer bits
 * becomes floats, keys before they are packed or multiplied, values as a block, or in parts if rows are few.  The weights of a
 * row are exp(score - maximum so far); sums of weighted values are rescaled when a later block has a larger
 * maximum, and divided by the sum of the weights at the end. */
#include <config.h>

#include <math.h>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/stored.h"
#include "kernels/cpu/tile.h"
#include "kernels/cpu/vec_math.h"

enum { Q = OM_ATTENTION_Q, K = OM_ATTENTION_K, V = OM_ATTENTION_V, KEEP = OM_ATTENTION_KEEP, Y = OM_ATTENTION_Y };

/* One call: what the operands are, and where parts of the workspace are. */
struct head {
	const om_attention *a;
	const om_attention_data *at;
	float *wide, *key, *value, *score, *sum;
	float *largest, *weight;  /* of each row, so far: the maximum, the sum of the weights */
	int64_t score_row, sum_row;
	int64_t first;            /* row of Q */
	int64_t from, keys;       /* block of keys */
	const float *values;      /* of the block: in place, or `value`; NULL: they become floats in parts */
	int64_t value_row;
};

INLINE int64_t
whole_vectors(int64_t n)
{
	return (n + VL - 1) / VL * VL;
}

/* ---- Elements of fewer bits. ---- */

/* `n` rows of `columns` elements become floats; vectors are whole, with zeros. */
INLINE void
widen_rows_of(float *to, int64_t to_row, const char *from, int64_t row, int64_t n, int64_t columns, const om_stored_as s)
{
	for (int64_t i = 0; i < n; i++) {
		const char *x = from + om_stored_bytes(s, i * row);
		float *y = to + i * to_row;
		int64_t d = 0;
		for (; d + VL <= columns; d += VL)
			vec_store(y + d, vec_load_stored(x + om_stored_bytes(s, d), s));
		if (d < columns)
			vec_store(y + d, vec_load_some_stored(x + om_stored_bytes(s, d), columns - d, s));
	}
}

static void
widen_rows(float *to, int64_t to_row, const void *from, int64_t row, int64_t n, int64_t columns, om_stored_as s)
{
	switch (s) {
	case OM_STORED_HALF: widen_rows_of(to, to_row, from, row, n, columns, OM_STORED_HALF); break;
	case OM_STORED_BFLOAT: widen_rows_of(to, to_row, from, row, n, columns, OM_STORED_BFLOAT); break;
	case OM_STORED_INT8: widen_rows_of(to, to_row, from, row, n, columns, OM_STORED_INT8); break;
	case OM_STORED_INT4: widen_rows_of(to, to_row, from, row, n, columns, OM_STORED_INT4); break;
	default: break;
	}
}

/* `n` keys from the `j`-th one of the block on, as floats, `*row` apart; at most OM_ATTENTION_PART of them if they are stored otherwise. */
static const float *
keys_from(const struct head *h, int64_t j, int64_t n, int64_t *row)
{
	const om_attention *a = h->a;
	const int64_t at = (h->from + j) * a->row[K];

	*row = a->row[K];
	if (a->keys_as == OM_STORED_FLOAT)
		return (const float *)h->at->k + at;
	*row = whole_vectors(a->depth);
	widen_rows(h->wide, *row, (const char *)h->at->k + om_stored_bytes(a->keys_as, at), a->row[K], n, a->depth, a->keys_as);
	return h->wide;
}

/* ---- Scores. ---- */

static void
pack_keys(const struct head *h)
{
	const om_attention *a = h->a;
	const int64_t col = a->col[K];

	for (int64_t j = 0; j < h->keys; j += TILE_COLUMNS) {
		const int64_t n = least(h->keys - j, TILE_COLUMNS);
		int64_t row;
		const float *from = keys_from(h, j, n, &row);
		float *to = h->key + j * a->depth;
		if (col == 1)
			panel_from_columns(to, from, a->depth, n, row);
		else if (row == 1)
			panel_from_rows(to, from, a->depth, n, col);
		else
			panel_from_any(to, from, a->depth, n, col, row);
	}
}

static void
scores_by_panels(const struct head *h, int64_t i, int64_t rows, int64_t keys)
{
	const om_attention *a = h->a;
	struct tile t = {.a = h->at->q + i * a->row[Q], .a_row = a->row[Q], .a_col = a->col[Q], .k = a->depth,
		.c_row = h->score_row, .alpha = a->scale};

	for (int64_t j = 0; j < keys; j += TILE_COLUMNS) {
		const int64_t all = least(h->keys - j, TILE_COLUMNS);
		t.b = h->key + j * a->depth;
		t.b_row = tile_vecs(all) * VL;
		t.c = h->score + j;
		tile_panel(t, rows, least(all, keys - j));
	}
}

/* The products of one row of Q and VL keys, at most `n` of which are there. */
INLINE vec
dots_of_keys(const struct head *h, const float *q, const float *k, int64_t row, int64_t n)
{
	const int64_t depth = h->a->depth;
	vec sum[VL], all = {0};

	UNROLL
	for (int e = 0; e < VL; e++) {
		const float *at = k + (e < n ? e : 0) * row;
		int64_t d = 0;
		sum[e] = (vec){0};
		for (; d + VL <= depth; d += VL)
			sum[e] += vec_load(q + d) * vec_load(at + d);
		if (d < depth)
			sum[e] += vec_load_some(q + d, depth - d) * vec_load_some(at + d, depth - d);
	}
	vec_transpose(sum);
	UNROLL
	for (int e = 0; e < VL; e++)
		all += sum[e];
	return all * h->a->scale;
}

static void
scores_by_dots(const struct head *h, int64_t i, int64_t rows, int64_t keys)
{
	for (int64_t j = 0; j < keys; j += VL) {
		int64_t row;
		const float *k = keys_from(h, j, least(keys - j, VL), &row);
		for (int64_t r = 0; r < rows; r++)
			vec_store(h->score + r * h->score_row + j, dots_of_keys(h, h->at->q + (i + r) * h->a->row[Q], k, row, keys - j));
	}
}

/* ---- Masks of a row of `n` scores; row `i`, from key `from` on. ---- */

static void
add_mask(const om_attention *a, const om_attention_data *at, int m, int64_t i, int64_t from, float *score, int64_t n)
{
	const int64_t col = a->col[OM_ATTENTION_MASK + m];
	const float *mask = at->mask[m] + i * a->row[OM_ATTENTION_MASK + m] + from * col;
	int64_t j = 0;

	for (; col == 1 && j + VL <= n; j += VL)
		vec_store(score + j, vec_load(score + j) + vec_load(mask + j));
	for (; j < n; j++)
		score[j] += mask[j * col];
}

static void
fill_row(const om_attention *a, const om_attention_data *at, int64_t i, int64_t from, float *score, int64_t n)
{
	const uint8_t *keep = at->keep + i * a->row[KEEP] + from * a->col[KEEP];

	for (int64_t j = 0; j < n; j++)
		score[j] = (keep[j * a->col[KEEP]] != 0) == a->fill_where ? a->fill : score[j];
}

static void
cap_row(float *score, int64_t n, float cap)
{
	for (int64_t j = 0; j < n; j += VL)
		vec_store(score + j, cap * vec_tanh(vec_load(score + j) / cap));
}

/* Mask a row; returns the number of scores, rounded up to whole vectors. */
static int64_t
mask_row(const struct head *h, int64_t i, float *score, int64_t n)
{
	const om_attention *a = h->a;
	const int64_t visible = a->is_causal ? least(i + a->keys - a->rows + 1 - h->from, n) : n;
	const int64_t hidden = a->window ? least(i + a->keys - a->rows + 1 - a->window - h->from, n) : 0;
	const int64_t end = whole_vectors(n);

	if (a->cap > 0)
		cap_row(score, n, a->cap);
	if (a->has[KEEP])
		fill_row(a, h->at, i, h->from, score, n);
	for (int m = 0; m < OM_ATTENTION_MASKS; m++)
		if (a->has[OM_ATTENTION_MASK + m])
			add_mask(a, h->at, m, i, h->from, score, n);
	for (int64_t j = visible < 0 ? 0 : visible; j < end; j++)
		score[j] = -INFINITY;
	for (int64_t j = 0; j < hidden; j++)
		score[j] = -INFINITY;
	return end;
}

/* ---- Weights. ---- */

INLINE float
largest_of(const float *x, int64_t n)
{
	vec most = vec_all(-INFINITY);

	for (int64_t j = 0; j < n; j += VL)
		most = vec_max(vec_load(x + j), most);
	return vec_largest(most);
}

/* Scores become weights; returns their sum. */
INLINE float
weigh(float *x, int64_t n, float most)
{
	vec sum = {0};

	for (int64_t j = 0; j < n; j += VL) {
		const vec e = vec_exp_weight(vec_load(x + j) - most);
		vec_store(x + j, e);
		sum += e;
	}
	return vec_sum(sum);
}

/* Weights of a row without a key: 0, but for scores that are NaN.  Returns their sum. */
static float
weigh_nothing(float *x, int64_t n)
{
	float sum = 0;

	for (int64_t j = 0; j < n; j++) {
		x[j] = x[j] == x[j] ? 0 : x[j];
		sum += x[j];
	}
	return sum;
}

static void
rescale(float *x, int64_t n, float by)
{
	for (int64_t j = 0; j < n; j += VL)
		vec_store(x + j, vec_load(x + j) * by);
}

INLINE float
exp_of(float x)
{
	return vec_exp_weight(vec_all(x))[0];
}

/* Row `r` of the group that starts at row `i`.  A maximum of -infinity means that all keys so far are masked. */
static void
weigh_row(const struct head *h, int64_t i, int64_t r, int64_t keys)
{
	const int64_t row = i - h->first + r;
	float *score = h->score + r * h->score_row;
	const int64_t n = mask_row(h, i + r, score, keys);
	const float was = h->largest[row], here = largest_of(score, n), most = here > was ? here : was;
	const float sum = here == -INFINITY ? weigh_nothing(score, n) : weigh(score, n, most);
	const float by = was == -INFINITY ? 0 : was == most ? 1 : exp_of(was - most);

	if (h->from > 0 && by != 1)
		rescale(h->sum + row * h->sum_row, whole_vectors(h->a->value_depth), by);
	h->weight[row] = h->weight[row] * by + sum;
	h->largest[row] = most;
}

/* ---- Weighted values. ---- */

/* `n` values from the `j`-th one of the block on become floats. */
static void
widen_values(const struct head *h, int64_t j, int64_t n)
{
	const om_attention *a = h->a;

	widen_rows(h->value, h->sum_row, (const char *)h->at->v + om_stored_bytes(a->values_as, (h->from + j) * a->row[V]), a->row[V], n,
		a->value_depth, a->values_as);
}

static void
take_values(struct head *h)
{
	const om_attention *a = h->a;
	const float *from = (const float *)h->at->v + h->from * a->row[V];
	const bool is_stored = a->values_as != OM_STORED_FLOAT, in_parts = om_attention_values_by_parts(a);

	h->values = from;
	h->value_row = a->row[V];
	if (!is_stored && a->col[V] == 1 && a->value_depth % 16 == 0)
		return;
	h->values = in_parts ? NULL : h->value;
	h->value_row = h->sum_row;
	if (is_stored) {
		if (!in_parts)
			widen_values(h, 0, h->keys);
		return;
	}
	for (int64_t j = 0; j < h->keys; j++) {
		float *to = h->value + j * h->sum_row;
		for (int64_t d = 0; d < a->value_depth; d++)
			to[d] = from[j * a->row[V] + d * a->col[V]];
		for (int64_t d = a->value_depth; d < whole_vectors(a->value_depth); d++)
			to[d] = 0;
	}
}

/* Values [j, j + n) of the block, which are at `values`. */
static void
add_some_values(const struct head *h, const float *values, int64_t i, int64_t rows, int64_t j, int64_t n)
{
	const int64_t depth = whole_vectors(h->a->value_depth);
	struct tile t = {.a = h->score + j, .a_row = h->score_row, .a_col = 1, .b_row = h->value_row, .k = n,
		.c_row = h->sum_row, .alpha = 1, .add = h->from + j > 0};

	for (int64_t d = 0; d < depth; d += TILE_COLUMNS) {
		t.b = values + d;
		t.c = h->sum + (i - h->first) * h->sum_row + d;
		tile_panel(t, rows, least(depth - d, TILE_COLUMNS));
	}
}

static void
add_values(const struct head *h, int64_t i, int64_t rows, int64_t keys)
{
	if (h->values) {
		add_some_values(h, h->values, i, rows, 0, keys);
		return;
	}
	for (int64_t j = 0; j == 0 || j < keys; j += OM_ATTENTION_PART) {
		const int64_t n = least(keys - j, OM_ATTENTION_PART);
		widen_values(h, j, n);
		add_some_values(h, h->value, i, rows, j, n);
	}
}

/* Without a key, the weights of the row are 0 / 0. */
static bool
is_zero_row(const om_attention *a, float total)
{
	return a->keys == 0 || (a->zero_for_masked && total == 0) || (a->zero_for_nan && !(total > 0));
}

static void
store_row(const struct head *h, int64_t row)
{
	const om_attention *a = h->a;
	const float *sum = h->sum + row * h->sum_row, total = h->weight[row];
	const bool is_zero = is_zero_row(a, total), is_dense = a->col[Y] == 1 && !is_zero;
	const float by = 1 / total;
	float *y = h->at->y + (h->first + row) * a->row[Y];
	int64_t d = 0;

	for (; is_dense && d + VL <= a->value_depth; d += VL)
		vec_store(y + d, vec_load(sum + d) * by);
	for (; d < a->value_depth; d++)
		y[d * a->col[Y]] = is_zero ? 0 : sum[d] * by;
}

/* ---- A block of keys. ---- */

/* The keys of the block that some row of the group has. */
static int64_t
keys_of(const struct head *h, int64_t i, int64_t rows)
{
	const om_attention *a = h->a;
	const int64_t visible = i + rows + a->keys - a->rows - h->from;

	return !a->is_causal ? h->keys : visible < 1 ? least(h->keys, 1) : least(visible, h->keys);
}

static void
add_block(struct head *h, int64_t n)
{
	if (!om_attention_by_dots(h->a))
		pack_keys(h);
	take_values(h);
	for (int64_t i = h->first; i < h->first + n; i += TILE_ROWS) {
		const int64_t rows = least(h->first + n - i, TILE_ROWS), keys = keys_of(h, i, rows);
		if (om_attention_by_dots(h->a))
			scores_by_dots(h, i, rows, keys);
		else
			scores_by_panels(h, i, rows, keys);
		for (int64_t r = 0; r < rows; r++)
			weigh_row(h, i, r, keys);
		add_values(h, i, rows, keys);
	}
}

static void
attention_rows(const om_attention *a, const om_attention_data *at, int64_t first, int64_t n,
	const om_attention_room *layout, float *room)
{
	struct head h = {.a = a, .at = at, .first = first, .wide = room + layout->wide, .key = room + layout->key, .value = room + layout->value,
		.score = room + layout->score, .sum = room + layout->sum, .largest = room + layout->state,
		.weight = room + layout->state + n, .score_row = layout->score_row, .sum_row = layout->sum_row};

	for (int64_t row = 0; row < n; row++) {
		h.largest[row] = at->sink ? at->sink[(first + row) * a->sink_step] : -INFINITY;
		h.weight[row] = at->sink ? 1 : 0;
	}
	for (; h.from == 0 || h.from < a->keys; h.from += OM_ATTENTION_KEYS) {
		h.keys = least(a->keys - h.from, OM_ATTENTION_KEYS);
		add_block(&h, n);
	}
	for (int64_t row = 0; row < n; row++)
		store_row(&h, row);
}

extern const om_attention_kernels OM_TABLE(om_attention_kernels);

const om_attention_kernels OM_TABLE(om_attention_kernels) = {.rows = attention_rows};
