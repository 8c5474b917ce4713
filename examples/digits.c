/* SPDX-License-Identifier: Apache-2.0 */
/* Draw digits, train a small net to read them, in place in one arena, and save it.
 *
 *     cc digits.c $(pkg-config --cflags --libs onnxmem) -lm -o digits && ./digits NET.onnx OUT.onnx [EPOCHS]
 *
 * NET.onnx is models/digits.onnx, whose weights are replaced; models/trained.onnx came out.  Digits are strokes that are
 * turned, sheared, moved, of any thickness, with noise over them; those for the test
 * come from another seed.  The step is the net with its loss, the backward path that the
 * library builds, and new weights, each handed on to the next step.
 */
#define _POSIX_C_SOURCE 200809L   /* fmemopen */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <onnxmem/builder.h>
#include <onnxmem/autodiff.h>
#include <onnxmem/onnx.h>
#include <onnxmem/pass.h>
#include <onnxmem/trainer.h>

enum { SIDE = 8, PIXELS = SIDE * SIDE, BATCH = 50, TRAIN = 4000, TEST = 1000, WEIGHTS = 8, MOST = 12 };

static const float FIRST_RATE = 0.04f, MOMENTUM = 0.9f, SLOWER = 0.7f;

/* ---- Digits. ---- */

typedef struct point { float x, y; } point;

/* Strokes from point to point, x to the right, y down; a negative x lifts the pen. */
static const point digit[10][MOST] = {
	{{.5f, .1f}, {.75f, .25f}, {.8f, .5f}, {.75f, .75f}, {.5f, .9f}, {.25f, .75f}, {.2f, .5f}, {.25f, .25f}, {.5f, .1f}, {-2, 0}},
	{{.35f, .3f}, {.55f, .1f}, {.55f, .9f}, {-2, 0}},
	{{.25f, .3f}, {.35f, .12f}, {.6f, .1f}, {.75f, .28f}, {.65f, .5f}, {.25f, .9f}, {.78f, .9f}, {-2, 0}},
	{{.25f, .15f}, {.6f, .1f}, {.75f, .28f}, {.5f, .47f}, {.75f, .68f}, {.6f, .9f}, {.25f, .86f}, {-2, 0}},
	{{.62f, .9f}, {.62f, .1f}, {.2f, .65f}, {.82f, .65f}, {-2, 0}},
	{{.75f, .1f}, {.32f, .1f}, {.28f, .45f}, {.6f, .42f}, {.76f, .65f}, {.58f, .9f}, {.25f, .85f}, {-2, 0}},
	{{.68f, .12f}, {.38f, .3f}, {.25f, .65f}, {.4f, .9f}, {.65f, .88f}, {.75f, .68f}, {.58f, .5f}, {.28f, .6f}, {-2, 0}},
	{{.22f, .1f}, {.78f, .1f}, {.42f, .9f}, {-2, 0}},
	{{.5f, .48f}, {.28f, .3f}, {.5f, .1f}, {.72f, .3f}, {.5f, .48f}, {.25f, .7f}, {.5f, .9f}, {.75f, .7f}, {.5f, .48f}, {-2, 0}},
	{{.72f, .4f}, {.45f, .5f}, {.27f, .32f}, {.4f, .12f}, {.65f, .12f}, {.74f, .35f}, {.65f, .7f}, {.35f, .9f}, {-2, 0}},
};

/* splitmix64 */
static float
uniform(uint64_t *state, float low, float high)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return low + (high - low) * (float)((z ^ z >> 31) >> 40) * 0x1p-24f;
}

static float
distance(point p, point a, point b)
{
	const float dx = b.x - a.x, dy = b.y - a.y;
	float t = ((p.x - a.x) * dx + (p.y - a.y) * dy) / (dx * dx + dy * dy + 1e-9f);

	t = t < 0 ? 0 : t > 1 ? 1 : t;
	return hypotf(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

static void
draw(uint64_t *state, int which, float *to)
{
	const float turn = uniform(state, -.22f, .22f), shear = uniform(state, -.25f, .25f), width = uniform(state, .72f, 1.05f),
		height = uniform(state, .8f, 1.05f), right = uniform(state, -.07f, .07f), down = uniform(state, -.06f, .06f),
		thick = uniform(state, .035f, .085f), noise = uniform(state, 0, .12f);
	point p[MOST];
	int n = 0;

	for (; digit[which][n].x > -1; n++) {
		const float x = (digit[which][n].x - .5f) * width + uniform(state, -.03f, .03f),
			y = (digit[which][n].y - .5f) * height + uniform(state, -.03f, .03f), s = x + shear * y;
		p[n] = (point){.5f + right + s * cosf(turn) - y * sinf(turn), .5f + down + s * sinf(turn) + y * cosf(turn)};
	}
	for (int k = 0; k < PIXELS; k++) {
		const point at = {((float)(k % SIDE) + .5f) / SIDE, ((float)(k / SIDE) + .5f) / SIDE};
		float near = 9;
		for (int i = 0; i + 1 < n; i++)
			near = fminf(near, distance(at, p[i], p[i + 1]));
		const float ink = (thick + .06f - near) / .09f;
		to[k] = (ink < 0 ? 0 : ink > 1 ? 1 : ink) + uniform(state, -noise, noise);
	}
}

static void
draw_all(uint64_t seed, int n, float *picture, int64_t *label)
{
	for (int k = 0; k < n; k++) {
		label[k] = k % 10;
		draw(&seed, k % 10, picture + (size_t)k * PIXELS);
	}
}

/* ---- The step. ---- */

static const char *const weight[WEIGHTS] = {"w1", "b1", "w2", "b2", "w3", "b3", "w4", "b4"};
static const char *const dims[WEIGHTS] = {"8,1,3,3", "8", "8,8,3,3", "8", "8,8,3,3", "8", "10,128", "10"};

/* The net of models/digits.onnx, for a batch; `last` is its last line. */
static om_status
read_net(om_session *s, const char *inputs, const char *last, om_prog **out)
{
	char text[4096];
	size_t n = (size_t)snprintf(text, sizeof text, "program \"digits\" ir 8 opset 17\n^digits(%%picture: float32[%d,1,8,8]%s",
		BATCH, inputs);

	for (int k = 0; k < WEIGHTS; k++)
		n += (size_t)snprintf(text + n, sizeof text - n, ", %%%s: float32[%s]", weight[k], dims[k]);
	snprintf(text + n, sizeof text - n, ") {\n"
		"	%%c1 = Conv(%%picture, %%w1, %%b1) {pads = [1, 1, 1, 1]}\n"
		"	%%r1 = Relu(%%c1)\n"
		"	%%c2 = Conv(%%r1, %%w2, %%b2) {pads = [1, 1, 1, 1]}\n"
		"	%%r2 = Relu(%%c2)\n"
		"	%%c3 = Conv(%%r2, %%w3, %%b3) {pads = [1, 1, 1, 1]}\n"
		"	%%sum = Add(%%c3, %%r1)\n"
		"	%%r3 = Relu(%%sum)\n"
		"	%%small = MaxPool(%%r3) {kernel_shape = [2, 2], strides = [2, 2]}\n"
		"	%%flat = Flatten(%%small)\n"
		"	%%scores = Gemm(%%flat, %%w4, %%b4) {transB = 1}\n"
		"%s}\n", last);
	FILE *in = fmemopen(text, strlen(text), "r");
	const om_status st = om_parse(s, in, "the net", out);
	fclose(in);
	return st;
}

static om_value *
add(om_prog *p, const char *type, om_value *a, om_value *b)
{
	om_op *op = om_op_new(p, "", type, 0, 2, 1);
	om_value *v = om_value_fresh(p, p->first, "u");

	op->phase = OM_UPDATE;
	om_op_set_in(op, 0, a);
	om_op_set_in(op, 1, b);
	om_op_set_out(op, 0, v);
	om_op_append(p->first, op);
	return v;
}

/* m = momentum * m + gradient; w = w - rate * m */
static bool
update(om_prog *p, om_value *w, om_value *gradient, om_value *rate, om_value *momentum)
{
	om_value *m = om_value_fresh(p, p->first, "m");

	m->type = w->type;
	m->shape = w->shape;
	om_block_add_param(p->first, m);
	om_value *new = add(p, "Add", add(p, "Mul", m, momentum), gradient);
	return om_prog_add_state(p, m, new) && om_prog_add_state(p, w, add(p, "Sub", w, add(p, "Mul", new, rate)));
}

static om_status
make_step(om_session *s, om_host *h, om_prog **out)
{
	static const om_tensor momentum = {.type = OM_FLOAT32, .data = (void *)&MOMENTUM};
	om_value *w[WEIGHTS], *grad[WEIGHTS];
	om_prog *p;

	OM_TRY(read_net(s, ", %label: int64[50], %lr: float32[]",
		"	%loss = SoftmaxCrossEntropyLoss(%scores, %label)\n	ret %loss\n", out));
	p = *out;
	for (om_op *op = p->first->first; op; op = op->next)
		op->phase = OM_FORWARD;
	OM_TRY(om_host_run(h, p, "inline,shapes"));
	for (int k = 0; k < WEIGHTS; k++)
		w[k] = om_value_find(p->first, weight[k]);
	om_op *last = p->first->last;
	om_backward b = OM_BACKWARD(.loss = p->first->result[0], .wrt = w, .nwrt = WEIGHTS, .grad = grad);
	OM_TRY(om_prog_backward(s, p, &b));
	for (om_op *op = last->next; op; op = op->next)
		op->phase = OM_BACKWARD;
	om_value *rate = om_value_find(p->first, "lr"), *mu = om_const_new(p, p->first, "mu", &momentum);
	for (int k = 0; k < WEIGHTS; k++)
		if (!update(p, w[k], grad[k], rate, mu))
			return om_fail(s, OM_SHAPE, "%s and its gradient differ in shape", weight[k]);
	return om_host_run(h, p, om_default_pipeline());
}

/* ---- Training. ---- */

struct task {
	om_session *s;
	om_prog *step, *net;
	om_exec *stepper, *reader;
	om_trainer *trainer;
	float *picture;          /* those of the test behind those to train on */
	int64_t *label;
};

/* Larger for weights that are summed over less. */
static om_status
start_weights(struct task *t)
{
	uint64_t state = 7;
	const om_tensor *is;
	const char *name;

	for (uint32_t k = 0; (is = om_trainer_state(t->trainer, k, &name)); k++) {
		const int64_t n = om_shape_count(&is->shape);
		const float most = *name == 'w' ? sqrtf(6.0f * (float)is->shape.dim[0] / (float)n) : 0;
		float *data = malloc((size_t)n * sizeof *data);
		for (int64_t i = 0; data && i < n; i++)
			data[i] = most > 0 ? uniform(&state, -most, most) : 0;
		om_tensor from = *is;
		from.data = data;
		const om_status st = data ? om_trainer_set(t->trainer, name, &from) : OM_MEMORY;
		free(data);
		if (st != OM_OK)
			return st;
	}
	return OM_OK;
}

static om_status
bind(om_exec *e, uint32_t k, om_dtype type, int rank, const int64_t *shape, const void *data)
{
	return om_exec_input(e, k, &(om_tensor){.type = type, .shape = om_shape_of(rank, shape), .data = (void *)data});
}

static om_status
train_epoch(struct task *t, int epoch, double *loss)
{
	static const int64_t pictures[] = {BATCH, 1, SIDE, SIDE}, labels[] = {BATCH};
	const float rate = FIRST_RATE * powf(SLOWER, (float)epoch);
	uint64_t copied = 0;

	*loss = 0;
	for (int at = 0; at < TRAIN; at += BATCH) {
		OM_TRY(bind(t->stepper, 0, OM_FLOAT32, 4, pictures, t->picture + (size_t)at * PIXELS));
		OM_TRY(bind(t->stepper, 1, OM_INT64, 1, labels, t->label + at));
		OM_TRY(bind(t->stepper, 2, OM_FLOAT32, 0, NULL, &rate));
		OM_TRY(om_trainer_step(t->trainer, t->stepper, &copied));
		*loss += *(const float *)om_exec_result(t->stepper, 0)->data * BATCH / TRAIN;
	}
	if (copied)
		printf("%llu bytes were copied\n", (unsigned long long)copied);
	return OM_OK;
}

/* The net reads with the weights where the trainer has them. */
static om_status
read_test(struct task *t, int *right)
{
	static const int64_t pictures[] = {BATCH, 1, SIDE, SIDE};
	const om_tensor *is;
	const char *name;

	for (uint32_t k = 0; (is = om_trainer_state(t->trainer, k, &name)); k++)
		for (uint32_t i = 1; i < t->net->first->nparam; i++)
			if (strcmp(t->net->first->param[i]->name, name) == 0)
				OM_TRY(om_exec_input(t->reader, i, is));
	*right = 0;
	for (int at = TRAIN; at < TRAIN + TEST; at += BATCH) {
		OM_TRY(bind(t->reader, 0, OM_FLOAT32, 4, pictures, t->picture + (size_t)at * PIXELS));
		OM_TRY(om_exec_run(t->reader));
		const float *scores = om_exec_result(t->reader, 0)->data;
		for (int k = 0; k < BATCH; k++) {
			int best = 0;
			for (int d = 1; d < 10; d++)
				best = scores[k * 10 + d] > scores[k * 10 + best] ? d : best;
			*right += best == t->label[at + k];
		}
	}
	return OM_OK;
}

static om_status
save(struct task *t, const char *net, const char *out)
{
	const om_tensor *is;
	const char *name;
	om_model *m;

	OM_TRY(om_model_load(t->s, net, &m));
	om_status st = OM_OK;
	for (uint32_t k = 0; st == OM_OK && (is = om_trainer_state(t->trainer, k, &name)); k++)
		if (om_model_has_weight(m, name))
			st = om_model_set_weight(t->s, m, name, is);
	if (st == OM_OK)
		st = om_model_save(t->s, m, out);
	om_model_free(m);
	return st;
}

static om_status
run(struct task *t, om_host *h, const char *net, const char *out, int epochs)
{
	OM_TRY(make_step(t->s, h, &t->step));
	OM_TRY(read_net(t->s, "", "	ret %scores\n", &t->net));
	OM_TRY(om_host_run(h, t->net, om_default_pipeline()));
	OM_TRY(om_exec_new(t->s, t->step, t->step->plan, NULL, &t->stepper));
	OM_TRY(om_exec_new(t->s, t->net, t->net->plan, NULL, &t->reader));
	OM_TRY(om_trainer_new(t->s, t->step, &t->trainer));
	OM_TRY(start_weights(t));
	OM_TRY(om_trainer_bind(t->trainer, t->stepper));
	printf("arena of a step: %llu bytes, lower bound %llu\n", (unsigned long long)t->step->plan->arena[0].bytes,
		(unsigned long long)t->step->plan->arena[0].lower_bound);
	for (int epoch = 0; epoch < epochs; epoch++) {
		double loss;
		int right;
		OM_TRY(train_epoch(t, epoch, &loss));
		OM_TRY(read_test(t, &right));
		printf("epoch %d: loss %.3f, %.1f %% of the test\n", epoch + 1, loss, 100.0 * right / TEST);
		fflush(stdout);
	}
	return out ? save(t, net, out) : OM_OK;
}

int
main(int argc, char **argv)
{
	struct task t = {.s = om_session_new()};
	om_host *h = om_host_new(t.s, NULL);

	if (argc < 3) {
		fprintf(stderr, "usage: %s NET.onnx OUT.onnx [EPOCHS]\n", argv[0]);
		return 2;
	}
	t.picture = malloc((TRAIN + TEST) * PIXELS * sizeof *t.picture);
	t.label = malloc((TRAIN + TEST) * sizeof *t.label);
	if (!t.picture || !t.label)
		return 1;
	draw_all(1, TRAIN, t.picture, t.label);
	draw_all(2, TEST, t.picture + (size_t)TRAIN * PIXELS, t.label + TRAIN);
	const om_status st = run(&t, h, argv[1], argv[2], argc > 3 ? atoi(argv[3]) : 10);
	if (st != OM_OK)
		fprintf(stderr, "%s\n", om_message(t.s));
	om_trainer_free(t.trainer);
	om_exec_free(t.stepper);
	om_exec_free(t.reader);
	om_prog_free(t.step);
	om_prog_free(t.net);
	om_host_free(h);
	om_session_free(t.s);
	free(t.picture);
	free(t.label);
	return om_status_exit(st);
}
