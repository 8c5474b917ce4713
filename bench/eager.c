/* SPDX-License-Identifier: Apache-2.0 */
/* The dynamic graph: what a call costs beside its arithmetic, and how a replay compares with a program that was compiled up front.
 *
 *	bench/eager
 *
 * Times are of the processor, the least of some runs, in turns.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "onnxmem/eager.h"
#include "tests/fixtures.h"

enum { CALLS = 64, CHAINS = 400, REPEATS = 15, LAYERS = 4, RUNS = 40 };

static void
check(om_session *s, om_status st)
{
	if (st == OM_OK)
		return;
	fprintf(stderr, "%s\n", om_message(s));
	exit(1);
}

static om_variable *
random_variable(om_session *s, om_eager *e, int rank, const int64_t *dim, uint64_t *seed)
{
	om_tensor t = {.type = OM_FLOAT32, .shape = om_shape_of(rank, dim)};
	const int64_t n = om_shape_count(&t.shape);
	float *x = malloc((size_t)n * sizeof *x);
	om_variable *v;

	for (int64_t k = 0; k < n; k++)
		x[k] = (float)(om_rng_unit(seed) - 0.5) / 8;
	t.data = x;
	check(s, om_variable_new(e, &t, &v));
	free(x);
	return v;
}

/* ---- The overhead of a call. ---- */

static double
time_chains(om_session *s, om_eager *e, om_variable *x, uint64_t *seed)
{
	static const char *const ops[] = {"Neg", "Abs"};
	const double start = om_cpu_ms();

	for (int c = 0; c < CHAINS; c++) {
		om_variable *h = om_variable_keep(x), *next;
		uint64_t bits = om_rng(seed);
		for (int k = 0; k < CALLS; k++, bits >>= 1) {
			check(s, om_eager_call(e, &next, ops[bits & 1], NULL, h));
			om_variable_free(h);
			h = next;
		}
		om_variable_free(h);
		check(s, om_eager_finish(e));
	}
	return (om_cpu_ms() - start) * 1e6 / (CHAINS * CALLS);
}

static void
measure_calls(om_session *s)
{
	static const char *const name[] = {"never deferred", "sequences that are new"};
	const int64_t four[] = {4};
	uint64_t seed = 1;

	for (int way = 0; way < 2; way++) {
		om_eager *e;
		double least = 1e9;
		check(s, om_eager_new(s, &(om_eager_options)OM_EAGER_OPTIONS(.no_replay = way == 0), &e));
		om_variable *x = random_variable(s, e, 1, four, &seed);
		for (int k = 0; k < REPEATS; k++) {
			const double t = time_chains(s, e, x, &seed);
			least = t < least ? t : least;
		}
		printf("call of 4 elements, %-24s %6.0f ns\n", name[way], least);
		om_variable_free(x);
		om_eager_free(e);
	}
}

/* ---- A perceptron. ---- */

static const int64_t width[LAYERS + 1] = {64, 256, 256, 256, 16}, batch = 32;

struct perceptron {
	om_session *s;
	om_eager *e;
	om_variable *x, *w[LAYERS];
};

static void
run_perceptron(struct perceptron *p)
{
	om_variable *h = om_variable_keep(p->x), *y;
	const om_tensor *t;

	for (int k = 0; k < LAYERS; k++) {
		check(p->s, om_eager_call(p->e, &y, "MatMul", NULL, h, p->w[k]));
		om_variable_free(h);
		h = y;
		if (k + 1 == LAYERS)
			break;
		check(p->s, om_eager_call(p->e, &y, "Relu", NULL, h));
		om_variable_free(h);
		h = y;
	}
	check(p->s, om_variable_read(h, &t));
	om_variable_free(h);
}

static void
make_perceptron(struct perceptron *p, om_session *s, const om_eager_options *o)
{
	uint64_t seed = 3;

	p->s = s;
	check(s, om_eager_new(s, o, &p->e));
	p->x = random_variable(s, p->e, 2, (int64_t[]){batch, width[0]}, &seed);
	for (int k = 0; k < LAYERS; k++)
		p->w[k] = random_variable(s, p->e, 2, width + k, &seed);
}

static void
free_perceptron(struct perceptron *p)
{
	om_variable_free(p->x);
	for (int k = 0; k < LAYERS; k++)
		om_variable_free(p->w[k]);
	om_eager_free(p->e);
}

/* The same, compiled. */
static bench
compile_perceptron(const struct perceptron *p)
{
	bench b = bench_open();
	char params[512], ops[1024];
	int n = snprintf(params, sizeof params, "%%h0: float32[%d,%d]", (int)batch, (int)width[0]), m = 0;
	const om_tensor *t;

	for (int k = 0; k < LAYERS; k++) {
		n += snprintf(params + n, sizeof params - (size_t)n, ", %%w%d: float32[%d,%d]", k, (int)width[k], (int)width[k + 1]);
		m += snprintf(ops + m, sizeof ops - (size_t)m, k + 1 < LAYERS ? "%%m%d = MatMul(%%h%d, %%w%d)\n%%h%d = Relu(%%m%d)\n"
			: "%%m%d = MatMul(%%h%d, %%w%d)\n", k, k, k, k + 1, k);
	}
	check(b.s, om_host_request(b.h, &(om_plan_request)OM_PLAN_REQUEST(.target = OM_TARGET_CPU, .threads = 1)));
	check(b.s, bench_plan(&b, om_printf(b.mem, "program \"t\" ir 10 opset 21\n^g(%s) {\n%sret %%m%d\n}\n", params, ops, LAYERS - 1),
		om_default_pipeline()));
	check(b.s, bench_exec(&b, &(om_exec_options)OM_EXEC_OPTIONS(.threads = 1)));
	for (int k = 0; k <= LAYERS; k++) {
		check(p->s, om_variable_read(k ? p->w[k - 1] : p->x, &t));
		check(b.s, om_exec_input(b.e, (uint32_t)k, t));
	}
	return b;
}

static double
least_of(double before, double start)
{
	const double t = (om_cpu_ms() - start) * 1e3 / RUNS;

	return t < before ? t : before;
}

static void
measure_perceptron(om_session *s)
{
	struct perceptron calls, replay;
	double least[3] = {1e9, 1e9, 1e9};

	make_perceptron(&calls, s, &(om_eager_options)OM_EAGER_OPTIONS(.no_replay = true));
	make_perceptron(&replay, s, NULL);
	bench b = compile_perceptron(&calls);
	for (int k = 0; k < 100; k++)
		run_perceptron(&replay);
	for (int r = 0; r < REPEATS; r++) {
		double start = om_cpu_ms();
		for (int k = 0; k < RUNS; k++)
			run_perceptron(&calls);
		least[0] = least_of(least[0], start);
		start = om_cpu_ms();
		for (int k = 0; k < RUNS; k++)
			run_perceptron(&replay);
		least[1] = least_of(least[1], start);
		start = om_cpu_ms();
		for (int k = 0; k < RUNS; k++)
			check(b.s, om_exec_run(b.e));
		least[2] = least_of(least[2], start);
	}
	printf("perceptron: calls %.1f us, replay %.1f us, compiled %.1f us (replay / compiled %.3f)\n", least[0], least[1], least[2],
		least[1] / least[2]);
	printf("perceptron: arena of the replay %llu bytes, of the compiled program %llu; peak of the pool with calls %llu\n",
		(unsigned long long)om_eager_get_stats(replay.e)->last_arena_bytes, (unsigned long long)om_exec_get_stats(b.e)->arena_bytes,
		(unsigned long long)om_eager_get_stats(calls.e)->peak_bytes);
	free_perceptron(&calls);
	free_perceptron(&replay);
	bench_close(&b);
}

int
main(void)
{
	om_session *s = om_session_new();

	measure_calls(s);
	measure_perceptron(s);
	om_session_free(s);
	return 0;
}
