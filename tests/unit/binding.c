/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings of symbols and shapes, copies of programs, and plans by binding. */
#include <config.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnxmem/builder.h"
#include "tests/fixtures.h"
#include "unit.h"
#include "ir/binding.h"

static const char chain[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[n,3], %z: float32[n,m]) {\n"
	"	%w = const float32[3,2] {1.0, 2.0, 0.5, -1.0, 0.25, 1.5}\n"
	"	%s = Shape(%x)\n"
	"	%zero = const int64[] {0}\n"
	"	%rows = Gather(%s, %zero)\n"
	"	%f = Cast(%rows) {to = 1}\n"
	"	%a = MatMul(%x, %w)\n"
	"	%y = Mul(%a, %f)\n"
	"	%t = Transpose(%z)\n"
	"	%u = MatMul(%z, %t)\n"
	"	ret %y, %u\n"
	"}\n";

static bench
start(void)
{
	bench t;

	unit_start(&t, chain, NULL);
	return t;
}

static bool
same_text(const om_prog *a, const om_prog *b)
{
	char *one = text_dump(a, OM_DUMP_ALL_DATA), *other = text_dump(b, OM_DUMP_ALL_DATA);
	const bool same = strcmp(one, other) == 0;

	free(one);
	free(other);
	return same;
}

/* ---- Bindings. ---- */

static void
a_binding_is_resolved_by_the_program(void)
{
	bench t = start();
	om_binding *b = om_binding_new();
	om_arena *mem = om_arena_new();
	const char *text;

	CU_ASSERT_EQUAL(om_binding_text(t.s, t.p, b, mem, &text), OM_OK);
	CU_ASSERT_STRING_EQUAL(text, "x=n,3 z=n,m");
	CU_ASSERT_EQUAL(om_binding_shape(t.s, b, "x", &(om_shape){.rank = 2, .dim = {4, 3}}), OM_OK);
	CU_ASSERT_EQUAL(om_binding_text(t.s, t.p, b, mem, &text), OM_OK);
	CU_ASSERT_STRING_EQUAL(text, "n=4 x=4,3 z=4,m");
	om_binding_rest(b, 7);
	CU_ASSERT_EQUAL(om_binding_text(t.s, t.p, b, mem, &text), OM_OK);
	CU_ASSERT_STRING_EQUAL(text, "m=7 n=4 x=4,3 z=4,7");
	CU_ASSERT_EQUAL(om_bind(t.s, t.p, b), OM_OK);
	CU_ASSERT_EQUAL(t.p->first->param[1]->shape.dim[0], 4);
	CU_ASSERT_EQUAL(t.p->first->param[1]->shape.dim[1], 7);
	om_arena_free(mem);
	om_binding_free(b);
	bench_close(&t);
}

/* A symbol with different numbers is none: what else it stands for is open, and has no symbol. */
static void
inputs_may_differ_in_a_symbol(void)
{
	bench b = bench_open();
	om_binding *is = om_binding_new();

	CU_ASSERT_EQUAL_FATAL(bench_read(&b, "program \"p\" ir 8 opset 18\n^main(%x: float32[n,m], %y: float32[n], %z: float32[n,m]) {\n"
		"\t%r = Relu(%x)\n\tret %r\n}\n"), OM_OK);
	CU_ASSERT_EQUAL(om_binding_shape(b.s, is, "x", &(om_shape){.rank = 2, .dim = {4, 3}}), OM_OK);
	CU_ASSERT_EQUAL(om_binding_shape(b.s, is, "y", &(om_shape){.rank = 1, .dim = {0}}), OM_OK);
	CU_ASSERT_EQUAL(om_bind(b.s, b.p, is), OM_OK);
	om_value *const *in = b.p->first->param;
	CU_ASSERT(in[0]->shape.dim[0] == 4 && in[1]->shape.dim[0] == 0 && in[2]->shape.dim[0] < 0 && in[2]->shape.dim[1] == 3);
	CU_ASSERT(!in[0]->shape.sym[0] && !in[2]->shape.sym[0]);
	om_binding_free(is);
	bench_close(&b);
}

static void
what_contradicts_is_refused_and_nothing_is_bound(void)
{
	bench t = start();
	char *before = text_dump(t.p, OM_DUMP_ALL_DATA), *after;
	const om_shape flat = {.rank = 1, .dim = {4}}, open = {.rank = 1, .dim = {-1}};
	om_binding *b = om_binding_new();

	CU_ASSERT(is_told(t.s, om_binding_dim(t.s, b, "n", -2), OM_USAGE, "cannot be -2"));
	CU_ASSERT(is_told(t.s, om_binding_shape(t.s, b, "x", &open), OM_USAGE, "unknown dims"));
	CU_ASSERT_EQUAL(om_binding_dim(t.s, b, "n", 2), OM_OK);
	CU_ASSERT(is_told(t.s, om_binding_dim(t.s, b, "n", 3), OM_USAGE, "both 2 and 3"));
	CU_ASSERT_EQUAL(om_binding_shape(t.s, b, "x", &(om_shape){.rank = 2, .dim = {4, 3}}), OM_OK);
	CU_ASSERT(is_told(t.s, om_binding_shape(t.s, b, "x", &flat), OM_USAGE, "two shapes"));
	CU_ASSERT(is_told(t.s, om_bind(t.s, t.p, b), OM_SHAPE, "dim 0 is n, which is 2, not 4"));
	om_binding_free(b);

	static const struct { const char *input; om_shape shape; const char *say; om_status st; } bad[] = {
		{"q", {.rank = 1, .dim = {1}}, "no input called q", OM_USAGE},
		{"x", {.rank = 2, .dim = {4, 5}}, "dim 1 is 3 in the file, not 5", OM_SHAPE},
		{"x", {.rank = 1, .dim = {4}}, "2 dims in the file, not 1", OM_SHAPE},
	};
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		b = om_binding_new();
		CU_ASSERT_EQUAL(om_binding_dim(t.s, b, "m", 9), OM_OK);
		CU_ASSERT_EQUAL(om_binding_shape(t.s, b, bad[k].input, &bad[k].shape), OM_OK);
		CU_ASSERT(is_told(t.s, om_bind(t.s, t.p, b), bad[k].st, bad[k].say));
		om_binding_free(b);
	}
	b = om_binding_new();
	CU_ASSERT_EQUAL(om_binding_dim(t.s, b, "batch", 9), OM_OK);
	CU_ASSERT(is_told(t.s, om_bind(t.s, t.p, b), OM_USAGE, "no dim of the model is called batch"));
	om_binding_free(b);
	b = om_binding_new();
	om_binding_rest(b, 0);
	CU_ASSERT(is_told(t.s, om_bind(t.s, t.p, b), OM_SHAPE, "dim n is open"));
	om_binding_free(b);
	after = text_dump(t.p, OM_DUMP_ALL_DATA);
	CU_ASSERT_STRING_EQUAL(after, before);
	free(before);
	free(after);
	bench_close(&t);
}

/* ---- Copies. ---- */

/* A copy is the same text before and after every pass, and the source is not changed by passes on it. */
static void
check_copy(om_session *s, om_host *h, om_prog *p, const char *what)
{
	om_prog *copy, *again;
	char *before = text_dump(p, OM_DUMP_ALL_DATA), *after;

	CU_ASSERT_EQUAL_FATAL(om_prog_copy(s, p, &copy), OM_OK);
	CU_ASSERT(same_text(p, copy));
	CU_ASSERT_EQUAL(om_verify(s, copy), OM_OK);
	const om_status st = om_host_run(h, copy, om_default_pipeline());
	after = text_dump(p, OM_DUMP_ALL_DATA);
	CU_ASSERT_STRING_EQUAL(before, after);
	CU_ASSERT_EQUAL_FATAL(om_prog_copy(s, copy, &again), OM_OK);
	CU_ASSERT_EQUAL(om_verify(s, again), OM_OK);
	CU_ASSERT_EQUAL(om_host_run(h, p, om_default_pipeline()), st);
	if (!same_text(p, copy) || om_verify(s, copy) != OM_OK)
		printf("%s: %s\n", what, om_message(s));
	CU_ASSERT(same_text(p, copy));
	if (st == OM_OK) {
		CU_ASSERT_EQUAL(om_plan_verify(s, copy, copy->plan), OM_OK);
		CU_ASSERT_EQUAL(p->plan->narena, copy->plan->narena);
		for (uint32_t k = 0; k < p->plan->narena; k++)
			CU_ASSERT_EQUAL(p->plan->arena[k].bytes, copy->plan->arena[k].bytes);
	}
	free(before);
	free(after);
	om_prog_free(again);
	om_prog_free(copy);
}

static void
copy_model(om_session *s, const char *path)
{
	om_host *h = om_host_new(s, NULL);
	om_binding *b = om_binding_new();
	om_model *m;
	om_prog *p;

	om_binding_rest(b, 2);
	CU_ASSERT_EQUAL_FATAL(om_model_load(s, path, &m), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_model_import(s, m, &p), OM_OK);
	CU_ASSERT_EQUAL(om_bind(s, p, b), OM_OK);
	check_copy(s, h, p, path);
	om_prog_free(p);
	om_model_free(m);
	om_binding_free(b);
	om_host_free(h);
}

static void
copies_of_all_models_are_the_same(void)
{
	om_session *s = om_session_new();
	DIR *d = opendir(OM_SRCDIR "/models");
	unsigned n = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(d);
	for (struct dirent *e; (e = readdir(d));) {
		const size_t len = strlen(e->d_name);
		char path[1024];
		if (len < 5 || strcmp(e->d_name + len - 5, ".onnx") != 0)
			continue;
		snprintf(path, sizeof path, "%s/models/%s", OM_SRCDIR, e->d_name);
		copy_model(s, path);
		n++;
	}
	closedir(d);
	CU_ASSERT(n > 20);
	om_session_free(s);
}

/* The builder goes on where the lists of the source ended, whatever their lengths. */
static void
a_copy_can_be_changed(void)
{
	for (uint32_t n = 0; n < 20; n++) {
		bench t = start();
		om_prog *copy;
		for (uint32_t k = 0; k < n; k++)
			om_block_add_result(t.p->first, t.p->first->param[0]);
		CU_ASSERT_EQUAL_FATAL(om_prog_copy(t.s, t.p, &copy), OM_OK);
		for (uint32_t k = 0; k < 5; k++) {
			om_block_add_result(copy->first, copy->first->param[1]);
			om_block_add_param(copy->first, om_value_fresh(copy, copy->first, "more"));
		}
		CU_ASSERT_EQUAL(om_verify(t.s, copy), OM_OK);
		CU_ASSERT_EQUAL(om_verify(t.s, t.p), OM_OK);
		CU_ASSERT_EQUAL(t.p->first->nresult, 2 + n);
		CU_ASSERT_EQUAL(copy->first->nresult, 7 + n);
		om_prog_free(copy);
		bench_close(&t);
	}
}

/* ---- Plans by binding. ---- */

static om_status
get(bench *t, om_plan_cache *c, int64_t n, int64_t m, const om_prog **out)
{
	om_binding *b = om_binding_new();

	CU_ASSERT_EQUAL(om_binding_dim(t->s, b, "n", n), OM_OK);
	CU_ASSERT_EQUAL(om_binding_dim(t->s, b, "m", m), OM_OK);
	const om_status st = om_plan_cache_get(c, b, out);
	om_binding_free(b);
	return st;
}

/* The first result is n times the sums of the rows of the product. */
static void
run_bound(bench *t, const om_prog *p, int64_t n)
{
	float x[3 * 8], z[8 * 20] = {0};
	om_exec *e;

	for (int k = 0; k < 24; k++)
		x[k] = (float)k;
	const om_tensor in[2] = {
		{.type = OM_FLOAT32, .shape = om_shape_of(2, (int64_t[]){n, 3}), .data = x},
		{.type = OM_FLOAT32, .shape = om_shape_of(2, (int64_t[]){n, 20}), .data = z},
	};
	CU_ASSERT_EQUAL_FATAL(om_exec_new(t->s, p, p->plan, &(om_exec_options)OM_EXEC_OPTIONS(.poison = true), &e), OM_OK);
	CU_ASSERT_EQUAL(om_exec_input(e, 0, &in[0]), OM_OK);
	CU_ASSERT_EQUAL(om_exec_input(e, 1, &in[1]), OM_OK);
	CU_ASSERT_EQUAL(om_exec_run(e), OM_OK);
	const float *y = om_exec_result(e, 0)->data;
	for (int64_t k = 0; k < n; k++) {
		const float *r = &x[3 * k];
		CU_ASSERT_EQUAL(y[2 * k], (float)n * (r[0] * 1.0f + r[1] * 0.5f + r[2] * 0.25f));
		CU_ASSERT_EQUAL(y[2 * k + 1], (float)n * (r[0] * 2.0f + r[1] * -1.0f + r[2] * 1.5f));
	}
	om_exec_free(e);
}

static void
a_plan_is_made_once_for_each_binding(void)
{
	bench t = start();
	om_binding *b = om_binding_new();
	om_plan_cache *c = om_plan_cache_new(t.h, t.p, NULL);
	char *before = text_dump(t.p, OM_DUMP_ALL_DATA), *after;
	const om_prog *one, *other, *again, *by_shape;

	CU_ASSERT_EQUAL_FATAL(om_host_request(t.h, &(om_plan_request)OM_PLAN_REQUEST(.align = 4096)), OM_OK);  /* for others */
	CU_ASSERT_EQUAL_FATAL(get(&t, c, 4, 20, &one), OM_OK);
	CU_ASSERT_EQUAL(one->plan->align, 64);
	CU_ASSERT_EQUAL_FATAL(get(&t, c, 8, 20, &other), OM_OK);
	CU_ASSERT_EQUAL_FATAL(get(&t, c, 4, 20, &again), OM_OK);
	CU_ASSERT_PTR_EQUAL(one, again);
	CU_ASSERT_PTR_NOT_EQUAL(one, other);
	CU_ASSERT(one->plan->arena[0].bytes < other->plan->arena[0].bytes);
	CU_ASSERT_EQUAL(om_binding_shape(t.s, b, "z", &(om_shape){.rank = 2, .dim = {8, 20}}), OM_OK);
	CU_ASSERT_EQUAL(om_plan_cache_get(c, b, &by_shape), OM_OK);
	CU_ASSERT_PTR_EQUAL(by_shape, other);
	run_bound(&t, one, 4);
	run_bound(&t, other, 8);
	run_bound(&t, one, 4);
	after = text_dump(t.p, OM_DUMP_ALL_DATA);
	CU_ASSERT_STRING_EQUAL(before, after);
	free(before);
	free(after);
	om_plan_cache_free(c);
	om_binding_free(b);
	bench_close(&t);
}

static void
what_cannot_be_planned_is_not_kept(void)
{
	bench t = start();
	om_plan_cache *c = om_plan_cache_new(t.h, t.p, "inline,shapes");
	const om_prog *p = t.p;

	CU_ASSERT(is_told(t.s, get(&t, c, 4, 20, &p), OM_USAGE, "make no plan"));
	CU_ASSERT_PTR_NULL(p);
	CU_ASSERT(is_told(t.s, get(&t, c, 4, 20, &p), OM_USAGE, "make no plan"));
	om_plan_cache_free(c);
	om_plan_cache_free(NULL);
	bench_close(&t);
}

/* ---- Constants. ---- */

static const char chooses[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[n,3], %which: int64[]) {\n"
	"	%one = const int64[] {1}\n"
	"	%go = Equal(%which, %one)\n"
	"	%y = If(%go) {then_branch = ^a() {\n"
	"		%p = Neg(%x)\n"
	"		ret %p\n"
	"	}, else_branch = ^b() {\n"
	"		%q = Exp(%x)\n"
	"		ret %q\n"
	"	}}\n"
	"	ret %y\n"
	"}\n";

static om_tensor
integer(int64_t *n)
{
	return (om_tensor){.type = OM_INT64, .shape = om_shape_of(0, NULL), .data = n};
}

static void
a_constant_input_decides_branches(void)
{
	int64_t n = 1, other = 2;
	float x[6] = {1, 2, 3, 4, 5, 6};
	om_tensor one = integer(&n), two = integer(&other);
	om_binding *b = om_binding_new();
	om_prog *p;
	bench t;

	unit_start(&t, chooses, NULL);
	CU_ASSERT_EQUAL(om_binding_dim(t.s, b, "n", 2), OM_OK);
	CU_ASSERT_EQUAL(om_binding_value(t.s, b, "which", &one), OM_OK);
	n = 7;                   /* elements were copied */
	CU_ASSERT(is_told(t.s, om_binding_value(t.s, b, "which", &two), OM_USAGE, "bound to two constants"));
	CU_ASSERT_FATAL(is_ok(t.s, om_prog_bind(t.s, t.p, b, &p)));
	CU_ASSERT_FALSE(t.p->first->param[1]->is_const);
	CU_ASSERT_FATAL(is_ok(t.s, om_host_run(t.h, p, "inline,shapes,fold,branches,shapes,fold,prune,liveness,views,inplace,pack")));
	CU_ASSERT_EQUAL(p->first->next, NULL);   /* no body is left */
	om_exec *e;
	CU_ASSERT_FATAL(is_ok(t.s, om_exec_new(t.s, p, p->plan, &(om_exec_options)OM_EXEC_OPTIONS(.poison = true), &e)));
	CU_ASSERT_EQUAL(om_exec_input(e, 0, &(om_tensor){.type = OM_FLOAT32, .shape = om_shape_of(2, (int64_t[]){2, 3}), .data = x}), OM_OK);
	CU_ASSERT(is_told(t.s, om_exec_input(e, 1, &two), OM_BADPLAN, "input which has another value"));
	n = 1;
	CU_ASSERT_EQUAL(om_exec_input(e, 1, &one), OM_OK);
	CU_ASSERT(is_ok(t.s, om_exec_run(e)));
	CU_ASSERT_EQUAL(((const float *)om_exec_result(e, 0)->data)[5], -6);
	om_exec_free(e);
	om_prog_free(p);
	om_binding_free(b);
	bench_close(&t);
}

static void
a_constant_has_the_type_and_shape_of_its_input(void)
{
	int64_t n = 1;
	float x = 1;
	const om_tensor wrong[] = {
		{.type = OM_FLOAT32, .shape = om_shape_of(0, NULL), .data = &x},
		{.type = OM_INT64, .shape = om_shape_of(1, (int64_t[]){1}), .data = &n},
	};
	static const char *const told[] = {"input which is int64, not float32", "input which: has 0 dims in the file, not 1"};
	bench t;

	unit_start(&t, chooses, NULL);
	for (int k = 0; k < 2; k++) {
		om_binding *b = om_binding_new();
		om_prog *p;
		CU_ASSERT_EQUAL(om_binding_value(t.s, b, "which", &wrong[k]), OM_OK);
		CU_ASSERT(is_told(t.s, om_prog_bind(t.s, t.p, b, &p), k ? OM_SHAPE : OM_USAGE, told[k]));
		om_binding_free(b);
	}
	om_binding *b = om_binding_new();
	CU_ASSERT(is_told(t.s, om_binding_value(t.s, b, "which", &(om_tensor){.type = OM_INT64}), OM_USAGE, "has no elements"));
	om_binding_free(b);
	bench_close(&t);
}

/* Programs with different constants are different. */
static void
plans_are_kept_by_constant(void)
{
	int64_t n[] = {1, 2};
	const om_prog *p[2];
	bench t;

	unit_start(&t, chooses, NULL);
	om_plan_cache *c = om_plan_cache_new(t.h, t.p, NULL);
	for (int k = 0; k < 2; k++) {
		om_binding *b = om_binding_new();
		const om_tensor is = integer(&n[k]);
		CU_ASSERT_EQUAL(om_binding_dim(t.s, b, "n", 2), OM_OK);
		CU_ASSERT_EQUAL(om_binding_value(t.s, b, "which", &is), OM_OK);
		CU_ASSERT_FATAL(is_ok(t.s, om_plan_cache_get(c, b, &p[k])));
		om_binding_free(b);
	}
	CU_ASSERT_PTR_NOT_EQUAL(p[0], p[1]);
	om_plan_cache_free(c);
	bench_close(&t);
}

/* y = x * w, where w is [3] unless another one is given, and u is required. */
static const char *const has_default = "program \"\" ir 10 opset 22\n"
	"^main(%x: float32[2], %w: float32[1] = {3.0}, %u: float32[2]) {\n\t%d = Add(%w, %w)\n\t%m = Mul(%x, %d)\n\t%y = Add(%m, %u)\n\tret %y\n}\n";

static void
a_default_is_a_constant(void)
{
	float x[2] = {1, 2}, u[2] = {0, 1}, w = 3;
	om_tensor other = {.type = OM_FLOAT32, .shape = om_shape_of(1, (int64_t[]){1}), .data = &w};
	om_binding *b = om_binding_new();
	om_prog *p;
	om_exec *e;
	bench t;

	unit_start(&t, has_default, NULL);
	CU_ASSERT_FATAL(t.p->first->param[1]->is_overridable);
	CU_ASSERT(is_told(t.s, om_binding_default(t.s, b, t.p, "z"), OM_USAGE, "no input z"));
	CU_ASSERT(is_told(t.s, om_binding_default(t.s, b, t.p, "u"), OM_USAGE, "input u has no default"));
	CU_ASSERT_FATAL(is_ok(t.s, om_binding_default(t.s, b, t.p, "w")));
	CU_ASSERT_FATAL(is_ok(t.s, om_binding_default(t.s, b, t.p, "w")));
	CU_ASSERT(is_told(t.s, om_binding_value(t.s, b, "w", &other), OM_USAGE, "bound to two constants"));
	CU_ASSERT_FATAL(is_ok(t.s, om_prog_bind(t.s, t.p, b, &p)));
	CU_ASSERT_TRUE(t.p->first->param[1]->is_overridable);
	CU_ASSERT_TRUE(p->first->param[1]->is_const);
	CU_ASSERT_FALSE(p->first->param[1]->is_overridable);
	CU_ASSERT_PTR_EQUAL(p->first->param[1]->data->data, t.p->first->param[1]->data->data);
	CU_ASSERT_FATAL(is_ok(t.s, om_host_run(t.h, p, "inline,shapes,fold,prune,liveness,views,inplace,pack")));
	CU_ASSERT(p->first->first->is_folded);                  /* the sum of the default */
	CU_ASSERT_FATAL(is_ok(t.s, om_exec_new(t.s, p, p->plan, &(om_exec_options)OM_EXEC_OPTIONS(.poison = true), &e)));
	om_tensor in = {.type = OM_FLOAT32, .shape = om_shape_of(1, (int64_t[]){2}), .data = x};
	CU_ASSERT_EQUAL(om_exec_input(e, 0, &in), OM_OK);
	in.data = u;
	CU_ASSERT_EQUAL(om_exec_input(e, 2, &in), OM_OK);
	w = 4;
	CU_ASSERT(is_told(t.s, om_exec_input(e, 1, &other), OM_BADPLAN, "input w has another value"));
	CU_ASSERT_FATAL(is_ok(t.s, om_exec_run(e)));
	CU_ASSERT_EQUAL(((const float *)om_exec_result(e, 0)->data)[1], 13);
	om_exec_free(e);
	om_prog_free(p);
	om_binding_free(b);
	bench_close(&t);
}

static CU_TestInfo binding_tests[] = {
	{"a binding is resolved by the program", a_binding_is_resolved_by_the_program},
	{"inputs may differ in a symbol", inputs_may_differ_in_a_symbol},
	{"what contradicts is refused, and nothing is bound", what_contradicts_is_refused_and_nothing_is_bound},
	{"copies of all models are the same", copies_of_all_models_are_the_same},
	{"a copy can be changed", a_copy_can_be_changed},
	{"a plan is made once for each binding", a_plan_is_made_once_for_each_binding},
	{"what cannot be planned is not kept", what_cannot_be_planned_is_not_kept},
	{"a constant input decides branches", a_constant_input_decides_branches},
	{"a constant has the type and shape of its input", a_constant_has_the_type_and_shape_of_its_input},
	{"plans are kept by constant", plans_are_kept_by_constant},
	{"a default is a constant", a_default_is_a_constant},
	CU_TEST_INFO_NULL
};
UNIT_SUITE("bindings", binding_tests);
