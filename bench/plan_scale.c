/* SPDX-License-Identifier: Apache-2.0 */
/* The growth of planning's time and memory with the number of ops.
 *
 *	bench/plan_scale [--least N] [--most N] [KIND...]
 *
 * `make bench-plan-scale` prints the table of docs/scaling.md.  Graphs of each kind
 * (tests/unit/graphs.c), of 1,000 (--least) to 300,000 (--most) ops, are planned as by `onnxmem plan IN
 * OUT`.  Each run is a process of its own.  Seconds are those of the processor, in all
 * threads; memory is the peak of the process; growth is the exponent from the size before:
 * 1 is linear, 2 is quadratic.
 */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "onnxmem/pass.h"
#include "onnxmem/plan.h"
#include "report/report.h"
#include "tests/bind.h"
#include "tests/unit/graphs.h"

/* What is timed: groups of passes, and what comes before and after them. */
enum phase { LOAD, SHAPES, SCHEDULE, STORAGE, PACK, WRITE, READ, REPORT, NPHASE };

static const char *const phase_name[NPHASE] = {"load", "shapes", "schedule", "storage", "pack", "write", "read", "report"};

struct point {
	double seconds[NPHASE], bytes;
	bool is_planned;
};

struct clock {
	struct point *p;
	double at;
};

static double
cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What was used since the last call belongs to `phase`. */
static void
lap(struct clock *c, enum phase phase)
{
	const double now = cpu_seconds();

	c->p->seconds[phase] += now - c->at;
	c->at = now;
}

static enum phase
phase_of(const char *pass)
{
	static const struct {
		const char *pass;
		enum phase phase;
	} named[] = {{"inline", SHAPES}, {"shapes", SHAPES}, {"fold", SHAPES}, {"prune", SHAPES}, {"schedule", SCHEDULE},
		{"pack", PACK}};

	for (size_t k = 0; k < sizeof named / sizeof *named; k++)
		if (strcmp(named[k].pass, pass) == 0)
			return named[k].phase;
	return STORAGE;
}

static void
after_pass(void *arg, const om_pass *pass, const om_run *r, const om_prog *p, double ms)
{
	(void)r, (void)p, (void)ms;
	lap(arg, phase_of(pass->name));
}

/* ---- A run. ---- */

static void
report(om_prog *p)
{
	om_arena *mem = om_arena_new();

	om_report_new(p, "", mem);
	om_arena_free(mem);
}

static om_status
plan(struct clock *c, om_session *s, om_model *m, om_prog *p, const char *out)
{
	om_host *h = om_host_new(s, NULL);

	om_host_hook(h, after_pass, c);
	om_status st = bind_rest(s, p, 1);
	lap(c, LOAD);
	if (st == OM_OK)
		st = om_host_run(h, p, om_default_pipeline());
	lap(c, PACK);
	if (st == OM_OK)
		st = om_model_annotate(s, m, p, OM_ANNOTATE_MODEL | OM_ANNOTATE_AUTO | OM_ANNOTATE_ORIGINAL);
	lap(c, WRITE);
	if (st == OM_OK)
		st = made_read_back(s, h, m);
	lap(c, READ);
	if (st == OM_OK)
		st = om_model_save(s, m, out);
	lap(c, WRITE);
	if (st == OM_OK)
		report(p);
	lap(c, REPORT);
	om_host_free(h);
	return st;
}

static om_status
measure(struct point *point, om_session *s, const char *in, const char *out)
{
	struct clock c = {point, cpu_seconds()};
	om_model *m = NULL;
	om_prog *loaded = NULL, *p = NULL;
	struct rusage usage;

	om_status st = om_model_load(s, in, &m);
	if (st == OM_OK)
		st = om_model_import(s, m, &loaded);
	if (st == OM_OK)
		st = om_prog_bind(s, loaded, NULL, &p);
	if (st == OM_OK)
		st = plan(&c, s, m, p, out);
	getrusage(RUSAGE_SELF, &usage);
	point->bytes = (double)usage.ru_maxrss * 1024;
	om_prog_free(p);
	om_prog_free(loaded);
	om_model_free(m);
	return st;
}

static bool
write_model(const char *kind, uint32_t n, const char *path)
{
	struct made b = made_large(kind, n);
	const om_status st = om_message_save(b.s, path, &b.m->base);

	if (st != OM_OK)
		fprintf(stderr, "%s\n", om_message(b.s));
	made_free(&b);
	return st == OM_OK;
}

static bool
run_child(const char *kind, uint32_t n, const char *in, const char *out, struct point *p)
{
	om_session *s = om_session_new();

	if (!p)
		return write_model(kind, n, in);
	p->is_planned = measure(p, s, in, out) == OM_OK;
	if (!p->is_planned)
		fprintf(stderr, "%s of %u ops: %s\n", kind, n, om_message(s));
	return true;
}

/* In a process of its own, whose peak of memory is not that of an earlier one: what is left in
 * `p`, or without it a file made. */
static bool
in_child(const char *kind, uint32_t n, const char *in, const char *out, struct point *p)
{
	int pipes[2], status = 1;
	struct point got = {0};

	fflush(NULL);
	if (pipe(pipes) != 0)
		exit(EXIT_FAILURE);
	const pid_t child = fork();
	if (child == 0) {
		const bool is_ok = run_child(kind, n, in, out, p ? &got : NULL);
		_exit(is_ok && write(pipes[1], &got, sizeof got) == (ssize_t)sizeof got ? 0 : 1);
	}
	close(pipes[1]);
	const bool is_read = child > 0 && read(pipes[0], &got, sizeof got) == (ssize_t)sizeof got;
	close(pipes[0]);
	if (child > 0)
		waitpid(child, &status, 0);
	if (p)
		*p = got;
	return is_read && status == 0;
}

static double
total(const struct point *p)
{
	double sum = 0;

	for (int k = 0; k < NPHASE; k++)
		sum += p->seconds[k];
	return sum;
}

static void
print_row(const char *kind, uint32_t n, const struct point *p, const struct point *last, uint32_t nlast)
{
	printf("| %s | %u |", kind, n);
	for (int k = 0; k < NPHASE; k++)
		printf(" %.3f |", p->seconds[k]);
	printf(" %.2f | %.0f |", total(p), p->bytes / 1e6);
	if (!p->is_planned)
		puts(" refused |");
	else if (nlast)
		printf(" %.2f |\n", log(total(p) / total(last)) / log((double)n / nlast));
	else
		puts(" |");
	fflush(stdout);
}

static bool
run_kind(const char *kind, uint32_t least, uint32_t most)
{
	static const uint32_t size[] = {1000, 3000, 10000, 30000, 100000, 300000};
	struct point last = {0};
	uint32_t nlast = 0;
	char in[] = "/tmp/onnxmem-scale-XXXXXX", out[sizeof in + 8];
	bool is_ok = true;

	const int fd = mkstemp(in);
	if (fd < 0)
		return false;
	close(fd);
	snprintf(out, sizeof out, "%s.out", in);
	for (size_t k = 0; is_ok && k < sizeof size / sizeof *size && size[k] <= most; k++) {
		struct point p = {0};
		if (size[k] < least)
			continue;
		is_ok = in_child(kind, size[k], in, out, NULL) && in_child(kind, size[k], in, out, &p) && p.is_planned;
		print_row(kind, size[k], &p, &last, nlast);
		last = p;
		nlast = size[k];
	}
	unlink(in);
	unlink(out);
	return is_ok;
}

/* The number after `option`, if that is the next argument. */
static uint32_t
number(int argc, char **argv, int *at, const char *option, uint32_t otherwise)
{
	if (*at + 1 >= argc || strcmp(argv[*at], option) != 0)
		return otherwise;
	*at += 2;
	return (uint32_t)strtoul(argv[*at - 1], NULL, 10);
}

int
main(int argc, char **argv)
{
	int at = 1;
	const uint32_t least = number(argc, argv, &at, "--least", 1000), most = number(argc, argv, &at, "--most", 300000);
	bool is_ok = true;

	fputs("| kind | ops |", stdout);
	for (int k = 0; k < NPHASE; k++)
		printf(" %s |", phase_name[k]);
	puts(" seconds | MB | growth |\n|---|---|---|---|---|---|---|---|---|---|---|---|");
	for (int k = at; k < argc; k++)
		is_ok &= run_kind(argv[k], least, most);
	for (unsigned k = 0; at == argc && made_kind(k); k++)
		is_ok &= run_kind(made_kind(k), least, most);
	return !is_ok;
}
