/* SPDX-License-Identifier: Apache-2.0 */
/* A program with control flow, built by hand: a while loop, a case..of and a scan.  It is run, differentiated, and exported as
 * ONNX, from which it is loaded and run again.
 *
 *     cc control.c $(pkg-config --cflags --libs onnxmem) -o control && ./control OUT.onnx
 *
 *     root = a; while (|root^2 - a| > 0.001) root = (root + a / root) / 2
 *     y = case which of 0: root; 1: -root; else: root^2
 *     sums = running sums of the rows of x
 */
#include <stdio.h>
#include <string.h>

#include <onnxmem/autodiff.h>
#include <onnxmem/executor.h>
#include <onnxmem/onnx.h>
#include <onnxmem/pass.h>

enum { ROWS = 3, COLUMNS = 2 };

/* ---- Building. ---- */

/* Ops go to the end of block `b`. */
struct place {
	om_prog *p;
	om_block *b;
};

static om_value *
param(struct place at, const char *name, om_dtype type, int rank, const int64_t *dim)
{
	om_value *v = om_value_fresh(at.p, at.b, name);

	v->type = (om_type){.kind = OM_TENSOR, .elem = type};
	v->shape = om_shape_of(rank, dim);
	v->is_declared = true;
	om_block_add_param(at.b, v);
	return v;
}

static om_value *
constant(struct place at, om_dtype type, int rank, const int64_t *dim, const void *data, size_t bytes)
{
	om_tensor *t = OM_NEW(at.p->mem, om_tensor);

	*t = (om_tensor){.type = type, .shape = om_shape_of(rank, dim), .data = om_memdup(at.p->mem, data, bytes)};
	return om_const_new(at.p, at.b, om_value_fresh(at.p, at.b, "c")->name, t);
}

static om_value *
number(struct place at, float x)
{
	return constant(at, OM_FLOAT32, 0, NULL, &x, sizeof x);
}

/* An op in no block yet, with its outputs. */
static om_op *
new_op(struct place at, const char *type, uint32_t nin, om_value *const *in, uint32_t nout)
{
	om_op *op = om_op_new(at.p, "", type, 0, nin, nout);

	for (uint32_t k = 0; k < nin; k++)
		om_op_set_in(op, k, in[k]);
	for (uint32_t k = 0; k < nout; k++)
		om_op_set_out(op, k, om_value_fresh(at.p, at.b, type));
	return op;
}

static om_value *
op(struct place at, const char *type, om_value *a, om_value *b)
{
	om_op *o = new_op(at, type, b ? 2 : 1, (om_value *[]){a, b}, 1);

	om_op_append(at.b, o);
	return o->out[0];
}

/* A body of an op, as its attribute `name`. */
static struct place
body(struct place at, om_op *o, const char *name)
{
	om_block *b = om_block_new(at.p, o, name, name);

	om_op_add_attr(at.p, o, &(om_attr){.name = name, .kind = OM_ATTR_GRAPH, .n = 1, .g = &b});
	return (struct place){at.p, b};
}

static om_value *
is_apart(struct place at, om_value *root, om_value *a)
{
	return op(at, "Greater", op(at, "Abs", op(at, "Sub", op(at, "Mul", root, root), a), NULL), number(at, 0.001f));
}

static om_value *
square_root(struct place at, om_value *a)
{
	const int64_t most = 50;
	om_value *in[] = {constant(at, OM_INT64, 0, NULL, &most, sizeof most), is_apart(at, a, a), a};
	om_op *loop = new_op(at, "Loop", 3, in, 1);
	const struct place b = body(at, loop, "body");

	param(b, "i", OM_INT64, 0, NULL);
	param(b, "go", OM_BOOL, 0, NULL);
	om_value *root = param(b, "root", OM_FLOAT32, 0, NULL);
	om_value *next = op(b, "Mul", op(b, "Add", root, op(b, "Div", a, root)), number(b, 0.5f));
	om_block_add_result(b.b, is_apart(b, next, a));
	om_block_add_result(b.b, next);
	om_op_append(at.b, loop);
	return loop->out[0];
}

static om_value *
is_case(struct place at, om_value *which, int64_t n)
{
	return op(at, "Equal", which, constant(at, OM_INT64, 0, NULL, &n, sizeof n));
}

/* A case..of is a chain of If. */
static om_value *
choose(struct place at, om_value *which, om_value *root)
{
	om_value *first = is_case(at, which, 0);
	om_op *outer = new_op(at, "If", 1, &first, 1);
	const struct place zero = body(at, outer, "then_branch"), more = body(at, outer, "else_branch");
	om_value *second = is_case(more, which, 1);
	om_op *inner = new_op(more, "If", 1, &second, 1);
	const struct place one = body(more, inner, "then_branch"), rest = body(more, inner, "else_branch");

	om_block_add_result(zero.b, op(zero, "Identity", root, NULL));
	om_block_add_result(one.b, op(one, "Neg", root, NULL));
	om_block_add_result(rest.b, op(rest, "Mul", root, root));
	om_op_append(more.b, inner);
	om_block_add_result(more.b, inner->out[0]);
	om_op_append(at.b, outer);
	return outer->out[0];
}

static om_value *
running_sums(struct place at, om_value *x)
{
	const int64_t columns = COLUMNS;
	const float zeros[COLUMNS] = {0};
	om_value *in[] = {constant(at, OM_FLOAT32, 1, &columns, zeros, sizeof zeros), x};
	om_op *scan = new_op(at, "Scan", 2, in, 2);
	const struct place b = body(at, scan, "body");

	om_op_add_attr(at.p, scan, &OM_MAKE_INT("num_scan_inputs", 1));
	om_value *sum = param(b, "sum", OM_FLOAT32, 1, &columns), *row = param(b, "row", OM_FLOAT32, 1, &columns);
	om_value *next = op(b, "Add", sum, row);
	om_block_add_result(b.b, next);
	om_block_add_result(b.b, op(b, "Identity", next, NULL));
	om_op_append(at.b, scan);
	return scan->out[1];
}

struct built {
	om_value *a, *y, *root;
};

static struct built
build(om_prog *p)
{
	const struct place at = {p, p->first};
	const int64_t dim[] = {ROWS, COLUMNS};
	om_value *a = param(at, "a", OM_FLOAT32, 0, NULL), *which = param(at, "which", OM_INT64, 0, NULL);
	om_value *x = param(at, "x", OM_FLOAT32, 2, dim), *root = square_root(at, a), *y = choose(at, which, root);

	om_block_add_result(p->first, y);
	om_block_add_result(p->first, running_sums(at, x));
	return (struct built){a, y, root};
}

/* ---- Running. ---- */

static om_status
run(om_session *s, om_prog *p, const char *what)
{
	const om_shape dim = om_shape_of(2, (int64_t[]){ROWS, COLUMNS});
	float a = 2, x[ROWS * COLUMNS] = {1, 2, 3, 4, 5, 6};
	om_host *h = om_host_new(s, NULL);
	om_exec *e = NULL;
	om_status st = om_host_run(h, p, om_default_pipeline());

	if (st == OM_OK)
		st = om_exec_new(s, p, p->plan, NULL, &e);
	for (int64_t which = 0; which < 3 && st == OM_OK; which++) {
		om_exec_input(e, 0, &(om_tensor){.type = OM_FLOAT32, .shape = om_shape_of(0, NULL), .data = &a});
		om_exec_input(e, 1, &(om_tensor){.type = OM_INT64, .shape = om_shape_of(0, NULL), .data = &which});
		om_exec_input(e, 2, &(om_tensor){.type = OM_FLOAT32, .shape = dim, .data = x});
		st = om_exec_run(e);
		printf("%s: case %d:", what, (int)which);
		for (uint32_t k = 0; k < p->first->nresult && st == OM_OK; k++) {
			const om_tensor *t = om_exec_result(e, k);
			for (int64_t i = 0; i < om_shape_count(&t->shape); i++)
				printf(" %.3f", (double)((const float *)t->data)[i]);
		}
		printf("\n");
	}
	om_exec_free(e);
	om_host_free(h);
	return st;
}

/* The gradient of the case by `a` becomes a result. */
static om_status
differentiate(om_session *s, om_prog *p, const struct built *b)
{
	om_host *h = om_host_new(s, NULL);
	om_value *a = b->a, *grad = NULL;
	const om_backward back = OM_BACKWARD(.loss = b->y, .wrt = &a, .nwrt = 1, .grad = &grad);
	om_status st = om_host_run(h, p, "inline,shapes");

	if (st == OM_OK)
		st = om_prog_backward(s, p, &back);
	if (st == OM_OK)
		om_block_add_result(p->first, grad);
	om_host_free(h);
	return st;
}

static om_status
build_and_export(om_session *s, const char *path)
{
	om_model *m = NULL;
	om_prog *p = NULL;
	om_status st = om_model_empty(s, "control", 18, &m);

	if (st == OM_OK)
		st = om_model_import(s, m, &p);
	if (st == OM_OK) {
		const struct built b = build(p);
		st = om_verify(s, p);
		if (st == OM_OK)
			st = differentiate(s, p, &b);
	}
	if (st == OM_OK)
		st = om_model_update(s, m, p);
	if (st == OM_OK)
		st = om_model_save(s, m, path);
	if (st == OM_OK)
		st = run(s, p, "built");
	om_prog_free(p);
	om_model_free(m);
	return st;
}

static om_status
load_and_run(om_session *s, const char *path)
{
	om_model *m = NULL;
	om_prog *p = NULL;
	om_status st = om_model_load(s, path, &m);

	if (st == OM_OK)
		st = om_model_import(s, m, &p);
	if (st == OM_OK)
		st = run(s, p, "loaded");
	om_prog_free(p);
	om_model_free(m);
	return st;
}

int
main(int argc, char **argv)
{
	om_session *s = om_session_new();
	om_status st = argc == 2 ? build_and_export(s, argv[1]) : om_fail(s, OM_USAGE, "usage: control OUT.onnx");

	if (st == OM_OK)
		st = load_and_run(s, argv[1]);
	if (st != OM_OK)
		fprintf(stderr, "%s\n", om_message(s));
	om_session_free(s);
	return om_status_exit(st);
}
