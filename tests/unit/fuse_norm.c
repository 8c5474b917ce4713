/* SPDX-License-Identifier: Apache-2.0 */
/* What fuse-norm recognizes computes what the decomposition does. */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena_internal.h"
#include "unit.h"

static char *
text_of(const bench *t, const char *name)
{
	char *text = om_alloc(t->mem, 1 << 14);
	FILE *from = fopen(om_printf(t->mem, "%s/tests/ir/fuse-norm/%s.ir", OM_SRCDIR, name), "r");

	CU_ASSERT_PTR_NOT_NULL_FATAL(from);
	text[fread(text, 1, (1 << 14) - 1, from)] = '\0';
	fclose(from);
	return text;
}

/* Results of the program after these passes, on inputs with a mean that is larger than the deviation. */
static void
compute(bench *t, const char *name, const char *passes)
{
	om_tensor in[2];

	CU_ASSERT_FATAL(is_ok(t->s, bench_plan(t, text_of(t, name), om_printf(t->mem, "%s,liveness,views,inplace,loops,pack", passes))));
	CU_ASSERT_FATAL(is_ok(t->s, bench_exec(t, &ways[PLANNED])));
	for (uint32_t k = 0; k < t->p->first->nparam; k++) {
		in[k] = tensor_zero(t->mem, t->p->first->param[k]->type.elem, &t->p->first->param[k]->shape);
		for (int64_t i = 0; i < om_shape_count(&in[k].shape); i++)
			set_element(&in[k], i, (double)((i * 7919 + k * 977) % 2003) / 500 - 1);
	}
	CU_ASSERT_FATAL(is_ok(t->s, bench_run(t, in, t->p->first->nparam)));
}

static void
results_are_near(void)
{
	static const char *const names[] = {"norms", "activations", "kept"};

	for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
		bench a = bench_open(), b = bench_open();
		compute(&a, names[n], "inline,shapes");
		compute(&b, names[n], "inline,shapes,fuse-norm,prune");
		CU_ASSERT(b.p->first->nop <= a.p->first->nop);
		for (uint32_t k = 0; k < a.p->first->nresult; k++) {
			const om_tensor *x = om_exec_result(a.e, k), *y = om_exec_result(b.e, k);
			bool near = om_shape_count(&x->shape) == om_shape_count(&y->shape);
			for (int64_t i = 0; near && i < om_shape_count(&x->shape); i++)
				near = fabs(element_at(x, i) - element_at(y, i)) <= 2e-5 * (1 + fabs(element_at(x, i)));
			CU_ASSERT(near);
		}
		bench_close(&a);
		bench_close(&b);
	}
}

static CU_TestInfo fuse_norm_tests[] = {
	{"what is recognized computes the same", results_are_near},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("fuse_norm", fuse_norm_tests);
