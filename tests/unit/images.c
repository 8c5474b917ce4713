/* SPDX-License-Identifier: Apache-2.0 */
/* ImageDecoder: every format that this build reads, whole, cut and damaged. */
#include <config.h>

#include <stdio.h>

#include "images.h"
#include "onnxmem/kernel.h"
#include "tests/fixtures.h"
#include "unit.h"
#include "base/arena_internal.h"
#include "opdef/kernel_call.h"

struct decoder {
	om_session *s;
	om_prog *p;
	om_arena *mem;
};

static void
start(struct decoder *d)
{
	static char text[] = "program \"t\" ir 10 opset 20\n"
		"^main(%x: uint8[64]) {\n\t%y = ImageDecoder(%x)\n\tret %y\n}\n";

	d->s = om_session_new();
	d->mem = om_arena_new();
	CU_ASSERT_EQUAL_FATAL(text_parse(d->s, text, &d->p), OM_OK);
}

static void
stop(struct decoder *d)
{
	om_arena_free(d->mem);
	om_prog_free(d->p);
	om_session_free(d->s);
}

static om_status
alloc(om_op_context *c, uint32_t k, const om_shape *shape)
{
	c->out[k].shape = *shape;
	c->out[k].data = om_alloc(c->keep, (size_t)om_shape_count(shape));
	return OM_OK;
}

static om_status
decode(const struct decoder *d, om_arena *mem, const uint8_t *data, size_t n, om_tensor *to)
{
	const int64_t dim = (int64_t)n;
	const om_tensor in = {.type = OM_UINT8, .shape = om_shape_of(1, &dim), .data = (void *)data};
	om_op_context c = {.session = d->s, .mem = mem, .op = d->p->first->first, .in = &in, .out = to, .keep = mem,
		.alloc = alloc};

	*to = (om_tensor){.type = OM_UINT8};
	return om_kernel_call(&c);
}

static const struct {
	const char *name;
	const uint8_t *data;
	size_t n;
	bool exact;
} files[] = {
	{"BMP", bmp, sizeof bmp, true},
	{"PNM", ppm, sizeof ppm, true},
	{"PNG", png, sizeof png, true},
	{"JPEG", jpeg, sizeof jpeg, false},
	{"TIFF", tiff, sizeof tiff, true},
	{"WebP", webp, sizeof webp, true},
	{"JPEG 2000", jpeg2000, sizeof jpeg2000, true},
};

enum { NFILES = sizeof files / sizeof files[0], PIXELS = 3 * 2 * 3 };

static void
test_whole(void)
{
	static const uint8_t want[PIXELS] = {0, 200, 7, 40, 170, 255, 80, 140, 7, 120, 110, 255, 160, 80, 7, 200, 50, 255};
	struct decoder d;
	om_tensor got;

	start(&d);
	for (int k = 0; k < NFILES; k++) {
		const om_status st = decode(&d, d.mem, files[k].data, files[k].n, &got);
		if (st == OM_UNSUPPORTED && k >= 2)
			continue;  /* built without the library for it */
		CU_ASSERT_EQUAL_FATAL(st, OM_OK);
		CU_ASSERT_FATAL(om_shape_equal(&got.shape, &(om_shape){.rank = 3, .dim = {2, 3, 3}}));
		if (files[k].exact)
			CU_ASSERT_EQUAL(memcmp(got.data, want, PIXELS), 0);
	}
	stop(&d);
}

/* A file that ends early is read as far as its library goes, or refused. */
static void
test_cut(void)
{
	struct decoder d;
	om_tensor got;

	start(&d);
	for (int k = 0; k < NFILES; k++)
		for (size_t n = 0; n < files[k].n; n++) {
			om_arena *mem = om_arena_new();
			uint8_t *copy = memcpy(om_alloc(mem, n + 1), files[k].data, n);
			if (decode(&d, mem, copy, n, &got) != OM_OK)
				CU_ASSERT(*om_message(d.s));
			om_arena_free(mem);
		}
	stop(&d);
}

static void
test_damaged(void)
{
	static const uint8_t wrong[] = {0x01, 0x80, 0xff};
	struct decoder d;
	om_tensor got;

	start(&d);
	for (int k = 0; k < NFILES; k++)
		for (size_t at = 0; at < files[k].n * sizeof wrong; at++) {
			om_arena *mem = om_arena_new();
			uint8_t *copy = memcpy(om_alloc(mem, files[k].n), files[k].data, files[k].n);
			copy[at / sizeof wrong] ^= wrong[at % sizeof wrong];
			if (decode(&d, mem, copy, files[k].n, &got) == OM_OK)
				CU_ASSERT(om_shape_count(&got.shape) > 0);
			om_arena_free(mem);
		}
	stop(&d);
}

static CU_TestInfo images_tests[] = {
	{"whole files", test_whole},
	{"files that are cut", test_cut},
	{"files with a wrong byte", test_damaged},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("images", images_tests);
