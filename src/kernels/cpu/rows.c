/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, softmax and normalizations, compiled once per instruction set; see rows.h. */
#include <config.h>

#include "kernels/cpu/rows.h"
#include "kernels/cpu/vec_math.h"

enum {
	BLOCK = 4096,             /* elements of a sum in float */
	NACC = 4,                 /* vectors of partial sums */
	ROWS = 128,               /* of a column, for one sum */
};

/* ---- Ends of lines. ---- */

/* All bits of the first n lanes. */
INLINE ivec
lanes_below(int64_t n)
{
	static const int32_t edge[32] = {
		-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	};
	return *(const ivec *)(edge + 16 - n);
}

/* The first n elements, 0 < n < VL, and `fill`. */
INLINE vec
load_rest(const float *x, int64_t n, vec fill)
{
	return vec_select(lanes_below(n), vec_load_some(x, n), fill);
}

/* The first m elements, 0 < m <= VL. */
INLINE vec
load_lanes(const float *x, int64_t m)
{
	if (m < VL)
		return vec_load_some(x, m);
	return vec_load(x);
}

INLINE void
store_lanes(float *y, vec v, int64_t m)
{
	if (m == VL)
		vec_store(y, v);
	else
		vec_store_some(y, v, m);
}

/* ---- Reductions. ---- */

INLINE float
start_of(const int kind)
{
	switch (kind) {
	case OM_REDUCE_PRODUCT: return 1;
	case OM_REDUCE_MAX: return -INFINITY;
	case OM_REDUCE_MIN: return INFINITY;
	default: return 0;
	}
}

/* What x adds to a sum. */
INLINE vec
term_of(const int kind, vec x)
{
	switch (kind) {
	case OM_REDUCE_SUM_SQUARE: return x * x;
	case OM_REDUCE_SUM_ABS: return vec_abs(x);
	default: return x;
	}
}

INLINE vec
merged(const int kind, vec a, vec b)
{
	switch (kind) {
	case OM_REDUCE_PRODUCT: return a * b;
	case OM_REDUCE_MAX: return vec_select(b != b, b, vec_max(b, a));
	case OM_REDUCE_MIN: return vec_select(b != b, b, vec_min(b, a));
	default: return a + b;
	}
}

static double
merged_number(const int kind, double a, double b)
{
	switch (kind) {
	case OM_REDUCE_PRODUCT: return a * b;
	case OM_REDUCE_MAX: return b > a || b != b ? b : a;
	case OM_REDUCE_MIN: return b < a || b != b ? b : a;
	default: return a + b;
	}
}

/* In double, for the lines that leave the range of float. */
static double
reduce_exactly(const int kind, const float *x, int64_t n, int64_t stride)
{
	double sum = (double)start_of(kind);

	for (int64_t i = 0; i < n; i++) {
		const double v = (double)x[i * stride];
		const double term = kind == OM_REDUCE_SUM_SQUARE ? v * v : kind == OM_REDUCE_SUM_ABS ? fabs(v) : v;
		sum = merged_number(kind, sum, term);
	}
	return sum;
}

/* Results that float may have lost: overflow, and squares and products that vanish. */
INLINE int
is_doubtful(const int kind, double sum)
{
	const int vanishes = kind == OM_REDUCE_SUM_SQUARE || kind == OM_REDUCE_PRODUCT;

	if (kind == OM_REDUCE_MAX || kind == OM_REDUCE_MIN)
		return 0;
	return !(fabs(sum) < (double)INFINITY) || (vanishes && !(fabs(sum) > 0x1p-80));
}

INLINE double
over_lanes(const int kind, vec v)
{
	float x[VL];

	memcpy(x, &v, sizeof x);
	double sum = (double)x[0];
	for (int k = 1; k < VL; k++)
		sum = merged_number(kind, sum, (double)x[k]);
	return sum;
}

INLINE vec
reduce_block(const int kind, const float *x, int64_t n)
{
	vec sum[NACC];
	int64_t i = 0;

	UNROLL
	for (int k = 0; k < NACC; k++)
		sum[k] = vec_all(start_of(kind));
	for (; i + NACC * VL <= n; i += NACC * VL) {
		UNROLL
		for (int k = 0; k < NACC; k++)
			sum[k] = merged(kind, sum[k], term_of(kind, vec_load(x + i + k * VL)));
	}
	for (; i + VL <= n; i += VL)
		sum[0] = merged(kind, sum[0], term_of(kind, vec_load(x + i)));
	if (i < n)
		sum[1] = merged(kind, sum[1], term_of(kind, load_rest(x + i, n - i, vec_all(start_of(kind)))));
	return merged(kind, merged(kind, sum[0], sum[1]), merged(kind, sum[2], sum[3]));
}

INLINE double
reduce_run(const int kind, const float *x, int64_t n)
{
	double sum = (double)start_of(kind);

	for (int64_t i = 0; i < n; i += BLOCK) {
		const vec part = reduce_block(kind, x + i, n - i < BLOCK ? n - i : BLOCK);
		sum = merged_number(kind, sum, over_lanes(kind, part));
	}
	return is_doubtful(kind, sum) ? reduce_exactly(kind, x, n, 1) : sum;
}

/* NV vectors of columns. */
INLINE void
reduce_rows(const int kind, vec *total, const float *x, int64_t n, int64_t stride, const int nv)
{
	UNROLL
	for (int v = 0; v < nv; v++)
		total[v] = vec_all(start_of(kind));
	while (n > 0) {
		const int64_t m = n < ROWS ? n : ROWS;
		vec sum[NACC];
		UNROLL
		for (int v = 0; v < nv; v++)
			sum[v] = vec_all(start_of(kind));
		for (int64_t i = 0; i < m; i++, x += stride) {
			UNROLL
			for (int v = 0; v < nv; v++)
				sum[v] = merged(kind, sum[v], term_of(kind, vec_load(x + v * VL)));
		}
		UNROLL
		for (int v = 0; v < nv; v++)
			total[v] = merged(kind, total[v], sum[v]);
		n -= m;
	}
}

/* Fewer columns than lanes: read row by row without touching what lies after the last one. */
INLINE vec
reduce_narrow(const int kind, const float *x, int64_t n, int64_t stride, int64_t width)
{
	vec total = vec_all(start_of(kind));

	while (n > 0) {
		const int64_t m = n < ROWS ? n : ROWS;
		vec sum = vec_all(start_of(kind));
		for (int64_t i = 0; i < m; i++, x += stride)
			sum = merged(kind, sum, term_of(kind, vec_load_some(x, width)));
		total = merged(kind, total, sum);
		n -= m;
	}
	return total;
}

INLINE void
reduce_columns(const int kind, float *out, const float *x, int64_t n, int64_t stride, int64_t width)
{
	int64_t j = 0;

	for (; j + NACC * VL <= width; j += NACC * VL) {
		vec sum[NACC];
		reduce_rows(kind, sum, x + j, n, stride, NACC);
		UNROLL
		for (int v = 0; v < NACC; v++)
			vec_store(out + j + v * VL, sum[v]);
	}
	for (; j + VL <= width; j += VL) {
		vec sum[NACC];
		reduce_rows(kind, sum, x + j, n, stride, 1);
		vec_store(out + j, sum[0]);
	}
	if (j < width)
		vec_store_some(out + j, reduce_narrow(kind, x + j, n, stride, width - j), width - j);
	for (j = 0; j < width; j++)
		if (is_doubtful(kind, (double)out[j]))
			out[j] = (float)reduce_exactly(kind, x + j, n, stride);
}

#define REDUCE(name, kind)                                                     \
static double                                                                  \
name##_run(const float *x, int64_t n)                                          \
{                                                                              \
	return reduce_run(kind, x, n);                                         \
}                                                                              \
static void                                                                    \
name##_columns(float *out, const float *x, int64_t n, int64_t stride, int64_t width) \
{                                                                              \
	reduce_columns(kind, out, x, n, stride, width);                        \
}

REDUCE(sum, OM_REDUCE_SUM)
REDUCE(square, OM_REDUCE_SUM_SQUARE)
REDUCE(magnitude, OM_REDUCE_SUM_ABS)
REDUCE(product, OM_REDUCE_PRODUCT)
REDUCE(highest, OM_REDUCE_MAX)
REDUCE(lowest, OM_REDUCE_MIN)

/* ---- Softmax.  A maximum leaves NaN out; exp() brings it into the sum. ---- */

static float
largest(const float *x, int64_t n)
{
	vec high[NACC];
	int64_t i = 0;

	UNROLL
	for (int k = 0; k < NACC; k++)
		high[k] = vec_all(-INFINITY);
	for (; i + NACC * VL <= n; i += NACC * VL) {
		UNROLL
		for (int k = 0; k < NACC; k++)
			high[k] = vec_max(vec_load(x + i + k * VL), high[k]);
	}
	for (; i + VL <= n; i += VL)
		high[0] = vec_max(vec_load(x + i), high[0]);
	if (i < n)
		high[1] = vec_max(load_rest(x + i, n - i, vec_all(-INFINITY)), high[1]);
	return vec_largest(vec_max(vec_max(high[0], high[1]), vec_max(high[2], high[3])));
}

/* The sum of exp(x - high) over a block; the terms are stored in y unless it is NULL. */
INLINE vec
add_exps(float *y, const float *x, int64_t n, vec high, const int stores)
{
	vec sum = {0}, other = {0};
	int64_t i = 0;

	for (; i + 2 * VL <= n; i += 2 * VL) {
		const vec e = vec_exp_weight(vec_load(x + i) - high), f = vec_exp_weight(vec_load(x + i + VL) - high);
		if (stores) {
			vec_store(y + i, e);
			vec_store(y + i + VL, f);
		}
		sum += e;
		other += f;
	}
	for (; i < n; i += VL) {
		const int64_t m = n - i < VL ? n - i : VL;
		const vec e = vec_exp_weight(load_lanes(x + i, m) - high);
		if (stores)
			store_lanes(y + i, e, m);
		sum += vec_select(lanes_below(m), e, vec_all(0));
	}
	return sum + other;
}

INLINE double
sum_of_exps(float *y, const float *x, int64_t n, float high, const int stores)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i += BLOCK)
		sum += (double)vec_sum(add_exps(stores ? y + i : y, x + i, n - i < BLOCK ? n - i : BLOCK, vec_all(high), stores));
	return sum;
}

static void
scale(float *y, const float *x, int64_t n, float factor, const float *by)
{
	int64_t i = 0;

	for (; i + VL <= n; i += VL) {
		vec v = vec_load(x + i) * factor;
		if (by)
			v = v * vec_load(by + i);
		vec_store(y + i, v);
	}
	if (i < n) {
		vec v = vec_load_some(x + i, n - i) * factor;
		if (by)
			v = v * vec_load_some(by + i, n - i);
		vec_store_some(y + i, v, n - i);
	}
}

static void
softmax(float *y, const float *x, int64_t n)
{
	const double sum = sum_of_exps(y, x, n, largest(x, n), 1);
	scale(y, y, n, (float)(1 / sum), NULL);
}

static void
log_softmax(float *y, const float *x, int64_t n)
{
	const float high = largest(x, n), by = (float)log(sum_of_exps(NULL, x, n, high, 0));
	int64_t i = 0;

	for (; i + VL <= n; i += VL)
		vec_store(y + i, vec_load(x + i) - high - by);
	if (i < n)
		vec_store_some(y + i, vec_load_some(x + i, n - i) - high - by, n - i);
}

INLINE void
softmax_lanes(float *y, const float *x, int64_t n, int64_t stride, int64_t m, const int is_log)
{
	vec high = vec_all(-INFINITY), sum = {0};

	for (int64_t i = 0; i < n; i++)
		high = vec_max(load_lanes(x + i * stride, m), high);
	for (int64_t i0 = 0; i0 < n; i0 += ROWS) {
		vec part = {0};
		for (int64_t i = i0; i < n && i < i0 + ROWS; i++) {
			const vec e = vec_exp_weight(load_lanes(x + i * stride, m) - high);
			part += e;
			if (!is_log)
				store_lanes(y + i * stride, e, m);
		}
		sum += part;
	}
	const vec by = 1 / sum, log_by = vec_log(sum);
	for (int64_t i = 0; i < n; i++) {
		if (is_log)
			store_lanes(y + i * stride, load_lanes(x + i * stride, m) - high - log_by, m);
		else
			store_lanes(y + i * stride, load_lanes(y + i * stride, m) * by, m);
	}
}

INLINE void
softmax_columns_of(float *y, const float *x, int64_t n, int64_t stride, int64_t width, const int is_log)
{
	for (; width >= VL; width -= VL, x += VL, y += VL)
		softmax_lanes(y, x, n, stride, VL, is_log);
	if (width)
		softmax_lanes(y, x, n, stride, width, is_log);
}

static void
softmax_columns(float *y, const float *x, int64_t n, int64_t stride, int64_t width)
{
	softmax_columns_of(y, x, n, stride, width, 0);
}

static void
log_softmax_columns(float *y, const float *x, int64_t n, int64_t stride, int64_t width)
{
	softmax_columns_of(y, x, n, stride, width, 1);
}

/* ---- Normalizations. ---- */

static om_moments
moments_exactly(const float *x, int64_t n)
{
	double mean = 0, square = 0;

	for (int64_t i = 0; i < n; i++)
		mean += (double)x[i];
	mean /= (double)n;
	for (int64_t i = 0; i < n; i++)
		square += ((double)x[i] - mean) * ((double)x[i] - mean);
	return (om_moments){(float)mean, mean - (double)(float)mean, square / (double)n};
}

/* Sums of d and of its square, d = x - center. */
INLINE void
deviations(const float *x, int64_t n, float center, double *sum, double *square)
{
	vec s[2] = {{0}}, q[2] = {{0}};
	int64_t i = 0;

	for (; i + 2 * VL <= n; i += 2 * VL) {
		UNROLL
		for (int k = 0; k < 2; k++) {
			const vec d = vec_load(x + i + k * VL) - center;
			s[k] += d;
			q[k] += d * d;
		}
	}
	for (; i < n; i += VL) {
		const int64_t m = n - i < VL ? n - i : VL;
		const vec d = vec_select(lanes_below(m), load_lanes(x + i, m) - center, vec_all(0));
		s[0] += d;
		q[0] += d * d;
	}
	*sum += (double)vec_sum(s[0] + s[1]);
	*square += (double)vec_sum(q[0] + q[1]);
}

/* Two passes.  The second one also finds what rounding the mean to float left out. */
static om_moments
moments(const float *x, int64_t n)
{
	const float center = (float)(reduce_run(OM_REDUCE_SUM, x, n) / (double)n);
	double sum = 0, square = 0;

	for (int64_t i = 0; i < n; i += BLOCK)
		deviations(x + i, n - i < BLOCK ? n - i : BLOCK, center, &sum, &square);
	if (!(square < (double)INFINITY) || !(square > 0x1p-80))
		return moments_exactly(x, n);
	const double shift = sum / (double)n, variance = square / (double)n - shift * shift;
	return (om_moments){center, shift, variance > 0 ? variance : 0};
}

INLINE vec
normalized(vec x, const om_normalizer *by, int64_t i, int64_t m)
{
	vec v = (x - by->center) * by->factor + by->offset;

	if (by->scale)
		v = v * load_lanes(by->scale + i, m);
	if (by->bias)
		v = v + load_lanes(by->bias + i, m);
	return v;
}

static void
normalize(float *y, const float *x, int64_t n, const om_normalizer *by)
{
	int64_t i = 0;

	for (; i + VL <= n; i += VL)
		vec_store(y + i, normalized(vec_load(x + i), by, i, VL));
	if (i < n)
		vec_store_some(y + i, normalized(vec_load_some(x + i, n - i), by, i, n - i), n - i);
}

static void
affine(float *y, const float *x, int64_t n, float center, float factor, float bias)
{
	int64_t i = 0;

	for (; i + VL <= n; i += VL)
		vec_store(y + i, (vec_load(x + i) - center) * factor + bias);
	if (i < n)
		vec_store_some(y + i, (vec_load_some(x + i, n - i) - center) * factor + bias, n - i);
}

static void
affine_row(float *y, const float *x, int64_t n, const float *center, const float *factor, const float *bias)
{
	for (int64_t i = 0; i < n; i += VL) {
		const int64_t m = n - i < VL ? n - i : VL;
		const vec d = load_lanes(x + i, m) - load_lanes(center + i, m);
		store_lanes(y + i, d * load_lanes(factor + i, m) + load_lanes(bias + i, m), m);
	}
}

static void
add(float *y, const float *a, const float *b, int64_t n)
{
	for (int64_t i = 0; i < n; i += VL) {
		const int64_t m = n - i < VL ? n - i : VL;
		store_lanes(y + i, load_lanes(a + i, m) + load_lanes(b + i, m), m);
	}
}

/* ---- Transposes. ---- */

/* A block of at most VL by VL; rows that are missing are not read, and what they would give is not stored. */
INLINE void
transpose_block(float *to, const float *from, int64_t m, int64_t n, int64_t to_row, int64_t from_row)
{
	vec row[VL];

	for (int64_t i = 0; i < VL; i++)
		row[i] = (vec){0};
	for (int64_t i = 0; i < m; i++)
		row[i] = load_lanes(from + i * from_row, n);
	vec_transpose(row);
	for (int64_t j = 0; j < n; j++)
		store_lanes(to + j * to_row, row[j], m);
}

INLINE void
transpose_whole_block(float *to, const float *from, int64_t to_row, int64_t from_row)
{
	vec row[VL];

	UNROLL
	for (int i = 0; i < VL; i++)
		row[i] = vec_load(from + i * from_row);
	vec_transpose(row);
	UNROLL
	for (int j = 0; j < VL; j++)
		vec_store(to + j * to_row, row[j]);
}

/* Few rows, as those of an image with 3 channels: a vector would be empty for the most part. */
INLINE void
transpose_rows(float *to, const float *from, const int m, int64_t n, int64_t to_row, int64_t from_row)
{
	for (int64_t j = 0; j < n; j++, to += to_row)
		for (int i = 0; i < m; i++)
			memcpy(to + i, from + i * from_row + j, sizeof *to);
}

static void
transpose(float *to, const float *from, int64_t m, int64_t n, int64_t to_row, int64_t from_row)
{
	switch (m) {
	case 1: transpose_rows(to, from, 1, n, to_row, from_row); return;
	case 2: transpose_rows(to, from, 2, n, to_row, from_row); return;
	case 3: transpose_rows(to, from, 3, n, to_row, from_row); return;
	default: break;
	}
	for (int64_t j = 0; j < n; j += VL)
		for (int64_t i = 0; i < m; i += VL) {
			float *at = to + j * to_row + i;
			if (m - i >= VL && n - j >= VL)
				transpose_whole_block(at, from + i * from_row + j, to_row, from_row);
			else
				transpose_block(at, from + i * from_row + j, m - i < VL ? m - i : VL, n - j < VL ? n - j : VL,
					to_row, from_row);
		}
}

/* ---- Local response normalization. ---- */

/* Channels [from, to) of a window. */
struct window {
	int64_t from, to;
};

static double
lrn_power(double all, double beta)
{
	return beta == 0.75 ? sqrt(all) * sqrt(sqrt(all)) : pow(all, beta);
}

/* The first n lanes in double: for powers that vectors do not have, sums beyond the range of float, and differences. */
NOINLINE void
lrn_by_lane(float *y, const float *x, int64_t channel, const struct window *w, const om_lrn *l, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		double sum = 0;
		for (int64_t k = w->from; k < w->to; k++)
			sum += (double)x[k * l->stride + i] * (double)x[k * l->stride + i];
		const double power = lrn_power(l->bias + l->alpha * sum, l->beta);
		y[channel * l->stride + i] = (float)((double)x[channel * l->stride + i] / power);
	}
}

/* The first n lanes; each window is summed from scratch, as a running sum would accumulate rounding errors. */
INLINE void
lrn_lanes(float *y, const float *x, int64_t channel, const struct window *w, const om_lrn *l, int64_t n)
{
	vec sum = {0};

	for (int64_t k = w->from; k < w->to; k++) {
		const vec v = load_lanes(x + k * l->stride, n);
		sum += v * v;
	}
	const vec all = sum * (float)l->alpha + (float)l->bias;
	const ivec is_served = (all > 1e-30f) & (all < 1e30f) & (sum < 1e30f);
	if (l->beta != 0.75 || l->alpha < 0 || l->bias < 0 || vec_any(~is_served)) {
		lrn_by_lane(y, x, channel, w, l, n);
		return;
	}
	const vec root = vec_sqrt(all), result = load_lanes(x + channel * l->stride, n) / (root * vec_sqrt(root));
	if (n == VL)
		vec_store(y + channel * l->stride, result);
	else
		vec_store_some(y + channel * l->stride, result, n);
}

static void
lrn(float *y, const float *x, const om_lrn *l, int64_t width)
{
	for (int64_t channel = 0; channel < l->channels; channel++) {
		const int64_t before = channel < l->below ? channel : l->below, left = l->channels - 1 - channel;
		const struct window w = {channel - before, channel + 1 + (left < l->above ? left : l->above)};
		int64_t i = 0;
		for (; i + VL <= width; i += VL)
			lrn_lanes(y + i, x + i, channel, &w, l, VL);
		if (i < width)
			lrn_lanes(y + i, x + i, channel, &w, l, width - i);
	}
}

extern const om_rows_kernels OM_TABLE(om_rows_kernels);

const om_rows_kernels OM_TABLE(om_rows_kernels) = {
	.softmax = softmax,
	.log_softmax = log_softmax,
	.softmax_columns = softmax_columns,
	.log_softmax_columns = log_softmax_columns,
	.run = {
		[OM_REDUCE_SUM] = sum_run,
		[OM_REDUCE_SUM_SQUARE] = square_run,
		[OM_REDUCE_SUM_ABS] = magnitude_run,
		[OM_REDUCE_PRODUCT] = product_run,
		[OM_REDUCE_MAX] = highest_run,
		[OM_REDUCE_MIN] = lowest_run,
	},
	.columns = {
		[OM_REDUCE_SUM] = sum_columns,
		[OM_REDUCE_SUM_SQUARE] = square_columns,
		[OM_REDUCE_SUM_ABS] = magnitude_columns,
		[OM_REDUCE_PRODUCT] = product_columns,
		[OM_REDUCE_MAX] = highest_columns,
		[OM_REDUCE_MIN] = lowest_columns,
	},
	.moments = moments,
	.normalize = normalize,
	.scale = scale,
	.affine = affine,
	.affine_row = affine_row,
	.lrn = lrn,
	.add = add,
	.transpose = transpose,
};
