/* Files that claim what is not so, and inputs that the plan was not made for: a sentence, never a wrong
 * address. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "onnxmodel.h"
#include "tests/fixtures.h"
#include "unit.h"

static om_status
plan(bench *t, const char *text)
{
	*t = bench_open();
	return bench_plan(t, text, om_default_pipeline());
}

static bool
is_said(const bench *t, const char *part)
{
	if (!strstr(om_message(t->s), part))
		printf("%s, not %s\n", om_message(t->s), part);
	return strstr(om_message(t->s), part) != NULL;
}

/* ---- Elements that contradict declared shapes. ---- */

/* Run with a 2x3 tensor and a list of `n` integers. */
static om_status
run(bench *t, const om_exec_options *o, int64_t n, const int64_t *list)
{
	static const float x[6] = {1, 2, 3, 4, 5, 6};
	const om_tensor in[2] = {
		{.type = OM_FLOAT32, .shape = om_shape_of(2, (int64_t[]){2, 3}), .data = (void *)x},
		{.type = OM_INT64, .shape = om_shape_of(1, &n), .data = (void *)list},
	};

	OM_TRY(bench_exec(t, o));
	return bench_run(t, in, 2);
}

/* The declared shape is right for `good` and wrong for `bad`, of the same length. */
struct steered {
	const char *op;          /* after "%y: float32" */
	const char *ends;        /* other constants */
	int64_t n;
	int64_t good[4], bad[4];
};

static const struct steered steered[] = {
	{"[1,3] = ReduceSum(%x, %l)", "", 1, {0}, {1}},
	{"[1,3] = ReduceSum(%x, %l)", "", 1, {-2}, {-1}},
	{"[3] = ReduceMax(%x, %l) {keepdims = 0}", "", 1, {0}, {1}},
	{"[3] = ReduceMin(%x, %l) {keepdims = 0}", "", 1, {0}, {1}},
	{"[3] = ReduceMean(%x, %l) {keepdims = 0}", "", 1, {0}, {1}},
	{"[3] = ReduceProd(%x, %l) {keepdims = 0}", "", 1, {0}, {1}},
	{"[3] = ReduceSumSquare(%x, %l) {keepdims = 0}", "", 1, {0}, {1}},
	{"[3] = ReduceLogSum(%x, %l) {keepdims = 0}", "", 1, {0}, {1}},
	{"[3] = ReduceLogSumExp(%x, %l) {keepdims = 0}", "", 1, {0}, {1}},
	{"[3] = ReduceL1(%x, %l) {keepdims = 0}", "", 1, {0}, {1}},
	{"[3] = ReduceL2(%x, %l) {keepdims = 0}", "", 1, {0}, {1}},
	{"[6] = Reshape(%x, %l)", "", 1, {6}, {5}},
	{"[3,2] = Reshape(%x, %l)", "", 2, {3, 2}, {2, 3}},
	{"[2,3] = Reshape(%x, %l)", "", 2, {2, 3}, {3, 2}},
	{"[4,2,3] = Expand(%x, %l)", "", 3, {4, 1, 1}, {5, 1, 1}},
	{"[2,6] = Tile(%x, %l)", "", 2, {1, 2}, {2, 2}},
	{"[2,2] = Slice(%x, %l, %e, %a)", "\t%e = const int64[1] {3}\n\t%a = const int64[1] {1}\n", 1, {1}, {0}},
	{"[1,2,3] = Unsqueeze(%x, %l)", "", 1, {0}, {1}},
	{"[3,5] = Pad(%x, %l)", "", 4, {1, 1, 0, 1}, {2, 2, 2, 2}},
	{"[3,5] = Pad(%x, %l) {mode = \"edge\"}", "", 4, {1, 1, 0, 1}, {2, 2, 2, 2}},
	{"[4,3] = Resize(%x, _, _, %l)", "", 2, {4, 3}, {5, 3}},
	{"[4,3] = Resize(%x, _, _, %l) {mode = \"linear\"}", "", 2, {4, 3}, {5, 3}},
	{"[2,2] = CenterCropPad(%x, %l)", "", 2, {2, 2}, {9, 9}},
	{"[2,3] = ConstantOfShape(%l)", "", 2, {2, 3}, {3, 3}},
};

static void
elements_do_not_decide_against_the_plan(void)
{
	for (size_t k = 0; k < sizeof steered / sizeof steered[0]; k++) {
		const struct steered *c = &steered[k];
		bench t;
		char text[1024];
		snprintf(text, sizeof text, "program \"t\" ir 8 opset 18\n^g(%%x: float32[2,3], %%l: int64[%d]) {\n"
			"%s\t%%y: float32%s\n\t%%z = Neg(%%y)\n\tret %%z\n}\n", (int)c->n, c->ends, c->op);
		const om_status st = plan(&t, text);
		CU_ASSERT_EQUAL(st, OM_OK);
		for (int w = 0; st == OM_OK && w < NWAY; w++) {
			const om_status good = run(&t, &ways[w], c->n, c->good);
			const om_status bad = run(&t, &ways[w], c->n, c->bad);
			if (good != OM_OK || bad == OM_OK)
				printf("%s: %s, %s (%s)\n", c->op, om_status_text(good), om_status_text(bad), om_message(t.s));
			CU_ASSERT_EQUAL(good, OM_OK);
			CU_ASSERT(bad == OM_RUN || bad == OM_SHAPE);
		}
		if (st != OM_OK)
			printf("%s: %s\n", c->op, om_message(t.s));
		bench_close(&t);
	}
}

/* Plan, and run where that succeeds, with the list as a constant that is known only after `size` int64 elements have
 * been computed. */
static om_status
run_folded(const struct steered *c, int size, const int64_t *list)
{
	bench t;
	char text[1024], elements[128] = "";

	for (int k = 0; k < (int)c->n; k++)
		sprintf(elements + strlen(elements), "%s%d", k ? "," : "", (int)list[k]);
	snprintf(text, sizeof text, "program \"t\" ir 8 opset 18\n^g() {\n\t%%x = const float32[2,3] {1,2,3,4,5,6}\n%s"
		"\t%%from = const int64[] {0}\n\t%%to = const int64[] {%d}\n\t%%by = const int64[] {1}\n"
		"\t%%long = Range(%%from, %%to, %%by)\n\t%%zero = ReduceMin(%%long) {keepdims = 0}\n"
		"\t%%list = const int64[%d] {%s}\n\t%%l = Add(%%list, %%zero)\n"
		"\t%%y: float32%s\n\t%%z = Neg(%%y)\n\tret %%z\n}\n", c->ends, size, (int)c->n, elements, c->op);
	om_status st = plan(&t, text);
	if (st == OM_OK)
		st = bench_exec(&t, &ways[PLANNED]);
	if (st == OM_OK)
		st = om_exec_run(t.e);
	bench_close(&t);
	return st;
}

/* 2000 elements are computed by the pass `fold`, after shapes; 20000 by the executor. */
static void
computed_constants_do_not_decide_against_declared_shapes(void)
{
	for (size_t k = 0; k < sizeof steered / sizeof steered[0]; k++)
		for (int size = 2000; size <= 20000; size *= 10) {
			const om_status good = run_folded(&steered[k], size, steered[k].good);
			const om_status bad = run_folded(&steered[k], size, steered[k].bad);
			if (good != OM_OK || bad == OM_OK)
				printf("%s, %d: %s, %s\n", steered[k].op, size, om_status_text(good), om_status_text(bad));
			CU_ASSERT_EQUAL(good, OM_OK);
			CU_ASSERT(bad == OM_RUN || bad == OM_SHAPE);
		}
}

/* ---- Operators. ---- */

static void
attributes_and_inputs_out_of_range_are_refused(void)
{
	static const struct { int opset; const char *body, *say; } bad[] = {
		{17, "\t%w = const float32[] {1.0}\n\t%s = const int64[] {2}\n\t%n = const int64[] {4}\n"
			"\t%y = STFT(%x, %s, %w, %n)\n", "the window must have rank 1"},
		{6, "\t%w = const float32[3] {1,2,3}\n\t%y = Add(%x, %w) {broadcast = 1, axis = 9223372036854775807}\n", ""},
		{6, "\t%w = const float32[3] {1,2,3}\n\t%y = Add(%x, %w) {broadcast = 1, axis = -9223372036854775808}\n", ""},
	};

	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		bench t;
		char text[512];
		snprintf(text, sizeof text, "program \"t\" ir 8 opset %d\n^g(%%x: float32[2,8]) {\n%s\tret %%y\n}\n", bad[k].opset,
			bad[k].body);
		const om_status st = plan(&t, text);
		if (st == OM_OK)
			printf("%s is planned\n", bad[k].body);
		CU_ASSERT(st != OM_OK);
		CU_ASSERT(is_said(&t, bad[k].say));
		bench_close(&t);
	}
}

static void
gradients_take_negative_axes(void)
{
	unit_grad_check("program \"t\" ir 8 opset 17\n^g(%x: float64[2,3,4]) {\n"
		"\t%t = Transpose(%x) {perm = [-1, 0, -2]}\n\t%q = Mul(%t, %t)\n\t%y = ReduceSum(%q) {keepdims = 0}\n\tret %y\n}\n", 2);
}

/* An op with an unsupported type and declared outputs can be planned, and not be run, in a body either. */
static void
bodies_without_kernels_are_refused(void)
{
	bench t;
	om_exec *e = NULL;

	CU_ASSERT_EQUAL_FATAL(plan(&t, "program \"t\" ir 8 opset 17\n"
		"^g(%x: float32[1], %n: int64[]) {\n"
		"	%go = const bool[] {1}\n"
		"	%y = Loop(%n, %go, %x) {body = ^round(%i: int64[], %g: bool[], %v: float32[1]) {\n"
		"		%w = Neg(%v)\n"
		"		%h: bool[] = Reshape(%g, %g)\n"
		"		ret %h, %w\n"
		"	}}\n"
		"	ret %y\n"
		"}\n"), OM_OK);
	CU_ASSERT_EQUAL(om_exec_new(t.s, t.p, t.p->plan, NULL, &e), OM_UNSUPPORTED);
	CU_ASSERT(is_said(&t, "Reshape"));
	CU_ASSERT_PTR_NULL(e);
	bench_close(&t);
}

/* ---- Files. ---- */

static void
references_outside_functions_are_refused(void)
{
	struct made b = made_new(8, 17);
	om_model *m = NULL;
	om_prog *p = NULL;

	made_input(&b, b.g, "x", 2, (int64_t[]){2, 3});
	Onnx__NodeProto *n = made_node(&b, b.g, "Softmax", "x", "y");
	Onnx__AttributeProto *a = made_attr(&b, n, "axis", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
	made_set(&b, &a->ref_attr_name, "which");
	made_output(&b, b.g, "y");
	CU_ASSERT_EQUAL(made_load(&b, NULL, &m, &p), OM_INVALID);
	CU_ASSERT(made_says(&b, "refers to the function attribute which"));
	om_prog_free(p);
	om_model_free(m);
	made_free(&b);
}

static CU_TestInfo hostile_tests[] = {
	{"elements do not decide against the plan", elements_do_not_decide_against_the_plan},
	{"computed constants do not decide against declared shapes", computed_constants_do_not_decide_against_declared_shapes},
	{"attributes and inputs out of range are refused", attributes_and_inputs_out_of_range_are_refused},
	{"gradients take negative axes", gradients_take_negative_axes},
	{"bodies without kernels are refused", bodies_without_kernels_are_refused},
	{"references outside of functions are refused", references_outside_functions_are_refused},
	CU_TEST_INFO_NULL
};
UNIT_SUITE("hostile", hostile_tests);
