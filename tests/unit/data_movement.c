/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that move elements: folding runs their kernels on constants. */
#include <config.h>

#include "onnxmem/builder.h"
#include "tests/fixtures.h"
#include "unit.h"
#include "ir/edit.h"
#include "opdef/fold.h"
#include "opdef/op_context.h"

static bench
bench_new(int opset)
{
	bench b = bench_open();

	b.p = om_prog_new();
	b.p->opset = OM_NEW(b.p->mem, om_opset);
	b.p->opset[0] = (om_opset){"", opset};
	b.p->nopset = 1;
	om_block_new(b.p, NULL, NULL, "g");
	return b;
}

/* An int64 constant counting from `from`. */
static om_value *
count_up(bench *b, int rank, const int64_t *dims, int64_t from)
{
	om_tensor *t = OM_NEW(b->p->mem, om_tensor);

	t->type = OM_INT64;
	t->shape = om_shape_of(rank, dims);
	int64_t *v = OM_NEWN(b->p->mem, int64_t, (size_t)om_shape_count(&t->shape));
	for (int64_t k = 0; k < om_shape_count(&t->shape); k++)
		v[k] = from + k;
	t->data = v;
	return om_const_new(b->p, b->p->first, om_printf(b->p->mem, "c%u", b->p->nvalue), t);
}

static om_value *
list(bench *b, int64_t n, const int64_t *v)
{
	om_value *c = count_up(b, 1, &n, 0);
	memcpy(c->data->data, v, (size_t)n * sizeof *v);
	return c;
}

#define LIST(b, ...) list((b), (int64_t)(sizeof (int64_t[]){__VA_ARGS__} / sizeof(int64_t)), \
	(int64_t[]){__VA_ARGS__})

static om_op *
node(bench *b, const char *type, unsigned nin, om_value **in)
{
	om_op *op = om_op_new(b->p, "", type, 0, nin, 1);

	for (unsigned k = 0; k < nin; k++)
		om_op_set_in(op, k, in[k]);
	om_op_set_out(op, 0, om_value_new(b->p, b->p->first, om_printf(b->p->mem, "v%u", b->p->nvalue)));
	om_op_append(b->p->first, op);
	return op;
}

#define NODE(b, type, ...) node((b), (type), (unsigned)(sizeof (om_value *[]){__VA_ARGS__} / sizeof(om_value *)), \
	(om_value *[]){__VA_ARGS__})

/* Infer and compute; its only output. */
static om_value *
done(bench *b, om_op *op)
{
	CU_ASSERT_EQUAL(om_op_infer(b->s, b->p, op), OM_OK);
	CU_ASSERT_EQUAL(om_op_fold(b->s, b->p, op, &OM_FOLD_ANY, NULL), OM_OK);
	return op->out[0];
}

static bool
is(const om_value *v, const char *shape, size_t n, const int64_t *want)
{
	char text[128];

	if (!v->data || strcmp(om_shape_text(&v->shape, text, sizeof text), shape) != 0)
		return false;
	for (size_t k = 0; k < n; k++)
		if (((const int64_t *)v->data->data)[v->data->splat ? 0 : k] != want[k])
			return false;
	return (size_t)om_shape_count(&v->shape) == n;
}

#define IS(v, shape, ...) is((v), (shape), sizeof (int64_t[]){__VA_ARGS__} / sizeof(int64_t), \
	(int64_t[]){__VA_ARGS__})

static void
slices(void)
{
	bench b = bench_new(13);
	om_value *x = count_up(&b, 2, (int64_t[]){3, 4}, 0);
	om_op *op = NODE(&b, "Slice", x, LIST(&b, 1), LIST(&b, 3), LIST(&b, 1));
	om_view_of v;

	CU_ASSERT(IS(done(&b, op), "[3,2]", 1, 2, 5, 6, 9, 10));
	CU_ASSERT(!om_op_view(op, 0, &v));
	op = NODE(&b, "Slice", x, LIST(&b, 1), LIST(&b, INT64_MAX), LIST(&b, 0));
	CU_ASSERT(IS(done(&b, op), "[2,4]", 4, 5, 6, 7, 8, 9, 10, 11));
	CU_ASSERT(om_op_view(op, 0, &v) && v.offset == 32);
	op = NODE(&b, "Slice", x, LIST(&b, 2, 1), LIST(&b, 3, 3));
	CU_ASSERT(IS(done(&b, op), "[1,2]", 9, 10));
	CU_ASSERT(om_op_view(op, 0, &v) && v.offset == 72);
	op = NODE(&b, "Slice", x, LIST(&b, -1, 9), LIST(&b, INT64_MIN, -9), LIST(&b, 0, 1), LIST(&b, -1, -3));
	CU_ASSERT(IS(done(&b, op), "[3,2]", 11, 8, 7, 4, 3, 0));
	op = NODE(&b, "Slice", x, LIST(&b, 1), LIST(&b, INT64_MAX), LIST(&b, 1), LIST(&b, -7));
	CU_ASSERT(IS(done(&b, op), "[3,1]", 1, 5, 9));
	op = NODE(&b, "Slice", x, LIST(&b, 3), LIST(&b, 1), LIST(&b, 1));
	CU_ASSERT_EQUAL(done(&b, op)->shape.dim[1], 0);
	bench_close(&b);
}

static void
reshapes(void)
{
	bench b = bench_new(13);
	om_value *x = count_up(&b, 2, (int64_t[]){3, 4}, 0), *y = om_value_new(b.p, b.p->first, "y");
	char text[64];

	CU_ASSERT(IS(done(&b, NODE(&b, "Reshape", x, LIST(&b, 2, -1))), "[2,6]", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
	y->type.elem = OM_FLOAT32;
	y->shape = om_shape_of(3, (int64_t[]){-1, -1, 64});
	y->shape.sym[0] = "N";
	y->shape.sym[1] = "S";
	om_op *op = NODE(&b, "Reshape", y, LIST(&b, 0, -1, 8, 8));
	CU_ASSERT_EQUAL(om_op_infer(b.s, b.p, op), OM_OK);
	CU_ASSERT_STRING_EQUAL(om_shape_text(&op->out[0]->shape, text, sizeof text), "[N,S,8,8]");
	op = NODE(&b, "Reshape", x, LIST(&b, 5, -1));
	CU_ASSERT_EQUAL(om_op_infer(b.s, b.p, op), OM_SHAPE);
	CU_ASSERT_STRING_EQUAL(om_message(b.s), "Reshape (node of v7): 12 elements are not a multiple of 5");
	bench_close(&b);
}

static void
transposes(void)
{
	bench b = bench_new(13);
	const int64_t perm[] = {2, 0, 1};
	om_op *op = NODE(&b, "Transpose", count_up(&b, 3, (int64_t[]){1, 3, 2}, 0));
	om_view_of v;

	CU_ASSERT(IS(done(&b, op), "[2,3,1]", 0, 2, 4, 1, 3, 5));
	CU_ASSERT(!om_op_view(op, 0, &v));
	op = NODE(&b, "Transpose", count_up(&b, 3, (int64_t[]){3, 2, 1}, 0));
	om_op_add_ints(b.p, op, "perm", 3, perm);
	CU_ASSERT(IS(done(&b, op), "[1,3,2]", 0, 1, 2, 3, 4, 5));
	CU_ASSERT(om_op_view(op, 0, &v));
	/* Large enough for the blocks, every axis moved. */
	op = NODE(&b, "Transpose", count_up(&b, 3, (int64_t[]){5, 37, 41}, 0));
	const int64_t *to = done(&b, op)->data->data;
	bool right = true;
	for (int64_t i = 0; i < 41; i++)
		for (int64_t j = 0; j < 37; j++)
			for (int64_t k = 0; k < 5; k++)
				right &= *to++ == (k * 37 + j) * 41 + i;
	CU_ASSERT(right);
	bench_close(&b);
}

static void
repeats(void)
{
	bench b = bench_new(13);
	om_value *x = count_up(&b, 2, (int64_t[]){2, 1}, 7), *one = LIST(&b, 5);

	CU_ASSERT(IS(done(&b, NODE(&b, "Expand", x, LIST(&b, 2, 1, 3))), "[2,2,3]", 7, 7, 7, 8, 8, 8, 7, 7, 7, 8, 8, 8));
	CU_ASSERT(IS(done(&b, NODE(&b, "Tile", x, LIST(&b, 2, 2))), "[4,2]", 7, 7, 8, 8, 7, 7, 8, 8));
	om_value *big = done(&b, NODE(&b, "Expand", one, LIST(&b, 100000, 100000)));
	CU_ASSERT(big->data && big->data->splat && *(int64_t *)big->data->data == 5);
	om_value *turned = done(&b, NODE(&b, "Transpose", big));
	CU_ASSERT(turned->data && turned->data->splat);
	CU_ASSERT(IS(done(&b, NODE(&b, "Slice", turned, LIST(&b, 9, 9), LIST(&b, 10, 11))), "[1,2]", 5, 5));
	bench_close(&b);
}

static void
pads(void)
{
	bench b = bench_new(13);
	om_value *x = count_up(&b, 2, (int64_t[]){1, 3}, 1);
	om_op *op = NODE(&b, "Pad", x, LIST(&b, 1, 2, 0, -1), LIST(&b, 9));

	CU_ASSERT(IS(done(&b, op), "[2,4]", 9, 9, 9, 9, 9, 9, 1, 2));
	op = NODE(&b, "Pad", x, LIST(&b, 0, 2, 0, 3));
	om_op_add_string(b.p, op, "mode", "reflect");
	CU_ASSERT(IS(done(&b, op), "[1,8]", 3, 2, 1, 2, 3, 2, 1, 2));
	op = NODE(&b, "Pad", x, LIST(&b, 0, 1, 1, 2));
	om_op_add_string(b.p, op, "mode", "edge");
	CU_ASSERT(IS(done(&b, op), "[2,6]", 1, 1, 2, 3, 3, 3, 1, 1, 2, 3, 3, 3));
	bench_close(&b);
}

static CU_TestInfo move_tests[] = {
	{"slices", slices},
	{"reshapes", reshapes},
	{"transposes", transposes},
	{"repeats", repeats},
	{"pads", pads},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("move", move_tests);
