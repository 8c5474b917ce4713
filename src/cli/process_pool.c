/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of processes.  Each writes to a pipe; the pool polls all pipes until one is readable or
 * the first time limit expires.  End of file means that the process has ended, because only that
 * process holds the write end. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/process_pool.h"

enum { MAX_OUTPUT = 1 << 24 };

struct worker {
	size_t job;
	pid_t pid;
	int from;
	double start;
	bool late;
	size_t cap;
};

struct pool {
	om_session *session;
	om_arena *mem;
	om_job *job;
	struct worker *worker;
	struct pollfd *wait;
	size_t nworker;
	double limit;
};

/* The child keeps standard error, for the message of a crash. */
static void
be_child(const om_job *job, int to)
{
	const int null = open("/dev/null", O_RDWR);

	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	job->run(job->arg, to);
	_exit(0);
}

static om_status
start(struct pool *p, size_t k)
{
	struct worker *w = &p->worker[p->nworker];
	int ends[2];

	fflush(NULL);
	if (pipe(ends) != 0)
		return om_fail(p->session, OM_IO, "no pipe for a process: %s", strerror(errno));
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	const pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		for (size_t i = 0; i < p->nworker; i++)
			close(p->worker[i].from);
		be_child(&p->job[k], ends[1]);
	}
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return om_fail(p->session, OM_IO, "a process could not be started: %s", strerror(errno));
	}
	*w = (struct worker){.job = k, .pid = pid, .from = ends[0], .start = om_now_ms()};
	p->nworker++;
	return OM_OK;
}

/* False at the end of its output. */
static bool
read_output(struct pool *p, struct worker *w)
{
	om_job *job = &p->job[w->job];
	char piece[4096];
	const ssize_t n = read(w->from, piece, sizeof piece);

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
	int status = 0;

	close(w->from);
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		;
	job->ms = om_now_ms() - w->start;
	if (w->late)
		job->died = om_printf(p->mem, "took longer than %g seconds", p->limit);
	else if (WIFSIGNALED(status))
		job->died = om_printf(p->mem, "crashed: %s", strsignal(WTERMSIG(status)));
	else if (status != 0)
		job->died = om_printf(p->mem, "ended with status %d", WEXITSTATUS(status));
	*w = p->worker[--p->nworker];
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
			kill(w->pid, SIGKILL);
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

	for (size_t k = 0; k < p->nworker; k++)
		p->wait[k] = (struct pollfd){.fd = p->worker[k].from, .events = POLLIN};
	if (poll(p->wait, p->nworker, ms) <= 0)
		return;
	for (size_t k = p->nworker; k-- > 0;) {      /* the last worker replaces one that has ended */
		if (!p->wait[k].revents || read_output(p, &p->worker[k]))
			continue;
		const size_t job = p->worker[k].job;
		finish(p, k);
		done(arg, job);
	}
}

om_status
om_process_pool_run(om_session *s, om_arena *mem, om_job *job, size_t n, size_t many, double limit,
	void (*done)(void *arg, size_t k), void *arg)
{
	struct pool p = {.session = s, .mem = mem, .job = job, .limit = limit};
	om_status st = OM_OK;
	size_t next = 0;

	p.worker = OM_NEWN(mem, struct worker, many);
	p.wait = OM_NEWN(mem, struct pollfd, many);
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
