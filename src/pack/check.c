/* SPDX-License-Identifier: Apache-2.0 */
/* Is a packing valid?  The code is independent of the packer on purpose: a sweep
 * over time that keeps the occupied ranges sorted by offset in a balanced tree (a
 * treap whose priorities are derived from the index, so runs repeat). Every
 * interval of every buffer is such a range: it is inserted at its first step and
 * removed after its last. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>

#include "base/guard.h"
#include "onnxmem/pack.h"

#define NONE UINT32_MAX

struct check_event {
	uint32_t step, node;
	bool is_birth;
};

/* An interval of a buffer, and the bytes of the arena that it occupies. */
struct range_node {
	uint32_t left, right;
	uint32_t priority;
	uint32_t buf;
	uint64_t offset, end;
};

struct range_tree {
	struct range_node *node;
	uint32_t root;
};

static int
compare_step(const void *a, const void *b)
{
	const struct check_event *x = a, *y = b;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->is_birth != y->is_birth)
		return x->is_birth ? 1 : -1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static uint32_t
scramble(uint32_t x)
{
	x = (x ^ x >> 16) * 0x45d9f3bu;
	x = (x ^ x >> 16) * 0x45d9f3bu;
	return x ^ x >> 16;
}

/* Nodes that start below `offset` go to `left`, the others to `right`. */
static void
split(struct range_tree *s, uint32_t t, uint64_t offset, uint32_t *left, uint32_t *right)
{
	while (t != NONE)
		if (s->node[t].offset < offset) {
			*left = t;
			left = &s->node[t].right;
			t = *left;
		} else {
			*right = t;
			right = &s->node[t].left;
			t = *right;
		}
	*left = *right = NONE;
}

static uint32_t
join(struct range_tree *s, uint32_t a, uint32_t b)
{
	uint32_t root = NONE, *at = &root;

	while (a != NONE && b != NONE)
		if (s->node[a].priority > s->node[b].priority) {
			*at = a;
			at = &s->node[a].right;
			a = *at;
		} else {
			*at = b;
			at = &s->node[b].left;
			b = *at;
		}
	*at = a != NONE ? a : b;
	return root;
}

/* Insert the range of node `k`; returns a node that overlaps it, or NONE. */
static uint32_t
insert(struct range_tree *s, uint32_t k)
{
	struct range_node *it = &s->node[k];
	uint32_t below, above, low, high;

	split(s, s->root, it->offset, &below, &above);
	for (low = below; low != NONE && s->node[low].right != NONE;)
		low = s->node[low].right;
	for (high = above; high != NONE && s->node[high].left != NONE;)
		high = s->node[high].left;
	it->left = it->right = NONE;
	s->root = join(s, join(s, below, k), above);
	if (low != NONE && s->node[low].end > it->offset)
		return low;
	if (high != NONE && it->end > s->node[high].offset)
		return high;
	return NONE;
}

static void
remove_node(struct range_tree *s, uint32_t k)
{
	uint32_t below, it, above;

	split(s, s->root, s->node[k].offset, &below, &above);
	split(s, above, s->node[k].offset + 1, &it, &above);
	s->root = join(s, below, above);
}

static const char *
name_of(om_arena *mem, const om_buffer *buf, uint32_t k)
{
	return buf[k].name ? buf[k].name : om_printf(mem, "buffer %" PRIu32, k);
}

static om_status
check_buffer(om_session *s, om_arena *mem, const om_buffer *buf, uint32_t k, uint64_t height)
{
	const om_buffer *b = &buf[k];

	if (b->align > 1 && b->offset % b->align)
		return om_fail(s, OM_BADPLAN, "%s is at offset %" PRIu64 ", which is not a multiple of %" PRIu64,
			name_of(mem, buf, k), b->offset, b->align);
	if (b->fixed >= 0 && b->offset != (uint64_t)b->fixed)
		return om_fail(s, OM_BADPLAN, "%s is at offset %" PRIu64 ", but is fixed at %" PRId64,
			name_of(mem, buf, k), b->offset, b->fixed);
	if (b->bytes && (b->bytes > height || b->offset > height - b->bytes))
		return om_fail(s, OM_BADPLAN, "%s has %" PRIu64 " bytes at offset %" PRIu64
			" and ends above the height %" PRIu64, name_of(mem, buf, k), b->bytes, b->offset, height);
	return OM_OK;
}

/* Nodes for all intervals, and the events that insert and remove them. */
static size_t
list_events(struct range_tree *w, struct check_event *e, const om_buffer *buf, uint32_t n)
{
	uint32_t node = 0;
	size_t ne = 0;

	for (uint32_t k = 0; k < n; k++)
		for (uint32_t j = 0; j < buf[k].nlive && buf[k].bytes; j++, node++) {
			const om_interval *i = &buf[k].live[j];
			w->node[node] = (struct range_node){.buf = k, .priority = scramble(node),
				.offset = buf[k].offset + i->from,
				.end = buf[k].offset + (i->to ? i->to : buf[k].bytes)};
			e[ne++] = (struct check_event){i->lower, node, true};
			e[ne++] = (struct check_event){i->upper, node, false};
		}
	qsort(e, ne, sizeof *e, compare_step);
	return ne;
}

static om_status
fail_overlap(om_session *s, om_arena *mem, const om_buffer *buf, uint32_t a, uint32_t b, uint32_t step)
{
	if (a == b)
		return om_fail(s, OM_BADPLAN, "%s uses some of its bytes twice at step %" PRIu32,
			name_of(mem, buf, a), step);
	return om_fail(s, OM_BADPLAN, "%s at %" PRIu64 " and %s at %" PRIu64
		" overlap at step %" PRIu32, name_of(mem, buf, a), buf[a].offset,
		name_of(mem, buf, b), buf[b].offset, step);
}

static om_status
check_pairs(om_session *s, om_arena *mem, const om_buffer *buf, uint32_t n)
{
	struct range_tree w = {.root = NONE};
	size_t m = 0;

	for (uint32_t k = 0; k < n; k++)
		m += buf[k].nlive;
	w.node = OM_NEWN(mem, struct range_node, m);
	struct check_event *e = OM_NEWN(mem, struct check_event, 2 * m);
	const size_t ne = list_events(&w, e, buf, n);
	for (size_t i = 0; i < ne; i++) {
		if (!e[i].is_birth) {
			remove_node(&w, e[i].node);
			continue;
		}
		const uint32_t other = insert(&w, e[i].node);
		if (other != NONE)
			return fail_overlap(s, mem, buf, w.node[other].buf, w.node[e[i].node].buf, e[i].step);
	}
	return OM_OK;
}

static om_status
pack_check_guarded(om_session *s, const om_buffer *buf, uint32_t n, uint64_t height)
{
	om_arena *mem = om_arena_new();
	om_status st = OM_OK;

	for (uint32_t k = 0; k < n && st == OM_OK; k++)
		st = check_buffer(s, mem, buf, k, height);
	if (st == OM_OK)
		st = check_pairs(s, mem, buf, n);
	om_arena_free(mem);
	return st;
}

om_status
om_pack_check(om_session *s, const om_buffer *buf, uint32_t n, uint64_t height)
{
	OM_GUARDED(s, pack_check_guarded(s, buf, n, height));
}
