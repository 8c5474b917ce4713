/* SPDX-License-Identifier: Apache-2.0 */
/* Are the gradients of a model those of its loss?
 *
 *     slope FILE...
 *
 * The loss is the mean of squared differences of the first output from a label from dice, and the
 * gradient of all weights together is compared with a central difference along itself: there the
 * loss rises by its length.  Float32 and corners of Relu leave a part of it open. */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "inputs.h"
#include "onnxmem/builder.h"
#include "onnxmem/autodiff.h"

enum { STEPS = 8 };

struct weight {
	uint32_t param, result;      /* of the graph */
	const om_tensor *was;
	const float *grad;
	int64_t count;
};

struct slope {
	bench f;
	om_tensor *in;
	struct weight *weight;
	uint32_t n;
	double length;
};

static double
loss_of(const struct slope *t)
{
	const om_tensor *l = om_exec_result(t->f.e, 0);

	return l->type == OM_FLOAT32 ? *(const float *)l->data : NAN;
}

/* The weight that result `k` is the gradient of. */
static om_value *
weight_of(const om_prog *p, uint32_t k)
{
	const char *name = p->first->result[k]->name;
	const size_t n = strlen(name);

	for (uint32_t i = 0; i < p->nvalue; i++) {
		om_value *v = p->values[i];
		if (n > 5 && strlen(v->name) == n - 5 && strncmp(v->name, name, n - 5) == 0 && v->data && !v->def
		    && strcmp(name + n - 5, "_grad") == 0 && v->block == p->first)
			return v;
	}
	return NULL;
}

/* Weights become inputs, so that they can be moved. */
static om_status
open_weights(struct slope *t)
{
	om_block *b = t->f.p->first;

	t->weight = OM_NEWN(t->f.mem, struct weight, (size_t)b->nresult);
	for (uint32_t k = 1; k < b->nresult; k++) {
		om_value *v = weight_of(t->f.p, k);
		if (!v || v->data->splat || v->data->type != OM_FLOAT32)
			continue;
		v->is_const = false;
		v->is_overridable = true;
		om_block_add_param(b, v);
		t->weight[t->n++] = (struct weight){b->nparam - 1, k, v->data, NULL, om_shape_count(&v->shape)};
	}
	return t->n ? OM_OK : om_fail(t->f.s, OM_INVALID, "no weight has a gradient");
}

static void
note_gradients(struct slope *t)
{
	for (uint32_t k = 0; k < t->n; k++) {
		struct weight *w = &t->weight[k];
		float *g = om_memdup(t->f.mem, om_exec_result(t->f.e, w->result)->data, (size_t)w->count * sizeof *g);
		for (int64_t i = 0; i < w->count; i++)
			t->length += (double)g[i] * g[i];
		w->grad = g;
	}
	t->length = sqrt(t->length);
}

/* The loss so far along the gradient. */
static om_status
loss_at(struct slope *t, double step, double *loss)
{
	om_arena *mem = om_arena_new();
	om_status st = OM_OK;

	for (uint32_t k = 0; k < t->n && st == OM_OK; k++) {
		const struct weight *w = &t->weight[k];
		om_tensor moved = *w->was;
		float *to = om_memdup(mem, w->was->data, (size_t)w->count * sizeof *to);
		for (int64_t i = 0; i < w->count; i++)
			to[i] += (float)(step * w->grad[i] / t->length);
		moved.data = to;
		st = om_exec_input(t->f.e, w->param, &moved);
	}
	if (st == OM_OK)
		st = om_exec_run(t->f.e);
	*loss = loss_of(t);
	om_arena_free(mem);
	return st;
}

/* The best of several steps: too long a one leaves the line, too short a one drowns in rounding. */
static om_status
compare(struct slope *t, double *off, double *found)
{
	double step = 0.03 / t->length;

	*off = INFINITY;
	for (int k = 0; k < STEPS; k++, step /= 4) {
		double up, down;
		OM_TRY(loss_at(t, step, &up));
		OM_TRY(loss_at(t, -step, &down));
		const double rise = (up - down) / (2 * step), now = fabs(rise - t->length) / t->length;
		if (now < *off) {
			*off = now;
			*found = rise;
		}
	}
	return OM_OK;
}

static om_status
check(struct slope *t, const char *file, double *off, double *found)
{
	om_train_options l = OM_TRAIN_OPTIONS;

	l.loss_fn = "mse";
	OM_TRY(bench_load(&t->f, file));
	t->in = OM_NEWN(t->f.mem, om_tensor, (size_t)t->f.p->first->nparam + 1);
	OM_TRY(feed_shapes(&t->f, file, t->in));
	OM_TRY(om_host_run(t->f.h, t->f.p, "inline,shapes"));
	OM_TRY(om_prog_add_training_step(t->f.s, t->f.p, &l));
	OM_TRY(open_weights(t));
	OM_TRY(om_host_run(t->f.h, t->f.p, "shapes,fold"));
	t->in = OM_NEWN(t->f.mem, om_tensor, (size_t)t->f.p->first->nparam + 1);
	OM_TRY(feed_run(&t->f, t->in));
	note_gradients(t);
	return compare(t, off, found);
}

int
main(int argc, char **argv)
{
	int bad = 0;

	for (int k = 1; k < argc; k++) {
		struct slope t = {.f = bench_open()};
		double off = INFINITY, found = 0;
		const om_status st = check(&t, argv[k], &off, &found);
		printf("%s\t%s\t", st != OM_OK ? "failed" : off < 0.02 ? "right" : "WRONG", argv[k]);
		if (st == OM_OK)
			printf("%u weights, slope %.6g, by differences %.6g\n", t.n, t.length, found);
		else
			printf("%s\n", om_message(t.f.s));
		fflush(stdout);
		bad += st != OM_OK || !(off < 0.02);
		bench_close(&t.f);
	}
	return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
