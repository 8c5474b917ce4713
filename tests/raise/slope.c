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

#include "feed.h"
#include "onnxmem/grad.h"

enum { STEPS = 5 };

struct slope {
	struct feed f;
	om_host *h;
	om_tensor *in;
	size_t nparam;
	const float *weight[1024];   /* as they were */
	const float *grad[1024];
	om_value *of[1024];
	int64_t count[1024];
	uint32_t n;
	double length;
};

static double
loss_of(const struct slope *t)
{
	const om_tensor *l = om_exec_result(t->f.exec, 0);

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

static om_status
note_gradients(struct slope *t)
{
	const om_prog *p = t->f.prog;

	for (uint32_t k = 1; k < p->first->nresult && t->n < 1024; k++) {
		om_value *v = weight_of(p, k);
		const om_tensor *g = om_exec_result(t->f.exec, k);
		if (!v || v->data->splat || v->data->type != OM_FLOAT32 || g->type != OM_FLOAT32)
			continue;
		t->of[t->n] = v;
		t->weight[t->n] = v->data->data;
		t->count[t->n] = om_shape_count(&g->shape);
		t->grad[t->n] = om_memdup(t->f.mem, g->data, (size_t)t->count[t->n] * sizeof(float));
		for (int64_t i = 0; i < t->count[t->n]; i++)
			t->length += (double)t->grad[t->n][i] * t->grad[t->n][i];
		t->n++;
	}
	t->length = sqrt(t->length);
	return t->n ? OM_OK : om_fail(t->f.s, OM_INVALID, "no weight has a gradient");
}

/* The loss so far along the gradient. */
static om_status
loss_at(struct slope *t, double step, double *loss)
{
	for (uint32_t k = 0; k < t->n; k++) {
		om_tensor *moved = om_memdup(t->f.mem, t->of[k]->data, sizeof *moved);
		float *w = om_memdup(t->f.mem, t->weight[k], (size_t)t->count[k] * sizeof *w);
		for (int64_t i = 0; i < t->count[k]; i++)
			w[i] += (float)(step * t->grad[k][i] / t->length);
		moved->data = w;
		t->of[k]->data = moved;
	}
	om_exec_free(t->f.exec);
	t->f.exec = NULL;
	OM_TRY(feed_run(&t->f, t->in));
	*loss = loss_of(t);
	return OM_OK;
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
	om_learning l = om_learning_usual();

	l.loss_fn = "mse";
	OM_TRY(feed_load(&t->f, file));
	t->in = OM_NEWN(t->f.mem, om_tensor, (size_t)t->f.prog->first->nparam + 1);
	OM_TRY(feed_shapes(&t->f, t->in));
	OM_TRY(om_host_run(t->h, t->f.prog, "inline,shapes"));
	OM_TRY(om_prog_learn(t->f.prog, &l));
	OM_TRY(om_host_run(t->h, t->f.prog, "shapes"));
	t->in = OM_NEWN(t->f.mem, om_tensor, (size_t)t->f.prog->first->nparam + 1);
	OM_TRY(feed_run(&t->f, t->in));
	OM_TRY(note_gradients(t));
	return compare(t, off, found);
}

int
main(int argc, char **argv)
{
	int bad = 0;

	for (int k = 1; k < argc; k++) {
		struct slope t = {.f = {.s = om_session_new(), .mem = om_arena_new(), .file = argv[k]}};
		double off = INFINITY, found = 0;
		t.h = om_host_new(t.f.s, NULL);
		const om_status st = check(&t, argv[k], &off, &found);
		printf("%s\t%s\t", st != OM_OK ? "failed" : off < 0.02 ? "right" : "WRONG", argv[k]);
		if (st == OM_OK)
			printf("%u weights, slope %.6g, by differences %.6g\n", t.n, t.length, found);
		else
			printf("%s\n", om_message(t.f.s));
		fflush(stdout);
		bad += st != OM_OK || !(off < 0.02);
		feed_end(&t.f);
		om_host_free(t.h);
		om_arena_free(t.f.mem);
		om_session_free(t.f.s);
	}
	return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
