/* SPDX-License-Identifier: Apache-2.0 */
/* The example operator of CONTRIBUTING.md behaves as documented: its definition is set on an op, and
 * the program is planned and run. */
#include <config.h>

#include <stdio.h>

#include "onnxmem/builder.h"
#include "tests/fixtures.h"

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
run(bench *b)
{
	const om_tensor t = floats_of(4, (const float[]){2, -4, 6, 1});

	OM_TRY(bench_read(b, text));
	for (om_op *op = b->p->first->first; op; op = op->next)
		if (strcmp(op->type, rows->name) == 0)
			op->opdef = rows;
	OM_TRY(om_host_run(b->h, b->p, om_default_pipeline()));
	OM_TRY(bench_exec(b, &ways[PLANNED]));
	return bench_run(b, &t, 1);
}

int
main(void)
{
	bench b = bench_open();

	const bool ran = is_ok(b.s, run(&b));
	point(ran, "it is planned and run");
	point(ran && is_floats(om_exec_result(b.e, 0), 4, (const float[]){1, -2, 3, 0.5f}), "it halves");
	point(ran && (b.p->plan->narena == 0 || b.p->plan->arena[0].bytes == 0), "it is computed in place, in the memory of the result");
	point(ran && b.p->first->result[1]->is_const && is_floats(om_exec_result(b.e, 1), 2, (const float[]){3, 4}),
		"it is folded over constants");
	printf("1..%u\n", points);
	bench_close(&b);
	return failures != 0;
}
