/* SPDX-License-Identifier: Apache-2.0 */
/* One loaded model, a plan for each batch size.
 *
 *     cc batches.c $(pkg-config --cflags --libs onnxmem) -o batches && ./batches MODEL.onnx SYMBOL N...
 */
#include <stdio.h>
#include <stdlib.h>

#include <onnxmem/onnx.h>
#include <onnxmem/pass.h>
#include <onnxmem/plan.h>

static om_status
plan_for(om_session *s, om_plan_cache *plans, const char *symbol, int64_t n)
{
	om_binding *b = om_binding_new();
	const om_prog *p;

	om_binding_rest(b, 1);
	om_status st = om_binding_dim(s, b, symbol, n);
	if (st == OM_OK)
		st = om_plan_cache_get(plans, b, &p);   /* planned once, then kept */
	if (st == OM_OK)
		printf("%s=%lld: arena of %llu bytes\n", symbol, (long long)n, (unsigned long long)p->plan->arena[0].bytes);
	om_binding_free(b);
	return st;
}

int
main(int argc, char **argv)
{
	om_session *s = om_session_new();
	om_host *h = om_host_new(s, NULL);
	om_plan_cache *plans = NULL;
	om_model *m = NULL;
	om_prog *p = NULL;

	if (argc < 4)
		return fprintf(stderr, "usage: batches MODEL.onnx SYMBOL N...\n"), 2;
	om_status st = om_model_load(s, argv[1], &m);
	if (st == OM_OK)
		st = om_model_import(s, m, &p);
	if (st == OM_OK)
		plans = om_plan_cache_new(h, p, NULL);
	for (int k = 3; k < argc && st == OM_OK; k++)
		st = plan_for(s, plans, argv[2], strtoll(argv[k], NULL, 10));
	if (st != OM_OK)
		fprintf(stderr, "batches: %s\n", om_message(s));
	om_plan_cache_free(plans);   /* before the program, whose constants its programs use */
	om_prog_free(p);
	om_model_free(m);
	om_host_free(h);
	om_session_free(s);
	return om_status_exit(st);
}
