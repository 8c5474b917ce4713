/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor storage outside the arenas: sizes are checked, and failures reported with a message. */
#include <config.h>

#include <stdlib.h>

#include "base/guard.h"
#include "base/mapping.h"
#include "base/shape.h"
#include "exec/exec_internal.h"
#include "base/strided_copy.h"
#include "base/system.h"

/* Large memory starts where a large page may. */
static void *
allocate(const om_exec *e, size_t bytes)
{
	const size_t align = bytes >= OM_HUGE_PAGE && e->align < OM_HUGE_PAGE ? OM_HUGE_PAGE : (size_t)e->align;
	void *data = om_memory_aligned(align, bytes);

	if (data && align == OM_HUGE_PAGE)
		om_pages_huge(data, bytes);
	return data;
}

static om_status
room_get(om_exec *e, uint64_t bytes, const char *what, void **out)
{
	if (bytes > e->budget.left)
		return om_fail(e->session, OM_MEMORY, "%llu bytes for %s would exceed the memory limit of %llu bytes",
			(unsigned long long)bytes, what, (unsigned long long)e->options.max_memory);
	if (bytes > PTRDIFF_MAX || !(*out = allocate(e, (size_t)bytes)))
		return om_fail(e->session, OM_MEMORY, "cannot allocate %llu bytes for %s",
			(unsigned long long)bytes, what);
	e->budget.left -= bytes;
	if (e->options.poison)
		om_poison_fill(*out, bytes);
	return OM_OK;
}

om_status
om_room_fit(om_exec *e, struct room *r, uint64_t bytes, const char *what)
{
	void *data;

	if (r->data && bytes <= r->cap)
		return OM_OK;
	om_room_free(e, r);
	OM_TRY(room_get(e, bytes, what, &data));
	r->data = data;
	r->cap = bytes;
	return OM_OK;
}

om_status
om_room_extend(om_exec *e, struct room *r, uint64_t kept, uint64_t bytes, const char *what)
{
	const uint64_t cap = r->cap < PTRDIFF_MAX / 2 && bytes < 2 * r->cap ? 2 * r->cap : bytes;
	void *data;

	if (r->data && bytes <= r->cap)
		return OM_OK;
	OM_TRY(room_get(e, cap, what, &data));
	if (kept)
		memcpy(data, r->data, kept);
	om_room_free(e, r);
	r->data = data;
	r->cap = cap;
	return OM_OK;
}

void
om_room_free(om_exec *e, struct room *r)
{
	if (r->is_pages)
		om_unmap(r->data, r->cap);
	else if (!r->is_lent)
		om_aligned_free(r->data);
	if (!r->is_lent)
		e->budget.left += r->cap;
	*r = (struct room){NULL, 0, false, false};
}

om_status
om_room_pages(om_exec *e, struct room *r, uint64_t bytes, const char *what)
{
	enum { LEAST = 64 << 10, PAGE = 4096 };

	if (r->data || bytes < LEAST || bytes > PTRDIFF_MAX || e->align > PAGE || bytes > e->budget.left
	    || (e->session && !om_session_allows(e->session, bytes)))
		return om_room_fit(e, r, bytes, what);
	void *data = om_map_memory((size_t)bytes);
	if (!data)
		return om_room_fit(e, r, bytes, what);
	e->budget.left -= bytes;
	*r = (struct room){data, bytes, true, false};
	if (e->options.poison)
		om_poison_fill(data, bytes);
	return OM_OK;
}

/* Account for buffers outside the arenas that now have `now` bytes instead of `before`. */
static void
hold(om_exec *e, uint64_t now, uint64_t before)
{
	e->held += now - before;
	if (e->held > e->stats.unplanned_bytes)
		e->stats.unplanned_bytes = e->held;
}

om_status
om_workspace_fit(om_exec *e, struct room *workspace, uint64_t bytes)
{
	const uint64_t before = workspace->cap;

	const om_status st = om_room_fit(e, workspace, bytes, "scratch");
	hold(e, workspace->cap, before);
	return st;
}

om_status
om_value_room(om_exec *e, const om_value *v, uint64_t bytes)
{
	struct room *r = &e->room[v->id];
	const uint64_t before = r->cap;

	const om_status st = om_room_fit(e, r, bytes, v->name);
	hold(e, r->cap, before);
	return st;
}

static om_status
settle_fixed(om_exec *e, const om_value *v, om_dtype type, const om_shape *shape)
{
	const om_tensor *t = &e->slot[v->id];
	char want[256], got[256];
	bool same = shape->rank == t->shape.rank && type == t->type;

	for (int d = 0; same && d < shape->rank; d++)
		same = shape->dim[d] == t->shape.dim[d];
	if (same)
		return OM_OK;
	return om_fail(e->session, OM_RUN, "%s was planned as %s %s, but is %s %s in this run", v->name,
		om_dtype_text(t->type), om_shape_text(&t->shape, want, sizeof want),
		om_dtype_text(type), om_shape_text(shape, got, sizeof got));
}

/* The place of a value that is planned at the most that it may take; NULL: it has none. */
static void *
planned_place(const om_exec *e, const om_value *v, uint64_t bytes)
{
	const om_placement *at = e->plan ? &e->plan->place[v->id] : NULL;

	if (!at || at->where != OM_IN_ARENA || bytes > at->bytes)
		return NULL;
	return e->arena[at->arena].data + e->guard + at->offset;
}

om_status
om_value_settle(om_exec *e, om_value *v, om_dtype type, const om_shape *shape)
{
	om_tensor *t = &e->slot[v->id];
	uint64_t bytes;

	if (e->is_fixed[v->id])
		return settle_fixed(e, v, type, shape);
	if (type == OM_UNDEFINED || !om_tensor_bytes(type, shape, &bytes)) {
		char got[256];
		return om_fail(e->session, OM_RUN, "%s: the size of %s %s is not known or too large", v->name,
			om_dtype_text(type), om_shape_text(shape, got, sizeof got));
	}
	void *data = planned_place(e, v, bytes);
	if (!data) {
		OM_TRY(om_value_room(e, v, bytes));
		data = e->room[v->id].data;
	}
	*t = (om_tensor){.type = type, .shape = *shape, .data = data};
	return OM_OK;
}

om_status
om_value_put(om_exec *e, om_value *v, const om_tensor *t)
{
	uint64_t bytes;

	if (v->type.kind != OM_TENSOR) {  /* objects are shared */
		e->slot[v->id] = (om_tensor){.type = t->type, .shape = om_shape_unknown(), .data = t->data};
		return OM_OK;
	}
	OM_TRY(om_value_settle(e, v, t->type, &t->shape));
	om_tensor_bytes(t->type, &t->shape, &bytes);
	if (e->slot[v->id].data == t->data && !t->splat)
		return OM_OK;
	om_elements_copy(e->slot[v->id].data, t, bytes);
	e->stats.copied_bytes += bytes;
	return OM_OK;
}

/* Set `v` to `t`, which is in `from`; that becomes the buffer of `v`, and the other way round. */
static void
swap(om_exec *e, const om_value *v, const om_tensor *t, struct room *from)
{
	const struct room old = e->room[v->id];

	e->room[v->id] = *from;
	*from = old;
	e->slot[v->id] = *t;
}

void
om_value_take(om_exec *e, om_value *v, const om_tensor *t, struct room *from)
{
	hold(e, from->cap, e->room[v->id].cap);
	swap(e, v, t, from);
}

bool
om_value_may_give(const om_exec *e, const om_value *v)
{
	const om_tensor *t = &e->slot[v->id];

	return e->plan && !e->is_fixed[v->id] && v->type.kind == OM_TENSOR && t->data && !t->splat
		&& t->data == e->room[v->id].data;
}

bool
om_value_may_receive(const om_exec *e, const om_value *v)
{
	return e->plan && !e->is_fixed[v->id] && v->type.kind == OM_TENSOR && !om_exec_in_arena(e, v);
}

void
om_value_give(om_exec *e, const om_value *from, const om_value *to, const om_tensor *t)
{
	swap(e, to, t, &e->room[from->id]);
}
