/* SPDX-License-Identifier: Apache-2.0 */
/* The dynamic graph: networks that are built by control flow of the host, and trained.  Call by call and replayed they have the
 * same bits. */
#include <config.h>

#include <stdlib.h>

#include "base/rng.h"
#include "eager.h"

enum { WEIGHTS = 6, LONGEST = 128, WAYS = 2, WIDTH = 8 };

struct net {
	struct graph g;
	om_variable *w[WEIGHTS];
	om_variable *all[LONGEST];  /* temporaries */
	size_t n;
	uint64_t seed;
};

static om_variable *
keep(struct net *t, om_variable *v)
{
	CU_ASSERT_FATAL(t->n < LONGEST);
	return t->all[t->n++] = v;
}

static om_variable *
op(struct net *t, const char *type, const om_attr *attrs, om_variable *a, om_variable *b)
{
	om_variable *out;

	CU_ASSERT_FATAL(is_ok(t->g.s, om_eager_run(t->g.e, type, attrs, b ? 2 : 1, (om_variable *[]){a, b}, 1, &out)));
	return keep(t, out);
}

static void
free_temporaries(struct net *t)
{
	while (t->n)
		om_variable_free(t->all[--t->n]);
}

static om_variable *
drawn(struct net *t, int rank, const int64_t *dim)
{
	float x[1024];
	const om_shape s = om_shape_of(rank, dim);

	CU_ASSERT_FATAL(om_shape_count(&s) <= 1024);
	for (int64_t k = 0; k < om_shape_count(&s); k++)
		x[k] = (float)(om_rng_unit(&t->seed) - 0.5);
	return eager_floats(t->g.e, rank, dim, x);
}

/* A perceptron. */
static om_variable *
perceptron(struct net *t)
{
	om_variable *h = keep(t, drawn(t, 2, (int64_t[]){4, WIDTH}));

	for (int k = 0; k < 3; k++)
		h = op(t, "Relu", NULL, op(t, "MatMul", NULL, h, t->w[k]), NULL);
	return h;
}

/* A convolutional net; its number of stages is drawn. */
static om_variable *
convolutional(struct net *t)
{
	const int64_t pads[] = {1, 1, 1, 1}, two[] = {2, 2};
	om_variable *h = keep(t, drawn(t, 4, (int64_t[]){1, WIDTH, 8, 8}));

	for (uint64_t k = 0; k < 1 + om_rng_below(&t->seed, 2); k++) {
		h = op(t, "Relu", NULL, op(t, "Conv", OM_A(OM_MAKE_INTS("pads", 4, pads)), h, t->w[5]), NULL);
		h = op(t, "MaxPool", OM_A(OM_MAKE_INTS("kernel_shape", 2, two), OM_MAKE_INTS("strides", 2, two)), h, NULL);
	}
	h = op(t, "Flatten", NULL, op(t, "GlobalAveragePool", NULL, h, NULL), NULL);
	return op(t, "MatMul", NULL, h, t->w[0]);
}

static om_variable *
gate(struct net *t, const char *how, om_variable *x, om_variable *h, int k)
{
	return op(t, how, NULL, op(t, "Add", NULL, op(t, "MatMul", NULL, x, t->w[k]), op(t, "MatMul", NULL, h, t->w[(k + 1) % 5])), NULL);
}

/* A recurrent net over a sequence whose length is drawn. */
static om_variable *
recurrent(struct net *t)
{
	const uint64_t length = 2 + om_rng_below(&t->seed, 3);
	om_variable *h = keep(t, drawn(t, 2, (int64_t[]){1, WIDTH})), *c = h;

	for (uint64_t k = 0; k < length; k++) {
		om_variable *x = keep(t, drawn(t, 2, (int64_t[]){1, WIDTH}));
		om_variable *i = gate(t, "Sigmoid", x, h, 0), *f = gate(t, "Sigmoid", x, h, 1), *o = gate(t, "Sigmoid", x, h, 2);
		c = op(t, "Add", NULL, op(t, "Mul", NULL, f, c), op(t, "Mul", NULL, i, gate(t, "Tanh", x, h, 3)));
		h = op(t, "Mul", NULL, o, op(t, "Tanh", NULL, c, NULL));
	}
	return h;
}

/* A net in the structure of a tree, which is drawn. */
static om_variable *
tree(struct net *t, int depth)
{
	if (depth == 3 || om_rng_below(&t->seed, 3) == 0)
		return keep(t, drawn(t, 2, (int64_t[]){1, WIDTH}));
	om_variable *left = tree(t, depth + 1), *right = tree(t, depth + 1);
	return op(t, "Tanh", NULL, op(t, "Add", NULL, op(t, "MatMul", NULL, left, t->w[0]), op(t, "MatMul", NULL, right, t->w[1])), NULL);
}

static om_variable *
some_tree(struct net *t)
{
	om_variable *y = tree(t, 0);

	return op(t, "Mul", NULL, y, y);
}

static struct net
start(const om_eager_options *o)
{
	struct net t = {.g = eager_start(o), .seed = 11};

	for (int k = 0; k < WEIGHTS; k++)
		t.w[k] = k == 5 ? drawn(&t, 4, (int64_t[]){WIDTH, WIDTH, 3, 3}) : drawn(&t, 2, (int64_t[]){WIDTH, WIDTH});
	return t;
}

static void
end(struct net *t)
{
	free_temporaries(t);
	for (int k = 0; k < WEIGHTS; k++)
		om_variable_free(t->w[k]);
	om_eager_trim(t->g.e);
	CU_ASSERT_EQUAL(om_eager_get_stats(t->g.e)->variables, 0);
	CU_ASSERT_EQUAL(om_eager_get_stats(t->g.e)->used_bytes, 0);
	eager_end(&t->g);
}

/* Weights are updated by the gradients of the mean of the squares. */
static float
train(struct net *t, om_variable *(*forward)(struct net *t))
{
	om_variable *grad[WEIGHTS], *next[WEIGHTS] = {NULL};
	const float rate = 0.1f;
	const om_tensor *r;

	for (int k = 0; k < WEIGHTS; k++)
		om_variable_watch(t->w[k]);
	om_eager_record(t->g.e, true);
	om_variable *y = forward(t), *loss = op(t, "ReduceMean", OM_A(OM_MAKE_INT("keepdims", 0)), op(t, "Mul", NULL, y, y), NULL);
	om_eager_record(t->g.e, false);
	CU_ASSERT_FATAL(is_ok(t->g.s, om_eager_gradient(t->g.e, loss, NULL, WEIGHTS, t->w, grad)));
	om_variable *lr = keep(t, eager_floats(t->g.e, 0, NULL, &rate));
	for (int k = 0; k < WEIGHTS; k++) {
		if (!grad[k])
			continue;
		keep(t, grad[k]);
		next[k] = om_variable_keep(op(t, "Sub", NULL, t->w[k], op(t, "Mul", NULL, grad[k], lr)));
	}
	for (int k = 0; k < WEIGHTS; k++)
		if (next[k]) {
			om_variable_free(t->w[k]);
			t->w[k] = next[k];
		}
	loss = om_variable_keep(loss);
	free_temporaries(t);
	CU_ASSERT_FATAL(is_ok(t->g.s, om_variable_read(loss, &r)));
	const float x = *(const float *)r->data;
	om_variable_free(loss);
	return x;
}

static float
infer(struct net *t, om_variable *(*forward)(struct net *t))
{
	om_variable *y = forward(t), *sum = op(t, "ReduceSum", OM_A(OM_MAKE_INT("keepdims", 0)), y, NULL);
	const om_tensor *r;

	sum = om_variable_keep(sum);
	free_temporaries(t);
	CU_ASSERT_FATAL(is_ok(t->g.s, om_variable_read(sum, &r)));
	const float x = *(const float *)r->data;
	om_variable_free(sum);
	return x;
}

static void
check(om_variable *(*forward)(struct net *t), bool trains, int runs)
{
	struct net calls = start(&(om_eager_options)OM_EAGER_OPTIONS(.no_replay = true)), replay = start(NULL);
	uint64_t before = 0;

	for (int k = 0; k < runs; k++) {
		const float a = trains ? train(&calls, forward) : infer(&calls, forward);
		const float b = trains ? train(&replay, forward) : infer(&replay, forward);
		CU_ASSERT_EQUAL(memcmp(&a, &b, sizeof a), 0);
		if (k == runs / 2)
			before = om_eager_get_stats(replay.g.e)->replayed;
	}
	for (int k = 0; k < WEIGHTS; k++) {
		const om_tensor *a = NULL, *b = NULL;
		CU_ASSERT_FATAL(om_variable_read(calls.w[k], &a) == OM_OK && om_variable_read(replay.w[k], &b) == OM_OK);
		CU_ASSERT_EQUAL(memcmp(a->data, b->data, (size_t)om_shape_count(&a->shape) * sizeof(float)), 0);
	}
	/* in the second half, most calls are replayed, in less memory than all results of the sequence take */
	CU_ASSERT(om_eager_get_stats(replay.g.e)->replayed - before > om_eager_get_stats(replay.g.e)->calls / 6);
	CU_ASSERT(om_eager_get_stats(replay.g.e)->last_arena_bytes > 0);
	end(&calls);
	end(&replay);
}

static void
of_a_perceptron(void)
{
	check(perceptron, false, 12);
	check(perceptron, true, 12);
}

static void
of_a_convolutional_net(void)
{
	check(convolutional, false, 16);
	check(convolutional, true, 16);
}

static void
of_varying_lengths(void)
{
	check(recurrent, false, 24);
	check(recurrent, true, 24);
}

static void
of_trees(void)
{
	check(some_tree, false, 80);
	check(some_tree, true, 80);
}

/* A training step becomes one program: the forward and the backward path and the update. */
static void
of_a_training_loop(void)
{
	struct net t = start(NULL);
	float first = 0, last = 0;

	for (int k = 0; k < 60; k++) {
		t.seed = 7;
		last = train(&t, perceptron);
		first = k ? first : last;
		if (k == 9) {
			CU_ASSERT_EQUAL(om_eager_get_stats(t.g.e)->programs, 1);
			CU_ASSERT_EQUAL(om_eager_get_stats(t.g.e)->replays, 8);
		}
	}
	CU_ASSERT_EQUAL(om_eager_get_stats(t.g.e)->replays, 58);
	CU_ASSERT(last < first);
	end(&t);
}

static CU_TestInfo tests[] = {
	{"a perceptron", of_a_perceptron},
	{"a convolutional net", of_a_convolutional_net},
	{"varying lengths", of_varying_lengths},
	{"trees", of_trees},
	{"a training loop", of_a_training_loop},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("eager nets", tests);
