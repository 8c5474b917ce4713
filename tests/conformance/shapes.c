/* SPDX-License-Identifier: Apache-2.0 */
/* What is inferred about models whose paths come on standard input: a line a
 * value of the graph, with its type and dims; a line with the path before, and
 * "failed" with a sentence where there is nothing to say.
 *
 * A dim is a number, a symbol, or `?`, with its bound behind `<=` where there is
 * one; a rank that is not known is `?..`. */
#include <config.h>

#include <stdlib.h>

#include "tests/fixtures.h"

static void
print_value(const om_value *v)
{
	printf("%s\t%s\t", v->name, om_dtype_text(v->type.elem));
	if (v->shape.rank < 0)
		printf("?..");
	for (int d = 0; d < v->shape.rank; d++) {
		printf("%s", d ? "," : "");
		if (v->shape.dim[d] >= 0)
			printf("%lld", (long long)v->shape.dim[d]);
		else
			printf("%s", v->shape.sym[d] ? v->shape.sym[d] : "?");
	}
	printf("\n");
}

static void
print_block(const om_block *b)
{
	for (const om_op *op = b->first; op; op = op->next)
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k] && op->out[k]->type.kind == OM_TENSOR)
				print_value(op->out[k]);
}

static void
print_model(bench *b, const char *path)
{
	om_status st = bench_load(b, path);

	if (st == OM_OK)
		st = om_host_run(b->h, b->p, "inline,shapes");
	printf("model\t%s\n", path);
	if (st == OM_OK)
		print_block(b->p->first);
	else
		printf("failed\t%s\n", om_message(b->s));
	bench_clear(b);
}

int
main(void)
{
	bench b = bench_open();
	char line[4096];

	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = '\0';
		print_model(&b, line);
		fflush(stdout);
	}
	bench_close(&b);
	return 0;
}
