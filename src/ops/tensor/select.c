/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose output size depends on the values of the elements. */
#include <config.h>

#include <math.h>
#include <stdlib.h>

#include "ops/family.h"
#include "base/half.h"
#include "base/shape.h"
#include "ir/query.h"
#include "opdef/columns.h"
#include "opdef/op_context.h"
#include "ops/tensor/index.h"

/* ---- NonZero. ---- */

static om_status
non_zero_infer(om_op_context *c)
{
	const int rank = c->in[0].shape.rank;

	c->out[0].type = OM_INT64;
	c->out[0].shape = om_shape_open(2);
	if (rank >= 0)
		c->out[0].shape.dim[0] = rank;  /* a scalar has no indices: the standard requires 0 x n */
	return OM_OK;
}

static void
non_zero_most(const om_op_context *c, uint32_t out, om_shape *most)
{
	int64_t n = 1;

	(void)out;
	for (int d = 0; d < c->in[0].shape.rank; d++)
		if (c->in[0].shape.dim[d] < 0 || __builtin_mul_overflow(n, c->in[0].shape.dim[d], &n))
			return;
	if (c->in[0].shape.rank >= 0)
		most->dim[1] = n;
}

static bool
is_set(const om_tensor *t, int64_t k, size_t size)
{
	static const char zero[16];
	const char *e = (const char *)t->data + (size_t)k * size;

	switch (t->type) {
	case OM_FLOAT32: return *(const float *)e != 0;
	case OM_FLOAT64: return *(const double *)e != 0;
	case OM_FLOAT16: case OM_BFLOAT16: return *(const uint16_t *)e & 0x7fff;
	case OM_COMPLEX64: return ((const float *)e)[0] != 0 || ((const float *)e)[1] != 0;
	case OM_COMPLEX128: return ((const double *)e)[0] != 0 || ((const double *)e)[1] != 0;
	case OM_STRING: return ((const om_string *)e)->size != 0;
	default: return memcmp(e, zero, size) != 0;
	}
}

static om_status
non_zero_cpu(om_op_context *c)
{
	const om_tensor *in = &c->in[0];
	const int rank = in->shape.rank;
	const int64_t count = om_shape_count(&in->shape);
	int64_t n = 0, at = 0, place[OM_MAX_RANK] = {0};
	size_t size;

	OM_TRY(om_elem_bytes(c, in->type, &size));
	for (int64_t k = 0; k < count; k++)
		n += is_set(in, k, size);
	const om_shape shape = om_shape_of(2, (int64_t[]){rank, n});
	OM_TRY(c->alloc(c, 0, &shape));
	int64_t *to = c->out[0].data;
	for (int64_t k = 0; k < count; k++, om_next_place(&in->shape, place)) {
		if (!is_set(in, k, size))
			continue;
		for (int d = 0; d < rank; d++)
			to[d * n + at] = place[d];
		at++;
	}
	return OM_OK;
}

/* ---- NonMaxSuppression. ----
 *
 * The boxes of a class are taken in the order of their scores, from a heap that is no longer emptied when there are enough.  A box
 * that is picked suppresses those that overlap it.  They lie side by side in the order of their left sides, each coordinate in an
 * array of its own: those that reach a picked box along x are one range, whose elements are compared without branches.  Boxes of
 * several classes or images that the model moved apart, to suppress them together, meet in short ranges. */

struct box {
	float x0, x1, y0, y1;
	int64_t index;
};

struct candidate {
	float score;
	int64_t index, at;  /* `at`: its place along x; NOWHERE: without area, it overlaps none */
};

enum { NOWHERE = -1 };

struct picked {
	int64_t *v;       /* batch, class, box */
	int64_t n;
};

static om_status
suppression_infer(om_op_context *c)
{
	c->out[0].type = OM_INT64;
	c->out[0].shape = om_shape_of(2, (int64_t[]){OM_DIM_UNKNOWN, 3});
	for (uint32_t k = 0; k < 2; k++)
		if (c->in[k].shape.rank >= 0 && c->in[k].shape.rank != 3)
			return om_op_fail(c->session, OM_SHAPE, c->op, "%s have rank %d, expected 3",
				k ? "scores" : "boxes", c->in[k].shape.rank);
	return OM_OK;
}

/* At most the requested number of boxes, of each class of each image. */
static void
suppression_most(const om_op_context *c, uint32_t out, om_shape *most)
{
	const om_shape *boxes = &c->in[0].shape, *scores = &c->in[1].shape;
	int64_t *requested, n;
	size_t one;

	(void)out;
	if (boxes->rank != 3 || scores->rank != 3 || boxes->dim[1] < 0 || scores->dim[0] < 0 || scores->dim[1] < 0)
		return;
	n = boxes->dim[1];
	if (om_in_ints(c, 2, &requested, &one) && one == 1 && *requested < n)
		n = *requested > 0 ? *requested : 0;
	if (!__builtin_mul_overflow(n, scores->dim[0], &n) && !__builtin_mul_overflow(n, scores->dim[1], &n))
		most->dim[0] = n;
}

static struct box
box_of(const float *b, bool by_center, int64_t index)
{
	if (by_center)
		return (struct box){b[0] - b[2] / 2, b[0] + b[2] / 2, b[1] - b[3] / 2, b[1] + b[3] / 2, index};
	return (struct box){fminf(b[1], b[3]), fmaxf(b[1], b[3]), fminf(b[0], b[2]), fmaxf(b[0], b[2]), index};
}

static float
area_of(const struct box *b)
{
	return (b->x1 - b->x0) * (b->y1 - b->y0);
}

/* False, too, if a coordinate is NaN. */
static bool
has_area(const struct box *b)
{
	return b->x0 < b->x1 && b->y0 < b->y1 && area_of(b) > 0;
}

/* Those without an area come last. */
static int
by_left(const void *x, const void *y)
{
	const struct box *a = x, *b = y;

	if (has_area(a) != has_area(b))
		return has_area(a) ? -1 : 1;
	if (has_area(a) && a->x0 != b->x0)
		return a->x0 < b->x0 ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static bool
is_better(const struct candidate *a, const struct candidate *b)
{
	return a->score != b->score ? a->score > b->score : a->index < b->index;
}

/* Sift heap[at] down until no child is better. */
static void
sink(struct candidate *heap, int64_t n, int64_t at)
{
	const struct candidate e = heap[at];

	for (int64_t child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && is_better(&heap[child + 1], &heap[child]))
			child++;
		if (!is_better(&heap[child], &e))
			break;
		heap[at] = heap[child];
	}
	heap[at] = e;
}

struct suppression_attrs {
	int64_t center_point_box;
};

static const om_attr_field suppression_fields[] = {OM_FIELD(struct suppression_attrs, INT, center_point_box), {0}};

struct suppression {
	int64_t batches, classes, boxes, most;
	float overlap, score;
	bool has_score, by_center;
};

static om_status
suppression_of(const om_op_context *c, struct suppression *s)
{
	const om_shape *boxes = &c->in[0].shape, *scores = &c->in[1].shape;
	double most = 0, part = 0, score = 0;

	if (c->in[0].type != OM_FLOAT32 || c->in[1].type != OM_FLOAT32)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op,
			"no kernel for %s", om_dtype_text(c->in[0].type));
	if (boxes->dim[2] != 4 || boxes->dim[0] != scores->dim[0] || boxes->dim[1] != scores->dim[2])
		return om_op_fail(c->session, OM_RUN, c->op, "the shapes of boxes and scores do not match");
	om_in_scalar(c, 2, &most);
	om_in_scalar(c, 3, &part);
	*s = (struct suppression){
		.batches = boxes->dim[0], .classes = scores->dim[1], .boxes = boxes->dim[1],
		.most = most > 0 ? most < 0x1p62 ? (int64_t)most : INT64_MAX : 0,
		.overlap = (float)part,
		.has_score = om_in_scalar(c, 4, &score),
		.by_center = ((const struct suppression_attrs *)c->state)->center_point_box,
	};
	s->score = (float)score;
	if (!(part >= 0 && part <= 1))
		return om_op_fail(c->session, OM_RUN, c->op,
			"iou_threshold is %g, expected a number in [0, 1]", part);
	return OM_OK;
}

/* What a call works with: the boxes of an image by their left sides, and those of a class. */
struct suppressed {
	struct box *all;
	struct candidate *heap;
	float *x0, *x1, *y0, *y1, *area;      /* of boxes that have one, in that order */
	float *reach;                         /* the largest x1 so far */
	int32_t *is_out;                      /* of each of them */
	int64_t n, candidates;
};

static void
add_box(struct suppressed *w, const struct box *b)
{
	const int64_t k = w->n++;

	w->x0[k] = b->x0;
	w->x1[k] = b->x1;
	w->y0[k] = b->y0;
	w->y1[k] = b->y1;
	w->area[k] = area_of(b);
	w->reach[k] = k && w->reach[k - 1] > b->x1 ? w->reach[k - 1] : b->x1;
	w->is_out[k] = 0;
}

/* The candidates of a class, as a heap. */
static void
take_class(const struct suppression *s, struct suppressed *w, const float *score)
{
	w->n = w->candidates = 0;
	for (int64_t k = 0; k < s->boxes; k++) {
		const struct box *b = &w->all[k];
		if (s->has_score && !(score[b->index] > s->score))
			continue;
		w->heap[w->candidates++] = (struct candidate){score[b->index], b->index, has_area(b) ? w->n : NOWHERE};
		if (has_area(b))
			add_box(w, b);
	}
	for (int64_t k = w->candidates / 2; k-- > 0; )
		sink(w->heap, w->candidates, k);
}

/* The first of `n` ascending numbers that exceeds x, or is not less than x. */
static int64_t
first_above(const float *v, int64_t n, float x, bool exceeds)
{
	int64_t low = 0;

	while (low < n) {
		const int64_t mid = low + (n - low) / 2;
		if (exceeds ? v[mid] > x : v[mid] >= x)
			n = mid;
		else
			low = mid + 1;
	}
	return low;
}

#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define MOST(a, b)  ((a) > (b) ? (a) : (b))

/* The boxes whose intersection over union with box `at` exceeds `most` are out. */
static void
suppress_others(struct suppressed *w, int64_t at, float most)
{
	const float left = w->x0[at], right = w->x1[at], top = w->y0[at], bottom = w->y1[at], area = w->area[at];
	const float *restrict x0 = w->x0, *restrict x1 = w->x1, *restrict y0 = w->y0, *restrict y1 = w->y1;
	const float *restrict areas = w->area;
	int32_t *restrict is_out = w->is_out;
	const int64_t end = first_above(x0, w->n, right, false);

	for (int64_t k = first_above(w->reach, w->n, left, true); k < end; k++) {
		const float across = LEAST(right, x1[k]) - MOST(left, x0[k]), down = LEAST(bottom, y1[k]) - MOST(top, y0[k]);
		const float both = across * down, either = area + areas[k] - both;
		is_out[k] |= (across > 0) & (down > 0) & (either > 0) & (both / either > most);
	}
}

/* The boxes of one class, best first; a box that overlaps a better one is suppressed. */
static void
suppress(const struct suppression *s, struct suppressed *w, int64_t batch, int64_t class, struct picked *p)
{
	const int64_t first = p->n;

	while (w->candidates > 0 && p->n - first < s->most) {
		const struct candidate best = w->heap[0];
		w->heap[0] = w->heap[--w->candidates];
		sink(w->heap, w->candidates, 0);
		if (best.at != NOWHERE && w->is_out[best.at])
			continue;
		memcpy(&p->v[3 * p->n++], (int64_t[]){batch, class, best.index}, 3 * sizeof *p->v);
		if (best.at != NOWHERE)
			suppress_others(w, best.at, s->overlap);
	}
}

static om_status
out_of_memory(const om_op_context *c)
{
	return om_op_fail(c->session, OM_MEMORY, c->op, "cannot allocate the workspace");
}

/* The largest number of boxes that can be selected, as a list of triples. */
static om_status
suppression_room(const om_op_context *c, const struct suppression *s, struct picked *p)
{
	const int64_t each = s->most < s->boxes ? s->most : s->boxes;
	uint64_t bytes;
	const om_shape most = om_shape_of(4, (int64_t[]){s->batches, s->classes, each, 3});

	p->n = 0;
	p->v = om_tensor_bytes(OM_INT64, &most, &bytes) ? malloc(bytes + 1) : NULL;
	return p->v ? OM_OK : out_of_memory(c);
}

static om_status
suppression_run(om_op_context *c, const struct suppression *s, struct suppressed *w, struct picked *p)
{
	const float *boxes = c->in[0].data, *scores = c->in[1].data;

	for (int64_t b = 0; b < s->batches; b++) {
		for (int64_t k = 0; k < s->boxes; k++)
			w->all[k] = box_of(boxes + 4 * (b * s->boxes + k), s->by_center, k);
		qsort(w->all, (size_t)s->boxes, sizeof *w->all, by_left);
		for (int64_t class = 0; class < s->classes; class++) {
			take_class(s, w, scores + (b * s->classes + class) * s->boxes);
			suppress(s, w, b, class, p);
		}
	}
	const om_shape shape = om_shape_of(2, (int64_t[]){p->n, 3});
	OM_TRY(c->alloc(c, 0, &shape));
	memcpy(c->out[0].data, p->v, (size_t)p->n * 3 * sizeof *p->v);
	return OM_OK;
}

/* Workspace in one piece, which begins with the boxes; `all` is NULL if there is not enough memory. */
static struct suppressed
suppression_workspace(size_t n)
{
	struct suppressed w = {.all = malloc(n * (sizeof *w.all + sizeof *w.heap + 6 * sizeof *w.x0 + sizeof *w.is_out) + 1)};

	if (!w.all)
		return w;
	w.heap = (struct candidate *)(w.all + n);
	w.x0 = (float *)(w.heap + n);
	w.x1 = w.x0 + n;
	w.y0 = w.x1 + n;
	w.y1 = w.y0 + n;
	w.area = w.y1 + n;
	w.reach = w.area + n;
	w.is_out = (int32_t *)(w.reach + n);
	return w;
}

/* Each box that is picked is compared with those that it may overlap: at most with all, by some ten operations. */
static void
suppression_cost(const om_op_context *c, om_cost *cost)
{
	const om_shape *scores = &c->in[1].shape;

	cost->flops = 5 * (double)om_shape_count(scores) * (double)scores->dim[2];
}

static om_status
suppression_cpu(om_op_context *c)
{
	struct suppression s = {0};
	struct picked p;

	OM_TRY(suppression_of(c, &s));
	OM_TRY(suppression_room(c, &s, &p));
	struct suppressed w = suppression_workspace((size_t)s.boxes);
	const om_status st = w.all ? suppression_run(c, &s, &w, &p) : out_of_memory(c);
	free(w.all);
	free(p.v);
	return st;
}

/* ---- Unique. ---- */

static int
order_strings(const om_string *a, const om_string *b)
{
	const size_t n = a->size < b->size ? a->size : b->size;
	const int d = n ? memcmp(a->data, b->data, n) : 0;

	return d ? d : a->size < b->size ? -1 : a->size > b->size;
}

#define ORDER(x, y) ((x) < (y) ? -1 : (x) > (y))
#define ORDER_AS(type) ORDER(*(const type *)a, *(const type *)b)

/* NaN sorts last, and all NaNs are equal. */
static int
order_reals(double a, double b)
{
	return isnan(a) || isnan(b) ? ORDER(isnan(a) != 0, isnan(b) != 0) : ORDER(a, b);
}

static int
order_pairs(double re, double other_re, double im, double other_im)
{
	const int d = order_reals(re, other_re);

	return d ? d : order_reals(im, other_im);
}

static int
order(om_dtype t, const void *a, const void *b)
{
	const float *f = a, *g = b;
	const double *x = a, *y = b;

	switch (t) {
	case OM_FLOAT32: return order_reals(*f, *g);
	case OM_FLOAT64: return order_reals(*x, *y);
	case OM_FLOAT16: return order_reals(om_half_to_float(*(const uint16_t *)a), om_half_to_float(*(const uint16_t *)b));
	case OM_BFLOAT16: return order_reals(om_bfloat_to_float(*(const uint16_t *)a), om_bfloat_to_float(*(const uint16_t *)b));
	case OM_COMPLEX64: return order_pairs(f[0], g[0], f[1], g[1]);
	case OM_COMPLEX128: return order_pairs(x[0], y[0], x[1], y[1]);
	case OM_INT64: return ORDER_AS(int64_t);
	case OM_INT32: return ORDER_AS(int32_t);
	case OM_INT16: return ORDER_AS(int16_t);
	case OM_INT8: return ORDER_AS(int8_t);
	case OM_UINT64: return ORDER_AS(uint64_t);
	case OM_UINT32: return ORDER_AS(uint32_t);
	case OM_UINT16: return ORDER_AS(uint16_t);
	case OM_STRING: return order_strings(a, b);
	default: return ORDER_AS(uint8_t);
	}
}

/* The input as `n` items to compare: elements, or slices along an axis. */
struct things {
	const om_tensor *in;
	size_t size;              /* bytes of an element */
	int64_t n, outer, inner;  /* element (o, k, i) is at (o * n + k) * inner + i */
	int axis;                 /* -1: elements of the flattened input */
	bool is_sorted;           /* else in the order in which they appear */
};

struct thing {
	const struct things *all;
	int64_t index;            /* of the first equal item, after grouping */
};

static int
compare(const struct things *t, int64_t a, int64_t b)
{
	for (int64_t o = 0; o < t->outer; o++)
		for (int64_t i = 0; i < t->inner; i++) {
			const char *data = t->in->data;
			const int d = order(t->in->type, data + (size_t)((o * t->n + a) * t->inner + i) * t->size,
				data + (size_t)((o * t->n + b) * t->inner + i) * t->size);
			if (d)
				return d;
		}
	return 0;
}

static int
by_content(const void *x, const void *y)
{
	const struct thing *a = x, *b = y;
	const int d = compare(a->all, a->index, b->index);

	return d ? d : ORDER(a->index, b->index);
}

static om_status
unique_infer(om_op_context *c)
{
	const om_shape *in = &c->in[0].shape;
	int axis;

	c->out[0].type = c->in[0].type;
	c->out[0].shape = om_shape_open(1);
	for (uint32_t k = 1; k < c->op->nout; k++) {
		c->out[k].type = OM_INT64;
		c->out[k].shape = om_shape_open(1);
	}
	om_shape *group = c->op->nout > 2 ? &c->out[2].shape : NULL;  /* of every item */
	if (!om_attr_has(c->op, "axis")) {
		if (group && in->rank >= 0 && !om_dim_product(in, 0, in->rank, &group->dim[0], &group->sym[0]))
			group->dim[0] = OM_DIM_UNKNOWN;
		return OM_OK;
	}
	c->out[0].shape = om_shape_unknown();
	if (in->rank < 0)
		return OM_OK;
	OM_TRY(om_attr_axis(c, "axis", in->rank, &axis));
	if (group) {
		group->dim[0] = in->dim[axis];
		group->sym[0] = in->sym[axis];
	}
	c->out[0].shape = *in;
	c->out[0].shape.dim[axis] = OM_DIM_UNKNOWN;
	c->out[0].shape.sym[axis] = NULL;
	return OM_OK;
}

/* All items may be different. */
static void
unique_most(const om_op_context *c, uint32_t out, om_shape *most)
{
	const om_shape *in = &c->in[0].shape;
	const char *sym;
	int64_t n;
	int axis = 0;

	if (in->rank < 0 || !om_dim_product(in, 0, in->rank, &n, &sym))
		return;
	if (om_attr_has(c->op, "axis") && om_axis(om_attr_int(c->op, "axis"), in->rank, &axis)) {
		if (out == 0)
			*most = *in;
		n = in->dim[axis];
	}
	most->dim[out == 0 ? axis : 0] = n;
}

static om_status
unique_prepare(om_op_context *c, void **state)
{
	const om_shape *in = &c->in[0].shape;
	struct things *t = *state;

	*t = (struct things){.in = &c->in[0], .n = om_shape_count(in), .outer = 1, .inner = 1, .axis = -1,
		.is_sorted = om_attr_int(c->op, "sorted") != 0};
	OM_TRY(om_elem_bytes(c, c->in[0].type, &t->size));
	if (!om_attr_has(c->op, "axis"))
		return OM_OK;
	OM_TRY(om_attr_axis(c, "axis", in->rank, &t->axis));
	t->n = in->dim[t->axis];
	t->outer = om_shape_span(in, 0, t->axis);
	t->inner = om_shape_span(in, t->axis + 1, in->rank);
	return OM_OK;
}

/* Groups of equal items, after sorting: first[g] and the count[g] of its items; group[k] is the
 * group of item k. */
struct groups {
	int64_t n, *first, *count, *group;
};

static void
renumber(struct groups *g, int64_t nthing)
{
	int64_t *place = g->count + nthing, seen = 0;

	/* In order of first appearance. */
	for (int64_t k = 0; k < nthing; k++)
		if (g->first[g->group[k]] == k)
			place[g->group[k]] = seen++;
	for (int64_t k = 0; k < nthing; k++)
		g->group[k] = place[g->group[k]];
	memset(g->count, 0, (size_t)g->n * sizeof *g->count);
	for (int64_t k = 0; k < nthing; k++)
		if (g->count[g->group[k]]++ == 0)
			g->first[g->group[k]] = k;
}

static void
group_things(const struct things *t, struct thing *sorted, bool keep_order, struct groups *g)
{
	for (int64_t k = 0; k < t->n; k++)
		sorted[k] = (struct thing){t, k};
	qsort(sorted, (size_t)t->n, sizeof *sorted, by_content);
	g->n = 0;
	for (int64_t k = 0; k < t->n; k++) {
		if (k == 0 || compare(t, sorted[k - 1].index, sorted[k].index) != 0) {
			g->first[g->n] = sorted[k].index;
			g->count[g->n++] = 0;
		}
		g->count[g->n - 1]++;
		g->group[sorted[k].index] = g->n - 1;
	}
	if (keep_order)
		renumber(g, t->n);
}

static om_status
put_list(om_op_context *c, uint32_t k, int64_t n, const int64_t *v)
{
	if (!om_has_out(c, k))
		return OM_OK;
	const om_shape shape = om_shape_of(1, &n);
	OM_TRY(c->alloc(c, k, &shape));
	memcpy(c->out[k].data, v, (size_t)n * sizeof *v);
	return OM_OK;
}

static om_status
put_groups(om_op_context *c, const struct things *t, const struct groups *g)
{
	om_shape shape = om_shape_of(1, &g->n);

	if (t->axis >= 0) {
		shape = t->in->shape;
		shape.dim[t->axis] = g->n;
	}
	OM_TRY(c->alloc(c, 0, &shape));
	const size_t line = (size_t)t->inner * t->size;
	char *to = c->out[0].data;
	for (int64_t o = 0; o < t->outer; o++)
		for (int64_t k = 0; k < g->n; k++, to += line)
			memcpy(to, (const char *)t->in->data + (size_t)(o * t->n + g->first[k]) * line, line);
	OM_TRY(put_list(c, 1, g->n, g->first));
	OM_TRY(put_list(c, 2, t->n, g->group));
	return put_list(c, 3, g->n, g->count);
}

static om_status
unique_cpu(om_op_context *c)
{
	const struct things t = *(const struct things *)c->state;
	struct thing *sorted = malloc((size_t)t.n * sizeof *sorted + 1);
	int64_t *room = calloc((size_t)t.n * 4 + 1, sizeof *room);
	om_status st;
	if (!sorted || !room) {
		st = out_of_memory(c);
	} else {
		struct groups g = {.first = room, .group = room + t.n, .count = room + 2 * t.n};
		group_things(&t, sorted, !t.is_sorted, &g);
		st = put_groups(c, &t, &g);
	}
	free(sorted);
	free(room);
	return st;
}

/* ---- The table. ---- */

static const om_attr_spec suppression_attrs[] = {
	{.name = "center_point_box", .kind = OM_ATTR_INT},
	{0}
};

static const om_attr_spec unique_attrs[] = {
	{.name = "axis", .kind = OM_ATTR_INT},
	{.name = "sorted", .kind = OM_ATTR_INT, .i = 1},
	{0}
};

const om_opdef om_ops_select[] = {
	{.domain = "", .name = "NonZero", .brief = "indices of the nonzero elements",
	 .since = 9, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .flags = OM_DATA_DEPENDENT_SHAPE,
	 .max_shape = non_zero_most,
	 .infer = non_zero_infer, .cpu = non_zero_cpu, .cost = om_cost_of_input,
	 .input_types = {OF_COMMON}},
	{.domain = "", .name = "NonMaxSuppression", .brief = "non-maximum suppression of boxes",
	 .since = 10, .min_in = 2, .max_in = 5, .min_out = 1, .max_out = 1, .flags = OM_DATA_DEPENDENT_SHAPE,
	 .attrs = suppression_attrs, .infer = suppression_infer, .max_shape = suppression_most, .cpu = suppression_cpu,
	 .cost = suppression_cost,
	 .input_types = {OF(FLOAT32), OF(FLOAT32), OF(INT64), OF(FLOAT32), OF(FLOAT32)}},
	{.domain = "", .name = "Unique", .brief = "unique elements or slices",
	 .since = 11, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 4, .flags = OM_DATA_DEPENDENT_SHAPE,
	 .attrs = unique_attrs, .infer = unique_infer, .max_shape = unique_most, .cpu = unique_cpu,
	 .cost = om_cost_of_input,
	 .input_types = {OF_COMMON}},
	{0}
};

const om_kernel om_kernels_select[] = {
	{.name = "NonMaxSuppression", .fields = suppression_fields, .state_bytes = sizeof(struct suppression_attrs),
	 .run = suppression_cpu},
	{.name = "Unique", .state_bytes = sizeof(struct things), .prepare = unique_prepare, .run = unique_cpu},
	{0}
};
