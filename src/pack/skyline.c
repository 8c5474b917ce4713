/* Strip packing along a skyline.
 *
 * Time is cut into lines, each as high as what lies on it.  The lowest line is
 * taken; of the buffers that live within it, the first in the order is put on
 * it, which splits the line in up to three.  When none fits, the line is lifted
 * to the lower of its neighbours and becomes part of it: what was below stays
 * empty.  Each round places a buffer or removes a line, so there are O(n)
 * rounds, however many buffers overlap; nothing of the size of the overlaps is
 * ever looked at.
 *
 * The first in the order that lives within [from, to) is found in a tree over
 * the points (lower, upper): each node knows the bounds of what is left below
 * it and the first of these in the order.
 *
 * Idea: Burke, Kendall, Whitwell, "A new placement heuristic for the orthogonal
 * stock-cutting problem", 2004; with fixed times: Sekiyama et al., "Profile-guided
 * memory optimization for deep neural networks", 2018.
 */
#include <config.h>

#include "pack/packer.h"

enum { BUCKET = 8, NONE = UINT32_MAX };

/* ---- Who lives within [from, to)? ---- */

struct point {
	uint32_t lower, upper;
	uint32_t buf;
	uint32_t rank;          /* place in the order; NONE: it is placed */
};

/* Bounds of what is not placed below a node. */
struct node {
	uint32_t max_lower, min_upper;
	uint32_t rank;          /* the first of them */
};

/* A stretch of time, up to the start of the line `right`. */
struct line {
	uint32_t start, left, right;
	bool is_dead;
};

/* A line that waits.  The lowest comes first, of equals the earliest. */
struct entry {
	uint64_t height;
	uint32_t start, line;
};

struct om_skyline {
	const om_component *part;
	om_arena *mem;
	uint64_t grid;          /* every alignment is a multiple of it */
	struct point *point;
	uint32_t n;
	struct node *node;      /* [1] is the root */
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

/* The point that is number `k` by coordinate goes there, smaller ones before it. */
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

/* Cut by lower and upper in turn, down to buckets.  There may be less than
 * `to` points: then the last buckets are empty. */
static void
arrange(struct om_skyline *s, uint32_t from, uint32_t to, bool by_upper)
{
	const uint32_t half = (to - from) / 2;

	if (to - from <= BUCKET || from >= s->n)
		return;
	if (from + half < s->n)
		select_point(s->point + from, (to < s->n ? to : s->n) - from, half, by_upper);
	arrange(s, from, from + half, !by_upper);
	arrange(s, from + half, to, !by_upper);
}

static uint32_t
smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t
larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static void
sum_up_leaf(struct om_skyline *s, uint32_t leaf)
{
	struct node *t = &s->node[s->leaves + leaf];
	const uint32_t from = leaf * BUCKET, to = smaller(from + BUCKET, s->n);

	*t = (struct node){0, NONE, NONE};
	for (uint32_t k = from; k < to; k++) {
		const struct point *p = &s->point[k];
		if (p->rank == NONE)
			continue;
		t->max_lower = larger(t->max_lower, p->lower);
		t->min_upper = smaller(t->min_upper, p->upper);
		t->rank = smaller(t->rank, p->rank);
	}
}

/* False when that changes nothing. */
static bool
sum_up(struct om_skyline *s, uint32_t at)
{
	const struct node *a = &s->node[2 * at], *b = a + 1;
	const struct node sum = {larger(a->max_lower, b->max_lower),
		smaller(a->min_upper, b->min_upper), smaller(a->rank, b->rank)};
	struct node *old = &s->node[at];

	if (sum.max_lower == old->max_lower && sum.min_upper == old->min_upper && sum.rank == old->rank)
		return false;
	*old = sum;
	return true;
}

/* The better of `best` and what is found at and below node `at`.  As deep as
 * the tree is high. */
static uint32_t
find_below(const struct om_skyline *s, uint32_t at, uint32_t from, uint32_t to, uint32_t best,
	uint32_t *where)
{
	const struct node *t = &s->node[at];

	if (t->rank >= best || t->max_lower < from || t->min_upper > to)
		return best;
	if (at >= s->leaves) {
		const uint32_t first = (at - s->leaves) * BUCKET;
		for (uint32_t k = first; k < first + BUCKET && k < s->n; k++) {
			const struct point *p = &s->point[k];
			if (p->rank < best && p->lower >= from && p->upper <= to) {
				best = p->rank;
				*where = k;
			}
		}
		return best;
	}
	const uint32_t second = s->node[2 * at + 1].rank < s->node[2 * at].rank;
	best = find_below(s, 2 * at + second, from, to, best, where);
	return find_below(s, 2 * at + !second, from, to, best, where);
}

static void
take_out(struct om_skyline *s, uint32_t where)
{
	const uint32_t leaf = where / BUCKET;

	s->point[where].rank = NONE;
	sum_up_leaf(s, leaf);
	for (uint32_t at = (s->leaves + leaf) / 2; at > 0 && sum_up(s, at);)
		at /= 2;
}

/* ---- Lines. ---- */

static bool
comes_before(const struct entry *a, const struct entry *b)
{
	return a->height != b->height ? a->height < b->height : a->start < b->start;
}

static void
push(struct om_skyline *s, uint32_t line)
{
	const struct entry e = {s->height[line], s->line[line].start, line};

	OM_PUSH(s->mem, s->heap, s->nheap, s->cap_heap, e);
	size_t k = s->nheap - 1;
	for (; k > 0 && comes_before(&e, &s->heap[(k - 1) / 2]); k = (k - 1) / 2)
		s->heap[k] = s->heap[(k - 1) / 2];
	s->heap[k] = e;
}

static uint32_t
pop(struct om_skyline *s)
{
	const uint32_t line = s->heap[0].line;
	const struct entry e = s->heap[--s->nheap];
	size_t k = 0;

	for (size_t child; (child = 2 * k + 1) < s->nheap; k = child) {
		if (child + 1 < s->nheap && comes_before(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!comes_before(&s->heap[child], &e))
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

/* A line that has left the heap gets this height; it becomes one with
 * neighbours that have it too.  These stay in the heap, dead, until their turn. */
static void
raise(struct om_skyline *s, uint32_t line, uint64_t height)
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
		push(s, line);
	}
}

static uint64_t
rounded(uint64_t bytes, uint64_t align)
{
	return align > 1 ? (bytes + align - 1) & ~(align - 1) : bytes;
}

/* Puts a buffer on a line that has left the heap. */
static uint64_t
put(struct om_skyline *s, uint32_t line, const struct point *p)
{
	om_buffer *b = &s->part->buf[p->buf];
	const uint64_t height = s->height[line];
	const uint32_t end = end_of(s, line);

	b->offset = rounded(height, b->align);
	if (p->upper < end) {
		const uint32_t rest = line_new(s, p->upper, height), right = s->line[line].right;
		link_lines(s, line, rest);
		link_lines(s, rest, right);
		push(s, rest);
	}
	if (s->line[line].start < p->lower) {
		const uint32_t middle = line_new(s, p->lower, height), right = s->line[line].right;
		link_lines(s, line, middle);
		link_lines(s, middle, right);
		push(s, line);
		line = middle;
	}
	raise(s, line, rounded(b->offset + b->bytes, s->grid));
	return b->offset + b->bytes;
}

static void
lift(struct om_skyline *s, uint32_t line)
{
	const uint64_t left = height_of(s, s->line[line].left), right = height_of(s, s->line[line].right);

	raise(s, line, left < right ? left : right);
}

static void
begin(struct om_skyline *s, const uint32_t *order, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		s->part->rank[order[k]] = k;
	for (uint32_t k = 0; k < s->n; k++)
		s->point[k].rank = s->part->rank[s->point[k].buf];
	for (uint32_t k = 0; k < s->leaves; k++)
		sum_up_leaf(s, k);
	for (uint32_t k = s->leaves; k-- > 1;)
		sum_up(s, k);
	s->nline = s->nheap = 0;
	s->spare = NONE;
	push(s, line_new(s, s->part->piece[0].lower, 0));
}

uint64_t
om_skyline_run(om_skyline *s, const uint32_t *order, uint32_t n)
{
	uint64_t height = 0;

	begin(s, order, n);
	while (n > 0) {
		const uint32_t line = pop(s);
		uint32_t where = NONE;
		if (s->line[line].is_dead) {
			line_free(s, line);
			continue;
		}
		find_below(s, 1, s->line[line].start, end_of(s, line), NONE, &where);
		if (where == NONE) {
			lift(s, line);
			continue;
		}
		const struct point p = s->point[where];
		take_out(s, where);
		const uint64_t end = put(s, line, &p);
		height = end > height ? end : height;
		n--;
	}
	return height;
}

bool
om_skyline_serves(const om_component *part)
{
	if (part->npiece != part->nitem)
		return false;
	for (uint32_t k = 0; k < part->nitem; k++) {
		const om_buffer *b = &part->buf[part->item[k]];
		if (b->fixed >= 0 || om_is_shaped(b))
			return false;
	}
	return true;
}

om_skyline *
om_skyline_new(const om_component *part, om_arena *mem)
{
	om_skyline *s = OM_NEW(mem, om_skyline);
	uint64_t all = UINT64_C(1) << 62;

	*s = (om_skyline){.part = part, .mem = mem, .n = part->npiece, .leaves = 1};
	while ((uint64_t)s->leaves * BUCKET < s->n)
		s->leaves *= 2;
	s->point = OM_NEWN(mem, struct point, s->n);
	s->node = OM_NEWN(mem, struct node, 2 * (size_t)s->leaves);
	for (uint32_t k = 0; k < s->n; k++) {
		const om_component_part *p = &part->piece[k];
		s->point[k] = (struct point){p->lower, p->upper, p->buf, NONE};
		s->end = larger(s->end, p->upper);
		all |= part->buf[p->buf].align ? part->buf[p->buf].align : 1;
	}
	s->grid = all & -all;
	arrange(s, 0, s->leaves * BUCKET, false);
	return s;
}
