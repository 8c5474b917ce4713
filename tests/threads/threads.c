/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing is shared between threads but what nobody changes: executors of one program in several
 * threads, each with a session of its own, and programs that are read and planned side by side.
 *
 * Each thread has to get what one alone gets; built with -fsanitize=thread, this program also says
 * where two of them touch the same bytes. */
#include <config.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "onnxmem/plan.h"
#include "tests/fixtures.h"

enum { NTHREAD = 4, NTIME = 8, NIN = 6 };

/* A product with a folded weight, shape arithmetic, a loop that carries a value and stacks another, and branches. */
static const char text[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[2,3], %c: bool[]) {\n"
	"	%w = const float32[3,3] {1.0, 2.0, 0.5, -1.0, 0.25, 1.5, 2.0, -0.5, 1.0}\n"
	"	%axes = const int64[1] {0}\n"
	"	%n = const int64[] {5}\n"
	"	%go = const bool[] {1}\n"
	"	%wt = Transpose(%w)\n"
	"	%xw = MatMul(%x, %wt)\n"
	"	%s = Softmax(%xw)\n"
	"	%last, %all = Loop(%n, %go, %s) {body = ^body(%i: int64[], %g: bool[], %a: float32[2,3]) {\n"
	"		%m = MatMul(%a, %w)\n"
	"		%t = Tanh(%m)\n"
	"		%u = Add(%t, %x)\n"
	"		ret %g, %u, %t\n"
	"	}}\n"
	"	%sum = ReduceSum(%all, %axes) {keepdims = 0}\n"
	"	%b = If(%c) {else_branch = ^no() {\n"
	"		%f = Neg(%sum)\n"
	"		ret %f\n"
	"	}, then_branch = ^yes() {\n"
	"		%h = Mul(%sum, %last)\n"
	"		ret %h\n"
	"	}}\n"
	"	%y = Add(%b, %s)\n"
	"	ret %y, %last\n"
	"}\n";

static om_status
read_and_plan(om_session *s, om_prog **p)
{
	*p = NULL;
	OM_TRY(text_parse(s, text, p));
	om_host *h = om_host_new(s, NULL);
	om_status st = om_host_run(h, *p, om_default_pipeline());
	om_host_free(h);
	if (st == OM_OK)
		st = om_verify(s, *p);
	return st == OM_OK ? om_plan_verify(s, *p, (*p)->plan) : st;
}

/* One run with the input that starts at `seed`; both results go to `got`. */
static om_status
run_once(om_session *s, const om_prog *p, const om_exec_options *o, int seed, float got[2 * NIN])
{
	float x[NIN];
	const bool c = seed & 1;
	om_tensor in[2] = {
		{.type = OM_FLOAT32, .shape = om_shape_of(2, (int64_t[]){2, 3}), .data = x},
		{.type = OM_BOOL, .shape = om_shape_of(0, NULL), .data = (void *)&c},
	};
	om_exec *e;

	for (int k = 0; k < NIN; k++)
		x[k] = (float)(seed + k) / 8;
	OM_TRY(om_exec_new(s, p, o->no_reuse ? NULL : p->plan, o, &e));
	om_status st = om_exec_input(e, 0, &in[0]);
	if (st == OM_OK)
		st = om_exec_input(e, 1, &in[1]);
	if (st == OM_OK)
		st = om_exec_run(e);
	for (uint32_t k = 0; k < 2 && st == OM_OK; k++)
		memcpy(got + k * NIN, om_exec_result(e, k)->data, NIN * sizeof *got);
	om_exec_free(e);
	return st;
}

/* ---- Executors of one program. ---- */

struct runner {
	const om_prog *p;
	int seed;
	bool is_same;            /* as alone */
	float want[NTIME][2 * NIN];
};

static void *
run_many(void *arg)
{
	struct runner *r = arg;
	om_session *s = om_session_new();
	float got[2 * NIN];

	r->is_same = true;
	for (int k = 0; k < NTIME; k++)
		r->is_same &= run_once(s, r->p, &ways[k % NWAY], r->seed + k, got) == OM_OK
		    && memcmp(got, r->want[k], sizeof got) == 0;
	/* What it is told is told to nobody else. */
	om_exec *none;
	char mine[64];
	snprintf(mine, sizeof mine, "of thread %d", r->seed);
	om_fail(s, OM_USAGE, "%s", mine);
	r->is_same &= strcmp(om_message(s), mine) == 0 && om_exec_new(s, r->p, NULL, NULL, &none) == OM_USAGE
	    && strstr(om_message(s), "requires a plan");
	om_session_free(s);
	return NULL;
}

static bool
executors_of_one_program(void)
{
	om_session *s = om_session_new();
	struct runner r[NTHREAD];
	pthread_t id[NTHREAD];
	bool good = true;
	om_prog *p;

	if (read_and_plan(s, &p) != OM_OK) {
		printf("# %s\n", om_message(s));
		return false;
	}
	for (int t = 0; t < NTHREAD; t++) {
		r[t] = (struct runner){.p = p, .seed = 3 * t};
		for (int k = 0; k < NTIME; k++)
			good &= run_once(s, p, &ways[k % NWAY], r[t].seed + k, r[t].want[k]) == OM_OK;
	}
	if (!good)
		printf("# %s\n", om_message(s));
	for (int t = 0; t < NTHREAD; t++)
		good &= pthread_create(&id[t], NULL, run_many, &r[t]) == 0;
	for (int t = 0; t < NTHREAD; t++)
		good &= pthread_join(id[t], NULL) == 0 && r[t].is_same;
	om_prog_free(p);
	om_session_free(s);
	return good;
}

/* ---- Programs side by side. ---- */

static om_status
plan_as_text(om_session *s, char **dump)
{
	om_prog *p;
	const om_status st = read_and_plan(s, &p);

	if (st == OM_OK)
		*dump = text_dump(p, OM_DUMP_LIVE);
	om_prog_free(p);
	return st;
}

static void *
plan_one(void *arg)
{
	om_session *s = om_session_new();
	char **dump = arg;

	if (plan_as_text(s, dump) != OM_OK)
		printf("# %s\n", om_message(s));
	om_session_free(s);
	return NULL;
}

static bool
programs_side_by_side(void)
{
	om_session *s = om_session_new();
	char *want = NULL, *got[NTHREAD] = {NULL};
	pthread_t id[NTHREAD];
	bool good = plan_as_text(s, &want) == OM_OK;

	for (int t = 0; t < NTHREAD; t++)
		good &= pthread_create(&id[t], NULL, plan_one, &got[t]) == 0;
	for (int t = 0; t < NTHREAD; t++) {
		good &= pthread_join(id[t], NULL) == 0 && got[t] && strcmp(got[t], want) == 0;
		free(got[t]);
	}
	free(want);
	om_session_free(s);
	return good;
}

/* ---- Plans of one program. ---- */

struct planner {
	const om_prog *p;        /* not bound and not planned */
	bool is_same;            /* as alone */
	float want[2 * NIN];
};

static om_status
plan_and_run(om_session *s, om_plan_cache *c, float got[2 * NIN])
{
	om_binding *b = om_binding_new();
	const om_prog *p;

	om_status st = om_plan_cache_get(c, b, &p);
	if (st == OM_OK)
		st = run_once(s, p, &ways[POISONED], 5, got);
	om_binding_free(b);
	return st;
}

static void *
plan_copy(void *arg)
{
	struct planner *r = arg;
	om_session *s = om_session_new();
	om_host *h = om_host_new(s, NULL);
	om_plan_cache *c = om_plan_cache_new(h, r->p, NULL);
	float got[2 * NIN];

	r->is_same = plan_and_run(s, c, got) == OM_OK && memcmp(got, r->want, sizeof got) == 0;
	om_plan_cache_free(c);
	om_host_free(h);
	om_session_free(s);
	return NULL;
}

static bool
plans_of_one_program(void)
{
	om_session *s = om_session_new();
	struct planner r[NTHREAD] = {{0}};
	pthread_t id[NTHREAD];
	om_prog *p = NULL;

	bool good = text_parse(s, text, &p) == OM_OK;
	for (int t = 0; t < NTHREAD; t++) {
		om_prog *alone = NULL;
		good &= read_and_plan(s, &alone) == OM_OK && run_once(s, alone, &ways[POISONED], 5, r[t].want) == OM_OK;
		om_prog_free(alone);
		r[t].p = p;
		good &= pthread_create(&id[t], NULL, plan_copy, &r[t]) == 0;
	}
	for (int t = 0; t < NTHREAD; t++)
		good &= pthread_join(id[t], NULL) == 0 && r[t].is_same;
	om_prog_free(p);
	om_session_free(s);
	return good;
}

int
main(void)
{
	const bool one = executors_of_one_program(), two = programs_side_by_side(), three = plans_of_one_program();

	printf("%s 1 - executors of one program in %d threads\n", one ? "ok" : "not ok", NTHREAD);
	printf("%s 2 - programs read and planned in %d threads\n", two ? "ok" : "not ok", NTHREAD);
	printf("%s 3 - copies of one program bound and planned in %d threads\n1..3\n", three ? "ok" : "not ok", NTHREAD);
	return one && two && three ? EXIT_SUCCESS : EXIT_FAILURE;
}
