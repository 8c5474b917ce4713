/* SPDX-License-Identifier: Apache-2.0 */
/* Nets of the library of layers: built, exported as ONNX, differentiated, trained, and the training step exported, too.
 *
 *     cc nets.c $(pkg-config --cflags --libs onnxmem) -lm -o nets && ./nets NET FOLDER
 *
 * NET is images (convolutions, residual blocks, Inception modules), sequences (an LSTM in both directions) or text (an embedding and
 * transformer blocks).  FOLDER/NET.onnx is the net, FOLDER/NET_step.onnx its training step.  The loss of some steps is printed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <onnxmem/autodiff.h>
#include <onnxmem/nn.h>
#include <onnxmem/onnx.h>
#include <onnxmem/pass.h>
#include <onnxmem/trainer.h>

enum { BATCH = 8, CLASSES = 4, STEPS = 30, WORDS = 20, LENGTH = 10, SIDE = 12 };

/* ---- Nets: each has one input and classes. ---- */

static om_value *
images(om_nn *n)
{
	om_value *x = om_nn_input(n, "x", OM_FLOAT32, 4, (int64_t[]){BATCH, 3, SIDE, SIDE});

	x = om_nn_conv(n, x, OM_NN_CONV(.channels = 8, .kernel = 3, .norm = true, .activation = "Relu"));
	x = om_nn_residual(n, x, 16, 2);
	x = om_nn_residual(n, x, 16, 1);
	x = om_nn_inception(n, x, OM_NN_INCEPTION(.point = 8, .reduce3 = 6, .wide3 = 8, .reduce5 = 4, .wide5 = 4, .pool = 4));
	x = om_nn_conv(n, x, OM_NN_CONV(.channels = 24, .kernel = 3, .groups = 4, .dilation = 2, .activation = "Relu"));
	return om_nn_mlp(n, om_nn_global_pool(n, x), 2, (int64_t[]){16, CLASSES}, "Relu");
}

static om_value *
sequences(om_nn *n)
{
	om_value *x = om_nn_input(n, "x", OM_FLOAT32, 3, (int64_t[]){LENGTH, BATCH, 6});

	x = om_nn_recurrent(n, "LSTM", x, 12, true);
	x = om_nn_recurrent(n, "GRU", x, 8, false);
	return om_nn_linear(n, om_nn_last_step(n, x), CLASSES);
}

static om_value *
text(om_nn *n)
{
	om_value *x = om_nn_input(n, "x", OM_INT64, 2, (int64_t[]){BATCH, LENGTH});

	x = om_nn_embedding(n, x, WORDS, 16);
	x = om_nn_transformer(n, x, 4, 32, true);
	x = om_nn_transformer(n, x, 2, 32, false);
	return om_nn_linear(n, om_nn_flat(n, om_nn_layer_norm(n, x)), CLASSES);
}

static const struct {
	const char *name;
	om_value *(*build)(om_nn *n);
	int64_t count;               /* elements of x */
} nets[] = {
	{"images", images, BATCH * 3 * SIDE * SIDE},
	{"sequences", sequences, LENGTH * BATCH * 6},
	{"text", text, BATCH * LENGTH},
};

static om_status
build(om_session *s, om_prog *p, int which)
{
	om_nn *n;
	om_status st = om_nn_new(s, p, 7, &n);

	if (st != OM_OK)
		return st;
	om_nn_output(n, "y", nets[which].build(n));
	return om_nn_end(n);
}

/* ---- Training. ---- */

/* Samples that a net can learn by heart: values, or words. */
static void
draw(om_dtype type, int64_t count, void *x, int64_t *label)
{
	uint32_t state = 5;

	for (int64_t k = 0; k < count; k++) {
		state = state * 1664525u + 1013904223u;
		if (type == OM_INT64)
			((int64_t *)x)[k] = state >> 8 & 0xffff;
		else
			((float *)x)[k] = (float)(state >> 8) / (1 << 23) - 1;
		if (type == OM_INT64)
			((int64_t *)x)[k] %= WORDS;
	}
	for (int k = 0; k < BATCH; k++)
		label[k] = k % CLASSES;
}

static om_status
bind(om_exec *e, const om_prog *p, uint32_t k, void *data)
{
	const om_value *v = p->first->param[k];

	return om_exec_input(e, k, &(om_tensor){.type = v->type.elem, .shape = v->shape, .data = data});
}

static om_status
train_with(om_trainer *t, om_exec *e, const om_prog *p, const om_step *step, int64_t count)
{
	int64_t label[BATCH];
	uint64_t copied;
	void *x = calloc((size_t)count, sizeof(int64_t));
	om_status st = x && step->nsample == 2 ? om_trainer_bind(t, e) : OM_MEMORY;

	if (st == OM_OK) {
		draw(p->first->param[step->sample[0]]->type.elem, count, x, label);
		st = bind(e, p, step->sample[0], x);
	}
	if (st == OM_OK)
		st = bind(e, p, step->sample[1], label);
	for (int k = 0; k < STEPS && st == OM_OK; k++) {
		st = om_trainer_step(t, e, &copied);
		if (st == OM_OK && (k == 0 || k + 1 == STEPS))
			printf("loss of step %d: %.4f\n", k, (double)*(const float *)om_exec_result(e, step->loss)->data);
	}
	free(x);
	return st;
}

static om_status
train(om_session *s, om_host *h, om_prog *p, int64_t count)
{
	om_arena *mem = om_arena_new();
	om_trainer *t = NULL;
	om_exec *e = NULL;
	om_step step;
	om_status st = om_step_find(s, p, mem, &step);

	if (st == OM_OK)
		st = om_host_run(h, p, om_default_pipeline());
	if (st == OM_OK)
		st = om_exec_new(s, p, p->plan, NULL, &e);
	if (st == OM_OK)
		st = om_trainer_new(s, p, &t);
	if (st == OM_OK)
		st = train_with(t, e, p, &step, count);
	om_trainer_free(t);
	om_exec_free(e);
	om_arena_free(mem);
	return st;
}

/* ---- Files. ---- */

static om_status
save(om_session *s, om_model *m, om_prog *p, const char *folder, const char *name, const char *what)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/%s%s.onnx", folder, name, what);
	const om_status st = om_model_update(s, m, p);
	return st == OM_OK ? om_model_save(s, m, path) : st;
}

static om_status
build_and_train(om_session *s, om_host *h, om_model *m, om_prog *p, const char *folder, int which)
{
	om_train_options o = OM_TRAIN_OPTIONS;

	o.loss_fn = "cross-entropy";
	o.optimizer = "adam";
	o.rate = 0.01;
	om_status st = build(s, p, which);
	if (st == OM_OK)
		st = save(s, m, p, folder, nets[which].name, "");
	if (st == OM_OK)
		st = om_host_run(h, p, "inline,shapes");
	if (st == OM_OK)
		st = om_prog_add_training_step(s, p, &o);
	if (st == OM_OK)
		st = save(s, m, p, folder, nets[which].name, "_step");
	return st == OM_OK ? train(s, h, p, nets[which].count) : st;
}

static om_status
run(om_session *s, const char *net, const char *folder)
{
	const int count = sizeof nets / sizeof *nets;
	int which = 0;
	om_model *m = NULL;
	om_prog *p = NULL;

	while (which < count && strcmp(nets[which].name, net) != 0)
		which++;
	if (which == count)
		return om_fail(s, OM_USAGE, "there is no net %s: images, sequences, text", net);
	om_host *h = om_host_new(s, NULL);
	om_status st = om_model_empty(s, net, 18, &m);
	if (st == OM_OK)
		st = om_model_import(s, m, &p);
	if (st == OM_OK)
		st = build_and_train(s, h, m, p, folder, which);
	om_prog_free(p);
	om_model_free(m);
	om_host_free(h);
	return st;
}

int
main(int argc, char **argv)
{
	om_session *s = om_session_new();
	const om_status st = argc == 3 ? run(s, argv[1], argv[2]) : om_fail(s, OM_USAGE, "usage: nets NET FOLDER");

	if (st != OM_OK)
		fprintf(stderr, "%s\n", om_message(s));
	om_session_free(s);
	return om_status_exit(st);
}
