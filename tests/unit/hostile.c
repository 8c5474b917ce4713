/* SPDX-License-Identifier: Apache-2.0 */
/* Files that claim what is not so, and inputs that the plan was not made for: a sentence, never a wrong
 * address. */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/convert_elements.h"
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
	const char *ends;        /* lines before it: other constants, what %l controls */
	int64_t n;
	int64_t good[4], bad[4];
	bool is_closed;          /* `bad` is not possible: it is refused */
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
	{"[6] = Reshape(%x, %l)", "", 1, {6}, {5}, true},
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
	{"[1,2] = Cast(%n) {to = 1}", "\t%n: int64[1,2] = NonZero(%l)\n", 3, {1, 0, 2}, {1, 1, 1}},
	{"[2] = Cast(%n) {to = 1}", "\t%n: int64[2] = Unique(%l)\n", 3, {1, 1, 2}, {1, 2, 3}},
	{"[2,1] = Compress(%x, %c) {axis = 1}", "\t%c = Cast(%l) {to = 9}\n", 3, {1, 0, 0}, {1, 1, 1}},
	{"[1,3] = Cast(%n) {to = 1}", "\t%b = const float32[1,2,4] {0,0,1,1,5,5,6,6}\n\t%s = const float32[1,1,2] {0.5,0.25}\n"
		"\t%n: int64[1,3] = NonMaxSuppression(%b, %s, %l)\n", 1, {1}, {2}},
	{"[3] = Cast(%n) {to = 1}", "\t%b = const int64[] {0}\n\t%s = const int64[] {1}\n\t%e = Squeeze(%l)\n"
		"\t%n: int64[3] = Range(%b, %e, %s)\n", 1, {3}, {5}},
	{"[2,3] = OneHot(%i, %l, %v)", "\t%i = const int64[2] {0,1}\n\t%v = const float32[2] {0,1}\n", 1, {3}, {5}},
	{"[2,2], %j = TopK(%x, %l)", "", 1, {2}, {3}},
	{"[2,1], %q: float32[2,2] = Split(%x, %l) {axis = 1}", "", 2, {1, 2}, {2, 1}},
	{"[2,3] = Squeeze(%t, %l)", "\t%s = const int64[3] {1,2,3}\n\t%t = Reshape(%x, %s)\n", 1, {0}, {1}, true},
	{"[2,1] = SequenceAt(%q, %p)", "\t%q = SplitToSequence(%x, %l) {axis = 1}\n\t%p = const int64[] {0}\n", 2, {1, 2}, {2, 1}},
	{"[3] = HannWindow(%e)", "\t%e = Squeeze(%l)\n", 1, {3}, {5}},
	{"[1,1,2,2] = Col2Im(%i, %l, %b)", "\t%i = const float32[1,1,4] {1,2,3,4}\n\t%b = const int64[2] {1,1}\n", 2, {2, 2}, {4, 1}},
	{"[1,1,2,2] = MaxUnpool(%m, %i, %l) {kernel_shape = [2,2], strides = [2,2]}",
		"\t%m = const float32[1,1,1,1] {1}\n\t%i = const int64[1,1,1,1] {0}\n", 4, {1, 1, 2, 2}, {1, 1, 3, 3}},
	{"[1,3,3,2] = STFT(%g, %e, %w)", "\t%g = const float32[1,8,1] {1,2,3,4,5,6,7,8}\n\t%w = const float32[4] {1,1,1,1}\n"
		"\t%e = Squeeze(%l)\n", 1, {2}, {1}},
	{"[1,4,2] = DFT(%g, %e)", "\t%g = const float32[1,4,1] {1,2,3,4}\n\t%e = Squeeze(%l)\n", 1, {4}, {6}},
	{"[5,2] = MelWeightMatrix(%e, %d, %r, %a, %b)", "\t%d = const int64[] {8}\n\t%r = const int64[] {8000}\n"
		"\t%a = const float32[] {0}\n\t%b = const float32[] {4000}\n\t%e = Squeeze(%l)\n", 1, {2}, {3}},
	{"[2] = Loop(%e, %go) {body = ^body(%i: int64[], %g: bool[]) {\n\t\t%k = Identity(%g)\n\t\t%f = Cast(%i) {to = 1}\n"
		"\t\tret %k, %f\n\t}}", "\t%e = Squeeze(%l)\n\t%go = const bool[] {1}\n", 1, {2}, {4}},
	{"[3,3] = Expand(%o, %s)", "\t%o = const float32[1] {1}\n\t%n = NonZero(%l)\n\t%t = Concat(%n, %n, %n) {axis = 0}\n\t%s = Shape(%t)\n", 3,
		{1, 1, 1}, {1, 0, 1}},
	{"[2,1] = OptionalGetElement(%o)", "\t%q = SplitToSequence(%x, %l) {axis = 1}\n\t%p = const int64[] {0}\n\t%a = SequenceAt(%q, %p)\n"
		"\t%o = Optional(%a)\n", 2, {1, 2}, {2, 1}},
	{"[6] = Loop(%e, %go, %h) {body = ^body(%i: int64[], %g: bool[], %c: float32[N]) {\n\t\t%k = Identity(%g)\n\t\t%d = Concat(%c, %c) {axis = 0}\n"
		"\t\tret %k, %d\n\t}}", "\t%e = Squeeze(%l)\n\t%go = const bool[] {1}\n\t%h = const float32[3] {1,2,3}\n", 1, {1}, {2}},
	{"[3] = Loop(%two, %go, %f) {body = ^body(%i: int64[], %g: bool[], %c: float32[3]) {\n\t\t%k = Identity(%g)\n\t\t%d: float32[3] = Neg(%c)\n"
		"\t\tret %k, %d\n\t}}", "\t%two = const int64[] {2}\n\t%go = const bool[] {1}\n\t%n: int64[1,3] = NonZero(%l)\n\t%m: float32[1,3] = Cast(%n) {to = 1}\n"
		"\t%ax = const int64[1] {0}\n\t%f: float32[3] = Squeeze(%m, %ax)\n", 3, {1, 1, 1}, {1, 0, 1}},
	{"[3] = If(%yes) {then_branch = ^t() {\n\t\t%a: float32[3] = Neg(%f)\n\t\tret %a\n\t}, else_branch = ^e() {\n\t\tret %f\n\t}}",
		"\t%q = ReduceMax(%l) {keepdims = 0}\n\t%yes = Cast(%q) {to = 9}\n\t%n: int64[1,3] = NonZero(%l)\n\t%m: float32[1,3] = Cast(%n) {to = 1}\n"
		"\t%ax = const int64[1] {0}\n\t%f: float32[3] = Squeeze(%m, %ax)\n", 3, {1, 1, 1}, {1, 0, 1}},
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
			if (good != OM_OK || (bad == OM_OK) == c->is_closed)
				printf("%s: %s, %s (%s)\n", c->op, om_status_text(good), om_status_text(bad), om_message(t.s));
			CU_ASSERT_EQUAL(good, OM_OK);
			CU_ASSERT(c->is_closed ? bad == OM_RUN || bad == OM_SHAPE || bad == OM_INVALID : bad == OM_OK);
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
	char text[2048], elements[128] = "";

	for (int k = 0; k < (int)c->n; k++)
		sprintf(elements + strlen(elements), "%s%d", k ? "," : "", (int)list[k]);
	snprintf(text, sizeof text, "program \"t\" ir 8 opset 18\n^g() {\n\t%%x = const float32[2,3] {1,2,3,4,5,6}\n"
		"\t%%from = const int64[] {0}\n\t%%to = const int64[] {%d}\n\t%%by = const int64[] {1}\n"
		"\t%%long = Range(%%from, %%to, %%by)\n\t%%zero = ReduceMin(%%long) {keepdims = 0}\n"
		"\t%%list = const int64[%d] {%s}\n\t%%l = Add(%%list, %%zero)\n"
		"%s\t%%y: float32%s\n\t%%z = Neg(%%y)\n\tret %%z\n}\n", size, (int)c->n, elements, c->ends, c->op);
	om_status st = plan(&t, text);
	if (st == OM_OK)
		st = bench_exec(&t, &ways[PLANNED]);
	if (st == OM_OK)
		st = om_exec_run(t.e);
	bench_close(&t);
	return st;
}

/* 2 elements are computed by shape inference, 2000 by the pass `fold`, which infers shapes again, and 20000 by the executor: a
 * wrong declaration is of no consequence. */
static void
computed_constants_do_not_decide_against_declared_shapes(void)
{
	for (size_t k = 0; k < sizeof steered / sizeof steered[0]; k++) {
		const om_status inferred = run_folded(&steered[k], 2, steered[k].bad);
		for (int size = 2000; size <= 20000; size *= 10) {
			const om_status good = run_folded(&steered[k], size, steered[k].good);
			const om_status bad = run_folded(&steered[k], size, steered[k].bad);
			if (good != OM_OK || bad != inferred)
				printf("%s, %d: %s, %s, not %s\n", steered[k].op, size, om_status_text(good), om_status_text(bad), om_status_text(inferred));
			CU_ASSERT_EQUAL(good, OM_OK);
			CU_ASSERT_EQUAL(bad, inferred);
		}
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
		{17, "\t%y = Transpose(%x) {perm = [-1, 0]}\n", "perm is not a permutation of the axes"},
		{17, "\t%s = const float32[8] {1,1,1,1,1,1,1,1}\n\t%y, %z = org.onnxmem.grad::BatchNormalizationGrad(%x, %x, %s) "
			"{training_mode = 1, wrt = [1, 1], x_shape = [2, 8]}\n", "wrt has an entry twice"},
		{17, "\t%y = Transpose(%x) {perm = [0, 4294967297]}\n", "perm is not a permutation of the axes"},
	};

	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		bench t;
		char text[512];
		snprintf(text, sizeof text, "program \"t\" ir 8 opset %d opset org.onnxmem.grad 1\n^g(%%x: float32[2,8]) {\n%s\tret %%y\n}\n", bad[k].opset,
			bad[k].body);
		const om_status st = plan(&t, text);
		if (st == OM_OK)
			printf("%s is planned\n", bad[k].body);
		CU_ASSERT(st != OM_OK);
		CU_ASSERT(is_said(&t, bad[k].say));
		bench_close(&t);
	}
}

/* The bias of an attention is for all keys, those of the cache among them: here it has those of the input alone. */
static void
scores_bound_what_is_read(void)
{
	bench t;
	om_exec *e = NULL;

	const om_status planned = plan(&t, "program \"t\" ir 8 opset 17 opset com.microsoft 1\n"
		"^g(%x: float32[1,2,8], %w: float32[8,24], %b: float32[24], %past: float32[2,1,2,3,4], %bias: float32[1,2,2,2]) {\n"
		"	%y, %present = com.microsoft::Attention(%x, %w, %b, _, %past, %bias) {num_heads = 2}\n"
		"	ret %y, %present\n"
		"}\n");
	const om_status st = planned ? planned : om_exec_new(t.s, t.p, t.p->plan, NULL, &e);
	CU_ASSERT_EQUAL(st, OM_SHAPE);
	CU_ASSERT(is_said(&t, "attention_bias cannot be broadcast"));
	om_exec_free(e);
	bench_close(&t);
}

/* NaN, infinities and numbers out of range become integers in the same way on every processor. */
static void
floats_saturate_as_integers(void)
{
	static const double from[] = {NAN, INFINITY, -INFINITY, 1e19, -1e19, 0x1p63, -0x1p63, 2147483647.5, -2147483648.5, -1.5, 300};
	enum { N = sizeof from / sizeof from[0] };
	static const int64_t i64[N] = {0, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, 2147483647, -2147483648, -1, 300};
	static const uint64_t u64[N] = {0, UINT64_MAX, 0, UINT64_C(10000000000000000000), 0, UINT64_C(1) << 63, 0, 2147483647, 0, 0, 300};
	static const int32_t i32[N] = {0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, -1, 300};
	static const int8_t i8[N] = {0, INT8_MAX, INT8_MIN, INT8_MAX, INT8_MIN, INT8_MAX, INT8_MIN, INT8_MAX, INT8_MIN, -1, INT8_MAX};
	static const uint8_t u8[N] = {0, 255, 0, 255, 0, 255, 0, 255, 0, 0, 255};
	static const struct { om_dtype type; const void *want; size_t size; } to[] = {
		{OM_INT64, i64, sizeof i64}, {OM_UINT64, u64, sizeof u64}, {OM_INT32, i32, sizeof i32}, {OM_INT8, i8, sizeof i8},
		{OM_UINT8, u8, sizeof u8},
	};

	for (size_t k = 0; k < sizeof to / sizeof to[0]; k++) {
		uint64_t got[N];
		om_convert(to[k].type, got, OM_FLOAT64, from, N, true);
		CU_ASSERT_EQUAL(memcmp(got, to[k].want, to[k].size), 0);
	}
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
	{"scores bound what is read of a bias", scores_bound_what_is_read},
	{"floats saturate as integers", floats_saturate_as_integers},
	{"bodies without kernels are refused", bodies_without_kernels_are_refused},
	{"references outside of functions are refused", references_outside_functions_are_refused},
	CU_TEST_INFO_NULL
};
UNIT_SUITE("hostile", hostile_tests);
