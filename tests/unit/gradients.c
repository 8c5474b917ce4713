/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of gradients: which row of an operator has which. */
#include <config.h>

#include "onnxmem/autodiff.h"
#include "unit.h"
#include "grad/grad_builder.h"
#include "opdef/op_context.h"
#include "library/builtin.h"

static const char *
domain_of(const char *domain)
{
	return domain ? domain : "";
}

static bool
is_operator_of(const om_gradient *g, const om_opdef *r)
{
	return strcmp(g->name, r->name) == 0 && strcmp(domain_of(g->domain), domain_of(r->domain)) == 0;
}

/* Versions [since, until]; until 0: no end. */
static bool
overlaps(const om_gradient *g, const om_opdef *r)
{
	return (!g->until || g->until >= r->since) && (!r->until || r->until >= g->since);
}

static bool
contains(const om_gradient *g, const om_opdef *r)
{
	return g->since <= r->since && (!g->until || (r->until && r->until <= g->until));
}

/* A gradient for a part of the versions of a row would be found by its first version alone. */
static void
every_gradient_has_its_rows(void)
{
	unsigned gradients = 0;

	for (const om_gradient *g = om_gradient_next(NULL); g; g = om_gradient_next(g), gradients++) {
		unsigned rows = 0;
		bool fits = g->rule != NULL;
		for (const om_opdef *r = om_opdef_next(NULL); r; r = om_opdef_next(r)) {
			if (!is_operator_of(g, r) || !overlaps(g, r))
				continue;
			rows++;
			fits &= contains(g, r);
		}
		if (!rows || !fits)
			printf("# the gradient of %s from version %d %s\n", g->name, g->since,
				!rows ? "is of no operator" : !g->rule ? "has no rule" : "splits the versions of a row");
		CU_ASSERT(rows && fits);
	}
	CU_ASSERT(gradients > 150);
}

static void
no_row_has_two(void)
{
	om_arena *mem = om_arena_new();
	const om_gradients *all = om_gradients_new(mem);

	for (const om_opdef *r = om_opdef_next(NULL); r; r = om_opdef_next(r)) {
		const om_gradient *only = NULL;
		unsigned n = 0;
		for (const om_gradient *g = om_gradient_next(NULL); g; g = om_gradient_next(g))
			if (is_operator_of(g, r) && overlaps(g, r)) {
				only = g;
				n++;
			}
		if (n > 1)
			printf("# %s from version %d has %u gradients\n", r->name, r->since, n);
		CU_ASSERT(n <= 1 && om_gradients_find(all, r) == only);
	}
	om_arena_free(mem);
}

static void
double_it(om_grad *g)
{
	om_grad_set_input_grad(g, 0, om_emit_scalar(g, "Mul", om_grad_output_grad(g, 0), 2));
}

/* One that is added is found before that of the library, in its versions alone. */
static void
others_are_added(void)
{
	static const om_gradient mine[] = {
		{.domain = "made.up", .name = "Halve", .since = 1, .until = 2, .rule = double_it},
		{.name = "Relu", .since = 1, .rule = double_it},
		{0}
	};
	const om_opdef halve[] = {{.domain = "made.up", .name = "Halve", .since = 2},
		{.domain = "made.up", .name = "Halve", .since = 3}, {.domain = "", .name = "Halve", .since = 1}};
	const om_opdef *relu = om_builtin.find("", "Relu", 14), *neg = om_builtin.find("", "Neg", 13);
	om_session *s = om_session_new();
	om_prog *p = om_prog_new(), *other = om_prog_new();
	om_gradients *all = om_prog_gradients(p);
	const om_gradient *first = om_gradients_find(all, relu);

	CU_ASSERT(first && first->rule != double_it);
	CU_ASSERT_PTR_NULL(om_gradients_find(all, &halve[0]));
	om_gradients_add(all, mine);
	CU_ASSERT_PTR_EQUAL(om_gradients_find(all, &halve[0]), &mine[0]);
	CU_ASSERT_PTR_NULL(om_gradients_find(all, &halve[1]));
	CU_ASSERT_PTR_NULL(om_gradients_find(all, &halve[2]));
	CU_ASSERT_PTR_EQUAL(om_gradients_find(all, relu), &mine[1]);
	CU_ASSERT_PTR_NOT_NULL(om_gradients_find(all, neg));
	CU_ASSERT_PTR_EQUAL(om_prog_gradients(p), all);
	CU_ASSERT_PTR_EQUAL(om_gradients_find(om_prog_gradients(other), relu), first);
	om_prog_free(other);
	om_prog_free(p);
	om_session_free(s);
}

static CU_TestInfo tests[] = {
	{"every gradient is of rows of an operator", every_gradient_has_its_rows},
	{"no row has two gradients", no_row_has_two},
	{"gradients from elsewhere are added to a program", others_are_added},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("registry of gradients", tests);
