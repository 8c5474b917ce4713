/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas of plans with ranges, and what they stand on: polynomials, and plans that are shrunk. */
#include <config.h>

#include "alloc/plan_shrink.h"
#include "alloc/polynomial.h"
#include "alloc/size_terms.h"
#include "base/rng.h"
#include "host/host.h"
#include "ir/edit.h"
#include "onnxmem/builder.h"
#include "opdef/op_context.h"
#include "tests/fixtures.h"
#include "unit.h"

/* ---- Polynomials. ---- */

static const om_sample_grid grid = {.at = {{1, 5, 9}, {2, 3, 7}, {1, 50, 100}, {2, 4, 8}}, .n = {3, 3, 3, 3}};

static om_polynomial
random_polynomial(uint64_t *state)
{
	om_polynomial f = {{0}};

	for (int k = 0; k < OM_FORMULA_TERMS; k++)
		f.factor[k] = om_rng(state) % 3 ? 0 : (int64_t)(om_rng(state) % 2000);
	return f;
}

static uint64_t
value_of(const om_polynomial *f, const int64_t n[OM_FORMULA_SYMBOLS])
{
	uint64_t x = 0;

	CU_ASSERT(om_polynomial_value(f, n, &x));
	return x;
}

static uint64_t
value_at(const om_polynomial *f, int64_t a, int64_t b, int64_t c)
{
	return value_of(f, (int64_t[]){a, b, c, 0});
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
			y[k] = (int64_t)value_of(&f, (int64_t[]){grid.at[0][k % 3], grid.at[1][k / 3 % 3], grid.at[2][k / 9 % 3], grid.at[3][k / 27]});
		CU_ASSERT(om_polynomial_fit(&grid, y, &g));
		CU_ASSERT(om_polynomial_equal(&f, &g));
	}
}

/* n * (n + 1) / 2 has no integer factors; nor has a value that jumps. */
static void
what_has_no_integer_factors_is_no_polynomial(void)
{
	const om_sample_grid line = {.at = {{1, 2, 3}}, .n = {3, 1, 1, 1}}, wide = {.at = {{1, 4}}, .n = {2, 1, 1, 1}};
	const int64_t triangles[OM_FORMULA_TERMS] = {1, 3, 6}, halves[OM_FORMULA_TERMS] = {1, 2};
	om_polynomial f = {{0}};

	CU_ASSERT_FALSE(om_polynomial_fit(&line, triangles, &f));
	CU_ASSERT_FALSE(om_polynomial_fit(&wide, halves, &f));
}

/* Values in a box are means of control points, so between the least and the largest. */
static void
values_are_between_control_points(void)
{
	const int64_t low[] = {1, 0, 10, 2}, high[] = {40, 3, 12, 5};
	uint64_t state = 11;

	for (int t = 0; t < 200; t++) {
		om_polynomial f = random_polynomial(&state);
		int64_t least = INT64_MAX, most = INT64_MIN, x, y;
		f.factor[0] += 1 << 24;
		f.factor[1] = -f.factor[1];
		for (int k = 0; k < OM_FORMULA_TERMS; k++) {
			CU_ASSERT_FATAL(om_polynomial_control(&f, low, high, k, &x, &y) && x == y);
			least = x < least ? x : least;
			most = x > most ? x : most;
		}
		for (int i = 0; i < 20; i++) {
			int64_t n[OM_FORMULA_SYMBOLS];
			for (int d = 0; d < OM_FORMULA_SYMBOLS; d++)
				n[d] = low[d] + (int64_t)(om_rng(&state) % (uint64_t)(high[d] - low[d] + 1));
			const int64_t is = OM_CONTROL_SCALE * (int64_t)value_of(&f, n);
			CU_ASSERT(least <= is && is <= most);
		}
		CU_ASSERT(om_polynomial_control(&f, low, high, 0, &x, &y) && x == OM_CONTROL_SCALE * (int64_t)value_of(&f, low));
		CU_ASSERT(om_polynomial_control(&f, low, high, OM_FORMULA_TERMS - 1, &x, &y) && x == OM_CONTROL_SCALE * (int64_t)value_of(&f, high));
	}
}

/* Of quotients, by what is at most and at least a polynomial without them: everywhere, and at each point of a box. */
static void
quotients_are_between_their_bounds(void)
{
	uint64_t state = 5;

	for (int t = 0; t < 300; t++) {
		const int64_t low[] = {(int64_t)(om_rng(&state) % 9), 1, 3, 0}, high[] = {low[0] + 20, 1 + t % 7, 3, 0};
		om_polynomial f = random_polynomial(&state), least, most;
		f.factor[0] += 1 << 24;
		f.factor[1] = t % 2 ? f.factor[1] : -f.factor[1];
		for (int d = 0; d < 2; d++) {
			f.by[d] = (int64_t)(om_rng(&state) % 6);
			f.add[d] = f.by[d] ? (int64_t)(om_rng(&state) % 8) - low[d] : 0;
		}
		CU_ASSERT_FATAL(om_polynomial_bound(&f, low, false, &least) && om_polynomial_bound(&f, low, true, &most));
		CU_ASSERT(!om_polynomial_has_quotients(&least) && !om_polynomial_has_quotients(&most));
		int64_t from = INT64_MAX, to = INT64_MIN, x, y;
		for (int k = 0; k < OM_FORMULA_TERMS; k++) {
			CU_ASSERT_FATAL(om_polynomial_control(&f, low, high, k, &x, &y) && x <= y);
			from = x < from ? x : from;
			to = y > to ? y : to;
		}
		for (int64_t n = low[0]; n <= high[0]; n++) {
			const int64_t is = (int64_t)value_at(&f, n, low[1], 3), at[] = {n, low[1], 3, 0};
			uint64_t more;
			CU_ASSERT(from <= OM_CONTROL_SCALE * is && OM_CONTROL_SCALE * is <= to);
			CU_ASSERT(om_polynomial_value(&most, at, &more) && more >= (uint64_t)is);
			CU_ASSERT(!om_polynomial_value(&least, at, &more) || more <= (uint64_t)is);
		}
	}
}

/* Quotients of N by 2, 3 and 5, times S; and N itself. */
static om_size_terms *
some_terms(om_arena *mem)
{
	om_size_terms *t = OM_NEW(mem, om_size_terms);

	for (int by = 2; by < 6; by++)
		om_size_terms_add(t, &(om_polynomial){.factor = {[4] = 7}, .by = {by == 4 ? 0 : by}, .add = {by == 4 ? 0 : by - 1}});
	om_size_terms_add_parts(t);
	CU_ASSERT_EQUAL(t->n, 10);       /* four products, their four quotients, S, 1 */
	return t;
}

static om_polynomial *
random_sum(om_arena *mem, const om_size_terms *t, uint64_t *state)
{
	om_polynomial *sum = OM_NEWN(mem, om_polynomial, t->n);

	for (uint32_t k = 0; k < t->n; k++) {
		const int64_t factor = om_rng(state) % 2 ? 0 : (int64_t)(om_rng(state) % 4000);
		CU_ASSERT_FATAL(om_polynomial_times(mem, &t->term[k], factor, &sum[k]));
		sum[k].more = k + 1 < t->n ? &sum[k + 1] : NULL;
	}
	return sum;
}

static bool
same_everywhere(const om_polynomial *f, const om_polynomial *g)
{
	for (int64_t n = 1; n < 80; n++)
		for (int64_t s = 1; s < 9; s++)
			if (value_at(f, n, s, 0) != value_at(g, n, s, 0))
				return false;
	return true;
}

/* Also those that are found from few points hold for others; what is no sum has none. */
static void
sums_are_found_from_their_values(void)
{
	enum { POINTS = 60, SUMS = 40 };
	om_arena *mem = om_arena_new();
	const om_size_terms *t = some_terms(mem);
	const int64_t *n[POINTS], *bytes[SUMS + 1];
	const om_polynomial *sum[SUMS];
	uint64_t state = 9;

	for (int k = 0; k < POINTS; k++) {
		const int64_t at[] = {1 + (int64_t)(om_rng(&state) % 90), 1 + (int64_t)(om_rng(&state) % 12), 0, 0};
		n[k] = om_memdup(mem, at, sizeof at);
	}
	for (int i = 0; i <= SUMS; i++) {
		int64_t *y = OM_NEWN(mem, int64_t, POINTS);
		if (i < SUMS)
			sum[i] = random_sum(mem, t, &state);
		for (int k = 0; k < POINTS; k++)
			y[k] = i < SUMS ? (int64_t)value_at(sum[i], n[k][0], n[k][1], 0) : n[k][0] * n[k][0];
		bytes[i] = y;
	}
	const om_polynomial *const *found = om_size_terms_fit(t, &(om_size_points){n, POINTS, bytes, SUMS + 1}, mem);
	for (int i = 0; i < SUMS; i++)
		CU_ASSERT(found[i] && same_everywhere(found[i], sum[i]));
	CU_ASSERT_PTR_NULL(found[SUMS]);
	om_arena_free(mem);
}

/* Bounds, control points, values and equality of a sum are those of what is added. */
static void
sums_are_between_their_bounds(void)
{
	om_arena *mem = om_arena_new();
	const om_size_terms *t = some_terms(mem);
	const int64_t low[] = {3, 2, 0, 0}, high[] = {40, 5, 0, 0};
	uint64_t state = 21;

	for (int i = 0; i < 100; i++) {
		const om_polynomial *f = random_sum(mem, t, &state);
		om_polynomial least, most, twice;
		int64_t from = INT64_MAX, to = INT64_MIN, x, y;
		CU_ASSERT_FATAL(om_polynomial_bound(f, low, false, &least) && om_polynomial_bound(f, low, true, &most));
		CU_ASSERT_FATAL(om_polynomial_times(mem, f, 2, &twice));
		for (int k = 0; k < 9; k++) {
			CU_ASSERT_FATAL(om_polynomial_control(f, low, high, k, &x, &y) && x <= y);
			from = x < from ? x : from;
			to = y > to ? y : to;
		}
		for (int64_t k = low[0]; k <= high[0]; k++) {
			const uint64_t is = value_at(f, k, 4, 0);
			CU_ASSERT(from <= OM_CONTROL_SCALE * (int64_t)is && OM_CONTROL_SCALE * (int64_t)is <= to);
			CU_ASSERT(value_at(&most, k, 4, 0) >= is);
			CU_ASSERT_EQUAL(value_at(&twice, k, 4, 0), 2 * is);
		}
		CU_ASSERT(om_polynomial_equal(f, f));
		CU_ASSERT_EQUAL(om_polynomial_equal(f, &twice), value_at(f, 40, 5, 0) == 0);
	}
	om_arena_free(mem);
}

static void
what_does_not_fit_is_refused(void)
{
	const om_polynomial f = {{0, 0, INT64_MAX / 2}}, negative = {{-5, 1}};
	const int64_t n[] = {1000000, 0, 0, 0}, four[] = {4, 0, 0, 0};
	uint64_t x;

	CU_ASSERT_FALSE(om_polynomial_value(&f, n, &x));
	CU_ASSERT_FALSE(om_polynomial_value(&negative, four, &x));
}

static void
formulas_are_written_as_text(void)
{
	const char *const symbol[] = {"N", "S", "T", "U"};
	const om_polynomial f = {.factor = {12288, 40960, -1, 0, 1}}, odd = {.factor = {4, 36}};
	const om_polynomial half = {{8, 64}, {-1}, {2}}, third = {.factor = {0, 5}, .by = {3}};
	const om_rounded two = {2, 64, odd}, parts[] = {{3, 8, half}, {1, 64, third}};
	const om_polynomial joined = {{8, 64}, {-1}, {2}, &third};
	const om_rounded sums[] = {{2, 1, joined}, {1, 64, joined}};
	const om_formula sum = {.rounded = sums, .nrounded = 2};
	const om_formula second = {.sum = {{7}}}, first = {.rounded = &two, .nrounded = 1, .other = &second};
	const om_formula quotients = {.rounded = parts, .nrounded = 2};
	const int64_t eight[] = {8, 0, 0, 0};
	const om_formula_words c = {"UP", "MAX", ""};
	const int64_t n[] = {1, 0, 0, 0};
	om_arena *mem = om_arena_new();

	CU_ASSERT_STRING_EQUAL(om_polynomial_text(mem, &f, symbol, NULL), "N*S - N*N + 40960*N + 12288");
	CU_ASSERT_STRING_EQUAL(om_formula_text(mem, &first, symbol, NULL), "max(2*up(36*N + 4, 64), 7)");
	CU_ASSERT_EQUAL(om_formula_value(&first, n), 128);
	CU_ASSERT_STRING_EQUAL(om_formula_text(mem, &quotients, symbol, NULL), "192*floor((N - 1)/2) + 24 + up(5*floor(N/3), 64)");
	CU_ASSERT_STRING_EQUAL(om_formula_text(mem, &quotients, symbol, &c), "192*((N - 1)/2) + 24 + UP(5*(N/3), 64)");
	CU_ASSERT_EQUAL(om_formula_value(&quotients, eight), 192 * 3 + 24 + 64);
	CU_ASSERT_STRING_EQUAL(om_formula_text(mem, &sum, symbol, NULL),
		"128*floor((N - 1)/2) + 16 + 10*floor(N/3) + up(64*floor((N - 1)/2) + 8 + 5*floor(N/3), 64)");
	CU_ASSERT_EQUAL(om_formula_value(&sum, eight), 2 * (64 * 3 + 8 + 5 * 2) + 256);
	CU_ASSERT_STRING_EQUAL(om_symbol_text(mem, "a + 1"), "(a + 1)");
	CU_ASSERT_STRING_EQUAL(om_symbol_text(mem, "a"), "a");
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

/* ---- Scratch. ---- */

/* Kernels divide rows and columns into blocks, so fewer of them may require more scratch. */
static const char convolutions[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[1,4,N,S]) {\n"
	"	%shape = const int64[4] {4,4,3,3}\n"
	"	%w = ConstantOfShape(%shape) {value = tensor float32[1] {0.5}}\n"
	"	%a = Conv(%x, %w) {kernel_shape = [3, 3], strides = [2, 1], pads = [1, 1, 1, 1]}\n"
	"	%b = Relu(%a)\n"
	"	%c = Conv(%b, %w) {kernel_shape = [3, 3], strides = [3, 2]}\n"
	"	%d = Exp(%c)\n"
	"	ret %d\n"
	"}\n";

static const om_dim_range scratch_range[] = {{"N", 9, 20}, {"S", 50, 80}};

/* The program for a size of each, after these passes. */
static om_prog *
bound_to(bench *t, int64_t n, int64_t s, const char *passes)
{
	om_binding *b = om_binding_new();
	om_prog *p;

	CU_ASSERT_EQUAL_FATAL(om_binding_dim(t->s, b, "N", n), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_binding_dim(t->s, b, "S", s), OM_OK);
	CU_ASSERT_FATAL(is_ok(t->s, om_prog_bind(t->s, t->p, b, &p)));
	if (passes)
		CU_ASSERT_FATAL(is_ok(t->s, om_host_run(t->h, p, passes)));
	om_binding_free(b);
	return p;
}

/* The most scratch of the op that computes this value, for all sizes. */
static uint64_t
most_scratch(bench *t, const char *value, const char *passes)
{
	uint64_t most = 0;

	for (int64_t n = scratch_range[0].low; n <= scratch_range[0].high; n++)
		for (int64_t s = scratch_range[1].low; s <= scratch_range[1].high; s++) {
			om_prog *p = bound_to(t, n, s, passes);
			const om_value *v = om_prog_find(p, value);
			const uint64_t bytes = v ? om_op_scratch(v->def, 1, false) : 0;
			most = bytes > most ? bytes : most;
			om_prog_free(p);
		}
	return most;
}

static void
scratch_is_the_most_of_all_sizes(void)
{
	const char *pipeline;
	bench t;

	unit_start(&t, convolutions, NULL);
	CU_ASSERT_EQUAL_FATAL(om_host_request(t.h, &(om_plan_request)OM_PLAN_REQUEST(.ranged = true, .target = OM_TARGET_CPU)), OM_OK);
	om_prog *bound = bound_to(&t, scratch_range[0].high, scratch_range[1].high, NULL);
	CU_ASSERT_FATAL(is_ok(t.s, om_host_pipeline(t.h, t.p, bound, scratch_range, 2, &pipeline)));
	CU_ASSERT_FATAL(is_ok(t.s, om_host_run(t.h, bound, pipeline)));
	CU_ASSERT_FATAL(bound->plan->nscratch > 0);
	for (uint32_t k = 0; k < bound->plan->nscratch; k++) {
		const om_scratch *x = &bound->plan->scratch[k];
		const om_value *out = NULL;
		for (uint32_t v = 0; v < bound->nvalue && !out; v++)
			if (bound->values[v]->def && bound->values[v]->def->id == x->op)
				out = bound->values[v];
		CU_ASSERT_PTR_NOT_NULL_FATAL(out);
		CU_ASSERT_EQUAL(x->bytes, most_scratch(&t, out->name, bound->passes));
	}
	om_prog_free(bound);
	bench_close(&t);
}

/* A request without ranges has no scratch of an earlier one. */
static void
scratch_of_ranges_is_forgotten(void)
{
	const char *pipeline;
	bench t;

	unit_start(&t, convolutions, NULL);
	CU_ASSERT_EQUAL_FATAL(om_host_request(t.h, &(om_plan_request)OM_PLAN_REQUEST(.target = OM_TARGET_CPU)), OM_OK);
	om_prog *open = bound_to(&t, 20, 80, NULL);
	CU_ASSERT_FATAL(is_ok(t.s, om_host_pipeline(t.h, t.p, open, scratch_range, 2, &pipeline)));
	CU_ASSERT(t.h->request->nscratch > 0);
	CU_ASSERT_FATAL(is_ok(t.s, om_host_pipeline(t.h, t.p, open, NULL, 0, &pipeline)));
	CU_ASSERT_EQUAL(t.h->request->nscratch, 0);
	om_prog_free(open);
	bench_close(&t);
}

/* ---- Sizes that are divided. ---- */

/* A plan for N and S from `low` to these, with its formulas. */
static om_prog *
plan_from(bench *t, om_io io, int64_t low, int64_t n_high, int64_t s_high)
{
	om_prog *p;

	plan_io(t, t->p, io, n_high, s_high, &p);
	((om_dim_range *)p->plan->range)[0].low = ((om_dim_range *)p->plan->range)[1].low = low;
	CU_ASSERT_FATAL(is_ok(t->s, om_host_find_formulas(t->h, t->p, p)));
	return p;
}

/* Rows and columns are divided, and divided again. */
static const char strided[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[1,3,N,S]) {\n"
	"	%a = Relu(%x)\n"
	"	%b = MaxPool(%a) {kernel_shape = [3, 3], strides = [2, 3], pads = [1, 1, 1, 1]}\n"
	"	%c = Exp(%b)\n"
	"	%d = MaxPool(%c) {kernel_shape = [2, 1], strides = [2, 1], pads = [0, 0, 1, 0]}\n"
	"	%e = Exp(%d)\n"
	"	%f = Sub(%e, %d)\n"
	"	ret %f\n"
	"}\n";

static void
strides_lead_to_quotients(void)
{
	static const int64_t high[][2] = {{14, 9}, {100, 130}};  /* each size is looked at; paths are compared at control points */
	uint64_t bytes, state = 3;
	bench t;

	unit_start(&t, strided, NULL);
	for (int k = 0; k < 2; k++) {
		om_prog *p = plan_from(&t, OM_IO_ARENA, 2, high[k][0], high[k][1]);
		CU_ASSERT_PTR_NULL_FATAL(p->plan->formulas->why);
		CU_ASSERT_PTR_NULL(p->plan->formulas->piece->least);
		for (int i = 0; i < 60; i++) {
			const int64_t at[] = {2 + (int64_t)(om_rng(&state) % (uint64_t)(high[k][0] - 1)),
				2 + (int64_t)(om_rng(&state) % (uint64_t)(high[k][1] - 1))};
			CU_ASSERT(om_plan_arena_at(p->plan, 0, at, &bytes));
			CU_ASSERT_EQUAL(bytes, shrunk(&t, t.p, at[0], at[1], high[k][0], high[k][1]));
		}
		om_prog_free(p);
	}
	bench_close(&t);
}

/* Halves and thirds of rows, in one value, as the heads of a detector. */
static const char joined[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[1,4,N,S]) {\n"
	"	%a = Relu(%x)\n"
	"	%b = MaxPool(%a) {kernel_shape = [1, 1], strides = [2, 1]}\n"
	"	%c = MaxPool(%a) {kernel_shape = [1, 1], strides = [3, 1]}\n"
	"	%d = Concat(%b, %c, %b) {axis = 2}\n"
	"	%e = Exp(%d)\n"
	"	%g = Sub(%d, %e)\n"
	"	%f = ReduceMean(%g) {axes = [3], keepdims = 0}\n"
	"	%h = Softmax(%f)\n"
	"	ret %h\n"
	"}\n";

static void
joined_values_are_sums(void)
{
	static const int64_t high[][2] = {{30, 9}, {120, 150}};
	const char *const symbol[] = {"N", "S", "", ""};
	uint64_t bytes, state = 3;
	bench t;

	unit_start(&t, joined, NULL);
	for (int k = 0; k < 2; k++) {
		om_prog *p = plan_from(&t, OM_IO_ARENA, 2, high[k][0], high[k][1]);
		CU_ASSERT_PTR_NULL_FATAL(p->plan->formulas->why);
		CU_ASSERT_PTR_NULL(p->plan->formulas->piece->least);
		for (int i = 0; i < 60; i++) {
			const int64_t at[] = {2 + (int64_t)(om_rng(&state) % (uint64_t)(high[k][0] - 1)),
				2 + (int64_t)(om_rng(&state) % (uint64_t)(high[k][1] - 1))};
			CU_ASSERT(om_plan_arena_at(p->plan, 0, at, &bytes));
			CU_ASSERT_EQUAL(bytes, shrunk(&t, t.p, at[0], at[1], high[k][0], high[k][1]));
		}
		const om_polynomial *d = p->plan->formulas->bytes[om_prog_find(p, "d")->id];
		CU_ASSERT_STRING_EQUAL(om_polynomial_text(p->mem, d, symbol, NULL), "32*floor((N + 1)/2)*S + 16*floor((N + 2)/3)*S");
		om_prog_free(p);
	}
	bench_close(&t);
}

/* Possible at even numbers only; low ones, whose rest is not 0, start between multiples of the step. */
static void
ranges_have_steps(void)
{
	static const char text[] =
		"program \"t\" ir 8 opset 17\n"
		"^g(%x: float32[1,4,N,S]) {\n"
		"	%scales = const float32[4] {1,1,2,1}\n"
		"	%a = Relu(%x)\n"
		"	%b = MaxPool(%a) {kernel_shape = [2, 1], strides = [2, 1], ceil_mode = 1}\n"
		"	%c = Resize(%b, _, %scales) {mode = \"nearest\"}\n"
		"	%d = Add(%a, %c)\n"
		"	%e = MaxPool(%d) {kernel_shape = [1, 1], strides = [8, 1]}\n"
		"	%f = Sub(%e, %e)\n"
		"	ret %f\n"
		"}\n";
	static const int64_t low[] = {4, 6}, step[] = {4, 8};
	uint64_t bytes;
	bench t;

	unit_start(&t, text, NULL);
	for (int k = 0; k < 2; k++) {
		const int64_t high = low[k] + 20 * step[k];
		om_prog *p;
		plan_range(&t, t.p, high, 9, &p);
		const om_dim_range range[] = {{"N", low[k], high, step[k]}, {"S", 1, 9, 0}};
		p->plan->range = range;
		CU_ASSERT_FATAL(is_ok(t.s, om_host_find_formulas(t.h, t.p, p)));
		CU_ASSERT_PTR_NULL_FATAL(p->plan->formulas->why);
		CU_ASSERT_PTR_NULL(p->plan->formulas->piece->least);
		for (int64_t n = low[k]; n <= high; n += step[k]) {
			CU_ASSERT(om_plan_arena_at(p->plan, 0, (int64_t[]){n, 5}, &bytes));
			CU_ASSERT_EQUAL(bytes, shrunk(&t, t.p, n, 5, high, 9));
			CU_ASSERT_FALSE(om_plan_arena_at(p->plan, 0, (int64_t[]){n + 2, 5}, &bytes));
		}
		om_prog_free(p);
	}
	bench_close(&t);
}

/* The product of half of N and a third of it. */
static void
a_size_that_is_no_polynomial_is_the_reason(void)
{
	static const char crossed[] =
		"program \"t\" ir 8 opset 17\n"
		"^g(%x: float32[1,1,N,S]) {\n"
		"	%a = Relu(%x)\n"
		"	%b = MaxPool(%a) {kernel_shape = [1, 1], strides = [2, 1]}\n"
		"	%c = MaxPool(%a) {kernel_shape = [1, 1], strides = [3, 1]}\n"
		"	%d = Transpose(%c) {perm = [0, 1, 3, 2]}\n"
		"	%e = MatMul(%b, %d)\n"
		"	%f = ReduceMean(%e) {keepdims = 0}\n"
		"	ret %f\n"
		"}\n";
	bench t;

	unit_start(&t, crossed, NULL);
	om_prog *p = plan_from(&t, OM_IO_ARENA, 2, 9, 8);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p->plan->formulas->why);
	CU_ASSERT_PTR_NOT_NULL(strstr(p->plan->formulas->why, "the size of e is no polynomial of N, S, nor of a quotient of each, nor a sum of such sizes"));
	CU_ASSERT_EQUAL(p->plan->formulas->npoint, 8);  /* N = 2..9 */
	for (uint32_t k = 0; k < p->plan->formulas->npoint; k++) {
		const om_formula_point *at = &p->plan->formulas->point[k];
		CU_ASSERT_EQUAL(at->arenas, shrunk(&t, t.p, at->n[0], at->n[1], 9, 8));
	}
	om_prog_free(p);
	bench_close(&t);
}

/* The output, in memory of the caller, has every second number, or also every third one; or what is no polynomial, and then the total is
 * not known. */
static void
what_is_outside_has_quotients_or_is_not_known(void)
{
	static const char text[] =
		"program \"t\" ir 8 opset 17\n"
		"^g(%%x: float32[1,4,N], %%y: float32[S]) {\n"
		"	%%a = Relu(%%x)\n"
		"	%%b = Neg(%%a)\n"
		"	%%c = MaxPool(%%b) {kernel_shape = [1], strides = [2], ceil_mode = 1}\n"
		"	%%e = MaxPool(%%b) {kernel_shape = [1], strides = [3], ceil_mode = 1}\n"
		"	%%f = Concat(%%c, %%e) {axis = 2}\n"
		"	%%h = Transpose(%%e) {perm = [0, 2, 1]}\n"
		"	%%i = MatMul(%%h, %%c)\n"
		"	%%d = Exp(%%y)\n"
		"	ret %%%s, %%d\n"
		"}\n";
	bench t;

	for (int k = 0; k < 3; k++) {
		static const char *const output[] = {"c", "f", "i"};
		char graph[700];
		snprintf(graph, sizeof graph, text, output[k]);
		unit_start(&t, graph, NULL);
		om_prog *p = plan_from(&t, OM_IO_CALLER, 1, 11, 3);
		const om_formula *outside = p->plan->formulas->outside;
		for (int64_t n = 1; n <= 11 && outside; n++)
			CU_ASSERT_EQUAL(om_formula_value(outside, (int64_t[]){n, 3, 0, 0}), (uint64_t)(16 * n + 12 + 16 * ((n + 1) / 2) + (k ? 16 * ((n + 2) / 3) : 0) + 12));
		CU_ASSERT((outside != NULL) == (k < 2));
		om_prog_free(p);
		bench_close(&t);
	}
}

/* One row more for N = 777 alone, which no sample has. */
static void
one_size_that_differs_is_found(void)
{
	static const char text[] =
		"program \"t\" ir 8 opset 17\n"
		"^g(%x: float32[N,4], %y: float32[S]) {\n"
		"	%n = Shape(%x) {start = 0, end = 1}\n"
		"	%k = const int64[1] {777}\n"
		"	%is = Equal(%n, %k)\n"
		"	%more = Cast(%is) {to = 7}\n"
		"	%five = const int64[1] {5}\n"
		"	%to = Add(%more, %five)\n"
		"	%zero = const int64[1] {0}\n"
		"	%a = Slice(%x, %zero, %to, %zero)\n"
		"	%b = Exp(%a)\n"
		"	%c = Exp(%y)\n"
		"	ret %b, %c\n"
		"}\n";
	bench t;

	unit_start(&t, text, NULL);
	for (int k = 0; k < 2; k++) {
		om_prog *p = plan_from(&t, OM_IO_ARENA, k ? 600 : 800, 1000, 1000);
		CU_ASSERT((p->plan->formulas->why != NULL) == (k == 1));
		CU_ASSERT_PTR_NULL(p->plan->formulas->why_unproven);
		om_prog_free(p);
	}
	bench_close(&t);
}

/* Sizes that are products of dims of inputs are derived for any range, with one program in which all are open, those of a
 * flattened value too.  A quotient is found for all sizes or, of more, not at all. */
static void
sizes_are_derived(void)
{
	static const char text[] =
		"program \"t\" ir 8 opset 17\n"
		"^g(%%x: float32[N,4,S]) {\n"
		"	%%a = Exp(%%x)\n"
		"	%%flat = const int64[1] {-1}\n"
		"	%%n = Shape(%%x) {start = 0, end = 1}\n"
		"	%%eight = const int64[1] {8}\n"
		"	%%two = const int64[1] {2}\n"
		"	%%more = Mul(%%n, %%eight)\n"
		"	%%rows = Div(%%more, %%two)\n"
		"	%%to = Concat(%%rows, %%flat) {axis = 0}\n"
		"	%%b = %s\n"
		"	%%c = Exp(%%b)\n"
		"	ret %%c\n"
		"}\n";
	static const char *const ops[] = {"Neg(%a)", "Reshape(%a, %flat)", "Reshape(%a, %flat)", "Reshape(%a, %to)", "Reshape(%a, %to)"};
	static const int64_t most[][2] = {{1 << 20, 3000}, {20, 9}, {1 << 20, 3000}, {20, 9}, {1 << 20, 3000}};
	bench t;

	for (int k = 0; k < 5; k++) {
		char graph[800];
		uint64_t bytes;
		snprintf(graph, sizeof graph, text, ops[k]);
		unit_start(&t, graph, NULL);
		om_prog *p = plan_from(&t, OM_IO_ARENA, 1, most[k][0], most[k][1]);
		const om_formulas *f = p->plan->formulas;
		CU_ASSERT_PTR_NULL(f->why);
		CU_ASSERT((f->why_unproven != NULL) == (k == 4));
		CU_ASSERT((k != 0 && k != 2) || f->checked < 100);
		CU_ASSERT_EQUAL(om_plan_arena_at(p->plan, 0, (int64_t[]){7, 5}, &bytes), k != 4);
		CU_ASSERT(k == 4 || bytes == shrunk(&t, t.p, 7, 5, most[k][0], most[k][1]));
		om_prog_free(p);
		bench_close(&t);
	}
}

/* The rows of a Concat are a sum of symbols, also where an input is called like an expression. */
static void
joined_rows_are_derived(void)
{
	static const char text[] =
		"program \"t\" ir 8 opset 17\n"
		"^g(%%x: float32[N,4], %%y: float32[S,4], %%z: float32[%s,4]) {\n"
		"	%%a = Exp(%%x)\n"
		"	%%b = Concat(%%a, %%y) {axis = 0}\n"
		"	%%c = Concat(%%z, %%b) {axis = 0}\n"
		"	%%d = Exp(%%c)\n"
		"	%%e = Exp(%%d)\n"
		"	ret %%e\n"
		"}\n";
	static const char *const rows[] = {"S", "\"N + S\"", "\"N*2\""};
	bench t;

	for (int k = 0; k < 3; k++) {
		char graph[400];
		snprintf(graph, sizeof graph, text, rows[k]);
		unit_start(&t, graph, NULL);
		om_prog *p = plan_from(&t, OM_IO_ARENA, 1, 1 << 20, 3000);
		uint64_t bytes;
		CU_ASSERT_PTR_NULL(p->plan->formulas->why);
		CU_ASSERT_PTR_NULL(p->plan->formulas->why_unproven);
		CU_ASSERT(p->plan->formulas->checked < 100);
		CU_ASSERT_FATAL(om_plan_arena_at(p->plan, 0, (int64_t[]){7, 5}, &bytes));
		CU_ASSERT_EQUAL(bytes, shrunk(&t, t.p, 7, 5, 1 << 20, 3000));
		om_prog_free(p);
		bench_close(&t);
	}
}

static CU_TestInfo formula_tests[] = {
	{"polynomials are found from their values", polynomials_are_found_from_their_values},
	{"what has no integer factors is no polynomial", what_has_no_integer_factors_is_no_polynomial},
	{"values are between control points", values_are_between_control_points},
	{"quotients are between their bounds", quotients_are_between_their_bounds},
	{"sums are found from their values", sums_are_found_from_their_values},
	{"sums are between their bounds", sums_are_between_their_bounds},
	{"what does not fit is refused", what_does_not_fit_is_refused},
	{"formulas are written as text", formulas_are_written_as_text},
	{"formulas are what plans take", formulas_are_what_plans_take},
	{"a plan without ranges has none", a_plan_without_ranges_has_none},
	{"scratch is the most of all sizes", scratch_is_the_most_of_all_sizes},
	{"scratch of ranges is forgotten", scratch_of_ranges_is_forgotten},
	{"strides lead to quotients", strides_lead_to_quotients},
	{"joined values are sums", joined_values_are_sums},
	{"ranges have steps", ranges_have_steps},
	{"a size that is no polynomial is the reason", a_size_that_is_no_polynomial_is_the_reason},
	{"one size that differs is found", one_size_that_differs_is_found},
	{"sizes are derived", sizes_are_derived},
	{"joined rows are derived", joined_rows_are_derived},
	{"what is outside has quotients or is not known", what_is_outside_has_quotients_or_is_not_known},
	CU_TEST_INFO_NULL
};
UNIT_SUITE("formulas", formula_tests);
