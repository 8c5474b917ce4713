/* SPDX-License-Identifier: Apache-2.0 */
/* Guards; see guard.h. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/mute.h"
#include "base/system.h"

/* Per thread; NULL outside of calls of the library. */
static _Thread_local struct om_guard *innermost;

jmp_buf *
om_guard_start(struct om_guard *g, om_session *s)
{
	g->outer = innermost;
	g->session = s;
	g->muted = om_session_mute(s, 0);
	g->arenas = (struct om_link){&g->arenas, &g->arenas};
	innermost = g;
	return &g->back;
}

static void
insert(struct om_link *list, struct om_link *l)
{
	l->prev = list->prev;
	l->next = list;
	list->prev->next = l;
	list->prev = l;
}

void
om_guard_keep(struct om_link *l)
{
	if (innermost)
		insert(&innermost->arenas, l);
}

void
om_link_remove(struct om_link *l)
{
	if (l->next) {
		l->prev->next = l->next;
		l->next->prev = l->prev;
	}
	*l = (struct om_link){NULL, NULL};
}

/* Move the remaining arenas to the enclosing guard, if any. */
om_status
om_guard_end(struct om_guard *g, om_status st)
{
	innermost = g->outer;
	while (g->arenas.next != &g->arenas) {
		struct om_link *l = g->arenas.next;
		om_link_remove(l);
		om_guard_keep(l);
	}
	return st;
}

om_status
om_guard_failed(struct om_guard *g)
{
	innermost = g->outer;
	while (g->arenas.next != &g->arenas)
		om_arena_free((om_arena *)g->arenas.next);
	om_session_mute(g->session, g->muted - om_session_mute(g->session, 0));
	return om_fail(g->session, OM_MEMORY, "there is no memory for %zu more bytes", g->wanted);
}

struct om_guard *
om_guard_suspend(void)
{
	struct om_guard *g = innermost;

	innermost = NULL;
	return g;
}

void
om_guard_resume(struct om_guard *g)
{
	innermost = g;
}

void
om_guard_fail(size_t wanted)
{
	if (!innermost)
		return;
	innermost->wanted = wanted;
	longjmp(innermost->back, 1);
}

om_status
om_guarded(om_session *s, om_status (*run)(void *arg), void *arg)
{
	OM_GUARDED(s, run(arg));
}

om_status
om_guarded_part(om_session *s, om_status (*run)(void *arg), void *arg)
{
	struct om_guard g;

	if (setjmp(*om_guard_start(&g, s)))
		return om_guard_failed(&g);
	const om_status st = run(arg);
	while (st == OM_OK && g.arenas.next != &g.arenas)
		om_link_remove(g.arenas.next);
	return om_guard_end(&g, st);
}

static bool
is_allowed(size_t n)
{
	return n <= PTRDIFF_MAX && (!innermost || !innermost->session || om_session_allows(innermost->session, n));
}

/* calloc() of the C library of GNU, until version 2.41, takes none of the small blocks that were just freed. */
static void *
small_zeroed(size_t n)
{
	void *p = malloc(n ? n : 1);

	return p ? memset(p, 0, n) : NULL;
}

void *
om_memory_zeroed(size_t n)
{
	if (!is_allowed(n))
		return NULL;
	return n <= OM_SMALL_MEMORY ? small_zeroed(n) : calloc(1, n);
}

void *
om_memory_aligned(size_t align, size_t n)
{
	return is_allowed(n) ? om_aligned_new(align, n) : NULL;
}
