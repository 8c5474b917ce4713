/* SPDX-License-Identifier: Apache-2.0 */
/* GroupQueryAttention: what its kernels share. */
#ifndef OM_GROUP_QUERY_H
#define OM_GROUP_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "onnxmem/opdef.h"

/* Inputs, in order; outputs are the result and the present caches. */
enum { OM_GROUP_QUERY, OM_GROUP_KEY, OM_GROUP_VALUE, OM_GROUP_PAST_KEY, OM_GROUP_PAST_VALUE, OM_GROUP_LENGTHS, OM_GROUP_TOTAL,
	OM_GROUP_COSINES, OM_GROUP_SINES, OM_GROUP_PLACES, OM_GROUP_BIAS, OM_GROUP_SINK, OM_GROUP_KEY_SCALE, OM_GROUP_VALUE_SCALE };

/* The state of the kernels. */
struct om_group_query {
	bool packed;              /* queries, keys and values are packed in one input */
	int64_t batch, queries, heads, kv, size;
	int64_t past, total;      /* rows of the caches: past and present */
	bool rotates, interleaved, smooth, is_causal;
	double scale, cap;
	int64_t window;           /* attention window in keys; 0 or less: unlimited */
	bool slides;              /* the cache holds the last positions only */
	bool is_ring;             /* and that of position p is in row p modulo the number of rows */
	bool is_quantized[2];     /* the cache of keys, of values */
	int64_t bits;             /* of an element of a quantized cache: 4 or 8 */
	bool is_open;             /* the total length is known only at run time, from neither input nor output */
};

/* Attributes and dims; those that are not known are OM_DIM_UNKNOWN. */
om_status om_group_query_read(const om_op_context *c, struct om_group_query *g);

/* Types, and what om_group_query_read() gives: the column `prepare`. */
om_status om_group_query_prepare(om_op_context *c, void **state);

/* Shapes of the operands, in a run, when `total` is known. */
om_status om_group_query_check(const om_op_context *c, const struct om_group_query *g);

/* The positions of sequence `b`: those before its new keys, and their number at the end.  Fails if they do not match
 * the caches. */
om_status om_group_query_lengths(const om_op_context *c, const struct om_group_query *g, int64_t b, int64_t *before,
	int64_t *length);

/* The rows of a cache that so many positions leave: all of them, unless it slides.  A ring leaves the last ones. */
int64_t om_group_query_resident(const struct om_group_query *g, int64_t length);

/* ---- Caches: 0 of keys, 1 of values. ---- */

/* Elements of a row of a cache: bytes of two elements with 4 bits. */
int64_t om_group_query_row(const struct om_group_query *g, int k);

/* What the integers of element `e` of head `h` of a quantized cache are multiplied by. */
double om_group_query_scale(const om_op_context *c, const struct om_group_query *g, int k, int64_t h, int64_t e);

/* A number as the integer of a quantized cache, signed. */
double om_group_query_quantized(const struct om_group_query *g, double x, double scale);

#endif
