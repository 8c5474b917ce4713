/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for one another; see crew.h.
 *
 * A thread that waits spins briefly, then sleeps.  Lost wakeups: it announces that it sleeps and then reads what it waits
 * for; who changes that does so and then reads who sleeps.  Both orders are sequentially consistent, so one of the two sees
 * the other. */
#include <config.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crew.h"
#include "base/parallel.h"
#include "base/pause.h"
#include "base/system.h"

enum { CACHE_LINE = 64, PAUSES = 16 };
static const double spin_ms = 0.1;  /* the longest time to spin */

struct member {
	_Alignas(CACHE_LINE) _Atomic uint32_t done;   /* steps of its part */
	om_crew *crew;
	pthread_t id;
	uint32_t part;
};

struct om_crew {
	_Alignas(CACHE_LINE) _Atomic uint32_t task;   /* number of tasks that were started */
	_Atomic uint32_t left;    /* members that have not finished the task */
	_Atomic uint32_t asleep;
	_Atomic bool is_cancelled;
	bool stops;               /* threads end instead of running a task */
	om_crew_part *part;
	void *arg;
	double spin;              /* milliseconds */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t n, nthread;      /* parts; threads, the caller aside */
	struct member *member;    /* by part */
};

/* Has what a thread waits for come about? */
typedef bool ready_fn(om_crew *c, const struct member *m, uint32_t number);

static bool
has_task(om_crew *c, const struct member *m, uint32_t seen)
{
	(void)m;
	return atomic_load(&c->task) != seen;
}

static bool
is_finished(om_crew *c, const struct member *m, uint32_t number)
{
	(void)m;
	(void)number;
	return atomic_load(&c->left) == 0;
}

static bool
has_done(om_crew *c, const struct member *m, uint32_t done)
{
	return atomic_load(&m->done) >= done || atomic_load(&c->is_cancelled);
}

static bool
spins(om_crew *c, ready_fn *ready, const struct member *m, uint32_t number)
{
	const double until = om_now_ms() + c->spin;

	do {
		for (int k = 0; k < PAUSES; k++) {
			if (ready(c, m, number))
				return true;
			om_pause();
		}
	} while (om_now_ms() < until);
	return false;
}

static void
await(om_crew *c, ready_fn *ready, const struct member *m, uint32_t number)
{
	if (ready(c, m, number) || (c->spin > 0 && spins(c, ready, m, number)))
		return;
	pthread_mutex_lock(&c->lock);
	atomic_fetch_add(&c->asleep, 1);
	while (!ready(c, m, number))
		pthread_cond_wait(&c->changed, &c->lock);
	atomic_fetch_sub(&c->asleep, 1);
	pthread_mutex_unlock(&c->lock);
}

/* After a change.  A thread that holds the lock sees the change, or waits for the signal already. */
static void
wake(om_crew *c)
{
	if (!atomic_load(&c->asleep))
		return;
	pthread_mutex_lock(&c->lock);
	pthread_mutex_unlock(&c->lock);
	pthread_cond_broadcast(&c->changed);
}

static void *
member_main(void *arg)
{
	struct member *m = arg;
	om_crew *c = m->crew;

	for (uint32_t seen = 0;; seen++) {
		await(c, has_task, m, seen);
		if (c->stops)
			return NULL;
		c->part(c->arg, m->part);
		if (atomic_fetch_sub(&c->left, 1) == 1)
			wake(c);
	}
}

void
om_crew_run(om_crew *c, om_crew_part *part, void *arg)
{
	c->part = part;
	c->arg = arg;
	for (uint32_t k = 0; k < c->n; k++)
		atomic_store_explicit(&c->member[k].done, 0, memory_order_relaxed);
	atomic_store(&c->is_cancelled, false);
	atomic_store(&c->left, c->nthread);
	atomic_fetch_add(&c->task, 1);
	wake(c);
	part(arg, 0);
	await(c, is_finished, NULL, 0);
}

void
om_crew_tell(om_crew *c, uint32_t k, uint32_t done)
{
	atomic_store(&c->member[k].done, done);
	wake(c);
}

bool
om_crew_await(om_crew *c, uint32_t k, uint32_t done)
{
	await(c, has_done, &c->member[k], done);
	return !atomic_load(&c->is_cancelled);
}

void
om_crew_cancel(om_crew *c)
{
	atomic_store(&c->is_cancelled, true);
	wake(c);
}

/* As much stack as kernels have in the thread that calls, whatever a C library gives by itself. */
static bool
start(struct member *m)
{
	enum { STACK = 8 << 20 };
	pthread_attr_t attr;

	if (pthread_attr_init(&attr) != 0)
		return false;
	const bool is_started = pthread_attr_setstacksize(&attr, STACK) == 0 && pthread_create(&m->id, &attr, member_main, m) == 0;
	pthread_attr_destroy(&attr);
	return is_started;
}

om_crew *
om_crew_new(uint32_t n)
{
	om_crew *c = om_aligned_new(CACHE_LINE, sizeof *c);
	struct member *m = om_aligned_new(CACHE_LINE, n * sizeof *m);

	if (!c || !m) {
		om_aligned_free(c);
		om_aligned_free(m);
		return NULL;
	}
	memset(c, 0, sizeof *c);
	memset(m, 0, n * sizeof *m);
	c->n = n;
	c->member = m;
	c->spin = n <= om_core_count() ? spin_ms : 0;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	for (uint32_t k = 0; k < n; k++) {
		m[k].crew = c;
		m[k].part = k;
	}
	while (c->nthread < n - 1 && start(&m[c->nthread + 1]))
		c->nthread++;
	if (c->nthread == n - 1)
		return c;
	om_crew_free(c);
	return NULL;
}

void
om_crew_free(om_crew *c)
{
	if (!c)
		return;
	c->stops = true;
	atomic_fetch_add(&c->task, 1);
	wake(c);
	for (uint32_t k = 1; k <= c->nthread; k++)
		pthread_join(c->member[k].id, NULL);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	om_aligned_free(c->member);
	om_aligned_free(c);
}
