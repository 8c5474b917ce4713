/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of kernels, and kernels of a caller in the executor: which one is chosen, when it is
 * prepared, and what it sees then. */
#include <config.h>

#include <stdio.h>

#include "onnxmem/kernel.h"
#include "tests/fixtures.h"
#include "unit.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"
#include "library/builtin.h"

/* ---- Choosing. ---- */

static om_status
run_nothing(om_op_context *c)
{
	(void)c;
	return OM_OK;
}

static bool
is_small(const om_op_context *c)
{
	return om_shape_count(&c->in[0].shape) < 10;
}

static const om_kernel first[] = {
	{.name = "Relu", .run = run_nothing},
	{.name = "Relu", .since = 14, .types = {OM_TYPES(OM_FLOAT64)}, .run = run_nothing},
	{.name = "Relu", .device = "sim", .run = run_nothing},
	{.domain = "made.up", .name = "Relu", .run = run_nothing},
	{.name = "Neg", .until = 12, .run = run_nothing},
	{0}
};

static const om_kernel second[] = {
	{.name = "Relu", .supports = is_small, .run = run_nothing},
	{0}
};

struct asked {
	om_op op;
	om_tensor in;
	om_value value;
	om_value *values[1];
	om_op_context c;
};

static const om_op_context *
ask(struct asked *a, const char *name, int version, om_dtype type, int64_t n)
{
	*a = (struct asked){.op = {.type = name, .domain = "", .name = "", .version = version, .nin = 1}};
	a->op.opdef = om_builtin.find("", name, version);
	a->values[0] = &a->value;
	a->op.in = a->values;
	a->in = (om_tensor){.type = type, .shape = om_shape_of(1, &n)};
	a->c = (om_op_context){.op = &a->op, .in = &a->in};
	return &a->c;
}

static void
finding(void)
{
	om_session *s = om_session_new();
	om_kernel_registry *r = om_kernel_registry_new();
	struct asked a;

	CU_ASSERT_PTR_NULL(om_kernel_find(r, "cpu", ask(&a, "Relu", 14, OM_FLOAT32, 20)));
	CU_ASSERT_EQUAL(om_kernel_register(s, r, first), OM_OK);
	CU_ASSERT_PTR_EQUAL(om_kernel_find(r, "cpu", ask(&a, "Relu", 14, OM_FLOAT32, 20)), &first[0]);
	CU_ASSERT_PTR_EQUAL(om_kernel_find(r, "cpu", ask(&a, "Relu", 14, OM_FLOAT64, 20)), &first[1]);
	CU_ASSERT_PTR_EQUAL(om_kernel_find(r, "cpu", ask(&a, "Relu", 13, OM_FLOAT64, 20)), &first[0]);
	CU_ASSERT_PTR_EQUAL(om_kernel_find(r, "sim", ask(&a, "Relu", 14, OM_FLOAT32, 20)), &first[2]);
	CU_ASSERT_PTR_NULL(om_kernel_find(r, "cpu", ask(&a, "Neg", 13, OM_FLOAT32, 20)));
	CU_ASSERT_PTR_EQUAL(om_kernel_find(r, "cpu", ask(&a, "Neg", 12, OM_FLOAT32, 20)), &first[4]);
	CU_ASSERT_EQUAL(om_kernel_register(s, r, second), OM_OK);
	CU_ASSERT_PTR_EQUAL(om_kernel_find(r, "cpu", ask(&a, "Relu", 14, OM_FLOAT32, 5)), &second[0]);
	CU_ASSERT_PTR_EQUAL(om_kernel_find(r, "cpu", ask(&a, "Relu", 14, OM_FLOAT32, 20)), &first[0]);
	om_kernel_registry_free(r);
	om_session_free(s);
}

/* More rows than the table has buckets at first. */
static void
growing(void)
{
	enum { N = 500 };
	static char name[N][8];
	static om_kernel rows[N][2];
	om_session *s = om_session_new();
	om_kernel_registry *r = om_kernel_registry_new();
	struct asked a;
	int found = 0;

	for (int k = 0; k < N; k++) {
		snprintf(name[k], sizeof name[k], "op%d", k);
		rows[k][0] = (om_kernel){.name = name[k], .run = run_nothing};
		CU_ASSERT_EQUAL(om_kernel_register(s, r, rows[k]), OM_OK);
	}
	for (int k = 0; k < N; k++)
		found += om_kernel_find(r, "cpu", ask(&a, name[k], 1, OM_FLOAT32, 1)) == rows[k];
	CU_ASSERT_EQUAL(found, N);
	CU_ASSERT_PTR_NULL(om_kernel_find(r, "cpu", ask(&a, "op500", 1, OM_FLOAT32, 1)));
	om_kernel_registry_free(r);
	om_session_free(s);
}

static void
refusing(void)
{
	static const om_kernel bad[] = {{.name = "Relu"}, {0}};
	om_session *s = om_session_new();
	om_kernel_registry *r = om_kernel_registry_new();

	CU_ASSERT_EQUAL(om_kernel_register(s, r, bad), OM_USAGE);
	CU_ASSERT_STRING_EQUAL(om_message(s), "the kernel of Relu for cpu has no run function");
	om_kernel_registry_free(r);
	om_session_free(s);
}

/* Every definition that can be run is found by its name in all its versions. */
static void
rows_are_indexed(void)
{
	int wrong = 0;

	for (const om_opdef *r = om_opdef_next(NULL); r; r = om_opdef_next(r)) {
		const char *domain = r->domain ? r->domain : "";
		wrong += om_builtin.find(domain, r->name, r->since) != r || !om_builtin.exists(domain, r->name)
			|| (r->until && om_builtin.find(domain, r->name, r->until) != r);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_PTR_NULL(om_builtin.find("", "NoSuchOperator", 1));
	CU_ASSERT_FALSE(om_builtin.exists("no.such.domain", "Relu"));
}

/* ---- In the executor. ---- */

struct seen {
	int64_t axis;
	bool has_axis;
	int runs;
};

static const om_attr_field seen_fields[] = {
	OM_FIELD(struct seen, INT, axis),
	OM_FIELD_HAS(struct seen, has_axis, "axis"),
	{0}
};

static struct {
	int prepared, runs_of_state;
	bool variable_is_hidden, constant_is_there, fields_are_right;
} seen;

static om_status
prepare_joined(om_op_context *c, void **state)
{
	const struct seen *s = *state;

	seen.prepared++;
	seen.variable_is_hidden = !c->in[0].data;
	seen.constant_is_there = c->in[1].data && *(const float *)c->in[1].data == 7;
	seen.fields_are_right = s->axis == 0 && s->has_axis;
	return OM_OK;
}

static uint64_t
one_byte(const om_op_context *c)
{
	(void)c;
	return 1;
}

static om_status
run_joined(om_op_context *c)
{
	struct seen *s = c->state;
	const int64_t n = om_shape_count(&c->in[0].shape);

	seen.runs_of_state = ++s->runs;
	*(char *)c->scratch = 0;
	memcpy(c->out[0].data, c->in[0].data, (size_t)n * sizeof(float));
	memcpy((float *)c->out[0].data + n, c->in[1].data, sizeof(float));
	return OM_OK;
}

static const om_kernel own[] = {
	{.name = "Concat", .fields = seen_fields, .state_bytes = sizeof(struct seen), .prepare = prepare_joined,
	 .workspace = one_byte, .run = run_joined},
	{0}
};

static bool
run_with(om_exec *e, float *x, int64_t n)
{
	const om_tensor t = {.type = OM_FLOAT32, .shape = om_shape_of(1, &n), .data = x};

	if (om_exec_input(e, 0, &t) != OM_OK || om_exec_run(e) != OM_OK)
		return false;
	const om_tensor *y = om_exec_result(e, 0);
	return om_shape_count(&y->shape) == n + 1 && memcmp(y->data, x, (size_t)n * sizeof *x) == 0
	    && ((const float *)y->data)[n] == 7;
}

static bool
run_own(const char *dim, const int64_t *n, int runs)
{
	static float x[] = {1, 2, 3, 4};
	bench t = bench_open();
	const om_exec_options o = OM_EXEC_OPTIONS(.no_reuse = true, .kernels = own);

	memset(&seen, 0, sizeof seen);
	const char *text = om_printf(t.mem, "program \"t\" ir 8 opset 17\n^main(%%x: float32[%s]) {\n"
		"	%%k = const float32[1] {7.0}\n	%%y = Concat(%%x, %%k) {axis = 0}\n	ret %%y\n}\n", dim);
	bool good = bench_plan(&t, text, "inline,shapes,fold") == OM_OK && bench_exec(&t, &o) == OM_OK;
	for (int k = 0; good && k < runs; k++)
		good = run_with(t.e, x, n[k]);
	bench_close(&t);
	return good;
}

static void
fixed_is_prepared_once(void)
{
	CU_ASSERT_TRUE(run_own("2", (const int64_t[]){2, 2, 2}, 3));
	CU_ASSERT_EQUAL(seen.prepared, 1);
	CU_ASSERT_EQUAL(seen.runs_of_state, 3);
	CU_ASSERT_TRUE(seen.variable_is_hidden);
	CU_ASSERT_TRUE(seen.constant_is_there);
	CU_ASSERT_TRUE(seen.fields_are_right);
}

static void
open_is_prepared_for_new_shapes(void)
{
	CU_ASSERT_TRUE(run_own("N", (const int64_t[]){2, 2, 3, 3, 3, 2}, 6));
	CU_ASSERT_EQUAL(seen.prepared, 3);
	CU_ASSERT_EQUAL(seen.runs_of_state, 1);
	CU_ASSERT_TRUE(seen.variable_is_hidden);
	CU_ASSERT_TRUE(seen.constant_is_there);
}

static CU_TestInfo registry_tests[] = {
	{"the last that fits is chosen", finding},
	{"it grows", growing},
	{"a kernel without run is refused", refusing},
	{"definitions are found by name and version", rows_are_indexed},
	{"ops of fixed shape are prepared once", fixed_is_prepared_once},
	{"ops of open shape are prepared for new shapes", open_is_prepared_for_new_shapes},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("registry of kernels", registry_tests);
