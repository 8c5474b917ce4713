/* SPDX-License-Identifier: Apache-2.0 */
/* Strings and objects of a run, and their release between the iterations of a loop.
 *
 * They are allocated in one arena, because they are immutable and shared without counting
 * references.  A loop would let it grow without bound, so each loop allocates in a region of its
 * own: what existed before the loop is parked.  Between two iterations the only live contents of
 * the region are those reachable from the loop-carried values and from the outputs collected so
 * far.  When the region exceeds its limit, these are copied to a new region, sharing preserved, and
 * the old one is freed (Cheney, "A nonrecursive list compacting algorithm", CACM 1970, with roots
 * given by the loop).  The limit is at least four times what survived: a sequence that grows takes two
 * more, as its copy has no spare items, and one is left, so that the cost of copying is a constant for
 * each byte allocated.
 *
 * Memory outside the region is never copied or modified: it belongs to the caller, to the
 * program or to an enclosing loop, and being older it does not refer to the region, except
 * for the spare items of a growing sequence (`om_container.room`).  Hence the items of a container
 * in the region are always copied, wherever they are, and the copy shares no spare items. */
#include <config.h>

#include <stdlib.h>

#include "base/arena_internal.h"
#include "base/strided_copy.h"
#include "exec/control_flow.h"
#include "ir/type.h"

enum { LEAST_LIMIT = 64 * 1024 };

struct moved {
	const void *from;
	void *to;
	size_t bytes;
};

struct om_mover {
	om_exec *e;
	struct om_address_range *range;  /* of the old region, sorted */
	size_t nrange;
	struct moved *slot;       /* open addressing */
	size_t n, cap;
	uint64_t visited;         /* items and strings */
};

/* ---- Regions. ---- */

void
om_objects_start(om_exec *e)
{
	om_arena_clear(e->keep);
	om_arena_clear(e->spare);
	for (; e->depth > 0; e->depth--)  /* a failed run left its loops */
		om_arena_clear(e->parked[e->depth - 1]);
	e->parked_bytes = 0;
	e->stats.object_bytes = 0;
}

void
om_objects_count(om_exec *e)
{
	const uint64_t bytes = e->parked_bytes + om_arena_used(e->keep);

	if (bytes > e->stats.object_bytes)
		e->stats.object_bytes = bytes;
}

void
om_objects_enter(om_exec *e, struct flow *f)
{
	f->limit = LEAST_LIMIT;
	if (!f->makes_objects)
		return;
	e->parked_bytes += om_arena_used(e->keep);
	om_arena_swap(e->keep, e->parked[e->depth++]);
}

void
om_objects_leave(om_exec *e, const struct flow *f)
{
	if (!f->makes_objects)
		return;
	om_objects_count(e);
	om_arena *outer = e->parked[--e->depth];
	e->parked_bytes -= om_arena_used(outer);
	om_arena_swap(e->keep, outer);
	om_arena_join(e->keep, outer);
}

/* ---- Moving. ---- */

static int
by_address(const void *a, const void *b)
{
	const struct om_address_range *x = a, *y = b;
	return (x->from > y->from) - (x->from < y->from);
}

struct om_mover *
om_objects_move_start(om_exec *e, const struct flow *f)
{
	if (om_arena_used(e->keep) < f->limit)
		return NULL;
	om_objects_count(e);
	om_arena_swap(e->keep, e->spare);
	struct om_mover *m = OM_NEW(e->call, struct om_mover);
	m->e = e;
	m->nrange = om_arena_ranges(e->spare, NULL);
	m->range = OM_NEWN(e->call, struct om_address_range, m->nrange);
	om_arena_ranges(e->spare, m->range);
	qsort(m->range, m->nrange, sizeof *m->range, by_address);
	return m;
}

void
om_objects_move_end(struct om_mover *m, struct flow *f)
{
	om_exec *e = m->e;

	f->limit = LEAST_LIMIT + 4 * om_arena_used(e->keep) + sizeof(om_string) * m->visited;
	om_arena_clear(e->spare);
	om_arena_clear(e->call);
}

static bool
is_in_region(const struct om_mover *m, const void *p)
{
	const uintptr_t at = (uintptr_t)p;
	size_t low = 0, high = m->nrange;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;
		if (at < m->range[mid].from)
			high = mid;
		else if (at >= m->range[mid].to)
			low = mid + 1;
		else
			return true;
	}
	return false;
}

/* The entry of `from`, or the free one where it belongs. */
static struct moved *
probe(struct moved *slot, size_t cap, const void *from)
{
	size_t at = (size_t)(((uintptr_t)from >> 4) * 0x9e3779b97f4a7c15u >> 32) & (cap - 1);

	while (slot[at].from && slot[at].from != from)
		at = (at + 1) & (cap - 1);
	return &slot[at];
}

static void
remember(struct om_mover *m, const void *from, void *to, size_t bytes)
{
	if (2 * (m->n + 1) > m->cap) {
		const size_t cap = m->cap ? 2 * m->cap : 64;
		struct moved *slot = OM_NEWN(m->e->call, struct moved, cap);
		for (size_t k = 0; k < m->cap; k++)
			if (m->slot[k].from)
				*probe(slot, cap, m->slot[k].from) = m->slot[k];
		m->slot = slot;
		m->cap = cap;
	}
	struct moved *at = probe(m->slot, m->cap, from);
	m->n += at->from == NULL;
	*at = (struct moved){from, to, bytes};
}

/* Where `from` was moved with at least `bytes`; NULL: not yet. */
static void *
find(const struct om_mover *m, const void *from, size_t bytes)
{
	const struct moved *at = m->cap ? probe(m->slot, m->cap, from) : NULL;

	return at && at->from && at->bytes >= bytes ? at->to : NULL;
}

static void *
move_bytes(struct om_mover *m, const void *from, size_t bytes)
{
	void *to = find(m, from, bytes);

	if (to)
		return to;
	to = om_memdup(m->e->keep, from, bytes);
	remember(m, from, to, bytes);
	return to;
}

void
om_objects_move_strings(struct om_mover *m, om_string *s, uint64_t n)
{
	m->visited += n;
	for (uint64_t k = 0; k < n; k++) {
		if (s[k].size == 0)
			s[k].data = "";
		else if (is_in_region(m, s[k].data))
			s[k].data = move_bytes(m, s[k].data, s[k].size);
	}
}

/* The tensor of an item: its elements may be shared with other items. */
static void
move_elements(struct om_mover *m, om_tensor *t)
{
	uint64_t bytes;

	m->visited++;
	if (!t->data || !om_tensor_bytes(t->type, &t->shape, &bytes) || !is_in_region(m, t->data))
		return;
	void *to = find(m, t->data, bytes);
	if (!to) {
		to = move_bytes(m, t->data, bytes);
		if (t->type == OM_STRING)
			om_objects_move_strings(m, to, bytes / sizeof(om_string));
	}
	t->data = to;
}

static void move_object(struct om_mover *m, const om_type *type, om_tensor *t);

static const om_container *
move_container(struct om_mover *m, const om_type *type, const om_container *from)
{
	om_container *to = OM_NEW(m->e->keep, om_container);
	om_tensor *item = OM_NEWN(m->e->keep, om_tensor, from->item ? from->n + 1 : 0);

	*to = (om_container){.n = from->n, .key = from->key, .value = from->value};
	remember(m, from, to, sizeof *to);
	move_elements(m, &to->key);
	move_elements(m, &to->value);
	if (!from->item)
		return to;
	to->item = item;
	m->visited += from->n;
	for (size_t k = 0; k < from->n; k++) {
		item[k] = from->item[k];
		move_object(m, type->of, &item[k]);
	}
	return to;
}

static void
move_object(struct om_mover *m, const om_type *type, om_tensor *t)
{
	if (type->kind == OM_TENSOR) {
		move_elements(m, t);
		return;
	}
	if (!t->data || !is_in_region(m, t->data))
		return;
	void *to = find(m, t->data, sizeof(om_container));
	t->data = to ? to : (void *)move_container(m, type, t->data);
}

void
om_objects_move_item(struct om_mover *m, const om_type *type, om_tensor *t)
{
	move_object(m, type, t);
}

void
om_objects_move_value(struct om_mover *m, const om_type *type, om_tensor *t)
{
	uint64_t bytes;

	if (type->kind != OM_TENSOR)
		move_object(m, type, t);
	else if (t->type == OM_STRING && t->data && om_tensor_bytes(t->type, &t->shape, &bytes))
		om_objects_move_strings(m, t->data, t->splat ? 1 : bytes / sizeof(om_string));
}

om_status
om_objects_copy(om_exec *e, const om_tensor *from, om_tensor *to)
{
	uint64_t bytes;

	if (!om_tensor_bytes(from->type, &from->shape, &bytes))
		return om_fail(e->session, OM_RUN, "the size of a result of a body overflows");
	*to = (om_tensor){.type = from->type, .shape = from->shape, .data = om_alloc_try(e->keep, bytes ? bytes : 1)};
	if (!to->data)
		return om_fail(e->session, OM_MEMORY, "cannot allocate %llu bytes for an element",
			(unsigned long long)bytes);
	om_elements_copy(to->data, from, bytes);
	e->stats.copied_bytes += bytes;
	return OM_OK;
}

/* ---- Building. ---- */

/* Is the type known at every depth?  Otherwise its objects cannot be traversed. */
static bool
is_whole(const om_type *type)
{
	for (; type && type->kind != OM_TENSOR; type = type->of)
		if (type->kind != OM_SEQUENCE && type->kind != OM_OPTIONAL && type->kind != OM_MAP)
			return false;
	return type != NULL;
}

static bool
is_object(const om_value *v)
{
	return v && (v->type.kind != OM_TENSOR || v->type.elem == OM_STRING || v->type.elem == OM_UNDEFINED);
}

static bool
any_object(const om_block *b)
{
	bool any = false;

	for (uint32_t k = 0; k < b->nparam; k++)
		any |= is_object(b->param[k]);
	for (const om_op *op = b->first; op && !any; op = op->next) {
		for (uint32_t k = 0; k < op->nout; k++)
			any |= is_object(op->out[k]);
		for (uint32_t k = 0; k < op->nbody; k++)
			any |= any_object(op->body[k]);
	}
	return any;
}

bool
om_objects_any(const om_block *body)
{
	bool whole = true;

	for (uint32_t k = 0; k < body->nparam; k++)
		whole &= is_whole(&body->param[k]->type);
	for (uint32_t k = 0; k < body->nresult; k++)
		whole &= is_whole(&body->result[k]->type);
	return whole && any_object(body);
}

static uint32_t
deepest(const om_block *b)
{
	uint32_t most = 0;

	for (const om_op *op = b->first; op; op = op->next)
		for (uint32_t k = 0; k < op->nbody; k++) {
			const uint32_t n = 1 + deepest(op->body[k]);
			most = n > most ? n : most;
		}
	return most;
}

void
om_objects_new(om_exec *e)
{
	const uint32_t n = deepest(e->prog->first);

	e->keep = om_arena_new();
	e->spare = om_arena_new();
	e->parked = OM_NEWN(e->mem, om_arena *, n);
	for (uint32_t k = 0; k < n; k++) {
		e->parked[k] = om_arena_new();
		e->nparked++;
	}
}

void
om_objects_free(om_exec *e)
{
	om_arena_free(e->keep);
	om_arena_free(e->spare);
	for (uint32_t k = 0; k < e->nparked; k++)
		om_arena_free(e->parked[k]);
}
