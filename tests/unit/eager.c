/* SPDX-License-Identifier: Apache-2.0 */
/* The dynamic graph: calls, recognition of sequences and replay. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "eager.h"
#include "eager/eager_internal.h"

static const int64_t four[] = {4}, two_two[] = {2, 2};
static const float x4[] = {1, -2, 3, -4}, y4[] = {0.5f, 2, -1, 4};

static void
of_calls(void)
{
	struct graph g = eager_start(NULL);
	om_variable *x = eager_floats(g.e, 1, four, x4), *y = eager_floats(g.e, 1, four, y4);
	om_variable *sum = eager_op(&g, "Add", x, y), *relu = eager_op(&g, "Relu", sum, NULL);

	CU_ASSERT(eager_holds(&g, relu, 4, (float[]){1.5f, 0, 2, 0}));
	CU_ASSERT(eager_holds(&g, sum, 4, (float[]){1.5f, 0, 2, 0}));
	CU_ASSERT(eager_holds(&g, x, 4, x4));
	om_variable_free(sum);
	om_variable_free(om_variable_keep(relu));
	CU_ASSERT(eager_holds(&g, relu, 4, (float[]){1.5f, 0, 2, 0}));
	om_variable_free(relu);
	om_variable_free(x);
	om_variable_free(y);
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->variables, 0);
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->used_bytes, 0);
	eager_end(&g);
}

/* Elements that decide shapes are a part of the call; shapes that only a run knows are inferred there. */
static void
of_shapes_from_elements(void)
{
	struct graph g = eager_start(NULL);
	om_variable *x = eager_floats(g.e, 1, four, x4), *shape = eager_ints(g.e, 2, two_two), *flat = eager_ints(g.e, 1, four);
	om_variable *m = eager_op(&g, "Reshape", x, shape), *back = eager_op(&g, "Reshape", m, flat), *found, *out;

	CU_ASSERT_EQUAL(om_variable_form(m)->shape.rank, 2);
	CU_ASSERT_EQUAL(om_variable_form(back)->shape.rank, 1);
	CU_ASSERT(eager_holds(&g, back, 4, x4));
	found = eager_op(&g, "NonZero", m, NULL);
	CU_ASSERT_EQUAL(om_variable_form(found)->shape.dim[1], 4);
	om_variable *size = eager_op(&g, "Shape", m, NULL), *product = eager_op(&g, "Mul", size, shape);
	CU_ASSERT_EQUAL(om_variable_form(product)->shape.dim[0], 2);
	CU_ASSERT(is_told(g.s, om_eager_call(g.e, &out, "Reshape", NULL, x, product), OM_SHAPE, "Reshape")
		|| is_told(g.s, om_eager_call(g.e, &out, "Reshape", NULL, x, product), OM_INVALID, "Reshape"));
	CU_ASSERT_PTR_NULL(out);
	om_variable *all[] = {x, shape, flat, m, back, found, size, product};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		om_variable_free(all[k]);
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->variables, 0);
	eager_end(&g);
}

static void
of_refusals(void)
{
	struct graph g = eager_start(NULL), other = eager_start(NULL);
	om_variable *x = eager_floats(g.e, 1, four, x4), *y = eager_floats(other.e, 1, four, y4), *out[65];

	CU_ASSERT(is_told(g.s, om_eager_run(g.e, "Nothing", NULL, 1, &x, 1, out), OM_UNSUPPORTED, "Nothing is not known in opset"));
	CU_ASSERT(is_told(g.s, om_eager_run(g.e, "If", NULL, 1, &x, 1, out), OM_UNSUPPORTED, "cannot be called"));
	CU_ASSERT(is_told(g.s, om_eager_run(g.e, "Add", NULL, 2, (om_variable *[]){x, y}, 1, out), OM_USAGE, "another context"));
	CU_ASSERT(is_told(g.s, om_eager_run(g.e, "Add", NULL, 1, &x, 1, out), OM_INVALID, "inputs"));
	CU_ASSERT(is_told(g.s, om_eager_run(g.e, "Relu", NULL, 1, &x, 2, out), OM_INVALID, "outputs"));
	CU_ASSERT(is_told(g.s, om_eager_run(g.e, "Relu", NULL, 1, &x, 65, out), OM_USAGE, "65 outputs"));
	om_variable_free(x);
	om_variable_free(y);
	eager_end(&g);
	eager_end(&other);
	g.s = om_session_new();
	CU_ASSERT(is_told(g.s, om_eager_new(g.s, &(om_eager_options)OM_EAGER_OPTIONS(.opset = 9), &g.e), OM_USAGE, "opset"));
	om_session_free(g.s);
}

/* Each new context, one that never defers and one that does compute the same; the second replays from the third time on. */
static void
of_replay(void)
{
	struct graph g = eager_start(NULL);
	om_variable *w = eager_floats(g.e, 2, two_two, y4);

	for (int k = 0; k < 6; k++) {
		const float in[] = {(float)k, 1, -1, 2};
		om_variable *x = eager_floats(g.e, 2, two_two, in);
		om_variable *p = eager_op(&g, "MatMul", x, w), *r = eager_op(&g, "Relu", p, NULL), *z = eager_op(&g, "Add", r, x);
		om_variable_free(p);
		om_variable_free(r);
		const float a = (float)k * 0.5f - 1, b = (float)k * 2 + 4;
		CU_ASSERT(eager_holds(&g, z, 4, (float[]){(a > 0 ? a : 0) + (float)k, b + 1, -1, 6 + 2}));
		om_variable_free(x);
		om_variable_free(z);
		CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->replays, k < 2 ? 0 : (uint64_t)k - 1);
	}
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->programs, 1);
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->replayed, 12);
	CU_ASSERT(om_eager_get_stats(g.e)->last_arena_bytes > 0);
	CU_ASSERT(is_ok(g.s, om_eager_trim(g.e)));
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->programs, 0);
	om_variable_free(w);
	eager_end(&g);
}

/* Calls that were deferred are computed one by one when they diverge: another op, another live result, an error. */
static void
of_divergence(void)
{
	struct graph g = eager_start(NULL);
	om_variable *x = eager_floats(g.e, 1, four, x4), *y = eager_floats(g.e, 1, four, y4);

	for (int k = 0; k < 9; k++) {
		om_variable *a = eager_op(&g, "Add", x, y), *b = eager_op(&g, "Mul", a, y);
		om_variable *c = eager_op(&g, k % 4 == 3 ? "Neg" : "Relu", b, NULL);
		const float s = k % 4 == 3 ? -1 : 1;
		if (k != 5)
			om_variable_free(a);
		CU_ASSERT(eager_holds(&g, c, 4, (float[]){s * 0.75f, s * 0, s == 1 ? 0 : 2, s * 0}));
		if (k == 5) {
			CU_ASSERT(eager_holds(&g, a, 4, (float[]){1.5f, 0, 2, 0}));
			om_variable_free(a);
		}
		om_variable_free(b);
		om_variable_free(c);
	}
	CU_ASSERT(om_eager_get_stats(g.e)->diverged >= 2);
	CU_ASSERT(om_eager_get_stats(g.e)->replays >= 2);
	om_variable_free(x);
	om_variable_free(y);
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->variables, 0);
	eager_end(&g);
}

static om_status
gather(struct graph *g, om_variable *x, int64_t index, om_variable **out)
{
	om_variable *at = eager_ints(g->e, 1, &index), *y = eager_op(g, "Add", x, x);
	const om_tensor *t;
	om_status st = om_eager_call(g->e, out, "Gather", NULL, y, at);

	om_variable_free(at);
	om_variable_free(y);
	return st == OM_OK ? om_variable_read(*out, &t) : st;
}

/* A deferred call fails as the call would have. */
static void
of_failures(void)
{
	struct graph g = eager_start(NULL);
	om_variable *x = eager_floats(g.e, 1, four, x4), *out;

	CU_ASSERT(is_told(g.s, gather(&g, x, 7, &out), OM_RUN, "Gather"));
	for (int k = 0; k < 4; k++) {
		CU_ASSERT(is_ok(g.s, gather(&g, x, k, &out)));
		CU_ASSERT(eager_holds(&g, out, 1, (float[]){2 * x4[k]}));
		om_variable_free(out);
	}
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->replays, 2);
	CU_ASSERT(is_told(g.s, gather(&g, x, 7, &out), OM_RUN, "Gather"));
	om_variable *next;
	CU_ASSERT(is_told(g.s, om_eager_call(g.e, &next, "Neg", NULL, out), OM_RUN, "a call before it failed"));
	om_variable_free(out);
	CU_ASSERT(is_ok(g.s, gather(&g, x, 1, &out)));
	CU_ASSERT(eager_holds(&g, out, 1, (float[]){-4}));
	om_variable_free(out);
	om_variable_free(x);
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->variables, 0);
	eager_end(&g);
}

/* A loop that reads nothing is cut where it repeats itself. */
static void
of_repetitions(void)
{
	struct graph g = eager_start(NULL);
	om_variable *x = eager_floats(g.e, 1, four, x4), *y = eager_floats(g.e, 1, four, y4);
	float want[4];

	memcpy(want, x4, sizeof want);
	for (int k = 0; k < 1000; k++) {
		om_variable *a = eager_op(&g, "Add", x, y), *b = eager_op(&g, "Mul", y, y), *c = eager_op(&g, "Sub", a, b);
		for (int i = 0; i < 4; i++)
			want[i] = want[i] + y4[i] - y4[i] * y4[i];
		om_variable_free(x);
		om_variable_free(a);
		om_variable_free(b);
		x = c;
	}
	CU_ASSERT(om_eager_get_stats(g.e)->replayed > 1500);
	CU_ASSERT(eager_holds(&g, x, 4, want));
	om_variable_free(x);
	om_variable_free(y);
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->variables, 0);
	eager_end(&g);
}

/* Memory does not grow with the number of temporaries, deferred or not. */
static void
of_flat_memory(void)
{
	for (int replays = 0; replays < 2; replays++) {
		struct graph g = eager_start(&(om_eager_options)OM_EAGER_OPTIONS(.no_replay = !replays));
		om_variable *x = eager_floats(g.e, 1, four, x4);
		uint64_t held = 0;
		for (int k = 0; k < 100000; k++) {
			om_variable *y = eager_op(&g, k % 3 ? "Neg" : "Relu", x, NULL);
			om_variable_free(y);
			if (k == 1000)
				held = om_eager_get_stats(g.e)->pool_bytes;
		}
		CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->pool_bytes, held);
		CU_ASSERT(held < 100000);
		om_variable_free(x);
		eager_end(&g);
	}
}

static void
of_a_limit(void)
{
	struct graph g = eager_start(&(om_eager_options)OM_EAGER_OPTIONS(.max_memory = 100000));
	const int64_t shape[] = {100, 100}, big[] = {2};
	om_variable *x = eager_floats(g.e, 1, four, x4), *to = eager_ints(g.e, 2, shape), *one = eager_ints(g.e, 1, big), *m, *out;
	om_variable *scalar = eager_op(&g, "ReduceSum", x, NULL);

	(void)one;
	CU_ASSERT(is_ok(g.s, om_eager_call(g.e, &m, "Expand", NULL, scalar, to)));
	CU_ASSERT(is_told(g.s, om_eager_call(g.e, &out, "Concat", OM_A(OM_MAKE_INT("axis", 0)), m, m), OM_MEMORY, "80000 bytes"));
	CU_ASSERT(is_ok(g.s, om_eager_call(g.e, &out, "ReduceMax", NULL, m)));
	CU_ASSERT(eager_holds(&g, out, 1, (float[]){-2}));
	om_variable *all[] = {x, to, one, m, out, scalar};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		om_variable_free(all[k]);
	eager_end(&g);
}

/* More inputs than there are bits in a word. */
static void
of_many_inputs(void)
{
	struct graph g = eager_start(NULL);
	om_variable *in[100], *y, *z;
	float want[400];

	for (int turn = 0; turn < 4; turn++) {
		for (int k = 0; k < 100; k++) {
			in[k] = eager_floats(g.e, 1, four, x4);
			for (int i = 0; i < 4; i++)
				want[4 * k + i] = -x4[i];
		}
		CU_ASSERT_FATAL(is_ok(g.s, om_eager_run(g.e, "Concat", OM_A(OM_MAKE_INT("axis", 0)), 100, in, 1, &y)));
		z = eager_op(&g, "Neg", y, NULL);
		om_variable_free(y);
		CU_ASSERT(eager_holds(&g, z, 400, want));
		om_variable_free(z);
		om_variables_free(in, 100);
	}
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->replays, 2);
	eager_end(&g);
}

/* A while loop inside of the dynamic graph, for several shapes. */
static void
of_programs(void)
{
	struct graph g = eager_start(NULL);
	om_prog *p = NULL;

	CU_ASSERT_FATAL(is_ok(g.s, text_parse(g.s, "program \"t\" ir 10 opset 18\n^g(%x: float32[N], %n: int64[]) {\n"
		"	%go = const bool[] {1}\n	%y = Loop(%n, %go, %x) {body = ^b(%i: int64[], %c: bool[], %a: float32[N]) {\n"
		"		%d = Add(%a, %a)\n		ret %c, %d\n	}}\n	%z = Neg(%y)\n	ret %z\n}\n", &p)));
	for (int k = 0; k < 6; k++) {
		const int64_t n = 2 + k % 2, times = k;
		const float x[] = {1, 2, 3}, f = (float)(1 << k);
		const om_tensor count = {.type = OM_INT64, .shape = om_shape_of(0, NULL), .data = (void *)&times};
		om_variable *in[2] = {eager_floats(g.e, 1, &n, x)}, *y, *neg;
		CU_ASSERT_FATAL(om_variable_new(g.e, &count, &in[1]) == OM_OK);
		CU_ASSERT_FATAL(is_ok(g.s, om_eager_run_program(g.e, p, 2, in, 1, &y)));
		neg = eager_op(&g, "Neg", y, NULL);
		CU_ASSERT(eager_holds(&g, neg, n, (float[]){f, 2 * f, 3 * f}));
		om_variable_free(y);
		CU_ASSERT(is_told(g.s, om_eager_run_program(g.e, p, 1, in, 1, &y), OM_USAGE, "2 inputs and 1 outputs"));
		om_variable_free(neg);
		om_variables_free(in, 2);
	}
	const int64_t n = 2, times = 1;
	const om_tensor count = {.type = OM_INT64, .shape = om_shape_of(0, NULL), .data = (void *)&times};
	om_variable *in[2] = {eager_floats(g.e, 1, &n, x4)}, *y, *sum, *grad;
	CU_ASSERT_FATAL(om_variable_new(g.e, &count, &in[1]) == OM_OK);
	om_variable_watch(in[0]);
	om_eager_record(g.e, true);
	CU_ASSERT_FATAL(is_ok(g.s, om_eager_run_program(g.e, p, 2, in, 1, &y)));
	sum = eager_op(&g, "ReduceSum", y, NULL);
	CU_ASSERT(is_told(g.s, om_eager_gradient(g.e, sum, NULL, 1, in, &grad), OM_UNSUPPORTED, "follows from a program"));
	om_variable *all[] = {in[0], in[1], y, sum};
	om_variables_free(all, 4);
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->variables, 0);
	eager_end(&g);
	om_prog_free(p);
}

/* One element for all, whatever its width. */
static void
of_splats(void)
{
	struct graph g = eager_start(NULL);
	const unsigned char nibble = 0x5;
	const int64_t n = 3, word = -7;
	const om_tensor packed = {.type = OM_INT4, .shape = om_shape_of(1, &n), .data = (void *)&nibble, .splat = true};
	const om_tensor words = {.type = OM_INT64, .shape = om_shape_of(1, &n), .data = (void *)&word, .splat = true};
	const om_tensor *t;
	om_variable *v[2];

	CU_ASSERT_FATAL(is_ok(g.s, om_variable_new(g.e, &packed, &v[0])));
	CU_ASSERT_FATAL(is_ok(g.s, om_variable_new(g.e, &words, &v[1])));
	CU_ASSERT_FATAL(is_ok(g.s, om_variable_read(v[0], &t)));
	CU_ASSERT(!t->splat && memcmp(t->data, (unsigned char[]){0x55, 0x05}, 2) == 0);
	CU_ASSERT_FATAL(is_ok(g.s, om_variable_read(v[1], &t)));
	CU_ASSERT(!t->splat && memcmp(t->data, (int64_t[]){-7, -7, -7}, 24) == 0);
	om_variables_free(v, 2);
	eager_end(&g);
}

static CU_TestInfo tests[] = {
	{"calls", of_calls},
	{"shapes from elements", of_shapes_from_elements},
	{"refusals", of_refusals},
	{"replay", of_replay},
	{"divergence", of_divergence},
	{"failures", of_failures},
	{"repetitions", of_repetitions},
	{"flat memory", of_flat_memory},
	{"a limit of memory", of_a_limit},
	{"many inputs", of_many_inputs},
	{"programs", of_programs},
	{"splats", of_splats},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("eager", tests);
