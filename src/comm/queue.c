/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator whose calls are made by a thread of its own, so that collectives go on while the caller computes.
 *
 * Calls form a queue, which the thread works off in order: the order of collectives stays that in which the caller made them,
 * which is the same on all ranks.  A call that is waited for at once goes through the queue, too.
 *
 * After a failure nothing in the queue is run any more: what other ranks do is not known then. */
#include <config.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "onnxmem/comm.h"

enum { MOST = 64 };              /* calls in the queue */

enum call { REDUCE, SCATTER, GATHER, BROADCAST, SEND, RECEIVE, BARRIER };

struct job {
	enum call call;
	om_comm_group group;
	om_dtype type;
	const void *in;
	void *out;
	uint64_t n;              /* elements or bytes, as the call has it */
	uint32_t peer, tag;
	bool ordered;
};

struct queue {
	om_comm comm;
	om_comm *inner;
	om_session *session;     /* of the thread */
	pthread_t thread;
	pthread_mutex_t lock;    /* of what follows */
	pthread_cond_t changed;
	struct job job[MOST];    /* call k is in k % MOST */
	uint64_t added, done;    /* calls */
	om_status status;        /* of the first that failed */
	bool ends;
	om_comm_times times;     /* `waiting` is written by the caller alone */
};

/* ---- The thread. ---- */

static om_status
make_call(om_comm *c, om_session *s, const struct job *j)
{
	switch (j->call) {
	case REDUCE: return om_comm_all_reduce(c, s, j->group, j->type, j->out, j->n, j->ordered);
	case SCATTER: return om_comm_reduce_scatter(c, s, j->group, j->type, j->in, j->out, j->n, j->ordered);
	case GATHER: return om_comm_all_gather(c, s, j->group, j->in, j->out, j->n);
	case BROADCAST: return om_comm_broadcast(c, s, j->group, j->out, j->n, j->peer);
	case SEND: return om_comm_send(c, s, j->peer, j->tag, j->in, j->n);
	case RECEIVE: return om_comm_receive(c, s, j->peer, j->tag, j->out, j->n);
	default: return om_comm_barrier(c, s);
	}
}

static void *
work(void *arg)
{
	struct queue *q = arg;

	pthread_mutex_lock(&q->lock);
	for (;;) {
		while (q->done == q->added && !q->ends)
			pthread_cond_wait(&q->changed, &q->lock);
		if (q->done == q->added)
			break;
		const struct job j = q->job[q->done % MOST];
		om_status st = q->status;
		pthread_mutex_unlock(&q->lock);
		const double start = om_now_ms();
		if (st == OM_OK)
			st = make_call(q->inner, q->session, &j);
		const double took = om_now_ms() - start;
		pthread_mutex_lock(&q->lock);
		q->times.transfer += took / 1000;
		q->status = st;
		q->done++;
		pthread_cond_broadcast(&q->changed);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

/* ---- The caller. ---- */

/* Wait for a change, with the lock; who waits looks now and then whether its session was stopped, and stops the thread then. */
static void
wait_for_change(struct queue *q, om_session *s)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += 50000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&q->changed, &q->lock, &t);
	if (om_session_is_stopped(s))
		om_session_stop(q->session, true);
}

/* Until call `k` is over; its status, or that of what failed before it. */
static om_status
wait_for(struct queue *q, om_session *s, uint64_t k)
{
	const double start = om_now_ms();

	pthread_mutex_lock(&q->lock);
	while (q->done <= k)
		wait_for_change(q, s);
	const om_status st = q->status;
	pthread_mutex_unlock(&q->lock);
	q->times.waiting += (om_now_ms() - start) / 1000;
	return st == OM_OK ? OM_OK : om_fail(s, st, "%s", om_message(q->session));
}

/* Returns the number of the call. */
static uint64_t
add(struct queue *q, om_session *s, const struct job *j)
{
	pthread_mutex_lock(&q->lock);
	while (q->added - q->done == MOST)
		wait_for_change(q, s);
	const uint64_t k = q->added++;
	q->job[k % MOST] = *j;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
	return k;
}

static om_status
call(om_comm *c, om_session *s, const struct job *j)
{
	struct queue *q = (struct queue *)c;

	return wait_for(q, s, add(q, s, j));
}

static om_status
queue_all_reduce(om_comm *c, om_session *s, om_dtype type, void *data, uint64_t n)
{
	return call(c, s, &(struct job){.call = REDUCE, .type = type, .out = data, .n = n});
}

static om_status
queue_reduce_scatter(om_comm *c, om_session *s, om_dtype type, const void *in, void *out, uint64_t n)
{
	return call(c, s, &(struct job){.call = SCATTER, .type = type, .in = in, .out = out, .n = n});
}

static om_status
queue_all_gather(om_comm *c, om_session *s, const void *in, void *out, uint64_t bytes)
{
	return call(c, s, &(struct job){.call = GATHER, .in = in, .out = out, .n = bytes});
}

static om_status
queue_broadcast(om_comm *c, om_session *s, void *data, uint64_t bytes, uint32_t root)
{
	return call(c, s, &(struct job){.call = BROADCAST, .out = data, .n = bytes, .peer = root});
}

static om_status
queue_send(om_comm *c, om_session *s, uint32_t peer, uint32_t tag, const void *data, uint64_t bytes)
{
	return call(c, s, &(struct job){.call = SEND, .in = data, .n = bytes, .peer = peer, .tag = tag});
}

static om_status
queue_receive(om_comm *c, om_session *s, uint32_t peer, uint32_t tag, void *data, uint64_t bytes)
{
	return call(c, s, &(struct job){.call = RECEIVE, .out = data, .n = bytes, .peer = peer, .tag = tag});
}

static om_status
queue_barrier(om_comm *c, om_session *s)
{
	return call(c, s, &(struct job){.call = BARRIER});
}

/* Nothing may be in the memory of a transfer any more when this returns: a call that waits for other ranks is stopped. */
static void
cancel(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	if (q->done < q->added)
		om_session_stop(q->session, true);
	while (q->done < q->added)
		wait_for_change(q, NULL);
	pthread_mutex_unlock(&q->lock);
}

static void
queue_abort(om_comm *c, const char *why)
{
	struct queue *q = (struct queue *)c;

	cancel(q);
	om_comm_abort(q->inner, why);
}

static void
free_queue(struct queue *q)
{
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->changed);
	om_session_free(q->session);
	free(q);
}

static void
queue_close(om_comm *c)
{
	struct queue *q = (struct queue *)c;
	om_comm *inner = q->inner;

	cancel(q);
	pthread_mutex_lock(&q->lock);
	q->ends = true;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
	pthread_join(q->thread, NULL);
	free_queue(q);
	om_comm_close(inner);
}

static const om_comm_ops queue_ops = {
	.size = sizeof(om_comm_ops), .name = "queue", .all_reduce = queue_all_reduce, .reduce_scatter = queue_reduce_scatter,
	.all_gather = queue_all_gather, .broadcast = queue_broadcast, .send = queue_send, .receive = queue_receive,
	.barrier = queue_barrier, .abort = queue_abort, .close = queue_close,
};

static struct queue *
queue_of(om_comm *c)
{
	return c && c->ops == &queue_ops ? (struct queue *)c : NULL;
}

/* Signals are for the threads of the program. */
static bool
start_thread(struct queue *q)
{
	sigset_t all, was;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	const int st = pthread_create(&q->thread, NULL, work, q);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	return st == 0;
}

om_status
om_comm_queue_new(om_session *s, om_comm *inner, om_comm **out)
{
	struct queue *q = calloc(1, sizeof *q);

	*out = NULL;
	if (!inner->ops->may_change_thread) {
		free(q);
		return om_fail(s, OM_UNSUPPORTED, "the communicator %s is of one thread alone: its transfers cannot go on while that "
			"computes", inner->ops->name);
	}
	if (!q || !(q->session = om_session_new())) {
		free(q);
		return om_fail(s, OM_MEMORY, "cannot allocate a queue of transfers");
	}
	q->comm = (om_comm){&queue_ops, inner->rank, inner->size};
	q->inner = inner;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->changed, NULL);
	if (!start_thread(q)) {
		free_queue(q);
		return om_fail(s, OM_MEMORY, "cannot start a thread for transfers");
	}
	*out = &q->comm;
	return OM_OK;
}

/* ---- Transfers that are started, and waited for later. ---- */

static om_status
start(struct queue *q, om_session *s, const struct job *j)
{
	add(q, s, j);
	return OM_OK;
}

om_status
om_comm_start_all_reduce(om_comm *c, om_session *s, om_comm_group g, om_dtype type, void *data, uint64_t n, bool ordered)
{
	struct queue *q = queue_of(c);
	const struct job j = {.call = REDUCE, .group = g, .type = type, .out = data, .n = n, .ordered = ordered};

	return q ? start(q, s, &j) : om_comm_all_reduce(c, s, g, type, data, n, ordered);
}

om_status
om_comm_start_reduce_scatter(om_comm *c, om_session *s, om_comm_group g, om_dtype type, const void *in, void *out, uint64_t n,
	bool ordered)
{
	struct queue *q = queue_of(c);
	const struct job j = {.call = SCATTER, .group = g, .type = type, .in = in, .out = out, .n = n, .ordered = ordered};

	return q ? start(q, s, &j) : om_comm_reduce_scatter(c, s, g, type, in, out, n, ordered);
}

om_status
om_comm_start_all_gather(om_comm *c, om_session *s, om_comm_group g, const void *in, void *out, uint64_t bytes)
{
	struct queue *q = queue_of(c);
	const struct job j = {.call = GATHER, .group = g, .in = in, .out = out, .n = bytes};

	return q ? start(q, s, &j) : om_comm_all_gather(c, s, g, in, out, bytes);
}

/* The last call that was started for `data` and is not over; UINT64_MAX: there is none.  No other calls are in the queue: who made them has
 * waited for them. */
static uint64_t
find_started(struct queue *q, const void *data)
{
	uint64_t found = UINT64_MAX;

	pthread_mutex_lock(&q->lock);
	for (uint64_t k = q->done; k < q->added; k++)
		if (q->job[k % MOST].out == data)
			found = k;
	if (found == UINT64_MAX && q->status != OM_OK)
		found = 0;
	pthread_mutex_unlock(&q->lock);
	return found;
}

om_status
om_comm_wait(om_comm *c, om_session *s, const void *data)
{
	struct queue *q = queue_of(c);
	const uint64_t k = q ? find_started(q, data) : UINT64_MAX;

	return k == UINT64_MAX ? OM_OK : wait_for(q, s, k);
}

void
om_comm_cancel(om_comm *c)
{
	struct queue *q = queue_of(c);

	if (q)
		cancel(q);
}

om_comm_times
om_comm_get_times(om_comm *c)
{
	struct queue *q = queue_of(c);

	if (!q)
		return (om_comm_times){0, 0};
	pthread_mutex_lock(&q->lock);
	const om_comm_times t = q->times;
	pthread_mutex_unlock(&q->lock);
	return t;
}
