/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning, with times that are made up, and choices that layers are lowered by. */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lower/choices.h"
#include "onnxmem/tune.h"
#include "tests/fixtures.h"
#include "unit.h"

/* Two convolutions of equal shapes, another one, one in narrow groups, and a product. */
static const char net[] =
	"program \"net\" ir 8 opset 13\n"
	"^main(%x: float32[1,16,24,120]) {\n"
	"	%w1 = const float32[16,16,3,3] splat {0.01}\n"
	"	%w2 = const float32[16,16,3,3] splat {0.02}\n"
	"	%w3 = const float32[32,16,1,1] splat {0.1}\n"
	"	%w4 = const float32[120,40] splat {0.1}\n"
	"	%w5 = const float32[32,8,1,1] splat {0.1}\n"
	"	%a = Conv(%x, %w1) {pads = [1,1,1,1]}\n"
	"	%b = Conv(%a, %w2) {pads = [1,1,1,1]}\n"
	"	%c = Conv(%b, %w3)\n"
	"	%d = Conv(%c, %w5) {group = 4}\n"
	"	%e = MatMul(%d, %w4)\n"
	"	ret %e\n"
	"}\n";

#define WIDE "conv_n1_c16_k16_g1_i24x120_o24x120_w3x3_s1x1_d1x1"
#define NARROW "conv_n1_c16_k32_g1_i24x120_o24x120_w1x1_s1x1_d1x1"
#define GROUPS "conv_n1_c32_k32_g4_i24x120_o24x120_w1x1_s1x1_d1x1"
#define PRODUCT "product_n768_c120_k40"

/* A machine whose times are known. */
struct machine {
	bool is_even;            /* all choices take the same time */
	bool is_slow_as_a_whole; /* whole runs of others than the first program are slower, whatever their layers take */
	double clock, each;      /* milliseconds; that a measurement takes */
	unsigned measured;       /* programs */
};

static double
time_of(const struct machine *m, const om_choice *c)
{
	const double algorithm = strcmp(c->algorithm, "winograd4") == 0 ? 2 : strcmp(c->algorithm, "winograd2") == 0 ? 3 : 4;

	return m->is_even ? 1 : algorithm * (c->block < 100 ? 0.9 : c->block > 100 ? 1.1 : 1);
}

static om_status
measure(void *arg, om_session *s, const om_prog *p, double seconds, om_tune_times *t)
{
	struct machine *m = arg;
	om_arena *mem = om_arena_new();
	om_choice c;

	(void)s;
	CU_ASSERT(seconds > 0);
	t->ms = m->is_slow_as_a_whole && m->measured++ ? 1000 : 0;
	m->measured += !m->is_slow_as_a_whole;
	m->clock += m->each;
	for (const om_op *op = p->first->first; op; op = op->next) {
		t->op_ms[op->id] = om_layer_key(op, mem, &c) ? time_of(m, &c) : 0.25;
		t->ms += m->is_slow_as_a_whole ? 0 : t->op_ms[op->id];
	}
	om_arena_free(mem);
	return OM_OK;
}

static double
now(void *arg)
{
	return ((struct machine *)arg)->clock;
}

/* ---- A bench that is tuned. ---- */

struct tuned {
	bench b;
	om_prog *planned;
	const om_tuned *is;
};

static om_status
tune(struct tuned *t, struct machine *m, om_tune_options o)
{
	const om_plan_request request = OM_PLAN_REQUEST(.target = OM_TARGET_CPU);

	*t = (struct tuned){.b = bench_open()};
	CU_ASSERT_FATAL(is_ok(t->b.s, bench_read(&t->b, net)));
	CU_ASSERT_FATAL(is_ok(t->b.s, om_host_request(t->b.h, &request)));
	o.measure = measure;
	o.now = now;
	o.arg = m;
	return om_host_tune(t->b.h, t->b.p, &o, t->b.mem, &t->planned, &t->is);
}

static bool
is_tuned(struct tuned *t, struct machine *m, om_tune_options o)
{
	const om_status st = tune(t, m, o);

	return is_ok(t->b.s, st);
}

static void
end(struct tuned *t)
{
	om_prog_free(t->planned);
	bench_close(&t->b);
}

static const char *
chosen(const om_tuned *t, const char *key)
{
	for (uint32_t k = 0; k < t->n; k++)
		if (strcmp(t->layer[k].key, key) == 0)
			return t->layer[k].choice[t->layer[k].chosen].name;
	return "no such layer";
}

/* ---- Runs. ---- */

/* The output of a program, by the way; the caller frees it. */
static float *
output(om_session *s, const om_prog *p, const om_exec_options *o, size_t *n)
{
	om_exec *e;
	static float x[16 * 24 * 120];
	const int64_t dim[] = {1, 16, 24, 120};
	const om_tensor in = {.type = OM_FLOAT32, .shape = om_shape_of(4, dim), .data = x};

	for (size_t k = 0; k < sizeof x / sizeof x[0]; k++)
		x[k] = (float)(k * 37 % 101) / 50 - 1;
	CU_ASSERT_FATAL(is_ok(s, om_exec_new(s, p, p->plan, o, &e)));
	CU_ASSERT(is_ok(s, om_exec_input(e, 0, &in)));
	CU_ASSERT_FATAL(is_ok(s, om_exec_run(e)));
	const om_tensor *y = om_exec_result(e, 0);
	*n = (size_t)om_shape_count(&y->shape);
	float *copy = malloc(*n * sizeof *copy);
	memcpy(copy, y->data, *n * sizeof *copy);
	om_exec_free(e);
	return copy;
}

/* The tuned program gives the same bits in all ways to run it, and what reference kernels give, but for rounding. */
static void
check_runs(struct tuned *t)
{
	const om_exec_options precise = OM_EXEC_OPTIONS(.precise = true, .no_reuse = true);
	size_t n, m;
	float *want = output(t->b.s, t->planned, &ways[SEPARATE], &n), *reference;

	for (int way = 0; way < NWAY; way++) {
		float *y = output(t->b.s, t->planned, &ways[way], &m);
		CU_ASSERT(n == m && memcmp(want, y, n * sizeof *y) == 0);
		free(y);
	}
	CU_ASSERT(is_ok(t->b.s, om_host_run(t->b.h, t->b.p, om_default_pipeline())));
	reference = output(t->b.s, t->b.p, &precise, &m);
	CU_ASSERT_FATAL(n == m);
	for (size_t k = 0; k < n; k++)
		CU_ASSERT(fabsf(want[k] - reference[k]) <= 1e-4f * (1 + fabsf(reference[k])));
	free(want);
	free(reference);
}

/* ---- Tests. ---- */

static void
fastest_is_chosen(void)
{
	struct machine m = {0};
	struct tuned t;

	CU_ASSERT_FATAL(is_tuned(&t, &m, (om_tune_options)OM_TUNE_OPTIONS(.seconds = 5)));
	CU_ASSERT(t.is->n == 4 && !t.is->is_kept && t.is->unmeasured == 0);
	CU_ASSERT_STRING_EQUAL(chosen(t.is, WIDE), "winograd4@50");
	CU_ASSERT_STRING_EQUAL(chosen(t.is, NARROW), "gemm"); /* in one block, whatever its size */
	CU_ASSERT_STRING_EQUAL(chosen(t.is, GROUPS), "gemm@50");
	CU_ASSERT_STRING_EQUAL(chosen(t.is, PRODUCT), "gemm@50");
	CU_ASSERT(t.is->layer[0].ops == 2 && fabs(t.is->layer[0].choice[t.is->layer[0].chosen].ms - 3.6) < 1e-9);
	CU_ASSERT(t.is->chosen.ms < t.is->usual.ms);
	CU_ASSERT(strstr(t.is->choices, PRODUCT "=gemm@50") != NULL);
	CU_ASSERT(t.planned && strstr(t.planned->passes, "lower-layout:choices=") != NULL);
	check_runs(&t);
	end(&t);
}

static void
no_gain_keeps_the_cost_model(void)
{
	struct machine m = {.is_even = true}, slow = {.is_slow_as_a_whole = true};
	struct tuned t;

	CU_ASSERT_FATAL(is_tuned(&t, &m, (om_tune_options)OM_TUNE_OPTIONS(.seconds = 5)));
	CU_ASSERT(t.is->is_kept && !*t.is->choices && t.is->layer[0].chosen == 0);
	CU_ASSERT(strstr(t.planned->passes, "choices") == NULL);
	end(&t);
	CU_ASSERT_FATAL(is_tuned(&t, &slow, (om_tune_options)OM_TUNE_OPTIONS(.seconds = 5)));
	CU_ASSERT(t.is->is_kept && !*t.is->choices);
	end(&t);
}

static void
memory_has_limits(void)
{
	struct machine m = {0};
	struct tuned fast, t;

	CU_ASSERT_FATAL(is_tuned(&fast, &m, (om_tune_options)OM_TUNE_OPTIONS(.seconds = 5)));
	const uint64_t total = fast.is->chosen.memory.total;
	CU_ASSERT_FATAL(is_tuned(&t, &m, (om_tune_options)OM_TUNE_OPTIONS(.seconds = 5, .total = total - 1)));
	CU_ASSERT(t.is->chosen.memory.total < total && strcmp(t.is->choices, fast.is->choices) != 0);
	check_runs(&t);
	end(&t);
	CU_ASSERT_FATAL(is_tuned(&t, &m, (om_tune_options)OM_TUNE_OPTIONS(.seconds = 5, .has_slowdown = true, .slowdown = 1000)));
	CU_ASSERT(strncmp(chosen(t.is, WIDE), "gemm", 4) == 0 && t.is->chosen.memory.total < total);
	end(&t);
	CU_ASSERT_FATAL(is_tuned(&t, &m, (om_tune_options)OM_TUNE_OPTIONS(.seconds = 5, .has_slowdown = true)));
	CU_ASSERT_STRING_EQUAL(chosen(t.is, WIDE), "winograd4@50");
	end(&t);
	const om_status st = tune(&t, &m, (om_tune_options)OM_TUNE_OPTIONS(.seconds = 5, .total = 1000));
	CU_ASSERT(is_told(t.b.s, st, OM_BUDGET, "no choices were found that take at most 1000 bytes; the least is "));
	CU_ASSERT(!t.planned && !t.is);
	end(&t);
	end(&fast);
}

/* The clock ends the search after the first variants. */
static void
time_has_a_limit(void)
{
	struct machine m = {.each = 2000};
	struct tuned t;

	CU_ASSERT_FATAL(is_tuned(&t, &m, (om_tune_options)OM_TUNE_OPTIONS(.seconds = 5)));
	CU_ASSERT(t.is->unmeasured > 0);
	for (uint32_t k = 0; k < t.is->n; k++)
		CU_ASSERT(t.is->layer[k].choice[0].ms >= 0 && t.is->layer[k].choice[t.is->layer[k].chosen].ms >= 0);
	end(&t);
}

static void
write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	CU_ASSERT_FATAL(f != NULL);
	fputs(text, f);
	fclose(f);
}

static void
times_are_kept(void)
{
	char folder[] = "/tmp/onnxmem-tune-XXXXXX", path[64];
	struct machine m = {0}, again = {0}, third = {0};
	struct tuned t;

	CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
	snprintf(path, sizeof path, "%s/layers.tuning", folder);
	const om_tune_options o = OM_TUNE_OPTIONS(.seconds = 5, .cache = folder);
	CU_ASSERT_FATAL(is_tuned(&t, &m, o));
	const char *list = om_tuned_choices(t.b.s, folder, 1, t.b.mem);
	CU_ASSERT(strstr(list, WIDE "=winograd4@50") && strstr(list, PRODUCT "=gemm@50"));
	CU_ASSERT_STRING_EQUAL(om_tuned_choices(t.b.s, folder, 7, t.b.mem), "");
	end(&t);
	CU_ASSERT_FATAL(is_tuned(&t, &again, o));
	CU_ASSERT(again.measured < m.measured && t.is->layer[0].choice[1].was_known);
	CU_ASSERT_STRING_EQUAL(chosen(t.is, WIDE), "winograd4@50");
	end(&t);
	write_text(path, "onnxmem tuning 1\navx2 1 " WIDE " winograd7 0.1 chosen\n");
	CU_ASSERT_FATAL(is_tuned(&t, &third, o));
	CU_ASSERT(third.measured == m.measured);
	CU_ASSERT_STRING_EQUAL(chosen(t.is, WIDE), "winograd4@50");
	end(&t);
	unlink(path);
	rmdir(folder);
}

static void
requests_are_checked(void)
{
	const om_plan_request ranged = OM_PLAN_REQUEST(.target = OM_TARGET_CPU, .ranged = true);
	const om_tune_options o = OM_TUNE_OPTIONS(.seconds = 1), wrong = OM_TUNE_OPTIONS(.seconds = -1);
	bench b = bench_open();
	const om_tuned *t;
	om_prog *p;

	CU_ASSERT_FATAL(is_ok(b.s, bench_read(&b, net)));
	CU_ASSERT(is_told(b.s, om_host_tune(b.h, b.p, &o, b.mem, &p, &t), OM_USAGE, "must be for target cpu"));
	CU_ASSERT(is_ok(b.s, om_host_request(b.h, &ranged)));
	CU_ASSERT(is_told(b.s, om_host_tune(b.h, b.p, &o, b.mem, &p, &t), OM_USAGE, "ranges of sizes cannot be tuned"));
	CU_ASSERT(is_ok(b.s, om_host_request(b.h, &(om_plan_request)OM_PLAN_REQUEST(.target = OM_TARGET_CPU))));
	CU_ASSERT(is_told(b.s, om_host_tune(b.h, b.p, &wrong, b.mem, &p, &t), OM_USAGE, "numbers from 0"));
	bench_close(&b);
}

static void
lists_are_read(void)
{
	om_choice c;

	CU_ASSERT(om_choices_are_valid("") && om_choices_are_valid("a=b") && om_choices_are_valid("a=b;c=d"));
	CU_ASSERT(!om_choices_are_valid("a") && !om_choices_are_valid("=b") && !om_choices_are_valid("a=b;;c=d"));
	CU_ASSERT(om_choices_find("x=gemm@50;y=winograd2", "y", &c) && strcmp(c.algorithm, "winograd2") == 0 && c.block == 100);
	CU_ASSERT(om_choices_find("x=gemm@50;y=winograd2", "x", &c) && c.block == 50);
	CU_ASSERT(!om_choices_find("x=gemm@50", "z", &c));
	CU_ASSERT(om_choices_find("x=gemm@5", "x", &c) && !c.algorithm);
	CU_ASSERT(om_choices_find("x=direct", "x", &c) && !c.algorithm);
	CU_ASSERT(om_choices_find("x=grouped", "x", &c) && c.algorithm && c.block == 100);
	CU_ASSERT(om_choices_find("x=grouped@50", "x", &c) && !c.algorithm);
}

static CU_TestInfo tune_tests[] = {
	{"the fastest choices are taken, and results are right", fastest_is_chosen},
	{"without a gain the cost model decides", no_gain_keeps_the_cost_model},
	{"memory has limits", memory_has_limits},
	{"time has a limit", time_has_a_limit},
	{"times are kept in a folder", times_are_kept},
	{"requests are checked", requests_are_checked},
	{"lists of choices are read", lists_are_read},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("tuning", tune_tests);
