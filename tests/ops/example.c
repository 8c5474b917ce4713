/* The example operator of CONTRIBUTING.md behaves as documented: its definition is set on an op, and
 * the program is planned and run. */
#include <config.h>

#include <stdio.h>

#include "onnxmem/builder.h"
#include "onnxmem/executor.h"
#include "onnxmem/pass.h"

#include "tests/ops/example-code.h"

static const om_opdef rows[] = {
#include "tests/ops/example-row.h"
	{0}
};

static const char text[] =
	"program \"t\" ir 10 opset 17 opset made.up 1\n"
	"^main(%x: float32[4]) {\n"
	"	%a = Neg(%x)\n"
	"	%b = made.up::Halve(%a)\n"
	"	%c = Neg(%b)\n"
	"	%k = const float32[2] {6.0, 8.0}\n"
	"	%h = made.up::Halve(%k)\n"
	"	ret %c, %h\n"
	"}\n";

static unsigned points, failures;

static void
point(bool good, const char *what)
{
	printf("%sok %u - %s\n", good ? "" : "not ", ++points, what);
	failures += !good;
}

static om_status
run(om_session *s, om_host *h, om_prog *p, om_exec **e)
{
	static float x[] = {2, -4, 6, 1};
	const om_tensor t = {.type = OM_FLOAT32, .shape = om_shape_of(1, (const int64_t[]){4}), .data = x};

	for (om_op *op = p->first->first; op; op = op->next)
		if (strcmp(op->type, rows->name) == 0)
			op->opdef = rows;
	OM_TRY(om_host_run(h, p, om_default_pipeline()));
	OM_TRY(om_exec_new(s, p, p->plan, NULL, e));
	OM_TRY(om_exec_input(*e, 0, &t));
	return om_exec_run(*e);
}

static bool
is(const om_tensor *t, size_t n, const float *want)
{
	return (size_t)om_shape_count(&t->shape) == n && memcmp(t->data, want, n * sizeof *want) == 0;
}

int
main(void)
{
	om_session *s = om_session_new();
	om_host *h = om_host_new(s, NULL);
	FILE *in = fmemopen((void *)text, sizeof text - 1, "r");
	om_exec *e = NULL;
	om_prog *p;

	const bool parsed = om_parse(s, in, "example", &p) == OM_OK;
	fclose(in);
	const bool ran = parsed && run(s, h, p, &e) == OM_OK;
	point(ran, "it is planned and run");
	if (!ran)
		printf("# %s\n", om_message(s));
	point(ran && is(om_exec_result(e, 0), 4, (const float[]){1, -2, 3, 0.5f}), "it halves");
	point(ran && (p->plan->narena == 0 || p->plan->arena[0].bytes == 0), "it is computed in place, in the memory of the result");
	point(ran && p->first->result[1]->is_const && is(om_exec_result(e, 1), 2, (const float[]){3, 4}),
		"it is folded over constants");
	printf("1..%u\n", points);
	om_exec_free(e);
	om_prog_free(p);
	om_host_free(h);
	om_session_free(s);
	return failures != 0;
}
