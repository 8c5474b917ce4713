/* SPDX-License-Identifier: Apache-2.0 */
/* The partial order of ops, for plans that hold for every order. */
#ifndef OM_PARTIAL_ORDER_H
#define OM_PARTIAL_ORDER_H

#include "onnxmem/assignment.h"

/* Which op completes before which other op starts in every order that respects data dependences or, with streams of
 * workers, in every order that these permit.  Only
 * ops of the graph are ordered; an op in a body counts as the op of the graph that contains it.  See
 * src/ir/partial_order.c for the cost; OM_MEMORY if that is too high. */
typedef struct om_partial_order om_partial_order;

struct om_partial_order {
	uint32_t n;              /* number of nodes: ops of the graph, in the order of the file. Node n is
				    the end, where the results are read */
	uint32_t *node;          /* by op id, of ops in bodies too: the node that contains it */
	uint32_t *chain, *pos;   /* by node: its chain, and its position on it */
	uint32_t **row, *width;  /* by node: for each chain, how many of its nodes come before this one */
	size_t nchain;
	uint32_t *start, *ntouch;   /* by value id: its range in `touch` */
	uint32_t *touch;         /* nodes that define or use a value, ascending */
};

/* As om_partial_order_before(), by node. */
bool om_partial_order_node_before(const om_partial_order *r, uint32_t a, uint32_t b);

/* Compute the relation for all ops; the result is allocated from `mem`.  `streams`, in the order of the ops: NULL: none.  `kept`: by value id, is it used at the end, though
 * it is no result?  NULL: none is. */
om_status om_partial_order_new(om_session *s, const om_prog *p, const bool *kept, const om_worker_streams *streams, om_arena *mem,
	om_partial_order **out);

/* False if the two are the same op, or in the same op of the graph. */
bool om_partial_order_before(const om_partial_order *r, const om_op *a, const om_op *b);

/* Do all ops that define or use `v`, except `op`, complete before `op` starts? Within one op of the
 * graph the order is fixed: the caller has to compare steps there. */
bool om_partial_order_is_over(const om_partial_order *r, const om_value *v, const om_op *op);

#endif
