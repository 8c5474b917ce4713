/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of training steps: a model with parameters as inputs becomes a step
 * (mean squared error, momentum), which is planned as a whole, in halves, and with
 * rematerialization.
 *     bench/steps MODEL.onnx [PERCENT ...]   parameters are the inputs whose names start with "param."
 *
 * Prints a line: arena, lower bound, forward and backward planned separately, ops,
 * bytes of states; and one for each PERCENT of additional work that is allowed:
 * that, the arena, and the additional work done, in percent.
 *     bench/steps MODEL.onnx --time SECONDS
 * runs the step on random parameters instead, and prints milliseconds of the best step, the least of the
 * processor, and how many there were.
 */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <onnxmem/builder.h>
#include <onnxmem/autodiff.h>
#include <onnxmem/onnx.h>
#include <onnxmem/pass.h>
#include <onnxmem/trainer.h>

#include "base/clock.h"
#include "base/rng.h"
#include "ir/edit.h"

enum { MOST = 1000 };

#define FRONT  "inline,shapes,fold,prune,schedule=min-memory"
#define BACK   ",liveness,views,alias-io=declared,inplace,loops,pack"

static const float momentum = 0.9f, rate = 0.1f;

struct bench {
	om_session *s;
	om_host *h;
	const char *path;
	om_model *model;
};

static om_value *
add(om_prog *p, const char *type, om_value *a, om_value *b, om_phase phase)
{
	om_op *op = om_op_new(p, "", type, 0, b ? 2 : 1, 1);
	om_value *v = om_value_fresh(p, p->first, "u");

	op->phase = phase;
	om_op_set_in(op, 0, a);
	if (b)
		om_op_set_in(op, 1, b);
	else
		om_op_add_int(p, op, "keepdims", 0);
	om_op_set_out(op, 0, v);
	om_op_append(p->first, op);
	return v;
}

/* Forward, backward, update; `*last` is the last op of the forward path. */
static om_status
make(struct bench *b, om_prog **out, om_op **last)
{
	static const om_tensor mu = {.type = OM_FLOAT32, .data = (void *)&momentum}, lr = {.type = OM_FLOAT32, .data = (void *)&rate};
	om_value *w[MOST], *grad[MOST];
	uint32_t n = 0;
	om_prog *p;

	OM_TRY(om_model_import(b->s, b->model, out));
	p = *out;
	OM_TRY(om_host_run(b->h, p, "inline,shapes,fold,prune"));
	for (uint32_t k = 0; k < p->first->nparam && n < MOST; k++)
		if (strncmp(p->first->param[k]->name, "param.", 6) == 0)
			w[n++] = p->first->param[k];
	om_value *y = p->first->result[0];
	om_block_clear_results(p->first);
	om_value *loss = add(p, "ReduceMean", add(p, "Mul", y, y, OM_FORWARD), NULL, OM_FORWARD);
	om_block_add_result(p->first, loss);
	OM_TRY(om_host_run(b->h, p, "inline,shapes"));
	*last = p->first->last;
	om_backward back = OM_BACKWARD(.loss = loss, .wrt = w, .nwrt = n, .grad = grad);
	OM_TRY(om_prog_backward(b->s, p, &back));
	bool is_back = false;
	for (om_op *op = p->first->first; op; op = op->next) {
		op->phase = is_back ? OM_BACKWARD : OM_FORWARD;
		is_back |= op == *last;
	}
	om_value *m = om_const_new(p, p->first, "mu", &mu), *r = om_const_new(p, p->first, "lr", &lr);
	for (uint32_t k = 0; k < n; k++) {
		if (!grad[k])
			continue;
		om_value *state = om_value_fresh(p, p->first, "m");
		state->type = w[k]->type;
		state->shape = w[k]->shape;
		om_block_add_param(p->first, state);
		om_value *new = add(p, "Add", add(p, "Mul", state, m, OM_UPDATE), grad[k], OM_UPDATE);
		om_value *less = add(p, "Sub", w[k], add(p, "Mul", new, r, OM_UPDATE), OM_UPDATE);
		if (!om_prog_add_state(p, state, new) || !om_prog_add_state(p, w[k], less))
			return om_fail(b->s, OM_SHAPE, "%s cannot be handed on", w[k]->name);
	}
	return OM_OK;
}

/* By value id: made by the forward path and used after it.  A view counts as its
 * source. */
static om_status
find_crossing(struct bench *b, om_prog *p, om_op *last, bool *crosses, uint64_t *bytes)
{
	om_op *op = p->first->first;

	OM_TRY(om_host_run(b->h, p, "shapes,fold,liveness,views"));
	for (; op != last; op = op->next)
		;
	for (op = op->next; op; op = op->next)
		for (uint32_t k = 0; k < op->nin; k++) {
			om_value *v = op->in[k];
			if (!v || v->is_const || !v->def || v->def->step > last->step || crosses[v->id])
				continue;
			crosses[v->id] = true;
			const uint64_t align = p->assignment->request->align;
			om_value *root = om_storage(p->assignment, v, NULL);
			if (root == v || !crosses[root->id])
				*bytes += (om_value_bytes(v) + align - 1) / align * align;
			crosses[root->id] = true;
		}
	return OM_OK;
}

static om_status
half(struct bench *b, bool forward, uint64_t *arena, uint64_t *kept)
{
	static bool crosses[1 << 16];
	om_prog *p;
	om_op *last, *next;

	memset(crosses, 0, sizeof crosses);
	*kept = 0;
	om_status st = make(b, &p, &last);
	if (st == OM_OK)
		st = find_crossing(b, p, last, crosses, kept);
	const uint32_t n = p ? p->nvalue : 0;
	if (st == OM_OK && forward) {
		for (om_op *op = last->next; op; op = next) {
			next = op->next;
			om_op_remove(op);
		}
		om_value *loss = p->first->result[0];
		om_prog_clear_ties(p);
		om_block_clear_results(p->first);
		om_block_add_result(p->first, loss);
		for (uint32_t k = 0; k < n; k++)
			if (crosses[k] && p->values[k]->def)
				om_block_add_result(p->first, p->values[k]);
	} else if (st == OM_OK) {
		for (om_op *op = p->first->first; op; op = next) {
			next = op == last ? NULL : op->next;
			if (!op->is_folded)
				om_op_remove(op);
		}
		om_block_set_result(p->first, 0, p->first->result[1]);   /* the loss exists already */
		om_prog_clear_ties(p);
		for (uint32_t k = 0; k < n; k++)
			if (crosses[k] && !p->values[k]->def)
				om_block_add_param(p->first, p->values[k]);
	}
	if (st == OM_OK)
		st = om_host_run(b->h, p, FRONT BACK);
	if (st == OM_OK)
		*arena = p->plan->arena[0].bytes;
	om_prog_free(p);
	return st;
}

struct figures {
	uint64_t arena, bound, states;
	uint32_t nop;
	double again;            /* rematerialized work, in percent of all other */
};

static void
measure(const om_prog *p, struct figures *f)
{
	double all = 0, again = 0;

	*f = (struct figures){p->plan->arena[0].bytes, p->plan->arena[0].lower_bound, 0, p->first->nop, 0};
	for (uint32_t k = 0; k < p->nio_alias; k++)
		f->states += om_value_bytes(p->first->param[p->io_alias[k].param]);
	for (const om_op *op = p->first->first; op; op = op->next)
		if (!op->is_folded)
			*(op->rematerialized_from ? &again : &all) += om_op_cost(op).flops;
	f->again = all > 0 ? 100 * again / all : 0;
}

static om_status
whole(struct bench *b, const char *passes, struct figures *f)
{
	om_prog *p;
	om_op *last;

	om_status st = make(b, &p, &last);
	if (st == OM_OK)
		st = om_host_run(b->h, p, passes);
	if (st == OM_OK)
		st = om_plan_verify(b->s, p, p->plan);
	if (st == OM_OK)
		measure(p, f);
	om_prog_free(p);
	return st;
}

static om_status
run(struct bench *b, char **percent)
{
	uint64_t forward, backward, kept;
	struct figures f;
	char passes[256];

	OM_TRY(om_model_load(b->s, b->path, &b->model));
	OM_TRY(whole(b, FRONT BACK, &f));
	OM_TRY(half(b, true, &forward, &kept));
	OM_TRY(half(b, false, &backward, &kept));
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu64 "\n", f.arena, f.bound,
		kept + (forward > backward ? forward : backward), f.nop, f.states);
	for (; *percent; percent++) {
		snprintf(passes, sizeof passes, FRONT ",rematerialize=%s" BACK, *percent);
		OM_TRY(whole(b, passes, &f));
		printf("%s %" PRIu64 " %.1f\n", *percent, f.arena, f.again);
		fflush(stdout);
	}
	return OM_OK;
}

/* ---- Time. ---- */

/* Normal enough, and small: a parameter of many rows has few large sums. */
static void
fill(uint64_t *rng, const om_tensor *t)
{
	const int64_t n = om_shape_count(&t->shape), rows = t->shape.rank > 0 ? t->shape.dim[0] : 1;
	const double scale = sqrt(3.0 * (double)rows / (double)(n > 0 ? n : 1));
	float *x = t->data;

	for (int64_t k = 0; k < n && t->type == OM_FLOAT32; k++)
		x[k] = (float)((2 * om_rng_unit(rng) - 1) * scale);
}

/* Momentum starts with zeros. */
static void
fill_states(uint64_t *rng, const om_trainer *t)
{
	const om_tensor *state;
	const char *name;

	for (uint32_t k = 0; (state = om_trainer_state(t, k, &name)); k++)
		if (strncmp(name, "param.", 6) == 0)
			fill(rng, state);
}

static om_status
bind_samples(om_arena *mem, uint64_t *rng, const om_prog *p, const om_step *step, om_exec *e)
{
	for (uint32_t k = 0; k < step->nsample; k++) {
		const om_value *v = p->first->param[step->sample[k]];
		const uint64_t bytes = om_value_bytes(v);
		om_tensor t = {.type = v->type.elem, .shape = v->shape, .data = om_allocn(mem, bytes, 1)};
		fill(rng, &t);
		OM_TRY(om_exec_input(e, step->sample[k], &t));
	}
	return OM_OK;
}

static om_status
repeat(om_trainer *t, om_exec *e, double seconds)
{
	const double start = om_now_ms();
	double best = INFINITY, best_cpu = INFINITY;
	uint64_t steps = 0, copied;

	for (; steps < 3 || om_now_ms() - start < seconds * 1e3; steps++) {
		const double cpu = om_cpu_ms(), at = om_now_ms();
		OM_TRY(om_trainer_step(t, e, &copied));
		best = fmin(best, om_now_ms() - at);
		best_cpu = fmin(best_cpu, om_cpu_ms() - cpu);
	}
	printf("%.3f %.3f %" PRIu64 "\n", best, best_cpu, steps);
	return OM_OK;
}

static om_status
run_steps(struct bench *b, const om_prog *p, om_arena *mem, double seconds)
{
	om_trainer *t = NULL;
	om_exec *e = NULL;
	om_step step;
	uint64_t rng = 7;

	OM_TRY(om_step_find(b->s, p, mem, &step));
	om_status st = om_trainer_new(b->s, p, &t);
	if (st == OM_OK) {
		fill_states(&rng, t);
		st = om_exec_new(b->s, p, p->plan, NULL, &e);
	}
	if (st == OM_OK)
		st = om_trainer_bind(t, e);
	if (st == OM_OK)
		st = bind_samples(mem, &rng, p, &step, e);
	if (st == OM_OK)
		st = repeat(t, e, seconds);
	om_exec_free(e);
	om_trainer_free(t);
	return st;
}

static om_status
run_timed(struct bench *b, double seconds)
{
	const om_plan_request request = OM_PLAN_REQUEST(.target = OM_TARGET_CPU);
	om_arena *mem = om_arena_new();
	om_prog *p = NULL;
	om_op *last;

	om_status st = om_model_load(b->s, b->path, &b->model);
	if (st == OM_OK)
		st = make(b, &p, &last);
	if (st == OM_OK)
		st = om_host_request(b->h, &request);
	if (st == OM_OK)
		st = om_host_run(b->h, p, om_default_pipeline());
	if (st == OM_OK)
		st = run_steps(b, p, mem, seconds);
	om_prog_free(p);
	om_arena_free(mem);
	return st;
}

int
main(int argc, char **argv)
{
	struct bench b = {.s = om_session_new(), .path = argc > 1 ? argv[1] : ""};

	b.h = om_host_new(b.s, NULL);
	const bool timed = argc == 4 && strcmp(argv[2], "--time") == 0;
	const om_status st = timed ? run_timed(&b, atof(argv[3])) : run(&b, argc > 2 ? argv + 2 : argv + argc);
	if (st != OM_OK)
		fprintf(stderr, "%s\n", om_message(b.s));
	om_model_free(b.model);
	om_host_free(b.h);
	om_session_free(b.s);
	return om_status_exit(st);
}
