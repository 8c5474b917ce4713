/* SPDX-License-Identifier: Apache-2.0 */
/* The ONNX backend tests: a folder a test, with a model and what it gives on
 * some inputs.
 *
 *     run SUITES RESULTS [TEST...]
 *
 * Every test runs three ways: planned, twice in a row; without reuse; poisoned.
 * Each in a process of its own, so that one which crashes or hangs is one
 * failure.  RESULTS gets a line a test: what became of it, suite and name,
 * operator, version, and the reason: why it does not pass, or why with a wider
 * tolerance.  `conformance.test` compares that with what is recorded. */
#include <config.h>

#include <dirent.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance.h"
#include "ir/query.h"
#include "tests/bind.h"
#include "tests/fixtures.h"

enum { SECONDS = 20, MAX_TESTS = 20000, LINE = 2048 };

static const char *const suites[] = {"node", "simple", "pytorch-converted", "pytorch-operator"};

/* ---- One test. ---- */

struct test {
	bench b;
	const char *folder;
	char op[256];
	int version;
};

/* What is tested: the only operator, else what the folder is called after. */
static void
note_operator(struct test *t)
{
	const om_block *graph = t->b.p->first;
	const om_op *op = graph->first;

	t->version = om_opset_version(t->b.p, "");
	if (graph->nop == 1 && op)
		snprintf(t->op, sizeof t->op, "%s%s%s", op->domain, *op->domain ? "." : "", op->type);
	if (graph->nop == 1 && op && *op->domain)
		t->version = op->version;
}

static om_status
load_data(struct test *t, const char *set, om_data *in)
{
	const om_block *graph = t->b.p->first;

	for (uint32_t k = 0; k < graph->nparam; k++) {
		const char *path = om_printf(t->b.mem, "%s/%s/input_%u.pb", t->folder, set, k);
		if (access(path, R_OK) != 0)
			continue;
		OM_TRY(om_data_load(t->b.s, path, t->b.mem, &graph->param[k]->type, &in[k]));
		if (graph->param[k]->type.kind == OM_TENSOR)
			OM_TRY(bind_shape(t->b.s, t->b.p, graph->param[k]->name, &in[k].t.shape));
	}
	return OM_OK;
}

/* Numbers were drawn by who wrote the test; ours are others. */
static bool
is_random(const char *folder)
{
	return strstr(folder, "training_dropout") || strstr(folder, "bernoulli");
}

static om_status
check_results(struct test *t, const char *set, const om_data *in)
{
	const om_block *graph = t->b.p->first;
	unsigned n = 0;

	for (uint32_t k = 0; k < graph->nresult; k++) {
		const om_value *v = graph->result[k];
		const char *path = om_printf(t->b.mem, "%s/%s/output_%u.pb", t->folder, set, k);
		om_data want;
		if (access(path, R_OK) != 0)
			continue;
		OM_TRY(om_data_load(t->b.s, path, t->b.mem, &v->type, &want));
		if (is_random(t->folder))
			OM_TRY(om_data_check_random(t->b.s, strstr(t->folder, "dropout"), in,
				om_exec_result(t->b.e, k), &want));
		else
			OM_TRY(om_data_check(t->b.s, t->b.mem, t->folder, v, om_exec_result(t->b.e, k), &want));
		n++;
	}
	return n ? OM_OK : om_fail(t->b.s, OM_IO, "there is nothing to compare with");
}

static om_status
run_set(struct test *t, const char *set, const om_exec_options *o, unsigned runs)
{
	const om_block *graph;

	OM_TRY(bench_load(&t->b, om_printf(t->b.mem, "%s/model.onnx", t->folder)));
	note_operator(t);
	graph = t->b.p->first;
	om_data *in = OM_NEWN(t->b.mem, om_data, graph->nparam);
	OM_TRY(load_data(t, set, in));
	OM_TRY(om_host_run(t->b.h, t->b.p, om_default_pipeline()));
	OM_TRY(bench_exec(&t->b, o));
	for (uint32_t k = 0; k < graph->nparam; k++)
		if (in[k].is_given)
			OM_TRY(om_exec_input(t->b.e, k, &in[k].t));
	for (unsigned k = 0; k < runs; k++) {
		OM_TRY(om_exec_run(t->b.e));
		OM_TRY(check_results(t, set, in));
	}
	return OM_OK;
}

static om_status
run_ways(struct test *t, const char *set)
{
	static const int order[NWAY] = {PLANNED, SEPARATE, POISONED};

	for (int k = 0; k < NWAY; k++) {
		const om_status st = run_set(t, set, &ways[order[k]], order[k] == PLANNED ? 2 : 1);
		bench_clear(&t->b);
		if (st != OM_OK && k > 0)
			return om_note(t->b.s, st, "%s", way_text[order[k]]);
		OM_TRY(st);
	}
	return OM_OK;
}

static om_status
run_sets(struct test *t)
{
	DIR *d = opendir(t->folder);
	om_status st = OM_OK;

	if (!d)
		return om_fail(t->b.s, OM_IO, "%s cannot be read", t->folder);
	for (struct dirent *e; st == OM_OK && (e = readdir(d));)
		if (strncmp(e->d_name, "test_data_set_", 14) == 0)
			st = run_ways(t, e->d_name);
	closedir(d);
	return st;
}

/* ---- A process for it. ---- */

static const char *
verdict(om_status st)
{
	return st == OM_OK ? "pass" : st == OM_UNSUPPORTED ? "unsupported" : "fail";
}

static void
child(const bench *b, const char *folder, int to)
{
	struct test t = {.b = *b, .folder = folder};
	FILE *out = fdopen(to, "w");

	alarm(SECONDS);
	const om_status st = run_sets(&t);
	const char *passed = om_data_wider(folder);
	char *why = om_strdup(t.b.mem, st != OM_OK ? om_message(t.b.s) : passed ? passed : "");
	for (char *at = why; *at; at++)
		if (*at == '\n' || *at == '\t')
			*at = ' ';
	fprintf(out, "%s\t%s\t%d\t%s\n", verdict(st), t.op, t.version, why);
	fclose(out);
	_exit(0);
}

/* The line of the test, but for its name, in `line`. */
static void
run_test(const bench *b, const char *folder, char line[LINE])
{
	int fd[2], status = 0;

	if (pipe(fd) != 0)
		abort();
	const pid_t pid = fork();
	if (pid == 0) {
		close(fd[0]);
		child(b, folder, fd[1]);
	}
	close(fd[1]);
	FILE *in = fdopen(fd[0], "r");
	const bool got = fgets(line, LINE, in);
	fclose(in);
	waitpid(pid, &status, 0);
	if (!got && WIFSIGNALED(status))
		snprintf(line, LINE, "fail\t\t0\t%s\n", WTERMSIG(status) == SIGALRM ? "took too long" : "crashed");
	else if (!got || status != 0)
		snprintf(line, LINE, "fail\t\t0\tended with status %d\n", status);
	line[strcspn(line, "\n")] = '\0';
}

/* ---- All of them. ---- */

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t
list_tests(om_arena *mem, const char *folder, char **name)
{
	DIR *d = opendir(folder);
	size_t n = 0;

	if (!d)
		return 0;
	for (struct dirent *e; n < MAX_TESTS && (e = readdir(d));)
		if (access(om_printf(mem, "%s/%s/model.onnx", folder, e->d_name), R_OK) == 0)
			name[n++] = om_strdup(mem, e->d_name);
	closedir(d);
	qsort(name, n, sizeof *name, by_text);
	return n;
}

static bool
is_wanted(const char *name, char **only, int nonly)
{
	for (int k = 0; k < nonly; k++)
		if (strcmp(only[k], name) == 0)
			return true;
	return nonly == 0;
}

static void
run_suite(const bench *b, const char *root, const char *suite, char **only,
	int nonly, FILE *out)
{
	char **name = OM_NEWN(b->mem, char *, MAX_TESTS), line[LINE];
	const char *folder = om_printf(b->mem, "%s/%s", root, suite);
	const size_t n = list_tests(b->mem, folder, name);

	for (size_t k = 0; k < n; k++) {
		if (!is_wanted(name[k], only, nonly))
			continue;
		run_test(b, om_printf(b->mem, "%s/%s", folder, name[k]), line);
		char *rest = line + strcspn(line, "\t");
		fprintf(out, "%.*s\t%s/%s%s\n", (int)(rest - line), line, suite, name[k], rest);
		fflush(out);
	}
}

int
main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: %s SUITES RESULTS [TEST...]\n", argv[0]);
		return 2;
	}
	FILE *out = strcmp(argv[2], "-") == 0 ? stdout : fopen(argv[2], "w");
	if (!out) {
		perror(argv[2]);
		return 1;
	}
	bench b = bench_open();
	for (size_t k = 0; k < sizeof suites / sizeof suites[0]; k++)
		run_suite(&b, argv[1], suites[k], argv + 3, argc - 3, out);
	bench_close(&b);
	return fclose(out) != 0;
}
