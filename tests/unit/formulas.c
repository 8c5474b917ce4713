/* Formulas of plans with ranges, and what they stand on: polynomials, and plans that are shrunk. */
#include <config.h>

#include "alloc/plan_shrink.h"
#include "alloc/polynomial.h"
#include "base/rng.h"
#include "onnxmem/builder.h"
#include "tests/fixtures.h"
#include "unit.h"

/* ---- Polynomials. ---- */

static const om_sample_grid grid = {.at = {{1, 5, 9}, {2, 3, 7}, {1, 50, 100}}, .n = {3, 3, 3}};

static om_polynomial
random_polynomial(uint64_t *state)
{
	om_polynomial f;

	for (int k = 0; k < OM_FORMULA_TERMS; k++)
		f.factor[k] = om_rng(state) % 3 ? 0 : (int64_t)(om_rng(state) % 2000);
	return f;
}

static uint64_t
value_at(const om_polynomial *f, int64_t a, int64_t b, int64_t c)
{
	const int64_t n[] = {a, b, c};
	uint64_t x = 0;

	CU_ASSERT(om_polynomial_value(f, n, &x));
	return x;
}

static void
polynomials_are_found_from_their_values(void)
{
	uint64_t state = 7;

	for (int t = 0; t < 200; t++) {
		const om_polynomial f = random_polynomial(&state);
		int64_t y[OM_FORMULA_TERMS];
		om_polynomial g;
		for (int k = 0; k < OM_FORMULA_TERMS; k++)
			y[k] = (int64_t)value_at(&f, grid.at[0][k % 3], grid.at[1][k / 3 % 3], grid.at[2][k / 9]);
		CU_ASSERT(om_polynomial_fit(&grid, y, &g));
		CU_ASSERT(om_polynomial_equal(&f, &g));
	}
}

/* n * (n + 1) / 2 has no integer factors; nor has a value that jumps. */
static void
what_has_no_integer_factors_is_no_polynomial(void)
{
	const om_sample_grid line = {.at = {{1, 2, 3}}, .n = {3, 1, 1}}, wide = {.at = {{1, 4}}, .n = {2, 1, 1}};
	const int64_t triangles[OM_FORMULA_TERMS] = {1, 3, 6}, halves[OM_FORMULA_TERMS] = {1, 2};
	om_polynomial f;

	CU_ASSERT_FALSE(om_polynomial_fit(&line, triangles, &f));
	CU_ASSERT_FALSE(om_polynomial_fit(&wide, halves, &f));
}

/* Values in a box are means of control points, so between the least and the largest. */
static void
values_are_between_control_points(void)
{
	const int64_t low[] = {1, 0, 10}, high[] = {40, 3, 12};
	uint64_t state = 11;

	for (int t = 0; t < 200; t++) {
		om_polynomial f = random_polynomial(&state);
		int64_t least = INT64_MAX, most = INT64_MIN, x;
		f.factor[0] += 1 << 24;
		f.factor[1] = -f.factor[1];
		for (int k = 0; k < OM_FORMULA_TERMS; k++) {
			CU_ASSERT_FATAL(om_polynomial_control(&f, low, high, k, &x));
			least = x < least ? x : least;
			most = x > most ? x : most;
		}
		for (int i = 0; i < 20; i++) {
			int64_t n[3];
			for (int d = 0; d < 3; d++)
				n[d] = low[d] + (int64_t)(om_rng(&state) % (uint64_t)(high[d] - low[d] + 1));
			const int64_t is = 8 * (int64_t)value_at(&f, n[0], n[1], n[2]);
			CU_ASSERT(least <= is && is <= most);
		}
		CU_ASSERT(om_polynomial_control(&f, low, high, 0, &x) && x == 8 * (int64_t)value_at(&f, 1, 0, 10));
		CU_ASSERT(om_polynomial_control(&f, low, high, 26, &x) && x == 8 * (int64_t)value_at(&f, 40, 3, 12));
	}
}

static void
what_does_not_fit_is_refused(void)
{
	const om_polynomial f = {{0, 0, INT64_MAX / 2}}, negative = {{-5, 1}};
	const int64_t n[] = {1000000, 0, 0}, four[] = {4, 0, 0};
	uint64_t x;

	CU_ASSERT_FALSE(om_polynomial_value(&f, n, &x));
	CU_ASSERT_FALSE(om_polynomial_value(&negative, four, &x));
}

static void
formulas_are_written_as_text(void)
{
	const char *const symbol[] = {"N", "S", "T"};
	const om_polynomial f = {.factor = {12288, 40960, -1, 0, 1}}, odd = {.factor = {4, 36}};
	const om_rounded two = {2, odd};
	const om_formula second = {.sum = {{7}}, .align = 64}, first = {.rounded = &two, .nrounded = 1, .align = 64, .other = &second};
	const int64_t n[] = {1, 0, 0};
	om_arena *mem = om_arena_new();

	CU_ASSERT_STRING_EQUAL(om_polynomial_text(mem, &f, symbol), "N*S - N*N + 40960*N + 12288");
	CU_ASSERT_STRING_EQUAL(om_formula_text(mem, &first, symbol, "up", "max"), "max(2*up(36*N + 4, 64), 7)");
	CU_ASSERT_EQUAL(om_formula_value(&first, n), 128);
	om_arena_free(mem);
}

/* ---- Plans. ---- */

/* The sum of a and b is live with both; c is small where N is, and large where S is. */
static const char program[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[N,16], %y: float32[S,48]) {\n"
	"	%a = Relu(%x)\n"
	"	%b = Exp(%a)\n"
	"	%c = Mul(%a, %a)\n"
	
	"	%d = Add(%c, %b)\n"
	"	%p = Relu(%y)\n"
	"	%q = Softmax(%p)\n"
	"	%r = Sub(%p, %q)\n"
	"	ret %d, %r\n"
	"}\n";

static void
plan_io(bench *t, const om_prog *open, om_io io, int64_t n_high, int64_t s_high, om_prog **out)
{
	static om_dim_range range[2];
	om_binding *b = om_binding_new();

	CU_ASSERT_EQUAL_FATAL(om_host_request(t->h, &(om_plan_request)OM_PLAN_REQUEST(.ranged = true, .io = io)), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_binding_dim(t->s, b, "N", n_high), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_binding_dim(t->s, b, "S", s_high), OM_OK);
	CU_ASSERT_FATAL(is_ok(t->s, om_prog_bind(t->s, open, b, out)));
	CU_ASSERT_FATAL(is_ok(t->s, om_host_run(t->h, *out, om_default_pipeline())));
	range[0] = (om_dim_range){"N", 1, n_high};
	range[1] = (om_dim_range){"S", 1, s_high};
	(*out)->plan->range = range;
	(*out)->plan->nrange = 2;
	om_binding_free(b);
}

static void
plan_range(bench *t, const om_prog *open, int64_t n_high, int64_t s_high, om_prog **out)
{
	plan_io(t, open, OM_IO_ARENA, n_high, s_high, out);
}

/* The plan for the largest sizes, shrunk to these: its values get the shapes of a program that is bound to them. */
static uint64_t
shrunk(bench *t, const om_prog *open, int64_t n, int64_t s, int64_t n_high, int64_t s_high)
{
	om_prog *large, *small;

	plan_range(t, open, n_high, s_high, &large);
	plan_range(t, open, n, s, &small);
	CU_ASSERT_EQUAL_FATAL(large->nvalue, small->nvalue);
	for (uint32_t k = 0; k < large->nvalue; k++)
		large->values[k]->shape = small->values[k]->shape;
	om_plan_lower_offsets(large, large->plan);
	CU_ASSERT(is_ok(t->s, om_plan_verify(t->s, large, large->plan)));
	const uint64_t bytes = large->plan->arena->bytes;
	om_prog_free(large);
	om_prog_free(small);
	return bytes;
}

static void
check_formulas(bench *t, const om_prog *open, int64_t n_high, int64_t s_high)
{
	om_prog *p;
	uint64_t state = 5, bytes, offset;

	plan_range(t, open, n_high, s_high, &p);
	CU_ASSERT_FATAL(is_ok(t->s, om_host_find_formulas(t->h, open, p)));
	CU_ASSERT_PTR_NULL_FATAL(p->plan->formulas->why);
	for (int k = 0; k < 40; k++) {
		const int64_t at[] = {k == 0 ? n_high : 1 + (int64_t)(om_rng(&state) % (uint64_t)n_high),
			k == 0 ? s_high : 1 + (int64_t)(om_rng(&state) % (uint64_t)s_high)};
		CU_ASSERT(om_plan_arena_at(p->plan, 0, at, &bytes));
		CU_ASSERT_EQUAL(bytes, shrunk(t, open, at[0], at[1], n_high, s_high));
		CU_ASSERT(om_plan_offset_at(p, p->plan, "a", at, NULL, &offset));
		CU_ASSERT(offset < bytes);
	}
	CU_ASSERT_FALSE(om_plan_arena_at(p->plan, 0, (int64_t[]){0, 1}, &bytes));
	CU_ASSERT_FALSE(om_plan_arena_at(p->plan, 0, (int64_t[]){n_high + 1, 1}, &bytes));
	CU_ASSERT_FALSE(om_plan_arena_at(p->plan, 1, (int64_t[]){1, 1}, &bytes));
	CU_ASSERT_FALSE(om_plan_offset_at(p, p->plan, "nothing", (int64_t[]){1, 1}, NULL, &offset));
	om_prog_free(p);
}

static void
formulas_are_what_plans_take(void)
{
	bench t;

	unit_start(&t, program, NULL);
	check_formulas(&t, t.p, 9, 7);           /* each size is looked at */
	check_formulas(&t, t.p, 1000, 3000);     /* proven at control points */
	bench_close(&t);
}

static void
a_plan_without_ranges_has_none(void)
{
	bench t;

	unit_start(&t, "program \"t\" ir 8 opset 17\n^g(%x: float32[4]) {\n\t%y = Relu(%x)\n\tret %y\n}\n", "pack");
	CU_ASSERT(is_told(t.s, om_host_find_formulas(t.h, t.p, t.p), OM_USAGE, "no plan with ranges"));
	bench_close(&t);
}

/* Rows of a strided convolution: a size that is no polynomial is named. */
static void
a_size_that_is_no_polynomial_is_the_reason(void)
{
	static const char strided[] =
		"program \"t\" ir 8 opset 17\n"
		"^g(%x: float32[1,1,N,S]) {\n"
		"	%a = Relu(%x)\n"
		"	%b = MaxPool(%a) {kernel_shape = [2, 2], strides = [2, 2]}\n"
		"	%c = Exp(%b)\n"
		"	%d = ReduceMean(%c) {keepdims = 0}\n"
		"	ret %d\n"
		"}\n";
	bench t;
	om_prog *p;

	unit_start(&t, strided, NULL);
	plan_range(&t, t.p, 9, 8, &p);
	((om_dim_range *)p->plan->range)[0].low = ((om_dim_range *)p->plan->range)[1].low = 2;
	CU_ASSERT_FATAL(is_ok(t.s, om_host_find_formulas(t.h, t.p, p)));
	CU_ASSERT_PTR_NOT_NULL_FATAL(p->plan->formulas->why);
	CU_ASSERT_PTR_NOT_NULL(strstr(p->plan->formulas->why, "is no polynomial of N, S"));
	CU_ASSERT_EQUAL(p->plan->formulas->npoint, 8);  /* N = 2..9 */
	for (uint32_t k = 0; k < p->plan->formulas->npoint; k++) {
		const om_formula_point *at = &p->plan->formulas->point[k];
		CU_ASSERT_EQUAL(at->arenas, shrunk(&t, t.p, at->n[0], at->n[1], 9, 8));
	}
	om_prog_free(p);
	bench_close(&t);
}

/* The output, in memory of the caller, has every second number: what lies between those that give polynomials tells. */
static void
a_total_that_is_no_polynomial_is_not_known(void)
{
	static const char strided[] =
		"program \"t\" ir 8 opset 17\n"
		"^g(%x: float32[1,4,N], %y: float32[S]) {\n"
		"	%a = Relu(%x)\n"
		"	%b = Neg(%a)\n"
		"	%c = MaxPool(%b) {kernel_shape = [1], strides = [2], ceil_mode = 1}\n"
		"	%d = Exp(%y)\n"
		"	ret %c, %d\n"
		"}\n";
	bench t;

	for (int low = 1; low <= 2; low++) {     /* 1, 3, 5 are on a line, but not what lies between; 2, 3, 5 are not */
		om_prog *p;
		unit_start(&t, strided, NULL);
		plan_io(&t, t.p, OM_IO_CALLER, 5, 3, &p);
		((om_dim_range *)p->plan->range)[0].low = low;
		CU_ASSERT_FATAL(is_ok(t.s, om_host_find_formulas(t.h, t.p, p)));
		CU_ASSERT_PTR_NULL(p->plan->formulas->why);
		CU_ASSERT_PTR_NULL(p->plan->formulas->outside);
		om_prog_free(p);
		bench_close(&t);
	}
}

static CU_TestInfo formula_tests[] = {
	{"polynomials are found from their values", polynomials_are_found_from_their_values},
	{"what has no integer factors is no polynomial", what_has_no_integer_factors_is_no_polynomial},
	{"values are between control points", values_are_between_control_points},
	{"what does not fit is refused", what_does_not_fit_is_refused},
	{"formulas are written as text", formulas_are_written_as_text},
	{"formulas are what plans take", formulas_are_what_plans_take},
	{"a plan without ranges has none", a_plan_without_ranges_has_none},
	{"a size that is no polynomial is the reason", a_size_that_is_no_polynomial_is_the_reason},
	{"a total that is no polynomial is not known", a_total_that_is_no_polynomial_is_not_known},
	CU_TEST_INFO_NULL
};
UNIT_SUITE("formulas", formula_tests);
