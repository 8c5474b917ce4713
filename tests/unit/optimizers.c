/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers: two steps on known gradients, against their formulas in double precision. */
#include <config.h>

#include <math.h>
#include <stdio.h>

#include "onnxmem/autodiff.h"
#include "onnxmem/trainer.h"
#include "unit.h"

enum { N = 3, STEPS = 3 };

static const double rate = 0.1, mu = 0.9, b1 = 0.8, b2 = 0.95, epsilon = 0.01;
static const double start[N] = {1, -2, 0.5}, gradient[STEPS][N] = {{0.5, -1, 2}, {-0.25, 3, 1}, {1, 1, -4}};

/* The states of one weight. */
struct model {
	double w[N], m[N], v[N];
};

static double
norm(const double *x)
{
	return sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
}

static void
adam_direction(struct model *s, const double *g, int t, double *u)
{
	for (int k = 0; k < N; k++) {
		s->m[k] = b1 * s->m[k] + (1 - b1) * g[k];
		s->v[k] = b2 * s->v[k] + (1 - b2) * g[k] * g[k];
		u[k] = s->m[k] / (1 - pow(b1, t)) / (sqrt(s->v[k] / (1 - pow(b2, t))) + epsilon);
	}
}

static void
step(const char *name, struct model *s, const double *of, int t, double decay)
{
	double u[N], g[N], scale = 1;

	for (int k = 0; k < N; k++)
		g[k] = of[k] + (strcmp(name, "adamw") && strcmp(name, "lamb") ? decay * s->w[k] : 0);
	if (strncmp(name, "adam", 4) == 0 || strcmp(name, "lamb") == 0)
		adam_direction(s, g, t, u);
	for (int k = 0; k < N; k++) {
		if (strcmp(name, "sgd") == 0) {
			u[k] = g[k];
		} else if (strcmp(name, "momentum") == 0 || strcmp(name, "nesterov") == 0) {
			s->m[k] = mu * s->m[k] + g[k];
			u[k] = strcmp(name, "momentum") == 0 ? s->m[k] : g[k] + mu * s->m[k];
		} else if (strcmp(name, "rmsprop") == 0 || strcmp(name, "adagrad") == 0) {
			s->v[k] = strcmp(name, "rmsprop") == 0 ? b2 * s->v[k] + (1 - b2) * g[k] * g[k] : s->v[k] + g[k] * g[k];
			u[k] = g[k] / (sqrt(s->v[k]) + epsilon);
		} else {
			u[k] += decay * s->w[k] * (strcmp(name, "adam") != 0);
		}
	}
	if (strcmp(name, "lamb") == 0 && norm(s->w) > 0 && norm(u) > 0)
		scale = norm(s->w) / norm(u);
	for (int k = 0; k < N; k++)
		s->w[k] -= rate * scale * u[k];
}

static unsigned
calls(const om_prog *p)
{
	unsigned n = 0;

	for (const om_op *op = p->first->first; op; op = op->next)
		n += strcmp(op->type, "Update") == 0;
	return n;
}

/* The loss is the sum of x * w, so that the gradient of w is x. */
static void
check(const char *name, double decay, bool fuses, const double *from)
{
	char text[512];
	struct model want = {.w = {from[0], from[1], from[2]}};
	om_train_options how = OM_TRAIN_OPTIONS;
	const char *const weight[] = {"w"};
	om_trainer *t = NULL;
	om_exec *e = NULL;
	bench b;

	how.loss = "l";
	how.optimizer = name;
	how.rate = rate;
	how.momentum = mu;
	how.beta1 = b1;
	how.beta2 = b2;
	how.epsilon = epsilon;
	how.decay = decay;
	how.fuses_updates = fuses;
	how.wrt = weight;
	how.nwrt = 1;
	snprintf(text, sizeof text, "program \"t\" ir 8 opset 18\n^g(%%x: float64[3]) {\n	%%w = const float64[3] {%g, %g, %g}\n"
		"	%%p = Mul(%%x, %%w)\n	%%l = ReduceSum(%%p) {keepdims = 0}\n	ret %%l\n}\n", from[0], from[1], from[2]);
	unit_start(&b, text, "inline,shapes");
	CU_ASSERT_FATAL(is_ok(b.s, om_prog_add_training_step(b.s, b.p, &how)));
	CU_ASSERT_FATAL(is_ok(b.s, om_host_run(b.h, b.p, om_default_pipeline())));
	CU_ASSERT_FATAL(is_ok(b.s, om_exec_new(b.s, b.p, b.p->plan, NULL, &e)));
	CU_ASSERT_FATAL(is_ok(b.s, om_trainer_new(b.s, b.p, &t)));
	CU_ASSERT_FATAL(is_ok(b.s, om_trainer_bind(t, e)));
	CU_ASSERT_EQUAL(calls(b.p), fuses);
	for (int k = 0; k < STEPS; k++) {
		uint64_t copied = 0;
		CU_ASSERT(is_ok(b.s, om_exec_input(e, 0, &(om_tensor){.type = OM_FLOAT64, .shape = om_shape_of(1, (int64_t[]){N}),
			.data = (void *)gradient[k]})));
		CU_ASSERT(is_ok(b.s, om_trainer_step(t, e, &copied)));
		step(name, &want, gradient[k], k + 1, decay);
	}
	const om_tensor *state;
	const char *label;
	bool found = false;
	for (uint32_t k = 0; (state = om_trainer_state(t, k, &label)); k++)
		for (int i = 0; i < N && strcmp(label, "w") == 0; i++) {
			found = true;
			CU_ASSERT_DOUBLE_EQUAL(((const double *)state->data)[i], want.w[i], 1e-12);
		}
	CU_ASSERT(found);
	om_trainer_free(t);
	om_exec_free(e);
	bench_close(&b);
}

static void
of_formulas(void)
{
	static const char *const all[] = {"sgd", "momentum", "nesterov", "adam", "adamw", "rmsprop", "adagrad", "lamb"};

	for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
		printf("# %s\n", all[k]);
		for (int fuses = 0; fuses < 2; fuses++) {
			check(all[k], 0, fuses, start);
			check(all[k], 0.125, fuses, start);
		}
	}
}

/* A weight of zeros has no norm to scale by. */
static void
of_zeros(void)
{
	for (int fuses = 0; fuses < 2; fuses++)
		check("lamb", 0, fuses, (const double[N]){0, 0, 0});
}

/* New elements of one state that a plan has in the memory of another are not lost. */
static void
of_crossed_states(void)
{
	static const char text[] = "program \"t\" ir 8 opset 18\n^g(%x: float32[4], %a: float32[4], %b: float32[4]) {\n"
		"	%c = Neg(%x)\n	%d = Sub(%a, %c)\n	%seen = Neg(%b)\n	ret %c, %seen, %d\n}\n";
	const float x[] = {1, 2, 3, 4}, zeros[4] = {0};
	float fresh[4];          /* which a run may overwrite */
	const om_tensor given = {.type = OM_FLOAT32, .shape = om_shape_of(1, (int64_t[]){4}), .data = fresh};
	om_io_alias alias[] = {{.param = 1, .result = 0}, {.param = 2, .result = 2}};
	om_trainer *t = NULL;
	om_exec *e = NULL;
	uint64_t copied = 0;
	bench b;

	unit_start(&b, text, "shapes");
	b.p->io_alias = alias;
	b.p->nio_alias = 2;
	b.p->cap_io_alias = 2;
	CU_ASSERT_FATAL(is_ok(b.s, om_host_run(b.h, b.p, "alias-io:results=any,inplace,pack")));
	CU_ASSERT_FATAL(is_ok(b.s, om_exec_new(b.s, b.p, b.p->plan, NULL, &e)));
	CU_ASSERT_FATAL(is_ok(b.s, om_trainer_new(b.s, b.p, &t)));
	for (int k = 0; k < 2; k++) {
		om_tensor zero = given;
		zero.data = (void *)zeros;
		CU_ASSERT(is_ok(b.s, om_trainer_set(t, k ? "b" : "a", &zero)));
	}
	CU_ASSERT(is_ok(b.s, om_trainer_bind(t, e)));
	for (int k = 0; k < 3; k++) {
		memcpy(fresh, x, sizeof x);
		CU_ASSERT(is_ok(b.s, om_exec_input(e, 0, &given)));
		CU_ASSERT(is_ok(b.s, om_trainer_step(t, e, &copied)));
	}
	const char *label;
	const om_tensor *first = om_trainer_state(t, 0, &label), *second = om_trainer_state(t, 1, &label);
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(((const float *)first->data)[i], -x[i]);
		CU_ASSERT_EQUAL(((const float *)second->data)[i], 0);    /* -x + x, of the state before */
	}
	om_trainer_free(t);
	om_exec_free(e);
	b.p->io_alias = NULL;
	b.p->nio_alias = 0;
	bench_close(&b);
}

static CU_TestInfo tests[] = {
	{"formulas", of_formulas},
	{"crossed states", of_crossed_states},
	{"zeros", of_zeros},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("optimizers", tests);
