/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of algorithms for convolutions. */
#include <config.h>

#include <string.h>

#include "lower/conv_algorithm.h"
#include "unit.h"

/* A convolution of n by n images with a kernel of 3 by 3 elements. */
static const char *
choice(int64_t n, int64_t in, int64_t out, int64_t stride, int64_t dilation, bool winograd)
{
	const int64_t size[] = {n, n}, kernel[] = {3, 3}, strides[] = {stride, stride}, dilations[] = {dilation, dilation};
	const om_conv_shape s = {.batch = 1, .channels_in = in, .channels_out = out, .group = 1, .axes = 2, .in = size,
		.out = size, .kernel = kernel, .stride = strides, .dilation = dilations};

	return om_conv_algorithm(&s, winograd);
}

static void
large_images_use_winograd(void)
{
	CU_ASSERT_STRING_EQUAL(choice(56, 64, 64, 1, 1, true), "winograd4");
	CU_ASSERT_STRING_EQUAL(choice(14, 256, 256, 1, 1, true), "winograd2");
	CU_ASSERT_STRING_EQUAL(choice(28, 128, 128, 1, 2, true), "winograd4");
}

/* Where transformed weights are large, the gain must be. */
static void
memory_has_a_price(void)
{
	CU_ASSERT_STRING_EQUAL(choice(28, 512, 512, 1, 1, true), "winograd2");
	CU_ASSERT_STRING_EQUAL(choice(56, 512, 512, 1, 1, true), "winograd4");
	CU_ASSERT_STRING_EQUAL(choice(14, 512, 512, 1, 1, true), "gemm");
}

static void
others_do_not(void)
{
	CU_ASSERT_STRING_EQUAL(choice(56, 64, 64, 1, 1, false), "gemm");
	CU_ASSERT_STRING_EQUAL(choice(7, 512, 512, 1, 1, true), "gemm");
	CU_ASSERT_STRING_EQUAL(choice(56, 64, 64, 2, 1, true), "gemm");
	CU_ASSERT_STRING_EQUAL(choice(56, 3, 64, 1, 1, true), "gemm");
	CU_ASSERT_STRING_EQUAL(choice(28, 256, 256, 1, 12, true), "gemm");
}

/* Three axes are like two, and one axis is not enough. */
static void
axes_are_those_of_the_image(void)
{
	const int64_t size[] = {8, 56, 56}, kernel[] = {2, 3, 3}, ones[] = {1, 1, 1};
	om_conv_shape s = {.batch = 1, .channels_in = 64, .channels_out = 64, .group = 1, .axes = 3, .in = size, .out = size,
		.kernel = kernel, .stride = ones, .dilation = ones};

	CU_ASSERT_STRING_EQUAL(om_conv_algorithm(&s, true), "winograd4");
	s.axes = 1;
	s.kernel = kernel + 2;
	CU_ASSERT_STRING_EQUAL(om_conv_algorithm(&s, true), "gemm");
}

static CU_TestInfo algorithm_tests[] = {
	{"large images use Winograd's algorithm", large_images_use_winograd},
	{"memory has a price", memory_has_a_price},
	{"others do not", others_do_not},
	{"axes are those of the image", axes_are_those_of_the_image},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("algorithms of convolutions", algorithm_tests);
