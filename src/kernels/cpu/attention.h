/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in float32: softmax(scale Q K^T + masks) V, of operands with any strides.  Keys and values may be stored in fewer
 * bits: they become floats in parts that the nearest cache holds.
 *
 * A group of rows of Q is processed at a time, so that its scores stay in cache; many keys are processed in blocks,
 * with the maximum and the sum of each row so far. */
#ifndef OM_ATTENTION_KERNEL_H
#define OM_ATTENTION_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/parallel.h"

enum {
	OM_ATTENTION_MASKS = 2,   /* that are added */
	OM_ATTENTION_RANK = 8,
	OM_ATTENTION_KEYS = 1024, /* in a block */
	OM_ATTENTION_ROWS = 96,   /* in a piece */
	OM_ATTENTION_FEW = 8,     /* so many rows read keys where they are */
	OM_ATTENTION_PART = 64,   /* keys or values that become floats at a time, if rows are few */
};

/* How elements of keys or of values are stored; integers are to be multiplied by a scale, which the caller has in Q or
 * applies to the result. */
typedef enum om_stored_as {
	OM_STORED_FLOAT,
	OM_STORED_HALF,
	OM_STORED_BFLOAT,
	OM_STORED_INT8,
	OM_STORED_INT4,           /* two in a byte, the lower bits first, 8 more than they are */
} om_stored_as;

/* Bytes of so many elements; an even number with 4 bits. */
static inline int64_t
om_stored_bytes(om_stored_as s, int64_t elements)
{
	return s == OM_STORED_FLOAT ? elements * 4 : s <= OM_STORED_BFLOAT ? elements * 2 : s == OM_STORED_INT8 ? elements : elements / 2;
}

/* The operands; masks and `keep` may be absent. */
enum { OM_ATTENTION_Q, OM_ATTENTION_K, OM_ATTENTION_V, OM_ATTENTION_MASK, OM_ATTENTION_KEEP = OM_ATTENTION_MASK
	+ OM_ATTENTION_MASKS, OM_ATTENTION_Y, OM_NATTENTION };

/* One head.  Element (i, j) of an operand is at i * row + j * col; rows and columns of masks are those of the
 * scores. */
typedef struct om_attention {
	int64_t rows, keys, depth, value_depth;
	int64_t row[OM_NATTENTION], col[OM_NATTENTION];
	bool has[OM_NATTENTION];
	om_stored_as keys_as, values_as;  /* if not as floats, their columns are adjacent */
	float scale;
	float fill;               /* the score where a byte of `keep` is `fill_where` */
	bool fill_where;
	bool is_causal;           /* row i has the keys up to i + keys - rows */
	int64_t window;           /* and no more than so many; 0: all of them */
	float cap;                /* scores are cap * tanh(score / cap) before masks; 0: they stay */
	int64_t sink_step;        /* from the sink of a row to that of the next one */
	/* What a row without a key gives: 0, or with neither NaN, as Softmax does.  With zero_for_nan also a row that
	 * has scores that are NaN or infinite. */
	bool zero_for_masked, zero_for_nan;
} om_attention;

/* A head for every index of the batch axes, with the steps of the operands along them. */
typedef struct om_attention_batch {
	om_attention a;
	int rank;
	int64_t dim[OM_ATTENTION_RANK], step[OM_ATTENTION_RANK][OM_NATTENTION];
	int64_t sink_step[OM_ATTENTION_RANK];
} om_attention_batch;

/* The addresses of the operands of a head. */
typedef struct om_attention_data {
	const float *q, *mask[OM_ATTENTION_MASKS];
	const void *k, *v;        /* as they are stored */
	const uint8_t *keep;
	const float *sink;        /* scores without a value that take part in the sums of weights; NULL: none */
	float *y;
} om_attention_data;

/* Parts of the workspace of a worker, as offsets in floats; see om_attention_layout(). */
typedef struct om_attention_room {
	int64_t wide, key, value, score, sum, state, total;
	int64_t score_row, sum_row;
} om_attention_room;

typedef struct om_attention_kernels {
	/* Rows [first, first + n) of a head, at most OM_ATTENTION_ROWS. */
	void (*rows)(const om_attention *a, const om_attention_data *at, int64_t first, int64_t n,
		const om_attention_room *layout, float *room);
} om_attention_kernels;

/* Are scores computed from keys in place, one vector of keys after the other? */
static inline bool
om_attention_by_dots(const om_attention *a)
{
	return a->rows <= OM_ATTENTION_FEW && a->col[OM_ATTENTION_Q] == 1 && a->col[OM_ATTENTION_K] == 1;
}

/* Do values become floats part by part, when they are added? */
static inline bool
om_attention_values_by_parts(const om_attention *a)
{
	return a->values_as != OM_STORED_FLOAT && a->rows <= OM_ATTENTION_FEW;
}

om_attention_room om_attention_layout(const om_attention *a);

/* Bytes of workspace for so many workers; the same on every machine. */
uint64_t om_attention_workspace(const om_attention *a, uint32_t workers);

/* The operands of head `n`. */
om_attention_data om_attention_head(const om_attention_batch *b, const om_attention_data *data, int64_t n);

/* Compute a batch.  `room` is aligned to 64. */
void om_attention_run(const om_attention_batch *b, const om_attention_data *at, void *room, om_workers *pool);

#endif
