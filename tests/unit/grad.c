/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of small programs, against central differences. */
#include <config.h>

#include <math.h>
#include <stdio.h>

#include "onnxmem/builder.h"
#include "onnxmem/autodiff.h"
#include "ir/query.h"
#include "tests/bind.h"
#include "tests/fixtures.h"
#include "unit.h"
#include "ir/edit.h"

enum { MOST = 8 };

struct trial {
	bench b;
	uint32_t n;                /* inputs, all of them wanted, of float64 */
	om_tensor in[MOST];
	om_value *grad[MOST];
	double step, slack;        /* of the differences */
	bool functions;
};

static om_status
trial_parse(struct trial *t, const char *text)
{
	*t = (struct trial){.b = bench_open()};
	return bench_plan(&t->b, text, "inline,shapes");
}

/* The last result is the loss. */
static om_status
trial_backward(struct trial *t)
{
	om_block *b = t->b.p->first;

	t->n = b->nparam;
	om_backward w = OM_BACKWARD(.loss = b->result[b->nresult - 1], .wrt = b->param, .nwrt = t->n, .grad = t->grad,
		.functions = t->functions);
	OM_TRY(om_prog_backward(t->b.s, t->b.p, &w));
	for (uint32_t k = 0; k < t->n; k++)
		if (t->grad[k])
			om_block_add_result(b, t->grad[k]);
	OM_TRY(om_verify(t->b.s, t->b.p));
	return om_host_run(t->b.h, t->b.p, "shapes");
}

static om_value *
one_op(struct trial *t, const char *type, om_value *a, om_value *b)
{
	om_block *main = t->b.p->first;
	om_op *op = om_op_new(t->b.p, "", type, 0, b ? 2 : 1, 1);
	om_value *out = om_value_fresh(t->b.p, main, "twice");

	om_op_set_in(op, 0, a);
	if (b)
		om_op_set_in(op, 1, b);
	else
		om_op_add_int(t->b.p, op, "keepdims", 0);
	om_op_set_out(op, 0, out);
	om_op_append(main, op);
	return out;
}

/* The gradients become part of the loss: the squares of all of them, as a penalty is made. */
static om_status
trial_penalize(struct trial *t)
{
	om_block *b = t->b.p->first;
	om_value *sum = NULL;

	t->n = b->nparam;
	om_backward w = OM_BACKWARD(.loss = b->result[b->nresult - 1], .wrt = b->param, .nwrt = t->n, .grad = t->grad,
		.functions = t->functions);
	OM_TRY(om_prog_backward(t->b.s, t->b.p, &w));
	for (uint32_t k = 0; k < t->n; k++) {
		if (!t->grad[k])
			continue;
		om_value *one = one_op(t, "ReduceSum", one_op(t, "Mul", t->grad[k], t->grad[k]), NULL);
		sum = sum ? one_op(t, "Add", sum, one) : one;
	}
	CU_ASSERT_PTR_NOT_NULL_FATAL(sum);
	om_block_clear_results(b);
	om_block_add_result(b, sum);
	OM_TRY(om_verify(t->b.s, t->b.p));
	return om_host_run(t->b.h, t->b.p, "shapes");
}

static om_status
trial_run(struct trial *t, uint64_t n)
{
	for (uint32_t k = 0; k < t->n; k++) {
		t->in[k] = (om_tensor){.type = OM_FLOAT64, .shape = t->b.p->first->param[k]->shape};
		for (int d = 0; d < t->in[k].shape.rank; d++)
			if (t->in[k].shape.dim[d] < 0)
				t->in[k].shape.dim[d] = (int64_t)n;
		const int64_t count = om_shape_count(&t->in[k].shape);
		double *v = OM_NEWN(t->b.mem, double, (size_t)count + 1);
		for (int64_t i = 0; i < count; i++)
			v[i] = sin(1.0 + (double)i * 1.7 + k) + 0.05;
		t->in[k].data = v;
	}
	OM_TRY(bind_rest(t->b.s, t->b.p, (int64_t)n));
	OM_TRY(om_host_run(t->b.h, t->b.p, "shapes,fold"));
	OM_TRY(bench_exec(&t->b, &ways[SEPARATE]));
	return bench_run(&t->b, t->in, t->n);
}

static double
loss(struct trial *t)
{
	if (om_exec_run(t->b.e) != OM_OK)
		return NAN;
	return *(const double *)om_exec_result(t->b.e, 0)->data;
}

static bool
agrees(struct trial *t, uint32_t k, int64_t i, double got)
{
	double *x = (double *)t->in[k].data + i;
	const double at = *x, h = t->step;

	*x = at + h;
	const double up = loss(t);
	*x = at - h;
	const double down = loss(t);
	*x = at;
	const double want = (up - down) / (2 * h);
	if (fabs(want - got) <= t->slack * (1 + fabs(want)))
		return true;
	printf("# input %u, element %d: %.9g, but by differences %.9g\n", k, (int)i, got, want);
	return false;
}

static void
check_gradients(struct trial *t)
{
	uint32_t at = 1;

	for (uint32_t k = 0; k < t->n; k++) {
		const int64_t n = om_shape_count(&t->in[k].shape);
		if (t->grad[k] && om_exec_run(t->b.e) != OM_OK) {
			CU_FAIL("does not run");
			return;
		}
		double *got = OM_NEWN(t->b.mem, double, (size_t)n + 1);
		if (t->grad[k]) {
			const om_tensor *r = om_exec_result(t->b.e, at++);
			CU_ASSERT_EQUAL_FATAL(om_shape_count(&r->shape), n);
			memcpy(got, r->data, (size_t)n * sizeof *got);
		}
		for (int64_t i = 0; i < n; i++)
			CU_ASSERT(agrees(t, k, i, got[i]));
	}
}

static void
check_form(const char *text, uint64_t n, double step, double slack, bool twice, bool functions)
{
	struct trial t;

	om_status st = trial_parse(&t, text);
	t.functions = functions;
	t.step = step;
	t.slack = slack;
	if (st == OM_OK && twice)
		st = trial_penalize(&t);
	if (st == OM_OK)
		st = trial_backward(&t);
	if (st == OM_OK)
		st = trial_run(&t, n);
	if (st == OM_OK) {
		check_gradients(&t);
	} else {
		printf("# %s\n", om_message(t.b.s));
		CU_FAIL("no gradients");
	}
	bench_close(&t.b);
}

/* In standard operators, and with what has one in ops of its own. */
static void
check(const char *text, uint64_t n, double step, double slack, bool twice)
{
	check_form(text, n, step, slack, twice, false);
	check_form(text, n, step, slack, twice, true);
}

void
unit_grad_check_within(const char *text, uint64_t n, double step, double slack)
{
	check(text, n, step, slack, false);
}

void
unit_grad_check(const char *text, uint64_t n)
{
	unit_grad_check_within(text, n, 1e-5, 1e-6);
}

void
unit_grad_check_twice(const char *text, uint64_t n)
{
	check(text, n, 1e-5, 1e-6, true);
}

#define HEAD "program \"t\" ir 8 opset 17\n"

/* Sums over rows that were repeated; a value with three users. */
static void
of_a_perceptron(void)
{
	static const char text[] = HEAD
		"^main(%x: float64[N,3], %w: float64[3,4], %b: float64[4], %v: float64[4,2]) {\n"
		"	%a = MatMul(%x, %w)\n"
		"	%c = Add(%a, %b)\n"
		"	%h = Relu(%c)\n"
		"	%o = MatMul(%h, %v)\n"
		"	%s = Mul(%o, %o)\n"
		"	%l = ReduceMean(%s) {keepdims = 0}\n"
		"	%m = ReduceSum(%h) {keepdims = 0}\n"
		"	%z = Add(%l, %m)\n"
		"	ret %z\n"
		"}\n";
	unit_grad_check(text, 5);
	unit_grad_check(text, 1);
}

static void
of_products_of_stacks(void)
{
	unit_grad_check(HEAD
		"^main(%a: float64[2,1,3,4], %b: float64[3,4,2], %c: float64[2], %d: float64[3]) {\n"
		"	%e = MatMul(%a, %b)\n"
		"	%f = MatMul(%e, %c)\n"
		"	%i = MatMul(%d, %e)\n"
		"	%j = MatMul(%f, %d)\n"
		"	%k = Mul(%j, %j)\n"
		"	%l = Mul(%i, %i)\n"
		"	%m = ReduceSum(%k) {keepdims = 0}\n"
		"	%n = ReduceMean(%l) {keepdims = 0}\n"
		"	%o = MatMul(%d, %d)\n"
		"	%p = Add(%m, %n)\n"
		"	%q = Mul(%p, %o)\n"
		"	ret %q\n"
		"}\n", 1);
}

/* Which dims were repeated shows only in the run. */
static void
of_broadcasts_at_run(void)
{
	static const char text[] = HEAD
		"^main(%a: float64[A,3], %b: float64[B,1,C]) {\n"
		"	%c = Mul(%a, %b)\n"
		"	%d = Add(%c, %a)\n"
		"	%e = Mul(%d, %d)\n"
		"	%l = ReduceSum(%e) {keepdims = 0}\n"
		"	ret %l\n"
		"}\n";
	unit_grad_check(text, 1);
	unit_grad_check(text, 3);
}

/* The mask is drawn the same in every run here: what is dropped gets nothing. */
static void
of_what_is_dropped(void)
{
	static const char known[] = HEAD
		"^main(%a: float64[4,5]) {\n"
		"	%r = const float32[] {0.25}\n"
		"	%t = const bool[] {1}\n"
		"	%d = Dropout(%a, %r, %t) {seed = 7}\n"
		"	%e = Mul(%d, %d)\n"
		"	%l = ReduceSum(%e) {keepdims = 0}\n"
		"	ret %l\n"
		"}\n";
	unit_grad_check(known, 1);
}

/* What only the run says: the dims, which axes are one, whether to drop, where to cut. */
static void
of_what_the_run_says(void)
{
	static const char text[] = HEAD
		"^main(%a: float64[N,4]) {\n"
		"	%s = Shape(%a)\n"
		"	%z = const int64[1] {0}\n"
		"	%o = const int64[1] {1}\n"
		"	%n = Slice(%s, %z, %o)\n"
		"	%h = Sub(%n, %o)\n"
		"	%b = Slice(%a, %z, %h, %z)\n"
		"	%c = Slice(%a, %o, %n, %z)\n"
		"	%m = Mul(%b, %c)\n"
		"	%k = Concat(%m, %a) {axis = 0}\n"
		"	%q = Softmax(%k) {axis = 0}\n"
		"	%p = Mul(%q, %k)\n"
		"	%l = ReduceMean(%p) {keepdims = 0}\n"
		"	ret %l\n"
		"}\n";
	unit_grad_check(text, 5);
}

static void
fails(const char *text, const char *says)
{
	struct trial t;

	CU_ASSERT_EQUAL_FATAL(trial_parse(&t, text), OM_OK);
	CU_ASSERT_NOT_EQUAL(trial_backward(&t), OM_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(om_message(t.b.s), says));
	if (!strstr(om_message(t.b.s), says))
		printf("# %s\n", om_message(t.b.s));
	bench_close(&t.b);
}

static void
what_cannot_be_is_said(void)
{
	fails(HEAD
		"^main(%a: float64[3]) {\n"
		"	%b: float64[3] = domain::Nothing(%a)\n"
		"	%l = ReduceSum(%b) {keepdims = 0}\n"
		"	ret %l\n"
		"}\n", "the operator is unknown");
	fails(HEAD
		"^main(%a: float64[3]) {\n"
		"	%b = Relu(%a)\n"
		"	ret %b\n"
		"}\n", "cannot be a loss");
}

/* A layer that is used twice has one mean: what the first use made of it goes on. */
static void
of_a_layer_used_twice(void)
{
	static const char text[] = "program \"t\" ir 8 opset 17\n"
		"^net(%x: float32[4,3]) {\n"
		"	%s = const float32[3] {1.0, 2.0, 3.0}\n"
		"	%b = const float32[3] {0.0, 0.5, 0.25}\n"
		"	%m = const float32[3] {0.0, 0.0, 0.0}\n"
		"	%v = const float32[3] {1.0, 1.0, 1.0}\n"
		"	%y = BatchNormalization(%x, %s, %b, %m, %v) {training_mode = 0}\n"
		"	%z = BatchNormalization(%y, %s, %b, %m, %v) {training_mode = 0}\n"
		"	ret %z\n"
		"}\n";
	bench t = bench_open();
	om_train_options how = OM_TRAIN_OPTIONS;

	how.loss_fn = "mse";
	how.optimizer = "sgd";
	how.trains = true;
	CU_ASSERT_EQUAL_FATAL(bench_read(&t, text), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_host_run(t.h, t.p, "inline,shapes"), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_prog_add_training_step(t.s, t.p, &how), OM_OK);
	const om_op *first = om_value_find(t.p->first, "y")->def, *second = om_value_find(t.p->first, "z")->def;
	CU_ASSERT_EQUAL(first->nattr, 1);
	CU_ASSERT_EQUAL(om_attr_int(first, "training_mode"), 1);
	CU_ASSERT_EQUAL(om_attr_int(second, "training_mode"), 1);
	CU_ASSERT_PTR_EQUAL(second->in[3], first->out[1]);
	CU_ASSERT_PTR_EQUAL(second->in[4], first->out[2]);
	CU_ASSERT_STRING_EQUAL(second->out[1]->name, "m_next");
	CU_ASSERT_EQUAL(t.p->nio_alias, 4);
	CU_ASSERT_EQUAL(om_verify(t.s, t.p), OM_OK);
	bench_close(&t);
}

/* The first step of Adam is the rate, towards where the loss falls: as exactly as floats have it. */
static void
of_the_first_step_of_adam(void)
{
	static const char text[] = "program \"t\" ir 8 opset 17\n"
		"^net(%x: float32[2]) {\n"
		"	%w = const float32[2] {0.0, 0.0}\n"
		"	%y = Mul(%w, %x)\n"
		"	%l = ReduceSum(%y) {keepdims = 0}\n"
		"	ret %l\n"
		"}\n";
	const float x[2] = {3, -5};
	bench t = bench_open();
	om_train_options how = OM_TRAIN_OPTIONS;
	om_tensor in = {.type = OM_FLOAT32, .data = (void *)x};
	uint32_t k = 0;

	how.loss = "l";
	how.optimizer = "adam";
	CU_ASSERT_EQUAL_FATAL(bench_read(&t, text), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_host_run(t.h, t.p, "inline,shapes"), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_prog_add_training_step(t.s, t.p, &how), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_host_run(t.h, t.p, "shapes,fold"), OM_OK);
	CU_ASSERT_EQUAL_FATAL(bench_exec(&t, &ways[SEPARATE]), OM_OK);
	in.shape = t.p->first->param[0]->shape;
	CU_ASSERT_EQUAL(om_exec_input(t.e, 0, &in), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_exec_run(t.e), OM_OK);
	while (strcmp(t.p->first->result[k]->name, "w_next"))
		k++;
	const float *w = om_exec_result(t.e, k)->data;
	CU_ASSERT_DOUBLE_EQUAL(w[0], -how.rate, 4e-7 * how.rate);
	CU_ASSERT_DOUBLE_EQUAL(w[1], how.rate, 4e-7 * how.rate);
	bench_close(&t);
}

/* A step of a net with values `inner`, which yields its name, and `outer`, the name of an input. */
static om_status
named_step(om_session *s, const char *inner, const char *outer, const char *weight, om_prog **p)
{
	char text[2048];
	om_host *h = om_host_new(s, NULL);
	om_train_options how = OM_TRAIN_OPTIONS;

	snprintf(text, sizeof text, HEAD
		"^net(%%%s: float32[2,3], %%c: bool[]) {\n"
		"	%%%s = const float32[3,3] {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0}\n"
		"	%%%s = Relu(%%%s)\n"
		"	%%y = If(%%c) {else_branch = ^no() {\n"
		"		%%t = Neg(%%%s)\n"
		"		ret %%t\n"
		"	}, then_branch = ^yes() {\n"
		"		%%w_adam_v = MatMul(%%%s, %%%s)\n"
		"		ret %%w_adam_v\n"
		"	}}\n"
		"	ret %%y\n"
		"}\n", outer, weight, inner, outer, inner, inner, weight);
	how.loss_fn = "mse";
	how.optimizer = "adam";
	CU_ASSERT_EQUAL_FATAL(text_parse(s, text, p), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_host_run(h, *p, "inline,shapes"), OM_OK);
	const om_status st = om_prog_add_training_step(s, *p, &how);
	om_host_free(h);
	return st;
}

static bool
has_param(const om_prog *p, const char *name)
{
	for (uint32_t k = 0; k < p->first->nparam; k++)
		if (strcmp(p->first->param[k]->name, name) == 0)
			return true;
	return false;
}

/* Inputs of a step have the same names whatever the model has inside. */
static void
inner_values_yield_their_names(void)
{
	static const char *const names[] = {"label", "lr", "loss", "adam_t", "w_adam_m", "w_next", "adam_t_next"};
	static const char *const inputs[] = {"x", "c", "label", "lr", "adam_t", "w", "w_adam_m", "w_adam_v"};

	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
		om_session *s = om_session_new();
		om_prog *p;
		CU_ASSERT_EQUAL_FATAL(named_step(s, names[k], "x", "w", &p), OM_OK);
		for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
			CU_ASSERT(has_param(p, inputs[i]));
		CU_ASSERT_EQUAL(p->first->nparam, sizeof inputs / sizeof inputs[0]);
		CU_ASSERT_STRING_EQUAL(p->first->result[0]->name, "loss");
		CU_ASSERT_EQUAL(om_verify(s, p), OM_OK);
		om_prog_free(p);
		om_session_free(s);
	}
}

static void
inputs_and_weights_keep_their_names(void)
{
	static const char *const given[][3] = {
		{"lr", "w", "requires the name lr, which an input"},
		{"label", "w", "requires the name label, which an input"},
		{"x", "label", "requires the name label, which a weight"},
	};

	for (size_t k = 0; k < sizeof given / sizeof given[0]; k++) {
		om_session *s = om_session_new();
		om_prog *p;
		CU_ASSERT_EQUAL(named_step(s, "h", given[k][0], given[k][1], &p), OM_USAGE);
		CU_ASSERT_PTR_NOT_NULL(strstr(om_message(s), given[k][2]));
		om_prog_free(p);
		om_session_free(s);
	}
}

/* A cross entropy that is built on an op goes by what the op's output says of classes. */
static void
entropy_of(const char *last, const char *loss, const char *of)
{
	char text[512];
	bench t = bench_open();
	om_train_options how = OM_TRAIN_OPTIONS;

	snprintf(text, sizeof text, HEAD "^net(%%x: float32[2,3,4]) {\n"
		"	%%w = const float32[4] {1.0, 2.0, 3.0, 4.0}\n"
		"	%%z = Mul(%%x, %%w)\n"
		"	%%y = %s\n"
		"	ret %%y\n"
		"}\n", last);
	how.loss_fn = "cross-entropy";
	CU_ASSERT_EQUAL_FATAL(bench_read(&t, text), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_host_run(t.h, t.p, "inline,shapes"), OM_OK);
	CU_ASSERT_EQUAL_FATAL(om_prog_add_training_step(t.s, t.p, &how), OM_OK);
	const om_op *op = t.p->first->result[0]->def;
	CU_ASSERT_STRING_EQUAL(op->type, loss);
	CU_ASSERT_STRING_EQUAL(op->in[0]->name, of);
	bench_close(&t);
}

static void
entropies_go_by_rows(void)
{
	entropy_of("Softmax(%z) {axis = 1}", "SoftmaxCrossEntropyLoss", "z");
	entropy_of("Softmax(%z) {axis = -2}", "SoftmaxCrossEntropyLoss", "z");
	entropy_of("Softmax(%z) {axis = 2}", "SoftmaxCrossEntropyLoss", "y");
	entropy_of("LogSoftmax(%z) {axis = 1}", "NegativeLogLikelihoodLoss", "y");
	entropy_of("Relu(%z)", "SoftmaxCrossEntropyLoss", "y");
}

static CU_TestInfo grad_tests[] = {
	{"cross entropies go by what rows say of classes", entropies_go_by_rows},
	{"inner values yield their names to a step", inner_values_yield_their_names},
	{"inputs and weights keep their names", inputs_and_weights_keep_their_names},
	{"the first step of adam", of_the_first_step_of_adam},
	{"a layer that is used twice has one mean", of_a_layer_used_twice},
	{"of a perceptron", of_a_perceptron},
	{"of products of stacks of matrices, and vectors", of_products_of_stacks},
	{"of broadcasts that only the run shows", of_broadcasts_at_run},
	{"of what is dropped", of_what_is_dropped},
	{"of what only the run says", of_what_the_run_says},
	{"what cannot be differentiated is said", what_cannot_be_is_said},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("gradients", grad_tests);
