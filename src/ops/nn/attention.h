/* SPDX-License-Identifier: Apache-2.0 */
/* The operands and sizes of Attention and RotaryEmbedding. */
#ifndef OM_ATTENTION_H
#define OM_ATTENTION_H

#include "onnxmem/opdef.h"

/* Inputs and outputs of Attention. */
enum { Q, K, V, MASK, PAST_K, PAST_V, LENGTHS };
enum { Y, NEW_K, NEW_V, SCORES };

/* While planning, -1 means unknown. */
struct om_attention {
	bool flat;           /* rank 3: heads are adjacent in the last dim */
	int64_t batch, qheads, heads, qlen, len, past, total, size, vsize;
};

struct om_attention om_attention_sizes(const om_op_context *c);

/* Inputs of RotaryEmbedding. */
enum { X, COS, SIN, PLACES };

struct om_rotary {
	int64_t batch, len, heads, size, turned, step;  /* step: row stride of the caches */
	bool flat, interleaved;
};

/* The shape of the input must be known. */
struct om_rotary om_rotary_sizes(const om_op_context *c);

#endif
