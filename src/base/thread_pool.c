/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads for parallel loops.
 *
 * `state` is one number: the loop's generation, whether the loop is open, and how many threads are in it.  The
 * caller describes the loop and opens it; a thread joins while it is open, takes chunks of pieces from the
 * counter `next`, and leaves.  The caller does the same, closes the loop, and waits until all threads have left.
 * A thread that wakes up late finds the loop closed: nothing waits for a thread that did not join.
 *
 * A thread that waits spins briefly, then sleeps.  If its last wait was longer than the longest time to spin, it
 * spins half as long in the next one, so that threads without work soon leave the processor to others; if the
 * pool has more workers than there are processors, it does not spin.
 *
 * Lost wakeups: a thread announces that it sleeps and then reads `state`; the caller changes `state` and then
 * reads who sleeps.  Both orders are sequentially consistent, so one of the two sees the other. */
#include <config.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/parallel.h"
#include "base/pause.h"
#include "base/system.h"

/* The parts of `state`: threads in the loop, whether it is open, its generation. */
#define OPEN (UINT64_C(1) << 31)
#define ACTIVE (OPEN - 1)
#define GENERATION (UINT64_C(1) << 32)

enum { CACHE_LINE = 64, CHUNKS = 16, PAUSES = 16 };
static const double spin_ms = 0.05;  /* the longest time to spin */

struct thread {
	om_workers *pool;
	pthread_t id;
	uint32_t worker;
	uint32_t seen;            /* the generation that it joined last */
	double spin;              /* milliseconds */
};

struct om_workers {
	_Alignas(CACHE_LINE) _Atomic uint64_t state;
	_Alignas(CACHE_LINE) _Atomic int64_t next;   /* the next piece */
	_Alignas(CACHE_LINE) om_piece_fn *fn;        /* of the loop, as the following: */
	void *arg;
	int64_t n, chunk;
	bool stops;               /* the threads end instead of running a loop */
	_Atomic bool is_running;
	_Atomic uint32_t idle;    /* threads that sleep until a loop opens */
	_Atomic bool is_waiting;  /* the caller sleeps until the last thread has left */
	pthread_mutex_t lock;
	pthread_cond_t opened, left;
	double max_spin, spin;    /* milliseconds: the longest, and that of the caller */
	uint32_t nthread;         /* without the caller */
	struct thread *thread;
};

/* ---- Waiting. ---- */

typedef bool ready_fn(om_workers *w, struct thread *t);

static bool
has_loop(om_workers *w, struct thread *t)
{
	const uint64_t state = atomic_load(&w->state);

	return state & OPEN && (uint32_t)(state / GENERATION) != t->seen;
}

static bool
is_empty(om_workers *w, struct thread *t)
{
	(void)t;
	return !(atomic_load(&w->state) & ACTIVE);
}

static bool
spin(om_workers *w, ready_fn *ready, struct thread *t, double until)
{
	do {
		for (int k = 0; k < PAUSES; k++) {
			if (ready(w, t))
				return true;
			om_pause();
		}
	} while (om_now_ms() < until);
	return false;
}

/* Spin for `*budget`, then sleep by `rest`; adapt the budget to the time that it took. */
static void
await(om_workers *w, ready_fn *ready, struct thread *t, void (*rest)(om_workers *w, struct thread *t), double *budget)
{
	if (ready(w, t))
		return;
	const double start = om_now_ms();
	if (*budget <= 0 || !spin(w, ready, t, start + *budget))
		rest(w, t);
	*budget = om_now_ms() - start < w->max_spin ? w->max_spin : *budget / 2;
}

static void
sleep_until_opened(om_workers *w, struct thread *t)
{
	pthread_mutex_lock(&w->lock);
	atomic_fetch_add(&w->idle, 1);
	while (!has_loop(w, t))
		pthread_cond_wait(&w->opened, &w->lock);
	atomic_fetch_sub(&w->idle, 1);
	pthread_mutex_unlock(&w->lock);
}

static void
sleep_until_left(om_workers *w, struct thread *t)
{
	pthread_mutex_lock(&w->lock);
	atomic_store(&w->is_waiting, true);
	while (!is_empty(w, t))
		pthread_cond_wait(&w->left, &w->lock);
	atomic_store(&w->is_waiting, false);
	pthread_mutex_unlock(&w->lock);
}

/* ---- Loops. ---- */

static void
run_pieces(om_workers *w, uint32_t worker)
{
	const int64_t n = w->n, chunk = w->chunk;

	for (int64_t from; (from = atomic_fetch_add_explicit(&w->next, chunk, memory_order_relaxed)) < n;)
		for (int64_t k = from; k < from + chunk && k < n; k++)
			w->fn(w->arg, k, worker);
}

/* False if the loop has been closed meanwhile. */
static bool
join(om_workers *w, struct thread *t)
{
	uint64_t state = atomic_load(&w->state);

	while (state & OPEN)
		if (atomic_compare_exchange_weak(&w->state, &state, state + 1)) {
			t->seen = (uint32_t)(state / GENERATION);
			return true;
		}
	return false;
}

static void
leave(om_workers *w)
{
	atomic_fetch_sub(&w->state, 1);
	if (!atomic_load(&w->is_waiting))
		return;
	pthread_mutex_lock(&w->lock);
	pthread_mutex_unlock(&w->lock);
	pthread_cond_signal(&w->left);
}

static void *
thread_main(void *arg)
{
	struct thread *t = arg;
	om_workers *w = t->pool;

	for (;;) {
		await(w, has_loop, t, sleep_until_opened, &t->spin);
		if (!join(w, t))
			continue;
		if (w->stops)
			return NULL;
		run_pieces(w, t->worker);
		leave(w);
	}
}

/* Open the loop that has been described, and wake as many threads as it has chunks for. */
static void
open_loop(om_workers *w)
{
	const int64_t useful = (w->n + w->chunk - 1) / w->chunk - 1;

	atomic_store_explicit(&w->next, 0, memory_order_relaxed);
	atomic_store(&w->state, (atomic_load(&w->state) & ~(GENERATION - 1)) + GENERATION + OPEN);
	const uint32_t idle = atomic_load(&w->idle);
	if (!idle)
		return;
	/* A thread that holds the lock sees the new state or already waits for the signal. */
	pthread_mutex_lock(&w->lock);
	pthread_mutex_unlock(&w->lock);
	for (int64_t k = 0; k < useful && k < idle; k++)
		pthread_cond_signal(&w->opened);
}

static void
run_parallel(om_workers *w, int64_t n, om_piece_fn *fn, void *arg)
{
	const int64_t chunk = n / ((int64_t)CHUNKS * om_worker_count(w));

	w->fn = fn;
	w->arg = arg;
	w->n = n;
	w->chunk = chunk > 1 ? chunk : 1;
	open_loop(w);
	run_pieces(w, 0);
	atomic_fetch_and(&w->state, ~OPEN);
	await(w, is_empty, NULL, sleep_until_left, &w->spin);
}

static void
run_serial(int64_t n, om_piece_fn *fn, void *arg, uint32_t worker)
{
	for (int64_t k = 0; k < n; k++)
		fn(arg, k, worker);
}

/* The worker that the calling thread is. */
static uint32_t
this_worker(const om_workers *w)
{
	for (uint32_t k = 0; k < w->nthread; k++)
		if (pthread_equal(w->thread[k].id, pthread_self()))
			return w->thread[k].worker;
	return 0;
}

void
om_parallel_for(om_workers *pool, int64_t n, om_piece_fn *fn, void *arg)
{
	if (!pool) {
		run_serial(n, fn, arg, 0);
		return;
	}
	if (atomic_load_explicit(&pool->is_running, memory_order_relaxed)) {
		run_serial(n, fn, arg, this_worker(pool));
		return;
	}
	atomic_store_explicit(&pool->is_running, true, memory_order_relaxed);
	if (n > 1)
		run_parallel(pool, n, fn, arg);
	else
		run_serial(n, fn, arg, 0);
	atomic_store_explicit(&pool->is_running, false, memory_order_relaxed);
}

/* ---- Pools. ---- */

uint32_t
om_worker_count(const om_workers *pool)
{
	return pool ? pool->nthread + 1 : 1;
}

/* Kernels have as much stack in a worker as in the thread that calls, whatever a C library gives by itself: 128 KiB
 * with musl, 512 KiB on macOS. */
static bool
start_thread(om_workers *w)
{
	enum { STACK = 8 << 20 };
	struct thread *t = &w->thread[w->nthread];
	pthread_attr_t attr;

	*t = (struct thread){.pool = w, .worker = w->nthread + 1, .spin = w->max_spin};
	if (pthread_attr_init(&attr) != 0)
		return false;
	const bool is_started = pthread_attr_setstacksize(&attr, STACK) == 0 && pthread_create(&t->id, &attr, thread_main, t) == 0;
	pthread_attr_destroy(&attr);
	w->nthread += is_started;
	return is_started;
}

static om_workers *
new_pool(uint32_t nthread)
{
	om_workers *w = om_aligned_new(CACHE_LINE, sizeof *w);
	struct thread *t = calloc(nthread, sizeof *t);

	if (!w || !t) {
		om_aligned_free(w);
		free(t);
		return NULL;
	}
	memset(w, 0, sizeof *w);
	w->thread = t;
	w->max_spin = nthread < om_core_count() ? spin_ms : 0;
	w->spin = w->max_spin;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->opened, NULL);
	pthread_cond_init(&w->left, NULL);
	return w;
}

om_workers *
om_workers_new(uint32_t n)
{
	om_workers *w = n > 1 ? new_pool(n - 1) : NULL;

	while (w && w->nthread < n - 1 && start_thread(w))
		;
	if (!w || w->nthread)
		return w;
	om_workers_free(w);
	return NULL;
}

void
om_workers_free(om_workers *w)
{
	if (!w)
		return;
	w->stops = true;
	w->n = w->chunk = 1;
	atomic_fetch_add(&w->state, GENERATION + OPEN);
	pthread_mutex_lock(&w->lock);
	pthread_mutex_unlock(&w->lock);
	pthread_cond_broadcast(&w->opened);
	for (uint32_t k = 0; k < w->nthread; k++)
		pthread_join(w->thread[k].id, NULL);
	pthread_cond_destroy(&w->left);
	pthread_cond_destroy(&w->opened);
	pthread_mutex_destroy(&w->lock);
	free(w->thread);
	om_aligned_free(w);
}
