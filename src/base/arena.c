/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "base/arena_internal.h"
#include "base/guard.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Bytes of a chunk with its head.  Chunks grow with the arena, so that a small arena costs little; the first one is of the
 * small blocks that allocators keep at hand (see om_memory_zeroed()), and has room for the context of a usual op. */
enum { FIRST_CHUNK = OM_SMALL_MEMORY, LAST_CHUNK = 256 * 1024 };

struct chunk {
	struct chunk *next;
	size_t used, cap;
	alignas(max_align_t) unsigned char mem[];
};

struct deferred {
	void (*release)(void *arg);
	void *arg;
	struct deferred *next;
};

struct om_arena {
	struct om_link link;         /* in the list of its guard; first member: see om_guard_failed() */
	struct chunk *head;
	size_t next_size;            /* of the next chunk, with its head */
	size_t used;                 /* bytes handed out since it was made or cleared */
	struct om_budget *budget;    /* NULL: unlimited */
	struct deferred *deferred;   /* in reverse order of registration */
};

om_arena *
om_arena_new(void)
{
	om_arena *a = om_memory_zeroed(sizeof *a);

	if (!a) {
		om_guard_fail(sizeof *a);
		return NULL;
	}
	a->next_size = FIRST_CHUNK;
	om_guard_keep(&a->link);
	return a;
}

void
om_arena_defer(om_arena *a, void (*release)(void *arg), void *arg)
{
	struct deferred *d = om_alloc(a, sizeof *d);

	*d = (struct deferred){release, arg, a->deferred};
	a->deferred = d;
}

static void
run_deferred(om_arena *a)
{
	for (struct deferred *d; (d = a->deferred);) {
		a->deferred = d->next;
		d->release(d->arg);
	}
}

static void
free_chunks(om_arena *a, struct chunk *c)
{
	for (struct chunk *next; c; c = next) {
		next = c->next;
		if (a->budget)
			a->budget->left += sizeof *c + c->cap;
		free(c);
	}
}

void
om_arena_limit(om_arena *a, struct om_budget *b)
{
	a->budget = b;
}

static bool
is_affordable(om_arena *a, size_t bytes)
{
	struct om_budget *b = a->budget;

	if (!b)
		return true;
	if (bytes > b->left) {
		b->is_exceeded = true;
		return false;
	}
	b->left -= bytes;
	return true;
}

/* The head chunk is kept, for callers that fill and clear the arena repeatedly. */
void
om_arena_clear(om_arena *a)
{
	if (a->used == 0)
		return;
	run_deferred(a);
	a->used = 0;
	free_chunks(a, a->head->next);
	a->head->next = NULL;
	memset(a->head->mem, 0, a->head->used);
	a->head->used = 0;
}

void
om_arena_free(om_arena *a)
{
	if (!a)
		return;
	run_deferred(a);
	om_link_remove(&a->link);
	free_chunks(a, a->head);
	free(a);
}

/* A chunk with space for `n` bytes.  A large object gets a chunk of its own after
 * the head, so that the rest of the head stays in use. */
static struct chunk *
chunk_for(om_arena *a, size_t n)
{
	const size_t room = a->next_size - sizeof(struct chunk);
	const bool large = n > room;
	const size_t cap = large ? n : room;
	struct chunk *c = is_affordable(a, sizeof *c + cap) ? om_memory_zeroed(sizeof *c + cap) : NULL;

	if (!c)
		return NULL;
	c->cap = cap;
	if (a->head && large) {
		c->next = a->head->next;
		a->head->next = c;
		return c;
	}
	c->next = a->head;
	a->head = c;
	if (a->next_size < LAST_CHUNK)
		a->next_size *= 2;
	return c;
}

void *
om_alloc_try(om_arena *a, size_t n)
{
	const size_t align = alignof(max_align_t);
	struct chunk *c = a->head;

	if (n > SIZE_MAX / 2)
		return NULL;
	n = (n + align - 1) & ~(align - 1);
	if (!c || c->cap - c->used < n)
		c = chunk_for(a, n);
	if (!c)
		return NULL;
	void *p = c->mem + c->used;
	c->used += n;
	a->used += n;
	return p;
}

void *
om_alloc(om_arena *a, size_t n)
{
	void *p = om_alloc_try(a, n);

	if (!p)
		om_guard_fail(n);
	return p;
}

/* ---- Regions. ---- */

size_t
om_arena_used(const om_arena *a)
{
	return a->used;
}

void
om_arena_swap(om_arena *a, om_arena *b)
{
	const om_arena old = *a;

	a->head = b->head;
	a->next_size = b->next_size;
	a->used = b->used;
	a->deferred = b->deferred;
	b->head = old.head;
	b->next_size = old.next_size;
	b->used = old.used;
	b->deferred = old.deferred;
}

void
om_arena_join(om_arena *to, om_arena *from)
{
	struct chunk **tail = &from->head;
	struct deferred **last = &from->deferred;

	while (*tail)
		tail = &(*tail)->next;
	*tail = to->head;
	while (*last)
		last = &(*last)->next;
	*last = to->deferred;
	to->head = from->head;
	to->deferred = from->deferred;
	to->used += from->used;
	from->head = NULL;
	from->deferred = NULL;
	from->used = 0;
}

size_t
om_arena_ranges(const om_arena *a, struct om_address_range *range)
{
	size_t n = 0;

	for (const struct chunk *c = a->head; c; c = c->next, n++)
		if (range)
			range[n] = (struct om_address_range){(uintptr_t)c->mem, (uintptr_t)c->mem + c->used};
	return n;
}

void *
om_allocn(om_arena *a, size_t size, size_t n)
{
	return om_alloc(a, size && n > SIZE_MAX / 2 / size ? SIZE_MAX : size * n);
}

void *
om_grow(om_arena *a, void *array, size_t size, size_t n, size_t *cap)
{
	if (n < *cap)
		return array;
	const size_t bigger = *cap ? 2 * *cap : 8;
	void *p = om_allocn(a, size, bigger);
	if (!p)
		return NULL;
	if (n)
		memcpy(p, array, n * size);
	*cap = bigger;
	return p;
}

void *
om_memdup(om_arena *a, const void *p, size_t n)
{
	void *copy = om_alloc(a, n);
	if (copy && n)
		memcpy(copy, p, n);
	return copy;
}

char *
om_strndup(om_arena *a, const char *s, size_t n)
{
	char *copy = om_alloc(a, n + 1);
	if (copy && n)
		memcpy(copy, s, n);
	return copy;
}

char *
om_strdup(om_arena *a, const char *s)
{
	return om_strndup(a, s, strlen(s));
}

char *
om_printf(om_arena *a, const char *fmt, ...)
{
	va_list ap, again;

	va_start(ap, fmt);
	va_copy(again, ap);
	const int n = vsnprintf(NULL, 0, fmt, ap);
	char *text = om_alloc(a, (size_t)n + 1);
	if (text)
		vsnprintf(text, (size_t)n + 1, fmt, again);
	va_end(again);
	va_end(ap);
	return text;
}
