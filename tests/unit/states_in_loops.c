/* SPDX-License-Identifier: Apache-2.0 */
/* Loop-carried tensors whose size only a run knows: they are updated in place and handed on without copies, and where
 * that would overwrite what is still read, they are copied. */
#include <config.h>

#include "tests/fixtures.h"
#include "unit.h"

enum { N = 200, ITERATIONS = 100 };

/* Run the body of a loop over the states %s and %t, n zeros each; false, with the message printed, if that failed. */
static bool
runs(bench *r, const char *body, int way)
{
	static int64_t n = N, m = ITERATIONS;
	const om_tensor in[2] = {{.type = OM_INT64, .shape = om_shape_of(0, NULL), .data = &n},
		{.type = OM_INT64, .shape = om_shape_of(0, NULL), .data = &m}};

	*r = bench_open();
	om_status st = bench_plan(r, om_printf(r->mem, "program \"t\" ir 10 opset 20\n"
		"^main(%%n: int64[], %%m: int64[]) {\n"
		"	%%minus = const int64[1] {-1}\n"
		"	%%zero = const int64[1] {0}\n"
		"	%%ones = const int64[2] {1, 1}\n"
		"	%%one = const float32[1] {1.0}\n"
		"	%%k = Reshape(%%n, %%minus)\n"
		"	%%s0 = ConstantOfShape(%%k)\n"
		"	%%t0 = ConstantOfShape(%%k)\n"
		"	%%y, %%z, %%all = Loop(%%m, _, %%s0, %%t0) {body = ^b(%%i: int64[], %%c: bool[], %%s: float32[?], %%t: float32[?]) {\n"
		"		%%at = Reshape(%%i, %%ones)\n%s"
		"	}}\n"
		"	ret %%y, %%z, %%all\n"
		"}\n", body), om_default_pipeline());
	if (st == OM_OK)
		st = bench_exec(r, &ways[way]);
	for (int k = 0; k < 2 && st == OM_OK; k++)
		st = bench_run(r, in, 2);
	CU_ASSERT_EQUAL(st, OM_OK);
	return is_ok(r->s, st);
}

static float
result(const bench *r, uint32_t k, int64_t at)
{
	return ((const float *)om_exec_result(r->e, k)->data)[at];
}

/* The bytes that a run copies, for a body that returns two states and one number. */
static void
are_in_place(void)
{
	bench r;

	if (runs(&r, "		%u = ScatterND(%s, %at, %one)\n"
		"		%v = Add(%t, %one)\n"
		"		%w = Relu(%v)\n"
		"		%a = Gather(%w, %zero)\n"
		"		ret %c, %u, %w, %a\n", PLANNED)) {
		CU_ASSERT(om_exec_get_stats(r.e)->copied_bytes < 10 * N * sizeof(float));
		CU_ASSERT_EQUAL(result(&r, 0, ITERATIONS - 1), 1);
		CU_ASSERT_EQUAL(result(&r, 0, ITERATIONS), 0);
		CU_ASSERT_EQUAL(result(&r, 1, N - 1), ITERATIONS);
	}
	bench_close(&r);
}

/* Bodies in which a buffer may not be handed on, or not in each iteration. */
static const struct {
	const char *text;
	float y, z, last;            /* the first elements of the states, and of the last scan output */
} hard[] = {
	{"		%u = ScatterND(%s, %at, %one)\n"        /* the old state is read later */
	 "		%v = Add(%t, %s)\n"
	 "		%a = Gather(%v, %zero)\n"
	 "		ret %c, %u, %v, %a\n", 1, ITERATIONS - 1, ITERATIONS - 1},
	{"		%u = Add(%s, %one)\n"                   /* the states are exchanged */
	 "		%a = Gather(%u, %zero)\n"
	 "		ret %c, %t, %u, %a\n", ITERATIONS / 2, ITERATIONS / 2, ITERATIONS / 2},
	{"		%u = Add(%s, %one)\n"                   /* one result for two states */
	 "		%a = Gather(%t, %zero)\n"
	 "		ret %c, %u, %u, %a\n", ITERATIONS, ITERATIONS, ITERATIONS - 1},
	{"		%v = Add(%t, %one)\n"                   /* an invariant state; an input read twice */
	 "		%u = Mul(%v, %v)\n"
	 "		%w = Sqrt(%u)\n"
	 "		%a = Gather(%s, %zero)\n"
	 "		ret %c, %s, %w, %a\n", 0, ITERATIONS, 0},
	{"		%a0 = Gather(%s, %zero)\n"
	 "		%g = Greater(%a0, %one)\n"              /* through branches, which may return what is outside of them */
	 "		%h = Squeeze(%g)\n"
	 "		%u = If(%h) {then_branch = ^p() {\n"
	 "			%q = Neg(%s)\n"
	 "			ret %q\n"
	 "		}, else_branch = ^e() {\n"
	 "			%q2 = Add(%s, %one)\n"
	 "			%q3 = Add(%q2, %one)\n"
	 "			ret %q3\n"
	 "		}}\n"
	 "		%v = Add(%t, %one)\n"
	 "		%a = Gather(%s, %zero)\n"
	 "		ret %c, %u, %v, %a\n", 2, ITERATIONS, 0},
	{"		%d = Identity(%c)\n"                    /* captured by an inner loop, which runs again and again */
	 "		%three = const int64[] {3}\n"
	 "		%x = Add(%s, %one)\n"
	 "		%u = Loop(%three, _, %x) {body = ^in(%j: int64[], %f: bool[], %q: float32[?]) {\n"
	 "			%e = Sub(%q, %x)\n"
	 "			%h = Add(%x, %e)\n"
	 "			ret %f, %h\n"
	 "		}}\n"
	 "		%v = Add(%t, %x)\n"
	 "		%a = Gather(%u, %zero)\n"
	 "		ret %d, %u, %v, %a\n", ITERATIONS, ITERATIONS * (ITERATIONS + 1) / 2, ITERATIONS},
};

static void
are_right(void)
{
	for (size_t k = 0; k < sizeof hard / sizeof *hard; k++)
		for (int way = 0; way < NWAY; way++) {
			bench r;
			if (runs(&r, hard[k].text, way)) {
				CU_ASSERT_EQUAL(result(&r, 0, 0), hard[k].y);
				CU_ASSERT_EQUAL(result(&r, 1, 0), hard[k].z);
				CU_ASSERT_EQUAL(result(&r, 2, ITERATIONS - 1), hard[k].last);
			}
			bench_close(&r);
		}
}

static CU_TestInfo tests[] = {
	{"are updated in place", are_in_place},
	{"are copied where they are read again", are_right},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("states of loops with sizes of a run", tests);
