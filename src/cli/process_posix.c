/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that are forked; see process.h. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/process.h"

bool
om_process_is_job(size_t *k, int *to)
{
	(void)k;
	(void)to;
	return false;
}

static void
be_child(void (*run)(void *arg, int to), void *arg, int to)
{
	const int null = open("/dev/null", O_RDWR);

	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	run(arg, to);
	_exit(0);
}

/* Only the child holds the end of the pipe that is written. */
bool
om_process_start(struct om_process *p, size_t k, void (*run)(void *arg, int to), void *arg, const struct om_process *other, size_t n)
{
	int ends[2];

	(void)k;
	fflush(NULL);
	if (pipe(ends) != 0)
		return false;
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	const pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		for (size_t i = 0; i < n; i++)
			close(other[i].from);
		be_child(run, arg, ends[1]);
	}
	const int error = errno;
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		errno = error;
		return false;
	}
	*p = (struct om_process){pid, ends[0]};
	return true;
}

bool
om_process_wait(const struct om_process *p, size_t n, int ms, bool *ready)
{
	struct pollfd wait[OM_PROCESSES];

	for (size_t k = 0; k < n; k++)
		wait[k] = (struct pollfd){.fd = p[k].from, .events = POLLIN};
	if (poll(wait, n, ms) <= 0)
		return false;
	for (size_t k = 0; k < n; k++)
		ready[k] = wait[k].revents != 0;
	return true;
}

void
om_process_kill(const struct om_process *p)
{
	kill((pid_t)p->id, SIGKILL);
}

const char *
om_process_end(const struct om_process *p, om_arena *mem)
{
	int status = 0;

	close(p->from);
	while (waitpid((pid_t)p->id, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		return om_printf(mem, "crashed: %s", strsignal(WTERMSIG(status)));
	return status != 0 ? om_printf(mem, "ended with status %d", WEXITSTATUS(status)) : NULL;
}
