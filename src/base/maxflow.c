/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum flow by Dinitz's algorithm, in phases.
 *
 * A breadth-first search from the source gives every node its distance along edges
 * with residual capacity; then paths are augmented along edges that lead one step
 * further, and an edge that leads nowhere is not tried again.  When a phase ends,
 * the sink is further away, so there are at most as many phases as nodes (Dinitz,
 * Soviet Math.  Dokl.  11, 1970).
 */
#include <config.h>

#include "base/maxflow.h"

#define NONE UINT32_MAX

/* Edges come in pairs: number e, and its reverse edge, e ^ 1. */
struct edge {
	uint32_t to, next;       /* next: of the same node */
	int64_t capacity;
};

struct om_net {
	om_arena *mem;
	uint32_t n;
	struct edge *edge;
	size_t nedge, capedge;
	uint32_t *head;          /* by node: its first edge */
	uint32_t *at;            /* by node: the current edge */
	uint32_t *distance;      /* by node; NONE: not reached */
	uint32_t *queue;         /* of nodes; then the edges of the current path */
	uint64_t work;
};

om_net *
om_net_new(uint32_t nnode, om_arena *mem)
{
	om_net *f = OM_NEW(mem, om_net);

	*f = (om_net){.mem = mem, .n = nnode, .head = OM_NEWN(mem, uint32_t, nnode),
		.at = OM_NEWN(mem, uint32_t, nnode), .distance = OM_NEWN(mem, uint32_t, nnode),
		.queue = OM_NEWN(mem, uint32_t, nnode)};
	for (uint32_t k = 0; k < nnode; k++)
		f->head[k] = NONE;
	return f;
}

static void
add_half(om_net *f, uint32_t from, uint32_t to, int64_t capacity)
{
	const struct edge e = {to, f->head[from], capacity};

	f->head[from] = (uint32_t)f->nedge;
	OM_PUSH(f->mem, f->edge, f->nedge, f->capedge, e);
}

void
om_net_edge(om_net *f, uint32_t from, uint32_t to, int64_t capacity)
{
	add_half(f, from, to, capacity);
	add_half(f, to, from, 0);
}

static bool
compute_distances(om_net *f, uint32_t source, uint32_t sink)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < f->n; k++)
		f->distance[k] = NONE;
	f->distance[source] = 0;
	f->queue[n++] = source;
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t e = f->head[f->queue[k]]; e != NONE; e = f->edge[e].next) {
			const struct edge *x = &f->edge[e];
			f->work++;
			if (x->capacity == 0 || f->distance[x->to] != NONE)
				continue;
			f->distance[x->to] = f->distance[f->queue[k]] + 1;
			f->queue[n++] = x->to;
		}
	return f->distance[sink] != NONE;
}

/* The next edge from `node` that leads one step further, or NONE. */
static uint32_t
next_edge(om_net *f, uint32_t node)
{
	uint32_t *at = &f->at[node];

	for (; *at != NONE; *at = f->edge[*at].next) {
		const struct edge *x = &f->edge[*at];
		f->work++;
		if (x->capacity > 0 && f->distance[x->to] == f->distance[node] + 1)
			break;
	}
	return *at;
}

/* Augment the path of `n` edges by its residual capacity. */
static void
augment(om_net *f, uint32_t n)
{
	int64_t capacity = INT64_MAX;

	for (uint32_t k = 0; k < n; k++)
		if (f->edge[f->queue[k]].capacity < capacity)
			capacity = f->edge[f->queue[k]].capacity;
	for (uint32_t k = 0; k < n; k++) {
		f->edge[f->queue[k]].capacity -= capacity;
		f->edge[f->queue[k] ^ 1].capacity += capacity;
	}
	f->work += n;
}

/* The length of the path before its first saturated edge. */
static uint32_t
unsaturated_prefix(const om_net *f, uint32_t n)
{
	uint32_t k = 0;

	while (k < n && f->edge[f->queue[k]].capacity > 0)
		k++;
	return k;
}

static void
augment_phase(om_net *f, uint32_t source, uint32_t sink, uint64_t work)
{
	uint32_t node = source, n = 0;

	for (uint32_t k = 0; k < f->n; k++)
		f->at[k] = f->head[k];
	while (f->work <= work) {
		const uint32_t e = node == sink ? NONE : next_edge(f, node);
		if (e != NONE) {
			f->queue[n++] = e;
			node = f->edge[e].to;
			continue;
		}
		if (node == sink) {
			augment(f, n);
			n = unsaturated_prefix(f, n);
		} else if (node == source) {
			return;
		} else {
			n--;
			f->at[f->edge[f->queue[n] ^ 1].to] = f->edge[f->queue[n]].next;
		}
		node = n ? f->edge[f->queue[n - 1]].to : source;
	}
}

bool
om_net_run(om_net *f, uint32_t source, uint32_t sink, uint64_t work)
{
	while (compute_distances(f, source, sink)) {
		augment_phase(f, source, sink, work);
		if (f->work > work)
			return false;
	}
	return true;
}

bool
om_net_reached(const om_net *f, uint32_t node)
{
	return f->distance[node] != NONE;
}
