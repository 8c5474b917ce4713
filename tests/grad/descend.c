/* The gradients of a model's first result, its loss, by all of its weights, and what becomes of
 * the weights in some steps of descent.
 *
 *     descend MODEL.onnx INPUTS.npz OUTPUTS.npz STEPS RATE
 *
 * Weights are inputs that have a default.  OUTPUTS gets "loss" and "grad/NAME" of the first
 * run, and "loss_after" and "after/NAME".  The plan is used, with poison; the first run is
 * done without it as well, and has to give the same bits. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/npy.h"
#include "onnxmem/exec.h"
#include "onnxmem/grad.h"
#include "onnxmem/onnx.h"
#include "onnxmem/pass.h"

enum { MOST = 512 };

struct descent {
	om_session *s;
	om_host *h;
	om_arena *mem;
	om_model *m;
	om_prog *p;
	om_exec *e, *plain;
	uint32_t n;
	om_value *weight[MOST], *grad[MOST];
	uint32_t param[MOST];
	om_tensor at[MOST];            /* the weights now */
	om_npz_entry *in;
	size_t nin;
};

static om_status
find_weights(struct descent *d)
{
	const om_block *b = d->p->first;

	for (uint32_t k = 0; k < b->nparam; k++) {
		om_value *v = b->param[k];
		if (!v->is_overridable || om_type_elem(&v->type) != OM_FLOAT32 || !v->data || !v->data->data)
			continue;
		if (d->n == MOST)
			return om_fail(d->s, OM_UNSUPPORTED, "the model has more than %d weights", MOST);
		const size_t bytes = om_value_bytes(v);
		d->at[d->n] = *v->data;
		d->at[d->n].data = om_memdup(d->mem, v->data->data, bytes);
		d->param[d->n] = k;
		d->weight[d->n++] = v;
	}
	return OM_OK;
}

static om_status
differentiate(struct descent *d)
{
	om_backward b = {.loss = d->p->first->result[0], .wrt = d->weight, .nwrt = d->n, .grad = d->grad};
	uint32_t n = 0;

	OM_TRY(om_prog_backward(d->p, &b));
	for (uint32_t k = 0; k < d->n; k++) {
		if (!d->grad[k])
			continue;
		om_block_add_result(d->p->first, d->grad[k]);
		d->weight[n] = d->weight[k];
		d->param[n] = d->param[k];
		d->at[n] = d->at[k];
		d->grad[n++] = d->grad[k];
	}
	d->n = n;
	return om_verify(d->p);
}

static om_status
bind(struct descent *d, om_exec *e)
{
	const om_block *b = d->p->first;

	for (uint32_t k = 0; k < d->n; k++)
		OM_TRY(om_exec_input(e, d->param[k], &d->at[k]));
	for (uint32_t k = 0; k < b->nparam; k++)
		for (size_t i = 0; i < d->nin; i++)
			if (strcmp(b->param[k]->name, d->in[i].name) == 0)
				OM_TRY(om_exec_input(e, k, &d->in[i].t));
	return OM_OK;
}

static om_status
start(struct descent *d, const char *model, const char *inputs)
{
	const om_exec_options poison = {.poison = true}, plain = {.no_reuse = true};

	OM_TRY(om_npz_load(d->s, inputs, d->mem, &d->in, &d->nin));
	OM_TRY(om_model_load(d->s, model, &d->m));
	OM_TRY(om_model_import(d->s, d->m, &d->p));
	OM_TRY(om_host_run(d->h, d->p, "inline,shapes"));
	OM_TRY(find_weights(d));
	OM_TRY(differentiate(d));
	OM_TRY(om_host_run(d->h, d->p, om_default_pipeline()));
	OM_TRY(om_exec_new(d->s, d->p, NULL, &plain, &d->plain));
	OM_TRY(om_exec_new(d->s, d->p, d->p->plan, &poison, &d->e));
	OM_TRY(bind(d, d->plain));
	return bind(d, d->e);
}

/* Both executors have the same results, bit by bit. */
static om_status
compare(const struct descent *d)
{
	for (uint32_t k = 0; k < d->p->first->nresult; k++) {
		const om_tensor *a = om_exec_result(d->e, k), *b = om_exec_result(d->plain, k);
		uint64_t bytes;
		if (!om_tensor_bytes(a->type, &a->shape, &bytes) || memcmp(a->data, b->data, bytes) != 0)
			return om_fail(d->s, OM_RUN, "%s differs where memory is reused", d->p->first->result[k]->name);
	}
	return OM_OK;
}

static om_tensor
kept(struct descent *d, const om_tensor *t)
{
	om_tensor copy = *t;
	uint64_t bytes = 0;

	om_tensor_bytes(t->type, &t->shape, &bytes);
	copy.data = om_memdup(d->mem, t->data, bytes);
	return copy;
}

static void
descend(struct descent *d, float rate)
{
	for (uint32_t k = 0; k < d->n; k++) {
		const om_tensor *g = om_exec_result(d->e, k + 1);
		float *w = d->at[k].data;
		for (int64_t i = 0; i < om_shape_count(&g->shape); i++)
			w[i] -= rate * ((const float *)g->data)[i];
	}
}

static om_status
run(struct descent *d, const char *to, int steps, float rate)
{
	om_npz_entry *out = OM_NEWN(d->mem, om_npz_entry, 2 * (size_t)d->n + 2);
	size_t n = 0;

	OM_TRY(om_exec_run(d->plain));
	OM_TRY(om_exec_run(d->e));
	OM_TRY(compare(d));
	out[n++] = (om_npz_entry){"loss", kept(d, om_exec_result(d->e, 0))};
	for (uint32_t k = 0; k < d->n; k++)
		out[n++] = (om_npz_entry){om_printf(d->mem, "grad/%s", d->weight[k]->name), kept(d, om_exec_result(d->e, k + 1))};
	for (int i = 0; i < steps; i++) {
		descend(d, rate);
		OM_TRY(om_exec_run(d->e));
	}
	out[n++] = (om_npz_entry){"loss_after", kept(d, om_exec_result(d->e, 0))};
	for (uint32_t k = 0; k < d->n; k++)
		out[n++] = (om_npz_entry){om_printf(d->mem, "after/%s", d->weight[k]->name), d->at[k]};
	return om_npz_save(d->s, to, out, n, false);
}

int
main(int argc, char **argv)
{
	struct descent d = {.s = om_session_new(), .mem = om_arena_new()};

	if (argc != 6) {
		fprintf(stderr, "usage: descend MODEL.onnx INPUTS.npz OUTPUTS.npz STEPS RATE\n");
		return 2;
	}
	d.h = om_host_new(d.s, NULL);
	om_status st = start(&d, argv[1], argv[2]);
	if (st == OM_OK)
		st = run(&d, argv[3], atoi(argv[4]), (float)atof(argv[5]));
	if (st != OM_OK)
		fprintf(stderr, "descend: %s\n", om_message(d.s));
	om_exec_free(d.e);
	om_exec_free(d.plain);
	om_prog_free(d.p);
	om_model_free(d.m);
	om_host_free(d.h);
	om_arena_free(d.mem);
	om_session_free(d.s);
	return om_status_exit(st);
}
