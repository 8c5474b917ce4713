/* Named ways to share memory, beside the packer: the pool of dead blocks,
 * colouring, and the flow through an allocation graph.
 *
 * Like the packer they know buffers with lifetimes and nothing else.  All of
 * them write om_buffer.offset, are deterministic, depend on the problem alone,
 * and refuse fixed offsets: what they cannot keep.  A buffer counts as whole:
 * bytes that are free for a while are not given away.
 *
 * `open` is NULL where lifetimes say who interferes.  For plans that hold in every
 * order it is what om_buffers_interference() says: then those pairs interfere as
 * well, and of two buffers that do not, the lifetimes say who comes first.
 */
#ifndef OM_BASELINES_H
#define OM_BASELINES_H

#include "onnxmem/plan.h"

/* What a way of sharing needed. */
typedef struct om_baseline_result {
	om_pack_result pack;     /* how high it is */
	uint32_t blocks;         /* colours, blocks of the pool, regions of the flow */
} om_baseline_result;

/* ---- pool ---- */

/* Blocks are whole and taken by what fits tightest.  `kind`: NULL, or by buffer
 * a number; then a block is taken by its own kind only.  Buffers with several
 * lifetimes count as alive from the first to the last. */
OM_API om_status om_baseline_pool(om_session *s, om_buffer *buf, uint32_t n, const uint32_t *kind,
	om_baseline_result *r);

/* ---- color ---- */

/* What colours are to be few of. */
typedef enum om_color_choice {
	OM_COLOR_DSATUR,         /* as few blocks as it finds */
	OM_COLOR_BYTES,          /* as few bytes as it finds; never more than DSATUR needs */
} om_color_choice;

/* Give every buffer one of at most `limit` blocks (0: no limit); those that
 * interfere get different ones.  OM_BUDGET where that fails.  `block` may be
 * NULL; else it gets the block of every buffer. */
OM_API om_status om_baseline_color(om_session *s, om_buffer *buf, uint32_t n, const om_interference_list *open,
	om_color_choice choice, uint32_t limit, uint32_t *block, om_baseline_result *r);

/* ---- nnc ---- */

/* Which buffer comes next. */
typedef enum om_nnc_rule {
	OM_NNC_PAPER,            /* most interference first, in tuples with larger ones */
	OM_NNC_BY_SIZE,            /* largest first */
} om_nnc_rule;

/* Partial reuse by an allocation graph.  `graph` may be NULL; else the graph is
 * written to it for Graphviz. */
OM_API om_status om_baseline_nnc(om_session *s, om_buffer *buf, uint32_t n, const om_interference_list *open,
	om_nnc_rule rule, FILE *graph, om_baseline_result *r);

/* ---- All of them, by name. ---- */

/* What is to share memory. */
typedef struct om_share_problem {
	om_buffer *buf;          /* their offsets are written */
	uint32_t n;
	const uint32_t *kind;    /* by buffer, a number that is the same for the same shape and type */
	const om_interference_list *open; /* NULL: the plan holds for one order */
	uint32_t limit;          /* blocks that there are, where a strategy has a choice; 0: any number */
	FILE *graph;             /* for Graphviz, of a strategy that has a graph; NULL: not written */
} om_share_problem;

/* A row: a strategy with what sets it apart from others. */
typedef struct om_strategy {
	const char *name;        /* NULL ends rows; letters, digits and dashes */
	const char *brief;       /* how it shares, a line */
	bool any_order;          /* it knows plans that hold in every order; else `open` is NULL */
	om_status (*share)(om_session *s, const om_share_problem *p, om_baseline_result *r);
} om_strategy;

/* Row `k`; NULL behind the last one.  And the one of that name; NULL: there is none. */
OM_API const om_strategy *om_strategy_at(size_t k);
OM_API const om_strategy *om_strategy_find(const char *name);

#endif
