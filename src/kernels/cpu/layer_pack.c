/* SPDX-License-Identifier: Apache-2.0 */
/* Packing of weights; the formats are in layer.h.
 *
 * It is part of loading a model, so it has to run at the speed of memory: filters are transposed in blocks of 4 by
 * 4 elements, with lines of the cache read as a whole.  The result is the same on every machine. */
#include <config.h>

#include <string.h>

#include "kernels/cpu/layer.h"

enum { RUN = 16 };    /* elements that are read from a filter at a time: a line of the cache */

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

/* Elements that are not aligned, as those in a file. */
typedef float loose __attribute__((aligned(1), may_alias));
typedef float loose_four __attribute__((vector_size(16), aligned(1), may_alias));

static int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* to[k][0..3] = from[0..3][k], k < 4. */
static inline void
transpose(const loose *const *from, int64_t at, float *const *to, int64_t column)
{
	const four a = *(const loose_four *)(from[0] + at), b = *(const loose_four *)(from[1] + at);
	const four c = *(const loose_four *)(from[2] + at), d = *(const loose_four *)(from[3] + at);
	const four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
	const four fg = __builtin_shufflevector(a, b, 2, 6, 3, 7), hi = __builtin_shufflevector(c, d, 2, 6, 3, 7);

	*(four *)(to[0] + column) = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
	*(four *)(to[1] + column) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
	*(four *)(to[2] + column) = __builtin_shufflevector(fg, hi, 0, 1, 4, 5);
	*(four *)(to[3] + column) = __builtin_shufflevector(fg, hi, 2, 3, 6, 7);
}

/* Filters of one panel: element `s` of a filter is row order(s) of the panel. */
struct filters {
	const loose *w;
	int64_t n;                /* filters, at most OM_PANEL */
	int64_t channels, taps;   /* of a filter; its elements are [channels][taps] */
	float *to;
};

/* Rows of elements s to s + n - 1. */
static void
find_rows(const struct filters *f, int64_t s, int64_t n, float **row)
{
	int64_t channel = s / f->taps, tap = s % f->taps;

	for (int64_t k = 0; k < n; k++) {
		row[k] = f->to + (tap * f->channels + channel) * OM_PANEL;
		if (++tap == f->taps) {
			tap = 0;
			channel++;
		}
	}
}

static void
pack_few(const struct filters *f, int64_t s, int64_t n, float *const *row)
{
	const int64_t depth = f->channels * f->taps;

	for (int64_t k = 0; k < n; k++)
		for (int64_t j = 0; j < OM_PANEL; j++)
			row[k][j] = j < f->n ? f->w[j * depth + s + k] : 0;
}

static void
pack_run(const struct filters *f, int64_t s, float *const *row)
{
	static const loose zeros[RUN];
	const int64_t depth = f->channels * f->taps;

	for (int64_t j = 0; j < OM_PANEL; j += 4) {
		const loose *from[4];
		for (int64_t i = 0; i < 4; i++)
			from[i] = j + i < f->n ? f->w + (j + i) * depth + s : zeros;
		for (int64_t k = 0; k < RUN; k += 4)
			transpose(from, k, row + k, j);
	}
}

static void
pack_panel(const struct filters *f)
{
	const int64_t depth = f->channels * f->taps;
	float *row[RUN];
	int64_t s = 0;

	for (; s + RUN <= depth; s += RUN) {
		find_rows(f, s, RUN, row);
		pack_run(f, s, row);
	}
	if (s < depth) {
		find_rows(f, s, depth - s, row);
		pack_few(f, s, depth - s, row);
	}
}

/* All before `end` was packed. */
static void
consume(const om_layer_source *w, const loose *end)
{
	if (w->consumed)
		w->consumed(w->arg, (uint64_t)((const char *)end - (const char *)w->data));
}

/* `w` is in the source. */
static void
pack_filters(const om_layer_source *source, const loose *w, int64_t filters, int64_t channels, int64_t taps, float *packed)
{
	const int64_t depth = channels * taps;

	for (int64_t j = 0; j < filters; j += OM_PANEL) {
		const struct filters f = {.w = w + j * depth, .n = least(filters - j, OM_PANEL), .channels = channels,
			.taps = taps, .to = packed + j * depth};
		pack_panel(&f);
		consume(source, f.w + f.n * depth);
	}
}

static void
scale(float *x, int64_t n, float alpha)
{
	for (int64_t k = 0; k < n && alpha != 1; k++)
		x[k] *= alpha;
}

/* The columns are contiguous already. */
static void
pack_rows(const om_layer_source *source, int64_t rows, int64_t columns, float *packed)
{
	const loose *w = source->data;

	for (int64_t k0 = 0; k0 < rows; k0 += RUN) {
		for (int64_t j = 0; j < columns; j += OM_PANEL) {
			const int64_t n = least(columns - j, OM_PANEL);
			float *to = packed + j * rows + k0 * OM_PANEL;
			for (int64_t k = k0; k < least(rows, k0 + RUN); k++, to += OM_PANEL) {
				if (n < OM_PANEL)
					memset(to, 0, OM_PANEL * sizeof *to);
				memcpy(to, w + k * columns + j, (size_t)n * sizeof *to);
			}
		}
		consume(source, w + least(rows, k0 + RUN) * columns);
	}
}

void
om_layer_pack_matrix(om_layer_source w, int64_t rows, int64_t columns, bool is_transposed, float alpha, float *packed)
{
	if (is_transposed)
		pack_filters(&w, w.data, columns, rows, 1, packed);
	else
		pack_rows(&w, rows, columns, packed);
	scale(packed, (columns + OM_PANEL - 1) / OM_PANEL * OM_PANEL * rows, alpha);
}

/* ---- Winograd's algorithm. ---- */

/* A filter element of all output channels of a panel. */
typedef float column[OM_PANEL];

/* u[k * step] = the transform of g[0], g[step], g[2 * step], for tiles of 4 outputs. */
static void
transform4(column *g, column *u, int from, int step)
{
	for (int j = 0; j < OM_PANEL; j++) {
		const float a = g[0][j], b = g[from][j], c = g[2 * from][j];
		const float sum = (a + c) * (1 / 6.0F), third = b * (1 / 6.0F), far = a * (1 / 24.0F) + c * (1 / 6.0F);
		u[0][j] = a * 0.25F;
		u[step][j] = -sum - third;
		u[2 * step][j] = third - sum;
		u[3 * step][j] = far + b * (1 / 12.0F);
		u[4 * step][j] = far - b * (1 / 12.0F);
		u[5 * step][j] = c;
	}
}

/* The same for tiles of 2 outputs. */
static void
transform2(column *g, column *u, int from, int step)
{
	for (int j = 0; j < OM_PANEL; j++) {
		const float a = g[0][j], b = g[from][j], c = g[2 * from][j], sum = (a + c) * 0.5F;
		u[0][j] = a;
		u[step][j] = sum + b * 0.5F;
		u[2 * step][j] = sum - b * 0.5F;
		u[3 * step][j] = c;
	}
}

/* Filters of a panel at one position of the leading axis, for one input channel: w[filter * depth + element]. */
static void
gather(const loose *w, int64_t n, int64_t depth, column *g)
{
	for (int64_t j = 0; j < OM_PANEL; j++)
		for (int k = 0; k < 9; k++)
			g[k][j] = j < n ? w[j * depth + k] : 0;
}

/* Rows `element` apart. */
static void
transform_filters(column *g, int side, float *to, int64_t element)
{
	column half[6 * 3], u[6];

	for (int k = 0; k < 3; k++)
		(side == 6 ? transform4 : transform2)(g + k, half + k, 3, 3);
	for (int i = 0; i < side; i++) {
		(side == 6 ? transform4 : transform2)(half + 3 * i, u, 1, 1);
		for (int k = 0; k < side; k++)
			memcpy(to + (i * side + k) * element, u[k], sizeof u[k]);
	}
}

static void
pack_winograd(const om_layer *l, const loose *w, float *packed)
{
	const int64_t planes = l->kernel[0], depth = l->channels_in * planes * 9;
	const int64_t panels = (l->channels_out + OM_PANEL - 1) / OM_PANEL, rows = l->channels_in * planes;
	column g[9];

	for (int64_t p = 0; p < panels; p++)
		for (int64_t s = 0; s < rows; s++) {
			const int64_t row = s % planes * l->channels_in + s / planes;
			gather(w + p * OM_PANEL * depth + s * 9, l->channels_out - p * OM_PANEL, depth, g);
			transform_filters(g, l->algorithm == OM_LAYER_WINOGRAD4 ? 6 : 4,
				packed + (p * rows + row) * OM_PANEL, panels * rows * OM_PANEL);
		}
}

void
om_layer_pack(const om_layer *l, om_layer_source w, float *packed)
{
	const int64_t taps = l->kernel[0] * l->kernel[1] * l->kernel[2];
	const int64_t group = (int64_t)(om_layer_weights(l) / (uint64_t)l->group);

	for (int64_t g = 0; g < l->group; g++) {
		const loose *from = (const loose *)w.data + g * l->channels_out * l->channels_in * taps;
		if (l->algorithm == OM_LAYER_GEMM)
			pack_filters(&w, from, l->channels_out, l->channels_in, taps, packed + g * group);
		else
			pack_winograd(l, from, packed + g * group);
	}
}
