/* SPDX-License-Identifier: Apache-2.0 */
/* The library of layers: forms of what it builds, weights by a seed, errors that are recorded. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "onnxmem/nn.h"
#include "unit.h"

struct building {
	bench b;
	om_nn *n;
};

static struct building
start(int opset, uint64_t seed)
{
	struct building t = {.b = bench_open()};

	CU_ASSERT_FATAL(is_ok(t.b.s, om_model_empty(t.b.s, "net", opset, &t.b.model)));
	CU_ASSERT_FATAL(is_ok(t.b.s, om_model_import(t.b.s, t.b.model, &t.b.p)));
	CU_ASSERT_FATAL(is_ok(t.b.s, om_nn_new(t.b.s, t.b.p, seed, &t.n)));
	return t;
}

static om_value *
input(struct building *t, int rank, const int64_t *dim)
{
	return om_nn_input(t->n, "x", OM_FLOAT32, rank, dim);
}

static bool
has_shape(const om_value *v, int rank, const int64_t *dim)
{
	char text[256];
	const om_shape want = om_shape_of(rank, dim);

	if (v && om_shape_equal(&v->shape, &want))
		return true;
	printf("# the shape is %s\n", v ? om_shape_text(&v->shape, text, sizeof text) : "that of nothing");
	return false;
}

static const int64_t image[] = {2, 8, 9, 9}, steps[] = {5, 2, 6}, tokens[] = {2, 5, 6};

static void
of_images(void)
{
	struct building t = start(18, 1);
	om_value *x = input(&t, 4, image);

	CU_ASSERT(has_shape(om_nn_conv(t.n, x, OM_NN_CONV(.channels = 6, .kernel = 5, .stride = 2)), 4, (int64_t[]){2, 6, 5, 5}));
	CU_ASSERT(has_shape(om_nn_conv(t.n, x, OM_NN_CONV(.channels = 8, .kernel = 3, .groups = 8, .dilation = 2, .norm = true, .activation = "Relu")),
		4, (int64_t[]){2, 8, 9, 9}));
	CU_ASSERT(has_shape(om_nn_residual(t.n, x, 8, 1), 4, image));
	CU_ASSERT(has_shape(om_nn_residual(t.n, x, 4, 2), 4, (int64_t[]){2, 4, 5, 5}));
	CU_ASSERT(has_shape(om_nn_inception(t.n, x, OM_NN_INCEPTION(.point = 1, .reduce3 = 2, .wide3 = 3, .reduce5 = 2, .wide5 = 4, .pool = 5)),
		4, (int64_t[]){2, 13, 9, 9}));
	om_value *y = om_nn_inception(t.n, x, OM_NN_INCEPTION(.pool = 5, .norm = true));
	CU_ASSERT(has_shape(y, 4, (int64_t[]){2, 5, 9, 9}));
	y = om_nn_global_pool(t.n, y);
	CU_ASSERT(has_shape(y, 2, (int64_t[]){2, 5}));
	y = om_nn_mlp(t.n, y, 3, (int64_t[]){7, 8, 3}, "Tanh");
	CU_ASSERT(has_shape(y, 2, (int64_t[]){2, 3}));
	om_nn_output(t.n, "y", y);
	CU_ASSERT(is_ok(t.b.s, om_nn_end(t.n)));
	bench_close(&t.b);
}

/* Sizes may be open where nothing depends on them. */
static void
of_sequences(void)
{
	struct building t = start(18, 1);
	om_value *x = input(&t, 3, steps), *s = om_nn_input(t.n, "s", OM_FLOAT32, 3, tokens);
	om_value *open = om_nn_input(t.n, "open", OM_FLOAT32, 3, (int64_t[]){OM_DIM_UNKNOWN, OM_DIM_UNKNOWN, 6});
	om_value *i = om_nn_input(t.n, "i", OM_INT64, 2, (int64_t[]){2, 5});

	CU_ASSERT(has_shape(om_nn_recurrent(t.n, "LSTM", x, 4, false), 3, (int64_t[]){5, 2, 4}));
	CU_ASSERT(has_shape(om_nn_recurrent(t.n, "GRU", x, 4, true), 3, (int64_t[]){5, 2, 8}));
	CU_ASSERT(has_shape(om_nn_last_step(t.n, om_nn_recurrent(t.n, "RNN", x, 4, true)), 2, (int64_t[]){2, 8}));
	CU_ASSERT(has_shape(om_nn_attention(t.n, s, 3, true), 3, tokens));
	CU_ASSERT(has_shape(om_nn_transformer(t.n, s, 2, 9, false), 3, tokens));
	CU_ASSERT(has_shape(om_nn_embedding(t.n, i, 7, 3), 3, (int64_t[]){2, 5, 3}));
	CU_ASSERT_PTR_NOT_NULL(om_nn_transformer(t.n, open, 2, 9, false));
	CU_ASSERT(is_ok(t.b.s, om_nn_end(t.n)));
	bench_close(&t.b);
}

/* One seed, one net: as text, with all elements. */
static void
of_seeds(void)
{
	char *text[3];

	for (int k = 0; k < 3; k++) {
		struct building t = start(18, k == 2 ? 6 : 5);
		om_nn_output(t.n, "y", om_nn_linear(t.n, input(&t, 3, steps), 4));
		CU_ASSERT(is_ok(t.b.s, om_nn_end(t.n)));
		text[k] = text_dump(t.b.p, OM_DUMP_ALL_DATA);
		bench_close(&t.b);
	}
	CU_ASSERT_STRING_EQUAL(text[0], text[1]);
	CU_ASSERT_STRING_NOT_EQUAL(text[0], text[2]);
	for (int k = 0; k < 3; k++)
		free(text[k]);
}

static om_value *wide(om_nn *n, om_value *x) { return om_nn_conv(n, x, OM_NN_CONV(.channels = 4, .kernel = 2)); }
static om_value *none(om_nn *n, om_value *x) { return om_nn_conv(n, x, OM_NN_CONV(.kernel = 3)); }
static om_value *grouped(om_nn *n, om_value *x) { return om_nn_conv(n, x, OM_NN_CONV(.channels = 4, .kernel = 3, .groups = 3)); }
static om_value *branches(om_nn *n, om_value *x) { return om_nn_inception(n, x, OM_NN_INCEPTION(.norm = true)); }
static om_value *recurrent(om_nn *n, om_value *x) { return om_nn_recurrent(n, "LSTM", x, 4, false); }
static om_value *activation(om_nn *n, om_value *x) { return om_nn_activation(n, x, "Nothing"); }
static om_value *twice(om_nn *n, om_value *x) { (void)x; return om_nn_input(n, "x", OM_FLOAT32, 0, NULL); }

static om_value *
kind(om_nn *n, om_value *x)
{
	(void)x;
	return om_nn_recurrent(n, "Transformer", om_nn_input(n, "s", OM_FLOAT32, 3, steps), 4, false);
}

static om_value *
heads(om_nn *n, om_value *x)
{
	(void)x;
	return om_nn_attention(n, om_nn_input(n, "s", OM_FLOAT32, 3, tokens), 4, false);
}

static om_value *
masked(om_nn *n, om_value *x)
{
	(void)x;
	return om_nn_attention(n, om_nn_input(n, "s", OM_FLOAT32, 3, (int64_t[]){2, OM_DIM_UNKNOWN, 6}), 2, true);
}

/* The first error stays, nothing is built after it, and NULL is harmless. */
static void
of_errors(void)
{
	static const struct {
		om_value *(*build)(om_nn *n, om_value *x);
		om_status st;
		const char *told;
	} cases[] = {
		{wide, OM_USAGE, "odd, not 2"}, {none, OM_USAGE, "channels of a convolution is at least 1, not 0"},
		{grouped, OM_USAGE, "3 groups do not divide"}, {branches, OM_USAGE, "has a branch"},
		{recurrent, OM_SHAPE, "a recurrent layer: x has the shape [2,8,9,9]"}, {activation, OM_UNSUPPORTED, "Nothing does not exist in opset 18"},
		{twice, OM_USAGE, "a value x already"}, {heads, OM_USAGE, "4 heads do not divide"}, {masked, OM_SHAPE, "causal attention: s"},
		{kind, OM_USAGE, "not Transformer"},
	};

	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct building t = start(18, 1);
		om_value *y = cases[k].build(t.n, input(&t, 4, image));
		CU_ASSERT_PTR_NULL(y);
		const uint32_t nop = t.b.p->nop;
		y = om_nn_transformer(t.n, om_nn_residual(t.n, om_nn_linear(t.n, y, 3), 4, 1), 2, 2, true);
		om_nn_output(t.n, "y", om_nn_flat(t.n, y));
		CU_ASSERT_EQUAL(t.b.p->nop, nop);
		CU_ASSERT(is_told(t.b.s, om_nn_end(t.n), cases[k].st, cases[k].told));
		bench_close(&t.b);
	}
	struct building t = start(16, 1);
	om_nn_layer_norm(t.n, input(&t, 3, steps));
	CU_ASSERT(is_told(t.b.s, om_nn_end(t.n), OM_UNSUPPORTED, "LayerNormalization does not exist in opset 16"));
	bench_close(&t.b);
}

static CU_TestInfo tests[] = {
	{"images", of_images},
	{"sequences", of_sequences},
	{"seeds", of_seeds},
	{"errors", of_errors},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("nn", tests);
