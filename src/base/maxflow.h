/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum flow through a network. */
#ifndef OM_MAXFLOW_H
#define OM_MAXFLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "onnxmem/arena.h"

typedef struct om_net om_net;

om_net *om_net_new(uint32_t nnode, om_arena *mem);
void om_net_edge(om_net *f, uint32_t from, uint32_t to, int64_t capacity);

/* False when more than `work` edges would have to be visited. */
bool om_net_run(om_net *f, uint32_t source, uint32_t sink, uint64_t work);

/* After a run: can `node` be reached from the source along edges with residual
 * capacity?  These nodes are the source side of a minimum cut. */
bool om_net_reached(const om_net *f, uint32_t node);

#endif
