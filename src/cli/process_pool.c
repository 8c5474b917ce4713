/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of processes.  Each writes to a pipe; the pool waits until one is readable or the first time limit expires. */
#include <config.h>

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/process.h"
#include "cli/process_pool.h"

enum { MAX_OUTPUT = 1 << 24 };

struct worker {
	size_t job;
	double start;
	bool late;
	size_t cap;
};

struct pool {
	om_session *session;
	om_arena *mem;
	om_job *job;
	struct worker *worker;
	struct om_process *process;   /* of each worker */
	bool *ready;
	size_t nworker;
	double limit;
};

static om_status
start(struct pool *p, size_t k)
{
	if (!om_process_start(&p->process[p->nworker], k, p->job[k].run, p->job[k].arg, p->process, p->nworker))
		return om_fail(p->session, OM_IO, "a process could not be started: %s", strerror(errno));
	p->worker[p->nworker++] = (struct worker){.job = k, .start = om_now_ms()};
	return OM_OK;
}

/* False at the end of its output. */
static bool
read_output(struct pool *p, size_t at)
{
	struct worker *w = &p->worker[at];
	om_job *job = &p->job[w->job];
	char piece[4096];
	const ssize_t n = read(p->process[at].from, piece, sizeof piece);

	if (n < 0 && errno == EINTR)
		return true;
	if (n <= 0 || job->n + (size_t)n > MAX_OUTPUT)
		return false;
	if (job->n + (size_t)n + 1 > w->cap) {
		w->cap = 2 * w->cap + (size_t)n + 1;
		char *more = om_allocn(p->mem, 1, w->cap);
		if (job->n)
			memcpy(more, job->text, job->n);
		job->text = more;
	}
	memcpy(job->text + job->n, piece, (size_t)n);
	job->n += (size_t)n;
	job->text[job->n] = '\0';
	return true;
}

static void
finish(struct pool *p, size_t at)
{
	struct worker *w = &p->worker[at];
	om_job *job = &p->job[w->job];
	const char *died = om_process_end(&p->process[at], p->mem);

	job->ms = om_now_ms() - w->start;
	job->died = w->late ? om_printf(p->mem, "took longer than %g seconds", p->limit) : died;
	*w = p->worker[--p->nworker];
	p->process[at] = p->process[p->nworker];
}

/* Milliseconds until the first time limit expires; -1: there is none. */
static int
next_limit(struct pool *p)
{
	double first = INFINITY;
	const double now = om_now_ms();

	if (p->limit <= 0)
		return -1;
	for (size_t k = 0; k < p->nworker; k++) {
		struct worker *w = &p->worker[k];
		const double left = w->start + p->limit * 1e3 - now;
		if (left <= 0 && !w->late) {
			w->late = true;
			om_process_kill(&p->process[k]);
		}
		if (!w->late)
			first = fmin(first, left);
	}
	return isfinite(first) ? (int)fmin(first, 1e6) + 1 : -1;
}

static void
wait_some(struct pool *p, void (*done)(void *arg, size_t k), void *arg)
{
	const int ms = next_limit(p);

	if (!om_process_wait(p->process, p->nworker, ms, p->ready))
		return;
	for (size_t k = p->nworker; k-- > 0;) {      /* the last worker replaces one that has ended */
		if (!p->ready[k] || read_output(p, k))
			continue;
		const size_t job = p->worker[k].job;
		finish(p, k);
		done(arg, job);
	}
}

om_status
om_process_pool_run(om_session *s, om_arena *mem, om_job *job, size_t n, size_t many, double limit,
	void (*done)(void *arg, size_t k), void *arg, bool *is_job)
{
	struct pool p = {.session = s, .mem = mem, .job = job, .limit = limit};
	om_status st = OM_OK;
	size_t next = 0;
	int to;

	*is_job = om_process_is_job(&next, &to);
	if (*is_job) {
		if (next < n)
			job[next].run(job[next].arg, to);
		return OM_OK;
	}
	many = many < OM_PROCESSES ? many : OM_PROCESSES;
	p.worker = OM_NEWN(mem, struct worker, many);
	p.process = OM_NEWN(mem, struct om_process, many);
	p.ready = OM_NEWN(mem, bool, many);
	while (next < n || p.nworker) {
		while (st == OM_OK && next < n && p.nworker < many)
			st = start(&p, next++);
		if (st != OM_OK)
			next = n;
		if (p.nworker)
			wait_some(&p, done, arg);
	}
	return st;
}
