/* SPDX-License-Identifier: Apache-2.0 */
/* The dynamic graph: memory of others, and memory that is lent. */
#include <config.h>

#include <stdlib.h>

#include "eager.h"

static void
count(void *arg)
{
	++*(int *)arg;
}

/* In memory of malloc(), so that the address sanitizer sees a use after the release. */
static void
free_and_count(void *arg)
{
	struct { float *x; int *n; } *a = arg;

	free(a->x);
	++*a->n;
}

static om_memory
memory_of(float *x, int rank, const int64_t *dim, const int64_t *stride, int *released)
{
	return (om_memory){.data = x, .type = OM_FLOAT32, .rank = rank, .dim = dim, .stride = stride, .release = count, .arg = released};
}

static void
of_elements_in_place(void)
{
	struct graph g = eager_start(NULL);
	const int64_t dim[] = {2, 3};
	int n = 0;
	struct { float *x; int *n; } owned = {malloc(6 * sizeof(float)), &n};
	const om_memory m = {.data = owned.x, .type = OM_FLOAT32, .rank = 2, .dim = dim, .release = free_and_count, .arg = &owned};
	om_variable *v, *y = NULL;
	const om_tensor *t;

	for (int k = 0; k < 6; k++)
		owned.x[k] = (float)k;
	CU_ASSERT_FATAL(is_ok(g.s, om_variable_wrap(g.e, &m, &v)));
	CU_ASSERT(is_ok(g.s, om_variable_read(v, &t)));
	CU_ASSERT_PTR_EQUAL(t->data, owned.x);
	const int64_t flat[] = {6};
	om_variable *shape = eager_ints(g.e, 1, flat), *r = eager_op(&g, "Reshape", v, shape);
	CU_ASSERT(is_ok(g.s, om_variable_read(r, &t)));
	CU_ASSERT_PTR_EQUAL(t->data, owned.x);  /* a view */
	om_variable_free(v);
	CU_ASSERT_EQUAL(n, 0);
	y = eager_op(&g, "Neg", r, NULL);
	om_variable_free(r);
	CU_ASSERT(eager_holds(&g, y, 6, (float[]){-0.0f, -1, -2, -3, -4, -5}));
	CU_ASSERT_EQUAL(n, 1);
	om_variable_free(y);
	om_variable_free(shape);
	eager_end(&g);
	CU_ASSERT_EQUAL(n, 1);
}

/* Deferred calls keep what they read. */
static void
of_deferred_readers(void)
{
	struct graph g = eager_start(NULL);
	const int64_t four[] = {4};

	for (int k = 0; k < 4; k++) {
		int n = 0;
		struct { float *x; int *n; } owned = {malloc(4 * sizeof(float)), &n};
		const om_memory m = {.data = owned.x, .type = OM_FLOAT32, .rank = 1, .dim = four, .release = free_and_count, .arg = &owned};
		om_variable *v, *a, *b;
		for (int i = 0; i < 4; i++)
			owned.x[i] = (float)(i + k);
		CU_ASSERT_FATAL(is_ok(g.s, om_variable_wrap(g.e, &m, &v)));
		a = eager_op(&g, "Neg", v, NULL);
		b = eager_op(&g, "Add", a, v);
		om_variable_free(v);
		om_variable_free(a);
		CU_ASSERT(eager_holds(&g, b, 4, (float[]){0, 0, 0, 0}));
		CU_ASSERT_EQUAL(n, 1);
		om_variable_free(b);
	}
	CU_ASSERT_EQUAL(om_eager_get_stats(g.e)->replays, 2);
	eager_end(&g);
}

static void
of_strides(void)
{
	struct graph g = eager_start(NULL);
	float x[12];
	const int64_t dim[] = {2, 3}, transposed[] = {1, 2}, backward[] = {-6, 2}, one[] = {1, 3}, any[] = {77, 1}, zero[] = {0, 0};
	const om_tensor *t;
	int n = 0;

	for (int k = 0; k < 12; k++)
		x[k] = (float)k;
	const struct { const om_memory m; float want[6]; int count; bool in_place; } cases[] = {
		{memory_of(x, 2, dim, transposed, &n), {0, 2, 4, 1, 3, 5}, 6, false},
		{memory_of(x + 6, 2, dim, backward, &n), {6, 8, 10, 0, 2, 4}, 6, false},
		{memory_of(x, 2, dim, zero, &n), {0, 0, 0, 0, 0, 0}, 6, false},
		{memory_of(x + 1, 2, one, any, &n), {1, 2, 3}, 3, true},
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		om_variable *v;
		n = 0;
		CU_ASSERT_FATAL(is_ok(g.s, om_variable_wrap(g.e, &cases[k].m, &v)));
		CU_ASSERT_EQUAL(n, !cases[k].in_place);
		CU_ASSERT(eager_holds(&g, v, cases[k].count, cases[k].want));
		CU_ASSERT(om_variable_read(v, &t) == OM_OK && (t->data == cases[k].m.data) == cases[k].in_place);
		om_variable_free(v);
		CU_ASSERT_EQUAL(n, 1);
	}
	eager_end(&g);
}

static void
of_refused_memory(void)
{
	struct graph g = eager_start(NULL);
	const int64_t dim[] = {2, 2}, negative[] = {2, -1};
	float x[5] = {0};
	om_variable *v;
	int n = 0;
	om_memory m = memory_of(x, 2, dim, NULL, &n);

	m.device = "cuda";
	CU_ASSERT(is_told(g.s, om_variable_wrap(g.e, &m, &v), OM_UNSUPPORTED, "cuda"));
	m = memory_of(x, 2, negative, NULL, &n);
	CU_ASSERT(is_told(g.s, om_variable_wrap(g.e, &m, &v), OM_USAGE, "known shape"));
	m = memory_of(x, 13, dim, NULL, &n);
	CU_ASSERT(is_told(g.s, om_variable_wrap(g.e, &m, &v), OM_USAGE, "13 dims"));
	m = memory_of(NULL, 2, dim, NULL, &n);
	CU_ASSERT(is_told(g.s, om_variable_wrap(g.e, &m, &v), OM_USAGE, "elements"));
	m = memory_of(x, 2, dim, NULL, &n);
	m.type = OM_STRING;
	CU_ASSERT(is_told(g.s, om_variable_wrap(g.e, &m, &v), OM_UNSUPPORTED, "string"));
	CU_ASSERT_EQUAL(n, 0);
	m = memory_of(x, 1, dim, NULL, &n);
	m.data = (char *)x + 1;  /* not aligned: copied */
	CU_ASSERT(is_ok(g.s, om_variable_wrap(g.e, &m, &v)));
	CU_ASSERT(eager_holds(&g, v, 2, (float[]){0, 0}));
	CU_ASSERT_EQUAL(n, 1);
	om_variable_free(v);
	eager_end(&g);
}

/* What is lent outlives the variable and its context. */
static void
of_lent_memory(void)
{
	struct graph g = eager_start(NULL);
	const int64_t dim[] = {2, 2};
	const float x[] = {1, -2, 3, -4};
	om_variable *v = eager_floats(g.e, 2, dim, x), *y = eager_op(&g, "Neg", v, NULL);
	om_memory m;

	CU_ASSERT_FATAL(is_ok(g.s, om_variable_lend(y, &m)));
	om_variable_free(y);
	om_variable_free(v);
	y = eager_floats(g.e, 2, dim, x);  /* does not take the memory that is lent */
	CU_ASSERT_EQUAL(((const float *)m.data)[1], 2);
	om_variable_free(y);
	eager_end(&g);
	CU_ASSERT_EQUAL(m.rank, 2);
	CU_ASSERT_EQUAL(m.stride[0], 2);
	CU_ASSERT_EQUAL(((const float *)m.data)[3], 4);
	m.release(m.arg);
}

/* There and back, through DLPack: the same memory. */
static void
of_dlpack(void)
{
	struct graph g = eager_start(NULL), other = eager_start(NULL);
	const int64_t dim[] = {2, 2};
	const float x[] = {1, -2, 3, -4};
	om_variable *v = eager_floats(g.e, 2, dim, x), *w, *y;
	struct DLManagedTensor *m;
	const om_tensor *from, *to;

	CU_ASSERT_FATAL(is_ok(g.s, om_variable_to_dlpack(v, &m)));
	CU_ASSERT_FATAL(is_ok(other.s, om_variable_from_dlpack(other.e, m, &w)));
	CU_ASSERT(om_variable_read(v, &from) == OM_OK && om_variable_read(w, &to) == OM_OK && from->data == to->data);
	om_variable_free(v);
	eager_end(&g);
	y = eager_op(&other, "Neg", w, NULL);
	om_variable_free(w);
	CU_ASSERT(eager_holds(&other, y, 4, (float[]){-1, 2, -3, 4}));
	om_variable_free(y);
	CU_ASSERT_EQUAL(om_eager_get_stats(other.e)->variables, 0);
	eager_end(&other);
}

static CU_TestInfo tests[] = {
	{"elements in place", of_elements_in_place},
	{"deferred readers", of_deferred_readers},
	{"strides", of_strides},
	{"refused memory", of_refused_memory},
	{"lent memory", of_lent_memory},
	{"DLPack", of_dlpack},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("eager memory", tests);
