/* SPDX-License-Identifier: Apache-2.0 */
/* What a command takes: wall time, processor time, peak resident memory.
 *
 *	bench/spent FILE COMMAND [ARGUMENT...]
 *
 * Writes a line to FILE: milliseconds by the clock, milliseconds of the processor, KiB.  A small program
 * of its own, because the peak of a child includes the memory of its parent at the fork.  Exits as COMMAND does.
 */
#define _DEFAULT_SOURCE 1

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double
ms_of(struct timeval t)
{
	return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

static int
write_line(const char *path, double wall, const struct rusage *u)
{
	FILE *to = fopen(path, "w");

	if (!to) {
		perror(path);
		return EXIT_FAILURE;
	}
	fprintf(to, "%.3f %.3f %ld\n", wall, ms_of(u->ru_utime) + ms_of(u->ru_stime), u->ru_maxrss);
	return fclose(to) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
	struct rusage used;
	int status;

	if (argc < 3) {
		fprintf(stderr, "usage: spent FILE COMMAND [ARGUMENT...]\n");
		return 2;
	}
	const double start = now_ms();
	const pid_t child = fork();
	if (child == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0) {
		perror("spent");
		return EXIT_FAILURE;
	}
	const double wall = now_ms() - start;
	getrusage(RUSAGE_CHILDREN, &used);
	if (write_line(argv[1], wall, &used) != EXIT_SUCCESS)
		return EXIT_FAILURE;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
