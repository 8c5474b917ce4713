/* SPDX-License-Identifier: Apache-2.0 */
/* Load a model, plan its memory, look at the plan, run it.
 *
 *     cc plan.c $(pkg-config --cflags --libs onnxmem) -o plan && ./plan MODEL.onnx
 */
#include <stdio.h>
#include <stdlib.h>

#include <onnxmem/executor.h>
#include <onnxmem/onnx.h>
#include <onnxmem/pass.h>

/* Where every value of the graph itself lives. */
static void
print_places(const om_prog *p)
{
	static const char *const where[] = {"nowhere", "arena", "caller", "weight", "unplanned"};

	printf("arena: %llu bytes, lower bound %llu\n", (unsigned long long)p->plan->arena[0].bytes,
		(unsigned long long)p->plan->arena[0].lower_bound);
	for (uint32_t k = 0; k < p->nvalue; k++) {
		const om_value *v = p->values[k];
		const om_placement *at = &p->plan->place[k];
		if (at->where == OM_IN_ARENA)
			printf("%-10s at %5llu, %5llu bytes\n", v->name, (unsigned long long)at->offset,
				(unsigned long long)at->bytes);
		else if (at->where != OM_UNUSED)
			printf("%-10s %s\n", v->name, where[at->where]);
	}
}

static om_status
plan(om_session *s, om_prog *p)
{
	om_host *h = om_host_new(s, NULL);
	om_binding *b = om_binding_new();

	om_binding_rest(b, 1);   /* symbolic dims of the inputs: 1 */
	om_status st = om_bind(s, p, b);
	if (st == OM_OK)
		st = om_host_run(h, p, om_default_pipeline());
	om_binding_free(b);
	om_host_free(h);
	return st;
}

/* Every input is a ramp from 0 to 1. */
static om_status
set_inputs(om_session *s, om_exec *e, const om_prog *p, om_arena *mem)
{
	for (uint32_t k = 0; k < p->first->nparam; k++) {
		const om_value *v = p->first->param[k];
		uint64_t bytes;
		if (v->type.elem != OM_FLOAT32 || !om_tensor_bytes(v->type.elem, &v->shape, &bytes))
			return om_fail(s, OM_RUN, "input %s is no float32 tensor", v->name);
		const size_t n = bytes / sizeof(float);
		float *data = OM_NEWN(mem, float, n);
		for (size_t i = 0; i < n; i++)
			data[i] = (float)i / (float)n;
		const om_tensor t = {.type = v->type.elem, .shape = v->shape, .data = data};
		OM_TRY(om_exec_input(e, k, &t));
	}
	return OM_OK;
}

static om_status
run(om_session *s, om_prog *p, om_arena *mem)
{
	const om_exec_options o = OM_EXEC_OPTIONS();
	om_exec *e;

	OM_TRY(om_exec_new(s, p, p->plan, &o, &e));   /* verifies the plan first */
	om_status st = set_inputs(s, e, p, mem);
	if (st == OM_OK)
		st = om_exec_run(e);
	for (uint32_t k = 0; st == OM_OK && k < p->first->nresult; k++) {
		const om_tensor *t = om_exec_result(e, k);
		printf("%s:", p->first->result[k]->name);
		for (int64_t i = 0; i < om_shape_count(&t->shape) && i < 10; i++)
			printf(" %g", (double)((const float *)t->data)[i]);
		putchar('\n');
	}
	om_exec_free(e);
	return st;
}

int
main(int argc, char **argv)
{
	om_session *s = om_session_new();
	om_arena *mem = om_arena_new();
	om_model *m = NULL;
	om_prog *p = NULL;

	if (argc != 2)
		return fprintf(stderr, "usage: plan MODEL.onnx\n"), 2;
	om_status st = om_model_load(s, argv[1], &m);
	if (st == OM_OK)
		st = om_model_import(s, m, &p);
	if (st == OM_OK)
		st = plan(s, p);
	if (st == OM_OK) {
		print_places(p);
		st = run(s, p, mem);
	}
	if (st != OM_OK)
		fprintf(stderr, "plan: %s\n", om_message(s));
	om_prog_free(p);   /* before the model, whose weights it uses */
	om_model_free(m);
	om_arena_free(mem);
	om_session_free(s);
	return om_status_exit(st);
}
