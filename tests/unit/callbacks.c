/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the caller as operators, with gradients of their own: in a dynamic graph and in programs. */
#include <config.h>

#include <math.h>
#include <stdlib.h>

#include "eager.h"
#include "eager/eager_internal.h"
#include "onnxmem/autodiff.h"
#include "onnxmem/binding.h"
#include "onnxmem/builder.h"

static const int64_t four[] = {4};
static const float x4[] = {-2, -0.5f, 0.25f, 3}, clamped[] = {-1, -0.5f, 0.25f, 1};

/* How often the functions were called. */
struct counts {
	int run, backward, released;
	bool fails;
};

/* Clamp: into [-1, 1]. */
static om_status
clamp(om_callback_call *c)
{
	struct counts *n = c->arg;
	const float *x = c->in[0].data;
	float *y = c->out[0].data;

	n->run++;
	if (n->fails)
		return om_fail(c->session, OM_RUN, "clamp has a bad day");
	for (int64_t k = 0; k < om_shape_count(&c->in[0].shape); k++)
		y[k] = fmaxf(-1, fminf(1, x[k]));
	return OM_OK;
}

/* Where it does not clamp, the gradient passes, tenfold: unlike what differences would give. */
static om_status
clamp_backward(om_callback_call *c)
{
	struct counts *n = c->arg;
	const float *x = c->in[0].data, *dy = c->in[2].data;
	float *dx = c->out[0].data;

	n->backward++;
	CU_ASSERT(c->nin == 3 && c->nout == 1 && c->in[1].type == OM_UNDEFINED);
	for (int64_t k = 0; k < om_shape_count(&c->in[0].shape); k++)
		dx[k] = fabsf(x[k]) < 1 ? 10 * dy[k] : 0;
	return OM_OK;
}

/* Exp2 of input 0, plus input 1, whose first element is also output 1; input 2 are integers that do nothing. */
static om_status
pair_infer(om_callback_call *c)
{
	c->out[0].type = c->out[1].type = c->in[0].type;
	c->out[0].shape = c->in[0].shape;
	c->out[1].shape = om_shape_of(0, NULL);
	return OM_OK;
}

static om_status
pair(om_callback_call *c)
{
	const float *a = c->in[0].data, *b = c->in[1].data;

	for (int64_t k = 0; c->out[0].data && k < om_shape_count(&c->in[0].shape); k++)
		((float *)c->out[0].data)[k] = exp2f(a[k]) + b[k];
	if (c->out[1].data)
		*(float *)c->out[1].data = b[0];
	return OM_OK;
}

/* No element of an input is read: only output 0, and gradients of the outputs that have one. */
static om_status
pair_backward(om_callback_call *c)
{
	struct counts *n = c->arg;
	const float *y = c->in[3].data, *dy = c->in[5].data, *dz = c->in[6].data;

	n->backward++;
	CU_ASSERT(c->nin == 7 && c->nout == 3 && c->in[0].type == OM_UNDEFINED && c->in[1].type == OM_UNDEFINED && !c->out[2].data);
	for (uint32_t i = 0; i < 2; i++)
		for (int64_t k = 0; c->out[i].data && k < om_shape_count(&c->out[i].shape); k++)
			((float *)c->out[i].data)[k] = (dy ? dy[k] * (i ? 1 : y[k]) : 0) + (i && dz && k == 0 ? *dz : 0);
	return OM_OK;
}

/* A number that is another one in each call. */
static om_status
count_infer(om_callback_call *c)
{
	c->out[0].type = OM_FLOAT32;
	c->out[0].shape = om_shape_of(0, NULL);
	return OM_OK;
}

static om_status
count(om_callback_call *c)
{
	*(float *)c->out[0].data = (float)++((struct counts *)c->arg)->run;
	return OM_OK;
}

static void
released(void *arg)
{
	((struct counts *)arg)->released++;
}

static om_callbacks *
functions(om_session *s, struct counts *n)
{
	om_callbacks *all;
	const om_callback list[] = {
		OM_CALLBACK(.name = "my:Clamp", .nin = 1, .nout = 1, .is_pure = true, .run = clamp, .backward = clamp_backward,
			.backward_inputs = 1, .arg = n, .release = released),
		OM_CALLBACK(.name = "my:Pair", .nin = 3, .nout = 2, .is_pure = true, .infer = pair_infer, .run = pair,
			.backward = pair_backward, .backward_outputs = 1, .arg = n),
		OM_CALLBACK(.name = "my:Count", .nout = 1, .infer = count_infer, .run = count, .arg = n),
		OM_CALLBACK(.name = "my:Step", .nin = 1, .nout = 1, .is_pure = true, .run = clamp, .arg = n),
	};

	CU_ASSERT_FATAL(is_ok(s, om_callbacks_new(s, &all)));
	for (size_t k = 0; k < sizeof list / sizeof *list; k++)
		CU_ASSERT_FATAL(is_ok(s, om_callbacks_add(s, all, &list[k])));
	return all;
}

struct with {
	struct graph g;
	om_callbacks *all;
	struct counts n;
};

/* As eager_start(), with these functions. */
static void
start(struct with *w, om_eager_options o)
{
	*w = (struct with){.g.s = om_session_new()};
	o.callbacks = w->all = functions(w->g.s, &w->n);
	CU_ASSERT_FATAL(is_ok(w->g.s, om_eager_new(w->g.s, &o, &w->g.e)));
}

static void
end(struct with *w)
{
	CU_ASSERT_EQUAL(om_eager_get_stats(w->g.e)->variables, 0);
	om_eager_free(w->g.e);
	om_callbacks_free(w->all);
	CU_ASSERT_EQUAL(w->n.released, 1);
	om_session_free(w->g.s);
}

/* sum(clamp(2 x)^2) by x: 10 * 2 * 2 * 2 x where |2 x| < 1. */
static void
train(struct with *w)
{
	struct graph *g = &w->g;
	om_variable *x = eager_floats(g->e, 1, four, x4), *grad;

	om_variable_watch(x);
	om_eager_record(g->e, true);
	om_variable *t = eager_op(g, "Add", x, x), *y = eager_op(g, "my:Clamp", t, NULL), *sq = eager_op(g, "Mul", y, y);
	om_variable *loss = eager_op(g, "ReduceSum", sq, NULL);
	om_eager_record(g->e, false);
	om_variable *rest[] = {t, y, sq};
	om_variables_free(rest, 3);
	CU_ASSERT_FATAL(is_ok(g->s, om_eager_gradient(g->e, loss, NULL, 1, &x, &grad)));
	CU_ASSERT(eager_holds(g, grad, 4, (float[]){0, 0, 20, 0}));
	CU_ASSERT(eager_holds(g, loss, 1, (float[]){3.25f}));
	om_variable *last[] = {x, grad, loss};
	om_variables_free(last, 3);
}

/* The pure function is a part of the sequence, and of its planned program: called once for each run. */
static void
of_replay(void)
{
	enum { TURNS = 6 };
	struct with w;

	start(&w, (om_eager_options)OM_EAGER_OPTIONS());
	for (int k = 0; k < TURNS; k++)
		train(&w);
	CU_ASSERT_EQUAL(w.n.run, TURNS);
	CU_ASSERT_EQUAL(w.n.backward, TURNS);
	CU_ASSERT_EQUAL(om_eager_get_stats(w.g.e)->replays, TURNS - 2);
	CU_ASSERT_EQUAL(om_eager_get_stats(w.g.e)->computed, 2 * om_eager_get_stats(w.g.e)->calls / TURNS);
	om_eager_trim(w.g.e);
	end(&w);
}

static void
of_dropping(void)
{
	struct with w;

	start(&w, (om_eager_options)OM_EAGER_OPTIONS(.no_replay = true, .tape_bytes = 16));
	train(&w);
	CU_ASSERT(om_eager_get_stats(w.g.e)->recomputed > 0);
	CU_ASSERT(w.n.run > 1);  /* it is pure, and computed again */
	om_eager_trim(w.g.e);
	end(&w);
}

/* A function that is not pure ends the sequence, and is called at its place, each time. */
static void
of_impure_functions(void)
{
	struct with w;

	start(&w, (om_eager_options)OM_EAGER_OPTIONS(.result_bytes = 1000));
	om_variable *x = eager_floats(w.g.e, 1, four, x4);
	for (int k = 1; k <= 6; k++) {
		om_variable *a = eager_op(&w.g, "Neg", x, NULL), *b = eager_op(&w.g, "Neg", a, NULL), *n, *y;
		CU_ASSERT_FATAL(is_ok(w.g.s, om_eager_run(w.g.e, "my:Count", NULL, 0, NULL, 1, &n)));
		CU_ASSERT_EQUAL(w.n.run, k);
		y = eager_op(&w.g, "Mul", b, n);
		CU_ASSERT(eager_holds(&w.g, y, 4, (float[]){-2 * (float)k, -0.5f * (float)k, 0.25f * (float)k, 3 * (float)k}));
		om_variable *all[] = {a, b, n, y};
		om_variables_free(all, 4);
	}
	CU_ASSERT_EQUAL(w.n.run, 6);
	om_variable_free(x);
	om_eager_trim(w.g.e);
	end(&w);
}

/* A pure one on the same variable has its result already. */
static void
of_remembering(void)
{
	struct with w;

	start(&w, (om_eager_options)OM_EAGER_OPTIONS(.result_bytes = 1000));
	om_variable *x = eager_floats(w.g.e, 1, four, x4);
	for (int k = 0; k < 3; k++) {
		om_variable *y = eager_op(&w.g, "my:Clamp", x, NULL);
		CU_ASSERT(eager_holds(&w.g, y, 4, clamped));
		om_variable_free(y);
	}
	CU_ASSERT_EQUAL(w.n.run, 1);
	CU_ASSERT_EQUAL(om_eager_get_stats(w.g.e)->remembered, 2);
	om_variable_free(x);
	om_eager_trim(w.g.e);
	end(&w);
}

/* Gradients by all inputs that have one, of both outputs or of one; forward inputs need not be there. */
static void
of_several_outputs(void)
{
	struct with w;
	const float b2[] = {5, 6};
	const int64_t two[] = {2};

	start(&w, (om_eager_options)OM_EAGER_OPTIONS());
	for (int turn = 0; turn < 8; turn++) {
		const float a2[] = {1, (float)(turn % 2)};
		om_variable *in[] = {eager_floats(w.g.e, 1, two, a2), eager_floats(w.g.e, 1, two, b2), eager_ints(w.g.e, 1, two)}, *out[2], *grad[2];
		om_variable_watch(in[0]);
		om_variable_watch(in[1]);
		om_eager_record(w.g.e, true);
		CU_ASSERT_FATAL(is_ok(w.g.s, om_eager_run(w.g.e, "my:Pair", NULL, 3, in, 2, out)));
		om_variable *sum = turn < 4 ? eager_op(&w.g, "ReduceSum", out[0], NULL) : om_variable_keep(out[1]);
		om_variable *loss = turn < 4 ? eager_op(&w.g, "Add", sum, out[1]) : om_variable_keep(sum);
		om_eager_record(w.g.e, false);
		CU_ASSERT_FATAL(is_ok(w.g.s, om_eager_gradient(w.g.e, loss, NULL, 2, in, grad)));
		const float y1 = exp2f(a2[1]) + 6;
		CU_ASSERT(eager_holds(&w.g, grad[0], 2, turn < 4 ? (float[]){7, y1} : (float[]){0, 0}));
		CU_ASSERT(eager_holds(&w.g, grad[1], 2, turn < 4 ? (float[]){2, 1} : (float[]){1, 0}));
		om_variable *all[] = {in[0], in[1], in[2], out[0], out[1], sum, loss, grad[0], grad[1]};
		om_variables_free(all, 9);
	}
	CU_ASSERT_EQUAL(w.n.backward, 8);
	om_eager_trim(w.g.e);
	end(&w);
}

static void
of_failures(void)
{
	struct with w;
	om_variable *y, *grad;

	start(&w, (om_eager_options)OM_EAGER_OPTIONS());
	om_variable *x = eager_floats(w.g.e, 1, four, x4), *in[] = {x, x};
	CU_ASSERT(is_told(w.g.s, om_eager_run(w.g.e, "my:Clamp", NULL, 2, in, 1, &y), OM_INVALID, "the callback has 1 and 1"));
	CU_ASSERT(is_told(w.g.s, om_eager_run(w.g.e, "my:Pair", NULL, 1, in, 1, &y), OM_INVALID, "the callback has 3 and 2"));
	CU_ASSERT(is_told(w.g.s, om_eager_run(w.g.e, "my:Other", NULL, 1, in, 1, &y), OM_UNSUPPORTED, "not known"));
	w.n.fails = true;
	CU_ASSERT(is_told(w.g.s, om_eager_run(w.g.e, "my:Clamp", NULL, 1, in, 1, &y), OM_RUN, "bad day"));
	w.n.fails = false;
	for (int turn = 0; turn < 4; turn++) {  /* a replay fails, too, and what it was to compute is not there */
		const om_tensor *t;
		om_variable *a = eager_op(&w.g, "Neg", x, NULL), *b = NULL;
		w.n.fails = turn == 3;
		om_status st = om_eager_call(w.g.e, &b, "my:Clamp", NULL, a);
		if (st == OM_OK)
			st = om_variable_read(b, &t);
		CU_ASSERT(turn < 3 ? st == OM_OK : is_told(w.g.s, st, OM_RUN, "bad day"));
		om_variable_free(a);
		om_variable_free(b);
	}
	w.n.fails = false;
	om_variable_watch(x);
	om_eager_record(w.g.e, true);
	om_variable *step = eager_op(&w.g, "my:Step", x, NULL), *loss = eager_op(&w.g, "ReduceSum", step, NULL);
	om_eager_record(w.g.e, false);
	CU_ASSERT(is_told(w.g.s, om_eager_gradient(w.g.e, loss, NULL, 1, &x, &grad), OM_UNSUPPORTED, "Step"));
	om_variable *all[] = {x, step, loss};
	om_variables_free(all, 3);
	om_eager_trim(w.g.e);
	end(&w);
}

static void
of_wrong_functions(void)
{
	om_session *s = om_session_new();
	struct counts n = {0};
	om_callbacks *all = functions(s, &n);
	static const struct {
		om_callback f;
		const char *told;
	} cases[] = {
		{OM_CALLBACK(.name = "Clamp", .nin = 1, .nout = 1, .run = clamp), "DOMAIN:NAME"},
		{OM_CALLBACK(.nin = 1, .nout = 1, .run = clamp), "by nothing"},
		{OM_CALLBACK(.name = "my:New", .nin = 1, .nout = 1), "no function `run`"},
		{OM_CALLBACK(.name = "my:New", .nin = 65, .nout = 1, .run = clamp), "65 inputs"},
		{OM_CALLBACK(.name = "my:New", .nin = 1, .run = clamp), "0 outputs"},
		{OM_CALLBACK(.name = "my:New", .nout = 1, .run = clamp), "no function `infer`"},
		{OM_CALLBACK(.name = "my:New", .nin = 1, .nout = 1, .run = clamp, .backward_inputs = 2), "backward_inputs"},
		{OM_CALLBACK(.name = "my:New", .nin = 1, .nout = 1, .run = clamp, .backward_outputs = 2), "backward_outputs"},
		{OM_CALLBACK(.name = "my:Clamp", .nin = 1, .nout = 1, .run = clamp), "already"},
		{OM_CALLBACK(.name = "my:Clamp_backward", .nin = 1, .nout = 1, .run = clamp), "already"},
		{OM_CALLBACK(.name = "com.microsoft:Gelu", .nin = 1, .nout = 1, .run = clamp), "already"},
		{{.name = "my:New"}, "OM_CALLBACK()"},
	};

	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		CU_ASSERT(is_told(s, om_callbacks_add(s, all, &cases[k].f), OM_USAGE, cases[k].told));
	om_callbacks_free(all);
	om_callbacks_free(NULL);
	CU_ASSERT_EQUAL(n.released, 1);
	om_session_free(s);
}

/* ---- Programs. ---- */

static const char text[] =
	"program \"t\" ir 8 opset 17 opset my 1\n"
	"^g(%x: float32[4], %c: bool[]) {\n"
	"	%t = Add(%x, %x)\n"
	"	%y = If(%c) {then_branch = ^a() {\n"
	"		%p = my::Clamp(%t)\n"
	"		ret %p\n"
	"	}, else_branch = ^b() {\n"
	"		%n = Neg(%t)\n"
	"		ret %n\n"
	"	}}\n"
	"	%q = my::Clamp(%y)\n"
	"	%s = Mul(%q, %q)\n"
	"	%loss = ReduceSum(%s) {keepdims = 0}\n"
	"	ret %loss\n"
	"}\n";

static void
run_ways(bench *b, const float *want)
{
	const float x[] = {-2, -0.25f, 0.125f, 3};

	for (int way = 0; way < NWAY; way++) {
		bool yes = true;
		const om_tensor in[] = {floats_of(4, x), {.type = OM_BOOL, .shape = om_shape_of(0, NULL), .data = &yes}};
		CU_ASSERT_FATAL(is_ok(b->s, bench_exec(b, &ways[way])));
		for (int turn = 0; turn < 2; turn++) {
			CU_ASSERT_FATAL(is_ok(b->s, bench_run(b, in, 2)));
			CU_ASSERT(is_floats(om_exec_result(b->e, 1), 4, want));
		}
		om_exec_free(b->e);
		b->e = NULL;
	}
}

/* Planned, copied, differentiated, in a body, too: 10 * 10 * 2 * 2 * 2 x inside. */
static void
of_programs(void)
{
	bench b = bench_open();
	struct counts n = {0};
	om_callbacks *all = functions(b.s, &n);
	om_value *grad = NULL;
	om_prog *first, *copy;

	CU_ASSERT_FATAL(is_ok(b.s, bench_read(&b, text)));
	CU_ASSERT_FATAL(is_ok(b.s, om_prog_use_callbacks(b.s, b.p, all)));
	CU_ASSERT_FATAL(is_ok(b.s, om_host_run(b.h, b.p, "inline,shapes")));
	const om_backward back = OM_BACKWARD(.loss = b.p->first->result[0], .wrt = b.p->first->param, .nwrt = 1, .grad = &grad);
	CU_ASSERT_FATAL(is_ok(b.s, om_prog_backward(b.s, b.p, &back)));
	om_block_add_result(b.p->first, grad);
	CU_ASSERT_FATAL(is_ok(b.s, om_verify(b.s, b.p)));
	om_binding *none = om_binding_new();
	CU_ASSERT_FATAL(is_ok(b.s, om_prog_bind(b.s, b.p, none, &copy)));
	om_binding_free(none);
	first = b.p;
	for (int k = 0; k < 2; k++) {
		CU_ASSERT_FATAL(is_ok(b.s, om_host_run(b.h, b.p, om_default_pipeline())));
		run_ways(&b, (float[]){0, -200, 100, 0});
		b.p = copy;
	}
	CU_ASSERT_EQUAL(n.run, 2 * 2 * 2 * NWAY);
	CU_ASSERT_EQUAL(n.backward, 2 * 2 * 2 * NWAY);
	bench_close(&b);
	om_prog_free(first);
	om_callbacks_free(all);
}

static void
of_wrong_programs(void)
{
	bench b = bench_open();
	struct counts n = {0};
	om_callbacks *all = functions(b.s, &n);

	CU_ASSERT_FATAL(is_ok(b.s, bench_read(&b, "program \"t\" ir 8 opset 17 opset my 1\n^g(%x: float32[4]) {\n"
		"	%y = my::Clamp(%x, %x)\n	ret %y\n}\n")));
	CU_ASSERT_FATAL(is_ok(b.s, om_prog_use_callbacks(b.s, b.p, all)));
	CU_ASSERT(is_told(b.s, om_host_run(b.h, b.p, "inline,shapes"), OM_INVALID, "has 2 inputs and 1 outputs, the callback has 1 and 1"));
	bench_close(&b);
	om_callbacks_free(all);
}

static CU_TestInfo tests[] = {
	{"replay", of_replay},
	{"dropping", of_dropping},
	{"functions that are not pure", of_impure_functions},
	{"remembering", of_remembering},
	{"several outputs", of_several_outputs},
	{"failures", of_failures},
	{"wrong functions", of_wrong_functions},
	{"programs", of_programs},
	{"wrong programs", of_wrong_programs},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("callbacks", tests);
