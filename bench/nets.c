/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of well-known networks, as graphs that bench/plan reads.
 *
 *	bench/nets chain152|resnet50|resnet152|densenet121|inception|unet|random N
 *
 * Batch 1, 4 bytes an element.  Convolutions, pools and concats make new tensors;
 * elementwise ops after them (normalization, Relu, Add) may be computed over their
 * first input.  `random N` has N ops that read one or two of the earlier tensors.
 */
#include <config.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

/* A tensor of `size` x `size` x `channels`. */
struct t {
	int id, size, channels;
};

static int
declare(int *next, uint64_t bytes)
{
	printf("t %d %llu\n", *next, (unsigned long long)bytes);
	return (*next)++;
}

static struct t
make(int *next, int size, int channels)
{
	return (struct t){declare(next, (uint64_t)4 * size * size * channels), size, channels};
}

static struct t
input(int *next, int size, int channels)
{
	const struct t x = make(next, size, channels);

	printf("i %d\n", x.id);
	return x;
}

/* A convolution or a pool. */
static struct t
conv(int *next, struct t x, int channels, int stride)
{
	const struct t y = make(next, x.size / stride, channels);

	printf("op 0 %d %d\n", x.id, y.id);
	return y;
}

static struct t
over(int *next, struct t x)
{
	const struct t y = make(next, x.size, x.channels);

	printf("op 1 %d %d\n", x.id, y.id);
	return y;
}

static struct t
add(int *next, struct t a, struct t b)
{
	const struct t y = make(next, a.size, a.channels);

	printf("op 1 %d,%d %d\n", a.id, b.id, y.id);
	return y;
}

static struct t
concat(int *next, const struct t *x, int n)
{
	int channels = 0;

	for (int k = 0; k < n; k++)
		channels += x[k].channels;
	const struct t y = make(next, x->size, channels);
	printf("op 0 ");
	for (int k = 0; k < n; k++)
		printf("%s%d", k ? "," : "", x[k].id);
	printf(" %d\n", y.id);
	return y;
}

static void
output(int *next, struct t x)
{
	const struct t pooled = make(next, 1, x.channels);
	const int y = declare(next, 4000);

	printf("op 0 %d %d\nop 0 %d %d\no %d\n", x.id, pooled.id, pooled.id, y, y);
}

static void
chain(int *next, int layers)
{
	struct t x = conv(next, input(next, 512, 1), 1, 1);

	for (int k = 0; k < layers; k++) {
		const struct t y = conv(next, x, 1, 1);
		x = add(next, y, x);
	}
	const int y = declare(next, 4);
	printf("op 0 %d %d\no %d\n", x.id, y, y);
}

static struct t
bottleneck(int *next, struct t x, int width, int stride, int first)
{
	struct t y = over(next, over(next, conv(next, x, width, 1)));

	y = over(next, over(next, conv(next, y, width, stride)));
	y = over(next, conv(next, y, 4 * width, 1));
	if (first)
		x = over(next, conv(next, x, 4 * width, stride));
	return over(next, add(next, y, x));
}

static void
resnet(int *next, const int blocks[4])
{
	struct t x = over(next, over(next, conv(next, input(next, 224, 3), 64, 2)));

	x = conv(next, x, 64, 2);
	for (int stage = 0; stage < 4; stage++)
		for (int k = 0; k < blocks[stage]; k++)
			x = bottleneck(next, x, 64 << stage, stage && !k ? 2 : 1, !k);
	output(next, x);
}

static void
densenet(int *next)
{
	static const int blocks[4] = {6, 12, 24, 16};
	struct t x = over(next, over(next, conv(next, input(next, 224, 3), 64, 2)));

	x = conv(next, x, 64, 2);
	for (int stage = 0; stage < 4; stage++) {
		for (int k = 0; k < blocks[stage]; k++) {
			struct t y = conv(next, over(next, over(next, x)), 128, 1);
			y = conv(next, over(next, over(next, y)), 32, 1);
			x = concat(next, (struct t[]){x, y}, 2);
		}
		x = over(next, over(next, x));
		if (stage < 3) {
			x = conv(next, x, x.channels / 2, 1);
			x = conv(next, x, x.channels, 2);
		}
	}
	output(next, x);
}

static struct t
both(int *next, struct t x, int a, int b)
{
	if (a)
		x = over(next, conv(next, x, a, 1));
	return over(next, conv(next, x, b, 1));
}

static void
inception(int *next)
{
	struct t x = input(next, 28, 192);

	for (int k = 0; k < 9; k++) {
		const struct t a = both(next, x, 0, 64), b = both(next, x, 96, 128), c = both(next, x, 16, 32);
		const struct t d = both(next, conv(next, x, x.channels, 1), 0, 32);
		x = concat(next, (struct t[]){a, b, c, d}, 4);
	}
	const int y = declare(next, 4);
	printf("op 0 %d %d\no %d\n", x.id, y, y);
}

static void
unet(int *next)
{
	struct t x = input(next, 256, 3), skip[4];

	for (int k = 0; k < 4; k++) {
		skip[k] = both(next, x, 32 << k, 32 << k);
		x = conv(next, skip[k], skip[k].channels, 2);
	}
	x = both(next, x, 512, 512);
	for (int k = 4; k--;) {
		const struct t up = make(next, 2 * x.size, x.channels / 2);
		printf("op 0 %d %d\n", x.id, up.id);
		x = both(next, concat(next, (struct t[]){skip[k], up}, 2), 32 << k, 32 << k);
	}
	const int y = declare(next, 4);
	printf("op 0 %d %d\no %d\n", x.id, y, y);
}

/* Usually recent tensors are read, sometimes an early one. */
static void
scattered(int *next, int n)
{
	input(next, 1, 64);
	for (int k = 1; k <= n; k++) {
		const uint64_t r = om_mix((uint64_t)k * UINT64_C(0x9e3779b97f4a7c15));
		const int near = k < 4 ? k : 4, far = r >> 60 ? near : k;
		const int a = k - 1 - (int)(r % (unsigned)near), b = k - 1 - (int)((r >> 20) % (unsigned)far);
		const int y = declare(next, 64 * (1 + (r >> 40) % 1000));
		printf("op %d %d,%d %d\n", (int)(r >> 55 & 1), a, b, y);
	}
	printf("o %d\n", n);
}

int
main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	int next = 0;

	if (strcmp(name, "chain152") == 0)
		chain(&next, 152);
	else if (strcmp(name, "resnet50") == 0)
		resnet(&next, (const int[]){3, 4, 6, 3});
	else if (strcmp(name, "resnet152") == 0)
		resnet(&next, (const int[]){3, 8, 36, 3});
	else if (strcmp(name, "densenet121") == 0)
		densenet(&next);
	else if (strcmp(name, "inception") == 0)
		inception(&next);
	else if (strcmp(name, "unet") == 0)
		unet(&next);
	else if (strcmp(name, "random") == 0 && argc > 2)
		scattered(&next, atoi(argv[2]));
	else
		return fprintf(stderr, "usage: bench/nets chain152|resnet50|resnet152|densenet121|inception|unet|random N\n"), 2;
	return 0;
}
