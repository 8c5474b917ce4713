/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of org.onnxmem.cpu on channels-last images, beside the operators of ai.onnx on transposed images. */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "unit.h"

/* %x is the image, channels first; %u the same, channels last; %y the result of ai.onnx, %v the other one. */
static const struct layer {
	const char *x, *w, *b;     /* shapes; of x and y the rank is that of x */
	const char *text;
} layers[] = {
	{"2,20,7,9", "20,1,3,3", "20", "%y = Conv(%x, %w, %b) {group = 20, pads = [1,1,1,1], strides = [2,1]}\n"
		"%p = org.onnxmem.cpu::PackDepthwise(%w)\n"
		"%v = org.onnxmem.cpu::DepthwiseConv(%u, %p, %b) {kernel_shape = [3,3], channels = 20, pads = [1,1,1,1], strides = [2,1]}\n"},
	{"1,6,11", "18,1,4", "18", "%y = Conv(%x, %w, %b) {group = 6, pads = [2,1], dilations = [2]}\n"
		"%p = org.onnxmem.cpu::PackDepthwise(%w)\n"
		"%v = org.onnxmem.cpu::DepthwiseConv(%u, %p, %b) {kernel_shape = [4], channels = 18, pads = [2,1], dilations = [2]}\n"},
	{"2,40,4,6,7", "40,1,2,3,5", "40", "%c = Conv(%x, %w, %b) {group = 40, pads = [1,1,2,0,1,2]}\n%y = HardSwish(%c)\n"
		"%p = org.onnxmem.cpu::PackDepthwise(%w)\n"
		"%v = org.onnxmem.cpu::DepthwiseConv(%u, %p, %b) {kernel_shape = [2,3,5], channels = 40, pads = [1,1,2,0,1,2], activation = \"HardSwish\"}\n"},
	/* Products before depthwise convolutions, whose weights are those of the products, too: in one strip, in several strips that share
	 * lines, with a line for each strip, with lines that no window reads. */
	{"2,9,21,40", "40,1,3,3", "40", "%s = const int64[4] {40, 9, 1, 1}\n%e = Reshape(%w, %s)\n%c = Conv(%x, %e, %b)\n%d = HardSwish(%c)\n"
		"%g = Conv(%d, %w, %b) {group = 40, pads = [1,1,1,1]}\n%y = Relu(%g)\n"
		"%f = org.onnxmem.cpu::PackFilter(%e)\n%p = org.onnxmem.cpu::PackDepthwise(%w)\n"
		"%v = org.onnxmem.cpu::ExpandedDepthwiseConv(%u, %f, %p, %b, %b) {kernel_shape = [3,3], channels = 40, pads = [1,1,1,1], "
		"expansion_activation = \"HardSwish\", activation = \"Relu\"}\n"},
	{"1,9,25,60", "128,1,3,3", "128", "%s = const int64[4] {128, 9, 1, 1}\n%e = Reshape(%w, %s)\n%c = Conv(%x, %e)\n%lo = const float32[] {-0.5}\n"
		"%d = Clip(%c, %lo)\n%y = Conv(%d, %w, %b) {group = 128, pads = [1,0,1,1], strides = [2,1]}\n"
		"%f = org.onnxmem.cpu::PackFilter(%e)\n%p = org.onnxmem.cpu::PackDepthwise(%w)\n"
		"%v = org.onnxmem.cpu::ExpandedDepthwiseConv(%u, %f, %p, _, %b) {kernel_shape = [3,3], channels = 128, pads = [1,0,1,1], strides = [2,1], "
		"expansion_activation = \"Clip\", expansion_alpha = -0.5}\n"},
	{"2,25,23,50", "160,1,5,5", "160", "%s = const int64[4] {160, 25, 1, 1}\n%e = Reshape(%w, %s)\n%c = Conv(%x, %e, %b)\n"
		"%g = Conv(%c, %w) {group = 160, pads = [5,4,3,4], dilations = [2,2], strides = [1,2]}\n%y = HardSwish(%g)\n"
		"%f = org.onnxmem.cpu::PackFilter(%e)\n%p = org.onnxmem.cpu::PackDepthwise(%w)\n"
		"%v = org.onnxmem.cpu::ExpandedDepthwiseConv(%u, %f, %p, %b) {kernel_shape = [5,5], channels = 160, pads = [5,4,3,4], dilations = [2,2], "
		"strides = [1,2], activation = \"HardSwish\"}\n"},
	{"1,6,31,70", "192,1,2,3", "192", "%s = const int64[4] {192, 6, 1, 1}\n%e = Reshape(%w, %s)\n%c = Conv(%x, %e, %b)\n%d = Sigmoid(%c)\n"
		"%y = Conv(%d, %w, %b) {group = 192, pads = [1,1,0,0], strides = [7,2]}\n"
		"%f = org.onnxmem.cpu::PackFilter(%e)\n%p = org.onnxmem.cpu::PackDepthwise(%w)\n"
		"%v = org.onnxmem.cpu::ExpandedDepthwiseConv(%u, %f, %p, %b, %b) {kernel_shape = [2,3], channels = 192, pads = [1,1,0,0], strides = [7,2], "
		"expansion_activation = \"Sigmoid\"}\n"},
	{"2,24,8,9", "24,4,3,3", "24", "%c = Conv(%x, %w, %b) {group = 6, pads = [1,1,1,1]}\n%y = Relu(%c)\n"
		"%p = org.onnxmem.cpu::PackGrouped(%w) {group = 6}\n"
		"%v = org.onnxmem.cpu::GroupedConv(%u, %p, %b) {kernel_shape = [3,3], group = 6, channels = 24, pads = [1,1,1,1], activation = \"Relu\"}\n"},
	{"1,33,5,6", "21,11,2,3", "21", "%c = Conv(%x, %w, %b) {group = 3, strides = [1,2]}\n%y = Sigmoid(%c)\n"
		"%p = org.onnxmem.cpu::PackGrouped(%w) {group = 3}\n"
		"%v = org.onnxmem.cpu::GroupedConv(%u, %p, %b) {kernel_shape = [2,3], group = 3, channels = 21, strides = [1,2], activation = \"Sigmoid\"}\n"},
	{"2,6,5,7", "6,5,3,4", "10", "%c = ConvTranspose(%x, %w, %b) {group = 2, strides = [2,3], pads = [1,0,0,2], output_padding = [1,2]}\n%y = Relu(%c)\n"
		"%p = org.onnxmem.cpu::PackTransposed(%w) {group = 2}\n"
		"%v = org.onnxmem.cpu::ConvTranspose(%u, %p, %b) {kernel_shape = [3,4], group = 2, channels = 10, strides = [2,3], pads = [1,0,0,2], output_padding = [1,2], activation = \"Relu\"}\n"},
	{"1,40,9", "40,36,3", "36", "%y = ConvTranspose(%x, %w, %b) {dilations = [2]}\n"
		"%p = org.onnxmem.cpu::PackTransposed(%w)\n"
		"%v = org.onnxmem.cpu::ConvTranspose(%u, %p, %b) {kernel_shape = [3], channels = 36, dilations = [2]}\n"},
	{"2,3,3,4,2", "3,4,2,2,3", "4", "%y = ConvTranspose(%x, %w, %b) {strides = [2,1,2], pads = [1,0,1,0,1,0]}\n"
		"%p = org.onnxmem.cpu::PackTransposed(%w)\n"
		"%v = org.onnxmem.cpu::ConvTranspose(%u, %p, %b) {kernel_shape = [2,2,3], channels = 4, strides = [2,1,2], pads = [1,0,1,0,1,0]}\n"},
	/* In strips: with padding, and with lines that no row reaches. */
	{"2,8,37,40", "8,64,2,3", "64", "%y = ConvTranspose(%x, %w, %b) {strides = [2,3], pads = [1,2,0,1]}\n"
		"%p = org.onnxmem.cpu::PackTransposed(%w)\n"
		"%v = org.onnxmem.cpu::ConvTranspose(%u, %p, %b) {kernel_shape = [2,3], channels = 64, strides = [2,3], pads = [1,2,0,1]}\n"},
	{"1,10,29,50", "10,32,2,2", "64", "%c = ConvTranspose(%x, %w, %b) {group = 2, strides = [4,2], dilations = [2,1], pads = [2,0,1,0], output_padding = [3,1]}\n%y = Relu(%c)\n"
		"%p = org.onnxmem.cpu::PackTransposed(%w) {group = 2}\n"
		"%v = org.onnxmem.cpu::ConvTranspose(%u, %p, %b) {kernel_shape = [2,2], group = 2, channels = 64, strides = [4,2], dilations = [2,1], pads = [2,0,1,0], output_padding = [3,1], activation = \"Relu\"}\n"},
	{"2,20,8,9", "1", "1", "%y = MaxPool(%x) {kernel_shape = [3,3], strides = [2,2], pads = [1,0,1,1], ceil_mode = 1}\n"
		"%v = org.onnxmem.cpu::MaxPool(%u) {kernel_shape = [3,3], strides = [2,2], pads = [1,0,1,1], ceil_mode = 1}\n"},
	{"1,70,9", "1", "1", "%y = AveragePool(%x) {kernel_shape = [5], pads = [2,2], count_include_pad = 1}\n"
		"%v = org.onnxmem.cpu::AveragePool(%u) {kernel_shape = [5], pads = [2,2], count_include_pad = 1}\n"},
	{"1,5,4,6,7", "1", "1", "%y = AveragePool(%x) {kernel_shape = [2,3,3], strides = [2,1,2], pads = [0,1,1,1,1,0]}\n"
		"%v = org.onnxmem.cpu::AveragePool(%u) {kernel_shape = [2,3,3], strides = [2,1,2], pads = [0,1,1,1,1,0]}\n"},
};

static char *
text_of(const struct layer *l)
{
	static const char *const to_last[] = {"0,2,1", "0,2,3,1", "0,2,3,4,1"}, *const to_first[] = {"0,2,1", "0,3,1,2", "0,4,1,2,3"};
	int rank = 1;
	char *text;
	size_t size;

	for (const char *p = l->x; *p; p++)
		rank += *p == ',';
	FILE *to = open_memstream(&text, &size);
	fprintf(to, "program \"layer\" ir 8 opset 17 opset org.onnxmem.cpu 1\n^main(%%x: float32[%s], %%w: float32[%s], %%b: float32[%s]) {\n", l->x, l->w, l->b);
	fprintf(to, "%%u = Transpose(%%x) {perm = [%s]}\n%s%%z = Transpose(%%v) {perm = [%s]}\nret %%y, %%z\n}\n", to_last[rank - 3],
		l->text, to_first[rank - 3]);
	fclose(to);
	return text;
}

static bool
is_near(const om_tensor *a, const om_tensor *b)
{
	const int64_t n = om_shape_count(&a->shape);
	double off = 0;

	if (!om_shape_equal(&a->shape, &b->shape) || n == 0)
		return false;
	for (int64_t k = 0; k < n; k++)
		off = fmax(off, fabs(element_at(a, k) - element_at(b, k)));
	return off <= 2e-5;
}

static void
layers_are_those_of_onnx(void)
{
	for (size_t k = 0; k < sizeof layers / sizeof layers[0]; k++) {
		bench b = bench_open();
		char *text = text_of(&layers[k]);
		uint64_t seed = k + 1;
		om_tensor in[3];
		CU_ASSERT_FATAL(is_ok(b.s, bench_plan(&b, text, "shapes,views,inplace,pack")));
		for (uint32_t i = 0; i < 3; i++) {
			in[i] = tensor_zero(b.mem, OM_FLOAT32, &b.p->first->param[i]->shape);
			for (int64_t at = 0; at < om_shape_count(&in[i].shape); at++)
				set_element(&in[i], at, 2 * om_rng_unit(&seed) - 1);
		}
		CU_ASSERT_FATAL(is_ok(b.s, bench_exec(&b, &ways[PLANNED])));
		CU_ASSERT_FATAL(is_ok(b.s, bench_run(&b, in, 3)));
		const bool near = is_near(om_exec_result(b.e, 0), om_exec_result(b.e, 1));
		CU_ASSERT(near);
		if (!near)
			printf("# %s\n", layers[k].text);
		free(text);
		bench_close(&b);
	}
}

/* Packed weights of another size, channels that do not match. */
static void
wrong_sizes_are_refused(void)
{
	static const struct {
		const char *params, *text, *told;
	} wrong[] = {
		{"%x: float32[1,5,5,4], %p: float32[35]", "DepthwiseConv(%x, %p) {kernel_shape = [3,3], channels = 4}", "35 elements, expected 36"},
		{"%x: float32[1,5,5,4], %p: float32[54]", "DepthwiseConv(%x, %p) {kernel_shape = [3,3], channels = 6}", "not a multiple"},
		{"%x: float32[1,5,5,4], %p: float32[36]", "DepthwiseConv(%x, %p) {kernel_shape = [3,3], channels = 4, activation = \"Softsign\"}",
			"Softsign"},
		{"%x: float32[1,5,5,4], %p: float32[36], %b: float32[3]", "DepthwiseConv(%x, %p, %b) {kernel_shape = [3,3], channels = 4}",
			"the bias has 3 elements"},
		{"%x: float32[1,5,5,8], %p: float32[500]", "GroupedConv(%x, %p) {kernel_shape = [3,3], group = 2, channels = 8}",
			"500 elements, expected 576"},
		{"%x: float32[1,5,5,40], %p: float32[500]", "GroupedConv(%x, %p) {kernel_shape = [3,3], group = 2, channels = 8}",
			"expected 1 to 16"},
		{"%x: float32[1,5,5,4], %p: float32[500]", "ConvTranspose(%x, %p) {kernel_shape = [3,3], channels = 4}", "500 elements"},
		{"%x: float32[1,5,5,4], %e: float32[128], %p: float32[35]", "ExpandedDepthwiseConv(%x, %e, %p) {kernel_shape = [3,3], channels = 4}",
			"the packed weights has 35 elements, expected 36"},
		{"%x: float32[1,5,5,4], %e: float32[16], %p: float32[36]", "ExpandedDepthwiseConv(%x, %e, %p) {kernel_shape = [3,3], channels = 4}",
			"the weights of the expansion has 16 elements"},
		{"%x: float32[1,5,5,300], %e: float32[9600], %p: float32[36]", "ExpandedDepthwiseConv(%x, %e, %p) {kernel_shape = [3,3], channels = 4}",
			"300 channels, expected at most 256"},
		{"%x: float32[1,5,4], %e: float32[128], %p: float32[12]", "ExpandedDepthwiseConv(%x, %e, %p) {kernel_shape = [3], channels = 4}",
			"rank 3, expected 4"},
		{"%x: float32[1,2,5,4]", "MaxPool(%x) {kernel_shape = [3,3]}", "exceeds the input size"},
	};

	for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
		bench b = bench_open();
		char text[400];
		snprintf(text, sizeof text, "program \"wrong\" ir 8 opset 17 opset org.onnxmem.cpu 1\n^main(%s) {\n%%y = org.onnxmem.cpu::%s\nret %%y\n}\n", wrong[k].params,
			wrong[k].text);
		const om_status st = bench_plan(&b, text, "shapes");
		CU_ASSERT(is_told(b.s, st, k == 2 ? OM_INVALID : OM_SHAPE, wrong[k].told));
		bench_close(&b);
	}
}

static CU_TestInfo channels_last_tests[] = {
	{"layers are those of ai.onnx", layers_are_those_of_onnx},
	{"wrong sizes are refused", wrong_sizes_are_refused},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("layers on channels-last images", channels_last_tests);
