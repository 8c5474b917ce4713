/* SPDX-License-Identifier: Apache-2.0 */
/* Times of a program, by an executor.
 *
 * Other programs of the machine only ever make a run longer, so the least of several times is taken: for each op of
 * its own.  A run as a whole is timed by the processor if there is one thread, else by the clock. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/guard.h"
#include "ir/type.h"
#include "onnxmem/executor.h"
#include "tune/tune.h"

enum { LEAST_RUNS = 3, MOST_RUNS = 200 };

/* Elements of an input: floating-point numbers differ, are not small, and are the same in all runs; others are zero, an index
 * that is always valid. */
static void
fill(const om_tensor *t, void *data, uint64_t bytes)
{
	memset(data, 0, bytes);
	if (t->type == OM_FLOAT32)
		for (uint64_t k = 0; k < bytes / sizeof(float); k++)
			((float *)data)[k] = (float)((k * 2654435761u >> 8) % 2048) / 1024 - 1;
}

static om_status
bind_input(om_session *s, om_exec *e, const om_value *v, uint32_t k, om_arena *mem)
{
	om_tensor t = {.type = v->type.elem, .shape = v->shape};
	uint64_t bytes;

	if (v->is_overridable)
		return OM_OK;
	if (v->data)
		return om_exec_input(e, k, v->data);
	if (v->type.kind != OM_TENSOR || t.type == OM_STRING || !om_tensor_bytes(t.type, &t.shape, &bytes))
		return om_fail(s, OM_UNSUPPORTED, "tune: elements of input %s cannot be made up: it is no tensor of numbers of known shape",
			v->name);
	void *data = om_alloc_try(mem, bytes ? bytes : 1);
	if (!data)
		return om_fail(s, OM_MEMORY, "tune: no memory for %llu bytes of input %s", (unsigned long long)bytes, v->name);
	fill(&t, data, bytes);
	t.data = data;
	return om_exec_input(e, k, &t);
}

static om_status
bind_all(om_session *s, om_exec *e, const om_prog *p, om_arena *mem)
{
	for (uint32_t k = 0; k < p->first->nparam; k++)
		OM_TRY(bind_input(s, e, p->first->param[k], k, mem));
	return OM_OK;
}

static double
time_now(uint32_t threads)
{
	return threads == 1 ? om_cpu_ms() : om_now_ms();
}

/* One run: what each op took beyond `before`. */
static om_status
time_run(om_exec *e, uint32_t threads, double *before, om_tune_times *t)
{
	const double start = time_now(threads);

	OM_TRY(om_exec_run(e));
	const double ms = time_now(threads) - start;
	const om_exec_stats *stats = om_exec_get_stats(e);
	t->ms = t->ms < 0 || ms < t->ms ? ms : t->ms;
	for (uint32_t k = 0; k < stats->nop; k++) {
		const uint32_t id = stats->op[k].op->id;
		const double more = stats->op[k].ms - before[id];
		before[id] = stats->op[k].ms;
		t->op_ms[id] = t->op_ms[id] < 0 || more < t->op_ms[id] ? more : t->op_ms[id];
	}
	return OM_OK;
}

/* The first run, which fills caches, does not count. */
static om_status
time_runs(om_exec *e, const om_prog *p, uint32_t threads, double seconds, om_arena *mem, om_tune_times *t)
{
	double *before = OM_NEWN(mem, double, (size_t)p->nop + 1);
	om_tune_times first = {-1, OM_NEWN(mem, double, (size_t)p->nop + 1)};
	const double end = om_now_ms() + seconds * 1e3;

	OM_TRY(time_run(e, threads, before, &first));
	for (unsigned k = 0; k < LEAST_RUNS || (k < MOST_RUNS && om_now_ms() < end); k++)
		OM_TRY(time_run(e, threads, before, t));
	return OM_OK;
}

static om_status
measure(om_session *s, const om_prog *p, uint32_t threads, double seconds, om_arena *mem, om_tune_times *t)
{
	const om_exec_options o = OM_EXEC_OPTIONS(.profile = true, .threads = threads);
	om_exec *e;

	t->ms = -1;
	for (uint32_t k = 0; k < p->nop; k++)
		t->op_ms[k] = -1;
	OM_TRY(om_exec_new(s, p, p->plan, &o, &e));
	om_status st = bind_all(s, e, p, mem);
	if (st == OM_OK)
		st = time_runs(e, p, threads, seconds, mem, t);
	om_exec_free(e);
	return st;
}

om_status
om_tune_by_executor(void *arg, om_session *s, const om_prog *p, double seconds, om_tune_times *t)
{
	om_arena *mem = om_arena_new();
	const om_status st = measure(s, p, *(const uint32_t *)arg, seconds, mem, t);

	om_arena_free(mem);
	return st;
}
