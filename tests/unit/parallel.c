/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel loops: every piece once, on a worker of its own. */
#include <config.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "unit.h"

enum { MANY = 5000, MOST = 8 };

struct loop {
	om_workers *pool;
	uint32_t nworker;
	_Atomic uint32_t *calls;        /* by piece */
	_Atomic uint32_t inside[MOST];  /* by worker: pieces that it runs */
	_Atomic uint32_t faults;
	int64_t nested;                 /* pieces of a loop inside each piece */
};

static void
count_piece(void *arg, int64_t k, uint32_t worker)
{
	struct loop *l = arg;

	if (worker >= l->nworker || atomic_fetch_add(&l->inside[worker], 1) != 0)
		atomic_fetch_add(&l->faults, 1);
	atomic_fetch_add(&l->calls[k], 1);
	atomic_fetch_sub(&l->inside[worker], 1);
}

static void
check_loop(om_workers *pool, int64_t n)
{
	struct loop l = {.pool = pool, .nworker = om_worker_count(pool), .calls = calloc((size_t)n + 1, sizeof *l.calls)};
	bool is_once = true;

	om_parallel_for(pool, n, count_piece, &l);
	for (int64_t k = 0; k < n; k++)
		is_once &= l.calls[k] == 1;
	CU_ASSERT(is_once && l.calls[n] == 0 && l.faults == 0);
	free(l.calls);
}

static void
runs_every_piece_once(void)
{
	static const int64_t size[] = {0, 1, 2, 3, 7, 64, 1000, MANY};

	for (uint32_t threads = 0; threads <= MOST; threads++) {
		om_workers *pool = om_workers_new(threads);
		CU_ASSERT(om_worker_count(pool) >= 1 && om_worker_count(pool) <= (threads ? threads : 1));
		for (size_t k = 0; k < sizeof size / sizeof *size; k++)
			check_loop(pool, size[k]);
		om_workers_free(pool);
	}
}

static void
runs_many_short_loops(void)
{
	om_workers *pool = om_workers_new(3);

	for (int k = 0; k < MANY; k++)
		check_loop(pool, k % 6);
	om_workers_free(pool);
}

/* ---- Loops in pieces. ---- */

struct nested {
	struct loop *outer;
	uint32_t worker;         /* of the piece */
	int64_t next;            /* its pieces run in order, in this thread: not atomic */
};

static void
count_nested(void *arg, int64_t k, uint32_t worker)
{
	struct nested *n = arg;

	if (worker != n->worker || k != n->next)
		atomic_fetch_add(&n->outer->faults, 1);
	n->next++;
}

static void
run_nested(void *arg, int64_t k, uint32_t worker)
{
	struct loop *l = arg;
	struct nested n = {l, worker, 0};

	count_piece(l, k, worker);
	om_parallel_for(l->pool, l->nested, count_nested, &n);
	if (n.next != l->nested)
		atomic_fetch_add(&l->faults, 1);
}

static void
runs_loops_of_pieces_serially(void)
{
	static const int64_t size[] = {1, 2, 100};

	for (size_t s = 0; s < sizeof size / sizeof *size; s++) {
		om_workers *pool = om_workers_new(4);
		struct loop l = {.pool = pool, .nworker = om_worker_count(pool), .nested = 20,
			.calls = calloc((size_t)size[s], sizeof *l.calls)};
		om_parallel_for(pool, size[s], run_nested, &l);
		CU_ASSERT_EQUAL(l.faults, 0);
		free(l.calls);
		om_workers_free(pool);
	}
}

/* ---- Results. ---- */

struct squares {
	const int64_t *in;       /* written before the loop, by the caller */
	int64_t *out;            /* read after it */
};

static void
square(void *arg, int64_t k, uint32_t worker)
{
	struct squares *s = arg;

	(void)worker;
	s->out[k] = s->in[k] * s->in[k];
}

static void
shows_writes_to_both_sides(void)
{
	om_workers *pool = om_workers_new(4);
	int64_t in[MOST * 8], out[MOST * 8];
	struct squares s = {in, out};
	bool good = true;

	for (int round = 0; round < MANY; round++) {
		for (int k = 0; k < MOST * 8; k++)
			in[k] = round + k;
		om_parallel_for(pool, MOST * 8, square, &s);
		for (int k = 0; k < MOST * 8; k++)
			good &= out[k] == (int64_t)(round + k) * (round + k);
	}
	CU_ASSERT(good);
	om_workers_free(pool);
}

/* ---- Several pools. ---- */

static void
use_inner_pool(void *arg, int64_t k, uint32_t worker)
{
	om_workers *inner = om_workers_new(2);

	(void)k;
	(void)worker;
	om_parallel_for(inner, 10, count_piece, arg);
	om_workers_free(inner);
}

/* A pool is in use while another one runs a loop, and a loop of it is started from a piece of that. */
static void
has_independent_pools(void)
{
	om_workers *one = om_workers_new(3), *two = om_workers_new(2);
	struct loop l = {.pool = two, .nworker = 2, .calls = calloc(10, sizeof *l.calls)};

	check_loop(one, 100);
	check_loop(two, 100);
	om_parallel_for(one, 1, use_inner_pool, &l);
	for (int k = 0; k < 10; k++)
		CU_ASSERT_EQUAL(l.calls[k], 1);
	check_loop(two, 100);
	om_workers_free(one);
	check_loop(two, 100);
	om_workers_free(two);
	free(l.calls);
	om_workers_free(NULL);
}

static void *
run_loops(void *arg)
{
	om_workers *pool = om_workers_new(3);
	struct squares *s = arg;

	for (int k = 0; k < 200; k++)
		om_parallel_for(pool, MOST * 8, square, s);
	om_workers_free(pool);
	return NULL;
}

/* More threads than there are processors, each with a pool. */
static void
runs_beside_busy_pools(void)
{
	int64_t in[MOST * 8], out[MOST][MOST * 8];
	struct squares s[MOST];
	pthread_t id[MOST];
	bool good = true;

	for (int k = 0; k < MOST * 8; k++)
		in[k] = k;
	for (int t = 0; t < MOST; t++) {
		s[t] = (struct squares){in, out[t]};
		good &= pthread_create(&id[t], NULL, run_loops, &s[t]) == 0;
	}
	for (int t = 0; t < MOST && good; t++) {
		pthread_join(id[t], NULL);
		for (int k = 0; k < MOST * 8; k++)
			good &= out[t][k] == (int64_t)k * k;
	}
	CU_ASSERT(good);
}

static void
makes_and_frees_pools(void)
{
	for (uint32_t k = 0; k < 200; k++) {
		om_workers *pool = om_workers_new(k % 5);
		if (k % 3)
			check_loop(pool, k % 7);
		om_workers_free(pool);
	}
}

/* Pages of a large array, in workers that the pool started: the caller's stack is not the pool's. */
static void
use_stack(void *arg, int64_t k, uint32_t worker)
{
	enum { PAGE = 4096, BYTES = 4 << 20 };

	(void)k;
	if (worker == 0)
		return;
	volatile char room[BYTES];
	for (size_t at = BYTES; at > 0; at -= PAGE)
		room[at - 1] = 1;
	atomic_fetch_add((_Atomic uint32_t *)arg, room[PAGE - 1] == 1);
}

/* `ulimit -s 512` changes what a C library gives a thread by itself. */
static void
has_large_stacks(void)
{
	om_workers *pool = om_workers_new(MOST);
	_Atomic uint32_t used = 0;

	for (int k = 0; k < MANY && used == 0 && om_worker_count(pool) > 1; k++)
		om_parallel_for(pool, MANY, use_stack, &used);
	CU_ASSERT(used > 0 || om_worker_count(pool) == 1);
	om_workers_free(pool);
}

static void
has_a_core(void)
{
	CU_ASSERT(om_core_count() >= 1);
}

static CU_TestInfo parallel_tests[] = {
	{"every piece runs once, on a worker of its own", runs_every_piece_once},
	{"many short loops", runs_many_short_loops},
	{"loops of pieces are serial", runs_loops_of_pieces_serially},
	{"what is written before a loop and in it is read in it and after it", shows_writes_to_both_sides},
	{"pools are independent", has_independent_pools},
	{"pools run side by side", runs_beside_busy_pools},
	{"pools are made and freed", makes_and_frees_pools},
	{"workers have large stacks", has_large_stacks},
	{"there is a core", has_a_core},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("parallel", parallel_tests);
