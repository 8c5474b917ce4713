/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of fuse that change the rounding: the results stay, up to that. */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "tests/fixtures.h"
#include "unit.h"

/* What a batch normalization of 4 channels goes into: the op that makes %a of %x, and its constants. */
static const struct way {
	const char *x, *op;
	const char *name[3], *shape[3];  /* of constants */
} folded[] = {
	{"2,3,5,5", "Conv(%x, %w)", {"w"}, {"4,3,3,3"}},
	{"2,4,5,5", "Conv(%x, %w, %b) {group = 2, strides = [2, 1], pads = [1, 0, 1, 2]}", {"w", "b"}, {"4,2,3,3", "4"}},
	{"1,3,9", "Conv(%x, %w, %b) {dilations = [2]}", {"w", "b"}, {"4,3,3", "4"}},
	{"1,3,4,4", "ConvTranspose(%x, %w, %b) {strides = [2, 2]}", {"w", "b"}, {"3,4,3,3", "4"}},
	{"1,4,4,4", "ConvTranspose(%x, %w) {group = 2}", {"w"}, {"4,2,3,3"}},
	{"5,3", "Gemm(%x, %w, %b) {alpha = 0.5, beta = 2.0}", {"w", "b"}, {"3,4", "4"}},
	{"5,3", "Gemm(%x, %w) {transB = 1}", {"w"}, {"4,3"}},
	{"5,3", "MatMul(%x, %w)", {"w"}, {"3,4"}},
};

/* `from`: the least of its elements, which fill a range of two. */
static void
write_const(FILE *to, uint64_t *seed, const char *name, const char *shape, double from)
{
	int64_t n = atoi(shape);

	for (const char *at = shape; (at = strchr(at, ',')); )
		n *= atoi(++at);
	fprintf(to, "%%%s = const float32[%s] {", name, shape);
	for (int64_t k = 0; k < n; k++)
		fprintf(to, "%s%.6f", k ? ", " : "", from + 2 * om_rng_unit(seed));
	fprintf(to, "}\n");
}

static char *
text_of(const struct way *w, uint64_t seed)
{
	char *text;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	fprintf(to, "program \"norm\" ir 8 opset 17\n^main(%%x: float32[%s]) {\n", w->x);
	for (unsigned k = 0; k < 3 && w->name[k]; k++)
		write_const(to, &seed, w->name[k], w->shape[k], -1);
	write_const(to, &seed, "scale", "4", -1);
	write_const(to, &seed, "shift", "4", -1);
	write_const(to, &seed, "mean", "4", -1);
	write_const(to, &seed, "var", "4", 0.05);
	fprintf(to, "%%a = %s\n%%y = BatchNormalization(%%a, %%scale, %%shift, %%mean, %%var)\nret %%y\n}\n", w->op);
	fclose(to);
	return text;
}

static bool
has_norm(const om_prog *p)
{
	for (const om_op *op = p->first->first; op; op = op->next)
		if (strcmp(op->type, "BatchNormalization") == 0)
			return true;
	return false;
}

/* Run it on elements that depend on the seed alone. */
static const om_tensor *
result(bench *b, const char *text, const char *passes, uint64_t seed)
{
	CU_ASSERT_FATAL(is_ok(b->s, bench_plan(b, text, passes)));
	om_tensor x = tensor_zero(b->mem, OM_FLOAT32, &b->p->first->param[0]->shape);

	for (int64_t k = 0; k < om_shape_count(&x.shape); k++)
		set_element(&x, k, 4 * om_rng_unit(&seed) - 2);
	CU_ASSERT_FATAL(is_ok(b->s, bench_exec(b, &ways[PLANNED])));
	CU_ASSERT_FATAL(is_ok(b->s, bench_run(b, &x, 1)));
	return om_exec_result(b->e, 0);
}

/* Of the largest element, as sums may cancel. */
static bool
is_near(const om_tensor *a, const om_tensor *b)
{
	const int64_t n = om_shape_count(&a->shape);
	double most = 0, off = 0;

	for (int64_t k = 0; k < n; k++) {
		most = fmax(most, fabs(element_at(b, k)));
		off = fmax(off, fabs(element_at(a, k) - element_at(b, k)));
	}
	if (!(off <= 2e-6 * most))
		printf("# off by %g of %g\n", off, most);
	return om_shape_equal(&a->shape, &b->shape) && most > 0 && off <= 2e-6 * most;
}

static void
folded_norms_compute_the_same(void)
{
	for (size_t k = 0; k < sizeof folded / sizeof folded[0]; k++)
		for (uint64_t seed = 1; seed <= 5; seed++) {
			bench with = bench_open(), without = bench_open();
			char *text = text_of(&folded[k], seed);
			const om_tensor *a = result(&with, text, "inline,shapes,fuse:norm=fold,fold,prune,views,inplace,pack", seed);
			const om_tensor *b = result(&without, text, "inline,shapes,fuse,fold,prune,views,inplace,pack", seed);
			CU_ASSERT_FALSE(has_norm(with.p));
			CU_ASSERT(has_norm(without.p));
			const bool near = is_near(a, b);
			CU_ASSERT(near);
			if (!near)
				printf("# %s\n", folded[k].op);
			free(text);
			bench_close(&with);
			bench_close(&without);
		}
}

static CU_TestInfo tests[] = {
	{"a batch normalization in weights computes the same", folded_norms_compute_the_same},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("fuse", tests);
