/* SPDX-License-Identifier: Apache-2.0 */
/* The dynamic graph: gradients of recorded calls, results that are dropped, results that are remembered. */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "eager.h"
#include "eager/eager_internal.h"

static om_variable *
doubles(om_eager *e, int rank, const int64_t *dim, const double *x)
{
	const om_tensor t = {.type = OM_FLOAT64, .shape = om_shape_of(rank, dim), .data = (void *)x};
	om_variable *v = NULL;

	CU_ASSERT_FATAL(om_variable_new(e, &t, &v) == OM_OK);
	return v;
}

static double
scalar_of(struct graph *g, om_variable *v)
{
	const om_tensor *t;

	CU_ASSERT_FATAL(is_ok(g->s, om_variable_read(v, &t)));
	return *(const double *)t->data;
}

/* Ops, whose temporaries are freed at the end. */
struct scratch {
	struct graph g;
	om_variable *all[256];
	size_t n;
};

static om_variable *
op(struct scratch *t, const char *type, om_variable *a, om_variable *b)
{
	CU_ASSERT_FATAL(t->n < 256);
	return t->all[t->n++] = eager_op(&t->g, type, a, b);
}

static void
free_all(struct scratch *t)
{
	om_variables_free(t->all, t->n);
	t->n = 0;
}

enum { NW = 4 };

/* A perceptron whose depth the elements decide: control flow of the host. */
static om_variable *
loss_of(struct scratch *t, om_variable *x, om_variable *const *w)
{
	om_variable *h = op(t, "Tanh", op(t, "MatMul", x, w[0]), NULL);
	om_variable *sum = op(t, "ReduceSum", h, NULL);

	for (int k = 0; k < 5 && scalar_of(&t->g, sum) < 3; k++) {
		h = op(t, "Tanh", op(t, "Add", op(t, "MatMul", h, w[1]), w[2]), NULL);
		sum = op(t, "ReduceSum", h, NULL);
	}
	h = op(t, "MatMul", h, w[3]);
	return op(t, "ReduceMean", op(t, "Mul", h, h), NULL);
}

static const int64_t dims[NW][2] = {{3, 4}, {4, 4}, {1, 4}, {4, 2}}, xdim[] = {2, 3};

static void
draw(uint64_t *seed, int64_t n, double *x)
{
	for (int64_t k = 0; k < n; k++)
		x[k] = om_rng_unit(seed) * 2 - 1;
}

static double
value_at(struct scratch *t, const double *x, double w[NW][16])
{
	om_variable *in = doubles(t->g.e, 2, xdim, x), *weight[NW];

	for (int k = 0; k < NW; k++)
		weight[k] = doubles(t->g.e, 2, dims[k], w[k]);
	const double y = scalar_of(&t->g, loss_of(t, in, weight));
	free_all(t);
	om_variables_free(weight, NW);
	om_variable_free(in);
	return y;
}

static void
check_gradient(struct scratch *t, const double *x, double w[NW][16], const double *found, int k)
{
	enum { STEPS = 3 };
	const double h = 1e-6;

	for (int i = 0; i < STEPS; i++) {
		const int at = i * 5 % (int)(dims[k][0] * dims[k][1]);
		const double was = w[k][at];
		w[k][at] = was + h;
		const double up = value_at(t, x, w);
		w[k][at] = was - h;
		const double down = value_at(t, x, w);
		w[k][at] = was;
		CU_ASSERT_DOUBLE_EQUAL(found[at], (up - down) / (2 * h), 1e-6);
	}
}

static void
train_once(struct scratch *t, uint64_t *seed, bool checks)
{
	double x[6], w[NW][16];
	om_variable *weight[NW], *grad[NW];

	draw(seed, 6, x);
	om_variable *in = doubles(t->g.e, 2, xdim, x);
	for (int k = 0; k < NW; k++) {
		draw(seed, 16, w[k]);
		weight[k] = doubles(t->g.e, 2, dims[k], w[k]);
		om_variable_watch(weight[k]);
	}
	om_eager_record(t->g.e, true);
	om_variable *loss = loss_of(t, in, weight);
	om_eager_record(t->g.e, false);
	CU_ASSERT_FATAL(is_ok(t->g.s, om_eager_gradient(t->g.e, loss, NULL, NW, weight, grad)));
	free_all(t);
	for (int k = 0; k < NW; k++) {
		const om_tensor *g = NULL;
		if (grad[k]) {
			CU_ASSERT_FATAL(is_ok(t->g.s, om_variable_read(grad[k], &g)));
			CU_ASSERT_EQUAL(g->shape.dim[0], dims[k][0]);
			if (checks)
				check_gradient(t, x, w, g->data, k);
		}
		om_variable_free(grad[k]);
		om_variable_free(weight[k]);
	}
	om_variable_free(in);
}

static void
of_control_flow(void)
{
	struct scratch t = {.g = eager_start(NULL)};
	uint64_t seed = 5;

	for (int k = 0; k < 30; k++)
		train_once(&t, &seed, k % 10 == 9);
	CU_ASSERT(om_eager_get_stats(t.g.e)->replays > 0);
	om_eager_trim(t.g.e);
	CU_ASSERT_EQUAL(om_eager_get_stats(t.g.e)->variables, 0);
	eager_end(&t.g);
}

/* x^3 by itself: 3 x^2, 6 x, 6. */
static void
of_gradients_of_gradients(void)
{
	struct scratch t = {.g = eager_start(NULL)};
	const double two = 2;
	om_variable *x = doubles(t.g.e, 0, NULL, &two), *g[4] = {NULL};

	for (int k = 0; k < 4; k++) {
		om_variable_watch(x);
		om_eager_record(t.g.e, true);
		om_variable *y = op(&t, "Mul", op(&t, "Mul", x, x), x);
		static const double want[] = {8, 12, 12, 6};
		for (int i = 0; i < 3; i++) {
			CU_ASSERT_EQUAL(scalar_of(&t.g, y), want[i]);
			CU_ASSERT_FATAL(is_ok(t.g.s, om_eager_gradient(t.g.e, y, NULL, 1, &x, &g[i])));
			CU_ASSERT_PTR_NOT_NULL_FATAL(g[i]);
			y = g[i];
		}
		CU_ASSERT_EQUAL(scalar_of(&t.g, y), want[3]);
		om_variables_free(g, 4);
		free_all(&t);
		om_eager_record(t.g.e, false);
	}
	om_variable_free(x);
	om_eager_trim(t.g.e);
	CU_ASSERT_EQUAL(om_eager_get_stats(t.g.e)->variables, 0);
	eager_end(&t.g);
}

static void
of_what_is_not_reached(void)
{
	struct scratch t = {.g = eager_start(NULL)};
	const double two = 2, three = 3, seed = 5;
	om_variable *x = doubles(t.g.e, 0, NULL, &two), *y = doubles(t.g.e, 0, NULL, &three), *s = doubles(t.g.e, 0, NULL, &seed), *g[2];
	om_variable *in[] = {x, y}, *wrong = eager_ints(t.g.e, 1, (int64_t[]){1});

	om_variable_watch(x);
	om_variable *before = op(&t, "Mul", x, x);  /* not recorded */
	om_eager_record(t.g.e, true);
	om_variable *z = op(&t, "Mul", x, before), *other = op(&t, "Sign", x, NULL);
	CU_ASSERT(is_ok(t.g.s, om_eager_gradient(t.g.e, z, s, 2, in, g)));
	CU_ASSERT_EQUAL(scalar_of(&t.g, g[0]), 20);
	CU_ASSERT_PTR_NULL(g[1]);
	om_variables_free(g, 2);
	CU_ASSERT(is_ok(t.g.s, om_eager_gradient(t.g.e, y, s, 2, in, g)));
	CU_ASSERT_PTR_NULL(g[0]);
	CU_ASSERT_EQUAL(scalar_of(&t.g, g[1]), 5);
	om_variables_free(g, 2);
	CU_ASSERT(is_ok(t.g.s, om_eager_gradient(t.g.e, other, NULL, 1, in, g)));
	om_variables_free(g, 1);
	CU_ASSERT(is_told(t.g.s, om_eager_gradient(t.g.e, z, wrong, 1, in, g), OM_SHAPE, "another type or shape"));
	om_variable *rest[] = {x, y, s, wrong};
	om_variables_free(rest, 4);
	free_all(&t);
	om_eager_trim(t.g.e);
	CU_ASSERT_EQUAL(om_eager_get_stats(t.g.e)->variables, 0);
	eager_end(&t.g);
}

/* A recurrent operator: its gradient has bodies, and is run as a whole. */
static void
of_recurrent_operators(void)
{
	struct scratch t = {.g = eager_start(NULL)};
	const int64_t dx[] = {3, 1, 2}, dw[] = {1, 8, 2};
	double x[6], w[16];
	uint64_t seed = 3;

	draw(&seed, 6, x);
	draw(&seed, 16, w);
	for (int turn = 0; turn < 3; turn++) {
		om_variable *in[] = {doubles(t.g.e, 3, dx, x), doubles(t.g.e, 3, dw, w), doubles(t.g.e, 3, dw, w)}, *y, *g, *again;
		om_variable_watch(in[1]);
		om_eager_record(t.g.e, true);
		CU_ASSERT_FATAL(is_ok(t.g.s, om_eager_run(t.g.e, "LSTM", OM_A(OM_MAKE_INT("hidden_size", 2)), 3, in, 1, &y)));
		om_variable *loss = op(&t, "ReduceSum", y, NULL);
		CU_ASSERT_FATAL(is_ok(t.g.s, om_eager_gradient(t.g.e, loss, NULL, 1, in + 1, &g)));
		CU_ASSERT_PTR_NOT_NULL_FATAL(g);
		CU_ASSERT_EQUAL(om_variable_form(g)->shape.dim[1], 8);
		CU_ASSERT(isfinite(scalar_of(&t.g, g)));
		om_variable *of = op(&t, "ReduceSum", g, NULL);
		CU_ASSERT(is_told(t.g.s, om_eager_gradient(t.g.e, of, NULL, 1, in + 1, &again), OM_UNSUPPORTED, "has no gradient"));
		CU_ASSERT_PTR_NULL(again);
		om_eager_record(t.g.e, false);
		om_variable_free(g);
		om_variable_free(y);
		om_variables_free(in, 3);
		free_all(&t);
	}
	om_eager_trim(t.g.e);
	CU_ASSERT_EQUAL(om_eager_get_stats(t.g.e)->variables, 0);
	eager_end(&t.g);
}

/* Under a limit, results are dropped and computed again: the same gradient. */
static void
of_dropped_results(void)
{
	enum { N = 64, DEPTH = 40 };
	double x[N], got[2][N], limits[] = {0, 8 * N * sizeof(double)};
	uint64_t seed = 9, peak[2];
	const int64_t n = N;

	draw(&seed, N, x);
	for (int k = 0; k < 2; k++) {
		struct scratch t = {.g = eager_start(&(om_eager_options)OM_EAGER_OPTIONS(.tape_bytes = (uint64_t)limits[k], .no_replay = true))};
		om_variable *in = doubles(t.g.e, 1, &n, x), *h = om_variable_keep(in), *g;
		om_variable_watch(in);
		om_eager_record(t.g.e, true);
		for (int d = 0; d < DEPTH; d++) {
			om_variable *next = eager_op(&t.g, d % 2 ? "Sin" : "Tanh", h, NULL);
			om_variable_free(h);
			h = next;
		}
		om_variable *loss = op(&t, "ReduceSum", h, NULL);
		om_eager_record(t.g.e, false);
		CU_ASSERT_FATAL(is_ok(t.g.s, om_eager_gradient(t.g.e, loss, NULL, 1, &in, &g)));
		const om_tensor *r;
		CU_ASSERT_FATAL(is_ok(t.g.s, om_variable_read(g, &r)));
		memcpy(got[k], r->data, sizeof got[k]);
		peak[k] = om_eager_get_stats(t.g.e)->peak_bytes;
		CU_ASSERT_EQUAL(om_eager_get_stats(t.g.e)->recomputed > 0, k == 1);
		om_variable *all[] = {in, h, g};
		om_variables_free(all, 3);
		free_all(&t);
		om_eager_trim(t.g.e);
		CU_ASSERT_EQUAL(om_eager_get_stats(t.g.e)->variables, 0);
		CU_ASSERT_EQUAL(om_eager_get_stats(t.g.e)->used_bytes, 0);
		eager_end(&t.g);
	}
	CU_ASSERT_EQUAL(memcmp(got[0], got[1], sizeof got[0]), 0);
	CU_ASSERT(peak[1] < peak[0] * 2 / 3);
}

/* A long chain of records is freed without a deep stack. */
static void
of_long_chains(void)
{
	struct graph g = eager_start(&(om_eager_options)OM_EAGER_OPTIONS(.no_replay = true));
	const double one = 1;
	om_variable *x = doubles(g.e, 0, NULL, &one), *h = om_variable_keep(x);

	om_variable_watch(x);
	om_eager_record(g.e, true);
	for (int k = 0; k < 100000; k++) {
		om_variable *next = eager_op(&g, "Neg", h, NULL);
		om_variable_free(h);
		h = next;
	}
	CU_ASSERT_EQUAL(scalar_of(&g, h), 1);
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->variables, 100001);
	om_variable_free(h);
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->variables, 1);
	om_variable_free(x);
	eager_end(&g);
}

/* What a call reads stays while its other inputs are computed again. */
static void
of_inputs_computed_again(void)
{
	const uint64_t limits[] = {32768, 40960};
	const int64_t small[] = {64, 64}, wide[] = {64, 4096}, tall[] = {4096, 64};
	double *x = calloc(64 * 4096, sizeof *x), got[2] = {0};

	for (int k = 0; k < 64 * 4096; k++)
		x[k] = 0.001 * (k % 97) - 0.03;
	for (int t = 0; t < 2; t++) {
		struct graph g = eager_start(&(om_eager_options)OM_EAGER_OPTIONS(.no_replay = true, .tape_bytes = limits[t]));
		om_variable *a = doubles(g.e, 2, small, x), *l = doubles(g.e, 2, wide, x), *r = doubles(g.e, 2, tall, x), *d[2];
		om_variable_watch(a);
		om_variable_watch(l);
		om_eager_record(g.e, true);
		om_variable *p = eager_op(&g, "MatMul", l, r), *n = eager_op(&g, "Neg", a, NULL), *y = eager_op(&g, "Max", n, p);
		om_variable *aside = eager_op(&g, "Sin", p, NULL), *loss = eager_op(&g, "ReduceSum", y, NULL);
		om_variable *const all[] = {p, n, y, aside};
		for (int k = 0; k < 4; k++)
			om_variable_free(all[k]);
		om_eager_record(g.e, false);
		CU_ASSERT_FATAL(is_ok(g.s, om_eager_gradient(g.e, loss, NULL, 2, (om_variable *[]){a, l}, d)));
		om_variable *sum = eager_op(&g, "ReduceSum", d[0], NULL);
		got[t] = scalar_of(&g, sum);
		om_variable *const rest[] = {sum, d[0], d[1], loss, a, l, r};
		for (int k = 0; k < 7; k++)
			om_variable_free(rest[k]);
		eager_end(&g);
	}
	CU_ASSERT_EQUAL(got[0], got[1]);
	free(x);
}

/* Equal calls on the same variables have their results already; not random ones. */
static void
of_remembered_results(void)
{
	struct graph g = eager_start(&(om_eager_options)OM_EAGER_OPTIONS(.result_bytes = 1000));
	const float x4[] = {1, 2, 3, 4};
	const int64_t four[] = {4};
	om_variable *x = eager_floats(g.e, 1, four, x4), *y = eager_op(&g, "Neg", x, NULL), *z = eager_op(&g, "Neg", x, NULL);

	CU_ASSERT_PTR_NOT_EQUAL(y, z);  /* watching one of them is not watching the other */
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->remembered, 1);
	om_variable_free(y);
	om_variable_free(z);
	z = eager_op(&g, "Neg", x, NULL);
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->remembered, 2);
	CU_ASSERT(eager_holds(&g, z, 4, (float[]){-1, -2, -3, -4}));
	om_variable_free(z);
	om_variable_watch(x);
	om_eager_record(g.e, true);  /* the remembered result has no record: its elements are shared */
	z = eager_op(&g, "Neg", x, NULL);
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->remembered, 3);
	om_variable *sum = eager_op(&g, "ReduceSum", z, NULL), *grad;
	CU_ASSERT(is_ok(g.s, om_eager_gradient(g.e, sum, NULL, 1, &x, &grad)));
	CU_ASSERT(eager_holds(&g, grad, 4, (float[]){-1, -1, -1, -1}));
	om_eager_record(g.e, false);
	om_variable *all[] = {z, sum, grad};
	om_variables_free(all, 3);
	for (int k = 0; k < 200; k++) {
		om_variable *other = eager_floats(g.e, 1, four, x4), *o = eager_op(&g, "Exp", other, NULL);
		om_variable_free(other);
		om_variable_free(o);
		CU_ASSERT(om_eager_get_stats(g.e)->result_bytes <= 1000);
	}
	const uint64_t before = om_eager_get_stats(g.e)->remembered;
	om_variable *a[2], *b[2];
	CU_ASSERT_FATAL(is_ok(g.s, om_eager_run(g.e, "Bernoulli", NULL, 1, &x, 1, a)));
	CU_ASSERT_FATAL(is_ok(g.s, om_eager_run(g.e, "Bernoulli", NULL, 1, &x, 1, b)));
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->remembered, before);
	om_variable *last[] = {a[0], b[0], x};
	om_variables_free(last, 3);
	om_eager_trim(g.e);
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->variables, 0);
	eager_end(&g);
}

static CU_TestInfo tests[] = {
	{"control flow of the host", of_control_flow},
	{"gradients of gradients", of_gradients_of_gradients},
	{"what is not reached", of_what_is_not_reached},
	{"recurrent operators", of_recurrent_operators},
	{"dropped results", of_dropped_results},
	{"long chains", of_long_chains},
	{"remembered results", of_remembered_results},
	{"inputs computed again", of_inputs_computed_again},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("eager gradients", tests);
