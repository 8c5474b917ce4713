/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs: drawn, and run by calls or as one program. */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "machine.h"
#include "onnxmem/executor.h"
#include "onnxmem/pass.h"

enum {
	UNARY, BINARY, PRODUCT, SWAP_HALVES, FLATTEN, CENTER, GATHER, CONVOLVE, SELECT, HALF, SORT, COPY, LAST_SIMPLE = COPY,
	BRANCH, LOOP,
};

static const char *const unary[] = {"Relu", "Tanh", "Neg", "Sigmoid", "Abs", "Softmax", "Transpose", "Exp"};
static const char *const binary[] = {"Add", "Sub", "Mul", "Max", "Min", "Div"};

/* ---- Drawing. ---- */

static int
below(uint64_t *seed, int n)
{
	return (int)om_rng_below(seed, (uint64_t)n);
}

static void draw_block(struct script *p, uint64_t *seed, int n, int depth);

static void
draw_control(struct script *p, uint64_t *seed, int depth)
{
	const int at = p->n++;
	struct statement *s = &p->s[at];

	s->code = below(seed, 3) ? BRANCH : LOOP;
	s->a = below(seed, REGISTERS);
	draw_block(p, seed, 1 + below(seed, 4), depth + 1);
	s->middle = p->n;
	if (s->code == BRANCH)
		draw_block(p, seed, below(seed, 4), depth + 1);
	s->end = p->n;
}

static void
draw_block(struct script *p, uint64_t *seed, int n, int depth)
{
	for (int k = 0; k < n && p->n + 20 < STATEMENTS; k++) {
		if (depth < 2 && below(seed, 4) == 0) {
			draw_control(p, seed, depth);
			continue;
		}
		p->s[p->n++] = (struct statement){.code = below(seed, LAST_SIMPLE + 1), .a = below(seed, REGISTERS),
			.b = below(seed, REGISTERS), .to = below(seed, REGISTERS), .other = below(seed, 64)};
	}
}

void
script_draw(struct script *p, uint64_t *seed)
{
	memset(p, 0, sizeof *p);
	draw_block(p, seed, 3 + below(seed, 10), 0);
	p->has_gradient = below(seed, 3) == 0;
}

/* ---- Machines: variables of a context, or values of a program. ---- */

struct cell {
	om_variable *v;
	om_value *value;
};

struct machine {
	om_session *s;
	om_eager *e;             /* NULL: a program is built */
	om_prog *p;
	struct cell reg[REGISTERS], input[INPUTS];
	struct outcome *out;
	const struct outcome *decided;
	bool failed;
};

static struct cell
share(struct cell c)
{
	if (c.v)
		om_variable_keep(c.v);
	return c;
}

static void
drop(struct cell c)
{
	om_variable_free(c.v);
}

static void
build_op(struct machine *m, const char *type, const om_attr *attrs, size_t nin, const struct cell *in, size_t nout,
	struct cell *out)
{
	om_op *op = om_op_new(m->p, "", type, 0, (uint32_t)nin, (uint32_t)nout);

	for (; attrs && attrs->name; attrs++)
		om_op_add_attr(m->p, op, attrs);
	for (uint32_t k = 0; k < nin; k++)
		om_op_set_in(op, k, in[k].value);
	for (uint32_t k = 0; k < nout; k++)
		om_op_set_out(op, k, out[k].value = om_value_fresh(m->p, m->p->first, "y"));
	om_op_append(m->p->first, op);
}

static void
emit(struct machine *m, const char *type, const om_attr *attrs, size_t nin, const struct cell *in, size_t nout, struct cell *out)
{
	om_variable *from[4] = {NULL}, *to[4] = {NULL};

	memset(out, 0, nout * sizeof *out);
	if (m->failed)
		return;
	if (!m->e) {
		build_op(m, type, attrs, nin, in, nout, out);
		return;
	}
	for (size_t k = 0; k < nin; k++)
		from[k] = in[k].v;
	if (om_eager_run(m->e, type, attrs, nin, from, nout, to) != OM_OK) {
		printf("# %s: %s\n", type, om_message(m->s));
		m->failed = true;
	}
	for (size_t k = 0; k < nout; k++)
		out[k].v = to[k];
}

static struct cell
emit_one(struct machine *m, const char *type, const om_attr *attrs, struct cell a, struct cell b)
{
	struct cell out;

	emit(m, type, attrs, b.v || b.value ? 2 : 1, (struct cell[]){a, b}, 1, &out);
	return out;
}

static const struct cell none;

static struct cell
list(struct machine *m, int64_t n, const int64_t *x)
{
	const om_tensor t = {.type = OM_INT64, .shape = om_shape_of(1, &n), .data = (void *)x};
	struct cell c = {NULL, NULL};

	if (m->e && om_variable_new(m->e, &t, &c.v) != OM_OK)
		m->failed = true;
	if (!m->e) {
		om_tensor *copy = OM_NEW(m->p->mem, om_tensor);
		*copy = t;
		copy->data = om_memdup(m->p->mem, x, (size_t)n * sizeof *x);
		c.value = om_const_new(m->p, m->p->first, om_value_fresh(m->p, m->p->first, "c")->name, copy);
	}
	return c;
}

static void
put(struct machine *m, int to, struct cell c)
{
	drop(m->reg[to]);
	m->reg[to] = c;
}

/* ---- Statements. ---- */

static struct cell
reshape(struct machine *m, struct cell x, int64_t n, const int64_t *dims)
{
	struct cell to = list(m, n, dims), y = emit_one(m, "Reshape", NULL, x, to);

	drop(to);
	return y;
}

/* y, after x is not needed any more. */
static struct cell
after(struct cell y, struct cell x)
{
	drop(x);
	return y;
}

static void
swap_halves(struct machine *m, const struct statement *s)
{
	struct cell both = emit_one(m, "Concat", OM_A(OM_MAKE_INT("axis", s->other % 2)), m->reg[s->a], m->reg[s->b]), half[2];

	emit(m, "Split", OM_A(OM_MAKE_INT("axis", s->other % 2), OM_MAKE_INT("num_outputs", 2)), 1, &both, 2, half);
	drop(both);
	put(m, s->to, half[1]);
	put(m, s->b, half[0]);
}

static struct cell
flatten(struct machine *m, const struct statement *s)
{
	const int64_t flat[] = {SIDE * SIDE}, square[] = {SIDE, SIDE}, axis[] = {0};
	struct cell x = reshape(m, m->reg[s->a], 1, flat), at = list(m, 1, axis);
	struct cell y = emit_one(m, s->other % 2 ? "CumSum" : "ReduceMax", NULL, x, at);
	struct cell z = s->other % 2 ? y : after(emit_one(m, "Add", NULL, x, y), y);

	drop(at);
	drop(x);
	return after(reshape(m, z, 2, square), z);
}

static struct cell
center(struct machine *m, const struct statement *s)
{
	const int64_t axis[] = {s->other % 2};
	struct cell at = list(m, 1, axis), mean = emit_one(m, "ReduceMean", NULL, m->reg[s->a], at);

	drop(at);
	return after(emit_one(m, "Sub", NULL, m->reg[s->a], mean), mean);
}

static struct cell
gather(struct machine *m, const struct statement *s)
{
	const int64_t rows[] = {s->other % 4, s->other / 4 % 4, s->other / 16 % 4, s->other % 3};
	struct cell at = list(m, 4, rows);

	return after(emit_one(m, "Gather", OM_A(OM_MAKE_INT("axis", s->other % 2)), m->reg[s->a], at), at);
}

static struct cell
convolve(struct machine *m, const struct statement *s)
{
	const int64_t image[] = {1, 1, SIDE, SIDE}, square[] = {SIDE, SIDE}, pads[] = {1, 2, 2, 1};
	struct cell x = reshape(m, m->reg[s->a], 4, image), w = reshape(m, m->reg[s->b], 4, image);
	struct cell y = emit_one(m, "Conv", OM_A(OM_MAKE_INTS("pads", 4, pads)), x, w);

	drop(x);
	drop(w);
	return after(reshape(m, y, 2, square), y);
}

static struct cell
choose(struct machine *m, const struct statement *s)
{
	struct cell less = emit_one(m, "Less", NULL, m->reg[s->a], m->reg[s->b]), y;

	emit(m, "Where", NULL, 3, (struct cell[]){less, m->reg[s->a], m->reg[s->to]}, 1, &y);
	return after(y, less);
}

static struct cell
half(struct machine *m, const struct statement *s)
{
	struct cell h = emit_one(m, "Cast", OM_A(OM_MAKE_INT("to", OM_FLOAT16)), m->reg[s->a], none);

	return after(emit_one(m, "Cast", OM_A(OM_MAKE_INT("to", OM_FLOAT32)), h, none), h);
}

static struct cell
sort(struct machine *m, const struct statement *s)
{
	const int64_t most[] = {SIDE};
	struct cell k = list(m, 1, most), out[2];

	emit(m, "TopK", OM_A(OM_MAKE_INT("axis", s->other % 2)), 2, (struct cell[]){m->reg[s->a], k}, 2, out);
	drop(k);
	drop(out[1]);
	return out[0];
}

static void
run_simple(struct machine *m, const struct statement *s)
{
	const struct cell a = m->reg[s->a], b = m->reg[s->b];

	switch (s->code) {
	case UNARY: put(m, s->to, emit_one(m, unary[s->other % 8], NULL, a, none)); break;
	case BINARY: put(m, s->to, emit_one(m, binary[s->other % 6], NULL, a, b)); break;
	case PRODUCT: put(m, s->to, emit_one(m, "MatMul", NULL, a, b)); break;
	case SWAP_HALVES: swap_halves(m, s); break;
	case FLATTEN: put(m, s->to, flatten(m, s)); break;
	case CENTER: put(m, s->to, center(m, s)); break;
	case GATHER: put(m, s->to, gather(m, s)); break;
	case CONVOLVE: put(m, s->to, convolve(m, s)); break;
	case SELECT: put(m, s->to, choose(m, s)); break;
	case HALF: put(m, s->to, half(m, s)); break;
	case SORT: put(m, s->to, sort(m, s)); break;
	case COPY: put(m, s->to, share(a)); break;
	}
}

/* 0 to 2, from the elements of a register. */
static int
decide(struct machine *m, int reg)
{
	struct cell sum = emit_one(m, "ReduceSum", OM_A(OM_MAKE_INT("keepdims", 0)), m->reg[reg], none);
	struct outcome *o = m->out;
	const om_tensor *t;
	int found = 0;

	if (m->failed || o->ndecision == DECISIONS)
		return 0;
	if (!m->e) {
		found = m->decided->decision[o->ndecision];
	} else if (om_variable_read(sum.v, &t) != OM_OK) {
		printf("# %s\n", om_message(m->s));
		m->failed = true;
	} else {
		const float x = *(const float *)t->data;
		found = x < -1 ? 2 : x > 1 ? 1 : 0;
	}
	drop(sum);
	o->decision[o->ndecision++] = found;
	return found;
}

static void
run_block(struct machine *m, const struct script *p, int from, int to)
{
	for (int k = from; k < to && !m->failed; k++) {
		const struct statement *s = &p->s[k];
		if (s->code <= LAST_SIMPLE) {
			run_simple(m, s);
			continue;
		}
		const int found = decide(m, s->a);
		if (s->code == BRANCH)
			run_block(m, p, found == 1 ? k + 1 : s->middle, found == 1 ? s->middle : s->end);
		for (int i = 0; s->code == LOOP && i <= found; i++)
			run_block(m, p, k + 1, s->middle);
		k = s->end - 1;
	}
}

static void
start_registers(struct machine *m)
{
	for (int k = 0; k < REGISTERS; k++)
		m->reg[k] = share(m->input[k % INPUTS]);
}

/* ---- Runs on a context. ---- */

static void
store(struct machine *m, om_variable *v, float *to)
{
	const om_tensor *t;

	memset(to, 0, SIDE * SIDE * sizeof *to);
	if (!v || m->failed)
		return;
	if (om_variable_read(v, &t) != OM_OK) {
		printf("# %s\n", om_message(m->s));
		m->failed = true;
	} else {
		memcpy(to, t->data, SIDE * SIDE * sizeof *to);
	}
}

static void
find_gradient(struct machine *m, om_variable **grad)
{
	struct cell sum = emit_one(m, "ReduceSum", OM_A(OM_MAKE_INT("keepdims", 0)), m->reg[0], none);
	om_variable *wrt[INPUTS];

	om_eager_record(m->e, false);
	for (int k = 0; k < INPUTS; k++)
		wrt[k] = m->input[k].v;
	if (!m->failed && om_eager_gradient(m->e, sum.v, NULL, INPUTS, wrt, grad) != OM_OK) {
		printf("# %s\n", om_message(m->s));
		m->failed = true;
	}
	drop(sum);
}

bool
script_run(const struct script *p, om_session *s, om_eager *e, float in[INPUTS][SIDE * SIDE], struct outcome *out)
{
	struct machine m = {.s = s, .e = e, .out = out};
	om_variable *grad[INPUTS] = {NULL};

	out->ndecision = 0;
	for (int k = 0; k < INPUTS; k++) {
		const om_tensor t = {.type = OM_FLOAT32, .shape = om_shape_of(2, (int64_t[]){SIDE, SIDE}), .data = in[k]};
		if (om_variable_new(e, &t, &m.input[k].v) != OM_OK)
			return false;
		om_variable_watch(m.input[k].v);
	}
	start_registers(&m);
	om_eager_record(e, p->has_gradient);
	run_block(&m, p, 0, p->n);
	if (p->has_gradient)
		find_gradient(&m, grad);
	for (int k = 0; k < REGISTERS; k++) {
		store(&m, m.reg[k].v, out->x[k]);
		drop(m.reg[k]);
	}
	for (int k = 0; k < INPUTS; k++) {
		store(&m, grad[k], out->x[REGISTERS + k]);
		om_variable_free(grad[k]);
		drop(m.input[k]);
	}
	return !m.failed;
}

/* ---- As one program. ---- */

static void
start_program(struct machine *m)
{
	om_prog *p = m->p = om_prog_new();

	p->nopset = 1;
	p->opset = OM_NEW(p->mem, om_opset);
	p->opset[0] = (om_opset){"", 21};
	p->ir_version = 10;
	om_block_new(p, NULL, NULL, "script");
	for (int k = 0; k < INPUTS; k++) {
		om_value *v = m->input[k].value = om_value_fresh(p, p->first, "x");
		v->type.elem = OM_FLOAT32;
		v->shape = om_shape_of(2, (int64_t[]){SIDE, SIDE});
		v->is_declared = true;
		om_block_add_param(p->first, v);
	}
	start_registers(m);
}

static om_status
build_gradient(struct machine *m, om_host *h, om_value **grad)
{
	struct cell sum = emit_one(m, "ReduceSum", OM_A(OM_MAKE_INT("keepdims", 0)), m->reg[0], none);
	om_value *wrt[INPUTS];

	for (int k = 0; k < INPUTS; k++)
		wrt[k] = m->input[k].value;
	om_status st = om_host_run(h, m->p, "inline,shapes");
	const om_backward b = OM_BACKWARD(.loss = sum.value, .wrt = wrt, .nwrt = INPUTS, .grad = grad);
	return st == OM_OK ? om_prog_backward(m->s, m->p, &b) : st;
}

static om_status
run_program(struct machine *m, om_host *h, float in[INPUTS][SIDE * SIDE])
{
	const om_exec_options options = OM_EXEC_OPTIONS(.threads = 1);
	om_exec *e = NULL;

	OM_TRY(om_host_run(h, m->p, "inline,shapes,fold,prune,schedule=original,liveness,views,inplace,loops,pack=nnc-code"));
	OM_TRY(om_exec_new(m->s, m->p, m->p->plan, &options, &e));
	om_status st = OM_OK;
	for (uint32_t k = 0; k < INPUTS && st == OM_OK; k++)
		st = om_exec_input(e, k, &(om_tensor){.type = OM_FLOAT32, .shape = m->p->first->param[k]->shape, .data = in[k]});
	if (st == OM_OK)
		st = om_exec_run(e);
	for (uint32_t k = 0; k < m->p->first->nresult && st == OM_OK; k++)
		memcpy(m->out->x[k], om_exec_result(e, k)->data, sizeof m->out->x[k]);
	om_exec_free(e);
	return st;
}

/* Gradients that are zero have no value: their place is taken by register 0, and cleared. */
static om_status
add_results(struct machine *m, om_host *h, bool has_gradient, bool *is_zero)
{
	om_value *grad[INPUTS] = {NULL};

	if (has_gradient)
		OM_TRY(build_gradient(m, h, grad));
	for (int k = 0; k < REGISTERS; k++)
		om_block_add_result(m->p->first, m->reg[k].value);
	for (int k = 0; k < INPUTS; k++) {
		is_zero[k] = !grad[k];
		om_block_add_result(m->p->first, grad[k] ? grad[k] : m->reg[0].value);
	}
	m->p->has = 0;
	return OM_OK;
}

bool
script_compile(const struct script *p, om_session *s, float in[INPUTS][SIDE * SIDE], const struct outcome *decided,
	struct outcome *out)
{
	struct machine m = {.s = s, .out = out, .decided = decided};
	om_host *h = om_host_new(s, "");
	bool is_zero[INPUTS];

	out->ndecision = 0;
	start_program(&m);
	run_block(&m, p, 0, p->n);
	om_status st = add_results(&m, h, p->has_gradient, is_zero);
	if (st == OM_OK)
		st = run_program(&m, h, in);
	if (st != OM_OK)
		printf("# %s\n", om_message(s));
	for (int k = 0; k < INPUTS && st == OM_OK; k++)
		if (is_zero[k])
			memset(out->x[REGISTERS + k], 0, sizeof out->x[REGISTERS + k]);
	om_prog_free(m.p);
	om_host_free(h);
	return st == OM_OK && !m.failed;
}
