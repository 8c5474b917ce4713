/* Inside the knowledge of what comes before what; see <onnxmem/plan.h>. */
#ifndef OM_PARTIAL_ORDER_H
#define OM_PARTIAL_ORDER_H

#include "onnxmem/plan.h"

struct om_partial_order {
	uint32_t n;              /* nodes: ops of the graph, in the order of the file.
	                            Number n is the end, where the results are read */
	uint32_t *node;          /* by op id, of ops in bodies too: the node that holds it */
	uint32_t *chain, *pos;   /* by node: which chain, and the how many-th on it */
	uint32_t **row, *width;  /* by node: of each chain, how many come before it */
	size_t nchain;
	uint32_t *start, *ntouch;   /* by value id: its part of `touch` */
	uint32_t *touch;         /* nodes that define or use a value, ascending */
};

/* The same as om_partial_order_before(), by node. */
bool om_partial_order_node_before(const om_partial_order *r, uint32_t a, uint32_t b);

#endif
