/* The largest flow, in phases.
 *
 * A walk from the source gives every node its distance along edges with room
 * left; then paths are pushed along edges that lead one step further, each edge
 * of a node being given up when it leads nowhere.  When the phase ends, the
 * sink is further away, so there are at most as many phases as nodes (Dinitz,
 * Soviet Math. Dokl. 11, 1970).
 */
#include <config.h>

#include "base/maxflow.h"

enum { NONE = UINT32_MAX };

/* Edges come in twos: number e, and its way back, e ^ 1. */
struct edge {
	uint32_t to, next;       /* next: of the same node */
	int64_t room;
};

struct om_net {
	om_arena *mem;
	uint32_t n;
	struct edge *edge;
	size_t nedge, capedge;
	uint32_t *head;          /* by node: its first edge */
	uint32_t *at;            /* by node: the edge that is tried now */
	uint32_t *distance;      /* by node; NONE: not reached */
	uint32_t *queue;         /* of nodes; then the edges of a path */
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
add_half(om_net *f, uint32_t from, uint32_t to, int64_t room)
{
	const struct edge e = {to, f->head[from], room};

	f->head[from] = (uint32_t)f->nedge;
	OM_PUSH(f->mem, f->edge, f->nedge, f->capedge, e);
}

void
om_net_edge(om_net *f, uint32_t from, uint32_t to, int64_t room)
{
	add_half(f, from, to, room);
	add_half(f, to, from, 0);
}

static bool
measure(om_net *f, uint32_t source, uint32_t sink)
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
			if (x->room == 0 || f->distance[x->to] != NONE)
				continue;
			f->distance[x->to] = f->distance[f->queue[k]] + 1;
			f->queue[n++] = x->to;
		}
	return f->distance[sink] != NONE;
}

/* An edge from `node` that leads one step further; NONE when none is left. */
static uint32_t
way_on(om_net *f, uint32_t node)
{
	uint32_t *at = &f->at[node];

	for (; *at != NONE; *at = f->edge[*at].next) {
		const struct edge *x = &f->edge[*at];
		f->work++;
		if (x->room > 0 && f->distance[x->to] == f->distance[node] + 1)
			break;
	}
	return *at;
}

/* Push as much as goes along the path of `n` edges. */
static void
push(om_net *f, uint32_t n)
{
	int64_t room = INT64_MAX;

	for (uint32_t k = 0; k < n; k++)
		if (f->edge[f->queue[k]].room < room)
			room = f->edge[f->queue[k]].room;
	for (uint32_t k = 0; k < n; k++) {
		f->edge[f->queue[k]].room -= room;
		f->edge[f->queue[k] ^ 1].room += room;
	}
	f->work += n;
}

/* The path up to its first edge without room. */
static uint32_t
open_part(const om_net *f, uint32_t n)
{
	uint32_t k = 0;

	while (k < n && f->edge[f->queue[k]].room > 0)
		k++;
	return k;
}

static void
fill(om_net *f, uint32_t source, uint32_t sink, uint64_t work)
{
	uint32_t node = source, n = 0;

	for (uint32_t k = 0; k < f->n; k++)
		f->at[k] = f->head[k];
	while (f->work <= work) {
		const uint32_t e = node == sink ? NONE : way_on(f, node);
		if (e != NONE) {
			f->queue[n++] = e;
			node = f->edge[e].to;
			continue;
		}
		if (node == sink) {
			push(f, n);
			n = open_part(f, n);
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
	while (measure(f, source, sink)) {
		fill(f, source, sink, work);
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
