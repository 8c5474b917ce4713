/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting a program into parts that run one after the other, each in a memory of its own.
 *
 * A part is a range of the ops of the graph that run, in the order of the program.  What it reads of earlier parts is
 * an input of it, what later parts or the caller read is an output; inputs of the graph go to every part that reads
 * them, and weights that several parts read are in each of them.
 */
#ifndef OM_SPLIT_H
#define OM_SPLIT_H

#include "onnxmem/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A part. */
typedef struct om_split_part {
	uint32_t first, nop;     /* index of its first op among the ops of the graph that are not folded; how many */
	uint64_t bytes;          /* of its weights, and of all that is live at its peak, inputs and outputs included: an
				    estimate before it is planned, for the storage that the whole program has */
	uint64_t weights;        /* bytes of the constants that it reads */
	uint64_t crossing;       /* bytes of the values that its ops, or earlier ones, compute and later parts read */
} om_split_part;

/* Cuts of a program. */
typedef struct om_split {
	om_split_part *part;     /* [n] in the order of the program */
	uint32_t n;              /* at least 1 */
	uint64_t crossing;       /* bytes: the sum over all cuts */
	uint32_t stop;           /* with OM_BUDGET: the index of the op that, alone, is estimated to need too much; UINT32_MAX:
				    none does */
} om_split;

/* What is required of the parts. */
typedef struct om_split_request {
	size_t size;             /* sizeof(om_split_request) */
	uint64_t budget;         /* bytes that no part may need; 0: the smallest possible for `parts` */
	uint32_t parts;          /* exactly so many; 0: the fewest that the budget permits */
	const om_split_part *planned; /* parts that were planned, with the bytes that they take: such a part, and what
				    contains it, is not proposed again if that is too much, and other parts with the
				    same first op are expected to differ from their estimates as it does */
	uint32_t nplanned;       /* how many */
} om_split_request;

/* The initializer of a request. */
#define OM_SPLIT_REQUEST() ((om_split_request){.size = sizeof(om_split_request)})

/* Find cuts of `p`, which has storage (OM_HAS_STORE): those that meet the request and, among them, those over which the
 * fewest bytes go.  With `parts` and no budget the largest part is as small as possible.  The list of parts is allocated
 * from `mem`.  OM_BUDGET if an op alone needs more than the budget, or so many parts cannot be; the message names it.
 * Without a budget it is found by bisection, about 30 times; each time it takes O(n * m) steps for n ops and m ops in a part of
 * the largest size. */
OM_API om_status om_split_find(om_session *s, const om_prog *p, const om_split_request *r, om_arena *mem, om_split *out);

/* Reduce `p` to one of its parts: the other ops are removed, and what the part reads of them becomes its inputs, after
 * those inputs of the graph that it reads, in the order of their first use.  Its results are those of its values that
 * later ops read, then results of the graph; a result of the graph that is an input or a constant stays with the first
 * part.  Storage and plan are not valid afterwards.  OM_UNSUPPORTED if a value that crosses has no known type, or is a
 * state of a training step that one part reads and another updates. */
OM_API om_status om_prog_extract(om_session *s, om_prog *p, uint32_t first, uint32_t nop);

#ifdef __cplusplus
}
#endif

#endif
