/* What is inferred about models whose paths come on standard input: a line a
 * value of the graph, with its type and dims; a line with the path before, and
 * "failed" with a sentence where there is nothing to say.
 *
 * A dim is a number, a symbol, or `?`, with its bound behind `<=` where there is
 * one; a rank that is not known is `?..`. */
#include <config.h>

#include <stdlib.h>

#include "onnxmem/onnx.h"
#include "onnxmem/pass.h"

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
print_model(om_session *s, om_host *h, const char *path)
{
	om_model *m = NULL;
	om_prog *p = NULL;
	om_status st = om_model_load(s, path, &m);

	if (st == OM_OK)
		st = om_model_import(s, m, &p);
	if (st == OM_OK)
		st = om_host_run(h, p, "inline,shapes");
	printf("model\t%s\n", path);
	if (st == OM_OK)
		print_block(p->first);
	else
		printf("failed\t%s\n", om_message(s));
	om_prog_free(p);
	om_model_free(m);
}

int
main(void)
{
	om_session *s = om_session_new();
	om_host *h = om_host_new(s, NULL);
	char line[4096];

	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = '\0';
		print_model(s, h, line);
		fflush(stdout);
	}
	om_host_free(h);
	om_session_free(s);
	return 0;
}
