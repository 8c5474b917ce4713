/* SPDX-License-Identifier: Apache-2.0 */
/* user: gradients and kernels of a program that knows nothing but the installed headers.  Each argument is a
 * case: its status and message, or its numbers, are a line of output.  See tests/plugin.test. */
#include <stdio.h>
#include <string.h>

#include <onnxmem/autodiff.h>
#include <onnxmem/executor.h>
#include <onnxmem/kernel.h>
#include <onnxmem/pass.h>

/* Floor has the gradient 0 in the library. */
static const char text[] =
	"program \"t\" ir 8 opset 17\n"
	"^g(%x: float32[2]) {\n"
	"	%f = Floor(%x)\n"
	"	%s = Mul(%f, %f)\n"
	"	%loss = ReduceSum(%s) {keepdims = 0}\n"
	"	ret %loss\n"
	"}\n";

struct user {
	om_session *s;
	om_host *h;
	om_prog *p;
};

static om_status
start(struct user *u)
{
	FILE *in = fmemopen((void *)text, sizeof text - 1, "r");

	u->s = om_session_new();
	u->h = om_host_new(u->s, NULL);
	const om_status st = om_parse(u->s, in, "text", &u->p);
	fclose(in);
	return st == OM_OK ? om_host_run(u->h, u->p, "inline,shapes") : st;
}

/* The last result, of two elements at most, on x = {1.5, -2.5}; twice, for what is prepared once. */
static om_status
compute(struct user *u, const om_exec_options *o)
{
	static const float x[2] = {1.5f, -2.5f};
	const om_tensor t = {.type = OM_FLOAT32, .shape = om_shape_of(1, (int64_t[]){2}), .data = (void *)x};
	om_exec *e;

	OM_TRY(om_host_run(u->h, u->p, om_default_pipeline()));
	OM_TRY(om_exec_new(u->s, u->p, u->p->plan, o, &e));
	om_status st = om_exec_input(e, 0, &t);
	for (int k = 0; k < 2 && st == OM_OK; k++)
		st = om_exec_run(e);
	const om_tensor *y = st == OM_OK ? om_exec_result(e, u->p->first->nresult - 1) : NULL;
	for (int64_t k = 0; y && k < om_shape_count(&y->shape); k++)
		printf("%g ", (double)((const float *)y->data)[k]);
	om_exec_free(e);
	return st;
}

/* ---- Gradients. ---- */

static void
straight_through(om_grad *g)
{
	om_grad_set_input_grad(g, 0, om_grad_output_grad(g, 0));
}

static void
forgetful(om_grad *g)
{
	(void)g;
}

static void
refusing(om_grad *g)
{
	om_grad_fail(g, OM_UNSUPPORTED, "it is not wanted");
}

static om_status
differentiate(struct user *u, void (*rule)(om_grad *g), size_t size)
{
	static om_gradient table[2];
	om_block *b = u->p->first;
	om_value *grad = NULL;
	om_backward w = OM_BACKWARD(.loss = b->result[0], .wrt = b->param, .nwrt = 1, .grad = &grad);

	table[0] = (om_gradient){.name = rule ? "Floor" : NULL, .since = 1, .rule = rule};
	w.size = size;
	om_prog_add_gradients(u->p, table);
	OM_TRY(om_prog_backward(u->s, u->p, &w));
	if (!grad) {
		printf("none ");
		return OM_OK;
	}
	om_block_add_result(b, grad);
	return compute(u, NULL);
}

static om_status library(struct user *u) { return differentiate(u, NULL, sizeof(om_backward)); }
static om_status own(struct user *u) { return differentiate(u, straight_through, sizeof(om_backward)); }
static om_status unset(struct user *u) { return differentiate(u, forgetful, sizeof(om_backward)); }
static om_status refused(struct user *u) { return differentiate(u, refusing, sizeof(om_backward)); }
static om_status backward_size(struct user *u) { return differentiate(u, NULL, 8); }

static om_status
train_size(struct user *u)
{
	om_train_options o = OM_TRAIN_OPTIONS;

	o.size = sizeof o + 8;
	return om_prog_add_training_step(u->s, u->p, &o);
}

/* ---- Kernels: of Floor, which give what was prepared. ---- */

struct state {
	int64_t count;
	float next;
};

static om_status
prepare(om_op_context *c, void **state)
{
	((struct state *)*state)->count = om_shape_count(&c->in[0].shape);
	return OM_OK;
}

/* 1 in the first run, 2 in the second: prepared once. */
static om_status
run(om_op_context *c)
{
	struct state *s = c->state;

	s->next++;
	for (int64_t k = 0; k < s->count; k++)
		((float *)c->out[0].data)[k] = s->next;
	return OM_OK;
}

static bool
never(const om_op_context *c)
{
	(void)c;
	return false;
}

static om_status
failing(om_op_context *c)
{
	return om_op_fail(c->session, OM_RUN, c->op, "the device is on fire");
}

static om_status
run_with(struct user *u, om_kernel kernel)
{
	const om_kernel list[] = {kernel, {0}};
	const om_exec_options o = OM_EXEC_OPTIONS(.kernels = list);

	return compute(u, &o);
}

#define OWN  .name = "Floor", .state_bytes = sizeof(struct state), .prepare = prepare

static om_status no_kernel(struct user *u) { return compute(u, NULL); }
static om_status kernel(struct user *u) { return run_with(u, (om_kernel){OWN, .run = run}); }
static om_status other_type(struct user *u) { return run_with(u, (om_kernel){OWN, .run = run, .types = {1u << OM_FLOAT64}}); }
static om_status unsupported(struct user *u) { return run_with(u, (om_kernel){OWN, .run = run, .supports = never}); }
static om_status other_device(struct user *u) { return run_with(u, (om_kernel){OWN, .run = run, .device = "abacus"}); }
static om_status other_domain(struct user *u) { return run_with(u, (om_kernel){OWN, .run = run, .domain = "made.up"}); }
static om_status no_run(struct user *u) { return run_with(u, (om_kernel){OWN}); }
static om_status fails(struct user *u) { return run_with(u, (om_kernel){OWN, .run = failing}); }

static om_status
exec_size(struct user *u)
{
	return compute(u, &(om_exec_options){.size = 3});
}

static const struct {
	const char *name;
	om_status (*run)(struct user *u);
} cases[] = {
	{"library", library}, {"own", own}, {"unset", unset}, {"refused", refused}, {"backward_size", backward_size},
	{"train_size", train_size}, {"no_kernel", no_kernel}, {"kernel", kernel}, {"other_type", other_type},
	{"unsupported", unsupported}, {"other_device", other_device}, {"other_domain", other_domain}, {"no_run", no_run},
	{"fails", fails}, {"exec_size", exec_size},
};

int
main(int argc, char **argv)
{
	for (size_t k = 0; argc == 2 && k < sizeof cases / sizeof cases[0]; k++) {
		struct user u = {0};
		if (strcmp(cases[k].name, argv[1]) != 0)
			continue;
		om_status st = start(&u);
		if (st == OM_OK)
			st = cases[k].run(&u);
		printf("%s\n", st == OM_OK ? "" : om_message(u.s));
		om_prog_free(u.p);
		om_host_free(u.h);
		om_session_free(u.s);
		return 0;
	}
	return 2;
}
