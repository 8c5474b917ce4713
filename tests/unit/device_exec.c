/* SPDX-License-Identifier: Apache-2.0 */
/* Programs on the simulated device: random ones compute on several streams what the processor computes, exactly; and what
 * is left out of their order, or of their copies, is found. */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/shape.h"
#include "exec/device.h"
#include "kernels/sim/sim.h"
#include "onnxmem/builder.h"
#include "onnxmem/trainer.h"
#include "drawn_text.h"
#include "unit.h"

#define PLAN "schedule=original,liveness,views,alias-io=declared,inplace,loops,pack"
#define PLACE "inline,shapes,fold,prune,place-devices:device=sim:place=all,"

enum { OPS = 20, ROWS = 3, COLUMNS = 8, ELEMENTS = ROWS * COLUMNS };

/* ---- Random programs: of operators whose results are exact, so that all devices have the same bits. ---- */

static void
fill_inputs(float x[2][ELEMENTS], int run)
{
	for (int k = 0; k < ELEMENTS; k++) {
		x[0][k] = (float)((k + run) % 11 - 5);
		x[1][k] = (float)((k + 3 * run) % 7) / 4 - 1;
	}
}

static om_tensor
tensor_of(float *x)
{
	const int64_t dim[2] = {ROWS, COLUMNS};

	return (om_tensor){.type = OM_FLOAT32, .shape = om_shape_of(2, dim), .data = x};
}

/* Run number `run` of an executor has inputs of its own, which stay where they are: it may run again. */
static om_status
run_once(bench *b, int run)
{
	enum { RUNS = 4 };
	static float of_run[RUNS][2][ELEMENTS];
	float (*x)[ELEMENTS] = of_run[run % RUNS];
	const om_tensor in[2] = {tensor_of(x[0]), tensor_of(x[1])};

	fill_inputs(x, run);
	return bench_run(b, in, 2);
}

static om_status
run_on(bench *b, const om_exec_options *o)
{
	OM_TRY(bench_exec(b, o));
	return run_once(b, 0);
}

/* All results after one another. */
static void
results(const bench *b, float out[3][ELEMENTS])
{
	for (uint32_t k = 0; k < 3; k++)
		memcpy(out[k], om_exec_result(b->e, k)->data, sizeof out[k]);
}

static om_status
plan_with(bench *b, const char *text, const char *passes, om_plan_request r)
{
	const om_arena_spec arenas[] = {{.name = "host", .device = "cpu"}, {.name = "sim", .device = "sim", .align = 256}};

	r.arena = arenas;
	r.narena = 2;
	r.target = OM_TARGET_CPU;
	OM_TRY(om_host_request(b->h, &r));
	return bench_plan(b, text, passes);
}

static om_status
plan_for(bench *b, const char *text, const char *passes, bool parallel)
{
	return plan_with(b, text, passes, (om_plan_request)OM_PLAN_REQUEST(.parallel_safe = parallel));
}

static bool
computes(bench *b, const char *text, const char *passes, bool parallel, const om_exec_options *o, float out[3][ELEMENTS])
{
	if (!is_ok(b->s, plan_for(b, text, passes, parallel)) || !is_ok(b->s, run_on(b, o))) {
		printf("# in: %s\n", text);
		return false;
	}
	results(b, out);
	return true;
}

/* Zeros may differ in their sign: Max and Min of both return either. */
static bool
is_same(float want[3][ELEMENTS], float got[3][ELEMENTS])
{
	bool same = true;

	for (int r = 0; r < 3; r++)
		for (int k = 0; k < ELEMENTS; k++)
			same &= want[r][k] == got[r][k];
	return same;
}

static void
random_programs_compute_the_same(void)
{
	enum { PROGRAMS = 150 };
	uint64_t rng = 11;
	int on_device = 0, waits = 0;
	bench b = bench_open();
	struct unit_text t;
	float want[3][ELEMENTS], got[3][ELEMENTS];
	char options[32];

	for (int k = 0; k < PROGRAMS; k++) {
		unit_draw(&t, &rng, OPS, ROWS, COLUMNS, false);
		CU_ASSERT(computes(&b, t.at, "inline,shapes,fold,prune," PLAN, false, &(om_exec_options)OM_EXEC_OPTIONS(.precise = true), want));
		bench_clear(&b);
		snprintf(options, sizeof options, "seed=%d", k);
		const om_exec_options o = OM_EXEC_OPTIONS(.device = om_sim_ops(), .device_options = options, .streams = (uint32_t)(k % 5),
			.poison = k % 8 == 7, .no_reuse = k % 8 == 6);
		CU_ASSERT(computes(&b, t.at, PLACE PLAN, k % 3 == 0, &o, got));
		CU_ASSERT(is_same(want, got));
		for (uint32_t i = 0; b.e && b.e->device && i < b.p->nop; i++) {
			on_device += b.e->device->streams.op[i].stream > 0;
			waits += (int)b.e->device->streams.op[i].nwait;
		}
		bench_clear(&b);
	}
	printf("# %d programs: %d ops on the device, %d waits\n", PROGRAMS, on_device, waits);
	CU_ASSERT(on_device > 5 * PROGRAMS);
	CU_ASSERT(waits > PROGRAMS);
	bench_close(&b);
}

/* ---- What is left out. ---- */

static void
drop(om_stream_op *o, uint32_t k)
{
	uint32_t *rest = (uint32_t *)(uintptr_t)o->wait;

	memmove(rest + k, rest + k + 1, (o->nwait - k - 1) * sizeof *rest);
	o->nwait--;
}

/* The wait number `n` of all ops; NULL: there are fewer. */
static om_stream_op *
find_wait(om_exec *e, uint32_t n, uint32_t *k)
{
	for (uint32_t i = 0; e->order[i]; i++) {
		om_stream_op *o = &e->device->streams.op[e->order[i]->id];
		if (n < o->nwait) {
			*k = n;
			return o;
		}
		n -= o->nwait;
	}
	return NULL;
}

/* One more run, in which the clocks of the device look. */
static bool
fails_in_run(bench *b)
{
	return om_exec_run(b->e) != OM_OK;
}

/* Each wait is left out, one after the other.  The check of streams must refuse all of them.  Those between streams of the
 * device are races there too; where the host does not wait, only the check can know. */
static void
dropped_waits_are_refused(void)
{
	enum { PROGRAMS = 25 };
	uint64_t rng = 5;
	int dropped = 0, refused = 0, of_device = 0, races = 0;
	bench b = bench_open();
	struct unit_text t;
	float got[3][ELEMENTS];

	for (int p = 0; p < PROGRAMS; p++) {
		unit_draw(&t, &rng, OPS, ROWS, COLUMNS, false);
		for (uint32_t n = 0, more = 1; more; n++) {
			const om_exec_options o = OM_EXEC_OPTIONS(.device = om_sim_ops(), .device_options = "seed=1", .streams = 3, .no_capture = true);
			uint32_t k;
			CU_ASSERT_FATAL(computes(&b, t.at, PLACE PLAN, false, &o, got));
			om_stream_op *at = b.e->device ? find_wait(b.e, n, &k) : NULL;
			more = at != NULL;
			if (at) {
				const bool is_of_device = at->stream > 0;
				drop(at, k);
				const om_status st = om_streams_verify(b.s, b.p, b.p->plan, &b.e->device->streams);
				refused += st == OM_BADPLAN && strstr(om_message(b.s), "may still");
				dropped++;
				of_device += is_of_device;
				races += is_of_device && fails_in_run(&b) && strstr(om_message(b.s), "no event orders them");
			}
			bench_clear(&b);
		}
	}
	printf("# of %d dropped waits %d are refused; of %d between streams %d are races\n", dropped, refused, of_device, races);
	CU_ASSERT(dropped > PROGRAMS);
	CU_ASSERT_EQUAL(refused, dropped);
	CU_ASSERT(of_device > PROGRAMS / 2);
	CU_ASSERT_EQUAL(races, of_device);
	bench_close(&b);
}

/* A copy is left out: its reader reads the value that would have been copied. */
static void
dropped_copies_are_refused(void)
{
	enum { PROGRAMS = 25 };
	const om_arena_spec arenas[] = {{.name = "host", .device = "cpu"}, {.name = "sim", .device = "sim", .align = 256}};
	const om_plan_request r = OM_PLAN_REQUEST(.arena = arenas, .narena = 2, .target = OM_TARGET_CPU);
	uint64_t rng = 9;
	int dropped = 0, refused = 0;
	bench b = bench_open();
	struct unit_text t;

	CU_ASSERT_FATAL(is_ok(b.s, om_host_request(b.h, &r)));
	for (int p = 0; p < PROGRAMS; p++) {
		unit_draw(&t, &rng, OPS, ROWS, COLUMNS, false);
		for (uint32_t n = 0, more = 1; more; n++) {
			uint32_t at = 0;
			CU_ASSERT_FATAL(is_ok(b.s, bench_plan(&b, t.at, "inline,shapes,fold,prune,place-devices:device=sim:place=all")));
			more = 0;
			for (om_op *op = b.p->first->first; op && !more; op = op->next) {
				if (op->opdef->copies == OM_COPIES_NOTHING || at++ != n)
					continue;
				om_value_replace(op->out[0], op->in[0]);
				more = 1;
			}
			if (more) {
				om_status st = om_host_run(b.h, b.p, "prune," PLAN);
				st = st == OM_OK ? om_plan_verify(b.s, b.p, b.p->plan) : st;
				dropped++;
				refused += st != OM_OK && strstr(om_message(b.s), "memory of");
			}
			bench_clear(&b);
		}
	}
	printf("# of %d dropped copies %d are refused\n", dropped, refused);
	CU_ASSERT(dropped > 2 * PROGRAMS);
	CU_ASSERT_EQUAL(refused, dropped);
	bench_close(&b);
}

/* ---- Captures. ---- */

/* Each run has other inputs in other memory, and one of them an output there, too. */
static void
captured_runs_compute_the_same(void)
{
	enum { PROGRAMS = 60, RUNS = 4 };
	uint64_t rng = 21, commands = 0, replays = 0;
	bench b = bench_open(), plain = bench_open();
	struct unit_text t;
	float want[3][ELEMENTS], got[3][ELEMENTS], bound[ELEMENTS];
	char options[32];

	for (int k = 0; k < PROGRAMS; k++) {
		unit_draw(&t, &rng, OPS, ROWS, COLUMNS, false);
		snprintf(options, sizeof options, "seed=%d", k);
		om_exec_options o = OM_EXEC_OPTIONS(.device = om_sim_ops(), .device_options = options, .streams = (uint32_t)(k % 5),
			.no_reuse = k % 8 == 6);
		CU_ASSERT_FATAL(is_ok(b.s, plan_for(&b, t.at, PLACE PLAN, k % 3 == 0)) && is_ok(b.s, bench_exec(&b, &o)));
		o.no_capture = true;
		CU_ASSERT_FATAL(is_ok(plain.s, plan_for(&plain, t.at, PLACE PLAN, k % 3 == 0)) && is_ok(plain.s, bench_exec(&plain, &o)));
		for (int run = 0; run < RUNS; run++) {
			CU_ASSERT(is_ok(b.s, om_exec_output(b.e, 0, run == 2 ? bound : NULL, sizeof bound)));
			CU_ASSERT(is_ok(b.s, run_once(&b, run)) && is_ok(plain.s, run_once(&plain, run)));
			results(&plain, want);
			results(&b, got);
			CU_ASSERT(memcmp(want, got, sizeof want) == 0);
		}
		const om_exec_stats *s = om_exec_get_stats(b.e);
		commands += s->captured_commands;
		replays += s->replays;
		CU_ASSERT_EQUAL(s->replays % RUNS, 0);
		CU_ASSERT_EQUAL(om_exec_get_stats(plain.e)->replays, 0);
		bench_clear(&b);
		bench_clear(&plain);
	}
	printf("# %d programs: %llu commands captured, %llu replays\n", PROGRAMS, (unsigned long long)commands, (unsigned long long)replays);
	CU_ASSERT(commands > (uint64_t)(4 * PROGRAMS));
	CU_ASSERT(replays > (uint64_t)(RUNS * PROGRAMS / 2));
	bench_close(&b);
	bench_close(&plain);
}

/* What is wrong in the captured runs of a device: the commands of one kind are counted, and number `at` is another one. */
static struct {
	int waits, launches;     /* so far */
	int at;
	char *kept;              /* the address that the launch had when it ran for the first time */
} wrong;

/* A wait inside of a capture is left out; and one outside, by which streams are joined before captured commands and go on after them. */
static om_device_status
leave_out_inside(om_stream *s, om_event *e)
{
	return s->device->capture && wrong.waits++ == wrong.at ? OM_DEVICE_OK : om_sim_ops()->wait(s, e);
}

static om_device_status
leave_out_outside(om_stream *s, om_event *e)
{
	return !s->device->capture && wrong.waits++ == wrong.at ? OM_DEVICE_OK : om_sim_ops()->wait(s, e);
}

/* A library that keeps an address. */
static om_device_status
write_kept(om_device_call *c)
{
	const om_arg *a = c->user;

	if (!wrong.kept)
		wrong.kept = c->pointer(c->device, a->mem, a->at);
	memset(wrong.kept, 0, a->bytes);
	return OM_DEVICE_OK;
}

/* Captured launch number `wrong.at` sets its output to zero where it was in the first run. */
static om_device_status
launch_kept(om_stream *s, om_device_code *code, const om_grid *g, const om_arg *args, uint32_t nargs, uint32_t tag)
{
	if (!s->device->capture || wrong.launches++ != wrong.at)
		return om_sim_ops()->launch(s, code, g, args, nargs, tag);
	for (uint32_t k = 0; k < nargs; k++)
		if (args[k].kind == OM_ARG_OUT || args[k].kind == OM_ARG_INOUT)
			return om_sim_ops()->call(s, write_kept, (void *)&args[k], args, nargs, tag);
	return OM_DEVICE_ARGUMENT;
}

/* Number `at` of the waits or launches of the device is wrong; is that refused in one of two runs, and do the results agree if not?
 * False: there are fewer of them. */
static bool
is_wrong_at(bench *b, const char *text, const om_device_ops *ops, int at, const int *seen, int *refused, int *needless, const char *why)
{
	const om_exec_options o = OM_EXEC_OPTIONS(.device = ops, .device_options = "seed=1", .streams = 3);
	float want[3][ELEMENTS], got[3][ELEMENTS];

	CU_ASSERT_FATAL(computes(b, text, PLACE PLAN, false, &(om_exec_options)OM_EXEC_OPTIONS(.device = om_sim_ops()), want));
	wrong.waits = wrong.launches = 0;
	wrong.kept = NULL;
	wrong.at = at;
	CU_ASSERT_FATAL(is_ok(b->s, bench_exec(b, &o)));
	om_status st = run_once(b, 0);
	if (st == OM_OK)
		st = run_once(b, 0);
	const bool is_there = *seen > at;
	if (is_there && st != OM_OK) {
		CU_ASSERT_PTR_NOT_NULL(strstr(om_message(b->s), why));
		++*refused;
	} else if (is_there) {
		results(b, got);
		CU_ASSERT(is_same(want, got));
		++*needless;
	}
	bench_clear(b);
	return is_there;
}

enum { CAPTURED_PROGRAMS = 12 };

/* Random programs on a device that does one command of a kind wrongly, each in turn. */
static void
wrong_at_each(uint64_t rng, const om_device_ops *ops, int *counter, int *refused, int *needless, const char *why)
{
	bench b = bench_open();
	struct unit_text t;

	for (int p = 0; p < CAPTURED_PROGRAMS; p++) {
		unit_draw(&t, &rng, OPS, ROWS, COLUMNS, false);
		for (int at = 0; is_wrong_at(&b, t.at, ops, at, counter, refused, needless, why); at++)
			;
	}
	bench_close(&b);
}

/* Each wait of captured runs is left out.  One is needless where another one that is not left out gives the same order: outside of
 * captures where a stream has nothing to wait for. */
static void
drop_waits(const char *where, om_device_status (*leave_out)(om_stream *, om_event *), int *refused, int *needless)
{
	om_device_ops ops = *om_sim_ops();

	ops.wait = leave_out;
	wrong_at_each(5, &ops, &wrong.waits, refused, needless, "");
	printf("# of %d dropped waits %s captures %d are refused, and %d change nothing\n", *refused + *needless, where, *refused, *needless);
}

static void
dropped_waits_of_captures_are_found(void)
{
	int refused[2] = {0}, needless[2] = {0};

	drop_waits("inside of", leave_out_inside, &refused[0], &needless[0]);
	drop_waits("around", leave_out_outside, &refused[1], &needless[1]);
	CU_ASSERT(refused[0] > 3 * needless[0] && refused[0] > 20);
	CU_ASSERT(refused[1] > 0);
}

/* Each launch of a captured run uses the address of the first replay. */
static void
stale_addresses_of_captures_are_named(void)
{
	int refused = 0, needless = 0;
	om_device_ops ops = *om_sim_ops();

	ops.launch = launch_kept;
	wrong_at_each(8, &ops, &wrong.launches, &refused, &needless, "that is not valid any more");
	printf("# of %d stale addresses %d are named\n", refused + needless, refused);
	CU_ASSERT(refused > 4 * CAPTURED_PROGRAMS);
	CU_ASSERT_EQUAL(needless, 0);
}

/* ---- Failures. ---- */

static const char text[] = "program \"t\" ir 8 opset 17\n"
	"^main(%v0: float32[3,8], %v1: float32[3,8]) {\n"
	"\t%w = const float32[8] splat {0.5}\n"
	"\t%a = Add(%v0, %v1)\n\t%b = Mul(%a, %w)\n\t%c = Relu(%b)\n\tret %a, %b, %c\n}\n";

static void
start(bench *b)
{
	*b = bench_open();
	CU_ASSERT_FATAL(is_ok(b->s, plan_for(b, text, PLACE PLAN, false)));
}

/* Every allocation fails once; then all succeed. */
static void
allocations_fail(void)
{
	int failed = 0;
	char options[32];
	bench b;

	start(&b);
	for (int k = 0; k < 10; k++) {
		snprintf(options, sizeof options, "fail=%d", k);
		const om_exec_options o = OM_EXEC_OPTIONS(.device = om_sim_ops(), .device_options = options);
		const om_status st = run_on(&b, &o);
		if (st == OM_OK)
			break;
		CU_ASSERT(is_told(b.s, st, OM_MEMORY, "cannot be allocated on the device sim: the simulated device has no memory for"));
		failed++;
		om_exec_free(b.e);
		b.e = NULL;
	}
	CU_ASSERT_EQUAL(failed, 2);   /* the arena, and the constant */
	bench_close(&b);
}

static om_device_status
refuse(om_device **out, const char *options)
{
	(void)options;
	om_sim_open(out, NULL, om_gpu_kernels);
	return om_sim_fail(*out, OM_DEVICE_UNSUPPORTED, "there is no driver");
}

static const char *
last_error(om_device *d)
{
	return om_sim_ops()->error(d);
}

static om_device_status
lose(om_stream *s, om_device_code *code, const om_grid *g, const om_arg *args, uint32_t nargs, uint32_t tag)
{
	(void)code, (void)g, (void)args, (void)nargs;
	return om_sim_fail(s->device, OM_DEVICE_LOST, "command %u is lost", tag);
}

static void
failures_are_sentences(void)
{
	om_device_ops ops = *om_sim_ops();
	const om_exec_options o = OM_EXEC_OPTIONS(.device = &ops), nothing = OM_EXEC_OPTIONS(.device_options = "seed=x", .device = om_sim_ops());
	bench b;

	start(&b);
	ops.open = refuse;
	ops.error = last_error;
	CU_ASSERT(is_told(b.s, run_on(&b, &o), OM_UNSUPPORTED, "the device sim cannot be used: there is no driver"));
	CU_ASSERT(is_told(b.s, run_on(&b, &nothing), OM_USAGE, "requires a number, not x"));
	ops = *om_sim_ops();
	ops.launch = lose;
	CU_ASSERT(is_told(b.s, run_on(&b, &o), OM_RUN, "Add"));
	CU_ASSERT_PTR_NOT_NULL(strstr(om_message(b.s), "its kernel cannot be started on the device sim: command"));
	om_exec_free(b.e);
	b.e = NULL;
	ops = *om_sim_ops();
	ops.abi++;
	CU_ASSERT(is_told(b.s, run_on(&b, &o), OM_UNSUPPORTED, "another version of onnxmem"));
	bench_close(&b);
}

static om_device_status
no_capture(om_stream *s)
{
	return om_sim_fail(s->device, OM_DEVICE_UNSUPPORTED, "this device captures nothing");
}

static om_device_status
no_graph(om_stream *s, om_device_graph **out)
{
	om_device_status st = om_sim_ops()->capture_end(s, out);

	om_sim_ops()->graph_free(*out);
	*out = NULL;
	return st == OM_DEVICE_OK ? om_sim_fail(s->device, OM_DEVICE_MEMORY, "there is no memory for a graph") : st;
}

static om_device_status
no_replay(om_stream *s, om_device_graph *g)
{
	(void)g;
	return om_sim_fail(s->device, OM_DEVICE_LOST, "the graph is lost");
}

static const char chain[] = "program \"t\" ir 8 opset 17\n"
	"^main(%v0: float32[3,8], %v1: float32[3,8]) {\n"
	"\t%w = const float32[8] splat {0.5}\n"
	"\t%a = Add(%v0, %v1)\n\t%b = Mul(%a, %w)\n\t%c = Relu(%b)\n\tret %c\n}\n";

static om_device_status
lose_one(om_stream *s, om_device_code *code, const om_grid *g, const om_arg *args, uint32_t nargs, uint32_t tag)
{
	return wrong.launches++ == wrong.at ? lose(s, code, g, args, nargs, tag) : om_sim_ops()->launch(s, code, g, args, nargs, tag);
}

/* Are there so many replays in three runs, with the right result? */
static bool
replays(bench *b, const om_exec_options *o, uint64_t n)
{
	if (!is_ok(b->s, run_on(b, o)) || !is_ok(b->s, om_exec_run(b->e)) || !is_ok(b->s, om_exec_run(b->e)))
		return false;
	const float *c = om_exec_result(b->e, 0)->data;
	return om_exec_get_stats(b->e)->replays == n && c[10] == 2.375f && c[0] == 0;
}

static void
captures_that_fail_are_left(void)
{
	om_device_ops ops = *om_sim_ops();
	const om_exec_options o = OM_EXEC_OPTIONS(.device = &ops), poison = OM_EXEC_OPTIONS(.device = &ops, .poison = true),
		profile = OM_EXEC_OPTIONS(.device = &ops, .profile = true), none = OM_EXEC_OPTIONS(.device = &ops, .no_capture = true);
	bench b = bench_open();

	CU_ASSERT_FATAL(is_ok(b.s, plan_for(&b, chain, PLACE PLAN, false)));
	CU_ASSERT(replays(&b, &o, 3));
	CU_ASSERT(replays(&b, &none, 0));
	CU_ASSERT(replays(&b, &poison, 0));
	CU_ASSERT(replays(&b, &profile, 0));
	ops.capture_begin = no_capture;
	CU_ASSERT(replays(&b, &o, 0));
	ops = *om_sim_ops();
	ops.capture_end = no_graph;
	CU_ASSERT(replays(&b, &o, 0));
	ops = *om_sim_ops();
	ops.replay = no_replay;
	CU_ASSERT(is_told(b.s, run_on(&b, &o), OM_RUN, "the captured commands from here on cannot be started on the device sim: the graph is lost"));
	ops = *om_sim_ops();
	ops.launch = lose;
	CU_ASSERT(is_told(b.s, run_on(&b, &o), OM_RUN, "its kernel cannot be started on the device sim: command"));
	/* What was captured before a failure is not replayed. */
	ops.launch = lose_one;
	for (wrong.at = 0; wrong.at < 3; wrong.at++) {
		wrong.launches = 0;
		CU_ASSERT(is_told(b.s, run_on(&b, &o), OM_RUN, "its kernel cannot be started on the device sim: command"));
		CU_ASSERT(is_ok(b.s, om_exec_run(b.e)));
		CU_ASSERT_EQUAL(((const float *)om_exec_result(b.e, 0)->data)[10], 2.375f);
	}
	bench_close(&b);
}

static void
an_op_without_kernel_is_named(void)
{
	const om_exec_options o = OM_EXEC_OPTIONS(.device = om_sim_ops(), .no_reuse = true);
	bench b = bench_open();

	CU_ASSERT_FATAL(is_ok(b.s, bench_plan(&b, "program \"t\" ir 8 opset 17\n^main(%v0: float32[3,8]) {\n"
		"\t%d = org.onnxmem::ToDevice@1(%v0) on sim\n\t%c = Hardmax(%d) on sim\n\t%h = org.onnxmem::ToHost@1(%c) on sim\n"
		"\tret %h\n}\n", "inline,shapes,fold")));
	CU_ASSERT(is_told(b.s, bench_exec(&b, &o), OM_UNSUPPORTED, "is for the device sim, for which it has no kernel"));
	bench_close(&b);
}

/* ---- States that stay on the device. ---- */

/* In each step, w is replaced by -w; afterwards, another plan has %wide in its memory. */
static const char turning[] = "program \"t\" ir 8 opset 17\n^main(%x: float32[8], %w: float32[8] = splat {0.5}) {\n"
	"\t%s = Mul(%x, %w)\n\t%w_next = Neg(%w)\n\t%wide = Concat(%s, %s, %s, %s) {axis = 0}\n"
	"\t%loss = ReduceSum(%wide) {keepdims = 0}\n\tret %loss, %w_next to %w\n}\n";

struct turns {
	bench b;
	om_trainer *t;
	uint64_t copied;
};

static void
turns_start(struct turns *u, const om_exec_options *o, bool is_planned)
{
	static float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
	const int64_t dim = 8;
	const om_tensor x = {.type = OM_FLOAT32, .shape = om_shape_of(1, &dim), .data = ones};
	*u = (struct turns){.b = bench_open()};
	CU_ASSERT_FATAL(is_ok(u->b.s, plan_with(&u->b, turning, PLACE PLAN, (om_plan_request)OM_PLAN_REQUEST(.keep_states = is_planned))));
	CU_ASSERT_FATAL(is_ok(u->b.s, bench_exec(&u->b, o)));
	CU_ASSERT_FATAL(is_ok(u->b.s, om_trainer_new(u->b.s, u->b.p, &u->t)));
	CU_ASSERT_FATAL(is_ok(u->b.s, om_trainer_bind(u->t, u->b.e)));
	CU_ASSERT_FATAL(is_ok(u->b.s, om_exec_input(u->b.e, 0, &x)));
}

/* After one more step: the loss, and the state. */
static bool
turn(struct turns *u, om_exec *e, float loss, float w)
{
	return om_trainer_step(u->t, e, &u->copied) == OM_OK && *(const float *)om_exec_result(e, 0)->data == loss
	    && om_trainer_fetch(u->t) == OM_OK && ((const float *)om_trainer_state(u->t, 0, NULL)->data)[7] == w;
}

/* Bytes of the arena of the device. */
static uint64_t
device_arena(const om_plan *plan)
{
	for (uint32_t k = 0; k < plan->narena; k++)
		if (strcmp(plan->arena[k].device, "sim") == 0)
			return plan->arena[k].bytes;
	return 0;
}

/* What was planned for states that stay has them in its arena, and no memory beside it; another plan has other values there. */
static void
keep_states(bool is_planned, bool is_poisoned)
{
	enum { BYTES = 8 * sizeof(float), LOSS = sizeof(float) };
	const om_exec_options o = OM_EXEC_OPTIONS(.device = om_sim_ops(), .keep_states = true, .poison = is_poisoned),
		each = OM_EXEC_OPTIONS(.device = om_sim_ops());
	const int64_t dim = 8;
	float two[8] = {2, 2, 2, 2, 2, 2, 2, 2};
	const om_tensor t = {.type = OM_FLOAT32, .shape = om_shape_of(1, &dim), .data = two};
	struct turns u, v;

	turns_start(&u, &o, is_planned);
	turns_start(&v, &each, false);
	const uint64_t beside = om_exec_get_stats(u.b.e)->device_bytes - device_arena(u.b.p->plan)
		- (om_exec_get_stats(v.b.e)->device_bytes - device_arena(v.b.p->plan));
	CU_ASSERT_EQUAL(beside, is_planned && !is_poisoned ? 0 : BYTES);
	const uint64_t *moved = &om_exec_get_stats(u.b.e)->transferred_bytes;
	CU_ASSERT(turn(&u, u.b.e, 16, -0.5f));
	CU_ASSERT_EQUAL(*moved, 3 * BYTES + LOSS);
	for (int k = 0; k < 3; k++)
		CU_ASSERT_EQUAL(om_trainer_step(u.t, u.b.e, &u.copied), OM_OK);
	CU_ASSERT_EQUAL(*moved, 6 * BYTES + 4 * LOSS);
	CU_ASSERT(turn(&u, u.b.e, 16, -0.5f));
	/* New elements from the caller; another executor, which copies states in every run; the first one again. */
	CU_ASSERT_EQUAL(om_trainer_set(u.t, "w", &t), OM_OK);
	CU_ASSERT_EQUAL(om_trainer_fetch(u.t), OM_OK);
	CU_ASSERT(turn(&u, u.b.e, 64, -2));
	CU_ASSERT_EQUAL(om_trainer_bind(u.t, v.b.e), OM_OK);
	CU_ASSERT(turn(&u, v.b.e, -64, 2));
	CU_ASSERT(turn(&u, u.b.e, 64, -2));
	/* What is on the device is lost neither when it is bound again nor with the executor. */
	CU_ASSERT_EQUAL(om_trainer_step(u.t, u.b.e, &u.copied), OM_OK);
	CU_ASSERT_EQUAL(om_trainer_bind(u.t, u.b.e), OM_OK);
	CU_ASSERT(turn(&u, u.b.e, 64, -2));
	CU_ASSERT_EQUAL(om_trainer_step(u.t, u.b.e, &u.copied), OM_OK);
	om_exec_free(u.b.e);
	u.b.e = NULL;
	CU_ASSERT_EQUAL(om_trainer_bind(u.t, v.b.e), OM_OK);
	CU_ASSERT(turn(&u, v.b.e, 64, -2));
	CU_ASSERT_EQUAL(u.copied, 0);
	om_trainer_free(u.t);
	om_trainer_free(v.t);
	bench_close(&u.b);
	bench_close(&v.b);
}

static void
states_stay_on_the_device(void)
{
	for (int k = 0; k < 4; k++)
		keep_states(k & 1, k & 2);
}

/* ---- Memory of the caller on the device. ---- */

/* Two inputs and three outputs, aligned as the device requires, or as their elements. */
struct there {
	_Alignas(256) float aligned[5][64];
	float *at[5];
};

static void
lay_out(struct there *t, unsigned unaligned)
{
	for (unsigned k = 0; k < 5; k++)
		t->at[k] = t->aligned[k] + (unaligned >> k & 1);
}

/* Bind what can be bound; how many that is. */
static int
bind_there(bench *b, struct there *t)
{
	int n = 0;

	for (uint32_t k = 0; k < 5; k++) {
		const om_tensor x = tensor_of(t->at[k]);
		const om_status st = k < 2 ? om_exec_device_input(b->e, k, &x, NULL) : om_exec_device_output(b->e, k - 2, &x, NULL);
		CU_ASSERT(st == OM_OK || is_told(b->s, st, OM_UNSUPPORTED, "by the processor: it cannot be bound to memory of the device"));
		n += st == OM_OK;
		if (st != OM_OK && k < 2)
			CU_ASSERT(is_ok(b->s, om_exec_input(b->e, k, &x)));
	}
	return n;
}

/* Inputs of the caller are left as they are; other addresses in each run but the second. */
static void
bound_programs_compute_the_same(void)
{
	enum { PROGRAMS = 60, RUNS = 4 };
	static struct there there[RUNS];
	uint64_t rng = 31, replays = 0;
	int bound = 0;
	bench b = bench_open(), plain = bench_open();
	struct unit_text t;
	float want[3][ELEMENTS], got[3][ELEMENTS], in[2][ELEMENTS];
	char options[32];

	for (int k = 0; k < PROGRAMS; k++) {
		unit_draw(&t, &rng, OPS, ROWS, COLUMNS, false);
		snprintf(options, sizeof options, "seed=%d", k);
		om_exec_options o = OM_EXEC_OPTIONS(.device = om_sim_ops(), .device_options = options, .streams = (uint32_t)(k % 5),
			.no_reuse = k % 8 == 6, .poison = k % 8 == 7, .no_capture = k % 8 == 5);
		CU_ASSERT_FATAL(is_ok(b.s, plan_for(&b, t.at, PLACE PLAN, k % 3 == 0)) && is_ok(b.s, bench_exec(&b, &o)));
		CU_ASSERT_FATAL(is_ok(plain.s, plan_for(&plain, t.at, PLACE PLAN, k % 3 == 0)) && is_ok(plain.s, bench_exec(&plain, &o)));
		for (int run = 0; run < RUNS && b.e->device; run++) {
			struct there *at = &there[run == 1 ? 0 : run];
			lay_out(at, (unsigned)(run > 1 ? 7 * k + run : k));
			fill_inputs(in, run);
			memcpy(at->at[0], in[0], sizeof in[0]);
			memcpy(at->at[1], in[1], sizeof in[1]);
			bound += bind_there(&b, at);
			CU_ASSERT(is_ok(b.s, om_exec_run(b.e)) && is_ok(plain.s, run_once(&plain, run)));
			results(&plain, want);
			results(&b, got);
			CU_ASSERT(memcmp(want, got, sizeof want) == 0);
			CU_ASSERT(memcmp(at->at[0], in[0], sizeof in[0]) == 0 && memcmp(at->at[1], in[1], sizeof in[1]) == 0);
		}
		/* The processor's again. */
		CU_ASSERT(is_ok(b.s, run_once(&b, 1)) && is_ok(plain.s, run_once(&plain, 1)));
		results(&plain, want);
		results(&b, got);
		CU_ASSERT(memcmp(want, got, sizeof want) == 0);
		replays += om_exec_get_stats(b.e)->replays;
		bench_clear(&b);
		bench_clear(&plain);
	}
	printf("# %d programs: %d times memory was bound, %llu replays\n", PROGRAMS, bound, (unsigned long long)replays);
	CU_ASSERT(bound > 2 * RUNS * PROGRAMS);
	CU_ASSERT(replays > RUNS * PROGRAMS / 2);
	bench_close(&b);
	bench_close(&plain);
}

static void
nothing_crosses_for_bound_memory(void)
{
	static struct there there, other;
	const om_exec_options o = OM_EXEC_OPTIONS(.device = om_sim_ops());
	bench b = bench_open();

	CU_ASSERT_FATAL(is_ok(b.s, plan_for(&b, chain, PLACE PLAN, false)));
	CU_ASSERT_FATAL(is_ok(b.s, bench_exec(&b, &o)));
	const om_exec_stats *s = om_exec_get_stats(b.e);
	for (unsigned unaligned = 0; unaligned < 8; unaligned += 7) {
		lay_out(&there, unaligned);
		fill_inputs((float (*)[ELEMENTS])other.aligned, 0);
		memcpy(there.at[0], other.aligned, sizeof(float) * ELEMENTS);
		memcpy(there.at[1], (float *)other.aligned + ELEMENTS, sizeof(float) * ELEMENTS);
		const om_tensor x = tensor_of(there.at[0]), y = tensor_of(there.at[1]), z = tensor_of(there.at[2]);
		CU_ASSERT(is_ok(b.s, om_exec_device_input(b.e, 0, &x, NULL)) && is_ok(b.s, om_exec_device_input(b.e, 1, &y, NULL))
			&& is_ok(b.s, om_exec_device_output(b.e, 0, &z, NULL)));
		CU_ASSERT(is_ok(b.s, om_exec_run(b.e)));
		CU_ASSERT_PTR_EQUAL(om_exec_result(b.e, 0)->data, there.at[2]);
		CU_ASSERT_EQUAL(there.at[2][10], 2.375f);
		there.at[0][10] = 1;             /* read in place, or copied again */
		CU_ASSERT(is_ok(b.s, om_exec_run(b.e)));
		CU_ASSERT_EQUAL(there.at[2][10], 0.375f);
		CU_ASSERT_EQUAL(s->transferred_bytes, 0);
	}
	CU_ASSERT_EQUAL(s->replays, 3);  /* not in the run after other memory was bound */
	CU_ASSERT_EQUAL(s->captured_commands, 6);
	bench_close(&b);
}

static void
wrong_memory_is_told(void)
{
	static struct there there;
	om_device_ops ops = *om_sim_ops();
	const om_exec_options o = OM_EXEC_OPTIONS(.device = &ops);
	bench b = bench_open();

	lay_out(&there, 0);
	const om_tensor x = tensor_of(there.at[0]), beside = tensor_of(there.at[0] + ELEMENTS / 2);
	om_tensor odd = x, bytes = x, none = x, narrow = x;
	odd.data = (char *)x.data + 1;
	bytes.type = OM_INT32;
	none.data = NULL;
	narrow.shape = om_shape_of(2, (const int64_t[]){ROWS, 1});
	CU_ASSERT_FATAL(is_ok(b.s, plan_for(&b, chain, PLACE PLAN, false)) && is_ok(b.s, bench_exec(&b, &o)));
	CU_ASSERT(is_told(b.s, om_exec_device_input(b.e, 2, &x, NULL), OM_RUN, "the model has 2 inputs, no input 2"));
	CU_ASSERT(is_told(b.s, om_exec_device_output(b.e, 1, &x, NULL), OM_RUN, "the model has 1 outputs, no output 1"));
	CU_ASSERT(is_told(b.s, om_exec_device_input(b.e, 0, &bytes, NULL), OM_RUN, "input v0 must be float32 [3,8], not int32 [3,8]"));
	CU_ASSERT(is_told(b.s, om_exec_device_input(b.e, 0, &narrow, NULL), OM_RUN, "input v0 must be float32 [3,8], not float32 [3,1]"));
	CU_ASSERT(is_told(b.s, om_exec_device_input(b.e, 0, &none, NULL), OM_RUN, "input v0: the tensor has no elements"));
	CU_ASSERT(is_told(b.s, om_exec_device_input(b.e, 0, &odd, NULL), OM_RUN, "its memory on the device is not aligned for float32"));
	CU_ASSERT(is_told(b.s, om_exec_device_input(b.e, 0, &x, &there), OM_RUN, "input v0 cannot be bound on the device sim: the simulated "
		"device has no streams of others"));
	CU_ASSERT(is_ok(b.s, om_exec_device_input(b.e, 0, &x, NULL)));
	const om_tensor y = tensor_of(there.at[1]);
	CU_ASSERT(is_ok(b.s, om_exec_device_input(b.e, 1, &y, NULL)) && is_ok(b.s, om_exec_device_output(b.e, 0, &beside, NULL)));
	CU_ASSERT(is_told(b.s, om_exec_run(b.e), OM_RUN, "output c: its memory on the device overlaps that of v0"));
	ops.bind = NULL;
	CU_ASSERT(is_told(b.s, om_exec_device_input(b.e, 0, &x, NULL), OM_UNSUPPORTED, "the device sim cannot use memory of the caller"));
	bench_clear(&b);
	CU_ASSERT_FATAL(is_ok(b.s, plan_for(&b, chain, "inline,shapes,fold," PLAN, false)) && is_ok(b.s, bench_exec(&b, &o)));
	CU_ASSERT(is_told(b.s, om_exec_device_input(b.e, 0, &x, NULL), OM_USAGE, "no op of the program runs on a device"));
	bench_close(&b);
}

static CU_TestInfo device_exec_tests[] = {
	{"random programs compute what the processor computes", random_programs_compute_the_same},
	{"dropped waits are refused, and are races", dropped_waits_are_refused},
	{"dropped copies are refused", dropped_copies_are_refused},
	{"captured runs compute the same", captured_runs_compute_the_same},
	{"dropped waits of captures are found", dropped_waits_of_captures_are_found},
	{"stale addresses of captures are named", stale_addresses_of_captures_are_named},
	{"captures that fail are left", captures_that_fail_are_left},
	{"bound programs compute the same", bound_programs_compute_the_same},
	{"nothing crosses for bound memory", nothing_crosses_for_bound_memory},
	{"wrong memory is told", wrong_memory_is_told},
	{"allocations that fail are sentences", allocations_fail},
	{"failures of a device are sentences", failures_are_sentences},
	{"an op without a kernel is named", an_op_without_kernel_is_named},
	{"states stay on the device", states_stay_on_the_device},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("programs on devices", device_exec_tests);
