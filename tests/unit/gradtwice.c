/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of gradients: rules build standard operators, which have rules themselves. */
#include <config.h>

#include <stdio.h>

#include "unit.h"

static void
check(const char *inputs, const char *ops, uint64_t n)
{
	char all[2048];

	const int size = snprintf(all, sizeof all, "program \"t\" ir 8 opset 18\n^main(%s) {\n%s"
		"	%%ll = ReduceMean(%%z) {keepdims = 0}\n	ret %%ll\n}\n", inputs, ops);
	CU_ASSERT_FATAL(size > 0 && size < (int)sizeof all);
	unit_grad_check_twice(all, n);
}

static void
of_a_perceptron(void)
{
	const char *inputs = "%x: float64[N,3], %w: float64[3,4], %b: float64[4], %v: float64[4,2]";
	const char *ops =
		"	%a = MatMul(%x, %w)\n"
		"	%c = Add(%a, %b)\n"
		"	%h = Tanh(%c)\n"
		"	%o = MatMul(%h, %v)\n"
		"	%s = Softmax(%o) {axis = 1}\n"
		"	%z = Mul(%s, %o)\n";

	check(inputs, ops, 3);
	check(inputs, ops, 1);
	check("%x: float64[2,3], %w: float64[4,3], %b: float64[4]",
		"	%a = Gemm(%x, %w, %b) {transB = 1, alpha = 0.5}\n"
		"	%s = Sigmoid(%a)\n"
		"	%y = LogSoftmax(%s) {axis = -1}\n"
		"	%z = Mul(%y, %s)\n", 1);
}

static void
of_elements(void)
{
	static const char *const one[] = {"Tanh", "Sigmoid", "Exp", "Sin", "Cos", "Softplus", "Softsign", "Erf", "Elu",
		"Mish", "HardSwish", "Atan", "Sinh", "Relu", "LeakyRelu", "Selu", "Celu", "Abs", "Neg"};
	static const char *const positive[] = {"Sqrt", "Log", "Reciprocal"};
	char ops[512];

	for (size_t k = 0; k < sizeof one / sizeof one[0]; k++) {
		snprintf(ops, sizeof ops, "	%%y = %s(%%x)\n	%%q = Mul(%%y, %%x)\n	%%z = Mul(%%q, %%y)\n", one[k]);
		printf("# %s\n", one[k]);
		check("%x: float64[5]", ops, 1);
	}
	for (size_t k = 0; k < sizeof positive / sizeof positive[0]; k++) {
		snprintf(ops, sizeof ops, "	%%e = Exp(%%x)\n	%%y = %s(%%e)\n	%%z = Mul(%%y, %%x)\n", positive[k]);
		printf("# %s\n", positive[k]);
		check("%x: float64[5]", ops, 1);
	}
	check("%x: float64[2,3], %y: float64[3]",
		"	%e = Exp(%x)\n"
		"	%p = Pow(%e, %y)\n"
		"	%q = Div(%p, %e)\n"
		"	%s = Sub(%q, %y)\n"
		"	%m = Max(%s, %x)\n"
		"	%z = Mul(%m, %x)\n", 1);
}

static void
of_sums(void)
{
	static const char *const type[] = {"ReduceMean", "ReduceSum", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare",
		"ReduceMax", "ReduceProd", "ReduceLogSum", "ReduceL1"};
	char ops[512];

	for (size_t k = 0; k < sizeof type / sizeof type[0]; k++) {
		snprintf(ops, sizeof ops, "	%%n = const int64[1] {1}\n	%%e = Exp(%%x)\n	%%y = %s(%%e, %%n)\n	%%z = Mul(%%y, %%x)\n", type[k]);
		printf("# %s\n", type[k]);
		check("%x: float64[2,3]", ops, 1);
	}
	check("%x: float64[3,2]", "	%a = const int64[] {0}\n	%c = CumSum(%x, %a)\n	%z = Mul(%c, %c)\n", 1);
	check("%x: float64[2,3], %y: float64[3,2]", "	%c = Einsum(%x, %y) {equation = \"ij,jk->ik\"}\n	%z = Mul(%c, %c)\n", 1);
}

static void
of_a_convolution(void)
{
	check("%x: float64[1,2,5,5], %w: float64[2,2,3,3], %b: float64[2]",
		"	%c = Conv(%x, %w, %b) {pads = [1,0,1,1], strides = [2,1]}\n"
		"	%t = Tanh(%c)\n"
		"	%z = Mul(%t, %c)\n", 1);
	check("%x: float64[2,2,4], %w: float64[4,1,2]",
		"	%c = Conv(%x, %w) {group = 2, dilations = [2]}\n"
		"	%z = Mul(%c, %c)\n", 1);
	check("%x: float64[1,4,3,3], %w: float64[2,2,3,3]",
		"	%c = Conv(%x, %w) {group = 2, auto_pad = \"SAME_UPPER\"}\n"
		"	%s, %u = Split(%c) {axis = 1, num_outputs = 2}\n"
		"	%z = Mul(%s, %u)\n", 1);
}

static void
of_transposed_convolution(void)
{
	check("%x: float64[1,2,3], %w: float64[2,2,2]",
		"	%c = ConvTranspose(%x, %w) {strides = [2]}\n"
		"	%z = Mul(%c, %c)\n", 1);
}

static void
of_pools(void)
{
	check("%x: float64[1,2,4,4]",
		"	%t = Mul(%x, %x)\n"
		"	%a = AveragePool(%t) {kernel_shape = [2,2], strides = [2,2]}\n"
		"	%m = MaxPool(%t) {kernel_shape = [2,2], strides = [2,2]}\n"
		"	%g = GlobalAveragePool(%t)\n"
		"	%y = Mul(%a, %m)\n"
		"	%z = Mul(%y, %g)\n", 1);
}

static void
of_norms(void)
{
	check("%x: float64[2,4], %s: float64[4], %b: float64[4]",
		"	%y = LayerNormalization(%x, %s, %b) {axis = -1, stash_type = 11}\n"
		"	%z = Mul(%y, %y)\n", 1);
	check("%x: float64[3,2,2], %s: float64[2], %b: float64[2], %m: float64[2], %q: float64[2]",
		"	%v = Exp(%q)\n"
		"	%y, %n, %o = BatchNormalization(%x, %s, %b, %m, %v) {training_mode = 1}\n"
		"	%z = Mul(%y, %x)\n", 1);
	check("%x: float64[2,2,3], %s: float64[2], %b: float64[2]",
		"	%y = InstanceNormalization(%x, %s, %b)\n"
		"	%z = Mul(%y, %x)\n", 1);
}

static void
of_moves(void)
{
	check("%x: float64[2,3,4]",
		"	%i = const int64[2] {2, 0}\n"
		"	%g = Gather(%x, %i) {axis = 1}\n"
		"	%t = Transpose(%g) {perm = [2,0,1]}\n"
		"	%s = const int64[2] {4, -1}\n"
		"	%r = Reshape(%t, %s)\n"
		"	%p = const int64[4] {1, 0, 0, 2}\n"
		"	%d = Pad(%r, %p)\n"
		"	%c = Concat(%d, %d) {axis = 0}\n"
		"	%q = Mul(%c, %c)\n"
		"	%z = Mul(%q, %c)\n", 1);
	check("%x: float64[3,4]",
		"	%a = const int64[1] {1}\n"
		"	%e = const int64[1] {3}\n"
		"	%o = Slice(%x, %a, %e, %a)\n"
		"	%k = const int64[1] {1}\n"
		"	%v, %i = TopK(%o, %k)\n"
		"	%m = Mul(%v, %o)\n"
		"	%n = const bool[3,1] {1, 0, 1}\n"
		"	%w = Where(%n, %m, %o)\n"
		"	%z = Mul(%w, %o)\n", 1);
}

static void
of_losses(void)
{
	unit_grad_check_twice("program \"t\" ir 8 opset 18\n"
		"^main(%x: float64[3,4], %w: float64[4,5]) {\n"
		"	%t = Tanh(%x)\n"
		"	%y = MatMul(%t, %w)\n"
		"	%c = const int64[3] {1, 4, 0}\n"
		"	%ll = SoftmaxCrossEntropyLoss(%y, %c)\n"
		"	ret %ll\n"
		"}\n", 1);
}

static void
of_attention(void)
{
	unit_grad_check_twice("program \"t\" ir 10 opset 23\n"
		"^main(%q: float64[1,1,2,3], %k: float64[1,1,2,3], %v: float64[1,1,2,2]) {\n"
		"	%y = Attention(%q, %k, %v)\n"
		"	%z = Mul(%y, %y)\n"
		"	%ll = ReduceSum(%z) {keepdims = 0}\n"
		"	ret %ll\n"
		"}\n", 1);
}

static void
of_bodies(void)
{
	check("%x: float64[3,2], %h: float64[2], %w: float64[2,2]",
		"	%y, %s = Scan(%h, %x) {num_scan_inputs = 1, body = ^b(%g: float64[2], %e: float64[2]) {\n"
		"		%m = MatMul(%g, %w)\n"
		"		%a = Add(%m, %e)\n"
		"		%t = Tanh(%a)\n"
		"		ret %t, %a\n"
		"	}}\n"
		"	%q = Mul(%s, %x)\n"
		"	%z = Mul(%q, %y)\n", 1);
	check("%x: float64[2], %w: float64[2,2]",
		"	%n = const int64[] {3}\n"
		"	%y = Loop(%n, _, %x) {body = ^b(%i: int64[], %c: bool[], %h: float64[2]) {\n"
		"		%m = MatMul(%h, %w)\n"
		"		%t = Sin(%m)\n"
		"		ret %c, %t\n"
		"	}}\n"
		"	%z = Mul(%y, %y)\n", 1);
	check("%x: float64[2], %w: float64[2]",
		"	%s = ReduceSum(%x) {keepdims = 0}\n"
		"	%o = const float64[] {0.0}\n"
		"	%c = Greater(%s, %o)\n"
		"	%y = If(%c) {then_branch = ^t() {\n"
		"		%a = Mul(%x, %w)\n"
		"		%b = Tanh(%a)\n"
		"		ret %b\n"
		"	}, else_branch = ^e() {\n"
		"		%d = Exp(%x)\n"
		"		ret %d\n"
		"	}}\n"
		"	%z = Mul(%y, %y)\n", 1);
}

/* The first gradient reads flat stacks; the second differentiates how they were made. */
static void
of_ragged_tapes(void)
{
	static const char text[] =
		"	%%n = const int64[] {%d}\n"
		"	%%y, %%s = Loop(%%n, _, %%x) {body = ^b(%%i: int64[], %%c: bool[], %%h: float64[2]) {\n"
		"		%%p, %%ps = Loop(%%i, _, %%h) {body = ^a(%%j: int64[], %%d: bool[], %%q: float64[2]) {\n"
		"			%%m = Mul(%%q, %%w)\n"
		"			%%t = Sin(%%m)\n"
		"			ret %%d, %%t, %%q\n"
		"		}}\n"
		"		%%r = ReduceSum(%%ps) {keepdims = 0}\n"
		"		%%u = Mul(%%p, %%x)\n"
		"		%%v = Cos(%%u)\n"
		"		ret %%c, %%v, %%r\n"
		"	}}\n"
		"	%%o = ReduceSum(%%s) {keepdims = 0}\n"
		"	%%a0 = Mul(%%y, %%o)\n"
		"	%%z = Mul(%%a0, %%y)\n";

	for (int n = 0; n < 5; n++) {
		char ops[1024];
		snprintf(ops, sizeof ops, text, n);
		check("%x: float64[2], %w: float64[2]", ops, 1);
	}
}

static CU_TestInfo gradtwice_tests[] = {
	{"of a perceptron", of_a_perceptron},
	{"of elements", of_elements},
	{"of sums", of_sums},
	{"of a convolution", of_a_convolution},
	{"of a transposed convolution", of_transposed_convolution},
	{"of pools", of_pools},
	{"of norms", of_norms},
	{"of moves", of_moves},
	{"of losses", of_losses},
	{"of Attention", of_attention},
	{"of bodies", of_bodies},
	{"of ragged tapes", of_ragged_tapes},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("gradients of gradients", gradtwice_tests);
