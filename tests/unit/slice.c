/* SPDX-License-Identifier: Apache-2.0 */
/* Building parts of ops: what is refused, and what the new ops are.  tests/ops/slices computes them. */
#include <config.h>

#include <string.h>

#include "ir/edit.h"
#include "ir/query.h"
#include "onnxmem/slice.h"
#include "tests/fixtures.h"
#include "unit.h"

static bench
start(const char *op)
{
	bench b = bench_open();
	const char *text = om_printf(b.mem, "program \"p\" ir 8 opset 13\n^main(%%x: float32[1,4,9,9], %%w: float32[2,4,3,3], %%b: float32[2]) {\n"
		"\t%%y = %s\n\tret %%y\n}\n", op);

	CU_ASSERT_FATAL(is_ok(b.s, bench_plan(&b, text, "inline,shapes")));
	return b;
}

static om_op *
op_of(const bench *b)
{
	return om_prog_find(b->p, "y")->def;
}

/* Cut the inputs as the slice asks, and build the part. */
static om_status
build(bench *b, om_part part, om_value **made)
{
	om_op *op = op_of(b);
	om_value *in[4] = {NULL};
	om_slice s;

	if (!om_op_slice(b->mem, op, 0, part, &s))
		return OM_INVALID;
	for (uint32_t k = 0; k < op->nin; k++)
		if (om_slice_value(b->s, b->p, op->in[k], s.in[k], op, &in[k]) != OM_OK)
			return OM_INVALID;
	return om_slice_op(b->s, b->p, op, 0, part, in, op, made);
}

static bool
has_ints(const om_op *op, const char *name, size_t n, const int64_t *want)
{
	size_t count;
	const int64_t *v = om_attr_ints(op, name, &count);

	return count == n && memcmp(v, want, n * sizeof *v) == 0;
}

static void
bands_have_their_own_pads(void)
{
	static const struct { om_part part; int64_t pads[4], rows; } bands[] = {
		{{2, 0, 3}, {1, 1, 0, 1}, 4}, {{2, 3, 6}, {0, 1, 0, 1}, 5}, {{2, 6, 9}, {0, 1, 1, 1}, 4}, {{2, 0, 9}, {1, 1, 1, 1}, 9},
	};

	for (size_t k = 0; k < sizeof bands / sizeof bands[0]; k++) {
		bench b = start("Conv(%x, %w, %b) {auto_pad = \"SAME_UPPER\"}");
		om_value *made = NULL;
		CU_ASSERT_FATAL(is_ok(b.s, build(&b, bands[k].part, &made)));
		CU_ASSERT(has_ints(made->def, "pads", 4, bands[k].pads));
		CU_ASSERT(!om_attr_has(made->def, "auto_pad"));
		CU_ASSERT_EQUAL(made->def->in[0]->shape.dim[2], bands[k].rows);
		CU_ASSERT_EQUAL(made->shape.dim[2], bands[k].part.hi - bands[k].part.lo);
		CU_ASSERT(is_ok(b.s, om_verify(b.s, b.p)));
		bench_close(&b);
	}
}

static void
a_bias_is_added_once(void)
{
	bench b = start("Conv(%x, %w, %b) {pads = [1,1,1,1]}");
	om_op *op = op_of(&b);
	om_value *sum = NULL;
	om_slice s;

	for (int64_t lo = 0; lo < 4; lo += 2) {
		const om_part part = {1, lo, lo + 2};
		om_value *in[3] = {NULL}, *made;
		CU_ASSERT_FATAL(om_op_partial(b.mem, op, 0, part, &s));
		for (uint32_t k = 0; k < 2; k++)
			CU_ASSERT_FATAL(is_ok(b.s, om_slice_value(b.s, b.p, op->in[k], s.in[k], op, &in[k])));
		in[2] = op->in[2];
		CU_ASSERT_FATAL(is_ok(b.s, om_partial_op(b.s, b.p, op, 0, part, in, op, &made)));
		CU_ASSERT_EQUAL(made->def->in[2], lo == 0 ? op->in[2] : NULL);
		if (sum)
			CU_ASSERT_FATAL(is_ok(b.s, om_partial_combine(b.s, b.p, op, &s, sum, made, op, &made)));
		sum = made;
	}
	CU_ASSERT_STRING_EQUAL(sum->def->type, "Add");
	CU_ASSERT(om_shape_equal(&sum->shape, &op->out[0]->shape));
	CU_ASSERT(is_ok(b.s, om_verify(b.s, b.p)));
	bench_close(&b);
}

static void
parts_that_do_not_exist_are_refused(void)
{
	static const om_part wrong[] = {{2, 0, 10}, {2, -1, 3}, {2, 3, 3}, {4, 0, 1}, {OM_WHOLE, 0, 0}};
	bench b = start("Conv(%x, %w, %b) {pads = [1,1,1,1]}");
	om_op *op = op_of(&b);
	om_value *made[1];
	om_slice s;

	for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
		CU_ASSERT(!om_op_slice(b.mem, op, 0, wrong[k], &s));
		CU_ASSERT(is_told(b.s, om_slice_op(b.s, b.p, op, 0, wrong[k], op->in, op, made), OM_INVALID, "has no part"));
	}
	CU_ASSERT(is_told(b.s, om_slice_op(b.s, b.p, op, 0, (om_part){2, 0, 3}, op->in, op, made), OM_INVALID,
		"input 0 is not the part that is needed"));
	CU_ASSERT(is_told(b.s, om_partial_op(b.s, b.p, op, 0, (om_part){2, 0, 3}, op->in, op, made), OM_INVALID, "has no part"));
	CU_ASSERT(is_told(b.s, om_slice_value(b.s, b.p, op->in[0], (om_part){3, 4, 10}, op, made), OM_INVALID, "x has no elements"));
	bench_close(&b);
}

static void
values_are_cut_as_little_as_possible(void)
{
	bench b = start("Relu(%x)");
	om_op *op = op_of(&b);
	float one = 3;
	const om_tensor all = {.type = OM_FLOAT32, .shape = op->in[0]->shape, .splat = true, .data = &one};
	om_value *made, *splat = om_const_new(b.p, b.p->first, "c", &all);

	CU_ASSERT(is_ok(b.s, om_slice_value(b.s, b.p, op->in[0], (om_part){2, 0, 9}, op, &made)));
	CU_ASSERT_EQUAL(made, op->in[0]);
	CU_ASSERT(is_ok(b.s, om_slice_value(b.s, b.p, op->in[0], (om_part){2, 1, 9}, op, &made)));
	CU_ASSERT_STRING_EQUAL(made->def->type, "Slice");
	CU_ASSERT(is_ok(b.s, om_slice_value(b.s, b.p, splat, (om_part){2, 1, 9}, op, &made)));
	CU_ASSERT_PTR_NULL(made->def);
	CU_ASSERT(made->data->splat && made->shape.dim[2] == 8);
	CU_ASSERT(is_ok(b.s, om_verify(b.s, b.p)));
	bench_close(&b);
}

static CU_TestInfo tests[] = {
	{"bands have their own pads", bands_have_their_own_pads},
	{"a bias is added once", a_bias_is_added_once},
	{"parts that do not exist are refused", parts_that_do_not_exist_are_refused},
	{"values are cut as little as possible", values_are_cut_as_little_as_possible},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("parts of ops", tests);
