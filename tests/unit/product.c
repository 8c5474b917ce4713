/* SPDX-License-Identifier: Apache-2.0 */
/* Products of computed matrices, of every instruction set beside a double loop; MatMul, Gemm and Einsum of
 * float32 beside the reference kernels in float64. */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/product.h"
#include "unit.h"

enum { ROUNDS = 400, GUARD = 16 };

static uint32_t
next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static float *
numbers(uint32_t *seed, int64_t n)
{
	float *x = malloc((size_t)(n + 1) * sizeof *x);

	for (int64_t i = 0; i < n; i++)
		x[i] = (float)(next(seed) % 2001) / 1000 - 1;
	return x;
}

/* ---- One product. ---- */

/* A matrix in any of four layouts: dense, transposed, with a gap after each row, with every third element. */
static void
layout(uint32_t *seed, int64_t rows, int64_t cols, int64_t *row, int64_t *col)
{
	switch (next(seed) % 4) {
	case 0: *row = cols; *col = 1; break;
	case 1: *row = 1; *col = rows; break;
	case 2: *row = cols + 5; *col = 1; break;
	default: *row = 3 * cols; *col = 3;
	}
}

static bool
is_product(const om_product *p, const float *a, const float *b, const float *was, const float *got)
{
	for (int64_t i = 0; i < p->m; i++)
		for (int64_t j = 0; j < p->c_row; j++) {
			const int64_t at = i * p->c_row + j;
			double sum = 0;
			for (int64_t k = 0; k < p->k && j < p->n; k++)
				sum += (double)a[i * p->a_row + k * p->a_col] * (double)b[k * p->b_row + j * p->b_col];
			sum = (double)p->alpha * sum + (p->add ? (double)was[at] : 0);
			if (j < p->n ? !(fabs(sum - (double)got[at]) < 2e-4) : got[at] != was[at])
				return false;
		}
	return true;
}

static void
try_product(const om_kernels *kernels, uint32_t *seed, bool is_small)
{
	const int64_t most = is_small ? 20 : 150;
	om_product_batch all = {.p = {.m = next(seed) % (is_small ? 4 : 30), .n = next(seed) % most, .k = next(seed) % most}};
	om_product *p = &all.p;

	layout(seed, p->m, p->k, &p->a_row, &p->a_col);
	layout(seed, p->k, p->n, &p->b_row, &p->b_col);
	p->c_row = p->n + next(seed) % 3;
	p->alpha = next(seed) % 2 ? 1 : 0.5f;
	p->add = next(seed) % 2;
	float *a = numbers(seed, p->m * p->k * 3 + p->m * 5), *b = numbers(seed, p->k * p->n * 3 + p->k * 5);
	float *was = numbers(seed, p->m * p->c_row), *got = numbers(seed, p->m * p->c_row);
	om_product_choose(&all);
	const size_t bytes = om_product_workspace(&all, 1);
	char *room = malloc(bytes + GUARD);

	memset(room, 0xff, bytes + GUARD);
	if (p->m)
		memcpy(got, was, (size_t)(p->m * p->c_row) * sizeof *got);
	if (p->m && p->n && !all.is_swapped) {
		kernels->product->multiply[p->way](p, a, b, got, (float *)room);
		CU_ASSERT(is_product(p, a, b, was, got));
	}
	for (int k = 0; k < GUARD; k++)
		CU_ASSERT_EQUAL(room[bytes + (size_t)k], (char)0xff);
	free(room);
	free(a);
	free(b);
	free(was);
	free(got);
}

static void
products_are_right(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++) {
		uint32_t seed = 1;
		for (int round = 0; round < ROUNDS; round++)
			try_product(kernels, &seed, round % 2);
	}
}

/* Deeper than a panel. */
static void
long_sums_are_right(void)
{
	const om_kernels *kernels;
	om_product p = {.m = 5, .n = 19, .k = OM_PRODUCT_DEPTH + 9, .a_row = OM_PRODUCT_DEPTH + 9, .a_col = 1, .b_row = 19,
		.b_col = 1, .c_row = 19, .alpha = 0.125f};
	uint32_t seed = 7;
	float *a = numbers(&seed, p.m * p.k), *b = numbers(&seed, p.k * p.n), got[95];
	float *room = malloc((size_t)OM_PRODUCT_DEPTH * OM_PRODUCT_WIDTH * sizeof *room);

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++) {
		kernels->product->multiply[OM_PRODUCT_PANELS](&p, a, b, got, room);
		CU_ASSERT(is_product(&p, a, b, got, got));
	}
	free(a);
	free(b);
	free(room);
}

/* ---- Operators. ---- */

/* The equation of Einsum, or another op. */
static const struct {
	const char *equation, *dims[4];
} equations[] = {
	{"ij,jk->ik", {"37,19", "19,70"}},
	{"ij,kj->ik", {"37,19", "70,19"}},
	{"ji,jk->ki", {"19,37", "19,70"}},
	{"bghid,bghjd->bghij", {"2,3,2,49,16", "2,3,2,49,16"}},
	{"bghij,bghjd->bghid", {"2,3,2,49,49", "2,3,2,49,16"}},
	{"bhwc,hkc->bhwk", {"2,5,6,8", "5,7,8"}},
	{"bhwc,wkc->bhwk", {"2,5,6,8", "6,7,8"}},
	{"bihd,bjhd->bijh", {"2,9,3,8", "2,11,3,8"}},
	{"bihd,bjhd->bhij", {"2,9,3,8", "2,11,3,8"}},
	{"bhij,bjhd->bihd", {"2,3,9,11", "2,11,3,8"}},
	{"abc,cab->", {"4,5,6", "6,4,5"}},
	{"abcd,cbae->de", {"4,5,6,3", "6,5,4,7"}},
	{"abcd,acbe->de", {"4,5,6,3", "4,6,5,7"}},
	{"ii,ij->j", {"7,7", "7,9"}},
	{"iij,jk->ik", {"7,7,5", "5,9"}},
	{"bij,bj->bi", {"3,9,17", "3,17"}},
	{"bij,bi->bj", {"3,9,17", "3,9"}},
	{"i,j->ij", {"33", "21"}},
	{"i,j->ji", {"33", "21"}},
	{"i,i->", {"300", "300"}},
	{"...ij,...jk->...ik", {"2,1,5,6", "4,6,7"}},
	{"...ij,jk", {"2,3,5,6", "6,7"}},
	{"ab,bc,cd->ad", {"12,9", "9,11", "11,5"}},
	{"ab,bc,cd,de->ae", {"12,9", "9,11", "11,5", "5,6"}},
	{"bi,bj,bk->bijk", {"2,3", "2,4", "2,5"}},
	{"ab,cd->a", {"3,4", "5,6"}},
	{"ab->ba", {"3,4"}},
	{"ab,ab->ab", {"5,6", "5,6"}},
	{"ab,b->ba", {"5,6", "6"}},
	{"abc,cd->abd", {"1,5,1", "1,3"}},
	{"aib,aic->bc", {"1,1,4", "3,1,4"}},
	{"ij,jk->ik", {"0,19", "19,7"}},
	{"ij,jk->ik", {"4,0", "0,7"}},
	{"MatMul(%x0, %x1)", {"2,3,17,9", "3,9,20"}},
	{"MatMul(%x0, %x1)", {"3,1,2,9", "4,9,20"}},
	{"MatMul(%x0, %x1)", {"3,2,9", "9,20"}},
	{"MatMul(%x0, %x1)", {"9", "3,9,20"}},
	{"MatMul(%x0, %x1)", {"2,3,9", "9"}},
	{"MatMul(%x0, %x1)", {"90", "90"}},
	{"MatMul(%x0, %x1)", {"2,4,0", "0,5"}},
	{"MatMul(%x0, %x1)", {"1,70", "70,300"}},
	{"Gemm(%x0, %x1) {transA = 1, alpha = 0.5}", {"9,13", "9,21"}},
	{"Gemm(%x0, %x1, %x2) {transB = 1, beta = 0.5}", {"13,9", "21,9", "21"}},
	{"Gemm(%x0, %x1, %x2) {transA = 1, transB = 1}", {"9,13", "21,9", "13,1"}},
	{"Gemm(%x0, %x1, %x2) {alpha = 2.0}", {"13,9", "9,1", "13,1"}},
	{"Gemm(%x0, %x1, %x2) {transA = 1}", {"90,13", "90,1", "1"}},
	{"Gemm(%x0, %x1, %x2) {transB = 1}", {"1,90", "20,90", "1,20"}},
};

static om_status
compute(bench *t, size_t k, const char *type)
{
	char text[1024], inputs[512] = "", names[64] = "", op[256];
	const char *equation = equations[k].equation;

	for (int i = 0; i < 4 && equations[k].dims[i]; i++) {
		const size_t n = strlen(inputs), m = strlen(names);
		snprintf(inputs + n, sizeof inputs - n, "%s%%x%d: %s[%s]", i ? ", " : "", i, type, equations[k].dims[i]);
		snprintf(names + m, sizeof names - m, "%s%%x%d", i ? ", " : "", i);
	}
	snprintf(op, sizeof op, "Einsum(%s) {equation = \"%s\"}", names, equation);
	snprintf(text, sizeof text, "program \"t\" ir 8 opset 17\n^main(%s) {\n\t%%y = %s\n\tret %%y\n}\n", inputs,
		strchr(equation, '(') ? equation : op);
	OM_TRY(bench_plan(t, text, "inline,shapes,fold"));
	OM_TRY(bench_exec(t, &ways[SEPARATE]));
	uint32_t seed = (uint32_t)k;
	for (uint32_t i = 0; i < t->p->first->nparam; i++) {
		const om_value *v = t->p->first->param[i];
		const om_tensor x = tensor_zero(t->mem, v->type.elem, &v->shape);
		for (int64_t at = 0; at < om_shape_count(&x.shape); at++)
			set_element(&x, at, (double)(next(&seed) % 2001) / 1000 - 1);
		OM_TRY(om_exec_input(t->e, i, &x));
	}
	return om_exec_run(t->e);
}

static void
equations_are_right(void)
{
	for (size_t k = 0; k < sizeof equations / sizeof equations[0]; k++) {
		bench fast = bench_open(), exact = bench_open();
		const bool ran = is_ok(fast.s, compute(&fast, k, "float32")) && is_ok(exact.s, compute(&exact, k, "float64"));
		bool same = ran;
		const om_tensor *got = ran ? om_exec_result(fast.e, 0) : NULL, *want = ran ? om_exec_result(exact.e, 0) : NULL;
		for (int64_t i = 0; same && i < om_shape_count(&want->shape); i++)
			same = fabs(element_at(got, i) - element_at(want, i)) < 1e-4;
		CU_ASSERT(same);
		if (!same)
			printf("%s\n", equations[k].equation);
		bench_close(&fast);
		bench_close(&exact);
	}
}

static CU_TestInfo product_tests[] = {
	{"products are right", products_are_right},
	{"long sums are right", long_sums_are_right},
	{"equations are right", equations_are_right},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("product", product_tests);
