/* SPDX-License-Identifier: Apache-2.0 */
/* Strip packing along a skyline.
 *
 * The skyline is a sequence of lines over time, each as high as the buffers below
 * it.  The lowest line is taken; of the buffers that live within its time, the
 * first in the order is placed on it, which splits the line in up to three.  If
 * none fits, the line is raised to the lower of its neighbors and merged with it:
 * the bytes below stay empty.  Each iteration places a buffer or removes a line, so
 * there are O(n) iterations, however many buffers overlap; the overlaps are never
 * enumerated.
 *
 * The first buffer in the order that lives within [from, to) is found in a k-d tree
 * over the points (lower, upper): each node has the bounds of the unplaced buffers
 * below it and the first of these in the order.
 *
 * Idea: Burke, Kendall, Whitwell, "A new placement heuristic for the orthogonal
 * stock-cutting problem", 2004; with fixed times: Sekiyama et al., "Profile-guided
 * memory optimization for deep neural networks", 2018.
 */
#include <config.h>

#include "pack/packer.h"

#define NONE UINT32_MAX
enum { SKYLINE_BUCKET = 8 };

/* ---- Query: the first unplaced buffer that lives within [from, to). ---- */

struct point {
	uint32_t lower, upper;
	uint32_t buf;
	uint32_t rank;          /* position in the order; NONE: it is placed */
};

/* Bounds of the unplaced points below a node. */
struct skyline_node {
	uint32_t max_lower, min_upper;
	uint32_t rank;          /* the first of them */
};

/* An interval of time, up to the start of the line `right`. */
struct line {
	uint32_t start, left, right;
	bool is_dead;
};

/* A line in the heap.  The lowest comes first, of equals the earliest. */
struct entry {
	uint64_t height;
	uint32_t start, line;
};

struct om_skyline {
	const om_component *component;
	om_arena *mem;
	uint64_t grid;          /* every alignment is a multiple of it */
	struct point *point;
	uint32_t n;
	struct skyline_node *node;      /* [1] is the root */
	uint32_t leaves;
	struct line *line;
	uint64_t *height;       /* by line */
	size_t nline, cap_line, cap_height;
	uint32_t spare;
	struct entry *heap;
	size_t nheap, cap_heap;
	uint32_t end;           /* of time */
};

static uint32_t
coordinate(const struct point *p, bool by_upper)
{
	return by_upper ? p->upper : p->lower;
}

/* Partition so that point number `k` by coordinate is at index k, smaller ones
 * before it. */
static void
select_point(struct point *p, uint32_t n, uint32_t k, bool by_upper)
{
	uint32_t from = 0, to = n;

	while (to - from > 1) {
		const uint32_t pivot = coordinate(&p[from + (to - from) / 2], by_upper);
		uint32_t low = from, high = to, at = from;
		while (at < high) {
			const uint32_t x = coordinate(&p[at], by_upper);
			const struct point t = p[at];
			if (x < pivot) {
				p[at++] = p[low];
				p[low++] = t;
			} else if (x > pivot) {
				p[at] = p[--high];
				p[high] = t;
			} else {
				at++;
			}
		}
		if (k < low)
			to = low;
		else if (k >= high)
			from = high;
		else
			return;
	}
}

/* Split by lower and upper in turn, down to buckets.  There may be fewer than `to`
 * points: then the last buckets are empty. */
static void
build_tree(struct om_skyline *s, uint32_t from, uint32_t to, bool by_upper)
{
	const uint32_t half = (to - from) / 2;

	if (to - from <= SKYLINE_BUCKET || from >= s->n)
		return;
	if (from + half < s->n)
		select_point(s->point + from, (to < s->n ? to : s->n) - from, half, by_upper);
	build_tree(s, from, from + half, !by_upper);
	build_tree(s, from + half, to, !by_upper);
}

static uint32_t
min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t
max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static void
update_leaf(struct om_skyline *s, uint32_t leaf)
{
	struct skyline_node *t = &s->node[s->leaves + leaf];
	const uint32_t from = leaf * SKYLINE_BUCKET, to = min_u32(from + SKYLINE_BUCKET, s->n);

	*t = (struct skyline_node){0, NONE, NONE};
	for (uint32_t k = from; k < to; k++) {
		const struct point *p = &s->point[k];
		if (p->rank == NONE)
			continue;
		t->max_lower = max_u32(t->max_lower, p->lower);
		t->min_upper = min_u32(t->min_upper, p->upper);
		t->rank = min_u32(t->rank, p->rank);
	}
}

/* False if the node is unchanged. */
static bool
update_node(struct om_skyline *s, uint32_t at)
{
	const struct skyline_node *a = &s->node[2 * at], *b = a + 1;
	const struct skyline_node sum = {max_u32(a->max_lower, b->max_lower),
		min_u32(a->min_upper, b->min_upper), min_u32(a->rank, b->rank)};
	struct skyline_node *old = &s->node[at];

	if (sum.max_lower == old->max_lower && sum.min_upper == old->min_upper && sum.rank == old->rank)
		return false;
	*old = sum;
	return true;
}

/* The better of `best` and the first point at and below node `at`. Recursion is as
 * deep as the tree is high. */
static uint32_t
find_first(const struct om_skyline *s, uint32_t at, uint32_t from, uint32_t to, uint32_t best,
	uint32_t *index)
{
	const struct skyline_node *t = &s->node[at];

	if (t->rank >= best || t->max_lower < from || t->min_upper > to)
		return best;
	if (at >= s->leaves) {
		const uint32_t first = (at - s->leaves) * SKYLINE_BUCKET;
		for (uint32_t k = first; k < first + SKYLINE_BUCKET && k < s->n; k++) {
			const struct point *p = &s->point[k];
			if (p->rank < best && p->lower >= from && p->upper <= to) {
				best = p->rank;
				*index = k;
			}
		}
		return best;
	}
	const uint32_t second = s->node[2 * at + 1].rank < s->node[2 * at].rank;
	best = find_first(s, 2 * at + second, from, to, best, index);
	return find_first(s, 2 * at + !second, from, to, best, index);
}

static void
remove_point(struct om_skyline *s, uint32_t index)
{
	const uint32_t leaf = index / SKYLINE_BUCKET;

	s->point[index].rank = NONE;
	update_leaf(s, leaf);
	for (uint32_t at = (s->leaves + leaf) / 2; at > 0 && update_node(s, at);)
		at /= 2;
}

/* ---- Lines. ---- */

static bool
is_lower(const struct entry *a, const struct entry *b)
{
	return a->height != b->height ? a->height < b->height : a->start < b->start;
}

static void
push_line(struct om_skyline *s, uint32_t line)
{
	const struct entry e = {s->height[line], s->line[line].start, line};

	OM_PUSH(s->mem, s->heap, s->nheap, s->cap_heap, e);
	size_t k = s->nheap - 1;
	for (; k > 0 && is_lower(&e, &s->heap[(k - 1) / 2]); k = (k - 1) / 2)
		s->heap[k] = s->heap[(k - 1) / 2];
	s->heap[k] = e;
}

static uint32_t
pop_line(struct om_skyline *s)
{
	const uint32_t line = s->heap[0].line;
	const struct entry e = s->heap[--s->nheap];
	size_t k = 0;

	for (size_t child; (child = 2 * k + 1) < s->nheap; k = child) {
		if (child + 1 < s->nheap && is_lower(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!is_lower(&s->heap[child], &e))
			break;
		s->heap[k] = s->heap[child];
	}
	s->heap[k] = e;
	return line;
}

static uint32_t
line_new(struct om_skyline *s, uint32_t start, uint64_t height)
{
	uint32_t k = s->spare;

	if (k != NONE) {
		s->spare = s->line[k].left;
	} else {
		k = (uint32_t)s->nline;
		size_t n = s->nline;
		OM_PUSH(s->mem, s->height, n, s->cap_height, 0);
		OM_PUSH(s->mem, s->line, s->nline, s->cap_line, ((struct line){0}));
	}
	s->line[k] = (struct line){start, NONE, NONE, false};
	s->height[k] = height;
	return k;
}

static void
line_free(struct om_skyline *s, uint32_t k)
{
	s->line[k].left = s->spare;
	s->spare = k;
}

static void
link_lines(struct om_skyline *s, uint32_t left, uint32_t right)
{
	if (left != NONE)
		s->line[left].right = right;
	if (right != NONE)
		s->line[right].left = left;
}

static uint64_t
height_of(const struct om_skyline *s, uint32_t line)
{
	return line == NONE ? UINT64_MAX : s->height[line];
}

static uint32_t
end_of(const struct om_skyline *s, uint32_t line)
{
	return s->line[line].right == NONE ? s->end : s->line[s->line[line].right].start;
}

/* Set the height of a line that is not in the heap, and merge it with neighbors of
 * that height.  These stay in the heap, marked dead, until they are popped. */
static void
set_line_height(struct om_skyline *s, uint32_t line, uint64_t height)
{
	const uint32_t left = s->line[line].left, right = s->line[line].right;

	s->height[line] = height;
	if (height_of(s, right) == height) {
		link_lines(s, line, s->line[right].right);
		s->line[right].is_dead = true;
	}
	if (height_of(s, left) == height) {
		link_lines(s, left, s->line[line].right);
		line_free(s, line);
	} else {
		push_line(s, line);
	}
}

static uint64_t
round_up(uint64_t bytes, uint64_t align)
{
	return align > 1 ? (bytes + align - 1) & ~(align - 1) : bytes;
}

/* Place a buffer on a line that is not in the heap. */
static uint64_t
place_buffer(struct om_skyline *s, uint32_t line, const struct point *p)
{
	om_buffer *b = &s->component->buf[p->buf];
	const uint64_t height = s->height[line];
	const uint32_t end = end_of(s, line);

	b->offset = round_up(height, b->align);
	if (p->upper < end) {
		const uint32_t rest = line_new(s, p->upper, height), right = s->line[line].right;
		link_lines(s, line, rest);
		link_lines(s, rest, right);
		push_line(s, rest);
	}
	if (s->line[line].start < p->lower) {
		const uint32_t middle = line_new(s, p->lower, height), right = s->line[line].right;
		link_lines(s, line, middle);
		link_lines(s, middle, right);
		push_line(s, line);
		line = middle;
	}
	set_line_height(s, line, round_up(b->offset + b->bytes, s->grid));
	return b->offset + b->bytes;
}

static void
raise_line(struct om_skyline *s, uint32_t line)
{
	const uint64_t left = height_of(s, s->line[line].left), right = height_of(s, s->line[line].right);

	set_line_height(s, line, left < right ? left : right);
}

static void
begin_run(struct om_skyline *s, const uint32_t *order, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		s->component->rank[order[k]] = k;
	for (uint32_t k = 0; k < s->n; k++)
		s->point[k].rank = s->component->rank[s->point[k].buf];
	for (uint32_t k = 0; k < s->leaves; k++)
		update_leaf(s, k);
	for (uint32_t k = s->leaves; k-- > 1;)
		update_node(s, k);
	s->nline = s->nheap = 0;
	s->spare = NONE;
	push_line(s, line_new(s, s->component->lifetime[0].lower, 0));
}

uint64_t
om_skyline_run(om_skyline *s, const uint32_t *order, uint32_t n)
{
	uint64_t height = 0;

	begin_run(s, order, n);
	while (n > 0) {
		const uint32_t line = pop_line(s);
		uint32_t index = NONE;
		if (s->line[line].is_dead) {
			line_free(s, line);
			continue;
		}
		find_first(s, 1, s->line[line].start, end_of(s, line), NONE, &index);
		if (index == NONE) {
			raise_line(s, line);
			continue;
		}
		const struct point p = s->point[index];
		remove_point(s, index);
		const uint64_t end = place_buffer(s, line, &p);
		height = end > height ? end : height;
		n--;
	}
	return height;
}

bool
om_skyline_supports(const om_component *component)
{
	if (component->nlifetime != component->nitem)
		return false;
	for (uint32_t k = 0; k < component->nitem; k++) {
		const om_buffer *b = &component->buf[component->item[k]];
		if (b->fixed >= 0 || om_is_partially_live(b))
			return false;
	}
	return true;
}

om_skyline *
om_skyline_new(const om_component *component, om_arena *mem)
{
	om_skyline *s = OM_NEW(mem, om_skyline);
	uint64_t all = UINT64_C(1) << 62;

	*s = (om_skyline){.component = component, .mem = mem, .n = component->nlifetime, .leaves = 1};
	while ((uint64_t)s->leaves * SKYLINE_BUCKET < s->n)
		s->leaves *= 2;
	s->point = OM_NEWN(mem, struct point, s->n);
	s->node = OM_NEWN(mem, struct skyline_node, 2 * (size_t)s->leaves);
	for (uint32_t k = 0; k < s->n; k++) {
		const om_lifetime *p = &component->lifetime[k];
		s->point[k] = (struct point){p->lower, p->upper, p->buf, NONE};
		s->end = max_u32(s->end, p->upper);
		all |= component->buf[p->buf].align ? component->buf[p->buf].align : 1;
	}
	s->grid = all & -all;
	build_tree(s, 0, s->leaves * SKYLINE_BUCKET, false);
	return s;
}
