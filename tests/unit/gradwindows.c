/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of windows, norms, samples and transforms, against central differences. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "onnxmem/autodiff.h"
#include "tests/fixtures.h"
#include "unit.h"
#include "base/arena_internal.h"

struct trial {
	int opset;
	const char *in, *ops;        /* ops end in %y, which the loss is made of */
};

/* The loss is no multiple of the output, so that errors in it do not cancel. */
static void
check_all(const struct trial *t, size_t n)
{
	char text[4096];

	for (size_t k = 0; k < n; k++) {
		snprintf(text, sizeof text, "program \"t\" ir 8 opset %d\n^main(%s) {\n%s"
			"	%%y2 = Mul(%%y, %%y)\n	%%y3 = Mul(%%y2, %%y)\n	%%y4 = Add(%%y3, %%y)\n"
			"	%%loss = ReduceSum(%%y4) {keepdims = 0}\n	ret %%loss\n}\n",
			t[k].opset, t[k].in, t[k].ops);
		const unsigned before = CU_get_number_of_failures();
		unit_grad_check(text, 2);
		unit_grad_check(text, 1);
		if (CU_get_number_of_failures() > before)
			printf("# in:\n%s", text);
	}
}

#define CHECK_ALL(t) check_all(t, sizeof t / sizeof t[0])

static void
of_conv(void)
{
	static const struct trial all[] = {
		{17, "%x: float64[N,2,5,5], %w: float64[3,2,3,3], %b: float64[3]", "	%y = Conv(%x, %w, %b)\n"},
		{17, "%x: float64[2,2,7,6], %w: float64[3,2,3,2], %b: float64[3]",
			"	%y = Conv(%x, %w, %b) {strides = [3,2], pads = [1,0,2,1]}\n"},
		{17, "%x: float64[N,2,8,7], %w: float64[4,2,3,3]",
			"	%y = Conv(%x, %w) {strides = [2,3], dilations = [2,1], pads = [2,1,0,3]}\n"},
		{17, "%x: float64[N,4,6], %w: float64[6,2,3]", "	%y = Conv(%x, %w) {group = 2, strides = [2]}\n"},
		{17, "%x: float64[2,4,6], %w: float64[6,2,3]", "	%y = Conv(%x, %w) {group = 2, pads = [1,2]}\n"},
		{17, "%x: float64[N,3,5,5], %w: float64[6,1,3,3], %b: float64[6]",
			"	%y = Conv(%x, %w, %b) {group = 3, strides = [2,2], pads = [1,1,1,1]}\n"},
		{17, "%x: float64[2,3,5,5], %w: float64[6,1,3,3], %b: float64[6]",
			"	%y = Conv(%x, %w, %b) {group = 3, strides = [2,2], pads = [1,1,1,1]}\n"},
		{17, "%x: float64[1,3,5,4], %w: float64[3,1,2,2]", "	%y = Conv(%x, %w) {group = 3}\n"},
		{17, "%x: float64[N,2,3,4,3], %w: float64[2,2,2,2,2]",
			"	%y = Conv(%x, %w) {strides = [1,2,1], pads = [0,1,0,1,0,0]}\n"},
		{17, "%x: float64[N,2,5,4], %w: float64[2,2,3,3]", "	%y = Conv(%x, %w) {auto_pad = \"SAME_UPPER\", strides = [2,2]}\n"},
		{17, "%x: float64[N,2,5,4], %w: float64[2,2,2,2]", "	%y = Conv(%x, %w) {auto_pad = \"SAME_LOWER\"}\n"},
		{17, "%x: float64[N,2,9], %w: float64[2,2,2]", "	%y = Conv(%x, %w) {auto_pad = \"VALID\", strides = [4]}\n"},
		{17, "%x: float64[N,3,3,3], %w: float64[2,3,1,1]", "	%y = Conv(%x, %w)\n"},
		{17, "%x: float64[N,6,2], %w: float64[5,6,1]", "	%y = Conv(%x, %w)\n"},
		{17, "%x: float64[N,3,5,5], %w: float64[2,3,1,1]", "	%y = Conv(%x, %w) {strides = [3,2]}\n"},
		{17, "%x: float64[N,2,6,6], %w: float64[2,2,2,2]", "	%y = Conv(%x, %w) {pads = [-1,0,-2,1]}\n"},
		{17, "%x: float64[N,1,10], %w: float64[1,1,2]", "	%y = Conv(%x, %w) {dilations = [3], strides = [5]}\n"},
	};

	CHECK_ALL(all);
}

static void
of_conv_transpose(void)
{
	static const struct trial all[] = {
		{17, "%x: float64[N,3,3,3], %w: float64[3,2,3,3], %b: float64[2]", "	%y = ConvTranspose(%x, %w, %b)\n"},
		{17, "%x: float64[N,3,3,2], %w: float64[3,2,3,3]",
			"	%y = ConvTranspose(%x, %w) {strides = [2,3], pads = [1,0,0,2], output_padding = [1,2]}\n"},
		{17, "%x: float64[N,4,4], %w: float64[4,3,3], %b: float64[6]",
			"	%y = ConvTranspose(%x, %w, %b) {group = 2, dilations = [2], strides = [2]}\n"},
		{17, "%x: float64[2,3,4], %w: float64[3,1,3]", "	%y = ConvTranspose(%x, %w) {group = 3, strides = [2]}\n"},
		{17, "%x: float64[N,3,4], %w: float64[3,2,3]", "	%y = ConvTranspose(%x, %w) {dilations = [3], output_padding = [2]}\n"},
		{17, "%x: float64[N,2,3,3], %w: float64[2,2,3,3]",
			"	%y = ConvTranspose(%x, %w) {output_shape = [6,5], strides = [2,2]}\n"},
		{17, "%x: float64[N,2,3,3], %w: float64[2,2,3,3]",
			"	%y = ConvTranspose(%x, %w) {auto_pad = \"SAME_UPPER\", strides = [2,2]}\n"},
		{17, "%x: float64[N,2,2,2,3], %w: float64[2,1,2,2,2]", "	%y = ConvTranspose(%x, %w) {strides = [1,2,1]}\n"},
		{17, "%x: float64[N,2,4], %w: float64[2,3,1]", "	%y = ConvTranspose(%x, %w)\n"},
	};

	CHECK_ALL(all);
}

static void
of_pools(void)
{
	static const struct trial all[] = {
		{17, "%x: float64[N,2,6,6]", "	%y = MaxPool(%x) {kernel_shape = [2,2], strides = [2,2]}\n"},
		{17, "%x: float64[N,2,7,5]", "	%y = MaxPool(%x) {kernel_shape = [3,3], strides = [2,1], pads = [1,1,1,0]}\n"},
		{17, "%x: float64[N,2,7,6]", "	%y, %i = MaxPool(%x) {kernel_shape = [2,3], strides = [3,2], ceil_mode = 1, storage_order = 1}\n"},
		{17, "%x: float64[N,2,9]", "	%y = MaxPool(%x) {kernel_shape = [3], dilations = [2], storage_order = 1}\n"},
		{17, "%x: float64[N,2,4,3,4]", "	%y = MaxPool(%x) {kernel_shape = [2,2,2], storage_order = 1}\n"},
		{17, "%x: float64[N,2,5,4]", "	%y = MaxPool(%x) {kernel_shape = [3,2], auto_pad = \"SAME_LOWER\"}\n"},
		{17, "%x: float64[N,2,6,6]", "	%y = AveragePool(%x) {kernel_shape = [2,3], strides = [2,3]}\n"},
		{17, "%x: float64[N,2,7,5]", "	%y = AveragePool(%x) {kernel_shape = [3,3], strides = [2,1], pads = [1,1,1,0]}\n"},
		{17, "%x: float64[N,2,7,5]",
			"	%y = AveragePool(%x) {kernel_shape = [3,3], strides = [2,1], pads = [1,1,1,0], count_include_pad = 1}\n"},
		{17, "%x: float64[N,2,8,7]",
			"	%y = AveragePool(%x) {kernel_shape = [3,3], strides = [3,2], pads = [1,1,1,1], ceil_mode = 1, count_include_pad = 1}\n"},
		{17, "%x: float64[N,2,6]", "	%y = AveragePool(%x) {kernel_shape = [3], strides = [2], ceil_mode = 1}\n"},
		{19, "%x: float64[N,2,9]", "	%y = AveragePool(%x) {kernel_shape = [3], dilations = [3], auto_pad = \"SAME_UPPER\"}\n"},
		{17, "%x: float64[N,2,3,4,3]", "	%y = AveragePool(%x) {kernel_shape = [2,2,2]}\n"},
		{17, "%x: float64[N,2,5,6]", "	%y = LpPool(%x) {kernel_shape = [2,3], strides = [1,2], pads = [0,1,1,0]}\n"},
		{18, "%x: float64[N,2,5,6]", "	%y = LpPool(%x) {kernel_shape = [2,3], p = 3, strides = [2,2], ceil_mode = 1}\n"},
		{17, "%x: float64[N,2,6]", "	%y = LpPool(%x) {kernel_shape = [3], p = 1}\n"},
		{17, "%x: float64[N,2,3,4]", "	%y = GlobalAveragePool(%x)\n"},
		{17, "%x: float64[N,2,H,4]", "	%y = GlobalAveragePool(%x)\n"},
		{17, "%x: float64[N,2,3,4]", "	%y = GlobalMaxPool(%x)\n"},
		{17, "%x: float64[N,2,3,H]", "	%y = GlobalMaxPool(%x)\n"},
		{17, "%x: float64[N,2,3,4]", "	%y = GlobalLpPool(%x)\n"},
		{17, "%x: float64[N,2,3,4]", "	%y = GlobalLpPool(%x) {p = 3}\n"},
		{17, "%x: float64[1,1,2,2]", "	%i = const int64[1,1,2,2] {5,7,13,15}\n"
			"	%y = MaxUnpool(%x, %i) {kernel_shape = [2,2], strides = [2,2]}\n"},
		{17, "%x: float64[1,1,2,2]", "	%i = const int64[1,1,2,2] {5,7,13,15}\n	%s = const int64[4] {1,1,5,6}\n"
			"	%y = MaxUnpool(%x, %i, %s) {kernel_shape = [2,2], strides = [2,2]}\n"},
	};

	CHECK_ALL(all);
}

#define BATCH "%x: float64[N,3,2,2], %s: float64[3], %b: float64[3], %m: float64[3]"

static void
of_norms(void)
{
	static const struct trial all[] = {
		{17, BATCH ", %v: float64[3]",
			"	%v2 = Mul(%v, %v)\n	%y = BatchNormalization(%x, %s, %b, %m, %v2) {epsilon = 0.1}\n"},
		{17, "%x: float64[3,3,2,2], %s: float64[3], %b: float64[3], %m: float64[3], %v: float64[3]",
			"	%y, %p, %q = BatchNormalization(%x, %s, %b, %m, %v) {training_mode = 1, epsilon = 0.01}\n"},
		{17, "%x: float64[5,3], %s: float64[3], %b: float64[3], %m: float64[3], %v: float64[3]",
			"	%z, %p, %q = BatchNormalization(%x, %s, %b, %m, %v) {training_mode = 1, epsilon = 0.01}\n"
			"	%r = Add(%p, %q)\n	%y = Add(%z, %r)\n"},
		{17, BATCH ", %v: float64[3]",
			"	%z, %p, %q = BatchNormalization(%x, %s, %b, %m, %v) {training_mode = 1, epsilon = 0.01, momentum = 0.3}\n"
			"	%r = Mul(%p, %q)\n	%y = Add(%r, %q)\n"},
		{17, "%x: float64[N,2,5], %s: float64[5], %b: float64[5]", "	%y = LayerNormalization(%x, %s, %b) {epsilon = 0.01}\n"},
		{17, "%x: float64[N,4,3], %s: float64[1,3], %b: float64[4,1]",
			"	%y = LayerNormalization(%x, %s, %b) {axis = 1, epsilon = 0.01}\n"},
		{17, "%x: float64[N,4,3], %s: float64[4,3]", "	%y = LayerNormalization(%x, %s) {axis = -2, epsilon = 0.01}\n"},
		{23, "%x: float64[N,4,3], %s: float64[3]", "	%y = RMSNormalization(%x, %s) {epsilon = 0.01}\n"},
		{23, "%x: float64[N,4,3], %s: float64[4,1]", "	%y = RMSNormalization(%x, %s) {axis = 1, epsilon = 0.01}\n"},
		{18, "%x: float64[N,4,3,2], %s: float64[2], %b: float64[2]",
			"	%y = GroupNormalization(%x, %s, %b) {num_groups = 2, epsilon = 0.01}\n"},
		{21, "%x: float64[N,4,3], %s: float64[4], %b: float64[4]",
			"	%y = GroupNormalization(%x, %s, %b) {num_groups = 2, epsilon = 0.01}\n"},
		{17, "%x: float64[N,3,4,2], %s: float64[3], %b: float64[3]",
			"	%y = InstanceNormalization(%x, %s, %b) {epsilon = 0.01}\n"},
		{17, "%x: float64[3,3,4], %s: float64[3], %b: float64[3]", "	%y = InstanceNormalization(%x, %s, %b) {epsilon = 0.01}\n"},
		{17, "%x: float64[3,2,2,2]", "	%y = MeanVarianceNormalization(%x)\n"},
		{17, "%x: float64[N,4,3]", "	%y = MeanVarianceNormalization(%x) {axes = [-1,1]}\n"},
		{17, "%x: float64[N,4,3]", "	%y = LpNormalization(%x) {axis = 1}\n"},
		{17, "%x: float64[N,4,3]", "	%y = LpNormalization(%x) {p = 1}\n"},
		{17, "%x: float64[N,5,2,2]", "	%y = LRN(%x) {size = 3, alpha = 0.5, bias = 0.7}\n"},
		{17, "%x: float64[N,6,3]", "	%y = LRN(%x) {size = 4, alpha = 0.9, beta = 0.4}\n"},
	};

	CHECK_ALL(all);
}

static void
of_samples(void)
{
	static const struct trial all[] = {
		{17, "%x: float64[N,2,3,4]", "	%s = const float32[4] {1,1,2,3}\n	%y = Resize(%x, _, %s)\n"},
		{17, "%x: float64[N,2,3,W]", "	%s = const float32[4] {1,1,2,1}\n	%y = Resize(%x, _, %s)\n"},
		{17, "%x: float64[N,2,5,4]", "	%s = const float32[4] {1,1,0.6,1.7}\n	%y = Resize(%x, _, %s)\n"},
		{17, "%x: float64[N,2,3,4]", "	%s = const float32[4] {1,1,2,2}\n	%y = Resize(%x, _, %s) {mode = \"linear\"}\n"},
		{17, "%x: float64[2,3,3,4]", "	%s = const int64[4] {2,5,7,2}\n"
			"	%y = Resize(%x, _, _, %s) {mode = \"linear\", coordinate_transformation_mode = \"align_corners\"}\n"},
		{17, "%x: float64[N,1,5,4]", "	%s = const float32[4] {1,1,1.5,0.5}\n"
			"	%y = Resize(%x, _, %s) {mode = \"cubic\", coordinate_transformation_mode = \"asymmetric\", exclude_outside = 1}\n"},
		{18, "%x: float64[N,2,5,6]", "	%s = const int64[2] {3,4}\n"
			"	%y = Resize(%x, _, _, %s) {mode = \"linear\", antialias = 1, axes = [2,3]}\n"},
		{18, "%x: float64[N,2,4,6]", "	%s = const int64[2] {7,7}\n"
			"	%y = Resize(%x, _, _, %s) {mode = \"linear\", axes = [3,2], keep_aspect_ratio_policy = \"not_larger\"}\n"},
		{17, "%x: float64[1,1,4,4]", "	%r = const float32[8] {0,0,0.3,-0.2,1,1,0.8,1.4}\n	%s = const int64[4] {1,1,3,5}\n"
			"	%y = Resize(%x, %r, _, %s) {mode = \"linear\", coordinate_transformation_mode = \"tf_crop_and_resize\", extrapolation_value = 0.5}\n"},
		{20, "%t: float64[2,2,3]", "	%s = const int64[4] {2,1,3,4}\n	%y = AffineGrid(%t, %s)\n"},
		{20, "%t: float64[2,3,4]", "	%s = const int64[5] {2,1,2,3,2}\n	%y = AffineGrid(%t, %s) {align_corners = 1}\n"},
		{16, "%x: float64[2,2,5,6]", "	%r = const float64[3,4] {0.5,0.2,4.1,3.9,-1,1,2.5,6,1,1,3,2}\n	%i = const int64[3] {1,0,1}\n"
			"	%y = RoiAlign(%x, %r, %i) {output_height = 2, output_width = 3, sampling_ratio = 2}\n"},
		{16, "%x: float64[2,2,5,6]", "	%r = const float64[2,4] {0.5,0.2,8.1,7.9,-1,1,2.5,6}\n	%i = const int64[2] {1,0}\n"
			"	%y = RoiAlign(%x, %r, %i) {output_height = 2, output_width = 2, spatial_scale = 0.5, coordinate_transformation_mode = \"output_half_pixel\"}\n"},
	};

	CHECK_ALL(all);
}

static void
of_places(void)
{
	static const char in[] = "%x: float64[2,2,4,5], %p: float64[2,3,2,2]";
	static const char *const modes[] = {"linear", "cubic"};
	static const char *const pads[] = {"zeros", "border", "reflection"};
	char ops[512];

	for (int k = 0; k < 12; k++) {
		snprintf(ops, sizeof ops, "	%%k = const float64[] {1.3}\n	%%q = Mul(%%p, %%k)\n"
			"	%%y = GridSample(%%x, %%q) {mode = \"%s\", padding_mode = \"%s\", align_corners = %d}\n",
			modes[k % 2], pads[k / 2 % 3], k / 6);
		check_all(&(struct trial){20, in, ops}, 1);
	}
	check_all(&(struct trial){20, "%x: float64[2,2,2,3,2], %p: float64[2,2,1,2,3]", "	%y = GridSample(%x, %p)\n"}, 1);
	check_all(&(struct trial){20, "%x: float64[2,2,4]", "	%p = const float64[2,3,1] {0.1,-0.7,0.4,0.9,-1.2,0.3}\n"
		"	%y = GridSample(%x, %p) {mode = \"nearest\"}\n"}, 1);
}

static void
of_transforms(void)
{
	static const struct trial all[] = {
		{18, "%x: float64[2,12,6]", "	%i = const int64[2] {4,5}\n	%k = const int64[2] {2,3}\n"
			"	%y = Col2Im(%x, %i, %k) {strides = [2,1], pads = [0,0,0,0]}\n"},
		{18, "%x: float64[1,4,9]", "	%i = const int64[2] {3,3}\n	%k = const int64[2] {2,2}\n"
			"	%y = Col2Im(%x, %i, %k) {dilations = [2,2], pads = [1,1,1,1]}\n"},
		{17, "%x: float64[N,5,2]", "	%y = DFT(%x) {axis = 1}\n"},
		{17, "%x: float64[2,5,1]", "	%n = const int64[] {7}\n	%y = DFT(%x, %n) {axis = 1}\n"},
		{20, "%x: float64[2,6,1]", "	%y = DFT(%x) {onesided = 1}\n"},
		{20, "%x: float64[2,4,3,2]", "	%n = const int64[] {3}\n	%a = const int64[] {1}\n	%y = DFT(%x, %n, %a) {inverse = 1}\n"},
		{20, "%x: float64[2,4,2]", "	%y = DFT(%x) {inverse = 1, onesided = 1}\n"},
		{20, "%x: float64[2,4,2]", "	%n = const int64[] {5}\n	%y = DFT(%x, %n) {inverse = 1, onesided = 1}\n"},
		{17, "%x: float64[N,3,3]", "	%y = Det(%x)\n"},
		{17, "%x: float64[4,4]", "	%y = Det(%x)\n"},
		{17, "%x: float64[N,2,1,1]", "	%y = Det(%x)\n"},
	};

	CHECK_ALL(all);
}

/* The gradient of the sum of all outputs by the only input, whose elements are zero. */
static om_status
gradient(bench *t)
{
	om_block *g = t->p->first;
	om_value *grad = NULL;

	om_backward b = OM_BACKWARD(.loss = g->result[0], .wrt = g->param, .nwrt = 1, .grad = &grad);
	OM_TRY(om_prog_backward(t->s, t->p, &b));
	om_block_add_result(g, grad);
	OM_TRY(om_host_run(t->h, t->p, "shapes,fold"));
	OM_TRY(bench_exec(t, &ways[SEPARATE]));
	const om_tensor zero = tensor_zero(t->mem, OM_FLOAT64, &g->param[0]->shape);
	return bench_run(t, &zero, 1);
}

/* The middle one of three windows has its taps on both sides of the only element, and took none:
 * its index, -1, is not that of the last element. */
static void
of_windows_that_see_nothing(void)
{
	bench t;

	unit_start(&t, "program \"t\" ir 8 opset 17\n"
		"^main(%x: float64[1,2,1]) {\n"
		"	%y = MaxPool(%x) {kernel_shape = [2], dilations = [2], pads = [2,2]}\n"
		"	%l = ReduceSum(%y) {keepdims = 0}\n"
		"	ret %l\n"
		"}\n", "inline,shapes");
	CU_ASSERT_FATAL(is_ok(t.s, gradient(&t)));
	CU_ASSERT_EQUAL(element_at(om_exec_result(t.e, 1), 0), 2);
	CU_ASSERT_EQUAL(element_at(om_exec_result(t.e, 1), 1), 2);
	bench_close(&t);
}

static CU_TestInfo gradwindows_tests[] = {
	{"of Conv", of_conv},
	{"of ConvTranspose", of_conv_transpose},
	{"of pools", of_pools},
	{"of windows that see nothing", of_windows_that_see_nothing},
	{"of norms", of_norms},
	{"of samples", of_samples},
	{"of places", of_places},
	{"of transforms", of_transforms},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("gradients of windows", gradwindows_tests);
