/* SPDX-License-Identifier: Apache-2.0 */
/* The overhead of a loop iteration besides its kernels.
 * 	bench/loop ITERATIONS MODEL...
 *
 * `make bench-loop` runs it, and ONNX Runtime for comparison.  Each model has a
 * scalar input `trips` and is planned as by `onnxmem plan`. CPU time is measured,
 * the best of a few runs.  The kernels alone: those of the bodies are called on
 * memory of their own, one after the other, as often as they ran in a run.
 *
 * One line per model: its name, ops per iteration, nanoseconds of an iteration, of
 * its kernels alone, and of the rest, bytes that loops and branches copied per
 * iteration, and bytes of the arena.
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/arena_internal.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"
#include "onnxmem/kernel.h"
#include "tests/fixtures.h"

enum { RUNS = 5, MAX_KERNELS = 64 };

struct kernel {
	om_op_context call;
	uint64_t calls;           /* in one run */
};

struct loop {
	bench on;                 /* with one model */
	om_arena *call;           /* of a kernel */
	int64_t iterations;
	struct kernel kernel[MAX_KERNELS];
	uint32_t nkernel;
};

static double
cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- Running. ---- */

static om_status
give_inputs(struct loop *b, om_exec *e)
{
	const om_block *graph = b->on.p->first;

	for (uint32_t k = 0; k < graph->nparam; k++) {
		const om_value *v = graph->param[k];
		om_tensor t = {.type = v->type.elem, .shape = v->shape, .data = &b->iterations};
		const int64_t n = om_shape_count(&v->shape);
		if (v->type.elem == OM_FLOAT32) {
			float *x = OM_NEWN(b->on.mem, float, (size_t)n);
			for (int64_t i = 0; i < n; i++)
				x[i] = (float)(i % 7) / 16 - 0.25f;
			t.data = x;
		}
		OM_TRY(om_exec_input(e, k, &t));
	}
	return OM_OK;
}

static om_status
best_run(om_exec *e, double *ms)
{
	for (int k = 0; k < RUNS; k++) {
		const double start = cpu_ms();
		OM_TRY(om_exec_run(e));
		const double took = cpu_ms() - start;
		*ms = k == 0 || took < *ms ? took : *ms;
	}
	return OM_OK;
}

/* ---- The kernels alone. ---- */

static void *
elements(struct loop *b, const om_tensor *t)
{
	uint64_t bytes = 0;

	om_tensor_bytes(t->type, &t->shape, &bytes);
	if (t->data && !t->splat)
		return t->data;
	return OM_NEWN(b->on.mem, double, bytes / sizeof(double) + 1);
}

static om_status
add_kernel(struct loop *b, const om_op *op, uint64_t calls)
{
	struct kernel *k = &b->kernel[b->nkernel];

	if (b->nkernel == MAX_KERNELS)
		return OM_OK;
	om_op_context_init(&k->call, b->on.s, b->on.mem, op);
	k->call.mem = b->call;
	om_tensor *in = (om_tensor *)k->call.in;
	for (uint32_t i = 0; i < op->nin; i++)
		if (op->in[i])
			in[i].data = elements(b, &in[i]);
	for (uint32_t i = 0; i < op->nout; i++)
		if (op->out[i])
			k->call.out[i].data = elements(b, &k->call.out[i]);
	if (om_op_check_shapes(&k->call) != OM_OK)  /* zeros make other shapes */
		return OM_OK;
	k->calls = calls;
	k->call.mem = b->on.mem;
	OM_TRY(om_kernel_bind(&k->call, NULL));
	k->call.mem = b->call;
	k->call.scratch = OM_NEWN(b->on.mem, double, om_kernel_workspace(&k->call) / sizeof(double) + 1);
	b->nkernel++;
	return OM_OK;
}

static bool
is_in_body(const om_op *op)
{
	return op->block->owner && op->opdef && op->opdef->control == OM_PLAIN;
}

/* As counted by the profile of a run. */
static om_status
find_kernels(struct loop *b, const om_exec *e)
{
	const uint32_t n = om_exec_get_stats(e)->nop;
	const om_exec_op *ops = om_exec_get_stats(e)->op;

	b->nkernel = 0;
	for (uint32_t k = 0; k < n; k++)
		if (is_in_body(ops[k].op))
			OM_TRY(add_kernel(b, ops[k].op, ops[k].calls));
	return OM_OK;
}

static om_status
call_kernels(struct loop *b)
{
	uint64_t most = 0;

	for (uint32_t k = 0; k < b->nkernel; k++)
		most = b->kernel[k].calls > most ? b->kernel[k].calls : most;
	for (uint64_t i = 0; i < most; i++)
		for (uint32_t k = 0; k < b->nkernel; k++)
			if (i < b->kernel[k].calls) {
				OM_TRY(om_kernel_run(&b->kernel[k].call));
				om_arena_clear(b->call);
			}
	return OM_OK;
}

static om_status
best_kernels(struct loop *b, double *ms)
{
	for (int k = 0; k < RUNS; k++) {
		const double start = cpu_ms();
		OM_TRY(call_kernels(b));
		const double took = cpu_ms() - start;
		*ms = k == 0 || took < *ms ? took : *ms;
	}
	return OM_OK;
}

/* ---- One model. ---- */

static om_status
measure(struct loop *b, const om_exec_options *o, double *ms, om_exec_stats *stats)
{
	om_exec *e;

	OM_TRY(om_exec_new(b->on.s, b->on.p, b->on.p->plan, o, &e));
	om_status st = give_inputs(b, e);
	if (st == OM_OK && o->profile) {
		st = om_exec_run(e);
		if (st == OM_OK)
			st = find_kernels(b, e);
	} else if (st == OM_OK) {
		st = best_run(e, ms);
		*stats = *om_exec_get_stats(e);
	}
	om_exec_free(e);
	return st;
}

static om_status
measure_model(struct loop *b, const char *path)
{
	static const om_exec_options plain = OM_EXEC_OPTIONS(), profiled = OM_EXEC_OPTIONS(.profile = true);
	double ms = 0, kernel_ms = 0;
	om_exec_stats stats = {0};
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	OM_TRY(om_host_run(b->on.h, b->on.p, om_default_pipeline()));
	OM_TRY(measure(b, &plain, &ms, &stats));
	OM_TRY(measure(b, &profiled, NULL, NULL));
	OM_TRY(best_kernels(b, &kernel_ms));
	const double n = (double)b->iterations;
	printf("%.*s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%" PRIu64 "\n", (int)strcspn(name, "."), name,
		(double)stats.steps / n, ms * 1e6 / n, kernel_ms * 1e6 / n, (ms - kernel_ms) * 1e6 / n,
		(double)stats.copied_bytes / n, stats.arena_bytes);
	fflush(stdout);
	return OM_OK;
}

static bool
bench_file(struct loop *b, const char *path)
{
	b->on = bench_open();
	b->call = om_arena_new();
	om_status st = bench_load(&b->on, path);
	if (st == OM_OK)
		st = measure_model(b, path);
	if (st != OM_OK)
		fprintf(stderr, "bench/loop: %s: %s\n", path, om_message(b->on.s));
	om_arena_free(b->call);
	bench_close(&b->on);
	return st == OM_OK;
}

int
main(int argc, char **argv)
{
	struct loop b = {.iterations = argc > 1 ? strtoll(argv[1], NULL, 10) : 0};
	bool good = true;

	if (b.iterations < 1 || argc < 3) {
		fputs("usage: bench/loop ITERATIONS MODEL...\n", stderr);
		return 2;
	}
	for (int k = 2; k < argc; k++)
		good &= bench_file(&b, argv[k]);
	return !good;
}
