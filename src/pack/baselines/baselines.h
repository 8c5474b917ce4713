/* SPDX-License-Identifier: Apache-2.0 */
/* Well-known strategies for memory sharing, as baselines for the packer: a pool of
 * free blocks, graph coloring, and NNC's allocation graph.
 *
 * Like the packer they work on buffers with lifetimes.  All of them write
 * om_buffer.offset, are deterministic, depend on the problem alone, and refuse
 * fixed offsets, which they do not support.  A buffer counts as whole: the bytes
 * that it does not use for some steps are not shared.
 *
 * The parameter `interference` is NULL if interference is derived from lifetimes.
 * For plans that are valid in any order it is the result of
 * om_buffers_interference(): then those pairs interfere as well, and of two buffers
 * that do not interfere, the lifetimes give the order.
 */
#ifndef OM_BASELINES_H
#define OM_BASELINES_H

#include <stdio.h>

#include "onnxmem/pack.h"
#include "pack/baselines/interference_list.h"

/* The size that a strategy reached. */
typedef struct om_baseline_result {
	om_pack_result pack;     /* its height and status */
	uint32_t blocks;         /* colors, blocks of the pool, regions of the allocation graph */
} om_baseline_result;

/* ---- pool ---- */

/* Blocks are never split; a buffer takes the smallest free block that fits.
 * `kind`: NULL, or a number by buffer; then blocks are shared within a kind only.
 * Buffers with several lifetimes count as live from the first to the last. */
om_status om_baseline_pool(om_session *s, om_buffer *buf, uint32_t n, const uint32_t *kind,
	om_baseline_result *r);

/* ---- color ---- */

/* What the coloring minimizes. */
typedef enum om_color_choice {
	OM_COLOR_DSATUR,         /* the number of blocks */
	OM_COLOR_BYTES,          /* bytes; never more than DSATUR needs */
} om_color_choice;

/* Assign every buffer to one of at most `limit` blocks (0: no limit); buffers that
 * interfere get different ones.  OM_BUDGET if no such assignment is found.  `block`
 * may be NULL; otherwise it receives the block of every buffer. */
om_status om_baseline_color(om_session *s, om_buffer *buf, uint32_t n,
	const om_interference_list *interference,
	om_color_choice choice, uint32_t limit, uint32_t *block, om_baseline_result *r);

/* ---- nnc ---- */

/* The order of insertion. */
typedef enum om_nnc_rule {
	OM_NNC_PAPER,            /* most interference first, in tuples with larger ones */
	OM_NNC_BY_SIZE,            /* largest first */
} om_nnc_rule;

/* Partial reuse of blocks by an allocation graph.  `graph` may be NULL; otherwise
 * the graph is written to it in the language of Graphviz.  `work`: limit of the search
 * for tuples; 0: a default. */
om_status om_baseline_nnc(om_session *s, om_buffer *buf, uint32_t n,
	const om_interference_list *interference,
	om_nnc_rule rule, uint64_t work, FILE *graph, om_baseline_result *r);

/* ---- All of them, by name: rows of om_strategy. ---- */

/* The buffers that share memory. */
typedef struct om_share_problem {
	om_buffer *buf;          /* their offsets are written */
	uint32_t n;              /* buffers */
	const uint32_t *kind;    /* by buffer, a number that is the same for the same shape and type */
	const om_interference_list *open; /* NULL: the plan holds for one order */
	uint32_t limit;          /* blocks that there are, where a strategy has a choice; 0: any number */
	uint64_t work;           /* limit of the search, where a strategy has one; 0: a default */
	FILE *graph;             /* for Graphviz, of a strategy that has a graph; NULL: not written */
} om_share_problem;

/* The strategy of that name; NULL: there is none. */
const om_strategy *om_strategy_find(const char *name);

#endif
