/* SPDX-License-Identifier: Apache-2.0 */
/* MatMulNBits of a few rows: the weights of 4 or 8 bits are read as they are, instead of a matrix of floats made of them.  Where
 * `accuracy_level` allows it, the rows are rounded to 8 bits.  For more rows, some columns at a time become floats. */
#include <config.h>

#include "base/shape.h"
#include "ir/query.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/product.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/cpu/ranges.h"
#include "ops/family.h"

enum { X, WEIGHTS, SCALES, ZEROS, GROUPS, BIAS };

/* With more rows, floats of the weights are worth their time; PANEL columns of them. */
enum { MOST_ROWS = 16, PANEL = 128, LEVEL_OF_BYTES = 4 };

struct nbits {
	om_nbits b;               /* without addresses */
	int64_t k, rows;          /* of all calls */
	bool rounds;              /* the rows become integers of 8 bits */
};

static int64_t
rows_of(const om_op_context *c)
{
	const om_shape *x = &c->in[X].shape;

	return x->rank < 1 ? 0 : om_shape_span(x, 0, x->rank - 1);
}

static bool
has_count(const om_op_context *c, uint32_t k, int64_t n)
{
	return !om_has_in(c, k) || om_shape_count(&c->in[k].shape) == n;
}

/* Are all sizes those that the attributes imply? */
static bool
has_sizes(const om_op_context *c)
{
	const int64_t k = om_attr_int(c->op, "K"), n = om_attr_int(c->op, "N"), block = om_attr_int(c->op, "block_size");
	const int64_t bits = om_attr_int(c->op, "bits");

	if ((bits != 4 && bits != 8) || om_attr_int(c->op, "weight_prepacked") || om_has_in(c, GROUPS) || block < 32
	    || block % 32 || block > INT32_MAX || k < 1 || n < 1 || k > INT32_MAX || n > INT32_MAX
	    || (om_has_in(c, ZEROS) && c->in[ZEROS].type != OM_UINT8) || rows_of(c) < 1)
		return false;
	const int64_t blocks = (k + block - 1) / block;
	return has_count(c, X, rows_of(c) * k) && has_count(c, WEIGHTS, n * blocks * (block * bits / 8)) && has_count(c, SCALES, n * blocks)
	    && has_count(c, ZEROS, n * ((blocks * bits + 7) / 8)) && has_count(c, BIAS, n);
}

static bool
nbits_supports(const om_op_context *c)
{
	return has_sizes(c) && rows_of(c) <= MOST_ROWS;
}

static bool
panels_support(const om_op_context *c)
{
	return has_sizes(c) && rows_of(c) > MOST_ROWS;
}

static om_status
nbits_prepare(om_op_context *c, void **state)
{
	struct nbits *s = *state;
	const int64_t block = om_attr_int(c->op, "block_size"), bits = om_attr_int(c->op, "bits");

	s->k = om_attr_int(c->op, "K");
	s->rows = rows_of(c);
	s->b = (om_nbits){.columns = om_attr_int(c->op, "N"), .blocks = (s->k + block - 1) / block, .bytes = block * bits / 8, .is_8_bits = bits == 8};
	s->b.zero_bytes = (s->b.blocks * bits + 7) / 8;
	s->rounds = om_attr_int(c->op, "accuracy_level") == LEVEL_OF_BYTES;
	return OM_OK;
}

/* The rows of a call in scratch: even and odd elements, scales of those that are rounded, sums of blocks. */
struct room {
	char *even, *odd, *scales, *sums;
};

static uint64_t
room_of(const struct nbits *s, char *base, struct room *r)
{
	const int64_t half = s->rounds ? om_nbits_whole(&s->b) : om_nbits_half(&s->b) * (int64_t)sizeof(float);
	const int64_t bytes[] = {half, s->b.is_8_bits ? 0 : half, s->rounds ? half : 0, s->b.blocks * (int64_t)sizeof(float)};
	char **part[] = {&r->even, &r->odd, &r->scales, &r->sums};
	uint64_t at = 0;

	for (int k = 0; k < 4; k++) {
		*part[k] = base ? base + at : NULL;
		at += om_piece_size((uint64_t)(OM_NBITS_ROWS * bytes[k]));
	}
	return at;
}

static uint64_t
nbits_workspace(const om_op_context *c)
{
	struct room none;

	return room_of(c->state, NULL, &none);
}

struct call {
	const om_nbits *b;
	const om_nbits_bytes *rounded; /* NULL: the rows are floats */
};

static void
run_columns(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct call *call = arg;

	(void)worker;
	if (call->rounded)
		om_kernels_get()->nbits->rounded(call->b, call->rounded, from, to);
	else
		om_kernels_get()->nbits->columns(call->b, from, to);
}

/* Rows from `row` on, as many as `b` has. */
static void
run_rows(om_op_context *c, const om_nbits *b, int64_t row, const struct room *r)
{
	const struct nbits *s = c->state;
	const float *x = (const float *)c->in[X].data + row * s->k;
	void *even = r->even, *odd = r->odd, *scales = r->scales, *sums = r->sums;
	const om_nbits_bytes rounded = {even, odd, scales};
	struct call call = {b, s->rounds ? &rounded : NULL};

	for (int64_t k = 0; k < b->rows; k++)
		if (s->rounds)
			om_nbits_round(b, x + k * s->k, s->k, k, even, odd, scales, sums);
		else
			om_nbits_split(b, x + k * s->k, s->k, k, even, odd, sums);
	om_for_ranges(c, b->columns, s->k, run_columns, &call);
}

/* With the addresses of the weights. */
static om_nbits
weights_of(const om_op_context *c)
{
	om_nbits b = ((const struct nbits *)c->state)->b;

	b.weights = c->in[WEIGHTS].data;
	b.scales = c->in[SCALES].data;
	b.zeros = om_has_in(c, ZEROS) ? c->in[ZEROS].data : NULL;
	b.bias = om_has_in(c, BIAS) ? c->in[BIAS].data : NULL;
	return b;
}

static om_status
nbits_run(om_op_context *c)
{
	const struct nbits *s = c->state;
	om_nbits b = weights_of(c);
	struct room r;

	room_of(s, c->scratch, &r);
	b.even = s->rounds ? NULL : (const float *)(const void *)r.even;
	b.odd = s->rounds ? NULL : (const float *)(const void *)r.odd;
	b.sums = (const float *)(const void *)r.sums;
	for (int64_t row = 0; row < s->rows; row += b.rows) {
		b.rows = s->rows - row < OM_NBITS_ROWS ? s->rows - row : OM_NBITS_ROWS;
		b.y = (float *)c->out[0].data + row * b.columns;
		run_rows(c, &b, row, &r);
	}
	return OM_OK;
}

/* ---- More rows. ---- */

/* Elements of a column, whole blocks. */
static int64_t
column_of(const om_nbits *b)
{
	return b->blocks * b->bytes * (b->is_8_bits ? 1 : 2);
}

/* The product of all rows and `n` columns of floats, one after the other. */
static om_product_batch
product_of(const struct nbits *s, int64_t n)
{
	om_product_batch p = {.p = {.m = s->rows, .n = n, .k = s->k, .a_row = s->k, .a_col = 1, .b_row = 1, .b_col = column_of(&s->b),
		.c_row = s->b.columns, .alpha = 1}};

	om_product_choose(&p);
	return p;
}

static int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static uint64_t
panel_bytes(const struct nbits *s)
{
	return om_piece_size((uint64_t)(least(PANEL, s->b.columns) * column_of(&s->b)) * sizeof(float));
}

/* The last panel has fewer columns, which another way may be chosen for. */
static uint64_t
product_bytes(const struct nbits *s)
{
	const om_product_batch whole = product_of(s, least(PANEL, s->b.columns)), last = product_of(s, (s->b.columns - 1) % PANEL + 1);
	const uint64_t a = om_product_workspace(&whole, 1), b = om_product_workspace(&last, 1);

	return om_piece_size(a > b ? a : b);
}

static uint64_t
panels_workspace(const om_op_context *c)
{
	return (panel_bytes(c->state) + product_bytes(c->state)) * om_call_workers(c);
}

static int
zero_at(const om_nbits *b, int64_t column, int64_t block)
{
	if (!b->zeros)
		return b->is_8_bits ? 128 : 8;
	return b->is_8_bits ? b->zeros[column * b->zero_bytes + block] : b->zeros[column * b->zero_bytes + block / 2] >> block % 2 * 4 & 15;
}

static void
widen_column(const om_nbits *b, int64_t column, float *to)
{
	const uint8_t *from = b->weights + column * b->blocks * b->bytes;

	for (int64_t block = 0; block < b->blocks; block++, from += b->bytes) {
		const float scale = b->scales[column * b->blocks + block];
		const int zero = zero_at(b, column, block);
		for (int64_t i = 0; i < b->bytes && b->is_8_bits; i++)
			to[i] = (float)(from[i] - zero) * scale;
		for (int64_t i = 0; i < b->bytes && !b->is_8_bits; i++) {
			to[2 * i] = (float)((from[i] & 15) - zero) * scale;
			to[2 * i + 1] = (float)((from[i] >> 4) - zero) * scale;
		}
		to += b->is_8_bits ? b->bytes : 2 * b->bytes;
	}
}

static void
run_panels(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const om_op_context *c = arg;
	const struct nbits *s = c->state;
	const om_nbits b = weights_of(c);
	char *room = (char *)c->scratch + worker * (panel_bytes(s) + product_bytes(s));
	float *panel = (float *)(void *)room;

	for (int64_t first = from * PANEL; first < to * PANEL && first < b.columns; first += PANEL) {
		const int64_t n = least(PANEL, b.columns - first);
		const om_product_batch p = product_of(s, n);
		float *y = (float *)c->out[0].data + first;
		for (int64_t j = 0; j < n; j++)
			widen_column(&b, first + j, panel + j * column_of(&b));
		om_product_run(&p, c->in[X].data, panel, y, room + panel_bytes(s), NULL);
		for (int64_t i = 0; b.bias && i < s->rows; i++)
			for (int64_t j = 0; j < n; j++)
				y[i * b.columns + j] += b.bias[first + j];
	}
}

static om_status
panels_run(om_op_context *c)
{
	const struct nbits *s = c->state;

	om_for_ranges(c, (s->b.columns + PANEL - 1) / PANEL, s->k * PANEL, run_panels, c);
	return OM_OK;
}

const om_kernel om_kernels_fast_nbits[] = {
	{.domain = "com.microsoft", .name = "MatMulNBits", .is_fast = true, .types = {OF(FLOAT32), OF(UINT8), OF(FLOAT32)},
	 .state_bytes = sizeof(struct nbits), .supports = nbits_supports, .prepare = nbits_prepare, .workspace = nbits_workspace,
	 .run = nbits_run},
	{.domain = "com.microsoft", .name = "MatMulNBits", .is_fast = true, .types = {OF(FLOAT32), OF(UINT8), OF(FLOAT32)},
	 .state_bytes = sizeof(struct nbits), .supports = panels_support, .prepare = nbits_prepare, .workspace = panels_workspace,
	 .run = panels_run},
	{0}
};
