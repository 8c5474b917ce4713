/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of workers: random programs compute the same bits in threads and in every drawn order that the plan permits; each
 * wait is needed, and what is left out or moved is found. */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "base/shape.h"
#include "exec/worker_streams.h"
#include "onnxmem/builder.h"
#include "onnxmem/plan.h"
#include "drawn_text.h"
#include "unit.h"

#define PLAN "inline,shapes,fold,prune,schedule=original,liveness,views,alias-io=declared,inplace,loops,pack"

/* Large enough that the model of times finds it worth while to wait for another worker. */
enum { OPS = 24, ROWS = 64, COLUMNS = 256, ELEMENTS = ROWS * COLUMNS, RESULTS = 3, INPUTS = 2 };

static float input[INPUTS][ELEMENTS], want[2][RESULTS][ELEMENTS];

/* Each variant has other inputs, so that what a run reads too early is not what it would read later. */
static void
set_inputs(int variant)
{
	for (int k = 0; k < ELEMENTS; k++) {
		input[0][k] = (float)((k + 3 * variant) % 11 - 5);
		input[1][k] = (float)((k + variant) % 7) / 4 - 1;
	}
}

static om_status
run(bench *b, int variant)
{
	const int64_t dim[2] = {ROWS, COLUMNS};
	om_tensor in[INPUTS];

	set_inputs(variant);
	for (int k = 0; k < INPUTS; k++)
		in[k] = (om_tensor){.type = OM_FLOAT32, .shape = om_shape_of(2, dim), .data = input[k]};
	return bench_run(b, in, INPUTS);
}

static bool
is_as(const bench *b, float result[RESULTS][ELEMENTS])
{
	for (uint32_t k = 0; k < RESULTS; k++)
		if (memcmp(result[k], om_exec_result(b->e, k)->data, sizeof result[k]) != 0)
			return false;
	return true;
}

static bool
starts(bench *b, const char *text, uint32_t streams, const om_exec_options *o)
{
	const om_plan_request r = OM_PLAN_REQUEST(.target = OM_TARGET_CPU, .streams = streams);

	if (is_ok(b->s, om_host_request(b->h, &r)) && is_ok(b->s, bench_plan(b, text, PLAN)) && is_ok(b->s, bench_exec(b, o)))
		return true;
	printf("# in: %s\n", text);
	return false;
}

/* What one worker computes, each value in memory of its own. */
static void
compute_want(bench *b, const char *text)
{
	CU_ASSERT_FATAL(starts(b, text, 0, &(om_exec_options)OM_EXEC_OPTIONS(.no_reuse = true, .threads = 1)));
	for (int v = 0; v < 2; v++) {
		CU_ASSERT_FATAL(is_ok(b->s, run(b, v)));
		for (uint32_t k = 0; k < RESULTS; k++)
			memcpy(want[v][k], om_exec_result(b->e, k)->data, sizeof want[v][k]);
	}
	bench_clear(b);
}

/* Runs in turn with both inputs: in threads, or in drawn orders. */
static bool
computes(bench *b, uint64_t drawn, int runs)
{
	bool same = true;

	for (int k = 0; k < runs; k++) {
		if (b->e->workers)
			b->e->workers->drawn = drawn ? drawn + (uint64_t)k : 0;
		same = same && run(b, k % 2) == OM_OK && is_as(b, want[k % 2]);
	}
	return same;
}

static void
random_programs_compute_the_same(void)
{
	enum { PROGRAMS = 60, RUNS = 6 };
	uint64_t rng = 11;
	uint32_t waits = 0, beside = 0;
	bench b = bench_open();
	struct unit_text t;

	for (int k = 0; k < PROGRAMS; k++) {
		unit_draw(&t, &rng, OPS, ROWS, COLUMNS, k % 2);
		compute_want(&b, t.at);
		CU_ASSERT_FATAL(starts(&b, t.at, 2 + (uint32_t)k % 3, &(om_exec_options)OM_EXEC_OPTIONS(.poison = k % 5 == 4)));
		CU_ASSERT(computes(&b, 0, RUNS));
		CU_ASSERT(computes(&b, 1 + (uint64_t)k * RUNS, RUNS));
		waits += b.p->plan->streams->nwait;
		for (uint32_t i = 0; i < b.p->nop; i++)
			beside += b.p->plan->streams->op[i].stream != OM_NO_STREAM && b.p->plan->streams->op[i].stream > 0;
		bench_clear(&b);
	}
	printf("# %d programs: %u ops beside the first stream, %u waits\n", PROGRAMS, beside, waits);
	CU_ASSERT(beside > 2 * PROGRAMS);
	CU_ASSERT(waits > 2 * PROGRAMS);
	bench_close(&b);
}

/* ---- What is left out. ---- */

/* The op that has the wait number `n` of all ops; NULL: there are fewer. */
static const om_op *
find_wait(const om_prog *p, uint32_t n, uint32_t *k)
{
	for (const om_op *op = p->first->first; op; op = op->next) {
		const uint32_t nwait = p->plan->streams->op[op->id].nwait;
		if (n < nwait) {
			*k = n;
			return op;
		}
		n -= nwait;
	}
	return NULL;
}

/* The plan without this wait: what the verifier says. */
static om_status
verify_without(bench *b, const om_op *op, uint32_t k)
{
	om_worker_op *o = &b->p->plan->streams->op[op->id], was = *o;
	uint32_t *rest = (uint32_t *)(uintptr_t)o->wait, dropped = rest[k];

	memmove(rest + k, rest + k + 1, (o->nwait - k - 1) * sizeof *rest);
	o->nwait--;
	const om_status st = om_plan_verify(b->s, b->p, b->p->plan);
	*o = was;
	memmove(rest + k + 1, rest + k, (o->nwait - k - 1) * sizeof *rest);
	rest[k] = dropped;
	return st;
}

/* The executor without it: do some of the orders compute something else? */
static bool
races_without(bench *b, const om_op *op, uint32_t k)
{
	enum { ORDERS = 12 };
	const uint32_t stream = b->p->plan->streams->op[op->id].stream;
	struct stream *s = &b->e->workers->stream[stream];
	uint32_t at = 0;

	for (const om_op *before = b->p->first->first; before != op; before = before->next)
		at += !before->is_folded && b->p->plan->streams->op[before->id].stream == stream;
	struct turn_wait was = s->turn[at].wait[k];
	s->turn[at].wait[k].done = 0;
	const bool same = computes(b, 1, ORDERS);
	s->turn[at].wait[k] = was;
	return !same;
}

static void
dropped_waits_are_found(void)
{
	enum { PROGRAMS = 20 };
	uint64_t rng = 5;
	int dropped = 0, refused = 0, races = 0;
	bench b = bench_open();
	struct unit_text t;

	for (int p = 0; p < PROGRAMS; p++) {
		uint32_t k;
		const om_op *op;
		unit_draw(&t, &rng, OPS, ROWS, COLUMNS, p % 2);
		compute_want(&b, t.at);
		CU_ASSERT_FATAL(starts(&b, t.at, 3, &(om_exec_options)OM_EXEC_OPTIONS()));
		for (uint32_t n = 0; (op = find_wait(b.p, n, &k)); n++) {
			dropped++;
			refused += verify_without(&b, op, k) == OM_BADPLAN && strstr(om_message(b.s), "stream");
			races += races_without(&b, op, k);
		}
		CU_ASSERT(is_ok(b.s, om_plan_verify(b.s, b.p, b.p->plan)));
		bench_clear(&b);
	}
	printf("# of %d dropped waits %d are refused, and %d compute something else in one of the drawn orders\n", dropped, refused, races);
	CU_ASSERT(dropped > 2 * PROGRAMS);
	CU_ASSERT_EQUAL(refused, dropped);
	CU_ASSERT(races > dropped / 2);
	bench_close(&b);
}

/* Two long branches. */
#define BRANCHES "program \"t\" ir 8 opset 17\n^main(%v0: float32[64,256], %v1: float32[64,256]) {\n\t%axis = const int64[] {1}\n" \
	"\t%a = CumSum(%v0, %axis)\n\t%b = CumSum(%v1, %axis)\n\t%c = CumSum(%a, %axis)\n\t%d = CumSum(%b, %axis)\n\t%e = CumSum(%c, %axis)\n" \
	"\t%f = CumSum(%d, %axis)\n\t%y = Add(%e, %f)\n\t%z = Sub(%e, %f)\n\t%x = Max(%y, %z)\n\tret %y, %z, %x\n}\n"

static om_op *
op_of(const bench *b, const char *name)
{
	for (om_op *op = b->p->first->first; op; op = op->next)
		if (op->nout && op->out[0] && strcmp(op->out[0]->name, name) == 0)
			return op;
	return NULL;
}

static bool
is_refused(bench *b, const char *message)
{
	const om_status st = om_plan_verify(b->s, b->p, b->p->plan);

	if (st == OM_BADPLAN && strstr(om_message(b->s), message))
		return true;
	printf("# not refused, or with: %s\n", st == OM_OK ? "" : om_message(b->s));
	return false;
}

static void
branches_run_side_by_side(void)
{
	bench b = bench_open();

	compute_want(&b, BRANCHES);
	CU_ASSERT_FATAL(starts(&b, BRANCHES, 2, &(om_exec_options)OM_EXEC_OPTIONS()));
	const om_worker_streams *w = b.p->plan->streams;
	CU_ASSERT(w->op[op_of(&b, "a")->id].stream != w->op[op_of(&b, "b")->id].stream);
	CU_ASSERT_EQUAL(w->op[op_of(&b, "a")->id].stream, w->op[op_of(&b, "e")->id].stream);
	CU_ASSERT_EQUAL(w->op[op_of(&b, "b")->id].stream, w->op[op_of(&b, "f")->id].stream);
	CU_ASSERT(w->span_ns < 0.8 * w->work_ns);
	CU_ASSERT(b.p->plan->parallel_safe);
	CU_ASSERT(computes(&b, 0, 4));
	bench_close(&b);
}

static void
wrong_streams_are_refused(void)
{
	bench b = bench_open();

	CU_ASSERT_FATAL(starts(&b, BRANCHES, 2, &(om_exec_options)OM_EXEC_OPTIONS()));
	om_worker_streams *w = (om_worker_streams *)(uintptr_t)b.p->plan->streams;
	const om_op *c = op_of(&b, "c"), *y = op_of(&b, "y");
	om_worker_op *o = &w->op[c->id], was = *o;
	const uint32_t later[] = {y->id};

	o->stream = 1 - was.stream;
	CU_ASSERT(is_refused(&b, "c reads what CumSum of a computes in another stream, and does not wait for it"));
	o->stream = 2;
	CU_ASSERT(is_refused(&b, "is in none of the 2 streams of the plan"));
	o->stream = OM_NO_STREAM;
	CU_ASSERT(is_refused(&b, "is in none of the 2 streams of the plan"));
	*o = (om_worker_op){was.stream, later, 1};
	CU_ASSERT(is_refused(&b, "waits for an op that does not come before it in the plan"));
	*o = was;
	w->n = OM_MOST_WORKER_STREAMS + 1;
	CU_ASSERT(is_refused(&b, "streams of"));
	w->n = 2;
	CU_ASSERT(is_ok(b.s, om_plan_verify(b.s, b.p, b.p->plan)));
	bench_close(&b);
}

/* Places of one order are not those of streams: what the other branch may still use is overwritten. */
static void
overwritten_bytes_are_refused(void)
{
	bench b = bench_open();

	CU_ASSERT_FATAL(starts(&b, BRANCHES, 2, &(om_exec_options)OM_EXEC_OPTIONS()));
	om_placement *place = b.p->plan->place;
	const uint32_t a = op_of(&b, "a")->out[0]->id, d = op_of(&b, "b")->out[0]->id;
	const uint64_t was = place[d].offset;

	CU_ASSERT_FATAL(place[a].where == OM_IN_ARENA && place[d].where == OM_IN_ARENA);
	place[d].offset = place[a].offset;
	CU_ASSERT(om_plan_verify(b.s, b.p, b.p->plan) == OM_BADPLAN);
	place[d].offset = was;
	CU_ASSERT(is_ok(b.s, om_plan_verify(b.s, b.p, b.p->plan)));
	bench_close(&b);
}

/* A random op is in both branches' way: it comes after all before it, and before all after it. */
static void
some_ops_run_alone(void)
{
	static const char text[] = "program \"t\" ir 8 opset 17\n^main(%v0: float32[64,256], %v1: float32[64,256]) {\n\t%axis = const int64[] {1}\n"
		"\t%a = CumSum(%v0, %axis)\n\t%b = CumSum(%v1, %axis)\n\t%r = RandomUniformLike(%v0) {seed = 1.0}\n"
		"\t%c = CumSum(%a, %axis)\n\t%d = CumSum(%b, %axis)\n\t%y = Add(%c, %d)\n\t%z = Add(%y, %r)\n\t%x = Neg(%z)\n\tret %y, %z, %x\n}\n";
	bench b = bench_open();
	uint32_t n = 0, k;
	const om_op *op;

	CU_ASSERT_FATAL(starts(&b, text, 2, &(om_exec_options)OM_EXEC_OPTIONS()));
	const om_worker_op *r = &b.p->plan->streams->op[op_of(&b, "r")->id];
	CU_ASSERT_EQUAL(r->stream, 0);
	CU_ASSERT_EQUAL(r->nwait, 1);
	for (; (op = find_wait(b.p, n, &k)); n++)
		CU_ASSERT(verify_without(&b, op, k) == OM_BADPLAN);
	CU_ASSERT_FATAL(verify_without(&b, op_of(&b, "r"), 0) == OM_BADPLAN);
	CU_ASSERT(strstr(om_message(b.s), "has to run alone") != NULL);
	CU_ASSERT(n >= 2);
	/* In order, but by another thread than the one that calls. */
	om_worker_op *o = &((om_worker_streams *)(uintptr_t)b.p->plan->streams)->op[op_of(&b, "r")->id];
	const uint32_t both[] = {op_of(&b, "a")->id, op_of(&b, "b")->id};
	*o = (om_worker_op){1, both, 2};
	CU_ASSERT(is_refused(&b, "has to run alone, but is not in the first stream"));
	bench_close(&b);
}

/* Small ops are not worth a wait: one stream, and its arena. */
static void
small_ops_stay_together(void)
{
	static const char text[] = "program \"t\" ir 8 opset 17\n^main(%v0: float32[4]) {\n\t%a = Neg(%v0)\n\t%b = Abs(%v0)\n\t%y = Add(%a, %b)\n\tret %y\n}\n";
	bench b = bench_open();

	CU_ASSERT_FATAL(starts(&b, text, 4, &(om_exec_options)OM_EXEC_OPTIONS()));
	for (const om_op *op = b.p->first->first; op; op = op->next)
		CU_ASSERT_EQUAL(b.p->plan->streams->op[op->id].stream, 0);
	CU_ASSERT_EQUAL(b.p->plan->streams->nwait, 0);
	bench_close(&b);
}

/* An index out of range, in the second stream: the run says so, and the next one is right again. */
static void
failures_end_the_run(void)
{
	static const char text[] = "program \"t\" ir 8 opset 17\n^main(%v0: float32[64,256], %v1: float32[64,256], %i: int64[64]) {\n\t%axis = const int64[] {1}\n"
		"\t%a = CumSum(%v0, %axis)\n\t%g = Gather(%v1, %i)\n\t%h = CumSum(%g, %axis)\n\t%c = CumSum(%a, %axis)\n\t%y = Add(%c, %h)\n\tret %y\n}\n";
	const int64_t dim[2] = {ROWS, COLUMNS}, rows[1] = {ROWS};
	static int64_t index[ROWS];
	bench b = bench_open();
	om_tensor in[3] = {{.type = OM_FLOAT32, .shape = om_shape_of(2, dim), .data = input[0]},
		{.type = OM_FLOAT32, .shape = om_shape_of(2, dim), .data = input[1]}, {.type = OM_INT64, .shape = om_shape_of(1, rows), .data = index}};

	set_inputs(0);
	CU_ASSERT_FATAL(starts(&b, text, 2, &(om_exec_options)OM_EXEC_OPTIONS()));
	CU_ASSERT_EQUAL(b.p->plan->streams->op[op_of(&b, "g")->id].stream, 1);
	for (int k = 0; k < 6; k++) {
		b.e->workers->drawn = k < 3 ? 0 : (uint64_t)k;
		index[5] = ROWS;
		CU_ASSERT_EQUAL(bench_run(&b, in, 3), OM_RUN);
		CU_ASSERT(strstr(om_message(b.s), "Gather") != NULL);
		index[5] = 0;
		CU_ASSERT(is_ok(b.s, bench_run(&b, in, 3)));
	}
	bench_close(&b);
}

static void
wrong_requests_are_refused(void)
{
	bench b = bench_open();

	CU_ASSERT_EQUAL(om_host_request(b.h, &(om_plan_request)OM_PLAN_REQUEST(.streams = 9)), OM_USAGE);
	CU_ASSERT(strstr(om_message(b.s), "at most 8 workers, not 9") != NULL);
	CU_ASSERT_EQUAL(om_host_request(b.h, &(om_plan_request)OM_PLAN_REQUEST(.streams = 2, .ranged = true)), OM_USAGE);
	bench_close(&b);
}

static CU_TestInfo tests[] = {
	{"random programs compute the same in threads and in drawn orders", random_programs_compute_the_same},
	{"each wait is needed: without it the plan is refused", dropped_waits_are_found},
	{"branches run side by side", branches_run_side_by_side},
	{"wrong streams are refused", wrong_streams_are_refused},
	{"bytes that another stream uses are refused", overwritten_bytes_are_refused},
	{"some ops run alone", some_ops_run_alone},
	{"small ops stay together", small_ops_stay_together},
	{"failures end the run", failures_end_the_run},
	{"wrong requests are refused", wrong_requests_are_refused},
	CU_TEST_INFO_NULL
};

UNIT_SUITE("worker streams", tests);
